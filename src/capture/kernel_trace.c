/* SPDX-License-Identifier: MIT */
/*
 * kernel_trace.c: a capture of the kernel's events, from creating the instance to removing it.
 *
 *   make the instance, tracing off ─▶ clock, size, options ─▶ pids ─▶ rings ─▶ events on ─▶ tracing on ─▶ formats, tasks
 *   rounds, windows
 *   tracing off ─▶ the last pages ─▶ names, losses ─▶ close the rings ─▶ remove the instance
 *
 * The rings are open before anything can be recorded, so that no other kymo mistakes the instance for one that was left.
 * Tasks are listed after the events are on: a task that starts in between is in one or in both.
 *
 * trace_marker: programs write to the one of the top level. Since Linux 6.15 an instance can have a copy of it
 * (options/copy_trace_marker), which others do not notice. Before, only the top level's own buffer has it, and reading
 * that would take the lines away from others: kymo does not, and reports it.
 */
#include "capture/kernel_trace.h"

#include "capture/kernel_events.h"
#include "capture/recorder_slot.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <tracefs/tracefs.h>
#include <unistd.h>

#define BUFFER_BYTES_DEFAULT (4u << 20)
/* The kernel's PID_MAX_LIMIT: no task has this number. */
#define NOBODY "4194304"

/* ---- the instance, and who removes it when kymo is killed ---- */

#define PLACE "/sys/kernel/tracing"
#define INSTANCES_MAX 64

/* A process that removes the instance when kymo is killed. */
struct instance_guard {
	pid_t pid; /* 0: none */
	int fd;    /* its end tells the guard that kymo is gone */
};

static const char remedy[] =
	"run as root, or give your group access: sudo mount -o remount,gid=$(id -g),mode=0770 " PLACE;

/* Before 4.1 tracefs was in debugfs, and many still have it there. libtracefs would mount it, which kymo must not. */
static const char *find_tracefs(void)
{
	static const char *const places[] = {PLACE, "/sys/kernel/debug/tracing"};
	struct statfs about;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (statfs(places[i], &about) == 0 && about.f_type == TRACEFS_MAGIC)
			return places[i];
	return NULL;
}

static int set_tracefs(char message[KY_MESSAGE_BYTES])
{
	const char *place = find_tracefs();
	char path[PATH_MAX];
	tracefs_set_loglevel(TEP_LOG_NONE);
	if (!place)
		return ky_fail(
			message, -ENODEV,
			"tracefs is not mounted; mount it: sudo mount -t tracefs tracefs " PLACE);
	snprintf(path, sizeof(path), "%s/instances", place);
	if (access(path, W_OK | X_OK) != 0) {
		const int error = -errno;
		return ky_fail(message, error, "cannot write to %s: %s; %s", path, strerror(-error),
			       remedy);
	}
	snprintf(path, sizeof(path), "%s", place);
	return tracefs_set_tracing_dir(path) == 0 ? 0 : -ENOMEM;
}

/*
 * Report whether a kymo that has ended made the instance. One of another container is left alone: its pid means another
 * process here, or none.
 */
static bool is_left_over(const char *name, const struct ky_recorder_slot_owner *own)
{
	struct ky_recorder_slot_owner maker = {0};
	int used = 0;
	if (sscanf(name, "kymo-%" SCNu32 "-%" SCNu64 "-%" SCNx64 "%n", &maker.pid,
		   &maker.started_ns, &maker.namespaces, &used) != 3 ||
	    (name[used] != '\0' && name[used] != '-'))
		return false;
	return ky_recorder_slot_is_over(&maker, own);
}

/* Call each() with the path of every instance; return the sum of its results. */
static uint32_t each_left_over(bool (*each)(const char *path))
{
	char path[PATH_MAX];
	uint32_t sum = 0;
	const struct ky_recorder_slot_owner own = ky_recorder_slot_self();
	const char *place = find_tracefs();
	if (!place)
		return 0;
	snprintf(path, sizeof(path), "%s/instances", place);
	DIR *open = opendir(path);
	const struct dirent *entry;
	while (open && (entry = readdir(open)))
		if (is_left_over(entry->d_name, &own) &&
		    snprintf(path, sizeof(path), "%s/instances/%s", place, entry->d_name) <
			    PATH_MAX)
			sum += each(path);
	if (open)
		closedir(open);
	return sum;
}

static bool remove_one(const char *path)
{
	return rmdir(path) == 0;
}

static bool count_one(const char *path)
{
	(void)path;
	return true;
}

uint32_t ky_kernel_trace_clean(void)
{
	return each_left_over(remove_one);
}

uint32_t ky_kernel_trace_left_over(void)
{
	return each_left_over(count_one);
}

static int make_instance(struct tracefs_instance **out, char message[KY_MESSAGE_BYTES])
{
	const struct ky_recorder_slot_owner own = ky_recorder_slot_self();
	struct tracefs_instance *instance = NULL;
	char name[96];
	*out = NULL;
	for (int i = 0; i < INSTANCES_MAX && !*out; i++) {
		int used = snprintf(name, sizeof(name), "kymo-%" PRIu32 "-%" PRIu64 "-%" PRIx64,
				    own.pid, own.started_ns, own.namespaces);
		if (i)
			snprintf(name + used, sizeof(name) - (size_t)used, "-%d", i);
		errno = 0;
		instance = tracefs_instance_create(name);
		/* An instance that exists already belongs to another capture of this process. */
		if (instance && tracefs_instance_is_new(instance))
			*out = instance;
		else if (instance)
			tracefs_instance_free(instance);
		else
			break;
	}
	if (!*out) {
		const int error = errno ? -errno : -EBUSY;
		return ky_fail(message, error, "cannot create tracefs's instances/%s: %s; %s", name,
			       strerror(-error), remedy);
	}
	return ky_kernel_trace_set(*out, "tracing_on", "0", message);
}

static void remove_instance(struct tracefs_instance **instance)
{
	if (!*instance)
		return;
	(void)tracefs_instance_destroy(*instance);
	tracefs_instance_free(*instance);
	*instance = NULL;
}

int ky_kernel_trace_set(struct tracefs_instance *instance, const char *file, const char *value,
			char message[KY_MESSAGE_BYTES])
{
	errno = 0;
	if (tracefs_instance_file_write(instance, file, value) >= 0)
		return 0;
	const int error = errno ? -errno : -EIO;
	return ky_fail(message, error, "cannot write \"%s\" to %s: %s%s", value, file,
		       strerror(-error),
		       error == -ENOMEM ? "; use a smaller buffer (--kernel-buffer)" : "");
}

/*
 * ---- the guard ----
 *
 * An instance keeps recording when the process that made it is killed. The guard is a process that waits at a pipe which
 * only kymo can write to; when that ends, it removes the instance.
 *
 *   kymo ── pipe, never written to ──▶ guard: read() ends ─▶ rmdir, until kymo's files are closed
 *
 * It keeps nothing of kymo's open and is in no terminal's session. If it is killed too, the next kymo cleans up.
 */

#define TRIES 1000
#define PAUSE_NS 10000000

static _Noreturn void guard(const int ends[2], const char *path)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	sigset_t all;
	char none;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "kymo-guard");
	close(ends[1]);
	(void)dup2(ends[0], STDIN_FILENO);
	(void)close_range(STDIN_FILENO + 1, ~0U, 0);
	while (read(STDIN_FILENO, &none, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < TRIES && rmdir(path) != 0 && errno == EBUSY; i++)
		(void)nanosleep(&pause, NULL);
	_exit(0);
}

static void start_guard(struct instance_guard *out, struct tracefs_instance *instance)
{
	int ends[2];
	*out = (struct instance_guard){.fd = -1};
	char *path = tracefs_instance_get_dir(instance);
	if (path && pipe2(ends, O_CLOEXEC) == 0) {
		const pid_t pid = fork();
		if (pid == 0)
			guard(ends, path);
		close(ends[0]);
		if (pid > 0)
			*out = (struct instance_guard){.pid = pid, .fd = ends[1]};
		else
			close(ends[1]);
	}
	tracefs_put_tracing_file(path);
}

static void end_guard(struct instance_guard *guard)
{
	if (guard->pid <= 0)
		return;
	close(guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*guard = (struct instance_guard){.fd = -1};
}

/* ---- the trace ---- */

struct ky_kernel_trace {
	struct tracefs_instance *instance;
	struct instance_guard guard;
	struct ky_kernel_events events;
	struct ky_kernel_stream stream;
	struct ky_kernel_pages *pages;
	bool flight;
	bool filtered; /* by pids */
};

/* ---- processes ---- */

/* Return the threads of a process, each followed by a blank, to be freed; NULL when there are none. */
static char *list_threads(pid_t pid, size_t *bytes)
{
	char *text = NULL;
	DIR *const tasks = ky_proc_tasks(pid);
	FILE *to = tasks ? open_memstream(&text, bytes) : NULL;
	for (pid_t tid; to && (tid = ky_proc_next(tasks)) > 0;)
		fprintf(to, "%d ", (int)tid);
	ky_proc_close(tasks);
	if (to && fclose(to) == 0 && *bytes)
		return text;
	free(text);
	return NULL;
}

/*
 * The kernel filters by threads. A thread that a listed thread makes is added by the kernel (event-fork); one made
 * before is found by looking again. Write all at once: each write waits for all CPUs.
 */
static void add_threads(int fd, pid_t pid)
{
	size_t before = 0;
	size_t bytes = 0;
	char *text;
	while ((text = list_threads(pid, &bytes)) && bytes > before) {
		const ssize_t done = write(fd, text, bytes);
		before = done < 0 ? SIZE_MAX : bytes;
		free(text);
	}
	free(text);
}

static void write_pids(const struct ky_kernel_trace *trace)
{
	if (trace->filtered && trace->stream.part)
		ky_kernel_events_pids(&trace->stream, trace->instance);
}

void ky_kernel_trace_add(struct ky_kernel_trace *trace, pid_t pid)
{
	if (!trace->filtered)
		return;
	/* Without O_TRUNC the list keeps its entries. */
	const int fd = tracefs_instance_file_open(trace->instance, "set_event_pid",
						  O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return;
	add_threads(fd, pid);
	close(fd);
	write_pids(trace);
}

static int set_pids(struct ky_kernel_trace *trace, const struct ky_kernel_trace_options *options,
		    char message[KY_MESSAGE_BYTES])
{
	if (!options->pids)
		return 0;
	int error = ky_kernel_trace_set(trace->instance, "options/event-fork", "1", message);
	/* An empty list would mean all. */
	if (!error)
		error = ky_kernel_trace_set(trace->instance, "set_event_pid", NOBODY, message);
	trace->filtered = true;
	for (uint32_t i = 0; i < options->pids_count && !error; i++)
		ky_kernel_trace_add(trace, options->pids[i]);
	return error;
}

/* ---- setting up ---- */

static int set_buffer(struct ky_kernel_trace *trace, const struct ky_kernel_trace_options *options,
		      char message[KY_MESSAGE_BYTES])
{
	const uint64_t bytes = options->buffer_bytes ? options->buffer_bytes : BUFFER_BYTES_DEFAULT;
	char kilobytes[32];
	snprintf(kilobytes, sizeof(kilobytes), "%llu",
		 (unsigned long long)(bytes < 1024 ? 1 : bytes / 1024));
	int error = ky_kernel_trace_set(trace->instance, "trace_clock", "boot", message);
	if (!error)
		error = ky_kernel_trace_set(trace->instance, "buffer_size_kb", kilobytes, message);
	if (!error)
		error = ky_kernel_trace_set(trace->instance, "options/overwrite", "1", message);
	/* Since 4.20; without it the timer of the pages is enough. */
	(void)ky_kernel_trace_set(trace->instance, "buffer_percent", "25", NULL);
	return error;
}

static int set_print(struct ky_kernel_trace *trace, char message[KY_MESSAGE_BYTES])
{
	if (!trace->events.print ||
	    ky_kernel_trace_set(trace->instance, "options/copy_trace_marker", "1", NULL) == 0)
		return 0;
	trace->events.print = false;
	return ky_fail(
		message, trace->events.count ? 0 : -ENOTSUP,
		"trace_marker is not recorded: this kernel has no copy_trace_marker (Linux 6.15)");
}

/* Record the rest, and report what failed in the message. */
static void note_failed(const struct ky_kernel_trace *trace, char message[KY_MESSAGE_BYTES])
{
	const struct ky_kernel_event *first = NULL;
	uint32_t failed = 0;
	for (uint32_t i = 0; i < trace->events.count; i++) {
		if (!trace->events.events[i].failed)
			continue;
		first = first ? first : &trace->events.events[i];
		failed++;
	}
	if (first)
		(void)ky_fail(message, 0,
			      "%u of %u kernel events cannot be switched on, the first is %s:%s",
			      failed, trace->events.count, first->system, first->name);
}

static void write_stats(const struct ky_kernel_trace *trace)
{
	for (uint32_t i = 0; i < ky_kernel_pages_cpus(trace->pages) && !trace->flight; i++)
		ky_kernel_events_stats(&trace->stream, trace->instance,
				       ky_kernel_pages_cpu(trace->pages, i));
}

static void restate(void *context, uint32_t part)
{
	struct ky_kernel_trace *trace = context;
	trace->stream.part = part;
	write_pids(trace);
	ky_kernel_events_formats(&trace->stream, trace->instance, &trace->events);
	ky_kernel_events_tasks(&trace->stream);
	write_stats(trace);
}

static int start(struct ky_kernel_trace *trace, const struct ky_kernel_trace_options *options,
		 char message[KY_MESSAGE_BYTES])
{
	const struct ky_kernel_pages_options pages = {
		.stream = &trace->stream,
		.flight = options->flight,
		.before_ns = options->before_ns,
	};
	int error = make_instance(&trace->instance, message);
	if (trace->instance)
		start_guard(&trace->guard, trace->instance);
	if (!error)
		error = set_buffer(trace, options, message);
	if (!error)
		error = ky_kernel_pages_open(&trace->pages, trace->instance, &pages, message);
	if (!error)
		error = set_pids(trace, options, message);
	if (!error)
		error = set_print(trace, message);
	if (!error)
		error = ky_kernel_events_enable(&trace->events, trace->instance, message);
	if (error)
		return error;
	trace->stream.part =
		ky_bundle_stream(options->bundle, KY_KYMO_STREAM_FTRACE, restate, trace);
	if (!trace->stream.part)
		return ky_fail(message, -EIO, "the output file failed");
	error = ky_kernel_trace_set(trace->instance, "tracing_on", "1", message);
	if (!error)
		restate(trace, trace->stream.part);
	return error;
}

static void free_trace(struct ky_kernel_trace *trace)
{
	ky_kernel_pages_close(&trace->pages);
	remove_instance(&trace->instance);
	end_guard(&trace->guard);
	ky_kernel_events_free(&trace->events);
	free(trace);
}

int ky_kernel_trace_open(struct ky_kernel_trace **out,
			 const struct ky_kernel_trace_options *options,
			 char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	(void)ky_fail(message, 0, "%s", "");
	int error = set_tracefs(message);
	if (error)
		return error;
	(void)ky_kernel_trace_clean();
	struct ky_kernel_trace *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return ky_fail(message, -ENOMEM, "not enough memory");
	trace->stream.bundle = options->bundle;
	trace->flight = options->flight;
	error = ky_kernel_events_select(&trace->events, options->events, options->events_count,
					message);
	if (!error)
		error = start(trace, options, message);
	if (error) {
		free_trace(trace);
		return error;
	}
	note_failed(trace, message);
	*out = trace;
	return 0;
}

/* ---- running ---- */

int ky_kernel_trace_fd(const struct ky_kernel_trace *trace)
{
	return ky_kernel_pages_fd(trace->pages);
}

void ky_kernel_trace_round(struct ky_kernel_trace *trace, bool all)
{
	ky_kernel_pages_round(trace->pages, all);
}

void ky_kernel_trace_window(struct ky_kernel_trace *trace, uint64_t from_ns, uint64_t to_ns)
{
	/* Thread ids may be others' by now than when the capture began. */
	ky_kernel_events_tasks(&trace->stream);
	write_pids(trace);
	ky_kernel_pages_round(trace->pages, true);
	ky_kernel_pages_window(trace->pages, from_ns, to_ns);
}

static uint64_t lost_on(struct tracefs_instance *instance, uint32_t cpu)
{
	static const char *const keys[] = {
		"\noverrun: ", "\ncommit overrun: ", "\ndropped events: "};
	char path[64];
	int bytes = 0;
	uint64_t lost = 0;
	snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	char *text = tracefs_instance_file_read(instance, path, &bytes);
	for (size_t i = 0; text && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *found = strstr(text, keys[i]);
		lost += found ? strtoull(found + strlen(keys[i]), NULL, 10) : 0;
	}
	free(text);
	return lost;
}

void ky_kernel_trace_facts(const struct ky_kernel_trace *trace, struct ky_kernel_trace_facts *facts)
{
	*facts = (struct ky_kernel_trace_facts){.pages = ky_kernel_pages_taken(trace->pages),
						.lost = ky_kernel_pages_dropped(trace->pages)};
	for (uint32_t i = 0; i < ky_kernel_pages_cpus(trace->pages); i++)
		facts->lost += lost_on(trace->instance, ky_kernel_pages_cpu(trace->pages, i));
	for (uint32_t i = 0; i < trace->events.count; i++)
		facts->events += !trace->events.events[i].failed;
	facts->events += trace->events.print;
}

void ky_kernel_trace_close(struct ky_kernel_trace **out)
{
	struct ky_kernel_trace *trace = *out;
	*out = NULL;
	if (!trace)
		return;
	(void)ky_kernel_trace_set(trace->instance, "tracing_on", "0", NULL);
	if (!trace->flight)
		ky_kernel_pages_round(trace->pages, true);
	ky_kernel_events_tasks(&trace->stream);
	ky_kernel_events_comms(&trace->stream);
	write_pids(trace);
	write_stats(trace);
	free_trace(trace);
}
