/* SPDX-License-Identifier: MIT */
/*
 * fxt_emit.c: writes the Fuchsia trace format: records of 64-bit words, opened by Perfetto, by
 * magic-trace's viewer and by Fuchsia's trace2json. docs/formats/fxt.md has the table of kinds.
 *
 *   63     48 47     32 31  24 23 20 19 16 15       4 3    0
 *  ┌─────────┬─────────┬──────┬─────┬─────┬──────────┬──────┐
 *  │ name    │category │thread│args │event│ words    │ type │   header of an event; then its time,
 *  └─────────┴─────────┴──────┴─────┴─────┴──────────┴──────┘   text, arguments, id
 *
 * Strings of trace points are in the file's string table, which holds 32767. When it is full the
 * table begins a new generation from index 1: defining an index again is what the format provides
 * for, and whoever holds a number of an older generation defines its string anew. Strings that come
 * with an event are written into it. The 255 thread numbers are handed out in turn.
 *
 * Ticks are nanoseconds of CLOCK_BOOTTIME.
 */
#include <errno.h>
#include <stdlib.h>

#include "formats/format.h"
#include "formats/table.h"
#include "formats/utf8.h"
#include "formats/xxh64.h"

enum {
	RECORD_METADATA = 0,
	RECORD_INIT = 1,
	RECORD_STRING = 2,
	RECORD_THREAD = 3,
	RECORD_EVENT = 4,
	RECORD_KERNEL_OBJECT = 7,
};

enum { METADATA_PROVIDER = 1, METADATA_PROVIDER_EVENT = 3 };
enum { OBJECT_PROCESS = 1, OBJECT_THREAD = 2 };

enum {
	EVENT_INSTANT = 0,
	EVENT_COUNTER = 1,
	EVENT_BEGIN = 2,
	EVENT_END = 3,
	EVENT_ASYNC_BEGIN = 5,
	EVENT_ASYNC_INSTANT = 6,
	EVENT_ASYNC_END = 7,
	EVENT_FLOW_BEGIN = 8,
	EVENT_FLOW_STEP = 9,
	EVENT_FLOW_END = 10,
};

enum {
	ARG_NULL = 0,
	ARG_INT64 = 3,
	ARG_UINT64 = 4,
	ARG_DOUBLE = 5,
	ARG_STRING = 6,
	ARG_POINTER = 7,
	ARG_KOID = 8,
	ARG_BOOL = 9,
};

#define MAGIC UINT64_C(0x0016547846040010)
#define TICKS_PER_S UINT64_C(1000000000)
#define PROVIDER UINT64_C(1)
#define STRINGS_MAX 32767u
#define THREADS_MAX 255u
#define INLINE_STRING 0x8000u
/* So that a record with a name and all its arguments is below the format's 4095 words. */
#define NAME_BYTES_MAX 16000u
#define ARG_BYTES_MAX 1000u
#define ARGS_MAX 12u
/* One event defines at most so many strings. */
#define STRINGS_PER_EVENT 24u

/* Snapshots are shown as a thread of their own; the kernel gives no thread such an id. */
#define SNAPSHOTS_TID INT32_MAX

/* A place in the string table, as long as the generation is the table's. */
struct string_slot {
	uint32_t generation;
	uint16_t index;
};

struct site_strings {
	struct string_slot name;
	struct string_slot keys[KYMO_ARGS_MAX];
};

enum fixed {
	FIXED_PROCESS,
	FIXED_KYMO,
	FIXED_EVENTS_LOST,
	FIXED_COUNT,
	FIXED_BEGIN_LOST,
	FIXED_ID,
	FIXED_OBJECT,
	FIXED_THREAD,
	FIXED_MARK_START,
	FIXED_COUNT_OF,
};

static const char *const fixed_texts[FIXED_COUNT_OF] = {
	[FIXED_PROCESS] = "process",         [FIXED_KYMO] = "kymo",
	[FIXED_EVENTS_LOST] = "events lost", [FIXED_COUNT] = "count",
	[FIXED_BEGIN_LOST] = "begin_lost",   [FIXED_ID] = "id",
	[FIXED_OBJECT] = "object",           [FIXED_THREAD] = "thread",
	[FIXED_MARK_START] = "mark start",
};

struct ky_writer {
	struct ky_out *out;
	struct ky_out record;       /* the event being put together; its first word is the header */
	struct ky_out clean;        /* text made valid */
	struct ky_table threads;    /* uint32_t: the thread's number, 0 when it has none */
	struct ky_table sites;      /* struct site_strings */
	struct ky_table categories; /* struct string_slot */
	struct string_slot fixed[FIXED_COUNT_OF];
	uint32_t generation;  /* of the string table, from 1 */
	uint32_t next_string; /* index to define next */
	uint32_t next_thread;
	uint32_t args;                          /* of the record */
	uint32_t thread_owner[THREADS_MAX + 1]; /* the thread's index and 1 */
	bool snapshots_named;
};

static void put_word(struct ky_out *out, uint64_t word)
{
	uint8_t *to = ky_out_room(out, sizeof(word));
	memcpy(to, &word, sizeof(word));
	ky_out_done(out, to + sizeof(word));
}

/* The bytes of a string, with zeros up to the next word. */
static void put_padded(struct ky_out *out, struct ky_text text)
{
	static const char zeros[8];
	ky_out_append(out, text.data, text.bytes);
	ky_out_append(out, zeros, -text.bytes % 8u);
}

static uint64_t words_of(uint32_t bytes)
{
	return (bytes + 7u) / 8u;
}

static uint64_t record_header(uint32_t type, uint64_t words)
{
	return type | words << 4;
}

/* Valid UTF-8 of at most that many bytes. */
static struct ky_text limited(struct ky_writer *w, struct ky_text text, uint32_t bytes_max)
{
	struct ky_text clean = ky_utf8_text(&w->clean, text, false);
	if (clean.bytes <= bytes_max)
		return clean;
	text.bytes = bytes_max / 3 - 1; /* each may grow to three when it is replaced */
	return ky_utf8_text(&w->clean, text, true);
}

/* ---- the string table ---- */

/* Called once an event, before its first string: numbers stay valid until the event is written. */
static void make_room_for_strings(struct ky_writer *w)
{
	if (w->next_string + STRINGS_PER_EVENT <= STRINGS_MAX)
		return;
	w->generation++;
	w->next_string = 1;
}

static uint64_t define_string(struct ky_writer *w, struct string_slot *slot, struct ky_text text)
{
	slot->generation = w->generation;
	slot->index = 0;
	if (!text.bytes)
		return 0;
	const struct ky_text clean = limited(w, text, NAME_BYTES_MAX);
	slot->index = (uint16_t)w->next_string++;
	put_word(w->out, record_header(RECORD_STRING, 1 + words_of(clean.bytes)) |
				 (uint64_t)slot->index << 16 | (uint64_t)clean.bytes << 32);
	put_padded(w->out, clean);
	return slot->index;
}

static inline uint64_t string_ref(struct ky_writer *w, struct string_slot *slot,
				  struct ky_text text)
{
	if (__builtin_expect(slot->generation != w->generation, 0))
		return define_string(w, slot, text);
	return slot->index;
}

static uint64_t fixed_ref(struct ky_writer *w, enum fixed which)
{
	const char *text = fixed_texts[which];
	return string_ref(w, &w->fixed[which], (struct ky_text){text, (uint32_t)strlen(text)});
}

static uint64_t category_ref(struct ky_writer *w, const struct ky_site *site)
{
	struct string_slot *slot = ky_table_make(&w->categories, site->category_index, w->out);
	return slot ? string_ref(w, slot, site->category) : 0;
}

/* ---- threads ---- */

static uint64_t bind_thread(struct ky_writer *w, uint32_t *number, const struct ky_thread *thread)
{
	w->next_thread = w->next_thread % THREADS_MAX + 1;
	*number = w->next_thread;
	w->thread_owner[*number] = thread->index + 1;
	put_word(w->out, record_header(RECORD_THREAD, 3) | (uint64_t)*number << 16);
	put_word(w->out, (uint64_t)(uint32_t)thread->pid);
	put_word(w->out, (uint64_t)(uint32_t)thread->tid);
	return *number;
}

/* 0 when memory is short. */
static inline uint64_t thread_ref(struct ky_writer *w, const struct ky_thread *thread)
{
	uint32_t *number = ky_table_make(&w->threads, thread->index, w->out);
	if (!number)
		return 0;
	if (__builtin_expect(!*number || w->thread_owner[*number] != thread->index + 1, 0))
		return bind_thread(w, number, thread);
	return *number;
}

/* ---- names of processes and threads ---- */

static void write_object(struct ky_writer *w, uint32_t type, int32_t koid, int32_t process,
			 struct ky_text name)
{
	const bool in_process = type == OBJECT_THREAD;
	make_room_for_strings(w);
	const uint64_t key = in_process ? fixed_ref(w, FIXED_PROCESS) : 0;
	const struct ky_text clean = limited(w, name, NAME_BYTES_MAX);
	const uint64_t ref = clean.bytes ? INLINE_STRING | clean.bytes : 0;
	const uint64_t words = 2 + words_of(clean.bytes) + (in_process ? 2 : 0);
	put_word(w->out, record_header(RECORD_KERNEL_OBJECT, words) | (uint64_t)type << 16 |
				 ref << 24 | (uint64_t)in_process << 40);
	put_word(w->out, (uint64_t)(uint32_t)koid);
	put_padded(w->out, clean);
	if (in_process) {
		put_word(w->out, record_header(ARG_KOID, 2) | key << 16);
		put_word(w->out, (uint64_t)(uint32_t)process);
	}
}

static void fxt_process(struct ky_writer *w, int32_t pid, struct ky_text name)
{
	write_object(w, OBJECT_PROCESS, pid, pid, name);
}

static void fxt_thread(struct ky_writer *w, const struct ky_thread *thread)
{
	write_object(w, OBJECT_THREAD, thread->tid, thread->pid, thread->name);
}

/* ---- arguments ---- */

static void put_arg_word(struct ky_writer *w, uint32_t type, uint64_t key, uint64_t value)
{
	put_word(&w->record, record_header(type, 2) | key << 16);
	put_word(&w->record, value);
	w->args++;
}

static void put_arg_bool(struct ky_writer *w, uint64_t key, bool value)
{
	put_word(&w->record, record_header(ARG_BOOL, 1) | key << 16 | (uint64_t)value << 32);
	w->args++;
}

static void put_arg_text(struct ky_writer *w, uint64_t key, struct ky_text clean)
{
	const uint64_t ref = clean.bytes ? INLINE_STRING | clean.bytes : 0;
	put_word(&w->record,
		 record_header(ARG_STRING, 1 + words_of(clean.bytes)) | key << 16 | ref << 32);
	put_padded(&w->record, clean);
	w->args++;
}

static void put_arg_string(struct ky_writer *w, uint64_t key, const struct kymo_arg *arg)
{
	struct kymo_arg part = *arg;
	if (part.string_bytes > ARG_BYTES_MAX / 3) {
		part.string_bytes = ARG_BYTES_MAX / 3;
		part.cut = 1;
	}
	put_arg_text(w, key, ky_utf8_arg(&w->clean, &part));
}

static void put_arg(struct ky_writer *w, uint64_t key, const struct kymo_arg *arg)
{
	switch (arg->type) {
	case KYMO_TYPE_INT:
		put_arg_word(w, ARG_INT64, key, arg->value.u);
		break;
	case KYMO_TYPE_UINT:
		put_arg_word(w, ARG_UINT64, key, arg->value.u);
		break;
	case KYMO_TYPE_DOUBLE:
		put_arg_word(w, ARG_DOUBLE, key, arg->value.u);
		break;
	case KYMO_TYPE_BOOL:
		put_arg_bool(w, key, arg->value.u != 0);
		break;
	case KYMO_TYPE_POINTER:
		put_arg_word(w, ARG_POINTER, key, arg->value.u);
		break;
	default:
		put_arg_string(w, key, arg);
	}
}

/* The key's number; one that is not of the trace point is defined for this event alone. */
static uint64_t key_ref(struct ky_writer *w, const struct ky_event *e, struct site_strings *strings,
			uint32_t i)
{
	const char *key = e->args[i].key;
	if (strings && i < e->site->args && i < KYMO_ARGS_MAX && key == e->site->keys[i].data)
		return string_ref(w, &strings->keys[i], e->site->keys[i]);
	struct string_slot own = {0, 0};
	const struct ky_text text = {key ? key : "", key ? (uint32_t)strlen(key) : 0};
	return define_string(w, &own, text);
}

static void put_args(struct ky_writer *w, const struct ky_event *e, struct site_strings *strings)
{
	for (uint32_t i = 0; i < e->args_count && i < ARGS_MAX; i++)
		put_arg(w, key_ref(w, e, strings, i), &e->args[i]);
	if (e->begin_lost)
		put_arg_bool(w, fixed_ref(w, FIXED_BEGIN_LOST), true);
}

/* What the kind means where the format has no kind for it. */
static void put_kind_args(struct ky_writer *w, const struct ky_event *e)
{
	static const char *const states[] = {"new", "snapshot", "delete"};
	if (e->kind >= KYMO_KIND_OBJECT_NEW && e->kind <= KYMO_KIND_OBJECT_DELETE) {
		const char *state = states[e->kind - KYMO_KIND_OBJECT_NEW];
		put_arg_text(w, fixed_ref(w, FIXED_OBJECT),
			     (struct ky_text){state, (uint32_t)strlen(state)});
		put_arg_word(w, ARG_POINTER, fixed_ref(w, FIXED_ID), e->id);
	}
}

/* ---- events ---- */

static const uint8_t event_types[] = {
	[KYMO_KIND_BEGIN] = EVENT_BEGIN,
	[KYMO_KIND_END] = EVENT_END,
	[KYMO_KIND_COUNTER] = EVENT_COUNTER,
	[KYMO_KIND_ASYNC_BEGIN] = EVENT_ASYNC_BEGIN,
	[KYMO_KIND_ASYNC_INSTANT] = EVENT_ASYNC_INSTANT,
	[KYMO_KIND_ASYNC_END] = EVENT_ASYNC_END,
	[KYMO_KIND_FLOW_BEGIN] = EVENT_FLOW_BEGIN,
	[KYMO_KIND_FLOW_STEP] = EVENT_FLOW_STEP,
	[KYMO_KIND_FLOW_END] = EVENT_FLOW_END,
};

static uint64_t event_type(uint8_t kind)
{
	return kind < sizeof(event_types) ? event_types[kind] : EVENT_INSTANT;
}

/* Counters, asynchronous events and flows end in an id. */
static bool has_id_word(uint64_t type)
{
	return type == EVENT_COUNTER || type >= EVENT_ASYNC_BEGIN;
}

/*
 * Perfetto tells asynchronous spans apart by name and id, flows by id alone. Ids are small numbers or
 * addresses: what else makes them what they are goes into the bits they leave free. Flows may cross
 * processes, so there it is made from the text and not from this process's numbers.
 */
static uint64_t id_word(const struct ky_event *e)
{
	const bool flow = e->kind >= KYMO_KIND_FLOW_BEGIN && e->kind <= KYMO_KIND_FLOW_END;
	const bool async = e->kind >= KYMO_KIND_ASYNC_BEGIN && e->kind <= KYMO_KIND_ASYNC_END;
	if (flow)
		return e->id ^ (ky_xxh64(e->site->category.data, e->site->category.bytes) +
				3 * ky_xxh64(e->name.data, e->name.bytes))
				       << 48;
	return async ? e->id ^ (uint64_t)e->site->category_index << 48 : e->id;
}

static uint64_t event_header(uint64_t type, uint64_t thread, uint64_t category, uint64_t name)
{
	return RECORD_EVENT | type << 16 | thread << 24 | category << 32 | name << 48;
}

static void begin_record(struct ky_writer *w, uint64_t time_ns)
{
	w->record.used = 0;
	w->args = 0;
	put_word(&w->record, 0);
	put_word(&w->record, time_ns);
}

/* A record that memory was short for is not written at all. */
static void end_record(struct ky_writer *w, uint64_t header)
{
	if (w->record.error) {
		w->out->error = w->out->error ? w->out->error : w->record.error;
		return;
	}
	header |= (uint64_t)(w->record.used / 8) << 4 | (uint64_t)w->args << 20;
	memcpy(w->record.data, &header, sizeof(header));
	ky_out_append(w->out, w->record.data, w->record.used);
}

static bool has_own_name(const struct ky_site *site)
{
	return (site->flags & KYMO_SITE_NAME) != 0 || site->kind == KYMO_KIND_PRINT;
}

static void write_lost(struct ky_writer *w, const struct ky_event *e, uint64_t thread)
{
	const uint64_t category = fixed_ref(w, FIXED_KYMO);
	const uint64_t name = fixed_ref(w, FIXED_EVENTS_LOST);
	begin_record(w, e->time_ns);
	put_arg_word(w, ARG_UINT64, fixed_ref(w, FIXED_COUNT), e->id);
	end_record(w, event_header(EVENT_INSTANT, thread, category, name));
}

/* Snapshots and marks of where one starts: the thread is not in the table but in the record. */
static void write_snapshot(struct ky_writer *w, const struct ky_event *e)
{
	const int32_t pid = e->thread->pid;
	if (!w->snapshots_named)
		write_object(w, OBJECT_THREAD, SNAPSHOTS_TID, pid,
			     (struct ky_text){"snapshots", 9});
	w->snapshots_named = true;
	const uint64_t category = category_ref(w, e->site);
	const bool unnamed_mark = !e->name.bytes && e->kind == KYMO_KIND_MARK;
	uint64_t name = unnamed_mark ? fixed_ref(w, FIXED_MARK_START) : 0;
	begin_record(w, e->time_ns);
	put_word(&w->record, (uint64_t)(uint32_t)pid);
	put_word(&w->record, (uint64_t)SNAPSHOTS_TID);
	if (e->name.bytes) {
		const struct ky_text clean = limited(w, e->name, NAME_BYTES_MAX);
		name = INLINE_STRING | clean.bytes;
		put_padded(&w->record, clean);
	}
	put_arg_word(w, ARG_INT64, fixed_ref(w, FIXED_THREAD), (uint64_t)e->thread->tid);
	put_args(w, e, NULL);
	end_record(w, event_header(EVENT_INSTANT, 0, category, name));
}

static void write_full(struct ky_writer *w, const struct ky_event *e, struct site_strings *strings,
		       uint64_t header)
{
	const uint64_t type = event_type(e->kind);
	begin_record(w, e->time_ns);
	const bool named_here = has_own_name(e->site) || (e->begin_lost && !e->site->name.bytes);
	if (named_here && e->name.bytes && e->kind != KYMO_KIND_END) {
		const struct ky_text clean = limited(w, e->name, NAME_BYTES_MAX);
		header |= (uint64_t)(INLINE_STRING | clean.bytes) << 48;
		put_padded(&w->record, clean);
	}
	put_kind_args(w, e);
	if (e->kind != KYMO_KIND_PRINT)
		put_args(w, e, strings);
	if (has_id_word(type))
		put_word(&w->record, id_word(e));
	end_record(w, header);
}

/* An event with nothing but a name is two words. */
static void write_site_event(struct ky_writer *w, const struct ky_event *e, uint64_t thread)
{
	struct site_strings *strings = ky_table_make(&w->sites, e->site->index, w->out);
	if (!strings)
		return;
	const uint64_t type = event_type(e->kind);
	const bool own_name = has_own_name(e->site);
	const uint64_t category = category_ref(w, e->site);
	const uint64_t name = own_name ? 0 : string_ref(w, &strings->name, e->site->name);
	const uint64_t header = event_header(type, thread, category, name);
	const bool bare = type == EVENT_END || (type == EVENT_BEGIN && !own_name);
	if (!bare || e->args_count || e->begin_lost) {
		write_full(w, e, strings, header);
		return;
	}
	const uint64_t words[2] = {header | 2 << 4, e->time_ns};
	uint8_t *to = ky_out_room(w->out, sizeof(words));
	memcpy(to, words, sizeof(words));
	ky_out_done(w->out, to + sizeof(words));
}

static void fxt_event(struct ky_writer *w, const struct ky_event *e)
{
	make_room_for_strings(w);
	const uint64_t thread = thread_ref(w, e->thread);
	if (!thread)
		return;
	if (e->kind == KYMO_KIND_LOST || !e->site)
		write_lost(w, e, thread);
	else if (e->kind == KYMO_KIND_SNAPSHOT || e->kind == KYMO_KIND_MARK)
		write_snapshot(w, e);
	else
		write_site_event(w, e, thread);
}

/* ---- the file ---- */

static void write_first(struct ky_writer *w, const struct ky_trace_info *info)
{
	static const struct ky_text provider = {"kymo", 4};
	put_word(w->out, MAGIC);
	put_word(w->out, record_header(RECORD_METADATA, 2) | METADATA_PROVIDER << 16 |
				 PROVIDER << 20 | (uint64_t)provider.bytes << 52);
	put_padded(w->out, provider);
	put_word(w->out, record_header(RECORD_INIT, 2));
	put_word(w->out, TICKS_PER_S);
	fxt_process(w, info->pid, info->process.bytes ? info->process : info->command);
}

static void fxt_close(struct ky_writer *w)
{
	if (!w)
		return;
	ky_table_free(&w->threads);
	ky_table_free(&w->sites);
	ky_table_free(&w->categories);
	ky_out_free(&w->record);
	ky_out_free(&w->clean);
	free(w);
}

static int fxt_open(struct ky_writer **writer, struct ky_out *out, const struct ky_trace_info *info)
{
	*writer = NULL;
	struct ky_writer *w = calloc(1, sizeof(*w));
	if (!w || ky_out_init(&w->record, 0) || ky_out_init(&w->clean, 0)) {
		fxt_close(w);
		return -ENOMEM;
	}
	w->out = out;
	w->threads.item_bytes = sizeof(uint32_t);
	w->sites.item_bytes = sizeof(struct site_strings);
	w->categories.item_bytes = sizeof(struct string_slot);
	w->generation = 1;
	w->next_string = 1;
	write_first(w, info);
	*writer = w;
	return 0;
}

/* The one way the format has to say so: the provider's buffer was full, records were dropped. */
static void fxt_finish(struct ky_writer *w, uint64_t lost)
{
	if (lost)
		put_word(w->out, record_header(RECORD_METADATA, 1) | METADATA_PROVIDER_EVENT << 16 |
					 PROVIDER << 20);
	if (!w->out->error)
		w->out->error = w->clean.error;
}

const struct ky_format ky_format_fxt = {
	.name = "fxt",
	.id = KYMO_FORMAT_FXT,
	.suffix = ".fxt",
	.open = fxt_open,
	.process = fxt_process,
	.thread = fxt_thread,
	.event = fxt_event,
	.finish = fxt_finish,
	.close = fxt_close,
};
