/* SPDX-License-Identifier: MIT */
/* stack_names.c: see stack_names.h. */
#include "functrace/stack_names.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/stack_join.h"
#include "process/jit_files.h"
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FUNCTIONS_MAX (1u << 20)
#define CHAINS_MAX (1u << 24) /* words */
#define CHAIN_MAX 64u

/* The chain of one address while it is made. */
struct making {
	struct ky_stack_names *names;
	uint32_t module;
	uint32_t functions[CHAIN_MAX];
	uint32_t count;
	uint32_t found; /* with those that are not wanted */
};

static uint32_t add_text(struct ky_strings *strings, const char *text)
{
	return text ? ky_strings_add_utf8(strings, text, strlen(text)) : 0;
}

/* ---- functions ---- */

static bool is_wanted(const struct ky_stack_names *names, const struct ky_stack_function *function)
{
	const struct ky_strings *strings = &names->strings;
	const char *name = ky_strings_text(strings, function->name);
	const struct ky_functions module = {.path = names->modules->items[function->module].path};
	/* The length of inlined functions is unknown: none is too short. */
	const struct ky_function there = {
		.name = name,
		.linked = name,
		.file = function->file ? ky_strings_text(strings, function->file) : NULL,
		.line = function->line,
		.bytes = UINT64_MAX};
	return !names->selection || ky_selection_wants(names->selection, &module, &there);
}

/* Return the function's number; KY_STACK_NO_FUNCTION without memory. */
static uint32_t function_of(struct ky_stack_names *names, struct ky_stack_function function)
{
	bool made;
	const uint64_t key = (uint64_t)function.module << 32 | function.name;
	uint32_t *number = ky_u64_map_add(&names->by_name, key, &made);
	if (!number)
		return KY_STACK_NO_FUNCTION;
	if (!made)
		return *number;
	*number = KY_STACK_NO_FUNCTION;
	if (names->count == FUNCTIONS_MAX ||
	    !KY_ARRAY_GROW(names->functions, names->room, names->count + 1))
		return KY_STACK_NO_FUNCTION;
	function.wanted = function.module == KY_NO_MODULE ? true : is_wanted(names, &function);
	names->functions[names->count] = function;
	return *number = names->count++;
}

static void add_to_chain(struct making *making, const struct ky_stack_function *function)
{
	const uint32_t number = function_of(making->names, *function);
	making->found++;
	if (number != KY_STACK_NO_FUNCTION && making->count < CHAIN_MAX &&
	    making->names->functions[number].wanted)
		making->functions[making->count++] = number;
}

static void on_function(void *context, const struct ky_symbolizer_function *found)
{
	struct making *making = context;
	struct ky_strings *strings = &making->names->strings;
	const char *file = found->declared_file ? found->declared_file : found->file;
	const struct ky_stack_function function = {
		.name = add_text(strings, found->name),
		.file = add_text(strings, file),
		.line = found->declared_file ? found->declared_line : 0,
		.module = making->module};
	add_to_chain(making, &function);
}

int ky_stack_names_open(struct ky_stack_names *names, struct ky_stack_modules *modules,
			const struct ky_selection *selection)
{
	static const char *const special[KY_STACK_FIRST] = {
		[KY_STACK_OFF_CPU] = "off CPU (waiting)",
		[KY_STACK_PREEMPTED] = "off CPU (preempted)",
		[KY_STACK_TRUNCATED] = "[truncated]",
	};
	*names = (struct ky_stack_names){.modules = modules, .selection = selection};
	const int error = ky_strings_init(&names->strings);
	if (error)
		return error;
	for (uint32_t i = 0; i < KY_STACK_FIRST; i++) {
		const struct ky_stack_function function = {
			.name = add_text(&names->strings, special[i]), .module = KY_NO_MODULE};
		if (function_of(names, function) != i)
			return -ENOMEM;
	}
	return 0;
}

void ky_stack_names_close(struct ky_stack_names *names)
{
	KY_ARRAY_FREE(names->functions, names->room);
	KY_ARRAY_FREE(names->chains, names->chains_room);
	ky_u64_map_free(&names->by_name);
	ky_strings_free(&names->strings);
	*names = (struct ky_stack_names){0};
}

/* ---- chains ---- */

/* Return its start plus one; 0 without memory. */
static uint32_t keep_chain(struct ky_stack_names *names, const struct making *making)
{
	const uint32_t at = names->chains_count;
	if (at + 1 + making->count > CHAINS_MAX ||
	    !KY_ARRAY_GROW(names->chains, names->chains_room, at + 1 + making->count))
		return 0;
	names->chains[at] = making->count;
	memcpy(names->chains + at + 1, making->functions, making->count * sizeof(*names->chains));
	names->chains_count += 1 + making->count;
	return at + 1;
}

/* Name a function without a name by its address: "sqlite3+0x8e70". */
static uint32_t name_by_start(struct ky_stack_names *names, const struct ky_stack_module *module,
			      uint64_t offset)
{
	char text[280] = "[unknown]";
	uint64_t address, start;
	if (ky_stack_module_address(module, offset, &address) &&
	    ky_stack_starts_find(&module->starts, address, &start))
		snprintf(text, sizeof(text), "%.255s+0x%" PRIx64, module->name, start);
	return add_text(&names->strings, text);
}

static uint32_t make_chain(struct ky_stack_names *names, uint32_t module, uint64_t offset)
{
	struct making making = {.names = names, .module = module};
	const struct ky_stack_module *file = &names->modules->items[module];
	ky_stack_module_at(file, offset, on_function, &making);
	if (!making.found)
		add_to_chain(&making,
			     &(struct ky_stack_function){.name = name_by_start(names, file, offset),
							 .module = module});
	return keep_chain(names, &making);
}

static uint32_t chain_of(const struct ky_stack_names *names, uint32_t chain,
			 const uint32_t **functions)
{
	if (!chain)
		return 0;
	*functions = names->chains + chain;
	return names->chains[chain - 1];
}

/*
 * Return the chain of a JIT's address. A JIT may put other code at the same address: only its functions are kept, not
 * their addresses.
 */
static uint32_t jit_at(struct ky_stack_names *names, uint32_t module, uint64_t address,
		       struct ky_stack_jit *jit, const uint32_t **functions)
{
	struct ky_strings *found = &names->modules->strings;
	const uint32_t name = ky_stack_jit_name(jit, found, address,
						(uint64_t)ky_clock_ns(CLOCK_MONOTONIC_COARSE));
	const char *text = name ? ky_strings_text(found, name) : "[jit]";
	const struct ky_stack_function function = {.name = add_text(&names->strings, text),
						   .module = module};
	names->made_at = function_of(names, function);
	*functions = &names->made_at;
	return names->made_at != KY_STACK_NO_FUNCTION && names->functions[names->made_at].wanted;
}

uint32_t ky_stack_names_at(struct ky_stack_names *names, const struct ky_address_range *range,
			   uint64_t address, struct ky_stack_jit *jit, const uint32_t **functions)
{
	bool made;
	if (!range)
		return 0;
	struct ky_stack_module *module = &names->modules->items[range->module];
	if (module->made)
		return jit_at(names, range->module, address, jit, functions);
	const uint64_t offset = address - range->start + range->offset;
	uint32_t *chain = ky_u64_map_add(&module->chains, offset, &made);
	if (chain && made)
		*chain = make_chain(names, range->module, offset);
	return chain ? chain_of(names, *chain, functions) : 0;
}

/* ---- names of code that a process made itself ---- */

#define FILE_BYTES_MAX (64u << 20)
#define LOOK_EVERY_NS 200000000u

void ky_stack_jit_free(struct ky_stack_jit *jit)
{
	ky_symbol_table_free(&jit->table);
	*jit = (struct ky_stack_jit){.pid = jit->pid};
}

static int open_map(pid_t pid, uint64_t *bytes)
{
	char path[96];
	struct stat status;
	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%u.map", (int)pid,
		 (uint32_t)ky_proc_inner_pid(pid));
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
	    status.st_size <= (off_t)FILE_BYTES_MAX) {
		*bytes = (uint64_t)status.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

/* Take a line of the map; if code was made again, the later line holds. */
static void on_line(void *context, uint64_t at, const struct ky_perf_map_line *line)
{
	struct ky_stack_jit *jit = context;
	if (line)
		(void)ky_symbol_table_add(&jit->table, line->start, line->bytes, (uint32_t)at,
					  line->name, line->name_bytes);
}

static void read_map(struct ky_stack_jit *jit)
{
	uint64_t bytes = 0;
	const int fd = open_map(jit->pid, &bytes);
	char *text = fd >= 0 && bytes > jit->file_bytes ? malloc(bytes) : NULL;
	const ssize_t got = text ? pread(fd, text, bytes, 0) : -1;
	if (got > 0) {
		ky_symbol_table_free(&jit->table);
		jit->file_bytes = (uint64_t)got;
		/* Take whole lines only: the last one may still be written. */
		const char *const last = memrchr(text, '\n', (size_t)got);
		if (last)
			ky_perf_map_lines(text, (size_t)(last - text), on_line, jit);
		ky_symbol_table_sort(&jit->table);
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

uint32_t ky_stack_jit_name(struct ky_stack_jit *jit, struct ky_strings *strings, uint64_t address,
			   uint64_t now_ns)
{
	uint32_t name = jit->table.count ? ky_symbol_table_find(&jit->table, strings, address) : 0;
	if (name || (jit->looked_ns && now_ns - jit->looked_ns < LOOK_EVERY_NS))
		return name;
	jit->looked_ns = now_ns;
	read_map(jit);
	return jit->table.count ? ky_symbol_table_find(&jit->table, strings, address) : 0;
}
