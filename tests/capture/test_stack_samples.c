/* SPDX-License-Identifier: MIT */
/*
 * test_stack_samples.c: call stacks of real programs, from the kernel's rings to the model: sampled into a bundle, which
 * is loaded as any .kymo file is. Exits with 77 where perf_event_open is not allowed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
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

#include "capture/stack_samples.h"
#include "formats/load.h"

enum { NOT_POSSIBLE = 77, NOBODY = 65534, ENOUGH = 40 };

static char folder[] = "/tmp/kymo-samples-XXXXXX";
static char target[128];

static const char *in_folder(const char *name)
{
	static char paths[4][160];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void run_command(const char *format, ...)
{
	char command[512];
	va_list list;
	va_start(list, format);
	vsnprintf(command, sizeof(command), format, list);
	va_end(list);
	assert_int_equal(system(command), 0);
}

/* An ordinary user must be able to run the target too: it is copied to where all may. */
static int make_folder(void **state)
{
	(void)state;
	const char *built = getenv("KYMO_TARGET_SAMPLE");
	if (!built || !mkdtemp(folder) || chmod(folder, 0777) != 0)
		return -1;
	snprintf(target, sizeof(target), "%s/target", folder);
	run_command("cp '%s' '%s' && chmod 755 '%s'", built, target, target);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	run_command("rm -rf '%s'", folder);
	return 0;
}

/* ---- programs ---- */

struct program {
	pid_t pid;
	int said; /* what it writes */
};

static void hear(const struct program *program)
{
	char byte;
	assert_int_equal(read(program->said, &byte, 1), 1);
}

static struct program start(const char *path, char *const words[])
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		execv(path, words);
		_exit(127);
	}
	close(ends[1]);
	assert_true(pid > 0);
	return (struct program){.pid = pid, .said = ends[0]};
}

static struct program start_target(const char *mode)
{
	char *words[] = {target, (char *)(uintptr_t)mode, NULL};
	const struct program program = start(target, words);
	hear(&program);
	return program;
}

static void stop(struct program *program)
{
	kill(program->pid, SIGKILL);
	waitpid(program->pid, NULL, 0);
	close(program->said);
}

/* ---- captures ---- */

struct capture {
	struct ky_bundle *bundle;
	struct ky_stack_samples *samples;
};

static struct capture begin(const char *path, const struct ky_stack_samples_options *more,
			    uint64_t max_bytes)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct capture capture;
	struct ky_bundle_options bundle = {.path = path, .max_bytes = max_bytes};
	struct ky_stack_samples_options options = {.per_second = 2000};
	assert_int_equal(ky_bundle_open(&capture.bundle, &bundle, message), 0);
	if (more)
		options = *more;
	options.bundle = capture.bundle;
	const int error = ky_stack_samples_open(&capture.samples, &options, message);
	if (error)
		print_message("%s\n", message);
	assert_int_equal(error, 0);
	return capture;
}

static void add(const struct capture *capture, pid_t pid, bool before_exec)
{
	char message[KY_MESSAGE_BYTES] = "";
	const int error = ky_stack_samples_add(capture->samples, pid, before_exec, message);
	if (error)
		print_message("%s\n", message);
	assert_int_equal(error, 0);
}

static struct ky_stack_samples_facts facts_of(const struct capture *capture)
{
	struct ky_stack_samples_facts facts;
	ky_stack_samples_facts(capture->samples, &facts);
	return facts;
}

/* Until there are so many samples more. */
static void sample(const struct capture *capture, uint64_t count)
{
	const uint64_t until = facts_of(capture).samples + count;
	while (facts_of(capture).samples < until) {
		struct pollfd ring = {.fd = ky_stack_samples_fd(capture->samples),
				      .events = POLLIN};
		poll(&ring, 1, 20);
		ky_stack_samples_round(capture->samples, false);
	}
}

static void finish(struct capture *capture)
{
	ky_stack_samples_close(&capture->samples);
	assert_null(capture->samples);
	assert_int_equal(ky_bundle_close(&capture->bundle), 0);
}

static struct ky_trace *load(const char *path)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_trace *trace;
	if (ky_load(&trace, path, NULL, message) != 0)
		print_message("%s\n", message);
	assert_non_null(trace);
	return trace;
}

/* ---- what is in a trace ---- */

static const char *name_at(const struct ky_trace *trace, uint32_t site)
{
	const char *name = ky_text_of(trace, trace->frames.name[trace->callsites.frame[site]]);
	return name ? name : "";
}

/* Whether the names, the innermost first and separated by '<', are on the stack, one called by the next. */
static bool has_stack_at(const struct ky_trace *trace, uint32_t site, const char *names)
{
	const char *at = names;
	while (site != KY_NONE) {
		const size_t bytes = strcspn(at, "<");
		const char *name = name_at(trace, site);
		if (strlen(name) != bytes || memcmp(name, at, bytes) != 0)
			return false;
		if (!at[bytes])
			return true;
		at += bytes + 1;
		site = trace->callsites.parent[site];
	}
	return false;
}

/* How many samples have the stack anywhere on theirs. */
static uint32_t count_stacks(const struct ky_trace *trace, const char *names)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < trace->samples.rows.count; i++)
		for (uint32_t site = trace->samples.callsite[i]; site != KY_NONE;
		     site = trace->callsites.parent[site])
			if (has_stack_at(trace, site, names)) {
				count++;
				break;
			}
	return count;
}

static void assert_most(const struct ky_trace *trace, const char *names)
{
	const uint32_t count = count_stacks(trace, names);
	if (count < trace->samples.rows.count / 2) {
		print_message("'%s' is in %u of %u samples; others have:\n", names, count,
			      trace->samples.rows.count);
		for (uint32_t i = 0; i < trace->samples.rows.count && i < 5; i++)
			for (uint32_t site = trace->samples.callsite[i]; site != KY_NONE;
			     site = trace->callsites.parent[site])
				print_message("%u: %s\n", i, name_at(trace, site));
	}
	assert_true(trace->samples.rows.count > 0);
	assert_true(count >= trace->samples.rows.count / 2);
}

/* ---- the tests ---- */

static void a_function_that_spins_is_on_the_stacks_with_what_calls_it(void **state)
{
	(void)state;
	struct program program = start_target("spin");
	struct capture capture = begin(in_folder("spin.kymo"), NULL, 0);
	add(&capture, program.pid, false);
	sample(&capture, ENOUGH);
	assert_int_equal(facts_of(&capture).lost, 0);
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("spin.kymo"));
	assert_true(trace->samples.rows.count >= ENOUGH);
	assert_most(trace, "target_inner<target_outer<main");
	ky_trace_close(&trace);
}

static void an_inlined_function_is_a_frame_with_its_file_and_line(void **state)
{
	(void)state;
	struct ky_trace *trace = load(in_folder("spin.kymo"));
	bool found = false;
	assert_most(trace, "target_inlined<target_inner<target_outer");
	for (uint32_t i = 0; i < trace->frames.rows.count; i++) {
		const char *name = ky_text_of(trace, trace->frames.name[i]);
		const char *file = ky_text_of(trace, trace->frames.file[i]);
		if (!name || strcmp(name, "target_inlined") != 0)
			continue;
		found = true;
		assert_non_null(file);
		assert_non_null(strstr(file, "sample_target.c"));
		assert_true(trace->frames.line[i] > 0);
	}
	assert_true(found);
	ky_trace_close(&trace);
}

static void names_come_with_the_file(void **state)
{
	(void)state;
	/* Without the program nothing on this machine can tell them. */
	assert_int_equal(rename(target, in_folder("away")), 0);
	struct ky_trace *trace = load(in_folder("spin.kymo"));
	assert_int_equal(rename(in_folder("away"), target), 0);
	assert_most(trace, "target_inner<target_outer<main");
	ky_trace_close(&trace);
}

static void names_of_cpp_and_rust_are_readable(void **state)
{
	(void)state;
	struct program program = start_target("languages");
	struct capture capture = begin(in_folder("languages.kymo"), NULL, 0);
	add(&capture, program.pid, false);
	sample(&capture, 16 * ENOUGH); /* what else runs is sampled, too */
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("languages.kymo"));
	assert_true(count_stacks(trace, "space::Holder::work(int)<target_languages") > 0);
	assert_true(count_stacks(trace, "mycrate::spin<target_languages") > 0);
	assert_true(count_stacks(trace, "mycrate::whirl<target_languages") > 0);
	ky_trace_close(&trace);
}

static void the_kernels_frames_are_above_the_programs(void **state)
{
	(void)state;
	struct program program = start_target("kernel");
	struct capture capture = begin(in_folder("kernel.kymo"), NULL, 0);
	if (facts_of(&capture).kernel_hidden) {
		finish(&capture);
		stop(&program);
		skip();
	}
	add(&capture, program.pid, false);
	sample(&capture, ENOUGH);
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("kernel.kymo"));
	uint32_t kernel = 0;
	for (uint32_t i = 0; i < trace->samples.rows.count; i++)
		kernel += trace->samples.mode[i] == KY_CPU_MODE_KERNEL;
	assert_true(kernel > 0);
	assert_true(count_stacks(trace, "vfs_read") > 0 || count_stacks(trace, "ksys_read") > 0 ||
		    access("/proc/kallsyms", R_OK) != 0);
	ky_trace_close(&trace);
}

static void threads_that_come_later_are_sampled(void **state)
{
	(void)state;
	struct program program = start_target("thread");
	struct capture capture = begin(in_folder("thread.kymo"), NULL, 0);
	add(&capture, program.pid, false);
	kill(program.pid, SIGUSR1);
	hear(&program);
	sample(&capture, ENOUGH);
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("thread.kymo"));
	assert_most(trace, "target_late_thread");
	bool named = false;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++) {
		const char *name = ky_text_of(trace, trace->threads.name[i]);
		named |= name && strcmp(name, "late") == 0;
	}
	assert_true(named);
	ky_trace_close(&trace);
}

/* How many descriptors of perf events this process has. */
static uint32_t count_events(void)
{
	uint32_t count = 0;
	DIR *fds = opendir("/proc/self/fd");
	assert_non_null(fds);
	for (struct dirent *entry; (entry = readdir(fds));) {
		char to[64] = "";
		const ssize_t bytes = readlinkat(dirfd(fds), entry->d_name, to, sizeof(to) - 1);
		count += bytes > 0 && strstr(to, "perf_event");
	}
	closedir(fds);
	return count;
}

static void children_are_sampled_once(void **state)
{
	(void)state;
	struct program program = start_target("fork");
	struct capture capture = begin(in_folder("fork.kymo"), NULL, 0);
	add(&capture, program.pid, false);
	kill(program.pid, SIGUSR1);
	hear(&program);
	char path[64];
	char children[64] = "";
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", program.pid, program.pid);
	FILE *list = fopen(path, "re");
	const uint32_t events = count_events();
	if (list && fgets(children, sizeof(children), list))
		add(&capture, (pid_t)atoi(children), false);
	if (list)
		fclose(list);
	/* It has those that it inherited. */
	assert_int_equal(count_events(), events);
	sample(&capture, ENOUGH);
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("fork.kymo"));
	assert_most(trace, "target_child");
	assert_int_equal(count_events(), 0);
	ky_trace_close(&trace);
}

static void a_program_is_sampled_from_its_exec_on(void **state)
{
	(void)state;
	int go[2];
	int said[2];
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		char byte;
		char *words[] = {target, "spin", NULL};
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(said[1], STDOUT_FILENO);
		if (read(go[0], &byte, 1) == 1)
			execv(target, words);
		_exit(127);
	}
	close(said[1]);
	struct program program = {.pid = pid, .said = said[0]};
	struct capture capture = begin(in_folder("exec.kymo"), NULL, 0);
	add(&capture, pid, true);
	assert_int_equal(write(go[1], "g", 1), 1);
	hear(&program);
	sample(&capture, ENOUGH);
	finish(&capture);
	stop(&program);
	close(go[0]);
	close(go[1]);
	struct ky_trace *trace = load(in_folder("exec.kymo"));
	assert_most(trace, "target_inner<target_outer<main");
	ky_trace_close(&trace);
}

static void a_program_of_500_threads_is_sampled(void **state)
{
	(void)state;
	struct program program = start_target("many");
	struct capture capture = begin(in_folder("many.kymo"), NULL, 0);
	add(&capture, program.pid, false);
	sample(&capture, ENOUGH);
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("many.kymo"));
	assert_true(trace->threads.rows.count >= 500);
	assert_most(trace, "target_inner<target_outer");
	ky_trace_close(&trace);
}

static void code_made_at_run_time_has_the_name_of_its_perf_map(void **state)
{
	(void)state;
#ifdef __x86_64__
	struct program program = start_target("made");
	struct capture capture = begin(in_folder("made.kymo"), NULL, 0);
	add(&capture, program.pid, false);
	sample(&capture, ENOUGH);
	finish(&capture);
	char map[64];
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", program.pid);
	stop(&program);
	unlink(map);
	struct ky_trace *trace = load(in_folder("made.kymo"));
	assert_most(trace, "made_at_run_time");
	ky_trace_close(&trace);
#else
	skip();
#endif
}

static void all_that_runs_is_sampled(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES] = "";
	struct program program = start_target("spin");
	if (geteuid() != 0) {
		stop(&program);
		skip();
	}
	const struct ky_stack_samples_options options = {.per_second = 2000, .all = true};
	struct capture capture = begin(in_folder("all.kymo"), &options, 0);
	assert_int_equal(ky_stack_samples_add(capture.samples, program.pid, false, message), 0);
	sample(&capture, 16 * ENOUGH); /* what else runs is sampled, too */
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("all.kymo"));
	assert_true(count_stacks(trace, "target_inner<target_outer<main") > 0);
	ky_trace_close(&trace);
}

static uint64_t boottime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void a_flight_recorder_writes_its_windows_once(void **state)
{
	(void)state;
	const struct ky_stack_samples_options options = {
		.per_second = 2000, .flight = true, .before_ns = 10000000000u};
	struct program program = start_target("spin");
	struct capture capture = begin(in_folder("flight.kymo"), &options, 0);
	add(&capture, program.pid, false);
	sample(&capture, ENOUGH);
	const uint64_t from = boottime_ns();
	sample(&capture, 2 * ENOUGH);
	const uint64_t to = boottime_ns();
	sample(&capture, ENOUGH);
	ky_stack_samples_window(capture.samples, from, to);
	ky_stack_samples_window(capture.samples, from, to);
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("flight.kymo"));
	assert_true(trace->samples.rows.count > 0);
	for (uint32_t i = 0; i < trace->samples.rows.count; i++) {
		assert_true(i == 0 || trace->samples.ts[i] != trace->samples.ts[i - 1] ||
			    trace->samples.cpu[i] != trace->samples.cpu[i - 1]);
	}
	assert_true(trace->samples.ts[trace->samples.rows.count - 1] - trace->samples.ts[0] <=
		    (int64_t)(to - from));
	assert_most(trace, "target_inner<target_outer<main");
	ky_trace_close(&trace);
}

static void a_flight_recorder_without_a_window_writes_no_samples(void **state)
{
	(void)state;
	const struct ky_stack_samples_options options = {
		.per_second = 2000, .flight = true, .before_ns = 1000000};
	struct program program = start_target("spin");
	struct capture capture = begin(in_folder("none.kymo"), &options, 0);
	add(&capture, program.pid, false);
	sample(&capture, ENOUGH);
	finish(&capture);
	stop(&program);
	struct ky_trace *trace = load(in_folder("none.kymo"));
	assert_int_equal(trace->samples.rows.count, 0);
	ky_trace_close(&trace);
}

static void each_file_of_a_rotation_stands_on_its_own(void **state)
{
	(void)state;
	char path[192];
	struct program program = start_target("spin");
	snprintf(path, sizeof(path), "%s/turn-${rotation}.kymo", folder);
	struct capture capture = begin(path, NULL, 16384);
	add(&capture, program.pid, false);
	struct ky_bundle_facts facts = {0};
	while (facts.files < 3) {
		sample(&capture, ENOUGH);
		ky_bundle_flush(capture.bundle);
		ky_bundle_facts(capture.bundle, &facts);
	}
	/* The last has samples too. */
	sample(&capture, ENOUGH);
	finish(&capture);
	for (unsigned i = 1; i <= 2; i++) {
		snprintf(path, sizeof(path), "%s/turn-%u.kymo", folder, i);
		struct ky_trace *trace = load(path);
		assert_most(trace, "target_inner<target_outer<main");
		ky_trace_close(&trace);
	}
	stop(&program);
}

static void a_process_that_is_not_there_is_told(void **state)
{
	(void)state;
	char message[KY_MESSAGE_BYTES] = "";
	struct capture capture = begin(in_folder("gone.kymo"), NULL, 0);
	assert_int_equal(ky_stack_samples_add(capture.samples, 0x3fffffff, false, message), -ESRCH);
	assert_non_null(strstr(message, "process 1073741823"));
	finish(&capture);
}

/* ---- as an ordinary user ---- */

static void be_nobody(void)
{
	if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
	    prctl(PR_SET_DUMPABLE, 1) != 0)
		_exit(1);
}

static void sample_as_nobody(void)
{
	be_nobody();
	struct program program = start_target("spin");
	struct capture capture = begin(in_folder("nobody.kymo"), NULL, 0);
	add(&capture, program.pid, false);
	sample(&capture, ENOUGH);
	finish(&capture);
	stop(&program);
}

static void an_ordinary_user_samples_own_processes(void **state)
{
	(void)state;
	int status;
	FILE *setting = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int paranoid = 4;
	if (setting) {
		if (fscanf(setting, "%d", &paranoid) != 1)
			paranoid = 4;
		fclose(setting);
	}
	if (geteuid() != 0 || paranoid > 2)
		skip();
	const pid_t child = fork();
	if (child == 0) {
		sample_as_nobody();
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	struct ky_trace *trace = load(in_folder("nobody.kymo"));
	assert_most(trace, "target_inner<target_outer<main");
	ky_trace_close(&trace);
}

static void others_processes_are_refused_with_a_remedy(void **state)
{
	(void)state;
	int status;
	if (geteuid() != 0)
		skip();
	struct program program = start_target("spin");
	const pid_t child = fork();
	if (child == 0) {
		char message[KY_MESSAGE_BYTES] = "";
		be_nobody();
		struct capture capture = begin(in_folder("refused.kymo"), NULL, 0);
		const int error =
			ky_stack_samples_add(capture.samples, program.pid, false, message);
		_exit(error == -EACCES && strstr(message, "root") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	stop(&program);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- programs that nobody here wrote ---- */

static void sample_program(const char *path, char *const words[], const char *out)
{
	if (access(path, X_OK) != 0)
		skip();
	struct program program = start(path, words);
	struct capture capture = begin(in_folder(out), NULL, 0);
	add(&capture, program.pid, false);
	sample(&capture, 16 * ENOUGH); /* what else runs is sampled, too */
	finish(&capture);
	stop(&program);
}

/* Its debug file is a pipe that nobody writes to: opening it would take for ever. */
static void a_debug_file_that_never_opens_costs_its_own_names_only(void **state)
{
	(void)state;
	char *words[] = {(char *)(uintptr_t)in_folder("hostile"), "spin", NULL};
	if (system("command -v objcopy > /dev/null") != 0) // NOLINT(cert-env33-c)
		skip();
	run_command("cd '%s' && objcopy --strip-all --remove-section=.note.gnu.build-id target "
		    "hostile && touch h.debug && objcopy --add-gnu-debuglink=h.debug hostile && "
		    "rm h.debug && mkfifo h.debug",
		    folder);
	struct capture capture = begin(in_folder("hostile.kymo"), NULL, 0);
	struct program bad = start(words[0], words);
	hear(&bad);
	struct program good = start_target("spin");
	add(&capture, bad.pid, false);
	add(&capture, good.pid, false);
	sample(&capture, 500);
	stop(&bad);
	stop(&good);
	finish(&capture);
	assert_int_equal(rename(target, in_folder("away")), 0);
	struct ky_trace *trace = load(in_folder("hostile.kymo"));
	assert_int_equal(rename(in_folder("away"), target), 0);
	assert_true(count_stacks(trace, "target_inner<target_outer<main") > 0);
	ky_trace_close(&trace);
}

static void python_is_sampled(void **state)
{
	(void)state;
	char *words[] = {"python3", "-c", "while True: pass", NULL};
	sample_program("/usr/bin/python3", words, "python.kymo");
	struct ky_trace *trace = load(in_folder("python.kymo"));
	assert_true(count_stacks(trace, "_PyEval_EvalFrameDefault") > 0);
	ky_trace_close(&trace);
}

static void sqlite_is_sampled(void **state)
{
	(void)state;
	char *words[] = {"sqlite3", ":memory:",
			 "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT "
			 "100000000000) SELECT sum(x) FROM n;",
			 NULL};
	sample_program("/usr/bin/sqlite3", words, "sqlite.kymo");
	struct ky_trace *trace = load(in_folder("sqlite.kymo"));
	bool found = false;
	for (uint32_t i = 0; i < trace->mappings.rows.count; i++) {
		const char *name = ky_text_of(trace, trace->mappings.name[i]);
		found |= name && strstr(name, "sqlite3");
		assert_true(!name || !strstr(name, "libsqlite3") || trace->mappings.build_id[i]);
	}
	assert_true(found);
	ky_trace_close(&trace);
}

static bool is_possible(void)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.exclude_kernel = attr.exclude_hv = 1;
	const long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close((int)fd);
	else
		fprintf(stderr, "skipped: perf_event_open: %s\n", strerror(errno));
	return fd >= 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_that_spins_is_on_the_stacks_with_what_calls_it),
		cmocka_unit_test(an_inlined_function_is_a_frame_with_its_file_and_line),
		cmocka_unit_test(names_come_with_the_file),
		cmocka_unit_test(names_of_cpp_and_rust_are_readable),
		cmocka_unit_test(the_kernels_frames_are_above_the_programs),
		cmocka_unit_test(threads_that_come_later_are_sampled),
		cmocka_unit_test(children_are_sampled_once),
		cmocka_unit_test(a_program_is_sampled_from_its_exec_on),
		cmocka_unit_test(a_program_of_500_threads_is_sampled),
		cmocka_unit_test(code_made_at_run_time_has_the_name_of_its_perf_map),
		cmocka_unit_test(all_that_runs_is_sampled),
		cmocka_unit_test(a_flight_recorder_writes_its_windows_once),
		cmocka_unit_test(a_flight_recorder_without_a_window_writes_no_samples),
		cmocka_unit_test(each_file_of_a_rotation_stands_on_its_own),
		cmocka_unit_test(a_process_that_is_not_there_is_told),
		cmocka_unit_test(an_ordinary_user_samples_own_processes),
		cmocka_unit_test(others_processes_are_refused_with_a_remedy),
		cmocka_unit_test(a_debug_file_that_never_opens_costs_its_own_names_only),
		cmocka_unit_test(python_is_sampled),
		cmocka_unit_test(sqlite_is_sampled),
	};
	if (!is_possible())
		return NOT_POSSIBLE;
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
