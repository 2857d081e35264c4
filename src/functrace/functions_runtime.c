/* SPDX-License-Identifier: MIT */
/*
 * functions_runtime.c: see functions_parts.h. The names of functions that must not be hooked: those that keep their
 * return address for later or have none, that have a calling convention of their own, or that walk stacks from
 * themselves outwards. functions_scan.c finds more of them by their instructions, because names are often missing.
 */
#include "base/file.h"
#include "functrace/functions_parts.h"

#include <string.h>

/* Whole files: the loader, unwinders, sanitizers. By the name of the file, or its soname. */
static const char *const files[] = {
	"ld-linux",     "ld-musl",    "ld.so",        "libgcc_s.so", "libunwind",
	"libasan.so",   "libtsan.so", "libhwasan.so", "liblsan.so",  "libubsan.so",
	"libclang_rt.", "libkymo.so", "libthread_db", "libmcount",
};

/* Files that make code at run time, even if there is none yet. */
static const char *const makers[] = {
	"libjvm.so", "libcoreclr.so",     "libclrjit.so", "libmono", "libluajit",   "luajit",
	"libmozjs",  "libjavascriptcore", "libnode.so",   "libv8",   "libpypy",     "pypy",
	"libart.so", "beam.smp",          "opcache.so",   "libruby", "libwasmtime", "libhermes",
};

/* A '*' at the end matches any rest. */
static const char *const names[] = {
	/* return a second time, or keep the return address */
	"setjmp",
	"_setjmp",
	"__setjmp*",
	"sigsetjmp",
	"__sigsetjmp*",
	"vfork",
	"__vfork",
	"__libc_vfork",
	"getcontext",
	"__getcontext",
	"setcontext",
	"__setcontext",
	"swapcontext",
	"__swapcontext",
	"makecontext",
	"__makecontext",
	"__start_context",
	"longjmp",
	"_longjmp",
	"siglongjmp",
	"__longjmp*",
	"____longjmp_chk",
	"__libc_longjmp",
	"__libc_siglongjmp",
	"savectx",
	"unw_getcontext",
	"_Ux86_64_*",
	/* begin with a stack of their own */
	"_start",
	"clone",
	"__clone",
	"clone3",
	"__clone3",
	"__clone_internal*",
	"__start_context",
	"start_thread",
	"__restore_rt",
	"restore_rt",
	/* have calling conventions of their own */
	"__tls_get_addr*",
	"_dl_runtime_resolve*",
	"_dl_runtime_profile*",
	"_dl_tlsdesc_*",
	"__morestack*",
	"__x86_indirect_thunk*",
	"__x86_return_thunk",
	"__llvm_retpoline*",
	"__fentry__",
	"mcount",
	"_mcount",
	"__cyg_profile_func_*",
	"__xray_*",
	/* walk stacks, or look at their caller */
	"_Unwind_*",
	"uw_*",
	"execute_cfa_program*",
	"__gcc_personality*",
	"_dl_debug_state",
	"dlsym",
	"dlvsym",
	"dlopen",
	"dlmopen",
	"__dlsym",
	"__dlopen",
	"__libc_dlopen*",
	"__libc_dlsym",
	"_dl_open",
	"_dl_sym",
	"_dl_vsym",
	"__asan_*",
	"__tsan_*",
	/* record an event: a span that they begin or end would overlap their call */
	"kymo_i_*",
	/* run before there are threads, in static programs */
	"_dl_relocate_static_pie",
	"__libc_setup_tls",
	"__libc_init_secure",
	"apply_irel",
	"_dl_start*",
	"__libc_start_main*",
	"_dl_discover_osversion",
	"_dl_aux_init",
	"__libc_init_first",
	"_dl_non_dynamic_init",
	"__tunables_init",
	"_dl_early_allocate",
	"__libc_init_cpu_features*",
};

static bool is_like(const char *pattern, const char *name)
{
	if (pattern[0] != name[0])
		return false;
	const size_t bytes = strlen(pattern);
	if (pattern[bytes - 1] == '*')
		return strncmp(pattern, name, bytes - 1) == 0;
	return strcmp(pattern, name) == 0;
}

static bool is_among(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_like(list[i], name))
			return true;
	}
	return false;
}

bool ky_functions_runtime_looks(const char *name)
{
	static const char *const lookers[] = {
		"dlopen",
		"dlmopen",
		"dlsym",
		"dlvsym",
		"dl_iterate_phdr",
		"getcontext",
		"swapcontext",
		"setjmp",
		"_setjmp",
		"__sigsetjmp",
		"vfork",
		"_Unwind_RaiseException",
		"_Unwind_Backtrace",
		"_Unwind_ForcedUnwind",
		"_Unwind_Resume*",
	};
	return is_among(name, lookers, sizeof(lookers) / sizeof(lookers[0]));
}

/*
 * Match names of libgcc, of LLVM's libunwind, and of the functions that these call in languages; compilers add suffixes to
 * names of local functions.
 */
bool ky_function_unwinds(const struct ky_function *function)
{
	static const char *const unwinders[] = {
		"_Unwind_*",
		"uw_*",
		"execute_cfa_program*",
		"execute_stack_op*",
		"init_dwarf_reg_size_table*",
		"extract_cie_info*",
		"get_cie_encoding*",
		"read_encoded_value*",
		"base_of_encoded_value*",
		"classify_object_over_fdes*",
		"add_fdes*",
		"search_object*",
		"linear_search_fdes*",
		"find_fde_tail*",
		"__frame_state_for",
		"__gxx_personality_v0",
		"__gcc_personality_v0",
		"rust_eh_personality",
		"__unw_*",
		"unwind_phase*",
		"_ZN9libunwind*",
	};
	return is_among(function->linked, unwinders, sizeof(unwinders) / sizeof(unwinders[0]));
}

const char *ky_functions_why_entry_only(const struct ky_functions *functions)
{
	if (functions->other_unwinder)
		return "its unwinder is not libgcc's";
	if (functions->compares_frames)
		return "it compares addresses of frames when it unwinds";
	if (!functions->throws || functions->find_fde)
		return NULL;
	if (functions->is_static)
		return "it is static and stripped, and its unwinder was not found";
	return functions->shares_unwinder ? NULL : "it has an unwinder of its own without a name";
}

/* Report whether the last part of a path begins with one of them. */
static bool begins_like(const char *path, const char *const *beginnings, size_t count)
{
	const char *const name = ky_file_name(path);
	for (size_t i = 0; name && i < count; i++) {
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	}
	return false;
}

/* Return the library's soname; NULL: none. */
static const char *soname(Elf *elf)
{
	GElf_Shdr head;
	Elf_Scn *section = ky_program_file_section(elf, 0, ".dynamic", &head);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	for (int i = 0; data; i++) {
		GElf_Dyn one;
		if (!gelf_getdyn(data, i, &one) || one.d_tag == DT_NULL)
			break;
		if (one.d_tag == DT_SONAME)
			return elf_strptr(elf, head.sh_link, one.d_un.d_val);
	}
	return NULL;
}

static bool is_in(const struct ky_code_range *range, uint64_t address)
{
	return address >= range->from && address - range->from < range->bytes;
}

static bool is_outermost(struct ky_functions_reading *reading, uint64_t address)
{
	const struct ky_functions_fde *fde = ky_functions_cfi_at(reading, address);
	return fde && !ky_functions_cfi_row(reading, fde, address).returns;
}

/* Report whether there is a wrgsbase: f3, perhaps a prefix for the register, 0f ae d8 to df. */
static bool has_wrgsbase(const uint8_t *code, uint64_t bytes)
{
	static const uint8_t opcode[] = {0x0f, 0xae};
	const uint8_t *at = code;
	for (uint64_t left = bytes; (at = memmem(at, left, opcode, sizeof(opcode))) != NULL;
	     left = bytes - (uint64_t)(at - code)) {
		const uint64_t offset = (uint64_t)(at - code);
		const bool prefixed = offset >= 2 && (at[-1] & 0xf0) == 0x40 && at[-2] == 0xf3;
		if (offset + 2 < bytes && (at[2] & 0xf8) == 0xd8 &&
		    (prefixed || (offset >= 1 && at[-1] == 0xf3)))
			return true;
		at += sizeof(opcode);
	}
	return false;
}

static bool sets_gs(const struct ky_functions *functions)
{
	bool sets = false;
	for (uint32_t i = 0; i < functions->code_count; i++) {
		uint64_t bytes;
		const uint8_t *code = ky_functions_code(functions, functions->code[i].from, &bytes);
		sets |= code && has_wrgsbase(code, bytes);
	}
	return sets;
}

void ky_functions_runtime(struct ky_functions_reading *reading)
{
	struct ky_functions *out = reading->out;
	out->sets_gs = sets_gs(out);
	const char *name = soname(reading->elf);
	const bool all = begins_like(out->path, files, sizeof(files) / sizeof(files[0])) ||
			 begins_like(name, files, sizeof(files) / sizeof(files[0]));
	out->makes_code = out->builtins.bytes ||
			  begins_like(out->path, makers, sizeof(makers) / sizeof(makers[0])) ||
			  begins_like(name, makers, sizeof(makers) / sizeof(makers[0]));
	for (uint32_t i = 0; i < out->count; i++) {
		struct ky_function *function = &out->functions[i];
		if (is_in(&out->builtins, function->address))
			function->why = KY_WHY_JIT;
		else if (all || function->address == reading->head.e_entry ||
			 ky_functions_in(&reading->glue, function->address) ||
			 is_outermost(reading, function->address) ||
			 is_among(function->linked, names, sizeof(names) / sizeof(names[0])))
			function->why = KY_WHY_RUNTIME;
	}
}
