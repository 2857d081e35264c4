/* SPDX-License-Identifier: MIT */
/* fuzz_trace_dat.c: any bytes as a trace.dat. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_trace_dat);
	return 0;
}
