/* SPDX-License-Identifier: MIT */
/*
 * db.c: optimistic transactions.
 *
 * A transaction works on copies: the first access to a key notes its value and version. Commit takes
 * the lock and looks whether every version is still the same; if so, it stores the new values and
 * raises their versions, if not, nothing happened. So committed transactions are as if run one after
 * the other, and this always holds:
 *
 *	sum of the values now = sum of the values at the start + what the commits added
 *
 * An update that was lost would break it; the demo checks it at the end.
 *
 * How it is traced. A transaction begins in one function and ends in another, so its span is made by
 * hand: KYMO_BEGIN in db_begin(), KYMO_END with the outcome where it ends. A conflict is an instant
 * that names the key and both versions: what one wants to know when looking for the reason.
 */
#include "db.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include <kymo/kymo.h>

void db_open(struct db *db)
{
	*db = (struct db){.keys = 0};
	pthread_mutex_init(&db->lock, NULL);
}

void db_close(struct db *db)
{
	pthread_mutex_destroy(&db->lock);
}

int db_define(struct db *db, const char *name, int64_t value)
{
	assert(db->keys < DB_KEYS_MAX);
	struct db_entry *entry = &db->entries[db->keys];
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	entry->value = value;
	return db->keys++;
}

int64_t db_sum(struct db *db)
{
	int64_t sum = 0;
	pthread_mutex_lock(&db->lock);
	for (int key = 0; key < db->keys; key++)
		sum += db->entries[key].value;
	pthread_mutex_unlock(&db->lock);
	return sum;
}

void db_begin(struct db *db, struct db_transaction *transaction)
{
	KYMO_BEGIN("db", "transaction");
	transaction->db = db;
	transaction->count = 0;
}

/* The transaction's copy of a key, made at the first access. */
static struct db_access *find_access(struct db_transaction *transaction, int key)
{
	struct db *db = transaction->db;
	assert(key >= 0 && key < db->keys);
	for (int i = 0; i < transaction->count; i++)
		if (transaction->accesses[i].key == key)
			return &transaction->accesses[i];
	struct db_access *access = &transaction->accesses[transaction->count++];
	pthread_mutex_lock(&db->lock);
	const struct db_entry entry = db->entries[key];
	pthread_mutex_unlock(&db->lock);
	*access = (struct db_access){
		.key = key,
		.version = entry.version,
		.seen = entry.value,
		.value = entry.value,
	};
	return access;
}

int64_t db_get(struct db_transaction *transaction, int key)
{
	return find_access(transaction, key)->value;
}

void db_put(struct db_transaction *transaction, int key, int64_t value)
{
	struct db_access *access = find_access(transaction, key);
	access->value = value;
	access->written = true;
}

void db_rollback(struct db_transaction *transaction)
{
	{
		KYMO_SCOPE("db", "rollback", "accesses", transaction->count);
		transaction->count = 0;
	}
	KYMO_END("db", "outcome", "rolled back");
}

/* Building a text costs more than the event: only when somebody wants to see it. */
static void trace_changes(const struct db_transaction *transaction)
{
	if (!KYMO_ENABLED("db"))
		return;
	char text[KYMO_STRING_MAX + 1] = "";
	size_t used = 0;
	for (int i = 0; i < transaction->count && used < sizeof(text); i++) {
		const struct db_access *access = &transaction->accesses[i];
		if (!access->written)
			continue;
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s %+" PRId64, used ? ", " : "",
			transaction->db->entries[access->key].name, access->value - access->seen);
	}
	if (used)
		KYMO_INSTANT("db", "changes", "what", text);
}

/* The first access whose key another transaction wrote in between. With the lock held. */
static const struct db_access *find_stale(const struct db_transaction *transaction)
{
	for (int i = 0; i < transaction->count; i++) {
		const struct db_access *access = &transaction->accesses[i];
		if (transaction->db->entries[access->key].version != access->version)
			return access;
	}
	return NULL;
}

/* With the lock held, so that the counter's values are recorded in the order they are taken. */
static void apply(const struct db_transaction *transaction)
{
	struct db *db = transaction->db;
	for (int i = 0; i < transaction->count; i++) {
		const struct db_access *access = &transaction->accesses[i];
		if (!access->written)
			continue;
		db->entries[access->key].value = access->value;
		db->entries[access->key].version++;
		db->added += access->value - access->seen;
	}
	db->commits++;
	KYMO_COUNTER("db", "commits", db->commits);
}

/* With the lock held. */
static void note_conflict(struct db *db, const struct db_access *stale)
{
	const struct db_entry *entry = &db->entries[stale->key];
	db->conflicts++;
	KYMO_INSTANT("db", "conflict", "key", entry->name, "version_read", stale->version,
		     "version_found", entry->version);
	KYMO_COUNTER("db", "conflicts", db->conflicts);
}

bool db_commit(struct db_transaction *transaction)
{
	struct db *db = transaction->db;
	bool committed;
	{
		KYMO_SCOPE("db", "commit", "accesses", transaction->count);
		trace_changes(transaction);
		pthread_mutex_lock(&db->lock);
		const struct db_access *stale = find_stale(transaction);
		if (stale)
			note_conflict(db, stale);
		else
			apply(transaction);
		committed = !stale;
		pthread_mutex_unlock(&db->lock);
	}
	if (committed)
		KYMO_END("db", "outcome", "committed");
	else
		db_rollback(transaction);
	return committed;
}
