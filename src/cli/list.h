/* SPDX-License-Identifier: MIT */
/*
 * list.h: kymo list: the processes that have a drum, and what their drums tell. list_rows.c gathers, list_print.c
 * prints, list_watch.c does so again and again.
 *
 * Drums are only looked at: nothing is switched on, and no event is read.
 */
#ifndef KY_CLI_LIST_H
#define KY_CLI_LIST_H

#include "capture/drums.h"

struct ky_list;

/* A process that lives and has a drum; after an exec it is the new program's. */
struct ky_list_row {
	struct ky_drums *drums; /* just this one */
	int fd;
	struct ky_drums_facts facts;
	uint64_t memory_bytes;
	double per_second; /* events, since the sample before; negative: there was none */
	uint64_t sampled_ns;
	uint64_t sampled_events;
};

/* pids: only these; count 0: all that may be looked into. 0, or -errno and a message. */
int ky_list_open(struct ky_list **list, const pid_t *pids, uint32_t count,
		 char message[KY_CAPTURE_MESSAGE_BYTES]);
void ky_list_close(struct ky_list **list);

int ky_list_fd(
	const struct ky_list *list); /* to poll: somebody came, ended, or is to be looked for */
void ky_list_round(struct ky_list *list);
/* Asks all drums, and sorts: the highest rate first. */
void ky_list_sample(struct ky_list *list);
/* Rounds until the time is over, or until another descriptor (-1: none) is readable: then true. */
bool ky_list_wait(struct ky_list *list, uint64_t duration_ns, int other, int another);

uint32_t ky_list_count(const struct ky_list *list);
const struct ky_list_row *ky_list_at(const struct ky_list *list, uint32_t index);
/* How many processes may not be looked into. */
uint32_t ky_list_hidden(const struct ky_list *list);
/* A line about the newest drum that could not be read; empty: there is none. */
const char *ky_list_note(const struct ky_list *list);

struct ky_list_style {
	bool json;
	bool categories; /* of each process, one by one */
	uint32_t rows;   /* at most; 0: all */
};
/* one_line: of JSON. */
void ky_list_print(const struct ky_list *list, const struct ky_list_style *style, bool one_line);
/* "12 processes may not be looked into: ..." into text; empty when there is none. */
void ky_list_hidden_text(const struct ky_list *list, char *text, size_t room);

/* Until Ctrl-C, or q on a terminal. An enum ky_exit. */
int ky_list_watch(struct ky_list *list, const struct ky_list_style *style);

#endif
