/* SPDX-License-Identifier: MIT */
/*
 * test_heap.c: strings, trace points and categories are unique by content, for all threads, and
 * what finds no room is counted.
 */
#include "core/heap.h"

#include "readback.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#define THREADS 8
#define STRINGS 2000u

static uint32_t found[THREADS][STRINGS];
static pthread_barrier_t barrier;

static void *intern_all(void *context)
{
	const uintptr_t self = (uintptr_t)context;
	struct ky_drum *drum = ky_drum_get();
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 0; i < STRINGS; i++) {
		char text[32];
		/* Half of the threads from the other end: everybody is first and last somewhere. */
		const uint32_t at = self % 2 ? STRINGS - 1 - i : i;
		const int bytes = snprintf(text, sizeof(text), "string number %u", at);
		found[self][at] = ky_heap_intern(drum, text, (size_t)bytes);
	}
	return NULL;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static void interning(void)
{
	pthread_t threads[THREADS];
	CHECK(ky_drum_get());
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, intern_all, (void *)i) == 0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 1; i < THREADS; i++)
		CHECK(memcmp(found[i], found[0], sizeof(found[0])) == 0);
	qsort(found[0], STRINGS, sizeof(uint32_t), by_number);
	for (uint32_t i = 0; i < STRINGS; i++)
		CHECK(found[0][i] != 0 && (i == 0 || found[0][i] != found[0][i - 1]));
	CHECK(ky_drum_get()->header->refused_strings == 0);
}

static void a_string_has_one_record_whoever_adds_it(void **state)
{
	(void)state;
	assert_int_equal(in_child(interning), 0);
}

/* Trace points made at run time: as many as a test wants. */
struct made_site {
	struct kymo_site_info info;
	struct kymo_i_site site;
	char name[48];
};

static void make_site(struct made_site *made, const char *category, const char *name)
{
	static const char *const keys[] = {"number"};
	snprintf(made->name, sizeof(made->name), "%s", name);
	made->info = (struct kymo_site_info){.abi = KYMO_I_ABI,
					     .kind = KYMO_KIND_INSTANT,
					     .items = 1,
					     .args = 1,
					     .types = KYMO_TYPE_UINT,
					     .category = category,
					     .name = made->name,
					     .file = "file.c",
					     .function = "function",
					     .keys = keys};
	made->site = (struct kymo_i_site){&kymo_i_unset, 0, &made->info};
}

static void pass(struct made_site *made, uint64_t number)
{
	if (KYMO_I_ON(made->site))
		(void)kymo_i_event(&made->site, 1, KYMO_TYPE_UINT, &number);
}

struct named {
	uint64_t with, without;
};

static void count_named(void *context, const struct ky_event *e)
{
	struct named *named = context;
	CHECK(e->kind == KYMO_KIND_INSTANT);
	if (strcmp(e->name.data, "(no room for this trace point)") == 0)
		named->without++;
	else if (++named->with)
		CHECK(e->args_count == 1 && strncmp(e->name.data, "point ", 6) == 0);
}

static void heap_full(void)
{
	enum { SITES = 400, ROUNDS = 3 };
	static struct made_site made[SITES];
	ky_limits.heap_bytes = 16u << 10;
	ky_limits.categories = "*";
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < SITES; i++) {
			char name[48];
			snprintf(name, sizeof(name), "point %u", i);
			if (round == 0)
				make_site(&made[i], "net", name);
			pass(&made[i], i);
		}
	struct named named = {0, 0};
	const struct readback totals = readback(count_named, &named);
	const struct ky_drum_header *header = ky_drum_get()->header;
	CHECK(totals.lost == 0 && totals.damaged == 0 && totals.events == SITES * ROUNDS);
	CHECK(header->refused_sites > 0 && named.without == ROUNDS * header->refused_sites);
	CHECK(header->refused_sites < SITES && header->refused_strings > 0);
	CHECK(header->heap_used <= header->heap_bytes);
}

static void a_trace_point_without_room_is_counted_and_its_events_are_kept(void **state)
{
	(void)state;
	assert_int_equal(in_child(heap_full), 0);
}

static void categories_full(void)
{
	enum { SITES = 10, KEPT = 4 };
	static struct made_site made[SITES];
	static char categories[SITES][16];
	ky_limits.categories_max = KEPT;
	ky_limits.categories = "*";
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < SITES; i++) {
			snprintf(categories[i], sizeof(categories[i]), "category %u", i);
			if (round == 0)
				make_site(&made[i], categories[i], "point x");
			pass(&made[i], i);
		}
	struct named named = {0, 0};
	const struct readback totals = readback(count_named, &named);
	CHECK(named.with == 3 * KEPT && named.without == 0 && totals.lost == 0);
	CHECK(ky_drum_get()->header->refused_categories == SITES - KEPT);
	for (uint32_t i = 0; i < SITES; i++)
		CHECK((KYMO_I_ON(made[i].site) != 0) == (i < KEPT));
}

static void a_category_without_room_is_counted_and_stays_off(void **state)
{
	(void)state;
	assert_int_equal(in_child(categories_full), 0);
}

static void strings_full(void)
{
	ky_limits.heap_bytes = 16u << 10;
	struct ky_drum *drum = ky_drum_get();
	uint64_t refused = 0;
	for (uint32_t i = 0; i < 2000; i++) {
		char text[32];
		const int bytes = snprintf(text, sizeof(text), "string number %u", i);
		const uint32_t at = ky_heap_intern(drum, text, (size_t)bytes);
		refused += at == 0;
		CHECK(at == 0 || at == ky_heap_intern(drum, text, (size_t)bytes));
	}
	CHECK(refused > 0 && refused < 2000 && drum->header->refused_strings == refused);
	CHECK(ky_heap_intern(drum, "", 0) == 0 && drum->header->refused_strings == refused);
}

static void strings_without_room_are_counted(void **state)
{
	(void)state;
	assert_int_equal(in_child(strings_full), 0);
}

/* Threads with names of their own, more than the heap has room for; then a trace point is used for the first time. */
static void names_full(void)
{
	ky_limits.heap_bytes = 64u << 10;
	ky_limits.categories = "*";
	struct ky_drum *drum = ky_drum_get();
	for (uint32_t i = 0; i < 5000; i++) {
		char text[32];
		snprintf(text, sizeof(text), "worker number %u", i);
		kymo_thread_name(text);
	}
	const struct ky_drum_header *header = drum->header;
	CHECK(header->refused_names > 0 && header->refused_names < 5000);
	CHECK(header->names_used <= header->heap_bytes / KY_NAMES_PART);
	for (uint32_t i = 0; i < 20; i++)
		KYMO_INSTANT("late", "registered late", "number", i);
	const struct readback totals = readback(NULL, NULL);
	CHECK(totals.events == 20 && totals.lost == 0);
	CHECK(header->refused_strings + header->refused_sites + header->refused_categories == 0);
}

static void names_of_threads_leave_room_for_trace_points(void **state)
{
	(void)state;
	assert_int_equal(in_child(names_full), 0);
}

/* The kernel's random bytes are glibc's secrets: none of them is in the drum. */
static void find_secrets(void)
{
	const struct ky_drum *drum = ky_drum_get();
	const uint8_t *secrets = (const uint8_t *)getauxval(AT_RANDOM);
	CHECK(drum && secrets && drum->header->image != 0);
	for (uint64_t at = 0; at + 4 <= drum->header->space_at; at++)
		for (uint32_t i = 0; i + 4 <= 16; i += 4)
			CHECK(memcmp(drum->base + at, secrets + i, 4) != 0);
}

static void a_drum_reveals_no_stack_canary(void **state)
{
	(void)state;
	assert_int_equal(in_child(find_secrets), 0);
}

/* A recorder's globs reach categories that come later, and leave with it. */
/* Another thread has added the category and was held up before it asked the recorders. */
static void half_added(void)
{
	ky_limits.categories = "*";
	struct ky_drum *drum = ky_drum_get();
	CHECK(drum);
	uint32_t at = 0;
	while (drum->categories[at].name != 0)
		at++;
	drum->categories[at].name = ky_heap_intern(drum, "late", 4);
	CHECK(drum->categories[at].state == 0);
	CHECK(KYMO_ENABLED("late"));
}

static void a_category_that_another_thread_is_adding_is_on_at_once(void **state)
{
	(void)state;
	assert_int_equal(in_child(half_added), 0);
}

static void recorders(void)
{
	struct ky_drum *drum = ky_drum_get();
	const int a = ky_heap_recorder_take(drum), b = ky_heap_recorder_take(drum);
	CHECK(a >= 0 && b >= 0 && a != b);
	CHECK(ky_heap_recorder_set(drum, (uint32_t)a, "net*") == 0);
	struct ky_drum_category *net = ky_heap_category(drum, "net.tcp");
	struct ky_drum_category *db = ky_heap_category(drum, "db");
	CHECK((net->state & 0xff) == 1 && (db->state & 0xff) == 0);
	CHECK(ky_heap_recorder_set(drum, (uint32_t)b, "*") == 0);
	CHECK((net->state & 0xff) == 1 && (db->state & 0xff) == 1);
	ky_heap_recorder_release(drum, (uint32_t)a);
	CHECK((net->state & 0xff) == 1 && (db->state & 0xff) == 1);
	ky_heap_recorder_release(drum, (uint32_t)b);
	CHECK(net->state == 0 && db->state == 0 && drum->header->recorders_taken == 0);
	CHECK(ky_heap_category(drum, "db") == db && ky_heap_category(drum, "gpu")->state == 0);
}

static void a_recorder_switches_categories_on_and_off(void **state)
{
	(void)state;
	assert_int_equal(in_child(recorders), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_string_has_one_record_whoever_adds_it),
		cmocka_unit_test(a_trace_point_without_room_is_counted_and_its_events_are_kept),
		cmocka_unit_test(a_category_without_room_is_counted_and_stays_off),
		cmocka_unit_test(strings_without_room_are_counted),
		cmocka_unit_test(names_of_threads_leave_room_for_trace_points),
		cmocka_unit_test(a_drum_reveals_no_stack_canary),
		cmocka_unit_test(a_recorder_switches_categories_on_and_off),
		cmocka_unit_test(a_category_that_another_thread_is_adding_is_on_at_once),
	};
	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
