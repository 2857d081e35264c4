/* SPDX-License-Identifier: MIT */
/* test_load.c: an error of loading is one line: the path, the place, what is wrong, what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/load.h"

static char folder[] = "/tmp/kymo-test-load-XXXXXX";
static char path[256];
static char message[KY_MESSAGE_BYTES];

/* The smallest trace: FXT's magic and a provider, strings and a thread, a span from 100 to 300. */
static const uint64_t trace_words[] = {
	0x0016547846040010,
	0x0040000000110020,
	0x000000006f6d796b,
	0x0000000300010022,
	0x000000000074656e,
	0x0000000400020022,
	0x0000000076636572,
	0x0000000000010033,
	10,
	11,
	0x0002000101040034,
	100,
	300,
};

static const char *in_folder(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *make_file(const char *name, const void *data, size_t bytes)
{
	FILE *file = fopen(in_folder(name), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
	return path;
}

static void fails(const char *file, const struct ky_load_options *options, int error,
		  const char *expected)
{
	struct ky_trace *trace;
	assert_int_equal(ky_load(&trace, file, options, message), error);
	assert_null(trace);
	assert_null(strchr(message, '\n'));
	if (!strstr(message, expected))
		fail_msg("\"%s\" does not say \"%s\"", message, expected);
	if (!options && !strstr(message, strcmp(file, "-") == 0 ? "standard input" : file))
		fail_msg("\"%s\" does not name %s", message, file);
}

static struct ky_trace *loads(const char *file)
{
	struct ky_trace *trace;
	if (ky_load(&trace, file, NULL, message) != 0)
		fail_msg("%s", message);
	assert_int_equal(trace->slices.rows.count, 1);
	assert_int_equal(trace->slices.ts[0], 100);
	assert_int_equal(trace->slices.dur[0], 200);
	assert_string_equal(ky_text_of(trace, trace->slices.name[0]), "recv");
	return trace;
}

static size_t pack(uint8_t *to, size_t room)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)trace_words,
		      .avail_in = sizeof(trace_words),
		      .next_out = to,
		      .avail_out = (uInt)room};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static void a_trace_is_known_by_its_content(void **state)
{
	(void)state;
	uint8_t packed[512];
	struct ky_trace *trace = loads(make_file("x.json", trace_words, sizeof(trace_words)));
	assert_string_equal(trace->format, "fxt");
	ky_trace_close(&trace);
	trace = loads(make_file("plain", packed, pack(packed, sizeof(packed))));
	ky_trace_close(&trace);
	assert_int_equal(ky_load_memory(&trace, trace_words, sizeof(trace_words), NULL, message),
			 0);
	ky_trace_close(&trace);
	unlink(in_folder("x.json"));
	unlink(in_folder("plain"));
}

/* Expect a trace without rows, and a problem that validate reports. */
static void loads_empty(const char *file)
{
	struct ky_trace *trace;
	assert_int_equal(ky_load(&trace, file, NULL, message), 0);
	assert_int_equal(trace->slices.rows.count, 0);
	assert_int_equal(trace->problems.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->problems.name[0]), "input_empty");
	ky_trace_close(&trace);
}

static void an_empty_file_is_a_trace_without_rows(void **state)
{
	(void)state;
	loads_empty(make_file("empty", "", 0));
}

static void standard_input_is_a_trace(void **state)
{
	(void)state;
	int ends[2];
	const int before = dup(STDIN_FILENO);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], trace_words, sizeof(trace_words)), sizeof(trace_words));
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	struct ky_trace *trace = loads("-");
	ky_trace_close(&trace);
	loads_empty("-");
	dup2(before, STDIN_FILENO);
	close(before);
}

static void what_is_no_trace_is_said(void **state)
{
	(void)state;
	static const char zeros[64];
	fails(in_folder("missing"), NULL, -ENOENT, "No such file or directory: check the path");
	fails(make_file("garbage", "\x01\x02\xff\xfe what is this", 17), NULL, -EBADMSG,
	      "is not a trace that kymo knows: begins with 01 02 ff fe");
	fails(make_file("zeros", zeros, sizeof(zeros)), NULL, -EBADMSG, "kymo --help");
	fails(make_file("xz",
			"\xfd"
			"7zXZ\0\0\0",
			8),
	      NULL, -EBADMSG, "xz -dc");
	fails(make_file("program",
			"\x7f"
			"ELF\2\1\1",
			7),
	      NULL, -EBADMSG, "is a program");
	fails(make_file("pprof",
			"\x0a\x04\x08\x01\x10\x02"
			"2\0",
			8),
	      NULL, -EBADMSG, "is a pprof profile");
	fails(make_file("metadata", "/* CTF 1.8 */\ntrace {};\n", 24), NULL, -EBADMSG,
	      "give the directory");
	fails(make_file("stream", "\xc1\x1f\xfc\xc1\x8c\x60\x9d\x38", 8), NULL, -EBADMSG,
	      "give the directory");
	static const char *const names[] = {"empty",   "garbage", "zeros",    "xz",
					    "program", "pprof",   "metadata", "stream"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_folder(names[i]));
}

static void a_file_that_may_not_be_read_is_said(void **state)
{
	(void)state;
	if (geteuid() == 0)
		skip();
	make_file("secret", trace_words, sizeof(trace_words));
	chmod(path, 0);
	fails(path, NULL, -EACCES, "make it readable");
	unlink(path);
}

static void a_name_with_a_line_end_stays_in_one_line(void **state)
{
	(void)state;
	struct ky_trace *trace;
	assert_int_equal(ky_load(&trace, "/nowhere/a\nb", NULL, message), -ENOENT);
	assert_null(strchr(message, '\n'));
	assert_non_null(strstr(message, "/nowhere/a?b"));
}

static void a_directory_says_which_file_to_name(void **state)
{
	(void)state;
	char directory[300];
	snprintf(directory, sizeof(directory), "%s/directory", folder);
	assert_int_equal(mkdir(directory, 0700), 0);
	fails(directory, NULL, -EISDIR, "neither it nor a file in it is a trace");
	make_file("directory/one.fxt", trace_words, sizeof(trace_words));
	make_file("directory/other", "\x01\x02\x03", 3);
	fails(directory, NULL, -EISDIR, "name a file in it: one.fxt (fxt)");
	assert_null(strstr(message, "other"));
	unlink(in_folder("directory/one.fxt"));
	unlink(in_folder("directory/other"));
	rmdir(directory);
}

static void packed_data_that_is_cut_is_a_problem_or_an_error(void **state)
{
	(void)state;
	uint8_t packed[512];
	const size_t bytes = pack(packed, sizeof(packed));
	/* Without its checksum all is there; with next to nothing, nothing is. */
	struct ky_trace *trace = loads(make_file("cut.gz", packed, bytes - 4));
	assert_int_equal(trace->problems.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->problems.name[0]), "input_truncated");
	assert_non_null(strstr(ky_text_of(trace, trace->problems.first[0]), "cut off at byte"));
	ky_trace_close(&trace);
	fails(make_file("cut.gz", packed, 10), NULL, -EBADMSG, "nothing can be unpacked; the gzip");
	memset(packed + 12, 0xff, 20);
	fails(make_file("cut.gz", packed, bytes), NULL, -EBADMSG, "damaged near byte");
	unlink(path);
}

static void a_trace_that_is_cut_is_read_as_far_as_it_goes(void **state)
{
	(void)state;
	uint64_t words[sizeof(trace_words) / 8 + 3];
	memcpy(words, trace_words, sizeof(trace_words));
	memcpy(words + sizeof(trace_words) / 8, trace_words + 10, 24);
	struct ky_trace *trace = loads(make_file("cut", words, sizeof(words) - 8));
	assert_string_equal(ky_text_of(trace, trace->problems.name[0]), "input_truncated");
	assert_int_equal(trace->problems.first_at[0], sizeof(trace_words));
	ky_trace_close(&trace);
	unlink(path);
}

static void a_format_may_be_named(void **state)
{
	(void)state;
	struct ky_load_options options = {.size = sizeof(options), .format = "nonsense"};
	make_file("x", trace_words, sizeof(trace_words));
	fails(path, &options, -EINVAL, "nonsense is not an input format: use one of kymo,");
	options.format = "uftrace";
	fails(path, &options, -ENOTDIR, "uftrace is a format of directories");
	options.format = "kymo";
	struct ky_trace *trace;
	(void)ky_load(&trace, path, &options, message);
	ky_trace_close(&trace);
	unlink(path);
}

static int interrupt(void *context, const char *stage, uint64_t done, uint64_t all)
{
	(void)context, (void)stage, (void)done, (void)all;
	return -EINTR;
}

static void a_load_can_be_interrupted(void **state)
{
	(void)state;
	const struct ky_load_options options = {.size = sizeof(options), .progress = interrupt};
	const size_t head = sizeof(trace_words);
	const size_t events = (8u << 20) / 24;
	uint8_t *data = malloc(head + events * 24);
	assert_non_null(data);
	memcpy(data, trace_words, head);
	for (size_t i = 0; i < events; i++)
		memcpy(data + head + i * 24, trace_words + 10, 24);
	fails(make_file("long", data, head + events * 24), &options, -EINTR, "interrupted");
	unlink(path);
	free(data);
}

static void a_process_without_a_drum_is_said(void **state)
{
	(void)state;
	fails("pid:999999999", NULL, -ESRCH, "no process with PID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_is_known_by_its_content),
		cmocka_unit_test(standard_input_is_a_trace),
		cmocka_unit_test(an_empty_file_is_a_trace_without_rows),
		cmocka_unit_test(what_is_no_trace_is_said),
		cmocka_unit_test(a_file_that_may_not_be_read_is_said),
		cmocka_unit_test(a_name_with_a_line_end_stays_in_one_line),
		cmocka_unit_test(a_directory_says_which_file_to_name),
		cmocka_unit_test(packed_data_that_is_cut_is_a_problem_or_an_error),
		cmocka_unit_test(a_trace_that_is_cut_is_read_as_far_as_it_goes),
		cmocka_unit_test(a_format_may_be_named),
		cmocka_unit_test(a_load_can_be_interrupted),
		cmocka_unit_test(a_process_without_a_drum_is_said),
	};
	if (!mkdtemp(folder))
		return 1;
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
