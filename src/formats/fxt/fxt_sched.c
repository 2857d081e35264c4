/* SPDX-License-Identifier: MIT */
/*
 * fxt_sched.c: records of Fuchsia's kernel: which thread runs on which CPU, names of processes and threads, and
 * log messages.
 */
#include <errno.h>

#include "formats/fxt/fxt_reader.h"
#include "model/kernel.h"

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
	    !ky_fxt_word(record, &in) || !ky_fxt_args(fxt, record, count, args) ||
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
	    !ky_fxt_args(fxt, record, count, args) ||
	    !find_weight(args, count, fxt->weight, &weight))
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
	if (!ky_fxt_args(fxt, record, count, args))
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
