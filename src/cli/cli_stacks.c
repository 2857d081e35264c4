/* SPDX-License-Identifier: MIT */
/* cli_stacks.c: the stacks of a capture's snapshots, for people: where the program crashed. */
#include "cli/cli.h"
#include "query/snapshot.h"

#include <string.h>

#define STACKS_SHOWN 5u

static void print_stack(const struct ky_trace *trace, uint32_t slice, const char *stack)
{
	struct ky_snapshot_frame frame;
	const char *const reason = ky_text_of(trace, trace->slices.name[slice]);
	printf("\n%s", ky_cli_style("1"));
	ky_cli_text(stdout, reason ? reason : "", reason ? strlen(reason) : 0);
	printf("%s\n", ky_cli_plain());
	while (ky_snapshot_frame(&stack, &frame)) {
		fputs("  ", stdout);
		ky_cli_text(stdout, frame.line, frame.line_bytes);
		putchar('\n');
	}
}

void ky_cli_stacks(const struct ky_trace *trace, bool all)
{
	uint32_t count = 0;
	for (uint32_t i = ky_snapshot_next(trace, 0); i != KY_NONE;
	     i = ky_snapshot_next(trace, i + 1)) {
		const char *const stack = ky_snapshot_text(trace, i, "stack");
		if (stack && (count++ < STACKS_SHOWN || all))
			print_stack(trace, i, stack);
	}
	if (count > STACKS_SHOWN && !all)
		printf("and %u more stacks: 'kymo info --all' shows them\n", count - STACKS_SHOWN);
}
