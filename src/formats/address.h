/* SPDX-License-Identifier: MIT */
/*
 * address.h: places the events of a track in formats that have threads, processes and asynchronous spans, but
 * no tracks: Chrome's JSON, FXT, .kymo.
 *
 * A thread's own track is the thread. Every other track with spans is asynchronous, with an id: that of
 * the model where no other track of the same scope has it, else one made up. Instants of a process's or the
 * global track need no id.
 *
 * Pids and tids of machines other than the first are kept apart by a number above all that Linux gives out.
 */
#ifndef KY_FORMATS_ADDRESS_H
#define KY_FORMATS_ADDRESS_H

#include "formats/walk.h"
#include "model/trace.h"

enum ky_address_form {
	KY_AT_THREAD,
	KY_AT_PROCESS, /* the process's own track: spans are asynchronous with id */
	KY_AT_GLOBAL,
	KY_AT_ASYNC,       /* of the process */
	KY_AT_ASYNC_GLOBAL /* of no process */
};

struct ky_address {
	uint32_t pid, tid; /* tid is that of the thread that carries it, or of the main thread */
	uint32_t thread;   /* row or KY_NONE */
	uint8_t form;      /* enum ky_address_form */
	uint64_t id;       /* of asynchronous spans */
};

struct ky_addresses {
	struct ky_address *tracks; /* by track */
};

/* global: the format has ids of all processes in one scope. 0 or -ENOMEM. */
int ky_addresses_open(struct ky_addresses *addresses, const struct ky_trace *trace, bool global);
void ky_addresses_close(struct ky_addresses *addresses);

/* Return the kind of event (enum kymo_kind) that a slice's begin, end or instant is there. */
uint8_t ky_address_kind(const struct ky_address *address, enum ky_walk_what what);

/* The numbers that a file has for it; 0 for KY_NONE. */
uint32_t ky_address_pid(const struct ky_trace *trace, uint32_t process);
uint32_t ky_address_tid(const struct ky_trace *trace, uint32_t thread);
/* Return a thread's pid; 0 when it is not known. */
uint32_t ky_address_pid_of_thread(const struct ky_trace *trace, uint32_t thread);

/*
 * A counter's name as the pair that formats have which name series: "mem rss" and "mem:rss:0" are the series rss
 * of mem; where there is no such part the series is "value". key and name are parts of the text or static.
 */
struct ky_counter_name {
	const char *name, *key;
	uint32_t name_bytes, key_bytes;
};
struct ky_counter_name ky_counter_name(const struct ky_trace *trace, uint32_t track);

#endif
