/* SPDX-License-Identifier: MIT */
/*
 * pftrace_read.c: reads Perfetto protobuf traces into the model. The first pass over the file reads what may be
 * anywhere and holds everywhere (clocks, track descriptors, machines), the second reads the rest. pftrace_reader.h
 * shows how the parts fit together; the rules are Perfetto's: docs/formats/pftrace.md.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

/* ---- what the readers of packets share ---- */

uint64_t *ky_pf_known(struct ky_pf *pf, enum ky_pf_kind kind, uint64_t one, uint64_t two, bool add)
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

uint32_t ky_pf_name(struct ky_pf *pf, const char *format, ...)
{
	char text[2048];
	va_list list;
	va_start(list, format);
	const int bytes = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	return bytes < 0 ? 0 : ky_string_z(pf->trace, text);
}

static uint32_t track_of(struct ky_pf *pf, enum ky_track_kind kind, const char *type, uint32_t name,
			 uint64_t id)
{
	const struct ky_track_spec spec = {.kind = (uint8_t)kind,
					   .owner = KY_NONE,
					   .name = name,
					   .type = ky_string_z(pf->trace, type),
					   .id = id};
	return ky_track(pf->trace, &spec);
}

uint32_t ky_pf_counter_track(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id)
{
	return track_of(pf, KY_TRACK_COUNTER, type, name, id);
}

void ky_pf_put(struct ky_pf *pf, int64_t ts, const char *type, uint32_t name, double value)
{
	ky_put_counter(pf->trace, ts, ky_pf_counter_track(pf, type, name, 0), value);
}

uint32_t ky_pf_slice_track(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id)
{
	return track_of(pf, KY_TRACK_GLOBAL, type, name, id);
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
		if (!field.id)
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
	return ky_pf_read_packets(pf);
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
