/* SPDX-License-Identifier: MIT */
/*
 * input.c: the buffer of an input, and the feeds that fill it.
 *
 *   buffer: ┌ used ┐┌ at ─── rest ─── end ┐0┌ free ┐
 *            more(): the rest moves to the front, the free part is filled, and 0 is put behind it
 *
 * The buffer grows only when the rest fills half of it, to twice its size: so it is at most about four times as large
 * as the data that arrived, whatever length a format claims, and moving the rest costs no more than reading it did.
 *
 * No thread reads ahead: unpacking was measured to be a fifth of a load at most.
 *
 * A store without random access (a pipe, packed data) is copied into a temporary file (spool) when a reader needs
 * that, and read from there.
 */
#include "formats/input.h"

#include "base/array.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1u << 20)
/* The buffer may grow to this size, and by the ratio for each byte of the file. */
#define BUFFER_BYTES_FREE (16u << 20)
#define UNPACKED_RATIO_MAX 1100u /* deflate's is 1032 */
/* Progress is reported every so many bytes, read or unpacked. */
#define PROGRESS_BYTES (2u << 20)

struct ky_input_source {
	struct ky_input input;
	struct ky_store store;
	struct ky_feed *top;
	struct ky_archive *archive; /* or NULL */
	uint32_t member;
	bool plain;              /* top passes on the store's bytes unchanged */
	bool unpacked;           /* the store is a temporary file of unpacked bytes */
	int file;                /* of memory, once asked for; -1 */
	struct ky_damage damage; /* for good, also after rewinding or copying */
	uint8_t *buffer;
	size_t room; /* and one byte more for the 0 */
	uint64_t taken;
	uint64_t reported_at; /* taken + handed when progress was last reported */
	uint64_t handed;
	ky_input_progress_fn progress;
	void *context;
	char name[];
};

static int end_with(struct ky_input *input, int error)
{
	input->ended = true;
	if (error && !input->error)
		input->error = error;
	return error;
}

/* Bytes that came out count as well as those that went in, so that a bomb can be interrupted. */
static int report_progress(struct ky_input_source *source)
{
	if (!source->progress ||
	    source->taken + source->handed - source->reported_at < PROGRESS_BYTES)
		return 0;
	source->reported_at = source->taken + source->handed;
	uint64_t done;
	uint64_t all;
	ky_input_progress(&source->input, &done, &all);
	return source->progress(source->context, done, all);
}

static int64_t read_top(struct ky_input_source *source, uint8_t *to, size_t room)
{
	const int64_t got = ky_feed_read(source->top, to, room);
	if (got <= 0)
		return got;
	source->handed += (uint64_t)got;
	const int error = report_progress(source);
	return error ? error : got;
}

/*
 * Keep the buffer in proportion to the bytes on disk. gzip limits the ratio itself; zstd, and packed data inside
 * packed data, may turn a few bytes into gigabytes.
 */
static size_t room_after(const struct ky_input_source *source)
{
	const uint64_t most = BUFFER_BYTES_FREE + source->taken * UNPACKED_RATIO_MAX;
	const uint64_t twice = (uint64_t)source->room * 2;
	const uint64_t room = twice < most ? twice : most;
	return room > source->room ? (size_t)room : source->room;
}

/* Move the rest to the front; make room when that does not leave half of it. */
static bool make_room(struct ky_input *input)
{
	struct ky_input_source *source = input->source;
	const size_t rest = (size_t)(input->end - input->at);
	if (input->at != source->buffer && rest)
		memmove(source->buffer, input->at, rest);
	const size_t room = room_after(source);
	if (source->room - rest < source->room / 2 + 1 && room > source->room) {
		uint8_t *larger = ky_array_resized(source->buffer, room + 1);
		if (!larger) {
			input->at = source->buffer;
			input->end = source->buffer + rest;
			source->buffer[rest] = 0;
			return false;
		}
		source->buffer = larger;
		source->room = room;
	}
	input->at = source->buffer;
	input->end = source->buffer + rest;
	source->buffer[rest] = 0;
	return true;
}

bool ky_input_more(struct ky_input *input)
{
	struct ky_input_source *source = input->source;
	if (input->ended)
		return false;
	if (!make_room(input)) {
		end_with(input, -ENOMEM);
		return false;
	}
	const size_t used = (size_t)(input->end - source->buffer);
	if (used == source->room) {
		ky_damage_note(&source->damage, false,
			       "a part of it unpacks to %zu MB, over %u times the file's size",
			       source->room >> 20, UNPACKED_RATIO_MAX);
		end_with(input, -EBADMSG);
		return false;
	}
	const int64_t got = read_top(source, source->buffer + used, source->room - used);
	if (got <= 0) {
		end_with(input, got < 0 ? (int)got : source->damage.found ? -EBADMSG : 0);
		return false;
	}
	input->end += got;
	source->buffer[used + (size_t)got] = 0;
	return true;
}

bool ky_input_fill(struct ky_input *input, size_t bytes)
{
	while ((size_t)(input->end - input->at) < bytes)
		if (!ky_input_more(input))
			return false;
	return true;
}

bool ky_input_skip_far(struct ky_input *input, uint64_t bytes)
{
	struct ky_input_source *source = input->source;
	for (;;) {
		const uint64_t rest = (uint64_t)(input->end - input->at);
		const size_t step = (size_t)(bytes < rest ? bytes : rest);
		ky_input_skip(input, step);
		bytes -= step;
		if (!bytes)
			return true;
		if (source->plain && source->store.seekable && !input->ended &&
		    bytes <= source->store.bytes &&
		    input->position <= source->store.bytes - bytes) {
			ky_feed_plain_skip(source->top, bytes);
			input->position += bytes;
			return true;
		}
		if (!ky_input_more(input))
			return false;
	}
}

/* Empty the buffer, at the first byte. */
static void reset_buffer(struct ky_input_source *source)
{
	struct ky_input *input = &source->input;
	input->at = source->buffer;
	input->end = source->buffer;
	source->buffer[0] = 0;
	input->position = 0;
	input->ended = false;
	input->error = 0;
}

/* Build the feeds from the store's first byte on. Return 0 or -errno. */
static int build(struct ky_input_source *source)
{
	bool packed = false;
	int error;
	ky_feed_close(&source->top);
	source->taken = 0;
	source->plain = false;
	if (source->archive)
		error = ky_archive_member(source->archive, source->member, &source->top,
					  &source->damage, &source->taken);
	else
		error = ky_feed_plain(&source->top, &source->store, 0, UINT64_MAX, &source->taken);
	if (!error && !source->unpacked)
		error = ky_feed_unpack_all(&source->top, &source->damage, &packed);
	if (error)
		return error;
	source->plain = !source->archive && !packed;
	return 0;
}

/* Write the buffer and everything that follows it. Return 0 and in *bytes how much, or -errno. */
static int copy_rest(struct ky_input_source *source, int fd, uint64_t *bytes)
{
	const struct ky_input *input = &source->input;
	uint8_t *buffer = malloc(BUFFER_BYTES);
	int64_t got = (int64_t)(input->end - input->at);
	int error = buffer ? ky_file_write_all(fd, input->at, (size_t)got) : -ENOMEM;
	*bytes = (uint64_t)got;
	while (!error && (got = input->ended ? 0 : read_top(source, buffer, BUFFER_BYTES)) > 0) {
		error = ky_file_write_all(fd, buffer, (size_t)got);
		*bytes += (uint64_t)got;
	}
	free(buffer);
	return error ? error : got < 0 ? (int)got : 0;
}

/* Copy everything to a temporary file, which becomes the store; at stays where it was. */
static int spool(struct ky_input_source *source)
{
	struct ky_input *input = &source->input;
	const uint64_t position = input->position;
	uint64_t bytes;
	int error = position ? ky_input_rewind(input) : 0;
	if (error)
		return error;
	const int fd = ky_store_temporary();
	if (fd < 0)
		return fd;
	error = copy_rest(source, fd, &bytes);
	if (error) {
		close(fd);
		return end_with(input, error);
	}
	ky_archive_close(&source->archive);
	ky_feed_close(&source->top);
	ky_store_close(&source->store);
	source->store =
		(struct ky_store){.fd = fd, .owned = true, .seekable = true, .bytes = bytes};
	source->unpacked = true;
	reset_buffer(source);
	error = build(source);
	if (error)
		return end_with(input, error);
	return ky_input_skip_far(input, position) ? 0 : input->error;
}

int ky_input_remember(struct ky_input *input)
{
	struct ky_input_source *source = input->source;
	return source->store.seekable ? 0 : spool(source);
}

int ky_input_rewind(struct ky_input *input)
{
	struct ky_input_source *source = input->source;
	if (!source->store.seekable) {
		/* Nothing was dropped from the buffer yet: it begins where the input does. */
		if (input->position > (uint64_t)(input->at - source->buffer))
			return -ESPIPE;
		input->at -= input->position;
		input->position = 0;
		return 0;
	}
	reset_buffer(source);
	const int error = build(source);
	return error ? end_with(input, error) : 0;
}

/* Copy memory to a file. Return its descriptor or -errno. */
static int memory_file(struct ky_input_source *source)
{
	if (source->file >= 0)
		return source->file;
	const int fd = memfd_create("kymo-input", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	const int error = ky_file_write_all(fd, source->store.data, (size_t)source->store.bytes);
	if (error) {
		close(fd);
		return error;
	}
	source->file = fd;
	return fd;
}

int ky_input_file(struct ky_input *input, uint64_t *bytes)
{
	struct ky_input_source *source = input->source;
	if (!source->store.seekable || !source->plain) {
		const int error = spool(source);
		if (error) {
			input->error = error;
			return -1;
		}
	}
	const int fd = source->store.fd >= 0 ? source->store.fd : memory_file(source);
	*bytes = source->store.bytes;
	if (fd < 0) {
		input->error = fd;
		return -1;
	}
	return fd;
}

ssize_t ky_input_read_at(struct ky_input *input, uint64_t at, void *to, size_t bytes)
{
	struct ky_input_source *source = input->source;
	size_t done = 0;
	if (!source->store.seekable || !source->plain) {
		const int error = spool(source);
		if (error)
			return error;
	}
	while (done < bytes) {
		const int64_t got = ky_store_read(&source->store, at + done, (uint8_t *)to + done,
						  bytes - done);
		if (got < 0)
			return (ssize_t)got;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

void ky_input_progress(const struct ky_input *input, uint64_t *done, uint64_t *all)
{
	*done = input->source->taken;
	*all = input->source->store.seekable ? input->source->store.bytes : 0;
	if (*all && *done > *all)
		*done = *all;
}

const char *ky_input_damage(const struct ky_input *input, bool *truncated)
{
	const struct ky_damage *damage = &input->source->damage;
	*truncated = damage->truncated;
	return damage->found ? damage->text : NULL;
}

uint32_t ky_input_members(const struct ky_input *input)
{
	return input->source->archive ? ky_archive_count(input->source->archive) : 0;
}

bool ky_input_next_member(struct ky_input *input)
{
	struct ky_input_source *source = input->source;
	while (source->archive && source->member + 1 < ky_archive_count(source->archive)) {
		source->member++;
		reset_buffer(source);
		if (build(source) == 0)
			return true;
	}
	return false;
}

/* If the bytes are an archive, continue with its first member that can be unpacked. Return 0 or -errno. */
static int enter_archive(struct ky_input_source *source)
{
	const int64_t bytes = ky_feed_peek(source->top);
	if (bytes < 0)
		return (int)bytes;
	if (!ky_archive_is(source->top->head, (size_t)bytes))
		return 0;
	int error = source->plain && source->store.seekable ? 0 : spool(source);
	if (!error)
		error = ky_archive_open(&source->archive, &source->store, &source->damage);
	if (error)
		return error == -EBADMSG ? 0 : error;
	source->unpacked = false;
	error = build(source);
	if (error == -EBADMSG || error == -ENOTSUP)
		error = ky_input_next_member(&source->input) ? 0 : -ENOTSUP;
	return error;
}

static struct ky_input_source *make(const char *name, const struct ky_store *store)
{
	const size_t name_bytes = strlen(name) + 1;
	struct ky_input_source *source = calloc(1, sizeof(*source) + name_bytes);
	if (!source)
		return NULL;
	source->store = *store;
	source->file = -1;
	memcpy(source->name, name, name_bytes);
	/* No more than the file has: there may be many small inputs. */
	source->room = store->seekable && store->bytes < BUFFER_BYTES ? (size_t)store->bytes + 2
								      : BUFFER_BYTES;
	source->buffer = ky_array_resized(NULL, source->room + 1);
	if (!source->buffer) {
		free(source);
		return NULL;
	}
	source->input.name = source->name;
	source->input.source = source;
	reset_buffer(source);
	return source;
}

/* A small packed file may become a large one. */
static int widen_buffer(struct ky_input_source *source)
{
	if (source->plain || source->room >= BUFFER_BYTES)
		return 0;
	uint8_t *buffer = ky_array_resized(source->buffer, BUFFER_BYTES + 1);
	if (!buffer)
		return -ENOMEM;
	source->buffer = buffer;
	source->room = BUFFER_BYTES;
	reset_buffer(source);
	return 0;
}

/* Take over the store, also on failure. */
static int open_store(struct ky_input **input, struct ky_store *store, const char *name,
		      ky_input_progress_fn progress, void *context)
{
	struct ky_input_source *source = make(name, store);
	if (!source) {
		ky_store_close(store);
		return -ENOMEM;
	}
	source->progress = progress;
	source->context = context;
	*input = &source->input;
	int error = build(source);
	if (!error)
		error = enter_archive(source);
	if (!error)
		error = widen_buffer(source);
	if (error)
		ky_input_close(input);
	return error;
}

int ky_input_open_memory(struct ky_input **input, const void *data, uint64_t bytes,
			 const char *name)
{
	struct ky_store store = {.fd = -1, .seekable = true, .data = data, .bytes = bytes};
	*input = NULL;
	return open_store(input, &store, name, NULL, NULL);
}

int ky_input_open_fd(struct ky_input **input, int fd, const char *name)
{
	struct stat file;
	struct ky_store store = {.fd = fd, .owned = true, .seekable = true};
	*input = NULL;
	if (fstat(fd, &file) != 0) {
		const int error = -errno;
		ky_store_close(&store);
		return error;
	}
	store.bytes = (uint64_t)file.st_size;
	struct ky_input_source *source = make(name, &store);
	if (!source) {
		ky_store_close(&store);
		return -ENOMEM;
	}
	source->unpacked = true;
	*input = &source->input;
	const int error = build(source);
	if (error)
		ky_input_close(input);
	return error;
}

void ky_input_close(struct ky_input **input)
{
	if (!*input)
		return;
	struct ky_input_source *source = (*input)->source;
	*input = NULL;
	ky_feed_close(&source->top);
	ky_archive_close(&source->archive);
	ky_store_close(&source->store);
	if (source->file >= 0)
		close(source->file);
	ky_array_release(source->buffer);
	free(source);
}

static void report_open_failed(const char *path, int error, char message[KY_INPUT_MESSAGE_BYTES])
{
	const char *remedy = "";
	if (error == -ENOENT && strncmp(path, "pid:", 4) == 0)
		remedy = ": a process is named by its number, as in pid:1234";
	else if (error == -ENXIO)
		remedy = ": it is a socket or a device that is not there; name a file, or pipe it "
			 "to -";
	else if (error == -ENOENT)
		remedy = ": check the path";
	else if (error == -EACCES || error == -EPERM)
		remedy = ": make it readable or run as its owner";
	else if (error == -EISDIR)
		remedy = ": name a file in it";
	else if (error == -ENOTSUP)
		remedy = ": no member of the archive can be unpacked (encrypted, or neither "
			 "stored nor deflated); unpack it first";
	else if (error == -ENOSPC)
		remedy = ": unpacking needs room; set TMPDIR to a folder with more";
	snprintf(message, KY_INPUT_MESSAGE_BYTES, "cannot read %s: %s%s", path[0] ? path : "''",
		 strerror(-error), remedy);
}

/* Files of /proc and tracefs have no size: treat them as pipes, as standard input that was read before. */
static int open_path(const char *path, struct ky_store *store)
{
	struct stat file;
	const bool standard = strcmp(path, "-") == 0;
	*store = (struct ky_store){.fd = STDIN_FILENO, .owned = !standard};
	if (!standard)
		store->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (store->fd < 0 || fstat(store->fd, &file) != 0) {
		const int error = -errno;
		ky_store_close(store);
		return error;
	}
	if (S_ISDIR(file.st_mode)) {
		ky_store_close(store);
		return -EISDIR;
	}
	store->seekable =
		S_ISREG(file.st_mode) && file.st_size > 0 && lseek(store->fd, 0, SEEK_CUR) == 0;
	store->bytes = store->seekable ? (uint64_t)file.st_size : 0;
	return 0;
}

int ky_input_open(struct ky_input **input, const char *path, ky_input_progress_fn progress,
		  void *context, char message[KY_INPUT_MESSAGE_BYTES])
{
	struct ky_store store;
	*input = NULL;
	int error = open_path(path, &store);
	if (!error)
		error = open_store(input, &store, path, progress, context);
	if (error)
		report_open_failed(strcmp(path, "-") == 0 ? "standard input" : path, error,
				   message);
	return error;
}
