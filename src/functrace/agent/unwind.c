/* SPDX-License-Identifier: MIT */
/*
 * unwind.c: what the unwinder asks about a hook. pc is the address before the one it returns to, so the last byte of the
 * stub's call. Stubs lie among other code: they are told by the call's distance and by the agent's address in their data. An
 * address elsewhere in a stub, where a signal came, has no answer, and the unwinder stops there.
 */
#include "functrace/agent/parts.h"

#include "functrace/stub_parts.h"

#include <string.h>

#define PAGE_BYTES UINT64_C(4096)
#define BEGIN_BYTES 8u

/* libgcc's struct dwarf_eh_bases. */
struct bases {
	uint64_t text, data, function;
};

extern const char slow_entry[] __attribute__((visibility("hidden")));

static bool is_hook(const uint8_t *hook)
{
	uint32_t distance;
	if (hook[-5] != 0xe8 || hook[0] != 0xe9)
		return false;
	memcpy(&distance, hook - 4, sizeof(distance));
	if (distance != KY_STUB_BODY_AFTER_HOOK)
		return false;
	uint64_t entry;
	memcpy(&entry, hook + KY_STUB_DATA_AFTER_HOOK, sizeof(entry));
	return entry == (uint64_t)(uintptr_t)slow_entry;
}

/*
 * A signal may have come at a region's very first instructions, before which nothing need be mapped: all regions begin with the
 * same ones, and on a page.
 */
static bool begins_region(const struct ky_agent_home *home, uint64_t pc)
{
	const uint64_t page = pc & ~(PAGE_BYTES - 1);
	return pc - page < BEGIN_BYTES &&
	       memcmp((const void *)(uintptr_t)page, (const void *)(uintptr_t)home->stubs_from,
		      BEGIN_BYTES) == 0;
}

const void *ky_agent_find_fde(const struct ky_agent_home *home, uint64_t pc, void *bases)
{
	if (home->unwind == 0 || pc < home->stubs_from || pc >= home->stubs_to ||
	    begins_region(home, pc) || !is_hook((const uint8_t *)(uintptr_t)pc + 1))
		return NULL;
	*(struct bases *)bases = (struct bases){.function = home->stubs_from};
	uint32_t cie_bytes;
	memcpy(&cie_bytes, (const void *)(uintptr_t)home->unwind, sizeof(cie_bytes));
	return (const uint8_t *)(uintptr_t)home->unwind + sizeof(cie_bytes) + cie_bytes;
}
