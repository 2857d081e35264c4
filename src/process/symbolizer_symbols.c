/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_symbols.c: the functions in a file's table of symbols, or that of its debug file. They are sorted once: elfutils' own
 * dwfl_module_addrinfo() looks at all symbols for each address.
 */
#include "process/symbolizer_parts.h"

#include <gelf.h>
#include <string.h>

/* Symbols can share their names' bytes, so that long names cost time out of proportion to the file. */
#define NAME_BYTES_MAX 4096u

/* Functions, and labels of assembler code: not those that mark data in it ("$d"). */
static bool is_code(const GElf_Sym *symbol, const char *name)
{
	const int type = GELF_ST_TYPE(symbol->st_info);
	if (symbol->st_shndx == SHN_UNDEF)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && *name != '$' && *name != '.' && symbol->st_shndx != SHN_ABS;
}

/* Of several names for the same code, those that are seen outside the file and begin plainly are what people know. */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
	const size_t underscores = strspn(name, "_");
	const uint32_t bind = GELF_ST_BIND(symbol->st_info) == STB_GLOBAL  ? 2
			      : GELF_ST_BIND(symbol->st_info) == STB_LOCAL ? 1
									   : 0;
	return bind << 8 | (underscores < 255 ? 255 - (uint32_t)underscores : 0);
}

static void load(struct ky_symbolizer *elf)
{
	const int count = dwfl_module_getsymtab(elf->module);
	elf->symbols_made = true;
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(elf->module, i, &symbol, &address, NULL,
							   NULL, NULL);
		if (!name || !*name || !is_code(&symbol, name) ||
		    strnlen(name, NAME_BYTES_MAX) == NAME_BYTES_MAX)
			continue;
		/* Without its version: "pthread_mutex_lock@GLIBC_2.2.5". */
		if (!ky_symbol_table_add(&elf->symbols, address - elf->bias, symbol.st_size,
					 rank_of(&symbol, name), name, strcspn(name, "@")))
			break;
	}
	ky_symbol_table_sort(&elf->symbols);
}

const char *ky_symbolizer_symbol(struct ky_symbolizer *elf, uint64_t address)
{
	if (!elf->symbols_made)
		load(elf);
	const uint32_t name = ky_symbol_table_find(&elf->symbols, elf->strings, address);
	return name ? ky_strings_text(elf->strings, name) : NULL;
}
