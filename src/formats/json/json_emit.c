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
#include "formats/json/json_schema.h"
#include "formats/json/json_value.h"
#include "formats/out.h"
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

struct json_writer {
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
	uint64_t begin_ns;
};

static void put_text(struct json_writer *w, struct ky_out *out, struct ky_text text)
{
	ky_json_append_text(out, &w->clean, text);
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
static uint8_t *put_time(struct json_writer *w, uint8_t *to, uint64_t time_ns)
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

static const struct thread_text *thread_text(struct json_writer *w, const struct ky_thread *thread)
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

enum ky_json_phase ky_json_emit_phase(uint8_t kind)
{
	static const char phases[] = {
		[KYMO_KIND_BEGIN] = KY_JSON_PHASE_BEGIN,
		[KYMO_KIND_END] = KY_JSON_PHASE_END,
		[KYMO_KIND_COUNTER] = KY_JSON_PHASE_COUNTER,
		[KYMO_KIND_ASYNC_BEGIN] = KY_JSON_PHASE_ASYNC_BEGIN,
		[KYMO_KIND_ASYNC_INSTANT] = KY_JSON_PHASE_ASYNC_INSTANT,
		[KYMO_KIND_ASYNC_END] = KY_JSON_PHASE_ASYNC_END,
		[KYMO_KIND_FLOW_BEGIN] = KY_JSON_PHASE_FLOW_BEGIN,
		[KYMO_KIND_FLOW_STEP] = KY_JSON_PHASE_FLOW_STEP,
		[KYMO_KIND_FLOW_END] = KY_JSON_PHASE_FLOW_END,
		[KYMO_KIND_OBJECT_NEW] = KY_JSON_PHASE_OBJECT_NEW,
		[KYMO_KIND_OBJECT_SNAPSHOT] = KY_JSON_PHASE_OBJECT_SNAPSHOT,
		[KYMO_KIND_OBJECT_DELETE] = KY_JSON_PHASE_OBJECT_DELETE,
		[KYMO_KIND_METADATA] = KY_JSON_PHASE_METADATA,
		[KYMO_KIND_CLOCK_SYNC] = KY_JSON_PHASE_CLOCK_SYNC,
		[KYMO_KIND_SAMPLE] = KY_JSON_PHASE_SAMPLE,
	};
	const bool other = kind >= sizeof(phases) || !phases[kind];
	return other ? KY_JSON_PHASE_INSTANT : (enum ky_json_phase)phases[kind];
}

static void put_phase(struct ky_out *out, uint8_t kind)
{
	const char phase = (char)ky_json_emit_phase(kind);
	const char text[] = {',', '"', 'p', 'h', '"', ':', '"', phase, '"'};
	ky_out_append(out, text, sizeof(text));
}

static void put_head(struct json_writer *w, struct ky_out *out, const struct ky_site *site)
{
	put_phase(out, site->kind);
	if (site->flags & KYMO_SITE_GLOBAL)
		ky_json_append(out, ",\"s\":\"g\"");
	else if (site->flags & KYMO_SITE_PROCESS)
		ky_json_append(out, ",\"s\":\"p\"");
	if (site->kind == KYMO_KIND_FLOW_END)
		ky_json_append(out, ",\"bp\":\"e\"");
	ky_json_append(out, ",\"cat\":");
	put_text(w, out, site->category);
	ky_json_append(out, ",\"name\":");
	if (!has_own_name(site))
		put_text(w, out, site->name);
}

static void make_site_text(struct json_writer *w, struct site_text *text,
			   const struct ky_site *site)
{
	struct ky_out *scratch = &w->scratch;
	scratch->used = 0;
	put_head(w, scratch, site);
	text->head_bytes = (uint32_t)scratch->used;
	for (uint32_t i = 0; i < site->args && i < KYMO_ARGS_MAX; i++) {
		put_text(w, scratch, site->keys[i]);
		ky_json_append(scratch, ":");
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
static const struct site_text *site_text(struct json_writer *w, const struct ky_site *site)
{
	struct site_text *text = ky_table_make(&w->sites, site->index, w->out);
	if (!text)
		return NULL;
	if (__builtin_expect(!text->data, 0))
		make_site_text(w, text, site);
	return text->data ? text : NULL;
}

/* ---- arguments ---- */

static void put_value(struct json_writer *w, const struct kymo_arg *arg)
{
	struct ky_out *out = w->out;
	switch (arg->type) {
	case KYMO_TYPE_INT:
		ky_json_append_int(out, arg->value.i);
		break;
	case KYMO_TYPE_UINT:
		ky_json_append_uint_arg(out, arg->value.u);
		break;
	case KYMO_TYPE_DOUBLE:
		ky_json_append_double(out, arg->value.d);
		break;
	case KYMO_TYPE_BOOL:
		ky_json_append(out, arg->value.u ? "true" : "false");
		break;
	case KYMO_TYPE_POINTER:
		ky_json_append_hex(out, arg->value.u);
		break;
	case KYMO_TYPE_STRING:
		ky_json_quote(out, ky_utf8_arg(&w->clean, arg));
		break;
	default:
		ky_json_append(out, "null");
	}
}

/* The key as it was made for the trace point, if the argument is one of its own. */
static void put_key(struct json_writer *w, const struct ky_event *e, const struct site_text *text,
		    uint32_t i)
{
	const char *key = e->args[i].key;
	if (text && i < e->site->args && i < KYMO_ARGS_MAX && key == e->site->keys[i].data) {
		const uint32_t from = i ? text->key_end[i - 1] : text->head_bytes;
		ky_out_append(w->out, text->data + from, text->key_end[i] - from);
		return;
	}
	put_text(w, w->out, (struct ky_text){key ? key : "", key ? (uint32_t)strlen(key) : 0});
	ky_json_append(w->out, ":");
}

static void put_pairs(struct json_writer *w, const struct ky_event *e, const struct site_text *text)
{
	for (uint32_t i = 0; i < e->args_count; i++) {
		if (i)
			ky_json_append(w->out, ",");
		put_key(w, e, text, i);
		put_value(w, &e->args[i]);
	}
}

static void put_args(struct json_writer *w, const struct ky_event *e, const struct site_text *text)
{
	if (!e->args_count)
		return;
	ky_json_append(w->out, ",\"args\":{");
	put_pairs(w, e, text);
	ky_json_append(w->out, "}");
}

/* Catapult shows the value of "snapshot" as the object's state. */
static void put_object_state(struct json_writer *w, const struct ky_event *e,
			     const struct site_text *text)
{
	const char *key = e->args_count == 1 ? e->args[0].key : NULL;
	const bool wrapped = key && strcmp(key, "snapshot") == 0;
	ky_json_append(w->out, wrapped ? ",\"args\":{" : ",\"args\":{\"snapshot\":{");
	put_pairs(w, e, text);
	ky_json_append(w->out, wrapped ? "}" : "}}");
}

/* ---- events ---- */

/*
 * Ids of async spans are written as the process's own. A plain id would join equal ids of different
 * processes once files are merged; flows are meant to be joined so.
 */
static void put_id(struct json_writer *w, const struct ky_event *e)
{
	const bool async = e->kind >= KYMO_KIND_ASYNC_BEGIN && e->kind <= KYMO_KIND_ASYNC_END;
	ky_json_append(w->out, async ? ",\"id2\":{\"local\":" : ",\"id\":");
	ky_json_append_hex(w->out, e->id);
	if (async)
		ky_json_append(w->out, "}");
}

/* Write the rest of an event that is not plain. */
static void put_rest(struct json_writer *w, const struct ky_event *e, const struct site_text *text)
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

static void put_start(struct json_writer *w, const struct thread_text *thread, uint64_t time_ns)
{
	uint8_t *to = ky_out_room(w->out, THREAD_BYTES + TIME_BYTES * 2);
	memcpy(to, thread->data, sizeof(thread->data));
	ky_out_done(w->out, put_time(w, to + thread->bytes, time_ns));
}

/* The end of a span needs nothing from its trace point but arguments. */
static void write_end(struct json_writer *w, const struct ky_event *e,
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
	ky_json_append(w->out, "}");
}

static void write_site_event(struct json_writer *w, const struct ky_event *e,
			     const struct thread_text *thread)
{
	const struct site_text *text = site_text(w, e->site);
	if (!text)
		return;
	if (!text->plain || text->head_bytes > SITE_BYTES) {
		put_start(w, thread, e->time_ns);
		ky_out_append(w->out, text->data, text->head_bytes);
		put_rest(w, e, text);
		ky_json_append(w->out, "}");
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
	ky_json_append(w->out, "}");
}

/* A begin that was made up for an end; the end's trace point may be of another kind and have no name. */
static void write_begin_lost(struct json_writer *w, const struct ky_event *e,
			     const struct thread_text *thread)
{
	put_start(w, thread, e->time_ns);
	ky_json_append(w->out, ",\"ph\":\"B\",\"cat\":");
	put_text(w, w->out, e->site->category);
	ky_json_append(w->out, ",\"name\":");
	put_text(w, w->out, e->name);
	ky_json_append(w->out, ",\"args\":{\"begin_lost\":true}}");
}

static void put_lost(struct json_writer *w, const struct thread_text *thread, uint64_t time_ns,
		     uint64_t count)
{
	put_start(w, thread, time_ns);
	ky_json_append(
		w->out,
		",\"ph\":\"i\",\"cat\":\"kymo\",\"name\":\"events lost\",\"args\":{\"count\":");
	ky_json_append_uint(w->out, count);
}

static void write_lost(struct json_writer *w, const struct ky_event *e,
		       const struct thread_text *thread)
{
	put_lost(w, thread, e->time_ns, e->id);
	ky_json_append(w->out, "}}");
}

/* It has no thread, and the file's time. */
static void json_loss(void *writer, const char *what, uint64_t count)
{
	struct json_writer *w = writer;
	struct thread_text nobody;
	make_thread_text(&nobody, w->pid, 0);
	put_lost(w, &nobody, w->begin_ns, count);
	ky_json_append(w->out, ",\"what\":\"");
	ky_json_append(w->out, what);
	ky_json_append(w->out, "\",\"untimed\":true},\"s\":\"g\"}");
}

static void write_name(struct json_writer *w, const char *what, int32_t pid, int32_t tid,
		       struct ky_text name)
{
	/* Perfetto counts a name that is empty as an error. */
	if (!name.bytes)
		return;
	ky_json_append(w->out, ",\n{\"pid\":");
	ky_json_append_int(w->out, pid);
	ky_json_append(w->out, ",\"tid\":");
	ky_json_append_int(w->out, tid);
	ky_json_append(w->out, ",\"ph\":\"M\",\"name\":\"");
	ky_json_append(w->out, what);
	ky_json_append(w->out, "\",\"args\":{\"name\":");
	put_text(w, w->out, name);
	ky_json_append(w->out, "}}");
}

/* Snapshots and marks of where one starts: on a line of their own. */
static void write_snapshot(struct json_writer *w, const struct ky_event *e)
{
	const int32_t pid = e->thread->pid;
	if (!w->snapshots_named)
		write_name(w, KY_JSON_THREAD_NAME, pid, SNAPSHOTS_TID,
			   (struct ky_text){"snapshots", 9});
	w->snapshots_named = true;
	struct thread_text thread;
	make_thread_text(&thread, pid, SNAPSHOTS_TID);
	put_start(w, &thread, e->time_ns);
	ky_json_append(w->out, ",\"ph\":\"i\",\"cat\":");
	put_text(w, w->out, e->site ? e->site->category : (struct ky_text){"kymo", 4});
	ky_json_append(w->out, ",\"name\":");
	const bool unnamed_mark = !e->name.bytes && e->kind == KYMO_KIND_MARK;
	put_text(w, w->out, unnamed_mark ? (struct ky_text){"mark start", 10} : e->name);
	ky_json_append(w->out, ",\"args\":{\"thread\":");
	ky_json_append_int(w->out, e->thread->tid);
	if (e->args_count)
		ky_json_append(w->out, ",");
	put_pairs(w, e, NULL);
	ky_json_append(w->out, "}}");
}

static void json_event(void *writer, const struct ky_event *e)
{
	struct json_writer *w = writer;
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

static void json_process(void *writer, int32_t pid, struct ky_text name)
{
	struct json_writer *w = writer;
	write_name(w, KY_JSON_PROCESS_NAME, pid, pid, name);
}

static void json_thread(void *writer, const struct ky_thread *thread)
{
	struct json_writer *w = writer;
	write_name(w, KY_JSON_THREAD_NAME, thread->pid, thread->tid, thread->name);
}

static void put_clock(struct ky_out *out, const char *key, uint64_t time_ns)
{
	ky_json_append(out, key);
	ky_json_append_uint(out, time_ns);
	ky_json_append(out, "\"");
}

/* The one event without a comma: where the file comes from, and its clock in other clocks. */
static void write_first(struct json_writer *w, const struct ky_trace_info *info)
{
	struct ky_out *out = w->out;
	struct ky_text name = info->process.bytes ? info->process : info->command;
	if (!name.bytes)
		name = (struct ky_text){"kymo", 4};
	ky_json_append(out, "[\n{\"pid\":");
	ky_json_append_int(out, info->pid);
	ky_json_append(out, ",\"tid\":");
	ky_json_append_int(out, info->pid);
	ky_json_append(out, ",\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":");
	put_text(w, out, name);
	ky_json_append(out, ",\"command\":");
	put_text(w, out, info->command);
	put_clock(out, ",\"boottime_ns\":\"", info->clock.boottime_ns);
	put_clock(out, ",\"monotonic_ns\":\"", info->clock.monotonic_ns);
	put_clock(out, ",\"realtime_ns\":\"", info->clock.realtime_ns);
	ky_json_append(out, "}}");
}

static void json_close(void *writer)
{
	struct json_writer *w = writer;
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

static int json_open(void **writer, struct ky_out *out, const struct ky_trace_info *info)
{
	*writer = NULL;
	struct json_writer *w = calloc(1, sizeof(*w));
	if (!w || ky_out_init(&w->scratch, 0) || ky_out_init(&w->clean, 0)) {
		json_close(w);
		return -ENOMEM;
	}
	w->out = out;
	w->pid = info->pid;
	w->begin_ns = info->clock.boottime_ns;
	w->threads.item_bytes = sizeof(struct thread_text);
	w->sites.item_bytes = sizeof(struct site_text);
	write_first(w, info);
	*writer = w;
	return 0;
}

/* Catapult shows labels beside the process's name. */
static void json_finish(void *writer, uint64_t lost)
{
	struct json_writer *w = writer;
	if (lost) {
		ky_json_append(w->out, ",\n{\"pid\":");
		ky_json_append_int(w->out, w->pid);
		ky_json_append(w->out,
			       ",\"ph\":\"M\",\"name\":\"process_labels\",\"args\":{\"labels\":\"");
		ky_json_append_uint(w->out, lost);
		ky_json_append(w->out, " events lost\"}}");
	}
	ky_json_append(w->out, "\n]\n");
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
	.loss = json_loss,
	.finish = json_finish,
	.close = json_close,
};
