/* SPDX-License-Identifier: MIT */
/*
 * child.h: the program that `kymo run` starts.
 *
 *   kymo     ky_child_fork() ── samples, probes, filters are set ── ky_child_exec() ─▶ signals, reap
 *   child    waits at a pipe ······································ exec ─▶ the program
 *
 * So no part of the program runs unwatched, and what is set on the child is set on the program. If
 * kymo dies before it lets the child go, the child ends; if it dies later, the program continues.
 * The program has kymo's process group, terminal, signal mask and dispositions, as if the shell
 * had started it.
 */
#ifndef KY_CAPTURE_CHILD_H
#define KY_CAPTURE_CHILD_H

#include "capture/bundle.h"

#include <signal.h>
#include <sys/types.h>

struct ky_child {
	pid_t pid;  /* 0: none */
	int go;     /* closed unwritten: it ends without its program */
	int failed; /* the errno of exec; closed when exec succeeded */
	int status; /* as waitpid() has it, once it ended */
	bool running;
	bool traced; /* ky_child_hold() succeeded */
	bool held;   /* stopped at its entry point, until ky_child_release() */
};

struct ky_child_options {
	char *const *command;
	const char *mailbox;    /* KYMO_DRUM_MAIL; NULL: none */
	const char *categories; /* KYMO_CATEGORIES */
	uint64_t ring_bytes;    /* KYMO_BUFFER; 0: keep it, or use KY_CAPTURE_RING_BYTES */
	int output;             /* its standard output: kymo's own may be the capture's */
	pid_t tracer;           /* another process that may trace it (Yama); 0: none */
	bool hold;              /* it may be held at its entry point: ky_child_exec() */
	const sigset_t *mask;   /* its signal mask */
	const struct sigaction *child_action; /* its action for SIGCHLD */
};

/* Find the file that a shell would run for this word. Return 0, -ENOENT or -EACCES. */
int ky_child_find(const char *word, char *path, size_t room);

int ky_child_fork(struct ky_child *child, const struct ky_child_options *options,
		  char message[KY_MESSAGE_BYTES]);
/* Trace the child, so that it can be held. Return 0, or -errno: it cannot be held. */
int ky_child_hold(struct ky_child *child);
/*
 * Let the child go, and wait until it is the program. Return 0, or -errno of exec with a message;
 * then the child is gone. With hold it is stopped at the program's entry point, if possible.
 */
int ky_child_exec(struct ky_child *child, const char *word, bool hold,
		  char message[KY_MESSAGE_BYTES]);
void ky_child_release(struct ky_child *child);
/* Report whether it has ended; then its status is known. */
bool ky_child_reap(struct ky_child *child);
/* Note that another part reaped it. */
void ky_child_ended(struct ky_child *child, int status);
void ky_child_pass(const struct ky_child *child, int number);
/* Kill it and wait for it. */
void ky_child_end(struct ky_child *child);
/* Close the pipes; a child that never became the program ends. */
void ky_child_close(struct ky_child *child);

/* ---- holding a program before its first instruction ---- */

/*
 * At its entry point the loader has mapped all libraries that it is linked with, and nothing has run but their
 * constructors. So a probe on a function of a library, and the watch for a crash, can be set before the program begins.
 * The way there is traced with a breakpoint; then the tracer releases the program, stopped by SIGSTOP, so that another
 * may trace it. If kymo is killed then, the kernel lets the program continue.
 */

/* Begin with a child of this thread that has not called exec yet. Return 0, or -errno: then do not call the rest. */
int ky_child_hold_begin(pid_t pid);
/*
 * Wait, after it was let go. Return 1 when it is stopped at the program's entry point; 0 when it
 * runs; -ECHILD when it ended, with *status as waitpid() has it.
 */
int ky_child_hold_at_entry(pid_t pid, int *status);
/* Let the program run. */
void ky_child_hold_end(pid_t pid);

#endif
