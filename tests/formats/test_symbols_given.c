/* SPDX-License-Identifier: MIT */
/*
 * test_symbols_given.c: names that came with a recording, and how names of C++ and Rust are made readable.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/kymo/kymo_layout.h"
#include "formats/perf/symbols_given.h"
#include "model/intake.h"
#include "process/symbol_table.h"

/* ---- streams of names ---- */

struct stream {
	uint8_t bytes[8192];
	size_t used;
};

struct symbol {
	const char *module, *build_id, *name, *file;
	uint64_t address;
	int32_t pid;
	uint32_t line;
	bool inlined;
};

static void put_text(struct stream *stream, const char *text)
{
	const size_t bytes = text ? strlen(text) : 0;
	if (bytes)
		memcpy(stream->bytes + stream->used, text, bytes);
	stream->used += bytes;
}

static uint16_t length_of(const char *text)
{
	return (uint16_t)(text ? strlen(text) : 0);
}

static void put(struct stream *stream, const struct symbol *symbol)
{
	struct ky_kymo_symbol head = {
		.flags = symbol->inlined ? KY_KYMO_SYMBOL_INLINED : 0,
		.address = symbol->address,
		.pid = symbol->pid,
		.line = symbol->line,
		.module_bytes = length_of(symbol->module),
		.build_id_bytes = length_of(symbol->build_id),
		.name_bytes = length_of(symbol->name),
		.file_bytes = length_of(symbol->file),
	};
	head.bytes =
		(uint32_t)KY_KYMO_PADDED(sizeof(head) + head.module_bytes + head.build_id_bytes +
					 head.name_bytes + head.file_bytes);
	const size_t at = stream->used;
	memcpy(stream->bytes + at, &head, sizeof(head));
	stream->used += sizeof(head);
	put_text(stream, symbol->module);
	put_text(stream, symbol->build_id);
	put_text(stream, symbol->name);
	put_text(stream, symbol->file);
	stream->used = at + head.bytes;
}

struct opened {
	struct ky_trace *trace;
	struct ky_symbols_given *given;
};

static struct opened open_stream(const struct stream *stream)
{
	struct opened opened;
	struct ky_input *input;
	assert_int_equal(ky_trace_open(&opened.trace), 0);
	assert_int_equal(ky_input_open_memory(&input, stream->bytes, stream->used, "names"), 0);
	assert_int_equal(ky_symbols_given_open(&opened.given, opened.trace, input), 0);
	ky_input_close(&input);
	return opened;
}

static void close_stream(struct opened *opened)
{
	ky_symbols_given_close(&opened->given);
	ky_trace_close(&opened->trace);
}

static const struct ky_given_name *in_file(const struct opened *opened, const char *path,
					   const char *id, uint64_t offset, uint32_t *count)
{
	return ky_symbols_given_in_file(opened->given, ky_string_z(opened->trace, path),
					id ? ky_string_z(opened->trace, id) : 0, offset, count);
}

static void assert_text(const struct opened *opened, uint32_t string, const char *wanted)
{
	assert_string_equal(ky_text_of(opened->trace, string), wanted);
}

/* ---- the tests ---- */

static void a_place_has_the_functions_inlined_there_first(void **state)
{
	(void)state;
	struct stream stream = {.used = 0};
	put(&stream, &(struct symbol){"/bin/a", "0a0b", "inner", "a.h", 16, 0, 7, true});
	put(&stream, &(struct symbol){"/bin/a", "0a0b", "outer", "a.c", 16, 0, 20, false});
	put(&stream, &(struct symbol){"/bin/a", "0a0b", "other", NULL, 24, 0, 0, false});
	struct opened opened = open_stream(&stream);
	uint32_t count;
	const struct ky_given_name *names = in_file(&opened, "/bin/a", "0a0b", 16, &count);
	assert_non_null(names);
	assert_int_equal(count, 2);
	assert_text(&opened, names[0].name, "inner");
	assert_text(&opened, names[0].file, "a.h");
	assert_int_equal(names[0].line, 7);
	assert_text(&opened, names[1].name, "outer");
	assert_int_equal(names[1].line, 20);
	names = in_file(&opened, "/bin/a", "0a0b", 24, &count);
	assert_int_equal(count, 1);
	assert_text(&opened, names[0].name, "other");
	assert_int_equal(names[0].file, 0);
	assert_null(in_file(&opened, "/bin/a", "0a0b", 17, &count));
	close_stream(&opened);
}

static void files_are_told_apart_by_path_and_build_id(void **state)
{
	(void)state;
	struct stream stream = {.used = 0};
	put(&stream, &(struct symbol){"/bin/a", "01", "old", NULL, 16, 0, 0, false});
	put(&stream, &(struct symbol){"/bin/a", "02", "new", NULL, 16, 0, 0, false});
	put(&stream, &(struct symbol){"/bin/a", NULL, "plain", NULL, 16, 0, 0, false});
	struct opened opened = open_stream(&stream);
	uint32_t count;
	assert_text(&opened, in_file(&opened, "/bin/a", "01", 16, &count)->name, "old");
	assert_text(&opened, in_file(&opened, "/bin/a", "02", 16, &count)->name, "new");
	assert_text(&opened, in_file(&opened, "/bin/a", NULL, 16, &count)->name, "plain");
	assert_null(in_file(&opened, "/bin/b", "01", 16, &count));
	close_stream(&opened);
}

static void kernel_and_processes_have_addresses_of_their_own(void **state)
{
	(void)state;
	struct stream stream = {.used = 0};
	put(&stream, &(struct symbol){"[kernel]", NULL, "vfs_read", NULL, 4096, 0, 0, false});
	put(&stream, &(struct symbol){NULL, NULL, "made", NULL, 4096, 12, 0, false});
	struct opened opened = open_stream(&stream);
	uint32_t count;
	assert_text(&opened, ky_symbols_given_in_kernel(opened.given, 4096, &count)->name,
		    "vfs_read");
	assert_text(&opened, ky_symbols_given_in_process(opened.given, 12, 4096, &count)->name,
		    "made");
	assert_null(ky_symbols_given_in_process(opened.given, 13, 4096, &count));
	assert_null(ky_symbols_given_in_process(opened.given, 0, 4096, &count));
	close_stream(&opened);
}

static uint32_t problems_of(const struct opened *opened, const char *name)
{
	for (uint32_t i = 0; i < opened->trace->problems.rows.count; i++)
		if (strcmp(ky_text_of(opened->trace, opened->trace->problems.name[i]), name) == 0)
			return (uint32_t)opened->trace->problems.number[i];
	return 0;
}

static void damage_ends_the_names_and_is_counted(void **state)
{
	(void)state;
	struct stream stream = {.used = 0};
	uint32_t count;
	put(&stream, &(struct symbol){"/bin/a", "01", "kept", NULL, 16, 0, 0, false});
	const size_t second = stream.used;
	put(&stream, &(struct symbol){"/bin/a", "01", "gone", NULL, 24, 0, 0, false});
	struct stream cut = stream;
	cut.used -= 8;
	struct opened opened = open_stream(&cut);
	assert_non_null(in_file(&opened, "/bin/a", "01", 16, &count));
	assert_null(in_file(&opened, "/bin/a", "01", 24, &count));
	assert_int_equal(problems_of(&opened, "symbols_damaged"), 1);
	close_stream(&opened);
	stream.bytes[second] ^= 8;
	opened = open_stream(&stream);
	assert_non_null(in_file(&opened, "/bin/a", "01", 16, &count));
	assert_int_equal(problems_of(&opened, "symbols_damaged"), 1);
	close_stream(&opened);
}

/* ---- demangling ---- */

static void assert_readable(const char *name, const char *wanted)
{
	char *readable = ky_demangle(name);
	if (!wanted)
		assert_null(readable);
	else
		assert_string_equal(readable, wanted);
	free(readable);
}

static void names_are_demangled(void **state)
{
	(void)state;
	assert_readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
			"core::fmt::Write::write_fmt");
	assert_readable("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	assert_readable("_ZNSt6vectorIiSaIiEE9push_backERKi",
			"std::vector<int, std::allocator<int> >::push_back(int const&)");
	assert_readable("_Z3addii.constprop.0", "add(int, int) [clone .constprop.0]");
	assert_readable("_Z3addii@plt", "add(int, int)@plt");
	assert_readable("main", NULL);
	assert_readable("_start", NULL);
	assert_readable("", NULL);
	assert_readable("_", NULL);
	assert_readable("_Zoo_keeper", NULL);
}

/* Each argument's type is made of two of the one before: the last would have 2^36 parts. */
static void a_name_without_bounds_is_left_as_it_is(void **state)
{
	(void)state;
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1f1PIiiE";
	for (int i = 0; i < 36; i++) {
		char part[32];
		snprintf(part, sizeof(part), "S_IS%c_S%c_E", digits[i], digits[i]);
		strcat(name, part);
	}
	assert_readable(name, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_has_the_functions_inlined_there_first),
		cmocka_unit_test(files_are_told_apart_by_path_and_build_id),
		cmocka_unit_test(kernel_and_processes_have_addresses_of_their_own),
		cmocka_unit_test(damage_ends_the_names_and_is_counted),
		cmocka_unit_test(names_are_demangled),
		cmocka_unit_test(a_name_without_bounds_is_left_as_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
