/* SPDX-License-Identifier: MIT */
/*
 * test_path.c: names, opening, replacing and writing of output files, in a folder made for each
 * test.
 */
#include "sink/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int folder_setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/kymo-test-path-XXXXXX");
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	return remove(path);
}

static int folder_teardown(void **state)
{
	(void)state;
	return chdir("/") != 0 || nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0;
}

static unsigned files_in_folder(void)
{
	DIR *const dir = opendir(".");
	unsigned count = 0;

	for (struct dirent *entry; (entry = readdir(dir));)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return count;
}

static void put_file(const char *path, const char *text)
{
	FILE *const file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect_file(const char *path, const char *text)
{
	char data[256] = "";
	FILE *const file = fopen(path, "r");

	assert_non_null(file);
	data[fread(data, 1, sizeof(data) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(data, text);
}

static void expect_expansion(const char *path, const char *expected)
{
	char out[64];

	assert_int_equal(ky_path_expand(out, sizeof(out), path, 1234, 7), strlen(expected));
	assert_string_equal(out, expected);
}

static void marks_are_filled_in_and_others_stay(void **state)
{
	(void)state;
	expect_expansion("out.json", "out.json");
	expect_expansion("out.${pid}.${rotation}.json", "out.1234.7.json");
	expect_expansion("${pid}${pid}", "12341234");
	expect_expansion("${PID}$pid${host}${pid", "${PID}$pid${host}${pid");
	expect_expansion("$${pid}}", "$1234}");
	expect_expansion("", "");
	assert_true(ky_path_rotates("a${rotation}"));
	assert_false(ky_path_rotates("a${pid}"));
}

static void a_name_that_does_not_fit_is_refused_not_cut(void **state)
{
	(void)state;
	char out[9] = "garbage";

	assert_int_equal(ky_path_expand(out, sizeof(out), "abcd${pid}", 1234, 0), 8);
	assert_int_equal(ky_path_expand(out, sizeof(out), "abcde${pid}", 1234, 0), -ENAMETOOLONG);
	assert_string_equal(out, "");
	assert_int_equal(ky_path_expand(out, sizeof(out), "abcdefgh${pid}x", 1, 0), -ENAMETOOLONG);
	assert_int_equal(ky_path_expand(out, 1, "", 1, 0), 0);
	assert_int_equal(ky_path_expand(out, 0, "", 1, 0), -ENAMETOOLONG);
	assert_int_equal(ky_path_insert(out, sizeof(out), "a.json", "12"), -ENAMETOOLONG);
	assert_string_equal(out, "");
	assert_int_equal(ky_path_insert(out, sizeof(out), "a.json", "1"), 8);
}

static void expect_insertion(const char *path, const char *expected)
{
	char out[64];

	assert_int_equal(ky_path_insert(out, sizeof(out), path, "1234"), strlen(expected));
	assert_string_equal(out, expected);
}

static void a_label_goes_before_the_suffix(void **state)
{
	(void)state;
	expect_insertion("out.json", "out.1234.json");
	expect_insertion("out.json.gz", "out.1234.json.gz");
	expect_insertion("/a.b/out.x.pftrace", "/a.b/out.x.1234.pftrace");
	expect_insertion("/a.b/out", "/a.b/out.1234");
	expect_insertion(".hidden", ".hidden.1234");
	expect_insertion(".hidden.json", ".hidden.1234.json");
	expect_insertion("x.gz", "x.1234.gz");
	expect_insertion("", ".1234");
}

static void a_stream_begins_with_an_empty_file(void **state)
{
	(void)state;
	char used[64];

	put_file("out.json", "old and long");
	const int fd = ky_path_open("out.json", 1234, used, sizeof(used));
	assert_true(fd > STDERR_FILENO);
	assert_string_equal(used, "out.json");
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(ky_path_write(fd, "new", 3), 0);
	close(fd);
	expect_file("out.json", "new");
}

static void a_file_that_is_being_written_is_left_alone(void **state)
{
	(void)state;
	char used[64];

	put_file("out.json", "theirs");
	const int theirs = open("out.json", O_RDONLY);
	assert_int_equal(flock(theirs, LOCK_EX), 0);
	const int fd = ky_path_open("out.json", 1234, used, sizeof(used));
	assert_true(fd >= 0);
	assert_string_equal(used, "out.1234.json");
	const int second = ky_path_open("out.json", 1234, used, sizeof(used));
	assert_true(second >= 0);
	assert_string_equal(used, "out.1234-2.json");
	expect_file("out.json", "theirs");
	close(second);
	close(fd);
	close(theirs);
	const int again = ky_path_open("out.json", 1234, used, sizeof(used));
	assert_string_equal(used, "out.json");
	close(again);
}

static void when_every_name_is_taken_opening_gives_up(void **state)
{
	(void)state;
	char used[64];
	int fds[64];
	unsigned count = 0;

	while ((fds[count] = ky_path_open("out.json", 1, used, sizeof(used))) >= 0)
		assert_true(++count < 64);
	assert_int_equal(fds[count], -EBUSY);
	while (count > 0)
		close(fds[--count]);
}

static void opening_fails_with_the_true_cause(void **state)
{
	(void)state;
	char used[64];
	char longer[PATH_MAX];

	assert_int_equal(ky_path_open("none/out.json", 1, used, sizeof(used)), -ENOENT);
	assert_int_equal(ky_path_open(".", 1, used, sizeof(used)), -EISDIR);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(ky_path_open(longer, 1, used, sizeof(used)), -ENAMETOOLONG);
}

static void a_trace_never_takes_the_number_of_a_standard_stream(void **state)
{
	(void)state;
	char used[64];

	const int saved = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	const int fd = ky_path_open("out.json", 1, used, sizeof(used));
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
	assert_true(fd > STDERR_FILENO);
	close(fd);
}

static void *open_reader_later(void *path)
{
	const int fd = open(path, O_RDONLY);
	char *const text = calloc(1, 16);

	for (size_t used = 0; used < 15;) {
		const ssize_t bytes = read(fd, text + used, 15 - used);
		if (bytes <= 0)
			break;
		used += (size_t)bytes;
	}
	close(fd);
	return text;
}

static void a_fifo_gets_everything_once_a_reader_came(void **state)
{
	(void)state;
	char used[64];
	pthread_t reader;
	void *text;

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(pthread_create(&reader, NULL, open_reader_later, "fifo"), 0);
	const int fd = ky_path_open("fifo", 1, used, sizeof(used));
	assert_true(fd >= 0);
	assert_int_equal(ky_path_write(fd, "events", 6), 0);
	close(fd);
	pthread_join(reader, &text);
	assert_string_equal(text, "events");
	free(text);
}

static void a_fifo_without_a_reader_does_not_hang(void **state)
{
	(void)state;
	char used[64];

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(ky_path_open("fifo", 1, used, sizeof(used)), -ENXIO);
}

static void a_replacement_shows_only_when_finished(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;
	struct stat status;

	put_file("snap.json", "old");
	assert_int_equal(chmod("snap.json", 0640), 0);
	assert_int_equal(ky_path_replace(&replacement, "snap.json"), 0);
	assert_int_equal(ky_path_write(replacement.fd, "new", 3), 0);
	expect_file("snap.json", "old");
	assert_int_equal(ky_path_replace_finish(&replacement), 0);
	expect_file("snap.json", "new");
	assert_int_equal(stat("snap.json", &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
	assert_int_equal(files_in_folder(), 1);
}

static void a_new_file_is_its_owners_alone(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;
	struct stat status;
	char used[64];

	const mode_t before = umask(0);
	assert_int_equal(ky_path_replace(&replacement, "new.json"), 0);
	assert_int_equal(ky_path_replace_finish(&replacement), 0);
	const int fd = ky_path_open("stream.json", 1, used, sizeof(used));
	umask(before);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(stat("new.json", &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(stat("stream.json", &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}

/* Users who are not root. */
enum { MALLORY = 54321, ALICE = 54322 };

/* Make a directory that is like /tmp, and a link in it that another user made. */
static void make_open_folder(uid_t owner)
{
	if (geteuid() != 0) {
		print_message("skipped: only root can be two users\n");
		skip();
	}
	assert_int_equal(mkdir("private", 0700), 0);
	put_file("private/file", "secret");
	assert_int_equal(mkdir("open", 0777), 0);
	assert_int_equal(chmod("open", 01777), 0);
	assert_int_equal(symlink("../private/file", "open/link"), 0);
	assert_int_equal(symlink("../private", "open/folder"), 0);
	assert_int_equal(symlink("../private/new", "open/dangling"), 0);
	assert_int_equal(lchown("open/link", owner, owner), 0);
	assert_int_equal(lchown("open/folder", owner, owner), 0);
	assert_int_equal(lchown("open/dangling", owner, owner), 0);
}

static void links_of_others_in_open_folders_are_not_followed(void **state)
{
	(void)state;
	static const char *const names[] = {"open/link", "open/folder/file", "open/folder/new",
					    "open/dangling"};
	struct ky_path_replacement replacement;
	char used[64];

	make_open_folder(MALLORY);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(ky_path_replace_check(names[i]), -EACCES);
		assert_int_equal(ky_path_replace(&replacement, names[i]), -EACCES);
		assert_int_equal(ky_path_open(names[i], 1, used, sizeof(used)), -EACCES);
	}
	expect_file("private/file", "secret");
	assert_int_equal(access("private/new", F_OK), -1);
	/* Not sticky: as everywhere else. */
	assert_int_equal(chmod("open", 0755), 0);
	assert_int_equal(ky_path_replace_check("open/link"), 0);
	assert_int_equal(chmod("open", 01777), 0);
	/* The directory's owner may do everything there anyway. */
	assert_int_equal(chown("open", MALLORY, MALLORY), 0);
	assert_int_equal(ky_path_replace_check("open/link"), 0);
}

static void own_links_in_open_folders_are_followed(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;

	make_open_folder(0);
	assert_int_equal(chown("open", ALICE, ALICE), 0);
	assert_int_equal(ky_path_replace(&replacement, "open/folder/../open/link"), 0);
	assert_int_equal(ky_path_write(replacement.fd, "new", 3), 0);
	assert_int_equal(ky_path_replace_finish(&replacement), 0);
	expect_file("private/file", "new");
	assert_int_equal(ky_path_replace(&replacement, "open/dangling"), 0);
	assert_int_equal(ky_path_replace_finish(&replacement), 0);
	expect_file("private/new", "");
}

static void files_of_others_in_open_folders_are_not_used(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;
	char used[64];

	make_open_folder(MALLORY);
	put_file("open/planted", "mine");
	assert_int_equal(chmod("open/planted", 0666), 0);
	assert_int_equal(chown("open/planted", MALLORY, MALLORY), 0);
	assert_int_equal(mkfifo("open/fifo", 0666), 0);
	assert_int_equal(chown("open/fifo", MALLORY, MALLORY), 0);
	const int reader = open("open/fifo", O_RDONLY | O_NONBLOCK);
	assert_int_equal(ky_path_replace(&replacement, "open/planted"), -EACCES);
	assert_int_equal(ky_path_open("open/planted", 1, used, sizeof(used)), -EACCES);
	assert_int_equal(ky_path_replace(&replacement, "open/fifo"), -EACCES);
	assert_int_equal(ky_path_open("open/fifo", 1, used, sizeof(used)), -EACCES);
	close(reader);
	expect_file("open/planted", "mine");
}

static void a_replaced_file_keeps_its_owner(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;
	struct stat status;

	if (geteuid() != 0) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	put_file("theirs", "old");
	assert_int_equal(chown("theirs", ALICE, MALLORY), 0);
	assert_int_equal(chmod("theirs", 0664), 0);
	assert_int_equal(ky_path_replace(&replacement, "theirs"), 0);
	assert_int_equal(ky_path_replace_finish(&replacement), 0);
	assert_int_equal(stat("theirs", &status), 0);
	assert_int_equal(status.st_uid, ALICE);
	assert_int_equal(status.st_gid, MALLORY);
	assert_int_equal(status.st_mode & 07777, 0664);
}

static void a_path_that_cannot_be_looked_at_is_an_error(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;

	assert_int_equal(symlink("turn", "turn"), 0);
	assert_int_equal(ky_path_replace(&replacement, "turn"), -ELOOP);
	assert_int_equal(ky_path_replace_check("turn"), -ELOOP);
	put_file("plain", "");
	assert_int_equal(ky_path_replace(&replacement, "plain/file"), -ENOTDIR);
	assert_int_equal(ky_path_replace(&replacement, "nowhere/file"), -ENOENT);
	assert_int_equal(ky_path_replace(&replacement, "nowhere/"), -EISDIR);
	assert_int_equal(ky_path_replace(&replacement, ""), -ENOENT);
	assert_int_equal(mkdir("folder", 0700), 0);
	assert_int_equal(ky_path_replace_check("folder"), -EISDIR);
}

static void an_abandoned_replacement_leaves_the_old_file(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;

	put_file("snap.json", "old");
	assert_int_equal(ky_path_replace(&replacement, "snap.json"), 0);
	assert_int_equal(ky_path_write(replacement.fd, "half", 4), 0);
	ky_path_replace_abandon(&replacement);
	ky_path_replace_abandon(&replacement);
	expect_file("snap.json", "old");
	assert_int_equal(files_in_folder(), 1);
}

static void a_replacement_that_cannot_be_put_in_place_is_removed(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;

	assert_int_equal(ky_path_replace(&replacement, "snap.json"), 0);
	assert_int_equal(mkdir("snap.json", 0700), 0);
	assert_int_equal(ky_path_replace_finish(&replacement), -EISDIR);
	assert_int_equal(files_in_folder(), 1);
	assert_int_equal(rmdir("snap.json"), 0);
	assert_int_equal(ky_path_replace(&replacement, "none/snap.json"), -ENOENT);
}

static void two_replacements_at_once_do_not_mix(void **state)
{
	(void)state;
	struct ky_path_replacement first;
	struct ky_path_replacement second;

	assert_int_equal(ky_path_replace(&first, "a"), 0);
	assert_int_equal(ky_path_replace(&second, "a"), 0);
	assert_int_equal(ky_path_write(first.fd, "1", 1), 0);
	assert_int_equal(ky_path_write(second.fd, "2", 1), 0);
	assert_int_equal(ky_path_replace_finish(&second), 0);
	expect_file("a", "2");
	assert_int_equal(ky_path_replace_finish(&first), 0);
	expect_file("a", "1");
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;
	struct stat status;

	put_file("real", "old");
	assert_int_equal(symlink("real", "link"), 0);
	assert_int_equal(ky_path_replace(&replacement, "link"), 0);
	assert_int_equal(ky_path_write(replacement.fd, "new", 3), 0);
	assert_int_equal(ky_path_replace_finish(&replacement), 0);
	expect_file("real", "new");
	assert_int_equal(lstat("link", &status), 0);
	assert_true(S_ISLNK(status.st_mode));
}

static void devices_are_written_in_place(void **state)
{
	(void)state;
	struct ky_path_replacement replacement;
	struct stat status;

	assert_int_equal(ky_path_replace(&replacement, "/dev/null"), 0);
	assert_int_equal(ky_path_write(replacement.fd, "x", 1), 0);
	assert_int_equal(ky_path_replace_finish(&replacement), 0);
	assert_int_equal(stat("/dev/null", &status), 0);
	assert_true(S_ISCHR(status.st_mode));
}

struct reader {
	int fd;
	size_t bytes;
};

static void *read_all(void *context)
{
	struct reader *const reader = context;
	char data[1000];
	ssize_t bytes;

	while ((bytes = read(reader->fd, data, sizeof(data))) > 0)
		reader->bytes += (size_t)bytes;
	return NULL;
}

static void a_slow_reader_of_a_non_blocking_pipe_gets_everything(void **state)
{
	(void)state;
	static char data[1 << 20];
	int fds[2];
	pthread_t thread;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	struct reader reader = {fds[0], 0};
	assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
	assert_int_equal(ky_path_write(fds[1], data, sizeof(data)), 0);
	close(fds[1]);
	pthread_join(thread, NULL);
	assert_int_equal(reader.bytes, sizeof(data));
	close(fds[0]);
}

static void writing_gives_up_when_nobody_reads(void **state)
{
	(void)state;
	static char data[1 << 20];
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ky_path_write(fds[1], data, sizeof(data)), -EAGAIN);
	close(fds[0]);
	close(fds[1]);
}

static void a_pipe_without_a_reader_is_an_error_not_a_signal(void **state)
{
	(void)state;
	int fds[2];
	sigset_t pipe_signal;
	sigset_t before;
	const struct timespec now = {0};

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(ky_path_write(fds[1], "x", 1), -EPIPE);
	close(fds[1]);
	sigtimedwait(&pipe_signal, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void a_full_disk_is_an_error(void **state)
{
	(void)state;
	const int fd = open("/dev/full", O_WRONLY);

	assert_int_equal(ky_path_write(fd, "x", 1), -ENOSPC);
	close(fd);
	assert_int_equal(ky_path_write(fd, "x", 1), -EBADF);
	assert_int_equal(ky_path_write(fd, NULL, 0), 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_are_filled_in_and_others_stay),
		cmocka_unit_test(a_name_that_does_not_fit_is_refused_not_cut),
		cmocka_unit_test(a_label_goes_before_the_suffix),
		IN_FOLDER(a_stream_begins_with_an_empty_file),
		IN_FOLDER(a_file_that_is_being_written_is_left_alone),
		IN_FOLDER(when_every_name_is_taken_opening_gives_up),
		IN_FOLDER(opening_fails_with_the_true_cause),
		IN_FOLDER(a_trace_never_takes_the_number_of_a_standard_stream),
		IN_FOLDER(a_fifo_gets_everything_once_a_reader_came),
		IN_FOLDER(a_fifo_without_a_reader_does_not_hang),
		IN_FOLDER(a_replacement_shows_only_when_finished),
		IN_FOLDER(a_new_file_is_its_owners_alone),
		IN_FOLDER(links_of_others_in_open_folders_are_not_followed),
		IN_FOLDER(own_links_in_open_folders_are_followed),
		IN_FOLDER(files_of_others_in_open_folders_are_not_used),
		IN_FOLDER(a_replaced_file_keeps_its_owner),
		IN_FOLDER(a_path_that_cannot_be_looked_at_is_an_error),
		IN_FOLDER(an_abandoned_replacement_leaves_the_old_file),
		IN_FOLDER(a_replacement_that_cannot_be_put_in_place_is_removed),
		IN_FOLDER(two_replacements_at_once_do_not_mix),
		IN_FOLDER(a_link_stays_and_its_file_is_replaced),
		cmocka_unit_test(devices_are_written_in_place),
		cmocka_unit_test(a_slow_reader_of_a_non_blocking_pipe_gets_everything),
		cmocka_unit_test(writing_gives_up_when_nobody_reads),
		cmocka_unit_test(a_pipe_without_a_reader_is_an_error_not_a_signal),
		cmocka_unit_test(a_full_disk_is_an_error),
	};
	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
