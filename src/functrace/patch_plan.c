/* SPDX-License-Identifier: MIT */
/*
 * patch_plan.c: chooses the functions to patch, and makes their entries, trace points and stubs: see patch_parts.h.
 *
 *   choose   the user's selection, less what cannot be patched ─▶ module.wants
 *   rooms    a region near each module
 *   plan     want ─▶ entry, found by its address or new ─▶ stub at the entry's place, or at the region's end ─▶ edit
 *
 * Every attach makes the trace points of the wants in the same order, so that a trace point's number, which is in the
 * stub, is the same as the last time and nothing must be written.
 */
#include "base/array.h"
#include "functrace/agent_abi.h"
#include "functrace/patch_parts.h"

#include <kymo/kymo.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELPER_FIND_FDE, HELPER_LOADER, HELPER_PRCTL, HELPER_SYSCALL, HELPER_ARCH, HELPERS };
_Static_assert(HELPERS == KY_PATCH_HELPERS, "the module has room for them");

/* The bytes of a region as they are in the process, and the new ones. */
struct region_image {
	uint8_t *bytes;
	uint64_t had; /* bytes that were there before */
};

struct planning {
	struct ky_patch *patch;
	struct ky_patch_edits *edits;
	struct region_image images[KY_PATCH_REGIONS_MAX];
	uint32_t full; /* functions without room */
	uint32_t far;  /* functions that cannot be moved there */
};

/* A stub for its address, with the moved instructions. */
struct made_stub {
	uint8_t code[KY_STUB_MAX];
	struct ky_stub_places places;
	struct ky_moved moved;
};

/* ---- choosing ---- */

static void choose_helper(struct ky_patch_module *module, int which, uint64_t address)
{
	const struct ky_functions *functions = module->functions;
	struct ky_function *helper = &module->helpers[which];
	uint64_t neighbour = 0;
	*helper = (struct ky_function){.address = address, .bytes = 1};
	if (!address)
		return;
	for (uint32_t i = 0; i < functions->count; i++) {
		if (functions->functions[i].address == address)
			helper->bytes = functions->functions[i].bytes;
		if (functions->functions[i].address > address && !neighbour)
			neighbour = functions->functions[i].address;
	}
	ky_prologue_find(helper, functions, neighbour ? neighbour : address + helper->bytes);
}

static void choose_helpers(struct ky_patch_module *module)
{
	const struct ky_functions *functions = module->functions;
	choose_helper(module, HELPER_FIND_FDE, functions->find_fde);
	choose_helper(module, HELPER_LOADER, functions->debug_state);
	choose_helper(module, HELPER_PRCTL, functions->call_prctl);
	choose_helper(module, HELPER_SYSCALL, functions->call_syscall);
	choose_helper(module, HELPER_ARCH, functions->call_arch_prctl);
}

static bool has_helpers(const struct ky_patch_module *module)
{
	bool any = false;
	for (int i = 0; i < HELPERS; i++)
		any |= module->helpers[i].prologue != 0;
	return any;
}

/* Report whether a function is one of the engine's helpers: it has room for one jump only, the helper's. */
static bool is_helper(const struct ky_patch_module *module, uint64_t address)
{
	for (int i = 0; i < HELPERS; i++)
		if (module->helpers[i].prologue && module->helpers[i].address == address)
			return true;
	return false;
}

static bool is_compiled_for_it(const struct ky_function *function)
{
	return function->how == KY_FUNCTION_NOPS || function->how == KY_FUNCTION_SLED;
}

static int choose(struct ky_patch *patch, struct ky_patch_module *module)
{
	const struct ky_functions *functions = module->functions;
	struct ky_patch_facts *facts = &patch->facts;
	free(module->wants);
	module->wants_count = 0;
	module->wants = calloc(functions->count + 1, sizeof(*module->wants));
	if (!module->wants)
		return -ENOMEM;
	facts->modules++;
	choose_helpers(module);
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		if (patch->options.engine == KY_FUNCTRACE_NOPS && !is_compiled_for_it(function))
			continue;
		if (!ky_selection_wants(patch->options.selection, functions, function))
			continue;
		facts->functions++;
		if (function->how != KY_FUNCTION_NOT && is_helper(module, function->address))
			facts->left_out[KY_WHY_RUNTIME]++;
		else if (function->how == KY_FUNCTION_NOT)
			facts->left_out[function->why < KY_WHY_COUNT ? function->why : 0]++;
		else
			module->wants[module->wants_count++] = i;
	}
	facts->functions += ky_patch_instrumented_count(patch, module);
	return 0;
}

/*
 * Report whether a library copies stacks away and back: greenlet, and the continuations of Ruby and Guile. What was put
 * back would return through hooks whose return slots others have used in between.
 */
static bool copies_stacks(const char *name)
{
	static const char *const libraries[] = {"_greenlet", "continuation.so", "libguile-"};
	bool copies = false;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		copies |= strncmp(name, libraries[i], strlen(libraries[i])) == 0;
	return copies;
}

/* Return why returns cannot be seen in this process, and of which module it is; NULL: they can. */
static const char *why_entry_only(const struct ky_patch *patch, const char **name)
{
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		const struct ky_patch_module *module = &patch->modules[i];
		if (!module->functions)
			continue;
		*name = module->name;
		if (copies_stacks(module->name))
			return "it copies stacks";
		const struct ky_function *helper = &module->helpers[HELPER_FIND_FDE];
		if (helper->address && !helper->prologue)
			return "its unwinder cannot be patched";
		const char *why = ky_functions_why_entry_only(module->functions);
		if (why)
			return why;
	}
	return NULL;
}

int ky_patch_plan_choose(struct ky_patch *patch)
{
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		struct ky_patch_module *module = &patch->modules[i];
		if (!module->functions || module->planned)
			continue;
		const int error = choose(patch, module);
		if (error)
			return error;
	}
	const char *name = NULL;
	const char *why = patch->entry_only ? NULL : why_entry_only(patch, &name);
	if (why) {
		patch->entry_only = true;
		/* A library brought it: functions that have hooks already get stubs without. */
		patch->switches = patch->home.on;
		snprintf(patch->facts.entry_only, sizeof(patch->facts.entry_only),
			 "only the start of each call is recorded: %s: %s", name, why);
		ky_patch_note(patch, "%s", patch->facts.entry_only);
	}
	return 0;
}

static uint32_t form_of_calls(const struct ky_patch *patch)
{
	if (patch->entry_only)
		return KY_STUB_ENTRY;
	return KY_STUB_CALL | (patch->home.check_callers ? KY_PATCH_FORM_CHECKS : 0);
}

void ky_patch_plan_rooms(struct ky_patch *patch)
{
	const uint32_t form = form_of_calls(patch);
	memset(patch->promised, 0, sizeof(patch->promised));
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		struct ky_patch_module *module = &patch->modules[i];
		uint64_t bytes = HELPERS * KY_STUB_MAX;
		if (!module->functions || (module->planned && !patch->switches))
			continue;
		for (uint32_t j = 0; j < module->wants_count; j++) {
			const struct ky_function *function =
				&module->functions->functions[module->wants[j]];
			/* While it is on, an entry may be that of a library that was there before. */
			if (patch->home.on ||
			    ky_patch_table_find(patch,
						function->address + function->at + module->bias,
						form) == UINT32_MAX)
				bytes += KY_STUB_MAX;
		}
		if (bytes > HELPERS * KY_STUB_MAX || has_helpers(module))
			module->region = ky_agent_memory_region(patch, module, bytes);
	}
	if (ky_patch_instrumented_room(patch))
		ky_patch_note(patch,
			      "functions compiled with -finstrument-functions are not traced: "
			      "out of memory");
}

/* ---- stubs ---- */

static struct ky_agent_table agent_table(void)
{
	struct ky_agent_table table;
	memcpy(&table, ky_agent_code, sizeof(table));
	return table;
}

static uint32_t region_of(const struct ky_patch *patch, uint64_t at)
{
	uint32_t i = 0;
	while (i < patch->keep.regions_count &&
	       at - patch->keep.regions[i].at >= patch->keep.regions[i].bytes)
		i++;
	return i < patch->keep.regions_count ? i : KY_PATCH_REGIONS_MAX;
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
			       .slow_entry = home->code_at + table.slow_entry,
			       .slow_exit = home->code_at + table.slow_exit};
	const uint32_t region = region_of(patch, at);
	if (region != KY_PATCH_REGIONS_MAX)
		stub.exit = patch->keep.regions[region].at;
	if (stub.kind == KY_STUB_FIND_FDE)
		stub.special = home->code_at + table.find_fde;
	if (stub.kind == KY_STUB_LOADER)
		stub.special = home->code_at + table.loader;
	if (stub.kind == KY_STUB_SANDBOX)
		stub.special = home->code_at + table.sandbox;
	return stub;
}

static int make_stub(const struct ky_patch *patch, uint32_t module,
		     const struct ky_function *function, uint32_t form, uint32_t number,
		     const uint32_t sites[2], uint64_t at, struct made_stub *made)
{
	const struct ky_patch_module *m = &patch->modules[module];
	const uint64_t address = function->address + function->at;
	struct ky_stub stub = describe(patch, form, at);
	uint64_t bytes = 0;
	const uint8_t *code = ky_functions_code(m->functions, address, &bytes);
	if (!code || bytes < function->prologue)
		return -EINVAL;
	stub.function = ky_patch_table_count_of(patch, number);
	stub.site = sites[0];
	stub.instant_site = sites[1];
	if (form & KY_PATCH_FORM_CHECKS) {
		const struct ky_code_range near = near_callers(m);
		stub.near_from = near.from;
		stub.near_bytes = near.bytes;
	}
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

static uint32_t make_exit(const struct ky_patch *patch, uint64_t at, uint8_t code[KY_STUB_MAX])
{
	struct ky_stub_places places;
	const struct ky_stub stub = describe(patch, KY_STUB_EXIT, at);
	ky_stub_make(&stub, NULL, code, &places);
	return places.bytes;
}

uint64_t ky_patch_plan_moved(const struct ky_patch *patch, uint32_t entry, uint64_t rip)
{
	const struct ky_agent_patch *e = &patch->table[entry];
	const struct ky_patch_spot *spot = &patch->spots[entry];
	const uint32_t sites[2] = {0, 0};
	struct made_stub stub;
	const uint64_t inside = rip - e->address;
	if (!spot->function || inside > KY_PROLOGUE_MAX ||
	    make_stub(patch, spot->module, spot->function, e->pad, entry, sites, e->stub, &stub))
		return 0;
	if (spot->function->how != KY_FUNCTION_PATCH)
		return e->address + spot->function->prologue;
	const uint8_t start = stub.moved.starts[inside];
	return start == 0xff ? 0 : e->stub + stub.places.body + start;
}

/* ---- regions of stubs ---- */

static struct region_image *image_of(struct planning *planning, uint32_t index)
{
	const struct ky_patch_region *region = &planning->patch->keep.regions[index];
	struct region_image *image = &planning->images[index];
	if (image->bytes)
		return image;
	image->bytes = calloc(1, region->bytes);
	image->had = region->used;
	if (image->bytes &&
	    ky_remote_read(&planning->patch->remote, region->at, image->bytes, region->used)) {
		free(image->bytes);
		image->bytes = NULL;
	}
	return image->bytes ? image : NULL;
}

/* Keep a stub whose bytes there differ, to write it when all threads are stopped. */
static int rewrite(struct ky_patch *patch, uint64_t at, const uint8_t *code, uint32_t bytes)
{
	struct ky_patch_rewrite *one =
		KY_ARRAY_NEW(patch->rewrites, patch->rewrites_count, patch->rewrites_room);
	if (!one)
		return -ENOMEM;
	one->at = at;
	one->bytes = bytes;
	memcpy(one->code, code, bytes);
	return 0;
}

/* Put a stub into the region's image if it is new there, otherwise rewrite it if it differs. Return 0 or -errno. */
static int put_stub(struct planning *planning, uint32_t index, uint64_t at, const uint8_t *code,
		    uint32_t bytes)
{
	struct region_image *image = image_of(planning, index);
	const struct ky_patch_region *region = &planning->patch->keep.regions[index];
	if (!image)
		return -ENOMEM;
	const uint64_t offset = at - region->at;
	if (offset + bytes > region->bytes)
		return -EINVAL;
	if (offset >= image->had) {
		memcpy(image->bytes + offset, code, bytes);
		return 0;
	}
	return memcmp(image->bytes + offset, code, bytes) == 0
		       ? 0
		       : rewrite(planning->patch, at, code, bytes);
}

static int put_exits(struct planning *planning)
{
	struct ky_patch *patch = planning->patch;
	uint8_t code[KY_STUB_MAX];
	int error = 0;
	for (uint32_t i = 0; !error && i < patch->keep.regions_count; i++) {
		const uint64_t at = patch->keep.regions[i].at;
		const uint32_t bytes = make_exit(patch, at, code);
		error = put_stub(planning, i, at, code, bytes);
	}
	return error;
}

/* Write the new bytes of the regions, and how much of them is used. */
static int write_regions(struct planning *planning)
{
	struct ky_patch *patch = planning->patch;
	for (uint32_t i = 0; i < patch->keep.regions_count; i++) {
		const struct ky_patch_region *region = &patch->keep.regions[i];
		const struct region_image *image = &planning->images[i];
		if (!image->bytes || region->used == image->had)
			continue;
		const int error =
			ky_remote_write(&patch->remote, region->at + image->had,
					image->bytes + image->had, region->used - image->had);
		if (error)
			return error;
	}
	return ky_remote_write(&patch->remote, patch->home_at + KY_PATCH_KEEP_AT, &patch->keep,
			       sizeof(patch->keep));
}

/* ---- entries ---- */

/* Return the entry whose jump, to a stub that hooks returns, is set at an address; UINT32_MAX: none. */
static uint32_t hooking_entry(const struct ky_patch *patch, uint64_t address)
{
	static const uint32_t forms[] = {KY_STUB_CALL, KY_STUB_CALL | KY_PATCH_FORM_CHECKS};
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct ky_hash_probe probe = ky_patch_table_probe(patch, address, forms[i]);
		for (uint32_t entry;
		     (entry = ky_patch_table_next(patch, &probe, address, forms[i])) != UINT32_MAX;)
			if (patch->table[entry].set && patch->spots[entry].wanted)
				return entry;
	}
	return UINT32_MAX;
}

static int add_edit(struct planning *planning, uint32_t entry, const struct ky_function *function,
		    const uint8_t *code)
{
	struct ky_agent_patch *e = &planning->patch->table[entry];
	const int32_t distance = (int32_t)(e->stub - (e->address + KY_JUMP_BYTES));
	e->bytes = KY_JUMP_BYTES;
	e->set = 1;
	memcpy(e->before, code, KY_JUMP_BYTES);
	e->after[0] = 0xe9;
	memcpy(e->after + 1, &distance, sizeof(distance));
	struct ky_patch_edit *edit = ky_patch_edits_add(planning->edits, e->address, entry, code,
							e->after, KY_JUMP_BYTES);
	if (!edit)
		return -ENOMEM;
	edit->prologue = edit->checked = function->prologue;
	memcpy(edit->expect, code, function->prologue);
	const uint32_t hooking =
		planning->patch->switches ? hooking_entry(planning->patch, e->address) : UINT32_MAX;
	if (hooking != UINT32_MAX)
		memcpy(edit->expect, planning->patch->table[hooking].after, KY_JUMP_BYTES);
	return 0;
}

/* A function at its address in the process, to be given an entry. */
struct place {
	uint32_t module;
	const struct ky_function *function;
	uint64_t address;
	uint32_t form;
	const uint32_t *sites;
};

static int make_stub_of(const struct planning *planning, const struct place *place, uint32_t number,
			uint64_t at, struct made_stub *stub)
{
	return make_stub(planning->patch, place->module, place->function, place->form, number,
			 place->sites, at, stub);
}

/* Report whether the stub that an entry has there has the same moved instructions: then it is this function's. */
static bool is_stub_of(struct planning *planning, const struct place *place, uint32_t entry,
		       struct made_stub *stub)
{
	const struct ky_patch *patch = planning->patch;
	const uint64_t at = patch->table[entry].stub;
	const uint32_t where = region_of(patch, at);
	const struct region_image *image =
		where == KY_PATCH_REGIONS_MAX ? NULL : image_of(planning, where);
	if (!image || make_stub_of(planning, place, entry, at, stub))
		return false;
	const uint64_t offset = at - patch->keep.regions[where].at;
	return offset + stub->places.bytes <= patch->keep.regions[where].used &&
	       memcmp(image->bytes + offset + stub->places.body, stub->code + stub->places.body,
		      stub->places.body_bytes) == 0;
}

/* Return the function's entry of an earlier time, with its stub; UINT32_MAX: none. others: entries of other functions. */
static uint32_t find_entry(struct planning *planning, const struct place *place,
			   struct made_stub *stub, uint32_t *others)
{
	const struct ky_patch *patch = planning->patch;
	struct ky_hash_probe probe = ky_patch_table_probe(patch, place->address, place->form);
	*others = 0;
	for (uint32_t entry; (entry = ky_patch_table_next(patch, &probe, place->address,
							  place->form)) != UINT32_MAX;
	     ++*others)
		if (is_stub_of(planning, place, entry, stub))
			return entry;
	return UINT32_MAX;
}

/* Make an entry with a stub at its region's end. Return it; UINT32_MAX: impossible. */
static uint32_t new_entry(struct planning *planning, const struct place *place, uint32_t others,
			  struct made_stub *stub)
{
	struct ky_patch *patch = planning->patch;
	const uint32_t where = patch->modules[place->module].region;
	if (where == KY_PATCH_REGIONS_MAX || patch->table_count >= patch->home.patches_max ||
	    others >= KY_PATCH_SAME_MAX ||
	    patch->keep.regions[where].bytes - patch->keep.regions[where].used < KY_STUB_MAX) {
		planning->full++;
		return UINT32_MAX;
	}
	struct ky_patch_region *region = &patch->keep.regions[where];
	const uint64_t at = region->at + region->used;
	if (make_stub_of(planning, place, patch->table_count, at, stub)) {
		planning->far++;
		return UINT32_MAX;
	}
	const uint32_t entry = ky_patch_table_add(patch, place->address, place->form);
	patch->table[entry].stub = at;
	region->used += (stub->places.bytes + KY_STUB_ALIGN - 1) & ~(uint64_t)(KY_STUB_ALIGN - 1);
	return entry;
}

/* Give a function an entry, with its stub made and put into its place, and add its jump. Return 0 or -errno. */
static int plan_place(struct planning *planning, uint32_t index, const struct ky_function *function,
		      uint32_t form, const uint32_t sites[2])
{
	struct ky_patch *patch = planning->patch;
	const struct ky_patch_module *module = &patch->modules[index];
	const struct place place = {index, function,
				    function->address + function->at + module->bias, form, sites};
	struct made_stub stub;
	uint64_t bytes;
	uint32_t others;
	if (function->prologue < KY_JUMP_BYTES || function->prologue > KY_PROLOGUE_MAX) {
		planning->far++;
		return 0;
	}
	uint32_t entry = find_entry(planning, &place, &stub, &others);
	if (entry == UINT32_MAX)
		entry = new_entry(planning, &place, others, &stub);
	if (entry == UINT32_MAX)
		return 0;
	const uint64_t at = patch->table[entry].stub;
	const int error =
		put_stub(planning, region_of(patch, at), at, stub.code, stub.places.bytes);
	if (error)
		return error;
	/* Its calls keep counting. */
	struct ky_patch_spot *spot = &patch->spots[entry];
	spot->function = function;
	spot->module = index;
	spot->prologue = function->prologue;
	spot->wanted = true;
	spot->hot = false;
	return add_edit(
		planning, entry, function,
		ky_functions_code(module->functions, function->address + function->at, &bytes));
}

static uint32_t site_of(struct ky_patch *patch, const struct ky_patch_module *module,
			const struct ky_function *function, int kind)
{
	return ky_made_drum_site(&patch->drum, kind, module->name, function->name, function->linked,
				 function->file, function->line);
}

static int plan_helpers(struct planning *planning, uint32_t index)
{
	static const enum ky_stub_kind kinds[HELPERS] = {[HELPER_FIND_FDE] = KY_STUB_FIND_FDE,
							 [HELPER_LOADER] = KY_STUB_LOADER,
							 [HELPER_PRCTL] = KY_STUB_SANDBOX,
							 [HELPER_SYSCALL] = KY_STUB_SANDBOX,
							 [HELPER_ARCH] = KY_STUB_SANDBOX};
	const struct ky_patch_module *module = &planning->patch->modules[index];
	const uint32_t none[2] = {0, 0};
	int error = 0;
	for (int i = 0; !error && i < HELPERS; i++)
		if (module->helpers[i].prologue)
			error = plan_place(planning, index, &module->helpers[i], kinds[i], none);
	return error;
}

/* Plan the functions that are wanted; of a module that was planned before, those whose returns are hooked. */
static int plan_wants(struct planning *planning, uint32_t index)
{
	struct ky_patch *patch = planning->patch;
	struct ky_patch_module *module = &patch->modules[index];
	const uint32_t form = form_of_calls(patch);
	int error = 0;
	for (uint32_t i = 0; !error && i < module->wants_count; i++) {
		const struct ky_function *function =
			&module->functions->functions[module->wants[i]];
		uint32_t sites[2] = {0, 0};
		if (module->planned && hooking_entry(patch, function->address + function->at +
								    module->bias) == UINT32_MAX)
			continue;
		sites[0] = site_of(patch, module, function,
				   form == KY_STUB_ENTRY ? KYMO_KIND_INSTANT : KYMO_KIND_BEGIN);
		if (form & KY_PATCH_FORM_CHECKS)
			sites[1] = site_of(patch, module, function, KYMO_KIND_INSTANT);
		if (sites[0])
			error = plan_place(planning, index, function, form, sites);
		else
			planning->full++;
	}
	return error;
}

static int plan_module(struct planning *planning, uint32_t index)
{
	int error = plan_wants(planning, index);
	if (!error)
		error = plan_helpers(planning, index);
	planning->patch->modules[index].planned = !error;
	return error;
}

static int plan_all(struct planning *planning)
{
	struct ky_patch *patch = planning->patch;
	uint64_t wants = patch->table_count;
	for (uint32_t i = 0; i < patch->modules_count; i++)
		if (patch->modules[i].functions && (!patch->modules[i].planned || patch->switches))
			wants += patch->modules[i].wants_count + HELPERS + KY_CYG_SLOTS_MAX +
				 ky_patch_instrumented_count(patch, &patch->modules[i]);
	int error =
		wants < UINT32_MAX / 2 ? ky_patch_table_reserve(patch, (uint32_t)wants) : -E2BIG;
	for (uint32_t i = 0; !error && i < patch->modules_count; i++) {
		if (patch->modules[i].functions && !patch->modules[i].planned)
			error = plan_module(planning, i);
		else if (patch->modules[i].functions && patch->switches)
			error = plan_wants(planning, i);
	}
	if (!error)
		error = ky_patch_instrumented_plan(patch, planning->edits);
	if (!error)
		error = put_exits(planning);
	return error ? error : write_regions(planning);
}

int ky_patch_plan(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	struct planning *planning = calloc(1, sizeof(*planning));
	if (!planning)
		return -ENOMEM;
	planning->patch = patch;
	planning->edits = edits;
	const int error = plan_all(planning);
	if (!error && planning->full)
		ky_patch_note(patch, "%u functions are not traced: no memory near their code",
			      planning->full);
	if (!error && planning->far)
		ky_patch_note(patch, "%u functions are not traced: their code cannot be moved",
			      planning->far);
	patch->facts.left_out[KY_WHY_STRANGE] += planning->full + planning->far;
	for (uint32_t i = 0; i < KY_PATCH_REGIONS_MAX; i++)
		free(planning->images[i].bytes);
	free(planning);
	return error;
}

int ky_patch_plan_settle(struct ky_patch *patch, const struct ky_patch_edits *edits)
{
	uint32_t others = 0;
	for (uint32_t i = 0; i < edits->count; i++) {
		const struct ky_patch_edit *edit = &edits->items[i];
		if (edit->good)
			continue;
		patch->table[edit->entry].set = 0;
		patch->spots[edit->entry].wanted = false;
		others++;
	}
	patch->facts.left_out[KY_WHY_STRANGE] += others;
	if (others)
		ky_patch_note(patch,
			      "%u functions are not traced: their code differs from their file",
			      others);
	return ky_patch_table_write(patch);
}

void ky_patch_plan_switched(struct ky_patch *patch, const struct ky_patch_edits *edits)
{
	for (uint32_t i = 0; patch->switches && i < edits->count; i++) {
		const uint32_t hooking = edits->items[i].good
						 ? hooking_entry(patch, edits->items[i].address)
						 : UINT32_MAX;
		if (hooking == UINT32_MAX)
			continue;
		patch->spots[hooking].wanted = false;
		ky_patch_table_set(patch, hooking, false);
	}
	patch->switches = false;
}
