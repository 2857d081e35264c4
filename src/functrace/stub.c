/* SPDX-License-Identifier: MIT */
/*
 * stub.c: writes stubs, byte by byte. A stub of kind CALL:
 *
 *   at      saves three registers; checks; return slot; count; word   any check that fails: ▶ slow
 *   go      restores them; rsp = S + 8; call body
 *   hook    jmp exit
 *   slow    rcx = data; jmp *slow_entry                                the agent does it all again, in C, and goes on at
 *   data    struct ky_agent_stub_data                                       "go" or at "plain"
 *   plain   restores the registers
 *   body    the moved instructions, which jump back into the function
 *   exit    only when the region has none
 *
 * From go on all distances are fixed (agent_abi.h), so the agent can recognise a hook, and find "go", by the data
 * alone.
 *
 * Signals may come at any instruction. Before the first change nothing has happened yet. One instruction (xadd) takes
 * the word's place, so a handler's words come after it. While rsp is S + 8, [S] is below the stack's end, and not
 * needed: its value is in the return slot. Handlers run at least 128 bytes below, on return slots of their own.
 *
 * All registers except the flags are as they were; no vector register is used.
 */
#include "functrace/stub.h"
#include "core/layout.h"
#include "functrace/agent_abi.h"

#include <string.h>

struct code {
	uint8_t *to;
	uint32_t bytes;
};

static void put(struct code *c, const void *data, uint32_t bytes)
{
	memcpy(c->to + c->bytes, data, bytes);
	c->bytes += bytes;
}
#define PUT(c, ...) put(c, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put32(struct code *c, uint32_t value)
{
	put(c, &value, sizeof(value));
}

static void put64(struct code *c, uint64_t value)
{
	put(c, &value, sizeof(value));
}

/* Put a jump whose target comes later, and note where its distance goes. */
static void jump_later(struct code *c, uint8_t condition, uint32_t *places, uint32_t *count)
{
	PUT(c, 0x0f, condition);
	places[(*count)++] = c->bytes;
	put32(c, 0);
}
enum { JUMP_EQUAL = 0x84, JUMP_OTHER = 0x85, JUMP_AT_LEAST = 0x83 };

static void jumps_here(struct code *c, const uint32_t *places, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t distance = c->bytes - (places[i] + 4);
		memcpy(c->to + places[i], &distance, sizeof(distance));
	}
}

static void jump_to(struct code *c, uint64_t at, uint64_t target)
{
	PUT(c, 0xe9);
	put32(c, (uint32_t)(target - (at + c->bytes + 4)));
}

/* Put an operand in the state: segment gs, a 32-bit displacement. */
static void gs(struct code *c, uint32_t displacement)
{
	PUT(c, 0x25);
	put32(c, displacement);
}

/*
 * Save rax, rdx and rcx at S - 8 and below. Read the counter as soon as there is a register for it: the next
 * instructions do not wait for it.
 */
static void save_and_read_counter(struct code *c)
{
	PUT(c, 0x50, 0x52); /* push %rax, %rdx */
	PUT(c, 0x0f, 0x31); /* rdtsc: rax is the low half from here on */
	PUT(c, 0x51);       /* push %rcx */
}
/* Do the same when rsp is S + 8. */
static void save_below_slot(struct code *c)
{
	PUT(c, 0x48, 0x8d, 0x64, 0x24, 0xe0); /* lea -32(%rsp),%rsp */
	PUT(c, 0x48, 0x89, 0x44, 0x24, 0x10); /* mov %rax,16(%rsp) */
	PUT(c, 0x48, 0x89, 0x54, 0x24, 0x08); /* mov %rdx,8(%rsp) */
	PUT(c, 0x0f, 0x31);                   /* rdtsc */
	PUT(c, 0x48, 0x89, 0x0c, 0x24);       /* mov %rcx,(%rsp) */
}
#define RESTORE(c) PUT(c, 0x59, 0x5a, 0x58) /* pop %rcx, %rdx, %rax */

#define CHECKS_MAX 8u
struct checks {
	uint32_t places[CHECKS_MAX];
	uint32_t count;
};

static void check_high(struct code *c, struct checks *checks)
{
	PUT(c, 0x65, 0x3b, 0x14); /* cmp %gs:HIGH,%edx */
	gs(c, KY_STATE_HIGH);
	jump_later(c, JUMP_OTHER, checks->places, &checks->count);
}

static void check_thread(struct code *c, struct checks *checks)
{
	PUT(c, 0x64, 0x48, 0x8b, 0x14, 0x25, 0, 0, 0, 0); /* mov %fs:0,%rdx */
	PUT(c, 0x65, 0x48, 0x3b, 0x14);                   /* cmp %gs:THREAD,%rdx */
	gs(c, KY_STATE_THREAD);
	jump_later(c, JUMP_OTHER, checks->places, &checks->count);
}

/* Set rcx = S. */
static void find_slot(struct code *c)
{
	PUT(c, 0x48, 0x8d, 0x4c, 0x24, 0x18); /* lea 24(%rsp),%rcx */
}

static void check_top(struct code *c, struct checks *checks, uint8_t condition)
{
	PUT(c, 0x65, 0x48, 0x3b, 0x0c); /* cmp %gs:TOP,%rcx */
	gs(c, KY_STATE_TOP);
	jump_later(c, condition, checks->places, &checks->count);
}

/*
 * Set rcx = the return slot of S. The state knows the leaf of the stack that its thread was on last. It is loaded before
 * the check: a handler on another stack changes both.
 */
static void find_call(struct code *c, struct checks *checks)
{
	PUT(c, 0x65, 0x48, 0x8b, 0x14); /* mov %gs:LEAF,%rdx */
	gs(c, KY_STATE_LEAF);
	PUT(c, 0x48, 0xc1, 0xe9, KY_AGENT_ROOT_SHIFT); /* shr $34,%rcx */
	PUT(c, 0x65, 0x3b, 0x0c);                      /* cmp %gs:ROOT,%ecx */
	gs(c, KY_STATE_ROOT);
	jump_later(c, JUMP_OTHER, checks->places, &checks->count);
	find_slot(c);
	PUT(c, 0x48, 0xc1, 0xe9, KY_AGENT_PIECE_SHIFT); /* shr $20,%rcx */
	PUT(c, 0x81, 0xe1);                             /* and $16383,%ecx */
	put32(c, KY_AGENT_LEAF_PIECES - 1);
	PUT(c, 0x48, 0x8b, 0x14, 0xca); /* mov (%rdx,%rcx,8),%rdx */
	find_slot(c);
	PUT(c, 0x48, 0x85, 0xd2); /* test %rdx,%rdx */
	jump_later(c, JUMP_EQUAL, checks->places, &checks->count);
	PUT(c, 0x48, 0x8d, 0x0c, 0x8a); /* lea (%rdx,%rcx,4),%rcx */
}

static void check_room(struct code *c, struct checks *checks)
{
	PUT(c, 0x65, 0x48, 0x8b, 0x14); /* mov %gs:POS,%rdx */
	gs(c, KY_STATE_POS);
	PUT(c, 0x65, 0x48, 0x3b, 0x14); /* cmp %gs:LIMIT,%rdx */
	gs(c, KY_STATE_LIMIT);
	jump_later(c, JUMP_AT_LEAST, checks->places, &checks->count);
}

/*
 * Prefetch the block after this one, so that it is in the cache when its turn comes: clearing it would wait for
 * memory otherwise.
 */
static void fetch_ahead(struct code *c)
{
	PUT(c, 0x0f, 0x0d, 0x8a); /* prefetchw KY_BLOCK_BYTES(%rdx) */
	put32(c, KY_BLOCK_BYTES);
}

/*
 * Check that the return address is not a hook, and may be taken. Storing it in the return slot at once is harmless:
 * while [S] is not a hook, the return slot is not in use.
 */
static void take_return_address(struct code *c, const struct ky_stub *stub, struct checks *checks)
{
	PUT(c, 0x48, 0x8b, 0x54, 0x24, 0x18); /* mov 24(%rsp),%rdx */
	PUT(c, 0x48, 0x3b, 0x51, 0x08);       /* cmp HOOK(%rcx),%rdx */
	jump_later(c, JUMP_EQUAL, checks->places, &checks->count);
	PUT(c, 0x48, 0x89, 0x11); /* mov %rdx,RETURNS(%rcx) */
	if (stub->near_bytes == 0)
		return;
	PUT(c, 0x48, 0xba); /* movabs $-near_from,%rdx */
	put64(c, 0 - stub->near_from);
	PUT(c, 0x48, 0x03, 0x11); /* add RETURNS(%rcx),%rdx */
	PUT(c, 0x48, 0x81, 0xfa); /* cmp $near_bytes,%rdx */
	put32(c, stub->near_bytes < INT32_MAX ? (uint32_t)stub->near_bytes : INT32_MAX);
	jump_later(c, JUMP_AT_LEAST, checks->places, &checks->count);
}

/*
 * Set the return slot's previous, mark and hook; top = S. The hook's address comes later: return where its distance
 * goes.
 */
static uint32_t open_call(struct code *c)
{
	PUT(c, 0x65, 0x48, 0x8b, 0x14); /* mov %gs:TOP,%rdx */
	gs(c, KY_STATE_TOP);
	PUT(c, 0x48, 0x89, 0x51, 0x10); /* mov %rdx,PREVIOUS(%rcx) */
	PUT(c, 0x65, 0x48, 0x8b, 0x14); /* mov %gs:MARK,%rdx */
	gs(c, KY_STATE_MARK);
	PUT(c, 0x48, 0x89, 0x51, 0x18); /* mov %rdx,MARK(%rcx) */
	PUT(c, 0x48, 0x8d, 0x15);       /* lea hook(%rip),%rdx */
	const uint32_t hook = c->bytes;
	put32(c, 0);
	PUT(c, 0x48, 0x89, 0x51, 0x08);       /* mov %rdx,HOOK(%rcx) */
	PUT(c, 0x48, 0x8d, 0x54, 0x24, 0x18); /* lea 24(%rsp),%rdx */
	PUT(c, 0x65, 0x48, 0x89, 0x14);       /* mov %rdx,%gs:TOP */
	gs(c, KY_STATE_TOP);
	return hook;
}

static void close_call(struct code *c)
{
	PUT(c, 0x48, 0x8b, 0x51, 0x10); /* mov PREVIOUS(%rcx),%rdx */
	PUT(c, 0x65, 0x48, 0x89, 0x14); /* mov %rdx,%gs:TOP */
	gs(c, KY_STATE_TOP);
}

static void count_call(struct code *c, uint32_t function)
{
	PUT(c, 0x65, 0xff, 0x04); /* incl %gs:COUNTS+4*function */
	gs(c, KY_STATE_COUNTS + 4 * function);
}

/* Take the next word and write the event into it; rax has its time. */
static void write_word(struct code *c, uint32_t site)
{
	PUT(c, 0xba, 8, 0, 0, 0);             /* mov $8,%edx */
	PUT(c, 0x65, 0x48, 0x0f, 0xc1, 0x14); /* xadd %rdx,%gs:POS */
	gs(c, KY_STATE_POS);
	PUT(c, 0x48, 0xb9); /* movabs $site << 42,%rcx */
	put64(c, (uint64_t)site << KY_WORD_SITE_SHIFT);
	PUT(c, 0x48, 0x09, 0xc8); /* or %rcx,%rax */
	PUT(c, 0x48, 0x89, 0x02); /* mov %rax,(%rdx) */
}

/* Set rcx = data, which follows at once. */
static void go_slow(struct code *c, const struct ky_stub *stub)
{
	PUT(c, 0x48, 0x8d, 0x0d, 6, 0, 0, 0); /* lea data(%rip),%rcx */
	PUT(c, 0xff, 0x25, 0, 0, 0, 0);       /* jmp *data.slow_entry(%rip) */
	const struct ky_agent_stub_data data = {.slow_entry = stub->slow_entry,
						.function = stub->function,
						.site = stub->site,
						.instant_site = stub->instant_site,
						.hooks = stub->kind == KY_STUB_CALL};
	put(c, &data, sizeof(data));
}

/* Put the moved instructions. They lead back themselves; nops do not. */
static void put_body(struct code *c, const struct ky_stub *stub, const struct ky_moved *moved,
		     struct ky_stub_places *places)
{
	places->body = c->bytes;
	if (moved)
		put(c, moved->code, moved->bytes);
	if (stub->returns_to)
		jump_to(c, stub->at, stub->returns_to);
	places->body_bytes = c->bytes - places->body;
}

static void put_exit(struct code *c, const struct ky_stub *stub)
{
	struct checks checks = {.count = 0};
	save_below_slot(c);
	check_high(c, &checks);
	check_thread(c, &checks);
	find_slot(c);
	check_top(c, &checks, JUMP_OTHER);
	check_room(c, &checks);
	fetch_ahead(c);
	find_call(c, &checks);
	PUT(c, 0x48, 0x8b, 0x11);             /* mov RETURNS(%rcx),%rdx */
	PUT(c, 0x48, 0x89, 0x54, 0x24, 0x18); /* mov %rdx,24(%rsp) */
	close_call(c);
	write_word(c, stub->end_site);
	RESTORE(c);
	PUT(c, 0xc3); /* ret */
	jumps_here(c, checks.places, checks.count);
	PUT(c, 0xff, 0x25, 0, 0, 0, 0); /* jmp *slow_exit */
	put64(c, stub->slow_exit);
}

/* Do as RESTORE, and set rsp = S + 8. */
static void go(struct code *c)
{
	PUT(c, 0x48, 0x8b, 0x0c, 0x24);       /* mov (%rsp),%rcx */
	PUT(c, 0x48, 0x8b, 0x54, 0x24, 0x08); /* mov 8(%rsp),%rdx */
	PUT(c, 0x48, 0x8b, 0x44, 0x24, 0x10); /* mov 16(%rsp),%rax */
	PUT(c, 0x48, 0x8d, 0x64, 0x24, 0x20); /* lea 32(%rsp),%rsp */
	PUT(c, 0xe8);                         /* call body */
	put32(c, KY_STUB_BODY_AFTER_HOOK);
}

static void put_call(struct code *c, const struct ky_stub *stub, const struct ky_moved *moved,
		     struct ky_stub_places *places)
{
	struct checks checks = {.count = 0};
	save_and_read_counter(c);
	check_high(c, &checks);
	check_thread(c, &checks);
	find_slot(c);
	check_top(c, &checks, JUMP_AT_LEAST);
	check_room(c, &checks);
	find_call(c, &checks);
	take_return_address(c, stub, &checks);
	const uint32_t hook_at = open_call(c);
	count_call(c, stub->function);
	write_word(c, stub->site);
	go(c);
	places->hook = c->bytes;
	jumps_here(c, &hook_at, 1);
	const uint32_t exit_at = c->bytes + 1;
	jump_to(c, stub->at, stub->exit);
	jumps_here(c, checks.places, checks.count);
	go_slow(c, stub);
	RESTORE(c);
	put_body(c, stub, moved, places);
	if (stub->exit == 0) {
		jumps_here(c, &exit_at, 1);
		put_exit(c, stub);
	}
}

static void put_entry(struct code *c, const struct ky_stub *stub, const struct ky_moved *moved,
		      struct ky_stub_places *places)
{
	struct checks checks = {.count = 0};
	save_and_read_counter(c);
	check_high(c, &checks);
	check_thread(c, &checks);
	check_room(c, &checks);
	fetch_ahead(c);
	count_call(c, stub->function);
	write_word(c, stub->site);
	RESTORE(c);
	put_body(c, stub, moved, places);
	jumps_here(c, checks.places, checks.count);
	go_slow(c, stub);
	RESTORE(c);
	jump_to(c, stub->at, stub->at + places->body);
}

/*
 * Call the agent's function, which saves the registers that it uses. It has the arguments in their registers;
 * FIND_FDE's may answer itself.
 */
static void put_special(struct code *c, const struct ky_stub *stub, const struct ky_moved *moved,
			struct ky_stub_places *places)
{
	PUT(c, 0x50);       /* push %rax */
	PUT(c, 0x48, 0xb8); /* movabs $special,%rax */
	put64(c, stub->special);
	PUT(c, 0xff, 0xd0); /* call *%rax */
	if (stub->kind == KY_STUB_FIND_FDE) {
		PUT(c, 0x48, 0x85, 0xc0);             /* test %rax,%rax */
		PUT(c, 0x74, 0x06);                   /* je body */
		PUT(c, 0x48, 0x8d, 0x64, 0x24, 0x08); /* lea 8(%rsp),%rsp */
		PUT(c, 0xc3);                         /* ret */
	}
	PUT(c, 0x58); /* pop %rax */
	put_body(c, stub, moved, places);
}

void ky_stub_make(const struct ky_stub *stub, const struct ky_moved *moved, uint8_t *code,
		  struct ky_stub_places *places)
{
	struct code c = {.to = code};
	*places = (struct ky_stub_places){0};
	if (stub->kind == KY_STUB_CALL)
		put_call(&c, stub, moved, places);
	else if (stub->kind == KY_STUB_ENTRY)
		put_entry(&c, stub, moved, places);
	else if (stub->kind == KY_STUB_EXIT)
		put_exit(&c, stub);
	else
		put_special(&c, stub, moved, places);
	places->bytes = c.bytes;
}

uint32_t ky_stub_body_at(const struct ky_stub *stub)
{
	uint8_t code[KY_STUB_MAX];
	struct ky_stub_places places;
	ky_stub_make(stub, NULL, code, &places);
	return places.body;
}

/* ---- unwind information ---- */

enum {
	RSP = 7,
	RETURN_ADDRESS = 16,
	CFA_DEF_CFA = 0x0c,
	CFA_EXPRESSION = 0x10,
	CFA_VAL_EXPRESSION = 0x16,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST2U = 0x0a,
	OP_CONST8U = 0x0e,
	OP_DUP = 0x12,
	OP_OVER = 0x14,
	OP_SWAP = 0x16,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
};

/* Fill up to 8 bytes with no-operations and put the length before the record. */
static void finish(struct code *b, uint32_t record)
{
	while ((b->bytes - record) % 8 != 0)
		PUT(b, 0);
	const uint32_t length = b->bytes - record - 4;
	memcpy(b->to + record, &length, sizeof(length));
}

/* Put the address of the `returns` of S's return slot. */
static void put_return_address(struct code *b, uint64_t directory)
{
	uint8_t operations[40];
	struct code e = {.to = operations};
	PUT(&e, OP_BREG0 + RSP, 0x78); /* S: rsp - 8 */
	PUT(&e, OP_DUP, OP_CONST1U, KY_AGENT_ROOT_SHIFT, OP_SHR, OP_LIT0 + 3, OP_SHL);
	PUT(&e, OP_CONST8U);
	put(&e, &directory, sizeof(directory));
	PUT(&e, OP_PLUS, OP_DEREF);
	PUT(&e, OP_OVER, OP_LIT0 + KY_AGENT_PIECE_SHIFT, OP_SHR);
	PUT(&e, OP_CONST2U, (KY_AGENT_LEAF_PIECES - 1) & 0xff, (KY_AGENT_LEAF_PIECES - 1) >> 8,
	    OP_AND);
	PUT(&e, OP_LIT0 + 3, OP_SHL, OP_PLUS, OP_DEREF);
	PUT(&e, OP_SWAP, OP_LIT0 + 2, OP_SHL, OP_PLUS);
	PUT(b, CFA_EXPRESSION, RETURN_ADDRESS, (uint8_t)e.bytes);
	put(b, operations, e.bytes);
}

static void put_cie(struct code *b, uint64_t directory)
{
	const uint32_t record = b->bytes;
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
	struct code b = {.to = eh_frame};
	put_cie(&b, directory);
	const uint32_t record = b.bytes;
	PUT(&b, 0, 0, 0, 0);
	const uint32_t to_cie = b.bytes;
	put(&b, &to_cie, sizeof(to_cie));
	put(&b, &stubs_from, sizeof(stubs_from));
	const uint64_t bytes = stubs_to - stubs_from;
	put(&b, &bytes, sizeof(bytes));
	finish(&b, record);
	PUT(&b, 0, 0, 0, 0);
	return b.bytes;
}
