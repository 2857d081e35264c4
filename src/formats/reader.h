/* SPDX-License-Identifier: MIT */
/*
 * reader.h: what an input format is: a const vtable in one array (reader.c), tried in its order. A format is
 * known by its content, never by its name.
 */
#ifndef KY_FORMATS_READER_H
#define KY_FORMATS_READER_H

#include "formats/input.h"
#include "model/intake.h"

#define KY_LOAD_MESSAGE_BYTES 512

/* What a format is recognised by. */
struct ky_probe {
	const uint8_t
		*data; /* the first bytes, unpacked: KY_PROBE_BYTES or the whole input; then a 0 */
	size_t bytes;
	bool whole;       /* that is all of the input */
	const char *path; /* for formats that are directories; NULL when it is not a directory */
};
#define KY_PROBE_BYTES (64u << 10)

/* One load of one input into a trace. */
struct ky_load {
	struct ky_trace *trace;
	struct ky_input *input;   /* NULL for a directory */
	struct ky_input *symbols; /* names that came with the recording, or NULL */
	const char *path;         /* as the user gave it */
	/* The input is a part of a recording: the trace has a clock, to which times are brought, and is another's. */
	bool part;
	bool repair; /* read on behind damage where the reader otherwise would not dare */
	/* For readers that do not take their bytes from input: tells progress; not 0: give up with it. */
	int (*progress)(struct ky_load *load, uint64_t done, uint64_t all);
	void *context;
	char message
		[KY_LOAD_MESSAGE_BYTES]; /* why the load failed, one line; set by ky_load_fail() */
};

struct ky_reader {
	const char *name;  /* "json": in trace->format, --format and docs/formats */
	const char *title; /* "Chrome Trace Event JSON" */
	bool directory;
	/* Whether it is this format, by its content alone. Cheap, reads nothing. */
	bool (*probe)(const struct ky_probe *probe);
	/*
	 * Puts all of it into load->trace (without finishing it). Damage is a problem that is counted, not
	 * a failure: what is whole is read. 0; -EBADMSG via ky_load_fail() when nothing of it can be used;
	 * -ENOMEM; -errno of reading, or what progress returned.
	 */
	int (*read)(struct ky_load *load);
};

/* Fills the message, "at byte N: ..." unless at is KY_NO_PLACE; returns -EBADMSG. Say what was expected. */
int ky_load_fail(struct ky_load *load, uint64_t at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* In the order in which they are tried; ends with NULL. */
extern const struct ky_reader *const ky_readers[];

extern const struct ky_reader ky_reader_kymo;
extern const struct ky_reader ky_reader_drum;
extern const struct ky_reader ky_reader_fxt;
extern const struct ky_reader ky_reader_perf_data;
extern const struct ky_reader ky_reader_trace_dat;
extern const struct ky_reader ky_reader_spall;
extern const struct ky_reader ky_reader_jitdump;
extern const struct ky_reader ky_reader_speedscope;
extern const struct ky_reader ky_reader_json;
extern const struct ky_reader ky_reader_systrace_html;
extern const struct ky_reader ky_reader_ftrace_text;
extern const struct ky_reader ky_reader_perf_map;
extern const struct ky_reader ky_reader_perf_script;
extern const struct ky_reader ky_reader_collapsed;
extern const struct ky_reader ky_reader_pftrace;
extern const struct ky_reader ky_reader_ctf;          /* directory */
extern const struct ky_reader ky_reader_uftrace;      /* directory */
extern const struct ky_reader ky_reader_ftrace_pages; /* directory */

/* The reader for a probe, or NULL. */
const struct ky_reader *ky_reader_find(const struct ky_probe *probe);

struct ky_load_options {
	uint32_t size;      /* sizeof */
	const char *format; /* name of a reader, NULL: by content */
	bool repair;
	/* What is being done ("reading", "building"), done of all (0: not known). Not 0 gives up with it. */
	int (*progress)(void *context, const char *stage, uint64_t done, uint64_t all);
	void *context;
};

/*
 * Loads a file, directory, or standard input ("-"); "pid:N" is the drum of a process. On failure *trace is
 * NULL and message is one line that names the path, the place and the remedy. 0 or -errno.
 */
int ky_load(struct ky_trace **trace, const char *path, const struct ky_load_options *options,
	    char message[KY_LOAD_MESSAGE_BYTES]);
/* The same of bytes in memory, for tests and fuzzing; reader may be NULL. */
int ky_load_memory(struct ky_trace **trace, const void *data, size_t bytes,
		   const struct ky_reader *reader, char message[KY_LOAD_MESSAGE_BYTES]);

#endif
