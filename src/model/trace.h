/* SPDX-License-Identifier: MIT */
/*
 * trace.h: one trace in memory, in columns.
 *
 *   processes ◀── threads ◀── tracks ◀── slices ──▶ parent slice     strings: every text once
 *        ▲           ▲           ▲ ▲        ▲ └───▶ args             args: sets of key and value
 *        └───────────┴───────────┘ │        └───── flows (out ─▶ in)
 *                    ▲             counters
 *                    ├── sched, thread states, raw kernel events
 *                    ├── samples ──▶ callsites ──▶ frames ──▶ mappings
 *                    └── logs, losses
 *
 * A reader fills it through intake.h until ky_trace_finish(). From then on nothing changes, and any number of
 * threads may read it. A row's number is its id. Slices, counters, sched, samples, logs and raw events are in the
 * order of time; slices that begin together are in the order of nesting.
 *
 * Times are nanoseconds of trace->clock (normally BOOTTIME); a duration of -1 means that it never ended.
 * Instants are slices of duration 0 and kind KY_SLICE_INSTANT.
 */
#ifndef KY_MODEL_TRACE_H
#define KY_MODEL_TRACE_H

#include "base/strings.h"
#include "model/clocks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the memory under a table ---- */

/*
 * The memory under a table: one array a column, all of the same number of rows.
 *
 *   rows ───────▶
 *   ts    ████████████████░░░░░░░░   █ rows
 *   dur   ████████████████░░░░░░░░   ░ room: address space that has no memory yet
 *   track ████████████████░░░░░░░░
 *
 * Large arrays are mappings that the kernel moves when they grow (base/array.h): nothing is copied, and unwritten room
 * takes no memory. So a table's peak is its own size, and a column is one plain array.
 */

/* A column of a table: the offset of its pointer in the table's struct, and the size of an item; see tables.h. */
struct ky_column {
	uint16_t offset;
	uint16_t item_bytes;
	const char *name;
	uint8_t holds;   /* enum ky_holds */
	uint8_t limit;   /* of a choice */
	uint16_t target; /* of a row: offset of the other table in struct ky_trace */
};

#define KY_COLUMN(type, field)                                                                     \
	{                                                                                          \
		.offset = (uint16_t)offsetof(struct type, field),                                  \
		.item_bytes = (uint16_t)sizeof(*((struct type *)0)->field)                         \
	}

/* The head of every table's struct. A row's id is its number below count; KY_NONE is no row. */
struct ky_rows {
	uint32_t count;
	uint32_t room;
};

#define KY_NONE UINT32_MAX

/*
 * Make room for one more row of a struct that begins with struct ky_rows. False without memory, or
 * when all ids are taken.
 */
bool ky_rows_grow(void *table, const struct ky_column *columns, uint32_t columns_count);
void ky_rows_free(void *table, const struct ky_column *columns, uint32_t columns_count);
/* Return the bytes of all rows. */
uint64_t ky_rows_bytes(const void *table, const struct ky_column *columns, uint32_t columns_count);

/* ---- the tables ---- */

/* Processes and threads: a pid or tid that is used again gets a row of its own. */
struct ky_processes {
	struct ky_rows rows;
	int64_t *pid;
	uint32_t *name;    /* string, 0: unknown */
	uint32_t *cmdline; /* string, 0: unknown */
	uint32_t *parent;  /* process or KY_NONE */
	int64_t *start_ts; /* KY_TIME_NONE: unknown */
	int64_t *end_ts;
	uint32_t *args;
	uint32_t *machine; /* 0 is the machine of the trace; see machines */
	int32_t *uid;      /* -1: unknown */
	int32_t *sort_index;
	uint8_t *name_from; /* enum ky_name_from */
};

struct ky_threads {
	struct ky_rows rows;
	int64_t *tid;
	uint32_t *name;
	uint32_t *process; /* or KY_NONE */
	int64_t *start_ts;
	int64_t *end_ts;
	uint32_t *machine;
	int32_t *sort_index;
	uint8_t *is_main;
	uint8_t *name_from;
	uint8_t *is_idle; /* the kernel's idle task (tid 0) */
};

#define KY_TIME_NONE INT64_MIN

/* The owner of a track decides which of Perfetto's track tables shows it. */
enum ky_track_kind {
	KY_TRACK_GLOBAL,  /* owner is KY_NONE */
	KY_TRACK_PROCESS, /* owner is a process */
	KY_TRACK_THREAD,  /* owner is a thread */
	KY_TRACK_CPU,     /* owner is the number of a CPU */
	KY_TRACK_COUNTER, /* like GLOBAL, for counters */
	KY_TRACK_PROCESS_COUNTER,
	KY_TRACK_THREAD_COUNTER,
	KY_TRACK_CPU_COUNTER
};

struct ky_tracks {
	struct ky_rows rows;
	uint32_t *name;
	uint32_t *owner;  /* process, thread or CPU by kind */
	uint32_t *parent; /* track or KY_NONE */
	uint32_t *
		type; /* string: Perfetto's type of track ("thread_execution", "process_track_event", ...) */
	uint32_t *unit; /* string, for counters */
	uint32_t *args; /* its dimensions, description, ... */
	uint64_t *id;   /* async: the id; pftrace: the uuid */
	uint8_t *kind;  /* enum ky_track_kind */
	uint8_t *flags; /* KY_TRACK_ */
};

#define KY_TRACK_ASYNC 1u       /* spans that may cross threads, identified by id */
#define KY_TRACK_OVERFLOW 2u    /* slices that overlapped others of the parent track */
#define KY_TRACK_INCREMENTAL 4u /* a counter whose values in the file were differences */

static inline bool ky_track_is_counter(uint8_t kind)
{
	return kind >= KY_TRACK_COUNTER;
}

enum ky_slice_kind { KY_SLICE_SPAN, KY_SLICE_INSTANT };

struct ky_slices {
	struct ky_rows rows;
	int64_t *ts;
	int64_t *dur; /* -1: never ended */
	uint32_t *track;
	uint32_t *name;     /* string */
	uint32_t *category; /* string */
	uint32_t *parent;   /* slice or KY_NONE */
	uint32_t *args;     /* set, 0: none */
	uint16_t *depth;
	uint8_t *kind; /* enum ky_slice_kind */
};

struct ky_counters {
	struct ky_rows rows;
	int64_t *ts;
	double *value;
	uint32_t *track;
	uint32_t *args;
};

/* An arrow from one slice to another. */
struct ky_flows {
	struct ky_rows rows;
	uint32_t *out;
	uint32_t *in;
	uint64_t *id; /* as the file has it */
	uint32_t *name;
	uint32_t *category;
};

/* Flows with only one end in this trace: the other end may be in another trace. */
struct ky_flow_ends {
	struct ky_rows rows;
	uint32_t *slice;
	uint64_t *id;
	uint32_t *name;
	uint32_t *category;
	uint8_t *arrives; /* it ends here; otherwise it leaves */
};

enum ky_arg_type {
	KY_ARG_NULL,
	KY_ARG_INT,
	KY_ARG_UINT,
	KY_ARG_REAL,
	KY_ARG_BOOL,
	KY_ARG_POINTER,
	KY_ARG_STRING,
	KY_ARG_JSON /* a string that is JSON text */
};

/* The arguments of all sets; a set is a range of them. */
struct ky_args {
	struct ky_rows rows;
	uint32_t *key;   /* string: full key, with array indices: "debug.a.b[1]" */
	uint8_t *type;   /* enum ky_arg_type */
	uint64_t *value; /* an integer, the bits of a double, or a string's number */
};

/* The first argument of a set, which ends where the next set begins. Row 0 is no set. */
struct ky_arg_sets {
	struct ky_rows rows;
	uint32_t *first;
};

struct ky_sched {
	struct ky_rows rows;
	int64_t *ts;
	int64_t *dur;
	uint32_t *cpu;
	uint32_t *thread;
	uint32_t *end_state; /* string: "S", "R+", ...; 0: unknown */
	int32_t *priority;
};

struct ky_thread_states {
	struct ky_rows rows;
	int64_t *ts;
	int64_t *dur;
	uint32_t *thread;
	uint32_t *state;            /* string: "Running", "R", "S", "D", ... */
	uint32_t *cpu;              /* KY_NONE when not running */
	uint32_t *waker;            /* thread or KY_NONE */
	int8_t *io_wait;            /* -1: unknown */
	uint32_t *blocked_function; /* string */
};

/* Raw kernel events (Perfetto's ftrace_event). */
struct ky_raw_events {
	struct ky_rows rows;
	int64_t *ts;
	uint32_t *name;
	uint32_t *cpu;
	uint32_t *thread;
	uint32_t *args;
};

struct ky_mappings {
	struct ky_rows rows;
	uint32_t *build_id; /* string, hexadecimal */
	uint32_t *name;     /* string: path */
	uint64_t *start;
	uint64_t *end;
	uint64_t *offset; /* in the file */
	uint64_t *load_bias;
};

struct ky_frames {
	struct ky_rows rows;
	uint32_t *name;    /* string: function, demangled where possible */
	uint32_t *mapping; /* or KY_NONE */
	uint64_t *rel_pc;
	uint32_t *file; /* string, 0: unknown */
	uint32_t *line;
};

struct ky_callsites {
	struct ky_rows rows;
	uint32_t *parent; /* callsite or KY_NONE */
	uint32_t *frame;
	uint32_t *depth;
};

struct ky_samples {
	struct ky_rows rows;
	int64_t *ts;
	uint32_t *thread;
	uint32_t *callsite; /* or KY_NONE */
	uint32_t *cpu;      /* or KY_NONE */
	uint8_t *mode;      /* enum ky_cpu_mode */
	double *weight;     /* period, or the number of events that it represents; 1 when unknown */
	uint32_t *event;    /* string: "cycles", "cpu-clock", ... */
};

enum ky_cpu_mode {
	KY_CPU_MODE_UNKNOWN,
	KY_CPU_MODE_KERNEL,
	KY_CPU_MODE_USER,
	KY_CPU_MODE_HYPERVISOR,
	KY_CPU_MODE_GUEST_KERNEL,
	KY_CPU_MODE_GUEST_USER
};

struct ky_logs {
	struct ky_rows rows;
	int64_t *ts;
	uint32_t *thread; /* or KY_NONE */
	uint8_t *
		priority; /* Perfetto's: 2 verbose, 3 debug, 4 info, 5 warn, 6 error, 7 fatal; 0 unknown */
	uint32_t *tag;
	uint32_t *message;
};

/* Lost events. */
struct ky_losses {
	struct ky_rows rows;
	int64_t *ts;      /* KY_TIME_NONE: unknown */
	uint64_t *events; /* 0: unknown */
	uint32_t *thread; /* or KY_NONE */
	uint32_t *cpu;    /* or KY_NONE */
	uint32_t *what;   /* string: the cause */
};

/* Clock snapshots: rows with the same snapshot are the times of several clocks at one moment. */
struct ky_clock_rows {
	struct ky_rows rows;
	uint32_t *snapshot;
	int64_t *ts; /* in the trace's clock */
	uint64_t *clock;
	int64_t *value;
	uint32_t *machine;
};

struct ky_metadata {
	struct ky_rows rows;
	uint32_t *key;
	uint32_t *text; /* string, 0: a number */
	int64_t *number;
};

/* Problems of the input, named like Perfetto's stats where it has the same one. */
enum ky_severity { KY_INFO, KY_DATA_LOSS, KY_ERROR };

struct ky_problems {
	struct ky_rows rows;
	uint32_t *name;     /* string: "misplaced_end_event" */
	uint8_t *severity;  /* enum ky_severity */
	uint64_t *number;   /* how often */
	uint64_t *first_at; /* byte of the input, or KY_NO_PLACE */
	uint32_t *first;    /* string: details of the first one, 0: none */
	uint32_t *input;    /* string: which input, 0: the only one */
};

#define KY_NO_PLACE UINT64_MAX

/* The argument of an instant that is a formatted message: its format, which is the same for all of a trace point. */
#define KY_PRINT_FORMAT_KEY "print.format"

struct ky_build; /* state while the trace is filled; build.h */
struct ky_index; /* made on first use; index.h */

struct ky_trace {
	struct ky_strings strings;
	struct ky_processes processes;
	struct ky_threads threads;
	struct ky_tracks tracks;
	struct ky_slices slices;
	struct ky_counters counters;
	struct ky_flows flows;
	struct ky_flow_ends flow_ends;
	struct ky_args args;
	struct ky_arg_sets arg_sets;
	struct ky_sched sched;
	struct ky_thread_states thread_states;
	struct ky_raw_events raw_events;
	struct ky_mappings mappings;
	struct ky_frames frames;
	struct ky_callsites callsites;
	struct ky_samples samples;
	struct ky_logs logs;
	struct ky_losses losses;
	struct ky_clock_rows clock_rows;
	struct ky_metadata metadata;
	struct ky_problems problems;
	struct ky_clocks *clocks;
	uint64_t clock;   /* enum ky_clock: the timeline */
	int64_t begin_ns; /* of all events; both 0 when there are none */
	int64_t end_ns;
	uint64_t events;    /* read */
	uint64_t lost;      /* sum of losses.events */
	const char *format; /* of the input: "json", "pftrace", ...; static */
	bool finished;
	int error;              /* -ENOMEM once memory ran out: the trace is incomplete */
	unsigned failures;      /* of all allocations, before this trace: see base/memory.h */
	struct ky_build *build; /* NULL once it is finished */
	struct ky_index *index;
};

/* Open an empty trace. 0 or -ENOMEM. */
int ky_trace_open(struct ky_trace **trace);
void ky_trace_close(struct ky_trace **trace);

/* Return the bytes of all columns and strings. */
uint64_t ky_trace_memory(const struct ky_trace *trace);

static inline const char *ky_text_of(const struct ky_trace *trace, uint32_t string)
{
	return ky_strings_text(&trace->strings, string);
}

/* Return the bounds of a set's arguments: from first to before end. */
static inline uint32_t ky_arg_set_first(const struct ky_trace *trace, uint32_t set)
{
	return set ? trace->arg_sets.first[set] : 0;
}

static inline uint32_t ky_arg_set_end(const struct ky_trace *trace, uint32_t set)
{
	if (!set)
		return 0;
	return set + 1 < trace->arg_sets.rows.count ? trace->arg_sets.first[set + 1]
						    : trace->args.rows.count;
}

/* Return the thread or process that a track belongs to, or KY_NONE. */
uint32_t ky_track_thread(const struct ky_trace *trace, uint32_t track);
uint32_t ky_track_process(const struct ky_trace *trace, uint32_t track);

#endif
