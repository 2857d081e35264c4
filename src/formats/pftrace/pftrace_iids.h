/* SPDX-License-Identifier: MIT */
/*
 * pftrace_iids.h: a map from interned ids to numbers. Writers mostly count ids up from 1: those are an array, which
 * grows only while the ids in it are dense, so that memory stays in proportion to the input. All other ids are hashed.
 * Clearing the map is cheap: it starts a new generation.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_IIDS_H
#define KY_FORMATS_PFTRACE_PFTRACE_IIDS_H

#include "base/map.h"

struct ky_pf_iid {
	uint32_t generation;
	uint32_t value;
};

/* All zero is an empty map. */
struct ky_pf_iids {
	struct ky_pf_iid *dense; /* by iid */
	uint32_t dense_room;
	uint32_t dense_used;
	uint32_t past; /* generations before this one */
	struct ky_u64_map sparse;
};

/* Return where the value is, until the next add; NULL when there is none. */
static inline uint32_t *ky_pf_iids_find(const struct ky_pf_iids *iids, uint64_t iid)
{
	if (iid < iids->dense_room && iids->dense[iid].generation == iids->past + 1)
		return &iids->dense[iid].value;
	return ky_u64_map_find(&iids->sparse, iid);
}

/* Return where the value is, adding it as 0 (*made is then true); NULL without memory. */
uint32_t *ky_pf_iids_add(struct ky_pf_iids *iids, uint64_t iid, bool *made);
void ky_pf_iids_clear(struct ky_pf_iids *iids);
void ky_pf_iids_free(struct ky_pf_iids *iids);

#endif
