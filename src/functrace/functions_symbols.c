/* SPDX-License-Identifier: MIT */
/*
 * functions_symbols.c: see functions_parts.h. Makes the list of functions: the first table of symbols that exists,
 * and starts in .eh_frame that no symbol covers. Of several names for one address, the one that other files see and
 * use wins, then the shortest. A symbol that .eh_frame shows to be a piece of a function is left out.
 */
#include "base/array.h"
#include "base/file.h"
#include "functrace/functions_parts.h"

#include "process/symbol_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MAX (4u << 20)

static struct ky_function *add(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	struct ky_function *function =
		out->count < FUNCTIONS_MAX ? KY_ARRAY_NEW(out->functions, out->count, reading->room)
					   : NULL;
	if (!function)
		reading->without_memory = true;
	return function;
}

/* Report whether a library keeps the name for itself ("_IO_puts"), unless a compiler made it so. */
static bool is_inner_name(const char *name)
{
	return name[0] == '_' && name[1] != 'Z' && name[1] != 'R';
}

/* Return how good a name is: the less the better. Until the list is made, `line` holds it. */
static uint32_t worth_of(unsigned binding, const char *name, size_t bytes)
{
	const unsigned weak = binding == STB_WEAK;
	const unsigned local = binding == STB_LOCAL;
	return local << 18 | (uint32_t)is_inner_name(name) << 17 | weak << 16 | (uint32_t)bytes;
}

/*
 * Report whether it is one of gcc's pieces of functions that are rarely needed: jumped to, never called. clang's
 * (".cold.1") are called.
 */
static bool is_piece(const char *name, size_t bytes)
{
	return bytes > 5 && memcmp(name + bytes - 5, ".cold", 5) == 0;
}

static bool is_entry(struct ky_functions_reading *reading, uint64_t address)
{
	const struct ky_functions_fde *fde = ky_functions_cfi_at(reading, address);
	return !fde || ky_functions_cfi_row(reading, fde, address).is_entry;
}

static void take_symbol(struct ky_functions_reading *reading, const GElf_Sym *symbol,
			const char *name)
{
	const unsigned type = GELF_ST_TYPE(symbol->st_info);
	uint64_t left;
	size_t bytes = name ? strnlen(name, KY_FUNCTIONS_NAME_MAX) : 0;
	if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    bytes == 0 || bytes == KY_FUNCTIONS_NAME_MAX || is_piece(name, bytes) ||
	    !ky_functions_bytes(reading->own, symbol->st_value, true, &left) ||
	    ky_functions_in(&reading->plt, symbol->st_value) ||
	    !is_entry(reading, symbol->st_value))
		return;
	const char *version = memchr(name + 1, '@', bytes - 1);
	bytes = version ? (size_t)(version - name) : bytes;
	const char *linked = ky_functions_text(reading->own, name, bytes);
	struct ky_function *function = linked ? add(reading) : NULL;
	if (!function)
		return;
	function->address = symbol->st_value;
	function->bytes = symbol->st_size < left ? symbol->st_size : left;
	function->linked = linked;
	function->line = worth_of(GELF_ST_BIND(symbol->st_info), linked, bytes);
}

/* Take places that are known by name and matter to the engines. */
static void take_place(struct ky_functions *out, const GElf_Sym *symbol, const char *name)
{
	const struct {
		const char *name;
		uint64_t *place;
	} places[] = {{"_Unwind_Find_FDE", &out->find_fde},
		      {"_dl_debug_state", &out->debug_state},
		      {"prctl", &out->call_prctl},
		      {"syscall", &out->call_syscall},
		      {"arch_prctl", &out->call_arch_prctl},
		      {"__cyg_profile_func_enter", &out->cyg_enter},
		      {"__cyg_profile_func_exit", &out->cyg_exit}};
	if (!name || !strchr("_aps", name[0]))
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const size_t bytes = strlen(places[i].name);
		if (strncmp(name, places[i].name, bytes) != 0 ||
		    (name[bytes] && name[bytes] != '@'))
			continue;
		if (symbol->st_shndx != SHN_UNDEF)
			*places[i].place = symbol->st_value;
	}
}

static bool begins(const char *name, const char *beginning)
{
	return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* Take what a symbol shows about the unwinder that the file uses. */
static void take_unwinder(struct ky_functions *out, const GElf_Sym *symbol, const char *name)
{
	if (!name)
		return;
	if (symbol->st_shndx == SHN_UNDEF) {
		out->shares_unwinder |= begins(name, "_Unwind_") || strstr(name, "_personality_v");
		out->compares_frames |= begins(name, "_Unwind_GetCFA");
		return;
	}
	out->other_unwinder |=
		begins(name, "__unw_") || begins(name, "_Ux86_64_") || begins(name, "_ULx86_64_");
	out->compares_frames |= begins(name, "lj_err_unwind") || begins(name, "lj_vm_unwind");
	/* The C library loads libgcc's when it needs one. */
	out->shares_unwinder |= begins(name, "__libc_start_main");
}

static bool each_symbol(struct ky_functions_reading *reading, Elf *elf, uint32_t type,
			bool functions)
{
	GElf_Shdr head;
	Elf_Scn *section = ky_program_file_section(elf, type, NULL, &head);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	const size_t count = data && head.sh_entsize ? data->d_size / head.sh_entsize : 0;
	for (size_t i = 1; i < count && i < INT32_MAX; i++) {
		GElf_Sym symbol;
		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		const char *name = elf_strptr(elf, head.sh_link, symbol.st_name);
		take_place(reading->out, &symbol, name);
		take_unwinder(reading->out, &symbol, name);
		if (functions)
			take_symbol(reading, &symbol, name);
	}
	return section != NULL;
}

static int by_address_then_worth(const void *a, const void *b)
{
	const struct ky_function *left = a;
	const struct ky_function *right = b;
	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	return strcmp(left->linked, right->linked);
}

/* Keep one function for each address: with the best name, and the largest size among them. */
static void sort_and_join(struct ky_functions *out)
{
	uint32_t kept = 0;
	if (out->count)
		qsort(out->functions, out->count, sizeof(*out->functions), by_address_then_worth);
	for (uint32_t i = 0; i < out->count; i++) {
		struct ky_function *last = kept ? &out->functions[kept - 1] : NULL;
		if (!last || last->address != out->functions[i].address)
			out->functions[kept++] = out->functions[i];
		else if (last->bytes < out->functions[i].bytes)
			last->bytes = out->functions[i].bytes;
	}
	out->count = kept;
}

/* Give those without a size the one of .eh_frame, otherwise the distance to the next. */
static void give_sizes(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	for (uint32_t i = 0; i < out->count; i++) {
		struct ky_function *function = &out->functions[i];
		uint64_t left;
		if (function->bytes)
			continue;
		const struct ky_functions_fde *fde =
			ky_functions_cfi_at(reading, function->address);
		ky_functions_bytes(reading->own, function->address, true, &left);
		if (fde)
			left = fde->bytes - (function->address - fde->address);
		else if (i + 1 < out->count &&
			 out->functions[i + 1].address - function->address < left)
			left = out->functions[i + 1].address - function->address;
		function->bytes = left;
	}
}

static void add_fde(struct ky_functions_reading *reading, const struct ky_functions_fde *fde)
{
	char name[32];
	const int bytes = snprintf(name, sizeof(name), "0x%" PRIx64, fde->address);
	const char *linked = ky_functions_text(reading->own, name, (size_t)bytes);
	struct ky_function *function = linked ? add(reading) : NULL;
	if (!function)
		return;
	function->address = fde->address;
	function->bytes = fde->bytes;
	function->linked = linked;
	function->line = UINT32_MAX;
}

/* Add starts in .eh_frame. Both lists are sorted by address: one walk. `covered` is the end of the functions so far. */
static void add_fdes(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	const uint32_t count = out->count;
	uint64_t covered = 0;
	uint32_t at = 0;
	for (uint32_t i = 0; i < reading->fdes_count && !reading->without_memory; i++) {
		const struct ky_functions_fde *fde = &reading->fdes[i];
		for (; at < count && out->functions[at].address <= fde->address; at++) {
			const uint64_t end = out->functions[at].address + out->functions[at].bytes;
			covered = end > covered ? end : covered;
		}
		const bool again = i && reading->fdes[i - 1].address == fde->address;
		if (fde->address >= covered && !again &&
		    !ky_functions_in(&reading->plt, fde->address) &&
		    ky_functions_cfi_row(reading, fde, fde->address).is_entry)
			add_fde(reading, fde);
	}
}

/* Return "sqlite3+0x8e70": nameless functions of several files must not look like one. */
static const char *name_by_place(struct ky_functions_reading *reading, const char *linked)
{
	char name[320];
	const int bytes =
		snprintf(name, sizeof(name), "%.255s+%s", ky_file_name(reading->out->path), linked);
	return ky_functions_text(reading->own, name, (size_t)bytes);
}

static const char *readable_name(struct ky_functions_reading *reading, const char *linked)
{
	if (linked[0] == '0')
		return name_by_place(reading, linked);
	char *readable = linked[0] == '_' ? ky_demangle(linked) : NULL;
	const char *name =
		readable ? ky_functions_text(reading->own, readable, strlen(readable)) : NULL;
	free(readable);
	return name;
}

static void give_names(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	for (uint32_t i = 0; i < out->count; i++) {
		struct ky_function *function = &out->functions[i];
		const char *name = readable_name(reading, function->linked);
		function->name = name ? name : function->linked;
		function->line = 0;
	}
}

/* Read the tables: the first that exists has the functions; .dynsym is also searched for the places. */
static void each_table(struct ky_functions_reading *reading)
{
	const char **from = &reading->out->names_from;
	if (each_symbol(reading, reading->elf, SHT_SYMTAB, true))
		*from = ".symtab";
	else if (each_symbol(reading, reading->debug, SHT_SYMTAB, true))
		*from = "debug file";
	if (each_symbol(reading, reading->elf, SHT_DYNSYM, !*from) && !*from)
		*from = ".dynsym";
}

void ky_functions_symbols(struct ky_functions_reading *reading)
{
	each_table(reading);
	sort_and_join(reading->out);
	give_sizes(reading);
	add_fdes(reading);
	sort_and_join(reading->out);
	give_names(reading);
}

struct ky_function *ky_functions_find(const struct ky_functions *functions, uint64_t address)
{
	const uint32_t count =
		KY_ARRAY_UPTO(functions->functions, functions->count, address, address);
	struct ky_function *last = count ? &functions->functions[count - 1] : NULL;
	return last && last->address == address ? last : NULL;
}
