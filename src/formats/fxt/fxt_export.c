/* SPDX-License-Identifier: MIT */
/*
 * fxt_export.c: a trace in Fuchsia's trace format. docs/formats/fxt.md has the table of what becomes what, fxt_emit.h
 * the records.
 *
 * The format has threads and asynchronous spans but no tracks: a span that is not on a thread's track becomes an
 * asynchronous one with the id of its track (address.h). All texts are in the string table. A thread's number, of
 * 255, follows from its ids; a number that another thread has is bound again.
 */
#include "formats/address.h"
#include "formats/arg_tree.h"
#include "formats/flow_marks.h"
#include "formats/fxt/fxt_emit.h"
#include "formats/walk.h"

#include <errno.h>
#include <stdlib.h>

#define STRINGS_PER_EVENT 40u
#define STRING_BYTES_MAX 31996u
#define LOG_BYTES_MAX 32000u

struct thread_ids {
	uint32_t pid, tid;
};

struct ky_fxt_exporter {
	struct ky_fxt_emitter emitter;
	const struct ky_trace *trace;
	const struct ky_export_selection *selection;
	struct ky_addresses addresses;
	struct ky_flow_marks flow_marks;
	struct ky_export_left *left;
	struct ky_cpu_switches switches;
	struct ky_fxt_slot *strings; /* by string */
	struct thread_ids threads[KY_FXT_THREAD_INDEX_MAX + 1];
	uint64_t header; /* of the event being built */
};

/* ---- strings and threads ---- */

/* text is the string's, or a part of it that is always the same. */
static uint64_t string_ref(struct ky_fxt_exporter *w, uint32_t string, struct ky_text text)
{
	return string ? ky_fxt_emit_string(&w->emitter, &w->strings[string], text) : 0;
}

static uint64_t whole_string_ref(struct ky_fxt_exporter *w, uint32_t string)
{
	return string_ref(w, string, ky_walk_text(w->trace, string));
}

static uint64_t thread_ref(struct ky_fxt_exporter *w, uint32_t pid, uint32_t tid)
{
	const uint32_t number = (tid ^ tid >> 8 ^ pid * 31u) % KY_FXT_THREAD_INDEX_MAX + 1;
	struct thread_ids *ids = &w->threads[number];
	if (ids->pid != pid || ids->tid != tid) {
		*ids = (struct thread_ids){pid, tid};
		ky_fxt_emit_bind_thread(&w->emitter, number, pid, tid);
	}
	return number;
}

/* ---- events ---- */

static void begin_event(struct ky_fxt_exporter *w, uint32_t type, int64_t ts, uint32_t pid,
			uint32_t tid)
{
	ky_fxt_emit_make_room(&w->emitter);
	w->header = ky_fxt_emit_event_header(type, thread_ref(w, pid, tid), 0, 0);
	ky_fxt_emit_begin(&w->emitter, (uint64_t)ts);
}

static void put_label(struct ky_fxt_exporter *w, uint32_t category, uint32_t name)
{
	w->header |= whole_string_ref(w, category) << 32;
	w->header |= whole_string_ref(w, name) << 48;
}

static void put_label_text(struct ky_fxt_exporter *w, struct ky_text name)
{
	w->header |= ky_fxt_emit_define(&w->emitter, name) << 48;
}

static void end_event(struct ky_fxt_exporter *w)
{
	ky_fxt_emit_end(&w->emitter, w->header);
}

static void end_event_with_id(struct ky_fxt_exporter *w, uint64_t id)
{
	ky_fxt_emit_word(&w->emitter.record, id);
	end_event(w);
}

static void put_arg(struct ky_fxt_exporter *w, uint32_t arg)
{
	static const uint8_t types[] = {
		[KY_ARG_INT] = KY_FXT_ARG_INT64,
		[KY_ARG_UINT] = KY_FXT_ARG_UINT64,
		[KY_ARG_REAL] = KY_FXT_ARG_DOUBLE,
		[KY_ARG_POINTER] = KY_FXT_ARG_POINTER,
	};
	const struct ky_args *args = &w->trace->args;
	const uint64_t value = args->value[arg];
	const uint64_t key = string_ref(w, args->key[arg], ky_arg_key(w->trace, arg));
	switch (args->type[arg]) {
	case KY_ARG_NULL:
		ky_fxt_emit_arg_small(&w->emitter, KY_FXT_ARG_NULL, key, 0);
		break;
	case KY_ARG_BOOL:
		ky_fxt_emit_arg_small(&w->emitter, KY_FXT_ARG_BOOL, key, value != 0);
		break;
	case KY_ARG_STRING:
	case KY_ARG_JSON:
		ky_fxt_emit_arg_small(&w->emitter, KY_FXT_ARG_STRING, key,
				      whole_string_ref(w, (uint32_t)value));
		break;
	default:
		ky_fxt_emit_arg_word(&w->emitter, types[args->type[arg]], key, value);
	}
}

static void put_args(struct ky_fxt_exporter *w, uint32_t set)
{
	const uint32_t end = ky_arg_set_end(w->trace, set);
	for (uint32_t arg = ky_arg_set_first(w->trace, set); arg < end; arg++) {
		if (w->emitter.args < KY_FXT_ARGS_MAX)
			put_arg(w, arg);
		else
			w->left->args++;
	}
}

static uint64_t flow_id(const struct ky_fxt_exporter *w, const struct ky_flow_mark *mark)
{
	if (!mark->category && !mark->name)
		return mark->id;
	return ky_fxt_emit_flow_id(mark->id, ky_walk_text(w->trace, mark->category),
				   ky_walk_text(w->trace, mark->name));
}

static void put_flow(void *self, const struct ky_flow_mark *mark, int64_t ts)
{
	struct ky_fxt_exporter *w = self;
	const struct ky_address *a = &w->addresses.tracks[w->trace->slices.track[mark->slice]];
	begin_event(w, KY_FXT_EVENT_FLOW_BEGIN + mark->phase, ts, a->pid, a->tid);
	put_label(w, mark->category, mark->name);
	end_event_with_id(w, flow_id(w, mark));
}

static void put_slice(void *self, const struct ky_walk_item *item)
{
	struct ky_fxt_exporter *w = self;
	const struct ky_slices *s = &w->trace->slices;
	const struct ky_address *a = &w->addresses.tracks[s->track[item->row]];
	const uint32_t type = ky_fxt_emit_type(ky_address_kind(a, item->what));
	const bool end = item->what == KY_WALK_END;
	if (end)
		ky_flow_marks_put(&w->flow_marks, item, w->left, put_flow, w);
	begin_event(w, type, item->ts, a->pid, a->tid);
	put_label(w, s->category[item->row], s->name[item->row]);
	if (!end)
		put_args(w, s->args[item->row]);
	if (type >= KY_FXT_EVENT_ASYNC_BEGIN)
		end_event_with_id(w, a->id);
	else
		end_event(w);
	if (!end)
		ky_flow_marks_put(&w->flow_marks, item, w->left, put_flow, w);
}

static void put_counter(void *self, const struct ky_walk_item *item)
{
	struct ky_fxt_exporter *w = self;
	const struct ky_trace *trace = w->trace;
	const uint32_t track = trace->counters.track[item->row];
	const struct ky_counter_name name = ky_counter_name(trace, track);
	const uint8_t kind = trace->tracks.kind[track];
	const uint32_t pid = ky_address_pid(trace, ky_track_process(trace, track));
	uint64_t id = 0;
	if (kind == KY_TRACK_CPU_COUNTER)
		id = trace->tracks.owner[track];
	else if (kind == KY_TRACK_THREAD_COUNTER)
		id = ky_address_tid(trace, trace->tracks.owner[track]);
	begin_event(w, KY_FXT_EVENT_COUNTER, item->ts, pid, pid);
	put_label_text(w, (struct ky_text){name.name, name.name_bytes});
	uint64_t bits;
	memcpy(&bits, &trace->counters.value[item->row], sizeof(bits));
	ky_fxt_emit_arg_word(
		&w->emitter, KY_FXT_ARG_DOUBLE,
		ky_fxt_emit_define(&w->emitter, (struct ky_text){name.key, name.key_bytes}), bits);
	end_event_with_id(w, id);
}

/* ---- scheduling ---- */

static uint32_t state_of(const struct ky_trace *trace, uint32_t string)
{
	const char *text = ky_text_of(trace, string);
	if (!text || *text == 'R')
		return KY_FXT_STATE_RUNNING;
	return *text == 'X' || *text == 'Z' ? KY_FXT_STATE_DEAD : KY_FXT_STATE_BLOCKED;
}

static void put_switch(void *self, uint32_t cpu, int64_t ts, uint32_t prev, uint32_t next)
{
	struct ky_fxt_exporter *w = self;
	struct ky_out *out = w->emitter.out;
	const struct ky_sched *s = &w->trace->sched;
	const uint64_t state =
		prev == KY_NONE ? KY_FXT_STATE_RUNNING : state_of(w->trace, s->end_state[prev]);
	ky_fxt_emit_word(out, ky_fxt_emit_record_header(KY_FXT_RECORD_SCHEDULING, 4) |
				      (uint64_t)(cpu & 0xffff) << 20 | state << 36 |
				      (uint64_t)KY_FXT_SCHED_SWITCH << 60);
	ky_fxt_emit_word(out, (uint64_t)ts);
	ky_fxt_emit_word(out, prev == KY_NONE ? 0 : ky_address_tid(w->trace, s->thread[prev]));
	ky_fxt_emit_word(out, next == KY_NONE ? 0 : ky_address_tid(w->trace, s->thread[next]));
}

/* ---- the file ---- */

static void put_log(void *self, const struct ky_walk_item *item)
{
	struct ky_fxt_exporter *w = self;
	const uint32_t thread = w->trace->logs.thread[item->row];
	const struct ky_text text = ky_fxt_emit_limited(
		&w->emitter, ky_walk_text(w->trace, w->trace->logs.message[item->row]),
		LOG_BYTES_MAX);
	const uint64_t ref = thread_ref(w, ky_address_pid_of_thread(w->trace, thread),
					ky_address_tid(w->trace, thread));
	struct ky_out *out = w->emitter.out;
	ky_fxt_emit_word(out, ky_fxt_emit_record_header(KY_FXT_RECORD_LOG,
							2 + ky_fxt_emit_words(text.bytes)) |
				      (uint64_t)text.bytes << 16 | ref << 32);
	ky_fxt_emit_word(out, (uint64_t)item->ts);
	ky_fxt_emit_padded(out, text);
}

static void put_sched(void *self, const struct ky_walk_item *item)
{
	struct ky_fxt_exporter *w = self;
	if (!ky_cpu_switches_add(&w->switches, w->trace, item, put_switch, w))
		w->emitter.out->error = -ENOMEM;
}

static void put_names(struct ky_fxt_exporter *w)
{
	const struct ky_trace *trace = w->trace;
	for (uint32_t i = 0; i < trace->processes.rows.count; i++)
		ky_fxt_emit_process(&w->emitter, ky_address_pid(trace, i),
				    ky_walk_text(trace, trace->processes.name[i]));
	for (uint32_t i = 0; i < trace->threads.rows.count; i++) {
		if (!ky_selected_thread(w->selection, i))
			continue;
		ky_fxt_emit_make_room(&w->emitter);
		ky_fxt_emit_thread(&w->emitter, ky_address_pid_of_thread(trace, i),
				   ky_address_tid(trace, i),
				   ky_fxt_emit_define(&w->emitter, (struct ky_text){"process", 7}),
				   ky_walk_text(trace, trace->threads.name[i]));
	}
}

static uint64_t define(struct ky_fxt_exporter *w, const char *text)
{
	return ky_fxt_emit_define(&w->emitter, (struct ky_text){text, (uint32_t)strlen(text)});
}

static void put_losses(struct ky_fxt_exporter *w)
{
	const struct ky_trace *trace = w->trace;
	struct ky_missing m;
	for (uint32_t i = 0; ky_missing_at(trace, i, &m); i++) {
		if (!ky_selected_thread(w->selection, m.thread))
			continue;
		begin_event(w, KY_FXT_EVENT_INSTANT, ky_walk_missing_ns(trace, &m),
			    ky_address_pid_of_thread(trace, m.thread),
			    ky_address_tid(trace, m.thread));
		put_label_text(w, (struct ky_text){"events lost", 11});
		w->header |= define(w, "kymo") << 32;
		ky_fxt_emit_arg_word(&w->emitter, KY_FXT_ARG_UINT64, define(w, "count"), m.count);
		ky_fxt_emit_arg_small(&w->emitter, KY_FXT_ARG_STRING, define(w, "what"),
				      define(w, m.what));
		if (m.cpu != KY_NONE)
			ky_fxt_emit_arg_word(&w->emitter, KY_FXT_ARG_UINT64, define(w, "cpu"),
					     m.cpu);
		if (m.ts == KY_TIME_NONE)
			ky_fxt_emit_arg_small(&w->emitter, KY_FXT_ARG_BOOL, define(w, "untimed"),
					      true);
		end_event(w);
	}
}

static int write_file(struct ky_fxt_exporter *w, const struct ky_export_job *job)
{
	static const struct ky_walk_rows rows = {
		.slice = put_slice, .counter = put_counter, .sched = put_sched, .log = put_log};
	struct ky_out *out = w->emitter.out;
	ky_fxt_emit_head(&w->emitter);
	put_names(w);
	put_losses(w);
	const int error = ky_walk_each(job, &rows, w);
	if (error)
		return error;
	ky_cpu_switches_end(&w->switches, put_switch, w);
	ky_fxt_emit_tail(&w->emitter, w->trace->lost);
	w->left->cut += w->emitter.cut;
	w->left->metadata += w->trace->metadata.rows.count;
	w->left->snapshots += ky_walk_snapshots(w->trace);
	return out->error ? out->error : w->emitter.record.error;
}

static int open_exporter(struct ky_fxt_exporter *w, struct ky_out *out)
{
	w->emitter.strings_per_event = STRINGS_PER_EVENT;
	w->emitter.string_bytes_max = STRING_BYTES_MAX;
	for (uint32_t i = 0; i <= KY_FXT_THREAD_INDEX_MAX; i++)
		w->threads[i] = (struct thread_ids){UINT32_MAX, UINT32_MAX};
	w->strings = calloc((size_t)w->trace->strings.count + 1, sizeof(*w->strings));
	return w->strings ? ky_fxt_emit_open(&w->emitter, out) : -ENOMEM;
}

static int write_trace(const struct ky_export_job *job)
{
	struct ky_fxt_exporter w = {
		.trace = job->trace, .selection = job->selection, .left = job->left};
	int error = open_exporter(&w, job->out);
	if (!error)
		error = ky_addresses_open(&w.addresses, job->trace, true);
	if (!error)
		error = ky_flow_marks_open(&w.flow_marks, job->trace, job->selection, &w.addresses,
					   job->left);
	if (!error)
		error = write_file(&w, job);
	ky_cpu_switches_free(&w.switches);
	ky_flow_marks_close(&w.flow_marks);
	ky_addresses_close(&w.addresses);
	ky_fxt_emit_close(&w.emitter);
	free(w.strings);
	return error;
}

const struct ky_exporter ky_exporter_fxt = {&ky_format_fxt, write_trace};
