/* SPDX-License-Identifier: MIT */
/*
 * patch_table.c: the table of entries, a copy of the process's, and the calls of each entry's function: see
 * patch_parts.h.
 *
 *   table[] and spots[]   side by side: what the process has of an entry, and what only kymo knows of it
 *   by_address            finds an entry by its address and form
 *
 * Each state has its own 32-bit counts; a function's rate is the growth of their sum, taken in 32 bits as well, since
 * the last check. The more counts there are, the less often they are checked. Functions that are called too often
 * lose their jumps.
 */
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "functrace/patch_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_ENTRIES 16384u
#define BYTE_NS UINT64_C(20) /* time between two checks, for each byte of counts */

/* Make an entry findable; its room was reserved. */
static void index_entry(struct ky_patch *patch, uint32_t entry)
{
	const struct ky_agent_patch *e = &patch->table[entry];
	(void)ky_hash_index_add(&patch->by_address, ky_hash_pair(e->address, e->pad), entry);
}

int ky_patch_table_reserve(struct ky_patch *patch, uint32_t count)
{
	return KY_ARRAY_GROW(patch->table, patch->table_room, count) &&
			       KY_ARRAY_GROW_ZERO(patch->spots, patch->spots_room, count) &&
			       ky_hash_index_reserve(&patch->by_address, count)
		       ? 0
		       : -ENOMEM;
}

uint32_t ky_patch_table_find(const struct ky_patch *patch, uint64_t address, uint32_t form)
{
	struct ky_hash_probe probe = ky_patch_table_probe(patch, address, form);
	return ky_patch_table_next(patch, &probe, address, form);
}

struct ky_hash_probe ky_patch_table_probe(const struct ky_patch *patch, uint64_t address,
					  uint32_t form)
{
	return ky_hash_index_probe(&patch->by_address, ky_hash_pair(address, form));
}

uint32_t ky_patch_table_next(const struct ky_patch *patch, struct ky_hash_probe *probe,
			     uint64_t address, uint32_t form)
{
	for (uint32_t i; ky_hash_index_next(probe, &i);)
		if (patch->table[i].address == address && patch->table[i].pad == form)
			return i;
	return UINT32_MAX;
}

/* Report whether an address has as many entries of a form as it may have. */
static bool is_crowded(const struct ky_patch *patch, uint64_t address, uint32_t form)
{
	struct ky_hash_probe probe = ky_patch_table_probe(patch, address, form);
	uint32_t count = 0;
	while (count < KY_PATCH_SAME_MAX &&
	       ky_patch_table_next(patch, &probe, address, form) != UINT32_MAX)
		count++;
	return count == KY_PATCH_SAME_MAX;
}

uint32_t ky_patch_table_count_of(const struct ky_patch *patch, uint32_t entry)
{
	return entry < patch->home.counts ? entry : patch->home.counts - 1;
}

uint32_t ky_patch_table_add(struct ky_patch *patch, uint64_t address, uint32_t form)
{
	const uint32_t entry = patch->table_count++;
	patch->table[entry] =
		(struct ky_agent_patch){.address = address,
					.pad = (uint16_t)form,
					.function = ky_patch_table_count_of(patch, entry)};
	patch->spots[entry] = (struct ky_patch_spot){0};
	index_entry(patch, entry);
	return entry;
}

/* Add the next entries of the process's table, if they can be true. */
static int read_some(struct ky_patch *patch, uint32_t count)
{
	const uint32_t first = patch->table_count;
	int error = ky_patch_table_reserve(patch, first + count);
	if (!error)
		error = ky_remote_read(&patch->remote,
				       patch->home.patches + first * sizeof(patch->table[0]),
				       patch->table + first, count * sizeof(patch->table[0]));
	for (uint32_t i = first; !error && i < first + count; i++) {
		const struct ky_agent_patch *entry = &patch->table[i];
		/* More entries of an address than kymo makes would make the index slow. */
		if (entry->bytes > sizeof(entry->before) || entry->address >> 47 ||
		    is_crowded(patch, entry->address, entry->pad))
			return -EPROTO;
		patch->table_count++;
		index_entry(patch, i);
	}
	return error;
}

int ky_patch_table_read(struct ky_patch *patch)
{
	const struct ky_agent_home *home = &patch->home;
	if (home->patches_count > home->patches_max || home->patches_count > KY_AGENT_FUNCTIONS_MAX)
		return -EPROTO;
	patch->table_count = 0;
	ky_hash_index_free(&patch->by_address);
	int error = 0;
	/* Memory is taken for what is there, not for what home claims. */
	while (!error && patch->table_count < home->patches_count) {
		const uint64_t left = home->patches_count - patch->table_count;
		error = read_some(patch, left < READ_ENTRIES ? (uint32_t)left : READ_ENTRIES);
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
	error = KY_PATCH_HOME_WRITE(patch, functions);
	return error ? error : KY_PATCH_HOME_WRITE(patch, patches_count);
}

void ky_patch_table_set(struct ky_patch *patch, uint32_t entry, bool set)
{
	patch->table[entry].set = set;
	(void)ky_remote_write(&patch->remote,
			      patch->home.patches + entry * sizeof(patch->table[0]) +
				      offsetof(struct ky_agent_patch, set),
			      &patch->table[entry].set, 1);
}

/* ---- calls ---- */

static uint32_t states_used(const struct ky_patch *patch)
{
	uint32_t used = 0;
	if (KY_PATCH_HOME_READ(patch, states_used, &used))
		return 0;
	return used < KY_AGENT_STATES_MAX ? used : KY_AGENT_STATES_MAX;
}

/* Return how many entries have a count of their own, or share the last one. */
static uint32_t counts_used(const struct ky_patch *patch)
{
	return patch->table_count < patch->home.counts ? patch->table_count : patch->home.counts;
}

/* Sum the counts of all states: the sums are in the first half of counts, a state's in the second. */
static bool sum(struct ky_patch *patch, uint32_t used)
{
	const size_t count = counts_used(patch);
	if (!KY_ARRAY_GROW(patch->counts, patch->counts_room, count * 2 + 1) ||
	    !KY_ARRAY_GROW(patch->totals, patch->totals_room, used + 1))
		return false;
	uint32_t *const sums = patch->counts;
	memset(sums, 0, count * sizeof(*sums));
	for (uint32_t i = 0; i < used; i++) {
		const uint64_t at =
			patch->home.states + i * patch->home.state_bytes + KY_STATE_COUNTS;
		if (ky_remote_read(&patch->remote, at, sums + count, count * sizeof(*sums)))
			return false;
		uint32_t total = 0;
		for (size_t j = 0; j < count; j++) {
			sums[j] += sums[count + j];
			total += sums[count + j];
		}
		patch->totals[i] = total;
	}
	patch->totals_count = used;
	return true;
}

void ky_patch_table_count(struct ky_patch *patch)
{
	if (!patch->table_count || !sum(patch, states_used(patch)))
		return;
	for (uint32_t i = 0; i < counts_used(patch); i++) {
		struct ky_patch_spot *spot = &patch->spots[i];
		const uint32_t more = patch->counts[i] - (uint32_t)spot->calls;
		spot->calls += more;
		patch->facts.calls += more;
	}
}

/* Note the calls since the last check. */
static void rate(struct ky_patch *patch)
{
	for (uint32_t i = 0; i < patch->table_count; i++) {
		struct ky_patch_spot *spot = &patch->spots[i];
		spot->recent = spot->calls - spot->calls_then;
		spot->calls_then = spot->calls;
	}
}

/* Set jumps while all threads are stopped. The table has them first: another kymo may have to take them out. */
static bool set_again(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	if (ky_agent_memory_left(patch))
		return false;
	ky_patch_threads_move(patch, edits);
	if (ky_remote_apply(&patch->remote))
		return false;
	for (uint32_t i = 0; i < edits->count; i++)
		if (edits->items[i].good)
			ky_patch_table_set(patch, edits->items[i].entry, true);
	return !ky_patch_edits_write(edits, &patch->remote);
}

/* Take the jumps of the entries out, or set them again, while all threads are stopped. */
static bool change(struct ky_patch *patch, struct ky_patch_edits *edits, const uint32_t *entries,
		   uint32_t count)
{
	char message[KY_MESSAGE_BYTES];
	for (uint32_t i = 0; i < count; i++) {
		const struct ky_agent_patch *entry = &patch->table[entries[i]];
		struct ky_patch_edit *edit = ky_patch_edits_add(
			edits, entry->address, entries[i],
			edits->again ? entry->before : entry->after,
			edits->again ? entry->after : entry->before, entry->bytes);
		if (!edit)
			return false;
		if (edits->again)
			edit->prologue = patch->spots[entries[i]].prologue;
	}
	if (!count || ky_patch_edits_prepare(edits, &patch->remote) ||
	    ky_patch_stop(patch, message))
		return false;
	const bool done = edits->again ? set_again(patch, edits)
				       : !ky_agent_memory_left(patch) &&
						 !ky_patch_edits_write(edits, &patch->remote);
	ky_patch_go(patch);
	return done;
}

void ky_patch_table_take_out(struct ky_patch *patch, const uint32_t *entries, uint32_t count)
{
	struct ky_patch_edits edits = {0};
	const bool done = change(patch, &edits, entries, count);
	for (uint32_t i = 0; done && i < edits.count; i++) {
		if (!edits.items[i].good)
			continue;
		patch->spots[edits.items[i].entry].hot = true;
		ky_patch_table_set(patch, edits.items[i].entry, false);
		patch->facts.hot++;
		patch->facts.patched--;
	}
	ky_patch_edits_free(&edits);
}

void ky_patch_table_put_back(struct ky_patch *patch, const uint32_t *entries, uint32_t count)
{
	struct ky_patch_edits edits = {.again = true};
	const bool done = change(patch, &edits, entries, count);
	for (uint32_t i = 0; done && i < edits.count; i++) {
		const uint32_t entry = edits.items[i].entry;
		if (!edits.items[i].good) {
			ky_patch_table_set(patch, entry, false);
			continue;
		}
		patch->spots[entry].hot = false;
		patch->facts.hot--;
		patch->facts.patched++;
	}
	ky_patch_edits_free(&edits);
}

void ky_patch_table_left_out(struct ky_patch *patch, uint32_t entry)
{
	struct ky_patch_spot *spot = &patch->spots[entry];
	const char *module = patch->modules[spot->module].name;
	char name[KY_MESSAGE_BYTES];
	if (!spot->counter) {
		snprintf(name, sizeof(name), "left out, calls/s: %.200s", spot->function->name);
		spot->counter = ky_made_drum_counter(&patch->drum, module, name);
	}
	ky_made_drum_count(&patch->drum, getpid(), spot->counter,
			   spot->hot ? (uint64_t)(spot->rate * 1e9) : 0);
}

/* Take the jumps out of functions that are called more often than --hot says. */
static void cool_hot(struct ky_patch *patch, uint64_t elapsed_ns)
{
	const double limit =
		(double)patch->options.hot_per_second * (double)elapsed_ns / 1000000000.0;
	uint32_t *hot = NULL, count = 0, room = 0;
	for (uint32_t i = 0; i < patch->table_count; i++) {
		const struct ky_patch_spot *spot = &patch->spots[i];
		/* Those that share the last count are not known to be called often. */
		if (i + 1 >= patch->home.counts || !spot->wanted || spot->hot ||
		    !patch->table[i].set || (double)spot->recent <= limit)
			continue;
		if (!KY_ARRAY_ADD(hot, count, room, i))
			break;
	}
	ky_patch_table_take_out(patch, hot, count);
	KY_ARRAY_FREE(hot, room);
}

void ky_patch_table_cool(struct ky_patch *patch)
{
	const uint64_t now = (uint64_t)ky_clock_monotonic();
	const uint64_t bytes = (uint64_t)states_used(patch) * patch->table_count * 4;
	const uint64_t elapsed = now - patch->rated_ns;
	if (!ky_patch_overhead_due(patch, elapsed, elapsed >= bytes * BYTE_NS))
		return;
	ky_patch_table_count(patch);
	patch->rated_ns = now;
	rate(patch);
	if (patch->options.overhead_percent)
		ky_patch_overhead_look(patch);
	if (patch->options.hot_per_second)
		cool_hot(patch, elapsed);
}

bool ky_patch_hot(const struct ky_patch *patch, uint32_t index, struct ky_patch_hot *hot)
{
	for (uint32_t i = 0; i < patch->table_count; i++) {
		const struct ky_patch_spot *spot = &patch->spots[i];
		if ((!spot->hot && !spot->outs) || !spot->function || index--)
			continue;
		*hot = (struct ky_patch_hot){.name = spot->function->name,
					     .calls = spot->calls,
					     .missed = (uint64_t)spot->missed,
					     .limited = spot->hot && !spot->outs};
		return true;
	}
	return false;
}
