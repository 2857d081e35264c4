/* SPDX-License-Identifier: MIT */
/*
 * kymo_read.c: reads .kymo files into the model. Their events come in the order of time, and slices are built at
 * once; unless an event goes back (its beginning was overwritten, or it has its own time), or there are several
 * sources: then the file is read a second time, and the model sorts.
 */
#include "formats/load.h"

#include <errno.h>
#include <string.h>

#include "formats/kymo/kymo_load.h"

static bool probe(const struct ky_probe *probe)
{
	const uint64_t magic = KY_KYMO_MAGIC;
	return probe->bytes >= sizeof(magic) && memcmp(probe->data, &magic, sizeof(magic)) == 0;
}

static int start_over(struct ky_load *load)
{
	const char *const format = load->trace->format;
	ky_trace_close(&load->trace);
	const int error = ky_trace_open(&load->trace);
	if (!error)
		load->trace->format = format;
	return error;
}

static int read_sources(struct ky_load *load, struct ky_kymo_bundle *bundle)
{
	const bool ordered = ky_kymo_load_seems_ordered(bundle);
	int error = ky_kymo_load_sources(load, bundle, ordered);
	if (error == -EAGAIN && ordered) {
		error = start_over(load);
		if (!error)
			error = ky_kymo_load_sources(load, bundle, false);
	}
	return error;
}

static int read_trace(struct ky_load *load)
{
	struct ky_kymo_bundle *bundle;
	struct ky_kymo_error why = {0};
	uint64_t bytes;
	const int fd = ky_input_file(load->input, &bytes);
	if (fd < 0)
		return load->input->error;
	int error = ky_kymo_bundle_open_fd(&bundle, fd, &why);
	if (error == -ENOMEM)
		return error;
	if (error)
		return ky_load_fail(load, why.at, "%s", why.text);
	error = read_sources(load, bundle);
	ky_kymo_bundle_close(&bundle);
	return error;
}

const struct ky_reader ky_reader_kymo = {
	.name = "kymo",
	.title = "kymo trace",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
