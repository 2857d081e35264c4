/* SPDX-License-Identifier: MIT */
/*
 * remote_room.c: free addresses near a module, for what its functions jump to. Not where a stack or the heap (brk) will
 * grow into: a gap above the heap's beginning is used only far away from it, one below a stack not at its end.
 */
#include "functrace/remote.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <string.h>

#define REACH (UINT64_C(0x7fffffff) - (UINT64_C(1) << 20)) /* of a jump, with a margin */
#define LOWEST UINT64_C(0x100000)
#define HIGHEST UINT64_C(0x7fffffff0000)
#define HEAP_GROWS (UINT64_C(1) << 30)
#define STACK_GROWS (UINT64_C(1) << 28)
#define APART UINT64_C(65536) /* a neighbour that runs over its end meets nothing */

struct search {
	uint64_t low, high; /* where all of it must be */
	uint64_t from, to;  /* the module */
	uint64_t bytes;
	uint64_t best, best_distance;
};

static void consider(struct search *search, uint64_t at)
{
	const uint64_t end = at + search->bytes;
	const uint64_t distance = at >= search->to ? at - search->to : search->from - end;
	if (at < search->low || end > search->high || (at < search->to && end > search->from))
		return;
	if (!search->best || distance < search->best_distance) {
		search->best = at;
		search->best_distance = distance;
	}
}

/* Both ends of a gap, cut to what is within reach. */
static void consider_gap(struct search *search, uint64_t from, uint64_t to)
{
	from = (from > search->low ? from : search->low) + APART;
	to = (to < search->high ? to : search->high) & ~UINT64_C(4095);
	if (to < APART || to - APART < from || to - APART - from < search->bytes)
		return;
	consider(search, (from + 4095) & ~UINT64_C(4095));
	consider(search, (to - APART - search->bytes) & ~UINT64_C(4095));
}

/* Returns where the heap begins, whether or not it is there already; 0: unknown. */
static uint64_t heap_start(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 ? stat.heap_start : 0;
}

/* The gap without what the heap may become. */
static void consider_beside_heap(struct search *search, uint64_t from, uint64_t to, uint64_t heap)
{
	const uint64_t heap_end = heap + HEAP_GROWS;
	if (!heap || heap >= to || heap_end <= from) {
		consider_gap(search, from, to);
		return;
	}
	if (from < heap)
		consider_gap(search, from, heap);
	if (heap_end < to)
		consider_gap(search, heap_end, to);
}

uint64_t ky_remote_find_room(const struct ky_remote *remote, uint64_t from, uint64_t to,
			     uint64_t bytes)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	uint64_t last = LOWEST;
	struct search search = {.low = to > REACH + LOWEST ? to - REACH : LOWEST,
				.high = from + REACH < HIGHEST ? from + REACH : HIGHEST,
				.from = from,
				.to = to,
				.bytes = bytes};
	const uint64_t heap = heap_start(remote->pid);
	if (ky_proc_maps_open(&maps, remote->pid) != 0)
		return 0;
	while (ky_proc_maps_next(&maps, &mapping)) {
		const bool stack = strncmp(mapping.path, "[stack", 6) == 0;
		const uint64_t grows = stack ? STACK_GROWS : 0;
		if (mapping.start > last + grows)
			consider_beside_heap(&search, last, mapping.start - grows, heap);
		last = mapping.end > last ? mapping.end : last;
	}
	ky_proc_maps_close(&maps);
	if (last < HIGHEST)
		consider_beside_heap(&search, last, HIGHEST, heap);
	return search.best;
}
