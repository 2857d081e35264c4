/* SPDX-License-Identifier: MIT */
/*
 * probe_engines.c: the two engines of probes.
 *
 * Breakpoints are debug registers. There is an event for each thread and CPU (an event of a thread
 * on all CPUs cannot have a ring and be inherited), which new threads and children inherit. Threads
 * that are made while the events are opened are found by reading the list of threads again until
 * nothing in it is new.
 *
 * Uprobes are events of a place in a file, one for each CPU.
 */
#include "capture/probe_state.h"

#include "capture/fail.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SCANS_MAX 100u

struct target {
	pid_t pid;
	struct ky_probe_event event;
	struct ky_pair_map done; /* threads */
	bool first;              /* of its threads */
};

/*
 * Raise the limit of descriptors, of which there are many: threads × CPUs. Only when it is reached,
 * because a program started later inherits it.
 */
static bool raise_limit(struct ky_probes *probes)
{
	struct rlimit limit;
	if (probes->limit_raised || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_cur == limit.rlim_max)
		return false;
	probes->limit_raised = true;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int open_on(struct ky_probes *probes, const struct target *target, pid_t tid,
		   struct ky_probe_cpu *cpu, bool remove_on_exec)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
				       .bp_type = HW_BREAKPOINT_X,
				       .bp_addr = target->event.address,
				       .bp_len = sizeof(long),
				       .exclude_kernel = 1,
				       .exclude_hv = 1,
				       .inherit = 1,
				       .task = 1,
				       .remove_on_exec = remove_on_exec};
	return ky_probe_rings_event(probes, &attr, tid, cpu, &target->event);
}

static int open_thread(struct ky_probes *probes, const struct target *target, pid_t tid)
{
	for (uint32_t c = 0; c < probes->cpus_count; c++) {
		struct ky_probe_cpu *cpu = &probes->cpus[c];
		int error = open_on(probes, target, tid, cpu, true);
		if (error == -EMFILE && raise_limit(probes))
			error = open_on(probes, target, tid, cpu, true);
		if (error == -EINVAL) /* before Linux 5.13 */
			error = open_on(probes, target, tid, cpu, false);
		if (error)
			return error;
	}
	return 0;
}

/* Look at the list of threads once more. Return the number of new ones, or -errno. */
static int scan(struct ky_probes *probes, struct target *target)
{
	int found = 0, error = 0;
	DIR *const tasks = ky_proc_tasks(target->pid);
	if (!tasks)
		return -errno;
	for (pid_t tid; !error && (tid = ky_proc_next(tasks)) > 0;) {
		bool made = false;
		if (!ky_pair_map_add(&target->done, (uint64_t)tid, 0, &made))
			error = -ENOMEM;
		if (!made)
			continue;
		found++;
		error = open_thread(probes, target, tid);
		/*
		 * The thread ended, or it inherited the events, so that all its registers are in
		 * use.
		 */
		if (error == -ESRCH || (error == -ENOSPC && !target->first))
			error = 0;
		else
			target->first = false;
	}
	ky_proc_close(tasks);
	return error ? error : found;
}

static int fail(const struct ky_probes *probes, const struct target *target, int error,
		char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const char *text = probes->options.triggers[target->event.trigger].text;
	const int pid = (int)target->pid;
	if (error == -ESRCH)
		return ky_capture_fail(message, error, "--trigger %s: process %d has ended", text,
				       pid);
	if (error == -ENOSPC)
		return ky_capture_fail(
			message, error,
			"--trigger %s: no debug register of process %d is free; a CPU has four, and a debugger may use them: use fewer places, or uprobes as root",
			text, pid);
	if (error == -EMFILE || error == -ENFILE)
		return ky_capture_fail(
			message, error,
			"--trigger %s: too many threads for the limit of open files: raise it (ulimit -n), or use uprobes as root",
			text);
	if (error == -EACCES || error == -EPERM)
		return ky_capture_fail(
			message, error,
			"--trigger %s: a breakpoint in process %d: %s; run as root, or trace your own process with kernel.perf_event_paranoid at most 2 (it is %d)",
			text, pid, strerror(-error),
			ky_proc_setting("/proc/sys/kernel/perf_event_paranoid"));
	return ky_capture_fail(message, error, "--trigger %s: a breakpoint in process %d: %s", text,
			       pid, strerror(-error));
}

int ky_probe_breakpoint_set(struct ky_probes *probes, pid_t pid, const struct ky_probe_event *event,
			    char message[KY_CAPTURE_MESSAGE_BYTES])
{
	struct target target = {.pid = pid, .event = *event, .first = true};
	int found = scan(probes, &target);
	for (uint32_t i = 1; found > 0 && i < SCANS_MAX; i++)
		found = scan(probes, &target);
	ky_pair_map_free(&target.done);
	return found < 0 ? fail(probes, &target, found, message) : 0;
}

/* ---- uprobes ---- */

static int read_type(void)
{
	int type = -1;
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	if (!file)
		return -ENODEV;
	if (fscanf(file, "%d", &type) != 1 || type < 0)
		type = -ENODEV;
	fclose(file);
	return type;
}

/* An event without a file fails, but a missing permission is reported first. */
int ky_probe_uprobe_type(void)
{
	const int type = read_type();
	if (type < 0)
		return type;
	struct perf_event_attr attr = {
		.type = (uint32_t)type, .size = sizeof(attr), .sample_period = 1, .disabled = 1};
	const long fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close((int)fd);
	else if (errno == EACCES || errno == EPERM || errno == ENOSYS)
		return -errno;
	return type;
}

static int uprobe_failed(const struct ky_probes *probes, uint32_t trigger, int error,
			 char message[KY_CAPTURE_MESSAGE_BYTES])
{
	return ky_capture_fail(
		message, error,
		"--trigger %s: cannot set a uprobe: %s; try --engine breakpoint: no root, up to four places",
		probes->options.triggers[trigger].text, strerror(-error));
}

int ky_probe_uprobe_set(struct ky_probes *probes, struct ky_probe_file *file, int fd,
			char message[KY_CAPTURE_MESSAGE_BYTES])
{
	char path[64];
	if (file->set)
		return 0;
	file->set = true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (uint32_t i = 0; i < file->count; i++) {
		const struct ky_probe_place *place = &file->places[i];
		for (uint32_t c = 0; c < probes->cpus_count; c++) {
			struct perf_event_attr attr = {.type = (uint32_t)probes->uprobe_type,
						       .config1 = (uintptr_t)path,
						       .config2 = place->offset,
						       .task = probes->events_count <
							       probes->cpus_count};
			const struct ky_probe_event event = {.trigger = place->trigger};
			const int error =
				ky_probe_rings_event(probes, &attr, -1, &probes->cpus[c], &event);
			if (error)
				return uprobe_failed(probes, place->trigger, error, message);
		}
	}
	return 0;
}
