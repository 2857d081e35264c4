/* SPDX-License-Identifier: MIT */
/*
 * cmd_merge.c: kymo merge: several traces on one timeline, that of the first. How far the others' clocks are apart is
 * taken from what the user says, from clock snapshots, or from messages that left one trace and arrived in the
 * other, in this order; it is said, with what remains uncertain.
 */
#include "cli.h"
#include "intake.h"
#include "merge.h"
#include "output.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INPUTS_MAX 256

static const char help[] =
	"usage: kymo merge [options] -o OUTPUT INPUT INPUT...\n"
	"\n"
	"Writes several traces as one, on the timeline of the first. For each other one it finds "
	"out how far\n"
	"its clock is apart: by clock snapshots (the same boot: the clocks are one; other hosts: "
	"the time of\n"
	"day), else by flows that left one trace and arrived in the other. It says which it used "
	"and how much\n"
	"remains uncertain. Processes of other hosts are kept apart.\n"
	"\n"
	"  -o, --output FILE        the output; its suffix is its format\n"
	"      --format NAME        its format, whatever its name: json, pftrace, fxt, kymo\n"
	"      --offset FILE=TIME   add this to the times of FILE: +1.5ms, -200us, 0. Can be given "
	"for several\n"
	"      --by clocks|flows    use these and nothing else\n"
	"      --json               say what was done as JSON on standard output\n"
	"  -q, --quiet              say nothing\n"
	"      --help               this text\n"
	"\n"
	"examples:\n"
	"  kymo merge -o all.pftrace client.kymo server.kymo\n"
	"  kymo merge -o all.json a.json b.json --offset b.json=+1.5ms\n";

struct input {
	const char *path;
	struct ky_trace *trace;
	struct ky_alignment alignment;
	uint32_t machine;
	bool given;
	int64_t offset_ns;
};

struct options {
	const char *output, *format, *by;
	bool json, quiet;
	const char *offsets[INPUTS_MAX];
	uint32_t offsets_count;
};

/* ---- options ---- */

static bool read_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
					      {"format", required_argument, NULL, 'f'},
					      {"offset", required_argument, NULL, 't'},
					      {"by", required_argument, NULL, 'b'},
					      {"json", no_argument, NULL, 'j'},
					      {"quiet", no_argument, NULL, 'q'},
					      {0}};
	for (int c; (c = ky_cli_option(argc, argv, "o:q", longs)) != -1;) {
		if (c == 'o')
			o->output = optarg;
		else if (c == 'f')
			o->format = optarg;
		else if (c == 'b')
			o->by = optarg;
		else if (c == 'j')
			o->json = true;
		else if (c == 'q')
			o->quiet = true;
		else if (c == 't' && o->offsets_count < INPUTS_MAX)
			o->offsets[o->offsets_count++] = optarg;
	}
	if (!o->output)
		ky_cli_usage("what to write? Name a file with -o");
	else if (argc - optind < 2)
		ky_cli_usage("which traces? It takes two or more");
	else if (argc - optind > INPUTS_MAX)
		ky_cli_usage("at most %d traces at once", INPUTS_MAX);
	else if (o->by && strcmp(o->by, "clocks") != 0 && strcmp(o->by, "flows") != 0)
		ky_cli_usage("--by %s: it is clocks or flows", o->by);
	else if (o->json && strcmp(o->output, "-") == 0)
		ky_cli_usage("--json and the output cannot both go to standard output");
	else
		return true;
	return false;
}

static bool take_offset(const char *text, struct input *inputs, uint32_t count)
{
	const char *equals = strrchr(text, '=');
	const char *time = equals ? equals + 1 : NULL;
	int64_t ns;
	if (!time || !ky_cli_parse_duration(time + (*time == '+'), &ns)) {
		ky_cli_usage("--offset %s: it is FILE=TIME, as in b.json=+1.5ms", text);
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		const size_t bytes = (size_t)(equals - text);
		if (strlen(inputs[i].path) == bytes && memcmp(inputs[i].path, text, bytes) == 0) {
			inputs[i].given = true;
			inputs[i].offset_ns = ns;
			return true;
		}
	}
	ky_cli_usage("--offset %s: there is no such input", text);
	return false;
}

/* ---- alignment ---- */

static bool align(const struct options *o, struct input *first, struct input *other)
{
	const bool clocks = !o->by || strcmp(o->by, "clocks") == 0;
	const bool flows = !o->by || strcmp(o->by, "flows") == 0;
	struct ky_alignment a = {.by = KY_ALIGN_NONE, .uncertain_ns = -1};
	if (other->given)
		a = (struct ky_alignment){
			.by = KY_ALIGN_GIVEN, .offset_ns = other->offset_ns, .uncertain_ns = -1};
	if (a.by == KY_ALIGN_NONE && clocks)
		a = ky_align_by_clocks(first->trace, other->trace);
	if (a.by == KY_ALIGN_NONE && flows)
		a = ky_align_by_flows(first->trace, other->trace);
	other->alignment = a;
	if (a.by != KY_ALIGN_NONE)
		return true;
	ky_cli_error(
		"%s and %s have %s in common; say how far they are apart with --offset %s=TIME",
		first->path, other->path,
		clocks && flows ? "no clocks and no flows"
		: clocks        ? "no clocks"
				: "no flows",
		other->path);
	return false;
}

/* A number for each machine: what is of the same boot as an earlier trace shares its. */
static void number_machines(struct input *inputs, uint32_t count)
{
	uint32_t machines = 1;
	for (uint32_t i = 1; i < count; i++) {
		inputs[i].machine = machines;
		for (uint32_t j = 0; j < i; j++)
			if (ky_align_by_clocks(inputs[j].trace, inputs[i].trace).by ==
			    KY_ALIGN_BOOT)
				inputs[i].machine = inputs[j].machine;
		machines += inputs[i].machine == machines;
	}
}

/* ---- report ---- */

/* What remains uncertain where no number can be given. */
static const char *unknown_text(enum ky_align_by by)
{
	if (by == KY_ALIGN_GIVEN)
		return "; how exact that is, is not known";
	if (by == KY_ALIGN_FLOWS)
		return "; uncertain by how long the fastest message took, for none went both ways";
	return "; uncertain by what the times of day differ";
}

static void say_text(const struct input *first, const struct input *other)
{
	const struct ky_alignment *a = &other->alignment;
	char offset[KY_CLI_NUMBER_BYTES], uncertain[KY_CLI_NUMBER_BYTES];
	const int64_t size = a->offset_ns == INT64_MIN ? INT64_MAX
			     : a->offset_ns < 0        ? -a->offset_ns
						       : a->offset_ns;
	fprintf(stderr, "%s: %s%s against %s, by %s", other->path, a->offset_ns < 0 ? "-" : "+",
		ky_cli_duration(offset, size), first->path, ky_align_name(a->by));
	if (a->uncertain_ns < 0)
		fputs(unknown_text(a->by), stderr);
	else
		fprintf(stderr, ", uncertain by %s", ky_cli_duration(uncertain, a->uncertain_ns));
	if (a->by == KY_ALIGN_FLOWS)
		fprintf(stderr, " (%u messages there, %u back%s)", a->forth, a->back,
			a->contradicts ? "; they contradict each other" : "");
	fputc('\n', stderr);
}

static void say_json(const struct options *o, const struct input *inputs, uint32_t count,
		     const struct ky_export_left *left)
{
	static const char *const names[] = {"none", "boot", "realtime", "flows", "offset"};
	printf("{\"output\":");
	ky_cli_json_string(stdout, o->output, strlen(o->output));
	printf(",\"inputs\":[");
	for (uint32_t i = 0; i < count; i++) {
		const struct ky_alignment *a = &inputs[i].alignment;
		printf("%s{\"path\":", i ? "," : "");
		ky_cli_json_string(stdout, inputs[i].path, strlen(inputs[i].path));
		printf(",\"by\":\"%s\",\"offset_ns\":%" PRId64 ",\"machine\":%" PRIu32,
		       i ? names[a->by] : "first", a->offset_ns, inputs[i].machine);
		if (a->uncertain_ns >= 0)
			printf(",\"uncertain_ns\":%" PRId64, a->uncertain_ns);
		else
			printf(",\"uncertain_ns\":null");
		if (a->by == KY_ALIGN_FLOWS)
			printf(",\"messages_there\":%u,\"messages_back\":%u,\"contradicts\":%s",
			       a->forth, a->back, a->contradicts ? "true" : "false");
		printf("}");
	}
	printf("],");
	ky_output_json_left(left);
	printf("}\n");
}

/* ---- the merge ---- */

static int finish_progress(void *context, uint64_t done, uint64_t all)
{
	(void)context;
	return ky_cli_progress("building", done, all);
}

/* Inputs are closed as they have been put in, so that not all are there twice. */
static int put_all(struct ky_trace **merged, struct input *inputs, uint32_t count)
{
	bool kernel_taken = false;
	uint64_t left_sched = 0;
	int error = ky_trace_open(merged);
	if (error)
		return error;
	(*merged)->clock = inputs[0].trace->clock;
	(*merged)->format = inputs[0].trace->format;
	for (uint32_t i = 0; i < count && !error; i++) {
		const bool has_kernel =
			inputs[i].trace->sched.rows.count || inputs[i].trace->raw_events.rows.count;
		const bool kernel = has_kernel && !kernel_taken && !inputs[i].machine;
		kernel_taken |= kernel;
		left_sched += kernel ? 0 : inputs[i].trace->sched.rows.count;
		error = ky_merge_add(*merged, inputs[i].trace, inputs[i].alignment.offset_ns,
				     inputs[i].machine, kernel);
		ky_trace_close(&inputs[i].trace);
	}
	if (left_sched)
		ky_cli_error("%" PRIu64
			     " scheduling slices are left out: those of one host only fit",
			     left_sched);
	return error ? error : ky_trace_finish(*merged, finish_progress, NULL);
}

static int load_all(const struct options *o, struct input *inputs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		inputs[i].trace = ky_cli_load(inputs[i].path, NULL, o->quiet);
		if (!inputs[i].trace)
			return KY_EXIT_FAILED;
	}
	for (uint32_t i = 1; i < count; i++)
		if (!align(o, &inputs[0], &inputs[i]))
			return KY_EXIT_FAILED;
	if (inputs[0].given)
		inputs[0].alignment.offset_ns = inputs[0].offset_ns;
	number_machines(inputs, count);
	return KY_EXIT_DONE;
}

static int merge(const struct options *o, struct input *inputs, uint32_t count)
{
	struct ky_export_left left;
	struct ky_trace *merged = NULL;
	int code = load_all(o, inputs, count);
	if (code != KY_EXIT_DONE)
		return code;
	for (uint32_t i = 1; i < count && !o->quiet && !o->json; i++)
		say_text(&inputs[0], &inputs[i]);
	const int error = put_all(&merged, inputs, count);
	ky_cli_progress_end();
	if (error && error != -EINTR)
		ky_cli_error("cannot merge: %s", strerror(-error));
	code = error ? KY_EXIT_FAILED
		     : ky_output_write(merged, NULL, o->output, o->format, o->quiet || o->json,
				       &left);
	ky_trace_close(&merged);
	if (code == KY_EXIT_DONE && o->json)
		say_json(o, inputs, count, &left);
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	int packing;
	if (!read_options(argc, argv, &o))
		return KY_EXIT_USAGE;
	if (!ky_exporter_find(o.output, o.format, &packing))
		return ky_cli_usage(
			"%s: which format? End it in .json, .pftrace, .fxt or .kymo, or "
			"say it with --format",
			o.output);
	const uint32_t count = (uint32_t)(argc - optind);
	struct input *inputs = calloc(count, sizeof(*inputs));
	int code = KY_EXIT_FAILED;
	if (!inputs) {
		ky_cli_error("not enough memory");
		return code;
	}
	for (uint32_t i = 0; i < count; i++)
		inputs[i].path = argv[optind + (int)i];
	bool right = true;
	for (uint32_t i = 0; i < o.offsets_count && right; i++)
		right = take_offset(o.offsets[i], inputs, count);
	code = right ? merge(&o, inputs, count) : KY_EXIT_USAGE;
	for (uint32_t i = 0; i < count; i++)
		ky_trace_close(&inputs[i].trace);
	free(inputs);
	return code;
}

const struct ky_verb ky_verb_merge = {"merge", "several traces or hosts on one timeline", help,
				      run};
