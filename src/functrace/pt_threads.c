/* SPDX-License-Identifier: MIT */
/*
 * pt_threads.c: the threads of a traced process: finds them, gives each an event until it ends, and takes the
 * kernel's records of them.
 */
#include "base/array.h"
#include "functrace/pt_process.h"
#include "functrace/pt_thread.h"
#include "os/os.h"
#include "process/perf_record.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define AUX_BYTES_ALL (UINT64_C(1) << 30) /* of all threads: pinned memory */
#define THREADS_MAX 4096u                 /* of a process */

static void name_thread(struct ky_pt_traced *traced, const struct ky_pt_thread *thread)
{
	char name[32];
	if (ky_proc_comm(traced->process.pid, thread->tid, name, sizeof(name)) > 0)
		ky_made_drum_thread(&traced->process.drum, thread->tid_inside, name);
}

static struct ky_pt_thread *find_thread(const struct ky_pt_traced *traced, pid_t tid)
{
	for (uint32_t i = 0; i < traced->count; i++)
		if (traced->threads[i].tid == tid && !traced->threads[i].ended)
			return &traced->threads[i];
	return NULL;
}

/* Make room. Threads that have ended are decoded when the owner asks for it; or now, when their rings are needed. */
static bool make_room(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		if (traced->threads[i].ended && ky_pt_thread_copy(&traced->threads[i])) {
			ky_pt_threads_report(pt, traced, &traced->threads[i]);
			ky_pt_threads_drop(pt, traced, i);
			return true;
		}
	return false;
}

static bool is_full(const struct ky_pt *pt, const struct ky_pt_traced *traced)
{
	return traced->count >= THREADS_MAX || pt->aux_all + pt->aux_bytes > AUX_BYTES_ALL;
}

/* Return 0; -ESRCH: it is gone already; or -errno. */
static int add_thread(struct ky_pt *pt, struct ky_pt_traced *traced, pid_t tid)
{
	if (is_full(pt, traced) && !make_room(pt, traced))
		return -ENOSPC;
	if (!KY_ARRAY_GROW(traced->threads, traced->room, traced->count + 1))
		return -ENOMEM;
	struct ky_pt_thread *thread = &traced->threads[traced->count];
	const int error = ky_pt_thread_open(thread, &pt->machine, tid, pt->aux_bytes);
	if (error)
		return error;
	thread->tid_inside = ky_proc_inner_pid(tid);
	pt->aux_all += thread->aux_bytes;
	thread->seen = true;
	traced->count++;
	name_thread(traced, thread);
	return 0;
}

int ky_pt_threads_scan(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	int error = 0;
	DIR *const tasks = ky_proc_tasks(traced->process.pid);
	if (!tasks)
		return -ESRCH;
	for (uint32_t i = 0; i < traced->count; i++)
		traced->threads[i].seen = false;
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0;) {
		struct ky_pt_thread *thread = find_thread(traced, tid);
		if (thread)
			thread->seen = true;
		if (thread)
			continue;
		const int failed = add_thread(pt, traced, tid);
		if (failed && failed != -ESRCH && !error)
			error = failed;
	}
	ky_proc_close(tasks);
	/* Their records may have been lost. */
	for (uint32_t i = 0; i < traced->count; i++)
		traced->threads[i].ended |= !traced->threads[i].seen;
	return error;
}

void ky_pt_threads_drop(struct ky_pt *pt, struct ky_pt_traced *traced, uint32_t index)
{
	struct ky_pt_thread *thread = &traced->threads[index];
	ky_made_drum_gone(&traced->process.drum, thread->tid_inside, thread->told_ns);
	pt->aux_all -= thread->aux_bytes;
	ky_pt_thread_close(thread);
	traced->threads[index] = traced->threads[--traced->count];
}

/* ---- records ---- */

static void take_record(struct ky_pt *pt, struct ky_pt_traced *traced, struct ky_pt_thread *thread,
			const struct ky_perf_record *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		(void)ky_pt_space_map(&traced->process.space, &record->map);
		traced->look = true;
		break;
	case PERF_RECORD_COMM:
		if ((pid_t)record->tid == thread->tid)
			ky_made_drum_thread(&traced->process.drum, thread->tid_inside,
					    record->comm.name);
		break;
	case PERF_RECORD_EXIT:
		thread->ended |= (pid_t)record->tid == thread->tid;
		break;
	case PERF_RECORD_LOST:
		traced->look = true;
		ky_pt_note_once(pt, &pt->said_lost,
				"pt: the kernel lost records of mappings: some code "
				"may be unknown");
		break;
	default:
		break;
	}
}

/* Take the records. Look for new threads after all records: the list of threads may move then. */
void ky_pt_threads_records(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	const uint64_t sample_type = ky_pt_machine_event(&pt->machine).sample_type;
	for (uint32_t i = 0; i < traced->count; i++) {
		struct ky_pt_thread *thread = &traced->threads[i];
		struct ky_perf_record record;
		const struct perf_event_header *header;
		ky_perf_ring_begin(&thread->records);
		while ((header = ky_perf_ring_next(&thread->records)))
			if (ky_perf_record_parse(&record, header, sample_type))
				take_record(pt, traced, thread, &record);
		ky_perf_ring_end(&thread->records);
	}
	/* Rings of several threads are not read in the order of time: the present mappings decide. */
	if (traced->look && !traced->ended)
		(void)ky_pt_space_look(&traced->process.space);
	traced->look = false;
}

/* ---- a thread ---- */

#define RECORDS_BYTES (64u << 10)
#define AUX_BYTES_MIN (16u << 10)
#define PAGE_TRIES 1000

/* Map the AUX ring, which lies behind the records in the descriptor's own counting. */
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

/* Stop the event. The kernel stops it on the CPU where the thread is, and only then returns: head is final. */
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
	/* Zero is a packet, too (PAD): without a meaning, at the start. */
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
	/* perf's clock cannot be read; but its value for this moment can. */
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

/* ---- copies of the rings ---- */

static void say_memory(struct ky_pt *pt)
{
	ky_pt_note_once(pt, &pt->said_memory,
			"pt: out of memory while decoding: some calls are missing");
}

void ky_pt_threads_copy(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		ky_pt_thread_pause(&traced->threads[i]);
	for (uint32_t i = 0; i < traced->count; i++)
		if (!ky_pt_thread_copy(&traced->threads[i]))
			say_memory(pt);
	for (uint32_t i = 0; i < traced->count; i++)
		if (!traced->threads[i].ended)
			ky_pt_thread_resume(&traced->threads[i]);
}

void ky_pt_threads_report(struct ky_pt *pt, struct ky_pt_traced *traced,
			  struct ky_pt_thread *thread)
{
	struct ky_pt_window window = {.aux = thread->window,
				      .bytes = thread->window_bytes,
				      .cpu = pt->machine.cpu,
				      .since_ns = thread->told_ns};
	uint64_t until = 0;
	if (!thread->window)
		return;
	if (!ky_pt_thread_time(thread, &window.time))
		ky_pt_note_once(
			pt, &pt->said_time,
			"pt: the kernel does not report how the CPU's counter relates to its clock "
			"(is the clock source tsc?): nothing can be decoded");
	else if (ky_pt_process_tell(&traced->process, thread->tid_inside, &window, &until) != 0)
		say_memory(pt);
	if (until)
		thread->told_ns = until + 1;
	free(thread->window);
	thread->window = NULL;
}
