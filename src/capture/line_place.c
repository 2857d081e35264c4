/* SPDX-License-Identifier: MIT */
/* line_place.c: see line_place.h. Units that do not name the source file are passed over without reading their lines. */
#include "capture/line_place.h"

#include <string.h>

static bool is_source(const char *path, const char *source)
{
	if (!path)
		return false;
	const size_t path_bytes = strlen(path), source_bytes = strlen(source);
	if (path_bytes < source_bytes || strcmp(path + path_bytes - source_bytes, source) != 0)
		return false;
	return path_bytes == source_bytes || source[0] == '/' ||
	       path[path_bytes - source_bytes - 1] == '/';
}

static bool names_source(Dwarf_Die *unit, const char *source)
{
	Dwarf_Files *files;
	size_t count;
	if (dwarf_getsrcfiles(unit, &files, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (is_source(dwarf_filesrc(files, i, NULL, NULL), source))
			return true;
	return false;
}

static void add_place(struct ky_line_places *places, const struct ky_program_file *file,
		      uint64_t address)
{
	uint64_t offset;
	if (places->count == KY_LINE_PLACES_MAX || !ky_program_file_offset(file, address, &offset))
		return;
	for (uint32_t i = 0; i < places->count; i++)
		if (places->offsets[i] == offset)
			return;
	places->offsets[places->count++] = offset;
}

static void note_nearest(struct ky_line_places *places, uint32_t has, uint32_t wanted)
{
	if (has < wanted && has > places->before)
		places->before = has;
	if (has > wanted && (!places->after || has < places->after))
		places->after = has;
}

static void look_into_unit(struct ky_line_places *places, const struct ky_program_file *file,
			   Dwarf_Die *unit, const char *source, uint32_t line)
{
	Dwarf_Lines *lines;
	size_t count;
	bool on_line = false;
	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		Dwarf_Addr address;
		int number;
		bool statement, ends;
		if (!row || dwarf_lineno(row, &number) != 0 || dwarf_lineaddr(row, &address) != 0 ||
		    dwarf_linebeginstatement(row, &statement) != 0 ||
		    dwarf_lineendsequence(row, &ends) != 0)
			continue;
		const bool here =
			!ends && number > 0 && is_source(dwarf_linesrc(row, NULL, NULL), source);
		if (here && statement && number > 0)
			note_nearest(places, (uint32_t)number, line);
		if (here && statement && (uint32_t)number == line && !on_line)
			add_place(places, file, address);
		on_line = here && (uint32_t)number == line && (statement || on_line);
	}
}

void ky_line_places_find(struct ky_line_places *places, const struct ky_program_file *file,
			 const char *source, uint32_t line)
{
	Elf *elf = ky_program_file_lines(file);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	if (!dwarf)
		return;
	places->has_lines = true;
	while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		if (!names_source(&die, source))
			continue;
		places->has_file = true;
		look_into_unit(places, file, &die, source, line);
	}
	dwarf_end(dwarf);
}
