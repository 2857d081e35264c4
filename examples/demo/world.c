/* SPDX-License-Identifier: MIT */
/*
 * world.c: a bank, some players, an oracle and a market.
 *
 * Everything here is text and numbers. The bank's gold is changed by every payment, and so it is
 * what transactions fight over; the audit reads everything, and so it loses to any of them.
 */
#include "world.h"

#include <assert.h>
#include <stdio.h>

#define PLAYER_GOLD 1000
#define BANK_KEY 0

static struct verb verbs[] = {
	/* who amount: new gold comes into the world */
	[WORLD_DEPOSIT] = {.name = "player:deposit",
			   .argc = 2,
			   .source = "=amount =who  who player() amount bank:credit"
				     " who amount notify()  amount"},
	/* from to amount: the bank keeps one */
	[WORLD_PAY] = {.name = "player:pay",
		       .argc = 3,
		       .source = "=amount =to =from  bank:fee  from player() amount bank:debit"
				 " 200 ponder() drop  to player() amount 1 - bank:credit"
				 " amount"},
	/* who hours: a piece of gold for every hour, with a rest after it */
	[WORLD_WORK] = {.name = "player:work",
			.argc = 2,
			.source = "=hours =who  hours times  100 ponder() drop"
				  " who player() 1 bank:credit  2 suspend()  next  hours"},
	/* who question: some questions take the oracle long */
	[WORLD_ASK] = {.name = "oracle:ask",
		       .argc = 2,
		       .source = "=question =who  question oracle:dream  3 suspend()"
				 " question ponder() 7 % =answer  who answer notify()  answer"},
	[WORLD_AUDIT] = {.name = "market:audit",
			 .argc = 1,
			 .source = "=n  bank() get() =sum  n times  n 1 - =n"
				   " n player() get() sum + =sum  20 ponder() drop  next  sum"},
	/* key amount */
	{.name = "bank:credit",
	 .argc = 2,
	 .source = "=amount =key  key  key get() amount +  put()"},
	{.name = "bank:debit", .argc = 2, .source = "=amount =key  key  key get() amount -  put()"},
	{.name = "bank:fee", .argc = 0, .source = "bank() 1 bank:credit  150 ponder() drop"},
	{.name = "oracle:dream",
	 .argc = 1,
	 .source = "=depth  3 times  depth ponder() drop  next  100 random() drop"},
};

void world_open(struct db *db)
{
	verb_compile_all(verbs, (int)(sizeof(verbs) / sizeof(verbs[0])));
	db_define(db, "bank.gold", 0);
	for (int player = 0; player < WORLD_PLAYERS; player++) {
		char name[DB_NAME_MAX];
		snprintf(name, sizeof(name), "player%d.gold", player);
		db_define(db, name, PLAYER_GOLD);
	}
}

const struct verb *world_verb(enum world_verb verb)
{
	assert(verb < WORLD_VERBS);
	return &verbs[verb];
}

int world_bank_key(void)
{
	return BANK_KEY;
}

int world_player_key(int64_t player)
{
	return BANK_KEY + 1 + (int)((uint64_t)player % WORLD_PLAYERS);
}
