/* SPDX-License-Identifier: MIT */
/*
 * pftrace_tables.c: what readers of single kinds of packets share: numbers that stand for what an earlier packet
 * described, and tracks of the whole system by type, name and id.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

uint64_t *ky_pf_known(struct ky_pf *pf, enum ky_pf_kind kind, uint64_t one, uint64_t two, bool add)
{
	const uint64_t whose = ky_hash_pair((uint64_t)kind << 32 | pf->machine, one);
	bool made;
	if (!add)
		return ky_pair_map_find(&pf->known, whose, two);
	uint64_t *value = ky_pair_map_add(&pf->known, whose, two, &made);
	if (!value)
		pf->trace->error = -ENOMEM;
	return value;
}

uint32_t ky_pf_name(struct ky_pf *pf, const char *format, ...)
{
	char text[2048];
	va_list list;
	va_start(list, format);
	const int bytes = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	return bytes < 0 ? 0 : ky_string_z(pf->trace, text);
}

static uint32_t track_of(struct ky_pf *pf, enum ky_track_kind kind, const char *type, uint32_t name,
			 uint64_t id)
{
	const struct ky_track_spec spec = {.kind = (uint8_t)kind,
					   .owner = KY_NONE,
					   .name = name,
					   .type = ky_string_z(pf->trace, type),
					   .id = id};
	return ky_track(pf->trace, &spec);
}

uint32_t ky_pf_counter_track(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id)
{
	return track_of(pf, KY_TRACK_COUNTER, type, name, id);
}

void ky_pf_put(struct ky_pf *pf, int64_t ts, const char *type, uint32_t name, double value)
{
	ky_put_counter(pf->trace, ts, ky_pf_counter_track(pf, type, name, 0), value);
}

uint32_t ky_pf_slice_track(struct ky_pf *pf, const char *type, uint32_t name, uint64_t id)
{
	return track_of(pf, KY_TRACK_GLOBAL, type, name, id);
}
