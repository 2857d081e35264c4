/* SPDX-License-Identifier: MIT */
/*
 * load_unknown.c: describes an input that no reader knows: its first bytes, the format they look like, and the
 * files in a directory that can be loaded.
 */
#include "formats/load.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

void ky_load_unknown(const struct ky_probe *probe, uint32_t members,
		     char message[KY_LOAD_MESSAGE_BYTES])
{
	char first[BYTES_SHOWN * 3 + 4];
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
	show_bytes(probe, first, sizeof(first));
	if (members > 1)
		snprintf(message, KY_LOAD_MESSAGE_BYTES,
			 "is an archive of %u files, none of which is a trace that kymo knows; "
			 "kymo --help lists the formats",
			 members);
	else
		snprintf(message, KY_LOAD_MESSAGE_BYTES,
			 "at byte 0: is not a trace that kymo knows: begins with %s; kymo --help "
			 "lists the formats, --format names one",
			 first);
}

/* Return the reader of a file, or NULL. */
static const struct ky_reader *reader_of(const char *path)
{
	char message[KY_INPUT_MESSAGE_BYTES];
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

void ky_load_unknown_directory(const char *path, char message[KY_LOAD_MESSAGE_BYTES])
{
	static const char head[] = "is a directory of no known format; name a file in it: ";
	struct dirent **names;
	const int count = scandir(path, &names, not_hidden, alphasort);
	snprintf(message, KY_LOAD_MESSAGE_BYTES, "%s", head);
	const int cause = errno;
	const int found = count > 0 ? name_files(path, names, count, message, sizeof(head) - 1) : 0;
	if (count < 0)
		snprintf(message, KY_LOAD_MESSAGE_BYTES, "cannot list this directory: %s%s",
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
