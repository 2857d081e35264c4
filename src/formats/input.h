/* SPDX-License-Identifier: MIT */
/*
 * input.h: the bytes that a reader reads: of a file, a pipe, standard input, a member of an archive or of
 * memory; gzip, zstd and zlib streams are unpacked on the way, one inside the other too.
 *
 *   ┌ dropped ┐┌ window ─────────────────────────┐┌ not read yet ...
 *              ▲ at                          ▲ end
 *
 * A reader looks at the window, asks for more of it (ky_input_need), and moves on (ky_input_skip).
 * Files are read, not mapped: one that is cut meanwhile is a short file and not a signal, and memory
 * stays small. Positions are bytes of what was unpacked.
 */
#ifndef KY_FORMATS_INPUT_H
#define KY_FORMATS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define KY_INPUT_MESSAGE_BYTES 512

struct ky_input {
	const uint8_t *at;  /* next byte */
	const uint8_t *end; /* of the window; there is always one readable byte more, which is 0 */
	uint64_t position;  /* of at in the input */
	bool ended;         /* nothing comes after end */
	int error;          /* -errno of reading, -EBADMSG of unpacking: then it ended there */
	const char *name;   /* for messages */
	struct ky_input_source *source; /* private */
};

/* Called now and then: bytes of the file taken, of all (0: not known). Not 0 ends the input with that error. */
typedef int (*ky_input_progress_fn)(void *context, uint64_t done, uint64_t all);

/*
 * path is a file; "-" is standard input. name in messages is the path. 0, or -errno and a message that says
 * what and what to do.
 */
int ky_input_open(struct ky_input **input, const char *path, ky_input_progress_fn progress,
		  void *context, char message[KY_INPUT_MESSAGE_BYTES]);
/* Bytes that stay the caller's as long as it is open. */
int ky_input_open_memory(struct ky_input **input, const void *data, uint64_t bytes,
			 const char *name);
/* A plain file's descriptor, from its first byte on, which is the input's then, also on failure. Its bytes are taken
 * as they are: nothing is unpacked. */
int ky_input_open_fd(struct ky_input **input, int fd, const char *name);
void ky_input_close(struct ky_input **input);

/* Part of ky_input_need(). */
bool ky_input_fill(struct ky_input *input, size_t bytes);

/* Whether the window has at least that many bytes from at on, after reading more when it must. */
static inline bool ky_input_need(struct ky_input *input, size_t bytes)
{
	return (size_t)(input->end - input->at) >= bytes || ky_input_fill(input, bytes);
}

/* Reads more, whatever there is: false when there is nothing. The window keeps what is from at on. */
bool ky_input_more(struct ky_input *input);

/* Over bytes of the window. */
static inline void ky_input_skip(struct ky_input *input, size_t bytes)
{
	input->at += bytes;
	input->position += bytes;
}

/* Over any number of bytes; false when the input ends before. */
bool ky_input_skip_far(struct ky_input *input, uint64_t bytes);

/* Back to the first byte: for readers that pass twice. Standard input and pipes are kept in a temporary
 * file for it when remember was called before anything was skipped. 0 or -errno. */
int ky_input_remember(struct ky_input *input);
int ky_input_rewind(struct ky_input *input);

/*
 * For formats that jump about: a descriptor of a plain file with the unpacked bytes (a temporary one
 * when it must be) and their number. Belongs to the input. -1 and input->error when it cannot be had.
 */
int ky_input_file(struct ky_input *input, uint64_t *bytes);
/* Reads at any place of that file, as pread(); short at the end. -errno on failure. */
ssize_t ky_input_read_at(struct ky_input *input, uint64_t at, void *to, size_t bytes);

/*
 * What is wrong with packed data, one line, once it was met: a reader need not look, ky_load() does. NULL: nothing
 * so far. truncated: it is cut off, and not damaged inside.
 */
const char *ky_input_damage(const struct ky_input *input, bool *truncated);

/* Of an archive: how many files are in it (0: it is none). The input is the first of them. */
uint32_t ky_input_members(const struct ky_input *input);
/* Begins with the archive's next file instead; false when there is no other. */
bool ky_input_next_member(struct ky_input *input);

/* Bytes of the file on disk taken and in all, for progress. */
void ky_input_progress(const struct ky_input *input, uint64_t *done, uint64_t *all);

#endif
