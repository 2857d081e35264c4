/* SPDX-License-Identifier: MIT */
/* capture_options.c: the options of run, attach and record; see capture_verb.h. */
#include "cli/capture_verb.h"

#include "base/array.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_NS 10000000
#define STACKS_PER_SECOND 1000
/* At twenty nanoseconds each: a tenth of a CPU for one function. */
#define OVERHEAD_MAX 10000u
#define HOT_PER_SECOND 5000000

/* As enum ky_probe_engine has them. */
static const struct ky_choice probes[] = {
	{"auto", "choose what this machine allows (default)", NULL},
	{"uprobe", "needs root", NULL},
	{"breakpoint", "your own processes, at most four places", NULL},
	{0},
};

static const struct ky_choice engines[] = {
	{"auto", "choose what this machine allows (default)", NULL},
	{"pt", "Intel Processor Trace",
	 "Needs a CPU that has it and a kernel that offers it; the program is not touched."},
	{"nops", "programs compiled with patchable entries",
	 "`-fpatchable-function-entry`, clang's XRay, `-finstrument-functions`; only these functions "
	 "are traced."},
	{"patch", "patch the running program (x86-64)",
	 "The first instructions of each function become a jump while the program runs and are restored at "
	 "the end. Needs the right to trace the process with `ptrace`(2), and stops its threads for some "
	 "milliseconds each time."},
	{"sample", "call stacks, which miss short calls",
	 "1000 stacks a second, or as many as `--sample` says, joined to spans."},
	{0},
};

static int take_engine(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	char list[256];
	command->functions_only = "engine";
	if (strcmp(value, "auto") == 0) {
		command->functions.engine = KY_FUNCTRACE_AUTO;
		return 0;
	}
	if (strcmp(value, "uprobe") == 0 || strcmp(value, "breakpoint") == 0)
		return ky_cli_usage("--engine %s is not an engine for functions: use --probe %s",
				    value, value);
	for (int engine = KY_FUNCTRACE_PT; engine <= KY_FUNCTRACE_SAMPLE; engine++) {
		if (strcmp(value, ky_functrace_engine_name((enum ky_functrace_engine)engine)) != 0)
			continue;
		command->functions.engine = (enum ky_functrace_engine)engine;
		return 0;
	}
	return ky_cli_usage("--engine %s is not known: use %s", value,
			    ky_options_list(engines, list, sizeof(list)));
}

/* Read a rate: unlike other numbers it may be 0 and has no unit. */
static int take_hot(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	command->functions_only = "hot";
	if (ky_options_parse_size(value, &command->functions.hot_per_second) &&
	    strspn(value, "0123456789") == strlen(value))
		return 0;
	return ky_cli_usage(
		"--hot %s is not a number of calls a second: use 0 to trace every function "
		"however hot",
		value);
}

/* Read a share of each thread's time: 5%, or 5; 0: no limit. */
static int take_overhead(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	char *end;
	const unsigned long percent = strtoul(value, &end, 10);
	command->functions_only = "overhead";
	command->functions.overhead_percent = (uint32_t)percent;
	command->overhead_given = true;
	if (end != value && value[0] >= '0' && value[0] <= '9' && percent <= OVERHEAD_MAX &&
	    (!*end || strcmp(end, "%") == 0))
		return 0;
	return ky_cli_usage("--overhead %s is not a share of the program's time: use 5%%, or 0 for "
			    "no limit",
			    value);
}

static int take_functions(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	command->capture.functions = &command->functions;
	command->functions.functions = value;
	return 0;
}

static int take_min_size(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	command->functions_only = "min-size";
	if (ky_options_parse_size(value, &command->functions.min_bytes) &&
	    command->functions.min_bytes)
		return 0;
	return ky_cli_usage("--min-size %s is not a size: use 64 or 1k", value);
}

static int take_entry_only(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	(void)value;
	command->functions_only = "entry-only";
	command->functions.entry_only = true;
	return 0;
}

static _Noreturn void no_memory(void)
{
	ky_cli_error("not enough memory");
	exit(KY_EXIT_FAILED);
}

static int take_trigger(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	char message[KY_MESSAGE_BYTES] = "";
	uint32_t *const count = &command->capture.triggers_count;
	if (!KY_ARRAY_GROW(command->triggers, command->triggers_room, *count + 1))
		no_memory();
	if (ky_trigger_parse(&command->triggers[*count], value, message) != 0)
		return ky_cli_usage("%s", message);
	++*count;
	return 0;
}

void ky_capture_options_kernel(struct ky_capture_command *command, const char *list)
{
	uint32_t *const count = &command->capture.kernel_count;
	while (list && *list) {
		const size_t bytes = strcspn(list, ",");
		if (bytes) {
			char *const event = strndup(list, bytes);
			if (!event ||
			    !KY_ARRAY_ADD(command->kernel, *count, command->kernel_room, event))
				no_memory();
		}
		list += bytes + (list[bytes] == ',');
	}
}

static int take_kernel(void *context, const char *value)
{
	ky_capture_options_kernel(context, value ? value : "sched");
	return 0;
}

int ky_capture_options_target(void *context, const char *value)
{
	struct ky_capture_command *const command = context;
	if (!KY_ARRAY_ADD(command->targets, command->targets_count, command->targets_room, value))
		no_memory();
	return 0;
}

/* ---- options ---- */

#define TRIGGER(kind, head, argument, finder, parser, help) {head argument, help, NULL},
static const struct ky_choice triggers[] = {KY_TRIGGER_KINDS(TRIGGER){0}};

#define AT(type, field) KY_OPTION_AT(type, struct ky_capture_command, field)

const struct ky_option ky_capture_options[] = {
	{.help = "what is recorded"},
	{"categories", AT(TEXT, capture.categories), .letter = 'c', .argument = "LIST",
	 .help = "categories of trace points: globs separated by commas, '-' before one excludes it "
		 "(default: all)",
	 .more = "Categories that triggers look at are switched on, too."},
	{"kernel", AT(CALL, kernel), .take = take_kernel, .argument = "[EVENTS]",
	 .help = "kernel events, a list: sched (default), syscalls, print, SYSTEM:EVENT, SYSTEM, or "
		 "globs of these",
	 .more = "`sched` is switches, wake-ups, new tasks and exits; `syscalls` is all system calls; "
		 "`print` is what programs write to trace_marker. run and attach record the kernel events "
		 "of the recorded processes only."},
	{"no-kernel", AT(FLAG, no_kernel),
	 .help = "record no kernel events, which record does by default"},
	{"sample", AT(NUMBER, capture.samples_per_second), .letter = 'F', .argument = "HZ",
	 .least = 1, .most = 100000, .help = "record HZ call stacks a second",
	 .more = "Stacks include user and kernel code where permitted."},
	{"stacks", AT(FLAG, stacks), .letter = 'g',
	 .help = "record 1000 call stacks a second, or as many as --sample says"},
	{"buffer", AT(SIZE, capture.ring_bytes), .argument = "SIZE",
	 .help = "minimum ring size per new thread (default 16M)",
	 .more = "`KYMO_BUFFER` sets the default. Sizes are numbers with k, M or G behind them."},
	{"stall", AT(DURATION, capture.stall_ns), .argument = "TIME",
	 .help = "lose no event: a thread waits for kymo, at most TIME, when its ring is full (default 0)",
	 .more = "Rings grow first, as far as their memory goes. Without it a ring that is full is overwritten, and "
		 "kymo reports what was lost. Events in signal handlers that interrupted an event do not wait, and "
		 "captures with triggers do not use it."},
	{"kernel-buffer", AT(SIZE, capture.buffer_bytes), .argument = "SIZE",
	 .help = "size of the kernel's ring per CPU (default 4M)"},
	{.help = "when: everything, or with a trigger only what led up to it"},
	{"trigger", AT(CALL, triggers), .take = take_trigger, .argument = "WHAT",
	 .choices = triggers, .listed = true,
	 .help = "take a snapshot when this happens; may be given several times",
	 .more = "Any thread of any of the processes can fire a trigger. `CAT` and `NAME` are globs. "
		 "`api` reaches back to kymo_mark_start() if the program called it; `symbol:` records the "
		 "function's first two arguments."},
	{"before", AT(DURATION, capture.before_ns), .argument = "TIME",
	 .help = "how far back a snapshot reaches (default 10ms)",
	 .more = "Spans that were open before that begin with the snapshot. A snapshot cannot reach further back than the "
		 "rings do; see `--buffer`."},
	{"after", AT(DURATION, capture.after_ns), .argument = "TIME",
	 .help = "how far a snapshot reaches beyond its trigger (default 0)",
	 .more = "Each snapshot holds only what an earlier one did not."},
	{"snapshots", AT(NUMBER, capture.snapshots_max), .argument = "N", .least = 1,
	 .most = 1000000, .help = "end after N snapshots"},
	{"cooldown", AT(DURATION, capture.cooldown_ns), .argument = "TIME",
	 .help = "minimum time between two snapshots"},
	{"probe", AT(CHOICE, capture.probe_engine), .argument = "NAME", .choices = probes,
	 .listed = true, .help = "how the triggers symbol: and line: are observed",
	 .more = "One line names what was chosen and why. With `--functions` only breakpoints are used: a "
		 "uprobe would crash a program whose functions are patched."},
	{"duration", AT(DURATION, capture.duration_ns), .letter = 'd', .argument = "TIME",
	 .help = "end after this time"},
	{.help = "where to"},
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "the file: .kymo, .json, .pftrace or .fxt, also with .gz or .zst; '-' is standard "
		 "output, as .kymo (default trace.kymo; an existing one becomes trace.kymo.old)",
	 .more = "`${pid}` in the name is kymo's process, `${rotation}` the number of the file. Formats other "
		 "than .kymo are made at the end from FILE.capture.kymo, which remains when kymo is killed "
		 "and can be read like any trace. The file appears when there is something in it: a program "
		 "that cannot be started and a trigger that never fires leave an older file of that name "
		 "alone."},
	{"format", AT(TEXT, format), .argument = "NAME", .choices_of = ky_output_formats,
	 .help = "the format, whatever the file's name: kymo, json, pftrace or fxt"},
	{"max-size", AT(SIZE, capture.max_bytes), .argument = "SIZE",
	 .help = "end when the file is this large; with --rotate, start the next file",
	 .more = "Of .kymo files; others are made at the end, of any size. Names of sampled functions come on top."},
	{"rotate", AT(NUMBER, files_max), .argument = "N", .most = 1000000,
	 .help = "start a new file every --max-size and keep the last N (0: all); FILE may contain "
		 "${rotation}",
	 .more = "Each file can be read on its own."},
	{"progress", AT(FLAG, progress),
	 .help = "show a progress line even while the program of run uses the terminal"},
	{"quiet", AT(FLAG, quiet), .letter = 'q', .help = "print no summary and no progress line"},
	{"json", AT(FLAG, json), .help = "print the summary as JSON",
	 .more = "On standard output; for run on standard error, because standard output is the program's. "
		 "`status` is the program's exit status."},
	{0},
};

const struct ky_option ky_capture_function_options[] = {
	{.help = "function calls, of unmodified programs"},
	{"functions", AT(CALL, functions), .take = take_functions, .argument = "[LIST]",
	 .help = "every call of every function, or of those in the list: globs, module:GLOB (program or "
		 "library), file:GLOB (source file), '-' before one excludes it",
	 .more = "Each call is a span with the function's name, its file and line where debug information "
		 "has them, and its module as the category. The program need not be rebuilt or restarted. The "
		 "last entry of the list that matches decides; a list that starts with an inclusion selects "
		 "only what it names. Time off the CPU appears as spans \"off CPU\" inside the functions. "
		 "Children that the program forks are traced from their first call to their last; a program "
		 "that it executes is traced from a few hundredths of a second after its start: to see all of "
		 "it, start that one itself."},
	{"engine", AT(CALL, functions), .take = take_engine, .argument = "NAME", .choices = engines,
	 .listed = true, .help = "how function calls are observed",
	 .more = "One line names the engine and why no other was chosen."},
	{"min-size", AT(CALL, functions), .take = take_min_size, .argument = "SIZE",
	 .help = "only functions of at least this many bytes of code"},
	{"entry-only", AT(CALL, functions), .take = take_entry_only,
	 .help = "record when functions are called, not how long they take: half the cost",
	 .more = "Instants instead of spans. Nothing is put on the stack then, which suits programs with "
		 "coroutines or unwinders of their own."},
	{"hot", AT(CALL, functions), .take = take_hot, .argument = "N",
	 .help = "stop tracing a function that is called more than N times a second, and only count it "
		 "(default 5000000; 0: never)"},
	{"overhead", AT(CALL, functions), .take = take_overhead, .argument = "PERCENT",
	 .help = "leave out functions that are called most, so that tracing costs each thread about this part of its "
		 "own CPU time at most (default: 20% for attach, none for run; 0: no limit)",
	 .more = "What a call costs is measured on this machine. Functions come back when there is room, and are tried "
		 "again now and then. The summary says what was left out; counters in the trace say when, and how many "
		 "calls a second each had. Engine patch and nops."},
	{0},
};

static bool check_functions(const struct ky_capture_command *command)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_selection *selection = NULL;
	if (!command->capture.functions)
		return true;
	if (ky_selection_parse(&selection, command->functions.functions,
			       command->functions.min_bytes, message) == 0) {
		ky_selection_free(&selection);
		return true;
	}
	ky_cli_usage("%s", message);
	return false;
}

/* Report options that need another one. */
static bool check(const struct ky_capture_command *command)
{
	const struct ky_capture_options *const o = &command->capture;
	if (!o->triggers_count &&
	    (o->snapshots_max || o->cooldown_ns || o->after_ns || o->before_ns != BEFORE_NS))
		ky_cli_usage(
			"--before, --after, --snapshots and --cooldown need a --trigger, which says "
			"when to take a snapshot");
	else if (command->no_kernel && o->kernel_count)
		ky_cli_usage("--kernel and --no-kernel exclude each other");
	else if (command->functions_only && !o->functions)
		ky_cli_usage("--%s needs --functions", command->functions_only);
	else if (command->files_max != UINT32_MAX && !o->max_bytes)
		ky_cli_usage("--rotate needs --max-size, which says when a file is full");
	else
		return true;
	return false;
}

bool ky_capture_options_read(struct ky_capture_command *command, int argc, char **argv)
{
	*command = (struct ky_capture_command){
		.capture = {.before_ns = BEFORE_NS, .drums = true, .fd = -1},
		.functions = {.hot_per_second = HOT_PER_SECOND},
		.files_max = UINT32_MAX};
	if (ky_options_read(command, argc, argv) || !check(command) || !check_functions(command))
		return false;
	if (command->stacks && !command->capture.samples_per_second)
		command->capture.samples_per_second = STACKS_PER_SECOND;
	if (command->files_max != UINT32_MAX)
		command->capture.files_max = command->files_max;
	command->capture.triggers = command->triggers;
	command->capture.kernel = (const char *const *)command->kernel;
	return true;
}

bool ky_capture_options_find(struct ky_capture_command *command, struct ky_pids *pids)
{
	char message[KY_MESSAGE_BYTES] = "";
	for (uint32_t i = 0; i < command->targets_count; i++) {
		const int error = ky_processes_find(command->targets[i], pids, message);
		if (error)
			ky_cli_error("%s", message);
		command->targets_missing += error == -ESRCH;
	}
	command->capture.pids = pids->at;
	command->capture.pids_count = pids->count;
	return command->capture.pids_count != 0;
}

void ky_capture_options_free(struct ky_capture_command *command)
{
	for (uint32_t i = 0; i < command->capture.triggers_count; i++)
		ky_trigger_free(&command->triggers[i]);
	for (uint32_t i = 0; i < command->capture.kernel_count; i++)
		free(command->kernel[i]);
	KY_ARRAY_FREE(command->triggers, command->triggers_room);
	KY_ARRAY_FREE(command->kernel, command->kernel_room);
	KY_ARRAY_FREE(command->targets, command->targets_room);
}
