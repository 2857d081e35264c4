/* SPDX-License-Identifier: MIT */
/*
 * kymo_define.h: definitions of a .kymo file as records (kymo_layout.h), appended to a buffer that
 * the writer makes DEFINE chunks of.
 */
#ifndef KY_FORMATS_KYMO_KYMO_DEFINE_H
#define KY_FORMATS_KYMO_KYMO_DEFINE_H

#include "core/event.h"
#include "formats/kymo/kymo_layout.h"
#include "formats/out.h"

void ky_kymo_define_process(struct ky_out *out, int32_t pid, uint32_t layer, struct ky_text name,
			    struct ky_text command);
void ky_kymo_define_thread(struct ky_out *out, const struct ky_thread *thread);
void ky_kymo_define_clock(struct ky_out *out, const struct ky_tick_reading *sample);
/* number: how the words of events name the trace point. */
void ky_kymo_define_site(struct ky_out *out, uint32_t number, const struct ky_site *site);
/* Define a capture's snapshot. texts: trigger, reason, stack, of the lengths in snapshot. */
void ky_kymo_define_snapshot(struct ky_out *out, const struct ky_kymo_snapshot *snapshot,
			     const struct ky_text texts[3]);
void ky_kymo_define_note(struct ky_out *out, struct ky_text note);

#endif
