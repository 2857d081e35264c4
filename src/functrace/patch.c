/* SPDX-License-Identifier: MIT */
/*
 * patch.c: the order of the engine patch's steps. See patch.h; patch_parts.h lists the files of the steps.
 *
 *   runs      modules, functions, choice of the wanted ones
 *   stopped   check that it can be done; undo what another kymo left; map memory
 *   runs      stubs, table; make the pages that will be written the process's own
 *   stopped   move threads, set gs, write jumps; on
 *   runs      ...
 */
#include "base/array.h"
#include "base/clock.h"
#include "functrace/patch_parts.h"
#include "process/proc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STOP_TRIES 10 /* attempts to put all back */
#define STOP_AGAIN_NS 100000000
#define LOOK_NS UINT64_C(200000000) /* between two looks at locked memory */

void ky_patch_note(const struct ky_patch *patch, const char *format, ...)
{
	char line[KY_MESSAGE_BYTES];
	va_list arguments;
	if (!patch->options.note)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	patch->options.note(patch->options.context, line);
}

int ky_patch_stop(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	if (patch->options.stops)
		patch->options.stops(patch->options.context, patch->remote.pid, true);
	const int error = ky_remote_stop(&patch->remote, message);
	if (error && patch->options.stops)
		patch->options.stops(patch->options.context, patch->remote.pid, false);
	patch->gone |= error == -ESRCH || error == -ESTALE;
	if (!error)
		ky_agent_memory_sizes(patch);
	return error;
}

void ky_patch_go(struct ky_patch *patch)
{
	ky_remote_go(&patch->remote);
	if (patch->options.stops)
		patch->options.stops(patch->options.context, patch->remote.pid, false);
}

static int fail(const struct ky_patch *patch, int error, char message[KY_MESSAGE_BYTES])
{
	struct ky_proc_stat stat;
	const bool ended = error && (ky_proc_stat(patch->remote.pid, 0, &stat) != 0 ||
				     ky_proc_state_ended(stat.state));
	if (ended)
		return ky_fail(
			message, -ESRCH,
			"Cannot trace process %d: it ended before its functions were patched",
			(int)patch->remote.pid);
	if (error && !message[0])
		snprintf(message, KY_MESSAGE_BYTES, "Cannot patch process %d: %s",
			 (int)patch->remote.pid, strerror(-error));
	return error;
}

/* ---- checks ---- */

/* Refuse a program in a sandbox, which may kill it for a system call that it never made. */
static int check_sandbox(const struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	if (!ky_remote_sandboxed(patch->remote.pid))
		return 0;
	return ky_fail(
		message, -ENOTSUP,
		"Cannot patch process %d: it is in a sandbox (seccomp) that may kill it for our "
		"system "
		"calls; use --engine sample",
		(int)patch->remote.pid);
}

static int refuse_counterless(const struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	return ky_fail(
		message, -ENOTSUP,
		"Cannot patch process %d: it has turned the CPU's counter off (PR_SET_TSC or "
		"strict seccomp) or uses the register gs; use --engine sample",
		(int)patch->remote.pid);
}

/* Return the name of a module that sets gs, which the stubs need, without asking the kernel; NULL: none. */
static const char *sets_gs(const struct ky_patch *patch)
{
	for (uint32_t i = 0; i < patch->modules_count; i++)
		if (patch->modules[i].functions && patch->modules[i].functions->sets_gs)
			return patch->modules[i].name;
	return NULL;
}

static int check_gs(const struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	const char *name = sets_gs(patch);
	if (!name)
		return 0;
	snprintf(
		message, KY_MESSAGE_BYTES,
		"Cannot patch process %d: %s sets the register gs (wrgsbase), which kymo needs; use "
		"--engine sample",
		(int)patch->remote.pid, name);
	return -ENOTSUP;
}

static bool is_anothers(const struct ky_patch *patch)
{
	return ky_agent_memory_owned(&patch->home) && patch->home.owner_pid != (uint32_t)getpid();
}

static int check_home(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	int error = ky_agent_memory_read(patch);
	if (error == -ENOENT)
		return 0;
	if (!error && patch->home.version && !is_anothers(patch))
		error = ky_patch_table_read(patch);
	if (error == -EPROTO)
		return ky_agent_memory_refuse(patch, error, message);
	if (error)
		return error;
	if (is_anothers(patch))
		return ky_fail(
			message, -EBUSY,
			"Cannot patch process %d: another kymo (pid %u) traces its functions; end "
			"that first",
			(int)patch->remote.pid, patch->home.owner_pid);
	return 0;
}

/* Refuse the engine nops where it would find nothing; nothing was done to the process yet. */
static int check_compiled(const struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	if (patch->options.engine != KY_FUNCTRACE_NOPS || patch->facts.functions)
		return 0;
	return ky_fail(
		message, -ENOTSUP,
		"No wanted function of process %d was compiled for it "
		"(-fpatchable-function-entry=5 or -finstrument-functions); use --engine patch",
		(int)patch->remote.pid);
}

/* ---- open ---- */

/* While all threads are stopped: check the threads and make the memory in the process. */
static int settle_in(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	int error = 0;
	if (patch->remote.count == 1 && !patch->remote.threads[0].registers.fs_base)
		error = ky_remote_await_thread_pointer(&patch->remote);
	if (!error)
		error = ky_patch_threads_check(patch, message);
	if (!error && patch->home_at && ky_agent_memory_left(patch))
		error = refuse_counterless(patch, message);
	if (error)
		return error;
	error = ky_agent_memory_make(patch, message);
	if (error)
		return error;
	if (!ky_agent_memory_has_counter(patch)) {
		ky_agent_memory_give_back(patch, false);
		return refuse_counterless(patch, message);
	}
	patch->home.r_debug = ky_patch_modules_r_debug(patch);
	ky_patch_modules_ranges(patch);
	ky_patch_plan_rooms(patch);
	ky_agent_memory_guard(patch);
	return ky_agent_memory_write(patch);
}

/*
 * Stop all threads with no jump set and none inside what an earlier attach left, because its memory is about to be
 * used again. A thread in the agent leaves it at once when tracing is off.
 */
static int stop_quietly(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	int error = ky_patch_undo_needed(patch) ? ky_patch_undo(patch, message) : 0;
	for (uint32_t i = 0; !error && i < KY_PATCH_QUIET_TRIES; i++) {
		error = ky_patch_stop(patch, message);
		if (error)
			return error;
		error = ky_patch_undo_check(patch, message);
		if (!error && (!patch->home.version || (ky_patch_threads_unhook(patch, i) &&
							(i >= KY_PATCH_QUIET_TRIES / 2 ||
							 !ky_patch_threads_interrupted(patch)))))
			return 0;
		ky_patch_go(patch);
		ky_patch_undo_pause(i);
	}
	if (error)
		return error;
	return ky_fail(message, -EBUSY,
		       "Cannot patch process %d: a thread is still inside the code of an "
		       "earlier kymo; try again",
		       (int)patch->remote.pid);
}

static int first_stop(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	int error = stop_quietly(patch, message);
	if (error)
		return error;
	error = settle_in(patch, message);
	if (error && patch->home.version) {
		ky_agent_memory_off(patch);
		ky_agent_memory_own(patch, false);
	}
	ky_patch_go(patch);
	return error;
}

/* Write the stubs of earlier attaches whose contents change. */
static int rewrite_stubs(struct ky_patch *patch)
{
	int error = 0;
	for (uint32_t i = 0; !error && i < patch->rewrites_count; i++)
		error = ky_remote_write(&patch->remote, patch->rewrites[i].at,
					patch->rewrites[i].code, patch->rewrites[i].bytes);
	KY_ARRAY_FREE(patch->rewrites, patch->rewrites_room);
	patch->rewrites_count = 0;
	return error;
}

static uint32_t count_functions(const struct ky_patch *patch)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < patch->table_count; i++) {
		const uint32_t kind = patch->table[i].pad & KY_PATCH_FORM_KIND;
		/* Entries of patch_instrumented.c, which have no stub, are of the first kind as well. */
		count += patch->table[i].set && (kind == KY_STUB_CALL || kind == KY_STUB_ENTRY);
	}
	return count;
}

/* Set the jumps of new modules, while all threads are stopped. */
static int set_jumps(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	int error = ky_patch_threads_check(patch, (char[KY_MESSAGE_BYTES]){0});
	if (!error && ky_agent_memory_left(patch))
		error = -ENOTSUP;
	if (error)
		return error;
	error = rewrite_stubs(patch);
	if (error)
		return error;
	ky_patch_threads_gs(patch);
	ky_patch_threads_move(patch, edits);
	/* If kymo is killed now, the threads go on with jumps or without them. */
	error = ky_remote_apply(&patch->remote);
	if (error)
		return error;
	patch->home.on = 1;
	error = KY_PATCH_HOME_WRITE(patch, on);
	if (!error)
		error = ky_patch_edits_write(edits, &patch->remote);
	/* Others have changed some of the code since it was read. */
	for (uint32_t i = 0; !error && i < edits->count; i++) {
		const uint32_t entry = edits->items[i].entry;
		if (edits->items[i].good || !patch->table[entry].set)
			continue;
		ky_patch_table_set(patch, entry, false);
		patch->spots[entry].wanted = false;
	}
	return error;
}

/* Take out jumps that were set in part. */
static void undo_now(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	for (uint32_t i = 0; i < edits->count; i++)
		if (edits->items[i].good)
			(void)ky_remote_write(&patch->remote, edits->items[i].address,
					      edits->items[i].expect, edits->items[i].bytes);
}

static int plan_and_set(struct ky_patch *patch, bool resume, char message[KY_MESSAGE_BYTES])
{
	struct ky_patch_edits edits = {0};
	int error = ky_patch_plan(patch, &edits);
	if (!error)
		error = ky_patch_edits_prepare(&edits, &patch->remote);
	if (!error)
		error = ky_patch_plan_settle(patch, &edits);
	if (!error && !resume && patch->options.drum)
		patch->options.drum(patch->options.context, patch->remote.pid, patch->drum.fd);
	if (!error)
		error = ky_patch_stop(patch, message);
	if (!error) {
		error = set_jumps(patch, &edits);
		if (error)
			undo_now(patch, &edits);
		else
			ky_patch_plan_switched(patch, &edits);
		if (resume)
			ky_agent_memory_resume(patch);
		ky_patch_go(patch);
		if (patch->remote.stopped_ns > patch->facts.stopped_ns)
			patch->facts.stopped_ns = patch->remote.stopped_ns;
	}
	patch->facts.patched = count_functions(patch);
	ky_patch_edits_free(&edits);
	return error;
}

static int open_all(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	int error = check_sandbox(patch, message);
	if (!error)
		error = check_home(patch, message);
	if (error)
		return error;
	const struct ky_agent_home left = patch->home;
	const bool was_left = left.owner_pid && left.owner_pid != (uint32_t)getpid();
	const uint64_t began = (uint64_t)ky_clock_monotonic();
	error = ky_patch_modules_read(patch, message);
	if (error >= 0)
		error = ky_patch_plan_choose(patch);
	patch->facts.analysed_ns = (uint64_t)ky_clock_monotonic() - began;
	if (!error)
		error = check_gs(patch, message);
	if (!error)
		error = check_compiled(patch, message);
	if (!error)
		error = first_stop(patch, message);
	if (!error)
		error = plan_and_set(patch, false, message);
	if (!error && was_left)
		ky_patch_recover_left(&left);
	patch->rated_ns = (uint64_t)ky_clock_monotonic();
	return error;
}

void ky_patch_free(struct ky_patch *patch)
{
	if (patch->drum_open)
		ky_made_drum_close(&patch->drum);
	ky_patch_modules_free(patch);
	ky_remote_close(&patch->remote);
	KY_ARRAY_FREE(patch->table, patch->table_room);
	KY_ARRAY_FREE(patch->spots, patch->spots_room);
	ky_hash_index_free(&patch->by_address);
	KY_ARRAY_FREE(patch->rewrites, patch->rewrites_room);
	KY_ARRAY_FREE(patch->counts, patch->counts_room);
	KY_ARRAY_FREE(patch->totals, patch->totals_room);
	KY_ARRAY_FREE(patch->loads, patch->loads_room);
	free(patch);
}

int ky_patch_open(struct ky_patch **out, pid_t pid, const struct ky_functrace_options *options,
		  char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	message[0] = '\0';
	struct ky_patch *patch = calloc(1, sizeof(*patch));
	if (!patch)
		return ky_fail(message, -ENOMEM, "functions: out of memory");
	patch->options = *options;
	patch->entry_only = options->entry_only;
	patch->keep.drum_fd = -1;
	int error = ky_remote_open(&patch->remote, pid, message);
	if (!error)
		error = open_all(patch, message);
	if (error) {
		error = fail(patch, error, message);
		ky_patch_close(&patch, false, NULL);
		return error;
	}
	*out = patch;
	return 0;
}

/* ---- periodic work ---- */

static void undo(struct ky_patch *patch);

static void patch_loaded(struct ky_patch *patch)
{
	char message[KY_MESSAGE_BYTES] = "";
	int error = ky_patch_modules_read(patch, message);
	const bool more = error > 0;
	if (more && check_gs(patch, message)) {
		ky_patch_note(patch, "the functions of process %d are no longer traced: %s",
			      (int)patch->remote.pid, message);
		undo(patch);
		patch->gone = true;
		return;
	}
	if (more)
		error = ky_patch_plan_choose(patch);
	if (error >= 0)
		error = ky_patch_stop(patch, message);
	if (!error) {
		if (more) {
			ky_patch_modules_ranges(patch);
			ky_patch_plan_rooms(patch);
			ky_agent_memory_guard(patch);
			error = ky_agent_memory_write(patch);
		} else {
			ky_agent_memory_resume(patch);
		}
		ky_patch_go(patch);
	}
	if (!error && more)
		error = plan_and_set(patch, true, message);
	if (error && !patch->gone)
		ky_patch_note(patch, "libraries loaded by process %d are not traced: %s",
			      (int)patch->remote.pid, message[0] ? message : strerror(-error));
}

/* Report whether the program has turned the counter off, and note it once. */
static bool has_left(struct ky_patch *patch)
{
	if (!ky_agent_memory_left(patch))
		return false;
	if (!patch->left)
		ky_patch_note(
			patch,
			"process %d has turned the CPU's counter off (PR_SET_TSC or strict "
			"seccomp) or uses the register gs (ARCH_SET_GS): its functions are no "
			"longer traced",
			(int)patch->remote.pid);
	patch->left = true;
	return true;
}

/* Resume a thread that waits for a library to be patched: that will not happen. */
static void resume_left(struct ky_patch *patch)
{
	if (ky_patch_stop(patch, (char[KY_MESSAGE_BYTES]){0}))
		return;
	ky_agent_memory_resume(patch);
	ky_patch_go(patch);
}

/* Report that there is no room for more threads, and keep our memory out of what the program locks, when it is time to look. */
static void keep_memory(struct ky_patch *patch)
{
	uint32_t crowded = 0;
	const uint64_t now = (uint64_t)ky_clock_monotonic();
	(void)KY_PATCH_HOME_READ(patch, crowded, &crowded);
	if (crowded && !patch->crowded)
		ky_patch_note(patch, "there is no room to trace more threads of process %d",
			      (int)patch->remote.pid);
	patch->crowded |= crowded != 0;
	const bool looks = !patch->home.unlocks && now - patch->looked_ns > LOOK_NS;
	patch->looked_ns = looks ? now : patch->looked_ns;
	const bool locked = looks && ky_agent_memory_locked(patch);
	if (!locked || ky_patch_stop(patch, (char[KY_MESSAGE_BYTES]){0}))
		return;
	ky_agent_memory_unlock(patch);
	ky_patch_go(patch);
}

void ky_patch_round(struct ky_patch *patch)
{
	uint32_t pause = 0;
	if (patch->gone)
		return;
	if (KY_PATCH_HOME_READ(patch, pause, &pause)) {
		patch->gone = true;
		return;
	}
	const bool left = has_left(patch);
	patch->home.pause = pause;
	if (pause == KY_LOADER_GAVE_UP && !patch->late)
		ky_patch_note(patch,
			      "process %d went on before a library that it loaded was patched: "
			      "calls until then are counted as lost",
			      (int)patch->remote.pid);
	patch->late |= pause == KY_LOADER_GAVE_UP;
	if (pause && left)
		resume_left(patch);
	else if (pause)
		patch_loaded(patch);
	else if (!left && ky_patch_instrumented_lost(patch))
		(void)plan_and_set(patch, true, (char[KY_MESSAGE_BYTES]){0});
	if (!patch->gone && !left) {
		keep_memory(patch);
		ky_patch_table_cool(patch);
	}
}

/* ---- close ---- */

static void undo(struct ky_patch *patch)
{
	char message[KY_MESSAGE_BYTES] = "";
	int error = ky_patch_undo(patch, message);
	for (int i = 1; i < STOP_TRIES && error && !patch->gone; i++) {
		nanosleep(&(struct timespec){.tv_nsec = STOP_AGAIN_NS}, NULL);
		error = ky_patch_undo(patch, message);
	}
	if (error && !patch->gone)
		ky_patch_note(
			patch,
			"cannot restore the functions of process %d (%s): run kymo attach -p %d "
			"--functions",
			(int)patch->remote.pid, message, (int)patch->remote.pid);
}

void ky_patch_close(struct ky_patch **out, bool gone, struct ky_patch_facts *facts)
{
	struct ky_patch *patch = *out;
	if (!patch)
		return;
	/* Owned by this kymo: otherwise nothing was done there yet. */
	if (!gone && !patch->gone && patch->home.version &&
	    patch->home.owner_pid == (uint32_t)getpid()) {
		(void)has_left(patch);
		ky_patch_table_count(patch);
		undo(patch);
	}
	if (facts)
		*facts = patch->facts;
	*out = NULL;
	ky_patch_free(patch);
}

void ky_patch_names(const struct ky_patch *patch, ky_patch_name_fn one, void *context)
{
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		const struct ky_patch_module *module = &patch->modules[i];
		for (uint32_t j = 0; module->functions && j < module->functions->count; j++)
			one(context, module->name, module->functions->functions[j].name);
	}
}

uint32_t ky_patch_release_late(void)
{
	return ky_remote_release_late();
}

void ky_patch_facts(const struct ky_patch *patch, struct ky_patch_facts *facts)
{
	*facts = patch->facts;
}
