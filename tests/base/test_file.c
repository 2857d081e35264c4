/* SPDX-License-Identifier: MIT */
/* test_file.c: whole reads and writes, and files that appear whole or not at all. */
#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { OTHER = 54321 }; /* a user who is not root */

static char folder[] = "/tmp/kymo-file-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *path, const char *text, size_t bytes)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ky_file_write_all(fd, text, bytes), 0);
	close(fd);
}

static void check_text(const char *path, const char *want)
{
	size_t bytes;
	char *text = ky_file_read(path, 1 << 20, &bytes);
	assert_non_null(text);
	assert_string_equal(text, want);
	assert_int_equal(bytes, strlen(want));
	free(text);
}

static int files_in_folder(void)
{
	DIR *dir = opendir(folder);
	int count = 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static void a_file_is_read_whole_up_to_a_bound(void **state)
{
	(void)state;
	static char data[10000];
	const char *path = path_of("whole");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)('a' + i % 26);
	const size_t sizes[] = {0, 1, 4095, 4096, 4097, 10000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t bytes;
		write_file(path, data, sizes[i]);
		char *text = ky_file_read(path, sizes[i], &bytes);
		assert_non_null(text);
		assert_int_equal(bytes, sizes[i]);
		assert_memory_equal(text, data, bytes);
		assert_int_equal(text[bytes], 0);
		free(text);
		if (!sizes[i])
			continue;
		assert_null(ky_file_read(path, sizes[i] - 1, &bytes));
		assert_int_equal(errno, EFBIG);
	}
	unlink(path);
}

static void files_without_a_size_are_read(void **state)
{
	(void)state;
	size_t bytes;
	char text[16];
	char *maps = ky_file_read("/proc/self/maps", 1 << 20, &bytes);
	assert_non_null(maps);
	assert_true(bytes > 100);
	free(maps);
	assert_null(ky_file_read("/proc/self/maps", 50, &bytes));
	assert_int_equal(errno, EFBIG);
	assert_int_equal(ky_file_read_text("/proc/self/maps", text, sizeof(text)), 15);
	assert_int_equal(strlen(text), 15);
	assert_int_equal(ky_file_read_text("/nowhere", text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");
	assert_null(ky_file_read("/nowhere", 10, &bytes));
	assert_int_equal(errno, ENOENT);
	assert_null(ky_file_read("/", 10, &bytes));
	assert_int_equal(errno, EISDIR);
	assert_null(ky_file_read("/dev/null", 10, &bytes));
	assert_int_equal(errno, EINVAL);
}

static void the_name_is_the_last_part_of_a_path(void **state)
{
	(void)state;
	assert_string_equal(ky_file_name("/usr/lib/libc.so.6"), "libc.so.6");
	assert_string_equal(ky_file_name("demo"), "demo");
	assert_string_equal(ky_file_name("folder/"), "");
	assert_null(ky_file_name(NULL));
}

static void reads_and_writes_at_an_offset(void **state)
{
	(void)state;
	char text[8] = {0};
	const char *path = path_of("offset");
	const int fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ky_file_pwrite_all(fd, "abcdef", 6, 2), 0);
	assert_int_equal(ky_file_pread_all(fd, text, 3, 4), 3);
	assert_string_equal(text, "cde");
	assert_int_equal(ky_file_pread_all(fd, text, 8, 6), 2);
	assert_int_equal(ky_file_pread_all(-1, text, 8, 6), -EBADF);
	assert_int_equal(ky_file_write_all(-1, "x", 1), -EBADF);
	close(fd);
	unlink(path);
}

static void a_replaced_file_appears_at_the_commit(void **state)
{
	(void)state;
	struct ky_file_replacer file;
	const char *what;
	const char *path = path_of("target");
	write_file(path, "old", 3);
	assert_int_equal(ky_file_replacer_open(&file, path), 0);
	assert_int_equal(ky_file_write_all(file.fd, "new", 3), 0);
	check_text(path, "old");
	assert_int_equal(ky_file_replacer_commit(&file, &what), 0);
	check_text(path, "new");
	assert_int_equal(files_in_folder(), 1);

	assert_int_equal(ky_file_replacer_open(&file, path), 0);
	assert_int_equal(ky_file_write_all(file.fd, "worse", 5), 0);
	ky_file_replacer_abandon(&file);
	check_text(path, "new");
	assert_int_equal(files_in_folder(), 1);
	unlink(path);
}

static void a_link_stays_a_link(void **state)
{
	(void)state;
	struct ky_file_replacer file;
	struct stat st;
	const char *what;
	char target[256];
	snprintf(target, sizeof(target), "%s", path_of("behind"));
	const char *link = path_of("link");
	write_file(target, "old", 3);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(ky_file_replacer_open(&file, link), 0);
	assert_int_equal(ky_file_write_all(file.fd, "new", 3), 0);
	assert_int_equal(ky_file_replacer_commit(&file, &what), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	check_text(target, "new");
	unlink(link);
	unlink(target);
}

/* Replace a file and return what it is then. */
static struct stat replaced(const char *path)
{
	struct ky_file_replacer file;
	struct stat status = {0};
	const char *what;
	assert_int_equal(ky_file_replacer_open(&file, path), 0);
	assert_int_equal(ky_file_write_all(file.fd, "new", 3), 0);
	assert_int_equal(ky_file_replacer_commit(&file, &what), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 3);
	return status;
}

static void a_replaced_file_keeps_its_mode_and_owner(void **state)
{
	(void)state;
	const char *path = path_of("kept");
	const mode_t before = umask(0);
	assert_int_equal(replaced(path).st_mode & 07777, 0600);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(replaced(path).st_mode & 07777, 0640);
	umask(before);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, OTHER, OTHER + 1), 0);
		const struct stat status = replaced(path);
		assert_int_equal(status.st_uid, OTHER);
		assert_int_equal(status.st_gid, OTHER + 1);
		assert_int_equal(status.st_mode & 07777, 0640);
	} else {
		print_message("skipped: another owner: only root can give files away\n");
	}
	unlink(path);
}

static void what_had_the_name_gets_another(void **state)
{
	(void)state;
	struct ky_file_replacer file;
	const char *what;
	char old[256];
	snprintf(old, sizeof(old), "%s", path_of("target.old"));
	const char *path = path_of("target");
	for (int i = 0; i < 2; i++) {
		write_file(path, "old", 3);
		assert_int_equal(ky_file_replacer_open(&file, path), 0);
		file.keep_old = true;
		assert_int_equal(ky_file_replacer_name(&file, &what), 0);
		assert_int_equal(ky_file_write_all(file.fd, "new", 3), 0);
		ky_file_replacer_abandon(&file);
		check_text(path, "new");
		check_text(old, "old");
		assert_int_equal(files_in_folder(), 2);
	}
	unlink(path);
	unlink(old);
}

/* Another user's link in a directory like /tmp leads nowhere. */
static void links_of_others_are_not_followed(void **state)
{
	(void)state;
	struct ky_file_replacer file;
	char open_folder[256], link[256];
	if (geteuid() != 0) {
		print_message("skipped: only root can be two users\n");
		skip();
	}
	snprintf(open_folder, sizeof(open_folder), "%s", path_of("open"));
	snprintf(link, sizeof(link), "%s", path_of("open/link"));
	const char *path = path_of("secret");
	write_file(path, "old", 3);
	assert_int_equal(mkdir(open_folder, 0777), 0);
	assert_int_equal(chmod(open_folder, 01777), 0);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(lchown(link, OTHER, OTHER), 0);
	assert_int_equal(ky_file_replacer_open(&file, link), -EACCES);
	check_text(path, "old");
	assert_int_equal(lchown(link, 0, 0), 0);
	assert_int_equal(replaced(link).st_mode & 0777, 0600);
	check_text(path, "new");
	unlink(path);
	unlink(link);
	rmdir(open_folder);
}

static void folders_are_not_replaced_and_devices_are_written_to(void **state)
{
	(void)state;
	struct ky_file_replacer file;
	const char *what;
	assert_int_equal(ky_file_replacer_open(&file, folder), -EISDIR);
	assert_int_equal(ky_file_replacer_open(&file, "/nowhere/x"), -ENOENT);
	assert_int_equal(ky_file_replacer_open(&file, "/dev/null"), 0);
	assert_int_equal(ky_file_write_all(file.fd, "new", 3), 0);
	assert_int_equal(ky_file_replacer_commit(&file, &what), 0);
	struct stat st;
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void clocks_go_forward(void **state)
{
	(void)state;
	const int64_t before = ky_clock_monotonic();
	assert_true(ky_clock_monotonic() >= before);
	assert_true(ky_clock_boottime() >= before);
	assert_true(ky_clock_realtime() > INT64_C(1500000000) * KY_CLOCK_SECOND_NS);
	const struct timespec time = ky_clock_timespec(INT64_C(2500000001));
	assert_int_equal(time.tv_sec, 2);
	assert_int_equal(time.tv_nsec, 500000001);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_whole_up_to_a_bound),
		cmocka_unit_test(files_without_a_size_are_read),
		cmocka_unit_test(the_name_is_the_last_part_of_a_path),
		cmocka_unit_test(reads_and_writes_at_an_offset),
		cmocka_unit_test(a_replaced_file_appears_at_the_commit),
		cmocka_unit_test(a_link_stays_a_link),
		cmocka_unit_test(a_replaced_file_keeps_its_mode_and_owner),
		cmocka_unit_test(what_had_the_name_gets_another),
		cmocka_unit_test(links_of_others_are_not_followed),
		cmocka_unit_test(folders_are_not_replaced_and_devices_are_written_to),
		cmocka_unit_test(clocks_go_forward),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
