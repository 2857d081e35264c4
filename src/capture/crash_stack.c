/* SPDX-License-Identifier: MIT */
/*
 * crash_stack.c: the call stack of a stopped thread.
 *
 *   registers and memory ─ libdwfl ─▶ addresses ─ program_map ─▶ bytes of files
 *                                                                 └ symbolizer ─▶ functions, lines
 *
 * Files are opened as the target has them (program_file.h), so that names are right for a program in a
 * container, or one whose files were replaced. Where --functions has replaced return addresses, the stack is read as it
 * would be without. Reading debug information may take long: after a while
 * only symbol tables are used, and later the stack is cut.
 */
#include "base/file.h"
#include "capture/crash_tracer.h"

#include "base/clock.h"
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "functrace/hooked_returns.h"
#include "process/proc_maps.h"
#include "process/program_file.h"
#include "process/symbolizer.h"

#define FRAMES_MAX 64u
#define FILES_MAX 32u
#define LINES_NS UINT64_C(3000000000)
#define FRAMES_NS UINT64_C(8000000000)

struct file {
	const struct ky_proc_mapping *mapping;
	struct ky_symbolizer *elf; /* NULL: it could not be read */
};

struct stack {
	char *text;
	size_t used;
	uint32_t frames;
	uint64_t begun_ns;
	struct ky_program_map map;
	struct ky_strings names;
	struct file files[FILES_MAX];
	uint32_t files_count;
	const struct ky_proc_mapping *mapping; /* of the frame at hand; NULL: none */
	bool named;                            /* the frame at hand has its line */
};

/* ---- text ---- */

/* Append a line, or nothing if it does not fit. */
static void add_line(struct stack *stack, const char *line)
{
	const size_t bytes = strlen(line);
	if (KY_CRASH_STACK_BYTES - stack->used < bytes + 2)
		return;
	if (stack->used)
		stack->text[stack->used++] = '\n';
	memcpy(stack->text + stack->used, line, bytes + 1);
	stack->used += bytes;
}

static void add_function(void *context, const struct ky_symbolizer_function *function)
{
	struct stack *stack = context;
	char line[1024];
	const char *inlined = function->inlined ? ", inlined" : "";
	if (function->file)
		snprintf(line, sizeof(line), "%.700s (%.200s:%u%s)", function->name,
			 ky_file_name(function->file), function->line, inlined);
	else
		snprintf(line, sizeof(line), "%.700s (%.200s%s)", function->name,
			 ky_file_name(stack->mapping->path), inlined);
	add_line(stack, line);
	stack->named = true;
}

static void add_address(struct stack *stack, uint64_t pc)
{
	char line[320];
	int used = snprintf(line, sizeof(line), "0x%llx", (unsigned long long)pc);
	if (stack->mapping)
		snprintf(line + used, sizeof(line) - (size_t)used, " (%.200s)",
			 ky_file_name(stack->mapping->path));
	add_line(stack, line);
}

/* ---- files ---- */

static const struct ky_proc_mapping *mapping_at(const struct ky_program_map *map, uint64_t pc)
{
	for (uint32_t i = 0; i < map->count; i++)
		if (pc >= map->mappings[i].start && pc < map->mappings[i].end)
			return &map->mappings[i];
	return NULL;
}

/* Return the file of a mapping, opened when it is first needed; NULL when it cannot be read. */
static struct ky_symbolizer *elf_of(struct stack *stack, const struct ky_proc_mapping *mapping)
{
	for (uint32_t i = 0; i < stack->files_count; i++)
		if (stack->files[i].mapping->inode == mapping->inode &&
		    stack->files[i].mapping->device == mapping->device)
			return stack->files[i].elf;
	if (stack->files_count == FILES_MAX)
		return NULL;
	struct file *file = &stack->files[stack->files_count++];
	file->mapping = mapping;
	const int fd = ky_proc_maps_open_file(stack->map.pid, mapping);
	if (fd >= 0)
		(void)ky_symbolizer_open(&file->elf, &stack->names, mapping->path, fd,
					 stack->begun_ns + LINES_NS);
	return file->elf;
}

/* The process whose files find_elf() looks for: libdwfl has no place for it. */
static _Thread_local const struct ky_program_map *unwound;

/* Find the file that the target has mapped under that name. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	for (uint32_t i = 0; i < unwound->count; i++) {
		if (strcmp(unwound->mappings[i].path, name) != 0)
			continue;
		const int fd = ky_proc_maps_open_file(unwound->pid, &unwound->mappings[i]);
		if (fd < 0)
			break;
		*file_name = strdup(name);
		return fd;
	}
	return dwfl_linux_proc_find_elf(module, userdata, name, base, file_name, elf);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
};

/* ---- frames ---- */

static int take_frame(Dwfl_Frame *frame, void *context)
{
	struct stack *stack = context;
	Dwarf_Addr pc;
	bool activation;
	if (!dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	if (stack->frames >= FRAMES_MAX ||
	    (uint64_t)ky_clock_monotonic() > stack->begun_ns + FRAMES_NS) {
		add_line(stack, "...");
		return DWARF_CB_ABORT;
	}
	/* A return address is after the call, which may be the end of the function. */
	const uint64_t at = activation ? pc : pc - 1;
	stack->frames++;
	stack->named = false;
	stack->mapping = mapping_at(&stack->map, at);
	struct ky_symbolizer *elf = stack->mapping ? elf_of(stack, stack->mapping) : NULL;
	if (elf)
		ky_symbolizer_at(elf, at - stack->mapping->start + stack->mapping->offset,
				 add_function, stack);
	if (!stack->named)
		add_address(stack, pc);
	return DWARF_CB_OK;
}

/* ---- the state of a thread whose calls are traced ---- */

#if defined(__x86_64__)
static pid_t next_thread(Dwfl *dwfl, void *context, void **argument)
{
	(void)context;
	if (*argument)
		return 0;
	*argument = dwfl;
	return dwfl_pid(dwfl);
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **argument)
{
	(void)tid;
	(void)context;
	*argument = dwfl;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
	uint64_t value;
	(void)dwfl;
	const bool good = ky_hooked_returns_read(context, address, &value);
	*word = good ? value : 0;
	return good;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
	struct user_regs_struct r;
	(void)argument;
	if (ptrace(PTRACE_GETREGS, dwfl_thread_tid(thread), NULL, &r) != 0)
		return false;
	/* in DWARF's order */
	const Dwarf_Word registers[] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
					r.rbp, r.rsp, r.r8,  r.r9,  r.r10, r.r11,
					r.r12, r.r13, r.r14, r.r15, r.rip};
	return dwfl_thread_state_registers(thread, 0, sizeof(registers) / sizeof(registers[0]),
					   registers);
}

static const Dwfl_Thread_Callbacks traced = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static bool attach(Dwfl *dwfl, pid_t pid, struct ky_hooked_returns *returns)
{
	if (ky_hooked_returns_open(returns, pid) == 0 && returns->stubs_to)
		return dwfl_attach_state(dwfl, NULL, pid, &traced, returns);
	return dwfl_linux_proc_attach(dwfl, pid, true) == 0;
}
#else
static bool attach(Dwfl *dwfl, pid_t pid, struct ky_hooked_returns *returns)
{
	(void)returns;
	return dwfl_linux_proc_attach(dwfl, pid, true) == 0;
}
#endif

static void unwind(struct stack *stack, pid_t pid, pid_t tid)
{
	struct ky_hooked_returns returns = {.memory = -1};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	if (!dwfl)
		return;
	unwound = &stack->map;
	dwfl_report_begin(dwfl);
	if (dwfl_linux_proc_report(dwfl, pid) == 0 && dwfl_report_end(dwfl, NULL, NULL) == 0 &&
	    attach(dwfl, pid, &returns))
		(void)dwfl_getthread_frames(dwfl, tid, take_frame, stack);
	dwfl_end(dwfl);
#if defined(__x86_64__)
	ky_hooked_returns_close(&returns);
#endif
	unwound = NULL;
}

int ky_crash_stack(pid_t pid, pid_t tid, char text[KY_CRASH_STACK_BYTES])
{
	struct stack stack = {.text = text, .begun_ns = (uint64_t)ky_clock_monotonic()};
	text[0] = '\0';
	if (ky_program_map_read(&stack.map, pid) != 0)
		return 0;
	if (ky_strings_init(&stack.names) == 0)
		unwind(&stack, pid, tid);
	for (uint32_t i = 0; i < stack.files_count; i++)
		ky_symbolizer_close(&stack.files[i].elf);
	ky_strings_free(&stack.names);
	ky_program_map_free(&stack.map);
	return (int)stack.frames;
}
