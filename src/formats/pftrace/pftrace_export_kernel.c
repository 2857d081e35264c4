/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export_kernel.c: kernel data as ftrace events: scheduling slices as switches, kernel events with their
 * fields as generic ones, log messages as Android's.
 */
#include "formats/pftrace/pftrace_export.h"

#include "formats/arg_tree.h"
#include "formats/pftrace/ftrace_events.h"

#include <errno.h>
#include <stdlib.h>

/* Return the mask of a state's letters, in the numbering that readers assume without a kernel version. */
static uint64_t state_mask(const struct ky_trace *trace, uint32_t state)
{
	static const char letters[] = "SDTtXZxKWPN";
	const struct ky_text text = ky_export_text(trace, state);
	uint64_t mask = 0;
	for (uint32_t i = 0; i < text.bytes; i++) {
		const char *at = text.data[i] ? strchr(letters, text.data[i]) : NULL;
		if (at)
			mask |= UINT64_C(1) << (at - letters);
		else if (text.data[i] == '+')
			mask |= 2048;
		else if (text.data[i] == 'I')
			mask |= 2;
	}
	return mask;
}

static void put_task(struct ky_pf_exporter *w, uint32_t row, uint32_t comm, uint32_t pid,
		     uint32_t prio)
{
	const struct ky_sched *s = &w->trace->sched;
	if (row == KY_NONE || w->trace->threads.is_idle[s->thread[row]]) {
		ky_proto_bytes(&w->emit.part, comm, "swapper", 7);
		ky_proto_uint(&w->emit.part, pid, 0);
		ky_proto_uint(&w->emit.part, prio, 120);
		return;
	}
	ky_pf_export_string(w, &w->emit.part, comm, w->trace->threads.name[s->thread[row]]);
	ky_proto_uint(&w->emit.part, pid, ky_address_tid(w->trace, s->thread[row]));
	ky_proto_uint(&w->emit.part, prio, (uint64_t)(int64_t)s->priority[row]);
}

/* Write an event whose own message is in part. */
static void send_event(struct ky_pf_exporter *w, uint32_t cpu, int64_t ts, uint32_t tid,
		       uint32_t field)
{
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_FTRACE_EVENT_TIMESTAMP, (uint64_t)ts);
	ky_proto_uint(&w->emit.inner, KY_PF_FTRACE_EVENT_PID, tid);
	ky_proto_message(&w->emit.inner, field, &w->emit.part);
	ky_proto_uint(&w->emit.body, KY_PF_FTRACE_EVENT_BUNDLE_CPU, cpu);
	ky_proto_message(&w->emit.body, KY_PF_FTRACE_EVENT_BUNDLE_EVENT, &w->emit.inner);
	ky_pf_export_send_file(w, KY_PF_TRACE_PACKET_FTRACE_EVENTS);
}

static void send_switch(void *self, uint32_t cpu, int64_t ts, uint32_t prev, uint32_t next)
{
	struct ky_pf_exporter *w = self;
	const struct ky_sched *s = &w->trace->sched;
	w->emit.part.used = 0;
	put_task(w, prev, KY_PF_SCHED_SWITCH_PREV_COMM, KY_PF_SCHED_SWITCH_PREV_PID,
		 KY_PF_SCHED_SWITCH_PREV_PRIO);
	ky_proto_uint(&w->emit.part, KY_PF_SCHED_SWITCH_PREV_STATE,
		      prev == KY_NONE ? 0 : state_mask(w->trace, s->end_state[prev]));
	put_task(w, next, KY_PF_SCHED_SWITCH_NEXT_COMM, KY_PF_SCHED_SWITCH_NEXT_PID,
		 KY_PF_SCHED_SWITCH_NEXT_PRIO);
	send_event(w, cpu, ts, prev == KY_NONE ? 0 : ky_address_tid(w->trace, s->thread[prev]),
		   KY_PF_FTRACE_EVENT_SCHED_SWITCH);
}

void ky_pf_export_sched(void *self, const struct ky_walk_item *item)
{
	struct ky_pf_exporter *w = self;
	if (!ky_cpu_switches_add(&w->switches, w->trace, item, send_switch, w))
		w->emit.out->error = -ENOMEM;
}

void ky_pf_export_sched_end(struct ky_pf_exporter *w)
{
	ky_cpu_switches_end(&w->switches, send_switch, w);
}

/* ---- kernel events as they are ---- */

static void put_field(struct ky_pf_exporter *w, uint32_t arg)
{
	const uint64_t value = w->trace->args.value[arg];
	w->emit.inner.used = 0;
	ky_pf_emit_text(&w->emit, &w->emit.inner, KY_PF_GENERIC_FTRACE_FIELD_NAME,
			ky_arg_key(w->trace, arg));
	switch (w->trace->args.type[arg]) {
	case KY_ARG_INT:
	case KY_ARG_BOOL:
		ky_proto_uint(&w->emit.inner, KY_PF_GENERIC_FTRACE_FIELD_INT_VALUE, value);
		break;
	case KY_ARG_UINT:
	case KY_ARG_POINTER:
		ky_proto_uint(&w->emit.inner, KY_PF_GENERIC_FTRACE_FIELD_UINT_VALUE, value);
		break;
	case KY_ARG_STRING:
	case KY_ARG_JSON:
		ky_pf_export_string(w, &w->emit.inner, KY_PF_GENERIC_FTRACE_FIELD_STR_VALUE,
				    (uint32_t)value);
		break;
	default:
		w->left->args++;
		return;
	}
	ky_proto_message(&w->emit.part, KY_PF_GENERIC_FTRACE_EVENT_FIELD, &w->emit.inner);
}

void ky_pf_export_raw(void *self, const struct ky_walk_item *item)
{
	struct ky_pf_exporter *w = self;
	const struct ky_raw_events *r = &w->trace->raw_events;
	const uint32_t set = r->args[item->row];
	const char *name = ky_text_of(w->trace, r->name[item->row]);
	/* The scheduling slices have become switches already. */
	if (w->trace->sched.rows.count && name && strcmp(name, "sched_switch") == 0)
		return;
	w->emit.part.used = 0;
	ky_pf_export_string(w, &w->emit.part, KY_PF_GENERIC_FTRACE_EVENT_EVENT_NAME,
			    r->name[item->row]);
	for (uint32_t arg = ky_arg_set_first(w->trace, set); arg < ky_arg_set_end(w->trace, set);
	     arg++)
		put_field(w, arg);
	send_event(w, r->cpu[item->row] == KY_NONE ? 0 : r->cpu[item->row], item->ts,
		   ky_address_tid(w->trace, r->thread[item->row]), KY_PF_FTRACE_EVENT_GENERIC);
}

/* ---- logs ---- */

void ky_pf_export_log(void *self, const struct ky_walk_item *item)
{
	struct ky_pf_exporter *w = self;
	const struct ky_logs *l = &w->trace->logs;
	int64_t realtime;
	/* These messages have the time of day. */
	if (!ky_clocks_convert(w->trace->clocks, w->trace->clock, KY_CLOCK_REALTIME, item->ts,
			       &realtime)) {
		w->left->logs++;
		return;
	}
	w->emit.part.used = 0;
	ky_proto_uint(&w->emit.part, KY_PF_LOG_EVENT_PID,
		      ky_address_pid_of_thread(w->trace, l->thread[item->row]));
	ky_proto_uint(&w->emit.part, KY_PF_LOG_EVENT_TID,
		      ky_address_tid(w->trace, l->thread[item->row]));
	ky_proto_uint(&w->emit.part, KY_PF_LOG_EVENT_TIMESTAMP, (uint64_t)realtime);
	ky_pf_export_string(w, &w->emit.part, KY_PF_LOG_EVENT_TAG, l->tag[item->row]);
	if (l->priority[item->row])
		ky_proto_uint(&w->emit.part, KY_PF_LOG_EVENT_PRIO, l->priority[item->row]);
	ky_pf_export_string(w, &w->emit.part, KY_PF_LOG_EVENT_MESSAGE, l->message[item->row]);
	ky_proto_message(&w->emit.body, KY_PF_ANDROID_LOG_PACKET_EVENTS, &w->emit.part);
	ky_pf_export_send(w, KY_PF_EXPORT_SAMPLES, KY_PF_TRACE_PACKET_ANDROID_LOG, item->ts);
}
