/* SPDX-License-Identifier: MIT */
/*
 * address_space.h: what a process that lives has mapped where: ranges in order, none over another. A new one takes the
 * place of what it covers. (Processes of a recording, which fork and never go away, are kept in base/ranges.h.)
 *
 * A module is a number of the owner's: a file that code is mapped from.
 */
#ifndef KY_PROCESS_ADDRESS_SPACE_H
#define KY_PROCESS_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#define KY_NO_MODULE UINT32_MAX

struct ky_address_range {
	uint64_t start, end;
	uint64_t offset; /* in the module's file, of start */
	uint32_t module;
	uint32_t protection, flags; /* as the owner wants */
};

/* All zero is empty. */
struct ky_address_space {
	struct ky_address_range *ranges;
	uint32_t count, room;
};

void ky_address_space_free(struct ky_address_space *space);
/* Put a range; what it covers is cut or replaced. False without memory, or when there are too many. */
bool ky_address_space_put(struct ky_address_space *space, const struct ky_address_range *range);
/* Return the range that has the address; NULL: none is known. Valid until the next change. */
const struct ky_address_range *ky_address_space_find(const struct ky_address_space *space,
						     uint64_t address);
/* Make a space a copy of another (fork). False without memory: then it is empty. */
bool ky_address_space_copy(struct ky_address_space *space, const struct ky_address_space *from);

#endif
