/* SPDX-License-Identifier: MIT */
/*
 * binder.c: Android's calls between processes, by the rules of Perfetto's tracker.
 *
 *   sender    transaction(1) ├─ binder transaction ──────────────────┤ received(2)
 *                                 ╲ flow
 *   receiver                received(1) ├─ binder reply ──┤ transaction(2, reply)
 *
 * A call without a reply is an instant at both ends. A call that fails has no second half; if binder's commands are in
 * the trace, a stack for each thread holds the state of its calls, and the return command of the failure ends the
 * slice.
 */
#include "base/array.h"
#include "model/kernel_state.h"

#include <stdio.h>

#define ONE_WAY 1u
/* Deeper frames are dropped: no thread has that many. */
#define FRAMES_MAX (1u << 22)

/* Commands by their type and number; the size of what they carry is in the bits above. */
enum {
	BC_TRANSACTION = 0x6300,
	BC_REPLY = 0x6301,
	BC_TRANSACTION_SG = 0x6311,
	BC_REPLY_SG = 0x6312,
	BR_TRANSACTION = 0x7202,
	BR_REPLY = 0x7203,
	BR_DEAD_REPLY = 0x7205,
	BR_TRANSACTION_COMPLETE = 0x7206,
	BR_FAILED_REPLY = 0x7211,
	BR_FROZEN_REPLY = 0x7212,
	BR_ONEWAY_SPAM_SUSPECT = 0x7213,
	BR_TRANSACTION_PENDING_FROZEN = 0x7214
};

enum frame_state {
	SENT_COMMAND,
	SENT,
	SENT_COMPLETE,
	SENT_ANSWERED,
	RECEIVED,
	RECEIVED_RETURN,
	REPLY_COMMAND,
	REPLIED
};

static uint32_t thread_track(struct ky_trace *trace, int32_t tid)
{
	uint32_t thread = ky_kernel_thread(trace, tid);
	return thread == KY_NONE ? KY_NONE : ky_track_of_thread(trace, thread);
}

/* ---- the stacks of the threads ---- */

static struct ky_binder_frame *top_frame(struct ky_trace *trace, int32_t tid)
{
	struct ky_binder *binder = &trace->build->kernel->binder;
	const uint64_t *top = ky_pair_map_find(&binder->tops, (uint64_t)tid, 0);
	return top && *top ? &binder->frames[*top - 1] : NULL;
}

static void push_frame(struct ky_trace *trace, int32_t tid, uint8_t state)
{
	struct ky_binder *binder = &trace->build->kernel->binder;
	bool made;
	uint64_t *top = ky_pair_map_add(&binder->tops, (uint64_t)tid, 0, &made);
	if (!top || binder->frames_count >= FRAMES_MAX ||
	    !KY_ARRAY_GROW_ZERO(binder->frames, binder->frames_room,
				(uint64_t)binder->frames_count + 1))
		return;
	binder->frames[binder->frames_count++] =
		(struct ky_binder_frame){.below = (uint32_t)*top, .state = state};
	*top = binder->frames_count;
}

static void pop_frame(struct ky_trace *trace, int32_t tid)
{
	struct ky_binder *binder = &trace->build->kernel->binder;
	uint64_t *top = ky_pair_map_find(&binder->tops, (uint64_t)tid, 0);
	if (top && *top)
		*top = binder->frames[*top - 1].below;
}

/* ---- calls ---- */

static const char *flags_text(uint32_t flags, char *text, size_t room)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} meanings[] = {
		{0x01, "this is a one-way call: async, no return; "},
		{0x04, "contents are the components root object; "},
		{0x08, "contents are a 32-bit status code; "},
		{0x10, "allow replies with file descriptors; "},
	};
	int used = snprintf(text, room, "0x%x %s", flags, flags ? "" : "No Flags Set");
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (flags & meanings[i].flag)
			used += snprintf(text + used, room - (size_t)used, "%s", meanings[i].text);
	return text;
}

static uint32_t call_args(struct ky_trace *trace, int32_t tid, const struct ky_binder_call *call)
{
	char text[256];
	ky_args_begin(trace);
	ky_arg_int(trace, ky_string_z(trace, "transaction id"), call->id);
	ky_arg_int(trace, ky_string_z(trace, "destination node"), call->dest_node);
	ky_arg_int(trace, ky_string_z(trace, "destination process"), call->dest_tgid);
	ky_arg_bool(trace, ky_string_z(trace, "reply transaction?"), call->reply);
	ky_arg_string(trace, ky_string_z(trace, "flags"),
		      ky_string_z(trace, flags_text(call->flags, text, sizeof(text))));
	if (call->code)
		ky_arg_string(trace, ky_string_z(trace, "code"), call->code);
	ky_arg_uint(trace, ky_string_z(trace, "calling tid"), (uint64_t)tid);
	return ky_args_end(trace);
}

/* The receiver. */
static uint32_t dest_args(struct ky_trace *trace, int32_t tid)
{
	uint32_t thread = ky_kernel_thread(trace, tid);
	uint32_t name = thread == KY_NONE ? 0 : trace->threads.name[thread];
	ky_args_begin(trace);
	ky_arg_int(trace, ky_string_z(trace, "destination thread"), tid);
	if (name)
		ky_arg_string(trace, ky_string_z(trace, "destination name"), name);
	return ky_args_end(trace);
}

static uint32_t send_slice(struct ky_trace *trace, int64_t ts, int32_t tid,
			   const struct ky_binder_call *call)
{
	uint32_t track = thread_track(trace, tid);
	uint32_t args = call_args(trace, tid, call);
	uint32_t category = ky_string_z(trace, "binder");
	if (track == KY_NONE)
		return KY_NONE;
	if (call->reply)
		return ky_build_end(trace, ts, track, 0, 0,
				    ky_args_join(trace, args, dest_args(trace, call->dest_tid)));
	if (call->flags & ONE_WAY)
		return ky_build_instant(trace, ts, track, category,
					ky_string_z(trace, "binder transaction async"), args);
	return ky_build_begin(trace, ts, track, category, ky_string_z(trace, "binder transaction"),
			      args);
}

static void advance_sender(struct ky_trace *trace, int32_t tid, const struct ky_binder_call *call)
{
	struct ky_binder_frame *frame = top_frame(trace, tid);
	if (!frame)
		return;
	if (frame->state == SENT_COMMAND || frame->state == REPLY_COMMAND) {
		frame->state = frame->state == SENT_COMMAND ? SENT : REPLIED;
		frame->ends_slice = !(call->flags & ONE_WAY) && !call->reply;
		frame->one_way = (call->flags & ONE_WAY) != 0;
	} else if (frame->state == RECEIVED) {
		pop_frame(trace, tid); /* no commands in this trace */
	}
}

void ky_binder_transaction(struct ky_trace *trace, int64_t ts, int32_t tid,
			   const struct ky_binder_call *call)
{
	struct ky_binder *binder = &trace->build->kernel->binder;
	const struct ky_binder_open open = {
		.slice = send_slice(trace, ts, tid, call),
		.args = call->flags & ONE_WAY ? call_args(trace, tid, call) : 0,
		.reply = call->reply,
		.one_way = (call->flags & ONE_WAY) != 0,
	};
	bool made;
	uint64_t *slot = ky_pair_map_add(&binder->open_by_id, (uint64_t)call->id, 0, &made);
	if (slot &&
	    KY_ARRAY_GROW_ZERO(binder->open, binder->open_room, (uint64_t)binder->open_count + 1)) {
		binder->open[binder->open_count] = open;
		*slot = ++binder->open_count;
	}
	advance_sender(trace, tid, call);
}

static void receive(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t track,
		    const struct ky_binder_open *open)
{
	uint32_t category = ky_string_z(trace, "binder");
	uint32_t slice;
	if (open->one_way) {
		slice = ky_build_instant(trace, ts, track, category,
					 ky_string_z(trace, "binder async rcv"), open->args);
	} else {
		uint32_t args = dest_args(trace, tid);
		if (open->slice < trace->slices.rows.count)
			trace->slices.args[open->slice] =
				ky_args_join(trace, trace->slices.args[open->slice], args);
		push_frame(trace, tid, RECEIVED);
		slice = ky_build_begin(trace, ts, track, category,
				       ky_string_z(trace, "binder reply"), 0);
	}
	if (open->slice != KY_NONE && slice != KY_NONE)
		ky_flows_add(trace, open->slice, slice, (struct ky_flow_parts){0});
}

void ky_binder_received(struct ky_trace *trace, int64_t ts, int32_t tid, int32_t id)
{
	struct ky_binder *binder = &trace->build->kernel->binder;
	const uint64_t *slot = ky_pair_map_find(&binder->open_by_id, (uint64_t)id, 0);
	uint32_t track = thread_track(trace, tid);
	if (!slot || !*slot || track == KY_NONE)
		return;
	const struct ky_binder_open open = binder->open[*slot - 1];
	ky_pair_map_remove(&binder->open_by_id, (uint64_t)id, 0);
	if (!open.reply) {
		receive(trace, ts, tid, track, &open);
		return;
	}
	struct ky_binder_frame *frame = top_frame(trace, tid);
	if (frame && frame->state == SENT_COMPLETE)
		frame->state = SENT_ANSWERED;
	(void)ky_build_end(trace, ts, track, 0, 0, 0);
}

/* ---- commands ---- */

static void failed(struct ky_trace *trace, int64_t ts, int32_t tid,
		   const struct ky_binder_frame *frame)
{
	uint32_t track = thread_track(trace, tid);
	if (frame->state == SENT_ANSWERED || frame->state == RECEIVED ||
	    frame->state == RECEIVED_RETURN)
		return;
	if (frame->state != SENT_COMMAND && frame->ends_slice && track != KY_NONE)
		(void)ky_build_end(trace, ts, track, 0, 0, 0);
	pop_frame(trace, tid);
}

static void complete(struct ky_trace *trace, int32_t tid, struct ky_binder_frame *frame)
{
	if (frame->state == SENT && !frame->one_way)
		frame->state = SENT_COMPLETE;
	else if (frame->state == SENT || frame->state == REPLIED || frame->state == SENT_COMMAND)
		pop_frame(trace, tid);
}

void ky_binder_command(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t command)
{
	struct ky_binder_frame *frame = top_frame(trace, tid);
	command &= 0xFFFF;
	if (command == BC_TRANSACTION || command == BC_TRANSACTION_SG)
		push_frame(trace, tid, SENT_COMMAND);
	if (!frame)
		return;
	switch (command) {
	case BC_REPLY:
	case BC_REPLY_SG:
		if (frame->state == RECEIVED_RETURN)
			frame->state = REPLY_COMMAND;
		break;
	case BR_TRANSACTION:
		if (frame->state == RECEIVED)
			frame->state = RECEIVED_RETURN;
		break;
	case BR_REPLY:
		if (frame->state == SENT_ANSWERED)
			pop_frame(trace, tid);
		break;
	case BR_TRANSACTION_COMPLETE:
	case BR_ONEWAY_SPAM_SUSPECT:
		complete(trace, tid, frame);
		break;
	case BR_DEAD_REPLY:
	case BR_FAILED_REPLY:
	case BR_FROZEN_REPLY:
	case BR_TRANSACTION_PENDING_FROZEN:
		failed(trace, ts, tid, frame);
		break;
	default:
		break;
	}
}

void ky_binder_free(struct ky_binder *binder)
{
	KY_ARRAY_FREE(binder->open, binder->open_room);
	KY_ARRAY_FREE(binder->frames, binder->frames_room);
	ky_pair_map_free(&binder->open_by_id);
	ky_pair_map_free(&binder->tops);
}
