/* SPDX-License-Identifier: MIT */
/*
 * perf_layout.h: perf.data as it lies in the file, beyond what the kernel's header defines: the file's
 * head, the records that perf itself makes, and numbers of either byte order.
 *
 *   "PERFILE2" size 104 │ attrs │ data: records │ features     a file
 *   "PERFILE2" size 16  │ records ...                          what went through a pipe
 */
#ifndef KY_PROCESS_PERF_LAYOUT_H
#define KY_PROCESS_PERF_LAYOUT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KY_PERF_MAGIC "PERFILE2"
#define KY_PERF_MAGIC_SWAPPED "2ELIFREP"
#define KY_PERF_FILE_HEAD_BYTES 104u
#define KY_PERF_PIPE_HEAD_BYTES 16u
#define KY_PERF_RECORD_HEAD_BYTES 8u
#define KY_PERF_FEATURES_MAX 256u

/* Records that perf makes itself. */
enum ky_perf_user_type {
	KY_PERF_HEADER_ATTR = 64,
	KY_PERF_EVENT_TYPE = 65,
	KY_PERF_TRACING_DATA = 66,
	KY_PERF_BUILD_ID = 67,
	KY_PERF_FINISHED_ROUND = 68,
	KY_PERF_ID_INDEX = 69,
	KY_PERF_AUXTRACE_INFO = 70,
	KY_PERF_AUXTRACE = 71,
	KY_PERF_AUXTRACE_ERROR = 72,
	KY_PERF_EVENT_UPDATE = 78,
	KY_PERF_TIME_CONV = 79,
	KY_PERF_HEADER_FEATURE = 80,
	KY_PERF_COMPRESSED = 81,
	KY_PERF_FINISHED_INIT = 82,
	KY_PERF_COMPRESSED2 = 83
};
#define KY_PERF_USER_TYPES 64u

enum ky_perf_feature {
	KY_PERF_FEATURE_TRACING_DATA = 1,
	KY_PERF_FEATURE_BUILD_ID = 2,
	KY_PERF_FEATURE_HOSTNAME = 3,
	KY_PERF_FEATURE_OSRELEASE = 4,
	KY_PERF_FEATURE_VERSION = 5,
	KY_PERF_FEATURE_ARCH = 6,
	KY_PERF_FEATURE_NRCPUS = 7,
	KY_PERF_FEATURE_CPUDESC = 8,
	KY_PERF_FEATURE_CPUID = 9,
	KY_PERF_FEATURE_TOTAL_MEM = 10,
	KY_PERF_FEATURE_CMDLINE = 11,
	KY_PERF_FEATURE_EVENT_DESC = 12,
	KY_PERF_FEATURE_CLOCKID = 23,
	KY_PERF_FEATURE_CLOCK_DATA = 29
};

/* Bits of an attribute's flags, as a little-endian file has them. */
#define KY_PERF_ATTR_FREQ (1ull << 10)
#define KY_PERF_ATTR_SAMPLE_ID_ALL (1ull << 18)
#define KY_PERF_ATTR_USE_CLOCKID (1ull << 25)

/* From here on, words of a call chain are no addresses: they say whose addresses follow. */
#define KY_PERF_CONTEXT_FIRST ((uint64_t)-4095)

/* Whether this machine is big-endian. */
#define KY_PERF_BIG_HERE (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static inline uint16_t ky_perf_u16(const uint8_t *p, bool big)
{
	return (uint16_t)(big ? p[0] << 8 | p[1] : p[1] << 8 | p[0]);
}

static inline uint32_t ky_perf_u32(const uint8_t *p, bool big)
{
	uint32_t value;
	__builtin_memcpy(&value, p, sizeof(value));
	return big == KY_PERF_BIG_HERE ? value : __builtin_bswap32(value);
}

static inline uint64_t ky_perf_u64(const uint8_t *p, bool big)
{
	uint64_t value;
	__builtin_memcpy(&value, p, sizeof(value));
	return big == KY_PERF_BIG_HERE ? value : __builtin_bswap64(value);
}

/* A reader of bytes of either order; beyond the end it reads 0 and sets short_of. */
struct ky_perf_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool big;
	bool short_of;
};

static inline size_t ky_perf_left(const struct ky_perf_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* Return the bytes, or NULL and set short_of. */
static inline const uint8_t *ky_perf_take(struct ky_perf_cursor *cursor, uint64_t bytes)
{
	if (ky_perf_left(cursor) < bytes) {
		cursor->short_of = true;
		cursor->at = cursor->end;
		return NULL;
	}
	const uint8_t *taken = cursor->at;
	cursor->at += bytes;
	return taken;
}

static inline uint32_t ky_perf_take_u32(struct ky_perf_cursor *cursor)
{
	const uint8_t *p = ky_perf_take(cursor, 4);
	return p ? ky_perf_u32(p, cursor->big) : 0;
}

static inline uint64_t ky_perf_take_u64(struct ky_perf_cursor *cursor)
{
	const uint8_t *p = ky_perf_take(cursor, 8);
	return p ? ky_perf_u64(p, cursor->big) : 0;
}

#endif
