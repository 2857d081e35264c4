/* SPDX-License-Identifier: MIT */
/*
 * pftrace_session_event.c: builds one event as a TrackEvent message in w->emit.body.
 *
 * The fields that all events of a trace point share (type, category, name, source location) were encoded once;
 * here come the track where it is not the thread's own, names that the event brings, and the arguments as debug
 * annotations. docs/formats/pftrace.md has the table of kinds.
 */
#include "formats/pftrace/pftrace_session.h"
#include "formats/utf8.h"

/* The kinds that are not instants. */
static const uint8_t types[] = {
	[KYMO_KIND_BEGIN] = KY_PF_TYPE_SLICE_BEGIN,
	[KYMO_KIND_END] = KY_PF_TYPE_SLICE_END,
	[KYMO_KIND_COUNTER] = KY_PF_TYPE_COUNTER,
	[KYMO_KIND_ASYNC_BEGIN] = KY_PF_TYPE_SLICE_BEGIN,
	[KYMO_KIND_ASYNC_END] = KY_PF_TYPE_SLICE_END,
	[KYMO_KIND_FLOW_BEGIN] = KY_PF_TYPE_UNSPECIFIED,
	[KYMO_KIND_FLOW_STEP] = KY_PF_TYPE_UNSPECIFIED,
	[KYMO_KIND_FLOW_END] = KY_PF_TYPE_UNSPECIFIED,
};

static bool is_flow(uint8_t kind)
{
	return kind >= KYMO_KIND_FLOW_BEGIN && kind <= KYMO_KIND_FLOW_END;
}

static uint8_t type_of(uint8_t kind)
{
	const uint8_t type = kind < sizeof(types) ? types[kind] : KY_PF_TYPE_UNSPECIFIED;
	return type || is_flow(kind) ? type : KY_PF_TYPE_INSTANT;
}

/* The ids of interned strings; 0 would mean no string. */
static uint64_t site_iid(const struct ky_site *site)
{
	return (uint64_t)site->index + 1;
}

static uint64_t category_iid(const struct ky_site *site)
{
	return (uint64_t)site->category_index + 1;
}

static uint64_t key_iid(const struct ky_site *site, uint32_t arg)
{
	return (uint64_t)site->index * KYMO_ARGS_MAX + arg + 1;
}

static bool has_own_name(const struct ky_site *site)
{
	return (site->flags & KYMO_SITE_NAME) != 0 || site->kind == KYMO_KIND_PRINT;
}

/* An end closes the innermost slice; a name or category that differs would keep it open. */
static bool has_identity(uint8_t kind)
{
	return kind != KYMO_KIND_END && kind != KYMO_KIND_ASYNC_END && kind != KYMO_KIND_COUNTER;
}

void ky_pf_session_event_make(struct ky_pf_session_site *known, const struct ky_site *site)
{
	const bool identity = has_identity(site->kind);
	const uint8_t type = type_of(site->kind);
	uint8_t *to = known->body;
	*to++ = KY_PF_TRACE_PACKET_TRACK_EVENT << 3 | KY_PROTO_BYTES;
	uint8_t *length = to++;
	if (type)
		to = ky_proto_uint_at(to, KY_PF_TRACK_EVENT_TYPE, type);
	if (identity && site->category.bytes)
		to = ky_proto_uint_at(to, KY_PF_TRACK_EVENT_CATEGORY_IIDS, category_iid(site));
	if (identity && !has_own_name(site))
		to = ky_proto_uint_at(to, KY_PF_TRACK_EVENT_NAME_IID, site_iid(site));
	if (identity && site->file.bytes && !is_flow(site->kind))
		to = ky_proto_uint_at(to, KY_PF_TRACK_EVENT_SOURCE_LOCATION_IID, site_iid(site));
	*length = (uint8_t)(to - length - 1);
	known->body_bytes = (uint8_t)(to - known->body);
	known->plain = !has_own_name(site) &&
		       (site->kind == KYMO_KIND_BEGIN || site->kind == KYMO_KIND_INSTANT) &&
		       !(site->flags & (KYMO_SITE_PROCESS | KYMO_SITE_GLOBAL | KYMO_SITE_ID));
}

/* ---- interned strings ---- */

static void intern_location(struct ky_pf_session *w, const struct ky_site *site)
{
	w->emit.part.used = 0;
	ky_proto_uint(&w->emit.part, KY_PF_INTERNED_STRING_IID, site_iid(site));
	ky_pf_emit_text(&w->emit, &w->emit.part, KY_PF_INTERNED_STRING_STR, site->file);
	ky_pf_emit_text(&w->emit, &w->emit.part, KY_PF_SOURCE_LOCATION_FUNCTION_NAME,
			site->function);
	ky_proto_uint(&w->emit.part, KY_PF_SOURCE_LOCATION_LINE_NUMBER, site->line);
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_SOURCE_LOCATIONS, &w->emit.part);
}

void ky_pf_session_event_intern(struct ky_pf_session *w, const struct ky_site *site)
{
	if (has_identity(site->kind)) {
		if (site->category.bytes)
			ky_pf_emit_intern(&w->emit, KY_PF_INTERNED_DATA_EVENT_CATEGORIES,
					  category_iid(site), site->category);
		if (!has_own_name(site))
			ky_pf_emit_intern(&w->emit, KY_PF_INTERNED_DATA_EVENT_NAMES, site_iid(site),
					  site->name);
		if (site->file.bytes && !is_flow(site->kind))
			intern_location(w, site);
	}
	for (uint32_t i = 0; i < site->args && i < KYMO_ARGS_MAX; i++)
		ky_pf_emit_intern(&w->emit, KY_PF_INTERNED_DATA_DEBUG_ANNOTATION_NAMES,
				  key_iid(site, i), site->keys[i]);
}

/* ---- arguments ---- */

/* The longest value of an argument that is not a string. */
#define SCALAR_BYTES (1 + KY_PROTO_VARINT_BYTES)

static uint8_t *put_scalar(uint8_t *to, const struct kymo_arg *arg)
{
	switch (arg->type) {
	case KYMO_TYPE_INT:
		return ky_proto_uint_at(to, KY_PF_DEBUG_ANNOTATION_INT_VALUE, arg->value.u);
	case KYMO_TYPE_DOUBLE:
		to = ky_proto_tag_at(to, KY_PF_DEBUG_ANNOTATION_DOUBLE_VALUE, KY_PROTO_FIXED64);
		memcpy(to, &arg->value.d, sizeof(arg->value.d));
		return to + sizeof(arg->value.d);
	case KYMO_TYPE_BOOL:
		return ky_proto_uint_at(to, KY_PF_DEBUG_ANNOTATION_BOOL_VALUE, arg->value.u != 0);
	case KYMO_TYPE_POINTER:
		return ky_proto_uint_at(to, KY_PF_DEBUG_ANNOTATION_POINTER_VALUE, arg->value.u);
	default:
		return ky_proto_uint_at(to, KY_PF_DEBUG_ANNOTATION_UINT_VALUE, arg->value.u);
	}
}

/* Append an annotation whose name is interned: below 128 bytes unless it is a string. */
static void put_annotation(struct ky_pf_session *w, uint64_t iid, const struct kymo_arg *arg)
{
	uint8_t *start = ky_out_room(&w->emit.body, 2 + 4 * KY_PROTO_VARINT_BYTES + SCALAR_BYTES);
	uint8_t *to = ky_proto_tag_at(start, KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS, KY_PROTO_BYTES);
	if (arg->type != KYMO_TYPE_STRING) {
		uint8_t *length = to++;
		to = put_scalar(ky_proto_uint_at(to, KY_PF_DEBUG_ANNOTATION_NAME_IID, iid), arg);
		*length = (uint8_t)(to - length - 1);
		ky_out_done(&w->emit.body, to);
		return;
	}
	const struct ky_text text = ky_utf8_arg(&w->emit.clean, arg);
	const size_t name_bytes = 1 + ky_proto_varint_bytes(iid);
	to = ky_proto_varint_at(to,
				name_bytes + 1 + ky_proto_varint_bytes(text.bytes) + text.bytes);
	to = ky_proto_uint_at(to, KY_PF_DEBUG_ANNOTATION_NAME_IID, iid);
	to = ky_proto_tag_at(to, KY_PF_DEBUG_ANNOTATION_STRING_VALUE, KY_PROTO_BYTES);
	ky_out_done(&w->emit.body, ky_proto_varint_at(to, text.bytes));
	ky_out_append(&w->emit.body, text.data, text.bytes);
}

static void put_own_annotation(struct ky_pf_session *w, const struct kymo_arg *arg)
{
	const struct ky_text key = {arg->key ? arg->key : "",
				    arg->key ? (uint32_t)strlen(arg->key) : 0};
	w->emit.part.used = 0;
	ky_pf_emit_text(&w->emit, &w->emit.part, KY_PF_DEBUG_ANNOTATION_NAME, key);
	if (arg->type == KYMO_TYPE_STRING)
		ky_proto_text(&w->emit.part, KY_PF_DEBUG_ANNOTATION_STRING_VALUE,
			      ky_utf8_arg(&w->emit.clean, arg));
	else
		ky_out_done(&w->emit.part,
			    put_scalar(ky_out_room(&w->emit.part, SCALAR_BYTES), arg));
	ky_proto_message(&w->emit.body, KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS, &w->emit.part);
}

static void put_args(struct ky_pf_session *w, const struct ky_event *e)
{
	for (uint32_t i = 0; i < e->args_count; i++) {
		const struct kymo_arg *arg = &e->args[i];
		if (e->site && i < e->site->args && i < KYMO_ARGS_MAX &&
		    arg->key == e->site->keys[i].data)
			put_annotation(w, key_iid(e->site, i), arg);
		else
			put_own_annotation(w, arg);
	}
	if (e->begin_lost)
		put_own_annotation(w, &(struct kymo_arg){.key = "begin_lost",
							 .type = KYMO_TYPE_BOOL,
							 .value.u = 1});
}

static void put_uint_arg(struct ky_pf_session *w, const char *key, uint32_t type, uint64_t value)
{
	put_own_annotation(w, &(struct kymo_arg){.key = key, .type = type, .value.u = value});
}

static void put_text_arg(struct ky_pf_session *w, const char *key, const char *text)
{
	put_own_annotation(w, &(struct kymo_arg){.key = key,
						 .type = KYMO_TYPE_STRING,
						 .string = text,
						 .string_bytes = (uint32_t)strlen(text)});
}

/* ---- events ---- */

static void put_name(struct ky_pf_session *w, struct ky_text name)
{
	ky_pf_emit_text(&w->emit, &w->emit.body, KY_PF_TRACK_EVENT_NAME, name);
}

/* Start body with the fields that all events of the trace point share. */
static void begin_body(struct ky_pf_session *w, const struct ky_pf_session_site *known,
		       const struct ky_event *e)
{
	w->emit.body.used = 0;
	if (e->begin_lost && e->site->kind == KYMO_KIND_END) {
		/* Made up for a KYMO_END, whose trace point has no name. */
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_SLICE_BEGIN);
		ky_pf_emit_text(&w->emit, &w->emit.body, KY_PF_TRACK_EVENT_CATEGORIES,
				e->site->category);
		put_name(w, e->name);
		return;
	}
	ky_out_append(&w->emit.body, known->body + 2, known->body_bytes - 2u);
	if (has_own_name(e->site) && has_identity(e->kind))
		put_name(w, e->name);
}

static void put_track(struct ky_pf_session *w, uint64_t uuid)
{
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TRACK_UUID, uuid);
}

static void write_end(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
		      const struct ky_event *e)
{
	w->emit.body.used = 0;
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_SLICE_END);
	put_args(w, e);
	ky_pf_session_send(w, thread, e->time_ns);
}

static void put_counter_value(struct ky_pf_session *w, const struct kymo_arg *arg)
{
	if (arg->type == KYMO_TYPE_DOUBLE)
		ky_proto_double(&w->emit.body, KY_PF_TRACK_EVENT_DOUBLE_COUNTER_VALUE,
				arg->value.d);
	else if (arg->type == KYMO_TYPE_UINT && arg->value.u > INT64_MAX)
		ky_proto_double(&w->emit.body, KY_PF_TRACK_EVENT_DOUBLE_COUNTER_VALUE,
				(double)arg->value.u);
	else
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_COUNTER_VALUE, arg->value.u);
}

/* Each value is an event on a track of its own. */
static void write_counter(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			  const struct ky_event *e)
{
	for (uint32_t i = 0; i < e->args_count; i++) {
		if (e->args[i].type == KYMO_TYPE_STRING)
			continue;
		const uint64_t uuid = ky_pf_session_counter_track(w, e, &e->args[i]);
		w->emit.body.used = 0;
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_COUNTER);
		put_track(w, uuid);
		put_counter_value(w, &e->args[i]);
		ky_pf_session_send(w, thread, e->time_ns);
	}
}

static void write_flow(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
		       const struct ky_pf_session_site *known, const struct ky_event *e)
{
	/* There is a field for local ids, but Perfetto reads it for spans only. */
	const bool local = (e->site->flags & KYMO_SITE_LOCAL_ID) != 0;
	const uint64_t id = local ? ky_pf_session_mix(e->id, (uint32_t)e->thread->pid) : e->id;
	w->emit.body.used = 0;
	ky_out_append(&w->emit.body, known->body + 2, known->body_bytes - 2u);
	ky_pf_emit_flow(&w->emit, e->kind - KYMO_KIND_FLOW_BEGIN, id);
	if (has_own_name(e->site))
		put_name(w, e->name);
	ky_pf_session_send(w, thread, e->time_ns);
}

void ky_pf_session_event_lost(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			      uint64_t time_ns, uint64_t count, const char *what)
{
	const uint64_t track = what ? ky_pf_session_global_track(w) : 0;
	w->emit.body.used = 0;
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_INSTANT);
	ky_proto_text(&w->emit.body, KY_PF_TRACK_EVENT_CATEGORIES, (struct ky_text){"kymo", 4});
	put_name(w, (struct ky_text){"events lost", 11});
	put_uint_arg(w, "count", KYMO_TYPE_UINT, count);
	if (what) {
		put_track(w, track);
		put_text_arg(w, "what", what);
		put_uint_arg(w, "untimed", KYMO_TYPE_BOOL, 1);
	}
	ky_pf_session_send(w, thread, time_ns);
}

static void write_snapshot(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			   const struct ky_event *e)
{
	const uint64_t track = ky_pf_session_snapshots_track(w, e->thread->pid);
	const bool unnamed_mark = !e->name.bytes && e->kind == KYMO_KIND_MARK;
	w->emit.body.used = 0;
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_INSTANT);
	put_track(w, track);
	ky_pf_emit_text(&w->emit, &w->emit.body, KY_PF_TRACK_EVENT_CATEGORIES, e->site->category);
	put_name(w, unnamed_mark ? (struct ky_text){"mark start", 10} : e->name);
	put_uint_arg(w, "thread", KYMO_TYPE_INT, (uint64_t)(int64_t)e->thread->tid);
	put_args(w, e);
	ky_pf_session_send(w, thread, e->time_ns);
}

/* Say what the kind means where the format has no kind for it. */
static void put_kind_args(struct ky_pf_session *w, const struct ky_event *e)
{
	switch (e->kind) {
	case KYMO_KIND_OBJECT_NEW:
		put_text_arg(w, "object", "new");
		break;
	case KYMO_KIND_OBJECT_SNAPSHOT:
		put_text_arg(w, "object", "snapshot");
		break;
	case KYMO_KIND_OBJECT_DELETE:
		put_text_arg(w, "object", "delete");
		break;
	default:
		break;
	}
	if ((e->site->flags & KYMO_SITE_ID) != 0)
		put_uint_arg(w, "id", KYMO_TYPE_POINTER, e->id);
}

static uint64_t instant_track(struct ky_pf_session *w, const struct ky_event *e)
{
	if (e->site->flags & KYMO_SITE_GLOBAL)
		return ky_pf_session_global_track(w);
	if ((e->site->flags & KYMO_SITE_PROCESS) || e->kind == KYMO_KIND_METADATA)
		return ky_pf_session_process_uuid(w, e->thread->pid);
	return 0;
}

static void write_async(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			const struct ky_pf_session_site *known, const struct ky_event *e)
{
	const uint64_t track = ky_pf_session_async_track(w, e);
	begin_body(w, known, e);
	put_track(w, track);
	put_args(w, e);
	ky_pf_session_send(w, thread, e->time_ns);
}

/* Write spans and instants, and all that is shown as an instant. */
static void write_point(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			const struct ky_pf_session_site *known, const struct ky_event *e)
{
	const uint64_t track = instant_track(w, e);
	begin_body(w, known, e);
	if (track)
		put_track(w, track);
	put_kind_args(w, e);
	if (e->kind != KYMO_KIND_PRINT)
		put_args(w, e);
	ky_pf_session_send(w, thread, e->time_ns);
}

void ky_pf_session_event_write(struct ky_pf_session *w, struct ky_pf_session_thread *thread,
			       const struct ky_pf_session_site *known, const struct ky_event *e)
{
	switch (e->kind) {
	case KYMO_KIND_LOST:
		ky_pf_session_event_lost(w, thread, e->time_ns, e->id, NULL);
		break;
	case KYMO_KIND_END:
		write_end(w, thread, e);
		break;
	case KYMO_KIND_COUNTER:
		write_counter(w, thread, e);
		break;
	case KYMO_KIND_ASYNC_BEGIN:
	case KYMO_KIND_ASYNC_INSTANT:
	case KYMO_KIND_ASYNC_END:
		write_async(w, thread, known, e);
		break;
	case KYMO_KIND_FLOW_BEGIN:
	case KYMO_KIND_FLOW_STEP:
	case KYMO_KIND_FLOW_END:
		write_flow(w, thread, known, e);
		break;
	case KYMO_KIND_SNAPSHOT:
	case KYMO_KIND_MARK:
		write_snapshot(w, thread, e);
		break;
	default:
		write_point(w, thread, known, e);
	}
}
