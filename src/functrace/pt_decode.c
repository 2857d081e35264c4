/* SPDX-License-Identifier: MIT */
/* pt_decode.c: see pt_decode.h. */
#include "functrace/pt_decode.h"
#include "functrace/pt_stack.h"

#include <errno.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>

#define BLOCKS_PER_BYTE 256u /* on average, at most: six branches, with the blocks between them */
#define BLOCKS_AT_LEAST (1u << 20) /* for any number of packets */
#define BLOCKS_UNMOVED (1u << 16)  /* without reading a packet */

struct decoding {
	const struct ky_pt_packets *packets;
	struct pt_block_decoder *decoder;
	struct ky_pt_stack stack;
	struct ky_pt_facts facts;
	uint64_t ns; /* time of the events */
	/* of the packet that the last block's end needed; 0: none had a time yet */
	uint64_t ticks;
	/* the next block comes after the instruction at last_ip, which is of last_class */
	bool follows;
	uint64_t last_ip;
	enum pt_insn_class last_class;
	uint64_t blocks_left;
	uint64_t offset; /* of the packets, when it last changed */
	uint32_t unmoved;
};

uint64_t ky_pt_time_ns(const struct ky_pt_time *time, uint64_t ticks)
{
	if (!time->mult)
		return ticks;
	/* As the kernel documents it: without the high half of the product. */
	const uint16_t shift = time->shift & 63;
	const uint64_t whole = ticks >> shift;
	const uint64_t rest = ticks & ((UINT64_C(1) << shift) - 1);
	const uint64_t ns = time->zero + whole * time->mult + ((rest * time->mult) >> shift);
	return ns + (uint64_t)time->offset_ns;
}

/* Set the time. The calibration of cycles is an estimate: time can seem to go back. */
static void set_time(struct decoding *decoding, uint64_t ticks)
{
	const uint64_t ns = ky_pt_time_ns(&decoding->packets->time, ticks);
	if (ns > decoding->ns)
		decoding->ns = ns;
	if (!decoding->facts.from_ns)
		decoding->facts.from_ns = decoding->ns;
	decoding->facts.to_ns = decoding->ns;
}

/* Read the clock: the end of a block gives the start of the next one. */
static void look_at_clock(struct decoding *decoding)
{
	uint64_t ticks;
	uint32_t lost_mtc, lost_cyc;
	if (pt_blk_time(decoding->decoder, &ticks, &lost_mtc, &lost_cyc) >= 0)
		decoding->ticks = ticks;
}

/* ---- instructions ---- */

/* Arrive at the next instruction, in the way that the last one led there. */
static void arrive(struct decoding *decoding, uint64_t address)
{
	struct ky_pt_stack *stack = &decoding->stack;
	if (decoding->ticks)
		set_time(decoding, decoding->ticks);
	if (stack->count && decoding->follows) {
		if (decoding->last_class == ptic_call)
			ky_pt_stack_call(stack, decoding->ns, decoding->last_ip, address);
		else if (decoding->last_class == ptic_return)
			ky_pt_stack_return(stack, decoding->ns, address);
		else if (decoding->last_class != ptic_other)
			ky_pt_stack_jump(stack, decoding->ns, address);
	}
	ky_pt_stack_at(stack, decoding->ns, address);
	decoding->follows = false;
}

static void take_block(struct decoding *decoding, const struct pt_block *block)
{
	decoding->facts.blocks++;
	decoding->facts.instructions += block->ninsn;
	arrive(decoding, block->ip);
	decoding->follows = true;
	decoding->last_ip = block->end_ip;
	decoding->last_class = block->iclass;
}

/* ---- events ---- */

static void disabled(struct decoding *decoding)
{
	/* Only user code is traced: an indirect branch that ends it led to the kernel. */
	const bool branch = decoding->follows && decoding->last_class != ptic_other &&
			    decoding->last_class != ptic_cond_jump;
	ky_pt_stack_stop(&decoding->stack, decoding->ns, branch ? "[syscall]" : "[untraced]",
			 decoding->follows ? decoding->last_ip : 0);
	decoding->follows = false;
}

static void overflow(struct decoding *decoding, const struct pt_event *event)
{
	decoding->facts.overflows++;
	decoding->follows = false;
	ky_pt_stack_reset(&decoding->stack, decoding->ns);
	ky_pt_segment_instant(&decoding->stack.segment, decoding->ns,
			      "[overflow: the CPU lost packets]");
	if (event->ip_suppressed)
		ky_pt_stack_stop(&decoding->stack, decoding->ns, "[untraced]", 0);
}

static void take_event(struct decoding *decoding, const struct pt_event *event)
{
	struct ky_pt_stack *stack = &decoding->stack;
	if (event->status_update)
		return;
	/* It can come before the first instruction that a branch led to. */
	if (event->type == ptev_async_disabled)
		arrive(decoding, event->variant.async_disabled.at);
	if (event->type == ptev_async_branch)
		arrive(decoding, event->variant.async_branch.from);
	if (event->has_tsc)
		set_time(decoding, event->tsc);
	switch (event->type) {
	case ptev_enabled:
		ky_pt_stack_go(stack, decoding->ns, event->variant.enabled.ip,
			       event->variant.enabled.resumed);
		decoding->follows = false;
		break;
	case ptev_disabled:
		disabled(decoding);
		break;
	case ptev_async_disabled:
		ky_pt_stack_stop(stack, decoding->ns, "[interrupt]",
				 event->variant.async_disabled.at);
		break;
	case ptev_async_branch:
		if (!event->ip_suppressed)
			ky_pt_stack_interrupt(stack, decoding->ns, event->variant.async_branch.from,
					      event->variant.async_branch.to);
		break;
	case ptev_overflow:
		overflow(decoding, event);
		break;
	case ptev_stop:
		ky_pt_stack_stop(stack, decoding->ns, "[untraced]", 0);
		decoding->follows = false;
		break;
	default:
		break;
	}
}

/* Report whether decoding is within its bounds: see the head of pt_decode.h. */
static bool is_moving(struct decoding *decoding)
{
	uint64_t offset = decoding->offset;
	if (decoding->blocks_left == 0)
		return false;
	decoding->blocks_left--;
	if (pt_blk_get_offset(decoding->decoder, &offset) >= 0 && offset != decoding->offset) {
		decoding->offset = offset;
		decoding->unmoved = 0;
	}
	return decoding->unmoved++ < BLOCKS_UNMOVED;
}

static void note_error(struct decoding *decoding, const char *why)
{
	char text[160];
	uint64_t offset = decoding->offset;
	decoding->facts.errors++;
	pt_blk_get_offset(decoding->decoder, &offset);
	if (decoding->follows)
		snprintf(text, sizeof(text), "[decode error: %s at 0x%" PRIx64 "]", why,
			 decoding->last_ip);
	else
		snprintf(text, sizeof(text), "[decode error: %s at byte %" PRIu64 "]", why, offset);
	ky_pt_stack_reset(&decoding->stack, decoding->ns);
	ky_pt_segment_instant(&decoding->stack.segment, decoding->ns, text);
	ky_pt_stack_stop(&decoding->stack, decoding->ns, "[untraced]", 0);
	decoding->follows = false;
}

/* Take the events. status is that of the call before. Return the last one: negative, or with pts_eos. */
static int take_events(struct decoding *decoding, int status)
{
	while (status >= 0 && (status & pts_event_pending)) {
		struct pt_event event;
		status = pt_blk_event(decoding->decoder, &event, sizeof(event));
		if (status < 0)
			break;
		take_event(decoding, &event);
	}
	return status;
}

/* Decode from a PSB to the end, or to an error. */
static void decode_from_sync(struct decoding *decoding, int status)
{
	decoding->facts.synced++;
	decoding->unmoved = 0;
	look_at_clock(decoding);
	for (;;) {
		struct pt_block block = {0};
		status = take_events(decoding, status);
		if (status < 0 || (status & pts_eos))
			break;
		status = pt_blk_next(decoding->decoder, &block, sizeof(block));
		if (block.ninsn)
			take_block(decoding, &block);
		look_at_clock(decoding);
		if (status < 0)
			break;
		if (!is_moving(decoding)) {
			note_error(decoding, "the code goes on without end");
			return;
		}
	}
	if (decoding->ticks)
		set_time(decoding, decoding->ticks);
	if (status < 0 && status != -pte_eos)
		note_error(decoding, pt_errstr(pt_errcode(status)));
}

static void decode_all(struct decoding *decoding)
{
	uint64_t synced_at = 0, offset;
	bool first = true;
	while (decoding->blocks_left) {
		const int status = pt_blk_sync_forward(decoding->decoder);
		if (status == -pte_eos)
			break;
		/* A PSB that cannot be read: take the next one, when that is another. */
		if (pt_blk_get_sync_offset(decoding->decoder, &offset) < 0 ||
		    (!first && offset <= synced_at))
			break;
		first = false;
		synced_at = offset;
		decoding->offset = offset;
		decoding->follows = false;
		if (status < 0)
			note_error(decoding, pt_errstr(pt_errcode(status)));
		else
			decode_from_sync(decoding, status);
	}
	ky_pt_stack_reset(&decoding->stack, decoding->ns);
}

/* Make a decoder. libipt does not write to the bytes. */
static struct pt_block_decoder *new_decoder(const struct ky_pt_packets *packets)
{
	struct pt_config config;
	const struct ky_pt_cpu *cpu = &packets->cpu;
	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)packets->aux;
	config.end = config.begin + packets->bytes;
	config.cpu = (struct pt_cpu){.vendor = cpu->intel ? pcv_intel : pcv_unknown,
				     .family = cpu->family,
				     .model = cpu->model,
				     .stepping = cpu->stepping};
	/* libipt knows no errata of a CPU that is newer than itself. */
	if (cpu->intel)
		(void)pt_cpu_errata(&config.errata, &config.cpu);
	config.cpuid_0x15_eax = cpu->ctc_denominator;
	config.cpuid_0x15_ebx = cpu->ctc_numerator;
	config.mtc_freq = cpu->mtc_period;
	config.nom_freq = cpu->nominal_ratio;
	config.flags.variant.block.end_on_call = 1;
	config.flags.variant.block.end_on_jump = 1;
	return pt_blk_alloc_decoder(&config);
}

int ky_pt_decode_packets(const struct ky_pt_packets *packets, struct ky_pt_image *image,
			 const struct ky_pt_calls *calls, struct ky_pt_facts *facts)
{
	struct decoding decoding = {.packets = packets};
	struct pt_image *code = ky_pt_image_get(image);
	int error = 0;
	if (facts)
		*facts = decoding.facts;
	if (!packets->bytes)
		return 0;
	decoding.decoder = new_decoder(packets);
	if (!decoding.decoder || !code) {
		pt_blk_free_decoder(decoding.decoder);
		return code ? -EINVAL : -ENOMEM;
	}
	decoding.blocks_left = BLOCKS_AT_LEAST + (uint64_t)packets->bytes * BLOCKS_PER_BYTE;
	ky_pt_stack_open(&decoding.stack, calls, packets->since_ns);
	if (pt_blk_set_image(decoding.decoder, code) < 0)
		error = -EINVAL;
	else
		decode_all(&decoding);
	if (error == 0 && decoding.stack.segment.failed)
		error = -ENOMEM;
	ky_pt_stack_close(&decoding.stack);
	pt_blk_free_decoder(decoding.decoder);
	if (facts)
		*facts = decoding.facts;
	return error;
}
