/* SPDX-License-Identifier: MIT */
/*
 * embed.h: trace points in a library that must not depend on libkymo, and how to be their host.
 *
 * The library's side. It ships kymo.h and kymo_impl.h (or kymo.h of the amalgamation, which is both),
 * and nothing else of kymo, and is compiled with -DKYMO_EMBEDDED. Its trace points look for a host the first time each is passed: a function
 *
 *	const struct kymo_host *kymo_host_get(uint32_t version);
 *
 * in the program's global scope. Without one they stay off: the test of one byte. libkymo has that
 * function, so a program that links libkymo gets the library's events in its own trace and has
 * nothing to do. When the host cannot be found that way (a program that opens plug-ins and does not
 * export its symbols), the library's files call kymo_embed_host() with it before their first trace
 * point; it acts on the file that calls it.
 *
 * The host's side, with an implementation of its own: a logger, another tracer, a language runtime.
 * It defines kymo_host_get(), and returns a struct kymo_host (kymo_impl.h says what each function does)
 * or NULL when it does not know the version asked for. An executable must export the function: link
 * it with -rdynamic, unless the library is on its link line.
 *
 * What must hold for the functions of a host:
 *   - Any thread calls them at any time, also in a signal handler and also while the same thread is
 *     in one of them. They do not block, abort, or change errno.
 *   - category() and site() are called once or a few times for a trace point, by several threads at
 *     once perhaps; the same trace point may be registered twice, and either handle will be used.
 *     When category() returns NULL, the trace point stays off for ever. A handle of 0 is no handle:
 *     the host is asked again at the next event.
 *   - The byte that category() returned may change at any time. It is all that is looked at while
 *     the category is off.
 *   - reserve() and commit() come in pairs on one thread, with nothing between them but stores of
 *     the items. A reserve() that returned 0 has no commit().
 *   - The host takes time and thread of an event itself, at reserve() or at commit(), unless the
 *     trace point has them as items (KYMO_SITE_TIME, KYMO_SITE_TID).
 *   - When the library is unloaded, its struct kymo_site_info go with it: copy what is needed later.
 *
 * The items of an event. reserve() is asked for so many words of 64 bits; the library stores the
 * items there, one after the other, in the order below. Items that the trace point's flags do not
 * name are left out. info->types has the type of each item, four bits an item, the first lowest.
 *
 *	flag              item                              type
 *	KYMO_SITE_TIME    CLOCK_MONOTONIC nanoseconds       KYMO_TYPE_UINT
 *	KYMO_SITE_TID     thread id                         KYMO_TYPE_INT or _UINT
 *	KYMO_SITE_NAME    the name; info->name is ""        KYMO_TYPE_STRING
 *	KYMO_SITE_ID      id of an async span or a flow     KYMO_TYPE_INT, _UINT or _POINTER
 *	                  info->args arguments, whose keys  any
 *	                  are info->keys[] at the item's index
 *
 * An item is one word, but for a string:
 *
 *	_INT      two's complement          _DOUBLE   IEEE 754 binary64
 *	_UINT     as it is                  _POINTER  the address
 *	_BOOL     0 or 1
 *
 *	_STRING    63    34   33     32   31         0
 *	          ┌────────┬──────┬──────┬────────────┐
 *	          │ 0      │ null │ cut  │ bytes      │  then so many bytes, without a final NUL, filled
 *	          └────────┴──────┴──────┴────────────┘  up with zeros to whole words
 *
 *	          cut: there was more than KYMO_STRING_MAX bytes; null: it was a null pointer (0 bytes)
 *
 * KYMO_SCOPE has one trace point for both its ends (KYMO_SITE_SCOPE). Its begin comes with items;
 * its end is commit() with end set, and has no items. KYMO_PRINT's name is the printf format, and
 * its items are the values, with empty keys. KYMO_COUNTER's value is its last item.
 *
 * A walk over the items of an event, with the functions below:
 *
 *	struct kymo_items walk = kymo_items_of(info, reservation->items, words);
 *	struct kymo_item item;
 *	while (kymo_items_next(&walk, &item))
 *		if (item.role == KYMO_ITEM_ARG && item.type == KYMO_TYPE_DOUBLE)
 *			printf("%s=%g\n", item.key, kymo_item_double(&item));
 *
 * examples/embed/ has a library, a host of its own making, and the same program with libkymo.
 */
#ifndef KYMO_EMBED_H
#define KYMO_EMBED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The host of this process, or NULL when it is of another version. Defined by libkymo, or by a
 * program that is its own host.
 */
KYMO_API const struct kymo_host *kymo_host_get(uint32_t version);

/* reserve() is never asked for more words than this. */
#define KYMO_EMBED_WORDS_MAX (KYMO_I_ITEMS_MAX * (1 + (KYMO_STRING_MAX + 7) / 8))

/* What an item is for. */
enum kymo_item_role {
	KYMO_ITEM_TIME = 0,
	KYMO_ITEM_TID = 1,
	KYMO_ITEM_NAME = 2,
	KYMO_ITEM_ID = 3,
	KYMO_ITEM_ARG = 4
};

/* One item, decoded. It points into the event and into the trace point. */
struct kymo_item {
	uint32_t role;      /* enum kymo_item_role */
	uint32_t type;      /* enum kymo_type */
	const char *key;    /* of an argument; else "" */
	uint64_t word;      /* as it was stored; of a string, its length word */
	const char *string; /* KYMO_TYPE_STRING: not terminated; NULL when it was a null pointer */
	uint32_t string_bytes; /* of string */
	int cut;               /* the string was longer than KYMO_STRING_MAX */
};

/* A walk over the items of one event. */
struct kymo_items {
	const struct kymo_site_info *info;
	const uint64_t *next; /* the next item's first word */
	const uint64_t *end;
	uint32_t index; /* of the next item */
};

/* Begins a walk over an event's words. The end of a span (commit's end) has none: words is 0. */
static inline struct kymo_items kymo_items_of(const struct kymo_site_info *info,
					      const uint64_t *items, uint32_t words)
{
	struct kymo_items walk;
	walk.info = info;
	walk.next = items;
	walk.end = items ? items + words : items;
	walk.index = 0;
	return walk;
}

/* What the item at that index is for. */
static inline uint32_t kymo_item_role_at(const struct kymo_site_info *info, uint32_t index)
{
	static const uint8_t flags[] = {KYMO_SITE_TIME, KYMO_SITE_TID, KYMO_SITE_NAME,
					KYMO_SITE_ID};
	for (uint32_t role = KYMO_ITEM_TIME; role < KYMO_ITEM_ARG; role++)
		if ((info->flags & flags[role]) && index-- == 0)
			return role;
	return KYMO_ITEM_ARG;
}

/*
 * Decodes the next item into *item. Returns 1, or 0 after the last; also when the words end in the
 * middle of an item, which cannot be with an event from kymo.h.
 */
static inline int kymo_items_next(struct kymo_items *walk, struct kymo_item *item)
{
	const struct kymo_site_info *info = walk->info;
	if (walk->index >= info->items || walk->next == walk->end)
		return 0;
	item->role = kymo_item_role_at(info, walk->index);
	item->type = (uint32_t)(info->types >> (4 * walk->index)) & 15u;
	item->key = item->role == KYMO_ITEM_ARG ? info->keys[walk->index] : "";
	item->word = *walk->next++;
	item->string = NULL;
	item->string_bytes = 0;
	item->cut = 0;
	walk->index++;
	if (item->type != KYMO_TYPE_STRING)
		return 1;
	const uint32_t bytes = (uint32_t)item->word;
	const size_t words = ((size_t)bytes + 7) / 8;
	if (words > (size_t)(walk->end - walk->next))
		return 0;
	item->string = item->word & KYMO_I_STRING_NULL ? NULL : (const char *)walk->next;
	item->string_bytes = bytes;
	item->cut = (item->word & KYMO_I_STRING_CUT) != 0;
	walk->next += words;
	return 1;
}

/* The value of an item of KYMO_TYPE_INT. */
static inline int64_t kymo_item_int(const struct kymo_item *item)
{
	return (int64_t)item->word;
}

/* The value of an item of KYMO_TYPE_UINT, _BOOL or _POINTER. */
static inline uint64_t kymo_item_uint(const struct kymo_item *item)
{
	return item->word;
}

/* The value of an item of KYMO_TYPE_DOUBLE. */
static inline double kymo_item_double(const struct kymo_item *item)
{
	double value;
	memcpy(&value, &item->word, sizeof(value));
	return value;
}

/* What an event of that trace point is; end as commit() got it. An enum kymo_kind. */
static inline uint32_t kymo_event_kind(const struct kymo_site_info *info, int end)
{
	return end ? (uint32_t)KYMO_KIND_END : info->kind;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KYMO_EMBED_H */
