/* SPDX-License-Identifier: MIT */
/*
 * pftrace_session.c: a session's events as Perfetto's protobuf trace: the file, its sequences and tracks, and the fast
 * path. pftrace_session.h has the plan.
 *
 *   0a len │ sequence and flags │ track_event │ time stamp        the packet of a plain event
 *          └ of the thread ─────┴ of the site ┴ 40 delta
 *
 * The file's clock is BOOTTIME.
 *
 * A track's uuid follows from what it is for, so none has to be remembered: process and threads count up from a base
 * that differs from file to file, asynchronous spans and counters are hashes of their key. A small table remembers
 * which tracks were described, and forgets: describing a track twice costs a few bytes and changes nothing, and memory
 * stays bounded however many ids a program uses.
 */
#include "formats/pftrace/pftrace_session.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/utf8.h"

enum { SEQUENCE_THREADS = KY_PF_EMIT_FILE_SEQUENCE + 1 };

/* ---- tracks ---- */

enum { UUID_PROCESS = 1, UUID_SNAPSHOTS = 2, UUID_GLOBAL = 3, UUID_THREADS = 16 };

#define SALT_ASYNC UINT64_C(0x6173796e63)
#define SALT_COUNTER UINT64_C(0x636f756e74)

uint64_t ky_pf_session_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a ^ (b * UINT64_C(0x9e3779b97f4a7c15));
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t mix_text(uint64_t hash, struct ky_text text)
{
	for (uint32_t i = 0; i < text.bytes; i++)
		hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001b3);
	return ky_pf_session_mix(hash, text.bytes);
}

/* Below 2^63: shorter to write, and read right by those who take it for signed. */
static uint64_t as_uuid(uint64_t hash)
{
	return (hash >> 1) | 1;
}

uint64_t ky_pf_session_process_uuid(const struct ky_pf_session *w, int32_t pid)
{
	return pid == w->pid ? w->uuid_base + UUID_PROCESS
			     : as_uuid(ky_pf_session_mix(w->uuid_base, (uint32_t)pid));
}

static uint64_t thread_uuid(const struct ky_pf_session *w, uint32_t index)
{
	return w->uuid_base + UUID_THREADS + index;
}

/* Return true the first time, and again once it was forgotten. */
static bool is_new(struct ky_pf_session *w, uint64_t uuid)
{
	uint64_t *slot = &w->seen[uuid / 2 % KY_PF_SESSION_SEEN];
	const bool new = *slot != uuid;
	*slot = uuid;
	return new;
}

static void describe_child(struct ky_pf_session *w, uint64_t uuid, uint64_t parent,
			   struct ky_text name)
{
	w->emit.part.used = 0;
	ky_proto_uint(&w->emit.part, KY_PF_TRACK_DESCRIPTOR_UUID, uuid);
	if (parent)
		ky_proto_uint(&w->emit.part, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID, parent);
	ky_pf_emit_text(&w->emit, &w->emit.part, KY_PF_TRACK_DESCRIPTOR_NAME, name);
	ky_pf_emit_file_packet(&w->emit, KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR, &w->emit.part);
}

uint64_t ky_pf_session_async_track(struct ky_pf_session *w, const struct ky_event *e)
{
	const uint64_t process = ky_pf_session_process_uuid(w, e->thread->pid);
	const uint64_t key = ky_pf_session_mix(e->id, SALT_ASYNC ^ e->site->category_index);
	const uint64_t uuid = as_uuid(ky_pf_session_mix(process, key));
	if (is_new(w, uuid))
		describe_child(w, uuid, process, e->name);
	return uuid;
}

static void describe_counter(struct ky_pf_session *w, uint64_t uuid, uint64_t parent,
			     struct ky_text name, struct ky_text series)
{
	w->emit.part.used = 0;
	ky_proto_uint(&w->emit.part, KY_PF_TRACK_DESCRIPTOR_UUID, uuid);
	ky_proto_uint(&w->emit.part, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID, parent);
	ky_proto_bytes(&w->emit.part, KY_PF_TRACK_DESCRIPTOR_COUNTER, "", 0);
	const struct ky_text clean = ky_utf8_text(&w->emit.clean, name, false);
	if (!series.bytes) {
		ky_proto_text(&w->emit.part, KY_PF_TRACK_DESCRIPTOR_NAME, clean);
	} else {
		ky_proto_length(&w->emit.part, KY_PF_TRACK_DESCRIPTOR_NAME,
				clean.bytes + 1 + series.bytes);
		ky_out_append(&w->emit.part, clean.data, clean.bytes);
		ky_out_append(&w->emit.part, " ", 1);
		ky_out_append(&w->emit.part, series.data, series.bytes);
	}
	ky_pf_emit_file_packet(&w->emit, KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR, &w->emit.part);
}

/* A counter with one value has its name; of several, each has the value's key behind it. */
uint64_t ky_pf_session_counter_track(struct ky_pf_session *w, const struct ky_event *e,
				     const struct kymo_arg *arg)
{
	const uint64_t process = ky_pf_session_process_uuid(w, e->thread->pid);
	const bool several = e->args_count > 1 && arg->key;
	const struct ky_text series = {several ? arg->key : "",
				       several ? (uint32_t)strlen(arg->key) : 0};
	const uint64_t key = mix_text(mix_text(SALT_COUNTER, e->name), series);
	const uint64_t uuid = as_uuid(ky_pf_session_mix(process, key));
	if (is_new(w, uuid))
		describe_counter(w, uuid, process, e->name, series);
	return uuid;
}

uint64_t ky_pf_session_snapshots_track(struct ky_pf_session *w, int32_t pid)
{
	const uint64_t uuid = w->uuid_base + UUID_SNAPSHOTS;
	if (is_new(w, uuid))
		describe_child(w, uuid, ky_pf_session_process_uuid(w, pid),
			       (struct ky_text){"snapshots", 9});
	return uuid;
}

uint64_t ky_pf_session_global_track(struct ky_pf_session *w)
{
	const uint64_t uuid = w->uuid_base + UUID_GLOBAL;
	if (is_new(w, uuid))
		describe_child(w, uuid, 0, (struct ky_text){"global", 6});
	return uuid;
}

static struct ky_text or_none(struct ky_text text)
{
	return text.bytes ? text : (struct ky_text){NULL, 0};
}

static void describe_process(struct ky_pf_session *w, int32_t pid, struct ky_text name,
			     struct ky_text command)
{
	ky_pf_emit_process(&w->emit, ky_pf_session_process_uuid(w, pid), (uint64_t)(int64_t)pid,
			   or_none(name), or_none(command));
}

static void describe_thread(struct ky_pf_session *w, const struct ky_thread *thread)
{
	ky_pf_emit_thread(&w->emit, thread_uuid(w, thread->index),
			  ky_pf_session_process_uuid(w, thread->pid),
			  (uint64_t)(int64_t)thread->pid, (uint64_t)(int64_t)thread->tid,
			  or_none(thread->name));
}

/* ---- clocks ---- */

/* Clear the sequence's state; tie the file's clock and its alias at zero. */
static void write_first(struct ky_pf_session *w)
{
	w->emit.part.used = 0;
	ky_pf_emit_clock(&w->emit, KY_PF_BUILTIN_CLOCK_BOOTTIME, 0, false);
	ky_pf_emit_clock(&w->emit, KY_PF_EMIT_CLOCK_ALIAS, 0, false);
	ky_pf_emit_first_packet(&w->emit, KY_PF_EMIT_FILE_SEQUENCE, false, 0);
}

static void pft_clock(void *writer, const struct ky_tick_reading *reading)
{
	struct ky_pf_session *w = writer;
	w->emit.part.used = 0;
	ky_pf_emit_clock(&w->emit, KY_PF_BUILTIN_CLOCK_BOOTTIME, reading->boottime_ns, false);
	ky_pf_emit_clock(&w->emit, KY_PF_BUILTIN_CLOCK_MONOTONIC, reading->monotonic_ns, false);
	ky_pf_emit_clock(&w->emit, KY_PF_BUILTIN_CLOCK_REALTIME, reading->realtime_ns, false);
	ky_pf_emit_file_packet(&w->emit, KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT, &w->emit.part);
}

/* ---- the threads' sequences ---- */

static void begin_sequence(struct ky_pf_session *w, struct ky_pf_session_thread *t, uint32_t index)
{
	const uint64_t sequence = (uint64_t)SEQUENCE_THREADS + index;
	t->uuid = thread_uuid(w, index);
	uint8_t *end =
		ky_proto_uint_at(t->head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
	end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
			       KY_PF_SEQ_NEEDS_INCREMENTAL_STATE);
	t->head_bytes = (uint8_t)(end - t->head);
	w->emit.part.used = 0;
	ky_pf_emit_clock(&w->emit, KY_PF_EMIT_CLOCK_ALIAS, 0, false);
	ky_pf_emit_clock(&w->emit, KY_PF_CLOCK_SEQUENCE, 0, true);
	ky_pf_emit_first_packet(&w->emit, sequence, true, t->uuid);
}

/* NULL when memory is short. */
static struct ky_pf_session_thread *thread_of(struct ky_pf_session *w,
					      const struct ky_thread *thread)
{
	struct ky_pf_session_thread *t = ky_table_make(&w->threads, thread->index, w->emit.out);
	if (t && __builtin_expect(!t->uuid, 0)) {
		begin_sequence(w, t, thread->index);
		describe_thread(w, thread);
	}
	return t;
}

static uint8_t *put_time(uint8_t *to, struct ky_pf_session_thread *t, uint64_t time_ns)
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

void ky_pf_session_send(struct ky_pf_session *w, struct ky_pf_session_thread *t, uint64_t time_ns)
{
	uint8_t head[KY_PF_SESSION_HEAD_BYTES + 4 * KY_PROTO_VARINT_BYTES];
	memcpy(head, t->head, sizeof(t->head));
	const uint8_t *end = put_time(head + t->head_bytes, t, time_ns);
	ky_pf_emit_packet(&w->emit, head, (size_t)(end - head), KY_PF_TRACE_PACKET_TRACK_EVENT);
}

/* ---- events ---- */

static bool is_known(const struct ky_pf_session_thread *t, uint32_t site)
{
	return site / 64 < t->known_words && (t->known[site / 64] >> site % 64 & 1) != 0;
}

/* Remember that the sequence has the trace point's strings. Without memory they are written again. */
static void remember(struct ky_pf_session *w, struct ky_pf_session_thread *t, uint32_t site)
{
	if (site / 64 >= t->known_words) {
		const uint32_t words = (site / 64 + 1) * 2;
		uint64_t *known = realloc(t->known, words * sizeof(*known));
		if (!known) {
			w->emit.out->error = w->emit.out->error ? w->emit.out->error : -ENOMEM;
			return;
		}
		memset(known + t->known_words, 0, (words - t->known_words) * sizeof(*known));
		t->known = known;
		t->known_words = words;
	}
	t->known[site / 64] |= UINT64_C(1) << site % 64;
}

static const struct ky_pf_session_site *site_of(struct ky_pf_session *w, const struct ky_site *site)
{
	struct ky_pf_session_site *s = ky_table_make(&w->sites, site->index, w->emit.out);
	if (s && __builtin_expect(!s->body_bytes, 0))
		ky_pf_session_event_make(s, site);
	return s;
}

/* Write the packet from finished pieces. */
static void write_plain(struct ky_pf_session *w, struct ky_pf_session_thread *t,
			const uint8_t *body, uint32_t body_bytes, uint64_t time_ns)
{
	uint8_t *packet =
		ky_out_room(w->emit.out, 2 + KY_PF_SESSION_HEAD_BYTES + KY_PF_SESSION_BODY_BYTES +
						 4 * KY_PROTO_VARINT_BYTES);
	packet[0] = KY_PF_TRACE_PACKET << 3 | KY_PROTO_BYTES;
	uint8_t *end = packet + 2;
	memcpy(end, t->head, KY_PF_SESSION_HEAD_BYTES);
	end += t->head_bytes;
	memcpy(end, body, KY_PF_SESSION_BODY_BYTES);
	end = put_time(end + body_bytes, t, time_ns);
	packet[1] = (uint8_t)(end - packet - 2); /* below 128: heads, bodies and times are short */
	ky_out_done(w->emit.out, end);
}

static void pft_event(void *writer, const struct ky_event *e)
{
	struct ky_pf_session *w = writer;
	static const uint8_t end[KY_PF_SESSION_BODY_BYTES] = {
		KY_PF_TRACE_PACKET_TRACK_EVENT << 3 | KY_PROTO_BYTES, 2,
		KY_PF_TRACK_EVENT_TYPE << 3 | KY_PROTO_VARINT, KY_PF_TYPE_SLICE_END};
	struct ky_pf_session_thread *t = thread_of(w, e->thread);
	if (!t)
		return;
	if (e->kind == KYMO_KIND_END && !e->args_count) {
		write_plain(w, t, end, 4, e->time_ns);
		return;
	}
	if (!e->site || e->kind == KYMO_KIND_LOST) {
		ky_pf_session_event_write(w, t, NULL, e);
		return;
	}
	const struct ky_pf_session_site *s = site_of(w, e->site);
	if (!s)
		return;
	const bool known = is_known(t, e->site->index);
	if (s->plain && known && !e->args_count && !e->begin_lost && e->kind != KYMO_KIND_END) {
		write_plain(w, t, s->body, s->body_bytes, e->time_ns);
		return;
	}
	w->emit.interned.used = 0;
	if (!known)
		ky_pf_session_event_intern(w, e->site);
	ky_pf_session_event_write(w, t, s, e);
	/* Sending takes the strings along; an event that comes to nothing does not. */
	if (!known && !w->emit.interned.used)
		remember(w, t, e->site->index);
}

static void pft_thread(void *writer, const struct ky_thread *thread)
{
	struct ky_pf_session *w = writer;
	struct ky_pf_session_thread *t = ky_table_make(&w->threads, thread->index, w->emit.out);
	if (t && !t->uuid)
		begin_sequence(w, t, thread->index);
	if (t)
		describe_thread(w, thread);
}

static void pft_process(void *writer, int32_t pid, struct ky_text name)
{
	describe_process(writer, pid, name, (struct ky_text){"", 0});
}

/* ---- the file ---- */

static void pft_close(void *writer)
{
	struct ky_pf_session *w = writer;
	if (!w)
		return;
	for (uint32_t i = 0; i < w->threads.count; i++)
		free(((struct ky_pf_session_thread *)ky_table_at(&w->threads, i))->known);
	ky_table_free(&w->threads);
	ky_table_free(&w->sites);
	ky_pf_emit_close(&w->emit);
	free(w);
}

static int pft_open(void **writer, struct ky_out *out, const struct ky_trace_info *info)
{
	struct ky_pf_session *w = calloc(1, sizeof(*w));
	*writer = w;
	if (!w || ky_pf_emit_open(&w->emit, out)) {
		pft_close(*writer);
		*writer = NULL;
		return -ENOMEM;
	}
	w->pid = info->pid;
	w->begin_ns = info->clock.boottime_ns;
	w->threads.item_bytes = sizeof(struct ky_pf_session_thread);
	w->sites.item_bytes = sizeof(struct ky_pf_session_site);
	/* Leave room below for a number per thread; the top bit is clear, as in all uuids. */
	const uint64_t start = info->clock.realtime_ns ^ info->clock.boottime_ns;
	w->uuid_base = ky_pf_session_mix(start, (uint32_t)info->pid) << 32 >> 1;
	write_first(w);
	pft_clock(w, &info->clock);
	describe_process(w, info->pid, info->process, info->command);
	return 0;
}

/* In the file's own sequence, which has no clock of its own: with the time in full. */
static void pft_loss(void *writer, const char *what, uint64_t count)
{
	struct ky_pf_session *w = writer;
	struct ky_pf_session_thread file = {.last_ns = UINT64_MAX};
	file.head_bytes =
		(uint8_t)(ky_proto_uint_at(file.head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID,
					   KY_PF_EMIT_FILE_SEQUENCE) -
			  file.head);
	ky_pf_session_event_lost(w, &file, w->begin_ns, count, what);
}

static void pft_finish(void *writer, uint64_t lost)
{
	struct ky_pf_session *w = writer;
	if (lost)
		ky_pf_emit_losses(&w->emit, lost);
	if (!w->emit.out->error)
		w->emit.out->error = w->emit.clean.error;
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
	.loss = pft_loss,
	.finish = pft_finish,
	.close = pft_close,
};
