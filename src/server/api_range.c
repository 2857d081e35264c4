/* SPDX-License-Identifier: MIT */
/*
 * api_range.c: api/range and api/flame: sums over a range of time, by name and as a call tree. The sums are those of
 * `kymo report` (src/query): this only selects and writes.
 */
#include "server/api.h"

#include "query/filter.h"
#include "query/sample_stats.h"
#include "query/stats.h"
#include "query/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More than anyone reads; the longest are kept. */
#define ROWS_MAX 20000u
#define NODES_MAX 20000u

/* ---- the request ---- */

struct range {
	struct ky_stats_filter filter;
	uint8_t *tracks, *threads; /* NULL: all */
	bool empty;                /* ends at its beginning, or before */
};

static void close_range(struct range *range)
{
	free(range->tracks);
	free(range->threads);
}

/* Find the trace's tracks and threads that the chosen tracks of the view show. */
static bool choose(struct range *range, const struct ky_view *view, const uint32_t *chosen,
		   uint32_t count)
{
	const struct ky_trace *const trace = view->trace;
	uint8_t *const in = calloc((size_t)view->tracks_count + 1, 1);
	range->tracks = calloc((size_t)trace->tracks.rows.count + 1, 1);
	range->threads = calloc((size_t)trace->threads.rows.count + 1, 1);
	const bool enough = in && range->tracks && range->threads;
	for (uint32_t i = 0; enough && i < count; i++) {
		const struct ky_view_track *const track = &view->tracks[chosen[i]];
		in[chosen[i]] = track->kind == KY_VIEW_SLICES;
		if (track->kind == KY_VIEW_SAMPLES && track->thread < trace->threads.rows.count)
			range->threads[track->thread] = 1;
	}
	for (uint32_t i = 0; enough && i < trace->tracks.rows.count; i++)
		range->tracks[i] = view->track_of[i] != KY_NONE && in[view->track_of[i]];
	free(in);
	return enough;
}

static const struct ky_filter_ends *ends_of(struct ky_api *api)
{
	pthread_mutex_lock(&api->once);
	if (!api->slice_ends.ends)
		ky_filter_ends_make(&api->slice_ends, api->view->trace);
	pthread_mutex_unlock(&api->once);
	return api->slice_ends.ends ? &api->slice_ends : NULL;
}

static bool read_range(struct range *range, struct ky_api *api,
		       const struct ky_api_request *request, struct ky_api_response *response)
{
	int64_t from, to;
	uint32_t *chosen, count;
	*range = (struct range){0};
	if (!ky_api_parameter_number(request, "from", &from, response) ||
	    !ky_api_parameter_number(request, "to", &to, response) ||
	    !ky_api_parameter_tracks(api, request, &chosen, &count, response))
		return false;
	const bool enough = !chosen || choose(range, api->view, chosen, count);
	free(chosen);
	if (!enough) {
		close_range(range);
		response->body.failed = true;
		return false;
	}
	range->empty = from >= to;
	range->filter = (struct ky_stats_filter){
		.from_ns = ky_add_clamped(api->view->base_ns, from),
		.to_ns = ky_add_clamped(api->view->base_ns, to),
		.tracks = range->tracks,
		.threads = range->threads,
		.ends = ends_of(api),
		.stop = &api->stopping,
	};
	return true;
}

static void fail_range(struct ky_api_response *response, int error)
{
	if (error == -EINTR)
		ky_api_fail(response, 503, "interrupted: the trace is being closed");
	else if (error)
		response->body.failed = true;
}

/* ---- api/range ---- */

static void add_row(struct ky_json_out *json, const struct ky_trace *trace,
		    const struct ky_stats_row *row)
{
	const struct {
		const char *key;
		int64_t ns;
	} times[] = {
		{"total", row->total_ns}, {"self", row->self_ns}, {"min", row->min_ns},
		{"p50", row->p50_ns},     {"p95", row->p95_ns},   {"p99", row->p99_ns},
		{"max", row->max_ns},
	};
	ky_json_out_begin(json, NULL, '{');
	ky_api_text_name(json, "name", trace, row->key);
	ky_json_out_uint(json, "count", row->count);
	ky_json_out_uint(json, "instants", row->instants);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		ky_json_out_int(json, times[i].key, times[i].ns);
	ky_json_out_real(json, "mean", row->mean_ns);
	ky_json_out_end(json, '}');
}

void ky_api_range(struct ky_api *api, const struct ky_api_request *request,
		  struct ky_api_response *response)
{
	struct ky_trace *const trace = api->view->trace;
	struct ky_stats stats = {0};
	struct range range;
	if (!read_range(&range, api, request, response))
		return;
	const int error = range.empty ? 0 : ky_stats_make(&stats, trace, KY_BY_NAME, &range.filter);
	ky_json_out_begin(&response->json, NULL, '{');
	ky_json_out_begin(&response->json, "rows", '[');
	for (uint32_t i = 0;
	     i < stats.count && i < ROWS_MAX && response->body.bytes < KY_LIST_BYTES_MAX; i++)
		add_row(&response->json, trace, &stats.rows[i]);
	ky_json_out_end(&response->json, ']');
	ky_json_out_end(&response->json, '}');
	ky_stats_free(&stats);
	close_range(&range);
	fail_range(response, error);
}

/* ---- api/flame ---- */

/* Count samples: their weights have different units. */
static void weigh_by_count(struct ky_tree *tree)
{
	for (uint32_t i = 0; i < tree->count; i++)
		tree->nodes[i].total_ns = tree->nodes[i].self_ns = (int64_t)tree->nodes[i].count;
	for (uint32_t i = 0; i < tree->count; i++) {
		const uint32_t parent = tree->nodes[i].parent;
		if (parent != KY_NONE)
			tree->nodes[parent].self_ns -= tree->nodes[i].total_ns;
	}
}

/* Return the total below which a node is left out, to bound their number; -1 without memory. */
static int64_t least_total(const struct ky_tree *tree)
{
	if (tree->count <= NODES_MAX)
		return 0;
	int64_t *const totals = malloc(tree->count * sizeof(*totals));
	if (!totals)
		return -1;
	for (uint32_t i = 0; i < tree->count; i++)
		totals[i] = tree->nodes[i].total_ns;
	const int64_t least = ky_stats_select(totals, tree->count, tree->count - NODES_MAX);
	free(totals);
	return least;
}

static void add_node(struct ky_json_out *json, const struct ky_trace *trace,
		     const struct ky_tree_node *node, int64_t parent)
{
	ky_json_out_begin(json, NULL, '{');
	ky_api_text_name(json, "name", trace, node->key);
	ky_json_out_int(json, "parent", parent);
	ky_json_out_uint(json, "count", node->count);
	ky_json_out_int(json, "total", node->total_ns);
	ky_json_out_int(json, "self", node->self_ns);
	ky_json_out_end(json, '}');
}

/* Add the nodes in display order, renumbered: parents before their children, the heaviest first. */
static bool add_nodes(struct ky_json_out *json, const struct ky_trace *trace,
		      const struct ky_tree *tree)
{
	const int64_t least = least_total(tree);
	uint32_t *const numbers = malloc(((size_t)tree->count + 1) * sizeof(*numbers));
	uint32_t count = 0;
	bool into = false;
	for (uint32_t i = tree->first; numbers && least >= 0 && i != KY_NONE && count < NODES_MAX &&
				       json->buffer->bytes < KY_LIST_BYTES_MAX;
	     i = ky_tree_after(tree, i, into)) {
		const struct ky_tree_node *const node = &tree->nodes[i];
		into = node->total_ns >= least;
		if (!into)
			continue;
		numbers[i] = count++;
		add_node(json, trace, node,
			 node->parent == KY_NONE ? -1 : (int64_t)numbers[node->parent]);
	}
	const bool enough = numbers && least >= 0;
	free(numbers);
	return enough;
}

static int make_tree(struct ky_tree *tree, struct ky_trace *trace, const struct range *range,
		     bool samples)
{
	uint64_t others;
	*tree = (struct ky_tree){.first = KY_NONE};
	if (range->empty)
		return 0;
	if (!samples)
		return ky_tree_make(tree, trace, KY_BY_NAME, &range->filter);
	const int error = ky_tree_make_samples(tree, trace, &range->filter,
					       ky_sample_main_event(trace, &others));
	if (!error)
		weigh_by_count(tree);
	return error;
}

void ky_api_range_flame(struct ky_api *api, const struct ky_api_request *request,
			struct ky_api_response *response)
{
	struct ky_trace *const trace = api->view->trace;
	const char *const of = ky_api_parameter_text(request, "of");
	const bool samples = of && strcmp(of, "samples") == 0;
	struct ky_tree tree;
	struct range range;
	if (!of || (!samples && strcmp(of, "slices") != 0)) {
		ky_api_fail(response, 400, "of is unknown: use slices or samples");
		return;
	}
	if (!read_range(&range, api, request, response))
		return;
	const int error = make_tree(&tree, trace, &range, samples);
	ky_json_out_begin(&response->json, NULL, '{');
	ky_json_out_text(&response->json, "unit", samples ? "samples" : "ns");
	ky_json_out_begin(&response->json, "nodes", '[');
	if (!error && !add_nodes(&response->json, trace, &tree))
		response->body.failed = true;
	ky_json_out_end(&response->json, ']');
	ky_json_out_end(&response->json, '}');
	ky_tree_free(&tree);
	close_range(&range);
	fail_range(response, error);
}
