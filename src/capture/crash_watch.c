/* SPDX-License-Identifier: MIT */
/*
 * crash_watch.c: kymo's side of the crash watch: which processes are watched and how each ended.
 *
 *   tracer's socket ─┐            CRASHED: fires, with a stack
 *                    ├─ epoll ─▶  ENDED: fires if it was a signal that was not reported
 *   pidfds ──────────┘            reaped: the status is read again
 *
 * A process is reported once. It is forgotten when both the tracer and the caller said that it ended,
 * or, since one of them may never do so, some time after one did: its number may be another's then.
 */
#include "capture/crash_watch.h"

#include "base/array.h"
#include "base/fail.h"
#include "capture/crash_tracer.h"
#include "os/os.h"
#include "process/proc.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * ---- kills for want of memory ----
 *
 * The kernel does not report whom it killed. It counts such kills for each control group (both versions), and for the
 * machine (/proc/vmstat). When the count of the process's group grew while it was watched, and the process then died of
 * SIGKILL, that very likely was the cause. The machine's count serves where groups are not visible.
 */

struct oom_watch {
	char *path;    /* of the file with the count */
	int64_t count; /* when the watch began; -1: unknown */
};

/* Return the number after "oom_kill " at the beginning of a line; -1 without. */
static int64_t read_count(const char *path)
{
	static const char key[] = "oom_kill ";
	char line[256];
	int64_t count = -1;
	FILE *file = path ? fopen(path, "re") : NULL;
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			count = strtoll(line + sizeof(key) - 1, NULL, 10);
	if (file)
		fclose(file);
	return count;
}

/* Return the file with the group's count, from a line of /proc/PID/cgroup; NULL when it is not the memory's group. */
static char *events_of(const char *line)
{
	static const char v2[] = "0::/", v1[] = ":memory:/";
	const char *group = strstr(line, v1);
	char *path = NULL;
	int length = -1;
	if (strncmp(line, v2, sizeof(v2) - 1) == 0)
		length = asprintf(&path, "/sys/fs/cgroup%s/memory.events", line + sizeof(v2) - 2);
	else if (group)
		length = asprintf(&path, "/sys/fs/cgroup/memory%s/memory.oom_control",
				  group + sizeof(v1) - 2);
	return length < 0 ? NULL : path;
}

/* Return the file of the process's control group; NULL when none has a count. */
static char *find_group(pid_t pid)
{
	char name[64], line[PATH_MAX], *path = NULL;
	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	FILE *file = fopen(name, "re");
	while (file && !path && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		path = events_of(line);
		if (path && read_count(path) < 0) {
			free(path);
			path = NULL;
		}
	}
	if (file)
		fclose(file);
	return path;
}

static void oom_end(struct oom_watch *memory)
{
	free(memory->path);
	*memory = (struct oom_watch){0};
}

static void oom_begin(struct oom_watch *memory, pid_t pid)
{
	oom_end(memory);
	memory->path = find_group(pid);
	if (!memory->path)
		memory->path = strdup("/proc/vmstat");
	memory->count = read_count(memory->path);
}

static bool oom_grew(const struct oom_watch *memory)
{
	return memory->path && memory->count >= 0 && read_count(memory->path) > memory->count;
}

#define ADD_WAIT_MS 800 /* the tracer may be busy with a crash, and the machine with others */
#define FORGET_NS UINT64_C(10000000000)

struct watched {
	pid_t pid;
	int pidfd; /* -1: none */
	bool traced;
	bool reported;
	bool ended;        /* reported by the caller */
	bool status_known; /* reported by the tracer */
	int status;
	uint64_t ended_ns; /* when the first of them did; 0: it runs */
	struct oom_watch memory;
};

struct ky_crash_watch {
	const struct ky_trigger *trigger;
	ky_fired_fn fired;
	void *context;
	pid_t tracer;
	int socket; /* -1: the tracer is gone */
	int epoll;
	struct watched *all;
	uint32_t count;
	uint32_t room;
	uint32_t
		unanswered; /* ADDs that took too long: the tracer is busy, so do not wait for it */
	/* Messages that came while waiting for an answer. */
	struct ky_crash_message **early;
	uint32_t early_count, early_room;
	struct ky_crash_message message;
};

/* ---- the list ---- */

static void forget(struct ky_crash_watch *w, struct watched *process)
{
	if (process->pidfd >= 0)
		close(process->pidfd); /* this removes it from the epoll */
	oom_end(&process->memory);
	*process = w->all[--w->count];
}

static struct watched *find(struct ky_crash_watch *w, pid_t pid)
{
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->all[i].pid != pid)
			continue;
		if (w->all[i].ended_ns == 0 || ky_os_boottime() - w->all[i].ended_ns < FORGET_NS)
			return &w->all[i];
		forget(w, &w->all[i]);
		return NULL;
	}
	return NULL;
}

static void forget_old(struct ky_crash_watch *w)
{
	const uint64_t now = ky_os_boottime();
	for (uint32_t i = w->count; i-- > 0;)
		if (w->all[i].ended_ns && now - w->all[i].ended_ns >= FORGET_NS)
			forget(w, &w->all[i]);
}

/* Add a process; NULL without memory. */
static struct watched *make(struct ky_crash_watch *w, pid_t pid)
{
	if (w->count == w->room)
		forget_old(w);
	struct watched *const process = KY_ARRAY_NEW(w->all, w->count, w->room);
	if (process) {
		process->pid = pid;
		process->pidfd = -1;
	}
	return process;
}

/* Note that the tracer or the caller reported the end. Return true when both have, or no tracer will. */
static bool note_end(struct ky_crash_watch *w, struct watched *process)
{
	if (process->ended_ns == 0)
		process->ended_ns = ky_os_boottime();
	return process->ended && (process->status_known || !process->traced || w->socket < 0);
}

/* ---- firing ---- */

static void name_signal(int signal, char *out, size_t room)
{
	const char *name = sigabbrev_np(signal);
	if (name)
		snprintf(out, room, "SIG%s", name);
	else
		snprintf(out, room, "signal %d", signal);
}

static void fire(struct ky_crash_watch *w, const struct ky_crash_message *m, const char *reason)
{
	const struct ky_fired fired = {
		.trigger = w->trigger,
		.time_ns = m->time_ns,
		.pid = m->pid,
		.tid = m->tid,
		.args_count = m->address ? 2 : 1,
		.args = {(uint64_t)m->status, m->address},
		.reason = reason,
		.stack = m->stack[0] ? m->stack : NULL,
	};
	w->fired(w->context, &fired);
}

/* Fire for a signal that the tracer saw before the process died of it. */
static void fire_crash(struct ky_crash_watch *w, const struct ky_crash_message *m)
{
	char name[32], reason[160];
	struct watched *process = find(w, m->pid);
	if (!process)
		process = make(w, m->pid); /* a child that was not added */
	if (process && process->reported && m->other != KY_CRASH_AGAIN)
		return;
	if (process)
		process->reported = true;
	name_signal(m->status, name, sizeof(name));
	int used = snprintf(reason, sizeof(reason), "%s in thread %d", name, (int)m->tid);
	if (m->thread[0])
		used += snprintf(reason + used, sizeof(reason) - (size_t)used, " (%.19s)",
				 m->thread);
	if (m->address)
		used += snprintf(reason + used, sizeof(reason) - (size_t)used, " at address 0x%llx",
				 (unsigned long long)m->address);
	if (m->other == KY_CRASH_HANDLED)
		snprintf(reason + used, sizeof(reason) - (size_t)used,
			 ", before the program's own handler");
	fire(w, m, reason);
}

/* Fire when only the status is known. */
static void fire_end(struct ky_crash_watch *w, struct watched *process, int status,
		     uint64_t time_ns)
{
	char name[32], reason[160];
	if (process->reported || !WIFSIGNALED(status) || !ky_crash_tracer_counts(WTERMSIG(status)))
		return;
	process->reported = true;
	name_signal(WTERMSIG(status), name, sizeof(name));
	const bool memory = WTERMSIG(status) == SIGKILL && oom_grew(&process->memory);
	snprintf(reason, sizeof(reason), "%s%s", name, memory ? ": out of memory" : "");
	const struct ky_crash_message message = {.pid = process->pid,
						 .tid = process->pid,
						 .status = WTERMSIG(status),
						 .time_ns = time_ns};
	fire(w, &message, reason);
}

static void take_end(struct ky_crash_watch *w, const struct ky_crash_message *m)
{
	struct watched *process = find(w, m->pid);
	if (!process)
		process = make(w, m->pid); /* a child that was not added */
	if (!process)
		return;
	process->status_known = true;
	process->status = m->status;
	const bool done = note_end(w, process);
	fire_end(w, process, m->status, m->time_ns);
	process = find(w, m->pid); /* the caller may have added others */
	if (process && done)
		forget(w, process);
}

/* ---- the tracer ---- */

static void lose_tracer(struct ky_crash_watch *w)
{
	if (w->socket >= 0)
		close(w->socket);
	w->socket = -1;
}

/* Receive into w->message; return false when there is no message. */
static bool receive(struct ky_crash_watch *w)
{
	if (w->socket < 0)
		return false;
	const ssize_t bytes = recv(w->socket, &w->message, sizeof(w->message), MSG_DONTWAIT);
	if (bytes > (ssize_t)offsetof(struct ky_crash_message, stack)) {
		((char *)&w->message)[bytes - 1] = '\0';
		return true;
	}
	if (bytes >= 0 || (errno != EAGAIN && errno != EINTR))
		lose_tracer(w);
	return false;
}

static int send_question(const struct ky_crash_watch *w, uint32_t question, pid_t pid)
{
	const struct ky_crash_message message = {.kind = question, .pid = pid};
	const size_t bytes = offsetof(struct ky_crash_message, stack) + 1;
	if (w->socket < 0)
		return -EPIPE;
	return send(w->socket, &message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Nobody waits for this answer any more. A process that was let go of too late is watched again. */
static void take_late(struct ky_crash_watch *w, const struct ky_crash_message *m)
{
	w->unanswered--;
	if (m->kind == KY_CRASH_LEFT && m->status == 0 && find(w, m->pid) &&
	    send_question(w, KY_CRASH_ADD, m->pid) == 0)
		w->unanswered++;
}

static void take_message(struct ky_crash_watch *w, const struct ky_crash_message *m)
{
	if (m->kind == KY_CRASH_CRASHED)
		fire_crash(w, m);
	else if (m->kind == KY_CRASH_ENDED)
		take_end(w, m);
	else if ((m->kind == KY_CRASH_ADDED || m->kind == KY_CRASH_LEFT) && w->unanswered)
		take_late(w, m);
}

/* Keep the message for the next round: nothing fires while the caller adds. */
static void keep_early(struct ky_crash_watch *w)
{
	struct ky_crash_message *const copy = malloc(sizeof(*copy));
	if (copy && KY_ARRAY_ADD(w->early, w->early_count, w->early_room, copy))
		*copy = w->message;
	else
		free(copy);
}

/* Wait for the answer. Return -ETIMEDOUT when it takes too long: then it comes in a round and is ignored. */
static int wait_for(struct ky_crash_watch *w, uint32_t kind, pid_t pid, int32_t *other)
{
	const int wait_ms = ADD_WAIT_MS + (kind == KY_CRASH_LEFT ? (int)KY_CRASH_LEAVE_MS : 0);
	while (w->socket >= 0) {
		struct pollfd poller = {.fd = w->socket, .events = POLLIN};
		if (poll(&poller, 1, w->unanswered ? 0 : wait_ms) == 0) {
			w->unanswered++;
			return -ETIMEDOUT;
		}
		if (!receive(w))
			continue;
		if (w->message.kind == kind && w->message.pid == pid) {
			*other = w->message.other;
			return w->message.status;
		}
		keep_early(w);
	}
	return -EPIPE;
}

static int ask_tracer(struct ky_crash_watch *w, uint32_t question, pid_t pid, int32_t *other)
{
	const int error = send_question(w, question, pid);
	return error ? error
		     : wait_for(w, question == KY_CRASH_ADD ? KY_CRASH_ADDED : KY_CRASH_LEFT, pid,
				other);
}

static int refuse(int error, pid_t pid, int32_t other, char message[KY_MESSAGE_BYTES])
{
	switch (error) {
	case -EBUSY:
		return ky_fail(
			message, error,
			"process %d is already traced by process %d (a debugger?): its crash will be recorded without a stack",
			(int)pid, (int)other);
	case -EPERM:
	case -EACCES:
		return ky_fail(
			message, -EPERM,
			"may not trace process %d: its crash will be recorded without a stack; run kymo as root or as its user, and see "
			"/proc/sys/kernel/yama/ptrace_scope",
			(int)pid);
	case -ESRCH:
	case -ENOENT:
		return ky_fail(message, -ESRCH, "process %d is gone", (int)pid);
	default:
		return ky_fail(
			message, error,
			"cannot trace process %d: %s; its crash will be recorded without a stack",
			(int)pid, strerror(-error));
	}
}

int ky_crash_watch_add(struct ky_crash_watch *w, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	int32_t other = 0;
	struct watched *process = find(w, pid);
	if (process && process->ended_ns) {
		forget(w, process); /* the number belongs to another process now */
		process = NULL;
	}
	if (!process)
		process = make(w, pid);
	if (!process)
		return ky_fail(message, -ENOMEM, "no memory to watch process %d", (int)pid);
	oom_begin(&process->memory, pid);
	if (process->pidfd < 0)
		process->pidfd = ky_proc_pidfd(pid);
	int error = ask_tracer(w, KY_CRASH_ADD, pid, &other);
	if (error == -ETIMEDOUT)
		error = 0; /* it will be added */
	process->traced = error == 0;
	if (error != -ESRCH && error != -ENOENT)
		return error ? refuse(error, pid, other, message) : 0;
	if (process->pidfd >= 0)
		return 0; /* it just ended; its status is still to come */
	forget(w, process);
	return refuse(error, pid, other, message);
}

bool ky_crash_watch_leave(struct ky_crash_watch *w, pid_t pid)
{
	int32_t other = 0;
	struct watched *process = find(w, pid);
	if (!process || !process->traced || process->ended_ns)
		return false;
	if (ask_tracer(w, KY_CRASH_LEAVE, pid, &other) != 0)
		return false;
	process = find(w, pid);
	if (process)
		process->traced = false;
	return process != NULL;
}

/* ---- ends ---- */

/* The status may be known only once its parent has waited for it. */
static void wait_reaped(struct ky_crash_watch *w, struct watched *process)
{
	struct epoll_event event = {.events = 0, .data.u64 = (uint64_t)process->pid};
	if (process->pidfd >= 0)
		(void)epoll_ctl(w->epoll, EPOLL_CTL_ADD, process->pidfd, &event);
}

void ky_crash_watch_ended(struct ky_crash_watch *w, pid_t pid, int status)
{
	struct watched *process = find(w, pid);
	if (!process && status >= 0 && WIFSIGNALED(status))
		process = make(w, pid); /* the tracer may report it as well */
	if (!process)
		return;
	process->ended = true;
	if (status < 0 && process->status_known)
		status = process->status;
	if (status < 0 && process->pidfd >= 0)
		status = ky_proc_pidfd_status(process->pidfd, pid);
	const bool added = process->pidfd >= 0;
	const bool done = note_end(w, process);
	if (status >= 0)
		fire_end(w, process, status, ky_os_boottime());
	process = find(w, pid);
	if (process && status < 0)
		wait_reaped(w, process);
	else if (process && done && added)
		forget(w, process);
}

static void take_reaped(struct ky_crash_watch *w, pid_t pid)
{
	struct watched *process = find(w, pid);
	if (!process || process->pidfd < 0)
		return;
	const int status = ky_proc_pidfd_status(process->pidfd, pid);
	if (status >= 0)
		fire_end(w, process, status, ky_os_boottime());
	process = find(w, pid);
	if (process)
		forget(w, process);
}

void ky_crash_watch_round(struct ky_crash_watch *w)
{
	struct epoll_event events[16];
	for (uint32_t i = 0; i < w->early_count; i++) {
		take_message(w, w->early[i]);
		free(w->early[i]);
	}
	w->early_count = 0;
	const int count = epoll_wait(w->epoll, events, sizeof(events) / sizeof(events[0]), 0);
	for (int i = 0; i < count; i++)
		if (events[i].data.u64)
			take_reaped(w, (pid_t)events[i].data.u64);
	while (receive(w))
		take_message(w, &w->message);
}

/* ---- opening and closing ---- */

static int start_tracer(struct ky_crash_watch *w)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	w->tracer = fork();
	if (w->tracer == 0) {
		close(ends[0]); /* or it would never see its end */
		ky_crash_tracer(ends[1]);
	}
	const int error = w->tracer < 0 ? -errno : 0;
	close(ends[1]);
	w->socket = ends[0];
	return error;
}

int ky_crash_watch_open(struct ky_crash_watch **watch, const struct ky_trigger *triggers,
			uint32_t count, ky_fired_fn fired, void *context)
{
	*watch = NULL;
	struct ky_crash_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->trigger = ky_trigger_find(triggers, count, KY_TRIGGER_CRASH);
	w->fired = fired;
	w->context = context;
	w->socket = -1;
	w->tracer = -1;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	int error = w->epoll < 0 ? -errno : start_tracer(w);
	struct epoll_event event = {.events = EPOLLIN};
	if (error == 0 && epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->socket, &event) != 0)
		error = -errno;
	if (error) {
		ky_crash_watch_close(&w);
		return error;
	}
	*watch = w;
	return 0;
}

void ky_crash_watch_close(struct ky_crash_watch **watch)
{
	struct ky_crash_watch *w = *watch;
	if (!w)
		return;
	*watch = NULL;
	lose_tracer(w);
	/* When the tracer is gone, nothing is traced any more. It may be reading a stack that is no longer wanted. */
	if (w->tracer > 0)
		kill(w->tracer, SIGKILL);
	while (w->tracer > 0 && waitpid(w->tracer, NULL, 0) < 0 && errno == EINTR)
		;
	while (w->count)
		forget(w, &w->all[0]);
	for (uint32_t i = 0; i < w->early_count; i++)
		free(w->early[i]);
	KY_ARRAY_FREE(w->early, w->early_room);
	KY_ARRAY_FREE(w->all, w->room);
	if (w->epoll >= 0)
		close(w->epoll);
	free(w);
}

pid_t ky_crash_watch_tracer(const struct ky_crash_watch *w)
{
	return w->tracer;
}

int ky_crash_watch_fd(const struct ky_crash_watch *w)
{
	return w->epoll;
}
