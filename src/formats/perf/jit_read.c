/* SPDX-License-Identifier: MIT */
/*
 * jit_read.c: reads the lists of run-time compiled code as traces.
 *
 * A jitdump (jit-PID.dump): each function that was made or moved is an instant of the track "jitdump" of its process, and
 * a frame of the mapping "[jitdump]". A perf map (perf-PID.map) has no times, only functions, which become frames of the
 * mapping "[perf map]".
 */
#include "formats/input.h"
#include "formats/load.h"
#include "formats/perf/perf_script.h"
#include "process/jit_files.h"

#include <errno.h>

struct jitdump_reading {
	struct ky_trace *trace;
	uint32_t mapping;
	uint32_t pid; /* of the track below */
	uint32_t track;
	uint32_t category, loaded, moved;
	uint32_t key_address, key_bytes, key_name, key_index, key_old;
	uint64_t functions;
};

static bool probe_jitdump(const struct ky_probe *probe)
{
	struct ky_jitdump_head head;
	return ky_jitdump_head(probe->data, probe->bytes, &head);
}

/* Return the process's track of compiled code. */
static uint32_t track_of(struct jitdump_reading *reading, uint32_t pid)
{
	if (reading->track == KY_NONE || reading->pid != pid) {
		const struct ky_track_spec spec = {
			.kind = KY_TRACK_PROCESS,
			.owner = ky_process(reading->trace, (int32_t)pid),
			.name = ky_string_z(reading->trace, "jitdump"),
		};
		reading->pid = pid;
		reading->track = ky_track(reading->trace, &spec);
	}
	return reading->track;
}

static void on_code(void *context, const struct ky_jit_code *code)
{
	struct jitdump_reading *reading = context;
	struct ky_trace *trace = reading->trace;
	const uint32_t name = code->name ? ky_string(trace, code->name, code->name_bytes) : 0;
	if (name) {
		const uint32_t file =
			code->file_bytes ? ky_string(trace, code->file, code->file_bytes) : 0;
		ky_frame(trace, reading->mapping, code->address, name, file, code->line);
		reading->functions++;
	}
	ky_args_begin(trace);
	ky_arg_pointer(trace, reading->key_address, code->address);
	ky_arg_uint(trace, reading->key_bytes, code->bytes);
	ky_arg_uint(trace, reading->key_index, code->index);
	if (name)
		ky_arg_string(trace, reading->key_name, name);
	if (code->moved)
		ky_arg_pointer(trace, reading->key_old, code->old_address);
	const uint32_t args = ky_args_end(trace);
	ky_put_instant(trace, (int64_t)code->time_ns, track_of(reading, code->pid),
		       reading->category, code->moved ? reading->moved : reading->loaded, args);
}

/* ---- the input as the dump's source ---- */

static const uint8_t *need(void *context, size_t bytes, size_t *have)
{
	struct ky_load *load = context;
	(void)ky_input_need(load->input, bytes);
	*have = (size_t)(load->input->end - load->input->at);
	return load->input->at;
}

static bool skip(void *context, uint64_t bytes)
{
	struct ky_load *load = context;
	return ky_input_skip_far(load->input, bytes);
}

static void damaged(void *context, uint64_t at, const char *what)
{
	struct ky_load *load = context;
	ky_problem(load->trace, "jitdump_damaged", KY_DATA_LOSS, at, "%s", what);
}

static int read_jitdump(struct ky_load *load)
{
	struct ky_trace *trace = load->trace;
	const struct ky_mapping_spec all = {.name = ky_string_z(trace, "[jitdump]"),
					    .end = UINT64_MAX};
	struct jitdump_reading reading = {
		.trace = trace,
		.mapping = ky_mapping(trace, &all),
		.track = KY_NONE,
		.category = ky_string_z(trace, "jit"),
		.loaded = ky_string_z(trace, "code_load"),
		.moved = ky_string_z(trace, "code_move"),
		.key_address = ky_string_z(trace, "address"),
		.key_bytes = ky_string_z(trace, "size"),
		.key_name = ky_string_z(trace, "name"),
		.key_index = ky_string_z(trace, "index"),
		.key_old = ky_string_z(trace, "old_address"),
	};
	struct ky_jitdump_head head;
	trace->clock = KY_CLOCK_MONOTONIC;
	const struct ky_jitdump_input input = {need, skip, damaged, load};
	if (ky_jitdump_read(&input, &head, on_code, &reading) != 0)
		return load->input->error
			       ? load->input->error
			       : ky_load_fail(load, 0, "not a jitdump: expected its head");
	if (load->input->error && load->input->error != -EBADMSG)
		return load->input->error;
	if (head.flags & KY_JITDUMP_ARCH_TIME)
		ky_problem(trace, "jitdump_arch_time", KY_INFO, 32,
			   "times are ticks of the CPU's clock, taken as nanoseconds");
	ky_put_metadata_number(trace, "jitdump_functions", (int64_t)reading.functions);
	ky_put_metadata_number(trace, "jitdump_pid", head.pid);
	ky_put_metadata_number(trace, "jitdump_elf_machine", head.machine);
	return 0;
}

const struct ky_reader ky_reader_jitdump = {
	.name = "jitdump",
	.title = "jitdump of run-time compiled code",
	.probe = probe_jitdump,
	.read = read_jitdump,
};

/* ---- perf map ---- */

struct perf_map_reading {
	struct ky_trace *trace;
	uint32_t mapping;
	int64_t functions;
};

/* Every line that is there in full must be one, and none of perf script's: "dd" may be a comm. */
static bool probe_map(const struct ky_probe *probe)
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

static int read_map(struct ky_load *load)
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
	.probe = probe_map,
	.read = read_map,
};
