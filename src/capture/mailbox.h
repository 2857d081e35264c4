/* SPDX-License-Identifier: MIT */
/*
 * mailbox.h: where programs that kymo started hand over their drums (src/os/mail.h is the other
 * side).
 *
 *   program: connect, send one message with a descriptor, close ──▶ backlog ──▶ accept, receive,
 * check ──▶ letter
 *
 * Senders do not wait, and may be gone when their letter is read. A sender that does not know the
 * secret, or sends anything but a drum, is counted and dropped.
 */
#ifndef KY_CAPTURE_MAILBOX_H
#define KY_CAPTURE_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_mailbox;

struct ky_letter {
	pid_t pid;                 /* the sender's, as this process sees it; 0: not visible here */
	int pidfd;                 /* -1: it is gone, or the kernel is too old */
	int fd;                    /* a drum; both are closed after the call */
	uint64_t made_boottime_ns; /* when the drum was made, from its header */
};
typedef void (*ky_letter_fn)(void *context, const struct ky_letter *letter);

/* Open the mailbox. Return 0 or -errno. */
int ky_mailbox_open(struct ky_mailbox **mailbox);
void ky_mailbox_close(struct ky_mailbox **mailbox);
/* Return the value of KYMO_DRUM_MAIL, valid as long as the mailbox is open. */
const char *ky_mailbox_address(const struct ky_mailbox *mailbox);
int ky_mailbox_fd(const struct ky_mailbox *mailbox); /* to poll */
/* Take all letters, up to a number that no honest sender reaches. */
void ky_mailbox_collect(struct ky_mailbox *mailbox, ky_letter_fn letter, void *context);

struct ky_mailbox_facts {
	uint64_t letters;
	uint64_t refused; /* invalid messages, and connections for which there was no descriptor */
	bool overrun;     /* the backlog was full once: letters may be missing */
};
void ky_mailbox_facts(const struct ky_mailbox *mailbox, struct ky_mailbox_facts *facts);

#endif
