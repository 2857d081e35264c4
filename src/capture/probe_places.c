/* SPDX-License-Identifier: MIT */
/*
 * probe_places.c: where the triggers' functions and lines are in a file. A file is searched once,
 * however many processes have it mapped.
 *
 * In a program whose functions are patched (functrace.h), the first instructions of a function run
 * elsewhere: a line among them counts as the function's entry, where the jump is.
 */
#include "capture/probe_state.h"

#include "base/array.h"
#include "process/demangle.h"
#include "process/program_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * ---- lines ----
 *
 * The line table that the compiler left (DWARF) says where the code of a line is. One line may be in many places: inlined
 * and instantiated functions, and what the optimiser spread. All addresses at which a statement of the line begins are
 * found, but of rows that follow each other only the first. Units that do not name the file are skipped.
 */

#define LINE_PLACES_MAX 64u

struct line_places {
	uint64_t offsets[LINE_PLACES_MAX]; /* in the file */
	uint32_t count;
	/* Without any: the nearest lines of that file that have code; 0: none. */
	uint32_t before, after;
	bool has_lines; /* the program has a line table */
	bool has_file;  /* and the file is in it */
};

static bool is_file(const char *path, const char *wanted)
{
	if (!path)
		return false;
	const size_t path_bytes = strlen(path), wanted_bytes = strlen(wanted);
	if (path_bytes < wanted_bytes || strcmp(path + path_bytes - wanted_bytes, wanted) != 0)
		return false;
	return path_bytes == wanted_bytes || wanted[0] == '/' ||
	       path[path_bytes - wanted_bytes - 1] == '/';
}

static bool names_file(Dwarf_Die *unit, const char *wanted)
{
	Dwarf_Files *files;
	size_t count;
	if (dwarf_getsrcfiles(unit, &files, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (is_file(dwarf_filesrc(files, i, NULL, NULL), wanted))
			return true;
	return false;
}

static void add_line_place(struct line_places *places, const struct ky_program_file *file,
			   uint64_t address)
{
	uint64_t offset;
	if (places->count == LINE_PLACES_MAX || !ky_program_file_offset(file, address, &offset))
		return;
	for (uint32_t i = 0; i < places->count; i++)
		if (places->offsets[i] == offset)
			return;
	places->offsets[places->count++] = offset;
}

static void note_nearest(struct line_places *places, uint32_t has, uint32_t wanted)
{
	if (has < wanted && has > places->before)
		places->before = has;
	if (has > wanted && (!places->after || has < places->after))
		places->after = has;
}

static void look_into_unit(struct line_places *places, const struct ky_program_file *file,
			   Dwarf_Die *unit, const char *wanted, uint32_t line)
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
			!ends && number > 0 && is_file(dwarf_linesrc(row, NULL, NULL), wanted);
		if (here && statement && number > 0)
			note_nearest(places, (uint32_t)number, line);
		if (here && statement && (uint32_t)number == line && !on_line)
			add_line_place(places, file, address);
		on_line = here && (uint32_t)number == line && (statement || on_line);
	}
}

static void find_places(struct line_places *places, const struct ky_program_file *file,
			const char *wanted, uint32_t line)
{
	Elf *elf = ky_program_file_lines(file);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	if (!dwarf)
		return;
	places->has_lines = true;
	while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		if (!names_file(&die, wanted))
			continue;
		places->has_file = true;
		look_into_unit(places, file, &die, wanted, line);
	}
	dwarf_end(dwarf);
}

/* ---- files ---- */

/*
 * The most bytes of a function that are moved, except for a few that begin with very long
 * instructions.
 */
#define MOVED_BYTES 16u

struct search {
	struct ky_probes *probes;
	struct ky_probe_file *file;
};

static int add_place(struct ky_probe_file *file, uint32_t trigger, uint64_t offset)
{
	uint32_t of_trigger = 0;
	for (uint32_t i = 0; i < file->count; i++) {
		if (file->places[i].trigger != trigger)
			continue;
		if (file->places[i].offset == offset || ++of_trigger == KY_PROBE_PLACES_MAX)
			return 0;
	}
	return KY_ARRAY_ADD(file->places, file->count, file->room,
			    (struct ky_probe_place){trigger, offset})
		       ? 0
		       : -ENOMEM;
}

static int match_function(void *context, const struct ky_program_function *function)
{
	const struct search *search = context;
	const struct ky_probes_options *options = &search->probes->options;
	char *readable = ky_demangle(function->linked);
	int error = 0;
	for (uint32_t i = 0; !error && i < options->count; i++) {
		const char *wanted = options->triggers[i].symbol;
		if (options->triggers[i].kind != KY_TRIGGER_SYMBOL)
			continue;
		if (ky_symbol_match(wanted, function->linked, readable))
			error = add_place(search->file, i, function->offset);
		else
			ky_symbol_match_alike_note(&search->probes->alike[i], wanted,
						   readable ? readable : function->linked);
	}
	free(readable);
	return error;
}

static int find_line(struct search *search, const struct ky_program_file *program, uint32_t trigger)
{
	const struct ky_trigger *wanted = &search->probes->options.triggers[trigger];
	struct ky_probe_line *line = &search->probes->lines[trigger];
	struct line_places places = {.before = line->before, .after = line->after};
	int error = 0;
	find_places(&places, program, wanted->file, wanted->line);
	line->before = places.before;
	line->after = places.after;
	line->has_lines |= places.has_lines;
	line->has_file |= places.has_file;
	for (uint32_t i = 0; !error && i < places.count; i++)
		error = add_place(search->file, trigger, places.offsets[i]);
	return error;
}

static int move_to_entry(void *context, const struct ky_program_function *function)
{
	const struct search *search = context;
	for (uint32_t i = 0; i < search->file->count; i++) {
		struct ky_probe_place *place = &search->file->places[i];
		if (place->offset > function->offset &&
		    place->offset - function->offset < MOVED_BYTES)
			place->offset = function->offset;
	}
	return 0;
}

static int look_through(struct ky_probes *probes, struct ky_probe_file *file, int fd)
{
	struct search search = {probes, file};
	struct ky_program_file *program;
	int error = ky_program_file_open(&program, fd);
	if (error)
		return error == -ENOEXEC ? 0 : error;
	error = ky_program_file_functions(program, match_function, &search);
	for (uint32_t i = 0; !error && i < probes->options.count; i++)
		if (probes->options.triggers[i].kind == KY_TRIGGER_LINE)
			error = find_line(&search, program, i);
	if (!error && probes->options.patched)
		error = ky_program_file_functions(program, move_to_entry, &search);
	ky_program_file_close(&program);
	return error;
}

static int find_known(const struct ky_probes *probes, uint64_t device, uint64_t inode)
{
	for (uint32_t i = 0; i < probes->files_count; i++)
		if (probes->files[i].device == device && probes->files[i].inode == inode)
			return (int)i;
	return -1;
}

int ky_probe_places_find(struct ky_probes *probes, int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return -errno;
	const int known = find_known(probes, status.st_dev, status.st_ino);
	if (known >= 0)
		return known;
	struct ky_probe_file file = {.device = status.st_dev, .inode = status.st_ino};
	int error = look_through(probes, &file, fd);
	if (!error && !KY_ARRAY_ADD(probes->files, probes->files_count, probes->files_room, file))
		error = -ENOMEM;
	if (!error)
		return (int)probes->files_count - 1;
	KY_ARRAY_FREE(file.places, file.room);
	return error;
}
