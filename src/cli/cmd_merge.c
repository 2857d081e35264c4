/* SPDX-License-Identifier: MIT */
/*
 * cmd_merge.c: kymo merge: write several traces on the timeline of the first. The offsets of the other clocks come from
 * the user, from clock snapshots, or from messages between the traces, in this order; kymo reports which, and the
 * uncertainty that remains.
 */
#include "cli/cli.h"
#include "cli/merge_inputs.h"
#include "cli/output.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INPUTS_MAX 256

struct options {
	const char *output, *format, *by;
	bool json, quiet;
	const char *offsets[INPUTS_MAX];
	uint32_t offsets_count;
};

/* ---- options ---- */

static int take_offset_text(void *context, const char *value)
{
	struct options *const o = context;
	if (o->offsets_count == INPUTS_MAX)
		return ky_cli_usage("more than %d offsets", INPUTS_MAX);
	o->offsets[o->offsets_count++] = value;
	return 0;
}

static bool read_options(int argc, char **argv, struct options *o)
{
	if (ky_options_read(o, argc, argv))
		return false;
	if (!o->output)
		ky_cli_usage("the output is missing: use -o FILE");
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
	if (!time || !ky_quantity_parse_duration(time + (*time == '+'), &ns)) {
		ky_cli_usage("--offset %s is not FILE=TIME: use b.json=+1.5ms", text);
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
	ky_cli_usage("--offset %s does not name an input", text);
	return false;
}

/* ---- report ---- */

static void print_input(struct ky_json_out *json, const struct ky_merge_input *input, bool first)
{
	static const char *const names[] = {"none", "boot", "realtime", "flows", "offset"};
	const struct ky_alignment *const a = &input->alignment;
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "path", input->path);
	ky_json_out_text(json, "by", first ? "first" : names[a->by]);
	ky_json_out_int(json, "offset_ns", a->offset_ns);
	ky_json_out_uint(json, "machine", input->machine);
	if (a->uncertain_ns >= 0)
		ky_json_out_int(json, "uncertain_ns", a->uncertain_ns);
	else
		ky_json_out_null(json, "uncertain_ns");
	if (a->by == KY_ALIGN_FLOWS) {
		ky_json_out_uint(json, "messages_there", a->forth);
		ky_json_out_uint(json, "messages_back", a->back);
		ky_json_out_bool(json, "contradicts", a->contradicts);
	}
	ky_json_out_end(json, '}');
}

static void print_json(const struct options *o, const struct ky_merge_input *inputs, uint32_t count,
		       const struct ky_export_left *left)
{
	struct ky_json_out json = {.file = stdout};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "output", o->output);
	ky_json_out_begin(&json, "inputs", '[');
	for (uint32_t i = 0; i < count; i++)
		print_input(&json, &inputs[i], i == 0);
	ky_json_out_end(&json, ']');
	ky_output_json_left(&json, left);
	ky_json_out_end(&json, '}');
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
		print_json(o, inputs, count, &left);
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	int packing;
	if (!read_options(argc, argv, &o))
		return KY_EXIT_USAGE;
	if (!ky_exporter_find(o.output, o.format, &packing))
		return ky_output_unknown(o.output, o.format);
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

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_choice ways[] = {{.name = "clocks"}, {.name = "flows"}, {0}};

static const struct ky_option options[] = {
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "the output; its suffix selects the format"},
	{"format", AT(TEXT, format), .argument = "NAME", .choices_of = ky_output_formats,
	 .help = "the output's format, whatever its name: json, pftrace, fxt or kymo, also json.gz, ..."},
	{"offset", .kind = KY_OPTION_CALL, .take = take_offset_text, .argument = "FILE=TIME",
	 .help = "add this to the times of FILE: +1.5ms, -200us, 0; may be given for several files"},
	{"by", AT(TEXT, by), .argument = "clocks|flows", .choices = ways,
	 .help = "use only clock snapshots, or only flows"},
	{"json", AT(FLAG, json), .help = "report what was done as JSON on standard output"},
	{"quiet", AT(FLAG, quiet), .letter = 'q', .help = "print only errors"},
	{0},
};

const struct ky_verb ky_verb_merge = {
	.name = "merge",
	.summary = "combine traces, also of several hosts, on one timeline",
	.usage = "[OPTIONS] -o OUTPUT INPUT INPUT...",
	.about =
		"Write several traces as one, on the timeline of the first. kymo finds the offset of each other clock: "
		"by clock snapshots (same boot: the same clock; other hosts: the time of day), otherwise by flows that "
		"left one trace and arrived in the other. It reports which it used and the uncertainty that remains. "
		"Processes of other hosts are kept apart.",
	.details =
		"`--offset` comes first, then clock snapshots, then flows. A message arrives after it left: each one "
		"from the first trace to the other is a lower bound of the offset, each one back an upper bound. "
		"kymo takes the middle, and half of the distance is the uncertainty. A message counts as sent and "
		"received where its slices begin.\n"
		"\n"
		"Processes of the same boot with the same ids become one. Scheduling and kernel events are taken "
		"from one trace only.",
	.examples = "kymo merge -o all.pftrace client.kymo server.kymo\n"
		    "kymo merge -o all.json a.json b.json --offset b.json=+1.5ms",
	.related = "convert view",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.run = run,
};
