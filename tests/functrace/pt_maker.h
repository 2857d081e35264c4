/* SPDX-License-Identifier: MIT */
/*
 * pt_maker.h: code with known calls, the packets that a CPU would write for a way through it (by libipt's encoder),
 * and the decoded calls, as text.
 */
#ifndef KY_TESTS_PT_MAKER_H
#define KY_TESTS_PT_MAKER_H

#include "functrace/pt_decode.h"

#define PT_CODE_AT 0x401000u
#define PT_CODE_BYTES 4096u

struct pt_made_function {
	const char *name;
	uint64_t start, bytes;
	uint64_t of; /* a part of the one that starts there; 0: it is its own */
	bool hidden;
};

struct pt_made {
	uint8_t code[PT_CODE_BYTES];
	struct pt_made_function functions[16];
	uint32_t functions_count;
	uint8_t *aux;
	size_t aux_bytes, aux_room;
	struct pt_encoder *encoder;
	/* The decoded calls: "main{ f{ } }", with the times when they are asked for. */
	char *text;
	size_t text_bytes;
	bool times;
	uint64_t last_ns;
	uint32_t open; /* begun and not ended */
	uint64_t begins, ends;
	bool silent; /* count only, except instants */
	struct ky_pt_facts facts;
};

void pt_made_open(struct pt_made *made, size_t aux_room);
void pt_made_close(struct pt_made *made);

/* ---- code; addresses are absolute; each returns the address behind it ---- */
void pt_function(struct pt_made *made, const char *name, uint64_t start, uint64_t bytes);
uint64_t pt_code(struct pt_made *made, uint64_t at, const char *hex);
/* rel32 */
uint64_t pt_branch(struct pt_made *made, uint64_t at, const char *opcode, uint64_t to);

/* ---- packets ---- */
void pt_psb(struct pt_made *made, uint64_t ip, uint64_t tsc); /* ip 0: tracing is off */
void pt_tnt(struct pt_made *made, const char *bits);          /* "tnt": taken, not taken, taken */
void pt_tip(struct pt_made *made, uint64_t ip);
void pt_pge(struct pt_made *made, uint64_t ip);
void pt_pgd(struct pt_made *made, uint64_t ip); /* 0: left out */
void pt_fup(struct pt_made *made, uint64_t ip);
void pt_ovf(struct pt_made *made);
void pt_tsc(struct pt_made *made, uint64_t tsc);
void pt_tma(struct pt_made *made, uint16_t ctc);
void pt_mtc(struct pt_made *made, uint8_t ctc);
void pt_cyc(struct pt_made *made, uint64_t cycles);
void pt_cbr(struct pt_made *made, uint8_t ratio);
void pt_pip(struct pt_made *made, uint64_t cr3);

/* ---- decoding ---- */
extern const struct ky_pt_cpu pt_made_cpu;
/* Decode bytes of the packets, from an offset; since as in struct ky_pt_packets. The result is in text and facts. */
void pt_decode_part(struct pt_made *made, size_t from, size_t bytes, uint64_t since);
const char *pt_decode_text(struct pt_made *made);

#endif
