/* SPDX-License-Identifier: MIT */
/*
 * fxt_export.c: a trace as Fuchsia's trace format: the file and its events. fxt_writer.h has the records.
 * docs/formats/fxt.md says what becomes what.
 *
 * The format has threads and asynchronous spans, no tracks: what is on neither a thread's track is an asynchronous
 * span with the id of its track (address.h).
 */
#include "formats/fxt/fxt_writer.h"

#include "formats/address.h"
#include "formats/arg_tree.h"
#include "formats/flow_marks.h"

#include <errno.h>
#include <stdlib.h>

enum {
	EVENT_INSTANT = 0,
	EVENT_COUNTER = 1,
	EVENT_BEGIN = 2,
	EVENT_END = 3,
	EVENT_ASYNC_BEGIN = 5,
	EVENT_ASYNC_INSTANT = 6,
	EVENT_ASYNC_END = 7,
	EVENT_FLOW_BEGIN = 8
};

enum { STATE_RUNNING = 1, STATE_BLOCKED = 3, STATE_DEAD = 5 };

struct cpu {
	uint32_t cpu;
	uint32_t row; /* of sched; KY_NONE: idle */
	int64_t end;
};

struct writer {
	struct ky_fxt fxt;
	const struct ky_selection *selection;
	struct ky_addresses addresses;
	struct ky_flow_marks flow_marks;
	struct ky_export_left *left;
	struct cpu *cpus;
	uint32_t cpus_count;
};

/* ---- events ---- */

static void put_args(struct writer *w, uint32_t set)
{
	const struct ky_trace *trace = w->fxt.trace;
	const uint32_t end = ky_arg_set_end(trace, set);
	for (uint32_t arg = ky_arg_set_first(trace, set); arg < end; arg++)
		if (!ky_fxt_arg(&w->fxt, arg))
			w->left->args++;
}

static uint32_t type_of(uint8_t form, enum ky_walk_what what)
{
	const bool thread = form == KY_AT_THREAD;
	if (what == KY_WALK_BEGIN)
		return thread ? EVENT_BEGIN : EVENT_ASYNC_BEGIN;
	if (what == KY_WALK_END)
		return thread ? EVENT_END : EVENT_ASYNC_END;
	return form == KY_AT_ASYNC || form == KY_AT_ASYNC_GLOBAL ? EVENT_ASYNC_INSTANT
								 : EVENT_INSTANT;
}

static void put_flows(struct writer *w, uint32_t slice, int64_t ts, bool at_end)
{
	uint32_t count;
	const struct ky_flow_mark *marks = ky_flow_marks_of(&w->flow_marks, slice, at_end, &count);
	const struct ky_address *a = &w->addresses.tracks[w->fxt.trace->slices.track[slice]];
	for (uint32_t i = 0; i < count; i++) {
		const struct ky_flow_mark *mark = &marks[i];
		if (mark->foreign) { /* flows are inside the spans of threads only */
			w->left->flows += mark->phase != KY_FLOW_BEGIN;
			continue;
		}
		ky_fxt_begin(&w->fxt, EVENT_FLOW_BEGIN + mark->phase, ts, a->pid, a->tid);
		ky_fxt_label(&w->fxt, mark->category, mark->name);
		ky_fxt_end(&w->fxt, true,
			   ky_fxt_flow_id(&w->fxt, mark->id, mark->category, mark->name));
	}
}

static void put_slice(void *self, const struct ky_walk_item *item)
{
	struct writer *w = self;
	const struct ky_slices *s = &w->fxt.trace->slices;
	const struct ky_address *a = &w->addresses.tracks[s->track[item->row]];
	const uint32_t type = type_of(a->form, item->what);
	const bool end = item->what == KY_WALK_END;
	if (end && w->flow_marks.count)
		put_flows(w, item->row, item->ts, true);
	ky_fxt_begin(&w->fxt, type, item->ts, a->pid, a->tid);
	ky_fxt_label(&w->fxt, s->category[item->row], s->name[item->row]);
	if (!end)
		put_args(w, s->args[item->row]);
	ky_fxt_end(&w->fxt, type >= EVENT_ASYNC_BEGIN, a->id);
	if (!end && w->flow_marks.count)
		put_flows(w, item->row, item->ts, false);
}

static void put_counter(void *self, const struct ky_walk_item *item)
{
	struct writer *w = self;
	const struct ky_trace *trace = w->fxt.trace;
	const uint32_t track = trace->counters.track[item->row];
	const struct ky_counter_name name = ky_counter_name(trace, track);
	const uint8_t kind = trace->tracks.kind[track];
	const uint32_t pid = ky_address_pid(trace, ky_track_process(trace, track));
	uint64_t id = 0;
	if (kind == KY_TRACK_CPU_COUNTER)
		id = trace->tracks.owner[track];
	else if (kind == KY_TRACK_THREAD_COUNTER)
		id = ky_address_tid(trace, trace->tracks.owner[track]);
	ky_fxt_begin(&w->fxt, EVENT_COUNTER, item->ts, pid, pid);
	ky_fxt_label_text(&w->fxt, (struct ky_text){name.name, name.name_bytes});
	ky_fxt_arg_double(&w->fxt, (struct ky_text){name.key, name.key_bytes},
			  trace->counters.value[item->row]);
	ky_fxt_end(&w->fxt, true, id);
}

/* ---- scheduling ---- */

static uint32_t state_of(const struct ky_trace *trace, uint32_t string)
{
	const char *text = ky_text_of(trace, string);
	if (!text || *text == 'R')
		return STATE_RUNNING;
	return *text == 'X' || *text == 'Z' ? STATE_DEAD : STATE_BLOCKED;
}

static struct cpu *cpu_of(struct writer *w, uint32_t cpu)
{
	for (uint32_t i = 0; i < w->cpus_count; i++)
		if (w->cpus[i].cpu == cpu)
			return &w->cpus[i];
	struct cpu *cpus = realloc(w->cpus, (w->cpus_count + 1) * sizeof(*cpus));
	if (!cpus) {
		w->fxt.out->error = -ENOMEM;
		return NULL;
	}
	w->cpus = cpus;
	cpus[w->cpus_count] = (struct cpu){cpu, KY_NONE, KY_TIME_NONE};
	return &cpus[w->cpus_count++];
}

static void put_switch(struct writer *w, const struct cpu *c, int64_t ts, uint32_t next)
{
	const struct ky_trace *trace = w->fxt.trace;
	const struct ky_sched *s = &trace->sched;
	ky_fxt_switch(&w->fxt, ts, c->cpu,
		      c->row == KY_NONE ? STATE_RUNNING : state_of(trace, s->end_state[c->row]),
		      c->row == KY_NONE ? 0 : ky_address_tid(trace, s->thread[c->row]),
		      next == KY_NONE ? 0 : ky_address_tid(trace, s->thread[next]));
}

static void put_sched(void *self, const struct ky_walk_item *item)
{
	struct writer *w = self;
	struct cpu *c = cpu_of(w, w->fxt.trace->sched.cpu[item->row]);
	if (!c)
		return;
	if (c->row != KY_NONE && c->end != KY_TIME_NONE && c->end < item->ts) {
		put_switch(w, c, c->end, KY_NONE);
		c->row = KY_NONE;
	}
	put_switch(w, c, item->ts, item->row);
	c->row = item->row;
	c->end = item->end_ns;
}

static void end_sched(struct writer *w)
{
	for (uint32_t i = 0; i < w->cpus_count; i++)
		if (w->cpus[i].row != KY_NONE && w->cpus[i].end != KY_TIME_NONE)
			put_switch(w, &w->cpus[i], w->cpus[i].end, KY_NONE);
}

/* ---- the file ---- */

static void put_log(void *self, const struct ky_walk_item *item)
{
	struct writer *w = self;
	const struct ky_trace *trace = w->fxt.trace;
	const uint32_t thread = trace->logs.thread[item->row];
	ky_fxt_put_log(&w->fxt, item->ts, ky_address_pid_of_thread(trace, thread),
		       ky_address_tid(trace, thread), trace->logs.message[item->row]);
}

static void put_names(struct writer *w)
{
	const struct ky_trace *trace = w->fxt.trace;
	for (uint32_t i = 0; i < trace->processes.rows.count; i++)
		ky_fxt_process(&w->fxt, ky_address_pid(trace, i), trace->processes.name[i]);
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		if (ky_selected_thread(w->selection, i))
			ky_fxt_put_thread(&w->fxt, ky_address_pid_of_thread(trace, i),
					  ky_address_tid(trace, i), trace->threads.name[i]);
}

static void put_losses(struct writer *w)
{
	const struct ky_trace *trace = w->fxt.trace;
	const struct ky_losses *l = &trace->losses;
	for (uint32_t i = 0; i < l->rows.count; i++) {
		ky_fxt_begin(&w->fxt, EVENT_INSTANT, ky_export_loss_ns(trace, i),
			     ky_address_pid_of_thread(trace, l->thread[i]),
			     ky_address_tid(trace, l->thread[i]));
		ky_fxt_label_text(&w->fxt, (struct ky_text){"events lost", 11});
		ky_fxt_arg_uint(&w->fxt, (struct ky_text){"count", 5}, l->events[i]);
		ky_fxt_end(&w->fxt, false, 0);
	}
}

static int write_file(struct writer *w, const struct ky_export_job *job)
{
	struct ky_fxt *fxt = &w->fxt;
	static const struct ky_export_rows rows = {
		.slice = put_slice, .counter = put_counter, .sched = put_sched, .log = put_log};
	ky_fxt_head(fxt);
	put_names(w);
	put_losses(w);
	const int error = ky_export_loop(job, &rows, w);
	if (error)
		return error;
	end_sched(w);
	ky_fxt_tail(fxt, fxt->trace->lost);
	w->left->cut += fxt->cut;
	w->left->metadata += fxt->trace->metadata.rows.count;
	w->left->snapshots += ky_export_loop_snapshots(fxt->trace);
	return fxt->out->error ? fxt->out->error : fxt->record.error;
}

static int write_trace(const struct ky_export_job *job)
{
	struct writer w = {.selection = job->selection, .left = job->left};
	int error = ky_fxt_open(&w.fxt, job->trace, job->out);
	if (!error)
		error = ky_addresses_open(&w.addresses, job->trace, true);
	if (!error)
		error = ky_flow_marks_open(&w.flow_marks, job->trace, job->selection, &w.addresses,
					   job->left);
	if (!error)
		error = write_file(&w, job);
	free(w.cpus);
	ky_flow_marks_close(&w.flow_marks);
	ky_addresses_close(&w.addresses);
	ky_fxt_close(&w.fxt);
	return error;
}

const struct ky_exporter ky_exporter_fxt = {&ky_format_fxt, write_trace};
