/* SPDX-License-Identifier: MIT */
/* fuzz_jitdump.c: any bytes as a jitdump. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_jitdump);
	return 0;
}
