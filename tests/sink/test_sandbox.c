/* SPDX-License-Identifier: MIT */
/*
 * test_sandbox.c: after kymo_prepare() a thread's events make no system call: not in seccomp's strict mode, where
 * even the CPU's counter is out of reach, nor behind a filter. The parent made the memory, and reads it afterwards.
 */
#include "child.h"

#include "core/drum.h"
#include "formats/drum/drum_file.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/session.h>
#include <linux/filter.h>
#include <linux/memfd.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS 12000u

static int memory = -1;

static void configure(void)
{
	ky_limits.categories = "*";
	if (memory >= 0)
		ky_limits.fd = memory;
	else
		ky_limits.dir = ".";
}

static void enter_strict(void)
{
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
}

static void enter_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Many blocks of trace points that are all new: each is registered behind the fence. */
static void record_and_end(void)
{
	for (uint32_t i = 0; i < EVENTS; i++) {
		char text[16] = "text";
		const char *const t = text;
		text[i % 5] = '\0';
		KYMO_INSTANT("a", "plain", "number", 2 * i);
		KYMO_INSTANT("b", "text", "number", 2 * i + 1, "text", t);
	}
	KYMO_PRINT("c", "the end of %u", EVENTS);
	syscall(SYS_exit, 0);
}

static void live_in_strict_mode(void)
{
	configure();
	MUST(kymo_prepare(KYMO_SANDBOX_STRICT) == 0);
	enter_strict();
	record_and_end();
}

static void live_behind_a_filter(void)
{
	configure();
	MUST(kymo_prepare(KYMO_SANDBOX_FILTER) == 0);
	enter_filter();
	record_and_end();
}

static void live_unprepared(void)
{
	configure();
	enter_filter();
	record_and_end();
}

struct found {
	uint32_t next, others;
	uint64_t lost, last_ns;
	bool wrong;
};

static void on_event(void *context, const struct ky_event *e)
{
	struct found *found = context;
	found->wrong |= e->time_ns < found->last_ns;
	found->last_ns = e->time_ns;
	if (e->kind == KYMO_KIND_LOST)
		found->lost += e->id;
	else if (e->kind == KYMO_KIND_INSTANT)
		found->wrong |= e->args[0].value.u != found->next++;
	else
		found->others++;
}

static uint64_t boottime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void expect_all(const char *path, uint64_t begin_ns)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_drum_file *file;
	struct ky_stream *stream;
	struct ky_drum_facts facts;
	struct found found = {0};
	if (path)
		assert_int_equal(ky_drum_file_open(&file, path, message), 0);
	else
		assert_int_equal(ky_drum_file_open_fd(&file, memory, "memory", message), 0);
	assert_int_equal(ky_drum_file_stream(file, NULL, false, &stream, message), 0);
	stream->sink = (struct ky_stream_sink){.event = on_event, .context = &found};
	assert_int_equal(ky_drum_file_read(file, true), 0);
	ky_drum_file_facts(file, &facts);
	assert_int_equal(facts.damaged, 0);
	assert_false(found.wrong);
	assert_int_equal(found.lost, 0);
	assert_int_equal(found.next, 2 * EVENTS);
	assert_int_equal(found.others, 1);
	/* A step of the kernel's tick, and the error of a rate that was measured for a moment. */
	assert_true(found.last_ns >= begin_ns && found.last_ns <= boottime_ns() + 100000000);
	ky_drum_file_close(&file);
}

static void make_memory(void)
{
	memory = (int)syscall(SYS_memfd_create, "kymo-drum", MFD_ALLOW_SEALING);
	assert_true(memory >= 0 && ftruncate(memory, 64 << 20) == 0);
	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
}

/* Run the body in a child with a drum in memory. Return how it ended. */
static int run_in_memory(void (*body)(void), bool check)
{
	const uint64_t begin_ns = boottime_ns();
	make_memory();
	const int status = child_run(body);
	if (check)
		expect_all(NULL, begin_ns);
	close(memory);
	memory = -1;
	return status;
}

static bool skip_with_sanitizers(void)
{
	if (SANITIZED)
		print_message("skipped: sanitizers make system calls of their own\n");
	return SANITIZED;
}

static void events_need_no_system_call_in_strict_mode(void **state)
{
	(void)state;
	if (!skip_with_sanitizers())
		assert_int_equal(run_in_memory(live_in_strict_mode, true), 0);
}

static void events_need_no_system_call_behind_a_filter(void **state)
{
	(void)state;
	if (skip_with_sanitizers())
		return;
	assert_int_equal(run_in_memory(live_behind_a_filter, true), 0);
	/* So the filter is one. */
	assert_true(WIFSIGNALED(run_in_memory(live_unprepared, false)));
}

static void live_on_disk(void)
{
	live_behind_a_filter();
}

static void nor_with_the_memory_in_a_file(void **state)
{
	(void)state;
	char path[64];
	if (skip_with_sanitizers())
		return;
	const uint64_t begin_ns = boottime_ns();
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0)
		live_on_disk();
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	snprintf(path, sizeof(path), "kymo-%d.drum", (int)pid);
	expect_all(path, begin_ns);
}

static void check_descriptors(void)
{
	int before[8], after[8];
	struct kymo_session *session;
	const struct kymo_options options = {.size = sizeof(options), .path = "out.json"};
	MUST(kymo_prepare(KYMO_SANDBOX_FILTER) == 0);
	const int count = kymo_descriptors(before, 8);
	MUST(count == 1);
	MUST(kymo_session_start(&session, &options) == 0);
	MUST(kymo_prepare(KYMO_SANDBOX_FILTER) == 0);
	MUST(kymo_descriptors(after, 8) == count + 1 && after[0] == before[0]);
	/* Close all others: the session goes on. */
	for (int fd = 3; fd < 256; fd++)
		if (fd != after[0] && fd != after[1])
			close(fd);
	KYMO_INSTANT("a", "event");
	struct kymo_stats stats = {.size = sizeof(stats)};
	MUST(kymo_session_flush(session) == 0 && kymo_session_stats(session, &stats) == 0);
	MUST(stats.events == 1 && stats.lost == 0);
	MUST(kymo_prepare(2) == KYMO_EOPTIONS);
}

static void the_listed_descriptors_are_enough(void **state)
{
	(void)state;
	child_expect(check_descriptors);
}

/* ---- with KYMO_TRACE: in a program that was executed again ---- */

static void prepare_in_a_child(void)
{
	KYMO_INSTANT("a", "event");
	const pid_t pid = fork();
	if (pid == 0) {
		char path[64];
		int fds[8];
		MUST(kymo_prepare(KYMO_SANDBOX_FILTER) == 0);
		snprintf(path, sizeof(path), "out.%d.json", (int)getpid());
		MUST(access(path, F_OK) == 0 && kymo_descriptors(fds, 8) == 2);
		exit(0);
	}
	int status = -1;
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_child_that_prepares_begins_its_session(void **state)
{
	(void)state;
	char *const environment[] = {(char *)(uintptr_t) "KYMO_TRACE=out.json", NULL};
	if (!FORKS_KEEP_LOCKS)
		assert_int_equal(child_exec("prepare_in_a_child", environment), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(int argc, char **argv)
{
	static const struct child_body bodies[] = {
		{"prepare_in_a_child", prepare_in_a_child},
		{NULL, NULL},
	};
	child_main(argc, argv, bodies);
	const struct CMUnitTest tests[] = {
		TEST(events_need_no_system_call_in_strict_mode),
		TEST(events_need_no_system_call_behind_a_filter),
		TEST(nor_with_the_memory_in_a_file),
		TEST(the_listed_descriptors_are_enough),
		TEST(a_child_that_prepares_begins_its_session),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
