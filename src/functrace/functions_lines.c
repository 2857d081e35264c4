/* SPDX-License-Identifier: MIT */
/*
 * functions_lines.c: see functions_parts.h. Walks once over the debug information: each unit's functions and their
 * declarations. Files are kept once for each unit, because most functions of a unit are from a few files.
 */
#include "functrace/functions_parts.h"

#include <dwarf.h>
#include <string.h>

struct lines {
	struct ky_functions_reading *reading;
	const char *last,
		*last_kept; /* the file of the function before: libdw's text, and our copy */
};

static const char *keep(struct lines *lines, const char *file)
{
	if (file != lines->last) {
		lines->last = file;
		lines->last_kept = ky_functions_text(lines->reading->own, file,
						     strnlen(file, KY_FUNCTIONS_NAME_MAX));
	}
	return lines->last_kept;
}

/* Return the file of a function. Units of DWARF 5 count files from 0, the unit's own: elfutils takes that for none. */
static const char *file_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Die unit;
	Dwarf_Files *files;
	const char *file = dwarf_decl_file(die);
	if (file || !dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
	    dwarf_formudata(&attribute, &number) != 0 || number != 0 ||
	    !dwarf_diecu(die, &unit, NULL, NULL) || dwarf_getsrcfiles(&unit, &files, NULL) != 0)
		return file;
	return dwarf_filesrc(files, 0, NULL, NULL);
}

static int take_function(Dwarf_Die *die, void *context)
{
	struct lines *lines = context;
	Dwarf_Addr address;
	int line;
	if (dwarf_entrypc(die, &address) != 0 && dwarf_lowpc(die, &address) != 0)
		return DWARF_CB_OK;
	struct ky_function *function = ky_functions_find(lines->reading->out, address);
	if (!function || function->file)
		return DWARF_CB_OK;
	const char *file = file_of(die);
	if (file && dwarf_decl_line(die, &line) == 0 && line > 0) {
		function->file = keep(lines, file);
		function->line = (uint32_t)line;
	}
	return DWARF_CB_OK;
}

/*
 * Report whether texts end: libdw reads them up to their zero byte and ignores the end of the section, so it must not
 * get files without that byte.
 */
static bool texts_end(Elf *elf)
{
	static const char *const names[] = {".debug_str", ".debug_line_str"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		GElf_Shdr head;
		Elf_Scn *section = ky_functions_section(elf, names[i], &head);
		const Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
		const bool is_packed = section && head.sh_flags & SHF_COMPRESSED;
		if (section && !is_packed &&
		    (!data || !data->d_size || ((const char *)data->d_buf)[data->d_size - 1]))
			return false;
	}
	return true;
}

void ky_functions_lines(struct ky_functions_reading *reading)
{
	struct lines lines = {.reading = reading};
	Elf *elf = ky_program_file_lines(reading->file);
	Dwarf *dwarf = elf && texts_end(elf) ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, inner;
	uint8_t type;
	while (dwarf && dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, &inner) == 0) {
		Dwarf_Die *of = type == DW_UT_skeleton ? &inner : &die;
		lines.last = NULL;
		if (dwarf_tag(of) == DW_TAG_compile_unit || dwarf_tag(of) == DW_TAG_partial_unit)
			dwarf_getfuncs(of, take_function, &lines, 0);
	}
	dwarf_end(dwarf);
}
