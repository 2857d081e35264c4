/* SPDX-License-Identifier: MIT */
/*
 * fxt_emit.h: writes the records of Fuchsia's trace format, for a session (fxt_session.c) and for the exporter
 * (fxt_export.c).
 *
 *   63     48 47     32 31  24 23 20 19 16 15       4 3    0
 *  ┌─────────┬─────────┬──────┬─────┬─────┬──────────┬──────┐
 *  │ name    │category │thread│args │event│ words    │ type │   header of an event; then its time,
 *  └─────────┴─────────┴──────┴─────┴─────┴──────────┴──────┘   text, arguments, id
 *
 *   ky_fxt_emit_begin() ── ky_fxt_emit_arg_*() ... ── ky_fxt_emit_end()       one event
 *
 * The string table holds 32767 strings. When it is full it starts a new generation at index 1, since the format
 * permits to define an index again; a slot of an older generation defines its string again.
 */
#ifndef KY_FORMATS_FXT_FXT_EMIT_H
#define KY_FORMATS_FXT_FXT_EMIT_H

#include "core/event.h"
#include "formats/fxt/fxt_schema.h"
#include "formats/out.h"

/* Names in a record of their own or of an event, which may have all arguments besides. */
#define KY_FXT_NAME_BYTES_MAX 16000u

/* A place in the string table, valid while its generation is the table's. */
struct ky_fxt_slot {
	uint32_t generation;
	uint16_t index;
};

struct ky_fxt_emitter {
	struct ky_out *out;
	struct ky_out record;       /* the event being built; its first word is the header */
	struct ky_out clean;        /* text made valid */
	uint32_t generation;        /* of the string table, from 1 */
	uint32_t next_string;       /* index to define next */
	uint32_t strings_per_event; /* an event defines at most that many */
	uint32_t string_bytes_max;
	uint32_t args; /* of the record */
	uint64_t cut;  /* texts that were too long */
};

/* Return 0 or -ENOMEM. */
int ky_fxt_emit_open(struct ky_fxt_emitter *w, struct ky_out *out);
void ky_fxt_emit_close(struct ky_fxt_emitter *w);
/* Write the magic word, kymo as the provider, and the clock: ticks are nanoseconds. */
void ky_fxt_emit_head(struct ky_fxt_emitter *w);
/* Report losses and the emitter's errors. */
void ky_fxt_emit_tail(struct ky_fxt_emitter *w, uint64_t lost);

/* Start a new generation if the table is nearly full. Call it before the first string of each event. */
void ky_fxt_emit_make_room(struct ky_fxt_emitter *w);
/* Define a string and return its index, 0 for the empty one. */
uint64_t ky_fxt_emit_define(struct ky_fxt_emitter *w, struct ky_text text);
/* Return the text as valid UTF-8 of at most that many bytes. */
struct ky_text ky_fxt_emit_limited(struct ky_fxt_emitter *w, struct ky_text text,
				   uint32_t bytes_max);
/* Name a process or, with process_key, a thread of a process. */
void ky_fxt_emit_process(struct ky_fxt_emitter *w, uint32_t pid, struct ky_text name);
void ky_fxt_emit_thread(struct ky_fxt_emitter *w, uint32_t pid, uint32_t tid, uint64_t process_key,
			struct ky_text name);
/* Give a thread a number for the events that follow. */
void ky_fxt_emit_bind_thread(struct ky_fxt_emitter *w, uint32_t number, uint32_t pid, uint32_t tid);

void ky_fxt_emit_begin(struct ky_fxt_emitter *w, uint64_t time_ns);
void ky_fxt_emit_arg_word(struct ky_fxt_emitter *w, uint32_t type, uint64_t key, uint64_t value);
/* Add an argument whose value, of 32 bits, is in its header. */
void ky_fxt_emit_arg_small(struct ky_fxt_emitter *w, uint32_t type, uint64_t key, uint64_t value);
/* Add a text that is valid already. */
void ky_fxt_emit_arg_text(struct ky_fxt_emitter *w, uint64_t key, struct ky_text clean);
/* Finish the record and write it; one that memory was short for is not written. */
void ky_fxt_emit_end(struct ky_fxt_emitter *w, uint64_t header);
/* Readers tell flows apart by id alone: put category and name into the bits that ids leave free. */
uint64_t ky_fxt_emit_flow_id(uint64_t id, struct ky_text category, struct ky_text name);

static inline void ky_fxt_emit_word(struct ky_out *out, uint64_t word)
{
	uint8_t *to = ky_out_room(out, sizeof(word));
	memcpy(to, &word, sizeof(word));
	ky_out_done(out, to + sizeof(word));
}

/* Append a string, with zeros up to the next word. */
static inline void ky_fxt_emit_padded(struct ky_out *out, struct ky_text text)
{
	static const char zeros[8];
	ky_out_append(out, text.data, text.bytes);
	ky_out_append(out, zeros, -text.bytes % 8u);
}

static inline uint64_t ky_fxt_emit_words(uint32_t bytes)
{
	return (bytes + 7u) / 8u;
}

static inline uint64_t ky_fxt_emit_record_header(uint32_t type, uint64_t words)
{
	return type | words << 4;
}

static inline uint64_t ky_fxt_emit_event_header(uint64_t type, uint64_t thread, uint64_t category,
						uint64_t name)
{
	return KY_FXT_RECORD_EVENT | type << 16 | thread << 24 | category << 32 | name << 48;
}

/* Return the type of event for a kind (enum kymo_kind). */
static inline uint32_t ky_fxt_emit_type(uint8_t kind)
{
	static const uint8_t types[] = {
		[KYMO_KIND_BEGIN] = KY_FXT_EVENT_BEGIN,
		[KYMO_KIND_END] = KY_FXT_EVENT_END,
		[KYMO_KIND_COUNTER] = KY_FXT_EVENT_COUNTER,
		[KYMO_KIND_ASYNC_BEGIN] = KY_FXT_EVENT_ASYNC_BEGIN,
		[KYMO_KIND_ASYNC_INSTANT] = KY_FXT_EVENT_ASYNC_INSTANT,
		[KYMO_KIND_ASYNC_END] = KY_FXT_EVENT_ASYNC_END,
		[KYMO_KIND_FLOW_BEGIN] = KY_FXT_EVENT_FLOW_BEGIN,
		[KYMO_KIND_FLOW_STEP] = KY_FXT_EVENT_FLOW_STEP,
		[KYMO_KIND_FLOW_END] = KY_FXT_EVENT_FLOW_END,
	};
	return kind < sizeof(types) ? types[kind] : KY_FXT_EVENT_INSTANT;
}

/* Return the slot's index, defining its string if this generation has not. */
static inline uint64_t ky_fxt_emit_string(struct ky_fxt_emitter *w, struct ky_fxt_slot *slot,
					  struct ky_text text)
{
	if (__builtin_expect(slot->generation != w->generation, 0)) {
		slot->generation = w->generation;
		slot->index = (uint16_t)ky_fxt_emit_define(w, text);
	}
	return slot->index;
}

#endif
