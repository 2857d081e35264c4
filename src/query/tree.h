/* SPDX-License-Identifier: MIT */
/*
 * tree.h: what was called from where, and how long it took in all: the slices of a trace, or its
 * samples, with those of the same name in the same place made one.
 *
 *   slices   a ─┬─ b        tree   a  2 ×
 *               └─ b               └─ b  3 ×
 *            a ─── b
 *
 * Nodes are numbered so that a parent comes before its children. Siblings are in descending order
 * of their total.
 */
#ifndef KY_QUERY_TREE_H
#define KY_QUERY_TREE_H

#include "base/map.h"
#include "query/stats.h"

struct ky_tree_node {
	uint32_t key;    /* string; the outermost ones are threads or processes with by */
	uint32_t parent; /* node or KY_NONE */
	uint32_t first;  /* child or KY_NONE */
	uint32_t next;   /* sibling or KY_NONE */
	uint32_t depth;
	uint32_t rank; /* among its siblings: 0 is the one with the largest total */
	uint64_t count;
	int64_t total_ns;
	int64_t self_ns; /* total less that of the children */
};

struct ky_tree {
	struct ky_tree_node *nodes;
	uint32_t count, room;
	uint32_t first;             /* the outermost one, or KY_NONE */
	struct ky_hash_index index; /* private: nodes by parent and key */
};

/*
 * Make a tree of slices: one tree with KY_BY_NAME, or one for each thread or process with
 * KY_BY_THREAD or KY_BY_PROCESS. A name in the filter selects the roots; everything below is
 * included. 0, -ENOMEM, or -EINTR when stopped.
 */
int ky_tree_make(struct ky_tree *tree, struct ky_trace *trace, enum ky_stats_by by,
		 const struct ky_stats_filter *filter);
/* Make a tree of the samples of an event (0: all): times are weights, counts are samples. */
int ky_tree_make_samples(struct ky_tree *tree, struct ky_trace *trace,
			 const struct ky_stats_filter *filter, uint32_t event);
void ky_tree_free(struct ky_tree *tree);

/* Return the node that is displayed after this one, or KY_NONE; into: with its children. */
uint32_t ky_tree_after(const struct ky_tree *tree, uint32_t node, bool into);

#endif
