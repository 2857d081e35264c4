/* SPDX-License-Identifier: MIT */
/* fuzz_json.c: any bytes as Chrome Trace Event JSON. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_json);
	return 0;
}
