/* SPDX-License-Identifier: MIT */
/*
 * jit_files.h: the files in which a program describes code that it made while it ran. Used by the readers of such files
 * and by those who look for a function's name.
 *
 *   perf-PID.map    lines "START SIZE name", numbers in hexadecimal; where ranges overlap, the later line holds
 *   jit-PID.dump    records of functions that came to be or moved, with their times
 */
#ifndef KY_PROCESS_JIT_FILES_H
#define KY_PROCESS_JIT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_perf_map_line {
	uint64_t start;
	uint64_t bytes;
	const char *name;
	size_t name_bytes;
};

/* Parse one line, without its newline; false when it has another form. */
bool ky_perf_map_line(const char *text, size_t bytes, struct ky_perf_map_line *line);

/* Called with each line and its place; line is NULL when it has another form. */
typedef void (*ky_perf_map_fn)(void *context, uint64_t at, const struct ky_perf_map_line *line);
/* Read all lines of a text. */
void ky_perf_map_lines(const char *text, size_t bytes, ky_perf_map_fn line, void *context);

/* ---- jitdumps ---- */

#define KY_JITDUMP_MAGIC 0x4a695444u
#define KY_JITDUMP_HEAD_BYTES 40u
#define KY_JITDUMP_ARCH_TIME 1u /* flag: times are of the CPU's own clock */

struct ky_jitdump_head {
	uint32_t version;
	uint32_t machine; /* as in ELF files */
	uint32_t pid;
	uint64_t time_ns;
	uint64_t flags;
	bool big;
};

/* A function that came to be, or that moved. Texts live as long as the call. */
struct ky_jit_code {
	uint64_t time_ns;
	uint32_t pid;
	uint32_t tid;
	uint64_t address;
	uint64_t bytes;
	uint64_t index;       /* identifies a function */
	uint64_t old_address; /* of one that moved */
	bool moved;
	const char *name; /* NULL when it moved */
	size_t name_bytes;
	const char *file; /* NULL: unknown */
	size_t file_bytes;
	uint32_t line;
};

typedef void (*ky_jit_code_fn)(void *context, const struct ky_jit_code *code);

/* Decode the head of a jitdump; false when the bytes do not begin like one. */
bool ky_jitdump_head(const uint8_t *data, size_t bytes, struct ky_jitdump_head *head);
/* How much of a record is looked at: names are shorter. */
#define KY_JITDUMP_WINDOW 65536u

/* Where the bytes of a dump come from. */
struct ky_jitdump_input {
	/* Return the bytes from here on, at most KY_JITDUMP_WINDOW: as many as asked for, or fewer at the end. */
	const uint8_t *(*need)(void *context, size_t bytes, size_t *have);
	/* Pass over bytes; false when the end comes before. */
	bool (*skip)(void *context, uint64_t bytes);
	/* Called when the record that begins at a byte is damaged. */
	void (*damaged)(void *context, uint64_t at, const char *what);
	void *context;
};

/*
 * Read a dump from the first byte to the last; damage ends it. head is filled before the first call. 0, or -EBADMSG when it
 * is no jitdump.
 */
int ky_jitdump_read(const struct ky_jitdump_input *input, struct ky_jitdump_head *head,
		    ky_jit_code_fn code, void *context);
/* Report whether a path is that of a jitdump (".../jit-PID.dump"): its mapping says that the program writes one. */
bool ky_jitdump_is_path(const char *path);

#endif
