/* SPDX-License-Identifier: MIT */
/* stack_records.c: see stack_records.h. */
#include "functrace/stack_records.h"

#include <string.h>

#define TRAILER_BYTES 16u

/* What is left of a record. */
struct rest {
	const uint8_t *at;
	size_t bytes;
	bool short_of; /* more was asked for than there is */
};

static const uint8_t *take(struct rest *rest, uint64_t bytes)
{
	const uint8_t *at = rest->at;
	if (bytes > rest->bytes) {
		rest->short_of = true;
		return NULL;
	}
	rest->at += bytes;
	rest->bytes -= (size_t)bytes;
	return at;
}

static uint32_t take_u32(struct rest *rest)
{
	uint32_t value = 0;
	const uint8_t *at = take(rest, sizeof(value));
	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t take_u64(struct rest *rest)
{
	uint64_t value = 0;
	const uint8_t *at = take(rest, sizeof(value));
	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

uint64_t ky_stack_record_ns(const struct perf_event_header *head)
{
	const size_t place = head->type == PERF_RECORD_SAMPLE ? sizeof(*head) + 8 : head->size - 8u;
	uint64_t ns = 0;
	if (head->size >= sizeof(*head) + TRAILER_BYTES)
		memcpy(&ns, (const uint8_t *)head + place, sizeof(ns));
	return ns;
}

/* From the kernel's order of registers to DWARF's. */
static void take_registers(struct ky_stack_record *record, struct rest *rest)
{
	static const uint8_t number[KY_STACK_REGISTERS_COUNT] = {
		0, 3, 2, 1, 4, 5, 6, KY_STACK_SP, KY_STACK_PC, 8, 9, 10, 11, 12, 13, 14, 15};
	const uint64_t abi = take_u64(rest);
	record->has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
	for (unsigned i = 0; abi != PERF_SAMPLE_REGS_ABI_NONE && i < KY_STACK_REGISTERS_COUNT; i++)
		record->registers[number[i]] = take_u64(rest);
}

static bool read_sample(struct ky_stack_record *record, struct rest *rest)
{
	record->kind = KY_STACK_SAMPLE;
	record->pid = take_u32(rest);
	record->tid = take_u32(rest);
	record->ns = take_u64(rest);
	take_registers(record, rest);
	const uint64_t room = take_u64(rest);
	record->stack = take(rest, room);
	record->stack_bytes = room ? take_u64(rest) : 0;
	return !rest->short_of && record->stack_bytes <= room;
}

/* A text that ends within the record. */
static const char *take_text(struct rest *rest)
{
	const char *text = (const char *)rest->at;
	return memchr(text, '\0', rest->bytes) ? text : NULL;
}

static bool read_mapping(struct ky_stack_record *record, struct rest *rest)
{
	record->kind = KY_STACK_MAPPING;
	take_u64(rest); /* pid, tid */
	record->start = take_u64(rest);
	const uint64_t bytes = take_u64(rest);
	record->offset = take_u64(rest);
	record->device = (uint64_t)take_u32(rest) << 32;
	record->device |= take_u32(rest);
	record->inode = take_u64(rest);
	take_u64(rest); /* the inode's generation */
	take_u64(rest); /* protection, flags */
	record->end = record->start + bytes;
	record->text = take_text(rest);
	return record->text && record->end > record->start;
}

static bool read_name(struct ky_stack_record *record, struct rest *rest, uint16_t misc)
{
	record->kind = KY_STACK_NAME;
	record->pid = take_u32(rest);
	record->tid = take_u32(rest);
	record->exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
	record->text = take_text(rest);
	return record->text != NULL;
}

/* pid ppid, tid ptid, time: whoever is meant, not who was running. */
static bool read_life(struct ky_stack_record *record, struct rest *rest, bool begun)
{
	record->kind = begun ? KY_STACK_BEGUN : KY_STACK_ENDED;
	record->pid = take_u32(rest);
	record->parent_pid = take_u32(rest);
	record->tid = take_u32(rest);
	record->parent_tid = take_u32(rest);
	return !rest->short_of;
}

static bool read_switch(struct ky_stack_record *record, uint16_t misc)
{
	record->kind = KY_STACK_SWITCH;
	record->out = (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
	record->preempted = (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
	return true;
}

static bool read_lost(struct ky_stack_record *record, struct rest *rest)
{
	record->kind = KY_STACK_LOST;
	take_u64(rest); /* the event's id */
	record->lost = take_u64(rest);
	return !rest->short_of;
}

static bool read_other(struct ky_stack_record *record, const struct perf_event_header *head,
		       struct rest *rest)
{
	struct rest trailer = {rest->at + rest->bytes, TRAILER_BYTES, false};
	record->pid = take_u32(&trailer);
	record->tid = take_u32(&trailer);
	record->ns = take_u64(&trailer);
	switch (head->type) {
	case PERF_RECORD_MMAP2:
		return read_mapping(record, rest) && !rest->short_of;
	case PERF_RECORD_COMM:
		return read_name(record, rest, head->misc) && !rest->short_of;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return read_life(record, rest, head->type == PERF_RECORD_FORK);
	case PERF_RECORD_SWITCH:
		return read_switch(record, head->misc);
	case PERF_RECORD_LOST:
		return read_lost(record, rest);
	default:
		return false;
	}
}

bool ky_stack_record_read(struct ky_stack_record *record, const struct perf_event_header *head)
{
	struct rest rest = {(const uint8_t *)(head + 1), head->size - sizeof(*head), false};
	memset(record, 0, sizeof(*record));
	if (head->size < sizeof(*head) + TRAILER_BYTES)
		return false;
	if (head->type == PERF_RECORD_SAMPLE)
		return read_sample(record, &rest);
	rest.bytes -= TRAILER_BYTES;
	return read_other(record, head, &rest);
}
