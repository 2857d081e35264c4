/* SPDX-License-Identifier: MIT */
/*
 * Calls through stubs and agent in this very process: they work as before, and the drum has all of them. Each test has
 * a process of its own.
 */
#include "../core/readback.h"
#include "core/ring.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

static struct harness harness;

/* ---- plain calls ---- */

static HOOKABLE int add_twice(int a, int b)
{
	return add(a, b) + add(b, a);
}

static HOOKABLE int64_t sum_of_many(int a, int b, int c, int d, int e, int f, int g, int h, int i,
				    int64_t j)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

static HOOKABLE double sum_of_doubles(int count, ...)
{
	va_list list;
	va_start(list, count);
	double sum = 0;
	for (int i = 0; i < count; i++)
		sum += va_arg(list, double);
	va_end(list);
	return sum;
}

struct large {
	int64_t words[9];
};
struct pair {
	int64_t a;
	double b;
};

static HOOKABLE struct large make_large(int64_t from)
{
	struct large large;
	for (int i = 0; i < 9; i++)
		large.words[i] = from + i;
	return large;
}

static HOOKABLE struct pair make_pair(int64_t a, double b)
{
	return (struct pair){a, b};
}

static void plain_calls_body(void)
{
	harness_open(&harness);
	const uint32_t number = HOOK(&harness, add);
	HOOK(&harness, add_twice);
	HOOK(&harness, factorial);
	HOOK(&harness, sum_of_many);
	HOOK(&harness, sum_of_doubles);
	HOOK(&harness, make_large);
	HOOK(&harness, make_pair);
	for (int i = 0; i < 1000; i++)
		CHECK(add_twice(i, 2) == 2 * i + 4);
	CHECK(factorial(20) == UINT64_C(2432902008176640000));
	CHECK(sum_of_many(1, 1, 1, 1, 1, 1, 1, 1, 1, 1) == 55);
	CHECK(sum_of_doubles(9, 1., 2., 3., 4., 5., 6., 7., 8., 9.) == 45.);
	CHECK(make_large(5).words[8] == 13);
	CHECK(make_pair(7, 2.5).a == 7 && make_pair(7, 2.5).b == 2.5);
	CHECK(harness_count(&harness, number) == 2000);
	CHECK(harness_lost(&harness) == 0);
	harness_check(&harness, 0);
	CHECK(harness_begun(&harness, "add") == 2000);
	CHECK(harness_begun(&harness, "add_twice") == 1000);
	CHECK(harness_begun(&harness, "factorial") == 20);
	harness_close(&harness);
	CHECK(add_twice(1, 2) == 6);
}

static void plain_calls(void **state)
{
	(void)state;
	assert_int_equal(in_child(plain_calls_body), 0);
}

/* ---- registers ---- */

/*
 * Calls `target` with patterns in all general registers and in ymm0..15 (as far as there are), and checks that the
 * call left them as they were, because the callee changes none.
 */
struct registers {
	uint64_t general[16];
	uint8_t vector[16][32];
};
extern void call_with_registers(function_fn *target, struct registers *before,
				struct registers *inside, struct registers *after, uint64_t avx);
extern void record_registers(void);
extern void record_registers_end(void);
struct registers *registers_inside;

__asm__(".text\n"
	".macro each_general op, at\n"
	"\\op 0, rax, \\at\n \\op 1, rbx, \\at\n \\op 2, rcx, \\at\n \\op 3, rdx, \\at\n"
	"\\op 4, rsi, \\at\n \\op 5, rdi, \\at\n \\op 6, rbp, \\at\n \\op 8, r8, \\at\n"
	"\\op 9, r9, \\at\n \\op 10, r10, \\at\n \\op 11, r11, \\at\n \\op 12, r12, \\at\n"
	"\\op 13, r13, \\at\n \\op 14, r14, \\at\n"
	".endm\n"
	".macro load_one n, r, at\n mov 8*\\n(%\\at), %\\r\n .endm\n"
	".macro store_one n, r, at\n mov %\\r, 8*\\n(%\\at)\n .endm\n"
	".macro vectors op, at, from\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	".ifc \\op, load\n movdqu 128+32*\\n(%\\at), %xmm\\n\n"
	".else\n movdqu %xmm\\n, 128+32*\\n(%\\at)\n .endif\n .endr\n"
	".endm\n"
	".macro wide op, at\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	".ifc \\op, load\n vmovdqu 128+32*\\n(%\\at), %ymm\\n\n"
	".else\n vmovdqu %ymm\\n, 128+32*\\n(%\\at)\n .endif\n .endr\n"
	".endm\n"
	".globl call_with_registers\n"
	"call_with_registers:\n"
	"push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"push %rcx\n push %r8\n push %rdi\n"
	"mov %rsi, %r15\n"
	"test %r8, %r8\n jz 1f\n wide load, r15\n jmp 2f\n 1: vectors load, r15, 0\n 2:\n"
	"each_general load_one, r15\n"
	"call *(%rsp)\n"
	"mov 16(%rsp), %r15\n"
	"each_general store_one, r15\n"
	"cmpq $0, 8(%rsp)\n je 3f\n wide store, r15\n vzeroupper\n jmp 4f\n 3: vectors store, r15, "
	"0\n 4:\n"
	"add $24, %rsp\n"
	"pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
	"ret\n"
	".balign 16\n"
	".globl record_registers\n"
	"record_registers:\n"
	".nops 5, 1\n"
	"push %r15\n"
	"mov registers_inside(%rip), %r15\n"
	"each_general store_one, r15\n"
	"pop %r15\n"
	"ret\n");

static void check_registers(enum ky_stub_kind kind)
{
	static struct registers before, inside, after;
	registers_inside = &inside;
	for (size_t i = 0; i < sizeof(before); i++)
		((uint8_t *)&before)[i] = (uint8_t)(i * 7 + 3);
	harness_open(&harness);
	harness_hook(&harness, record_registers, "record_registers", kind);
	__builtin_cpu_init();
	const uint64_t avx = __builtin_cpu_supports("avx") ? 1 : 0;
	/* The first is slow, the others fast; some of these begin blocks. */
	for (int i = 0; i < 2000; i++) {
		memset(&inside, 0, sizeof(inside));
		memset(&after, 0, sizeof(after));
		call_with_registers(record_registers, &before, &inside, &after, avx);
		for (int r = 0; r < 15; r++) {
			if (r == 7)
				continue;
			CHECK(inside.general[r] == before.general[r]);
			CHECK(after.general[r] == before.general[r]);
		}
		for (int v = 0; v < 16; v++)
			CHECK(memcmp(after.vector[v], before.vector[v], avx ? 32 : 16) == 0);
	}
	CHECK(harness_count(&harness, 0) == 2000);
	harness_check(&harness, 0);
}

static void registers_of_calls_body(void)
{
	check_registers(KY_STUB_CALL);
}

static void registers_of_entries_body(void)
{
	check_registers(KY_STUB_ENTRY);
}

static void all_registers_are_kept(void **state)
{
	(void)state;
	assert_int_equal(in_child(registers_of_calls_body), 0);
	assert_int_equal(in_child(registers_of_entries_body), 0);
}

/* ---- entries alone ---- */

static void entries_body(void)
{
	harness_open(&harness);
	harness_hook(&harness, (function_fn *)add, "add", KY_STUB_ENTRY);
	for (int i = 0; i < 5000; i++)
		CHECK(add(i, 1) == i + 1);
	struct harness_events all = harness_read(&harness);
	CHECK(all.count == 5000);
	for (uint64_t i = 0; i < all.count; i++)
		CHECK(all.events[i].kind == KYMO_KIND_INSTANT);
	harness_free(&all);
}

static void entries_alone_are_instants(void **state)
{
	(void)state;
	assert_int_equal(in_child(entries_body), 0);
}

/* ---- tail calls ---- */

extern int tail_first(int n);
extern int tail_second(int n);
__asm__(".text\n"
	".balign 16\n"
	".globl tail_first\n"
	"tail_first:\n .nops 5, 1\n add $1, %edi\n jmp tail_second\n"
	".balign 16\n"
	".globl tail_second\n"
	"tail_second:\n .nops 5, 1\n test $7, %edi\n jz 1f\n jmp tail_first\n 1: mov %edi, %eax\n "
	"ret\n");

static void tail_calls_body(void)
{
	harness_open(&harness);
	HOOK(&harness, tail_first);
	HOOK(&harness, tail_second);
	for (int i = 0; i < 1000; i++)
		CHECK(tail_first(0) == 8);
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	CHECK(harness_begins(&all, "tail_first") == 8000);
	CHECK(harness_begins(&all, "tail_second") == 8000);
	for (uint64_t i = 0; i + 1 < all.count; i += 2) { /* none inside another */
		CHECK(all.events[i].kind == KYMO_KIND_BEGIN);
		CHECK(all.events[i + 1].kind == KYMO_KIND_END);
	}
	harness_free(&all);
}

static void tail_calls_end_their_callers(void **state)
{
	(void)state;
	assert_int_equal(in_child(tail_calls_body), 0);
}

/* ---- longjmp ---- */

static jmp_buf back;
static volatile bool jump = true;

static HOOKABLE int dive(int n)
{
	if (n == 0 && jump)
		longjmp(back, 1);
	if (n == 0)
		return 0;
	int deeper = dive(n - 1);
	KEEP_CALL(deeper);
	return deeper + 1;
}

static void longjmp_body(void)
{
	harness_open(&harness);
	HOOK(&harness, dive);
	HOOK(&harness, add);
	for (volatile int i = 0; i < 1000; i++) {
		if (setjmp(back) == 0)
			dive(100);
		CHECK(add(i, 1) == i + 1);
	}
	harness_check(&harness, 0);
	CHECK(harness_begun(&harness, "dive") == 101000);
}

static void longjmp_over_frames_ends_them(void **state)
{
	(void)state;
	assert_int_equal(in_child(longjmp_body), 0);
}

/* ---- other stacks ---- */

static ucontext_t here, there;

static HOOKABLE void turn(void)
{
	swapcontext(&there, &here);
}

static void coroutine(void)
{
	for (;;) {
		CHECK(work(3) == 6);
		turn();
	}
}

static void coroutines_body(void)
{
	static uint8_t stack[1 << 16];
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	HOOK(&harness, turn);
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, coroutine, 0);
	for (int i = 0; i < 1000; i++) {
		swapcontext(&here, &there);
		CHECK(work(2) == 2);
	}
	struct harness_events all = harness_read(&harness);
	CHECK(harness_begins(&all, "work") == 2000);
	CHECK(harness_begins(&all, "turn") == 1000);
	CHECK(all.damaged == 0);
	harness_free(&all);
}

static void coroutines_return_to_their_callers(void **state)
{
	(void)state;
	assert_int_equal(in_child(coroutines_body), 0);
}

/* ---- callers that are not hooked ---- */

static void callers_body(void)
{
	harness_open(&harness);
	harness.check_callers = true;
	harness.home->check_callers = 1;
	harness.home->ranges_count = 1;
	harness.home->ranges[0] = (struct ky_agent_range){4096, 4096};
	HOOK(&harness, add);
	for (int i = 0; i < 100; i++)
		CHECK(add(i, 1) == i + 1);
	CHECK(harness_begun(&harness, "add") == 0);
	harness.home->ranges[0] = (struct ky_agent_range){(uintptr_t)callers_body, 4096};
	HOOK(&harness, work);
	CHECK(work(1) == 0);
	CHECK(harness_begun(&harness, "work") == 1);
	struct harness_events all = harness_read(&harness);
	CHECK(all.count == 100 + 2 + 1 || all.count == 100 + 2 + 2);
	harness_free(&all);
}

static void callers_outside_are_left_alone(void **state)
{
	(void)state;
	assert_int_equal(in_child(callers_body), 0);
}

/* ---- off ---- */

static HOOKABLE int switch_off(void)
{
	harness_off(&harness);
	return 5;
}

static void off_body(void)
{
	harness_open(&harness);
	HOOK(&harness, switch_off);
	HOOK(&harness, add);
	CHECK(add(1, 2) == 3);
	CHECK(switch_off() == 5); /* returns by its hook all the same */
	CHECK(add(1, 2) == 3);
	CHECK(harness_begun(&harness, "add") == 1);
	harness_check(&harness, 1);
}

static void off_only_returns(void **state)
{
	(void)state;
	assert_int_equal(in_child(off_body), 0);
}

/* ---- rings ---- */

static void wrap_body(void)
{
	harness.ring_bytes = 64 << 10;
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	const uint64_t calls = 100000;
	CHECK(work((int)calls) != 0);
	struct harness_events all = harness_read(&harness);
	CHECK(all.damaged == 0);
	CHECK(all.count > 5000 && all.count + all.overwritten == 2 * calls + 2);
	harness_free(&all);
}

static void rings_wrap_and_count(void **state)
{
	(void)state;
	assert_int_equal(in_child(wrap_body), 0);
}

static void high_half_body(void)
{
	harness_open(&harness);
	HOOK(&harness, add);
	CHECK(add(1, 2) == 3);
	struct ky_agent_state *mine = harness_state(&harness);
	struct ky_ring_writer *writer = (struct ky_ring_writer *)(void *)mine->ring;
	for (int i = 0; i < 100; i++) { /* as if the counter had moved in between */
		mine->high ^= 5;
		writer->high ^= 5;
		CHECK(add(1, 2) == 3);
	}
	harness_check(&harness, 0);
	CHECK(harness_begun(&harness, "add") == 101);
	CHECK(harness_lost(&harness) == 0);
	const uint64_t calls = 2000; /* events are counted without the control words */
	for (uint64_t i = 0; i < calls; i++)
		CHECK(add(1, 2) == 3);
	harness_check(&harness, 0);
	struct harness_events all = harness_read(&harness);
	CHECK(all.overwritten == 0 && all.count == 2 * (101 + calls));
	harness_free(&all);
}

static void the_counters_high_half_changes(void **state)
{
	(void)state;
	assert_int_equal(in_child(high_half_body), 0);
}

/* ---- no room for rings ---- */

static void no_ring_body(void)
{
	harness_open(&harness);
	HOOK(&harness, add);
	harness.drum.drum.header->budget_bytes = 0;
	for (int i = 0; i < 1000; i++)
		CHECK(add(i, 2) == i + 2);
	CHECK(harness_lost(&harness) == 2000);
	CHECK(harness_count(&harness, 0) == 1000);
	CHECK(harness_begun(&harness, "add") == 0);
}

static void calls_without_a_ring_are_counted(void **state)
{
	(void)state;
	assert_int_equal(in_child(no_ring_body), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_calls),
		cmocka_unit_test(all_registers_are_kept),
		cmocka_unit_test(entries_alone_are_instants),
		cmocka_unit_test(tail_calls_end_their_callers),
		cmocka_unit_test(longjmp_over_frames_ends_them),
		cmocka_unit_test(rings_wrap_and_count),
		cmocka_unit_test(the_counters_high_half_changes),
		cmocka_unit_test(coroutines_return_to_their_callers),
		cmocka_unit_test(callers_outside_are_left_alone),
		cmocka_unit_test(off_only_returns),
		cmocka_unit_test(calls_without_a_ring_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
