/* SPDX-License-Identifier: MIT */
/*
 * test_sample_spaces.c: what is known of sampled processes by their records; the addresses that are met in them; and what is at a place of
 * a file.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <gelf.h>

#include "capture/sample_names.h"
#include "capture/sample_processes.h"
#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/symbolizer.h"

/* ---- records ---- */

struct known {
	struct ky_sample_modules modules;
	struct ky_sample_processes spaces;
	struct ky_perf_out out;
};

static void begin(struct known *known)
{
	*known = (struct known){.out = {0}};
	known->spaces.modules = &known->modules;
}

static void end(struct known *known)
{
	ky_sample_processes_free(&known->spaces);
	ky_sample_modules_free(&known->modules);
	ky_perf_out_free(&known->out);
}

/* What was written is taken, and out is empty again. */
static void take(struct known *known, struct ky_sample_processes *spaces, uint16_t misc)
{
	for (size_t at = 0; at < known->out.used;) {
		struct perf_event_header *record = (void *)(known->out.bytes + at);
		record->misc |= misc;
		ky_sample_processes_take(spaces, record);
		at += record->size;
	}
	known->out.used = 0;
}

static void map(struct known *known, uint32_t pid, uint64_t start, uint64_t end_, uint64_t offset,
		const char *path)
{
	const struct ky_proc_mapping mapping = {
		.start = start, .end = end_, .offset = offset, .inode = 7, .path = path};
	ky_perf_out_mapping(&known->out, (struct ky_perf_who){pid, pid, 1}, &mapping);
	take(known, &known->spaces, 0);
}

static void name(struct known *known, uint32_t pid, uint32_t tid, const char *comm, uint16_t misc)
{
	ky_perf_out_comm(&known->out, (struct ky_perf_who){pid, tid, 1}, comm);
	take(known, &known->spaces, misc);
}

/* The kernel's FORK and EXIT are alike. */
static void task(struct known *known, uint32_t type, uint32_t pid, uint32_t parent)
{
	struct {
		struct perf_event_header head;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
		struct ky_perf_trailer trailer;
	} record = {.head = {.type = type, .size = sizeof(record)},
		    .pid = pid,
		    .ppid = parent,
		    .tid = pid,
		    .ptid = parent};
	ky_sample_processes_take(&known->spaces, &record.head);
}

static void assert_at(const struct ky_sample_processes *spaces, uint32_t pid, uint64_t address,
		      const char *path, uint64_t offset)
{
	const struct ky_address_range *range = ky_sample_processes_find(spaces, pid, address);
	if (!path) {
		assert_null(range);
		return;
	}
	assert_non_null(range);
	assert_string_equal(spaces->modules->items[range->module].path, path);
	assert_int_equal(address - range->start + range->offset, offset);
}

/* ---- the tests ---- */

static void a_later_mapping_takes_the_place_of_an_earlier(void **state)
{
	(void)state;
	struct known known;
	begin(&known);
	map(&known, 5, 0x1000, 0x9000, 0, "/a");
	map(&known, 5, 0x3000, 0x5000, 0x100, "/b");
	assert_at(&known.spaces, 5, 0x1000, "/a", 0);
	assert_at(&known.spaces, 5, 0x2fff, "/a", 0x1fff);
	assert_at(&known.spaces, 5, 0x3000, "/b", 0x100);
	assert_at(&known.spaces, 5, 0x5000, "/a", 0x4000);
	assert_at(&known.spaces, 5, 0x8fff, "/a", 0x7fff);
	assert_at(&known.spaces, 5, 0x9000, NULL, 0);
	assert_at(&known.spaces, 6, 0x1000, NULL, 0);
	map(&known, 5, 0x0, 0x10000, 0, "/c");
	assert_at(&known.spaces, 5, 0x4000, "/c", 0x4000);
	end(&known);
}

static void a_child_has_what_its_parent_had_until_its_exec(void **state)
{
	(void)state;
	struct known known;
	begin(&known);
	name(&known, 5, 5, "parent", 0);
	map(&known, 5, 0x1000, 0x2000, 0, "/a");
	task(&known, PERF_RECORD_FORK, 6, 5);
	assert_true(ky_sample_processes_has(&known.spaces, 6));
	assert_at(&known.spaces, 6, 0x1000, "/a", 0);
	name(&known, 6, 6, "new", PERF_RECORD_MISC_COMM_EXEC);
	assert_at(&known.spaces, 6, 0x1000, NULL, 0);
	assert_at(&known.spaces, 5, 0x1000, "/a", 0);
	end(&known);
}

static void a_process_that_ended_is_forgotten_later(void **state)
{
	(void)state;
	struct known known;
	begin(&known);
	name(&known, 5, 5, "one", 0);
	map(&known, 5, 0x1000, 0x2000, 0, "/a");
	task(&known, PERF_RECORD_EXIT, 5, 1);
	assert_false(ky_sample_processes_has(&known.spaces, 5));
	ky_sample_processes_round(&known.spaces);
	assert_at(&known.spaces, 5, 0x1000, "/a", 0);
	for (int i = 0; i < 4; i++)
		ky_sample_processes_round(&known.spaces);
	assert_at(&known.spaces, 5, 0x1000, NULL, 0);
	assert_int_equal(known.spaces.processes_count, 0);
	assert_int_equal(known.spaces.threads_count, 0);
	/* The number is used again. */
	name(&known, 5, 5, "two", 0);
	map(&known, 5, 0x1000, 0x2000, 0, "/b");
	assert_at(&known.spaces, 5, 0x1000, "/b", 0);
	end(&known);
}

static void memory_stays_small_over_many_short_lives(void **state)
{
	(void)state;
	struct known known;
	begin(&known);
	name(&known, 1, 1, "init", 0);
	map(&known, 1, 0x1000, 0x2000, 0, "/a");
	for (uint32_t pid = 2; pid < 20000; pid++) {
		task(&known, PERF_RECORD_FORK, pid, 1);
		task(&known, PERF_RECORD_EXIT, pid, 1);
		ky_sample_processes_round(&known.spaces);
		assert_true(known.spaces.processes_count < 8);
	}
	assert_int_equal(known.modules.count, 1);
	end(&known);
}

static void all_that_is_known_can_be_told_again(void **state)
{
	(void)state;
	struct known known;
	begin(&known);
	name(&known, 5, 5, "main", 0);
	name(&known, 5, 9, "worker", 0);
	map(&known, 5, 0x1000, 0x9000, 0, "/a");
	map(&known, 5, 0x3000, 0x5000, 0x100, "/b");
	struct ky_sample_processes again = {.modules = &known.modules};
	ky_sample_processes_write(&known.spaces, &known.out);
	take(&known, &again, 0);
	assert_at(&again, 5, 0x2000, "/a", 0x1000);
	assert_at(&again, 5, 0x3000, "/b", 0x100);
	assert_at(&again, 5, 0x5000, "/a", 0x4000);
	assert_true(ky_sample_processes_has_thread(&again, 9));
	assert_int_equal(again.threads_count, 2);
	ky_sample_processes_free(&again);
	end(&known);
}

static void addresses_are_kept_once(void **state)
{
	(void)state;
	struct ky_sample_addresses addresses = {0};
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 20000; i++)
			ky_sample_addresses_add(&addresses,
						&(struct ky_sample_address){.address = i * 16,
									    .module = i % 3,
									    .seen = round + 1,
									    .wanted = i % 2},
						0);
	assert_int_equal(addresses.count, 20000);
	ky_sample_addresses_want(&addresses, 4);
	assert_int_equal(ky_sample_addresses_sort(&addresses), 10000);
	ky_sample_addresses_free(&addresses);
}

static void old_addresses_make_room_for_new_ones(void **state)
{
	(void)state;
	struct ky_sample_addresses addresses = {0};
	for (uint64_t i = 0; i < 3000000; i++)
		ky_sample_addresses_add(&addresses,
					&(struct ky_sample_address){.address = i, .seen = i + 1},
					i > 1000 ? i - 1000 : 0);
	assert_int_equal(addresses.left_out, 0);
	assert_true(addresses.count < 1u << 20);
	ky_sample_addresses_free(&addresses);
}

/* ---- files ---- */

struct told {
	char text[1024];
	bool lines;
};

static void tell(void *context, const struct ky_symbolizer_function *function)
{
	struct told *told = context;
	const size_t used = strlen(told->text);
	snprintf(told->text + used, sizeof(told->text) - used, "%s%s", function->name,
		 function->inlined ? "<" : "");
	told->lines |= function->file && function->line;
}

/* Return the offset in the file of an address that it is linked for. */
static uint64_t offset_at(Elf *elf, uint64_t address)
{
	size_t count = 0;
	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr head;
		if (gelf_getphdr(elf, (int)i, &head) && head.p_type == PT_LOAD &&
		    address - head.p_vaddr < head.p_filesz)
			return address - head.p_vaddr + head.p_offset;
	}
	return 0;
}

/* Return the offset of a function in a file. */
static uint64_t offset_of(const char *path, const char *wanted)
{
	uint64_t found = 0;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	for (Elf_Scn *section = elf_nextscn(elf, NULL); section;
	     section = elf_nextscn(elf, section)) {
		GElf_Shdr head;
		GElf_Sym symbol;
		gelf_getshdr(section, &head);
		Elf_Data *data = head.sh_type == SHT_SYMTAB ? elf_getdata(section, NULL) : NULL;
		for (int i = 0; data && gelf_getsym(data, i, &symbol); i++)
			if (strcmp(elf_strptr(elf, head.sh_link, symbol.st_name), wanted) == 0)
				found = offset_at(elf, symbol.st_value);
	}
	elf_end(elf);
	close(fd);
	assert_true(found);
	return found;
}

static struct told told_at(const char *path, uint64_t offset, uint64_t deadline, bool *late)
{
	struct ky_symbolizer *elf;
	struct ky_strings strings;
	struct told told = {.text = ""};
	assert_int_equal(ky_strings_init(&strings), 0);
	assert_int_equal(ky_symbolizer_open(&elf, &strings, path, open(path, O_RDONLY | O_CLOEXEC),
					    deadline),
			 0);
	ky_symbolizer_at(elf, offset, tell, &told);
	*late = ky_symbolizer_late(elf);
	ky_symbolizer_close(&elf);
	ky_strings_free(&strings);
	return told;
}

static void a_place_in_a_file_has_functions_and_lines(void **state)
{
	(void)state;
	const char *path = getenv("KYMO_TARGET_SAMPLE");
	bool late;
	struct told told;
	bool inlined = false;
	/* Somewhere in the function is what is inlined there. */
	for (uint64_t i = 0; i < 40 && !inlined; i++) {
		told = told_at(path, offset_of(path, "target_inner") + i, UINT64_MAX, &late);
		inlined = strcmp(told.text, "target_inlined<target_inner") == 0;
	}
	assert_true(inlined);
	assert_true(told.lines);
	assert_false(late);
}

static void without_time_there_are_names_alone(void **state)
{
	(void)state;
	const char *path = getenv("KYMO_TARGET_SAMPLE");
	bool late;
	const struct told told = told_at(path, offset_of(path, "target_inner") + 2, 0, &late);
	assert_string_equal(told.text, "target_inner");
	assert_false(told.lines);
	assert_true(late);
}

static void what_is_no_program_has_no_names(void **state)
{
	(void)state;
	struct ky_symbolizer *elf;
	struct ky_strings strings;
	assert_int_equal(ky_strings_init(&strings), 0);
	assert_true(ky_symbolizer_open(&elf, &strings, "/etc/passwd",
				       open("/etc/passwd", O_RDONLY | O_CLOEXEC), UINT64_MAX) < 0);
	assert_null(elf);
	ky_strings_free(&strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_mapping_takes_the_place_of_an_earlier),
		cmocka_unit_test(a_child_has_what_its_parent_had_until_its_exec),
		cmocka_unit_test(a_process_that_ended_is_forgotten_later),
		cmocka_unit_test(memory_stays_small_over_many_short_lives),
		cmocka_unit_test(all_that_is_known_can_be_told_again),
		cmocka_unit_test(addresses_are_kept_once),
		cmocka_unit_test(old_addresses_make_room_for_new_ones),
		cmocka_unit_test(a_place_in_a_file_has_functions_and_lines),
		cmocka_unit_test(without_time_there_are_names_alone),
		cmocka_unit_test(what_is_no_program_has_no_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
