/* SPDX-License-Identifier: MIT */
/*
 * pt_decode.h: calls and returns from the packets of Intel Processor Trace, by libipt's block decoder.
 *
 *   bytes of the AUX ring   │..│PSB│ ... TNT TIP TSC CYC ... │PSB│ ... OVF ...│
 *                                ▼ blocks of instructions, each with how it ends; events
 *                           pt_stack: the functions that are running
 *                                ▼
 *                           pt_segment: begin, gap, end, instant, in the order of time
 *
 * Packets say only where a branch that depends on data went: the code itself (pt_image.h) is needed. Where a packet does
 * not fit the code, or the code is not known, an instant says so, and a span "[untraced]" lasts until the next PSB.
 *
 * Packets and code are any bytes: the work is bounded by the number of bytes, and by how long it goes on without reading any
 * (code that jumps to itself needs no packet).
 */
#ifndef KY_FUNCTRACE_PT_DECODE_H
#define KY_FUNCTRACE_PT_DECODE_H

#include "functrace/pt_image.h"
#include "functrace/pt_segment.h"

/* The CPU that wrote the packets: which errors it is known for, and how its clocks are related. */
struct ky_pt_cpu {
	bool intel;
	uint16_t family;
	uint8_t model, stepping;
	uint32_t ctc_numerator, ctc_denominator; /* TSC : crystal clock; 0: not known */
	uint8_t mtc_period;
	uint8_t nominal_ratio; /* 0: not known */
};

/* From the counter to nanoseconds: as perf_event_mmap_page says it, and from perf's clock to another. mult 0: as it is. */
struct ky_pt_time {
	uint64_t zero;
	uint32_t mult;
	uint16_t shift;
	int64_t offset_ns;
};
uint64_t ky_pt_time_ns(const struct ky_pt_time *time, uint64_t ticks);

struct ky_pt_window {
	const uint8_t *aux; /* stays unchanged */
	size_t bytes;
	struct ky_pt_cpu cpu;
	struct ky_pt_time time;
	uint64_t since_ns; /* what was before is not told; 0: all */
};

struct ky_pt_facts {
	uint64_t blocks, instructions;
	uint32_t synced; /* PSBs from which decoding began */
	uint32_t errors, overflows;
	uint64_t from_ns, to_ns; /* of what was decoded; 0: nothing */
};

/* facts may be NULL. 0, -ENOMEM, or -EINVAL: libipt does not take the configuration. */
int ky_pt_decode_window(const struct ky_pt_window *window, struct ky_pt_image *image,
			const struct ky_pt_calls *calls, struct ky_pt_facts *facts);

#endif
