/* SPDX-License-Identifier: MIT */
/* capture_options.c: see capture_options.h. A value that is none is said with how it is written. */
#include "cli/capture_options.h"

#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_NS 10000000
/* Twenty nanoseconds each: a tenth of a CPU for one function. */
#define HOT_PER_SECOND 5000000

enum choice {
	CATEGORIES = 0x100,
	KERNEL,
	NO_KERNEL,
	SAMPLE,
	TRIGGER,
	BEFORE,
	AFTER,
	SNAPSHOTS,
	COOLDOWN,
	DURATION,
	MAX_SIZE,
	ROTATE,
	BUFFER,
	KERNEL_BUFFER,
	ENGINE,
	FUNCTIONS,
	MIN_SIZE,
	ENTRY_ONLY,
	HOT,
	FORMAT,
	PROGRESS,
	JSON,
	FOLLOW,
};

static const struct option longs[] = {
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, FORMAT},
	{"categories", required_argument, NULL, CATEGORIES},
	{"pid", required_argument, NULL, 'p'},
	{"follow", no_argument, NULL, FOLLOW},
	{"kernel", optional_argument, NULL, KERNEL},
	{"no-kernel", no_argument, NULL, NO_KERNEL},
	{"sample", required_argument, NULL, SAMPLE},
	{"trigger", required_argument, NULL, TRIGGER},
	{"before", required_argument, NULL, BEFORE},
	{"after", required_argument, NULL, AFTER},
	{"snapshots", required_argument, NULL, SNAPSHOTS},
	{"cooldown", required_argument, NULL, COOLDOWN},
	{"engine", required_argument, NULL, ENGINE},
	{"functions", optional_argument, NULL, FUNCTIONS},
	{"min-size", required_argument, NULL, MIN_SIZE},
	{"entry-only", no_argument, NULL, ENTRY_ONLY},
	{"hot", required_argument, NULL, HOT},
	{"duration", required_argument, NULL, DURATION},
	{"max-size", required_argument, NULL, MAX_SIZE},
	{"rotate", required_argument, NULL, ROTATE},
	{"buffer", required_argument, NULL, BUFFER},
	{"kernel-buffer", required_argument, NULL, KERNEL_BUFFER},
	{"progress", no_argument, NULL, PROGRESS},
	{"quiet", no_argument, NULL, 'q'},
	{"json", no_argument, NULL, JSON},
	{0},
};

bool ky_capture_parse_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "kKmMgGtT";
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno)
		return false;
	unsigned shift = 0;
	const char *const unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned)((unit - units) / 2 + 1);
		end++;
		if (strcmp(end, "iB") == 0)
			end += 2;
	}
	*bytes = (uint64_t)value << shift;
	return *end == '\0' && *bytes >> shift == value;
}

/* ---- values ---- */

static bool read_time(const char *name, uint64_t *ns)
{
	int64_t value;
	if (ky_cli_parse_duration(optarg, &value) && value >= 0) {
		*ns = (uint64_t)value;
		return true;
	}
	ky_cli_usage("--%s takes a time such as 10ms, 2s or 500us, not '%s'", name, optarg);
	return false;
}

static bool read_bytes(const char *name, uint64_t *bytes)
{
	if (ky_capture_parse_bytes(optarg, bytes) && *bytes)
		return true;
	ky_cli_usage("--%s takes a size such as 64k, 100M or 2G, not '%s'", name, optarg);
	return false;
}

static bool read_number(const char *name, uint32_t least, uint32_t most, uint32_t *number)
{
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(optarg, &end, 10);
	if (optarg[0] >= '0' && optarg[0] <= '9' && !*end && !errno && value >= least &&
	    value <= most) {
		*number = (uint32_t)value;
		return true;
	}
	ky_cli_usage("--%s takes a number from %u to %u, not '%s'", name, least, most, optarg);
	return false;
}

/* One option for two things, for no name means both: it may be given for each. */
static bool read_engine(struct ky_capture_command *command)
{
	enum ky_probe_engine *const probes = &command->capture.probe_engine;
	if (strcmp(optarg, "auto") == 0) {
		*probes = KY_PROBE_AUTO;
		command->functions.engine = KY_FUNCTRACE_AUTO;
		return true;
	}
	if (strcmp(optarg, "uprobe") == 0 || strcmp(optarg, "breakpoint") == 0) {
		*probes = optarg[0] == 'u' ? KY_PROBE_UPROBE : KY_PROBE_BREAKPOINT;
		return true;
	}
	for (int engine = KY_FUNCTRACE_PT; engine <= KY_FUNCTRACE_SAMPLE; engine++) {
		const char *const name = ky_functrace_engine_name((enum ky_functrace_engine)engine);
		if (strcmp(optarg, name) != 0)
			continue;
		command->functions.engine = (enum ky_functrace_engine)engine;
		command->functions_only = "engine";
		return true;
	}
	return ky_cli_usage("--engine takes uprobe or breakpoint (of symbol: and line:), pt, nops, "
			    "patch or sample (of --functions), or auto, not '%s'",
			    optarg) == KY_EXIT_DONE;
}

/* Zero is a number here, and a rate has more digits than other numbers. */
static bool read_hot(uint64_t *per_second)
{
	if (ky_capture_parse_bytes(optarg, per_second) &&
	    strspn(optarg, "0123456789") == strlen(optarg))
		return true;
	return ky_cli_usage(
		       "--hot takes a number of calls a second (0: no function is left alone), "
		       "not '%s'",
		       optarg) == KY_EXIT_DONE;
}

static bool read_functions(struct ky_capture_command *command, int choice)
{
	if (choice == FUNCTIONS) {
		command->capture.functions = &command->functions;
		command->functions.functions = optarg;
		return true;
	}
	if (choice == MIN_SIZE) {
		command->functions_only = "min-size";
		return read_bytes("min-size", &command->functions.min_bytes);
	}
	if (choice == HOT) {
		command->functions_only = "hot";
		return read_hot(&command->functions.hot_per_second);
	}
	command->functions_only = "entry-only";
	command->functions.entry_only = true;
	return true;
}

/* One more place at the end of an array, or no more kymo. */
static void *grow(void *array, uint32_t count, size_t bytes)
{
	void *const grown = realloc(array, (count + 1) * bytes);
	if (grown)
		return grown;
	ky_cli_error("not enough memory");
	exit(KY_EXIT_FAILED);
}

static bool add_trigger(struct ky_capture_command *command)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	uint32_t *const count = &command->capture.triggers_count;
	command->triggers = grow(command->triggers, *count, sizeof(*command->triggers));
	if (ky_trigger_parse(&command->triggers[*count], optarg, message) == 0) {
		++*count;
		return true;
	}
	ky_cli_usage("%s", message);
	return false;
}

void ky_capture_options_kernel(struct ky_capture_command *command, const char *list)
{
	uint32_t *const count = &command->capture.kernel_count;
	while (list && *list) {
		const size_t bytes = strcspn(list, ",");
		if (bytes) {
			command->kernel = grow(command->kernel, *count, sizeof(*command->kernel));
			command->kernel[*count] = strndup(list, bytes);
			*count += command->kernel[*count] != NULL;
		}
		list += bytes + (list[bytes] == ',');
	}
}

static void add_target(struct ky_capture_command *command)
{
	command->targets =
		grow(command->targets, command->targets_count, sizeof(*command->targets));
	command->targets[command->targets_count++] = optarg;
}

/* ---- options ---- */

static bool read_when(struct ky_capture_options *o, int choice)
{
	switch (choice) {
	case BEFORE:
		return read_time("before", &o->before_ns);
	case AFTER:
		return read_time("after", &o->after_ns);
	case SNAPSHOTS:
		return read_number("snapshots", 1, 1000000, &o->snapshots_max);
	case COOLDOWN:
		return read_time("cooldown", &o->cooldown_ns);
	case DURATION:
		return read_time("duration", &o->duration_ns);
	case MAX_SIZE:
		return read_bytes("max-size", &o->max_bytes);
	case BUFFER:
		return read_bytes("buffer", &o->ring_bytes);
	case KERNEL_BUFFER:
		return read_bytes("kernel-buffer", &o->buffer_bytes);
	case SAMPLE:
		return read_number("sample", 1, 100000, &o->samples_per_second);
	default:
		return true;
	}
}

static bool read_one(struct ky_capture_command *command, int choice)
{
	switch (choice) {
	case 'o':
		command->output = optarg;
		return true;
	case 'p':
		add_target(command);
		return true;
	case 'q':
		command->quiet = true;
		return true;
	case FORMAT:
		command->format = optarg;
		return true;
	case CATEGORIES:
		command->capture.categories = optarg;
		return true;
	case KERNEL:
		ky_capture_options_kernel(command, optarg ? optarg : "sched");
		return true;
	case NO_KERNEL:
		command->no_kernel = true;
		return true;
	case TRIGGER:
		return add_trigger(command);
	case ENGINE:
		return read_engine(command);
	case FUNCTIONS:
	case MIN_SIZE:
	case ENTRY_ONLY:
	case HOT:
		return read_functions(command, choice);
	case ROTATE:
		command->rotate = true;
		return read_number("rotate", 0, 1000000, &command->capture.files_max);
	case PROGRESS:
		command->progress = true;
		return true;
	case JSON:
		command->json = true;
		return true;
	case FOLLOW:
		command->follow = true;
		return true;
	default:
		return read_when(&command->capture, choice);
	}
}

static bool check_functions(const struct ky_capture_command *command)
{
	char message[KY_FUNCTRACE_MESSAGE_BYTES] = "";
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

/* What only makes sense with something else. */
static bool check(const struct ky_capture_command *command)
{
	const struct ky_capture_options *const o = &command->capture;
	if (!o->triggers_count &&
	    (o->snapshots_max || o->cooldown_ns || o->after_ns || o->before_ns != BEFORE_NS))
		ky_cli_usage("--before, --after, --snapshots and --cooldown are for snapshots: say "
			     "with --trigger when to take one");
	else if (command->no_kernel && o->kernel_count)
		ky_cli_usage("--kernel and --no-kernel: one of them");
	else if (command->functions_only && !o->functions)
		ky_cli_usage("--%s%s is about calls of functions: say with --functions that they "
			     "are wanted",
			     command->functions_only,
			     strcmp(command->functions_only, "engine") == 0
				     ? " pt, nops, patch, sample"
				     : "");
	else if (command->rotate && !o->max_bytes)
		ky_cli_usage("--rotate begins the next file when one is full: say with --max-size "
			     "when that is");
	else
		return true;
	return false;
}

bool ky_capture_options_read(struct ky_capture_command *command, int argc, char **argv,
			     bool in_order)
{
	*command = (struct ky_capture_command){
		.capture = {.before_ns = BEFORE_NS, .drums = true, .fd = -1},
		.functions = {.hot_per_second = HOT_PER_SECOND}};
	for (int choice;
	     (choice = ky_cli_option(argc, argv, in_order ? "+o:p:q" : "o:p:q", longs)) != -1;) {
		if (!read_one(command, choice))
			return false;
	}
	if (!check(command) || !check_functions(command))
		return false;
	command->capture.triggers = command->triggers;
	command->capture.kernel = (const char *const *)command->kernel;
	return true;
}

void ky_capture_options_free(struct ky_capture_command *command)
{
	for (uint32_t i = 0; i < command->capture.triggers_count; i++)
		ky_trigger_free(&command->triggers[i]);
	for (uint32_t i = 0; i < command->capture.kernel_count; i++)
		free(command->kernel[i]);
	free(command->triggers);
	free(command->kernel);
	free((void *)command->targets);
}
