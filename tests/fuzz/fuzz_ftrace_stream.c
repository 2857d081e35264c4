/* SPDX-License-Identifier: MIT */
/* fuzz_ftrace_stream.c: any bytes as the kernel's events of a capture: records of files and pages. */
#include "formats/ftrace/ftrace_format.h"
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ky_load load = {.path = "fuzz"};
	fuzz_check(ky_trace_open(&load.trace) == 0);
	fuzz_check(ky_input_open_memory(&load.input, data, bytes, "fuzz") == 0);
	fuzz_check(ky_ftrace_stream_read(&load) == 0);
	ky_input_close(&load.input);
	if (ky_trace_finish(load.trace, NULL, NULL) == 0)
		fuzz_check_trace(load.trace);
	ky_trace_close(&load.trace);
	return 0;
}
