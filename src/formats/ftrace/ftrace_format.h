/* SPDX-License-Identifier: MIT */
/*
 * ftrace_format.h: what a kernel says about its events: their formats, symbols and format strings; and how their
 * binary records and the ring buffer's pages are read by that. libtraceevent parses the formats.
 */
#ifndef KY_FORMATS_FTRACE_FTRACE_FORMAT_H
#define KY_FORMATS_FTRACE_FTRACE_FORMAT_H

#include "formats/ftrace/ftrace_event.h"

struct ky_ftrace_format;

/* 0 or -ENOMEM. */
int ky_ftrace_format_open(struct ky_ftrace_format **format, struct ky_trace *trace, bool big_endian,
			  uint32_t long_bytes);
void ky_ftrace_format_close(struct ky_ftrace_format **format);

/* Take a file of tracefs. Unusable parts are counted as problems. at: place in the input. */
void ky_ftrace_format_header_page(struct ky_ftrace_format *format, const char *text, size_t bytes);
void ky_ftrace_format_event(struct ky_ftrace_format *format, const char *system, const char *text,
			    size_t bytes, uint64_t at);
void ky_ftrace_format_kallsyms(struct ky_ftrace_format *format, const char *text, size_t bytes);
void ky_ftrace_format_printk(struct ky_ftrace_format *format, const char *text, size_t bytes);
void ky_ftrace_format_comms(struct ky_ftrace_format *format, const char *text, size_t bytes);
/* Take kymo's own list of /proc: "time N" (CLOCK_BOOTTIME), then "TGID TID comm" of each task. */
void ky_ftrace_format_tasks(struct ky_ftrace_format *format, const char *text, size_t bytes);
/* set_event_pid: only these and their children were recorded. Before the pages first, and then as often as it grew. */
void ky_ftrace_format_watched(struct ky_ftrace_format *format, const char *text, size_t bytes);
/* "Linux host 6.1.0 x86_64", or a part of it that has the release. */
void ky_ftrace_format_uname(struct ky_ftrace_format *format, const char *text, size_t bytes);

/* Times of the records to nanoseconds: (ts * mult >> shift) + offset; mult 0 leaves them. */
struct ky_ftrace_clock {
	uint32_t mult;
	uint32_t shift;
	int64_t offset;
};
void ky_ftrace_format_clock(struct ky_ftrace_format *format, const struct ky_ftrace_clock *clock);

/*
 * Read a page of the ring buffer: all its events go into the trace. bytes is at most the page; less is one that
 * is cut. at is its place in the input, for problems.
 */
void ky_ftrace_page(struct ky_ftrace_format *format, uint32_t cpu, const uint8_t *page,
		    size_t bytes, uint64_t at);

/* After the last page: names and processes of threads that only the lists of comms and tasks have. */
void ky_ftrace_format_finish(struct ky_ftrace_format *format);
/* Return the events that were lost according to the pages. */
uint64_t ky_ftrace_format_missed(const struct ky_ftrace_format *format);

/*
 * Read the kernel's events of a .kymo file (struct ky_kymo_ftrace): the records of load->input into load->trace, up to
 * damage, which is counted as a problem. Times are CLOCK_BOOTTIME. Return 0, -ENOMEM, or the result of progress.
 */
struct ky_load;
int ky_ftrace_stream_read(struct ky_load *load);

/* Private to ftrace_format*.c, ftrace_tasks.c and ftrace_record.c. */

/* The format as libtraceevent can be given it, to be freed; NULL when it has no name or number. */
char *ky_ftrace_format_text(const char *text, size_t bytes, size_t *written, uint32_t *left_out);

/* Call take() with each line, NUL-terminated; lines that are too long are cut. */
void ky_ftrace_format_lines(struct ky_ftrace_format *format, const char *text, size_t bytes,
			    void (*take)(struct ky_ftrace_format *format, char *line));

/* The type of a field's bytes. */
enum ky_record_field_kind {
	KY_RECORD_NUMBER,
	KY_RECORD_CHARS,   /* an array of char */
	KY_RECORD_NUMBERS, /* another array */
	KY_RECORD_FUNCTION /* an address that has a name */
};

struct ky_record_field {
	uint32_t key; /* string */
	char name[48];
	uint32_t name_bytes;
	uint32_t offset;
	uint32_t bytes;      /* of all of it */
	uint32_t item_bytes; /* of one number */
	enum ky_record_field_kind kind;
	bool is_signed;
	bool is_pointer;
	bool dynamic; /* the field has the place of its data: low 16 bits offset, high 16 bits length */
	bool relative; /* counted from the end of the field */
};

struct ky_record_format {
	uint32_t name; /* string */
	char *name_text;
	uint32_t fields_count;
	struct ky_record_field *fields;
	bool is_text; /* print: buf is a text to the end of the record */
	bool is_bprint;
	bool is_own; /* about the running task alone: not a switch or wakeup */
};

struct tep_handle;

/* Format strings of trace_printk() and what they make of their arguments: ftrace_bprint.c. */
void ky_ftrace_bprint_add(struct ky_ftrace_format *format, uint64_t address, const char *text,
			  size_t bytes);
void ky_ftrace_bprint_sort(struct ky_ftrace_format *format);
void ky_ftrace_bprint_free(struct ky_ftrace_format *format);
/* Write the message; its bytes, 0 when the format string is not known. */
size_t ky_ftrace_bprint(const struct ky_ftrace_format *format, uint64_t ip, uint64_t fmt,
			const uint8_t *packed, size_t bytes, char *text, size_t room);

/* Tids, a bit for each. */
struct ky_tid_set {
	uint64_t *bits;
	uint32_t words;
};
void ky_tid_set_add(struct ky_tid_set *set, int32_t tid);

struct ky_ftrace_format {
	struct ky_trace *trace;
	struct tep_handle *tep;
	bool swap; /* bytes are in the other order than here */
	bool big_endian;
	uint32_t long_bytes; /* of the kernel */
	uint32_t commit_bytes;
	uint32_t release;
	bool release_known;
	uint32_t machine;
	struct ky_ftrace_clock clock;
	struct ky_record_format **formats; /* by id, NULL: none */
	uint32_t formats_room;
	uint32_t formats_count; /* that were parsed */
	/* Tasks of the lists, in their order. */
	struct ky_ftrace_comm *comms;
	uint32_t comms_count, comms_room;
	int64_t tasks_ts;                  /* of the list that is being read */
	struct ky_tid_set seen;            /* that had an event */
	struct ky_ftrace_watched *watched; /* when only some tasks were recorded; else NULL */
	uint64_t events;
	uint64_t missed;
	int64_t last_ts;
	struct ky_ftrace_printk *printks; /* format strings by their addresses */
	uint32_t printks_count, printks_room;
	bool printks_sorted; /* at the first event; later ones are not taken */
};

struct ky_ftrace_comm {
	int32_t tid;
	int32_t tgid;  /* 0: not known */
	int64_t ts;    /* KY_TIME_NONE: at the end */
	uint32_t comm; /* string */
};

static inline uint64_t ky_ftrace_load(const struct ky_ftrace_format *format, const uint8_t *at,
				      uint32_t bytes)
{
	uint16_t two;
	uint32_t four;
	uint64_t eight;
	switch (bytes) {
	case 1:
		return *at;
	case 2:
		memcpy(&two, at, 2);
		return format->swap ? __builtin_bswap16(two) : two;
	case 4:
		memcpy(&four, at, 4);
		return format->swap ? __builtin_bswap32(four) : four;
	default:
		memcpy(&eight, at, 8);
		return format->swap ? __builtin_bswap64(eight) : eight;
	}
}

#endif
