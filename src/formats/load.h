/* SPDX-License-Identifier: MIT */
/*
 * load.h: reads a trace of any format. An input format is a const vtable in one list (KY_FORMATS_READ), recognised by
 * its content, never by its file's name.
 */
#ifndef KY_FORMATS_LOAD_H
#define KY_FORMATS_LOAD_H

#include "base/fail.h"
#include "formats/input.h"
#include "model/intake.h"

#define KY_PROBE_BYTES (64u << 10)

/* The beginning of an input, to recognise its format by. */
struct ky_probe {
	/* Unpacked: KY_PROBE_BYTES or the whole input; then a 0. */
	const uint8_t *data;
	size_t bytes;
	bool whole;       /* the input has no more */
	const char *path; /* of a directory; NULL for anything else */
};

/* One load of one input into a trace. */
struct ky_load {
	struct ky_trace *trace;
	struct ky_input *input;   /* NULL for a directory */
	struct ky_input *symbols; /* names that came with the recording, or NULL */
	const char *path;         /* as the user gave it */
	/* The input is a part of a recording: the trace belongs to the whole and has a clock, to which times convert. */
	bool part;
	bool repair; /* read on after damage where the reader otherwise would stop */
	/* For readers that do not read input: report progress. A result other than 0 ends the load with it. */
	int (*progress)(struct ky_load *load, uint64_t done, uint64_t all);
	void *context;
	/* One line: why the load failed; set by ky_load_fail(). */
	char message[KY_MESSAGE_BYTES];
};

struct ky_reader {
	const char *name;  /* "json": in trace->format, --input-format and docs/formats */
	const char *title; /* "Chrome Trace Event JSON" */
	bool directory;
	/* Report whether the content has this format. Cheap, reads nothing. */
	bool (*probe)(const struct ky_probe *probe);
	/*
	 * Add everything to load->trace, without finishing it. Damage is a problem that is counted, not a
	 * failure: the undamaged rest is read. Return 0; -EBADMSG via ky_load_fail() when nothing is usable;
	 * -ENOMEM; -errno of reading, or the result of progress.
	 */
	int (*read)(struct ky_load *load);
};

/* Set the message, "at byte N: ..." unless at is KY_NO_PLACE; return -EBADMSG. Name what was expected. */
int ky_load_fail(struct ky_load *load, uint64_t at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The formats that kymo reads, X(name) each, in the order in which they are tried: the surest signs first. The
 * last three are directories.
 */
#define KY_FORMATS_READ(X)                                                                         \
	X(kymo)                                                                                    \
	X(drum)                                                                                    \
	X(fxt)                                                                                     \
	X(perf_data)                                                                               \
	X(trace_dat)                                                                               \
	X(spall)                                                                                   \
	X(jitdump)                                                                                 \
	X(speedscope)                                                                              \
	X(json)                                                                                    \
	X(systrace_html)                                                                           \
	X(ftrace_text)                                                                             \
	X(perf_map)                                                                                \
	X(perf_script)                                                                             \
	X(collapsed)                                                                               \
	X(pftrace)                                                                                 \
	X(ctf)                                                                                     \
	X(uftrace)                                                                                 \
	X(ftrace_pages)

#define KY_READER_DECLARE(name) extern const struct ky_reader ky_reader_##name;
KY_FORMATS_READ(KY_READER_DECLARE)

/* In the order in which they are tried; ends with NULL. */
extern const struct ky_reader *const ky_readers[];

/* Probe the input where it is; the data lives until the input moves. */
void ky_load_probe(struct ky_input *input, struct ky_probe *probe);
/* Return the reader that recognises the probe, or NULL. */
const struct ky_reader *ky_load_reader(const struct ky_probe *probe);

struct ky_load_options {
	uint32_t size;      /* sizeof */
	const char *format; /* name of a reader, NULL: by content */
	bool repair;
	/* Report progress in a stage ("reading", "building"); all may be 0, unknown. Not 0 ends the load with it. */
	int (*progress)(void *context, const char *stage, uint64_t done, uint64_t all);
	void *context;
};

/*
 * Load a file, directory, or standard input ("-"); "pid:N" is the buffer of a process. On failure *trace is
 * NULL and message is one line that names the path, the place and the remedy. Return 0 or -errno.
 */
int ky_load(struct ky_trace **trace, const char *path, const struct ky_load_options *options,
	    char message[KY_MESSAGE_BYTES]);
/* Load bytes in memory, for tests and fuzzing; reader may be NULL. */
int ky_load_memory(struct ky_trace **trace, const void *data, size_t bytes,
		   const struct ky_reader *reader, char message[KY_MESSAGE_BYTES]);

#endif
