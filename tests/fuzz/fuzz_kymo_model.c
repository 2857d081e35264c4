/* SPDX-License-Identifier: MIT */
/*
 * fuzz_kymo_model.c: any bytes as a .kymo file that is loaded into the model; with its checksums as they are, and put
 * right.
 */
#include "fuzz_kymo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_kymo);
	uint8_t *copy = fuzz_kymo_copy(data, bytes);
	fuzz_load(copy, bytes, &ky_reader_kymo);
	free(copy);
	return 0;
}
