/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ctf.c: any bytes as the files of a CTF trace. babeltrace2's library parses them, first in a child: what is
 * searched for here is what it lets through that we do not expect.
 */
#include "fuzz_directory.h"
#include "fuzz_load.h"

#include <babeltrace2/babeltrace.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
const char *__lsan_default_suppressions(void);
const char *__asan_default_options(void);

/* The library must meet the end of memory as it would without the sanitizer. */
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* The library loses what it was at where a trace is damaged. Nobody else here uses glib. */
const char *__lsan_default_suppressions(void)
{
	return "leak:babeltrace\nleak:libglib\n";
}

/* Kept, so that a plugin's leaks have its name, and it is not loaded again for each input. */
static const bt_plugin *plugin;

static const char *const names[] = {"metadata", "stream_0", "stream_1", NULL};

/* The library ends with a signal; an exit of the child is a sanitizer's, and a finding. */
static void load(void)
{
	const struct ky_load_options options = {.size = sizeof(options), .format = "ctf"};
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	const int error = ky_load(&trace, fuzz_directory, &options, message);
	fuzz_check(!error || !strstr(message, "it ends with code"));
	fuzz_check_load(trace, error, message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!plugin)
		bt_plugin_find("ctf", BT_FALSE, BT_FALSE, BT_TRUE, BT_FALSE, BT_FALSE, &plugin);
	fuzz_directory_fill(names, data, bytes);
	load();
	return 0;
}
