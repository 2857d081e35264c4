/* SPDX-License-Identifier: MIT */
/*
 * source_probes.c: symbol: and line: triggers (probe.h) as a source of a capture.
 *
 * A program's libraries are loaded one by one, so that a probe may find its place late: all processes are tried again, at
 * growing intervals. A message about a missing place waits for a second for that, and only the first one is printed.
 */
#include "base/fail.h"
#include "capture/probe.h"
#include "capture/snapshots.h"
#include "capture/source.h"
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define REST_NS (2 * MILLISECOND)
#define FIRST_TRY_NS (1 * MILLISECOND)
#define LAST_TRY_NS (500 * MILLISECOND)
#define NOTE_AFTER_NS (1000 * MILLISECOND)

struct probes_state {
	struct ky_probes *probes;
	uint64_t try_ns; /* when all processes are tried again */
	uint64_t wait_ns;
	bool placed, noted, missing_noted;
	bool nowhere;                   /* a process has no place for any */
	char missing[KY_MESSAGE_BYTES]; /* why no probe has a place so far */
};

/* ---- opening ---- */

/* Report whether functions may be patched: the engine is chosen with the first process. */
static bool patches_functions(const struct ky_capture_options *o)
{
	return o->functions && o->functions->engine != KY_FUNCTRACE_PT &&
	       o->functions->engine != KY_FUNCTRACE_SAMPLE;
}

/*
 * A uprobe executes the instruction that the file has there, and continues after it: in the middle of a jump that the patch
 * engine wrote. A breakpoint stops before whatever is there.
 */
static enum ky_probe_engine choose_engine(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (!patches_functions(o))
		return o->probe_engine;
	if (o->probe_engine == KY_PROBE_UPROBE)
		ky_source_note(
			capture,
			"symbol: and line: triggers are breakpoints: a uprobe would crash a program whose functions are patched");
	return KY_PROBE_BREAKPOINT;
}

static int unavailable(struct ky_capture *capture, int error)
{
	if (capture->options->probe_engine == KY_PROBE_UPROBE)
		return ky_fail(
			capture->message, error,
			"--probe uprobe: %s; uprobes need root and a kernel that has them: use --probe breakpoint",
			strerror(-error));
	return ky_fail(
		capture->message, error,
		"symbol: and line: triggers: perf_event_open: %s; run as root, or set kernel.perf_event_paranoid to at most 2; a container's seccomp profile must allow it",
		strerror(-error));
}

static int open_probes(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_capture_options *const o = capture->options;
	if (!ky_trigger_needs(o->triggers, o->triggers_count, KY_TRIGGER_BY_PROBES))
		return 0;
	struct probes_state *const state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	const struct ky_probes_options options = {.triggers = o->triggers,
						  .count = o->triggers_count,
						  .engine = choose_engine(capture),
						  .patched = patches_functions(o),
						  .fired = ky_snapshots_fired,
						  .context = capture};
	const int error = ky_probes_open(&state->probes, &options);
	if (error) {
		free(state);
		return unavailable(capture, error);
	}
	source->state = state;
	source->fd = ky_probes_fd(state->probes);
	return 0;
}

static void note_once(struct ky_source *source, const char *line)
{
	struct probes_state *const state = source->state;
	if (!line[0] || state->noted)
		return;
	state->noted = true;
	ky_source_note(source->capture, "%s", line);
}

static void set_in_file(struct ky_source *source, pid_t program)
{
	struct probes_state *const state = source->state;
	char message[KY_MESSAGE_BYTES] = "";
	if (!state || !program)
		return;
	const int placed = ky_probes_add_file(state->probes, source->capture->program, message);
	state->placed = placed > 0;
	if (placed > 0)
		note_once(source, ky_probes_why(state->probes));
}

/* ---- processes ---- */

static void set_in_process(struct ky_source *source, pid_t pid)
{
	struct probes_state *const state = source->state;
	char message[KY_MESSAGE_BYTES] = "";
	const int placed = ky_probes_add(state->probes, pid, message);
	if (placed > 0 && !state->placed)
		note_once(source, ky_probes_why(state->probes));
	state->placed |= placed > 0;
	state->nowhere |= placed == -ENOENT;
	const bool may_come = placed == -ENOENT || placed == -ESRCH;
	if (!may_come || ky_os_boottime() > source->capture->begin_ns + NOTE_AFTER_NS)
		note_once(source, message);
	else if (placed == -ENOENT)
		memcpy(state->missing, message, sizeof(message));
}

static int add(struct ky_source *source, pid_t pid, enum ky_source_process how,
	       char message[KY_MESSAGE_BYTES])
{
	(void)message;
	if (how != KY_SOURCE_GIVEN)
		set_in_process(source, pid);
	return 0;
}

/* Note, once, each of several triggers that has no place though others have. */
static void note_missing(struct ky_source *source)
{
	struct probes_state *const state = source->state;
	char message[KY_MESSAGE_BYTES] = "";
	const struct ky_capture_options *const o = source->capture->options;
	const pid_t pid = o->pids_count ? o->pids[0] : source->capture->child.pid;
	if (!state->placed || state->missing_noted)
		return;
	state->missing_noted = true;
	for (uint32_t at = 0; ky_probes_missing(state->probes, &at, pid, message);)
		ky_source_unmatched(source->capture, message);
}

static void try_again(struct ky_source *source, uint64_t now)
{
	struct probes_state *const state = source->state;
	const struct ky_process_list *const processes = source->capture->processes;
	const uint64_t twice = state->wait_ns * 2;
	state->wait_ns = !twice ? FIRST_TRY_NS : twice < LAST_TRY_NS ? twice : LAST_TRY_NS;
	state->try_ns = now + state->wait_ns;
	for (uint32_t i = 0; i < ky_processes_count(processes); i++)
		set_in_process(source, ky_processes_pid(processes, i));
	if (now > source->capture->begin_ns + NOTE_AFTER_NS)
		note_missing(source);
}

/* ---- rounds ---- */

static uint64_t read_new(struct ky_source *source, bool all)
{
	struct probes_state *const state = source->state;
	ky_probes_round(state->probes);
	const uint64_t now = ky_os_boottime();
	if (!all && now >= state->try_ns)
		try_again(source, now);
	const uint64_t wait = state->try_ns > now ? state->try_ns - now : 0;
	return wait < REST_NS ? wait : REST_NS;
}

static void ended(struct ky_source *source, pid_t pid, int status)
{
	struct probes_state *const state = source->state;
	(void)status;
	ky_probes_ended(state->probes, pid);
}

static void close_probes(struct ky_source *source)
{
	struct probes_state *const state = source->state;
	if (!state->placed)
		note_once(source, state->missing);
	source->capture->facts->unmatched += !state->placed && state->nowhere;
	note_missing(source);
	if (ky_probes_lost(state->probes))
		ky_source_note(source->capture,
			       "triggers: %" PRIu64
			       " hits of symbol: and line: were lost: too many at once",
			       ky_probes_lost(state->probes));
	ky_probes_close(&state->probes);
	free(state);
}

const struct ky_source_ops ky_source_probes = {
	.open = open_probes,
	.forked = set_in_file,
	.add = add,
	.round = read_new,
	.ended = ended,
	.close = close_probes,
	.holds = true,
};
