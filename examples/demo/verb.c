/* SPDX-License-Identifier: MIT */
/*
 * verb.c: from the text of a verb to its code.
 *
 * The language is words between blanks, each acting on a stack:
 *
 *	17			pushes a number
 *	=amount			takes the top of the stack into a local variable
 *	amount			pushes that variable
 *	+ - %		take two values, push one
 *	drop			takes one away
 *	N times ... next	runs what is between N times
 *	get()			calls a builtin
 *	bank:credit		calls a verb
 *
 * The programs are part of the demo (world.c), so an error in one is a bug: it ends the program
 * before anything has begun.
 */
#include "verb.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin.h"

#include <kymo/kymo.h>

#define WORD_MAX 32
#define LOOPS_MAX 4

struct compiler {
	struct verb *verb;
	const struct verb *verbs;
	int verbs_count;
	int locals_count;
	char locals[VERB_LOCALS_MAX][WORD_MAX];
	int loops_count;
	int loops[LOOPS_MAX]; /* where the open ones begin */
};

static void fail(const struct compiler *compiler, const char *word, const char *what)
{
	fprintf(stderr, "demo: %s: %s: %s\n", compiler->verb->name, word, what);
	exit(1);
}

static struct op *emit(struct compiler *compiler, enum opcode code, int64_t operand)
{
	struct verb *verb = compiler->verb;
	if (verb->count == VERB_CODE_MAX)
		fail(compiler, "end", "the program is too long");
	struct op *op = &verb->code[verb->count++];
	*op = (struct op){.code = code, .operand = operand};
	return op;
}

static int find_local(const struct compiler *compiler, const char *name)
{
	for (int i = 0; i < compiler->locals_count; i++)
		if (strcmp(compiler->locals[i], name) == 0)
			return i;
	return -1;
}

static int define_local(struct compiler *compiler, const char *name)
{
	int local = find_local(compiler, name);
	if (local >= 0)
		return local;
	if (compiler->locals_count == VERB_LOCALS_MAX)
		fail(compiler, name, "too many variables");
	local = compiler->locals_count++;
	strcpy(compiler->locals[local], name);
	return local;
}

static void open_loop(struct compiler *compiler)
{
	if (compiler->loops_count == LOOPS_MAX)
		fail(compiler, "times", "too many loops");
	emit(compiler, OP_TIMES, 0);
	compiler->loops[compiler->loops_count++] = compiler->verb->count;
}

static void close_loop(struct compiler *compiler)
{
	if (compiler->loops_count == 0)
		fail(compiler, "next", "there is no loop");
	const int body = compiler->loops[--compiler->loops_count];
	emit(compiler, OP_NEXT, body);
	compiler->verb->code[body - 1].operand = compiler->verb->count;
}

static void compile_builtin(struct compiler *compiler, const char *word)
{
	const struct builtin *builtin = builtin_find(word);
	if (!builtin)
		fail(compiler, word, "there is no such builtin");
	emit(compiler, OP_BUILTIN, 0)->builtin = builtin;
}

static void compile_call(struct compiler *compiler, const char *word)
{
	for (int i = 0; i < compiler->verbs_count; i++) {
		if (strcmp(compiler->verbs[i].name, word) == 0) {
			emit(compiler, OP_CALL, 0)->callee = &compiler->verbs[i];
			return;
		}
	}
	fail(compiler, word, "there is no such verb");
}

/* A number or a variable. */
static void compile_value(struct compiler *compiler, const char *word)
{
	char *end;
	const int64_t number = strtoll(word, &end, 10);
	const int local = find_local(compiler, word);
	if (*end == '\0')
		emit(compiler, OP_PUSH, number);
	else if (local >= 0)
		emit(compiler, OP_LOAD, local);
	else
		fail(compiler, word, "unknown word");
}

static void compile_word(struct compiler *compiler, const char *word)
{
	const bool is_operator = word[1] == '\0' && strchr("+-%", word[0]);
	if (is_operator)
		emit(compiler, OP_ARITH, word[0]);
	else if (strcmp(word, "drop") == 0)
		emit(compiler, OP_DROP, 0);
	else if (strcmp(word, "times") == 0)
		open_loop(compiler);
	else if (strcmp(word, "next") == 0)
		close_loop(compiler);
	else if (word[0] == '=')
		emit(compiler, OP_STORE, define_local(compiler, word + 1));
	else if (strchr(word, '('))
		compile_builtin(compiler, word);
	else if (strchr(word, ':'))
		compile_call(compiler, word);
	else
		compile_value(compiler, word);
}

/* Copies the next word of the text; returns where to go on, or NULL at the end. */
static const char *next_word(const struct compiler *compiler, const char *text, char *word)
{
	text += strspn(text, " ");
	const size_t bytes = strcspn(text, " ");
	if (bytes == 0)
		return NULL;
	if (bytes >= WORD_MAX)
		fail(compiler, text, "the word is too long");
	memcpy(word, text, bytes);
	word[bytes] = '\0';
	return text + bytes;
}

static void compile(struct verb *verb, const struct verb *verbs, int verbs_count)
{
	KYMO_SCOPE("world", "compile", "verb", verb->name);
	struct compiler compiler = {.verb = verb, .verbs = verbs, .verbs_count = verbs_count};
	char word[WORD_MAX];
	for (const char *text = verb->source; (text = next_word(&compiler, text, word));)
		compile_word(&compiler, word);
	if (compiler.loops_count)
		fail(&compiler, "times", "the loop has no end");
	emit(&compiler, OP_RETURN, 0);
}

void verb_compile_all(struct verb *verbs, int count)
{
	for (int i = 0; i < count; i++)
		compile(&verbs[i], verbs, count);
}
