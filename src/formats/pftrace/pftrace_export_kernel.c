/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export_kernel.c: kernel data as ftrace events: scheduling slices as switches, kernel events with their
 * fields, typed where that can be (pftrace_export_typed.c), log messages as Android's; and samples as PerfSamples with
 * interned call stacks.
 *
 * The frames of a call stack, their functions and mappings are defined before it, and it before its first use. Ids are
 * row numbers plus 1; mapping 1 is for frames without one, since every frame must have one.
 */
#include "base/chars.h"
#include "formats/arg_tree.h"
#include "formats/pftrace/ftrace_events.h"
#include "formats/pftrace/pftrace_export.h"

#include <errno.h>

/* Return the mask of a state's letters, in the numbering that readers assume without a kernel version. */
static uint64_t state_mask(const struct ky_trace *trace, uint32_t state)
{
	static const char letters[] = "SDTtXZxKWPN";
	const struct ky_text text = ky_walk_text(trace, state);
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

static void put_generic(struct ky_pf_exporter *w, uint32_t name, uint32_t set)
{
	ky_pf_export_string(w, &w->emit.part, KY_PF_GENERIC_FTRACE_EVENT_EVENT_NAME, name);
	for (uint32_t arg = ky_arg_set_first(w->trace, set); arg < ky_arg_set_end(w->trace, set);
	     arg++)
		put_field(w, arg);
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
	uint32_t number = ky_pf_export_typed(w, r->name[item->row], set);
	if (!number) {
		number = KY_PF_FTRACE_EVENT_GENERIC;
		put_generic(w, r->name[item->row], set);
	}
	send_event(w, r->cpu[item->row] == KY_NONE ? 0 : r->cpu[item->row], item->ts,
		   ky_address_tid(w->trace, r->thread[item->row]), number);
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

/* ---- samples ---- */

enum { NO_MAPPING = 1 };

#define STACK_MAX 1024u

/* Build ids are bytes in the file and digits in the model. */
static void intern_build_id(struct ky_pf_exporter *w, uint32_t string)
{
	uint8_t bytes[64];
	uint32_t count = 0;
	const struct ky_text text = ky_walk_text(w->trace, string);
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_BUILD_IDS, string))
		return;
	for (uint32_t i = 0; i + 1 < text.bytes && count < sizeof(bytes); i += 2) {
		const int high = ky_chars_hex_digit(text.data[i]),
			  low = ky_chars_hex_digit(text.data[i + 1]);
		if (high < 0 || low < 0)
			break;
		bytes[count++] = (uint8_t)(high << 4 | low);
	}
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_INTERNED_STRING_IID, string);
	ky_proto_bytes(&w->emit.inner, KY_PF_INTERNED_STRING_STR, bytes, count);
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_BUILD_IDS, &w->emit.inner);
}

static uint64_t intern_mapping(struct ky_pf_exporter *w, uint32_t mapping)
{
	const struct ky_mappings *m = &w->trace->mappings;
	const uint64_t iid = mapping == KY_NONE ? NO_MAPPING : (uint64_t)mapping + 2;
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_MAPPINGS, (uint32_t)iid - 1))
		return iid;
	if (mapping != KY_NONE && m->build_id[mapping])
		intern_build_id(w, m->build_id[mapping]);
	if (mapping != KY_NONE && m->name[mapping])
		ky_pf_export_intern(w, KY_PF_EXPORT_PATHS, m->name[mapping]);
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_IID, iid);
	if (mapping != KY_NONE) {
		if (m->build_id[mapping])
			ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_BUILD_ID, m->build_id[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_START, m->start[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_END, m->end[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_LOAD_BIAS, m->load_bias[mapping]);
		if (m->name[mapping])
			ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_PATH_STRING_IDS,
				      m->name[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_EXACT_OFFSET, m->offset[mapping]);
	}
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_MAPPINGS, &w->emit.inner);
	return iid;
}

static void intern_frame(struct ky_pf_exporter *w, uint32_t frame)
{
	const struct ky_frames *f = &w->trace->frames;
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_FRAMES, frame))
		return;
	const uint64_t mapping = intern_mapping(w, f->mapping[frame]);
	if (f->name[frame])
		ky_pf_export_intern(w, KY_PF_EXPORT_FUNCTIONS, f->name[frame]);
	if (f->file[frame])
		ky_pf_export_intern(w, KY_PF_EXPORT_SOURCES, f->file[frame]);
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_FRAME_IID, (uint64_t)frame + 1);
	if (f->name[frame])
		ky_proto_uint(&w->emit.inner, KY_PF_FRAME_FUNCTION_NAME_ID, f->name[frame]);
	ky_proto_uint(&w->emit.inner, KY_PF_FRAME_MAPPING_ID, mapping);
	ky_proto_uint(&w->emit.inner, KY_PF_FRAME_REL_PC, f->rel_pc[frame]);
	if (f->file[frame])
		ky_proto_uint(&w->emit.inner, KY_PF_FRAME_SOURCE_PATH_IID, f->file[frame]);
	if (f->line[frame])
		ky_proto_uint(&w->emit.inner, KY_PF_FRAME_LINE_NUMBER, f->line[frame]);
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_FRAMES, &w->emit.inner);
}

/* The outermost frame comes first. */
static void intern_callstack(struct ky_pf_exporter *w, uint32_t callsite)
{
	const struct ky_callsites *c = &w->trace->callsites;
	uint32_t frames[STACK_MAX], count = 0;
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_CALLSTACKS, callsite))
		return;
	for (uint32_t at = callsite; at != KY_NONE; at = c->parent[at]) {
		if (count == STACK_MAX) {
			w->left->frames += c->depth[at] + UINT64_C(1);
			break;
		}
		frames[count++] = c->frame[at];
	}
	for (uint32_t i = 0; i < count; i++)
		intern_frame(w, frames[i]);
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_CALLSTACK_IID, (uint64_t)callsite + 1);
	while (count)
		ky_proto_uint(&w->emit.inner, KY_PF_CALLSTACK_FRAME_IDS,
			      (uint64_t)frames[--count] + 1);
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_CALLSTACKS, &w->emit.inner);
}

void ky_pf_export_sample(void *self, const struct ky_walk_item *item)
{
	struct ky_pf_exporter *w = self;
	const struct ky_samples *s = &w->trace->samples;
	const uint32_t row = item->row;
	if (s->cpu[row] != KY_NONE)
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_CPU, s->cpu[row]);
	ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_PID,
		      ky_address_pid_of_thread(w->trace, s->thread[row]));
	ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_TID,
		      ky_address_tid(w->trace, s->thread[row]));
	if (s->callsite[row] != KY_NONE) {
		intern_callstack(w, s->callsite[row]);
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_CALLSTACK_IID,
			      (uint64_t)s->callsite[row] + 1);
	}
	if (s->mode[row])
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_CPU_MODE, s->mode[row]);
	if (s->weight[row] >= 1 && s->weight[row] < 9e18)
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_TIMEBASE_COUNT,
			      (uint64_t)s->weight[row]);
	ky_pf_export_send(w, KY_PF_EXPORT_SAMPLES, KY_PF_TRACE_PACKET_PERF_SAMPLE, item->ts);
}
