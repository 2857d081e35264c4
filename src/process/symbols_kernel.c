/* SPDX-License-Identifier: MIT */
/*
 * symbols_kernel.c: functions of the kernel, from kallsyms. Kernels are loaded at another address at each boot: the
 * address that a known symbol had in the recording says how far the functions have moved since.
 */
#include "process/symbols_parts.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KALLSYMS_BYTES_MAX (256u << 20)

/* Takes "ffffffff81000000 T _stext [module]"; the address, or 0 when it is no function. */
static uint64_t take_line(const char *line, const char *end, const char **name, size_t *bytes)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t address = 0;
	const char *p = line;
	for (; p < end && *p != ' '; p++) {
		const char *digit = strchr(digits, *p);
		if (!digit || !*p || p - line > 15)
			return 0;
		address = address << 4 | (uint64_t)(digit - digits);
	}
	if (end - p < 4 || !strchr("tTwW", p[1]) || p[2] != ' ')
		return 0;
	p += 3;
	const char *stop = p;
	while (stop < end && *stop != '\t' && *stop != ' ')
		stop++;
	*name = p;
	*bytes = (size_t)(stop - p);
	return *bytes ? address : 0;
}

/* Adds all functions; *reference gets the address of the symbol of that name when it is there. */
static void add_lines(struct ky_symbol_table *table, const char *text, size_t bytes,
		      const char *reference, uint64_t *address)
{
	const char *end = text + bytes;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		const char *name;
		size_t name_bytes;
		const uint64_t at = take_line(text, stop, &name, &name_bytes);
		if (at && reference && strlen(reference) == name_bytes &&
		    memcmp(reference, name, name_bytes) == 0)
			*address = at;
		if (at && !ky_symbol_table_add(table, at, 0, 0, name, name_bytes))
			return;
		text = stop + 1;
	}
}

void ky_symbols_add_kallsyms(struct ky_symbols *symbols, const char *text, size_t bytes)
{
	symbols->kernel_tried = true;
	add_lines(&symbols->kernel, text, bytes, NULL, NULL);
	ky_symbol_table_sort(&symbols->kernel);
}

/* Reports whether the running kernel, whose notes have its build id after "GNU", is the one. */
static bool is_running_kernel(const char *build_id)
{
	uint8_t notes[4096];
	const int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	const ssize_t count = fd < 0 ? -1 : read(fd, notes, sizeof(notes));
	if (fd >= 0)
		close(fd);
	for (ssize_t at = 0; at + 16 + 20 <= count; at += 4) {
		uint32_t head[3];
		memcpy(head, notes + at, sizeof(head));
		if (head[0] != 4 || head[1] != 20 || head[2] != 3 ||
		    memcmp(notes + at + 12, "GNU", 4) != 0)
			continue;
		char text[41];
		for (int i = 0; i < 20; i++)
			snprintf(text + 2 * i, 3, "%02x", notes[at + 16 + i]);
		return strcmp(text, build_id) == 0;
	}
	return false;
}

static bool is_running_release(const char *release)
{
	struct utsname names;
	return release && uname(&names) == 0 && strcmp(release, names.release) == 0;
}

/* Opens the recorded kernel's kallsyms; -1 when they are missing. */
static int open_kallsyms(const char *build_id, const char *release)
{
	char path[KY_SYMBOLS_PATH_BYTES];
	const char *home = getenv("HOME");
	if (build_id ? is_running_kernel(build_id) : is_running_release(release))
		return open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (!build_id || strspn(build_id, "0123456789abcdef") != strlen(build_id) || !home ||
	    snprintf(path, sizeof(path), "%s/.debug/[kernel.kallsyms]/%s/kallsyms", home,
		     build_id) >= (int)sizeof(path))
		return -1;
	return ky_symbols_open_plain(path);
}

void ky_symbols_kernel(struct ky_symbols *symbols, uint32_t build_id, const char *release,
		       const char *reference, uint64_t address)
{
	if (symbols->kernel_tried)
		return;
	symbols->kernel_tried = true;
	const int fd = open_kallsyms(build_id ? ky_strings_text(symbols->strings, build_id) : NULL,
				     release);
	if (fd < 0)
		return;
	size_t bytes;
	uint64_t now = 0;
	char *text = ky_file_read_fd(fd, KALLSYMS_BYTES_MAX, &bytes);
	close(fd);
	if (!text)
		return;
	add_lines(&symbols->kernel, text, bytes, reference, &now);
	free(text);
	if (!build_id && (!now || now != address))
		ky_symbol_table_free(&symbols->kernel);
	if (now && address)
		symbols->kernel_shift = address - now;
	ky_symbol_table_sort(&symbols->kernel);
}

uint32_t ky_symbols_in_kernel(struct ky_symbols *symbols, uint64_t address)
{
	return ky_symbol_table_find(&symbols->kernel, symbols->strings,
				    address - symbols->kernel_shift);
}
