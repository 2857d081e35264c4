/* SPDX-License-Identifier: MIT */
/*
 * pftrace_memory.c: ftrace events of memory: contiguous allocations, buffers that devices share, and the killing
 * of processes when there is none left. Names of tracks are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#include <stdio.h>

#define LINUX_5_10 (5u << 8 | 10u)
#define LINUX_6_1 (6u << 8 | 1u)

static uint32_t word(struct ky_pf *pf, const char *text)
{
	return ky_string_z(pf->trace, text);
}

/* ---- contiguous allocations; which event ends one depends on the kernel ---- */

struct cma_arg {
	const char *key;
	uint8_t field;
};

static const struct cma_arg cma_info[] = {
	{"cma_name", 6},
	{"cma_pfn", 10},
	{"cma_req_pages", 2},
	{"cma_nr_migrated", 8},
	{"cma_nr_reclaimed", 9},
	{"cma_nr_mapped", 7},
	{"cma_nr_isolate_fail", 3},
	{"cma_nr_migrate_fail", 4},
	{"cma_nr_test_fail", 5},
};
static const struct cma_arg cma_finish[] = {{"cma_name", 1}, {"cma_pfn", 2}, {"cma_req_pages", 4}};

static void cma_end(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts, const struct cma_arg *args, size_t count)
{
	ky_args_begin(pf->trace);
	for (size_t i = 0; i < count; i++) {
		const uint32_t key = word(pf, args[i].key);
		if (parts->texts[args[i].field].data)
			ky_arg_string(pf->trace, key, ky_pf_part_text(pf, parts, args[i].field));
		else
			ky_arg_uint(pf->trace, key, parts->values[args[i].field]);
	}
	ky_put_tid_end(pf->trace, event->ts, event->tid, 0, 0, ky_args_end(pf->trace));
}

static void cma(struct ky_pf *pf, const struct ky_pf_ftrace *event, const struct ky_pf_parts *parts)
{
	if (pf->kernel_release < LINUX_5_10)
		return;
	if (event->id == 465)
		ky_put_tid_begin(pf->trace, event->ts, event->tid, 0, word(pf, "mm_cma_alloc"), 0);
	else if (event->id == 466 && pf->kernel_release < LINUX_6_1)
		cma_end(pf, event, parts, cma_info, sizeof(cma_info) / sizeof(*cma_info));
	else if (event->id == 576 && pf->kernel_release >= LINUX_6_1)
		cma_end(pf, event, parts, cma_finish, sizeof(cma_finish) / sizeof(*cma_finish));
}

/* ---- buffers ---- */

/* A buffer that comes (length above 0) or goes. */
static void buffer(struct ky_pf *pf, const struct ky_pf_ftrace *event, const char *type,
		   const char *track, int64_t cookie, int64_t bytes)
{
	const struct ky_lane_span span = {
		.type = word(pf, type),
		.track = word(pf, track),
		.cookie = cookie,
		.name = bytes > 0 ? ky_pf_name(pf, "%lld kB", (long long)bytes / 1024) : 0,
	};
	if (bytes > 0)
		ky_put_lane_begin(pf->trace, event->ts, &span);
	else
		ky_put_lane_end(pf->trace, event->ts, &span);
}

static void dma_heap(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		     const struct ky_pf_parts *parts)
{
	const int64_t bytes = (int64_t)parts->values[2];
	ky_pf_put(pf, event->ts, "android_dma_heap", word(pf, "mem.dma_heap"),
		  (double)parts->values[3]);
	ky_args_begin(pf->trace);
	ky_arg_uint(pf->trace, word(pf, "inode"), parts->values[1]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   word(pf, "mem.dma_heap_change"), (double)bytes, ky_args_end(pf->trace));
	buffer(pf, event, "android_dma_allocations", "mem.dma_buffer", (int64_t)parts->values[1],
	       bytes);
}

static void ion(struct ky_pf *pf, const struct ky_pf_ftrace *event, const struct ky_pf_parts *parts)
{
	const int64_t bytes = (int64_t)parts->values[2];
	ky_pf_put(pf, event->ts, "ion", word(pf, "mem.ion"), (double)(int64_t)parts->values[3]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   word(pf, "mem.ion_change"), (double)bytes, 0);
	buffer(pf, event, "android_ion_allocations", "mem.ion_buffer", (int32_t)parts->values[1],
	       bytes);
}

static void ion_heap(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		     const struct ky_pf_parts *parts, bool grow)
{
	const struct ky_proto_view unknown = {(const uint8_t *)"unknown", 7};
	const struct ky_proto_view heap = ky_pf_has(parts, 1) ? parts->texts[1] : unknown;
	const double bytes = (double)parts->values[2] * (grow ? 1 : -1);
	ky_pf_put(pf, event->ts, "ion", ky_pf_name(pf, "mem.ion.%.*s", KY_PF_TEXT(heap)),
		  (double)(int64_t)parts->values[3] + bytes);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_name(pf, "mem.ion_change.%.*s", KY_PF_TEXT(heap)), bytes, 0);
}

static void fastrpc(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts)
{
	static const char *const processors[] = {"ASDP", "MDSP", "SDSP", "CDSP"};
	const uint32_t id = (uint32_t)parts->values[1];
	char number[16];
	snprintf(number, sizeof(number), "%u", id);
	const char *of = id < sizeof(processors) / sizeof(*processors) ? processors[id] : number;
	ky_pf_put(pf, event->ts, "fastrpc", ky_pf_name(pf, "mem.fastrpc[%s]", of),
		  (double)parts->values[3]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_name(pf, "mem.fastrpc_change[%s]", of),
			   (double)(int64_t)parts->values[2], 0);
}

bool ky_pf_memory_event(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			const struct ky_pf_parts *parts)
{
	switch (event->id) {
	case 314: /* ion_heap_shrink */
	case 315: /* ion_heap_grow */
		ion_heap(pf, event, parts, event->id == 315);
		return true;
	case 326: /* oom_score_adj_update */
		ky_put_tid_counter(pf->trace, event->ts, (int32_t)parts->values[3],
				   KY_TRACK_PROCESS_COUNTER, word(pf, "oom_score_adj"),
				   (double)(int16_t)parts->values[2], 0);
		return true;
	case 334: /* mark_victim */
		ky_put_tid_instant(pf->trace, event->ts, (int32_t)parts->values[1], 0,
				   word(pf, "mem.oom_kill"), 0);
		return true;
	case 335: /* ion_stat */
		ion(pf, event, parts);
		return true;
	case 347: /* fastrpc_dma_stat */
		fastrpc(pf, event, parts);
		return true;
	case 351: /* dma_heap_stat */
		dma_heap(pf, event, parts);
		return true;
	case 465: /* cma_alloc_start */
	case 466: /* cma_alloc_info */
	case 576: /* cma_alloc_finish */
		cma(pf, event, parts);
		return true;
	default:
		return false;
	}
}
