/* SPDX-License-Identifier: MIT */
/*
 * test_pt_process.c: from packets to a drum with the names of real functions: this program's own, found by its
 * mappings. Only the kernel and the CPU are missing: the packets are made by libipt's encoder.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/stream.h"
#include "functrace/pt_process.h"
#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/program_file.h"
#include "pt_maker.h"

#define TID 4711

/* Known code: its calls, with the length of each instruction known here. */
__asm__(".text\n"
	".p2align 4\n"
	".globl pt_top, pt_middle, pt_leaf, pt_plt\n"
	".type pt_top, @function\n"
	"pt_top: call pt_middle\n" /* 5 bytes */
	"	nop\n"
	"	call pt_plt\n" /* at 6, to 11 */
	"	ret\n"
	".size pt_top, . - pt_top\n"
	".p2align 4\n"
	".type pt_middle, @function\n"
	"pt_middle: call pt_leaf\n"
	"	ret\n"
	".size pt_middle, . - pt_middle\n"
	".p2align 4\n"
	".type pt_leaf, @function\n"
	"pt_leaf: nop\n"
	"	ret\n"
	".size pt_leaf, . - pt_leaf\n"
	".p2align 4\n"
	/* Not a function by its type: as a stub of the linker. */
	"pt_plt: jmp *%rax\n");
void pt_top(void);
void pt_middle(void);
void pt_leaf(void);

static uint64_t address(void (*function)(void))
{
	return (uint64_t)(uintptr_t)function;
}

/* ---- results ---- */

struct told {
	char text[1024];
	char category[64];
	uint64_t first_ns;
};

static void keep(void *context, const struct ky_event *event)
{
	struct told *told = context;
	const size_t used = strlen(told->text);
	assert_int_equal(event->thread->tid, TID);
	if (!told->first_ns) {
		told->first_ns = event->time_ns;
		snprintf(told->category, sizeof(told->category), "%s", event->site->category.data);
	}
	snprintf(told->text + used, sizeof(told->text) - used, "%s%s%s", used ? " " : "",
		 event->kind == KYMO_KIND_END ? "}" : event->name.data,
		 event->kind == KYMO_KIND_BEGIN ? "{" : "");
}

/* Read the drum back by a clock whose ticks are the time. */
static void read_back(const struct ky_made_drum *drum, struct told *told)
{
	static struct ky_stream stream;
	const uint64_t far = UINT64_C(1) << 40;
	const char *what = "";
	memset(told, 0, sizeof(*told));
	assert_int_equal(
		ky_stream_open(&stream, drum->drum.base, drum->drum.bytes, NULL, false, 0, &what),
		0);
	stream.sink = (struct ky_stream_sink){.event = keep, .context = told};
	stream.clock.count = 0;
	assert_int_equal(ky_clock_map_add(&stream.clock, &(struct ky_tick_reading){1, 1, 1, 1}), 0);
	assert_int_equal(
		ky_clock_map_add(&stream.clock, &(struct ky_tick_reading){far, far, far, far}), 0);
	assert_int_equal(ky_stream_read_to(&stream, far), 0);
	assert_int_equal(stream.damaged + stream.lost, 0);
	ky_stream_close(&stream);
}

/* ---- the process ---- */

static struct ky_pt_process *open_process(const struct ky_selection *selection)
{
	struct ky_pt_process *process = malloc(sizeof(*process));
	const struct ky_pt_process_options options = {.selection = selection,
						      .ring_bytes = 1u << 20,
						      .total_bytes = 16u << 20,
						      .pid_inside = getpid()};
	assert_non_null(process);
	assert_int_equal(ky_pt_process_open(process, getpid(), &options), 0);
	return process;
}

static void close_process(struct ky_pt_process *process)
{
	ky_pt_process_close(process);
	free(process);
}

/* top calls middle, which calls leaf; then leaf through a stub. */
static void make_packets(struct pt_made *made)
{
	pt_made_open(made, 1 << 16);
	pt_psb(made, 0, 5000);
	pt_pge(made, address(pt_top));
	pt_tnt(made, "tt");
	pt_tip(made, address(pt_leaf));
	pt_tnt(made, "t");
	pt_fup(made, address(pt_top) + 11);
	pt_pgd(made, 0);
}

static void tell(struct ky_pt_process *process, const struct pt_made *made, uint64_t since)
{
	const struct ky_pt_packets packets = {
		.aux = made->aux, .bytes = made->aux_bytes, .cpu = pt_made_cpu, .since_ns = since};
	uint64_t until = 0;
	assert_int_equal(ky_pt_process_write(process, TID, &packets, &until), 0);
	assert_int_equal(until, 5000);
}

static void calls_of_a_real_program_have_its_names(void **state)
{
	struct ky_pt_process *process = open_process(NULL);
	struct pt_made made;
	struct told told;
	(void)state;
	assert_int_equal(ky_pt_space_look(&process->space), 0);
	make_packets(&made);
	tell(process, &made, 0);
	read_back(&process->drum, &told);
	assert_string_equal(told.text,
			    "pt_top{ pt_middle{ pt_leaf{ } } pt_leaf{ } [interrupt]{ } }");
	assert_int_equal(told.first_ns, 5000);
	assert_string_equal(told.category, "test_pt_process");
	assert_int_equal(process->facts.errors, 0);
	pt_made_close(&made);
	close_process(process);
}

static void what_is_not_selected_is_left_out(void **state)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_selection *selection;
	struct pt_made made;
	struct told told;
	(void)state;
	assert_int_equal(ky_selection_parse(&selection, "pt_*,-pt_middle", 0, message), 0);
	struct ky_pt_process *process = open_process(selection);
	assert_int_equal(ky_pt_space_look(&process->space), 0);
	make_packets(&made);
	tell(process, &made, 0);
	read_back(&process->drum, &told);
	assert_string_equal(told.text, "pt_top{ pt_leaf{ } pt_leaf{ } [interrupt]{ } }");
	pt_made_close(&made);
	close_process(process);
	ky_selection_free(&selection);
}

/* Pass a record of the mapping that contains an address, as the kernel writes it. */
static void map_by_record(struct ky_pt_process *process, uint64_t place)
{
	struct ky_program_map map;
	assert_int_equal(ky_program_map_read(&map, getpid()), 0);
	for (uint32_t i = 0; i < map.count; i++) {
		const struct ky_proc_mapping *one = &map.mappings[i];
		if (place < one->start || place >= one->end)
			continue;
		assert_int_equal(ky_pt_space_map(&process->space, one), 0);
	}
	ky_program_map_free(&map);
}

static void code_that_is_mapped_later_is_known_by_its_record(void **state)
{
	struct ky_pt_process *process = open_process(NULL);
	struct pt_made made;
	struct told told;
	(void)state;
	make_packets(&made);
	map_by_record(process, address(pt_top));
	assert_int_equal(process->space.mapped.count, 1);
	tell(process, &made, 0);
	read_back(&process->drum, &told);
	assert_string_equal(told.text,
			    "pt_top{ pt_middle{ pt_leaf{ } } pt_leaf{ } [interrupt]{ } }");
	/* Known mappings are not added again. */
	assert_int_equal(ky_pt_space_look(&process->space), 0);
	const uint32_t count = process->space.mapped.count;
	assert_true(count > 1);
	assert_int_equal(ky_pt_space_look(&process->space), 0);
	assert_int_equal(process->space.mapped.count, count);
	pt_made_close(&made);
	close_process(process);
}

static void a_library_that_is_loaded_again_and_again_takes_no_more_room(void **state)
{
	struct ky_pt_process *process = open_process(NULL);
	struct ky_program_map map;
	(void)state;
	assert_int_equal(ky_program_map_read(&map, getpid()), 0);
	const struct ky_proc_mapping *one = &map.mappings[0];
	struct ky_proc_mapping mapping = *one;
	for (uint32_t i = 0; i < 1000; i++) {
		mapping.start = 0x100000000 + i % 4 * 0x10000000;
		mapping.end = mapping.start + (one->end - one->start);
		assert_int_equal(ky_pt_space_map(&process->space, &mapping), 0);
	}
	assert_int_equal(process->space.mapped.count, 4);
	assert_int_equal(process->space.modules_count, 1);
	assert_true(process->space.image.used < one->end - one->start + 8192);
	ky_program_map_free(&map);
	close_process(process);
}

static void code_in_no_file_is_read_from_the_process_and_named_by_its_address(void **state)
{
	struct ky_pt_process *process = open_process(NULL);
	struct pt_made made;
	struct told told;
	char expected[128];
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t at = (uint64_t)(uintptr_t)code;
	(void)state;
	assert_true(code != MAP_FAILED);
	memcpy(code, "\xe8\x0b\x00\x00\x00\xc3", 6); /* call 16 on; ret */
	code[16] = 0xc3;
	pt_made_open(&made, 4096);
	pt_psb(&made, 0, 5000);
	pt_pge(&made, at);
	pt_tnt(&made, "t");
	pt_fup(&made, at + 5);
	pt_pgd(&made, 0);
	tell(process, &made, 0);
	read_back(&process->drum, &told);
	snprintf(expected, sizeof(expected), "0x%llx{ 0x%llx{ } [interrupt]{ } }",
		 (unsigned long long)at, (unsigned long long)at + 16);
	/* Where reading another process's memory is forbidden, the message says so. */
	if (!process->facts.errors)
		assert_string_equal(told.text, expected);
	else
		assert_non_null(strstr(told.text, "[decode error: "));
	pt_made_close(&made);
	munmap(code, 4096);
	close_process(process);
}

static void the_kernels_code_in_the_process_is_one_function(void **state)
{
	struct ky_pt_process *process = open_process(NULL);
	struct pt_made made;
	struct told told;
	const uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	(void)state;
	assert_int_equal(ky_pt_space_look(&process->space), 0);
	if (!vdso)
		skip();
	assert_int_equal(process->space.vdso, vdso);
	/* Also when the process is gone. */
	process->space.live = false;
	make_packets(&made);
	pt_tsc(&made, 5000);
	pt_pge(&made, vdso + 0x40); /* its code is not executed there: the CPU stops at once */
	pt_fup(&made, vdso + 0x40);
	pt_pgd(&made, 0);
	tell(process, &made, 0);
	read_back(&process->drum, &told);
	assert_non_null(strstr(told.text, "[vdso]{ [interrupt]{ } }"));
	pt_made_close(&made);
	close_process(process);
}

static void unknown_code_is_an_error_that_is_shown(void **state)
{
	struct ky_pt_process *process = open_process(NULL);
	struct pt_made made;
	struct told told;
	(void)state;
	process->space.live = false;
	make_packets(&made);
	tell(process, &made, 0);
	read_back(&process->drum, &told);
	assert_non_null(strstr(told.text, "[decode error: "));
	assert_non_null(strstr(told.text, "[untraced]{ }"));
	pt_made_close(&made);
	close_process(process);
}

static void more_texts_than_there_is_room_for_share_one(void **state)
{
	struct ky_pt_process *process = open_process(NULL);
	struct pt_made made;
	struct told told;
	(void)state;
	process->space.live = false;
	process->texts_count = KY_PT_TEXTS_MAX;
	for (uint32_t i = 0; i < KY_PT_TEXTS_MAX; i++)
		process->texts[i] = (struct ky_pt_text){.text = strdup("x"), .kind = -1};
	make_packets(&made);
	tell(process, &made, 0);
	read_back(&process->drum, &told);
	assert_non_null(strstr(told.text, "} [decode error] [no room for its name]{ }"));
	pt_made_close(&made);
	close_process(process);
}

int main(void)
{
	/* Nothing is left behind: no cache of functions. */
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_a_real_program_have_its_names),
		cmocka_unit_test(what_is_not_selected_is_left_out),
		cmocka_unit_test(code_that_is_mapped_later_is_known_by_its_record),
		cmocka_unit_test(a_library_that_is_loaded_again_and_again_takes_no_more_room),
		cmocka_unit_test(code_in_no_file_is_read_from_the_process_and_named_by_its_address),
		cmocka_unit_test(the_kernels_code_in_the_process_is_one_function),
		cmocka_unit_test(unknown_code_is_an_error_that_is_shown),
		cmocka_unit_test(more_texts_than_there_is_room_for_share_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
