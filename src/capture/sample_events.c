/* SPDX-License-Identifier: MIT */
/* sample_events.c: see sample_events.h. */
#include "capture/sample_events.h"

#include "capture/fail.h"
#include "capture/perf_records.h"
#include "process/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What an ordinary user may lock for each CPU (perf_event_mlock_kb) has room for this and its first page. */
#define RING_BYTES (512u << 10)
#define ALL_CPUS "all CPUs"

int ky_sample_events_refused(int error, const char *what, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	char tried[64];
	snprintf(tried, sizeof(tried), "samples: %s", what);
	return ky_perf_events_refused(error, tried, strcmp(what, ALL_CPUS) == 0 ? 0 : 2, message,
				      KY_CAPTURE_MESSAGE_BYTES);
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

int ky_sample_events_open(struct ky_sample_events *events, uint32_t per_second,
			  char message[KY_CAPTURE_MESSAGE_BYTES])
{
	struct perf_event_attr attr;
	const int most = ky_proc_setting("/proc/sys/kernel/perf_event_max_sample_rate");
	*events = (struct ky_sample_events){.rings.poll_fd = -1};
	if (per_second == 0 || per_second > (uint32_t)most)
		return ky_capture_fail(message, -EINVAL,
				       "samples: %u a second: the kernel allows 1 to %d "
				       "(kernel.perf_event_max_sample_rate)",
				       per_second, most);
	fill_attr(&attr, per_second);
	const int error = ky_perf_events_open(&events->rings, &attr, RING_BYTES);
	return error ? ky_sample_events_refused(error, "kymo's own clock", message) : 0;
}

void ky_sample_events_close(struct ky_sample_events *events)
{
	ky_perf_set_close(&events->clocks);
	ky_perf_events_close(&events->rings);
}

int ky_sample_events_thread(struct ky_sample_events *events, pid_t tid, bool after_exec)
{
	struct perf_event_attr attr = events->rings.attr;
	attr.enable_on_exec = after_exec;
	return ky_perf_set_add(&events->clocks, &events->rings, &attr, tid);
}

int ky_sample_events_all(struct ky_sample_events *events, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	struct perf_event_attr attr = events->rings.attr;
	attr.inherit = 0;
	const int error = ky_perf_set_add(&events->clocks, &events->rings, &attr, -1);
	return error ? ky_sample_events_refused(error, ALL_CPUS, message) : 0;
}
