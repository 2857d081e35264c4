/* SPDX-License-Identifier: MIT */
/* pt_thread.c: see pt_thread.h. */
#include "functrace/pt_thread.h"

#include "os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS_BYTES (64u << 10)
#define AUX_BYTES_MIN (16u << 10)
#define PAGE_TRIES 1000

/* The AUX ring lies behind the records in the descriptor's own counting. */
static int map_aux(struct ky_pt_thread *thread, uint64_t bytes)
{
	struct perf_event_mmap_page *page = thread->records.page;
	const uint64_t offset = page->data_offset + page->data_size;
	uint64_t size = AUX_BYTES_MIN;
	while (size * 2 <= bytes)
		size *= 2;
	for (; size >= AUX_BYTES_MIN; size /= 2) {
		page->aux_offset = offset;
		page->aux_size = size;
		void *mapped =
			mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, thread->fd, (off_t)offset);
		if (mapped != MAP_FAILED) {
			thread->aux = mapped;
			thread->aux_bytes = size;
			return 0;
		}
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return -errno;
}

int ky_pt_thread_open(struct ky_pt_thread *thread, const struct ky_pt_machine *machine, pid_t tid,
		      uint64_t aux_bytes)
{
	*thread = (struct ky_pt_thread){.tid = tid, .tid_inside = tid};
	thread->fd = ky_pt_machine_open(machine, tid);
	if (thread->fd < 0)
		return thread->fd;
	int error = ky_perf_ring_open(&thread->records, thread->fd, RECORDS_BYTES);
	if (error == 0)
		error = map_aux(thread, aux_bytes);
	if (error == 0 && ioctl(thread->fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
		error = -errno;
	if (error)
		ky_pt_thread_close(thread);
	return error;
}

void ky_pt_thread_close(struct ky_pt_thread *thread)
{
	if (thread->aux)
		munmap(thread->aux, (size_t)thread->aux_bytes);
	if (thread->records.page)
		ky_perf_ring_close(&thread->records);
	if (thread->fd >= 0)
		close(thread->fd);
	free(thread->window);
	*thread = (struct ky_pt_thread){.fd = -1};
}

/* The kernel stops the event on the CPU where the thread is, and only then returns: head is final. */
void ky_pt_thread_pause(struct ky_pt_thread *thread)
{
	(void)ioctl(thread->fd, PERF_EVENT_IOC_DISABLE, 0);
}

void ky_pt_thread_resume(struct ky_pt_thread *thread)
{
	(void)ioctl(thread->fd, PERF_EVENT_IOC_ENABLE, 0);
}

size_t ky_pt_thread_unroll(uint8_t *out, const uint8_t *ring, size_t bytes, uint64_t head)
{
	size_t from = (size_t)(head & (bytes - 1));
	const size_t newest = from;
	/* Zero is a packet, too (PAD): without a meaning, at the beginning. */
	while (from < bytes && ring[from] == 0)
		from++;
	memcpy(out, ring + from, bytes - from);
	memcpy(out + (bytes - from), ring, newest);
	return bytes - from + newest;
}

bool ky_pt_thread_copy(struct ky_pt_thread *thread)
{
	free(thread->window);
	thread->window_bytes = 0;
	thread->last = thread->ended;
	thread->window = malloc((size_t)thread->aux_bytes);
	if (!thread->window)
		return false;
	/* Pairs with the kernel's barrier before it stores aux_head: the packets are there. */
	const uint64_t head = __atomic_load_n(&thread->records.page->aux_head, __ATOMIC_ACQUIRE);
	thread->window_bytes =
		ky_pt_thread_unroll(thread->window, thread->aux, (size_t)thread->aux_bytes, head);
	return true;
}

bool ky_pt_thread_page_time(const struct perf_event_mmap_page *page, struct ky_pt_time *time)
{
	for (int i = 0; i < PAGE_TRIES; i++) {
		/* Pairs with the kernel's count around its writes: the same before and after, and even, is whole. */
		const uint32_t before = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		const bool told = page->cap_user_time_zero;
		*time = (struct ky_pt_time){.zero = page->time_zero,
					    .mult = page->time_mult,
					    .shift = page->time_shift};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (before == __atomic_load_n(&page->lock, __ATOMIC_RELAXED) && !(before & 1))
			return told && time->mult;
	}
	return false;
}

bool ky_pt_thread_time(const struct ky_pt_thread *thread, struct ky_pt_time *time)
{
	if (!ky_pt_thread_page_time(thread->records.page, time))
		return false;
	/* perf's clock is not one that can be read; but what it has for this moment can. */
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 16; i++) {
		const uint64_t before = ky_cpu_ticks();
		const uint64_t monotonic = ky_os_monotonic();
		const uint64_t after = ky_cpu_ticks();
		if (after - before >= best)
			continue;
		best = after - before;
		struct ky_pt_time plain = *time;
		plain.offset_ns = 0;
		time->offset_ns = (int64_t)(monotonic - ky_pt_time_ns(&plain, before + best / 2));
	}
	return true;
}
