/* SPDX-License-Identifier: MIT */
/* index.c: see index.h. Each index is made once, under a lock, by counting: two passes over one column. */
#include "model/index.h"

#include "base/array.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct table {
	uint32_t *begins; /* keys + 1 of them; NULL: not made yet */
	uint32_t *rows;
	uint32_t keys;
};

struct ky_index {
	pthread_mutex_t lock;
	struct table tables[KY_INDEX_COUNT];
};

/* The column of an index, its rows, and the limit of its keys. */
struct source {
	const uint32_t *keys;
	uint32_t rows;
	uint32_t keys_max;
};

static struct source source_of(const struct ky_trace *t, enum ky_index_of of)
{
	const uint32_t cpus_max = 1u << 16;
	switch (of) {
	case KY_INDEX_SLICE_TRACK:
		return (struct source){t->slices.track, t->slices.rows.count, t->tracks.rows.count};
	case KY_INDEX_SLICE_NAME:
		return (struct source){t->slices.name, t->slices.rows.count, t->strings.count};
	case KY_INDEX_SLICE_PARENT:
		return (struct source){t->slices.parent, t->slices.rows.count,
				       t->slices.rows.count};
	case KY_INDEX_COUNTER_TRACK:
		return (struct source){t->counters.track, t->counters.rows.count,
				       t->tracks.rows.count};
	case KY_INDEX_SCHED_CPU:
		return (struct source){t->sched.cpu, t->sched.rows.count, cpus_max};
	case KY_INDEX_SCHED_THREAD:
		return (struct source){t->sched.thread, t->sched.rows.count, t->threads.rows.count};
	case KY_INDEX_STATE_THREAD:
		return (struct source){t->thread_states.thread, t->thread_states.rows.count,
				       t->threads.rows.count};
	case KY_INDEX_SAMPLE_THREAD:
		return (struct source){t->samples.thread, t->samples.rows.count,
				       t->threads.rows.count};
	case KY_INDEX_FLOW_OUT:
		return (struct source){t->flows.out, t->flows.rows.count, t->slices.rows.count};
	case KY_INDEX_FLOW_IN:
		return (struct source){t->flows.in, t->flows.rows.count, t->slices.rows.count};
	case KY_INDEX_COUNT:
		break;
	}
	return (struct source){NULL, 0, 0};
}

static bool make(struct table *table, const struct source *source)
{
	uint32_t *begins = calloc((size_t)source->keys_max + 2, sizeof(*begins));
	uint32_t *rows = malloc(((size_t)source->rows + 1) * sizeof(*rows));
	if (!begins || !rows) {
		free(begins);
		free(rows);
		return false;
	}
	/* Counts go two places further, so that filling moves each start to its place. */
	for (uint32_t i = 0; i < source->rows; i++)
		if (source->keys[i] < source->keys_max)
			begins[source->keys[i] + 2]++;
	for (uint32_t i = 2; i < source->keys_max + 2; i++)
		begins[i] += begins[i - 1];
	for (uint32_t i = 0; i < source->rows; i++)
		if (source->keys[i] < source->keys_max)
			rows[begins[source->keys[i] + 1]++] = i;
	table->rows = rows;
	table->keys = source->keys_max;
	/* Release: pairs with the acquire in ky_index_get(), which finds it without the lock. */
	__atomic_store_n(&table->begins, begins, __ATOMIC_RELEASE);
	return true;
}

int ky_index_open(struct ky_trace *trace)
{
	trace->index = calloc(1, sizeof(*trace->index));
	if (!trace->index)
		return -ENOMEM;
	pthread_mutex_init(&trace->index->lock, NULL);
	return 0;
}

void ky_index_close(struct ky_trace *trace)
{
	if (!trace->index)
		return;
	for (uint32_t i = 0; i < KY_INDEX_COUNT; i++) {
		free(trace->index->tables[i].begins);
		free(trace->index->tables[i].rows);
	}
	pthread_mutex_destroy(&trace->index->lock);
	free(trace->index);
	trace->index = NULL;
}

struct ky_index_rows ky_index_get(struct ky_trace *trace, enum ky_index_of of, uint32_t key)
{
	struct table *table = &trace->index->tables[of];
	const uint32_t *begins = __atomic_load_n(&table->begins, __ATOMIC_ACQUIRE);
	if (!begins) {
		const struct source source = source_of(trace, of);
		pthread_mutex_lock(&trace->index->lock);
		const bool made = table->begins || make(table, &source);
		pthread_mutex_unlock(&trace->index->lock);
		if (!made)
			return (struct ky_index_rows){.failed = true};
		begins = table->begins;
	}
	if (key >= table->keys)
		return (struct ky_index_rows){0};
	return (struct ky_index_rows){.rows = table->rows + begins[key],
				      .count = begins[key + 1] - begins[key]};
}

uint32_t ky_index_time(const int64_t *ts, uint32_t count, int64_t from)
{
	return KY_ARRAY_SEARCH(0, count, at, ts[at] < from);
}
