/* SPDX-License-Identifier: MIT */
/*
 * json_reader.h: what the parts of the Chrome JSON reader share.
 *
 *   json_read.c ── text of an event ─▶ json_event_parse.c ── fields ─▶ json_put.c ── by phase ─▶ the trace
 *    ├─▶ json_systrace.c  systemTraceEvents                              json_args.c     arguments; C, M and T
 *    ├─▶ json_samples.c   stackFrames, samples                           json_samples.c  V8's CPU profiles
 *    └─▶ json_gecko.c     a Firefox profile
 *
 * An event is taken apart only when all of it is in the buffer, and nothing of it is put before
 * that: when it is cut off, the buffer is doubled and the event is begun again, so that the sum
 * stays linear.
 */
#ifndef KY_FORMATS_JSON_JSON_READER_H
#define KY_FORMATS_JSON_JSON_READER_H

#include "base/map.h"
#include "formats/json/json_scan.h"
#include "formats/json/json_schema.h"
#include "formats/load.h"
#include "model/kernel.h"

#define KY_JSON_TEXTS 2048u      /* slots of the cache of texts */
#define KY_JSON_KEYS 256u        /* slots of the cache of argument keys */
#define KY_JSON_THREADS 256u     /* slots of the cache of threads */
#define KY_JSON_PATH_BYTES 1024u /* of an argument's full key */

/* A text seen before. Up to 16 bytes, head and tail are all of it. */
struct ky_json_cached {
	uint64_t head, tail;
	uint32_t bytes;
	uint32_t string;
};

struct ky_json_thread {
	int64_t pid, tid;
	uint32_t thread;
	uint32_t track; /* KY_NONE: not made yet */
	bool used;
};

/* Of json_samples.c. */
struct ky_json_stacks;
struct ky_json_profile;
struct ky_json_sample;

/* The last pid or tid that was a number, as text: with the byte behind it, which ended it. */
struct ky_json_task {
	uint64_t word, mask;
	uint32_t bytes; /* without that byte; 0: none */
	int64_t id;
};

struct ky_json {
	struct ky_load *load;
	struct ky_trace *trace;
	struct ky_input *input;
	uint64_t events;                     /* objects that had a phase */
	uint64_t lost_marked, lost_labelled; /* events, by markers and by labels */
	uint64_t elements;                   /* of traceEvents, whatever they were */
	bool complete_seen;
	bool cut; /* that the input is cut off was counted */
	struct ky_json_cached texts[KY_JSON_TEXTS];
	struct ky_json_cached keys[KY_JSON_KEYS];
	struct ky_json_thread threads[KY_JSON_THREADS];
	struct ky_json_task last_pid, last_tid;
	struct ky_pair_map async_tracks;
	struct ky_pair_map counter_tracks;
	struct ky_pair_map profile_by_id;   /* pid, id */
	struct ky_pair_map profile_nodes;   /* profile and node to callsite */
	struct ky_pair_map profile_parents; /* profile and node to the callsite above it */
	struct ky_json_profile *profiles;
	uint64_t profiles_room;
	uint32_t profiles_count;
	struct ky_json_sample *profile_samples;
	uint64_t profile_samples_count, profile_samples_room;
	struct ky_json_tree tree;
	struct ky_json_stacks *stacks;
	struct ky_state_span *states; /* of T events, until all are there */
	uint64_t states_count, states_room;
	char *scratch; /* for texts that are put together */
	uint64_t scratch_room;
	char path[KY_JSON_PATH_BYTES];
	uint32_t no_name; /* "[No name]" */
};

/* The fields that an event has. */
#define KY_JSON_HAS_TS 1u
#define KY_JSON_HAS_DUR 2u
#define KY_JSON_HAS_PID 4u
#define KY_JSON_HAS_TID 8u
#define KY_JSON_HAS_ID 16u
#define KY_JSON_HAS_BIND_ID 32u
#define KY_JSON_FLOW_IN 64u
#define KY_JSON_FLOW_OUT 128u
#define KY_JSON_BIND_ENCLOSING 256u
#define KY_JSON_BAD_TIME 512u /* ts or dur is no number */
#define KY_JSON_NOT_EMPTY 1024u

/* An id as the text has it: a string without its quotes, or a number. */
struct ky_json_id {
	const uint8_t *at;
	uint32_t bytes;
	bool string;
};

struct ky_json_event {
	uint32_t has;
	uint8_t phase; /* 0: none */
	uint8_t scope;
	uint32_t name, category;
	int64_t ts, dur;
	int64_t pid, tid;
	uint32_t pid_text, tid_text; /* strings, when they are no numbers */
	struct ky_json_id id, bind_id;
	const uint8_t *id2;  /* an object or NULL */
	const uint8_t *args; /* any value or NULL */
	uint64_t position;   /* in the input */
};

/* ---- texts ---- */

/* Return the number of these bytes, the same as ky_string()'s. */
uint32_t ky_json_string_of(struct ky_json *json, const uint8_t *at, size_t bytes);
/* Do the same for the unescaped text; 0 for an empty one. */
uint32_t ky_json_text_string(struct ky_json *json, const struct ky_json_text *text);
/* Return the string of a node; 0 when it is empty or not a string. */
uint32_t ky_json_node_string(struct ky_json *json, const struct ky_json_tree *tree, uint32_t node);
/* Take the object at the input's place, whole in the buffer, apart into json->tree; false when it is no object. */
static inline bool ky_json_object(struct ky_json *json)
{
	return *json->input->at == '{' &&
	       ky_json_tree_parse(&json->tree, json->input->at, json->input->end) == 0;
}
/* At least that many bytes of scratch, or NULL. */
char *ky_json_scratch(struct ky_json *json, size_t bytes);
uint64_t ky_json_hash(const uint8_t *at, size_t bytes);

/* Return the first 8 bytes as a word, without reading outside. */
static inline uint64_t ky_json_head(const uint8_t *at, size_t bytes)
{
	uint64_t a = 0, b = 0;
	if (bytes >= 8) {
		memcpy(&a, at, 8);
		return a;
	}
	if (bytes >= 4) {
		memcpy(&a, at, 4);
		memcpy(&b, at + bytes - 4, 4);
		return a | b << 32;
	}
	if (bytes >= 2) {
		memcpy(&a, at, 2);
		memcpy(&b, at + bytes - 2, 2);
		return a | b << 32;
	}
	return bytes ? *at : 0;
}

static inline uint64_t ky_json_tail(const uint8_t *at, size_t bytes)
{
	uint64_t a = 0;
	if (bytes > 8)
		memcpy(&a, at + bytes - 8, 8);
	return a;
}

static inline uint32_t ky_json_slot(uint64_t head, uint64_t tail, size_t bytes)
{
	const uint64_t mixed = (head ^ bytes) * 0x9e3779b97f4a7c15u ^ tail * 0xc2b2ae3d27d4eb4fu;
	return (uint32_t)((mixed ^ mixed >> 29) * 0x9e3779b97f4a7c15u >> 40);
}

/* ---- events ---- */

/* Parse the fields of the object at at ('{'), without putting them; return the place behind it, or NULL. */
const uint8_t *ky_json_event_parse(struct ky_json *json, const uint8_t *at, const uint8_t *end,
				   struct ky_json_event *event, enum ky_json_fault *fault);
/* Put it into the trace. */
void ky_json_event_put(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end);

void ky_json_counters_put(struct ky_json *json, const struct ky_json_event *event,
			  const uint8_t *end);
void ky_json_metadata_put(struct ky_json *json, const struct ky_json_event *event,
			  const uint8_t *end);
void ky_json_state_put(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end);
void ky_json_states_finish(struct ky_json *json);
/* When all was read: labels count what has no marker. */
void ky_json_losses_finish(struct ky_json *json);
/* Count an event that cannot be used. */
void ky_json_fail(struct ky_json *json, const struct ky_json_event *event, const char *what);

uint32_t ky_json_thread_of(struct ky_json *json, const struct ky_json_event *event);
/* A pid or tid as Perfetto takes it: of 32 bits, else 0. */
int64_t ky_json_pid(int64_t pid);

/* Return the set of the arguments in a value; 0 when it is no object. */
uint32_t ky_json_args(struct ky_json *json, const uint8_t *at, const uint8_t *end,
		      uint64_t position);
/* A P event: a piece of a CPU profile. */
void ky_json_profile_put(struct ky_json *json, const struct ky_json_event *event,
			 const uint8_t *end);
/* When all was read: puts the samples of the profiles. */
void ky_json_profiles_finish(struct ky_json *json);

/* ---- the other top-level values: from the value to behind it; false as above ---- */

bool ky_json_system_read(struct ky_json *json);
bool ky_json_stack_frames_read(struct ky_json *json);
bool ky_json_samples_read(struct ky_json *json);
/* When all was read: samples get their frames. */
void ky_json_stacks_finish(struct ky_json *json);
/* The whole object of a V8 profile, as a .cpuprofile has it. */
bool ky_json_cpuprofile_read(struct ky_json *json);
/* The object of a Firefox profile, whose '{' was passed. */
bool ky_json_gecko_read(struct ky_json *json);

#endif
