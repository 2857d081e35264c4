/* SPDX-License-Identifier: MIT */
/*
 * test_ring.c: what goes into a ring comes out of it, as often as somebody reads; what was
 * overwritten is counted to the event.
 */
#include "core/ring.h"
#include "os/os.h"
#include "readback.h"

#include <float.h>
#include <kymo/kymo.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

static void small_drum(uint64_t ring_bytes)
{
	ky_limits.ring_bytes = ring_bytes;
	ky_limits.total_bytes = 8u << 20;
	ky_limits.categories = "*";
}

/* Events in the order they come, each checked by its number. */
struct checker {
	uint32_t at;
	void (*check)(uint32_t at, const struct ky_event *event);
};

static void check_next(void *context, const struct ky_event *event)
{
	struct checker *checker = context;
	CHECK(event->kind != KYMO_KIND_LOST);
	checker->check(checker->at++, event);
}

static void read_and_check(uint32_t events,
			   void (*check)(uint32_t at, const struct ky_event *event))
{
	struct checker checker = {0, check};
	const struct readback totals = readback(check_next, &checker);
	CHECK(checker.at == events && totals.events == events);
	CHECK(totals.lost == 0 && totals.damaged == 0);
}

static void check_types(uint32_t at, const struct ky_event *e)
{
	(void)at;
	CHECK(e->kind == KYMO_KIND_INSTANT && e->args_count == 8);
	CHECK(strcmp(e->name.data, "types") == 0 && strcmp(e->site->category.data, "net") == 0);
	CHECK(strcmp(e->site->function.data, "every_type") == 0 && e->site->line > 0);
	CHECK(readback_arg(e, "min")->type == KYMO_TYPE_INT);
	CHECK(readback_arg(e, "min")->value.i == INT64_MIN);
	CHECK(readback_arg(e, "max")->value.u == UINT64_MAX);
	CHECK(readback_arg(e, "max")->type == KYMO_TYPE_UINT);
	CHECK(readback_arg(e, "double")->value.d == -DBL_MIN);
	CHECK(isnan(readback_arg(e, "nan")->value.d));
	CHECK(readback_arg(e, "bool")->type == KYMO_TYPE_BOOL);
	CHECK(readback_arg(e, "bool")->value.u == 1);
	CHECK(readback_arg(e, "pointer")->type == KYMO_TYPE_POINTER);
	CHECK(readback_arg(e, "pointer")->value.u == 0x1234);
	CHECK(strcmp(readback_arg(e, "string")->string, "text") == 0);
	CHECK(readback_arg(e, "char")->value.i == -1);
}

static void every_type(void)
{
	small_drum(64u << 10);
	KYMO_INSTANT("net", "types", "min", INT64_MIN, "max", UINT64_MAX, "double", -DBL_MIN, "nan",
		     (float)NAN, "bool", (_Bool)1, "pointer", (void *)0x1234, "string", "text",
		     "char", (signed char)-1);
	read_and_check(1, check_types);
}

static void every_type_comes_out_as_it_went_in(void **state)
{
	(void)state;
	assert_int_equal(in_child(every_type), 0);
}

static void fill_text(char *text, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		text[i] = (char)('!' + (i * 7 + bytes) % 90);
	text[bytes] = '\0';
}

static void check_string(uint32_t at, const struct ky_event *e)
{
	char text[304];
	const struct kymo_arg *arg = readback_arg(e, "text");
	const uint32_t bytes = at < KYMO_STRING_MAX ? at : KYMO_STRING_MAX;
	fill_text(text, at);
	CHECK(arg->type == KYMO_TYPE_STRING && arg->string_bytes == bytes);
	CHECK(memcmp(arg->string, text, bytes) == 0 && arg->string[bytes] == '\0');
	CHECK((arg->cut != 0) == (at > KYMO_STRING_MAX));
	CHECK(readback_arg(e, "before")->value.u == at && readback_arg(e, "after")->value.u == ~at);
}

/* In memory that ends where the string does: a byte read beyond is seen by the sanitizer. */
static void strings(void)
{
	small_drum(256u << 10);
	for (uint32_t bytes = 0; bytes <= 300; bytes++) {
		char *text = malloc(bytes + 1);
		CHECK(text);
		fill_text(text, bytes);
		KYMO_INSTANT("net", "string", "before", bytes, "text", (const char *)text, "after",
			     ~bytes);
		free(text);
	}
	read_and_check(301, check_string);
}

static void strings_of_every_length_are_whole_or_marked_as_cut(void **state)
{
	(void)state;
	assert_int_equal(in_child(strings), 0);
}

static void check_odd(uint32_t at, const struct ky_event *e)
{
	if (at == 0) {
		CHECK(strcmp(readback_arg(e, "text")->string, "(null)") == 0);
		CHECK(readback_arg(e, "after")->value.i == 7);
	} else {
		CHECK(e->args_count == 8);
		for (uint32_t i = 0; i < 8; i++)
			CHECK(e->args[i].string_bytes == KYMO_STRING_MAX);
	}
}

static void odd_strings(void)
{
	small_drum(64u << 10);
	char text[KYMO_STRING_MAX + 1];
	const char *const t = text, *const none = NULL;
	fill_text(text, KYMO_STRING_MAX);
	KYMO_INSTANT("net", "null", "text", none, "after", 7);
	KYMO_INSTANT("net", "eight", "a", t, "b", t, "c", t, "d", t, "e", t, "f", t, "g", t, "h",
		     t);
	KYMO_INSTANT("net", "eight", "a", t, "b", t, "c", t, "d", t, "e", t, "f", t, "g", t, "h",
		     t);
	read_and_check(3, check_odd);
}

static void a_null_string_and_eight_of_the_longest_are_kept(void **state)
{
	(void)state;
	assert_int_equal(in_child(odd_strings), 0);
}

static void check_kind(uint32_t at, const struct ky_event *e)
{
	static const uint8_t kinds[] = {
		KYMO_KIND_BEGIN,     KYMO_KIND_BEGIN,      KYMO_KIND_END,
		KYMO_KIND_END,       KYMO_KIND_COUNTER,    KYMO_KIND_ASYNC_BEGIN,
		KYMO_KIND_ASYNC_END, KYMO_KIND_FLOW_BEGIN, KYMO_KIND_FLOW_END,
		KYMO_KIND_PRINT,     KYMO_KIND_INSTANT,    KYMO_KIND_SNAPSHOT};
	CHECK(e->kind == kinds[at]);
	if (at == 0)
		CHECK(strcmp(e->name.data, "outer") == 0 && readback_arg(e, "n")->value.i == 1);
	else if (at == 1)
		CHECK(strcmp(e->name.data, "made 1") == 0 && readback_arg(e, "n")->value.i == 2);
	else if (at == 4)
		CHECK(readback_arg(e, "value")->value.d == 1.5);
	else if (at == 5 || at == 6)
		CHECK(e->id == 0xfedcba9876543210u && strcmp(e->name.data, "made 1") == 0);
	else if (at == 7 || at == 8)
		CHECK(e->id == 99 && strcmp(e->name.data, "flow") == 0);
	else if (at == 9)
		CHECK(strcmp(e->name.data, "5 of made 1, 2.50") == 0);
	else if (at == 10)
		CHECK(strcmp(e->name.data, "made 1") == 0 && e->args_count == 0);
	else if (at == 11)
		CHECK(strcmp(e->name.data, "why") == 0 && readback_arg(e, "arg")->value.u == 3);
}

static void every_kind(void)
{
	small_drum(64u << 10);
	const char *made = "made 1";
	{
		KYMO_SCOPE("a", "outer", "n", 1);
		KYMO_SCOPE_DYN("b", made, "n", 2);
	}
	KYMO_COUNTER("a", "level", 1.5);
	KYMO_ASYNC_BEGIN_DYN("a", made, UINT64_C(0xfedcba9876543210));
	KYMO_ASYNC_END_DYN("a", made, UINT64_C(0xfedcba9876543210));
	KYMO_FLOW_BEGIN("a", "flow", 99);
	KYMO_FLOW_END("a", "flow", 99);
	KYMO_PRINT("a", "%d of %s, %.2f", 5, made, 2.5);
	KYMO_INSTANT_DYN("a", made);
	kymo_snapshot("why", 3);
	read_and_check(12, check_kind);
}

static void every_kind_and_dynamic_names_come_out(void **state)
{
	(void)state;
	assert_int_equal(in_child(every_kind), 0);
}

/* A reader that keeps its place: numbers must follow each other but for the reported losses. */
struct follower {
	struct ky_stream stream;
	uint64_t next;
	uint64_t told;
};

static void follow(void *context, const struct ky_event *e)
{
	struct follower *f = context;
	if (e->kind == KYMO_KIND_LOST) {
		f->next += e->id;
		f->told += e->id;
		return;
	}
	CHECK(readback_arg(e, "number")->value.u == f->next);
	f->next++;
}

static void open_follower(struct follower *f, bool newest)
{
	const char *what;
	struct ky_drum *drum = ky_drum_get();
	memset(f, 0, sizeof(*f));
	CHECK(drum);
	CHECK(ky_stream_open(&f->stream, drum->base, drum->bytes, NULL, newest, 0, &what) == 0);
	f->stream.sink = (struct ky_stream_sink){.event = follow, .context = f};
}

static void write_numbers(uint64_t *number, uint64_t count)
{
	static const char pattern[] = "abcdefghijklmnopqrstuvwxyz";
	for (uint64_t end = *number + count; *number < end; ++*number)
		KYMO_INSTANT("net", "numbered", "text", pattern + *number % 27, "number", *number);
}

static void read_follower(struct follower *f, uint64_t expected)
{
	CHECK(ky_stream_read_all(&f->stream) == 0);
	CHECK(f->next == expected && f->told == f->stream.lost && f->stream.damaged == 0);
	CHECK(f->stream.events + f->stream.lost == expected);
}

static void lapped(void)
{
	static struct follower f;
	uint64_t number = 0;
	small_drum(KY_RING_BYTES_MIN);
	open_follower(&f, false);
	uint64_t lost = 0;
	for (uint32_t round = 1; round < 200; round++) {
		write_numbers(&number, round * 37 % 2000);
		read_follower(&f, number);
		lost += f.stream.lost != 0;
	}
	CHECK(lost > 0);
	ky_stream_close(&f.stream);
}

static void a_lapped_reader_knows_exactly_how_many_events_it_missed(void **state)
{
	(void)state;
	assert_int_equal(in_child(lapped), 0);
}

static void several_readers(void)
{
	static struct follower a, b, late, newest;
	uint64_t number = 0;
	small_drum(64u << 10);
	open_follower(&a, false);
	write_numbers(&number, 100);
	open_follower(&b, false);
	read_follower(&a, 100);
	open_follower(&newest, true);
	newest.next = 100;
	write_numbers(&number, 900);
	read_follower(&b, 1000);
	write_numbers(&number, 5);
	open_follower(&late, false);
	read_follower(&late, 1005);
	read_follower(&a, 1005);
	read_follower(&b, 1005);
	CHECK(ky_stream_read_all(&newest.stream) == 0 && newest.next == 1005);
	CHECK(newest.stream.events == 905 && newest.stream.lost == 0);
	CHECK(a.told + b.told + late.told == 0);
	ky_stream_close(&a.stream);
	ky_stream_close(&b.stream);
	ky_stream_close(&late.stream);
	ky_stream_close(&newest.stream);
}

static void every_reader_sees_everything(void **state)
{
	(void)state;
	assert_int_equal(in_child(several_readers), 0);
}

/* A reader from now on of a drum whose only ring is not there yet, and is lapped before it reads. */
static void newest_before_the_first_event(void)
{
	static struct follower f;
	uint64_t number = 0;
	small_drum(KY_RING_BYTES_MIN);
	CHECK(ky_drum_get());
	ky_drum_get()->header->rings_used = 1; /* about to be taken */
	open_follower(&f, true);
	ky_drum_get()->header->rings_used = 0;
	write_numbers(&number, 5000);
	read_follower(&f, 5000);
	CHECK(f.stream.lost > 0);
	ky_stream_close(&f.stream);
}

static void a_ring_that_comes_after_the_reader_is_counted_from_its_beginning(void **state)
{
	(void)state;
	assert_int_equal(in_child(newest_before_the_first_event), 0);
}

/* The times of three events, of which the counter's high half changed before the last two. */
static void collect_time(void *context, const struct ky_event *e)
{
	uint64_t **next = context;
	*(*next)++ = e->time_ns;
}

static void high_half(void)
{
	uint64_t times[3] = {0}, *next = times;
	small_drum(64u << 10);
	const uint64_t before = ky_os_boottime();
	for (int i = 0; i < 3; i++) {
		KYMO_INSTANT("net", "event", "i", i);
		struct ky_ring_writer *w = (struct ky_ring_writer *)(void *)kymo_i_tls;
		struct ky_drum_block *block =
			(struct ky_drum_block *)(w->pub.ky_end - KY_BLOCK_BYTES);
		if (i != 0)
			continue;
		/* As if the block had begun one turn of the low half earlier. */
		block->ticks -= UINT64_C(1) << 32;
		w->high--;
		w->pub.ky_high = w->high;
	}
	const struct readback totals = readback(collect_time, &next);
	CHECK(totals.events == 3 && next == times + 3);
	CHECK(times[1] >= before && times[2] >= times[1] && times[2] <= ky_os_boottime());
	CHECK(times[0] < before); /* the block alone has the first */
}

static void the_counters_high_half_may_change_within_a_block(void **state)
{
	(void)state;
	assert_int_equal(in_child(high_half), 0);
}

/* A session asks for larger rings when there is no room for one: the thread keeps what it has. */
static void no_room_to_grow(void)
{
	static struct follower f;
	uint64_t number = 0;
	small_drum(1u << 20);
	ky_limits.total_bytes = (1u << 20) + (64u << 10);
	write_numbers(&number, 1);
	struct ky_drum *drum = ky_drum_get();
	__atomic_store_n(&drum->header->ring_bytes, UINT64_C(3) << 20, __ATOMIC_RELAXED);
	open_follower(&f, false);
	write_numbers(&number, 5000);
	const struct ky_ring_writer *w = (const struct ky_ring_writer *)(const void *)kymo_i_tls;
	CHECK(w->ring->bytes == 1u << 20);
	read_follower(&f, 5001);
	CHECK(f.stream.lost == 0);
	ky_stream_close(&f.stream);
}

static void a_ring_is_never_changed_for_a_smaller_one(void **state)
{
	(void)state;
	assert_int_equal(in_child(no_room_to_grow), 0);
}

/* Any number of bytes that somebody configures is rounded to what a ring can be. */
static void odd_size(void)
{
	static struct follower f;
	uint64_t number = 0;
	small_drum(100000);
	open_follower(&f, false);
	write_numbers(&number, 20000);
	read_follower(&f, 20000);
	CHECK(f.stream.events > 0);
	ky_stream_close(&f.stream);
}

static void a_ring_of_an_odd_size_can_be_read(void **state)
{
	(void)state;
	assert_int_equal(in_child(odd_size), 0);
}

/* ---- a disk that is full ---- */

/* qemu-user ignores madvise(MADV_POPULATE_WRITE), by which the recorder asks for the disk's space. */
#ifndef EMULATED
#define EMULATED 0
#endif

/* A disk with room for the buffer's tables and for a ring of a part of the size, in mounts of the child's own. */
static char disk[] = "/tmp/kymo-test-ring-XXXXXX";

static void full_disk(void)
{
	if (EMULATED || (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("kymo", disk, "tmpfs", 0, "size=256k") != 0)
		_exit(77);
	small_drum(256u << 10);
	ky_limits.total_bytes = 2u << 20;
	ky_limits.heap_bytes = 64u << 10;
	ky_limits.rings_max = 16;
	ky_limits.categories_max = 16;
	ky_limits.dir = disk;
	KYMO_INSTANT("a", "one");
	const struct ky_drum *drum = ky_drum_peek();
	CHECK(drum && drum->on_disk);
	const struct ky_drum_header *h = drum->header;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < h->rings_used; i++)
		bytes += drum->rings[i].bytes;
	CHECK(h->rings_used == 1 && bytes > 0 && bytes < 256u << 10);
	CHECK(h->space_used == bytes);
	CHECK(readback(NULL, NULL).events == 1);
}

static void space_that_no_ring_could_take_is_given_back(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(disk));
	const int status = in_child(full_disk);
	rmdir(disk);
	if (status == 77) {
		print_message("this user may not mount a small disk\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_comes_out_as_it_went_in),
		cmocka_unit_test(strings_of_every_length_are_whole_or_marked_as_cut),
		cmocka_unit_test(a_null_string_and_eight_of_the_longest_are_kept),
		cmocka_unit_test(every_kind_and_dynamic_names_come_out),
		cmocka_unit_test(a_lapped_reader_knows_exactly_how_many_events_it_missed),
		cmocka_unit_test(every_reader_sees_everything),
		cmocka_unit_test(a_ring_that_comes_after_the_reader_is_counted_from_its_beginning),
		cmocka_unit_test(the_counters_high_half_may_change_within_a_block),
		cmocka_unit_test(a_ring_is_never_changed_for_a_smaller_one),
		cmocka_unit_test(a_ring_of_an_odd_size_can_be_read),
		cmocka_unit_test(space_that_no_ring_could_take_is_given_back),
	};
	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
