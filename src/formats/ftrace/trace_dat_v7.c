/* SPDX-License-Identifier: MIT */
/*
 * trace_dat_v7.c: trace.dat of version 7: sections anywhere in the file, which options point to.
 *
 *   section  u16 id │ u16 flags (1: compressed) │ u32 description │ u64 size │ data
 *   options  u16 id │ u32 size │ data ... until id 0, whose data is the place of the next options
 *   compressed section  u32 packed │ u32 unpacked │ data
 *   compressed CPU data u32 chunks, each: u32 packed │ u32 unpacked │ data
 *
 * Options are read twice: for what all events need (formats, clock), then for the buffers.
 */
#include "base/memory.h"
#include "formats/ftrace/trace_dat.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define SECTION_BYTES 16u
#define COMPRESSED 1u
#define UNPACKED_MAX (256u << 20)
/* More than any of these compresses by. */
#define RATIO_MAX 2000u
#define OPTION_SECTIONS_MAX 10000u
#define CPUS_MAX 65536u

struct section {
	uint32_t flags;
	uint8_t *data; /* to be freed */
	struct ky_dat_bytes bytes;
};

static bool inflate_all(uint8_t *out, uLongf *bytes, const uint8_t *packed, uint64_t packed_bytes)
{
	const int result = uncompress(out, bytes, packed, (uLong)packed_bytes);
	if (result == Z_MEM_ERROR)
		ky_memory_missing();
	return result == Z_OK;
}

static bool unzstd(uint8_t *out, uint64_t bytes, const uint8_t *packed, uint64_t packed_bytes)
{
	const size_t result = ZSTD_decompress(out, bytes, packed, packed_bytes);
	if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
		ky_memory_missing();
	return result == bytes;
}

/* NULL when it is damaged. */
static uint8_t *unpack(struct ky_dat *dat, const uint8_t *packed, uint64_t packed_bytes,
		       uint64_t bytes, uint64_t at)
{
	uint8_t *out = NULL;
	bool whole = false;
	if (bytes <= UNPACKED_MAX && bytes / RATIO_MAX <= packed_bytes) {
		out = malloc(bytes ? bytes : 1);
		if (!out)
			ky_memory_missing();
	}
	if (out && dat->compression == KY_DAT_ZSTD)
		whole = unzstd(out, bytes, packed, packed_bytes);
	uLongf used = (uLongf)bytes;
	if (out && dat->compression == KY_DAT_ZLIB)
		whole = inflate_all(out, &used, packed, packed_bytes) && used == bytes;
	if (whole)
		return out;
	free(out);
	ky_problem(dat->trace, "trace_dat_compression", KY_DATA_LOSS, at,
		   "%llu bytes that should unpack to %llu and do not",
		   (unsigned long long)packed_bytes, (unsigned long long)bytes);
	return NULL;
}

static bool unpack_section(struct ky_dat *dat, struct section *section)
{
	uint64_t packed_bytes = ky_dat_number(&section->bytes, 4);
	uint64_t bytes = ky_dat_number(&section->bytes, 4);
	uint64_t at = section->bytes.position;
	const uint8_t *packed = ky_dat_take(&section->bytes, packed_bytes);
	uint8_t *out = packed ? unpack(dat, packed, packed_bytes, bytes, at) : NULL;
	free(section->data);
	section->data = out;
	section->bytes = (struct ky_dat_bytes){out, out ? out + bytes : out, at, dat, !out};
	return out != NULL;
}

/* Get a section with its data; false when it is not there. */
static bool open_section(struct ky_dat *dat, uint64_t at, struct section *section)
{
	uint64_t got;
	uint8_t *head = ky_dat_read(dat, at, SECTION_BYTES, &got);
	struct ky_dat_bytes bytes = {head, head ? head + got : head, at, dat, !head};
	(void)ky_dat_number(&bytes, 2);
	section->flags = (uint32_t)ky_dat_number(&bytes, 2);
	(void)ky_dat_number(&bytes, 4);
	uint64_t size = ky_dat_number(&bytes, 8);
	free(head);
	section->data = NULL;
	if (!bytes.short_of)
		section->data = ky_dat_read(dat, at + SECTION_BYTES, size, &got);
	if (!section->data) {
		ky_problem(dat->trace, "trace_dat_section", KY_DATA_LOSS, at,
			   "expected a section here");
		return false;
	}
	section->bytes = (struct ky_dat_bytes){section->data, section->data + got,
					       at + SECTION_BYTES, dat, false};
	return !(section->flags & COMPRESSED) || unpack_section(dat, section);
}

static void read_section(struct ky_dat *dat, uint64_t at,
			 void (*read)(struct ky_dat *dat, struct ky_dat_bytes *bytes))
{
	struct section section = {0};
	if (open_section(dat, at, &section))
		read(dat, &section.bytes);
	free(section.data);
}

/* An option that is needed to read events: the place of a section, or as in version 6. */
static void read_meta(struct ky_dat *dat, uint32_t id, struct ky_dat_bytes option)
{
	static const struct {
		uint32_t id;
		void (*read)(struct ky_dat *dat, struct ky_dat_bytes *bytes);
	} sections[] = {
		{KY_DAT_OPTION_HEADER_INFO, ky_dat_header},
		{KY_DAT_OPTION_FTRACE_EVENTS, ky_dat_ftrace_formats},
		{KY_DAT_OPTION_EVENT_FORMATS, ky_dat_event_formats},
		{KY_DAT_OPTION_KALLSYMS, ky_dat_kallsyms},
		{KY_DAT_OPTION_PRINTK, ky_dat_printk},
		{KY_DAT_OPTION_CMDLINES, ky_dat_comms},
	};
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (id != sections[i].id)
			continue;
		uint64_t at = ky_dat_number(&option, 8);
		if (!option.short_of)
			read_section(dat, at, sections[i].read);
		return;
	}
	ky_dat_option(dat, id, option);
}

/* Get a number in the file; false at its end. */
static bool number_at(struct ky_dat *dat, uint64_t at, uint64_t *number)
{
	uint64_t got;
	uint8_t *data = ky_dat_read(dat, at, 4, &got);
	const bool there = data && got == 4;
	if (there)
		*number = ky_ftrace_load(dat->format, data, 4);
	free(data);
	return there;
}

/* One chunk at *at, which moves behind it; false when it is not there. */
static bool read_chunk(struct ky_dat *dat, uint32_t cpu, uint64_t *at)
{
	uint64_t packed_bytes;
	uint64_t bytes;
	uint64_t got;
	if (!number_at(dat, *at, &packed_bytes) || !number_at(dat, *at + 4, &bytes))
		return false;
	uint8_t *packed = ky_dat_read(dat, *at + 8, packed_bytes, &got);
	bool there = packed && got == packed_bytes;
	uint8_t *pages = there ? unpack(dat, packed, packed_bytes, bytes, *at + 8) : NULL;
	if (pages)
		ky_dat_pages_in(dat, cpu, pages, bytes, *at + 8);
	free(pages);
	free(packed);
	*at += 8 + packed_bytes;
	dat->data_done += 8 + packed_bytes;
	/* CPUs that claim the same place are no reason to unpack it again and again. */
	return there && dat->data_done <= 2 * dat->file_bytes;
}

/* Ignore the option's size, which leaves out some of the numbers before the chunks. */
static int read_chunks(struct ky_dat *dat, uint32_t cpu, uint64_t at)
{
	uint64_t count;
	int error = 0;
	bool there = number_at(dat, at, &count);
	at += 4;
	for (uint64_t i = 0; there && i < count && !error; i++) {
		there = read_chunk(dat, cpu, &at);
		if (dat->load->progress)
			error = dat->load->progress(dat->load, at, dat->file_bytes);
	}
	if (!there)
		ky_problem(dat->trace, "trace_dat_cut", KY_DATA_LOSS, at,
			   "the data of CPU %u ends before it should", cpu);
	return error;
}

/* Find a buffer's data, and whether it is packed. */
static int read_buffer(struct ky_dat *dat, struct ky_dat_bytes option)
{
	uint64_t at = ky_dat_number(&option, 8);
	(void)ky_dat_text(&option);
	(void)ky_dat_text(&option);
	uint32_t page_bytes = (uint32_t)ky_dat_number(&option, 4);
	uint64_t cpus = ky_dat_number(&option, 4);
	uint64_t got;
	uint8_t *head = ky_dat_read(dat, at, SECTION_BYTES, &got);
	struct ky_dat_bytes section = {head, head ? head + got : head, at, dat, !head};
	(void)ky_dat_number(&section, 2);
	uint32_t flags = (uint32_t)ky_dat_number(&section, 2);
	free(head);
	if (!option.short_of && page_bytes >= 64 && page_bytes <= 16u << 20)
		dat->page_bytes = page_bytes;
	int error = 0;
	for (uint64_t i = 0; i < cpus && i < CPUS_MAX && !error; i++) {
		uint32_t cpu = (uint32_t)ky_dat_number(&option, 4);
		uint64_t place = ky_dat_number(&option, 8);
		uint64_t size = ky_dat_number(&option, 8);
		if (option.short_of || section.short_of) {
			ky_problem(dat->trace, "trace_dat_buffer", KY_DATA_LOSS, at,
				   "a buffer whose data is not there");
			return 0;
		}
		if (size)
			error = flags & COMPRESSED ? read_chunks(dat, cpu, place)
						   : ky_dat_pages(dat, cpu, place, size);
	}
	return error;
}

static void read_text(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	ky_dat_lines(dat, bytes->at, (uint64_t)(bytes->end - bytes->at), bytes->position);
}

static int read_option(struct ky_dat *dat, uint32_t id, struct ky_dat_bytes option, bool buffers)
{
	if (!buffers) {
		read_meta(dat, id, option);
		return 0;
	}
	if (id == KY_DAT_OPTION_BUFFER)
		return read_buffer(dat, option);
	if (id == KY_DAT_OPTION_BUFFER_TEXT)
		read_section(dat, ky_dat_number(&option, 8), read_text);
	return 0;
}

/* One section of options; *next is where the next is, 0: none. */
static int read_options(struct ky_dat *dat, struct ky_dat_bytes *bytes, bool buffers,
			uint64_t *next)
{
	*next = 0;
	while (!bytes->short_of && bytes->at < bytes->end) {
		uint32_t id = (uint32_t)ky_dat_number(bytes, 2);
		uint64_t size = ky_dat_number(bytes, 4);
		struct ky_dat_bytes option = *bytes;
		if (!ky_dat_take(bytes, size))
			return 0;
		option.end = bytes->at;
		if (id == KY_DAT_OPTION_DONE) {
			*next = ky_dat_number(&option, 8);
			return 0;
		}
		int error = read_option(dat, id, option, buffers);
		if (error)
			return error;
	}
	return 0;
}

static int read_all_options(struct ky_dat *dat, uint64_t at, bool buffers)
{
	int error = 0;
	for (uint32_t i = 0; at && !error && i < OPTION_SECTIONS_MAX; i++) {
		struct section section = {0};
		uint64_t next = 0;
		if (open_section(dat, at, &section))
			error = read_options(dat, &section.bytes, buffers, &next);
		free(section.data);
		/* They are written one after the other; a place before this one would be a circle. */
		at = next > at ? next : 0;
	}
	return error;
}

int ky_dat_v7(struct ky_dat *dat, uint64_t at)
{
	uint64_t got;
	uint8_t *head = ky_dat_read(dat, at, 256, &got);
	if (!head)
		return -ENOMEM;
	struct ky_dat_bytes bytes = {head, head + got, at, dat, false};
	const char *name = ky_dat_text(&bytes);
	const char *version = ky_dat_text(&bytes);
	uint64_t options = ky_dat_number(&bytes, 8);
	bool known = true;
	if (name && strcmp(name, "zstd") == 0)
		dat->compression = KY_DAT_ZSTD;
	else if (name && strcmp(name, "zlib") == 0)
		dat->compression = KY_DAT_ZLIB;
	else
		known = name && strcmp(name, "none") == 0;
	int error = 0;
	if (!version || bytes.short_of || !options)
		error = ky_load_fail(dat->load, at,
				     "expected a compression and the place of the options");
	else if (!known)
		error = ky_load_fail(dat->load, at,
				     "compressed with %.40s; none, zlib and zstd can be read",
				     name);
	free(head);
	if (error)
		return error;
	error = read_all_options(dat, options, false);
	ky_dat_set_clock(dat);
	return error ? error : read_all_options(dat, options, true);
}
