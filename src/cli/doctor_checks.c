/* SPDX-License-Identifier: MIT */
/*
 * doctor_checks.c: what the kernel's tracing (tracefs, probes, ptrace, BPF), perf_event_open() and the machine (clock, memory,
 * libraries) allow.
 */
#include "cli/doctor.h"

#include "capture/kernel_trace.h"
#include "process/proc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static void set(struct ky_check *check,
						      enum ky_check_state state, const char *format,
						      ...)
{
	va_list args;
	check->state = state;
	va_start(args, format);
	vsnprintf(check->detail, sizeof(check->detail), format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void set_remedy(struct ky_check *check,
							     const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(check->remedy, sizeof(check->remedy), format, args);
	va_end(args);
}

/* Read the first line of a small file; false: it cannot be read. */
static bool read_line(const char *path, char *text, unsigned bytes)
{
	FILE *const file = fopen(path, "re");
	const bool read = file && fgets(text, (int)bytes, file);
	if (file)
		fclose(file);
	if (read)
		text[strcspn(text, "\n")] = 0;
	return read;
}

/* ---- the kernel and the machine ---- */

#define CAP_SYS_PTRACE_BIT 19

/* Return where tracefs is mounted, or NULL. */
static const char *find_tracefs(void)
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

/* Return where tracefs is mounted, or NULL after the check says that it is missing. */
static const char *need_tracefs(struct ky_check *check, const char *missing)
{
	const char *const place = find_tracefs();
	if (!place) {
		set(check, KY_CHECK_NO, "%s", missing);
		set_remedy(check, "sudo mount -t tracefs nodev /sys/kernel/tracing");
	}
	return place;
}

static void check_kernel(struct ky_check *check)
{
	struct utsname name;
	if (uname(&name) != 0)
		set(check, KY_CHECK_LIMITED, "its version is not known");
	else
		set(check, KY_CHECK_OK, "%s %s on %s", name.sysname, name.release, name.machine);
}

static void check_tracefs_access(struct ky_check *check)
{
	const char *const place =
		need_tracefs(check, "not mounted: no kernel events, no trace_marker");
	char path[64];
	if (!place)
		return;
	snprintf(path, sizeof(path), "%s/tracing_on", place);
	const bool readable = access(path, R_OK) == 0, writable = access(path, W_OK) == 0;
	snprintf(path, sizeof(path), "%s/trace_marker", place);
	const bool marker = access(path, W_OK) == 0;
	if (readable && writable) {
		set(check, KY_CHECK_OK, "%s can be read and written", place);
		return;
	}
	set(check, marker || readable ? KY_CHECK_LIMITED : KY_CHECK_NO,
	    "%s can %s, trace_marker can %s", place,
	    readable ? "be read, not written" : "not be read", marker ? "be written" : "not");
	set_remedy(check, "run as root, or: sudo mount -o remount,gid=$(id -g),mode=0770 %s",
		   place);
}

/* Report what killed captures left, and what this kernel cannot do. */
static void check_instances(struct ky_check *check, const char *place)
{
	char path[96];
	const unsigned left = ky_kernel_trace_left_over();
	snprintf(path, sizeof(path), "%s/options/copy_trace_marker", place);
	if (left) {
		set(check, KY_CHECK_LIMITED,
		    "%u instance%s of captures that were killed still recording", left,
		    left == 1 ? "" : "s");
		set_remedy(check,
			   "the next capture with --kernel removes it, or: "
			   "sudo rmdir %s/instances/kymo-*",
			   place);
	} else if (access(path, F_OK) != 0) {
		set(check, KY_CHECK_LIMITED,
		    "all but what is written to trace_marker can be recorded");
		set_remedy(check, "Linux 6.15 or later, for --kernel print");
	} else {
		set(check, KY_CHECK_OK,
		    "tracepoints, system calls and trace_marker can be recorded");
	}
}

/* Check whether --kernel can have an instance of its own. */
static void check_kernel_events(struct ky_check *check)
{
	const char *const place = need_tracefs(check, "tracefs is not mounted");
	char path[96];
	if (!place)
		return;
	snprintf(path, sizeof(path), "%s/instances", place);
	if (access(path, W_OK | X_OK) == 0) {
		check_instances(check, place);
		return;
	}
	set(check, KY_CHECK_NO, "no instance can be made in %s", place);
	set_remedy(check, "run as root, or: sudo mount -o remount,gid=$(id -g),mode=0770 %s",
		   place);
}

static void check_probes(struct ky_check *check, const char *pmu, const char *file,
			 const char *what)
{
	const char *const place = find_tracefs();
	char path[96];
	snprintf(path, sizeof(path), "%s/%s", place ? place : "", file);
	const bool in_tracefs = place && access(path, F_OK) == 0;
	const bool writable = place && access(path, W_OK) == 0;
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	const bool in_perf = access(path, R_OK) == 0;
	const bool root = geteuid() == 0;
	if (!in_tracefs && !in_perf) {
		set(check, KY_CHECK_NO, "%s cannot be probed", what);
		set_remedy(check, "a kernel with CONFIG_%s, and tracefs mounted",
			   pmu[0] == 'k' ? "KPROBE_EVENTS" : "UPROBE_EVENTS");
	} else if (writable || (in_perf && root)) {
		set(check, KY_CHECK_OK, "%s can be probed, by %s", what,
		    in_perf ? "perf_event_open" : "tracefs");
	} else {
		set(check, KY_CHECK_LIMITED, "%s can be probed by root only", what);
		set_remedy(check,
			   "sudo, or CAP_PERFMON: sudo setcap cap_perfmon+ep $(command -v kymo)");
	}
}

static void check_kprobes(struct ky_check *check)
{
	check_probes(check, "kprobe", "kprobe_events", "functions of the kernel");
}

static void check_uprobes(struct ky_check *check)
{
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
	const bool known = read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	const int level = known ? atoi(scope) : 0;
	if (level == 0 || (level < 3 && has_capability(CAP_SYS_PTRACE_BIT))) {
		set(check, KY_CHECK_OK, "running processes can be attached to (scope %d)", level);
		return;
	}
	set(check, level == 3 ? KY_CHECK_NO : KY_CHECK_LIMITED,
	    level == 1 ? "only processes that kymo started (scope 1)"
		       : "not for ordinary users (scope %d)",
	    level);
	set_remedy(check, level == 3 ? "boot with kernel.yama.ptrace_scope below 3"
				     : "sudo sysctl kernel.yama.ptrace_scope=0");
}

/* Make a map of one number, which is gone when it is closed. */
static void check_bpf(struct ky_check *check)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = 1;
	const long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd >= 0) {
		close((int)fd);
		const bool btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
		set(check, btf ? KY_CHECK_OK : KY_CHECK_LIMITED, "programs can be loaded%s",
		    btf ? "" : "; the kernel has no BTF");
	} else if (errno == ENOSYS) {
		set(check, KY_CHECK_NO, "the kernel has none");
		set_remedy(check, "a kernel with CONFIG_BPF_SYSCALL");
	} else {
		set(check, KY_CHECK_NO, "bpf(): %s", strerror(errno));
		set_remedy(check,
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
#else
static bool counter_is_invariant(void)
{
#if defined(__aarch64__)
	return true;
#else
	return false;
#endif
}
#endif

static void check_clock(struct ky_check *check)
{
	char source[32];
	if (!read_line(CLOCK_SOURCE, source, sizeof(source)))
		snprintf(source, sizeof(source), "not known");
	const bool fast = strcmp(source, "tsc") == 0 || strncmp(source, "arch", 4) == 0 ||
			  strncmp(source, "kvm-", 4) == 0;
	const bool invariant = counter_is_invariant();
	if (invariant && fast) {
		set(check, KY_CHECK_OK, "the CPU's counter is invariant; the kernel's clock is %s",
		    source);
		return;
	}
	set(check, KY_CHECK_LIMITED, "%s; the kernel's clock is %s: an event costs more",
	    invariant ? "the CPU's counter is invariant" : "the CPU's counter is not invariant",
	    source);
	if (!fast)
		set_remedy(check, "echo tsc | sudo tee %s, where the CPU allows it", CLOCK_SOURCE);
}

static void check_memfd(struct ky_check *check)
{
	const int fd = memfd_create("kymo-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		set(check, KY_CHECK_NO, "memfd_create(): %s", strerror(errno));
		set_remedy(check, "KYMO_DRUM_DIR=/dev/shm makes the rings files instead");
		return;
	}
	if (ftruncate(fd, 4096) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		set(check, KY_CHECK_LIMITED, "a memfd cannot be sealed: %s", strerror(errno));
		set_remedy(check, "KYMO_DRUM_DIR=/dev/shm makes the rings files instead");
	} else {
		set(check, KY_CHECK_OK, "rings can be shared with other processes");
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
		set(check, KY_CHECK_OK, "%s is there, for %s", file, uses);
		return;
	}
	set(check, KY_CHECK_LIMITED, "%s is not there: %s cannot be written", file, uses);
	set_remedy(check, "sudo apt install %s", package);
}

static void check_zlib(struct ky_check *check)
{
	check_library(check, "libz.so.1", ".json.gz and .fxt.gz", "zlib1g");
}

static void check_zstd(struct ky_check *check)
{
	check_library(check, "libzstd.so.1", "packed .kymo files", "libzstd1");
}

/* ---- perf_event_open(), by trying it on kymo itself ---- */

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
	if (!read_line(PARANOID, text, sizeof(text)))
		snprintf(text, sizeof(text), "?");
	return text;
}

/* Suggest what to do when perf_event_open() refuses. */
static void set_refused(struct ky_check *check, const char *what, int error, int wanted_level)
{
	set(check, KY_CHECK_NO, "%s: %s (perf_event_paranoid is %s)", what, strerror(error),
	    paranoid());
	if (error == EACCES || error == EPERM)
		set_remedy(check, "sudo sysctl kernel.perf_event_paranoid=%d", wanted_level);
	else if (error == ENOSYS)
		set_remedy(check, "a kernel with CONFIG_PERF_EVENTS; in a container, a seccomp "
				  "profile that allows perf_event_open");
}

/* Check whether addresses of the kernel are visible: otherwise they are zeros. */
static bool kernel_has_names(void)
{
	char first[20];
	return read_line("/proc/kallsyms", first, sizeof(first)) &&
	       strspn(first, "0") < strcspn(first, " ");
}

static void check_perf_software(struct ky_check *check)
{
	char rate[16];
	const int user = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false, 0, -1);
	const int kernel = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true, 0, -1);
	if (!read_line("/proc/sys/kernel/perf_event_max_sample_rate", rate, sizeof(rate)))
		snprintf(rate, sizeof(rate), "?");
	if (user) {
		set_refused(check, "cpu-clock", user, 2);
	} else if (kernel) {
		set(check, KY_CHECK_LIMITED,
		    "own processes, up to %s stacks a second, without the kernel's frames "
		    "(perf_event_paranoid is %s)",
		    rate, paranoid());
		set_remedy(check, "sudo sysctl kernel.perf_event_paranoid=1");
	} else if (!kernel_has_names()) {
		set(check, KY_CHECK_LIMITED,
		    "own processes, up to %s stacks a second, with the kernel's frames, "
		    "but not their names",
		    rate);
		set_remedy(check, "sudo sysctl kernel.kptr_restrict=0, and run as root");
	} else {
		set(check, KY_CHECK_OK,
		    "own processes, up to %s stacks a second, with the kernel's frames "
		    "and their names",
		    rate);
	}
}

static void check_perf_hardware(struct ky_check *check)
{
	const int error = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, 0, -1);
	if (!error) {
		set(check, KY_CHECK_OK, "cycles can be counted");
	} else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
		set(check, KY_CHECK_NO, "none: %s", strerror(error));
		set_remedy(check, "in a virtual machine: switch its virtual PMU on at the host; "
				  "cpu-clock is used instead");
	} else {
		set_refused(check, "cycles", error, 2);
	}
}

static void check_perf_system(struct ky_check *check)
{
	const int error = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true, -1, 0);
	if (!error)
		set(check, KY_CHECK_OK, "all processes on a CPU");
	else
		set_refused(check, "all processes on a CPU", error, 0);
}

static void check_perf_tracepoints(struct ky_check *check)
{
	const char *const place = find_tracefs();
	char path[96], id[16];
	snprintf(path, sizeof(path), "%s/events/sched/sched_switch/id", place ? place : "");
	if (!place || !read_line(path, id, sizeof(id))) {
		set(check, KY_CHECK_NO, "the ids of events cannot be read without tracefs");
		set_remedy(check, place ? "run as root, or give yourself tracefs (above)"
					: "sudo mount -t tracefs nodev /sys/kernel/tracing");
		return;
	}
	const int error = try_event(PERF_TYPE_TRACEPOINT, strtoull(id, NULL, 10), true, -1, 0);
	if (!error)
		set(check, KY_CHECK_OK, "sched_switch of all processes");
	else
		set_refused(check, "sched_switch", error, -1);
}

static void check_intel_pt(struct ky_check *check)
{
	char type[16];
	if (!read_line("/sys/bus/event_source/devices/intel_pt/type", type, sizeof(type))) {
		set(check, KY_CHECK_NO, "not on this machine");
		set_remedy(check,
			   "bare metal with an Intel CPU of 2015 or later; other ways to trace "
			   "functions need none");
		return;
	}
	const int error = try_event((unsigned)strtoul(type, NULL, 10), 0, false, 0, -1);
	if (error)
		set_refused(check, "intel_pt", error, 1);
	else
		set(check, KY_CHECK_OK, "own processes can be traced");
}

const struct ky_doctor_check ky_doctor_checks[] = {
	{"kernel", check_kernel},
	{"clock", check_clock},
	{"memfd and seals", check_memfd},
	{"tracefs", check_tracefs_access},
	{"kernel events", check_kernel_events},
	{"perf sampling", check_perf_software},
	{"hardware counters", check_perf_hardware},
	{"perf system wide", check_perf_system},
	{"perf tracepoints", check_perf_tracepoints},
	{"kprobes", check_kprobes},
	{"uprobes", check_uprobes},
	{"ptrace", ky_check_ptrace},
	{"BPF", check_bpf},
	{"Intel PT", check_intel_pt},
	{"zlib", check_zlib},
	{"zstd", check_zstd},
	{NULL, NULL},
};
