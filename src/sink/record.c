/* SPDX-License-Identifier: MIT */
/*
 * record.c: a round of a session's thread.
 *
 *   stream mode   read new events ─▶ balance spans ─▶ write ─▶ push now and then
 *   ring mode     for each snapshot: read all that the rings hold ─▶ a file of its own
 */
#include "core/stall.h"
#include "core/stream_place.h"
#include "sink/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define CLOCK_EVERY_NS UINT64_C(1000000000)

static struct ky_lost_counts losses_now(const struct kymo_session *s)
{
	return ky_losses_read(s->drum->header, s->stream.damaged);
}

static uint64_t all_lost(const struct kymo_session *s)
{
	const struct ky_lost_counts now = losses_now(s);
	return s->stream.lost + ky_losses_events(&now) - ky_losses_events(&s->lost_before);
}

/* Write what was lost by each cause since the counts. Return the counts now. */
static struct ky_lost_counts write_losses(struct kymo_session *s,
					  const struct ky_lost_counts *since)
{
	const struct ky_lost_counts now = losses_now(s);
	for (uint32_t i = 0; s->output.writer && i < KY_LOST_CAUSES; i++)
		if (now.count[i] > since->count[i])
			s->output.format->loss(s->output.writer, ky_losses_what(i),
					       now.count[i] - since->count[i]);
	return now;
}

/* Finish the file with the losses since it began. */
static int finish_output(struct kymo_session *s)
{
	const uint64_t lost = all_lost(s);
	s->losses_told = write_losses(s, &s->losses_told);
	const int error = ky_output_finish(&s->output, lost - s->lost_told);
	s->lost_told = lost;
	if (!error)
		s->safe = s->written;
	return error;
}

static void fill_info(struct kymo_session *s, struct ky_trace_info *info, char command[PATH_MAX])
{
	const ssize_t bytes = readlink("/proc/self/exe", command, PATH_MAX - 1);
	command[bytes > 0 ? bytes : 0] = '\0';
	/* Pairs with the release store in kymo_process_name(); so below. */
	s->process_name = __atomic_load_n(&s->drum->header->process_name, __ATOMIC_ACQUIRE);
	*info = (struct ky_trace_info){
		.pid = s->pid,
		.process = ky_drum_view_string(&s->stream.view, s->process_name),
		.command = {command, bytes > 0 ? (uint32_t)bytes : 0},
		.ticks_per_s = ky_clock_ticks_per_s(&s->stream.clock),
	};
	if (s->stream.clock.count)
		info->clock = s->stream.clock.readings[s->stream.clock.count - 1];
}

/* Go on with the file of a session that was left, or else begin one with a number. */
static int resume_output(struct kymo_session *s, const char *path, const struct ky_trace_info *info)
{
	const struct ky_drum_header *h = s->drum->header;
	char label[48], numbered[PATH_MAX];
	if (ky_output_resume(&s->output, path, h->left_identity, info) == 0)
		return 0;
	snprintf(label, sizeof(label), "%d-%u", s->pid, h->left_files + 1);
	const int bytes = ky_path_insert(numbered, sizeof(numbered), path, label);
	return bytes < 0 ? bytes : ky_output_begin(&s->output, numbered, false, info);
}

static int begin_output(struct kymo_session *s, bool replacing, const struct ky_trace_info *info)
{
	char path[PATH_MAX];
	if (s->options.path) {
		const int bytes =
			ky_path_expand(path, sizeof(path), s->options.path, s->pid, s->rotation);
		if (bytes < 0)
			return bytes;
		const bool resume = s->env.resume && !replacing;
		s->env.resume = false;
		return resume ? resume_output(s, path, info)
			      : ky_output_begin(&s->output, path, replacing, info);
	}
	/* The one file of a stream takes the descriptor, so that a pipe's reader sees its end. */
	int fd = s->fd;
	if (s->options.mode == KYMO_MODE_RING)
		fd = fcntl(s->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	else
		s->fd = -1;
	return fd < 0 ? -errno : ky_output_begin_fd(&s->output, fd, info);
}

/* Begin a file. It is complete in itself: names and open spans come again. */
static int begin_file(struct kymo_session *s, bool replacing)
{
	char command[PATH_MAX];
	struct ky_trace_info info;
	fill_info(s, &info, command);
	const int error = begin_output(s, replacing, &info);
	if (error)
		return error;
	s->rotation++;
	s->held_bytes = 0;
	s->clocks_written = 0;
	/* Blocks hold ticks and need every reading; otherwise the file's head has the first. */
	s->clock_ns = s->output.format->block ? 0 : info.clock.boottime_ns;
	for (uint32_t i = 0; i < s->stream.sites.threads_room; i++)
		if (s->stream.sites.threads[i])
			s->output.format->thread(s->output.writer, s->stream.sites.threads[i]);
	if (!s->output.format->block)
		ky_spans_reopen(&s->spans);
	return 0;
}

static void write_clocks(struct kymo_session *s)
{
	const struct ky_clock_map *clock = &s->stream.clock;
	if (!s->output.format->clock || !s->output.writer)
		return;
	const uint64_t every = s->output.format->block ? 0 : CLOCK_EVERY_NS;
	for (; s->clocks_written < clock->count; s->clocks_written++) {
		const struct ky_tick_reading *reading = &clock->readings[s->clocks_written];
		if (reading->boottime_ns < s->clock_ns + every)
			continue;
		s->clock_ns = reading->boottime_ns;
		s->output.format->clock(s->output.writer, reading);
	}
}

static void write_process(struct kymo_session *s)
{
	/* Pairs with the release store in kymo_process_name(): the string is there. */
	const uint32_t name = __atomic_load_n(&s->drum->header->process_name, __ATOMIC_ACQUIRE);
	if (name == s->process_name || !s->output.writer)
		return;
	s->process_name = name;
	s->output.format->process(s->output.writer, s->pid,
				  ky_drum_view_string(&s->stream.view, name));
}

/* A format that packs blocks holds some, and ends a file with definitions and an index: near the limit, pack at once. */
static uint64_t bytes_at_end(struct kymo_session *s)
{
	const uint64_t least = s->options.max_bytes / 16;
	uint64_t bytes = ky_output_bytes(&s->output);
	if (!s->output.format->block)
		return bytes;
	bytes += bytes / 64 + least;
	if (bytes + s->held_bytes < s->options.max_bytes)
		return 0;
	s->output.format->flush(s->output.writer);
	s->held_bytes = 0;
	bytes = ky_output_bytes(&s->output);
	return bytes + bytes / 64 + least;
}

static void check_size(struct kymo_session *s)
{
	if (s->options.max_bytes == 0 || bytes_at_end(s) < s->options.max_bytes)
		return;
	if (s->output.compressed) { /* the limit is of the compressed size, including buffers */
		ky_output_push(&s->output, true);
		if (s->output.file_bytes < s->options.max_bytes)
			return;
	}
	if (!s->options.path || !ky_path_rotates(s->options.path)) {
		s->full = true;
		return;
	}
	s->rotation_due = true;
}

/* Begin the next file, if that is due: so the last one is never empty. */
static void rotate(struct kymo_session *s)
{
	s->rotation_due = false;
	write_clocks(s);
	const int error = finish_output(s);
	ky_session_fail(s, error ? error : begin_file(s, false));
}

static void on_thread(void *context, const struct ky_thread *thread)
{
	struct kymo_session *s = context;
	if (s->output.writer)
		s->output.format->thread(s->output.writer, thread);
}

static void on_balanced(void *context, const struct ky_event *event)
{
	struct kymo_session *s = context;
	if (s->output.writer && !s->full)
		s->output.format->event(s->output.writer, event);
}

/* Events of a format that packs blocks are in the file only when all was pushed. */
static void push(struct kymo_session *s, bool all)
{
	ky_output_push(&s->output, all);
	if (!s->output.out.error && (all || !s->output.format->block))
		s->safe = s->written;
}

static void after_write(struct kymo_session *s)
{
	if (!s->output.writer || s->full)
		return;
	if (ky_output_is_full(&s->output))
		push(s, false);
	check_size(s);
}

static void on_event(void *context, const struct ky_event *event)
{
	struct kymo_session *s = context;
	if (s->rotation_due)
		rotate(s);
	if (s->output.writer && !s->full && event->kind != KYMO_KIND_LOST)
		s->written++;
	ky_spans_pass(&s->spans, event);
	after_write(s);
}

static void on_block(void *context, const struct ky_block *block, const struct ky_thread *thread)
{
	struct kymo_session *s = context;
	if (s->rotation_due)
		rotate(s);
	if (s->output.writer && !s->full) {
		s->written += block->events;
		s->held_bytes += block->count * sizeof(uint64_t);
		s->output.format->block(s->output.writer, block, thread, &s->stream.sites);
	}
	after_write(s);
}

static void on_end(void *context, const struct ky_thread *thread, uint64_t time_ns)
{
	struct kymo_session *s = context;
	if (!s->output.format->end)
		ky_spans_end(&s->spans, thread, time_ns);
	else if (s->output.writer && !s->full)
		s->output.format->end(s->output.writer, thread, time_ns);
}

static int open_stream(struct kymo_session *s, bool newest, uint64_t start_ticks)
{
	const char *what;
	const int error = ky_stream_open(&s->stream, s->drum->base, s->drum->bytes,
					 s->options.categories, newest, start_ticks, &what);
	s->stream.sink = (struct ky_stream_sink){.thread = on_thread,
						 .event = on_event,
						 .end = on_end,
						 .block = s->output.format->block ? on_block : NULL,
						 .context = s};
	return error;
}

static void close_stream(struct kymo_session *s)
{
	ky_stall_leave(s->drum, s->reader);
	s->reader = -1;
	ky_stream_close(&s->stream);
	ky_spans_free(&s->spans);
}

static int check_target(const struct kymo_session *s)
{
	char path[PATH_MAX];
	const int bytes = ky_path_expand(path, sizeof(path), s->options.path, s->pid, s->rotation);
	return bytes < 0 ? bytes : ky_path_replace_check(path);
}

int ky_record_begin(struct kymo_session *s)
{
	int error = ky_output_init(&s->output, s->format);
	s->spans.emit = on_balanced;
	s->spans.context = s;
	const bool old = s->env.whole || s->env.resume;
	if (s->env.resume)
		memcpy(&s->lost_before, s->drum->header->left_losses, sizeof(s->lost_before));
	else if (!old)
		s->lost_before = losses_now(s);
	s->losses_told = s->lost_before;
	s->start_ticks = old ? 0 : ky_drum_ticks(s->drum);
	s->snapshots_seen = __atomic_load_n(&s->drum->header->snapshots, __ATOMIC_RELAXED);
	if (error == 0 && !s->options.path) {
		s->fd = ky_output_duplicate(s->options.fd);
		error = s->fd < 0 ? s->fd : 0;
	}
	if (error == 0 && s->options.mode == KYMO_MODE_RING)
		return s->options.path ? check_target(s) : 0;
	s->reader = ky_stall_join(s->drum, s->options.stall_ms * UINT64_C(1000000));
	if (error == 0)
		error = open_stream(s, !old, 0);
	if (error == 0 && s->env.resume) {
		ky_stream_place_resume(&s->stream, s->drum);
		s->rotation =
			s->drum->header->left_rotation ? s->drum->header->left_rotation - 1 : 0;
	}
	if (error == 0)
		ky_stall_begin(s->drum, s->reader, &s->stream);
	return error ? error : begin_file(s, false);
}

static void close_fd(struct kymo_session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void ky_record_free(struct kymo_session *s)
{
	close_stream(s);
	ky_output_free(&s->output);
	close_fd(s);
}

void ky_record_forget(struct kymo_session *s)
{
	ky_output_forget(&s->output);
	close_fd(s);
}

static void update_stats(struct kymo_session *s)
{
	atomic_store(&s->events, atomic_load(&s->error) ? s->safe : s->written);
	atomic_store(&s->lost, all_lost(s));
	atomic_store(&s->bytes, s->output.total_bytes + s->output.file_bytes);
	atomic_store(&s->files, s->output.files);
}

static void end_stream(struct kymo_session *s)
{
	ky_session_fail(s, finish_output(s));
	update_stats(s);
	close_stream(s);
}

static enum ky_drain_wish stream_round(struct kymo_session *s, bool flush)
{
	if (!flush && !ky_stream_pending(&s->stream))
		return KY_DRAIN_REST;
	ky_stream_populate(&s->stream);
	if (!flush)
		ky_drain_read_clock(s->drum, &s->stream);
	ky_session_fail(s, flush ? ky_drain_read_all(s->drum, &s->stream)
				 : ky_drain_read_news(&s->stream));
	if (flush)
		ky_stream_read_rest(&s->stream);
	write_clocks(s);
	write_process(s);
	ky_session_fail(s, s->spans.error);
	if (flush)
		push(s, true);
	ky_session_fail(s, s->output.out.error);
	update_stats(s);
	return ky_drain_read_hurry(&s->stream) ? KY_DRAIN_MORE : KY_DRAIN_REST;
}

/* Return where the next snapshot begins: with the session, or at a mark not used yet. */
static uint64_t snapshot_start(struct kymo_session *s)
{
	const uint64_t mark = __atomic_load_n(&s->drum->header->mark_ticks, __ATOMIC_RELAXED);
	const bool fresh = mark != s->mark_seen && mark > s->start_ticks;
	s->mark_seen = mark;
	return fresh ? mark : s->start_ticks;
}

/* Write all that the rings hold since the session began or since the last mark to a file of its own. */
static int write_snapshot(struct kymo_session *s)
{
	ky_clock_take(s->drum, true);
	int error = open_stream(s, false, snapshot_start(s));
	if (error)
		return error;
	/* Overwritten events are not lost: a ring is meant to overwrite. */
	for (uint32_t i = 0; i < s->stream.inputs_count; i++)
		s->stream.inputs[i]->cursor.counted = false;
	error = begin_file(s, s->options.path != NULL);
	if (error == 0) {
		error = ky_drain_read_all(s->drum, &s->stream);
		write_clocks(s);
		error = error ? error : s->spans.error;
		(void)write_losses(s, &s->lost_before);
		const int finished = ky_output_finish(&s->output, all_lost(s));
		error = error ? error : finished;
	}
	if (!error)
		s->safe = s->written;
	ky_session_fail(s, error);
	update_stats(s);
	close_stream(s);
	return error;
}

static void ring_round(struct kymo_session *s, bool flush)
{
	/* Pairs with the release add in kymo_snapshot(): the event that asked for it is in its ring. */
	const uint64_t snapshots = __atomic_load_n(&s->drum->header->snapshots, __ATOMIC_ACQUIRE);
	if (flush || snapshots != s->snapshots_seen)
		ky_session_fail(s, write_snapshot(s));
	s->snapshots_seen = snapshots;
}

/* Deliver all that was read, and note where that was: another copy of the library may go on from there. */
static void leave_place(struct kymo_session *s)
{
	ky_session_fail(s, ky_stream_read_all(&s->stream));
	ky_stream_place_leave(&s->stream, s->drum);
}

static enum ky_drain_wish finish(struct kymo_session *s)
{
	const bool failed = atomic_load(&s->error) != 0;
	ky_session_stop_recording(s);
	if (s->options.mode == KYMO_MODE_STREAM) {
		stream_round(s, true);
		if (s->by_env)
			leave_place(s);
		end_stream(s);
	} else if (!failed) { /* after a failure another would follow */
		ring_round(s, true);
	}
	close_fd(s);
	const int error = atomic_load(&s->error);
	if (error && s->env.failed)
		s->env.failed(error);
	return KY_DRAIN_END;
}

enum ky_drain_wish ky_record_round(void *self, bool flush, bool last)
{
	struct kymo_session *s = self;
	const uint64_t now_ns = ky_drain_now_ns();
	if (last || s->full || atomic_load(&s->error) || ky_session_is_over(s, now_ns))
		return finish(s);
	if (s->options.mode == KYMO_MODE_RING) {
		ring_round(s, flush);
		return KY_DRAIN_REST;
	}
	/* The first round flushes: the file has its head from the start. */
	if (s->flushed_ns == 0 || now_ns - s->flushed_ns >= s->options.flush_ms * UINT64_C(1000000))
		flush = true;
	if (flush)
		s->flushed_ns = now_ns;
	return stream_round(s, flush);
}
