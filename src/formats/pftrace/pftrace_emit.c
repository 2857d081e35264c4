/* SPDX-License-Identifier: MIT */
/* pftrace_emit.c: packets of Perfetto's protobuf trace; pftrace_emit.h has the plan. */
#include "formats/pftrace/pftrace_emit.h"

#include <errno.h>

#include "formats/utf8.h"

int ky_pf_emit_open(struct ky_pf_emitter *w, struct ky_out *out)
{
	w->out = out;
	return ky_out_init(&w->body, 0) || ky_out_init(&w->interned, 0) ||
			       ky_out_init(&w->part, 0) || ky_out_init(&w->inner, 0) ||
			       ky_out_init(&w->clean, 0)
		       ? -ENOMEM
		       : 0;
}

void ky_pf_emit_close(struct ky_pf_emitter *w)
{
	ky_out_free(&w->body);
	ky_out_free(&w->interned);
	ky_out_free(&w->part);
	ky_out_free(&w->inner);
	ky_out_free(&w->clean);
}

bool ky_pf_emit_is_whole(struct ky_pf_emitter *w)
{
	if (!w->body.error && !w->interned.error && !w->part.error && !w->inner.error)
		return true;
	w->out->error = w->out->error ? w->out->error : -ENOMEM;
	return false;
}

/* ---- packets ---- */

void ky_pf_emit_packet(struct ky_pf_emitter *w, const uint8_t *head, size_t head_bytes,
		       uint32_t field)
{
	uint8_t fields[4 * KY_PROTO_VARINT_BYTES];
	uint8_t *middle = fields;
	if (!ky_pf_emit_is_whole(w))
		return;
	if (w->interned.used) {
		middle = ky_proto_tag_at(fields, KY_PF_TRACE_PACKET_INTERNED_DATA, KY_PROTO_BYTES);
		middle = ky_proto_varint_at(middle, w->interned.used);
	}
	uint8_t *end = ky_proto_tag_at(middle, field, KY_PROTO_BYTES);
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

static void put_packet(struct ky_pf_emitter *w, const uint8_t *head, const uint8_t *head_end,
		       uint32_t field, const struct ky_out *message)
{
	uint8_t tag[2 * KY_PROTO_VARINT_BYTES];
	if (!ky_pf_emit_is_whole(w))
		return;
	uint8_t *tag_end = ky_proto_tag_at(tag, field, KY_PROTO_BYTES);
	tag_end = ky_proto_varint_at(tag_end, message->used);
	const size_t head_bytes = (size_t)(head_end - head), tag_bytes = (size_t)(tag_end - tag);
	ky_proto_length(w->out, KY_PF_TRACE_PACKET, head_bytes + tag_bytes + message->used);
	ky_out_append(w->out, head, head_bytes);
	ky_out_append(w->out, tag, tag_bytes);
	ky_out_append(w->out, message->data, message->used);
}

void ky_pf_emit_file_packet(struct ky_pf_emitter *w, uint32_t field, const struct ky_out *message)
{
	uint8_t head[2 * KY_PROTO_VARINT_BYTES];
	const uint8_t *end = ky_proto_uint_at(head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID,
					      KY_PF_EMIT_FILE_SEQUENCE);
	put_packet(w, head, end, field, message);
}

void ky_pf_emit_text(struct ky_pf_emitter *w, struct ky_out *to, uint32_t field,
		     struct ky_text text)
{
	ky_proto_text(to, field, ky_utf8_text(&w->clean, text, false));
}

void ky_pf_emit_intern(struct ky_pf_emitter *w, uint32_t field, uint64_t iid, struct ky_text text)
{
	w->inner.used = 0;
	ky_proto_uint(&w->inner, KY_PF_INTERNED_STRING_IID, iid);
	ky_pf_emit_text(w, &w->inner, KY_PF_INTERNED_STRING_STR, text);
	ky_proto_message(&w->interned, field, &w->inner);
}

/* ---- clocks ---- */

void ky_pf_emit_clock(struct ky_pf_emitter *w, uint64_t id, uint64_t ns, bool incremental)
{
	uint8_t clock[4 * KY_PROTO_VARINT_BYTES];
	uint8_t *end = ky_proto_uint_at(clock, KY_PF_CLOCK_CLOCK_ID, id);
	end = ky_proto_uint_at(end, KY_PF_CLOCK_TIMESTAMP, ns);
	if (incremental)
		end = ky_proto_uint_at(end, KY_PF_CLOCK_IS_INCREMENTAL, 1);
	ky_proto_bytes(&w->part, KY_PF_CLOCK_SNAPSHOT_CLOCKS, clock, (size_t)(end - clock));
}

static uint8_t *put_defaults(uint8_t *to, uint64_t track_uuid)
{
	uint8_t track[2 * KY_PROTO_VARINT_BYTES], defaults[6 * KY_PROTO_VARINT_BYTES];
	uint8_t *end = ky_proto_uint_at(defaults, KY_PF_TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID,
					KY_PF_CLOCK_SEQUENCE);
	if (track_uuid) {
		const uint8_t *track_end =
			ky_proto_uint_at(track, KY_PF_TRACK_EVENT_DEFAULTS_TRACK_UUID, track_uuid);
		const size_t bytes = (size_t)(track_end - track);
		end = ky_proto_tag_at(end, KY_PF_TRACE_PACKET_DEFAULTS_TRACK_EVENT_DEFAULTS,
				      KY_PROTO_BYTES);
		end = ky_proto_varint_at(end, bytes);
		memcpy(end, track, bytes);
		end += bytes;
	}
	const size_t bytes = (size_t)(end - defaults);
	to = ky_proto_tag_at(to, KY_PF_TRACE_PACKET_TRACE_PACKET_DEFAULTS, KY_PROTO_BYTES);
	to = ky_proto_varint_at(to, bytes);
	memcpy(to, defaults, bytes);
	return to + bytes;
}

void ky_pf_emit_first_packet(struct ky_pf_emitter *w, uint64_t sequence, bool own_clock,
			     uint64_t track_uuid)
{
	uint8_t head[16 * KY_PROTO_VARINT_BYTES];
	uint8_t *end =
		ky_proto_uint_at(head, KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
	end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_SEQUENCE_FLAGS,
			       KY_PF_SEQ_INCREMENTAL_STATE_CLEARED);
	end = ky_proto_uint_at(end, KY_PF_TRACE_PACKET_FIRST_PACKET_ON_SEQUENCE, 1);
	if (own_clock)
		end = put_defaults(end, track_uuid);
	put_packet(w, head, end, KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT, &w->part);
}

/* ---- what both write alike ---- */

void ky_pf_emit_process(struct ky_pf_emitter *w, uint64_t uuid, uint64_t pid, struct ky_text name,
			struct ky_text command)
{
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_PROCESS_DESCRIPTOR_PID, pid);
	if (command.data)
		ky_pf_emit_text(w, &w->part, KY_PF_PROCESS_DESCRIPTOR_CMDLINE, command);
	if (name.data)
		ky_pf_emit_text(w, &w->part, KY_PF_PROCESS_DESCRIPTOR_PROCESS_NAME, name);
	w->body.used = 0;
	ky_proto_uint(&w->body, KY_PF_TRACK_DESCRIPTOR_UUID, uuid);
	ky_proto_message(&w->body, KY_PF_TRACK_DESCRIPTOR_PROCESS, &w->part);
	ky_pf_emit_file_packet(w, KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR, &w->body);
	w->body.used = 0;
}

void ky_pf_emit_thread(struct ky_pf_emitter *w, uint64_t uuid, uint64_t parent, uint64_t pid,
		       uint64_t tid, struct ky_text name)
{
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_THREAD_DESCRIPTOR_PID, pid);
	ky_proto_uint(&w->part, KY_PF_THREAD_DESCRIPTOR_TID, tid);
	if (name.data)
		ky_pf_emit_text(w, &w->part, KY_PF_THREAD_DESCRIPTOR_THREAD_NAME, name);
	w->body.used = 0;
	ky_proto_uint(&w->body, KY_PF_TRACK_DESCRIPTOR_UUID, uuid);
	if (parent)
		ky_proto_uint(&w->body, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID, parent);
	ky_proto_message(&w->body, KY_PF_TRACK_DESCRIPTOR_THREAD, &w->part);
	ky_pf_emit_file_packet(w, KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR, &w->body);
	w->body.used = 0;
}

/* A legacy event with Chrome's phases is the only form that binds to the open slice without making another one. */
void ky_pf_emit_flow(struct ky_pf_emitter *w, uint32_t step, uint64_t id)
{
	static const char phases[] = {'s', 't', 'f'};
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_LEGACY_EVENT_PHASE, (uint8_t)phases[step]);
	ky_proto_uint(&w->part, KY_PF_LEGACY_EVENT_UNSCOPED_ID, id);
	ky_proto_uint(&w->part, KY_PF_LEGACY_EVENT_BIND_TO_ENCLOSING, 1);
	ky_proto_message(&w->body, KY_PF_TRACK_EVENT_LEGACY_EVENT, &w->part);
}

void ky_pf_emit_losses(struct ky_pf_emitter *w, uint64_t lost)
{
	uint8_t buffer[2 * KY_PROTO_VARINT_BYTES];
	const uint8_t *end =
		ky_proto_uint_at(buffer, KY_PF_BUFFER_STATS_TRACE_WRITER_PACKET_LOSS, lost);
	w->part.used = 0;
	ky_proto_bytes(&w->part, KY_PF_TRACE_STATS_BUFFER_STATS, buffer, (size_t)(end - buffer));
	ky_pf_emit_file_packet(w, KY_PF_TRACE_PACKET_TRACE_STATS, &w->part);
}
