/* SPDX-License-Identifier: MIT */
/* cmd_attach.c: kymo attach: processes that run already. */
#include "cli/capture_verb.h"
#include "cli/cli.h"

#include <getopt.h>
#include <stdlib.h>

static const char help[] =
	"usage: kymo attach [options] -p PID|NAME [-p ...]\n"
	"\n"
	"Records processes that run already: switches their trace points on, records, and switches "
	"them\n"
	"off again when it leaves. Ends when they have ended, after --duration, or with Ctrl-C. "
	"The\n"
	"processes are neither stopped nor changed, but by --functions: then they are stopped for "
	"some\n"
	"milliseconds, and are at the end as they were.\n"
	"\n"
	"  -p, --pid PID|NAME     a process, by number or name; may be given several times\n"
	"      --follow           their children too\n"
	"\n" KY_CAPTURE_FUNCTIONS_HELP KY_CAPTURE_OPTIONS_HELP "\n"
	"examples:\n"
	"  kymo attach -p 1234 --duration 5s\n"
	"  kymo attach -p nginx --follow --categories 'net,-net.debug' -o out.json\n"
	"  kymo attach -p server --trigger 'symbol:handle_error' --snapshots 3\n"
	"  kymo attach -p redis-server --functions --trigger interrupt\n";

/* Each target may be several processes. What is not there is said, and the rest is recorded. */
static bool find_targets(struct ky_capture_command *command, pid_t **pids)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	for (uint32_t i = 0; i < command->targets_count; i++) {
		if (ky_processes_find(command->targets[i], pids, &command->capture.pids_count,
				      message))
			ky_cli_error("%s", message);
	}
	command->capture.pids = *pids;
	return command->capture.pids_count != 0;
}

static int run(int argc, char **argv)
{
	struct ky_capture_command command;
	pid_t *pids = NULL;
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(&command, argc, argv, false)) {
		/* said */
	} else if (optind < argc) {
		ky_cli_usage("there is '%s', which is no option; a process is -p PID|NAME, and "
			     "'kymo run' starts a program",
			     argv[optind]);
	} else if (!command.targets_count) {
		ky_cli_usage("which process? -p PID|NAME; 'kymo list' shows those with trace "
			     "points");
	} else if (!find_targets(&command, &pids)) {
		code = KY_EXIT_FAILED;
	} else {
		command.capture.scope = command.follow ? KY_PROCESSES_CHILDREN : KY_PROCESSES_GIVEN;
		code = ky_capture_verb(&command);
	}
	free(pids);
	ky_capture_options_free(&command);
	return code;
}

const struct ky_verb ky_verb_attach = {"attach", "processes that run already", help, run};
