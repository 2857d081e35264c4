/* SPDX-License-Identifier: MIT */
/* doctor_perf.c: what perf_event_open() allows, by trying it on kymo itself. */
#include "cli/doctor.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

/* Return 0, or the errno of opening such an event. */
static int try_event(unsigned type, unsigned long long config, bool kernel, int pid, int cpu)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.disabled = 1;
	attr.exclude_kernel = attr.exclude_hv = !kernel;
	const long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

static const char *paranoid(void)
{
	static char text[8];
	if (!ky_check_read(PARANOID, text, sizeof(text)))
		snprintf(text, sizeof(text), "?");
	return text;
}

/* Suggest what to do when perf_event_open() refuses. */
static void set_refused(struct ky_check *check, const char *what, int error, int wanted_level)
{
	ky_check_set(check, KY_CHECK_NO, "%s: %s (perf_event_paranoid is %s)", what,
		     strerror(error), paranoid());
	if (error == EACCES || error == EPERM)
		ky_check_remedy(check, "sudo sysctl kernel.perf_event_paranoid=%d", wanted_level);
	else if (error == ENOSYS)
		ky_check_remedy(check,
				"a kernel with CONFIG_PERF_EVENTS; in a container, a seccomp "
				"profile that allows perf_event_open");
}

/* Check whether addresses of the kernel are visible: otherwise they are zeros. */
static bool kernel_has_names(void)
{
	char first[20];
	return ky_check_read("/proc/kallsyms", first, sizeof(first)) &&
	       strspn(first, "0") < strcspn(first, " ");
}

void ky_check_perf_software(struct ky_check *check)
{
	char rate[16];
	check->name = "perf sampling";
	const int user = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false, 0, -1);
	const int kernel = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true, 0, -1);
	if (!ky_check_read("/proc/sys/kernel/perf_event_max_sample_rate", rate, sizeof(rate)))
		snprintf(rate, sizeof(rate), "?");
	if (user) {
		set_refused(check, "cpu-clock", user, 2);
	} else if (kernel) {
		ky_check_set(check, KY_CHECK_LIMITED,
			     "own processes, up to %s stacks a second, without the kernel's frames "
			     "(perf_event_paranoid is %s)",
			     rate, paranoid());
		ky_check_remedy(check, "sudo sysctl kernel.perf_event_paranoid=1");
	} else if (!kernel_has_names()) {
		ky_check_set(check, KY_CHECK_LIMITED,
			     "own processes, up to %s stacks a second, with the kernel's frames, "
			     "but not their names",
			     rate);
		ky_check_remedy(check, "sudo sysctl kernel.kptr_restrict=0, and run as root");
	} else {
		ky_check_set(check, KY_CHECK_OK,
			     "own processes, up to %s stacks a second, with the kernel's frames "
			     "and their names",
			     rate);
	}
}

void ky_check_perf_hardware(struct ky_check *check)
{
	check->name = "hardware counters";
	const int error = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, 0, -1);
	if (!error) {
		ky_check_set(check, KY_CHECK_OK, "cycles can be counted");
	} else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
		ky_check_set(check, KY_CHECK_NO, "none: %s", strerror(error));
		ky_check_remedy(check,
				"in a virtual machine: switch its virtual PMU on at the host; "
				"cpu-clock is used instead");
	} else {
		set_refused(check, "cycles", error, 2);
	}
}

void ky_check_perf_system(struct ky_check *check)
{
	check->name = "perf system wide";
	const int error = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true, -1, 0);
	if (!error)
		ky_check_set(check, KY_CHECK_OK, "all processes on a CPU");
	else
		set_refused(check, "all processes on a CPU", error, 0);
}

void ky_check_perf_tracepoints(struct ky_check *check)
{
	const char *const place = ky_check_tracefs();
	char path[96], id[16];
	check->name = "perf tracepoints";
	snprintf(path, sizeof(path), "%s/events/sched/sched_switch/id", place ? place : "");
	if (!place || !ky_check_read(path, id, sizeof(id))) {
		ky_check_set(check, KY_CHECK_NO,
			     "the ids of events cannot be read without tracefs");
		ky_check_remedy(check, place ? "run as root, or give yourself tracefs (above)"
					     : "sudo mount -t tracefs nodev /sys/kernel/tracing");
		return;
	}
	const int error = try_event(PERF_TYPE_TRACEPOINT, strtoull(id, NULL, 10), true, -1, 0);
	if (!error)
		ky_check_set(check, KY_CHECK_OK, "sched_switch of all processes");
	else
		set_refused(check, "sched_switch", error, -1);
}

void ky_check_intel_pt(struct ky_check *check)
{
	char type[16];
	check->name = "Intel PT";
	if (!ky_check_read("/sys/bus/event_source/devices/intel_pt/type", type, sizeof(type))) {
		ky_check_set(check, KY_CHECK_NO, "not on this machine");
		ky_check_remedy(
			check, "bare metal with an Intel CPU of 2015 or later; other ways to trace "
			       "functions need none");
		return;
	}
	const int error = try_event((unsigned)strtoul(type, NULL, 10), 0, false, 0, -1);
	if (error)
		set_refused(check, "intel_pt", error, 1);
	else
		ky_check_set(check, KY_CHECK_OK, "own processes can be traced");
}
