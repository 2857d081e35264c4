/* SPDX-License-Identifier: MIT */
/*
 * export_file.c: see export_file.h.
 *
 *   out ──▶ push ──▶ gzip or zstd ──▶ the file that replaces the target
 */
#include "formats/export_file.h"

#include "base/array.h"
#include "base/file.h"
#include "formats/compress.h"

#include <errno.h>
#include <stdlib.h>

#define BUFFER_BYTES (1u << 20)
#define ZSTD_LEVEL 3

struct ky_export_file {
	struct ky_out out;
	struct ky_gzip *gzip;
	struct ky_zstd *zstd;
	uint8_t *packed;
	size_t packed_room;
	struct ky_file_replacer file;
};

static int write_packed(void *context, const void *data, size_t bytes)
{
	const struct ky_export_file *file = context;
	return ky_file_write_all(file->file.fd, data, bytes);
}

/* Each push is a frame of its own; frames one after the other are one file. */
static int write_frame(struct ky_export_file *file, const void *data, size_t bytes)
{
	const size_t room = ky_zstd_bound(file->zstd, bytes);
	if (!KY_ARRAY_GROW(file->packed, file->packed_room, room))
		return -ENOMEM;
	const int64_t n = ky_zstd_compress(file->zstd, file->packed, room, data, bytes, ZSTD_LEVEL);
	return n < 0 ? (int)n : write_packed(file, file->packed, (size_t)n);
}

static int push(struct ky_out *out, const void *data, size_t bytes)
{
	struct ky_export_file *file = out->context;
	if (file->gzip)
		return ky_gzip_write(file->gzip, data, bytes, KY_GZIP_MORE, write_packed, file);
	if (file->zstd)
		return write_frame(file, data, bytes);
	return write_packed(file, data, bytes);
}

static int open_packing(struct ky_export_file *file, enum ky_export_packing packing)
{
	if (packing == KY_EXPORT_GZIP)
		return ky_gzip_load() ? -ENOENT : ky_gzip_open(&file->gzip, 0);
	if (packing == KY_EXPORT_ZSTD) {
		const int error = ky_zstd_load();
		return error ? error : ky_zstd_open(&file->zstd);
	}
	return 0;
}

int ky_export_file_open(struct ky_export_file **out_file, const char *path,
			enum ky_export_packing packing, struct ky_out **out, const char **what)
{
	struct ky_export_file *file = calloc(1, sizeof(*file));
	*out_file = NULL;
	*what = "make room for";
	if (!file)
		return -ENOMEM;
	file->file.fd = -1;
	int error = ky_out_init(&file->out, BUFFER_BYTES);
	if (!error) {
		*what = "load the library that compresses";
		error = open_packing(file, packing);
	}
	if (!error) {
		*what = "create";
		error = ky_file_replacer_open(&file->file, path);
	}
	if (error) {
		ky_export_file_abandon(&file);
		return error;
	}
	file->out.push = push;
	file->out.context = file;
	*out_file = file;
	*out = &file->out;
	return 0;
}

int ky_export_file_commit(struct ky_export_file **out_file, const char **what)
{
	struct ky_export_file *file = *out_file;
	*what = "write";
	int error = ky_out_push(&file->out);
	if (!error && file->gzip)
		error = ky_gzip_write(file->gzip, "", 0, KY_GZIP_FINISH, write_packed, file);
	if (!error)
		error = ky_file_replacer_commit(&file->file, what);
	ky_export_file_abandon(out_file);
	return error;
}

void ky_export_file_abandon(struct ky_export_file **out_file)
{
	struct ky_export_file *file = *out_file;
	if (!file)
		return;
	ky_file_replacer_abandon(&file->file);
	ky_gzip_close(&file->gzip);
	ky_zstd_close(&file->zstd);
	ky_out_free(&file->out);
	KY_ARRAY_FREE(file->packed, file->packed_room);
	free(file);
	*out_file = NULL;
}
