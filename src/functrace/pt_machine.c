/* SPDX-License-Identifier: MIT */
/* pt_machine.c: see pt_machine.h. */
#include "functrace/pt_machine.h"

#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEVICE "/sys/bus/event_source/devices/intel_pt/"

/* ---- the CPU ---- */

static void take_line(struct ky_pt_machine *machine, const char *key, const char *value)
{
	const unsigned long number = strtoul(value, NULL, 10);
	if (strcmp(key, "vendor_id") == 0)
		machine->cpu.intel = strcmp(value, "GenuineIntel") == 0;
	else if (strcmp(key, "cpu family") == 0)
		machine->cpu.family = (uint16_t)number;
	else if (strcmp(key, "model") == 0)
		machine->cpu.model = (uint8_t)number;
	else if (strcmp(key, "stepping") == 0)
		machine->cpu.stepping = (uint8_t)number;
	else if (strcmp(key, "model name") == 0)
		snprintf(machine->name, sizeof(machine->name), "%s", value);
}

static void take_flags(struct ky_pt_machine *machine, char *flags)
{
	char *place;
	for (char *flag = strtok_r(flags, " ", &place); flag; flag = strtok_r(NULL, " ", &place)) {
		machine->is_virtual |= strcmp(flag, "hypervisor") == 0;
		machine->listed_by_cpu |= strcmp(flag, "intel_pt") == 0;
	}
}

/* Read lines "key\t: value", until the first empty line: the first CPU stands for all. */
static void read_cpu(struct ky_pt_machine *machine, const char *root)
{
	char path[PATH_MAX];
	char *line = NULL;
	size_t room = 0;
	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	while (getline(&line, &room, file) > 1) {
		line[strcspn(line, "\n")] = 0;
		char *value = strchr(line, ':');
		if (!value)
			continue;
		*value++ = 0;
		value += *value == ' ';
		line[strcspn(line, "\t")] = 0;
		if (strcmp(line, "flags") == 0)
			take_flags(machine, value);
		else
			take_line(machine, line, value);
	}
	free(line);
	fclose(file);
}

/* ---- the event source ---- */

static bool read_text(const char *root, const char *name, char text[64])
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s" DEVICE "%s", root, name);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	const bool got = fgets(text, 64, file) != NULL;
	fclose(file);
	return got;
}

/* Read a capability: they are hexadecimal; 0 when it is missing. */
static uint64_t read_cap(const char *root, const char *name)
{
	char path[64], text[64];
	snprintf(path, sizeof(path), "caps/%s", name);
	return read_text(root, path, text) ? strtoull(text, NULL, 16) : 0;
}

/* Return the position of a term's bits in config: -1 when there is no such term, or not in config. */
static int read_shift(const char *root, const char *term)
{
	char path[64], text[64];
	unsigned int low;
	snprintf(path, sizeof(path), "format/%s", term);
	if (!read_text(root, path, text) || sscanf(text, "config:%u", &low) != 1 || low > 63)
		return -1;
	return (int)low;
}

static void set_term(struct ky_pt_machine *machine, const char *root, const char *term,
		     uint64_t value)
{
	const int shift = read_shift(root, term);
	if (shift >= 0)
		machine->config |= value << shift;
}

/* Return the lowest allowed value that is at least the wanted one; 0 is always allowed. */
static uint64_t choose(uint64_t allowed, unsigned int wanted)
{
	for (unsigned int value = wanted; value < 16; value++)
		if (allowed & (UINT64_C(1) << value))
			return value;
	return 0;
}

/*
 * Choose the most exact times: a count of cycles with every packet where that is possible, and the crystal's clock
 * often. Decoding can begin at a PSB only: they are as close as possible, 2 KiB.
 */
static void read_config(struct ky_pt_machine *machine, const char *root)
{
	set_term(machine, root, "tsc", 1);
	if (read_shift(root, "pt") >= 0 && read_shift(root, "branch") >= 0) {
		set_term(machine, root, "pt", 1);
		set_term(machine, root, "branch", 1);
	}
	if (read_cap(root, "mtc")) {
		const uint64_t period = choose(read_cap(root, "mtc_periods"), 0);
		machine->cpu.mtc_period = (uint8_t)period;
		set_term(machine, root, "mtc", 1);
		set_term(machine, root, "mtc_period", period);
	}
	if (read_cap(root, "psb_cyc")) {
		set_term(machine, root, "cyc", 1);
		set_term(machine, root, "cyc_thresh",
			 choose(read_cap(root, "cycle_thresholds"), 1));
	}
}

static void read_clocks(struct ky_pt_machine *machine, const char *root)
{
	char text[64];
	if (read_text(root, "max_nonturbo_ratio", text))
		machine->cpu.nominal_ratio = (uint8_t)strtoul(text, NULL, 10);
	if (read_text(root, "tsc_art_ratio", text) &&
	    sscanf(text, "%u:%u", &machine->cpu.ctc_numerator, &machine->cpu.ctc_denominator) != 2)
		machine->cpu.ctc_numerator = machine->cpu.ctc_denominator = 0;
}

/* ---- reasons why it is missing ---- */

static void explain_missing(const struct ky_pt_machine *machine, char why[KY_MESSAGE_BYTES])
{
	const char *name = machine->name[0] ? machine->name : "unknown";
	if (!machine->cpu.intel)
		snprintf(why, KY_MESSAGE_BYTES,
			 "this CPU is an %s: it has no Intel Processor Trace", name);
	else if (machine->listed_by_cpu)
		snprintf(
			why, KY_MESSAGE_BYTES,
			"this CPU (%s) has Intel Processor Trace, but the kernel does not offer it: "
			"no " DEVICE "type",
			name);
	else if (machine->is_virtual)
		snprintf(why, KY_MESSAGE_BYTES,
			 "this machine is virtual, and its host does not pass Intel Processor "
			 "Trace on (%s): on the host itself it may be possible",
			 name);
	else
		snprintf(why, KY_MESSAGE_BYTES,
			 "this CPU (%s) has no Intel Processor Trace, or the firmware has switched "
			 "it "
			 "off",
			 name);
}

int ky_pt_machine_read(struct ky_pt_machine *machine, const char *root, char why[KY_MESSAGE_BYTES])
{
	char text[64];
	*machine = (struct ky_pt_machine){0};
	read_cpu(machine, root);
	if (read_text(root, "type", text))
		machine->type = (uint32_t)strtoul(text, NULL, 10);
	if (!machine->type) {
		explain_missing(machine, why);
		return -ENOTSUP;
	}
	read_config(machine, root);
	read_clocks(machine, root);
	return 0;
}

/* ---- the event ---- */

struct perf_event_attr ky_pt_machine_event(const struct ky_pt_machine *machine)
{
	return (struct perf_event_attr){
		.type = machine->type,
		.size = sizeof(struct perf_event_attr),
		.config = machine->config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.task = 1,
		.context_switch = 1,
	};
}

int ky_pt_machine_open(const struct ky_pt_machine *machine, int tid)
{
	struct perf_event_attr attr = ky_pt_machine_event(machine);
	const long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

void ky_pt_machine_why(int error, char why[KY_MESSAGE_BYTES])
{
	switch (-error) {
	case EACCES:
	case EPERM:
		snprintf(why, KY_MESSAGE_BYTES,
			 "the kernel does not allow events of intel_pt: be root, or "
			 "sysctl kernel.perf_event_paranoid=1; in a container its seccomp profile "
			 "must "
			 "allow perf_event_open");
		break;
	case EBUSY:
		snprintf(why, KY_MESSAGE_BYTES,
			 "Intel Processor Trace is in use (another perf, a "
			 "hypervisor)");
		break;
	case EMFILE:
		snprintf(why, KY_MESSAGE_BYTES,
			 "too many open files for an event for each thread: raise ulimit -n");
		break;
	default:
		snprintf(why, KY_MESSAGE_BYTES, "perf_event_open() of intel_pt failed: %s",
			 strerror(-error));
	}
}

/* ---- the event of a thread ---- */

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
	free(thread->packets);
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
	free(thread->packets);
	thread->packets_bytes = 0;
	thread->last = thread->ended;
	thread->packets = malloc((size_t)thread->aux_bytes);
	if (!thread->packets)
		return false;
	/* Pairs with the kernel's barrier before it stores aux_head: the packets are there. */
	const uint64_t head = __atomic_load_n(&thread->records.page->aux_head, __ATOMIC_ACQUIRE);
	thread->packets_bytes =
		ky_pt_thread_unroll(thread->packets, thread->aux, (size_t)thread->aux_bytes, head);
	return true;
}

bool ky_pt_thread_page_time(const struct perf_event_mmap_page *page, struct ky_pt_time *time)
{
	for (int i = 0; i < PAGE_TRIES; i++) {
		/* Pairs with the kernel's count around its writes: the same before and after, and even, is whole. */
		const uint32_t before = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		const bool has_time = page->cap_user_time_zero;
		*time = (struct ky_pt_time){.zero = page->time_zero,
					    .mult = page->time_mult,
					    .shift = page->time_shift};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (before == __atomic_load_n(&page->lock, __ATOMIC_RELAXED) && !(before & 1))
			return has_time && time->mult;
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
