/* SPDX-License-Identifier: MIT */
/* samples.c: call stacks as a tree of callsites, each part once; and the samples. */
#include "model/build.h"

uint32_t ky_mapping(struct ky_trace *trace, const struct ky_mapping_spec *spec)
{
	struct ky_mappings *mappings = &trace->mappings;
	const uint64_t a = ky_hash_pair(ky_hash_pair(spec->start, spec->end),
					ky_hash_pair(spec->offset, spec->load_bias));
	bool made;
	uint64_t *found = ky_pair_map_add(&trace->build->mappings, a,
					  (uint64_t)spec->build_id << 32 | spec->name, &made);
	if (found && !made)
		return (uint32_t)*found;
	const uint32_t row = found ? ky_append(trace, mappings) : KY_NONE;
	if (row == KY_NONE) {
		ky_trace_no_memory(trace);
		return KY_NONE;
	}
	*found = row;
	mappings->build_id[row] = spec->build_id;
	mappings->name[row] = spec->name;
	mappings->start[row] = spec->start;
	mappings->end[row] = spec->end;
	mappings->offset[row] = spec->offset;
	mappings->load_bias[row] = spec->load_bias;
	return row;
}

uint32_t ky_frame(struct ky_trace *trace, uint32_t mapping, uint64_t rel_pc, uint32_t name,
		  uint32_t file, uint32_t line)
{
	struct ky_frames *frames = &trace->frames;
	const uint64_t a = ky_hash_pair(rel_pc, (uint64_t)mapping << 32 | name);
	bool made;
	uint64_t *found =
		ky_pair_map_add(&trace->build->frames, a, (uint64_t)file << 32 | line, &made);
	if (found && !made)
		return (uint32_t)*found;
	const uint32_t row = found ? ky_append(trace, frames) : KY_NONE;
	if (row == KY_NONE) {
		ky_trace_no_memory(trace);
		return KY_NONE;
	}
	*found = row;
	frames->name[row] = name;
	frames->mapping[row] = mapping;
	frames->rel_pc[row] = rel_pc;
	frames->file[row] = file;
	frames->line[row] = line;
	return row;
}

uint32_t ky_callsite(struct ky_trace *trace, uint32_t parent, uint32_t frame)
{
	struct ky_callsites *callsites = &trace->callsites;
	bool made;
	uint64_t *found = ky_pair_map_add(&trace->build->callsites, parent, frame, &made);
	if (found && !made)
		return (uint32_t)*found;
	const uint32_t row =
		found && frame < trace->frames.rows.count ? ky_append(trace, callsites) : KY_NONE;
	if (row == KY_NONE) {
		ky_trace_no_memory(trace);
		return KY_NONE;
	}
	*found = row;
	callsites->parent[row] = parent;
	callsites->frame[row] = frame;
	callsites->depth[row] = parent == KY_NONE ? 0 : callsites->depth[parent] + 1;
	return row;
}

void ky_build_sample(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t callsite,
		     uint32_t cpu, uint8_t mode, double weight, uint32_t event)
{
	struct ky_samples *samples = &trace->samples;
	const uint32_t row = ky_append(trace, samples);
	if (row == KY_NONE)
		return;
	samples->ts[row] = ts;
	samples->thread[row] = thread;
	samples->callsite[row] = callsite;
	samples->cpu[row] = cpu;
	samples->mode[row] = mode;
	samples->weight[row] = weight;
	samples->event[row] = event;
}
