/* SPDX-License-Identifier: MIT */
/* test_ctf.c: CTF traces that are written here by hand, and what of them is hostile to babeltrace2's library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD                                                                                       \
	"/* CTF 1.8 */\n"                                                                          \
	"typealias integer { size = 8; align = 8; } := u8;\n"                                      \
	"typealias integer { size = 32; align = 8; } := u32;\n"                                    \
	"typealias integer { size = 32; align = 8; signed = true; } := s32;\n"                     \
	"trace { major = 1; minor = 8; byte_order = be; };\n"

static char directory[] = "/tmp/kymo-ctf-XXXXXX";

static void write_file(const char *name, const void *data, size_t bytes)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static int load(struct ky_trace **trace, const char *metadata, const void *stream, size_t bytes,
		char message[KY_MESSAGE_BYTES])
{
	write_file("metadata", metadata, strlen(metadata));
	write_file("stream", stream, bytes);
	return ky_load(trace, directory, NULL, message);
}

static void load_hostile(const char *metadata, const void *stream, size_t bytes)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	assert_int_not_equal(load(&trace, metadata, stream, bytes, message), 0);
	assert_null(trace);
	assert_non_null(strstr(message, directory));
}

static void events_without_a_size_are_not_read_without_end(void **unused)
{
	(void)unused;
	load_hostile(HEAD "event { name = x; fields := struct { }; };\n", "ab", 2);
}

static void an_array_larger_than_memory_is_an_error(void **unused)
{
	(void)unused;
	load_hostile(HEAD "event { name = x; fields := struct { u8 a[2000000000]; }; };\n", "ab",
		     2);
}

static void a_length_larger_than_memory_is_an_error(void **unused)
{
	(void)unused;
	load_hostile(HEAD "event { name = x; fields := struct { u32 n; u8 a[n]; }; };\n",
		     "\x10\xff\xff\xff\1", 5);
}

static void every_one_of_many_variants_is_an_argument(void **unused)
{
	(void)unused;
	char metadata[4096];
	char message[KY_MESSAGE_BYTES];
	uint8_t stream[41] = {0};
	struct ky_trace *trace;
	size_t used = (size_t)snprintf(
		metadata, sizeof(metadata),
		HEAD "event { name = x; fields := struct { enum : u8 { ONE } tag;\n");
	for (int i = 0; i < 40; i++)
		used += (size_t)snprintf(metadata + used, sizeof(metadata) - used,
					 "variant <tag> { u8 ONE; } v%d;\n", i);
	snprintf(metadata + used, sizeof(metadata) - used, "}; };\n");
	assert_int_equal(load(&trace, metadata, stream, sizeof(stream), message), 0);
	assert_int_equal(trace->slices.rows.count, 1);
	const uint32_t set = trace->slices.args[0];
	assert_int_equal(ky_arg_set_end(trace, set) - ky_arg_set_first(trace, set), 41);
	ky_trace_close(&trace);
}

static void the_largest_tid_runs(void **unused)
{
	(void)unused;
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	static const char metadata[] =
		HEAD "stream { packet.context := struct { u32 cpu_id; }; };\n"
		     "event { name = sched_switch; fields := struct { s32 prev_tid; s32 next_tid; "
		     "}; };\n";
	static const uint8_t stream[] = {0, 0, 0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff};
	assert_int_equal(load(&trace, metadata, stream, sizeof(stream), message), 0);
	assert_int_equal(trace->sched.rows.count, 1);
	ky_trace_close(&trace);
}

static int open_directory(void **unused)
{
	(void)unused;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **unused)
{
	(void)unused;
	char path[128];
	snprintf(path, sizeof(path), "%s/metadata", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/stream", directory);
	unlink(path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_without_a_size_are_not_read_without_end),
		cmocka_unit_test(an_array_larger_than_memory_is_an_error),
		cmocka_unit_test(a_length_larger_than_memory_is_an_error),
		cmocka_unit_test(every_one_of_many_variants_is_an_argument),
		cmocka_unit_test(the_largest_tid_runs),
	};
	return cmocka_run_group_tests(tests, open_directory, remove_directory);
}
