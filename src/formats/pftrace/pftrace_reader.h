/* SPDX-License-Identifier: MIT */
/*
 * pftrace_reader.h: the state of the reader of Perfetto protobuf, and its parts.
 *
 *   bytes ─▶ packets (pftrace_read.c) ─┬─ pass 1: clocks, track descriptors, machines
 *                                      └─ pass 2: sequence's state ─▶ payload ─▶ intake
 *
 * What the first pass learns may be anywhere in the file and is needed from the first event on. A sequence is the
 * packets of one writer; interned ids, defaults and time differences belong to one. All arrays grow with the input only.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_READER_H
#define KY_FORMATS_PFTRACE_PFTRACE_READER_H

#include <errno.h>

#include "base/array.h"
#include "base/buffer.h"
#include "formats/load.h"
#include "formats/pftrace/ftrace_events.h"
#include "formats/pftrace/pftrace_iids.h"
#include "formats/pftrace/pftrace_schema.h"
#include "formats/proto.h"

/* The interned texts; each is a map from iid to a string's number. */
enum ky_pf_texts {
	KY_PF_CATEGORIES,
	KY_PF_NAMES,
	KY_PF_ANNOTATION_KEYS, /* "debug." and the name */
	KY_PF_ANNOTATION_VALUES,
	KY_PF_FUNCTIONS,
	KY_PF_BUILD_IDS, /* hexadecimal */
	KY_PF_MAPPING_PATHS,
	KY_PF_SOURCE_PATHS,
	KY_PF_LOG_BODIES,
	KY_PF_KERNEL_SYMBOLS,
	KY_PF_CORRELATION_IDS,
	KY_PF_HISTOGRAM_NAMES,
	KY_PF_TEXTS_COUNT
};

/* The interned messages; each is a map from iid to a row of an array in struct ky_pf. */
enum ky_pf_messages {
	KY_PF_LOCATIONS,
	KY_PF_MAPPINGS,
	KY_PF_FRAMES,
	KY_PF_CALLSTACKS,
	KY_PF_TASK_CONTEXTS,      /* kept as callstacks are, as messages */
	KY_PF_EXECUTION_CONTEXTS, /* as well */
	KY_PF_MESSAGES_COUNT
};

struct ky_pf_location {
	uint32_t file;
	uint32_t function;
	uint32_t line;
	uint32_t args; /* the set of events that have no other arguments, 0: not yet made */
};

struct ky_pf_mapping {
	uint64_t build_id_iid;
	uint64_t start, end, offset, load_bias;
	struct ky_proto_view paths; /* copy of the message: its path components; freed at the end */
	uint32_t row;               /* in the model, KY_NONE: not yet */
};

struct ky_pf_frame {
	uint64_t function_iid;
	uint64_t mapping_iid;
	uint64_t source_iid;
	uint64_t rel_pc;
	uint32_t line;
	uint32_t row;
};

struct ky_pf_callstack {
	struct ky_proto_view frames; /* copy of the message */
	uint32_t row;                /* callsite */
	bool done;
};

/* A clock as snapshots describe it. */
struct ky_pf_clock {
	uint64_t key; /* enum ky_clock, or of the trace */
	int64_t unit_ns;
	int64_t last_ns; /* incremental: where the next difference starts */
	bool incremental;
	/* The last conversion to the trace's clock, and the times it is good for. */
	bool converts;
	int64_t offset_ns;
	int64_t first_ns, final_ns;
};

struct ky_pf_uuids {
	uint64_t *items;
	uint32_t count, room;
};

/* What a sequence has interned; allocated on first use. */
struct ky_pf_tables {
	struct ky_pf_iids texts[KY_PF_TEXTS_COUNT];
	struct ky_pf_iids messages[KY_PF_MESSAGES_COUNT];
};

struct ky_pf_sequence {
	uint32_t id;
	uint32_t machine;
	bool seen;                   /* a packet of it, in this pass */
	bool valid;                  /* nothing is missing since its state was cleared */
	struct ky_pf_tables *tables; /* or NULL */
	/* Defaults of packets. */
	bool has_track_uuid;
	uint64_t track_uuid;
	uint32_t clock_id;
	struct ky_pf_uuids extra_counters;
	struct ky_pf_uuids extra_real_counters;
	uint32_t sample_event; /* of perf samples: string */
	/* The thread of legacy events; survives clearing. */
	bool has_thread;
	int64_t pid, tid;
	/* The bases of legacy events' differences. */
	bool times_valid;
	int64_t time_ns, thread_time_ns, instructions;
	/* Running values of incremental counters: from uuid to a row of pf->values. */
	struct ky_u64_map values;
	/* Caches. */
	uint64_t track_cached_uuid;
	uint32_t track_cached; /* row of pf->tracks, KY_NONE: none */
	uint32_t clock_cached_id;
	uint32_t clock_cached; /* row of pf->clocks, KY_NONE: none */
};

enum ky_pf_scope { KY_PF_GLOBAL, KY_PF_PROCESS, KY_PF_THREAD };

/* A track by uuid: what descriptors say, and what became of it. */
struct ky_pf_track {
	uint64_t uuid;
	uint64_t parent_uuid;
	int64_t pid, tid;
	int64_t unit_multiplier;
	uint32_t machine;
	uint32_t name;
	uint32_t unit;
	uint32_t category;
	uint32_t description;
	uint32_t share_key;
	uint32_t builtin;
	int32_t rank;
	uint8_t ordering;
	uint8_t depth; /* below the root, when resolved */
	bool has_pid, has_tid, has_rank;
	bool counter, state, incremental;
	bool separate; /* not the thread's own track */
	bool never_merged;
	bool state_open;
	/* Resolved. */
	enum { KY_PF_NEW, KY_PF_RESOLVED, KY_PF_UNRESOLVABLE } resolved;
	enum ky_pf_scope scope;
	bool root;
	uint32_t owner; /* thread or process by scope, else KY_NONE */
	uint32_t track; /* of the model, KY_NONE: not yet made */
};

/* Strings that are needed again and again; made at the start. */
enum ky_pf_word {
#define KY_PF_WORDS(X)                                                                             \
	X(THREAD_TIME, "thread_time")                                                              \
	X(INSTRUCTIONS, "thread_instruction_count")                                                \
	X(DEFAULT_TRACK, "Default Track")                                                          \
	X(SOURCE_FILE, "source.file_name")                                                         \
	X(SOURCE_FUNCTION, "source.function_name")                                                 \
	X(SOURCE_IID, "source_location_iid")                                                       \
	X(SOURCE_LINE, "source.line_number")                                                       \
	X(LOCATION_FILE, "source_location.file_name")                                              \
	X(LOCATION_FUNCTION, "source_location.function_name")                                      \
	X(LOCATION_LINE, "source_location.line_number")                                            \
	X(TASK_FILE, "task.posted_from.file_name")                                                 \
	X(TASK_FUNCTION, "task.posted_from.function_name")                                         \
	X(TASK_LINE, "task.posted_from.line_number")                                               \
	X(LOG_MESSAGE, "track_event.log_message.message")                                          \
	X(LOG_FUNCTION, "track_event.log_message.function_name")                                   \
	X(LOG_FILE, "track_event.log_message.file_name")                                           \
	X(LOG_LINE, "track_event.log_message.line_number")                                         \
	X(LOG_PRIORITY, "track_event.priority")                                                    \
	X(CORRELATION_ID, "correlation_id")                                                        \
	X(PHASE, "legacy_event.phase")                                                             \
	X(HISTOGRAM_NAME, "chrome_histogram_sample.name")                                          \
	X(TRACE_ID, "trace_id")                                                                    \
	X(CATEGORY, "category")                                                                    \
	X(DESCRIPTION, "description")                                                              \
	X(BUILTIN, "builtin_counter_type")                                                         \
	X(SHARE_KEY, "y_axis_share_key")                                                           \
	X(CHILD_ORDERING, "child_ordering")                                                        \
	X(RANK, "sibling_order_rank")                                                              \
	X(CPUFREQ, "cpufreq")                                                                      \
	X(CPUIDLE, "cpuidle")
#define X(name, text) KY_PF_W_##name,
	KY_PF_WORDS(X)
#undef X
		KY_PF_WORDS_COUNT
};

struct ky_pf;
struct ky_pf_ftrace;
typedef void ky_pf_ftrace_fn(struct ky_pf *pf, const struct ky_pf_ftrace *event);

struct ky_pf {
	struct ky_load *load;
	struct ky_trace *trace;
	bool first_pass;
	bool compressed; /* the first pass met compressed packets */
	uint64_t at;     /* byte of the packet in the input, for problems */
	uint64_t packets;
	uint64_t lost_marked, lost_packets; /* events, by markers and by the service's statistics */
	/* Unpacked packets. */
	uint8_t *unpacked;
	size_t unpacked_room;
	struct ZSTD_DCtx_s *zstd;

	struct ky_u64_map sequence_of; /* machine and id */
	struct ky_pf_sequence **sequences;
	uint32_t sequences_count, sequences_room;
	struct ky_pf_sequence *sequence; /* of the packet that is read */

	struct ky_u64_map machine_of; /* by id: row + 1 */
	uint32_t machines;
	bool host_used;
	uint32_t machine; /* current */

	struct ky_u64_map clock_of;
	struct ky_pf_clock *clocks;
	uint32_t clocks_count, clocks_room;
	struct ky_u64_map snapshot_last; /* by the clocks in it: row of snapshot_ns */
	int64_t *snapshot_ns;
	uint32_t snapshot_ns_count, snapshot_ns_room;
	bool has_snapshots;
	int64_t latest_ns; /* of all packets: for those without a time */

	struct ky_u64_map track_of;
	struct ky_pf_track *tracks;
	uint32_t tracks_count, tracks_room;
	struct ky_u64_map uuid_of_thread; /* row of tracks + 1 */
	struct ky_u64_map uuid_of_process;

	struct ky_pf_location *locations;
	uint32_t locations_count, locations_room;
	struct ky_pf_mapping *mappings;
	uint32_t mappings_count, mappings_room;
	struct ky_pf_frame *frames;
	uint32_t frames_count, frames_room;
	struct ky_pf_callstack *callstacks;
	uint32_t callstacks_count, callstacks_room;
	double *values;
	uint32_t values_count, values_room;

	struct ky_buffer key;  /* of nested arguments */
	struct ky_buffer text; /* whatever else is put together */

	/* ftrace */
	ky_pf_ftrace_fn *ftrace_handlers[KY_PF_FTRACE_EVENTS_END]; /* by event; or NULL */
	uint32_t kernel_release;       /* major << 8 | minor, 0: not known */
	struct ky_u64_map last_switch; /* by CPU: row of switches */
	struct ky_pf_switch *switches;
	uint32_t switches_count, switches_room;
	struct ky_u64_map
		names_of;         /* string's number by event << 16 | field; field 0 is the event */
	int64_t ftrace_offset_ns; /* to BOOTTIME, of bundles with a clock of their own */
	int64_t ftrace_from_ns;   /* before it tracing had not begun: left out */
	int64_t ftrace_whole_ns;  /* before it some CPUs' events are missing: raw only */
	struct ky_u64_map bundle_seen; /* by CPU */

	uint32_t syscalls; /* ELF machine whose system calls these are, 0: not known */

	struct ky_pair_map known; /* what packets gave numbers, see ky_pf_read_known() */
	struct ky_pf_disk *disks;
	uint32_t disks_count, disks_room;
	uint64_t sockets; /* counted */

	uint32_t words[KY_PF_WORDS_COUNT];
};

/* A disk's totals at the last packet, by field of DiskStat. */
#define KY_PF_DISK_FIELDS 10u
struct ky_pf_disk {
	uint64_t totals[KY_PF_DISK_FIELDS];
};

/* The last task that a CPU switched to, for compact switches. */
struct ky_pf_switch {
	int32_t tid;
	int32_t priority;
	uint32_t comm;
	bool known;
};

/* One packet's own fields; views are into it. */
struct ky_pf_packet {
	struct ky_proto_view all;
	uint64_t timestamp;
	uint32_t sequence_id;
	uint32_t flags;
	uint32_t clock_id;
	uint32_t dropped;
	uint32_t machine_id;
	bool has_timestamp, has_sequence, cleared;
	struct ky_proto_view interned, defaults;
	struct ky_proto_field payload; /* the first other field */
};

/* ---- pftrace_read.c ---- */

/* If the packet holds compressed packets, read them and return true. */
bool ky_pf_read_compressed(struct ky_pf *pf, struct ky_proto_view packet);
/* Record that memory is short, and return false. */
static inline bool ky_pf_no_memory(struct ky_pf *pf)
{
	pf->trace->error = -ENOMEM;
	return false;
}

/* Make room for one more item of an array of pf. */
#define KY_PF_GROW(pf, name)                                                                       \
	(KY_ARRAY_GROW((pf)->name, (pf)->name##_room, (uint64_t)(pf)->name##_count + 1) ||         \
	 ky_pf_no_memory(pf))
void ky_pf_read_note_damage(struct ky_pf *pf, const char *what);
/* Do as KY_PROTO_EACH, and note where the message is damaged. */
#define KY_PF_EACH(pf, field, message, what)                                                       \
	for (struct ky_proto_in ky_##field##_in_ = ky_proto_open(message),                         \
				*ky_##field##_once_ = &ky_##field##_in_;                           \
	     ky_##field##_once_; ky_##field##_once_ = NULL,                                        \
				ky_##field##_in_.bad ? ky_pf_read_note_damage(pf, what) : (void)0) \
		for (struct ky_proto_field field; ky_proto_next(&ky_##field##_in_, &field);)

/* What a number means; each kind has its own numbers. */
enum ky_pf_kind {
	KY_PF_RAIL,
	KY_PF_ENERGY,
	KY_PF_ENTITY,
	KY_PF_GPU_COUNTER,
	KY_PF_DISK,
	KY_PF_SOCKET
};

/* Return where a number's meaning on the current machine is stored, adding it if asked; NULL when unknown. */
uint64_t *ky_pf_read_known(struct ky_pf *pf, enum ky_pf_kind kind, uint64_t one, uint64_t two,
			   bool add);

/* ---- pftrace_payload.c: what is in a packet ---- */

/* of_file: the packet is not inside another one and may hold compressed packets. */
void ky_pf_payload_first_pass(struct ky_pf *pf, struct ky_proto_view packet, bool of_file);
void ky_pf_payload_second_pass(struct ky_pf *pf, struct ky_proto_view packet);

/* ---- pftrace_sequence.c ---- */

struct ky_pf_sequence *ky_pf_sequence_get(struct ky_pf *pf, uint32_t id);
void ky_pf_sequence_clear(struct ky_pf_sequence *sequence);
void ky_pf_sequence_lost(struct ky_pf_sequence *sequence);
void ky_pf_sequence_defaults(struct ky_pf *pf, struct ky_proto_view defaults);
void ky_pf_sequence_free(struct ky_pf_sequence *sequence);
/* InternedData. */
void ky_pf_sequence_intern(struct ky_pf *pf, struct ky_proto_view interned);
/* Return the string of an interned text, or 0. */
static inline uint32_t ky_pf_text(const struct ky_pf_sequence *sequence, enum ky_pf_texts of,
				  uint64_t iid)
{
	const uint32_t *value =
		sequence->tables ? ky_pf_iids_find(&sequence->tables->texts[of], iid) : NULL;
	return value ? *value : 0;
}
/* Return the row of an interned message, or NULL. */
static inline const uint32_t *ky_pf_message(const struct ky_pf_sequence *sequence,
					    enum ky_pf_messages of, uint64_t iid)
{
	return sequence->tables ? ky_pf_iids_find(&sequence->tables->messages[of], iid) : NULL;
}
/* Return where to store the row of a new iid; NULL when there is no iid, or it is defined already. */
uint32_t *ky_pf_sequence_new_row(struct ky_pf_iids *map, struct ky_proto_view message);
struct ky_pf_location *ky_pf_sequence_location(const struct ky_pf *pf, uint64_t iid);

static inline uint32_t ky_pf_string(struct ky_pf *pf, struct ky_proto_view text)
{
	return ky_string(pf->trace, text.data ? (const char *)text.data : "", text.bytes);
}

/* Return the string of a field's text; 0 when it is missing. */
static inline uint32_t ky_pf_string_if(struct ky_pf *pf, struct ky_proto_view text)
{
	return text.data ? ky_pf_string(pf, text) : 0;
}

static inline uint32_t ky_pf_buffer_string(struct ky_pf *pf, const struct ky_buffer *buffer)
{
	if (buffer->failed)
		pf->trace->error = -ENOMEM;
	return ky_string(pf->trace, buffer->data ? buffer->data : "", buffer->bytes);
}

/* Return the string of a literal. */
static inline uint32_t ky_pf_literal(struct ky_pf *pf, const char *text)
{
	return ky_string_z(pf->trace, text);
}

/* Add a set of one argument. */
static inline uint32_t ky_pf_arg(struct ky_pf *pf, const char *key, enum ky_arg_type type,
				 uint64_t value)
{
	return ky_args_one(pf->trace, ky_pf_literal(pf, key), type, value);
}

/* ---- pftrace_clock.c ---- */

/* Take a ClockSnapshot: the first pass hands it to the model, the second restarts differences there. */
void ky_pf_clock_snapshot(struct ky_pf *pf, uint32_t sequence_id, struct ky_proto_view snapshot);
/* Return the packet's time in the trace's clock; false when it does not convert, which is counted. */
bool ky_pf_clock_packet_time(struct ky_pf *pf, const struct ky_pf_packet *packet, int64_t *ts);
/* Convert a time to the trace's clock, if the clocks are connected. */
int64_t ky_pf_clock_time(struct ky_pf *pf, uint64_t clock, int64_t ns);

/* ---- pftrace_track.c: tracks by uuid ---- */

/* Take a TrackDescriptor in the first pass. */
void ky_pf_track_describe(struct ky_pf *pf, struct ky_proto_view descriptor);
/* Return the row of a uuid, adding it if it is new; KY_NONE without memory. */
uint32_t ky_pf_track_row(struct ky_pf *pf, uint64_t uuid);
/* Resolve a track's owner; NULL when its hierarchy is broken, which is counted the first time. */
struct ky_pf_track *ky_pf_track_resolve(struct ky_pf *pf, uint64_t uuid);
/* Return the track in the model; name is for tracks without one. */
uint32_t ky_pf_track_make(struct ky_pf *pf, struct ky_pf_track *track, uint32_t name);
/* Return the process of a resolved track, or KY_NONE. */
uint32_t ky_pf_track_process(const struct ky_pf *pf, const struct ky_pf_track *track);
int64_t ky_pf_track_synthetic_tid(int64_t pid, int64_t tid);

/* Format a string as printf does. Texts of the input are "%.*s" of KY_PF_TEXT(). */
#define ky_pf_track_name(pf, ...) ky_string_format((pf)->trace, __VA_ARGS__)
#define KY_PF_TEXT(span) (int)((span).bytes & 0x3ff), (span).data ? (const char *)(span).data : ""
/* Return the track of a system-wide counter; type, name and id identify it. */
uint32_t ky_pf_track_of_counter(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id);
void ky_pf_track_put_counter(struct ky_pf *pf, int64_t ts, const char *type, uint32_t name,
			     double value);
/* Return a system-wide track of slices. */
uint32_t ky_pf_track_of_slices(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id);

/* ---- pftrace_process.c ---- */

/* Take the names in a TrackDescriptor, in the second pass. */
void ky_pf_process_name_described(struct ky_pf *pf, struct ky_proto_view descriptor);
/* Take a legacy ThreadDescriptor: a sequence's thread, and the bases of its times. */
void ky_pf_process_thread_descriptor(struct ky_pf *pf, struct ky_proto_view descriptor,
				     bool sandboxed);
void ky_pf_process_descriptor(struct ky_pf *pf, struct ky_proto_view descriptor);
void ky_pf_process_tree(struct ky_pf *pf, struct ky_proto_view tree);
void ky_pf_process_stats(struct ky_pf *pf, int64_t ts, struct ky_proto_view stats);

/* ---- pftrace_event.c ---- */

struct ky_pf_event {
	struct ky_proto_view all;
	uint32_t type;
	uint32_t name;
	uint32_t category;
	uint32_t thread;  /* or KY_NONE */
	uint32_t process; /* or KY_NONE */
	uint32_t fields;  /* KY_PF_HAS_ */
	uint64_t track_uuid;
	uint64_t name_iid;
	struct ky_proto_view name_text;
	uint64_t category_iid;
	struct ky_proto_view category_text;
	uint32_t categories;
	uint64_t location_iid;
	int64_t time_delta_us, time_us;
	int64_t thread_time_us, instructions;
	uint64_t counter_value;
	struct ky_proto_view legacy;
	struct ky_pf_track *track; /* NULL: the legacy thread's */
	int64_t ts;
};

#define KY_PF_HAS_TRACK 0x1u
#define KY_PF_HAS_ARGS 0x2u
#define KY_PF_HAS_FLOWS 0x4u
#define KY_PF_HAS_EXTRA 0x8u
#define KY_PF_HAS_LEGACY 0x10u
#define KY_PF_HAS_TIME_DELTA 0x20u
#define KY_PF_HAS_TIME 0x40u
#define KY_PF_HAS_THREAD_TIME_DELTA 0x80u
#define KY_PF_HAS_THREAD_TIME 0x100u
#define KY_PF_HAS_INSTRUCTIONS_DELTA 0x200u
#define KY_PF_HAS_INSTRUCTIONS 0x400u
#define KY_PF_HAS_COUNTER 0x800u
#define KY_PF_HAS_REAL_COUNTER 0x1000u
#define KY_PF_HAS_NAME 0x2000u
#define KY_PF_HAS_TYPE 0x4000u
#define KY_PF_HAS_LOCATION 0x8000u /* and HAS_ARGS only when there are others */

void ky_pf_event_read(struct ky_pf *pf, const struct ky_pf_packet *packet,
		      struct ky_proto_view message);
/* Count what Perfetto counts as track_event_parser_errors. */
void ky_pf_event_error(struct ky_pf *pf, const char *what);
uint32_t ky_pf_event_track(struct ky_pf *pf, const struct ky_pf_event *event);
void ky_pf_event_flows(struct ky_pf *pf, const struct ky_pf_event *event, uint32_t track,
		       enum ky_flow_bind bind);

/* ---- pftrace_legacy.c ---- */

struct ky_pf_legacy {
	uint64_t name_iid;
	int32_t phase;
	int64_t duration_us;
	uint64_t id;
	enum { KY_PF_NO_ID, KY_PF_UNSCOPED_ID, KY_PF_LOCAL_ID, KY_PF_GLOBAL_ID } id_kind;
	struct ky_proto_view id_scope;
	uint64_t bind_id;
	bool has_bind_id, has_phase, has_pid, has_tid, has_scope, bind_to_enclosing;
	uint32_t flow_direction;
	uint32_t instant_scope;
	int32_t pid, tid;
};

void ky_pf_legacy_parse(struct ky_pf_legacy *legacy, struct ky_proto_view message);
void ky_pf_legacy_event(struct ky_pf *pf, const struct ky_pf_event *event,
			const struct ky_pf_legacy *legacy);

/* ---- pftrace_args.c, pftrace_typed.c: between ky_args_begin() and _end() ---- */

/* Return all arguments of an event as a set. phase is that of a legacy event that keeps it, else 0. */
uint32_t ky_pf_args_of_event(struct ky_pf *pf, const struct ky_pf_event *event, int phase);
/* Put the arguments that are not debug annotations: those with a meaning of their own, and Chrome's. */
void ky_pf_typed_put_args(struct ky_pf *pf, const struct ky_pf_event *event);

/* ---- pftrace_ftrace.c ---- */

/* Enter the handlers of all domains into pf->ftrace_handlers. */
void ky_pf_ftrace_open(struct ky_pf *pf);
void ky_pf_ftrace_bundle(struct ky_pf *pf, struct ky_proto_view bundle);
/* In the first pass: learn from when on there are events of all CPUs. */
void ky_pf_ftrace_range(struct ky_pf *pf, struct ky_proto_view bundle);

/* One event of a bundle. */
struct ky_pf_ftrace {
	const struct ky_pf_sequence *sequence;
	int64_t ts;
	uint32_t cpu;
	int32_t tid;
	uint32_t id; /* its field in FtraceEvent */
	struct ky_proto_view all;
	/* For handlers: its fields by number. */
	const struct ky_pf_parts *parts;
	const uint64_t *values;
	const struct ky_proto_view *texts;
};

/* The fields of a message by number; missing ones are 0. */
#define KY_PF_PARTS 16u
struct ky_pf_parts {
	uint64_t values[KY_PF_PARTS];
	struct ky_proto_view texts[KY_PF_PARTS];
	uint32_t has; /* a bit for each field that is present */
};
void ky_pf_ftrace_take_apart(struct ky_proto_view message, struct ky_pf_parts *parts);
/* Step to the next message of that field and take it apart; false at the end. */
bool ky_pf_ftrace_next_parts(struct ky_proto_in *in, uint32_t id, struct ky_pf_parts *parts);
static inline bool ky_pf_has(const struct ky_pf_parts *parts, uint32_t field)
{
	return parts->has >> field & 1;
}
/* Return an id, such as a pid; -1 when it is missing. */
static inline int32_t ky_pf_id(const struct ky_pf_parts *parts, uint32_t field)
{
	return ky_pf_has(parts, field) ? (int32_t)parts->values[field] : -1;
}

/* The events that a domain takes; each table ends with take NULL. */
struct ky_pf_ftrace_handler {
	uint32_t event;
	ky_pf_ftrace_fn *take;
};
extern const struct ky_pf_ftrace_handler ky_pf_kernel_handlers[];
extern const struct ky_pf_ftrace_handler ky_pf_devices_handlers[];
extern const struct ky_pf_ftrace_handler ky_pf_graphics_handlers[];

/* ---- pftrace_kernel.c: who runs where, and kernels other than Linux ---- */

/* Return the last switch of a CPU; NULL without memory. */
struct ky_pf_switch *ky_pf_kernel_last_switch(struct ky_pf *pf, uint32_t cpu);
void ky_pf_kernel_task(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
void ky_pf_kernel_rename(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
void ky_pf_kernel_cpu_frequency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
void ky_pf_kernel_gpu_frequency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
void ky_pf_kernel_process_tree(struct ky_pf *pf, struct ky_proto_view message);

/* ---- pftrace_graphics.c: counters of GPUs ---- */

void ky_pf_graphics_describe_counters(struct ky_pf *pf, struct ky_proto_view message);
void ky_pf_graphics_intern_counters(struct ky_pf *pf, struct ky_proto_view message);
void ky_pf_graphics_put_counters(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);

/* ---- pftrace_power.c: batteries, and what uses how much energy ---- */

/* In the first pass: learn what numbers in other packets mean. */
void ky_pf_power_describe_rails(struct ky_pf *pf, struct ky_proto_view message);
void ky_pf_power_describe_energy(struct ky_pf *pf, struct ky_proto_view message);
void ky_pf_power_describe_entities(struct ky_pf *pf, struct ky_proto_view message);
void ky_pf_power_battery(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
void ky_pf_power_rails(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
void ky_pf_power_energy(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
void ky_pf_power_residency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);

/* ---- pftrace_sample.c ---- */

void ky_pf_sample_intern_mapping(struct ky_pf *pf, struct ky_pf_iids *map,
				 struct ky_proto_view message);
void ky_pf_sample_intern_frame(struct ky_pf *pf, struct ky_pf_iids *map,
			       struct ky_proto_view message);
void ky_pf_sample_intern_callstack(struct ky_pf *pf, struct ky_pf_iids *map,
				   struct ky_proto_view message);

void ky_pf_sample_perf(struct ky_pf *pf, int64_t ts, struct ky_proto_view sample);
void ky_pf_sample_perf_defaults(struct ky_pf *pf, struct ky_proto_view defaults);
void ky_pf_sample_stack_defaults(struct ky_pf *pf, struct ky_proto_view defaults);
void ky_pf_sample_streaming(struct ky_pf *pf, struct ky_proto_view profile);
void ky_pf_sample_stack(struct ky_pf *pf, int64_t ts, struct ky_proto_view sample);

/* ---- pftrace_stats.c: counters of the system; pftrace_metadata.c: what is about the trace ---- */

void ky_pf_stats_put(struct ky_pf *pf, int64_t ts, struct ky_proto_view stats);
void ky_pf_metadata_system(struct ky_pf *pf, struct ky_proto_view info);
void ky_pf_metadata_stats(struct ky_pf *pf, struct ky_proto_view stats);
/* When all was read: the losses that have no marker. */
void ky_pf_metadata_losses(struct ky_pf *pf);
void ky_pf_metadata_uuid(struct ky_pf *pf, struct ky_proto_view uuid);
void ky_pf_metadata_trigger(struct ky_pf *pf, int64_t ts, struct ky_proto_view trigger);
void ky_pf_metadata_chrome_trigger(struct ky_pf *pf, int64_t ts, struct ky_proto_view trigger);
void ky_pf_metadata_android_log(struct ky_pf *pf, struct ky_proto_view packet);

#endif
