/* SPDX-License-Identifier: MIT */
/*
 * test_crash_watch.c: real programs crash, are killed, handle their faults, stop and go on, while
 * they are watched.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/crash_watch.h"
#include "crash_programs.h"

#define PATIENCE_MS 300000

struct program {
	pid_t pid;
	int32_t tid; /* what it said */
	int in, out;
};

struct seen {
	int count;
	int32_t pid, tid;
	uint64_t signal, address;
	uint32_t args_count;
	char reason[256];
	char stack[8192];
};

static const char *program_path = "/proc/self/exe";

static void start(struct program *p, const char *name, const char *argument)
{
	int in[2], out[2];
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	p->pid = fork();
	if (p->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* nothing is left behind */
		/* Sanitizers handle faults themselves, and look for leaks by ptrace. */
		setenv("ASAN_OPTIONS", "handle_segv=0:handle_abort=0:detect_leaks=0", 1);
		execl(program_path, "test_crash_watch", name, argument, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
	assert_int_equal(read(p->out, &p->tid, sizeof(p->tid)), sizeof(p->tid));
}

static void go(struct program *p)
{
	assert_int_equal(write(p->in, "g", 1), 1);
}

/* As its parent sees it, traced or not. */
static int end_of(struct program *p)
{
	int status = -1;
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	close(p->in);
	close(p->out);
	return status;
}

static void on_fired(void *context, const struct ky_fired *fired)
{
	struct seen *seen = context;
	seen->count++;
	seen->pid = fired->pid;
	seen->tid = fired->tid;
	seen->args_count = fired->args_count;
	seen->signal = fired->args[0];
	seen->address = fired->args_count > 1 ? fired->args[1] : 0;
	snprintf(seen->reason, sizeof(seen->reason), "%s", fired->reason);
	snprintf(seen->stack, sizeof(seen->stack), "%s", fired->stack ? fired->stack : "");
	assert_string_equal(fired->trigger->text, "crash");
	assert_true(fired->time_ns > 0);
}

static char crash[] = "crash";
static const struct ky_trigger trigger = {.kind = KY_TRIGGER_CRASH, .text = crash};

static struct ky_crash_watch *open_watch(struct seen *seen)
{
	struct ky_crash_watch *watch;
	memset(seen, 0, sizeof(*seen));
	assert_int_equal(ky_crash_watch_open(&watch, &trigger, 1, on_fired, seen), 0);
	return watch;
}

/* How many threads there are, and how many of them that process traces. */
static uint32_t traced_threads(pid_t pid, pid_t tracer, uint32_t *threads)
{
	char path[300], line[256];
	uint32_t traced = 0;
	*threads = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, entry->d_name);
		FILE *file = atoi(entry->d_name) ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		while (fgets(line, sizeof(line), file)) { /* of one that is ending there are none */
			const bool found = strncmp(line, "TracerPid:", 10) == 0;
			*threads += found;
			traced += found && atoi(line + 10) == tracer;
		}
		fclose(file);
	}
	closedir(folder);
	return traced;
}

static void add(struct ky_crash_watch *watch, pid_t pid)
{
	char message[KY_MESSAGE_BYTES] = "";
	const int error = ky_crash_watch_add(watch, pid, message);
	if (error)
		fail_msg("%s", message);
}

/* The same, for one that lives: the tracer of a busy machine may answer later. */
static void add_and_wait(struct ky_crash_watch *watch, pid_t pid)
{
	add(watch, pid);
	for (uint32_t threads, traced = 0; !traced; poll(NULL, 0, 1))
		traced = traced_threads(pid, ky_crash_watch_tracer(watch), &threads);
}

/* On a busy machine a thread may take longer to stop than kymo waits. */
static void leave_and_wait(struct ky_crash_watch *watch, pid_t pid)
{
	while (!ky_crash_watch_leave(watch, pid))
		ky_crash_watch_round(watch);
}

static void wait_fired(struct ky_crash_watch *watch, const struct seen *seen)
{
	while (!seen->count) {
		struct pollfd poller = {.fd = ky_crash_watch_fd(watch), .events = POLLIN};
		assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
		ky_crash_watch_round(watch);
	}
}

/*
 * Take what the tracer reports of a process that was waited for. The tracer saw its end before, and answers in order: its
 * report comes before the answer to another question.
 */
static void take_reports(struct ky_crash_watch *watch, pid_t pid)
{
	(void)ky_crash_watch_leave(watch, pid);
	ky_crash_watch_round(watch);
}

/* ---- the tests ---- */

static void a_fault_in_a_second_thread_is_told_with_its_stack(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "segv-thread", NULL);
	add_and_wait(watch, p.pid);
	go(&p);
	wait_fired(watch, &seen);
	const int status = end_of(&p);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	take_reports(watch, p.pid);
	ky_crash_watch_ended(watch, p.pid, status);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.pid, p.pid);
	assert_int_equal(seen.tid, p.tid);
	assert_int_not_equal(p.tid, p.pid);
	assert_int_equal(seen.signal, SIGSEGV);
	assert_int_equal(seen.address, 0x10);
	assert_non_null(strstr(seen.reason, "SIGSEGV"));
	assert_non_null(strstr(seen.reason, "worker"));
	/* The innermost first, demangled; of what is inlined, only debug information knows. */
	assert_true(strncmp(seen.stack, "store (crash_programs.c:", 24) == 0);
	assert_non_null(strstr(seen.stack, ", inlined)\nnet::recv(int) (crash_programs.c:"));
	assert_non_null(strstr(seen.stack, "\nserver::explode"));
	assert_non_null(strstr(seen.stack, "\ncrash_in_thread (crash_programs.c:"));
	ky_crash_watch_close(&watch);
	assert_null(watch);
}

static void an_abort_is_told(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "abort", NULL);
	add_and_wait(watch, p.pid);
	go(&p);
	wait_fired(watch, &seen);
	assert_int_equal(WTERMSIG(end_of(&p)), SIGABRT);
	assert_int_equal(seen.signal, SIGABRT);
	assert_int_equal(seen.args_count, 1);
	assert_int_equal(seen.tid, p.pid);
	assert_non_null(strstr(seen.stack, "abort"));
	assert_non_null(strstr(seen.stack, "main"));
	ky_crash_watch_close(&watch);
}

static void a_kill_is_told_without_a_stack(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "wait", NULL);
	add_and_wait(watch, p.pid);
	kill(p.pid, SIGKILL);
	wait_fired(watch, &seen);
	const int status = end_of(&p);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	ky_crash_watch_ended(watch, p.pid, status);
	ky_crash_watch_round(watch);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.pid, p.pid);
	assert_true(strncmp(seen.reason, "SIGKILL", 7) == 0);
	assert_string_equal(seen.stack, "");
	ky_crash_watch_close(&watch);
}

static void being_asked_to_end_is_no_crash(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "wait", NULL);
	add_and_wait(watch, p.pid);
	kill(p.pid, SIGTERM);
	const int status = end_of(&p);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	take_reports(watch, p.pid);
	ky_crash_watch_ended(watch, p.pid, status);
	assert_int_equal(seen.count, 0);
	ky_crash_watch_close(&watch);
}

static void a_fault_that_the_program_handles_is_no_crash(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "handles", NULL);
	add_and_wait(watch, p.pid);
	go(&p);
	assert_int_equal(end_of(&p), 7 << 8);
	take_reports(watch, p.pid);
	ky_crash_watch_ended(watch, p.pid, 7 << 8);
	assert_int_equal(seen.count, 0);
	ky_crash_watch_close(&watch);
}

/* It fires while the handler is still at work; then the handler goes on, and the end is the same crash. */
static void told_before_its_handler(const char *how)
{
	static struct seen seen;
	struct program p;
	int32_t said;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "reports", how);
	add_and_wait(watch, p.pid);
	go(&p);
	assert_int_equal(read(p.out, &said, sizeof(said)), sizeof(said));
	wait_fired(watch, &seen);
	assert_int_equal(waitpid(p.pid, NULL, WNOHANG), 0);
	assert_int_equal(seen.signal, SIGSEGV);
	assert_int_equal(seen.address, 0x10);
	assert_non_null(strstr(seen.reason, "before the program's own handler"));
	assert_null(strstr(seen.stack, "report_and_die"));
	assert_non_null(strstr(seen.stack, "\nserver::explode"));
	go(&p);
	const int status = end_of(&p);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	take_reports(watch, p.pid);
	ky_crash_watch_ended(watch, p.pid, status);
	assert_int_equal(seen.count, 1);
	ky_crash_watch_close(&watch);
}

static void a_fault_is_told_before_the_programs_own_handler(void **state)
{
	(void)state;
	told_before_its_handler("waits");
	told_before_its_handler("once");
}

/* Its handler is done before anyone could look: its end tells that it was none that came back. */
static void a_quick_handler_does_not_hide_the_fault(void **state)
{
	(void)state;
	static const char *const ways[] = {"quick", "exits"};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		static struct seen seen;
		struct program p;
		struct ky_crash_watch *watch = open_watch(&seen);
		start(&p, "reports", ways[i]);
		add_and_wait(watch, p.pid);
		go(&p);
		wait_fired(watch, &seen);
		const int status = end_of(&p);
		assert_int_equal(status, i == 0 ? SIGSEGV : 7 << 8);
		take_reports(watch, p.pid);
		ky_crash_watch_ended(watch, p.pid, status);
		assert_int_equal(seen.count, 1);
		assert_int_equal(seen.signal, SIGSEGV);
		assert_int_equal(seen.address, 0x10);
		assert_non_null(strstr(seen.stack, "\nserver::explode"));
		ky_crash_watch_close(&watch);
	}
}

static void stopping_and_going_on_work_as_ever(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	int status;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "wait", NULL);
	add_and_wait(watch, p.pid);
	for (int i = 0; i < 10; i++) {
		kill(p.pid, SIGSTOP);
		assert_int_equal(waitpid(p.pid, &status, WUNTRACED), p.pid);
		assert_true(WIFSTOPPED(status));
		kill(p.pid, SIGCONT);
		assert_int_equal(waitpid(p.pid, &status, WCONTINUED), p.pid);
		assert_true(WIFCONTINUED(status));
	}
	/*
	 * Letting go of a stopped one leaves it stopped, and one that was stopped before can be
	 * watched.
	 */
	kill(p.pid, SIGSTOP);
	assert_int_equal(waitpid(p.pid, &status, WUNTRACED), p.pid);
	ky_crash_watch_close(&watch);
	watch = open_watch(&seen);
	add_and_wait(watch, p.pid);
	go(&p);
	assert_int_equal(waitpid(p.pid, &status, WNOHANG), 0);
	kill(p.pid, SIGCONT);
	assert_int_equal(end_of(&p), 7 << 8);
	ky_crash_watch_close(&watch);
	assert_int_equal(seen.count, 0);
}

static void signals_come_through_unchanged(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "signals", "1000");
	add_and_wait(watch, p.pid);
	for (int i = 0; i < 1000; i++) {
		const union sigval value = {.sival_int = i};
		while (sigqueue(p.pid, SIGRTMIN, value) != 0)
			assert_int_equal(errno, EAGAIN);
	}
	assert_int_equal(end_of(&p), 7 << 8);
	ky_crash_watch_close(&watch);
	assert_int_equal(seen.count, 0);
}

/* The tracer is killed while signals are on their way. */
static void no_signal_is_lost_with_the_tracer(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	start(&p, "signals", "20000");
	for (int i = 0; i < 40; i++) {
		struct ky_crash_watch *watch = open_watch(&seen);
		add_and_wait(watch, p.pid);
		for (int j = 0; j < 500; j++) {
			const union sigval value = {.sival_int = i * 500 + j};
			while (sigqueue(p.pid, SIGRTMIN, value) != 0)
				assert_int_equal(errno, EAGAIN);
		}
		ky_crash_watch_close(&watch);
	}
	assert_int_equal(kill(p.pid, SIGRTMIN + 1), 0); /* comes last */
	assert_int_equal(end_of(&p), 7 << 8);
}

static void a_thread_runs_another_program(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "exec", NULL);
	add_and_wait(watch, p.pid);
	go(&p);
	go(&p);
	wait_fired(watch, &seen);
	assert_int_equal(WTERMSIG(end_of(&p)), SIGABRT);
	assert_int_equal(seen.signal, SIGABRT);
	assert_int_equal(seen.count, 1);
	ky_crash_watch_close(&watch);
}

static void five_hundred_threads_are_watched(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	uint32_t threads;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "threads", "500");
	add_and_wait(watch, p.pid);
	assert_int_equal(traced_threads(p.pid, ky_crash_watch_tracer(watch), &threads), 501);
	go(&p);
	wait_fired(watch, &seen);
	assert_int_equal(WTERMSIG(end_of(&p)), SIGSEGV);
	assert_int_equal(seen.count, 1);
	assert_int_not_equal(seen.tid, p.pid);
	assert_non_null(strstr(seen.stack, "wait_in_thread"));
	ky_crash_watch_close(&watch);
}

static void watching_and_letting_go_under_load_is_not_noticed(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	uint32_t threads;
	start(&p, "churn", NULL);
	for (int i = 0; i < 20; i++) {
		struct ky_crash_watch *watch = open_watch(&seen);
		add_and_wait(watch, p.pid);
		ky_crash_watch_close(&watch);
		traced_threads(p.pid, 0, &threads);
		assert_true(threads >= 1);
	}
	const uint32_t free_threads = traced_threads(p.pid, 0, &threads);
	assert_int_equal(free_threads, threads);
	struct ky_crash_watch *watch = open_watch(&seen);
	add_and_wait(watch, p.pid);
	go(&p);
	assert_int_equal(end_of(&p), 7 << 8);
	take_reports(watch, p.pid);
	ky_crash_watch_close(&watch);
	assert_int_equal(seen.count, 0);
}

/* So that another may trace it. */
static void a_process_is_let_go_and_taken_up_again(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	uint32_t threads;
	struct ky_crash_watch *watch = open_watch(&seen);
	const pid_t tracer = ky_crash_watch_tracer(watch);
	start(&p, "threads", "50");
	assert_false(ky_crash_watch_leave(watch, p.pid)); /* it is not watched yet */
	for (int i = 0; i < 20; i++) {
		add_and_wait(watch, p.pid);
		assert_int_equal(traced_threads(p.pid, tracer, &threads), 51);
		leave_and_wait(watch, p.pid);
		assert_int_equal(traced_threads(p.pid, 0, &threads), 51);
	}
	assert_false(ky_crash_watch_leave(watch, p.pid));
	assert_int_equal(ptrace(PTRACE_SEIZE, p.pid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, p.pid, NULL, NULL), 0);
	assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
	assert_int_equal(ptrace(PTRACE_DETACH, p.pid, NULL, NULL), 0);
	add_and_wait(watch, p.pid);
	go(&p);
	wait_fired(watch, &seen);
	assert_int_equal(WTERMSIG(end_of(&p)), SIGSEGV);
	assert_int_equal(seen.count, 1);
	assert_non_null(strstr(seen.stack, "wait_in_thread"));
	ky_crash_watch_close(&watch);
}

static void leaving_under_load_is_not_noticed(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "churn", NULL);
	for (int i = 0; i < 20; i++) {
		add_and_wait(watch, p.pid);
		(void)ky_crash_watch_leave(watch, p.pid);
	}
	add_and_wait(watch, p.pid);
	go(&p);
	assert_int_equal(end_of(&p), 7 << 8);
	ky_crash_watch_close(&watch);
	start(&p, "signals", "1000");
	watch = open_watch(&seen);
	for (int i = 0; i < 1000; i++) {
		const union sigval value = {.sival_int = i};
		if (i % 50 == 0)
			add_and_wait(watch, p.pid);
		while (sigqueue(p.pid, SIGRTMIN, value) != 0)
			assert_int_equal(errno, EAGAIN);
		if (i % 50 == 25)
			(void)ky_crash_watch_leave(watch, p.pid);
	}
	assert_int_equal(end_of(&p), 7 << 8);
	ky_crash_watch_close(&watch);
	assert_int_equal(seen.count, 0);
}

static void a_stopped_process_that_is_let_go_stays_stopped(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	int status;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "wait", NULL);
	add_and_wait(watch, p.pid);
	kill(p.pid, SIGSTOP);
	assert_int_equal(waitpid(p.pid, &status, WUNTRACED), p.pid);
	leave_and_wait(watch, p.pid);
	go(&p);
	assert_int_equal(waitpid(p.pid, &status, WNOHANG), 0);
	kill(p.pid, SIGCONT);
	assert_int_equal(end_of(&p), 7 << 8);
	ky_crash_watch_close(&watch);
	assert_int_equal(seen.count, 0);
}

static void a_crash_of_a_child_is_told(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "child", NULL);
	add_and_wait(watch, p.pid);
	go(&p);
	wait_fired(watch, &seen);
	assert_int_equal(end_of(&p), 7 << 8);
	assert_int_not_equal(seen.pid, p.pid);
	assert_int_equal(seen.signal, SIGSEGV);
	assert_non_null(strstr(seen.stack, "net::recv(int)"));
	ky_crash_watch_close(&watch);
	assert_int_equal(seen.count, 1);
}

static void one_that_a_debugger_has_is_watched_without_a_stack(void **state)
{
	(void)state;
	static struct seen seen, other;
	struct program p;
	char message[KY_MESSAGE_BYTES];
	struct ky_crash_watch *debugger = open_watch(&other);
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "segv-thread", NULL);
	add_and_wait(debugger, p.pid);
	/* 0: the tracer of a busy machine has not answered yet. */
	int error;
	while ((error = ky_crash_watch_add(watch, p.pid, message)) == 0) {
		struct pollfd poller = {.fd = ky_crash_watch_fd(watch), .events = POLLIN};
		assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
		ky_crash_watch_round(watch);
	}
	assert_int_equal(error, -EBUSY);
	assert_non_null(strstr(message, "traced"));
	go(&p);
	wait_fired(debugger, &other);
	end_of(&p);
	ky_crash_watch_ended(watch, p.pid, -1);
	if (!seen.count)
		skip(); /* the kernel does not tell how a process ended: before 6.15 */
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.reason, "SIGSEGV");
	assert_string_equal(seen.stack, "");
	ky_crash_watch_close(&watch);
	ky_crash_watch_close(&debugger);
}

/* It crashed before it was added, and nobody has waited for it yet. */
static void one_that_ended_too_soon_is_told_without_a_stack(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	siginfo_t info;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "segv-thread", NULL);
	go(&p);
	assert_int_equal(waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOWAIT), 0);
	add(watch, p.pid);
	ky_crash_watch_ended(watch, p.pid, end_of(&p));
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.reason, "SIGSEGV");
	ky_crash_watch_close(&watch);
}

/* A child that the caller follows but never added: reported once. */
static void a_killed_child_is_told_once(void **state)
{
	(void)state;
	static struct seen seen;
	struct ky_crash_watch *watch = open_watch(&seen);
	ky_crash_watch_ended(watch, 1234567, SIGKILL);
	ky_crash_watch_ended(watch, 1234567, SIGKILL);
	assert_int_equal(seen.count, 1);
	ky_crash_watch_ended(watch, 1234568, 0);
	ky_crash_watch_ended(watch, 1234569, -1);
	ky_crash_watch_ended(watch, 1234570, SIGTERM);
	assert_int_equal(seen.count, 1);
	ky_crash_watch_close(&watch);
}

static void a_process_that_is_gone_is_refused(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	char message[KY_MESSAGE_BYTES];
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "wait", NULL);
	go(&p);
	end_of(&p);
	assert_int_equal(ky_crash_watch_add(watch, p.pid, message), -ESRCH);
	ky_crash_watch_close(&watch);
}

static void a_fault_of_a_containers_init_is_told_and_ends_it(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "init", NULL);
	add_and_wait(watch, p.pid);
	go(&p);
	const int status = end_of(&p);
	if (status == 6 << 8) {
		ky_crash_watch_close(&watch);
		skip(); /* only root may make a pid namespace */
	}
	assert_int_equal(status, 7 << 8);
	wait_fired(watch, &seen);
	take_reports(watch, p.pid);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.signal, SIGSEGV);
	assert_non_null(strstr(seen.stack, "net::recv(int)"));
	ky_crash_watch_close(&watch);
}

static bool write_file(const char *folder, const char *name, const char *text)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return done;
}

/* A control group of its own with 32 MiB, of either version; false where unavailable. */
static bool limit_memory(char folder[100], pid_t pid)
{
	char number[20];
	snprintf(number, sizeof(number), "%d", (int)pid);
	snprintf(folder, 100, "/sys/fs/cgroup/memory/kymo-test-%d", (int)getpid());
	if (mkdir(folder, 0700) == 0)
		return write_file(folder, "memory.limit_in_bytes", "32M") &&
		       write_file(folder, "memory.swappiness", "0") &&
		       write_file(folder, "cgroup.procs", number);
	snprintf(folder, 100, "/sys/fs/cgroup/kymo-test-%d", (int)getpid());
	return mkdir(folder, 0700) == 0 && write_file(folder, "memory.max", "32M") &&
	       write_file(folder, "memory.swap.max", "0") &&
	       write_file(folder, "cgroup.procs", number);
}

static void a_kill_for_want_of_memory_is_told_as_such(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	char folder[100];
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "eat", "256");
	const bool limited = limit_memory(folder, p.pid);
	add_and_wait(watch, p.pid);
	if (limited) {
		go(&p);
		wait_fired(watch, &seen);
	} else {
		kill(p.pid, SIGKILL);
	}
	end_of(&p);
	ky_crash_watch_close(&watch);
	rmdir(folder);
	if (!limited)
		skip(); /* only root may make a control group */
	assert_int_equal(seen.signal, SIGKILL);
	assert_string_equal(seen.reason, "SIGKILL: out of memory");
}

/* Whatever happens to the tracer, the program goes on. */
static void a_tracer_that_dies_lets_go(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	struct ky_crash_watch *watch = open_watch(&seen);
	start(&p, "churn", NULL);
	add_and_wait(watch, p.pid);
	kill(ky_crash_watch_tracer(watch), SIGKILL);
	go(&p);
	assert_int_equal(end_of(&p), 7 << 8);
	ky_crash_watch_round(watch);
	ky_crash_watch_ended(watch, p.pid, 7 << 8);
	ky_crash_watch_close(&watch);
	assert_int_equal(seen.count, 0);
}

/* Its debug file is a pipe that nobody writes to: opening it would take for ever. The signal comes through all the same. */
static void a_debug_file_that_never_opens_keeps_nobody(void **state)
{
	(void)state;
	static struct seen seen;
	struct program p;
	char folder[] = "/tmp/kymo-crash-XXXXXX", command[512], path[64];
	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command),
		 "cd %s && objcopy --strip-all --remove-section=.note.gnu.build-id /proc/%d/exe "
		 "program && touch d.debug && objcopy --add-gnu-debuglink=d.debug program && "
		 "rm d.debug && mkfifo d.debug",
		 folder, (int)getpid());
	const bool made = system(command) == 0; // NOLINT(cert-env33-c)
	struct ky_crash_watch *watch = made ? open_watch(&seen) : NULL;
	snprintf(path, sizeof(path), "%s/program", folder);
	if (made) {
		program_path = path;
		start(&p, "wait", NULL);
		program_path = "/proc/self/exe";
		add_and_wait(watch, p.pid);
		kill(p.pid, SIGQUIT);
		wait_fired(watch, &seen);
		close(p.in); /* without the signal, it ends by itself */
		p.in = -1;
		assert_int_equal(WTERMSIG(end_of(&p)), SIGQUIT);
		assert_int_equal(seen.signal, SIGQUIT);
		ky_crash_watch_close(&watch);
	}
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
	if (!made)
		skip(); /* no objcopy here */
}

/* Exits 77 where this process may not even trace its own child. */
static bool may_trace(void)
{
	const pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	const bool may = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return may;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return crash_program(argc, argv);
	(void)signal(SIGQUIT, SIG_DFL); /* shells ignore it for what runs in the background */
	if (!may_trace()) {
		fprintf(stderr, "ptrace is not allowed here\n");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_in_a_second_thread_is_told_with_its_stack),
		cmocka_unit_test(an_abort_is_told),
		cmocka_unit_test(a_kill_is_told_without_a_stack),
		cmocka_unit_test(being_asked_to_end_is_no_crash),
		cmocka_unit_test(a_fault_that_the_program_handles_is_no_crash),
		cmocka_unit_test(a_fault_is_told_before_the_programs_own_handler),
		cmocka_unit_test(a_quick_handler_does_not_hide_the_fault),
		cmocka_unit_test(stopping_and_going_on_work_as_ever),
		cmocka_unit_test(signals_come_through_unchanged),
		cmocka_unit_test(no_signal_is_lost_with_the_tracer),
		cmocka_unit_test(a_thread_runs_another_program),
		cmocka_unit_test(five_hundred_threads_are_watched),
		cmocka_unit_test(watching_and_letting_go_under_load_is_not_noticed),
		cmocka_unit_test(a_process_is_let_go_and_taken_up_again),
		cmocka_unit_test(leaving_under_load_is_not_noticed),
		cmocka_unit_test(a_stopped_process_that_is_let_go_stays_stopped),
		cmocka_unit_test(a_crash_of_a_child_is_told),
		cmocka_unit_test(one_that_a_debugger_has_is_watched_without_a_stack),
		cmocka_unit_test(one_that_ended_too_soon_is_told_without_a_stack),
		cmocka_unit_test(a_killed_child_is_told_once),
		cmocka_unit_test(a_process_that_is_gone_is_refused),
		cmocka_unit_test(a_fault_of_a_containers_init_is_told_and_ends_it),
		cmocka_unit_test(a_kill_for_want_of_memory_is_told_as_such),
		cmocka_unit_test(a_tracer_that_dies_lets_go),
		cmocka_unit_test(a_debug_file_that_never_opens_keeps_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
