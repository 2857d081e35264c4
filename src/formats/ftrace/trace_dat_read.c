/* SPDX-License-Identifier: MIT */
/*
 * trace_dat_read.c: reads the trace.dat of trace-cmd.
 *
 *   17 08 44 "tracing" │ version "6" or "7", NUL │ u8 big endian │ u8 bytes of a long │ u32 bytes of a page │ ...
 *
 * The pages of each CPU are read in turn; the stage of the model puts their events in order.
 */
#include "formats/ftrace/trace_dat.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

/* ---- version 6 ---- */

/*
 * Everything is in one order.
 *
 *   header_page, header_event, formats of ftrace, formats of systems, kallsyms, printk strings, comms, u32 CPUs,
 *   "options  " options, "flyrecord" (u64 offset, u64 size) of each CPU │ "latency  " text
 *
 * A buffer of an instance is an option: the place of a "flyrecord" of its own.
 */

#define CPUS_MAX 65536u
#define BUFFERS_MAX 1024u
#define TAG_BYTES 10u

struct buffers {
	uint64_t at[BUFFERS_MAX];
	uint32_t count;
};

static void read_options(struct ky_dat *dat, struct ky_dat_bytes *bytes, struct buffers *buffers)
{
	for (;;) {
		uint32_t id = (uint32_t)ky_dat_number(bytes, 2);
		if (bytes->short_of || id == KY_DAT_OPTION_DONE)
			return;
		uint64_t size = ky_dat_number(bytes, 4);
		struct ky_dat_bytes option = *bytes;
		if (!ky_dat_take(bytes, size))
			return;
		option.end = bytes->at;
		if (id != KY_DAT_OPTION_BUFFER)
			ky_dat_option(dat, id, option);
		else if (buffers->count < BUFFERS_MAX)
			buffers->at[buffers->count++] = ky_dat_number(&option, 8);
	}
}

/* Read the CPUs' data at a list of places. */
static int read_cpus(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	uint32_t cpus = dat->cpus < CPUS_MAX ? dat->cpus : CPUS_MAX;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		uint64_t at = ky_dat_number(bytes, 8);
		uint64_t size = ky_dat_number(bytes, 8);
		if (bytes->short_of) {
			ky_problem(dat->trace, "trace_dat_cut", KY_DATA_LOSS, bytes->position,
				   "the list of the CPUs' data ends after %u of %u", cpu, cpus);
			return 0;
		}
		int error = ky_dat_pages(dat, cpu, at, size);
		if (error)
			return error;
	}
	return 0;
}

static int read_buffer(struct ky_dat *dat, uint64_t at)
{
	uint64_t got;
	uint8_t *list = ky_dat_read(dat, at, TAG_BYTES + 16ull * dat->cpus, &got);
	if (!list)
		return -ENOMEM;
	int error = 0;
	struct ky_dat_bytes bytes = {.at = list, .end = list + got, .position = at, .dat = dat};
	const uint8_t *tag = ky_dat_take(&bytes, TAG_BYTES);
	if (tag && memcmp(tag, "flyrecord", TAG_BYTES) == 0)
		error = read_cpus(dat, &bytes);
	else
		ky_problem(dat->trace, "trace_dat_buffer", KY_DATA_LOSS, at,
			   "expected \"flyrecord\" of a buffer's data");
	free(list);
	return error;
}

static int read_data(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	struct buffers buffers = {.count = 0};
	const uint8_t *tag = ky_dat_take(bytes, TAG_BYTES);
	if (tag && memcmp(tag, "options  ", TAG_BYTES) == 0) {
		read_options(dat, bytes, &buffers);
		tag = ky_dat_take(bytes, TAG_BYTES);
	}
	ky_dat_set_clock(dat);
	int error = 0;
	if (tag && memcmp(tag, "flyrecord", TAG_BYTES) == 0)
		error = read_cpus(dat, bytes);
	else if (tag && memcmp(tag, "latency  ", TAG_BYTES) == 0)
		ky_dat_lines(dat, bytes->at, (uint64_t)(bytes->end - bytes->at), bytes->position);
	else
		ky_problem(dat->trace, "trace_dat_cut", KY_DATA_LOSS, bytes->position,
			   "expected \"flyrecord\" or \"latency\": no events are there");
	for (uint32_t i = 0; i < buffers.count && !error; i++)
		error = read_buffer(dat, buffers.at[i]);
	return error;
}

static int read_v6(struct ky_dat *dat, uint64_t at)
{
	/* All before the CPUs' data; where that begins is not known yet, so as much as there is, within reason. */
	uint64_t got;
	uint64_t want = dat->file_bytes > at ? dat->file_bytes - at : 0;
	uint8_t *data = ky_dat_read(dat, at, want < 256u << 20 ? want : 256u << 20, &got);
	if (!data)
		return -ENOMEM;
	struct ky_dat_bytes bytes = {.at = data, .end = data + got, .position = at, .dat = dat};
	ky_dat_header(dat, &bytes);
	ky_dat_ftrace_formats(dat, &bytes);
	ky_dat_event_formats(dat, &bytes);
	ky_dat_kallsyms(dat, &bytes);
	ky_dat_printk(dat, &bytes);
	ky_dat_comms(dat, &bytes);
	dat->cpus = (uint32_t)ky_dat_number(&bytes, 4);
	int error = bytes.short_of ? ky_load_fail(dat->load, bytes.position,
						  "the file ends within its description of events")
				   : read_data(dat, &bytes);
	free(data);
	return error;
}

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
	if (!data)
		ky_memory_missing();
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
		error = number == 6 ? read_v6(dat, at + 6) : ky_dat_v7(dat, at + 6);
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
	.probe = probe_dat,
	.read = read_dat,
};
