/* SPDX-License-Identifier: MIT */
/* pt_records.c: see pt_records.h. */
#include "functrace/pt_records.h"

#include <string.h>

/* What is left of a record: its end moves when the trailer is taken off. */
struct rest {
	const uint8_t *at;
	size_t bytes;
};

static uint64_t take_u64(struct rest *rest)
{
	uint64_t value;
	memcpy(&value, rest->at, sizeof(value));
	rest->at += sizeof(value);
	rest->bytes -= sizeof(value);
	return value;
}

static uint64_t cut_u64(struct rest *rest)
{
	uint64_t value;
	rest->bytes -= sizeof(value);
	memcpy(&value, rest->at + rest->bytes, sizeof(value));
	return value;
}

/* From the end, as its length is what sample_type says. */
static bool cut_trailer(struct ky_pt_record *record, struct rest *rest, uint64_t sample_type)
{
	static const uint64_t backwards[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU,
					     PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_ID,
					     PERF_SAMPLE_TIME,       PERF_SAMPLE_TID};
	for (size_t i = 0; i < sizeof(backwards) / sizeof(*backwards); i++) {
		if (!(sample_type & backwards[i]))
			continue;
		if (rest->bytes < 8)
			return false;
		const uint64_t value = cut_u64(rest);
		if (backwards[i] == PERF_SAMPLE_TIME)
			record->time = value;
		if (backwards[i] == PERF_SAMPLE_TID) {
			record->pid = (uint32_t)value;
			record->tid = (uint32_t)(value >> 32);
		}
	}
	return true;
}

/* Text up to the end, which has its 0 in it. */
static const char *take_text(const struct rest *rest)
{
	return memchr(rest->at, 0, rest->bytes) ? (const char *)rest->at : NULL;
}

/* pid, tid; address, bytes, offset; major, minor, inode, generation, or a build id; protection, flags; path. */
static bool parse_map(struct ky_pt_record *record, struct rest *rest, uint16_t misc)
{
	if (rest->bytes < 64)
		return false;
	const uint64_t who = take_u64(rest);
	record->pid = (uint32_t)who;
	record->tid = (uint32_t)(who >> 32);
	record->map.address = take_u64(rest);
	record->map.bytes = take_u64(rest);
	record->map.offset = take_u64(rest);
	const uint64_t device = take_u64(rest);
	record->map.inode = take_u64(rest);
	take_u64(rest);
	take_u64(rest);
	record->map.device = device << 32 | device >> 32;
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		record->map.device = record->map.inode = 0;
	record->map.path = take_text(rest);
	return record->map.path && !(misc & PERF_RECORD_MISC_MMAP_DATA) && record->map.bytes &&
	       record->map.address + record->map.bytes > record->map.address;
}

static bool parse_comm(struct ky_pt_record *record, struct rest *rest, uint16_t misc)
{
	if (rest->bytes < 9)
		return false;
	const uint64_t who = take_u64(rest);
	record->pid = (uint32_t)who;
	record->tid = (uint32_t)(who >> 32);
	record->comm.name = take_text(rest);
	record->comm.exec = misc & PERF_RECORD_MISC_COMM_EXEC;
	return record->comm.name != NULL;
}

/* pid, parent; tid, parent's; time. */
static bool parse_task(struct ky_pt_record *record, struct rest *rest)
{
	if (rest->bytes < 24)
		return false;
	record->task.pid = (uint32_t)take_u64(rest);
	record->task.tid = (uint32_t)take_u64(rest);
	record->time = take_u64(rest);
	return true;
}

bool ky_pt_record_parse(struct ky_pt_record *record, const struct perf_event_header *header,
			uint64_t sample_type)
{
	*record = (struct ky_pt_record){.type = header->type};
	if (header->size < sizeof(*header) || header->type >= PERF_RECORD_MAX ||
	    header->type == PERF_RECORD_SAMPLE)
		return false;
	struct rest rest = {.at = (const uint8_t *)(header + 1),
			    .bytes = header->size - sizeof(*header)};
	if (!cut_trailer(record, &rest, sample_type))
		return false;
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		return parse_map(record, &rest, header->misc);
	case PERF_RECORD_COMM:
		return parse_comm(record, &rest, header->misc);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return parse_task(record, &rest);
	case PERF_RECORD_AUX: /* offset, bytes, flags */
		if (rest.bytes < 24)
			return false;
		rest.at += 16;
		record->aux.flags = take_u64(&rest);
		return true;
	case PERF_RECORD_LOST: /* id, count */
		if (rest.bytes < 16)
			return false;
		rest.at += 8;
		record->lost = take_u64(&rest);
		return true;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		record->off = header->misc & PERF_RECORD_MISC_SWITCH_OUT;
		return true;
	case PERF_RECORD_ITRACE_START:
		return true;
	default:
		return false;
	}
}

size_t ky_pt_records_aux(uint8_t *out, const uint8_t *ring, size_t bytes, uint64_t head)
{
	size_t from = (size_t)(head & (bytes - 1));
	const size_t newest = from;
	/* Zero is a packet, too (PAD): without a meaning, at the beginning. */
	while (from < bytes && ring[from] == 0)
		from++;
	memcpy(out, ring + from, bytes - from);
	memcpy(out + (bytes - from), ring, newest);
	return bytes - from + newest;
}
