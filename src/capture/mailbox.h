/* SPDX-License-Identifier: MIT */
/*
 * mailbox.h: where programs that kymo started hand over their drums (src/os/mail.h has the other side).
 *
 *   program: connect, send one message with a descriptor, close ──▶ backlog ──▶ accept, receive, check ──▶ letter
 *
 * The senders wait for nothing and may be gone when their letter is read. Who does not know the secret, or sends
 * anything but a drum, is counted and dropped.
 */
#ifndef KY_CAPTURE_MAILBOX_H
#define KY_CAPTURE_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_mailbox;

struct ky_letter {
	pid_t pid; /* the sender's, as this process sees it; 0: it cannot be seen from here */
	int pidfd; /* -1: it is gone, or the kernel cannot tell */
	int fd;    /* a drum; both are closed after the call */
	uint64_t made_boottime_ns; /* when the drum was made, as it says */
};
typedef void (*ky_letter_fn)(void *context, const struct ky_letter *letter);

/* 0 or -errno. */
int ky_mailbox_open(struct ky_mailbox **mailbox);
void ky_mailbox_close(struct ky_mailbox **mailbox);
/* The value of KYMO_DRUM_MAIL; as long as the mailbox is open. */
const char *ky_mailbox_address(const struct ky_mailbox *mailbox);
int ky_mailbox_fd(const struct ky_mailbox *mailbox); /* to poll */
/* Takes out all letters that are there, up to a number that no honest sender reaches. */
void ky_mailbox_collect(struct ky_mailbox *mailbox, ky_letter_fn letter, void *context);

struct ky_mailbox_facts {
	uint64_t letters;
	uint64_t
		refused; /* messages that are none, and connections for which there was no descriptor */
	bool overrun; /* the backlog was full once: some may not have come through */
};
void ky_mailbox_facts(const struct ky_mailbox *mailbox, struct ky_mailbox_facts *facts);

#endif
