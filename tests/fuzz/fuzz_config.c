/* SPDX-License-Identifier: MIT */
/*
 * fuzz_config.c: any bytes as a TraceConfig: an answer or KYMO_ECONFIG, nothing left allocated (the
 * leak sanitizer looks), and memory in proportion to the input.
 */
#include "core/glob.h"
#include "sink/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct kymo_options options = {.size = sizeof(options)};
	struct ky_config config;
	const int error = ky_config_decode(&config, data, bytes);

	check(error == 0 || error == KYMO_ECONFIG);
	if (error)
		check(!config.path && !config.categories && config.total_bytes == 0);
	ky_config_apply(&config, &options);
	if (options.path)
		check(strlen(options.path) <= bytes);
	if (options.categories) {
		check(strlen(options.categories) <= 2 * bytes);
		(void)ky_glob_list_match(options.categories, "net,disabled-by-default-db.query");
	}
	ky_config_free(&config);
	check(!config.path && !config.categories);
	return 0;
}
