/* SPDX-License-Identifier: MIT */
/*
 * pftrace_kernel.c: ftrace events of the kernel's core: who runs where, tasks that start and end, markers,
 * interrupts, system calls, frequencies; the packets of kernels other than Linux; and memory: contiguous allocations,
 * buffers that devices share, out-of-memory kills. Track names are Perfetto's.
 */
#include "formats/ftrace/ftrace_event.h"
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#include <stdio.h>

#define CLONE_THREAD 0x10000u

struct ky_pf_switch *ky_pf_kernel_last_switch(struct ky_pf *pf, uint32_t cpu)
{
	bool made;
	if (!KY_PF_GROW(pf, switches))
		return NULL;
	uint32_t *row = ky_u64_map_add(&pf->last_switch, cpu, &made);
	if (!row)
		return NULL;
	if (made) {
		*row = pf->switches_count;
		pf->switches[pf->switches_count++] = (struct ky_pf_switch){0};
	}
	return &pf->switches[*row];
}

/* Return the name of a kernel function: interned, or its address. */
static uint32_t kernel_symbol(struct ky_pf *pf, const struct ky_pf_ftrace *event, uint64_t iid)
{
	const uint32_t name = ky_pf_text(event->sequence, KY_PF_KERNEL_SYMBOLS, iid);
	if (name)
		return name;
	return ky_string_format(pf->trace, "0x%llx", (unsigned long long)iid);
}

static void sched_switch(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t *values = event->values;
	const struct ky_switch change = {
		.cpu = event->cpu,
		.prev_comm = ky_pf_string_if(pf, event->texts[KY_PF_SCHED_SWITCH_PREV_COMM]),
		.prev_tid = (int32_t)values[KY_PF_SCHED_SWITCH_PREV_PID],
		.prev_priority = (int32_t)values[KY_PF_SCHED_SWITCH_PREV_PRIO],
		.prev_state = ky_task_state(pf->trace, values[KY_PF_SCHED_SWITCH_PREV_STATE],
					    pf->kernel_release),
		.next_comm = ky_pf_string_if(pf, event->texts[KY_PF_SCHED_SWITCH_NEXT_COMM]),
		.next_tid = (int32_t)values[KY_PF_SCHED_SWITCH_NEXT_PID],
		.next_priority = (int32_t)values[KY_PF_SCHED_SWITCH_NEXT_PRIO],
	};
	struct ky_pf_switch *last = ky_pf_kernel_last_switch(pf, event->cpu);
	if (last)
		*last = (struct ky_pf_switch){change.next_tid, change.next_priority,
					      change.next_comm, true};
	ky_put_switch(pf->trace, event->ts, &change);
}

static void sched_waking(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_waking(pf->trace, event->ts, (int32_t)event->values[KY_PF_SCHED_WAKING_PID],
		      ky_pf_string_if(pf, event->texts[KY_PF_SCHED_WAKING_COMM]), event->tid);
}

static void sched_blocked(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t *values = event->values;
	ky_put_blocked(pf->trace, event->ts, (int32_t)values[KY_PF_SCHED_BLOCKED_REASON_PID],
		       values[KY_PF_SCHED_BLOCKED_REASON_IO_WAIT] != 0,
		       ky_pf_text(event->sequence, KY_PF_KERNEL_SYMBOLS,
				  values[KY_PF_SCHED_BLOCKED_REASON_CALLER]));
}

static void task_new(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const int32_t tid = (int32_t)event->values[KY_PF_TASK_NEWTASK_PID];
	if (tid)
		ky_put_task_new(pf->trace, event->ts, event->tid, tid,
				ky_pf_string_if(pf, event->texts[KY_PF_TASK_NEWTASK_COMM]),
				(event->values[KY_PF_TASK_NEWTASK_CLONE_FLAGS] & CLONE_THREAD) !=
					0);
}

static void task_rename(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_task_rename(pf->trace, event->ts, (int32_t)event->values[KY_PF_TASK_RENAME_PID],
			   ky_pf_string_if(pf, event->texts[KY_PF_TASK_RENAME_NEWCOMM]));
}

static void task_free(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_task_exit(pf->trace, event->ts,
			 (int32_t)event->values[KY_PF_SCHED_PROCESS_FREE_PID]);
}

static void irq_begin(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	pf->text.bytes = 0;
	ky_buffer_add(&pf->text, "IRQ (", 5);
	ky_buffer_add(&pf->text, (const char *)event->texts[KY_PF_IRQ_HANDLER_ENTRY_NAME].data,
		      event->texts[KY_PF_IRQ_HANDLER_ENTRY_NAME].bytes);
	ky_buffer_add(&pf->text, ")", 1);
	ky_put_cpu_begin(pf->trace, event->ts, event->cpu, "Irq",
			 ky_pf_buffer_string(pf, &pf->text), 0);
}

static void irq_end(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const bool handled = event->values[KY_PF_IRQ_HANDLER_EXIT_RET] == 1;
	const uint32_t result = ky_pf_literal(pf, handled ? "handled" : "unhandled");
	ky_put_cpu_end(pf->trace, event->ts, event->cpu, "Irq",
		       ky_pf_arg(pf, "ret", KY_ARG_STRING, result));
}

static void softirq(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const char *const known = ky_softirq_name(event->values[KY_PF_SOFTIRQ_ENTRY_VEC]);
	if (!known)
		return;
	const uint32_t name = ky_string_z(pf->trace, known);
	if (event->id == KY_PF_FTRACE_EVENT_SOFTIRQ_ENTRY) {
		ky_put_cpu_begin(pf->trace, event->ts, event->cpu, "SoftIrq", name, 0);
		return;
	}
	ky_put_cpu_end(pf->trace, event->ts, event->cpu, "SoftIrq",
		       ky_pf_arg(pf, "vec", KY_ARG_STRING, name));
}

static uint32_t syscall_name(struct ky_pf *pf, uint64_t number)
{
	const char *known = ky_ftrace_syscall_name(pf->syscalls, (int64_t)number);
	return known ? ky_string_z(pf->trace, known)
		     : ky_pf_track_name(pf, "sys_%u", (unsigned)number);
}

/* args is a repeated field: parts has only its last item. */
static void sys_enter(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t number = event->values[KY_PF_SYS_ENTER_ID];
	uint64_t value;
	uint32_t index = 0;
	ky_args_begin(pf->trace);
	KY_PROTO_EACH(field, event->all) {
		struct ky_proto_items items = ky_proto_items(&field, false);
		while (field.id == KY_PF_SYS_ENTER_ARGS && ky_proto_item(&items, &value)) {
			ky_arg_uint(pf->trace, ky_string_format(pf->trace, "args[%u]", index++),
				    value);
		}
	}
	ky_put_tid_begin(pf->trace, event->ts, event->tid, 0, syscall_name(pf, number),
			 ky_args_end(pf->trace));
}

static void sys_exit(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, ky_pf_literal(pf, "ret"), (int64_t)event->values[KY_PF_SYS_EXIT_RET]);
	ky_put_tid_end(pf->trace, event->ts, event->tid, 0,
		       syscall_name(pf, event->values[KY_PF_SYS_EXIT_ID]), ky_args_end(pf->trace));
}

static void cpu_frequency(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_cpu_counter(pf->trace, event->ts,
			   (uint32_t)event->values[KY_PF_CPU_FREQUENCY_CPU_ID],
			   pf->words[KY_PF_W_CPUFREQ],
			   (double)(uint32_t)event->values[KY_PF_CPU_FREQUENCY_STATE]);
}

/* State 2^32 - 1 means not idle; the counter keeps the kernel's number. */
static void cpu_idle(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_cpu_counter(pf->trace, event->ts, (uint32_t)event->values[KY_PF_CPU_IDLE_CPU_ID],
			   pf->words[KY_PF_W_CPUIDLE],
			   (double)(uint32_t)event->values[KY_PF_CPU_IDLE_STATE]);
}

/* Take the line without its newline. */
static void print(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	struct ky_proto_view text = event->texts[KY_PF_PRINT_BUF];
	while (text.bytes && text.data[text.bytes - 1] == '\n')
		text.bytes--;
	if (text.data)
		ky_put_marker(pf->trace, event->ts, event->tid, ky_pf_string(pf, text));
}

static void work(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint32_t category = ky_pf_literal(pf, "workqueue");
	if (event->id == KY_PF_FTRACE_EVENT_WORKQUEUE_EXECUTE_START)
		ky_put_tid_begin(
			pf->trace, event->ts, event->tid, category,
			kernel_symbol(pf, event,
				      event->values[KY_PF_WORKQUEUE_EXECUTE_START_FUNCTION]),
			0);
	else
		ky_put_tid_end(pf->trace, event->ts, event->tid, category, 0, 0);
}

static void function_entry(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (event->tid)
		ky_put_tid_begin(
			pf->trace, event->ts, event->tid, 0,
			kernel_symbol(pf, event, event->values[KY_PF_FUNCGRAPH_ENTRY_FUNC]), 0);
}

static void function_exit(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (event->tid)
		ky_put_tid_end(pf->trace, event->ts, event->tid, 0,
			       kernel_symbol(pf, event, event->values[KY_PF_FUNCGRAPH_EXIT_FUNC]),
			       0);
}

static void binder(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const struct ky_binder_call call = {
		.id = (int32_t)event->values[KY_PF_BINDER_TRANSACTION_DEBUG_ID],
		.dest_node = (int32_t)event->values[KY_PF_BINDER_TRANSACTION_TARGET_NODE],
		.dest_tgid = (int32_t)event->values[KY_PF_BINDER_TRANSACTION_TO_PROC],
		.dest_tid = (int32_t)event->values[KY_PF_BINDER_TRANSACTION_TO_THREAD],
		.reply = event->values[KY_PF_BINDER_TRANSACTION_REPLY] == 1,
		.code = ky_pf_track_name(pf, "0x%x Java Layer Dependent",
					 (unsigned)event->values[KY_PF_BINDER_TRANSACTION_CODE]),
		.flags = (uint32_t)event->values[KY_PF_BINDER_TRANSACTION_FLAGS],
	};
	ky_put_binder_transaction(pf->trace, event->ts, event->tid, &call);
}

static void binder_received(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_binder_received(pf->trace, event->ts, event->tid,
			       (int32_t)event->values[KY_PF_BINDER_TRANSACTION_RECEIVED_DEBUG_ID]);
}

static void binder_command(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_binder_command(pf->trace, event->ts, event->tid,
			      (uint32_t)event->values[KY_PF_BINDER_COMMAND_CMD]);
}

/* ---- kernels other than Linux ---- */

void ky_pf_kernel_task(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const struct ky_task_step step = {
		.cpu = (uint32_t)parts.values[KY_PF_GENERIC_KERNEL_TASK_STATE_EVENT_CPU],
		.comm = ky_pf_string_if(pf,
					parts.texts[KY_PF_GENERIC_KERNEL_TASK_STATE_EVENT_COMM]),
		.tid = (int64_t)parts.values[KY_PF_GENERIC_KERNEL_TASK_STATE_EVENT_TID],
		.now = (uint32_t)parts.values[KY_PF_GENERIC_KERNEL_TASK_STATE_EVENT_STATE],
		.priority = (int32_t)parts.values[KY_PF_GENERIC_KERNEL_TASK_STATE_EVENT_PRIO],
	};
	ky_put_task_step(pf->trace, ts, &step);
}

void ky_pf_kernel_rename(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	ky_put_task_rename(
		pf->trace, ts, (int64_t)parts.values[KY_PF_GENERIC_KERNEL_TASK_RENAME_EVENT_TID],
		ky_pf_string_if(pf, parts.texts[KY_PF_GENERIC_KERNEL_TASK_RENAME_EVENT_COMM]));
}

void ky_pf_kernel_cpu_frequency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	ky_put_cpu_counter(
		pf->trace, ts, (uint32_t)parts.values[KY_PF_GENERIC_KERNEL_CPU_FREQUENCY_EVENT_CPU],
		pf->words[KY_PF_W_CPUFREQ],
		(double)(int64_t)parts.values[KY_PF_GENERIC_KERNEL_CPU_FREQUENCY_EVENT_FREQ_HZ] /
			1000.0);
}

void ky_pf_kernel_gpu_frequency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	ky_put_counter(
		pf->trace, ts,
		ky_pf_track_of_counter(
			pf, "gpu_frequency", ky_pf_literal(pf, "gpufreq"),
			(uint32_t)parts.values[KY_PF_GENERIC_GPU_FREQUENCY_EVENT_GPU_ID]),
		(double)(uint32_t)parts.values[KY_PF_GENERIC_GPU_FREQUENCY_EVENT_FREQUENCY_KHZ]);
}

static void tree_process(struct ky_pf *pf, const struct ky_pf_parts *parts)
{
	struct ky_trace *trace = pf->trace;
	struct ky_proto_view name = parts->texts[KY_PF_GENERIC_KERNEL_PROCESS_TREE_PROCESS_CMDLINE];
	if (!name.data)
		return;
	const uint32_t parent = ky_process(
		trace, (int64_t)parts->values[KY_PF_GENERIC_KERNEL_PROCESS_TREE_PROCESS_PPID]);
	const uint32_t process = ky_process(
		trace, (int64_t)parts->values[KY_PF_GENERIC_KERNEL_PROCESS_TREE_PROCESS_PID]);
	if (process >= trace->processes.rows.count)
		return;
	if (parent != process && parent < trace->processes.rows.count)
		trace->processes.parent[process] = parent;
	trace->processes.cmdline[process] = ky_pf_string(pf, name);
	const uint8_t *space = memchr(name.data, ' ', name.bytes);
	if (space)
		name.bytes = (size_t)(space - name.data);
	ky_process_name(trace, process, ky_pf_string(pf, name), KY_NAME_SYSTEM);
}

static void tree_thread(struct ky_pf *pf, const struct ky_pf_parts *parts)
{
	struct ky_trace *trace = pf->trace;
	const uint32_t thread = ky_thread(
		trace, (int64_t)parts->values[KY_PF_GENERIC_KERNEL_PROCESS_TREE_THREAD_PID],
		(int64_t)parts->values[KY_PF_GENERIC_KERNEL_PROCESS_TREE_THREAD_TID]);
	if (thread >= trace->threads.rows.count)
		return;
	trace->threads.is_main[thread] =
		parts->values[KY_PF_GENERIC_KERNEL_PROCESS_TREE_THREAD_IS_MAIN_THREAD] != 0;
	trace->threads.is_idle[thread] =
		parts->values[KY_PF_GENERIC_KERNEL_PROCESS_TREE_THREAD_IS_IDLE] != 0;
	if (parts->texts[KY_PF_GENERIC_KERNEL_PROCESS_TREE_THREAD_COMM].data)
		ky_thread_name(
			trace, thread,
			ky_pf_string(pf,
				     parts->texts[KY_PF_GENERIC_KERNEL_PROCESS_TREE_THREAD_COMM]),
			KY_NAME_SYSTEM);
}

void ky_pf_kernel_process_tree(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	KY_PF_EACH(pf, field, message, "generic_kernel_process_tree") {
		if (field.wire != KY_PROTO_BYTES)
			continue;
		ky_pf_ftrace_take_apart(field.view, &parts);
		if (field.id == KY_PF_GENERIC_KERNEL_PROCESS_TREE_PROCESSES)
			tree_process(pf, &parts);
		else if (field.id == KY_PF_GENERIC_KERNEL_PROCESS_TREE_THREADS)
			tree_thread(pf, &parts);
	}
}

/* ---- memory ---- */

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

static void cma_end(struct ky_pf *pf, const struct ky_pf_ftrace *event, const struct cma_arg *args,
		    size_t count)
{
	ky_args_begin(pf->trace);
	for (size_t i = 0; i < count; i++) {
		const uint32_t key = ky_pf_literal(pf, args[i].key);
		if (event->texts[args[i].field].data)
			ky_arg_string(pf->trace, key,
				      ky_pf_string_if(pf, event->texts[args[i].field]));
		else
			ky_arg_uint(pf->trace, key, event->values[args[i].field]);
	}
	ky_put_tid_end(pf->trace, event->ts, event->tid, 0, 0, ky_args_end(pf->trace));
}

static void cma_start(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (pf->kernel_release >= LINUX_5_10)
		ky_put_tid_begin(pf->trace, event->ts, event->tid, 0,
				 ky_pf_literal(pf, "mm_cma_alloc"), 0);
}

static void cma_info(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (pf->kernel_release >= LINUX_5_10 && pf->kernel_release < LINUX_6_1)
		cma_end(pf, event, cma_info_args, sizeof(cma_info_args) / sizeof(*cma_info_args));
}

static void cma_finish(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (pf->kernel_release >= LINUX_6_1)
		cma_end(pf, event, cma_finish_args,
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
	ky_put_lane(pf->trace, event->ts, bytes > 0, &span);
}

static void dma_heap(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const int64_t bytes = (int64_t)event->values[KY_PF_DMA_HEAP_STAT_LEN];
	const uint64_t inode = event->values[KY_PF_DMA_HEAP_STAT_INODE];
	ky_pf_track_put_counter(pf, event->ts, "android_dma_heap",
				ky_pf_literal(pf, "mem.dma_heap"),
				(double)event->values[KY_PF_DMA_HEAP_STAT_TOTAL_ALLOCATED]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_literal(pf, "mem.dma_heap_change"), (double)bytes,
			   ky_pf_arg(pf, "inode", KY_ARG_UINT, inode));
	buffer(pf, event, "android_dma_allocations", "mem.dma_buffer", (int64_t)inode, bytes);
}

static void ion(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const int64_t bytes = (int64_t)event->values[KY_PF_ION_STAT_LEN];
	ky_pf_track_put_counter(pf, event->ts, "ion", ky_pf_literal(pf, "mem.ion"),
				(double)(int64_t)event->values[KY_PF_ION_STAT_TOTAL_ALLOCATED]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_literal(pf, "mem.ion_change"), (double)bytes, 0);
	buffer(pf, event, "android_ion_allocations", "mem.ion_buffer",
	       (int32_t)event->values[KY_PF_ION_STAT_BUFFER_ID], bytes);
}

static void ion_heap(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const bool grow = event->id == KY_PF_FTRACE_EVENT_ION_HEAP_GROW;
	const struct ky_proto_view unknown = {(const uint8_t *)"unknown", 7};
	const struct ky_proto_view heap = ky_pf_has(event->parts, KY_PF_ION_HEAP_GROW_HEAP_NAME)
						  ? event->texts[KY_PF_ION_HEAP_GROW_HEAP_NAME]
						  : unknown;
	const double bytes = (double)event->values[KY_PF_ION_HEAP_GROW_LEN] * (grow ? 1 : -1);
	ky_pf_track_put_counter(
		pf, event->ts, "ion", ky_pf_track_name(pf, "mem.ion.%.*s", KY_PF_TEXT(heap)),
		(double)(int64_t)event->values[KY_PF_ION_HEAP_GROW_TOTAL_ALLOCATED] + bytes);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_track_name(pf, "mem.ion_change.%.*s", KY_PF_TEXT(heap)), bytes, 0);
}

static void fastrpc(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	static const char *const processors[] = {"ASDP", "MDSP", "SDSP", "CDSP"};
	const uint32_t id = (uint32_t)event->values[KY_PF_FASTRPC_DMA_STAT_CID];
	char number[16];
	snprintf(number, sizeof(number), "%u", id);
	const char *of = id < sizeof(processors) / sizeof(*processors) ? processors[id] : number;
	ky_pf_track_put_counter(pf, event->ts, "fastrpc",
				ky_pf_track_name(pf, "mem.fastrpc[%s]", of),
				(double)event->values[KY_PF_FASTRPC_DMA_STAT_TOTAL_ALLOCATED]);
	ky_put_tid_counter(pf->trace, event->ts, event->tid, KY_TRACK_THREAD_COUNTER,
			   ky_pf_track_name(pf, "mem.fastrpc_change[%s]", of),
			   (double)(int64_t)event->values[KY_PF_FASTRPC_DMA_STAT_LEN], 0);
}

static void oom_score(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_tid_counter(
		pf->trace, event->ts, (int32_t)event->values[KY_PF_OOM_SCORE_ADJ_UPDATE_PID],
		KY_TRACK_PROCESS_COUNTER, ky_pf_literal(pf, "oom_score_adj"),
		(double)(int16_t)event->values[KY_PF_OOM_SCORE_ADJ_UPDATE_OOM_SCORE_ADJ], 0);
}

static void oom_victim(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	ky_put_tid_instant(pf->trace, event->ts, (int32_t)event->values[KY_PF_MARK_VICTIM_PID], 0,
			   ky_pf_literal(pf, "mem.oom_kill"), 0);
}

const struct ky_pf_ftrace_handler ky_pf_kernel_handlers[] = {
	{KY_PF_FTRACE_EVENT_PRINT, print},
	{KY_PF_FTRACE_EVENT_SCHED_SWITCH, sched_switch},
	{KY_PF_FTRACE_EVENT_SCHED_WAKING, sched_waking},
	{KY_PF_FTRACE_EVENT_SCHED_BLOCKED_REASON, sched_blocked},
	{KY_PF_FTRACE_EVENT_SCHED_PROCESS_FREE, task_free},
	{KY_PF_FTRACE_EVENT_TASK_NEWTASK, task_new},
	{KY_PF_FTRACE_EVENT_TASK_RENAME, task_rename},
	{KY_PF_FTRACE_EVENT_CPU_FREQUENCY, cpu_frequency},
	{KY_PF_FTRACE_EVENT_CPU_IDLE, cpu_idle},
	{KY_PF_FTRACE_EVENT_SOFTIRQ_ENTRY, softirq},
	{KY_PF_FTRACE_EVENT_SOFTIRQ_EXIT, softirq},
	{KY_PF_FTRACE_EVENT_IRQ_HANDLER_ENTRY, irq_begin},
	{KY_PF_FTRACE_EVENT_IRQ_HANDLER_EXIT, irq_end},
	{KY_PF_FTRACE_EVENT_WORKQUEUE_EXECUTE_START, work},
	{KY_PF_FTRACE_EVENT_WORKQUEUE_EXECUTE_END, work},
	{KY_PF_FTRACE_EVENT_FUNCGRAPH_ENTRY, function_entry},
	{KY_PF_FTRACE_EVENT_FUNCGRAPH_EXIT, function_exit},
	{KY_PF_FTRACE_EVENT_SYS_ENTER, sys_enter},
	{KY_PF_FTRACE_EVENT_SYS_EXIT, sys_exit},
	{KY_PF_FTRACE_EVENT_BINDER_TRANSACTION, binder},
	{KY_PF_FTRACE_EVENT_BINDER_TRANSACTION_RECEIVED, binder_received},
	{KY_PF_FTRACE_EVENT_BINDER_COMMAND, binder_command},
	{KY_PF_FTRACE_EVENT_BINDER_RETURN, binder_command},
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
