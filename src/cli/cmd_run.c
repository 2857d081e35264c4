/* SPDX-License-Identifier: MIT */
/* cmd_run.c: kymo run: a program and its children, from the first event to the last. */
#include "cli/capture_verb.h"
#include "cli/cli.h"

#include <getopt.h>

static int run(int argc, char **argv)
{
	struct ky_capture_command command;
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(&command, argc, argv)) {
		/* reported */
	} else if (optind >= argc) {
		ky_cli_usage("the program is missing: 'kymo run -- PROGRAM ARGUMENTS'");
	} else {
		command.capture.command = argv + optind;
		command.capture.scope = KY_PROCESSES_CHILDREN;
		code = ky_capture_verb(&command);
	}
	ky_capture_options_free(&command);
	return code;
}

#define RUNS                                                                                       \
	"run starts a program and follows its children: 'kymo attach' records running processes"

/* Options of other verbs that people try here: known for the message, and hidden from the help. */
static const struct ky_option elsewhere[] = {
	{"pid", .kind = KY_OPTION_CALL, .refusal = RUNS, .letter = 'p', .argument = "PID"},
	{"follow", .kind = KY_OPTION_CALL, .refusal = RUNS},
	{"all", .kind = KY_OPTION_CALL, .letter = 'a',
	 .refusal = "run records a program and its children: 'kymo record' records all processes"},
	{0},
};

static const struct ky_section sections[] = {
	{"SIGNALS",
	 "The program has the terminal and is in kymo's process group. Ctrl-C reaches both, and kymo ends when the "
	 "program does; a second Ctrl-C kills the program with SIGKILL. Ctrl-Z stops both. kymo passes these on to a "
	 "program that has left the group. It also passes on signals that are sent to kymo alone (SIGTERM, SIGHUP, "
	 "SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGTSTP, SIGCONT and others), unless one is a trigger. "
	 "Killing kymo with SIGKILL leaves the program alone, and what is in the file remains readable."},
	{"ENVIRONMENT",
	 "The program gets `KYMO_DRUM_MAIL` (where it hands over its buffer) and `KYMO_CATEGORIES` (from `--categories` "
	 "and the triggers). Unless they are set, it also gets `KYMO_BUFFER`, which `--buffer` sets in any case, and "
	 "`KYMO_LIMITS`. See `kymo`(7)."},
	{"NOTES",
	 "A program without kymo trace points has no events of its own; `--kernel`, `--sample` and `--functions` work "
	 "with any program.\n"
	 "\n"
	 "With `symbol:`, `line:`, `crash` and `--functions`, kymo holds the program before its first instruction by "
	 "`ptrace`(2) until these are set: a set-user-ID program that an ordinary user starts does not gain its rights "
	 "then. With `crash` it stays traced, and no debugger can attach to it."},
	{0},
};

const struct ky_verb ky_verb_run = {
	.name = "run",
	.summary = "record a program from its first event to its last",
	.usage = "[OPTIONS] -- PROGRAM [ARGUMENTS]",
	.about =
		"Start a program and record it and its children from their first event: the events of their trace "
		"points and, on request, kernel events, call stacks and function calls. kymo passes signals on, "
		"ends with the program and returns its exit code. Ctrl-C reaches the program as usual; a second one "
		"kills it.",
	.details =
		"Children are recorded however briefly they live, and all sources share one timeline. Recording "
		"events never holds the program up: it writes into its own memory, and kymo reads there.\n"
		"\n"
		"The recording ends with the program; children that still run are recorded up to that moment. When "
		"it ends earlier (`--duration`, `--max-size`, `--snapshots`, a full disk), the program goes on, and "
		"kymo still ends with it.\n"
		"\n"
		"With `--trigger`, kymo is a flight recorder: it writes nothing until a trigger fires, and then what "
		"led up to it, from all sources.",
	.status =
		"That of the program; 128 + N when signal N ended it; 127 when there is no such program, 126 when it "
		"cannot be run. 1 when the program succeeded and the recording failed. 2: wrong usage. 3 when the program "
		"succeeded and a category, function, kernel event or symbol that was named matches nothing, or no "
		"trigger fired. 77 when "
		"`--functions`, or the engine named, is not possible on this machine; the program has not run then.",
	.examples = "kymo run -- ./server --port 8080\n"
		    "kymo run -o out.pftrace --kernel --sample 1000 -- make -j8\n"
		    "kymo run --trigger 'span:net/recv>5ms' --before 50ms -- ./server\n"
		    "kymo run --trigger crash -o crash.kymo -- ./server\n"
		    "kymo run --functions -- sqlite3 test.db .dump\n"
		    "kymo run --max-size 100M --rotate 10 -o 'day.${rotation}.kymo' -- ./server",
	.related = "attach record snapshot list",
	.options = (const struct ky_option_set[]){{ky_capture_function_options, 0},
						  {ky_capture_options, 0},
						  {elsewhere, 0},
						  {0}},
	.sections = sections,
	.runs_command = true,
	.run = run,
};
