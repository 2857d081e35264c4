/* SPDX-License-Identifier: MIT */
/*
 * perf_attr.c: the events that were recorded, and which of them a record belongs to.
 *
 * A sample of an event with IDENTIFIER has its id first, other records have it last, whatever else is
 * selected; without it all events have the same layout as far as the id (perf sees to that), so that the first one's
 * tells where it is.
 */
#include "base/array.h"
#include "formats/perf/perf_session.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <time.h>

#define ATTR_BYTES_MIN 64u

static const char *const hardware_names[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};
static const char *const software_names[] = {
	"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
};

/* Return perf's name for it, for files without names. */
static uint32_t usual_name(struct ky_perf *perf, uint32_t type, uint64_t config)
{
	char text[64];
	if (type == PERF_TYPE_HARDWARE && config < sizeof(hardware_names) / sizeof(*hardware_names))
		return ky_string_z(perf->trace, hardware_names[config]);
	if (type == PERF_TYPE_SOFTWARE && config < sizeof(software_names) / sizeof(*software_names))
		return ky_string_z(perf->trace, software_names[config]);
	if (type == PERF_TYPE_RAW)
		snprintf(text, sizeof(text), "raw 0x%llx", (unsigned long long)config);
	else if (type == PERF_TYPE_TRACEPOINT)
		snprintf(text, sizeof(text), "tracepoint %llu", (unsigned long long)config);
	else
		snprintf(text, sizeof(text), "type %u config 0x%llx", type,
			 (unsigned long long)config);
	return ky_string_z(perf->trace, text);
}

/* Bit-fields fill a byte from the other end when the file is big-endian. */
static uint64_t read_flags(const uint8_t *p, bool big)
{
	uint64_t flags = 0;
	for (unsigned i = 0; i < 8; i++) {
		uint64_t byte = p[i];
		if (big) {
			byte = (byte & 0xf0u) >> 4 | (byte & 0x0fu) << 4;
			byte = (byte & 0xccu) >> 2 | (byte & 0x33u) << 2;
			byte = (byte & 0xaau) >> 1 | (byte & 0x55u) << 1;
		}
		flags |= byte << 8 * i;
	}
	return flags;
}

/* A field of an attribute that may be too old to have it. */
static uint64_t field64(const struct ky_perf *perf, const uint8_t *data, size_t bytes, size_t at)
{
	return bytes >= at + 8 ? ky_perf_u64(data + at, perf->big) : 0;
}

uint32_t ky_perf_attr_add(struct ky_perf *perf, const uint8_t *data, size_t bytes)
{
	if (bytes < ATTR_BYTES_MIN || perf->attrs_count >= 1u << 20 ||
	    !KY_ARRAY_GROW_ZERO(perf->attrs, perf->attrs_room, perf->attrs_count + 1))
		return KY_NONE;
	const bool big = perf->big;
	const uint64_t flags = read_flags(data + 40, big);
	struct ky_perf_attr attr = {
		.type = ky_perf_u32(data, big),
		.config = ky_perf_u64(data + 8, big),
		.period = flags & KY_PERF_ATTR_FREQ ? 0 : ky_perf_u64(data + 16, big),
		.sample_type = ky_perf_u64(data + 24, big),
		.read_format = ky_perf_u64(data + 32, big),
		.flags = flags,
		.branch_type = field64(perf, data, bytes, 72),
		.regs_user = field64(perf, data, bytes, 80),
		.clockid = bytes >= 96 ? (int32_t)ky_perf_u32(data + 92, big) : 0,
		.regs_intr = field64(perf, data, bytes, 96),
	};
	attr.name = usual_name(perf, attr.type, attr.config);
	if (flags & KY_PERF_ATTR_SAMPLE_ID_ALL)
		attr.trailer_bytes = ky_perf_record_trailer_bytes(attr.sample_type);
	perf->attrs[perf->attrs_count] = attr;
	return perf->attrs_count++;
}

void ky_perf_attr_id(struct ky_perf *perf, uint32_t attr, uint64_t id)
{
	bool made;
	uint32_t *number = ky_u64_map_add(&perf->attr_of, id, &made);
	if (number)
		*number = attr;
}

static uint64_t clock_of(int32_t clockid)
{
	switch (clockid) {
	case CLOCK_REALTIME:
		return KY_CLOCK_REALTIME;
	case CLOCK_MONOTONIC:
		return KY_CLOCK_MONOTONIC;
	case CLOCK_MONOTONIC_RAW:
		return KY_CLOCK_MONOTONIC_RAW;
	case CLOCK_BOOTTIME:
		return KY_CLOCK_BOOTTIME;
	default:
		return KY_CLOCK_PERF;
	}
}

void ky_perf_attr_clock(struct ky_perf *perf)
{
	const struct ky_perf_attr *attr = perf->attrs;
	perf->clock = perf->attrs_count && attr->flags & KY_PERF_ATTR_USE_CLOCKID
			      ? clock_of(attr->clockid)
			      : KY_CLOCK_PERF;
	perf->clock_first = INT64_MAX;
	perf->clock_last = INT64_MIN;
	if (!perf->load->part)
		perf->trace->clock = perf->clock;
}

uint64_t ky_perf_trace_time(struct ky_perf *perf, uint64_t time)
{
	struct ky_trace *trace = perf->trace;
	const int64_t ns = time <= INT64_MAX ? (int64_t)time : INT64_MAX;
	if (perf->clock == trace->clock)
		return (uint64_t)ns;
	if ((ns < perf->clock_first || ns > perf->clock_last) &&
	    !ky_clocks_convert_range(trace->clocks, perf->clock, trace->clock, ns,
				     &perf->clock_offset, &perf->clock_first, &perf->clock_last))
		ky_problem(trace, "perf_clock_unknown", KY_DATA_LOSS, KY_NO_PLACE,
			   "nothing ties the clock of the samples to that of the trace: their "
			   "times are as they are");
	int64_t moved;
	if (__builtin_add_overflow(ns, perf->clock_offset, &moved) || moved < 0)
		return (uint64_t)ns;
	return (uint64_t)moved;
}

const struct ky_perf_attr *ky_perf_attr_by_id(const struct ky_perf *perf, uint64_t id)
{
	const uint32_t *number = ky_u64_map_find(&perf->attr_of, id);
	return number && *number < perf->attrs_count ? &perf->attrs[*number] : NULL;
}

void ky_perf_attr_rename(struct ky_perf *perf, uint64_t id, const char *name, size_t bytes)
{
	const uint32_t *number = ky_u64_map_find(&perf->attr_of, id);
	if (number && *number < perf->attrs_count && bytes)
		perf->attrs[*number].name = ky_string(perf->trace, name, bytes);
}

/* Return where a sample has its id, in words; all events have the first one's layout. */
static bool sample_id_word(uint64_t sample_type, size_t *word)
{
	if (sample_type & PERF_SAMPLE_IDENTIFIER) {
		*word = 0;
		return true;
	}
	*word = (size_t)__builtin_popcountll(sample_type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
							    PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
	return sample_type & PERF_SAMPLE_ID;
}

static const struct ky_perf_attr *attr_of_sample(const struct ky_perf *perf,
						 const struct ky_perf_raw *record)
{
	size_t word;
	const struct ky_perf_attr *attr = NULL;
	if (perf->attrs_count > 1 && sample_id_word(perf->attrs[0].sample_type, &word) &&
	    record->bytes - KY_PERF_RECORD_HEAD_BYTES >= (word + 1) * 8)
		attr = ky_perf_attr_by_id(perf, ky_perf_u64(record->body + word * 8, perf->big));
	return attr ? attr : perf->attrs;
}

static const struct ky_perf_attr *attr_of_other(const struct ky_perf *perf,
						const struct ky_perf_raw *record)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	const uint64_t type = perf->attrs[0].sample_type;
	size_t from_end = 8;
	if (type & PERF_SAMPLE_IDENTIFIER)
		;
	else if (type & PERF_SAMPLE_ID)
		from_end = 8 + 8 * (size_t)__builtin_popcountll(
					   type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
	else
		return perf->attrs;
	if (perf->attrs_count < 2 || bytes < from_end)
		return perf->attrs;
	const struct ky_perf_attr *attr =
		ky_perf_attr_by_id(perf, ky_perf_u64(record->body + bytes - from_end, perf->big));
	return attr ? attr : perf->attrs;
}

void ky_perf_where(const struct ky_perf *perf, const struct ky_perf_raw *record,
		   struct ky_perf_where *where)
{
	*where = (struct ky_perf_where){.pid = KY_NONE, .tid = KY_NONE, .cpu = KY_NONE};
	if (!perf->attrs_count || record->type >= KY_PERF_USER_TYPES)
		return;
	const struct ky_perf_attr *const attr = record->type == PERF_RECORD_SAMPLE
							? attr_of_sample(perf, record)
							: attr_of_other(perf, record);
	ky_perf_record_where(where, record, attr->sample_type, attr->trailer_bytes, perf->big);
	where->attr = attr;
}
