/* SPDX-License-Identifier: MIT */
/*
 * stub_unwind.c: one CIE and one FDE in .eh_frame for all stubs: how to unwind from a hook.
 *
 * There rsp is S + 8, as the function's own return left it. The return address is frame(S).returns:
 *     *(directory + (S >> 24) * 8) + S * 4
 * The frame that the stub makes is empty, so its caller's rsp is S + 8, too. But no two frames may have the same CFA, or the
 * unwinder takes them for one: the stub's is S + 9, between the function's, S + 8, and its caller's, at least S + 16. The row
 * holds everywhere: unwinders look up the address before the hook, in the call.
 */
#include "functrace/stub.h"

#include <string.h>

enum {
	RSP = 7,
	RETURN_ADDRESS = 16,
	CFA_DEF_CFA = 0x0c,
	CFA_EXPRESSION = 0x10,
	CFA_VAL_EXPRESSION = 0x16,
	OP_DEREF = 0x06,
	OP_CONST8U = 0x0e,
	OP_DUP = 0x12,
	OP_SWAP = 0x16,
	OP_PLUS = 0x22,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
};

struct bytes {
	uint8_t *to;
	uint32_t count;
};

static void put(struct bytes *b, const void *data, uint32_t bytes)
{
	memcpy(b->to + b->count, data, bytes);
	b->count += bytes;
}
#define PUT(b, ...) put(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Fills up to 8 bytes with no-operations and puts the length before the record. */
static void finish(struct bytes *b, uint32_t record)
{
	while ((b->count - record) % 8 != 0)
		PUT(b, 0);
	const uint32_t length = b->count - record - 4;
	memcpy(b->to + record, &length, sizeof(length));
}

/* The address of frame(S).returns. */
static void put_return_address(struct bytes *b, uint64_t directory)
{
	uint8_t operations[40];
	struct bytes e = {.to = operations};
	PUT(&e, OP_BREG0 + RSP, 0x78); /* S: rsp - 8 */
	PUT(&e, OP_DUP, OP_LIT0 + KY_AGENT_PIECE_SHIFT, OP_SHR, OP_LIT0 + 3, OP_SHL);
	PUT(&e, OP_CONST8U);
	put(&e, &directory, sizeof(directory));
	PUT(&e, OP_PLUS, OP_DEREF, OP_SWAP, OP_LIT0 + 2, OP_SHL, OP_PLUS);
	PUT(b, CFA_EXPRESSION, RETURN_ADDRESS, (uint8_t)e.count);
	put(b, operations, e.count);
}

static void put_cie(struct bytes *b, uint64_t directory)
{
	const uint32_t record = b->count;
	PUT(b, 0, 0, 0, 0);              /* its length */
	PUT(b, 0, 0, 0, 0);              /* a CIE */
	PUT(b, 1, 0);                    /* version, no augmentation */
	PUT(b, 1, 0x78, RETURN_ADDRESS); /* factors of code and data */
	PUT(b, CFA_DEF_CFA, RSP, 1);
	PUT(b, CFA_VAL_EXPRESSION, RSP, 2, OP_BREG0 + RSP, 0);
	put_return_address(b, directory);
	finish(b, record);
}

uint32_t ky_stub_unwind(uint8_t *eh_frame, uint64_t eh_frame_at, uint64_t stubs_from,
			uint64_t stubs_to, uint64_t directory)
{
	(void)eh_frame_at; /* addresses in it are absolute */
	struct bytes b = {.to = eh_frame};
	put_cie(&b, directory);
	const uint32_t record = b.count;
	PUT(&b, 0, 0, 0, 0);
	const uint32_t to_cie = b.count;
	put(&b, &to_cie, sizeof(to_cie));
	put(&b, &stubs_from, sizeof(stubs_from));
	const uint64_t bytes = stubs_to - stubs_from;
	put(&b, &bytes, sizeof(bytes));
	finish(&b, record);
	PUT(&b, 0, 0, 0, 0);
	return b.count;
}
