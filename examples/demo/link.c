/* SPDX-License-Identifier: MIT */
/*
 * link.c: pairs of SOCK_SEQPACKET sockets. A packet arrives whole or not at all, and several threads
 * may send on one socket. Threads and the second process use the same links, so that a client does
 * not know where it runs.
 *
 * profile.c's signal interrupts system calls; poll() is one that the kernel does not restart.
 */
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

void link_pair(int *server, int *client)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		perror("demo: cannot make a pair of sockets");
		exit(1);
	}
	*server = ends[0];
	*client = ends[1];
}

bool link_send(int link, const void *packet, size_t bytes)
{
	ssize_t sent;
	do {
		sent = send(link, packet, bytes, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)bytes;
}

enum link_status link_receive(int link, void *packet, size_t bytes, int timeout_ms)
{
	struct pollfd waiting = {.fd = link, .events = POLLIN};
	const int ready = poll(&waiting, 1, timeout_ms);
	if (ready == 0 || (ready < 0 && errno == EINTR))
		return LINK_NOTHING;
	const ssize_t got = recv(link, packet, bytes, 0);
	if (got < 0 && errno == EINTR)
		return LINK_NOTHING;
	return got == (ssize_t)bytes ? LINK_OK : LINK_CLOSED;
}
