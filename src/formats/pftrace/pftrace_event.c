/* SPDX-License-Identifier: MIT */
/*
 * pftrace_event.c: track events. Most are the start or end of a slice, with an interned name, on the sequence's
 * own track: these cost one walk over their fields, two array look-ups and one put. That walk only notes rare
 * fields (arguments, flows, extra counters, several categories); another walk reads them.
 *
 * Counter values are scaled to their unit, and summed where the file has differences, which belong to one
 * sequence.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <stdio.h>

void ky_pf_event_error(struct ky_pf *pf, const char *what)
{
	ky_problem(pf->trace, "track_event_parser_errors", KY_ERROR, pf->at, "%s", what);
}

/* ---- fields ---- */

static void read_category(struct ky_pf_event *event, const struct ky_proto_field *field)
{
	struct ky_proto_items items = ky_proto_items(field, false);
	uint64_t iid;
	while (ky_proto_item(&items, &iid)) {
		event->category_iid = iid;
		event->categories++;
	}
}

static void read_rare_field(struct ky_pf_event *event, const struct ky_proto_field *field)
{
	switch (field->id) {
	case KY_PF_TRACK_EVENT_TIMESTAMP_DELTA_US:
		event->time_delta_us = (int64_t)field->value;
		event->fields |= KY_PF_HAS_TIME_DELTA;
		break;
	case KY_PF_TRACK_EVENT_THREAD_TIME_DELTA_US:
	case KY_PF_TRACK_EVENT_THREAD_TIME_ABSOLUTE_US:
		event->thread_time_us = (int64_t)field->value;
		event->fields |= field->id == KY_PF_TRACK_EVENT_THREAD_TIME_DELTA_US
					 ? KY_PF_HAS_THREAD_TIME_DELTA
					 : KY_PF_HAS_THREAD_TIME;
		break;
	case KY_PF_TRACK_EVENT_THREAD_INSTRUCTION_COUNT_DELTA:
	case KY_PF_TRACK_EVENT_THREAD_INSTRUCTION_COUNT_ABSOLUTE:
		event->instructions = (int64_t)field->value;
		event->fields |= field->id == KY_PF_TRACK_EVENT_THREAD_INSTRUCTION_COUNT_DELTA
					 ? KY_PF_HAS_INSTRUCTIONS_DELTA
					 : KY_PF_HAS_INSTRUCTIONS;
		break;
	case KY_PF_TRACK_EVENT_TIMESTAMP_ABSOLUTE_US:
		event->time_us = (int64_t)field->value;
		event->fields |= field->value ? KY_PF_HAS_TIME : 0;
		break;
	case KY_PF_TRACK_EVENT_CATEGORIES:
		event->category_text = field->view;
		event->categories++;
		break;
	case KY_PF_TRACK_EVENT_EXTRA_COUNTER_VALUES:
	case KY_PF_TRACK_EVENT_EXTRA_COUNTER_TRACK_UUIDS:
	case KY_PF_TRACK_EVENT_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS:
	case KY_PF_TRACK_EVENT_EXTRA_DOUBLE_COUNTER_VALUES:
		event->fields |= KY_PF_HAS_EXTRA;
		break;
	case KY_PF_TRACK_EVENT_SOURCE_LOCATION_IID:
		event->location_iid = field->value;
		event->fields |= KY_PF_HAS_LOCATION;
		break;
	case KY_PF_TRACK_EVENT_FLOW_IDS_OLD:
	case KY_PF_TRACK_EVENT_TERMINATING_FLOW_IDS_OLD:
	case KY_PF_TRACK_EVENT_FLOW_IDS:
	case KY_PF_TRACK_EVENT_TERMINATING_FLOW_IDS:
		event->fields |= KY_PF_HAS_FLOWS;
		break;
	default:
		event->fields |= KY_PF_HAS_ARGS;
	}
}

static void read_fields(struct ky_pf_event *event)
{
	KY_PROTO_EACH(field, event->all) {
		switch (field.id) {
		case KY_PF_TRACK_EVENT_CATEGORY_IIDS:
			read_category(event, &field);
			break;
		case KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS:
			event->fields |= KY_PF_HAS_ARGS;
			break;
		case KY_PF_TRACK_EVENT_LEGACY_EVENT:
			event->legacy = field.view;
			event->fields |= KY_PF_HAS_LEGACY;
			break;
		case KY_PF_TRACK_EVENT_TYPE:
			event->type = (uint32_t)field.value;
			event->fields |= KY_PF_HAS_TYPE;
			break;
		case KY_PF_TRACK_EVENT_NAME_IID:
			event->name_iid = field.value;
			break;
		case KY_PF_TRACK_EVENT_TRACK_UUID:
			event->track_uuid = field.value;
			event->fields |= KY_PF_HAS_TRACK;
			break;
		case KY_PF_TRACK_EVENT_NAME:
			event->name_text = field.view;
			event->fields |= KY_PF_HAS_NAME;
			break;
		case KY_PF_TRACK_EVENT_COUNTER_VALUE:
			event->counter_value = field.value;
			event->fields |= KY_PF_HAS_COUNTER;
			break;
		case KY_PF_TRACK_EVENT_DOUBLE_COUNTER_VALUE:
			event->counter_value = field.value;
			event->fields |= KY_PF_HAS_REAL_COUNTER;
			break;
		default:
			read_rare_field(event, &field);
		}
	}
}

/* ---- names and categories ---- */

static void append_category(struct ky_pf *pf, const char *text, size_t bytes)
{
	if (pf->text.bytes)
		ky_buffer_add(&pf->text, ",", 1);
	ky_buffer_add(&pf->text, text, bytes);
}

/* Join several categories, interned ones first. */
static uint32_t join_categories(struct ky_pf *pf, const struct ky_pf_event *event)
{
	struct ky_proto_field field;
	pf->text.bytes = 0;
	for (struct ky_proto_in in = ky_proto_open(event->all); ky_proto_next(&in, &field);) {
		struct ky_proto_items items = ky_proto_items(&field, false);
		uint64_t iid;
		while (field.id == KY_PF_TRACK_EVENT_CATEGORY_IIDS && ky_proto_item(&items, &iid)) {
			const uint32_t text = ky_pf_text(pf->sequence, KY_PF_CATEGORIES, iid);
			if (text)
				append_category(pf, ky_text_of(pf->trace, text),
						ky_strings_bytes(&pf->trace->strings, text));
		}
	}
	for (struct ky_proto_in in = ky_proto_open(event->all); ky_proto_next(&in, &field);)
		if (field.id == KY_PF_TRACK_EVENT_CATEGORIES && field.wire == KY_PROTO_BYTES)
			append_category(pf, (const char *)field.view.data, field.view.bytes);
	return pf->text.bytes ? ky_pf_buffer_string(pf, &pf->text) : 0;
}

static uint32_t category_of(struct ky_pf *pf, const struct ky_pf_event *event)
{
	char unknown[40];
	if (event->categories == 0)
		return 0;
	if (event->categories > 1)
		return join_categories(pf, event);
	if (event->category_text.data)
		return ky_pf_string(pf, event->category_text);
	const uint32_t category = ky_pf_text(pf->sequence, KY_PF_CATEGORIES, event->category_iid);
	if (category)
		return category;
	snprintf(unknown, sizeof(unknown), "unknown(%llu)",
		 (unsigned long long)event->category_iid);
	return ky_string_z(pf->trace, unknown);
}

static uint32_t name_of(struct ky_pf *pf, const struct ky_pf_event *event,
			const struct ky_pf_legacy *legacy)
{
	const uint64_t iid = event->name_iid ? event->name_iid : legacy ? legacy->name_iid : 0;
	if (iid)
		return ky_pf_text(pf->sequence, KY_PF_NAMES, iid);
	return event->fields & KY_PF_HAS_NAME ? ky_pf_string(pf, event->name_text) : 0;
}

/* ---- times ---- */

static int64_t plus_us(int64_t ns, int64_t us)
{
	int64_t more, sum;
	if (__builtin_mul_overflow(us, 1000, &more) || __builtin_add_overflow(ns, more, &sum))
		return us < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

/* Set the event's time; false when it has none that converts. */
static bool time_of(struct ky_pf *pf, const struct ky_pf_packet *packet, struct ky_pf_event *event)
{
	if (event->fields & (KY_PF_HAS_TIME_DELTA | KY_PF_HAS_TIME)) {
		int64_t ns = plus_us(0, event->time_us);
		if (event->fields & KY_PF_HAS_TIME_DELTA) {
			if (!pf->sequence->times_valid) {
				ky_problem(
					pf->trace,
					"track_event_skipped_timestamp_delta_without_valid_state",
					KY_DATA_LOSS, pf->at,
					"a time difference before any thread descriptor");
				return false;
			}
			ns = plus_us(pf->sequence->time_ns, event->time_delta_us);
			pf->sequence->time_ns = ns;
		}
		event->ts = ns < 0 ? ns : ky_pf_clock_time(pf, KY_CLOCK_MONOTONIC, ns);
		if (ns >= 0 && event->ts > pf->latest_ns)
			pf->latest_ns = event->ts;
	} else if (!packet->has_timestamp) {
		ky_problem(pf->trace, "track_event_missing_timestamp", KY_ERROR, pf->at,
			   "a track event has no timestamp");
		return false;
	} else if (!ky_pf_clock_packet_time(pf, packet, &event->ts)) {
		return false;
	}
	if (event->ts >= 0)
		return true;
	ky_problem(pf->trace, "track_event_invalid_timestamp", KY_ERROR, pf->at,
		   "the timestamp of a track event is negative");
	return false;
}

/* Put legacy thread times and instruction counts as counters; false when they are unknown. */
static bool thread_counters(struct ky_pf *pf, const struct ky_pf_event *event)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
	struct ky_trace *trace = pf->trace;
	const uint32_t fields = event->fields;
	const uint32_t deltas = KY_PF_HAS_THREAD_TIME_DELTA | KY_PF_HAS_INSTRUCTIONS_DELTA;
	int64_t time = plus_us(0, event->thread_time_us), instructions = event->instructions;
	if ((fields & deltas) && !sequence->times_valid) {
		ky_problem(trace, "track_event_skipped_thread_time_delta_without_valid_state",
			   KY_DATA_LOSS, pf->at, "a difference before any thread descriptor");
		return false;
	}
	if (fields & KY_PF_HAS_THREAD_TIME_DELTA)
		time = sequence->thread_time_ns =
			plus_us(sequence->thread_time_ns, event->thread_time_us);
	if (fields & KY_PF_HAS_INSTRUCTIONS_DELTA)
		instructions = sequence->instructions =
			(int64_t)((uint64_t)sequence->instructions + (uint64_t)event->instructions);
	if (event->thread == KY_NONE)
		return true;
	if (fields & (KY_PF_HAS_THREAD_TIME_DELTA | KY_PF_HAS_THREAD_TIME))
		ky_put_counter(trace, event->ts,
			       ky_track_counter(trace, KY_TRACK_THREAD_COUNTER, event->thread,
						pf->words[KY_PF_W_THREAD_TIME]),
			       (double)time);
	if (fields & (KY_PF_HAS_INSTRUCTIONS_DELTA | KY_PF_HAS_INSTRUCTIONS))
		ky_put_counter(trace, event->ts,
			       ky_track_counter(trace, KY_TRACK_THREAD_COUNTER, event->thread,
						pf->words[KY_PF_W_INSTRUCTIONS]),
			       (double)instructions);
	return true;
}

/* ---- counters ---- */

#define EXTRA_MAX 8u /* extra values of one event */

/* Extra values of an event, and the uuids of their tracks. */
struct extra_kind {
	uint64_t uuids[EXTRA_MAX];
	uint32_t uuids_count;
	double values[EXTRA_MAX];
	uint32_t values_count;
};

struct extra {
	struct extra_kind ints, reals;
};

/* Scale a counter's value to its unit, and sum it when the file has differences. */
static bool counter_value(struct ky_pf *pf, uint64_t uuid, double *value)
{
	const uint32_t row = ky_pf_track_row(pf, uuid);
	if (row == KY_NONE || !pf->tracks[row].counter)
		return false;
	if (pf->tracks[row].unit_multiplier > 0)
		*value *= (double)pf->tracks[row].unit_multiplier;
	if (!pf->tracks[row].incremental)
		return true;
	bool made;
	uint32_t *sum =
		KY_PF_GROW(pf, values) ? ky_u64_map_add(&pf->sequence->values, uuid, &made) : NULL;
	if (!sum)
		return false;
	if (made) {
		*sum = pf->values_count;
		pf->values[pf->values_count++] = 0;
	}
	*value = pf->values[*sum] += *value;
	return true;
}

static void read_extra(const struct ky_pf_event *event, bool real, struct extra_kind *extra)
{
	uint64_t item;
	*extra = (struct extra_kind){0};
	KY_PROTO_EACH(field, event->all) {
		struct ky_proto_items items = ky_proto_items(
			&field, field.id == KY_PF_TRACK_EVENT_EXTRA_DOUBLE_COUNTER_VALUES);
		while (field.id == (real ? KY_PF_TRACK_EVENT_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS
					 : KY_PF_TRACK_EVENT_EXTRA_COUNTER_TRACK_UUIDS) &&
		       ky_proto_item(&items, &item)) {
			if (extra->uuids_count < EXTRA_MAX)
				extra->uuids[extra->uuids_count] = item;
			extra->uuids_count++;
		}
		while (field.id == (real ? KY_PF_TRACK_EVENT_EXTRA_DOUBLE_COUNTER_VALUES
					 : KY_PF_TRACK_EVENT_EXTRA_COUNTER_VALUES) &&
		       ky_proto_item(&items, &item)) {
			if (extra->values_count < EXTRA_MAX)
				extra->values[extra->values_count] =
					real ? ky_proto_as_double(item) : (double)(int64_t)item;
			extra->values_count++;
		}
	}
}

static bool extra_error(struct ky_pf *pf, const char *name)
{
	ky_problem(pf->trace, name, KY_ERROR, pf->at,
		   "extra counters of an event do not fit their tracks: it is left out");
	return false;
}

/* Scale and sum the values; false leaves the whole event out, as Perfetto does. */
static bool check_extra(struct ky_pf *pf, struct extra_kind *extra,
			const struct ky_pf_uuids *defaults, uint32_t room)
{
	if (!extra->values_count)
		return true;
	if (!extra->uuids_count) {
		extra->uuids_count = defaults->count;
		for (uint32_t i = 0; i < defaults->count && i < EXTRA_MAX; i++)
			extra->uuids[i] = defaults->items[i];
	}
	if (!extra->uuids_count)
		return extra_error(pf, "track_event_extra_counter_missing_track_uuids");
	for (uint32_t i = 0; i < extra->values_count; i++) {
		if (i >= extra->uuids_count)
			return extra_error(pf, "track_event_extra_counter_track_uuid_mismatch");
		if (i >= room)
			return extra_error(pf, "track_event_extra_counter_exceeds_max");
		if (!extra->uuids[i])
			return extra_error(pf, "track_event_extra_counter_track_uuid_mismatch");
		if (!counter_value(pf, extra->uuids[i], &extra->values[i]))
			return extra_error(pf, "track_event_extra_counter_invalid_track");
	}
	return true;
}

static void put_extra(struct ky_pf *pf, const struct ky_pf_event *event,
		      const struct extra_kind *extra)
{
	for (uint32_t i = 0; i < extra->values_count; i++) {
		struct ky_pf_track *track = ky_pf_track_resolve(pf, extra->uuids[i]);
		if (track)
			ky_put_counter(pf->trace, event->ts, ky_pf_track_make(pf, track, 0),
				       extra->values[i]);
	}
}

static bool own_value(struct ky_pf *pf, const struct ky_pf_event *event, double *value)
{
	const bool own = event->fields & KY_PF_HAS_TRACK;
	*value = event->fields & KY_PF_HAS_COUNTER ? (double)(int64_t)event->counter_value
						   : ky_proto_as_double(event->counter_value);
	if (!own && !pf->sequence->has_track_uuid) {
		ky_problem(pf->trace, "track_event_counter_missing_track_uuid", KY_ERROR, pf->at,
			   "a counter without a track");
		return false;
	}
	if (!(event->fields & (KY_PF_HAS_COUNTER | KY_PF_HAS_REAL_COUNTER))) {
		ky_problem(pf->trace, "track_event_counter_missing_value", KY_ERROR, pf->at,
			   "a counter without a value");
		return false;
	}
	if (counter_value(pf, own ? event->track_uuid : pf->sequence->track_uuid, value))
		return true;
	ky_problem(pf->trace, "track_event_counter_invalid_track_uuid", KY_ERROR, pf->at,
		   "a counter on a track that is not a counter track");
	return false;
}

static bool extra_values(struct ky_pf *pf, const struct ky_pf_event *event, struct extra *extra)
{
	read_extra(event, false, &extra->ints);
	read_extra(event, true, &extra->reals);
	return check_extra(pf, &extra->ints, &pf->sequence->extra_counters, EXTRA_MAX) &&
	       check_extra(pf, &extra->reals, &pf->sequence->extra_real_counters,
			   EXTRA_MAX - extra->ints.values_count);
}

/* ---- flows ---- */

void ky_pf_event_flows(struct ky_pf *pf, const struct ky_pf_event *event, uint32_t track,
		       enum ky_flow_bind bind)
{
	uint64_t id;
	if (!(event->fields & KY_PF_HAS_FLOWS))
		return;
	KY_PROTO_EACH(field, event->all) {
		const bool ends = field.id == KY_PF_TRACK_EVENT_TERMINATING_FLOW_IDS_OLD ||
				  field.id == KY_PF_TRACK_EVENT_TERMINATING_FLOW_IDS;
		if (!ends && field.id != KY_PF_TRACK_EVENT_FLOW_IDS_OLD &&
		    field.id != KY_PF_TRACK_EVENT_FLOW_IDS)
			continue;
		struct ky_proto_items items = ky_proto_items(
			&field, field.id == KY_PF_TRACK_EVENT_FLOW_IDS ||
					field.id == KY_PF_TRACK_EVENT_TERMINATING_FLOW_IDS);
		while (ky_proto_item(&items, &id))
			ky_put_flow(pf->trace, event->ts, track,
				    ends ? KY_FLOW_ANY_END : KY_FLOW_ANY, bind, id);
	}
}

/* ---- events by type ---- */

static void put_counter(struct ky_pf *pf, const struct ky_pf_event *event, double value)
{
	ky_put_counter_args(pf->trace, event->ts, ky_pf_event_track(pf, event), value,
			    ky_pf_args_of_event(pf, event, 0));
}

/* A state lasts until the next one; a nameless one means no state. */
static void put_state(struct ky_pf *pf, const struct ky_pf_event *event)
{
	if (!event->track || !event->track->state) {
		ky_pf_event_error(pf, "a state on a track that is not a state track");
		return;
	}
	const uint32_t track = ky_pf_event_track(pf, event);
	if (event->track->state_open)
		ky_put_end(pf->trace, event->ts, track, 0, 0, 0);
	event->track->state_open = event->name != 0;
	if (event->name)
		ky_put_begin(pf->trace, event->ts, track, event->category, event->name,
			     ky_pf_args_of_event(pf, event, 0));
}

static void put_slice(struct ky_pf *pf, const struct ky_pf_event *event)
{
	struct ky_trace *trace = pf->trace;
	const uint32_t track = ky_pf_event_track(pf, event);
	const uint32_t args = ky_pf_args_of_event(pf, event, 0);
	switch (event->type) {
	case KY_PF_TYPE_SLICE_BEGIN:
		ky_put_begin(trace, event->ts, track, event->category, event->name, args);
		ky_pf_event_flows(pf, event, track, KY_BIND_LAST);
		break;
	case KY_PF_TYPE_SLICE_END:
		ky_pf_event_flows(pf, event, track, KY_BIND_ENCLOSING);
		ky_put_end(trace, event->ts, track, event->category, event->name, args);
		break;
	case KY_PF_TYPE_INSTANT:
		if (ky_is_loss_marker(trace, event->category, event->name)) {
			pf->lost_marked += ky_put_loss_marker(trace, event->ts,
							      ky_track_thread(trace, track), args);
			break;
		}
		ky_put_instant(trace, event->ts, track, event->category, event->name, args);
		ky_pf_event_flows(pf, event, track, KY_BIND_LAST);
		break;
	default:
		ky_pf_event_error(pf, "a track event of an unknown type");
	}
}

/* ---- whose the event is ---- */

uint32_t ky_pf_event_track(struct ky_pf *pf, const struct ky_pf_event *event)
{
	if (event->track)
		return event->track->track != KY_NONE
			       ? event->track->track
			       : ky_pf_track_make(pf, event->track, event->name);
	return ky_track_of_thread(pf->trace, event->thread);
}

static bool find_track(struct ky_pf *pf, struct ky_pf_event *event, uint64_t uuid)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
	if (sequence->track_cached != KY_NONE && sequence->track_cached_uuid == uuid) {
		event->track = &pf->tracks[sequence->track_cached];
	} else {
		event->track = ky_pf_track_resolve(pf, uuid);
		if (!event->track) {
			ky_pf_event_error(pf, "the track of an event cannot be resolved");
			return false;
		}
		sequence->track_cached = (uint32_t)(event->track - pf->tracks);
		sequence->track_cached_uuid = uuid;
	}
	event->thread = event->track->scope == KY_PF_THREAD ? event->track->owner : KY_NONE;
	event->process = ky_pf_track_process(pf, event->track);
	return true;
}

/* Legacy events belong to the thread that their sequence described, or that they name. */
static bool find_legacy_thread(struct ky_pf *pf, struct ky_pf_event *event,
			       const struct ky_pf_legacy *legacy)
{
	int64_t pid = pf->sequence->pid, tid = pf->sequence->tid;
	if (legacy && legacy->has_pid) {
		pid = legacy->pid;
		tid = ky_pf_track_synthetic_tid(pid, -1);
	}
	if (legacy && legacy->has_tid) {
		const bool synthetic = pf->sequence->tid > UINT32_MAX;
		tid = synthetic ? ky_pf_track_synthetic_tid(pid, legacy->tid)
				: (uint32_t)legacy->tid;
	}
	if (!pid || !tid) {
		ky_pf_event_error(pf, "pid and tid 0 are the kernel's idle task");
		return false;
	}
	event->thread = ky_thread(pf->trace, pid, tid);
	if (event->thread < pf->trace->threads.rows.count)
		event->process = pf->trace->threads.process[event->thread];
	return true;
}

static bool find_owner(struct ky_pf *pf, struct ky_pf_event *event,
		       const struct ky_pf_legacy *legacy)
{
	const bool own = event->fields & KY_PF_HAS_TRACK;
	const uint64_t uuid = own ? event->track_uuid : pf->sequence->track_uuid;
	event->thread = event->process = KY_NONE;
	if (uuid)
		return find_track(pf, event, uuid);
	bool of_thread = (!own || !(event->fields & KY_PF_HAS_TYPE)) && pf->sequence->has_thread;
	if (legacy)
		of_thread |= legacy->has_pid || (legacy->has_tid && pf->sequence->has_thread);
	if (of_thread)
		return find_legacy_thread(pf, event, legacy);
	return find_track(pf, event, 0);
}

/* ---- all together ---- */

static void put_event(struct ky_pf *pf, struct ky_pf_event *event,
		      const struct ky_pf_legacy *legacy, double value)
{
	event->category = category_of(pf, event);
	event->name = name_of(pf, event, legacy);
	if (event->type == KY_PF_TYPE_COUNTER)
		put_counter(pf, event, value);
	else if (event->type == KY_PF_TYPE_STATE)
		put_state(pf, event);
	else if (legacy && legacy->has_phase)
		ky_pf_legacy_event(pf, event, legacy);
	else
		put_slice(pf, event);
}

void ky_pf_event_read(struct ky_pf *pf, const struct ky_pf_packet *packet,
		      struct ky_proto_view message)
{
	struct ky_pf_event event = {.all = message};
	struct ky_pf_legacy legacy;
	struct extra extra;
	double value = 0;
	read_fields(&event);
	const bool is_legacy = event.fields & KY_PF_HAS_LEGACY;
	if (is_legacy)
		ky_pf_legacy_parse(&legacy, event.legacy);
	if (!time_of(pf, packet, &event))
		return;
	if (event.type == KY_PF_TYPE_COUNTER && !own_value(pf, &event, &value))
		return;
	const bool has_extra = event.fields & KY_PF_HAS_EXTRA;
	if (has_extra && !extra_values(pf, &event, &extra))
		return;
	if (!event.type && !(is_legacy && legacy.has_phase)) {
		ky_pf_event_error(pf, "a track event without type or phase");
		return;
	}
	if (!find_owner(pf, &event, is_legacy ? &legacy : NULL) || !thread_counters(pf, &event))
		return;
	if (has_extra) {
		put_extra(pf, &event, &extra.ints);
		put_extra(pf, &event, &extra.reals);
	}
	put_event(pf, &event, is_legacy ? &legacy : NULL, value);
}
