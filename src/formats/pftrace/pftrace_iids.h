/* SPDX-License-Identifier: MIT */
/*
 * pftrace_iids.h: a map from interned ids to numbers. Writers mostly count ids up from 1: those are an array, which
 * grows only while the ids in it are dense, so that memory stays in proportion to the input. All other ids are hashed.
 * Clearing the map is cheap: it starts a new generation.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_IIDS_H
#define KY_FORMATS_PFTRACE_PFTRACE_IIDS_H

#include "base/array.h"
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

static inline bool ky_pf_iids_is_dense(const struct ky_pf_iids *iids, uint64_t iid)
{
	return iid < iids->dense_room ||
	       (iid < 2 * (uint64_t)iids->dense_used + 32 && iid < UINT32_MAX / 8);
}

/* Return where the value is, adding it as 0 (*made is then true); NULL without memory. */
static inline uint32_t *ky_pf_iids_add(struct ky_pf_iids *iids, uint64_t iid, bool *made)
{
	uint32_t *value = ky_pf_iids_find(iids, iid);
	*made = !value;
	if (value)
		return value;
	if (!ky_pf_iids_is_dense(iids, iid))
		return ky_u64_map_add(&iids->sparse, iid, made);
	if (!KY_ARRAY_GROW_ZERO(iids->dense, iids->dense_room, iid + 1))
		return NULL;
	iids->dense_used += iids->dense[iid].generation == 0;
	iids->dense[iid] = (struct ky_pf_iid){iids->past + 1, 0};
	return &iids->dense[iid].value;
}

static inline void ky_pf_iids_free(struct ky_pf_iids *iids)
{
	KY_ARRAY_FREE(iids->dense, iids->dense_room);
	ky_u64_map_free(&iids->sparse);
	*iids = (struct ky_pf_iids){0};
}

static inline void ky_pf_iids_clear(struct ky_pf_iids *iids)
{
	ky_u64_map_free(&iids->sparse);
	if (++iids->past == UINT32_MAX)
		ky_pf_iids_free(iids);
}

#endif
