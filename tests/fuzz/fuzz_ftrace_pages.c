/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ftrace_pages.c: pages of ftrace's ring buffer, with formats of events, as the readers of directories and of
 * trace.dat hand them on.
 *
 *   u8 flags (1: big endian, 2: longs of 4 bytes) │ u16 bytes of a format │ format │ u16 0 │ pages of 256 bytes
 */
#include "formats/ftrace/ftrace_format.h"
#include "fuzz_load.h"

#define PAGE_BYTES 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static size_t take_formats(struct ky_ftrace_format *format, const uint8_t *data, size_t bytes)
{
	size_t at = 0;
	while (bytes - at >= 2) {
		size_t length = (size_t)data[at] | (size_t)data[at + 1] << 8;
		at += 2;
		if (!length || length > bytes - at)
			break;
		ky_ftrace_format_event(format, "ftrace", (const char *)data + at, length, at);
		at += length;
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ky_trace *trace;
	struct ky_ftrace_format *format;
	static const char printk[] = "0x1234 : \"%s %d %p %*pbl %llx %c\\n\"\n0x1 : \"%.*s\"\n";
	if (bytes < 1 || ky_trace_open(&trace) != 0)
		return 0;
	if (ky_ftrace_format_open(&format, trace, data[0] & 1, data[0] & 2 ? 4 : 8) == 0) {
		ky_ftrace_format_printk(format, printk, sizeof(printk) - 1);
		size_t at = 1 + take_formats(format, data + 1, bytes - 1);
		for (; at < bytes; at += PAGE_BYTES)
			ky_ftrace_page(format, 0, data + at,
				       bytes - at < PAGE_BYTES ? bytes - at : PAGE_BYTES, at);
		ky_ftrace_format_finish(format);
		ky_ftrace_format_close(&format);
	}
	if (ky_trace_finish(trace, NULL, NULL) == 0)
		fuzz_check_trace(trace);
	ky_trace_close(&trace);
	return 0;
}
