/* SPDX-License-Identifier: MIT */
/*
 * load_unknown.c: what to say of an input that no reader knows: what its first bytes are, what they look
 * like, and of a directory, which of its files can be loaded.
 */
#include "formats/load_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A directory is looked through as far as a person would. */
#define FILES_TRIED_MAX 64
#define FILES_NAMED_MAX 3
#define BYTES_SHOWN 12

/* What else is often handed over by mistake, and what to do. */
struct sign {
	const char *bytes;
	size_t bytes_count;
	const char *what;
};

#define SIGN(text, what)                                                                           \
	{                                                                                          \
		text, sizeof(text) - 1, what                                                       \
	}

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

void ky_load_say_unknown(const struct ky_probe *probe, uint32_t members,
			 char message[KY_LOAD_MESSAGE_BYTES])
{
	char begin[BYTES_SHOWN * 3 + 4];
	if (probe->bytes == 0) {
		snprintf(message, KY_LOAD_MESSAGE_BYTES,
			 "at byte 0: is empty, expected a trace: record it again");
		return;
	}
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (probe->bytes >= signs[i].bytes_count &&
		    memcmp(probe->data, signs[i].bytes, signs[i].bytes_count) == 0) {
			snprintf(message, KY_LOAD_MESSAGE_BYTES, "%s", signs[i].what);
			return;
		}
	show_bytes(probe, begin, sizeof(begin));
	if (members > 1)
		snprintf(message, KY_LOAD_MESSAGE_BYTES,
			 "is an archive of %u files, none of which is a trace that kymo knows; "
			 "kymo --help lists the formats",
			 members);
	else
		snprintf(message, KY_LOAD_MESSAGE_BYTES,
			 "at byte 0: is not a trace that kymo knows: begins with %s; kymo --help "
			 "lists the formats, --format names one",
			 begin);
}

/* The format of a file, or NULL. */
static const struct ky_reader *reader_of(const char *path)
{
	char message[KY_INPUT_MESSAGE_BYTES];
	struct stat file;
	struct ky_input *input;
	/* Opening a pipe would wait for its other side. */
	if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
		return NULL;
	if (ky_input_open(&input, path, NULL, NULL, message) != 0)
		return NULL;
	(void)ky_input_need(input, KY_PROBE_BYTES);
	const size_t bytes = (size_t)(input->end - input->at);
	const struct ky_probe probe = {.data = input->at,
				       .bytes = bytes < KY_PROBE_BYTES ? bytes : KY_PROBE_BYTES,
				       .whole = input->ended && bytes <= KY_PROBE_BYTES};
	const struct ky_reader *reader = bytes ? ky_reader_find(&probe) : NULL;
	ky_input_close(&input);
	return reader;
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Appends the names of files that can be loaded; their number. */
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
		if (found < FILES_NAMED_MAX && used < KY_LOAD_MESSAGE_BYTES)
			used += (size_t)snprintf(message + used, KY_LOAD_MESSAGE_BYTES - used,
						 "%s%.100s (%s)", found ? ", " : "",
						 names[i]->d_name, reader->name);
		found++;
	}
	if (found > FILES_NAMED_MAX && used < KY_LOAD_MESSAGE_BYTES)
		snprintf(message + used, KY_LOAD_MESSAGE_BYTES - used, ", ...");
	return found;
}

void ky_load_say_directory(const char *path, char message[KY_LOAD_MESSAGE_BYTES])
{
	static const char head[] = "is a directory that no format knows; name a file in it: ";
	struct dirent **names;
	const int count = scandir(path, &names, not_hidden, alphasort);
	snprintf(message, KY_LOAD_MESSAGE_BYTES, "%s", head);
	const int cause = errno;
	const int found = count > 0 ? name_files(path, names, count, message, sizeof(head) - 1) : 0;
	if (count < 0)
		snprintf(message, KY_LOAD_MESSAGE_BYTES, "cannot look into this directory: %s%s",
			 strerror(cause),
			 cause == EACCES ? "; make it readable or run as its owner" : "");
	else if (!found)
		snprintf(message, KY_LOAD_MESSAGE_BYTES,
			 "is a directory, and neither it nor a file in it is a trace that kymo "
			 "knows; kymo --help lists the formats");
	for (int i = 0; i < count; i++)
		free(names[i]);
	if (count >= 0)
		free(names);
}
