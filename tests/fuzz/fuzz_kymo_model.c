/* SPDX-License-Identifier: MIT */
/*
 * fuzz_kymo_model.c: any bytes as a .kymo file that is loaded into the model; with its checksums as they are, and put
 * right, for they would turn away nearly every mutation.
 */
#include "fuzz_load.h"

#include "formats/kymo/kymo_layout.h"
#include "formats/xxh64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* From the end to the start: a chunk in another's body is right before that is hashed. */
static void repair(uint8_t *data, size_t bytes)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_kymo);
	uint8_t *copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return 0;
	if (bytes)
		memcpy(copy, data, bytes);
	repair(copy, bytes);
	fuzz_load(copy, bytes, &ky_reader_kymo);
	free(copy);
	return 0;
}
