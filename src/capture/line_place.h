/* SPDX-License-Identifier: MIT */
/*
 * line_place.h: where the code of a source line is, by the line table that the compiler left (DWARF).
 *
 * One line may be in many places: inlined and instantiated functions, and what the optimiser spread. All addresses at
 * which a statement of the line begins are found, but of rows that follow each other only the first.
 */
#ifndef KY_CAPTURE_LINE_PLACE_H
#define KY_CAPTURE_LINE_PLACE_H

#include "process/program_file.h"

#define KY_LINE_PLACES_MAX 64u

struct ky_line_places {
	uint64_t offsets[KY_LINE_PLACES_MAX]; /* in the file */
	uint32_t count;
	uint32_t before,
		after;  /* without any: the nearest lines of that file that have code; 0: none */
	bool has_lines; /* the program has a line table */
	bool has_file;  /* and the source file is in it */
};

/* source is the end of a path, from any '/' on. Adds to places. */
void ky_line_places_find(struct ky_line_places *places, const struct ky_program_file *file,
			 const char *source, uint32_t line);

#endif
