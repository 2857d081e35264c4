/* SPDX-License-Identifier: MIT */
/* fuzz_collapsed.c: any bytes as collapsed stacks. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_collapsed);
	return 0;
}
