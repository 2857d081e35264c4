/* SPDX-License-Identifier: MIT */
/*
 * cmd_split.c: kymo split: parts of a trace as files that stand on their own: a range of time, threads, processes,
 * categories, or the whole in pieces. Spans that are open at an edge are cut there, counters begin with the value
 * they have, and names and metadata are in every part.
 */
#include "cli/cli.h"
#include "cli/cli_filter.h"
#include "cli/output.h"
#include "core/glob.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 100000

enum { OPTION_EVERY = KY_CLI_OPTION_OWN, OPTION_PARTS, OPTION_FORMAT, OPTION_JSON };

static const char help[] =
	"usage: kymo split [options] INPUT\n"
	"\n"
	"Writes a part of a trace, or all of it in several, each a trace of its own: spans that "
	"reach over an\n"
	"edge are cut there, counters begin with the value they have, names and metadata are in "
	"every part.\n"
	"\n"
	"  --from TIME, --to TIME  the range: 1.5s, 200ms from the trace's begin; -1s from its "
	"end; @NS\n"
	"  --thread GLOB|TID       only these threads\n"
	"  --process GLOB|PID      only these processes\n"
	"  --category GLOBS        only slices of these categories: net,db*,-db.debug\n"
	"  --every TIME            a part for each so long: 10s\n"
	"  --parts N               so many parts of the same length\n"
	"  -o, --output FILE       the output; with several parts FILE.1, FILE.2, ... before its "
	"suffix.\n"
	"                          Without it INPUT.part or INPUT.1, INPUT.2, ..., in INPUT's "
	"format\n"
	"      --format NAME       json, pftrace, fxt or kymo\n"
	"      --json              the list of parts as JSON on standard output\n"
	"  -q, --quiet             say nothing\n"
	"      --help              this text\n"
	"\n"
	"examples:\n"
	"  kymo split --from 2s --to 2.5s trace.json -o slow.json\n"
	"  kymo split --every 10s long.kymo\n"
	"  kymo split --process server --category 'net*' all.pftrace -o server.pftrace\n";

struct options {
	struct ky_cli_filter filter;
	const char *input, *output, *format, *every, *parts;
	bool json, quiet;
	int64_t every_ns;
	uint32_t parts_count;
};

struct selected {
	struct ky_selection selection;
	uint8_t *tracks, *threads, *categories;
};

/* ---- options ---- */

static bool check_parts(struct options *o)
{
	char *end;
	if (o->every && o->parts) {
		ky_cli_usage("--every and --parts exclude each other");
		return false;
	}
	if (o->every && (!ky_cli_parse_duration(o->every, &o->every_ns) || o->every_ns <= 0)) {
		ky_cli_usage("--every %s is no time: 10s, 200ms are some", o->every);
		return false;
	}
	if (o->parts) {
		const long n = strtol(o->parts, &end, 10);
		if (*end || n < 1 || n > PARTS_MAX) {
			ky_cli_usage("--parts %s: from 1 to %d", o->parts, PARTS_MAX);
			return false;
		}
		o->parts_count = (uint32_t)n;
	}
	return true;
}

static bool read_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {KY_CLI_FILTER_OPTIONS,
					      {"every", required_argument, NULL, OPTION_EVERY},
					      {"parts", required_argument, NULL, OPTION_PARTS},
					      {"output", required_argument, NULL, 'o'},
					      {"format", required_argument, NULL, OPTION_FORMAT},
					      {"json", no_argument, NULL, OPTION_JSON},
					      {"quiet", no_argument, NULL, 'q'},
					      {0}};
	for (int c; (c = ky_cli_option(argc, argv, "o:q", longs)) != -1;) {
		if (c == 'o')
			o->output = optarg;
		else if (c == 'q')
			o->quiet = true;
		else if (c == OPTION_EVERY)
			o->every = optarg;
		else if (c == OPTION_PARTS)
			o->parts = optarg;
		else if (c == OPTION_FORMAT)
			o->format = optarg;
		else if (c == OPTION_JSON)
			o->json = true;
		else
			ky_cli_filter_option(&o->filter, c, optarg);
	}
	if (optind == argc)
		ky_cli_usage("which trace?");
	else if (optind + 1 < argc)
		ky_cli_usage("one trace at a time, and there is also '%s'", argv[optind + 1]);
	else if (o->filter.name)
		ky_cli_usage("--name does not go with split; take --category");
	else if (check_parts(o) && ky_cli_filter_check(&o->filter) == 0)
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
		      const struct selected *s, uint32_t number, bool several)
{
	struct ky_export_left left;
	char *name = part_name(o, trace, number, several);
	int code = KY_EXIT_FAILED;
	if (!name)
		ky_cli_error("not enough memory");
	else
		code = (o->output ? ky_output_write : ky_output_write_default)(
			trace, &s->selection, name, o->format, o->quiet, &left);
	if (code == KY_EXIT_DONE && o->json) {
		printf("%s{\"path\":", number > 1 ? "," : "");
		ky_cli_json_string(stdout, name, strlen(name));
		printf(",\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64 ",",
		       s->selection.from_ns == KY_TIME_NONE ? trace->begin_ns
							    : s->selection.from_ns,
		       s->selection.to_ns == KY_TIME_NONE ? trace->end_ns : s->selection.to_ns);
		ky_output_json_left(&left);
		printf("}");
	} else if (code == KY_EXIT_DONE && !o->quiet && several && strcmp(name, "-") != 0) {
		printf("%s\n", name);
	}
	free(name);
	return code;
}

static int64_t edge(int64_t begin, int64_t end, int64_t every, uint32_t parts, uint32_t i)
{
	const uint64_t length = (uint64_t)end - (uint64_t)begin;
	if (every)
		return begin + (int64_t)i * every;
	return begin + (int64_t)(length / parts * i + length % parts * i / parts);
}

static int write_parts(const struct options *o, const struct ky_trace *trace, struct selected *s)
{
	const int64_t from = s->selection.from_ns, to = s->selection.to_ns;
	const int64_t begin = from == KY_TIME_NONE ? trace->begin_ns : from;
	const int64_t end = to == KY_TIME_NONE ? trace->end_ns : to;
	uint64_t parts = o->parts_count;
	int code = KY_EXIT_DONE;
	if (!o->every && !o->parts)
		return write_part(o, trace, s, 1, false);
	if (o->every)
		parts = ((uint64_t)end - (uint64_t)begin) / (uint64_t)o->every_ns + 1;
	if (end < begin || parts > PARTS_MAX) {
		ky_cli_error("that would be %" PRIu64 " parts; take longer ones", parts);
		return KY_EXIT_FAILED;
	}
	for (uint32_t i = 0; i < parts && code == KY_EXIT_DONE; i++) {
		const bool last = i + 1 == parts;
		s->selection.from_ns = i ? edge(begin, end, o->every_ns, (uint32_t)parts, i) : from;
		s->selection.to_ns =
			last ? to : edge(begin, end, o->every_ns, (uint32_t)parts, i + 1);
		code = write_part(o, trace, s, i + 1, true);
	}
	return code;
}

static bool is_outside(const struct ky_stats_filter *range, const struct ky_trace *trace)
{
	return (range->from_ns != KY_TIME_NONE && range->from_ns > trace->end_ns) ||
	       (range->to_ns != KY_TIME_NONE && range->to_ns <= trace->begin_ns);
}

static int split(const struct options *o, const struct ky_trace *trace)
{
	const struct ky_stats_filter range = ky_cli_filter_of(&o->filter, trace);
	struct selected s = {
		.selection = {.from_ns = range.from_ns, .to_ns = range.to_ns, .cut = true}};
	int code = KY_EXIT_FAILED;
	if (is_outside(&range, trace)) {
		char lasts[KY_CLI_NUMBER_BYTES];
		ky_cli_error("%s: nothing of it is in that range: it lasts %s", o->input,
			     ky_cli_duration(lasts, trace->end_ns - trace->begin_ns));
		return KY_EXIT_FAILED;
	}
	if (!select_tracks(&s, trace, &o->filter) ||
	    !select_categories(&s, trace, o->filter.category)) {
		ky_cli_error("not enough memory");
	} else {
		s.selection.tracks = s.tracks;
		s.selection.threads = s.threads;
		s.selection.categories = s.categories;
		if (o->json)
			printf("{\"parts\":[");
		code = write_parts(o, trace, &s);
		if (o->json)
			printf("]}\n");
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
	if (o.format && !ky_output_suffix(o.format))
		return ky_cli_usage(
			"there is no output format '%s'; take json, pftrace, fxt or kymo",
			o.format);
	if (o.output && !ky_exporter_find(o.output, o.format, &packing))
		return ky_cli_usage(
			"%s: its name says no format; end it in .json, .pftrace, .fxt or "
			".kymo, or say it with --format",
			o.output);
	struct ky_trace *trace = ky_cli_load(o.input, NULL, o.quiet);
	if (!trace)
		return KY_EXIT_FAILED;
	const int code = split(&o, trace);
	ky_trace_close(&trace);
	return code;
}

const struct ky_verb ky_verb_split = {"split", "a part of a trace, or all of it in several", help,
				      run};
