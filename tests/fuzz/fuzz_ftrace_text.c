/* SPDX-License-Identifier: MIT */
/* fuzz_ftrace_text.c: any bytes as ftrace's text. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_ftrace_text);
	return 0;
}
