/* SPDX-License-Identifier: MIT */
/* perf_maker.h: makes small perf.data for tests, of either byte order, as a file or as what goes through a pipe. */
#ifndef KY_TESTS_PERF_MAKER_H
#define KY_TESTS_PERF_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_maker {
	uint8_t data[1 << 16];
	size_t bytes;
	size_t record;  /* where the record began that is being made */
	size_t records; /* where the first began */
	bool big;
	bool pipe;
};

/* An event "cpu-clock" with the fields of sample_type; flags as in a little-endian attribute. */
void perf_start(struct perf_maker *maker, bool big, bool pipe, uint64_t sample_type,
		uint64_t flags);
/* A file's sizes; no features. */
void perf_finish(struct perf_maker *maker);

void perf_u32(struct perf_maker *maker, uint32_t value);
void perf_u64(struct perf_maker *maker, uint64_t value);
/* With its NUL, filled up to eight bytes. */
void perf_text(struct perf_maker *maker, const char *text);
void perf_bytes(struct perf_maker *maker, const void *data, size_t bytes);
void perf_record(struct perf_maker *maker, uint32_t type, uint16_t misc);
void perf_record_end(struct perf_maker *maker);

/* Records of the fields that the tests use: TID, TIME, CPU behind each. */
void perf_trailer(struct perf_maker *maker, uint32_t pid, uint32_t tid, uint64_t time,
		  uint32_t cpu);
void perf_comm(struct perf_maker *maker, uint32_t pid, uint32_t tid, const char *comm,
	       uint64_t time, bool exec);
void perf_mmap(struct perf_maker *maker, uint32_t pid, uint64_t start, uint64_t bytes,
	       uint64_t offset, const char *path, uint64_t time);
void perf_task(struct perf_maker *maker, bool fork, uint32_t pid, uint32_t ppid, uint32_t tid,
	       uint32_t ptid, uint64_t time);

#endif
