/* SPDX-License-Identifier: MIT */
/* test_perf_record.c: records of either byte order, whole and cut off at every byte. */
#include "process/perf_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

struct made {
	uint32_t type;
	uint16_t misc;
	bool big;
	uint8_t body[512];
	uint32_t bytes;
};

static void add(struct made *made, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		made->body[made->bytes + i] =
			(uint8_t)(value >> 8 * (made->big ? bytes - 1 - i : i));
	made->bytes += bytes;
}

static void add_text(struct made *made, const char *text)
{
	const size_t bytes = (strlen(text) + 8) & ~(size_t)7;
	memset(made->body + made->bytes, 0, bytes);
	memcpy(made->body + made->bytes, text, strlen(text));
	made->bytes += (uint32_t)bytes;
}

/* pid 10, tid 11, time 999, cpu 3, id 77. */
static void add_trailer(struct made *made)
{
	add(made, 10, 4);
	add(made, 11, 4);
	add(made, 999, 8);
	add(made, 3, 4);
	add(made, 0, 4);
	add(made, 77, 8);
}

static void make_map(struct made *made, uint16_t misc, bool big)
{
	*made = (struct made){.type = PERF_RECORD_MMAP2, .misc = misc, .big = big};
	add(made, 20, 4);
	add(made, 21, 4);
	add(made, 0x7f0000001000, 8);
	add(made, 0x3000, 8);
	add(made, 0x2000, 8);
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		made->body[made->bytes] = 16;
		for (unsigned i = 0; i < 20; i++)
			made->body[made->bytes + 4 + i] = (uint8_t)i;
		made->bytes += 24;
	} else {
		add(made, 8, 4);
		add(made, 1, 4);
		add(made, 4242, 8);
		add(made, 0, 8);
	}
	add(made, 5, 4);
	add(made, 2, 4);
	add_text(made, "/usr/lib/libx.so");
	add_trailer(made);
}

static struct ky_perf_raw raw_of(const struct made *made)
{
	return (struct ky_perf_raw){.type = made->type,
				    .misc = made->misc,
				    .bytes = made->bytes + KY_PERF_RECORD_HEAD_BYTES,
				    .body = made->body};
}

/* As it is in a ring, in memory of its size. */
static struct perf_event_header *head_of(const struct made *made, uint32_t bytes)
{
	struct perf_event_header *const head = malloc(sizeof(*head) + bytes);
	assert_non_null(head);
	*head = (struct perf_event_header){
		.type = made->type, .misc = made->misc, .size = (uint16_t)(sizeof(*head) + bytes)};
	memcpy(head + 1, made->body, bytes);
	return head;
}

/* Texts of the record are valid until the next call. */
static bool parse(struct ky_perf_record *record, const struct made *made)
{
	static struct perf_event_header *head;
	free(head);
	head = head_of(made, made->bytes);
	const bool parsed = ky_perf_record_parse(record, head, TYPE);
	assert_int_equal(ky_perf_record_time(head, TYPE), 999);
	return parsed;
}

static void the_trailer_is_by_sample_type(void **state)
{
	(void)state;
	assert_int_equal(ky_perf_record_trailer_bytes(TYPE), 32);
	assert_int_equal(ky_perf_record_trailer_bytes(PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN), 8);
	assert_int_equal(ky_perf_record_trailer_bytes(0), 0);
}

static void a_mapping_of_either_byte_order_is_read(void **state)
{
	(void)state;
	for (int big = 0; big < 2; big++) {
		struct made made;
		struct ky_perf_record record;
		struct ky_perf_where where;
		make_map(&made, PERF_RECORD_MISC_USER, big);
		const struct ky_perf_raw raw = raw_of(&made);
		ky_perf_record_where(&where, &raw, TYPE, 32, big);
		assert_int_equal(where.pid, 10);
		assert_int_equal(where.tid, 11);
		assert_int_equal(where.cpu, 3);
		assert_true(where.timed);
		assert_int_equal(where.time, 999);
		assert_int_equal(where.trailer_bytes, 32);
		assert_true(ky_perf_record_body(&record, &raw, 32, big));
		assert_int_equal(record.pid, 20);
		assert_int_equal(record.tid, 21);
		assert_int_equal(record.map.start, 0x7f0000001000);
		assert_int_equal(record.map.end, 0x7f0000004000);
		assert_int_equal(record.map.offset, 0x2000);
		assert_int_equal(record.map.device, UINT64_C(8) << 32 | 1);
		assert_int_equal(record.map.inode, 4242);
		assert_int_equal(record.map.protection, 5);
		assert_int_equal(record.map.flags, 2);
		assert_int_equal(record.path_bytes, 16);
		assert_string_equal(record.map.path, "/usr/lib/libx.so");
	}
}

static void a_build_id_takes_the_place_of_the_inode(void **state)
{
	(void)state;
	struct made made;
	struct ky_perf_record record;
	make_map(&made, PERF_RECORD_MISC_MMAP_BUILD_ID, KY_PERF_BIG_HERE);
	assert_true(parse(&record, &made));
	assert_int_equal(record.map.inode, 0);
	assert_int_equal(record.map.build_id_bytes, 16);
	assert_int_equal(record.map.build_id[15], 15);
	/* The size is what the record says, and no more than there is room for. */
	made.body[32] = 255;
	assert_true(parse(&record, &made));
	assert_int_equal(record.map.build_id_bytes, KY_BUILD_ID_MAX);
}

static void mappings_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	struct made made;
	struct ky_perf_record record;
	make_map(&made, PERF_RECORD_MISC_MMAP_DATA, KY_PERF_BIG_HERE);
	assert_false(parse(&record, &made));
	make_map(&made, 0, KY_PERF_BIG_HERE);
	memset(made.body + 16, 0, 8); /* no bytes */
	assert_false(parse(&record, &made));
	make_map(&made, 0, KY_PERF_BIG_HERE);
	memset(made.body + 16, 0xff, 8); /* over the end of all addresses */
	assert_false(parse(&record, &made));
	make_map(&made, 0, KY_PERF_BIG_HERE);
	memset(made.body + 64, 'x', 24); /* a path that does not end */
	assert_false(parse(&record, &made));
}

static void names_lives_and_switches_are_read(void **state)
{
	(void)state;
	struct ky_perf_record record;
	struct made made = {.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC};
	add(&made, 20, 4);
	add(&made, 21, 4);
	add_text(&made, "a name");
	add_trailer(&made);
	assert_true(parse(&record, &made));
	assert_int_equal(record.tid, 21);
	assert_string_equal(record.comm.name, "a name");
	assert_true(record.comm.exec);
	made = (struct made){.type = PERF_RECORD_EXIT};
	for (unsigned i = 0; i < 4; i++)
		add(&made, 30 + i, 4);
	add(&made, 998, 8);
	add_trailer(&made);
	assert_true(parse(&record, &made));
	assert_int_equal(record.pid, 30);
	assert_int_equal(record.task.parent_pid, 31);
	assert_int_equal(record.tid, 32);
	assert_int_equal(record.task.parent_tid, 33);
	assert_int_equal(record.task.time, 998);
	assert_int_equal(record.time, 999);
	made = (struct made){.type = PERF_RECORD_SWITCH_CPU_WIDE,
			     .misc = PERF_RECORD_MISC_SWITCH_OUT |
				     PERF_RECORD_MISC_SWITCH_OUT_PREEMPT};
	add(&made, 40, 4);
	add(&made, 41, 4);
	add_trailer(&made);
	assert_true(parse(&record, &made));
	assert_true(record.switched.out && record.switched.preempted);
	assert_int_equal(record.switched.other_tid, 41);
	assert_int_equal(record.tid, 11);
	made = (struct made){.type = PERF_RECORD_LOST};
	add(&made, 1, 8);
	add(&made, 12, 8);
	add_trailer(&made);
	assert_true(parse(&record, &made));
	assert_int_equal(record.lost, 12);
	made = (struct made){.type = PERF_RECORD_SAMPLE};
	for (unsigned i = 0; i < 8; i++)
		add(&made, i == 2 ? 999 : 0, 8);
	assert_false(parse(&record, &made));
}

static void records_that_are_cut_off_are_refused(void **state)
{
	(void)state;
	struct made made;
	struct ky_perf_record record;
	make_map(&made, 0, KY_PERF_BIG_HERE);
	for (uint32_t bytes = 0; bytes < made.bytes; bytes++) {
		struct perf_event_header *const head = head_of(&made, bytes);
		const bool parsed = ky_perf_record_parse(&record, head, TYPE);
		(void)ky_perf_record_time(head, TYPE);
		if (bytes < 64 + 32)
			assert_false(parsed);
		else if (parsed) /* then it has a path that ends */
			assert_true(strlen(record.map.path) < bytes - 64);
		free(head);
	}
}

#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |                \
	 PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)
#define READ_FORMAT (PERF_FORMAT_GROUP | PERF_FORMAT_ID)

static void make_sample(struct made *made, bool big)
{
	*made = (struct made){.type = PERF_RECORD_SAMPLE, .big = big};
	add(made, 0x1234, 8);
	add(made, 10, 4);
	add(made, 11, 4);
	add(made, 999, 8);
	add(made, 50, 8);
	add(made, 2, 8); /* values, each with an id */
	for (unsigned i = 0; i < 4; i++)
		add(made, 100 + i, 8);
	add(made, 3, 8); /* addresses */
	for (unsigned i = 0; i < 3; i++)
		add(made, 200 + i, 8);
	add(made, 4, 4); /* raw bytes */
	add(made, 0xabcd, 4);
}

static void a_sample_is_read_field_by_field(void **state)
{
	(void)state;
	for (int big = 0; big < 2; big++) {
		struct made made;
		struct ky_perf_fields fields;
		make_sample(&made, big);
		struct ky_perf_cursor cursor = {made.body, made.body + made.bytes, big, false};
		ky_perf_record_sample(&fields, &cursor, SAMPLE_TYPE, READ_FORMAT);
		assert_false(cursor.short_of);
		assert_ptr_equal(cursor.at, cursor.end);
		assert_true(fields.has_ip && fields.has_period);
		assert_int_equal(fields.ip, 0x1234);
		assert_int_equal(fields.period, 50);
		assert_int_equal(ky_perf_left(&fields.values), 40);
		assert_int_equal(fields.chain_words, 3);
		assert_int_equal(ky_perf_u64(fields.chain + 16, big), 202);
		assert_int_equal(fields.raw_bytes, 4);
		assert_int_equal(ky_perf_u32(fields.raw, big), 0xabcd);
	}
}

static void a_sample_that_is_cut_off_keeps_what_it_has(void **state)
{
	(void)state;
	struct made made;
	make_sample(&made, false);
	for (uint32_t bytes = 0; bytes < made.bytes; bytes++) {
		uint8_t *const own = malloc(bytes + 1);
		struct ky_perf_fields fields;
		assert_non_null(own);
		memcpy(own, made.body, bytes);
		struct ky_perf_cursor cursor = {own, own + bytes, false, false};
		ky_perf_record_sample(&fields, &cursor, SAMPLE_TYPE, READ_FORMAT);
		assert_true(cursor.short_of);
		assert_int_equal(fields.has_ip, bytes >= 8);
		assert_int_equal(fields.has_period, bytes >= 32);
		assert_int_equal(fields.chain_words, bytes >= 104 ? 3 : 0);
		free(own);
	}
}

static void counts_that_are_too_large_do_no_harm(void **state)
{
	(void)state;
	struct made made;
	struct ky_perf_fields fields;
	make_sample(&made, false);
	memset(made.body + 32, 0xff, 8);
	struct ky_perf_cursor cursor = {made.body, made.body + made.bytes, false, false};
	ky_perf_record_sample(&fields, &cursor, SAMPLE_TYPE, READ_FORMAT);
	assert_true(cursor.short_of);
	make_sample(&made, false);
	memset(made.body + 72, 0xff, 8);
	cursor = (struct ky_perf_cursor){made.body, made.body + made.bytes, false, false};
	ky_perf_record_sample(&fields, &cursor, SAMPLE_TYPE, READ_FORMAT);
	assert_true(cursor.short_of);
	assert_null(fields.chain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_trailer_is_by_sample_type),
		cmocka_unit_test(a_mapping_of_either_byte_order_is_read),
		cmocka_unit_test(a_build_id_takes_the_place_of_the_inode),
		cmocka_unit_test(mappings_that_make_no_sense_are_refused),
		cmocka_unit_test(names_lives_and_switches_are_read),
		cmocka_unit_test(records_that_are_cut_off_are_refused),
		cmocka_unit_test(a_sample_is_read_field_by_field),
		cmocka_unit_test(a_sample_that_is_cut_off_keeps_what_it_has),
		cmocka_unit_test(counts_that_are_too_large_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
