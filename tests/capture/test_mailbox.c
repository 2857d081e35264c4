/* SPDX-License-Identifier: MIT */
/*
 * test_mailbox.c: drums of programs that were started with a mailbox arrive, however short they live and whatever they do
 * to their descriptors; and what is no drum is dropped.
 */
#include "core/drum.h"
#include "lives.h"
#include "os/mail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CHILDREN 2000u
#define EVENTS 20u

static struct lives lives;
static const char *box;
static char box_before[256]; /* a copy of the address */

static int open_all(void **state)
{
	(void)state;
	lives_begin(&lives, KY_PROCESSES_CHILDREN);
	box = ky_processes_mailbox(lives.processes);
	return box ? 0 : -1;
}

static int close_all(void **state)
{
	(void)state;
	const bool right = lives.mistakes == 0;
	lives_end(&lives);
	return right ? 0 : -1;
}

static struct ky_processes_facts facts(void)
{
	struct ky_processes_facts now;
	ky_processes_facts(lives.processes, &now);
	return now;
}

/* kymo does not wait for it: its end does not depend on that. */
static void reap(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Programs.
 * ------------------------------------------------------------------------------------------------
 */

static void fork_in_a_row(void *context)
{
	(void)context;
	trace_events(1);
	for (uint32_t i = 0; i < CHILDREN; i++) {
		const pid_t child = fork();
		if (child == 0) {
			trace_events(EVENTS);
			_exit(0);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			_exit(1);
	}
}

static void two_thousand_children_in_a_row_are_all_there(void **state)
{
	(void)state;
	const pid_t pid = start(fork_in_a_row, NULL, box);
	char message[KY_MESSAGE_BYTES];
	assert_int_equal(ky_processes_add(lives.processes, pid, message), 0);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	LIVES_UNTIL(&lives, lives_all_ended(&lives) == lives.count);
	reap(pid);
	assert_int_equal(lives_of(&lives, pid)->status, 0);
	assert_int_equal(lives_of(&lives, pid)->events, 1);
	assert_int_equal(facts().letters, CHILDREN + 1);
	uint32_t whole = 0;
	for (uint32_t i = 0; i < lives.count; i++) {
		const struct life *life = &lives.life[i];
		const bool is_whole = life->drums == 1 && life->events == EVENTS;
		whole += is_whole;
		if (!is_whole && life->pid != pid)
			print_message("process %d: %u buffers, %u events\n", (int)life->pid,
				      (unsigned)life->drums, (unsigned)life->events);
	}
	assert_int_equal(whole, CHILDREN);
	assert_int_equal(facts().refused, 0);
	assert_false(facts().mailbox_overflow);
}

static void close_from(unsigned first)
{
	if (syscall(SYS_close_range, first, ~0u, 0) != 0)
		_exit(3);
}

/* As daemons do, and as python3 does before it runs a program. */
static void close_before_and_after(void *context)
{
	(void)context;
	trace_events(1);
	const pid_t child = fork();
	if (child == 0) {
		close_from(3);
		trace_events(EVENTS);
		close_from(0);
		trace_events(EVENTS);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void a_child_that_closes_all_descriptors_is_there(void **state)
{
	(void)state;
	const pid_t pid = start(close_before_and_after, NULL, box);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	LIVES_UNTIL(&lives, lives_all_ended(&lives) == 2);
	reap(pid);
	assert_int_equal(lives.count, 2);
	assert_int_equal(lives.life[0].events + lives.life[1].events, 1 + 2 * EVENTS);
}

static void run_program(void *context)
{
	(void)context;
	setenv("KYMO_DRUM_MAIL", box, 1);
	setenv("KYMO_CATEGORIES", "*", 1);
	setenv("KYMO_LIMITS", "total=1M", 1);
	const pid_t child = fork();
	if (child == 0) {
		close_from(3);
		execl("/proc/self/exe", "test_mailbox", "trace", (char *)NULL);
		_exit(126);
	}
	waitpid(child, NULL, 0);
}

/* A sanitizer's checks at the end are a process, too, which traces nothing. */
static const struct life *ended_with_drum(void)
{
	for (uint32_t i = 0; i < lives.count; i++)
		if (lives.life[i].drums && lives.life[i].ended)
			return &lives.life[i];
	return NULL;
}

static void a_program_that_is_run_by_another_is_there(void **state)
{
	(void)state;
	const pid_t pid = start(run_program, NULL, NULL);
	LIVES_UNTIL(&lives, ended_with_drum());
	reap(pid);
	assert_int_equal(facts().letters, 1);
	assert_int_equal(ended_with_drum()->events, EVENTS);
}

static void trace_and_end(void *context)
{
	trace_events(EVENTS);
	if (context)
		raise(SIGKILL);
}

/* Gone, and waited for, before kymo looks for the first time. */
static void a_process_that_is_gone_is_told_with_its_drum(void **state)
{
	(void)state;
	const pid_t pid = start(trace_and_end, state, box);
	reap(pid);
	LIVES_UNTIL(&lives, lives_all_ended(&lives) == 1);
	assert_int_equal(lives.count, 1);
	assert_int_equal(lives.life[0].pid, pid);
	assert_int_equal(lives.life[0].drums, 1);
	assert_int_equal(lives.life[0].events, EVENTS);
	/* Kernels before 6.15 do not tell how. */
	assert_true(lives.life[0].status == SIGKILL || lives.life[0].status == -1);
}

/* A child of that number, which is free; -1 when this user may not choose. */
static pid_t fork_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* The numbers of a machine that starts many processes come round while kymo waits for a CPU. */
static void a_number_that_is_used_twice_before_a_look_is_two_processes(void **state)
{
	(void)state;
	const pid_t first = start(trace_and_end, NULL, box);
	reap(first);
	const pid_t second = fork_as(first);
	if (second == 0) {
		ky_limits.ring_bytes = 64u << 10;
		ky_limits.total_bytes = 1u << 20;
		ky_limits.categories = "*";
		ky_limits.mailbox = box;
		trace_events(2 * EVENTS);
		_exit(0);
	}
	if (second < 0) {
		print_message("this user may not choose the number of a process\n");
		LIVES_UNTIL(&lives, lives_all_ended(&lives) == 1);
		skip();
	}
	reap(second);
	LIVES_UNTIL(&lives, facts().letters == 2 && lives_all_ended(&lives) == lives.count);
	assert_int_equal(second, first);
	assert_int_equal(lives.count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(lives.life[i].pid, first);
		assert_int_equal(lives.life[i].drums, 1);
		assert_int_equal(lives.life[i].events, (i + 1) * EVENTS);
	}
}

static void leave_the_network(void *context)
{
	(void)context;
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		_exit(77);
	trace_events(EVENTS);
}

/* An abstract socket is not there. Nobody looks before it is gone. */
static void a_process_in_another_network_is_there(void **state)
{
	(void)state;
	int status;
	const pid_t pid = start(leave_the_network, NULL, box);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status == 77 << 8)
		skip();
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	assert_int_equal(facts().letters, 1);
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
}

static void trace_and_wait(void *context)
{
	const struct meeting *const meeting = context;
	trace_events(EVENTS);
	arrive(meeting);
	await_go(meeting);
}

static void a_process_that_cannot_send_is_found(void **state)
{
	(void)state;
	struct meeting meeting;
	char message[KY_MESSAGE_BYTES];
	meeting_open(&meeting);
	const pid_t pid = start(trace_and_wait, &meeting, NULL);
	await_child(&meeting);
	assert_int_equal(ky_processes_add(lives.processes, pid, message), 0);
	lives_round(&lives);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	reap(pid);
	meeting_close(&meeting);
	assert_int_equal(facts().letters, 0);
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
}

static bool box_is_a_file(const char *address)
{
	char path[128];
	struct stat status;
	snprintf(path, sizeof(path), "/%.*s", (int)strcspn(address, ":"), address);
	return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* The file of a mailbox goes with it, and that of one that was killed with the next. */
static void no_file_is_left(void **state)
{
	(void)state;
	int ends[2];
	char address[256] = "";
	assert_true(box_is_a_file(box));
	assert_int_equal(pipe(ends), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		struct lives *const other = calloc(1, sizeof(*other));
		if (!other)
			_exit(1);
		lives_begin(other, KY_PROCESSES_CHILDREN);
		const char *const theirs = ky_processes_mailbox(other->processes);
		if (theirs && write(ends[1], theirs, strlen(theirs)) > 0)
			raise(SIGKILL);
		_exit(1);
	}
	reap(pid);
	assert_true(read(ends[0], address, sizeof(address) - 1) > 0);
	close(ends[0]);
	close(ends[1]);
	assert_true(box_is_a_file(address));
	snprintf(box_before, sizeof(box_before), "%s", box);
	lives_end(&lives);
	assert_false(box_is_a_file(box_before));
	assert_int_equal(open_all(NULL), 0);
	assert_false(box_is_a_file(address));
	assert_true(box_is_a_file(box));
}

/*
 * ------------------------------------------------------------------------------------------------
 * Letters that are none.
 * ------------------------------------------------------------------------------------------------
 */

/* first: 0, or '/' for the one in the file system. */
static int connect_at(char first)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const size_t bytes = strcspn(box, ":");
	name.sun_path[0] = first;
	memcpy(name.sun_path + 1, box, bytes);
	const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (to >= 0 &&
	    connect(to, (struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes)) == 0)
		return to;
	const int error = errno;
	close(to);
	errno = error;
	return -1;
}

static int connect_box(void)
{
	return connect_at(0);
}

static struct ky_mail right_mail(void)
{
	struct ky_mail mail = {
		.magic = KY_MAIL_MAGIC, .version = KY_MAIL_VERSION, .bytes = sizeof(mail)};
	memcpy(mail.secret, strchr(box, ':') + 1, sizeof(mail.secret));
	return mail;
}

static void send_on(int to, const void *data, size_t bytes, const int *fds, uint32_t count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(32 * sizeof(int))];
	} control;
	memset(&control, 0, sizeof(control));
	struct iovec part = {(void *)(uintptr_t)data, bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(to, &message, MSG_NOSIGNAL), (ssize_t)bytes);
}

static void send_one(const void *data, size_t bytes, int fd)
{
	const int to = connect_box();
	assert_true(to >= 0);
	send_on(to, data, bytes, &fd, fd >= 0);
	close(to);
}

/* Named as a drum, but its owner can cut it short. */
static int unsealed(void)
{
	const int fd = memfd_create("kymo-drum", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const uint64_t magic = 0x6d7572646f6d796bu;
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	return fd;
}

/* Named and sealed as a drum, with nothing in it. */
static int empty_drum(void)
{
	const int fd = memfd_create("kymo-drum", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static uint32_t send_garbage(void)
{
	struct ky_mail mail = right_mail(), wrong;
	int pipes[2];
	const int no_drums[] = {open("/dev/null", O_RDWR | O_CLOEXEC), unsealed(), empty_drum()};
	uint32_t sent = 0;
	char large[4096] = {0};
	assert_int_equal(pipe(pipes), 0);
	for (size_t i = 0; i < 3; i++, sent++)
		send_one(&mail, sizeof(mail), no_drums[i]);
	send_one(&mail, sizeof(mail), pipes[0]), sent++;
	send_one(&mail, sizeof(mail), -1), sent++;
	send_one(&mail, sizeof(mail) - 1, pipes[0]), sent++;
	send_one(&mail, 0, -1), sent++;
	send_one(large, sizeof(large), pipes[0]), sent++;
	wrong = mail, wrong.secret[0] ^= 1;
	send_one(&wrong, sizeof(wrong), no_drums[2]), sent++;
	wrong = mail, wrong.magic++;
	send_one(&wrong, sizeof(wrong), no_drums[2]), sent++;
	wrong = mail, wrong.version = 0;
	send_one(&wrong, sizeof(wrong), no_drums[2]), sent++;
	int many[32];
	for (size_t i = 0; i < 32; i++)
		many[i] = no_drums[0];
	const int to = connect_box();
	send_on(to, &mail, sizeof(mail), many, 32), sent++;
	close(to);
	for (size_t i = 0; i < 3; i++)
		close(no_drums[i]);
	close(pipes[0]), close(pipes[1]);
	return sent;
}

static void what_is_no_drum_is_dropped(void **state)
{
	(void)state;
	lives_round(&lives);
	const uint32_t before = descriptors();
	const uint32_t sent = send_garbage();
	LIVES_UNTIL(&lives, facts().refused == sent);
	assert_int_equal(lives.count, 0);
	assert_int_equal(descriptors(), before);
	const pid_t pid = start(trace_and_end, NULL, box);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	reap(pid);
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
}

/* A right message with some bytes changed, cut or longer, with a descriptor of anything or none. */
static void any_bytes_are_borne(void **state)
{
	(void)state;
	lives_round(&lives);
	const int fds[] = {-1, open("/dev/zero", O_RDWR | O_CLOEXEC), unsealed(), empty_drum()};
	const uint32_t before = descriptors();
	uint32_t random = 1;
	for (uint32_t i = 0; i < 2000; i++) {
		char data[2 * sizeof(struct ky_mail)] = {0};
		const struct ky_mail mail = right_mail();
		memcpy(data, &mail, sizeof(mail));
		for (uint32_t change = 0; change < i % 4; change++) {
			random = random * 1664525u + 1013904223u;
			data[(random >> 8) % sizeof(mail)] ^= (char)(1u << (random >> 29));
		}
		send_one(data, (random >> 4) % sizeof(data), fds[i % 4]);
		if (i % 64 == 0)
			lives_round(&lives);
	}
	LIVES_UNTIL(&lives, facts().refused == 2000);
	assert_int_equal(facts().letters + lives.count, 0);
	assert_int_equal(descriptors(), before);
	for (size_t i = 1; i < 4; i++)
		close(fds[i]);
}

/* One that says nothing is waited for, thousands are not: the oldest are dropped. */
static void connections_without_a_message_do_not_pile_up(void **state)
{
	(void)state;
	lives_round(&lives); /* raises the limit */
	const uint32_t before = descriptors();
	static int silent[3000];
	for (size_t i = 0; i < 3000; i++) {
		silent[i] = connect_box();
		assert_true(silent[i] >= 0);
		lives_round(&lives);
	}
	assert_true(descriptors() <= before + 3000 + 1024);
	const pid_t pid = start(trace_and_end, NULL, box);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	reap(pid);
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
	for (size_t i = 0; i < 3000; i++)
		close(silent[i]);
	LIVES_UNTIL(&lives, facts().refused == 3000);
	assert_int_equal(descriptors(), before);
}

/* Interrupted between the two calls. */
static void send_late(void *context)
{
	const struct meeting *const meeting = context;
	const struct ky_mail mail = right_mail();
	const int to = connect_box();
	trace_events(EVENTS);
	arrive(meeting);
	await_go(meeting);
	send_on(to, &mail, sizeof(mail), &ky_drum_peek()->fd, 1);
}

static void a_message_may_come_long_after_its_connection(void **state)
{
	(void)state;
	struct meeting meeting;
	meeting_open(&meeting);
	const pid_t pid = start(send_late, &meeting, NULL);
	await_child(&meeting);
	lives_round(&lives);
	lives_round(&lives);
	assert_int_equal(lives.count, 0);
	let_go(&meeting);
	LIVES_UNTIL(&lives, lives_ended(&lives, pid));
	reap(pid);
	assert_int_equal(lives_of(&lives, pid)->events, EVENTS);
	meeting_close(&meeting);
}

/* As many as the kernel lets wait; then senders are refused at once, and the next after that are not. */
static void a_full_backlog_holds_nobody_up(void **state)
{
	(void)state;
	uint32_t waiting = 0;
	for (int to; (to = connect_box()) >= 0; waiting++)
		close(to);
	assert_int_equal(errno, EAGAIN);
	for (int to; (to = connect_at('/')) >= 0; waiting++)
		close(to);
	assert_int_equal(errno, EAGAIN);
	const pid_t unlucky = start(trace_and_end, NULL, box);
	int status;
	assert_int_equal(waitpid(unlucky, &status, 0), unlucky);
	assert_int_equal(status, 0);
	LIVES_UNTIL(&lives, facts().refused == waiting);
	assert_true(facts().mailbox_overflow);
	const pid_t lucky = start(trace_and_end, NULL, box);
	LIVES_UNTIL(&lives, lives_ended(&lives, lucky));
	reap(lucky);
	assert_int_equal(lives_of(&lives, lucky)->events, EVENTS);
	assert_null(lives_of(&lives, unlucky));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "trace") == 0) {
		trace_events(EVENTS);
		return 0;
	}
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
	const struct CMUnitTest tests[] = {
		TEST(two_thousand_children_in_a_row_are_all_there),
		TEST(a_number_that_is_used_twice_before_a_look_is_two_processes),
		TEST(a_child_that_closes_all_descriptors_is_there),
		TEST(a_program_that_is_run_by_another_is_there),
		TEST(a_process_that_is_gone_is_told_with_its_drum),
		TEST(a_process_that_cannot_send_is_found),
		TEST(a_process_in_another_network_is_there),
		TEST(no_file_is_left),
		TEST(what_is_no_drum_is_dropped),
		TEST(any_bytes_are_borne),
		TEST(connections_without_a_message_do_not_pile_up),
		TEST(a_message_may_come_long_after_its_connection),
		TEST(a_full_backlog_holds_nobody_up),
	};
	return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
