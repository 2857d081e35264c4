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

struct ky_input_state {
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
static int report_progress(struct ky_input_state *state)
{
	if (!state->progress || state->taken + state->handed - state->reported_at < PROGRESS_BYTES)
		return 0;
	state->reported_at = state->taken + state->handed;
	uint64_t done;
	uint64_t all;
	ky_input_progress(&state->input, &done, &all);
	return state->progress(state->context, done, all);
}

static int64_t read_top(struct ky_input_state *state, uint8_t *to, size_t room)
{
	const int64_t got = ky_feed_read(state->top, to, room);
	if (got <= 0)
		return got;
	state->handed += (uint64_t)got;
	const int error = report_progress(state);
	return error ? error : got;
}

/*
 * Keep the buffer in proportion to the bytes on disk. gzip limits the ratio itself; zstd, and packed data inside
 * packed data, may turn a few bytes into gigabytes.
 */
static size_t room_after(const struct ky_input_state *state)
{
	const uint64_t most = BUFFER_BYTES_FREE + state->taken * UNPACKED_RATIO_MAX;
	const uint64_t twice = (uint64_t)state->room * 2;
	const uint64_t room = twice < most ? twice : most;
	return room > state->room ? (size_t)room : state->room;
}

/* Move the rest to the front; make room when that does not leave half of it. */
static bool make_room(struct ky_input *input)
{
	struct ky_input_state *state = input->state;
	const size_t rest = (size_t)(input->end - input->at);
	if (input->at != state->buffer && rest)
		memmove(state->buffer, input->at, rest);
	const size_t room = room_after(state);
	if (state->room - rest < state->room / 2 + 1 && room > state->room) {
		uint8_t *larger = ky_array_resized(state->buffer, room + 1);
		if (!larger) {
			input->at = state->buffer;
			input->end = state->buffer + rest;
			state->buffer[rest] = 0;
			return false;
		}
		state->buffer = larger;
		state->room = room;
	}
	input->at = state->buffer;
	input->end = state->buffer + rest;
	state->buffer[rest] = 0;
	return true;
}

bool ky_input_more(struct ky_input *input)
{
	struct ky_input_state *state = input->state;
	if (input->ended)
		return false;
	if (!make_room(input)) {
		end_with(input, -ENOMEM);
		return false;
	}
	const size_t used = (size_t)(input->end - state->buffer);
	if (used == state->room) {
		ky_damage_note(&state->damage, false,
			       "a part of it unpacks to %zu MB, over %u times the file's size",
			       state->room >> 20, UNPACKED_RATIO_MAX);
		end_with(input, -EBADMSG);
		return false;
	}
	const int64_t got = read_top(state, state->buffer + used, state->room - used);
	if (got <= 0) {
		end_with(input, got < 0 ? (int)got : state->damage.found ? -EBADMSG : 0);
		return false;
	}
	input->end += got;
	state->buffer[used + (size_t)got] = 0;
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
	struct ky_input_state *state = input->state;
	for (;;) {
		const uint64_t rest = (uint64_t)(input->end - input->at);
		const size_t step = (size_t)(bytes < rest ? bytes : rest);
		ky_input_skip(input, step);
		bytes -= step;
		if (!bytes)
			return true;
		if (state->plain && state->store.seekable && !input->ended &&
		    bytes <= state->store.bytes && input->position <= state->store.bytes - bytes) {
			ky_feed_plain_skip(state->top, bytes);
			input->position += bytes;
			return true;
		}
		if (!ky_input_more(input))
			return false;
	}
}

/* Empty the buffer, at the first byte. */
static void reset_buffer(struct ky_input_state *state)
{
	struct ky_input *input = &state->input;
	input->at = state->buffer;
	input->end = state->buffer;
	state->buffer[0] = 0;
	input->position = 0;
	input->ended = false;
	input->error = 0;
}

/* Build the feeds from the store's first byte on. Return 0 or -errno. */
static int build(struct ky_input_state *state)
{
	bool packed = false;
	int error;
	ky_feed_close(&state->top);
	state->taken = 0;
	state->plain = false;
	if (state->archive)
		error = ky_archive_member(state->archive, state->member, &state->top,
					  &state->damage, &state->taken);
	else
		error = ky_feed_plain(&state->top, &state->store, 0, UINT64_MAX, &state->taken);
	if (!error && !state->unpacked)
		error = ky_feed_unpack_all(&state->top, &state->damage, &packed);
	if (error)
		return error;
	state->plain = !state->archive && !packed;
	return 0;
}

/* Write the buffer and everything that follows it. Return 0 and in *bytes how much, or -errno. */
static int copy_rest(struct ky_input_state *state, int fd, uint64_t *bytes)
{
	const struct ky_input *input = &state->input;
	uint8_t *buffer = malloc(BUFFER_BYTES);
	int64_t got = (int64_t)(input->end - input->at);
	int error = buffer ? ky_file_write_all(fd, input->at, (size_t)got) : -ENOMEM;
	*bytes = (uint64_t)got;
	while (!error && (got = input->ended ? 0 : read_top(state, buffer, BUFFER_BYTES)) > 0) {
		error = ky_file_write_all(fd, buffer, (size_t)got);
		*bytes += (uint64_t)got;
	}
	free(buffer);
	return error ? error : got < 0 ? (int)got : 0;
}

/* Copy everything to a temporary file, which becomes the store; at stays where it was. */
static int spool(struct ky_input_state *state)
{
	struct ky_input *input = &state->input;
	const uint64_t position = input->position;
	uint64_t bytes;
	int error = position ? ky_input_rewind(input) : 0;
	if (error)
		return error;
	const int fd = ky_store_temporary();
	if (fd < 0)
		return fd;
	error = copy_rest(state, fd, &bytes);
	if (error) {
		close(fd);
		return end_with(input, error);
	}
	ky_archive_close(&state->archive);
	ky_feed_close(&state->top);
	ky_store_close(&state->store);
	state->store = (struct ky_store){.fd = fd, .owned = true, .seekable = true, .bytes = bytes};
	state->unpacked = true;
	reset_buffer(state);
	error = build(state);
	if (error)
		return end_with(input, error);
	return ky_input_skip_far(input, position) ? 0 : input->error;
}

int ky_input_remember(struct ky_input *input)
{
	struct ky_input_state *state = input->state;
	return state->store.seekable ? 0 : spool(state);
}

int ky_input_rewind(struct ky_input *input)
{
	struct ky_input_state *state = input->state;
	if (!state->store.seekable) {
		/* Nothing was dropped from the buffer yet: it begins where the input does. */
		if (input->position > (uint64_t)(input->at - state->buffer))
			return -ESPIPE;
		input->at -= input->position;
		input->position = 0;
		return 0;
	}
	reset_buffer(state);
	const int error = build(state);
	return error ? end_with(input, error) : 0;
}

/* Copy memory to a file. Return its descriptor or -errno. */
static int memory_file(struct ky_input_state *state)
{
	if (state->file >= 0)
		return state->file;
	const int fd = memfd_create("kymo-input", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	const int error = ky_file_write_all(fd, state->store.data, (size_t)state->store.bytes);
	if (error) {
		close(fd);
		return error;
	}
	state->file = fd;
	return fd;
}

int ky_input_file(struct ky_input *input, uint64_t *bytes)
{
	struct ky_input_state *state = input->state;
	if (!state->store.seekable || !state->plain) {
		const int error = spool(state);
		if (error) {
			input->error = error;
			return -1;
		}
	}
	const int fd = state->store.fd >= 0 ? state->store.fd : memory_file(state);
	*bytes = state->store.bytes;
	if (fd < 0) {
		input->error = fd;
		return -1;
	}
	return fd;
}

ssize_t ky_input_read_at(struct ky_input *input, uint64_t at, void *to, size_t bytes)
{
	struct ky_input_state *state = input->state;
	size_t done = 0;
	if (!state->store.seekable || !state->plain) {
		const int error = spool(state);
		if (error)
			return error;
	}
	while (done < bytes) {
		const int64_t got =
			ky_store_read(&state->store, at + done, (uint8_t *)to + done, bytes - done);
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
	*done = input->state->taken;
	*all = input->state->store.seekable ? input->state->store.bytes : 0;
	if (*all && *done > *all)
		*done = *all;
}

const char *ky_input_damage(const struct ky_input *input, bool *truncated)
{
	const struct ky_damage *damage = &input->state->damage;
	*truncated = damage->truncated;
	return damage->found ? damage->text : NULL;
}

uint32_t ky_input_members(const struct ky_input *input)
{
	return input->state->archive ? ky_archive_count(input->state->archive) : 0;
}

bool ky_input_next_member(struct ky_input *input)
{
	struct ky_input_state *state = input->state;
	while (state->archive && state->member + 1 < ky_archive_count(state->archive)) {
		state->member++;
		reset_buffer(state);
		if (build(state) == 0)
			return true;
	}
	return false;
}

/* If the bytes are an archive, continue with its first member that can be unpacked. Return 0 or -errno. */
static int enter_archive(struct ky_input_state *state)
{
	const int64_t bytes = ky_feed_peek(state->top);
	if (bytes < 0)
		return (int)bytes;
	if (!ky_archive_is(state->top->head, (size_t)bytes))
		return 0;
	int error = state->plain && state->store.seekable ? 0 : spool(state);
	if (!error)
		error = ky_archive_open(&state->archive, &state->store, &state->damage);
	if (error)
		return error == -EBADMSG ? 0 : error;
	state->unpacked = false;
	error = build(state);
	if (error == -EBADMSG || error == -ENOTSUP)
		error = ky_input_next_member(&state->input) ? 0 : -ENOTSUP;
	return error;
}

static struct ky_input_state *make(const char *name, const struct ky_store *store)
{
	const size_t name_bytes = strlen(name) + 1;
	struct ky_input_state *state = calloc(1, sizeof(*state) + name_bytes);
	if (!state)
		return NULL;
	state->store = *store;
	state->file = -1;
	memcpy(state->name, name, name_bytes);
	/* No more than the file has: there may be many small inputs. */
	state->room = store->seekable && store->bytes < BUFFER_BYTES ? (size_t)store->bytes + 2
								     : BUFFER_BYTES;
	state->buffer = ky_array_resized(NULL, state->room + 1);
	if (!state->buffer) {
		free(state);
		return NULL;
	}
	state->input.name = state->name;
	state->input.state = state;
	reset_buffer(state);
	return state;
}

/* A small packed file may become a large one. */
static int widen_buffer(struct ky_input_state *state)
{
	if (state->plain || state->room >= BUFFER_BYTES)
		return 0;
	uint8_t *buffer = ky_array_resized(state->buffer, BUFFER_BYTES + 1);
	if (!buffer)
		return -ENOMEM;
	state->buffer = buffer;
	state->room = BUFFER_BYTES;
	reset_buffer(state);
	return 0;
}

/* Take over the store, also on failure. */
static int open_store(struct ky_input **input, struct ky_store *store, const char *name,
		      ky_input_progress_fn progress, void *context)
{
	struct ky_input_state *state = make(name, store);
	if (!state) {
		ky_store_close(store);
		return -ENOMEM;
	}
	state->progress = progress;
	state->context = context;
	*input = &state->input;
	int error = build(state);
	if (!error)
		error = enter_archive(state);
	if (!error)
		error = widen_buffer(state);
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
	struct ky_input_state *state = make(name, &store);
	if (!state) {
		ky_store_close(&store);
		return -ENOMEM;
	}
	state->unpacked = true;
	*input = &state->input;
	const int error = build(state);
	if (error)
		ky_input_close(input);
	return error;
}

void ky_input_close(struct ky_input **input)
{
	if (!*input)
		return;
	struct ky_input_state *state = (*input)->state;
	*input = NULL;
	ky_feed_close(&state->top);
	ky_archive_close(&state->archive);
	ky_store_close(&state->store);
	if (state->file >= 0)
		close(state->file);
	ky_array_release(state->buffer);
	free(state);
}

static void report_open_failed(const char *path, int error, char message[KY_MESSAGE_BYTES])
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
	snprintf(message, KY_MESSAGE_BYTES, "cannot read %s: %s%s", path[0] ? path : "''",
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
		  void *context, char message[KY_MESSAGE_BYTES])
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
