/* SPDX-License-Identifier: MIT */
/*
 * test_config.c: what a TraceConfig becomes as session options. Messages are put together by hand
 * here, from the inside out.
 */
#include "core/glob.h"
#include "sink/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct proto {
	uint8_t data[4096];
	size_t bytes;
};

static void put_varint(struct proto *p, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		p->data[p->bytes++] = (uint8_t)(value | 0x80);
	p->data[p->bytes++] = (uint8_t)value;
}

static void put_number(struct proto *p, unsigned field, uint64_t value)
{
	put_varint(p, field << 3);
	put_varint(p, value);
}

static void put_bytes(struct proto *p, unsigned field, const void *data, size_t bytes)
{
	put_varint(p, field << 3 | 2);
	put_varint(p, bytes);
	memcpy(p->data + p->bytes, data, bytes);
	p->bytes += bytes;
}

static void put_text(struct proto *p, unsigned field, const char *text)
{
	put_bytes(p, field, text, strlen(text));
}

static void put_message(struct proto *p, unsigned field, const struct proto *inner)
{
	put_bytes(p, field, inner->data, inner->bytes);
}

static void put_buffer(struct proto *trace, uint64_t size_kb, uint64_t fill_policy)
{
	struct proto buffer = {.bytes = 0};

	put_number(&buffer, 1, size_kb);
	if (fill_policy)
		put_number(&buffer, 4, fill_policy);
	put_message(trace, 1, &buffer);
}

/* A data source; enabled and disabled are NULL-terminated. The name comes last on purpose. */
static void put_source(struct proto *trace, const char *name, const char *const *enabled,
		       const char *const *disabled)
{
	struct proto track_event = {.bytes = 0};
	struct proto config = {.bytes = 0};
	struct proto source = {.bytes = 0};

	for (; *enabled; enabled++)
		put_text(&track_event, 2, *enabled);
	for (; *disabled; disabled++)
		put_text(&track_event, 1, *disabled);
	put_text(&track_event, 3, "slow");
	put_text(&track_event, 4, "fast");
	put_message(&config, 113, &track_event);
	put_text(&config, 1, name);
	put_message(&source, 1, &config);
	put_message(trace, 2, &source);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE ((const char *const[]){NULL})

static struct ky_config decode(const struct proto *trace)
{
	struct ky_config config;

	assert_int_equal(ky_config_decode(&config, trace->data, trace->bytes), 0);
	return config;
}

static void expect_categories(const char *const *enabled, const char *const *disabled,
			      const char *expected)
{
	struct proto trace = {.bytes = 0};

	put_source(&trace, "track_event", enabled, disabled);
	struct ky_config config = decode(&trace);
	if (expected)
		assert_string_equal(config.categories, expected);
	else
		assert_null(config.categories);
	ky_config_free(&config);
}

static void an_empty_config_asks_for_nothing(void **state)
{
	(void)state;
	struct ky_config config;
	struct kymo_options options = {.size = sizeof(options)};
	struct kymo_options untouched = options;

	assert_int_equal(ky_config_decode(&config, NULL, 0), 0);
	ky_config_apply(&config, &options);
	assert_memory_equal(&options, &untouched, sizeof(options));
	ky_config_free(&config);
}

static void a_streaming_config_fills_every_option(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};
	struct kymo_options options = {.size = sizeof(options)};

	put_buffer(&trace, 4096, 1);
	put_buffer(&trace, 1024, 1);
	put_number(&trace, 3, 10000);
	put_number(&trace, 8, 1);
	put_number(&trace, 9, 2500);
	put_number(&trace, 10, 1u << 30);
	put_number(&trace, 13, 700);
	put_text(&trace, 29, "/tmp/out.pftrace");
	put_source(&trace, "track_event", LIST("net"), LIST("*"));
	struct ky_config config = decode(&trace);
	ky_config_apply(&config, &options);
	assert_int_equal(options.total_bytes, 5 * 1024 * 1024);
	assert_int_equal(options.mode, KYMO_MODE_STREAM);
	assert_int_equal(options.duration_ms, 10000);
	assert_int_equal(options.flush_ms, 2500);
	assert_int_equal(options.max_bytes, 1u << 30);
	assert_string_equal(options.path, "/tmp/out.pftrace");
	assert_string_equal(options.categories, "-*,net");
	ky_config_free(&config);
}

static void explicit_options_win(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};
	struct kymo_options options = {.size = sizeof(options),
				       .path = "mine.json",
				       .categories = "mine",
				       .total_bytes = 1,
				       .flush_ms = 2,
				       .duration_ms = 3,
				       .max_bytes = 4,
				       .mode = KYMO_MODE_RING};
	const struct kymo_options before = options;

	put_buffer(&trace, 4096, 1);
	put_number(&trace, 3, 10000);
	put_number(&trace, 8, 1);
	put_number(&trace, 9, 2500);
	put_number(&trace, 10, 1u << 30);
	put_text(&trace, 29, "theirs.pftrace");
	put_source(&trace, "track_event", LIST("theirs"), NONE);
	struct ky_config config = decode(&trace);
	ky_config_apply(&config, &options);
	assert_memory_equal(&options, &before, sizeof(options));
	ky_config_free(&config);
}

static void a_descriptor_wins_over_a_path_in_the_config(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};
	struct kymo_options options = {.size = sizeof(options), .fd = 7};

	put_text(&trace, 29, "theirs.pftrace");
	struct ky_config config = decode(&trace);
	ky_config_apply(&config, &options);
	assert_null(options.path);
	ky_config_free(&config);
}

static int mode_of(uint64_t policy, uint64_t second_policy, bool write_into_file)
{
	struct proto trace = {.bytes = 0};

	put_buffer(&trace, 16, policy);
	put_buffer(&trace, 16, second_policy);
	put_number(&trace, 8, write_into_file);
	struct ky_config config = decode(&trace);
	ky_config_free(&config);
	put_number(&trace, 13, 900);
	config = decode(&trace);
	assert_int_equal(config.flush_ms, 900);
	return config.mode;
}

static void overwriting_buffers_that_nobody_drains_are_ring_mode(void **state)
{
	(void)state;
	assert_int_equal(mode_of(1, 1, false), KYMO_MODE_RING);
	assert_int_equal(mode_of(0, 0, false), KYMO_MODE_RING);
	assert_int_equal(mode_of(1, 1, true), KYMO_MODE_STREAM);
	assert_int_equal(mode_of(2, 2, false), KYMO_MODE_STREAM);
	assert_int_equal(mode_of(1, 2, false), KYMO_MODE_STREAM);
}

static void the_file_write_period_has_perfettos_minimum(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};

	put_number(&trace, 8, 1);
	put_number(&trace, 9, 1);
	struct ky_config config = decode(&trace);
	assert_int_equal(config.flush_ms, 100);
	ky_config_free(&config);
}

static void buffers_of_any_size_do_not_overflow(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};

	for (int i = 0; i < 100; i++)
		put_buffer(&trace, UINT32_MAX, 0);
	struct ky_config config = decode(&trace);
	if (sizeof(size_t) == 8)
		assert_int_equal(config.total_bytes, 100 * (uint64_t)UINT32_MAX * 1024);
	else
		assert_int_equal(config.total_bytes, SIZE_MAX);
	ky_config_free(&config);
}

static void categories_are_ordered_by_perfettos_precedence(void **state)
{
	(void)state;
	expect_categories(NONE, NONE, NULL);
	expect_categories(LIST(""), LIST(""), NULL);
	expect_categories(LIST("a", "b*"), NONE, "b*,a");
	expect_categories(NONE, LIST("c"), "-c");
	expect_categories(LIST("a"), LIST("*"), "-*,a");
	expect_categories(LIST("a", "n*", "*"), LIST("*", "net*", "a", "b"),
			  "-*,*,-net*,n*,-a,-b,a");
}

/* Perfetto's rule, step by step, for lists of single entries. */
static bool rule(const char *enabled, const char *disabled, const char *category)
{
	const char *const lists[] = {enabled, disabled};

	for (int tier = 0; tier < 3; tier++) {
		for (int i = 0; i < 2; i++) {
			const size_t length = strlen(lists[i]);
			const bool pattern = lists[i][length - 1] == '*';
			const int its_tier = !pattern ? 0 : length > 1 ? 1 : 2;
			if (its_tier == tier &&
			    (pattern ? strncmp(lists[i], category, length - 1) == 0
				     : strcmp(lists[i], category) == 0))
				return i == 0;
		}
	}
	return true;
}

static void the_list_selects_what_perfetto_would(void **state)
{
	(void)state;
	static const char *const entries[] = {"*", "n*", "net*", "net", "net.io", "db"};
	static const char *const categories[] = {"net", "net.io", "n", "db", "dbx"};
	const size_t count = sizeof(entries) / sizeof(entries[0]);

	for (size_t i = 0; i < count * count; i++) {
		const char *enabled = entries[i / count];
		const char *disabled = entries[i % count];
		struct proto trace = {.bytes = 0};
		put_source(&trace, "track_event", LIST(enabled), LIST(disabled));
		struct ky_config config = decode(&trace);
		for (size_t c = 0; c < sizeof(categories) / sizeof(categories[0]); c++) {
			const bool selected = ky_glob_list_match(config.categories, categories[c]);
			/* The C++ SDK's default needs a list that begins with an exclusion. */
			if (config.categories[0] == '-')
				assert_int_equal(selected, rule(enabled, disabled, categories[c]));
		}
		ky_config_free(&config);
	}
}

static void names_that_mean_something_else_in_a_list_still_match(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};

	put_source(&trace, "track_event", LIST("-odd", "x,y"), NONE);
	struct ky_config config = decode(&trace);
	assert_string_equal(config.categories, "?odd,x?y");
	assert_true(ky_glob_list_match(config.categories, "-odd"));
	assert_false(ky_glob_list_match(config.categories, "other"));
	ky_config_free(&config);
}

static void other_data_sources_do_not_choose_categories(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};

	put_source(&trace, "linux.ftrace", LIST("sched"), NONE);
	put_source(&trace, "track_event2", LIST("no"), NONE);
	put_source(&trace, "track_event", LIST("net"), NONE);
	put_source(&trace, "track_event", LIST("db"), NONE);
	struct ky_config config = decode(&trace);
	assert_string_equal(config.categories, "net,db");
	ky_config_free(&config);
}

static void unknown_fields_and_wire_types_are_skipped(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};

	put_number(&trace, 1000, UINT64_MAX);
	put_text(&trace, 33, "\x07\x07\x07");
	put_varint(&trace, 500 << 3 | 1);
	trace.bytes += 8;
	put_varint(&trace, 501 << 3 | 5);
	trace.bytes += 4;
	put_text(&trace, 3, "duration as text");
	put_number(&trace, 29, 5);
	put_number(&trace, 3, 77);
	struct ky_config config = decode(&trace);
	assert_int_equal(config.duration_ms, 77);
	assert_null(config.path);
	ky_config_free(&config);
}

static void the_last_of_a_repeated_number_counts(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};

	put_number(&trace, 3, 5);
	put_number(&trace, 3, 6);
	put_text(&trace, 29, "first");
	put_text(&trace, 29, "second");
	struct ky_config config = decode(&trace);
	assert_int_equal(config.duration_ms, 6);
	assert_string_equal(config.path, "second");
	ky_config_free(&config);
}

static void expect_malformed(const void *data, size_t bytes)
{
	struct ky_config config;
	const struct ky_config zero = {0};

	assert_int_equal(ky_config_decode(&config, data, bytes), KYMO_ECONFIG);
	assert_memory_equal(&config, &zero, sizeof(config));
}

#define MALFORMED(literal) expect_malformed(literal, sizeof(literal) - 1)

static void malformed_messages_are_refused(void **state)
{
	(void)state;
	MALFORMED("\x18");     /* a key without its value */
	MALFORMED("\x18\x80"); /* a varint without its end */
	MALFORMED("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* one of eleven bytes */
	MALFORMED("\x02\x00");                                         /* field number 0 */
	MALFORMED("\x1b\x1c");                                         /* a group */
	MALFORMED("\x1e\x00");                                         /* wire type 6 */
	MALFORMED("\x0a\x05\x08");                                     /* longer than the message */
	MALFORMED("\x0a\x01\x08");     /* a buffer that is cut off */
	MALFORMED("\x12\x01\x0a");     /* a data source that is */
	MALFORMED("\x21\x00\x00\x00"); /* a cut fixed64 */
	MALFORMED("\x25\x00\x00\x00"); /* a cut fixed32 */
	MALFORMED("\xea\x01\x03"
		  "a\0b");                                             /* a path with a NUL in it */
	MALFORMED("\xea\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* a path of 2^64 - 1 */
}

static void no_cut_message_crashes_or_leaks(void **state)
{
	(void)state;
	struct proto trace = {.bytes = 0};

	put_text(&trace, 29, "out.pftrace");
	put_buffer(&trace, 4096, 1);
	put_source(&trace, "track_event", LIST("net"), LIST("*", "db*"));
	for (size_t bytes = 0; bytes <= trace.bytes; bytes++) {
		struct ky_config config;
		uint8_t *copy = malloc(bytes ? bytes : 1);
		memcpy(copy, trace.data, bytes);
		const int error = ky_config_decode(&config, copy, bytes);
		assert_true(error == 0 || error == KYMO_ECONFIG);
		ky_config_free(&config);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_config_asks_for_nothing),
		cmocka_unit_test(a_streaming_config_fills_every_option),
		cmocka_unit_test(explicit_options_win),
		cmocka_unit_test(a_descriptor_wins_over_a_path_in_the_config),
		cmocka_unit_test(overwriting_buffers_that_nobody_drains_are_ring_mode),
		cmocka_unit_test(the_file_write_period_has_perfettos_minimum),
		cmocka_unit_test(buffers_of_any_size_do_not_overflow),
		cmocka_unit_test(categories_are_ordered_by_perfettos_precedence),
		cmocka_unit_test(the_list_selects_what_perfetto_would),
		cmocka_unit_test(names_that_mean_something_else_in_a_list_still_match),
		cmocka_unit_test(other_data_sources_do_not_choose_categories),
		cmocka_unit_test(unknown_fields_and_wire_types_are_skipped),
		cmocka_unit_test(the_last_of_a_repeated_number_counts),
		cmocka_unit_test(malformed_messages_are_refused),
		cmocka_unit_test(no_cut_message_crashes_or_leaks),
	};
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
