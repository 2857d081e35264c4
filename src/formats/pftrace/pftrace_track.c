/* SPDX-License-Identifier: MIT */
/*
 * pftrace_track.c: tracks by uuid, from what descriptors say to tracks of the model, by Perfetto's
 * rules:
 *
 *   thread set    ─▶ the thread's own track          a second uuid of the same tid: a new thread
 *   process set   ─▶ a track of the process          a second uuid of the same pid: a new process
 *   parent only   ─▶ of whatever the parent is of; nested below it unless that is a thread or process
 *   nothing       ─▶ a global track
 *
 * A uuid that nothing describes is a global track with the name of its first event. Tracks are resolved
 * when the second pass first comes to them; descriptors were all read in the first.
 */
#include "formats/pftrace/pftrace_reader.h"

#define ANCESTORS_MAX 100u
#define SYNTHETIC_TID                                                                              \
	(INT64_C(1) << 32) /* below it: tids of processes that do not know their own */

int64_t ky_pf_track_synthetic_tid(int64_t pid, int64_t tid)
{
	return (int64_t)(((uint64_t)pid << 33) | (uint64_t)SYNTHETIC_TID | (uint32_t)tid);
}

static uint64_t key_of(const struct ky_pf *pf, uint64_t uuid)
{
	return uuid ^ (uint64_t)pf->machine << 40;
}

static struct ky_pf_track *find(const struct ky_pf *pf, uint64_t uuid)
{
	const uint32_t *row = ky_u64_map_find(&pf->track_of, key_of(pf, uuid));
	return row ? &pf->tracks[*row] : NULL;
}

/* ---- the first pass ---- */

static void read_thread(struct ky_pf_track *track, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	track->pid = (int32_t)parts.values[KY_PF_THREAD_DESCRIPTOR_PID];
	track->has_pid = ky_pf_has(&parts, KY_PF_THREAD_DESCRIPTOR_PID);
	track->tid = (int64_t)parts.values[KY_PF_THREAD_DESCRIPTOR_TID];
	track->has_tid = ky_pf_has(&parts, KY_PF_THREAD_DESCRIPTOR_TID);
}

static void read_process(struct ky_pf_track *track, struct ky_proto_view message)
{
	struct ky_proto_field field;
	track->has_pid = ky_proto_find(message, KY_PF_PROCESS_DESCRIPTOR_PID, &field);
	track->pid = track->has_pid ? (int32_t)field.value : 0;
}

/* Join the categories of a counter. */
static uint32_t joined(struct ky_pf *pf, struct ky_proto_view message, uint32_t id)
{
	pf->text.bytes = 0;
	KY_PROTO_EACH(field, message) {
		if (field.id != id)
			continue;
		if (pf->text.bytes)
			ky_buffer_add(&pf->text, ",", 1);
		ky_buffer_add(&pf->text, (const char *)field.view.data, field.view.bytes);
	}
	return pf->text.bytes ? ky_pf_buffer_string(pf, &pf->text) : 0;
}

static void read_counter(struct ky_pf *pf, struct ky_pf_track *track, struct ky_proto_view message)
{
	static const char *const units[] = {NULL, "ns", "count", "bytes"};
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const uint64_t type = parts.values[KY_PF_COUNTER_DESCRIPTOR_TYPE];
	uint64_t unit = parts.values[KY_PF_COUNTER_DESCRIPTOR_UNIT];
	track->counter = true;
	track->unit_multiplier = (int64_t)parts.values[KY_PF_COUNTER_DESCRIPTOR_UNIT_MULTIPLIER];
	track->incremental = parts.values[KY_PF_COUNTER_DESCRIPTOR_IS_INCREMENTAL] != 0;
	track->unit = ky_pf_string_if(pf, parts.texts[KY_PF_COUNTER_DESCRIPTOR_UNIT_NAME]);
	track->share_key =
		ky_pf_string_if(pf, parts.texts[KY_PF_COUNTER_DESCRIPTOR_Y_AXIS_SHARE_KEY]);
	track->category = joined(pf, message, KY_PF_COUNTER_DESCRIPTOR_CATEGORIES);
	if (type == KY_PF_COUNTER_THREAD_TIME_NS ||
	    type == KY_PF_COUNTER_THREAD_INSTRUCTION_COUNT) {
		track->builtin =
			pf->words[type == KY_PF_COUNTER_THREAD_TIME_NS ? KY_PF_W_THREAD_TIME
								       : KY_PF_W_INSTRUCTIONS];
		unit = type;
		if (!track->name)
			track->name = track->builtin;
	}
	if (unit > 0 && unit < sizeof(units) / sizeof(*units))
		track->unit = ky_string_z(pf->trace, units[unit]);
}

static uint32_t name_of(struct ky_pf *pf, const struct ky_pf_parts *parts)
{
	static const uint8_t fields[] = {KY_PF_TRACK_DESCRIPTOR_ATRACE_NAME,
					 KY_PF_TRACK_DESCRIPTOR_STATIC_NAME,
					 KY_PF_TRACK_DESCRIPTOR_NAME};
	for (size_t i = 0; i < sizeof(fields); i++)
		if (ky_pf_has(parts, fields[i]))
			return ky_pf_string(pf, parts->texts[fields[i]]);
	return 0;
}

/* Return false when the descriptor lacks a required field. */
static bool read_descriptor(struct ky_pf *pf, struct ky_proto_view message,
			    struct ky_pf_track *track)
{
	struct ky_pf_parts parts;
	struct ky_proto_field field;
	ky_pf_ftrace_take_apart(message, &parts);
	if (!ky_pf_has(&parts, KY_PF_TRACK_DESCRIPTOR_UUID)) {
		ky_problem(pf->trace, "track_descriptor_missing_uuid", KY_ERROR, pf->at,
			   "a track descriptor has no uuid");
		return false;
	}
	const uint64_t ordering = parts.values[KY_PF_TRACK_DESCRIPTOR_CHILD_ORDERING];
	track->uuid = parts.values[KY_PF_TRACK_DESCRIPTOR_UUID];
	track->name = name_of(pf, &parts);
	track->parent_uuid = parts.values[KY_PF_TRACK_DESCRIPTOR_PARENT_UUID];
	track->separate =
		parts.values[KY_PF_TRACK_DESCRIPTOR_DISALLOW_MERGING_WITH_SYSTEM_TRACKS] != 0;
	track->ordering = ordering < 4 ? (uint8_t)ordering : 0;
	track->rank = (int32_t)parts.values[KY_PF_TRACK_DESCRIPTOR_SIBLING_ORDER_RANK];
	track->has_rank = ky_pf_has(&parts, KY_PF_TRACK_DESCRIPTOR_SIBLING_ORDER_RANK);
	track->description = ky_pf_string_if(pf, parts.texts[KY_PF_TRACK_DESCRIPTOR_DESCRIPTION]);
	track->never_merged = parts.values[KY_PF_TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR] ==
			      KY_PF_SIBLING_MERGE_BEHAVIOR_NONE;
	if (ky_pf_has(&parts, KY_PF_TRACK_DESCRIPTOR_THREAD)) {
		read_thread(track, parts.texts[KY_PF_TRACK_DESCRIPTOR_THREAD]);
		if (ky_proto_number(parts.texts[KY_PF_TRACK_DESCRIPTOR_CHROME_THREAD],
				    KY_PF_CHROME_THREAD_DESCRIPTOR_IS_SANDBOXED_TID))
			track->tid = ky_pf_track_synthetic_tid(track->pid, track->tid);
		return track->has_pid && track->has_tid;
	}
	if (ky_pf_has(&parts, KY_PF_TRACK_DESCRIPTOR_PROCESS)) {
		read_process(track, parts.texts[KY_PF_TRACK_DESCRIPTOR_PROCESS]);
		return track->has_pid;
	}
	track->state = ky_proto_find(message, KY_PF_TRACK_DESCRIPTOR_STATE, &field);
	if (ky_pf_has(&parts, KY_PF_TRACK_DESCRIPTOR_COUNTER))
		read_counter(pf, track, parts.texts[KY_PF_TRACK_DESCRIPTOR_COUNTER]);
	return true;
}

uint32_t ky_pf_track_row(struct ky_pf *pf, uint64_t uuid)
{
	bool made;
	/* Finding a track must not move the others. */
	uint32_t *row = ky_u64_map_find(&pf->track_of, key_of(pf, uuid));
	if (row)
		return *row;
	if (!KY_PF_GROW(pf, tracks))
		return KY_NONE;
	row = ky_u64_map_add(&pf->track_of, key_of(pf, uuid), &made);
	if (!row)
		return KY_NONE;
	*row = pf->tracks_count++;
	pf->tracks[*row] = (struct ky_pf_track){
		.uuid = uuid, .machine = pf->machine, .owner = KY_NONE, .track = KY_NONE};
	return *row;
}

static bool same_track(const struct ky_pf_track *a, const struct ky_pf_track *b)
{
	return a->parent_uuid == b->parent_uuid && a->has_pid == b->has_pid && a->pid == b->pid &&
	       a->has_tid == b->has_tid && a->tid == b->tid && a->counter == b->counter &&
	       a->state == b->state && a->unit_multiplier == b->unit_multiplier &&
	       a->incremental == b->incremental;
}

void ky_pf_track_describe(struct ky_pf *pf, struct ky_proto_view descriptor)
{
	struct ky_pf_track track = {.machine = pf->machine, .owner = KY_NONE, .track = KY_NONE};
	if (!read_descriptor(pf, descriptor, &track))
		return;
	if (!track.uuid && track.parent_uuid) {
		ky_problem(pf->trace, "track_descriptor_default_track_with_parent", KY_ERROR,
			   pf->at, "the root track has a parent");
		return;
	}
	const uint32_t before = pf->tracks_count;
	const uint32_t row = ky_pf_track_row(pf, track.uuid);
	if (row == KY_NONE)
		return;
	struct ky_pf_track *known = &pf->tracks[row];
	if (row == before) {
		*known = track;
		return;
	}
	if (!same_track(known, &track))
		ky_problem(pf->trace, "track_descriptor_conflicting_reservation", KY_ERROR, pf->at,
			   "a second descriptor of track %llu contradicts the first",
			   (unsigned long long)track.uuid);
	else if (track.name && (!known->name || track.never_merged))
		known->name = track.name;
}

/* ---- the second pass: whose it is ---- */

static bool hierarchy_error(struct ky_pf *pf, const char *name, uint64_t uuid)
{
	ky_problem(pf->trace, name, KY_ERROR, pf->at,
		   "the parents of track %llu do not lead to the root", (unsigned long long)uuid);
	return false;
}

static bool hierarchy_valid(struct ky_pf *pf, uint64_t uuid)
{
	uint64_t seen[ANCESTORS_MAX];
	uint64_t current = uuid;
	for (uint32_t i = 0; i < ANCESTORS_MAX; i++) {
		if (!current)
			return true;
		for (uint32_t j = 0; j < i; j++)
			if (seen[j] == current)
				return hierarchy_error(pf, "track_event_track_hierarchy_loop",
						       uuid);
		const struct ky_pf_track *track = find(pf, current);
		if (!track || track->resolved == KY_PF_UNRESOLVABLE)
			return hierarchy_error(pf, "track_hierarchy_missing_uuid", uuid);
		if (track->resolved == KY_PF_RESOLVED && i + track->depth < ANCESTORS_MAX)
			return true;
		seen[i] = current;
		current = track->parent_uuid;
	}
	return hierarchy_error(pf, "track_event_track_hierarchy_too_deep", uuid);
}

/* Note which track has an owner; report whether another one had it already. */
static bool is_taken(struct ky_u64_map *takers, uint32_t owner, uint32_t row)
{
	bool made;
	uint32_t *taker = ky_u64_map_add(takers, owner, &made);
	if (taker && !made && *taker != row)
		return true;
	if (taker)
		*taker = row;
	return false;
}

/* If another uuid has the thread or process, that one has ended: this is a new one of the same number. */
static uint32_t thread_of(struct ky_pf *pf, const struct ky_pf_track *track, uint32_t row)
{
	uint32_t thread = ky_thread(pf->trace, track->pid, track->tid);
	if (is_taken(&pf->uuid_of_thread, thread, row)) {
		thread = ky_thread_new(pf->trace, ky_process(pf->trace, track->pid), track->tid);
		(void)is_taken(&pf->uuid_of_thread, thread, row);
	}
	return thread;
}

static uint32_t process_of(struct ky_pf *pf, const struct ky_pf_track *track, uint32_t row)
{
	uint32_t process = ky_process(pf->trace, track->pid);
	if (is_taken(&pf->uuid_of_process, process, row)) {
		process = ky_process_new(pf->trace, track->pid);
		(void)is_taken(&pf->uuid_of_process, process, row);
	}
	return process;
}

static void resolve(struct ky_pf *pf, struct ky_pf_track *track)
{
	const uint32_t row = (uint32_t)(track - pf->tracks);
	const struct ky_pf_track *parent =
		track->parent_uuid ? ky_pf_track_resolve(pf, track->parent_uuid) : NULL;
	track->resolved = KY_PF_RESOLVED;
	track->depth = (uint8_t)(parent ? parent->depth + 1 : 1);
	if (track->has_tid) {
		track->scope = KY_PF_THREAD;
		track->root = true;
		track->owner = thread_of(pf, track, row);
	} else if (track->has_pid) {
		track->scope = KY_PF_PROCESS;
		track->root = true;
		track->owner = process_of(pf, track, row);
	} else if (parent && parent->scope != KY_PF_GLOBAL) {
		track->scope = parent->scope;
		track->owner = parent->owner;
	}
}

struct ky_pf_track *ky_pf_track_resolve(struct ky_pf *pf, uint64_t uuid)
{
	const uint32_t row = ky_pf_track_row(pf, uuid);
	if (row == KY_NONE)
		return NULL;
	struct ky_pf_track *track = &pf->tracks[row];
	if (track->resolved == KY_PF_NEW) {
		if (!uuid && !track->name)
			track->name = pf->words[KY_PF_W_DEFAULT_TRACK];
		/* Resolving adds no tracks: all parents exist. */
		if (hierarchy_valid(pf, uuid))
			resolve(pf, track);
		else
			track->resolved = KY_PF_UNRESOLVABLE;
	}
	return track->resolved == KY_PF_RESOLVED ? track : NULL;
}

uint32_t ky_pf_track_process(const struct ky_pf *pf, const struct ky_pf_track *track)
{
	if (track->scope == KY_PF_PROCESS)
		return track->owner;
	if (track->scope == KY_PF_THREAD && track->owner < pf->trace->threads.rows.count)
		return pf->trace->threads.process[track->owner];
	return KY_NONE;
}

/* ---- the second pass: the model's track ---- */

static uint32_t track_args(struct ky_pf *pf, const struct ky_pf_track *track)
{
	static const char *const orders[] = {NULL, "lexicographic", "chronological", "explicit"};
	struct ky_trace *trace = pf->trace;
	ky_args_begin(trace);
	ky_arg_int(trace, pf->words[KY_PF_W_TRACE_ID], (int64_t)track->uuid);
	if (track->category)
		ky_arg_string(trace, pf->words[KY_PF_W_CATEGORY], track->category);
	if (track->builtin)
		ky_arg_string(trace, pf->words[KY_PF_W_BUILTIN], track->builtin);
	if (track->share_key)
		ky_arg_string(trace, pf->words[KY_PF_W_SHARE_KEY], track->share_key);
	if (track->ordering)
		ky_arg_string(trace, pf->words[KY_PF_W_CHILD_ORDERING],
			      ky_string_z(trace, orders[track->ordering]));
	if (track->has_rank)
		ky_arg_int(trace, pf->words[KY_PF_W_RANK], track->rank);
	if (track->description)
		ky_arg_string(trace, pf->words[KY_PF_W_DESCRIPTION], track->description);
	return ky_args_end(trace);
}

static const char *type_of(const struct ky_pf_track *track)
{
	static const char *const types[3][3] = {
		{"global_track_event", "global_counter_track_event", "global_state_track_event"},
		{"process_track_event", "process_counter_track_event", "process_state_track_event"},
		{"thread_track_event", "thread_counter_track_event", "thread_state_track_event"},
	};
	return types[track->scope][track->counter ? 1 : track->state ? 2 : 0];
}

static uint8_t kind_of(const struct ky_pf_track *track)
{
	static const uint8_t slices[] = {KY_TRACK_GLOBAL, KY_TRACK_PROCESS, KY_TRACK_THREAD};
	static const uint8_t counters[] = {KY_TRACK_COUNTER, KY_TRACK_PROCESS_COUNTER,
					   KY_TRACK_THREAD_COUNTER};
	return track->counter ? counters[track->scope] : slices[track->scope];
}

static uint32_t make_track(struct ky_pf *pf, const struct ky_pf_track *track, uint32_t name)
{
	struct ky_trace *trace = pf->trace;
	const struct ky_track_spec spec = {
		.kind = kind_of(track),
		.flags = (uint8_t)(track->counter ? (track->incremental ? KY_TRACK_INCREMENTAL : 0)
						  : (track->root ? 0 : KY_TRACK_ASYNC)),
		.owner = track->owner,
		.name = track->name      ? track->name
			: track->counter ? 0
					 : name,
		.type = ky_string_z(trace, type_of(track)),
		.id = track->uuid,
	};
	const uint32_t made = ky_track_new(trace, &spec);
	if (made < trace->tracks.rows.count) {
		trace->tracks.unit[made] = track->unit;
		trace->tracks.args[made] = track_args(pf, track);
	}
	return made;
}

/* A child of a thread or process is beside its own track, not below it. */
static uint32_t parent_of(struct ky_pf *pf, const struct ky_pf_track *track)
{
	if (track->root || !track->parent_uuid)
		return KY_NONE;
	struct ky_pf_track *parent = ky_pf_track_resolve(pf, track->parent_uuid);
	if (!parent || parent->root)
		return KY_NONE;
	return ky_pf_track_make(pf, parent, 0);
}

uint32_t ky_pf_track_make(struct ky_pf *pf, struct ky_pf_track *track, uint32_t name)
{
	if (track->track != KY_NONE)
		return track->track;
	const uint32_t parent = parent_of(pf, track);
	if (track->root && track->scope == KY_PF_THREAD && !track->separate)
		track->track = ky_track_of_thread(pf->trace, track->owner);
	else
		track->track = make_track(pf, track, name);
	if (parent != KY_NONE && track->track < pf->trace->tracks.rows.count)
		pf->trace->tracks.parent[track->track] = parent;
	return track->track;
}

/* ---- tracks of the whole system, by what they are of ---- */

static uint32_t global_track(struct ky_pf *pf, enum ky_track_kind kind, const char *type,
			     uint32_t name, uint64_t id)
{
	const struct ky_track_spec spec = {.kind = (uint8_t)kind,
					   .owner = KY_NONE,
					   .name = name,
					   .type = ky_string_z(pf->trace, type),
					   .id = id};
	return ky_track(pf->trace, &spec);
}

uint32_t ky_pf_track_of_counter(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id)
{
	return global_track(pf, KY_TRACK_COUNTER, type, name, id);
}

void ky_pf_track_put_counter(struct ky_pf *pf, int64_t ts, const char *type, uint32_t name,
			     double value)
{
	ky_put_counter(pf->trace, ts, ky_pf_track_of_counter(pf, type, name, 0), value);
}

uint32_t ky_pf_track_of_slices(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id)
{
	return global_track(pf, KY_TRACK_GLOBAL, type, name, id);
}
