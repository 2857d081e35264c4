/* SPDX-License-Identifier: MIT */
/* fuzz_systrace_html.c: any bytes as the page that systrace makes. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_load(data, bytes, &ky_reader_systrace_html);
	return 0;
}
