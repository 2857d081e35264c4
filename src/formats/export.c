/* SPDX-License-Identifier: MIT */
/* export.c: finds the output format and writes the file. See export.h. */
#include "formats/export.h"

#include "formats/export_file.h"

#include <errno.h>
#include <stdio.h>

#define EXPORTER(name) &ky_exporter_##name,
const struct ky_exporter *const ky_exporters[] = {KY_FORMATS_WRITTEN(EXPORTER, ) NULL};

static bool ends_with(const char *text, size_t bytes, const char *end)
{
	const size_t n = strlen(end);
	return bytes >= n && memcmp(text + bytes - n, end, n) == 0;
}

static enum ky_export_packing packing_of(const char *path, size_t *bytes)
{
	*bytes = strlen(path);
	if (ends_with(path, *bytes, ".gz")) {
		*bytes -= 3;
		return KY_EXPORT_GZIP;
	}
	if (ends_with(path, *bytes, ".zst")) {
		*bytes -= 4;
		return KY_EXPORT_ZSTD;
	}
	return KY_EXPORT_PLAIN;
}

/* Find a format by its name, which may include a packing: "json.gz". */
static const struct ky_exporter *by_name(const char *format, enum ky_export_packing *packing)
{
	size_t bytes;
	const enum ky_export_packing own = packing_of(format, &bytes);
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
	enum ky_export_packing found = packing_of(path, &bytes);
	const struct ky_exporter *exporter = NULL;
	if (format)
		exporter = by_name(format, &found);
	else if (ends_with(path, bytes, ".perfetto-trace"))
		exporter = &ky_exporter_pftrace;
	for (uint32_t i = 0; !format && !exporter && ky_exporters[i]; i++)
		if (ends_with(path, bytes, ky_exporters[i]->format->suffix))
			exporter = ky_exporters[i];
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
	snprintf(message, KY_EXPORT_MESSAGE_BYTES, "cannot %s %s: %s%s", what,
		 strcmp(path, "-") == 0 ? "standard output" : path, strerror(-error), remedy);
	return error;
}

static int fail_format(char *message, const char *path, const char *format)
{
	snprintf(message, KY_EXPORT_MESSAGE_BYTES,
		 format ? "%s: %s is not an output format: use one of " KY_FORMAT_NAMES
			: "%s: unknown suffix%s: use one of " KY_FORMAT_SUFFIXES
			  " (and .gz or .zst), or --format",
		 path, format ? format : "");
	return -EINVAL;
}

int ky_export_by(const char *path, const char *format, ky_export_fn write, void *context,
		 char message[KY_EXPORT_MESSAGE_BYTES])
{
	struct ky_export_file *file;
	struct ky_out *out;
	const char *what = "write";
	int packing;
	message[0] = 0;
	const struct ky_exporter *exporter = ky_exporter_find(path, format, &packing);
	if (!exporter)
		return fail_format(message, path, format);
	int error = ky_export_file_open(&file, path, (enum ky_export_packing)packing, &out, &what);
	if (error)
		return fail(message, error, path, what);
	what = "write";
	error = write(context, exporter, out);
	if (!error)
		error = ky_export_file_commit(&file, &what);
	ky_export_file_abandon(&file);
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
	      char message[KY_EXPORT_MESSAGE_BYTES])
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
