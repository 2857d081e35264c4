/* SPDX-License-Identifier: MIT */
/* pftrace_iids.c: the map from interned ids to numbers; pftrace_iids.h has the plan. */
#include "formats/pftrace/pftrace_iids.h"

#include "base/array.h"

static bool is_dense(const struct ky_pf_iids *iids, uint64_t iid)
{
	return iid < iids->dense_room ||
	       (iid < 2 * (uint64_t)iids->dense_used + 32 && iid < UINT32_MAX / 8);
}

uint32_t *ky_pf_iids_add(struct ky_pf_iids *iids, uint64_t iid, bool *made)
{
	uint32_t *value = ky_pf_iids_find(iids, iid);
	*made = !value;
	if (value)
		return value;
	if (!is_dense(iids, iid))
		return ky_u64_map_add(&iids->sparse, iid, made);
	if (!KY_ARRAY_GROW_ZERO(iids->dense, iids->dense_room, iid + 1))
		return NULL;
	iids->dense_used += iids->dense[iid].generation == 0;
	iids->dense[iid] = (struct ky_pf_iid){iids->past + 1, 0};
	return &iids->dense[iid].value;
}

void ky_pf_iids_clear(struct ky_pf_iids *iids)
{
	ky_u64_map_free(&iids->sparse);
	if (++iids->past == UINT32_MAX)
		ky_pf_iids_free(iids);
}

void ky_pf_iids_free(struct ky_pf_iids *iids)
{
	KY_ARRAY_FREE(iids->dense, iids->dense_room);
	ky_u64_map_free(&iids->sparse);
	*iids = (struct ky_pf_iids){0};
}
