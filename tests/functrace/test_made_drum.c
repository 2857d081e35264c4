/* SPDX-License-Identifier: MIT */
/* test_made_drum.c: drums made from outside: the reader of any drum returns what was written. */
#include "core/layout.h"
#include "core/stream.h"
#include "functrace/made_drum.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE_NS UINT64_C(0x1fffff000) /* the low half wraps soon after */
#define SPANS 20000u

struct got {
	uint8_t kind;
	int32_t tid;
	uint64_t time_ns;
	char name[32];
	char thread[32];
	char category[32];
	char file[32];
	uint32_t line;
};
struct all {
	struct got *events;
	uint64_t count, room;
};

static void keep(void *context, const struct ky_event *e)
{
	struct all *all = context;
	assert_true(all->count < all->room);
	struct got *got = &all->events[all->count++];
	got->kind = e->kind;
	got->tid = e->thread->tid;
	got->time_ns = e->time_ns;
	got->line = e->site->line;
	snprintf(got->name, sizeof(got->name), "%s", e->name.data);
	snprintf(got->thread, sizeof(got->thread), "%s", e->thread->name.data);
	snprintf(got->category, sizeof(got->category), "%s", e->site->category.data);
	snprintf(got->file, sizeof(got->file), "%s", e->site->file.data);
}

/* Read the drum back by a clock whose ticks are the time. */
static struct all read_back(const struct ky_made_drum *drum, uint64_t room)
{
	static struct ky_stream stream;
	const char *what = "";
	struct all all = {calloc(room, sizeof(struct got)), 0, room};
	assert_non_null(all.events);
	assert_int_equal(
		ky_stream_open(&stream, drum->drum.base, drum->drum.bytes, NULL, false, 0, &what),
		0);
	stream.sink = (struct ky_stream_sink){.event = keep, .context = &all};
	const uint64_t far = UINT64_C(1) << 40;
	stream.clock.count = 0;
	assert_int_equal(ky_clock_map_add(&stream.clock, &(struct ky_tick_reading){1, 1, 1, 1}), 0);
	assert_int_equal(
		ky_clock_map_add(&stream.clock, &(struct ky_tick_reading){far, far, far, far}), 0);
	assert_int_equal(ky_stream_read_to(&stream, far), 0);
	assert_int_equal(stream.damaged, 0);
	assert_int_equal(stream.lost, 0);
	ky_stream_close(&stream);
	return all;
}

static struct ky_made_drum open_drum(uint32_t functions)
{
	struct ky_made_drum drum;
	const struct ky_made_drum_options options = {.pid = getpid(),
						     .fd = -1,
						     .functions = functions,
						     .ring_bytes = 1u << 20,
						     .total_bytes = 64u << 20};
	assert_int_equal(ky_made_drum_open(&drum, &options), 0);
	return drum;
}

static void spans_come_back_exactly(void **state)
{
	(void)state;
	struct ky_made_drum drum = open_drum(10);
	const uint32_t outer = ky_made_drum_site(&drum, KYMO_KIND_BEGIN, "libx.so", "outer(int)",
						 "_Z5outeri", "x.cc", 7);
	const uint32_t inner =
		ky_made_drum_site(&drum, KYMO_KIND_BEGIN, "libx.so", "inner", "inner", NULL, 0);
	assert_true(outer != 0 && inner != 0 && outer != inner);
	ky_made_drum_thread(&drum, 11, "eleven");
	ky_made_drum_thread(&drum, 12, "twelve");
	for (uint64_t i = 0; i < SPANS; i++) {
		const uint64_t at = BASE_NS + i * 10;
		ky_made_drum_begin(&drum, 11, at, outer);
		ky_made_drum_begin(&drum, 11, at + 1, inner);
		ky_made_drum_end_span(&drum, 11, at + 2);
		ky_made_drum_end_span(&drum, 11, at + 3);
	}
	ky_made_drum_begin(&drum, 12, BASE_NS + SPANS * 10, inner);
	ky_made_drum_gone(&drum, 12, BASE_NS + SPANS * 10 + 5);
	struct all all = read_back(&drum, SPANS * 4 + 2);
	assert_int_equal(all.count, SPANS * 4 + 2);
	static const uint8_t kinds[] = {KYMO_KIND_BEGIN, KYMO_KIND_BEGIN, KYMO_KIND_END,
					KYMO_KIND_END};
	for (uint64_t i = 0; i < SPANS * 4; i++) {
		const struct got *e = &all.events[i];
		assert_int_equal(e->kind, kinds[i % 4]);
		assert_int_equal(e->tid, 11);
		assert_int_equal(e->time_ns, BASE_NS + i / 4 * 10 + i % 4);
	}
	assert_string_equal(all.events[0].name, "outer(int)");
	assert_string_equal(all.events[0].category, "libx.so");
	assert_string_equal(all.events[0].file, "x.cc");
	assert_int_equal(all.events[0].line, 7);
	assert_string_equal(all.events[0].thread, "eleven");
	assert_string_equal(all.events[SPANS * 4].thread, "twelve");
	assert_int_equal(all.events[SPANS * 4 + 1].kind, KYMO_KIND_END);
	assert_int_equal(drum.lost, 0);
	free(all.events);
	ky_made_drum_close(&drum);
}

static void what_has_no_begin_is_counted(void **state)
{
	(void)state;
	struct ky_made_drum drum = open_drum(1);
	ky_made_drum_end_span(&drum, 5, 1);
	ky_made_drum_begin(&drum, 5, 2, 0);
	assert_int_equal(drum.lost, 2);
	ky_made_drum_gone(&drum, 5, 3);
	ky_made_drum_gone(&drum, 6, 3);
	struct all all = read_back(&drum, 1);
	assert_int_equal(all.count, 0);
	free(all.events);
	ky_made_drum_close(&drum);
}

static void times_never_go_back(void **state)
{
	(void)state;
	struct ky_made_drum drum = open_drum(1);
	const uint32_t site =
		ky_made_drum_site(&drum, KYMO_KIND_INSTANT, "m", "point", "point", NULL, 0);
	ky_made_drum_instant(&drum, 5, BASE_NS + 100, site);
	ky_made_drum_instant(&drum, 5, BASE_NS, site);
	struct all all = read_back(&drum, 2);
	assert_int_equal(all.count, 2);
	assert_int_equal(all.events[0].time_ns, all.events[1].time_ns);
	free(all.events);
	ky_made_drum_close(&drum);
}

static void heap_holds_as_many_functions_as_asked(void **state)
{
	(void)state;
	const uint32_t functions = 80000;
	struct ky_made_drum drum = open_drum(functions);
	for (uint32_t i = 0; i < functions; i++) {
		char name[200], linked[120];
		snprintf(name, sizeof(name), "%0*u", 180, i);
		snprintf(linked, sizeof(linked), "_Z%0*u", 100, i);
		assert_int_not_equal(ky_made_drum_site(&drum, KYMO_KIND_BEGIN, "node", name, linked,
						       "some/where.cc", i),
				     0);
	}
	ky_made_drum_close(&drum);
}

static void a_given_descriptor_is_used(void **state)
{
	(void)state;
	struct ky_made_drum drum;
	struct ky_made_drum_options options = {
		.pid = getpid(), .functions = 1, .ring_bytes = 1 << 16};
	options.fd = memfd_create(KY_DRUM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int given = options.fd;
	assert_int_equal(ky_made_drum_open(&drum, &options), 0);
	assert_int_equal(drum.fd, given);
	ky_made_drum_close(&drum);
	options.fd = memfd_create(KY_DRUM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(options.fd, 4096), 0);
	assert_int_equal(ky_made_drum_open(&drum, &options), -EINVAL);
	assert_int_equal(close(options.fd), -1); /* closed already */
}

/* A program that has the drum mapped can write anything there at any time. */
static void what_a_program_overwrites_is_not_looked_at(void **state)
{
	struct ky_made_drum drum;
	(void)state;
	const int fd = memfd_create(KY_DRUM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const struct ky_made_drum_options options = {.pid = getpid(),
						     .fd = fd,
						     .functions = 100,
						     .layer = KY_DRUM_FUNCTIONS,
						     .ring_bytes = 65536,
						     .total_bytes = 1 << 20,
						     .name = "hostile"};
	assert_int_equal(ky_made_drum_open(&drum, &options), 0);
	const uint64_t space_at = ky_made_drum_header(&drum)->space_at;
	const uint32_t before =
		ky_made_drum_site(&drum, KYMO_KIND_BEGIN, "libone.so", "one", "one", "one.c", 1);
	uint8_t *const theirs =
		mmap(NULL, drum.drum.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, drum.fd, 0);
	assert_true(before && theirs != MAP_FAILED);
	for (int byte = 0; byte < 256; byte += 51) {
		memset(theirs, byte, space_at);
		assert_int_equal(ky_made_drum_site(&drum, KYMO_KIND_BEGIN, "libone.so", "one",
						   "one", "one.c", 1),
				 before);
		const uint32_t site = ky_made_drum_site(&drum, KYMO_KIND_BEGIN, "libtwo.so", "two",
							"two", "two.c", (uint32_t)byte);
		assert_true(site > before);
		/* What is new is there, whatever the rest is. */
		const struct ky_heap_record *const record =
			(const void *)(theirs + (uint64_t)site * KY_HEAP_UNIT);
		assert_int_equal(record->kind, KY_HEAP_SITE);
	}
	assert_int_equal(ky_made_drum_header(&drum)->space_at, space_at);
	munmap(theirs, drum.drum.bytes);
	ky_made_drum_close(&drum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_come_back_exactly),
		cmocka_unit_test(what_has_no_begin_is_counted),
		cmocka_unit_test(times_never_go_back),
		cmocka_unit_test(heap_holds_as_many_functions_as_asked),
		cmocka_unit_test(a_given_descriptor_is_used),
		cmocka_unit_test(what_a_program_overwrites_is_not_looked_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
