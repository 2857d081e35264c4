/* SPDX-License-Identifier: MIT */
/*
 * symbol_list.c: see symbol_list.h. The names of a list are in one block of text, by their offsets in it, because it moves
 * while it grows; entries get their pointers at the end.
 *
 * A name is near another when it differs in a few letters (the edit distance), or when it contains the wanted one in any
 * case; then the distance grows with its length.
 */
#include "capture/symbol_list.h"

#include "base/array.h"
#include "process/program_file.h"
#include "process/symbol_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_MAX 8000000u
#define TEXT_BYTES_MAX (UINT64_C(1) << 28) /* readable names can be much longer than the file */

struct raw_entry {
	size_t name, linked, module; /* places in text */
	uint64_t offset, bytes;
};

struct ky_symbol_list {
	char *text;
	size_t text_used, text_room;
	struct raw_entry *raw; /* while it is filled */
	struct ky_symbol_entry *entries;
	uint32_t count, room;
	size_t module; /* of the file that is being read */
};

static int add_text(struct ky_symbol_list *list, const char *text, size_t *place)
{
	const size_t bytes = strlen(text) + 1;
	if (!KY_ARRAY_GROW(list->text, list->text_room, list->text_used + bytes))
		return -ENOMEM;
	memcpy(list->text + list->text_used, text, bytes);
	*place = list->text_used;
	list->text_used += bytes;
	return 0;
}

static int add_function(void *context, const struct ky_program_function *function)
{
	struct ky_symbol_list *list = context;
	if (list->count == SYMBOLS_MAX || list->text_used > TEXT_BYTES_MAX)
		return 0;
	struct raw_entry entry = {
		.module = list->module, .offset = function->offset, .bytes = function->bytes};
	int error = add_text(list, function->linked, &entry.linked);
	char *readable = ky_demangle(function->linked);
	entry.name = entry.linked;
	if (!error && readable)
		error = add_text(list, readable, &entry.name);
	free(readable);
	if (!error && !KY_ARRAY_ADD(list->raw, list->count, list->room, entry))
		error = -ENOMEM;
	return error;
}

static int by_name(const void *a, const void *b)
{
	const struct ky_symbol_entry *one = a, *other = b;
	const int names = strcmp(one->name, other->name);
	if (names)
		return names;
	const int modules = strcmp(one->module, other->module);
	return modules ? modules : KY_COMPARE(one->offset, other->offset);
}

/* Give the entries their names, in order, each function once. */
static int finish(struct ky_symbol_list *list)
{
	list->entries = calloc(list->count ? list->count : 1, sizeof(*list->entries));
	if (!list->entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct raw_entry *raw = &list->raw[i];
		list->entries[i] = (struct ky_symbol_entry){.name = list->text + raw->name,
							    .linked = list->text + raw->linked,
							    .module = list->text + raw->module,
							    .offset = raw->offset,
							    .bytes = raw->bytes};
	}
	KY_ARRAY_FREE(list->raw, list->room);
	qsort(list->entries, list->count, sizeof(*list->entries), by_name);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < list->count; i++)
		if (!kept || by_name(&list->entries[kept - 1], &list->entries[i]) != 0)
			list->entries[kept++] = list->entries[i];
	list->count = kept;
	return 0;
}

/* A file that is not ELF has no functions, which is not a failure. */
static int add_file(struct ky_symbol_list *list, int fd, const char *path)
{
	struct ky_program_file *file;
	int error = ky_program_file_open(&file, fd);
	if (error)
		return error == -ENOMEM ? error : 0;
	error = add_text(list, path, &list->module);
	if (!error)
		error = ky_program_file_functions(file, add_function, list);
	ky_program_file_close(&file);
	return error;
}

static int add_process(struct ky_symbol_list *list, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	struct ky_program_map map;
	int error = ky_program_map_read(&map, pid);
	if (error)
		return ky_fail(
			message, error,
			"symbols of process %d: /proc/%d/maps: %s; it must be running, and yours unless you are root",
			(int)pid, (int)pid, strerror(-error));
	for (uint32_t i = 0; !error && i < map.count; i++) {
		const int fd = ky_program_map_is_again(&map, i)
				       ? -1
				       : ky_proc_maps_open_file(map.pid, &map.mappings[i]);
		if (fd < 0)
			continue;
		error = add_file(list, fd, map.mappings[i].path);
		close(fd);
	}
	ky_program_map_free(&map);
	return error;
}

static int finish_or_close(struct ky_symbol_list **list, int error, char message[KY_MESSAGE_BYTES])
{
	if (!error)
		error = finish(*list);
	if (error == -ENOMEM)
		ky_fail(message, error, "symbols: out of memory");
	if (error)
		ky_symbol_list_close(list);
	return error;
}

int ky_symbol_list_open_pid(struct ky_symbol_list **list, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	*list = calloc(1, sizeof(**list));
	if (!*list)
		return ky_fail(message, -ENOMEM, "symbols: out of memory");
	return finish_or_close(list, add_process(*list, pid, message), message);
}

struct libraries {
	struct ky_symbol_list *list;
	int error;
};

static void add_library(void *context, const char *path)
{
	struct libraries *libraries = context;
	if (libraries->error)
		return;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	libraries->error = add_file(libraries->list, fd, path);
	close(fd);
}

static int add_libraries(struct ky_symbol_list *list, const char *path)
{
	struct libraries libraries = {.list = list};
	ky_program_libraries(path, add_library, &libraries);
	return libraries.error;
}

int ky_symbol_list_open_program(struct ky_symbol_list **list, const char *path,
				char message[KY_MESSAGE_BYTES])
{
	*list = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		const int error = -errno;
		return ky_fail(message, error, "symbols of %s: %s; name the program's file", path,
			       strerror(-error));
	}
	*list = calloc(1, sizeof(**list));
	int error = *list ? add_file(*list, fd, path) : -ENOMEM;
	close(fd);
	if (!*list)
		return ky_fail(message, -ENOMEM, "symbols: out of memory");
	if (!error)
		error = add_libraries(*list, path);
	return finish_or_close(list, error, message);
}

uint32_t ky_symbol_list_count(const struct ky_symbol_list *list)
{
	return list->count;
}

const struct ky_symbol_entry *ky_symbol_list_at(const struct ky_symbol_list *list, uint32_t index)
{
	return &list->entries[index];
}

void ky_symbol_list_close(struct ky_symbol_list **out)
{
	struct ky_symbol_list *list = *out;
	*out = NULL;
	if (!list)
		return;
	KY_ARRAY_FREE(list->text, list->text_room);
	KY_ARRAY_FREE(list->raw, list->room);
	free(list->entries);
	free(list);
}

/* ---- matching ---- */

static bool is_copy_suffix(const char *suffix)
{
	static const char *const known[] = {".constprop.", ".isra.", ".lto_priv.", ".llvm."};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(suffix, known[i], strlen(known[i])) == 0)
			return true;
	return false;
}

/* Report whether linked is the wanted name, alone or with the mark of a version or copy. */
static bool is_linked_name(const char *wanted, const char *linked)
{
	const size_t bytes = strlen(wanted);
	if (strncmp(wanted, linked, bytes) != 0)
		return false;
	return linked[bytes] == '\0' || linked[bytes] == '@' || is_copy_suffix(linked + bytes);
}

/* Return the length of a readable name without its arguments. */
static size_t bytes_before_arguments(const char *readable)
{
	const char *clone = strstr(readable, " [clone ");
	size_t at = clone ? (size_t)(clone - readable) : strlen(readable);
	const size_t all = at;
	while (at && readable[at - 1] != ')')
		at--;
	for (int depth = 0; at; at--) {
		depth += (readable[at - 1] == ')') - (readable[at - 1] == '(');
		if (depth == 0)
			return at - 1;
	}
	return all;
}

/* The name of a function template begins with its return type: "void net::send<int>". */
static bool is_end_of(const char *wanted, const char *text, size_t bytes)
{
	const size_t wanted_bytes = strlen(wanted);
	if (wanted_bytes > bytes || memcmp(text + bytes - wanted_bytes, wanted, wanted_bytes) != 0)
		return false;
	return wanted_bytes == bytes || text[bytes - wanted_bytes - 1] == ' ';
}

bool ky_symbol_match(const char *wanted, const char *linked, const char *readable)
{
	if (is_linked_name(wanted, linked))
		return true;
	if (!readable)
		return false;
	const char *clone = strstr(readable, " [clone ");
	const size_t bytes = clone ? (size_t)(clone - readable) : strlen(readable);
	if (clone && !is_copy_suffix(clone + strlen(" [clone ")))
		return false;
	return is_end_of(wanted, readable, bytes) ||
	       is_end_of(wanted, readable, bytes_before_arguments(readable));
}
