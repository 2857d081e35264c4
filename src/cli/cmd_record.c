/* SPDX-License-Identifier: MIT */
/* cmd_record.c: kymo record: the whole machine. */
#include "cli/capture_verb.h"
#include "cli/cli.h"

#include <getopt.h>

static const char help[] =
	"usage: kymo record [options]\n"
	"\n"
	"Records the whole machine: the trace points of all processes that this user may look "
	"into, those\n"
	"that begin meanwhile too, and the kernel's scheduling where that is allowed. Ends with "
	"Ctrl-C or\n"
	"after --duration. What is not allowed is said with its remedy, and the rest is recorded.\n"
	"\n"
	"      --no-kernel        without events of the kernel\n"
	"\n" KY_CAPTURE_OPTIONS_HELP "\n"
	"examples:\n"
	"  kymo record --duration 5s\n"
	"  kymo record --kernel=sched,syscalls,'irq:*' --sample 1000 -o out.pftrace\n"
	"  kymo record --max-size 100M --rotate 10 -o 'night.${rotation}.kymo'\n";

static int run(int argc, char **argv)
{
	struct ky_capture_command command;
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(&command, argc, argv, false)) {
		/* said */
	} else if (optind < argc) {
		ky_cli_usage("there is '%s', which is no option; 'kymo run' starts a program",
			     argv[optind]);
	} else if (command.capture.functions) {
		ky_cli_usage("--functions is of programs: 'kymo run' starts one, 'kymo attach' "
			     "takes those that run");
	} else if (command.targets_count || command.follow) {
		ky_cli_usage("record is of the whole machine; 'kymo attach' is of one process");
	} else {
		if (!command.capture.kernel_count && !command.no_kernel)
			ky_capture_options_kernel(&command, "sched");
		command.capture.kernel = (const char *const *)command.kernel;
		command.capture.scope = KY_PROCESSES_ALL;
		code = ky_capture_verb(&command);
	}
	ky_capture_options_free(&command);
	return code;
}

const struct ky_verb ky_verb_record = {"record", "the whole machine", help, run};
