/* SPDX-License-Identifier: MIT */
/*
 * export.c: finds the output format and writes the file: compressed, if its name asks for it, and whole or not at all (see
 * ky_file_replacer in base/file.h).
 *
 *   exporter ──▶ out ──▶ push ──▶ gzip or zstd ──▶ the file that replaces the target
 */
#include "formats/export.h"

#include "base/array.h"
#include "base/file.h"
#include "base/memory.h"
#include "formats/compress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER_BYTES (1u << 20)
#define ZSTD_LEVEL 3

#define EXPORTER(name) &ky_exporter_##name,
const struct ky_exporter *const ky_exporters[] = {
	KY_FORMATS_WRITTEN(EXPORTER, ) & ky_exporter_collapsed,
	&ky_exporter_speedscope,
	&ky_exporter_pprof,
	NULL,
};

/* ---- the file ---- */

enum packing { PACKING_PLAIN, PACKING_GZIP, PACKING_ZSTD };

struct export_file {
	struct ky_out out;
	struct ky_gzip *gzip;
	struct ky_zstd *zstd;
	uint8_t *packed;
	size_t packed_room;
	struct ky_file_replacer file;
};

static int write_packed(void *context, const void *data, size_t bytes)
{
	const struct export_file *file = context;
	return ky_file_write_all(file->file.fd, data, bytes);
}

/* Each push is a frame of its own; frames one after the other are one file. */
static int write_frame(struct export_file *file, const void *data, size_t bytes)
{
	const size_t room = ky_zstd_bound(file->zstd, bytes);
	if (!KY_ARRAY_GROW(file->packed, file->packed_room, room))
		return -ENOMEM;
	const int64_t n = ky_zstd_compress(file->zstd, file->packed, room, data, bytes, ZSTD_LEVEL);
	return n < 0 ? (int)n : write_packed(file, file->packed, (size_t)n);
}

static int push(struct ky_out *out, const void *data, size_t bytes)
{
	struct export_file *file = out->context;
	if (file->gzip)
		return ky_gzip_write(file->gzip, data, bytes, KY_GZIP_MORE, write_packed, file);
	if (file->zstd)
		return write_frame(file, data, bytes);
	return write_packed(file, data, bytes);
}

static int open_packing(struct export_file *file, enum packing packing)
{
	if (packing == PACKING_GZIP)
		return ky_gzip_load() ? -ELIBACC : ky_gzip_open(&file->gzip, 0);
	if (packing == PACKING_ZSTD) {
		return ky_zstd_load() ? -ELIBACC : ky_zstd_open(&file->zstd);
	}
	return 0;
}

/* Give the file up: nothing remains. NULL is allowed. */
static void abandon_file(struct export_file **out_file)
{
	struct export_file *file = *out_file;
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

/* Open the file; *out takes its bytes. 0 or -errno, and in *what the verb that failed. */
static int open_file(struct export_file **out_file, const char *path, enum packing packing,
		     struct ky_out **out, const char **what)
{
	struct export_file *file = calloc(1, sizeof(*file));
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
		abandon_file(&file);
		return error;
	}
	file->out.push = push;
	file->out.context = file;
	*out_file = file;
	*out = &file->out;
	return 0;
}

/* Write what is left, give the file its name and close it, in any case. 0 or -errno. */
static int commit_file(struct export_file **out_file, const char **what)
{
	struct export_file *file = *out_file;
	*what = "write";
	int error = ky_out_push(&file->out);
	if (!error && file->gzip)
		error = ky_gzip_write(file->gzip, "", 0, KY_GZIP_FINISH, write_packed, file);
	if (!error)
		error = ky_file_replacer_commit(&file->file, what);
	abandon_file(out_file);
	return error;
}

/* ---- formats ---- */

static bool ends_with(const char *text, size_t bytes, const char *end)
{
	const size_t n = strlen(end);
	return bytes >= n && memcmp(text + bytes - n, end, n) == 0;
}

static enum packing packing_of(const char *path, size_t *bytes)
{
	*bytes = strlen(path);
	if (ends_with(path, *bytes, ".gz")) {
		*bytes -= 3;
		return PACKING_GZIP;
	}
	if (ends_with(path, *bytes, ".zst")) {
		*bytes -= 4;
		return PACKING_ZSTD;
	}
	return PACKING_PLAIN;
}

/* Find a format by the suffix of a path: the longest, as .speedscope.json is no other .json. */
static const struct ky_exporter *by_suffix(const char *path, size_t bytes)
{
	const struct ky_exporter *found = NULL;
	if (ends_with(path, bytes, KY_FORMAT_PERFETTO_SUFFIX))
		return &ky_exporter_pftrace;
	for (uint32_t i = 0; ky_exporters[i]; i++) {
		const char *const suffix = ky_exporters[i]->format->suffix;
		if (ends_with(path, bytes, suffix) &&
		    (!found || strlen(suffix) > strlen(found->format->suffix)))
			found = ky_exporters[i];
	}
	return found;
}

/* Find a format by its name, which may include a packing: "json.gz". */
static const struct ky_exporter *by_name(const char *format, enum packing *packing)
{
	size_t bytes;
	const enum packing own = packing_of(format, &bytes);
	for (uint32_t i = 0; ky_exporters[i]; i++)
		if (strlen(ky_exporters[i]->format->name) == bytes &&
		    memcmp(ky_exporters[i]->format->name, format, bytes) == 0) {
			*packing = own ? own : *packing;
			return ky_exporters[i];
		}
	return NULL;
}

const struct ky_exporter *ky_exporter_find(const char *path, const char *format, int *packing)
{
	size_t bytes;
	enum packing found = packing_of(path, &bytes);
	const struct ky_exporter *const exporter =
		format ? by_name(format, &found) : by_suffix(path, bytes);
	*packing = (int)found;
	return exporter;
}

static int fail(char *message, int error, const char *path, const char *what)
{
	const char *remedy = error == -ENOSPC ? "; free some space, or choose another place with -o"
			     : error == -EACCES || error == -EROFS || error == -EPERM
				     ? "; choose a place that you may write to with -o"
			     : error == -ENOENT ? "; make the directory first"
						: "";
	return ky_fail(message, error, "cannot %s %s: %s%s", what,
		       strcmp(path, "-") == 0 ? "standard output" : path, strerror(-error), remedy);
}

static int fail_format(char *message, const char *path, const char *format)
{
	return ky_fail(message, -EINVAL,
		       format ? "%s: %s is not an output format: use one of " KY_FORMAT_NAMES
			      : "%s: unknown suffix%s: use one of " KY_FORMAT_SUFFIXES
				" (and .gz or .zst), or --format",
		       path, format ? format : "");
}

int ky_export_by(const char *path, const char *format, ky_export_fn write, void *context,
		 char message[KY_MESSAGE_BYTES])
{
	struct export_file *file;
	struct ky_out *out;
	const char *what = "write";
	const unsigned failures = ky_memory_failures();
	int packing;
	message[0] = 0;
	const struct ky_exporter *exporter = ky_exporter_find(path, format, &packing);
	if (!exporter)
		return fail_format(message, path, format);
	int error = open_file(&file, path, (enum packing)packing, &out, &what);
	if (error)
		return fail(message, error, path, what);
	what = "write";
	error = write(context, exporter, out);
	if (!error && ky_memory_failures() != failures)
		error = -ENOMEM; /* an exporter goes on without what did not fit */
	if (!error)
		error = commit_file(&file, &what);
	abandon_file(&file);
	return error ? fail(message, error, path, what) : 0;
}

static int write_job(void *context, const struct ky_exporter *exporter, struct ky_out *out)
{
	struct ky_export_job *job = context;
	job->out = out;
	return exporter->write(job);
}

int ky_export(const struct ky_trace *trace, const struct ky_export_selection *selection,
	      const char *path, const char *format, struct ky_export_left *left,
	      int (*progress)(void *, uint64_t, uint64_t), void *context,
	      char message[KY_MESSAGE_BYTES])
{
	static const struct ky_export_selection all = {.from_ns = KY_TIME_NONE,
						       .to_ns = KY_TIME_NONE};
	struct ky_export_job job = {.trace = trace,
				    .selection = selection ? selection : &all,
				    .left = left,
				    .progress = progress,
				    .context = context};
	*left = (struct ky_export_left){0};
	return ky_export_by(path, format, write_job, &job, message);
}

static size_t add(char *text, size_t bytes, size_t at, uint64_t count, const char *one,
		  const char *several)
{
	if (!count || at >= bytes)
		return at;
	const int n = snprintf(text + at, bytes - at, "%s%llu %s", at ? ", " : "",
			       (unsigned long long)count, count == 1 ? one : several);
	return at + (n > 0 ? (size_t)n : 0);
}

const char *ky_export_left_text(const struct ky_export_left *left, char *text, size_t bytes)
{
	size_t at = 0;
	text[0] = 0;
	at = add(text, bytes, at, left->slices, "slice", "slices");
	at = add(text, bytes, at, left->instants, "instant", "instants");
	at = add(text, bytes, at, left->counters, "counter value", "counter values");
	at = add(text, bytes, at, left->flows, "flow", "flows");
	at = add(text, bytes, at, left->args, "argument", "arguments");
	at = add(text, bytes, at, left->sched, "scheduling slice", "scheduling slices");
	at = add(text, bytes, at, left->samples, "sample", "samples");
	at = add(text, bytes, at, left->logs, "log message", "log messages");
	at = add(text, bytes, at, left->raw_events, "kernel event", "kernel events");
	at = add(text, bytes, at, left->tracks, "track", "tracks");
	at = add(text, bytes, at, left->ends, "end of a slice", "ends of slices");
	at = add(text, bytes, at, left->frames, "frame", "frames");
	at = add(text, bytes, at, left->metadata, "line of metadata", "lines of metadata");
	at = add(text, bytes, at, left->snapshots, "clock snapshot", "clock snapshots");
	add(text, bytes, at, left->cut, "text in full", "texts in full");
	return text;
}
