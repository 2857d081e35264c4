/* SPDX-License-Identifier: MIT */
/*
 * source_processes.c: the processes of a capture (processes.h) as a source. It adds each that appears to all sources, hands
 * over its drums, and reports its end. A process may be gone before anything is set on it: that is no error.
 */
#include "capture/capture_snapshots.h"
#include "capture/source.h"
#include "os/os.h"
#include "process/proc.h"

static enum ky_source_process how_it_came(const struct ky_capture *capture, pid_t pid)
{
	struct ky_proc_stat stat;
	/* What records all processes has it already. */
	if (capture->options->scope == KY_PROCESSES_ALL)
		return KY_SOURCE_NEW;
	return ky_proc_stat(pid, 0, &stat) == 0 && stat.started_ns < capture->begin_ns
		       ? KY_SOURCE_EXISTING
		       : KY_SOURCE_NEW;
}

static void appeared(void *context, pid_t pid)
{
	struct ky_capture *const capture = context;
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	/* The program is added when it is held at its entry point. */
	if (pid != capture->child.pid)
		(void)ky_source_add_all(capture, pid, how_it_came(capture, pid), message);
}

static int open_processes(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_processes_events events = {.appeared = appeared,
						   .drum = ky_source_drums_found,
						   .ended = ky_capture_snapshots_ended,
						   .context = capture};
	const int error = ky_processes_open(&capture->processes, capture->options->scope, &events);
	source->state = capture->processes;
	return error;
}

static int fd(const struct ky_source *source)
{
	return ky_processes_fd(source->state);
}

static uint64_t look(struct ky_source *source, bool all)
{
	const uint64_t now = ky_os_boottime();
	(void)all;
	ky_processes_round(source->state);
	source->capture->looked_ns = now;
	return KY_SOURCE_REST_NS;
}

static void facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	struct ky_processes_facts processes;
	ky_processes_facts(source->state, &processes);
	facts->processes = ky_processes_count(source->state);
	facts->hidden = processes.hidden;
	facts->mailbox_overflow |= processes.mailbox_overflow;
}

static void close_processes(struct ky_source *source)
{
	ky_processes_close(&source->capture->processes);
}

const struct ky_source_ops ky_source_processes = {
	.open = open_processes,
	.fd = fd,
	.round = look,
	.facts = facts,
	.close = close_processes,
};
