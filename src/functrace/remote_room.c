/* SPDX-License-Identifier: MIT */
/*
 * remote_room.c: finds free addresses near a module, for the targets of its functions' jumps. It avoids addresses
 * into which a stack or the heap (brk) will grow: a gap above the heap's start is used only far away from it, one
 * below a stack not at its end.
 */
#include "functrace/remote.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REACH (UINT64_C(0x7fffffff) - (UINT64_C(1) << 20)) /* of a jump, with a margin */
#define LOWEST UINT64_C(0x100000)
#define HIGHEST UINT64_C(0x7fffffff0000)
#define HEAP_GROWS (UINT64_C(1) << 30)
#define STACK_GROWS (UINT64_C(1) << 28)
#define APART UINT64_C(65536) /* a neighbour that runs over its end hits nothing */

struct search {
	uint64_t low, high; /* the range that must contain all of it */
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

/* Try both ends of a gap, cut to what is within reach. */
static void consider_gap(struct search *search, uint64_t from, uint64_t to)
{
	from = (from > search->low ? from : search->low) + APART;
	to = (to < search->high ? to : search->high) & ~UINT64_C(4095);
	if (to < APART || to - APART < from || to - APART - from < search->bytes)
		return;
	consider(search, (from + 4095) & ~UINT64_C(4095));
	consider(search, (to - APART - search->bytes) & ~UINT64_C(4095));
}

/* Return the start of the heap, even if it does not exist yet; 0: unknown. */
static uint64_t heap_start(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 ? stat.heap_start : 0;
}

/* Try the gap without the part that the heap may grow into. */
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

/* ---- reasons of a refusal ---- */

bool ky_remote_sandboxed(pid_t tid)
{
	struct ky_proc_status theirs, ours;
	(void)ky_proc_status(tid, 0, &theirs);
	(void)ky_proc_status(KY_PROC_SELF, 0, &ours);
	return theirs.seccomp == 1 ||
	       (theirs.seccomp == 2 &&
		(theirs.seccomp_filters == 0 || theirs.seccomp_filters > ours.seccomp_filters));
}

static int read_yama(void)
{
	const int scope = ky_proc_setting("/proc/sys/kernel/yama/ptrace_scope");
	return scope == INT32_MAX ? 0 : scope;
}

static const char *why_forbidden(unsigned user)
{
	const int scope = read_yama();
	if (scope >= 3)
		return "kernel.yama.ptrace_scope is 3, which forbids it until the next boot; use "
		       "--engine sample";
	if (geteuid() != 0 && user != geteuid())
		return "it belongs to another user; run kymo as that user or with sudo";
	if (scope == 2 && geteuid() != 0)
		return "kernel.yama.ptrace_scope is 2: only root may; run kymo with sudo";
	if (scope == 1 && geteuid() != 0)
		return "kernel.yama.ptrace_scope is 1; start it with kymo run, run kymo with sudo, "
		       "or allow it: sudo sysctl kernel.yama.ptrace_scope=0";
	if (geteuid() != 0)
		return "it changed its rights (setuid) or forbids it (PR_SET_DUMPABLE); run kymo "
		       "with sudo";
	return "the kernel forbids it (a container without CAP_SYS_PTRACE?); use --engine sample";
}

void ky_remote_refusal(pid_t pid, int error, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct ky_proc_status status;
	char name[64];
	if (error == ENOENT || error == ESRCH) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot trace process %d: it has ended, or is a kernel thread", (int)pid);
		return;
	}
	if (ky_proc_status(pid, 0, &status) != 0)
		status.user = geteuid();
	if (status.tracer) {
		if (ky_proc_comm(status.tracer, 0, name, sizeof(name)) <= 0)
			snprintf(name, sizeof(name), "another program");
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot trace process %d: %s (pid %d) traces it already; end that first",
			 (int)pid, name, status.tracer);
		return;
	}
	if (error == EPERM || error == EACCES)
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "Cannot trace process %d: %s",
			 (int)pid, why_forbidden(status.user));
	else
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "Cannot trace process %d: %s",
			 (int)pid, strerror(error));
}
