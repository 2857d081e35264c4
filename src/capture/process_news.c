/* SPDX-License-Identifier: MIT */
/* process_news.c: see process_news.h. */
#include "capture/process_news.h"

#include "process/drum_find.h"
#include "process/perf_events.h"
#include "process/perf_record.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define RING_BYTES (UINT64_C(128) << 10)
/*
 * Of processes whose threads are watched one by one: each takes an event on each CPU, and so does, at its own cost, each
 * thread and process that they make.
 */
#define EVENTS_MAX 512u
#define CPUS_MAX 16u

struct ky_process_news {
	struct ky_perf_events events;
	struct ky_perf_set set;
	bool of_all;
};

uint64_t ky_process_news_identity(uint64_t device, uint64_t inode)
{
	return device * UINT64_C(0x9e3779b97f4a7c15) ^ inode;
}

int ky_process_news_open(struct ky_process_news **out, bool forks)
{
	/* Wake up with each record: what is not looked into at once may be gone. */
	const struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap_data = 1,
		.mmap2 = 1,
		.task = forks,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	struct ky_process_news *news = calloc(1, sizeof(*news));
	*out = NULL;
	if (!news)
		return -ENOMEM;
	const int error = ky_perf_events_open(&news->events, &attr, RING_BYTES);
	if (error) {
		free(news);
		return error;
	}
	struct perf_event_attr all = news->events.attr;
	all.inherit = 0;
	news->of_all = ky_perf_set_add(&news->set, &news->events, &all, -1) == 0;
	*out = news;
	return 0;
}

void ky_process_news_close(struct ky_process_news **at)
{
	struct ky_process_news *const news = *at;
	*at = NULL;
	if (!news)
		return;
	ky_perf_set_close(&news->set);
	ky_perf_events_close(&news->events);
	free(news);
}

bool ky_process_news_of_all(const struct ky_process_news *news)
{
	return news->of_all;
}

int ky_process_news_add(struct ky_process_news *news, pid_t pid)
{
	if (news->of_all)
		return 0;
	if (news->events.cpus_count > CPUS_MAX)
		return -EMFILE;
	DIR *const tasks = ky_proc_tasks(pid);
	int error = tasks ? 0 : -errno;
	for (pid_t tid; !error && (tid = ky_proc_next(tasks)) > 0;) {
		if (news->set.count + news->events.cpus_count > EVENTS_MAX)
			error = -EMFILE;
		else
			error = ky_perf_set_add(&news->set, &news->events, &news->events.attr, tid);
		/* It has ended. */
		error = error == -ESRCH ? 0 : error;
	}
	ky_proc_close(tasks);
	return error;
}

int ky_process_news_fd(const struct ky_process_news *news)
{
	return news->events.poll_fd;
}

static void take_record(const struct perf_event_header *head,
			const struct ky_process_news_events *events, uint64_t *lost)
{
	const struct ky_perf_raw raw = ky_perf_record_raw(head);
	struct ky_perf_record record;
	if (!ky_perf_record_body(&record, &raw, 0, KY_PERF_BIG_HERE))
		return;
	const bool is_here = (pid_t)record.pid > 0 && (pid_t)record.pid != getpid();
	if (record.type == PERF_RECORD_LOST)
		*lost += record.lost;
	else if (record.type == PERF_RECORD_FORK && is_here && record.pid != record.task.parent_pid)
		events->forked(events->context, (pid_t)record.task.parent_pid, (pid_t)record.pid);
	else if (record.type == PERF_RECORD_MMAP2 && is_here && record.text_ends &&
		 ky_drum_find_names(record.map.path))
		events->mapped(events->context, (pid_t)record.pid,
			       ky_process_news_identity(makedev((unsigned)(record.map.device >> 32),
								(unsigned)record.map.device),
							record.map.inode));
}

uint64_t ky_process_news_take(struct ky_process_news *news,
			      const struct ky_process_news_events *events, uint64_t *lost)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < news->events.cpus_count; i++) {
		struct ky_perf_ring *const ring = &news->events.cpus[i].ring;
		const struct perf_event_header *head;
		ky_perf_ring_begin(ring);
		for (; (head = ky_perf_ring_next(ring)); count++)
			take_record(head, events, lost);
		ky_perf_ring_end(ring);
	}
	return count;
}
