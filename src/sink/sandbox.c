/* SPDX-License-Identifier: MIT */
/* sandbox.c: what a process that is about to give up system calls or descriptors needs to know and to do. */
#include "core/slots.h"
#include "sink/session.h"

#include <errno.h>

int kymo_prepare(int sandbox)
{
	if (sandbox != KYMO_SANDBOX_FILTER && sandbox != KYMO_SANDBOX_STRICT)
		return KYMO_EOPTIONS;
	const int saved_errno = errno;
	struct ky_drum *drum = ky_drum_get();
	if (drum)
		ky_env_begin();
	const int error =
		drum ? ky_slots_prepare_thread(drum, sandbox == KYMO_SANDBOX_STRICT) : KYMO_EDRUM;
	errno = saved_errno;
	return error;
}

/* The descriptors found so far. */
struct descriptors {
	int *fds;
	size_t max;
	int count;
};

static void add(int fd, void *context)
{
	struct descriptors *d = context;
	if (fd < 0)
		return;
	if (d->fds && (size_t)d->count < d->max)
		d->fds[d->count] = fd;
	d->count++;
}

int kymo_descriptors(int *fds, size_t max)
{
	struct descriptors found = {fds, max, 0};
	const struct ky_drum *drum = ky_drum_get();
	add(drum ? drum->fd : -1, &found);
	add(ky_marker_fd(), &found);
	ky_session_each_fd(add, &found);
	return found.count;
}
