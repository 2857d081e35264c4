/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export.c: a trace as Perfetto's protobuf: the file, its packets and its clocks. docs/formats/pftrace.md
 * has the table of what becomes what, pftrace_emit.h the clocks.
 */
#include "formats/pftrace/pftrace_export.h"

#include "formats/utf8.h"

#include <errno.h>
#include <stdlib.h>

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
	ky_pf_emit_text(&w->emit, to, field, ky_export_text(w->trace, string));
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
	ky_pf_emit_intern(&w->emit, fields[what], string, ky_export_text(w->trace, string));
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
		struct ky_text key = ky_export_text(w->trace, m->key[i]);
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
	static const struct ky_export_rows rows = {.slice = ky_pf_export_slice,
						   .counter = ky_pf_export_counter,
						   .sched = ky_pf_export_sched,
						   .sample = ky_pf_export_sample,
						   .log = ky_pf_export_log,
						   .raw = ky_pf_export_raw,
						   .named_ends = true};
	begin_sequences(w);
	put_snapshots(w);
	put_metadata(w);
	ky_pf_export_describe_tasks(w);
	ky_pf_export_describe_tracks(w);
	ky_pf_export_losses(w);
	const int error = ky_export_loop(job, &rows, w);
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
