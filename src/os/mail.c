/* SPDX-License-Identifier: MIT */
/*
 * mail.c: send a message with a descriptor to a unix socket. Raw system calls: glibc's are cancellation
 * points, and a thread must not end in the middle of making a drum.
 */
#include "os/mail.h"

#include "os/os.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Report whether the receiver is this program's user or root: another user may have taken the socket's name
 * after its owner ended.
 */
static bool trusted(int to)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);
	return syscall(SYS_getsockopt, to, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
	       (peer.uid == 0 || (long)peer.uid == syscall(SYS_geteuid) ||
		(long)peer.uid == syscall(SYS_getuid));
}

static void send_with(int to, const void *message, size_t bytes, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
	struct msghdr all = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	memset(&control, 0, sizeof(control));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	syscall(SYS_sendmsg, to, &all, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void post(const char *name, size_t name_bytes, const struct ky_mail *mail, int fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (name_bytes >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path + 1, name, name_bytes);
	const socklen_t address_bytes =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_bytes);
	const int to =
		(int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (to < 0)
		return;
	/* After a zero byte, the name is not in the file system; in another network namespace there is only the file. */
	bool connected = syscall(SYS_connect, to, &address, address_bytes) == 0;
	if (!connected) {
		address.sun_path[0] = '/';
		connected = syscall(SYS_connect, to, &address, address_bytes) == 0;
	}
	if (connected && trusted(to))
		send_with(to, mail, sizeof(*mail), fd);
	syscall(SYS_close, to);
}

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
	post(address, (size_t)(colon - address), &mail, fd);
}
