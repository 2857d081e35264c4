/* SPDX-License-Identifier: MIT */
/*
 * perf_record.h: the records of perf events, those in the kernel's rings and those in a perf.data file: how they lie in
 * the file, beyond what the kernel's header defines, and how they are taken apart.
 *
 *   "PERFILE2" size 104 │ attrs │ data: records │ features     a file
 *   "PERFILE2" size 16  │ records ...                          what went through a pipe
 *
 *   sample   head │ fields by sample_type, in a fixed order: id │ ip │ pid, tid │ time │ ... │ call chain │ ...
 *   others   head │ what it says │ trailer, by sample_type: pid, tid │ time │ id │ stream │ cpu │ id
 *
 * Nothing in a record is believed: one that is shorter than what it should hold is refused.
 */
#ifndef KY_PROCESS_PERF_RECORD_H
#define KY_PROCESS_PERF_RECORD_H

#include "process/proc_maps.h"

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

/* ---- records ---- */

#define KY_PERF_UNKNOWN UINT32_MAX /* pid, tid, cpu */

/* A record as it lies in memory, of either byte order. */
struct ky_perf_raw {
	uint32_t type;
	uint16_t misc;
	uint32_t bytes;      /* with the head */
	const uint8_t *body; /* bytes - KY_PERF_RECORD_HEAD_BYTES of them */
	uint64_t at;         /* in the file */
};

/* Return a record of a ring as such. */
static inline struct ky_perf_raw ky_perf_record_raw(const struct perf_event_header *head)
{
	return (struct ky_perf_raw){head->type, head->misc, head->size, (const uint8_t *)(head + 1),
				    0};
}

struct ky_perf_attr;

/* Where and when a record happened, as far as it says. */
struct ky_perf_where {
	uint32_t pid, tid; /* KY_PERF_UNKNOWN */
	uint32_t cpu;      /* KY_PERF_UNKNOWN */
	uint64_t time;
	bool timed;
	uint64_t id; /* of the event, with PERF_SAMPLE_ID; 0: unknown */
	uint32_t trailer_bytes;
	const struct ky_perf_attr *attr; /* the event, where a reader has several */
};

/* What a record that is no sample says. Texts lie in the record. */
struct ky_perf_record {
	uint32_t type; /* enum perf_event_type */
	uint16_t misc;
	uint32_t pid, tid; /* whom it is about */
	uint64_t time;     /* 0: it does not say */
	bool text_ends;    /* its path or name is terminated */
	union {
		struct { /* MMAP, MMAP2; end is 0 when it overflows */
			struct ky_proc_mapping map;
			size_t path_bytes;
		};
		struct { /* COMM */
			const char *name;
			size_t bytes;
			bool exec; /* a new program has begun */
		} comm;
		struct { /* FORK, EXIT */
			uint32_t parent_pid, parent_tid;
			uint64_t time;
		} task;
		struct { /* SWITCH, SWITCH_CPU_WIDE */
			bool out, preempted;
			uint32_t other_pid, other_tid; /* of the whole CPU's: who comes or went */
		} switched;
		struct { /* AUX */
			uint64_t offset, bytes, flags;
		} aux;
		uint64_t lost; /* LOST, LOST_SAMPLES */
	};
};

/* Return how many bytes end each record that is no sample, when sample_id_all is set. */
uint32_t ky_perf_record_trailer_bytes(uint64_t sample_type);

/*
 * Decode a record of a ring, whose events have this sample_type and sample_id_all. False when it is damaged, a sample, of a
 * mapping that is not code, or of a type that kymo does not use.
 */
bool ky_perf_record_parse(struct ky_perf_record *record, const struct perf_event_header *head,
			  uint64_t sample_type);
/* Return the time of a record of a ring without decoding it; 0: it does not say. */
uint64_t ky_perf_record_time(const struct perf_event_header *head, uint64_t sample_type);

/* ---- of files, whose records may be of another machine ---- */

/* Decode what a record says, but for its trailer. False when it is too short. Texts may not be terminated. */
bool ky_perf_record_body(struct ky_perf_record *record, const struct ky_perf_raw *raw,
			 uint32_t trailer_bytes, bool big);
/* Decode where and when a record happened: from its trailer, or, of a sample, from its first fields. */
void ky_perf_record_where(struct ky_perf_where *where, const struct ky_perf_raw *raw,
			  uint64_t sample_type, uint32_t trailer_bytes, bool big);

/* The fields of a sample up to its raw data. */
struct ky_perf_fields {
	uint64_t ip, period;
	bool has_ip, has_period;
	struct ky_perf_cursor values; /* PERF_SAMPLE_READ */
	const uint8_t *chain;
	uint64_t chain_words;
	const uint8_t *raw;
	uint32_t raw_bytes;
};
/* Decode the fields of a sample and move behind them. Those that are beyond the end are left out: cursor->short_of. */
void ky_perf_record_sample(struct ky_perf_fields *fields, struct ky_perf_cursor *cursor,
			   uint64_t sample_type, uint64_t read_format);

#endif
