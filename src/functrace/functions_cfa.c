/* SPDX-License-Identifier: MIT */
/*
 * functions_cfa.c: see functions_parts.h. Runs the instructions of a frame up to a place: how far the return address is from the
 * stack pointer there.
 *
 * A place is a function's entry only if CFA = rsp + 8 there: pieces of functions that were put elsewhere (foo.cold) have an
 * FDE of their own, but begin in the middle of things.
 */
#include "functrace/functions_parts.h"

#include <dwarf.h>
#include <string.h>

#define STEPS_MAX 2000u /* instructions of one frame: it is run for each name in it */
#define RSP 7u          /* numbers of registers in DWARF */
#define RETURN_ADDRESS 16u

uint64_t ky_functions_fixed(struct ky_functions_cursor *in, unsigned bytes)
{
	uint64_t value = 0;
	if ((size_t)(in->end - in->at) < bytes) {
		in->bad = true;
		in->at = in->end;
		return 0;
	}
	memcpy(&value, in->at, bytes);
	in->at += bytes;
	return value;
}

uint64_t ky_functions_leb(struct ky_functions_cursor *in, bool is_signed)
{
	uint64_t value = 0;
	for (unsigned shift = 0; in->at < in->end; shift += 7) {
		const uint8_t byte = *in->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (is_signed && byte & 0x40 && shift + 7 < 64)
			value |= ~UINT64_C(0) << (shift + 7);
		return value;
	}
	in->bad = true;
	return 0;
}

struct cfa {
	uint64_t reg, offset;
	bool is_known;
	bool returns_nowhere; /* there is no return address: outermost frames */
};

/* A program of a frame, run up to a place. */
struct cfa_run {
	struct cfa now, kept[8];
	unsigned depth; /* of kept states; those beyond are not kept */
	uint64_t at;    /* bytes from the beginning */
	struct ky_functions_cursor in;
};

#define KEPT_MAX (sizeof(((struct cfa_run *)0)->kept) / sizeof(struct cfa))

static void skip_block(struct ky_functions_cursor *in)
{
	const uint64_t bytes = ky_functions_leb(in, false);
	in->bad |= bytes > (size_t)(in->end - in->at);
	in->at += in->bad ? 0 : bytes;
}

/* Instructions that move on: by how many units; false when it is another one. */
static bool advances(struct cfa_run *run, uint8_t byte, uint64_t *units)
{
	switch (byte & 0xc0 ? byte & 0xc0 : byte) {
	case DW_CFA_advance_loc:
		*units = byte & 0x3f;
		return true;
	case DW_CFA_advance_loc1:
		*units = ky_functions_fixed(&run->in, 1);
		return true;
	case DW_CFA_advance_loc2:
		*units = ky_functions_fixed(&run->in, 2);
		return true;
	case DW_CFA_advance_loc4:
		*units = ky_functions_fixed(&run->in, 4);
		return true;
	default:
		return false;
	}
}

/* Instructions that say what the CFA is; false when it is another one. */
static bool defines(struct cfa_run *run, uint8_t byte)
{
	struct cfa *now = &run->now;
	switch (byte) {
	case DW_CFA_def_cfa:
		now->reg = ky_functions_leb(&run->in, false);
		now->offset = ky_functions_leb(&run->in, false);
		now->is_known = true;
		return true;
	case DW_CFA_def_cfa_register:
		now->reg = ky_functions_leb(&run->in, false);
		return true;
	case DW_CFA_def_cfa_offset:
		now->offset = ky_functions_leb(&run->in, false);
		return true;
	case DW_CFA_def_cfa_expression:
		now->is_known = false;
		skip_block(&run->in);
		return true;
	case DW_CFA_undefined:
		now->returns_nowhere |= ky_functions_leb(&run->in, false) == RETURN_ADDRESS;
		return true;
	case DW_CFA_remember_state:
		if (run->depth < KEPT_MAX)
			run->kept[run->depth] = *now;
		run->depth++;
		return true;
	case DW_CFA_restore_state:
		if (run->depth && --run->depth < KEPT_MAX)
			*now = run->kept[run->depth];
		return true;
	default:
		return false;
	}
}

/* Where registers are kept does not matter here. */
static void skip(struct ky_functions_cursor *in, uint8_t byte)
{
	switch (byte & 0xc0 ? byte & 0xc0 : byte) {
	case DW_CFA_restore:
	case DW_CFA_nop:
		return;
	case DW_CFA_offset:
	case DW_CFA_same_value:
	case DW_CFA_restore_extended:
	case DW_CFA_GNU_args_size:
		ky_functions_leb(in, false);
		return;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		ky_functions_leb(in, false);
		ky_functions_leb(in, false);
		return;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		ky_functions_leb(in, false);
		skip_block(in);
		return;
	default:
		in->bad = true;
	}
}

/* Runs instructions until one moves beyond `until` bytes from the beginning, or the end. */
static void run_cfa(struct cfa *cfa, struct ky_functions_cursor in, uint64_t code_align,
		    uint64_t until)
{
	struct cfa_run run = {.now = *cfa, .in = in};
	for (unsigned steps = 0; run.in.at < run.in.end && !run.in.bad; steps++) {
		const uint8_t byte = *run.in.at++;
		run.in.bad = steps == STEPS_MAX;
		uint64_t units;
		if (advances(&run, byte, &units)) {
			run.at += units * code_align;
			if (run.at > until)
				break;
		} else if (!defines(&run, byte)) {
			skip(&run.in, byte);
		}
	}
	*cfa = run.now;
	cfa->is_known &= !run.in.bad;
}

static struct cfa cfa_at(const struct ky_functions_frame *frame, uint64_t address)
{
	struct cfa cfa = {0};
	run_cfa(&cfa, (struct ky_functions_cursor){frame->common, frame->common_end, false},
		frame->code_align, 0);
	run_cfa(&cfa, (struct ky_functions_cursor){frame->own, frame->own_end, false},
		frame->code_align, address - frame->address);
	return cfa;
}

bool ky_functions_frame_is_entry(const struct ky_functions_frame *frame, uint64_t address)
{
	const struct cfa cfa = cfa_at(frame, address);
	return !frame->is_signal && cfa.is_known && cfa.reg == RSP && cfa.offset == 8;
}

bool ky_functions_frame_returns(const struct ky_functions_frame *frame, uint64_t address)
{
	return !cfa_at(frame, address).returns_nowhere;
}
