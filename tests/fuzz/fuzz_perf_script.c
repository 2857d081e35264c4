/* SPDX-License-Identifier: MIT */
/* fuzz_perf_script.c: any bytes as the text of perf script. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_perf_script);
	return 0;
}
