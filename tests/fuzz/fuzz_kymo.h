/* SPDX-License-Identifier: MIT */
/* fuzz_kymo.h: puts the checksums of .kymo files right, which would turn away nearly every mutation. */
#ifndef KY_FUZZ_KYMO_H
#define KY_FUZZ_KYMO_H

#include "formats/kymo/kymo_layout.h"
#include "formats/xxh64.h"
#include "fuzz_load.h"

/* From the end to the start: a chunk in another's body is right before that is hashed. */
static inline void fuzz_kymo_repair(uint8_t *data, size_t bytes)
{
	struct ky_kymo_chunk chunk;
	for (size_t at = bytes; at-- > 0;) {
		if (bytes - at < sizeof(chunk))
			continue;
		memcpy(&chunk, data + at, sizeof(chunk));
		if (chunk.magic != KY_KYMO_MAGIC)
			continue;
		if (chunk.head_bytes <= bytes - at &&
		    chunk.body_bytes <= bytes - at - chunk.head_bytes)
			chunk.body_hash = ky_xxh64(data + at + chunk.head_bytes, chunk.body_bytes);
		chunk.head_hash = ky_xxh64(&chunk, offsetof(struct ky_kymo_chunk, head_hash));
		memcpy(data + at, &chunk, sizeof(chunk));
	}
}

/* Return a copy with its checksums right, which the caller frees. */
static inline uint8_t *fuzz_kymo_copy(const uint8_t *data, size_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	fuzz_check(copy != NULL);
	if (bytes)
		memcpy(copy, data, bytes);
	fuzz_kymo_repair(copy, bytes);
	return copy;
}

/*
 * Load JSON when the bytes begin with a bracket, a .kymo file with its checksums put right when they begin as one, else a
 * Perfetto trace. Return NULL when they cannot be read.
 */
static inline struct ky_trace *fuzz_load_any(const uint8_t *data, size_t bytes)
{
	const uint64_t magic = KY_KYMO_MAGIC;
	const bool is_kymo = bytes >= sizeof(magic) && memcmp(data, &magic, sizeof(magic)) == 0;
	const bool is_json = bytes && (data[0] == '{' || data[0] == '[');
	uint8_t *const copy = is_kymo ? fuzz_kymo_copy(data, bytes) : NULL;
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	(void)ky_load_memory(&trace, copy ? copy : data, bytes,
			     copy      ? &ky_reader_kymo
			     : is_json ? &ky_reader_json
				       : &ky_reader_pftrace,
			     message);
	free(copy);
	return trace;
}

#endif
