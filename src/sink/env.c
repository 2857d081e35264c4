/* SPDX-License-Identifier: MIT */
/*
 * env.c: KYMO_TRACE=out.pftrace ./program starts a session when the library is loaded, without any code in the program; it
 * ends with the process. notice.h reports what cannot work; the program goes on.
 *
 * A forked child has a session and a file of its own: out.PID.pftrace, or what ${pid} makes. It begins with the child's
 * first event, because most children call exec, and a thread would be in the way of those that call unshare():
 *
 *   fork ──▶ WAITING ──event, not in a signal handler──▶ RUNNING
 *                 └───exit(), after an event────────────▶ RUNNING, and finished at once
 *
 * While it waits, events are recorded: the child's rings are those of a session that streams, and its session reads them
 * from their beginning.
 */
#include "core/notice.h"
#include "core/writer.h"
#include "sink/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char ky_env_linked = 1;

/* Invariant: path is NULL without KYMO_TRACE. All but state is constant after the library was loaded. */
static struct {
	char *path; /* absolute, because the program may change its directory before it forks */
	const char *given;
	char *categories;
	int mode;
	bool own_buffer; /* KYMO_BUFFER is set */
	struct kymo_session *session;
} env;

enum { IDLE, WAITING, RUNNING };
static _Atomic int state = IDLE;

/* ---- what cannot work ---- */

static const char *remedy_for(int error)
{
	switch (error) {
	case -ENOENT:
		return "make the directory first";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "choose a place that this user may write to";
	case -ENOSPC:
	case -EDQUOT:
		return "free some space, or choose another place";
	case -EFBIG:
		return "raise RLIMIT_FSIZE (ulimit -f unlimited)";
	case -EISDIR:
		return "add the name of a file";
	case -EBUSY:
		return "use ${pid} in the name";
	case -EMFILE:
		return "raise RLIMIT_NOFILE (ulimit -n)";
	case -EAGAIN:
		return "raise the number of threads (ulimit -u), or read the pipe";
	default:
		return NULL;
	}
}

static void complain(int error)
{
	const int drum = ky_drum_error();
	if (error == KYMO_EFORMAT)
		ky_notice(KY_NOTICE_TRACE, env.given, "no output format has that suffix",
			  "use .json, .json.gz, .pftrace, .perfetto-trace, .fxt, .fxt.gz or .kymo");
	else if (error == KYMO_EDRUM)
		ky_notice(KY_NOTICE_TRACE, env.given, ky_notice_drum_cause(drum),
			  ky_notice_drum_remedy(drum, ky_limits.dir != NULL));
	else
		ky_notice(KY_NOTICE_TRACE, env.given, kymo_strerror(error), remedy_for(error));
}

/* ---- the session ---- */

static int start(const char *path, bool whole)
{
	const struct kymo_options options = {
		.size = sizeof(options),
		.path = path,
		.categories = env.categories,
		.mode = env.mode,
		.ring_bytes = env.own_buffer ? ky_limits.ring_bytes : 0,
	};
	atomic_store(&state, RUNNING);
	const int error = ky_session_start(&env.session, &options, whole, complain);
	if (error)
		complain(error);
	return error;
}

/* Report whether the session has no file, and so needs no thread and no name. */
static bool has_no_file(void)
{
	return strncmp(env.given, "marker:", 7) == 0 || strcmp(env.given, "none:") == 0;
}

/* Return the name of a child's file: that of its parent with the pid, unless the name has it. */
static int name_for_child(char *name, size_t room)
{
	char pid[16];
	if (strstr(env.path, "${pid}"))
		return strlen(env.path) < room ? (int)strlen(strcpy(name, env.path))
					       : -ENAMETOOLONG;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return ky_path_insert(name, room, env.path, pid);
}

static void start_in_child(void)
{
	char name[PATH_MAX];
	const int bytes = name_for_child(name, sizeof(name));
	__atomic_store_n(&ky_writer_wake, NULL, __ATOMIC_RELAXED);
	if (bytes < 0)
		complain(bytes);
	else if (!ky_path_is_plain(env.path) && !strstr(env.path, "${pid}"))
		ky_notice(KY_NOTICE_TRACE, env.given, "a forked child has no file of its own there",
			  "use the name of a file");
	else
		start(name, true);
}

/* Called by an event of the child, not in a signal handler. */
static void woken(void)
{
	int waiting = WAITING;
	if (atomic_compare_exchange_strong(&state, &waiting, RUNNING))
		start_in_child();
}

/* Record from the first event on, as a session would. */
static void wait_for_event(void)
{
	if (!ky_limits.categories)
		ky_limits.categories = env.categories ? env.categories : "*";
	if (env.mode == KYMO_MODE_STREAM && !env.own_buffer) {
		if (ky_limits.ring_bytes < KY_DRAIN_RING_BYTES)
			ky_limits.ring_bytes = KY_DRAIN_RING_BYTES;
		if (ky_limits.total_bytes < KY_DRAIN_TOTAL_BYTES)
			ky_limits.total_bytes = KY_DRAIN_TOTAL_BYTES;
	}
	ky_drum_keep_categories();
	atomic_store(&state, WAITING);
	__atomic_store_n(&ky_writer_wake, woken, __ATOMIC_RELAXED);
}

static void in_child(void)
{
	env.session = NULL;
	if (has_no_file())
		start(env.given, false);
	else
		wait_for_event();
}

/* At the end of a child that could not start its session before: write what it recorded. */
static void finish_waiting(void)
{
	int waiting = WAITING;
	const struct ky_drum *drum = ky_drum_peek();
	if (drum && drum->header->pid == (uint32_t)getpid() && drum->header->rings_used &&
	    atomic_compare_exchange_strong(&state, &waiting, RUNNING))
		start_in_child();
}

/* ---- the environment ---- */

static int mode_of(const char *text)
{
	if (text && strcmp(text, "ring") == 0)
		return KYMO_MODE_RING;
	if (text && *text && strcmp(text, "stream") != 0)
		ky_notice(KY_NOTICE_MODE, text, "not a mode", "use ring or stream");
	return KYMO_MODE_STREAM;
}

static char *absolute(const char *path)
{
	char folder[PATH_MAX];
	char *whole = NULL;
	if (*path == '/' || has_no_file() || !getcwd(folder, sizeof(folder)) ||
	    asprintf(&whole, "%s/%s", folder, path) < 0)
		return strdup(path);
	return whole;
}

static bool read_environment(const char *path)
{
	const char *categories = secure_getenv("KYMO_CATEGORIES");
	env.given = strdup(path);
	if (!env.given)
		return false;
	env.path = absolute(path);
	env.categories = categories ? strdup(categories) : NULL;
	env.mode = mode_of(secure_getenv("KYMO_MODE"));
	env.own_buffer = secure_getenv("KYMO_BUFFER") != NULL;
	return env.path != NULL;
}

__attribute__((constructor(103))) static void start_from_environment(void)
{
	const char *path = secure_getenv("KYMO_TRACE");
	if (!path || !*path || !read_environment(path))
		return;
	if (start(env.path, false) != 0)
		return;
	pthread_atfork(NULL, NULL, in_child);
	at_quick_exit(finish_waiting);
}

__attribute__((destructor(103))) static void finish_at_exit(void)
{
	finish_waiting();
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
