/* SPDX-License-Identifier: MIT */
/*
 * program_file.h: an ELF file of a program: its functions and where their code lies in the file. Functions are those
 * of .symtab, of the one in the debug file of the same build id, or of .dynsym: the first of these that there is.
 */
#ifndef KY_PROCESS_PROGRAM_FILE_H
#define KY_PROCESS_PROGRAM_FILE_H

#include "process/proc_maps.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

struct ky_program_file;

#define KY_PROGRAM_FILE_ID_MAX 64u
/* Return how many bytes the file's build id has, at most KY_PROGRAM_FILE_ID_MAX, and where they are; 0: none. */
size_t ky_program_file_id(Elf *elf, const uint8_t **id);
/* Write a build id in hexadecimal, terminated. */
void ky_program_file_id_text(const uint8_t *id, size_t bytes,
			     char text[2 * KY_PROGRAM_FILE_ID_MAX + 1]);

/* Open a file, whose descriptor stays the caller's and is needed until close. 0, -ENOMEM, or -ENOEXEC: no ELF file. */
int ky_program_file_open(struct ky_program_file **file, int fd);
void ky_program_file_close(struct ky_program_file **file);

/* Find where the code at one of the file's addresses lies in it; false when there is no code. */
bool ky_program_file_offset(const struct ky_program_file *file, uint64_t address, uint64_t *offset);

/* Read the path of the loader that the program asks for; false when it asks for none. */
bool ky_program_file_loader(const struct ky_program_file *file, char *path, size_t room);

struct ky_program_function {
	const char *linked; /* its name as the file has it, until the call returns */
	uint64_t offset;
	uint64_t bytes;
};
/* Call back for each function until a call returns other than 0; return that, else 0. */
int ky_program_file_functions(const struct ky_program_file *file,
			      int (*each)(void *context,
					  const struct ky_program_function *function),
			      void *context);
/* Return the file that has line tables: this one or its debug file; NULL when neither has. */
Elf *ky_program_file_lines(const struct ky_program_file *file);
/* Return the file itself, or its debug file (NULL: none). They stay the file's. */
Elf *ky_program_file_elf(const struct ky_program_file *file);
Elf *ky_program_file_debug(const struct ky_program_file *file);
/*
 * Return the first section of a name, or, when that is NULL, of a type, that has bytes in the file; NULL: none, or
 * no file.
 */
Elf_Scn *ky_program_file_section(Elf *elf, uint32_t type, const char *name, GElf_Shdr *head);
/* Return the section with bytes in the file behind one, or the first behind NULL, with its name, which may be NULL. */
Elf_Scn *ky_program_file_next_section(Elf *elf, Elf_Scn *section, GElf_Shdr *head,
				      const char **name);

/* ---- where a process has it ---- */

struct ky_program_map {
	pid_t pid;
	struct ky_proc_mapping *mappings; /* by address: the program comes first, as a rule */
	uint32_t count, room;
};

/* 0; -ESRCH, -EACCES ... */
int ky_program_map_read(struct ky_program_map *map, pid_t pid);
void ky_program_map_free(struct ky_program_map *map);

/* Report whether an earlier mapping is of the same file. */
bool ky_program_map_is_again(const struct ky_program_map *map, uint32_t index);
/* Return the address of a byte of the file in that process; 0: it is not mapped as code. */
uint64_t ky_program_map_address(const struct ky_program_map *map, uint64_t device, uint64_t inode,
				uint64_t offset);

/* ---- its libraries ---- */

/* Call back with each path; never for programs that need no loader, or whose loader does not answer. */
void ky_program_libraries(const char *program, void (*each)(void *context, const char *path),
			  void *context);

/*
 * Report whether only root could have made the program's loader, or it has none. The program names its loader, so
 * asking any other one means running the program.
 */
bool ky_program_libraries_are_safe(const char *program);

#endif
