/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export_samples.c: samples as PerfSamples with interned call stacks. The frames of a call stack, their
 * functions and mappings are defined before it, and it before its first use. Ids are row numbers plus 1; mapping 1
 * is for frames without one, since every frame must have one.
 */
#include "formats/pftrace/pftrace_export.h"

enum { NO_MAPPING = 1 };

#define STACK_MAX 1024u

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Build ids are bytes in the file and digits in the model. */
static void intern_build_id(struct ky_pf_exporter *w, uint32_t string)
{
	uint8_t bytes[64];
	uint32_t count = 0;
	const struct ky_text text = ky_export_text(w->trace, string);
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_BUILD_IDS, string))
		return;
	for (uint32_t i = 0; i + 1 < text.bytes && count < sizeof(bytes); i += 2) {
		const int high = nibble(text.data[i]), low = nibble(text.data[i + 1]);
		if (high < 0 || low < 0)
			break;
		bytes[count++] = (uint8_t)(high << 4 | low);
	}
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_INTERNED_STRING_IID, string);
	ky_proto_bytes(&w->emit.inner, KY_PF_INTERNED_STRING_STR, bytes, count);
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_BUILD_IDS, &w->emit.inner);
}

static uint64_t intern_mapping(struct ky_pf_exporter *w, uint32_t mapping)
{
	const struct ky_mappings *m = &w->trace->mappings;
	const uint64_t iid = mapping == KY_NONE ? NO_MAPPING : (uint64_t)mapping + 2;
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_MAPPINGS, (uint32_t)iid - 1))
		return iid;
	if (mapping != KY_NONE && m->build_id[mapping])
		intern_build_id(w, m->build_id[mapping]);
	if (mapping != KY_NONE && m->name[mapping])
		ky_pf_export_intern(w, KY_PF_EXPORT_PATHS, m->name[mapping]);
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_IID, iid);
	if (mapping != KY_NONE) {
		if (m->build_id[mapping])
			ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_BUILD_ID, m->build_id[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_START, m->start[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_END, m->end[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_LOAD_BIAS, m->load_bias[mapping]);
		if (m->name[mapping])
			ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_PATH_STRING_IDS,
				      m->name[mapping]);
		ky_proto_uint(&w->emit.inner, KY_PF_MAPPING_EXACT_OFFSET, m->offset[mapping]);
	}
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_MAPPINGS, &w->emit.inner);
	return iid;
}

static void intern_frame(struct ky_pf_exporter *w, uint32_t frame)
{
	const struct ky_frames *f = &w->trace->frames;
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_FRAMES, frame))
		return;
	const uint64_t mapping = intern_mapping(w, f->mapping[frame]);
	if (f->name[frame])
		ky_pf_export_intern(w, KY_PF_EXPORT_FUNCTIONS, f->name[frame]);
	if (f->file[frame])
		ky_pf_export_intern(w, KY_PF_EXPORT_SOURCES, f->file[frame]);
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_FRAME_IID, (uint64_t)frame + 1);
	if (f->name[frame])
		ky_proto_uint(&w->emit.inner, KY_PF_FRAME_FUNCTION_NAME_ID, f->name[frame]);
	ky_proto_uint(&w->emit.inner, KY_PF_FRAME_MAPPING_ID, mapping);
	ky_proto_uint(&w->emit.inner, KY_PF_FRAME_REL_PC, f->rel_pc[frame]);
	if (f->file[frame])
		ky_proto_uint(&w->emit.inner, KY_PF_FRAME_SOURCE_PATH_IID, f->file[frame]);
	if (f->line[frame])
		ky_proto_uint(&w->emit.inner, KY_PF_FRAME_LINE_NUMBER, f->line[frame]);
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_FRAMES, &w->emit.inner);
}

/* The outermost frame comes first. */
static void intern_callstack(struct ky_pf_exporter *w, uint32_t callsite)
{
	const struct ky_callsites *c = &w->trace->callsites;
	uint32_t frames[STACK_MAX], count = 0;
	if (!ky_pf_export_is_new(w, KY_PF_EXPORT_CALLSTACKS, callsite))
		return;
	for (uint32_t at = callsite; at != KY_NONE; at = c->parent[at]) {
		if (count == STACK_MAX) {
			w->left->frames += c->depth[at] + UINT64_C(1);
			break;
		}
		frames[count++] = c->frame[at];
	}
	for (uint32_t i = 0; i < count; i++)
		intern_frame(w, frames[i]);
	w->emit.inner.used = 0;
	ky_proto_uint(&w->emit.inner, KY_PF_CALLSTACK_IID, (uint64_t)callsite + 1);
	while (count)
		ky_proto_uint(&w->emit.inner, KY_PF_CALLSTACK_FRAME_IDS,
			      (uint64_t)frames[--count] + 1);
	ky_proto_message(&w->emit.interned, KY_PF_INTERNED_DATA_CALLSTACKS, &w->emit.inner);
}

void ky_pf_export_sample(void *self, const struct ky_walk_item *item)
{
	struct ky_pf_exporter *w = self;
	const struct ky_samples *s = &w->trace->samples;
	const uint32_t row = item->row;
	if (s->cpu[row] != KY_NONE)
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_CPU, s->cpu[row]);
	ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_PID,
		      ky_address_pid_of_thread(w->trace, s->thread[row]));
	ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_TID,
		      ky_address_tid(w->trace, s->thread[row]));
	if (s->callsite[row] != KY_NONE) {
		intern_callstack(w, s->callsite[row]);
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_CALLSTACK_IID,
			      (uint64_t)s->callsite[row] + 1);
	}
	if (s->mode[row])
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_CPU_MODE, s->mode[row]);
	if (s->weight[row] >= 1 && s->weight[row] < 9e18)
		ky_proto_uint(&w->emit.body, KY_PF_PERF_SAMPLE_TIMEBASE_COUNT,
			      (uint64_t)s->weight[row]);
	ky_pf_export_send(w, KY_PF_EXPORT_SAMPLES, KY_PF_TRACE_PACKET_PERF_SAMPLE, item->ts);
}
