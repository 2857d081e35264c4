/* SPDX-License-Identifier: MIT */
/*
 * load.c: loads a path as a finished trace: opens the input, finds the reader by its first bytes, lets it
 * read, and builds the columns.
 *
 *   path ─▶ input ─▶ probe ─▶ reader ─▶ problems of the input itself ─▶ ky_trace_finish()
 *     └─▶ directory, pid:N ──────┘
 *
 * Every error message is one line: the path, the place, what is wrong, what to do.
 */
#include "formats/load.h"

#include "base/memory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- inputs that no reader knows ---- */

/* Files of a directory that are probed, and named. */
#define FILES_TRIED_MAX 64
#define FILES_NAMED_MAX 3
#define BYTES_SHOWN 12

/* Formats that are often given by mistake, and what to do. */
struct sign {
	const char *bytes;
	size_t bytes_count;
	const char *what;
};

#define SIGN(text, what)                                                                           \
	{                                                                                          \
		text, sizeof(text) - 1, what                                                       \
	}

#define PART_OF_CTF "is one file of a CTF trace: give the directory that it is in"

static const struct sign signs[] = {
	SIGN("\xfd"
	     "7zXZ",
	     "is packed with xz: unpack it first (xz -dc FILE | kymo ... -)"),
	SIGN("BZh", "is packed with bzip2: unpack it first (bzip2 -dc FILE | kymo ... -)"),
	SIGN("\x04\x22\x4d\x18", "is packed with lz4: unpack it first (lz4 -dc FILE | kymo ... -)"),
	SIGN("7z\xbc\xaf", "is a 7z archive: unpack it first"),
	SIGN("\x7f"
	     "ELF",
	     "is a program or library, not a trace: record one with KYMO_TRACE=out.kymo PROGRAM"),
	SIGN("SQLite format 3", "is an SQLite database, not a trace"),
	SIGN("\x0a\x04\x08\x01\x10\x02",
	     "is a pprof profile, which kymo writes and does not read: use pprof"),
	SIGN("/* CTF ", PART_OF_CTF),
	SIGN("\x57\x1d\xd1\x75", PART_OF_CTF),
	SIGN("\x75\xd1\x1d\x57", PART_OF_CTF),
	SIGN("\xc1\x1f\xfc\xc1", PART_OF_CTF),
	SIGN("\xc1\xfc\x1f\xc1", PART_OF_CTF),
};

static void show_bytes(const struct ky_probe *probe, char *to, size_t room)
{
	const size_t count = probe->bytes < BYTES_SHOWN ? probe->bytes : BYTES_SHOWN;
	bool text = true;
	for (size_t i = 0; i < count; i++)
		text = text && (isprint(probe->data[i]) || isspace(probe->data[i]));
	if (text) {
		snprintf(to, room, "\"%.*s\"", (int)count, (const char *)probe->data);
		return;
	}
	for (size_t i = 0, used = 0; i < count && used < room; i++)
		used += (size_t)snprintf(to + used, room - used, "%s%02x", i ? " " : "",
					 probe->data[i]);
}

/* Describe an input that no reader knows; members: of the archive whose files were tried, or 0. */
static void describe_unknown(const struct ky_probe *probe, uint32_t members,
			     char message[KY_MESSAGE_BYTES])
{
	char first[BYTES_SHOWN * 3 + 4];
	if (probe->bytes == 0) {
		snprintf(message, KY_MESSAGE_BYTES,
			 "at byte 0: is empty, expected a trace: record it again");
		return;
	}
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (probe->bytes >= signs[i].bytes_count &&
		    memcmp(probe->data, signs[i].bytes, signs[i].bytes_count) == 0) {
			snprintf(message, KY_MESSAGE_BYTES, "%s", signs[i].what);
			return;
		}
	show_bytes(probe, first, sizeof(first));
	if (members > 1)
		snprintf(message, KY_MESSAGE_BYTES,
			 "is an archive of %u files, none of which is a trace that kymo knows; "
			 "kymo --help lists the formats",
			 members);
	else
		snprintf(message, KY_MESSAGE_BYTES,
			 "at byte 0: is not a trace that kymo knows: begins with %s; kymo --help "
			 "lists the formats, --input-format names one",
			 first);
}

/* Return the reader of a file, or NULL. */
static const struct ky_reader *reader_of(const char *path)
{
	char message[KY_MESSAGE_BYTES];
	struct stat file;
	struct ky_input *input;
	struct ky_probe probe;
	/* Opening a pipe would wait for its other side. */
	if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
		return NULL;
	if (ky_input_open(&input, path, NULL, NULL, message) != 0)
		return NULL;
	ky_load_probe(input, &probe);
	const struct ky_reader *reader = probe.bytes ? ky_load_reader(&probe) : NULL;
	ky_input_close(&input);
	return reader;
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Append the names of files that can be loaded; return how many there are. */
static int name_files(const char *path, struct dirent **names, int count, char *message,
		      size_t used)
{
	char full[4096];
	int found = 0;
	for (int i = 0; i < count && i < FILES_TRIED_MAX; i++) {
		const int length = snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name);
		const struct ky_reader *reader =
			length > 0 && (size_t)length < sizeof(full) ? reader_of(full) : NULL;
		if (!reader)
			continue;
		if (found < FILES_NAMED_MAX && used < KY_MESSAGE_BYTES)
			used += (size_t)snprintf(message + used, KY_MESSAGE_BYTES - used,
						 "%s%.100s (%s)", found ? ", " : "",
						 names[i]->d_name, reader->name);
		found++;
	}
	if (found > FILES_NAMED_MAX && used < KY_MESSAGE_BYTES)
		snprintf(message + used, KY_MESSAGE_BYTES - used, ", ...");
	return found;
}

/* Describe a directory that no reader knows: name its files that can be loaded. */
static void describe_directory(const char *path, char message[KY_MESSAGE_BYTES])
{
	static const char head[] = "is a directory of no known format; name a file in it: ";
	struct dirent **names;
	const int count = scandir(path, &names, not_hidden, alphasort);
	snprintf(message, KY_MESSAGE_BYTES, "%s", head);
	const int cause = errno;
	const int found = count > 0 ? name_files(path, names, count, message, sizeof(head) - 1) : 0;
	if (count < 0)
		snprintf(message, KY_MESSAGE_BYTES, "cannot list this directory: %s%s",
			 strerror(cause),
			 cause == EACCES ? "; make it readable or run as its owner" : "");
	else if (!found)
		snprintf(message, KY_MESSAGE_BYTES,
			 "is a directory, and neither it nor a file in it is a trace that kymo "
			 "knows; kymo --help lists the formats");
	for (int i = 0; i < count; i++)
		free(names[i]);
	if (count >= 0)
		free(names);
}

/* ---- loading ---- */

#define READER(name) &ky_reader_##name,
const struct ky_reader *const ky_readers[] = {KY_FORMATS_READ(READER) NULL};

struct loading {
	struct ky_load load;
	const struct ky_load_options *options;
	const char *shown; /* the path for messages */
};

int ky_load_fail(struct ky_load *load, uint64_t at, const char *format, ...)
{
	char *text = load->message;
	size_t room = sizeof(load->message);
	va_list args;
	if (at != KY_NO_PLACE) {
		const int used = snprintf(text, room, "at byte %llu: ", (unsigned long long)at);
		text += used;
		room -= (size_t)used;
	}
	va_start(args, format);
	vsnprintf(text, room, format, args);
	va_end(args);
	return -EBADMSG;
}

/* Replace control characters, which a path or an input may have brought into it. */
static void one_line(char *message)
{
	for (; *message; message++)
		if ((unsigned char)*message < ' ' || *message == 0x7f)
			*message = '?';
}

static int report(const struct loading *loading, const char *stage, uint64_t done, uint64_t all)
{
	const struct ky_load_options *options = loading->options;
	return options->progress ? options->progress(options->context, stage, done, all) : 0;
}

/* A trace that failed takes nothing more: end the input. */
static int on_input(void *context, uint64_t done, uint64_t all)
{
	const struct ky_trace *trace = ((struct loading *)context)->load.trace;
	if (trace && trace->error)
		return trace->error;
	return report(context, "reading", done, all);
}

static int on_reader(struct ky_load *load, uint64_t done, uint64_t all)
{
	return report(load->context, "reading", done, all);
}

static int on_finish(void *context, uint64_t done, uint64_t all)
{
	return report(context, "building", done, all);
}

const struct ky_reader *ky_load_reader(const struct ky_probe *probe)
{
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++)
		if ((*reader)->directory == (probe->path != NULL) && (*reader)->probe(probe))
			return *reader;
	return NULL;
}

/* Return the reader with that name, or NULL. */
static const struct ky_reader *reader_named(const char *name)
{
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++)
		if (strcmp((*reader)->name, name) == 0)
			return *reader;
	return NULL;
}

static int fail_unknown_name(const char *name, char message[KY_MESSAGE_BYTES])
{
	int used = snprintf(message, KY_MESSAGE_BYTES, "%.64s is not an input format: use one of",
			    name);
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++)
		if (used < KY_MESSAGE_BYTES)
			used += snprintf(message + used, (size_t)(KY_MESSAGE_BYTES - used), "%s %s",
					 reader == ky_readers ? "" : ",", (*reader)->name);
	return -EINVAL;
}

/* Complete the message of a failed load with its path and what is wrong with the input. */
static int fail(const struct loading *loading, int error, char message[KY_MESSAGE_BYTES])
{
	const struct ky_load *load = &loading->load;
	const char *damage = NULL;
	bool truncated;
	if (load->input)
		damage = ky_input_damage(load->input, &truncated);
	if (error == -EINTR || error == -ECANCELED)
		snprintf(message, KY_MESSAGE_BYTES, "%s: interrupted", loading->shown);
	else if (error == -ENOMEM)
		snprintf(message, KY_MESSAGE_BYTES,
			 "%s: not enough memory; load a part of it, or on a larger machine",
			 loading->shown);
	else if (load->message[0] && strncmp(load->message, loading->shown,
					     strlen(loading->shown)) == 0) /* names the path */
		snprintf(message, KY_MESSAGE_BYTES, "%s", load->message);
	else if (load->message[0])
		snprintf(message, KY_MESSAGE_BYTES, "%.160s: %.260s%s%.80s", loading->shown,
			 load->message, damage ? "; " : "", damage ? damage : "");
	else
		snprintf(message, KY_MESSAGE_BYTES, "cannot read %s: %s", loading->shown,
			 strerror(-error));
	return error;
}

/* Add the input's damage to the trace's problems. Return 0, or the error that makes the trace useless. */
static int take_input_error(struct ky_load *load)
{
	bool truncated;
	const struct ky_input *input = load->input;
	if (!input)
		return 0;
	const char *damage = ky_input_damage(input, &truncated);
	if (damage)
		ky_problem(load->trace, truncated ? "input_truncated" : "input_corrupt", KY_ERROR,
			   KY_NO_PLACE, "%s", damage);
	return input->error == -EBADMSG ? 0 : input->error;
}

static int run_reader(struct loading *loading, const struct ky_reader *reader,
		      struct ky_trace **trace, char message[KY_MESSAGE_BYTES])
{
	struct ky_load *load = &loading->load;
	const unsigned failures = ky_memory_failures();
	int error = ky_trace_open(&load->trace);
	if (error)
		return fail(loading, error, message);
	load->trace->format = reader->name;
	error = reader->read(load);
	const int input_error = take_input_error(load);
	/* To a reader an interrupted input looks like one that ended. */
	if (input_error)
		error = input_error;
	/* Nor does one without memory always know what it lacks. */
	if (load->trace->error)
		error = load->trace->error;
	if (!error)
		error = ky_trace_finish(load->trace, on_finish, loading);
	else if (ky_memory_failures() != failures)
		error = -ENOMEM;
	if (error) {
		ky_trace_close(&load->trace);
		return fail(loading, error, message);
	}
	*trace = load->trace;
	return 0;
}

void ky_load_probe(struct ky_input *input, struct ky_probe *probe)
{
	(void)ky_input_need(input, KY_PROBE_BYTES);
	const size_t bytes = (size_t)(input->end - input->at);
	*probe = (struct ky_probe){.data = input->at,
				   .bytes = bytes < KY_PROBE_BYTES ? bytes : KY_PROBE_BYTES,
				   .whole = input->ended && bytes <= KY_PROBE_BYTES};
}

/* Return the reader of the input, or of the first archive member that has one. */
static const struct ky_reader *find_reader(struct ky_input *input, struct ky_probe *probe)
{
	do {
		ky_load_probe(input, probe);
		const struct ky_reader *reader = probe->bytes ? ky_load_reader(probe) : NULL;
		if (reader)
			return reader;
	} while (ky_input_next_member(input));
	return NULL;
}

static int read_nothing(struct ky_load *load)
{
	ky_problem(load->trace, "input_empty", KY_DATA_LOSS, 0,
		   "is empty, expected a trace: record it again");
	return 0;
}

/* No bytes are a trace without rows: a Perfetto trace without packets is one. */
static const struct ky_reader reader_empty = {
	.name = "empty", .title = "an empty file", .read = read_nothing};

static int load_input(struct loading *loading, const struct ky_reader *reader,
		      struct ky_trace **trace, char message[KY_MESSAGE_BYTES])
{
	struct ky_load *load = &loading->load;
	struct ky_probe probe;
	bool truncated;
	if (reader)
		ky_load_probe(load->input, &probe);
	else
		reader = find_reader(load->input, &probe);
	if (load->input->error && load->input->error != -EBADMSG)
		return fail(loading, load->input->error, message);
	/* Packed data may be damaged at its beginning. */
	const char *damage = ky_input_damage(load->input, &truncated);
	const uint32_t members = ky_input_members(load->input);
	if (!probe.bytes && !damage && !members)
		reader = &reader_empty;
	if (reader && (probe.bytes || reader == &reader_empty))
		return run_reader(loading, reader, trace, message);
	describe_unknown(&probe, members, load->message);
	if (damage && !probe.bytes)
		ky_load_fail(load, KY_NO_PLACE, "nothing can be unpacked");
	return fail(loading, -EBADMSG, message);
}

static int load_directory(struct loading *loading, const struct ky_reader *reader,
			  struct ky_trace **trace, char message[KY_MESSAGE_BYTES])
{
	const unsigned failures = ky_memory_failures();
	const struct ky_probe probe = {.data = (const uint8_t *)"", .path = loading->load.path};
	if (!reader)
		reader = ky_load_reader(&probe);
	if (reader && reader->directory)
		return run_reader(loading, reader, trace, message);
	describe_directory(loading->load.path, loading->load.message);
	return fail(loading, ky_memory_failures() == failures ? -EISDIR : -ENOMEM, message);
}

static int load_file(struct loading *loading, const struct ky_reader *reader,
		     struct ky_trace **trace, char message[KY_MESSAGE_BYTES])
{
	struct ky_load *load = &loading->load;
	if (reader && reader->directory) {
		ky_load_fail(load, KY_NO_PLACE, "%s is a format of directories, and this is a file",
			     reader->name);
		return fail(loading, -ENOTDIR, message);
	}
	int error = ky_input_open(&load->input, load->path, on_input, loading, message);
	if (error)
		return error;
	error = load_input(loading, reader, trace, message);
	ky_input_close(&load->input);
	return error;
}

static bool is_process(const char *path)
{
	if (strncmp(path, "pid:", 4) != 0 || !isdigit((unsigned char)path[4]))
		return false;
	return path[4 + strspn(path + 4, "0123456789")] == '\0';
}

static void start(struct loading *loading, const char *path, const struct ky_load_options *options)
{
	*loading = (struct loading){
		.load = {.path = path, .repair = options->repair, .progress = on_reader},
		.options = options,
		.shown = strcmp(path, "-") == 0 ? "standard input" : path,
	};
	loading->load.context = loading;
}

int ky_load(struct ky_trace **trace, const char *path, const struct ky_load_options *options,
	    char message[KY_MESSAGE_BYTES])
{
	static const struct ky_load_options usual = {.size = sizeof(usual)};
	const struct ky_reader *reader = NULL;
	struct loading loading;
	struct stat file;
	int error;
	*trace = NULL;
	message[0] = '\0';
	start(&loading, path, options ? options : &usual);
	if (loading.options->format) {
		reader = reader_named(loading.options->format);
		if (!reader)
			return fail_unknown_name(loading.options->format, message);
	}
	if (is_process(path))
		error = run_reader(&loading, &ky_reader_drum, trace, message);
	else if (strcmp(path, "-") != 0 && stat(path, &file) == 0 && S_ISDIR(file.st_mode))
		error = load_directory(&loading, reader, trace, message);
	else
		error = load_file(&loading, reader, trace, message);
	one_line(message);
	return error;
}

int ky_load_memory(struct ky_trace **trace, const void *data, size_t bytes,
		   const struct ky_reader *reader, char message[KY_MESSAGE_BYTES])
{
	const struct ky_load_options usual = {.size = sizeof(usual)};
	struct loading loading;
	*trace = NULL;
	message[0] = '\0';
	start(&loading, "memory", &usual);
	int error = ky_input_open_memory(&loading.load.input, data, bytes, "memory");
	if (error)
		return fail(&loading, error, message);
	error = load_input(&loading, reader, trace, message);
	ky_input_close(&loading.load.input);
	one_line(message);
	return error;
}
