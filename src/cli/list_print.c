/* SPDX-License-Identifier: MIT */
/* list_print.c: prints kymo list, as text and as JSON. */
#include "cli/list.h"

#include "base/json_out.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 256

static const struct ky_cli_column columns[] = {
	{"pid", true, false},        {"name", false, true},     {"threads", true, false},
	{"categories", true, false}, {"events/s", true, false}, {"lost", true, false},
	{"recorders", true, false},  {"memory", true, false},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

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
		printf("%sprocess %d: its drum is damaged in %" PRIu64
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
	ky_cli_table_indent(table, 2);
	ky_cli_table_print(&table, stdout);
	if (shown < count)
		printf("  and %" PRIu32 " more\n", count - shown);
	return around + shown + (shown < count || !count);
}

static void print_text(const struct ky_list *list, const struct ky_list_style *style)
{
	const uint32_t count = ky_list_count(list);
	const uint32_t shown = style->rows && style->rows < count ? style->rows : count;
	struct ky_cli_table *table = ky_cli_table_new(columns, COLUMNS);
	for (uint32_t i = 0; i < shown; i++)
		print_row(table, ky_list_at(list, i));
	ky_cli_table_print(&table, stdout);
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

static void json_row(struct ky_json_out *json, const struct ky_list_row *row, bool categories)
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
	ky_json_out_uint(json, "lost", facts->lost);
	ky_json_out_uint(json, "damaged", facts->damaged);
	ky_json_out_uint(json, "recorders", facts->recorders);
	ky_json_out_uint(json, "memory_bytes", row->memory_bytes);
	if (categories)
		json_categories(json, row);
	ky_json_out_end(json, '}');
}

static void print_json(const struct ky_list *list, const struct ky_list_style *style, bool one_line)
{
	struct ky_json_out json = {.file = stdout, .lines = one_line ? 0 : 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_begin(&json, "processes", '[');
	for (uint32_t i = 0; i < ky_list_count(list); i++)
		json_row(&json, ky_list_at(list, i), style->categories);
	ky_json_out_end(&json, ']');
	ky_json_out_uint(&json, "hidden", ky_list_hidden(list));
	ky_json_out_end(&json, '}');
}

void ky_list_print(const struct ky_list *list, const struct ky_list_style *style, bool one_line)
{
	if (style->json)
		print_json(list, style, one_line);
	else
		print_text(list, style);
}

void ky_list_hidden_text(const struct ky_list *list, char *text, size_t room)
{
	const uint32_t hidden = ky_list_hidden(list);
	text[0] = '\0';
	if (hidden)
		snprintf(text, room,
			 "%" PRIu32 " %s may not be looked into, and may have drums too: run as "
			 "root to see them",
			 hidden, hidden == 1 ? "process" : "processes");
}
