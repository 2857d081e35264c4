/* SPDX-License-Identifier: MIT */
/*
 * harness.h: this very process traced by stubs and agent, as the patch engine does it from outside: for tests of
 * these two.
 *
 *   harness_open()     home, agent, states, directory and drum are mapped; gs of the calling thread is set
 *   harness_hook()     a function that begins with five bytes of nops (HOOKABLE) leads to a stub
 *   harness_read()     the events in the drum
 */
#ifndef KY_TESTS_HARNESS_H
#define KY_TESTS_HARNESS_H

#include "functrace/agent_abi.h"
#include "functrace/made_drum.h"
#include "functrace/stub.h"
#include "hookable.h"

typedef void function_fn(void);
#define HOOK(h, function) harness_hook(h, (function_fn *)(function), #function, KY_STUB_CALL)

#define HARNESS_FUNCTIONS_MAX 64u
#define HARNESS_EVENTS_MAX (1u << 22)

struct harness {
	struct ky_agent_home *home;
	struct ky_made_drum drum;
	uint8_t *stubs; /* near this program */
	uint32_t stubs_used;
	uint64_t exit;
	uint32_t functions;
	bool check_callers;
	uint64_t ring_bytes; /* before it is opened; 0: 4 MiB */
};

/* Set it up, or exit with 77 and a reason where it is impossible. */
void harness_open(struct harness *h);
void harness_close(struct harness *h);
/* Hook a function. Return its number. */
uint32_t harness_hook(struct harness *h, void (*function)(void), const char *name,
		      enum ky_stub_kind kind);
/* Do the same for a function whose first instructions, prologue bytes of them, can be moved. */
uint32_t harness_move(struct harness *h, void (*function)(void), uint32_t prologue,
		      const char *name, enum ky_stub_kind kind);
/* Restore all functions and turn home off. */
void harness_off(struct harness *h);
/* Make _Unwind_Find_FDE ask the agent first. */
void harness_hook_unwinder(struct harness *h);
/* Return the entry at that offset of struct ky_agent_table, as an address. */
uint64_t harness_agent(const struct harness *h, size_t place);
/* Return the calls counted in all states. */
uint64_t harness_count(const struct harness *h, uint32_t function);
uint64_t harness_lost(const struct harness *h);

struct harness_event {
	uint8_t kind;
	int32_t pid, tid;
	uint64_t time_ns;
	const char *name; /* "" of an END */
};
struct harness_events {
	struct harness_event *events;
	uint64_t count;
	uint64_t overwritten;
	uint64_t damaged;
	void *private_data;
};
struct harness_events harness_read(const struct harness *h);
void harness_free(struct harness_events *events);
/*
 * Check that every END has a BEGIN before it in its thread, every BEGIN except `open` of them its END, and that times
 * go forward.
 */
void harness_check_nesting(const struct harness_events *events, uint64_t open);
/* Return how often that function's span begins. */
uint64_t harness_begins(const struct harness_events *events, const char *name);
/* Do both with the events that the drum has now. */
void harness_check(const struct harness *h, uint64_t open);
uint64_t harness_begun(const struct harness *h, const char *name);
/* Return the first thread's state. */
struct ky_agent_state *harness_state(const struct harness *h);

/* ---- functions to hook ---- */

/* Keep the compiler from making a loop of a recursion. */
#define KEEP_CALL(result) __asm__ volatile("" : "+r"(result))

HOOKABLE int add(int a, int b);
HOOKABLE uint64_t factorial(uint64_t n);
HOOKABLE int work(int n);

#endif
