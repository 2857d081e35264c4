/* SPDX-License-Identifier: MIT */
/*
 * kymo_stream.c: the STREAM chunks of a source as one file, which the reader of its format reads into the same trace.
 *
 *   STREAM ─ zstd ─▶ part ─┐
 *   STREAM ─ zstd ─▶ part ─┼─▶ memory, or an unlinked file when it is large ─▶ input ─▶ reader
 *   STREAM: damaged, noted ┘
 *
 * A writer cuts streams between records, so that the parts after a missing one can still be read. Names of addresses
 * come before the records that have them. A stream that cannot be read is a problem of the trace; the rest of the file
 * is there all the same.
 */
#include "base/file.h"
#include "formats/ftrace/ftrace_format.h"
#include "formats/input.h"
#include "formats/kymo/kymo_file.h"
#include "formats/kymo/kymo_reader.h"
#include "formats/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- one stream as a file ---- */

/* A larger stream goes to a file. */
#define MEMORY_BYTES_MAX (64u << 20)

struct stream_part {
	const uint8_t *data;
	size_t bytes;
	uint8_t *unpacked; /* to be freed */
};

uint32_t ky_kymo_stream_kind(const struct ky_kymo *source, uint64_t *bytes)
{
	*bytes = source->stream_bytes;
	return source->streams_count ? source->stream_kind : 0;
}

static int decompress(struct ky_kymo_medium *medium, const struct ky_kymo_stream *head,
		      struct stream_part *part, const char **what)
{
	*what = "it is compressed with zstd, and libzstd.so.1 was not found";
	if (!medium->zstd)
		return -ENOENT;
	part->unpacked = malloc((size_t)head->bytes + 1);
	if (!part->unpacked)
		return -ENOMEM;
	*what = "a part of a stream is no zstd frame of the size that its chunk says";
	const int64_t got = ky_zstd_decompress(medium->zstd, part->unpacked, head->bytes,
					       part->data, head->stored_bytes);
	part->data = part->unpacked;
	part->bytes = head->bytes;
	return got == head->bytes ? 0 : got == -ENOMEM ? -ENOMEM : -EBADMSG;
}

/* Find the part in the body read last. */
static int open_part(struct ky_kymo *source, struct stream_part *part, const char **what)
{
	const struct ky_kymo_body *body = &source->medium->body;
	struct ky_kymo_stream head;
	*what = "a STREAM chunk's head does not fit its body";
	if (body->bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, body->data, sizeof(head));
	if (head.size < sizeof(head) || head.size > body->bytes ||
	    head.stored_bytes > body->bytes - head.size || head.stored_bytes > head.bytes)
		return -EBADMSG;
	*what = "a STREAM chunk claims more than its size allows";
	if (head.bytes > KY_KYMO_RAW_MAX || head.bytes / KY_KYMO_RATIO_MAX > head.stored_bytes)
		return -EBADMSG;
	*what = "a STREAM chunk is of another kind than those before it";
	if (head.kind != source->stream_kind)
		return -EBADMSG;
	part->data = body->data + head.size;
	part->bytes = head.stored_bytes;
	return head.stored_bytes == head.bytes ? 0 : decompress(source->medium, &head, part, what);
}

static int report_progress(const struct ky_kymo *source, uint32_t done)
{
	return source->progress
		       ? source->progress(source->progress_context, done, source->streams_count)
		       : 0;
}

static int write_part(struct ky_kymo *source, uint64_t at, int fd)
{
	struct ky_kymo_medium *medium = source->medium;
	struct ky_kymo_chunk chunk;
	struct stream_part part = {0};
	const char *what = "a STREAM chunk should begin here, and does not";
	int error = -EBADMSG;
	if (ky_kymo_chunk_at(&medium->bytes, at, &chunk) == 0 && chunk.type == KY_KYMO_STREAM) {
		error = ky_kymo_read_body(medium, at, &chunk);
		if (error)
			return error == -EBADMSG ? 0 : error;
		error = open_part(source, &part, &what);
	}
	if (error == -EBADMSG || error == -ENOENT)
		ky_kymo_note(medium, at, what);
	else if (error == 0)
		error = ky_file_write_all(fd, part.data, part.bytes);
	free(part.unpacked);
	return error == -EBADMSG ? 0 : error;
}

static int make_file(uint64_t bytes)
{
	if (bytes > MEMORY_BYTES_MAX)
		return ky_store_temporary();
	const int fd = memfd_create("kymo-stream", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Open all parts of a stream, unpacked, one behind the other. Damaged parts are left out and noted. Report progress as
 * the source's. 0 or -errno; -ENOENT without libzstd.
 */
static int open_stream(struct ky_kymo *source, const char *name, struct ky_input **input)
{
	const int fd = make_file(source->stream_bytes);
	int error = fd < 0 ? fd : 0;
	*input = NULL;
	for (uint32_t i = 0; !error && i < source->streams_count; i++) {
		error = report_progress(source, i);
		if (!error)
			error = write_part(source, source->streams[i], fd);
	}
	if (!error)
		return ky_input_open_fd(input, fd, name);
	if (fd >= 0)
		close(fd);
	return error;
}

/* ---- all streams into the trace ---- */

struct stream_format {
	uint32_t kind;    /* enum ky_kymo_stream_kind */
	const char *name; /* for people */
	int (*read)(struct ky_load *load);
};

static int read_perf(struct ky_load *load)
{
	return ky_reader_perf_data.read(load);
}

/* In the order in which they are read. */
static const struct stream_format formats[] = {
	{KY_KYMO_STREAM_FTRACE, "kernel events", ky_ftrace_stream_read},
	{KY_KYMO_STREAM_PERF, "call-stack samples", read_perf},
};

static void put_facts(struct ky_trace *trace, const struct ky_kymo *source, const char *name,
		      uint64_t bytes)
{
	ky_put_metadata(trace, "capture_source",
			ky_string_format(trace, "%u: %s: %llu bytes", ky_kymo_source_number(source),
					 name, (unsigned long long)bytes));
}

/* An error that the rest of the file does not suffer from. */
static bool is_of_stream(int error)
{
	return error == -EBADMSG || error == -ENOENT || error == -ENOSPC || error == -EFBIG;
}

static int note_failed(struct ky_load *load, const char *name, const char *message, int error)
{
	if (!is_of_stream(error))
		return error;
	ky_problem(load->trace, "kymo_stream_damaged", KY_ERROR, KY_NO_PLACE, "%s: %.200s", name,
		   message[0] ? message : strerror(-error));
	return 0;
}

static int on_part(void *context, uint64_t done, uint64_t all)
{
	struct ky_load *load = context;
	return load->progress ? load->progress(load, done, all) : 0;
}

static int read_stream(struct ky_load *load, struct ky_kymo *source,
		       const struct stream_format *format, struct ky_input *symbols)
{
	struct ky_load part = {.trace = load->trace,
			       .path = load->path,
			       .repair = load->repair,
			       .progress = load->progress,
			       .context = load->context,
			       .symbols = symbols,
			       .part = true};
	ky_kymo_on_progress(source, on_part, load);
	int error = open_stream(source, format->name, &part.input);
	if (!error)
		error = format->read(&part);
	if (!error && part.input->error)
		error = part.input->error;
	ky_input_close(&part.input);
	return error ? note_failed(load, format->name, part.message, error) : 0;
}

static int read_all(struct ky_load *load, const struct ky_kymo_bundle *bundle,
		    const struct stream_format *format, struct ky_input *symbols)
{
	int error = 0;
	for (uint32_t i = 0; !error && i < ky_kymo_bundle_count(bundle); i++) {
		struct ky_kymo *source = ky_kymo_bundle_source(bundle, i);
		uint64_t bytes;
		if (ky_kymo_stream_kind(source, &bytes) != format->kind)
			continue;
		put_facts(load->trace, source, format->name, bytes);
		error = read_stream(load, source, format, symbols);
		if (!error && symbols)
			error = ky_input_rewind(symbols);
	}
	return error;
}

/* The first stream of names; *symbols stays NULL without one. */
static int open_symbols(struct ky_load *load, const struct ky_kymo_bundle *bundle,
			struct ky_input **symbols)
{
	*symbols = NULL;
	for (uint32_t i = 0; i < ky_kymo_bundle_count(bundle); i++) {
		struct ky_kymo *source = ky_kymo_bundle_source(bundle, i);
		uint64_t bytes;
		if (ky_kymo_stream_kind(source, &bytes) != KY_KYMO_STREAM_SYMBOLS)
			continue;
		put_facts(load->trace, source, "names of addresses", bytes);
		const int error = open_stream(source, "names of addresses", symbols);
		return error ? note_failed(load, "names of addresses", "", error) : 0;
	}
	return 0;
}

static void note_unknown(struct ky_load *load, const struct ky_kymo_bundle *bundle)
{
	for (uint32_t i = 0; i < ky_kymo_bundle_count(bundle); i++) {
		const struct ky_kymo *source = ky_kymo_bundle_source(bundle, i);
		uint64_t bytes;
		const uint32_t kind = ky_kymo_stream_kind(source, &bytes);
		bool known = !bytes || kind == KY_KYMO_STREAM_SYMBOLS;
		for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++)
			known |= kind == formats[k].kind;
		if (!known)
			ky_problem(load->trace, "kymo_stream_unknown", KY_DATA_LOSS, KY_NO_PLACE,
				   "source %u is a stream of kind %u, which this version does not "
				   "know",
				   ky_kymo_source_number(source), kind);
	}
}

static bool has_stream(const struct ky_kymo_bundle *bundle, enum ky_kymo_stream_kind kind)
{
	uint64_t bytes;
	for (uint32_t i = 0; i < ky_kymo_bundle_count(bundle); i++)
		if (ky_kymo_stream_kind(ky_kymo_bundle_source(bundle, i), &bytes) == kind)
			return true;
	return false;
}

int ky_kymo_stream_load_all(struct ky_load *load, const struct ky_kymo_bundle *bundle)
{
	struct ky_input *symbols;
	int error = open_symbols(load, bundle, &symbols);
	if (has_stream(bundle, KY_KYMO_STREAM_FTRACE) && has_stream(bundle, KY_KYMO_STREAM_PERF))
		ky_trace_kernel_twice(load->trace);
	for (size_t i = 0; !error && i < sizeof(formats) / sizeof(formats[0]); i++)
		error = read_all(load, bundle, &formats[i], symbols);
	ky_input_close(&symbols);
	if (!error)
		note_unknown(load, bundle);
	return error;
}
