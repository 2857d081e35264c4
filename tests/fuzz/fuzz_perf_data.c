/* SPDX-License-Identifier: MIT */
/* fuzz_perf_data.c: any bytes as a perf.data, of either byte order, file or pipe. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_perf_data);
	fuzz_load_repair(data, bytes, &ky_reader_perf_data);
	return 0;
}
