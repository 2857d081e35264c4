/* SPDX-License-Identifier: MIT */
/*
 * pftrace_ftrace.c: bundles of ftrace events, each of one CPU. Every event becomes a raw event with its fields as
 * arguments; those that mean more to the model go to the handler of their domain as well. Switches and wakeups may
 * come in columns, which leave out what follows from the CPU's last switch.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#include <stdio.h>

#define FIELDS_MAX 1024u /* of a generic event's numbers that are looked at */
#define SELF_DESCRIBED 65536u

struct bundle {
	uint32_t cpu;
	uint32_t clock;
	bool lost;
	bool has_times;
	int64_t ftrace_ns, boot_ns;
	struct ky_proto_view all;
};

static void read_bundle(struct ky_proto_view message, struct bundle *bundle)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	*bundle = (struct bundle){
		.all = message,
		.cpu = (uint32_t)parts.values[KY_PF_FTRACE_EVENT_BUNDLE_CPU],
		.clock = (uint32_t)parts.values[KY_PF_FTRACE_EVENT_BUNDLE_FTRACE_CLOCK],
		.lost = parts.values[KY_PF_FTRACE_EVENT_BUNDLE_LOST_EVENTS] != 0,
		.has_times = ky_pf_has(&parts, KY_PF_FTRACE_EVENT_BUNDLE_FTRACE_TIMESTAMP),
		.ftrace_ns = (int64_t)parts.values[KY_PF_FTRACE_EVENT_BUNDLE_FTRACE_TIMESTAMP],
		.boot_ns = (int64_t)parts.values[KY_PF_FTRACE_EVENT_BUNDLE_BOOT_TIMESTAMP],
	};
}

void ky_pf_ftrace_range(struct ky_pf *pf, struct ky_proto_view bundle)
{
	bool made;
	const uint32_t number = (uint32_t)ky_proto_number(bundle, KY_PF_FTRACE_EVENT_BUNDLE_CPU);
	if (ky_u64_map_find(&pf->bundle_seen, number))
		return;
	(void)ky_u64_map_add(&pf->bundle_seen, number, &made);
	const int64_t end_ns = (int64_t)ky_proto_number(
		bundle, KY_PF_FTRACE_EVENT_BUNDLE_PREVIOUS_BUNDLE_END_TIMESTAMP);
	if (end_ns > pf->ftrace_whole_ns)
		pf->ftrace_whole_ns = end_ns;
}

/* Times are BOOTTIME's unless the bundle names another clock and its offset. */
static int64_t event_time(struct ky_pf *pf, const struct bundle *bundle, uint64_t ns)
{
	if (bundle->clock == KY_PF_FTRACE_CLOCK_MONO_RAW)
		return ky_pf_clock_time(pf, KY_CLOCK_MONOTONIC_RAW, (int64_t)ns);
	if (bundle->clock)
		ns += (uint64_t)pf->ftrace_offset_ns;
	return ky_pf_clock_time(pf, KY_CLOCK_BOOTTIME, (int64_t)ns);
}

/* ---- names of events and fields ---- */

/* Return the event's name, or NULL; set *fields to its fields' names, from 1 on, with commas. */
static const char *known_name(uint32_t event, const char **fields)
{
	static const struct {
		uint32_t event;
		const char *name;
		const char *fields;
	} events[] = {
#define X(number, name, fields, types) {number, name, fields},
		KY_PF_FTRACE_EVENTS(X)
#undef X
	};
	size_t low =
		KY_ARRAY_SEARCH(0, sizeof(events) / sizeof(*events), at, events[at].event < event);
	if (low == sizeof(events) / sizeof(*events) || events[low].event != event)
		return NULL;
	*fields = events[low].fields;
	return events[low].name;
}

/* Return the string of the field'th of names with commas, from 1 on, or of its number. */
static uint32_t field_name(struct ky_pf *pf, const char *names, uint32_t field)
{
	for (uint32_t i = 1; names && i < field; i++) {
		names = strchr(names, ',');
		names = names ? names + 1 : NULL;
	}
	if (names && *names && *names != ',')
		return ky_string(pf->trace, names, strcspn(names, ","));
	return ky_string_format(pf->trace, "field_%u", field);
}

/* Return the string of an event (field 0) or of one of its fields. */
static uint32_t name_of(struct ky_pf *pf, uint32_t event, uint32_t field)
{
	char number[24];
	bool made;
	const char *fields = NULL;
	const uint64_t key = (uint64_t)event << 16 | (field & 0xffff);
	uint32_t *name = ky_u64_map_find(&pf->names_of, key);
	if (name)
		return *name;
	const char *text = known_name(event, &fields);
	uint32_t string;
	if (field) {
		string = field_name(pf, fields, field);
	} else {
		snprintf(number, sizeof(number), "ftrace_%u", event);
		string = ky_string_z(pf->trace, text ? text : number);
	}
	name = ky_u64_map_add(&pf->names_of, key, &made);
	if (name)
		*name = string;
	return string;
}

static void learn_name(struct ky_pf *pf, uint32_t event, uint32_t field, struct ky_proto_view text)
{
	bool made;
	uint32_t *name = ky_u64_map_add(&pf->names_of, (uint64_t)event << 16 | field, &made);
	if (name)
		*name = ky_pf_string(pf, text);
}

/* Learn an event's name and those of its fields from its DescriptorProto. */
static void learn_generic(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_field id, descriptor, name, number;
	if (!ky_proto_find(message, KY_PF_GENERIC_EVENT_DESCRIPTOR_FIELD_ID, &id) ||
	    !ky_proto_find(message, KY_PF_GENERIC_EVENT_DESCRIPTOR_EVENT_DESCRIPTOR, &descriptor) ||
	    id.value < SELF_DESCRIBED || id.value > 2 * SELF_DESCRIBED)
		return;
	KY_PROTO_EACH(field, descriptor.view) {
		if (field.id == KY_PF_DESCRIPTOR_PROTO_NAME)
			learn_name(pf, (uint32_t)id.value, 0, field.view);
		else if (field.id == KY_PF_DESCRIPTOR_PROTO_FIELD &&
			 ky_proto_find(field.view, KY_PF_FIELD_DESCRIPTOR_PROTO_NAME, &name) &&
			 ky_proto_find(field.view, KY_PF_FIELD_DESCRIPTOR_PROTO_NUMBER, &number) &&
			 number.value > 0 && number.value < FIELDS_MAX)
			learn_name(pf, (uint32_t)id.value, (uint32_t)number.value, name.view);
	}
}

/* ---- raw events ---- */

static void raw_field(struct ky_pf *pf, uint32_t key, const struct ky_proto_field *field)
{
	if (field->wire == KY_PROTO_BYTES)
		ky_arg_string(pf->trace, key, ky_pf_string(pf, field->view));
	else
		ky_arg_int(pf->trace, key, (int64_t)field->value);
}

/* A generic event contains the names of its fields. */
static void generic_args(struct ky_pf *pf, struct ky_proto_view message, uint32_t *name)
{
	KY_PROTO_EACH(field, message) {
		uint32_t key = 0;
		if (field.id == KY_PF_GENERIC_FTRACE_EVENT_EVENT_NAME)
			*name = ky_pf_string(pf, field.view);
		if (field.id != KY_PF_GENERIC_FTRACE_EVENT_FIELD)
			continue;
		KY_PROTO_EACH(part, field.view) {
			if (part.id == KY_PF_GENERIC_FTRACE_FIELD_NAME)
				key = ky_pf_string(pf, part.view);
			else if (part.id >= KY_PF_GENERIC_FTRACE_FIELD_STR_VALUE &&
				 part.id <= KY_PF_GENERIC_FTRACE_FIELD_UINT_VALUE)
				raw_field(pf, key, &part);
		}
	}
}

static void raw_event(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	uint32_t name = 0;
	ky_args_begin(pf->trace);
	if (event->id == KY_PF_FTRACE_EVENT_GENERIC) {
		generic_args(pf, event->all, &name);
	} else {
		name = name_of(pf, event->id, 0);
		KY_PROTO_EACH(field, event->all)
			raw_field(pf, name_of(pf, event->id, field.id), &field);
	}
	ky_put_raw(pf->trace, event->ts, event->cpu, event->tid, name, ky_args_end(pf->trace));
}

/* ---- what events mean ---- */

void ky_pf_ftrace_take_apart(struct ky_proto_view message, struct ky_pf_parts *parts)
{
	*parts = (struct ky_pf_parts){0};
	KY_PROTO_EACH(field, message) {
		if (field.id >= KY_PF_PARTS)
			continue;
		parts->values[field.id] = field.value;
		parts->texts[field.id] = field.view;
		parts->has |= 1u << field.id;
	}
}

bool ky_pf_ftrace_next_parts(struct ky_proto_in *in, uint32_t id, struct ky_pf_parts *parts)
{
	struct ky_proto_field field;
	while (ky_proto_next(in, &field))
		if (field.id == id && field.wire == KY_PROTO_BYTES) {
			ky_pf_ftrace_take_apart(field.view, parts);
			return true;
		}
	return false;
}

void ky_pf_ftrace_open(struct ky_pf *pf)
{
	static const struct ky_pf_ftrace_handler *const tables[] = {
		ky_pf_kernel_handlers, ky_pf_devices_handlers, ky_pf_graphics_handlers};
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct ky_pf_ftrace_handler *h = tables[i]; h->take; h++)
			pf->ftrace_handlers[h->event] = h->take;
}

static void dispatch(struct ky_pf *pf, struct ky_pf_ftrace *event)
{
	struct ky_pf_parts parts;
	if (event->id >= KY_PF_FTRACE_EVENTS_END || !pf->ftrace_handlers[event->id])
		return;
	ky_pf_ftrace_take_apart(event->all, &parts);
	event->parts = &parts;
	event->values = parts.values;
	event->texts = parts.texts;
	pf->ftrace_handlers[event->id](pf, event);
}

/* ---- events ---- */

static void read_event(struct ky_pf *pf, const struct bundle *bundle, struct ky_proto_view message)
{
	struct ky_pf_ftrace event = {.sequence = pf->sequence, .cpu = bundle->cpu, .tid = -1};
	uint64_t ns = 0;
	KY_PF_EACH(pf, field, message, "an ftrace event") {
		if (field.id == KY_PF_FTRACE_EVENT_TIMESTAMP) {
			ns = field.value;
		} else if (field.id == KY_PF_FTRACE_EVENT_PID) {
			event.tid = (int32_t)field.value;
		} else if (field.wire == KY_PROTO_BYTES && !event.id) {
			event.id = field.id;
			event.all = field.view;
		}
	}
	if (!event.id)
		return;
	if (event.tid < 0) {
		ky_problem(pf->trace, "ftrace_missing_event_id", KY_ERROR, pf->at,
			   "an ftrace event does not name its task");
		return;
	}
	event.ts = event_time(pf, bundle, ns);
	if (event.ts < pf->ftrace_from_ns) {
		ky_problem(pf->trace, "ftrace_packet_before_tracing_start", KY_INFO, pf->at,
			   "an ftrace event from before tracing started");
		return;
	}
	raw_event(pf, &event);
	if (event.ts >= pf->ftrace_whole_ns)
		dispatch(pf, &event);
}

/* ---- events in columns ---- */

/* The columns of one kind of event, read side by side. */
struct columns {
	struct ky_proto_in times, states, tids, priorities, comms;
};

static void open_columns(struct ky_proto_view message, struct columns *switches,
			 struct columns *wakings)
{
	*switches = *wakings = (struct columns){0};
	KY_PROTO_EACH(field, message) {
		struct ky_proto_in *const places[] = {
			[KY_PF_COMPACT_SCHED_SWITCH_TIMESTAMP] = &switches->times,
			[KY_PF_COMPACT_SCHED_SWITCH_PREV_STATE] = &switches->states,
			[KY_PF_COMPACT_SCHED_SWITCH_NEXT_PID] = &switches->tids,
			[KY_PF_COMPACT_SCHED_SWITCH_NEXT_PRIO] = &switches->priorities,
			[KY_PF_COMPACT_SCHED_SWITCH_NEXT_COMM_INDEX] = &switches->comms,
			[KY_PF_COMPACT_SCHED_WAKING_TIMESTAMP] = &wakings->times,
			[KY_PF_COMPACT_SCHED_WAKING_PID] = &wakings->tids,
			[KY_PF_COMPACT_SCHED_WAKING_TARGET_CPU] = &wakings->states,
			[KY_PF_COMPACT_SCHED_WAKING_PRIO] = &wakings->priorities,
			[KY_PF_COMPACT_SCHED_WAKING_COMM_INDEX] = &wakings->comms,
		};
		if (field.wire == KY_PROTO_BYTES && field.id < sizeof(places) / sizeof(*places) &&
		    places[field.id])
			*places[field.id] = ky_proto_open(field.view);
	}
}

/* One row of the columns. The time is a difference from the last row. */
struct row {
	uint64_t ns;
	uint64_t state; /* of switches; of wakings the CPU */
	uint64_t tid, priority, comm;
};

static bool next_row(struct columns *columns, struct row *row)
{
	uint64_t delta;
	if (columns->times.at >= columns->times.end ||
	    !ky_proto_read_varint(&columns->times, &delta))
		return false;
	row->ns += delta;
	return ky_proto_read_varint(&columns->states, &row->state) &&
	       ky_proto_read_varint(&columns->tids, &row->tid) &&
	       ky_proto_read_varint(&columns->priorities, &row->priority) &&
	       ky_proto_read_varint(&columns->comms, &row->comm);
}

static uint32_t comm_of(const uint32_t *comms, uint32_t count, uint64_t index)
{
	return index < count ? comms[index] : 0;
}

static void raw_switch(struct ky_pf *pf, int64_t ts, const struct ky_switch *event, uint64_t state)
{
	const struct {
		uint32_t field;
		int64_t value; /* or the number of a string */
	} fields[] = {
		{KY_PF_SCHED_SWITCH_PREV_COMM, event->prev_comm},
		{KY_PF_SCHED_SWITCH_PREV_PID, event->prev_tid},
		{KY_PF_SCHED_SWITCH_PREV_PRIO, event->prev_priority},
		{KY_PF_SCHED_SWITCH_PREV_STATE, (int64_t)state},
		{KY_PF_SCHED_SWITCH_NEXT_COMM, event->next_comm},
		{KY_PF_SCHED_SWITCH_NEXT_PID, event->next_tid},
		{KY_PF_SCHED_SWITCH_NEXT_PRIO, event->next_priority},
	};
	ky_args_begin(pf->trace);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const uint32_t name = name_of(pf, KY_PF_FTRACE_EVENT_SCHED_SWITCH, fields[i].field);
		if (fields[i].field == KY_PF_SCHED_SWITCH_PREV_COMM ||
		    fields[i].field == KY_PF_SCHED_SWITCH_NEXT_COMM)
			ky_arg_string(pf->trace, name, (uint32_t)fields[i].value);
		else
			ky_arg_int(pf->trace, name, fields[i].value);
	}
	ky_put_raw(pf->trace, ts, event->cpu, event->prev_tid,
		   name_of(pf, KY_PF_FTRACE_EVENT_SCHED_SWITCH, 0), ky_args_end(pf->trace));
}

static void compact_switch(struct ky_pf *pf, const struct bundle *bundle, const struct row *row,
			   uint32_t comm)
{
	const int64_t ts = event_time(pf, bundle, row->ns);
	struct ky_pf_switch *last = ky_pf_kernel_last_switch(pf, bundle->cpu);
	if (!last || ts < pf->ftrace_from_ns)
		return;
	struct ky_switch event = {.cpu = bundle->cpu,
				  .prev_tid = last->tid,
				  .prev_priority = last->priority,
				  .prev_comm = last->comm,
				  .prev_state =
					  ky_task_state(pf->trace, row->state, pf->kernel_release),
				  .next_tid = (int32_t)row->tid,
				  .next_priority = (int32_t)row->priority,
				  .next_comm = comm};
	const bool known = last->known;
	*last = (struct ky_pf_switch){event.next_tid, event.next_priority, comm, true};
	if (!known) {
		ky_problem(pf->trace, "compact_sched_switch_skipped", KY_INFO, pf->at,
			   "the first switch of a CPU: the task that ran before is unknown");
		ky_put_task_comm(pf->trace, ts, event.next_tid, comm);
		return;
	}
	raw_switch(pf, ts, &event, row->state);
	if (ts >= pf->ftrace_whole_ns)
		ky_put_switch(pf->trace, ts, &event);
}

static void compact_waking(struct ky_pf *pf, const struct bundle *bundle, const struct row *row,
			   uint32_t comm)
{
	struct ky_trace *trace = pf->trace;
	const int64_t ts = event_time(pf, bundle, row->ns);
	const struct ky_pf_switch *last = ky_pf_kernel_last_switch(pf, bundle->cpu);
	if (!last || ts < pf->ftrace_from_ns)
		return;
	if (!last->known) {
		ky_problem(trace, "compact_sched_waking_skipped", KY_INFO, pf->at,
			   "a wakeup on a CPU whose running task is unknown");
		return;
	}
	ky_args_begin(trace);
	ky_arg_string(trace, name_of(pf, KY_PF_FTRACE_EVENT_SCHED_WAKING, KY_PF_SCHED_WAKING_COMM),
		      comm);
	ky_arg_int(trace, name_of(pf, KY_PF_FTRACE_EVENT_SCHED_WAKING, KY_PF_SCHED_WAKING_PID),
		   (int32_t)row->tid);
	ky_arg_int(trace, name_of(pf, KY_PF_FTRACE_EVENT_SCHED_WAKING, KY_PF_SCHED_WAKING_PRIO),
		   (int32_t)row->priority);
	ky_arg_int(trace,
		   name_of(pf, KY_PF_FTRACE_EVENT_SCHED_WAKING, KY_PF_SCHED_WAKING_TARGET_CPU),
		   (int32_t)row->state);
	ky_put_raw(trace, ts, bundle->cpu, last->tid,
		   name_of(pf, KY_PF_FTRACE_EVENT_SCHED_WAKING, 0), ky_args_end(trace));
	if (ts >= pf->ftrace_whole_ns)
		ky_put_waking(trace, ts, (int32_t)row->tid, comm, last->tid);
}

#define COMMS_MAX 4096u

/* Merge switches and wakeups by time: the last switch's task is the waker. */
static void compact_events(struct ky_pf *pf, const struct bundle *bundle,
			   struct ky_proto_view message)
{
	uint32_t comms[COMMS_MAX], count = 0;
	struct columns switches, wakings;
	struct row a = {0}, b = {0};
	KY_PROTO_EACH(field, message)
		if (field.id == KY_PF_COMPACT_SCHED_INTERN_TABLE && field.wire == KY_PROTO_BYTES &&
		    count < COMMS_MAX)
			comms[count++] = ky_pf_string(pf, field.view);
	open_columns(message, &switches, &wakings);
	bool has_a = next_row(&switches, &a), has_b = next_row(&wakings, &b);
	while (has_a || has_b) {
		if (has_a && (!has_b || a.ns <= b.ns)) {
			compact_switch(pf, bundle, &a, comm_of(comms, count, a.comm));
			has_a = next_row(&switches, &a);
		} else {
			compact_waking(pf, bundle, &b, comm_of(comms, count, b.comm));
			has_b = next_row(&wakings, &b);
		}
	}
	if (switches.times.bad || switches.comms.bad || wakings.times.bad || wakings.comms.bad)
		ky_pf_read_note_damage(pf, "compact_sched");
}

/* ---- the bundle ---- */

void ky_pf_ftrace_bundle(struct ky_pf *pf, struct ky_proto_view message)
{
	struct bundle bundle;
	read_bundle(message, &bundle);
	if (bundle.has_times)
		pf->ftrace_offset_ns =
			(int64_t)((uint64_t)bundle.boot_ns - (uint64_t)bundle.ftrace_ns);
	if (bundle.lost)
		ky_put_lost(pf->trace, KY_TIME_NONE, KY_NONE, bundle.cpu, 0,
			    KY_LOSS_FTRACE_OVERRUN);
	KY_PF_EACH(pf, field, message, "an ftrace bundle") {
		if (field.id == KY_PF_FTRACE_EVENT_BUNDLE_EVENT && field.wire == KY_PROTO_BYTES)
			read_event(pf, &bundle, field.view);
		else if (field.id == KY_PF_FTRACE_EVENT_BUNDLE_COMPACT_SCHED &&
			 field.wire == KY_PROTO_BYTES)
			compact_events(pf, &bundle, field.view);
		else if (field.id == KY_PF_FTRACE_EVENT_BUNDLE_GENERIC_EVENT_DESCRIPTORS &&
			 field.wire == KY_PROTO_BYTES)
			learn_generic(pf, field.view);
	}
}
