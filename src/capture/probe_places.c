/* SPDX-License-Identifier: MIT */
/*
 * probe_places.c: where the triggers' functions and lines are in a file. A file is looked through once, however many
 * processes have it mapped.
 *
 * In a program whose functions are patched (functrace.h) the first instructions of a function are executed elsewhere: a line
 * among them is taken for the function's entry, where the jump is.
 */
#include "capture/line_place.h"
#include "capture/probe_parts.h"
#include "capture/symbol_match.h"
#include "process/demangle.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* No more than so many bytes of a function are moved, but for a few that begin with very long instructions. */
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
	struct ky_probe_place *grown = realloc(file->places, (file->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[file->count++] = (struct ky_probe_place){trigger, offset};
	file->places = grown;
	return 0;
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
			ky_symbol_alike_note(&search->probes->alike[i], wanted,
					     readable ? readable : function->linked);
	}
	free(readable);
	return error;
}

static int find_line(struct search *search, const struct ky_program_file *program, uint32_t trigger)
{
	const struct ky_trigger *wanted = &search->probes->options.triggers[trigger];
	struct ky_probe_line *line = &search->probes->lines[trigger];
	struct ky_line_places places = {.before = line->before, .after = line->after};
	int error = 0;
	ky_line_places_find(&places, program, wanted->file, wanted->line);
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

int ky_probe_file_of(struct ky_probes *probes, int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return -errno;
	const int known = find_known(probes, status.st_dev, status.st_ino);
	if (known >= 0)
		return known;
	struct ky_probe_file *grown =
		realloc(probes->files, (probes->files_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	probes->files = grown;
	struct ky_probe_file file = {.device = status.st_dev, .inode = status.st_ino};
	const int error = look_through(probes, &file, fd);
	if (error) {
		free(file.places);
		return error;
	}
	grown[probes->files_count] = file;
	return (int)probes->files_count++;
}
