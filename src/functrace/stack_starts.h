/* SPDX-License-Identifier: MIT */
/*
 * stack_starts.h: the starts of the functions of a stripped file, from the table by which unwinders search .eh_frame,
 * which is in every file that a linker made.
 *
 *   .eh_frame_hdr   version, encodings │ address of .eh_frame │ count │ start, description │ start, description ...   by address
 *
 * Only the encoding that linkers use is understood. The bytes are the file's and stay libelf's.
 */
#ifndef KY_FUNCTRACE_STACK_STARTS_H
#define KY_FUNCTRACE_STACK_STARTS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero: a file without the table. */
struct ky_stack_starts {
	const uint8_t *table;
	uint64_t count;
	uint64_t address; /* of the section: starts are relative to it */
};

void ky_stack_starts_read(struct ky_stack_starts *starts, Elf *elf);
/* Return the last start that is not behind the address; false: none. Addresses are the file's. */
bool ky_stack_starts_find(const struct ky_stack_starts *starts, uint64_t address, uint64_t *start);

#endif
