/* SPDX-License-Identifier: MIT */
/*
 * embed.h: trace points in a library that must not depend on libkymo, and the interface of their host.
 *
 * The library's side. It ships kymo.h, kymo_args.h and kymo_impl.h (or kymo.h of the amalgamation, which is all),
 * and nothing else of kymo, and is compiled with -DKYMO_EMBEDDED. Each of its trace points looks for a host when it first runs: a function
 *
 *	const struct kymo_host *kymo_host_get(uint32_t version);
 *
 * in the program's global scope. Without one it stays off: the test of one byte. libkymo has that function, so a program
 * that links libkymo gets the library's events in its own trace without doing anything. When the host cannot be found that
 * way (a program that opens plug-ins and does not export its symbols), each file of the library calls kymo_embed_host()
 * with it before its first trace point.
 *
 * The host's side: a logger, another tracer, a language runtime with an implementation of its own. It defines
 * kymo_host_get(), which returns a struct kymo_host (kymo_impl.h documents its functions), or NULL for a version that it
 * does not know. An executable must export the function: link
 * it with -rdynamic, unless the library is on its link line.
 *
 * Requirements for the functions of a host:
 *   - Any thread may call them at any time, also in a signal handler and while the same thread is in one of them. They do
 *     not block, abort, or change errno.
 *   - category() and site() are called once or a few times for a trace point, perhaps by several threads at once. The same
 *     trace point may be registered twice; either handle may be used. When category() returns NULL, the trace point
 *     stays off for ever. When site() returns 0, it is called again at the next event.
 *   - The byte that category() returns may change at any time. While it is 0, a trace point looks at nothing else.
 *   - reserve() and commit() come in pairs on one thread, with only stores of the items between them. After a reserve() that
 *     returned 0 there is no commit().
 *   - The host adds the time and the thread of an event, at reserve() or at commit(), unless the trace point has them as
 *     items (KYMO_SITE_TIME, KYMO_SITE_TID).
 *   - When the library is unloaded, its struct kymo_site_info are unmapped: copy what is needed later.
 *
 * The items of an event. The library stores them in the words that reserve() returned, one after the other, in the order
 * below. Items that the trace point's flags do not name are left out. info->types has the type of each item, four bits an
 * item, the first lowest.
 *
 *	flag              item                              type
 *	KYMO_SITE_TIME    CLOCK_MONOTONIC nanoseconds       KYMO_TYPE_UINT
 *	KYMO_SITE_TID     thread id                         KYMO_TYPE_INT or _UINT
 *	KYMO_SITE_NAME    the name; info->name is ""        KYMO_TYPE_STRING
 *	KYMO_SITE_ID      id of an async span or a flow     KYMO_TYPE_INT, _UINT or _POINTER
 *	                  info->args arguments, whose keys  any
 *	                  are info->keys[] at the item's index
 *
 * An item is one word, except for a string:
 *
 *	_INT      two's complement          _DOUBLE   IEEE 754 binary64
 *	_UINT     unsigned                  _POINTER  the address
 *	_BOOL     0 or 1
 *
 *	_STRING    63    34   33     32   31         0
 *	          ┌────────┬──────┬──────┬────────────┐
 *	          │ 0      │ null │ cut  │ bytes      │  then the bytes, without a final NUL, filled

 *	          └────────┴──────┴──────┴────────────┘  up with zeros to whole words
 *
 *	          cut: it had more than KYMO_STRING_MAX bytes; null: it was a null pointer (0 bytes)
 *
 * KYMO_SCOPE has one trace point for beginning and end (KYMO_SITE_SCOPE). The beginning has the items; the end is a
 * commit() with end set, and has none. KYMO_PRINT's name is the printf format, and its items are the values, with empty
 * keys. KYMO_COUNTER's value is its last item.
 *
 * To walk over the items of an event:
 *
 *	struct kymo_items walk = kymo_items_of(info, reservation->items, words);
 *	struct kymo_item item;
 *	while (kymo_items_next(&walk, &item))
 *		if (item.role == KYMO_ITEM_ARG && item.type == KYMO_TYPE_DOUBLE)
 *			printf("%s=%g\n", item.key, kymo_item_double(&item));
 *
 * examples/embed/ has a library, a program with a host of its own, and the same program with libkymo.
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
 * Return the host of this process, or NULL for another version. Defined by libkymo, or by a program that is its own host.
 */
KYMO_API const struct kymo_host *kymo_host_get(uint32_t version);

/* The most words that a trace point asks reserve() for. */
#define KYMO_EMBED_WORDS_MAX (KYMO_I_ITEMS_MAX * (1 + (KYMO_STRING_MAX + 7) / 8))

/* The meaning of an item. */
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
	uint64_t word;      /* as stored; of a string, its length word */
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

/* Begin a walk over an event's words. The end of a span (commit's end) has none: words is 0. */
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

/* Return the enum kymo_item_role of the item at that index. */
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
 * Decode the next item into *item. Return 1, or 0 after the last one; also 0 when the words end in the middle of an item,
 * which no event from kymo.h does.
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

/* Return the value of an item of KYMO_TYPE_INT. */
static inline int64_t kymo_item_int(const struct kymo_item *item)
{
	return (int64_t)item->word;
}

/* Return the value of an item of KYMO_TYPE_UINT, _BOOL or _POINTER. */
static inline uint64_t kymo_item_uint(const struct kymo_item *item)
{
	return item->word;
}

/* Return the value of an item of KYMO_TYPE_DOUBLE. */
static inline double kymo_item_double(const struct kymo_item *item)
{
	double value;
	memcpy(&value, &item->word, sizeof(value));
	return value;
}

/* Return the enum kymo_kind of an event of that trace point; end as commit() got it. */
static inline uint32_t kymo_event_kind(const struct kymo_site_info *info, int end)
{
	return end ? (uint32_t)KYMO_KIND_END : info->kind;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KYMO_EMBED_H */
