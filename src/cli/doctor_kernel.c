/* SPDX-License-Identifier: MIT */
/*
 * doctor_kernel.c: what the kernel's tracing (tracefs, probes, ptrace, BPF) and the machine (clock, memory,
 * libraries) allow.
 */
#include "cli/doctor.h"

#include "capture/kernel_trace.h"
#include "process/proc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CAP_SYS_PTRACE_BIT 19

const char *ky_check_tracefs(void)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	for (unsigned i = 0; i < 2; i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s/trace", places[i]);
		if (access(path, F_OK) == 0 || errno == EACCES)
			return places[i];
	}
	return NULL;
}

void ky_check_kernel(struct ky_check *check)
{
	struct utsname name;
	check->name = "kernel";
	if (uname(&name) != 0)
		ky_check_set(check, KY_CHECK_LIMITED, "its version is not known");
	else
		ky_check_set(check, KY_CHECK_OK, "%s %s on %s", name.sysname, name.release,
			     name.machine);
}

void ky_check_tracefs_access(struct ky_check *check)
{
	const char *const place = ky_check_tracefs();
	char path[64];
	check->name = "tracefs";
	if (!place) {
		ky_check_set(check, KY_CHECK_NO, "not mounted: no kernel events, no trace_marker");
		ky_check_remedy(check, "sudo mount -t tracefs nodev /sys/kernel/tracing");
		return;
	}
	snprintf(path, sizeof(path), "%s/tracing_on", place);
	const bool readable = access(path, R_OK) == 0, writable = access(path, W_OK) == 0;
	snprintf(path, sizeof(path), "%s/trace_marker", place);
	const bool marker = access(path, W_OK) == 0;
	if (readable && writable) {
		ky_check_set(check, KY_CHECK_OK, "%s can be read and written", place);
		return;
	}
	ky_check_set(check, marker || readable ? KY_CHECK_LIMITED : KY_CHECK_NO,
		     "%s can %s, trace_marker can %s", place,
		     readable ? "be read, not written" : "not be read",
		     marker ? "be written" : "not");
	ky_check_remedy(check, "run as root, or: sudo mount -o remount,gid=$(id -g),mode=0770 %s",
			place);
}

/* Report what killed captures left, and what this kernel cannot do. */
static void check_instances(struct ky_check *check, const char *place)
{
	char path[96];
	const unsigned left = ky_kernel_trace_left_over();
	snprintf(path, sizeof(path), "%s/options/copy_trace_marker", place);
	if (left) {
		ky_check_set(check, KY_CHECK_LIMITED,
			     "%u instance%s of captures that were killed still recording", left,
			     left == 1 ? "" : "s");
		ky_check_remedy(check,
				"the next capture with --kernel removes it, or: "
				"sudo rmdir %s/instances/kymo-*",
				place);
	} else if (access(path, F_OK) != 0) {
		ky_check_set(check, KY_CHECK_LIMITED,
			     "all but what is written to trace_marker can be recorded");
		ky_check_remedy(check, "Linux 6.15 or later, for --kernel print");
	} else {
		ky_check_set(check, KY_CHECK_OK,
			     "tracepoints, system calls and trace_marker can be recorded");
	}
}

/* Check whether --kernel can have an instance of its own. */
void ky_check_kernel_events(struct ky_check *check)
{
	const char *const place = ky_check_tracefs();
	char path[96];
	check->name = "kernel events";
	if (!place) {
		ky_check_set(check, KY_CHECK_NO, "tracefs is not mounted");
		ky_check_remedy(check, "sudo mount -t tracefs nodev /sys/kernel/tracing");
		return;
	}
	snprintf(path, sizeof(path), "%s/instances", place);
	if (access(path, W_OK | X_OK) == 0) {
		check_instances(check, place);
		return;
	}
	ky_check_set(check, KY_CHECK_NO, "no instance can be made in %s", place);
	ky_check_remedy(check, "run as root, or: sudo mount -o remount,gid=$(id -g),mode=0770 %s",
			place);
}

static void check_probes(struct ky_check *check, const char *pmu, const char *file,
			 const char *what)
{
	const char *const place = ky_check_tracefs();
	char path[96];
	snprintf(path, sizeof(path), "%s/%s", place ? place : "", file);
	const bool in_tracefs = place && access(path, F_OK) == 0;
	const bool writable = place && access(path, W_OK) == 0;
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	const bool in_perf = access(path, R_OK) == 0;
	const bool root = geteuid() == 0;
	if (!in_tracefs && !in_perf) {
		ky_check_set(check, KY_CHECK_NO, "%s cannot be probed", what);
		ky_check_remedy(check, "a kernel with CONFIG_%s, and tracefs mounted",
				pmu[0] == 'k' ? "KPROBE_EVENTS" : "UPROBE_EVENTS");
	} else if (writable || (in_perf && root)) {
		ky_check_set(check, KY_CHECK_OK, "%s can be probed, by %s", what,
			     in_perf ? "perf_event_open" : "tracefs");
	} else {
		ky_check_set(check, KY_CHECK_LIMITED, "%s can be probed by root only", what);
		ky_check_remedy(
			check,
			"sudo, or CAP_PERFMON: sudo setcap cap_perfmon+ep $(command -v kymo)");
	}
}

void ky_check_kprobes(struct ky_check *check)
{
	check->name = "kprobes";
	check_probes(check, "kprobe", "kprobe_events", "functions of the kernel");
}

void ky_check_uprobes(struct ky_check *check)
{
	check->name = "uprobes";
	check_probes(check, "uprobe", "uprobe_events", "functions of programs");
}

static bool has_capability(unsigned bit)
{
	struct ky_proc_status status;
	return ky_proc_status(KY_PROC_SELF, 0, &status) == 0 && (status.capabilities >> bit & 1);
}

void ky_check_ptrace(struct ky_check *check)
{
	char scope[8];
	check->name = "ptrace";
	const bool known =
		ky_check_read("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	const int level = known ? atoi(scope) : 0;
	if (level == 0 || (level < 3 && has_capability(CAP_SYS_PTRACE_BIT))) {
		ky_check_set(check, KY_CHECK_OK, "running processes can be attached to (scope %d)",
			     level);
		return;
	}
	ky_check_set(check, level == 3 ? KY_CHECK_NO : KY_CHECK_LIMITED,
		     level == 1 ? "only processes that kymo started (scope 1)"
				: "not for ordinary users (scope %d)",
		     level);
	ky_check_remedy(check, level == 3 ? "boot with kernel.yama.ptrace_scope below 3"
					  : "sudo sysctl kernel.yama.ptrace_scope=0");
}

/* Make a map of one number, which is gone when it is closed. */
void ky_check_bpf(struct ky_check *check)
{
	union bpf_attr attr;
	check->name = "BPF";
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = 1;
	const long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd >= 0) {
		close((int)fd);
		const bool btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
		ky_check_set(check, btf ? KY_CHECK_OK : KY_CHECK_LIMITED,
			     "programs can be loaded%s", btf ? "" : "; the kernel has no BTF");
	} else if (errno == ENOSYS) {
		ky_check_set(check, KY_CHECK_NO, "the kernel has none");
		ky_check_remedy(check, "a kernel with CONFIG_BPF_SYSCALL");
	} else {
		ky_check_set(check, KY_CHECK_NO, "bpf(): %s", strerror(errno));
		ky_check_remedy(check,
				"sudo, or: sudo setcap cap_bpf,cap_perfmon+ep $(command -v kymo)");
	}
}

/* ---- the machine ---- */

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

#if defined(__x86_64__)
/* Check whether the counter runs at one speed, in all states of sleep. */
static bool counter_is_invariant(void)
{
	char line[4096];
	bool constant = false, nonstop = false;
	FILE *const file = fopen("/proc/cpuinfo", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "flags", 5) != 0)
			continue;
		constant = strstr(line, " constant_tsc") != NULL;
		nonstop = strstr(line, " nonstop_tsc") != NULL;
		break;
	}
	if (file)
		fclose(file);
	return constant && nonstop;
}
#elif defined(__aarch64__)
static bool counter_is_invariant(void)
{
	return true;
}
#else
static bool counter_is_invariant(void)
{
	return false;
}
#endif

void ky_check_clock(struct ky_check *check)
{
	char source[32];
	check->name = "clock";
	if (!ky_check_read(CLOCK_SOURCE, source, sizeof(source)))
		snprintf(source, sizeof(source), "not known");
	const bool fast = strcmp(source, "tsc") == 0 || strncmp(source, "arch", 4) == 0 ||
			  strncmp(source, "kvm-", 4) == 0;
	const bool invariant = counter_is_invariant();
	if (invariant && fast) {
		ky_check_set(check, KY_CHECK_OK,
			     "the CPU's counter is invariant; the kernel's clock is %s", source);
		return;
	}
	ky_check_set(check, KY_CHECK_LIMITED, "%s; the kernel's clock is %s: an event costs more",
		     invariant ? "the CPU's counter is invariant"
			       : "the CPU's counter is not invariant",
		     source);
	if (!fast)
		ky_check_remedy(check, "echo tsc | sudo tee %s, where the CPU allows it",
				CLOCK_SOURCE);
}

void ky_check_memfd(struct ky_check *check)
{
	check->name = "memfd and seals";
	const int fd = memfd_create("kymo-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		ky_check_set(check, KY_CHECK_NO, "memfd_create(): %s", strerror(errno));
		ky_check_remedy(check, "KYMO_DRUM_DIR=/dev/shm makes the rings files instead");
		return;
	}
	if (ftruncate(fd, 4096) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		ky_check_set(check, KY_CHECK_LIMITED, "a memfd cannot be sealed: %s",
			     strerror(errno));
		ky_check_remedy(check, "KYMO_DRUM_DIR=/dev/shm makes the rings files instead");
	} else {
		ky_check_set(check, KY_CHECK_OK, "rings can be shared with other processes");
	}
	close(fd);
}

/* Check the library that the recorder loads to compress a file. */
static void check_library(struct ky_check *check, const char *file, const char *uses,
			  const char *package)
{
	void *const library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
	if (library) {
		dlclose(library);
		ky_check_set(check, KY_CHECK_OK, "%s is there, for %s", file, uses);
		return;
	}
	ky_check_set(check, KY_CHECK_LIMITED, "%s is not there: %s cannot be written", file, uses);
	ky_check_remedy(check, "sudo apt install %s", package);
}

void ky_check_zlib(struct ky_check *check)
{
	check->name = "zlib";
	check_library(check, "libz.so.1", ".json.gz and .fxt.gz", "zlib1g");
}

void ky_check_zstd(struct ky_check *check)
{
	check->name = "zstd";
	check_library(check, "libzstd.so.1", "packed .kymo files", "libzstd1");
}
