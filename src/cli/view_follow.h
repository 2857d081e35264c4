/* SPDX-License-Identifier: MIT */
/*
 * view_follow.h: files that are looked at and may still be written: whether they have changed, and whether more may
 * come. A file is live while a process that we may look into has it open for writing, or, where we cannot see its
 * writer, until it has not changed for a while.
 */
#ifndef KY_CLI_VIEW_FOLLOW_H
#define KY_CLI_VIEW_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct ky_followed {
	const char *path;
	struct stat seen; /* when it was loaded */
	struct stat last; /* when it was looked at */
	pid_t writer;     /* 0: none that we can see */
	int writer_fd;
	int64_t changed_ns; /* when it last was seen to; 0: never */
};

struct ky_follow {
	struct ky_followed *files; /* regular ones */
	uint32_t count;
	bool changed; /* since the load */
	bool live;
};

/* 0 or -ENOMEM. Paths stay the caller's. */
int ky_follow_open(struct ky_follow *follow, const char *const *paths, uint32_t count);
void ky_follow_close(struct ky_follow *follow);
/* Before a load: what is there now is what is loaded. Says live. */
void ky_follow_begin_load(struct ky_follow *follow);
/* Says changed and live. */
void ky_follow_look(struct ky_follow *follow);

#endif
