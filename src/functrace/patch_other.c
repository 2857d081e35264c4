/* SPDX-License-Identifier: MIT */
/* patch_other.c: the engine patch on unsupported CPUs: it only returns an error. */
#include "functrace/patch.h"

#include <errno.h>
#include <string.h>

int ky_patch_open(struct ky_patch **patch, pid_t pid, const struct ky_functrace_options *options,
		  char message[KY_MESSAGE_BYTES])
{
	(void)options;
	*patch = NULL;
	return ky_fail(
		message, -ENOTSUP,
		"Cannot patch process %d: functions are patched on x86-64 only; use --engine "
		"sample",
		(int)pid);
}

void ky_patch_round(struct ky_patch *patch)
{
	(void)patch;
}

void ky_patch_close(struct ky_patch **patch, bool gone, struct ky_patch_facts *facts)
{
	(void)gone;
	*patch = NULL;
	if (facts)
		memset(facts, 0, sizeof(*facts));
}

void ky_patch_facts(const struct ky_patch *patch, struct ky_patch_facts *facts)
{
	(void)patch;
	memset(facts, 0, sizeof(*facts));
}

bool ky_patch_hot(const struct ky_patch *patch, uint32_t index, struct ky_patch_hot *hot)
{
	(void)patch, (void)index, (void)hot;
	return false;
}

void ky_patch_names(const struct ky_patch *patch, ky_patch_name_fn one, void *context)
{
	(void)patch, (void)one, (void)context;
}

uint64_t ky_patch_started(pid_t pid)
{
	(void)pid;
	return 0;
}

bool ky_patch_is_ours(pid_t pid)
{
	(void)pid;
	return false;
}

int ky_patch_recover(pid_t pid, char message[KY_MESSAGE_BYTES])
{
	(void)pid, (void)message;
	return 0;
}

uint32_t ky_patch_release_late(void)
{
	return 0;
}

uint32_t ky_patch_close_children(uint64_t since, ky_patch_child_fn child, void *context,
				 bool *whole)
{
	(void)since, (void)child, (void)context;
	*whole = true;
	return 0;
}
