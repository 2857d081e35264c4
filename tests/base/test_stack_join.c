/* SPDX-License-Identifier: MIT */
/*
 * test_stack_join.c: sequences of call stacks, and exactly the spans that they become. A stack is written as the letters of
 * its functions, outermost first. Spans are written as events: "12(a" begins a at 12, "15)" ends the innermost.
 */
#include "base/stack_join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct written {
	char text[1 << 16];
	size_t used;
	uint64_t last_ns;
	uint32_t depth;
};

static void put(struct written *written, const char *text)
{
	const size_t bytes = strlen(text);
	assert_true(written->used + bytes + 1 < sizeof(written->text));
	memcpy(written->text + written->used, text, bytes + 1);
	written->used += bytes;
}

static void in_order(struct written *written, uint64_t ns)
{
	assert_true(ns >= written->last_ns);
	written->last_ns = ns;
}

static void on_begin(void *context, uint64_t ns, uint32_t function)
{
	static const char *const special[] = {"off", "preempted", "cut"};
	struct written *written = context;
	const char letter[2] = {(char)function, '\0'};
	char text[64];
	in_order(written, ns);
	written->depth++;
	snprintf(text, sizeof(text), "%s%u(%s", written->used ? " " : "", (unsigned)ns,
		 function < KY_STACK_FIRST ? special[function] : letter);
	put(written, text);
}

static void on_end(void *context, uint64_t ns)
{
	struct written *written = context;
	char text[64];
	in_order(written, ns);
	assert_true(written->depth > 0);
	written->depth--;
	snprintf(text, sizeof(text), " %u)", (unsigned)ns);
	put(written, text);
}

struct thread {
	struct ky_stack_join join;
	struct written written;
	struct ky_stack_sink sink;
};

static void begin(struct thread *thread)
{
	memset(thread, 0, sizeof(*thread));
	thread->sink = (struct ky_stack_sink){on_begin, on_end, &thread->written};
}

static void expect(struct thread *thread, const char *text)
{
	assert_string_equal(thread->written.text, text);
	ky_stack_join_free(&thread->join);
}

static void end_at(struct thread *thread, uint64_t ns, const char *text)
{
	ky_stack_join_end(&thread->join, ns, &thread->sink);
	assert_int_equal(thread->written.depth, 0);
	expect(thread, text);
}

/* Frame addresses encode the depth; the outermost known frame has depth `from`. */
static void sample_from(struct thread *thread, uint64_t ns, const char *stack, uint32_t from,
			bool whole)
{
	struct ky_stack_frame frames[64];
	const uint32_t count = (uint32_t)strlen(stack);
	for (uint32_t i = 0; i < count; i++)
		frames[i] = (struct ky_stack_frame){.function = (uint8_t)stack[i],
						    .returns = 1,
						    .place = 1000 - 10 * (from + i)};
	const struct ky_stack_sample sample = {
		.ns = ns, .frames = frames, .count = count, .whole = whole};
	ky_stack_join_sample(&thread->join, &sample, &thread->sink);
}

static void sample(struct thread *thread, uint64_t ns, const char *stack)
{
	sample_from(thread, ns, stack, 0, true);
}

static void off(struct thread *thread, uint64_t from, uint64_t to)
{
	ky_stack_join_off(&thread->join, from, KY_STACK_OFF_CPU, &thread->sink);
	ky_stack_join_on(&thread->join, to, &thread->sink);
}

/* ---- joining ---- */

static void frames_in_a_row_are_one_span(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "mab");
	sample(&thread, 20, "mab");
	sample(&thread, 30, "mab");
	end_at(&thread, 40, "10(m 10(a 10(b 40) 40) 40)");
}

static void changes_are_in_the_middle(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "ma");
	sample(&thread, 20, "mac");
	sample(&thread, 30, "mb");
	sample(&thread, 40, "mb");
	end_at(&thread, 44, "10(m 10(a 15(c 25) 25) 25(b 44) 44)");
}

static void the_same_inner_frame_in_another_outer_one_is_another_call(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "mac");
	sample(&thread, 20, "mbc");
	end_at(&thread, 30, "10(m 10(a 10(c 15) 15) 15(b 15(c 30) 30) 30)");
}

static void recursion_goes_by_depth(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "mr");
	sample(&thread, 20, "mrrr");
	sample(&thread, 30, "mrr");
	sample(&thread, 40, "m");
	end_at(&thread, 50, "10(m 10(r 15(r 15(r 25) 35) 35) 50)");
}

static void a_call_from_another_line_is_another_call(void **state)
{
	struct thread thread;
	struct ky_stack_frame frames[] = {{'m', 1, 1000}, {'a', 2, 990}};
	const struct ky_stack_sample first = {10, frames, 2, true};
	(void)state;
	begin(&thread);
	ky_stack_join_sample(&thread.join, &first, &thread.sink);
	frames[1].returns = 3;
	const struct ky_stack_sample second = {20, frames, 2, true};
	ky_stack_join_sample(&thread.join, &second, &thread.sink);
	end_at(&thread, 30, "10(m 10(a 15) 15(a 30) 30)");
}

static void a_frame_elsewhere_on_the_stack_is_another_call(void **state)
{
	struct thread thread;
	struct ky_stack_frame frames[] = {{'m', 1, 1000}, {'a', 2, 990}};
	const struct ky_stack_sample both = {10, frames, 2, true};
	(void)state;
	begin(&thread);
	ky_stack_join_sample(&thread.join, &both, &thread.sink);
	frames[1].place = 980;
	ky_stack_join_sample(&thread.join, &both, &thread.sink);
	end_at(&thread, 30, "10(m 10(a 10) 10(a 30) 30)");
}

static void what_is_not_known_of_a_frame_does_not_part_it(void **state)
{
	struct thread thread;
	struct ky_stack_frame frames[] = {{'m', 0, 1000}, {'a', 2, 0}};
	const struct ky_stack_sample both = {10, frames, 2, true};
	(void)state;
	begin(&thread);
	ky_stack_join_sample(&thread.join, &both, &thread.sink);
	frames[1].place = 990;
	ky_stack_join_sample(&thread.join, &both, &thread.sink);
	/* Now its place is known. */
	frames[1].place = 980;
	ky_stack_join_sample(&thread.join, &both, &thread.sink);
	end_at(&thread, 30, "10(m 10(a 10) 10(a 30) 30)");
}

static void a_stack_without_frames_ends_all(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "ma");
	sample(&thread, 20, "");
	sample(&thread, 30, "m");
	end_at(&thread, 30, "10(m 10(a 15) 15) 25(m 30)");
}

static void a_threads_begin_is_an_empty_stack(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	ky_stack_join_begin(&thread.join, 10);
	sample(&thread, 20, "m");
	end_at(&thread, 30, "15(m 30)");
}

static void another_program_begins_anew(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "ma");
	ky_stack_join_end(&thread.join, 20, &thread.sink);
	ky_stack_join_begin(&thread.join, 20);
	sample(&thread, 30, "n");
	end_at(&thread, 40, "10(m 10(a 20) 20) 25(n 40)");
}

static void times_never_go_back(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 30, "ma");
	sample(&thread, 20, "mb");
	off(&thread, 10, 15);
	sample(&thread, 5, "mc");
	end_at(&thread, 1, "30(m 30(a 30) 30(b 30(off 30) 30) 30(c 30) 30)");
}

static void what_is_too_deep_is_left_out_and_counted(void **state)
{
	static struct ky_stack_frame frames[200];
	struct thread thread;
	(void)state;
	begin(&thread);
	/* Cut stacks, each beginning where the last one ended. */
	for (uint32_t at = 0; at < KY_STACK_DEPTH_MAX; at += 100) {
		thread.written.used = 0;
		for (uint32_t i = 0; i < 200; i++)
			frames[i] = (struct ky_stack_frame){'r', 1, 100000 - at - i};
		const struct ky_stack_sample sample = {20, frames, 200, at == 0};
		ky_stack_join_sample(&thread.join, &sample, &thread.sink);
	}
	assert_int_equal(thread.join.count, KY_STACK_DEPTH_MAX);
	assert_int_equal(thread.written.depth, KY_STACK_DEPTH_MAX);
	assert_int_equal(thread.join.left_out, 52 + 152);
	ky_stack_join_free(&thread.join);
}

/* ---- off the CPU ---- */

static void off_cpu_is_a_span_inside(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "ma");
	off(&thread, 12, 50);
	sample(&thread, 60, "ma");
	end_at(&thread, 70, "10(m 10(a 12(off 50) 70) 70)");
}

static void nothing_changes_off_the_cpu(void **state)
{
	struct thread thread;
	(void)state;
	/* 20 of CPU time: 10 to 24 and 100 to 106. The middle is at 20. */
	begin(&thread);
	sample(&thread, 10, "ma");
	off(&thread, 24, 100);
	sample(&thread, 106, "mb");
	end_at(&thread, 110, "10(m 10(a 20) 20(b 24(off 100) 110) 110)");
	/* 10 to 12 and 100 to 118: the middle is at 108. */
	begin(&thread);
	sample(&thread, 10, "ma");
	off(&thread, 12, 100);
	sample(&thread, 118, "mb");
	end_at(&thread, 120, "10(m 10(a 12(off 100) 108) 108(b 120) 120)");
	/* Between two sleeps. */
	begin(&thread);
	sample(&thread, 10, "ma");
	off(&thread, 12, 100);
	off(&thread, 104, 200);
	sample(&thread, 202, "mb");
	end_at(&thread, 210, "10(m 10(a 12(off 100) 102) 102(b 104(off 200) 210) 210)");
}

static void who_could_go_on_was_preempted(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "m");
	ky_stack_join_off(&thread.join, 12, KY_STACK_PREEMPTED, &thread.sink);
	ky_stack_join_on(&thread.join, 14, &thread.sink);
	end_at(&thread, 20, "10(m 12(preempted 14) 20)");
}

static void a_look_shows_who_sleeps(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "ma");
	off(&thread, 12, 14);
	ky_stack_join_off(&thread.join, 16, KY_STACK_OFF_CPU, &thread.sink);
	ky_stack_join_settle(&thread.join, &thread.sink);
	assert_string_equal(thread.written.text, "10(m 10(a 12(off 14) 16(off");
	ky_stack_join_settle(&thread.join, &thread.sink);
	ky_stack_join_on(&thread.join, 50, &thread.sink);
	sample(&thread, 60, "mb");
	end_at(&thread, 70, "10(m 10(a 12(off 14) 16(off 50) 55) 55(b 70) 70)");
}

static void records_of_switches_may_be_lost(void **state)
{
	struct thread thread;
	(void)state;
	/* On, without having been off; off twice; a sample while off. */
	begin(&thread);
	sample(&thread, 10, "m");
	ky_stack_join_on(&thread.join, 12, &thread.sink);
	ky_stack_join_off(&thread.join, 14, KY_STACK_OFF_CPU, &thread.sink);
	ky_stack_join_off(&thread.join, 18, KY_STACK_OFF_CPU, &thread.sink);
	sample(&thread, 20, "m");
	end_at(&thread, 30, "10(m 14(off 18) 18(off 20) 30)");
}

static void a_thread_may_end_asleep(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "m");
	ky_stack_join_off(&thread.join, 12, KY_STACK_OFF_CPU, &thread.sink);
	end_at(&thread, 30, "10(m 12(off 30) 30)");
}

static void who_was_never_sampled_may_sleep(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	off(&thread, 10, 20);
	sample(&thread, 30, "m");
	end_at(&thread, 40, "10(off 20) 30(m 40)");
}

static void any_number_of_sleeps_between_two_samples(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 1, "ma");
	for (uint64_t i = 1; i <= 3 * KY_STACK_OFFS_MAX; i++) {
		thread.written.used = 0;
		off(&thread, 10 * i, 10 * i + 9);
		assert_true(thread.join.offs_count <= KY_STACK_OFFS_MAX);
	}
	thread.written.used = 0;
	sample(&thread, 100000, "mb");
	assert_int_equal(thread.join.offs_count, 0);
	assert_int_equal(thread.written.depth, 2);
	ky_stack_join_free(&thread.join);
}

/* ---- cut stacks ---- */

static void a_cut_stack_is_joined_where_it_begins(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "mabc");
	sample_from(&thread, 20, "bcd", 2, false);
	sample_from(&thread, 30, "bx", 2, false);
	end_at(&thread, 40, "10(m 10(a 10(b 10(c 15(d 25) 25) 25(x 40) 40) 40) 40)");
}

static void recursion_deeper_than_the_copy_is_joined_by_address(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "mrr");
	sample_from(&thread, 20, "rrr", 2, false);
	sample_from(&thread, 30, "rrr", 4, false);
	sample_from(&thread, 40, "rr", 3, false);
	end_at(&thread, 50, "10(m 10(r 10(r 15(r 15(r 25(r 25(r 35) 35) 50) 50) 50) 50) 50)");
}

static void what_cannot_be_joined_is_under_truncated(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample_from(&thread, 10, "xy", 40, false);
	sample_from(&thread, 20, "xz", 40, false);
	sample_from(&thread, 30, "wv", 50, false);
	sample(&thread, 40, "m");
	end_at(&thread, 50, "10(cut 10(x 10(y 15) 15(z 25) 25) 25(w 25(v 35) 35) 35) 35(m 50)");
}

static void frames_that_were_always_there_go_on_around_truncated(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "sma");
	sample(&thread, 20, "smb");
	sample_from(&thread, 30, "xy", 40, false);
	sample(&thread, 40, "sma");
	end_at(&thread, 50,
	       "10(s 10(m 10(a 15) 15(b 25) 25(cut 25(x 25(y 35) 35) 35) 35(a 50) "
	       "50) 50)");
}

static void one_stack_does_not_tell_what_is_always_there(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample(&thread, 10, "sma");
	sample_from(&thread, 20, "xy", 40, false);
	end_at(&thread, 30, "10(s 10(m 10(a 15) 15) 15) 15(cut 15(x 15(y 30) 30) 30)");
}

static void a_stack_of_which_nothing_is_known_is_truncated(void **state)
{
	struct thread thread;
	(void)state;
	begin(&thread);
	sample_from(&thread, 10, "", 0, false);
	sample_from(&thread, 20, "", 0, false);
	end_at(&thread, 30, "10(cut 30)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_in_a_row_are_one_span),
		cmocka_unit_test(changes_are_in_the_middle),
		cmocka_unit_test(the_same_inner_frame_in_another_outer_one_is_another_call),
		cmocka_unit_test(recursion_goes_by_depth),
		cmocka_unit_test(a_call_from_another_line_is_another_call),
		cmocka_unit_test(a_frame_elsewhere_on_the_stack_is_another_call),
		cmocka_unit_test(what_is_not_known_of_a_frame_does_not_part_it),
		cmocka_unit_test(a_stack_without_frames_ends_all),
		cmocka_unit_test(a_threads_begin_is_an_empty_stack),
		cmocka_unit_test(another_program_begins_anew),
		cmocka_unit_test(times_never_go_back),
		cmocka_unit_test(what_is_too_deep_is_left_out_and_counted),
		cmocka_unit_test(off_cpu_is_a_span_inside),
		cmocka_unit_test(nothing_changes_off_the_cpu),
		cmocka_unit_test(who_could_go_on_was_preempted),
		cmocka_unit_test(a_look_shows_who_sleeps),
		cmocka_unit_test(records_of_switches_may_be_lost),
		cmocka_unit_test(a_thread_may_end_asleep),
		cmocka_unit_test(who_was_never_sampled_may_sleep),
		cmocka_unit_test(any_number_of_sleeps_between_two_samples),
		cmocka_unit_test(a_cut_stack_is_joined_where_it_begins),
		cmocka_unit_test(recursion_deeper_than_the_copy_is_joined_by_address),
		cmocka_unit_test(what_cannot_be_joined_is_under_truncated),
		cmocka_unit_test(frames_that_were_always_there_go_on_around_truncated),
		cmocka_unit_test(one_stack_does_not_tell_what_is_always_there),
		cmocka_unit_test(a_stack_of_which_nothing_is_known_is_truncated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
