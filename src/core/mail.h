/* SPDX-License-Identifier: MIT */
/*
 * mail.h: a drum is handed over to whoever started the program (KYMO_DRUM_MAIL), when it is made.
 *
 *   KYMO_DRUM_MAIL=NAME:SECRET
 *
 * NAME is that of an abstract unix socket (SOCK_SEQPACKET). One message with the drum's descriptor is sent to it,
 * and nothing is waited for. The SECRET is in the message, for the names of sockets are known to every user of the
 * machine.
 */
#ifndef KY_CORE_MAIL_H
#define KY_CORE_MAIL_H

#include <stdint.h>

#define KY_MAIL_MAGIC 0x6c69616du /* "mail" */
#define KY_MAIL_VERSION 1
#define KY_MAIL_SECRET_BYTES 32u
#define KY_MAIL_NAME_BYTES_MAX 100u

struct ky_mail {
	uint32_t magic;
	uint16_t version;
	uint16_t bytes; /* of this; later versions only add at the end */
	uint32_t pid;   /* as the sender sees itself */
	uint32_t pad;
	char secret[KY_MAIL_SECRET_BYTES];
};
_Static_assert(sizeof(struct ky_mail) == 48, "a message between processes");

/* address is the variable's value; one that is malformed, or leads nowhere, is passed over. Signal-safe. */
void ky_mail_post(const char *address, int fd);

#endif
