/* SPDX-License-Identifier: MIT */
/*
 * output.h: a session's file: a writer, its buffer, compression, and the file or descriptor.
 *
 *   events ─▶ writer ─▶ ky_out ─push─▶ (gzip) ─▶ descriptor
 *
 * The buffer is written at the end of a call when it is full enough, and at a flush: always at the end of a record, so
 * that the file is valid wherever it is cut off.
 */
#ifndef KY_SINK_OUTPUT_H
#define KY_SINK_OUTPUT_H

#include "formats/compress.h"
#include "formats/format.h"
#include "sink/path.h"

#include <sys/types.h>

struct ky_output {
	const struct ky_format *format;
	void *writer;
	struct ky_out out;
	struct ky_gzip *gzip;
	int fd;
	dev_t device; /* of fd: shows when the program closed fd and reused its number */
	ino_t inode;
	bool compressed;
	bool replacing; /* the file appears only when it is finished */
	struct ky_path_replacement replacement;
	uint64_t file_bytes;  /* given to the descriptor, this file */
	uint64_t total_bytes; /* all files before it */
	uint32_t files;
	char path[PATH_MAX]; /* of this file; empty for a descriptor */
};

/* Prepare for an enum kymo_format of a file; load what compression needs. Return 0, KYMO_EZLIB or -ENOMEM. */
int ky_output_init(struct ky_output *output, int format);
void ky_output_free(struct ky_output *output);

/* Begin a file at an expanded path. With replacing it appears only when it is finished. */
int ky_output_begin(struct ky_output *output, const char *path, bool replacing,
		    const struct ky_trace_info *info);
/*
 * Go on with a file that another session of the process has finished, if path still is the file of that identity. Return 0;
 * -ENOTSUP if the format cannot; or the error of opening it.
 */
int ky_output_resume(struct ky_output *output, const char *path, uint64_t identity,
		     const struct ky_trace_info *info);
/* Return the identity of the last file. */
uint64_t ky_output_identity(const struct ky_output *output);
/* Return a writable descriptor of our own for the user's, or a negative errno. */
int ky_output_duplicate(int fd);
/* Begin a file on such a descriptor, which is closed at the end and on failure. */
int ky_output_begin_fd(struct ky_output *output, int fd, const struct ky_trace_info *info);
/* Finish the file. Return its first error. */
int ky_output_finish(struct ky_output *output, uint64_t lost);

/* Close, in a forked child, the copy of the parent's descriptor, and no more. */
void ky_output_forget(struct ky_output *output);

/* A buffer with this much in it is worth a system call. */
#define KY_OUTPUT_PUSH_BYTES (256u << 10)
/* Write the buffer when it is full enough, or (all) always and through the compression. */
void ky_output_push(struct ky_output *output, bool all);
static inline bool ky_output_is_full(const struct ky_output *output)
{
	return output->out.used >= KY_OUTPUT_PUSH_BYTES;
}

/* Return the bytes of this file so far, including buffered ones. */
static inline uint64_t ky_output_bytes(const struct ky_output *output)
{
	return output->file_bytes + output->out.used;
}

#endif
