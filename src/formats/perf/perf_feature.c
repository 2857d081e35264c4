/* SPDX-License-Identifier: MIT */
/* perf_feature.c: what perf says about the machine and the recording, at the end of a file or between a pipe's records. */
#include "formats/perf/perf_session.h"

#include <stdio.h>
#include <stdlib.h>

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
