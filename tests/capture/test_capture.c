/* SPDX-License-Identifier: MIT */
/*
 * test_capture.c: the parts of a capture that stand alone: which snapshots are taken of which time,
 * the file that has no name until it is kept, the program that waits to be let go, and the signals.
 */
#include "capture/capture.h"
#include "capture/child.h"
#include "capture/signals.h"
#include "capture/snapshots.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

/* ---- snapshots ---- */

static struct ky_snapshots *flight_of(uint64_t before, uint64_t after, uint64_t cooldown,
				      uint32_t max)
{
	struct ky_snapshots *flight = NULL;
	assert_int_equal(
		ky_snapshots_open(&flight, &(struct ky_snapshots_options){.before_ns = before,
									  .after_ns = after,
									  .cooldown_ns = cooldown,
									  .snapshots_max = max}),
		0);
	return flight;
}

static bool fire(struct ky_snapshots *flight, uint64_t time, const char *reason)
{
	char text[] = "span:a/b>1ms";
	const struct ky_trigger trigger = {.kind = KY_TRIGGER_SPAN, .text = text};
	return ky_snapshots_take(
		flight, &(struct ky_fired){.trigger = &trigger, .time_ns = time, .reason = reason},
		0, 0);
}

static void a_snapshot_is_due_when_its_window_is_over(void **state)
{
	(void)state;
	struct ky_snapshots *flight = flight_of(10 * MS, 5 * MS, 0, 0);
	assert_true(ky_snapshots_due_ns(flight) == UINT64_MAX);
	assert_true(fire(flight, 100 * MS, "slow"));
	assert_int_equal(ky_snapshots_due_ns(flight), 105 * MS);
	assert_null(ky_snapshots_due(flight, 104 * MS));
	const struct ky_bundle_snapshot *const snapshot = ky_snapshots_due(flight, 105 * MS);
	assert_non_null(snapshot);
	assert_int_equal(snapshot->from_ns, 90 * MS);
	assert_int_equal(snapshot->to_ns, 105 * MS);
	assert_string_equal(snapshot->reason, "slow");
	assert_string_equal(snapshot->trigger, "span:a/b>1ms");
	assert_null(ky_snapshots_due(flight, 200 * MS));
	assert_int_equal(ky_snapshots_count(flight), 1);
	ky_snapshots_close(&flight);
	assert_null(flight);
}

static void one_that_comes_too_soon_is_passed_over(void **state)
{
	(void)state;
	struct ky_snapshots *flight = flight_of(10 * MS, 0, 50 * MS, 0);
	assert_true(fire(flight, 100 * MS, "1"));
	assert_false(fire(flight, 149 * MS, "2"));
	assert_true(fire(flight, 150 * MS, "3"));
	/* It arrives late: it was before the last one. */
	assert_false(fire(flight, 140 * MS, "4"));
	assert_int_equal(ky_snapshots_passed_over(flight), 2);
	ky_snapshots_close(&flight);
}

static void a_time_to_come_holds_up_nobody(void **state)
{
	(void)state;
	struct ky_snapshots *flight = flight_of(10 * MS, 5 * MS, 0, 0);
	const uint64_t before = ky_os_boottime();
	assert_true(fire(flight, UINT64_MAX - MS, "1"));
	assert_true(ky_snapshots_due_ns(flight) >= before + 5 * MS);
	assert_true(ky_snapshots_due_ns(flight) <= ky_os_boottime() + 5 * MS);
	ky_snapshots_close(&flight);
}

static void it_is_done_when_all_that_are_wanted_are_written(void **state)
{
	(void)state;
	struct ky_snapshots *flight = flight_of(10 * MS, 10 * MS, 0, 2);
	assert_true(fire(flight, 100 * MS, "1"));
	assert_true(fire(flight, 101 * MS, "2"));
	assert_false(fire(flight, 102 * MS, "3"));
	assert_non_null(ky_snapshots_due(flight, 110 * MS));
	assert_false(ky_snapshots_is_done(flight));
	ky_snapshots_cut(flight, 110 * MS + MS / 2);
	const struct ky_bundle_snapshot *const cut = ky_snapshots_due(flight, 110 * MS + MS / 2);
	assert_non_null(cut);
	assert_int_equal(cut->to_ns, 110 * MS + MS / 2);
	assert_true(ky_snapshots_is_done(flight));
	/* After the last was taken out, the list takes more. */
	assert_null(ky_snapshots_due(flight, UINT64_MAX));
	ky_snapshots_close(&flight);
}

static void the_list_holds_after_its_last_was_taken(void **state)
{
	(void)state;
	struct ky_snapshots *flight = flight_of(0, 5 * MS, 0, 0);
	for (uint64_t round = 0; round < 3; round++) {
		assert_true(fire(flight, (100 + round * 10) * MS, "a"));
		assert_true(fire(flight, (101 + round * 10) * MS, "b"));
		assert_non_null(ky_snapshots_due(flight, (105 + round * 10) * MS));
		assert_null(ky_snapshots_due(flight, (105 + round * 10) * MS));
		assert_non_null(ky_snapshots_due(flight, (106 + round * 10) * MS));
	}
	assert_int_equal(ky_snapshots_count(flight), 6);
	ky_snapshots_close(&flight);
}

static void it_reaches_back_to_the_mark_and_not_before_time_began(void **state)
{
	(void)state;
	struct ky_snapshots *flight = flight_of(50 * MS, 0, 0, 0);
	struct ky_fired fired = {.time_ns = 100 * MS, .reason = ""};
	assert_true(ky_snapshots_take(flight, &fired, 80 * MS, 0));
	assert_int_equal(ky_snapshots_due(flight, 100 * MS)->from_ns, 80 * MS);
	/* A mark before the window, or after the snapshot, changes nothing. */
	assert_true(ky_snapshots_take(flight, &fired, 20 * MS, 0));
	assert_int_equal(ky_snapshots_due(flight, 100 * MS)->from_ns, 50 * MS);
	assert_true(ky_snapshots_take(flight, &fired, 101 * MS, 0));
	assert_int_equal(ky_snapshots_due(flight, 100 * MS)->from_ns, 50 * MS);
	/* As asked for by somebody. */
	assert_true(ky_snapshots_take(flight, &fired, 0, 90 * MS));
	assert_int_equal(ky_snapshots_due(flight, 100 * MS)->from_ns, 10 * MS);
	fired.time_ns = 20 * MS;
	assert_true(ky_snapshots_take(flight, &fired, 0, 0));
	assert_int_equal(ky_snapshots_due(flight, 100 * MS)->from_ns, 0);
	ky_snapshots_close(&flight);
}

static void a_trigger_that_never_rests_takes_bounded_memory(void **state)
{
	(void)state;
	struct ky_snapshots *flight = flight_of(0, UINT64_C(1000000) * MS, 0, 0);
	uint32_t taken = 0;
	for (uint64_t i = 0; i < 5000; i++)
		taken += fire(flight, i, "again");
	assert_in_range(taken, 1, 2000);
	assert_int_equal(ky_snapshots_passed_over(flight), 5000 - taken);
	ky_snapshots_close(&flight);
}

/* ---- the file ---- */

struct folder {
	char path[64];
};

static int make_folder(void **state)
{
	struct folder *const folder = calloc(1, sizeof(*folder));
	assert_non_null(folder);
	snprintf(folder->path, sizeof(folder->path), "/tmp/kymo-capture-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	assert_int_equal(chdir(folder->path), 0);
	*state = folder;
	return 0;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"a.kymo", "a.kymo.old", "link.kymo", "program"};
	struct folder *const folder = *state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	assert_int_equal(chdir("/"), 0);
	/* Fails when something was left behind. */
	assert_int_equal(rmdir(folder->path), 0);
	free(folder);
	return 0;
}

static void write_file(const char *path, const char *text)
{
	FILE *const file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect_file(const char *path, const char *text)
{
	char got[64] = "";
	FILE *const file = fopen(path, "re");
	assert_non_null(file);
	const size_t bytes = fread(got, 1, sizeof(got) - 1, file);
	fclose(file);
	assert_int_equal(bytes, strlen(text));
	assert_string_equal(got, text);
}

static void what_is_not_kept_leaves_nothing(void **state)
{
	(void)state;
	struct ky_capture_output output;
	char message[KY_MESSAGE_BYTES];
	write_file("a.kymo", "before");
	assert_int_equal(ky_capture_output_open(&output, "a.kymo", true, message), 0);
	assert_true(output.fd >= 0);
	assert_int_equal(write(output.fd, "new", 3), 3);
	ky_capture_output_close(&output);
	expect_file("a.kymo", "before");
}

static void what_is_kept_replaces_and_the_old_one_may_stay(void **state)
{
	(void)state;
	struct ky_capture_output output;
	char message[KY_MESSAGE_BYTES];
	write_file("a.kymo", "before");
	assert_int_equal(ky_capture_output_open(&output, "a.kymo", true, message), 0);
	assert_int_equal(ky_capture_output_keep(&output, message), 0);
	/* It has its name while it is written. */
	assert_int_equal(write(output.fd, "new", 3), 3);
	expect_file("a.kymo", "new");
	expect_file("a.kymo.old", "before");
	assert_int_equal(ky_capture_output_keep(&output, message), 0);
	ky_capture_output_close(&output);

	assert_int_equal(ky_capture_output_open(&output, "a.kymo", false, message), 0);
	assert_int_equal(ky_capture_output_keep(&output, message), 0);
	ky_capture_output_close(&output);
	expect_file("a.kymo", "");
	expect_file("a.kymo.old", "before");
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
	(void)state;
	struct ky_capture_output output;
	struct stat status;
	char message[KY_MESSAGE_BYTES];
	write_file("a.kymo", "before");
	assert_int_equal(symlink("a.kymo", "link.kymo"), 0);
	assert_int_equal(ky_capture_output_open(&output, "link.kymo", false, message), 0);
	assert_int_equal(ky_capture_output_keep(&output, message), 0);
	assert_string_equal(output.path, "link.kymo");
	ky_capture_output_close(&output);
	expect_file("a.kymo", "");
	assert_int_equal(lstat("link.kymo", &status), 0);
	assert_true(S_ISLNK(status.st_mode));
}

static void a_place_that_cannot_be_written_is_told_at_once(void **state)
{
	(void)state;
	struct ky_capture_output output;
	char message[KY_MESSAGE_BYTES] = "";
	assert_int_equal(ky_capture_output_open(&output, "no/such/a.kymo", false, message),
			 -ENOENT);
	assert_non_null(strstr(message, "no/such/a.kymo"));
	ky_capture_output_close(&output);
	assert_int_equal(ky_capture_output_open(&output, "/", false, message), -EISDIR);
	ky_capture_output_close(&output);
	/* What is no file is written as it is. */
	assert_int_equal(ky_capture_output_open(&output, "/dev/null", false, message), 0);
	assert_true(output.kept && output.fd < 0);
	ky_capture_output_close(&output);
}

/* ---- the program ---- */

static void fork_it(struct ky_child *child, char *const *command)
{
	static sigset_t mask;
	static const struct sigaction usual = {.sa_handler = SIG_DFL};
	char message[KY_MESSAGE_BYTES];
	sigemptyset(&mask);
	assert_int_equal(ky_child_fork(child,
				       &(struct ky_child_options){.command = command,
								  .mailbox = "box",
								  .categories = "net,db",
								  .ring_bytes = 65536,
								  .output = STDOUT_FILENO,
								  .hold = true,
								  .mask = &mask,
								  .child_action = &usual},
				       message),
			 0);
}

static int wait_end(struct ky_child *child)
{
	siginfo_t info;
	/* Left as it is: ky_child_reap() is to find it. */
	assert_int_equal(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(ky_child_reap(child));
	return child->status;
}

static void a_program_runs_once_it_is_let_go(void **state)
{
	(void)state;
	char *command[] = {"sh", "-c",
			   "test \"$KYMO_DRUM_MAIL $KYMO_CATEGORIES $KYMO_BUFFER\" = "
			   "'box net,db 65536' && exit 7",
			   NULL};
	struct ky_child child;
	char message[KY_MESSAGE_BYTES] = "";
	fork_it(&child, command);
	assert_false(ky_child_reap(&child));
	assert_int_equal(ky_child_exec(&child, command[0], false, message), 0);
	const int status = wait_end(&child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	ky_child_close(&child);
}

/* With its libraries mapped, and none of its own code run. */
static void a_held_program_is_stopped_at_its_entry_point(void **state)
{
	(void)state;
	char *command[] = {"sh", "-c", "touch a.held", NULL};
	struct ky_child child;
	char message[KY_MESSAGE_BYTES] = "", path[64], maps[65536];
	fork_it(&child, command);
	assert_int_equal(ky_child_exec(&child, command[0], true, message), 0);
	if (!child.held) {
		ky_child_close(&child);
		wait_end(&child);
		skip(); /* no ptrace here */
	}
	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)child.pid);
	FILE *const file = fopen(path, "re");
	assert_non_null(file);
	maps[fread(maps, 1, sizeof(maps) - 1, file)] = '\0';
	fclose(file);
	assert_non_null(strstr(maps, "/libc.so"));
	assert_false(ky_child_reap(&child));
	assert_int_not_equal(access("a.held", F_OK), 0);
	ky_child_release(&child);
	const int status = wait_end(&child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(access("a.held", F_OK), 0);
	unlink("a.held");
	ky_child_close(&child);
}

/* Nobody is left to let it go: the kernel does. */
static void a_held_program_goes_on_when_kymo_is_killed(void **state)
{
	(void)state;
	char *command[] = {"sh", "-c", "exit 5", NULL};
	pid_t pid = 0;
	int ends[2], status;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	const pid_t kymo = fork();
	if (kymo == 0) {
		struct ky_child child;
		char message[KY_MESSAGE_BYTES] = "";
		fork_it(&child, command);
		const int error = ky_child_exec(&child, command[0], true, message);
		pid = !error && child.held ? child.pid : 0;
		if (write(ends[1], &pid, sizeof(pid)) == sizeof(pid))
			raise(SIGKILL);
		_exit(1);
	}
	assert_int_equal(read(ends[0], &pid, sizeof(pid)), sizeof(pid));
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(waitpid(kymo, NULL, 0), kymo);
	if (!pid)
		skip(); /* no ptrace here */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void a_held_program_that_cannot_be_run_is_told_as_ever(void **state)
{
	(void)state;
	char *command[] = {"./program", NULL};
	struct ky_child child;
	char message[KY_MESSAGE_BYTES] = "";
	fork_it(&child, command);
	assert_int_equal(ky_child_exec(&child, command[0], true, message), -ENOENT);
	assert_false(child.running);
	ky_child_close(&child);
}

static void a_program_that_was_not_let_go_never_runs(void **state)
{
	(void)state;
	char *command[] = {"touch", "a.kymo", NULL};
	struct ky_child child;
	fork_it(&child, command);
	ky_child_close(&child);
	assert_false(child.running);
	assert_int_not_equal(access("a.kymo", F_OK), 0);
}

static void a_program_that_cannot_be_run_is_told_with_the_reason(void **state)
{
	(void)state;
	char *command[] = {"./program", NULL};
	struct ky_child child;
	char message[KY_MESSAGE_BYTES] = "", path[PATH_MAX];
	assert_int_equal(ky_child_find("./program", path, sizeof(path)), -ENOENT);
	write_file("program", "#!/no/such/interpreter\n");
	assert_int_equal(ky_child_find("./program", path, sizeof(path)), -EACCES);
	assert_int_equal(chmod("program", 0755), 0);
	assert_int_equal(ky_child_find("./program", path, sizeof(path)), 0);
	fork_it(&child, command);
	assert_int_equal(ky_child_exec(&child, command[0], false, message), -ENOENT);
	assert_non_null(strstr(message, "./program"));
	assert_false(child.running);
	ky_child_close(&child);
	assert_int_equal(ky_child_find("sh", path, sizeof(path)), 0);
	assert_non_null(strstr(path, "/sh"));
	assert_int_equal(ky_child_find("no-such-program-of-kymo", path, sizeof(path)), -ENOENT);
	assert_int_equal(ky_child_find("", path, sizeof(path)), -ENOENT);
}

/* The end of a child that never became the program fires no exit trigger. */
static void a_capture_of_a_program_that_cannot_be_run_keeps_nothing(void **state)
{
	(void)state;
	char *command[] = {"./program", NULL};
	char text[] = "exit", message[KY_MESSAGE_BYTES];
	const struct ky_trigger trigger = {.kind = KY_TRIGGER_EXIT, .text = text};
	const struct ky_capture_options options = {.path = "a.kymo",
						   .command = command,
						   .scope = KY_PROCESSES_CHILDREN,
						   .drums = true,
						   .triggers = &trigger,
						   .triggers_count = 1,
						   .before_ns = 1000 * MS};
	struct ky_capture_facts facts;
	write_file("a.kymo", "before");
	write_file("program", "#!/no/such/interpreter\n");
	assert_int_equal(chmod("program", 0755), 0);
	assert_int_equal(ky_capture(&options, &facts, message), -ENOENT);
	assert_non_null(strstr(message, "./program"));
	assert_true(facts.exec_failed && !facts.started && !facts.kept);
	assert_int_equal(facts.snapshots, 0);
	expect_file("a.kymo", "before");
}

static void signals_are_passed_on(void **state)
{
	(void)state;
	char *command[] = {"cat", NULL};
	struct ky_child child;
	char message[KY_MESSAGE_BYTES] = "";
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const int input = dup(STDIN_FILENO);
	dup2(ends[0], STDIN_FILENO);
	fork_it(&child, command);
	dup2(input, STDIN_FILENO);
	assert_int_equal(ky_child_exec(&child, command[0], false, message), 0);
	ky_child_pass(&child, SIGTERM);
	const int status = wait_end(&child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	ky_child_pass(&child, SIGTERM); /* nobody's any more */
	ky_child_close(&child);
	close(input);
	close(ends[0]);
	close(ends[1]);
}

/* Interrupt kymo and its program when kymo has looked at its signals, and return once the program has ended. */
static int interrupt_both(void *context, const struct ky_capture_facts *facts)
{
	siginfo_t info;
	(void)facts;
	if (*(int *)context < 0)
		return 0;
	kill(getpid(), SIGINT);
	close(*(int *)context);
	*(int *)context = -1;
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
	return 0;
}

static void an_interrupt_that_ends_the_program_at_once_takes_its_snapshot(void **state)
{
	(void)state;
	char *command[] = {"cat", NULL};
	char text[] = "interrupt", message[KY_MESSAGE_BYTES];
	int ends[2];
	const struct ky_trigger trigger = {.kind = KY_TRIGGER_INTERRUPT, .text = text};
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const struct ky_capture_options options = {.path = "a.kymo",
						   .command = command,
						   .scope = KY_PROCESSES_CHILDREN,
						   .triggers = &trigger,
						   .triggers_count = 1,
						   .before_ns = 1000 * MS,
						   .progress = interrupt_both,
						   .context = &ends[1]};
	struct ky_capture_facts facts;
	const int input = dup(STDIN_FILENO);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	assert_int_equal(ky_capture(&options, &facts, message), 0);
	dup2(input, STDIN_FILENO);
	close(input);
	assert_int_equal(facts.snapshots, 1);
	assert_true(facts.kept);
	assert_int_equal(access("a.kymo", F_OK), 0);
}

/* ---- signals ---- */

static void signals_are_read_and_told_apart(void **state)
{
	(void)state;
	struct ky_signals signals;
	struct ky_signal signal;
	sigset_t before, after;
	const struct ky_trigger trigger = {.kind = KY_TRIGGER_SIGNAL, .signal = SIGUSR2};
	sigprocmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(ky_signals_open(&signals, false, &trigger, 1), 0);
	assert_false(ky_signals_next(&signals, &signal));
	kill(getpid(), SIGUSR2);
	assert_true(ky_signals_next(&signals, &signal));
	assert_int_equal(signal.number, SIGUSR2);
	assert_false(signal.terminal);
	assert_int_equal(signal.sender, getpid());
	sigqueue(getpid(), KY_SIGNAL_SNAPSHOT, (union sigval){.sival_int = 1500});
	assert_true(ky_signals_next(&signals, &signal));
	assert_int_equal(signal.number, KY_SIGNAL_SNAPSHOT);
	assert_int_equal(signal.value, 1500);
	/* One that came and was not read does not end kymo afterwards. */
	kill(getpid(), SIGTERM);
	ky_signals_close(&signals);
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
	assert_int_equal(sigismember(&after, SIGUSR2), sigismember(&before, SIGUSR2));
}

static void a_signal_that_was_ignored_stays_so(void **state)
{
	(void)state;
	struct ky_signals signals;
	struct ky_signal signal;
	struct sigaction before;
	sigaction(SIGHUP, &(struct sigaction){.sa_handler = SIG_IGN}, &before);
	assert_int_equal(ky_signals_open(&signals, true, NULL, 0), 0);
	kill(getpid(), SIGHUP);
	assert_false(ky_signals_next(&signals, &signal));
	ky_signals_close(&signals);
	sigaction(SIGHUP, &before, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_snapshot_is_due_when_its_window_is_over),
		cmocka_unit_test(one_that_comes_too_soon_is_passed_over),
		cmocka_unit_test(a_time_to_come_holds_up_nobody),
		cmocka_unit_test(it_is_done_when_all_that_are_wanted_are_written),
		cmocka_unit_test(the_list_holds_after_its_last_was_taken),
		cmocka_unit_test(it_reaches_back_to_the_mark_and_not_before_time_began),
		cmocka_unit_test(a_trigger_that_never_rests_takes_bounded_memory),
		cmocka_unit_test_setup_teardown(what_is_not_kept_leaves_nothing, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(what_is_kept_replaces_and_the_old_one_may_stay,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(a_link_stays_and_its_file_is_replaced, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_place_that_cannot_be_written_is_told_at_once,
						make_folder, remove_folder),
		cmocka_unit_test(a_program_runs_once_it_is_let_go),
		cmocka_unit_test(a_held_program_is_stopped_at_its_entry_point),
		cmocka_unit_test(a_held_program_goes_on_when_kymo_is_killed),
		cmocka_unit_test(a_held_program_that_cannot_be_run_is_told_as_ever),
		cmocka_unit_test_setup_teardown(a_program_that_was_not_let_go_never_runs,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(
			a_program_that_cannot_be_run_is_told_with_the_reason, make_folder,
			remove_folder),
		cmocka_unit_test_setup_teardown(
			a_capture_of_a_program_that_cannot_be_run_keeps_nothing, make_folder,
			remove_folder),
		cmocka_unit_test_setup_teardown(
			an_interrupt_that_ends_the_program_at_once_takes_its_snapshot, make_folder,
			remove_folder),
		cmocka_unit_test(signals_are_passed_on),
		cmocka_unit_test(signals_are_read_and_told_apart),
		cmocka_unit_test(a_signal_that_was_ignored_stays_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
