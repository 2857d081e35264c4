/* SPDX-License-Identifier: MIT */
/* fuzz_fxt.c: any bytes as a Fuchsia trace. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_fxt);
	fuzz_load_repair(data, bytes, &ky_reader_fxt);
	return 0;
}
