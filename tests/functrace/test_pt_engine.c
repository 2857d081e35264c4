/* SPDX-License-Identifier: MIT */
/*
 * test_pt_engine.c: the engine pt from its rings to its drums, without the kernel: the rings are memory that the test writes, as the
 * kernel would. The process is this one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/stream.h"
#include "functrace/pt_process.h"
#include "os/os.h"
#include "process/program_file.h"
#include "pt_maker.h"

#define RING_BYTES 4096u
#define AUX_BYTES 4096u

/* outer calls inner, which returns. */
__asm__(".text\n"
	".p2align 4\n"
	".globl pt_outer, pt_inner\n"
	".type pt_outer, @function\n"
	"pt_outer: call pt_inner\n" /* 5 bytes */
	"	ret\n"
	".size pt_outer, . - pt_outer\n"
	".p2align 4\n"
	".type pt_inner, @function\n"
	"pt_inner: nop\n"
	"	ret\n"
	".size pt_inner, . - pt_inner\n");
void pt_outer(void);
void pt_inner(void);
#define OUTER ((uint64_t)(uintptr_t)pt_outer)

/* ---- the kernel's part ---- */

struct faked {
	struct ky_pt *pt;
	struct ky_pt_traced *traced;
	char notes[1024];
	uint64_t ticks; /* when it began */
};

static void keep_note(void *context, const char *line)
{
	struct faked *faked = context;
	strncat(faked->notes, line, sizeof(faked->notes) - strlen(faked->notes) - 1);
}

static void *memory(size_t bytes)
{
	void *mapped =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(mapped != MAP_FAILED);
	return mapped;
}

/* Make a thread whose rings the kernel would write. A tick is a nanosecond. */
static void fake_thread(struct faked *faked, pid_t tid)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct ky_pt_traced *traced = faked->traced;
	assert_true(KY_ARRAY_GROW(traced->threads, traced->room, traced->count + 1));
	struct ky_pt_thread *thread = &traced->threads[traced->count++];
	struct perf_event_mmap_page *page = memory(page_bytes + RING_BYTES);
	page->cap_user_time_zero = 1;
	page->time_mult = 1;
	*thread = (struct ky_pt_thread){.tid = tid,
					.tid_inside = tid,
					.fd = -1,
					.records = {.page = page,
						    .data = (uint8_t *)page + page_bytes,
						    .bytes = RING_BYTES,
						    .whole = malloc(65536)},
					.aux = memory(AUX_BYTES),
					.aux_bytes = AUX_BYTES,
					.seen = true};
	faked->pt->aux_all += AUX_BYTES;
}

static int open_faked(void **state)
{
	struct faked *faked = calloc(1, sizeof(*faked));
	const struct ky_pt_process_options options = {
		.ring_bytes = 1 << 20, .total_bytes = 16 << 20, .pid_inside = getpid()};
	assert_non_null(faked);
	faked->pt = calloc(1, sizeof(*faked->pt));
	faked->traced = calloc(1, sizeof(*faked->traced));
	assert_true(faked->pt && faked->traced);
	/* No event source has such a number: events are refused. */
	faked->pt->machine = (struct ky_pt_machine){.type = 0x7ffffff, .cpu = pt_made_cpu};
	faked->pt->options = (struct ky_functrace_options){.note = keep_note, .context = faked};
	faked->pt->aux_bytes = AUX_BYTES;
	faked->pt->first = faked->traced;
	assert_int_equal(ky_pt_process_open(&faked->traced->process, getpid(), &options), 0);
	faked->ticks = ky_cpu_ticks();
	fake_thread(faked, gettid());
	*state = faked;
	return 0;
}

static int close_faked(void **state)
{
	struct faked *faked = *state;
	ky_pt_close(&faked->pt);
	free(faked);
	return 0;
}

static void put_record(struct ky_pt_thread *thread, const void *record, size_t bytes)
{
	struct perf_event_mmap_page *page = thread->records.page;
	memcpy(thread->records.data + page->data_head, record, bytes);
	page->data_head += bytes;
}

/* Put an MMAP2 record of this program's code. */
static void put_map(struct ky_pt_thread *thread)
{
	struct ky_program_map map;
	assert_int_equal(ky_program_map_read(&map, getpid()), 0);
	for (uint32_t i = 0; i < map.count; i++) {
		const struct ky_proc_mapping *one = &map.mappings[i];
		struct {
			struct perf_event_header header;
			uint32_t pid, tid;
			uint64_t address, bytes, offset;
			uint32_t major, minor;
			uint64_t inode, generation;
			uint32_t protection, flags;
			char path[512];
			uint32_t trailer_pid, trailer_tid;
			uint64_t time;
		} record = {.header = {.type = PERF_RECORD_MMAP2, .size = sizeof(record)},
			    .address = one->start,
			    .bytes = one->end - one->start,
			    .offset = one->offset,
			    .major = (uint32_t)(one->device >> 32),
			    .minor = (uint32_t)one->device,
			    .inode = one->inode};
		snprintf(record.path, sizeof(record.path), "%s", one->path);
		if (OUTER >= one->start && OUTER < one->end)
			put_record(thread, &record, sizeof(record));
	}
	ky_program_map_free(&map);
}

static void put_exit(struct ky_pt_thread *thread)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
		uint32_t trailer_pid, trailer_tid;
		uint64_t trailer_time;
	} record = {.header = {.type = PERF_RECORD_EXIT, .size = sizeof(record)},
		    .tid = (uint32_t)thread->tid};
	put_record(thread, &record, sizeof(record));
}

/* Put the packets of a call, so that they go over the ring's end by some bytes. */
static void put_packets(struct faked *faked, struct ky_pt_thread *thread, size_t from)
{
	struct pt_made made;
	pt_made_open(&made, AUX_BYTES);
	pt_psb(&made, 0, faked->ticks);
	pt_pge(&made, OUTER);
	pt_tnt(&made, "t");
	pt_fup(&made, OUTER + 5);
	pt_pgd(&made, 0);
	for (size_t i = 0; i < made.aux_bytes; i++)
		thread->aux[(from + i) % AUX_BYTES] = made.aux[i];
	thread->records.page->aux_head = (from + made.aux_bytes) % AUX_BYTES;
	pt_made_close(&made);
}

/* ---- results ---- */

struct told {
	char text[512];
};

static void keep(void *context, const struct ky_event *event)
{
	struct told *told = context;
	const size_t used = strlen(told->text);
	snprintf(told->text + used, sizeof(told->text) - used, "%s%s%s", used ? " " : "",
		 event->kind == KYMO_KIND_END ? "}" : event->name.data,
		 event->kind == KYMO_KIND_BEGIN ? "{" : "");
}

static void expect(const struct faked *faked, const char *text)
{
	static struct ky_stream stream;
	const uint64_t far = UINT64_C(1) << 62;
	const struct ky_drum *drum = &faked->traced->process.drum.drum;
	const char *what = "";
	struct told told = {""};
	assert_int_equal(ky_stream_open(&stream, drum->base, drum->bytes, NULL, false, 0, &what),
			 0);
	stream.sink = (struct ky_stream_sink){.event = keep, .context = &told};
	assert_int_equal(ky_stream_read_to(&stream, far), 0);
	ky_stream_close(&stream);
	assert_string_equal(told.text, text);
}

#define CALLS "pt_outer{ pt_inner{ } [interrupt]{ } }"

static void what_the_rings_hold_is_told_once(void **state)
{
	struct faked *faked = *state;
	put_map(&faked->traced->threads[0]);
	put_packets(faked, &faked->traced->threads[0], AUX_BYTES - 20);
	ky_pt_decode(faked->pt);
	expect(faked, CALLS);
	ky_pt_round(faked->pt);
	ky_pt_decode(faked->pt);
	expect(faked, CALLS);
	assert_int_equal(faked->traced->count, 1);
	assert_string_equal(faked->notes, "");
}

static void a_thread_that_ended_is_told_and_let_go(void **state)
{
	struct faked *faked = *state;
	/* No thread of this process has such a number. */
	fake_thread(faked, 0x3fffffff);
	put_map(&faked->traced->threads[0]);
	put_packets(faked, &faked->traced->threads[1], 0);
	put_exit(&faked->traced->threads[1]);
	ky_pt_round(faked->pt);
	assert_true(faked->traced->threads[1].ended);
	ky_pt_decode(faked->pt);
	expect(faked, CALLS);
	assert_int_equal(faked->traced->count, 1);
	assert_int_equal(faked->pt->aux_all, AUX_BYTES);
}

static void a_thread_that_is_gone_without_a_record_has_ended(void **state)
{
	struct faked *faked = *state;
	fake_thread(faked, 0x3fffffff);
	ky_pt_round(faked->pt);
	assert_true(faked->traced->threads[1].ended);
	assert_false(faked->traced->threads[0].ended);
}

static void a_process_that_ended_is_told_as_a_whole(void **state)
{
	struct faked *faked = *state;
	put_map(&faked->traced->threads[0]);
	put_packets(faked, &faked->traced->threads[0], 100);
	ky_pt_ended(faked->pt, getpid());
	expect(faked, CALLS);
	assert_int_equal(faked->traced->count, 0);
	assert_int_equal(faked->pt->aux_all, 0);
	ky_pt_decode(faked->pt);
	ky_pt_round(faked->pt);
	expect(faked, CALLS);
}

static void threads_that_get_no_event_are_noted_once(void **state)
{
	struct faked *faked = *state;
	faked->traced->threads[0].tid = 0x3fffffff; /* so this thread has none */
	ky_pt_round(faked->pt);
	ky_pt_round(faked->pt);
	assert_non_null(strstr(faked->notes, "some threads are not traced"));
	assert_null(strstr(strstr(faked->notes, "threads") + 1, "threads are"));
}

static void what_could_not_be_decoded_is_noted_at_the_end(void **state)
{
	struct faked *faked = *state;
	/* No record describes the code there. */
	faked->traced->process.space.live = false;
	put_packets(faked, &faked->traced->threads[0], 0);
	ky_pt_decode(faked->pt);
	ky_pt_close(&faked->pt);
	assert_non_null(strstr(faked->notes, "1 times packets did not match the code"));
}

static void a_counter_without_a_clock_is_noted(void **state)
{
	struct faked *faked = *state;
	put_packets(faked, &faked->traced->threads[0], 0);
	faked->traced->threads[0].records.page->cap_user_time_zero = 0;
	ky_pt_decode(faked->pt);
	assert_non_null(strstr(faked->notes, "nothing can be decoded"));
	expect(faked, "");
}

static void a_process_that_cannot_be_traced_is_refused_whole(void **state)
{
	struct faked *faked = *state;
	char message[KY_MESSAGE_BYTES] = "";
	assert_true(ky_pt_add(faked->pt, getppid(), message) < 0);
	assert_true(strlen(message) > 20);
	assert_ptr_equal(faked->pt->first, faked->traced);
	assert_null(faked->traced->next);
	/* A process that is traced already stays as it is. */
	assert_int_equal(ky_pt_add(faked->pt, getpid(), message), 0);
	assert_null(faked->traced->next);
}

int main(void)
{
	/* Nothing is left behind: no cache of functions. */
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_faked, close_faked)
	const struct CMUnitTest tests[] = {
		TEST(what_the_rings_hold_is_told_once),
		TEST(a_thread_that_ended_is_told_and_let_go),
		TEST(a_thread_that_is_gone_without_a_record_has_ended),
		TEST(a_process_that_ended_is_told_as_a_whole),
		TEST(threads_that_get_no_event_are_noted_once),
		TEST(what_could_not_be_decoded_is_noted_at_the_end),
		TEST(a_counter_without_a_clock_is_noted),
		TEST(a_process_that_cannot_be_traced_is_refused_whole),
	};
	if (ky_cpu_tick_source() == 0) {
		print_message("no counter that is the same on all CPUs\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
