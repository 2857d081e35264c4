/* SPDX-License-Identifier: MIT */
/* symbolizer.c: a file that is open, and the names of its table of symbols. */
#include "process/symbolizer_parts.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * elfutils looks where Debian puts debug files. It would also ask servers on the network (DEBUGINFOD_URLS), for minutes: not
 * at the end of a capture.
 */
static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			   const char *file, const char *link, GElf_Word checksum, char **found)
{
	unsetenv("DEBUGINFOD_URLS");
	return dwfl_standard_find_debuginfo(module, data, name, base, file, link, checksum, found);
}

static char *debug_path;
static const Dwfl_Callbacks callbacks = {
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debug_path,
};

int ky_symbolizer_open(struct ky_symbolizer **out, struct ky_strings *strings, const char *path,
		       int fd, uint64_t deadline_ns)
{
	struct ky_symbolizer *elf = calloc(1, sizeof(*elf));
	GElf_Addr bias = 0;
	*out = elf;
	if (!elf) {
		close(fd);
		return -ENOMEM;
	}
	elf->strings = strings;
	elf->deadline_ns = deadline_ns;
	elf->dwfl = dwfl_begin(&callbacks);
	if (elf->dwfl) {
		dwfl_report_begin(elf->dwfl);
		elf->module = dwfl_report_offline(elf->dwfl, path, path, fd);
		dwfl_report_end(elf->dwfl, NULL, NULL);
	}
	if (!elf->module)
		close(fd);
	else
		elf->elf = dwfl_module_getelf(elf->module, &bias);
	if (!elf->elf) {
		ky_symbolizer_close(out);
		return -EBADMSG;
	}
	elf->bias = bias;
	ky_symbolizer_stubs_load(elf);
	return 0;
}

void ky_symbolizer_close(struct ky_symbolizer **out)
{
	struct ky_symbolizer *elf = *out;
	*out = NULL;
	if (!elf)
		return;
	ky_symbolizer_lines_free(elf);
	ky_symbolizer_stubs_free(elf);
	ky_symbol_table_free(&elf->symbols);
	dwfl_end(elf->dwfl);
	free(elf);
}

void ky_symbolizer_until(struct ky_symbolizer *elf, uint64_t deadline_ns)
{
	elf->deadline_ns = deadline_ns;
}

bool ky_symbolizer_late(const struct ky_symbolizer *elf)
{
	return elf->late;
}

/* ---- names ---- */

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

/* They are sorted once: elfutils' own dwfl_module_addrinfo() looks at all symbols for each address. */
static void load_symbols(struct ky_symbolizer *elf)
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
					 ky_symbol_table_rank(GELF_ST_BIND(symbol.st_info), name),
					 name, strcspn(name, "@")))
			break;
	}
	ky_symbol_table_sort(&elf->symbols);
}

static const char *symbol_at(struct ky_symbolizer *elf, uint64_t address)
{
	if (!elf->symbols_made)
		load_symbols(elf);
	const uint32_t name = ky_symbol_table_find(&elf->symbols, elf->strings, address);
	return name ? ky_strings_text(elf->strings, name) : NULL;
}

/* Finds the address that a byte of the file is loaded at. */
static bool address_of(const struct ky_symbolizer *elf, uint64_t offset, uint64_t *address)
{
	size_t count;
	if (elf_getphdrnum(elf->elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr head;
		if (!gelf_getphdr(elf->elf, (int)i, &head) || head.p_type != PT_LOAD ||
		    offset < head.p_offset || offset - head.p_offset >= head.p_filesz)
			continue;
		*address = offset - head.p_offset + head.p_vaddr;
		return true;
	}
	return false;
}

void ky_symbolizer_at(struct ky_symbolizer *elf, uint64_t offset, ky_symbolizer_fn function,
		      void *context)
{
	uint64_t address;
	if (!address_of(elf, offset, &address))
		return;
	const char *name = ky_symbolizer_stub(elf, address);
	if (!name)
		name = symbol_at(elf, address);
	if (!ky_symbolizer_lines(elf, address, name, function, context) && name)
		function(context, &(struct ky_symbolizer_function){.name = name});
}
