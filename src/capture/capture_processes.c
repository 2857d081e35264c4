/* SPDX-License-Identifier: MIT */
/*
 * capture_processes.c: the processes of a capture: what is set on one that appears, and its drums.
 *
 * Samples and kernel events are inherited by children, drums come by themselves, and probes and the
 * crash watch are set on each process. A process may be gone before anything is set on it: that is
 * no error.
 */
#include "capture/capture_parts.h"
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
#define UNFINISHED_TRIES 100
#define DRUMS_TOLD_MAX 100u
#define PROBE_FIRST_NS (1 * MILLISECOND)
#define PROBE_LAST_NS (500 * MILLISECOND)
#define PROBE_TELL_NS (1000 * MILLISECOND)

/* The same line again and again, for each process and each try, is of no use. */
void ky_capture_note_probes(struct ky_capture *capture, const char *line)
{
	if (!line[0] || capture->probes_told)
		return;
	capture->probes_told = true;
	ky_capture_note(capture, "%s", line);
}

void ky_capture_add_probes(struct ky_capture *capture, pid_t pid)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (!capture->probes)
		return;
	const int placed = ky_probes_add(capture->probes, pid, message);
	if (placed > 0 && !capture->probes_placed)
		ky_capture_note_probes(capture, ky_probes_why(capture->probes));
	capture->probes_placed |= placed > 0;
	const bool may_come = placed == -ENOENT || placed == -ESRCH;
	/* Libraries may still be loaded; after a while it is said what is missing. */
	if (!may_come || ky_capture_now() > capture->begin_ns + PROBE_TELL_NS)
		ky_capture_note_probes(capture, message);
	else if (placed == -ENOENT)
		memcpy(capture->probes_missing, message, sizeof(message));
}

void ky_capture_tell_missing(struct ky_capture *capture)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	const struct ky_capture_options *const o = capture->options;
	const pid_t pid = o->pids_count ? o->pids[0] : capture->child.pid;
	if (!capture->probes || !capture->probes_placed || capture->missing_told)
		return;
	capture->missing_told = true;
	for (uint32_t at = 0; ky_probes_missing(capture->probes, &at, pid, message);)
		ky_capture_note(capture, "%s", message);
}

void ky_capture_add_crash_watch(struct ky_capture *capture, pid_t pid)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (!capture->crash)
		return;
	const int error = ky_crash_watch_add(capture->crash, pid, message);
	if (error && error != -ESRCH && message[0])
		ky_capture_note(capture, "%s", message);
}

/* Returns when the process began, in ns of CLOCK_BOOTTIME; UINT64_MAX: unknown. */
static uint64_t process_began(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 ? stat.started_ns : UINT64_MAX;
}

/*
 * Samples and kernel events are inherited by children that come; those that were there are not
 * children to come.
 */
static void add_existing(struct ky_capture *capture, pid_t pid)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (capture->options->scope == KY_PROCESSES_ALL)
		return;
	if (capture->kernel)
		ky_kernel_trace_add(capture->kernel, pid);
	if (capture->samples) {
		const int error = ky_stack_samples_add(capture->samples, pid, false, message);
		if (error && error != -ESRCH)
			ky_capture_note(capture, "%s", message);
	}
	/* A child that comes brings its parent's jumps and writes into its drum. */
	const int error = ky_capture_add_functions(capture, pid, message);
	if (error && error != -ESRCH)
		ky_capture_note(capture, "%s", message);
}

void ky_capture_appeared(void *context, pid_t pid)
{
	struct ky_capture *const capture = context;
	/* The program is not itself yet; ky_capture_start() does it. */
	if (pid == capture->child.pid)
		return;
	if (process_began(pid) < capture->begin_ns)
		add_existing(capture, pid);
	ky_capture_add_probes(capture, pid);
	ky_capture_add_crash_watch(capture, pid);
}

/* False when it was known: it has several drums. */
static bool remember_recorded(struct ky_capture *capture, pid_t pid)
{
	for (uint32_t i = 0; i < capture->recorded_count; i++) {
		if (capture->recorded[i] == pid)
			return false;
	}
	if (capture->recorded_count == capture->recorded_room) {
		const uint32_t room = capture->recorded_room ? capture->recorded_room * 2 : 16;
		pid_t *const grown = realloc(capture->recorded, room * sizeof(*grown));
		if (!grown)
			return true;
		capture->recorded = grown;
		capture->recorded_room = room;
	}
	capture->recorded[capture->recorded_count++] = pid;
	return true;
}

/* One line for each of a few: there may be thousands of processes. */
static void tell_drum(struct ky_capture *capture, const char *line)
{
	if (!line[0] || capture->drums_told > DRUMS_TOLD_MAX)
		return;
	if (capture->drums_told++ < DRUMS_TOLD_MAX)
		ky_capture_note(capture, "%s", line);
	else
		ky_capture_note(capture, "of more drums the like is not told");
}

static int add_drum(struct ky_capture *capture, pid_t pid, int fd, bool made)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	const int added = made ? ky_drums_add_made(capture->drums, fd, pid, message)
			       : ky_drums_add(capture->drums, fd, pid, message);
	if (added == -EAGAIN)
		return added;
	tell_drum(capture, message);
	if (added == 0 && remember_recorded(capture, pid))
		capture->facts->drums++;
	return added;
}

/* One that is still being made is tried again, for a while. */
static void keep_unfinished(struct ky_capture *capture, pid_t pid, int fd)
{
	for (uint32_t i = 0; i < KY_CAPTURE_UNFINISHED; i++) {
		struct ky_unfinished *const one = &capture->unfinished[i];
		if (one->pid)
			continue;
		*one = (struct ky_unfinished){.pid = pid, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)};
		if (one->fd >= 0)
			return;
		one->pid = 0;
		break;
	}
	capture->drums_refused = true;
}

void ky_capture_drum(void *context, pid_t pid, int fd)
{
	struct ky_capture *const capture = context;
	if (capture->drums && add_drum(capture, pid, fd, false) == -EAGAIN)
		keep_unfinished(capture, pid, fd);
}

void ky_capture_made_drum(void *context, pid_t pid, int fd)
{
	struct ky_capture *const capture = context;
	if (capture->drums)
		(void)add_drum(capture, pid, fd, true);
}

static bool has_recorded(const struct ky_capture *capture, pid_t pid)
{
	for (uint32_t i = 0; i < capture->recorded_count; i++) {
		if (capture->recorded[i] == pid)
			return true;
	}
	return false;
}

void ky_capture_child(void *context, pid_t pid)
{
	struct ky_capture *const capture = context;
	bool made = false;
	if (!has_recorded(capture, pid) && ky_u64_map_add(&capture->children, (uint64_t)pid, &made))
		capture->facts->drums += made;
}

/* Of those that have a drum of their own, others tell. What it did last is read first. */
void ky_capture_child_ended(void *context, pid_t pid)
{
	struct ky_capture *const capture = context;
	if ((!capture->watch && !capture->on_exit) || has_recorded(capture, pid))
		return;
	if (capture->drums)
		ky_drums_ended(capture->drums, pid);
	ky_capture_child_ends(capture, pid);
}

static void forget_unfinished(struct ky_unfinished *one)
{
	close(one->fd);
	*one = (struct ky_unfinished){0};
}

void ky_capture_try_drums(struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_CAPTURE_UNFINISHED; i++) {
		struct ky_unfinished *const one = &capture->unfinished[i];
		if (one->pid && (add_drum(capture, one->pid, one->fd, false) != -EAGAIN ||
				 ++one->tries == UNFINISHED_TRIES))
			forget_unfinished(one);
	}
}

/* The program's libraries come one by one: what has no place yet may get one. */
void ky_capture_probe(struct ky_capture *capture, uint64_t now)
{
	if (!capture->probes || now < capture->probes_ns)
		return;
	uint64_t *const wait = &capture->probes_wait_ns;
	*wait = !*wait ? PROBE_FIRST_NS : *wait * 2 < PROBE_LAST_NS ? *wait * 2 : PROBE_LAST_NS;
	capture->probes_ns = now + *wait;
	for (uint32_t i = 0; i < ky_processes_count(capture->processes); i++)
		ky_capture_add_probes(capture, ky_processes_pid(capture->processes, i));
	if (now > capture->begin_ns + PROBE_TELL_NS)
		ky_capture_tell_missing(capture);
}

void ky_capture_forget_processes(struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_CAPTURE_UNFINISHED; i++) {
		if (capture->unfinished[i].pid)
			forget_unfinished(&capture->unfinished[i]);
	}
	free(capture->recorded);
	ky_u64_map_free(&capture->children);
}
