/* SPDX-License-Identifier: MIT */
/*
 * functrace_exec.c: processes that call exec: wrappers, shells, `env`, and their children. The jumps are gone with
 * the old program, and the new one is patched as a process that runs already: its first moments are missing, and a
 * note says so.
 *
 * The kernel gives each program that it starts a vector of facts (/proc/PID/auxv), with addresses that are random
 * each time: another vector is another program. kymo waits a while before it patches the program: its loader is at
 * work, and the next exec may come.
 */
#include "base/clock.h"
#include "functrace/functrace_parts.h"
#include "process/proc.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
#define LOOK_EVERY_NS (10 * MILLISECOND)
#define SETTLE_NS (20 * MILLISECOND)
#define TELL_MAX 4u

uint64_t ky_functrace_image(pid_t pid)
{
	struct ky_proc_aux vector[KY_PROC_AUX_MAX];
	uint64_t image = 0;
	const uint32_t count = ky_proc_auxv(pid, vector);
	for (uint32_t i = 0; i < count; i++) {
		image = (image ^ vector[i].key) * UINT64_C(0x9e3779b97f4a7c15);
		image = (image ^ vector[i].value) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return image;
}

/* Pass a line on, up to a limit: a program that starts others may start very many. */
static void tell(struct ky_functrace *functrace, const char *line)
{
	const uint32_t told = functrace->executed_told++;
	if (told < TELL_MAX)
		ky_functrace_note(functrace, "%s", line);
	else if (told == TELL_MAX)
		ky_functrace_note(
			functrace,
			"more programs are executed; further messages of this kind are suppressed");
}

static void patch_again(struct ky_functrace *functrace, struct ky_functrace_process *process)
{
	char message[KY_FUNCTRACE_MESSAGE_BYTES] = "", path[PATH_MAX];
	char line[KY_FUNCTRACE_MESSAGE_BYTES];
	(void)ky_proc_exe(process->pid, path, sizeof(path));
	process->again_ns = 0;
	const int error = ky_functrace_begin_patch(functrace, functrace->engine, process->pid,
						   &process->patch, message);
	/* it has ended */
	if (error && !ky_functrace_image(process->pid))
		return;
	if (!error)
		snprintf(line, sizeof(line),
			 "process %ld has executed %.200s: its functions are traced from here on, "
			 "not its first moments",
			 (long)process->pid, path);
	else
		snprintf(line, sizeof(line),
			 "process %ld has executed %.100s, whose functions are not traced: %.250s",
			 (long)process->pid, path, message);
	tell(functrace, line);
}

void ky_functrace_executed(struct ky_functrace_process *process)
{
	process->again_ns = (uint64_t)ky_clock_monotonic() + SETTLE_NS;
}

static void look_at(struct ky_functrace *functrace, struct ky_functrace_process *process,
		    uint64_t now)
{
	if (!process->image)
		return;
	const uint64_t image = ky_functrace_image(process->pid);
	if (image && image != process->image) {
		ky_functrace_close_patch(functrace, process, true);
		process->image = image;
		ky_functrace_executed(process);
	} else if (image && process->again_ns && now >= process->again_ns) {
		patch_again(functrace, process);
	}
}

/* Report whether it is a child that has ended; other processes keep their reports. */
static bool is_forgotten(const struct ky_functrace_process *process)
{
	return !process->patch && kill(process->pid, 0) != 0 && errno == ESRCH;
}

void ky_functrace_follow_exec(struct ky_functrace *functrace)
{
	const uint64_t now = (uint64_t)ky_clock_monotonic();
	if (now - functrace->looked_ns < LOOK_EVERY_NS ||
	    (functrace->engine != KY_FUNCTRACE_PATCH && functrace->engine != KY_FUNCTRACE_NOPS))
		return;
	functrace->looked_ns = now;
	for (uint32_t i = functrace->count; i-- > 0;) {
		if (is_forgotten(&functrace->processes[i]))
			functrace->processes[i] = functrace->processes[--functrace->count];
		else
			look_at(functrace, &functrace->processes[i], now);
	}
}
