/* SPDX-License-Identifier: MIT */
/* sample_flight.c: see sample_flight.h. */
#include "capture/sample_flight.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES_MAX ((size_t)256 << 20)
#define COMPACT_BYTES ((size_t)1 << 20)

/* The head of each record. */
struct kept {
	uint64_t time;
	uint32_t bytes; /* with this */
	uint32_t written;
};

void ky_sample_flight_free(struct ky_sample_flight *flight)
{
	ky_sample_processes_free(&flight->base);
	ky_perf_out_free(&flight->late);
	KY_ARRAY_FREE(flight->bytes, flight->room);
	*flight = (struct ky_sample_flight){0};
}

static struct kept *kept_at(const struct ky_sample_flight *flight, size_t place)
{
	return (struct kept *)(void *)(flight->bytes + place);
}

static const struct perf_event_header *record_of(const struct kept *kept)
{
	return (const struct perf_event_header *)(const void *)(kept + 1);
}

static void drop_first(struct ky_sample_flight *flight)
{
	const struct kept *kept = kept_at(flight, flight->first);
	const struct perf_event_header *record = record_of(kept);
	if (ky_sample_processes_wants(record)) {
		ky_sample_processes_take(&flight->base, record);
		if (flight->begun && !kept->written)
			ky_perf_out_add(&flight->late, record, record->size);
	}
	flight->first += kept->bytes;
}

static void compact(struct ky_sample_flight *flight)
{
	const bool worth = flight->first >= COMPACT_BYTES && flight->first >= flight->used / 2;
	if (!flight->first || (!worth && flight->first != flight->used))
		return;
	memmove(flight->bytes, flight->bytes + flight->first, flight->used - flight->first);
	flight->used -= flight->first;
	flight->first = 0;
}

static bool reserve(struct ky_sample_flight *flight, size_t bytes)
{
	return flight->used + bytes <= KEPT_BYTES_MAX &&
	       KY_ARRAY_GROW(flight->bytes, flight->room, flight->used + bytes);
}

void ky_sample_flight_keep(struct ky_sample_flight *flight, const struct perf_event_header *record)
{
	const uint32_t bytes = (uint32_t)sizeof(struct kept) + ((record->size + 7u) & ~7u);
	while (!reserve(flight, bytes)) {
		if (flight->used == 0)
			return;
		/* Drop half of it at once: each time costs moving the rest. */
		const size_t half = flight->first + (flight->used - flight->first) / 2;
		while (flight->first <= half && flight->first < flight->used) {
			const struct kept *kept = kept_at(flight, flight->first);
			flight->dropped += record_of(kept)->type == PERF_RECORD_SAMPLE;
			drop_first(flight);
		}
		compact(flight);
	}
	struct kept *kept = kept_at(flight, flight->used);
	*kept = (struct kept){.time = ky_perf_record_time(record, KY_PERF_SAMPLE_TYPE),
			      .bytes = bytes};
	memcpy(kept + 1, record, record->size);
	flight->used += bytes;
}

void ky_sample_flight_drop(struct ky_sample_flight *flight, uint64_t before)
{
	while (flight->first < flight->used && kept_at(flight, flight->first)->time < before)
		drop_first(flight);
	compact(flight);
	ky_sample_processes_round(&flight->base);
}

void ky_sample_flight_window(struct ky_sample_flight *flight, uint64_t from, uint64_t to,
			     struct ky_perf_out *out)
{
	flight->begun = true;
	for (size_t at = flight->first; at < flight->used;) {
		struct kept *kept = kept_at(flight, at);
		const struct perf_event_header *record = record_of(kept);
		at += kept->bytes;
		if (kept->written || kept->time > to ||
		    (kept->time < from && !ky_sample_processes_wants(record)))
			continue;
		ky_perf_out_add(out, record, record->size);
		kept->written = true;
	}
}

void ky_sample_flight_again(struct ky_sample_flight *flight)
{
	for (size_t at = flight->first; at < flight->used;) {
		struct kept *kept = kept_at(flight, at);
		at += kept->bytes;
		if (ky_sample_processes_wants(record_of(kept)))
			kept->written = false;
	}
}
