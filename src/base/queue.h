/* SPDX-License-Identifier: MIT */
/*
 * queue.h: a priority queue, as a binary heap in an array of its owner: the first item is before all others, and each
 * is before the two below it.
 *
 *   KY_QUEUE(queue, struct event, a->ts < b->ts)
 *   ...
 *   queue_up(items, count++, event);                    add it
 *   count--, queue_down(items, count, 0, items[count]); remove the first
 *   queue_down(items, count, 0, changed);               replace the first
 *   for (uint32_t i = count / 2; i-- > 0;)              order all
 *           queue_down(items, count, i, items[i]);
 */
#ifndef KY_BASE_QUEUE_H
#define KY_BASE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

/* Define NAME_up and NAME_down; the condition says that the item a is before the item b. */
#define KY_QUEUE(name, type, condition)                                                            \
	static inline bool name##_is_before(type const *a, type const *b)                          \
	{                                                                                          \
		return condition;                                                                  \
	}                                                                                          \
	/* Put an item into the free place, or above. */                                           \
	__attribute__((unused)) static inline void name##_up(type *items, uint32_t at, type item)  \
	{                                                                                          \
		for (; at && name##_is_before(&item, &items[(at - 1) / 2]); at = (at - 1) / 2)     \
			items[at] = items[(at - 1) / 2];                                           \
		items[at] = item;                                                                  \
	}                                                                                          \
	/* Put an item into the place, or below. */                                                \
	static inline void name##_down(type *items, uint32_t count, uint32_t at, type item)        \
	{                                                                                          \
		for (uint32_t child; (child = 2 * at + 1) < count; at = child) {                   \
			if (child + 1 < count &&                                                   \
			    name##_is_before(&items[child + 1], &items[child]))                    \
				child++;                                                           \
			if (!name##_is_before(&items[child], &item))                               \
				break;                                                             \
			items[at] = items[child];                                                  \
		}                                                                                  \
		items[at] = item;                                                                  \
	}

#endif
