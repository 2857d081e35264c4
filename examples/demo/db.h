/* SPDX-License-Identifier: MIT */
/* db.h: a small database in memory with optimistic transactions; see db.c. */
#ifndef DEMO_DB_H
#define DEMO_DB_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define DB_KEYS_MAX 32
#define DB_NAME_MAX 24

/* One value, its name, and how often it was written. */
struct db_entry {
	char name[DB_NAME_MAX];
	int64_t value;
	uint64_t version;
};

struct db {
	pthread_mutex_t lock; /* guards everything below, but for the names */
	int keys;
	struct db_entry entries[DB_KEYS_MAX];
	uint64_t commits;
	uint64_t conflicts;
	int64_t added; /* what all commits together added to the sum of the values */
};

/* What a transaction knows of one key. */
struct db_access {
	int key;
	bool written;
	uint64_t version; /* when it was read */
	int64_t seen;     /* the value then */
	int64_t value;    /* the value as the transaction sees it */
};

struct db_transaction {
	struct db *db;
	int count;
	struct db_access accesses[DB_KEYS_MAX];
};

void db_open(struct db *db);
void db_close(struct db *db);

/* Adds a key, before any transaction begins. Returns its number. */
int db_define(struct db *db, const char *name, int64_t value);

/* The sum of all values. */
int64_t db_sum(struct db *db);

/* Every transaction begun on a thread ends on that thread, by a commit or a rollback. */
void db_begin(struct db *db, struct db_transaction *transaction);
int64_t db_get(struct db_transaction *transaction, int key);
void db_put(struct db_transaction *transaction, int key, int64_t value);
void db_rollback(struct db_transaction *transaction);

/* Returns whether it was committed; if not, another transaction was faster and it was rolled back. */
bool db_commit(struct db_transaction *transaction);

#endif /* DEMO_DB_H */
