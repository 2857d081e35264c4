/* SPDX-License-Identifier: MIT */
/* process_users.c: see process_users.h. Of very many users the one with the least debt is forgotten. */
#include "capture/process_users.h"

#include "base/clock.h"
#include "process/proc.h"

#include <unistd.h>

#define MS UINT64_C(1000000)
#define SHORT_NS MS
#define SHARE 40u
/* What may be spent at once, as it is paid back: 25 ms of work. */
#define CREDIT_NS (1000 * MS)
#define DEBT_MAX_NS (60000 * MS)

uint64_t ky_process_users_clock(void)
{
	return (uint64_t)ky_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Return false when the process is gone, or its user is not counted. */
static bool user_of(pid_t pid, uint32_t *user)
{
	struct ky_proc_status status;
	if (ky_proc_status(pid, 0, &status) != 0)
		return false;
	*user = status.user;
	return *user != 0 && *user != geteuid();
}

bool ky_process_users_may_look(const struct ky_process_users *users, pid_t pid, uint64_t now_ns)
{
	uint32_t user;
	if (now_ns >= users->debt_ns || !user_of(pid, &user))
		return true;
	for (uint32_t i = 0; i < users->count; i++)
		if (users->users[i].user == user)
			return users->users[i].paid_ns <= now_ns + CREDIT_NS;
	return true;
}

static struct ky_process_user *get(struct ky_process_users *users, uint32_t user)
{
	struct ky_process_user *least = &users->users[0];
	for (uint32_t i = 0; i < users->count; i++) {
		struct ky_process_user *const one = &users->users[i];
		if (one->user == user)
			return one;
		least = one->paid_ns < least->paid_ns ? one : least;
	}
	if (users->count < KY_PROCESS_USERS_MAX)
		least = &users->users[users->count++];
	*least = (struct ky_process_user){.user = user};
	return least;
}

void ky_process_users_charge(struct ky_process_users *users, pid_t pid, uint64_t cost_ns,
			     uint64_t now_ns)
{
	uint32_t user;
	if (cost_ns <= SHORT_NS || !user_of(pid, &user))
		return;
	struct ky_process_user *const one = get(users, user);
	const uint64_t from_ns = one->paid_ns > now_ns ? one->paid_ns : now_ns;
	const uint64_t most_ns = now_ns + DEBT_MAX_NS;
	const uint64_t paid_ns = from_ns + cost_ns * SHARE;
	one->paid_ns = paid_ns < most_ns ? paid_ns : most_ns;
	users->debt_ns = one->paid_ns > users->debt_ns ? one->paid_ns : users->debt_ns;
}
