/* SPDX-License-Identifier: MIT */
/*
 * test_drums.c: the drums of other processes: read to the last event, switched on and back, in
 * windows, and when their owners die, cut them short or scribble over them.
 */
#include "capture/drums.h"

#include "../core/readback.h"
#include "capture/drum_map.h"
#include "capture/drum_threads.h"
#include "core/layout.h"
#include "fake_bundle.h"
#include "functrace/made_drum.h"
#include "os/os.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

static struct ky_bundle *bundle;
static struct target target;
static char message[KY_MESSAGE_BYTES];

static int set_up(void **state)
{
	(void)state;
	bundle = calloc(1, sizeof(*bundle));
	return bundle ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(bundle);
	return 0;
}

static struct ky_drums *attach(const struct ky_drums_options *options, pid_t pid)
{
	struct ky_drums *drums;
	assert_int_equal(ky_drums_open(&drums, options), 0);
	assert_int_equal(ky_drums_add_process(drums, pid, message), 1);
	assert_string_equal(message, "");
	return drums;
}

static struct ky_drums_facts facts_of(const struct ky_drums *drums, uint32_t index)
{
	struct ky_drums_facts facts;
	assert_true(ky_drums_facts(drums, index, &facts));
	return facts;
}

/* Time must be seen to pass between what is in a window and what is not. */
static uint64_t later(void)
{
	const uint64_t from_ns = ky_os_boottime();
	while (ky_os_boottime() < from_ns + MS)
		;
	const uint64_t now_ns = ky_os_boottime();
	while (ky_os_boottime() < now_ns + MS)
		;
	return now_ns;
}

/*
 * ------------------------------------------------------------------------------------------------
 * Streaming.
 * ------------------------------------------------------------------------------------------------
 */

static void a_killed_program_is_read_to_its_last_event(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	const pid_t pid = target.pid;
	struct ky_drums *drums =
		attach(&(struct ky_drums_options){.bundle = bundle, .switch_on = true}, pid);
	target_do(&target, TARGET_NET, 10000);
	ky_drums_round(drums, false);
	target_do(&target, TARGET_KILL, 20000);
	assert_true(WIFSIGNALED(target_wait(&target)));
	ky_drums_ended(drums, pid);
	const struct fake_source *source = &bundle->sources[0];
	assert_int_equal(bundle->count, 1);
	assert_int_equal(source->pid, pid);
	assert_string_equal(source->process, "test_drums");
	assert_int_equal(source->net, 30000);
	assert_int_equal(source->last, 30000);
	assert_int_equal(source->out_of_order, 0);
	assert_int_equal(source->lost_in_all, 0);
	assert_true(source->ended && source->clocks > 0 && source->threads == 1);
	assert_true(facts_of(drums, 0).ended);
	assert_int_equal(facts_of(drums, 0).events, 30000);
	assert_int_equal(facts_of(drums, 0).damaged, 0);
	ky_drums_close(&drums);
	target_end(&target);
}

static void what_was_recorded_before_the_attach_is_left_out(void **state)
{
	(void)state;
	target_start(&target, "*", NULL);
	target_do(&target, TARGET_NET, 5000);
	struct ky_drums *drums = attach(&(struct ky_drums_options){.bundle = bundle}, target.pid);
	target_do(&target, TARGET_NET, 5000);
	ky_drums_round(drums, true);
	assert_int_equal(bundle->sources[0].first, 5001);
	assert_int_equal(bundle->sources[0].net, 5000);
	ky_drums_close(&drums);
	target_end(&target);
}

static void a_drum_that_is_made_during_the_capture_is_read_from_the_first_event(void **state)
{
	(void)state;
	struct ky_drums *drums;
	const struct ky_drums_options options = {.bundle = bundle, .categories = "net"};
	assert_int_equal(ky_drums_open(&drums, &options), 0);
	target_start(&target, "*", NULL);
	target_do(&target, TARGET_NET, 5000);
	target_do(&target, TARGET_DB, 5000);
	assert_int_equal(ky_drums_add(drums, target.drum, target.pid, message), 0);
	assert_int_equal(ky_drums_add(drums, target.drum, target.pid, message), 1);
	assert_int_equal(ky_drums_add_process(drums, target.pid, message), 0);
	ky_drums_round(drums, true);
	assert_int_equal(bundle->sources[0].first, 1);
	assert_int_equal(bundle->sources[0].net, 5000);
	assert_int_equal(bundle->sources[0].db,
			 0); /* not asked for, though somebody else wants it */
	ky_drums_close(&drums);
	target_end(&target);
}

static void a_drum_that_comes_after_its_process_ended_is_read_at_once(void **state)
{
	(void)state;
	struct ky_drums *drums;
	assert_int_equal(ky_drums_open(&drums, &(struct ky_drums_options){.bundle = bundle}), 0);
	target_start(&target, "*", NULL);
	const pid_t pid = target.pid;
	target_do(&target, TARGET_KILL, 3000);
	(void)target_wait(&target);
	assert_int_equal(ky_drums_add(drums, target.drum, pid, message), 0);
	assert_int_equal(bundle->sources[0].net, 3000);
	assert_true(bundle->sources[0].ended);
	assert_int_equal(ky_drums_add(drums, target.drum, pid, message), 1);
	ky_drums_close(&drums);
	target_end(&target);
}

/* A drum of another program under the same pid. */
static void a_drum_ends_when_its_process_calls_exec(void **state)
{
	(void)state;
	struct ky_drums *drums;
	struct target after;
	assert_int_equal(ky_drums_open(&drums, &(struct ky_drums_options){.bundle = bundle}), 0);
	target_start(&target, "*", NULL);
	target_start(&after, "*", NULL);
	const uint64_t image = after.header->image + 1;
	assert_int_equal(
		pwrite(after.drum, &image, sizeof(image), offsetof(struct ky_drum_header, image)),
		sizeof(image));
	assert_int_equal(ky_drums_add(drums, target.drum, target.pid, message), 0);
	target_do(&target, TARGET_NET, 10);
	assert_int_equal(ky_drums_add(drums, after.drum, target.pid, message), 0);
	assert_true(bundle->sources[0].ended);
	assert_int_equal(bundle->sources[0].net, 10);
	assert_int_equal(ky_drums_add(drums, target.drum, target.pid, message), 1);
	target_do(&after, TARGET_NET, 5);
	ky_drums_round(drums, true);
	assert_int_equal(bundle->sources[1].net, 5);
	assert_false(bundle->sources[1].ended);
	ky_drums_close(&drums);
	target_end(&after);
	target_end(&target);
}

/* A ring that was not read grows, as far as the program's memory for rings goes. */
static void rings_grow_before_events_are_lost(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	struct ky_drums *drums =
		attach(&(struct ky_drums_options){.bundle = bundle, .switch_on = true}, target.pid);
	target_do(&target, TARGET_NET, 1000000); /* more than its first ring has room for */
	ky_drums_round(drums, true);
	assert_int_equal(bundle->sources[0].net, 1000000);
	assert_int_equal(bundle->sources[0].lost, 0);
	assert_int_equal(target.header->stalled, 0);
	ky_drums_close(&drums);
	assert_int_equal(target.header->readers[0].state, KY_READER_NONE);
	target_end(&target);
}

static void losses_are_counted(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	struct ky_drums *drums = attach(&(struct ky_drums_options){.bundle = bundle,
								   .switch_on = true,
								   .stall_ns = 1000000},
					target.pid);
	target_do(&target, TARGET_NET, 1000); /* the ring is there */
	ky_drums_round(drums, true);
	target_do(&target, TARGET_NET, 20000000); /* more than all rings have room for */
	ky_drums_round(drums, true);
	const struct fake_source *source = &bundle->sources[0];
	assert_true(source->lost > 0);
	assert_int_equal(source->net + source->lost, 20001000);
	assert_true(target.header->stalled > 0); /* it waited for this thread, which did not read */
	assert_int_equal(facts_of(drums, 0).lost, source->lost);
	ky_drums_close(&drums);
	assert_int_equal(source->lost_in_all, source->lost);
	target_end(&target);
}

static void losses_have_their_causes(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	const pid_t pid = target.pid;
	const struct ky_drums_options options = {.bundle = bundle, .switch_on = true};
	target_do(&target, TARGET_LOSE, 5); /* before it is attached */
	struct ky_drums *drums = attach(&options, pid);
	target_do(&target, TARGET_NET, 10);
	target_do(&target, TARGET_LOSE, 3);
	target_do(&target, TARGET_KILL, 1);
	(void)target_wait(&target);
	ky_drums_ended(drums, pid);
	ky_drums_close(&drums);
	const struct fake_source *source = &bundle->sources[0];
	assert_int_equal(source->net, 11);
	assert_int_equal(source->lost_in_all, 9);
	assert_string_equal(source->losses,
			    "no buffer for their thread: 3\n"
			    "in signal handlers, too deep: 3\n"
			    "a signal handler jumped out of them: 3\n"
			    "trace points without a name: no room for it: 3\n"
			    "texts lost: no room for them: 3\n"
			    "names of threads lost: no room for them: 3\n"
			    "trace points that stay off: no room for their category: 3\n");
	target_end(&target);
}

static void five_hundred_threads_are_read(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	const pid_t pid = target.pid;
	const struct ky_drums_options options = {
		.bundle = bundle, .switch_on = true, .total_bytes = UINT64_C(1) << 30};
	struct ky_drums *drums = attach(&options, pid);
	target_do(&target, TARGET_THREADS, 500);
	for (int i = 0; i < 10; i++)
		ky_drums_round(drums, false);
	target_do(&target, TARGET_KILL, 1);
	(void)target_wait(&target);
	ky_drums_ended(drums, pid);
	const struct fake_source *source = &bundle->sources[0];
	assert_int_equal(source->threads, 501);
	assert_int_equal(source->net, 500001);
	assert_int_equal(source->lost_in_all, 0);
	assert_int_equal(source->out_of_order, 0);
	ky_drums_close(&drums);
	target_end(&target);
}

/*
 * The test's children are in a namespace of their own from here on: so it runs in a child itself.
 */
static void watch_container(void)
{
	if (unshare(CLONE_NEWPID) != 0)
		exit(77);
	struct ky_drums *drums;
	const struct ky_drums_options options = {.bundle = bundle, .switch_on = true};
	target_start(&target, NULL, NULL);
	CHECK(target.header->pid == 1);
	CHECK(ky_drums_open(&drums, &options) == 0);
	CHECK(ky_drums_add_process(drums, target.pid, message) == 1);
	target_do(&target, TARGET_NET, 10);
	ky_drums_round(drums, true);
	const struct fake_source *source = &bundle->sources[0];
	CHECK(source->net == 10 && source->pid == target.pid);
	CHECK(source->thread.pid == target.pid && source->thread.tid == target.pid);
	CHECK(source->thread.alias == 1);
	ky_drums_close(&drums);
	target_end(&target);
	_exit(0); /* the leak sanitizer needs a child, and there are no more: init has gone */
}

static void a_process_of_a_container_has_the_numbers_that_it_has_here(void **state)
{
	(void)state;
	const int status = in_child(watch_container);
	if (status == 77) {
		print_message("no right to make a pid namespace\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Events for triggers.
 * ------------------------------------------------------------------------------------------------
 */

struct seen {
	uint64_t events, wrong, last_ns;
	uint64_t number;
};

static void on_event(void *context, pid_t pid, const struct ky_event *event)
{
	struct seen *seen = context;
	seen->events++;
	seen->wrong += pid != target.pid || event->thread->pid != target.pid ||
		       event->time_ns < seen->last_ns || event->time_ns > ky_os_boottime() + MS ||
		       event->args_count != 1 || event->args[0].value.u != seen->number + 1;
	seen->last_ns = event->time_ns;
	seen->number = event->args_count ? event->args[0].value.u : 0;
}

static void events_are_handed_out_soon(void **state)
{
	(void)state;
	struct seen seen = {.last_ns = ky_os_boottime() - MS};
	target_start(&target, NULL, NULL);
	const struct ky_drums_options options = {.switch_on = true,
						 .flight = true,
						 .event = on_event,
						 .event_categories = "net",
						 .context = &seen};
	struct ky_drums *drums = attach(&options, target.pid);
	target_do(&target, TARGET_DB, 1000); /* not of interest */
	target_do(&target, TARGET_NET, 1000);
	while (seen.events < 1000)
		assert_true(ky_drums_round(drums, false) <= 3000);
	target_do(&target, TARGET_NET, 1000);
	ky_drums_round(drums, true);
	assert_int_equal(seen.events, 2000);
	assert_int_equal(seen.wrong, 0);
	ky_drums_close(&drums);
	target_end(&target);
}

static void a_mark_has_its_time(void **state)
{
	(void)state;
	target_start(&target, "*", NULL);
	struct ky_drums *drums = attach(&(struct ky_drums_options){.flight = true}, target.pid);
	assert_int_equal(ky_drums_mark(drums, 0), 0);
	const uint64_t before_ns = later();
	target_do(&target, TARGET_MARK, 0);
	const uint64_t after_ns = later();
	const uint64_t mark_ns = ky_drums_mark(drums, before_ns);
	assert_true(mark_ns > before_ns && mark_ns < after_ns);
	assert_int_equal(ky_drums_mark(drums, after_ns), 0);
	const uint64_t to_come = UINT64_MAX / 2;
	assert_int_equal(pwrite(target.drum, &to_come, sizeof(to_come),
				offsetof(struct ky_drum_header, mark_ticks)),
			 sizeof(to_come));
	assert_int_equal(ky_drums_mark(drums, 0), 0);
	ky_drums_close(&drums);
	target_end(&target);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Categories.
 * ------------------------------------------------------------------------------------------------
 */

static void categories_are_switched_and_restored(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	const struct ky_drums_options options = {
		.bundle = bundle, .categories = "net*", .switch_on = true};
	struct ky_drums *drums = attach(&options, target.pid);
	assert_true(target_is_wanted(&target, "net", getpid()));
	assert_false(target_is_wanted(&target, "db", getpid()));
	target_do(&target, TARGET_LATE, 1); /* a category that comes later is seen too */
	assert_true(target_is_wanted(&target, "net.late", getpid()));
	const struct ky_drums_facts facts = facts_of(drums, 0);
	assert_int_equal(facts.categories, 3);
	assert_true(facts.categories_on >= 2 && facts.recorders >= 1);
	char name[16];
	bool on;
	assert_true(ky_drums_category(drums, 0, 0, name, sizeof(name), &on));
	assert_string_equal(name, "net");
	assert_true(on);
	assert_false(ky_drums_category(drums, 0, 3, name, sizeof(name), &on));
	ky_drums_close(&drums);
	assert_true(target_is_restored(&target));
	target_end(&target);
}

static void two_recorders_do_not_disturb_each_other(void **state)
{
	(void)state;
	const uint64_t environment = UINT64_C(1) << (8 + KY_RECORDER_ENV);
	target_start(&target, "db", NULL);
	assert_int_equal(target.categories[1].state & environment, environment);
	struct ky_drums *all = attach(&(struct ky_drums_options){.switch_on = true}, target.pid);
	struct ky_drums *net = attach(
		&(struct ky_drums_options){.categories = "net", .switch_on = true}, target.pid);
	assert_int_equal(target_slots(&target, getpid()), 2);
	assert_true(target_is_wanted(&target, "db", getpid()));
	ky_drums_close(&all);
	assert_int_equal(target_slots(&target, getpid()), 1);
	assert_true(target_is_wanted(&target, "net", getpid()));
	assert_false(target_is_wanted(&target, "db", getpid()));
	ky_drums_close(&net);
	assert_true(target_is_restored(&target));
	assert_int_equal(target.categories[0].state & environment, 0);
	assert_int_equal(target.categories[1].state & environment, environment);
	target_end(&target);
}

/* Attaches, tells, and waits to be killed. */
_Noreturn static void attach_for_ever(int tell)
{
	struct ky_drums *drums;
	const struct ky_drums_options options = {.categories = "db", .switch_on = true};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(ky_drums_open(&drums, &options) == 0);
	CHECK(ky_drums_add_process(drums, target.pid, message) == 1);
	CHECK(write(tell, "", 1) == 1);
	for (;;)
		pause();
}

static pid_t start_recorder(void)
{
	int tell[2];
	char byte;
	assert_int_equal(pipe(tell), 0);
	const pid_t pid = fork();
	if (pid == 0)
		attach_for_ever(tell[1]);
	assert_int_equal(read(tell[0], &byte, 1), 1);
	close(tell[0]);
	close(tell[1]);
	return pid;
}

static void the_next_attach_repairs_what_a_killed_one_left(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	const pid_t killed = start_recorder(), alive = start_recorder();
	assert_true(target_is_wanted(&target, "db", killed));
	assert_true(target_is_wanted(&target, "db", alive));
	const struct ky_drums_options options = {.categories = "net", .switch_on = true};
	kill(killed, SIGKILL);
	waitpid(killed, NULL, 0);
	struct ky_drums *drums = attach(&options, target.pid);
	assert_int_equal(target_slots(&target, killed), 0);
	assert_true(target_is_wanted(&target, "db", alive)); /* the other still wants it */
	ky_drums_close(&drums);
	kill(alive, SIGKILL);
	waitpid(alive, NULL, 0);
	drums = attach(&options, target.pid);
	assert_int_equal(target_slots(&target, alive), 0);
	ky_drums_close(&drums);
	assert_true(target_is_restored(&target));
	target_end(&target);
}

static void a_recorder_of_another_namespace_is_left_alone(void **state)
{
	(void)state;
	const uint64_t at = offsetof(struct ky_drum_header, recorders) +
			    (KY_RECORDERS_MAX - 1) * sizeof(struct ky_drum_recorder);
	const struct ky_drum_recorder elsewhere = {
		.pid = 4000000, .started_ns = 10, .namespaces = 1};
	target_start(&target, NULL, NULL);
	assert_int_equal(pwrite(target.drum, &elsewhere, sizeof(elsewhere), (off_t)at),
			 sizeof(elsewhere));
	struct ky_drums *drums = attach(&(struct ky_drums_options){.switch_on = true}, target.pid);
	ky_drums_close(&drums);
	assert_int_equal(target_slots(&target, 4000000), 1);
	assert_true(target_is_restored(&target));
	target_end(&target);
}

static void more_recorders_than_slots_are_told_so(void **state)
{
	(void)state;
	struct ky_drums *drums[KY_RECORDERS_MAX - KY_RECORDERS_INSIDE + 1];
	const uint32_t last = KY_RECORDERS_MAX - KY_RECORDERS_INSIDE;
	const struct ky_drums_options options = {.bundle = bundle, .switch_on = true};
	target_start(&target, NULL, NULL);
	for (uint32_t i = 0; i <= last; i++) {
		assert_int_equal(ky_drums_open(&drums[i], &options), 0);
		assert_int_equal(ky_drums_add_process(drums[i], target.pid, message), 1);
	}
	assert_non_null(strstr(message, "recorders are attached already"));
	target_do(&target, TARGET_NET, 10); /* what the others switched on is read all the same */
	ky_drums_round(drums[last], true);
	assert_int_equal(bundle->sources[0].net, 10);
	for (uint32_t i = 0; i <= last; i++)
		ky_drums_close(&drums[i]);
	assert_true(target_is_restored(&target));
	target_end(&target);
}

#define SWITCHERS 8

static void *switch_again_and_again(void *context)
{
	static const char *const globs[] = {"net", "db", "*", "net*"};
	const struct ky_drums_options options = {.categories = globs[(uintptr_t)context % 4],
						 .switch_on = true};
	char text[KY_MESSAGE_BYTES];
	for (int i = 0; i < 20; i++) {
		struct ky_drums *drums;
		CHECK(ky_drums_open(&drums, &options) == 0);
		CHECK(ky_drums_add(drums, target.drum, target.pid, text) == 0);
		CHECK(text[0] == '\0');
		ky_drums_close(&drums);
	}
	return NULL;
}

static void recorders_that_come_and_go_leave_nothing(void **state)
{
	(void)state;
	pthread_t threads[SWITCHERS];
	target_start(&target, "db", NULL);
	for (uintptr_t i = 0; i < SWITCHERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, switch_again_and_again, (void *)i), 0);
	target_do(&target, TARGET_LATE, 1);
	for (uint32_t i = 0; i < SWITCHERS; i++)
		pthread_join(threads[i], NULL);
	assert_true(target_is_restored(&target));
	target_end(&target);
}

static void rings_grow(void **state)
{
	(void)state;
	target_start(&target, NULL, NULL);
	const struct ky_drums_options options = {.bundle = bundle,
						 .switch_on = true,
						 .ring_bytes = 16 << 20,
						 .total_bytes = 256 << 20};
	struct ky_drums *drums = attach(&options, target.pid);
	assert_true(target.header->ring_bytes >= 16 << 20);
	assert_true(target.header->budget_bytes >= 256 << 20);
	target_do(&target, TARGET_NET, 600000); /* more than the default has room for */
	ky_drums_round(drums, true);
	assert_int_equal(bundle->sources[0].net, 600000);
	ky_drums_close(&drums);
	target_end(&target);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Flight.
 * ------------------------------------------------------------------------------------------------
 */

static void a_window_has_what_no_other_had(void **state)
{
	(void)state;
	struct fake_source *source = &bundle->sources[0];
	target_start(&target, "*", NULL);
	struct ky_drums *drums =
		attach(&(struct ky_drums_options){.bundle = bundle, .flight = true}, target.pid);
	uint64_t at_ns[6];
	at_ns[0] = later();
	for (uint32_t i = 1; i < 6; i++) {
		target_do(&target, TARGET_NET, 1000);
		at_ns[i] = later();
	}
	ky_drums_window(drums, at_ns[1], at_ns[2]);
	assert_int_equal(source->net, 1000);
	assert_int_equal(source->first, 1001);
	ky_drums_window(drums, at_ns[1], at_ns[2]);
	assert_int_equal(source->net, 1000);
	ky_drums_window(drums, at_ns[3], at_ns[4]); /* 3001 to 4000 */
	assert_int_equal(source->net, 2000);
	assert_int_equal(source->last, 4000);
	ky_drums_window(drums, at_ns[0], at_ns[3]); /* before and between those */
	assert_int_equal(source->net, 4000);
	ky_drums_window(drums, 0, UINT64_MAX);
	assert_int_equal(source->net, 5000);
	assert_int_equal(source->last, 5000);
	assert_int_equal(source->lost, 0);
	ky_drums_close(&drums);
	assert_int_equal(source->lost_in_all, 0);
	assert_int_equal(bundle->count, 1);
	target_end(&target);
}

static void a_window_of_a_ring_that_went_round_has_what_is_left(void **state)
{
	(void)state;
	struct fake_source *source = &bundle->sources[0];
	target_start(&target, "*", NULL);
	struct ky_drums *drums = attach(
		&(struct ky_drums_options){.bundle = bundle, .flight = true, .categories = "net"},
		target.pid);
	target_do(&target, TARGET_NET, 500000);
	const uint64_t middle_ns = later();
	target_do(&target, TARGET_DB, 100);
	target_do(&target, TARGET_NET, 100);
	ky_drums_window(drums, middle_ns, UINT64_MAX);
	assert_int_equal(source->net, 100);
	assert_int_equal(source->first, 500001);
	assert_int_equal(source->db, 0);
	ky_drums_window(drums, 0, UINT64_MAX);
	assert_true(source->net > 40000 && source->net < 100000);
	assert_int_equal(source->lost, 0);
	assert_true(source->out_of_order <= 1); /* the second begins before the first */
	ky_drums_close(&drums);
	target_end(&target);
}

static void a_process_that_ended_is_kept_for_a_while(void **state)
{
	(void)state;
	char name[16];
	bool on;
	target_start(&target, "*", NULL);
	const pid_t pid = target.pid;
	struct ky_drums *drums =
		attach(&(struct ky_drums_options){.bundle = bundle, .flight = true}, pid);
	const uint64_t from_ns = later();
	target_do(&target, TARGET_KILL, 1000);
	(void)target_wait(&target);
	ky_drums_ended(drums, pid);
	ky_drums_window(drums, from_ns, UINT64_MAX);
	assert_int_equal(bundle->sources[0].net, 1000);
	while (ky_drums_category(drums, 0, 0, name, sizeof(name), &on))
		ky_drums_round(drums, false);
	assert_true(bundle->sources[0].ended);
	assert_int_equal(ky_drums_count(drums), 1);
	assert_int_equal(facts_of(drums, 0).events, 1000);
	ky_drums_close(&drums);
	target_end(&target);
}

/* A drum as kymo makes it: the process ends, a child of it goes on writing. */
static void a_drum_of_calls_is_read_as_long_as_anybody_writes(void **state)
{
	(void)state;
	struct ky_made_drum calls;
	struct ky_drums *drums;
	int go[2], done[2];
	char byte = 0;
	const struct ky_made_drum_options options = {.pid = getpid(),
						     .fd = -1,
						     .functions = 1,
						     .layer = KY_DRUM_FUNCTIONS,
						     .ring_bytes = 64 << 10,
						     .total_bytes = 1 << 20};
	assert_int_equal(pipe(go) | pipe(done), 0);
	assert_int_equal(ky_made_drum_open(&calls, &options), 0);
	const uint32_t site =
		ky_made_drum_site(&calls, KYMO_KIND_INSTANT, "net", "call", "", NULL, 0);
	const pid_t child = fork();
	if (child == 0) {
		ky_made_drum_process(&calls, getpid(), getpid());
		bool good = read(go[0], &byte, 1) == 1;
		ky_made_drum_instant(&calls, getpid(), ky_os_monotonic(), site);
		good = good && write(done[1], "", 1) == 1 && read(go[0], &byte, 1) == 1;
		_exit(good ? 0 : 1);
	}
	assert_int_equal(ky_drums_open(&drums, &(struct ky_drums_options){.bundle = bundle,
									  .switch_on = true}),
			 0);
	assert_int_equal(ky_drums_add_made(drums, calls.fd, getpid(), message), 0);
	ky_made_drum_instant(&calls, getpid(), ky_os_monotonic(), site);
	ky_made_drum_close(&calls);
	assert_int_equal(ky_drums_gone(drums), 0);
	ky_drums_ended(drums, getpid());
	assert_false(facts_of(drums, 0).ended);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(read(done[0], &byte, 1), 1);
	(void)ky_drums_round(drums, true);
	assert_int_equal(bundle->sources[0].threads, 2);
	assert_false(facts_of(drums, 0).ended);
	assert_int_equal(write(go[1], "", 1), 1);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	while (!facts_of(drums, 0).ended)
		(void)ky_drums_round(drums, false);
	assert_true(bundle->sources[0].ended);
	ky_drums_close(&drums);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
}

/* Nobody tells that it has gone: it came and went between two looks. */
static void a_process_that_is_gone_is_found(void **state)
{
	(void)state;
	target_start(&target, "*", NULL);
	const pid_t pid = target.pid;
	struct ky_drums *drums = attach(&(struct ky_drums_options){.bundle = bundle}, pid);
	assert_int_equal(ky_drums_gone(drums), 0);
	target_do(&target, TARGET_KILL, 10);
	(void)target_wait(&target);
	assert_int_equal(ky_drums_gone(drums), pid);
	ky_drums_ended(drums, pid);
	assert_int_equal(ky_drums_gone(drums), 0);
	ky_drums_close(&drums);
	target_end(&target);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Files and foes.
 * ------------------------------------------------------------------------------------------------
 */

static void a_file_that_is_cut_short_is_survived(void **state)
{
	(void)state;
	char folder[] = "/tmp/kymo-drums-XXXXXX", path[128];
	assert_non_null(mkdtemp(folder));
	target_start(&target, NULL, folder);
	snprintf(path, sizeof(path), "%s/kymo-%d.drum", folder, (int)target.pid);
	struct ky_drums *drums =
		attach(&(struct ky_drums_options){.bundle = bundle, .switch_on = true}, target.pid);
	target_do(&target, TARGET_NET, 1000);
	ky_drums_round(drums, true);
	assert_int_equal(bundle->sources[0].net, 1000);
	assert_int_equal(facts_of(drums, 0).damaged, 0);
	assert_int_equal(truncate(path, 0), 0);
	ky_drums_round(drums, true);
	assert_int_equal(facts_of(drums, 0).damaged, 1);
	ky_drums_close(&drums);
	unlink(path);
	rmdir(folder);
	target_end(&target);
}

static void what_is_no_drum_is_refused(void **state)
{
	(void)state;
	struct ky_drums *drums;
	assert_int_equal(ky_drums_open(&drums, &(struct ky_drums_options){.bundle = bundle}), 0);
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	assert_true(ky_drums_add(drums, pipes[0], getpid(), message) < 0);
	assert_true(message[0] != '\0');
	const int null = open("/dev/null", O_RDWR);
	assert_true(ky_drums_add(drums, null, getpid(), message) < 0);
	const int self = open("/proc/self/exe", O_RDONLY);
	assert_true(ky_drums_add(drums, self, getpid(), message) < 0);
	assert_int_equal(ky_drums_add_process(drums, getpid(), message), -ENOENT);
	assert_non_null(strstr(message, "no events"));
	assert_int_equal(ky_drums_add_process(drums, 4194304 + 1, message), -ESRCH);
	assert_int_equal(ky_drums_count(drums), 0);
	close(null);
	close(self);
	close(pipes[0]);
	close(pipes[1]);
	ky_drums_close(&drums);
}

static void rings_that_lie_are_not_believed(void **state)
{
	(void)state;
	target_start(&target, "*", NULL);
	target_do(&target, TARGET_NET, 10);
	struct ky_drums *drums = attach(&(struct ky_drums_options){.bundle = bundle}, target.pid);
	ky_drums_round(drums, true);
	/*
	 * All of a gigabyte was written, says the ring: reading it would have memory made for it.
	 */
	const struct ky_drum_ring liar = {.at = target.header->space_at,
					  .bytes = UINT64_C(1) << 30,
					  .head = UINT64_C(1) << 30};
	assert_int_equal(pwrite(target.drum, &liar, sizeof(liar),
				(off_t)(target.header->rings_at + sizeof(liar))),
			 sizeof(liar));
	const uint32_t rings = 2;
	assert_int_equal(pwrite(target.drum, &rings, sizeof(rings),
				offsetof(struct ky_drum_header, rings_used)),
			 sizeof(rings));
	ky_drums_round(drums, true);
	assert_true(facts_of(drums, 0).damaged > 0);
	ky_drums_close(&drums);
	target_end(&target);
}

/* A few bytes of the heap each, and some kilobytes in the file. */
static void trace_points_that_share_long_strings_are_bounded(void **state)
{
	(void)state;
	const uint64_t heap_bytes = 1 << 20, begin = KY_DRUM_HEADER_BYTES;
	uint8_t *memory = calloc(1, begin + heap_bytes);
	assert_non_null(memory);
	const struct ky_heap_record text = {.kind = KY_HEAP_STRING, .bytes = KY_TEXT_BYTES_MAX};
	memcpy(memory + begin, &text, sizeof(text));
	memset(memory + begin + sizeof(text), 'x', KY_TEXT_BYTES_MAX);
	const struct ky_heap_record head = {.kind = KY_HEAP_SITE,
					    .bytes = sizeof(struct ky_heap_site)};
	const uint32_t name = KY_DRUM_HEADER_BYTES / KY_HEAP_UNIT;
	const struct ky_heap_site point = {
		.kind = KYMO_KIND_INSTANT, .name = name, .file = name, .function = name};
	const struct ky_drum_view view = {.base = memory,
					  .bytes = begin + heap_bytes,
					  .header = {.heap_at = begin, .heap_bytes = heap_bytes}};
	struct ky_sites sites;
	assert_int_equal(ky_sites_open(&sites, &view), 0);
	uint64_t told = 0;
	for (uint64_t at = begin + sizeof(text) + KY_TEXT_BYTES_MAX;
	     at + sizeof(head) + sizeof(point) <= view.bytes; at += sizeof(head) + sizeof(point)) {
		memcpy(memory + at, &head, sizeof(head));
		memcpy(memory + at + sizeof(head), &point, sizeof(point));
		const struct ky_site *site =
			ky_sites_get(&sites, at / KY_HEAP_UNIT << KY_WORD_SITE_SHIFT);
		told += site ? 3 * site->name.bytes : 0;
	}
	assert_true(told > heap_bytes && told <= 16 * heap_bytes);
	ky_sites_close(&sites);
	free(memory);
}

static void names_of_threads_are_bounded(void **state)
{
	(void)state;
	static const char names[2][KY_TEXT_BYTES_MAX];
	struct ky_drum_threads threads;
	ky_drum_threads_open(&threads, getpid(), false, 0);
	for (uint32_t i = 0; i < 100000; i++) {
		const struct ky_thread thread = {.tid = 1,
						 .name = {names[i % 2], sizeof(names[0])}};
		const struct ky_thread *mine = ky_drum_threads_get(&threads, &thread);
		assert_non_null(mine);
		assert_true(i > 1000 || mine->name.data == thread.name.data);
	}
	assert_true(threads.names_left < 2 * KY_TEXT_BYTES_MAX);
	ky_drum_threads_close(&threads);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Processes that lie.
 * ------------------------------------------------------------------------------------------------
 */

static void a_thread_of_another_process_is_not_taken(void **state)
{
	(void)state;
	struct ky_drum_threads threads;
	const pid_t other = getppid(), child = fork();
	if (child == 0)
		for (;;)
			pause();
	const struct ky_thread claims[] = {
		{.pid = getpid(), .tid = getpid(), .index = 0},
		{.pid = getpid(), .tid = other, .index = 1},
		{.pid = child, .tid = child, .index = 2},
		{.pid = other, .tid = other, .index = 3},
	};
	const struct ky_thread *mine[4];
	ky_drum_threads_open(&threads, getpid(), getpid(), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_non_null(mine[i] = ky_drum_threads_get(&threads, &claims[i]));
	assert_true(mine[0]->tid == getpid() && !mine[0]->alias);
	assert_int_equal(mine[1]->tid, other | (int32_t)KY_PID_APART);
	assert_int_equal(mine[1]->alias, other); /* as its blocks have it */
	assert_true(mine[2]->pid == child && mine[2]->tid == child);
	assert_int_equal(mine[3]->pid, other | (int32_t)KY_PID_APART);
	assert_int_equal(mine[3]->tid, other | (int32_t)KY_PID_APART);
	ky_drum_threads_close(&threads);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void a_drum_in_huge_pages_is_refused(void **state)
{
	(void)state;
	struct ky_drums *drums;
	const int fd = memfd_create("kymo-drum", MFD_HUGETLB | MFD_ALLOW_SEALING);
	if (fd < 0)
		skip(); /* a kernel without them */
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(ky_drums_open(&drums, &(struct ky_drums_options){.bundle = bundle}), 0);
	assert_int_equal(ky_drums_add(drums, fd, getpid(), message), -ENOTSUP);
	ky_drums_close(&drums);
	close(fd);
}

static void holes_of_any_memfd_are_no_memory(void **state)
{
	(void)state;
	struct ky_drum_map map;
	const uint64_t magic = KY_DRUM_MAGIC;
	const int fd = memfd_create("kymo-drum", 0); /* without seals */
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	assert_int_equal(ky_drum_map_open(&map, fd, "a buffer", message), 0);
	assert_true(ky_drum_map_has_memory(&map, 4096));
	assert_false(ky_drum_map_has_memory(&map, 1 << 24));
	ky_drum_map_close(&map);
	close(fd);
}

/* A memfd of another user, of so many bytes of address space. */
static int sparse_drum(uid_t owner, off_t bytes)
{
	const uint64_t magic = KY_DRUM_MAGIC;
	const int fd = memfd_create("kymo-drum", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	assert_int_equal(fchown(fd, owner, owner), 0);
	return fd;
}

static void one_user_does_not_take_all_addresses(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct ky_drum_map map[256], of_root, of_alice;
	const off_t most = (off_t)1 << 36;
	const int mallorys = sparse_drum(54321, most), alices = sparse_drum(54322, most),
		  roots = sparse_drum(0, most);
	uint32_t count = 0;
	while (count < 256 && ky_drum_map_open(&map[count], mallorys, "a buffer", message) == 0)
		count++;
	assert_int_equal(count, 256); /* each is guarded: it has no seals */
	assert_int_equal(ky_drum_map_open(&of_alice, mallorys, "a buffer", message), -EDQUOT);
	assert_non_null(strstr(message, "user 54321"));
	assert_int_equal(ky_drum_map_open(&of_alice, alices, "a buffer", message), 0);
	assert_int_equal(ky_drum_map_open(&of_root, roots, "a buffer", message), 0);
	ky_drum_map_close(&of_root);
	ky_drum_map_close(&of_alice);
	while (count)
		ky_drum_map_close(&map[--count]);
	assert_int_equal(ky_drum_map_open(&map[0], mallorys, "a buffer", message), 0);
	ky_drum_map_close(&map[0]);
	/* One that has seals needs no guard, but addresses and a descriptor. */
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	const uint32_t share = limit.rlim_cur / 4 < 512 ? (uint32_t)limit.rlim_cur / 4 : 512;
	assert_int_equal(fcntl(mallorys, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	struct ky_drum_map *const sealed = calloc(513, sizeof(*sealed));
	while (count < 513 && ky_drum_map_open(&sealed[count], mallorys, "a buffer", message) == 0)
		count++;
	assert_int_equal(count, share);
	while (count)
		ky_drum_map_close(&sealed[--count]);
	free(sealed);
	close(mallorys);
	close(alices);
	close(roots);
}

/* Report readiness, and wait to be killed. */
static void hold_as_own(int from, int ready)
{
	char path[64];
	struct ky_drum_header header;
	CHECK(pread(from, &header, sizeof(header), 0) == (ssize_t)sizeof(header));
	header.pid = (uint32_t)getpid();
	snprintf(path, sizeof(path), "kymo-%d.drum", (int)getpid());
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)header.drum_bytes) == 0 &&
	      pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header));
	close(fd);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && unlink(path) == 0 && write(ready, "", 1) == 1);
	for (;;)
		pause();
}

/* It may be a file of somebody else that the process can read. */
static void a_file_that_the_process_only_reads_is_not_its_drum(void **state)
{
	(void)state;
	struct ky_drums *drums;
	int ready[2];
	char byte;
	target_start(&target, NULL, NULL);
	assert_int_equal(pipe(ready), 0);
	const pid_t child = fork();
	if (child == 0)
		hold_as_own(target.drum, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(ky_drums_open(&drums, &(struct ky_drums_options){.bundle = bundle,
									  .switch_on = true}),
			 0);
	assert_int_equal(ky_drums_add_process(drums, child, message), -ENOENT);
	ky_drums_close(&drums);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	target_end(&target);
}

static void a_read_only_descriptor_is_not_written_through(void **state)
{
	(void)state;
	struct ky_drums *drums;
	char path[64];
	target_start(&target, NULL, NULL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", target.drum);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ky_drums_open(&drums, &(struct ky_drums_options){.bundle = bundle,
									  .switch_on = true}),
			 0);
	assert_int_equal(ky_drums_add(drums, fd, target.pid, message), 0);
	assert_non_null(strstr(message, "its categories cannot be switched: Permission denied"));
	assert_int_equal(target_slots(&target, getpid()), 0);
	ky_drums_close(&drums);
	close(fd);
	target_end(&target);
}

static void ignore_event(void *context, pid_t pid, const struct ky_event *event)
{
	*(uint64_t *)context += (uint64_t)pid + event->time_ns + event->name.bytes;
}

static void look_at_all(struct ky_drums *drums)
{
	char name[64];
	bool on;
	struct ky_drums_facts facts;
	for (uint32_t i = 0; ky_drums_facts(drums, i, &facts); i++)
		for (uint32_t c = 0; c < 100; c++)
			if (!ky_drums_category(drums, i, c, name, sizeof(name), &on))
				break;
}

static void a_drum_that_is_scribbled_over_is_survived(void **state)
{
	(void)state;
	uint64_t sum = 0, damaged = 0;
	target_start(&target, "*", NULL);
	target_do(&target, TARGET_NET, 100000);
	target_do(&target, TARGET_THREADS, 3);
	target_do(&target, TARGET_SCRIBBLE, 0);
	for (uint32_t i = 0; i < 60; i++) {
		struct ky_drums *drums;
		const struct ky_drums_options options = {.bundle = bundle,
							 .categories = i % 3 ? NULL : "net,db",
							 .switch_on = true,
							 .flight = i % 2 != 0,
							 .event = ignore_event,
							 .context = &sum};
		memset(bundle, 0, sizeof(*bundle));
		assert_int_equal(ky_drums_open(&drums, &options), 0);
		(void)ky_drums_add(drums, target.drum, target.pid, message);
		for (uint32_t round = 0; round < 20; round++) {
			ky_drums_round(drums, round % 8 == 7);
			ky_drums_window(drums, 0, UINT64_MAX);
			(void)ky_drums_mark(drums, 0);
			look_at_all(drums);
		}
		if (ky_drums_count(drums))
			damaged += facts_of(drums, 0).damaged;
		ky_drums_close(&drums);
	}
	assert_true(damaged > 0);
	target_end(&target);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_killed_program_is_read_to_its_last_event),
		TEST(what_was_recorded_before_the_attach_is_left_out),
		TEST(a_drum_that_is_made_during_the_capture_is_read_from_the_first_event),
		TEST(a_drum_that_comes_after_its_process_ended_is_read_at_once),
		TEST(a_drum_ends_when_its_process_calls_exec),
		TEST(losses_are_counted),
		TEST(losses_have_their_causes),
		TEST(rings_grow_before_events_are_lost),
		TEST(five_hundred_threads_are_read),
		TEST(a_process_of_a_container_has_the_numbers_that_it_has_here),
		TEST(events_are_handed_out_soon),
		TEST(a_mark_has_its_time),
		TEST(categories_are_switched_and_restored),
		TEST(two_recorders_do_not_disturb_each_other),
		TEST(the_next_attach_repairs_what_a_killed_one_left),
		TEST(a_recorder_of_another_namespace_is_left_alone),
		TEST(more_recorders_than_slots_are_told_so),
		TEST(recorders_that_come_and_go_leave_nothing),
		TEST(rings_grow),
		TEST(a_window_has_what_no_other_had),
		TEST(a_window_of_a_ring_that_went_round_has_what_is_left),
		TEST(a_process_that_ended_is_kept_for_a_while),
		TEST(a_drum_of_calls_is_read_as_long_as_anybody_writes),
		TEST(a_process_that_is_gone_is_found),
		TEST(a_file_that_is_cut_short_is_survived),
		TEST(what_is_no_drum_is_refused),
		TEST(rings_that_lie_are_not_believed),
		TEST(trace_points_that_share_long_strings_are_bounded),
		TEST(names_of_threads_are_bounded),
		TEST(a_thread_of_another_process_is_not_taken),
		TEST(a_drum_in_huge_pages_is_refused),
		TEST(one_user_does_not_take_all_addresses),
		TEST(holes_of_any_memfd_are_no_memory),
		TEST(a_file_that_the_process_only_reads_is_not_its_drum),
		TEST(a_read_only_descriptor_is_not_written_through),
		TEST(a_drum_that_is_scribbled_over_is_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
