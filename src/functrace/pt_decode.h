/* SPDX-License-Identifier: MIT */
/*
 * pt_decode.h: finds calls and returns in the packets of Intel Processor Trace, by libipt's block decoder.
 *
 *   bytes of the AUX ring   │..│PSB│ ... TNT TIP TSC CYC ... │PSB│ ... OVF ...│
 *                                ▼ blocks of instructions, each with how it ends; events
 *                           pt_stack: the functions that are running
 *                                ▼
 *                           pt_segment: begin, gap, end, instant, in the order of time
 *
 * Packets contain only the targets of branches that depend on data: the code itself (pt_space.h) is needed. Where a
 * packet does not match the code, or the code is unknown, an instant marks it, and a span "[untraced]" lasts until
 * the next PSB.
 *
 * Packets and code are any bytes: the work is bounded by the number of bytes, and by how long it goes on without
 * reading any (code that jumps to itself needs no packet).
 */
#ifndef KY_FUNCTRACE_PT_DECODE_H
#define KY_FUNCTRACE_PT_DECODE_H

#include "functrace/pt_space.h"
#include "functrace/pt_stack.h"

/* The CPU that wrote the packets: its known errata, and the relation of its clocks. */
struct ky_pt_cpu {
	bool intel;
	uint16_t family;
	uint8_t model, stepping;
	uint32_t ctc_numerator, ctc_denominator; /* TSC : crystal clock; 0: unknown */
	uint8_t mtc_period;
	uint8_t nominal_ratio; /* 0: unknown */
};

/*
 * Conversion from the counter to nanoseconds: as in perf_event_mmap_page, and from perf's clock to another. mult 0:
 * none.
 */
struct ky_pt_time {
	uint64_t zero;
	uint32_t mult;
	uint16_t shift;
	int64_t offset_ns;
};
uint64_t ky_pt_time_ns(const struct ky_pt_time *time, uint64_t ticks);

struct ky_pt_packets {
	const uint8_t *aux; /* does not change while it is decoded */
	size_t bytes;
	struct ky_pt_cpu cpu;
	struct ky_pt_time time;
	uint64_t since_ns; /* events before it are left out; 0: none */
};

struct ky_pt_facts {
	uint64_t blocks, instructions;
	uint32_t synced; /* PSBs at which decoding began */
	uint32_t errors, overflows;
	uint64_t from_ns, to_ns; /* of the decoded part; 0: nothing */
};

/* Decode packets. facts may be NULL. Return 0, -ENOMEM, or -EINVAL: libipt does not take the configuration. */
int ky_pt_decode_packets(const struct ky_pt_packets *packets, struct ky_pt_image *image,
			 const struct ky_pt_calls *calls, struct ky_pt_facts *facts);

#endif
