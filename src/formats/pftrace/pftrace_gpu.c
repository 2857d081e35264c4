/* SPDX-License-Identifier: MIT */
/*
 * pftrace_gpu.c: counters of GPUs. A descriptor, in a packet or interned, gives a counter's number its name. Most
 * values are of the time since the last one, as hardware counts; those that hold from their time on say so.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#define FORWARDS 2u
#define FORWARDS_BIT (UINT64_C(1) << 32)
#define GPU_SHIFT 33

/* Descriptors that are interned have numbers of their own. */
static uint64_t interned_key(const struct ky_pf_sequence *sequence, uint64_t iid)
{
	return ky_hash_pair(sequence->id, iid) | 1;
}

static void describe(struct ky_pf *pf, uint64_t whose, struct ky_proto_view descriptor,
		     uint64_t gpu)
{
	struct ky_proto_in in = ky_proto_open(descriptor);
	struct ky_proto_field field;
	struct ky_pf_parts spec;
	while (ky_proto_next(&in, &field)) {
		if (field.id != 1 || field.wire != KY_PROTO_BYTES)
			continue;
		ky_pf_take_apart(field.view, &spec);
		if (!ky_pf_has(&spec, 1) || !spec.texts[2].data) {
			ky_problem(pf->trace, "gpu_counters_invalid_spec", KY_ERROR, pf->at,
				   "a counter of a GPU without a number or a name");
			continue;
		}
		uint64_t *counter = ky_pf_known(pf, KY_PF_GPU_COUNTER, whose, spec.values[1], true);
		if (counter && !*counter)
			*counter = ky_pf_string(pf, spec.texts[2]) |
				   (spec.values[11] == FORWARDS ? FORWARDS_BIT : 0) |
				   gpu << GPU_SHIFT;
	}
}

void ky_pf_describe_gpu_counters(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_field descriptor, gpu;
	if (ky_proto_find(message, 1, &descriptor))
		describe(pf, 0, descriptor.view, ky_proto_find(message, 3, &gpu) ? gpu.value : 0);
}

void ky_pf_intern_gpu_counters(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
			       struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_take_apart(message, &parts);
	describe(pf, interned_key(sequence, parts.values[1]), parts.texts[2], parts.values[3]);
}

static void put(struct ky_pf *pf, int64_t ts, uint64_t whose, const struct ky_pf_parts *parts)
{
	if (!ky_pf_has(parts, 1) || !(ky_pf_has(parts, 2) || ky_pf_has(parts, 3)))
		return;
	const uint64_t *counter =
		ky_pf_known(pf, KY_PF_GPU_COUNTER, whose, parts->values[1], false);
	if (!counter) {
		ky_problem(pf->trace, "gpu_counters_invalid_spec", KY_ERROR, pf->at,
			   "a value of a counter of a GPU that nothing describes");
		return;
	}
	const uint32_t track =
		ky_pf_counter_track(pf, "gpu_counter", (uint32_t)*counter, *counter >> GPU_SHIFT);
	const double value = ky_pf_has(parts, 2) ? (double)(int64_t)parts->values[2]
						 : ky_proto_as_double(parts->values[3]);
	if (*counter & FORWARDS_BIT)
		ky_put_counter(pf->trace, ts, track, value);
	else
		ky_put_counter_since(pf->trace, ts, track, value);
}

void ky_pf_gpu_counters(struct ky_pf *pf, struct ky_pf_sequence *sequence, int64_t ts,
			struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	struct ky_pf_parts parts;
	const uint64_t whose =
		ky_proto_find(message, 4, &field) ? interned_key(sequence, field.value) : 0;
	while (ky_proto_next(&in, &field)) {
		if (field.id != 2 || field.wire != KY_PROTO_BYTES)
			continue;
		ky_pf_take_apart(field.view, &parts);
		put(pf, ts, whose, &parts);
	}
	if (in.bad)
		ky_pf_damaged(pf, "gpu_counter_event");
}
