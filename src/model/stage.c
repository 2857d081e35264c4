/* SPDX-License-Identifier: MIT */
/* stage.c: events on their way from a reader to the builders, put into the order of time: see build.h. */
#include "base/array.h"
#include "base/queue.h"
#include "model/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_FIRST (4u << 10)
#define CHUNK_MAPPED (256u << 10)
#define CHUNK_MAX (1u << 20)
#define RECORD_MAX (sizeof(struct ky_record) + 4 * KY_KERNEL_WORDS_MAX)
#define PROGRESS_EVERY (1u << 18)

static const uint8_t words_of[KY_REC_KINDS] = {
	[KY_REC_BEGIN] = 3,
	[KY_REC_BEGIN_PLAIN] = 2,
	[KY_REC_END] = 3,
	[KY_REC_END_PLAIN] = 0,
	[KY_REC_END_FIRST] = 3,
	[KY_REC_COMPLETE] = 5,
	[KY_REC_COMPLETE_LONGEST] = 5,
	[KY_REC_INSTANT] = 3,
	[KY_REC_COUNTER] = 2,
	[KY_REC_COUNTER_ARGS] = 3,
	[KY_REC_FLOW] = 3,
	[KY_REC_FLOW_LONGEST] = 5,
	[KY_REC_LOG] = 4,
	[KY_REC_SAMPLE] = 7,
	[KY_REC_KERNEL + 0] = 0,
	[KY_REC_KERNEL + 1] = 1,
	[KY_REC_KERNEL + 2] = 2,
	[KY_REC_KERNEL + 3] = 3,
	[KY_REC_KERNEL + 4] = 4,
	[KY_REC_KERNEL + 5] = 5,
	[KY_REC_KERNEL + 6] = 6,
	[KY_REC_KERNEL + 7] = 7,
	[KY_REC_KERNEL + 8] = 8,
	[KY_REC_KERNEL + 9] = 9,
	[KY_REC_KERNEL + 10] = 10,
	[KY_REC_KERNEL + 11] = 11,
	[KY_REC_KERNEL + 12] = 12,
};

_Static_assert(KY_REC_KINDS <= 32, "a kind has 5 bits");
_Static_assert(sizeof(struct ky_record) == 16, "a record's head");

/* Among records of the same time: the lower first. */
static uint64_t rank_of(enum ky_record_kind kind, const uint32_t *words)
{
	if (kind == KY_REC_END_FIRST)
		return 0;
	if (kind != KY_REC_COMPLETE_LONGEST && kind != KY_REC_FLOW_LONGEST)
		return UINT64_MAX;
	uint64_t dur;
	memcpy(&dur, words, 8);
	return 1 + ((uint64_t)INT64_MAX - (dur & INT64_MAX));
}

static struct ky_stage_chunk *chunk_new(const struct ky_stage_chunk *before)
{
	uint32_t bytes = before ? before->bytes * 4 : CHUNK_FIRST;
	if (bytes > CHUNK_MAX)
		bytes = CHUNK_MAX;
	struct ky_stage_chunk *chunk;
	if (bytes >= CHUNK_MAPPED) {
		/*
		 * A run that filled one of the largest chunks will fill most of the next: avoid a fault for each page.
		 */
		const int populate = before->bytes == CHUNK_MAX ? MAP_POPULATE : 0;
		chunk = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
		if (chunk == MAP_FAILED)
			return NULL;
	} else {
		chunk = malloc(bytes);
		if (!chunk)
			return NULL;
	}
	*chunk = (struct ky_stage_chunk){NULL, bytes, sizeof(*chunk)};
	return chunk;
}

static void chunk_free(struct ky_stage_chunk *chunk)
{
	if (chunk->bytes >= CHUNK_MAPPED)
		munmap(chunk, chunk->bytes);
	else
		free(chunk);
}

int ky_stage_open(struct ky_stage *stage)
{
	memset(stage, 0, sizeof(*stage));
	stage->runs = calloc(KY_STAGE_RUNS + 1, sizeof(*stage->runs));
	return stage->runs ? 0 : -ENOMEM;
}

void ky_stage_close(struct ky_stage *stage)
{
	for (uint32_t i = 0; stage->runs && i <= KY_STAGE_RUNS; i++) {
		struct ky_stage_chunk *chunk = stage->runs[i].first;
		while (chunk) {
			struct ky_stage_chunk *next = chunk->next;
			chunk_free(chunk);
			chunk = next;
		}
	}
	free(stage->runs);
	memset(stage, 0, sizeof(*stage));
}

static bool fits(const struct ky_stage_run *run, int64_t ts, uint64_t rank)
{
	return run->tail_ts < ts || (run->tail_ts == ts && run->tail_rank <= rank);
}

/* Return the first run (the one with the latest tail) that the record may follow; else a new one, or the rest. */
static struct ky_stage_run *run_for(struct ky_stage *stage, int64_t ts, uint64_t rank)
{
	uint32_t low = KY_ARRAY_SEARCH(0, stage->runs_count, at, !fits(&stage->runs[at], ts, rank));
	if (low == stage->runs_count && low < KY_STAGE_RUNS)
		stage->runs_count++;
	return &stage->runs[low];
}

/* Reserve room for a record at the run's end; NULL without memory. */
static inline char *room_in(struct ky_stage_run *run)
{
	if (__builtin_expect(!run->last || run->last->bytes - run->last->used < RECORD_MAX, 0)) {
		struct ky_stage_chunk *chunk = chunk_new(run->last);
		if (!chunk)
			return NULL;
		*(run->last ? &run->last->next : &run->first) = chunk;
		run->last = chunk;
	}
	return (char *)run->last + run->last->used;
}

/* Inlined for each of the frequent kinds: with count and rank constant it is a few stores. */
static inline __attribute__((always_inline)) bool put_record(struct ky_stage *stage, int64_t ts,
							     enum ky_record_kind kind,
							     uint32_t track, const uint32_t *words,
							     uint32_t count, uint64_t rank)
{
	struct ky_stage_run *run = stage->runs;
	if (stage->runs_count == 0 || !fits(run, ts, rank))
		run = run_for(stage, ts, rank);
	char *to = room_in(run);
	if (!to)
		return false;
	run->tail_ts = ts;
	run->tail_rank = rank;
	const struct ky_record head = {ts, stage->sequence++, (uint32_t)kind << 27 | track};
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), words, 4 * (size_t)count);
	run->last->used += (uint32_t)sizeof(head) + 4u * count;
	stage->records++;
	return true;
}

bool ky_stage_put(struct ky_stage *stage, int64_t ts, enum ky_record_kind kind, uint32_t track,
		  const uint32_t *words)
{
	switch (kind) {
	case KY_REC_BEGIN:
	case KY_REC_END:
	case KY_REC_INSTANT:
		return put_record(stage, ts, kind, track, words, 3, UINT64_MAX);
	case KY_REC_BEGIN_PLAIN:
	case KY_REC_COUNTER:
		return put_record(stage, ts, kind, track, words, 2, UINT64_MAX);
	case KY_REC_END_PLAIN:
		return put_record(stage, ts, kind, track, words, 0, UINT64_MAX);
	default:
		return put_record(stage, ts, kind, track, words, words_of[kind],
				  rank_of(kind, words));
	}
}

/* A run's next record, while merging. */
struct cursor {
	int64_t ts;
	uint64_t rank;
	uint32_t sequence;
	uint32_t kind_track;
	const uint32_t *words;
	struct ky_stage_run *run; /* NULL: of the rest */
};

static bool before(const struct cursor *a, const struct cursor *b)
{
	if (a->ts != b->ts)
		return a->ts < b->ts;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return (int32_t)(a->sequence - b->sequence) < 0;
}

static void take(struct cursor *cursor, const char *at)
{
	struct ky_record head;
	memcpy(&head, at, sizeof(head));
	cursor->ts = head.ts;
	cursor->sequence = head.sequence;
	cursor->kind_track = head.kind_track;
	cursor->words = (const uint32_t *)(const void *)(at + sizeof(head));
	cursor->rank = rank_of((enum ky_record_kind)(head.kind_track >> 27), cursor->words);
}

/* Move the cursor to the run's next record and free the chunks that were read. False at the end. */
static bool advance(struct cursor *cursor)
{
	struct ky_stage_run *run = cursor->run;
	while (run->first && run->at >= run->first->used) {
		struct ky_stage_chunk *next = run->first->next;
		chunk_free(run->first);
		run->first = next;
		run->at = sizeof(*next);
	}
	if (!run->first)
		return false;
	take(cursor, (const char *)run->first + run->at);
	run->at += (uint32_t)sizeof(struct ky_record) + 4u * words_of[cursor->kind_track >> 27];
	return true;
}

static int compare_rest(const void *a, const void *b)
{
	return before(a, b) ? -1 : 1;
}

/* Sort the rest as cursors. The records stay in place until the end. */
static int sort_rest(const struct ky_stage_run *rest, struct cursor **cursors, uint64_t *count)
{
	uint64_t records = 0;
	for (int pass = 0; pass < 2; pass++) {
		if (pass == 1) {
			if (!records)
				return 0;
			*cursors = malloc((size_t)records * sizeof(**cursors));
			if (!*cursors)
				return -ENOMEM;
			*count = records;
			records = 0;
		}
		for (const struct ky_stage_chunk *c = rest->first; c; c = c->next)
			for (uint32_t at = sizeof(*c); at < c->used; records++) {
				struct cursor cursor = {.run = NULL};
				take(&cursor, (const char *)c + at);
				at += (uint32_t)sizeof(struct ky_record) +
				      4u * words_of[cursor.kind_track >> 27];
				if (pass == 1)
					(*cursors)[records] = cursor;
			}
	}
	qsort(*cursors, (size_t)*count, sizeof(**cursors), compare_rest);
	return 0;
}

/* The runs by their next records: a heap. */
struct merge {
	struct cursor *heap;
	uint32_t count;
	struct cursor *rest;
	uint64_t rest_count, rest_at;
};

KY_QUEUE(queue, struct cursor, before(a, b))

static bool next_of(struct merge *merge, struct cursor *cursor)
{
	if (cursor->run)
		return advance(cursor);
	if (merge->rest_at >= merge->rest_count)
		return false;
	*cursor = merge->rest[merge->rest_at++];
	return true;
}

static int merge_open(struct merge *merge, struct ky_stage *stage)
{
	merge->heap = calloc(KY_STAGE_RUNS + 1, sizeof(*merge->heap));
	if (!merge->heap ||
	    sort_rest(&stage->runs[KY_STAGE_RUNS], &merge->rest, &merge->rest_count) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < stage->runs_count; i++) {
		struct cursor *cursor = &merge->heap[merge->count];
		cursor->run = &stage->runs[i];
		cursor->run->at = sizeof(struct ky_stage_chunk);
		merge->count += advance(cursor);
	}
	merge->heap[merge->count].run = NULL;
	merge->count += next_of(merge, &merge->heap[merge->count]);
	for (uint32_t i = merge->count / 2; i-- > 0;)
		queue_down(merge->heap, merge->count, i, merge->heap[i]);
	return 0;
}

/* The earliest record of all runs but the first: up to it the first run's records need no comparison. */
static const struct cursor *runner_up(const struct merge *merge)
{
	if (merge->count < 2)
		return NULL;
	if (merge->count == 2 || before(&merge->heap[1], &merge->heap[2]))
		return &merge->heap[1];
	return &merge->heap[2];
}

int ky_stage_drain(struct ky_stage *stage, ky_stage_fn apply, void *context,
		   int (*progress)(void *, uint64_t, uint64_t), void *progress_context)
{
	struct merge merge = {0};
	int error = merge_open(&merge, stage);
	uint64_t done = 0;
	while (!error && merge.count) {
		const struct cursor *limit = runner_up(&merge);
		struct cursor *top = merge.heap;
		bool more = true;
		do {
			apply(context, top->ts, (enum ky_record_kind)(top->kind_track >> 27),
			      top->kind_track & (KY_STAGE_TRACKS_MAX - 1), top->words);
			if (++done % PROGRESS_EVERY == 0 && progress)
				error = progress(progress_context, done, stage->records);
			more = next_of(&merge, top);
		} while (more && !error && (!limit || before(top, limit)));
		if (!more)
			merge.heap[0] = merge.heap[--merge.count];
		if (merge.count)
			queue_down(merge.heap, merge.count, 0, merge.heap[0]);
	}
	free(merge.heap);
	free(merge.rest);
	return error;
}
