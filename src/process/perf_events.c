/* SPDX-License-Identifier: MIT */
/* perf_events.c: see perf_events.h. */
#include "process/perf_events.h"

#include "base/array.h"
#include "process/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX 8192u

static int perf_open(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	const long fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Raise the limit of descriptors when that many are needed. Not before: programs that kymo starts inherit it. */
static bool raise_files_limit(uint64_t needed)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max ||
	    limit.rlim_cur / 2 > needed)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int open_event(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	const int fd = perf_open(attr, tid, cpu);
	return fd == -EMFILE && raise_files_limit(UINT64_MAX) ? perf_open(attr, tid, cpu) : fd;
}

int ky_perf_events_refused(int error, const char *what, int paranoid,
			   char message[KY_MESSAGE_BYTES])
{
	const char *why = strerror(-error);
	if (error == -EACCES || error == -EPERM)
		return ky_fail(
			message, error,
			"%s: %s (perf_event_paranoid is %d); run kymo as root, or: sudo sysctl "
			"kernel.perf_event_paranoid=%d",
			what, why, ky_proc_setting("/proc/sys/kernel/perf_event_paranoid"),
			paranoid);
	if (error == -ENOSYS)
		return ky_fail(
			message, error,
			"%s: %s; it takes a kernel with CONFIG_PERF_EVENTS, in a container one "
			"whose seccomp profile allows perf_event_open",
			what, why);
	if (error == -EMFILE)
		return ky_fail(message, error, "%s: %s; raise the limit of open files: ulimit -n",
			       what, why);
	return ky_fail(message, error, "%s: perf_event_open: %s", what, why);
}

struct perf_event_attr ky_perf_events_clock(uint32_t per_second, uint64_t sample_type)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = per_second,
		.sample_type = sample_type,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.inherit = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.exclude_idle = 1,
		.exclude_guest = 1,
		.watermark = 1,
	};
}

/* Try the event on kymo itself, with less where the kernel is too old or too strict. */
static int settle(struct ky_perf_events *events)
{
	struct perf_event_attr *attr = &events->attr;
	attr->disabled = 1;
	for (;;) {
		const int fd = open_event(attr, 0, -1);
		if (fd >= 0) {
			close(fd);
			attr->disabled = 0;
			return 0;
		}
		if ((fd == -EACCES || fd == -EPERM) && !attr->exclude_kernel) {
			attr->exclude_kernel = attr->exclude_hv = 1;
			attr->exclude_callchain_kernel = 1;
			events->kernel_hidden = true;
		} else if (fd == -EINVAL && attr->build_id) {
			attr->build_id = 0; /* before Linux 5.12 */
		} else {
			return fd;
		}
	}
}

/* ---- a ring for each CPU ---- */

static int open_cpu(struct ky_perf_events *events, uint32_t number, uint64_t ring_bytes)
{
	struct ky_perf_cpu *cpu = &events->cpus[events->cpus_count];
	/* It records nothing of the kernel, so anyone may open it. It must have the clock of the others. */
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = events->attr.sample_type &
			       ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER),
		.sample_id_all = 1,
		.use_clockid = events->attr.use_clockid,
		.clockid = events->attr.clockid,
		.exclude_kernel = 1,
		.exclude_callchain_kernel = events->attr.exclude_callchain_kernel,
		.watermark = events->attr.watermark,
		.wakeup_watermark = events->attr.wakeup_watermark,
	};
	*cpu = (struct ky_perf_cpu){.number = number};
	cpu->fd = open_event(&attr, 0, (int)number);
	if (cpu->fd < 0)
		return cpu->fd;
	int error = ky_perf_ring_open(&cpu->ring, cpu->fd, ring_bytes);
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = events->cpus_count};
	if (!error && epoll_ctl(events->poll_fd, EPOLL_CTL_ADD, cpu->fd, &interest) != 0)
		error = -errno;
	if (error) {
		ky_perf_ring_close(&cpu->ring);
		close(cpu->fd);
		return error;
	}
	events->cpus_count++;
	return 0;
}

/* Open rings for the CPUs first to last, without those that are off. */
static int open_range(struct ky_perf_events *events, unsigned first, unsigned last,
		      uint64_t ring_bytes)
{
	int error = 0;
	for (unsigned i = first; !error && i <= last && events->cpus_count < CPUS_MAX; i++) {
		error = open_cpu(events, i, ring_bytes);
		error = error == -ENODEV ? 0 : error;
	}
	return error;
}

/* Open a ring for each CPU that is on ("0-3,6"); in a container without /sys, try each that there may be. */
static int open_cpus(struct ky_perf_events *events, uint64_t ring_bytes)
{
	FILE *list = fopen("/sys/devices/system/cpu/online", "re");
	const long possible = sysconf(_SC_NPROCESSORS_CONF);
	unsigned first, last;
	int error = 0;
	events->cpus = calloc(CPUS_MAX, sizeof(*events->cpus));
	if (!events->cpus)
		error = -ENOMEM;
	else if (!list && possible > 0)
		error = open_range(events, 0, (unsigned)possible - 1, ring_bytes);
	while (!error && list && fscanf(list, "%u", &first) == 1) {
		int next = fgetc(list);
		last = first;
		if (next == '-') {
			if (fscanf(list, "%u", &last) != 1)
				break;
			next = fgetc(list);
		}
		error = open_range(events, first, last, ring_bytes);
		if (next != ',')
			break;
	}
	if (list)
		fclose(list);
	return error ? error : events->cpus_count ? 0 : -ENODEV;
}

int ky_perf_events_open(struct ky_perf_events *events, const struct perf_event_attr *attr,
			uint64_t ring_bytes)
{
	*events = (struct ky_perf_events){.attr = *attr, .poll_fd = epoll_create1(EPOLL_CLOEXEC)};
	int error = events->poll_fd < 0 ? -errno : settle(events);
	if (!error)
		error = open_cpus(events, ring_bytes);
	if (error)
		ky_perf_events_close(events);
	return error;
}

void ky_perf_events_close(struct ky_perf_events *events)
{
	for (uint32_t i = 0; i < events->cpus_count; i++) {
		ky_perf_ring_close(&events->cpus[i].ring);
		close(events->cpus[i].fd);
	}
	free(events->cpus);
	if (events->poll_fd >= 0)
		close(events->poll_fd);
	*events = (struct ky_perf_events){.poll_fd = -1};
}

/* ---- events ---- */

int ky_perf_events_on(const struct ky_perf_cpu *cpu, const struct perf_event_attr *attr, pid_t tid)
{
	const int fd = open_event(attr, tid, (int)cpu->number);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fd) == 0)
		return fd;
	const int error = -errno;
	close(fd);
	return error;
}

static int add_on(struct ky_perf_set *set, const struct perf_event_attr *attr, pid_t tid,
		  const struct ky_perf_cpu *cpu)
{
	const int fd = ky_perf_events_on(cpu, attr, tid);
	if (fd < 0 || KY_ARRAY_ADD(set->fds, set->count, set->room, fd))
		return fd < 0 ? fd : 0;
	close(fd);
	return -ENOMEM;
}

int ky_perf_set_add(struct ky_perf_set *set, const struct ky_perf_events *events,
		    const struct perf_event_attr *given, pid_t tid)
{
	const uint32_t before = set->count;
	struct perf_event_attr attr = *given;
	int error = 0;
	attr.disabled = 1;
	raise_files_limit((uint64_t)before + events->cpus_count);
	for (uint32_t i = 0; i < events->cpus_count && !error; i++) {
		error = add_on(set, &attr, tid, &events->cpus[i]);
		error = error == -ENODEV ? 0 : error;
	}
	if (!error && set->count == before)
		error = -ENODEV;
	while (error && set->count > before)
		close(set->fds[--set->count]);
	for (uint32_t i = before; !attr.enable_on_exec && i < set->count; i++)
		ioctl(set->fds[i], PERF_EVENT_IOC_ENABLE, 0);
	return error;
}

void ky_perf_set_close(struct ky_perf_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		close(set->fds[i]);
	KY_ARRAY_FREE(set->fds, set->room);
	*set = (struct ky_perf_set){0};
}

/* ---- rings ---- */

#define RECORD_MAX 65536u /* what its size can say */

int ky_perf_ring_open(struct ky_perf_ring *ring, int fd, uint64_t bytes)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t pages = 1;
	*ring = (struct ky_perf_ring){.whole = malloc(RECORD_MAX)};
	if (!ring->whole)
		return -ENOMEM;
	while (2 * pages * page_bytes <= bytes)
		pages *= 2;
	void *mapped = MAP_FAILED;
	for (; pages && mapped == MAP_FAILED; pages /= 2) {
		mapped = mmap(NULL, (size_t)((pages + 1) * page_bytes), PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0);
		ring->bytes = pages * page_bytes;
		if (mapped == MAP_FAILED && errno != EPERM && errno != ENOMEM)
			break;
	}
	if (mapped == MAP_FAILED) {
		const int error = -errno;
		ky_perf_ring_close(ring);
		return error;
	}
	ring->page = mapped;
	ring->data = (uint8_t *)mapped + page_bytes;
	ring->at = ring->page->data_tail;
	ring->head = ring->at;
	return 0;
}

void ky_perf_ring_close(struct ky_perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, (size_t)(ring->bytes + (uint64_t)sysconf(_SC_PAGESIZE)));
	free(ring->whole);
	*ring = (struct ky_perf_ring){0};
}

void ky_perf_ring_begin(struct ky_perf_ring *ring)
{
	/* Pairs with the kernel's barrier before it stores data_head: the records are there. */
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

const struct perf_event_header *ky_perf_ring_next(struct ky_perf_ring *ring)
{
	struct perf_event_header head;
	const uint64_t left = ring->head - ring->at;
	if (left < sizeof(head))
		return NULL;
	/* Records are of whole words: a head never goes over the end. */
	const uint64_t place = ring->at & (ring->bytes - 1);
	memcpy(&head, ring->data + place, sizeof(head));
	if (head.size < sizeof(head) || head.size > left) {
		/* Not what the kernel writes: all of it is passed over. */
		ring->at = ring->head;
		return NULL;
	}
	ring->at += head.size;
	const uint64_t until_end = ring->bytes - place;
	if (head.size <= until_end)
		return (const struct perf_event_header *)(const void *)(ring->data + place);
	memcpy(ring->whole, ring->data + place, (size_t)until_end);
	memcpy(ring->whole + until_end, ring->data, (size_t)(head.size - until_end));
	return (const struct perf_event_header *)(const void *)ring->whole;
}

void ky_perf_ring_end(struct ky_perf_ring *ring)
{
	/* Pairs with the kernel's load of data_tail: all was read before it is written over. */
	__atomic_store_n(&ring->page->data_tail, ring->at, __ATOMIC_RELEASE);
}
