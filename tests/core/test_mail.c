/* SPDX-License-Identifier: MIT */
/*
 * test_mail.c: the program's side of KYMO_DRUM_MAIL: each drum is handed over once, when it is made, and a mailbox that is
 * not there, or does not answer, changes nothing.
 */
#include "os/mail.h"
#include "os/os.h"
#include "readback.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/kymo.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECRET "0123456789abcdef0123456789ABCDEF"

static char address[96];

static void small_drum(void)
{
	ky_limits.ring_bytes = 64u << 10;
	ky_limits.total_bytes = 1u << 20;
	ky_limits.categories = "*";
	ky_limits.mailbox = address;
}

static void trace(uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		KYMO_INSTANT("net", "event", "number", i);
}

static socklen_t name_of(struct sockaddr_un *name)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	const size_t bytes = strlen(address) - strlen(":" SECRET);
	memcpy(name->sun_path + 1, address, bytes);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

static int listen_with(int backlog)
{
	struct sockaddr_un name;
	snprintf(address, sizeof(address), "kymo-test-%d:" SECRET, (int)getpid());
	const socklen_t bytes = name_of(&name);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&name, bytes) == 0);
	CHECK(listen(fd, backlog) == 0);
	return fd;
}

/* The next letter, which is there already: its descriptor, or -1. */
static int letter(int listener, uint32_t *pid)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct ky_mail mail;
	struct iovec part = {&mail, sizeof(mail)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const int from = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (from < 0)
		return -1;
	CHECK(recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == (ssize_t)sizeof(mail));
	CHECK(mail.magic == KY_MAIL_MAGIC && mail.version == KY_MAIL_VERSION);
	CHECK(mail.bytes == sizeof(mail) && memcmp(mail.secret, SECRET, sizeof(mail.secret)) == 0);
	CHECK(message.msg_controllen == CMSG_SPACE(sizeof(int)));
	int fd;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	CHECK(recv(from, &mail, sizeof(mail), MSG_DONTWAIT) == 0); /* one, and the end */
	close(from);
	*pid = mail.pid;
	return fd;
}

static void wait_for(pid_t pid)
{
	int status = -1;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void expect_drum(int fd)
{
	CHECK(fd >= 0 && ky_os_is_drum(fd) && ky_os_sealed(fd));
	CHECK(ky_os_identity(fd) == ky_drum_peek()->identity);
	CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
}

/* ---- once for each drum ---- */

static void handed_over(void)
{
	uint32_t pid;
	const int box = listen_with(16);
	small_drum();
	CHECK(letter(box, &pid) < 0);
	errno = 4711;
	trace(1);
	CHECK(errno == 4711);
	const int fd = letter(box, &pid);
	expect_drum(fd);
	CHECK(pid == (uint32_t)getpid());
	trace(1000);
	CHECK(letter(box, &pid) < 0);
	CHECK(readback(NULL, NULL).events == 1001);
}

static void a_drum_is_handed_over_when_it_is_made(void **state)
{
	(void)state;
	assert_int_equal(in_child(handed_over), 0);
}

static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void forked_by(pid_t (*fork_it)(void))
{
	uint32_t pid;
	const int box = listen_with(16);
	small_drum();
	trace(10);
	CHECK(letter(box, &pid) >= 0 && letter(box, &pid) < 0);
	const pid_t child = fork_it();
	if (child == 0) {
		errno = 4711;
		trace(10);
		CHECK(errno == 4711);
		const int fd = letter(box, &pid);
		expect_drum(fd);
		CHECK(pid == (uint32_t)ky_os_pid());
		trace(10);
		CHECK(letter(box, &pid) < 0);
		_exit(0);
	}
	wait_for(child);
	trace(10);
	CHECK(letter(box, &pid) < 0);
}

static void forked(void)
{
	forked_by(fork);
}

static void raw_forked(void)
{
	forked_by(raw_fork);
}

static void a_forked_child_hands_over_its_own(void **state)
{
	(void)state;
	assert_int_equal(in_child(forked), 0);
	assert_int_equal(in_child(raw_forked), 0);
}

static void without_events(void)
{
	uint32_t pid;
	const int box = listen_with(16);
	small_drum();
	CHECK(ky_drum_get() && letter(box, &pid) >= 0);
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	wait_for(child);
	CHECK(letter(box, &pid) < 0);
}

static void a_child_that_does_not_trace_sends_nothing(void **state)
{
	(void)state;
	assert_int_equal(in_child(without_events), 0);
}

/* ---- another program ---- */

static void execute(void)
{
	setenv("KYMO_DRUM_MAIL", address, 1);
	setenv("KYMO_LIMITS", "total=1M", 1);
	execl("/proc/self/exe", "test_mail", "trace", (char *)NULL);
	_exit(126);
}

static void vforked(void)
{
	uint32_t pid;
	const int box = listen_with(16);
	small_drum();
	trace(10);
	const int own = letter(box, &pid);
	const pid_t child = vfork();
	if (child == 0)
		execute();
	wait_for(child);
	const int others = letter(box, &pid);
	CHECK(pid == (uint32_t)child && others >= 0);
	CHECK(ky_os_identity(others) != ky_os_identity(own));
	CHECK(letter(box, &pid) < 0);
	trace(10);
	CHECK(readback(NULL, NULL).events == 20);
}

/* Without KYMO_CATEGORIES: the receiver switches them on. */
static void vfork_and_exec_hand_over_the_new_programs_drum(void **state)
{
	(void)state;
	if (sanitized())
		skip();
	assert_int_equal(in_child(vforked), 0);
}

/* ---- mailboxes that are none ---- */

static void expect_nothing_changed(void)
{
	small_drum();
	errno = 4711;
	trace(100);
	CHECK(errno == 4711);
	const pid_t child = fork();
	if (child == 0) {
		errno = 4711;
		trace(100);
		CHECK(errno == 4711 && readback(NULL, NULL).events == 100);
		_exit(0);
	}
	wait_for(child);
	CHECK(readback(NULL, NULL).events == 100);
}

static void no_mailbox(void)
{
	strcpy(address, "kymo-nobody-is-there:" SECRET);
	expect_nothing_changed();
}

static void dead_mailbox(void)
{
	close(listen_with(16));
	expect_nothing_changed();
}

static void malformed(void)
{
	static const char *const values[] = {"", ":", "a", "a:", "a:b", ":" SECRET, "a" SECRET};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		ky_mail_post(values[i], 1);
	char longer[300];
	memset(longer, 'x', sizeof(longer));
	strcpy(longer + 200, ":" SECRET);
	ky_mail_post(longer, 1);
}

static void a_mailbox_that_is_not_there_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(in_child(no_mailbox), 0);
	assert_int_equal(in_child(dead_mailbox), 0);
	assert_int_equal(in_child(malformed), 0);
}

/* Nobody accepts: after two connections another would have to wait. */
static void full_mailbox(void)
{
	const int box = listen_with(0);
	struct sockaddr_un name;
	const socklen_t bytes = name_of(&name);
	int last = 0;
	for (int i = 0; i < 100 && last == 0; i++) {
		const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		last = connect(to, (struct sockaddr *)&name, bytes) == 0 ? 0 : errno;
	}
	CHECK(last == EAGAIN);
	alarm(300); /* a hang ends it */
	expect_nothing_changed();
	close(box);
}

static void a_mailbox_that_is_full_is_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(in_child(full_mailbox), 0);
}

/* A process that takes the name after kymo ended does not get the program's events. */
static void strangers_mailbox(void)
{
	int ready[2], done[2];
	uint32_t pid;
	snprintf(address, sizeof(address), "kymo-test-%d:" SECRET, (int)getpid());
	CHECK(pipe(ready) == 0 && pipe(done) == 0);
	const pid_t stranger = fork();
	if (stranger == 0) {
		char byte;
		CHECK(setresuid(65534, 65534, 65534) == 0);
		struct sockaddr_un name;
		const socklen_t bytes = name_of(&name);
		const int box = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		CHECK(bind(box, (struct sockaddr *)&name, bytes) == 0 && listen(box, 16) == 0);
		CHECK(write(ready[1], "", 1) == 1 && read(done[0], &byte, 1) == 1);
		const int from = accept4(box, NULL, NULL, SOCK_CLOEXEC);
		CHECK(from >= 0 && recv(from, &pid, sizeof(pid), MSG_DONTWAIT) == 0);
		_exit(0);
	}
	char byte;
	CHECK(read(ready[0], &byte, 1) == 1);
	small_drum();
	trace(10);
	CHECK(write(done[1], "", 1) == 1);
	wait_for(stranger);
}

static void a_strangers_mailbox_gets_nothing(void **state)
{
	(void)state;
	if (geteuid() != 0) /* another user is needed */
		skip();
	assert_int_equal(in_child(strangers_mailbox), 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "trace") == 0) {
		trace(10);
		return ky_drum_peek() ? 0 : 1; /* made when the library was loaded */
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_drum_is_handed_over_when_it_is_made),
		cmocka_unit_test(a_forked_child_hands_over_its_own),
		cmocka_unit_test(a_child_that_does_not_trace_sends_nothing),
		cmocka_unit_test(vfork_and_exec_hand_over_the_new_programs_drum),
		cmocka_unit_test(a_mailbox_that_is_not_there_changes_nothing),
		cmocka_unit_test(a_mailbox_that_is_full_is_not_waited_for),
		cmocka_unit_test(a_strangers_mailbox_gets_nothing),
	};
	return cmocka_run_group_tests_name("mail", tests, NULL, NULL);
}
