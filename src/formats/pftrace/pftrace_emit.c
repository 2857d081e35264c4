/* SPDX-License-Identifier: MIT */
/*
 * pftrace_emit.c: writes Perfetto's protobuf trace: packets, one after the other, each whole. pftrace_emit.h
 * has the plan.
 *
 *   0a len │ sequence and flags │ track_event │ time stamp        the packet of a plain event
 *          └ of the thread ─────┴ of the site ┴ 40 delta
 *
 * Time. The file's clock is BOOTTIME. Sequences have a clock of their own that counts nanoseconds
 * from their last packet. Perfetto wants the clocks in snapshots to run forward only, while a ring
 * may hold events from long before the file was opened; so the sequences' clocks are not tied to
 * BOOTTIME at the time of the snapshot, but to a second clock that is BOOTTIME by another name, and
 * at zero. A time that goes back is written in full, in BOOTTIME.
 *
 * Invariant: a sequence's first packet comes before all its others and clears its state, so that
 * files can be joined end to end.
 */
#include "formats/pftrace/pftrace_emit.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/pftrace/pftrace_schema.h"
#include "formats/proto.h"

/* As perfetto's docs advise: FNV-1a of a name, here "kymo.boottime", with the top bit set. */
#define BOOTTIME_ALIAS UINT64_C(0xfdb62b24)

/* Perfetto's service has sequence 1. */
enum { SEQUENCE_FILE = 2, SEQUENCE_THREADS = 3 };

/* What memory was short for is not written at all: the file would be broken from there on. */
static bool is_whole(struct ky_pft *w)
{
	if (!w->body.error && !w->interned.error && !w->part.error)
		return true;
	w->out->error = w->out->error ? w->out->error : -ENOMEM;
	return false;
}

static void put_packet(struct ky_pft *w, const struct ky_out *packet)
{
	if (is_whole(w))
		ky_proto_message(w->out, KY_PF_TRACE_PACKET, packet);
}

/* ---- the file's own sequence ---- */

static void begin_file_packet(struct ky_out *packet)
{
	packet->used = 0;
	ky_proto_uint(packet, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_FILE);
}

void ky_pft_describe(struct ky_pft *w, const struct ky_out *descriptor)
{
	if (!is_whole(w))
		return;
	uint8_t head[4 * KY_PROTO_VARINT_BYTES];
	uint8_t *end = ky_proto_uint_at(head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID,
					SEQUENCE_FILE);
	end = ky_proto_tag_at(end, KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR, KY_PROTO_BYTES);
	end = ky_proto_varint_at(end, descriptor->used);
	const size_t head_bytes = (size_t)(end - head);
	ky_proto_length(w->out, KY_PF_TRACE_PACKET, head_bytes + descriptor->used);
	ky_out_append(w->out, head, head_bytes);
	ky_out_append(w->out, descriptor->data, descriptor->used);
}

static void put_clock(struct ky_out *snapshot, uint64_t id, uint64_t time_ns, bool incremental)
{
	uint8_t clock[4 * KY_PROTO_VARINT_BYTES];
	uint8_t *end = ky_proto_uint_at(clock, KY_PF_CLOCK_CLOCK_ID, id);
	end = ky_proto_uint_at(end, KY_PF_CLOCK_TIMESTAMP, time_ns);
	if (incremental)
		end = ky_proto_uint_at(end, KY_PF_CLOCK_IS_INCREMENTAL, 1);
	ky_proto_bytes(snapshot, KY_PF_CLOCK_SNAPSHOT_CLOCKS, clock, (size_t)(end - clock));
}

/* Clears the sequence's state; ties the file's clock and its alias at zero. */
static void write_first(struct ky_pft *w)
{
	w->part.used = 0;
	put_clock(&w->part, KY_PF_BUILTIN_CLOCK_BOOTTIME, 0, false);
	put_clock(&w->part, BOOTTIME_ALIAS, 0, false);
	begin_file_packet(&w->body);
	ky_proto_uint(&w->body, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
		      KY_PF_SEQ_INCREMENTAL_STATE_CLEARED);
	ky_proto_uint(&w->body, KY_PF_TRACE_PACKET_FIRST_PACKET_ON_SEQUENCE, 1);
	ky_proto_message(&w->body, KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT, &w->part);
	put_packet(w, &w->body);
}

static void write_clock(struct ky_pft *w, const struct ky_tick_reading *sample)
{
	w->part.used = 0;
	put_clock(&w->part, KY_PF_BUILTIN_CLOCK_BOOTTIME, sample->boottime_ns, false);
	put_clock(&w->part, KY_PF_BUILTIN_CLOCK_MONOTONIC, sample->monotonic_ns, false);
	put_clock(&w->part, KY_PF_BUILTIN_CLOCK_REALTIME, sample->realtime_ns, false);
	begin_file_packet(&w->body);
	ky_proto_message(&w->body, KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT, &w->part);
	put_packet(w, &w->body);
}

/* ---- the threads' sequences ---- */

static void put_defaults(struct ky_pft *w, uint64_t uuid)
{
	uint8_t track[2 * KY_PROTO_VARINT_BYTES];
	const uint8_t *end = ky_proto_uint_at(track, KY_PF_TRACK_EVENT_DEFAULTS_TRACK_UUID, uuid);
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID,
		      KY_PF_CLOCK_SEQUENCE);
	ky_proto_bytes(&w->part, KY_PF_TRACE_PACKET_DEFAULTS_TRACK_EVENT_DEFAULTS, track,
		       (size_t)(end - track));
	ky_proto_message(&w->body, KY_PF_TRACE_PACKET_TRACE_PACKET_DEFAULTS, &w->part);
}

static void begin_sequence(struct ky_pft *w, struct ky_pft_thread *t, uint32_t index)
{
	const uint64_t sequence = (uint64_t)SEQUENCE_THREADS + index;
	t->uuid = ky_pft_thread_uuid(w, index);
	uint8_t *end =
		ky_proto_uint_at(t->head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
	end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
			       KY_PF_SEQ_NEEDS_INCREMENTAL_STATE);
	t->head_bytes = (uint8_t)(end - t->head);
	w->body.used = 0;
	ky_proto_uint(&w->body, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
	ky_proto_uint(&w->body, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
		      KY_PF_SEQ_INCREMENTAL_STATE_CLEARED);
	ky_proto_uint(&w->body, KY_PF_TRACE_PACKET_FIRST_PACKET_ON_SEQUENCE, 1);
	put_defaults(w, t->uuid);
	w->part.used = 0;
	put_clock(&w->part, BOOTTIME_ALIAS, 0, false);
	put_clock(&w->part, KY_PF_CLOCK_SEQUENCE, 0, true);
	ky_proto_message(&w->body, KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT, &w->part);
	put_packet(w, &w->body);
}

/* NULL when memory is short. */
static struct ky_pft_thread *thread_of(struct ky_pft *w, const struct ky_thread *thread)
{
	struct ky_pft_thread *t = ky_table_make(&w->threads, thread->index, w->out);
	if (t && __builtin_expect(!t->uuid, 0)) {
		begin_sequence(w, t, thread->index);
		ky_pft_describe_thread(w, thread);
	}
	return t;
}

static uint8_t *put_time(uint8_t *to, struct ky_pft_thread *t, uint64_t time_ns)
{
	if (__builtin_expect(time_ns < t->last_ns, 0)) {
		to = ky_proto_uint_at(to, KY_PF_TRACE_PACKET_TIMESTAMP, time_ns);
		return ky_proto_uint_at(to, KY_PF_TRACE_PACKET_TIMESTAMP_CLOCK_ID,
					KY_PF_BUILTIN_CLOCK_BOOTTIME);
	}
	to = ky_proto_uint_at(to, KY_PF_TRACE_PACKET_TIMESTAMP, time_ns - t->last_ns);
	t->last_ns = time_ns;
	return to;
}

void ky_pft_send(struct ky_pft *w, struct ky_pft_thread *t, uint64_t time_ns)
{
	if (!is_whole(w))
		return;
	uint8_t head[KY_PFT_HEAD_BYTES + 8 * KY_PROTO_VARINT_BYTES];
	memcpy(head, t->head, sizeof(t->head));
	uint8_t *end = put_time(head + t->head_bytes, t, time_ns);
	uint8_t *interned = end;
	if (w->interned.used) {
		end = ky_proto_tag_at(end, KY_PF_TRACE_PACKET_INTERNED_DATA, KY_PROTO_BYTES);
		end = ky_proto_varint_at(end, w->interned.used);
	}
	uint8_t *event = end;
	end = ky_proto_tag_at(end, KY_PF_TRACE_PACKET_TRACK_EVENT, KY_PROTO_BYTES);
	end = ky_proto_varint_at(end, w->body.used);
	ky_proto_length(w->out, KY_PF_TRACE_PACKET,
			(size_t)(end - head) + w->interned.used + w->body.used);
	ky_out_append(w->out, head, (size_t)(interned - head));
	ky_out_append(w->out, interned, (size_t)(event - interned));
	ky_out_append(w->out, w->interned.data, w->interned.used);
	ky_out_append(w->out, event, (size_t)(end - event));
	ky_out_append(w->out, w->body.data, w->body.used);
	w->interned.used = 0;
}

/* ---- events ---- */

static bool is_known(const struct ky_pft_thread *t, uint32_t site)
{
	return site / 64 < t->known_words && (t->known[site / 64] >> site % 64 & 1) != 0;
}

/* Remembers that the sequence has the trace point's strings. Without memory they come again. */
static void remember(struct ky_pft *w, struct ky_pft_thread *t, uint32_t site)
{
	if (site / 64 >= t->known_words) {
		const uint32_t words = (site / 64 + 1) * 2;
		uint64_t *known = realloc(t->known, words * sizeof(*known));
		if (!known) {
			w->out->error = w->out->error ? w->out->error : -ENOMEM;
			return;
		}
		memset(known + t->known_words, 0, (words - t->known_words) * sizeof(*known));
		t->known = known;
		t->known_words = words;
	}
	t->known[site / 64] |= UINT64_C(1) << site % 64;
}

static const struct ky_pft_site *site_of(struct ky_pft *w, const struct ky_site *site)
{
	struct ky_pft_site *s = ky_table_make(&w->sites, site->index, w->out);
	if (s && __builtin_expect(!s->body_bytes, 0))
		ky_pft_make_site(s, site);
	return s;
}

/* Writes the packet from pieces. */
static void write_plain(struct ky_pft *w, struct ky_pft_thread *t, const uint8_t *body,
			uint32_t body_bytes, uint64_t time_ns)
{
	uint8_t *packet = ky_out_room(w->out, 2 + KY_PFT_HEAD_BYTES + KY_PFT_BODY_BYTES +
						      4 * KY_PROTO_VARINT_BYTES);
	packet[0] = KY_PF_TRACE_PACKET << 3 | KY_PROTO_BYTES;
	uint8_t *end = packet + 2;
	memcpy(end, t->head, KY_PFT_HEAD_BYTES);
	end += t->head_bytes;
	memcpy(end, body, KY_PFT_BODY_BYTES);
	end = put_time(end + body_bytes, t, time_ns);
	packet[1] = (uint8_t)(end - packet - 2); /* below 128: heads, bodies and times are short */
	ky_out_done(w->out, end);
}

static void write_event(struct ky_pft *w, const struct ky_event *e)
{
	static const uint8_t end[KY_PFT_BODY_BYTES] = {
		KY_PF_TRACE_PACKET_TRACK_EVENT << 3 | KY_PROTO_BYTES, 2,
		KY_PF_TRACK_EVENT_TYPE << 3 | KY_PROTO_VARINT, KY_PF_TYPE_SLICE_END};
	struct ky_pft_thread *t = thread_of(w, e->thread);
	if (!t)
		return;
	if (e->kind == KYMO_KIND_END && !e->args_count) {
		write_plain(w, t, end, 4, e->time_ns);
		return;
	}
	if (!e->site || e->kind == KYMO_KIND_LOST) {
		ky_pft_write_event(w, t, NULL, e);
		return;
	}
	const struct ky_pft_site *s = site_of(w, e->site);
	if (!s)
		return;
	const bool known = is_known(t, e->site->index);
	if (s->plain && known && !e->args_count && !e->begin_lost && e->kind != KYMO_KIND_END) {
		write_plain(w, t, s->body, s->body_bytes, e->time_ns);
		return;
	}
	w->interned.used = 0;
	if (!known)
		ky_pft_intern_site(w, e->site);
	ky_pft_write_event(w, t, s, e);
	/* Sending takes the strings along; an event that comes to nothing does not. */
	if (!known && !w->interned.used)
		remember(w, t, e->site->index);
}

static void pft_event(void *writer, const struct ky_event *e)
{
	write_event(writer, e);
}

static void pft_clock(void *writer, const struct ky_tick_reading *sample)
{
	write_clock(writer, sample);
}

static void pft_thread(void *writer, const struct ky_thread *thread)
{
	struct ky_pft *w = writer;
	struct ky_pft_thread *t = ky_table_make(&w->threads, thread->index, w->out);
	if (t && !t->uuid)
		begin_sequence(w, t, thread->index);
	if (t)
		ky_pft_describe_thread(w, thread);
}

static void pft_process(void *writer, int32_t pid, struct ky_text name)
{
	ky_pft_describe_process(writer, pid, name, (struct ky_text){"", 0});
}

/* ---- the file ---- */

static void pft_close(void *writer)
{
	if (!writer)
		return;
	struct ky_pft *w = writer;
	for (uint32_t i = 0; i < w->threads.count; i++)
		free(((struct ky_pft_thread *)ky_table_at(&w->threads, i))->known);
	ky_table_free(&w->threads);
	ky_table_free(&w->sites);
	ky_out_free(&w->body);
	ky_out_free(&w->interned);
	ky_out_free(&w->part);
	ky_out_free(&w->clean);
	free(writer);
}

static int init(struct ky_pft *w)
{
	return ky_out_init(&w->body, 0) || ky_out_init(&w->interned, 0) ||
	       ky_out_init(&w->part, 0) || ky_out_init(&w->clean, 0);
}

static int pft_open(void **writer, struct ky_out *out, const struct ky_trace_info *info)
{
	*writer = calloc(1, sizeof(struct ky_pft));
	if (!*writer || init(*writer)) {
		pft_close(*writer);
		*writer = NULL;
		return -ENOMEM;
	}
	struct ky_pft *w = *writer;
	w->out = out;
	w->pid = info->pid;
	w->threads.item_bytes = sizeof(struct ky_pft_thread);
	w->sites.item_bytes = sizeof(struct ky_pft_site);
	/* Room below for a number per thread; the top bit is left out, as in all uuids. */
	const uint64_t start = info->clock.realtime_ns ^ info->clock.boottime_ns;
	w->uuid_base = ky_pft_mix(start, (uint32_t)info->pid) << 32 >> 1;
	write_first(w);
	write_clock(w, &info->clock);
	ky_pft_describe_process(w, info->pid, info->process, info->command);
	return 0;
}

/* Perfetto shows this number among the trace's losses, on the page of its errors. */
static void put_losses(struct ky_pft *w, uint64_t lost)
{
	uint8_t buffer[2 * KY_PROTO_VARINT_BYTES];
	const uint8_t *end =
		ky_proto_uint_at(buffer, KY_PF_BUFFER_STATS_TRACE_WRITER_PACKET_LOSS, lost);
	w->part.used = 0;
	ky_proto_bytes(&w->part, KY_PF_TRACE_STATS_BUFFER_STATS, buffer, (size_t)(end - buffer));
	begin_file_packet(&w->body);
	ky_proto_message(&w->body, KY_PF_TRACE_PACKET_TRACE_STATS, &w->part);
	put_packet(w, &w->body);
}

static void pft_finish(void *writer, uint64_t lost)
{
	struct ky_pft *w = writer;
	if (lost)
		put_losses(w, lost);
	if (!w->out->error)
		w->out->error = w->clean.error;
}

const struct ky_format ky_format_pftrace = {
	.name = "pftrace",
	.id = KYMO_FORMAT_PFTRACE,
	.suffix = ".pftrace",
	.open = pft_open,
	.process = pft_process,
	.thread = pft_thread,
	.event = pft_event,
	.clock = pft_clock,
	.finish = pft_finish,
	.close = pft_close,
};
