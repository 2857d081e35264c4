/* SPDX-License-Identifier: MIT */
/*
 * array.h: the growable array: a pointer, a count and a room that their owner declares side by side.
 *
 *   struct item *items;
 *   uint32_t count, room;
 *   ...
 *   if (!KY_ARRAY_ADD(list->items, list->count, list->room, (struct item){.key = key}))
 *           return -ENOMEM;
 *   ...
 *   KY_ARRAY_FREE(list->items, list->room);
 *
 * All zero is an empty array. Count and room may be of any integer type, and growth fails rather than exceed
 * it. Room doubles, so adding costs O(1). A failure leaves the array as it was.
 *
 * The items are not from malloc: only KY_ARRAY_FREE may free them. A small array is a heap block, a large one a
 * mapping that the kernel moves when it grows: nothing is copied, and room that was never written takes no memory.
 *
 * The macros evaluate their arguments more than once: pass lvalues without side effects.
 */
#ifndef KY_BASE_ARRAY_H
#define KY_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Make room for at least need items; false without memory. New items are not initialised. */
#define KY_ARRAY_GROW(items, room, need)                                                           \
	__extension__({                                                                            \
		_Static_assert(!__builtin_types_compatible_p(__typeof__(*(items)), void),          \
			       "items have no size");                                              \
		uint64_t ky_room_ = (uint64_t)(room);                                              \
		const uint64_t ky_need_ = (uint64_t)(need);                                        \
		bool ky_fits_ = ky_need_ <= ky_room_;                                              \
		if (__builtin_expect(!ky_fits_, 0)) {                                              \
			void *const ky_items_ =                                                    \
				ky_array_grown((items), &ky_room_, sizeof(*(items)), ky_need_,     \
					       KY_ARRAY_ROOM_MAX(room));                           \
			ky_fits_ = ky_items_ != NULL;                                              \
			if (ky_fits_) {                                                            \
				(items) = ky_items_;                                               \
				(room) = (__typeof__(room))ky_room_;                               \
			}                                                                          \
		}                                                                                  \
		ky_fits_;                                                                          \
	})

/* Do the same and zero all new items, up to room. */
#define KY_ARRAY_GROW_ZERO(items, room, need)                                                      \
	__extension__({                                                                            \
		const uint64_t ky_had_ = (uint64_t)(room);                                         \
		const bool ky_grown_ = KY_ARRAY_GROW(items, room, need);                           \
		if (ky_grown_ && (uint64_t)(room) > ky_had_)                                       \
			memset((items) + ky_had_, 0,                                               \
			       (size_t)((uint64_t)(room)-ky_had_) * sizeof(*(items)));             \
		ky_grown_;                                                                         \
	})

/* Append a value; false without memory. The value is evaluated after the array has grown. */
#define KY_ARRAY_ADD(items, count, room, ...)                                                      \
	(KY_ARRAY_GROW(items, room, (uint64_t)(count) + 1)                                         \
		 ? ((void)((items)[(count)++] = (__VA_ARGS__)), true)                              \
		 : false)

/* Append a zeroed item and return its address, valid until the next growth; NULL without memory. */
#define KY_ARRAY_NEW(items, count, room)                                                           \
	(KY_ARRAY_GROW(items, room, (uint64_t)(count) + 1)                                         \
		 ? (memset(&(items)[(count)], 0, sizeof(*(items))), &(items)[(count)++])           \
		 : NULL)

/*
 * Return the first of the indexes from one to before another for which the condition, an expression of the index `at`,
 * fails; it holds for those before and for no others. Return the end when it never fails.
 */
#define KY_ARRAY_SEARCH(from, to, at, condition)                                                   \
	__extension__({                                                                            \
		__typeof__((to) + 0) ky_low_ = (from), ky_high_ = (to);                            \
		while (ky_low_ < ky_high_) {                                                       \
			const __typeof__((to) + 0) at = ky_low_ + (ky_high_ - ky_low_) / 2;        \
			if (condition)                                                             \
				ky_low_ = at + 1;                                                  \
			else                                                                       \
				ky_high_ = at;                                                     \
		}                                                                                  \
		ky_low_;                                                                           \
	})

/* Return how many items have a member of at most the value; the items are sorted by that member. */
#define KY_ARRAY_UPTO(items, count, member, value)                                                 \
	KY_ARRAY_SEARCH(0, count, ky_at_, (items)[ky_at_].member <= (value))

/* Free the items and make the array empty; the owner resets its count. */
#define KY_ARRAY_FREE(items, room)                                                                 \
	do {                                                                                       \
		ky_array_release(items);                                                           \
		(items) = NULL;                                                                    \
		(room) = 0;                                                                        \
	} while (0)

/* ---- what the macros and the tables of model/trace.h are made of ---- */

/* The largest value of an integer's type. */
#define KY_ARRAY_ROOM_MAX(room)                                                                    \
	(UINT64_MAX >> (64 - 8 * sizeof(room) + ((__typeof__(room))-1 < (__typeof__(room))1)))

/*
 * Return the items moved to where there is room for at least need of them, and set *room, which is at most
 * room_max; NULL without memory.
 */
void *ky_array_grown(void *items, uint64_t *room, size_t item_bytes, uint64_t need,
		     uint64_t room_max);
/* Return the items moved to where they have at least that many bytes; NULL without memory. */
void *ky_array_resized(void *items, size_t bytes);
/* Get memory for a large array's items from one byte to before another, at once instead of a page at a time. */
void ky_array_populate(void *items, size_t from, size_t to);
/* Free the items; NULL is allowed. */
void ky_array_release(void *items);

/*
 * ---- order: three-way comparison for qsort and bsearch ----
 *
 *   KY_ORDER(by_time, struct event, KY_COMPARE_THEN(a->ts, b->ts, KY_COMPARE(a->id, b->id)))
 */

/* Define a static function that compares the items a and b of a type. */
#define KY_ORDER(name, type, comparison)                                                           \
	static int name(const void *ky_left_, const void *ky_right_)                               \
	{                                                                                          \
		const type *const a = ky_left_, *const b = ky_right_;                              \
		return comparison;                                                                 \
	}

/* -1, 0 or 1: a is less than, equal to or greater than b. */
#define KY_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* The same; when they are equal, the comparison that follows decides. */
#define KY_COMPARE_THEN(a, b, then) ((a) != (b) ? KY_COMPARE(a, b) : (then))

/* Compare items of plain arrays. */
static inline int ky_compare_u32(const void *a, const void *b)
{
	return KY_COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

static inline int ky_compare_i64(const void *a, const void *b)
{
	return KY_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

static inline int ky_compare_double(const void *a, const void *b)
{
	return KY_COMPARE(*(const double *)a, *(const double *)b);
}

#endif
