/* SPDX-License-Identifier: MIT */
/*
 * test_marker.c: events as lines in ftrace's trace_marker, read back from an ftrace instance made
 * for the test. In a mount namespace of its own, the instance's trace_marker replaces
 * the machine's, so nobody else's trace is written to. Needs root and tracefs, and says so.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/session.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TRACING "/sys/kernel/tracing"

static char instance[64];
static char text[1 << 20]; /* of the instance's trace */

static bool mount_tracefs(void)
{
	return access(TRACING "/trace_marker", F_OK) == 0 ||
	       mount("tracefs", TRACING, "tracefs", 0, NULL) == 0;
}

static void try_tracefs(void)
{
	child_own_mounts();
	snprintf(instance, sizeof(instance), TRACING "/instances/kymo-try-%d", (int)getpid());
	if (!mount_tracefs() || mkdir(instance, 0700) != 0 || rmdir(instance) != 0)
		_exit(1);
}

static bool have_tracefs(void)
{
	static int have = -1;
	if (have < 0)
		have = geteuid() == 0 && child_run(try_tracefs) == 0;
	return have == 1;
}

static int open_in_instance(const char *name, int flags)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", instance, name);
	const int fd = open(path, flags | O_CLOEXEC);
	MUST(fd >= 0);
	return fd;
}

/* Named for the test program: its bodies run one at a time, and it removes what they leave. */
static void name_instance(void)
{
	child_own_mounts();
	MUST(mount_tracefs());
	snprintf(instance, sizeof(instance), TRACING "/instances/kymo-test-%d", (int)getppid());
}

static void use_instance(void)
{
	char path[128];
	name_instance();
	MUST(mkdir(instance, 0700) == 0);
	snprintf(path, sizeof(path), "%s/trace_marker", instance);
	MUST(mount(path, TRACING "/trace_marker", NULL, MS_BIND, NULL) == 0);
}

static void remove_instance(void)
{
	name_instance();
	MUST(rmdir(instance) == 0);
}

static void read_trace(int fd)
{
	size_t bytes = 0;
	lseek(fd, 0, SEEK_SET);
	for (ssize_t part; (part = read(fd, text + bytes, sizeof(text) - 1 - bytes)) > 0;)
		bytes += (size_t)part;
	text[bytes] = '\0';
}

static void read_instance(void)
{
	const int fd = open_in_instance("trace", O_RDONLY);
	read_trace(fd);
	close(fd);
}

/* What was written in the line that has the words, without the kernel's own part. */
static const char *line_with(const char *words)
{
	static char line[1100];
	const char *at = strstr(text, words);
	if (!at)
		fprintf(stderr, "no \"%s\" in:\n%s", words, text);
	MUST(at != NULL);
	while (at > text && at[-1] != '\n')
		at--;
	at = strstr(at, "tracing_mark_write: ");
	MUST(at != NULL);
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + 20, "\n"), at + 20);
	return line;
}

static unsigned lines_with(const char *words)
{
	unsigned count = 0;
	for (const char *at = text; (at = strstr(at, words)); at++)
		count++;
	return count;
}

static void in_instance(void (*body)(void))
{
	if (!have_tracefs()) {
		print_message(
			"skipped: needs root, mounts of its own (unshare -m) and tracefs with instances\n");
		skip();
	}
	const int status = child_run(body);
	child_expect(remove_instance);
	assert_int_equal(status, 0);
}

static struct kymo_session *start(int format)
{
	struct kymo_session *session = NULL;
	const struct kymo_options options = {
		.size = sizeof(options), .format = format, .categories = "a*"};
	MUST(kymo_session_start(&session, &options) == 0);
	return session;
}

static void record_spans(void)
{
	const char *name = "of its own";
	KYMO_SCOPE("a", "outer", "bytes", 12, "peer", "me\nyou", "ratio", 0.5, "on", (_Bool)1);
	{
		KYMO_SCOPE("a.b", "inner");
		KYMO_INSTANT_DYN("a", name, "p", (void *)255, "u", UINT64_MAX);
	}
	KYMO_SCOPE_DYN("a", name);
	KYMO_INSTANT("other", "unwanted");
	KYMO_ASYNC_BEGIN("a", "async", 7);
	KYMO_ASYNC_END("a", "async", 7);
	KYMO_COUNTER("a", "queue|length", 2.5);
	KYMO_PRINT("a", "%d of %s", 3, "four");
	KYMO_SCOPE("a.fs", "process_fs_queue", "slot", 0, "self.tag", "mtd\"root\"");
}

static unsigned long long id_of(const char *words)
{
	return strtoull(line_with(words), NULL, 10);
}

static void expect_line(const char *words, const char *expected)
{
	MUST(strcmp(strchr(line_with(words), ' ') + 1, expected) == 0);
}

static void write_readable_lines(void)
{
	use_instance();
	struct kymo_session *session = start(KYMO_FORMAT_MARKER);
	record_spans();
	struct kymo_stats stats = {.size = sizeof(stats)};
	MUST(kymo_session_stats(session, &stats) == 0);
	MUST(stats.events == 13 && stats.bytes > 200 && stats.lost == 0);
	MUST(kymo_session_stop(&session) == 0);
	record_spans();
	read_instance();
	MUST(lines_with("tracing_mark_write: ") == 13);
	expect_line("Enter: outer",
		    "a Enter: outer - (bytes: 12)(peer: \"me\\nyou\")(ratio: 0.5)(on: true)");
	expect_line("Enter: inner", "a.b Enter: inner");
	expect_line("Exit: inner", "a.b Exit: inner");
	expect_line("Instant: of", "a Instant: of its own - (p: 0xff)(u: 18446744073709551615)");
	expect_line("Enter: of", "a Enter: of its own");
	expect_line("Async enter", "a Async enter: async #0x7");
	expect_line("Async exit", "a Async exit: async #0x7");
	expect_line("Counter", "a Counter: queue|length - (value: 2.5)");
	MUST(strcmp(line_with("of four"), "3 of four") == 0);
	/* As crosvm's users know them. */
	expect_line("Enter: process",
		    "a.fs Enter: process_fs_queue - (slot: 0)(self.tag: \"mtd\\\"root\\\"\")");
	expect_line("Exit: process", "a.fs Exit: process_fs_queue");
	MUST(id_of("Enter: outer") == id_of("Exit: outer"));
	MUST(id_of("Enter: inner") == id_of("Exit: inner"));
	MUST(id_of("Enter: outer") != id_of("Enter: inner"));
	MUST(lines_with("unwanted") == 0);
}

static void events_are_readable_lines_with_matching_ids(void **state)
{
	(void)state;
	in_instance(write_readable_lines);
}

static void write_atrace_lines(void)
{
	use_instance();
	struct kymo_session *session = start(KYMO_FORMAT_MARKER_ATRACE);
	record_spans();
	MUST(kymo_session_stop(&session) == 0);
	read_instance();
	static const char *const expected[] = {
		"B|%d|outer\n",   "B|%d|inner\n",          "I|%d|of its own\n",
		"E|%d\n",         "B|%d|of its own\n",     "S|%d|async|7\n",
		"F|%d|async|7\n", "C|%d|queue/length|3\n", "I|%d|3 of four\n"};
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		char line[64];
		snprintf(line, sizeof(line), expected[i], (int)getpid());
		MUST(lines_with(line) == (line[0] == 'E' ? 4 : 1));
	}
	const char *keep = getenv("KYMO_TEST_KEEP"); /* for another tool to read */
	FILE *copy = keep ? fopen(keep, "w") : NULL;
	if (copy) {
		fputs(text, copy);
		fclose(copy);
	}
}

static void events_are_lines_that_perfetto_reads(void **state)
{
	(void)state;
	in_instance(write_atrace_lines);
}

static void start_without_tracefs(void)
{
	struct kymo_session *session = (void *)1;
	const struct kymo_options options = {.size = sizeof(options), .format = KYMO_FORMAT_MARKER};
	if (geteuid() == 0 && access("/sys/kernel", F_OK) == 0) {
		child_own_mounts();
		MUST(mount("tmpfs", "/sys/kernel", "tmpfs", 0, NULL) == 0);
	}
	MUST(kymo_session_start(&session, &options) == KYMO_EMARKER && !session);
	MUST(strstr(kymo_strerror(KYMO_EMARKER), "mount -t tracefs"));
	MUST(kymo_descriptors(NULL, 0) == 1);
}

static void start_without_permission(void)
{
	struct kymo_session *session = (void *)1;
	const struct kymo_options options = {.size = sizeof(options), .format = KYMO_FORMAT_MARKER};
	use_instance();
	const pid_t pid = fork();
	if (pid == 0) {
		MUST(setgid(65534) == 0 && setuid(65534) == 0);
		MUST(kymo_session_start(&session, &options) == KYMO_EMARKER && !session);
		_exit(0);
	}
	int status = -1;
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void without_trace_marker_the_error_says_what_to_do(void **state)
{
	(void)state;
	/* Root hides tracefs for it. */
	if (geteuid() == 0 && access("/sys/kernel", F_OK) == 0 && !child_may_own_mounts()) {
		print_message("skipped: root needs mounts of its own (unshare -m)\n");
		skip();
	}
	child_expect(start_without_tracefs);
	in_instance(start_without_permission);
}

static void start_two(void)
{
	use_instance();
	struct kymo_session *first = start(KYMO_FORMAT_MARKER), *second = (void *)1;
	const struct kymo_options options = {.size = sizeof(options), .format = KYMO_FORMAT_MARKER};
	MUST(kymo_session_start(&second, &options) == -EBUSY && !second);
	MUST(kymo_session_stop(&first) == 0);
	MUST(kymo_session_start(&second, &options) == 0);
	MUST(kymo_session_stop(&second) == 0);
}

static void one_marker_session_at_a_time(void **state)
{
	(void)state;
	in_instance(start_two);
}

static void list_descriptors(void)
{
	int fds[4] = {-1, -1, -1, -1};
	struct stat drum, own;
	use_instance();
	const int given = open_in_instance("trace_marker", O_WRONLY);
	MUST(kymo_descriptors(fds, 4) ==
	     1); /* the drum, made if there was none: a child may not be able to */
	struct kymo_session *session = NULL;
	const struct kymo_options options = {
		.size = sizeof(options), .format = KYMO_FORMAT_MARKER, .fd = given};
	MUST(kymo_session_start(&session, &options) == 0);
	MUST(kymo_descriptors(NULL, 0) == 2);
	MUST(kymo_descriptors(fds, 1) == 2 && fds[0] > 2 && fds[1] == -1);
	MUST(kymo_descriptors(fds, 4) == 2 && fds[1] > 2 && fds[1] != given);
	MUST(fstat(fds[0], &drum) == 0 && drum.st_size > 1 << 20);
	MUST(fstat(fds[1], &own) == 0 && fstat(given, &drum) == 0 && own.st_ino == drum.st_ino);
	close(given);
	KYMO_INSTANT("a", "through the copy");
	MUST(kymo_session_stop(&session) == 0);
	MUST(fcntl(fds[1], F_GETFD) < 0);
	MUST(kymo_descriptors(fds, 4) == 1);
	read_instance();
	MUST(lines_with("through the copy") == 1);
}

static void descriptors_to_keep_are_the_drum_and_the_marker(void **state)
{
	(void)state;
	in_instance(list_descriptors);
}

/* From here on every system call but write and exit kills. */
static void allow_write_only(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void be_locked_up(void)
{
	MUST(mkdir("jail", 0777) == 0 && chroot("jail") == 0);
	start(KYMO_FORMAT_MARKER);
	KYMO_INSTANT("a", "in a jail");
	if (!SANITIZED)
		allow_write_only();
	for (int i = 0; i < 1000; i++)
		KYMO_INSTANT("a", "by write alone", "i", i);
	_exit(0);
}

static void enter_a_sandbox(void)
{
	use_instance();
	struct kymo_session *session = start(KYMO_FORMAT_MARKER);
	KYMO_INSTANT("a", "of the parent");
	const pid_t pid = fork();
	if (pid == 0)
		be_locked_up();
	int status = -1;
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	KYMO_INSTANT("a", "of the parent");
	MUST(kymo_session_stop(&session) == 0);
	read_instance();
	MUST(lines_with("of the parent") == 2 && lines_with("in a jail") == 1);
	MUST(lines_with("by write alone") == 1000);
	MUST(rmdir("jail") == 0);
}

static void a_child_goes_on_in_a_sandbox_with_what_was_opened_before(void **state)
{
	(void)state;
	in_instance(enter_a_sandbox);
}

static _Atomic bool busy;

static void *record_for_ever(void *argument)
{
	(void)argument;
	while (busy) {
		KYMO_SCOPE("a", "span", "text", "some");
	}
	return NULL;
}

static void stop_under_load(void)
{
	pthread_t threads[3];
	struct kymo_session *none;
	const struct kymo_options options = {.size = sizeof(options), .format = KYMO_FORMAT_NONE};
	use_instance();
	MUST(kymo_session_start(&none, &options) == 0); /* the threads record all along */
	busy = true;
	for (int i = 0; i < 3; i++)
		MUST(pthread_create(&threads[i], NULL, record_for_ever, NULL) == 0);
	for (int i = 0; i < 20; i++) {
		struct kymo_session *session = start(KYMO_FORMAT_MARKER);
		struct kymo_stats stats = {.size = sizeof(stats)};
		for (int looks = 0; looks < 1000 && stats.events == 0; looks++) {
			MUST(kymo_session_stats(session, &stats) == 0);
			look_again();
		}
		MUST(stats.events > 0);
		MUST(kymo_session_stop(&session) == 0);
	}
	busy = false;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	MUST(kymo_session_stop(&none) == 0);
}

static void a_session_may_end_while_threads_write(void **state)
{
	(void)state;
	in_instance(stop_under_load);
}

/* Threads that have recorded before: their next event would not take the slow path by itself. */
#define EARLIER 8

static pthread_barrier_t gate;

static void *record_before_and_after(void *argument)
{
	char name[32];
	snprintf(name, sizeof(name), "thread %d", (int)(intptr_t)argument);
	for (int i = 0; i < 3; i++)
		KYMO_INSTANT("a", "before");
	pthread_barrier_wait(&gate);
	pthread_barrier_wait(&gate); /* the session has begun */
	KYMO_INSTANT_DYN("a", name);
	return NULL;
}

static void start_beside_threads(void)
{
	pthread_t threads[EARLIER];
	struct kymo_session *none;
	const struct kymo_options options = {.size = sizeof(options), .format = KYMO_FORMAT_NONE};
	use_instance();
	MUST(kymo_session_start(&none, &options) == 0);
	MUST(pthread_barrier_init(&gate, NULL, EARLIER + 1) == 0);
	for (intptr_t i = 0; i < EARLIER; i++)
		MUST(pthread_create(&threads[i], NULL, record_before_and_after, (void *)i) == 0);
	pthread_barrier_wait(&gate);
	struct kymo_session *session = start(KYMO_FORMAT_MARKER);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < EARLIER; i++)
		pthread_join(threads[i], NULL);
	MUST(kymo_session_stop(&session) == 0 && kymo_session_stop(&none) == 0);
	read_instance();
	MUST(lines_with("before") == 0);
	for (int i = 0; i < EARLIER; i++) {
		char name[32];
		snprintf(name, sizeof(name), "thread %d", i);
		MUST(lines_with(name) == 1);
	}
}

static void each_thread_is_seen_from_its_first_event(void **state)
{
	(void)state;
	in_instance(start_beside_threads);
}

static void switch_tracing(const char *value)
{
	const int fd = open_in_instance("tracing_on", O_WRONLY);
	MUST(write(fd, value, 1) == 1);
	close(fd);
}

static void record_while_tracing_is_off(void)
{
	use_instance();
	struct kymo_session *session = start(KYMO_FORMAT_MARKER);
	struct kymo_stats stats = {.size = sizeof(stats)};
	switch_tracing("0");
	KYMO_INSTANT("a", "nowhere");
	MUST(kymo_session_stats(session, &stats) == 0 && stats.lost == 1 && stats.events == 0);
	MUST(kymo_session_error(session) == 0);
	switch_tracing("1");
	KYMO_INSTANT("a", "somewhere");
	MUST(kymo_session_stop(&session) == 0);
	read_instance();
	MUST(lines_with("nowhere") == 0 && lines_with("somewhere") == 1);
}

static void while_tracing_is_off_events_count_as_lost(void **state)
{
	(void)state;
	in_instance(record_while_tracing_is_off);
}

static void *record_with_cancel_pending(void *reached)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	KYMO_INSTANT("a", "event");
	*(bool *)reached = true;
	return NULL;
}

static void record_lines_that_are_too_long(void)
{
	char large[300];
	memset(large, 'x', sizeof(large));
	large[299] = '\0';
	KYMO_INSTANT("a", "large", "a", large, "b", large, "c", large, "d", large, "e", large);
}

static void record_at_the_edges(void)
{
	use_instance();
	struct kymo_session *session = start(KYMO_FORMAT_MARKER);
	pthread_t thread;
	bool reached = false;
	MUST(pthread_create(&thread, NULL, record_with_cancel_pending, &reached) == 0);
	pthread_join(thread, NULL);
	MUST(reached);
	record_lines_that_are_too_long();
	for (int i = 0; i < 40; i++)
		KYMO_BEGIN("a", "deep");
	for (int i = 0; i < 40; i++)
		KYMO_END("a");
	KYMO_END("a");
	errno = 1234;
	KYMO_INSTANT("a", "last");
	MUST(errno == 1234);
	MUST(kymo_session_stop(&session) == 0);
	read_instance();
	MUST(strncmp(strchr(line_with("large"), ' '), " a Instant: large - (a: \"xxx", 28) == 0);
	MUST(lines_with("Enter: deep") == 40 && lines_with("Exit: ") == 41);
	MUST(lines_with("Instant: last") == 1);
}

static void long_lines_deep_spans_and_cancelled_threads_do_no_harm(void **state)
{
	(void)state;
	in_instance(record_at_the_edges);
}

static void run_for_a_while(void)
{
	struct kymo_session *session = NULL, *other = NULL;
	const struct kymo_options options = {
		.size = sizeof(options), .format = KYMO_FORMAT_MARKER, .duration_ms = 20};
	const struct kymo_options none = {.size = sizeof(none), .format = KYMO_FORMAT_NONE};
	use_instance();
	MUST(kymo_session_start(&other, &none) == 0);
	MUST(kymo_session_start(&session, &options) == 0);
	const int64_t deadline = now_ms() + PATIENCE_MS;
	struct kymo_stats before, now = {.size = sizeof(now)};
	do {
		MUST(now_ms() < deadline);
		MUST(kymo_session_stats(session, &now) == 0);
		before = now;
		KYMO_INSTANT("a", "event");
		look_again();
		MUST(kymo_session_stats(session, &now) == 0);
	} while (now.events != before.events);
	MUST(kymo_session_stop(&session) == 0 && kymo_session_stop(&other) == 0);
}

static void a_marker_session_ends_after_its_duration(void **state)
{
	(void)state;
	in_instance(run_for_a_while);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_are_readable_lines_with_matching_ids),
		TEST(events_are_lines_that_perfetto_reads),
		TEST(without_trace_marker_the_error_says_what_to_do),
		TEST(one_marker_session_at_a_time),
		TEST(descriptors_to_keep_are_the_drum_and_the_marker),
		TEST(a_child_goes_on_in_a_sandbox_with_what_was_opened_before),
		TEST(a_session_may_end_while_threads_write),
		TEST(each_thread_is_seen_from_its_first_event),
		TEST(while_tracing_is_off_events_count_as_lost),
		TEST(long_lines_deep_spans_and_cancelled_threads_do_no_harm),
		TEST(a_marker_session_ends_after_its_duration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
