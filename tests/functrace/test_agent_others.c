/* SPDX-License-Identifier: MIT */
/*
 * What the agent does beside calls: programs that turn the CPU's counter off or report their calls themselves, and the
 * loader's pause. Each test has a process of its own.
 */
#include "../core/readback.h"
#include "harness.h"

#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct harness harness;

/* ---- programs that turn the counter off ---- */

typedef void sandbox_fn(uint64_t first, uint64_t second, uint64_t third);

static void tell_sandbox(uint64_t first, uint64_t second, uint64_t third)
{
	sandbox_fn *sandbox =
		(sandbox_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, sandbox));
	sandbox(first, second, third);
}

static int refuse_counter(uint64_t first, uint64_t second, uint64_t third)
{
	tell_sandbox(first, second, third);
	return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
}

static HOOKABLE int leave_counter(int depth)
{
	int result =
		depth ? leave_counter(depth - 1) : refuse_counter(PR_SET_TSC, PR_TSC_SIGSEGV, 0);
	KEEP_CALL(result);
	return result + add(0, 1);
}

static HOOKABLE int leave_counter_of_parent(void)
{
	const pid_t pid = fork();
	if (pid == 0)
		return refuse_counter(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	return pid;
}

static HOOKABLE int waits_for_it(void)
{
	while (__atomic_load_n(&harness.home->counter, __ATOMIC_ACQUIRE) != KY_COUNTER_LEFT)
		sched_yield();
	return 6;
}

static void *returns_through_its_hook(void *argument)
{
	*(int *)argument = waits_for_it();
	return NULL;
}

static void counter_body(void)
{
	pthread_t thread;
	int result = 0, status = 0;
	harness_open(&harness);
	HOOK(&harness, add);
	HOOK(&harness, work);
	HOOK(&harness, leave_counter);
	HOOK(&harness, leave_counter_of_parent);
	HOOK(&harness, waits_for_it);
	const pid_t pid = leave_counter_of_parent();
	if (pid == 0)
		_exit(work(3) == 6 ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(pthread_create(&thread, NULL, returns_through_its_hook, &result) == 0);
	CHECK(work(10) == 90);
	tell_sandbox(PR_SET_TSC, PR_TSC_ENABLE, 0);
	CHECK(harness.home->on);
	CHECK(leave_counter(20) == 21);
	CHECK(work(10) == 90);
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && result == 6);
	CHECK(!harness.home->on && harness.home->counter == KY_COUNTER_LEFT);
	CHECK(harness_begun(&harness, "leave_counter") == 21);
	CHECK(harness_begun(&harness, "add") == 10);
}

/* Functions at all places of a line of the cache, one over two pages. */
#define PLACES 64u
#define PLACE(i) (places + (i) * (PLACES + 1))
static uint8_t places[2 * 4096] __attribute__((aligned(4096)));
static volatile bool enough;

static int call_place(uint32_t i)
{
	return ((int (*)(void))(uintptr_t)PLACE(i))();
}

static void *calls_places(void *argument)
{
	while (!enough)
		for (uint32_t i = 0; i < PLACES; i++)
			CHECK(call_place(i) == (int)i);
	return argument;
}

static void places_body(void)
{
	pthread_t thread;
	uint8_t before[sizeof(places)];
	for (uint32_t i = 0; i < PLACES; i++)
		memcpy(PLACE(i),
		       (const uint8_t[]){0x0f, 0x1f, 0x44, 0, 0, 0xb8, (uint8_t)i, 0, 0, 0, 0xc3},
		       11);
	memcpy(before, places, sizeof(before));
	CHECK(mprotect(places, sizeof(places), PROT_READ | PROT_EXEC) == 0);
	harness_open(&harness);
	for (uint32_t i = 0; i < PLACES; i++)
		harness_hook(&harness, (function_fn *)(uintptr_t)PLACE(i), "place",
			     i % 2 ? KY_STUB_CALL : KY_STUB_ENTRY);
	CHECK(memcmp(before, places, sizeof(before)) != 0);
	CHECK(pthread_create(&thread, NULL, calls_places, NULL) == 0);
	CHECK(refuse_counter(PR_SET_TSC, PR_TSC_SIGSEGV, 0) == 0);
	CHECK(memcmp(before, places, sizeof(before)) == 0);
	for (uint32_t i = 0; i < PLACES; i++)
		CHECK(call_place(i) == (int)i);
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0) == 0);
	enough = true;
	CHECK(pthread_join(thread, NULL) == 0);
}

static void a_program_may_turn_the_counter_off(void **state)
{
	(void)state;
	assert_int_equal(in_child(counter_body), 0);
	assert_int_equal(in_child(places_body), 0);
}

/* ---- programs that report their calls themselves ---- */

typedef void told_fn(void *function, void *caller);
static told_fn *told_enter, *told_exit;
static bool forgets; /* the exit, as clang does when an exception leaves a function */

static __attribute__((noinline)) int told_inner(int n)
{
	told_enter((void *)(uintptr_t)told_inner, NULL);
	__asm__ volatile("" : "+r"(n));
	if (!forgets)
		told_exit((void *)(uintptr_t)told_inner, NULL);
	return n + 1;
}

static __attribute__((noinline)) int told_outer(int n)
{
	told_enter((void *)(uintptr_t)told_outer, NULL);
	const int result = told_inner(n) + told_inner(n);
	told_exit((void *)(uintptr_t)told_outer, NULL);
	return result;
}

static void told_calls_body(void)
{
	static struct ky_agent_known known[4];
	harness_open(&harness);
	harness.home->known = (uintptr_t)known;
	harness.home->known_mask = 3;
	const struct {
		uintptr_t address;
		const char *name;
	} functions[] = {{(uintptr_t)told_outer, "told_outer"},
			 {(uintptr_t)told_inner, "told_inner"}};
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t at = ky_agent_known_at(functions[i].address, 3);
		while (known[at].address)
			at = (at + 1) & 3;
		known[at].address = functions[i].address;
		known[at].function = i;
		known[at].site = ky_made_drum_site(&harness.drum, KYMO_KIND_BEGIN, "test",
						   functions[i].name, functions[i].name, NULL, 0);
	}
	told_enter = (told_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, cyg_enter));
	told_exit = (told_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, cyg_exit));
	for (int i = 0; i < 1000; i++) {
		forgets = i % 2 == 1;
		CHECK(told_outer(i) == 2 * i + 2);
	}
	told_enter((void *)(uintptr_t)told_calls_body, NULL); /* is unknown */
	harness_check(&harness, 0);
	CHECK(harness_begun(&harness, "told_outer") == 1000);
	CHECK(harness_begun(&harness, "told_inner") == 2000);
	CHECK(harness_count(&harness, 1) == 2000);
}

static void calls_that_programs_tell(void **state)
{
	(void)state;
	assert_int_equal(in_child(told_calls_body), 0);
}

/* ---- the loader's pause ---- */

static void *answer_pause(void *argument)
{
	(void)argument;
	uint32_t *pause_at = &harness.home->pause;
	while (__atomic_load_n(pause_at, __ATOMIC_ACQUIRE) == KY_LOADER_GOES_ON)
		sched_yield();
	__atomic_store_n(pause_at, KY_LOADER_GOES_ON, __ATOMIC_RELEASE);
	syscall(SYS_futex, pause_at, FUTEX_WAKE, 1, NULL, NULL, 0);
	return NULL;
}

static void pause_body(void)
{
	struct r_debug debug = {.r_state = RT_CONSISTENT};
	harness_open(&harness);
	function_fn *loader =
		(function_fn *)harness_agent(&harness, offsetof(struct ky_agent_table, loader));
	loader(); /* no kymo is attached */
	harness.home->owner_pid = (uint32_t)getpid();
	harness.home->r_debug = (uintptr_t)&debug;
	debug.r_state = RT_ADD;
	loader(); /* not yet */
	CHECK(harness.home->pause == 0);
	debug.r_state = RT_CONSISTENT;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, answer_pause, NULL) == 0);
	HOOK(&harness, add);
	loader();
	pthread_join(thread, NULL);
	CHECK(harness.home->pause == KY_LOADER_GOES_ON);
	harness.home->on = 1; /* it may have given up on a busy machine */
	CHECK(add(1, 2) == 3 && harness_begun(&harness, "add") == 1);
	loader(); /* without an answer it gives up after a while: nothing is recorded, */
	CHECK(harness.home->pause == KY_LOADER_GAVE_UP && !harness.home->on);
	const uint64_t lost = harness.drum.drum.header->lost_ringless;
	CHECK(add(1, 2) == 3 && harness_begun(&harness, "add") == 1);
	CHECK(harness.drum.drum.header->lost_ringless == lost + 1);
	loader(); /* and it does not wait again, */
	CHECK(harness.home->pause == KY_LOADER_GAVE_UP);
	harness.home->on = 1; /* until kymo has looked */
	harness.home->pause = KY_LOADER_GOES_ON;
	CHECK(add(1, 2) == 3 && harness_begun(&harness, "add") == 2);
}

static void the_loader_waits_for_an_answer(void **state)
{
	(void)state;
	assert_int_equal(in_child(pause_body), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_may_turn_the_counter_off),
		cmocka_unit_test(calls_that_programs_tell),
		cmocka_unit_test(the_loader_waits_for_an_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
