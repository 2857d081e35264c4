/* SPDX-License-Identifier: MIT */
/* address_space.c: see address_space.h. */
#include "process/address_space.h"

#include "base/array.h"

#define RANGES_MAX (1u << 20)

void ky_address_space_free(struct ky_address_space *space)
{
	KY_ARRAY_FREE(space->ranges, space->room);
	space->count = 0;
}

/* Return the first range that ends behind the address. */
static uint32_t first_behind(const struct ky_address_space *space, uint64_t address)
{
	uint32_t low = 0;
	uint32_t high = space->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (space->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool ky_address_space_put(struct ky_address_space *space, const struct ky_address_range *range)
{
	if (range->start >= range->end || space->count >= RANGES_MAX ||
	    !KY_ARRAY_GROW(space->ranges, space->room, space->count + 2))
		return false;
	struct ky_address_range *const ranges = space->ranges;
	const uint32_t first = first_behind(space, range->start);
	uint32_t last = first; /* behind the last that is touched */
	while (last < space->count && ranges[last].start < range->end)
		last++;
	struct ky_address_range parts[3];
	uint32_t count = 0;
	if (last > first && ranges[first].start < range->start) {
		parts[count] = ranges[first];
		parts[count++].end = range->start;
	}
	parts[count++] = *range;
	if (last > first && ranges[last - 1].end > range->end) {
		parts[count] = ranges[last - 1];
		parts[count].offset += range->end - parts[count].start;
		parts[count++].start = range->end;
	}
	memmove(ranges + first + count, ranges + last, (space->count - last) * sizeof(*ranges));
	memcpy(ranges + first, parts, count * sizeof(*ranges));
	space->count = space->count - (last - first) + count;
	return true;
}

const struct ky_address_range *ky_address_space_find(const struct ky_address_space *space,
						     uint64_t address)
{
	const uint32_t number = first_behind(space, address);
	return number < space->count && space->ranges[number].start <= address
		       ? &space->ranges[number]
		       : NULL;
}

bool ky_address_space_copy(struct ky_address_space *space, const struct ky_address_space *from)
{
	space->count = 0;
	if (!KY_ARRAY_GROW(space->ranges, space->room, from->count))
		return false;
	if (from->count)
		memcpy(space->ranges, from->ranges, from->count * sizeof(*space->ranges));
	space->count = from->count;
	return true;
}
