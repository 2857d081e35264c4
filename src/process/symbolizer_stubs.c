/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_stubs.c: the stubs through which a file calls functions of others. They have no symbols: the n-th stub belongs to
 * the n-th relocation of .rela.plt. Where there is .plt.sec (x86 with IBT) calls go there and .plt only resolves.
 */
#include "process/symbolizer_parts.h"

#include "process/demangle.h"
#include "process/program_file.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUBS_MAX (1u << 16)

/* Returns the name of a relocation's symbol, or NULL. */
static const char *name_of(Elf *elf, Elf_Data *relocations, int number, Elf_Scn *symbols,
			   const GElf_Shdr *symbols_head)
{
	GElf_Rela relocation;
	GElf_Sym symbol;
	Elf_Data *data = elf_getdata(symbols, NULL);
	if (!data || !gelf_getrela(relocations, number, &relocation) ||
	    !gelf_getsym(data, (int)GELF_R_SYM(relocation.r_info), &symbol))
		return NULL;
	const char *name = elf_strptr(elf, symbols_head->sh_link, symbol.st_name);
	return name && *name && strnlen(name, NAME_BYTES_MAX) < NAME_BYTES_MAX ? name : NULL;
}

static char *stub_name(const char *linked)
{
	char *name = ky_demangle(linked);
	char *text = NULL;
	if (asprintf(&text, "%s@plt", name ? name : linked) < 0)
		text = NULL;
	free(name);
	return text;
}

/* Finds the first stub and the size of each; false when that is unknown for this machine. */
static bool stubs_at(Elf *elf, uint64_t *first, uint64_t *bytes)
{
	GElf_Shdr head;
	GElf_Ehdr file;
	if (!gelf_getehdr(elf, &file))
		return false;
	if (ky_program_file_section(elf, 0, ".plt.sec", &head)) {
		*first = head.sh_addr;
		*bytes = 16;
		return true;
	}
	if (!ky_program_file_section(elf, 0, ".plt", &head))
		return false;
	*bytes = 16;
	*first = head.sh_addr + (file.e_machine == EM_AARCH64 ? 32 : 16);
	return file.e_machine == EM_X86_64 || file.e_machine == EM_386 ||
	       file.e_machine == EM_AARCH64;
}

void ky_symbolizer_stubs_load(struct ky_symbolizer *elf)
{
	GElf_Shdr head, symbols_head;
	uint64_t first, bytes;
	Elf_Scn *section = ky_program_file_section(elf->elf, 0, ".rela.plt", &head);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	Elf_Scn *symbols = data ? elf_getscn(elf->elf, head.sh_link) : NULL;
	if (!symbols || !head.sh_entsize || !gelf_getshdr(symbols, &symbols_head) ||
	    !stubs_at(elf->elf, &first, &bytes))
		return;
	size_t count = data->d_size / head.sh_entsize;
	count = count < STUBS_MAX ? count : STUBS_MAX;
	elf->stubs = calloc(count ? count : 1, sizeof(*elf->stubs));
	for (size_t i = 0; elf->stubs && i < count; i++) {
		const char *name = name_of(elf->elf, data, (int)i, symbols, &symbols_head);
		elf->stubs[elf->stubs_count++] =
			(struct ky_symbolizer_stub){.address = first + i * bytes,
						    .bytes = bytes,
						    .name = name ? stub_name(name) : NULL};
	}
}

const char *ky_symbolizer_stub(const struct ky_symbolizer *elf, uint64_t address)
{
	if (!elf->stubs_count || address < elf->stubs[0].address)
		return NULL;
	const uint64_t number = (address - elf->stubs[0].address) / elf->stubs[0].bytes;
	return number < elf->stubs_count ? elf->stubs[number].name : NULL;
}

void ky_symbolizer_stubs_free(struct ky_symbolizer *elf)
{
	for (uint32_t i = 0; i < elf->stubs_count; i++)
		free(elf->stubs[i].name);
	free(elf->stubs);
	elf->stubs = NULL;
	elf->stubs_count = 0;
}
