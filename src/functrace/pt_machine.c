/* SPDX-License-Identifier: MIT */
/* pt_machine.c: see pt_machine.h. */
#include "functrace/pt_machine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
		machine->says_so |= strcmp(flag, "intel_pt") == 0;
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

static void say_why_not(const struct ky_pt_machine *machine, char why[KY_FUNCTRACE_MESSAGE_BYTES])
{
	const char *name = machine->name[0] ? machine->name : "unknown";
	if (!machine->cpu.intel)
		snprintf(why, KY_FUNCTRACE_MESSAGE_BYTES,
			 "this CPU is an %s: it has no Intel Processor Trace", name);
	else if (machine->says_so)
		snprintf(
			why, KY_FUNCTRACE_MESSAGE_BYTES,
			"this CPU (%s) has Intel Processor Trace, but the kernel does not offer it: "
			"no " DEVICE "type",
			name);
	else if (machine->is_virtual)
		snprintf(why, KY_FUNCTRACE_MESSAGE_BYTES,
			 "this machine is virtual, and its host does not pass Intel Processor "
			 "Trace on (%s): on the host itself it may be possible",
			 name);
	else
		snprintf(why, KY_FUNCTRACE_MESSAGE_BYTES,
			 "this CPU (%s) has no Intel Processor Trace, or the firmware has switched "
			 "it "
			 "off",
			 name);
}

int ky_pt_machine_read(struct ky_pt_machine *machine, const char *root,
		       char why[KY_FUNCTRACE_MESSAGE_BYTES])
{
	char text[64];
	*machine = (struct ky_pt_machine){0};
	read_cpu(machine, root);
	if (read_text(root, "type", text))
		machine->type = (uint32_t)strtoul(text, NULL, 10);
	if (!machine->type) {
		say_why_not(machine, why);
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

void ky_pt_machine_why(int error, char why[KY_FUNCTRACE_MESSAGE_BYTES])
{
	switch (-error) {
	case EACCES:
	case EPERM:
		snprintf(why, KY_FUNCTRACE_MESSAGE_BYTES,
			 "the kernel does not allow events of intel_pt: be root, or "
			 "sysctl kernel.perf_event_paranoid=1; in a container its seccomp profile "
			 "must "
			 "allow perf_event_open");
		break;
	case EBUSY:
		snprintf(why, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Intel Processor Trace is in use (another perf, a "
			 "hypervisor)");
		break;
	case EMFILE:
		snprintf(why, KY_FUNCTRACE_MESSAGE_BYTES,
			 "too many open files for an event for each thread: raise ulimit -n");
		break;
	default:
		snprintf(why, KY_FUNCTRACE_MESSAGE_BYTES,
			 "perf_event_open() of intel_pt failed: %s", strerror(-error));
	}
}
