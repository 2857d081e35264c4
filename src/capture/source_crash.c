/* SPDX-License-Identifier: MIT */
/* source_crash.c: the crash trigger (crash_watch.h) as a source of a capture. */
#include "capture/capture_snapshots.h"
#include "capture/crash_watch.h"
#include "capture/source.h"

#include <errno.h>

static int open_crash(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	struct ky_crash_watch *watch = NULL;
	const struct ky_trigger *const trigger =
		ky_capture_snapshots_trigger(capture->options, KY_TRIGGER_CRASH);
	if (!trigger)
		return 0;
	const int error = ky_crash_watch_open(&watch, trigger, ky_capture_snapshots_fired, capture);
	source->state = watch;
	return error;
}

static int add(struct ky_source *source, pid_t pid, enum ky_source_process how,
	       char message[KY_CAPTURE_MESSAGE_BYTES])
{
	if (how == KY_SOURCE_GIVEN)
		return 0;
	const int error = ky_crash_watch_add(source->state, pid, message);
	if (error && error != -ESRCH && message[0])
		ky_source_note(source->capture, "%s", message);
	return 0;
}

static int fd(const struct ky_source *source)
{
	return ky_crash_watch_fd(source->state);
}

static uint64_t read_new(struct ky_source *source, bool all)
{
	(void)all;
	ky_crash_watch_round(source->state);
	return KY_SOURCE_REST_NS;
}

static void ended(struct ky_source *source, pid_t pid, int status)
{
	/* The tracer's report is better than the status. */
	ky_crash_watch_round(source->state);
	ky_crash_watch_ended(source->state, pid, status);
}

static void close_crash(struct ky_source *source)
{
	struct ky_crash_watch *watch = source->state;
	ky_crash_watch_close(&watch);
}

pid_t ky_source_crash_tracer(const struct ky_capture *capture)
{
	const struct ky_crash_watch *const watch = ky_source_state(capture, KY_SOURCE_CRASH);
	return watch ? ky_crash_watch_tracer(watch) : 0;
}

void ky_source_crash_pause(struct ky_capture *capture, pid_t pid, bool begins)
{
	struct ky_source *const source = &capture->sources[KY_SOURCE_CRASH];
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (!source->state)
		return;
	/* Only a process that was let go of is added again. */
	if (begins)
		source->paused = ky_crash_watch_leave(source->state, pid) ? pid : 0;
	else if (source->paused == pid)
		(void)ky_crash_watch_add(source->state, pid, message);
	if (!begins)
		source->paused = 0;
}

const struct ky_source_ops ky_source_crash = {
	.open = open_crash,
	.add = add,
	.fd = fd,
	.round = read_new,
	.ended = ended,
	.close = close_crash,
	.holds = true,
};
