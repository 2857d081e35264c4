/* SPDX-License-Identifier: MIT */
/*
 * stack_starts.h: where the functions of a stripped file begin: the table by which unwinders search .eh_frame, which is in every file
 * that a linker made.
 *
 *   .eh_frame_hdr   version, encodings │ address of .eh_frame │ count │ begin, description │ begin, description ...   by address
 *
 * Only the encoding that linkers use is understood. The bytes are the file's and stay libelf's.
 */
#ifndef KY_FUNCTRACE_STACK_STARTS_H
#define KY_FUNCTRACE_STACK_STARTS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero is a file that has none. */
struct ky_stack_starts {
	const uint8_t *table;
	uint64_t count;
	uint64_t address; /* of the section: begins are counted from there */
};

void ky_stack_starts_read(struct ky_stack_starts *starts, Elf *elf);
/* Where the last one begins that begins not behind the address; false: none does. Addresses are the file's. */
bool ky_stack_starts_find(const struct ky_stack_starts *starts, uint64_t address, uint64_t *start);

#endif
