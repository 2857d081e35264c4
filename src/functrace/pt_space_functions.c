/* SPDX-License-Identifier: MIT */
/* pt_space_functions.c: finds the file and the function of an address: see pt_space.h. */
#include "functrace/pt_space.h"

#include "process/program_file.h"

#include <stdlib.h>
#include <unistd.h>

/* Read the offset of each segment of code in the file. */
static bool read_offsets(struct ky_pt_module *module)
{
	struct ky_program_file *file;
	const struct ky_functions *functions = module->functions;
	module->offsets = calloc(functions->code_count + 1u, sizeof(*module->offsets));
	module->sites = calloc(functions->count + 1u, sizeof(*module->sites));
	module->wanted = calloc(functions->count + 1u, sizeof(*module->wanted));
	if (!module->offsets || !module->sites || !module->wanted ||
	    ky_program_file_open(&file, module->fd) != 0)
		return false;
	for (uint32_t i = 0; i < functions->code_count; i++)
		if (!ky_program_file_offset(file, functions->code[i].from, &module->offsets[i]))
			module->offsets[i] = UINT64_MAX;
	ky_program_file_close(&file);
	return true;
}

/* Return the functions, read once; NULL: unreadable. */
static const struct ky_functions *functions_of(struct ky_pt_module *module)
{
	char message[KY_FUNCTRACE_MESSAGE_BYTES];
	if (module->fd < 0)
		return module->functions;
	if (ky_functions_read(&module->functions, module->fd, module->path, true, message) != 0)
		module->functions = NULL;
	else if (!read_offsets(module))
		ky_functions_free(&module->functions);
	close(module->fd);
	module->fd = -1;
	return module->functions;
}

/* Find the address that the file has for it; false: it is not its code. */
static bool to_file(const struct ky_pt_module *module, const struct ky_address_range *range,
		    uint64_t address, uint64_t *own)
{
	const uint64_t offset = address - range->start + range->offset;
	for (uint32_t i = 0; i < module->functions->code_count; i++)
		if (offset - module->offsets[i] < module->functions->code[i].bytes &&
		    module->offsets[i] != UINT64_MAX) {
			*own = module->functions->code[i].from + (offset - module->offsets[i]);
			return true;
		}
	return false;
}

/* Return the function, its module, and the distance of its file's addresses from the process's. */
static const struct ky_function *look_up(struct ky_pt_space *space, uint64_t address,
					 struct ky_pt_module **module, uint64_t *bias)
{
	const struct ky_address_range *range = ky_address_space_find(&space->mapped, address);
	uint64_t own;
	*module = range ? &space->modules[range->module] : NULL;
	if (!range || !functions_of(*module) || !to_file(*module, range, address, &own))
		return NULL;
	*bias = address - own;
	return ky_functions_over((*module)->functions, own);
}

/* Report whether it is selected. Asked once: the selection's patterns take longer than all the rest. */
static bool is_wanted(const struct ky_pt_space *space, const struct ky_pt_module *module,
		      const struct ky_function *function)
{
	uint8_t *wanted = &module->wanted[function - module->functions->functions];
	if (!space->selection)
		return true;
	if (!*wanted)
		*wanted = ky_selection_wants(space->selection, module->functions, function) ? 1 : 2;
	return *wanted == 1;
}

bool ky_pt_space_function(struct ky_pt_space *space, uint64_t address,
			  struct ky_pt_function *function)
{
	struct ky_pt_module *module;
	uint64_t bias;
	if (address - space->vdso < space->vdso_bytes) {
		*function = (struct ky_pt_function){.start = space->vdso,
						    .from = space->vdso,
						    .to = space->vdso + space->vdso_bytes,
						    .shown = true};
		return true;
	}
	const struct ky_function *found = look_up(space, address, &module, &bias);
	/*
	 * Show code of no file by its address (JITs); nameless code of a file consists of stubs and parts of
	 * functions.
	 */
	*function = (struct ky_pt_function){.shown = !module};
	if (!found)
		return false;
	*function = (struct ky_pt_function){.start = bias + found->address,
					    .from = bias + found->address,
					    .to = bias + found->address + found->bytes,
					    .shown = is_wanted(space, module, found)};
	return true;
}

const struct ky_function *ky_pt_space_named(struct ky_pt_space *space, uint64_t start,
					    struct ky_pt_module **module)
{
	uint64_t bias;
	const struct ky_function *found = look_up(space, start, module, &bias);
	return found && found->address + bias == start ? found : NULL;
}
