/* SPDX-License-Identifier: MIT */
/*
 * trace_dat_meta.c: what a trace.dat says beside the events: formats, symbols, strings and options.
 */
#include "formats/ftrace/trace_dat.h"

#include <stdlib.h>

#include "formats/ftrace/ftrace_event.h"

uint64_t ky_dat_number(struct ky_dat_bytes *bytes, uint32_t size)
{
	const uint8_t *at = ky_dat_take(bytes, size);
	return at ? ky_ftrace_load(bytes->dat->format, at, size) : 0;
}

const uint8_t *ky_dat_take(struct ky_dat_bytes *bytes, uint64_t size)
{
	const uint8_t *at = bytes->at;
	if (bytes->short_of || size > (uint64_t)(bytes->end - at)) {
		bytes->short_of = true;
		return NULL;
	}
	bytes->at += size;
	bytes->position += size;
	return at;
}

const char *ky_dat_text(struct ky_dat_bytes *bytes)
{
	const uint8_t *nul =
		bytes->short_of ? NULL : memchr(bytes->at, '\0', (size_t)(bytes->end - bytes->at));
	if (!nul) {
		bytes->short_of = true;
		return NULL;
	}
	return (const char *)ky_dat_take(bytes, (uint64_t)(nul - bytes->at) + 1);
}

/* Take a size and that many bytes. */
static const char *sized(struct ky_dat_bytes *bytes, uint32_t size_bytes, uint64_t *size)
{
	*size = ky_dat_number(bytes, size_bytes);
	const char *text = (const char *)ky_dat_take(bytes, *size);
	if (!text)
		ky_problem(bytes->dat->trace, "trace_dat_cut", KY_DATA_LOSS, bytes->position,
			   "%llu bytes are said to follow and do not", (unsigned long long)*size);
	return text;
}

void ky_dat_header(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	uint64_t size;
	const char *name = ky_dat_text(bytes);
	const char *page = name ? sized(bytes, 8, &size) : NULL;
	if (page)
		ky_ftrace_format_header_page(dat->format, page, size);
	name = ky_dat_text(bytes);
	if (name)
		(void)sized(bytes, 8, &size);
}

static void formats(struct ky_dat *dat, struct ky_dat_bytes *bytes, const char *system)
{
	uint64_t count = ky_dat_number(bytes, 4);
	for (uint64_t i = 0; i < count && !bytes->short_of; i++) {
		uint64_t size;
		uint64_t at = bytes->position;
		const char *text = sized(bytes, 8, &size);
		if (text)
			ky_ftrace_format_event(dat->format, system, text, size, at);
	}
}

void ky_dat_ftrace_formats(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	formats(dat, bytes, "ftrace");
}

void ky_dat_event_formats(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	uint64_t count = ky_dat_number(bytes, 4);
	for (uint64_t i = 0; i < count && !bytes->short_of; i++) {
		const char *system = ky_dat_text(bytes);
		if (system)
			formats(dat, bytes, system);
	}
}

void ky_dat_kallsyms(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	uint64_t size;
	const char *text = sized(bytes, 4, &size);
	if (text)
		ky_ftrace_format_kallsyms(dat->format, text, size);
}

void ky_dat_printk(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	uint64_t size;
	const char *text = sized(bytes, 4, &size);
	if (text)
		ky_ftrace_format_printk(dat->format, text, size);
}

void ky_dat_comms(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	uint64_t size;
	const char *text = sized(bytes, 8, &size);
	if (text)
		ky_ftrace_format_comms(dat->format, text, size);
}

/* ---- options ---- */

/* The text of an option, cut at its NUL, in a buffer that ends with one. */
static void option_text(const struct ky_dat_bytes *bytes, char *text, size_t room)
{
	size_t there = (size_t)(bytes->end - bytes->at);
	size_t used = there < room - 1 ? there : room - 1;
	memcpy(text, bytes->at, used);
	text[used] = '\0';
}

/* "CPU: 0\nentries: 5\noverrun: 12\n... dropped events: 3\n". */
static void cpu_stat(struct ky_dat *dat, const struct ky_dat_bytes *bytes)
{
	char text[1024];
	option_text(bytes, text, sizeof(text));
	const char *cpu = strstr(text, "CPU: ");
	const char *overrun = strstr(text, "\noverrun: ");
	const char *dropped = strstr(text, "\ndropped events: ");
	if (!cpu)
		return;
	uint32_t number = (uint32_t)strtoul(cpu + 5, NULL, 10);
	uint64_t lost = overrun ? strtoull(overrun + 10, NULL, 10) : 0;
	if (lost)
		ky_put_lost(dat->trace, KY_TIME_NONE, KY_NONE, number, lost,
			    KY_LOSS_FTRACE_OVERWRITTEN);
	lost = dropped ? strtoull(dropped + 17, NULL, 10) : 0;
	if (lost)
		ky_put_lost(dat->trace, KY_TIME_NONE, KY_NONE, number, lost,
			    KY_LOSS_FTRACE_DROPPED);
}

static void set_timeline(struct ky_dat *dat, const char *clock)
{
	static const struct {
		const char *name;
		uint64_t clock;
	} clocks[] = {{"mono", KY_CLOCK_MONOTONIC},
		      {"mono_raw", KY_CLOCK_MONOTONIC_RAW},
		      {"boot", KY_CLOCK_BOOTTIME}};
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (strcmp(clock, clocks[i].name) == 0)
			dat->trace->clock = clocks[i].clock;
	dat->is_tsc = strcmp(clock, "x86-tsc") == 0 || strcmp(clock, "tsc2nsec") == 0;
	ky_put_metadata(dat->trace, "trace_clock", ky_string_z(dat->trace, clock));
}

/* "[local] global counter ...": the one in brackets. */
static void trace_clock(struct ky_dat *dat, const struct ky_dat_bytes *bytes)
{
	char text[256];
	option_text(bytes, text, sizeof(text));
	char *open = strchr(text, '[');
	char *close = open ? strchr(open, ']') : NULL;
	if (!close)
		return;
	*close = '\0';
	set_timeline(dat, open + 1);
}

static void name_machine(struct ky_dat *dat, const struct ky_dat_bytes *bytes)
{
	char text[512];
	option_text(bytes, text, sizeof(text));
	ky_ftrace_format_uname(dat->format, text, strlen(text));
	ky_put_metadata(dat->trace, "system_name", ky_string_z(dat->trace, text));
}

static void tsc_scale(struct ky_dat *dat, struct ky_dat_bytes *bytes)
{
	uint32_t mult = (uint32_t)ky_dat_number(bytes, 4);
	uint32_t shift = (uint32_t)ky_dat_number(bytes, 4);
	int64_t offset = (int64_t)ky_dat_number(bytes, 8);
	if (bytes->short_of)
		return;
	dat->mult = mult;
	dat->shift = shift;
	dat->tsc_offset = offset;
}

void ky_dat_option(struct ky_dat *dat, uint32_t id, struct ky_dat_bytes bytes)
{
	char text[64];
	switch (id) {
	case KY_DAT_OPTION_DATE:
	case KY_DAT_OPTION_OFFSET:
		option_text(&bytes, text, sizeof(text));
		dat->offset += (int64_t)strtoull(text, NULL, 0);
		break;
	case KY_DAT_OPTION_CPUSTAT:
		cpu_stat(dat, &bytes);
		break;
	case KY_DAT_OPTION_TRACECLOCK:
		trace_clock(dat, &bytes);
		break;
	case KY_DAT_OPTION_UNAME:
		name_machine(dat, &bytes);
		break;
	case KY_DAT_OPTION_CPUCOUNT:
		dat->cpus = (uint32_t)ky_dat_number(&bytes, 4);
		break;
	case KY_DAT_OPTION_VERSION:
		option_text(&bytes, text, sizeof(text));
		ky_put_metadata(dat->trace, "trace_cmd_version", ky_string_z(dat->trace, text));
		break;
	case KY_DAT_OPTION_TSC2NSEC:
		tsc_scale(dat, &bytes);
		break;
	default:
		break;
	}
}

void ky_dat_set_clock(struct ky_dat *dat)
{
	struct ky_ftrace_clock clock = {.offset = dat->offset};
	if (dat->mult && dat->is_tsc) {
		clock.mult = dat->mult;
		clock.shift = dat->shift;
		clock.offset = (int64_t)((uint64_t)dat->offset + (uint64_t)dat->tsc_offset);
	}
	ky_ftrace_format_clock(dat->format, &clock);
}

void ky_dat_lines(struct ky_dat *dat, const uint8_t *text, uint64_t bytes, uint64_t at)
{
	const char *line = (const char *)text;
	const char *end = line + bytes;
	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		ky_ftrace_text_line(dat->trace, line, (size_t)(stop - line),
				    at + (uint64_t)(line - (const char *)text));
		line = stop + 1;
	}
}
