/* SPDX-License-Identifier: MIT */
/* test_patch.c: programs are patched and restored while they run, and neither notice nor change. */
#include "functrace/patch.h"

#include "capture/child.h"
#include "process/program_file.h"
#include "target_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CYCLES 25
#define FEWER 6 /* the analysis takes most of the time there */
#define KILLS 15

struct seen {
	int drums;
	struct stat drum;
	char notes[8][256];
	int notes_count;
	int stops;
};

static void see_drum(void *context, pid_t pid, int fd)
{
	struct seen *seen = context;
	(void)pid;
	seen->drums++;
	assert_int_equal(fstat(fd, &seen->drum), 0);
}

static void see_note(void *context, const char *line)
{
	struct seen *seen = context;
	if (seen->notes_count < 8)
		snprintf(seen->notes[seen->notes_count++], sizeof(seen->notes[0]), "%s", line);
	if (getenv("KYMO_TEST_NOTES"))
		fprintf(stderr, "note: %s\n", line);
}

static struct ky_functrace_options options_for(const char *functions, struct seen *seen)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_selection *selection = NULL;
	if (ky_selection_parse(&selection, functions, 0, message))
		fail_msg("%s", message);
	*seen = (struct seen){0};
	return (struct ky_functrace_options){.selection = selection,
					     .ring_bytes = 1u << 20,
					     .total_bytes = 64u << 20,
					     .drum = see_drum,
					     .note = see_note,
					     .context = seen};
}

static void free_options(struct ky_functrace_options *options)
{
	struct ky_selection *selection = (struct ky_selection *)options->selection;
	ky_selection_free(&selection);
}

static struct ky_patch *attach(const struct target *target,
			       const struct ky_functrace_options *options)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_patch *patch = NULL;
	if (ky_patch_open(&patch, target->pid, options, message))
		fail_msg("%s", message);
	return patch;
}

/* Return the bytes of code that differ from their files. */
static uint64_t differences(pid_t pid)
{
	struct ky_program_map map;
	char path[64];
	uint64_t count = 0;
	static uint8_t here[65536], there[65536];
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	const int memory = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(memory >= 0);
	assert_int_equal(ky_program_map_read(&map, pid), 0);
	for (uint32_t i = 0; i < map.count; i++) {
		const struct ky_proc_mapping *m = &map.mappings[i];
		if (strncmp(m->path, "/memfd:", 7) == 0)
			continue;
		const int file = ky_proc_maps_open_file(map.pid, m);
		assert_true(file >= 0);
		for (uint64_t at = m->start; at < m->end; at += sizeof(here)) {
			const size_t bytes =
				m->end - at < sizeof(here) ? m->end - at : sizeof(here);
			const ssize_t wanted =
				pread(file, here, bytes, (off_t)(m->offset + at - m->start));
			assert_int_equal(pread(memory, there, bytes, (off_t)at), bytes);
			for (ssize_t j = 0; j < wanted; j++)
				count += here[j] != there[j];
		}
		close(file);
	}
	ky_program_map_free(&map);
	close(memory);
	return count;
}

static uint32_t count_mappings(pid_t pid)
{
	char path[64], line[512];
	uint32_t count = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		count += strchr(line, '\n') != NULL;
	if (maps)
		fclose(maps);
	return count;
}

static uint32_t count_descriptors(pid_t pid)
{
	char command[96];
	unsigned count = 0;
	snprintf(command, sizeof(command), "ls /proc/%d/fd | wc -l", (int)pid);
	FILE *pipe = popen(command, "re");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%u", &count), 1);
	pclose(pipe);
	return count;
}

static void see_child(void *context, pid_t pid, int error, const char *message)
{
	(void)context;
	(void)pid;
	if (error < 0)
		fail_msg("%s", message);
}

/* Attach and detach under load, again and again: nothing grows, nothing differs, all results are right. */
static void cycle(const char *path, const char *mode, const char *functions, int cycles,
		  uint32_t least)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for(functions, &seen);
	struct ky_patch_facts facts = {0};
	uint32_t mappings = 0, descriptors = 0;
	uint64_t calls = 0;
	target_start(&target, path, mode);
	/* On a busy machine a cycle may be over before the program ran. */
	for (int i = 0; i < cycles || !calls; i++) {
		struct ky_patch *patch = attach(&target, &options);
		ky_patch_facts(patch, &facts);
		assert_true(facts.patched >= least);
		assert_true(differences(target.pid) > 0);
		for (int round = 0; round < 3; round++) {
			ky_patch_round(patch);
			usleep(1000);
		}
		ky_patch_close(&patch, false, &facts);
		assert_null(patch);
		calls += facts.calls;
		seen.drums -= i >= cycles;
		assert_int_equal(differences(target.pid), 0);
		if (i == 2) {
			mappings = count_mappings(target.pid);
			descriptors = count_descriptors(target.pid);
		}
	}
	/* The program's own threads and frames may map memory now and then. */
	assert_true(count_mappings(target.pid) <= mappings + 8);
	assert_int_equal(count_descriptors(target.pid), descriptors);
	assert_int_equal(seen.drums, cycles);
	bool whole;
	(void)ky_patch_close_children(0, see_child, NULL, &whole);
	assert_int_equal(target_end(&target), 0);
	if (getenv("KYMO_TEST_NOTES"))
		fprintf(stderr,
			"%u of %u functions in %u modules, %lu calls; analysed %lu us, stopped %lu "
			"us, %lu "
			"us\n",
			facts.patched, facts.functions, facts.modules, (unsigned long)facts.calls,
			(unsigned long)facts.analysed_ns / 1000,
			(unsigned long)facts.stopped_ns / 1000,
			(unsigned long)facts.unstopped_ns / 1000);
	free_options(&options);
}

static void threads_are_patched_under_load(void **state)
{
	(void)state;
	cycle(getenv("KYMO_TARGET_COUNTER"), "-", "module:counter*", CYCLES, 5);
	cycle(getenv("KYMO_TARGET_COUNTER"), "-", NULL, 4, 100);
}

static void a_program_that_forks_is_patched_under_load(void **state)
{
	(void)state;
	cycle(getenv("KYMO_TARGET_COUNTER"), "fork", NULL, 5, 100);
}

static void a_static_program_is_patched(void **state)
{
	(void)state;
	cycle(getenv("KYMO_TARGET_STATIC"), "-", NULL, FEWER, 100);
}

static void count_stop(void *context, pid_t pid, bool begins)
{
	struct seen *seen = context;
	(void)pid;
	seen->stops += begins;
}

/* Its unwinder and the caller of main lie side by side. */
static void a_static_program_that_does_not_unwind_is_not_taken_for_one_that_does(void **state)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for(NULL, &seen);
	char said[4] = "";
	(void)state;
	options.stops = count_stop;
	target_start(&target, getenv("KYMO_TARGET_STAYS"), NULL);
	struct ky_patch *patch = attach(&target, &options);
	assert_int_equal(write(target.input, "x", 1), 1);
	assert_int_equal(read(target.output, said, 3), 3);
	assert_string_equal(said, "in\n");
	seen.stops = 0;
	ky_patch_close(&patch, false, NULL);
	assert_in_range(seen.stops, 1, 5);
	assert_int_equal(differences(target.pid), 0);
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

static void a_static_pie_is_patched(void **state)
{
	(void)state;
	cycle(getenv("KYMO_TARGET_STATIC_PIE"), "-", NULL, FEWER, 100);
}

static void a_stripped_program_is_patched(void **state)
{
	(void)state;
	cycle(getenv("KYMO_TARGET_STRIPPED"), "-", "module:counter*", FEWER, 5);
}

static void only_beginnings_are_recorded_when_asked(void **state)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for(NULL, &seen);
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_COUNTER"), "-");
	for (int i = 0; i < 10; i++) {
		options.entry_only = i % 2;
		struct ky_patch *patch = attach(&target, &options);
		usleep(2000);
		ky_patch_close(&patch, false, NULL);
		assert_int_equal(differences(target.pid), 0);
	}
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

static void ask(const struct target *target)
{
	char word[7];
	assert_int_equal(write(target->input, "k", 1), 1);
	assert_int_equal(read(target->output, word, 7), 7);
}

static void calls_are_counted(void **state)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for("leaf,counted", &seen);
	struct ky_patch_facts facts;
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_COUNTER"), "once");
	for (int i = 0; i < 3; i++) {
		struct ky_patch *patch = attach(&target, &options);
		ky_patch_facts(patch, &facts);
		assert_int_equal(facts.patched, 2);
		ask(&target);
		ask(&target);
		ky_patch_close(&patch, false, &facts);
		assert_int_equal(facts.calls, 2 * 1001);
		ask(&target);
	}
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

/* Known counts, in a program that was compiled for it; then all of it under load. */
static void only_what_was_compiled_for_it(const char *path)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for("leaf,counted", &seen);
	struct ky_patch_facts facts;
	options.engine = KY_FUNCTRACE_NOPS;
	target_start(&target, path, "once");
	for (int i = 0; i < 5; i++) {
		struct ky_patch *patch = attach(&target, &options);
		ky_patch_facts(patch, &facts);
		assert_int_equal(facts.patched, 2);
		ask(&target);
		ky_patch_close(&patch, false, &facts);
		assert_int_equal(facts.calls, 1001);
		ask(&target);
		assert_int_equal(differences(target.pid), 0);
	}
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
	options = options_for(NULL, &seen);
	options.engine = KY_FUNCTRACE_NOPS;
	target_start(&target, path, "-");
	for (int i = 0; i < FEWER; i++) {
		struct ky_patch *patch = attach(&target, &options);
		usleep(1000);
		ky_patch_close(&patch, false, &facts);
		assert_true(facts.functions < 40);
	}
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

static void nops_are_used_where_they_are(void **state)
{
	(void)state;
	only_what_was_compiled_for_it(getenv("KYMO_TARGET_NOPS"));
}

static void instrumented_functions_are_led_to_the_agent(void **state)
{
	(void)state;
	only_what_was_compiled_for_it(getenv("KYMO_TARGET_CYG"));
}

static void what_is_called_too_often_is_left_alone(void **state)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for("leaf,counted", &seen);
	struct ky_patch_facts facts = {0};
	struct ky_patch_hot hot;
	(void)state;
	options.hot_per_second = 50000; /* leaf is called a thousand times as often */
	target_start(&target, getenv("KYMO_TARGET_COUNTER"), "once");
	struct ky_patch *patch = attach(&target, &options);
	while (!facts.hot) {
		for (int i = 0; i < 100; i++)
			ask(&target);
		ky_patch_round(patch);
		ky_patch_facts(patch, &facts);
	}
	assert_true(ky_patch_hot(patch, 0, &hot));
	assert_string_equal(hot.name, "leaf");
	assert_true(hot.limited && hot.calls > 2000);
	assert_false(ky_patch_hot(patch, 1, &hot));
	assert_int_equal(facts.patched, 1);
	ky_patch_close(&patch, false, &facts);
	assert_int_equal(differences(target.pid), 0);
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

/* Let the target work until the number of functions without their jumps is another. */
static void work_until_hot_changes(struct target *target, struct ky_patch *patch)
{
	struct ky_patch_facts before, now;
	ky_patch_facts(patch, &before);
	do {
		for (int i = 0; i < 100; i++)
			ask(target);
		ky_patch_round(patch);
		ky_patch_facts(patch, &now);
	} while (now.hot == before.hot);
	assert_int_equal(now.hot + now.patched, before.hot + before.patched);
}

static void tracing_costs_what_it_may(void **state)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for("leaf", &seen);
	struct ky_patch_facts facts = {0};
	struct ky_patch_hot hot;
	(void)state;
	options.overhead_percent = 1;
	target_start(&target, getenv("KYMO_TARGET_COUNTER"), "once");
	struct ky_patch *patch = attach(&target, &options);
	work_until_hot_changes(&target, patch);
	assert_true(ky_patch_hot(patch, 0, &hot));
	assert_string_equal(hot.name, "leaf");
	assert_true(!hot.limited && hot.calls > 2000);
	/* It is tried again after a while, then left out for longer; its calls in between are estimated. */
	work_until_hot_changes(&target, patch);
	ky_patch_facts(patch, &facts);
	assert_int_equal(facts.hot, 0);
	work_until_hot_changes(&target, patch);
	assert_true(ky_patch_hot(patch, 0, &hot));
	assert_true(hot.missed > 0);
	ky_patch_close(&patch, false, &facts);
	assert_int_equal(differences(target.pid), 0);
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

static void a_program_is_patched_before_it_begins(const char *path)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for(NULL, &seen);
	struct ky_patch_facts facts = {0};
	target_start_held(&target, path, "once");
	struct ky_patch *patch = attach(&target, &options);
	while (target_state(target.pid) != 'T')
		usleep(1000);
	ky_child_hold_end(target.pid);
	target_await_ready(&target);
	ask(&target);
	ky_patch_round(patch);
	ky_patch_close(&patch, false, &facts);
	assert_true(facts.calls > 1001);
	assert_int_equal(differences(target.pid), 0);
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

static void programs_are_patched_before_they_begin(void **state)
{
	(void)state;
	a_program_is_patched_before_it_begins(getenv("KYMO_TARGET_COUNTER"));
	a_program_is_patched_before_it_begins(getenv("KYMO_TARGET_STATIC"));
	a_program_is_patched_before_it_begins(getenv("KYMO_TARGET_STATIC_PIE"));
}

/* A library is patched before its loader goes on: the first call is seen. */
static void what_is_loaded_later_is_patched(void **state)
{
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for("plugin_*", &seen);
	struct ky_patch_facts facts = {0};
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_LOADER"), getenv("KYMO_TARGET_PLUGIN"));
	struct ky_patch *patch = attach(&target, &options);
	ky_patch_facts(patch, &facts);
	assert_int_equal(facts.patched, 0);
	for (int i = 0; i < 20; i++) {
		char word[7];
		struct pollfd poller = {.fd = target.output, .events = POLLIN};
		assert_int_equal(write(target.input, "k", 1), 1);
		while (poll(&poller, 1, 5) == 0)
			ky_patch_round(patch);
		assert_int_equal(read(target.output, word, 7), 7);
	}
	ky_patch_close(&patch, false, &facts);
	assert_int_equal(facts.calls, 20 * 200);
	assert_int_equal(differences(target.pid), 0);
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

static int stops_pipe[2];

static void tell_stop(void *context, pid_t pid, bool begins)
{
	(void)context, (void)pid;
	if (begins)
		(void)!write(stops_pipe[1], "k", 1);
}

/* Attach and detach until killed. */
static void attach_for_ever(pid_t pid, const struct ky_functrace_options *options)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_patch *patch;
	while (ky_patch_open(&patch, pid, options, message) == 0) {
		ky_patch_round(patch);
		ky_patch_close(&patch, false, NULL);
	}
	fprintf(stderr, "%s\n", message);
	_exit(1);
}

/* Kill a kymo a moment after it began its first, second ... stop: to map, to set the jumps, to take them out. */
static void kill_one(pid_t pid, const struct ky_functrace_options *options, int turn)
{
	char byte;
	int status = 0;
	assert_int_equal(pipe(stops_pipe), 0);
	const pid_t other = fork();
	if (other == 0)
		attach_for_ever(pid, options);
	for (int i = 0; i <= turn % 3; i++)
		assert_int_equal(read(stops_pipe[0], &byte, 1), 1);
	usleep((useconds_t)(turn * 397 % 3000));
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_true(WIFSIGNALED(status));
	close(stops_pipe[0]);
	close(stops_pipe[1]);
}

static void whoever_is_killed_leaves_what_can_be_undone(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for("module:counter*", &seen);
	int undone = 0;
	(void)state;
	options.stops = tell_stop;
	target_start(&target, getenv("KYMO_TARGET_STATIC"), "-");
	for (int i = 0; i < KILLS; i++) {
		kill_one(target.pid, &options, i);
		const int result = ky_patch_recover(target.pid, message);
		if (result < 0)
			fail_msg("%s", message);
		undone += result;
		assert_int_equal(differences(target.pid), 0);
	}
	assert_true(undone > 0);
	assert_int_equal(ky_patch_recover(target.pid, message), 0);
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

/* Let the target make some batches of calls. */
static void let_call(const struct target *target)
{
	char byte;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(write(target->input, "k", 1), 1);
		assert_int_equal(read(target->output, &byte, 1), 1);
	}
}

static void a_program_may_put_itself_into_a_sandbox(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for(NULL, &seen);
	struct ky_patch_facts facts;
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_SANDBOXED"), NULL);
	struct ky_patch *patch = attach(&target, &options);
	let_call(&target);
	ky_patch_round(patch);
	ky_patch_close(&patch, false, &facts);
	assert_true(facts.calls > 8 * 200000);
	assert_int_equal(differences(target.pid), 0);
	let_call(&target);
	/* By now no other kymo may attach. */
	assert_int_equal(ky_patch_open(&patch, target.pid, &options, message), -ENOTSUP);
	assert_non_null(strstr(message, "sandbox"));
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

/* Turn the counter off while attached, and again after another attach; early: only then. */
static void turn_counter_off(const char *how, bool early, const char *why)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct seen seen;
	struct ky_functrace_options options = options_for(NULL, &seen);
	struct ky_patch *patch = NULL;
	target_start(&target, getenv("KYMO_TARGET_SANDBOXED"), how);
	if (early) {
		patch = attach(&target, &options);
		assert_true(differences(target.pid) > 0);
	}
	let_call(&target);
	if (early) {
		ky_patch_round(patch);
		ky_patch_round(patch);
		ky_patch_close(&patch, false, NULL);
		assert_int_equal(seen.notes_count, 1);
		assert_non_null(strstr(seen.notes[0], "turned the CPU's counter off"));
	}
	assert_int_equal(differences(target.pid), 0);
	assert_int_equal(ky_patch_open(&patch, target.pid, &options, message), -ENOTSUP);
	assert_non_null(strstr(message, why));
	assert_int_equal(differences(target.pid), 0);
	let_call(&target);
	assert_int_equal(target_end(&target), 0);
	free_options(&options);
}

static void a_program_may_turn_the_counter_off(void **state)
{
	(void)state;
	turn_counter_off("counter", true, "counter off");
	turn_counter_off("counter", false, "counter off");
	turn_counter_off("strict", true, "sandbox");
}

/* Another kymo that attaches when this one is about to stop the program for the first time, and stays. */
static struct {
	struct ky_functrace_options options;
	pid_t pid;
	int hold[2];
} rival;

static void rival_attaches(void *context, pid_t pid, bool begins)
{
	int ready[2];
	char byte, message[KY_MESSAGE_BYTES];
	(void)context;
	if (!begins || rival.pid)
		return;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(rival.hold), 0);
	rival.pid = fork();
	if (rival.pid == 0) {
		struct ky_patch *patch = NULL;
		close(rival.hold[1]);
		if (ky_patch_open(&patch, pid, &rival.options, message))
			_exit(1);
		(void)!write(ready[1], "k", 1);
		(void)!read(rival.hold[0], &byte, 1);
		ky_patch_close(&patch, false, NULL);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(rival.hold[0]);
}

static void of_two_at_once_the_second_is_refused(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct seen seen;
	struct ky_patch *patch = NULL;
	int status = 0;
	(void)state;
	rival.options = options_for("module:counter*", &seen);
	struct ky_functrace_options options = rival.options;
	options.stops = rival_attaches;
	target_start(&target, getenv("KYMO_TARGET_STATIC"), "-");
	assert_int_equal(ky_patch_open(&patch, target.pid, &options, message), -EBUSY);
	assert_non_null(strstr(message, "another kymo"));
	close(rival.hold[1]);
	assert_int_equal(waitpid(rival.pid, &status, 0), rival.pid);
	assert_int_equal(status, 0);
	assert_int_equal(differences(target.pid), 0);
	assert_int_equal(target_end(&target), 0);
	free_options(&rival.options);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_counted),
		cmocka_unit_test(threads_are_patched_under_load),
		cmocka_unit_test(a_program_that_forks_is_patched_under_load),
		cmocka_unit_test(a_static_program_is_patched),
		cmocka_unit_test(
			a_static_program_that_does_not_unwind_is_not_taken_for_one_that_does),
		cmocka_unit_test(a_static_pie_is_patched),
		cmocka_unit_test(a_stripped_program_is_patched),
		cmocka_unit_test(only_beginnings_are_recorded_when_asked),
		cmocka_unit_test(what_is_called_too_often_is_left_alone),
		cmocka_unit_test(tracing_costs_what_it_may),
		cmocka_unit_test(programs_are_patched_before_they_begin),
		cmocka_unit_test(what_is_loaded_later_is_patched),
		cmocka_unit_test(nops_are_used_where_they_are),
		cmocka_unit_test(instrumented_functions_are_led_to_the_agent),
		cmocka_unit_test(whoever_is_killed_leaves_what_can_be_undone),
		cmocka_unit_test(of_two_at_once_the_second_is_refused),
		cmocka_unit_test(a_program_may_put_itself_into_a_sandbox),
		cmocka_unit_test(a_program_may_turn_the_counter_off),
	};
	target_skip_without_ptrace();
	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
