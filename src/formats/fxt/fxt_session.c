/* SPDX-License-Identifier: MIT */
/*
 * fxt_session.c: a session's events in the Fuchsia trace format, which Perfetto, magic-trace's viewer and Fuchsia's
 * trace2json open. docs/formats/fxt.md has the table of kinds, fxt_emit.h the records.
 *
 * The strings of trace points are in the file's string table; strings that come with an event are written into its
 * record. The 255 thread numbers are handed out in turn. Ticks are nanoseconds of CLOCK_BOOTTIME.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/losses.h"
#include "formats/format.h"
#include "formats/fxt/fxt_emit.h"
#include "formats/out.h"
#include "formats/utf8.h"

/* With these a record with a name and all its arguments is below the format's 4095 words. */
#define ARG_BYTES_MAX 1000u
#define ARGS_MAX 12u
#define STRINGS_PER_EVENT 24u

/* Snapshots are shown as a thread of their own; the kernel gives no thread such an id. */
#define SNAPSHOTS_TID INT32_MAX

struct site_strings {
	struct ky_fxt_slot name;
	struct ky_fxt_slot keys[KYMO_ARGS_MAX];
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
	FIXED_WHAT,
	FIXED_UNTIMED,
	FIXED_COUNT_OF,
};

static const char *const fixed_texts[FIXED_COUNT_OF] = {
	[FIXED_PROCESS] = "process",         [FIXED_KYMO] = "kymo",
	[FIXED_EVENTS_LOST] = "events lost", [FIXED_COUNT] = "count",
	[FIXED_BEGIN_LOST] = "begin_lost",   [FIXED_ID] = "id",
	[FIXED_OBJECT] = "object",           [FIXED_THREAD] = "thread",
	[FIXED_MARK_START] = "mark start",   [FIXED_WHAT] = "what",
	[FIXED_UNTIMED] = "untimed",
};

struct ky_fxt_session {
	struct ky_fxt_emitter emitter;
	struct ky_table threads;    /* uint32_t: the thread's number, 0 when it has none */
	struct ky_table sites;      /* struct site_strings */
	struct ky_table categories; /* struct ky_fxt_slot */
	struct ky_fxt_slot fixed[FIXED_COUNT_OF];
	uint32_t next_thread;
	uint32_t thread_owner[KY_FXT_THREAD_INDEX_MAX + 1]; /* the thread's index and 1 */
	bool snapshots_named;
	uint64_t begin_ns;
	uint64_t lost_marked; /* what markers stand for */
};

/* ---- strings and threads ---- */

static uint64_t fixed_ref(struct ky_fxt_session *s, enum fixed which)
{
	const char *text = fixed_texts[which];
	return ky_fxt_emit_string(&s->emitter, &s->fixed[which],
				  (struct ky_text){text, (uint32_t)strlen(text)});
}

static uint64_t category_ref(struct ky_fxt_session *s, const struct ky_site *site)
{
	struct ky_fxt_slot *slot =
		ky_table_make(&s->categories, site->category_index, s->emitter.out);
	return slot ? ky_fxt_emit_string(&s->emitter, slot, site->category) : 0;
}

static uint64_t bind_thread(struct ky_fxt_session *s, uint32_t *number,
			    const struct ky_thread *thread)
{
	s->next_thread = s->next_thread % KY_FXT_THREAD_INDEX_MAX + 1;
	*number = s->next_thread;
	s->thread_owner[*number] = thread->index + 1;
	ky_fxt_emit_bind_thread(&s->emitter, *number, (uint32_t)thread->pid, (uint32_t)thread->tid);
	return *number;
}

/* Return the thread's number, 0 when memory is short. */
static inline uint64_t thread_ref(struct ky_fxt_session *s, const struct ky_thread *thread)
{
	uint32_t *number = ky_table_make(&s->threads, thread->index, s->emitter.out);
	if (!number)
		return 0;
	if (__builtin_expect(!*number || s->thread_owner[*number] != thread->index + 1, 0))
		return bind_thread(s, number, thread);
	return *number;
}

static void name_thread(struct ky_fxt_session *s, int32_t pid, int32_t tid, struct ky_text name)
{
	ky_fxt_emit_make_room(&s->emitter);
	ky_fxt_emit_thread(&s->emitter, (uint32_t)pid, (uint32_t)tid, fixed_ref(s, FIXED_PROCESS),
			   name);
}

static void fxt_process(void *writer, int32_t pid, struct ky_text name)
{
	struct ky_fxt_session *s = writer;
	ky_fxt_emit_process(&s->emitter, (uint32_t)pid, name);
}

static void fxt_thread(void *writer, const struct ky_thread *thread)
{
	name_thread(writer, thread->pid, thread->tid, thread->name);
}

/* ---- arguments ---- */

static void put_arg_string(struct ky_fxt_emitter *w, uint64_t key, const struct kymo_arg *arg)
{
	struct kymo_arg part = *arg;
	if (part.string_bytes > ARG_BYTES_MAX / 3) {
		part.string_bytes = ARG_BYTES_MAX / 3;
		part.cut = 1;
	}
	ky_fxt_emit_arg_text(w, key, ky_utf8_arg(&w->clean, &part));
}

static void put_arg(struct ky_fxt_emitter *w, uint64_t key, const struct kymo_arg *arg)
{
	switch (arg->type) {
	case KYMO_TYPE_INT:
		ky_fxt_emit_arg_word(w, KY_FXT_ARG_INT64, key, arg->value.u);
		break;
	case KYMO_TYPE_UINT:
		ky_fxt_emit_arg_word(w, KY_FXT_ARG_UINT64, key, arg->value.u);
		break;
	case KYMO_TYPE_DOUBLE:
		ky_fxt_emit_arg_word(w, KY_FXT_ARG_DOUBLE, key, arg->value.u);
		break;
	case KYMO_TYPE_BOOL:
		ky_fxt_emit_arg_small(w, KY_FXT_ARG_BOOL, key, arg->value.u != 0);
		break;
	case KYMO_TYPE_POINTER:
		ky_fxt_emit_arg_word(w, KY_FXT_ARG_POINTER, key, arg->value.u);
		break;
	default:
		put_arg_string(w, key, arg);
	}
}

/* Return the key's index; a key that is not the trace point's is defined for this event alone. */
static uint64_t key_ref(struct ky_fxt_session *s, const struct ky_event *e,
			struct site_strings *strings, uint32_t i)
{
	const char *key = e->args[i].key;
	if (strings && i < e->site->args && i < KYMO_ARGS_MAX && key == e->site->keys[i].data)
		return ky_fxt_emit_string(&s->emitter, &strings->keys[i], e->site->keys[i]);
	return ky_fxt_emit_define(
		&s->emitter, (struct ky_text){key ? key : "", key ? (uint32_t)strlen(key) : 0});
}

static void put_args(struct ky_fxt_session *s, const struct ky_event *e,
		     struct site_strings *strings)
{
	for (uint32_t i = 0; i < e->args_count && i < ARGS_MAX; i++)
		put_arg(&s->emitter, key_ref(s, e, strings, i), &e->args[i]);
	if (e->begin_lost)
		ky_fxt_emit_arg_small(&s->emitter, KY_FXT_ARG_BOOL, fixed_ref(s, FIXED_BEGIN_LOST),
				      true);
}

/* Say what the kind means where the format has no kind for it. */
static void put_kind_args(struct ky_fxt_session *s, const struct ky_event *e)
{
	static const char *const states[] = {"new", "snapshot", "delete"};
	if (e->kind < KYMO_KIND_OBJECT_NEW || e->kind > KYMO_KIND_OBJECT_DELETE)
		return;
	const char *state = states[e->kind - KYMO_KIND_OBJECT_NEW];
	ky_fxt_emit_arg_text(&s->emitter, fixed_ref(s, FIXED_OBJECT),
			     (struct ky_text){state, (uint32_t)strlen(state)});
	ky_fxt_emit_arg_word(&s->emitter, KY_FXT_ARG_POINTER, fixed_ref(s, FIXED_ID), e->id);
}

/* ---- events ---- */

/* Counters, asynchronous events and flows end in an id. */
static bool has_id_word(uint64_t type)
{
	return type == KY_FXT_EVENT_COUNTER || type >= KY_FXT_EVENT_ASYNC_BEGIN;
}

/*
 * Perfetto tells asynchronous spans apart by name and id, so the category goes into the bits that ids, small numbers or
 * addresses, leave free. Flows may cross processes: theirs is made of the texts, not of this process's numbers.
 */
static uint64_t id_word(const struct ky_event *e)
{
	if (e->kind >= KYMO_KIND_FLOW_BEGIN && e->kind <= KYMO_KIND_FLOW_END)
		return ky_fxt_emit_flow_id(e->id, e->site->category, e->name);
	if (e->kind >= KYMO_KIND_ASYNC_BEGIN && e->kind <= KYMO_KIND_ASYNC_END)
		return e->id ^ (uint64_t)e->site->category_index << 48;
	return e->id;
}

static bool has_own_name(const struct ky_site *site)
{
	return (site->flags & KYMO_SITE_NAME) != 0 || site->kind == KYMO_KIND_PRINT;
}

/* Write the event's own name into its record and return the reference to it. */
static uint64_t put_name(struct ky_fxt_emitter *w, struct ky_text name)
{
	const struct ky_text clean = ky_fxt_emit_limited(w, name, KY_FXT_NAME_BYTES_MAX);
	ky_fxt_emit_padded(&w->record, clean);
	return KY_FXT_STRING_INLINE | clean.bytes;
}

static void write_lost(struct ky_fxt_session *s, const struct ky_event *e, uint64_t thread)
{
	const uint64_t category = fixed_ref(s, FIXED_KYMO);
	const uint64_t name = fixed_ref(s, FIXED_EVENTS_LOST);
	ky_fxt_emit_begin(&s->emitter, e->time_ns);
	ky_fxt_emit_arg_word(&s->emitter, KY_FXT_ARG_UINT64, fixed_ref(s, FIXED_COUNT), e->id);
	ky_fxt_emit_end(&s->emitter,
			ky_fxt_emit_event_header(KY_FXT_EVENT_INSTANT, thread, category, name));
	s->lost_marked += e->id;
}

/* It has no thread, and the file's time. */
static void fxt_loss(void *writer, const char *what, uint64_t count)
{
	struct ky_fxt_session *s = writer;
	const struct ky_text cause = {what, (uint32_t)strlen(what)};
	struct ky_fxt_emitter *w = &s->emitter;
	ky_fxt_emit_make_room(w);
	const uint64_t category = fixed_ref(s, FIXED_KYMO);
	const uint64_t name = fixed_ref(s, FIXED_EVENTS_LOST);
	s->lost_marked += count;
	ky_fxt_emit_begin(w, s->begin_ns);
	ky_fxt_emit_word(&w->record, 0);
	ky_fxt_emit_word(&w->record, 0);
	ky_fxt_emit_arg_word(w, KY_FXT_ARG_UINT64, fixed_ref(s, FIXED_COUNT), count);
	ky_fxt_emit_arg_text(w, fixed_ref(s, FIXED_WHAT), cause);
	ky_fxt_emit_arg_small(w, KY_FXT_ARG_BOOL, fixed_ref(s, FIXED_UNTIMED), true);
	ky_fxt_emit_end(w, ky_fxt_emit_event_header(KY_FXT_EVENT_INSTANT, 0, category, name));
}

/* Snapshots and marks are on a thread of their own, which is in the record. */
static void write_snapshot(struct ky_fxt_session *s, const struct ky_event *e)
{
	struct ky_fxt_emitter *w = &s->emitter;
	const int32_t pid = e->thread->pid;
	if (!s->snapshots_named)
		name_thread(s, pid, SNAPSHOTS_TID, (struct ky_text){"snapshots", 9});
	s->snapshots_named = true;
	const uint64_t category = category_ref(s, e->site);
	const bool unnamed_mark = !e->name.bytes && e->kind == KYMO_KIND_MARK;
	uint64_t name = unnamed_mark ? fixed_ref(s, FIXED_MARK_START) : 0;
	ky_fxt_emit_begin(w, e->time_ns);
	ky_fxt_emit_word(&w->record, (uint64_t)(uint32_t)pid);
	ky_fxt_emit_word(&w->record, (uint64_t)SNAPSHOTS_TID);
	if (e->name.bytes)
		name = put_name(w, e->name);
	ky_fxt_emit_arg_word(w, KY_FXT_ARG_INT64, fixed_ref(s, FIXED_THREAD),
			     (uint64_t)e->thread->tid);
	put_args(s, e, NULL);
	ky_fxt_emit_end(w, ky_fxt_emit_event_header(KY_FXT_EVENT_INSTANT, 0, category, name));
}

static void write_full(struct ky_fxt_session *s, const struct ky_event *e,
		       struct site_strings *strings, uint64_t header)
{
	ky_fxt_emit_begin(&s->emitter, e->time_ns);
	const bool named_here = has_own_name(e->site) || (e->begin_lost && !e->site->name.bytes);
	if (named_here && e->name.bytes && e->kind != KYMO_KIND_END)
		header |= put_name(&s->emitter, e->name) << 48;
	put_kind_args(s, e);
	if (e->kind != KYMO_KIND_PRINT)
		put_args(s, e, strings);
	if (has_id_word(ky_fxt_emit_type(e->kind)))
		ky_fxt_emit_word(&s->emitter.record, id_word(e));
	ky_fxt_emit_end(&s->emitter, header);
}

/* An event with nothing but a name is two words. */
static void write_site_event(struct ky_fxt_session *s, const struct ky_event *e, uint64_t thread)
{
	struct ky_out *out = s->emitter.out;
	struct site_strings *strings = ky_table_make(&s->sites, e->site->index, out);
	if (!strings)
		return;
	const uint64_t type = ky_fxt_emit_type(e->kind);
	const bool own_name = has_own_name(e->site);
	const uint64_t category = category_ref(s, e->site);
	const uint64_t name =
		own_name ? 0 : ky_fxt_emit_string(&s->emitter, &strings->name, e->site->name);
	const uint64_t header = ky_fxt_emit_event_header(type, thread, category, name);
	const bool bare = type == KY_FXT_EVENT_END || (type == KY_FXT_EVENT_BEGIN && !own_name);
	if (!bare || e->args_count || e->begin_lost) {
		write_full(s, e, strings, header);
		return;
	}
	const uint64_t words[2] = {header | 2 << 4, e->time_ns};
	uint8_t *to = ky_out_room(out, sizeof(words));
	memcpy(to, words, sizeof(words));
	ky_out_done(out, to + sizeof(words));
}

static void fxt_event(void *writer, const struct ky_event *e)
{
	struct ky_fxt_session *s = writer;
	ky_fxt_emit_make_room(&s->emitter);
	const uint64_t thread = thread_ref(s, e->thread);
	if (!thread)
		return;
	if (e->kind == KYMO_KIND_LOST || !e->site)
		write_lost(s, e, thread);
	else if (e->kind == KYMO_KIND_SNAPSHOT || e->kind == KYMO_KIND_MARK)
		write_snapshot(s, e);
	else
		write_site_event(s, e, thread);
}

/* ---- the file ---- */

static void fxt_close(void *writer)
{
	struct ky_fxt_session *s = writer;
	if (!s)
		return;
	ky_table_free(&s->threads);
	ky_table_free(&s->sites);
	ky_table_free(&s->categories);
	ky_fxt_emit_close(&s->emitter);
	free(s);
}

static int fxt_open(void **writer, struct ky_out *out, const struct ky_trace_info *info)
{
	struct ky_fxt_session *s = calloc(1, sizeof(*s));
	*writer = s;
	if (!s || ky_fxt_emit_open(&s->emitter, out)) {
		fxt_close(*writer);
		*writer = NULL;
		return -ENOMEM;
	}
	s->emitter.strings_per_event = STRINGS_PER_EVENT;
	s->emitter.string_bytes_max = KY_FXT_NAME_BYTES_MAX;
	s->threads.item_bytes = sizeof(uint32_t);
	s->sites.item_bytes = sizeof(struct site_strings);
	s->categories.item_bytes = sizeof(struct ky_fxt_slot);
	s->begin_ns = info->clock.boottime_ns;
	ky_fxt_emit_head(&s->emitter);
	fxt_process(*writer, info->pid, info->process.bytes ? info->process : info->command);
	return 0;
}

static void fxt_finish(void *writer, uint64_t lost)
{
	struct ky_fxt_session *s = writer;
	if (lost > s->lost_marked)
		fxt_loss(s, ky_losses_what(KY_LOST_RINGLESS), lost - s->lost_marked);
	ky_fxt_emit_tail(&s->emitter, lost);
}

const struct ky_format ky_format_fxt = {
	.name = "fxt",
	.id = KYMO_FORMAT_FXT,
	.suffix = ".fxt",
	.open = fxt_open,
	.process = fxt_process,
	.thread = fxt_thread,
	.event = fxt_event,
	.loss = fxt_loss,
	.finish = fxt_finish,
	.close = fxt_close,
};
