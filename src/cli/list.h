/* SPDX-License-Identifier: MIT */
/*
 * list.h: kymo list: the processes that have a buffer, and its facts. list_rows.c gathers, cmd_list.c prints. Looking switches
 * no trace point on and reads no event; it switches off what a recorder that was killed left on.
 */
#ifndef KY_CLI_LIST_H
#define KY_CLI_LIST_H

#include "base/json_out.h"
#include "capture/drums.h"

struct ky_list;

/* A live process that has a buffer; after an exec the new program's. */
struct ky_list_row {
	struct ky_drums *drums; /* of this process only */
	int fd;
	struct ky_drums_facts facts;
	uint64_t memory_bytes;
	double per_second; /* events, since the last count; negative: unknown */
	uint64_t sampled_ns;
	uint64_t sampled_events;
};

/* Open a list of these processes, or of all that may be looked into (count 0). Return 0, or -errno and a message. */
int ky_list_open(struct ky_list **list, const pid_t *pids, uint32_t count,
		 char message[KY_MESSAGE_BYTES]);
void ky_list_close(struct ky_list **list);

void ky_list_round(struct ky_list *list);
/* Count the events of all processes, and sort: the highest rate first. */
void ky_list_sample(struct ky_list *list);
/* Do rounds until the time is over, or until another descriptor (-1: none) is readable: return true then. */
bool ky_list_wait(struct ky_list *list, uint64_t duration_ns, int other, int another);

uint32_t ky_list_count(const struct ky_list *list);
const struct ky_list_row *ky_list_at(const struct ky_list *list, uint32_t index);
/* Return how many processes may not be looked into. */
uint32_t ky_list_hidden(const struct ky_list *list);
/* Return the number of processes that were not looked into, because their users have too many descriptors. */
uint32_t ky_list_crowded(const struct ky_list *list);
/* Return a line about the newest buffer that could not be read, or "". */
const char *ky_list_note(const struct ky_list *list);

/* Write a row as an object of JSON, with its categories if wanted (cmd_list.c). */
void ky_list_json_row(struct ky_json_out *json, const struct ky_list_row *row, bool categories);
/* Add the members lost, losses and problems, as kymo info --json has them (cmd_list.c). */
void ky_list_json_faults(struct ky_json_out *json, uint64_t lost, uint64_t damaged);
/* Add the processes that an option -p names to a struct ky_pids. Return 0, or an enum ky_exit after a message (cmd_list.c). */
int ky_list_take_process(void *pids, const char *value);

#endif
