/* SPDX-License-Identifier: MIT */
/*
 * cmd_split.c: kymo split: write parts of a trace as complete files: a range of time, threads, processes, categories, or
 * the whole in pieces. Spans that reach over an edge are cut there, counters begin with their current value, and every
 * part has the names and metadata.
 */
#include "cli/cli.h"
#include "cli/info.h"
#include "core/glob.h"
#include "query/filter.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 100000

struct options {
	struct ky_cli_filter filter;
	const char *input, *output, *format, *input_format;
	bool json, quiet;
	uint64_t every_ns;    /* 0: not given */
	uint32_t parts_count; /* 0: not given */
};

struct selected {
	struct ky_export_selection selection;
	uint8_t *tracks, *threads, *categories;
};

/* ---- options ---- */

static bool read_options(int argc, char **argv, struct options *o)
{
	if (ky_options_read(o, argc, argv))
		return false;
	if (optind == argc)
		ky_cli_usage("the trace is missing");
	else if (optind + 1 < argc)
		ky_cli_usage("'%s' is too much: only one trace at a time", argv[optind + 1]);
	else if (o->every_ns && o->parts_count)
		ky_cli_usage("--every and --parts exclude each other");
	else if (ky_cli_filter_check(&o->filter) == 0)
		o->input = argv[optind];
	return o->input != NULL;
}

/* ---- what is selected ---- */

static bool matches(const char *glob, const char *name, int64_t id)
{
	char *end;
	const long long number = strtoll(glob, &end, 10);
	if (*glob && !*end && number == id)
		return true;
	return name && ky_glob_match(glob, strlen(glob), name, strlen(name));
}

static bool wants_process(const struct ky_trace *t, const char *glob, uint32_t process)
{
	if (!glob)
		return true;
	return process != KY_NONE &&
	       matches(glob, ky_text_of(t, t->processes.name[process]), t->processes.pid[process]);
}

static bool wants_thread(const struct ky_trace *t, const struct ky_cli_filter *f, uint32_t thread)
{
	if (f->thread &&
	    !matches(f->thread, ky_text_of(t, t->threads.name[thread]), t->threads.tid[thread]))
		return false;
	return wants_process(t, f->process, t->threads.process[thread]);
}

static bool wants_track(const struct ky_trace *t, const struct ky_cli_filter *f,
			const uint8_t *threads, uint32_t track)
{
	const uint32_t thread = ky_track_thread(t, track);
	if (thread != KY_NONE)
		return threads[thread];
	return !f->thread && wants_process(t, f->process, ky_track_process(t, track));
}

static bool select_tracks(struct selected *s, const struct ky_trace *t,
			  const struct ky_cli_filter *f)
{
	if (!f->thread && !f->process)
		return true;
	s->threads = calloc((size_t)t->threads.rows.count + 1, 1);
	s->tracks = calloc((size_t)t->tracks.rows.count + 1, 1);
	if (!s->threads || !s->tracks)
		return false;
	for (uint32_t i = 0; i < t->threads.rows.count; i++)
		s->threads[i] = wants_thread(t, f, i);
	for (uint32_t i = 0; i < t->tracks.rows.count; i++)
		s->tracks[i] = wants_track(t, f, s->threads, i);
	return true;
}

static bool select_categories(struct selected *s, const struct ky_trace *t, const char *globs)
{
	if (!globs)
		return true;
	uint8_t *known = calloc((size_t)t->strings.count + 1, 1);
	s->categories = calloc((size_t)t->strings.count + 1, 1);
	for (uint32_t i = 0; known && s->categories && i < t->slices.rows.count; i++) {
		const uint32_t category = t->slices.category[i];
		if (!known[category] && category)
			s->categories[category] =
				ky_glob_list_match(globs, ky_text_of(t, category));
		known[category] = 1;
	}
	const bool done = known && s->categories;
	free(known);
	return done;
}

/* ---- parts ---- */

static char *part_name(const struct options *o, const struct ky_trace *trace, uint32_t number,
		       bool several)
{
	char middle[16] = "part";
	const char *suffix = NULL;
	if (several)
		snprintf(middle, sizeof(middle), "%" PRIu32, number);
	if (o->output)
		return several ? ky_output_name(o->output, middle, NULL) : strdup(o->output);
	const char *input = strcmp(o->input, "-") == 0 ? "trace" : o->input;
	int packing;
	if (o->format)
		suffix = ky_output_suffix(o->format);
	else if (!ky_exporter_find(input, NULL, &packing))
		suffix = ky_output_suffix(trace->format);
	if (!suffix && !ky_exporter_find(input, NULL, &packing))
		suffix = ".pftrace";
	return ky_output_name(input, middle, suffix);
}

static int write_part(const struct options *o, const struct ky_trace *trace,
		      const struct selected *s, uint32_t number, bool several,
		      struct ky_json_out *json)
{
	struct ky_export_left left;
	char *name = part_name(o, trace, number, several);
	if (!name)
		return ky_cli_error("not enough memory");
	const struct ky_output_target output = {name, o->format, !o->output, o->quiet};
	const int code = ky_output_write(&output, trace, &s->selection, &left);
	if (code == KY_EXIT_DONE && o->json) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "path", name);
		ky_json_out_int(json, "from_ns",
				s->selection.from_ns == KY_TIME_NONE ? trace->begin_ns
								     : s->selection.from_ns);
		ky_json_out_int(json, "to_ns",
				s->selection.to_ns == KY_TIME_NONE ? trace->end_ns
								   : s->selection.to_ns);
		ky_output_json_left(json, &left);
		ky_json_out_end(json, '}');
	} else if (code == KY_EXIT_DONE && !o->quiet && several && strcmp(name, "-") != 0) {
		printf("%s\n", ky_cli_path(name));
	}
	free(name);
	return code;
}

static int64_t edge(int64_t begin, int64_t end, uint64_t every, uint32_t parts, uint32_t i)
{
	const uint64_t length = (uint64_t)end - (uint64_t)begin;
	if (every)
		return begin + (int64_t)(i * every);
	return begin + (int64_t)(length / parts * i + length % parts * i / parts);
}

static int write_parts(const struct options *o, const struct ky_trace *trace, struct selected *s,
		       struct ky_json_out *json)
{
	const int64_t from = s->selection.from_ns, to = s->selection.to_ns;
	const int64_t begin = from == KY_TIME_NONE ? trace->begin_ns : from;
	const int64_t end = to == KY_TIME_NONE ? trace->end_ns : to;
	uint64_t parts = o->parts_count;
	int code = KY_EXIT_DONE;
	if (!o->every_ns && !o->parts_count)
		return write_part(o, trace, s, 1, false, json);
	if (o->every_ns)
		parts = ((uint64_t)end - (uint64_t)begin) / o->every_ns + 1;
	if (end < begin || parts > PARTS_MAX)
		return ky_cli_error("that makes %" PRIu64 " parts: use longer ones", parts);
	for (uint32_t i = 0; i < parts && code == KY_EXIT_DONE; i++) {
		const bool last = i + 1 == parts;
		s->selection.from_ns = i ? edge(begin, end, o->every_ns, (uint32_t)parts, i) : from;
		s->selection.to_ns =
			last ? to : edge(begin, end, o->every_ns, (uint32_t)parts, i + 1);
		code = write_part(o, trace, s, i + 1, true, json);
	}
	return code;
}

static bool is_outside(const struct ky_stats_filter *range, const struct ky_trace *trace)
{
	return (range->from_ns != KY_TIME_NONE && range->from_ns > trace->end_ns) ||
	       (range->to_ns != KY_TIME_NONE && range->to_ns <= trace->begin_ns);
}

/* Report whether an option leaves no thread, track or category. */
static bool selects_nothing(const struct selected *s, const struct ky_trace *trace)
{
	const bool tracks = !s->tracks || memchr(s->tracks, 1, trace->tracks.rows.count) ||
			    memchr(s->threads, 1, trace->threads.rows.count);
	return !tracks || (s->categories && !memchr(s->categories, 1, trace->strings.count));
}

static int split(const struct options *o, struct ky_trace *trace)
{
	const struct ky_stats_filter range = ky_cli_filter_of(&o->filter, trace);
	struct selected s = {
		.selection = {.from_ns = range.from_ns, .to_ns = range.to_ns, .cut = true}};
	int code = KY_EXIT_FAILED;
	if (is_outside(&range, trace)) {
		char lasts[KY_QUANTITY_BYTES];
		ky_cli_error("%s has nothing in that range: it lasts %s", o->input,
			     ky_quantity_duration(lasts,
						  ky_sub_clamped(trace->end_ns, trace->begin_ns)));
		return KY_EXIT_NOTHING;
	}
	if (!select_tracks(&s, trace, &o->filter) ||
	    !select_categories(&s, trace, o->filter.category)) {
		ky_cli_error("not enough memory");
	} else if (selects_nothing(&s, trace)) {
		code = ky_cli_filter_nothing(&o->filter, trace, false);
	} else {
		s.selection.tracks = s.tracks;
		s.selection.threads = s.threads;
		s.selection.categories = s.categories;
		struct ky_json_out json = {.file = stdout};
		if (o->json) {
			ky_json_out_begin(&json, NULL, '{');
			ky_json_out_begin(&json, "parts", '[');
		}
		code = write_parts(o, trace, &s, &json);
		if (o->json) {
			ky_json_out_end(&json, ']');
			ky_info_json_faults(&json, trace);
			ky_json_out_end(&json, '}');
		}
	}
	free(s.tracks);
	free(s.threads);
	free(s.categories);
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	int packing;
	if (!read_options(argc, argv, &o))
		return KY_EXIT_USAGE;
	if ((o.format && !ky_output_suffix(o.format)) ||
	    (o.output && !ky_exporter_find(o.output, o.format, &packing)))
		return ky_output_unknown(o.output, o.format);
	struct ky_trace *trace = ky_cli_load(o.input, o.input_format, o.quiet);
	if (!trace)
		return KY_EXIT_FAILED;
	const int code = split(&o, trace);
	ky_trace_close(&trace);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_option options[] = {
	{"name", .kind = KY_OPTION_CALL, .argument = "GLOB",
	 .refusal = "split has no --name: use --category"},
	{"category", AT(TEXT, filter.category), .argument = "GLOBS",
	 .help = "only slices in these categories: net,db*,-db.debug"},
	{"every", AT(DURATION, every_ns), .argument = "TIME", .least = 1,
	 .help = "start a new part every TIME, e.g. 10s"},
	{"parts", AT(NUMBER, parts_count), .argument = "N", .least = 1, .most = PARTS_MAX,
	 .help = "write N parts of equal length"},
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "the output; several parts get .1, .2, ... before the suffix (default: INPUT.part or INPUT.1, "
		 "INPUT.2, ..., in INPUT's format; an existing file becomes .old)"},
	{"format", AT(TEXT, format), .argument = "NAME", .choices_of = ky_output_formats,
	 .help = "the output's format, whatever its name: json, pftrace, fxt or kymo, also json.gz, ..."},
	KY_CLI_INPUT_FORMAT(struct options, input_format),
	{"json", AT(FLAG, json), .help = "list the parts as JSON on standard output"},
	{"quiet", AT(FLAG, quiet), .letter = 'q', .help = "print only errors"},
	{0},
};

const struct ky_verb ky_verb_split = {
	.name = "split",
	.summary = "write a part of a trace, or split it into several files",
	.usage = "[OPTIONS] INPUT",
	.about =
		"Write a part of a trace, or all of it in several parts, each a complete trace: spans that reach over an "
		"edge are cut there, counters begin with their current value, and every part has the names and "
		"metadata.",
	.details =
		"Spans that never end stay open. Counters have no category and are in every part that `--category` "
		"selects.",
	.status =
		"0: done; 1: failed; 2: wrong usage; 3: nothing is in that range, or passes the filters.",
	.examples = "kymo split --from 2s --to 2.5s trace.json -o slow.json\n"
		    "kymo split --every 10s long.kymo\n"
		    "kymo split --process server --category 'net*' all.pftrace -o server.pftrace",
	.related = "merge convert",
	.options =
		(const struct ky_option_set[]){
			{ky_cli_filter_range, offsetof(struct options, filter)},
			{ky_cli_filter_tasks, offsetof(struct options, filter)},
			{options, 0},
			{0}},
	.run = run,
};
