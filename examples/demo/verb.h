/* SPDX-License-Identifier: MIT */
/* verb.h: programs of the stack language and their code; see verb.c. */
#ifndef DEMO_VERB_H
#define DEMO_VERB_H

#include <stdint.h>

#define VERB_CODE_MAX 64
#define VERB_LOCALS_MAX 8
#define VERB_NAME_MAX 24

struct builtin;
struct verb;

enum opcode {
	OP_PUSH,    /* the operand onto the stack */
	OP_LOAD,    /* a local variable onto the stack */
	OP_STORE,   /* the top of the stack into a local variable */
	OP_ARITH,   /* the operand is the operator's character */
	OP_DROP,    /* the top of the stack */
	OP_TIMES,   /* takes a count; when that is 0, jumps to the operand */
	OP_NEXT,    /* one turn less to do; while there are more, jumps to the operand */
	OP_BUILTIN, /* calls a builtin */
	OP_CALL,    /* calls a verb */
	OP_RETURN
};

struct op {
	enum opcode code;
	int64_t operand;
	const struct builtin *builtin;
	const struct verb *callee;
};

struct verb {
	char name[VERB_NAME_MAX]; /* object:verb */
	const char *source;
	int argc; /* values the caller leaves on the stack for it */
	int count;
	struct op code[VERB_CODE_MAX];
};

/* Compiles all verbs of the array, which may call each other. Exits on an error in a program. */
void verb_compile_all(struct verb *verbs, int count);

#endif /* DEMO_VERB_H */
