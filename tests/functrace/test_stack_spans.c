/* SPDX-License-Identifier: MIT */
/*
 * test_stack_spans.c: running programs, sampled: the contents of their drums. The number and times of the samples
 * depend on the machine: the tests check which spans there are, how they nest, and shares within wide bounds.
 */
#include "core/stream.h"
#include "functrace/stack_spans.h"

#include <errno.h>
#include <kymo/kymo.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_SECONDS 600
#define DRUMS_MAX 16u
#define SPANS_MAX 200000u
#define DEPTH_MAX 4096u

struct drum {
	pid_t pid;
	int fd;
};

struct world {
	struct ky_stack_spans *spans;
	struct drum drums[DRUMS_MAX];
	uint32_t drums_count;
	pid_t pid;
	int said; /* the program's output */
};

/* ---- a program, sampled ---- */

static void on_drum(void *context, pid_t pid, int fd)
{
	struct world *world = context;
	assert_true(world->drums_count < DRUMS_MAX);
	world->drums[world->drums_count++] = (struct drum){pid, dup(fd)};
}

static void on_note(void *context, const char *line)
{
	(void)context;
	print_message("%s\n", line);
}

static void start_program(struct world *world, const char *mode)
{
	int ends[2];
	const char *path = getenv("KYMO_TARGET_STACK_SPANS");
	assert_non_null(path);
	assert_int_equal(pipe(ends), 0);
	world->pid = fork();
	if (world->pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(path, path, mode, (char *)NULL);
		_exit(1);
	}
	close(ends[1]);
	world->said = ends[0];
	char byte;
	assert_int_equal(read(world->said, &byte, 1), 1);
}

static void begin_world(struct world *world, const char *mode, uint32_t per_second,
			const struct ky_selection *selection)
{
	char message[KY_MESSAGE_BYTES];
	*world = (struct world){.said = -1};
	const struct ky_functrace_options options = {.samples_per_second = per_second,
						     .selection = selection,
						     .ring_bytes = 1u << 20,
						     .total_bytes = 64u << 20,
						     .drum = on_drum,
						     .note = on_note,
						     .context = world};
	const int error = ky_stack_spans_open(&world->spans, &options, message);
	if (error) {
		print_message("%s\n", message);
		skip();
	}
	start_program(world, mode);
	const int added = ky_stack_spans_add(world->spans, world->pid, message);
	if (added)
		print_message("%s\n", message);
	assert_int_equal(added, 0);
}

static void begin(struct world *world, const char *mode)
{
	begin_world(world, mode, 1000, NULL);
}

static uint64_t seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

/* Wait until that many samples were taken in all. */
static struct ky_stack_spans_facts wait_samples(struct world *world, uint64_t samples)
{
	struct ky_stack_spans_facts facts;
	const uint64_t until = seconds() + DEADLINE_SECONDS;
	do {
		poll(NULL, 0, 5);
		ky_stack_spans_round(world->spans, true);
		ky_stack_spans_facts(world->spans, &facts);
		assert_true(seconds() < until);
	} while (facts.samples < samples);
	return facts;
}

static void end_program(struct world *world)
{
	if (world->pid > 0) {
		kill(world->pid, SIGKILL);
		waitpid(world->pid, NULL, 0);
	}
	world->pid = 0;
	if (world->said >= 0)
		close(world->said);
	world->said = -1;
}

static struct ky_stack_spans_facts end_world(struct world *world)
{
	struct ky_stack_spans_facts facts;
	const pid_t pid = world->pid;
	end_program(world);
	ky_stack_spans_ended(world->spans, pid);
	ky_stack_spans_close(&world->spans, &facts);
	assert_null(world->spans);
	return facts;
}

static void close_drums(struct world *world)
{
	for (uint32_t i = 0; i < world->drums_count; i++)
		close(world->drums[i].fd);
	world->drums_count = 0;
}

/* ---- the contents of a drum ---- */

struct span {
	char name[48];
	char thread[16];
	char file[64];
	uint32_t line;
	int tid;
	uint32_t parent; /* UINT32_MAX: none */
	uint64_t from, to;
	uint64_t off_ns; /* off the CPU, in it */
};

struct open_thread {
	int tid;
	uint32_t open[DEPTH_MAX];
	uint32_t depth;
};

struct seen {
	struct span *spans;
	uint32_t count;
	struct open_thread *threads;
	uint32_t threads_count;
	uint32_t unbalanced;
};

static struct open_thread *thread_of(struct seen *seen, int tid)
{
	for (uint32_t i = 0; i < seen->threads_count; i++)
		if (seen->threads[i].tid == tid)
			return &seen->threads[i];
	assert_true(seen->threads_count < 64);
	seen->threads[seen->threads_count] = (struct open_thread){.tid = tid};
	return &seen->threads[seen->threads_count++];
}

static bool is_off(const struct span *span)
{
	return strncmp(span->name, "off CPU", 7) == 0;
}

static void on_end(struct seen *seen, struct open_thread *thread, uint64_t ns)
{
	if (!thread->depth) {
		seen->unbalanced++;
		return;
	}
	struct span *span = &seen->spans[thread->open[--thread->depth]];
	span->to = ns;
	for (uint32_t i = 0; is_off(span) && i < thread->depth; i++)
		seen->spans[thread->open[i]].off_ns += ns - span->from;
}

static void on_event(void *context, const struct ky_event *event)
{
	struct seen *seen = context;
	struct open_thread *thread = thread_of(seen, event->thread->tid);
	if (event->kind == KYMO_KIND_END)
		on_end(seen, thread, event->time_ns);
	if (event->kind != KYMO_KIND_BEGIN)
		return;
	assert_true(seen->count < SPANS_MAX && thread->depth < DEPTH_MAX);
	struct span *span = &seen->spans[seen->count];
	*span = (struct span){.tid = thread->tid,
			      .line = event->site->line,
			      .from = event->time_ns,
			      .to = event->time_ns,
			      .parent =
				      thread->depth ? thread->open[thread->depth - 1] : UINT32_MAX};
	snprintf(span->name, sizeof(span->name), "%s", event->name.data);
	snprintf(span->thread, sizeof(span->thread), "%s", event->thread->name.data);
	const char *slash = strrchr(event->site->file.data, '/');
	snprintf(span->file, sizeof(span->file), "%s", slash ? slash + 1 : event->site->file.data);
	thread->open[thread->depth++] = seen->count++;
}

static struct seen read_drum(const struct world *world, uint32_t index)
{
	static struct ky_stream stream;
	const char *what = "";
	struct stat status;
	struct seen seen = {.spans = calloc(SPANS_MAX, sizeof(struct span)),
			    .threads = calloc(64, sizeof(struct open_thread))};
	assert_true(index < world->drums_count);
	assert_int_equal(fstat(world->drums[index].fd, &status), 0);
	const size_t bytes = (size_t)status.st_size;
	void *base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, world->drums[index].fd, 0);
	assert_true(base != MAP_FAILED);
	assert_int_equal(ky_stream_open(&stream, base, bytes, NULL, false, 0, &what), 0);
	stream.sink = (struct ky_stream_sink){.event = on_event, .context = &seen};
	/* By a clock whose ticks are the time. */
	const uint64_t far = UINT64_C(1) << 62;
	stream.clock.count = 0;
	assert_int_equal(ky_clock_map_add(&stream.clock, &(struct ky_tick_reading){1, 1, 1, 1}), 0);
	assert_int_equal(
		ky_clock_map_add(&stream.clock, &(struct ky_tick_reading){far, far, far, far}), 0);
	assert_int_equal(ky_stream_read_to(&stream, far), 0);
	assert_int_equal(stream.damaged, 0);
	ky_stream_close(&stream);
	munmap(base, bytes);
	assert_int_equal(seen.unbalanced, 0);
	return seen;
}

static void free_seen(struct seen *seen)
{
	free(seen->spans);
	free(seen->threads);
}

static const char *parent_of(const struct seen *seen, const struct span *span)
{
	return span->parent == UINT32_MAX ? "" : seen->spans[span->parent].name;
}

static const struct span *find(const struct seen *seen, const char *name)
{
	for (uint32_t i = 0; i < seen->count; i++)
		if (strcmp(seen->spans[i].name, name) == 0)
			return &seen->spans[i];
	return NULL;
}

/* Return the time on the CPU of all spans of that name. */
static uint64_t cpu_ns(const struct seen *seen, const char *name)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < seen->count; i++)
		if (strcmp(seen->spans[i].name, name) == 0)
			sum += seen->spans[i].to - seen->spans[i].from - seen->spans[i].off_ns;
	return sum;
}

/* Check that all spans of that name lie in spans of the parent's. */
static void assert_in(const struct seen *seen, const char *name, const char *parent)
{
	assert_non_null(find(seen, name));
	for (uint32_t i = 0; i < seen->count; i++)
		if (strcmp(seen->spans[i].name, name) == 0)
			assert_string_equal(parent_of(seen, &seen->spans[i]), parent);
}

/* ---- tests ---- */

static void shares_and_nesting_are_right_without_frame_pointers(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "shares");
	wait_samples(&world, 400);
	const struct ky_stack_spans_facts facts = end_world(&world);
	assert_int_equal(world.drums_count, 1);
	struct seen seen = read_drum(&world, 0);
	assert_in(&seen, "target_a", "target_shares");
	assert_in(&seen, "target_b", "target_shares");
	assert_in(&seen, "target_c", "target_b");
	assert_in(&seen, "target_shares", "main");
	assert_non_null(find(&seen, "target_inlined"));
	const uint64_t a = cpu_ns(&seen, "target_a");
	const uint64_t c = cpu_ns(&seen, "target_c");
	print_message("a %.0f %%, whole %.1f %%, lost %u\n", 100.0 * (double)a / (double)(a + c),
		      100.0 * (double)facts.unwound_whole / (double)facts.samples,
		      (unsigned)facts.lost);
	assert_in_range(100 * a / (a + c), 10, 55);
	/* main runs all the time: it is one span. */
	uint32_t mains = 0;
	for (uint32_t i = 0; i < seen.count; i++)
		mains += strcmp(seen.spans[i].name, "main") == 0;
	assert_int_equal(mains, 1);
	assert_true(facts.unwound_whole * 100 >= facts.samples * 95);
	free_seen(&seen);
	close_drums(&world);
}

static void inlined_functions_lie_in_what_they_are_inlined_into(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "shares");
	wait_samples(&world, 200);
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	uint32_t count = 0;
	for (uint32_t i = 0; i < seen.count; i++) {
		if (strcmp(seen.spans[i].name, "target_inlined") != 0)
			continue;
		const char *parent = parent_of(&seen, &seen.spans[i]);
		assert_true(strcmp(parent, "target_a") == 0 || strcmp(parent, "target_c") == 0);
		count++;
	}
	assert_true(count > 0);
	const struct span *a = find(&seen, "target_a");
	assert_string_equal(a->file, "stack_spans_target.c");
	assert_true(a->line > 0);
	free_seen(&seen);
	close_drums(&world);
}

static uint32_t depth_of(const struct seen *seen, const struct span *span, const char *name)
{
	uint32_t depth = 0;
	for (;;) {
		depth += strcmp(span->name, name) == 0;
		if (span->parent == UINT32_MAX)
			return depth;
		span = &seen->spans[span->parent];
	}
}

static uint32_t deepest(const struct seen *seen, const char *name)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < seen->count; i++) {
		const uint32_t depth = depth_of(seen, &seen->spans[i], name);
		most = depth > most ? depth : most;
	}
	return most;
}

static void recursion_deeper_than_the_first_copy_is_seen_whole_in_the_end(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "deep");
	/* 100 calls are 30 KB: the copy gets larger until they are in it. */
	struct ky_stack_spans_facts facts = wait_samples(&world, 1);
	const uint64_t until = seconds() + DEADLINE_SECONDS;
	while (facts.unwound_whole < 100) {
		facts = wait_samples(&world, facts.samples + 1);
		assert_true(seconds() < until);
	}
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	assert_int_equal(deepest(&seen, "target_recurse"), 101);
	free_seen(&seen);
	close_drums(&world);
}

static void recursion_without_end_is_shown_as_truncated(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "deeper");
	wait_samples(&world, 1000);
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	assert_non_null(find(&seen, "[truncated]"));
	assert_true(deepest(&seen, "target_recurse") > 100);
	free_seen(&seen);
	close_drums(&world);
}

static void threads_that_are_there_are_sampled(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "threads");
	const uint64_t until = seconds() + DEADLINE_SECONDS;
	uint32_t workers = 0;
	/* Each of the eight gets its turn. */
	for (uint64_t samples = 200; workers < 8; samples += 200) {
		wait_samples(&world, samples);
		struct seen seen = read_drum(&world, 0);
		workers = 0;
		for (uint32_t i = 0; i < seen.threads_count; i++)
			workers += seen.threads[i].tid != world.pid;
		free_seen(&seen);
		assert_true(seconds() < until);
	}
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	assert_in(&seen, "target_b", "target_thread");
	assert_int_equal(strncmp(find(&seen, "target_thread")->thread, "worker ", 7), 0);
	free_seen(&seen);
	close_drums(&world);
}

static void threads_that_come_are_sampled(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "late");
	kill(world.pid, SIGUSR1);
	wait_samples(&world, 100);
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	assert_in(&seen, "target_b", "target_thread");
	free_seen(&seen);
	close_drums(&world);
}

static void sleep_is_a_span_in_the_functions_that_sleep(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "sleep");
	wait_samples(&world, 100);
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	const struct span *off = find(&seen, "off CPU (waiting)");
	assert_non_null(off);
	assert_true(off->to > off->from);
	assert_int_equal(deepest(&seen, "main"), 1);
	assert_in(&seen, "target_a", "target_sleepy");
	free_seen(&seen);
	close_drums(&world);
}

static void a_child_has_a_drum_of_its_own(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "fork");
	kill(world.pid, SIGUSR1);
	wait_samples(&world, 100);
	end_world(&world);
	bool found = false;
	for (uint32_t i = 0; i < world.drums_count; i++) {
		struct seen seen = read_drum(&world, i);
		found |= find(&seen, "target_child") != NULL;
		free_seen(&seen);
	}
	assert_true(found);
	close_drums(&world);
}

static void another_program_has_a_drum_of_its_own(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "exec");
	kill(world.pid, SIGUSR1);
	wait_samples(&world, 200);
	end_world(&world);
	assert_true(world.drums_count >= 1);
	struct seen seen = read_drum(&world, world.drums_count - 1);
	assert_in(&seen, "target_a", "target_shares");
	free_seen(&seen);
	close_drums(&world);
}

static void a_program_that_ends_at_once_is_no_harm(void **state)
{
	struct world world;
	int status;
	(void)state;
	begin(&world, "end");
	kill(world.pid, SIGUSR1);
	assert_int_equal(waitpid(world.pid, &status, 0), world.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	const pid_t gone = world.pid;
	world.pid = 0;
	char message[KY_MESSAGE_BYTES];
	const int error = ky_stack_spans_add(world.spans, gone, message);
	assert_true(error == 0 || error == -ESRCH);
	if (error)
		assert_non_null(strstr(message, "process"));
	end_world(&world);
	for (uint32_t i = 0; i < world.drums_count; i++) {
		struct seen seen = read_drum(&world, i);
		for (uint32_t j = 0; j < seen.threads_count; j++)
			assert_int_equal(seen.threads[j].depth, 0);
		free_seen(&seen);
	}
	close_drums(&world);
}

static void a_handler_lies_in_what_was_interrupted(void **state)
{
	struct world world;
	(void)state;
	begin(&world, "signal");
	wait_samples(&world, 100);
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	const struct span *handler = find(&seen, "target_handler");
	assert_non_null(handler);
	assert_int_equal(depth_of(&seen, handler, "target_signalled"), 1);
	assert_int_equal(depth_of(&seen, handler, "main"), 1);
	free_seen(&seen);
	close_drums(&world);
}

static void made_code_has_the_name_that_the_program_gave_it(void **state)
{
	struct world world;
	char path[64];
	(void)state;
	begin(&world, "made");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)world.pid);
	wait_samples(&world, 100);
	end_world(&world);
	unlink(path);
	struct seen seen = read_drum(&world, 0);
	/* While it has no frame pointer its caller may not be found: rarely. */
	bool inside = false;
	for (uint32_t i = 0; i < seen.count; i++)
		inside |= strcmp(seen.spans[i].name, "made_at_run_time") == 0 &&
			  strcmp(parent_of(&seen, &seen.spans[i]), "target_made") == 0;
	assert_true(inside);
	free_seen(&seen);
	close_drums(&world);
}

static void functions_that_are_not_wanted_are_transparent(void **state)
{
	struct world world;
	struct ky_selection *selection;
	char message[KY_MESSAGE_BYTES];
	(void)state;
	assert_int_equal(ky_selection_parse(&selection, "target_c,target_shares", 0, message), 0);
	begin_world(&world, "shares", 1000, selection);
	wait_samples(&world, 200);
	end_world(&world);
	struct seen seen = read_drum(&world, 0);
	assert_in(&seen, "target_c", "target_shares");
	assert_in(&seen, "target_shares", "");
	assert_null(find(&seen, "target_b"));
	assert_null(find(&seen, "main"));
	free_seen(&seen);
	close_drums(&world);
	ky_selection_free(&selection);
}

static void ten_thousand_a_second_of_many_threads(void **state)
{
	struct world world;
	(void)state;
	begin_world(&world, "threads", 10000, NULL);
	wait_samples(&world, 10000);
	const struct ky_stack_spans_facts facts = end_world(&world);
	/* Losses depend on the machine, and must be counted. */
	print_message("%u samples, %u lost, %.1f %% whole\n", (unsigned)facts.samples,
		      (unsigned)facts.lost,
		      100.0 * (double)facts.unwound_whole / (double)facts.samples);
	assert_true(facts.unwound_whole * 100 >= facts.samples * 95);
	close_drums(&world);
}

static void what_cannot_be_done_is_said(void **state)
{
	struct ky_stack_spans *spans;
	char message[KY_MESSAGE_BYTES];
	struct ky_functrace_options options = {.samples_per_second = 100000,
					       .ring_bytes = 1u << 20};
	(void)state;
	assert_int_not_equal(ky_stack_spans_open(&spans, &options, message), 0);
	assert_null(spans);
	assert_non_null(strstr(message, "functions: "));
	options.samples_per_second = 100;
	if (ky_stack_spans_open(&spans, &options, message) != 0)
		skip();
	assert_int_equal(ky_stack_spans_add(spans, 0x3fffffff, message), -ESRCH);
	assert_non_null(strstr(message, "process"));
	ky_stack_spans_close(&spans, NULL);
	ky_stack_spans_close(&spans, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_and_nesting_are_right_without_frame_pointers),
		cmocka_unit_test(inlined_functions_lie_in_what_they_are_inlined_into),
		cmocka_unit_test(recursion_deeper_than_the_first_copy_is_seen_whole_in_the_end),
		cmocka_unit_test(recursion_without_end_is_shown_as_truncated),
		cmocka_unit_test(threads_that_are_there_are_sampled),
		cmocka_unit_test(threads_that_come_are_sampled),
		cmocka_unit_test(sleep_is_a_span_in_the_functions_that_sleep),
		cmocka_unit_test(a_child_has_a_drum_of_its_own),
		cmocka_unit_test(another_program_has_a_drum_of_its_own),
		cmocka_unit_test(a_program_that_ends_at_once_is_no_harm),
		cmocka_unit_test(a_handler_lies_in_what_was_interrupted),
		cmocka_unit_test(made_code_has_the_name_that_the_program_gave_it),
		cmocka_unit_test(functions_that_are_not_wanted_are_transparent),
		cmocka_unit_test(ten_thousand_a_second_of_many_threads),
		cmocka_unit_test(what_cannot_be_done_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
