/* SPDX-License-Identifier: MIT */
/*
 * pftrace_emit.h: packets of Perfetto's protobuf trace, for a session (pftrace_session.c) and for the exporter
 * (pftrace_export.c).
 *
 * Time. A sequence has a clock of its own that counts nanoseconds from its last packet. Perfetto wants the clocks in
 * snapshots to run forward only, while events may be from long before the file was opened; so a sequence's clock is
 * not tied to the file's clock at the time of the snapshot but to an alias of it, at zero. A time that goes back is
 * written in full, in the file's clock.
 *
 * Invariant: a sequence's first packet comes before all its others and clears its state, so that files can be joined
 * end to end.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_EMIT_H
#define KY_FORMATS_PFTRACE_PFTRACE_EMIT_H

#include "formats/pftrace/pftrace_schema.h"
#include "formats/proto.h"

/* The sequence of descriptors and clocks. Perfetto's service has sequence 1. */
#define KY_PF_EMIT_FILE_SEQUENCE 2u
/* The alias of the file's clock, numbered as Perfetto advises: FNV-1a of "kymo.boottime" with the top bit set. */
#define KY_PF_EMIT_CLOCK_ALIAS UINT64_C(0xfdb62b24)

struct ky_pf_emitter {
	struct ky_out *out;
	struct ky_out body;     /* the message of the packet being built */
	struct ky_out interned; /* the InternedData that goes with it */
	struct ky_out part;     /* a message inside one of these */
	struct ky_out inner;    /* a message inside part */
	struct ky_out clean;    /* text made valid */
};

/* Return 0 or -ENOMEM. */
int ky_pf_emit_open(struct ky_pf_emitter *w, struct ky_out *out);
void ky_pf_emit_close(struct ky_pf_emitter *w);
/* Report whether memory sufficed for all messages. If not, nothing more is written: the file would be broken. */
bool ky_pf_emit_is_whole(struct ky_pf_emitter *w);

/* Write a packet: a head of finished fields, interned, and body as that field. Empty both. */
void ky_pf_emit_packet(struct ky_pf_emitter *w, const uint8_t *head, size_t head_bytes,
		       uint32_t field);
/* Write a message as that field of a packet of the file's sequence. */
void ky_pf_emit_file_packet(struct ky_pf_emitter *w, uint32_t field, const struct ky_out *message);
/* Append a text as valid UTF-8. */
void ky_pf_emit_text(struct ky_pf_emitter *w, struct ky_out *to, uint32_t field,
		     struct ky_text text);
/* Add an InternedString to interned. */
void ky_pf_emit_intern(struct ky_pf_emitter *w, uint32_t field, uint64_t iid, struct ky_text text);

/* Add a clock to the snapshot in part. */
void ky_pf_emit_clock(struct ky_pf_emitter *w, uint64_t id, uint64_t ns, bool incremental);
/*
 * Write the first packet of a sequence, with the snapshot in part. The sequence's own clock, if it has one, becomes its
 * default, and so does its track, if it has one.
 */
void ky_pf_emit_first_packet(struct ky_pf_emitter *w, uint64_t sequence, bool own_clock,
			     uint64_t track_uuid);

/* Describe a process or a thread. A text whose data is NULL is left out, and so is parent 0. */
void ky_pf_emit_process(struct ky_pf_emitter *w, uint64_t uuid, uint64_t pid, struct ky_text name,
			struct ky_text command);
void ky_pf_emit_thread(struct ky_pf_emitter *w, uint64_t uuid, uint64_t parent, uint64_t pid,
		       uint64_t tid, struct ky_text name);
/* Append a flow's begin, step or end (0 to 2) to body, bound to the enclosing slice. */
void ky_pf_emit_flow(struct ky_pf_emitter *w, uint32_t step, uint64_t id);
/* Write the number of lost events, which Perfetto shows on its page of errors. */
void ky_pf_emit_losses(struct ky_pf_emitter *w, uint64_t lost);

#endif
