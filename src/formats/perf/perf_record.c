/* SPDX-License-Identifier: MIT */
/* perf_record.c: the kernel's records: which wait for their turn, and what each means. */
#include "formats/perf/perf_session.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

void ky_perf_record_short(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	ky_problem(perf->trace, "perf_record_damaged", KY_DATA_LOSS, record->at,
		   "a record of type %u and %u bytes does not hold what it should", record->type,
		   record->bytes);
}

static void put_lost(struct ky_perf *perf, const struct ky_perf_raw *record,
		     const struct ky_perf_where *where)
{
	struct ky_perf_record lost;
	if (!ky_perf_record_body(&lost, record, 0, perf->big)) {
		ky_perf_record_short(perf, record);
		return;
	}
	ky_put_lost(perf->trace, where->timed ? (int64_t)where->time : KY_TIME_NONE, KY_NONE,
		    where->cpu, lost.lost,
		    record->type == PERF_RECORD_LOST_SAMPLES ? KY_LOSS_PERF_SAMPLES : KY_LOSS_PERF);
}

/* It is the record's turn. */
static void take_turn(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	struct ky_perf_where where;
	ky_perf_where(perf, record, &where);
	/* 0 is before all. */
	if (where.timed && where.time)
		where.time = ky_perf_trace_time(perf, where.time);
	if (where.timed)
		ky_perf_task_seen(perf, &where);
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		ky_perf_mmap(perf, record, &where);
		break;
	case PERF_RECORD_COMM:
		ky_perf_task_comm(perf, record, &where);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		ky_perf_task(perf, record, &where);
		break;
	case PERF_RECORD_SAMPLE:
		if (where.attr)
			ky_perf_sample(perf, record, &where);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		put_lost(perf, record, &where);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		ky_perf_switch(perf, record, &where);
		break;
	case PERF_RECORD_THROTTLE:
		ky_problem(perf->trace, "perf_throttled", KY_INFO, record->at,
			   "sampling was too fast and paused");
		break;
	default:
		break;
	}
}

/* ---- the order of time ---- */

/*
 * Records in the order of their times. perf writes the rings of all CPUs one after the other, round after round;
 * nothing older can follow a record that is older than the newest one of the round before last. So at the end of a
 * round those are released, and memory holds about two rounds. Files without rounds are held whole.
 */

void ky_perf_order_free(struct ky_perf_queue *queue)
{
	KY_ARRAY_FREE(queue->waiting, queue->room);
	KY_ARRAY_FREE(queue->bytes, queue->bytes_room);
	*queue = (struct ky_perf_queue){0};
}

/* Take a copy of a record: the head as it is in memory, then the body. */
static void add(struct ky_perf *perf, const struct ky_perf_raw *record, uint64_t time)
{
	struct ky_perf_queue *queue = &perf->queue;
	const uint32_t body = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	if (!KY_ARRAY_GROW(queue->bytes, queue->bytes_room, queue->bytes_used + record->bytes) ||
	    !KY_ARRAY_GROW_ZERO(queue->waiting, queue->room, queue->count + 1)) {
		perf->trace->error = -ENOMEM;
		return;
	}
	uint8_t *to = queue->bytes + queue->bytes_used;
	const struct perf_event_header head = {record->type, record->misc, (uint16_t)record->bytes};
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), record->body, body);
	queue->waiting[queue->count++] = (struct ky_perf_waiting){.time = time,
								  .order = queue->order++,
								  .at = record->at,
								  .place = queue->bytes_used};
	queue->bytes_used += record->bytes;
	if (time > queue->newest)
		queue->newest = time;
}

KY_ORDER(by_time, struct ky_perf_waiting,
	 KY_COMPARE_THEN(a->time, b->time, KY_COMPARE(a->order, b->order)))

static void turn(struct ky_perf *perf, const struct ky_perf_waiting *waiting)
{
	struct perf_event_header head;
	const uint8_t *bytes = perf->queue.bytes + waiting->place;
	memcpy(&head, bytes, sizeof(head));
	const struct ky_perf_raw record = {head.type, head.misc, head.size, bytes + sizeof(head),
					   waiting->at};
	take_turn(perf, &record);
}

/* Those that remain move to the front, in the order of time; so do their bytes. */
static void keep(struct ky_perf_queue *queue, uint32_t done)
{
	const uint32_t left = queue->count - done;
	uint64_t bytes = 0, room = 0;
	uint8_t *kept = NULL;
	if (left == 0) {
		queue->count = 0;
		queue->bytes_used = 0;
		return;
	}
	memmove(queue->waiting, queue->waiting + done, left * sizeof(*queue->waiting));
	queue->count = left;
	for (uint32_t i = 0; i < left; i++) {
		struct perf_event_header head;
		memcpy(&head, queue->bytes + queue->waiting[i].place, sizeof(head));
		bytes += head.size;
	}
	/* Moved only when that frees most of it: a round costs no more than its own records. */
	if (bytes > queue->bytes_used / 2 || !KY_ARRAY_GROW(kept, room, bytes))
		return;
	bytes = 0;
	for (uint32_t i = 0; i < left; i++) {
		struct perf_event_header head;
		memcpy(&head, queue->bytes + queue->waiting[i].place, sizeof(head));
		memcpy(kept + bytes, queue->bytes + queue->waiting[i].place, head.size);
		queue->waiting[i].place = bytes;
		bytes += head.size;
	}
	KY_ARRAY_FREE(queue->bytes, queue->bytes_room);
	queue->bytes = kept;
	queue->bytes_used = bytes;
	queue->bytes_room = room;
}

static void release(struct ky_perf *perf, uint64_t until)
{
	struct ky_perf_queue *queue = &perf->queue;
	if (!queue->count)
		return;
	qsort(queue->waiting, queue->count, sizeof(*queue->waiting), by_time);
	uint32_t done = 0;
	while (done < queue->count && queue->waiting[done].time <= until)
		turn(perf, &queue->waiting[done++]);
	keep(queue, done);
}

void ky_perf_order_round(struct ky_perf *perf)
{
	const uint64_t until = perf->queue.round_newest;
	perf->queue.round_newest = perf->queue.newest;
	/* Many small rounds in a row would sort the same records again and again. */
	if (perf->queue.bytes_used < 1u << 20)
		return;
	release(perf, until);
}

void ky_perf_order_end(struct ky_perf *perf)
{
	release(perf, UINT64_MAX);
}

/* Forks and exits have their time in themselves too. */
static uint64_t time_of(const struct ky_perf *perf, const struct ky_perf_raw *record)
{
	struct ky_perf_where where;
	ky_perf_where(perf, record, &where);
	if (where.timed)
		return where.time == UINT64_MAX ? 0 : where.time;
	if ((record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT) &&
	    record->bytes >= KY_PERF_RECORD_HEAD_BYTES + 24)
		return ky_perf_u64(record->body + 16, perf->big);
	return 0;
}

/*
 * Records without a time describe the state before: they are handled at once. Samples wait, that they come
 * behind all of these.
 */
void ky_perf_record_take(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint64_t time = time_of(perf, record);
	if (time || record->type == PERF_RECORD_SAMPLE)
		add(perf, record, time);
	else
		take_turn(perf, record);
}
