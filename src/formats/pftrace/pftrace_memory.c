/* SPDX-License-Identifier: MIT */
/*
 * pftrace_memory.c: ftrace events of memory: contiguous allocations, buffers that devices share, out-of-memory
 * kills. Track names are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#include <stdio.h>

#define LINUX_5_10 (5u << 8 | 10u)
#define LINUX_6_1 (6u << 8 | 1u)

/* ---- contiguous allocations; which event ends one depends on the kernel ---- */

struct cma_arg {
	const char *key;
	uint8_t field;
};

static const struct cma_arg cma_info_args[] = {
	{"cma_name", KY_PF_CMA_ALLOC_INFO_NAME},
	{"cma_pfn", KY_PF_CMA_ALLOC_INFO_PFN},
	{"cma_req_pages", KY_PF_CMA_ALLOC_INFO_COUNT},
	{"cma_nr_migrated", KY_PF_CMA_ALLOC_INFO_NR_MIGRATED},
	{"cma_nr_reclaimed", KY_PF_CMA_ALLOC_INFO_NR_RECLAIMED},
	{"cma_nr_mapped", KY_PF_CMA_ALLOC_INFO_NR_MAPPED},
	{"cma_nr_isolate_fail", KY_PF_CMA_ALLOC_INFO_ERR_ISO},
	{"cma_nr_migrate_fail", KY_PF_CMA_ALLOC_INFO_ERR_MIG},
	{"cma_nr_test_fail", KY_PF_CMA_ALLOC_INFO_ERR_TEST},
};
static const struct cma_arg cma_finish_args[] = {{"cma_name", KY_PF_CMA_ALLOC_FINISH_NAME},
						 {"cma_pfn", KY_PF_CMA_ALLOC_FINISH_PFN},
						 {"cma_req_pages", KY_PF_CMA_ALLOC_FINISH_COUNT}};

static void cma_end(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts, const struct cma_arg *args, size_t count)
{
	ky_args_begin(pf->trace);
	for (size_t i = 0; i < count; i++) {
		const uint32_t key = ky_pf_literal(pf, args[i].key);
		if (parts->texts[args[i].field].data)
			ky_arg_string(pf->trace, key,
				      ky_pf_ftrace_part_text(pf, parts, args[i].field));
		else
			ky_arg_uint(pf->trace, key, parts->values[args[i].field]);
	}
	ky_put_tid_end(pf->trace, event->ts, event->tid, 0, 0, ky_args_end(pf->trace));
}

static void cma_start(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		      const struct ky_pf_parts *parts)
{
	(void)parts;
	if (pf->kernel_release >= LINUX_5_10)
		ky_put_tid_begin(pf->trace, event->ts, event->tid, 0,
				 ky_pf_literal(pf, "mm_cma_alloc"), 0);
}

static void cma_info(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		     const struct ky_pf_parts *parts)
{
	if (pf->kernel_release >= LINUX_5_10 && pf->kernel_release < LINUX_6_1)
		cma_end(pf, event, parts, cma_info_args,
			sizeof(cma_info_args) / sizeof(*cma_info_args));
}

static void cma_finish(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		       const struct ky_pf_parts *parts)
{
	if (pf->kernel_release >= LINUX_6_1)
		cma_end(pf, event, parts, cma_finish_args,
			sizeof(cma_finish_args) / sizeof(*cma_finish_args));
}

/* ---- buffers ---- */

/* Start (length above 0) or end the span of a buffer. */
static void buffer(struct ky_pf *pf, const struct ky_pf_ftrace *event, const char *type,
		   const char *track, int64_t cookie, int64_t bytes)
{
	const struct ky_lane_span span = {
		.type = ky_pf_literal(pf, type),
		.track = ky_pf_literal(pf, track),
		.cookie = cookie,
		.name = bytes > 0 ? ky_pf_track_name(pf, "%lld kB", (long long)bytes / 1024) : 0,
	};
	if (bytes > 0)
		ky_put_lane_begin(pf->trace, event->ts, &span);
	else
		ky_put_lane_end(pf->trace, event->ts, &span);
}

static void dma_heap(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		     const struct ky_pf_parts *parts)
{
	const int64_t bytes = (int64_t)parts->values[KY_PF_DMA_HEAP_STAT_LEN];
	ky_pf_track_put_counter(pf, event->ts, "android_dma_heap",
				ky_pf_literal(pf, "mem.dma_heap"),
				(double)parts->values[KY_PF_DMA_HEAP_STAT_TOTAL_ALLOCATED]);
	ky_args_begin(pf->trace);
	ky_arg_uint(pf->trace, ky_pf_literal(pf, "inode"),
		    parts->values[KY_PF_DMA_HEAP_STAT_INODE]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_literal(pf, "mem.dma_heap_change"), (double)bytes,
			   ky_args_end(pf->trace));
	buffer(pf, event, "android_dma_allocations", "mem.dma_buffer",
	       (int64_t)parts->values[KY_PF_DMA_HEAP_STAT_INODE], bytes);
}

static void ion(struct ky_pf *pf, const struct ky_pf_ftrace *event, const struct ky_pf_parts *parts)
{
	const int64_t bytes = (int64_t)parts->values[KY_PF_ION_STAT_LEN];
	ky_pf_track_put_counter(pf, event->ts, "ion", ky_pf_literal(pf, "mem.ion"),
				(double)(int64_t)parts->values[KY_PF_ION_STAT_TOTAL_ALLOCATED]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_literal(pf, "mem.ion_change"), (double)bytes, 0);
	buffer(pf, event, "android_ion_allocations", "mem.ion_buffer",
	       (int32_t)parts->values[KY_PF_ION_STAT_BUFFER_ID], bytes);
}

static void ion_heap(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		     const struct ky_pf_parts *parts)
{
	const bool grow = event->id == KY_PF_FTRACE_EVENT_ION_HEAP_GROW;
	const struct ky_proto_view unknown = {(const uint8_t *)"unknown", 7};
	const struct ky_proto_view heap = ky_pf_has(parts, KY_PF_ION_HEAP_GROW_HEAP_NAME)
						  ? parts->texts[KY_PF_ION_HEAP_GROW_HEAP_NAME]
						  : unknown;
	const double bytes = (double)parts->values[KY_PF_ION_HEAP_GROW_LEN] * (grow ? 1 : -1);
	ky_pf_track_put_counter(
		pf, event->ts, "ion", ky_pf_track_name(pf, "mem.ion.%.*s", KY_PF_TEXT(heap)),
		(double)(int64_t)parts->values[KY_PF_ION_HEAP_GROW_TOTAL_ALLOCATED] + bytes);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_track_name(pf, "mem.ion_change.%.*s", KY_PF_TEXT(heap)), bytes, 0);
}

static void fastrpc(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts)
{
	static const char *const processors[] = {"ASDP", "MDSP", "SDSP", "CDSP"};
	const uint32_t id = (uint32_t)parts->values[KY_PF_FASTRPC_DMA_STAT_CID];
	char number[16];
	snprintf(number, sizeof(number), "%u", id);
	const char *of = id < sizeof(processors) / sizeof(*processors) ? processors[id] : number;
	ky_pf_track_put_counter(pf, event->ts, "fastrpc",
				ky_pf_track_name(pf, "mem.fastrpc[%s]", of),
				(double)parts->values[KY_PF_FASTRPC_DMA_STAT_TOTAL_ALLOCATED]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_track_name(pf, "mem.fastrpc_change[%s]", of),
			   (double)(int64_t)parts->values[KY_PF_FASTRPC_DMA_STAT_LEN], 0);
}

static void oom_score(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		      const struct ky_pf_parts *parts)
{
	ky_put_tid_counter(
		pf->trace, event->ts, (int32_t)parts->values[KY_PF_OOM_SCORE_ADJ_UPDATE_PID],
		KY_TRACK_PROCESS_COUNTER, ky_pf_literal(pf, "oom_score_adj"),
		(double)(int16_t)parts->values[KY_PF_OOM_SCORE_ADJ_UPDATE_OOM_SCORE_ADJ], 0);
}

static void oom_victim(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		       const struct ky_pf_parts *parts)
{
	ky_put_tid_instant(pf->trace, event->ts, (int32_t)parts->values[KY_PF_MARK_VICTIM_PID], 0,
			   ky_pf_literal(pf, "mem.oom_kill"), 0);
}

const struct ky_pf_ftrace_handler ky_pf_memory_handlers[] = {
	{KY_PF_FTRACE_EVENT_ION_HEAP_SHRINK, ion_heap},
	{KY_PF_FTRACE_EVENT_ION_HEAP_GROW, ion_heap},
	{KY_PF_FTRACE_EVENT_ION_STAT, ion},
	{KY_PF_FTRACE_EVENT_FASTRPC_DMA_STAT, fastrpc},
	{KY_PF_FTRACE_EVENT_DMA_HEAP_STAT, dma_heap},
	{KY_PF_FTRACE_EVENT_CMA_ALLOC_START, cma_start},
	{KY_PF_FTRACE_EVENT_CMA_ALLOC_INFO, cma_info},
	{KY_PF_FTRACE_EVENT_CMA_ALLOC_FINISH, cma_finish},
	{KY_PF_FTRACE_EVENT_OOM_SCORE_ADJ_UPDATE, oom_score},
	{KY_PF_FTRACE_EVENT_MARK_VICTIM, oom_victim},
	{0, NULL},
};
