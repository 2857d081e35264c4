/* SPDX-License-Identifier: MIT */
/* world.h: the objects of the demo, what they own and what they can do; see world.c. */
#ifndef DEMO_WORLD_H
#define DEMO_WORLD_H

#include "db.h"
#include "verb.h"

#define WORLD_PLAYERS 8
#define WORLD_ARGS_MAX 3

/* What clients may ask for; other verbs are only called by these. */
enum world_verb { WORLD_DEPOSIT, WORLD_PAY, WORLD_WORK, WORLD_ASK, WORLD_AUDIT, WORLD_VERBS };

/* Compiles the verbs and fills the database. Before any thread is started. */
void world_open(struct db *db);

const struct verb *world_verb(enum world_verb verb);

/* The database keys of the gold of the bank, and of a player. */
int world_bank_key(void);
int world_player_key(int64_t player);

#endif /* DEMO_WORLD_H */
