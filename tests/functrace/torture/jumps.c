/* SPDX-License-Identifier: MIT */
/*
 * jumps.c: stacks that are left without returning, interrupted, overflown and exchanged: longjmp, signals, alternate stacks,
 * coroutines.
 */
#include "torture.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

static NOINLINE uint64_t work(uint64_t value, int depth)
{
	if (depth > 0)
		value = work(value, depth - 1);
	KEEP(value);
	return mix(value, (uint64_t)depth);
}

/* ---- longjmp ---- */

static jmp_buf outer, inner;

static NOINLINE void leave(jmp_buf *where, int depth, int value)
{
	if (depth == 0)
		longjmp(*where, value);
	leave(where, depth - 1, value);
	KEEP(depth);
}

static uint64_t over_frames(void)
{
	volatile uint64_t digest = 0;
	for (volatile int i = 0; i < 2000 * (int)torture_scale; i++) {
		const int value = setjmp(outer);
		if (value == 0)
			leave(&outer, i % 100, i + 1);
		digest = mix(digest, (uint64_t)value);
		digest = work(digest, 3);
	}
	return digest;
}

static NOINLINE uint64_t jump_inside(int i)
{
	const int value = setjmp(inner);
	if (value == 0)
		leave(&inner, 20, i + 1);
	else if (value % 3 == 0)
		leave(&outer, 10, value);
	return (uint64_t)value;
}

static uint64_t nested(void)
{
	volatile uint64_t digest = 0;
	for (volatile int i = 0; i < 1000 * (int)torture_scale; i++) {
		const int value = setjmp(outer);
		digest = mix(digest, value ? (uint64_t)value * 7 : jump_inside(i));
	}
	return digest;
}

/* ---- signals ---- */

static sigjmp_buf from_handler;
static volatile sig_atomic_t handled;
static volatile uint64_t handler_digest;

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action;
	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = flags;
	must(sigaction(number, &action, NULL) == 0, "sigaction");
}

static void jump_out(int number)
{
	handler_digest = work(handler_digest, 5);
	siglongjmp(from_handler, number);
}

static NOINLINE void raise_deep(int number, int depth)
{
	if (depth == 0)
		raise(number);
	else
		raise_deep(number, depth - 1);
	KEEP(depth);
}

static uint64_t out_of_handlers(void)
{
	handle(SIGUSR1, jump_out, 0);
	handler_digest = 1;
	for (volatile int i = 0; i < 500 * (int)torture_scale; i++)
		if (sigsetjmp(from_handler, 1) == 0)
			raise_deep(SIGUSR1, i % 30);
	return handler_digest;
}

static void again(int number)
{
	handler_digest = work(handler_digest, 2);
	if (handled < 20) {
		handled++;
		raise_deep(number == SIGUSR1 ? SIGUSR2 : SIGUSR1, 2);
	}
	handler_digest = work(handler_digest, 1);
}

static uint64_t handlers_in_handlers(void)
{
	handle(SIGUSR1, again, SA_NODEFER);
	handle(SIGUSR2, again, SA_NODEFER);
	handler_digest = 2;
	for (int i = 0; i < 50 * (int)torture_scale; i++) {
		handled = 0;
		raise_deep(SIGUSR1, 4);
	}
	return handler_digest;
}

static void tick(int number)
{
	handled++;
	handler_digest = work(0, number % 4);
}

/* The digest is of the work that is interrupted. */
static uint64_t many_signals(void)
{
	const struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	uint64_t digest = 3, first = 0;
	handle(SIGALRM, tick, SA_RESTART);
	handled = 0;
	setitimer(ITIMER_REAL, &every, NULL);
	for (int round = 0; round == 0 || handled < 200 * (int)torture_scale; round++) {
		digest = 3;
		for (int i = 0; i < 500; i++)
			digest = work(digest, i % 16);
		first = round == 0 ? digest : first;
		must(digest == first, "work that was interrupted came out otherwise");
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	return digest;
}

/* ---- other stacks ---- */

static NOINLINE int overflow(volatile char *above)
{
	volatile char here[256];
	here[0] = *above;
	return overflow(here) + here[0];
}

/* On a small stack of its own, until there is no more of it; the handler jumps out. */
static void *overflow_thread(void *arg)
{
	char other[65536];
	const stack_t alternate = {.ss_sp = other, .ss_size = sizeof(other)};
	const stack_t none = {.ss_flags = SS_DISABLE};
	volatile char first = 0;
	sigaltstack(&alternate, NULL);
	for (volatile int i = 0; i < 20; i++)
		if (sigsetjmp(from_handler, 1) == 0)
			overflow(&first);
	sigaltstack(&none, NULL);
	return arg;
}

static uint64_t overflown(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	handler_digest = 4;
	handle(SIGSEGV, jump_out, SA_ONSTACK);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	must(pthread_create(&thread, &attr, overflow_thread, NULL) == 0, "a thread");
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	signal(SIGSEGV, SIG_DFL);
	return handler_digest;
}

static uint64_t alternate_stack(void)
{
	static char memory[65536];
	const stack_t alternate = {.ss_sp = memory, .ss_size = sizeof(memory)};
	const stack_t none = {.ss_flags = SS_DISABLE};
	must(sigaltstack(&alternate, NULL) == 0, "sigaltstack");
	handle(SIGUSR1, again, SA_ONSTACK);
	handle(SIGUSR2, jump_out, SA_ONSTACK);
	handler_digest = 5;
	for (volatile int i = 0; i < 200; i++) {
		handled = i % 2 ? 20 : 19; /* alone, or with one more that leaves both */
		if (sigsetjmp(from_handler, 1) == 0)
			raise_deep(SIGUSR1, i % 10);
	}
	sigaltstack(&none, NULL);
	return handler_digest;
}

#define COROUTINES 4
#define COROUTINE_BYTES (64 * 1024)
static ucontext_t home, contexts[COROUTINES];
static uint64_t context_digest;
static unsigned switches_left;

static NOINLINE void switch_deep(int from, int depth)
{
	if (depth > 0)
		switch_deep(from, depth - 1);
	else if (switches_left > 0)
		swapcontext(&contexts[from],
			    &contexts[(from + 1 + (int)switches_left % 2) % COROUTINES]);
	context_digest = mix(context_digest, (uint64_t)(from * 100 + depth));
}

static void coroutine(int self)
{
	while (switches_left > 0) {
		switches_left--;
		switch_deep(self, (int)switches_left % 9);
	}
	setcontext(&home);
}

static uint64_t contexts_of_libc(void)
{
	char *const stacks = mmap(NULL, COROUTINES * COROUTINE_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(stacks != MAP_FAILED, "stacks");
	context_digest = 6;
	switches_left = 2000 * torture_scale;
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks + i * COROUTINE_BYTES;
		contexts[i].uc_stack.ss_size = COROUTINE_BYTES;
		contexts[i].uc_link = &home;
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	swapcontext(&home, &contexts[0]);
	munmap(stacks, COROUTINES * COROUTINE_BYTES);
	return context_digest;
}

/* A switch as runtimes write it themselves: rdi is where the old stack pointer goes, rsi the new one. */
__asm__(".text\n"
	".p2align 4\n"
	".type switch_stack, @function\n"
	"switch_stack: .cfi_startproc\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size switch_stack, .-switch_stack\n");
void switch_stack(uint64_t **from, uint64_t *to);

static uint64_t *main_stack, *other_stack;
static volatile int other_ends;

static NOINLINE void yield_deep(int depth)
{
	if (depth > 0)
		yield_deep(depth - 1);
	else
		switch_stack(&other_stack, main_stack);
	context_digest = mix(context_digest, (uint64_t)depth);
}

static void other_begins(void)
{
	for (int i = 0; !other_ends; i++)
		yield_deep(i % 12);
	switch_stack(&other_stack, main_stack);
	abort();
}

static NOINLINE void resume_deep(int depth)
{
	if (depth > 0)
		resume_deep(depth - 1);
	else
		switch_stack(&main_stack, other_stack);
	context_digest = mix(context_digest, (uint64_t)depth + 50);
}

static uint64_t switched_by_hand(void)
{
	static uint64_t memory[COROUTINE_BYTES / 8] __attribute__((aligned(16)));
	uint64_t *top = memory + COROUTINE_BYTES / 8 - 2;
	void (*const begin)(void) = other_begins;
	memcpy(top, &begin, sizeof(begin));
	other_stack = top - 6;
	other_ends = 0;
	context_digest = 7;
	for (unsigned i = 0; i < 2000 * torture_scale; i++)
		resume_deep((int)(i % 7));
	other_ends = 1;
	resume_deep(1);
	return context_digest;
}

int main(int argc, char **argv)
{
	static const struct torture cases[] = {
		{"over_frames", over_frames},
		{"nested", nested},
		{"out_of_handlers", out_of_handlers},
		{"handlers_in_handlers", handlers_in_handlers},
		{"many_signals", many_signals},
		{"overflown", overflown},
		{"alternate_stack", alternate_stack},
		{"contexts_of_libc", contexts_of_libc},
		{"switched_by_hand", switched_by_hand},
		{NULL, NULL},
	};
	return argc ? torture_main(cases, argv) : 2;
}
