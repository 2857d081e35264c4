/* SPDX-License-Identifier: MIT */
/* symbolizer.c: a file that is open, the names of its table of symbols, and the stubs through which it calls others. */
#include "process/symbolizer_parts.h"

#include "process/program_file.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- stubs ---- */

/*
 * The stubs through which a file calls functions of others have no symbols: the n-th stub belongs to the n-th relocation of
 * .rela.plt. Where there is .plt.sec (x86 with IBT) calls go there and .plt only resolves.
 */

#define STUBS_MAX (1u << 16)

/* Return the name of a relocation's symbol, or NULL. */
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

/* Find the first stub and the size of each; false when that is unknown for this machine. */
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

static void load_stubs(struct ky_symbolizer *elf)
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

static const char *stub_at(const struct ky_symbolizer *elf, uint64_t address)
{
	if (!elf->stubs_count || address < elf->stubs[0].address)
		return NULL;
	const uint64_t number = (address - elf->stubs[0].address) / elf->stubs[0].bytes;
	return number < elf->stubs_count ? elf->stubs[number].name : NULL;
}

static void free_stubs(struct ky_symbolizer *elf)
{
	for (uint32_t i = 0; i < elf->stubs_count; i++)
		free(elf->stubs[i].name);
	free(elf->stubs);
	elf->stubs = NULL;
	elf->stubs_count = 0;
}

/* ---- the file ---- */

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
	load_stubs(elf);
	return 0;
}

void ky_symbolizer_close(struct ky_symbolizer **out)
{
	struct ky_symbolizer *elf = *out;
	*out = NULL;
	if (!elf)
		return;
	ky_symbolizer_lines_free(elf);
	free_stubs(elf);
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

/* Find the address that a byte of the file is loaded at. */
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
	const char *name = stub_at(elf, address);
	if (!name)
		name = symbol_at(elf, address);
	if (!ky_symbolizer_lines(elf, address, name, function, context) && name)
		function(context, &(struct ky_symbolizer_function){.name = name});
}
