/* SPDX-License-Identifier: MIT */
/*
 * Stubs and agent in this very process: calls work as before, and the drum has all of them. Each test has a process
 * of its own.
 */
#include "../core/readback.h"
#include "core/ring.h"
#include "functrace/agent_abi.h"
#include "harness.h"

#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

typedef void function_fn(void);
#define HOOK(h, function) harness_hook(h, (function_fn *)(function), #function, KY_STUB_CALL)

/* Keeps the compiler from making a loop of a recursion. */
#define KEEP_CALL(result) __asm__ volatile("" : "+r"(result))

static struct harness harness;

static void check_all(uint64_t open)
{
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, open);
	harness_free(&all);
}

static uint64_t begins(const char *name)
{
	struct harness_events all = harness_read(&harness);
	const uint64_t count = harness_begins(&all, name);
	harness_free(&all);
	return count;
}

/* Return the first thread's state. */
static struct ky_agent_state *my_state(void)
{
	return (struct ky_agent_state *)(uintptr_t)(harness.home->states +
						    harness.home->state_bytes);
}

/* ---- plain calls ---- */

static HOOKABLE int add(int a, int b)
{
	return a + b;
}

static HOOKABLE int add_twice(int a, int b)
{
	return add(a, b) + add(b, a);
}

static HOOKABLE uint64_t factorial(uint64_t n)
{
	if (n < 2)
		return 1;
	uint64_t smaller = factorial(n - 1);
	KEEP_CALL(smaller);
	return n * smaller;
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
	check_all(0);
	CHECK(begins("add") == 2000);
	CHECK(begins("add_twice") == 1000);
	CHECK(begins("factorial") == 20);
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
	check_all(0);
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
	check_all(0);
	CHECK(begins("dive") == 101000);
}

static void longjmp_over_frames_ends_them(void **state)
{
	(void)state;
	assert_int_equal(in_child(longjmp_body), 0);
}

/* ---- threads ---- */

static HOOKABLE int work(int n)
{
	unsigned sum = 0;
	for (int i = 0; i < n; i++)
		sum += (unsigned)add(i, i);
	return (int)sum;
}

static void *thread_body(void *argument)
{
	(void)argument;
	CHECK(work(100) == 9900);
	return NULL;
}

static void short_threads_body(void)
{
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	pthread_t threads[4];
	for (int round = 0; round < 250; round++) {
		for (int i = 0; i < 4; i++)
			CHECK(pthread_create(&threads[i], NULL, thread_body, NULL) == 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	check_all(0);
	CHECK(begins("work") == 1000);
	CHECK(begins("add") == 100000);
	CHECK(harness_lost(&harness) == 0);
	CHECK(harness.home->states_used < 64); /* those of dead threads are taken again */
}

static void a_thousand_short_threads(void **state)
{
	(void)state;
	assert_int_equal(in_child(short_threads_body), 0);
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static HOOKABLE void on_signal(int number)
{
	(void)number;
	handled += add(1, 0);
}

static void signals_body(int flags)
{
	static uint8_t other[1 << 16];
	const stack_t stack = {.ss_sp = other, .ss_size = sizeof(other)};
	CHECK(sigaltstack(&stack, NULL) == 0);
	harness_open(&harness);
	HOOK(&harness, on_signal);
	HOOK(&harness, add);
	HOOK(&harness, work);
	HOOK(&harness, factorial);
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags | SA_RESTART};
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	const struct itimerval often = {{0, 50}, {0, 50}};
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (int i = 0; handled < 2000; i++) {
		CHECK(work(20) == 380);
		CHECK(factorial(10) == 3628800);
	}
	const struct itimerval never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &never, NULL);
	struct harness_events all = harness_read(&harness);
	CHECK(all.damaged == 0);
	CHECK(harness_begins(&all, "on_signal") > 0);
	harness_free(&all);
}

static void signals_here_body(void)
{
	signals_body(0);
}

static void signals_elsewhere_body(void)
{
	signals_body(SA_ONSTACK);
}

static void handlers_interrupt_anywhere(void **state)
{
	(void)state;
	assert_int_equal(in_child(signals_here_body), 0);
	assert_int_equal(in_child(signals_elsewhere_body), 0);
}

/* ---- fork ---- */

#define CHILDREN 1500u

static HOOKABLE int split(void)
{
	const pid_t pid = fork();
	if (pid == 0)
		CHECK(work(50) == 2450);
	return pid;
}

static uint64_t begins_of(const struct harness_events *all, int pid, const char *name)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < all->count; i++)
		count += all->events[i].kind == KYMO_KIND_BEGIN && all->events[i].pid == pid &&
			 all->events[i].tid == pid && strcmp(all->events[i].name, name) == 0;
	return count;
}

static void fork_body(void)
{
	int status = 0;
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	HOOK(&harness, split);
	CHECK(work(10) == 90);
	const int pid = split();
	if (pid == 0) /* it has returned through its parent's hook */
		_exit(work(2) == 2 ? 7 : 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(work(10) == 90);
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	CHECK(begins_of(&all, pid, "add") == 52);
	CHECK(begins_of(&all, pid, "split") == 0);
	CHECK(begins_of(&all, getpid(), "add") == 20);
	CHECK(begins_of(&all, getpid(), "split") == 1);
	harness_free(&all);
}

static void a_forked_child_writes_into_its_parents_drum(void **state)
{
	(void)state;
	assert_int_equal(in_child(fork_body), 0);
}

/* However soon they end, all their events are there; and the rings of those that ended are used again. */
static void forks_body(void)
{
	int pids[CHILDREN], status = 0;
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	for (uint32_t i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(work(3) == 6 ? 0 : 1);
		CHECK(pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	}
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	for (uint32_t i = 0; i < CHILDREN; i++)
		CHECK(begins_of(&all, pids[i], "add") == 3);
	harness_free(&all);
	CHECK(harness.drum.drum.header->rings_used < 600);
}

static void many_children_share_rings(void **state)
{
	(void)state;
	assert_int_equal(in_child(forks_body), 0);
}

/* A living one keeps its ring. */
static void siblings_body(void)
{
	int pids[8], status = 0, go[2];
	char byte = 0;
	CHECK(pipe(go) == 0);
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			const bool good =
				work(3) == 6 && close(go[1]) == 0 && read(go[0], &byte, 1) == 0;
			_exit(good && work(4) == 12 ? 0 : 1);
		}
	}
	close(go[1]);
	for (int i = 0; i < 8; i++)
		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	for (int i = 0; i < 8; i++)
		CHECK(begins_of(&all, pids[i], "add") == 7);
	harness_free(&all);
}

static void children_that_live_have_rings_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(in_child(siblings_body), 0);
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
	struct ky_agent_state *mine = my_state();
	struct ky_ring_writer *writer = (struct ky_ring_writer *)(void *)mine->ring;
	for (int i = 0; i < 100; i++) { /* as if the counter had moved in between */
		mine->high ^= 5;
		writer->high ^= 5;
		CHECK(add(1, 2) == 3);
	}
	check_all(0);
	CHECK(begins("add") == 101);
	CHECK(harness_lost(&harness) == 0);
	const uint64_t calls = 2000; /* events are counted without the control words */
	for (uint64_t i = 0; i < calls; i++)
		CHECK(add(1, 2) == 3);
	check_all(0);
	struct harness_events all = harness_read(&harness);
	CHECK(all.overwritten == 0 && all.count == 2 * (101 + calls));
	harness_free(&all);
}

static void the_counters_high_half_changes(void **state)
{
	(void)state;
	assert_int_equal(in_child(high_half_body), 0);
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
	CHECK(begins("add") == 0);
	harness.home->ranges[0] = (struct ky_agent_range){(uintptr_t)callers_body, 4096};
	HOOK(&harness, work);
	CHECK(work(1) == 0);
	CHECK(begins("work") == 1);
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
	CHECK(begins("add") == 1);
	check_all(1);
}

static void off_only_returns(void **state)
{
	(void)state;
	assert_int_equal(in_child(off_body), 0);
}

/* ---- programs that turn the counter off ---- */

typedef void sandbox_fn(uint64_t first, uint64_t second, uint64_t third);

static void tell_sandbox(uint64_t first, uint64_t second, uint64_t third)
{
	sandbox_fn *sandbox =
		(sandbox_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, sandbox));
	sandbox(first, second, third);
}

static int refuse_counter(uint64_t first, uint64_t second, uint64_t third)
{
	tell_sandbox(first, second, third);
	return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
}

static HOOKABLE int leave_counter(int depth)
{
	int result =
		depth ? leave_counter(depth - 1) : refuse_counter(PR_SET_TSC, PR_TSC_SIGSEGV, 0);
	KEEP_CALL(result);
	return result + add(0, 1);
}

static HOOKABLE int leave_counter_of_parent(void)
{
	const pid_t pid = fork();
	if (pid == 0)
		return refuse_counter(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	return pid;
}

static HOOKABLE int waits_for_it(void)
{
	while (__atomic_load_n(&harness.home->counter, __ATOMIC_ACQUIRE) != KY_COUNTER_LEFT)
		sched_yield();
	return 6;
}

static void *returns_through_its_hook(void *argument)
{
	*(int *)argument = waits_for_it();
	return NULL;
}

static void counter_body(void)
{
	pthread_t thread;
	int result = 0, status = 0;
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	HOOK(&harness, leave_counter);
	HOOK(&harness, leave_counter_of_parent);
	HOOK(&harness, waits_for_it);
	const pid_t pid = leave_counter_of_parent();
	if (pid == 0)
		_exit(work(3) == 6 ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(pthread_create(&thread, NULL, returns_through_its_hook, &result) == 0);
	CHECK(work(10) == 90);
	tell_sandbox(PR_SET_TSC, PR_TSC_ENABLE, 0);
	CHECK(harness.home->on);
	CHECK(leave_counter(20) == 21);
	CHECK(work(10) == 90);
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && result == 6);
	CHECK(!harness.home->on && harness.home->counter == KY_COUNTER_LEFT);
	CHECK(begins("leave_counter") == 21);
	CHECK(begins("add") == 10);
}

/* Functions at all places of a line of the cache, one over two pages. */
#define PLACES 64u
#define PLACE(i) (places + (i) * (PLACES + 1))
static uint8_t places[2 * 4096] __attribute__((aligned(4096)));
static volatile bool enough;

static int call_place(uint32_t i)
{
	return ((int (*)(void))(uintptr_t)PLACE(i))();
}

static void *calls_places(void *argument)
{
	while (!enough)
		for (uint32_t i = 0; i < PLACES; i++)
			CHECK(call_place(i) == (int)i);
	return argument;
}

static void places_body(void)
{
	pthread_t thread;
	uint8_t before[sizeof(places)];
	for (uint32_t i = 0; i < PLACES; i++)
		memcpy(PLACE(i),
		       (const uint8_t[]){0x0f, 0x1f, 0x44, 0, 0, 0xb8, (uint8_t)i, 0, 0, 0, 0xc3},
		       11);
	memcpy(before, places, sizeof(before));
	CHECK(mprotect(places, sizeof(places), PROT_READ | PROT_EXEC) == 0);
	harness_open(&harness);
	for (uint32_t i = 0; i < PLACES; i++)
		harness_hook(&harness, (function_fn *)(uintptr_t)PLACE(i), "place",
			     i % 2 ? KY_STUB_CALL : KY_STUB_ENTRY);
	CHECK(memcmp(before, places, sizeof(before)) != 0);
	CHECK(pthread_create(&thread, NULL, calls_places, NULL) == 0);
	CHECK(refuse_counter(PR_SET_TSC, PR_TSC_SIGSEGV, 0) == 0);
	CHECK(memcmp(before, places, sizeof(before)) == 0);
	for (uint32_t i = 0; i < PLACES; i++)
		CHECK(call_place(i) == (int)i);
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0) == 0);
	enough = true;
	CHECK(pthread_join(thread, NULL) == 0);
}

static void a_program_may_turn_the_counter_off(void **state)
{
	(void)state;
	assert_int_equal(in_child(counter_body), 0);
	assert_int_equal(in_child(places_body), 0);
}

/* ---- programs that report their calls themselves ---- */

typedef void told_fn(void *function, void *caller);
static told_fn *told_enter, *told_exit;
static bool forgets; /* the exit, as clang does when an exception leaves a function */

static __attribute__((noinline)) int told_inner(int n)
{
	told_enter((void *)(uintptr_t)told_inner, NULL);
	__asm__ volatile("" : "+r"(n));
	if (!forgets)
		told_exit((void *)(uintptr_t)told_inner, NULL);
	return n + 1;
}

static __attribute__((noinline)) int told_outer(int n)
{
	told_enter((void *)(uintptr_t)told_outer, NULL);
	const int result = told_inner(n) + told_inner(n);
	told_exit((void *)(uintptr_t)told_outer, NULL);
	return result;
}

static void told_calls_body(void)
{
	static struct ky_agent_known known[4];
	harness_open(&harness);
	harness.home->known = (uintptr_t)known;
	harness.home->known_mask = 3;
	const struct {
		uintptr_t address;
		const char *name;
	} functions[] = {{(uintptr_t)told_outer, "told_outer"},
			 {(uintptr_t)told_inner, "told_inner"}};
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t at = ky_agent_known_at(functions[i].address, 3);
		while (known[at].address)
			at = (at + 1) & 3;
		known[at].address = functions[i].address;
		known[at].function = i;
		known[at].site = ky_made_drum_site(&harness.drum, KYMO_KIND_BEGIN, "test",
						   functions[i].name, functions[i].name, NULL, 0);
	}
	told_enter = (told_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, cyg_enter));
	told_exit = (told_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, cyg_exit));
	for (int i = 0; i < 1000; i++) {
		forgets = i % 2 == 1;
		CHECK(told_outer(i) == 2 * i + 2);
	}
	told_enter((void *)(uintptr_t)told_calls_body, NULL); /* is unknown */
	check_all(0);
	CHECK(begins("told_outer") == 1000);
	CHECK(begins("told_inner") == 2000);
	CHECK(harness_count(&harness, 1) == 2000);
}

static void calls_that_programs_tell(void **state)
{
	(void)state;
	assert_int_equal(in_child(told_calls_body), 0);
}

/* ---- the loader's pause ---- */

static void *answer_pause(void *argument)
{
	(void)argument;
	uint32_t *pause_at = &harness.home->pause;
	while (__atomic_load_n(pause_at, __ATOMIC_ACQUIRE) != 1)
		sched_yield();
	__atomic_store_n(pause_at, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, pause_at, FUTEX_WAKE, 1, NULL, NULL, 0);
	return NULL;
}

static void pause_body(void)
{
	struct r_debug debug = {.r_state = RT_CONSISTENT};
	harness_open(&harness);
	function_fn *loader =
		(function_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, loader));
	loader(); /* no kymo is attached */
	harness.home->owner_pid = (uint32_t)getpid();
	harness.home->r_debug = (uintptr_t)&debug;
	debug.r_state = RT_ADD;
	loader(); /* not yet */
	CHECK(harness.home->pause == 0);
	debug.r_state = RT_CONSISTENT;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, answer_pause, NULL) == 0);
	loader();
	CHECK(harness.home->pause == 0);
	pthread_join(thread, NULL);
	loader(); /* without an answer it gives up after a while, */
	CHECK(harness.home->pause == 2);
	loader(); /* and does not wait again */
	CHECK(harness.home->pause == 2);
}

static void the_loader_waits_for_an_answer(void **state)
{
	(void)state;
	assert_int_equal(in_child(pause_body), 0);
}

/* ---- attached once more ---- */

static void again_body(void)
{
	harness_open(&harness);
	HOOK(&harness, add);
	CHECK(add(1, 2) == 3);
	/* Another drum in the place of the first. */
	struct ky_made_drum second;
	const struct ky_made_drum_options options = {.pid = getpid(),
						     .fd = -1,
						     .ticks = true,
						     .functions = HARNESS_FUNCTIONS_MAX,
						     .ring_bytes = 4u << 20,
						     .total_bytes = 256u << 20};
	CHECK(ky_made_drum_open(&second, &options) == 0);
	harness.home->drum = (uintptr_t)second.drum.base;
	harness.home->generation++;
	my_state()->thread = 0;
	for (int i = 0; i < 10; i++)
		CHECK(add(1, 2) == 3);
	CHECK(begins("add") == 1);
	CHECK(second.drum.header->rings_used == 1);
	harness_off(&harness);
	ky_made_drum_close(&second);
}

static void a_new_drum_is_taken_up(void **state)
{
	(void)state;
	assert_int_equal(in_child(again_body), 0);
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
	CHECK(begins("add") == 0);
}

static void calls_without_a_ring_are_counted(void **state)
{
	(void)state;
	assert_int_equal(in_child(no_ring_body), 0);
}

/* ---- the end of threads ---- */

static pthread_barrier_t barrier;

static HOOKABLE void end_here(int n)
{
	if (n > 0)
		end_here(n - 1);
	else if (jump)
		pthread_exit((void *)5);
	CHECK(add(1, 1) == 2);
}

static HOOKABLE void wait_here(void)
{
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

static void *ends(void *argument)
{
	(void)argument;
	end_here(20);
	return NULL;
}

static void *waits(void *argument)
{
	(void)argument;
	wait_here();
	return NULL;
}

static void thread_ends_body(void)
{
	harness_open(&harness);
	harness_hook_unwinder(&harness);
	HOOK(&harness, add);
	HOOK(&harness, end_here);
	HOOK(&harness, wait_here);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *result = NULL;
		CHECK(pthread_create(&thread, NULL, ends, NULL) == 0);
		CHECK(pthread_join(thread, &result) == 0 && result == (void *)5);
		CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
		CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
		pthread_barrier_wait(&barrier);
		CHECK(pthread_cancel(thread) == 0);
		CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	}
	CHECK(begins("end_here") == 50 * 21);
}

static void threads_end_inside_calls(void **state)
{
	(void)state;
	assert_int_equal(in_child(thread_ends_body), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_calls),
		cmocka_unit_test(all_registers_are_kept),
		cmocka_unit_test(entries_alone_are_instants),
		cmocka_unit_test(tail_calls_end_their_callers),
		cmocka_unit_test(longjmp_over_frames_ends_them),
		cmocka_unit_test(a_thousand_short_threads),
		cmocka_unit_test(handlers_interrupt_anywhere),
		cmocka_unit_test(a_forked_child_writes_into_its_parents_drum),
		cmocka_unit_test(many_children_share_rings),
		cmocka_unit_test(children_that_live_have_rings_of_their_own),
		cmocka_unit_test(rings_wrap_and_count),
		cmocka_unit_test(the_counters_high_half_changes),
		cmocka_unit_test(coroutines_return_to_their_callers),
		cmocka_unit_test(callers_outside_are_left_alone),
		cmocka_unit_test(off_only_returns),
		cmocka_unit_test(a_program_may_turn_the_counter_off),
		cmocka_unit_test(calls_that_programs_tell),
		cmocka_unit_test(the_loader_waits_for_an_answer),
		cmocka_unit_test(a_new_drum_is_taken_up),
		cmocka_unit_test(calls_without_a_ring_are_counted),
		cmocka_unit_test(threads_end_inside_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
