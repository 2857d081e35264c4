/* SPDX-License-Identifier: MIT */
/* tree.c: see tree.h. */
#include "query/tree.h"
#include "base/array.h"
#include "query/filter.h"
#include "query/sample_stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Return the child of parent with that key, made when there is none; KY_NONE without memory. */
static uint32_t child(struct ky_tree *tree, uint32_t parent, uint32_t key)
{
	const uint64_t hash = ky_hash_u64((uint64_t)parent << 32 | key);
	struct ky_hash_probe probe = ky_hash_index_probe(&tree->index, hash);
	for (uint32_t i; ky_hash_index_next(&probe, &i);)
		if (tree->nodes[i].parent == parent && tree->nodes[i].key == key)
			return i;
	const struct ky_tree_node node = {
		.key = key,
		.parent = parent,
		.first = KY_NONE,
		.next = KY_NONE,
		.depth = parent == KY_NONE ? 0 : tree->nodes[parent].depth + 1,
	};
	if (!KY_ARRAY_GROW(tree->nodes, tree->room, tree->count + 1) ||
	    !ky_hash_index_add(&tree->index, hash, tree->count))
		return KY_NONE;
	tree->nodes[tree->count] = node;
	return tree->count++;
}

struct order {
	int64_t total;
	uint64_t count;
	uint32_t node;
};

KY_ORDER(ascending, struct order,
	 KY_COMPARE_THEN(a->total, b->total,
			 KY_COMPARE_THEN(a->count, b->count, KY_COMPARE(b->node, a->node))))

static void rank_siblings(struct ky_tree *tree, uint32_t first)
{
	uint32_t rank = 0;
	for (uint32_t node = first; node != KY_NONE; node = tree->nodes[node].next)
		tree->nodes[node].rank = rank++;
}

/* Link siblings: each in ascending order becomes its parent's first, so the largest one is first in the end. */
static int link_all(struct ky_tree *tree)
{
	struct order *const order = malloc(((size_t)tree->count + 1) * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->count; i++)
		order[i] = (struct order){tree->nodes[i].total_ns, tree->nodes[i].count, i};
	qsort(order, tree->count, sizeof(*order), ascending);
	for (uint32_t i = 0; i < tree->count; i++) {
		struct ky_tree_node *const node = &tree->nodes[order[i].node];
		uint32_t *const first =
			node->parent == KY_NONE ? &tree->first : &tree->nodes[node->parent].first;
		node->next = *first;
		*first = order[i].node;
	}
	free(order);
	rank_siblings(tree, tree->first);
	for (uint32_t i = 0; i < tree->count; i++)
		rank_siblings(tree, tree->nodes[i].first);
	return 0;
}

static void add_time(struct ky_tree *tree, uint32_t node, int64_t ns, uint64_t count)
{
	tree->nodes[node].count += count;
	tree->nodes[node].total_ns = ky_add_clamped(tree->nodes[node].total_ns, ns);
}

/* Subtract the children's totals from a node's self time. */
static void take_children(struct ky_tree *tree)
{
	for (uint32_t i = 0; i < tree->count; i++)
		tree->nodes[i].self_ns = tree->nodes[i].total_ns;
	for (uint32_t i = 0; i < tree->count; i++) {
		const uint32_t parent = tree->nodes[i].parent;
		if (parent != KY_NONE)
			tree->nodes[parent].self_ns = ky_sub_clamped(tree->nodes[parent].self_ns,
								     tree->nodes[i].total_ns);
	}
	/* A child that outlasted its parent. */
	for (uint32_t i = 0; i < tree->count; i++) {
		if (tree->nodes[i].self_ns < 0)
			tree->nodes[i].self_ns = 0;
	}
}

/* State while a tree is made. */
struct growing {
	struct ky_tree *tree;
	struct ky_filter filter;
	uint32_t *roots;   /* by track: node of its thread or process; NULL: one tree */
	uint32_t *node_of; /* by slice: its node, or that of the nearest slice above it */
};

static int open_roots(struct growing *growing, enum ky_stats_by by)
{
	const struct ky_trace *const trace = growing->filter.trace;
	growing->roots = malloc(((size_t)trace->tracks.rows.count + 1) * sizeof(*growing->roots));
	if (!growing->roots)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->tracks.rows.count; i++) {
		const uint32_t owner =
			by == KY_BY_THREAD ? ky_track_thread(trace, i) : ky_track_process(trace, i);
		growing->roots[i] = child(growing->tree, KY_NONE, owner);
		if (growing->roots[i] == KY_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* Return the node of the nearest slice above that has one. Skipped slices have none. */
static uint32_t node_above(const struct growing *growing, uint32_t slice)
{
	const uint32_t *const parent = growing->filter.trace->slices.parent;
	uint32_t up = parent[slice];
	while (up < slice && ky_filter_passes(&growing->filter, up)) {
		slice = up;
		up = parent[up];
	}
	return up < slice ? growing->node_of[up] : KY_NONE;
}

static int grow_slice(struct growing *growing, uint32_t slice)
{
	const struct ky_slices *const slices = &growing->filter.trace->slices;
	const uint32_t above = node_above(growing, slice);
	growing->node_of[slice] = above;
	if (slices->kind[slice] == KY_SLICE_INSTANT ||
	    !ky_filter_slice_place(&growing->filter, slice))
		return 0;
	if (above == KY_NONE && !ky_filter_name(&growing->filter, slices->name[slice]))
		return 0;
	const uint32_t root = growing->roots ? growing->roots[slices->track[slice]] : KY_NONE;
	const struct ky_interval span = ky_filter_interval(&growing->filter, slice);
	const int64_t ns = ky_sub_clamped(span.end, span.begin);
	const uint32_t node =
		child(growing->tree, above == KY_NONE ? root : above, slices->name[slice]);
	if (node == KY_NONE)
		return -ENOMEM;
	add_time(growing->tree, node, ns, 1);
	if (above == KY_NONE && root != KY_NONE)
		add_time(growing->tree, root, ns, 1);
	growing->node_of[slice] = node;
	return 0;
}

static int grow_slices(struct growing *growing, enum ky_stats_by by)
{
	const struct ky_trace *const trace = growing->filter.trace;
	int result = by == KY_BY_THREAD || by == KY_BY_PROCESS ? open_roots(growing, by) : 0;
	growing->node_of =
		malloc(((size_t)trace->slices.rows.count + 1) * sizeof(*growing->node_of));
	if (!growing->node_of)
		return -ENOMEM;
	for (uint32_t i = ky_filter_next(&growing->filter, 0);
	     i < growing->filter.end && result == 0; i = ky_filter_next(&growing->filter, i + 1))
		result = grow_slice(growing, i);
	if (result == 0 && ky_filter_stopped(&growing->filter))
		result = -EINTR;
	return result;
}

int ky_tree_make(struct ky_tree *tree, struct ky_trace *trace, enum ky_stats_by by,
		 const struct ky_stats_filter *filter)
{
	struct growing growing = {.tree = tree};
	*tree = (struct ky_tree){.first = KY_NONE};
	int result = ky_filter_open(&growing.filter, trace, filter);
	if (result == 0)
		result = grow_slices(&growing, by);
	if (result == 0) {
		take_children(tree);
		result = link_all(tree);
	}
	free(growing.roots);
	free(growing.node_of);
	ky_filter_close(&growing.filter);
	if (result)
		ky_tree_free(tree);
	return result;
}

static int grow_callsites(struct ky_tree *tree, const struct ky_trace *trace,
			  const struct ky_callsite_sums *sums, uint32_t *node_of)
{
	const struct ky_callsites *const sites = &trace->callsites;
	for (uint32_t i = 0; i < sites->rows.count; i++) {
		const uint32_t up = sites->parent[i];
		node_of[i] = KY_NONE;
		if (!sums->samples_below[i])
			continue;
		node_of[i] = child(tree, up < i ? node_of[up] : KY_NONE,
				   trace->frames.name[sites->frame[i]]);
		if (node_of[i] == KY_NONE)
			return -ENOMEM;
		add_time(tree, node_of[i], (int64_t)llround(sums->weight_below[i]),
			 sums->samples_below[i]);
	}
	take_children(tree);
	return link_all(tree);
}

int ky_tree_make_samples(struct ky_tree *tree, struct ky_trace *trace,
			 const struct ky_stats_filter *filter, uint32_t event)
{
	struct ky_callsite_sums sums;
	*tree = (struct ky_tree){.first = KY_NONE};
	int result = ky_callsite_sums_make(&sums, trace, filter, event);
	if (result)
		return result;
	uint32_t *const node_of =
		malloc(((size_t)trace->callsites.rows.count + 1) * sizeof(*node_of));
	result = node_of ? grow_callsites(tree, trace, &sums, node_of) : -ENOMEM;
	free(node_of);
	ky_callsite_sums_free(&sums);
	if (result)
		ky_tree_free(tree);
	return result;
}

void ky_tree_free(struct ky_tree *tree)
{
	KY_ARRAY_FREE(tree->nodes, tree->room);
	ky_hash_index_free(&tree->index);
	*tree = (struct ky_tree){.first = KY_NONE};
}

uint32_t ky_tree_after(const struct ky_tree *tree, uint32_t node, bool into)
{
	if (into && tree->nodes[node].first != KY_NONE)
		return tree->nodes[node].first;
	while (node != KY_NONE && tree->nodes[node].next == KY_NONE)
		node = tree->nodes[node].parent;
	return node == KY_NONE ? KY_NONE : tree->nodes[node].next;
}
