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
 *
 * Several copies of the library in a process (plugins that link it statically) have one session: that of the copy that came
 * first, whose word in the drum is env_state. The others wait. When that copy is unloaded, the next that is loaded, records
 * an event or is unloaded itself goes on where it stopped, in the same file if the format allows that.
 */
#include "core/heap.h"
#include "core/init.h"
#include "core/notice.h"
#include "core/stream_place.h"
#include "core/writer.h"
#include "os/os.h"
#include "sink/session.h"

#include <errno.h>
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
static bool is_child; /* of a fork() after the library was loaded */

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

/* Nobody will read the events: switch the categories off again. */
static void failed(int error)
{
	struct ky_drum *drum = ky_drum_peek();
	complain(error);
	if (drum && !env.categories)
		ky_heap_recorder_set(drum, KY_RECORDER_ENV, NULL);
}

static int start(const char *path, const struct ky_session_env *how)
{
	struct ky_drum *drum = ky_drum_get();
	const struct kymo_options options = {
		.size = sizeof(options),
		.path = path,
		.categories = env.categories,
		.mode = env.mode,
		.ring_bytes = env.own_buffer ? ky_limits.ring_bytes : 0,
	};
	atomic_store(&state, RUNNING);
	__atomic_store_n(&ky_writer_wake, NULL, __ATOMIC_RELAXED);
	/* Not the session's own slot: events must not be lost between it and that of another copy. */
	if (drum)
		ky_heap_recorder_set(drum, KY_RECORDER_ENV, env.categories ? env.categories : "*");
	const int error = ky_session_start(&env.session, &options, how);
	if (error)
		failed(error);
	return error;
}

/* Become the copy of the library whose session it is. Return false if another is. */
static bool claim(struct ky_drum *drum, struct ky_session_env *how)
{
	uint32_t *const word = &drum->header->env_state;
	uint32_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
	/* Acquire pairs with the release store in ky_session_leave(). */
	if (now == KY_ENV_RUNNING ||
	    !__atomic_compare_exchange_n(word, &now, KY_ENV_RUNNING, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	how->resume = now == KY_ENV_LEFT;
	return true;
}

/* Report whether the session has no file, and so needs no thread and no name. */
static bool has_no_file(void)
{
	return strncmp(env.given, "marker:", 7) == 0 || strcmp(env.given, "none:") == 0;
}

static bool has_pid(void)
{
	return strstr(env.path, "${pid}") != NULL;
}

/* Name the file of a process that was forked: that of its parent with the pid. */
static int name_file(char *name, size_t room)
{
	char pid[16];
	if (!is_child || has_pid())
		return snprintf(name, room, "%s", env.path) < (int)room ? 0 : -ENAMETOOLONG;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	const int bytes = ky_path_insert(name, room, env.path, pid);
	return bytes < 0 ? bytes : 0;
}

static void start_claimed(const struct ky_session_env *how)
{
	char name[PATH_MAX];
	const int error = name_file(name, sizeof(name));
	if (error)
		complain(error);
	else if (is_child && !has_pid() && !ky_path_is_plain(env.path))
		ky_notice(KY_NOTICE_TRACE, env.given, "a forked child has no file of its own there",
			  "use the name of a file");
	else
		start(name, how);
}

/* Called by events: of a child, or of a copy of the library that waits until another is unloaded. */
static void woken(void)
{
	struct ky_session_env how = {.whole = is_child, .failed = failed};
	struct ky_drum *drum = ky_drum_peek();
	if (drum && __atomic_load_n(&drum->header->env_state, __ATOMIC_RELAXED) != KY_ENV_RUNNING &&
	    !ky_os_maybe_in_handler() && claim(drum, &how))
		start_claimed(&how);
}

void ky_env_begin(void)
{
	struct ky_session_env how = {.whole = is_child, .failed = failed};
	struct ky_drum *drum = ky_drum_get();
	if (atomic_load(&state) == WAITING && drum && claim(drum, &how))
		start_claimed(&how);
}

static void wait_for_event(void)
{
	atomic_store(&state, WAITING);
	__atomic_store_n(&ky_writer_wake, woken, __ATOMIC_RELAXED);
}

/* Record from the first event on, as a session would. */
static void prepare_rings(void)
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
}

static void in_child(void)
{
	struct ky_session_env how = {.failed = failed};
	env.session = NULL;
	is_child = true;
	if (has_no_file()) {
		struct ky_drum *drum = ky_drum_get();
		if (drum && claim(drum, &how))
			start(env.given, &how);
		return;
	}
	prepare_rings();
	wait_for_event();
}

/* At the end of a child whose session has not begun, or of a copy that did not go on with another's: write the rest. */
static void finish_waiting(void)
{
	struct ky_session_env how = {.whole = is_child, .failed = failed};
	struct ky_drum *drum = ky_drum_peek();
	if (atomic_load(&state) == WAITING && drum && drum->header->pid == (uint32_t)getpid() &&
	    ky_stream_place_news(drum) && claim(drum, &how))
		start_claimed(&how);
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
	struct ky_session_env how = {.failed = failed};
	struct ky_drum *drum = ky_drum_get();
	if (!drum)
		complain(KYMO_EDRUM);
	else if (!claim(drum, &how))
		wait_for_event();
	else if (start(env.path, &how) != 0)
		return;
	ky_init_on_fork(in_child);
	at_quick_exit(finish_waiting);
}

/* The end of the process, or of this copy of the library: then another goes on. */
__attribute__((destructor(103))) static void leave(void)
{
	finish_waiting();
	atomic_store(&state, IDLE);
	__atomic_store_n(&ky_writer_wake, NULL, __ATOMIC_RELAXED);
	if (env.session && env.session->pid == getpid())
		ky_session_leave(&env.session);
	free(env.path);
	free((void *)(uintptr_t)env.given);
	free(env.categories);
	memset(&env, 0, sizeof(env));
}
