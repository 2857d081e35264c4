/* SPDX-License-Identifier: MIT */
/* losses.c: what a drum counted as lost, and the words for it. */
#include "core/losses.h"

static uint64_t load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

struct ky_lost_counts ky_losses_read(const struct ky_drum_header *live, uint64_t damaged)
{
	return (struct ky_lost_counts){
		.count = {
			[KY_LOST_RINGLESS] = load(&live->lost_ringless),
			[KY_LOST_NESTED] = load(&live->lost_nested),
			[KY_LOST_UNFINISHED] = load(&live->lost_unfinished),
			[KY_LOST_DAMAGED] = damaged,
			[KY_LOST_SITES] = load(&live->refused_sites),
			[KY_LOST_STRINGS] = load(&live->refused_strings),
			[KY_LOST_NAMES] = load(&live->refused_names),
			[KY_LOST_CATEGORIES] = load(&live->refused_categories),
		}};
}

uint64_t ky_losses_events(const struct ky_lost_counts *losses)
{
	uint64_t events = 0;
	for (uint32_t i = 0; i < KY_LOST_EVENTS; i++)
		events += losses->count[i];
	return events;
}

#define EVENTS_LOST "events lost: "

const char *ky_losses_what(enum ky_lost_cause cause)
{
	return ky_losses_text(cause) + (cause < KY_LOST_EVENTS ? sizeof(EVENTS_LOST) - 1 : 0);
}

const char *ky_losses_text(enum ky_lost_cause cause)
{
	static const char *const texts[KY_LOST_CAUSES] = {
		[KY_LOST_RINGLESS] = EVENTS_LOST "no buffer for their thread",
		[KY_LOST_NESTED] = EVENTS_LOST "in signal handlers, too deep",
		[KY_LOST_UNFINISHED] = EVENTS_LOST "a signal handler jumped out of them",
		[KY_LOST_DAMAGED] = EVENTS_LOST "damaged",
		[KY_LOST_SITES] = "trace points without a name: no room for it",
		[KY_LOST_STRINGS] = "texts lost: no room for them",
		[KY_LOST_NAMES] = "names of threads lost: no room for them",
		[KY_LOST_CATEGORIES] = "trace points that stay off: no room for their category",
	};
	return cause < KY_LOST_CAUSES ? texts[cause] : "";
}
