/* SPDX-License-Identifier: MIT */
/*
 * env.c: KYMO_TRACE=out.pftrace ./program starts a session when the library is loaded, without any code in the program; it
 * ends with the process. Forked children get a session of their own if it cannot interfere with this one: with ${pid} in
 * the path, or without a file. A session that cannot start prints nothing: the program comes first.
 */
#include "core/writer.h"
#include "sink/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char ky_env_linked = 1;

static struct kymo_session *session;

static void start(const char *path)
{
	const struct kymo_options options = {
		.size = sizeof(options),
		.path = path,
		.categories = secure_getenv("KYMO_CATEGORIES"),
		.mode = secure_getenv("KYMO_MODE") &&
					strcmp(secure_getenv("KYMO_MODE"), "ring") == 0
				? KYMO_MODE_RING
				: KYMO_MODE_STREAM,
		.ring_bytes = secure_getenv("KYMO_BUFFER") ? ky_limits.ring_bytes : 0,
	};
	kymo_session_start(&session, &options);
}

static bool is_for_children(const char *path)
{
	return strstr(path, "${pid}") || strncmp(path, "marker:", 7) == 0 ||
	       strcmp(path, "none:") == 0;
}

static void in_child(void)
{
	const char *path = secure_getenv("KYMO_TRACE");
	if (path && is_for_children(path))
		start(path);
}

__attribute__((constructor(103))) static void start_from_environment(void)
{
	const char *path = secure_getenv("KYMO_TRACE");
	if (!path || !*path)
		return;
	start(path);
	pthread_atfork(NULL, NULL, in_child);
}

int kymo_descriptors(int *fds, size_t max)
{
	const struct ky_drum *drum = ky_drum_get();
	const int all[] = {drum ? drum->fd : -1, ky_marker_fd()};
	int count = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] < 0)
			continue;
		if (fds && (size_t)count < max)
			fds[count] = all[i];
		count++;
	}
	return count;
}
