/* SPDX-License-Identifier: MIT */
/* hooked_returns.c: see hooked_returns.h. What the process says is only read, so it need not be true. */
#include "functrace/hooked_returns.h"

#include "functrace/agent_abi.h"
#include "functrace/patch_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static bool read_at(const struct ky_hooked_returns *returns, uint64_t address, void *data,
		    size_t bytes)
{
	return address <= INT64_MAX &&
	       pread(returns->memory, data, bytes, (off_t)address) == (ssize_t)bytes;
}

int ky_hooked_returns_open(struct ky_hooked_returns *returns, pid_t pid)
{
	char path[32];
	struct ky_agent_home home;
	*returns = (struct ky_hooked_returns){.memory = -1};
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	returns->memory = open(path, O_RDONLY | O_CLOEXEC);
	if (returns->memory < 0)
		return -errno;
	const uint64_t at = ky_agent_memory_find(pid);
	if (at && read_at(returns, at, &home, sizeof(home)) && home.magic == KY_AGENT_MAGIC &&
	    home.version == KY_AGENT_VERSION) {
		returns->stubs_from = home.stubs_from;
		returns->stubs_to = home.stubs_to;
		returns->directory = home.directory;
	}
	return 0;
}

void ky_hooked_returns_close(struct ky_hooked_returns *returns)
{
	if (returns->memory >= 0)
		close(returns->memory);
	returns->memory = -1;
}

/* Find the return slot of a place on a stack. */
static bool read_slot(const struct ky_hooked_returns *returns, uint64_t address,
		      struct ky_agent_call *call)
{
	const uint64_t root = address >> KY_AGENT_ROOT_SHIFT;
	const uint64_t piece = address >> KY_AGENT_PIECE_SHIFT & (KY_AGENT_LEAF_PIECES - 1);
	uint64_t leaf, slots;
	return root < KY_AGENT_ROOTS &&
	       read_at(returns, returns->directory + root * sizeof(leaf), &leaf, sizeof(leaf)) &&
	       read_at(returns, leaf + piece * sizeof(slots), &slots, sizeof(slots)) && slots &&
	       read_at(returns, slots + address * 4, call, sizeof(*call));
}

bool ky_hooked_returns_read(const struct ky_hooked_returns *returns, uint64_t address,
			    uint64_t *word)
{
	struct ky_agent_call call;
	if (!read_at(returns, address, word, sizeof(*word)))
		return false;
	if (*word >= returns->stubs_from && *word < returns->stubs_to &&
	    read_slot(returns, address, &call) && call.hook == *word)
		*word = call.returns;
	return true;
}
