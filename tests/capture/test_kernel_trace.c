/* SPDX-License-Identifier: MIT */
/*
 * test_kernel_trace.c: the kernel's events of real processes, through a real tracefs, read back into the model.
 * Needs root and tracefs, and says so. What is caught goes to memory (stream_catcher.h).
 *
 * The watched process is a puppet: it obeys bytes in a pipe, and answers each with one.
 */
#include "capture/kernel_trace.h"
#include "capture/recorder_slot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "stream_catcher.h"

#define TRACING "/sys/kernel/tracing"
#define CALLS 100

/* ---- puppets ---- */

struct puppet {
	pid_t pid;
	int tell; /* to it */
	int hear;
};

static void call_often(long number, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		syscall(number);
}

static void sleep_and_spin(void)
{
	const struct timespec moment = {.tv_nsec = 2000000};
	struct timespec from, now;
	for (int i = 0; i < 3; i++)
		nanosleep(&moment, NULL);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec == from.tv_sec && now.tv_nsec - from.tv_nsec < 5000000);
}

/* Its commands: 's' sleeps and spins, 'p', 'u', 'g' call getppid, getuid, getgid, 'f' lets a
 * child call getppid, 'q' ends. */
static void obey(char order)
{
	if (order == 's')
		sleep_and_spin();
	if (order == 'p')
		call_often(SYS_getppid, CALLS);
	if (order == 'u')
		call_often(SYS_getuid, CALLS);
	if (order == 'g')
		call_often(SYS_getgid, CALLS);
	if (order == 'm')
		call_often(SYS_getppid, 200 * CALLS);
	if (order == 'f') {
		const pid_t child = fork();
		if (child == 0) {
			call_often(SYS_getppid, CALLS);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static struct puppet make_puppet(void)
{
	struct puppet puppet;
	int down[2];
	int up[2];
	char order;
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	puppet.pid = fork();
	assert_true(puppet.pid >= 0);
	if (puppet.pid == 0) {
		/* On one CPU: then its pages are in one order. */
		cpu_set_t first;
		CPU_ZERO(&first);
		CPU_SET(0, &first);
		sched_setaffinity(0, sizeof(first), &first);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(down[0], &order, 1) == 1 && order != 'q') {
			obey(order);
			if (write(up[1], &order, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	puppet.tell = down[1];
	puppet.hear = up[0];
	return puppet;
}

static void let(const struct puppet *puppet, char order)
{
	char answer;
	assert_int_equal(write(puppet->tell, &order, 1), 1);
	assert_int_equal(read(puppet->hear, &answer, 1), 1);
}

/* Told, for others that were forked later hold the pipe open too. */
static void end_puppet(struct puppet *puppet)
{
	int status;
	assert_int_equal(write(puppet->tell, "q", 1), 1);
	close(puppet->tell);
	assert_int_equal(waitpid(puppet->pid, &status, 0), puppet->pid);
	assert_int_equal(status, 0);
	close(puppet->hear);
}

/* ---- instances ---- */

/* The instance of a process, its path, or false. */
static bool instance_of(pid_t pid, char *path, size_t room)
{
	char begin[32];
	bool found = false;
	snprintf(begin, sizeof(begin), "kymo-%d-", (int)pid);
	DIR *open = opendir(TRACING "/instances");
	assert_non_null(open);
	const struct dirent *entry;
	while ((entry = readdir(open)))
		if (strncmp(entry->d_name, begin, strlen(begin)) == 0) {
			snprintf(path, room, TRACING "/instances/%s", entry->d_name);
			found = true;
		}
	closedir(open);
	return found;
}

static void assert_no_instance(pid_t pid)
{
	char path[512];
	assert_false(instance_of(pid, path, sizeof(path)));
}

static bool read_text(const char *path, char *text, size_t room)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, text, room - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* Sum over the CPUs of a number in stats. */
static uint64_t sum_stats(const char *instance, const char *key)
{
	uint64_t sum = 0;
	for (unsigned cpu = 0; cpu < 1024; cpu++) {
		char path[600];
		char text[1024];
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/stats", instance, cpu);
		const char *found = read_text(path, text, sizeof(text)) ? strstr(text, key) : NULL;
		sum += found ? strtoull(found + strlen(key), NULL, 10) : 0;
	}
	return sum;
}

static void write_text(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* ---- captures ---- */

static struct ky_kernel_trace *begin(const char *words, const struct puppet *puppet,
				     const struct ky_kernel_trace_options *more)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_kernel_trace *trace;
	struct ky_kernel_trace_options options = *more;
	options.events = &words;
	options.events_count = 1;
	if (puppet) {
		options.pids = &puppet->pid;
		options.pids_count = 1;
	}
	catcher_reset(false);
	if (ky_kernel_trace_open(&trace, &options, message) != 0)
		fail_msg("%s", message);
	return trace;
}

static const struct ky_kernel_trace_options plain;

static int begin_fails(const char *words, const struct ky_kernel_trace_options *more,
		       char message[KY_MESSAGE_BYTES])
{
	struct ky_kernel_trace *trace;
	struct ky_kernel_trace_options options = *more;
	options.events = &words;
	options.events_count = 1;
	message[0] = '\0';
	const int error = ky_kernel_trace_open(&trace, &options, message);
	assert_null(trace);
	assert_true(error < 0);
	assert_true(message[0] && !strchr(message, '\n'));
	assert_no_instance(getpid());
	return error;
}

static uint32_t thread_of(const struct ky_trace *trace, pid_t tid)
{
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		if (trace->threads.tid[i] == tid)
			return i;
	return KY_NONE;
}

/* Slices of that name; of one thread, or (KY_NONE) of all. */
static uint32_t slices_of(const struct ky_trace *trace, uint32_t thread, const char *name)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++) {
		const uint32_t track = trace->slices.track[i];
		if (strcmp(ky_text_of(trace, trace->slices.name[i]), name) == 0 &&
		    (thread == KY_NONE || (trace->tracks.kind[track] == KY_TRACK_THREAD &&
					   trace->tracks.owner[track] == thread)))
			found++;
	}
	return found;
}

static bool has_state(const struct ky_trace *trace, uint32_t thread, const char *state)
{
	for (uint32_t i = 0; i < trace->thread_states.rows.count; i++)
		if (trace->thread_states.thread[i] == thread &&
		    strcmp(ky_text_of(trace, trace->thread_states.state[i]), state) == 0)
			return true;
	return false;
}

static uint64_t boottime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- tests ---- */

static void a_process_that_sleeps_and_spins_is_seen_doing_so(void **unused)
{
	(void)unused;
	struct puppet puppet = make_puppet();
	const uint64_t from = boottime_ns();
	struct ky_kernel_trace *kernel = begin("sched", NULL, &plain);
	let(&puppet, 's');
	ky_kernel_trace_close(&kernel);
	const uint64_t to = boottime_ns();
	struct ky_trace *trace = catcher_load();
	const uint32_t thread = thread_of(trace, puppet.pid);
	assert_int_not_equal(thread, KY_NONE);
	assert_true(has_state(trace, thread, "S"));
	assert_true(has_state(trace, thread, "Running"));
	/* Whose thread it is comes from /proc, for it was there before. */
	assert_int_not_equal(trace->threads.process[thread], KY_NONE);
	assert_int_equal(trace->processes.pid[trace->threads.process[thread]], puppet.pid);
	assert_true(trace->raw_events.ts[0] >= (int64_t)from);
	assert_true(trace->raw_events.ts[trace->raw_events.rows.count - 1] <= (int64_t)to);
	assert_int_equal(trace->lost, 0);
	ky_trace_close(&trace);
	end_puppet(&puppet);
	assert_no_instance(getpid());
}

static void system_calls_are_counted_to_the_last(void **unused)
{
	(void)unused;
	struct puppet puppet = make_puppet();
	struct ky_kernel_trace *kernel = begin("syscalls", &puppet, &plain);
	let(&puppet, 'p');
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	assert_int_equal(slices_of(trace, thread_of(trace, puppet.pid), "sys_getppid"), CALLS);
	/* Nobody else's, not even ours. */
	assert_int_equal(thread_of(trace, getpid()), KY_NONE);
	ky_trace_close(&trace);
	end_puppet(&puppet);
}

static void children_of_a_process_are_followed(void **unused)
{
	(void)unused;
	struct puppet puppet = make_puppet();
	struct puppet late = make_puppet();
	struct puppet other = make_puppet();
	struct ky_kernel_trace *kernel = begin("syscalls,sched", &puppet, &plain);
	let(&puppet, 'f');
	let(&other, 'u');
	ky_kernel_trace_add(kernel, late.pid);
	let(&late, 'g');
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	assert_int_equal(slices_of(trace, thread_of(trace, puppet.pid), "sys_getppid"), 0);
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getppid"), CALLS);
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getuid"), 0);
	assert_int_equal(slices_of(trace, thread_of(trace, late.pid), "sys_getgid"), CALLS);
	ky_trace_close(&trace);
	end_puppet(&puppet);
	end_puppet(&late);
	end_puppet(&other);
}

/* What others do on the CPUs is not known then, and nothing is shown of it. */
static void the_scheduling_of_one_process_is_its_own(void **unused)
{
	(void)unused;
	struct puppet puppet = make_puppet();
	struct puppet other = make_puppet();
	struct ky_kernel_trace *kernel = begin("sched:sched_switch,sched_waking", &puppet, &plain);
	for (int i = 0; i < 3; i++) {
		let(&puppet, 's');
		let(&other, 's');
	}
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	const uint32_t thread = thread_of(trace, puppet.pid);
	assert_true(has_state(trace, thread, "S"));
	assert_true(has_state(trace, thread, "Running"));
	assert_true(trace->sched.rows.count > 3);
	for (uint32_t i = 0; i < trace->sched.rows.count; i++)
		assert_int_equal(trace->sched.thread[i], thread);
	for (uint32_t i = 0; i < trace->thread_states.rows.count; i++)
		assert_int_equal(trace->thread_states.thread[i], thread);
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
	end_puppet(&puppet);
	end_puppet(&other);
}

/* With pids, but none yet: nothing is recorded until one is added. */
static void no_pids_yet_are_not_all(void **unused)
{
	(void)unused;
	const pid_t none = 0;
	const struct ky_kernel_trace_options options = {.pids = &none};
	struct puppet puppet = make_puppet();
	struct ky_kernel_trace *kernel = begin("syscalls", NULL, &options);
	let(&puppet, 'u');
	ky_kernel_trace_add(kernel, puppet.pid);
	let(&puppet, 'p');
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getuid"), 0);
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getppid"), CALLS);
	ky_trace_close(&trace);
	end_puppet(&puppet);
}

static void what_is_written_to_trace_marker_is_there(void **unused)
{
	(void)unused;
	char name[32];
	char text[64];
	if (access(TRACING "/options/copy_trace_marker", F_OK) != 0) {
		print_message("skipped: this kernel has no copy_trace_marker\n");
		skip();
	}
	snprintf(name, sizeof(name), "kymo-test-%d", (int)getpid());
	snprintf(text, sizeof(text), "I|%d|%s", (int)getpid(), name);
	struct ky_kernel_trace *kernel = begin("print", NULL, &plain);
	write_text(TRACING "/trace_marker", text);
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	assert_int_equal(slices_of(trace, thread_of(trace, getpid()), name), 1);
	ky_trace_close(&trace);
}

static uint32_t available(const char *begin_of_line)
{
	static char text[1 << 20];
	uint32_t found = 0;
	FILE *file = fopen(TRACING "/available_events", "re");
	assert_non_null(file);
	while (fgets(text, sizeof(text), file))
		found += strncmp(text, begin_of_line, strlen(begin_of_line)) == 0;
	fclose(file);
	return found;
}

static uint32_t events_on(const char *words)
{
	struct ky_kernel_trace_facts facts;
	struct ky_kernel_trace *kernel = begin(words, NULL, &plain);
	ky_kernel_trace_facts(kernel, &facts);
	ky_kernel_trace_close(&kernel);
	return facts.events;
}

static void events_are_named_by_system_event_and_glob(void **unused)
{
	(void)unused;
	assert_int_equal(events_on("sched:sched_switch"), 1);
	assert_int_equal(events_on("sched/sched_switch,sched_switch"), 1);
	assert_int_equal(events_on("task"), available("task:"));
	assert_int_equal(events_on("sched:sched_process_*"), available("sched:sched_process_"));
	assert_int_equal(events_on("syscalls,raw_syscalls:*"), 2);
}

static void an_unknown_event_is_told_with_ones_alike(void **unused)
{
	char message[KY_MESSAGE_BYTES];
	(void)unused;
	assert_int_equal(begin_fails("sched:sched_swich", &plain, message), -ENOENT);
	assert_non_null(strstr(message, "sched:sched_switch"));
	assert_int_equal(begin_fails("newtask_", &plain, message), -ENOENT);
	assert_int_equal(begin_fails("qqqqqqqqqqqqqqqq", &plain, message), -ENOENT);
	assert_non_null(strstr(message, "available_events"));
	assert_int_equal(begin_fails("", &plain, message), -EINVAL);
}

static void failures_leave_no_instance(void **unused)
{
	char message[KY_MESSAGE_BYTES];
	(void)unused;
	const struct ky_kernel_trace_options huge = {.buffer_bytes = UINT64_C(1) << 46};
	assert_true(begin_fails("sched", &huge, message) < 0);
	assert_non_null(strstr(message, "buffer_size_kb"));
	catcher_reset(true);
	assert_int_equal(begin_fails("sched", &plain, message), -EIO);
}

static void two_captures_of_one_process_have_an_instance_each(void **unused)
{
	(void)unused;
	struct ky_kernel_trace *first = begin("sched", NULL, &plain);
	struct ky_kernel_trace *second = begin("sched", NULL, &plain);
	ky_kernel_trace_close(&first);
	ky_kernel_trace_close(&second);
	assert_no_instance(getpid());
}

static void wait_gone(const char *path)
{
	while (access(path, F_OK) == 0)
		poll(NULL, 0, 10);
}

static void a_killed_recorder_leaves_no_instance(void **unused)
{
	char path[512];
	char ready;
	int pipes[2];
	(void)unused;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	const pid_t recorder = fork();
	if (recorder == 0) {
		(void)begin("sched", NULL, &plain);
		if (write(pipes[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(pipes[0], &ready, 1), 1);
	/* While it lives it is nobody's to remove. */
	(void)ky_kernel_trace_clean();
	assert_true(instance_of(recorder, path, sizeof(path)));
	kill(recorder, SIGKILL);
	waitpid(recorder, NULL, 0);
	wait_gone(path);
	close(pipes[0]);
	close(pipes[1]);
}

/* As if its guard had been killed too. */
static void what_is_left_all_the_same_is_removed_by_the_next(void **unused)
{
	char path[128], others[128];
	(void)unused;
	const uint64_t namespaces = ky_recorder_slot_self().namespaces;
	snprintf(path, sizeof(path), TRACING "/instances/kymo-1-99999999999-%" PRIx64, namespaces);
	snprintf(others, sizeof(others), TRACING "/instances/kymo-1-99999999999-%" PRIx64,
		 namespaces ^ 1);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mkdir(others, 0700), 0);
	assert_true(ky_kernel_trace_left_over() >= 1);
	struct ky_kernel_trace *kernel = begin("sched", NULL, &plain);
	assert_int_not_equal(access(path, F_OK), 0);
	ky_kernel_trace_close(&kernel);
	/* What another container's kymo made is its own. */
	assert_int_equal(access(others, F_OK), 0);
	assert_int_equal(rmdir(others), 0);
}

static void what_was_overwritten_is_counted(void **unused)
{
	(void)unused;
	struct ky_kernel_trace_facts facts;
	const struct ky_kernel_trace_options tiny = {.buffer_bytes = 8192};
	struct puppet puppet = make_puppet();
	struct ky_kernel_trace *kernel = begin("syscalls", &puppet, &tiny);
	let(&puppet, 'm');
	end_puppet(&puppet);
	ky_kernel_trace_facts(kernel, &facts);
	assert_true(facts.lost > 0);
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	assert_int_equal(trace->lost, facts.lost);
	/* Two events a call; no event is neither read nor counted. */
	assert_true(trace->raw_events.rows.count + trace->lost >= UINT64_C(2) * 200 * CALLS);
	assert_true(trace->raw_events.rows.count < UINT64_C(2) * 200 * CALLS);
	ky_trace_close(&trace);
}

static void as_many_events_are_read_as_the_kernel_has(void **unused)
{
	(void)unused;
	char instance[512];
	char path[600];
	struct puppet puppet = make_puppet();
	struct ky_kernel_trace *kernel = begin("sched,syscalls", &puppet, &plain);
	let(&puppet, 'm');
	let(&puppet, 's');
	assert_true(instance_of(getpid(), instance, sizeof(instance)));
	snprintf(path, sizeof(path), "%s/tracing_on", instance);
	write_text(path, "0");
	const uint64_t entries = sum_stats(instance, "entries: ");
	ky_kernel_trace_round(kernel, true);
	assert_int_equal(sum_stats(instance, "entries: "), 0);
	assert_int_equal(sum_stats(instance, "\noverrun: "), 0);
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	assert_true(entries >= UINT64_C(2) * 200 * CALLS);
	assert_int_equal(trace->raw_events.rows.count, entries);
	ky_trace_close(&trace);
	end_puppet(&puppet);
}

static void pages_come_by_themselves(void **unused)
{
	(void)unused;
	struct puppet puppet = make_puppet();
	struct ky_kernel_trace *kernel = begin("syscalls", &puppet, &plain);
	let(&puppet, 'p');
	while (!catcher_pages()) {
		struct pollfd ready = {.fd = ky_kernel_trace_fd(kernel), .events = POLLIN};
		assert_int_equal(poll(&ready, 1, -1), 1);
		ky_kernel_trace_round(kernel, false);
	}
	ky_kernel_trace_close(&kernel);
	end_puppet(&puppet);
}

/* A page ends between the phases; the window is of the last one. */
static void a_flight_recorder_writes_the_window_alone(void **unused)
{
	(void)unused;
	const struct ky_kernel_trace_options flight = {.flight = true,
						       .before_ns = UINT64_C(60000000000)};
	struct puppet puppet = make_puppet();
	struct ky_kernel_trace *kernel = begin("syscalls", &puppet, &flight);
	let(&puppet, 'u');
	ky_kernel_trace_round(kernel, true);
	assert_int_equal(catcher_pages(), 0);
	const uint64_t from = boottime_ns();
	let(&puppet, 'p');
	const uint64_t to = boottime_ns();
	ky_kernel_trace_window(kernel, from, to);
	const uint32_t pages = catcher_pages();
	assert_true(pages > 0);
	/* Pages are written once, whatever windows they are in. */
	ky_kernel_trace_window(kernel, from, to);
	struct ky_trace *trace = catcher_load();
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getppid"), CALLS);
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getuid"), 0);
	ky_trace_close(&trace);
	/* What the window did not reach is there for another. */
	ky_kernel_trace_window(kernel, 0, to);
	ky_kernel_trace_close(&kernel);
	trace = catcher_load();
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getppid"), CALLS);
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getuid"), CALLS);
	ky_trace_close(&trace);
	end_puppet(&puppet);
}

static void each_file_of_a_rotation_stands_alone(void **unused)
{
	(void)unused;
	struct puppet puppet = make_puppet();
	struct ky_kernel_trace *kernel = begin("syscalls", &puppet, &plain);
	let(&puppet, 'u');
	ky_kernel_trace_round(kernel, true);
	catcher_rotate();
	let(&puppet, 'p');
	ky_kernel_trace_close(&kernel);
	struct ky_trace *trace = catcher_load();
	assert_int_equal(slices_of(trace, thread_of(trace, puppet.pid), "sys_getppid"), CALLS);
	assert_int_equal(slices_of(trace, KY_NONE, "sys_getuid"), 0);
	ky_trace_close(&trace);
	end_puppet(&puppet);
}

/* Symbols are for events that have addresses of functions, and no others. */
static void symbols_are_written_when_an_event_needs_them(void **unused)
{
	(void)unused;
	struct ky_kernel_trace *kernel = begin("sched", NULL, &plain);
	ky_kernel_trace_close(&kernel);
	assert_int_equal(catcher_files("kallsyms"), 0);
	assert_int_equal(catcher_files("events/sched/sched_switch/format"), 1);
	if (!available("workqueue:workqueue_execute_start"))
		return;
	kernel = begin("workqueue:workqueue_execute_start", NULL, &plain);
	ky_kernel_trace_close(&kernel);
	assert_true(catcher_files("kallsyms") > 0);
}

static void without_the_right_the_remedy_is_told(void **unused)
{
	int status;
	(void)unused;
	const pid_t child = fork();
	if (child == 0) {
		char message[KY_MESSAGE_BYTES];
		const char *const words = "sched";
		const struct ky_kernel_trace_options options = {.events = &words,
								.events_count = 1};
		struct ky_kernel_trace *trace;
		if (setuid(65534) != 0)
			_exit(2);
		const int error = ky_kernel_trace_open(&trace, &options, message);
		_exit(error == -EACCES && !trace && strstr(message, "remount") ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_sleeps_and_spins_is_seen_doing_so),
		cmocka_unit_test(system_calls_are_counted_to_the_last),
		cmocka_unit_test(children_of_a_process_are_followed),
		cmocka_unit_test(the_scheduling_of_one_process_is_its_own),
		cmocka_unit_test(no_pids_yet_are_not_all),
		cmocka_unit_test(what_is_written_to_trace_marker_is_there),
		cmocka_unit_test(events_are_named_by_system_event_and_glob),
		cmocka_unit_test(an_unknown_event_is_told_with_ones_alike),
		cmocka_unit_test(failures_leave_no_instance),
		cmocka_unit_test(two_captures_of_one_process_have_an_instance_each),
		cmocka_unit_test(a_killed_recorder_leaves_no_instance),
		cmocka_unit_test(what_is_left_all_the_same_is_removed_by_the_next),
		cmocka_unit_test(what_was_overwritten_is_counted),
		cmocka_unit_test(as_many_events_are_read_as_the_kernel_has),
		cmocka_unit_test(pages_come_by_themselves),
		cmocka_unit_test(a_flight_recorder_writes_the_window_alone),
		cmocka_unit_test(each_file_of_a_rotation_stands_alone),
		cmocka_unit_test(symbols_are_written_when_an_event_needs_them),
		cmocka_unit_test(without_the_right_the_remedy_is_told),
	};
	if (geteuid() != 0 || access(TRACING "/instances", W_OK) != 0) {
		puts("skipped: needs root, and tracefs mounted at " TRACING);
		return 77;
	}
	alarm(600);
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	catcher_reset(false);
	return failed;
}
