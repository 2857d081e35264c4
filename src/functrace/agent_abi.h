/* SPDX-License-Identifier: MIT */
/*
 * agent_abi.h: the layout of what the patch engine puts into a traced program. Two sides share it: kymo, which writes
 * it from outside, and the code that runs in the program (stubs made by stub.c, the agent compiled from
 * src/functrace/agent/). The stubs' instructions hold offsets of these structs: change KY_AGENT_VERSION with every
 * change here.
 *
 *   home        a private mapping of a memfd named KY_AGENT_NAME, so that the next kymo to attach finds it in /proc/PID/maps
 *     0            struct ky_agent_home: the addresses of everything else; on or off
 *     code_at      the agent: position independent, libc-free, general registers only (r-x)
 *   patches     struct ky_agent_patch[]: the overwritten bytes, for any kymo to put back (private, rw)
 *   stubs       near each module (within 2 GiB): a stub for each function (private, r-x)
 *   states      a struct ky_agent_state for each thread; the gs register of a thread points to its own, or to the first,
 *               which belongs to no thread: then its first call takes one. Fork zeroes them
 *               (MADV_WIPEONFORK), so that a child finds out at its first call
 *   directory   u64[KY_AGENT_ROOTS]: for each 16 GiB of addresses the leaf with the addresses of their return slots; then a leaf
 *               that is empty, and all addresses' at first
 *   leaves      u64[KY_AGENT_LEAF_PIECES]: the address of the return slots of each 1 MiB of addresses, 0: none yet
 *   slots       a struct ky_agent_call (return slot) for each 8 bytes of stack, made piece by piece when a stack is first seen there
 *   drum        an ordinary drum (layout.h), made by kymo: a memfd, shared. A trace point for each function. Mapped in two
 *               parts, which grow
 *
 * A call works as follows. rsp is S at the function's first instruction, and [S] the return address:
 *
 *   function: jmp stub            stub: push rax, rdx, rcx, rdi
 *                                       checks; each can fail, and leads to the slow path:
 *                                         fs:0 is the state's thread          (gs:KY_STATE_THREAD)
 *                                         S is below the innermost open call  (gs:KY_STATE_TOP)
 *                                         there are return slots for S        (gs:KY_STATE_LEAF)
 *                                         the counter's high half is as it was; the block has room
 *                                         [S] is not a stub's already         (call.hook)
 *                                       call = {[S], hook, top, mark}; top = S; count++; one word into the ring
 *                                       pop; rsp = S + 8; call body     ◀── so [S] is "hook" now, and returns stay paired
 *                                 hook: checks; top = call.previous; one word into the ring; [S] = call.returns; ret
 *                                 body: the function's first instructions, moved; jmp function + n
 *
 * A tail call finds [S] hooked already: the slow path ends the caller's span, begins the callee's and jumps to the
 * body. longjmp and exceptions leave return slots below S open: the next call or return above them ends their spans.
 * Return slots are found by address alone, so any thread may use a stack, and returns are right in any order.
 *
 * When tracing is off (detached, or turned off by the agent: agent/others.c), no function leads to a stub any more, but
 * stubs that are on some stack still return through "hook", and threads inside them go on: what they may need stays
 * (agent_memory_trim.c). home.on is 0, THREAD of every state is 0, and only returns are done.
 */
#ifndef KY_FUNCTRACE_AGENT_ABI_H
#define KY_FUNCTRACE_AGENT_ABI_H

#include <stddef.h>
#include <stdint.h>

#define KY_AGENT_MAGIC 0x636e75666f6d796bu /* "kymofunc" */
#define KY_AGENT_VERSION 8
#define KY_AGENT_NAME "kymo-functions"

#define KY_AGENT_PIECE_SHIFT 20
#define KY_AGENT_ROOT_SHIFT 34
#define KY_AGENT_ROOTS (UINT64_C(1) << (47 - KY_AGENT_ROOT_SHIFT))
#define KY_AGENT_LEAF_PIECES (UINT64_C(1) << (KY_AGENT_ROOT_SHIFT - KY_AGENT_PIECE_SHIFT))
#define KY_AGENT_LEAF_BYTES (KY_AGENT_LEAF_PIECES * sizeof(uint64_t))
#define KY_AGENT_DIRECTORY_BYTES (KY_AGENT_ROOTS * sizeof(uint64_t) + KY_AGENT_LEAF_BYTES)
#define KY_AGENT_FUNCTIONS_MAX (1u << 20)
#define KY_AGENT_STATES_MAX 4096u
#define KY_AGENT_STATE_BYTES 4096u /* the counts follow */

/*
 * The return slot of 8 bytes of stack, used when a return address is there. Its address is leaf[S >> 20 & 16383] + S * 4:
 * leaves hold biased addresses. The leaf is directory[S >> 34].
 */
struct ky_agent_call {
	uint64_t returns;  /* the address that the function returns to */
	uint64_t hook;     /* the word that replaces it in [S] */
	uint64_t previous; /* S of the next open call outwards; ~0: none */
	/* mark of the state that has the open call; 0: its span has ended already */
	uint64_t mark;
};
/* Return the address of the empty leaf. */
static inline uint64_t ky_agent_leaf_empty(uint64_t directory)
{
	return directory + KY_AGENT_ROOTS * sizeof(uint64_t);
}

/*
 * A function that reports its calls itself (-finstrument-functions) has no hook: hook is 0. The return slot is one below
 * its stack frame, and `returns` tells how many words above it S is, which function it is, and a part of the address that
 * it returns to.
 */
#define KY_TOLD_UP_BITS 20
#define KY_TOLD_UP_MASK ((UINT64_C(1) << KY_TOLD_UP_BITS) - 1)
#define KY_TOLD_FUNCTION_BITS 20

/*
 * The state of one thread. `thread` is fs:0 of its owner; another value (a thread that inherited gs from the one that
 * made it, a forked child, off, a thread that is in the slow path) sends every call to the slow path. A state that is
 * not the caller's, or not of home's generation, is replaced there by one that is: gs may lead to any state, even one
 * that is all zeros.
 */
struct ky_agent_state {
	uint64_t thread;
	uint64_t top; /* S of the innermost open call; ~0: none */
	uint64_t pos; /* next free word in the ring */
	/* pos at least this: take a new block. Some words before its end, because handlers may come in between */
	uint64_t limit;
	uint32_t high;  /* the counter's high half */
	uint32_t root;  /* S >> 34 of the last call in the slow path, */
	uint64_t mark;  /* unique, never used again; return slots hold it */
	uint64_t self;  /* the state's own address */
	uint64_t leaf;  /* and its leaf, which may be the empty one */
	uint64_t owner; /* fs:0 */
	uint64_t generation;
	/* S of the call in the slow path: a call from a handler there is only counted */
	uint64_t busy;
	uint64_t lost;     /* events without a ring, or from such handlers */
	uint64_t controls; /* words in this block that are not events */
	uint64_t retry;    /* ticks: there was no ring; do not ask for one before this */
	uint32_t name;     /* the thread's name, in the heap */
	uint32_t here;     /* in the first state alone: 0 in a forked child */
	uint32_t tid;      /* 0: free */
	uint32_t unused;
	/* struct ky_ring_writer (ring.h); its ring is NULL when there is no ring */
	uint64_t ring[16];
	uint64_t pad[480];
};
_Static_assert(sizeof(struct ky_agent_state) == KY_AGENT_STATE_BYTES, "layout");
_Static_assert(sizeof(struct ky_agent_call) == 32, "layout");
#define KY_STATE_THREAD 0
#define KY_STATE_TOP 8
#define KY_STATE_POS 16
#define KY_STATE_LIMIT 24
#define KY_STATE_HIGH 32
#define KY_STATE_ROOT 36
#define KY_STATE_MARK 40
#define KY_STATE_SELF 48
#define KY_STATE_LEAF 56
#define KY_STATE_COUNTS KY_AGENT_STATE_BYTES /* u32 for each function: number of calls */

/*
 * The overwritten bytes of one place. Only kymo writes this, except in programs that turn the counter off
 * (agent/others.c).
 */
struct ky_agent_patch {
	uint64_t address;
	uint64_t stub;
	uint8_t before[16];
	uint8_t after[16];
	uint8_t bytes;     /* 5, at most 16 */
	uint8_t set;       /* the code is `after` now */
	uint16_t pad;      /* the stub's form; its low byte is the kind (patch_parts.h) */
	uint32_t function; /* index of its count and of its site */
};

/* A range of code whose return addresses may be hooked: all ELF text except that of JITs' builtins. */
struct ky_agent_range {
	uint64_t from, bytes;
};
#define KY_AGENT_RANGES_MAX 1024u

/*
 * __cyg_profile_func_enter and _exit get an address: this is the hash table of all known ones; address 0 is a free
 * place.
 */
struct ky_agent_known {
	uint64_t address;
	uint32_t site;
	uint32_t function; /* index of its count */
};
static inline uint64_t ky_agent_known_at(uint64_t address, uint64_t mask)
{
	/* on a clash, use the next place */
	return address * UINT64_C(0x9e3779b97f4a7c15) >> 20 & mask;
}

/* The part of each stub that the slow path reads. */
struct ky_agent_stub_data {
	uint64_t slow_entry; /* the agent's; also identifies stubs among other code */
	uint32_t function;
	uint32_t site;
	uint32_t instant_site;
	uint32_t hooks; /* 0: record an instant and no return */
};

/* The program turns the CPU's counter off: the agent takes all jumps of calls out, and there is no way back. */
enum { KY_COUNTER_READ, KY_COUNTER_LEAVING, KY_COUNTER_LEFT };

/*
 * The loader has added a library: it waits (futex) until kymo has patched it and writes 0. It goes on without that after
 * 50 ms, and nothing is recorded until then: the library may need that returns are not hooked. Calls are counted.
 * A forked child, whose loader kymo does not watch, does not wait.
 */
enum { KY_LOADER_GOES_ON, KY_LOADER_WAITS, KY_LOADER_UNWATCHED, KY_LOADER_GAVE_UP };

struct ky_agent_home {
	uint64_t magic;
	uint32_t version;
	uint32_t on;
	uint32_t pid;       /* the owning process, as it sees itself: differs in a forked child */
	uint32_t owner_pid; /* the kymo that is attached; 0: none */
	uint64_t owner_started;
	uint64_t home_bytes;
	uint64_t code_at, code_bytes; /* addresses, as all below */
	uint64_t patches, patches_count, patches_max;
	/* state_bytes: of one state with its counts. The first belongs to no thread */
	uint64_t states, state_bytes;
	/* states_used: with the first, so at least 1. The agent makes more when all are used (agent/room.c) */
	uint32_t states_used, states_max;
	uint64_t directory;
	/*
	 * drum_bytes: of all of it. Its first part is mapped up to drum_heap; the rings, which begin at drum_rings, up to
	 * drum_end. The agent maps more of both when it is needed (agent/room.c)
	 */
	uint64_t drum, drum_bytes, drum_heap, drum_rings, drum_end;
	/* .eh_frame of the stubs, with which the agent answers _Unwind_Find_FDE */
	uint64_t unwind, unwind_bytes;
	uint64_t stubs_from, stubs_to; /* all stubs are in this range, among other things */
	uint64_t generation; /* differs for each drum: kymo changes it when it attaches again */
	uint64_t known, known_mask; /* struct ky_agent_known[mask + 1], a power of two; 0: none */
	/* the loader's; pause only in state RT_CONSISTENT; 0: unknown, pause always */
	uint64_t r_debug;
	uint32_t functions;
	uint32_t ranges_count;
	/* 1: a JIT is present: leave return addresses outside the ranges alone */
	uint32_t check_callers;
	uint32_t entry_only;
	uint32_t end_site; /* heap number of the trace point of kind END */
	uint32_t pause;    /* KY_LOADER_ */
	/*
	 * 1: the program has put itself into a sandbox (seccomp), which may kill it for a system call: the agent
	 * makes none
	 */
	uint32_t sealed;
	/* 1: a forked child that is in another pid namespace than its parent, or a child of one */
	uint32_t apart;
	uint32_t counter; /* KY_COUNTER_ */
	uint32_t counts;  /* of each state; functions beyond share the last one */
	/* 1: the program locks all memory that it maps (mlockall): ours is unlocked */
	uint32_t unlocks;
	uint32_t growing; /* 1: a thread maps more memory */
	uint32_t crowded; /* 1: there was no room for more states */
	uint32_t pad;
	struct ky_agent_range ranges[KY_AGENT_RANGES_MAX];
};

/* ---- distances between the parts of a stub of kind CALL (drawn in stub.c) ---- */

#define KY_STUB_HOOK_BYTES 5u  /* jmp exit */
#define KY_STUB_SLOW_BYTES 13u /* lea data, jmp */
#define KY_STUB_GO_BYTES 24u   /* from "go" to the hook: three loads, lea, call */
#define KY_STUB_PLAIN_BYTES 3u /* three pops */
#define KY_STUB_DATA_AFTER_HOOK (KY_STUB_HOOK_BYTES + KY_STUB_SLOW_BYTES)
#define KY_STUB_BODY_AFTER_HOOK                                                                    \
	(KY_STUB_DATA_AFTER_HOOK + (uint32_t)sizeof(struct ky_agent_stub_data) +                   \
	 KY_STUB_PLAIN_BYTES)

/*
 * ---- the agent as bytes: src/functrace/agent/, compiled without libc for general registers only, linked flat and
 * position independent, with its read-only data inside and no writable data (all state is in the home and the states)
 */

extern const uint8_t ky_agent_code[];
extern const size_t ky_agent_code_bytes;
/*
 * The code begins with a table of offsets from its own start; kymo puts the home's address into the word at `home`
 * before it copies the code into a program.
 */
struct ky_agent_table {
	uint64_t home;                  /* filled by kymo: address of struct ky_agent_home */
	uint32_t slow_entry, slow_exit; /* targets of the stubs' slow paths */
	uint32_t find_fde, loader, cyg_enter, cyg_exit;
	uint32_t sandbox; /* of prctl() and syscall() */
	uint32_t pad;
};

#endif
