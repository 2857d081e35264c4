/* SPDX-License-Identifier: MIT */
/*
 * trace_dat_v6.c: trace.dat of version 6: everything in one order.
 *
 *   header_page, header_event, formats of ftrace, formats of systems, kallsyms, printk strings, comms, u32 CPUs,
 *   "options  " options, "flyrecord" (u64 offset, u64 size) of each CPU │ "latency  " text
 *
 * A buffer of an instance is an option: the place of a "flyrecord" of its own.
 */
#include "formats/ftrace/trace_dat.h"

#include <errno.h>
#include <stdlib.h>

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

int ky_dat_v6(struct ky_dat *dat, uint64_t at)
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
