/* SPDX-License-Identifier: MIT */
/*
 * perf_map_read.c: reads a perf map (perf-PID.map) as a trace: it has no times, only functions, which become
 * frames of the mapping "[perf map]".
 */
#include "formats/input.h"
#include "formats/load.h"
#include "formats/perf/perf_script.h"
#include "process/jit_files.h"

#include <errno.h>

struct perf_map_reading {
	struct ky_trace *trace;
	uint32_t mapping;
	int64_t functions;
};

/* Every line that is there in full must be one, and none of perf script's: "dd" may be a comm. */
static bool probe(const struct ky_probe *probe)
{
	const char *at = (const char *)probe->data;
	const char *end = at + probe->bytes;
	unsigned lines = 0;
	while (at < end && lines < 64) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline && (!probe->whole || lines))
			break;
		const char *line_end = newline ? newline : end;
		struct ky_perf_map_line line;
		struct ky_perf_script_head head;
		if (!ky_perf_map_line(at, (size_t)(line_end - at), &line) ||
		    ky_perf_script_head(at, (size_t)(line_end - at), &head))
			return false;
		lines++;
		at = line_end + 1;
	}
	return lines > 0;
}

static void take(struct perf_map_reading *reading, const struct ky_perf_map_line *line)
{
	const uint32_t name = ky_string(reading->trace, line->name, line->name_bytes);
	ky_frame(reading->trace, reading->mapping, line->start, name, 0, 0);
	reading->functions++;
}

static int read_trace(struct ky_load *load)
{
	struct ky_trace *trace = load->trace;
	const struct ky_mapping_spec all = {.name = ky_string_z(trace, "[perf map]"),
					    .end = UINT64_MAX};
	struct perf_map_reading reading = {.trace = trace, .mapping = ky_mapping(trace, &all)};
	const char *text;
	size_t bytes;
	uint64_t at;
	while (ky_input_line(load->input, &text, &bytes, &at)) {
		struct ky_perf_map_line line;
		if (ky_perf_map_line(text, bytes, &line))
			take(&reading, &line);
		else if (bytes)
			ky_problem(trace, "perf_map_line", KY_DATA_LOSS, at,
				   "expected START SIZE name");
	}
	if (load->input->error && load->input->error != -EBADMSG)
		return load->input->error;
	if (!reading.functions)
		return ky_load_fail(load, 0,
				    "no function in it: expected lines of START SIZE name");
	ky_put_metadata_number(trace, "perf_map_functions", reading.functions);
	return 0;
}

const struct ky_reader ky_reader_perf_map = {
	.name = "perf-map",
	.title = "perf map of run-time compiled code",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
