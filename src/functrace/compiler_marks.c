/* SPDX-License-Identifier: MIT */
/*
 * compiler_marks.c: see functions_parts.h. Marks that compilers leave for tracers, and code that must not be traced:
 *
 *   __patchable_function_entries   addresses of nops: -fpatchable-function-entry. In files that can be loaded anywhere they
 *                                  are in the relocations
 *   slots of the GOT               -finstrument-functions: calls of __cyg_profile_func_enter and _exit
 *   xray_instr_map                 clang -fxray-instrument: the address and kind of each sled
 *   Builtins_*                     V8's own code, which reads return addresses; in stripped files it is known by its size
 *                                  and by not being in .eh_frame
 *   .gopclntab                     Go, which moves its stacks
 *   caml_start_program             OCaml, whose collector finds the values on the stack by return addresses
 */
#include "functrace/functions_parts.h"

#include "functrace/instruction.h"

#include <string.h>

#define XRAY_ENTRY_BYTES 32u
#define XRAY_SLED_BYTES 11u
#define V8_BUILTINS_MIN 64u
/* V8's have 1.6 MB; OpenSSL has 150 kB of such assembly */
#define FOREIGN_BYTES_MIN (512u * 1024)

static uint64_t read_word(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

typedef void (*relocation_fn)(void *context, const GElf_Rela *relocation, const GElf_Shdr *head);

static void each_relocation(const struct ky_functions_reading *reading, relocation_fn each,
			    void *context)
{
	uint32_t sections = 0;
	for (Elf_Scn *section = elf_nextscn(reading->elf, NULL); section;
	     section = elf_nextscn(reading->elf, section)) {
		GElf_Shdr head;
		if (!gelf_getshdr(section, &head) || head.sh_type != SHT_RELA ||
		    !(head.sh_flags & SHF_ALLOC) || ++sections > KY_FUNCTIONS_SECTIONS_MAX)
			continue;
		Elf_Data *data = elf_getdata(section, NULL);
		const size_t count = data ? data->d_size / sizeof(Elf64_Rela) : 0;
		for (size_t i = 0; i < count && i < INT32_MAX; i++) {
			GElf_Rela one;
			if (gelf_getrela(data, (int)i, &one))
				each(context, &one, &head);
		}
	}
}

struct relative {
	void (*each)(void *context, uint64_t where, uint64_t what);
	void *context;
};

static void take_relative(void *context, const GElf_Rela *one, const GElf_Shdr *head)
{
	const struct relative *relative = context;
	(void)head;
	if (GELF_R_TYPE(one->r_info) == R_X86_64_RELATIVE)
		relative->each(relative->context, one->r_offset, (uint64_t)one->r_addend);
}

void ky_compiler_marks_relocations(const struct ky_functions_reading *reading,
				   void (*each)(void *context, uint64_t where, uint64_t what),
				   void *context)
{
	struct relative relative = {each, context};
	each_relocation(reading, take_relative, &relative);
}

/* ---- functions of other files, and -finstrument-functions ---- */

struct slots {
	const struct ky_functions_reading *reading;
	ky_functions_slot_fn each;
	void *context;
};

static void take_slot(void *context, const GElf_Rela *one, const GElf_Shdr *head)
{
	const struct slots *slots = context;
	Elf *elf = slots->reading->elf;
	const uint64_t type = GELF_R_TYPE(one->r_info);
	Elf_Scn *table = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT
				 ? elf_getscn(elf, head->sh_link)
				 : NULL;
	GElf_Shdr symbols;
	GElf_Sym symbol;
	if (!table || !gelf_getshdr(table, &symbols) ||
	    !gelf_getsym(elf_getdata(table, NULL), (int)GELF_R_SYM(one->r_info), &symbol))
		return;
	const char *name = elf_strptr(elf, symbols.sh_link, symbol.st_name);
	if (name)
		slots->each(slots->context, name, one->r_offset);
}

void ky_compiler_marks_slots(const struct ky_functions_reading *reading, ky_functions_slot_fn each,
			     void *context)
{
	struct slots slots = {reading, each, context};
	each_relocation(reading, take_slot, &slots);
}

static void take_cyg_slot(void *context, const char *name, uint64_t address)
{
	struct ky_functions *out = context;
	const bool is_exit = strcmp(name, "__cyg_profile_func_exit") == 0;
	if (!is_exit && strcmp(name, "__cyg_profile_func_enter") != 0)
		return;
	out->calls_cyg = true;
	if (out->cyg_slots_count < KY_CYG_SLOTS_MAX)
		out->cyg_slots[out->cyg_slots_count++] = (struct ky_cyg_slot){address, is_exit};
}

static void find_cyg(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	ky_compiler_marks_slots(reading, take_cyg_slot, out);
	/* it is only linked in when it is called */
	out->calls_cyg |= out->is_static && out->cyg_enter;
	if (out->cyg_enter == out->cyg_exit)
		out->cyg_enter = out->cyg_exit = 0;
}

/* ---- nops and sleds ---- */

static void mark(struct ky_functions_reading *reading, uint64_t function_at, uint64_t at,
		 enum ky_function_how how, uint8_t bytes)
{
	struct ky_function *function = ky_functions_find(reading->out, function_at);
	if (!function || at < function_at || at - function_at > 16 ||
	    at - function_at + bytes > function->bytes)
		return;
	function->how = (uint8_t)how;
	function->at = (uint8_t)(at - function_at);
	function->prologue = bytes;
}

/*
 * Return the bytes of whole nops from there on that a jump would overwrite: gcc's are of one byte, clang's one of
 * five. 0: none.
 */
static uint8_t nops_bytes(const struct ky_functions_reading *reading, uint64_t at)
{
	uint64_t left;
	const uint8_t *code = ky_functions_bytes(reading->own, at, true, &left);
	uint8_t bytes = 0;
	while (code && bytes < KY_JUMP_BYTES) {
		struct ky_instruction it;
		if (!ky_instruction_read(&it, code + bytes, left - bytes) ||
		    !ky_instruction_is_padding(&it, code + bytes) || code[bytes] == 0xcc)
			return 0;
		bytes = (uint8_t)(bytes + it.bytes);
	}
	return bytes;
}

/* Mark nops at the function's very start, or after endbr64. */
static void mark_nops(struct ky_functions_reading *reading, uint64_t at)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t bytes = nops_bytes(reading, at);
	uint64_t left;
	if (!bytes)
		return;
	mark(reading, at, at, KY_FUNCTION_NOPS, bytes);
	const uint8_t *before = ky_functions_bytes(reading->own, at - 4, true, &left);
	if (before && left >= 4 && memcmp(before, endbr, sizeof(endbr)) == 0)
		mark(reading, at - 4, at, KY_FUNCTION_NOPS, bytes);
}

struct marks {
	struct ky_functions_reading *reading;
	struct ky_functions_ranges nops; /* sections that have addresses of nops */
	uint32_t sled_sections;
};

static void take_relocation(void *context, uint64_t where, uint64_t what)
{
	const struct marks *marks = context;
	if (ky_functions_in(&marks->nops, where))
		mark_nops(marks->reading, what);
}

static void find_nops(struct marks *marks, Elf_Scn *section, const GElf_Shdr *head)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	if (marks->nops.count == KY_FUNCTIONS_RANGES_MAX)
		return;
	marks->nops.items[marks->nops.count++] =
		(struct ky_code_range){head->sh_addr, head->sh_size};
	for (size_t at = 0; data && data->d_buf && at + 8 <= data->d_size; at += 8) {
		const uint64_t address = read_word((const uint8_t *)data->d_buf + at);
		if (address)
			mark_nops(marks->reading, address);
	}
}

static void find_sleds(struct ky_functions_reading *reading, Elf_Scn *section,
		       const GElf_Shdr *head)
{
	static const uint8_t sled[] = {0xeb, 0x09};
	const Elf_Data *data = elf_rawdata(section, NULL);
	for (size_t at = 0; data && data->d_buf && at + XRAY_ENTRY_BYTES <= data->d_size;
	     at += XRAY_ENTRY_BYTES) {
		const uint8_t *entry = (const uint8_t *)data->d_buf + at;
		/* since version 2 relative to their own address */
		const bool relative = entry[18] >= 2;
		const uint64_t here = relative ? head->sh_addr + at : 0;
		const uint64_t place = read_word(entry) + here;
		const uint64_t function = read_word(entry + 8) + (relative ? here + 8 : 0);
		uint64_t left;
		const uint8_t *code = ky_functions_bytes(reading->own, place, true, &left);
		if (entry[16] == 0 && code && left >= XRAY_SLED_BYTES &&
		    memcmp(code, sled, sizeof(sled)) == 0)
			mark(reading, function, place, KY_FUNCTION_SLED, XRAY_SLED_BYTES);
	}
}

static void leave_all_alone(struct ky_functions *out)
{
	if (out->code_count)
		out->builtins = out->code[0];
}

static void take_section(struct marks *marks, Elf_Scn *section, const GElf_Shdr *head,
			 const char *name)
{
	struct ky_functions_reading *reading = marks->reading;
	if (strcmp(name, "__patchable_function_entries") == 0)
		find_nops(marks, section, head);
	else if (strcmp(name, "xray_instr_map") == 0 &&
		 marks->sled_sections++ < KY_FUNCTIONS_SECTIONS_MAX)
		find_sleds(reading, section, head);
	else if (strcmp(name, ".gcc_except_table") == 0)
		reading->out->throws = true;
	else if (strcmp(name, ".gopclntab") == 0 || strcmp(name, ".data.rel.ro.gopclntab") == 0)
		leave_all_alone(reading->out);
}

/* Return the range of all functions of V8's own code, by their names; empty when there are too few. */
static struct ky_code_range find_builtins(const struct ky_functions *out)
{
	uint64_t from = UINT64_MAX;
	uint64_t to = 0;
	uint32_t count = 0;
	for (uint32_t i = 0; i < out->count; i++) {
		const struct ky_function *function = &out->functions[i];
		const uint64_t end = function->address + function->bytes;
		if (strncmp(function->linked, "Builtins_", 9) != 0)
			continue;
		count++;
		from = function->address < from ? function->address : from;
		to = end > to ? end : to;
	}
	return count >= V8_BUILTINS_MIN ? (struct ky_code_range){from, to - from}
					: (struct ky_code_range){0};
}

/* Return the largest piece of a section that .eh_frame does not describe. */
static struct ky_code_range find_gap(const struct ky_functions_reading *reading,
				     const struct ky_code_range *section)
{
	const uint64_t end = section->from + section->bytes;
	struct ky_code_range gap = {0};
	uint64_t at = section->from;
	for (uint32_t i = 0; i <= reading->fdes_count; i++) {
		const bool last = i == reading->fdes_count;
		const uint64_t next = last ? end : reading->fdes[i].address;
		if (next < section->from || next > end)
			continue;
		if (next > at && next - at > gap.bytes)
			gap = (struct ky_code_range){at, next - at};
		if (!last && next + reading->fdes[i].bytes > at)
			at = next + reading->fdes[i].bytes;
	}
	return gap;
}

/*
 * Return code of another runtime, as V8's builtins: compilers describe all the code that they make, so a large part
 * without a description is foreign.
 */
static struct ky_code_range find_foreign(const struct ky_functions_reading *reading)
{
	struct ky_code_range largest = {0};
	for (uint32_t i = 0; i < reading->text.count && reading->fdes_count; i++) {
		const struct ky_code_range gap = find_gap(reading, &reading->text.items[i]);
		largest = gap.bytes > largest.bytes ? gap : largest;
	}
	return largest.bytes >= FOREIGN_BYTES_MIN ? largest : (struct ky_code_range){0};
}

static void find_runtimes(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	const bool has_names = out->names_from && strcmp(out->names_from, ".dynsym") != 0;
	for (uint32_t i = 0; i < out->count; i++) {
		if (strcmp(out->functions[i].linked, "caml_start_program") == 0)
			leave_all_alone(out);
	}
	if (!out->builtins.bytes)
		out->builtins = find_builtins(out);
	if (!out->builtins.bytes && !has_names)
		out->builtins = find_foreign(reading);
}

void ky_compiler_marks_read(struct ky_functions_reading *reading)
{
	struct marks marks = {.reading = reading};
	GElf_Shdr head;
	const char *name;
	for (Elf_Scn *section = NULL;
	     (section = ky_program_file_next_section(reading->elf, section, &head, &name));)
		if (name)
			take_section(&marks, section, &head, name);
	if (marks.nops.count && reading->head.e_type == ET_DYN)
		ky_compiler_marks_relocations(reading, take_relocation, &marks);
	find_runtimes(reading);
	find_cyg(reading);
}
