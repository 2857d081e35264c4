/* SPDX-License-Identifier: MIT */
/*
 * functions.c: ky_functions_read(): see functions.h and, for its steps, functions_parts.h. x86-64 only: other
 * programs have no functions that could be patched.
 */
#include "base/array.h"
#include "functrace/functions_parts.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *ky_function_why_text(enum ky_function_why why)
{
	static const char *const texts[KY_WHY_COUNT] = {
		[KY_WHY_NONE] = "can be traced",
		[KY_WHY_SHORT] = "shorter than a jump",
		[KY_WHY_JUMPED_INTO] = "a branch leads into its first instructions",
		[KY_WHY_CALL] = "a call among its first instructions",
		[KY_WHY_STRANGE] = "its first instructions cannot be moved",
		[KY_WHY_JIT] = "of a runtime that reads return addresses (V8, Go, OCaml)",
		[KY_WHY_RUNTIME] = "of the C runtime, or looks at its return address",
	};
	return why < KY_WHY_COUNT ? texts[why] : "unknown";
}

static void add_range(struct ky_functions_ranges *ranges, uint64_t from, uint64_t bytes)
{
	if (ranges->count < KY_FUNCTIONS_RANGES_MAX && bytes)
		ranges->items[ranges->count++] = (struct ky_code_range){from, bytes};
}

static void take_section(struct ky_functions_reading *reading, const GElf_Shdr *head,
			 const char *name)
{
	const bool is_plt = strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0;
	if (strcmp(name, ".init") == 0 || strcmp(name, ".fini") == 0)
		add_range(&reading->glue, head->sh_addr, head->sh_size);
	add_range(is_plt ? &reading->plt : &reading->text, head->sh_addr, head->sh_size);
}

/* Find the code, by sections; without these, by segments. */
static void find_sections(struct ky_functions_reading *reading)
{
	GElf_Shdr head;
	const char *name;
	for (Elf_Scn *section = NULL;
	     (section = ky_program_file_next_section(reading->elf, section, &head, &name));)
		if (head.sh_flags & SHF_EXECINSTR)
			take_section(reading, &head, name ? name : "");
	for (uint32_t i = 0; !reading->text.count && i < reading->out->code_count; i++)
		add_range(&reading->text, reading->out->code[i].from, reading->out->code[i].bytes);
}

static bool has_loader(Elf *elf)
{
	size_t count;
	for (size_t i = 0; elf_getphdrnum(elf, &count) == 0 && i < count && i < 1024; i++) {
		GElf_Phdr head;
		if (gelf_getphdr(elf, (int)i, &head) && head.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static bool is_position_independent_program(Elf *elf)
{
	GElf_Shdr head;
	Elf_Scn *section = ky_program_file_section(elf, 0, ".dynamic", &head);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Dyn one;
	for (int i = 0; data && gelf_getdyn(data, i, &one) && one.d_tag != DT_NULL; i++) {
		if (one.d_tag == DT_FLAGS_1)
			return one.d_un.d_val & DF_1_PIE;
	}
	return false;
}

static void take_facts(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	const uint8_t *id;
	const size_t bytes = ky_program_file_id(reading->elf, &id);
	if (bytes && bytes <= sizeof(out->build_id)) {
		memcpy(out->build_id, id, bytes);
		out->build_id_bytes = (uint32_t)bytes;
	}
	out->is_static =
		!has_loader(reading->elf) &&
		(reading->head.e_type == ET_EXEC || is_position_independent_program(reading->elf));
}

static void find_functions(struct ky_functions_reading *reading, bool lines)
{
	struct ky_functions *out = reading->out;
	take_facts(reading);
	find_sections(reading);
	ky_functions_cfi_read(reading);
	ky_functions_symbols(reading);
	ky_compiler_marks_read(reading);
	ky_functions_runtime(reading);
	if (!reading->may_be_kept || !ky_functions_cache_load(out)) {
		ky_functions_scan(reading);
		if (reading->may_be_kept && !reading->without_memory)
			ky_functions_cache_save(out);
	}
	if (lines)
		ky_functions_lines(reading);
}

int ky_functions_fail(char message[KY_MESSAGE_BYTES], const char *path, int error)
{
	const char *what = error == -ENOMEM ? "out of memory"
			   : error == -ENOTSUP
				   ? "it is not an x86-64 program: only those can be patched"
				   : "it is not an ELF file";
	return ky_fail(message, error, "cannot find the functions of %s: %s", path, what);
}

static int open_file(struct ky_functions_reading *reading, int fd)
{
	const int error = ky_program_file_open(&reading->file, fd);
	if (error)
		return error;
	reading->may_be_kept = ky_functions_cache_may_keep(fd);
	reading->elf = ky_program_file_elf(reading->file);
	reading->debug = ky_program_file_debug(reading->file);
	if (!gelf_getehdr(reading->elf, &reading->head))
		return -ENOEXEC;
	if (reading->head.e_machine != EM_X86_64 || gelf_getclass(reading->elf) != ELFCLASS64)
		return -ENOTSUP;
	return reading->head.e_type == ET_EXEC || reading->head.e_type == ET_DYN ? 0 : -ENOEXEC;
}

static int make(struct ky_functions_reading *reading, const char *path)
{
	reading->out = calloc(1, sizeof(*reading->out));
	reading->own = calloc(1, sizeof(*reading->own));
	if (!reading->out || !reading->own) {
		free(reading->own);
		free(reading->out);
		reading->out = NULL;
		return -ENOMEM;
	}
	reading->out->private_data = reading->own;
	reading->own->texts_left = strlen(path);
	reading->out->path = ky_functions_text(reading->own, path, strlen(path));
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &reading->own->capstone) != CS_ERR_OK)
		reading->own->capstone = 0;
	if (reading->own->capstone)
		reading->own->instruction = cs_malloc(reading->own->capstone);
	return reading->out->path && reading->own->instruction ? 0 : -ENOMEM;
}

int ky_functions_read(struct ky_functions **functions, int fd, const char *path, bool lines,
		      char message[KY_MESSAGE_BYTES])
{
	struct ky_functions_reading reading = {.fd = fd};
	*functions = NULL;
	int error = make(&reading, path);
	if (!error)
		error = open_file(&reading, fd);
	if (!error && !ky_functions_segments(&reading))
		error = -ENOMEM;
	if (!error)
		find_functions(&reading, lines);
	if (reading.without_memory)
		error = -ENOMEM;
	ky_functions_cfi_free(&reading);
	ky_program_file_close(&reading.file);
	if (error) {
		ky_functions_free(&reading.out);
		return ky_functions_fail(message, path, error);
	}
	ky_functions_segments_forget_data(reading.own);
	*functions = reading.out;
	return 0;
}

void ky_functions_free(struct ky_functions **functions)
{
	struct ky_functions *own = *functions;
	*functions = NULL;
	if (!own)
		return;
	ky_functions_own_free(own->private_data);
	ky_array_release(own->functions);
	free(own->code);
	free(own);
}

/* Report whether the compiler's start files bring it into every program: in a small program these are the majority. */
static bool is_of_start_files(const struct ky_function *function)
{
	static const char *const names[] = {
		"_init",
		"_fini",
		"_start",
		"_dl_relocate_static_pie",
		"deregister_tm_clones",
		"register_tm_clones",
		"__do_global_dtors_aux",
		"frame_dummy",
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(function->linked, names[i]) == 0)
			return true;
	return false;
}

bool ky_functions_are_ready(const struct ky_functions *functions)
{
	uint32_t ready = 0, others = 0;
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *const function = &functions->functions[i];
		if (function->how == KY_FUNCTION_NOPS || function->how == KY_FUNCTION_SLED)
			ready++;
		else if (!is_of_start_files(function))
			others++;
	}
	return functions->calls_cyg || ready > others;
}

const struct ky_function *ky_functions_over(const struct ky_functions *functions, uint64_t address)
{
	const uint32_t count =
		KY_ARRAY_UPTO(functions->functions, functions->count, address, address);
	const struct ky_function *last = count ? &functions->functions[count - 1] : NULL;
	return last && address - last->address < last->bytes ? last : NULL;
}

const uint8_t *ky_functions_code(const struct ky_functions *functions, uint64_t address,
				 uint64_t *bytes)
{
	return ky_functions_bytes(functions->private_data, address, true, bytes);
}

/* ---- source files and lines ---- */

struct lines {
	struct ky_functions_reading *reading;
	const char *last,
		*last_kept; /* the file of the function before: libdw's text, and our copy */
};

static const char *keep(struct lines *lines, const char *file)
{
	if (file != lines->last) {
		lines->last = file;
		lines->last_kept = ky_functions_text(lines->reading->own, file,
						     strnlen(file, KY_FUNCTIONS_NAME_MAX));
	}
	return lines->last_kept;
}

/* Return the file of a function. Units of DWARF 5 count files from 0, the unit's own: elfutils takes that for none. */
static const char *file_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Die unit;
	Dwarf_Files *files;
	const char *file = dwarf_decl_file(die);
	if (file || !dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
	    dwarf_formudata(&attribute, &number) != 0 || number != 0 ||
	    !dwarf_diecu(die, &unit, NULL, NULL) || dwarf_getsrcfiles(&unit, &files, NULL) != 0)
		return file;
	return dwarf_filesrc(files, 0, NULL, NULL);
}

static int take_function(Dwarf_Die *die, void *context)
{
	struct lines *lines = context;
	Dwarf_Addr address;
	int line;
	if (dwarf_entrypc(die, &address) != 0 && dwarf_lowpc(die, &address) != 0)
		return DWARF_CB_OK;
	struct ky_function *function = ky_functions_find(lines->reading->out, address);
	if (!function || function->file)
		return DWARF_CB_OK;
	const char *file = file_of(die);
	if (file && dwarf_decl_line(die, &line) == 0 && line > 0) {
		function->file = keep(lines, file);
		function->line = (uint32_t)line;
	}
	return DWARF_CB_OK;
}

/*
 * Report whether texts end: libdw reads them up to their zero byte and ignores the end of the section, so it must not
 * get files without that byte.
 */
static bool texts_end(Elf *elf)
{
	static const char *const names[] = {".debug_str", ".debug_line_str"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		GElf_Shdr head;
		Elf_Scn *section = ky_program_file_section(elf, 0, names[i], &head);
		const Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
		const bool is_packed = section && head.sh_flags & SHF_COMPRESSED;
		if (section && !is_packed &&
		    (!data || !data->d_size || ((const char *)data->d_buf)[data->d_size - 1]))
			return false;
	}
	return true;
}

void ky_functions_lines(struct ky_functions_reading *reading)
{
	struct lines lines = {.reading = reading};
	Elf *elf = ky_program_file_lines(reading->file);
	Dwarf *dwarf = elf && texts_end(elf) ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, inner;
	uint8_t type;
	while (dwarf && dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, &inner) == 0) {
		Dwarf_Die *of = type == DW_UT_skeleton ? &inner : &die;
		lines.last = NULL;
		if (dwarf_tag(of) == DW_TAG_compile_unit || dwarf_tag(of) == DW_TAG_partial_unit)
			dwarf_getfuncs(of, take_function, &lines, 0);
	}
	dwarf_end(dwarf);
}
