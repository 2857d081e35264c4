/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export_events.c: slices, instants, counters and flows as TrackEvents, arguments as debug annotations.
 *
 * A flow is an id of the events that it leaves and arrives at, in the order of time. A flow with a name, or one that
 * arrives at a slice that started before it left, is a legacy event inside the slice instead, as a session writes
 * them: ids have no name, and only the start of a slice has them.
 */
#include "formats/pftrace/pftrace_export.h"

#include "formats/arg_tree.h"
#include "model/intake.h"

/* ---- arguments ---- */

/* Make the bytes of body from begin on a field. */
static void wrap(struct ky_out *body, size_t begin, uint32_t field)
{
	uint8_t head[2 * KY_PROTO_VARINT_BYTES];
	const size_t bytes = body->used - begin;
	uint8_t *end = ky_proto_tag_at(head, field, KY_PROTO_BYTES);
	end = ky_proto_varint_at(end, bytes);
	const size_t head_bytes = (size_t)(end - head);
	ky_out_append(body, head, head_bytes);
	if (body->error)
		return;
	memmove(body->data + begin + head_bytes, body->data + begin, bytes);
	memcpy(body->data + begin, head, head_bytes);
}

/* The field of an annotation depends on its parent: the event, a dictionary or an array. */
#define LEVEL_ARRAY 0x80000000u

static uint32_t field_here(const struct ky_pf_exporter *w)
{
	if (!w->depth)
		return KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS;
	return w->levels[w->depth - 1] & LEVEL_ARRAY ? KY_PF_DEBUG_ANNOTATION_ARRAY_VALUES
						     : KY_PF_DEBUG_ANNOTATION_DICT_ENTRIES;
}

static void put_key(struct ky_pf_exporter *w, struct ky_text key)
{
	if (key.data)
		ky_pf_emit_text(&w->emit, &w->emit.body, KY_PF_DEBUG_ANNOTATION_NAME, key);
}

static void open_level(void *self, struct ky_text key, bool array)
{
	struct ky_pf_exporter *w = self;
	w->levels[w->depth++] = (uint32_t)w->emit.body.used | (array ? LEVEL_ARRAY : 0);
	put_key(w, key);
}

static void close_level(void *self, bool array)
{
	struct ky_pf_exporter *w = self;
	(void)array;
	const uint32_t begin = w->levels[--w->depth] & ~LEVEL_ARRAY;
	wrap(&w->emit.body, begin, field_here(w));
}

static void put_value(struct ky_pf_exporter *w, uint32_t arg)
{
	const uint64_t value = w->trace->args.value[arg];
	double real;
	switch (w->trace->args.type[arg]) {
	case KY_ARG_INT:
		ky_proto_uint(&w->emit.body, KY_PF_DEBUG_ANNOTATION_INT_VALUE, value);
		break;
	case KY_ARG_UINT:
		ky_proto_uint(&w->emit.body, KY_PF_DEBUG_ANNOTATION_UINT_VALUE, value);
		break;
	case KY_ARG_REAL:
		memcpy(&real, &value, sizeof(real));
		ky_proto_double(&w->emit.body, KY_PF_DEBUG_ANNOTATION_DOUBLE_VALUE, real);
		break;
	case KY_ARG_BOOL:
		ky_proto_uint(&w->emit.body, KY_PF_DEBUG_ANNOTATION_BOOL_VALUE, value != 0);
		break;
	case KY_ARG_POINTER:
		ky_proto_uint(&w->emit.body, KY_PF_DEBUG_ANNOTATION_POINTER_VALUE, value);
		break;
	default:
		ky_pf_export_string(w, &w->emit.body,
				    w->trace->args.type[arg] == KY_ARG_JSON
					    ? KY_PF_DEBUG_ANNOTATION_LEGACY_JSON_VALUE
					    : KY_PF_DEBUG_ANNOTATION_STRING_VALUE,
				    (uint32_t)value);
	}
}

static void intern_key(struct ky_pf_exporter *w, uint32_t arg, struct ky_text key)
{
	const uint32_t iid = w->trace->args.key[arg];
	if (ky_pf_export_is_new(w, KY_PF_EXPORT_KEYS, iid))
		ky_pf_emit_intern(&w->emit, KY_PF_INTERNED_DATA_DEBUG_ANNOTATION_NAMES, iid, key);
	ky_proto_uint(&w->emit.body, KY_PF_DEBUG_ANNOTATION_NAME_IID, iid);
}

static void level_value(void *self, struct ky_text key, uint32_t arg)
{
	struct ky_pf_exporter *w = self;
	const size_t begin = w->emit.body.used;
	if (w->trace->args.type[arg] == KY_ARG_NULL) {
		w->left->args++; /* there is no such value */
		return;
	}
	if (!w->depth && w->trace->args.key[arg])
		intern_key(w, arg, key);
	else
		put_key(w, key);
	put_value(w, arg);
	wrap(&w->emit.body, begin, field_here(w));
}

static void put_args(struct ky_pf_exporter *w, uint32_t set)
{
	const struct ky_arg_visitor visitor = {open_level, close_level, level_value, w};
	w->depth = 0;
	if (set)
		ky_arg_tree(w->trace, set, &visitor);
}

/* ---- flows ---- */

static bool is_legacy(const struct ky_flow_mark *mark)
{
	return mark->late || mark->name || mark->category;
}

static void put_flow_ids(struct ky_pf_exporter *w, const struct ky_flow_mark *marks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!is_legacy(&marks[i]))
			ky_proto_fixed64(&w->emit.body,
					 marks[i].phase == KY_FLOW_END
						 ? KY_PF_TRACK_EVENT_TERMINATING_FLOW_IDS
						 : KY_PF_TRACK_EVENT_FLOW_IDS,
					 marks[i].id);
}

static void put_label(struct ky_pf_exporter *w, uint32_t category, uint32_t name)
{
	if (category) {
		ky_pf_export_intern(w, KY_PF_EXPORT_CATEGORIES, category);
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_CATEGORY_IIDS, category);
	}
	if (name) {
		ky_pf_export_intern(w, KY_PF_EXPORT_NAMES, name);
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_NAME_IID, name);
	}
}

static void send_legacy(struct ky_pf_exporter *w, const struct ky_flow_mark *mark, uint64_t track,
			int64_t ts)
{
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TRACK_UUID, track);
	put_label(w, mark->category, mark->name);
	ky_pf_emit_flow(&w->emit, mark->phase, mark->id);
	ky_pf_export_send(w, KY_PF_EXPORT_EVENTS, KY_PF_TRACE_PACKET_TRACK_EVENT, ts);
}

static void send_flows(struct ky_pf_exporter *w, uint32_t slice, bool at_end, uint64_t track,
		       int64_t ts)
{
	uint32_t count;
	const struct ky_flow_mark *marks = ky_flow_marks_of(&w->flow_marks, slice, at_end, &count);
	for (uint32_t i = 0; i < count; i++)
		if (is_legacy(&marks[i]))
			send_legacy(w, &marks[i], track, ts);
}

/* ---- events ---- */

static void send_end(struct ky_pf_exporter *w, const struct ky_walk_item *item, uint64_t track)
{
	if (w->flow_marks.count)
		send_flows(w, item->row, true, track, item->ts);
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_SLICE_END);
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TRACK_UUID, track);
	if (item->named)
		put_label(w, w->trace->slices.category[item->row],
			  w->trace->slices.name[item->row]);
	ky_pf_export_send(w, KY_PF_EXPORT_EVENTS, KY_PF_TRACE_PACKET_TRACK_EVENT, item->ts);
}

void ky_pf_export_slice(void *self, const struct ky_walk_item *item)
{
	struct ky_pf_exporter *w = self;
	const struct ky_slices *s = &w->trace->slices;
	const uint64_t track = ky_pf_export_track(w, s->track[item->row]);
	const struct ky_flow_mark *marks;
	uint32_t count = 0;
	if (item->what == KY_WALK_END) {
		send_end(w, item, track);
		return;
	}
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE,
		      item->what == KY_WALK_BEGIN ? KY_PF_TYPE_SLICE_BEGIN : KY_PF_TYPE_INSTANT);
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TRACK_UUID, track);
	put_label(w, s->category[item->row], s->name[item->row]);
	put_args(w, s->args[item->row]);
	if (w->flow_marks.count) {
		marks = ky_flow_marks_of(&w->flow_marks, item->row, false, &count);
		put_flow_ids(w, marks, count);
	}
	ky_pf_export_send(w, KY_PF_EXPORT_EVENTS, KY_PF_TRACE_PACKET_TRACK_EVENT, item->ts);
	if (count)
		send_flows(w, item->row, false, track, item->ts);
}

void ky_pf_export_counter(void *self, const struct ky_walk_item *item)
{
	struct ky_pf_exporter *w = self;
	const uint64_t track = ky_pf_export_track(w, w->trace->counters.track[item->row]);
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_COUNTER);
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TRACK_UUID, track);
	ky_proto_double(&w->emit.body, KY_PF_TRACK_EVENT_DOUBLE_COUNTER_VALUE,
			w->trace->counters.value[item->row]);
	put_args(w, w->trace->counters.args[item->row]);
	ky_pf_export_send(w, KY_PF_EXPORT_EVENTS, KY_PF_TRACE_PACKET_TRACK_EVENT, item->ts);
}

static void put_loss_number(struct ky_pf_exporter *w, const char *name, uint32_t field,
			    uint64_t value)
{
	w->emit.part.used = 0;
	ky_proto_bytes(&w->emit.part, KY_PF_DEBUG_ANNOTATION_NAME, name, strlen(name));
	ky_proto_uint(&w->emit.part, field, value);
	ky_proto_message(&w->emit.body, KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS, &w->emit.part);
}

static void put_loss(struct ky_pf_exporter *w, const struct ky_missing *m)
{
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TYPE, KY_PF_TYPE_INSTANT);
	if (m->thread != KY_NONE)
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_EVENT_TRACK_UUID,
			      ky_pf_export_thread_uuid(w, m->thread));
	ky_proto_bytes(&w->emit.body, KY_PF_TRACK_EVENT_CATEGORIES, "kymo", 4);
	ky_proto_bytes(&w->emit.body, KY_PF_TRACK_EVENT_NAME, "events lost", 11);
	put_loss_number(w, "count", KY_PF_DEBUG_ANNOTATION_UINT_VALUE, m->count);
	if (m->cpu != KY_NONE)
		put_loss_number(w, "cpu", KY_PF_DEBUG_ANNOTATION_UINT_VALUE, m->cpu);
	if (m->ts == KY_TIME_NONE)
		put_loss_number(w, "untimed", KY_PF_DEBUG_ANNOTATION_BOOL_VALUE, true);
	if (*m->what) {
		w->emit.part.used = 0;
		ky_proto_bytes(&w->emit.part, KY_PF_DEBUG_ANNOTATION_NAME, "what", 4);
		ky_pf_emit_text(&w->emit, &w->emit.part, KY_PF_DEBUG_ANNOTATION_STRING_VALUE,
				(struct ky_text){m->what, (uint32_t)strlen(m->what)});
		ky_proto_message(&w->emit.body, KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS, &w->emit.part);
	}
}

/* Losses come first in the file, with their times in full. */
void ky_pf_export_losses(struct ky_pf_exporter *w)
{
	struct ky_missing m;
	for (uint32_t i = 0; ky_missing_at(w->trace, i, &m); i++) {
		const int64_t ts = m.ts < 0 ? w->trace->begin_ns : m.ts;
		if (!ky_selected_thread(w->selection, m.thread))
			continue;
		put_loss(w, &m);
		ky_pf_export_send(w, KY_PF_EXPORT_SAMPLES, KY_PF_TRACE_PACKET_TRACK_EVENT,
				  ts < 0 ? 0 : ts);
	}
}
