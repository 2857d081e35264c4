/* SPDX-License-Identifier: MIT */
/*
 * test_off_cpu.c: threads of a process go off the CPU and come back: as records, made up here, and as spans of a real
 * child that is read as a capture reads it.
 */
#include <errno.h>
#include <kymo/kymo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/stream.h"
#include "functrace/off_cpu.h"

#define THREADS 4
#define NAPS 20

/* ---- records ---- */

struct record {
	struct perf_event_header head;
	uint32_t words[10];
};

static struct record record_of(uint32_t type, uint16_t misc, uint16_t bytes)
{
	return (struct record){.head = {.type = type, .misc = misc, .size = bytes}};
}

static bool parse(struct ky_off_cpu_event *one, const struct record *record)
{
	struct ky_perf_record parsed;
	return ky_perf_record_parse(&parsed, &record->head, PERF_SAMPLE_TID | PERF_SAMPLE_TIME) &&
	       ky_off_cpu_parse(one, &parsed);
}

static struct record switch_of(uint16_t misc)
{
	struct record record = record_of(PERF_RECORD_SWITCH, misc, 8 + 16);
	record.words[0] = 10;
	record.words[1] = 11;
	record.words[2] = 1000;
	return record;
}

static void switches_are_told_with_their_reason(void **state)
{
	(void)state;
	struct ky_off_cpu_event one;
	const uint16_t out = PERF_RECORD_MISC_SWITCH_OUT;
	struct record record = switch_of(0);
	assert_true(parse(&one, &record));
	assert_int_equal(one.kind, KY_OFF_CPU_IN);
	assert_int_equal(one.pid, 10);
	assert_int_equal(one.tid, 11);
	assert_int_equal(one.time_ns, 1000);
	record = switch_of(out);
	assert_true(parse(&one, &record));
	assert_int_equal(one.kind, KY_OFF_CPU_WAITING);
	record = switch_of(out | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	assert_true(parse(&one, &record));
	assert_int_equal(one.kind, KY_OFF_CPU_PREEMPTED);
}

static void a_threads_end_is_told(void **state)
{
	(void)state;
	struct ky_off_cpu_event one;
	/* pid, ppid, tid, ptid, time, and the thread that ended. */
	struct record record = record_of(PERF_RECORD_EXIT, 0, 8 + 24 + 16);
	record.words[0] = 20;
	record.words[2] = 21;
	record.words[8] = 2000;
	assert_true(parse(&one, &record));
	assert_int_equal(one.kind, KY_OFF_CPU_ENDED);
	assert_int_equal(one.pid, 20);
	assert_int_equal(one.tid, 21);
	assert_int_equal(one.time_ns, 2000);
}

static void other_records_and_short_ones_are_passed_over(void **state)
{
	(void)state;
	struct ky_off_cpu_event one;
	struct record record = switch_of(0);
	record.head.size = 8;
	assert_false(parse(&one, &record));
	record = switch_of(0);
	record.words[1] = 0; /* the idle thread */
	assert_false(parse(&one, &record));
	record = record_of(PERF_RECORD_EXIT, 0, 8 + 16);
	assert_false(parse(&one, &record));
	record = record_of(PERF_RECORD_COMM, 0, 8 + 24);
	assert_false(parse(&one, &record));
}

/* ---- a real process ---- */

static struct drums {
	uint8_t *base;
	size_t bytes;
	pid_t pid;
	uint32_t count;
} seen;

static void take_drum(void *context, pid_t pid, int fd)
{
	struct stat status;
	(void)context;
	assert_int_equal(fstat(fd, &status), 0);
	seen.bytes = (size_t)status.st_size;
	seen.base = mmap(NULL, seen.bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(seen.base != MAP_FAILED);
	seen.pid = pid;
	seen.count++;
}

static void *nap(void *context)
{
	(void)context;
	for (int i = 0; i < NAPS; i++)
		usleep(1000);
	return NULL;
}

static _Noreturn void sleeper(int go)
{
	pthread_t threads[THREADS];
	char word;
	if (read(go, &word, 1) != 1)
		_exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, nap, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

struct counted {
	uint32_t begins, ends;
	int32_t depth[1 + THREADS];
	int32_t tids[1 + THREADS];
	uint64_t last_ns[1 + THREADS];
	uint32_t threads;
};

static uint32_t thread_of(struct counted *counted, int32_t tid)
{
	for (uint32_t i = 0; i < counted->threads; i++)
		if (counted->tids[i] == tid)
			return i;
	assert_true(counted->threads < 1 + THREADS);
	counted->tids[counted->threads] = tid;
	return counted->threads++;
}

static void on_event(void *context, const struct ky_event *event)
{
	struct counted *const counted = context;
	const uint32_t thread = thread_of(counted, event->thread->tid);
	assert_true(event->time_ns >= counted->last_ns[thread]);
	counted->last_ns[thread] = event->time_ns;
	if (event->kind == KYMO_KIND_BEGIN) {
		assert_memory_equal(event->name.data, "off CPU", 7);
		assert_memory_equal(event->site->category.data, "sched", 5);
		assert_int_equal(++counted->depth[thread], 1);
		counted->begins++;
	} else if (event->kind == KYMO_KIND_END) {
		assert_int_equal(--counted->depth[thread], 0);
		counted->ends++;
	}
}

static void read_spans(struct counted *counted)
{
	static struct ky_stream stream;
	const char *what = "";
	memset(&stream, 0, sizeof(stream));
	assert_int_equal(ky_stream_open(&stream, seen.base, seen.bytes, NULL, false, 0, &what), 0);
	stream.sink = (struct ky_stream_sink){.event = on_event, .context = counted};
	assert_int_equal(ky_stream_read_all(&stream), 0);
	ky_stream_close(&stream);
}

/* Each nap is a time off the CPU; there may be more of them, because others want the CPU as well. */
static void naps_of_all_threads_are_spans(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_off_cpu *switches = NULL;
	const struct ky_functrace_options options = {
		.ring_bytes = 1 << 20, .total_bytes = 16 << 20, .drum = take_drum};
	struct counted counted = {0};
	int go[2], status;
	if (ky_off_cpu_open(&switches, &options, message) != 0) {
		fprintf(stderr, "%s\n", message);
		skip();
	}
	assert_int_equal(pipe(go), 0);
	const pid_t pid = fork();
	if (pid == 0)
		sleeper(go[0]);
	assert_int_equal(ky_off_cpu_add(switches, pid, message), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		ky_off_cpu_round(switches);
		usleep(1000);
	}
	assert_int_equal(status, 0);
	ky_off_cpu_round(switches);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.pid, pid);
	read_spans(&counted);
	assert_int_equal(counted.threads, 1 + THREADS);
	assert_true(counted.begins >= THREADS * NAPS);
	assert_int_equal(counted.begins, counted.ends);
	ky_off_cpu_close(&switches);
	munmap(seen.base, seen.bytes);
	close(go[0]);
	close(go[1]);
}

static void a_process_that_is_gone_is_refused(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_off_cpu *switches = NULL;
	const struct ky_functrace_options options = {
		.ring_bytes = 1 << 20, .total_bytes = 16 << 20, .drum = take_drum};
	const pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	if (ky_off_cpu_open(&switches, &options, message) != 0)
		skip();
	assert_int_equal(ky_off_cpu_add(switches, pid, message), -ESRCH);
	assert_non_null(strstr(message, "is gone"));
	ky_off_cpu_close(&switches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_are_told_with_their_reason),
		cmocka_unit_test(a_threads_end_is_told),
		cmocka_unit_test(other_records_and_short_ones_are_passed_over),
		cmocka_unit_test(naps_of_all_threads_are_spans),
		cmocka_unit_test(a_process_that_is_gone_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
