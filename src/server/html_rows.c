/* SPDX-License-Identifier: MIT */
/*
 * html_rows.c: the rows of a table that go into the file. In a table in time order, those that begin within the range are one
 * run of rows, and only those that began before and still last are listed, so that the list stays short.
 */
#include "model/index.h"
#include "query/filter.h"
#include "server/html_parts.h"

#include <errno.h>
#include <stdlib.h>

uint32_t ky_html_rows_find(const struct ky_html_rows *rows, uint32_t row)
{
	if (row >= rows->first && row < rows->end)
		return rows->listed_count + (row - rows->first);
	uint32_t low = 0, high = rows->listed_count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (rows->listed[middle] < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rows->listed_count && rows->listed[low] == row ? low : KY_NONE;
}

int ky_html_rows_marked(struct ky_html_rows *rows, const uint8_t *marks, uint32_t count)
{
	uint32_t marked = 0, at = 0;
	for (uint32_t i = 0; i < count; i++)
		marked += marks[i] != 0;
	*rows = (struct ky_html_rows){0};
	if (marked == count) {
		rows->end = count;
		return 0;
	}
	rows->listed = malloc(((size_t)marked + 1) * sizeof(*rows->listed));
	if (!rows->listed)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (marks[i])
			rows->listed[at++] = i;
	}
	rows->listed_count = marked;
	/* The list comes first; the run after it is empty. */
	rows->first = rows->end = count;
	return 0;
}

static bool reaches_in(const struct ky_html_times *times, uint32_t row, int64_t from_ns,
		       int64_t to_ns)
{
	const int64_t ts = times->ts[row], dur = times->dur ? times->dur[row] : 0;
	if (ts >= from_ns)
		return ts < to_ns;
	return (dur < 0 ? times->open_ends_ns : ky_add_clamped(ts, dur)) > from_ns;
}

/* List the rows before `before` that reach in; if list is NULL, only count them. */
static uint32_t list(const struct ky_html_times *times, uint32_t before, int64_t from_ns,
		     int64_t to_ns, uint32_t *listed)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < before; i++) {
		if (!reaches_in(times, i, from_ns, to_ns))
			continue;
		if (listed)
			listed[count] = i;
		count++;
	}
	return count;
}

int ky_html_rows_in(struct ky_html_rows *rows, const struct ky_html_times *times, bool ordered,
		    int64_t from_ns, int64_t to_ns)
{
	*rows = (struct ky_html_rows){.end = times->count};
	if (from_ns == INT64_MIN && to_ns == INT64_MAX)
		return 0;
	if (ordered) {
		rows->first = ky_index_time(times->ts, times->count, from_ns);
		rows->end = ky_index_time(times->ts, times->count, to_ns);
		rows->end = rows->end > rows->first ? rows->end : rows->first;
	} else {
		rows->first = rows->end = times->count;
	}
	rows->listed_count = list(times, rows->first, from_ns, to_ns, NULL);
	rows->listed = malloc(((size_t)rows->listed_count + 1) * sizeof(*rows->listed));
	if (!rows->listed)
		return -ENOMEM;
	list(times, rows->first, from_ns, to_ns, rows->listed);
	return 0;
}
