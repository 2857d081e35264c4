/* SPDX-License-Identifier: MIT */
/*
 * pftrace_emit_track.c: the tracks of a Perfetto trace and their descriptions (TrackDescriptor).
 *
 * A track's uuid follows from what it is for, so none has to be remembered: process and threads
 * count up from a base that differs from file to file, asynchronous spans and counters are hashes of
 * their key. Whether a track was described is looked up in a small table that forgets: describing
 * a track twice costs a few bytes and changes nothing, and memory stays bounded however many ids a
 * program uses up.
 */
#include "formats/pftrace/pftrace_emit.h"
#include "formats/pftrace/pftrace_schema.h"
#include "formats/proto.h"
#include "formats/utf8.h"

enum { UUID_PROCESS = 1, UUID_SNAPSHOTS = 2, UUID_GLOBAL = 3, UUID_THREADS = 16 };

#define SALT_ASYNC UINT64_C(0x6173796e63)
#define SALT_COUNTER UINT64_C(0x636f756e74)

uint64_t ky_pft_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a ^ (b * UINT64_C(0x9e3779b97f4a7c15));
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t mix_text(uint64_t hash, struct ky_text text)
{
	for (uint32_t i = 0; i < text.bytes; i++)
		hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001b3);
	return ky_pft_mix(hash, text.bytes);
}

/* Below 2^63: shorter to write, and read right by those who take it for signed. */
static uint64_t as_uuid(uint64_t hash)
{
	return (hash >> 1) | 1;
}

uint64_t ky_pft_process_uuid(const struct ky_pft *w, int32_t pid)
{
	return pid == w->pid ? w->uuid_base + UUID_PROCESS
			     : as_uuid(ky_pft_mix(w->uuid_base, (uint32_t)pid));
}

uint64_t ky_pft_thread_uuid(const struct ky_pft *w, uint32_t index)
{
	return w->uuid_base + UUID_THREADS + index;
}

/* True the first time, and again when it was forgotten. */
static bool is_new(struct ky_pft *w, uint64_t uuid)
{
	uint64_t *slot = &w->seen[uuid / 2 % KY_PFT_SEEN];
	const bool new = *slot != uuid;
	*slot = uuid;
	return new;
}

static void describe_child(struct ky_pft *w, uint64_t uuid, uint64_t parent, struct ky_text name)
{
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_TRACK_DESCRIPTOR_UUID, uuid);
	if (parent)
		ky_proto_uint(&w->part, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID, parent);
	ky_proto_text(&w->part, KY_PF_TRACK_DESCRIPTOR_NAME, ky_utf8_text(&w->clean, name, false));
	ky_pft_describe(w, &w->part);
}

uint64_t ky_pft_async_track(struct ky_pft *w, const struct ky_event *e)
{
	const uint64_t process = ky_pft_process_uuid(w, e->thread->pid);
	const uint64_t key = ky_pft_mix(e->id, SALT_ASYNC ^ e->site->category_index);
	const uint64_t uuid = as_uuid(ky_pft_mix(process, key));
	if (is_new(w, uuid))
		describe_child(w, uuid, process, e->name);
	return uuid;
}

static void describe_counter(struct ky_pft *w, uint64_t uuid, uint64_t parent, struct ky_text name,
			     struct ky_text series)
{
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_TRACK_DESCRIPTOR_UUID, uuid);
	ky_proto_uint(&w->part, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID, parent);
	ky_proto_bytes(&w->part, KY_PF_TRACK_DESCRIPTOR_COUNTER, "", 0);
	const struct ky_text clean = ky_utf8_text(&w->clean, name, false);
	if (!series.bytes) {
		ky_proto_text(&w->part, KY_PF_TRACK_DESCRIPTOR_NAME, clean);
	} else {
		ky_proto_length(&w->part, KY_PF_TRACK_DESCRIPTOR_NAME,
				clean.bytes + 1 + series.bytes);
		ky_out_append(&w->part, clean.data, clean.bytes);
		ky_out_append(&w->part, " ", 1);
		ky_out_append(&w->part, series.data, series.bytes);
	}
	ky_pft_describe(w, &w->part);
}

/* A counter with one value has its name; of several, each has the value's key behind it. */
uint64_t ky_pft_counter_track(struct ky_pft *w, const struct ky_event *e,
			      const struct kymo_arg *arg)
{
	const uint64_t process = ky_pft_process_uuid(w, e->thread->pid);
	const bool several = e->args_count > 1 && arg->key;
	const struct ky_text series = {several ? arg->key : "",
				       several ? (uint32_t)strlen(arg->key) : 0};
	const uint64_t key = mix_text(mix_text(SALT_COUNTER, e->name), series);
	const uint64_t uuid = as_uuid(ky_pft_mix(process, key));
	if (is_new(w, uuid))
		describe_counter(w, uuid, process, e->name, series);
	return uuid;
}

uint64_t ky_pft_snapshots_track(struct ky_pft *w, int32_t pid)
{
	const uint64_t uuid = w->uuid_base + UUID_SNAPSHOTS;
	if (is_new(w, uuid))
		describe_child(w, uuid, ky_pft_process_uuid(w, pid),
			       (struct ky_text){"snapshots", 9});
	return uuid;
}

uint64_t ky_pft_global_track(struct ky_pft *w)
{
	const uint64_t uuid = w->uuid_base + UUID_GLOBAL;
	if (is_new(w, uuid))
		describe_child(w, uuid, 0, (struct ky_text){"global", 6});
	return uuid;
}

void ky_pft_describe_process(struct ky_pft *w, int32_t pid, struct ky_text name,
			     struct ky_text command)
{
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_PROCESS_DESCRIPTOR_PID, (uint64_t)(int64_t)pid);
	if (command.bytes)
		ky_proto_text(&w->part, KY_PF_PROCESS_DESCRIPTOR_CMDLINE,
			      ky_utf8_text(&w->clean, command, false));
	if (name.bytes)
		ky_proto_text(&w->part, KY_PF_PROCESS_DESCRIPTOR_PROCESS_NAME,
			      ky_utf8_text(&w->clean, name, false));
	w->body.used = 0;
	ky_proto_uint(&w->body, KY_PF_TRACK_DESCRIPTOR_UUID, ky_pft_process_uuid(w, pid));
	ky_proto_message(&w->body, KY_PF_TRACK_DESCRIPTOR_PROCESS, &w->part);
	ky_pft_describe(w, &w->body);
}

void ky_pft_describe_thread(struct ky_pft *w, const struct ky_thread *thread)
{
	w->part.used = 0;
	ky_proto_uint(&w->part, KY_PF_THREAD_DESCRIPTOR_PID, (uint64_t)(int64_t)thread->pid);
	ky_proto_uint(&w->part, KY_PF_THREAD_DESCRIPTOR_TID, (uint64_t)(int64_t)thread->tid);
	if (thread->name.bytes)
		ky_proto_text(&w->part, KY_PF_THREAD_DESCRIPTOR_THREAD_NAME,
			      ky_utf8_text(&w->clean, thread->name, false));
	w->body.used = 0;
	ky_proto_uint(&w->body, KY_PF_TRACK_DESCRIPTOR_UUID, ky_pft_thread_uuid(w, thread->index));
	ky_proto_uint(&w->body, KY_PF_TRACK_DESCRIPTOR_PARENT_UUID,
		      ky_pft_process_uuid(w, thread->pid));
	ky_proto_message(&w->body, KY_PF_TRACK_DESCRIPTOR_THREAD, &w->part);
	ky_pft_describe(w, &w->body);
}
