/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export.c: a trace as Perfetto's protobuf: the file, its packets and its clocks. docs/formats/pftrace.md
 * says what becomes what.
 *
 * Times of events count from the event before (clock 64), tied to a clock of kymo's own, and that to the file's
 * clock, both at zero: snapshots of the file's clock itself must run forward, and may be of any time.
 */
#include "formats/pftrace/pftrace_export.h"

#include "formats/utf8.h"

#include <errno.h>
#include <stdlib.h>

/* FNV-1a of "kymo.boottime" with the top bit set, as the recorder has it. */
#define CLOCK_ALIAS UINT64_C(0xfdb62b24)

/* ---- packets ---- */

static bool is_whole(struct ky_pfx *w)
{
	if (!w->body.error && !w->interned.error && !w->part.error && !w->inner.error)
		return true;
	w->out->error = w->out->error ? w->out->error : -ENOMEM;
	return false;
}

/* A packet of a head and up to two messages. */
static void put_packet(struct ky_pfx *w, const uint8_t *head, size_t head_bytes, uint32_t field)
{
	uint8_t fields[4 * KY_PROTO_VARINT_BYTES];
	uint8_t *middle = fields, *end;
	if (!is_whole(w))
		return;
	if (w->interned.used) {
		middle = ky_proto_tag_at(fields, KY_PF_TRACE_PACKET_INTERNED_DATA, KY_PROTO_BYTES);
		middle = ky_proto_varint_at(middle, w->interned.used);
	}
	end = ky_proto_tag_at(middle, field, KY_PROTO_BYTES);
	end = ky_proto_varint_at(end, w->body.used);
	ky_proto_length(w->out, KY_PF_TRACE_PACKET,
			head_bytes + (size_t)(end - fields) + w->interned.used + w->body.used);
	ky_out_append(w->out, head, head_bytes);
	ky_out_append(w->out, fields, (size_t)(middle - fields));
	ky_out_append(w->out, w->interned.data, w->interned.used);
	ky_out_append(w->out, middle, (size_t)(end - middle));
	ky_out_append(w->out, w->body.data, w->body.used);
	w->interned.used = 0;
	w->body.used = 0;
}

void ky_pfx_send_file(struct ky_pfx *w, uint32_t field)
{
	uint8_t head[2 * KY_PROTO_VARINT_BYTES];
	const uint8_t *end =
		ky_proto_uint_at(head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, KY_PFX_FILE);
	put_packet(w, head, (size_t)(end - head), field);
}

void ky_pfx_send(struct ky_pfx *w, enum ky_pfx_sequence sequence, uint32_t field, int64_t ts)
{
	uint8_t head[8 * KY_PROTO_VARINT_BYTES];
	uint8_t *end =
		ky_proto_uint_at(head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
	end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
			       KY_PF_SEQ_NEEDS_INCREMENTAL_STATE);
	if (sequence == KY_PFX_EVENTS && (uint64_t)ts >= w->event_ns) {
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_TIMESTAMP,
				       (uint64_t)ts - w->event_ns);
		w->event_ns = (uint64_t)ts;
	} else {
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_TIMESTAMP, (uint64_t)ts);
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_TIMESTAMP_CLOCK_ID, w->clock);
	}
	put_packet(w, head, (size_t)(end - head), field);
}

/* ---- texts ---- */

void ky_pfx_text(struct ky_pfx *w, struct ky_out *to, uint32_t field, struct ky_text text)
{
	ky_proto_text(to, field, ky_utf8_text(&w->clean, text, false));
}

void ky_pfx_string(struct ky_pfx *w, struct ky_out *to, uint32_t field, uint32_t string)
{
	ky_pfx_text(w, to, field, ky_export_text(w->trace, string));
}

bool ky_pfx_is_new(struct ky_pfx *w, enum ky_pfx_interned what, uint32_t number)
{
	uint8_t *byte = &w->known[what][number / 8];
	const uint8_t bit = (uint8_t)(1u << number % 8);
	if (*byte & bit)
		return false;
	*byte |= bit;
	return true;
}

void ky_pfx_intern(struct ky_pfx *w, enum ky_pfx_interned what, uint32_t string)
{
	static const uint8_t fields[KY_PFX_INTERNED] = {
		[KY_PFX_CATEGORIES] = KY_PF_INTERNED_DATA_EVENT_CATEGORIES,
		[KY_PFX_NAMES] = KY_PF_INTERNED_DATA_EVENT_NAMES,
		[KY_PFX_KEYS] = KY_PF_INTERNED_DATA_DEBUG_ANNOTATION_NAMES,
		[KY_PFX_FUNCTIONS] = KY_PF_INTERNED_DATA_FUNCTION_NAMES,
		[KY_PFX_FRAMES] = KY_PF_INTERNED_DATA_FRAMES,
		[KY_PFX_CALLSTACKS] = KY_PF_INTERNED_DATA_CALLSTACKS,
		[KY_PFX_BUILD_IDS] = KY_PF_INTERNED_DATA_BUILD_IDS,
		[KY_PFX_PATHS] = KY_PF_INTERNED_DATA_MAPPING_PATHS,
		[KY_PFX_SOURCES] = KY_PF_INTERNED_DATA_SOURCE_PATHS,
		[KY_PFX_MAPPINGS] = KY_PF_INTERNED_DATA_MAPPINGS,
	};
	if (!ky_pfx_is_new(w, what, string))
		return;
	w->inner.used = 0;
	ky_proto_uint(&w->inner, KY_PF_INTERNED_STRING_IID, string);
	ky_pfx_string(w, &w->inner, KY_PF_INTERNED_STRING_STR, string);
	ky_proto_message(&w->interned, fields[what], &w->inner);
}

/* ---- clocks ---- */

static void put_clock(struct ky_out *snapshot, uint64_t id, uint64_t ns, bool incremental)
{
	uint8_t clock[4 * KY_PROTO_VARINT_BYTES];
	uint8_t *end = ky_proto_uint_at(clock, KY_PF_CLOCK_CLOCK_ID, id);
	end = ky_proto_uint_at(end, KY_PF_CLOCK_TIMESTAMP, ns);
	if (incremental)
		end = ky_proto_uint_at(end, KY_PF_CLOCK_IS_INCREMENTAL, 1);
	ky_proto_bytes(snapshot, KY_PF_CLOCK_SNAPSHOT_CLOCKS, clock, (size_t)(end - clock));
}

static void put_clock_packet(struct ky_pfx *w, enum ky_pfx_sequence sequence, bool first)
{
	uint8_t head[12 * KY_PROTO_VARINT_BYTES];
	uint8_t *end =
		ky_proto_uint_at(head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
	if (first) {
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
				       KY_PF_SEQ_INCREMENTAL_STATE_CLEARED);
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_FIRST_PACKET_ON_SEQUENCE, 1);
	}
	if (first && sequence == KY_PFX_EVENTS) {
		end = ky_proto_tag_at(end, KY_PF_TRACE_PACKET_TRACE_PACKET_DEFAULTS,
				      KY_PROTO_BYTES);
		*end++ = 3; /* a tag of two bytes and the clock's number */
		end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID,
				       KY_PF_CLOCK_SEQUENCE);
	}
	put_packet(w, head, (size_t)(end - head), KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT);
}

static void begin_sequences(struct ky_pfx *w)
{
	put_clock(&w->body, w->clock, 0, false);
	put_clock(&w->body, CLOCK_ALIAS, 0, false);
	ky_proto_uint(&w->body, KY_PF_CLOCK_SNAPSHOT_PRIMARY_TRACE_CLOCK, w->clock);
	put_clock_packet(w, KY_PFX_FILE, true);
	put_clock(&w->body, CLOCK_ALIAS, 0, false);
	put_clock(&w->body, KY_PF_CLOCK_SEQUENCE, 0, true);
	put_clock_packet(w, KY_PFX_EVENTS, true);
	put_clock(&w->body, w->clock, 0, false);
	put_clock(&w->body, CLOCK_ALIAS, 0, false);
	put_clock_packet(w, KY_PFX_SAMPLES, true);
}

static bool is_builtin(uint64_t clock)
{
	return clock >= KY_CLOCK_REALTIME && clock <= KY_CLOCK_BOOTTIME;
}

/* Of clocks that others know; the trace's own shows the time of the snapshot. */
static void put_snapshots(struct ky_pfx *w)
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
		put_clock(&w->body, w->clock, (uint64_t)last, false);
		for (uint32_t i = from; i < to; i++)
			if (is_builtin(c->clock[i]) && c->clock[i] != w->clock && c->value[i] >= 0)
				put_clock(&w->body, c->clock[i], (uint64_t)c->value[i], false);
		put_clock_packet(w, KY_PFX_FILE, false);
	}
}

/* ---- around the events ---- */

static void put_metadata(struct ky_pfx *w)
{
	const struct ky_metadata *m = &w->trace->metadata;
	for (uint32_t i = 0; i < m->rows.count; i++) {
		struct ky_text key = ky_export_text(w->trace, m->key[i]);
		if (key.bytes > 3 && memcmp(key.data, "cr-", 3) == 0)
			key = (struct ky_text){key.data + 3, key.bytes - 3};
		w->part.used = 0;
		ky_pfx_text(w, &w->part, KY_PF_CHROME_METADATA_NAME, key);
		if (m->text[i])
			ky_pfx_string(w, &w->part, KY_PF_CHROME_METADATA_STRING_VALUE, m->text[i]);
		else
			ky_proto_uint(&w->part, KY_PF_CHROME_METADATA_INT_VALUE,
				      (uint64_t)m->number[i]);
		ky_proto_message(&w->body, KY_PF_CHROME_EVENT_BUNDLE_METADATA, &w->part);
	}
	if (w->body.used)
		ky_pfx_send_file(w, KY_PF_TRACE_PACKET_CHROME_EVENTS);
}

static void put_lost_sum(struct ky_pfx *w)
{
	if (!w->trace->lost)
		return;
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_BUFFER_STATS_TRACE_WRITER_PACKET_LOSS, w->trace->lost);
	ky_proto_message(&w->body, KY_PF_TRACE_STATS_BUFFER_STATS, &w->part);
	ky_pfx_send_file(w, KY_PF_TRACE_PACKET_TRACE_STATS);
}

static int write_file(struct ky_pfx *w, const struct ky_export_job *job)
{
	static const struct ky_export_rows rows = {.slice = ky_pfx_slice,
						   .counter = ky_pfx_counter,
						   .sched = ky_pfx_sched,
						   .sample = ky_pfx_sample,
						   .log = ky_pfx_log,
						   .raw = ky_pfx_raw,
						   .named_ends = true};
	begin_sequences(w);
	put_snapshots(w);
	put_metadata(w);
	ky_pfx_describe_tasks(w);
	ky_pfx_describe_tracks(w);
	ky_pfx_losses(w);
	const int error = ky_export_loop(job, &rows, w);
	if (error)
		return error;
	ky_pfx_sched_end(w);
	put_lost_sum(w);
	is_whole(w);
	return w->out->error ? w->out->error : w->clean.error;
}

/* ---- open and close ---- */

static void close_writer(struct ky_pfx *w)
{
	for (uint32_t i = 0; i < KY_PFX_INTERNED; i++)
		free(w->known[i]);
	ky_cpu_switches_free(&w->switches);
	ky_flow_marks_close(&w->flow_marks);
	ky_addresses_close(&w->addresses);
	ky_out_free(&w->body);
	ky_out_free(&w->interned);
	ky_out_free(&w->part);
	ky_out_free(&w->inner);
	ky_out_free(&w->clean);
}

static int open_writer(struct ky_pfx *w)
{
	const struct ky_trace *t = w->trace;
	const uint32_t counts[KY_PFX_INTERNED] = {
		[KY_PFX_FRAMES] = t->frames.rows.count,
		[KY_PFX_CALLSTACKS] = t->callsites.rows.count,
		[KY_PFX_MAPPINGS] = t->mappings.rows.count + 2,
	};
	if (ky_out_init(&w->body, 0) || ky_out_init(&w->interned, 0) || ky_out_init(&w->part, 0) ||
	    ky_out_init(&w->inner, 0) || ky_out_init(&w->clean, 0))
		return -ENOMEM;
	for (uint32_t i = 0; i < KY_PFX_INTERNED; i++) {
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
	struct ky_pfx w = {
		.trace = trace, .selection = job->selection, .out = job->out, .left = job->left};
	w.clock = is_builtin(trace->clock) ? trace->clock : KY_CLOCK_BOOTTIME;
	int error = open_writer(&w);
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
