/* SPDX-License-Identifier: MIT */
/* test_uftrace.c: uftrace data directories, made here record by record. */
#include "formats/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE UINT64_C(0x555500000000)

static char directory[64];

static void path_of(char *path, size_t bytes, const char *name)
{
	snprintf(path, bytes, "%s/%s", directory, name);
}

static void write_file(const char *name, const void *data, size_t bytes)
{
	char path[128];
	path_of(path, sizeof(path), name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* A record of TID.dat. */
static size_t put_record(uint8_t *to, uint64_t ns, unsigned type, bool more, uint64_t address)
{
	const uint64_t word = type | (uint64_t)more << 2 | 5u << 3 | address << 16;
	memcpy(to, &ns, 8);
	memcpy(to + 8, &word, 8);
	return 16;
}

static void write_info(const char *specs)
{
	uint8_t info[400] = "Ftrace!";
	const uint64_t features = 1u << 5 | 1u << 3 | 1u << 4;
	info[8] = 4;
	info[12] = 40;
	info[14] = 1;
	info[15] = 2;
	memcpy(info + 16, &features, 8);
	const int bytes = snprintf((char *)info + 40, sizeof(info) - 40,
				   "exename:/bin/prog\nargspec:lines=2\n%s"
				   "retspec:add@retval/i32\n",
				   specs);
	write_file("info", info, 40 + (size_t)bytes);
}

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/kymo-uftrace-XXXXXX");
	assert_non_null(mkdtemp(directory));
	write_info("argspec:add@arg1/i32,arg2/i32;greet@arg1/s\n");
	write_text("task.txt", "SESS timestamp=1.000000000 pid=10 sid=00ff exename=\"/bin/prog\"\n"
			       "TASK timestamp=1.000000001 tid=10 pid=10\n"
			       "TASK timestamp=1.000000002 tid=11 pid=10\n");
	write_text("sid-00ff.map", "555500000000-555500010000 r-xp 00000000 00:00 0 /bin/prog\n");
	write_text("prog.sym", "# symbols: 4\n0000000000001000 T main\n0000000000001100 t add\n"
			       "0000000000001200 t greet\n0000000000001300 ? __sym_end\n");
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	static const char *const names[] = {"info",   "task.txt", "sid-00ff.map", "prog.sym",
					    "10.dat", "11.dat",   "perf-cpu0.dat"};
	char path[128];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path_of(path, sizeof(path), names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

static struct ky_trace *load(void)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	assert_int_equal(ky_load(&trace, directory, NULL, message), 0);
	assert_string_equal(trace->format, "uftrace");
	return trace;
}

static size_t put_calls(uint8_t *data)
{
	size_t at = put_record(data, 1000, 0, false, BASE + 0x1010);
	at += put_record(data + at, 1100, 0, true, BASE + 0x1110);
	const int32_t args[] = {-5, 7};
	memcpy(data + at, args, 8);
	at += 8;
	at += put_record(data + at, 1200, 1, true, BASE + 0x1110);
	memcpy(data + at, "\x02\0\0\0\0\0\0\0", 8);
	at += 8;
	at += put_record(data + at, 1300, 0, true, BASE + 0x1210);
	memcpy(data + at, "\x02\0hi\0\0\0\0", 8);
	at += 8;
	at += put_record(data + at, 1400, 1, false, BASE + 0x1210);
	at += put_record(data + at, 2000, 1, false, BASE + 0x1010);
	return at;
}

static void calls_are_slices_with_arguments_and_return_values(void **state)
{
	(void)state;
	uint8_t data[256];
	write_file("10.dat", data, put_calls(data));
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 3);
	assert_string_equal(ky_text_of(trace, trace->slices.name[0]), "main");
	assert_int_equal(trace->slices.dur[0], 1000);
	assert_string_equal(ky_text_of(trace, trace->slices.name[1]), "add");
	assert_int_equal(trace->slices.depth[1], 1);
	const uint32_t first = ky_arg_set_first(trace, trace->slices.args[1]);
	assert_int_equal(ky_arg_set_end(trace, trace->slices.args[1]) - first, 3);
	assert_int_equal((int64_t)trace->args.value[first], -5);
	assert_int_equal(trace->args.value[first + 1], 7);
	assert_string_equal(ky_text_of(trace, trace->args.key[first + 2]), "retval");
	const uint32_t greeting = ky_arg_set_first(trace, trace->slices.args[2]);
	assert_string_equal(ky_text_of(trace, (uint32_t)trace->args.value[greeting]), "hi");
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
}

static void a_pattern_that_would_take_all_memory_matches_nothing(void **state)
{
	(void)state;
	uint8_t data[256];
	write_info("argspec:a++++++++++++++++++++++++++++++++++++@arg1;^ad+$@arg1/i32,arg2/"
		   "i32;g.*@arg1/s\n");
	write_file("10.dat", data, put_calls(data));
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 3);
	const uint32_t first = ky_arg_set_first(trace, trace->slices.args[1]);
	assert_int_equal((int64_t)trace->args.value[first], -5);
	assert_int_equal(trace->problems.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->problems.name[0]), "uftrace_pattern");
	ky_trace_close(&trace);
}

static void a_process_is_in_its_last_session_that_began(void **state)
{
	(void)state;
	uint8_t data[64];
	write_text("task.txt", "SESS timestamp=0.000000000 pid=10 sid=00ee exename=\"/bin/prog\"\n"
			       "SESS timestamp=0.000001500 pid=10 sid=00dd exename=\"/bin/prog\"\n"
			       "SESS timestamp=0.000001200 pid=10 sid=00ff exename=\"/bin/prog\"\n"
			       "SESS timestamp=0.000001900 pid=10 sid=00ee exename=\"/bin/prog\"\n"
			       "TASK timestamp=0.000000001 tid=10 pid=10\n");
	size_t at = put_record(data, 1000, 0, false, BASE + 0x1010);
	at += put_record(data + at, 1200, 0, false, BASE + 0x1010);
	at += put_record(data + at, 1600, 0, false, BASE + 0x1010);
	at += put_record(data + at, 1900, 0, false, BASE + 0x1010);
	write_file("10.dat", data, at);
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 4);
	assert_string_not_equal(ky_text_of(trace, trace->slices.name[0]), "main");
	assert_string_equal(ky_text_of(trace, trace->slices.name[1]), "main");
	assert_string_equal(ky_text_of(trace, trace->slices.name[2]), "main");
	assert_string_not_equal(ky_text_of(trace, trace->slices.name[3]), "main");
	ky_trace_close(&trace);
}

static void losses_are_counted_and_damage_ends_a_file(void **state)
{
	(void)state;
	uint8_t data[256] = {0};
	size_t at = put_record(data, 1000, 0, false, BASE + 0x1010);
	at += put_record(data + at, 1100, 2, false, 42);
	write_file("11.dat", data, at + 20);
	struct ky_trace *trace = load();
	assert_int_equal(trace->lost, 42);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.dur[0], -1);
	assert_string_equal(ky_text_of(trace, trace->problems.name[0]), "uftrace_damaged");
	assert_int_equal(trace->problems.first_at[0], 32);
	ky_trace_close(&trace);
}

static void what_has_no_symbol_is_named_by_its_address(void **state)
{
	(void)state;
	uint8_t data[64];
	size_t at = put_record(data, 1000, 0, false, UINT64_C(0x123456));
	write_file("10.dat", data, at);
	struct ky_trace *trace = load();
	assert_string_equal(ky_text_of(trace, trace->slices.name[0]), "<123456>");
	ky_trace_close(&trace);
}

static void switches_are_slices_and_comms_are_names(void **state)
{
	(void)state;
	uint8_t data[128] = {0};
	const uint32_t ids[] = {10, 11};
	const uint64_t times[] = {500, 700, 800};
	/* out, in, comm "worker" */
	const uint32_t types[] = {14, 14, 3};
	const uint16_t miscs[] = {1u << 13, 0, 0};
	const uint16_t sizes[] = {24, 24, 40};
	size_t at = 0;
	for (int i = 0; i < 3; i++) {
		memcpy(data + at, &types[i], 4);
		memcpy(data + at + 4, &miscs[i], 2);
		memcpy(data + at + 6, &sizes[i], 2);
		if (types[i] == 3)
			memcpy(data + at + 16, "worker", 6);
		memcpy(data + at + sizes[i] - 16, ids, 8);
		memcpy(data + at + sizes[i] - 8, &times[i], 8);
		at += sizes[i];
	}
	write_file("perf-cpu0.dat", data, at);
	struct ky_trace *trace = load();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->slices.name[0]), "linux:schedule");
	assert_int_equal(trace->slices.dur[0], 200);
	const uint32_t thread = ky_track_thread(trace, trace->slices.track[0]);
	assert_string_equal(ky_text_of(trace, trace->threads.name[thread]), "worker");
	ky_trace_close(&trace);
}

static void another_version_is_refused_with_the_reason(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	uint8_t info[40] = "Ftrace!";
	info[8] = 9;
	write_file("info", info, sizeof(info));
	assert_int_not_equal(ky_load(&trace, directory, NULL, message), 0);
	assert_non_null(strstr(message, "version 9"));
	assert_null(trace);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_are_slices_with_arguments_and_return_values),
		TEST(a_pattern_that_would_take_all_memory_matches_nothing),
		TEST(a_process_is_in_its_last_session_that_began),
		TEST(losses_are_counted_and_damage_ends_a_file),
		TEST(what_has_no_symbol_is_named_by_its_address),
		TEST(switches_are_slices_and_comms_are_names),
		TEST(another_version_is_refused_with_the_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
