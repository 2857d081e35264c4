/* SPDX-License-Identifier: MIT */
/*
 * live.c: see live.h.
 *
 * A thread is known by the address of its ky_thread, which is one drum's: a thread's spans and its function calls are stacks of their own.
 * The address may be used again after its drum was closed; then another thread begins with nothing open.
 */
#include "cli/live.h"

#include "base/array.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The context of a capture's callbacks. */
struct live {
	const struct ky_live_how *how;
};

static void on_event(void *context, pid_t pid, const struct ky_event *event)
{
	const struct ky_live_how *const how = ((const struct live *)context)->how;
	how->event(how->context, pid, event);
}

static int on_progress(void *context, const struct ky_capture_facts *facts)
{
	const struct ky_live_how *const how = ((const struct live *)context)->how;
	return how->round(how->context, facts->elapsed_ns, facts->events_lost);
}

static void on_note(void *context, const char *line)
{
	const struct ky_live_how *const how = ((const struct live *)context)->how;
	if (how->note)
		how->note(how->context, line);
	else
		ky_cli_error("%s", line);
}

static int capture(struct ky_capture_command *command, const struct ky_live_how *how)
{
	char message[KY_MESSAGE_BYTES] = "";
	static struct ky_capture_facts facts;
	struct live live = {.how = how};
	struct ky_capture_options *const o = &command->capture;
	o->fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (o->fd < 0)
		return ky_cli_error("cannot open /dev/null: %s", strerror(errno));
	o->scope = !command->targets_count ? KY_PROCESSES_ALL
		   : command->follow       ? KY_PROCESSES_CHILDREN
					   : KY_PROCESSES_GIVEN;
	o->event = on_event;
	o->progress = on_progress;
	o->note = on_note;
	o->context = &live;
	o->quiet = true;
	const int error = ky_capture(o, &facts, message);
	close(o->fd);
	how->round(how->context, facts.elapsed_ns, facts.events_lost);
	if (error)
		on_note(&live, message);
	if (error)
		return error == -ENOTSUP && facts.functions_impossible ? KY_EXIT_IMPOSSIBLE
								       : KY_EXIT_FAILED;
	return facts.unmatched || command->targets_missing ? KY_EXIT_NOTHING : KY_EXIT_DONE;
}

int ky_live_run(struct ky_capture_command *command, int argc, char **argv,
		int (*begin)(void *context), const struct ky_live_how *how)
{
	struct ky_pids pids = {0};
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(command, argc, argv)) {
		/* reported */
	} else if (optind < argc) {
		ky_cli_usage("'%s' is not an option: use -p PID|NAME for a process", argv[optind]);
	} else if (command->targets_count && !ky_capture_options_find(command, &pids)) {
		code = command->targets_missing ? KY_EXIT_NOTHING : KY_EXIT_FAILED;
	} else {
		code = begin ? begin(how->context) : KY_EXIT_DONE;
		if (code == KY_EXIT_DONE)
			code = capture(command, how);
	}
	ky_pids_free(&pids);
	ky_capture_options_free(command);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct ky_capture_command, field)

const struct ky_option ky_live_options[] = {
	{.help = "which processes and events"},
	{"pid", .kind = KY_OPTION_CALL, .take = ky_capture_options_target, .letter = 'p',
	 .argument = "PID|NAME",
	 .help = "this process, by number or name; may be given several times (default: all)"},
	{"follow", AT(FLAG, follow), .help = "and its children"},
	{"all", AT(FLAG, all), .letter = 'a',
	 .help = "all processes that may be looked into (default)"},
	{"categories", AT(TEXT, capture.categories), .letter = 'c', .argument = "LIST",
	 .help = "categories of trace points: globs separated by commas, '-' before one excludes it "
		 "(default: all)"},
	{"buffer", AT(SIZE, capture.ring_bytes), .argument = "SIZE",
	 .help = "minimum ring size per new thread (default 16M)"},
	{"duration", AT(DURATION, capture.duration_ns), .letter = 'd', .argument = "TIME",
	 .help = "end after this time"},
	{0},
};

/* ---- open spans ---- */

#define THREADS_MAX 65536u
#define DEPTH_MAX 4096u

struct ky_live_thread *ky_live_spans_thread(struct ky_live_spans *spans,
					    const struct ky_thread *thread)
{
	bool made;
	if (spans->count == THREADS_MAX)
		ky_live_spans_free(spans);
	uint32_t *const number = ky_u64_map_add(&spans->index, (uint64_t)(uintptr_t)thread, &made);
	if (!number)
		return NULL;
	if (made) {
		struct ky_live_thread *const one =
			KY_ARRAY_NEW(spans->threads, spans->count, spans->room);
		if (!one) {
			ky_u64_map_remove(&spans->index, (uint64_t)(uintptr_t)thread);
			return NULL;
		}
		*number = spans->count - 1;
	}
	struct ky_live_thread *const one = &spans->threads[*number];
	if (one->pid != thread->pid || one->tid != thread->tid)
		ky_live_spans_lost(one);
	one->thread = thread;
	one->pid = thread->pid;
	one->tid = thread->tid;
	return one;
}

bool ky_live_spans_begin(struct ky_live_thread *thread, uint64_t begin_ns, uint32_t row, char *name)
{
	const struct ky_live_span span = {.begin_ns = begin_ns, .row = row, .name = name};
	if (thread->depth < DEPTH_MAX && !thread->skipped &&
	    KY_ARRAY_ADD(thread->open, thread->depth, thread->room, span))
		return true;
	thread->skipped++;
	free(name);
	return false;
}

bool ky_live_spans_end(struct ky_live_thread *thread, struct ky_live_span *span)
{
	if (thread->skipped) {
		thread->skipped--;
		return false;
	}
	if (!thread->depth)
		return false;
	*span = thread->open[--thread->depth];
	return true;
}

void ky_live_spans_lost(struct ky_live_thread *thread)
{
	thread->skipped = 0;
	while (thread->depth)
		free(thread->open[--thread->depth].name);
}

void ky_live_spans_free(struct ky_live_spans *spans)
{
	for (uint32_t i = 0; i < spans->count; i++) {
		ky_live_spans_lost(&spans->threads[i]);
		KY_ARRAY_FREE(spans->threads[i].open, spans->threads[i].room);
	}
	KY_ARRAY_FREE(spans->threads, spans->room);
	ky_u64_map_free(&spans->index);
	spans->count = 0;
}
