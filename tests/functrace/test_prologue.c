/* SPDX-License-Identifier: MIT */
/*
 * test_prologue.c: the first instructions of functions that can be moved (those of beginnings.S) do the same
 * elsewhere: by running them, and, for all functions of libraries from elsewhere, by comparing the targets of their
 * operands.
 */
#include "functrace/instruction.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <capstone/capstone.h>
#include <cmocka.h>

#define FAR_BYTES UINT64_C(0x10000000)

static struct ky_functions *read_file(const char *path)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_functions *functions = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	const int error = ky_functions_read(&functions, fd, path, false, message);
	close(fd);
	if (error)
		fail_msg("%s", message);
	return functions;
}

static struct ky_functions *self;

static const struct ky_function *named(const char *name)
{
	for (uint32_t i = 0; i < self->count; i++) {
		if (strcmp(self->functions[i].linked, name) == 0)
			return &self->functions[i];
	}
	fail_msg("%s was not found", name);
	return NULL;
}

/* ---- choice ---- */

static void reasons(void **state)
{
	static const struct {
		const char *name;
		enum ky_function_why why;
		uint8_t at, prologue;
	} known[] = {
		{"begin_plain", KY_WHY_NONE, 0, 8},
		{"begin_endbr", KY_WHY_NONE, 4, 8},
		{"begin_rip", KY_WHY_NONE, 0, 7},
		{"begin_rip_immediate", KY_WHY_NONE, 0, 7},
		{"begin_jump_if", KY_WHY_NONE, 0, 5},
		{"begin_jump", KY_WHY_NONE, 0, 5},
		{"begin_call", KY_WHY_NONE, 0, 9},
		{"begin_call_indirect", KY_WHY_NONE, 0, 10},
		{"begin_loop", KY_WHY_NONE, 0, 5},
		{"begin_short", KY_WHY_NONE, 0, 5},
		{"begin_return", KY_WHY_NONE, 0, 5},
		{"begin_tiny", KY_WHY_SHORT, 0, 0},
		{"begin_at_once", KY_WHY_NONE, 0, 7},
		{"begin_jumped_into", KY_WHY_JUMPED_INTO, 0, 6},
		{"begin_again", KY_WHY_JUMPED_INTO, 0, 6},
		{"begin_call_within", KY_WHY_CALL, 0, 0},
		{"begin_strange", KY_WHY_STRANGE, 0, 0},
		{"begin_undefined", KY_WHY_STRANGE, 0, 0},
		{"begin_keeps_return", KY_WHY_RUNTIME, 0, 7},
		{"begin_goes_on", KY_WHY_RUNTIME, 0, 7},
		{"begin_keeps_return_late", KY_WHY_RUNTIME, 0, 5},
		{"begin_keeps_return_frame", KY_WHY_RUNTIME, 0, 8},
		{"begin_leaves_stack", KY_WHY_RUNTIME, 0, 7},
		{"begin_takes_return", KY_WHY_RUNTIME, 0, 5},
		{"begin_fence", KY_WHY_NONE, 0, 6},
		{"begin_switch", KY_WHY_JUMPED_INTO, 0, 7},
		{"begin_last", KY_WHY_NONE, 0, 7},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct ky_function *function = named(known[i].name);
		if (function->why != known[i].why)
			fail_msg("%s: %s", known[i].name, ky_function_why_text(function->why));
		assert_int_equal(function->how,
				 known[i].why == KY_WHY_NONE ? KY_FUNCTION_PATCH : KY_FUNCTION_NOT);
		if (function->how == KY_FUNCTION_PATCH) {
			assert_int_equal(function->at, known[i].at);
			assert_int_equal(function->prologue, known[i].prologue);
		}
	}
}

/* ---- moved code does the same ---- */

typedef uint64_t (*ky_one_argument_fn)(uint64_t);

#define DECLARE(name) uint64_t name(uint64_t);
#define EACH_THAT_RUNS(DO)                                                                         \
	DO(begin_plain)                                                                            \
	DO(begin_endbr)                                                                            \
	DO(begin_rip)                                                                              \
	DO(begin_rip_immediate)                                                                    \
	DO(begin_jump_if)                                                                          \
	DO(begin_jump)                                                                             \
	DO(begin_call)                                                                             \
	DO(begin_call_indirect)                                                                    \
	DO(begin_call_first)                                                                       \
	DO(begin_loop)                                                                             \
	DO(begin_short)                                                                            \
	DO(begin_at_once)                                                                          \
	DO(begin_fence)                                                                            \
	DO(begin_again)                                                                            \
	DO(begin_last)
EACH_THAT_RUNS(DECLARE)

/* Map memory to run code from, at the first free place that is not far from some code. */
static uint8_t *near_memory(const void *code)
{
	const uintptr_t page = (uintptr_t)code & ~UINT64_C(4095);
	for (uint64_t distance = 2; distance < 12; distance++) {
		const uint64_t bytes = distance / 2 * FAR_BYTES;
		const uintptr_t at = distance % 2 ? page - bytes : page + bytes;
		uint8_t *memory = mmap((void *)at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (memory != MAP_FAILED)
			return memory;
	}
	fail_msg("there is no memory near %p", code);
	return NULL;
}

/* Make the function with its first instructions elsewhere, as a stub has them. */
static ky_one_argument_fn moved_function(uint8_t *memory, const uint8_t *code,
					 const struct ky_function *function)
{
	struct ky_moved moved;
	const uint8_t *prologue = code + function->at;
	assert_int_equal(ky_prologue_move(&moved, prologue, function->prologue, (uintptr_t)prologue,
					  (uintptr_t)memory),
			 0);
	memcpy(memory, moved.code, moved.bytes);
	ky_one_argument_fn result;
	memcpy(&result, &(uint8_t *){memory}, sizeof(result));
	return result;
}

static void moved_code_does_the_same(void **state)
{
#define ENTRY(name) {#name, name},
	static const struct {
		const char *name;
		ky_one_argument_fn function;
	} all[] = {EACH_THAT_RUNS(ENTRY)};
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const uint8_t *code;
		memcpy(&code, &all[i].function, sizeof(code));
		uint8_t *memory = near_memory(code);
		const ky_one_argument_fn moved = moved_function(memory, code, named(all[i].name));
		for (uint64_t argument = 0; argument < 4; argument++) {
			if (moved(argument) != all[i].function(argument))
				fail_msg("%s(%u) is another when moved", all[i].name,
					 (unsigned)argument);
		}
		munmap(memory, 4096);
	}
}

/* Functions of libc, where the loader has put them. */
static void moved_code_of_libc_does_the_same(void **state)
{
	static const char *const names[] = {"abs",   "labs",    "toupper", "ffs",
					    "ffsll", "isalnum", "htonl"};
	Dl_info libc;
	uint32_t found = 0;
	(void)state;
	void *known = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	if (!known || !dladdr(known, &libc))
		skip();
	struct ky_functions *functions = read_file(libc.dli_fname);
	for (uint32_t i = 0; functions && i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		bool wanted = false;
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			wanted |= strcmp(function->linked, names[n]) == 0;
		if (!wanted || function->how != KY_FUNCTION_PATCH)
			continue;
		const uint8_t *code = (const uint8_t *)libc.dli_fbase + function->address;
		ky_one_argument_fn original;
		memcpy(&original, &code, sizeof(original));
		uint8_t *memory = near_memory(code);
		const ky_one_argument_fn moved = moved_function(memory, code, function);
		for (uint64_t argument = 0; argument < 200; argument++)
			assert_int_equal((int)moved(argument), (int)original(argument));
		munmap(memory, 4096);
		found++;
	}
	ky_functions_free(&functions);
	assert_true(found >= 3);
}

static void threads_can_be_moved_instruction_by_instruction(void **state)
{
	/* mov rcx, rdi (3), jrcxz (2): the second has moved, because a jump follows */
	const uint8_t *code;
	ky_one_argument_fn function = begin_loop;
	struct ky_moved moved;
	(void)state;
	memcpy(&code, &function, sizeof(code));
	assert_int_equal(ky_prologue_move(&moved, code, 5, 0x1000, 0x2000), 0);
	assert_int_equal(moved.starts[0], 0);
	assert_int_equal(moved.starts[3], 3);
	for (unsigned at = 0; at <= KY_PROLOGUE_MAX; at++) {
		if (at != 0 && at != 3)
			assert_int_equal(moved.starts[at], 0xff);
	}
}

static void what_cannot_be_moved_is_refused(void **state)
{
	static const uint8_t rip[] = {0x48, 0x8b, 0x05, 0x00, 0x00, 0x00, 0x00};
	static const uint8_t cut[] = {0x48, 0x8b, 0x05, 0x00, 0x00};
	static const uint8_t call[] = {0xe8, 0, 0, 0, 0, 0x90};
	static const uint8_t begins[] = {0xc7, 0xf8, 0, 0, 0, 0};
	struct ky_moved moved;
	(void)state;
	assert_int_equal(ky_prologue_move(&moved, rip, sizeof(rip), 0x1000, UINT64_C(1) << 40),
			 -ERANGE);
	assert_int_equal(ky_prologue_move(&moved, cut, sizeof(cut), 0x1000, 0x2000), -EINVAL);
	assert_int_equal(ky_prologue_move(&moved, call, sizeof(call), 0x1000, 0x2000), -EINVAL);
	assert_int_equal(ky_prologue_move(&moved, begins, sizeof(begins), 0x1000, 0x2000), -EINVAL);
}

/* ---- all functions of libraries ---- */

static const char *const libraries[] = {
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/lib/x86_64-linux-gnu/libsqlite3.so.0",
	"/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/lib64/libc.so.6",
	"/usr/bin/node",
};

/* Return the target or operand of an instruction: its branch's target, or its operand's address; 0: neither. */
static uint64_t place_of(const struct ky_instruction *it, uint64_t address)
{
	if (it->rip_relative)
		return address + it->bytes + (uint64_t)it->displacement;
	if (it->kind >= KY_INSTRUCTION_JUMP && it->kind <= KY_INSTRUCTION_CALL)
		return address + it->bytes + (uint64_t)it->branch;
	return 0;
}

/* Compare the instructions of the prologue with the moved ones, one by one; calls and loops became several. */
static void compare(const struct ky_function *function, const uint8_t *code,
		    const struct ky_moved *moved, uint64_t from, uint64_t to)
{
	uint32_t at = 0;
	while (at < function->prologue && moved->starts[at] != 0xff) {
		struct ky_instruction before, after;
		assert_true(ky_instruction_read(&before, code + at, function->prologue - at));
		uint32_t there = moved->starts[at];
		if (before.kind == KY_INSTRUCTION_CALL ||
		    before.kind == KY_INSTRUCTION_CALL_INDIRECT)
			there += 13;
		else if (before.kind == KY_INSTRUCTION_LOOP)
			there += before.bytes + 2u;
		assert_true(ky_instruction_read(&after, moved->code + there, moved->bytes - there));
		if (place_of(&before, from + at) != place_of(&after, to + there))
			fail_msg("%s: the instruction at byte %u leads elsewhere", function->name,
				 at);
		if (before.kind == KY_INSTRUCTION_PLAIN)
			assert_int_equal(before.bytes, after.bytes);
		at += before.bytes;
	}
	assert_true(at > 0);
}

static void move_and_compare(const struct ky_functions *functions,
			     const struct ky_function *function)
{
	struct ky_moved moved;
	uint64_t left;
	const uint64_t from = function->address + function->at;
	const uint8_t *code = ky_functions_code(functions, from, &left);
	if (function->how != KY_FUNCTION_PATCH)
		return;
	assert_true(function->prologue >= KY_JUMP_BYTES && function->prologue <= left);
	assert_int_equal(ky_prologue_move(&moved, code, function->prologue, from, from + FAR_BYTES),
			 0);
	compare(function, code, &moved, from, from + FAR_BYTES);
}

/* Decode one function by both decoders, up to bytes that capstone does not know either: tables among the code. */
static void decode_by_both(csh handle, cs_insn *known, const struct ky_function *function,
			   const uint8_t *code, uint64_t left)
{
	size_t room = function->bytes < left ? function->bytes : left;
	uint64_t address = 0;
	const uint8_t *at = code;
	while (room) {
		struct ky_instruction own;
		const uint8_t *here = at;
		const size_t here_room = room;
		if (!cs_disasm_iter(handle, &at, &room, &address, known))
			return;
		/* capstone leaves their operands out */
		if (known->id == X86_INS_UD0 || known->id == X86_INS_UD2B)
			return;
		if (!ky_instruction_read(&own, here, here_room) || own.bytes != known->size)
			fail_msg("%s + %zu: %s %s has %u bytes, not %u", function->name,
				 (size_t)(here - code), known->mnemonic, known->op_str, known->size,
				 own.bytes);
	}
}

/* Both in one test, because reading a library takes most of the time. */
static void moved_operands_lead_where_they_did_and_lengths_are_those_of_capstone(void **state)
{
	csh handle;
	(void)state;
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
	cs_insn *known = cs_malloc(handle);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		struct ky_functions *functions = read_file(libraries[i]);
		const uint32_t step = functions ? functions->count / 2000 + 1 : 1;
		for (uint32_t n = 0; functions && n < functions->count; n++) {
			const struct ky_function *function = &functions->functions[n];
			uint64_t left;
			const uint8_t *code =
				ky_functions_code(functions, function->address, &left);
			move_and_compare(functions, function);
			if (n % step == 0)
				decode_by_both(handle, known, function, code, left);
		}
		ky_functions_free(&functions);
	}
	cs_free(known, 1);
	cs_close(&handle);
}

/* capstone 4 does not know all of them, and few libraries have them. */
static void lengths_of_instructions_that_are_seldom(void **state)
{
	static const struct {
		uint8_t bytes;
		const char *code;
	} known[] = {
		{6, "\x62\xf1\x7f\x48\x7a\xc1"},                  /* vcvtudq2ps %zmm1,%zmm0 */
		{10, "\x62\xf1\x7f\x48\x7a\x05\x00\x00\x00\x01"}, /* from memory by rip */
		/* vcvtusi2sd %rax,%xmm1,%xmm0 */
		{6, "\x62\xf1\xf7\x08\x7b\xc0"},
		{6, "\x62\xf1\x7c\x48\x78\xc1"}, /* vcvttps2udq */
		{3, "\xc5\xf8\x77"},             /* vzeroupper */
		{5, "\xc5\xf9\x70\xc1\x1b"},     /* vpshufd with a value */
	};
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct ky_instruction it;
		assert_true(
			ky_instruction_read(&it, (const uint8_t *)known[i].code, known[i].bytes));
		assert_int_equal(it.bytes, known[i].bytes);
	}
}

static void any_bytes_are_decoded_within_their_bounds(void **state)
{
	uint64_t random = 1;
	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		struct ky_instruction it;
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		const size_t room = random >> 33 & 15;
		uint8_t *code = malloc(room + 1);
		for (size_t n = 0; n < room; n++)
			code[n] = (uint8_t)((random = random * 6364136223846793005u + 1) >> 56);
		if (ky_instruction_read(&it, code, room))
			assert_true(it.bytes >= 1 && it.bytes <= room);
		free(code);
	}
}

static int open_self(void **state)
{
	(void)state;
	setenv("XDG_CACHE_HOME", "/dev/null", 1); /* where no cache can be */
	self = read_file("/proc/self/exe");
	return self ? 0 : -1;
}

static int close_self(void **state)
{
	(void)state;
	ky_functions_free(&self);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reasons),
		cmocka_unit_test(moved_code_does_the_same),
		cmocka_unit_test(moved_code_of_libc_does_the_same),
		cmocka_unit_test(threads_can_be_moved_instruction_by_instruction),
		cmocka_unit_test(what_cannot_be_moved_is_refused),
		cmocka_unit_test(
			moved_operands_lead_where_they_did_and_lengths_are_those_of_capstone),
		cmocka_unit_test(lengths_of_instructions_that_are_seldom),
		cmocka_unit_test(any_bytes_are_decoded_within_their_bounds),
	};
	return cmocka_run_group_tests(tests, open_self, close_self);
}
