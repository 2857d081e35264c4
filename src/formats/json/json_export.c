/* SPDX-License-Identifier: MIT */
/*
 * json_export.c: a trace as Chrome's Trace Event JSON, the object form, since samples and metadata are beside the
 * events there. docs/formats/json.md says what becomes what.
 *
 * Spans are begins and ends in the order of the walk, never complete events: as soon as a file has one of those,
 * Perfetto sorts what has the same time by rules of its own, and spans of no length end up inside of others.
 */
#include "formats/export.h"

#include "formats/address.h"
#include "formats/arg_tree.h"
#include "formats/flow_marks.h"
#include "formats/json/json_schema.h"
#include "formats/json/json_value.h"
#include "formats/utf8.h"
#include "formats/walk.h"

struct json_export {
	const struct ky_trace *trace;
	const struct ky_export_selection *selection;
	struct ky_out *out;
	struct ky_out clean;
	struct ky_export_left *left;
	struct ky_addresses addresses;
	struct ky_flow_marks flow_marks;
	bool first_event; /* none was written yet */
	bool first;       /* in the list that is open */
	bool clocks_put;
};

/* ---- tokens ---- */

static void put(struct json_export *w, const char *text)
{
	ky_json_append(w->out, text);
}

static void put_text(struct json_export *w, struct ky_text text)
{
	ky_json_append_text(w->out, &w->clean, text);
}

static void put_string(struct json_export *w, uint32_t string)
{
	put_text(w, ky_walk_text(w->trace, string));
}

/* Microseconds with three decimals. */
static void put_time(struct json_export *w, int64_t ns)
{
	uint8_t *to = ky_out_room(w->out, KY_JSON_NUMBER_BYTES + 4);
	to = ky_json_put_uint(to, (uint64_t)ns / 1000);
	const uint32_t rest = (uint32_t)((uint64_t)ns % 1000);
	*to++ = '.';
	*to++ = (uint8_t)('0' + rest / 100);
	*to++ = (uint8_t)('0' + rest / 10 % 10);
	*to++ = (uint8_t)('0' + rest % 10);
	ky_out_done(w->out, to);
}

static void comma(struct json_export *w)
{
	if (!w->first)
		put(w, ",");
	w->first = false;
}

/* ---- arguments ---- */

static void put_value(struct json_export *w, uint32_t arg)
{
	const struct ky_args *args = &w->trace->args;
	const uint64_t value = args->value[arg];
	double real;
	switch (args->type[arg]) {
	case KY_ARG_INT:
		ky_json_append_int(w->out, (int64_t)value);
		break;
	case KY_ARG_UINT:
		ky_json_append_uint_arg(w->out, value);
		break;
	case KY_ARG_REAL:
		memcpy(&real, &value, sizeof(real));
		ky_json_append_double(w->out, real);
		break;
	case KY_ARG_BOOL:
		put(w, value ? "true" : "false");
		break;
	case KY_ARG_POINTER:
		ky_json_append_hex(w->out, value);
		break;
	case KY_ARG_STRING:
	case KY_ARG_JSON:
		put_string(w, (uint32_t)value);
		break;
	default:
		put(w, "null");
	}
}

static void put_key(struct json_export *w, struct ky_text key)
{
	comma(w);
	if (!key.data)
		return;
	put_text(w, key);
	put(w, ":");
}

static void open_level(void *self, struct ky_text key, bool array)
{
	struct json_export *w = self;
	put_key(w, key);
	put(w, array ? "[" : "{");
	w->first = true;
}

static void close_level(void *self, bool array)
{
	struct json_export *w = self;
	put(w, array ? "]" : "}");
	w->first = false;
}

static void level_value(void *self, struct ky_text key, uint32_t arg)
{
	struct json_export *w = self;
	put_key(w, key);
	put_value(w, arg);
}

static void put_args(struct json_export *w, uint32_t set)
{
	const struct ky_arg_visitor visitor = {open_level, close_level, level_value, w};
	if (!set)
		return;
	put(w, ",\"args\":{");
	w->first = true;
	ky_arg_tree(w->trace, set, &visitor);
	put(w, "}");
}

/* ---- events ---- */

static void begin_event(struct json_export *w, enum ky_json_phase phase, uint32_t pid, uint32_t tid)
{
	put(w, w->first_event ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
	w->first_event = false;
	const char letter = (char)phase;
	ky_out_append(w->out, &letter, 1);
	put(w, "\",\"pid\":");
	ky_json_append_uint(w->out, pid);
	put(w, ",\"tid\":");
	ky_json_append_uint(w->out, tid);
}

static void put_ts(struct json_export *w, int64_t ts)
{
	put(w, ",\"ts\":");
	put_time(w, ts);
}

static void put_label(struct json_export *w, uint32_t category, uint32_t name)
{
	if (category) {
		put(w, ",\"cat\":");
		put_string(w, category);
	}
	if (name) {
		put(w, ",\"name\":");
		put_string(w, name);
	}
}

static bool is_async(enum ky_json_phase phase)
{
	return phase == KY_JSON_PHASE_ASYNC_BEGIN || phase == KY_JSON_PHASE_ASYNC_INSTANT ||
	       phase == KY_JSON_PHASE_ASYNC_END;
}

static void put_async_id(struct json_export *w, const struct ky_address *a)
{
	const bool global = a->form == KY_AT_GLOBAL || a->form == KY_AT_ASYNC_GLOBAL;
	put(w, global ? ",\"id2\":{\"global\":" : ",\"id2\":{\"local\":");
	ky_json_append_hex(w->out, a->id);
	put(w, "}");
}

/* ---- flows ---- */

/* The second version of flows, fields of a begin, is the only one that asynchronous spans can have. */
static void put_bind(struct json_export *w, uint32_t slice, bool instant)
{
	uint32_t count, bound = 0;
	const struct ky_flow_mark *marks = ky_flow_marks_of(&w->flow_marks, slice, false, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (!marks[i].foreign || marks[i].late)
			continue;
		if (bound++ || instant) { /* readers look for it in spans only */
			w->left->flows++;
			continue;
		}
		put(w, ",\"bind_id\":");
		ky_json_append_hex(w->out, marks[i].id);
		if (marks[i].phase != KY_FLOW_BEGIN)
			put(w, ",\"flow_in\":true");
		if (marks[i].phase != KY_FLOW_END)
			put(w, ",\"flow_out\":true");
	}
}

static void put_flow(struct json_export *w, const struct ky_flow_mark *mark,
		     const struct ky_address *a, int64_t ts)
{
	begin_event(w, ky_json_emit_phase((uint8_t)(KYMO_KIND_FLOW_BEGIN + mark->phase)), a->pid,
		    a->tid);
	put_ts(w, ts);
	put(w, ",\"bp\":\"e\",\"id\":");
	ky_json_append_hex(w->out, mark->id);
	put(w, ",\"cat\":");
	put_text(w, mark->category ? ky_walk_text(w->trace, mark->category)
				   : (struct ky_text){"flow", 4});
	put(w, ",\"name\":");
	put_text(w, mark->name ? ky_walk_text(w->trace, mark->name) : (struct ky_text){"flow", 4});
	put(w, "}");
}

static void put_flows(struct json_export *w, uint32_t slice, int64_t ts, bool at_end)
{
	uint32_t count;
	const struct ky_flow_mark *marks = ky_flow_marks_of(&w->flow_marks, slice, at_end, &count);
	const struct ky_address *a = &w->addresses.tracks[w->trace->slices.track[slice]];
	for (uint32_t i = 0; i < count; i++) {
		if (!marks[i].foreign)
			put_flow(w, &marks[i], a, ts);
		else if (marks[i].late && marks[i].phase == KY_FLOW_END)
			w->left->flows++;
	}
}

/* ---- rows ---- */

static void put_slice(void *self, const struct ky_walk_item *item)
{
	struct json_export *w = self;
	const struct ky_slices *s = &w->trace->slices;
	const struct ky_address *a = &w->addresses.tracks[s->track[item->row]];
	const enum ky_json_phase phase = ky_json_emit_phase(ky_address_kind(a, item->what));
	const bool end = item->what == KY_WALK_END;
	if (end && w->flow_marks.count)
		put_flows(w, item->row, item->ts, true);
	begin_event(w, phase, a->pid, a->tid);
	put_ts(w, item->ts);
	if (phase == KY_JSON_PHASE_INSTANT && a->form != KY_AT_THREAD)
		put(w, a->form == KY_AT_PROCESS ? ",\"s\":\"p\"" : ",\"s\":\"g\"");
	if (phase == KY_JSON_PHASE_INSTANT && a->form == KY_AT_THREAD)
		put(w, ",\"s\":\"t\"");
	if (is_async(phase))
		put_async_id(w, a);
	if (item->named || !(end && phase == KY_JSON_PHASE_END)) {
		const bool bare = a->form != KY_AT_THREAD && !s->category[item->row];
		put_label(w, s->category[item->row], s->name[item->row]);
		if (bare)
			put(w, ",\"cat\":\"\"");
	}
	if (!end && w->flow_marks.count)
		put_bind(w, item->row, item->what == KY_WALK_INSTANT);
	if (!end)
		put_args(w, s->args[item->row]);
	put(w, "}");
	if (!end && w->flow_marks.count)
		put_flows(w, item->row, item->ts, false);
}

static void put_counter(void *self, const struct ky_walk_item *item)
{
	struct json_export *w = self;
	const struct ky_trace *trace = w->trace;
	const uint32_t track = trace->counters.track[item->row];
	const struct ky_counter_name name = ky_counter_name(trace, track);
	const uint8_t kind = trace->tracks.kind[track];
	const uint32_t pid = ky_address_pid(trace, ky_track_process(trace, track));
	begin_event(w, KY_JSON_PHASE_COUNTER, pid, pid);
	put_ts(w, item->ts);
	put(w, ",\"name\":");
	put_text(w, (struct ky_text){name.name, name.name_bytes});
	if (kind == KY_TRACK_THREAD_COUNTER || kind == KY_TRACK_CPU_COUNTER) {
		const uint32_t owner = trace->tracks.owner[track];
		put(w, ",\"id\":");
		ky_json_append_hex(w->out, kind == KY_TRACK_CPU_COUNTER
						   ? owner
						   : ky_address_tid(trace, owner));
	}
	put(w, ",\"args\":{");
	put_text(w, (struct ky_text){name.key, name.key_bytes});
	put(w, ":");
	ky_json_append_double(w->out, trace->counters.value[item->row]);
	put(w, "}}");
}

/* Perfetto's own phase; what runs when is all that there is of scheduling. */
static void put_state(void *self, const struct ky_walk_item *item)
{
	struct json_export *w = self;
	const struct ky_thread_states *s = &w->trace->thread_states;
	const uint32_t thread = s->thread[item->row];
	if (item->end_ns == KY_TIME_NONE) {
		w->left->sched++; /* a duration is all that the phase has */
		return;
	}
	begin_event(w, KY_JSON_PHASE_THREAD_STATE, ky_address_pid_of_thread(w->trace, thread),
		    ky_address_tid(w->trace, thread));
	put_ts(w, item->ts);
	put(w, ",\"dur\":");
	put_time(w, (int64_t)((uint64_t)item->end_ns - (uint64_t)item->ts));
	put(w, ",\"cat\":\"thread_state\",\"name\":");
	put_string(w, s->state[item->row]);
	put(w, ",\"args\":{");
	w->first = true;
	if (s->cpu[item->row] != KY_NONE) {
		put_key(w, (struct ky_text){"cpu", 3});
		ky_json_append_uint(w->out, s->cpu[item->row]);
	}
	if (s->io_wait[item->row] >= 0) {
		put_key(w, (struct ky_text){"io_wait", 7});
		ky_json_append_uint(w->out, (uint64_t)s->io_wait[item->row]);
	}
	if (s->blocked_function[item->row]) {
		put_key(w, (struct ky_text){"blocked_function", 16});
		put_string(w, s->blocked_function[item->row]);
	}
	put(w, "}}");
}

/* Count the times that a CPU was idle: the idle task has no states. */
static void count_idle(struct json_export *w)
{
	const struct ky_sched *s = &w->trace->sched;
	for (uint32_t i = 0; i < s->rows.count; i++) {
		int64_t end;
		if (s->dur[i] < 0 || __builtin_add_overflow(s->ts[i], s->dur[i], &end))
			end = INT64_MAX;
		w->left->sched += w->trace->threads.is_idle[s->thread[i]] &&
				  ky_selected_thread(w->selection, s->thread[i]) &&
				  ky_selected_range(w->selection, s->ts[i], end);
	}
}

/* ---- around the events ---- */

static void put_clock(struct json_export *w, const char *key, int64_t ns)
{
	put(w, key);
	ky_json_append_int(w->out, ns);
	put(w, "\"");
}

/* Put the beginning of the trace in several clocks, once, beside the name of a process, as sessions do. */
static void put_clocks(struct json_export *w)
{
	const struct ky_trace *trace = w->trace;
	const int64_t at = trace->begin_ns < 0 ? 0 : trace->begin_ns;
	int64_t ns;
	if (w->clocks_put ||
	    !ky_clocks_convert(trace->clocks, trace->clock, KY_CLOCK_REALTIME, at, &ns) || ns < 0)
		return;
	w->clocks_put = true;
	put_clock(w, ",\"boottime_ns\":\"", at);
	put_clock(w, ",\"realtime_ns\":\"", ns);
	if (ky_clocks_convert(trace->clocks, trace->clock, KY_CLOCK_MONOTONIC, at, &ns) && ns >= 0)
		put_clock(w, ",\"monotonic_ns\":\"", ns);
}

static void put_name(struct json_export *w, const char *what, uint32_t pid, uint32_t tid,
		     uint32_t name, bool process)
{
	if (!ky_strings_bytes(&w->trace->strings, name))
		return; /* Perfetto counts an empty one as an error */
	begin_event(w, KY_JSON_PHASE_METADATA, pid, tid);
	put(w, ",\"name\":\"");
	put(w, what);
	put(w, "\",\"args\":{\"name\":");
	put_string(w, name);
	if (process)
		put_clocks(w);
	put(w, "}}");
}

static void put_sort_index(struct json_export *w, const char *what, uint32_t pid, uint32_t tid,
			   int32_t index)
{
	if (!index)
		return;
	begin_event(w, KY_JSON_PHASE_METADATA, pid, tid);
	put(w, ",\"name\":\"");
	put(w, what);
	put(w, "\",\"args\":{\"sort_index\":");
	ky_json_append_int(w->out, index);
	put(w, "}}");
}

static void put_names(struct json_export *w)
{
	const struct ky_trace *trace = w->trace;
	for (uint32_t i = 0; i < trace->processes.rows.count; i++) {
		const uint32_t pid = ky_address_pid(trace, i);
		put_name(w, KY_JSON_PROCESS_NAME, pid, pid, trace->processes.name[i], true);
		put_sort_index(w, KY_JSON_PROCESS_SORT_INDEX, pid, pid,
			       trace->processes.sort_index[i]);
	}
	for (uint32_t i = 0; i < trace->threads.rows.count; i++) {
		const uint32_t pid = ky_address_pid_of_thread(trace, i);
		const uint32_t tid = ky_address_tid(trace, i);
		if (!ky_selected_thread(w->selection, i))
			continue;
		put_name(w, KY_JSON_THREAD_NAME, pid, tid, trace->threads.name[i], false);
		put_sort_index(w, KY_JSON_THREAD_SORT_INDEX, pid, tid,
			       trace->threads.sort_index[i]);
	}
}

static void put_losses(struct json_export *w)
{
	struct ky_missing m;
	for (uint32_t i = 0; ky_missing_at(w->trace, i, &m); i++) {
		if (!ky_selected_thread(w->selection, m.thread))
			continue;
		begin_event(w, KY_JSON_PHASE_INSTANT, ky_address_pid_of_thread(w->trace, m.thread),
			    ky_address_tid(w->trace, m.thread));
		put_ts(w, ky_walk_missing_ns(w->trace, &m));
		put(w, m.thread == KY_NONE ? ",\"s\":\"g\"" : ",\"s\":\"t\"");
		put(w, ",\"cat\":\"kymo\",\"name\":\"events lost\",\"args\":{\"count\":");
		ky_json_append_uint(w->out, m.count);
		put(w, ",\"what\":");
		put_text(w, (struct ky_text){m.what, (uint32_t)strlen(m.what)});
		if (m.cpu != KY_NONE) {
			put(w, ",\"cpu\":");
			ky_json_append_uint(w->out, m.cpu);
		}
		put(w, m.ts == KY_TIME_NONE ? ",\"untimed\":true}}" : "}}");
	}
}

/* Drop Perfetto's prefix, which names the origin: reading the file adds it again. */
static struct ky_text metadata_key(const struct ky_trace *trace, uint32_t row)
{
	struct ky_text key = ky_walk_text(trace, trace->metadata.key[row]);
	static const char prefix[] = "json_metadata.";
	if (key.bytes > sizeof(prefix) - 1 && !memcmp(key.data, prefix, sizeof(prefix) - 1)) {
		key.data += sizeof(prefix) - 1;
		key.bytes -= (uint32_t)sizeof(prefix) - 1;
	}
	return key;
}

/* Report whether the row is the unit in which a JSON file wants to be shown: that has its own place. */
static bool is_unit(const struct ky_trace *trace, uint32_t row)
{
	const char *const key = ky_text_of(trace, trace->metadata.key[row]);
	return key && trace->metadata.text[row] && !strcmp(key, "displayTimeUnit");
}

static void put_unit(struct json_export *w)
{
	uint32_t text = 0;
	for (uint32_t i = 0; !text && i < w->trace->metadata.rows.count; i++)
		text = is_unit(w->trace, i) ? w->trace->metadata.text[i] : 0;
	put(w, "{\"displayTimeUnit\":");
	if (text)
		put_string(w, text);
	else
		put(w, "\"ns\"");
}

static void put_metadata(struct json_export *w)
{
	const struct ky_metadata *m = &w->trace->metadata;
	put(w, ",\n\"metadata\":{");
	w->first = true;
	for (uint32_t i = 0; i < m->rows.count; i++) {
		if (is_unit(w->trace, i))
			continue;
		put_key(w, metadata_key(w->trace, i));
		if (m->text[i])
			put_string(w, m->text[i]);
		else
			ky_json_append_int(w->out, m->number[i]);
	}
	put(w, "}");
}

static void put_frames(struct json_export *w)
{
	const struct ky_trace *trace = w->trace;
	put(w, ",\n\"stackFrames\":{");
	w->first = true;
	for (uint32_t i = 0; i < trace->callsites.rows.count; i++) {
		const uint32_t frame = trace->callsites.frame[i];
		const uint32_t mapping = trace->frames.mapping[frame];
		comma(w);
		put(w, "\n\"");
		ky_json_append_uint(w->out, i);
		put(w, "\":{\"name\":");
		put_string(w, trace->frames.name[frame]);
		if (mapping != KY_NONE && trace->mappings.name[mapping]) {
			put(w, ",\"category\":");
			put_string(w, trace->mappings.name[mapping]);
		}
		if (trace->callsites.parent[i] != KY_NONE) {
			put(w, ",\"parent\":\"");
			ky_json_append_uint(w->out, trace->callsites.parent[i]);
			put(w, "\"");
		}
		put(w, "}");
		if (w->out->used > KY_OUT_ROOM_MAX)
			ky_out_push(w->out);
	}
	put(w, "}");
}

static void put_sample(struct json_export *w, uint32_t row)
{
	const struct ky_samples *s = &w->trace->samples;
	comma(w);
	put(w, "\n{\"pid\":");
	ky_json_append_uint(w->out, ky_address_pid_of_thread(w->trace, s->thread[row]));
	put(w, ",\"tid\":");
	ky_json_append_uint(w->out, ky_address_tid(w->trace, s->thread[row]));
	put_ts(w, s->ts[row]);
	if (s->cpu[row] != KY_NONE) {
		put(w, ",\"cpu\":");
		ky_json_append_uint(w->out, s->cpu[row]);
	}
	put(w, ",\"name\":");
	put_text(w, s->event[row] ? ky_walk_text(w->trace, s->event[row])
				  : (struct ky_text){"sample", 6});
	if (s->callsite[row] != KY_NONE) {
		put(w, ",\"sf\":\"");
		ky_json_append_uint(w->out, s->callsite[row]);
		put(w, "\"");
	}
	put(w, ",\"weight\":");
	ky_json_append_double(w->out, s->weight[row]);
	put(w, "}");
}

static bool wants_sample(const struct json_export *w, uint32_t row)
{
	const struct ky_export_selection *s = w->selection;
	const int64_t ts = w->trace->samples.ts[row];
	return ts >= 0 && (s->from_ns == KY_TIME_NONE || ts >= s->from_ns) &&
	       (s->to_ns == KY_TIME_NONE || ts < s->to_ns) &&
	       ky_selected_thread(s, w->trace->samples.thread[row]);
}

static void put_samples(struct json_export *w)
{
	if (!w->trace->samples.rows.count)
		return;
	put_frames(w);
	put(w, ",\n\"samples\":[");
	w->first = true;
	for (uint32_t i = 0; i < w->trace->samples.rows.count; i++) {
		if (wants_sample(w, i))
			put_sample(w, i);
		if (w->out->used > KY_OUT_ROOM_MAX)
			ky_out_push(w->out);
	}
	put(w, "]");
}

/* Samples are a list of their own behind the events. */
static void skip_sample(void *self, const struct ky_walk_item *item)
{
	(void)self;
	(void)item;
}

/* ---- the file ---- */

static int write_file(struct json_export *w, const struct ky_export_job *job)
{
	static const struct ky_walk_rows rows = {.slice = put_slice,
						 .counter = put_counter,
						 .state = put_state,
						 .sample = skip_sample,
						 .named_ends = true};
	put_unit(w);
	put(w, ",\"traceEvents\":[");
	w->first_event = true;
	put_names(w);
	put_losses(w);
	const int error = ky_walk_each(job, &rows, w);
	if (error)
		return error;
	put(w, "\n]");
	const uint64_t snapshots = ky_walk_snapshots(w->trace);
	w->left->snapshots += snapshots - (snapshots && w->clocks_put);
	count_idle(w);
	put_metadata(w);
	put_samples(w);
	put(w, "}\n");
	return w->out->error ? w->out->error : w->clean.error;
}

static int write_trace(const struct ky_export_job *job)
{
	struct json_export w = {.trace = job->trace,
				.selection = job->selection,
				.out = job->out,
				.left = job->left};
	int error = ky_out_init(&w.clean, 0);
	if (!error)
		error = ky_addresses_open(&w.addresses, job->trace, false);
	if (!error)
		error = ky_flow_marks_open(&w.flow_marks, job->trace, job->selection, &w.addresses,
					   job->left);
	if (!error)
		error = write_file(&w, job);
	ky_flow_marks_close(&w.flow_marks);
	ky_addresses_close(&w.addresses);
	ky_out_free(&w.clean);
	return error;
}

const struct ky_exporter ky_exporter_json = {&ky_format_json, write_trace};
