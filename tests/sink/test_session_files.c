/* SPDX-License-Identifier: MIT */
/*
 * test_session_files.c: where a session's bytes go: parts by size, names, descriptors, and what
 * happens when they cannot go there any more.
 */
#include "child.h"
#include "json_trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kymo/session.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define EVENTS 4000
#define PART_BYTES 20000

static struct kymo_session *start(struct kymo_options options)
{
	struct kymo_session *session = NULL;
	options.size = sizeof(options);
	MUST(kymo_session_start(&session, &options) == 0);
	return session;
}

static void record_events(int count)
{
	for (int i = 0; i < count; i++)
		KYMO_INSTANT("a", "event", "i", i);
}

/* Waits until the session has an error, and returns it. */
static int wait_for_error(struct kymo_session *session)
{
	const int64_t deadline = now_ms() + PATIENCE_MS;
	while (kymo_session_error(session) == 0) {
		MUST(now_ms() < deadline);
		look_again();
	}
	return kymo_session_error(session);
}

static void record_in_open_spans(void)
{
	struct kymo_session *session = start(
		(struct kymo_options){.path = "part.${rotation}.json", .max_bytes = PART_BYTES});
	struct kymo_stats stats = {.size = sizeof(stats)};
	const char *name = "own name";
	KYMO_BEGIN("a", "outer");
	KYMO_BEGIN_DYN("a", name);
	record_events(EVENTS);
	KYMO_END("a");
	KYMO_END("a");
	MUST(kymo_session_flush(session) == 0);
	MUST(kymo_session_stats(session, &stats) == 0);
	MUST(stats.files == folder_files() && stats.files > 10);
	MUST(stats.events == EVENTS + 4 && stats.lost == 0);
	MUST(kymo_session_stop(&session) == 0);
}

static void fill_one_part(void)
{
	struct kymo_session *session = start(
		(struct kymo_options){.path = "part.${rotation}.json", .max_bytes = PART_BYTES});
	struct kymo_stats stats = {.size = sizeof(stats)};
	while (stats.bytes < PART_BYTES) {
		record_events(1);
		MUST(kymo_session_flush(session) == 0);
		MUST(kymo_session_stats(session, &stats) == 0);
	}
	MUST(kymo_session_stop(&session) == 0);
}

static void the_last_part_is_not_empty(void **state)
{
	(void)state;
	child_expect(fill_one_part);
	assert_int_equal(folder_files(), 1);
}

/* Each event once; the spans, which are open all along, in every part. */
static void check_part(const struct json_trace *trace, bool last, unsigned seen[EVENTS])
{
	assert_true(trace->whole);
	assert_true(last || (trace->bytes >= PART_BYTES && trace->bytes < PART_BYTES + 500));
	assert_int_equal(json_trace_count(trace, 'B', "outer"), 1);
	assert_int_equal(json_trace_count(trace, 'B', "own name"), 1);
	assert_int_equal(json_trace_count(trace, 'M', "process_name"), 1);
	assert_int_equal(json_trace_open_spans(trace), last ? 0 : 2);
	const struct json_event *event = json_trace_find(trace, 'i', "event", 0);
	while (event) {
		seen[json_trace_arg(event, "i")]++;
		event = json_trace_find(trace, 'i', "event", (size_t)(event - trace->events) + 1);
	}
}

static void parts_stand_alone_and_hold_everything_once(void **state)
{
	(void)state;
	child_expect(record_in_open_spans);
	static unsigned seen[EVENTS];
	memset(seen, 0, sizeof(seen));
	const unsigned parts = folder_files();
	for (unsigned i = 0; i < parts; i++) {
		char path[32];
		struct json_trace trace;
		snprintf(path, sizeof(path), "part.%u.json", i);
		json_trace_read(&trace, path);
		check_part(&trace, i == parts - 1, seen);
		json_trace_free(&trace);
	}
	for (unsigned i = 0; i < EVENTS; i++)
		assert_int_equal(seen[i], 1);
}

static const char *binary_suffix; /* of the formats that are not text */

static void record_binary_parts(void)
{
	char path[32];
	snprintf(path, sizeof(path), "part.${rotation}.%s", binary_suffix);
	struct kymo_session *session =
		start((struct kymo_options){.path = path, .max_bytes = PART_BYTES});
	struct kymo_stats stats = {.size = sizeof(stats)};
	record_events(EVENTS);
	MUST(kymo_session_flush(session) == 0);
	MUST(kymo_session_stats(session, &stats) == 0);
	MUST(stats.files == folder_files() && stats.files > 2);
	MUST(stats.events == EVENTS && stats.lost == 0);
	MUST(kymo_session_stop(&session) == 0);
}

/* All but the last reach the limit, by one event at most; the last is not empty. */
static void check_binary_parts(const char *suffix)
{
	binary_suffix = suffix;
	const unsigned before = folder_files();
	child_expect(record_binary_parts);
	const unsigned parts = folder_files() - before;
	for (unsigned i = 0; i < parts; i++) {
		char path[32];
		struct stat status;
		snprintf(path, sizeof(path), "part.%u.%s", i, suffix);
		assert_int_equal(stat(path, &status), 0);
		assert_true(status.st_size > 0 && status.st_size < PART_BYTES + 500);
		assert_true(i == parts - 1 || status.st_size >= PART_BYTES);
		assert_int_equal(unlink(path), 0);
	}
}

static void parts_of_binary_formats_have_their_size(void **state)
{
	(void)state;
	check_binary_parts("pftrace");
	check_binary_parts("fxt");
}

#define BLOCKS_BYTES 65536

static void record_blocks(void)
{
	struct kymo_session *session = start(
		(struct kymo_options){.path = "part.${rotation}.kymo", .max_bytes = BLOCKS_BYTES});
	uint64_t random = 1;
	for (int i = 0; i < 60000; i++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		KYMO_INSTANT("a", "event", "random", random);
		if (i % 5000 == 0)
			MUST(kymo_session_flush(session) == 0);
	}
	MUST(kymo_session_stop(&session) == 0);
}

/* What is packed in large portions is not packed too late. */
static void parts_of_blocks_are_not_larger(void **state)
{
	(void)state;
	child_expect(record_blocks);
	const unsigned parts = folder_files();
	assert_true(parts > 2);
	for (unsigned i = 0; i < parts; i++) {
		char path[32];
		struct stat status;
		snprintf(path, sizeof(path), "part.%u.kymo", i);
		assert_int_equal(stat(path, &status), 0);
		assert_true(status.st_size > 0 && status.st_size <= BLOCKS_BYTES);
	}
}

static void record_compressed_parts(void)
{
	struct kymo_session *session = start(
		(struct kymo_options){.path = "part.${rotation}.json.gz", .max_bytes = PART_BYTES});
	record_events(40000);
	MUST(kymo_session_stop(&session) == 0);
	size_t total = 0;
	const unsigned parts = folder_files();
	MUST(parts > 1);
	for (unsigned i = 0; i < parts; i++) {
		char path[32];
		static char data[8 << 20];
		snprintf(path, sizeof(path), "part.%u.json.gz", i);
		gzFile file = gzopen(path, "r");
		const int bytes = gzread(file, data, sizeof(data));
		MUST(bytes > 0 && gzclose(file) == Z_OK);
		struct json_trace trace;
		json_trace_parse(&trace, data, (size_t)bytes);
		MUST(trace.whole);
		total += json_trace_count(&trace, 'i', "event");
		json_trace_free(&trace);
		struct stat status;
		MUST(stat(path, &status) == 0 && status.st_size < PART_BYTES + 500);
	}
	MUST(total == 40000);
}

static void compressed_parts_count_what_is_on_disk(void **state)
{
	(void)state;
	child_expect(record_compressed_parts);
}

static void record_past_the_limit(void)
{
	struct kymo_session *session =
		start((struct kymo_options){.path = "out.json", .max_bytes = PART_BYTES});
	const int64_t deadline = now_ms() + PATIENCE_MS;
	while (KYMO_ENABLED("a")) {
		MUST(now_ms() < deadline);
		record_events(100);
		look_again();
	}
	MUST(kymo_session_error(session) == 0);
	struct kymo_stats stats = {.size = sizeof(stats)};
	MUST(kymo_session_flush(session) == 0);
	MUST(kymo_session_stats(session, &stats) == 0);
	struct json_trace trace;
	json_trace_read(&trace, "out.json");
	MUST(trace.whole && trace.bytes >= PART_BYTES && trace.bytes < PART_BYTES + 500);
	MUST(stats.events == json_trace_count(&trace, 'i', "event"));
	json_trace_free(&trace);
	MUST(kymo_session_stop(&session) == 0);
	MUST(folder_files() == 1);
}

static void without_a_place_for_parts_the_session_stops_at_the_limit(void **state)
{
	(void)state;
	child_expect(record_past_the_limit);
}

static void start_with_the_same_name(void)
{
	struct kymo_session *first = start((struct kymo_options){.path = "out.json"});
	struct kymo_session *second = start((struct kymo_options){.path = "out.json"});
	struct kymo_session *third = start((struct kymo_options){.path = "x${pid}.json"});
	record_events(3);
	MUST(kymo_session_stop(&first) == 0);
	MUST(kymo_session_stop(&second) == 0);
	MUST(kymo_session_stop(&third) == 0);
	char path[64];
	snprintf(path, sizeof(path), "out.%d.json", (int)getpid());
	MUST(json_file_count("out.json", 'i', "event") == 3);
	MUST(json_file_count(path, 'i', "event") == 3);
	snprintf(path, sizeof(path), "x%d.json", (int)getpid());
	MUST(json_file_count(path, 'i', "event") == 3);
	MUST(folder_files() == 3);
}

static void a_name_in_use_and_one_with_the_pid_are_told_apart(void **state)
{
	(void)state;
	child_expect(start_with_the_same_name);
}

static void write_to_descriptors(void)
{
	const int file = open("out.json", O_WRONLY | O_CREAT, 0666);
	const int ring = open("ring.json", O_WRONLY | O_CREAT, 0666);
	struct kymo_session *session =
		start((struct kymo_options){.fd = file, .format = KYMO_FORMAT_JSON});
	struct kymo_session *keeper = start((struct kymo_options){
		.fd = ring, .format = KYMO_FORMAT_JSON, .mode = KYMO_MODE_RING});
	close(file);
	close(ring);
	record_events(5);
	MUST(kymo_session_stop(&session) == 0);
	MUST(kymo_session_stop(&keeper) == 0);
	MUST(json_file_count("out.json", 'i', "event") == 5);
	MUST(json_file_count("ring.json", 'i', "event") == 5);
}

static void a_descriptor_is_duplicated_at_the_start(void **state)
{
	(void)state;
	child_expect(write_to_descriptors);
}

static void write_to_a_pipe(void)
{
	int ends[2];
	char data[4096];
	size_t bytes = 0;
	MUST(pipe(ends) == 0);
	struct kymo_session *session = start((struct kymo_options){
		.fd = ends[1], .format = KYMO_FORMAT_JSON, .duration_ms = 20});
	close(ends[1]);
	record_events(5);
	/* The end of the pipe comes with the end of the session, not when it is freed. */
	for (ssize_t part; (part = read(ends[0], data + bytes, sizeof(data) - bytes)) > 0;)
		bytes += (size_t)part;
	struct json_trace trace;
	json_trace_parse(&trace, data, bytes);
	MUST(trace.whole && json_trace_count(&trace, 'i', "event") == 5);
	json_trace_free(&trace);
	MUST(kymo_session_stop(&session) == 0);
}

static void a_pipe_gets_the_trace_and_then_its_end(void **state)
{
	(void)state;
	child_expect(write_to_a_pipe);
}

static void lose_the_reader(void)
{
	int ends[2];
	MUST(pipe(ends) == 0);
	struct kymo_session *session =
		start((struct kymo_options){.fd = ends[1], .format = KYMO_FORMAT_JSON});
	close(ends[0]);
	record_events(5);
	kymo_session_flush(session);
	MUST(kymo_session_error(session) == -EPIPE);
	MUST(kymo_session_flush(session) == -EPIPE);
	MUST(!KYMO_ENABLED("a"));
	MUST(kymo_session_stop(&session) == -EPIPE);
}

static void a_pipe_without_reader_ends_the_session_and_not_the_program(void **state)
{
	(void)state;
	child_expect(lose_the_reader);
}

static void write_to_stuck_pipes(void)
{
	int blocking[2], other[2];
	MUST(pipe(blocking) == 0 && pipe2(other, O_NONBLOCK) == 0);
	struct kymo_session *first =
		start((struct kymo_options){.fd = blocking[1], .format = KYMO_FORMAT_JSON});
	struct kymo_session *second =
		start((struct kymo_options){.fd = other[1], .format = KYMO_FORMAT_JSON});
	MUST((fcntl(blocking[1], F_GETFL) & O_NONBLOCK) == 0);
	record_events(10000);
	MUST(wait_for_error(first) == -EAGAIN);
	MUST(wait_for_error(second) == -EAGAIN);
	MUST(kymo_session_stop(&first) == -EAGAIN);
	MUST(kymo_session_stop(&second) == -EAGAIN);
}

static void a_pipe_that_nobody_reads_ends_the_session_after_a_while(void **state)
{
	(void)state;
	child_expect(write_to_stuck_pipes);
}

/* The descriptor that the library has open on the file. */
static int find_descriptor(const char *name)
{
	DIR *dir = opendir("/proc/self/fd");
	int found = -1;
	for (struct dirent *entry; found < 0 && (entry = readdir(dir));) {
		char link[256];
		const ssize_t bytes = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		link[bytes > 0 ? bytes : 0] = '\0';
		const char *slash = strrchr(link, '/');
		if (slash && strcmp(slash + 1, name) == 0)
			found = atoi(entry->d_name);
	}
	closedir(dir);
	MUST(found >= 0);
	return found;
}

static void close_underneath(void)
{
	struct kymo_session *session = start((struct kymo_options){.path = "out.json"});
	record_events(5);
	MUST(kymo_session_flush(session) == 0);
	MUST(close(find_descriptor("out.json")) == 0);
	record_events(5);
	MUST(kymo_session_flush(session) == -EBADF);
	MUST(kymo_session_error(session) == -EBADF);
	MUST(kymo_session_stop(&session) == -EBADF);
	MUST(json_file_count("out.json", 'i', "event") == 5);
}

static void a_descriptor_closed_underneath_ends_the_session(void **state)
{
	(void)state;
	child_expect(close_underneath);
}

static void take_the_number(void)
{
	struct kymo_session *session = start((struct kymo_options){.path = "out.json"});
	MUST(kymo_session_flush(session) == 0);
	const int number = find_descriptor("out.json");
	const int database = dup2(open("database", O_RDWR | O_CREAT, 0666), number);
	MUST(database == number);
	record_events(5);
	MUST(kymo_session_flush(session) == -EBADF);
	MUST(kymo_session_stop(&session) == -EBADF);
	struct stat status;
	MUST(fstat(database, &status) == 0 && status.st_size == 0);
}

static void a_file_of_the_program_under_the_old_number_is_left_alone(void **state)
{
	(void)state;
	child_expect(take_the_number);
}

static void need_small_disk(void)
{
	if (child_may_own_mounts())
		return;
	print_message("skipped: a small disk needs root and mounts of its own (unshare -m)\n");
	skip();
}

static void fill_the_disk(void)
{
	child_own_mounts();
	MUST(mkdir("disk", 0777) == 0);
	MUST(mount("tmpfs", "disk", "tmpfs", 0, "size=128k") == 0);
	struct kymo_session *session = start((struct kymo_options){.path = "disk/out.json"});
	struct kymo_session *other = start((struct kymo_options){.path = "other.json"});
	record_events(EVENTS);
	MUST(kymo_session_flush(session) == -ENOSPC);
	MUST(kymo_session_error(session) == -ENOSPC);
	MUST(strcmp(kymo_strerror(-ENOSPC), "No space left on device") == 0);
	struct kymo_stats stats = {.size = sizeof(stats)};
	MUST(kymo_session_stats(session, &stats) == 0);
	MUST(kymo_session_stop(&session) == -ENOSPC);
	MUST(kymo_session_stop(&other) == 0);
	struct json_trace trace;
	json_trace_read(&trace, "disk/out.json");
	const size_t count = json_trace_count(&trace, 'i', "event");
	MUST(trace.bytes > 100000 && count > 500 && count < EVENTS);
	MUST(stats.events <= count);
	for (size_t i = 0; i < count; i++)
		MUST(json_trace_arg(json_trace_find(&trace, 'i', "event", i + 2), "i") >= (int)i);
	json_trace_free(&trace);
	MUST(json_file_count("other.json", 'i', "event") == EVENTS);
	MUST(umount("disk") == 0);
}

static void a_full_disk_ends_one_session_with_an_error(void **state)
{
	(void)state;
	need_small_disk();
	child_expect(fill_the_disk);
}

static void rotate_on_a_full_disk(void)
{
	child_own_mounts();
	MUST(mkdir("disk", 0777) == 0);
	MUST(mount("tmpfs", "disk", "tmpfs", 0, "size=128k") == 0);
	struct kymo_session *session = start(
		(struct kymo_options){.path = "disk/${rotation}.json", .max_bytes = PART_BYTES});
	record_events(EVENTS);
	MUST(kymo_session_flush(session) == -ENOSPC);
	MUST(kymo_session_stop(&session) == -ENOSPC);
	/* None was begun after the one that did not fit. */
	unsigned files = 0;
	char path[32];
	struct stat status;
	for (;; files++) {
		snprintf(path, sizeof(path), "disk/%u.json", files);
		if (stat(path, &status) != 0)
			break;
		MUST(status.st_size > 0);
	}
	MUST(files > 4 && files < 10);
	MUST(umount("disk") == 0);
}

static void parts_end_with_the_one_that_did_not_fit(void **state)
{
	(void)state;
	need_small_disk();
	child_expect(rotate_on_a_full_disk);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(parts_stand_alone_and_hold_everything_once),
		TEST(the_last_part_is_not_empty),
		TEST(parts_of_binary_formats_have_their_size),
		TEST(parts_of_blocks_are_not_larger),
		TEST(compressed_parts_count_what_is_on_disk),
		TEST(without_a_place_for_parts_the_session_stops_at_the_limit),
		TEST(a_name_in_use_and_one_with_the_pid_are_told_apart),
		TEST(a_descriptor_is_duplicated_at_the_start),
		TEST(a_pipe_gets_the_trace_and_then_its_end),
		TEST(a_pipe_without_reader_ends_the_session_and_not_the_program),
		TEST(a_pipe_that_nobody_reads_ends_the_session_after_a_while),
		TEST(a_descriptor_closed_underneath_ends_the_session),
		TEST(a_file_of_the_program_under_the_old_number_is_left_alone),
		TEST(a_full_disk_ends_one_session_with_an_error),
		TEST(parts_end_with_the_one_that_did_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
