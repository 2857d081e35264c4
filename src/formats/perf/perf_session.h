/* SPDX-License-Identifier: MIT */
/*
 * perf_session.h: one perf.data while it is read, from inside, for the files of its reader.
 *
 *   file ── perf_data_read.c: records, unpacked ──▶ perf_record.c: in the order of time ─┬─▶ samples: perf_sample.c
 *            │                                                                            ├─▶ tracepoints: perf_tracepoint.c
 *            └─▶ attributes, features, build ids: perf_attr.c                              └─▶ mmap, comm, fork, switch: perf_task.c
 *
 * Every record is looked at twice: when it is read, for its time; and when it is its turn, for what it says.
 */
#ifndef KY_FORMATS_PERF_PERF_SESSION_H
#define KY_FORMATS_PERF_PERF_SESSION_H

#include "base/map.h"
#include "base/ranges.h"
#include "formats/load.h"
#include "formats/perf/symbols_given.h"
#include "process/perf_record.h"
#include "process/symbols.h"

/* An event that was recorded. */
struct ky_perf_attr {
	uint32_t type;
	uint64_t config;
	uint64_t period; /* when it is not a frequency, else 0 */
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags; /* KY_PERF_ATTR_ */
	uint64_t branch_type;
	uint64_t regs_user;
	uint64_t regs_intr;
	int32_t clockid;
	uint32_t name;          /* string */
	uint32_t trailer_bytes; /* of what ends each record that is no sample */
};

/* A record that waits for its turn. */
struct ky_perf_waiting {
	uint64_t time;
	uint64_t order;
	uint64_t at;    /* in the file */
	uint64_t place; /* in bytes */
};

struct ky_perf_queue {
	struct ky_perf_waiting *waiting;
	uint32_t count;
	uint64_t room;
	uint8_t *bytes;
	uint64_t bytes_used, bytes_room;
	uint64_t order;
	uint64_t newest;       /* time of all so far */
	uint64_t round_newest; /* the same when the last round ended */
};

/* Something that was mapped. */
struct ky_perf_mapped {
	uint64_t start;
	uint64_t offset;
	uint32_t mapping; /* of the trace */
	uint32_t file;    /* of symbols, or KY_NONE */
	bool anonymous;   /* may hold code that was made at run time */
};

/* A process's addresses. view changes when what was looked up before may be wrong. */
struct ky_perf_space {
	struct ky_space space;
	uint32_t view;
};

/* The sum of an event on a CPU. */
struct ky_perf_total {
	uint32_t track;
	double value;
};

struct ky_perf_tracepoints;
struct ky_perf_ending;
struct ky_perf_frame_slot;
struct ky_perf_unpack;

struct ky_perf {
	struct ky_load *load;
	struct ky_trace *trace;
	uint64_t clock; /* of the records; the trace's is another when they are a part of it */
	/* Times from clock_first to clock_last are the trace's when that is added. */
	int64_t clock_offset, clock_first, clock_last;
	bool big;
	bool pipe;
	bool first_pass; /* of a pipe's: only what records need to be understood */
	uint8_t features[KY_PERF_FEATURES_MAX / 8];

	struct ky_perf_attr *attrs;
	uint32_t attrs_count;
	uint64_t attrs_room;
	struct ky_u64_map attr_of; /* id */

	struct ky_perf_queue queue;
	struct ky_perf_unpack *unpack;

	struct ky_ranges ranges;
	struct ky_perf_space *spaces;
	uint32_t spaces_count;
	uint64_t spaces_room;
	struct ky_u64_map space_of; /* pid */
	uint32_t views;
	struct ky_perf_mapped *mapped;
	uint32_t mapped_count;
	uint64_t mapped_room;
	struct ky_u64_map build_id_of; /* path's string to build id's */
	struct ky_perf_frame_slot *frame_slots;
	struct ky_symbols_given *given; /* names that came with it, or NULL */
	struct ky_symbols *symbols;

	struct ky_perf_total *totals;
	uint32_t totals_count;
	uint64_t totals_room;
	struct ky_u64_map total_of; /* event and CPU */

	struct ky_u64_map comm_of; /* tid */
	struct ky_perf_ending *endings;
	uint32_t endings_count;
	uint64_t endings_room;
	struct ky_u64_map ending_of; /* tid */

	struct ky_perf_tracepoints *tracepoints;
	bool has_sched_switch;         /* then switch records add nothing */
	uint32_t release;              /* of the kernel, major << 8 | minor */
	uint32_t release_text;         /* string */
	struct ky_u64_map switched_to; /* CPU: tid that a switch record said comes next */
	uint64_t samples;
	uint64_t records;
};

/* ---- perf_attr.c ---- */

/* One attribute of that many bytes; its number, or KY_NONE. */
uint32_t ky_perf_attr_add(struct ky_perf *perf, const uint8_t *data, size_t bytes);
void ky_perf_attr_id(struct ky_perf *perf, uint32_t attr, uint64_t id);
/* After the last: which clock the times are of. */
void ky_perf_attr_clock(struct ky_perf *perf);
/* Return a time of the records as one of the trace. */
uint64_t ky_perf_trace_time(struct ky_perf *perf, uint64_t time);
const struct ky_perf_attr *ky_perf_attr_by_id(const struct ky_perf *perf, uint64_t id);
void ky_perf_attr_rename(struct ky_perf *perf, uint64_t id, const char *name, size_t bytes);
/* The fields of the record's trailer, or of the beginning of a sample. */
void ky_perf_where(const struct ky_perf *perf, const struct ky_perf_raw *record,
		   struct ky_perf_where *where);

void ky_perf_feature(struct ky_perf *perf, uint32_t feature, const uint8_t *data, size_t bytes,
		     uint64_t at);
/* A record of the build id section. */
void ky_perf_build_id(struct ky_perf *perf, const struct ky_perf_raw *record);
/* Return the build id as a string of the trace, or 0. */
uint32_t ky_perf_build_id_text(struct ky_perf *perf, const uint8_t *bytes, size_t count);
void ky_perf_time_conv(struct ky_perf *perf, const struct ky_perf_raw *record);

/* ---- perf_record.c ---- */

/* A record that comes now; those with a time wait for their turn. */
void ky_perf_record_take(struct ky_perf *perf, const struct ky_perf_raw *record);
/* Count a record that does not hold what its kind needs. */
void ky_perf_record_short(struct ky_perf *perf, const struct ky_perf_raw *record);
/* A round ended: what can have nothing older behind it gets its turn. */
void ky_perf_order_round(struct ky_perf *perf);
/* The rest gets its turn. */
void ky_perf_order_end(struct ky_perf *perf);
void ky_perf_order_free(struct ky_perf_queue *queue);

/* ---- perf_sample.c ---- */

void ky_perf_sample(struct ky_perf *perf, const struct ky_perf_raw *record,
		    const struct ky_perf_where *where);

/* ---- perf_task.c ---- */

/* A mapping of a process or of the kernel. */
void ky_perf_mmap(struct ky_perf *perf, const struct ky_perf_raw *raw,
		  const struct ky_perf_where *where);
/* Return the space of a process, made if needed, valid until the next one is made; NULL without memory. */
struct ky_perf_space *ky_perf_space(struct ky_perf *perf, uint32_t pid);
void ky_perf_task_comm(struct ky_perf *perf, const struct ky_perf_raw *record,
		       const struct ky_perf_where *where);
/* A fork or an exit. */
void ky_perf_task(struct ky_perf *perf, const struct ky_perf_raw *record,
		  const struct ky_perf_where *where);
/* Something happened in that thread. */
void ky_perf_task_seen(struct ky_perf *perf, const struct ky_perf_where *where);
/* After the last record. */
void ky_perf_task_end(struct ky_perf *perf);
void ky_perf_switch(struct ky_perf *perf, const struct ky_perf_raw *record,
		    const struct ky_perf_where *where);

/* ---- perf_tracepoint.c ---- */

/* The tracing data: formats of tracepoints, kallsyms. */
void ky_perf_tracing_data(struct ky_perf *perf, const uint8_t *data, size_t bytes, uint64_t at);
void ky_perf_tracepoints_close(struct ky_perf_tracepoints **tracepoints);
/* The tracepoint of a sample, with its fields. */
void ky_perf_tracepoint(struct ky_perf *perf, uint64_t id, const uint8_t *raw, size_t bytes,
			const struct ky_perf_where *where);

#endif
