/* SPDX-License-Identifier: MIT */
/* cmd_record.c: kymo record: record the whole machine. */
#include "cli/capture_verb.h"
#include "cli/cli.h"

#include <getopt.h>

static int run(int argc, char **argv)
{
	struct ky_capture_command command;
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(&command, argc, argv)) {
		/* reported */
	} else if (optind < argc) {
		ky_cli_usage("'%s' is not an option; 'kymo run' starts a program", argv[optind]);
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

static const struct ky_option options[] = {
	{"all", KY_OPTION_AT(FLAG, struct ky_capture_command, all), .letter = 'a',
	 .help = "record all processes, which record does anyway"},
	{0},
};

#define REFUSAL                                                                                    \
	"record has no such option: it records the whole machine; 'kymo run' and 'kymo attach' "   \
	"record programs and their functions"

/* Options of run and attach that people try here: known for the message, and hidden from the help. */
static const struct ky_option elsewhere[] = {
	{"functions", .kind = KY_OPTION_CALL, .refusal = REFUSAL, .argument = "[LIST]"},
	{"pid", .kind = KY_OPTION_CALL, .refusal = REFUSAL, .letter = 'p', .argument = "PID"},
	{"follow", .kind = KY_OPTION_CALL, .refusal = REFUSAL},
	{"engine", .kind = KY_OPTION_CALL, .refusal = REFUSAL, .argument = "NAME"},
	{"hot", .kind = KY_OPTION_CALL, .refusal = REFUSAL, .argument = "N"},
	{"min-size", .kind = KY_OPTION_CALL, .refusal = REFUSAL, .argument = "SIZE"},
	{"entry-only", .kind = KY_OPTION_CALL, .refusal = REFUSAL},
	{0},
};

const struct ky_verb ky_verb_record = {
	.name = "record",
	.summary = "record the whole machine",
	.usage = "[OPTIONS]",
	.about =
		"Record the trace points of all processes that you may look into, including those that start "
		"later, and the kernel's scheduling where that is allowed. Ends with Ctrl-C or after --duration. "
		"kymo reports what this machine forbids and how to allow it, and records the rest.",
	.details =
		"All sources share one timeline. Kernel events and stacks of all processes need root, or a right "
		"that root has granted; `kymo doctor` shows what is allowed. `--kernel` is `sched` by default and "
		"records the whole machine.",
	.status =
		"0: done; 1: failed; 2: wrong usage; 3: a category, kernel event or symbol that was named matches "
		"nothing, or no trigger fired.",
	.examples =
		"kymo record --duration 5s\n"
		"sudo kymo record --kernel=sched,syscalls,'irq:*' --sample 1000 -o out.pftrace\n"
		"kymo record --max-size 100M --rotate 10 -o 'night.${rotation}.kymo'\n"
		"kymo record --trigger signal:USR1 --before 2s",
	.related = "run attach doctor",
	.options =
		(const struct ky_option_set[]){
			{ky_capture_options, 0}, {options, 0}, {elsewhere, 0}, {0}},
	.run = run,
};
