/* SPDX-License-Identifier: MIT */
/*
 * pftrace_process.c: processes and threads: their names in track descriptors, in legacy descriptors and in
 * process trees; and the counters of processes.
 */
#include "formats/pftrace/pftrace_reader.h"

/* ---- descriptors ---- */

static const char *chrome_process_name(uint64_t type)
{
	static const char *const names[] = {NULL,          "Browser",       "Renderer",
					    "Utility",     "SandboxHelper", "Gpu",
					    "PpapiPlugin", "PpapiBroker"};
	return type < sizeof(names) / sizeof(*names) ? names[type] : NULL;
}

/* The system's name of a process outranks the one that the process gives itself. */
static void name_process(struct ky_pf *pf, uint32_t process, uint32_t name)
{
	if (name)
		ky_process_name(pf->trace, process, name, KY_NAME_KERNEL);
}

static uint32_t process_descriptor(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const struct ky_proto_view text = parts.texts[KY_PF_PROCESS_DESCRIPTOR_PROCESS_NAME];
	const uint64_t type = parts.values[KY_PF_PROCESS_DESCRIPTOR_CHROME_PROCESS_TYPE];
	const int64_t start_ns = (int64_t)parts.values[KY_PF_PROCESS_DESCRIPTOR_START_TIMESTAMP_NS];
	const uint32_t process =
		ky_process(pf->trace, (int32_t)parts.values[KY_PF_PROCESS_DESCRIPTOR_PID]);
	name_process(pf, process,
		     text.bytes ? ky_pf_string(pf, text)
				: ky_string_z(pf->trace, chrome_process_name(type)));
	if (start_ns > 0 && process < pf->trace->processes.rows.count &&
	    pf->trace->processes.start_ts[process] == KY_TIME_NONE)
		pf->trace->processes.start_ts[process] = start_ns;
	return process;
}

void ky_pf_process_descriptor(struct ky_pf *pf, struct ky_proto_view descriptor)
{
	(void)process_descriptor(pf, descriptor);
}

static int64_t us_to_ns(uint64_t value)
{
	const int64_t us = (int64_t)value;
	int64_t ns;
	return __builtin_mul_overflow(us, 1000, &ns) ? (us < 0 ? INT64_MIN : INT64_MAX) : ns;
}

void ky_pf_process_thread_descriptor(struct ky_pf *pf, struct ky_proto_view descriptor,
				     bool sandboxed)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(descriptor, &parts);
	const struct ky_proto_view name = parts.texts[KY_PF_THREAD_DESCRIPTOR_THREAD_NAME];
	const int64_t pid = (int32_t)parts.values[KY_PF_THREAD_DESCRIPTOR_PID];
	int64_t tid = (int64_t)parts.values[KY_PF_THREAD_DESCRIPTOR_TID];
	if (sandboxed)
		tid = ky_pf_track_synthetic_tid(pid, tid);
	if (sequence->valid) {
		sequence->has_thread = true;
		sequence->pid = pid;
		sequence->tid = tid;
		sequence->times_valid = true;
		sequence->time_ns =
			us_to_ns(parts.values[KY_PF_THREAD_DESCRIPTOR_REFERENCE_TIMESTAMP_US]);
		sequence->thread_time_ns =
			us_to_ns(parts.values[KY_PF_THREAD_DESCRIPTOR_REFERENCE_THREAD_TIME_US]);
		sequence->instructions =
			(int64_t)parts
				.values[KY_PF_THREAD_DESCRIPTOR_REFERENCE_THREAD_INSTRUCTION_COUNT];
	}
	const uint32_t row = ky_thread(pf->trace, pid, tid);
	if (name.bytes)
		ky_thread_name(pf->trace, row, ky_pf_string(pf, name), KY_NAME_TRACE);
}

static bool sandboxed(struct ky_proto_view descriptor)
{
	struct ky_proto_field chrome;
	return ky_proto_find(descriptor, KY_PF_TRACK_DESCRIPTOR_CHROME_THREAD, &chrome) &&
	       ky_proto_number(chrome.view, KY_PF_CHROME_THREAD_DESCRIPTOR_IS_SANDBOXED_TID);
}

static void chrome_process(struct ky_pf *pf, uint32_t process, struct ky_proto_view descriptor)
{
	struct ky_proto_field field;
	if (ky_proto_find(descriptor, KY_PF_CHROME_PROCESS_DESCRIPTOR_PROCESS_TYPE, &field))
		name_process(pf, process, ky_string_z(pf->trace, chrome_process_name(field.value)));
}

void ky_pf_process_name_described(struct ky_pf *pf, struct ky_proto_view descriptor)
{
	struct ky_proto_field uuid, field, chrome;
	if (!ky_proto_find(descriptor, KY_PF_TRACK_DESCRIPTOR_UUID, &uuid))
		return;
	if (!ky_pf_track_resolve(pf, uuid.value)) {
		ky_pf_event_error(pf, "a track descriptor's hierarchy is broken");
		return;
	}
	if (ky_proto_find(descriptor, KY_PF_TRACK_DESCRIPTOR_THREAD, &field)) {
		ky_pf_process_thread_descriptor(pf, field.view, sandboxed(descriptor));
	} else if (ky_proto_find(descriptor, KY_PF_TRACK_DESCRIPTOR_PROCESS, &field)) {
		const uint32_t process = process_descriptor(pf, field.view);
		if (ky_proto_find(descriptor, KY_PF_TRACK_DESCRIPTOR_CHROME_PROCESS, &chrome))
			chrome_process(pf, process, chrome.view);
	}
}

/* ---- the process tree ---- */

/* Join the arguments by spaces, as in a shell; the first is the process's name. */
static void tree_cmdline(struct ky_pf *pf, uint32_t process, struct ky_proto_view message)
{
	uint32_t first = 0, count = 0;
	pf->text.bytes = 0;
	KY_PROTO_EACH(field, message) {
		if (field.id != KY_PF_PROCESS_TREE_PROCESS_CMDLINE || field.wire != KY_PROTO_BYTES)
			continue;
		if (count++)
			ky_buffer_add(&pf->text, " ", 1);
		else
			first = ky_pf_string(pf, field.view);
		ky_buffer_add(&pf->text, (const char *)field.view.data, field.view.bytes);
	}
	if (!count)
		return;
	ky_process_name(pf->trace, process, first, KY_NAME_SYSTEM);
	if (process < pf->trace->processes.rows.count)
		pf->trace->processes.cmdline[process] = ky_pf_buffer_string(pf, &pf->text);
}

static void tree_process(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const int32_t pid = ky_pf_id(&parts, KY_PF_PROCESS_TREE_PROCESS_PID);
	const int32_t ppid = ky_pf_id(&parts, KY_PF_PROCESS_TREE_PROCESS_PPID);
	const int32_t uid = ky_pf_id(&parts, KY_PF_PROCESS_TREE_PROCESS_UID);
	const bool kernel_thread = parts.values[KY_PF_PROCESS_TREE_PROCESS_IS_KTHREAD] != 0;
	const int64_t start_ns =
		(int64_t)parts.values[KY_PF_PROCESS_TREE_PROCESS_PROCESS_START_FROM_BOOT];
	if (pid < 0)
		return;
	/* Each kernel thread is a process, whose parent is kthreadd. */
	struct ky_trace *trace = pf->trace;
	const uint32_t process = ky_process(trace, pid);
	const uint32_t parent =
		ppid > 0 || kernel_thread ? ky_process(trace, ppid > 0 ? ppid : 2) : KY_NONE;
	tree_cmdline(pf, process, message);
	if (process >= trace->processes.rows.count)
		return;
	if (parent != KY_NONE && parent != process)
		trace->processes.parent[process] = parent;
	if (uid >= 0)
		trace->processes.uid[process] = uid;
	if (start_ns > 0)
		trace->processes.start_ts[process] =
			ky_pf_clock_time(pf, KY_CLOCK_BOOTTIME, start_ns);
}

static void tree_thread(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const int32_t tid = ky_pf_id(&parts, KY_PF_PROCESS_TREE_THREAD_TID);
	const int32_t tgid = ky_pf_id(&parts, KY_PF_PROCESS_TREE_THREAD_TGID);
	const struct ky_proto_view name = parts.texts[KY_PF_PROCESS_TREE_THREAD_NAME];
	if (tid < 0)
		return;
	const uint32_t thread =
		tgid >= 0 ? ky_thread(pf->trace, tgid, tid) : ky_thread_by_tid(pf->trace, tid);
	if (name.bytes)
		ky_thread_name(pf->trace, thread, ky_pf_string(pf, name), KY_NAME_SYSTEM);
}

void ky_pf_process_tree(struct ky_pf *pf, struct ky_proto_view tree)
{
	KY_PF_EACH(pf, field, tree, "process_tree") {
		if (field.id == KY_PF_PROCESS_TREE_PROCESSES)
			tree_process(pf, field.view);
		else if (field.id == KY_PF_PROCESS_TREE_THREADS)
			tree_thread(pf, field.view);
	}
}

/* ---- counters of processes ---- */

struct process_counter {
	uint8_t field;
	uint16_t scale;
	const char *name;
};

static const struct process_counter process_counters[] = {
	{KY_PF_PROCESS_STATS_PROCESS_VM_SIZE_KB, 1024, "mem.virt"},
	{KY_PF_PROCESS_STATS_PROCESS_VM_RSS_KB, 1024, "mem.rss"},
	{KY_PF_PROCESS_STATS_PROCESS_RSS_ANON_KB, 1024, "mem.rss.anon"},
	{KY_PF_PROCESS_STATS_PROCESS_RSS_FILE_KB, 1024, "mem.rss.file"},
	{KY_PF_PROCESS_STATS_PROCESS_RSS_SHMEM_KB, 1024, "mem.rss.shmem"},
	{KY_PF_PROCESS_STATS_PROCESS_VM_SWAP_KB, 1024, "mem.swap"},
	{KY_PF_PROCESS_STATS_PROCESS_VM_LOCKED_KB, 1024, "mem.locked"},
	{KY_PF_PROCESS_STATS_PROCESS_VM_HWM_KB, 1024, "mem.rss.watermark"},
	{KY_PF_PROCESS_STATS_PROCESS_OOM_SCORE_ADJ, 1, "oom_score_adj"},
	{KY_PF_PROCESS_STATS_PROCESS_CHROME_PRIVATE_FOOTPRINT_KB, 1024,
	 "chrome.private_footprint_kb"},
	{KY_PF_PROCESS_STATS_PROCESS_CHROME_PEAK_RESIDENT_SET_KB, 1024,
	 "chrome.peak_resident_set_kb"},
	{KY_PF_PROCESS_STATS_PROCESS_SMR_RSS_KB, 1024, "mem.smaps.rss"},
	{KY_PF_PROCESS_STATS_PROCESS_SMR_PSS_KB, 1024, "mem.smaps.pss"},
	{KY_PF_PROCESS_STATS_PROCESS_SMR_PSS_ANON_KB, 1024, "mem.smaps.pss.anon"},
	{KY_PF_PROCESS_STATS_PROCESS_SMR_PSS_FILE_KB, 1024, "mem.smaps.pss.file"},
	{KY_PF_PROCESS_STATS_PROCESS_SMR_PSS_SHMEM_KB, 1024, "mem.smaps.pss.shmem"},
	{KY_PF_PROCESS_STATS_PROCESS_RUNTIME_USER_MODE, 1, "runtime.user_ns"},
	{KY_PF_PROCESS_STATS_PROCESS_RUNTIME_KERNEL_MODE, 1, "runtime.kernel_ns"},
	{KY_PF_PROCESS_STATS_PROCESS_SMR_SWAP_PSS_KB, 1024, "mem.smaps.swap.pss"},
	{KY_PF_PROCESS_STATS_PROCESS_DMABUF_RSS_KB, 1024, "mem.dmabuf_rss"},
};

static void process_counter(struct ky_pf *pf, int64_t ts, uint32_t process,
			    const struct ky_proto_field *field)
{
	for (size_t i = 0; i < sizeof(process_counters) / sizeof(*process_counters); i++) {
		const struct process_counter *counter = &process_counters[i];
		if (counter->field != field->id)
			continue;
		const uint32_t track =
			ky_track_counter(pf->trace, KY_TRACK_PROCESS_COUNTER, process,
					 ky_string_z(pf->trace, counter->name));
		ky_put_counter(pf->trace, ts, track,
			       (double)(int64_t)field->value * counter->scale);
	}
}

static void stats_of_process(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_proto_field pid;
	if (!ky_proto_find(message, KY_PF_PROCESS_STATS_PROCESS_PID, &pid))
		return;
	const uint32_t process = ky_process(pf->trace, (int32_t)pid.value);
	KY_PROTO_EACH(field, message)
		if (field.wire == KY_PROTO_VARINT)
			process_counter(pf, ts, process, &field);
}

void ky_pf_process_stats(struct ky_pf *pf, int64_t ts, struct ky_proto_view stats)
{
	KY_PF_EACH(pf, field, stats, "process_stats")
		if (field.id == KY_PF_PROCESS_STATS_PROCESSES)
			stats_of_process(pf, ts, field.view);
}
