/* SPDX-License-Identifier: MIT */
/* view_load.c: what kymo view looks at: one file, or several on one timeline as `kymo merge` puts them. */
#include "cli/merge_inputs.h"
#include "cli/view_verb.h"

#include <stdlib.h>
#include <string.h>

static struct ky_trace *load_several(const struct ky_view_command *command,
				     const struct ky_merge_how *how, struct ky_merge_input *inputs)
{
	struct ky_trace *merged = NULL;
	const uint32_t count = command->paths_count;
	for (uint32_t i = 0; i < count; i++)
		inputs[i].path = command->paths[i];
	if (ky_merge_load(inputs, count, how) == KY_EXIT_DONE) {
		for (uint32_t i = 1; i < count && !how->load.quiet; i++)
			ky_merge_say(&inputs[0], &inputs[i]);
		if (ky_merge_put(&merged, inputs, count, how) != 0)
			merged = NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		ky_trace_close(&inputs[i].trace);
	return merged;
}

struct ky_trace *ky_view_load(const struct ky_view_command *command, const struct ky_cli_load *how)
{
	struct ky_merge_how merge = {.load = *how};
	merge.load.format = command->format;
	if (command->paths_count == 1)
		return ky_cli_load_with(command->paths[0], &merge.load);
	struct ky_merge_input *const inputs = calloc(command->paths_count, sizeof(*inputs));
	if (!inputs) {
		ky_cli_error("not enough memory");
		return NULL;
	}
	struct ky_trace *const trace = load_several(command, &merge, inputs);
	free(inputs);
	return trace;
}

static const char *base_of(const char *path)
{
	const char *const slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

char *ky_view_name(const struct ky_view_command *command)
{
	char *name = NULL;
	size_t bytes;
	FILE *const out = open_memstream(&name, &bytes);
	if (!out)
		return NULL;
	const bool live = command->targets_count;
	const uint32_t count = live ? command->targets_count : command->paths_count;
	for (uint32_t i = 0; i < count; i++)
		fprintf(out, "%s%s", i ? " + " : "",
			live ? command->targets[i] : base_of(command->paths[i]));
	if (fclose(out) != 0) {
		free(name);
		return NULL;
	}
	return name;
}
