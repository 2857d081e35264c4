/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export.c: a trace as Perfetto's protobuf: the file, its packets and its clocks, and the descriptors of
 * processes, threads and tracks. docs/formats/pftrace.md has the table of what becomes what, pftrace_emit.h the clocks.
 *
 * A uuid is the row's number and its table, so uuids are small, and so are the packets of events.
 */
#include "formats/pftrace/pftrace_export.h"
#include "formats/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- descriptors ---- */

static uint64_t uuid_of(uint32_t row, uint32_t table)
{
	return ((uint64_t)row + 1) * 4 + table;
}

static uint64_t process_uuid(uint32_t process)
{
	return uuid_of(process, 0);
}

uint64_t ky_pf_export_thread_uuid(const struct ky_pf_exporter *w, uint32_t thread)
{
	(void)w;
	return uuid_of(thread, 1);
}

static struct ky_text or_none(const struct ky_pf_exporter *w, uint32_t string)
{
	return string ? ky_walk_text(w->trace, string) : (struct ky_text){NULL, 0};
}

static void describe_process(struct ky_pf_exporter *w, uint32_t process)
{
	const struct ky_processes *p = &w->trace->processes;
	ky_pf_emit_process(&w->emit, process_uuid(process), ky_address_pid(w->trace, process),
			   or_none(w, p->name[process]), or_none(w, p->cmdline[process]));
}

static void describe_thread(struct ky_pf_exporter *w, uint32_t thread)
{
	const struct ky_threads *t = &w->trace->threads;
	const uint32_t process = t->process[thread];
	ky_pf_emit_thread(&w->emit, ky_pf_export_thread_uuid(w, thread),
			  process == KY_NONE ? 0 : process_uuid(process),
			  ky_address_pid_of_thread(w->trace, thread),
			  ky_address_tid(w->trace, thread), or_none(w, t->name[thread]));
}

/* Files without ids have 0, which is the kernel's idle task only when nothing else is on it. */
static void describe_zeros(struct ky_pf_exporter *w)
{
	const struct ky_trace *t = w->trace;
	for (uint32_t i = 0; i < t->tracks.rows.count; i++) {
		const uint32_t thread = ky_track_thread(t, i);
		if (w->addresses.tracks[i].form == KY_AT_THREAD && thread != KY_NONE &&
		    t->threads.is_idle[thread] && !ky_track_is_counter(t->tracks.kind[i]))
			describe_thread(w, thread);
	}
}

static void describe_tasks(struct ky_pf_exporter *w)
{
	for (uint32_t i = 0; i < w->trace->processes.rows.count; i++)
		describe_process(w, i);
	for (uint32_t i = 0; i < w->trace->threads.rows.count; i++)
		if (!w->trace->threads.is_idle[i] && ky_selected_thread(w->selection, i))
			describe_thread(w, i);
	describe_zeros(w);
}

static uint64_t owner_uuid(const struct ky_pf_exporter *w, uint32_t track)
{
	const uint32_t thread = ky_track_thread(w->trace, track);
	const uint32_t process = ky_track_process(w->trace, track);
	if (thread != KY_NONE)
		return ky_pf_export_thread_uuid(w, thread);
	return process != KY_NONE ? process_uuid(process) : 0;
}

static void put_name(struct ky_pf_exporter *w, uint32_t track)
{
	const struct ky_tracks *t = &w->trace->tracks;
	const uint8_t kind = t->kind[track];
	const bool of_cpu = kind == KY_TRACK_CPU || kind == KY_TRACK_CPU_COUNTER;
	if (t->name[track] && !of_cpu) {
		ky_pf_export_string(w, &w->emit.body, KY_PF_TRACK_DESCRIPTOR_NAME, t->name[track]);
	} else if (t->name[track]) {
		char number[24];
		const int bytes = snprintf(number, sizeof(number), " %u", t->owner[track]);
		const struct ky_text name = ky_walk_text(w->trace, t->name[track]);
		ky_proto_length(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_NAME,
				name.bytes + (size_t)bytes);
		ky_out_append(&w->emit.body, name.data, name.bytes);
		ky_out_append(&w->emit.body, number, (size_t)bytes);
	} else if (kind == KY_TRACK_GLOBAL) {
		ky_proto_bytes(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_NAME, "global", 6);
	}
}

static bool is_own(const struct ky_pf_exporter *w, uint32_t track)
{
	const uint8_t form = w->addresses.tracks[track].form;
	return !ky_track_is_counter(w->trace->tracks.kind[track]) &&
	       (form == KY_AT_THREAD || form == KY_AT_PROCESS);
}

uint64_t ky_pf_export_track(const struct ky_pf_exporter *w, uint32_t track)
{
	return is_own(w, track) ? owner_uuid(w, track) : uuid_of(track, 2);
}

static void describe(struct ky_pf_exporter *w, uint32_t track)
{
	const struct ky_tracks *t = &w->trace->tracks;
	const uint64_t parent = t->parent[track] < t->rows.count
					? ky_pf_export_track(w, t->parent[track])
					: owner_uuid(w, track);
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_UUID, uuid_of(track, 2));
	if (parent)
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID, parent);
	put_name(w, track);
	if (ky_track_is_counter(t->kind[track])) {
		w->emit.part.used = 0;
		if (t->unit[track])
			ky_pf_export_string(w, &w->emit.part, KY_PF_COUNTER_DESCRIPTOR_UNIT_NAME,
					    t->unit[track]);
		ky_proto_message(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_COUNTER, &w->emit.part);
	} else if (t->flags[track] & KY_TRACK_ASYNC) {
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR,
			      KY_PF_SIBLING_MERGE_BEHAVIOR_NONE);
	}
	ky_pf_export_send_file(w, KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR);
}

/* A part of a trace has only the selected tracks and those above them. */
static void describe_tracks(struct ky_pf_exporter *w)
{
	const struct ky_tracks *t = &w->trace->tracks;
	const uint8_t *wanted = w->selection->tracks;
	for (uint32_t i = 0; i < t->rows.count; i++)
		if (!is_own(w, i) && (!wanted || wanted[i] || t->parent[i] == KY_NONE))
			describe(w, i);
}

/* ---- packets ---- */

void ky_pf_export_send_file(struct ky_pf_exporter *w, uint32_t field)
{
	ky_pf_emit_file_packet(&w->emit, field, &w->emit.body);
	w->emit.body.used = 0;
}

void ky_pf_export_send(struct ky_pf_exporter *w, enum ky_pf_export_sequence sequence,
		       uint32_t field, int64_t ts)
{
	uint8_t head[8 * KY_PROTO_VARINT_BYTES];
	uint8_t *end =
		ky_proto_uint_at(head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
	end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
			       KY_PF_SEQ_NEEDS_INCREMENTAL_STATE);
	if (sequence == KY_PF_EXPORT_EVENTS && (uint64_t)ts >= w->event_ns) {
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_TIMESTAMP,
				       (uint64_t)ts - w->event_ns);
		w->event_ns = (uint64_t)ts;
	} else {
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_TIMESTAMP, (uint64_t)ts);
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_TIMESTAMP_CLOCK_ID, w->clock);
	}
	ky_pf_emit_packet(&w->emit, head, (size_t)(end - head), field);
}

/* ---- texts ---- */

void ky_pf_export_string(struct ky_pf_exporter *w, struct ky_out *to, uint32_t field,
			 uint32_t string)
{
	ky_pf_emit_text(&w->emit, to, field, ky_walk_text(w->trace, string));
}

bool ky_pf_export_is_new(struct ky_pf_exporter *w, enum ky_pf_export_interned what, uint32_t number)
{
	uint8_t *byte = &w->known[what][number / 8];
	const uint8_t bit = (uint8_t)(1u << number % 8);
	if (*byte & bit)
		return false;
	*byte |= bit;
	return true;
}

void ky_pf_export_intern(struct ky_pf_exporter *w, enum ky_pf_export_interned what, uint32_t string)
{
	static const uint8_t fields[KY_PF_EXPORT_INTERNED] = {
		[KY_PF_EXPORT_CATEGORIES] = KY_PF_INTERNED_DATA_EVENT_CATEGORIES,
		[KY_PF_EXPORT_NAMES] = KY_PF_INTERNED_DATA_EVENT_NAMES,
		[KY_PF_EXPORT_KEYS] = KY_PF_INTERNED_DATA_DEBUG_ANNOTATION_NAMES,
		[KY_PF_EXPORT_FUNCTIONS] = KY_PF_INTERNED_DATA_FUNCTION_NAMES,
		[KY_PF_EXPORT_FRAMES] = KY_PF_INTERNED_DATA_FRAMES,
		[KY_PF_EXPORT_CALLSTACKS] = KY_PF_INTERNED_DATA_CALLSTACKS,
		[KY_PF_EXPORT_BUILD_IDS] = KY_PF_INTERNED_DATA_BUILD_IDS,
		[KY_PF_EXPORT_PATHS] = KY_PF_INTERNED_DATA_MAPPING_PATHS,
		[KY_PF_EXPORT_SOURCES] = KY_PF_INTERNED_DATA_SOURCE_PATHS,
		[KY_PF_EXPORT_MAPPINGS] = KY_PF_INTERNED_DATA_MAPPINGS,
	};
	if (!ky_pf_export_is_new(w, what, string))
		return;
	ky_pf_emit_intern(&w->emit, fields[what], string, ky_walk_text(w->trace, string));
}

/* ---- clocks ---- */

static void begin_sequences(struct ky_pf_exporter *w)
{
	struct ky_pf_emitter *emit = &w->emit;
	emit->part.used = 0;
	ky_pf_emit_clock(emit, w->clock, 0, false);
	ky_pf_emit_clock(emit, KY_PF_EMIT_CLOCK_ALIAS, 0, false);
	ky_proto_uint(&emit->part, KY_PF_CLOCK_SNAPSHOT_PRIMARY_TRACE_CLOCK, w->clock);
	ky_pf_emit_first_packet(emit, KY_PF_EXPORT_FILE, false, 0);
	emit->part.used = 0;
	ky_pf_emit_clock(emit, KY_PF_EMIT_CLOCK_ALIAS, 0, false);
	ky_pf_emit_clock(emit, KY_PF_CLOCK_SEQUENCE, 0, true);
	ky_pf_emit_first_packet(emit, KY_PF_EXPORT_EVENTS, true, 0);
	emit->part.used = 0;
	ky_pf_emit_clock(emit, w->clock, 0, false);
	ky_pf_emit_clock(emit, KY_PF_EMIT_CLOCK_ALIAS, 0, false);
	ky_pf_emit_first_packet(emit, KY_PF_EXPORT_SAMPLES, false, 0);
}

static bool is_builtin(uint64_t clock)
{
	return clock >= KY_CLOCK_REALTIME && clock <= KY_CLOCK_BOOTTIME;
}

/* Write the snapshots of clocks that other tools know; the trace's clock has the time of the snapshot. */
static void put_snapshots(struct ky_pf_exporter *w)
{
	const struct ky_clock_rows *c = &w->trace->clock_rows;
	int64_t last = 0;
	for (uint32_t from = 0, to; from < c->rows.count; from = to) {
		uint32_t others = 0;
		for (to = from; to < c->rows.count && c->snapshot[to] == c->snapshot[from]; to++)
			others += is_builtin(c->clock[to]) && c->clock[to] != w->clock &&
				  c->value[to] >= 0 && !c->machine[to];
		if (!others || c->ts[from] <= last) {
			w->left->snapshots++;
			continue;
		}
		last = c->ts[from];
		w->emit.part.used = 0;
		ky_pf_emit_clock(&w->emit, w->clock, (uint64_t)last, false);
		for (uint32_t i = from; i < to; i++)
			if (is_builtin(c->clock[i]) && c->clock[i] != w->clock && c->value[i] >= 0)
				ky_pf_emit_clock(&w->emit, c->clock[i], (uint64_t)c->value[i],
						 false);
		ky_pf_emit_file_packet(&w->emit, KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT, &w->emit.part);
	}
}

/* ---- around the events ---- */

static void put_metadata(struct ky_pf_exporter *w)
{
	const struct ky_metadata *m = &w->trace->metadata;
	for (uint32_t i = 0; i < m->rows.count; i++) {
		struct ky_text key = ky_walk_text(w->trace, m->key[i]);
		if (key.bytes > 3 && memcmp(key.data, "cr-", 3) == 0)
			key = (struct ky_text){key.data + 3, key.bytes - 3};
		w->emit.part.used = 0;
		ky_pf_emit_text(&w->emit, &w->emit.part, KY_PF_CHROME_METADATA_NAME, key);
		if (m->text[i])
			ky_pf_export_string(w, &w->emit.part, KY_PF_CHROME_METADATA_STRING_VALUE,
					    m->text[i]);
		else
			ky_proto_uint(&w->emit.part, KY_PF_CHROME_METADATA_INT_VALUE,
				      (uint64_t)m->number[i]);
		ky_proto_message(&w->emit.body, KY_PF_CHROME_EVENT_BUNDLE_METADATA, &w->emit.part);
	}
	if (w->emit.body.used)
		ky_pf_export_send_file(w, KY_PF_TRACE_PACKET_CHROME_EVENTS);
}

static int write_file(struct ky_pf_exporter *w, const struct ky_export_job *job)
{
	static const struct ky_walk_rows rows = {.slice = ky_pf_export_slice,
						 .counter = ky_pf_export_counter,
						 .sched = ky_pf_export_sched,
						 .sample = ky_pf_export_sample,
						 .log = ky_pf_export_log,
						 .raw = ky_pf_export_raw,
						 .named_ends = true};
	begin_sequences(w);
	put_snapshots(w);
	put_metadata(w);
	describe_tasks(w);
	describe_tracks(w);
	ky_pf_export_losses(w);
	const int error = ky_walk_each(job, &rows, w);
	if (error)
		return error;
	ky_pf_export_sched_end(w);
	if (w->trace->lost)
		ky_pf_emit_losses(&w->emit, w->trace->lost);
	ky_pf_emit_is_whole(&w->emit);
	return w->emit.out->error ? w->emit.out->error : w->emit.clean.error;
}

/* ---- open and close ---- */

static void close_writer(struct ky_pf_exporter *w)
{
	for (uint32_t i = 0; i < KY_PF_EXPORT_INTERNED; i++)
		free(w->known[i]);
	ky_u64_map_free(&w->with_states);
	ky_cpu_switches_free(&w->switches);
	ky_flow_marks_close(&w->flow_marks);
	ky_addresses_close(&w->addresses);
	ky_pf_emit_close(&w->emit);
}

static int open_writer(struct ky_pf_exporter *w, struct ky_out *out)
{
	const struct ky_trace *t = w->trace;
	const uint32_t counts[KY_PF_EXPORT_INTERNED] = {
		[KY_PF_EXPORT_FRAMES] = t->frames.rows.count,
		[KY_PF_EXPORT_CALLSTACKS] = t->callsites.rows.count,
		[KY_PF_EXPORT_MAPPINGS] = t->mappings.rows.count + 2,
	};
	if (ky_pf_emit_open(&w->emit, out))
		return -ENOMEM;
	for (uint32_t i = 0; i < KY_PF_EXPORT_INTERNED; i++) {
		const uint32_t count = counts[i] ? counts[i] : t->strings.count;
		w->known[i] = calloc((size_t)count / 8 + 1, 1);
		if (!w->known[i])
			return -ENOMEM;
	}
	return 0;
}

static int write_trace(const struct ky_export_job *job)
{
	const struct ky_trace *trace = job->trace;
	struct ky_pf_exporter w = {.trace = trace, .selection = job->selection, .left = job->left};
	w.clock = is_builtin(trace->clock) ? trace->clock : KY_CLOCK_BOOTTIME;
	int error = open_writer(&w, job->out);
	if (!error)
		error = ky_addresses_open(&w.addresses, trace, false);
	if (!error)
		error = ky_flow_marks_open(&w.flow_marks, trace, job->selection, NULL, job->left);
	if (!error)
		error = write_file(&w, job);
	close_writer(&w);
	return error;
}

const struct ky_exporter ky_exporter_pftrace = {&ky_format_pftrace, write_trace};
