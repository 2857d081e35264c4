/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export_typed.c: kernel events as the messages that Perfetto's schema has for them (ftrace_events.txt), so that its
 * importer knows who woke whom and which tasks began, ended and were renamed.
 *
 * Left generic are events whose slices and counters are in the file already, which an importer would make a second
 * time; wake-ups of threads of which nothing else is known; events with an argument of another type than the schema's, which importers read as what it should be; and, unless they
 * are about tasks, events with an argument that the schema lacks.
 */
#include "formats/arg_tree.h"
#include "formats/pftrace/pftrace_export.h"
#include "formats/pftrace/pftrace_reader.h"

#include <errno.h>

static const struct ky_pf_typed_event {
	uint32_t event;
	const char *name;
	const char *fields; /* from 1 on, with commas */
	const char *types;
} events[] = {
#define X(number, name, fields, types) {number, name, fields, types},
	KY_PF_FTRACE_EVENTS(X)
#undef X
};

/* Events about tasks, of which nothing else is in the file. */
static bool is_of_tasks(const char *name)
{
	return strncmp(name, "sched_", 6) == 0 || strncmp(name, "task_", 5) == 0;
}

/* Report whether readers make slices or counters of it. */
static bool is_shown_otherwise(const struct ky_pf_typed_event *event)
{
	static const struct ky_pf_ftrace_handler *const tables[] = {
		ky_pf_kernel_handlers, ky_pf_devices_handlers, ky_pf_graphics_handlers};
	static const char *const others[] = {"cdev_update", "cpu_frequency_limits",
					     "thermal_temperature"};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strcmp(event->name, others[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct ky_pf_ftrace_handler *h = tables[i]; h->take; h++)
			if (h->event == event->event)
				return event->event == KY_PF_FTRACE_EVENT_SCHED_CPU_UTIL_CFS ||
				       !is_of_tasks(event->name);
	return false;
}

/* Return the event of that name that is written typed, or NULL. */
static const struct ky_pf_typed_event *find_event(struct ky_pf_exporter *w, uint32_t string)
{
	struct ky_pf_typed_slot *slot = &w->typed[string % KY_PF_TYPED_SLOTS];
	const char *name = ky_text_of(w->trace, string);
	if (slot->string == string || !name)
		return name ? slot->event : NULL;
	*slot = (struct ky_pf_typed_slot){.string = string};
	for (size_t i = 0; i < sizeof(events) / sizeof(*events) && !slot->event; i++)
		if (strcmp(events[i].name, name) == 0 && !is_shown_otherwise(&events[i]))
			slot->event = &events[i];
	return slot->event;
}

/* Return the number of the field, 0 when there is no such. */
static uint32_t find_field(const struct ky_pf_typed_event *event, struct ky_text key)
{
	uint32_t number = 1;
	for (const char *at = event->fields; *at; number++) {
		const size_t bytes = strcspn(at, ",");
		if (bytes && bytes == key.bytes && memcmp(at, key.data, bytes) == 0)
			return number;
		at += bytes + (at[bytes] == ',');
	}
	return 0;
}

/* Return the letter of the schema for the type of an argument. */
static char type_of(uint8_t type)
{
	switch (type) {
	case KY_ARG_INT:
	case KY_ARG_UINT:
	case KY_ARG_BOOL:
	case KY_ARG_POINTER:
		return 'i';
	case KY_ARG_STRING:
		return 's';
	default:
		return 'x';
	}
}

/* Learn which threads have states. False without memory. */
static bool learn_states(struct ky_pf_exporter *w)
{
	const struct ky_thread_states *states = &w->trace->thread_states;
	bool made;
	for (uint32_t i = 0; !w->states_known && i < states->rows.count; i++)
		if (!ky_u64_map_add(&w->with_states,
				    (uint32_t)w->trace->threads.tid[states->thread[i]], &made)) {
			w->emit.out->error = -ENOMEM;
			return false;
		}
	w->states_known = true;
	return true;
}

/*
 * A recording of some processes has wake-ups of others, whose states are not known: an importer would have them wait for a CPU
 * from then on.
 */
static bool is_of_unknown(struct ky_pf_exporter *w, const struct ky_pf_typed_event *event,
			  uint32_t set)
{
	if (event->event != KY_PF_FTRACE_EVENT_SCHED_WAKING &&
	    event->event != KY_PF_FTRACE_EVENT_SCHED_WAKEUP &&
	    event->event != KY_PF_FTRACE_EVENT_SCHED_WAKEUP_NEW)
		return false;
	for (uint32_t arg = ky_arg_set_first(w->trace, set); arg < ky_arg_set_end(w->trace, set);
	     arg++)
		if (find_field(event, ky_arg_key(w->trace, arg)) == KY_PF_SCHED_WAKING_PID)
			return !learn_states(w) ||
			       !ky_u64_map_find(&w->with_states,
						(uint32_t)w->trace->args.value[arg]);
	return true;
}

static bool fits(const struct ky_pf_exporter *w, const struct ky_pf_typed_event *event,
		 uint32_t set)
{
	for (uint32_t arg = ky_arg_set_first(w->trace, set); arg < ky_arg_set_end(w->trace, set);
	     arg++) {
		const uint32_t field = find_field(event, ky_arg_key(w->trace, arg));
		const char type = type_of(w->trace->args.type[arg]);
		if (field ? type == 'x' || event->types[field - 1] != type
			  : !is_of_tasks(event->name))
			return false;
	}
	return true;
}

uint32_t ky_pf_export_typed(struct ky_pf_exporter *w, uint32_t name, uint32_t set)
{
	const struct ky_pf_typed_event *event = find_event(w, name);
	if (!event || !fits(w, event, set) || is_of_unknown(w, event, set))
		return 0;
	for (uint32_t arg = ky_arg_set_first(w->trace, set); arg < ky_arg_set_end(w->trace, set);
	     arg++) {
		const uint32_t field = find_field(event, ky_arg_key(w->trace, arg));
		const uint64_t value = w->trace->args.value[arg];
		if (!field)
			w->left->args++;
		else if (w->trace->args.type[arg] == KY_ARG_STRING)
			ky_pf_export_string(w, &w->emit.part, field, (uint32_t)value);
		else
			ky_proto_uint(&w->emit.part, field, value);
	}
	return event->event;
}
