/* SPDX-License-Identifier: MIT */
/*
 * view_plan.c: turns a tree of nodes in any order into the view's tracks in display order: drops empty ones, sorts
 * siblings by rank, puts parents before their children, and makes keys unique. Parents are made before their children, so
 * walking the nodes backwards visits children first.
 */
#include "server/view_pyramids.h"

#include "base/array.h"
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX 256
#define KEY_BYTES_MAX 512

/* ---- nodes ---- */

uint32_t ky_view_plan_add(struct ky_view_plan *plan, uint32_t parent, enum ky_view_kind kind)
{
	if (!KY_ARRAY_GROW_ZERO(plan->nodes, plan->room, (uint64_t)plan->count + 1))
		return KY_NONE;
	struct ky_view_plan_node *const node = &plan->nodes[plan->count];
	*node = (struct ky_view_plan_node){
		.track = {.kind = kind,
			  .parent = parent,
			  .process = KY_NONE,
			  .thread = KY_NONE,
			  .cpu = KY_NONE,
			  .rows = kind == KY_VIEW_GROUP ? 0 : 1},
		.source = KY_NONE,
		.first_child = KY_NONE,
	};
	if (parent != KY_NONE) {
		node->track.process = plan->nodes[parent].track.process;
		node->track.thread = plan->nodes[parent].track.thread;
	}
	return plan->count++;
}

/* Copy a text; if it was truncated, cut it before the incomplete character. */
static char *copy_cut(char *text, size_t bytes, int made)
{
	size_t end = made < 0 ? 0 : (size_t)made;
	if (end >= bytes)
		for (end = bytes - 1; end && ((unsigned char)text[end] & 0xc0u) == 0x80u;)
			end--;
	text[end] = 0;
	return strdup(text);
}

bool ky_view_plan_name(struct ky_view_plan *plan, uint32_t node, const char *format, ...)
{
	char text[TEXT_BYTES_MAX];
	va_list args;
	va_start(args, format);
	const int made = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	free(plan->nodes[node].track.name);
	plan->nodes[node].track.name = copy_cut(text, sizeof(text) - 1, made);
	return plan->nodes[node].track.name;
}

bool ky_view_plan_key(struct ky_view_plan *plan, uint32_t node, const char *format, ...)
{
	char text[KEY_BYTES_MAX], key[KEY_BYTES_MAX];
	const uint32_t parent = plan->nodes[node].track.parent;
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	const int made = parent == KY_NONE ? snprintf(key, sizeof(key), "%s", text)
					   : snprintf(key, sizeof(key), "%s/%s",
						      plan->nodes[parent].track.key, text);
	plan->nodes[node].track.key = copy_cut(key, sizeof(key) - 1, made);
	return plan->nodes[node].track.key;
}

/* ---- what is shown ---- */

static void sum_up(struct ky_view_plan *plan)
{
	for (uint32_t i = plan->count; i-- > 0;) {
		const struct ky_view_track *const track = &plan->nodes[i].track;
		if (!track->events || track->parent == KY_NONE)
			continue;
		struct ky_view_plan_node *const parent = &plan->nodes[track->parent];
		parent->track.events += track->events;
		parent->children++;
		parent->first_child = i;
	}
}

/* Replace a group of one track by that track, under the group's name. */
static void fold(struct ky_view_plan *plan, struct ky_view_plan_node *group)
{
	struct ky_view_plan_node *const child = &plan->nodes[group->first_child];
	if (child->track.kind == KY_VIEW_GROUP)
		return;
	free(child->track.name);
	child->track.name = group->track.name;
	child->track.parent = group->track.parent;
	memcpy(child->rank, group->rank, sizeof(child->rank));
	group->track.name = NULL;
	group->track.events = 0;
}

static void fold_groups(struct ky_view_plan *plan)
{
	for (uint32_t i = plan->count; i-- > 0;)
		if (plan->nodes[i].folds && plan->nodes[i].children == 1)
			fold(plan, &plan->nodes[i]);
}

/* ---- order ---- */

static int compare_nodes(const void *a, const void *b, void *context)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct ky_view_plan_node *const nodes = context, *const l = &nodes[left],
					      *const r = &nodes[right];
	int order = KY_COMPARE(l->track.parent, r->track.parent);
	for (int i = 0; i < 3 && !order; i++)
		order = KY_COMPARE(l->rank[i], r->rank[i]);
	return order ? order : KY_COMPARE(left, right);
}

/* List the shown nodes, siblings together. Return where those without a parent begin. */
static uint32_t order_siblings(struct ky_view_plan *plan, uint32_t *order, uint32_t *count)
{
	uint32_t roots = 0;
	*count = 0;
	for (uint32_t i = 0; i < plan->count; i++) {
		plan->nodes[i].children = 0;
		if (plan->nodes[i].track.events)
			order[(*count)++] = i;
	}
	qsort_r(order, *count, sizeof(*order), compare_nodes, plan->nodes);
	for (uint32_t i = 0; i < *count; i++) {
		const uint32_t parent = plan->nodes[order[i]].track.parent;
		if (parent == KY_NONE)
			continue;
		roots = i + 1;
		if (!plan->nodes[parent].children++)
			plan->nodes[parent].first_child = i;
	}
	return roots;
}

/* ---- tracks ---- */

static void claim_pyramids(const struct ky_view_plan *plan, const struct ky_view_plan_node *node,
			   uint32_t number)
{
	struct ky_view *const view = plan->view;
	struct ky_view_track *const track = &view->tracks[number];
	track->pyramids_at = view->pyramids_count;
	track->pyramids = track->rows;
	view->pyramids_count += track->rows;
	if (track->kind == KY_VIEW_SLICES)
		plan->strands->items[node->source].node = number;
	else if (track->kind != KY_VIEW_GROUP)
		view->tables[track->kind].pyramid_of[node->source] = track->pyramids_at;
}

/* Take a node and its descendants. PARENTS_MAX of strands bounds the depth. */
static void take_node(struct ky_view_plan *plan, const uint32_t *order, uint32_t number,
		      uint32_t parent)
{
	struct ky_view *const view = plan->view;
	struct ky_view_plan_node *const node = &plan->nodes[number];
	const uint32_t track = view->tracks_count++;
	view->tracks[track] = node->track;
	view->tracks[track].parent = parent;
	node->track.key = node->track.name = NULL;
	claim_pyramids(plan, node, track);
	for (uint32_t i = 0; i < node->children; i++)
		take_node(plan, order, order[node->first_child + i], track);
}

static bool key_is_new(struct ky_pair_map *seen, const char *key, uint64_t *again)
{
	uint64_t a = 1, b = 2, word;
	bool made = false;
	assert(key);
	for (size_t left = strlen(key), at = 0; at < left; at += sizeof(word)) {
		word = 0;
		memcpy(&word, key + at, left - at < sizeof(word) ? left - at : sizeof(word));
		a = ky_hash_pair(a, word);
		b = ky_hash_pair(b, word);
	}
	uint64_t *const times = ky_pair_map_add(seen, a, b, &made);
	*again = times ? ++*times : 0;
	return made || !times;
}

/* Rename the second "p12" to "p12#2", unless another track has that key. */
static int make_keys_unique(struct ky_view *view)
{
	struct ky_pair_map seen = {0};
	int error = 0;
	for (uint32_t i = 0; !error && i < view->tracks_count; i++) {
		char *const key = view->tracks[i].key;
		char *unique = key;
		uint64_t again, ignored;
		bool made = key_is_new(&seen, key, &again);
		for (; !made; again++) {
			if (unique != key)
				free(unique);
			if (asprintf(&unique, "%s#%llu", key, (unsigned long long)again) < 0) {
				unique = key;
				error = -ENOMEM;
				break;
			}
			made = key_is_new(&seen, unique, &ignored);
		}
		if (unique != key)
			free(key);
		view->tracks[i].key = unique;
	}
	ky_pair_map_free(&seen);
	return error;
}

static int make_pyramids(const struct ky_view_plan *plan)
{
	struct ky_view *const view = plan->view;
	view->pyramids = calloc((size_t)view->pyramids_count + 1, sizeof(*view->pyramids));
	if (!view->pyramids)
		return -ENOMEM;
	for (uint32_t t = 0; t < view->tracks_count; t++)
		for (uint32_t row = 0; row < view->tracks[t].pyramids; row++)
			view->pyramids[view->tracks[t].pyramids_at + row] =
				(struct ky_view_pyramid){.track = t,
							 .row = (uint16_t)row,
							 .kind = (uint8_t)view->tracks[t].kind};
	return 0;
}

static int map_tracks(const struct ky_view_plan *plan)
{
	struct ky_view *const view = plan->view;
	const uint32_t count = view->trace->tracks.rows.count;
	view->track_of = malloc(((size_t)count + 1) * sizeof(*view->track_of));
	if (!view->track_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t strand = plan->strands->of[i];
		uint32_t *const pyramid = &view->tables[KY_VIEW_SLICES].pyramid_of[i];
		const uint32_t counter = view->tables[KY_VIEW_COUNTER].pyramid_of[i];
		if (strand != KY_NONE && plan->strands->items[strand].node != KY_NONE)
			*pyramid = view->tracks[plan->strands->items[strand].node].pyramids_at;
		view->track_of[i] = *pyramid != KY_NONE  ? view->pyramids[*pyramid].track
				    : counter != KY_NONE ? view->pyramids[counter].track
							 : KY_NONE;
	}
	return 0;
}

int ky_view_plan_finish(struct ky_view_plan *plan)
{
	struct ky_view *const view = plan->view;
	uint32_t count;
	sum_up(plan);
	fold_groups(plan);
	uint32_t *const order = malloc(((size_t)plan->count + 1) * sizeof(*order));
	view->tracks = calloc((size_t)plan->count + 1, sizeof(*view->tracks));
	int error = order && view->tracks ? 0 : -ENOMEM;
	if (!error) {
		const uint32_t roots = order_siblings(plan, order, &count);
		for (uint32_t i = roots; i < count; i++)
			take_node(plan, order, order[i], KY_NONE);
		error = make_keys_unique(view);
	}
	free(order);
	if (!error)
		error = make_pyramids(plan);
	return error ? error : map_tracks(plan);
}
