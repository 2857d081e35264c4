/* SPDX-License-Identifier: MIT */
/* fuzz_pftrace.c: any bytes as a Perfetto protobuf trace. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_pftrace);
	return 0;
}
