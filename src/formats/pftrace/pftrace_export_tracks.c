/* SPDX-License-Identifier: MIT */
/*
 * pftrace_export_tracks.c: descriptors of processes, threads and tracks. A uuid is the row's number and its table,
 * so uuids are small, and so are the packets of events.
 */
#include "formats/pftrace/pftrace_export.h"

#include <stdio.h>

static uint64_t uuid_of(uint32_t row, uint32_t table)
{
	return ((uint64_t)row + 1) * 4 + table;
}

static uint64_t process_uuid(uint32_t process)
{
	return uuid_of(process, 0);
}

uint64_t ky_pf_export_thread_uuid(const struct ky_pf_exporter *w, uint32_t thread)
{
	(void)w;
	return uuid_of(thread, 1);
}

static struct ky_text or_none(const struct ky_pf_exporter *w, uint32_t string)
{
	return string ? ky_export_text(w->trace, string) : (struct ky_text){NULL, 0};
}

static void describe_process(struct ky_pf_exporter *w, uint32_t process)
{
	const struct ky_processes *p = &w->trace->processes;
	ky_pf_emit_process(&w->emit, process_uuid(process), ky_address_pid(w->trace, process),
			   or_none(w, p->name[process]), or_none(w, p->cmdline[process]));
}

static void describe_thread(struct ky_pf_exporter *w, uint32_t thread)
{
	const struct ky_threads *t = &w->trace->threads;
	const uint32_t process = t->process[thread];
	ky_pf_emit_thread(&w->emit, ky_pf_export_thread_uuid(w, thread),
			  process == KY_NONE ? 0 : process_uuid(process),
			  ky_address_pid_of_thread(w->trace, thread),
			  ky_address_tid(w->trace, thread), or_none(w, t->name[thread]));
}

/* Files without ids have 0, which is the kernel's idle task only when nothing else is on it. */
static void describe_zeros(struct ky_pf_exporter *w)
{
	const struct ky_trace *t = w->trace;
	for (uint32_t i = 0; i < t->tracks.rows.count; i++) {
		const uint32_t thread = ky_track_thread(t, i);
		if (w->addresses.tracks[i].form == KY_AT_THREAD && thread != KY_NONE &&
		    t->threads.is_idle[thread] && !ky_track_is_counter(t->tracks.kind[i]))
			describe_thread(w, thread);
	}
}

void ky_pf_export_describe_tasks(struct ky_pf_exporter *w)
{
	for (uint32_t i = 0; i < w->trace->processes.rows.count; i++)
		describe_process(w, i);
	for (uint32_t i = 0; i < w->trace->threads.rows.count; i++)
		if (!w->trace->threads.is_idle[i] && ky_selected_thread(w->selection, i))
			describe_thread(w, i);
	describe_zeros(w);
}

static uint64_t owner_uuid(const struct ky_pf_exporter *w, uint32_t track)
{
	const uint32_t thread = ky_track_thread(w->trace, track);
	const uint32_t process = ky_track_process(w->trace, track);
	if (thread != KY_NONE)
		return ky_pf_export_thread_uuid(w, thread);
	return process != KY_NONE ? process_uuid(process) : 0;
}

static void put_name(struct ky_pf_exporter *w, uint32_t track)
{
	const struct ky_tracks *t = &w->trace->tracks;
	const uint8_t kind = t->kind[track];
	const bool of_cpu = kind == KY_TRACK_CPU || kind == KY_TRACK_CPU_COUNTER;
	if (t->name[track] && !of_cpu) {
		ky_pf_export_string(w, &w->emit.body, KY_PF_TRACK_DESCRIPTOR_NAME, t->name[track]);
	} else if (t->name[track]) {
		char number[24];
		const int bytes = snprintf(number, sizeof(number), " %u", t->owner[track]);
		const struct ky_text name = ky_export_text(w->trace, t->name[track]);
		ky_proto_length(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_NAME,
				name.bytes + (size_t)bytes);
		ky_out_append(&w->emit.body, name.data, name.bytes);
		ky_out_append(&w->emit.body, number, (size_t)bytes);
	} else if (kind == KY_TRACK_GLOBAL) {
		ky_proto_bytes(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_NAME, "global", 6);
	}
}

static bool is_own(const struct ky_pf_exporter *w, uint32_t track)
{
	const uint8_t form = w->addresses.tracks[track].form;
	return !ky_track_is_counter(w->trace->tracks.kind[track]) &&
	       (form == KY_AT_THREAD || form == KY_AT_PROCESS);
}

uint64_t ky_pf_export_track(const struct ky_pf_exporter *w, uint32_t track)
{
	return is_own(w, track) ? owner_uuid(w, track) : uuid_of(track, 2);
}

static void describe(struct ky_pf_exporter *w, uint32_t track)
{
	const struct ky_tracks *t = &w->trace->tracks;
	const uint64_t parent = t->parent[track] < t->rows.count
					? ky_pf_export_track(w, t->parent[track])
					: owner_uuid(w, track);
	ky_proto_uint(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_UUID, uuid_of(track, 2));
	if (parent)
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID, parent);
	put_name(w, track);
	if (ky_track_is_counter(t->kind[track])) {
		w->emit.part.used = 0;
		if (t->unit[track])
			ky_pf_export_string(w, &w->emit.part, KY_PF_COUNTER_DESCRIPTOR_UNIT_NAME,
					    t->unit[track]);
		ky_proto_message(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_COUNTER, &w->emit.part);
	} else if (t->flags[track] & KY_TRACK_ASYNC) {
		ky_proto_uint(&w->emit.body, KY_PF_TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR,
			      KY_PF_SIBLING_MERGE_BEHAVIOR_NONE);
	}
	ky_pf_export_send_file(w, KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR);
}

/* A part of a trace has only the selected tracks and those above them. */
void ky_pf_export_describe_tracks(struct ky_pf_exporter *w)
{
	const struct ky_tracks *t = &w->trace->tracks;
	const uint8_t *wanted = w->selection->tracks;
	for (uint32_t i = 0; i < t->rows.count; i++)
		if (!is_own(w, i) && (!wanted || wanted[i] || t->parent[i] == KY_NONE))
			describe(w, i);
}
