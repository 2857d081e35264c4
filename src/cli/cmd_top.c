/* SPDX-License-Identifier: MIT */
/*
 * cmd_top.c: kymo top: which spans, function calls and other events running programs have now, by rate and time.
 *
 * Time is counted where it is spent: at each round, an open span gets what it lasted since the last one, and at its end the rest. The time of the
 * innermost open span of a thread is its own. Counts and extremes are of spans that ended.
 */
#include "base/array.h"
#include "base/clock.h"
#include "base/json_out.h"
#include "base/map.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "cli/live.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define INTERVAL_NS UINT64_C(1000000000)
#define ROWS_MAX 65536u /* names; those beyond are counted as one */
#define ASYNC_MAX 65536u
#define LINES_AROUND 5u
#define LIMIT 20u

enum top_sort { SORT_TIME, SORT_SELF, SORT_RATE, SORT_MAX, SORT_NAME };

/* A category and a name, and what happened since the last round. */
struct top_row {
	uint32_t category, name; /* strings */
	uint64_t count;          /* spans that ended; other events */
	uint64_t ended_ns;       /* the durations of those spans, and the longest of them */
	uint64_t max_ns;
	uint64_t time_ns, self_ns; /* spent since the last round */
	bool timed;                /* it is a span */
};

struct top_command {
	struct ky_capture_command capture; /* first */
	uint64_t interval_ns;
	uint32_t rounds; /* 0: no limit */
	uint32_t limit;  /* UINT32_MAX: the default */
	enum top_sort sort;
	bool json;
	/* state */
	struct ky_live_spans spans;
	struct ky_strings strings;
	struct ky_pair_map rows_by_name; /* category, name: row */
	struct ky_pair_map async;        /* id, process and row: when it began */
	struct top_row *rows;
	uint32_t rows_count, rows_room;
	struct ky_screen screen;
	char note[KY_MESSAGE_BYTES];
	uint64_t begin_ns; /* of this round, BOOTTIME */
	uint64_t round;
	uint64_t events, lost, lost_before;
};

/* ---- events ---- */

static uint32_t string_of(struct top_command *top, struct ky_text text)
{
	return ky_strings_add_utf8(&top->strings, text.data, text.bytes);
}

/* Return the number of the row that a name has, or NULL. */
static const uint64_t *known_row(const struct top_command *top, struct ky_text category,
				 struct ky_text name)
{
	const uint32_t c = ky_strings_find(&top->strings, category.data, category.bytes);
	const uint32_t n = ky_strings_find(&top->strings, name.data, name.bytes);
	return ky_pair_map_find(&top->rows_by_name, c, n);
}

/* Return the row of a name, or UINT32_MAX without memory. */
static uint32_t row_of(struct top_command *top, struct ky_text category, struct ky_text name)
{
	bool made;
	if (top->rows_count >= ROWS_MAX) {
		const uint64_t *const known = known_row(top, category, name);
		if (known)
			return (uint32_t)*known;
		category = (struct ky_text){"", 0};
		name = (struct ky_text){"(other names)", 13};
	}
	const uint32_t c = string_of(top, category), n = string_of(top, name);
	uint64_t *const number = ky_pair_map_add(&top->rows_by_name, c, n, &made);
	if (!number)
		return UINT32_MAX;
	if (!made)
		return (uint32_t)*number;
	*number = top->rows_count;
	struct top_row *const row = KY_ARRAY_NEW(top->rows, top->rows_count, top->rows_room);
	if (!row)
		return UINT32_MAX;
	row->category = c;
	row->name = n;
	return top->rows_count - 1;
}

/* Return how much of a time from begin on was after the beginning of this round. */
static uint64_t part_of(const struct top_command *top, uint64_t begin_ns, uint64_t end_ns)
{
	const uint64_t from = begin_ns > top->begin_ns ? begin_ns : top->begin_ns;
	return end_ns > from ? end_ns - from : 0;
}

/* Give the thread's time up to now to its innermost span. */
static void add_self(struct top_command *top, struct ky_live_thread *thread, uint64_t now_ns)
{
	if (thread->depth)
		top->rows[thread->open[thread->depth - 1].row].self_ns +=
			part_of(top, thread->at_ns, now_ns);
	thread->at_ns = now_ns;
}

/* Count a span that ended; inner: one around it has its time already. */
static void add_ended(struct top_command *top, uint32_t row, bool inner, uint64_t begin_ns,
		      uint64_t end_ns)
{
	struct top_row *const one = &top->rows[row];
	const uint64_t ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
	one->count++;
	one->timed = true;
	one->ended_ns += ns;
	one->max_ns = ns > one->max_ns ? ns : one->max_ns;
	if (!inner)
		one->time_ns += part_of(top, begin_ns, end_ns);
}

/* Open a span; one in others of its row is recursion. */
static void open_span(struct ky_live_thread *thread, uint64_t begin_ns, uint32_t row)
{
	uint32_t at = thread->depth;
	while (at && thread->open[at - 1].row != row)
		at--;
	if (ky_live_spans_begin(thread, begin_ns, row, NULL))
		thread->open[thread->depth - 1].inner = at != 0;
}

static void on_async(struct top_command *top, pid_t pid, uint32_t row, const struct ky_event *event)
{
	bool made;
	const uint64_t owner = (uint64_t)(uint32_t)pid << 32 | row;
	uint64_t *const began = ky_pair_map_add(&top->async, event->id, owner, &made);
	if (!began)
		return;
	if (event->kind == KYMO_KIND_ASYNC_BEGIN) {
		*began = event->time_ns;
		if (top->async.table.count > ASYNC_MAX)
			ky_pair_map_free(&top->async);
		return;
	}
	if (!made) {
		add_ended(top, row, false, *began, event->time_ns);
		top->rows[row].self_ns += part_of(top, *began, event->time_ns);
	}
	ky_pair_map_remove(&top->async, event->id, owner);
}

static void on_span(struct top_command *top, pid_t pid, const struct ky_event *event)
{
	struct ky_live_thread *const thread = ky_live_spans_thread(&top->spans, event->thread);
	struct ky_live_span span;
	if (!thread)
		return;
	thread->process = pid;
	if (event->kind == KYMO_KIND_LOST) {
		ky_live_spans_lost(thread);
		return;
	}
	add_self(top, thread, event->time_ns);
	if (event->kind == KYMO_KIND_END) {
		if (ky_live_spans_end(thread, &span))
			add_ended(top, span.row, span.inner, span.begin_ns, event->time_ns);
		return;
	}
	const uint32_t row =
		event->site ? row_of(top, event->site->category, event->name) : UINT32_MAX;
	if (row != UINT32_MAX)
		open_span(thread, event->time_ns, row);
	else
		thread->skipped++;
}

static void on_event(void *context, pid_t pid, const struct ky_event *event)
{
	struct top_command *const top = context;
	if (event->kind == KYMO_KIND_LOST)
		top->lost += event->id;
	else
		top->events++;
	if (event->kind == KYMO_KIND_BEGIN || event->kind == KYMO_KIND_END ||
	    event->kind == KYMO_KIND_LOST) {
		on_span(top, pid, event);
		return;
	}
	/* The name of a message is its format. */
	const struct ky_text name =
		event->kind == KYMO_KIND_PRINT && event->site ? event->site->name : event->name;
	const uint32_t row = event->site ? row_of(top, event->site->category, name) : UINT32_MAX;
	if (row == UINT32_MAX)
		return;
	if (event->kind == KYMO_KIND_ASYNC_BEGIN || event->kind == KYMO_KIND_ASYNC_END)
		on_async(top, pid, row, event);
	else
		top->rows[row].count++;
}

/* ---- a round ---- */

/* Report whether a process is there. Each is looked for once a round: checked has the answers, plus 1. */
static bool is_there(struct ky_u64_map *checked, pid_t pid)
{
	bool made;
	uint32_t *const answer = ky_u64_map_add(checked, (uint32_t)pid, &made);
	if (!answer || made) {
		const bool there = kill(pid, 0) == 0 || errno != ESRCH;
		if (!answer)
			return there;
		*answer = there + 1;
	}
	return *answer == 2;
}

static void count_open_async(struct top_command *top, struct ky_u64_map *checked, uint64_t now_ns)
{
	const struct ky_pair_slot *slot;
	for (uint32_t at = 0; (slot = ky_pair_map_next(&top->async, &at));) {
		struct top_row *const row = &top->rows[(uint32_t)slot->b];
		const uint64_t ns = part_of(top, slot->value, now_ns);
		if (!is_there(checked, (pid_t)(slot->b >> 32)))
			continue;
		row->timed = true;
		row->time_ns += ns;
		row->self_ns += ns;
	}
}

/* Give the open spans what they lasted up to now. A process that was killed ends none. */
static void count_open(struct top_command *top, uint64_t now_ns)
{
	struct ky_u64_map checked = {0};
	for (uint32_t i = 0; i < top->spans.count; i++) {
		struct ky_live_thread *const thread = &top->spans.threads[i];
		if (thread->depth && !is_there(&checked, thread->process))
			ky_live_spans_lost(thread);
		for (uint32_t n = 0; n < thread->depth; n++) {
			struct top_row *const row = &top->rows[thread->open[n].row];
			row->timed = true;
			if (!thread->open[n].inner)
				row->time_ns += part_of(top, thread->open[n].begin_ns, now_ns);
		}
		add_self(top, thread, now_ns);
	}
	count_open_async(top, &checked, now_ns);
	ky_u64_map_free(&checked);
}

static struct ky_strings *names; /* of the rows that are sorted: qsort has no context */

static int by_name(const struct top_row *a, const struct top_row *b)
{
	const int order = strcmp(ky_strings_text(names, a->name), ky_strings_text(names, b->name));
	return order ? order
		     : strcmp(ky_strings_text(names, a->category),
			      ky_strings_text(names, b->category));
}

#define COMPARE(function, field)                                                                   \
	static int function(const void *a_, const void *b_)                                        \
	{                                                                                          \
		const struct top_row *const a = *(const struct top_row *const *)a_,                \
					    *const b = *(const struct top_row *const *)b_;         \
		if (a->field != b->field)                                                          \
			return a->field < b->field ? 1 : -1;                                       \
		return a->count != b->count ? (a->count < b->count ? 1 : -1) : by_name(a, b);      \
	}
COMPARE(compare_time, time_ns)
COMPARE(compare_self, self_ns)
COMPARE(compare_rate, count)
COMPARE(compare_max, max_ns)

static int compare_name(const void *a, const void *b)
{
	return by_name(*(const struct top_row *const *)a, *(const struct top_row *const *)b);
}

/* Return the rows that something happened to, sorted; NULL without memory. The caller frees them. */
static const struct top_row **sorted(struct top_command *top, uint32_t *count)
{
	static int (*const compare[])(const void *, const void *) = {[SORT_TIME] = compare_time,
								     [SORT_SELF] = compare_self,
								     [SORT_RATE] = compare_rate,
								     [SORT_MAX] = compare_max,
								     [SORT_NAME] = compare_name};
	const struct top_row **const rows = malloc((top->rows_count + 1) * sizeof(*rows));
	*count = 0;
	if (!rows)
		return NULL;
	for (uint32_t i = 0; i < top->rows_count; i++)
		if (top->rows[i].count || top->rows[i].time_ns)
			rows[(*count)++] = &top->rows[i];
	names = &top->strings;
	qsort(rows, *count, sizeof(*rows), compare[top->sort]);
	return rows;
}

/* ---- printing ---- */

static const struct ky_cli_column columns[] = {
	{"/s", true, false},   {"time", true, false}, {"self", true, false},
	{"mean", true, false}, {"max", true, false},  {"category", false, true},
	{"name", false, true},
};

static void add_percent(struct ky_cli_table *table, bool timed, uint64_t ns, uint64_t of_ns)
{
	if (timed)
		ky_cli_table_format(table, "%.1f %%", 100 * (double)ns / (double)of_ns);
	else
		ky_cli_table_cell(table, NULL);
}

static void add_row(struct ky_cli_table *table, const struct top_command *top,
		    const struct top_row *row, uint64_t spent_ns)
{
	char text[KY_QUANTITY_BYTES];
	const double rate = (double)row->count * 1e9 / (double)spent_ns;
	ky_cli_table_cell(table, ky_quantity_count(text, (uint64_t)(rate + 0.5)));
	add_percent(table, row->timed, row->time_ns, spent_ns);
	add_percent(table, row->timed, row->self_ns, spent_ns);
	const bool ended = row->timed && row->count;
	ky_cli_table_cell(table,
			  ended ? ky_quantity_duration(text, (int64_t)(row->ended_ns / row->count))
				: NULL);
	ky_cli_table_cell(table, ended ? ky_quantity_duration(text, (int64_t)row->max_ns) : NULL);
	ky_cli_table_cell(table, ky_strings_text(&top->strings, row->category));
	ky_cli_table_cell(table, ky_strings_text(&top->strings, row->name));
}

static void print_title(const struct top_command *top, uint64_t spent_ns)
{
	char text[KY_QUANTITY_BYTES];
	printf("%skymo%s  %s events/s", ky_cli_style("1"), ky_cli_plain(),
	       ky_quantity_count(text,
				 (uint64_t)((double)top->events * 1e9 / (double)spent_ns + 0.5)));
	if (top->lost)
		printf(", %s%s lost%s", ky_cli_style("31"), ky_quantity_count(text, top->lost),
		       ky_cli_plain());
	if (top->screen.keys)
		printf("   q ends; sort by t time, s self, r rate, m max, n name");
	puts(top->screen.on ? "\n" : "");
}

static void print_text(const struct top_command *top, const struct top_row **rows, uint32_t count,
		       uint64_t spent_ns)
{
	const unsigned lines = top->screen.on ? ky_screen_lines() : 0;
	uint32_t most = top->limit == UINT32_MAX ? LIMIT : top->limit ? top->limit : count;
	if (top->screen.on && (top->limit == UINT32_MAX || most + LINES_AROUND > lines))
		most = lines > LINES_AROUND + 1 ? lines - LINES_AROUND : 1;
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
	for (uint32_t i = 0; i < count && i < most; i++)
		add_row(table, top, rows[i], spent_ns);
	if (top->screen.on)
		ky_screen_clear();
	else if (top->round)
		putchar('\n');
	print_title(top, spent_ns);
	ky_cli_table_print(&table, 0);
	if (count > most)
		printf("and %" PRIu32 " more\n", count - most);
	if (top->screen.on && top->note[0]) {
		fputs(ky_cli_style("2"), stdout);
		ky_cli_text(stdout, top->note,
			    ky_cli_text_fit(top->note, strlen(top->note), ky_cli_width()));
		fputs(ky_cli_plain(), stdout);
	}
}

static void print_json(const struct top_command *top, const struct top_row **rows, uint32_t count,
		       uint64_t spent_ns)
{
	const struct ky_info_count losses[] = {
		{"events: they were overwritten before they were read", top->lost, NULL},
		{0},
	};
	struct ky_json_out json = {.file = stdout};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_uint(&json, "interval_ns", spent_ns);
	ky_json_out_uint(&json, "events", top->events);
	ky_info_json_counts(&json, losses, &(struct ky_info_count){0});
	ky_json_out_begin(&json, "rows", '[');
	for (uint32_t i = 0;
	     i < count && (top->limit == UINT32_MAX || !top->limit || i < top->limit); i++) {
		const struct top_row *const row = rows[i];
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_text(&json, "category", ky_strings_text(&top->strings, row->category));
		ky_json_out_text(&json, "name", ky_strings_text(&top->strings, row->name));
		ky_json_out_uint(&json, "count", row->count);
		if (row->timed) {
			ky_json_out_uint(&json, "time_ns", row->time_ns);
			ky_json_out_uint(&json, "self_ns", row->self_ns);
			ky_json_out_uint(&json, "ended_ns", row->ended_ns);
			ky_json_out_uint(&json, "max_ns", row->max_ns);
		}
		ky_json_out_end(&json, '}');
	}
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

static void show(struct top_command *top, uint64_t now_ns)
{
	const uint64_t spent_ns = now_ns > top->begin_ns ? now_ns - top->begin_ns : 1;
	uint32_t count;
	count_open(top, now_ns);
	const struct top_row **const rows = sorted(top, &count);
	if (rows && top->json)
		print_json(top, rows, count, spent_ns);
	else if (rows)
		print_text(top, rows, count, spent_ns);
	free((void *)rows);
	fflush(stdout);
	for (uint32_t i = 0; i < top->rows_count; i++)
		top->rows[i] = (struct top_row){.category = top->rows[i].category,
						.name = top->rows[i].name,
						.timed = top->rows[i].timed};
	top->begin_ns = now_ns;
	top->events = top->lost = 0;
	top->round++;
}

/* Return true: q was typed. */
static bool take_keys(struct top_command *top)
{
	static const char sorts[] = "tsrmn"; /* as enum top_sort */
	char keys[64];
	for (const char *key = ky_screen_keys(&top->screen, keys, sizeof(keys)); *key; key++) {
		const char *const sort = strchr(sorts, *key);
		if (*key == 'q' || *key == 'Q')
			return true;
		if (sort)
			top->sort = (enum top_sort)(sort - sorts);
	}
	return false;
}

static int on_round(void *context, uint64_t elapsed_ns, uint64_t lost)
{
	struct top_command *const top = context;
	const uint64_t now_ns = (uint64_t)ky_clock_boottime();
	(void)elapsed_ns;
	/* Those that were overwritten come as events, too. */
	(void)lost;
	if (take_keys(top) || ferror(stdout))
		return 1;
	if (now_ns < top->begin_ns + top->interval_ns || (top->rounds && top->round >= top->rounds))
		return 0;
	show(top, now_ns);
	return top->rounds && top->round >= top->rounds;
}

static void on_note(void *context, const char *line)
{
	struct top_command *const top = context;
	if (top->screen.on)
		snprintf(top->note, sizeof(top->note), "%s", line);
	else
		ky_cli_error("%s", line);
}

static int begin(void *context)
{
	struct top_command *const top = context;
	if (ky_strings_init(&top->strings) != 0)
		return ky_cli_error("not enough memory");
	if (!top->json)
		ky_screen_open(&top->screen, false);
	top->begin_ns = (uint64_t)ky_clock_boottime();
	return KY_EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct top_command top = {.interval_ns = INTERVAL_NS, .limit = UINT32_MAX};
	const struct ky_live_how how = {
		.event = on_event, .round = on_round, .note = on_note, .context = &top};
	const int code = ky_live_run(&top.capture, argc, argv, begin, &how);
	ky_screen_leave(&top.screen);
	if (top.screen.on && top.note[0])
		ky_cli_error("%s", top.note);
	ky_live_spans_free(&top.spans);
	ky_strings_free(&top.strings);
	ky_pair_map_free(&top.rows_by_name);
	ky_pair_map_free(&top.async);
	KY_ARRAY_FREE(top.rows, top.rows_room);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct top_command, field)

/* By enum top_sort. */
static const struct ky_choice sorts[] = {{.name = "time"}, {.name = "self"}, {.name = "rate"},
					 {.name = "max"},  {.name = "name"}, {0}};

static const struct ky_option options[] = {
	{"interval", AT(DURATION, interval_ns), .letter = 'i', .argument = "TIME", .least = 1,
	 .help = "time between two rounds (default 1s)"},
	{"rounds", AT(NUMBER, rounds), .letter = 'n', .argument = "N", .least = 1,
	 .most = 1000000000, .help = "end after N rounds"},
	{"sort", AT(CHOICE, sort), .argument = "WHAT", .choices = sorts,
	 .help = "order of the rows: time (default), self, rate, max or name"},
	{"limit", AT(NUMBER, limit), .argument = "N", .most = 1000000000,
	 .help = "maximum rows; 0 = all (default 20; on a terminal what fits)"},
	{"json", AT(FLAG, json), .help = "print an object of JSON for each round, one on a line"},
	{0},
};

static const struct ky_section sections[] = {
	{"OUTPUT",
	 "`/s`: spans that ended, or other events, a second.\n\n"
	 "`time`: time in the span, of all threads: 200 % are two threads all the time. Spans that are still open count, too, and those inside others of the same name (recursion) once.\n\n"
	 "`self`: the same without the spans inside it.\n\n"
	 "`mean`, `max`: durations of the spans that ended.\n\n"
	 "With `--functions` the calls of functions are rows as well: their category is the module."},
	{0},
};

const struct ky_verb ky_verb_top = {
	.name = "top",
	.summary = "show which spans and functions running programs spend their time in, live",
	.usage = "[OPTIONS] [-p PID|NAME ...]",
	.about =
		"Switch on the trace points of running processes and show, every second, which spans they spend their time in and which "
		"events they have how often. On a terminal it is a screen that q or Ctrl-C ends, otherwise a block of lines each round. "
		"The programs never wait: what is not read in time is reported as lost.",
	.status =
		"0: done; 1: failed; 2: wrong usage; 3: a process, category or function that was named matches nothing; 77: "
		"`--functions` is not possible on this machine.",
	.examples = "kymo top\n"
		    "kymo top -p server -c net,db --sort rate\n"
		    "kymo top -p redis-server --functions\n"
		    "kymo top -p server -n 1 --json",
	.related = "tail list attach report",
	.options =
		(const struct ky_option_set[]){
			{options, 0}, {ky_live_options, 0}, {ky_capture_function_options, 0}, {0}},
	.sections = sections,
	.run = run,
};
