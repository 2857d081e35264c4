/* SPDX-License-Identifier: MIT */
/* mail.c: see mail.h. What the message says; os.h has the sending. */
#include "core/mail.h"

#include "os/os.h"

#include <string.h>

void ky_mail_post(const char *address, int fd)
{
	const char *const colon = strchr(address, ':');
	if (!colon || colon == address || colon - address > (int)KY_MAIL_NAME_BYTES_MAX ||
	    strlen(colon + 1) != KY_MAIL_SECRET_BYTES)
		return;
	struct ky_mail mail = {
		.magic = KY_MAIL_MAGIC,
		.version = KY_MAIL_VERSION,
		.bytes = sizeof(mail),
		.pid = (uint32_t)ky_os_pid(),
	};
	memcpy(mail.secret, colon + 1, sizeof(mail.secret));
	ky_os_post(address, (size_t)(colon - address), &mail, sizeof(mail), fd);
}
