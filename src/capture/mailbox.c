/* SPDX-License-Identifier: MIT */
/*
 * mailbox.c: see mailbox.h.
 *
 * A connection is accepted as soon as it comes. Its message nearly always is there too; a sender
 * that was interrupted between the two waits among the pending ones, of which there is a fixed
 * number: one more, and the oldest is dropped. So no sender can make the mailbox hold more than
 * that, or read more than COLLECT_MAX messages a round.
 */
#include "capture/mailbox.h"

#include "core/layout.h"
#include "os/mail.h"
#include "process/drum_find.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define BACKLOG 4096
#define COLLECT_MAX (2u * BACKLOG)
#define PENDING_MAX 1024u
#define NAME_TOKEN_BYTES 8u
#define LISTENER UINT64_MAX
/* An abstract socket, and one in the file system: other network namespaces have only that. */
#define LISTENERS 2u
#define FOLDER "tmp"

struct ky_mailbox {
	int epoll;
	int listeners[LISTENERS];              /* the second may be missing */
	char path[KY_MAIL_NAME_BYTES_MAX + 2]; /* of the second; "": none */
	int spare; /* closed for a moment to accept when no descriptors are left */
	int pending[PENDING_MAX];
	uint32_t pending_next;
	uint32_t backlog; /* as far as the kernel allows */
	char address[KY_MAIL_NAME_BYTES_MAX + 1 + KY_MAIL_SECRET_BYTES + 1];
	const char *secret; /* in address */
	struct ky_mailbox_facts facts;
};

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int append_hex(char *to, size_t room, size_t bytes)
{
	uint8_t random[KY_MAIL_SECRET_BYTES / 2];
	size_t at = strlen(to);
	if (bytes > sizeof(random) || at + 2 * bytes >= room ||
	    getrandom(random, bytes, 0) != (ssize_t)bytes)
		return -EIO;
	for (size_t i = 0; i < bytes; i++, at += 2)
		snprintf(to + at, room - at, "%02x", random[i]);
	return 0;
}

/* The pid shows a reader of /proc/net/unix whose it is. */
static int make_address(struct ky_mailbox *box)
{
	snprintf(box->address, sizeof(box->address), FOLDER "/kymo-%d-", (int)getpid());
	int error = append_hex(box->address, sizeof(box->address), NAME_TOKEN_BYTES);
	if (error)
		return error;
	char *const colon = box->address + strlen(box->address);
	strcpy(colon, ":");
	box->secret = colon + 1;
	return append_hex(box->address, sizeof(box->address), KY_MAIL_SECRET_BYTES / 2);
}

static int watch(const struct ky_mailbox *box, int fd, uint64_t what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};
	return epoll_ctl(box->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static uint32_t allowed_backlog(void)
{
	const int most = ky_proc_setting("/proc/sys/net/core/somaxconn");
	return most < BACKLOG ? (uint32_t)most : BACKLOG;
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Listen at an address that begins with this byte. Return a socket or -errno. */
static int listen_at(const struct ky_mailbox *box, char first)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const size_t bytes = (size_t)(box->secret - 1 - box->address);
	name.sun_path[0] = first;
	memcpy(name.sun_path + 1, box->address, bytes);
	const int listener = new_socket();
	if (listener >= 0 &&
	    bind(listener, (const struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes)) == 0 &&
	    listen(listener, BACKLOG) == 0 && watch(box, listener, LISTENER) == 0)
		return listener;
	const int error = -errno;
	close_if_open(listener);
	return error;
}

/* Programs of any user may send; they need the secret. */
static void listen_in_files(struct ky_mailbox *box)
{
	const int bytes = (int)(box->secret - 1 - box->address);
	snprintf(box->path, sizeof(box->path), "/%.*s", bytes, box->address);
	box->listeners[1] = listen_at(box, '/');
	if (box->listeners[1] < 0)
		box->path[0] = '\0';
	else
		(void)chmod(box->path, 0666);
}

/* Remove the socket of a kymo that was killed: nobody listens there. */
static void sweep(const char *folder, const char *base)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct stat status;
	int pid;
	if (sscanf(base, "kymo-%d-", &pid) != 1 || pid <= 0 || kill(pid, 0) == 0 ||
	    errno != ESRCH || strlen(folder) + strlen(base) + 2 > sizeof(name.sun_path))
		return;
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/%s", folder, base);
	if (lstat(name.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode) ||
	    status.st_uid != geteuid())
		return;
	const int to = new_socket();
	if (connect(to, (const struct sockaddr *)&name, sizeof(name)) != 0 && errno == ECONNREFUSED)
		unlink(name.sun_path);
	close_if_open(to);
}

static void sweep_all(void)
{
	static const char folder[] = "/" FOLDER;
	DIR *const list = opendir(folder);
	for (const struct dirent *entry; list && (entry = readdir(list));)
		sweep(folder, entry->d_name);
	if (list)
		closedir(list);
}

static int listen_there(struct ky_mailbox *box)
{
	box->epoll = epoll_create1(EPOLL_CLOEXEC);
	box->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (box->epoll < 0 || box->spare < 0)
		return -errno;
	box->listeners[0] = listen_at(box, '\0');
	if (box->listeners[0] < 0)
		return box->listeners[0];
	sweep_all();
	listen_in_files(box);
	return 0;
}

int ky_mailbox_open(struct ky_mailbox **out)
{
	*out = NULL;
	struct ky_mailbox *box = calloc(1, sizeof(*box));
	if (!box)
		return -ENOMEM;
	box->epoll = box->spare = box->listeners[0] = box->listeners[1] = -1;
	for (uint32_t i = 0; i < PENDING_MAX; i++)
		box->pending[i] = -1;
	box->backlog = allowed_backlog();
	int error = make_address(box);
	if (error == 0)
		error = listen_there(box);
	if (error)
		ky_mailbox_close(&box);
	*out = box;
	return error;
}

void ky_mailbox_close(struct ky_mailbox **mailbox)
{
	struct ky_mailbox *const box = *mailbox;
	*mailbox = NULL;
	if (!box)
		return;
	for (uint32_t i = 0; i < PENDING_MAX; i++)
		close_if_open(box->pending[i]);
	for (uint32_t i = 0; i < LISTENERS; i++)
		close_if_open(box->listeners[i]);
	if (box->path[0])
		unlink(box->path);
	close_if_open(box->spare);
	close_if_open(box->epoll);
	free(box);
}

const char *ky_mailbox_address(const struct ky_mailbox *box)
{
	return box->address;
}

int ky_mailbox_fd(const struct ky_mailbox *box)
{
	return box->epoll;
}

void ky_mailbox_facts(const struct ky_mailbox *box, struct ky_mailbox_facts *facts)
{
	*facts = box->facts;
}

/* ---- letters ---- */

/* Later versions are longer, and begin with what this one knows. */
static bool is_mail(const struct ky_mailbox *box, const struct ky_mail *mail, ssize_t bytes)
{
	return bytes >= (ssize_t)sizeof(*mail) && mail->magic == KY_MAIL_MAGIC &&
	       mail->version >= 1 && mail->bytes >= sizeof(*mail) &&
	       memcmp(mail->secret, box->secret, sizeof(mail->secret)) == 0;
}

#define FDS_MAX 4

/* Close all but the first, and return it; -1: none. */
static int take_descriptor(struct msghdr *message)
{
	int first = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

static uint64_t made_at(int fd)
{
	uint64_t ns = 0;
	const off_t at = offsetof(struct ky_drum_header, made_boottime_ns);
	return pread(fd, &ns, sizeof(ns), at) == (ssize_t)sizeof(ns) ? ns : 0;
}

/* A memfd that can be cut short is not a drum. */
static bool is_drum(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	return (seals < 0 || (seals & F_SEAL_SHRINK)) && ky_drum_find_check(fd);
}

static struct ky_letter sender_of(int connection)
{
	struct ucred peer = {0};
	socklen_t bytes = sizeof(peer);
	struct ky_letter letter = {.pidfd = -1};
	getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
	letter.pid = peer.pid;
	bytes = sizeof(letter.pidfd);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &letter.pidfd, &bytes) != 0)
		letter.pidfd = -1;
	return letter;
}

/* Take the message of a connection; return false when it is not there yet. */
static bool receive(struct ky_mailbox *box, int connection, ky_letter_fn deliver, void *context)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct ky_mail mail;
	struct iovec part = {.iov_base = &mail, .iov_len = sizeof(mail)};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const ssize_t bytes = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	const int fd = bytes < 0 ? -1 : take_descriptor(&message);
	if (fd >= 0 && is_mail(box, &mail, bytes) && is_drum(fd)) {
		struct ky_letter letter = sender_of(connection);
		letter.fd = fd;
		letter.made_boottime_ns = made_at(fd);
		box->facts.letters++;
		deliver(context, &letter);
		close_if_open(letter.pidfd);
	} else {
		box->facts.refused++;
	}
	close_if_open(fd);
	return true;
}

/* ---- connections ---- */

static void pend(struct ky_mailbox *box, int connection)
{
	const uint32_t place = box->pending_next++ % PENDING_MAX;
	if (box->pending[place] >= 0) {
		close(box->pending[place]);
		box->facts.refused++;
	}
	box->pending[place] = connection;
	if (watch(box, connection, place) != 0) {
		close(connection);
		box->pending[place] = -1;
		box->facts.refused++;
	}
}

/* Drop a connection when there is no descriptor left: otherwise poll() would report it for ever. */
static bool drop_one(struct ky_mailbox *box, int listener)
{
	close_if_open(box->spare);
	const int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close_if_open(connection);
	box->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	box->facts.refused += connection >= 0;
	return connection >= 0;
}

static void collect_pending(struct ky_mailbox *box, ky_letter_fn deliver, void *context)
{
	struct epoll_event ready[PENDING_MAX + 1];
	const int count = epoll_wait(box->epoll, ready, (int)(PENDING_MAX + 1), 0);
	for (int i = 0; i < count; i++) {
		const uint64_t place = ready[i].data.u64;
		if (place == LISTENER || box->pending[place] < 0)
			continue;
		if (receive(box, box->pending[place], deliver, context)) {
			close(box->pending[place]);
			box->pending[place] = -1;
		}
	}
}

static void collect_new(struct ky_mailbox *box, int listener, ky_letter_fn deliver, void *context)
{
	uint32_t taken = 0;
	for (; taken < COLLECT_MAX; taken++) {
		const int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (connection < 0 && (errno == EMFILE || errno == ENFILE) &&
		    drop_one(box, listener))
			continue;
		if (connection < 0)
			break;
		if (receive(box, connection, deliver, context))
			close(connection);
		else
			pend(box, connection);
	}
	box->facts.overrun |= taken >= box->backlog;
}

void ky_mailbox_collect(struct ky_mailbox *box, ky_letter_fn deliver, void *context)
{
	collect_pending(box, deliver, context);
	for (uint32_t i = 0; i < LISTENERS; i++) {
		if (box->listeners[i] >= 0)
			collect_new(box, box->listeners[i], deliver, context);
	}
}
