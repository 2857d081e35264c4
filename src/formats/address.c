/* SPDX-License-Identifier: MIT */
/* address.c: from tracks to threads, processes and ids of asynchronous spans. */
#include "formats/address.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

#define MACHINE_SHIFT 22 /* Linux's largest pid is below */
#define MADE_UP UINT64_C(0x6b796d6f00000000)

static uint32_t on_machine(int64_t number, uint32_t machine)
{
	return (uint32_t)number + (machine << MACHINE_SHIFT);
}

uint8_t ky_address_kind(const struct ky_address *address, enum ky_walk_what what)
{
	const bool thread = address->form == KY_AT_THREAD;
	if (what == KY_WALK_BEGIN)
		return thread ? KYMO_KIND_BEGIN : KYMO_KIND_ASYNC_BEGIN;
	if (what == KY_WALK_END)
		return thread ? KYMO_KIND_END : KYMO_KIND_ASYNC_END;
	return address->form >= KY_AT_ASYNC ? KYMO_KIND_ASYNC_INSTANT : KYMO_KIND_INSTANT;
}

uint32_t ky_address_pid(const struct ky_trace *trace, uint32_t process)
{
	if (process == KY_NONE)
		return 0;
	return on_machine(trace->processes.pid[process], trace->processes.machine[process]);
}

uint32_t ky_address_tid(const struct ky_trace *trace, uint32_t thread)
{
	if (thread == KY_NONE)
		return 0;
	return on_machine(trace->threads.tid[thread], trace->threads.machine[thread]);
}

uint32_t ky_address_pid_of_thread(const struct ky_trace *trace, uint32_t thread)
{
	return thread == KY_NONE ? 0 : ky_address_pid(trace, trace->threads.process[thread]);
}

static bool is_plain(const struct ky_trace *trace, uint32_t track)
{
	return !(trace->tracks.flags[track] & (KY_TRACK_ASYNC | KY_TRACK_OVERFLOW));
}

static bool take(uint8_t *taken, uint32_t row, bool plain)
{
	if (!plain || taken[row])
		return false;
	taken[row] = 1;
	return true;
}

static struct ky_address find(const struct ky_trace *trace, uint32_t track, uint8_t *threads,
			      uint8_t *processes)
{
	const bool plain = is_plain(trace, track);
	const uint32_t thread = ky_track_thread(trace, track);
	const uint32_t process = ky_track_process(trace, track);
	struct ky_address a = {.thread = thread, .id = MADE_UP | track};
	if (thread != KY_NONE) {
		a.pid = ky_address_pid_of_thread(trace, thread);
		a.tid = ky_address_tid(trace, thread);
		a.form = take(threads, thread, plain) ? KY_AT_THREAD : KY_AT_ASYNC;
	} else if (process != KY_NONE) {
		a.pid = a.tid = ky_address_pid(trace, process);
		a.form = take(processes, process, plain) ? KY_AT_PROCESS : KY_AT_ASYNC;
	} else {
		a.form = plain ? KY_AT_GLOBAL : KY_AT_ASYNC_GLOBAL;
	}
	return a;
}

struct id_key {
	uint64_t id;
	uint32_t pid;
	uint32_t track;
};

KY_ORDER(by_id, struct id_key,
	 KY_COMPARE_THEN(a->id, b->id,
			 KY_COMPARE_THEN(a->pid, b->pid, KY_COMPARE(a->track, b->track))))

/* The first track with an id in a scope, which is the process or all of the trace, has it. */
static int give_ids(struct ky_addresses *addresses, const struct ky_trace *trace, bool global)
{
	const uint32_t tracks = trace->tracks.rows.count;
	struct id_key *keys = malloc(((size_t)tracks + 1) * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	uint32_t count = 0;
	for (uint32_t i = 0; i < tracks; i++)
		if ((trace->tracks.flags[i] & KY_TRACK_ASYNC) && trace->tracks.id[i])
			keys[count++] = (struct id_key){trace->tracks.id[i],
							global ? 0 : addresses->tracks[i].pid, i};
	qsort(keys, count, sizeof(*keys), by_id);
	for (uint32_t i = 0; i < count; i++)
		if (!i || keys[i].id != keys[i - 1].id || keys[i].pid != keys[i - 1].pid)
			addresses->tracks[keys[i].track].id = keys[i].id;
	free(keys);
	return 0;
}

int ky_addresses_open(struct ky_addresses *addresses, const struct ky_trace *trace, bool global)
{
	const uint32_t tracks = trace->tracks.rows.count;
	addresses->tracks = calloc((size_t)tracks + 1, sizeof(*addresses->tracks));
	uint8_t *threads = calloc((size_t)trace->threads.rows.count + 1, 1);
	uint8_t *processes = calloc((size_t)trace->processes.rows.count + 1, 1);
	int error = -ENOMEM;
	if (addresses->tracks && threads && processes) {
		for (uint32_t i = 0; i < tracks; i++)
			if (!ky_track_is_counter(trace->tracks.kind[i]))
				addresses->tracks[i] = find(trace, i, threads, processes);
		error = give_ids(addresses, trace, global);
	}
	free(threads);
	free(processes);
	if (error)
		ky_addresses_close(addresses);
	return error;
}

void ky_addresses_close(struct ky_addresses *addresses)
{
	free(addresses->tracks);
	addresses->tracks = NULL;
}

struct ky_counter_name ky_counter_name(const struct ky_trace *trace, uint32_t track)
{
	const uint32_t string = trace->tracks.name[track];
	const char *text = string ? ky_text_of(trace, string) : "counter";
	uint32_t bytes = string ? ky_strings_bytes(&trace->strings, string) : 7;
	char separator = ' ';
	if (bytes > 2 && text[bytes - 1] == '0' && text[bytes - 2] == ':' &&
	    memrchr(text, ':', bytes - 2)) {
		separator = ':';
		bytes -= 2;
	}
	const char *at = memrchr(text, separator, bytes);
	if (!at || at == text || at + 1 == text + bytes)
		return (struct ky_counter_name){text, "value", bytes, 5};
	return (struct ky_counter_name){text, at + 1, (uint32_t)(at - text),
					(uint32_t)(text + bytes - at - 1)};
}
