/* SPDX-License-Identifier: MIT */
/*
 * stall.h: sessions that are to miss no event.
 *
 * Such a session is a reader of the drum: it notes how many blocks of each ring it has read. A writer that begins a block
 * in the place of one that was not read yet moves to a ring of twice the size, while the budget lasts. After that it
 * waits, if the session asked for it, for at most the time that the session set. A session that makes no progress in
 * that time (a dead one) is not waited for again until it reads on. Events of signal handlers that interrupted an event do
 * not wait.
 */
#ifndef KY_CORE_STALL_H
#define KY_CORE_STALL_H

#include "core/slots.h"
#include "core/stream.h"

static inline bool ky_stall_has_readers(const struct ky_drum *drum)
{
	const struct ky_drum_reader *readers = drum->header->readers;
	return (KYMO_I_LOAD(&readers[0].state) | KYMO_I_LOAD(&readers[1].state)) >=
	       KY_READER_ACTIVE;
}

/* Make room for an event of that many words after its header, before its ring is written. The caller holds level 0. */
void ky_stall_make_room(struct ky_drum *drum, struct ky_slot *slot, uint32_t words);

/* Take a place for a session. Return its number, or -1 without one: then events may be overwritten unread. */
int ky_stall_join(struct ky_drum *drum, uint64_t stall_ns);
/* From here on writers look at what the stream has read. The stream is open. */
void ky_stall_begin(struct ky_drum *drum, int reader, struct ky_stream *stream);
void ky_stall_leave(struct ky_drum *drum, int reader);

#endif
