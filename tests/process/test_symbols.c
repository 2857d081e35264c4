/* SPDX-License-Identifier: MIT */
/* test_symbols.c: tables of symbols, ELF files whole, cut short and damaged, perf maps and jitdumps. */
#include "process/jit_files.h"
#include "process/program_file.h"
#include "process/symbol_table.h"
#include "process/symbolizer.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- tables ---- */

struct table {
	struct ky_symbol_table symbols;
	struct ky_strings strings;
};

static void open_table(struct table *table)
{
	*table = (struct table){0};
	assert_int_equal(ky_strings_init(&table->strings), 0);
}

static void close_table(struct table *table)
{
	ky_symbol_table_free(&table->symbols);
	ky_strings_free(&table->strings);
}

static void add(struct table *table, uint64_t start, uint64_t bytes, uint32_t rank,
		const char *name)
{
	assert_true(ky_symbol_table_add(&table->symbols, start, bytes, rank, name, strlen(name)));
}

static void assert_at(struct table *table, uint64_t address, const char *name)
{
	const uint32_t found = ky_symbol_table_find(&table->symbols, &table->strings, address);
	if (name)
		assert_string_equal(ky_strings_text(&table->strings, found), name);
	else
		assert_int_equal(found, 0);
}

static void a_function_is_found_by_its_range(void **state)
{
	(void)state;
	struct table table;
	open_table(&table);
	add(&table, 200, 10, 0, "second");
	add(&table, 100, 50, 0, "first");
	add(&table, 300, 0, 0, "to_the_next");
	add(&table, 400, 0, 0, "last");
	ky_symbol_table_sort(&table.symbols);
	assert_at(&table, 99, NULL);
	assert_at(&table, 100, "first");
	assert_at(&table, 149, "first");
	assert_at(&table, 150, NULL);
	assert_at(&table, 205, "second");
	assert_at(&table, 399, "to_the_next");
	assert_at(&table, 400, "last");
	assert_at(&table, 401, NULL); /* without a size, and nothing behind it */
	close_table(&table);
}

static void the_best_of_several_names_is_shown(void **state)
{
	(void)state;
	struct table table;
	open_table(&table);
	add(&table, 100, 50, ky_symbol_table_rank(STB_LOCAL, "local"), "local");
	add(&table, 100, 50, ky_symbol_table_rank(STB_GLOBAL, "__plain"), "__plain");
	add(&table, 100, 50, ky_symbol_table_rank(STB_GLOBAL, "plain"), "plain");
	add(&table, 100, 0, UINT32_MAX, "label");
	add(&table, 120, 0, UINT32_MAX, "label_inside");
	ky_symbol_table_sort(&table.symbols);
	assert_at(&table, 110, "plain");
	assert_at(&table, 130, "plain");
	close_table(&table);
}

static void names_are_readable_and_sizes_cannot_overflow(void **state)
{
	(void)state;
	struct table table;
	open_table(&table);
	add(&table, 100, UINT64_MAX, 0, "_ZN3foo3barEv");
	ky_symbol_table_sort(&table.symbols);
	assert_at(&table, UINT64_MAX - 1, "foo::bar()");
	close_table(&table);
}

/* ---- files ---- */

static int stop(void *context, const struct ky_program_function *function)
{
	uint32_t *const count = context;
	assert_true(function->linked[0] != '\0');
	return ++*count == 100000;
}

static void ignore(void *context, const struct ky_symbolizer_function *function)
{
	(void)context;
	assert_non_null(function->name);
}

/* Reads all that can be read of it. */
static void read_all(int fd)
{
	struct ky_program_file *file;
	struct ky_symbolizer *symbolizer;
	struct ky_strings strings;
	uint32_t count = 0;
	uint64_t offset;
	char path[64];
	if (ky_program_file_open(&file, fd) == 0) {
		(void)ky_program_file_functions(file, stop, &count);
		(void)ky_program_file_offset(file, 0x1000, &offset);
		(void)ky_program_file_loader(file, path, sizeof(path));
		ky_program_file_close(&file);
	}
	assert_int_equal(ky_strings_init(&strings), 0);
	if (ky_symbolizer_open(&symbolizer, &strings, "/made", fcntl(fd, F_DUPFD_CLOEXEC, 0),
			       UINT64_MAX) == 0) {
		for (uint64_t at = 0; at < 0x4000; at += 0x100)
			ky_symbolizer_at(symbolizer, at, ignore, NULL);
		ky_symbolizer_close(&symbolizer);
	}
	ky_strings_free(&strings);
}

static int file_of(const void *data, size_t bytes)
{
	const int fd = memfd_create("made", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
	return fd;
}

__attribute__((noinline)) static char *own_program(size_t *bytes)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	const off_t size = lseek(fd, 0, SEEK_END);
	char *const data = malloc((size_t)size);
	assert_non_null(data);
	assert_int_equal(pread(fd, data, (size_t)size, 0), size);
	close(fd);
	*bytes = (size_t)size;
	return data;
}

struct wanted {
	const char *name;
	uint64_t offset;
};

static int find(void *context, const struct ky_program_function *function)
{
	struct wanted *const wanted = context;
	if (strcmp(function->linked, wanted->name) != 0)
		return 0;
	wanted->offset = function->offset;
	return 1;
}

static void match(void *context, const struct ky_symbolizer_function *function)
{
	bool *const found = context;
	*found |= strcmp(function->name, "own_program") == 0;
}

static void functions_of_a_program_are_found(void **state)
{
	(void)state;
	struct ky_program_file *file;
	struct ky_symbolizer *symbolizer;
	struct ky_strings strings;
	struct wanted wanted = {.name = "own_program"};
	bool found = false;
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(ky_program_file_open(&file, fd), 0);
	assert_int_equal(ky_program_file_functions(file, find, &wanted), 1);
	ky_program_file_close(&file);
	assert_true(wanted.offset > 0);
	assert_int_equal(ky_strings_init(&strings), 0);
	assert_int_equal(ky_symbolizer_open(&symbolizer, &strings, "/self", fd, UINT64_MAX), 0);
	ky_symbolizer_at(symbolizer, wanted.offset, match, &found);
	assert_true(found);
	ky_symbolizer_close(&symbolizer);
	ky_strings_free(&strings);
}

static void a_file_that_is_no_program_is_refused(void **state)
{
	(void)state;
	static const char *const others[] = {"", "x", "\177ELF", "\177ELF\2\1\1",
					     "not a program at all"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct ky_program_file *file;
		const int fd = file_of(others[i], strlen(others[i]));
		assert_int_equal(ky_program_file_open(&file, fd), -ENOEXEC);
		assert_null(file);
		read_all(fd);
		close(fd);
	}
}

static void a_program_that_is_cut_short_does_no_harm(void **state)
{
	(void)state;
	size_t bytes;
	char *const data = own_program(&bytes);
	for (size_t cut = 1; cut < bytes; cut = cut * 3 + 7) {
		const int fd = file_of(data, cut);
		read_all(fd);
		close(fd);
	}
	free(data);
}

static void a_damaged_program_does_no_harm(void **state)
{
	(void)state;
	size_t bytes;
	char *const data = own_program(&bytes);
	srand(1);
	for (int round = 0; round < 40; round++) {
		char *const damaged = malloc(bytes);
		assert_non_null(damaged);
		memcpy(damaged, data, bytes);
		/* Heads of the file and of its segments and sections. */
		for (int i = 0; i < 20; i++)
			damaged[(i % 2 ? bytes - 4096 : 0) + (size_t)rand() % 4096] = (char)rand();
		const int fd = file_of(damaged, bytes);
		read_all(fd);
		close(fd);
		free(damaged);
	}
	free(data);
}

static void a_build_id_is_written_in_hexadecimal(void **state)
{
	(void)state;
	char text[2 * KY_PROGRAM_FILE_ID_MAX + 1];
	ky_program_file_id_text((const uint8_t *)"\x01\xab\xff", 3, text);
	assert_string_equal(text, "01abff");
	ky_program_file_id_text(NULL, 0, text);
	assert_string_equal(text, "");
}

/* ---- code that programs make ---- */

struct lines {
	uint32_t good, bad;
	uint64_t last_at;
};

static void on_line(void *context, uint64_t at, const struct ky_perf_map_line *line)
{
	struct lines *const lines = context;
	lines->good += line != NULL;
	lines->bad += line == NULL;
	lines->last_at = at;
	if (line)
		assert_int_equal(line->name_bytes, strlen("a name"));
}

static void a_perf_map_is_read_line_by_line(void **state)
{
	(void)state;
	static const char text[] =
		"10 20 a name\n\nnonsense\n0x30 5 a name\r\nffffffffffffffffff 1 x\n40 8 a name";
	struct lines lines = {0};
	ky_perf_map_lines(text, strlen(text), on_line, &lines);
	assert_int_equal(lines.good, 3);
	assert_int_equal(lines.bad, 2);
	assert_int_equal(lines.last_at, strlen(text) - strlen("40 8 a name"));
	ky_perf_map_lines("", 0, on_line, &lines);
	assert_int_equal(lines.good, 3);
}

struct dump {
	uint8_t bytes[256];
	size_t size, at;
	size_t cut; /* the file has this size once the head of its record was read; 0: it stays */
	uint32_t codes, damages;
};

static void put(struct dump *dump, uint64_t value, size_t bytes)
{
	memcpy(dump->bytes + dump->size, &value, bytes);
	dump->size += bytes;
}

static const uint8_t *need(void *context, size_t bytes, size_t *have)
{
	struct dump *const dump = context;
	const size_t left = dump->size - dump->at;
	*have = left < bytes ? left : bytes;
	if (dump->cut && dump->at == KY_JITDUMP_HEAD_BYTES)
		dump->size = dump->cut;
	return dump->bytes + dump->at;
}

static bool pass_over(void *context, uint64_t bytes)
{
	struct dump *const dump = context;
	const bool enough = bytes <= dump->size - dump->at;
	dump->at = enough ? dump->at + bytes : dump->size;
	return enough;
}

static void damaged(void *context, uint64_t at, const char *what)
{
	struct dump *const dump = context;
	assert_true(at <= dump->size && what[0]);
	dump->damages++;
}

static void on_code(void *context, const struct ky_jit_code *code)
{
	struct dump *const dump = context;
	assert_int_equal(code->address, 0x5000);
	assert_true(code->name_bytes <= strlen("made"));
	dump->codes++;
}

/* Write a dump of one function. */
static void make_dump(struct dump *dump)
{
	*dump = (struct dump){0};
	put(dump, KY_JITDUMP_MAGIC, 4);
	put(dump, 1, 4);
	put(dump, KY_JITDUMP_HEAD_BYTES, 4);
	put(dump, EM_X86_64, 4);
	put(dump, 0, 4);
	put(dump, 77, 4); /* pid */
	dump->size = KY_JITDUMP_HEAD_BYTES;
	put(dump, 0, 4); /* a function that was made */
	put(dump, 16 + 40 + 5, 4);
	put(dump, 1, 8);
	put(dump, 77, 4);
	put(dump, 78, 4);
	put(dump, 0x5000, 8);
	put(dump, 0x5000, 8);
	put(dump, 16, 8);
	put(dump, 0, 8);
	memcpy(dump->bytes + dump->size, "made", 5);
	dump->size += 5;
}

static void a_jitdump_that_is_cut_short_is_read_up_to_there(void **state)
{
	(void)state;
	struct dump whole;
	const struct ky_jitdump_input input = {need, pass_over, damaged, &whole};
	struct ky_jitdump_head head;
	make_dump(&whole);
	const size_t size = whole.size;
	for (size_t cut = 0; cut <= size; cut++) {
		whole.size = cut;
		whole.at = whole.codes = whole.damages = 0;
		const int error = ky_jitdump_read(&input, &head, on_code, &whole);
		assert_int_equal(error, cut < KY_JITDUMP_HEAD_BYTES ? -EBADMSG : 0);
		assert_int_equal(whole.damages > 0, cut > KY_JITDUMP_HEAD_BYTES && cut < size);
		assert_int_equal(whole.codes, cut > KY_JITDUMP_HEAD_BYTES + 16 + 40);
	}
	assert_int_equal(head.pid, 77);
}

static void a_jitdump_may_be_cut_while_it_is_read(void **state)
{
	(void)state;
	struct dump dump;
	const struct ky_jitdump_input input = {need, pass_over, damaged, &dump};
	struct ky_jitdump_head head;
	make_dump(&dump);
	const size_t size = dump.size;
	for (size_t cut = KY_JITDUMP_HEAD_BYTES; cut < size; cut++) {
		make_dump(&dump);
		dump.cut = cut;
		assert_int_equal(ky_jitdump_read(&input, &head, on_code, &dump), 0);
		assert_true(dump.damages > 0);
		assert_int_equal(dump.codes, cut > KY_JITDUMP_HEAD_BYTES + 16 + 40);
	}
}

static void a_jitdump_is_known_by_its_path(void **state)
{
	(void)state;
	assert_true(ky_jitdump_is_path("/tmp/jit-12.dump"));
	assert_true(ky_jitdump_is_path("jit-1.dump"));
	assert_false(ky_jitdump_is_path("/tmp/jit-.dump"));
	assert_false(ky_jitdump_is_path("/tmp/jit-12.dump (deleted)"));
	assert_false(ky_jitdump_is_path("/jit-12.dump/x"));
	assert_false(ky_jitdump_is_path(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_found_by_its_range),
		cmocka_unit_test(the_best_of_several_names_is_shown),
		cmocka_unit_test(names_are_readable_and_sizes_cannot_overflow),
		cmocka_unit_test(functions_of_a_program_are_found),
		cmocka_unit_test(a_file_that_is_no_program_is_refused),
		cmocka_unit_test(a_program_that_is_cut_short_does_no_harm),
		cmocka_unit_test(a_damaged_program_does_no_harm),
		cmocka_unit_test(a_build_id_is_written_in_hexadecimal),
		cmocka_unit_test(a_perf_map_is_read_line_by_line),
		cmocka_unit_test(a_jitdump_that_is_cut_short_is_read_up_to_there),
		cmocka_unit_test(a_jitdump_may_be_cut_while_it_is_read),
		cmocka_unit_test(a_jitdump_is_known_by_its_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
