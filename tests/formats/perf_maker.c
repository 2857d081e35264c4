/* SPDX-License-Identifier: MIT */
/* perf_maker.c: writes perf.data piece by piece. */
#include "perf_maker.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <string.h>

#define ATTR_BYTES 96u

static void put(struct perf_maker *maker, size_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		maker->data[at + (maker->big ? bytes - 1 - i : i)] = (uint8_t)(value >> 8 * i);
}

void perf_bytes(struct perf_maker *maker, const void *data, size_t bytes)
{
	assert(bytes <= sizeof(maker->data) - maker->bytes);
	if (bytes)
		memcpy(maker->data + maker->bytes, data, bytes);
	maker->bytes += bytes;
}

void perf_u32(struct perf_maker *maker, uint32_t value)
{
	assert(sizeof(maker->data) - maker->bytes >= 4);
	put(maker, maker->bytes, value, 4);
	maker->bytes += 4;
}

void perf_u64(struct perf_maker *maker, uint64_t value)
{
	assert(sizeof(maker->data) - maker->bytes >= 8);
	put(maker, maker->bytes, value, 8);
	maker->bytes += 8;
}

void perf_text(struct perf_maker *maker, const char *text)
{
	static const char zeros[8] = {0};
	const size_t bytes = strlen(text) + 1;
	perf_bytes(maker, text, bytes);
	perf_bytes(maker, zeros, (8 - bytes % 8) % 8);
}

void perf_record(struct perf_maker *maker, uint32_t type, uint16_t misc)
{
	maker->record = maker->bytes;
	perf_u64(maker, 0);
	put(maker, maker->record, type, 4);
	put(maker, maker->record + 4, misc, 2);
}

void perf_record_end(struct perf_maker *maker)
{
	put(maker, maker->record + 6, maker->bytes - maker->record, 2);
}

static uint64_t mirrored(uint64_t byte)
{
	uint64_t mirror = 0;
	for (unsigned i = 0; i < 8; i++)
		mirror |= (byte >> i & 1) << (7 - i);
	return mirror;
}

static void attr(struct perf_maker *maker, uint64_t sample_type, uint64_t flags)
{
	const size_t begin = maker->bytes;
	perf_u32(maker, PERF_TYPE_SOFTWARE);
	perf_u32(maker, ATTR_BYTES);
	perf_u64(maker, PERF_COUNT_SW_CPU_CLOCK);
	perf_u64(maker, 1000);
	perf_u64(maker, sample_type);
	perf_u64(maker, 0);
	/* Bit-fields: byte after byte, each from the other end when big-endian. */
	for (unsigned i = 0; i < 8; i++) {
		const uint64_t byte = flags >> 8 * i & 0xff;
		const uint8_t stored = (uint8_t)(maker->big ? mirrored(byte) : byte);
		perf_bytes(maker, &stored, 1);
	}
	while (maker->bytes - begin < ATTR_BYTES)
		perf_u64(maker, 0);
}

void perf_start(struct perf_maker *maker, bool big, bool pipe, uint64_t sample_type, uint64_t flags)
{
	*maker = (struct perf_maker){.big = big, .pipe = pipe};
	perf_bytes(maker, big ? "2ELIFREP" : "PERFILE2", 8);
	perf_u64(maker, pipe ? 16 : 104);
	if (pipe) {
		perf_record(maker, 64, 0);
		attr(maker, sample_type, flags);
		perf_record_end(maker);
	} else {
		perf_u64(maker, ATTR_BYTES + 16);
		perf_u64(maker, 104);
		perf_u64(maker, ATTR_BYTES + 16);
		perf_u64(maker, 104 + ATTR_BYTES + 16);
		for (unsigned i = 0; i < 7; i++)
			perf_u64(maker, 0);
		attr(maker, sample_type, flags);
		perf_u64(maker, 0);
		perf_u64(maker, 0);
	}
	maker->records = maker->bytes;
}

void perf_finish(struct perf_maker *maker)
{
	if (!maker->pipe)
		put(maker, 48, maker->bytes - maker->records, 8);
}

void perf_trailer(struct perf_maker *maker, uint32_t pid, uint32_t tid, uint64_t time, uint32_t cpu)
{
	perf_u32(maker, pid);
	perf_u32(maker, tid);
	perf_u64(maker, time);
	perf_u32(maker, cpu);
	perf_u32(maker, 0);
}

void perf_comm(struct perf_maker *maker, uint32_t pid, uint32_t tid, const char *comm,
	       uint64_t time, bool exec)
{
	perf_record(maker, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
	perf_u32(maker, pid);
	perf_u32(maker, tid);
	perf_text(maker, comm);
	perf_trailer(maker, pid, tid, time, 0);
	perf_record_end(maker);
}

void perf_mmap(struct perf_maker *maker, uint32_t pid, uint64_t start, uint64_t bytes,
	       uint64_t offset, const char *path, uint64_t time)
{
	perf_record(maker, PERF_RECORD_MMAP,
		    pid == UINT32_MAX ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	perf_u32(maker, pid);
	perf_u32(maker, pid);
	perf_u64(maker, start);
	perf_u64(maker, bytes);
	perf_u64(maker, offset);
	perf_text(maker, path);
	perf_trailer(maker, pid, pid, time, 0);
	perf_record_end(maker);
}

void perf_task(struct perf_maker *maker, bool fork, uint32_t pid, uint32_t ppid, uint32_t tid,
	       uint32_t ptid, uint64_t time)
{
	perf_record(maker, fork ? PERF_RECORD_FORK : PERF_RECORD_EXIT, 0);
	perf_u32(maker, pid);
	perf_u32(maker, ppid);
	perf_u32(maker, tid);
	perf_u32(maker, ptid);
	perf_u64(maker, time);
	perf_trailer(maker, ppid, ptid, time, 0);
	perf_record_end(maker);
}
