/* SPDX-License-Identifier: MIT */
/*
 * process_users.h: the time that looking into processes takes, by their users. A look takes as long as a process has
 * descriptors, and processes can share a table of a million: without a limit, one user's processes would keep kymo from all
 * others. A fortieth of the time is for each user; looks that are short are not counted.
 */
#ifndef KY_CAPTURE_PROCESS_USERS_H
#define KY_CAPTURE_PROCESS_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KY_PROCESS_USERS_MAX 64u

struct ky_process_users {
	struct ky_process_user {
		uint32_t user;
		uint64_t paid_ns; /* until then, what was spent is his share */
	} users[KY_PROCESS_USERS_MAX];
	uint32_t count;
	uint64_t debt_ns; /* until then, somebody may be in debt */
};

/* Return the CPU time of this thread. */
uint64_t ky_process_users_clock(void);
/* Report whether a process may be looked into now: its user is not in debt. */
bool ky_process_users_may_look(const struct ky_process_users *users, pid_t pid, uint64_t now_ns);
/* Note that looking into a process took so long. Root and kymo's own user are never in debt. */
void ky_process_users_charge(struct ky_process_users *users, pid_t pid, uint64_t cost_ns,
			     uint64_t now_ns);

#endif
