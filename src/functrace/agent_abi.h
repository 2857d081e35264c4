/* SPDX-License-Identifier: MIT */
/*
 * agent_abi.h: what the patch engine puts into a traced program, as both sides see it: kymo, which writes it from outside,
 * and the code that runs there (stubs made by stub.c, the agent compiled from agent.c). Offsets are in the stubs'
 * instructions: what changes here changes KY_AGENT_VERSION.
 *
 *   home        a private mapping of a memfd named KY_AGENT_NAME, so that whoever attaches next finds it in /proc/PID/maps
 *     0            struct ky_agent_home: where everything else is; is on or off
 *     code_at      the agent: position independent, libc-free, general registers only (r-x)
 *   patches     struct ky_agent_patch[]: what was overwritten, to be put back by anybody (private, rw)
 *   stubs       near each module (within 2 GiB): a stub for each function (private, r-x)
 *   states      a struct ky_agent_state for each thread; the gs register of a thread points to its own, or to the first,
 *               which is nobody's: then its first call takes one. Zeroed by fork
 *               (MADV_WIPEONFORK), so that a child finds out at its first call
 *   directory   u64[KY_AGENT_PIECES]: where the frames of each 16 MiB of addresses are, 0: none yet (MAP_NORESERVE)
 *   frames      a struct ky_agent_frame for each 8 bytes of stack, made piece by piece when a stack is first seen there
 *   drum        a drum as any other (layout.h), made by kymo: a memfd, shared. A trace point for each function.
 *
 * What a call does. rsp is S at the function's first instruction, and [S] the return address:
 *
 *   function: jmp stub            stub: push rax, rdx, rcx, rdi
 *                                       checks; each can fail, and leads to the slow path:
 *                                         fs:0 is the state's thread          (gs:KY_STATE_THREAD)
 *                                         S is below the innermost open call  (gs:KY_STATE_TOP)
 *                                         there are frames for S              (directory)
 *                                         the counter's high half is as it was; the block has room
 *                                         [S] is not a stub's already         (frame.hook)
 *                                       frame = {[S], hook, top, mark}; top = S; count++; one word into the ring
 *                                       pop; rsp = S + 8; call body     ◀── so [S] is "hook" now, and returns stay paired
 *                                 hook: checks; top = frame.previous; one word into the ring; [S] = frame.returns; ret
 *                                 body: the function's first instructions, moved; jmp function + n
 *
 * A tail call finds [S] hooked already: in the slow path the caller's span ends and the callee's begins, and the body is
 * jumped to. longjmp and exceptions leave frames below S open: the next call or return above them ends their spans. Frames are
 * found by address alone, so a stack may be used by any thread, and returns are right in any order.
 *
 * Off (detached, or by the agent itself: counter.c): no function leads to a stub any more, but stubs that are on some stack
 * still return through "hook", and threads inside them go on: the memory stays. Then home.on is 0, THREAD of every state is
 * 0, and only returns are done.
 */
#ifndef KY_FUNCTRACE_AGENT_ABI_H
#define KY_FUNCTRACE_AGENT_ABI_H

#include "functrace/agent_abi.h"

#include <stddef.h>
#include <stdint.h>

#define KY_AGENT_MAGIC 0x636e75666f6d796bu /* "kymofunc" */
#define KY_AGENT_VERSION 3
#define KY_AGENT_NAME "kymo-functions"

#define KY_AGENT_PIECE_SHIFT 24
#define KY_AGENT_PIECES (UINT64_C(1) << (47 - KY_AGENT_PIECE_SHIFT))
#define KY_AGENT_FUNCTIONS_MAX (1u << 20)
#define KY_AGENT_STATES_MAX 4096u
#define KY_AGENT_STATE_BYTES 4096u /* the counts follow */

/* Of 8 bytes of stack, when a return address is there. directory[S >> 24] + S * 4: the directory holds biased addresses. */
struct ky_agent_frame {
	uint64_t returns;  /* where the function was called from */
	uint64_t hook;     /* what is in [S] instead */
	uint64_t previous; /* S of the next open call outwards; ~0: none */
	uint64_t mark;     /* of the state whose open call it is; 0: its span has ended already */
};

/*
 * A thread's own. `thread` is fs:0 of its owner; another value (a thread that inherited gs from the one that made it, a
 * forked child, off, a thread that is in the slow path) sends every call to the slow path. There a state that is not
 * the caller's, or not of home's generation, is replaced by one that is: gs may lead to any state, also one that is all zeros.
 */
struct ky_agent_state {
	uint64_t thread;
	uint64_t top; /* S of the innermost open call; ~0: none */
	uint64_t pos; /* next free word in the ring */
	uint64_t
		limit; /* pos at least this: a new block. Some words before its end: handlers may come in between */
	uint32_t high;  /* the counter's high half */
	uint32_t tid;   /* 0: nobody's */
	uint64_t mark;  /* never the same again: frames have it */
	uint64_t self;  /* the state's own address */
	uint64_t owner; /* fs:0 */
	uint64_t generation;
	uint64_t
		busy; /* S of the call in the slow path: a call from a handler there is only counted */
	uint64_t lost;     /* events that had no ring, or came from such handlers */
	uint64_t controls; /* words in this block that are no events */
	uint64_t retry;    /* ticks: no ring could be had, and none is asked for before this */
	uint32_t name;     /* of the thread, in the heap */
	uint32_t here;     /* of the first state alone: 0 in a forked child */
	uint64_t ring[16]; /* struct ky_ring_writer (ring.h): its ring is NULL when there is none */
	uint64_t pad[482];
};
_Static_assert(sizeof(struct ky_agent_state) == KY_AGENT_STATE_BYTES, "layout");
_Static_assert(sizeof(struct ky_agent_frame) == 32, "layout");
#define KY_STATE_THREAD 0
#define KY_STATE_TOP 8
#define KY_STATE_POS 16
#define KY_STATE_LIMIT 24
#define KY_STATE_HIGH 32
#define KY_STATE_MARK 40
#define KY_STATE_SELF 48
#define KY_STATE_COUNTS KY_AGENT_STATE_BYTES /* u32 for each function: how often it was called */

/* What was overwritten; kymo's, but for programs that turn the counter off (agent/counter.c). */
struct ky_agent_patch {
	uint64_t address;
	uint64_t stub;
	uint8_t before[16];
	uint8_t after[16];
	uint8_t bytes;     /* 5, at most 16 */
	uint8_t set;       /* the code is `after` now */
	uint16_t pad;      /* the stub's form; its low byte is the kind (patch_parts.h) */
	uint32_t function; /* number: its count, its site */
};

/* A range of code whose return addresses may be taken off the stack: all ELF text but that of JITs' builtins. */
struct ky_agent_range {
	uint64_t from, bytes;
};
#define KY_AGENT_RANGES_MAX 1024u

/* __cyg_profile_func_enter and _exit are told an address: a hash table of all that are known; address 0 is free. */
struct ky_agent_known {
	uint64_t address;
	uint32_t site;
	uint32_t function; /* number of its count */
};
static inline uint64_t ky_agent_known_at(uint64_t address, uint64_t mask)
{
	return address * UINT64_C(0x9e3779b97f4a7c15) >> 20 & mask; /* then the next, and so on */
}

/* In each stub: what the slow path must know of it. */
struct ky_agent_stub {
	uint64_t slow_entry; /* the agent's; tells stubs from other code, too */
	uint32_t function;
	uint32_t site;
	uint32_t instant_site;
	uint32_t hooks; /* 0: an instant, and no return is seen */
};

/* The program turns the CPU's counter off: the agent takes all jumps of calls out, and there is no way back. */
enum { KY_COUNTER_READ, KY_COUNTER_LEAVING, KY_COUNTER_LEFT };

struct ky_agent_home {
	uint64_t magic;
	uint32_t version;
	uint32_t on;
	uint32_t pid;       /* whose it is, as it sees itself: another in a forked child */
	uint32_t owner_pid; /* the kymo that is attached; 0: none */
	uint64_t owner_started;
	uint64_t home_bytes;
	uint64_t code_at, code_bytes; /* addresses, as all below */
	uint64_t patches, patches_count, patches_max;
	uint64_t states, state_bytes;     /* of one, with its counts. The first is nobody's */
	uint32_t states_used, states_max; /* used: with the first, so at least 1 */
	uint64_t directory;
	uint64_t drum, drum_bytes;
	uint64_t unwind,
		unwind_bytes; /* .eh_frame of the stubs, of the agent's answer to _Unwind_Find_FDE */
	uint64_t stubs_from, stubs_to; /* all stubs lie in here, though not only they */
	uint64_t generation; /* another with each drum: kymo changes it when it attaches again */
	uint64_t known, known_mask; /* struct ky_agent_known[mask + 1], a power of two; 0: none */
	uint64_t
		r_debug; /* the loader's: pauses only in state RT_CONSISTENT; 0: not known, always */
	uint32_t functions;
	uint32_t ranges_count;
	uint32_t
		check_callers; /* 1: a JIT is about: return addresses outside the ranges are left alone */
	uint32_t entry_only;
	uint32_t end_site; /* heap number of the trace point of kind END */
	uint32_t
		pause; /* 1: the loader has added a library and waits (futex) until kymo has patched it and writes 0; 2: nobody did within a second, and it waits no more */
	uint32_t
		sealed; /* 1: the program has put itself into a sandbox (seccomp), which may kill it for a system call: the agent makes none */
	uint32_t
		apart; /* 1: a forked child, which is in another pid namespace than its parent, or a child of one */
	uint32_t counter; /* KY_COUNTER_ */
	uint32_t pad;
	struct ky_agent_range ranges[KY_AGENT_RANGES_MAX];
};

/* ---- distances between the parts of a stub of kind CALL (stub.c draws them) ---- */

#define KY_STUB_HOOK_BYTES 5u  /* jmp exit */
#define KY_STUB_SLOW_BYTES 13u /* lea data, jmp */
#define KY_STUB_GO_BYTES 24u   /* from "go" to the hook: three loads, lea, call */
#define KY_STUB_PLAIN_BYTES 3u /* three pops */
#define KY_STUB_DATA_AFTER_HOOK (KY_STUB_HOOK_BYTES + KY_STUB_SLOW_BYTES)
#define KY_STUB_BODY_AFTER_HOOK                                                                    \
	(KY_STUB_DATA_AFTER_HOOK + (uint32_t)sizeof(struct ky_agent_stub) + KY_STUB_PLAIN_BYTES)

#endif
