/* SPDX-License-Identifier: MIT */
/*
 * html_export.h: writes a trace and the page as one HTML file, which opens from disk without a server.
 *
 * The data is a <script type="application/x-kymo" id="kymo-data"> with base64 of gzip. A page that has it answers its own
 * requests instead of a server (viewer/src/embedded*.ts). docs/formats/html.md describes the format.
 *
 *   rows that reach into the range, and what they refer to ─▶ columns ────────▶ gzip ─▶ base64 ─▶ descriptor
 *   (html_data.c)                                             (html_columns.c)  (html_export.c)
 */
#ifndef KY_SERVER_EXPORT_HTML_H
#define KY_SERVER_EXPORT_HTML_H

#include "base/json_out.h"
#include "server/view.h"

struct ky_html_export {
	const struct ky_view *view;
	int64_t from_ns, to_ns; /* of the trace's clock; KY_TIME_NONE: open */
};

/* Write to a descriptor. Return 0, -EFBIG if it is too large for a page, -ENOMEM or -errno. */
int ky_html_export(int fd, const struct ky_html_export *what, char message[256]);

/* ---- private ---- */

/* The limits of what a page handles well. */
#define KY_HTML_EVENTS_MAX UINT64_C(5000000)
#define KY_HTML_BYTES_MAX (UINT64_C(200) << 20)

/* Some rows of a table, in order: a few listed ones, then [first, end). In the file they are numbered from 0. */
struct ky_html_rows {
	uint32_t *listed;
	uint32_t listed_count;
	uint32_t first, end;
};

static inline uint32_t ky_html_rows_count(const struct ky_html_rows *rows)
{
	return rows->listed_count + (rows->end - rows->first);
}

static inline uint32_t ky_html_rows_at(const struct ky_html_rows *rows, uint32_t number)
{
	return number < rows->listed_count ? rows->listed[number]
					   : rows->first + (number - rows->listed_count);
}

/* Return a row's number in the file, or KY_NONE. */
uint32_t ky_html_rows_find(const struct ky_html_rows *rows, uint32_t row);

/* Times of a table's rows. dur may be NULL. */
struct ky_html_times {
	const int64_t *ts, *dur;
	uint32_t count;
	int64_t open_ends_ns; /* where a duration of -1 ends */
};

/* Select the rows that reach into [from, to). ordered: sorted by ts. Return 0 or -ENOMEM. */
int ky_html_rows_in(struct ky_html_rows *rows, const struct ky_html_times *times, bool ordered,
		    int64_t from_ns, int64_t to_ns);

enum ky_html_table {
	KY_HTML_PROCESSES,
	KY_HTML_THREADS,
	KY_HTML_TRACKS,
	KY_HTML_SLICES,
	KY_HTML_COUNTERS,
	KY_HTML_SCHED,
	KY_HTML_STATES,
	KY_HTML_SAMPLE_SPANS,
	KY_HTML_SAMPLES,
	KY_HTML_LOSSES,
	KY_HTML_FLOWS,
	KY_HTML_ARG_SETS,
	KY_HTML_ARGS,
	KY_HTML_CALLSITES,
	KY_HTML_FRAMES,
	KY_HTML_MAPPINGS,
	KY_HTML_TABLES
};

struct ky_html_data {
	const struct ky_view *view;
	const struct ky_trace *trace;
	int64_t from_ns, to_ns; /* INT64_MIN and INT64_MAX when open */
	struct ky_html_rows rows[KY_HTML_TABLES];
	uint32_t *arg_sets;     /* by set: its number in the file, 0: none */
	uint32_t *strings;      /* by string: its number in the file, 0: none */
	uint32_t strings_count; /* in the file, including number 0 */
	uint32_t main_event;    /* string: the event of most samples; 0: all the same */
	/* The previous row while columns are written: a likely value is stored as 0. */
	uint32_t *last;        /* by track: slice */
	uint32_t *category_of; /* by name: category */
	uint8_t *type_of;      /* by key of an argument: type */
};

/* Select the rows and what they refer to, except strings. Return 0, -ENOMEM, or -EFBIG. */
int ky_html_data_choose(struct ky_html_data *data);
void ky_html_data_free(struct ky_html_data *data);

/* Compresses, encodes as base64, and writes. After an error nothing more is done. */
struct ky_html_out;
void ky_html_out_data(struct ky_html_out *out, const void *bytes, size_t count);
int ky_html_out_error(const struct ky_html_out *out);

/* Number the strings that columns use. Return 0 or -ENOMEM. */
int ky_html_columns_strings(struct ky_html_data *data);
/* Write "columns": [["slices.ts", "t", 123], ...]. */
void ky_html_columns_list(const struct ky_html_data *data, struct ky_json_out *json);
void ky_html_columns_write(struct ky_html_data *data, struct ky_html_out *out);

/* Export with a given page, for tests. */
int ky_html_export_page(int fd, const struct ky_html_export *what, const char *page,
			size_t page_bytes, char message[256]);

#endif
