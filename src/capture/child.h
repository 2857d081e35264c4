/* SPDX-License-Identifier: MIT */
/*
 * child.h: the program that `kymo run` starts.
 *
 *   kymo     ky_child_fork() ── samples, probes, filters are set ── ky_child_exec() ─▶ signals, reap
 *   child    waits at a pipe ······································ exec ─▶ the program
 *
 * So nothing of the program runs unwatched, and what is set on the child is on the program. A kymo
 * that dies before it let the child go takes it along; one that dies later leaves the program as it
 * is. The program has kymo's process group, terminal, signal mask and dispositions, as if the shell
 * had started it.
 */
#ifndef KY_CAPTURE_CHILD_H
#define KY_CAPTURE_CHILD_H

#include "capture/bundle.h"

#include <signal.h>
#include <sys/types.h>

struct ky_child {
	pid_t pid;  /* 0: there is none */
	int go;     /* closed unwritten: it ends without its program */
	int failed; /* tells the errno of exec; ends without a word when exec went well */
	int status; /* as waitpid() has it, once it ended */
	bool running;
	bool held; /* stopped at its entry point, until ky_child_release() */
};

struct ky_child_options {
	char *const *command;
	const char *mailbox;    /* KYMO_DRUM_MAIL; NULL: none */
	const char *categories; /* KYMO_CATEGORIES */
	uint64_t ring_bytes;    /* KYMO_BUFFER; 0: as it is, or KY_CAPTURE_RING_BYTES */
	int output;           /* what it has as standard output: kymo's own may be the capture's */
	pid_t tracer;         /* who else may trace it (Yama); 0: nobody */
	bool hold;            /* it may be held at its entry point: ky_child_exec() */
	const sigset_t *mask; /* the signal mask it gets */
	const struct sigaction *child_action; /* and what it does with SIGCHLD */
};

/* The file that a shell would run for this word. 0; -ENOENT, -EACCES. */
int ky_child_find(const char *word, char *path, size_t room);

int ky_child_fork(struct ky_child *child, const struct ky_child_options *options,
		  char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * Lets it go, and waits until it is the program: 0, or -errno of exec with a message; then it is gone. With hold
 * it is stopped at the program's entry point when that can be.
 */
int ky_child_exec(struct ky_child *child, const char *word, bool hold,
		  char message[KY_CAPTURE_MESSAGE_BYTES]);
void ky_child_release(struct ky_child *child);
/* Whether it has ended by now: its status is known then. */
bool ky_child_reap(struct ky_child *child);
/* Somebody else has reaped it. */
void ky_child_ended(struct ky_child *child, int status);
void ky_child_pass(const struct ky_child *child, int number);
/* Ends it, wherever it is. */
void ky_child_end(struct ky_child *child);
/* One that never became the program is ended. */
void ky_child_close(struct ky_child *child);

#endif
