/* SPDX-License-Identifier: MIT */
/*
 * test_columns.c: .kymo files of columns. Every column of every table is read back byte for byte; a file that is damaged or
 * cut off anywhere loses the rows behind that, counted, and nothing else; later versions' tables and columns are left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fuzz/fuzz_load.h"
#include "formats/compress.h"
#include "formats/export.h"
#include "formats/kymo/kymo_columns.h"
#include "formats/out.h"
#include "formats/part.h"
#include "formats/xxh64.h"
#include "model/kernel.h"
#include "model/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- traces ---- */

static uint64_t random_state;

static uint64_t random_next(void)
{
	random_state += 0x9e3779b97f4a7c15u;
	uint64_t z = random_state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint32_t str(struct ky_trace *t, const char *text)
{
	return ky_string_z(t, text);
}

static uint32_t some_args(struct ky_trace *t, uint64_t number)
{
	ky_args_begin(t);
	ky_arg_int(t, str(t, "args.int"), -(int64_t)number);
	ky_arg_real(t, str(t, "args.real"), (double)number / 3);
	ky_arg_string(t, str(t, "args.text"), ky_string(t, "a\0b", 3));
	ky_arg_json(t, str(t, "args.json"), str(t, "{\"a\":1}"));
	ky_arg_null(t, str(t, "args.null"));
	return ky_args_end(t);
}

static void put_kernel(struct ky_trace *t, int64_t ts, uint32_t i)
{
	const struct ky_switch event = {.cpu = i % 4,
					.prev_tid = (int32_t)(i % 7),
					.prev_state = str(t, "S"),
					.next_tid = (int32_t)(i % 5) + 1,
					.next_comm = str(t, "task")};
	ky_put_switch(t, ts, &event);
	ky_put_waking(t, ts, (int32_t)(i % 7), str(t, "task"), 3);
	ky_put_raw(t, ts, i % 4, (int32_t)(i % 5), str(t, "sys_enter"), some_args(t, i));
}

static void put_rest(struct ky_trace *t)
{
	const struct ky_clock_reading readings[] = {{KY_CLOCK_BOOTTIME, 1000},
						    {KY_CLOCK_REALTIME, 1700000000000000000}};
	ky_put_clocks(t, 1000, readings, 2);
	ky_put_metadata(t, "system", str(t, "Linux"));
	ky_put_metadata_number(t, "size", INT64_MIN);
	ky_problem(t, "something_wrong", KY_ERROR, 77, "at %d", 77);
	ky_put_lost(t, KY_TIME_NONE, KY_NONE, KY_NONE, 5, KY_LOSS_RING);
	ky_put_lost(t, 1234, ky_thread(t, 1, 2), 3, 6, KY_LOSS_FTRACE);
}

/* One of everything, rows times. */
static struct ky_trace *make_trace(uint32_t rows)
{
	struct ky_trace *t;
	assert_int_equal(ky_trace_open(&t), 0);
	random_state = rows;
	const uint32_t a = ky_track_of_thread(t, ky_thread(t, 1, 2));
	const uint32_t b = ky_track_of_thread(t, ky_thread(t, 3, 4));
	const uint32_t counter = ky_track_counter(t, KY_TRACK_COUNTER, KY_NONE, str(t, "c"));
	const struct ky_mapping_spec mapping = {.name = str(t, "/bin/x"), .start = UINT64_MAX - 5};
	const uint32_t frame = ky_frame(t, ky_mapping(t, &mapping), 5, str(t, "main"), 0, 0);
	const uint32_t site = ky_callsite(t, ky_callsite(t, KY_NONE, frame), frame);
	int64_t ts = -50;
	for (uint32_t i = 0; i < rows; i++) {
		char name[32];
		snprintf(name, sizeof(name), "name %u", (unsigned)(random_next() % 300));
		ts += (int64_t)(random_next() % 1000);
		ky_put_begin(t, ts, a, str(t, "cat"), str(t, name), i % 3 ? 0 : some_args(t, i));
		ky_put_flow(t, ts, a, KY_FLOW_BEGIN, KY_BIND_LAST, i);
		ky_put_instant(t, ts, a, 0, str(t, ""), 0);
		ky_put_counter(t, ts, counter, (double)random_next());
		ky_put_complete(t, ts + 1, 5, b, 0, str(t, "done"), 0);
		if (i % 2)
			ky_put_flow(t, ts + 1, b, KY_FLOW_END, KY_BIND_LAST, i);
		ky_put_end(t, ts + 8, a, 0, 0, 0);
		ky_put_sample(t, ts, ky_thread(t, 1, 2), i % 4 ? site : KY_NONE, i % 2,
			      KY_CPU_MODE_USER, 1.5, str(t, "cycles"));
		ky_put_log(t, ts, KY_NONE, 4, str(t, "tag"), str(t, name));
		put_kernel(t, ts, i);
	}
	ky_put_begin(t, ts, a, 0, str(t, "never ends"), 0);
	put_rest(t);
	assert_int_equal(ky_trace_finish(t, NULL, NULL), 0);
	return t;
}

/* ---- files in memory ---- */

struct file {
	uint8_t *data;
	size_t bytes;
};

static int keep_all(struct ky_out *out, const void *data, size_t bytes)
{
	return fwrite(data, 1, bytes, out->context) == bytes ? 0 : -1;
}

static struct file write_part(const struct ky_trace *trace,
			      const struct ky_export_selection *selection)
{
	struct file file = {0};
	struct ky_out out;
	struct ky_export_left left = {0};
	const struct ky_export_left none = {0};
	const struct ky_export_job job = {
		.trace = trace, .selection = selection, .out = &out, .left = &left};
	assert_int_equal(ky_out_init(&out, 0), 0);
	out.push = keep_all;
	out.context = open_memstream((char **)&file.data, &file.bytes);
	assert_int_equal(ky_exporter_kymo.write(&job), 0);
	assert_int_equal(ky_out_push(&out), 0);
	fclose(out.context);
	ky_out_free(&out);
	assert_memory_equal(&left, &none, sizeof(left));
	return file;
}

static struct file write_all(const struct ky_trace *trace)
{
	const struct ky_export_selection all = {.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE};
	return write_part(trace, &all);
}

static struct ky_trace *load(const struct file *file)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	if (ky_load_memory(&trace, file->data, file->bytes, NULL, message) != 0)
		fail_msg("%s", message);
	fuzz_check_trace(trace);
	return trace;
}

static uint32_t rows_of(const struct ky_trace *trace, uint32_t table)
{
	return ((const struct ky_rows *)ky_table_of(trace, &ky_tables[table]))->count;
}

/* Compare the first rows of a table. */
static void expect_rows(const struct ky_trace *a, const struct ky_trace *b, uint32_t table,
			uint32_t rows)
{
	const struct ky_table_spec *spec = &ky_tables[table];
	for (uint32_t i = 0; i < spec->columns_count; i++) {
		const void *left = *ky_column_of(ky_table_of(a, spec), &spec->columns[i]);
		const void *right = *ky_column_of(ky_table_of(b, spec), &spec->columns[i]);
		if (rows && memcmp(left, right, (size_t)rows * spec->columns[i].item_bytes) != 0)
			fail_msg("%s.%s differs", spec->name, spec->columns[i].name);
	}
}

static void expect_strings(const struct ky_trace *a, const struct ky_trace *b)
{
	assert_int_equal(a->strings.count, b->strings.count);
	assert_int_equal(a->strings.bytes_used, b->strings.bytes_used);
	assert_memory_equal(a->strings.bytes, b->strings.bytes, a->strings.bytes_used);
}

static void expect_same(const struct ky_trace *a, const struct ky_trace *b)
{
	int64_t left, right;
	expect_strings(a, b);
	for (uint32_t i = 0; i < ky_tables_count; i++) {
		assert_int_equal(rows_of(a, i), rows_of(b, i));
		expect_rows(a, b, i, rows_of(a, i));
	}
	assert_int_equal(a->begin_ns, b->begin_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->lost, b->lost);
	assert_int_equal(a->clock, b->clock);
	assert_true(ky_clocks_convert(a->clocks, a->clock, KY_CLOCK_REALTIME, 5, &left));
	assert_true(ky_clocks_convert(b->clocks, b->clock, KY_CLOCK_REALTIME, 5, &right));
	assert_int_equal(left, right);
}

/* ---- whole files ---- */

static void expect_round_trip(uint32_t rows)
{
	struct ky_trace *trace = make_trace(rows);
	struct file file = write_all(trace);
	struct ky_trace *back = load(&file);
	expect_same(trace, back);
	struct file again = write_all(back);
	assert_int_equal(file.bytes, again.bytes);
	assert_memory_equal(file.data, again.data, file.bytes);
	free(file.data);
	free(again.data);
	ky_trace_close(&trace);
	ky_trace_close(&back);
}

static void test_every_column_is_read_back(void **state)
{
	(void)state;
	expect_round_trip(0);
	expect_round_trip(1);
	expect_round_trip(1000);
}

static void test_columns_of_several_sections_are_read_back(void **state)
{
	(void)state;
	expect_round_trip(KY_KYMO_COLUMN_ROWS / 2 + 5000);
}

/* All tables have rows: a table that is forgotten would go unnoticed. */
static void test_the_trace_has_rows_in_every_table(void **state)
{
	(void)state;
	struct ky_trace *trace = make_trace(10);
	for (uint32_t i = 0; i < ky_tables_count; i++)
		assert_true(rows_of(trace, i) > 0);
	ky_trace_close(&trace);
}

/* The columns of tables.c are all members of the structs. */
static void test_no_column_is_missing(void **state)
{
	(void)state;
	size_t bytes = 0, tables = 0;
	for (uint32_t i = 0; i < ky_tables_count; i++) {
		bytes += sizeof(struct ky_rows) + ky_tables[i].columns_count * sizeof(void *);
		tables = ky_tables[i].offset > tables ? ky_tables[i].offset : tables;
	}
	assert_int_equal(bytes,
			 offsetof(struct ky_trace, clocks) - offsetof(struct ky_trace, processes));
}

/* ---- one section ---- */

static void expect_packed(struct ky_kymo_packer *packer, const void *items, uint8_t item_bytes,
			  uint32_t rows)
{
	static uint64_t back[4096];
	struct ky_kymo_column column = {.item_bytes = item_bytes, .first = 1000, .rows = rows};
	const char *what;
	const uint8_t *stored = ky_kymo_pack_column(packer, items, &column);
	uint8_t *copy = malloc(column.stored_bytes + 1u);
	memcpy(copy, stored, column.stored_bytes);
	memset(back, 0xaa, sizeof(back));
	assert_true(ky_kymo_unpack_column(packer, &column, copy, back, &what));
	assert_memory_equal(items, back, (size_t)rows * item_bytes);
	free(copy);
}

static void test_any_cells_can_be_packed(void **state)
{
	(void)state;
	static const uint64_t odd[] = {
		0,          1,          UINT64_MAX, INT64_MAX, INT64_MAX + 1ull,
		UINT32_MAX, 0x80000000, 255,        65535,     0x7fffffff};
	struct ky_kymo_packer packer;
	uint64_t cells[4096];
	assert_int_equal(ky_kymo_packer_open(&packer), 0);
	random_state = 1;
	for (uint32_t round = 0; round < 200; round++) {
		const uint32_t rows = (uint32_t)(random_next() % 4096);
		const uint32_t bits = (uint32_t)(random_next() % 64);
		for (uint32_t i = 0; i < 4096; i++)
			cells[i] = round % 2 ? odd[random_next() % 10] : random_next() >> bits;
		for (uint8_t bytes = 1; bytes <= 8; bytes *= 2)
			expect_packed(&packer, cells, bytes, rows);
	}
	ky_kymo_packer_close(&packer);
}

/* ---- damage ---- */

static bool next_chunk(const struct file *file, size_t *at, struct ky_kymo_chunk *chunk)
{
	if (*at + sizeof(*chunk) > file->bytes)
		return false;
	memcpy(chunk, file->data + *at, sizeof(*chunk));
	assert_int_equal(chunk->magic, KY_KYMO_MAGIC);
	return true;
}

/* Each table has rows of the whole one, from the first on, or cells that say "none". */
static void expect_beginning(const struct ky_trace *whole, const struct ky_trace *part)
{
	for (uint32_t i = 0; i < ky_tables_count; i++) {
		const struct ky_table_spec *spec = &ky_tables[i];
		const bool own = !strcmp(spec->name, "problems") || !strcmp(spec->name, "losses");
		if (!own)
			assert_true(rows_of(part, i) <= rows_of(whole, i));
		if (spec->events)
			expect_rows(whole, part, i, 0);
	}
	for (uint32_t i = 0; i < part->slices.rows.count; i++)
		assert_int_equal(part->slices.ts[i], whole->slices.ts[i]);
}

static bool has_problem(const struct ky_trace *trace, const char *name)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++) {
		const char *const text = ky_text_of(trace, trace->problems.name[i]);
		if (text && !strcmp(text, name))
			return true;
	}
	return false;
}

static void test_a_damaged_section_costs_the_rows_behind_it(void **state)
{
	(void)state;
	struct ky_trace *trace = make_trace(100);
	struct file file = write_all(trace);
	struct ky_kymo_chunk chunk;
	for (size_t at = 0; next_chunk(&file, &at, &chunk);
	     at += chunk.head_bytes + chunk.body_bytes) {
		uint8_t *byte = file.data + at + chunk.head_bytes + chunk.body_bytes / 2;
		*byte ^= 0x10;
		struct ky_trace *part = load(&file);
		expect_beginning(trace, part);
		/* Of the two schemas one is enough. */
		assert_true(chunk.type != KY_KYMO_COLUMN || has_problem(part, "kymo_damaged"));
		ky_trace_close(&part);
		*byte ^= 0x10;
	}
	free(file.data);
	ky_trace_close(&trace);
}

static void test_lost_rows_are_counted(void **state)
{
	(void)state;
	struct ky_trace *trace = make_trace(100);
	struct file file = write_all(trace);
	struct ky_kymo_chunk chunk;
	uint32_t found = 0;
	for (size_t at = 0; next_chunk(&file, &at, &chunk);
	     at += chunk.head_bytes + chunk.body_bytes) {
		struct ky_kymo_column column;
		memcpy(&column, file.data + at + chunk.head_bytes, sizeof(column));
		if (chunk.type != KY_KYMO_COLUMN ||
		    strcmp(ky_kymo_table(column.table)->name, "slices") != 0 || column.column != 0)
			continue;
		found++;
		file.data[at + chunk.head_bytes + 41] ^= 1;
		struct ky_trace *part = load(&file);
		assert_int_equal(part->slices.rows.count, 0);
		assert_int_equal(part->counters.rows.count, trace->counters.rows.count);
		/* Flows go with their slices. */
		assert_true(part->lost >= trace->lost + trace->slices.rows.count);
		ky_trace_close(&part);
	}
	assert_int_equal(found, 1);
	free(file.data);
	ky_trace_close(&trace);
}

static void test_a_file_may_be_cut_off_anywhere(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace = make_trace(20);
	struct file file = write_all(trace);
	uint32_t loaded = 0;
	for (size_t bytes = file.bytes - 1; bytes > 8; bytes -= bytes > 600 ? 97 : 1) {
		struct ky_trace *part;
		const int error = ky_load_memory(&part, file.data, bytes, NULL, message);
		if (error) {
			assert_true(bytes < 4096 && message[0]);
			continue;
		}
		fuzz_check_trace(part);
		expect_beginning(trace, part);
		assert_true(has_problem(part, "kymo_damaged"));
		loaded++;
		ky_trace_close(&part);
	}
	assert_true(loaded > 50);
	free(file.data);
	ky_trace_close(&trace);
}

/* ---- other versions ---- */

static void add(struct file *file, const void *data, size_t bytes)
{
	file->data = realloc(file->data, file->bytes + bytes);
	assert_non_null(file->data);
	memcpy(file->data + file->bytes, data, bytes);
	file->bytes += bytes;
}

static void add_chunk(struct file *file, struct ky_kymo_chunk chunk, const uint8_t *body)
{
	chunk.body_hash = ky_xxh64(body, chunk.body_bytes);
	chunk.head_hash = ky_xxh64(&chunk, offsetof(struct ky_kymo_chunk, head_hash));
	add(file, &chunk, sizeof(chunk));
	add(file, body, chunk.body_bytes);
}

/* Write the schema again, not compressed, with one name changed. */
static void add_schema(struct file *file, struct ky_kymo_chunk chunk, const uint8_t *body,
		       const char *from, const char *to)
{
	struct ky_kymo_schema head;
	struct ky_zstd *zstd;
	uint8_t text[16384] = {0};
	memcpy(&head, body, sizeof(head));
	assert_int_equal(ky_zstd_open(&zstd), 0);
	assert_true(head.bytes < sizeof(text) - sizeof(head));
	assert_int_equal(ky_zstd_decompress(zstd, text + sizeof(head), head.bytes,
					    body + sizeof(head), head.stored_bytes),
			 head.bytes);
	ky_zstd_close(&zstd);
	uint8_t *name = memmem(text, sizeof(text), from, strlen(from));
	assert_non_null(name);
	memcpy(name, to, strlen(to));
	head.stored_bytes = head.bytes;
	memcpy(text, &head, sizeof(head));
	chunk.body_bytes = (uint32_t)KY_KYMO_PADDED(sizeof(head) + head.bytes);
	add_chunk(file, chunk, text);
}

/* Rename a column or table in the file's schema; the end is left out, its places are others now. */
static struct file renamed(const struct file *file, const char *from, const char *to)
{
	struct file made = {0};
	struct ky_kymo_chunk chunk;
	for (size_t at = 0; next_chunk(file, &at, &chunk);
	     at += chunk.head_bytes + chunk.body_bytes) {
		const uint8_t *body = file->data + at + chunk.head_bytes;
		if (chunk.type == KY_KYMO_SCHEMA)
			add_schema(&made, chunk, body, from, to);
		else if (chunk.type != KY_KYMO_END && chunk.type != KY_KYMO_PLACES)
			add_chunk(&made, chunk, body);
	}
	return made;
}

static void test_unknown_columns_are_left_out(void **state)
{
	(void)state;
	struct ky_trace *trace = make_trace(50);
	struct file file = write_all(trace);
	struct file other = renamed(&file, "blocked_function", "unknown_function");
	struct ky_trace *back = load(&other);
	assert_int_equal(back->thread_states.rows.count, trace->thread_states.rows.count);
	for (uint32_t i = 0; i < back->thread_states.rows.count; i++)
		assert_int_equal(back->thread_states.blocked_function[i], 0);
	assert_memory_equal(back->thread_states.ts, trace->thread_states.ts,
			    trace->thread_states.rows.count * sizeof(int64_t));
	ky_trace_close(&back);
	free(other.data);
	other = renamed(&file, "raw_events", "new_events");
	back = load(&other);
	assert_int_equal(back->raw_events.rows.count, 0);
	assert_int_equal(back->slices.rows.count, trace->slices.rows.count);
	ky_trace_close(&back);
	free(other.data);
	free(file.data);
	ky_trace_close(&trace);
}

static void test_a_later_version_is_refused(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace = make_trace(1), *back;
	struct file file = write_all(trace), made = {0};
	struct ky_kymo_chunk chunk;
	struct ky_kymo_head head;
	size_t at = 0;
	assert_true(next_chunk(&file, &at, &chunk));
	memcpy(&head, file.data + chunk.head_bytes, sizeof(head));
	head.version = head.version_min = 4;
	add_chunk(&made, chunk, (const uint8_t *)&head);
	at = chunk.head_bytes + chunk.body_bytes;
	add(&made, file.data + at, file.bytes - at);
	assert_int_equal(ky_load_memory(&back, made.data, made.bytes, NULL, message), -EBADMSG);
	assert_non_null(strstr(message, "version 4"));
	free(file.data);
	free(made.data);
	ky_trace_close(&trace);
}

/* ---- hostile files: the bytes are right, and what they say is not ---- */

static void test_a_claim_takes_no_memory(void **state)
{
	(void)state;
	struct ky_trace *trace = make_trace(5);
	struct file file = write_all(trace), made = {0};
	struct ky_kymo_chunk chunk;
	for (size_t at = 0; next_chunk(&file, &at, &chunk);
	     at += chunk.head_bytes + chunk.body_bytes) {
		uint8_t body[1u << 16];
		struct ky_kymo_column column;
		assert_true(chunk.body_bytes <= sizeof(body));
		memcpy(body, file.data + at + chunk.head_bytes, chunk.body_bytes);
		if (chunk.type == KY_KYMO_COLUMN) {
			memcpy(&column, body, sizeof(column));
			column.rows = KY_KYMO_COLUMN_ROWS; /* of nothing */
			column.width = 0;
			column.raw_bytes = column.stored_bytes = 0;
			memcpy(body, &column, sizeof(column));
		}
		add_chunk(&made, chunk, body);
	}
	struct ky_trace *back = load(&made);
	assert_int_equal(back->slices.rows.count, 0);
	assert_true(back->lost > trace->lost);
	ky_trace_close(&back);
	free(file.data);
	free(made.data);
	ky_trace_close(&trace);
}

/* ---- parts ---- */

static void test_a_part_has_what_is_selected(void **state)
{
	(void)state;
	struct ky_trace *trace = make_trace(300);
	const int64_t from = trace->begin_ns + 20000, to = trace->begin_ns + 80000;
	const struct ky_export_selection selection = {.from_ns = from, .to_ns = to, .cut = true};
	struct file file = write_part(trace, &selection);
	struct ky_trace *part = load(&file);
	assert_true(part->begin_ns >= from && part->end_ns <= to);
	assert_true(part->slices.rows.count > 10 &&
		    part->slices.rows.count < trace->slices.rows.count);
	assert_true(part->sched.rows.count && part->raw_events.rows.count);
	assert_true(part->logs.rows.count && part->samples.rows.count);
	assert_true(part->flows.rows.count && part->flow_ends.rows.count);
	assert_int_equal(part->counters.ts[0], from);
	assert_int_equal(part->metadata.rows.count, trace->metadata.rows.count);
	assert_true(part->args.rows.count < trace->args.rows.count);
	for (uint32_t i = 0; i < part->slices.rows.count; i++)
		assert_true(part->slices.dur[i] == -1 ||
			    part->slices.ts[i] + part->slices.dur[i] <= to);
	ky_trace_close(&part);
	free(file.data);
	ky_trace_close(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_column_is_read_back),
		cmocka_unit_test(test_columns_of_several_sections_are_read_back),
		cmocka_unit_test(test_the_trace_has_rows_in_every_table),
		cmocka_unit_test(test_no_column_is_missing),
		cmocka_unit_test(test_any_cells_can_be_packed),
		cmocka_unit_test(test_a_damaged_section_costs_the_rows_behind_it),
		cmocka_unit_test(test_lost_rows_are_counted),
		cmocka_unit_test(test_a_file_may_be_cut_off_anywhere),
		cmocka_unit_test(test_unknown_columns_are_left_out),
		cmocka_unit_test(test_a_later_version_is_refused),
		cmocka_unit_test(test_a_claim_takes_no_memory),
		cmocka_unit_test(test_a_part_has_what_is_selected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
