/* SPDX-License-Identifier: MIT */
/*
 * instruction.c: see instruction.h. The tables give what follows an opcode: a modrm byte, and the number of immediate
 * bytes. Where both makers' processors disagree (66 before a near branch), the instruction is invalid.
 */
#include "functrace/instruction.h"

#include <string.h>

enum {
	M = 0x01, /* modrm */
	B = 0x02, /* an immediate byte */
	W = 0x04, /* two */
	Z = 0x08, /* four, or two with 66 */
	V = 0x10, /* eight with REX.W, else as Z */
	O = 0x20, /* an address of eight bytes, or four with 67 */
	X = 0x40, /* invalid in 64-bit mode */
	G = 0x80, /* an immediate value in two forms of the group alone (f6, f7) */
};

/* clang-format off */
static const uint8_t one_byte[256] = {
	M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X, /* 00 */
	M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,
	M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,
	M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,
	X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, /* 40: REX, taken before */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	X, X, X, M, X, X, X, X, Z, M | Z, B, M | B, 0, 0, 0, 0, /* 60 */
	B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B,
	M | B, M | Z, X, M | B, M, M, M, M, M, M, M, M, M, M, M, M, /* 80 */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, X, 0, 0, 0, 0, 0,
	O, O, O, O, 0, 0, 0, 0, B, Z, 0, 0, 0, 0, 0, 0, /* a0 */
	B, B, B, B, B, B, B, B, V, V, V, V, V, V, V, V,
	M | B, M | B, W, 0, X, X, M | B, M | Z, W | B, 0, W, 0, 0, B, X, 0, /* c0 */
	M, M, M, M, X, X, X, 0, M, M, M, M, M, M, M, M,
	B, B, B, B, B, B, B, B, Z, Z, X, B, 0, 0, 0, 0, /* e0 */
	X, 0, X, X, 0, 0, M | G, M | G, 0, 0, 0, 0, 0, 0, M, M,
};

static const uint8_t two_bytes[256] = {
	M, M, M, M, X, 0, 0, 0, 0, 0, X, 0, X, M, 0, M | B, /* 00 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	M, M, M, M, X, X, X, X, M, M, M, M, M, M, M, M, /* 20 */
	0, 0, 0, 0, 0, 0, X, 0, X, X, X, X, X, X, X, X, /* 38 and 3a are taken before */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* 40 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* 60 */
	M | B, M | B, M | B, M | B, M, M, M, 0, M, M, X, X, M, M, M, M,
	Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, /* 80 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	0, 0, 0, M, M | B, M, M, M, 0, 0, 0, M, M | B, M, M, M, /* a0 */
	M, M, M, M, M, M, M, M, M, M, M | B, M, M, M, M, M,
	M, M, M | B, M, M | B, M | B, M | B, M, 0, 0, 0, 0, 0, 0, 0, 0, /* c0 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* e0 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
};
/* clang-format on */

struct cursor {
	const uint8_t *code;
	size_t at, room;
	bool repeat; /* f2 or f3 */
};

static int64_t read_signed(const uint8_t *code, unsigned bytes)
{
	uint64_t value = 0;
	memcpy(&value, code, bytes); /* little endian, as the code is */
	const unsigned shift = 64 - 8 * bytes;
	return (int64_t)(value << shift) >> shift;
}

/* Read prefixes and REX, of which only one directly before the opcode counts. */
static bool read_prefixes(struct ky_instruction *it, struct cursor *in)
{
	for (; in->at < in->room; in->at++) {
		const uint8_t byte = in->code[in->at];
		if ((byte & 0xf0) == 0x40) {
			it->rex = byte;
			continue;
		}
		if (byte == 0x66)
			it->size_prefix = true;
		else if (byte == 0x67)
			it->address_prefix = true;
		else if (byte == 0xf2 || byte == 0xf3)
			in->repeat = true;
		else if (byte != 0xf0 && byte != 0x2e && byte != 0x36 && byte != 0x3e &&
			 byte != 0x26 && byte != 0x64 && byte != 0x65)
			return true;
		it->rex = 0;
	}
	return false;
}

/* Read VEX (c5, c4), EVEX (62), XOP (8f): what follows the opcode, by its map. */
static bool read_vector_prefix(struct ky_instruction *it, struct cursor *in, uint8_t *follows)
{
	const uint8_t first = in->code[in->at];
	const size_t prefix = first == 0xc5 ? 2 : first == 0x62 ? 4 : 3;
	if (in->room - in->at <= prefix || it->rex || it->size_prefix)
		return false;
	const uint8_t second = in->code[in->at + 1];
	const unsigned map = first == 0xc5 ? 1 : second & (first == 0x62 ? 0x07 : 0x1f);
	in->at += prefix;
	it->opcode = in->code[in->at++];
	it->map = (uint8_t)(0x10 + map);
	*follows = M;
	if (first == 0x8f) /* XOP's maps 8, 9, a: an immediate byte, none, four */
		*follows = map == 8 ? M | B : map == 9 ? M : map == 10 ? M | Z : X;
	else if (map == 1)
		*follows = it->opcode == 0x77 ? 0 : M | (two_bytes[it->opcode] & B);
	else if (map == 3)
		*follows = M | B;
	else if (map != 2 && !(first == 0x62 && (map == 5 || map == 6)))
		*follows = X;
	return true;
}

static bool is_vector_prefix(const struct cursor *in)
{
	const uint8_t first = in->code[in->at];
	if (first == 0xc4 || first == 0xc5 || first == 0x62)
		return true;
	return first == 0x8f && in->room - in->at > 1 && (in->code[in->at + 1] & 0x1f) >= 8;
}

static bool read_opcode(struct ky_instruction *it, struct cursor *in, uint8_t *follows)
{
	if (is_vector_prefix(in))
		return read_vector_prefix(it, in, follows);
	it->opcode = in->code[in->at++];
	if (it->opcode == 0x0f && in->at < in->room) {
		it->opcode = in->code[in->at++];
		it->map = it->opcode == 0x38 ? 2 : it->opcode == 0x3a ? 3 : 1;
		if (it->map > 1) {
			if (in->at >= in->room)
				return false;
			it->opcode = in->code[in->at++];
		}
	}
	*follows = it->map == 0   ? one_byte[it->opcode]
		   : it->map == 1 ? two_bytes[it->opcode]
		   : it->map == 2 ? M
				  : M | B;
	/* SSE4a's extrq and insertq: two bytes */
	if (it->map == 1 && it->opcode == 0x78 && (it->size_prefix || in->repeat))
		*follows = M | W;
	return true;
}

static bool read_modrm(struct ky_instruction *it, struct cursor *in)
{
	if (in->at >= in->room)
		return false;
	const uint8_t modrm = in->code[in->at];
	const unsigned mode = modrm >> 6;
	const unsigned base = modrm & 7;
	it->modrm_at = (uint8_t)in->at++;
	unsigned bytes = mode == 1 ? 1 : mode == 2 ? 4 : 0;
	if (mode == 0 && base == 5) {
		it->rip_relative = true;
		bytes = 4;
	} else if (mode != 3 && base == 4) {
		if (in->at >= in->room)
			return false;
		if (mode == 0 && (in->code[in->at] & 7) == 5)
			bytes = 4;
		in->at++;
	}
	if (in->room - in->at < bytes)
		return false;
	if (bytes) {
		it->displacement_at = (uint8_t)in->at;
		it->displacement = read_signed(in->code + in->at, bytes);
		in->at += bytes;
	}
	return true;
}

static unsigned immediate_bytes(const struct ky_instruction *it, const uint8_t *code,
				uint8_t follows)
{
	const bool wide = it->rex & 8;
	const unsigned word = it->size_prefix && !wide ? 2 : 4;
	unsigned bytes = (follows & B ? 1 : 0) + (follows & W ? 2 : 0);
	if (follows & Z)
		bytes += word;
	if (follows & V)
		bytes += wide ? 8 : word;
	if (follows & O)
		bytes += it->address_prefix ? 4 : 8;
	if (follows & G && (code[it->modrm_at] >> 3 & 7) < 2)
		bytes += it->opcode == 0xf6 ? 1 : word;
	return bytes;
}

static uint8_t kind_of_ff(uint8_t modrm)
{
	static const uint8_t kinds[8] = {
		[2] = KY_INSTRUCTION_CALL_INDIRECT,
		[3] = KY_INSTRUCTION_STRANGE,
		[4] = KY_INSTRUCTION_JUMP_INDIRECT,
		[5] = KY_INSTRUCTION_STRANGE,
	};
	return kinds[modrm >> 3 & 7];
}

static uint8_t kind_of_one_byte(const struct ky_instruction *it, const uint8_t *code)
{
	switch (it->opcode) {
	case 0xe8:
		return KY_INSTRUCTION_CALL;
	case 0xe9:
	case 0xeb:
		return KY_INSTRUCTION_JUMP;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		return KY_INSTRUCTION_LOOP;
	case 0xc2:
	case 0xc3:
		return KY_INSTRUCTION_RETURN;
	case 0xcc:
	case 0xf4:
		return KY_INSTRUCTION_TRAP;
	case 0xff:
		return kind_of_ff(code[it->modrm_at]);
	case 0xca: /* far returns, int, iret, icebp, xabort and xbegin */
	case 0xcb:
	case 0xcd:
	case 0xcf:
	case 0xf1:
		return KY_INSTRUCTION_STRANGE;
	case 0xc6:
	case 0xc7:
		return code[it->modrm_at] == 0xf8 ? KY_INSTRUCTION_STRANGE : KY_INSTRUCTION_PLAIN;
	default:
		return (it->opcode & 0xf0) == 0x70 ? KY_INSTRUCTION_JUMP_IF : KY_INSTRUCTION_PLAIN;
	}
}

static uint8_t kind_of(const struct ky_instruction *it, const uint8_t *code)
{
	if (it->map == 0)
		return kind_of_one_byte(it, code);
	if (it->map != 1)
		return KY_INSTRUCTION_PLAIN;
	if ((it->opcode & 0xf0) == 0x80)
		return KY_INSTRUCTION_JUMP_IF;
	if (it->opcode == 0x0b || it->opcode == 0xb9 || it->opcode == 0xff)
		return KY_INSTRUCTION_TRAP;
	return it->opcode == 0x07 || it->opcode == 0x35 ? KY_INSTRUCTION_STRANGE
							: KY_INSTRUCTION_PLAIN;
}

static bool names_a_place(uint8_t kind)
{
	return kind == KY_INSTRUCTION_JUMP || kind == KY_INSTRUCTION_JUMP_IF ||
	       kind == KY_INSTRUCTION_LOOP || kind == KY_INSTRUCTION_CALL;
}

bool ky_instruction_read(struct ky_instruction *it, const uint8_t *code, size_t room)
{
	struct cursor in = {code, 0, room < KY_INSTRUCTION_MAX ? room : KY_INSTRUCTION_MAX, false};
	uint8_t follows;
	memset(it, 0, sizeof(*it));
	if (!read_prefixes(it, &in) || !read_opcode(it, &in, &follows) || follows & X ||
	    (follows & M && !read_modrm(it, &in)))
		return false;
	const unsigned immediate = immediate_bytes(it, code, follows);
	if (in.room - in.at < immediate)
		return false;
	it->bytes = (uint8_t)(in.at + immediate);
	it->kind = kind_of(it, code);
	if (names_a_place(it->kind)) {
		/* AMD's branches are of 16 bits with 66, Intel's are not */
		if (immediate == 2)
			return false;
		it->branch = read_signed(code + in.at, immediate);
	}
	return true;
}

bool ky_instruction_is_padding(const struct ky_instruction *it, const uint8_t *code)
{
	if (it->map == 0)
		return it->opcode == 0xcc || (it->opcode == 0x90 && !(it->rex & 1));
	return it->map == 1 && it->opcode == 0x1f && (code[it->modrm_at] >> 3 & 7) == 0;
}
