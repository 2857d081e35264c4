/* SPDX-License-Identifier: MIT */
/*
 * process_news.h: what the kernel itself reports of processes: who forked whom, and who mapped a drum. So programs that live
 * for milliseconds are noticed, which looking into /proc now and then cannot do.
 *
 *   perf: dummy events with records of forks and mappings ─▶ rings of the CPUs ─▶ forked(), mapped()
 *
 * Where the user may, the events are of the whole machine (root, CAP_PERFMON); else of the threads of the processes that are
 * added and of all that come from them.
 */
#ifndef KY_CAPTURE_PROCESS_NEWS_H
#define KY_CAPTURE_PROCESS_NEWS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_process_news;

struct ky_process_news_events {
	void (*forked)(void *context, pid_t parent, pid_t child);
	/* A process mapped a drum; identity: as ky_process_news_identity() makes it. */
	void (*mapped)(void *context, pid_t pid, uint64_t identity);
	void *context;
};

/* Return what tells files apart. */
uint64_t ky_process_news_identity(uint64_t device, uint64_t inode);

/* forks: report these, too. Return 0, or -errno: the kernel reports nothing to this user. */
int ky_process_news_open(struct ky_process_news **news, bool forks);
void ky_process_news_close(struct ky_process_news **news);
/* Report whether the whole machine is watched: otherwise only what is added, and what comes from it. */
bool ky_process_news_of_all(const struct ky_process_news *news);
/* Watch a process, unless the whole machine is. Return 0 or -errno. */
int ky_process_news_add(struct ky_process_news *news, pid_t pid);
/* Return a descriptor to poll. */
int ky_process_news_fd(const struct ky_process_news *news);
/* Report all that came. Return how many records there were; *lost grows by those that did not fit into the rings. */
uint64_t ky_process_news_take(struct ky_process_news *news,
			      const struct ky_process_news_events *events, uint64_t *lost);

#endif
