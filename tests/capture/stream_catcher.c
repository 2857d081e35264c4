/* SPDX-License-Identifier: MIT */
#include "stream_catcher.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/ftrace/ftrace_format.h"

static uint8_t *caught;
static size_t caught_bytes, caught_room;
static uint32_t source;
static bool refuses;
static void (*restate)(void *context, uint32_t source);
static void *restate_context;

void catcher_reset(bool refuse)
{
	free(caught);
	caught = NULL;
	caught_bytes = caught_room = 0;
	refuses = refuse;
	source = 1;
}

void catcher_rotate(void)
{
	caught_bytes = 0;
	source = 2;
	restate(restate_context, source);
}

uint32_t ky_bundle_stream(struct ky_bundle *bundle, enum ky_kymo_stream_kind kind,
			  void (*again)(void *context, uint32_t source), void *context)
{
	(void)bundle;
	assert_int_equal(kind, KY_KYMO_STREAM_FTRACE);
	restate = again;
	restate_context = context;
	return refuses ? 0 : source;
}

void ky_bundle_stream_write(struct ky_bundle *bundle, uint32_t to, const void *data, size_t bytes)
{
	(void)bundle;
	assert_int_equal(to, source);
	assert_int_equal(bytes % 8, 0);
	if (caught_bytes + bytes > caught_room) {
		caught_room = (caught_bytes + bytes) * 2;
		caught = realloc(caught, caught_room);
		assert_non_null(caught);
	}
	memcpy(caught + caught_bytes, data, bytes);
	caught_bytes += bytes;
}

static uint32_t count(enum ky_kymo_ftrace_kind kind, const char *path)
{
	uint32_t found = 0;
	for (size_t at = 0; at < caught_bytes;) {
		struct ky_kymo_ftrace record;
		memcpy(&record, caught + at, sizeof(record));
		if (record.kind == kind &&
		    (!path || (record.path_bytes == strlen(path) &&
			       memcmp(caught + at + sizeof(record), path, strlen(path)) == 0)))
			found++;
		at += KY_KYMO_PADDED(record.bytes);
	}
	return found;
}

uint32_t catcher_pages(void)
{
	return count(KY_KYMO_FTRACE_PAGE, NULL);
}

uint32_t catcher_files(const char *path)
{
	return count(KY_KYMO_FTRACE_FILE, path);
}

struct ky_trace *catcher_load(void)
{
	struct ky_load load = {.path = "caught"};
	assert_int_equal(ky_trace_open(&load.trace), 0);
	assert_int_equal(ky_input_open_memory(&load.input, caught, caught_bytes, "caught"), 0);
	assert_int_equal(ky_ftrace_stream_read(&load), 0);
	ky_input_close(&load.input);
	assert_int_equal(ky_trace_finish(load.trace, NULL, NULL), 0);
	return load.trace;
}
