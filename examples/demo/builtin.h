/* SPDX-License-Identifier: MIT */
/* builtin.h: what verbs can do beyond arithmetic; see builtin.c. */
#ifndef DEMO_BUILTIN_H
#define DEMO_BUILTIN_H

#include <stdbool.h>
#include <stdint.h>

#define BUILTIN_ARGS_MAX 2

struct vm;

struct builtin {
	const char *name; /* with its parentheses, as programs write it */
	int argc;
	bool pushes; /* whether it leaves its result on the stack */
	int64_t (*call)(struct vm *vm, const int64_t *argv);
};

/* The builtin of that name, or NULL. */
const struct builtin *builtin_find(const char *name);

#endif /* DEMO_BUILTIN_H */
