/* SPDX-License-Identifier: MIT */
/*
 * walk.h: readers just strict enough to tell whether what a writer made is well-formed. They share
 * no code with the writers, and stop at the first thing that is not as the format says.
 */
#ifndef KY_TESTS_WALK_H
#define KY_TESTS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One JSON value and nothing else, in valid UTF-8. */
bool walk_json(const uint8_t *data, size_t bytes);

/* What a walk over a Perfetto or Fuchsia trace reports for each event that has a time. */
struct walk_event {
	uint64_t time_ns;
	uint64_t type;
	uint64_t thread;   /* Perfetto: the sequence. Fuchsia: the thread's koid */
	char name[64];     /* Fuchsia: looked up; Perfetto: empty */
	char category[64]; /* the same */
};
typedef void (*walk_event_fn)(const struct walk_event *event, void *context);

/* NULL, or what is wrong. */
const char *walk_pftrace(const uint8_t *data, size_t bytes, walk_event_fn fn, void *context);
const char *walk_fxt(const uint8_t *data, size_t bytes, walk_event_fn fn, void *context);

#endif
