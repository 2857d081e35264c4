/* SPDX-License-Identifier: MIT */
/*
 * feed.h: made-up events for the writers' tests. A feed hands the same calls to each writer that was
 * added to it, and can note them down in a form of its own (a line of JSON each, all text as
 * hexadecimal bytes), from which tests/formats/emit_oracle.mjs works out what a reader must find.
 */
#ifndef KY_TESTS_FEED_H
#define KY_TESTS_FEED_H

#include <stdio.h>

#include "formats/format.h"

#define FEED_WRITERS_MAX 4
#define FEED_PID 4242
#define FEED_START_NS UINT64_C(432000123456789)

struct feed {
	struct {
		const struct ky_format *format;
		void *writer;
		struct ky_out out;
	} targets[FEED_WRITERS_MAX];
	size_t targets_count;
	struct ky_trace_info info;
	FILE *notes; /* may be NULL */
	struct ky_site **sites;
	uint32_t sites_count;
	struct ky_thread **threads;
	uint32_t threads_count;
	char (*names)[16]; /* of feed_names() */
	uint64_t lost;
	uint64_t now_ns;
};

void feed_init(struct feed *feed);
void feed_add(struct feed *feed, const struct ky_format *format);
void feed_open(struct feed *feed);
void feed_finish(struct feed *feed);
void feed_free(struct feed *feed);

/* Keys end with NULL. */
const struct ky_site *feed_site(struct feed *feed, uint8_t kind, uint8_t flags,
				const char *category, const char *name, const char *const *keys);
struct ky_thread *feed_thread(struct feed *feed, int32_t tid, const char *name);
void feed_rename(struct feed *feed, struct ky_thread *thread, const char *name);

/* An event at time_ns as given; site, kind and thread as in ky_event. */
void feed_event(struct feed *feed, const struct ky_event *event);
/* The usual event: now, and now moves on by a few nanoseconds. */
void feed_now(struct feed *feed, const struct ky_site *site, const struct ky_thread *thread,
	      uint64_t id, const struct kymo_arg *args);
void feed_end(struct feed *feed, const struct ky_site *site, const struct ky_thread *thread);

struct kymo_arg feed_int(int64_t value);
struct kymo_arg feed_uint(uint64_t value);
struct kymo_arg feed_double(double value);
struct kymo_arg feed_bool(int value);
struct kymo_arg feed_pointer(uint64_t value);
struct kymo_arg feed_string(const char *value);
struct kymo_arg feed_cut_string(const char *value);

/* Every kind, type and nasty value there is. */
void feed_everything(struct feed *feed);
/* So many threads with a span each. */
void feed_threads(struct feed *feed, uint32_t count);
/* So many trace points with different names, each used twice, far apart. */
void feed_names(struct feed *feed, uint32_t count);

#endif
