/* SPDX-License-Identifier: MIT */
/*
 * pftrace_counters.c: values of counters in track events: the one that an event of a counter has, and
 * those that other events have besides. Values are scaled to their unit, and summed where the file has
 * differences, which belong to one sequence.
 */
#include "formats/pftrace/pftrace_reader.h"

/* The counter's value in its unit, and as a sum when it is written as differences. */
static bool counter_value(struct ky_pf *pf, struct ky_pf_sequence *sequence, uint64_t uuid,
			  double *value)
{
	const uint32_t row = ky_pf_track_row(pf, uuid);
	if (row == KY_NONE || !pf->tracks[row].counter)
		return false;
	if (pf->tracks[row].unit_multiplier > 0)
		*value *= (double)pf->tracks[row].unit_multiplier;
	if (!pf->tracks[row].incremental)
		return true;
	bool made;
	uint32_t *sum =
		KY_PF_GROW(pf, values) ? ky_pf_map_add(&sequence->values, uuid, &made) : NULL;
	if (!sum)
		return false;
	if (made) {
		*sum = pf->values_count;
		pf->values[pf->values_count++] = 0;
	}
	*value = pf->values[*sum] += *value;
	return true;
}

static void read_extra(const struct ky_pf_event *event, bool real, struct ky_pf_extra_kind *extra)
{
	struct ky_proto_in in = ky_proto_open(event->all);
	struct ky_proto_field field;
	uint64_t item;
	*extra = (struct ky_pf_extra_kind){0};
	while (ky_proto_next(&in, &field)) {
		struct ky_proto_items items = ky_proto_items(&field, field.id == 46);
		while (field.id == (real ? 45 : 31) && ky_proto_item(&items, &item)) {
			if (extra->uuids_count < KY_PF_EXTRA_MAX)
				extra->uuids[extra->uuids_count] = item;
			extra->uuids_count++;
		}
		while (field.id == (real ? 46 : 12) && ky_proto_item(&items, &item)) {
			if (extra->values_count < KY_PF_EXTRA_MAX)
				extra->values[extra->values_count] =
					real ? ky_proto_as_double(item) : (double)(int64_t)item;
			extra->values_count++;
		}
	}
}

static bool extra_error(struct ky_pf *pf, const char *name)
{
	ky_problem(pf->trace, name, KY_ERROR, pf->at,
		   "extra counters of an event do not fit their tracks: it is left out");
	return false;
}

/* Turns the values into what the counters show; false leaves the whole event out, as Perfetto does. */
static bool check_extra(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			struct ky_pf_extra_kind *extra, const struct ky_pf_uuids *defaults,
			uint32_t room)
{
	if (!extra->values_count)
		return true;
	if (!extra->uuids_count) {
		extra->uuids_count = defaults->count;
		for (uint32_t i = 0; i < defaults->count && i < KY_PF_EXTRA_MAX; i++)
			extra->uuids[i] = defaults->items[i];
	}
	if (!extra->uuids_count)
		return extra_error(pf, "track_event_extra_counter_missing_track_uuids");
	for (uint32_t i = 0; i < extra->values_count; i++) {
		if (i >= extra->uuids_count)
			return extra_error(pf, "track_event_extra_counter_track_uuid_mismatch");
		if (i >= room)
			return extra_error(pf, "track_event_extra_counter_exceeds_max");
		if (!extra->uuids[i])
			return extra_error(pf, "track_event_extra_counter_track_uuid_mismatch");
		if (!counter_value(pf, sequence, extra->uuids[i], &extra->values[i]))
			return extra_error(pf, "track_event_extra_counter_invalid_track");
	}
	return true;
}

static void put_extra(struct ky_pf *pf, const struct ky_pf_event *event,
		      const struct ky_pf_extra_kind *extra)
{
	for (uint32_t i = 0; i < extra->values_count; i++) {
		struct ky_pf_track *track = ky_pf_track_resolve(pf, extra->uuids[i]);
		if (track)
			ky_put_counter(pf->trace, event->ts, ky_pf_track_make(pf, track, 0),
				       extra->values[i]);
	}
}

bool ky_pf_counter_value(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			 const struct ky_pf_event *event, double *value)
{
	const bool own = event->fields & KY_PF_HAS_TRACK;
	*value = event->fields & KY_PF_HAS_COUNTER ? (double)(int64_t)event->counter_value
						   : ky_proto_as_double(event->counter_value);
	if (!own && !sequence->has_track_uuid) {
		ky_problem(pf->trace, "track_event_counter_missing_track_uuid", KY_ERROR, pf->at,
			   "a counter without a track");
		return false;
	}
	if (!(event->fields & (KY_PF_HAS_COUNTER | KY_PF_HAS_REAL_COUNTER))) {
		ky_problem(pf->trace, "track_event_counter_missing_value", KY_ERROR, pf->at,
			   "a counter without a value");
		return false;
	}
	if (counter_value(pf, sequence, own ? event->track_uuid : sequence->track_uuid, value))
		return true;
	ky_problem(pf->trace, "track_event_counter_invalid_track_uuid", KY_ERROR, pf->at,
		   "a counter on a track that is none of counters");
	return false;
}

bool ky_pf_extra_values(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			const struct ky_pf_event *event, struct ky_pf_extra *extra)
{
	read_extra(event, false, &extra->ints);
	read_extra(event, true, &extra->reals);
	return check_extra(pf, sequence, &extra->ints, &sequence->extra_counters,
			   KY_PF_EXTRA_MAX) &&
	       check_extra(pf, sequence, &extra->reals, &sequence->extra_real_counters,
			   KY_PF_EXTRA_MAX - extra->ints.values_count);
}

void ky_pf_extra_put(struct ky_pf *pf, const struct ky_pf_event *event,
		     const struct ky_pf_extra *extra)
{
	put_extra(pf, event, &extra->ints);
	put_extra(pf, event, &extra->reals);
}
