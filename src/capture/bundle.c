/* SPDX-License-Identifier: MIT */
/*
 * bundle.c: the file of a capture, its parts, and when one file ends and the next begins (see
 * bundle_part.h).
 *
 * A file is large enough when it could grow beyond max_bytes by what the parts hold and by what ends it, and has twice of
 * what had to be stated again at its beginning: otherwise a smaller limit would make files without end. How much the parts
 * hold is known when it is packed: near the limit that is done at once, in smaller and smaller portions.
 *
 * A file is locked and emptied when it is opened (sink/path.h). If another kymo is writing it, this
 * one gets a name with its pid. A pipe whose reader went away is an error like any other, and does
 * not end kymo.
 */
#include "capture/bundle_part.h"

#include "base/array.h"
#include "base/fail.h"
#include "formats/compress.h"
#include "sink/path.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- the file behind the buffer ---- */

static int remember_path(struct ky_bundle_file *file, uint64_t events)
{
	const struct ky_bundle_kept kept = {strdup(file->path), events};
	if (kept.path && KY_ARRAY_ADD(file->kept, file->kept_count, file->kept_room, kept))
		return 0;
	free(kept.path);
	return -ENOMEM;
}

static int file_begin(struct ky_bundle_file *file, uint64_t bytes, uint64_t events)
{
	char path[PATH_MAX];
	file->bytes_before += bytes;
	const uint32_t number = file->number++;
	if (!file->pattern)
		return 0;
	const int length =
		ky_path_expand(path, sizeof(path), file->pattern, (int32_t)getpid(), number);
	if (length < 0)
		return length;
	const int fd = ky_path_open(path, (int32_t)getpid(), file->path, sizeof(file->path));
	if (fd < 0)
		return fd;
	file->fd = fd;
	return remember_path(file, events);
}

/*
 * Remove the SIGPIPE that a write to a pipe without a reader raised, unless one was pending before.
 */
static void drop_sigpipe(const sigset_t *pipe_only)
{
	const struct timespec at_once = {0};
	while (sigtimedwait(pipe_only, NULL, &at_once) < 0 && errno == EINTR)
		;
}

static int file_push(struct ky_out *out, const void *data, size_t bytes)
{
	const struct ky_bundle_file *file = out->context;
	sigset_t pipe_only, before, waiting;
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigemptyset(&waiting);
	sigpending(&waiting);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	const int error = ky_path_write(file->fd, data, bytes);
	if (error == -EPIPE && !sigismember(&waiting, SIGPIPE))
		drop_sigpipe(&pipe_only);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static int file_end(struct ky_bundle_file *file)
{
	const int fd = file->fd;
	if (!file->pattern || fd < 0)
		return 0;
	file->fd = -1;
	return close(fd) != 0 && errno != EINTR ? -errno : 0;
}

static void file_keep(struct ky_bundle_file *file, uint32_t files_max)
{
	uint32_t gone = 0;
	while (files_max && file->kept_count - gone > files_max) {
		(void)unlink(file->kept[gone].path);
		free(file->kept[gone++].path);
	}
	file->kept_count -= gone;
	if (gone)
		memmove(file->kept, file->kept + gone, file->kept_count * sizeof(*file->kept));
}

static void file_close(struct ky_bundle_file *file)
{
	(void)file_end(file);
	for (uint32_t i = 0; i < file->kept_count; i++)
		free(file->kept[i].path);
	KY_ARRAY_FREE(file->kept, file->kept_room);
	free(file->pattern);
	*file = (struct ky_bundle_file){.fd = -1};
}

#define BUFFER_BYTES (512u << 10)
#define PUSH_BYTES (256u << 10) /* worth a system call */
#define PIECE_BYTES 16384u      /* more than one piece of a ring takes */
#define END_BYTES 1024u
#define PART_END_BYTES 512u

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
		.events_removed = bundle->file.kept_count ? bundle->file.kept[0].events_before : 0,
		.bytes = bundle->file.bytes_before + bundle->out.pushed_bytes,
		.files = bundle->file.number,
		.path = bundle->file.path,
	};
}

/*
 * ---- parts in other formats ----
 *
 * Records are gathered and written as STREAM chunks, so that a chunk ends at the end of a record. Only a record larger than a
 * reader takes at once is cut. When the bundle is full, records are left out, except symbols: without them the samples in the
 * file could not be read.
 */

#define GATHER_BYTES (256u << 10)

static void flush_stream(struct ky_bundle_part *part)
{
	struct ky_bundle_stream *stream = &part->stream;
	if (stream->records.error && !stream->chunks.out->error)
		stream->chunks.out->error = stream->records.error;
	for (size_t at = 0; at < stream->records.used && !stream->chunks.out->error;) {
		const size_t left = stream->records.used - at;
		const size_t bytes = left < KY_KYMO_RAW_MAX ? left : KY_KYMO_RAW_MAX;
		ky_kymo_chunks_stream(&stream->chunks, stream->kind, stream->records.data + at,
				      (uint32_t)bytes);
		at += bytes;
	}
	stream->records.used = 0;
}

static void begin_stream(struct ky_bundle_part *part)
{
	part->stream.chunks.count = 0;
	if (!part->stream.restate)
		return;
	part->stream.restate(part->stream.context, part->number);
	flush_stream(part);
}

/* ---- parts ---- */

struct ky_bundle_part *ky_bundle_add(struct ky_bundle *bundle, enum ky_bundle_part_kind kind)
{
	if (bundle->out.error)
		return NULL;
	struct ky_bundle_part *part = calloc(1, sizeof(*part));
	if (!part || !KY_ARRAY_ADD(bundle->parts, bundle->parts_count, bundle->parts_room, part)) {
		ky_bundle_fail(bundle, -ENOMEM);
		free(part);
		return NULL;
	}
	part->kind = kind;
	part->number = bundle->parts_count - 1;
	return part;
}

struct ky_bundle_part *ky_bundle_find(const struct ky_bundle *bundle, uint32_t number,
				      enum ky_bundle_part_kind kind)
{
	if (bundle->out.error || number == 0 || number >= bundle->parts_count)
		return NULL;
	struct ky_bundle_part *part = bundle->parts[number];
	return part && part->kind == kind ? part : NULL;
}

void ky_bundle_drop(struct ky_bundle *bundle, struct ky_bundle_part *part)
{
	bundle->parts[part->number] = NULL;
	if (part->kind == KY_BUNDLE_PART_DRUM) {
		ky_bundle_drum_close(part);
	} else {
		ky_kymo_chunks_close(&part->stream.chunks);
		ky_out_free(&part->stream.records);
	}
	free(part);
}

static void flush_parts(struct ky_bundle *bundle)
{
	for (uint32_t i = 1; i < bundle->parts_count; i++) {
		struct ky_bundle_part *part = bundle->parts[i];
		if (part && part->kind == KY_BUNDLE_PART_DRUM)
			ky_bundle_drum_flush(part);
		else if (part)
			flush_stream(part);
	}
}

static void begin_parts(struct ky_bundle *bundle)
{
	for (uint32_t i = 1; i < bundle->parts_count && !bundle->out.error; i++) {
		struct ky_bundle_part *part = bundle->parts[i];
		if (part && part->kind == KY_BUNDLE_PART_DRUM)
			ky_bundle_drum_begin(bundle, part);
		else if (part)
			begin_stream(part);
	}
}

static void finish_parts(struct ky_bundle *bundle)
{
	flush_parts(bundle);
	for (uint32_t i = 1; i < bundle->parts_count; i++)
		if (bundle->parts[i] && bundle->parts[i]->kind == KY_BUNDLE_PART_DRUM)
			ky_bundle_drum_finish(bundle->parts[i]);
}

/* ---- files ---- */

uint64_t ky_bundle_file_bytes(const struct ky_bundle *bundle)
{
	return bundle->out.pushed_bytes + bundle->out.used;
}

static void begin_file(struct ky_bundle *bundle)
{
	const int error = file_begin(&bundle->file, bundle->out.pushed_bytes, bundle->events);
	bundle->out.pushed_bytes = 0;
	if (error) {
		ky_bundle_fail(bundle, error);
		return;
	}
	ky_bundle_about_begin(bundle);
	begin_parts(bundle);
	bundle->begun_bytes = ky_bundle_file_bytes(bundle);
	bundle->held_bytes = 0;
	file_keep(&bundle->file, bundle->files_max);
}

static void end_file(struct ky_bundle *bundle)
{
	finish_parts(bundle);
	ky_bundle_about_finish(bundle);
	ky_out_push(&bundle->out);
	const int error = file_end(&bundle->file);
	if (error)
		ky_bundle_fail(bundle, error);
}

/* Return what ends the file, about: definitions once more, and an index with an entry for each chunk. */
static uint64_t end_bytes(const struct ky_bundle *bundle)
{
	return bundle->about.all.used + bundle->about.fresh.used + END_BYTES +
	       PART_END_BYTES * bundle->parts_count + ky_bundle_file_bytes(bundle) / 64;
}

/* Report whether so much more, and the end, would make the file too large. */
static bool has_no_room(const struct ky_bundle *bundle, uint64_t more)
{
	return ky_bundle_file_bytes(bundle) + end_bytes(bundle) + more >= bundle->max_bytes;
}

static bool is_large_enough(struct ky_bundle *bundle)
{
	const uint64_t least =
		bundle->max_bytes / 16 < PIECE_BYTES ? bundle->max_bytes / 16 : PIECE_BYTES;
	const uint64_t bytes = ky_bundle_file_bytes(bundle);
	if (!bundle->max_bytes || !has_no_room(bundle, bundle->held_bytes + least))
		return false;
	/* A limit that nothing fits into cannot be kept. */
	if (bundle->max_bytes < 2 * (bundle->begun_bytes + end_bytes(bundle)))
		return bytes >= bundle->max_bytes && bytes / 2 >= bundle->begun_bytes;
	flush_parts(bundle);
	bundle->held_bytes = 0;
	return has_no_room(bundle, 2 * least) &&
	       ky_bundle_file_bytes(bundle) / 2 >= bundle->begun_bytes;
}

void ky_bundle_before_data(struct ky_bundle *bundle)
{
	if (!bundle->due || bundle->rotating || bundle->out.error)
		return;
	bundle->due = false;
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
	/* restate() writes too, while the file begins. */
	if (bundle->rotating || bundle->full || bundle->out.error || !is_large_enough(bundle))
		return;
	if (bundle->file.pattern && ky_path_rotates(bundle->file.pattern))
		bundle->due = true;
	else
		bundle->full = true;
}

void ky_bundle_flush(struct ky_bundle *bundle)
{
	if (bundle->out.error)
		return;
	ky_bundle_about_flush(bundle);
	flush_parts(bundle);
	ky_out_push(&bundle->out);
	ky_bundle_appended(bundle);
}

/* ---- the bundle ---- */

static void free_bundle(struct ky_bundle *bundle)
{
	for (uint32_t i = 1; i < bundle->parts_count; i++)
		if (bundle->parts[i])
			ky_bundle_drop(bundle, bundle->parts[i]);
	KY_ARRAY_FREE(bundle->parts, bundle->parts_room);
	ky_kymo_pack_close(&bundle->pack);
	ky_bundle_about_close(bundle);
	file_close(&bundle->file);
	ky_out_free(&bundle->out);
	free(bundle);
}

static int open_parts(struct ky_bundle *bundle, const struct ky_bundle_options *options)
{
	(void)ky_zstd_load(); /* without it nothing is compressed */
	const int error = ky_out_init(&bundle->out, BUFFER_BYTES);
	bundle->out.push = file_push;
	bundle->out.context = &bundle->file;
	bundle->max_bytes = options->max_bytes;
	bundle->files_max = options->files_max;
	bundle->file.fd = options->path ? -1 : options->fd;
	if (options->path)
		bundle->file.pattern = strdup(options->path);
	/* Part 0 is not in the list: numbers begin at 1. */
	if (error || (options->path && !bundle->file.pattern) ||
	    !KY_ARRAY_NEW(bundle->parts, bundle->parts_count, bundle->parts_room) ||
	    ky_kymo_pack_open(&bundle->pack) != 0)
		return -ENOMEM;
	return ky_bundle_about_open(bundle);
}

static const char *remedy(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		return "create the folder first, or choose another with -o";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "choose a writable place with -o";
	case -ENOSPC:
	case -EDQUOT:
		return "free space on the disk, or choose another with -o";
	case -ENXIO:
		return "no process reads from it: start the reader first";
	default:
		return "choose another file with -o";
	}
}

int ky_bundle_open(struct ky_bundle **out, const struct ky_bundle_options *options,
		   char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	struct ky_bundle *bundle = calloc(1, sizeof(*bundle));
	int error = bundle ? open_parts(bundle, options) : -ENOMEM;
	if (error == 0) {
		begin_file(bundle);
		ky_out_push(&bundle->out); /* report a full disk early */
		error = bundle->out.error;
	}
	if (error) {
		if (bundle)
			free_bundle(bundle);
		return ky_fail(message, error, "cannot write %s: %s; %s",
			       options->path ? options->path : "the output", strerror(-error),
			       remedy(error));
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

uint32_t ky_bundle_stream(struct ky_bundle *bundle, enum ky_kymo_stream_kind kind,
			  void (*restate)(void *context, uint32_t part), void *context)
{
	struct ky_bundle_part *part = ky_bundle_add(bundle, KY_BUNDLE_PART_STREAM);
	if (!part)
		return 0;
	struct ky_bundle_stream *stream = &part->stream;
	stream->kind = kind;
	stream->restate = restate;
	stream->context = context;
	int error = ky_kymo_chunks_open(&stream->chunks, &bundle->out, part->number);
	if (error == 0)
		error = ky_out_init(&stream->records, 2 * GATHER_BYTES);
	if (error) {
		ky_bundle_fail(bundle, error);
		ky_bundle_drop(bundle, part);
		return 0;
	}
	return part->number;
}

void ky_bundle_stream_write(struct ky_bundle *bundle, uint32_t number, const void *data,
			    size_t bytes)
{
	struct ky_bundle_part *part = ky_bundle_find(bundle, number, KY_BUNDLE_PART_STREAM);
	if (!part || (bundle->full && part->stream.kind != KY_KYMO_STREAM_SYMBOLS))
		return;
	if (part->stream.kind != KY_KYMO_STREAM_SYMBOLS)
		ky_bundle_before_data(bundle);
	ky_out_append(&part->stream.records, data, bytes);
	bundle->held_bytes += bytes;
	if (part->stream.records.used < GATHER_BYTES && !part->stream.records.error)
		return;
	flush_stream(part);
	ky_bundle_appended(bundle);
}
