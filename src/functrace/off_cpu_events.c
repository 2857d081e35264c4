/* SPDX-License-Identifier: MIT */
/* off_cpu_events.c: see off_cpu_events.h. */
#include "functrace/off_cpu_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* With those of --sample and of the engine sample it still is what an ordinary user may lock for each CPU. */
#define RING_BYTES (128u << 10)
#define CPUS_MAX 8192u

#define SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* ---- records ---- */

bool ky_switch_parse(struct ky_switch *one, const struct ky_perf_record *record)
{
	*one = (struct ky_switch){
		.time_ns = record->time, .pid = (pid_t)record->pid, .tid = (pid_t)record->tid};
	if (record->type == PERF_RECORD_EXIT)
		one->kind = KY_SWITCH_ENDED;
	else if (record->type == PERF_RECORD_COMM && record->comm.exec)
		one->kind = KY_SWITCH_EXECUTED;
	else if (record->type != PERF_RECORD_SWITCH)
		return false;
	else if (record->switched.out)
		one->kind = record->switched.preempted ? KY_SWITCH_PREEMPTED : KY_SWITCH_WAITING;
	return one->pid > 0 && one->tid > 0;
}

static void keep(struct ky_switch_events *events, const struct perf_event_header *head)
{
	struct ky_perf_record record;
	struct ky_switch one;
	if (!ky_perf_record_parse(&record, head, SAMPLE_TYPE))
		return;
	events->lost += record.type == PERF_RECORD_LOST ? record.lost : 0;
	if (!ky_switch_parse(&one, &record))
		return;
	if (events->count == events->room) {
		const size_t room = events->room ? 2 * events->room : 1024;
		struct ky_switch *const grown = realloc(events->batch, room * sizeof(*grown));
		if (!grown) {
			events->lost++;
			return;
		}
		events->batch = grown;
		events->room = room;
	}
	one.order = events->order++;
	events->batch[events->count++] = one;
}

static int by_time(const void *a_, const void *b_)
{
	const struct ky_switch *const a = a_, *const b = b_;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static uint64_t now_ns(void)
{
	struct timespec now = {0};
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ky_switch_events_read(struct ky_switch_events *events,
			   void (*take)(void *context, const struct ky_switch *one), void *context)
{
	const uint64_t until = now_ns();
	size_t at = 0;
	for (uint32_t i = 0; i < events->cpus_count; i++) {
		struct ky_perf_ring *const ring = &events->cpus[i].ring;
		ky_perf_ring_begin(ring);
		for (const struct perf_event_header *record; (record = ky_perf_ring_next(ring));)
			keep(events, record);
		ky_perf_ring_end(ring);
	}
	if (!events->count)
		return;
	qsort(events->batch, events->count, sizeof(*events->batch), by_time);
	for (; at < events->count && events->batch[at].time_ns < until; at++)
		take(context, &events->batch[at]);
	events->count -= at;
	memmove(events->batch, events->batch + at, events->count * sizeof(*events->batch));
}

/* ---- events ---- */

int ky_switch_events_refused(int error, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	const char *const remedy = error == -EACCES || error == -EPERM
					   ? "be root, or have kernel.perf_event_paranoid at most 2"
				   : error == -EMFILE
					   ? "raise the limit of open files: ulimit -n"
					   : "it takes a kernel with CONFIG_PERF_EVENTS and, in a "
					     "container, a seccomp profile that allows it";
	snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "perf_event_open: %s; %s", strerror(-error),
		 remedy);
	return error;
}

static int perf_open(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	const long fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Of a thousand threads there are thousands of events. */
static int open_event(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	struct rlimit limit;
	const int fd = perf_open(attr, tid, cpu);
	if (fd != -EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_cur == limit.rlim_max)
		return fd;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? perf_open(attr, tid, cpu) : fd;
}

/* Nothing of the kernel's own is in it: anyone may have it of processes of his own. */
static struct perf_event_attr switch_attr(void)
{
	return (struct perf_event_attr){.size = sizeof(struct perf_event_attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.sample_type = SAMPLE_TYPE,
					.sample_id_all = 1,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC,
					.exclude_kernel = 1,
					.exclude_hv = 1,
					.watermark = 1};
}

static int open_cpu(struct ky_switch_events *events, uint32_t number)
{
	struct ky_switch_cpu *const cpu = &events->cpus[events->cpus_count];
	const struct perf_event_attr attr = switch_attr();
	*cpu = (struct ky_switch_cpu){.number = number};
	cpu->fd = open_event(&attr, 0, (int)number);
	if (cpu->fd < 0)
		return cpu->fd;
	const int error = ky_perf_ring_open(&cpu->ring, cpu->fd, RING_BYTES);
	if (error) {
		close(cpu->fd);
		return error;
	}
	events->cpus_count++;
	return 0;
}

/* The CPUs there are; those that are off have no event. */
int ky_switch_events_open(struct ky_switch_events *events, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	const long configured = sysconf(_SC_NPROCESSORS_CONF);
	const uint32_t most =
		configured < 1 || configured > (long)CPUS_MAX ? CPUS_MAX : (uint32_t)configured;
	int error = 0;
	*events = (struct ky_switch_events){.cpus = calloc(most, sizeof(*events->cpus))};
	if (!events->cpus)
		error = -ENOMEM;
	for (uint32_t i = 0; !error && i < most; i++) {
		error = open_cpu(events, i);
		error = error == -ENODEV ? 0 : error;
	}
	if (!error && !events->cpus_count)
		error = -ENODEV;
	if (!error)
		return 0;
	ky_switch_events_close(events);
	return ky_switch_events_refused(error, message);
}

void ky_switch_events_close(struct ky_switch_events *events)
{
	for (uint32_t i = 0; i < events->fds_count; i++)
		close(events->fds[i]);
	for (uint32_t i = 0; i < events->cpus_count; i++) {
		ky_perf_ring_close(&events->cpus[i].ring);
		close(events->cpus[i].fd);
	}
	free(events->fds);
	free(events->cpus);
	free(events->batch);
	*events = (struct ky_switch_events){0};
}

static int keep_fd(struct ky_switch_events *events, int fd)
{
	if (events->fds_count == events->fds_room) {
		const uint32_t room = events->fds_room ? 2 * events->fds_room : 64;
		int *const fds = realloc(events->fds, room * sizeof(*fds));
		if (!fds)
			return -ENOMEM;
		events->fds = fds;
		events->fds_room = room;
	}
	events->fds[events->fds_count++] = fd;
	return 0;
}

static int open_on(struct ky_switch_events *events, pid_t tid, const struct ky_switch_cpu *cpu)
{
	struct perf_event_attr attr = switch_attr();
	attr.inherit = attr.context_switch = attr.task = attr.disabled = 1;
	attr.comm = attr.comm_exec = 1;
	const int fd = open_event(&attr, tid, (int)cpu->number);
	if (fd < 0)
		return fd;
	int error = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fd) == 0 ? 0 : -errno;
	if (!error)
		error = keep_fd(events, fd);
	if (error)
		close(fd);
	return error;
}

int ky_switch_events_thread(struct ky_switch_events *events, pid_t tid)
{
	const uint32_t before = events->fds_count;
	int error = 0;
	for (uint32_t i = 0; i < events->cpus_count && !error; i++) {
		error = open_on(events, tid, &events->cpus[i]);
		error = error == -ENODEV ? 0 : error;
	}
	while (error && events->fds_count > before)
		close(events->fds[--events->fds_count]);
	for (uint32_t i = before; i < events->fds_count; i++)
		ioctl(events->fds[i], PERF_EVENT_IOC_ENABLE, 0);
	return error;
}
