/* SPDX-License-Identifier: MIT */
/* fuzz_perf_map.c: any bytes as a perf map. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_perf_map);
	return 0;
}
