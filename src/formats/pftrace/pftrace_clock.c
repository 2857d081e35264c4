/* SPDX-License-Identifier: MIT */
/*
 * pftrace_clock.c: the times of packets. The first pass hands all snapshots to the model's clocks, so that the
 * second can convert every time at once. Clocks 64 to 127 belong to their sequence. A clock may count in other
 * units than nanoseconds, and its times may be differences from the last packet with that clock or from the last
 * snapshot.
 */
#include "formats/pftrace/pftrace_reader.h"

#define CLOCKS_MAX 64u /* of one snapshot */
#define DEFAULT_CLOCK KY_CLOCK_BOOTTIME

struct reading {
	uint64_t key;
	uint64_t value;
	int64_t unit_ns;
	bool incremental;
};

static int64_t scaled(uint64_t value, int64_t unit_ns)
{
	int64_t ns;
	if (__builtin_mul_overflow((int64_t)value, unit_ns, &ns))
		return INT64_MAX;
	return ns;
}

static bool read_clock(struct ky_proto_view message, uint32_t sequence_id, struct reading *reading)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const uint32_t id = (uint32_t)parts.values[KY_PF_CLOCK_CLOCK_ID];
	const int64_t unit_ns = (int64_t)parts.values[KY_PF_CLOCK_UNIT_MULTIPLIER_NS];
	*reading = (struct reading){
		.value = parts.values[KY_PF_CLOCK_TIMESTAMP],
		.incremental = parts.values[KY_PF_CLOCK_IS_INCREMENTAL] != 0,
		.unit_ns = unit_ns ? unit_ns : 1,
	};
	reading->key = ky_clock_of_sequence(sequence_id, id);
	return id != 0;
}

/* Return the clock, adding it if it is new; NULL without memory. */
static struct ky_pf_clock *clock_of(struct ky_pf *pf, uint64_t key)
{
	bool made;
	if (!KY_PF_GROW(pf, clocks))
		return NULL;
	uint32_t *row = ky_u64_map_add(&pf->clock_of, key, &made);
	if (!row)
		return NULL;
	if (made) {
		*row = pf->clocks_count;
		pf->clocks[pf->clocks_count++] = (struct ky_pf_clock){.key = key, .unit_ns = 1};
	}
	return &pf->clocks[*row];
}

/* Report whether the trace's clock ran forward since the last snapshot of the same clocks. */
static bool runs_forward(struct ky_pf *pf, const struct reading *readings, uint32_t count)
{
	uint64_t key = 0;
	int64_t ns = 0;
	bool has = false, made;
	for (uint32_t i = 0; i < count; i++) {
		key = (key ^ readings[i].key) * 0x9e3779b97f4a7c15u;
		if (readings[i].key == pf->trace->clock) {
			ns = scaled(readings[i].value, readings[i].unit_ns);
			has = true;
		}
	}
	if (!has || !KY_PF_GROW(pf, snapshot_ns))
		return true;
	uint32_t *row = ky_u64_map_add(&pf->snapshot_last, key, &made);
	if (!row)
		return true;
	if (made) {
		*row = pf->snapshot_ns_count++;
	} else if (ns < pf->snapshot_ns[*row]) {
		ky_problem(pf->trace, "invalid_clock_snapshots", KY_ERROR, pf->at,
			   "the trace's clock runs backward from one snapshot to the next");
		return false;
	}
	pf->snapshot_ns[*row] = ns;
	return true;
}

/* Return the snapshot's time, by the first of its clocks that converts. */
static int64_t time_of(struct ky_pf *pf, const struct ky_clock_reading *readings, uint32_t count)
{
	int64_t ts;
	for (uint32_t i = 0; i < count; i++)
		if (readings[i].clock == pf->trace->clock)
			return readings[i].ns;
	for (uint32_t i = 0; i < count; i++)
		if (ky_clocks_convert(pf->trace->clocks, readings[i].clock, pf->trace->clock,
				      readings[i].ns, &ts))
			return ts;
	return count ? readings[0].ns : 0;
}

static void learn(struct ky_pf *pf, const struct reading *readings, uint32_t count)
{
	struct ky_clock_reading known[CLOCKS_MAX];
	if (!runs_forward(pf, readings, count))
		return;
	for (uint32_t i = 0; i < count; i++) {
		struct ky_pf_clock *clock = clock_of(pf, readings[i].key);
		if (!clock)
			return;
		clock->unit_ns = readings[i].unit_ns;
		clock->incremental = readings[i].incremental;
		known[i].clock = readings[i].key;
		known[i].ns = scaled(readings[i].value, readings[i].unit_ns);
	}
	ky_put_clocks(pf->trace, time_of(pf, known, count), known, count);
	pf->has_snapshots = true;
}

void ky_pf_clock_snapshot(struct ky_pf *pf, uint32_t sequence_id, struct ky_proto_view snapshot)
{
	struct reading readings[CLOCKS_MAX];
	uint32_t count = 0;
	KY_PROTO_EACH(field, snapshot) {
		if (field.id == KY_PF_CLOCK_SNAPSHOT_CLOCKS && count < CLOCKS_MAX)
			count += read_clock(field.view, sequence_id, &readings[count]);
		else if (field.id == KY_PF_CLOCK_SNAPSHOT_PRIMARY_TRACE_CLOCK && field.value &&
			 pf->first_pass && !pf->has_snapshots)
			pf->trace->clock = field.value;
	}
	if (pf->first_pass) {
		learn(pf, readings, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct ky_pf_clock *clock = clock_of(pf, readings[i].key);
		if (clock)
			clock->last_ns = scaled(readings[i].value, readings[i].unit_ns);
	}
}

/* Return the clock of a packet, mostly that of the sequence's last one; NULL when no snapshot has it. */
static struct ky_pf_clock *clock_of_packet(struct ky_pf *pf, uint32_t id)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
	if (sequence->clock_cached != KY_NONE && sequence->clock_cached_id == id)
		return &pf->clocks[sequence->clock_cached];
	const uint32_t *row =
		ky_u64_map_find(&pf->clock_of, ky_clock_of_sequence(sequence->id, id));
	if (!row)
		return NULL;
	sequence->clock_cached = *row;
	sequence->clock_cached_id = id;
	return &pf->clocks[*row];
}

static bool no_way(struct ky_pf *pf, uint64_t clock)
{
	ky_problem(pf->trace, "clock_sync_failure", KY_ERROR, pf->at,
		   "no clock snapshots connect clock %llu with the trace's: the packet is left out",
		   (unsigned long long)clock);
	return false;
}

/* Convert a time and remember the offset; false when no snapshots connect the clocks. */
static bool convert(struct ky_pf *pf, struct ky_pf_clock *clock, uint64_t key, int64_t ns,
		    int64_t *ts)
{
	if (!clock)
		return ky_clocks_convert(pf->trace->clocks, key, pf->trace->clock, ns, ts);
	clock->converts =
		ky_clocks_convert_range(pf->trace->clocks, key, pf->trace->clock, ns,
					&clock->offset_ns, &clock->first_ns, &clock->final_ns);
	*ts = (int64_t)((uint64_t)ns + (uint64_t)clock->offset_ns);
	return clock->converts;
}

bool ky_pf_clock_packet_time(struct ky_pf *pf, const struct ky_pf_packet *packet, int64_t *ts)
{
	if (!packet->has_timestamp) {
		*ts = pf->latest_ns;
		return true;
	}
	const bool named = packet->clock_id || pf->sequence->clock_id;
	uint32_t id = packet->clock_id ? packet->clock_id : pf->sequence->clock_id;
	if (!named)
		id = DEFAULT_CLOCK;
	struct ky_pf_clock *clock = clock_of_packet(pf, id);
	int64_t ns = (int64_t)packet->timestamp;
	if (clock && clock->unit_ns != 1)
		ns = scaled(packet->timestamp, clock->unit_ns);
	if (clock && clock->incremental) {
		if (__builtin_add_overflow(ns, clock->last_ns, &ns))
			ns = INT64_MAX;
		clock->last_ns = ns;
	}
	if (clock && clock->converts && ns >= clock->first_ns && ns <= clock->final_ns) {
		*ts = (int64_t)((uint64_t)ns + (uint64_t)clock->offset_ns);
	} else if (!convert(pf, clock, clock ? clock->key : id, ns, ts)) {
		if (named)
			return no_way(pf, clock ? clock->key : id);
		*ts = ns;
	}
	if (*ts > pf->latest_ns)
		pf->latest_ns = *ts;
	return true;
}

int64_t ky_pf_clock_time(struct ky_pf *pf, uint64_t clock, int64_t ns)
{
	int64_t ts;
	if (!ky_clocks_convert(pf->trace->clocks, clock, pf->trace->clock, ns, &ts))
		return ns;
	return ts;
}
