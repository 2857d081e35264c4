/* SPDX-License-Identifier: MIT */
/*
 * test_pt_decode.c: calls rebuilt from packets of Intel PT: the packets that a CPU would write are made by libipt's encoder.
 *
 * "f{ g{ } }" is the result: f called g. "~f{": f was running when the trace began.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "functrace/pt_stack.h"
#include "pt_maker.h"

#define MAIN (PT_CODE_AT + 0x000u)
#define F (PT_CODE_AT + 0x100u)
#define G (PT_CODE_AT + 0x200u)
#define H (PT_CODE_AT + 0x300u)
#define LOOP (PT_CODE_AT + 0x400u)
#define LEAF (PT_CODE_AT + 0x500u)
#define OUTER (PT_CODE_AT + 0x600u)
#define HANDLER (PT_CODE_AT + 0x700u)
#define RESTORER (PT_CODE_AT + 0x780u)
#define COLD (PT_CODE_AT + 0x800u)
#define STUB (PT_CODE_AT + 0x900u)

/*
 * main:  call f; call *rax; jmp outer ...     f: call g; ret
 * g:     ret                                  h: jz h_out; call h; h_out: ret
 */
struct places {
	uint64_t after_f, after_rax, main_end; /* in main */
	uint64_t after_g;                      /* in f */
	uint64_t h_call, after_h;              /* in h */
	uint64_t after_leaf;                   /* in loop */
};
static struct places at;

static int open_made(void **state)
{
	static struct pt_made made;
	pt_made_open(&made, 1 << 21);
	const struct {
		const char *name;
		uint64_t start;
	} functions[] = {{"main", MAIN}, {"f", F},       {"g", G},         {"h", H},
			 {"loop", LOOP}, {"leaf", LEAF}, {"outer", OUTER}, {"handler", HANDLER}};
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		pt_function(&made, functions[i].name, functions[i].start, 0x80);
	at.after_f = pt_branch(&made, MAIN, "e8", F);
	at.after_rax = pt_code(&made, at.after_f, "ffd0");
	at.main_end = pt_code(&made, at.after_rax, "c3");
	at.after_g = pt_branch(&made, F, "e8", G);
	pt_code(&made, at.after_g, "c3");
	pt_code(&made, G, "c3");
	at.h_call = pt_branch(&made, H, "0f84", H + 0x40);
	at.after_h = pt_branch(&made, at.h_call, "e8", H);
	pt_code(&made, at.after_h, "c3");
	pt_code(&made, H + 0x40, "c3");
	/* loop: call leaf; dec ecx; jnz loop; ret */
	at.after_leaf = pt_branch(&made, LOOP, "e8", LEAF);
	pt_code(&made, pt_branch(&made, pt_code(&made, at.after_leaf, "ffc9"), "0f85", LOOP), "c3");
	/* leaf: eight instructions and a return */
	pt_code(&made, LEAF, "9090909090909090c3");
	*state = &made;
	return 0;
}

static int close_made(void **state)
{
	pt_made_close(*state);
	return 0;
}

static void expect(struct pt_made *made, const char *text)
{
	assert_string_equal(pt_decode_text(made), text);
}

/* ---- calls and returns ---- */

static void direct_and_indirect_calls_nest(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tip(made, at.after_g); /* returns that are not compressed */
	pt_tip(made, at.after_f);
	pt_tip(made, H); /* call *rax */
	pt_tnt(made, "t");
	pt_tip(made, at.after_rax);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } } h{ } [syscall]{ } }");
	assert_int_equal(made->facts.errors, 0);
}

static void compressed_returns_nest_as_others(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tnt(made, "tt");
	pt_tip(made, G);
	pt_tnt(made, "t");
	pt_fup(made, at.after_rax);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } } g{ } [interrupt]{ } }");
}

static void recursion_opens_a_span_for_each_call(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, at.after_f);
	pt_tip(made, H);
	/* Three times deeper, then out of it, all compressed. */
	pt_tnt(made, "nnnttttt");
	pt_fup(made, at.after_rax);
	pt_pgd(made, 0);
	expect(made, "~main{ h{ h{ h{ h{ } } } } [interrupt]{ } }");
}

static void a_loop_of_more_than_a_million_instructions_is_exact(void **state)
{
	struct pt_made *made = *state;
	const uint32_t times = 110000;
	pt_psb(made, 0, 1000);
	pt_pge(made, LOOP);
	/* Each turn: the return of leaf, and the branch back. */
	for (uint32_t i = 0; i + 10 <= times; i += 10)
		pt_tnt(made, i + 10 < times ? "tttttttttttttttttttt" : "tttttttttttttttttttn");
	pt_tip(made, at.after_f);
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	made->silent = true;
	pt_decode_text(made);
	assert_int_equal(made->facts.errors, 0);
	/* loop, its leaves, and main, which it returned to. */
	assert_int_equal(made->begins, times + 2);
	assert_int_equal(made->facts.instructions, 12u * times + 1);
}

static void a_stretch_that_becomes_long_is_cut_without_losing_a_call(void **state)
{
	struct pt_made *made = *state;
	const uint32_t times = 1100000;
	pt_psb(made, 0, 1000);
	pt_pge(made, LOOP);
	for (uint32_t i = 0; i < times; i += 20)
		pt_tnt(made, "tttttttttttttttttttttttttttttttttttttttt");
	pt_fup(made, LOOP);
	pt_pgd(made, 0);
	made->silent = true;
	pt_decode_text(made);
	assert_int_equal(made->facts.errors, 0);
	/* loop goes on behind the cut: it begins twice. */
	assert_true(2 * times > KY_PT_MARKS_MAX);
	assert_int_equal(made->begins, times + 2);
}

static void calls_that_are_too_deep_are_said(void **state)
{
	struct pt_made *made = *state;
	const uint32_t deep = KY_PT_FRAMES_MAX + 20;
	pt_psb(made, 0, 1000);
	pt_pge(made, H);
	for (uint32_t i = 0; i < deep; i += 20)
		pt_tnt(made, "nnnnnnnnnnnnnnnnnnnn");
	pt_fup(made, H);
	pt_pgd(made, 0);
	made->silent = true;
	assert_string_equal(pt_decode_text(made), "[calls are too deep]");
	assert_int_equal(made->facts.errors, 0);
	assert_true(made->begins > deep);
}

static void a_tail_call_ends_its_caller(void **state)
{
	struct pt_made *made = *state;
	pt_branch(made, G, "e9", LEAF); /* g: jmp leaf */
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tnt(made, "tt");
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } leaf{ } } [interrupt]{ } }");
}

static void a_part_that_lies_elsewhere_is_no_call(void **state)
{
	struct pt_made *made = *state;
	pt_function(made, "g.cold", COLD, 0x40);
	made->functions[made->functions_count - 1].of = G;
	/* g: jmp g.cold; and back into g: ret */
	pt_branch(made, G, "e9", COLD);
	pt_branch(made, COLD, "e9", G + 0x20);
	pt_code(made, G + 0x20, "c3");
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tnt(made, "tt");
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } } [interrupt]{ } }");
}

static void a_stub_is_passed_through_silently(void **state)
{
	struct pt_made *made = *state;
	pt_function(made, "leaf@plt", STUB, 0x10);
	made->functions[made->functions_count - 1].hidden = true;
	pt_code(made, STUB, "ffe0"); /* jmp *rax */
	pt_branch(made, F, "e8", STUB);
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tip(made, LEAF);
	pt_tnt(made, "tt");
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ leaf{ } } [interrupt]{ } }");
}

static void a_call_that_reads_the_instruction_pointer_is_none(void **state)
{
	struct pt_made *made = *state;
	/* g: call next; next: pop rax; ret */
	pt_code(made, pt_branch(made, G, "e8", G + 5), "58c3");
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tnt(made, "tt");
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } } [interrupt]{ } }");
}

static void a_return_used_as_a_jump_is_a_tail_call(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tip(made, LEAF); /* the return of g leads to leaf */
	pt_tip(made, at.after_g);
	pt_tip(made, at.after_f);
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } leaf{ } } [interrupt]{ } }");
}

/* ---- ways out ---- */

static void longjmp_ends_all_that_it_leaves(void **state)
{
	struct pt_made *made = *state;
	pt_code(made, G, "ffe0"); /* g: jmp *rax */
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tip(made, at.after_f); /* into the middle of main */
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } } [interrupt]{ } }");
}

static void an_exception_ends_all_frames_inside_its_handler(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tip(made, MAIN + 0x40); /* the unwinder returns to a landing pad */
	pt_fup(made, MAIN + 0x40);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ } } [interrupt]{ } }");
}

static void functions_that_ran_before_the_trace_are_around_all_of_it(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, G);
	pt_tip(made, at.after_g);
	pt_tip(made, at.after_f);
	pt_tip(made, LEAF);
	pt_tnt(made, "t");
	pt_tip(made, OUTER + 0x10);
	pt_fup(made, OUTER + 0x10);
	pt_pgd(made, 0);
	expect(made, "~outer{ ~main{ ~f{ ~g{ } } leaf{ } } [interrupt]{ } }");
}

/* ---- the kernel ---- */

static void a_system_call_is_a_span_inside(void **state)
{
	struct pt_made *made = *state;
	pt_code(made, G, "0f05c3"); /* g: syscall; ret */
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_pgd(made, 0);
	pt_tsc(made, 5000);
	pt_pge(made, G + 2);
	pt_tnt(made, "tt");
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	made->times = true;
	expect(made, "1000 ~main{ 1000 f{ 1000 g{ 1000 [syscall]{ 5000 } 5000 } 5000 } 5000 "
		     "[interrupt]{ 5000 } 5000 }");
}

static void a_signal_handler_is_a_call_where_it_came(void **state)
{
	struct pt_made *made = *state;
	pt_code(made, HANDLER, "c3");
	pt_code(made, RESTORER, "0f05"); /* no symbol of its own */
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_fup(made, G);
	pt_pgd(made, 0);
	pt_tsc(made, 2000);
	pt_pge(made, HANDLER);
	pt_tip(made, RESTORER);
	pt_pgd(made, 0);
	pt_tsc(made, 3000);
	pt_pge(made, G);
	pt_tip(made, at.after_g);
	pt_tip(made, at.after_f);
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	expect(made, "~main{ f{ g{ [interrupt]{ } handler{ } 0x401780{ [syscall]{ } } } } "
		     "[interrupt]{ } }");
}

/* ---- time ---- */

static void calls_between_two_times_are_spread(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tnt(made, "tt");
	pt_tsc(made, 2000);
	pt_tip(made, LEAF);
	pt_tnt(made, "t");
	pt_fup(made, at.after_rax);
	pt_pgd(made, 0);
	made->times = true;
	expect(made, "1000 ~main{ 1000 f{ 1250 g{ 1500 } 1750 } 2000 leaf{ 2000 } 2000 "
		     "[interrupt]{ 2000 } 2000 }");
}

static void small_clocks_count_between_the_big_ones(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_cbr(made, 10);
	pt_tma(made, 0);
	pt_pge(made, MAIN);
	pt_tnt(made, "tt");
	pt_mtc(made, 1); /* of eight crystal ticks, each two of the counter's */
	pt_tip(made, LEAF);
	pt_tnt(made, "t");
	pt_mtc(made, 2);
	pt_fup(made, at.after_rax);
	pt_pgd(made, 0);
	made->times = true;
	expect(made, "1000 ~main{ 1000 f{ 1004 g{ 1008 } 1012 } 1016 leaf{ 1032 } 1032 "
		     "[interrupt]{ 1032 } 1032 }");
}

static void ticks_become_nanoseconds_as_the_kernel_says(void **state)
{
	(void)state;
	const struct ky_pt_time as_it_is = {0};
	/* 2.5 GHz: 0.4 ns a tick. */
	const struct ky_pt_time time = {
		.zero = 100, .mult = 429496730, .shift = 30, .offset_ns = -50};
	assert_int_equal(ky_pt_time_ns(&as_it_is, 12345), 12345);
	assert_int_equal(ky_pt_time_ns(&time, 0), 50);
	assert_int_equal(ky_pt_time_ns(&time, 2500), 1050);
	/* Years of it do not overflow. */
	assert_true(ky_pt_time_ns(&time, UINT64_C(2500000000) * 86400 * 3650) / 1000000000 ==
		    86400u * 3650u);
}

static void later_packets_do_not_tell_again(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tnt(made, "tt");
	pt_tsc(made, 2000);
	pt_tip(made, H);
	pt_tsc(made, 3000);
	pt_tnt(made, "tt");
	pt_fup(made, at.after_rax);
	pt_pgd(made, 0);
	made->times = true;
	pt_decode_part(made, 0, made->aux_bytes, 2400);
	assert_string_equal(made->text,
			    "2400 ~main{ 2400 ~h{ 3000 } 3000 [interrupt]{ 3000 } 3000 }");
	pt_decode_part(made, 0, made->aux_bytes, 4000);
	assert_null(made->text);
}

/* ---- errors ---- */

static void an_overflow_ends_everything_and_is_shown(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tsc(made, 1500);
	pt_ovf(made);
	pt_fup(made, LEAF + 4);
	pt_tip(made, at.after_f);
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	const char *text = pt_decode_text(made);
	assert_non_null(strstr(text, "[overflow: the CPU lost packets] ~main{ ~leaf{ } "
				     "[interrupt]{ } }"));
	assert_int_equal(made->facts.overflows, 1);
	assert_int_equal(made->facts.errors, 0);
}

static void an_overflow_while_tracing_is_off_is_a_gap(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, LEAF);
	pt_ovf(made);
	pt_tsc(made, 2000);
	pt_pge(made, LEAF);
	pt_fup(made, LEAF + 1);
	pt_pgd(made, 0);
	const char *text = pt_decode_text(made);
	assert_non_null(strstr(text, "[overflow: the CPU lost packets] [untraced]{ } ~leaf{ "
				     "[interrupt]{ } }"));
}

static void packets_that_do_not_fit_the_code_are_said_until_the_next_psb(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tip(made, 0x900000); /* the return of g, to an address without code */
	pt_tnt(made, "tttttt");
	pt_psb(made, LEAF, 3000);
	pt_tip(made, at.after_f);
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	const char *text = pt_decode_text(made);
	assert_non_null(strstr(text, "[decode error: "));
	assert_non_null(strstr(text, " [untraced]{ } ~main{ ~leaf{ } [interrupt]{ } }"));
	assert_int_equal(made->facts.errors, 1);
	assert_int_equal(made->facts.synced, 2);
}

static void code_that_needs_no_packet_does_not_hang(void **state)
{
	struct pt_made *made = *state;
	pt_code(made, LEAF, "ebfe"); /* jmp to itself */
	pt_psb(made, 0, 1000);
	pt_pge(made, LEAF);
	pt_tnt(made, "t");
	pt_psb(made, MAIN, 2000);
	pt_fup(made, MAIN);
	pt_pgd(made, 0);
	const char *text = pt_decode_text(made);
	assert_non_null(strstr(text, "[decode error: "));
	assert_non_null(strstr(text, "~main{ [interrupt]{ } }"));
}

static void a_ring_that_begins_in_the_middle_is_read_from_its_first_psb(void **state)
{
	struct pt_made *made = *state;
	pt_tnt(made, "tntntn");
	pt_tip(made, G);
	pt_tnt(made, "tn");
	pt_psb(made, F, 1000);
	pt_tip(made, at.after_g);
	pt_tip(made, at.after_f);
	pt_fup(made, at.after_f);
	pt_pgd(made, 0);
	pt_decode_part(made, 1, made->aux_bytes - 1, 0); /* in the middle of a packet, too */
	assert_string_equal(made->text, "~main{ ~f{ g{ } } [interrupt]{ } }");
	assert_int_equal(made->facts.errors, 0);
}

static void a_truncated_buffer_gives_what_it_has(void **state)
{
	struct pt_made *made = *state;
	pt_psb(made, 0, 1000);
	pt_pge(made, MAIN);
	pt_tip(made, at.after_g);
	pt_tip(made, at.after_f);
	pt_tip(made, H);
	for (size_t bytes = 0; bytes <= made->aux_bytes; bytes++)
		pt_decode_part(made, 0, bytes, 0);
	/* The last branch is known, but not that any instruction after it was executed. */
	assert_string_equal(made->text, "~main{ f{ g{ } } }");
}

static void bytes_without_any_psb_give_nothing(void **state)
{
	struct pt_made *made = *state;
	pt_tnt(made, "ttt");
	made->aux_bytes = 4096;
	assert_string_equal(pt_decode_text(made), "");
	assert_int_equal(made->facts.synced, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_made, close_made)
	const struct CMUnitTest tests[] = {
		TEST(direct_and_indirect_calls_nest),
		TEST(compressed_returns_nest_as_others),
		TEST(recursion_opens_a_span_for_each_call),
		TEST(a_loop_of_more_than_a_million_instructions_is_exact),
		TEST(a_stretch_that_becomes_long_is_cut_without_losing_a_call),
		TEST(calls_that_are_too_deep_are_said),
		TEST(a_tail_call_ends_its_caller),
		TEST(a_part_that_lies_elsewhere_is_no_call),
		TEST(a_stub_is_passed_through_silently),
		TEST(a_call_that_reads_the_instruction_pointer_is_none),
		TEST(a_return_used_as_a_jump_is_a_tail_call),
		TEST(longjmp_ends_all_that_it_leaves),
		TEST(an_exception_ends_all_frames_inside_its_handler),
		TEST(functions_that_ran_before_the_trace_are_around_all_of_it),
		TEST(a_system_call_is_a_span_inside),
		TEST(a_signal_handler_is_a_call_where_it_came),
		TEST(calls_between_two_times_are_spread),
		TEST(small_clocks_count_between_the_big_ones),
		TEST(ticks_become_nanoseconds_as_the_kernel_says),
		TEST(later_packets_do_not_tell_again),
		TEST(an_overflow_ends_everything_and_is_shown),
		TEST(an_overflow_while_tracing_is_off_is_a_gap),
		TEST(packets_that_do_not_fit_the_code_are_said_until_the_next_psb),
		TEST(code_that_needs_no_packet_does_not_hang),
		TEST(a_ring_that_begins_in_the_middle_is_read_from_its_first_psb),
		TEST(a_truncated_buffer_gives_what_it_has),
		TEST(bytes_without_any_psb_give_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
