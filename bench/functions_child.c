/* SPDX-License-Identifier: MIT */
/*
 * functions_child.c: the cost of a traced call, in a process that traces itself. Print the shortest times, in nanoseconds
 * per call, in the order of enum functions_time.
 */
#include "functions.h"
#include "repeat.h"

#include "../tests/functrace/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION(name) ".balign 64\n.globl " name "\n.type " name ", @function\n" name ":\n"
#define NOPS "nop\nnop\nnop\nnop\nnop\n"
#define FRAME "push %rbp\nmov %rsp, %rbp\npop %rbp\n"

/* The smallest function: a prologue of five bytes, which can be moved, or the compiler's five nops. */
void function_bare(void);
void function_patched(void);
void function_entered(void);
void function_uncounted(void);
void function_nops_off(void);
void function_nops_on(void);
__asm__(".text\n" FUNCTION("function_bare") FRAME "ret\n" FUNCTION("function_patched") FRAME
	"ret\n" FUNCTION("function_entered") FRAME "ret\n" FUNCTION("function_uncounted") FRAME
	"ret\n" FUNCTION("function_nops_off") NOPS FRAME "ret\n" FUNCTION("function_nops_on")
		NOPS FRAME "ret\n");

#define LOOP(function)                                                                             \
	static __attribute__((noinline, aligned(64))) void loop_##function(uint32_t iterations)    \
	{                                                                                          \
		for (uint32_t i = 0; i < iterations; i++) {                                        \
			function();                                                                \
			__asm__ volatile("" : "+r"(i) : : "memory");                               \
		}                                                                                  \
	}
LOOP(function_bare)
LOOP(function_patched)
LOOP(function_entered)
LOOP(function_uncounted)
LOOP(function_nops_off)
LOOP(function_nops_on)

static loop_fn *const runs[FUNCTIONS_TIMES] = {
	[FUNCTIONS_BARE] = loop_bare,
	[FUNCTIONS_CALL] = loop_function_bare,
	[FUNCTIONS_PATCHED] = loop_function_patched,
	[FUNCTIONS_ENTERED] = loop_function_entered,
	[FUNCTIONS_UNCOUNTED] = loop_function_uncounted,
	[FUNCTIONS_NOPS_OFF] = loop_function_nops_off,
	[FUNCTIONS_NOPS_ON] = loop_function_nops_on,
};

/*
 * The counter's reading and the check of its high half taken out of a stub's code: xor %eax,%eax for rdtsc, and a nop
 * for the jump.
 */
static bool take_counter_out(uint8_t *code, uint32_t bytes)
{
	static const uint8_t read[] = {0x0f, 0x31};
	static const uint8_t jump[] = {0x0f, 0x85};
	static const uint8_t none[] = {0x31, 0xc0};
	static const uint8_t nop[] = {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00};
	uint8_t *at = memmem(code, bytes, read, sizeof(read));
	uint8_t *check = at ? memmem(at, 32, jump, sizeof(jump)) : NULL;
	if (!check)
		return false;
	memcpy(at, none, sizeof(none));
	memcpy(check, nop, sizeof(nop));
	return true;
}

/* It has its own exit; the others share theirs. */
static bool hook_uncounted(struct harness *h)
{
	const uint64_t exit = h->exit;
	h->exit = 0;
	const uint32_t from = h->stubs_used;
	harness_move(h, function_uncounted, 5, "uncounted", KY_STUB_CALL);
	h->exit = exit;
	uint8_t *code = h->stubs + from;
	return take_counter_out(code, h->stubs_used - from) &&
	       take_counter_out(code, h->stubs_used - from);
}

int main(int argc, char **argv)
{
	const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
	static struct harness harness;
	double ns[FUNCTIONS_TIMES];
	harness_open(&harness);
	harness_move(&harness, function_patched, 5, "patched", KY_STUB_CALL);
	harness_move(&harness, function_entered, 5, "entered", KY_STUB_ENTRY);
	harness_hook(&harness, function_nops_on, "nops", KY_STUB_CALL);
	if (!hook_uncounted(&harness))
		return 1;
	repeat_in_turns(repeat_many(quick), runs, FUNCTIONS_TIMES, ns);
	for (int i = 0; i < FUNCTIONS_TIMES; i++)
		printf("%.4f ", ns[i]);
	harness_close(&harness);
	return 0;
}
