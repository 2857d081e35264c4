/* SPDX-License-Identifier: MIT */
/*
 * convert_stream.c: see convert_stream.h.
 *
 *   .kymo ── ky_kymo_read(): events in order ──▶ spans balanced ──▶ the format's writer ──▶ ky_out ──▶ file
 */
#include "formats/export.h"

#include "cli/cli.h"
#include "cli/convert_stream.h"
#include "formats/format.h"
#include "formats/kymo/kymo_file.h"
#include "sink/spans.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define PUSH_BYTES (256u << 10)
#define CLOCK_EVERY_NS UINT64_C(1000000000)

struct stream {
	struct ky_kymo_bundle *bundle;
	struct ky_kymo *file; /* the part of the file that has the events */
	const struct ky_kymo_info *info;
	const struct ky_format *format;
	void *writer;
	struct ky_out *out;
	struct ky_spans spans;
	uint32_t clocks; /* clock readings that were passed on */
	uint64_t clock_ns;
};

static void on_thread(void *context, const struct ky_thread *thread)
{
	const struct stream *stream = context;
	stream->format->thread(stream->writer, thread);
}

static void on_balanced(void *context, const struct ky_event *event)
{
	const struct stream *stream = context;
	stream->format->event(stream->writer, event);
}

/* Pass on clock readings, about one a second, in their place between the events. */
static void write_clocks(struct stream *stream, uint64_t until_ns)
{
	const struct ky_kymo_info *info = stream->info;
	for (; stream->clocks < info->samples_count; stream->clocks++) {
		const struct ky_tick_reading *sample = &info->samples[stream->clocks];
		if (sample->boottime_ns > until_ns)
			return;
		if (!stream->format->clock ||
		    sample->boottime_ns < stream->clock_ns + CLOCK_EVERY_NS)
			continue;
		stream->clock_ns = sample->boottime_ns;
		stream->format->clock(stream->writer, sample);
	}
}

static void on_event(void *context, const struct ky_event *event)
{
	struct stream *stream = context;
	write_clocks(stream, event->time_ns);
	ky_spans_pass(&stream->spans, event);
	if (stream->out->used >= PUSH_BYTES)
		ky_out_push(stream->out);
}

/* Report progress before each chunk; this also notices a full disk. */
static int on_chunk(void *context, uint64_t done, uint64_t all)
{
	const struct stream *stream = context;
	return stream->out->error ? stream->out->error : ky_cli_progress("converting", done, all);
}

static int write_events(struct stream *stream)
{
	const struct ky_stream_sink sink = {
		.thread = on_thread, .event = on_event, .context = stream};
	struct ky_kymo_totals totals;
	stream->spans = (struct ky_spans){.emit = on_balanced, .context = stream};
	ky_kymo_on_progress(stream->file, on_chunk, stream);
	int error = ky_kymo_read(stream->file, 0, UINT64_MAX, &sink, &totals);
	if (!error) {
		write_clocks(stream, UINT64_MAX);
		stream->format->finish(stream->writer, stream->info->lost);
		error = stream->spans.error ? stream->spans.error : stream->out->error;
	}
	ky_spans_free(&stream->spans);
	return error;
}

static int write_file(void *context, const struct ky_exporter *exporter, struct ky_out *out)
{
	struct stream *stream = context;
	const struct ky_kymo_info *info = stream->info;
	const struct ky_trace_info head = {
		.pid = info->pid,
		.process = info->process,
		.command = info->command,
		.clock = info->samples_count ? info->samples[0] : (struct ky_tick_reading){0},
		.ticks_per_s = info->ticks_per_s,
	};
	stream->out = out;
	stream->format = exporter->format;
	stream->clock_ns = head.clock.boottime_ns;
	int error = stream->format->open(&stream->writer, out, &head);
	if (error)
		return error;
	error = write_events(stream);
	stream->format->close(stream->writer);
	return error;
}

/* Return the only part that has events if the file holds nothing else, or NULL. */
static struct ky_kymo *only_drum(const struct ky_kymo_bundle *bundle)
{
	struct ky_kymo *only = NULL;
	if (!ky_kymo_bundle_several(bundle))
		return ky_kymo_bundle_source(bundle, 0);
	for (uint32_t i = 0; i < ky_kymo_bundle_count(bundle); i++) {
		struct ky_kymo *source = ky_kymo_bundle_source(bundle, i);
		const struct ky_kymo_info *info = ky_kymo_info(source);
		uint64_t bytes;
		const bool is_drum = info->entries_count || info->processes_count;
		if (info->snapshots_count || info->remarks_count ||
		    ky_kymo_stream_kind(source, &bytes) || (is_drum && only))
			return NULL;
		if (is_drum)
			only = source;
	}
	return only;
}

/* Report whether this is a complete file of one process with no losses, as the recorder writes it. */
static bool is_ours(const struct ky_kymo_bundle *bundle, struct ky_kymo *source)
{
	const struct ky_kymo_info *info = source ? ky_kymo_info(source) : NULL;
	return info && ky_kymo_bundle_finished(bundle) && info->indexed && !info->damages &&
	       info->processes_count <= 1;
}

static bool open_input(struct stream *stream, const char *input)
{
	struct ky_kymo_error error;
	struct stat status;
	if (stat(input, &status) != 0 || !S_ISREG(status.st_mode) ||
	    ky_kymo_bundle_open(&stream->bundle, input, &error) != 0)
		return false;
	stream->file = only_drum(stream->bundle);
	if (is_ours(stream->bundle, stream->file)) {
		stream->info = ky_kymo_info(stream->file);
		return true;
	}
	ky_kymo_bundle_close(&stream->bundle);
	return false;
}

bool ky_convert_stream(const char *input, const char *output, const char *format, int *code)
{
	char message[KY_EXPORT_MESSAGE_BYTES];
	struct stream stream = {0};
	int packing;
	const struct ky_exporter *exporter = ky_exporter_find(output, format, &packing);
	if (!exporter || exporter == &ky_exporter_kymo || !open_input(&stream, input))
		return false;
	const int error = ky_export_by(output, format, write_file, &stream, message);
	ky_cli_progress_end();
	if (error && error != -EINTR)
		ky_cli_error("%s", message);
	ky_kymo_bundle_close(&stream.bundle);
	*code = error ? KY_EXIT_FAILED : KY_EXIT_DONE;
	return true;
}
