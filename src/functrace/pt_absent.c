/* SPDX-License-Identifier: MIT */
/* pt_absent.c: the engine pt without libipt: it only returns an error. */
#include "functrace/pt.h"

#include <errno.h>
#include <stdio.h>

bool ky_pt_available(char why[KY_MESSAGE_BYTES])
{
#if defined(__x86_64__)
	snprintf(why, KY_MESSAGE_BYTES,
		 "kymo was built without libipt, which decodes Intel Processor Trace");
#else
	snprintf(why, KY_MESSAGE_BYTES, "this CPU is not an x86: it has no Intel Processor Trace");
#endif
	return false;
}

int ky_pt_open(struct ky_pt **pt, const struct ky_functrace_options *options,
	       char message[KY_MESSAGE_BYTES])
{
	(void)options;
	*pt = NULL;
	ky_pt_available(message);
	return -ENOTSUP;
}

/* Nothing was opened: none of the others is called. */
int ky_pt_add(struct ky_pt *pt, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	(void)pt;
	(void)pid;
	ky_pt_available(message);
	return -ENOTSUP;
}

void ky_pt_round(struct ky_pt *pt)
{
	(void)pt;
}

void ky_pt_decode(struct ky_pt *pt)
{
	(void)pt;
}

void ky_pt_ended(struct ky_pt *pt, pid_t pid)
{
	(void)pt;
	(void)pid;
}

void ky_pt_close(struct ky_pt **pt)
{
	*pt = NULL;
}
