/* SPDX-License-Identifier: MIT */
/*
 * patch_instrumented.c: programs compiled with -finstrument-functions: see patch_parts.h. No code is changed: the
 * words through which a module finds __cyg_profile_func_enter and _exit are changed to the agent's functions, which
 * get the function's address.
 *
 *   slot of the GOT ─▶ agent ── address ─▶ known[]: hash table of the module's functions ─▶ trace point, count
 *
 * A GOT slot is an entry of the table with 8 bytes; a function is an entry with 0 bytes, for the number of its count.
 */
#include "functrace/patch_parts.h"

#include "functrace/agent_abi.h"

#include <kymo/kymo.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often a module's slots are led to the agent again: the program may write to them, too. */
#define LEAD_TRIES 4u

static bool uses_hooks(const struct ky_patch *patch, const struct ky_patch_module *module)
{
	return patch->options.engine == KY_FUNCTRACE_NOPS && module->functions &&
	       module->functions->calls_cyg && module->functions->cyg_slots_count;
}

static bool wants(const struct ky_patch *patch, const struct ky_patch_module *module,
		  const struct ky_function *function)
{
	return function->how != KY_FUNCTION_NOPS && function->how != KY_FUNCTION_SLED &&
	       ky_selection_wants(patch->options.selection, module->functions, function);
}

uint32_t ky_patch_instrumented_count(const struct ky_patch *patch,
				     const struct ky_patch_module *module)
{
	uint32_t count = 0;
	if (uses_hooks(patch, module))
		for (uint32_t i = 0; i < module->functions->count; i++)
			count += wants(patch, module, &module->functions->functions[i]);
	return count;
}

int ky_patch_instrumented_room(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	uint64_t count = 0, room = 1024;
	for (uint32_t i = 0; i < patch->modules_count; i++)
		count += ky_patch_instrumented_count(patch, &patch->modules[i]);
	while (room < count * 2)
		room *= 2;
	if (!count || (home->known && home->known_mask + 1 >= room))
		return 0;
	const uint64_t at = ky_agent_memory_map(patch, room * sizeof(struct ky_agent_known));
	if (!at)
		return -ENOMEM;
	home->known = at;
	home->known_mask = room - 1;
	return 0;
}

static void know(const struct ky_agent_home *home, struct ky_agent_known *table, uint64_t address,
		 uint32_t site, uint32_t number)
{
	uint64_t at = ky_agent_known_at(address, home->known_mask);
	while (table[at].address && table[at].address != address)
		at = (at + 1) & home->known_mask;
	table[at] = (struct ky_agent_known){.address = address, .site = site, .function = number};
}

static void know_functions(struct ky_patch *patch, uint32_t index, struct ky_agent_known *table)
{
	const struct ky_patch_module *module = &patch->modules[index];
	for (uint32_t i = 0; i < module->functions->count; i++) {
		const struct ky_function *function = &module->functions->functions[i];
		const uint64_t address = function->address + module->bias;
		if (!wants(patch, module, function) ||
		    patch->table_count >= patch->home.patches_max)
			continue;
		uint32_t entry = ky_patch_table_find(patch, address, KY_PATCH_FORM_KNOWN);
		if (entry == UINT32_MAX)
			entry = ky_patch_table_add(patch, address, KY_PATCH_FORM_KNOWN);
		const uint32_t site = ky_made_drum_site(&patch->drum, KYMO_KIND_BEGIN, module->name,
							function->name, function->linked,
							function->file, function->line);
		patch->table[entry].set = 1;
		patch->spots[entry].function = function;
		patch->spots[entry].module = index;
		if (site)
			know(&patch->home, table, address, site,
			     ky_patch_table_count_of(patch, entry));
	}
}

/*
 * Report whether the loader has not relocated a slot yet: it holds an address of the file, or nothing. It stops for
 * debuggers before that.
 */
static bool is_raw(const struct ky_patch_module *module, uint64_t now)
{
	return module->bias &&
	       (!now || now + module->bias - module->from < module->to - module->from);
}

static uint64_t leads_to(const struct ky_patch *patch, const struct ky_cyg_slot *slot)
{
	struct ky_agent_table agent;
	memcpy(&agent, ky_agent_code, sizeof(agent));
	return patch->home.code_at + (slot->is_exit ? agent.cyg_exit : agent.cyg_enter);
}

/*
 * Lead a slot to the agent. A raw one gets what becomes the agent's address when the loader adds the module's: if it
 * resolves the name at once instead, a later round comes back to it. Return 0 or -ENOMEM.
 */
static int lead_slot(struct ky_patch *patch, const struct ky_patch_module *module,
		     const struct ky_cyg_slot *slot, struct ky_patch_edits *edits)
{
	const uint64_t address = slot->address + module->bias;
	const uint64_t to = leads_to(patch, slot);
	const uint32_t form = slot->is_exit ? KY_STUB_CYG_EXIT : KY_STUB_CYG_ENTER;
	uint64_t now;
	if (address % 8 || ky_remote_read(&patch->remote, address, &now, sizeof(now)) ||
	    now == to || (is_raw(module, now) && !now))
		return 0;
	const uint64_t base = is_raw(module, now) ? module->bias : 0;
	const uint64_t before = now + base, put = to - base;
	uint32_t entry = ky_patch_table_find(patch, address, form);
	if (entry == UINT32_MAX)
		entry = ky_patch_table_add(patch, address, form);
	struct ky_agent_patch *e = &patch->table[entry];
	struct ky_patch_edit *edit =
		ky_patch_edits_add(edits, address, entry, &now, &put, sizeof(now));
	if (!edit)
		return -ENOMEM;
	edit->data = true;
	e->bytes = sizeof(now);
	e->set = 1;
	memcpy(e->before, &before, sizeof(before));
	memcpy(e->after, &to, sizeof(to));
	return 0;
}

static int lead_slots(struct ky_patch *patch, uint32_t index, struct ky_patch_edits *edits)
{
	const struct ky_patch_module *module = &patch->modules[index];
	int error = 0;
	for (uint32_t i = 0; !error && i < module->functions->cyg_slots_count; i++)
		error = lead_slot(patch, module, &module->functions->cyg_slots[i], edits);
	return error;
}

/* Report whether the loader has resolved a slot of the module since. */
static bool is_lost(const struct ky_patch *patch, const struct ky_patch_module *module)
{
	bool lost = false;
	for (uint32_t i = 0; i < module->functions->cyg_slots_count; i++) {
		const struct ky_cyg_slot *slot = &module->functions->cyg_slots[i];
		const uint64_t to = leads_to(patch, slot);
		uint64_t now;
		lost |= !ky_remote_read(&patch->remote, slot->address + module->bias, &now,
					sizeof(now)) &&
			now != to && now != to - module->bias && !is_raw(module, now);
	}
	return lost;
}

bool ky_patch_instrumented_lost(struct ky_patch *patch)
{
	bool any = false;
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		struct ky_patch_module *module = &patch->modules[i];
		if (!module->led || module->led_again == LEAD_TRIES || !is_lost(patch, module))
			continue;
		module->led_again++;
		module->led = false;
		any = true;
	}
	return any;
}

int ky_patch_instrumented_plan(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	const struct ky_agent_home *home = &patch->home;
	int error = 0;
	bool any = false;
	for (uint32_t i = 0; i < patch->modules_count; i++)
		any |= uses_hooks(patch, &patch->modules[i]) && !patch->modules[i].led;
	if (!any || !home->known)
		return 0;
	struct ky_agent_known *table = calloc(home->known_mask + 1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; !error && i < patch->modules_count; i++) {
		if (!uses_hooks(patch, &patch->modules[i]))
			continue;
		know_functions(patch, i, table);
		if (!patch->modules[i].led)
			error = lead_slots(patch, i, edits);
		patch->modules[i].led = true;
	}
	if (!error)
		error = ky_remote_write(&patch->remote, home->known, table,
					(home->known_mask + 1) * sizeof(*table));
	free(table);
	return error;
}
