/* SPDX-License-Identifier: MIT */
/*
 * pftrace_other_os.c: events of kernels other than Linux: what a task does, its name, processes and threads, and
 * frequencies.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

void ky_pf_generic_task(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_take_apart(message, &parts);
	const struct ky_task_step step = {
		.cpu = (uint32_t)parts.values[1],
		.comm = ky_pf_part_text(pf, &parts, 2),
		.tid = (int64_t)parts.values[3],
		.now = (uint32_t)parts.values[4],
		.priority = (int32_t)parts.values[5],
	};
	ky_put_task_step(pf->trace, ts, &step);
}

void ky_pf_generic_rename(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_take_apart(message, &parts);
	ky_put_task_rename(pf->trace, ts, (int64_t)parts.values[1], ky_pf_part_text(pf, &parts, 2));
}

void ky_pf_generic_cpu_frequency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_take_apart(message, &parts);
	ky_put_cpu_counter(pf->trace, ts, (uint32_t)parts.values[1], pf->words[KY_PF_W_CPUFREQ],
			   (double)(int64_t)parts.values[2] / 1000.0);
}

void ky_pf_generic_gpu_frequency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_take_apart(message, &parts);
	ky_put_counter(pf->trace, ts,
		       ky_pf_counter_track(pf, "gpu_frequency", ky_string_z(pf->trace, "gpufreq"),
					   (uint32_t)parts.values[1]),
		       (double)(uint32_t)parts.values[2]);
}

/* ---- processes and threads ---- */

static void tree_process(struct ky_pf *pf, const struct ky_pf_parts *parts)
{
	struct ky_trace *trace = pf->trace;
	struct ky_proto_view name = parts->texts[3];
	if (!name.data)
		return;
	const uint32_t parent = ky_process(trace, (int64_t)parts->values[2]);
	const uint32_t process = ky_process(trace, (int64_t)parts->values[1]);
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
	const uint32_t thread =
		ky_thread(trace, (int64_t)parts->values[2], (int64_t)parts->values[1]);
	if (thread >= trace->threads.rows.count)
		return;
	trace->threads.is_main[thread] = parts->values[4] != 0;
	trace->threads.is_idle[thread] = parts->values[5] != 0;
	if (parts->texts[3].data)
		ky_thread_name(trace, thread, ky_pf_string(pf, parts->texts[3]), KY_NAME_SYSTEM);
}

void ky_pf_generic_tree(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	struct ky_pf_parts parts;
	while (ky_proto_next(&in, &field)) {
		if (field.wire != KY_PROTO_BYTES)
			continue;
		ky_pf_take_apart(field.view, &parts);
		if (field.id == 1)
			tree_process(pf, &parts);
		else if (field.id == 2)
			tree_thread(pf, &parts);
	}
	if (in.bad)
		ky_pf_damaged(pf, "generic_kernel_process_tree");
}
