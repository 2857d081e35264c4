/* SPDX-License-Identifier: MIT */
/*
 * fxt_event.c: events of a Fuchsia trace, by the rules of Perfetto's importer: an end closes the innermost span
 * whatever its name; counters are named after the event, the argument and the counter's id; asynchronous spans are
 * identified by their id alone.
 *
 * A flow's id belongs to one process, but a flow may cross processes. The first process that begins an id has it
 * for all; another that begins the same id has its own.
 *
 * And records of Fuchsia's kernel: which thread runs on which CPU, names of processes and threads, log messages.
 */
#include "formats/fxt/fxt_reader.h"
#include "model/kernel.h"

#include <errno.h>

struct event {
	uint32_t type;
	int64_t ns;
	uint32_t category, name;
	const struct ky_fxt_thread *thread;
	uint32_t args_count;
	struct ky_fxt_arg args[KY_FXT_ARGS_MAX];
};

static bool take_value(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head,
		       struct ky_fxt_arg *arg)
{
	uint32_t string;
	switch (arg->type) {
	case KY_FXT_ARG_INT32:
		arg->value = (uint64_t)(int64_t)(int32_t)ky_fxt_bits(head, 32, 63);
		return true;
	case KY_FXT_ARG_UINT32:
		arg->value = ky_fxt_bits(head, 32, 63);
		return true;
	case KY_FXT_ARG_BOOL:
		arg->value = head >> 32 & 1;
		return true;
	case KY_FXT_ARG_INT64:
	case KY_FXT_ARG_UINT64:
	case KY_FXT_ARG_DOUBLE:
	case KY_FXT_ARG_POINTER:
	case KY_FXT_ARG_KOID:
		return ky_fxt_word(record, &arg->value);
	case KY_FXT_ARG_STRING:
		if (!ky_fxt_string(fxt, record, ky_fxt_bits(head, 32, 47), &string))
			return false;
		arg->value = string;
		return true;
	default:
		return true;
	}
}

/* Take the arguments; args has room for KY_FXT_ARGS_MAX. */
static bool take_args(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint32_t count,
		      struct ky_fxt_arg *args)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t begin = record->at;
		uint64_t head;
		if (!ky_fxt_word(record, &head))
			return false;
		const uint32_t words = ky_fxt_bits(head, 4, 15);
		if (words == 0 || words > record->words - begin)
			return false;
		args[i] = (struct ky_fxt_arg){.type = ky_fxt_bits(head, 0, 3)};
		if (!ky_fxt_string(fxt, record, ky_fxt_bits(head, 16, 31), &args[i].name) ||
		    !take_value(fxt, record, head, &args[i]) || record->at > begin + words)
			return false;
		record->at = begin + words;
	}
	return true;
}

static double real_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void put_arg(struct ky_trace *trace, const struct ky_fxt_arg *arg)
{
	static const uint8_t types[] = {
		[KY_FXT_ARG_NULL] = KY_ARG_NULL,     [KY_FXT_ARG_INT32] = KY_ARG_INT,
		[KY_FXT_ARG_UINT32] = KY_ARG_UINT,   [KY_FXT_ARG_INT64] = KY_ARG_INT,
		[KY_FXT_ARG_UINT64] = KY_ARG_UINT,   [KY_FXT_ARG_DOUBLE] = KY_ARG_REAL,
		[KY_FXT_ARG_STRING] = KY_ARG_STRING, [KY_FXT_ARG_POINTER] = KY_ARG_POINTER,
		[KY_FXT_ARG_KOID] = KY_ARG_UINT,     [KY_FXT_ARG_BOOL] = KY_ARG_BOOL,
	};
	ky_args_add(trace, arg->name, arg->type < sizeof(types) ? types[arg->type] : KY_ARG_NULL,
		    arg->value);
}

static uint32_t put_args(struct ky_fxt_reader *fxt, const struct event *event)
{
	if (!event->args_count)
		return 0;
	ky_args_begin(fxt->trace);
	for (uint32_t i = 0; i < event->args_count; i++)
		put_arg(fxt->trace, &event->args[i]);
	return ky_args_end(fxt->trace);
}

static bool number_of(const struct ky_fxt_arg *arg, double *number)
{
	switch (arg->type) {
	case KY_FXT_ARG_INT32:
	case KY_FXT_ARG_INT64:
		*number = (double)(int64_t)arg->value;
		return true;
	case KY_FXT_ARG_UINT32:
	case KY_FXT_ARG_UINT64:
		*number = (double)arg->value;
		return true;
	case KY_FXT_ARG_DOUBLE:
		*number = real_of(arg->value);
		return true;
	default:
		return false;
	}
}

static uint32_t counter_track(struct ky_fxt_reader *fxt, const struct event *event,
			      uint32_t arg_name, uint64_t id)
{
	struct ky_trace *trace = fxt->trace;
	const char *const name = ky_text_of(trace, event->name);
	const char *const series = ky_text_of(trace, arg_name);
	return ky_track(trace, &(struct ky_track_spec){
				       .kind = KY_TRACK_PROCESS_COUNTER,
				       .owner = event->thread->process,
				       .name = ky_string_format(
					       trace, "%.500s:%.480s:%llu", name ? name : "",
					       series ? series : "", (unsigned long long)id),
				       .type = fxt->counter_type});
}

static void put_counter(struct ky_fxt_reader *fxt, const struct event *event, uint64_t id,
			uint64_t place)
{
	for (uint32_t i = 0; i < event->args_count; i++) {
		double number;
		if (number_of(&event->args[i], &number))
			ky_put_counter(fxt->trace, event->ns,
				       counter_track(fxt, event, event->args[i].name, id), number);
		else
			ky_problem(fxt->trace, "fuchsia_non_numeric_counters", KY_ERROR, place,
				   "a counter's value is not a number");
	}
}

static void put_async(struct ky_fxt_reader *fxt, const struct event *event, uint64_t id)
{
	struct ky_trace *trace = fxt->trace;
	const uint32_t args = put_args(fxt, event);
	const uint32_t track = ky_track(trace, &(struct ky_track_spec){.kind = KY_TRACK_GLOBAL,
								       .flags = KY_TRACK_ASYNC,
								       .owner = KY_NONE,
								       .type = fxt->async_type,
								       .id = id});
	if (track < trace->tracks.rows.count && !trace->tracks.name[track])
		trace->tracks.name[track] = event->name;
	if (event->type == KY_FXT_EVENT_ASYNC_BEGIN)
		ky_put_begin(trace, event->ns, track, event->category, event->name, args);
	else if (event->type == KY_FXT_EVENT_ASYNC_END)
		ky_put_end(trace, event->ns, track, event->category, event->name, args);
	else
		ky_put_instant(trace, event->ns, track, event->category, event->name, args);
}

/* Return the process that the id belongs to and 1; 0 is all. */
static uint64_t flow_scope(struct ky_fxt_reader *fxt, const struct event *event, uint64_t id)
{
	const uint64_t process = (uint64_t)event->thread->pid + 1;
	bool made;
	if (event->type != KY_FXT_EVENT_FLOW_BEGIN)
		return ky_pair_map_find(&fxt->flows, id, process) ? process : 0;
	uint64_t *owner = ky_pair_map_add(&fxt->flows, id, 0, &made);
	if (!owner) {
		fxt->trace->error = -ENOMEM;
		return 0;
	}
	if (made)
		*owner = process;
	if (*owner == process)
		return 0;
	if (!ky_pair_map_add(&fxt->flows, id, process, &made))
		fxt->trace->error = -ENOMEM;
	return process;
}

static void put_flow(struct ky_fxt_reader *fxt, const struct event *event, uint64_t id)
{
	static const enum ky_flow_step steps[] = {KY_FLOW_BEGIN, KY_FLOW_STEP, KY_FLOW_END};
	const uint64_t scope = flow_scope(fxt, event, id);
	ky_put_flow(fxt->trace, event->ns, event->thread->track,
		    steps[event->type - KY_FXT_EVENT_FLOW_BEGIN], KY_BIND_ENCLOSING,
		    ky_flow_key(fxt->trace, id, 0, 0, scope));
}

/* Put an event whose last word is an id. */
static bool put_with_id(struct ky_fxt_reader *fxt, const struct event *event,
			struct ky_fxt_record *record)
{
	uint64_t id;
	if (!ky_fxt_word(record, &id))
		return false;
	if (event->type == KY_FXT_EVENT_COUNTER)
		put_counter(fxt, event, id, record->place);
	else if (event->type <= KY_FXT_EVENT_ASYNC_END)
		put_async(fxt, event, id);
	else
		put_flow(fxt, event, id);
	return true;
}

static bool put_complete(struct ky_fxt_reader *fxt, const struct event *event,
			 struct ky_fxt_record *record)
{
	int64_t end;
	if (!ky_fxt_time(fxt, record, &end) || end < event->ns)
		return false;
	ky_put_complete(fxt->trace, event->ns, end - event->ns, event->thread->track,
			event->category, event->name, put_args(fxt, event));
	return true;
}

/* A marker of process and thread 0 is of none. */
static void put_loss(struct ky_fxt_reader *fxt, const struct event *event,
		     struct ky_fxt_thread *thread)
{
	const bool of_thread = thread->pid || thread->tid;
	if (of_thread && !thread->known)
		ky_fxt_thread_learn(fxt, thread);
	ky_put_loss_marker(fxt->trace, event->ns, of_thread ? thread->thread : KY_NONE,
			   put_args(fxt, event));
	fxt->provider->counts_losses = true;
}

bool ky_fxt_event(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	struct ky_fxt_thread inlined;
	struct event event;
	event.type = ky_fxt_bits(head, 16, 19);
	event.args_count = ky_fxt_bits(head, 20, 23);
	if (!ky_fxt_time(fxt, record, &event.ns))
		return false;
	struct ky_fxt_thread *thread =
		ky_fxt_thread(fxt, record, ky_fxt_bits(head, 24, 31), &inlined);
	if (!thread || !ky_fxt_string(fxt, record, ky_fxt_bits(head, 32, 47), &event.category) ||
	    !ky_fxt_string(fxt, record, ky_fxt_bits(head, 48, 63), &event.name) ||
	    (event.args_count && !take_args(fxt, record, event.args_count, event.args)))
		return false;
	if (event.type == KY_FXT_EVENT_INSTANT &&
	    ky_is_loss_marker(fxt->trace, event.category, event.name)) {
		put_loss(fxt, &event, thread);
		return true;
	}
	if (!thread->known)
		ky_fxt_thread_learn(fxt, thread);
	event.thread = thread;
	switch (event.type) {
	case KY_FXT_EVENT_BEGIN:
		ky_put_begin(fxt->trace, event.ns, thread->track, event.category, event.name,
			     put_args(fxt, &event));
		return true;
	case KY_FXT_EVENT_END:
		ky_put_end(fxt->trace, event.ns, thread->track, 0, 0, put_args(fxt, &event));
		return true;
	case KY_FXT_EVENT_INSTANT:
		ky_put_instant(fxt->trace, event.ns, thread->track, event.category, event.name,
			       put_args(fxt, &event));
		return true;
	case KY_FXT_EVENT_COMPLETE:
		return put_complete(fxt, &event, record);
	default:
		return event.type <= KY_FXT_EVENT_FLOW_END && put_with_id(fxt, &event, record);
	}
}

/* ---- records of the kernel ---- */

/* Idle threads have this weight; in old records, priority 0, and no kernel object names their process. */
#define IDLE_WEIGHT INT32_MIN
#define LOG_PRIORITY 4

/* An idle CPU runs nothing, as in Perfetto. */
static int32_t tid_of(uint64_t koid, bool idle)
{
	return idle ? -1 : (int32_t)(uint32_t)koid;
}

static bool is_idle(const struct ky_fxt_reader *fxt, const struct ky_fxt_thread *thread,
		    int32_t priority)
{
	return priority == 0 && !ky_pair_map_find(&fxt->owned, (uint64_t)thread->tid, 0);
}

static uint32_t state_of(const struct ky_fxt_reader *fxt, uint32_t state)
{
	return state < sizeof(fxt->states) / sizeof(fxt->states[0]) ? fxt->states[state] : 0;
}

static bool put_legacy_switch(struct ky_fxt_reader *fxt, struct ky_fxt_record *record,
			      uint64_t head)
{
	struct ky_fxt_thread in_place[2];
	int64_t ns;
	if (!ky_fxt_time(fxt, record, &ns))
		return false;
	struct ky_fxt_thread *out =
		ky_fxt_thread(fxt, record, ky_fxt_bits(head, 28, 35), &in_place[0]);
	struct ky_fxt_thread *in =
		ky_fxt_thread(fxt, record, ky_fxt_bits(head, 36, 43), &in_place[1]);
	if (!out || !in)
		return false;
	struct ky_switch event = {
		.cpu = ky_fxt_bits(head, 16, 23),
		.prev_state = state_of(fxt, ky_fxt_bits(head, 24, 27)),
		.prev_priority = (int32_t)ky_fxt_bits(head, 44, 51),
		.next_priority = (int32_t)ky_fxt_bits(head, 52, 59),
	};
	const bool out_idle = is_idle(fxt, out, event.prev_priority);
	const bool in_idle = is_idle(fxt, in, event.next_priority);
	if (!out_idle && !out->known)
		ky_fxt_thread_learn(fxt, out);
	if (!in_idle && !in->known)
		ky_fxt_thread_learn(fxt, in);
	event.prev_tid = tid_of((uint64_t)out->tid, out_idle);
	event.next_tid = tid_of((uint64_t)in->tid, in_idle);
	ky_put_switch(fxt->trace, ns, &event);
	return true;
}

/* Find an argument that must be an int32; 0 when it is missing. */
static bool find_weight(const struct ky_fxt_arg *args, uint32_t count, uint32_t name,
			int32_t *weight)
{
	*weight = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (args[i].name != name)
			continue;
		if (args[i].type != KY_FXT_ARG_INT32)
			return false;
		*weight = (int32_t)args[i].value;
	}
	return true;
}

static bool put_switch(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	struct ky_fxt_arg args[KY_FXT_ARGS_MAX];
	const uint32_t count = ky_fxt_bits(head, 16, 19);
	struct ky_switch event = {.cpu = ky_fxt_bits(head, 20, 35),
				  .prev_state = state_of(fxt, ky_fxt_bits(head, 36, 39))};
	int64_t ns;
	uint64_t out;
	uint64_t in;
	if (!ky_fxt_time(fxt, record, &ns) || !ky_fxt_word(record, &out) ||
	    !ky_fxt_word(record, &in) || !take_args(fxt, record, count, args) ||
	    !find_weight(args, count, fxt->outgoing_weight, &event.prev_priority) ||
	    !find_weight(args, count, fxt->incoming_weight, &event.next_priority))
		return false;
	event.prev_tid = tid_of(out, event.prev_priority == IDLE_WEIGHT);
	event.next_tid = tid_of(in, event.next_priority == IDLE_WEIGHT);
	ky_put_switch(fxt->trace, ns, &event);
	return true;
}

static bool put_wakeup(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	struct ky_fxt_arg args[KY_FXT_ARGS_MAX];
	const uint32_t count = ky_fxt_bits(head, 16, 19);
	int64_t ns;
	uint64_t thread;
	int32_t weight;
	int32_t waker = -1;
	if (!ky_fxt_time(fxt, record, &ns) || !ky_fxt_word(record, &thread) ||
	    !take_args(fxt, record, count, args) || !find_weight(args, count, fxt->weight, &weight))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (args[i].name == fxt->waker && args[i].type == KY_FXT_ARG_KOID)
			waker = tid_of(args[i].value, false);
	if (weight != IDLE_WEIGHT)
		ky_put_waking(fxt->trace, ns, tid_of(thread, false), 0, waker);
	return true;
}

bool ky_fxt_sched(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	switch (ky_fxt_bits(head, 60, 63)) {
	case KY_FXT_SCHED_LEGACY_SWITCH:
		return put_legacy_switch(fxt, record, head);
	case KY_FXT_SCHED_SWITCH:
		return put_switch(fxt, record, head);
	case KY_FXT_SCHED_WAKEUP:
		return put_wakeup(fxt, record, head);
	default:
		return true;
	}
}

static bool name_thread(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint32_t count,
			uint64_t koid, uint32_t name)
{
	struct ky_fxt_arg args[KY_FXT_ARGS_MAX];
	int64_t pid = -1;
	if (!take_args(fxt, record, count, args))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (args[i].name != fxt->process_key)
			continue;
		if (args[i].type != KY_FXT_ARG_KOID)
			return false;
		pid = ky_fxt_koid(args[i].value);
	}
	bool made;
	if (pid > 0 && !ky_pair_map_add(&fxt->owned, (uint64_t)ky_fxt_koid(koid), 0, &made))
		fxt->trace->error = -ENOMEM;
	const uint32_t thread = pid >= 0 ? ky_thread(fxt->trace, pid, ky_fxt_koid(koid))
					 : ky_thread_by_tid(fxt->trace, ky_fxt_koid(koid));
	ky_thread_name(fxt->trace, thread, name, KY_NAME_TRACE);
	return true;
}

bool ky_fxt_kernel_object(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	const uint32_t type = ky_fxt_bits(head, 16, 23);
	uint64_t koid;
	uint32_t name;
	if (!ky_fxt_word(record, &koid) ||
	    !ky_fxt_string(fxt, record, ky_fxt_bits(head, 24, 39), &name))
		return false;
	if (type == KY_FXT_OBJECT_THREAD)
		return name_thread(fxt, record, ky_fxt_bits(head, 40, 43), koid, name);
	if (type == KY_FXT_OBJECT_PROCESS)
		ky_process_name(fxt->trace, ky_process(fxt->trace, ky_fxt_koid(koid)), name,
				KY_NAME_TRACE);
	return true;
}

bool ky_fxt_log(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head)
{
	struct ky_fxt_thread inlined;
	const uint32_t bytes = ky_fxt_bits(head, 16, 30);
	const uint8_t *text;
	int64_t ns;
	if (!ky_fxt_time(fxt, record, &ns))
		return false;
	struct ky_fxt_thread *thread =
		ky_fxt_thread(fxt, record, ky_fxt_bits(head, 32, 39), &inlined);
	if (!thread || !ky_fxt_bytes(record, bytes, &text))
		return false;
	if (!thread->known)
		ky_fxt_thread_learn(fxt, thread);
	ky_put_log(fxt->trace, ns, thread->thread, LOG_PRIORITY, 0,
		   ky_string(fxt->trace, (const char *)text, bytes));
	return true;
}
