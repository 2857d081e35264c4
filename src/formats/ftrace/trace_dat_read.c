/* SPDX-License-Identifier: MIT */
/*
 * trace_dat_read.c: reads the trace.dat of trace-cmd.
 *
 *   17 08 44 "tracing" │ version "6" or "7", NUL │ u8 big endian │ u8 bytes of a long │ u32 bytes of a page │ ...
 *
 * The pages of each CPU are read in turn; the stage of the model puts their events in order.
 */
#include "formats/ftrace/trace_dat.h"

#include <errno.h>
#include <stdlib.h>

#define MAGIC_BYTES 10u
static const uint8_t magic[MAGIC_BYTES] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
#define READ_PAGES 64u

static bool probe_dat(const struct ky_probe *probe)
{
	return probe->bytes > MAGIC_BYTES && memcmp(probe->data, magic, MAGIC_BYTES) == 0;
}

uint8_t *ky_dat_read(struct ky_dat *dat, uint64_t at, uint64_t bytes, uint64_t *got)
{
	uint64_t there = at < dat->file_bytes ? dat->file_bytes - at : 0;
	*got = 0;
	if (bytes > there)
		bytes = there;
	uint8_t *data = malloc(bytes + 1);
	while (data && *got < bytes) {
		ssize_t done = ky_input_read_at(dat->load->input, at + *got, data + *got,
						(size_t)(bytes - *got));
		if (done <= 0)
			break;
		*got += (uint64_t)done;
	}
	return data;
}

void ky_dat_pages_in(struct ky_dat *dat, uint32_t cpu, const uint8_t *pages, uint64_t bytes,
		     uint64_t at)
{
	while (bytes) {
		uint64_t page = bytes < dat->page_bytes ? bytes : dat->page_bytes;
		ky_ftrace_page(dat->format, cpu, pages, page, at);
		pages += page;
		bytes -= page;
		at += page;
	}
}

int ky_dat_pages(struct ky_dat *dat, uint32_t cpu, uint64_t at, uint64_t bytes)
{
	const uint64_t step = (uint64_t)dat->page_bytes * READ_PAGES;
	if (bytes && (at >= dat->file_bytes || bytes > dat->file_bytes - at))
		ky_problem(dat->trace, "trace_dat_cut", KY_DATA_LOSS, at,
			   "the %llu bytes of CPU %u are not all in the file",
			   (unsigned long long)bytes, cpu);
	int error = 0;
	while (bytes && !error) {
		uint64_t got;
		uint8_t *pages = ky_dat_read(dat, at, bytes < step ? bytes : step, &got);
		if (!pages)
			return -ENOMEM;
		/* A place that several CPUs claim is read as often, but never more than the file is large. */
		dat->data_done += got;
		if (got && dat->data_done <= 2 * dat->file_bytes)
			ky_dat_pages_in(dat, cpu, pages, got, at);
		free(pages);
		if (!got || dat->data_done > 2 * dat->file_bytes)
			return 0;
		at += got;
		bytes -= got;
		if (dat->load->progress)
			error = dat->load->progress(dat->load, at, dat->file_bytes);
	}
	return error;
}

static int read_versions(struct ky_dat *dat, const uint8_t *head, uint64_t got)
{
	const uint8_t *version = head + MAGIC_BYTES;
	const uint8_t *nul =
		memchr(version, '\0', got > MAGIC_BYTES ? (size_t)(got - MAGIC_BYTES) : 0);
	uint64_t at = nul ? (uint64_t)(nul + 1 - head) : got;
	if (!nul || got < at + 6)
		return ky_load_fail(dat->load, MAGIC_BYTES, "the file ends within its head");
	unsigned long number = strtoul((const char *)version, NULL, 10);
	if (number != 6 && number != 7)
		return ky_load_fail(dat->load, MAGIC_BYTES,
				    "version %.20s of trace.dat; 6 and 7 can be read",
				    (const char *)version);
	dat->big_endian = head[at] == 1;
	dat->long_bytes = head[at + 1];
	int error =
		ky_ftrace_format_open(&dat->format, dat->trace, dat->big_endian, dat->long_bytes);
	if (error)
		return error;
	dat->page_bytes = (uint32_t)ky_ftrace_load(dat->format, head + at + 2, 4);
	if (dat->page_bytes < 64 || dat->page_bytes > 16u << 20)
		error = ky_load_fail(dat->load, at + 2, "pages of %u bytes", dat->page_bytes);
	else
		error = number == 6 ? ky_dat_v6(dat, at + 6) : ky_dat_v7(dat, at + 6);
	ky_ftrace_format_finish(dat->format);
	return error;
}

static int read_dat(struct ky_load *load)
{
	struct ky_dat dat = {.load = load, .trace = load->trace};
	uint64_t got;
	if (ky_input_file(load->input, &dat.file_bytes) < 0)
		return load->input->error;
	uint8_t *head = ky_dat_read(&dat, 0, 64, &got);
	if (!head)
		return -ENOMEM;
	head[got] = 0;
	int error = read_versions(&dat, head, got);
	free(head);
	ky_ftrace_format_close(&dat.format);
	return error;
}

const struct ky_reader ky_reader_trace_dat = {
	.name = "trace.dat",
	.title = "trace-cmd's trace.dat",
	.directory = false,
	.probe = probe_dat,
	.read = read_dat,
};
