/* SPDX-License-Identifier: MIT */
/*
 * speedscope.h: what the two passes over a speedscope file share.
 *
 *   pass 1: shared.frames, and of each profile its name, unit, start and weights
 *   pass 2: of each profile its events or samples, which mean something only with these
 */
#ifndef KY_FORMATS_SPEEDSCOPE_SPEEDSCOPE_H
#define KY_FORMATS_SPEEDSCOPE_SPEEDSCOPE_H

#include "formats/json/json_tree.h"
#include "formats/load.h"

struct ky_speedscope_frame {
	uint32_t name;
	uint32_t frame; /* of the trace */
	uint32_t args;  /* set: file, line and column, 0: none */
};

struct ky_speedscope_profile {
	uint32_t name;
	double ns_per_unit;
	double start;
	uint64_t weights_at; /* the first in weights */
	uint64_t weights_count;
	bool timed; /* the unit is one of time */
};

struct ky_speedscope {
	struct ky_load *load;
	struct ky_trace *trace;
	struct ky_input *input;
	struct ky_json_tree tree;
	struct ky_speedscope_frame *frames;
	uint64_t frames_count, frames_room;
	struct ky_speedscope_profile *profiles;
	uint64_t profiles_count, profiles_room;
	double *weights;
	uint64_t weights_count, weights_room;
	char *scratch;
	uint64_t scratch_room;
	uint64_t profile; /* pass 2: the current one */
	uint32_t thread, track, event;
};

/* Return a string of the tree; 0 when it is not a string. */
uint32_t ky_speedscope_string(struct ky_speedscope *file, uint32_t node);
/* Pass 1: the value of shared. False, here and below: cut off. */
bool ky_speedscope_shared(struct ky_speedscope *file);
/* Read the value of profiles, in pass 1 and in pass 2. */
bool ky_speedscope_heads(struct ky_speedscope *file);
bool ky_speedscope_bodies(struct ky_speedscope *file);

#endif
