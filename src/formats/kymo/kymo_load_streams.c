/* SPDX-License-Identifier: MIT */
/*
 * kymo_load_streams.c: the streams of a .kymo file: each is unpacked and given to the reader of its format, which fills
 * the same trace. Names of addresses come before the records that have them.
 *
 * A stream that cannot be read is a problem of the trace; the rest of the file is there all the same.
 */
#include "formats/kymo/kymo_load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "formats/ftrace/ftrace_files.h"

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
	char text[128];
	snprintf(text, sizeof(text), "%u: %s: %llu bytes", ky_kymo_source_number(source), name,
		 (unsigned long long)bytes);
	ky_put_metadata(trace, "capture_source", ky_string_z(trace, text));
}

/* An error that the rest of the file does not suffer from. */
static bool is_of_stream(int error)
{
	return error == -EBADMSG || error == -ENOENT || error == -ENOSPC || error == -EFBIG;
}

static int say_failed(struct ky_load *load, const char *name, const char *message, int error)
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
	int error = ky_kymo_stream_open(source, format->name, &part.input);
	if (!error)
		error = format->read(&part);
	if (!error && part.input->error)
		error = part.input->error;
	ky_input_close(&part.input);
	return error ? say_failed(load, format->name, part.message, error) : 0;
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
		const int error = ky_kymo_stream_open(source, "names of addresses", symbols);
		return error ? say_failed(load, "names of addresses", "", error) : 0;
	}
	return 0;
}

static void tell_unknown(struct ky_load *load, const struct ky_kymo_bundle *bundle)
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

int ky_kymo_load_streams(struct ky_load *load, const struct ky_kymo_bundle *bundle)
{
	struct ky_input *symbols;
	int error = open_symbols(load, bundle, &symbols);
	if (has_stream(bundle, KY_KYMO_STREAM_FTRACE) && has_stream(bundle, KY_KYMO_STREAM_PERF))
		ky_trace_kernel_twice(load->trace);
	for (size_t i = 0; !error && i < sizeof(formats) / sizeof(formats[0]); i++)
		error = read_all(load, bundle, &formats[i], symbols);
	ky_input_close(&symbols);
	if (!error)
		tell_unknown(load, bundle);
	return error;
}
