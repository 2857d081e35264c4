/* SPDX-License-Identifier: MIT */
/*
 * cmd_merge.c: kymo merge: several traces on one timeline, that of the first. How far the others' clocks are apart is
 * taken from what the user says, from clock snapshots, or from messages that left one trace and arrived in the
 * other, in this order; it is said, with what remains uncertain.
 */
#include "cli/cli.h"
#include "cli/merge_inputs.h"
#include "cli/output.h"

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

static bool take_offset(const char *text, struct ky_merge_input *inputs, uint32_t count)
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

/* ---- report ---- */

static void say_json(const struct options *o, const struct ky_merge_input *inputs, uint32_t count,
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

static int merge(const struct options *o, struct ky_merge_input *inputs, uint32_t count)
{
	struct ky_export_left left;
	struct ky_trace *merged = NULL;
	const struct ky_merge_how how = {.by = o->by, .load = {.quiet = o->quiet}};
	int code = ky_merge_load(inputs, count, &how);
	if (code != KY_EXIT_DONE)
		return code;
	for (uint32_t i = 1; i < count && !o->quiet && !o->json; i++)
		ky_merge_say(&inputs[0], &inputs[i]);
	const int error = ky_merge_put(&merged, inputs, count, &how);
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
	struct ky_merge_input *inputs = calloc(count, sizeof(*inputs));
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
