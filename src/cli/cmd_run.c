/* SPDX-License-Identifier: MIT */
/* cmd_run.c: kymo run: a program from its first event to its last, and its children. */
#include "cli/capture_verb.h"
#include "cli/cli.h"

#include <getopt.h>

static const char help[] =
	"usage: kymo run [options] -- PROGRAM [ARGUMENTS]\n"
	"\n"
	"Starts a program and records it and its children from their first event on: the events of "
	"their\n"
	"trace points and, when asked for, those of the kernel and call stacks. Ends with the "
	"program, and\n"
	"with its exit code (128 + N when signal N ended it, 127 or 126 when it could not be "
	"started).\n"
	"Signals are passed on. Ctrl-C reaches the program as ever, and kymo ends with it; a "
	"second one\n"
	"kills it.\n"
	"\n"
	"      --progress         a line with what is recorded, though the program has the "
	"terminal\n"
	"\n" KY_CAPTURE_FUNCTIONS_HELP KY_CAPTURE_OPTIONS_HELP "\n"
	"examples:\n"
	"  kymo run -- ./server --port 8080\n"
	"  kymo run -o out.pftrace --kernel --sample 1000 -- make -j8\n"
	"  kymo run --trigger 'span:net/recv>5ms' --before 50ms -- ./server\n"
	"  kymo run --trigger crash -o crash.kymo -- ./server\n"
	"  kymo run --functions -- sqlite3 test.db .dump\n";

static int run(int argc, char **argv)
{
	struct ky_capture_command command;
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(&command, argc, argv, true)) {
		/* said */
	} else if (command.targets_count || command.follow) {
		ky_cli_usage("-p and --follow are for 'kymo attach'; run starts a program and "
			     "follows it");
	} else if (optind >= argc) {
		ky_cli_usage("which program? 'kymo run -- PROGRAM ARGUMENTS'");
	} else {
		command.capture.command = argv + optind;
		command.capture.scope = KY_PROCESSES_CHILDREN;
		code = ky_capture_verb(&command);
	}
	ky_capture_options_free(&command);
	return code;
}

const struct ky_verb ky_verb_run = {"run", "a program from its first event to its last", help, run};
