/* SPDX-License-Identifier: MIT */
/*
 * fork.c: the drum of a forked child. The parent's is shared memory: the child makes one of its own, with the same trace
 * points at the same places, and puts it where the parent's is mapped, so that stubs and states need not know. kymo finds it among
 * the child's descriptors.
 */
#include "parts.h"

#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct ky_drum ky_agent_drum(const struct ky_agent_home *home)
{
	uint8_t *const base = (uint8_t *)(uintptr_t)home->drum;
	struct ky_drum_header *h = (struct ky_drum_header *)(void *)base;
	return (struct ky_drum){
		.base = base,
		.header = h,
		.clock = (struct ky_drum_clock *)(void *)(base + h->clock_at),
		.categories = (struct ky_drum_category *)(void *)(base + h->categories_at),
		.buckets = (uint32_t *)(void *)(base + h->buckets_at),
		.rings = (struct ky_drum_ring *)(void *)(base + h->rings_at),
		.bytes = home->drum_bytes,
		.fd = -1,
		.ticks_inline = true,
	};
}

/* With a number that programs do not count on: the lowest ones are given out again and again. */
static int64_t make_file(uint64_t bytes)
{
	static const char name[] = KY_DRUM_NAME;
	const int64_t low = ky_agent_system(SYS_memfd_create, (uintptr_t)name,
					    MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0);
	if (low < 0)
		return low;
	int64_t fd = -1;
	for (uint64_t least = 1000; fd < 0 && least > 3; least /= 4)
		fd = ky_agent_system(SYS_fcntl, (uint64_t)low, F_DUPFD_CLOEXEC, least, 0, 0, 0);
	ky_agent_system(SYS_close, (uint64_t)low, 0, 0, 0, 0, 0);
	if (fd < 0)
		return fd;
	const int64_t error = ky_agent_system(SYS_ftruncate, (uint64_t)fd, bytes, 0, 0, 0, 0);
	if (error == 0) {
		ky_agent_system(SYS_fcntl, (uint64_t)fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW,
				0, 0, 0);
		return fd;
	}
	ky_agent_system(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return error;
}

/* Zero pages stay holes. */
static void copy_pages(uint8_t *to, const uint8_t *from, uint64_t at, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 4096) {
		const uint64_t size = bytes - i < 4096 ? bytes - i : 4096;
		const uint64_t *words = (const uint64_t *)(const void *)(from + at + i);
		uint64_t any = 0;
		for (uint64_t w = 0; w < size / 8; w++)
			any |= words[w];
		if (any)
			memcpy(to + at + i, words, size);
	}
}

/*
 * The parent may be adding to it meanwhile: what refers to a record is copied before the records are, for they were complete
 * by then. Which categories are on is for the child's readers to say.
 */
static void copy_drum(uint8_t *to, const struct ky_drum *old, uint32_t pid)
{
	const struct ky_drum_header *h = old->header;
	struct ky_drum_header *fresh = (struct ky_drum_header *)(void *)to;
	memcpy(fresh, h, offsetof(struct ky_drum_header, heap_used));
	fresh->magic = 0;
	fresh->pid = pid;
	fresh->budget_bytes = h->budget_bytes;
	fresh->ring_bytes = h->ring_bytes;
	fresh->process_name = h->process_name;
	fresh->overflow_site = h->overflow_site;
	copy_pages(to, old->base, h->clock_at, h->categories_at - h->clock_at);
	((struct ky_drum_clock *)(void *)(to + h->clock_at))->lock = 0;
	copy_pages(to, old->base, h->buckets_at, h->rings_at - h->buckets_at);
	struct ky_drum_category *categories = (void *)(to + h->categories_at);
	for (uint32_t i = 0; i < h->categories_max && old->categories[i].name; i++)
		categories[i].name = old->categories[i].name;
	const uint64_t used = __atomic_load_n(&h->heap_used, __ATOMIC_ACQUIRE);
	fresh->heap_used = used < h->heap_bytes ? used : h->heap_bytes;
	copy_pages(to, old->base, h->heap_at, fresh->heap_used);
	__atomic_store_n(&fresh->magic, KY_DRUM_MAGIC, __ATOMIC_RELEASE);
}

static int64_t map(uint64_t at, uint64_t bytes, uint64_t flags, int64_t fd)
{
	return ky_agent_system(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, flags, (uint64_t)fd, 0);
}

bool ky_agent_child_drum(struct ky_agent_home *home, uint32_t pid)
{
	const struct ky_drum old = ky_agent_drum(home);
	const int64_t fd = make_file(home->drum_bytes);
	if (fd < 0)
		return false;
	const int64_t elsewhere = map(0, home->drum_bytes, MAP_SHARED, fd);
	bool good = elsewhere > 0;
	if (good) {
		copy_drum((uint8_t *)(uintptr_t)elsewhere, &old, pid);
		good = map(home->drum, home->drum_bytes, MAP_SHARED | MAP_FIXED, fd) >= 0;
		ky_agent_system(SYS_munmap, (uint64_t)elsewhere, home->drum_bytes, 0, 0, 0, 0);
	}
	if (good)
		ky_agent_system(SYS_madvise, home->drum, home->drum_bytes, MADV_DONTDUMP, 0, 0, 0);
	else
		ky_agent_system(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return good;
}
