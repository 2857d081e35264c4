/* SPDX-License-Identifier: MIT */
/*
 * perf_record.h: the records of perf events, taken apart: those in the kernel's rings, and those in a perf.data file.
 *
 *   sample   head │ fields by sample_type, in a fixed order: id │ ip │ pid, tid │ time │ ... │ call chain │ ...
 *   others   head │ what it says │ trailer, by sample_type: pid, tid │ time │ id │ stream │ cpu │ id
 *
 * Nothing in a record is believed: one that is shorter than what it should hold is refused.
 */
#ifndef KY_PROCESS_PERF_RECORD_H
#define KY_PROCESS_PERF_RECORD_H

#include "process/perf_layout.h"
#include "process/proc_maps.h"

#define KY_PERF_UNKNOWN UINT32_MAX /* pid, tid, cpu */

/* A record as it lies in memory, of either byte order. */
struct ky_perf_raw {
	uint32_t type;
	uint16_t misc;
	uint32_t bytes;      /* with the head */
	const uint8_t *body; /* bytes - KY_PERF_RECORD_HEAD_BYTES of them */
	uint64_t at;         /* in the file */
};

struct ky_perf_attr;

/* Where and when a record happened, as far as it says. */
struct ky_perf_where {
	uint32_t pid, tid; /* KY_PERF_UNKNOWN */
	uint32_t cpu;      /* KY_PERF_UNKNOWN */
	uint64_t time;
	bool timed;
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
