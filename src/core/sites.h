/* SPDX-License-Identifier: MIT */
/*
 * sites.h: a reader's own copies of trace points and threads, made when first met and kept as long as the reader. They are
 * found by their place in the heap and by process and thread id.
 *
 * Invariants: by_place[i] is in all; all[i]->index is i. The table of threads is at most half full, and each thread's
 * index is less than threads_count. A copy never moves or changes, except for a thread's name.
 */
#ifndef KY_CORE_SITES_H
#define KY_CORE_SITES_H

#include "core/drum_view.h"

struct ky_text_copy;

struct ky_sites {
	const struct ky_drum_view *view;
	struct ky_site **by_place; /* heap_bytes / KY_HEAP_UNIT of them, NULL where none was met */
	struct ky_text_copy **texts; /* strings, likewise; none is freed before the reader ends */
	struct ky_text_copy *newest; /* all of them in a list */
	uint64_t bytes_left;         /* for strings: when records overlap, their sum is unbounded */
	uint64_t
		written_left; /* for trace points, each with all its strings, as writers write them */
	struct ky_site **all; /* by index */
	uint32_t count;
	uint32_t room;
	struct ky_thread **threads; /* hash table by pid and tid, a power of two in size */
	uint32_t threads_count;
	uint32_t threads_room;
	bool several;           /* blocks may be of children of the drum's process */
	uint64_t seed;          /* of that table: no drum can force collisions */
	uint32_t *thread_names; /* by index: the record of the name as last seen */
	bool no_memory;         /* for something that was met, which is missing */
};

/* Return 0 or -ENOMEM. */
int ky_sites_open(struct ky_sites *sites, const struct ky_drum_view *view);
void ky_sites_close(struct ky_sites *sites);

/* Add the trace point first met at this place of the heap. Return NULL when there is none, or no room. */
const struct ky_site *ky_sites_add(struct ky_sites *sites, uint32_t place, uint32_t at);

/* Return the trace point of an event's header word; NULL when there is none, or no room. */
static inline const struct ky_site *ky_sites_get(struct ky_sites *sites, uint64_t word)
{
	const uint32_t at = KY_WORD_SITE(word);
	const uint64_t first = sites->view->header.heap_at / KY_HEAP_UNIT;
	if (at < first || at - first >= sites->view->header.heap_bytes / KY_HEAP_UNIT)
		return NULL;
	const uint32_t place = (uint32_t)(at - first);
	const struct ky_site *site = sites->by_place[place];
	return site ? site : ky_sites_add(sites, place, at);
}

/*
 * Return the thread of a process (0: the drum's own), made if new; NULL without memory. *renamed is set when it is new or
 * has another name now. ticks: when the block began that has the name; an older block's does not count.
 */
struct ky_thread *ky_sites_thread(struct ky_sites *sites, uint32_t pid, uint32_t tid, uint32_t name,
				  uint64_t ticks, bool *renamed);

#endif
