/* SPDX-License-Identifier: MIT */
/*
 * sample_stats.c: see sample_stats.h. Callsites are a forest in which a parent has a smaller
 * number than its children; samples are summed at their callsite, then from the last callsite to
 * the first into the parents. For a function's total, the forest is walked with a count of how
 * often each function is on the stack: only the outermost place of a function adds to its total.
 */
#include "query/sample_stats.h"
#include "base/array.h"
#include "base/map.h"
#include "model/index.h"
#include "query/filter.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static int open_sums(struct ky_callsite_sums *sums, uint32_t sites)
{
	const size_t room = (size_t)sites + 1;
	*sums = (struct ky_callsite_sums){
		.weight_here = calloc(room, sizeof(double)),
		.weight_below = calloc(room, sizeof(double)),
		.samples_here = calloc(room, sizeof(uint64_t)),
		.samples_below = calloc(room, sizeof(uint64_t)),
	};
	if (sums->weight_here && sums->weight_below && sums->samples_here && sums->samples_below)
		return 0;
	ky_callsite_sums_free(sums);
	return -ENOMEM;
}

void ky_callsite_sums_free(struct ky_callsite_sums *sums)
{
	free(sums->weight_here);
	free(sums->weight_below);
	free(sums->samples_here);
	free(sums->samples_below);
	*sums = (struct ky_callsite_sums){0};
}

/* Report by callsite whether a function on its stack has a name that passes the filter. */
static uint8_t *stacks_in(const struct ky_filter *filter)
{
	const struct ky_trace *const trace = filter->trace;
	const struct ky_callsites *const sites = &trace->callsites;
	uint8_t *const in = malloc((size_t)sites->rows.count + 1);
	for (uint32_t i = 0; in && i < sites->rows.count; i++) {
		const uint32_t up = sites->parent[i];
		in[i] = (up < i && in[up]) ||
			ky_filter_name(filter, trace->frames.name[sites->frame[i]]);
	}
	return in;
}

static bool sample_in(const struct ky_filter *filter, uint32_t sample, uint32_t event)
{
	const struct ky_samples *const samples = &filter->trace->samples;
	const uint32_t thread = samples->thread[sample];
	if (event && samples->event[sample] != event)
		return false;
	return !filter->threads ||
	       (thread < filter->trace->threads.rows.count && filter->threads[thread]);
}

/* Call add() for each sample that passes. Return 0 or -ENOMEM. */
static int each_sample(const struct ky_filter *filter, uint32_t event,
		       void (*add)(void *context, uint32_t sample), void *context)
{
	const struct ky_samples *const samples = &filter->trace->samples;
	const uint32_t sites = filter->trace->callsites.rows.count;
	uint8_t *const in = stacks_in(filter);
	if (!in)
		return -ENOMEM;
	const uint32_t end = ky_index_time(samples->ts, samples->rows.count, filter->to_ns);
	for (uint32_t i = ky_index_time(samples->ts, end, filter->from_ns); i < end; i++) {
		const uint32_t site = samples->callsite[i];
		if (sample_in(filter, i, event) && (!filter->names || (site < sites && in[site])))
			add(context, i);
	}
	free(in);
	return 0;
}

struct summing {
	struct ky_callsite_sums *sums;
	const struct ky_trace *trace;
};

static void add_to_sums(void *context, uint32_t sample)
{
	const struct summing *const summing = context;
	const struct ky_samples *const samples = &summing->trace->samples;
	struct ky_callsite_sums *const sums = summing->sums;
	const uint32_t site = samples->callsite[sample];
	sums->samples++;
	sums->weight += samples->weight[sample];
	if (site >= summing->trace->callsites.rows.count)
		return;
	sums->samples_here[site]++;
	sums->weight_here[site] += samples->weight[sample];
}

static int add_samples(struct ky_callsite_sums *sums, const struct ky_filter *filter,
		       uint32_t event)
{
	struct summing summing = {.sums = sums, .trace = filter->trace};
	return each_sample(filter, event, add_to_sums, &summing);
}

/* ---- by thread or process ---- */

struct owning {
	const struct ky_trace *trace;
	struct ky_sample_owner *rows; /* by owner, and one for none */
	uint32_t owners;
	bool processes;
};

static void add_to_owner(void *context, uint32_t sample)
{
	const struct owning *const owning = context;
	const struct ky_trace *const trace = owning->trace;
	uint32_t owner = trace->samples.thread[sample];
	if (owning->processes && owner < trace->threads.rows.count)
		owner = trace->threads.process[owner];
	struct ky_sample_owner *const row =
		&owning->rows[owner < owning->owners ? owner : owning->owners];
	row->samples++;
	row->weight += trace->samples.weight[sample];
}

static int by_owner_weight(const void *a_, const void *b_)
{
	const struct ky_sample_owner *const a = a_, *const b = b_;
	return KY_COMPARE_THEN(b->weight, a->weight, KY_COMPARE(a->owner, b->owner));
}

int ky_sample_owners_make(struct ky_sample_owner **rows, uint32_t *count, struct ky_trace *trace,
			  enum ky_stats_by by, const struct ky_stats_filter *filter, uint32_t event)
{
	struct ky_filter open;
	struct owning owning = {.trace = trace, .processes = by == KY_BY_PROCESS};
	owning.owners = owning.processes ? trace->processes.rows.count : trace->threads.rows.count;
	*rows = NULL;
	*count = 0;
	int error = ky_filter_open(&open, trace, filter);
	if (error)
		return error;
	owning.rows = calloc((size_t)owning.owners + 1, sizeof(*owning.rows));
	error = owning.rows ? each_sample(&open, event, add_to_owner, &owning) : -ENOMEM;
	ky_filter_close(&open);
	for (uint32_t i = 0; i <= owning.owners && !error; i++) {
		owning.rows[i].owner = i < owning.owners ? i : KY_NONE;
		if (owning.rows[i].samples)
			owning.rows[(*count)++] = owning.rows[i];
	}
	if (error) {
		free(owning.rows);
		return error;
	}
	qsort(owning.rows, *count, sizeof(*owning.rows), by_owner_weight);
	*rows = owning.rows;
	return 0;
}

static void add_up(struct ky_callsite_sums *sums, const struct ky_callsites *sites)
{
	for (uint32_t i = sites->rows.count; i-- > 0;) {
		const uint32_t up = sites->parent[i];
		sums->samples_below[i] += sums->samples_here[i];
		sums->weight_below[i] += sums->weight_here[i];
		if (up < i) {
			sums->samples_below[up] += sums->samples_below[i];
			sums->weight_below[up] += sums->weight_below[i];
		}
	}
}

int ky_callsite_sums_make(struct ky_callsite_sums *sums, struct ky_trace *trace,
			  const struct ky_stats_filter *filter, uint32_t event)
{
	struct ky_filter open;
	*sums = (struct ky_callsite_sums){0};
	int result = ky_filter_open(&open, trace, filter);
	if (result)
		return result;
	result = open_sums(sums, trace->callsites.rows.count);
	if (result == 0)
		result = add_samples(sums, &open, event);
	if (result == 0)
		add_up(sums, &trace->callsites);
	else
		ky_callsite_sums_free(sums);
	ky_filter_close(&open);
	return result;
}

/* The callsites as lists of children, to walk them; and the rows by function name. */
struct walk {
	const struct ky_trace *trace;
	const struct ky_callsite_sums *sums;
	uint32_t *first, *next;         /* by callsite */
	uint32_t *open;                 /* by row: how often it is on the stack */
	uint32_t *row_of;               /* by frame: row or KY_NONE */
	double *frame_here;             /* by frame: weight there */
	double *frame_below;            /* the same including callees */
	struct ky_pair_map by_function; /* name, module → row + 1 */
	struct ky_function_row *rows;
	uint32_t count, room;
};

static uint32_t *none_of_all(size_t count)
{
	uint32_t *const items = malloc((count + 1) * sizeof(*items));
	for (size_t i = 0; items && i <= count; i++)
		items[i] = KY_NONE;
	return items;
}

static void close_walk(struct walk *walk)
{
	free(walk->first);
	free(walk->next);
	free(walk->open);
	free(walk->row_of);
	free(walk->frame_here);
	free(walk->frame_below);
	ky_pair_map_free(&walk->by_function);
	ky_array_release(walk->rows);
}

static uint32_t row_of_site(const struct walk *walk, uint32_t site)
{
	return walk->row_of[walk->trace->callsites.frame[site]];
}

static uint32_t module_name(const struct ky_trace *trace, uint32_t mapping)
{
	return mapping < trace->mappings.rows.count ? trace->mappings.name[mapping] : 0;
}

/*
 * Return the entry of a frame's function, which is a name in a module: two programs have a main
 * each, and unnamed functions are distinguished by module. Modules of the same path are one,
 * whichever process mapped them.
 */
static uint64_t *function_of(struct walk *walk, uint32_t frame)
{
	const struct ky_trace *const trace = walk->trace;
	bool made;
	return ky_pair_map_add(&walk->by_function, trace->frames.name[frame],
			       module_name(trace, trace->frames.mapping[frame]), &made);
}

static int add_row(struct walk *walk, uint32_t frame)
{
	const struct ky_function_row row = {.name = walk->trace->frames.name[frame],
					    .mapping = walk->trace->frames.mapping[frame],
					    .frame = frame};
	return KY_ARRAY_ADD(walk->rows, walk->count, walk->room, row) ? 0 : -ENOMEM;
}

/* Choose the frame (address) of each function that has the most samples. */
static void choose_frames(struct walk *walk)
{
	for (uint32_t i = 0; i < walk->trace->frames.rows.count; i++) {
		if (walk->row_of[i] == KY_NONE)
			continue;
		assert(walk->rows);
		uint32_t *const best = &walk->rows[walk->row_of[i]].frame;
		const double here = walk->frame_here[i] - walk->frame_here[*best];
		if (here > 0 || (here == 0 && walk->frame_below[i] > walk->frame_below[*best]))
			*best = i;
	}
}

/* Add a row for each function, with its own samples. */
static int add_rows(struct walk *walk)
{
	const struct ky_trace *const trace = walk->trace;
	for (uint32_t i = 0; i < trace->callsites.rows.count; i++) {
		const uint32_t frame = trace->callsites.frame[i];
		uint32_t *const row = &walk->row_of[frame];
		if (!walk->sums->samples_below[i])
			continue;
		if (*row == KY_NONE) {
			uint64_t *const function = function_of(walk, frame);
			if (!function || (!*function && add_row(walk, frame) != 0))
				return -ENOMEM;
			if (!*function)
				*function = walk->count;
			*row = (uint32_t)*function - 1;
		}
		assert(walk->rows);
		walk->rows[*row].self_samples += walk->sums->samples_here[i];
		walk->rows[*row].self_weight += walk->sums->weight_here[i];
		walk->frame_here[frame] += walk->sums->weight_here[i];
		walk->frame_below[frame] += walk->sums->weight_below[i];
	}
	choose_frames(walk);
	return 0;
}

static void enter(struct walk *walk, uint32_t site)
{
	const uint32_t row = row_of_site(walk, site);
	if (row == KY_NONE || walk->open[row]++)
		return;
	assert(walk->rows);
	walk->rows[row].total_samples += walk->sums->samples_below[site];
	walk->rows[row].total_weight += walk->sums->weight_below[site];
}

static void leave(struct walk *walk, uint32_t site)
{
	const uint32_t row = row_of_site(walk, site);
	if (row != KY_NONE)
		walk->open[row]--;
}

static void walk_from(struct walk *walk, uint32_t root)
{
	uint32_t site = root;
	enter(walk, site);
	for (;;) {
		if (walk->first[site] != KY_NONE) {
			site = walk->first[site];
			enter(walk, site);
			continue;
		}
		while (leave(walk, site), site != root && walk->next[site] == KY_NONE)
			site = walk->trace->callsites.parent[site];
		if (site == root)
			return;
		site = walk->next[site];
		enter(walk, site);
	}
}

static int walk_all(struct walk *walk)
{
	const struct ky_callsites *const sites = &walk->trace->callsites;
	const uint32_t count = sites->rows.count;
	walk->first = none_of_all(count);
	walk->next = none_of_all(count);
	walk->row_of = none_of_all(walk->trace->frames.rows.count);
	walk->frame_here = calloc((size_t)walk->trace->frames.rows.count + 1, sizeof(double));
	walk->frame_below = calloc((size_t)walk->trace->frames.rows.count + 1, sizeof(double));
	if (!walk->first || !walk->next || !walk->row_of || !walk->frame_here ||
	    !walk->frame_below || add_rows(walk) != 0)
		return -ENOMEM;
	walk->open = calloc((size_t)walk->count + 1, sizeof(*walk->open));
	if (!walk->open)
		return -ENOMEM;
	for (uint32_t i = count; i-- > 0;) {
		const uint32_t up = sites->parent[i];
		if (up < i) {
			walk->next[i] = walk->first[up];
			walk->first[up] = i;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		if (sites->parent[i] >= i)
			walk_from(walk, i);
	}
	return 0;
}

KY_ORDER(by_self, struct ky_function_row,
	 KY_COMPARE_THEN(b->self_weight, a->self_weight,
			 KY_COMPARE_THEN(b->total_weight, a->total_weight,
					 KY_COMPARE_THEN(a->name, b->name,
							 KY_COMPARE(a->mapping, b->mapping)))))

int ky_function_stats_make(struct ky_function_stats *stats, struct ky_trace *trace,
			   const struct ky_stats_filter *filter, uint32_t event)
{
	struct ky_callsite_sums sums;
	*stats = (struct ky_function_stats){0};
	int result = ky_callsite_sums_make(&sums, trace, filter, event);
	if (result)
		return result;
	struct walk walk = {.trace = trace, .sums = &sums};
	result = walk_all(&walk);
	if (result == 0) {
		if (walk.count)
			qsort(walk.rows, walk.count, sizeof(*walk.rows), by_self);
		*stats = (struct ky_function_stats){walk.rows, walk.count, sums.samples,
						    sums.weight};
		walk.rows = NULL;
	}
	close_walk(&walk);
	ky_callsite_sums_free(&sums);
	return result;
}

void ky_function_stats_free(struct ky_function_stats *stats)
{
	ky_array_release(stats->rows);
	*stats = (struct ky_function_stats){0};
}

uint32_t ky_sample_main_event(const struct ky_trace *trace, uint64_t *others)
{
	const struct ky_samples *const samples = &trace->samples;
	uint32_t *const counts = calloc((size_t)trace->strings.count + 1, sizeof(*counts));
	uint32_t best = 0;
	*others = 0;
	for (uint32_t i = 0; counts && i < samples->rows.count; i++) {
		const uint32_t event = samples->event[i];
		if (++counts[event] > counts[best])
			best = event;
	}
	if (counts && best)
		*others = samples->rows.count - counts[best];
	free(counts);
	return best;
}
