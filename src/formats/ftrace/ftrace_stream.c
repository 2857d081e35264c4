/* SPDX-License-Identifier: MIT */
/*
 * ftrace_stream.c: reads the ftrace stream of a capture: records of files and pages, in the order in which kymo
 * wrote them, padded to 8 bytes each. A file with many lines may come in several records, each of whole lines. A page
 * is cut behind its last event. Records of other kinds are passed over.
 */

#include <errno.h>
#include <stdlib.h>

#include "formats/ftrace/ftrace_files.h"
#include "formats/kymo/kymo_layout.h"

/* The largest record. kymo's own have at most a megabyte. */
#define RECORD_BYTES_MAX (64u << 20)
#define PATH_BYTES_MAX 512u

struct ftrace_records {
	struct ky_load *load;
	struct ky_ftrace_files files;
};

static void take_file(struct ftrace_records *stream, const struct ky_kymo_ftrace *record,
		      const uint8_t *content, uint64_t at)
{
	char path[PATH_BYTES_MAX];
	const size_t bytes = record->bytes - sizeof(*record) - record->path_bytes;
	char *text = malloc(bytes + 1);
	if (!text) {
		stream->load->trace->error = -ENOMEM;
		return;
	}
	memcpy(path, content, record->path_bytes);
	path[record->path_bytes] = '\0';
	memcpy(text, content + record->path_bytes, bytes);
	text[bytes] = '\0';
	ky_ftrace_files_take(&stream->files, path, text, bytes, at);
	free(text);
}

/* Report whether its numbers agree; nothing can be found behind a record whose numbers do not. */
static bool is_sound(const struct ftrace_records *stream, const struct ky_kymo_ftrace *record,
		     uint64_t at)
{
	if (record->bytes < sizeof(*record) || record->bytes > RECORD_BYTES_MAX) {
		ky_problem(stream->load->trace, "ftrace_stream_record", KY_DATA_LOSS, at,
			   "a record of %u bytes; expected %zu to %u", record->bytes,
			   sizeof(*record), RECORD_BYTES_MAX);
		return false;
	}
	return true;
}

static void take_record(struct ftrace_records *stream, const struct ky_kymo_ftrace *record,
			const uint8_t *content, uint64_t at)
{
	const size_t bytes = record->bytes - sizeof(*record);
	const bool is_file = record->kind == KY_KYMO_FTRACE_FILE;
	const bool is_page = record->kind == KY_KYMO_FTRACE_PAGE;
	if (is_file && record->path_bytes <= bytes && record->path_bytes < PATH_BYTES_MAX)
		take_file(stream, record, content, at);
	else if (is_page && bytes <= KY_FTRACE_PAGE_BYTES_MAX && record->cpu < KY_FTRACE_CPUS_MAX)
		ky_ftrace_page(stream->files.format, record->cpu, content, bytes, at);
	else if (is_file || is_page)
		ky_problem(stream->load->trace, "ftrace_stream_record", KY_DATA_LOSS, at,
			   "a %s of %zu bytes, path of %u, CPU %u; it is left out",
			   is_file ? "file" : "page", bytes, record->path_bytes, record->cpu);
}

/* False at the end, or where the input is cut or damaged. */
static bool next_record(struct ftrace_records *stream)
{
	struct ky_input *input = stream->load->input;
	const uint64_t at = input->position;
	struct ky_kymo_ftrace record;
	if (!ky_input_need(input, 1))
		return false;
	if (ky_input_need(input, sizeof(record))) {
		memcpy(&record, input->at, sizeof(record));
		if (!is_sound(stream, &record, at))
			return false;
		if (ky_input_need(input, record.bytes)) {
			take_record(stream, &record, input->at + sizeof(record), at);
			return ky_input_skip_far(input, KY_KYMO_PADDED((uint64_t)record.bytes));
		}
	}
	ky_problem(stream->load->trace, "ftrace_stream_cut", KY_DATA_LOSS, at,
		   "the kernel's events end within a record");
	return false;
}

int ky_ftrace_stream_read(struct ky_load *load)
{
	struct ftrace_records stream = {.load = load};
	int error = ky_ftrace_files_open(&stream.files, load->trace);
	if (error)
		return error;
	while (next_record(&stream) && !load->trace->error)
		;
	ky_ftrace_files_finish(&stream.files);
	return load->trace->error;
}
