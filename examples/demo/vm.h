/* SPDX-License-Identifier: MIT */
/* vm.h: the interpreter of the stack language; see vm.c. */
#ifndef DEMO_VM_H
#define DEMO_VM_H

#include <stdint.h>

#include "verb.h"

#define VM_STACK_MAX 32
#define VM_FRAMES_MAX 6
#define VM_LOOPS_MAX 4

struct db_transaction;

/* A verb that is being run. */
struct vm_frame {
	const struct verb *verb;
	int next; /* op */
	int loops_count;
	int64_t loops[VM_LOOPS_MAX]; /* turns to do */
	int64_t locals[VERB_LOCALS_MAX];
};

/* All there is to a computation: a copy of it is a point to come back to. */
struct vm {
	uint64_t task;                      /* for the trace */
	struct db_transaction *transaction; /* of this run */
	uint64_t random;
	int64_t suspend_ms; /* set by suspend() */
	int stack_count;
	int64_t stack[VM_STACK_MAX];
	int frames_count;
	struct vm_frame frames[VM_FRAMES_MAX];
};

/* What was done, including what was rolled back later. */
struct vm_work {
	uint64_t verb_spans;
	uint64_t builtin_calls;
};

enum vm_status { VM_DONE, VM_SUSPENDED };

/* The verb that the calling thread runs, or NULL; for profile.c. */
extern _Thread_local const char *volatile vm_current_verb;

/* seed is that of random(). */
void vm_start(struct vm *vm, uint64_t task, uint64_t seed, const struct verb *verb,
	      const int64_t *args);

/* Runs until the verb returns or suspends; adds to *work. */
enum vm_status vm_run(struct vm *vm, struct db_transaction *transaction, struct vm_work *work);

/* What the verb left on the stack. */
int64_t vm_result(const struct vm *vm);

#endif /* DEMO_VM_H */
