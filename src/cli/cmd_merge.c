/* SPDX-License-Identifier: MIT */
/*
 * cmd_merge.c: kymo merge: write several traces on the timeline of the first. The offsets of the other clocks come from
 * the user, from clock snapshots, or from messages between the traces, in this order; kymo reports which, and the
 * uncertainty that remains.
 */
#include "cli/cli.h"
#include "cli/info.h"
#include "model/intake.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

/* ---- alignment ---- */

static bool align(const struct ky_merge_how *how, struct ky_merge_input *first,
		  struct ky_merge_input *other)
{
	const bool clocks = !how->by || strcmp(how->by, "clocks") == 0;
	const bool flows = !how->by || strcmp(how->by, "flows") == 0;
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
	if (!how->load.mute)
		ky_cli_error("%s and %s have %s in common; say how far they are apart with 'kymo "
			     "merge --offset %s=TIME'",
			     first->path, other->path,
			     clocks && flows ? "no clocks and no flows"
			     : clocks        ? "no clocks"
					     : "no flows",
			     other->path);
	return false;
}

/* Number the machines: a trace of the same boot as an earlier one shares its number. */
static void number_machines(struct ky_merge_input *inputs, uint32_t count)
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

/* ---- messages ---- */

/* Describe the uncertainty where there is no number for it. */
static const char *unknown_text(enum ky_align_by by)
{
	if (by == KY_ALIGN_GIVEN)
		return "; how exact that is, is not known";
	if (by == KY_ALIGN_FLOWS)
		return "; uncertain by how long the fastest message took, for none went both ways";
	return "; uncertain by what the times of day differ";
}

void ky_merge_report(const struct ky_merge_input *first, const struct ky_merge_input *other)
{
	const struct ky_alignment *a = &other->alignment;
	char offset[KY_QUANTITY_BYTES], uncertain[KY_QUANTITY_BYTES];
	const int64_t size = a->offset_ns == INT64_MIN ? INT64_MAX
			     : a->offset_ns < 0        ? -a->offset_ns
						       : a->offset_ns;
	fprintf(stderr, "%s: %s%s against %s, by %s", ky_cli_path(other->path),
		a->offset_ns < 0 ? "-" : "+", ky_quantity_duration(offset, size),
		ky_cli_path(first->path), ky_align_name(a->by));
	if (a->uncertain_ns < 0)
		fputs(unknown_text(a->by), stderr);
	else
		fprintf(stderr, ", uncertain by %s",
			ky_quantity_duration(uncertain, a->uncertain_ns));
	if (a->by == KY_ALIGN_FLOWS)
		fprintf(stderr, " (%u messages there, %u back%s)", a->forth, a->back,
			a->contradicts ? "; they contradict each other" : "");
	fputc('\n', stderr);
}

/* ---- the merge ---- */

static int finish_progress(void *context, uint64_t done, uint64_t all)
{
	const struct ky_cli_load *const load = context;
	return load->progress ? load->progress(load->context, "building", done, all)
			      : ky_cli_progress("building", done, all);
}

static int put_all(struct ky_trace *merged, struct ky_merge_input *inputs, uint32_t count,
		   struct ky_export_left *left)
{
	bool kernel_taken = false;
	int error = 0;
	for (uint32_t i = 0; i < count && !error; i++) {
		const bool has_kernel = inputs[i].trace->sched.rows.count ||
					inputs[i].trace->thread_states.rows.count ||
					inputs[i].trace->raw_events.rows.count;
		const bool kernel = has_kernel && !kernel_taken && !inputs[i].machine;
		kernel_taken |= kernel;
		left->sched += kernel ? 0 : inputs[i].trace->sched.rows.count;
		left->raw_events += kernel ? 0 : inputs[i].trace->raw_events.rows.count;
		error = ky_merge_add(merged, inputs[i].trace, inputs[i].alignment.offset_ns,
				     inputs[i].machine, kernel);
		ky_trace_close(&inputs[i].trace);
	}
	return error;
}

int ky_merge_put(struct ky_trace **merged, struct ky_merge_input *inputs, uint32_t count,
		 const struct ky_merge_how *how)
{
	struct ky_cli_load load = how->load;
	struct ky_export_left left = {0};
	char text[KY_MESSAGE_BYTES];
	int error = ky_trace_open(merged);
	if (!error) {
		(*merged)->clock = inputs[0].trace->clock;
		(*merged)->format = inputs[0].trace->format;
		error = put_all(*merged, inputs, count, &left);
	}
	if ((left.sched || left.raw_events) && !load.quiet)
		ky_cli_error("left out: %s: those of one host only fit",
			     ky_export_left_text(&left, text, sizeof(text)));
	if (how->left)
		*how->left = left;
	if (!error)
		error = ky_trace_finish(*merged, finish_progress, &load);
	ky_cli_progress_end();
	if (error && error != -EINTR && error != -ECANCELED && !load.mute)
		ky_cli_error("cannot merge: %s", strerror(-error));
	if (error)
		ky_trace_close(merged);
	return error;
}

int ky_merge_load(struct ky_merge_input *inputs, uint32_t count, const struct ky_merge_how *how)
{
	for (uint32_t i = 0; i < count; i++) {
		inputs[i].trace = ky_cli_load_with(inputs[i].path, &how->load);
		if (!inputs[i].trace)
			return KY_EXIT_FAILED;
	}
	for (uint32_t i = 1; i < count; i++)
		if (!align(how, &inputs[0], &inputs[i]))
			return KY_EXIT_FAILED;
	if (inputs[0].given)
		inputs[0].alignment.offset_ns = inputs[0].offset_ns;
	number_machines(inputs, count);
	return KY_EXIT_DONE;
}

/* ---- the verb ---- */

#define INPUTS_MAX 256

struct options {
	const char *output, *format, *input_format, *by;
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
	if (time && ky_quantity_lacks_unit(time)) {
		ky_options_no_unit("offset", text);
		return false;
	}
	if (!time || !ky_quantity_parse_duration(time, &ns)) {
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
	ky_info_json_faults(json, input->trace);
	ky_json_out_end(json, '}');
}

/* The JSON, begun while the inputs exist: merging frees them. */
struct merge_json {
	struct ky_json_out out; /* its file is NULL: there is none */
	char *text;
	size_t bytes;
};

static bool begin_json(struct merge_json *json, const struct options *o,
		       const struct ky_merge_input *inputs, uint32_t count)
{
	*json = (struct merge_json){0};
	if (!o->json)
		return true;
	json->out.file = open_memstream(&json->text, &json->bytes);
	if (!json->out.file) {
		ky_cli_error("not enough memory");
		return false;
	}
	ky_json_out_begin(&json->out, NULL, '{');
	ky_json_out_text(&json->out, "output", o->output);
	ky_json_out_begin(&json->out, "inputs", '[');
	for (uint32_t i = 0; i < count; i++)
		print_input(&json->out, &inputs[i], i == 0);
	ky_json_out_end(&json->out, ']');
	return true;
}

/* Print the JSON, unless left is NULL, and free it. */
static void end_json(struct merge_json *json, const struct ky_export_left *left)
{
	if (!json->out.file)
		return;
	if (left) {
		ky_output_json_left(&json->out, left);
		ky_json_out_end(&json->out, '}');
	}
	fclose(json->out.file);
	if (left && json->text)
		fputs(json->text, stdout);
	free(json->text);
}

/* ---- the merge ---- */

static int merge(const struct options *o, struct ky_merge_input *inputs, uint32_t count)
{
	struct ky_export_left left, other_hosts = {0};
	struct ky_trace *merged = NULL;
	struct merge_json json;
	const struct ky_merge_how how = {.by = o->by,
					 .load = {.format = o->input_format, .quiet = o->quiet},
					 .left = &other_hosts};
	int code = ky_merge_load(inputs, count, &how);
	if (code != KY_EXIT_DONE)
		return code;
	for (uint32_t i = 1; i < count && !o->quiet && !o->json; i++)
		ky_merge_report(&inputs[0], &inputs[i]);
	if (!begin_json(&json, o, inputs, count))
		return KY_EXIT_FAILED;
	const struct ky_output_target output = {o->output, o->format, false, o->quiet || o->json};
	const int error = ky_merge_put(&merged, inputs, count, &how);
	code = error ? KY_EXIT_FAILED : ky_output_write(&output, merged, NULL, &left);
	if (code == KY_EXIT_DONE) {
		left.sched += other_hosts.sched;
		left.raw_events += other_hosts.raw_events;
	}
	end_json(&json, code == KY_EXIT_DONE ? &left : NULL);
	ky_trace_close(&merged);
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
	if (!inputs)
		return ky_cli_error("not enough memory");
	for (uint32_t i = 0; i < count; i++)
		inputs[i].path = argv[optind + (int)i];
	bool right = true;
	for (uint32_t i = 0; i < o.offsets_count && right; i++)
		right = take_offset(o.offsets[i], inputs, count);
	const int code = right ? merge(&o, inputs, count) : KY_EXIT_USAGE;
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
	KY_CLI_INPUT_FORMAT(struct options, input_format),
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
