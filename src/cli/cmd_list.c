/* SPDX-License-Identifier: MIT */
/* cmd_list.c: kymo list: show the processes that trace now, once or again and again. */
#include "base/json_out.h"
#include "capture/processes.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "cli/list.h"
#include "cli/live.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct style {
	bool json;
	bool categories; /* list them for each process */
	uint32_t rows;   /* maximum; 0: all */
};

/* ---- printing, as text and as JSON ---- */

#define NAME_BYTES 256

static const struct ky_cli_column columns[] = {
	{"pid", true, false},        {"name", false, true},     {"threads", true, false},
	{"categories", true, false}, {"events/s", true, false}, {"lost", true, false},
	{"recorders", true, false},  {"memory", true, false},
};

static void print_row(struct ky_cli_table *table, const struct ky_list_row *row)
{
	const struct ky_drums_facts *const facts = &row->facts;
	char text[KY_QUANTITY_BYTES];
	ky_cli_table_format(table, "%d", (int)facts->pid);
	ky_cli_table_cell(table, facts->name);
	ky_cli_table_format(table, "%" PRIu32, facts->threads);
	ky_cli_table_format(table, "%" PRIu32 "/%" PRIu32, facts->categories_on, facts->categories);
	ky_cli_table_cell(table,
			  row->per_second < 0
				  ? ""
				  : ky_quantity_count(text, (uint64_t)(row->per_second + 0.5)));
	ky_cli_table_styled(table, ky_quantity_count(text, facts->lost), facts->lost ? "31" : NULL);
	ky_cli_table_format(table, "%" PRIu32, facts->recorders);
	ky_cli_table_cell(table, ky_quantity_bytes(text, row->memory_bytes));
}

static void print_damage(const struct ky_list_row *row)
{
	if (row->facts.damaged)
		printf("%sprocess %d: its buffer is damaged in %" PRIu64
		       " places: something in it writes over the recorder's memory%s\n",
		       ky_cli_style("31"), (int)row->facts.pid, row->facts.damaged, ky_cli_plain());
}

static uint32_t count_categories(const struct ky_list_row *row)
{
	char name[NAME_BYTES];
	bool on;
	uint32_t count = 0;
	while (ky_drums_category(row->drums, 0, count, name, sizeof(name), &on))
		count++;
	return count;
}

/* Print an empty line, the process, the titles and the categories that fit; return the number of lines. */
static uint32_t print_categories(const struct ky_list_row *row, uint32_t lines)
{
	const uint32_t around = 3;
	if (lines <= around)
		return 0;
	const uint32_t count = count_categories(row);
	const uint32_t shown = count <= lines - around ? count : lines - around - 1;
	static const struct ky_cli_column titles[] = {{"category", false, true},
						      {"", false, false}};
	struct ky_cli_table *table = ky_cli_table_new(titles, 2);
	char name[NAME_BYTES];
	bool on;
	for (uint32_t i = 0;
	     i < shown && ky_drums_category(row->drums, 0, i, name, sizeof(name), &on); i++) {
		ky_cli_table_cell(table, name);
		ky_cli_table_styled(table, on ? "on" : "off", on ? "32" : "2");
	}
	printf("\n%s%d ", ky_cli_style("1"), (int)row->facts.pid);
	ky_cli_text(stdout, row->facts.name, strlen(row->facts.name));
	printf("%s\n", ky_cli_plain());
	if (!count)
		puts("  no categories yet: none of its trace points has been reached");
	ky_cli_table_print(&table, 2);
	if (shown < count)
		printf("  and %" PRIu32 " more\n", count - shown);
	return around + shown + (shown < count || !count);
}

static void print_text(const struct ky_list *list, const struct style *style)
{
	const uint32_t count = ky_list_count(list);
	const uint32_t shown = style->rows && style->rows < count ? style->rows : count;
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
	for (uint32_t i = 0; i < shown; i++)
		print_row(table, ky_list_at(list, i));
	ky_cli_table_print(&table, 0);
	if (shown < count)
		printf("and %" PRIu32 " more\n", count - shown);
	for (uint32_t i = 0; i < shown; i++)
		print_damage(ky_list_at(list, i));
	/* Give each process its share of the lines below the table. */
	uint32_t left = style->rows ? style->rows + 1 - shown - (shown < count) : UINT32_MAX;
	for (uint32_t i = 0; style->categories && i < shown; i++)
		left -= print_categories(ky_list_at(list, i), left / (shown - i));
}

static void json_categories(struct ky_json_out *json, const struct ky_list_row *row)
{
	char name[NAME_BYTES];
	bool on;
	ky_json_out_begin(json, "category", '[');
	for (uint32_t i = 0; ky_drums_category(row->drums, 0, i, name, sizeof(name), &on); i++) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "name", name);
		ky_json_out_bool(json, "on", on);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

void ky_list_json_faults(struct ky_json_out *json, uint64_t lost, uint64_t damaged)
{
	const struct ky_info_count losses[] = {{"events: there was no room for them", lost, NULL},
					       {0}};
	const struct ky_info_count problems[] = {
		{"the program wrote over its own buffer", damaged, "buffer_damaged"}, {0}};
	ky_info_json_counts(json, losses, problems);
}

void ky_list_json_row(struct ky_json_out *json, const struct ky_list_row *row, bool categories)
{
	const struct ky_drums_facts *const facts = &row->facts;
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_int(json, "pid", facts->pid);
	ky_json_out_text(json, "name", facts->name);
	ky_json_out_uint(json, "threads", facts->threads);
	ky_json_out_uint(json, "categories", facts->categories);
	ky_json_out_uint(json, "categories_on", facts->categories_on);
	ky_json_out_uint(json, "events", facts->events);
	ky_json_out_real(json, "events_per_second",
			 row->per_second < 0 ? (double)NAN : row->per_second);
	ky_list_json_faults(json, facts->lost, facts->damaged);
	ky_json_out_uint(json, "damaged", facts->damaged);
	ky_json_out_uint(json, "recorders", facts->recorders);
	ky_json_out_uint(json, "memory_bytes", row->memory_bytes);
	if (categories)
		json_categories(json, row);
	ky_json_out_end(json, '}');
}

static void print_json(const struct ky_list *list, const struct style *style, bool one_line)
{
	struct ky_json_out json = {.file = stdout, .lines = one_line ? 0 : 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_begin(&json, "processes", '[');
	for (uint32_t i = 0; i < ky_list_count(list); i++)
		ky_list_json_row(&json, ky_list_at(list, i), style->categories);
	ky_json_out_end(&json, ']');
	ky_json_out_uint(&json, "hidden", ky_list_hidden(list));
	ky_json_out_uint(&json, "crowded", ky_list_crowded(list));
	ky_json_out_end(&json, '}');
}

/* Print the list; one_line: JSON on one line. */
static void print_list(const struct ky_list *list, const struct style *style, bool one_line)
{
	if (style->json)
		print_json(list, style, one_line);
	else
		print_text(list, style);
}

/* Write "12 processes may not be looked into: ..." into text, or "". */
static void hidden_text(const struct ky_list *list, char *text, size_t room)
{
	const uint32_t hidden = ky_list_hidden(list), crowded = ky_list_crowded(list);
	text[0] = '\0';
	if (crowded)
		snprintf(text, room,
			 "%" PRIu32
			 " %s of users with very many descriptors not looked into: use -p PID",
			 crowded, crowded == 1 ? "process" : "processes");
	else if (hidden)
		snprintf(text, room,
			 "%" PRIu32 " %s may not be looked into, and may have buffers too: run as "
			 "root to see them",
			 hidden, hidden == 1 ? "process" : "processes");
}

/* ---- --watch ---- */

/*
 * On a terminal a screen that is redrawn every second, as by top; otherwise a block of lines every second. Signals that end or
 * stop kymo arrive on a descriptor, so that the terminal is always restored first.
 */

#define EVERY_NS UINT64_C(1000000000)
/* Show the first rate soon. */
#define FIRST_NS UINT64_C(250000000)
#define LINES_AROUND 5u

struct watch {
	struct ky_screen screen; /* stays off for JSON */
	bool over;
	int signals;
	sigset_t before;
};

static int begin(struct watch *watch, bool json)
{
	sigset_t set;
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	watch->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (watch->signals < 0)
		return -errno;
	sigprocmask(SIG_BLOCK, &set, &watch->before);
	if (!json)
		ky_screen_open(&watch->screen, true);
	return 0;
}

static void end(struct watch *watch)
{
	ky_screen_leave(&watch->screen);
	sigprocmask(SIG_SETMASK, &watch->before, NULL);
	close(watch->signals);
}

/* Restore the shell's terminal on Ctrl-Z, and draw the screen again afterwards. */
static void stop(const struct watch *watch)
{
	ky_screen_leave(&watch->screen);
	raise(SIGSTOP);
	ky_screen_enter(&watch->screen, true);
}

static void take_signals(struct watch *watch)
{
	struct signalfd_siginfo info;
	while (read(watch->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			stop(watch);
		else if (info.ssi_signo != SIGWINCH)
			watch->over = true;
	}
}

static void take_keys(struct watch *watch)
{
	char keys[64];
	watch->over |= strpbrk(ky_screen_keys(&watch->screen, keys, sizeof(keys)), "qQ") != NULL;
}

static void print_title(const struct ky_list *list)
{
	double sum = 0;
	char rate[KY_QUANTITY_BYTES];
	for (uint32_t i = 0; i < ky_list_count(list); i++)
		sum += ky_list_at(list, i)->per_second > 0 ? ky_list_at(list, i)->per_second : 0;
	printf("%skymo%s  %" PRIu32 " %s with a buffer, %s events/s   q ends\n\n",
	       ky_cli_style("1"), ky_cli_plain(), ky_list_count(list),
	       ky_list_count(list) == 1 ? "process" : "processes",
	       ky_quantity_count(rate, (uint64_t)(sum + 0.5)));
}

static void draw(const struct ky_list *list, const struct style *style)
{
	char hidden[256];
	struct style fitting = *style;
	const unsigned lines = ky_screen_lines();
	fitting.rows = lines > LINES_AROUND + 1 ? lines - LINES_AROUND : 1;
	ky_screen_clear();
	print_title(list);
	print_list(list, &fitting, false);
	hidden_text(list, hidden, sizeof(hidden));
	if (*hidden)
		printf("%s%.*s%s", ky_cli_style("2"), (int)ky_cli_width(), hidden, ky_cli_plain());
	fflush(stdout);
}

static void print_block(const struct ky_list *list, const struct style *style, bool first)
{
	if (!first && !style->json)
		putchar('\n');
	if (!ky_list_count(list) && !style->json)
		puts("no process has a buffer");
	print_list(list, style, true);
	fflush(stdout);
}

/* Draw a screen at once; lines wait for the first rate. */
static int watch_list(struct ky_list *list, const struct style *style)
{
	struct watch watch = {0};
	uint64_t wait_ns = FIRST_NS;
	bool first = true;
	const int error = begin(&watch, style->json);
	if (error)
		return ky_cli_error("signals cannot be awaited: %s", strerror(-error));
	ky_list_round(list);
	ky_list_sample(list);
	if (watch.screen.on)
		draw(list, style);
	while (!watch.over) {
		if (ky_list_wait(list, wait_ns, watch.signals,
				 watch.screen.keys ? STDIN_FILENO : -1)) {
			take_signals(&watch);
			take_keys(&watch);
			if (watch.over || !watch.screen.on)
				continue;
		}
		wait_ns = EVERY_NS;
		ky_list_sample(list);
		if (watch.screen.on)
			draw(list, style);
		else
			print_block(list, style, first);
		first = false;
	}
	end(&watch);
	return KY_EXIT_DONE;
}

/* ---- the verb ---- */

/* The time between two counts of the events. */
#define MEASURED_NS UINT64_C(250000000)

struct request {
	struct ky_pids pids;
	bool watch;
	struct style style;
};

int ky_list_take_process(void *pids, const char *value)
{
	char message[KY_MESSAGE_BYTES];
	const int error = ky_processes_find(value, pids, message);
	if (error)
		ky_cli_error("%s", message);
	return !error ? 0 : error == -ESRCH ? KY_EXIT_NOTHING : KY_EXIT_FAILED;
}

static int take_process(void *context, const char *value)
{
	return ky_list_take_process(&((struct request *)context)->pids, value);
}

static int parse(struct request *request, int argc, char **argv)
{
	const int wrong = ky_options_read(request, argc, argv);
	if (wrong)
		return wrong;
	request->style.categories = request->pids.count > 0;
	if (optind < argc)
		return ky_cli_usage("'%s' is not an option: use -p PID|NAME for a process",
				    argv[optind]);
	return KY_EXIT_DONE;
}

/* Report that there is nothing to show, which is a failure only if the user named a process. */
static int report_none(const struct ky_list *list, const struct request *request)
{
	if (*ky_list_note(list) && ky_list_count(list) == 0) {
		ky_cli_error("%s", ky_list_note(list));
		return request->pids.count ? KY_EXIT_FAILED : KY_EXIT_DONE;
	}
	if (request->pids.count == 1)
		ky_cli_error(
			"process %d has no buffer: it has no kymo trace points, or none ran; start it "
			"with 'kymo run' or with KYMO_CATEGORIES='*'",
			(int)request->pids.at[0]);
	else if (request->pids.count)
		ky_cli_error(
			"none of these processes has a buffer: they have no kymo trace points, or none "
			"ran; start them with 'kymo run' or with KYMO_CATEGORIES='*'");
	else if (!request->style.json)
		ky_cli_error(
			"no process that you may look into has a buffer: a program with kymo trace points "
			"makes one when it traces, or when it is started with KYMO_CATEGORIES='*'");
	return request->pids.count ? KY_EXIT_FAILED : KY_EXIT_DONE;
}

static int list_once(struct ky_list *list, const struct request *request)
{
	char hidden[256];
	ky_list_round(list);
	ky_list_sample(list);
	if (ky_list_count(list))
		ky_list_wait(list, MEASURED_NS, -1, -1);
	ky_list_sample(list);
	if (ky_list_count(list) || request->style.json)
		print_list(list, &request->style, false);
	const int code = ky_list_count(list) ? KY_EXIT_DONE : report_none(list, request);
	if (ky_list_count(list) && *ky_list_note(list))
		ky_cli_error("%s", ky_list_note(list));
	hidden_text(list, hidden, sizeof(hidden));
	if (*hidden && !request->style.json)
		ky_cli_error("%s", hidden);
	return code;
}

static int list(const struct request *request)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_list *list;
	if (ky_list_open(&list, request->pids.at, request->pids.count, message) != 0)
		return ky_cli_error("%s", message);
	const int code =
		request->watch ? watch_list(list, &request->style) : list_once(list, request);
	ky_list_close(&list);
	return code;
}

static int run(int argc, char **argv)
{
	struct request request = {0};
	int code = parse(&request, argc, argv);
	if (code == KY_EXIT_DONE)
		code = list(&request);
	ky_pids_free(&request.pids);
	return code;
}

static const struct ky_option options[] = {
	{"pid", .kind = KY_OPTION_CALL, .take = take_process, .letter = 'p', .argument = "PID|NAME",
	 .help = "only this process, or those with this name, with their categories; may be given several "
		 "times",
	 .more = "A name is that of the process (/proc/PID/comm) or of its program's file."},
	{"watch", KY_OPTION_AT(FLAG, struct request, watch),
	 .help = "repeat every second, the busiest first, until q or Ctrl-C",
	 .more = "Without a terminal it prints a block of lines every second."},
	{"json", KY_OPTION_AT(FLAG, struct request, style.json),
	 .help = "print JSON; with --watch one object per line"},
	{0},
};

static const struct ky_section sections[] = {
	{"OUTPUT",
	 "`threads`: threads that trace, or did.\n\n"
	 "`categories`: how many are on, and how many there are.\n\n"
	 "`events/s`: events in the last quarter of a second; with `--watch` since the last screen.\n\n"
	 "`lost`: events that never reached a ring, because there was no room for the thread's, or because signal "
	 "handlers nested too deep. What a ring overwrites is not lost as long as no recorder wants it.\n\n"
	 "`recorders`: those that want events now: sessions of the program, and kymos outside.\n\n"
	 "`memory`: the part of the buffer that is in use."},
	{0},
};

const struct ky_verb ky_verb_list = {
	.name = "list",
	.summary = "show which processes trace now: threads, categories, rate, losses",
	.usage = "[OPTIONS]",
	.about =
		"Show every process with a kymo buffer that you may look into: its threads that trace, how many of "
		"its categories are on, events per second, events lost because no ring was free, recorders that want "
		"events, and the memory of its buffer. Looking costs the processes nothing and changes nothing in "
		"them, except that it switches off what a kymo that was killed left on.",
	.details =
		"The kernel decides which processes you may look into: those that you could attach a debugger to; "
		"root sees all. One line reports how many are hidden.",
	.status =
		"0: done, also when there is nothing to show; 1: failed, or a process that was named has no "
		"buffer; 2: wrong usage; 3: a process that was named does not exist.",
	.examples = "kymo list\n"
		    "kymo list --watch\n"
		    "kymo list -p server\n"
		    "kymo list --json | jq '.processes[] | select(.lost > 0)'",
	.related = "enable top doctor attach",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.sections = sections,
	.run = run,
};
