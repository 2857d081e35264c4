/* SPDX-License-Identifier: MIT */
/* ctf_event.c: an event with its fields, as what it means in the model. See ctf_reader.h. */
#include "formats/ctf/ctf_reader.h"

#include "base/array.h"
#include "model/kernel.h"
#include "model/trace.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- fields as arguments ---- */

#define KEY_BYTES 512u
#define NESTING_MAX 16u
#define ELEMENTS_MAX 4096u /* of an array; a trace with longer ones is read without the rest */

/* The key of the field that is being added, and how deep it is. */
struct key {
	char text[KEY_BYTES];
	size_t bytes;
	unsigned depth;
};

static void add(struct ky_trace *trace, struct key *key, const bt_field *field);

static bool is_a(const bt_field *field, bt_field_class_type type)
{
	return bt_field_class_type_is(bt_field_get_class_type(field), type);
}

/* Add the field under the key, which is longer by the part that snprintf() wrote behind it. */
static void add_part(struct ky_trace *trace, struct key *key, const bt_field *field, int part_bytes)
{
	const size_t had = key->bytes;
	if (part_bytes >= 0 && had + (size_t)part_bytes < KEY_BYTES && key->depth < NESTING_MAX) {
		key->bytes = had + (size_t)part_bytes;
		key->depth++;
		add(trace, key, field);
		key->depth--;
	} else {
		ky_problem(trace, "ctf_field_too_deep", KY_DATA_LOSS, KY_NO_PLACE,
			   "a field is nested too deep, or its name is too long: %.100s",
			   key->text);
	}
	key->bytes = had;
}

static void add_members(struct ky_trace *trace, struct key *key, const bt_field *field)
{
	const bt_field_class *class = bt_field_borrow_class_const(field);
	const uint64_t count = bt_field_class_structure_get_member_count(class);
	for (uint64_t i = 0; i < count; i++) {
		const bt_field_class_structure_member *member =
			bt_field_class_structure_borrow_member_by_index_const(class, i);
		add_part(trace, key,
			 bt_field_structure_borrow_member_field_by_index_const(field, i),
			 snprintf(key->text + key->bytes, KEY_BYTES - key->bytes, "%s%s",
				  key->bytes ? "." : "",
				  bt_field_class_structure_member_get_name(member)));
	}
}

static void add_elements(struct ky_trace *trace, struct key *key, const bt_field *field)
{
	const uint64_t length = bt_field_array_get_length(field);
	for (uint64_t i = 0; i < length && i < ELEMENTS_MAX; i++)
		add_part(trace, key, bt_field_array_borrow_element_field_by_index_const(field, i),
			 snprintf(key->text + key->bytes, KEY_BYTES - key->bytes, "[%" PRIu64 "]",
				  i));
	if (length > ELEMENTS_MAX)
		ky_problems(trace, "ctf_array_cut", KY_DATA_LOSS, KY_NO_PLACE, 1);
}

/* Return the first label of an enumeration's value, or NULL. */
static const char *label_of(const bt_field *field)
{
	bt_field_class_enumeration_mapping_label_array labels = NULL;
	uint64_t count = 0;
	bt_field_enumeration_get_mapping_labels_status status =
		BT_FIELD_ENUMERATION_GET_MAPPING_LABELS_STATUS_MEMORY_ERROR;
	if (is_a(field, BT_FIELD_CLASS_TYPE_UNSIGNED_ENUMERATION))
		status = bt_field_enumeration_unsigned_get_mapping_labels(field, &labels, &count);
	else if (is_a(field, BT_FIELD_CLASS_TYPE_SIGNED_ENUMERATION))
		status = bt_field_enumeration_signed_get_mapping_labels(field, &labels, &count);
	return status == BT_FIELD_ENUMERATION_GET_MAPPING_LABELS_STATUS_OK && count ? labels[0]
										    : NULL;
}

static void add_integer(struct ky_trace *trace, uint32_t key, const bt_field *field)
{
	const char *label = is_a(field, BT_FIELD_CLASS_TYPE_ENUMERATION) ? label_of(field) : NULL;
	if (label)
		ky_arg_string(trace, key, ky_string_z(trace, label));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER))
		ky_arg_int(trace, key, bt_field_integer_signed_get_value(field));
	else
		ky_arg_uint(trace, key, bt_field_integer_unsigned_get_value(field));
}

static void add_scalar(struct ky_trace *trace, uint32_t key, const bt_field *field)
{
	if (is_a(field, BT_FIELD_CLASS_TYPE_BOOL))
		ky_arg_bool(trace, key, bt_field_bool_get_value(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_BIT_ARRAY))
		ky_arg_uint(trace, key, bt_field_bit_array_get_value_as_integer(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_INTEGER))
		add_integer(trace, key, field);
	else if (is_a(field, BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL))
		ky_arg_real(trace, key, (double)bt_field_real_single_precision_get_value(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL))
		ky_arg_real(trace, key, bt_field_real_double_precision_get_value(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_STRING))
		ky_arg_string(trace, key,
			      ky_string(trace, bt_field_string_get_value(field),
					(size_t)bt_field_string_get_length(field)));
}

static void add(struct ky_trace *trace, struct key *key, const bt_field *field)
{
	if (is_a(field, BT_FIELD_CLASS_TYPE_STRUCTURE)) {
		add_members(trace, key, field);
	} else if (is_a(field, BT_FIELD_CLASS_TYPE_ARRAY)) {
		add_elements(trace, key, field);
	} else if (is_a(field, BT_FIELD_CLASS_TYPE_OPTION)) {
		const bt_field *content = bt_field_option_borrow_field_const(field);
		if (content)
			add_part(trace, key, content, 0);
	} else if (is_a(field, BT_FIELD_CLASS_TYPE_VARIANT)) {
		add_part(trace, key, bt_field_variant_borrow_selected_option_field_const(field), 0);
	} else {
		add_scalar(trace, ky_string(trace, key->text, key->bytes), field);
	}
}

/* Add the field to the set being made; it may be NULL. */
static void put_args(struct ky_trace *trace, const bt_field *field)
{
	struct key key = {.bytes = 0};
	if (field)
		add(trace, &key, field);
}

/* Return the member of a structure by its name, or NULL; structure may be NULL. */
static const bt_field *member_of(const bt_field *structure, const char *name)
{
	if (!structure || !is_a(structure, BT_FIELD_CLASS_TYPE_STRUCTURE))
		return NULL;
	return bt_field_structure_borrow_member_field_by_name_const(structure, name);
}

/* Get its value as an integer; false when it is not one. */
static bool get_integer(const bt_field *field, int64_t *value)
{
	if (!field || !is_a(field, BT_FIELD_CLASS_TYPE_INTEGER))
		return false;
	*value = is_a(field, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)
			 ? bt_field_integer_signed_get_value(field)
			 : (int64_t)bt_field_integer_unsigned_get_value(field);
	return true;
}

/* Return its value as text: a string, or an array of characters copied to text; NULL for anything else. */
static const char *get_text(const bt_field *field, char *text, size_t bytes)
{
	if (!field)
		return NULL;
	if (is_a(field, BT_FIELD_CLASS_TYPE_STRING))
		return bt_field_string_get_value(field);
	if (!is_a(field, BT_FIELD_CLASS_TYPE_ARRAY))
		return NULL;
	const uint64_t length = bt_field_array_get_length(field);
	size_t used = 0;
	int64_t letter = 1;
	while (used < length && used + 1 < bytes && letter &&
	       get_integer(bt_field_array_borrow_element_field_by_index_const(field, used),
			   &letter))
		text[used++] = (char)letter;
	text[used] = '\0';
	return text;
}

/* ---- events ---- */

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
	return get_integer(member_of(structure, name), &value) ? value : otherwise;
}

static int64_t context_integer(const struct view *view, const char *name, int64_t otherwise)
{
	int64_t value;
	for (int i = 2; i >= 0; i--)
		if (get_integer(member_of(view->contexts[i], name), &value))
			return value;
	return otherwise;
}

static uint32_t text_of(const struct view *view, const bt_field *structure, const char *name)
{
	char buffer[64];
	const char *text = get_text(member_of(structure, name), buffer, sizeof(buffer));
	return text ? ky_string_z(view->trace, text) : 0;
}

static uint32_t args_of(const struct view *view)
{
	ky_args_begin(view->trace);
	put_args(view->trace, view->payload);
	put_args(view->trace, view->contexts[2]);
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
	ky_put_tid_begin(view->trace, view->ts, view->running, ky_string_z(view->trace, "syscall"),
			 ky_string_format(view->trace, "sys_%s", name), args_of(view));
}

static void syscall_exit(const struct view *view, const char *name)
{
	ky_put_tid_end(view->trace, view->ts, view->running, ky_string_z(view->trace, "syscall"),
		       ky_string_format(view->trace, "sys_%s", name), args_of(view));
}

static void irq_entry(const struct view *view)
{
	const uint32_t name = text_of(view, view->payload, "name");
	ky_put_cpu_begin(view->trace, view->ts, view->cpu < 0 ? 0 : (uint32_t)view->cpu, "Irq",
			 name ? name : ky_string_z(view->trace, "irq"), args_of(view));
}

static void irq_exit(const struct view *view)
{
	ky_put_cpu_end(view->trace, view->ts, view->cpu < 0 ? 0 : (uint32_t)view->cpu, "Irq",
		       args_of(view));
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
		.name = ky_string_format(trace, "Events Cpu %" PRId64, view->cpu),
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
