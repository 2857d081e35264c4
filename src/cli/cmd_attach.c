/* SPDX-License-Identifier: MIT */
/* cmd_attach.c: kymo attach: record running processes. */
#include "cli/capture_verb.h"
#include "cli/cli.h"

#include <getopt.h>

/* Of running programs, which may be somebody's service. */
#define OVERHEAD_PERCENT 20u

static int run(int argc, char **argv)
{
	struct ky_capture_command command;
	struct ky_pids pids = {0};
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(&command, argc, argv)) {
		/* reported */
	} else if (optind < argc) {
		ky_cli_usage(
			"'%s' is not an option: use -p PID|NAME for a process; 'kymo run' starts a "
			"program",
			argv[optind]);
	} else if (!command.targets_count) {
		ky_cli_usage(
			"the process is missing: use -p PID|NAME; 'kymo list' shows those with trace "
			"points");
	} else if (!ky_capture_options_find(&command, &pids)) {
		code = command.targets_missing ? KY_EXIT_NOTHING : KY_EXIT_FAILED;
	} else {
		if (!command.overhead_given && command.functions.hot_per_second)
			command.functions.overhead_percent = OVERHEAD_PERCENT;
		command.capture.scope = command.follow ? KY_PROCESSES_CHILDREN : KY_PROCESSES_GIVEN;
		code = ky_capture_verb(&command);
	}
	ky_pids_free(&pids);
	ky_capture_options_free(&command);
	return code;
}

static const struct ky_option options[] = {
	{"pid", .kind = KY_OPTION_CALL, .take = ky_capture_options_target, .letter = 'p',
	 .argument = "PID|NAME", .help = "a process, by number or name; may be given several times",
	 .more = "A name means all processes of that name."},
	{"follow", KY_OPTION_AT(FLAG, struct ky_capture_command, follow),
	 .help = "record their children, too", .more = "Those that exist and those to come."},
	{0},
};

/* Known so that the message names the right verb; hidden from the help. */
static const struct ky_option elsewhere[] = {
	{"all", .kind = KY_OPTION_CALL, .letter = 'a',
	 .refusal = "attach records the processes of -p: 'kymo record' records all processes"},
	{0},
};

const struct ky_verb ky_verb_attach = {
	.name = "attach",
	.summary = "record running processes",
	.usage = "[OPTIONS] -p PID|NAME [-p ...]",
	.about =
		"Switch on the trace points of running processes, record, and switch them off again. Ends when the "
		"processes have ended, after --duration, or with Ctrl-C. The processes are neither stopped nor "
		"changed, except by --functions: it stops them for some milliseconds and restores their code at the "
		"end.",
	.details =
		"A trace point stays on while another recorder wants it. If kymo is killed, the next kymo that "
		"looks (also `kymo list`) switches the trace points off. The processes need not have been started in any special "
		"way. A recording is complete to the last event, even after a SIGKILL. kymo reports a process that "
		"cannot be recorded, with the remedy, and records the others.\n"
		"\n"
		"With `--functions`, the threads are stopped for some milliseconds at the beginning and at the end, "
		"and the first instructions of the functions are jumps in between. At the end every byte is as it "
		"was, also when a signal ends kymo; after a SIGKILL the next kymo that attaches restores it. Calls "
		"that were under way when kymo attached are not seen.\n"
		"\n"
		"The kernel decides who may attach: the same user or root, as for `ptrace`(2).",
	.status =
		"0: done, also when the processes were killed; 1: failed, or none of the processes could be "
		"recorded; 2: wrong usage; 3: a process, category, function, kernel event or symbol that was named "
		"matches nothing, or no trigger fired; 77: `--functions`, or the engine named, is not possible on this machine.",
	.examples = "kymo attach -p 1234 --duration 5s\n"
		    "kymo attach -p nginx --follow --categories 'net,-net.debug' -o out.json\n"
		    "kymo attach -p server --trigger symbol:handle_error --snapshots 3\n"
		    "kymo attach -p server --trigger interrupt --before 2s\n"
		    "kymo attach -p redis-server --functions --trigger interrupt",
	.related = "run list snapshot",
	.options = (const struct ky_option_set[]){{options, 0},
						  {ky_capture_function_options, 0},
						  {ky_capture_options, 0},
						  {elsewhere, 0},
						  {0}},
	.run = run,
};
