/* SPDX-License-Identifier: MIT */
/* test_proc.c: the parsers of /proc, on lines that a hostile process can cause, and on this process. */
#include "process/proc.h"
#include "process/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Behind the name: the state is field 3, the exit code field 52. */
#define FIELDS                                                                                     \
	" S 4711 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 99 98 97 1000 2000 3000 0 0 0 0 " \
	"0 0 0 0 0 17 0 0 0 0 0 0 1 2 5000 3 4 5 6 9\n"

static void a_stat_line_is_parsed(void **state)
{
	(void)state;
	struct ky_proc_stat stat;
	assert_true(ky_proc_stat_parse("12 (cat)" FIELDS, &stat));
	assert_string_equal(stat.name, "cat");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.parent, 4711);
	assert_int_equal(stat.start_ticks, 12345);
	assert_int_equal(stat.started_ns,
			 UINT64_C(12345) * 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	assert_int_equal(stat.code_start, 1000);
	assert_int_equal(stat.stack_start, 3000);
	assert_int_equal(stat.heap_start, 5000);
	assert_int_equal(stat.exit_code, 9);
}

static void a_name_cannot_pass_for_fields(void **state)
{
	(void)state;
	static const char *const names[] = {"a b", ") R 1 (", "(",    ")",
					    "",    "x) Z 1",  "a\nb", "1 2 3"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char line[512];
		struct ky_proc_stat stat;
		snprintf(line, sizeof(line), "12 (%s)%s", names[i], FIELDS);
		assert_true(ky_proc_stat_parse(line, &stat));
		assert_string_equal(stat.name, names[i]);
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.parent, 4711);
		assert_int_equal(stat.start_ticks, 12345);
	}
}

static void a_cut_stat_line_does_no_harm(void **state)
{
	(void)state;
	static const char whole[] = "12 (cat)" FIELDS;
	for (size_t i = 0; i < sizeof(whole); i++) {
		struct ky_proc_stat stat;
		char *const cut = strndup(whole, i);
		assert_non_null(cut);
		const bool parsed = ky_proc_stat_parse(cut, &stat);
		assert_int_equal(parsed, i > strlen("12 (cat)"));
		if (i < sizeof(whole) - 3)
			assert_int_equal(stat.exit_code, -1);
		free(cut);
	}
}

static void a_status_file_is_parsed(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"Name:\tTgid: 5\n",
		"State:\tZ (zombie)\n",
		"Tgid:\t12\n",
		"PPid:\t3\n",
		"TracerPid:\t77\n",
		"Uid:\t1000\t1001\t1002\t1003\n",
		"NStgid:\t12\t5\t1\n",
		"NSpid:\t13\t6\t2\n",
		"SigBlk:\t0000000000000200\n",
		"SigIgn:\t8000000000000001\n",
		"SigCgt:\t0000000000000004\n",
		"CapEff:\t0000000000080000\n",
		"Seccomp:\t2\n",
		"Seccomp_filters:\t4\n",
		"Tgidx:\t99\n",
		"",
		"Tgid\n",
	};
	struct ky_proc_status status = {0};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ky_proc_status_line(&status, lines[i]);
	assert_int_equal(status.state, 'Z');
	assert_int_equal(status.tgid, 12);
	assert_int_equal(status.parent, 3);
	assert_int_equal(status.tracer, 77);
	assert_int_equal(status.user, 1000);
	assert_int_equal(status.inner_tgid, 1);
	assert_int_equal(status.inner_pid, 2);
	assert_int_equal(status.blocked, 0x200);
	assert_int_equal(status.ignored, UINT64_C(0x8000000000000001));
	assert_int_equal(status.caught, 4);
	assert_int_equal(status.capabilities, 0x80000);
	assert_int_equal(status.seccomp, 2);
	assert_int_equal(status.seccomp_filters, 4);
}

static bool parse(const char *text, struct ky_proc_mapping *mapping, char line[8192])
{
	snprintf(line, 8192, "%s", text);
	return ky_proc_maps_parse(line, mapping);
}

static void a_line_of_maps_is_parsed(void **state)
{
	(void)state;
	char line[8192];
	struct ky_proc_mapping m;
	assert_true(
		parse("55d0c0000000-55d0c0100000 r-xs 00001000 fd:01 1234      /a b/c (deleted)\n",
		      &m, line));
	assert_int_equal(m.start, 0x55d0c0000000);
	assert_int_equal(m.end, 0x55d0c0100000);
	assert_int_equal(m.protection, PROT_READ | PROT_EXEC);
	assert_int_equal(m.flags, MAP_SHARED);
	assert_int_equal(m.offset, 0x1000);
	assert_int_equal(m.device, UINT64_C(0xfd) << 32 | 1);
	assert_int_equal(m.inode, 1234);
	assert_string_equal(m.path, "/a b/c (deleted)");
	/* Without a file; in the kernel's half. */
	assert_true(parse("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n", &m, line));
	assert_int_equal(m.protection, PROT_READ | PROT_WRITE);
	assert_int_equal(m.flags, MAP_PRIVATE);
	assert_string_equal(m.path, "");
	assert_true(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]\n",
			  &m, line));
	assert_int_equal(m.start, UINT64_C(0xffffffffff600000));
	assert_string_equal(m.path, "[vsyscall]");
}

static void a_long_path_stays_whole(void **state)
{
	(void)state;
	char text[8192], line[8192], path[4097];
	struct ky_proc_mapping m;
	memset(path, 'x', 4096);
	path[0] = '/';
	path[4096] = '\0';
	snprintf(text, sizeof(text), "1000-2000 r--p 00000000 08:01 7 %s\n", path);
	assert_true(parse(text, &m, line));
	assert_string_equal(m.path, path);
}

static void what_is_no_line_of_maps_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"\n",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp ",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"1000-2000 r-xp 0 00 0",
		"1000-2000 r-xp z 0:0 0",
	};
	char line[8192];
	struct ky_proc_mapping m;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(parse(wrong[i], &m, line));
}

static void this_process_is_as_it_knows_itself(void **state)
{
	(void)state;
	struct ky_proc_stat stat;
	struct ky_proc_status status;
	char name[16], path[4096], link[4096];
	prctl(PR_SET_NAME, "two\nlines");
	assert_int_equal(ky_proc_comm(getpid(), 0, name, sizeof(name)), 9);
	assert_string_equal(name, "two lines");
	assert_int_equal(ky_proc_comm(getpid(), getpid(), name, 4), 3);
	assert_string_equal(name, "two");
	assert_int_equal(ky_proc_stat(getpid(), getpid(), &stat), 0);
	assert_int_equal(stat.parent, getppid());
	assert_int_equal(ky_proc_stat(KY_PROC_SELF, 0, &stat), 0);
	assert_int_equal(ky_proc_status(KY_PROC_SELF, 0, &status), 0);
	assert_int_equal(status.tgid, getpid());
	assert_int_equal(status.user, getuid());
	assert_int_equal(ky_proc_inner_pid(getpid()), getpid());
	assert_true(ky_proc_exe(getpid(), path, sizeof(path)) > 0);
	const ssize_t bytes = readlink("/proc/self/exe", link, sizeof(link) - 1);
	link[bytes] = '\0';
	assert_string_equal(path, link);
	assert_int_equal(ky_proc_aux_value(getpid(), AT_ENTRY), getauxval(AT_ENTRY));
}

static void a_process_that_is_gone_is_an_error(void **state)
{
	(void)state;
	struct ky_proc_stat stat;
	struct ky_proc_status status;
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	char text[64];
	assert_int_equal(ky_proc_stat(0, 0, &stat), -ESRCH);
	assert_int_equal(ky_proc_status(0, 0, &status), -ESRCH);
	assert_int_equal(ky_proc_comm(0, 0, text, sizeof(text)), -ESRCH);
	assert_string_equal(text, "");
	assert_int_equal(ky_proc_exe(0, text, sizeof(text)), -ESRCH);
	assert_int_equal(ky_proc_open(0, "mem", O_RDONLY), -ESRCH);
	assert_int_equal(ky_proc_maps_open(&maps, 0), -ESRCH);
	assert_false(ky_proc_maps_next(&maps, &mapping));
	ky_proc_maps_close(&maps);
	assert_null(ky_proc_tasks(0));
	assert_int_equal(errno, ESRCH);
	assert_int_equal(ky_proc_next(NULL), -1);
	ky_proc_close(NULL);
	assert_int_equal(ky_proc_inner_pid(0), 0);
	assert_int_equal(ky_proc_setting("/proc/sys/none"), INT32_MAX);
}

static void mappings_of_this_process_are_found(void **state)
{
	(void)state;
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	uint64_t last = 0;
	bool code = false, file = false;
	const uint64_t here = (uint64_t)(uintptr_t)&mappings_of_this_process_are_found;
	FILE *const temporary = tmpfile();
	assert_non_null(temporary);
	assert_int_equal(ftruncate(fileno(temporary), 8192), 0);
	void *const mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(temporary), 4096);
	assert_true(mapped != MAP_FAILED);
	assert_int_equal(ky_proc_maps_open(&maps, getpid()), 0);
	while (ky_proc_maps_next(&maps, &mapping)) {
		assert_true(mapping.start >= last && mapping.end > mapping.start);
		last = mapping.end;
		code |= (mapping.protection & PROT_EXEC) && here >= mapping.start &&
			here < mapping.end && mapping.inode;
		file |= mapping.start == (uint64_t)(uintptr_t)mapped && mapping.offset == 4096 &&
			mapping.flags == MAP_SHARED && strstr(mapping.path, " (deleted)");
	}
	ky_proc_maps_close(&maps);
	assert_true(code && file);
	munmap(mapped, 4096);
	fclose(temporary);
}

/* kymo's own path and the inode may mean another file than in the process's root: they must do only when that is gone. */
static void a_mapped_file_is_opened_by_its_path_when_its_process_ended(void **state)
{
	(void)state;
	char folder[] = "/tmp/kymo-proc-XXXXXX";
	struct stat status;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	const int made = open("mapped", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(made >= 0);
	assert_int_equal(fstat(made, &status), 0);
	close(made);
	/* No root of a process has this path. */
	struct ky_proc_mapping mapping = {
		.start = 1, .end = 2, .inode = status.st_ino, .path = "mapped"};
	assert_true(ky_proc_maps_open_file(getpid(), &mapping) < 0);
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	const int fd = ky_proc_maps_open_file(child, &mapping);
	assert_true(fd >= 0);
	close(fd);
	mapping.inode++;
	assert_true(ky_proc_maps_open_file(child, &mapping) < 0);
	assert_int_equal(unlink("mapped"), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void *wait_for_end(void *pipe_end)
{
	char byte;
	assert_int_equal(read(*(int *)pipe_end, &byte, 1), 0);
	return NULL;
}

static uint32_t count(DIR *list, int wanted, bool *found)
{
	uint32_t entries = 0;
	*found = false;
	for (int number; (number = ky_proc_next(list)) >= 0; entries++)
		*found |= number == wanted;
	ky_proc_close(list);
	return entries;
}

static void threads_and_descriptors_are_listed(void **state)
{
	(void)state;
	pthread_t thread;
	int ends[2];
	bool found;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(count(ky_proc_tasks(getpid()), getpid(), &found), 1);
	assert_true(found);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &ends[0]), 0);
	assert_int_equal(count(ky_proc_tasks(getpid()), getpid(), &found), 2);
	assert_true(count(ky_proc_fds(getpid(), getpid()), ends[1], &found) > 2);
	assert_true(found);
	close(ends[1]);
	pthread_join(thread, NULL);
	assert_true(count(ky_proc_fds(getpid(), 0), 1000000, &found) > 2);
	assert_false(found);
	close(ends[0]);
	count(ky_proc_processes(), getpid(), &found);
	assert_true(found);
}

static void children_are_listed_and_their_end_is_known(void **state)
{
	(void)state;
	struct ky_pids pids = {0};
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char byte;
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 0 ? 3 : 4);
	}
	const int error = ky_proc_children(getpid(), &pids);
	assert_true(error == 0 || error == -ENOTSUP);
	if (error == 0) {
		assert_int_equal(pids.count, 1);
		assert_int_equal(pids.at[0], child);
	}
	ky_pids_free(&pids);
	const int pidfd = ky_proc_pidfd(child);
	assert_true(pidfd >= 0);
	assert_false(ky_proc_pidfd_ended(pidfd));
	close(ends[0]);
	close(ends[1]);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(ky_proc_pidfd_ended(pidfd));
	assert_false(ky_proc_pidfd_reaped(pidfd));
	assert_int_equal(ky_proc_pidfd_status(pidfd, child), 3 << 8);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(ky_proc_pidfd_reaped(pidfd));
	close(pidfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stat_line_is_parsed),
		cmocka_unit_test(a_name_cannot_pass_for_fields),
		cmocka_unit_test(a_cut_stat_line_does_no_harm),
		cmocka_unit_test(a_status_file_is_parsed),
		cmocka_unit_test(a_line_of_maps_is_parsed),
		cmocka_unit_test(a_long_path_stays_whole),
		cmocka_unit_test(what_is_no_line_of_maps_is_refused),
		cmocka_unit_test(this_process_is_as_it_knows_itself),
		cmocka_unit_test(a_process_that_is_gone_is_an_error),
		cmocka_unit_test(mappings_of_this_process_are_found),
		cmocka_unit_test(a_mapped_file_is_opened_by_its_path_when_its_process_ended),
		cmocka_unit_test(threads_and_descriptors_are_listed),
		cmocka_unit_test(children_are_listed_and_their_end_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
