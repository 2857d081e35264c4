/* SPDX-License-Identifier: MIT */
/*
 * compress.h: gzip streams and zstd blocks by the system's libz.so.1 and libzstd.so.1, loaded when
 * they are first asked for: the recorder runs without them and is not linked to them.
 *
 * Loading takes the dynamic linker's lock, which a thread may hold that waits for this one (a
 * library whose constructor or destructor starts or stops a session). So a session loads what it
 * needs while it starts, on the thread that starts it, and nothing is ever unloaded; everything
 * after a successful load is free of that lock. A failed load is tried again the next time.
 *
 * A ky_gzip or a ky_zstd belongs to one thread at a time.
 */
#ifndef KY_FORMATS_COMPRESS_H
#define KY_FORMATS_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

struct ky_gzip;
struct ky_zstd;

enum ky_gzip_flush {
	KY_GZIP_MORE,  /* keep what compresses better with what follows */
	KY_GZIP_SYNC,  /* hand out everything: a file cut off here reads up to here */
	KY_GZIP_FINISH /* hand out everything and the trailer; nothing may follow */
};

/* Takes compressed bytes; 0 or a negative error. */
typedef int (*ky_gzip_write_fn)(void *context, const void *data, size_t bytes);

/* Load libz. 0 or KYMO_EZLIB. Any thread. */
int ky_gzip_load(void);

/* Open a new stream, level 1 (fast) to 9 (small), 0 for what tracing wants. 0, KYMO_EZLIB or -ENOMEM. */
int ky_gzip_open(struct ky_gzip **gzip, int level);

/*
 * Compress data and calls write with what comes of it, any number of times. A sync costs about
 * five bytes and a little of the ratio: sync at flushes, not at every write. Return 0, the first
 * error of write, also in later calls, or -EINVAL after a finish.
 */
int ky_gzip_write(struct ky_gzip *gzip, const void *data, size_t bytes, enum ky_gzip_flush flush,
		  ky_gzip_write_fn write, void *context);

/* Free the stream, finished or not, and null the pointer; NULL is allowed. */
void ky_gzip_close(struct ky_gzip **gzip);

/* Load libzstd. 0 or -ENOENT. Any thread. */
int ky_zstd_load(void);

/* Open a reusable compressor and decompressor. 0; -ENOENT without libzstd; -ENOMEM. */
int ky_zstd_open(struct ky_zstd **zstd);

/* Room that compressing so many bytes needs at most. */
size_t ky_zstd_bound(const struct ky_zstd *zstd, size_t bytes);

/*
 * Compress src into one frame at dst. Level as zstd has it: 1 is fast, 0 is 3, below 0 is faster.
 * Returns the frame's bytes, -EMSGSIZE when room is too small, or -ENOMEM.
 */
int64_t ky_zstd_compress(struct ky_zstd *zstd, void *dst, size_t room, const void *src,
			 size_t bytes, int level);

/* Return the bytes that the frame at src claims to hold; -EBADMSG when it is not a frame or has no size. */
int64_t ky_zstd_content_bytes(const struct ky_zstd *zstd, const void *src, size_t bytes);

/*
 * Decompress the frames in src, which are any bytes, into dst, and never writes beyond room.
 * Returns the number of bytes, -EMSGSIZE when room is too small, -EBADMSG when src is malformed, or
 * -ENOMEM.
 */
int64_t ky_zstd_decompress(struct ky_zstd *zstd, void *dst, size_t room, const void *src,
			   size_t bytes);

/* Free it and null the pointer; NULL is allowed. */
void ky_zstd_close(struct ky_zstd **zstd);

#endif
