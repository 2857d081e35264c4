/* SPDX-License-Identifier: MIT */
/*
 * trace_dat.h: the parts of the reader of trace.dat. Private to trace_dat_read.c and trace_dat_*.c.
 *
 *   trace_dat_read.c   the head, what both versions have in common, and version 6: all in one order
 *   trace_dat_meta.c   formats, symbols, strings, options
 *   trace_dat_v7.c     version 7: sections that options point to, compressed or not
 */
#ifndef KY_FORMATS_FTRACE_TRACE_DAT_H
#define KY_FORMATS_FTRACE_TRACE_DAT_H

#include "formats/ftrace/ftrace_format.h"
#include "formats/load.h"

struct ky_dat {
	struct ky_load *load;
	struct ky_trace *trace;
	struct ky_ftrace_format *format;
	uint64_t file_bytes;
	uint64_t data_done; /* of the CPUs' data, for progress */
	uint32_t page_bytes;
	uint32_t cpus;
	bool big_endian;
	uint32_t long_bytes;
	/* Clock. */
	uint32_t mult, shift;
	int64_t tsc_offset;
	int64_t offset; /* of all times, as the file's options say */
	bool is_tsc;
	enum { KY_DAT_NONE, KY_DAT_ZLIB, KY_DAT_ZSTD } compression;
};

/* Bytes of the file that are being taken apart; at is never beyond end. */
struct ky_dat_bytes {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t position; /* of at in the file, or of the section when it was unpacked */
	const struct ky_dat *dat;
	bool short_of; /* something was asked for that is not there: all later answers are 0 */
};

uint64_t ky_dat_number(struct ky_dat_bytes *bytes, uint32_t size);
/* That many bytes; NULL when they are not there. */
const uint8_t *ky_dat_take(struct ky_dat_bytes *bytes, uint64_t size);
/* Take text up to a NUL, without it; NULL when there is no NUL. */
const char *ky_dat_text(struct ky_dat_bytes *bytes);

/* Return a part of the file in memory, to be freed; *got may be less. NULL without memory. */
uint8_t *ky_dat_read(struct ky_dat *dat, uint64_t at, uint64_t bytes, uint64_t *got);

/* The parts of the file or of its sections, in this order. */
void ky_dat_header(struct ky_dat *dat, struct ky_dat_bytes *bytes);
void ky_dat_ftrace_formats(struct ky_dat *dat, struct ky_dat_bytes *bytes);
void ky_dat_event_formats(struct ky_dat *dat, struct ky_dat_bytes *bytes);
void ky_dat_kallsyms(struct ky_dat *dat, struct ky_dat_bytes *bytes);
void ky_dat_printk(struct ky_dat *dat, struct ky_dat_bytes *bytes);
void ky_dat_comms(struct ky_dat *dat, struct ky_dat_bytes *bytes);

enum {
	KY_DAT_OPTION_DONE = 0,
	KY_DAT_OPTION_DATE = 1,
	KY_DAT_OPTION_CPUSTAT = 2,
	KY_DAT_OPTION_BUFFER = 3,
	KY_DAT_OPTION_TRACECLOCK = 4,
	KY_DAT_OPTION_UNAME = 5,
	KY_DAT_OPTION_OFFSET = 7,
	KY_DAT_OPTION_CPUCOUNT = 8,
	KY_DAT_OPTION_VERSION = 9,
	KY_DAT_OPTION_TRACEID = 11,
	KY_DAT_OPTION_TSC2NSEC = 14,
	KY_DAT_OPTION_HEADER_INFO = 16,
	KY_DAT_OPTION_FTRACE_EVENTS = 17,
	KY_DAT_OPTION_EVENT_FORMATS = 18,
	KY_DAT_OPTION_KALLSYMS = 19,
	KY_DAT_OPTION_PRINTK = 20,
	KY_DAT_OPTION_CMDLINES = 21,
	KY_DAT_OPTION_BUFFER_TEXT = 22
};

/* Options that both versions have alike; others are left. */
void ky_dat_option(struct ky_dat *dat, uint32_t id, struct ky_dat_bytes bytes);
/* After all options: the clock is known. */
void ky_dat_set_clock(struct ky_dat *dat);

/* Plain pages of a CPU. 0 or what progress said. */
int ky_dat_pages(struct ky_dat *dat, uint32_t cpu, uint64_t at, uint64_t bytes);
/* Pages in memory. */
void ky_dat_pages_in(struct ky_dat *dat, uint32_t cpu, const uint8_t *pages, uint64_t bytes,
		     uint64_t at);
/* Text of a latency tracer. */
void ky_dat_lines(struct ky_dat *dat, const uint8_t *text, uint64_t bytes, uint64_t at);

int ky_dat_v7(struct ky_dat *dat, uint64_t at);

#endif
