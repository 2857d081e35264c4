/* SPDX-License-Identifier: MIT */
/*
 * pftrace_read.c: reads Perfetto protobuf traces into the model. The first pass over the file reads what may be
 * anywhere and holds everywhere (clocks, track descriptors, machines), the second reads the rest. pftrace_reader.h
 * shows how the parts fit together; the rules are Perfetto's: docs/formats/pftrace.md.
 *
 * A file is a series of fields 1, each a packet. A packet may hold others, compressed with zlib or zstd; those hold no
 * compressed ones. They are unpacked piece by piece into a buffer that holds at least one whole packet.
 *
 *   0a len packet | 0a len packet ── 50: zlib( 0a len packet | 0a len packet ) | ...
 *
 * A field of another number is skipped. Bytes that are not a field end the reading, since nothing marks the next packet.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define PACKET_TAG (KY_PF_TRACE_PACKET << 3 | (unsigned)KY_PROTO_BYTES)
#define PACKET_BYTES_MAX (512u << 20)
#define UNPACKED_BYTES_MIN (256u << 10)
#define UNPACKED_BYTES_MAX (64u << 20)
#define HEAD_BYTES_MAX 20u /* a tag and a length, both as long as can be */
#define ZSTD_WINDOW_LOG_MAX 25

void ky_pf_read_note_damage(struct ky_pf *pf, const char *what)
{
	if (!pf->first_pass)
		ky_problem(pf->trace, "proto_damaged", KY_ERROR, pf->at,
			   "%s is damaged: its fields do not fit into it", what);
}

/* Read a packet that was compressed, which holds no others. */
static void hand_on(struct ky_pf *pf, struct ky_proto_view packet)
{
	if (pf->first_pass)
		ky_pf_payload_first_pass(pf, packet, false);
	else
		ky_pf_payload_second_pass(pf, packet);
}

/* Read a field's head. Return 1, 0 when more bytes are needed, or -1 when it is invalid. */
static int read_head(struct ky_proto_in *in, uint64_t *tag, uint64_t *bytes)
{
	const bool all = (size_t)(in->end - in->at) >= HEAD_BYTES_MAX;
	if (!ky_proto_read_varint(in, tag))
		return all ? -1 : 0;
	const uint32_t wire = (uint32_t)*tag & 7;
	if (wire == KY_PROTO_FIXED64 || wire == KY_PROTO_FIXED32) {
		*bytes = wire == KY_PROTO_FIXED64 ? 8 : 4;
		return 1;
	}
	if (wire != KY_PROTO_VARINT && wire != KY_PROTO_BYTES)
		return -1;
	if (!ky_proto_read_varint(in, bytes))
		return all ? -1 : 0;
	if (wire == KY_PROTO_VARINT)
		*bytes = 0;
	return 1;
}

/* ---- compressed packets ---- */

/* Read the whole packets at the start of the buffer and return their bytes, or -1. */
static ssize_t hand_on_unpacked(struct ky_pf *pf, size_t bytes, size_t *need)
{
	struct ky_proto_in in = {.at = pf->unpacked, .end = pf->unpacked + bytes};
	*need = 0;
	for (;;) {
		const uint8_t *begin = in.at;
		uint64_t tag, length;
		if (in.at == in.end)
			return begin - pf->unpacked;
		const int got = read_head(&in, &tag, &length);
		if (got < 0 || (got > 0 && tag != PACKET_TAG) ||
		    (got > 0 && length > UNPACKED_BYTES_MAX))
			return -1;
		if (got == 0 || length > (uint64_t)(in.end - in.at)) {
			*need = got ? (size_t)(in.at - begin) + length : HEAD_BYTES_MAX;
			return begin - pf->unpacked;
		}
		hand_on(pf, (struct ky_proto_view){in.at, (size_t)length});
		in.at += length;
	}
}

struct unpacker {
	z_stream zlib;
	ZSTD_DCtx *zstd; /* NULL: zlib */
	ZSTD_inBuffer in;
};

/* Append unpacked bytes to the buffer and return how many, 0 at the end, or -1. */
static ssize_t unpack_more(struct ky_pf *pf, struct unpacker *unpacker, size_t used)
{
	const size_t room = pf->unpacked_room - used;
	if (unpacker->zstd) {
		ZSTD_outBuffer out = {pf->unpacked + used, room, 0};
		const size_t got = ZSTD_decompressStream(unpacker->zstd, &out, &unpacker->in);
		return ZSTD_isError(got) ? -1 : (ssize_t)out.pos;
	}
	unpacker->zlib.next_out = pf->unpacked + used;
	unpacker->zlib.avail_out = (uInt)room;
	const int got = inflate(&unpacker->zlib, Z_NO_FLUSH);
	const size_t bytes = room - unpacker->zlib.avail_out;
	if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR && bytes == 0)
		return -1;
	return (ssize_t)bytes;
}

static bool unpacked_room(struct ky_pf *pf, size_t need)
{
	if (need < UNPACKED_BYTES_MIN)
		need = UNPACKED_BYTES_MIN;
	return KY_ARRAY_GROW(pf->unpacked, pf->unpacked_room, need) || ky_pf_no_memory(pf);
}

static void unpack_all(struct ky_pf *pf, struct unpacker *unpacker)
{
	size_t used = 0, need = 0;
	for (;;) {
		if (!unpacked_room(pf, need))
			return;
		const ssize_t more = unpack_more(pf, unpacker, used);
		if (more < 0) {
			ky_problem(pf->trace, "compressed_packets_damaged", KY_DATA_LOSS, pf->at,
				   "compressed packets cannot be unpacked");
			return;
		}
		if (more == 0)
			break;
		used += (size_t)more;
		const ssize_t done = hand_on_unpacked(pf, used, &need);
		if (done < 0) {
			ky_problem(pf->trace, "compressed_packets_damaged", KY_DATA_LOSS, pf->at,
				   "the unpacked bytes are not packets");
			return;
		}
		used -= (size_t)done;
		memmove(pf->unpacked, pf->unpacked + done, used);
	}
	/* Perfetto's own writers leave up to two bytes. */
	if (used > 2)
		ky_problem(pf->trace, "compressed_packets_damaged", KY_DATA_LOSS, pf->at,
			   "the last compressed packet is cut off");
}

static void unpack_zlib(struct ky_pf *pf, struct ky_proto_view packed)
{
	struct unpacker unpacker = {.zstd = NULL};
	unpacker.zlib.next_in = (Bytef *)(uintptr_t)packed.data;
	unpacker.zlib.avail_in = (uInt)packed.bytes;
	if (inflateInit2(&unpacker.zlib, 15 + 32) != Z_OK) {
		pf->trace->error = -ENOMEM;
		return;
	}
	unpack_all(pf, &unpacker);
	inflateEnd(&unpacker.zlib);
}

static void unpack_zstd(struct ky_pf *pf, struct ky_proto_view packed)
{
	if (!pf->zstd)
		pf->zstd = ZSTD_createDCtx();
	if (!pf->zstd) {
		pf->trace->error = -ENOMEM;
		return;
	}
	ZSTD_DCtx_reset(pf->zstd, ZSTD_reset_session_only);
	ZSTD_DCtx_setParameter(pf->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
	struct unpacker unpacker = {.zstd = pf->zstd, .in = {packed.data, packed.bytes, 0}};
	unpack_all(pf, &unpacker);
}

bool ky_pf_read_compressed(struct ky_pf *pf, struct ky_proto_view packet)
{
	bool taken = false;
	/* Compressed packets contain no other message, so the first one decides. */
	KY_PROTO_EACH(field, packet) {
		const bool compressed = field.id == KY_PF_TRACE_PACKET_COMPRESSED_PACKETS ||
					field.id == KY_PF_TRACE_PACKET_ZSTD_COMPRESSED_PACKETS;
		if (!compressed && !taken && field.wire == KY_PROTO_BYTES &&
		    field.id != KY_PF_TRACE_PACKET_TRUSTED_UID)
			return false;
		if (!compressed || field.wire != KY_PROTO_BYTES)
			continue;
		taken = true;
		if (field.id == KY_PF_TRACE_PACKET_COMPRESSED_PACKETS)
			unpack_zlib(pf, field.view);
		else
			unpack_zstd(pf, field.view);
	}
	return taken;
}

/* ---- the file ---- */

/* Read the head of the next field. Return 1, 0 at the end of the input, -1 where it is invalid, -2 where it is cut. */
static int next_head(struct ky_input *input, uint64_t *tag, uint64_t *length)
{
	if (input->end - input->at < (ptrdiff_t)HEAD_BYTES_MAX)
		(void)ky_input_need(input, HEAD_BYTES_MAX);
	if (input->at == input->end)
		return 0;
	struct ky_proto_in in = {.at = input->at, .end = input->end};
	const int got = read_head(&in, tag, length);
	if (got <= 0)
		return got == 0 ? -2 : -1;
	ky_input_skip(input, (size_t)(in.at - input->at));
	return 1;
}

static void cut(struct ky_pf *pf)
{
	if (!pf->first_pass)
		ky_problem(pf->trace, "last_packet_cut", KY_DATA_LOSS, pf->at,
			   "the last packet is cut off; all before it was read");
}

/* Read all packets of the input. Return 0 or -errno. */
static int read_packets(struct ky_pf *pf)
{
	struct ky_input *input = pf->load->input;
	uint64_t tag, length;
	int got;
	for (pf->at = input->position; (got = next_head(input, &tag, &length)) > 0;
	     pf->at = input->position) {
		if (tag != PACKET_TAG) {
			if (!ky_input_skip_far(input, length))
				break;
			continue;
		}
		if (length > PACKET_BYTES_MAX) {
			got = -1;
			break;
		}
		if (!ky_input_need(input, (size_t)length)) {
			cut(pf);
			break;
		}
		pf->packets++;
		const struct ky_proto_view packet = {input->at, (size_t)length};
		if (pf->first_pass)
			ky_pf_payload_first_pass(pf, packet, true);
		else if (!pf->compressed || !ky_pf_read_compressed(pf, packet))
			ky_pf_payload_second_pass(pf, packet);
		ky_input_skip(input, (size_t)length);
		if (pf->trace->error)
			return pf->trace->error;
	}
	if (got == -2)
		cut(pf);
	if (got == -1 && !pf->first_pass)
		ky_problem(pf->trace, "packet_expected", KY_ERROR, pf->at,
			   "expected a packet; the rest of the file cannot be read");
	return input->error && input->error != -EBADMSG ? input->error : 0;
}

uint64_t *ky_pf_read_known(struct ky_pf *pf, enum ky_pf_kind kind, uint64_t one, uint64_t two,
			   bool add)
{
	const uint64_t whose = ky_hash_pair((uint64_t)kind << 32 | pf->machine, one);
	bool made;
	if (!add)
		return ky_pair_map_find(&pf->known, whose, two);
	uint64_t *value = ky_pair_map_add(&pf->known, whose, two, &made);
	if (!value)
		pf->trace->error = -ENOMEM;
	return value;
}

/* ---- the reader ---- */

/* Report whether the first packet, as far as it is there, consists of fields. */
static bool probe(const struct ky_probe *probe)
{
	struct ky_proto_in in = {.at = probe->data, .end = probe->data + probe->bytes};
	uint64_t tag, length;
	do {
		if (!ky_proto_read_varint(&in, &tag) ||
		    tag != (KY_PF_TRACE_PACKET << 3 | KY_PROTO_BYTES) ||
		    !ky_proto_read_varint(&in, &length))
			return false;
	} while (length == 0 && in.at < in.end);
	const bool whole = length <= (uint64_t)(in.end - in.at);
	struct ky_proto_in packet = {.at = in.at, .end = whole ? in.at + length : in.end};
	struct ky_proto_field field;
	uint32_t fields = 0;
	while (ky_proto_next(&packet, &field)) {
		/* The first fields of a packet are messages; those of a pprof profile are numbers. */
		if (!field.id || (field.id <= 2 && field.wire == KY_PROTO_VARINT))
			return false;
		fields++;
	}
	return length == 0 || (whole ? fields && !packet.bad : length < UINT32_MAX);
}

static void make_words(struct ky_pf *pf)
{
	static const char *const texts[] = {
#define X(name, text) text,
		KY_PF_WORDS(X)
#undef X
	};
	for (int i = 0; i < KY_PF_WORDS_COUNT; i++)
		pf->words[i] = ky_string_z(pf->trace, texts[i]);
}

static int pass(struct ky_pf *pf, bool first)
{
	pf->first_pass = first;
	pf->machine = 0;
	pf->packets = 0;
	return read_packets(pf);
}

static void free_arrays(struct ky_pf *pf)
{
	for (uint32_t i = 0; i < pf->sequences_count; i++)
		ky_pf_sequence_free(pf->sequences[i]);
	for (uint32_t i = 0; i < pf->mappings_count; i++)
		free((void *)(uintptr_t)pf->mappings[i].paths.data);
	for (uint32_t i = 0; i < pf->callstacks_count; i++)
		free((void *)(uintptr_t)pf->callstacks[i].frames.data);
	KY_ARRAY_FREE(pf->sequences, pf->sequences_room);
	KY_ARRAY_FREE(pf->clocks, pf->clocks_room);
	KY_ARRAY_FREE(pf->snapshot_ns, pf->snapshot_ns_room);
	KY_ARRAY_FREE(pf->tracks, pf->tracks_room);
	KY_ARRAY_FREE(pf->locations, pf->locations_room);
	KY_ARRAY_FREE(pf->mappings, pf->mappings_room);
	KY_ARRAY_FREE(pf->frames, pf->frames_room);
	KY_ARRAY_FREE(pf->callstacks, pf->callstacks_room);
	KY_ARRAY_FREE(pf->values, pf->values_room);
	KY_ARRAY_FREE(pf->switches, pf->switches_room);
	KY_ARRAY_FREE(pf->disks, pf->disks_room);
	ky_pair_map_free(&pf->known);
}

static void close_all(struct ky_pf *pf)
{
	struct ky_u64_map *const maps[] = {
		&pf->sequence_of, &pf->machine_of,     &pf->clock_of,        &pf->snapshot_last,
		&pf->track_of,    &pf->uuid_of_thread, &pf->uuid_of_process, &pf->last_switch,
		&pf->names_of,    &pf->bundle_seen};
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		ky_u64_map_free(maps[i]);
	free_arrays(pf);
	ky_buffer_free(&pf->key);
	ky_buffer_free(&pf->text);
	KY_ARRAY_FREE(pf->unpacked, pf->unpacked_room);
	ZSTD_freeDCtx(pf->zstd);
	free(pf);
}

static int read_trace(struct ky_load *load)
{
	struct ky_pf *pf = calloc(1, sizeof(*pf));
	if (!pf)
		return -ENOMEM;
	pf->load = load;
	pf->trace = load->trace;
	pf->trace->clock = KY_CLOCK_BOOTTIME;
	make_words(pf);
	ky_pf_ftrace_open(pf);
	int error = ky_input_remember(load->input);
	if (!error)
		error = pass(pf, true);
	if (!error)
		error = ky_input_rewind(load->input);
	if (!error)
		error = pass(pf, false);
	if (!error && !pf->packets)
		error = ky_load_fail(load, 0,
				     "no packet of a Perfetto trace could be read: a trace "
				     "starts with byte 0x0a and the length of a packet");
	ky_pf_metadata_losses(pf);
	close_all(pf);
	return error;
}

const struct ky_reader ky_reader_pftrace = {
	.name = "pftrace",
	.title = "Perfetto protobuf",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
