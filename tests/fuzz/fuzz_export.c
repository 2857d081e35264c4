/* SPDX-License-Identifier: MIT */
/*
 * fuzz_export.c: any bytes as JSON, a .kymo file or a Perfetto trace, written in every format. What could be read can be
 * written, and what was written can be read.
 */
#include "budget.h"
#include "formats/export.h"
#include "formats/out.h"
#include "fuzz_kymo.h"

/* The exporter of .kymo has a table of all trace points that a file may have. */
uint64_t fuzz_budget_bytes = 32u << 20;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct ky_export_selection all = {.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE};

static const struct {
	const struct ky_exporter *exporter;
	const struct ky_reader *reader;
} formats[] = {
	{&ky_exporter_json, &ky_reader_json},
	{&ky_exporter_pftrace, &ky_reader_pftrace},
	{&ky_exporter_fxt, &ky_reader_fxt},
	{&ky_exporter_kymo, &ky_reader_kymo},
};

struct written {
	uint8_t *data;
	size_t bytes;
	size_t room;
};

static int take(struct ky_out *out, const void *data, size_t bytes)
{
	struct written *written = out->context;
	while (written->room - written->bytes < bytes) {
		written->room = written->room ? written->room * 2 : 65536;
		written->data = realloc(written->data, written->room);
		fuzz_check(written->data != NULL);
	}
	memcpy(written->data + written->bytes, data, bytes);
	written->bytes += bytes;
	return 0;
}

static void write_and_read(const struct ky_trace *trace, const struct ky_exporter *exporter,
			   const struct ky_reader *reader)
{
	struct written written = {NULL, 0, 0};
	struct ky_export_left left = {0};
	struct ky_out out;
	const struct ky_export_job job = {
		.trace = trace, .selection = &all, .out = &out, .left = &left};
	fuzz_check(ky_out_init(&out, 0) == 0);
	out.push = take;
	out.context = &written;
	fuzz_check(exporter->write(&job) == 0);
	fuzz_check(ky_out_push(&out) == 0);
	ky_out_free(&out);
	fuzz_check(!written.bytes || fuzz_load(written.data, written.bytes, reader));
	free(written.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ky_trace *trace = fuzz_load_any(data, bytes);
	if (!trace)
		return 0;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		write_and_read(trace, formats[i].exporter, formats[i].reader);
	ky_trace_close(&trace);
	return 0;
}
