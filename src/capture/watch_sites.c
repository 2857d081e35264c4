/* SPDX-License-Identifier: MIT */
/*
 * watch_sites.c: which triggers a trace point concerns. Globs are matched once for each trace point; after that an event
 * costs a look into a small table by the address of its site. Only events that bring their own name, in a category
 * of interest, are matched one by one.
 */
#include "capture/watch_parts.h"

#include "core/glob.h"

#include <stdlib.h>
#include <string.h>

/* Which kinds of trigger a kind of event can concern. */
static uint64_t triggers_of_kind(const struct ky_watch *watch, uint8_t kind)
{
	switch (kind) {
	case KYMO_KIND_BEGIN:
	case KYMO_KIND_ASYNC_BEGIN:
	case KYMO_KIND_ASYNC_END:
		return watch->spans | watch->gaps;
	case KYMO_KIND_INSTANT:
	case KYMO_KIND_ASYNC_INSTANT:
		return watch->gaps;
	case KYMO_KIND_COUNTER:
		return watch->gaps | watch->counters;
	default:
		return 0;
	}
}

static uint64_t match_names(const struct ky_watch *watch, uint64_t set, struct ky_text name)
{
	uint64_t matches = 0;
	while (set) {
		const uint32_t i = ky_watch_take(&set);
		const char *glob = watch->triggers[i]->name;
		if (ky_glob_match(glob, strlen(glob), name.data, name.bytes))
			matches |= UINT64_C(1) << i;
	}
	return matches;
}

static void decide(const struct ky_watch *watch, const struct ky_site *site,
		   struct ky_watch_site *known)
{
	uint64_t left = triggers_of_kind(watch, site->kind);
	*known = (struct ky_watch_site){.site = site,
					.category = site->category.data,
					.name = site->name.data,
					.line = site->line,
					.named = (site->flags & KYMO_SITE_NAME) != 0};
	while (left) {
		const uint32_t i = ky_watch_take(&left);
		if (ky_glob_list_match(watch->triggers[i]->category, site->category.data))
			known->triggers |= UINT64_C(1) << i;
	}
	if (!known->named)
		known->triggers = match_names(watch, known->triggers, site->name);
}

static bool is_same(const struct ky_watch_site *known, const struct ky_site *site)
{
	return known->site == site && known->category == site->category.data &&
	       known->name == site->name.data && known->line == site->line;
}

static struct ky_watch_site *look_up(struct ky_watch *watch, struct ky_watch_process *process,
				     const struct ky_site *site)
{
	bool made = false;
	if (process->sites.table.count >= KY_WATCH_SITES_MAX &&
	    !ky_pair_map_find(&process->sites, (uintptr_t)site, 0))
		return NULL;
	uint64_t *at = ky_pair_map_add(&process->sites, (uintptr_t)site, 0, &made);
	if (!at)
		return NULL;
	struct ky_watch_site *known = (struct ky_watch_site *)(uintptr_t)*at;
	if (known && is_same(known, site))
		return known;
	if (!known)
		known = malloc(sizeof(*known));
	*at = (uintptr_t)known;
	if (known)
		decide(watch, site, known);
	return known;
}

uint64_t ky_watch_concerns(struct ky_watch *watch, struct ky_watch_process *process,
			   const struct ky_event *event, struct ky_watch_site **out)
{
	const struct ky_site *site = event->site;
	const uintptr_t address = (uintptr_t)site;
	struct ky_watch_site **recent =
		&process->recent[(address >> 6 ^ address >> 14) & (KY_WATCH_RECENT - 1)];
	struct ky_watch_site *known = *recent;
	if (!known || !is_same(known, site)) {
		known = look_up(watch, process, site);
		if (!known) {
			watch->dropped++;
			return 0;
		}
		*recent = known;
	}
	*out = known;
	if (!known->named || !known->triggers)
		return known->triggers;
	return match_names(watch, known->triggers, event->name);
}

static uint64_t hash_text(uint64_t hash, struct ky_text text)
{
	uint32_t at = 0;
	for (; at + 8 <= text.bytes; at += 8) {
		uint64_t word;
		memcpy(&word, text.data + at, 8);
		hash = ky_hash_pair(hash, word);
	}
	uint64_t tail = (uint64_t)text.bytes << 56;
	for (uint32_t shift = 0; at < text.bytes; at++, shift += 8)
		tail ^= (uint64_t)(uint8_t)text.data[at] << shift;
	return ky_hash_pair(hash, tail);
}

uint64_t ky_watch_key(const struct ky_event *event)
{
	return hash_text(hash_text(0, event->site->category), event->name);
}
