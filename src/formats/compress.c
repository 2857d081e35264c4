/* SPDX-License-Identifier: MIT */
/*
 * compress.c: zlib and zstd, loaded at run time.
 *
 * A library is a table of function pointers, made on the heap by the first caller and published
 * with one compare-and-swap: a thread that comes second drops its own copy, and there is no lock
 * that a fork could leave locked. The table is then never changed or freed.
 *
 * The prototypes stand here and not in zlib.h and zstd.h, because the recorder is built without
 * them. Both libraries have kept these through all versions of their sonames; zlib checks the
 * layout of its struct itself, by the size that deflateInit2_() is given.
 */
#include "formats/compress.h"

#include <dlfcn.h>
#include <errno.h>
#include <kymo/session.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GZIP_OUT_BYTES (64u << 10)
#define GZIP_LEVEL_DEFAULT 1
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* zlib's z_stream. */
struct zlib_stream {
	const unsigned char *next_in;
	unsigned int avail_in;
	unsigned long total_in;
	unsigned char *next_out;
	unsigned int avail_out;
	unsigned long total_out;
	const char *msg;
	void *state;
	void *(*zalloc)(void *opaque, unsigned int items, unsigned int size);
	void (*zfree)(void *opaque, void *address);
	void *opaque;
	int data_type;
	unsigned long adler;
	unsigned long reserved;
};

enum { ZLIB_NO_FLUSH = 0, ZLIB_SYNC_FLUSH = 2, ZLIB_FINISH = 4 };
enum { ZLIB_OK = 0, ZLIB_STREAM_END = 1, ZLIB_MEM_ERROR = -4, ZLIB_BUF_ERROR = -5 };
enum { ZLIB_DEFLATED = 8, ZLIB_WINDOW_GZIP = 15 + 16, ZLIB_MEMORY_LEVEL = 8, ZLIB_STRATEGY = 0 };

/* Only the first digit is compared, and the stream's size is checked apart from it. */
static const char zlib_version[] = "1.2.0";

struct zlib {
	const char *(*version)(void);
	int (*init)(struct zlib_stream *stream, int level, int method, int window_bits,
		    int memory_level, int strategy, const char *version, int stream_bytes);
	int (*deflate)(struct zlib_stream *stream, int flush);
	int (*end)(struct zlib_stream *stream);
};

#define ZSTD_CONTENT_UNKNOWN (0ull - 1)
#define ZSTD_CONTENT_ERROR (0ull - 2)
enum { ZSTD_NO_MEMORY = 64, ZSTD_ROOM_TOO_SMALL = 70 }; /* the same since zstd 1.3.1 */

struct zstd {
	void *(*create_compressor)(void);
	size_t (*free_compressor)(void *compressor);
	size_t (*compress)(void *compressor, void *dst, size_t room, const void *src, size_t bytes,
			   int level);
	size_t (*bound)(size_t bytes);
	unsigned int (*is_error)(size_t code);
	int (*error_code)(size_t code);
	unsigned long long (*content_bytes)(const void *src, size_t bytes);
	void *(*create_decompressor)(void);
	size_t (*free_decompressor)(void *decompressor);
	size_t (*decompress)(void *decompressor, void *dst, size_t room, const void *src,
			     size_t bytes);
};

struct library_symbol {
	const char *name;
	size_t offset; /* of its pointer in the table */
};

struct library {
	const char *file;
	const struct library_symbol *symbols;
	size_t symbols_count;
	size_t table_bytes;
	bool (*accept)(const void *table); /* NULL is any version */
	_Atomic(void *) table;
};

struct ky_gzip {
	const struct zlib *zlib;
	struct zlib_stream stream;
	int error;
	bool finished;
	unsigned char out[GZIP_OUT_BYTES]; /* held until it is full or a flush */
};

struct ky_zstd {
	const struct zstd *zstd;
	void *compressor;   /* made when first needed */
	void *decompressor; /* made when first needed */
};

static bool zlib_accept(const void *table)
{
	const struct zlib *zlib = table;
	const char *version = zlib->version();

	return version && version[0] == zlib_version[0];
}

static const struct library_symbol zlib_symbols[] = {
	{"zlibVersion", offsetof(struct zlib, version)},
	{"deflateInit2_", offsetof(struct zlib, init)},
	{"deflate", offsetof(struct zlib, deflate)},
	{"deflateEnd", offsetof(struct zlib, end)},
};

static const struct library_symbol zstd_symbols[] = {
	{"ZSTD_createCCtx", offsetof(struct zstd, create_compressor)},
	{"ZSTD_freeCCtx", offsetof(struct zstd, free_compressor)},
	{"ZSTD_compressCCtx", offsetof(struct zstd, compress)},
	{"ZSTD_compressBound", offsetof(struct zstd, bound)},
	{"ZSTD_isError", offsetof(struct zstd, is_error)},
	{"ZSTD_getErrorCode", offsetof(struct zstd, error_code)},
	{"ZSTD_getFrameContentSize", offsetof(struct zstd, content_bytes)},
	{"ZSTD_createDCtx", offsetof(struct zstd, create_decompressor)},
	{"ZSTD_freeDCtx", offsetof(struct zstd, free_decompressor)},
	{"ZSTD_decompressDCtx", offsetof(struct zstd, decompress)},
};

static struct library zlib_library = {.file = "libz.so.1",
				      .symbols = zlib_symbols,
				      .symbols_count = LENGTH(zlib_symbols),
				      .table_bytes = sizeof(struct zlib),
				      .accept = zlib_accept};

static struct library zstd_library = {.file = "libzstd.so.1",
				      .symbols = zstd_symbols,
				      .symbols_count = LENGTH(zstd_symbols),
				      .table_bytes = sizeof(struct zstd)};

static bool library_fill(const struct library *library, void *handle, void *table)
{
	for (size_t i = 0; i < library->symbols_count; i++) {
		void *const function = dlsym(handle, library->symbols[i].name);
		if (!function)
			return false;
		/* Copied, because ISO C has no conversion from void * to a function's. */
		memcpy((char *)table + library->symbols[i].offset, &function, sizeof(function));
	}
	return !library->accept || library->accept(table);
}

/* Return the library's table, or NULL. */
static const void *library_load(struct library *library)
{
	/* Acquire: pairs with the exchange below, which comes after the table was filled. */
	void *current = atomic_load_explicit(&library->table, memory_order_acquire);
	if (current)
		return current;
	void *const handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return NULL;
	void *const table = calloc(1, library->table_bytes);
	if (!table || !library_fill(library, handle, table)) {
		free(table);
		dlclose(handle);
		return NULL;
	}
	if (atomic_compare_exchange_strong_explicit(&library->table, &current, table,
						    memory_order_acq_rel, memory_order_acquire))
		return table; /* handle stays open for good */
	free(table);
	dlclose(handle);
	return current;
}

int ky_gzip_load(void)
{
	return library_load(&zlib_library) ? 0 : KYMO_EZLIB;
}

int ky_gzip_open(struct ky_gzip **gzip, int level)
{
	const struct zlib *const zlib = library_load(&zlib_library);

	*gzip = NULL;
	if (!zlib)
		return KYMO_EZLIB;
	struct ky_gzip *const made = malloc(sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->zlib = zlib;
	made->stream = (struct zlib_stream){.next_out = made->out, .avail_out = GZIP_OUT_BYTES};
	made->error = 0;
	made->finished = false;
	if (level < 1 || level > 9)
		level = GZIP_LEVEL_DEFAULT;
	const int result =
		zlib->init(&made->stream, level, ZLIB_DEFLATED, ZLIB_WINDOW_GZIP, ZLIB_MEMORY_LEVEL,
			   ZLIB_STRATEGY, zlib_version, (int)sizeof(made->stream));
	if (result != ZLIB_OK) {
		free(made);
		return result == ZLIB_MEM_ERROR ? -ENOMEM : KYMO_EZLIB;
	}
	*gzip = made;
	return 0;
}

static int gzip_hand_out(struct ky_gzip *gzip, ky_gzip_write_fn write, void *context)
{
	struct zlib_stream *const stream = &gzip->stream;
	const size_t bytes = GZIP_OUT_BYTES - stream->avail_out;

	stream->next_out = gzip->out;
	stream->avail_out = GZIP_OUT_BYTES;
	return bytes ? write(context, gzip->out, bytes) : 0;
}

/* Compress what the stream has been given, with one of zlib's flush values. */
static int gzip_deflate(struct ky_gzip *gzip, int flush, ky_gzip_write_fn write, void *context)
{
	struct zlib_stream *const stream = &gzip->stream;

	for (;;) {
		const int result = gzip->zlib->deflate(stream, flush);
		/* No progress is possible: all was done before, as by a second flush in a row. */
		if (result == ZLIB_BUF_ERROR)
			return 0;
		if (result != ZLIB_OK && result != ZLIB_STREAM_END)
			return -EINVAL;
		if (stream->avail_out > 0) /* room left, so nothing is pending */
			return 0;
		const int error = gzip_hand_out(gzip, write, context);
		if (error || result == ZLIB_STREAM_END)
			return error;
	}
}

static int gzip_compress(struct ky_gzip *gzip, const unsigned char *data, size_t bytes,
			 enum ky_gzip_flush flush, ky_gzip_write_fn write, void *context)
{
	int error = 0;

	while (bytes > 0 && !error) { /* zlib counts in unsigned int */
		const size_t part = bytes < INT_MAX ? bytes : INT_MAX;
		gzip->stream.next_in = data;
		gzip->stream.avail_in = (unsigned int)part;
		error = gzip_deflate(gzip, ZLIB_NO_FLUSH, write, context);
		data += part;
		bytes -= part;
	}
	if (error || flush == KY_GZIP_MORE)
		return error;
	error = gzip_deflate(gzip, flush == KY_GZIP_FINISH ? ZLIB_FINISH : ZLIB_SYNC_FLUSH, write,
			     context);
	return error ? error : gzip_hand_out(gzip, write, context);
}

int ky_gzip_write(struct ky_gzip *gzip, const void *data, size_t bytes, enum ky_gzip_flush flush,
		  ky_gzip_write_fn write, void *context)
{
	if (gzip->error)
		return gzip->error;
	if (gzip->finished)
		return -EINVAL;
	gzip->error = gzip_compress(gzip, data, bytes, flush, write, context);
	gzip->finished = flush == KY_GZIP_FINISH;
	return gzip->error;
}

void ky_gzip_close(struct ky_gzip **gzip)
{
	if (*gzip) {
		(void)(*gzip)->zlib->end(&(*gzip)->stream);
		free(*gzip);
	}
	*gzip = NULL;
}

int ky_zstd_load(void)
{
	return library_load(&zstd_library) ? 0 : -ENOENT;
}

int ky_zstd_open(struct ky_zstd **zstd)
{
	const struct zstd *const library = library_load(&zstd_library);

	*zstd = NULL;
	if (!library)
		return -ENOENT;
	*zstd = calloc(1, sizeof(**zstd));
	if (!*zstd)
		return -ENOMEM;
	(*zstd)->zstd = library;
	return 0;
}

size_t ky_zstd_bound(const struct ky_zstd *zstd, size_t bytes)
{
	return zstd->zstd->bound(bytes);
}

static int64_t zstd_result(const struct zstd *zstd, size_t code, int otherwise)
{
	if (!zstd->is_error(code))
		return (int64_t)code;
	const int reason = zstd->error_code(code);
	if (reason == ZSTD_ROOM_TOO_SMALL)
		return -EMSGSIZE;
	return reason == ZSTD_NO_MEMORY ? -ENOMEM : otherwise;
}

int64_t ky_zstd_compress(struct ky_zstd *zstd, void *dst, size_t room, const void *src,
			 size_t bytes, int level)
{
	if (!zstd->compressor)
		zstd->compressor = zstd->zstd->create_compressor();
	if (!zstd->compressor)
		return -ENOMEM;
	return zstd_result(zstd->zstd,
			   zstd->zstd->compress(zstd->compressor, dst, room, src, bytes, level),
			   -EINVAL);
}

int64_t ky_zstd_content_bytes(const struct ky_zstd *zstd, const void *src, size_t bytes)
{
	const unsigned long long content = zstd->zstd->content_bytes(src, bytes);

	if (content == ZSTD_CONTENT_UNKNOWN || content == ZSTD_CONTENT_ERROR || content > INT64_MAX)
		return -EBADMSG;
	return (int64_t)content;
}

int64_t ky_zstd_decompress(struct ky_zstd *zstd, void *dst, size_t room, const void *src,
			   size_t bytes)
{
	const int64_t content = ky_zstd_content_bytes(zstd, src, bytes);

	if (content >= 0 && (uint64_t)content > room)
		return -EMSGSIZE; /* before any work is done for a claim that cannot be met */
	if (!zstd->decompressor)
		zstd->decompressor = zstd->zstd->create_decompressor();
	if (!zstd->decompressor)
		return -ENOMEM;
	return zstd_result(zstd->zstd,
			   zstd->zstd->decompress(zstd->decompressor, dst, room, src, bytes),
			   -EBADMSG);
}

void ky_zstd_close(struct ky_zstd **zstd)
{
	if (*zstd) {
		(void)(*zstd)->zstd->free_compressor((*zstd)->compressor); /* takes NULL */
		(void)(*zstd)->zstd->free_decompressor((*zstd)->decompressor);
		free(*zstd);
	}
	*zstd = NULL;
}
