/* SPDX-License-Identifier: MIT */
/*
 * perf_data_read.c: reads perf.data into the model: files and what went through a pipe, of either byte order.
 * perf_session.h shows the parts.
 */
#include "base/array.h"
#include "formats/perf/perf_session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool probe(const struct ky_probe *probe)
{
	return probe->bytes >= KY_PERF_PIPE_HEAD_BYTES &&
	       (memcmp(probe->data, KY_PERF_MAGIC, 8) == 0 ||
		memcmp(probe->data, KY_PERF_MAGIC_SWAPPED, 8) == 0);
}

/* Name come with it; they are looked for on this machine only when the recording is a file on it, or comes from a pipe. */
static void on_damage(void *context, const char *kind, uint64_t at, const char *what)
{
	ky_problem(context, kind, KY_DATA_LOSS, at, "%s", what);
}

static int open_symbols(struct ky_perf *perf)
{
	struct stat status;
	const char *path = perf->load->path;
	const bool piped = path && strcmp(path, "-") == 0;
	const int error = perf->load->symbols ? ky_symbols_given_open(&perf->given, perf->trace,
								      perf->load->symbols)
					      : 0;
	if (error)
		return error;
	if (!piped && (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode)))
		return 0;
	const int opened =
		ky_symbols_open(&perf->symbols, &perf->trace->strings, piped ? NULL : path);
	if (!opened)
		ky_symbols_on_damage(perf->symbols, on_damage, perf->trace);
	return opened;
}

static void close_all(struct ky_perf *perf)
{
	KY_ARRAY_FREE(perf->attrs, perf->attrs_room);
	KY_ARRAY_FREE(perf->spaces, perf->spaces_room);
	KY_ARRAY_FREE(perf->mapped, perf->mapped_room);
	KY_ARRAY_FREE(perf->totals, perf->totals_room);
	KY_ARRAY_FREE(perf->endings, perf->endings_room);
	ky_u64_map_free(&perf->attr_of);
	ky_u64_map_free(&perf->space_of);
	ky_u64_map_free(&perf->build_id_of);
	ky_u64_map_free(&perf->total_of);
	ky_u64_map_free(&perf->switched_to);
	ky_u64_map_free(&perf->comm_of);
	ky_u64_map_free(&perf->ending_of);
	ky_ranges_free(&perf->ranges);
	ky_perf_order_free(&perf->queue);
	ky_perf_unpack_close(&perf->unpack);
	ky_perf_tracepoints_close(&perf->tracepoints);
	ky_symbols_given_close(&perf->given);
	ky_symbols_close(&perf->symbols);
	free(perf->frame_slots);
}

static int read_trace(struct ky_load *load)
{
	struct ky_perf perf = {.load = load, .trace = load->trace};
	int error = open_symbols(&perf);
	if (!error)
		error = ky_perf_stream_read(&perf);
	if (!error) {
		ky_perf_order_end(&perf);
		ky_perf_task_end(&perf);
		if (perf.ranges.failed)
			error = -ENOMEM;
	}
	close_all(&perf);
	return error;
}

const struct ky_reader ky_reader_perf_data = {
	.name = "perf.data",
	.title = "perf.data",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
