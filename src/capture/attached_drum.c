/* SPDX-License-Identifier: MIT */
/*
 * attached_drum.c: read a drum while another process writes it.
 *
 * Cost for the process. It pays when a cache line that it writes was read here since. So the rings
 * are read as rarely as their fill allows, and a round reads only the head of each ring, in the
 * directory, and what is new. Reading never allocates memory for its rings.
 *
 * Order. Pieces are written as they are; the reader of the file orders them. Events for triggers
 * are handed out up to a moment before now, because an earlier event may still be on its way into
 * its ring.
 *
 * Bounds. A round reads a limited number of pieces, except with `all`, which is limited to a few
 * times the size of the rings. A drum whose rings claim more than there is memory for is not read,
 * and one with more threads than there are thread ids is given up.
 */
#include "capture/attached_drum.h"

#include "base/array.h"
#include "base/fail.h"
#include "core/losses.h"
#include "process/drum_find.h"
#include "process/proc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 16 MiB, some 50 ms of work. Decoding events takes longer, and must not delay writing. */
#define PIECES_A_ROUND 4096u
#define EVENT_PIECES_A_ROUND 512u
/* The kernel's own limit: a server may use all of them in a long capture. */
#define THREADS_MAX (1u << 22)
/* The most names that a file keeps of a process that renames itself again and again. */
#define PROCESS_NAMES_MAX 4096u
/* The most ends of threads that a file keeps of a process. */
#define ENDS_MAX (1u << 20)
/* Clock readings in a stream, in addition to those that differ from a straight line. */
#define CLOCK_EVERY_NS UINT64_C(1000000000)
#define CLOCK_OFF_NS 1000u
/* An event that is being written now is nearly always in its ring within this time. */
#define LAG_NS UINT64_C(1000000)

static uint64_t load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* Return what the drum counted since it was attached. A count that was overwritten is not a number of events. */
static struct ky_lost_counts losses_since(const struct ky_attached_drum *d, uint64_t damaged)
{
	struct ky_lost_counts now = ky_losses_read(d->pieces.view.live, damaged);
	for (uint32_t i = 0; i < KY_LOST_CAUSES; i++) {
		now.count[i] -= d->lost_before.count[i];
		if (now.count[i] >= UINT64_MAX / 2)
			now.count[i] = 0;
	}
	return now;
}

/*
 * Return the number of missing events: those overwritten before they were read, and those that
 * never got into a ring since the drum was attached.
 */
static uint64_t count_lost(const struct ky_attached_drum *d)
{
	const struct ky_lost_counts since = losses_since(d, 0);
	const bool streaming = d->options->bundle && !d->options->flight;
	const uint64_t overwritten = streaming || !d->has_events ? d->pieces.lost : d->events.lost;
	return overwritten + d->window.lost + ky_losses_events(&since);
}

/* ---- into the bundle ---- */

/* Copy a text for display: bytes that would move a terminal's cursor become '?'. */
static void copy_text(char *to, size_t room, struct ky_text text)
{
	const size_t bytes = text.bytes < room - 1 ? text.bytes : room - 1;
	memcpy(to, text.data, bytes);
	to[bytes] = '\0';
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)to[i] < ' ' || to[i] == 0x7f)
			to[i] = '?';
}

static struct ky_text name_of(struct ky_attached_drum *d)
{
	const uint32_t record =
		__atomic_load_n(&d->pieces.view.live->process_name, __ATOMIC_ACQUIRE);
	const struct ky_text text = ky_drum_view_string(&d->pieces.view, record);
	d->name_written = record;
	if (text.bytes)
		copy_text(d->process, sizeof(d->process), text);
	return (struct ky_text){d->process, (uint32_t)strlen(d->process)};
}

/* Make the part when there is something to write. */
static uint32_t make_part(struct ky_attached_drum *d)
{
	if (d->part || !d->options->bundle)
		return d->part;
	char command[PATH_MAX];
	const int bytes = ky_proc_exe(d->pid, command, sizeof(command));
	const struct ky_trace_info info = {
		.pid = d->pid,
		.process = name_of(d),
		.command = {command, bytes > 0 ? (uint32_t)bytes : 0},
		.clock = d->pieces.clock.readings[d->pieces.clock.count - 1],
		.ticks_per_s = ky_clock_ticks_per_s(&d->pieces.clock),
		.layer = d->layer,
	};
	d->part = ky_bundle_drum(d->options->bundle, &info);
	return d->part;
}

static void report_child(const struct ky_attached_drum *d, const struct ky_thread *ours)
{
	if (ours && ours->pid != d->pid && d->options->child)
		d->options->child(d->options->child_context, ours->pid);
}

static void on_thread(void *context, const struct ky_thread *thread)
{
	struct ky_attached_drum *d = context;
	const struct ky_thread *ours = ky_drum_threads_get(&d->piece_threads, thread);
	report_child(d, ours);
	/* A thread that keeps its name was written before, or comes with its first piece. */
	if (ours && ours->name.data == thread->name.data && make_part(d))
		ky_bundle_thread(d->options->bundle, d->part, ours);
}

/* ---- threads that ended ---- */

static struct ky_ring_seen *ring_seen(struct ky_attached_drum *d, uint32_t ring)
{
	if (!KY_ARRAY_GROW(d->rings, d->rings_room, ring + 1))
		return NULL;
	for (; d->rings_count <= ring; d->rings_count++)
		d->rings[d->rings_count] = (struct ky_ring_seen){0};
	return &d->rings[ring];
}

static void write_end(struct ky_attached_drum *d, struct ky_ring_seen *seen, uint64_t ticks)
{
	if (!(ticks & KY_RING_MOVED) && d->ends_written++ < ENDS_MAX)
		ky_bundle_thread_end(d->options->bundle, d->part, seen->here,
				     ky_clock_map_ns(&d->pieces.clock, ticks));
	seen->here = 0;
}

/* An owner's first block has when the one before left the ring. Other drums than a program's own are of several processes. */
static void note_owner(struct ky_attached_drum *d, const struct ky_block *block,
		       const struct ky_thread *ours)
{
	struct ky_ring_seen *const seen =
		d->layer == KY_DRUM_OWN && !block->level ? ring_seen(d, block->ring) : NULL;
	if (!seen)
		return;
	if (seen->here && block->left_ticks > seen->ticks)
		write_end(d, seen, block->left_ticks);
	seen->here = ours->tid;
	seen->tid = block->tid;
	seen->ticks = block->ticks;
}

static const struct ky_drum_block *newest_block(const struct ky_drum_view *view, uint32_t ring)
{
	struct ky_ring_cursor cursor;
	ky_ring_cursor_init(&cursor, ring, false);
	return ky_ring_find(view, &cursor) ? ky_ring_newest(view, &cursor) : NULL;
}

/* Note the ends of threads whose ring nobody has taken since. */
static void write_ends(struct ky_attached_drum *d)
{
	for (uint32_t i = 0; i < d->rings_count; i++) {
		const struct ky_drum_ring *const entry = &d->pieces.view.rings[i];
		struct ky_ring_seen *const seen = &d->rings[i];
		/* Pairs with the release in ky_ring_release(): it is known when a free ring was given back. */
		if (!seen->here || __atomic_load_n(&entry->owner, __ATOMIC_ACQUIRE) != 0)
			continue;
		const uint64_t ticks = load(&entry->released_ticks);
		const struct ky_drum_block *const newest = newest_block(&d->pieces.view, i);
		if (ticks >= seen->ticks && newest &&
		    __atomic_load_n(&newest->tid, __ATOMIC_RELAXED) == seen->tid)
			write_end(d, seen, ticks);
	}
}

static void on_block(void *context, const struct ky_block *block, const struct ky_thread *thread)
{
	struct ky_attached_drum *d = context;
	const struct ky_thread *ours = ky_drum_threads_get(&d->piece_threads, thread);
	if (!ours || !make_part(d))
		return;
	note_owner(d, block, ours);
	ky_bundle_block(d->options->bundle, d->part, block, ours, &d->pieces.sites);
}

static void write_clock(struct ky_attached_drum *d, const struct ky_tick_reading *sample)
{
	const struct ky_tick_reading *before = &d->clock_written;
	d->clock_rate = before->ticks
				? (uint64_t)((ky_u128)(sample->boottime_ns - before->boottime_ns) *
					     KY_CLOCK_RATE_ONE / (sample->ticks - before->ticks))
				: 0;
	d->clock_written = *sample;
	ky_bundle_clock(d->options->bundle, d->part, sample);
}

/* Write the readings from the last before from_ns to the first after to_ns, each once. */
static void write_clocks(struct ky_attached_drum *d, uint64_t from_ns, uint64_t to_ns)
{
	const struct ky_clock_map *clock = &d->pieces.clock;
	for (uint32_t i = 0; d->part && i < clock->count; i++) {
		const struct ky_tick_reading *sample = &clock->readings[i];
		if (i + 1 < clock->count && sample[1].boottime_ns <= from_ns)
			continue;
		if (i > 0 && sample[-1].boottime_ns > to_ns)
			break;
		if (sample->ticks > d->clock_written.ticks)
			write_clock(d, sample);
	}
}

/* Report whether the readings written so far predict another time: the clock was slewed since. */
static bool clock_is_off(const struct ky_attached_drum *d, const struct ky_tick_reading *sample)
{
	const struct ky_tick_reading *before = &d->clock_written;
	const uint64_t predicted_ns =
		before->boottime_ns + (uint64_t)((ky_u128)(sample->ticks - before->ticks) *
						 d->clock_rate / KY_CLOCK_RATE_ONE);
	return predicted_ns - sample->boottime_ns + CLOCK_OFF_NS > 2 * CLOCK_OFF_NS;
}

/*
 * Write all readings at the beginning of a stream, then as few as possible, because the file and
 * its writer keep them all. With last, write the last one too.
 */
static void stream_clocks(struct ky_attached_drum *d, bool last)
{
	const struct ky_clock_map *clock = &d->pieces.clock;
	if (!d->part || ky_clock_horizon(clock) <= d->clock_written.ticks)
		return;
	const struct ky_tick_reading *newest = &clock->readings[clock->count - 1];
	if (d->clock_written.ticks == 0) {
		write_clocks(d, 0, UINT64_MAX);
		return;
	}
	const bool off = clock_is_off(d, newest);
	if (off && clock->count > 1 && newest[-1].ticks > d->clock_written.ticks)
		write_clock(d, &newest[-1]);
	if (off || last || newest->boottime_ns >= d->clock_written.boottime_ns + CLOCK_EVERY_NS)
		write_clock(d, newest);
}

static void write_name(struct ky_attached_drum *d)
{
	const uint32_t record =
		__atomic_load_n(&d->pieces.view.live->process_name, __ATOMIC_ACQUIRE);
	if (!d->part || record == d->name_written || d->names_written == PROCESS_NAMES_MAX)
		return;
	d->names_written++;
	ky_bundle_process(d->options->bundle, d->part, d->pid, name_of(d));
}

static void on_event_thread(void *context, const struct ky_thread *thread)
{
	struct ky_attached_drum *d = context;
	report_child(d, ky_drum_threads_get(&d->event_threads, thread));
}

static void on_event(void *context, const struct ky_event *event)
{
	struct ky_attached_drum *d = context;
	struct ky_event ours = *event;
	const struct ky_thread *thread = ky_drum_threads_get(&d->event_threads, event->thread);
	if (thread)
		ours.thread = thread;
	d->options->event(d->options->context, thread ? thread->pid : d->pid, &ours);
}

/* ---- opening ---- */

static int open_stream(struct ky_attached_drum *d, struct ky_stream *stream, const char *globs,
		       bool newest, char *message)
{
	const char *what = "";
	const int error =
		ky_stream_open(stream, d->map.base, d->map.bytes, globs, newest, 0, &what);
	if (error)
		return ky_fail(message, error, "%s: %s; %s", d->name, what,
			       error == -ENOTSUP ? "use the kymo that belongs to the program"
						 : "expected the buffer of a kymo program");
	stream->sites.several = d->made;
	if (ky_drum_clock_begin(&stream->clock, &stream->view, d->ours) != 0)
		return ky_fail(message, -ENOMEM, "%s: not enough memory", d->name);
	return 0;
}

/* Check the header. The streams check it too. */
static int check_header(struct ky_attached_drum *d, const struct ky_drum_clocks *clocks,
			char *message)
{
	struct ky_drum_view view;
	const char *what = "";
	const int error = ky_drum_view_open(&view, d->map.base, d->map.bytes, &what);
	if (error)
		return ky_fail(message, error,
			       "%s: byte %llu: %s; expected the buffer of a "
			       "program with this version of kymo",
			       d->name, (unsigned long long)view.bad_at, what);
	d->made_ns = view.header.made_boottime_ns;
	d->image = view.header.image;
	d->layer =
		view.header.layer <= KY_DRUM_SWITCHES ? (uint32_t)view.header.layer : KY_DRUM_OWN;
	d->ours = ky_drum_clocks_of(clocks, view.header.tick_source);
	if (!d->ours)
		return ky_fail(
			message, -ENOTSUP,
			"%s: unknown clock (%u): expected the buffer of a process on this machine",
			d->name, view.header.tick_source);
	return 0;
}

static int open_streams(struct ky_attached_drum *d, bool newest, char *message)
{
	const bool streaming = d->options->bundle && !d->options->flight;
	const struct ky_drums_options *o = d->options;
	/* A drum that kymo made holds only the functions that were selected. */
	const char *const categories = d->layer == KY_DRUM_OWN ? o->categories : NULL;
	int error = open_stream(d, &d->pieces, categories, newest && streaming, message);
	if (error)
		return error;
	d->pieces.sink =
		(struct ky_stream_sink){.thread = on_thread, .block = on_block, .context = d};
	const pid_t own_pid = (pid_t)d->pieces.view.header.pid;
	ky_drum_threads_open(&d->piece_threads, d->pid, own_pid, d->map.inode);
	ky_drum_threads_open(&d->event_threads, d->pid, own_pid, d->map.inode);
	if (newest)
		d->lost_before = ky_losses_read(d->pieces.view.live, 0);
	if (!o->event)
		return 0;
	error = open_stream(d, &d->events, o->event_categories ? o->event_categories : categories,
			    newest, message);
	d->has_events = error == 0;
	d->events.sink =
		(struct ky_stream_sink){.thread = on_event_thread, .event = on_event, .context = d};
	return error;
}

/* Switch the categories on. Without that the drum can still be read: then only the message reports it. */
static void switch_on(struct ky_attached_drum *d, char *message)
{
	const struct ky_drums_options *o = d->options;
	const struct ky_drum_view *view = &d->pieces.view;
	/* A function that is not wanted is not patched, so there is nothing to switch. */
	if (!o->switch_on || d->layer != KY_DRUM_OWN ||
	    ky_drum_map_write(&d->map, view, d->name, message) != 0)
		return;
	if (o->ring_bytes || o->total_bytes)
		ky_recorder_slot_grow(&d->map, view, o->ring_bytes, o->total_bytes);
	if (o->bundle && !o->flight)
		d->reader = ky_recorder_slot_stall(&d->map, view, o->stall_ns, &d->pieces);
	const int slot =
		ky_recorder_slot_on(&d->map, view, &d->own, o->categories, d->name, message);
	d->slot = slot > 0 ? (uint32_t)slot : KY_DRUM_NO_SLOT;
	d->damaged += slot == -EBADMSG;
}

void ky_attached_drum_tidy(struct ky_attached_drum *d)
{
	char message[KY_MESSAGE_BYTES];
	const struct ky_drum_view *view = &d->pieces.view;
	if (d->layer == KY_DRUM_OWN && ky_recorder_slot_left(view->live, &d->own) &&
	    (d->map.writable || ky_drum_map_write(&d->map, view, d->name, message) == 0))
		ky_recorder_slot_tidy(&d->map, view, &d->own);
}

int ky_attached_drum_edit_own(struct ky_attached_drum *d, const char *categories, bool on,
			      char message[KY_MESSAGE_BYTES])
{
	const struct ky_drum_view *view = &d->pieces.view;
	const int error = d->map.writable ? 0 : ky_drum_map_write(&d->map, view, d->name, message);
	return error ? error
		     : ky_recorder_slot_edit_own(&d->map, view, categories, on, d->name, message);
}

static int open_all(struct ky_attached_drum *d, int fd, const struct ky_drum_clocks *clocks,
		    uint64_t since_ns, char *message)
{
	int error = ky_drum_map_open(&d->map, fd, d->name, message);
	if (error == 0)
		error = check_header(d, clocks, message);
	if (error == 0)
		error = open_streams(d, d->made_ns < since_ns, message);
	if (error == 0)
		switch_on(d, message);
	if (error == 0)
		ky_attached_drum_tidy(d);
	return error;
}

int ky_attached_drum_open(struct ky_attached_drum **out, int fd, pid_t pid, bool made,
			  const struct ky_drums_options *options,
			  const struct ky_drum_clocks *clocks,
			  const struct ky_recorder_slot_owner *own, uint64_t since_ns,
			  char message[KY_MESSAGE_BYTES])
{
	struct ky_attached_drum *d = calloc(1, sizeof(*d));
	*out = NULL;
	if (!d)
		return ky_fail(message, -ENOMEM, "process %d: not enough memory", (int)pid);
	d->options = options;
	d->pid = pid;
	d->made = made;
	d->own = *own;
	d->map.fd = -1;
	d->backed = true;
	snprintf(d->name, sizeof(d->name), "process %d: buffer", (int)pid);
	snprintf(d->process, sizeof(d->process), "process %d", (int)pid);
	d->reader = -1;
	const int error = open_all(d, fd, clocks, since_ns, message);
	if (error)
		ky_attached_drum_close(&d);
	*out = d;
	return error;
}

void ky_attached_drum_leave(struct ky_attached_drum *d)
{
	if (d->slot != KY_DRUM_NO_SLOT)
		ky_recorder_slot_off(&d->map, &d->pieces.view, d->slot, &d->own);
	d->slot = KY_DRUM_NO_SLOT;
	ky_recorder_slot_unstall(&d->map, d->reader);
	d->reader = -1;
}

/* A process of which only the losses are known is in the file for these. */
static void end_part(struct ky_attached_drum *d)
{
	const uint64_t lost = count_lost(d) + d->pieces.damaged;
	const struct ky_lost_counts losses = losses_since(d, d->pieces.damaged);
	uint64_t any = lost;
	for (uint32_t i = 0; i < KY_LOST_CAUSES; i++)
		any |= losses.count[i];
	if (any && !d->options->flight)
		make_part(d);
	if (!d->options->flight)
		stream_clocks(d, true);
	if (d->part && d->ended && !d->options->flight)
		ky_bundle_program_end(d->options->bundle, d->part, d->ended_ns);
	for (uint32_t i = 0; d->part && i < KY_LOST_CAUSES; i++)
		if (losses.count[i])
			ky_bundle_loss(d->options->bundle, d->part, ky_losses_what(i),
				       losses.count[i]);
	if (d->part)
		ky_bundle_drum_end(d->options->bundle, d->part, lost);
}

void ky_attached_drum_close(struct ky_attached_drum **drum)
{
	struct ky_attached_drum *d = *drum;
	if (!d)
		return;
	*drum = NULL;
	if (d->pieces.view.base) {
		ky_attached_drum_leave(d);
		end_part(d);
	}
	ky_stream_close(&d->pieces);
	ky_stream_close(&d->events);
	ky_drum_window_free(&d->window);
	KY_ARRAY_FREE(d->rings, d->rings_room);
	ky_drum_threads_close(&d->piece_threads);
	ky_drum_threads_close(&d->event_threads);
	ky_drum_map_close(&d->map);
	free(d);
}

/* ---- reading ---- */

void ky_attached_drum_follow_clock(struct ky_attached_drum *d)
{
	(void)ky_drum_clock_follow(&d->pieces.clock, d->ours);
	if (d->has_events)
		(void)ky_drum_clock_follow(&d->events.clock, d->ours);
}

/* Return how many blocks of a ring may wait to be read, from its size when it was first seen. */
static uint64_t blocks_written(const struct ky_attached_drum *d, uint32_t ring)
{
	const struct ky_drum_ring *entry = &d->pieces.view.rings[ring];
	uint64_t blocks = load(&entry->bytes) / KY_BLOCK_BYTES;
	if (ring < d->pieces.inputs_count && d->pieces.inputs[ring]->cursor.blocks)
		blocks = d->pieces.inputs[ring]->cursor.blocks;
	const uint64_t head = __atomic_load_n(&entry->head, __ATOMIC_ACQUIRE);
	return head < blocks ? head : blocks;
}

/* Look at the rings first: what they wrote by now has memory, if they did. */
/* Report whether there is memory behind all blocks that the rings claim to have written. */
static bool is_backed(const struct ky_attached_drum *d)
{
	const uint64_t most = d->map.bytes / KY_BLOCK_BYTES;
	uint64_t blocks = 0;
	for (uint32_t i = 0; i < ky_drum_view_rings(&d->pieces.view) && blocks <= most; i++) {
		const uint64_t written = blocks_written(d, i);
		blocks += written < most ? written : most + 1;
	}
	return blocks <= most && ky_drum_map_has_memory(&d->map, blocks * KY_BLOCK_BYTES);
}

/* Report whether the drum can be read now. */
static bool is_readable(struct ky_attached_drum *d)
{
	if (!d->given_up && (d->pieces.sites.threads_count > THREADS_MAX ||
			     d->events.sites.threads_count > THREADS_MAX)) {
		d->given_up = true;
		d->damaged++;
	}
	if (d->given_up)
		return false;
	const bool backed = is_backed(d);
	d->damaged += d->backed && !backed;
	d->backed = backed;
	return backed;
}

static uint64_t horizon(const struct ky_attached_drum *d, bool all)
{
	if (d->ended)
		return UINT64_MAX;
	const uint64_t now = ky_tick_source_ticks(d->pieces.view.header.tick_source);
	const uint64_t lag =
		(uint64_t)((ky_u128)ky_clock_ticks_per_s(d->ours) * LAG_NS / 1000000000u);
	return all || now < lag ? now : now - lag;
}

static void read_stream(struct ky_stream *stream, uint64_t until, uint64_t pieces_max)
{
	stream->pieces_max = pieces_max;
	(void)ky_stream_read_to(stream, until);
	if (pieces_max == 0)
		ky_stream_read_rest(stream);
}

void ky_attached_drum_read(struct ky_attached_drum *d, bool all)
{
	const bool streaming = d->options->bundle && !d->options->flight;
	if ((!streaming && !d->has_events) || !is_readable(d))
		return;
	const uint64_t until = horizon(d, all);
	if (streaming) {
		read_stream(&d->pieces, until, all ? 0 : PIECES_A_ROUND);
		stream_clocks(d, false);
		write_name(d);
		write_ends(d);
	}
	if (d->has_events)
		read_stream(&d->events, until, all ? 0 : EVENT_PIECES_A_ROUND);
}

void ky_attached_drum_window(struct ky_attached_drum *d, uint64_t from_ns, uint64_t to_ns)
{
	if (!d->options->bundle || !is_readable(d))
		return;
	if (ky_drum_window_read(&d->window, &d->pieces, from_ns, to_ns) != 0)
		d->damaged++;
}

/* A window that continues another one has the beginnings of its spans. */
static bool begins_anew(const struct ky_attached_drum *d, uint64_t from_ns)
{
	return d->options->bundle && from_ns > d->window_ns;
}

void ky_attached_drum_note_open(struct ky_attached_drum *d, uint64_t from_ns,
				struct ky_open_order *order)
{
	if (begins_anew(d, from_ns) && is_readable(d) &&
	    ky_drum_window_note_open(&d->pieces, (uint32_t)d->pid, from_ns, order) != 0)
		d->damaged++;
}

void ky_attached_drum_window_end(struct ky_attached_drum *d, uint64_t from_ns, uint64_t to_ns,
				 const struct ky_open_order *order)
{
	if (!d->options->bundle || !is_readable(d))
		return;
	if (begins_anew(d, from_ns) &&
	    ky_drum_window_open_spans(&d->pieces, (uint32_t)d->pid, from_ns, order) != 0)
		d->damaged++;
	d->window_ns = to_ns > d->window_ns ? to_ns : d->window_ns;
	write_clocks(d, from_ns, to_ns);
	write_name(d);
	write_ends(d);
}

uint32_t ky_attached_drum_pressure(const struct ky_attached_drum *d)
{
	const bool streaming = d->options->bundle && !d->options->flight;
	const uint32_t pieces = streaming ? ky_stream_pressure(&d->pieces) : 0;
	const uint32_t events = d->has_events ? ky_stream_pressure(&d->events) : 0;
	return pieces > events ? pieces : events;
}

uint64_t ky_attached_drum_mark(struct ky_attached_drum *d)
{
	const uint64_t ticks = __atomic_load_n(&d->pieces.view.live->mark_ticks, __ATOMIC_ACQUIRE);
	return ticks ? ky_clock_map_ns(&d->pieces.clock, ticks) : 0;
}

static uint64_t count_damaged(const struct ky_attached_drum *d)
{
	return d->damaged + d->pieces.damaged + d->events.damaged + d->window.damaged +
	       ky_drum_map_is_cut(&d->map);
}

/* ---- facts ---- */

static uint64_t events_of(const struct ky_drum_view *view, uint32_t ring)
{
	const struct ky_drum_block *block = newest_block(view, ring);
	return block ? ky_drum_block_events(block) : 0;
}

static void count_rings(const struct ky_drum_view *view, struct ky_drums_facts *facts)
{
	for (uint32_t i = 0; i < ky_drum_view_rings(view); i++) {
		const struct ky_drum_ring *ring = &view->rings[i];
		facts->threads += __atomic_load_n(&ring->owner, __ATOMIC_RELAXED) != 0 &&
				  __atomic_load_n(&ring->level, __ATOMIC_RELAXED) == 0;
		facts->events += events_of(view, i);
	}
}

static void count_categories(const struct ky_drum_view *view, struct ky_drums_facts *facts)
{
	for (uint32_t i = 0; i < view->header.categories_max; i++) {
		const struct ky_drum_category *category = &view->categories[i];
		if (__atomic_load_n(&category->name, __ATOMIC_ACQUIRE) == 0)
			break;
		facts->categories++;
		facts->categories_on +=
			(__atomic_load_n(&category->state, __ATOMIC_RELAXED) & 0xff) != 0;
	}
}

void ky_attached_drum_facts(const struct ky_attached_drum *drum, struct ky_drums_facts *facts)
{
	const struct ky_drum_view *view = &drum->pieces.view;
	const struct ky_drum_header *live = view->live;
	*facts = (struct ky_drums_facts){
		.pid = drum->pid,
		.ended = drum->ended,
		.lost = count_lost(drum),
		.damaged = count_damaged(drum),
		.pressure = drum->ended ? 0 : ky_attached_drum_pressure(drum),
		.recorders = ky_recorder_slot_count(live, &drum->own),
	};
	const struct ky_text name =
		ky_drum_view_string(view, __atomic_load_n(&live->process_name, __ATOMIC_ACQUIRE));
	if (name.bytes)
		copy_text(facts->name, sizeof(facts->name), name);
	else
		memcpy(facts->name, drum->process, sizeof(facts->name));
	/* Counting rings that claim blocks which do not exist would allocate memory for them. */
	if (!drum->given_up && is_backed(drum))
		count_rings(view, facts);
	count_categories(view, facts);
}

bool ky_attached_drum_category(const struct ky_attached_drum *drum, uint32_t category, char *name,
			       size_t room, bool *on)
{
	const struct ky_drum_view *view = &drum->pieces.view;
	if (category >= view->header.categories_max || room == 0)
		return false;
	const struct ky_drum_category *entry = &view->categories[category];
	const uint32_t record = __atomic_load_n(&entry->name, __ATOMIC_ACQUIRE);
	if (record == 0)
		return false;
	copy_text(name, room, ky_drum_view_string(view, record));
	*on = (__atomic_load_n(&entry->state, __ATOMIC_RELAXED) & 0xff) != 0;
	return true;
}
