/* SPDX-License-Identifier: MIT */
/*
 * pftrace_legacy.c: track events in the legacy form, which is that of Chrome's JSON: a phase gives their kind.
 * Async events are identified by an id and its scope, and have tracks of their own.
 */
#include "formats/pftrace/pftrace_reader.h"

void ky_pf_legacy_parse(struct ky_pf_legacy *legacy, struct ky_proto_view message)
{
	*legacy = (struct ky_pf_legacy){0};
	KY_PROTO_EACH(field, message) {
		switch (field.id) {
		case KY_PF_LEGACY_EVENT_NAME_IID:
			legacy->name_iid = field.value;
			break;
		case KY_PF_LEGACY_EVENT_PHASE:
			legacy->phase = (int32_t)field.value;
			legacy->has_phase = true;
			break;
		case KY_PF_LEGACY_EVENT_DURATION_US:
			legacy->duration_us = (int64_t)field.value;
			break;
		case KY_PF_LEGACY_EVENT_UNSCOPED_ID:
		case KY_PF_LEGACY_EVENT_LOCAL_ID:
		case KY_PF_LEGACY_EVENT_GLOBAL_ID:
			legacy->id = field.value;
			legacy->id_kind =
				field.id == KY_PF_LEGACY_EVENT_UNSCOPED_ID ? KY_PF_UNSCOPED_ID
				: field.id == KY_PF_LEGACY_EVENT_LOCAL_ID  ? KY_PF_LOCAL_ID
									   : KY_PF_GLOBAL_ID;
			break;
		case KY_PF_LEGACY_EVENT_ID_SCOPE:
			legacy->id_scope = field.view;
			legacy->has_scope = true;
			break;
		case KY_PF_LEGACY_EVENT_BIND_ID:
			legacy->bind_id = field.value;
			legacy->has_bind_id = true;
			break;
		case KY_PF_LEGACY_EVENT_BIND_TO_ENCLOSING:
			legacy->bind_to_enclosing = field.value != 0;
			break;
		case KY_PF_LEGACY_EVENT_FLOW_DIRECTION:
			legacy->flow_direction = (uint32_t)field.value;
			break;
		case KY_PF_LEGACY_EVENT_INSTANT_EVENT_SCOPE:
			legacy->instant_scope = (uint32_t)field.value;
			break;
		case KY_PF_LEGACY_EVENT_PID_OVERRIDE:
			legacy->pid = (int32_t)field.value;
			legacy->has_pid = true;
			break;
		case KY_PF_LEGACY_EVENT_TID_OVERRIDE:
			legacy->tid = (int32_t)field.value;
			legacy->has_tid = true;
			break;
		default:
			break;
		}
	}
}

static void put_flow(struct ky_pf *pf, const struct ky_pf_event *event,
		     const struct ky_pf_legacy *legacy, uint32_t track, enum ky_flow_bind bind)
{
	if (legacy->has_bind_id) {
		if (legacy->flow_direction < KY_PF_FLOW_IN ||
		    legacy->flow_direction > KY_PF_FLOW_INOUT)
			ky_problem(pf->trace, "flow_without_direction", KY_ERROR, pf->at,
				   "a flow that goes neither in nor out");
		else
			ky_put_flow(pf->trace, event->ts, track,
				    legacy->flow_direction == KY_PF_FLOW_OUT  ? KY_FLOW_BEGIN
				    : legacy->flow_direction == KY_PF_FLOW_IN ? KY_FLOW_END
									      : KY_FLOW_STEP,
				    bind, legacy->bind_id);
	}
	ky_pf_event_flows(pf, event, track, bind);
}

/* Return the scope of an async id: the event's own, else the category, or the name for the oldest kind. */
static uint32_t scope_of(struct ky_pf *pf, const struct ky_pf_event *event,
			 const struct ky_pf_legacy *legacy, bool oldest)
{
	if (!legacy->has_scope)
		return oldest ? event->name : event->category;
	const char *category = ky_text_of(pf->trace, event->category);
	pf->text.bytes = 0;
	if (category)
		ky_buffer_add(&pf->text, category,
			      ky_strings_bytes(&pf->trace->strings, event->category));
	ky_buffer_add(&pf->text, ":", 1);
	ky_buffer_add(&pf->text, (const char *)legacy->id_scope.data, legacy->id_scope.bytes);
	return ky_pf_buffer_string(pf, &pf->text);
}

/* Return KY_NONE when the event does not identify its track. */
static uint32_t async_track(struct ky_pf *pf, const struct ky_pf_event *event,
			    const struct ky_pf_legacy *legacy)
{
	const bool oldest = legacy->phase == 'S' || legacy->phase == 'T' || legacy->phase == 'p' ||
			    legacy->phase == 'F';
	const bool local = legacy->id_kind == KY_PF_LOCAL_ID;
	if (legacy->id_kind == KY_PF_NO_ID) {
		ky_pf_event_error(pf, "an async event without an id");
		return KY_NONE;
	}
	if (local && event->process == KY_NONE) {
		ky_pf_event_error(pf, "a local id without a process");
		return KY_NONE;
	}
	struct ky_track_spec spec = {
		.kind = local ? KY_TRACK_PROCESS : KY_TRACK_GLOBAL,
		.flags = KY_TRACK_ASYNC,
		.owner = local ? event->process : KY_NONE,
		.category = scope_of(pf, event, legacy, oldest),
		.type = ky_string_z(pf->trace, local ? "legacy_async_process_slice"
						     : "legacy_async_global_slice"),
		.id = legacy->id,
	};
	const uint32_t track = ky_track(pf->trace, &spec);
	/* The track is named after its first event; the name does not identify it. */
	if (track < pf->trace->tracks.rows.count && !pf->trace->tracks.name[track])
		pf->trace->tracks.name[track] = event->name;
	return track;
}

static uint32_t instant_track(struct ky_pf *pf, const struct ky_pf_event *event,
			      const struct ky_pf_legacy *legacy)
{
	struct ky_track_spec spec = {.kind = KY_TRACK_GLOBAL, .owner = KY_NONE};
	if (legacy->instant_scope == KY_PF_SCOPE_GLOBAL) {
		spec.type = ky_string_z(pf->trace, "legacy_chrome_global_instants");
		return ky_track(pf->trace, &spec);
	}
	if (legacy->instant_scope == KY_PF_SCOPE_PROCESS) {
		if (event->process == KY_NONE) {
			ky_pf_event_error(pf, "an instant of a process without a process");
			return KY_NONE;
		}
		spec.kind = KY_TRACK_PROCESS;
		spec.owner = event->process;
		spec.type = ky_string_z(pf->trace, "chrome_process_instant");
		return ky_track(pf->trace, &spec);
	}
	if (event->thread == KY_NONE) {
		ky_pf_event_error(pf, "an instant of a thread without a thread");
		return KY_NONE;
	}
	return ky_pf_event_track(pf, event);
}

/* Return the track by the phase; KY_NONE when the event is an error, which is counted. */
static uint32_t track_of(struct ky_pf *pf, const struct ky_pf_event *event,
			 const struct ky_pf_legacy *legacy)
{
	switch (legacy->phase) {
	case 'b':
	case 'e':
	case 'n':
	case 'S':
	case 'T':
	case 'p':
	case 'F':
		return async_track(pf, event, legacy);
	case 'i':
	case 'I':
		return instant_track(pf, event, legacy);
	case 'B':
	case 'E':
	case 'X':
		if (event->thread == KY_NONE) {
			ky_pf_event_error(pf, "an event of a thread without a thread");
			return KY_NONE;
		}
		return ky_pf_event_track(pf, event);
	default:
		return ky_pf_event_track(pf, event);
	}
}

/* A flow event is identified by category, name and id. */
static void flow_event(struct ky_pf *pf, const struct ky_pf_event *event,
		       const struct ky_pf_legacy *legacy, uint32_t track)
{
	if (legacy->id_kind != KY_PF_UNSCOPED_ID) {
		ky_problem(pf->trace, "flow_invalid_id", KY_ERROR, pf->at, "a flow without an id");
		return;
	}
	const uint64_t key = ky_flow_key(pf->trace, legacy->id, event->category, event->name, 0);
	const enum ky_flow_step step = legacy->phase == 's'   ? KY_FLOW_BEGIN
				       : legacy->phase == 't' ? KY_FLOW_STEP
							      : KY_FLOW_END;
	const enum ky_flow_bind bind = legacy->phase == 'f' && !legacy->bind_to_enclosing
					       ? KY_BIND_NEXT
					       : KY_BIND_ENCLOSING;
	ky_put_flow(pf->trace, event->ts, track, step, bind, key);
}

/* Take names of threads and processes; the model has no place for other metadata. */
static void metadata_event(struct ky_pf *pf, const struct ky_pf_event *event)
{
	struct ky_proto_field annotation, value;
	const char *name = ky_text_of(pf->trace, event->name);
	if (!name || !ky_proto_find(event->all, KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS, &annotation) ||
	    !ky_proto_find(annotation.view, KY_PF_DEBUG_ANNOTATION_STRING_VALUE, &value) ||
	    !value.view.bytes)
		return;
	if (strcmp(name, "thread_name") == 0 && event->thread != KY_NONE)
		ky_thread_name(pf->trace, event->thread, ky_pf_string(pf, value.view),
			       KY_NAME_TRACE);
	else if (strcmp(name, "process_name") == 0 && event->process != KY_NONE)
		ky_process_name(pf->trace, event->process, ky_pf_string(pf, value.view),
				KY_NAME_KERNEL);
}

static void complete_event(struct ky_pf *pf, const struct ky_pf_event *event,
			   const struct ky_pf_legacy *legacy, uint32_t track)
{
	int64_t ns;
	if (legacy->duration_us < 0 || __builtin_mul_overflow(legacy->duration_us, 1000, &ns)) {
		ky_pf_event_error(pf, "a negative duration");
		return;
	}
	ky_put_complete(pf->trace, event->ts, ns, track, event->category, event->name,
			ky_pf_args_of_event(pf, event, 0));
	put_flow(pf, event, legacy, track, KY_BIND_LAST);
}

static void slice_event(struct ky_pf *pf, const struct ky_pf_event *event,
			const struct ky_pf_legacy *legacy, uint32_t track)
{
	const int phase = legacy->phase;
	const bool kept = phase == 'S' || phase == 'T' || phase == 'p' || phase == 'R';
	const uint32_t args = ky_pf_args_of_event(pf, event, kept ? phase : 0);
	switch (phase) {
	case 'B':
	case 'b':
	case 'S':
		ky_put_begin(pf->trace, event->ts, track, event->category, event->name, args);
		put_flow(pf, event, legacy, track, KY_BIND_LAST);
		break;
	case 'E':
	case 'e':
	case 'F':
		put_flow(pf, event, legacy, track, KY_BIND_ENCLOSING);
		ky_put_end(pf->trace, event->ts, track, event->category, event->name, args);
		break;
	default:
		ky_put_instant(pf->trace, event->ts, track, event->category, event->name, args);
		if (phase != 'T' && phase != 'p')
			put_flow(pf, event, legacy, track, KY_BIND_LAST);
	}
}

void ky_pf_legacy_event(struct ky_pf *pf, const struct ky_pf_event *event,
			const struct ky_pf_legacy *legacy)
{
	if (legacy->phase == 'M') {
		metadata_event(pf, event);
		return;
	}
	if (legacy->phase <= 0 || legacy->phase > 127 ||
	    !strchr("BEXstfiIRbSeFnTp", legacy->phase)) {
		ky_problem(pf->trace, "legacy_event_not_carried", KY_INFO, pf->at,
			   "a legacy event of phase %d, which is neither slice nor flow",
			   (int)legacy->phase);
		return;
	}
	const uint32_t track = track_of(pf, event, legacy);
	if (track == KY_NONE)
		return;
	if (strchr("stf", legacy->phase))
		flow_event(pf, event, legacy, track);
	else if (legacy->phase == 'X')
		complete_event(pf, event, legacy, track);
	else
		slice_event(pf, event, legacy, track);
}
