/* SPDX-License-Identifier: MIT */
/*
 * perf_attr.c: what a recording says about itself: the events that were recorded, and the machine.
 *
 * Which event a record belongs to: a sample of an event with IDENTIFIER has its id first, other records have it last,
 * whatever else is selected; without it all events have the same layout as far as the id (perf sees to that), so that the
 * first one's tells where it is.
 */
#include "formats/perf/perf_session.h"

#include "base/array.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- features ---- */

/* What perf says about the machine and the recording, at the end of a file or between a pipe's records. */

#define BUILD_ID_HAS_SIZE (1u << 15)

/* Take a text with its length in front, filled up with NULs. */
static uint32_t take_text(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	const uint32_t bytes = ky_perf_take_u32(cursor);
	const uint8_t *text = ky_perf_take(cursor, bytes);
	return text ? ky_string(perf->trace, (const char *)text, strnlen((const char *)text, bytes))
		    : 0;
}

static void put_text(struct ky_perf *perf, const char *key, struct ky_perf_cursor *cursor)
{
	const uint32_t text = take_text(perf, cursor);
	if (text)
		ky_put_metadata(perf->trace, key, text);
}

static void take_release(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	const uint32_t text = take_text(perf, cursor);
	unsigned major, minor;
	if (!text)
		return;
	ky_put_metadata(perf->trace, "system_release", text);
	perf->release_text = text;
	if (sscanf(ky_text_of(perf->trace, text), "%3u.%3u", &major, &minor) == 2 && minor < 256)
		perf->release = major << 8 | minor;
}

/* The words of the command, joined by blanks. */
static void take_command(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	const uint32_t words = ky_perf_take_u32(cursor);
	const size_t room = ky_perf_left(cursor);
	char *joined = malloc(room + 1);
	size_t used = 0;
	for (uint32_t i = 0; joined && i < words && !cursor->short_of; i++) {
		const uint32_t bytes = ky_perf_take_u32(cursor);
		const uint8_t *word = ky_perf_take(cursor, bytes);
		if (!word)
			break;
		/* Each word has four bytes of length: there is room for its blank. */
		const size_t length = strnlen((const char *)word, bytes);
		if (used)
			joined[used++] = ' ';
		memcpy(joined + used, word, length);
		used += length;
	}
	if (used)
		ky_put_metadata(perf->trace, "perf_cmdline", ky_string(perf->trace, joined, used));
	free(joined);
}

/* The names of the events, with their ids; a file with one event may leave the ids out. */
static void take_event_names(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	const uint32_t count = ky_perf_take_u32(cursor);
	const uint32_t attr_bytes = ky_perf_take_u32(cursor);
	for (uint32_t i = 0; i < count && !cursor->short_of; i++) {
		ky_perf_take(cursor, attr_bytes);
		const uint32_t ids = ky_perf_take_u32(cursor);
		const uint32_t bytes = ky_perf_take_u32(cursor);
		const uint8_t *text = ky_perf_take(cursor, bytes);
		if (!text)
			break;
		const size_t length = strnlen((const char *)text, bytes);
		if (i < perf->attrs_count && length)
			perf->attrs[i].name = ky_string(perf->trace, (const char *)text, length);
		for (uint32_t k = 0; k < ids && !cursor->short_of; k++) {
			const uint64_t id = ky_perf_take_u64(cursor);
			if (!cursor->short_of)
				ky_perf_attr_rename(perf, id, (const char *)text, length);
		}
	}
}

/* One moment in the recording's clock and the time of day. */
static void take_clock_data(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	const uint32_t version = ky_perf_take_u32(cursor);
	ky_perf_take_u32(cursor);
	const uint64_t wall_ns = ky_perf_take_u64(cursor);
	const uint64_t clock_ns = ky_perf_take_u64(cursor);
	if (cursor->short_of || version != 1 || perf->clock == KY_CLOCK_REALTIME)
		return;
	const struct ky_clock_reading readings[] = {
		{perf->clock, (int64_t)clock_ns},
		{KY_CLOCK_REALTIME, (int64_t)wall_ns},
	};
	ky_put_clocks(perf->trace, (int64_t)ky_perf_trace_time(perf, clock_ns), readings, 2);
}

static void take_build_ids(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	while (ky_perf_left(cursor) >= KY_PERF_RECORD_HEAD_BYTES) {
		const uint8_t *p = cursor->at;
		const uint16_t bytes = ky_perf_u16(p + 6, perf->big);
		if (bytes < KY_PERF_RECORD_HEAD_BYTES || !ky_perf_take(cursor, bytes))
			break;
		const struct ky_perf_raw record = {.type = KY_PERF_BUILD_ID,
						   .misc = ky_perf_u16(p + 4, perf->big),
						   .bytes = bytes,
						   .body = p + KY_PERF_RECORD_HEAD_BYTES};
		ky_perf_build_id(perf, &record);
	}
}

uint32_t ky_perf_build_id_text(struct ky_perf *perf, const uint8_t *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * KY_BUILD_ID_MAX];
	bool any = false;
	if (!count || count > KY_BUILD_ID_MAX)
		count = KY_BUILD_ID_MAX;
	for (size_t i = 0; i < count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
		any |= bytes[i] != 0;
	}
	return any ? ky_string(perf->trace, text, 2 * count) : 0;
}

/* pid, 20 bytes of build id, 4 bytes that may begin with their number, path. */
void ky_perf_build_id(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	bool made;
	if (bytes < 29) {
		ky_perf_record_short(perf, record);
		return;
	}
	const size_t count = record->misc & BUILD_ID_HAS_SIZE ? record->body[24] : 0;
	const uint32_t id = ky_perf_build_id_text(perf, record->body + 4, count);
	const char *path = (const char *)record->body + 28;
	const uint32_t name = ky_string(perf->trace, path, strnlen(path, bytes - 28));
	uint32_t *number = id ? ky_u64_map_add(&perf->build_id_of, name, &made) : NULL;
	if (number)
		*number = id;
}

/* How the recording's clock is made of the CPU's: ns = zero + (ticks * mult >> shift). */
void ky_perf_time_conv(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	struct ky_perf_cursor cursor = {record->body, record->body + bytes, perf->big, false};
	const uint64_t shift = ky_perf_take_u64(&cursor);
	const uint64_t mult = ky_perf_take_u64(&cursor);
	const uint64_t zero = ky_perf_take_u64(&cursor);
	if (cursor.short_of) {
		ky_perf_record_short(perf, record);
		return;
	}
	ky_put_metadata_number(perf->trace, "perf_time_shift", (int64_t)shift);
	ky_put_metadata_number(perf->trace, "perf_time_mult", (int64_t)mult);
	ky_put_metadata_number(perf->trace, "perf_time_zero", (int64_t)zero);
}

void ky_perf_feature(struct ky_perf *perf, uint32_t feature, const uint8_t *data, size_t bytes,
		     uint64_t at)
{
	struct ky_perf_cursor cursor = {data, data + bytes, perf->big, false};
	switch (feature) {
	case KY_PERF_FEATURE_TRACING_DATA:
		ky_perf_tracing_data(perf, data, bytes, at);
		return;
	case KY_PERF_FEATURE_BUILD_ID:
		take_build_ids(perf, &cursor);
		return;
	case KY_PERF_FEATURE_HOSTNAME:
		put_text(perf, "perf_hostname", &cursor);
		break;
	case KY_PERF_FEATURE_OSRELEASE:
		take_release(perf, &cursor);
		break;
	case KY_PERF_FEATURE_VERSION:
		put_text(perf, "perf_version", &cursor);
		break;
	case KY_PERF_FEATURE_ARCH:
		put_text(perf, "system_machine", &cursor);
		break;
	case KY_PERF_FEATURE_NRCPUS:
		ky_put_metadata_number(perf->trace, "perf_cpus", ky_perf_take_u32(&cursor));
		break;
	case KY_PERF_FEATURE_CPUDESC:
		put_text(perf, "perf_cpu", &cursor);
		break;
	case KY_PERF_FEATURE_TOTAL_MEM:
		ky_put_metadata_number(perf->trace, "perf_memory_kb",
				       (int64_t)ky_perf_take_u64(&cursor));
		break;
	case KY_PERF_FEATURE_CMDLINE:
		take_command(perf, &cursor);
		break;
	case KY_PERF_FEATURE_EVENT_DESC:
		take_event_names(perf, &cursor);
		break;
	case KY_PERF_FEATURE_CLOCK_DATA:
		take_clock_data(perf, &cursor);
		break;
	default:
		break;
	}
	if (cursor.short_of)
		ky_problem(perf->trace, "perf_feature_damaged", KY_DATA_LOSS, at,
			   "feature %u is shorter than it says", feature);
}
