/* SPDX-License-Identifier: MIT */
/*
 * test_clock.c: from ticks to nanoseconds: exact at the samples, never backwards, and sane where
 * there are none.
 */
#include "core/clock.h"

#include "core/drum_view.h"
#include "os/os.h"
#include "readback.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void add(struct ky_clock_map *map, uint64_t ticks, uint64_t ns)
{
	const struct ky_tick_reading sample = {ticks, ns, ns, ns};
	assert_int_equal(ky_clock_map_add(map, &sample), 0);
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 16) % limit;
}

/* A counter of about 3 GHz that drifts, sampled at odd moments. */
static void fill(struct ky_clock_map *map, uint32_t count)
{
	uint64_t state = 1, ticks = 1000, ns = 5000;
	for (uint32_t i = 0; i < count; i++) {
		add(map, ticks, ns);
		const uint64_t more = 1 + random_below(&state, 500000000);
		ns += more;
		ticks += more * (2990 + random_below(&state, 20)) / 1000;
	}
}

static void a_sample_is_converted_to_itself(void **state)
{
	(void)state;
	struct ky_clock_map map = {0};
	fill(&map, 1000);
	for (uint32_t i = 0; i < map.count; i++)
		assert_int_equal(ky_clock_map_ns(&map, map.readings[i].ticks),
				 map.readings[i].boottime_ns);
	for (uint32_t i = map.count; i-- > 0;)
		assert_int_equal(ky_clock_map_ns(&map, map.readings[i].ticks),
				 map.readings[i].boottime_ns);
	ky_clock_map_free(&map);
}

static void time_never_runs_backwards(void **state)
{
	(void)state;
	struct ky_clock_map map = {0};
	uint64_t seed = 7, last = 0;
	fill(&map, 1000);
	const uint64_t end = map.readings[map.count - 1].ticks + 1000000000;
	for (uint64_t ticks = 0; ticks < end; ticks += random_below(&seed, 10000000)) {
		const uint64_t ns = ky_clock_map_ns(&map, ticks);
		assert_true(ns >= last);
		last = ns;
	}
	ky_clock_map_free(&map);
}

static void samples_out_of_order_are_left_out(void **state)
{
	(void)state;
	struct ky_clock_map map = {0};
	add(&map, 100, 1000);
	add(&map, 100, 1001);
	add(&map, 90, 1002);
	add(&map, 110, 999);
	add(&map, 120, 1010);
	assert_int_equal(map.count, 2);
	assert_int_equal(ky_clock_map_ns(&map, 110), 1005);
	ky_clock_map_free(&map);
}

static void what_was_the_last_segment_ends_at_the_next_sample(void **state)
{
	(void)state;
	struct ky_clock_map map = {0};
	add(&map, 0, 0);
	add(&map, 1000000000, 1000000000);
	assert_int_equal(ky_clock_map_ns(&map, 2000000000), 2000000000);
	add(&map, 2000000000, 3000000000);
	assert_int_equal(ky_clock_map_ns(&map, 2000000000), 3000000000);
	assert_int_equal(ky_clock_map_ns(&map, 1500000000), 2000000000);
	ky_clock_map_free(&map);
}

/* The last two samples were forced within a microsecond, and one of them was read late. */
static void close_samples_do_not_decide_the_rate_of_what_follows(void **state)
{
	(void)state;
	struct ky_clock_map map = {0};
	add(&map, 0, 0);
	add(&map, 3000000000, 1000000000);
	add(&map, 3000003000, 1000001500); /* 500 ns late */
	const uint64_t ns = ky_clock_map_ns(&map, 3300000000);
	assert_in_range(ns, 1100000000, 1100002000);
	ky_clock_map_free(&map);
}

static void one_sample_needs_a_nominal_rate(void **state)
{
	(void)state;
	struct ky_clock_map map = {0};
	assert_int_equal(ky_clock_map_ns(&map, 12345), 0);
	add(&map, 1000, 50000);
	assert_int_equal(ky_clock_map_ns(&map, 9000), 50000);
	map.count_then = 0;
	map.nominal = KY_CLOCK_RATE_ONE / 2;
	assert_int_equal(ky_clock_map_ns(&map, 9000), 54000);
	assert_int_equal(ky_clock_map_ns(&map, 0), 49500);
	assert_false(ky_clock_has_rate(&map));
	ky_clock_map_free(&map);
}

static void wild_samples_are_no_fault(void **state)
{
	(void)state;
	struct ky_clock_map map = {0};
	add(&map, 0, 0);
	add(&map, 1, UINT64_MAX - 1);
	add(&map, UINT64_MAX - 1, UINT64_MAX);
	for (uint32_t shift = 0; shift < 64; shift++)
		(void)ky_clock_map_ns(&map, UINT64_MAX >> shift);
	(void)ky_clock_ticks_per_s(&map);
	(void)ky_clock_from_monotonic(&map, 0);
	ky_clock_map_free(&map);
}

/* Many more samples than there is room for: the list stays in order, from its very first on. */
static void thinning(void)
{
	struct ky_drum *drum = ky_drum_get();
	struct ky_drum_view view;
	struct ky_clock_map early = {0}, late = {0};
	const char *what;
	CHECK(ky_drum_view_open(&view, drum->base, drum->bytes, &what) == 0);
	for (uint32_t i = 0; i < 10000; i++) {
		ky_clock_take(drum, true);
		CHECK(drum->clock->count <= drum->header->clock_max);
		if (i % 10 == 0)
			CHECK(ky_clock_map_update(&early, &view) == 0);
	}
	CHECK(ky_clock_map_update(&early, &view) == 0 && ky_clock_map_update(&late, &view) == 0);
	CHECK(late.count == drum->clock->count && early.count > late.count);
	CHECK(late.readings[0].ticks == early.readings[0].ticks);
	for (uint32_t i = 1; i < late.count; i++)
		CHECK(late.readings[i].ticks > late.readings[i - 1].ticks);
	for (uint32_t i = late.count / 2 + 1; i < late.count; i++) {
		const uint64_t ticks = late.readings[i].ticks - 1;
		CHECK(ky_clock_map_ns(&early, ticks) == ky_clock_map_ns(&late, ticks));
	}
	ky_clock_map_free(&early);
	ky_clock_map_free(&late);
}

static void a_full_list_is_thinned_and_stays_in_order(void **state)
{
	(void)state;
	assert_int_equal(in_child(thinning), 0);
}

#define TAKEN 60000u
static struct ky_drum_reading taken[TAKEN];
static uint32_t taken_count;

static void *take_samples(void *context)
{
	struct ky_drum *drum = context;
	for (uint32_t i = 0; i < TAKEN; i++) {
		ky_clock_take(drum, true);
		taken[i] = drum->clock->readings[drum->clock->count - 1];
		__atomic_store_n(&taken_count, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int by_ticks(const void *a, const void *b)
{
	const struct ky_drum_reading *x = a, *y = b;
	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

/* Every sample that a reader gets while the list is being thinned is one that was taken. */
static void reading_while_thinning(void)
{
	struct ky_drum *drum = ky_drum_get();
	struct ky_drum_view view;
	const char *what;
	pthread_t thread;
	CHECK(ky_drum_view_open(&view, drum->base, drum->bytes, &what) == 0);
	const struct ky_drum_reading first = drum->clock->readings[0];
	CHECK(pthread_create(&thread, NULL, take_samples, drum) == 0);
	uint32_t count;
	while ((count = __atomic_load_n(&taken_count, __ATOMIC_ACQUIRE)) < TAKEN) {
		struct ky_clock_map map = {0};
		CHECK(ky_clock_map_update(&map, &view) == 0);
		count = __atomic_load_n(&taken_count, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < map.count; i++) {
			const struct ky_drum_reading key = {.ticks = map.readings[i].ticks};
			const struct ky_drum_reading *t =
				bsearch(&key, taken, count, sizeof(key), by_ticks);
			if (!t && (i == 0 || i + 2 >= map.count)) /* before, or not noted yet */
				continue;
			CHECK(t && t->boottime_ns == map.readings[i].boottime_ns);
			CHECK(t->realtime_ns == map.readings[i].realtime_ns);
		}
		if (map.count)
			CHECK(map.readings[0].ticks == first.ticks);
		ky_clock_map_free(&map);
	}
	pthread_join(thread, NULL);
}

static void no_sample_is_read_half_moved(void **state)
{
	(void)state;
	assert_int_equal(in_child(reading_while_thinning), 0);
}

/* Killed while it thinned: the samples are read all the same. */
static void killed_while_thinning(void)
{
	struct ky_drum *drum = ky_drum_get();
	struct ky_drum_view view;
	struct ky_clock_map map = {0};
	const char *what;
	for (uint32_t i = 0; i < 10; i++)
		ky_clock_take(drum, true);
	drum->clock->seq++;
	CHECK(ky_drum_view_open(&view, drum->base, drum->bytes, &what) == 0);
	CHECK(ky_clock_map_update(&map, &view) == 0 && map.count == drum->clock->count);
	ky_clock_map_free(&map);
}

static void samples_of_a_process_killed_while_it_thinned_are_read(void **state)
{
	(void)state;
	assert_int_equal(in_child(killed_while_thinning), 0);
}

/* The machine sleeps for an hour, and the counter with it: what was before keeps its time. */
static void suspended(void)
{
	struct ky_drum *drum = ky_drum_get();
	CHECK(drum);
	drum->clock->count = 0;
	struct ky_drum_reading reading = {1000000, 5000000000, 4000000000, 9000000000};
	for (int i = 0; i < 10; i++) {
		ky_clock_put(drum, &reading);
		reading.ticks += 300000000; /* 3 GHz */
		reading.boottime_ns += 100000000;
		reading.monotonic_ns += 100000000;
		reading.realtime_ns += 100000000;
	}
	CHECK(drum->clock->every_ticks == 300000000);
	const uint64_t asleep = UINT64_C(3600) * 1000000000u, ticks = reading.ticks;
	const uint64_t before = reading.boottime_ns;
	reading.boottime_ns += asleep;
	reading.realtime_ns += asleep;
	ky_clock_put(drum, &reading);
	CHECK(drum->clock->every_ticks == 300000000);
	struct ky_clock_map map = {0};
	struct ky_drum_view view;
	const char *what = "";
	CHECK(ky_drum_view_open(&view, drum->base, drum->bytes, &what) == 0);
	CHECK(ky_clock_map_update(&map, &view) == 0 && map.count == 12);
	const uint64_t middle = ky_clock_map_ns(&map, ticks - 150000000);
	CHECK(middle + 50000000 >= before - 10 && middle + 50000000 <= before + 10);
	CHECK(ky_clock_map_ns(&map, ticks) == before + asleep);
	ky_clock_map_free(&map);
}

static void time_before_a_suspension_is_not_stretched(void **state)
{
	(void)state;
	assert_int_equal(in_child(suspended), 0);
}

/* The counter jumps by ten seconds between two readings: what was before keeps its rate. */
static void jumped(void)
{
	struct ky_drum *drum = ky_drum_get();
	CHECK(drum);
	drum->clock->count = 0;
	struct ky_drum_reading reading = {1000000, 5000000000, 4000000000, 9000000000};
	for (int i = 0; i < 10; i++) {
		ky_clock_put(drum, &reading);
		reading.ticks += 300000000;
		reading.boottime_ns += 100000000;
		reading.monotonic_ns += 100000000;
		reading.realtime_ns += 100000000;
	}
	const uint64_t ticks = reading.ticks, ns = reading.boottime_ns;
	reading.ticks += UINT64_C(30000000000);
	ky_clock_put(drum, &reading);
	CHECK(drum->clock->every_ticks == 300000000);
	struct ky_clock_map map = {0};
	struct ky_drum_view view;
	const char *what = "";
	CHECK(ky_drum_view_open(&view, drum->base, drum->bytes, &what) == 0);
	CHECK(ky_clock_map_update(&map, &view) == 0 && map.count == 12);
	const uint64_t middle = ky_clock_map_ns(&map, ticks - 150000000);
	CHECK(middle + 50000000 >= ns - 10 && middle + 50000000 <= ns + 10);
	CHECK(ky_clock_map_ns(&map, ticks + 1000) <= ns &&
	      ky_clock_map_ns(&map, reading.ticks) == ns);
	ky_clock_map_free(&map);
}

static void a_counter_that_jumps_begins_anew(void **state)
{
	(void)state;
	assert_int_equal(in_child(jumped), 0);
}

/* The times of the events, which must not decrease. */
static void check_times(void *context, const struct ky_event *event)
{
	uint64_t *const last = context;
	if (strcmp(event->name.data, "before") == 0)
		return; /* by the counter as it was */
	CHECK(event->time_ns >= *last);
	*last = event->time_ns;
}

/*
 * The last reading was further than the counter is: it went back. The recorder goes on with a counter of its own, from
 * there, and the events have the right times.
 */
static void went_back(void)
{
	ky_limits.categories = "*";
	KYMO_INSTANT("a", "before");
	struct ky_drum *drum = ky_drum_peek();
	CHECK(drum);
	if (!drum->ticks_inline)
		_exit(77);
	drum->clock->count = 0;
	struct ky_drum_reading then = ky_clock_read(drum);
	const uint64_t second = UINT64_C(1000000000);
	then.ticks += UINT64_C(1) << 45;
	then.boottime_ns -= second;
	then.monotonic_ns -= second;
	then.realtime_ns -= second;
	ky_clock_put(drum, &then);
	ky_clock_take(drum, true);
	CHECK(!drum->ticks_inline && drum->clock->count == 2);
	CHECK(drum->clock->readings[1].ticks > then.ticks);
	const uint64_t from_ns = ky_os_boottime();
	uint64_t last_ns = 0;
	for (uint32_t i = 0; i < 1000; i++)
		KYMO_INSTANT("a", "after", "number", i);
	ky_os_sleep(10000000);
	ky_clock_take(drum, true);
	KYMO_INSTANT("a", "after", "number", 1000);
	CHECK(drum->clock->count == 3);
	CHECK(readback(check_times, &last_ns).events == 1002);
	CHECK(last_ns + 1000000 >= from_ns && last_ns <= ky_os_boottime() + 1000000);
}

static void a_counter_that_goes_back_is_given_up(void **state)
{
	(void)state;
	const int status = in_child(went_back);
	if (status == 77) {
		print_message("this machine's counter is not used\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_is_converted_to_itself),
		cmocka_unit_test(time_never_runs_backwards),
		cmocka_unit_test(samples_out_of_order_are_left_out),
		cmocka_unit_test(what_was_the_last_segment_ends_at_the_next_sample),
		cmocka_unit_test(close_samples_do_not_decide_the_rate_of_what_follows),
		cmocka_unit_test(one_sample_needs_a_nominal_rate),
		cmocka_unit_test(wild_samples_are_no_fault),
		cmocka_unit_test(a_full_list_is_thinned_and_stays_in_order),
		cmocka_unit_test(no_sample_is_read_half_moved),
		cmocka_unit_test(samples_of_a_process_killed_while_it_thinned_are_read),
		cmocka_unit_test(time_before_a_suspension_is_not_stretched),
		cmocka_unit_test(a_counter_that_jumps_begins_anew),
		cmocka_unit_test(a_counter_that_goes_back_is_given_up),
	};
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
