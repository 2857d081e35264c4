/* SPDX-License-Identifier: MIT */
/*
 * fxt_reader.h: a Fuchsia trace while it is read, for the files of its reader.
 *
 *   fxt_read.c    records one after the other, what they define (strings, threads, providers)
 *   fxt_event.c   events and their arguments, switches of threads, names of kernel objects, log messages
 *
 * A record is whole words and says how many; whatever is read of it is checked against that. Numbers
 * that stand for strings and threads belong to the provider whose section it is, and may mean something else later.
 */
#ifndef KY_FORMATS_FXT_FXT_READER_H
#define KY_FORMATS_FXT_FXT_READER_H

#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "formats/fxt/fxt_schema.h"
#include "formats/load.h"

/* A thread as a record names it. The rows are looked up when an event first needs them. */
struct ky_fxt_thread {
	int64_t pid, tid;
	bool known;
	uint32_t process, thread, track;
};

struct ky_fxt_provider {
	uint32_t id;
	uint64_t ticks_per_s;
	bool counts_losses;            /* by markers */
	uint32_t *strings;             /* by index; NULL before the first */
	struct ky_fxt_thread *threads; /* by index; NULL before the first */
};

struct ky_fxt_reader {
	struct ky_load *load;
	struct ky_trace *trace;
	struct ky_fxt_provider *provider; /* whose records these are */
	struct ky_fxt_provider **providers;
	uint32_t providers_count;
	struct ky_pair_map owned; /* threads whose process a kernel object named */
	struct ky_pair_map flows; /* which process a flow's id is of */
	struct ky_buffer proto;   /* an embedded Perfetto trace, as far as it was read */
	uint32_t empty;           /* strings */
	uint32_t process_key, incoming_weight, outgoing_weight, weight, waker;
	uint32_t counter_type, async_type;
	uint32_t states[KY_FXT_STATES];
};

/* A record, and how far it was read. */
struct ky_fxt_record {
	const uint8_t *data;
	uint64_t place; /* in the input */
	uint32_t words;
	uint32_t at;
	bool undefined; /* it names a string that nobody defined */
};

struct ky_fxt_arg {
	uint32_t name;
	uint32_t type;
	uint64_t value; /* a number, the bits of a double, or a string's number */
};

static inline uint32_t ky_fxt_bits(uint64_t word, unsigned first, unsigned last)
{
	return (uint32_t)(word >> first & ((UINT64_C(2) << (last - first)) - 1));
}

static inline bool ky_fxt_word(struct ky_fxt_record *record, uint64_t *word)
{
	if (record->at >= record->words)
		return false;
	memcpy(word, record->data + 8 * (size_t)record->at++, 8);
	return true;
}

/* Take the bytes of a stream, which is padded to words. */
static inline bool ky_fxt_bytes(struct ky_fxt_record *record, uint32_t bytes, const uint8_t **data)
{
	const uint32_t words = (bytes + 7) / 8;
	if (words > record->words - record->at)
		return false;
	*data = record->data + 8 * (size_t)record->at;
	record->at += words;
	return true;
}

/* Return the lower half of a koid, which is all that Perfetto uses of its 64 bits. */
static inline int64_t ky_fxt_koid(uint64_t koid)
{
	return (int64_t)(uint32_t)koid;
}

/* Resolve a string reference; false when it is undefined or the record is too short. */
bool ky_fxt_string(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint32_t reference,
		   uint32_t *string);
/* Return the thread: 0 of process 0 when it is undefined, *inlined when it is in the record. */
struct ky_fxt_thread *ky_fxt_thread(struct ky_fxt_reader *fxt, struct ky_fxt_record *record,
				    uint32_t reference, struct ky_fxt_thread *inlined);
/* Look up its rows. */
void ky_fxt_thread_learn(struct ky_fxt_reader *fxt, struct ky_fxt_thread *thread);
/* Take a time in nanoseconds; false when it is missing or has more than 63 bits. */
bool ky_fxt_time(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, int64_t *ns);

/* Take a record; false when it is invalid, which the caller counts. */
bool ky_fxt_event(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head);
bool ky_fxt_sched(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head);
bool ky_fxt_kernel_object(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head);
bool ky_fxt_log(struct ky_fxt_reader *fxt, struct ky_fxt_record *record, uint64_t head);

#endif
