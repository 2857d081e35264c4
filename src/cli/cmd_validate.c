/* SPDX-License-Identifier: MIT */
/*
 * cmd_validate.c: kymo validate: list everything that is wrong with a trace, the worst first, with places. The trace's
 * problems hold what the reader found; this file looks for what only the whole shows: spans that never end, slices that
 * overlap, flows with one end, a CPU that runs two threads at once.
 */
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "query/filter.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_MAX 512
#define TEXT_BYTES 320

enum severity { ERROR, DATA_LOSS, WARNING, INFO };
static const char *const severities[] = {"error", "data loss", "warning", "info"};
static const char *const json_severities[] = {"error", "data_loss", "warning", "info"};

struct finding {
	enum severity severity;
	const char *name;
	uint64_t count;
	uint64_t at; /* byte, or KY_NO_PLACE */
	int64_t ts;  /* or KY_TIME_NONE */
	char text[TEXT_BYTES];
};

struct findings {
	struct finding *list;
	uint32_t count;
};

static struct finding *add(struct findings *f, enum severity severity, const char *name)
{
	static struct finding spare;
	struct finding *finding = f->count < FINDINGS_MAX ? &f->list[f->count++] : &spare;
	*finding = (struct finding){
		.severity = severity, .name = name, .at = KY_NO_PLACE, .ts = KY_TIME_NONE};
	return finding;
}

/* ---- what the reader found ---- */

/* Return the severity. Perfetto calls these faults info; a file that has them is wrong all the same. */
static enum severity severity_of(const struct ky_trace *trace, uint32_t row, const char *name)
{
	static const char *const faults[] = {"end_without_begin", "flow_no_enclosing_slice",
					     "flow_duplicate_id", "event_out_of_order",
					     "kymo_not_finished"};
	const uint8_t severity = trace->problems.severity[row];
	if (severity == KY_ERROR)
		return ERROR;
	if (severity == KY_DATA_LOSS)
		return DATA_LOSS;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strcmp(faults[i], name) == 0)
			return WARNING;
	return INFO;
}

/* Report whether this is found again below, with its time. */
static bool found_below(const char *name)
{
	return strcmp(name, "flow_end_without_start") == 0 ||
	       strcmp(name, "flow_step_without_start") == 0 || strcmp(name, "slice_overlap") == 0;
}

static void find_problems(struct findings *f, const struct ky_trace *trace)
{
	const struct ky_problems *p = &trace->problems;
	for (uint32_t i = 0; i < p->rows.count; i++) {
		const char *name = ky_text_of(trace, p->name[i]);
		const char *text = ky_text_of(trace, p->first[i]);
		if (name && found_below(name))
			continue;
		struct finding *finding = add(f, severity_of(trace, i, name ? name : ""), name);
		finding->count = p->number[i];
		finding->at = p->first_at[i];
		snprintf(finding->text, TEXT_BYTES, "%s", text ? text : "");
	}
}

static void find_losses(struct findings *f, const struct ky_trace *trace)
{
	const struct ky_losses *l = &trace->losses;
	if (!l->rows.count)
		return;
	const char *what = ky_text_of(trace, l->what[0]);
	struct finding *finding = add(f, DATA_LOSS, "events_lost");
	finding->count = trace->lost ? trace->lost : l->rows.count;
	finding->ts = l->ts[0];
	snprintf(finding->text, TEXT_BYTES, "events were lost before they reached the file: %s",
		 what ? what : "cause unknown");
}

/* ---- what the whole shows ---- */

/* Count one more of a kind; the first says where it is. */
static void count_slice(struct findings *f, struct finding **finding, const struct ky_trace *trace,
			enum severity severity, const char *name, const char *what, uint32_t slice)
{
	if (!*finding) {
		const char *text = ky_text_of(trace, trace->slices.name[slice]);
		*finding = add(f, severity, name);
		(*finding)->ts = trace->slices.ts[slice];
		snprintf((*finding)->text, TEXT_BYTES, "'%.200s' %s", text ? text : "", what);
	}
	(*finding)->count++;
}

static void find_slices(struct findings *f, const struct ky_trace *trace)
{
	const struct ky_slices *s = &trace->slices;
	struct finding *open = NULL, *overlap = NULL, *nameless = NULL;
	for (uint32_t i = 0; i < s->rows.count; i++) {
		if (s->dur[i] < 0)
			count_slice(f, &open, trace, WARNING, "slice_not_ended", "never ends", i);
		if (trace->tracks.flags[s->track[i]] & KY_TRACK_OVERFLOW)
			count_slice(f, &overlap, trace, WARNING, "slice_overlap",
				    "overlaps another one of its thread", i);
		if (!s->name[i])
			count_slice(f, &nameless, trace, INFO, "slice_without_name", "has no name",
				    i);
	}
}

/* Count flows with one end. Not a fault: the other end may be in the trace of another process or host, for kymo merge. */
static void find_flows(struct findings *f, const struct ky_trace *trace)
{
	const struct ky_flow_ends *e = &trace->flow_ends;
	struct finding *begins = NULL, *ends = NULL;
	for (uint32_t i = 0; i < e->rows.count; i++)
		if (e->arrives[i])
			count_slice(f, &ends, trace, INFO, "flow_without_begin",
				    "receives a flow that leaves no slice of this trace",
				    e->slice[i]);
		else
			count_slice(f, &begins, trace, INFO, "flow_without_end",
				    "sends a flow that no slice of this trace receives",
				    e->slice[i]);
}

static void find_sched(struct findings *f, const struct ky_trace *trace)
{
	const struct ky_sched *s = &trace->sched;
	uint32_t cpus = 0;
	struct finding *finding = NULL;
	for (uint32_t i = 0; i < s->rows.count; i++)
		if (s->cpu[i] < 4096 && s->cpu[i] >= cpus)
			cpus = s->cpu[i] + 1;
	int64_t *ends = malloc(((size_t)cpus + 1) * sizeof(*ends));
	for (uint32_t i = 0; ends && i < cpus; i++)
		ends[i] = INT64_MIN;
	for (uint32_t i = 0; ends && i < s->rows.count; i++) {
		if (s->cpu[i] >= cpus)
			continue;
		if (s->ts[i] < ends[s->cpu[i]]) {
			if (!finding) {
				finding = add(f, DATA_LOSS, "sched_overlap");
				finding->ts = s->ts[i];
				snprintf(finding->text, TEXT_BYTES,
					 "CPU %" PRIu32 " runs two threads at once", s->cpu[i]);
			}
			finding->count++;
		}
		if (s->dur[i] >= 0)
			ends[s->cpu[i]] = s->ts[i] + s->dur[i];
	}
	free(ends);
}

static int by_severity(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;
	if (a->severity != b->severity)
		return (int)a->severity - (int)b->severity;
	return a->count != b->count ? (a->count > b->count ? -1 : 1) : strcmp(a->name, b->name);
}

/* ---- output ---- */

static const char *place_of(const struct finding *f, const struct ky_trace *trace, char *text,
			    size_t bytes)
{
	char duration[KY_QUANTITY_BYTES];
	if (f->at != KY_NO_PLACE)
		snprintf(text, bytes, "byte %" PRIu64, f->at);
	else if (f->ts != KY_TIME_NONE)
		snprintf(text, bytes, "at +%s",
			 ky_quantity_duration(duration, ky_sub_clamped(f->ts, trace->begin_ns)));
	else
		text[0] = 0;
	return text;
}

static void print_table(const struct findings *f, const struct ky_trace *trace, const char *path)
{
	static const struct ky_cli_column columns[] = {{.title = "severity"},
						       {.title = "count", .right = true},
						       {.title = "first"},
						       {.title = "what"},
						       {.title = "details", .flexible = true}};
	if (!f->count) {
		printf("%s: no problems found\n", ky_cli_path(path));
		return;
	}
	struct ky_cli_table *table = ky_cli_table_new(columns, 5);
	for (uint32_t i = 0; table && i < f->count; i++) {
		char count[KY_QUANTITY_BYTES], place[64];
		ky_cli_table_cell(table, severities[f->list[i].severity]);
		ky_cli_table_cell(table, ky_quantity_count(count, f->list[i].count));
		ky_cli_table_cell(table, place_of(&f->list[i], trace, place, sizeof(place)));
		ky_cli_table_cell(table, f->list[i].name);
		ky_cli_table_cell(table, f->list[i].text);
	}
	printf("%s:\n", ky_cli_path(path));
	if (table)
		ky_cli_table_print(&table, 0);
}

static void print_json(struct ky_json_out *json, const struct findings *f, const char *path,
		       const char *format, bool valid, const struct ky_trace *trace)
{
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "path", path);
	ky_json_out_text(json, "format", format);
	ky_json_out_bool(json, "valid", valid);
	if (trace)
		ky_info_json_losses(json, trace);
	ky_json_out_begin(json, "problems", '[');
	for (uint32_t i = 0; i < f->count; i++) {
		const struct finding *const x = &f->list[i];
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "name", x->name ? x->name : "");
		ky_json_out_text(json, "severity", json_severities[x->severity]);
		ky_json_out_uint(json, "count", x->count);
		if (x->at != KY_NO_PLACE)
			ky_json_out_uint(json, "first_at_byte", x->at);
		if (x->ts != KY_TIME_NONE)
			ky_json_out_int(json, "ts", x->ts);
		ky_json_out_text(json, "first", x->text);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
	ky_json_out_end(json, '}');
}

/* ---- the verb ---- */

struct options {
	const char *format;
	bool json, quiet, several;
};

/* Return the verdict of a trace: KY_EXIT_DONE, KY_EXIT_FAILED: it has problems, or KY_EXIT_TROUBLE: it cannot be read. */
static int validate(const struct options *o, const char *path, struct ky_json_out *json)
{
	struct findings f = {.list = calloc(FINDINGS_MAX, sizeof(*f.list))};
	struct ky_trace *trace = f.list ? ky_cli_load(path, o->format, true) : NULL;
	int code = KY_EXIT_TROUBLE;
	if (!f.list)
		ky_cli_error("%s: not enough memory", path);
	if (trace) {
		find_problems(&f, trace);
		find_losses(&f, trace);
		find_slices(&f, trace);
		find_flows(&f, trace);
		find_sched(&f, trace);
		qsort(f.list, f.count, sizeof(*f.list), by_severity);
		const bool valid = !f.count || f.list[0].severity == INFO;
		code = valid ? KY_EXIT_DONE : KY_EXIT_FAILED;
		if (o->json)
			print_json(json, &f, path, trace->format ? trace->format : "", valid,
				   trace);
		else if (!o->quiet)
			print_table(&f, trace, path);
	} else if (o->json && o->several) {
		/* The list names it, too; the cause is on standard error. */
		print_json(json, &f, path, NULL, false, NULL);
	}
	ky_trace_close(&trace);
	free(f.list);
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	int code = KY_EXIT_DONE;
	const int wrong = ky_options_read(&o, argc, argv);
	if (wrong)
		return wrong;
	if (optind == argc)
		return ky_cli_usage("the trace is missing");
	o.several = argc - optind > 1;
	struct ky_json_out json = {.file = stdout, .lines = o.several ? 3 : 2};
	if (o.json && o.several)
		ky_json_out_begin(&json, NULL, '[');
	for (int i = optind; i < argc; i++) {
		const int verdict = validate(&o, argv[i], &json);
		code = verdict > code ? verdict : code;
	}
	if (o.json && o.several)
		ky_json_out_end(&json, ']');
	return code;
}

static const struct ky_option options[] = {
	KY_CLI_INPUT_FORMAT(struct options, format),
	{"json", KY_OPTION_AT(FLAG, struct options, json), .help = "print JSON",
	 .more = "An object, or a list of them for several traces. A trace that cannot be read has the format null."},
	{"quiet", KY_OPTION_AT(FLAG, struct options, quiet), .letter = 'q',
	 .help = "only set the exit code"},
	{0},
};

const struct ky_verb ky_verb_validate = {
	.name = "validate",
	.summary = "list everything that is wrong with a trace",
	.usage = "[OPTIONS] TRACE...",
	.about =
		"List everything that is wrong with traces: damage and errors with the byte of the first, lost events, "
		"spans without beginning or end, slices that overlap. The exit code is 0 when nothing is wrong, 1 "
		"when something is and 2 when a trace cannot be read. Entries marked info are not faults and do not count, for example flows with one "
		"end.",
	.details =
		"The worst come first, each with its count and the place of the first. The other end of a flow may be in "
		"the trace of another process.",
	.status =
		"0: nothing is wrong; 1: something is; 2: trouble: a trace cannot be read, or wrong usage. The worst of "
		"several traces counts.",
	.examples = "kymo validate trace.json\n"
		    "kymo validate --json *.pftrace",
	.related = "repair info",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.judges = true,
	.run = run,
};
