/* SPDX-License-Identifier: MIT */
/* sample_events.c: see sample_events.h. */
#include "sample_events.h"

#include "fail.h"
#include "perf_records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What an ordinary user may lock for each CPU (perf_event_mlock_kb) has room for this and its first page. */
#define RING_BYTES (512u << 10)
#define CPUS_MAX 8192u

static int perf_open(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	const long fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/*
 * Lets this process have as many descriptors as it may, when so many are needed that others would be short of them. Not before:
 * programs that kymo starts have its limit.
 */
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

static int read_setting(const char *path)
{
	char text[32] = "";
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	return count > 0 ? atoi(text) : INT32_MAX;
}

int ky_sample_events_refused(int error, const char *what, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const int paranoid = read_setting("/proc/sys/kernel/perf_event_paranoid");
	if (error == -EACCES || error == -EPERM)
		return ky_capture_fail(
			message, error,
			"samples: %s: %s (perf_event_paranoid is %d); run kymo as root, or: sudo "
			"sysctl kernel.perf_event_paranoid=%d",
			what, strerror(-error), paranoid, strcmp(what, "all CPUs") == 0 ? 0 : 2);
	if (error == -ENOSYS)
		return ky_capture_fail(
			message, error,
			"samples: %s: %s; it takes a kernel with CONFIG_PERF_EVENTS, in "
			"a container one whose seccomp profile allows perf_event_open",
			what, strerror(-error));
	if (error == -EMFILE)
		return ky_capture_fail(message, error,
				       "samples: %s: %s; raise the limit of open files: ulimit -n",
				       what, strerror(-error));
	return ky_capture_fail(message, error, "samples: %s: perf_event_open: %s", what,
			       strerror(-error));
}

static void fill_attr(struct perf_event_attr *attr, uint32_t per_second)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->freq = 1;
	attr->sample_freq = per_second;
	attr->sample_type = KY_PERF_SAMPLE_TYPE;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->inherit = 1;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->build_id = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->exclude_idle = 1;
	attr->exclude_guest = 1;
	/* The ring tells when it is half full. */
	attr->watermark = 1;
}

/* Tries the event on kymo itself, with less where the kernel is too old or too strict. */
static int settle(struct ky_sample_events *events)
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

static int open_cpu(struct ky_sample_events *events, uint32_t number)
{
	struct ky_sample_cpu *cpu = &events->cpus[events->cpus_count];
	struct perf_event_attr attr = events->attr;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.freq = 0;
	attr.sample_period = 0;
	attr.inherit = attr.mmap = attr.mmap2 = attr.build_id = attr.comm = attr.comm_exec =
		attr.task = 0;
	/* Nothing of the kernel's is in it: this is allowed to anyone. */
	attr.exclude_kernel = 1;
	*cpu = (struct ky_sample_cpu){.number = number};
	cpu->fd = open_event(&attr, 0, (int)number);
	if (cpu->fd < 0)
		return cpu->fd;
	int error = ky_perf_ring_open(&cpu->ring, cpu->fd, RING_BYTES);
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

/* The CPUs that are on: "0-3,6". -ENOENT when it cannot be read. */
static int open_cpus(struct ky_sample_events *events)
{
	FILE *list = fopen("/sys/devices/system/cpu/online", "re");
	unsigned first, last;
	int error = list ? 0 : -ENOENT;
	events->cpus = calloc(CPUS_MAX, sizeof(*events->cpus));
	if (!events->cpus)
		error = -ENOMEM;
	while (!error && fscanf(list, "%u", &first) == 1) {
		int next = fgetc(list);
		last = first;
		if (next == '-') {
			if (fscanf(list, "%u", &last) != 1)
				break;
			next = fgetc(list);
		}
		for (unsigned i = first; !error && i <= last && events->cpus_count < CPUS_MAX;
		     i++) {
			error = open_cpu(events, i);
			/* It was switched off meanwhile. */
			error = error == -ENODEV ? 0 : error;
		}
		if (next != ',')
			break;
	}
	if (list)
		fclose(list);
	return error ? error : events->cpus_count ? 0 : -ENODEV;
}

int ky_sample_events_open(struct ky_sample_events *events, uint32_t per_second,
			  char message[KY_CAPTURE_MESSAGE_BYTES])
{
	*events = (struct ky_sample_events){.poll_fd = epoll_create1(EPOLL_CLOEXEC)};
	const int most = read_setting("/proc/sys/kernel/perf_event_max_sample_rate");
	int error = events->poll_fd < 0 ? -errno : 0;
	if (per_second == 0 || per_second > (uint32_t)most)
		error = ky_capture_fail(message, -EINVAL,
					"samples: %u a second: the kernel allows 1 to %d "
					"(kernel.perf_event_max_sample_rate)",
					per_second, most);
	else if (!error) {
		fill_attr(&events->attr, per_second);
		error = settle(events);
		if (!error)
			error = open_cpus(events);
		if (error)
			ky_sample_events_refused(error, "kymo's own clock", message);
	}
	if (error)
		ky_sample_events_close(events);
	return error;
}

void ky_sample_events_close(struct ky_sample_events *events)
{
	for (uint32_t i = 0; i < events->fds_count; i++)
		close(events->fds[i]);
	for (uint32_t i = 0; i < events->cpus_count; i++) {
		ky_perf_ring_close(&events->cpus[i].ring);
		close(events->cpus[i].fd);
	}
	free(events->fds);
	free(events->cpus);
	if (events->poll_fd >= 0)
		close(events->poll_fd);
	*events = (struct ky_sample_events){.poll_fd = -1};
}

/* ---- events ---- */

static int keep_fd(struct ky_sample_events *events, int fd)
{
	if (events->fds_count == events->fds_room) {
		const uint32_t room = events->fds_room ? 2 * events->fds_room : 64;
		int *fds = realloc(events->fds, room * sizeof(*fds));
		if (!fds)
			return -ENOMEM;
		events->fds = fds;
		events->fds_room = room;
	}
	events->fds[events->fds_count++] = fd;
	return 0;
}

static int open_on(struct ky_sample_events *events, const struct perf_event_attr *attr, pid_t tid,
		   const struct ky_sample_cpu *cpu)
{
	const int fd = open_event(attr, tid, (int)cpu->number);
	if (fd < 0)
		return fd;
	int error = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fd) == 0 ? 0 : -errno;
	if (!error)
		error = keep_fd(events, fd);
	if (error)
		close(fd);
	return error;
}

/* An event that is begun when all are there: none writes before it has its ring. */
static int open_everywhere(struct ky_sample_events *events, const struct perf_event_attr *attr,
			   pid_t tid)
{
	const uint32_t before = events->fds_count;
	int error = 0;
	raise_files_limit((uint64_t)before + events->cpus_count);
	for (uint32_t i = 0; i < events->cpus_count && !error; i++) {
		error = open_on(events, attr, tid, &events->cpus[i]);
		error = error == -ENODEV ? 0 : error;
	}
	if (!error && events->fds_count == before)
		error = -ENODEV;
	while (error && events->fds_count > before)
		close(events->fds[--events->fds_count]);
	for (uint32_t i = before; !attr->enable_on_exec && i < events->fds_count; i++)
		ioctl(events->fds[i], PERF_EVENT_IOC_ENABLE, 0);
	return error;
}

int ky_sample_events_thread(struct ky_sample_events *events, pid_t tid, bool after_exec)
{
	struct perf_event_attr attr = events->attr;
	attr.disabled = 1;
	attr.enable_on_exec = after_exec;
	return open_everywhere(events, &attr, tid);
}

int ky_sample_events_all(struct ky_sample_events *events, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	struct perf_event_attr attr = events->attr;
	attr.disabled = 1;
	attr.inherit = 0;
	const int error = open_everywhere(events, &attr, -1);
	return error ? ky_sample_events_refused(error, "all CPUs", message) : 0;
}
