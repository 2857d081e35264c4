/* SPDX-License-Identifier: MIT */
/*
 * test_hostile.c: processes that want kymo to do harm. They put another file in the place of the memory that kymo made
 * in them, or have a mapping with the name of kymo's that they made themselves.
 */
#include "functrace/patch_parts.h"

#include "process/proc.h"
#include "target_run.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ENTRIES 200000u

/* ---- another file in the place of a memfd ---- */

/* Descriptors that a child has at these numbers. */
enum { GOOD, READ_ONLY, UNSEALABLE, SEALED, FILLED, PLAIN, PIPE, DESCRIPTORS };
#define NUMBER(which) (200 + (which))

static void put(int which, int fd)
{
	if (fd < 0 || dup2(fd, NUMBER(which)) < 0)
		_exit(1);
}

/* Make a file of a file system, without a name. */
static int made_file(void)
{
	char path[] = "/tmp/kymo-hostile-XXXXXX";
	const int fd = mkstemp(path);
	unlink(path);
	return fd;
}

static void make_descriptors(void)
{
	char path[64];
	int ends[2];
	const int memory = memfd_create("a", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int filled = memfd_create("a", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int sealed = memfd_create("a", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	put(GOOD, memory);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	put(READ_ONLY, open(path, O_RDONLY));
	put(UNSEALABLE, memfd_create("a", MFD_CLOEXEC));
	if (ftruncate(filled, 4096) || fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK) || pipe(ends))
		_exit(1);
	put(SEALED, sealed);
	put(FILLED, filled);
	put(PLAIN, made_file());
	put(PIPE, ends[0]);
}

static pid_t run_child(void (*prepare)(void))
{
	int ready[2];
	char byte = 0;
	assert_int_equal(pipe(ready), 0);
	const pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prepare();
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void what_is_no_new_memfd_is_not_taken(void **state)
{
	(void)state;
	const pid_t child = run_child(make_descriptors);
	const struct ky_remote remote = {.pid = child, .memory = -1};
	const int good = ky_remote_take_memfd(&remote, NUMBER(GOOD));
	assert_true(good >= 0);
	assert_int_equal(fcntl(good, F_GETFL) & O_ACCMODE, O_RDWR);
	close(good);
	for (int which = GOOD + 1; which < DESCRIPTORS; which++)
		assert_int_equal(ky_remote_take_memfd(&remote, NUMBER(which)), -EPERM);
	assert_int_equal(ky_remote_take_memfd(&remote, NUMBER(DESCRIPTORS)), -EBADF);
	end_child(child);
}

/* ---- a home that nobody made ---- */

static struct {
	struct ky_agent_home home;
	struct ky_patch_keep keep;
	bool equal_entries;
} forged;

/* Map the forged home, as kymo would, and its table. */
static void forge(void)
{
	const size_t bytes = KY_PATCH_CODE_AT + KY_PATCH_PAGE;
	const int fd = memfd_create(KY_AGENT_NAME, MFD_CLOEXEC);
	char *at = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0
			   ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0)
			   : MAP_FAILED;
	struct ky_agent_patch *table = calloc(ENTRIES, sizeof(*table));
	if (at == MAP_FAILED || !table)
		_exit(1);
	for (uint32_t i = 0; i < ENTRIES; i++)
		table[i] = (struct ky_agent_patch){
			.address = forged.equal_entries ? 4096 : i * 16, .bytes = 5, .set = 1};
	if (!forged.home.patches)
		forged.home.patches = (uint64_t)(uintptr_t)table;
	memcpy(at, &forged.home, sizeof(forged.home));
	memcpy(at + KY_PATCH_KEEP_AT, &forged.keep, sizeof(forged.keep));
}

/* A home that says all that a process can know of this kymo. */
static void begin_forgery(void)
{
	memset(&forged, 0, sizeof(forged));
	forged.equal_entries = true;
	forged.home = (struct ky_agent_home){.magic = KY_AGENT_MAGIC,
					     .version = KY_AGENT_VERSION,
					     .on = 1,
					     .owner_pid = (uint32_t)getpid(),
					     .owner_started = ky_patch_started(getpid()),
					     .generation = 7,
					     .state_bytes = 2 * KY_AGENT_STATE_BYTES,
					     .states_max = 1,
					     .counts = 1,
					     .patches_count = ENTRIES,
					     .patches_max = ENTRIES};
	forged.keep.magic = KY_PATCH_KEEP_MAGIC;
	forged.keep.drum_fd = -1;
}

static void see_no_child(void *context, pid_t pid, int error, const char *message)
{
	(void)context;
	fail_msg("process %d was taken for a child: %d, %s", (int)pid, error, message);
}

static void a_process_that_claims_to_be_ours_is_left_alone(void **state)
{
	bool whole = false;
	(void)state;
	begin_forgery();
	const pid_t child = run_child(forge);
	assert_false(ky_patch_is_ours(child));
	assert_int_equal(ky_patch_close_children(0, see_no_child, NULL, &whole), 0);
	assert_true(whole);
	end_child(child);
}

/* Attach to a process with the forged home; it is refused, and goes on. */
static void expect_refusal(int expected)
{
	char message[KY_MESSAGE_BYTES] = "";
	const struct ky_functrace_options options = {.ring_bytes = 65536, .total_bytes = 1 << 20};
	struct ky_patch *patch = NULL;
	const pid_t child = run_child(forge);
	const int error = ky_patch_open(&patch, child, &options, message);
	if (error != expected)
		fail_msg("%d instead of %d: %s", error, expected, message);
	assert_null(patch);
	assert_int_not_equal(target_state(child), 'Z');
	end_child(child);
}

static void homes_that_cannot_be_true_are_refused(void **state)
{
	(void)state;
	target_skip_without_ptrace();
	begin_forgery();
	forged.home.owner_pid = 0;
	expect_refusal(-EPROTO); /* equal entries */
	forged.equal_entries = false;
	forged.home.patches = UINT64_MAX - 4096;
	expect_refusal(-EPROTO);
	forged.home.patches = 0;
	forged.home.states = UINT64_MAX - 8192;
	forged.home.states_max = KY_AGENT_STATES_MAX;
	expect_refusal(-EPROTO);
	forged.home.states = 0;
	forged.home.known_mask = UINT64_MAX;
	expect_refusal(-EPROTO);
	forged.home.known_mask = 0;
	forged.keep.regions_count = 1;
	forged.keep.regions[0] = (struct ky_patch_region){UINT64_MAX - 4096, 8192, 8192};
	expect_refusal(-EPROTO);
	forged.keep.regions[0] = (struct ky_patch_region){4096, UINT64_C(1) << 46, 0};
	expect_refusal(-EPROTO);
}

static void who_owns_a_home_is_asked_before_its_table_is_read(void **state)
{
	(void)state;
	target_skip_without_ptrace();
	begin_forgery();
	/* The parent of this test runs as long as it does. */
	forged.home.owner_pid = (uint32_t)getppid();
	forged.home.owner_started = ky_patch_started(getppid());
	expect_refusal(-EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_new_memfd_is_not_taken),
		cmocka_unit_test(a_process_that_claims_to_be_ours_is_left_alone),
		cmocka_unit_test(homes_that_cannot_be_true_are_refused),
		cmocka_unit_test(who_owns_a_home_is_asked_before_its_table_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
