/* SPDX-License-Identifier: MIT */
/*
 * kymo_site.h: trace points for events that were not recorded by one: one for all events with the same
 * kind, category, name and the keys and types of their arguments.
 *
 * The writer of .kymo files looks trace points up in a recorder's table, by the number in an event's word; these are
 * put into such a table.
 */
#ifndef KY_FORMATS_KYMO_KYMO_SITE_H
#define KY_FORMATS_KYMO_KYMO_SITE_H

#include "base/map.h"
#include "core/event.h"
#include "core/sites.h"
#include "model/trace.h"

#define KY_KYMO_EXPORT_SITES (1u << 20)

struct ky_kymo_sites {
	struct ky_drum_view view; /* an empty drum, so to say */
	struct ky_sites sites;    /* what the writer is given */
	struct ky_pair_map by_content;
	struct ky_pair_map categories;
};

/* The common properties of events. Arguments are rows of the trace's. */
struct ky_kymo_site_spec {
	uint8_t kind;  /* enum kymo_kind */
	uint8_t flags; /* KYMO_SITE_ */
	uint32_t category;
	struct ky_text name;
	uint32_t args[KYMO_ARGS_MAX];
	uint32_t args_count;
	struct ky_text key; /* instead of args: one double with that key */
};

int ky_kymo_sites_open(struct ky_kymo_sites *sites);
void ky_kymo_sites_close(struct ky_kymo_sites *sites);
/* Return the trace point's number as in words; 0 when there are too many, or without memory. */
uint32_t ky_kymo_site_number(struct ky_kymo_sites *sites, const struct ky_trace *trace,
			     const struct ky_kymo_site_spec *spec);

#endif
