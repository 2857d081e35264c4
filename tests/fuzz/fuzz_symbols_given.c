/* SPDX-License-Identifier: MIT */
/*
 * fuzz_symbols_given.c: any bytes as names that came with a recording: read, and asked for what they say and for what
 * they do not.
 */
#include "formats/kymo/kymo_layout.h"
#include "formats/perf/symbols_given.h"
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const struct ky_trace *trace, const struct ky_given_name *names,
		  const uint32_t *count)
{
	if (!names)
		return;
	fuzz_check(*count > 0);
	for (uint32_t i = 0; i < *count; i++)
		fuzz_check(names[i].name < trace->strings.count &&
			   names[i].file < trace->strings.count);
}

/* As a first record would have it. */
static void ask(const struct ky_symbols_given *given, struct ky_trace *trace, const uint8_t *data,
		size_t bytes)
{
	struct ky_kymo_symbol head = {0};
	uint32_t count;
	memcpy(&head, data, bytes < sizeof(head) ? bytes : sizeof(head));
	for (uint32_t path = 0; path < trace->strings.count && path < 64; path++)
		for (uint32_t id = 0; id < trace->strings.count && id < 64; id++)
			check(trace,
			      ky_symbols_given_in_file(given, path, id, head.address, &count),
			      &count);
	check(trace, ky_symbols_given_in_kernel(given, head.address, &count), &count);
	check(trace, ky_symbols_given_in_process(given, head.pid, head.address, &count), &count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ky_trace *trace;
	struct ky_input *input;
	struct ky_symbols_given *given;
	if (ky_trace_open(&trace) != 0)
		return 0;
	fuzz_check(ky_input_open_memory(&input, data, bytes, "fuzz") == 0);
	const int error = ky_symbols_given_open(&given, trace, input);
	fuzz_check(!error == (given != NULL));
	if (given)
		ask(given, trace, data, bytes);
	ky_symbols_given_close(&given);
	ky_input_close(&input);
	ky_trace_close(&trace);
	return 0;
}
