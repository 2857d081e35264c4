/* SPDX-License-Identifier: MIT */
/*
 * mail.h: hand a new drum over to the process that started the program.
 *
 *   KYMO_DRUM_MAIL=NAME:SECRET
 *
 * NAME is the name of an abstract unix socket (SOCK_SEQPACKET), and /NAME that of a socket in the file system, for programs
 * in another network namespace. The recorder sends one message with the drum's descriptor there and waits for nothing.
 * The message contains SECRET, because every user of the machine can see the names of sockets.
 */
#ifndef KY_OS_MAIL_H
#define KY_OS_MAIL_H

#include <stdint.h>

#define KY_MAIL_MAGIC 0x6c69616du /* "mail" */
#define KY_MAIL_VERSION 1
#define KY_MAIL_SECRET_BYTES 32u
#define KY_MAIL_NAME_BYTES_MAX 100u

struct ky_mail {
	uint32_t magic;
	uint16_t version;
	uint16_t bytes; /* of this struct; later versions only add at the end */
	uint32_t pid;   /* in the sender's pid namespace */
	uint32_t pad;
	char secret[KY_MAIL_SECRET_BYTES];
};
_Static_assert(sizeof(struct ky_mail) == 48, "a message between processes");

/*
 * Send the descriptor to an address, the variable's value. Ignore one that is malformed or leads nowhere. Signal-safe.
 */
void ky_mail_post(const char *address, int fd);

#endif
