/* SPDX-License-Identifier: MIT */
/*
 * functrace.c: see functrace.h: processes, rounds, facts, and processes that call exec.
 *
 * Wrappers, shells, `env` and their children call exec. The jumps are gone with the old program, and the new one is
 * patched as a process that runs already: its first moments are missing, and a note says so. The kernel gives each
 * program that it starts a vector of facts (/proc/PID/auxv), with addresses that are random each time: another vector
 * is another program. kymo waits a while before it patches the program: its loader is at work, and the next exec may
 * come.
 */
#include "functrace/functrace.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "functrace/off_cpu.h"
#include "functrace/pt.h"
#include "functrace/stack_spans.h"
#include "process/proc.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_PER_SECOND 1000u
#define GENERATIONS 64
#define LATE_TRIES 200
#define LATE_NS 10000000
/* A switch is two words: a thread that does nothing else keeps some seconds of them. */
#define SWITCHES_RING_BYTES (UINT64_C(1) << 20)
#define MILLISECOND UINT64_C(1000000)
#define LOOK_EVERY_NS (10 * MILLISECOND)
#define SETTLE_NS (20 * MILLISECOND)
#define LINES_MAX 4u

const char *ky_functrace_engine_name(enum ky_functrace_engine engine)
{
	static const char *const names[] = {"auto", "pt", "nops", "patch", "sample"};
	return names[engine];
}

__attribute__((format(printf, 2, 3))) static void note(const struct ky_functrace *functrace,
						       const char *format, ...)
{
	char line[KY_MESSAGE_BYTES];
	va_list list;
	if (!functrace->options.note)
		return;
	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	functrace->options.note(functrace->options.context, line);
}

/* ---- open and close ---- */

int ky_functrace_open(struct ky_functrace **out, const struct ky_functrace_options *options,
		      char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	struct ky_functrace *const functrace = calloc(1, sizeof(*functrace));
	if (!functrace)
		return ky_fail(message, -ENOMEM, "functions: out of memory");
	functrace->options = *options;
	const int error = ky_selection_parse(&functrace->selection, options->functions,
					     options->min_bytes, message);
	if (error) {
		free(functrace);
		return error;
	}
	functrace->options.selection = functrace->selection;
	*out = functrace;
	return 0;
}

static void add_facts(struct ky_patch_facts *sum, const struct ky_patch_facts *facts)
{
	sum->modules += facts->modules;
	sum->functions += facts->functions;
	sum->patched += facts->patched;
	for (int why = 0; why < KY_WHY_COUNT; why++)
		sum->left_out[why] += facts->left_out[why];
	if (!sum->entry_only[0])
		memcpy(sum->entry_only, facts->entry_only, sizeof(sum->entry_only));
	sum->hot += facts->hot;
	sum->calls += facts->calls;
	sum->analysed_ns += facts->analysed_ns;
	sum->stopped_ns += facts->stopped_ns;
	sum->unstopped_ns += facts->unstopped_ns;
}

/* Keep the names, which belong to the patch that is about to end. */
static void keep_hot(struct ky_functrace *functrace, const struct ky_patch *patch)
{
	struct ky_patch_hot hot;
	for (uint32_t i = 0; ky_patch_hot(patch, i, &hot); i++) {
		hot.name = strdup(hot.name);
		if (!hot.name)
			return;
		if (!KY_ARRAY_ADD(functrace->hot, functrace->hot_count, functrace->hot_room, hot)) {
			free((char *)hot.name);
			return;
		}
	}
}

/*
 * Close a patch. The facts reported are those of when the process was last seen: afterwards nothing is patched. The
 * coverage of a process that has ended is taken over with its calls.
 */
static void close_patch(struct ky_functrace *functrace, struct ky_functrace_process *process,
			bool gone)
{
	struct ky_patch_facts before = {0}, after = {0};
	if (!process->patch)
		return;
	keep_hot(functrace, process->patch);
	ky_patch_facts(process->patch, &before);
	ky_patch_close(&process->patch, gone, &after);
	if (after.calls > before.calls)
		before.calls = after.calls;
	before.unstopped_ns = after.unstopped_ns;
	add_facts(&functrace->past, &before);
}

/* Release late threads: kymo's next work may take long, and no thread should stay stopped for it. */
static void release_late(void)
{
	for (int i = 0; i < LATE_TRIES && ky_patch_release_late(); i++)
		nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
}

struct restoring {
	void (*say)(void *context, const char *line);
	void *context;
};

static void on_child(void *context, pid_t pid, int error, const char *message)
{
	const struct restoring *const restoring = context;
	char line[KY_MESSAGE_BYTES];
	if (error >= 0)
		return;
	snprintf(line, sizeof(line),
		 "cannot restore process %ld, a child of a traced process: %.250s; run kymo attach "
		 "-p %ld --functions",
		 (long)pid, message, (long)pid);
	restoring->say(restoring->context, line);
}

void ky_functrace_restore_children(const struct ky_functrace_facts *facts,
				   void (*say)(void *context, const char *line), void *context)
{
	struct restoring restoring = {say, context};
	char line[KY_MESSAGE_BYTES];
	bool whole;
	if (!facts->children_since)
		return;
	const uint32_t living =
		ky_patch_close_children(facts->children_since, on_child, &restoring, &whole);
	if (living && facts->orphaned) {
		snprintf(line, sizeof(line), "%u forked %s on, and %s no longer traced", living,
			 living == 1 ? "process goes" : "processes go", living == 1 ? "is" : "are");
		say(context, line);
	}
	if (!whole)
		say(context,
		    "children of traced processes may still be traced: looking at all processes "
		    "took too long; run kymo attach -p PID --functions for each");
	release_late();
}

void ky_functrace_close(struct ky_functrace **out, struct ky_functrace_facts *facts)
{
	struct ky_functrace *const functrace = *out;
	struct ky_stack_spans_facts samples = {0};
	*out = NULL;
	if (!functrace)
		return;
	bool orphaned = true;
	for (uint32_t i = 0; i < functrace->count; i++) {
		orphaned = orphaned && !functrace->processes[i].patch;
		close_patch(functrace, &functrace->processes[i], false);
	}
	release_late();
	if (functrace->samples)
		ky_stack_spans_close(&functrace->samples, &samples);
	if (functrace->pt)
		ky_pt_close(&functrace->pt);
	if (functrace->switches)
		ky_off_cpu_close(&functrace->switches);
	if (facts) {
		ky_functrace_facts(functrace, facts);
		if (functrace->engine == KY_FUNCTRACE_PATCH ||
		    functrace->engine == KY_FUNCTRACE_NOPS)
			facts->children_since = functrace->began_ticks;
		facts->orphaned = orphaned;
		facts->samples = samples.samples;
		facts->samples_lost = samples.lost;
	}
	for (uint32_t i = 0; i < functrace->hot_count; i++)
		free((char *)functrace->hot[i].name);
	KY_ARRAY_FREE(functrace->hot, functrace->hot_room);
	KY_ARRAY_FREE(functrace->processes, functrace->room);
	ky_selection_free(&functrace->selection);
	free(functrace);
	(void)ky_functions_shared_clear();
}

/* ---- processes ---- */

/* Return a number that changes with exec; 0: unavailable. */
static uint64_t image_of(pid_t pid)
{
	struct ky_proc_aux vector[KY_PROC_AUX_MAX];
	const uint32_t count = ky_proc_auxv(pid, vector);
	return count ? ky_hash_bytes(vector, count * sizeof(vector[0])) : 0;
}

/* Note that the process runs another program, which is to be patched soon. */
static void expect_patch(struct ky_functrace_process *process)
{
	process->again_ns = (uint64_t)ky_clock_monotonic() + SETTLE_NS;
}

static struct ky_functrace_process *find(const struct ky_functrace *functrace, pid_t pid)
{
	for (uint32_t i = 0; i < functrace->count; i++) {
		if (functrace->processes[i].pid == pid)
			return &functrace->processes[i];
	}
	return NULL;
}

/*
 * Mark the time off the CPU. Without the marks a trace is still right, but time in a function may be time without a
 * CPU.
 */
static void add_switches(struct ky_functrace *functrace, pid_t pid)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_functrace_options options = functrace->options;
	int error = 0;
	options.ring_bytes = SWITCHES_RING_BYTES;
	if (!functrace->switches_tried)
		error = ky_off_cpu_open(&functrace->switches, &options, message);
	functrace->switches_tried = true;
	if (!error && functrace->switches)
		error = ky_off_cpu_add(functrace->switches, pid, message);
	if (error && error != -ESRCH)
		note(functrace, "time off the CPU is not marked: %s",
		     message[0] ? message : strerror(-error));
}

static int begin_patch(struct ky_functrace *functrace, enum ky_functrace_engine engine, pid_t pid,
		       struct ky_patch **patch, char message[KY_MESSAGE_BYTES])
{
	struct ky_functrace_options options = functrace->options;
	options.engine = engine;
	const int error = ky_patch_open(patch, pid, &options, message);
	if (!error)
		add_switches(functrace, pid);
	return error;
}

static int begin_pt(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	if (!functrace->pt && !ky_pt_available(message))
		return -ENOTSUP;
	const bool first = !functrace->pt;
	int error = first ? ky_pt_open(&functrace->pt, &functrace->options, message) : 0;
	if (!error)
		error = ky_pt_add(functrace->pt, pid, message);
	if (error && first && functrace->pt)
		ky_pt_close(&functrace->pt);
	return error;
}

int ky_functrace_open_samples(struct ky_functrace *functrace, char message[KY_MESSAGE_BYTES])
{
	struct ky_functrace_options options = functrace->options;
	if (!options.samples_per_second)
		options.samples_per_second = SAMPLES_PER_SECOND;
	return functrace->samples ? 0 : ky_stack_spans_open(&functrace->samples, &options, message);
}

static int begin_samples(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	const bool first = !functrace->samples;
	int error = ky_functrace_open_samples(functrace, message);
	if (!error)
		error = ky_stack_spans_add(functrace->samples, pid, message);
	if (error && first && functrace->samples)
		ky_stack_spans_close(&functrace->samples, NULL);
	return error;
}

/* Return a time as in /proc/PID/stat, in the kernel's hundredths of a second. */
static uint64_t ticks_of(int64_t ns)
{
	const uint64_t a_second = (uint64_t)sysconf(_SC_CLK_TCK);
	const uint64_t time = (uint64_t)ns;
	return time / 1000000000 * a_second + time % 1000000000 * a_second / 1000000000;
}

int ky_functrace_begin(struct ky_functrace *functrace, enum ky_functrace_engine engine, pid_t pid,
		       char message[KY_MESSAGE_BYTES])
{
	struct ky_patch *patch = NULL;
	int error = KY_ARRAY_GROW(functrace->processes, functrace->room, functrace->count + 1)
			    ? 0
			    : -ENOMEM;
	if (!functrace->began_ticks)
		functrace->began_ticks = ticks_of(ky_clock_boottime());
	if (error)
		snprintf(message, KY_MESSAGE_BYTES, "functions: out of memory");
	else if (engine == KY_FUNCTRACE_PT)
		error = begin_pt(functrace, pid, message);
	else if (engine == KY_FUNCTRACE_SAMPLE)
		error = begin_samples(functrace, pid, message);
	else
		error = begin_patch(functrace, engine, pid, &patch, message);
	if (!error)
		functrace->processes[functrace->count++] = (struct ky_functrace_process){
			.pid = pid, .patch = patch, .image = patch ? image_of(pid) : 0};
	return error;
}

static pid_t parent_of(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 ? stat.parent : 0;
}

/* Report whether it was made since the first process was traced. */
static bool is_new(const struct ky_functrace *functrace, pid_t pid)
{
	const uint64_t started = ky_patch_started(pid);
	return started && started >= functrace->began_ticks;
}

/*
 * Report whether it is a child of a traced process: then it has its parent's jumps, and writes into its drum; or it
 * has executed another program, or was there before.
 */
static bool is_child_of_traced(const struct ky_functrace *functrace, pid_t pid)
{
	if (functrace->engine != KY_FUNCTRACE_PATCH && functrace->engine != KY_FUNCTRACE_NOPS)
		return false;
	pid_t parent = parent_of(pid);
	for (int i = 0; i < GENERATIONS && parent > 1; i++, parent = parent_of(parent)) {
		if (find(functrace, parent))
			return true;
	}
	return false;
}

static int remember_child(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	if (!KY_ARRAY_GROW(functrace->processes, functrace->room, functrace->count + 1))
		return ky_fail(message, -ENOMEM, "functions: out of memory");
	struct ky_functrace_process *const process = &functrace->processes[functrace->count++];
	*process = (struct ky_functrace_process){.pid = pid, .image = image_of(pid)};
	if (!ky_patch_is_ours(pid))
		expect_patch(process);
	return 0;
}

int ky_functrace_add(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	message[0] = '\0';
	if (find(functrace, pid))
		return 0;
	if (is_child_of_traced(functrace, pid) && (is_new(functrace, pid) || ky_patch_is_ours(pid)))
		return remember_child(functrace, pid, message);
	if (functrace->engine == KY_FUNCTRACE_AUTO)
		return ky_functrace_choose(functrace, pid, message);
	return ky_functrace_begin(functrace, functrace->engine, pid, message);
}

void ky_functrace_ended(struct ky_functrace *functrace, pid_t pid)
{
	struct ky_functrace_process *const process = find(functrace, pid);
	if (functrace->switches)
		ky_off_cpu_round(functrace->switches);
	if (functrace->pt)
		ky_pt_ended(functrace->pt, pid);
	if (functrace->samples)
		ky_stack_spans_ended(functrace->samples, pid);
	if (!process)
		return;
	close_patch(functrace, process, true);
	*process = functrace->processes[--functrace->count];
}

/* ---- exec ---- */

/* Pass a line on, up to a limit: a program that starts others may start very many. */
static void note_limited(struct ky_functrace *functrace, const char *line)
{
	const uint32_t lines = functrace->executed_lines++;
	if (lines < LINES_MAX)
		note(functrace, "%s", line);
	else if (lines == LINES_MAX)
		note(functrace,
		     "more programs are executed; further messages of this kind are suppressed");
}

static void patch_again(struct ky_functrace *functrace, struct ky_functrace_process *process)
{
	char message[KY_MESSAGE_BYTES] = "", path[PATH_MAX];
	char line[KY_MESSAGE_BYTES];
	(void)ky_proc_exe(process->pid, path, sizeof(path));
	process->again_ns = 0;
	const int error =
		begin_patch(functrace, functrace->engine, process->pid, &process->patch, message);
	/* it has ended */
	if (error && !image_of(process->pid))
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
	note_limited(functrace, line);
}

static void look_at(struct ky_functrace *functrace, struct ky_functrace_process *process,
		    uint64_t now)
{
	if (!process->image)
		return;
	const uint64_t image = image_of(process->pid);
	if (image && image != process->image) {
		close_patch(functrace, process, true);
		process->image = image;
		expect_patch(process);
	} else if (image && process->again_ns && now >= process->again_ns) {
		patch_again(functrace, process);
	}
}

/* Report whether it is a child that has ended; other processes keep their reports. */
static bool is_forgotten(const struct ky_functrace_process *process)
{
	return !process->patch && kill(process->pid, 0) != 0 && errno == ESRCH;
}

/* Check whether processes have called exec, and patch new programs. */
static void follow_exec(struct ky_functrace *functrace)
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

/* ---- periodic work ---- */

/* Take programs that children have executed, however soon after their fork. */
static void take_executed(struct ky_functrace *functrace)
{
	char message[KY_MESSAGE_BYTES];
	for (pid_t pid; functrace->switches && (pid = ky_off_cpu_executed(functrace->switches));) {
		if (!find(functrace, pid))
			(void)remember_child(functrace, pid, message);
	}
}

static void report_ended(struct ky_functrace *functrace)
{
	for (pid_t pid; functrace->switches && (pid = ky_off_cpu_ended(functrace->switches));) {
		if (functrace->options.ended)
			functrace->options.ended(functrace->options.context, pid);
	}
}

void ky_functrace_round(struct ky_functrace *functrace)
{
	take_executed(functrace);
	report_ended(functrace);
	follow_exec(functrace);
	(void)ky_patch_release_late();
	for (uint32_t i = 0; i < functrace->count; i++) {
		if (functrace->processes[i].patch)
			ky_patch_round(functrace->processes[i].patch);
	}
	if (functrace->pt)
		ky_pt_round(functrace->pt);
	if (functrace->samples)
		ky_stack_spans_round(functrace->samples, false);
	if (functrace->switches)
		ky_off_cpu_round(functrace->switches);
}

/* Write what kymo itself still has for the drums; the program's events are there already. */
void ky_functrace_flush(struct ky_functrace *functrace)
{
	if (functrace->pt)
		ky_pt_decode(functrace->pt);
	if (functrace->samples)
		ky_stack_spans_round(functrace->samples, true);
	if (functrace->switches)
		ky_off_cpu_round(functrace->switches);
}

void ky_functrace_facts(const struct ky_functrace *functrace, struct ky_functrace_facts *facts)
{
	*facts = (struct ky_functrace_facts){.engine = functrace->engine, .patch = functrace->past};
	memcpy(facts->why, functrace->why, sizeof(facts->why));
	for (uint32_t i = 0; i < functrace->count; i++) {
		struct ky_patch_facts one = {0};
		if (!functrace->processes[i].patch)
			continue;
		ky_patch_facts(functrace->processes[i].patch, &one);
		add_facts(&facts->patch, &one);
	}
}

void ky_functrace_names(const struct ky_functrace *functrace, ky_patch_name_fn one, void *context)
{
	for (uint32_t i = 0; i < functrace->count; i++) {
		if (functrace->processes[i].patch)
			ky_patch_names(functrace->processes[i].patch, one, context);
	}
}

bool ky_functrace_hot(const struct ky_functrace *functrace, uint32_t index,
		      struct ky_patch_hot *hot)
{
	if (index < functrace->hot_count) {
		*hot = functrace->hot[index];
		return true;
	}
	index -= functrace->hot_count;
	for (uint32_t i = 0; i < functrace->count; i++) {
		const struct ky_patch *const patch = functrace->processes[i].patch;
		uint32_t own = 0;
		if (!patch)
			continue;
		if (ky_patch_hot(patch, index, hot))
			return true;
		while (ky_patch_hot(patch, own, hot))
			own++;
		index -= own;
	}
	return false;
}
