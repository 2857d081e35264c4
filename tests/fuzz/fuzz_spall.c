/* SPDX-License-Identifier: MIT */
/* fuzz_spall.c: any bytes as a spall file. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_spall);
	return 0;
}
