/* SPDX-License-Identifier: MIT */
/* stub.h: the machine code that a patched function leads to: agent_abi.h describes its work. */
#ifndef KY_FUNCTRACE_STUB_H
#define KY_FUNCTRACE_STUB_H

#include "functrace/agent_abi.h"
#include "functrace/instruction.h"

#define KY_STUB_MAX 768u
#define KY_STUB_ALIGN 16u

enum ky_stub_kind {
	KY_STUB_CALL, /* entry and exit */
	/* entry alone, an instant: the function is jumped to, its return is not seen */
	KY_STUB_ENTRY,
	/* _Unwind_Find_FDE: the agent answers for the stubs themselves, otherwise the function does */
	KY_STUB_FIND_FDE,
	/* the loader's r_brk: the agent waits for kymo to patch the loaded library */
	KY_STUB_LOADER,
	KY_STUB_CYG_ENTER,
	/* the function's address is the first argument; looked up by the agent */
	KY_STUB_CYG_EXIT,
	/* prctl() and syscall(): the agent checks whether the program puts itself into a sandbox */
	KY_STUB_SANDBOX,
	/* no function's: the return path of the stubs of a region, once for all of them. moved is NULL */
	KY_STUB_EXIT,
};

struct ky_stub {
	enum ky_stub_kind kind;
	uint64_t at; /* the address of the stub */
	/* NOPS and SLED: where to go on; PATCH: moved code does that itself, 0 */
	uint64_t returns_to;
	uint32_t function;              /* index of its count */
	uint32_t site;                  /* heap number: of kind SCOPE, or INSTANT for ENTRY */
	uint32_t instant_site;          /* for callers whose return address must stay, 0: none */
	uint32_t end_site;              /* of kind END */
	uint64_t slow_entry, slow_exit; /* addresses in the agent */
	/* FIND_FDE, LOADER, CYG, SANDBOX: address in the agent (find_fde, loader, ...) */
	uint64_t special;
	/* CALL: the address of the region's KY_STUB_EXIT (smaller, and stays in the cache); 0: one of its own */
	uint64_t exit;
	/* check_callers: callers in this range may be hooked; bytes 0: no check */
	uint64_t near_from, near_bytes;
};
struct ky_stub_places {
	uint32_t body; /* offsets from at: the moved instructions and the jump behind them, */
	uint32_t hook; /* and the return address of the call of the body (CALL; otherwise 0) */
	uint32_t body_bytes;
	uint32_t bytes;
};
/*
 * Make a stub with room for moved.bytes at places.body; the body is the caller's moved code (made for at + body: call
 * ky_stub_body_at() first). code has KY_STUB_MAX bytes.
 */
uint32_t ky_stub_body_at(const struct ky_stub *stub);
void ky_stub_make(const struct ky_stub *stub, const struct ky_moved *moved, uint8_t *code,
		  struct ky_stub_places *places);

/* Make .eh_frame for all stubs between two addresses: it reads the return slots. Return its bytes. */
#define KY_STUB_UNWIND_MAX 512u
uint32_t ky_stub_unwind(uint8_t *eh_frame, uint64_t eh_frame_at, uint64_t stubs_from,
			uint64_t stubs_to, uint64_t directory);

#endif
