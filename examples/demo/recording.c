/* SPDX-License-Identifier: MIT */
/*
 * recording.c: one kymo session for each file that was asked for. All sessions of a process read the
 * same rings: an event is recorded once, for all of them.
 *
 * This is all a program needs to offer tracing to its users. A program without it can still be
 * traced by KYMO_TRACE in its environment.
 */
#include "recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <kymo/session.h>

/* Where the suffix of a path begins: .pftrace, .json.gz. */
static size_t find_suffix(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t end = strlen(name);
	if (end > 3 && strcmp(name + end - 3, ".gz") == 0)
		end -= 3;
	size_t dot = end;
	while (dot > 0 && name[dot - 1] != '.')
		dot--;
	return (size_t)(name - path) + (dot > 0 ? dot - 1 : end);
}

static void insert_tag(char *tagged, const char *path, const char *tag)
{
	const size_t suffix = find_suffix(path);
	snprintf(tagged, RECORDING_PATH_MAX, "%.*s%s%s", (int)suffix, path, tag, path + suffix);
}

int recording_start(struct recording *recording, const struct options *options, const char *tag)
{
	recording->count = 0;
	for (int i = 0; i < options->outputs_count; i++) {
		insert_tag(recording->paths[i], options->outputs[i], tag);
		const struct kymo_options session = {
			.size = sizeof(session),
			.path = recording->paths[i],
			.categories = options->categories,
		};
		const int error = kymo_session_start(&recording->sessions[i], &session);
		if (error) {
			fprintf(stderr, "demo: cannot record to %s: %s\n", session.path,
				kymo_strerror(error));
			return error == KYMO_EFORMAT ? 2 : 1;
		}
		recording->count++;
	}
	return 0;
}

/* The file's end is written by the stop, so its size is asked of the file. */
static uint64_t file_bytes(const char *path)
{
	struct stat file;
	return stat(path, &file) == 0 ? (uint64_t)file.st_size : 0;
}

static bool stop_session(struct kymo_session **session, const char *path)
{
	struct kymo_stats stats = {.size = sizeof(stats)};
	kymo_session_flush(*session);
	kymo_session_stats(*session, &stats);
	const int error = kymo_session_stop(session);
	if (error) {
		fprintf(stderr, "demo: %s: %s\n", path, kymo_strerror(error));
		return false;
	}
	printf("trace %12" PRIu64 " bytes %10" PRIu64 " events %6" PRIu64 " lost  %s\n",
	       file_bytes(path), stats.events, stats.lost, path);
	return true;
}

bool recording_stop(struct recording *recording)
{
	bool written = true;
	for (int i = 0; i < recording->count; i++)
		if (!stop_session(&recording->sessions[i], recording->paths[i]))
			written = false;
	recording->count = 0;
	return written;
}
