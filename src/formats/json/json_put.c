/* SPDX-License-Identifier: MIT */
/*
 * json_put.c: an event's fields into the trace, by its phase, as Perfetto's importer does it
 * (docs/formats/json.md). Phases that it knows nothing of are counted and left out.
 */
#include "base/chars.h"
#include "formats/json/json_reader.h"

#include <errno.h>

void ky_json_fail(struct ky_json *json, const struct ky_json_event *event, const char *what)
{
	ky_problem(json->trace, "json_parser_failure", KY_ERROR, event->position,
		   "event of phase '%c': %s", event->phase, what);
}

int64_t ky_json_pid(int64_t pid)
{
	return pid < 0 || pid > UINT32_MAX ? 0 : pid;
}

static struct ky_json_thread *thread_slot(struct ky_json *json, const struct ky_json_event *event)
{
	const int64_t pid = ky_json_pid(event->pid);
	int64_t tid = ky_json_pid(event->tid);

	if (tid == 0 && pid != 0)
		tid = pid;
	const uint64_t mixed = ((uint64_t)pid << 32 ^ (uint64_t)tid) * 0x9e3779b97f4a7c15u;
	struct ky_json_thread *slot = &json->threads[(mixed >> 40) % KY_JSON_THREADS];
	if (!slot->used || slot->pid != pid || slot->tid != tid) {
		*slot = (struct ky_json_thread){pid, tid, ky_thread(json->trace, pid, tid), KY_NONE,
						true};
		if (event->pid_text)
			ky_process_name(json->trace, ky_process(json->trace, pid), event->pid_text,
					KY_NAME_KERNEL_OTHER);
		if (event->tid_text)
			ky_thread_name(json->trace, slot->thread, event->tid_text,
				       KY_NAME_KERNEL_OTHER);
	}
	return slot;
}

uint32_t ky_json_thread_of(struct ky_json *json, const struct ky_json_event *event)
{
	return thread_slot(json, event)->thread;
}

static uint32_t track_of(struct ky_json *json, const struct ky_json_event *event)
{
	struct ky_json_thread *slot = thread_slot(json, event);
	if (slot->track == KY_NONE)
		slot->track = ky_track_of_thread(json->trace, slot->thread);
	return slot->track;
}

static uint32_t process_of(struct ky_json *json, const struct ky_json_event *event)
{
	return ky_process(json->trace, ky_json_pid(event->pid));
}

static uint32_t args_of(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	return event->args ? ky_json_args(json, event->args, end, event->position) : 0;
}

static uint32_t name_of(struct ky_json *json, const struct ky_json_event *event)
{
	return event->name ? event->name : json->no_name;
}

/* Get an id of a flow: strings are hexadecimal, with or without 0x. */
static bool flow_id(const struct ky_json_id *id, uint64_t *number)
{
	const char *at = (const char *)id->at, *end = at + id->bytes;
	struct ky_json_number value;

	if (!id->string) {
		if (!ky_json_number_text(id->at, id->bytes, &value))
			return false;
		*number = value.integer                      ? (uint64_t)value.i
			  : value.d >= 0 && value.d < 1.8e19 ? (uint64_t)value.d
							     : 0;
		return true;
	}
	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	return ky_chars_hex(at, end, number) == end;
}

/* bind_id with flow_in and flow_out on a slice that was just put. */
static void put_bound_flow(struct ky_json *json, const struct ky_json_event *event, uint32_t track)
{
	struct ky_trace *trace = json->trace;
	const bool in = event->has & KY_JSON_FLOW_IN, out = event->has & KY_JSON_FLOW_OUT;
	uint64_t id;

	if (!flow_id(&event->bind_id, &id)) {
		ky_problem(trace, "flow_invalid_id", KY_ERROR, event->position,
			   "bind_id is no number and no hexadecimal string");
		return;
	}
	if (!in && !out) {
		ky_problem(trace, "flow_without_direction", KY_ERROR, event->position,
			   "bind_id with neither flow_in nor flow_out");
		return;
	}
	const enum ky_flow_step step = !in ? KY_FLOW_BEGIN : out ? KY_FLOW_STEP : KY_FLOW_END;
	const uint64_t key = ky_flow_key(trace, id, 0, 0, 2);
	if (event->phase == KY_JSON_PHASE_COMPLETE && event->dur > 0)
		ky_put_flow_longest(trace, event->ts, event->dur, track, step, key);
	else
		ky_put_flow(trace, event->ts, track, step, KY_BIND_LAST, key);
}

static void put_begin(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	const uint32_t track = track_of(json, event);
	const uint32_t args = args_of(json, event, end);
	ky_put_begin(json->trace, event->ts, track, event->category, name_of(json, event), args);
	if (event->has & KY_JSON_HAS_BIND_ID)
		put_bound_flow(json, event, track);
}

static void put_end(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	const uint32_t track = track_of(json, event);
	const uint32_t args = args_of(json, event, end);
	if (json->complete_seen)
		ky_put_end_first(json->trace, event->ts, track, event->category, event->name, args);
	else
		ky_put_end(json->trace, event->ts, track, event->category, event->name, args);
}

static void put_complete(struct ky_json *json, const struct ky_json_event *event,
			 const uint8_t *end)
{
	const uint32_t track = track_of(json, event);

	json->complete_seen = true;
	if (!(event->has & KY_JSON_HAS_DUR)) {
		ky_json_fail(json, event, "it has no dur");
		return;
	}
	const uint32_t args = args_of(json, event, end);
	/* Without a duration it keeps its place among the events of its time. */
	if (event->dur <= 0)
		ky_put_complete(json->trace, event->ts, event->dur, track, event->category,
				name_of(json, event), args);
	else
		ky_put_complete_longest(json->trace, event->ts, event->dur, track, event->category,
					name_of(json, event), args);
	if (event->has & KY_JSON_HAS_BIND_ID)
		put_bound_flow(json, event, track);
}

static void put_loss(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	const bool of_thread = event->scope != KY_JSON_SCOPE_GLOBAL;
	json->lost_marked += ky_put_loss_marker(
		json->trace, event->ts, of_thread ? ky_json_thread_of(json, event) : KY_NONE,
		args_of(json, event, end));
}

static void put_instant(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	struct ky_trace *trace = json->trace;
	struct ky_track_spec spec = {.kind = KY_TRACK_GLOBAL, .owner = KY_NONE};
	uint32_t track, name = event->name;

	if (ky_is_loss_marker(trace, event->category, event->name)) {
		put_loss(json, event, end);
		return;
	}
	if (event->scope == KY_JSON_SCOPE_GLOBAL) {
		spec.type = ky_string_z(trace, "legacy_chrome_global_instants");
		track = ky_track(trace, &spec);
	} else if (event->scope == KY_JSON_SCOPE_PROCESS) {
		if (!(event->has & KY_JSON_HAS_PID)) {
			ky_json_fail(json, event, "an instant of a process without pid");
			return;
		}
		spec.kind = KY_TRACK_PROCESS;
		spec.owner = process_of(json, event);
		spec.type = ky_string_z(trace, "chrome_process_instant");
		track = ky_track(trace, &spec);
	} else {
		if (!(event->has & KY_JSON_HAS_TID)) {
			ky_json_fail(json, event, "an instant of a thread without tid");
			return;
		}
		track = track_of(json, event);
		name = name_of(json, event);
	}
	ky_put_instant(trace, event->ts, track, event->category, name, args_of(json, event, end));
}

/* Get the id of an asynchronous event, from id or a member of id2; false without one. */
static bool async_id(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end,
		     struct ky_json_id *id, bool *local)
{
	*local = false;
	*id = event->id;
	if ((event->has & KY_JSON_HAS_ID) && id->bytes)
		return true;
	if (!event->id2 || ky_json_tree_parse(&json->tree, event->id2, end) != 0)
		return false;
	uint32_t node = ky_json_tree_get(&json->tree, 0, "global");
	if (!node) {
		node = ky_json_tree_get(&json->tree, 0, "local");
		*local = true;
	}
	if (!node || json->tree.nodes[node].bytes == 0)
		return false;
	const struct ky_json_node *found = &json->tree.nodes[node];
	*id = (struct ky_json_id){json->tree.text + found->at, found->bytes,
				  found->type == KY_JSON_STRING};
	return true;
}

/* Return the track of a category and an id; its name is that of the first event. */
static uint32_t async_track(struct ky_json *json, const struct ky_json_event *event,
			    const struct ky_json_id *id, bool local)
{
	struct ky_trace *trace = json->trace;
	const uint64_t owner = local ? (uint64_t)process_of(json, event) + 1 : 0;
	bool made;
	uint64_t *known = ky_pair_map_add(&json->async_tracks, ky_json_hash(id->at, id->bytes),
					  owner << 32 | event->category, &made);
	uint64_t number;

	if (!known) {
		trace->error = -ENOMEM;
		return 0;
	}
	if (!made)
		return (uint32_t)*known;
	const struct ky_track_spec spec = {
		.kind = local ? KY_TRACK_PROCESS : KY_TRACK_GLOBAL,
		.flags = KY_TRACK_ASYNC,
		.owner = local ? process_of(json, event) : KY_NONE,
		.name = event->name,
		.type = ky_string_z(trace, local ? "legacy_async_process_slice"
						 : "legacy_async_global_slice"),
		.id = flow_id(id, &number) ? number : ky_json_hash(id->at, id->bytes),
	};
	*known = ky_track_new(trace, &spec);
	return (uint32_t)*known;
}

static void put_async(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	struct ky_trace *trace = json->trace;
	struct ky_json_id id;
	bool local;

	if (!(event->has & KY_JSON_HAS_PID) || !async_id(json, event, end, &id, &local)) {
		ky_json_fail(json, event, "an asynchronous event needs a pid and an id");
		return;
	}
	const uint32_t track = async_track(json, event, &id, local);
	const uint32_t args = args_of(json, event, end);
	(void)ky_json_thread_of(json, event);
	if (event->phase == KY_JSON_PHASE_ASYNC_BEGIN)
		ky_put_begin(trace, event->ts, track, event->category, name_of(json, event), args);
	else if (event->phase == KY_JSON_PHASE_ASYNC_INSTANT)
		ky_put_instant(trace, event->ts, track, event->category, event->name, args);
	else if (json->complete_seen)
		ky_put_end_first(trace, event->ts, track, event->category, event->name, args);
	else
		ky_put_end(trace, event->ts, track, event->category, event->name, args);
	if (event->phase != KY_JSON_PHASE_ASYNC_END && (event->has & KY_JSON_HAS_BIND_ID))
		put_bound_flow(json, event, track);
}

static void put_flow(struct ky_json *json, const struct ky_json_event *event)
{
	struct ky_trace *trace = json->trace;
	const uint32_t track = track_of(json, event);
	uint64_t id;

	if (!(event->has & KY_JSON_HAS_ID) || !flow_id(&event->id, &id)) {
		ky_problem(trace, "flow_invalid_id", KY_ERROR, event->position,
			   "a flow without an id that is a number or a hexadecimal string");
		return;
	}
	const uint64_t key = ky_flow_key(trace, id, event->category, event->name, 1);
	enum ky_flow_bind bind = KY_BIND_ENCLOSING;
	enum ky_flow_step step =
		event->phase == KY_JSON_PHASE_FLOW_BEGIN ? KY_FLOW_BEGIN : KY_FLOW_STEP;
	if (event->phase == KY_JSON_PHASE_FLOW_END) {
		step = KY_FLOW_END;
		if (!(event->has & KY_JSON_BIND_ENCLOSING))
			bind = KY_BIND_NEXT;
	}
	ky_put_flow(trace, event->ts, track, step, bind, key);
}

static void put_other(struct ky_json *json, const struct ky_json_event *event)
{
	(void)ky_json_thread_of(json, event);
	if (strchr(KY_JSON_PHASES_ASYNC_OLD, event->phase))
		ky_problem(json->trace, "json_legacy_async_ignored", KY_INFO, event->position,
			   "phase '%c': asynchronous events of the old kind are left out",
			   event->phase);
	else if (event->phase == KY_JSON_PHASE_OBJECT_NEW ||
		 event->phase == KY_JSON_PHASE_OBJECT_SNAPSHOT ||
		 event->phase == KY_JSON_PHASE_OBJECT_DELETE)
		ky_problem(json->trace, "json_object_ignored", KY_INFO, event->position,
			   "phase '%c': objects and their snapshots are left out", event->phase);
	else if (event->phase == KY_JSON_PHASE_MEMORY_DUMP ||
		 event->phase == KY_JSON_PHASE_MEMORY_DUMP_GLOBAL)
		ky_problem(json->trace, "json_memory_dump_ignored", KY_INFO, event->position,
			   "phase '%c': memory dumps are left out", event->phase);
	else if (event->phase == KY_JSON_PHASE_CLOCK_SYNC ||
		 event->phase == KY_JSON_PHASE_CONTEXT_ENTER ||
		 event->phase == KY_JSON_PHASE_CONTEXT_LEAVE)
		ky_problem(json->trace, "json_phase_ignored", KY_INFO, event->position,
			   "phase '%c' is left out", event->phase);
	else
		ky_problem(json->trace, "json_phase_unknown", KY_INFO, event->position,
			   "phase 0x%02x is not one of the format's", event->phase);
}

/* Report whether it has a phase and a valid time. */
static bool usable(struct ky_json *json, const struct ky_json_event *event)
{
	if (event->phase == 0) {
		if (event->has & KY_JSON_NOT_EMPTY)
			ky_problem(json->trace, "json_tokenizer_failure", KY_ERROR, event->position,
				   "an event without ph");
		return false;
	}
	json->events++;
	if (event->phase == KY_JSON_PHASE_METADATA)
		return true;
	if (!(event->has & KY_JSON_HAS_TS) || (event->has & KY_JSON_BAD_TIME)) {
		ky_problem(json->trace, "json_tokenizer_failure", KY_ERROR, event->position,
			   "an event without ts, or whose ts or dur is no number");
		return false;
	}
	if (event->ts < 0) {
		ky_problem(json->trace, "trace_sorter_negative_timestamp_dropped", KY_DATA_LOSS,
			   event->position, "ts is below 0");
		return false;
	}
	return true;
}

void ky_json_event_put(struct ky_json *json, const struct ky_json_event *event, const uint8_t *end)
{
	if (!usable(json, event))
		return;
	switch (event->phase) {
	case KY_JSON_PHASE_BEGIN:
		put_begin(json, event, end);
		break;
	case KY_JSON_PHASE_END:
		put_end(json, event, end);
		break;
	case KY_JSON_PHASE_COMPLETE:
		put_complete(json, event, end);
		break;
	case KY_JSON_PHASE_INSTANT:
	case KY_JSON_PHASE_INSTANT_OLD:
	case KY_JSON_PHASE_MARK:
		put_instant(json, event, end);
		break;
	case KY_JSON_PHASE_COUNTER:
		ky_json_counters_put(json, event, end);
		break;
	case KY_JSON_PHASE_ASYNC_BEGIN:
	case KY_JSON_PHASE_ASYNC_INSTANT:
	case KY_JSON_PHASE_ASYNC_END:
		put_async(json, event, end);
		break;
	case KY_JSON_PHASE_FLOW_BEGIN:
	case KY_JSON_PHASE_FLOW_STEP:
	case KY_JSON_PHASE_FLOW_END:
		put_flow(json, event);
		break;
	case KY_JSON_PHASE_METADATA:
		ky_json_metadata_put(json, event, end);
		break;
	case KY_JSON_PHASE_SAMPLE:
		ky_json_profile_put(json, event, end);
		break;
	case KY_JSON_PHASE_THREAD_STATE:
		/* One of the old asynchronous events when it has an id and no duration. */
		if ((event->has & KY_JSON_HAS_ID) && !(event->has & KY_JSON_HAS_DUR))
			put_other(json, event);
		else
			ky_json_state_put(json, event, end);
		break;
	default:
		put_other(json, event);
		break;
	}
}
