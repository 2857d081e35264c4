/* SPDX-License-Identifier: MIT */
/*
 * cmd_convert.c: kymo convert: read a trace of any format and write it in another.
 *
 *   .kymo ── ky_kymo_read(): events in order ──▶ spans balanced ──▶ the format's writer ──▶ ky_out ──▶ file
 *   other ── model ──▶ exporter ──▶ file
 */
#include "base/array.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "formats/export.h"
#include "formats/format.h"
#include "formats/kymo/kymo_file.h"
#include "sink/spans.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- event by event ---- */

#define PUSH_BYTES (256u << 10)
#define CLOCK_EVERY_NS UINT64_C(1000000000)

/* When threads ended. */
struct ends {
	struct ky_kymo_program_end *list; /* in the order of time */
	uint32_t count, room, next;
	struct ky_u64_map threads; /* tid: which of known */
	const struct ky_thread **known;
	uint32_t known_count, known_room;
	bool no_memory;
};

struct stream {
	struct ky_kymo_bundle *bundle;
	struct ky_kymo *file; /* the part of the file that has the events */
	const struct ky_kymo_info *info;
	const struct ky_format *format;
	void *writer;
	struct ky_out *out;
	struct ky_spans spans;
	struct ends ends;
	uint32_t clocks; /* clock readings that were passed on */
	uint64_t clock_ns;
};

static void on_thread(void *context, const struct ky_thread *thread)
{
	struct stream *stream = context;
	bool made;
	uint32_t *const index = stream->ends.count ? ky_u64_map_add(&stream->ends.threads,
								    (uint32_t)thread->tid, &made)
						   : NULL;
	if (index && made) {
		*index = stream->ends.known_count;
		if (!KY_ARRAY_ADD(stream->ends.known, stream->ends.known_count,
				  stream->ends.known_room, thread))
			stream->ends.no_memory = true;
	} else if (!index && stream->ends.count) {
		stream->ends.no_memory = true;
	}
	stream->format->thread(stream->writer, thread);
}

/* ---- the ends of threads: their spans end with them ---- */

KY_ORDER(by_time, struct ky_kymo_program_end, KY_COMPARE(a->time_ns, b->time_ns))

/* Take the ends of threads of a source: those that it has, or that the capture noted for it. */
static bool take_ends(struct ends *ends, const struct ky_kymo_info *info, uint32_t source)
{
	for (uint32_t i = 0; info && i < info->ends_count; i++)
		if (info->ends[i].tid && info->ends[i].source == source &&
		    !KY_ARRAY_ADD(ends->list, ends->count, ends->room, info->ends[i]))
			return false;
	return true;
}

static int find_ends(struct stream *stream)
{
	struct ky_kymo *const of_all = ky_kymo_bundle_of_all(stream->bundle);
	struct ends *const ends = &stream->ends;
	if (!take_ends(ends, stream->info, 0) ||
	    !take_ends(ends, of_all && of_all != stream->file ? ky_kymo_info(of_all) : NULL,
		       ky_kymo_source_number(stream->file)))
		return -ENOMEM;
	if (ends->count)
		qsort(ends->list, ends->count, sizeof(*ends->list), by_time);
	return 0;
}

static void write_ends(struct stream *stream, uint64_t until_ns)
{
	struct ends *const ends = &stream->ends;
	for (; ends->next < ends->count && ends->list[ends->next].time_ns < until_ns;
	     ends->next++) {
		const struct ky_kymo_program_end *const end = &ends->list[ends->next];
		const uint32_t *const index = ky_u64_map_find(&ends->threads, end->tid);
		if (index && *index < ends->known_count)
			ky_spans_end(&stream->spans, ends->known[*index], end->time_ns);
	}
}

static void free_ends(struct ends *ends)
{
	ky_u64_map_free(&ends->threads);
	KY_ARRAY_FREE(ends->list, ends->room);
	KY_ARRAY_FREE(ends->known, ends->known_room);
}

static void on_balanced(void *context, const struct ky_event *event)
{
	const struct stream *stream = context;
	stream->format->event(stream->writer, event);
}

/* Pass on clock readings, about one a second, in their place between the events. */
static void write_clocks(struct stream *stream, uint64_t until_ns)
{
	const struct ky_kymo_info *info = stream->info;
	for (; stream->clocks < info->samples_count; stream->clocks++) {
		const struct ky_tick_reading *sample = &info->samples[stream->clocks];
		if (sample->boottime_ns > until_ns)
			return;
		if (!stream->format->clock ||
		    sample->boottime_ns < stream->clock_ns + CLOCK_EVERY_NS)
			continue;
		stream->clock_ns = sample->boottime_ns;
		stream->format->clock(stream->writer, sample);
	}
}

static void on_event(void *context, const struct ky_event *event)
{
	struct stream *stream = context;
	write_clocks(stream, event->time_ns);
	write_ends(stream, event->time_ns);
	ky_spans_pass(&stream->spans, event);
	if (stream->out->used >= PUSH_BYTES)
		ky_out_push(stream->out);
}

/* Report progress before each chunk; this also notices a full disk. */
static int on_chunk(void *context, uint64_t done, uint64_t all)
{
	const struct stream *stream = context;
	return stream->out->error ? stream->out->error : ky_cli_progress("converting", done, all);
}

static int write_events(struct stream *stream)
{
	const struct ky_stream_sink sink = {
		.thread = on_thread, .event = on_event, .context = stream};
	struct ky_kymo_totals totals;
	stream->spans = (struct ky_spans){.emit = on_balanced, .context = stream};
	ky_kymo_on_progress(stream->file, on_chunk, stream);
	int error = find_ends(stream);
	if (!error)
		error = ky_kymo_read(stream->file, 0, UINT64_MAX, &sink, &totals);
	if (!error && stream->ends.no_memory)
		error = -ENOMEM;
	if (!error) {
		write_ends(stream, UINT64_MAX);
		write_clocks(stream, UINT64_MAX);
		for (uint32_t i = 0; i < stream->info->losses_count; i++)
			stream->format->loss(stream->writer, stream->info->losses[i].what.data,
					     stream->info->losses[i].count);
		stream->format->finish(stream->writer, stream->info->lost);
		error = stream->spans.error ? stream->spans.error : stream->out->error;
	}
	ky_spans_free(&stream->spans);
	free_ends(&stream->ends);
	return error;
}

static int write_file(void *context, const struct ky_exporter *exporter, struct ky_out *out)
{
	struct stream *stream = context;
	const struct ky_kymo_info *info = stream->info;
	const struct ky_trace_info head = {
		.pid = info->pid,
		.process = info->process,
		.command = info->command,
		.clock = info->samples_count ? info->samples[0] : (struct ky_tick_reading){0},
		.ticks_per_s = info->ticks_per_s,
	};
	stream->out = out;
	stream->format = exporter->format;
	stream->clock_ns = head.clock.boottime_ns;
	int error = stream->format->open(&stream->writer, out, &head);
	if (error)
		return error;
	error = write_events(stream);
	stream->format->close(stream->writer);
	return error;
}

/* Return the only part that has events if the file holds nothing else, or NULL. */
static struct ky_kymo *only_drum(const struct ky_kymo_bundle *bundle)
{
	struct ky_kymo *only = NULL;
	if (!ky_kymo_bundle_several(bundle))
		return ky_kymo_bundle_source(bundle, 0);
	for (uint32_t i = 0; i < ky_kymo_bundle_count(bundle); i++) {
		struct ky_kymo *source = ky_kymo_bundle_source(bundle, i);
		const struct ky_kymo_info *info = ky_kymo_info(source);
		uint64_t bytes;
		const bool is_drum = info->entries_count || info->processes_count;
		if (info->snapshots_count || info->remarks_count ||
		    ky_kymo_stream_kind(source, &bytes) || (is_drum && only))
			return NULL;
		if (is_drum)
			only = source;
	}
	return only;
}

/* Report whether this is a complete file of one process with no losses, as the recorder writes it. */
static bool is_ours(const struct ky_kymo_bundle *bundle, struct ky_kymo *source)
{
	const struct ky_kymo_info *info = source ? ky_kymo_info(source) : NULL;
	return info && ky_kymo_bundle_finished(bundle) && info->indexed && !info->damages &&
	       info->processes_count <= 1;
}

/* Return 0, -EINVAL when the file must be read in the other way, or -ENOMEM. */
static int open_input(struct stream *stream, const char *input)
{
	struct ky_kymo_error error;
	struct stat status;
	if (stat(input, &status) != 0 || !S_ISREG(status.st_mode))
		return -EINVAL;
	const int result = ky_kymo_bundle_open(&stream->bundle, input, &error);
	if (result)
		return result == -ENOMEM ? result : -EINVAL;
	stream->file = only_drum(stream->bundle);
	if (is_ours(stream->bundle, stream->file)) {
		stream->info = ky_kymo_info(stream->file);
		return 0;
	}
	ky_kymo_bundle_close(&stream->bundle);
	return -EINVAL;
}

/*
 * Convert a .kymo file event by event, in memory that does not grow with the trace, and return true, with an enum ky_exit in
 * *code. Its events are in the order of time, and the recorder's own writers take them: the output is what the session would
 * have written in that format. Return false, with nothing done, unless the input is a complete .kymo file of one process and
 * the output is another format: other inputs must be sorted first, in the model.
 */
static bool convert_stream(const char *input, const char *output, const char *format, int *code)
{
	char message[KY_MESSAGE_BYTES];
	struct stream stream = {0};
	int packing;
	const struct ky_exporter *exporter = ky_exporter_find(output, format, &packing);
	if (!exporter || exporter == &ky_exporter_kymo || !exporter->format->open)
		return false;
	int error = open_input(&stream, input);
	if (error == -EINVAL)
		return false;
	if (error)
		snprintf(message, sizeof(message), "%.200s: not enough memory", input);
	else
		error = ky_export_by(output, format, write_file, &stream, message);
	ky_cli_progress_end();
	if (error && error != -EINTR)
		ky_cli_error("%s", message);
	ky_kymo_bundle_close(&stream.bundle);
	*code = error ? KY_EXIT_FAILED : KY_EXIT_DONE;
	return true;
}

/* ---- the verb ---- */

struct options {
	const char *input, *output, *format, *input_format;
	enum ky_profile_source profile;
	bool quiet, json;
};

/* Return false after a message: wrong usage. */
static bool read_options(int argc, char **argv, struct options *o)
{
	if (ky_options_read(o, argc, argv))
		return false;
	if (optind < argc)
		o->input = argv[optind++];
	if (optind < argc && !o->output)
		o->output = argv[optind++];
	if (optind < argc)
		ky_cli_usage("'%s' is too much: convert takes one input and one output",
			     argv[optind]);
	else if (!o->input)
		ky_cli_usage("the trace is missing");
	else if (!o->output)
		ky_cli_usage("the output is missing: 'kymo convert %s OUTPUT'", o->input);
	else if (o->json && strcmp(o->output, "-") == 0)
		ky_cli_usage("--json and the output cannot both go to standard output");
	else
		return true;
	return false;
}

/* Convert through the model, which puts any input into order. */
static int convert_in_memory(const struct options *o, struct ky_export_left *left)
{
	const struct ky_export_selection all = {
		.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE, .profile = o->profile};
	struct ky_trace *trace = ky_cli_load(o->input, o->input_format, o->quiet);
	if (!trace)
		return KY_EXIT_FAILED;
	const struct ky_output_target output = {o->output, o->format, false, o->quiet || o->json};
	const int code = ky_output_write(&output, trace, &all, left);
	if (code == KY_EXIT_DONE && o->json) {
		struct ky_json_out json = {.file = stdout};
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_text(&json, "output", o->output);
		ky_output_json_left(&json, left);
		ky_info_json_faults(&json, trace);
		ky_json_out_end(&json, '}');
	}
	ky_trace_close(&trace);
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	struct ky_export_left left = {0};
	int packing;
	int code;
	if (!read_options(argc, argv, &o))
		return KY_EXIT_USAGE;
	if (!ky_exporter_find(o.output, o.format, &packing))
		return ky_output_unknown(o.output, o.format);
	/* A stream counts no losses and no problems. */
	if (o.input_format || o.json || !convert_stream(o.input, o.output, o.format, &code))
		code = convert_in_memory(&o, &left);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

/* By enum ky_profile_source. */
static const struct ky_choice profiles[] = {
	{.name = "any"}, {.name = "samples"}, {.name = "spans"}, {0}};

static const struct ky_option options[] = {
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "the output; its suffix selects the format"},
	{"format", AT(TEXT, format), .argument = "NAME", .choices_of = ky_output_formats,
	 .help = "the output's format, whatever its name: json, pftrace, fxt, kymo, collapsed, speedscope or pprof, also json.gz, ..."},
	KY_CLI_INPUT_FORMAT(struct options, input_format),
	{"profile", AT(CHOICE, profile), .argument = "WHAT", .choices = profiles,
	 .help = "what a flame graph shows: samples, or the time in spans (default: samples, if there are any)"},
	{"quiet", AT(FLAG, quiet), .letter = 'q',
	 .help = "do not report what the format cannot hold"},
	{"json", AT(FLAG, json), .help = "report it as JSON on standard output"},
	{0},
};

const struct ky_verb ky_verb_convert = {
	.name = "convert",
	.summary = "convert a trace to another format",
	.usage = "[OPTIONS] INPUT OUTPUT\n"
		 "[OPTIONS] INPUT -o OUTPUT",
	.about =
		"Read a trace of any format and write it as Chrome JSON (.json), Perfetto protobuf (.pftrace), Fuchsia "
		"trace (.fxt) or .kymo, or as a flame graph: collapsed stacks (.folded), speedscope (.speedscope.json) or "
		"pprof (.pb.gz); .gz or .zst behind it compresses. INPUT '-' is standard input, OUTPUT '-' is "
		"standard output. One line reports what the output's format cannot hold. The output appears complete "
		"or not at all; an existing file is replaced only then.",
	.details =
		"Times are kept to the nanosecond. A complete .kymo file of one process is converted event by event, "
		"in memory that does not grow with the trace, unless the output is .kymo, too. Any other input is "
		"sorted in memory first.",
	.examples =
		"kymo convert trace.json trace.pftrace\n"
		"kymo convert perf.data -o out.json.gz\n"
		"kymo convert trace.kymo out.folded && flamegraph.pl out.folded > out.svg\n"
		"kymo convert --profile spans trace.kymo out.pb.gz && go tool pprof -http : out.pb.gz\n"
		"ssh host kymo convert trace.kymo - --format fxt | kymo convert - here.pftrace",
	.related = "merge split repair",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.run = run,
};
