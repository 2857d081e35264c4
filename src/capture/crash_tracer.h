/* SPDX-License-Identifier: MIT */
/*
 * crash_tracer.h: the process that traces others for the crash watch (crash_watch.h), and the
 * messages between it and kymo, one per packet.
 *
 *   kymo ── ADD pid ──▶ tracer ── PTRACE_SEIZE of each thread ──▶ target
 *        ◀─ ADDED ─────        ◀─ stops: signals, new threads and children ─
 *        ◀─ CRASHED ───   unwinds the stopped thread, then lets it die, or its handler go on
 *        ◀─ ENDED ─────
 *        ── LEAVE pid ▶ lets go of all threads of it, until it is added again ─▶ LEFT
 *
 * It is a process and not a thread because of targets that are kymo's own children: waitpid() reports
 * the stops of a child that its parent's process traces to the first thread that asks, and hides job
 * control. All targets are released when it ends for any reason; it ends when kymo's end of the
 * socket closes, so also when kymo is killed.
 */
#ifndef KY_CAPTURE_CRASH_TRACER_H
#define KY_CAPTURE_CRASH_TRACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KY_CRASH_STACK_BYTES 8192

/*
 * Write the stack of a thread that the calling thread stopped by ptrace, one line for each frame, innermost first:
 *
 *   skip_blanks (http.c:31, inlined)
 *   parse_header(char const*) (http.c:112)
 *   main (server.c:40)
 *   0x7f31c2029d90 (libc.so.6)
 *
 * Return the number of frames; with 0 the text is empty. Frames are bounded in number and, between two of them, in
 * time: a program's debug information may be gigabytes.
 */
int ky_crash_stack(pid_t pid, pid_t tid, char text[KY_CRASH_STACK_BYTES]);

/* Time for all threads of a process to stop: one may be waiting for its vfork child. */
#define KY_CRASH_LEAVE_MS 2000u

enum ky_crash_message_kind {
	KY_CRASH_ADD,     /* to the tracer: pid */
	KY_CRASH_ADDED,   /* pid, status: 0 or -errno; other: the tracer that it has already */
	KY_CRASH_CRASHED, /* pid, tid, status: the signal, address, thread, stack */
	KY_CRASH_ENDED,   /* pid, status as waitpid() has it */
	KY_CRASH_LEAVE,   /* to the tracer: pid */
	KY_CRASH_LEFT,    /* pid, status: 0, or -EBUSY when a thread could not be stopped for it */
};

/* What CRASHED has in other. */
enum ky_crash_how {
	KY_CRASH_FATAL,
	KY_CRASH_HANDLED, /* the program's own handler has it, and does not come back */
	KY_CRASH_AGAIN,   /* fatal, after one that was handled in the end */
};

struct ky_crash_message {
	uint32_t kind; /* enum ky_crash_message_kind */
	int32_t pid;
	int32_t tid;
	int32_t status;
	int32_t other;
	char thread[20];                  /* its name */
	uint64_t address;                 /* of the fault, where the signal has one */
	uint64_t time_ns;                 /* CLOCK_BOOTTIME */
	char stack[KY_CRASH_STACK_BYTES]; /* a message ends after its NUL */
};

/* Report whether a signal that ended a process is a crash. Signals that ask it to end are not. */
bool ky_crash_tracer_counts(int signal);

/* Serve the socket until it is closed. Never return. */
_Noreturn void ky_crash_tracer(int socket);

#endif
