/* SPDX-License-Identifier: MIT */
/* kymo_site.c: trace points by their content. */
#include "formats/kymo/kymo_site.h"

#include "core/layout.h"
#include "formats/arg_tree.h"
#include "formats/walk.h"
#include "formats/xxh64.h"

#include <errno.h>
#include <stdlib.h>

int ky_kymo_sites_open(struct ky_kymo_sites *s)
{
	*s = (struct ky_kymo_sites){0};
	s->view.header.heap_at = (uint64_t)KY_CONTROL_MAX * KY_HEAP_UNIT;
	s->view.header.heap_bytes = (uint64_t)KY_KYMO_EXPORT_SITES * KY_HEAP_UNIT;
	s->sites.view = &s->view;
	s->sites.by_place = calloc(KY_KYMO_EXPORT_SITES, sizeof(*s->sites.by_place));
	return s->sites.by_place ? 0 : -ENOMEM;
}

void ky_kymo_sites_close(struct ky_kymo_sites *s)
{
	for (uint32_t i = 0; i < s->sites.count; i++)
		free(s->sites.by_place[i]);
	free(s->sites.by_place);
	ky_pair_map_free(&s->by_content);
	ky_pair_map_free(&s->categories);
}

static uint32_t type_of(uint8_t type)
{
	static const uint8_t types[] = {
		[KY_ARG_INT] = KYMO_TYPE_INT,         [KY_ARG_UINT] = KYMO_TYPE_UINT,
		[KY_ARG_REAL] = KYMO_TYPE_DOUBLE,     [KY_ARG_BOOL] = KYMO_TYPE_BOOL,
		[KY_ARG_POINTER] = KYMO_TYPE_POINTER, [KY_ARG_STRING] = KYMO_TYPE_STRING,
		[KY_ARG_JSON] = KYMO_TYPE_STRING,
	};
	return types[type];
}

static uint64_t text_hash(struct ky_text text)
{
	return text.bytes ? ky_xxh64(text.data, text.bytes) : 1;
}

/* Two hashes of all of it: the key in the map. */
static void hash_spec(const struct ky_trace *trace, const struct ky_kymo_site_spec *spec,
		      uint64_t *a, uint64_t *b)
{
	uint64_t hash = ky_hash_pair((uint64_t)spec->kind << 8 | spec->flags, spec->category);
	hash = ky_hash_pair(hash, text_hash(spec->name));
	hash = ky_hash_pair(hash, text_hash(spec->key));
	*b = ky_hash_pair(hash, 17);
	for (uint32_t i = 0; i < spec->args_count; i++) {
		const uint32_t arg = spec->args[i];
		hash = ky_hash_pair(hash,
				    (uint64_t)trace->args.key[arg] << 8 | trace->args.type[arg]);
		*b = ky_hash_pair(*b, hash);
	}
	*a = hash;
}

static uint32_t number_category(struct ky_kymo_sites *s, uint32_t category)
{
	bool made;
	const uint64_t next = s->categories.table.count;
	uint64_t *number = ky_pair_map_add(&s->categories, category, 0, &made);
	if (number && made)
		*number = next;
	return number ? (uint32_t)*number : 0;
}

/* Items before the arguments: a name, an id. */
static void add_leading(struct ky_site *site)
{
	if (site->flags & KYMO_SITE_NAME)
		site->types |= (uint64_t)KYMO_TYPE_STRING << 4 * site->items++;
	if (site->flags & KYMO_SITE_ID)
		site->types |= (uint64_t)KYMO_TYPE_UINT << 4 * site->items++;
}

static struct ky_site *make_site(struct ky_kymo_sites *s, const struct ky_trace *trace,
				 const struct ky_kymo_site_spec *spec)
{
	struct ky_site *site = calloc(1, sizeof(*site));
	if (!site)
		return NULL;
	site->index = s->sites.count;
	site->category_index = number_category(s, spec->category);
	site->kind = spec->kind;
	site->flags = spec->flags;
	site->category = ky_walk_text(trace, spec->category);
	site->name = spec->name;
	site->file = site->function = (struct ky_text){"", 0};
	add_leading(site);
	for (uint32_t i = 0; i < KYMO_ARGS_MAX; i++)
		site->keys[i] = (struct ky_text){"", 0};
	for (uint32_t i = 0; i < spec->args_count; i++) {
		site->keys[i] = ky_arg_key(trace, spec->args[i]);
		site->types |= (uint64_t)type_of(trace->args.type[spec->args[i]])
			       << 4 * site->items++;
		site->args++;
	}
	if (spec->key.bytes) {
		site->keys[0] = spec->key;
		site->types |= (uint64_t)KYMO_TYPE_DOUBLE << 4 * site->items++;
		site->args++;
	}
	return site;
}

uint32_t ky_kymo_site_number(struct ky_kymo_sites *s, const struct ky_trace *trace,
			     const struct ky_kymo_site_spec *spec)
{
	uint64_t a, b;
	bool made;
	hash_spec(trace, spec, &a, &b);
	if (s->sites.count == KY_KYMO_EXPORT_SITES && !ky_pair_map_find(&s->by_content, a, b))
		return 0;
	uint64_t *number = ky_pair_map_add(&s->by_content, a, b, &made);
	if (!number)
		return 0;
	if (!made)
		return (uint32_t)*number;
	struct ky_site *site = make_site(s, trace, spec);
	if (!site)
		return 0;
	*number = (uint64_t)KY_CONTROL_MAX + s->sites.count;
	s->sites.by_place[s->sites.count++] = site;
	return (uint32_t)*number;
}
