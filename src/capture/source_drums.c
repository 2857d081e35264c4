/* SPDX-License-Identifier: MIT */
/*
 * source_drums.c: the programs' events (drums.h) as a source of a capture, and the triggers that look at them (watch.h).
 *
 * The watch must have seen all events up to the time of its tick: the clock is read first, then all drums, then it ticks.
 *
 * A drum may be found before its process has finished it, and is tried again for a while then.
 */
#include "base/map.h"
#include "capture/drums.h"
#include "capture/snapshots.h"
#include "capture/source.h"
#include "capture/wanted.h"
#include "capture/watch.h"
#include "os/os.h"
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
#define GONE_EVERY_NS (100 * MILLISECOND)
/* Triggers are found within 10 ms. */
#define WATCH_EVERY_NS (2 * MILLISECOND)
/* What a person watches. */
#define LIVE_EVERY_NS (10 * MILLISECOND)
#define UNFINISHED_MAX 64
#define UNFINISHED_TRIES 100
#define NOTES_MAX 100u

struct unfinished {
	pid_t pid; /* 0: none */
	int fd;
	uint32_t tries;
};

struct drums_state {
	struct ky_drums *drums;     /* NULL: only the watch is wanted */
	struct ky_watch *watch;     /* NULL: no trigger looks at events */
	struct ky_wanted *wanted;   /* categories that the user named */
	uint32_t notes;             /* lines about drums */
	struct ky_pids recorded;    /* processes that have a drum */
	struct ky_u64_map children; /* pids that have none: they write into their parent's */
	struct unfinished unfinished[UNFINISHED_MAX];
	bool refused; /* there was no room for another unfinished one */
	uint64_t gone_ns;
};

/* ---- opening ---- */

/* Choose what the user wants and what the triggers must see. NULL is all. */
static int choose_categories(struct ky_capture *capture, const char *watched)
{
	const char *const given = capture->options->categories;
	const char *const wanted = given && *given ? given : NULL;
	if (!wanted && !watched)
		return 0;
	/* "*" is not quite all: some are on only when they are named. */
	if (asprintf(&capture->categories, "%s%s%s", wanted ? wanted : "*", watched ? "," : "",
		     watched ? watched : "") >= 0)
		return 0;
	capture->categories = NULL;
	return -ENOMEM;
}

static void note_child(void *context, pid_t pid)
{
	struct ky_capture *const capture = context;
	struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	bool made = false;
	if (!ky_source_drums_has(capture, pid) &&
	    ky_u64_map_add(&state->children, (uint64_t)pid, &made))
		capture->facts->drums += made;
}

static int open_buffers(struct ky_capture *capture, struct drums_state *state, const char *watched)
{
	const struct ky_capture_options *const o = capture->options;
	if (!o->drums)
		return 0;
	const struct ky_drums_options options = {
		.bundle = capture->bundle,
		.categories = capture->categories,
		.flight = capture->flight != NULL,
		.switch_on = true,
		.ring_bytes = o->ring_bytes ? o->ring_bytes : KY_CAPTURE_RING_BYTES,
		.stall_ns = o->stall_ns,
		.total_bytes = KY_CAPTURE_TOTAL_BYTES,
		.before_ns = ky_source_reach_ns(o),
		.event = o->event       ? o->event
			 : state->watch ? ky_watch_event
					: NULL,
		/* Snapshots that the program asks for come in any case. */
		.event_categories = o->event  ? NULL
				    : watched ? watched
					      : "-*",
		.context = o->event ? o->context : state->watch,
		.child = note_child,
		.child_context = capture,
	};
	return ky_drums_open(&state->drums, &options);
}

static int open_drums(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_capture_options *const o = capture->options;
	struct drums_state *const state = calloc(1, sizeof(*state));
	int error = 0;
	if (!state)
		return -ENOMEM;
	source->state = state;
	if (ky_trigger_needs(o->triggers, o->triggers_count, KY_TRIGGER_BY_WATCH))
		error = ky_watch_open(&state->watch, o->triggers, o->triggers_count,
				      ky_snapshots_fired, capture);
	if (!error)
		error = ky_wanted_open(&state->wanted, o->categories, o->triggers,
				       o->triggers_count);
	const char *const watched =
		!error && state->watch ? ky_watch_categories(state->watch) : NULL;
	if (!error)
		error = choose_categories(capture, watched);
	return error ? error : open_buffers(capture, state, watched);
}

/* ---- adding ---- */

bool ky_source_drums_has(const struct ky_capture *capture, pid_t pid)
{
	const struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	for (uint32_t i = 0; i < state->recorded.count; i++) {
		if (state->recorded.at[i] == pid)
			return true;
	}
	return false;
}

void ky_source_drums_forget(struct ky_capture *capture, pid_t pid)
{
	struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	struct ky_pids *const recorded = &state->recorded;
	for (uint32_t i = 0; i < recorded->count; i++) {
		if (recorded->at[i] == pid)
			recorded->at[i--] = recorded->at[--recorded->count];
	}
}

/* Print one line for each of a few: there may be thousands of processes. */
static void note_drum(struct ky_capture *capture, struct drums_state *state, const char *line)
{
	if (!line[0] || state->notes > NOTES_MAX)
		return;
	if (state->notes++ < NOTES_MAX)
		ky_source_note(capture, "%s", line);
	else
		ky_source_note(capture, "further messages about buffers are suppressed");
}

static int add_drum(struct ky_capture *capture, pid_t pid, int fd, bool made)
{
	struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	char message[KY_MESSAGE_BYTES] = "";
	const int added = made ? ky_drums_add_made(state->drums, fd, pid, message)
			       : ky_drums_add(state->drums, fd, pid, message);
	if (added == -EAGAIN)
		return added;
	note_drum(capture, state, message);
	/* A process may have several. */
	if (added == 0 && !ky_source_drums_has(capture, pid)) {
		(void)ky_pids_add(&state->recorded, pid);
		capture->facts->drums++;
	}
	return added;
}

static void keep_unfinished(struct drums_state *state, pid_t pid, int fd)
{
	for (uint32_t i = 0; i < UNFINISHED_MAX; i++) {
		struct unfinished *const one = &state->unfinished[i];
		if (one->pid)
			continue;
		*one = (struct unfinished){.pid = pid, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)};
		if (one->fd >= 0)
			return;
		one->pid = 0;
		break;
	}
	state->refused = true;
}

static void forget_unfinished(struct unfinished *one)
{
	close(one->fd);
	*one = (struct unfinished){0};
}

static void try_unfinished(struct ky_capture *capture, struct drums_state *state)
{
	for (uint32_t i = 0; i < UNFINISHED_MAX; i++) {
		struct unfinished *const one = &state->unfinished[i];
		if (one->pid && (add_drum(capture, one->pid, one->fd, false) != -EAGAIN ||
				 ++one->tries == UNFINISHED_TRIES))
			forget_unfinished(one);
	}
}

void ky_source_drums_found(void *context, pid_t pid, int fd)
{
	struct ky_capture *const capture = context;
	struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	if (state->drums && add_drum(capture, pid, fd, false) == -EAGAIN)
		keep_unfinished(state, pid, fd);
}

void ky_source_drums_made(void *context, pid_t pid, int fd)
{
	struct ky_capture *const capture = context;
	const struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	if (capture->processes)
		ky_processes_know(capture->processes, fd);
	if (state->drums)
		(void)add_drum(capture, pid, fd, true);
}

/* ---- categories that were named ---- */

/* Take the categories of the drums of a process, or of all (0): a drum that is closed has none to show. */
static void look_for_wanted(const struct drums_state *state, pid_t pid)
{
	struct ky_drums_facts drum;
	char name[256];
	bool on;
	if (!state->drums || !ky_wanted_misses(state->wanted))
		return;
	for (uint32_t i = 0; i < ky_drums_count(state->drums); i++) {
		if (!ky_drums_facts(state->drums, i, &drum) || (pid && drum.pid != pid))
			continue;
		for (uint32_t j = 0; ky_drums_category(state->drums, i, j, name, sizeof(name), &on);
		     j++)
			ky_wanted_category(state->wanted, name);
	}
}

static void note_unmatched(struct ky_capture *capture, const struct drums_state *state)
{
	char message[KY_MESSAGE_BYTES];
	if (!capture->began || !state->drums)
		return;
	look_for_wanted(state, 0);
	for (uint32_t at = 0; ky_wanted_missing(state->wanted, &at, message);)
		ky_source_unmatched(capture, message);
	for (uint32_t at = 0; state->watch && ky_watch_missing(state->watch, &at, message);)
		ky_source_unmatched(capture, message);
}

/* ---- rounds ---- */

/* End processes that came and went between two looks at /proc. */
static void end_gone(struct ky_capture *capture, struct drums_state *state, uint64_t now)
{
	if (now < state->gone_ns)
		return;
	state->gone_ns = now + GONE_EVERY_NS;
	for (pid_t pid; (pid = ky_drums_gone(state->drums));) {
		ky_source_functions_ended(capture, pid);
		look_for_wanted(state, pid);
		ky_drums_ended(state->drums, pid);
	}
}

static uint64_t read_new(struct ky_source *source, bool all)
{
	struct drums_state *const state = source->state;
	const uint64_t now = ky_os_boottime();
	uint64_t next = KY_SOURCE_REST_NS;
	if (state->drums) {
		end_gone(source->capture, state, now);
		try_unfinished(source->capture, state);
		const bool events = state->watch || source->capture->options->event;
		next = ky_drums_round(state->drums, all || events) * UINT64_C(1000);
	}
	if (source->capture->options->event && next > LIVE_EVERY_NS)
		next = LIVE_EVERY_NS;
	if (!state->watch)
		return next;
	ky_watch_tick(state->watch, now);
	return next < WATCH_EVERY_NS ? next : WATCH_EVERY_NS;
}

static void window(struct ky_source *source, uint64_t from_ns, uint64_t to_ns)
{
	const struct drums_state *const state = source->state;
	if (state->drums)
		ky_drums_window(state->drums, from_ns, to_ns);
}

uint64_t ky_source_drums_mark(const struct ky_capture *capture, uint64_t since_ns)
{
	const struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	return state->drums ? ky_drums_mark(state->drums, since_ns) : 0;
}

/* ---- ends ---- */

static void ended(struct ky_source *source, pid_t pid, int status)
{
	const struct drums_state *const state = source->state;
	(void)status;
	look_for_wanted(state, pid);
	if (state->drums)
		ky_drums_ended(state->drums, pid);
	if (state->watch)
		ky_watch_ended(state->watch, pid);
}

/* The end of a process with a drum of its own is reported by the processes. */
void ky_source_drums_child_ended(void *context, pid_t pid)
{
	struct ky_capture *const capture = context;
	const struct drums_state *const state = ky_source_state(capture, KY_SOURCE_DRUMS);
	if ((!state->watch && !capture->on_exit) || ky_source_drums_has(capture, pid))
		return;
	ended(&capture->sources[KY_SOURCE_DRUMS], pid, -1);
	ky_snapshots_exit(capture, pid, -1);
}

static void facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	const struct drums_state *const state = source->state;
	struct ky_drums_facts drum;
	facts->events_lost = facts->damaged = 0;
	facts->mailbox_overflow |= state->refused;
	for (uint32_t i = 0; state->drums && i < ky_drums_count(state->drums); i++) {
		if (!ky_drums_facts(state->drums, i, &drum))
			continue;
		facts->events_lost += drum.lost;
		facts->damaged += drum.damaged;
	}
}

static void close_drums(struct ky_source *source)
{
	struct drums_state *const state = source->state;
	note_unmatched(source->capture, state);
	ky_wanted_close(&state->wanted);
	if (state->watch && ky_watch_dropped(state->watch))
		ky_source_note(
			source->capture,
			"triggers: %" PRIu64
			" events were not watched: too many threads, nested or asynchronous spans, or counters at once",
			ky_watch_dropped(state->watch));
	ky_drums_close(&state->drums);
	ky_watch_close(&state->watch);
	for (uint32_t i = 0; i < UNFINISHED_MAX; i++) {
		if (state->unfinished[i].pid)
			forget_unfinished(&state->unfinished[i]);
	}
	ky_pids_free(&state->recorded);
	ky_u64_map_free(&state->children);
	free(state);
}

const struct ky_source_ops ky_source_drums = {
	.open = open_drums,
	.round = read_new,
	.window = window,
	.ended = ended,
	.facts = facts,
	.close = close_drums,
};
