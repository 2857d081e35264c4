/* SPDX-License-Identifier: MIT */
/*
 * load.c: from a path to a finished trace: opens the input, finds the reader by its first bytes, lets it
 * read, and builds the columns.
 *
 *   path ─▶ input ─▶ probe ─▶ reader ─▶ problems of the input itself ─▶ ky_trace_finish()
 *     └─▶ directory, pid:N ──────┘
 *
 * Every failure is one line: the path, the place, what is wrong, what to do.
 */
#include "formats/reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/load_parts.h"

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

/* One line, whatever bytes a path or an input brought into it. */
static void one_line(char *message)
{
	for (; *message; message++)
		if ((unsigned char)*message < ' ' || *message == 0x7f)
			*message = '?';
}

static int tell(const struct loading *loading, const char *stage, uint64_t done, uint64_t all)
{
	const struct ky_load_options *options = loading->options;
	return options->progress ? options->progress(options->context, stage, done, all) : 0;
}

static int on_input(void *context, uint64_t done, uint64_t all)
{
	return tell(context, "reading", done, all);
}

static int on_reader(struct ky_load *load, uint64_t done, uint64_t all)
{
	return tell(load->context, "reading", done, all);
}

static int on_finish(void *context, uint64_t done, uint64_t all)
{
	return tell(context, "building", done, all);
}

static const struct ky_reader *reader_named(const char *name)
{
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++)
		if (strcmp((*reader)->name, name) == 0)
			return *reader;
	return NULL;
}

static int say_unknown_name(const char *name, char message[KY_LOAD_MESSAGE_BYTES])
{
	int used = snprintf(message, KY_LOAD_MESSAGE_BYTES, "no format is named %.64s; there are",
			    name);
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++)
		if (used < KY_LOAD_MESSAGE_BYTES)
			used += snprintf(message + used, (size_t)(KY_LOAD_MESSAGE_BYTES - used),
					 "%s %s", reader == ky_readers ? "" : ",", (*reader)->name);
	return -EINVAL;
}

/* What the message of a failed load says beside what the reader said. */
static int say_failed(const struct loading *loading, int error, char message[KY_LOAD_MESSAGE_BYTES])
{
	const struct ky_load *load = &loading->load;
	const char *damage = NULL;
	bool truncated;
	if (load->input)
		damage = ky_input_damage(load->input, &truncated);
	if (error == -EINTR || error == -ECANCELED)
		snprintf(message, KY_LOAD_MESSAGE_BYTES, "%s: interrupted", loading->shown);
	else if (error == -ENOMEM)
		snprintf(message, KY_LOAD_MESSAGE_BYTES,
			 "%s: not enough memory; load a part of it, or on a larger machine",
			 loading->shown);
	else if (load->message[0] && strncmp(load->message, loading->shown,
					     strlen(loading->shown)) == 0) /* says it itself */
		snprintf(message, KY_LOAD_MESSAGE_BYTES, "%s", load->message);
	else if (load->message[0])
		snprintf(message, KY_LOAD_MESSAGE_BYTES, "%.160s: %.260s%s%.80s", loading->shown,
			 load->message, damage ? "; " : "", damage ? damage : "");
	else
		snprintf(message, KY_LOAD_MESSAGE_BYTES, "cannot read %s: %s", loading->shown,
			 strerror(-error));
	return error;
}

/* What the input met while it was read. 0, or the error that makes the trace useless. */
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
		      struct ky_trace **trace, char message[KY_LOAD_MESSAGE_BYTES])
{
	struct ky_load *load = &loading->load;
	int error = ky_trace_open(&load->trace);
	if (error)
		return say_failed(loading, error, message);
	load->trace->format = reader->name;
	error = reader->read(load);
	const int input_error = take_input_error(load);
	/* A reader takes an input that was interrupted for one that ended. */
	if (input_error)
		error = input_error;
	if (!error)
		error = load->trace->error;
	if (!error)
		error = ky_trace_finish(load->trace, on_finish, loading);
	if (error) {
		ky_trace_close(&load->trace);
		return say_failed(loading, error, message);
	}
	*trace = load->trace;
	return 0;
}

static void probe_input(struct ky_input *input, struct ky_probe *probe)
{
	(void)ky_input_need(input, KY_PROBE_BYTES);
	const size_t bytes = (size_t)(input->end - input->at);
	*probe = (struct ky_probe){.data = input->at,
				   .bytes = bytes < KY_PROBE_BYTES ? bytes : KY_PROBE_BYTES,
				   .whole = input->ended && bytes <= KY_PROBE_BYTES};
}

/* The reader of the input, or of the first member of an archive that has one. */
static const struct ky_reader *find_reader(struct ky_input *input, struct ky_probe *probe)
{
	do {
		probe_input(input, probe);
		const struct ky_reader *reader = probe->bytes ? ky_reader_find(probe) : NULL;
		if (reader)
			return reader;
	} while (ky_input_next_member(input));
	return NULL;
}

static int load_input(struct loading *loading, const struct ky_reader *reader,
		      struct ky_trace **trace, char message[KY_LOAD_MESSAGE_BYTES])
{
	struct ky_load *load = &loading->load;
	struct ky_probe probe;
	bool truncated;
	if (reader)
		probe_input(load->input, &probe);
	else
		reader = find_reader(load->input, &probe);
	if (load->input->error && load->input->error != -EBADMSG)
		return say_failed(loading, load->input->error, message);
	if (reader && probe.bytes)
		return run_reader(loading, reader, trace, message);
	ky_load_say_unknown(&probe, ky_input_members(load->input), load->message);
	/* Packed data that is damaged at its begin: that is what is wrong. */
	const char *damage = ky_input_damage(load->input, &truncated);
	if (damage && !probe.bytes)
		ky_load_fail(load, KY_NO_PLACE, "nothing could be unpacked");
	return say_failed(loading, -EBADMSG, message);
}

static int load_without_input(struct loading *loading, const struct ky_reader *reader,
			      struct ky_trace **trace, char message[KY_LOAD_MESSAGE_BYTES])
{
	return run_reader(loading, reader, trace, message);
}

static int load_directory(struct loading *loading, const struct ky_reader *reader,
			  struct ky_trace **trace, char message[KY_LOAD_MESSAGE_BYTES])
{
	const struct ky_probe probe = {.data = (const uint8_t *)"", .path = loading->load.path};
	if (!reader)
		reader = ky_reader_find(&probe);
	if (reader && reader->directory)
		return load_without_input(loading, reader, trace, message);
	ky_load_say_directory(loading->load.path, loading->load.message);
	return say_failed(loading, -EISDIR, message);
}

static int load_file(struct loading *loading, const struct ky_reader *reader,
		     struct ky_trace **trace, char message[KY_LOAD_MESSAGE_BYTES])
{
	struct ky_load *load = &loading->load;
	if (reader && reader->directory) {
		ky_load_fail(load, KY_NO_PLACE,
			     "%s is the format of a directory, and this is a file", reader->name);
		return say_failed(loading, -ENOTDIR, message);
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
	    char message[KY_LOAD_MESSAGE_BYTES])
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
			return say_unknown_name(loading.options->format, message);
	}
	if (is_process(path))
		error = load_without_input(&loading, &ky_reader_drum, trace, message);
	else if (strcmp(path, "-") != 0 && stat(path, &file) == 0 && S_ISDIR(file.st_mode))
		error = load_directory(&loading, reader, trace, message);
	else
		error = load_file(&loading, reader, trace, message);
	one_line(message);
	return error;
}

int ky_load_memory(struct ky_trace **trace, const void *data, size_t bytes,
		   const struct ky_reader *reader, char message[KY_LOAD_MESSAGE_BYTES])
{
	const struct ky_load_options usual = {.size = sizeof(usual)};
	struct loading loading;
	*trace = NULL;
	message[0] = '\0';
	start(&loading, "memory", &usual);
	int error = ky_input_open_memory(&loading.load.input, data, bytes, "memory");
	if (error)
		return say_failed(&loading, error, message);
	error = load_input(&loading, reader, trace, message);
	ky_input_close(&loading.load.input);
	one_line(message);
	return error;
}
