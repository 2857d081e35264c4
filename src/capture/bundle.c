/* SPDX-License-Identifier: MIT */
/*
 * bundle.c: the file of a capture: its sources, and when one file ends and the next begins
 * (bundle_parts.h has the picture).
 *
 * A file is large enough when it has max_bytes, and twice of what had to be told again at its
 * begin: else a limit smaller than that would make files without end. What sources still gather
 * then comes on top of max_bytes.
 */
#include "capture/bundle_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "capture/fail.h"
#include "formats/compress.h"
#include "sink/path.h"

#define BUFFER_BYTES (512u << 10)
#define PUSH_BYTES (256u << 10) /* so much is worth a system call */

void ky_bundle_fail(struct ky_bundle *bundle, int error)
{
	if (!bundle->out.error)
		bundle->out.error = error;
}

int ky_bundle_error(const struct ky_bundle *bundle)
{
	return bundle->out.error;
}

bool ky_bundle_is_full(const struct ky_bundle *bundle)
{
	return bundle->full;
}

void ky_bundle_facts(const struct ky_bundle *bundle, struct ky_bundle_facts *facts)
{
	*facts = (struct ky_bundle_facts){
		.events = bundle->events,
		.bytes = bundle->file.bytes_before + bundle->out.pushed_bytes,
		.files = bundle->file.number,
		.path = bundle->file.path,
	};
}

/* ---- sources ---- */

static bool make_room(struct ky_bundle *bundle)
{
	if (bundle->sources_count < bundle->sources_room)
		return true;
	const uint32_t room = bundle->sources_room ? 2 * bundle->sources_room : 16;
	struct ky_bundle_source **sources =
		realloc(bundle->sources, (size_t)room * sizeof(struct ky_bundle_source *));
	if (!sources)
		return false;
	bundle->sources = sources;
	bundle->sources_room = room;
	return true;
}

struct ky_bundle_source *ky_bundle_add(struct ky_bundle *bundle, enum ky_bundle_source_kind kind)
{
	if (bundle->out.error)
		return NULL;
	struct ky_bundle_source *source = calloc(1, sizeof(*source));
	if (!source || !make_room(bundle)) {
		ky_bundle_fail(bundle, -ENOMEM);
		free(source);
		return NULL;
	}
	source->kind = kind;
	source->number = bundle->sources_count;
	bundle->sources[bundle->sources_count++] = source;
	return source;
}

struct ky_bundle_source *ky_bundle_find(const struct ky_bundle *bundle, uint32_t number,
					enum ky_bundle_source_kind kind)
{
	if (bundle->out.error || number == 0 || number >= bundle->sources_count)
		return NULL;
	struct ky_bundle_source *source = bundle->sources[number];
	return source && source->kind == kind ? source : NULL;
}

void ky_bundle_drop(struct ky_bundle *bundle, struct ky_bundle_source *source)
{
	bundle->sources[source->number] = NULL;
	if (source->kind == KY_BUNDLE_DRUM)
		ky_bundle_drum_close(source);
	else
		ky_bundle_stream_close(source);
	free(source);
}

static void flush_sources(struct ky_bundle *bundle)
{
	for (uint32_t i = 1; i < bundle->sources_count; i++) {
		struct ky_bundle_source *source = bundle->sources[i];
		if (source && source->kind == KY_BUNDLE_DRUM)
			ky_bundle_drum_flush(source);
		else if (source)
			ky_bundle_stream_flush(source);
	}
}

static void begin_sources(struct ky_bundle *bundle)
{
	for (uint32_t i = 1; i < bundle->sources_count && !bundle->out.error; i++) {
		struct ky_bundle_source *source = bundle->sources[i];
		if (source && source->kind == KY_BUNDLE_DRUM)
			ky_bundle_drum_begin(bundle, source);
		else if (source)
			ky_bundle_stream_begin(bundle, source);
	}
}

static void finish_sources(struct ky_bundle *bundle)
{
	flush_sources(bundle);
	for (uint32_t i = 1; i < bundle->sources_count; i++)
		if (bundle->sources[i] && bundle->sources[i]->kind == KY_BUNDLE_DRUM)
			ky_bundle_drum_finish(bundle->sources[i]);
}

/* ---- files ---- */

static uint64_t file_bytes(const struct ky_bundle *bundle)
{
	return bundle->out.pushed_bytes + bundle->out.used;
}

static void begin_file(struct ky_bundle *bundle)
{
	const int error = ky_bundle_file_begin(&bundle->file, bundle->out.pushed_bytes);
	bundle->out.pushed_bytes = 0;
	if (error) {
		ky_bundle_fail(bundle, error);
		return;
	}
	ky_bundle_about_begin(bundle);
	begin_sources(bundle);
	bundle->begun_bytes = file_bytes(bundle);
	ky_bundle_file_keep(&bundle->file, bundle->files_max);
}

static void end_file(struct ky_bundle *bundle)
{
	finish_sources(bundle);
	ky_bundle_about_finish(bundle);
	ky_out_push(&bundle->out);
	const int error = ky_bundle_file_end(&bundle->file);
	if (error)
		ky_bundle_fail(bundle, error);
}

static bool is_large_enough(const struct ky_bundle *bundle)
{
	const uint64_t bytes = file_bytes(bundle);
	return bundle->max_bytes && bytes >= bundle->max_bytes && bytes / 2 >= bundle->begun_bytes;
}

static void rotate(struct ky_bundle *bundle)
{
	if (!bundle->file.pattern || !ky_path_rotates(bundle->file.pattern)) {
		bundle->full = true;
		return;
	}
	bundle->rotating = true;
	end_file(bundle);
	if (!bundle->out.error)
		begin_file(bundle);
	bundle->rotating = false;
}

void ky_bundle_appended(struct ky_bundle *bundle)
{
	if (bundle->out.used >= PUSH_BYTES)
		ky_out_push(&bundle->out);
	/* restate() writes too, while the file is being begun. */
	if (!bundle->rotating && !bundle->full && !bundle->out.error && is_large_enough(bundle))
		rotate(bundle);
}

void ky_bundle_flush(struct ky_bundle *bundle)
{
	if (bundle->out.error)
		return;
	ky_bundle_about_flush(bundle);
	flush_sources(bundle);
	ky_out_push(&bundle->out);
	ky_bundle_appended(bundle);
}

/* ---- the bundle ---- */

static void free_bundle(struct ky_bundle *bundle)
{
	for (uint32_t i = 1; i < bundle->sources_count; i++)
		if (bundle->sources[i])
			ky_bundle_drop(bundle, bundle->sources[i]);
	free(bundle->sources);
	ky_kymo_pack_close(&bundle->pack);
	ky_bundle_about_close(bundle);
	ky_bundle_file_close(&bundle->file);
	ky_out_free(&bundle->out);
	free(bundle);
}

static int open_parts(struct ky_bundle *bundle, const struct ky_bundle_options *options)
{
	(void)ky_zstd_load(); /* without it nothing is compressed */
	const int error = ky_out_init(&bundle->out, BUFFER_BYTES);
	bundle->out.push = ky_bundle_file_push;
	bundle->out.context = &bundle->file;
	bundle->sources_count = 1; /* numbers begin there */
	bundle->max_bytes = options->max_bytes;
	bundle->files_max = options->files_max;
	bundle->file.fd = options->path ? -1 : options->fd;
	if (options->path)
		bundle->file.pattern = strdup(options->path);
	if (error || (options->path && !bundle->file.pattern) || !make_room(bundle) ||
	    ky_kymo_pack_open(&bundle->pack) != 0)
		return -ENOMEM;
	bundle->sources[0] = NULL;
	return ky_bundle_about_open(bundle);
}

static const char *remedy(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		return "make its folder first, or choose another with -o";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "choose a place that you may write to with -o";
	case -ENOSPC:
	case -EDQUOT:
		return "make room on the disk, or choose another with -o";
	case -ENXIO:
		return "nobody reads from it: start the reader first";
	default:
		return "choose another file with -o";
	}
}

int ky_bundle_open(struct ky_bundle **out, const struct ky_bundle_options *options,
		   char message[KY_CAPTURE_MESSAGE_BYTES])
{
	*out = NULL;
	struct ky_bundle *bundle = calloc(1, sizeof(*bundle));
	int error = bundle ? open_parts(bundle, options) : -ENOMEM;
	if (error == 0) {
		begin_file(bundle);
		ky_out_push(&bundle->out); /* a full disk is better told now */
		error = bundle->out.error;
	}
	if (error) {
		if (bundle)
			free_bundle(bundle);
		return ky_capture_fail(message, error, "cannot write %s: %s; %s",
				       options->path ? options->path : "the output",
				       strerror(-error), remedy(error));
	}
	*out = bundle;
	return 0;
}

int ky_bundle_close(struct ky_bundle **pointer)
{
	struct ky_bundle *bundle = *pointer;
	if (!bundle)
		return 0;
	*pointer = NULL;
	end_file(bundle);
	const int error = bundle->out.error;
	free_bundle(bundle);
	return error;
}
