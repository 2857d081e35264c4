/* SPDX-License-Identifier: MIT */
/* patch_table.c: the table of what was overwritten, here and in the process: see patch_parts.h. */
#if defined(__x86_64__)
#include "functrace/patch_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
#else
typedef int ky_patch_table_is_for_x86_64; /* an empty file is none in C */
#endif
