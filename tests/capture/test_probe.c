/* SPDX-License-Identifier: MIT */
/*
 * test_probe.c: probes in real programs: our own target with threads, new threads and children (probe_target.c), and
 * programs that nobody here wrote. Each hit is counted exactly and its arguments are looked at, by both engines, as root
 * and as an ordinary user. Skips (77) where perf allows neither.
 */
#include "capture/probe.h"
#include "capture/probe_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct run {
	pid_t pid;
	int to, from;
};

struct seen {
	uint32_t count;
	uint32_t wrong; /* arguments that are not as probe_target.c has them */
	uint64_t first_sum;
	uint64_t last_ns;
	bool backwards;
	int32_t other_pid; /* the last that was not the target's own */
	pid_t pid;
	char reason[128];
};

/* ---- the target ---- */

static const char *target_path(void)
{
	const char *path = getenv("KYMO_TARGET_PROBE");
	assert_non_null(path);
	return path;
}

static struct run start(const char *path, const char *const argv[], void (*before)(void))
{
	int in[2], out[2];
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		if (before)
			before();
		execv(path, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	return (struct run){pid, in[1], out[0]};
}

static struct run start_target(const char *threads)
{
	const char *const argv[] = {"probe_target", threads, NULL};
	return start(target_path(), argv, NULL);
}

/* Reads until that line has come. */
static bool wait_for(const struct run *run, const char *line)
{
	char text[256];
	size_t used = 0;
	while (used < sizeof(text) && read(run->from, &text[used], 1) == 1) {
		if (text[used++] != '\n')
			continue;
		if (used == strlen(line) + 1 && memcmp(text, line, used - 1) == 0)
			return true;
		used = 0;
	}
	return false;
}

static void order(const struct run *run, const char *text, const char *answer)
{
	assert_int_equal(write(run->to, text, strlen(text)), (ssize_t)strlen(text));
	assert_true(wait_for(run, answer));
}

static void end(struct run *run)
{
	int status;
	close(run->to);
	close(run->from);
	assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
	assert_true(WIFEXITED(status));
}

/* ---- hits ---- */

static void note(void *context, const struct ky_fired *fired)
{
	struct seen *seen = context;
	seen->count++;
	seen->wrong += fired->args_count != 2 || fired->args[1] != fired->args[0] * 1000;
	seen->first_sum += fired->args[0];
	seen->backwards |= fired->time_ns < seen->last_ns;
	seen->last_ns = fired->time_ns;
	if (fired->pid != seen->pid)
		seen->other_pid = fired->pid;
	snprintf(seen->reason, sizeof(seen->reason), "%s", fired->reason);
}

/* What all_call() of the target makes with so many threads. */
static uint32_t calls_of(uint32_t threads)
{
	return threads + 3;
}

static uint64_t sum_of(uint32_t threads)
{
	return (uint64_t)(threads + 3) * (threads + 4) / 2;
}

/* Skip the test where this engine is unavailable. */
static struct ky_probes *open_probes(struct ky_trigger *trigger, const char *text,
				     enum ky_probe_engine engine, struct seen *seen)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_probes *probes;
	assert_int_equal(ky_trigger_parse(trigger, text, message), 0);
	const struct ky_probes_options options = {
		.triggers = trigger, .count = 1, .engine = engine, .fired = note, .context = seen};
	const int error = ky_probes_open(&probes, &options);
	if (error) {
		print_message("%s: %s\n", text, strerror(-error));
		ky_trigger_free(trigger);
		skip();
	}
	return probes;
}

static void close_probes(struct ky_probes **probes, struct ky_trigger *trigger)
{
	ky_probes_close(probes);
	ky_trigger_free(trigger);
}

static void add(struct ky_probes *probes, pid_t pid)
{
	char message[KY_MESSAGE_BYTES];
	const int placed = ky_probes_add(probes, pid, message);
	if (placed != 1)
		print_message("%s\n", message);
	assert_int_equal(placed, 1);
}

static void check_seen(const struct seen *seen, uint32_t threads)
{
	assert_int_equal(seen->count, calls_of(threads));
	assert_int_equal(seen->wrong, 0);
	assert_int_equal(seen->first_sum, sum_of(threads));
	assert_false(seen->backwards);
	assert_string_equal(seen->reason, "probe_target_call was called");
	assert_true(seen->other_pid != 0);
}

/* Threads, a thread to come, a child: each call is one hit, with its arguments. And the target goes on after. */
static void check_engine(enum ky_probe_engine engine, const char *threads)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	struct ky_probes *probes = open_probes(&trigger, "symbol:probe_target_call", engine, &seen);
	struct run run = start_target(threads);
	seen.pid = run.pid;
	assert_true(wait_for(&run, "ready"));
	add(probes, run.pid);
	add(probes, run.pid); /* what is set stays */
	order(&run, "w", "done");
	ky_probes_round(probes);
	check_seen(&seen, (uint32_t)atoi(threads));
	assert_int_equal(ky_probes_lost(probes), 0);
	close_probes(&probes, &trigger);
	order(&run, "w", "done");
	end(&run);
}

static void uprobes_tell_each_call(void **state)
{
	(void)state;
	check_engine(KY_PROBE_UPROBE, "4");
}

static void breakpoints_tell_each_call(void **state)
{
	(void)state;
	check_engine(KY_PROBE_BREAKPOINT, "4");
}

static void uprobes_see_500_threads(void **state)
{
	(void)state;
	check_engine(KY_PROBE_UPROBE, "500");
}

static void breakpoints_see_500_threads(void **state)
{
	(void)state;
	check_engine(KY_PROBE_BREAKPOINT, "500");
}

/* Threads that are made while the breakpoints are set have them, and none tells twice. */
static void threads_made_meanwhile_tell_once(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct seen seen = {0};
		struct ky_trigger trigger;
		struct ky_probes *probes = open_probes(&trigger, "symbol:probe_target_call",
						       KY_PROBE_BREAKPOINT, &seen);
		struct run run = start_target("4");
		assert_true(wait_for(&run, "ready"));
		order(&run, "s", "storm");
		add(probes, run.pid);
		assert_true(wait_for(&run, "done"));
		order(&run, "c", "done");
		ky_probes_round(probes);
		assert_int_equal(seen.count, 300);
		assert_int_equal(seen.wrong, 0);
		assert_int_equal(seen.first_sum, 300 * 301 / 2);
		close_probes(&probes, &trigger);
		end(&run);
	}
}

/* ---- an ordinary user ---- */

/* 0, 1, or 77 where it is unavailable. */
static int probe_as_nobody(void)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_probes *probes = NULL;
	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 77;
	if (ky_trigger_parse(&trigger, "symbol:probe_target_call", message) != 0)
		return 1;
	struct run run = start_target("4");
	seen.pid = run.pid;
	if (!wait_for(&run, "ready"))
		return 77; /* the program is where nobody may not read */
	const struct ky_probes_options options = {
		.triggers = &trigger, .count = 1, .fired = note, .context = &seen};
	int error = ky_probes_open(&probes, &options);
	if (!error)
		error = ky_probes_add(probes, run.pid, message);
	if (error != 1) {
		print_message("%s\n", *message ? message : strerror(-error));
		close_probes(&probes, &trigger);
		end(&run);
		return error == -EACCES || error == -EPERM ? 77 : 1;
	}
	const bool chosen = strstr(ky_probes_why(probes), "root") != NULL;
	order(&run, "w", "done");
	ky_probes_round(probes);
	close_probes(&probes, &trigger);
	end(&run);
	return chosen && seen.count == calls_of(4) && seen.wrong == 0 ? 0 : 1;
}

static void an_ordinary_user_has_breakpoints(void **state)
{
	int status;
	(void)state;
	if (geteuid() != 0 || ky_probe_uprobe_type() == -ENODEV) {
		print_message("skipped: needs root, and a kernel with uprobes that /sys shows\n");
		skip();
	}
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		const int result = probe_as_nobody();
		fflush(NULL);
		_exit(result);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- where the program is ---- */

static void copy_target(const char *to)
{
	char bytes[65536];
	ssize_t count;
	const int in = open(target_path(), O_RDONLY | O_CLOEXEC);
	const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while ((count = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, (size_t)count) != count)
			_exit(126);
	close(in);
	if (close(out) != 0)
		_exit(126);
}

static void check_ready(struct run *run, enum ky_probe_engine engine)
{
	struct seen seen = {.pid = run->pid};
	struct ky_trigger trigger;
	struct ky_probes *probes = open_probes(&trigger, "symbol:probe_target_call", engine, &seen);
	add(probes, run->pid);
	order(run, "w", "done");
	ky_probes_round(probes);
	check_seen(&seen, 4);
	close_probes(&probes, &trigger);
	end(run);
}

static void check_deleted(enum ky_probe_engine engine)
{
	char folder[] = "/tmp/kymo-test-probe-XXXXXX", path[64];
	const char *const argv[] = {path, NULL};
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/target", folder);
	copy_target(path);
	struct run run = start(path, argv, NULL);
	const bool started = wait_for(&run, "ready");
	unlink(path);
	rmdir(folder);
	assert_true(started);
	check_ready(&run, engine);
}

static void a_deleted_program_has_uprobes(void **state)
{
	(void)state;
	check_deleted(KY_PROBE_UPROBE);
}

static void a_deleted_program_has_breakpoints(void **state)
{
	(void)state;
	check_deleted(KY_PROBE_BREAKPOINT);
}

/* A file system that nobody else sees, with the program in it. */
static void move_to_own_mounts(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/mnt", "tmpfs", 0, NULL) != 0)
		_exit(126);
	copy_target("/mnt/kymo-probe-target");
}

static void another_mount_namespace_is_looked_into(void **state)
{
	const char *const argv[] = {"probe_target", NULL};
	(void)state;
	struct run run = start("/mnt/kymo-probe-target", argv, move_to_own_mounts);
	if (!wait_for(&run, "ready")) {
		waitpid(run.pid, NULL, 0);
		skip(); /* this user may have no mounts */
	}
	check_ready(&run, KY_PROBE_UPROBE);
}

static void a_program_is_probed_from_its_first_instruction(void **state)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	char message[KY_MESSAGE_BYTES];
	(void)state;
	struct ky_probes *probes = open_probes(&trigger, "symbol:main", KY_PROBE_UPROBE, &seen);
	assert_int_equal(ky_probes_add_file(probes, target_path(), message), 1);
	struct run run = start_target("4");
	assert_true(wait_for(&run, "ready"));
	ky_probes_round(probes);
	assert_int_equal(seen.count, 1);
	close_probes(&probes, &trigger);
	end(&run);
}

static void breakpoints_are_set_again_after_exec(void **state)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	(void)state;
	struct ky_probes *probes =
		open_probes(&trigger, "symbol:probe_target_call", KY_PROBE_BREAKPOINT, &seen);
	struct run run = start_target("4");
	seen.pid = run.pid;
	assert_true(wait_for(&run, "ready"));
	add(probes, run.pid);
	order(&run, "x", "ready");
	add(probes, run.pid);
	order(&run, "w", "done");
	ky_probes_round(probes);
	check_seen(&seen, 4);
	close_probes(&probes, &trigger);
	end(&run);
}

/* ---- families ---- */

/* A function of the test itself, which its children call. */
__attribute__((noinline, visibility("default"))) void probe_own_call(uint64_t number,
								     uint64_t thousandfold);
static volatile uint64_t own_sink;

void probe_own_call(uint64_t number, uint64_t thousandfold)
{
	own_sink += number ^ thousandfold;
}

static void pin(unsigned cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* A child that makes a step for each byte. */
static struct run start_own(void (*act)(int step))
{
	int in[2], out[2];
	char told;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		close(in[1]);
		for (int step = 0; read(in[0], &told, 1) == 1; step++) {
			act(step);
			if (write(out[1], "done\n", 5) != 5)
				break;
		}
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	return (struct run){pid, in[1], out[0]};
}

static void wander(int step)
{
	(void)step;
	for (uint64_t i = 1; i <= 100; i++) {
		pin((unsigned)(i & 1));
		probe_own_call(i, i * 1000);
	}
}

/* Each CPU has an event of its own: hits by two of them are two hits, however close. */
static void a_thread_that_changes_its_cpu_tells_each_call(void **state)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	struct ky_probes *probes =
		open_probes(&trigger, "symbol:probe_own_call", KY_PROBE_BREAKPOINT, &seen);
	struct run run = start_own(wander);
	add(probes, run.pid);
	order(&run, "g", "done");
	ky_probes_round(probes);
	assert_int_equal(seen.count, 100);
	assert_int_equal(seen.wrong, 0);
	close_probes(&probes, &trigger);
	end(&run);
}

/* Its child is forked on the last CPU and its grandchild on the first, whose ring is read first. */
static void have_grandchildren(int step)
{
	(void)step;
	for (uint64_t i = 1; i <= 20; i++) {
		pin(1);
		const pid_t child = fork();
		if (child == 0) {
			pin(0);
			const pid_t grandchild = fork();
			if (grandchild == 0) {
				probe_own_call(i, i * 1000);
				_exit(0);
			}
			waitpid(grandchild, NULL, 0);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void check_grandchildren(enum ky_probe_engine engine)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	struct ky_probes *probes = open_probes(&trigger, "symbol:probe_own_call", engine, &seen);
	struct run run = start_own(have_grandchildren);
	add(probes, run.pid);
	order(&run, "g", "done");
	ky_probes_round(probes);
	assert_int_equal(seen.count, 20);
	assert_int_equal(seen.wrong, 0);
	close_probes(&probes, &trigger);
	end(&run);
}

static void uprobes_know_grandchildren(void **state)
{
	(void)state;
	check_grandchildren(KY_PROBE_UPROBE);
}

static void breakpoints_know_grandchildren(void **state)
{
	(void)state;
	check_grandchildren(KY_PROBE_BREAKPOINT);
}

static unsigned open_files(void)
{
	unsigned count = 0;
	DIR *folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void who_ended_gives_the_breakpoints_back(void **state)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	(void)state;
	struct ky_probes *probes =
		open_probes(&trigger, "symbol:probe_target_call", KY_PROBE_BREAKPOINT, &seen);
	const unsigned before = open_files();
	for (unsigned i = 1; i <= 20; i++) {
		struct run run = start_target("4");
		assert_true(wait_for(&run, "ready"));
		add(probes, run.pid);
		assert_true(open_files() >= before + 5);
		order(&run, "x", "ready"); /* those of the program before go too */
		add(probes, run.pid);
		order(&run, "w", "done");
		end(&run);
		ky_probes_ended(probes, run.pid);
		assert_int_equal(seen.count, i * calls_of(4));
		assert_int_equal(open_files(), before);
	}
	assert_int_equal(seen.wrong, 0);
	close_probes(&probes, &trigger);
}

static void outlive_parent(int step)
{
	if (step == 0 && fork() > 0)
		_exit(0);
	if (step == 1)
		probe_own_call(7, 7000);
}

static void a_child_keeps_the_breakpoints_of_a_parent_that_ended(void **state)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	(void)state;
	struct ky_probes *probes =
		open_probes(&trigger, "symbol:probe_own_call", KY_PROBE_BREAKPOINT, &seen);
	struct run run = start_own(outlive_parent);
	add(probes, run.pid);
	order(&run, "g", "done");
	assert_int_equal(waitpid(run.pid, NULL, 0), run.pid);
	ky_probes_ended(probes, run.pid);
	order(&run, "g", "done");
	ky_probes_round(probes);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.wrong, 0);
	close(run.to);
	close(run.from);
	close_probes(&probes, &trigger);
}

/* ---- lines ---- */

static void check_line(enum ky_probe_engine engine)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	struct ky_probes *probes = open_probes(&trigger, "line:probe_lines.c:1003", engine, &seen);
	struct run run = start_target("2");
	assert_true(wait_for(&run, "ready"));
	add(probes, run.pid);
	order(&run, "l", "done");
	ky_probes_round(probes);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.reason, "probe_lines.c:1003 was reached");
	close_probes(&probes, &trigger);
	end(&run);
}

static void uprobes_tell_of_lines(void **state)
{
	(void)state;
	check_line(KY_PROBE_UPROBE);
}

static void breakpoints_tell_of_lines(void **state)
{
	(void)state;
	check_line(KY_PROBE_BREAKPOINT);
}

/* ---- what cannot be ---- */

static void check_message(const char *text, const char *part)
{
	char message[KY_MESSAGE_BYTES];
	struct seen seen = {0};
	struct ky_trigger trigger;
	struct ky_probes *probes = open_probes(&trigger, text, KY_PROBE_AUTO, &seen);
	struct run run = start_target("1");
	assert_true(wait_for(&run, "ready"));
	assert_int_equal(ky_probes_add(probes, run.pid, message), -ENOENT);
	if (!strstr(message, part))
		fail_msg("'%s' is not in '%s'", part, message);
	close_probes(&probes, &trigger);
	end(&run);
}

static void what_is_nowhere_is_said_with_what_is_near(void **state)
{
	(void)state;
	check_message("symbol:probe_target_cal", "probe_target_call");
	check_message("symbol:PROBE_TARGET_LI", "probe_target_line");
	check_message("line:probe_lines.c:990", "nearest that has is 100");
	check_message("line:no_such_file.c:1", "no code");
}

static void a_target_that_dies_is_no_trouble(void **state)
{
	char message[KY_MESSAGE_BYTES];
	(void)state;
	for (int engine = KY_PROBE_UPROBE; engine <= KY_PROBE_BREAKPOINT; engine++) {
		struct seen seen = {0};
		struct ky_trigger trigger;
		struct ky_probes *probes = open_probes(&trigger, "symbol:probe_target_call",
						       (enum ky_probe_engine)engine, &seen);
		struct run run = start_target("4");
		assert_true(wait_for(&run, "ready"));
		add(probes, run.pid);
		kill(run.pid, SIGKILL);
		assert_int_equal(waitpid(run.pid, NULL, 0), run.pid);
		ky_probes_round(probes);
		assert_int_equal(ky_probes_add(probes, run.pid, message), -ESRCH);
		assert_int_equal(seen.count, 0);
		close(run.to);
		close(run.from);
		close_probes(&probes, &trigger);
	}
}

/* A process that sets probes in the target and is killed. */
static void set_and_be_killed(const struct run *run, enum ky_probe_engine engine)
{
	int up[2];
	char set;
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		struct seen seen = {0};
		struct ky_trigger trigger;
		char message[KY_MESSAGE_BYTES];
		struct ky_probes *probes =
			open_probes(&trigger, "symbol:probe_target_call", engine, &seen);
		if (ky_probes_add(probes, run->pid, message) == 1 && write(up[1], "+", 1) == 1)
			pause();
		_exit(1);
	}
	close(up[1]);
	assert_int_equal(read(up[0], &set, 1), 1);
	close(up[0]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Others may list uprobes in programs of their own. */
static void check_no_uprobe_is_listed(void)
{
	char line[4096];
	FILE *file = fopen("/sys/kernel/tracing/uprobe_events", "re");
	while (file && fgets(line, sizeof(line), file))
		assert_null(strstr(line, "probe_target"));
	if (file)
		fclose(file);
}

/* The target goes on, no uprobe is listed, and another can set probes in the same process. */
static void nothing_stays_behind_when_killed(void **state)
{
	(void)state;
	for (int engine = KY_PROBE_UPROBE; engine <= KY_PROBE_BREAKPOINT; engine++) {
		struct seen seen = {0};
		struct ky_trigger trigger;
		struct ky_probes *probes = open_probes(&trigger, "symbol:probe_target_call",
						       (enum ky_probe_engine)engine, &seen);
		close_probes(&probes, &trigger);
		struct run run = start_target("4");
		assert_true(wait_for(&run, "ready"));
		for (int i = 0; i < 5; i++)
			set_and_be_killed(&run, (enum ky_probe_engine)engine);
		order(&run, "w", "done");
		check_no_uprobe_is_listed();
		check_ready(&run, (enum ky_probe_engine)engine);
	}
}

/* ---- programs that nobody here wrote ---- */

static void check_foreign(const char *program, const char *const argv[], const char *text,
			  enum ky_probe_engine engine, const char *input, const char *answer)
{
	struct seen seen = {0};
	struct ky_trigger trigger;
	if (access(program, X_OK) != 0)
		skip();
	struct ky_probes *probes = open_probes(&trigger, text, engine, &seen);
	struct run run = start(program, argv, NULL);
	order(&run, input, answer);
	add(probes, run.pid);
	order(&run, input, answer);
	ky_probes_round(probes);
	assert_true(seen.count > 0);
	close_probes(&probes, &trigger);
	end(&run);
}

static void a_function_of_a_library_is_found(void **state)
{
	const char *const argv[] = {"sqlite3", ":memory:", NULL};
	(void)state;
	check_foreign("/usr/bin/sqlite3", argv, "symbol:sqlite3_step", KY_PROBE_UPROBE,
		      "select 40 + 2;\n", "42");
	check_foreign("/usr/bin/sqlite3", argv, "symbol:sqlite3_step", KY_PROBE_BREAKPOINT,
		      "select 40 + 2;\n", "42");
}

static void a_library_is_probed_before_the_program_starts(void **state)
{
	const char *const argv[] = {"sqlite3", ":memory:", "select 42;", NULL};
	struct seen seen = {0};
	struct ky_trigger trigger;
	char message[KY_MESSAGE_BYTES];
	(void)state;
	if (access("/usr/bin/sqlite3", X_OK) != 0)
		skip();
	struct ky_probes *probes =
		open_probes(&trigger, "symbol:sqlite3_step", KY_PROBE_UPROBE, &seen);
	assert_int_equal(ky_probes_add_file(probes, "/usr/bin/sqlite3", message), 1);
	struct run run = start("/usr/bin/sqlite3", argv, NULL);
	assert_true(wait_for(&run, "42"));
	end(&run);
	ky_probes_round(probes);
	assert_true(seen.count > 0);
	close_probes(&probes, &trigger);
}

static void python_is_probed(void **state)
{
	const char *const argv[] = {"python3", "-uc",
				    "import sys\nfor l in sys.stdin: print(repr(l.strip()))", NULL};
	(void)state;
	check_foreign("/usr/bin/python3", argv, "symbol:PyFile_WriteObject", KY_PROBE_UPROBE, "a\n",
		      "'a'");
	check_foreign("/usr/bin/python3", argv, "symbol:PyFile_WriteObject", KY_PROBE_BREAKPOINT,
		      "a\n", "'a'");
}

static bool is_allowed(void)
{
	struct ky_probes *probes;
	struct seen seen = {0};
	const struct ky_probes_options options = {.fired = note, .context = &seen};
	const int error = ky_probes_open(&probes, &options);
	if (error)
		printf("skipped: perf_event_open: %s\n", strerror(-error));
	ky_probes_close(&probes);
	return error == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uprobes_tell_each_call),
		cmocka_unit_test(breakpoints_tell_each_call),
		cmocka_unit_test(uprobes_see_500_threads),
		cmocka_unit_test(breakpoints_see_500_threads),
		cmocka_unit_test(threads_made_meanwhile_tell_once),
		cmocka_unit_test(an_ordinary_user_has_breakpoints),
		cmocka_unit_test(a_deleted_program_has_uprobes),
		cmocka_unit_test(a_deleted_program_has_breakpoints),
		cmocka_unit_test(another_mount_namespace_is_looked_into),
		cmocka_unit_test(a_program_is_probed_from_its_first_instruction),
		cmocka_unit_test(breakpoints_are_set_again_after_exec),
		cmocka_unit_test(a_thread_that_changes_its_cpu_tells_each_call),
		cmocka_unit_test(uprobes_know_grandchildren),
		cmocka_unit_test(breakpoints_know_grandchildren),
		cmocka_unit_test(who_ended_gives_the_breakpoints_back),
		cmocka_unit_test(a_child_keeps_the_breakpoints_of_a_parent_that_ended),
		cmocka_unit_test(uprobes_tell_of_lines),
		cmocka_unit_test(breakpoints_tell_of_lines),
		cmocka_unit_test(what_is_nowhere_is_said_with_what_is_near),
		cmocka_unit_test(a_target_that_dies_is_no_trouble),
		cmocka_unit_test(nothing_stays_behind_when_killed),
		cmocka_unit_test(a_function_of_a_library_is_found),
		cmocka_unit_test(a_library_is_probed_before_the_program_starts),
		cmocka_unit_test(python_is_probed),
	};
	signal(SIGPIPE, SIG_IGN);
	if (!is_allowed())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
