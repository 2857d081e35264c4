/* SPDX-License-Identifier: MIT */
/*
 * test_drum_env.c: where the environment says the drum shall be, and what happens when there can be
 * none. The test runs itself again as the traced program, for the environment is read at its start.
 */
#include "core/drum.h"
#include "formats/drum/drum_file.h"
#include "readback.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/kymo.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/memfd.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS 3000u

/*
 * ------------------------------------------------------------------------------------------------
 * The traced program: test_drum_env trace [kill]. Exits with 0 when every event is accounted for, and
 * with 3 when tracing is off.
 * ------------------------------------------------------------------------------------------------
 */

static void trace(void)
{
	for (uint32_t i = 0; i < EVENTS; i++) {
		KYMO_INSTANT("net", "one", "number", i);
		KYMO_INSTANT("net", "two", "number", i);
		if (i % 10 == 0)
			KYMO_INSTANT("db", "text", "text", "some text", "number", i);
	}
}

static void lift(int what)
{
	struct rlimit limit;
	if (getrlimit((__rlimit_resource_t)what, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit((__rlimit_resource_t)what, &limit);
	}
}

static int run_traced(bool kill_self)
{
	trace();
	if (kill_self)
		raise(SIGKILL);
	lift(RLIMIT_AS); /* reading takes memory, writing does not */
	lift(RLIMIT_NOFILE);
	const struct readback totals = readback(NULL, NULL);
	if (!ky_drum_peek() || ky_drum_peek()->header->refused_categories)
		return 3;
	return totals.events + totals.lost == 2 * EVENTS + EVENTS / 10 ? 0 : 1;
}

/*
 * ------------------------------------------------------------------------------------------------
 * The tests.
 * ------------------------------------------------------------------------------------------------
 */

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/kymo-env-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* before runs in the child, in front of the program. Returns the status of waitpid. */
static int run_program(void (*before)(void), const char *how, pid_t *pid)
{
	fflush(NULL);
	*pid = fork();
	if (*pid == 0) {
		setenv("KYMO_CATEGORIES", "*", 1);
		setenv("KYMO_BUFFER", "64k", 1);
		setenv("KYMO_LIMITS", "total=1M", 0);
		before();
		execl("/proc/self/exe", "test_drum_env", "trace", how, (char *)NULL);
		_exit(126);
	}
	int status = -1;
	waitpid(*pid, &status, 0);
	return status;
}

static int exit_of(void (*before)(void))
{
	pid_t pid;
	const int status = run_program(before, NULL, &pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void count_all(void *context, const struct ky_event *e)
{
	*(uint64_t *)context += e->kind == KYMO_KIND_LOST ? e->id : 1;
}

static void assert_whole(struct ky_drum_file *file, bool exited)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_stream *stream;
	struct ky_drum_facts facts;
	uint64_t sum = 0;
	assert_int_equal(ky_drum_file_stream(file, NULL, false, &stream, message), 0);
	stream->sink = (struct ky_stream_sink){.event = count_all, .context = &sum};
	assert_int_equal(ky_drum_file_read(file, true), 0);
	ky_drum_file_facts(file, &facts);
	assert_int_equal(sum, 2 * EVENTS + EVENTS / 10);
	assert_int_equal(facts.damaged, 0);
	assert_int_equal(facts.exited, exited);
}

static void drum_path(char *path, size_t bytes, pid_t pid)
{
	snprintf(path, bytes, "%s/kymo-%d.drum", folder, (int)pid);
}

static void in_folder(void)
{
	setenv("KYMO_DRUM_DIR", folder, 1);
}

static void a_file_outlives_its_process(void **state)
{
	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		char path[128], message[KY_MESSAGE_BYTES];
		pid_t pid;
		struct stat status;
		struct ky_drum_file *file;
		const int ended = run_program(in_folder, killed ? "kill" : NULL, &pid);
		assert_int_equal(ended, killed ? SIGKILL : 0);
		drum_path(path, sizeof(path), pid);
		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(status.st_mode & 07777, 0600);
		assert_int_equal(ky_drum_file_open(&file, path, message), 0);
		assert_whole(file, !killed);
		ky_drum_file_close(&file);
	}
}

/* Somebody who knows the process's number put a link there: nothing is written through it. */
static void plant_link(void)
{
	char path[128], target[128];
	in_folder();
	drum_path(path, sizeof(path), getpid());
	snprintf(target, sizeof(target), "%s/victim", folder);
	if (symlink(target, path) != 0)
		_exit(125);
}

static void a_planted_link_is_not_followed(void **state)
{
	(void)state;
	char path[128];
	pid_t pid;
	struct stat status;
	assert_int_equal(run_program(plant_link, NULL, &pid), 0);
	snprintf(path, sizeof(path), "%s/victim", folder);
	assert_int_equal(lstat(path, &status), -1);
	drum_path(path, sizeof(path), pid);
	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISREG(status.st_mode));
}

/* An earlier process of the same number left its drum: it is kept. */
static void plant_file(void)
{
	char path[128];
	in_folder();
	drum_path(path, sizeof(path), getpid());
	const int fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || write(fd, "earlier", 7) != 7)
		_exit(125);
}

static void a_file_that_is_there_already_is_kept_aside(void **state)
{
	(void)state;
	char path[128], message[KY_MESSAGE_BYTES];
	pid_t pid;
	struct stat status;
	struct ky_drum_file *file;
	assert_int_equal(run_program(plant_file, NULL, &pid), 0);
	drum_path(path, sizeof(path), pid);
	assert_int_equal(ky_drum_file_open(&file, path, message), 0);
	assert_whole(file, true);
	ky_drum_file_close(&file);
	strcat(path, ".old");
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 7);
}

static int given = -1;

static void give_descriptor(void)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", given);
	setenv("KYMO_DRUM_FD", number, 1);
}

static void a_given_descriptor_is_the_drum(void **state)
{
	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		char message[KY_MESSAGE_BYTES];
		pid_t pid;
		struct ky_drum_file *file;
		struct ky_drum_facts facts;
		given = (int)syscall(SYS_memfd_create, "kymo-drum", MFD_ALLOW_SEALING);
		assert_true(given >= 0 && ftruncate(given, 8 << 20) == 0);
		assert_int_equal(fcntl(given, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
		const int ended = run_program(give_descriptor, killed ? "kill" : NULL, &pid);
		assert_int_equal(ended, killed ? SIGKILL : 0);
		assert_int_equal(ky_drum_file_open_fd(&file, given, "given", message), 0);
		assert_whole(file, !killed);
		ky_drum_file_facts(file, &facts);
		assert_int_equal(facts.pid, pid);
		assert_true(facts.follows);
		ky_drum_file_close(&file);
		close(given);
	}
}

static void give_small_one(void)
{
	const int fd = (int)syscall(SYS_memfd_create, "kymo-drum", 0);
	char number[16];
	if (ftruncate(fd, 8192) != 0)
		_exit(125);
	snprintf(number, sizeof(number), "%d", fd);
	setenv("KYMO_DRUM_FD", number, 1);
}

static void give_nonsense(void)
{
	setenv("KYMO_DRUM_FD", "777", 1);
}

static void a_descriptor_that_is_no_good_is_passed_over(void **state)
{
	(void)state;
	assert_int_equal(exit_of(give_small_one), 0);
	assert_int_equal(exit_of(give_nonsense), 0);
}

/* Programs run on, traced or not, whatever is denied them. */
static void assert_runs_on(void (*before)(void))
{
	const int status = exit_of(before);
	if (status != 0 && status != 3)
		fail_msg("the program ended with %d", status);
}

static void lower(int what, rlim_t value)
{
	struct rlimit now;
	if (getrlimit((__rlimit_resource_t)what, &now) != 0)
		_exit(125);
	now.rlim_cur = value;
	if (setrlimit((__rlimit_resource_t)what, &now) != 0)
		_exit(125);
}

static void small_files(void)
{
	lower(RLIMIT_FSIZE, 64 << 10);
}

static void small_files_in_folder(void)
{
	in_folder();
	lower(RLIMIT_FSIZE, 64 << 10);
}

static void middling_files(void)
{
	lower(RLIMIT_FSIZE, 6 << 20);
}

static void few_descriptors(void)
{
	lower(RLIMIT_NOFILE, 4);
}

static void no_folder(void)
{
	setenv("KYMO_DRUM_DIR", "/nowhere/at/all", 1);
}

static void a_program_without_room_for_a_drum_runs_on(void **state)
{
	(void)state;
	assert_runs_on(small_files);
	assert_runs_on(small_files_in_folder);
	assert_runs_on(middling_files);
	assert_runs_on(few_descriptors);
	assert_runs_on(no_folder);
}

static void little_address_space(void)
{
	lower(RLIMIT_AS, 24 << 20);
}

static void least_address_space(void)
{
	lower(RLIMIT_AS, 7 << 20);
}

static void a_program_with_little_address_space_runs_on(void **state)
{
	(void)state;
	if (sanitized())
		skip();
	assert_runs_on(little_address_space);
	assert_runs_on(least_address_space);
}

/* As in a sandbox that has never heard of memfd_create. */
static void no_memfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(3);
}

static void a_sandbox_without_memfd_runs_on(void **state)
{
	(void)state;
	assert_int_equal(exit_of(no_memfd), 3);
}

/* A folder on a disk of that size, in a mount namespace of the child's own. */
static void on_small_disk(const char *size)
{
	char options[32];
	snprintf(options, sizeof(options), "size=%s", size);
	if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("kymo", folder, "tmpfs", 0, options) != 0)
		_exit(77);
	in_folder();
}

static void tiny_disk(void)
{
	on_small_disk("64k");
}

/* Room for the drum's head and for half a ring: it gets a smaller one. */
static void small_disk(void)
{
	on_small_disk("352k");
}

/* Room for some rings; the heap comes after them. */
static void middling_disk(void)
{
	on_small_disk("400k");
}

static void a_full_disk_does_not_end_the_program(void **state)
{
	(void)state;
	if (exit_of(tiny_disk) == 77)
		skip();
	assert_runs_on(tiny_disk);
	assert_int_equal(exit_of(small_disk), 0);
	assert_runs_on(middling_disk);
}

static void strange_values(void)
{
	setenv("KYMO_BUFFER", "99999999999999999999G", 1);
	setenv("KYMO_LIMITS", "total=1M,heap=0,rings=-1,categories=x,=,,,heap", 1);
}

static void smallest_values(void)
{
	setenv("KYMO_BUFFER", "1", 1);
	setenv("KYMO_LIMITS", "total=1,heap=1,rings=1,categories=1", 1);
}

static void largest_values(void)
{
	setenv("KYMO_BUFFER", "1G", 1);
	setenv("KYMO_LIMITS", "total=4G,heap=1G,rings=1000000,categories=1000000", 1);
}

static void any_values_of_the_limits_are_borne(void **state)
{
	(void)state;
	assert_runs_on(strange_values);
	assert_runs_on(largest_values);
	pid_t pid;
	assert_true(
		WIFEXITED(run_program(smallest_values, NULL, &pid))); /* one category is too few */
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "trace") == 0)
		return run_traced(argc > 2);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_outlives_its_process),
		cmocka_unit_test(a_planted_link_is_not_followed),
		cmocka_unit_test(a_file_that_is_there_already_is_kept_aside),
		cmocka_unit_test(a_given_descriptor_is_the_drum),
		cmocka_unit_test(a_descriptor_that_is_no_good_is_passed_over),
		cmocka_unit_test(a_program_without_room_for_a_drum_runs_on),
		cmocka_unit_test(a_program_with_little_address_space_runs_on),
		cmocka_unit_test(a_sandbox_without_memfd_runs_on),
		cmocka_unit_test(a_full_disk_does_not_end_the_program),
		cmocka_unit_test(any_values_of_the_limits_are_borne),
	};
	return cmocka_run_group_tests_name("drum_env", tests, make_folder, remove_folder);
}
