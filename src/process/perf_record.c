/* SPDX-License-Identifier: MIT */
/* perf_record.c: see perf_record.h. The layouts are those of perf_event_open(2). */
#include "process/perf_record.h"

#include <string.h>

/* PERF_FORMAT_LOST, which is newer than some systems' headers. */
#define FORMAT_LOST (1u << 4)

static unsigned words_of(uint64_t sample_type, uint64_t fields)
{
	return (unsigned)__builtin_popcountll(sample_type & fields);
}

uint32_t ky_perf_record_trailer_bytes(uint64_t sample_type)
{
	return 8 * words_of(sample_type, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
						 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
						 PERF_SAMPLE_IDENTIFIER);
}

/* ---- what records say ---- */

static const char *take_text(struct ky_perf_record *record, const struct ky_perf_cursor *cursor,
			     size_t *bytes)
{
	const char *const text = (const char *)cursor->at;
	*bytes = strnlen(text, ky_perf_left(cursor));
	record->text_ends = *bytes < ky_perf_left(cursor);
	return text;
}

/* Device and inode, or the build id: a byte of size, three of nothing, the id. */
static void take_identity(struct ky_proc_mapping *map, struct ky_perf_cursor *cursor, uint16_t misc)
{
	const uint8_t *const identity = ky_perf_take(cursor, 24);
	if (!identity)
		return;
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		map->build_id_bytes =
			identity[0] < sizeof(map->build_id) ? identity[0] : sizeof(map->build_id);
		memcpy(map->build_id, identity + 4, sizeof(map->build_id));
	} else {
		map->device = (uint64_t)ky_perf_u32(identity, cursor->big) << 32 |
			      ky_perf_u32(identity + 4, cursor->big);
		map->inode = ky_perf_u64(identity + 8, cursor->big);
	}
}

static void read_map(struct ky_perf_record *record, struct ky_perf_cursor *cursor)
{
	struct ky_proc_mapping *const map = &record->map;
	record->pid = ky_perf_take_u32(cursor);
	record->tid = ky_perf_take_u32(cursor);
	map->start = ky_perf_take_u64(cursor);
	const uint64_t bytes = ky_perf_take_u64(cursor);
	map->end = bytes <= UINT64_MAX - map->start ? map->start + bytes : 0;
	map->offset = ky_perf_take_u64(cursor);
	if (record->type == PERF_RECORD_MMAP2) {
		take_identity(map, cursor, record->misc);
		map->protection = ky_perf_take_u32(cursor);
		map->flags = ky_perf_take_u32(cursor);
	}
	map->path = take_text(record, cursor, &record->path_bytes);
}

static void read_comm(struct ky_perf_record *record, struct ky_perf_cursor *cursor)
{
	record->pid = ky_perf_take_u32(cursor);
	record->tid = ky_perf_take_u32(cursor);
	record->comm.exec = record->misc & PERF_RECORD_MISC_COMM_EXEC;
	record->comm.name = take_text(record, cursor, &record->comm.bytes);
}

static void read_task(struct ky_perf_record *record, struct ky_perf_cursor *cursor)
{
	record->pid = ky_perf_take_u32(cursor);
	record->task.parent_pid = ky_perf_take_u32(cursor);
	record->tid = ky_perf_take_u32(cursor);
	record->task.parent_tid = ky_perf_take_u32(cursor);
	record->task.time = ky_perf_take_u64(cursor);
}

static void read_switch(struct ky_perf_record *record, struct ky_perf_cursor *cursor)
{
	record->switched.out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
	record->switched.preempted =
		record->switched.out && record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	if (record->type == PERF_RECORD_SWITCH_CPU_WIDE) {
		record->switched.other_pid = ky_perf_take_u32(cursor);
		record->switched.other_tid = ky_perf_take_u32(cursor);
	}
}

bool ky_perf_record_body(struct ky_perf_record *record, const struct ky_perf_raw *raw,
			 uint32_t trailer_bytes, bool big)
{
	const uint32_t bytes = raw->bytes - KY_PERF_RECORD_HEAD_BYTES;
	if (trailer_bytes > bytes)
		return false;
	struct ky_perf_cursor cursor = {raw->body, raw->body + bytes - trailer_bytes, big, false};
	*record = (struct ky_perf_record){.type = raw->type,
					  .misc = raw->misc,
					  .pid = KY_PERF_UNKNOWN,
					  .tid = KY_PERF_UNKNOWN};
	switch (raw->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		read_map(record, &cursor);
		break;
	case PERF_RECORD_COMM:
		read_comm(record, &cursor);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		read_task(record, &cursor);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		read_switch(record, &cursor);
		break;
	case PERF_RECORD_LOST:
		ky_perf_take_u64(&cursor); /* the event's id */
		record->lost = ky_perf_take_u64(&cursor);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		record->lost = ky_perf_take_u64(&cursor);
		break;
	case PERF_RECORD_AUX:
		record->aux.offset = ky_perf_take_u64(&cursor);
		record->aux.bytes = ky_perf_take_u64(&cursor);
		record->aux.flags = ky_perf_take_u64(&cursor);
		break;
	default:
		break;
	}
	return !cursor.short_of;
}

/* ---- where and when ---- */

/* Samples and trailers have these fields in the same order; a sample has more between them. */
static void take_where(struct ky_perf_where *where, struct ky_perf_cursor *cursor,
		       uint64_t sample_type, bool sample)
{
	if (sample)
		ky_perf_take(cursor,
			     8 * words_of(sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP));
	const uint8_t *const ids = sample_type & PERF_SAMPLE_TID ? ky_perf_take(cursor, 8) : NULL;
	if (ids) {
		where->pid = ky_perf_u32(ids, cursor->big);
		where->tid = ky_perf_u32(ids + 4, cursor->big);
	}
	if (sample_type & PERF_SAMPLE_TIME) {
		where->time = ky_perf_take_u64(cursor);
		where->timed = !cursor->short_of;
	}
	if (sample)
		ky_perf_take(cursor, 8 * words_of(sample_type, PERF_SAMPLE_ADDR));
	if (sample_type & PERF_SAMPLE_ID)
		where->id = ky_perf_take_u64(cursor);
	ky_perf_take(cursor, 8 * words_of(sample_type, PERF_SAMPLE_STREAM_ID));
	const uint8_t *const cpu = sample_type & PERF_SAMPLE_CPU ? ky_perf_take(cursor, 8) : NULL;
	if (cpu)
		where->cpu = ky_perf_u32(cpu, cursor->big);
}

void ky_perf_record_where(struct ky_perf_where *where, const struct ky_perf_raw *raw,
			  uint64_t sample_type, uint32_t trailer_bytes, bool big)
{
	const bool sample = raw->type == PERF_RECORD_SAMPLE;
	const uint32_t bytes = raw->bytes - KY_PERF_RECORD_HEAD_BYTES;
	struct ky_perf_cursor cursor = {raw->body, raw->body + bytes, big, false};
	*where = (struct ky_perf_where){
		.pid = KY_PERF_UNKNOWN, .tid = KY_PERF_UNKNOWN, .cpu = KY_PERF_UNKNOWN};
	if (!sample && (!trailer_bytes || trailer_bytes > bytes))
		return;
	if (!sample) {
		where->trailer_bytes = trailer_bytes;
		cursor.at = cursor.end - trailer_bytes;
	}
	take_where(where, &cursor, sample_type, sample);
}

/* ---- records of rings ---- */

/* Report whether the record's text ends in it, and its numbers make sense. */
static bool is_sane(const struct ky_perf_record *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return record->text_ends && record->map.start < record->map.end &&
		       !(record->misc & PERF_RECORD_MISC_MMAP_DATA);
	case PERF_RECORD_COMM:
		return record->text_ends;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_AUX:
	case PERF_RECORD_ITRACE_START:
		return true;
	default:
		return false;
	}
}

bool ky_perf_record_parse(struct ky_perf_record *record, const struct perf_event_header *head,
			  uint64_t sample_type)
{
	const struct ky_perf_raw raw = ky_perf_record_raw(head);
	const uint32_t trailer_bytes = ky_perf_record_trailer_bytes(sample_type);
	struct ky_perf_where where;
	if (head->size < sizeof(*head) + trailer_bytes || head->type == PERF_RECORD_SAMPLE ||
	    !ky_perf_record_body(record, &raw, trailer_bytes, KY_PERF_BIG_HERE) || !is_sane(record))
		return false;
	ky_perf_record_where(&where, &raw, sample_type, trailer_bytes, KY_PERF_BIG_HERE);
	record->time = where.time;
	if (record->tid == KY_PERF_UNKNOWN) {
		record->pid = where.pid;
		record->tid = where.tid;
	}
	return true;
}

uint64_t ky_perf_record_time(const struct perf_event_header *head, uint64_t sample_type)
{
	const uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	const uint64_t behind =
		PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	uint64_t time = 0;
	size_t place = sizeof(*head) + 8 * words_of(sample_type, before);
	if (head->type != PERF_RECORD_SAMPLE) {
		if (head->size < sizeof(*head) + ky_perf_record_trailer_bytes(sample_type))
			return 0;
		place = head->size - 8u - 8 * words_of(sample_type, behind);
	}
	if (place + sizeof(time) <= head->size)
		memcpy(&time, (const uint8_t *)head + place, sizeof(time));
	return time;
}

/* ---- samples ---- */

/* Moves behind the counts of the events, whose number a group says. */
static struct ky_perf_cursor take_values(struct ky_perf_cursor *cursor, uint64_t read_format)
{
	struct ky_perf_cursor values = *cursor;
	const uint64_t times = words_of(read_format, PERF_FORMAT_TOTAL_TIME_ENABLED |
							     PERF_FORMAT_TOTAL_TIME_RUNNING);
	const uint64_t each = 1 + words_of(read_format, PERF_FORMAT_ID | FORMAT_LOST);
	uint64_t count = 1;
	if (read_format & PERF_FORMAT_GROUP)
		count = ky_perf_take_u64(cursor);
	const uint64_t most = ky_perf_left(cursor) / 8;
	const bool fits = count <= most && times + count * each <= most;
	ky_perf_take(cursor, fits ? 8 * (times + count * each) : UINT64_MAX);
	values.end = cursor->at;
	return values;
}

void ky_perf_record_sample(struct ky_perf_fields *fields, struct ky_perf_cursor *cursor,
			   uint64_t sample_type, uint64_t read_format)
{
	*fields = (struct ky_perf_fields){0};
	ky_perf_take(cursor, 8 * words_of(sample_type, PERF_SAMPLE_IDENTIFIER));
	if (sample_type & PERF_SAMPLE_IP) {
		fields->ip = ky_perf_take_u64(cursor);
		fields->has_ip = !cursor->short_of;
	}
	ky_perf_take(cursor,
		     8 * words_of(sample_type, PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						       PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
						       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
	if (sample_type & PERF_SAMPLE_PERIOD) {
		fields->period = ky_perf_take_u64(cursor);
		fields->has_period = !cursor->short_of;
	}
	if (sample_type & PERF_SAMPLE_READ)
		fields->values = take_values(cursor, read_format);
	if (sample_type & PERF_SAMPLE_CALLCHAIN) {
		const uint64_t words = ky_perf_take_u64(cursor);
		fields->chain =
			words <= ky_perf_left(cursor) / 8 ? ky_perf_take(cursor, 8 * words) : NULL;
		cursor->short_of |= !fields->chain;
		fields->chain_words = fields->chain ? words : 0;
	}
	if (sample_type & PERF_SAMPLE_RAW && !cursor->short_of) {
		fields->raw_bytes = ky_perf_take_u32(cursor);
		fields->raw = ky_perf_take(cursor, fields->raw_bytes);
	}
}
