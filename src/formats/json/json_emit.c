/* SPDX-License-Identifier: MIT */
/*
 * json_emit.c: writes Chrome's Trace Event JSON, which Perfetto, chrome://tracing (catapult), speedscope
 * and many others open. docs/formats/json.md says how each kind of event maps.
 *
 * The file is the array form: "[" and the first event, then every further event with the comma
 * before it, then "]". So a file that ends after any event is one that both Perfetto and catapult
 * read to the end. The first event is written by open() and always there.
 *
 * An event is put together from pieces that were made once:
 *
 *   ,\n{"pid":7,"tid":9,"ts":  12345678.901  ,"ph":"B","cat":"net","name":"recv"  ,"args":{..} }
 *   └ of the thread ─────────┘└ time ──────┘└ of the trace point ───────────────┘
 *
 * The digits of the whole seconds are kept from one event to the next as well. An end is only its
 * thread, time and phase: both readers close the innermost span of the thread.
 *
 * Invariant: outside of a call the buffer holds whole events only.
 */
#include <errno.h>
#include <stdlib.h>

#include "formats/format.h"
#include "formats/json/json_value.h"
#include "formats/table.h"
#include "formats/utf8.h"

/* Snapshots are shown as a thread of their own; the kernel gives no thread such an id. */
#define SNAPSHOTS_TID INT32_MAX

#define THREAD_BYTES 48u /* of a thread's piece: copied whole, it is faster than by length */
#define SITE_BYTES 64u   /* the same for a trace point's, where it is no longer */
#define TIME_BYTES 24u   /* digits of any 64-bit time, and the point */

struct thread_text {
	uint8_t bytes; /* 0 until the piece is made */
	uint8_t data[THREAD_BYTES];
};

struct site_text {
	uint8_t *data;                   /* the head and the keys; NULL until made */
	uint32_t head_bytes;             /* ,"ph":..,"cat":..,"name":.. */
	uint32_t key_end[KYMO_ARGS_MAX]; /* of "key": in data; each begins where the last ends */
	bool plain;                      /* an event is the head and its arguments, no more */
};

struct ky_writer {
	struct ky_out *out;
	struct ky_out scratch; /* pieces being made */
	struct ky_out clean;   /* text made valid */
	struct ky_table threads;
	struct ky_table sites;
	uint64_t second; /* whose digits second_text holds */
	uint8_t second_bytes;
	uint8_t second_text[TIME_BYTES];
	int32_t pid;
	bool snapshots_named;
};

static const char phases[] = {
	[KYMO_KIND_NONE] = 'i',          [KYMO_KIND_BEGIN] = 'B',
	[KYMO_KIND_END] = 'E',           [KYMO_KIND_INSTANT] = 'i',
	[KYMO_KIND_COUNTER] = 'C',       [KYMO_KIND_ASYNC_BEGIN] = 'b',
	[KYMO_KIND_ASYNC_INSTANT] = 'n', [KYMO_KIND_ASYNC_END] = 'e',
	[KYMO_KIND_FLOW_BEGIN] = 's',    [KYMO_KIND_FLOW_STEP] = 't',
	[KYMO_KIND_FLOW_END] = 'f',      [KYMO_KIND_PRINT] = 'i',
	[KYMO_KIND_OBJECT_NEW] = 'N',    [KYMO_KIND_OBJECT_SNAPSHOT] = 'O',
	[KYMO_KIND_OBJECT_DELETE] = 'D', [KYMO_KIND_METADATA] = 'M',
	[KYMO_KIND_CLOCK_SYNC] = 'c',    [KYMO_KIND_SAMPLE] = 'P',
	[KYMO_KIND_SNAPSHOT] = 'i',      [KYMO_KIND_MARK] = 'i',
	[KYMO_KIND_LOST] = 'i',
};

static void put(struct ky_out *out, const char *text)
{
	ky_out_append(out, text, strlen(text));
}

static void put_text(struct ky_writer *w, struct ky_out *out, struct ky_text text)
{
	ky_json_quote(out, ky_utf8_text(&w->clean, text, false));
}

static void put_int(struct ky_out *out, int64_t value)
{
	ky_out_done(out, ky_json_put_int(ky_out_room(out, KY_JSON_NUMBER_BYTES), value));
}

static void put_uint(struct ky_out *out, uint64_t value)
{
	ky_out_done(out, ky_json_put_uint(ky_out_room(out, KY_JSON_NUMBER_BYTES), value));
}

static void put_hex(struct ky_out *out, uint64_t value)
{
	ky_out_done(out, ky_json_put_hex(ky_out_room(out, KY_JSON_NUMBER_BYTES), value));
}

/* ---- time ---- */

static uint8_t *put_pair(uint8_t *to, uint32_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	memcpy(to, pairs + (size_t)value * 2, 2);
	return to + 2;
}

static uint8_t *put_fraction(uint8_t *to, uint32_t nanoseconds)
{
	to[0] = '.';
	to[1] = (uint8_t)('0' + nanoseconds / 100);
	return put_pair(to + 2, nanoseconds % 100);
}

/* In the first second after boot there are no leading digits to hide behind. */
static uint8_t *put_early_time(uint8_t *to, uint32_t nanoseconds)
{
	return put_fraction(ky_json_put_uint(to, nanoseconds / 1000), nanoseconds % 1000);
}

/* Microseconds with three decimals: exact, in integers. */
static uint8_t *put_time(struct ky_writer *w, uint8_t *to, uint64_t time_ns)
{
	const uint64_t second = time_ns / 1000000000u;
	const uint32_t rest = (uint32_t)(time_ns % 1000000000u);
	if (second == 0)
		return put_early_time(to, rest);
	if (second != w->second) {
		w->second = second;
		w->second_bytes =
			(uint8_t)(ky_json_put_uint(w->second_text, second) - w->second_text);
	}
	memcpy(to, w->second_text, sizeof(w->second_text));
	to += w->second_bytes;
	const uint32_t us = rest / 1000;
	to = put_pair(to, us / 10000);
	to = put_pair(to, us / 100 % 100);
	to = put_pair(to, us % 100);
	return put_fraction(to, rest % 1000);
}

/* ---- the pieces ---- */

static void make_thread_text(struct thread_text *text, int32_t pid, int32_t tid)
{
	uint8_t *to = text->data;
	memcpy(to, ",\n{\"pid\":", 9);
	to = ky_json_put_int(to + 9, pid);
	memcpy(to, ",\"tid\":", 7);
	to = ky_json_put_int(to + 7, tid);
	memcpy(to, ",\"ts\":", 6);
	text->bytes = (uint8_t)(to + 6 - text->data);
}

static const struct thread_text *thread_text(struct ky_writer *w, const struct ky_thread *thread)
{
	struct thread_text *text = ky_table_make(&w->threads, thread->index, w->out);
	if (text && __builtin_expect(!text->bytes, 0))
		make_thread_text(text, thread->pid, thread->tid);
	return text;
}

static bool has_own_name(const struct ky_site *site)
{
	return (site->flags & KYMO_SITE_NAME) != 0 || site->kind == KYMO_KIND_PRINT;
}

static void put_phase(struct ky_out *out, uint8_t kind)
{
	const char phase = kind < sizeof(phases) ? phases[kind] : 'i';
	const char text[] = {',', '"', 'p', 'h', '"', ':', '"', phase, '"'};
	ky_out_append(out, text, sizeof(text));
}

static void put_head(struct ky_writer *w, struct ky_out *out, const struct ky_site *site)
{
	put_phase(out, site->kind);
	if (site->flags & KYMO_SITE_GLOBAL)
		put(out, ",\"s\":\"g\"");
	else if (site->flags & KYMO_SITE_PROCESS)
		put(out, ",\"s\":\"p\"");
	if (site->kind == KYMO_KIND_FLOW_END)
		put(out, ",\"bp\":\"e\"");
	put(out, ",\"cat\":");
	put_text(w, out, site->category);
	put(out, ",\"name\":");
	if (!has_own_name(site))
		put_text(w, out, site->name);
}

static void make_site_text(struct ky_writer *w, struct site_text *text, const struct ky_site *site)
{
	struct ky_out *scratch = &w->scratch;
	scratch->used = 0;
	put_head(w, scratch, site);
	text->head_bytes = (uint32_t)scratch->used;
	for (uint32_t i = 0; i < site->args && i < KYMO_ARGS_MAX; i++) {
		put_text(w, scratch, site->keys[i]);
		put(scratch, ":");
		text->key_end[i] = (uint32_t)scratch->used;
	}
	const size_t bytes = scratch->used < SITE_BYTES ? SITE_BYTES : scratch->used;
	text->data = calloc(1, bytes);
	if (text->data)
		memcpy(text->data, scratch->data, scratch->used);
	else
		w->out->error = w->out->error ? w->out->error : -ENOMEM;
	text->plain = !has_own_name(site) && !(site->flags & KYMO_SITE_ID) &&
		      (site->kind == KYMO_KIND_BEGIN || site->kind == KYMO_KIND_END ||
		       site->kind == KYMO_KIND_INSTANT || site->kind == KYMO_KIND_COUNTER);
}

/* NULL when memory is short. */
static const struct site_text *site_text(struct ky_writer *w, const struct ky_site *site)
{
	struct site_text *text = ky_table_make(&w->sites, site->index, w->out);
	if (!text)
		return NULL;
	if (__builtin_expect(!text->data, 0))
		make_site_text(w, text, site);
	return text->data ? text : NULL;
}

/* ---- arguments ---- */

static void put_value(struct ky_writer *w, const struct kymo_arg *arg)
{
	struct ky_out *out = w->out;
	switch (arg->type) {
	case KYMO_TYPE_INT:
		put_int(out, arg->value.i);
		break;
	case KYMO_TYPE_UINT:
		if (arg->value.u > INT64_MAX)
			put(out, "\"");
		put_uint(out, arg->value.u);
		if (arg->value.u > INT64_MAX)
			put(out, "\"");
		break;
	case KYMO_TYPE_DOUBLE:
		ky_out_done(out, ky_json_put_double(ky_out_room(out, KY_JSON_NUMBER_BYTES),
						    arg->value.d));
		break;
	case KYMO_TYPE_BOOL:
		put(out, arg->value.u ? "true" : "false");
		break;
	case KYMO_TYPE_POINTER:
		put_hex(out, arg->value.u);
		break;
	case KYMO_TYPE_STRING:
		ky_json_quote(out, ky_utf8_arg(&w->clean, arg));
		break;
	default:
		put(out, "null");
	}
}

/* The key as it was made for the trace point, if the argument is one of its own. */
static void put_key(struct ky_writer *w, const struct ky_event *e, const struct site_text *text,
		    uint32_t i)
{
	const char *key = e->args[i].key;
	if (text && i < e->site->args && i < KYMO_ARGS_MAX && key == e->site->keys[i].data) {
		const uint32_t from = i ? text->key_end[i - 1] : text->head_bytes;
		ky_out_append(w->out, text->data + from, text->key_end[i] - from);
		return;
	}
	put_text(w, w->out, (struct ky_text){key ? key : "", key ? (uint32_t)strlen(key) : 0});
	put(w->out, ":");
}

static void put_pairs(struct ky_writer *w, const struct ky_event *e, const struct site_text *text)
{
	for (uint32_t i = 0; i < e->args_count; i++) {
		if (i)
			put(w->out, ",");
		put_key(w, e, text, i);
		put_value(w, &e->args[i]);
	}
}

static void put_args(struct ky_writer *w, const struct ky_event *e, const struct site_text *text)
{
	if (!e->args_count)
		return;
	put(w->out, ",\"args\":{");
	put_pairs(w, e, text);
	put(w->out, "}");
}

/* Catapult shows what is under "snapshot" as the object's state. */
static void put_object_state(struct ky_writer *w, const struct ky_event *e,
			     const struct site_text *text)
{
	const char *key = e->args_count == 1 ? e->args[0].key : NULL;
	const bool wrapped = key && strcmp(key, "snapshot") == 0;
	put(w->out, wrapped ? ",\"args\":{" : ",\"args\":{\"snapshot\":{");
	put_pairs(w, e, text);
	put(w->out, wrapped ? "}" : "}}");
}

/* ---- events ---- */

/*
 * Ids of async spans are written as the process's own. A plain id would join equal ids of different
 * processes once files are merged; flows are meant to be joined so.
 */
static void put_id(struct ky_writer *w, const struct ky_event *e)
{
	const bool async = e->kind >= KYMO_KIND_ASYNC_BEGIN && e->kind <= KYMO_KIND_ASYNC_END;
	put(w->out, async ? ",\"id2\":{\"local\":" : ",\"id\":");
	put_hex(w->out, e->id);
	if (async)
		put(w->out, "}");
}

/* What comes after the head of an event that is not plain. */
static void put_rest(struct ky_writer *w, const struct ky_event *e, const struct site_text *text)
{
	if (has_own_name(e->site))
		put_text(w, w->out, e->name);
	if (e->site->flags & KYMO_SITE_ID)
		put_id(w, e);
	if (e->kind == KYMO_KIND_OBJECT_SNAPSHOT)
		put_object_state(w, e, text);
	else if (e->kind != KYMO_KIND_PRINT)
		put_args(w, e, text);
}

static void put_start(struct ky_writer *w, const struct thread_text *thread, uint64_t time_ns)
{
	uint8_t *to = ky_out_room(w->out, THREAD_BYTES + TIME_BYTES * 2);
	memcpy(to, thread->data, sizeof(thread->data));
	ky_out_done(w->out, put_time(w, to + thread->bytes, time_ns));
}

/* The end of a span needs nothing from its trace point but arguments. */
static void write_end(struct ky_writer *w, const struct ky_event *e,
		      const struct thread_text *thread)
{
	static const char end[] = ",\"ph\":\"E\"}";
	uint8_t *to = ky_out_room(w->out, THREAD_BYTES + TIME_BYTES * 2 + sizeof(end));
	memcpy(to, thread->data, sizeof(thread->data));
	to = put_time(w, to + thread->bytes, e->time_ns);
	memcpy(to, end, sizeof(end));
	if (__builtin_expect(!e->args_count, 1)) {
		ky_out_done(w->out, to + sizeof(end) - 1);
		return;
	}
	ky_out_done(w->out, to + sizeof(end) - 2);
	put_args(w, e, site_text(w, e->site));
	put(w->out, "}");
}

static void write_site_event(struct ky_writer *w, const struct ky_event *e,
			     const struct thread_text *thread)
{
	const struct site_text *text = site_text(w, e->site);
	if (!text)
		return;
	if (!text->plain || text->head_bytes > SITE_BYTES) {
		put_start(w, thread, e->time_ns);
		ky_out_append(w->out, text->data, text->head_bytes);
		put_rest(w, e, text);
		put(w->out, "}");
		return;
	}
	uint8_t *to = ky_out_room(w->out, THREAD_BYTES + TIME_BYTES * 2 + SITE_BYTES + 1);
	memcpy(to, thread->data, sizeof(thread->data));
	to = put_time(w, to + thread->bytes, e->time_ns);
	memcpy(to, text->data, SITE_BYTES);
	to += text->head_bytes;
	if (__builtin_expect(!e->args_count, 1)) {
		*to = '}';
		ky_out_done(w->out, to + 1);
		return;
	}
	ky_out_done(w->out, to);
	put_args(w, e, text);
	put(w->out, "}");
}

/* A begin that was made up for an end; the end's trace point may be of another kind and have no name. */
static void write_begin_lost(struct ky_writer *w, const struct ky_event *e,
			     const struct thread_text *thread)
{
	put_start(w, thread, e->time_ns);
	put(w->out, ",\"ph\":\"B\",\"cat\":");
	put_text(w, w->out, e->site->category);
	put(w->out, ",\"name\":");
	put_text(w, w->out, e->name);
	put(w->out, ",\"args\":{\"begin_lost\":true}}");
}

static void write_lost(struct ky_writer *w, const struct ky_event *e,
		       const struct thread_text *thread)
{
	put_start(w, thread, e->time_ns);
	put(w->out, ",\"ph\":\"i\",\"cat\":\"kymo\",\"name\":\"events lost\",\"args\":{\"count\":");
	put_uint(w->out, e->id);
	put(w->out, "}}");
}

static void write_name(struct ky_writer *w, const char *what, int32_t pid, int32_t tid,
		       struct ky_text name)
{
	/* Perfetto counts a name that is empty as an error. */
	if (!name.bytes)
		return;
	put(w->out, ",\n{\"pid\":");
	put_int(w->out, pid);
	put(w->out, ",\"tid\":");
	put_int(w->out, tid);
	put(w->out, ",\"ph\":\"M\",\"name\":\"");
	put(w->out, what);
	put(w->out, "\",\"args\":{\"name\":");
	put_text(w, w->out, name);
	put(w->out, "}}");
}

/* Snapshots and marks of where one starts: on a line of their own. */
static void write_snapshot(struct ky_writer *w, const struct ky_event *e)
{
	const int32_t pid = e->thread->pid;
	if (!w->snapshots_named)
		write_name(w, "thread_name", pid, SNAPSHOTS_TID, (struct ky_text){"snapshots", 9});
	w->snapshots_named = true;
	struct thread_text thread;
	make_thread_text(&thread, pid, SNAPSHOTS_TID);
	put_start(w, &thread, e->time_ns);
	put(w->out, ",\"ph\":\"i\",\"cat\":");
	put_text(w, w->out, e->site ? e->site->category : (struct ky_text){"kymo", 4});
	put(w->out, ",\"name\":");
	const bool unnamed_mark = !e->name.bytes && e->kind == KYMO_KIND_MARK;
	put_text(w, w->out, unnamed_mark ? (struct ky_text){"mark start", 10} : e->name);
	put(w->out, ",\"args\":{\"thread\":");
	put_int(w->out, e->thread->tid);
	if (e->args_count)
		put(w->out, ",");
	put_pairs(w, e, NULL);
	put(w->out, "}}");
}

static void json_event(struct ky_writer *w, const struct ky_event *e)
{
	const struct thread_text *thread = thread_text(w, e->thread);
	if (!thread)
		return;
	if (e->kind == KYMO_KIND_END)
		write_end(w, e, thread);
	else if (e->kind == KYMO_KIND_LOST || !e->site)
		write_lost(w, e, thread);
	else if (e->kind == KYMO_KIND_SNAPSHOT || e->kind == KYMO_KIND_MARK)
		write_snapshot(w, e);
	else if (e->begin_lost)
		write_begin_lost(w, e, thread);
	else
		write_site_event(w, e, thread);
}

static void json_process(struct ky_writer *w, int32_t pid, struct ky_text name)
{
	write_name(w, "process_name", pid, pid, name);
}

static void json_thread(struct ky_writer *w, const struct ky_thread *thread)
{
	write_name(w, "thread_name", thread->pid, thread->tid, thread->name);
}

static void put_clock(struct ky_out *out, const char *key, uint64_t time_ns)
{
	put(out, key);
	put_uint(out, time_ns);
	put(out, "\"");
}

/* The one event without a comma: where the file comes from, and its clock in other clocks. */
static void write_first(struct ky_writer *w, const struct ky_trace_info *info)
{
	struct ky_out *out = w->out;
	struct ky_text name = info->process.bytes ? info->process : info->command;
	if (!name.bytes)
		name = (struct ky_text){"kymo", 4};
	put(out, "[\n{\"pid\":");
	put_int(out, info->pid);
	put(out, ",\"tid\":");
	put_int(out, info->pid);
	put(out, ",\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":");
	put_text(w, out, name);
	put(out, ",\"command\":");
	put_text(w, out, info->command);
	put_clock(out, ",\"boottime_ns\":\"", info->clock.boottime_ns);
	put_clock(out, ",\"monotonic_ns\":\"", info->clock.monotonic_ns);
	put_clock(out, ",\"realtime_ns\":\"", info->clock.realtime_ns);
	put(out, "}}");
}

static void json_close(struct ky_writer *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->sites.count; i++)
		free(((struct site_text *)ky_table_at(&w->sites, i))->data);
	ky_table_free(&w->sites);
	ky_table_free(&w->threads);
	ky_out_free(&w->scratch);
	ky_out_free(&w->clean);
	free(w);
}

static int json_open(struct ky_writer **writer, struct ky_out *out,
		     const struct ky_trace_info *info)
{
	*writer = NULL;
	struct ky_writer *w = calloc(1, sizeof(*w));
	if (!w || ky_out_init(&w->scratch, 0) || ky_out_init(&w->clean, 0)) {
		json_close(w);
		return -ENOMEM;
	}
	w->out = out;
	w->pid = info->pid;
	w->threads.item_bytes = sizeof(struct thread_text);
	w->sites.item_bytes = sizeof(struct site_text);
	write_first(w, info);
	*writer = w;
	return 0;
}

/* Catapult shows labels beside the process's name. */
static void json_finish(struct ky_writer *w, uint64_t lost)
{
	if (lost) {
		put(w->out, ",\n{\"pid\":");
		put_int(w->out, w->pid);
		put(w->out, ",\"ph\":\"M\",\"name\":\"process_labels\",\"args\":{\"labels\":\"");
		put_uint(w->out, lost);
		put(w->out, " events lost\"}}");
	}
	put(w->out, "\n]\n");
	if (!w->out->error)
		w->out->error = w->clean.error ? w->clean.error : w->scratch.error;
}

const struct ky_format ky_format_json = {
	.name = "json",
	.id = KYMO_FORMAT_JSON,
	.suffix = ".json",
	.open = json_open,
	.process = json_process,
	.thread = json_thread,
	.event = json_event,
	.finish = json_finish,
	.close = json_close,
};
