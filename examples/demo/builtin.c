/* SPDX-License-Identifier: MIT */
/*
 * builtin.c: the builtins, one function each, in one table.
 *
 * How they are traced. vm.c gives every call a span with its arguments; here is only what a builtin
 * itself has to say: notify() writes a log message, and ponder() is KYMO_SCOPE_OVER, because a
 * ponder that took too long is what one would want a snapshot of.
 */
#include "builtin.h"

#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "db.h"
#include "prng.h"
#include "vm.h"
#include "world.h"

#include <kymo/kymo.h>

#define STEPS_PER_ROUND 1000
#define SLOW_NS (4 * NS_PER_MS)

static int64_t builtin_get(struct vm *vm, const int64_t *argv)
{
	return db_get(vm->transaction, (int)argv[0]);
}

static int64_t builtin_put(struct vm *vm, const int64_t *argv)
{
	db_put(vm->transaction, (int)argv[0], argv[1]);
	return argv[1];
}

static int64_t builtin_bank(struct vm *vm, const int64_t *argv)
{
	(void)vm, (void)argv;
	return world_bank_key();
}

static int64_t builtin_player(struct vm *vm, const int64_t *argv)
{
	(void)vm;
	return world_player_key(argv[0]);
}

static int64_t builtin_random(struct vm *vm, const int64_t *argv)
{
	return prng_below(&vm->random, argv[0]);
}

/* Honest work: each step needs the one before. */
static int64_t builtin_ponder(struct vm *vm, const int64_t *argv)
{
	KYMO_SCOPE_OVER("slow", "ponder", SLOW_NS, "rounds", argv[0]);
	uint64_t state = vm->random;
	uint64_t thought = 0;
	for (int64_t step = 0; step < argv[0] * STEPS_PER_ROUND; step++)
		thought ^= prng_next(&state);
	return (int64_t)(thought >> 1);
}

static int64_t builtin_notify(struct vm *vm, const int64_t *argv)
{
	KYMO_PRINT("log", "task %" PRIu64 ": player %" PRId64 " gets %" PRId64, vm->task, argv[0],
		   argv[1]);
	return 0;
}

static int64_t builtin_suspend(struct vm *vm, const int64_t *argv)
{
	vm->suspend_ms = argv[0];
	return 0;
}

static const struct builtin builtins[] = {
	{"get()", 1, true, builtin_get},        {"put()", 2, false, builtin_put},
	{"bank()", 0, true, builtin_bank},      {"player()", 1, true, builtin_player},
	{"random()", 1, true, builtin_random},  {"ponder()", 1, true, builtin_ponder},
	{"notify()", 2, false, builtin_notify}, {"suspend()", 1, false, builtin_suspend},
};

const struct builtin *builtin_find(const char *name)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (strcmp(builtins[i].name, name) == 0)
			return &builtins[i];
	return NULL;
}
