/* SPDX-License-Identifier: MIT */
/* ctf_event.c: see ctf_event.h. */
#include "formats/ctf/ctf_reader.h"

#include "base/array.h"
#include "model/columns.h"
#include "model/kernel.h"

#include <inttypes.h>
#include <stdio.h>

#define CPUS_MAX 65536

/* An event with the facts that handlers need. */
struct view {
	struct ky_ctf_events *events;
	struct ky_trace *trace;
	int64_t ts;
	const char *name;
	const bt_field *payload;
	const bt_field *contexts[3]; /* packet, common, specific */
	int64_t cpu;                 /* -1: not known */
	int32_t running;             /* tid that runs there, -1: not known */
};

static int64_t integer_of(const bt_field *structure, const char *name, int64_t otherwise)
{
	int64_t value;
	return ky_ctf_integer(ky_ctf_member(structure, name), &value) ? value : otherwise;
}

static int64_t context_integer(const struct view *view, const char *name, int64_t otherwise)
{
	int64_t value;
	for (int i = 2; i >= 0; i--)
		if (ky_ctf_integer(ky_ctf_member(view->contexts[i], name), &value))
			return value;
	return otherwise;
}

static uint32_t text_of(const struct view *view, const bt_field *structure, const char *name)
{
	char buffer[64];
	const char *text = ky_ctf_text(ky_ctf_member(structure, name), buffer, sizeof(buffer));
	return text ? ky_string_z(view->trace, text) : 0;
}

static uint32_t args_of(const struct view *view)
{
	ky_args_begin(view->trace);
	ky_ctf_args(view->trace, view->payload);
	ky_ctf_args(view->trace, view->contexts[2]);
	return ky_args_end(view->trace);
}

static void set_running(const struct view *view, int32_t tid)
{
	struct ky_ctf_events *events = view->events;
	if (view->cpu < 0 || view->cpu >= CPUS_MAX ||
	    !KY_ARRAY_GROW_ZERO(events->running, events->running_room, (uint64_t)view->cpu + 1))
		return;
	events->running[view->cpu] = tid < 0 || tid == INT32_MAX ? 0 : tid + 1;
}

static void sched_switch(const struct view *view)
{
	struct ky_trace *trace = view->trace;
	const bt_field *p = view->payload;
	const int64_t state = integer_of(p, "prev_state", -1);
	const struct ky_switch event = {
		.cpu = view->cpu < 0 ? 0 : (uint32_t)view->cpu,
		.prev_tid = (int32_t)integer_of(p, "prev_tid", -1),
		.prev_priority = (int32_t)integer_of(p, "prev_prio", 0),
		.prev_comm = text_of(view, p, "prev_comm"),
		.prev_state = state < 0 ? 0 : ky_task_state(trace, (uint64_t)state, 4 << 8 | 14),
		.next_tid = (int32_t)integer_of(p, "next_tid", -1),
		.next_priority = (int32_t)integer_of(p, "next_prio", 0),
		.next_comm = text_of(view, p, "next_comm"),
	};
	ky_put_switch(trace, view->ts, &event);
	set_running(view, event.next_tid);
}

static void sched_waking(const struct view *view)
{
	ky_put_waking(view->trace, view->ts, (int32_t)integer_of(view->payload, "tid", -1),
		      text_of(view, view->payload, "comm"), view->running);
}

static void sched_fork(const struct view *view)
{
	const bt_field *p = view->payload;
	const int64_t tid = integer_of(p, "child_tid", -1);
	const int64_t pid = integer_of(p, "child_pid", tid);
	ky_put_task_new(view->trace, view->ts, (int32_t)integer_of(p, "parent_tid", -1),
			(int32_t)tid, text_of(view, p, "child_comm"), pid != tid);
}

static void sched_exit(const struct view *view)
{
	ky_put_task_exit(view->trace, view->ts, (int32_t)integer_of(view->payload, "tid", -1));
}

static void syscall_entry(const struct view *view, const char *name)
{
	char text[96];
	snprintf(text, sizeof(text), "sys_%s", name);
	ky_put_tid_begin(view->trace, view->ts, view->running, ky_string_z(view->trace, "syscall"),
			 ky_string_z(view->trace, text), args_of(view));
}

static void syscall_exit(const struct view *view, const char *name)
{
	char text[96];
	snprintf(text, sizeof(text), "sys_%s", name);
	ky_put_tid_end(view->trace, view->ts, view->running, ky_string_z(view->trace, "syscall"),
		       ky_string_z(view->trace, text), args_of(view));
}

static uint32_t cpu_track_name(const struct view *view, const char *what)
{
	char text[48];
	snprintf(text, sizeof(text), "%s Cpu %" PRId64, what, view->cpu < 0 ? 0 : view->cpu);
	return ky_string_z(view->trace, text);
}

static void irq_entry(const struct view *view)
{
	const uint32_t name = text_of(view, view->payload, "name");
	ky_put_cpu_begin(view->trace, view->ts, view->cpu < 0 ? 0 : (uint32_t)view->cpu,
			 cpu_track_name(view, "Irq"), name ? name : ky_string_z(view->trace, "irq"),
			 args_of(view));
}

static void irq_exit(const struct view *view)
{
	ky_put_cpu_end(view->trace, view->ts, view->cpu < 0 ? 0 : (uint32_t)view->cpu,
		       cpu_track_name(view, "Irq"), args_of(view));
}

/* Kernel events that say more than that they happened. False for all others. */
static bool known_event(const struct view *view)
{
	static const struct {
		const char *name;
		void (*put)(const struct view *view);
	} known[] = {
		{"sched_switch", sched_switch},     {"sched_waking", sched_waking},
		{"sched_wakeup", sched_waking},     {"sched_process_fork", sched_fork},
		{"sched_process_exit", sched_exit}, {"irq_handler_entry", irq_entry},
		{"irq_handler_exit", irq_exit},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(view->name, known[i].name) == 0) {
			known[i].put(view);
			return true;
		}
	if (view->running >= 0 && strncmp(view->name, "syscall_entry_", 14) == 0)
		syscall_entry(view, view->name + 14);
	else if (view->running >= 0 && strncmp(view->name, "syscall_exit_", 13) == 0)
		syscall_exit(view, view->name + 13);
	else
		return false;
	return true;
}

/* The thread that the event's context names, or KY_NONE. */
static uint32_t thread_of(const struct view *view)
{
	struct ky_trace *trace = view->trace;
	const int64_t tid = context_integer(view, "vtid", context_integer(view, "tid", -1));
	const int64_t pid = context_integer(view, "vpid", context_integer(view, "pid", -1));
	if (tid < 0 && pid < 0)
		return KY_NONE;
	const uint32_t thread =
		pid < 0 ? ky_thread_by_tid(trace, tid) : ky_thread(trace, pid, tid < 0 ? pid : tid);
	for (int i = 1; i < 3; i++) {
		const uint32_t name = text_of(view, view->contexts[i], "procname");
		ky_thread_name(trace, thread, name, KY_NAME_SYSTEM);
	}
	return thread;
}

static uint32_t cpu_track(const struct view *view)
{
	struct ky_trace *trace = view->trace;
	if (view->cpu < 0)
		return ky_track_global(trace, ky_string_z(trace, "CTF events"));
	const struct ky_track_spec spec = {
		.kind = KY_TRACK_CPU,
		.owner = (uint32_t)view->cpu,
		.name = cpu_track_name(view, "Events"),
	};
	return ky_track(trace, &spec);
}

static void put_log(const struct view *view, uint32_t thread, uint32_t message)
{
	/* LTTng's levels are syslog's: 0 is an emergency and 14 debugging. */
	const int level = (int)integer_of(view->payload, "loglevel", 6);
	const uint8_t priority = level <= 2   ? 7
				 : level == 3 ? 6
				 : level == 4 ? 5
				 : level <= 6 ? 4
					      : 3;
	ky_put_log(view->trace, view->ts, thread, priority, ky_string_z(view->trace, view->name),
		   message);
}

static void other_event(const struct view *view)
{
	struct ky_trace *trace = view->trace;
	const uint32_t thread = thread_of(view);
	const uint32_t track =
		thread == KY_NONE ? cpu_track(view) : ky_track_of_thread(trace, thread);
	const char *colon = strchr(view->name, ':');
	const uint32_t category =
		colon ? ky_string(trace, view->name, (size_t)(colon - view->name)) : 0;
	const uint32_t name = ky_string_z(trace, view->name);
	if (strcmp(view->name, "lttng_ust_cyg_profile:func_entry") == 0)
		ky_put_begin(trace, view->ts, track, category, name, args_of(view));
	else if (strcmp(view->name, "lttng_ust_cyg_profile:func_exit") == 0)
		ky_put_end(trace, view->ts, track, category, 0, 0);
	else
		ky_put_instant(trace, view->ts, track, category, name, args_of(view));
	const bool logs = strncmp(view->name, "lttng_ust_trace", 15) == 0 ||
			  strncmp(view->name, "lttng_ust_tracelog", 18) == 0;
	const uint32_t message = logs ? text_of(view, view->payload, "msg") : 0;
	if (message)
		put_log(view, thread, message);
}

void ky_ctf_event(struct ky_ctf_events *events, const bt_event *event, int64_t ts)
{
	const bt_stream_class *stream =
		bt_stream_borrow_class_const(bt_event_borrow_stream_const(event));
	const bt_packet *packet = bt_stream_class_supports_packets(stream)
					  ? bt_event_borrow_packet_const(event)
					  : NULL;
	struct view view = {
		.events = events,
		.trace = events->trace,
		.ts = ts,
		.name = bt_event_class_get_name(bt_event_borrow_class_const(event)),
		.payload = bt_event_borrow_payload_field_const(event),
		.contexts = {packet ? bt_packet_borrow_context_field_const(packet) : NULL,
			     bt_event_borrow_common_context_field_const(event),
			     bt_event_borrow_specific_context_field_const(event)},
		.running = -1,
	};
	if (!view.name)
		view.name = "(no name)";
	view.cpu = context_integer(&view, "cpu_id", -1);
	if (view.cpu >= CPUS_MAX)
		view.cpu = -1;
	if (view.cpu >= 0 && (uint64_t)view.cpu < events->running_room)
		view.running = events->running[view.cpu] - 1;
	if (!known_event(&view))
		other_event(&view);
}

void ky_ctf_events_free(struct ky_ctf_events *events)
{
	KY_ARRAY_FREE(events->running, events->running_room);
}
