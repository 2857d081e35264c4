/* SPDX-License-Identifier: MIT */
/* patch_stubs.c: the stubs of a process's functions: see patch_parts.h. stub.c has the code of a stub. */
#include "functrace/agent_abi.h"
#include "functrace/patch_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct ky_agent_table agent_table(void)
{
	struct ky_agent_table table;
	memcpy(&table, ky_agent_code, sizeof(table));
	return table;
}

/* Return the region of an address: its shared end is at its start. */
static uint64_t exit_of(const struct ky_patch *patch, uint64_t at)
{
	for (uint32_t i = 0; i < patch->keep.regions_count; i++)
		if (at - patch->keep.regions[i].at < patch->keep.regions[i].bytes)
			return patch->keep.regions[i].at;
	return 0;
}

/*
 * Return the callers that may be hooked without a closer check: those in the module, on the larger side of a JIT's
 * code.
 */
static struct ky_code_range near_callers(const struct ky_patch_module *module)
{
	struct ky_code_range range = {.from = module->from, .bytes = module->to - module->from};
	const struct ky_code_range *out = &module->functions->builtins;
	const uint64_t from = out->from + module->bias, to = from + out->bytes;
	if (!out->bytes || from < module->from || to > module->to)
		return range;
	if (from - module->from > module->to - to)
		range.bytes = from - module->from;
	else
		range = (struct ky_code_range){.from = to, .bytes = module->to - to};
	return range;
}

static struct ky_stub describe(const struct ky_patch *patch, uint32_t form, uint64_t at)
{
	const struct ky_agent_table table = agent_table();
	const struct ky_agent_home *home = &patch->home;
	struct ky_stub stub = {.kind = (enum ky_stub_kind)(form & KY_PATCH_FORM_KIND),
			       .at = at,
			       .end_site = home->end_site,
			       .directory = home->directory,
			       .slow_entry = home->code_at + table.slow_entry,
			       .slow_exit = home->code_at + table.slow_exit,
			       .exit = exit_of(patch, at)};
	if (stub.kind == KY_STUB_FIND_FDE)
		stub.special = home->code_at + table.find_fde;
	if (stub.kind == KY_STUB_LOADER)
		stub.special = home->code_at + table.loader;
	if (stub.kind == KY_STUB_SANDBOX)
		stub.special = home->code_at + table.sandbox;
	return stub;
}

int ky_patch_stub_make(const struct ky_patch *patch, uint32_t module,
		       const struct ky_function *function, uint32_t form, uint32_t number,
		       const uint32_t sites[2], uint64_t at, struct ky_patch_stub *made)
{
	const struct ky_patch_module *m = &patch->modules[module];
	const uint64_t address = function->address + function->at;
	struct ky_stub stub = describe(patch, form, at);
	uint64_t bytes = 0;
	const uint8_t *code = ky_functions_code(m->functions, address, &bytes);
	if (!code || bytes < function->prologue)
		return -EINVAL;
	stub.function = number;
	stub.site = sites[0];
	stub.instant_site = sites[1];
	if (form & KY_PATCH_FORM_CHECKS) {
		const struct ky_code_range near = near_callers(m);
		stub.near_from = near.from;
		stub.near_bytes = near.bytes;
	}
	made->at = at;
	made->moved.bytes = 0;
	memset(made->moved.starts, 0xff, sizeof(made->moved.starts));
	if (function->how == KY_FUNCTION_PATCH) {
		const int error = ky_prologue_move(&made->moved, code, function->prologue,
						   address + m->bias, at + ky_stub_body_at(&stub));
		if (error)
			return error;
	} else {
		stub.returns_to = address + m->bias + function->prologue;
	}
	ky_stub_make(&stub, made->moved.bytes ? &made->moved : NULL, made->code, &made->places);
	return 0;
}

uint32_t ky_patch_stub_exit(const struct ky_patch *patch, uint64_t at, uint8_t code[KY_STUB_MAX])
{
	struct ky_stub_places places;
	const struct ky_stub stub = describe(patch, KY_STUB_EXIT, at);
	ky_stub_make(&stub, NULL, code, &places);
	return places.bytes;
}

uint64_t ky_patch_stub_moved(const struct ky_patch *patch, uint32_t entry, uint64_t rip)
{
	const struct ky_agent_patch *e = &patch->table[entry];
	const struct ky_patch_spot *spot = &patch->spots[entry];
	const uint32_t sites[2] = {0, 0};
	struct ky_patch_stub stub;
	const uint64_t inside = rip - e->address;
	if (!spot->function || inside > KY_PROLOGUE_MAX ||
	    ky_patch_stub_make(patch, spot->module, spot->function, e->pad, entry, sites, e->stub,
			       &stub))
		return 0;
	if (spot->function->how != KY_FUNCTION_PATCH)
		return e->address + spot->function->prologue;
	const uint8_t start = stub.moved.starts[inside];
	return start == 0xff ? 0 : e->stub + stub.places.body + start;
}

/* ---- the table ---- */

static uint32_t hash(uint64_t address, uint32_t form)
{
	return (uint32_t)((address * 8 + form) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static void put(struct ky_patch *patch, uint32_t entry)
{
	const struct ky_agent_patch *e = &patch->table[entry];
	uint32_t at = hash(e->address, e->pad) & patch->by_address_mask;
	while (patch->by_address[at] != UINT32_MAX)
		at = (at + 1) & patch->by_address_mask;
	patch->by_address[at] = entry;
}

int ky_patch_table_reserve(struct ky_patch *patch, uint32_t count)
{
	if (count <= patch->table_room && patch->table_room)
		return 0;
	uint32_t room = 1024;
	while (room < count)
		room *= 2;
	struct ky_agent_patch *table = realloc(patch->table, room * sizeof(*table));
	if (table)
		patch->table = table;
	struct ky_patch_spot *spots = realloc(patch->spots, room * sizeof(*spots));
	if (spots)
		patch->spots = spots;
	uint32_t *index = malloc(room * 2 * sizeof(*index));
	if (!table || !spots || !index) {
		free(index);
		return -ENOMEM;
	}
	memset(spots + patch->table_room, 0, (room - patch->table_room) * sizeof(*spots));
	memset(index, 0xff, room * 2 * sizeof(*index));
	free(patch->by_address);
	patch->by_address = index;
	patch->by_address_mask = room * 2 - 1;
	patch->table_room = room;
	for (uint32_t i = 0; i < patch->table_count; i++)
		put(patch, i);
	return 0;
}

uint32_t ky_patch_table_find(const struct ky_patch *patch, uint64_t address, uint32_t form)
{
	if (!patch->by_address)
		return UINT32_MAX;
	for (uint32_t at = hash(address, form) & patch->by_address_mask;;
	     at = (at + 1) & patch->by_address_mask) {
		const uint32_t entry = patch->by_address[at];
		if (entry == UINT32_MAX)
			return UINT32_MAX;
		if (patch->table[entry].address == address && patch->table[entry].pad == form)
			return entry;
	}
}

uint32_t ky_patch_table_add(struct ky_patch *patch, uint64_t address, uint32_t form)
{
	const uint32_t entry = patch->table_count++;
	patch->table[entry] = (struct ky_agent_patch){
		.address = address, .pad = (uint16_t)form, .function = entry};
	patch->spots[entry] = (struct ky_patch_spot){0};
	put(patch, entry);
	return entry;
}

int ky_patch_table_read(struct ky_patch *patch)
{
	const struct ky_agent_home *home = &patch->home;
	if (home->patches_count > home->patches_max || home->patches_count > KY_AGENT_FUNCTIONS_MAX)
		return -EPROTO;
	patch->table_count = 0;
	int error = ky_patch_table_reserve(patch, (uint32_t)home->patches_count);
	if (error)
		return error;
	error = ky_remote_read(&patch->remote, home->patches, patch->table,
			       home->patches_count * sizeof(patch->table[0]));
	for (uint32_t i = 0; !error && i < home->patches_count; i++) {
		if (patch->table[i].bytes > sizeof(patch->table[i].before))
			return -EPROTO;
		patch->table_count++;
		put(patch, i);
	}
	return error;
}

int ky_patch_table_write(struct ky_patch *patch)
{
	const uint64_t count = patch->table_count;
	int error = ky_remote_write(&patch->remote, patch->home.patches, patch->table,
				    count * sizeof(patch->table[0]));
	if (error)
		return error;
	patch->home.patches_count = count;
	patch->home.functions = patch->table_count;
	error = ky_remote_write(&patch->remote,
				patch->home_at + offsetof(struct ky_agent_home, functions),
				&patch->home.functions, sizeof(patch->home.functions));
	return error ? error
		     : ky_remote_write(&patch->remote,
				       patch->home_at +
					       offsetof(struct ky_agent_home, patches_count),
				       &count, sizeof(count));
}

void ky_patch_table_set(struct ky_patch *patch, uint32_t entry, bool set)
{
	patch->table[entry].set = set;
	(void)ky_remote_write(&patch->remote,
			      patch->home.patches + entry * sizeof(patch->table[0]) +
				      offsetof(struct ky_agent_patch, set),
			      &patch->table[entry].set, 1);
}
