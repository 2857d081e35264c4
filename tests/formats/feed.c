/* SPDX-License-Identifier: MIT */
/*
 * feed.c: the feed itself: targets, notes, trace points, threads. What is fed is in feed_events.c.
 */
#include "feed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static struct ky_text text_of(const char *string)
{
	return (struct ky_text){string, (uint32_t)strlen(string)};
}

void feed_init(struct feed *feed)
{
	memset(feed, 0, sizeof(*feed));
	feed->info.pid = FEED_PID;
	feed->info.process = text_of("writers \"test\"");
	feed->info.command = text_of("/usr/bin/writers");
	feed->info.clock.boottime_ns = FEED_START_NS + 5000; /* rings hold older events, too */
	feed->info.clock.monotonic_ns = FEED_START_NS - 1000000;
	feed->info.clock.realtime_ns = UINT64_C(1700000000123456789);
	feed->now_ns = FEED_START_NS;
}

void feed_add(struct feed *feed, const struct ky_format *format)
{
	assert(feed->targets_count < FEED_WRITERS_MAX);
	feed->targets[feed->targets_count].format = format;
	const int error = ky_out_init(&feed->targets[feed->targets_count++].out, 0);
	assert(!error);
	(void)error;
}

#define EACH_TARGET(feed, t)                                                                       \
	for (size_t t = 0; t < (feed)->targets_count; t++)                                         \
		if ((feed)->targets[t].writer)

/* ---- notes ---- */

static void note_text(FILE *to, const char *key, struct ky_text text)
{
	fprintf(to, ",\"%s\":\"", key);
	for (uint32_t i = 0; i < text.bytes; i++)
		fprintf(to, "%02x", (unsigned)(uint8_t)text.data[i]);
	fputc('"', to);
}

static void note_arg(FILE *to, const struct kymo_arg *arg)
{
	fprintf(to, "{\"type\":%u,\"cut\":%d,\"value\":\"%" PRIu64 "\"", arg->type, arg->cut,
		arg->value.u);
	note_text(to, "key", text_of(arg->key));
	if (arg->string)
		note_text(to, "string", (struct ky_text){arg->string, arg->string_bytes});
	fputc('}', to);
}

static void note_event(FILE *to, const struct ky_event *e)
{
	fprintf(to, ",\n{\"kind\":%u,\"time\":\"%" PRIu64 "\",\"tid\":%d,\"id\":\"%" PRIu64 "\"",
		e->kind, e->time_ns, e->thread->tid, e->id);
	fprintf(to, ",\"begin_lost\":%d", e->begin_lost);
	note_text(to, "name", e->name);
	if (e->site) {
		note_text(to, "category", e->site->category);
		note_text(to, "file", e->site->file);
		note_text(to, "function", e->site->function);
		fprintf(to, ",\"line\":%u,\"flags\":%u", e->site->line, e->site->flags);
	}
	fprintf(to, ",\"args\":[");
	for (uint32_t i = 0; i < e->args_count; i++) {
		if (i)
			fputc(',', to);
		note_arg(to, &e->args[i]);
	}
	fprintf(to, "]}");
}

/* ---- calls ---- */

void feed_open(struct feed *feed)
{
	if (feed->notes) {
		fprintf(feed->notes, "[{\"pid\":%d", feed->info.pid);
		note_text(feed->notes, "process", feed->info.process);
		fputc('}', feed->notes);
	}
	for (size_t t = 0; t < feed->targets_count; t++) {
		const int error = feed->targets[t].format->open(&feed->targets[t].writer,
								&feed->targets[t].out, &feed->info);
		assert(!error);
		(void)error;
	}
}

void feed_finish(struct feed *feed)
{
	EACH_TARGET(feed, t)
	{
		feed->targets[t].format->finish(feed->targets[t].writer, feed->lost);
	}
	if (feed->notes)
		fprintf(feed->notes, "]\n");
}

void feed_free(struct feed *feed)
{
	EACH_TARGET(feed, t)
	{
		feed->targets[t].format->close(feed->targets[t].writer);
	}
	for (size_t t = 0; t < feed->targets_count; t++)
		ky_out_free(&feed->targets[t].out);
	for (uint32_t i = 0; i < feed->sites_count; i++)
		free(feed->sites[i]);
	for (uint32_t i = 0; i < feed->threads_count; i++)
		free(feed->threads[i]);
	free(feed->names);
	free(feed->sites);
	free(feed->threads);
}

static void *appended(void *array, uint32_t count, void *item)
{
	void **grown = realloc(array, (count + 1) * sizeof(*grown));
	assert(grown && item);
	grown[count] = item;
	return grown;
}

static uint32_t category_index(const struct feed *feed, const char *category)
{
	uint32_t next = 0;
	/* The newest first: a long row of trace points has one category. */
	for (uint32_t i = feed->sites_count; i > 0; i--) {
		const struct ky_site *site = feed->sites[i - 1];
		if (strcmp(site->category.data, category) == 0)
			return site->category_index;
		if (site->category_index >= next)
			next = site->category_index + 1;
	}
	return next;
}

const struct ky_site *feed_site(struct feed *feed, uint8_t kind, uint8_t flags,
				const char *category, const char *name, const char *const *keys)
{
	struct ky_site *site = calloc(1, sizeof(*site));
	feed->sites = appended(feed->sites, feed->sites_count, site);
	site->category_index = category_index(feed, category);
	site->index = feed->sites_count++;
	site->kind = kind;
	site->flags = flags;
	site->line = 100 + site->index;
	site->category = text_of(category);
	site->name = text_of(name);
	site->file = text_of("tests/formats/feed.c");
	site->function = text_of("feed");
	for (; keys && *keys; keys++)
		site->keys[site->args++] = text_of(*keys);
	return site;
}

struct ky_thread *feed_thread(struct feed *feed, int32_t tid, const char *name)
{
	struct ky_thread *thread = calloc(1, sizeof(*thread));
	feed->threads = appended(feed->threads, feed->threads_count, thread);
	thread->index = feed->threads_count++;
	thread->pid = FEED_PID;
	thread->tid = tid;
	feed_rename(feed, thread, name);
	return thread;
}

void feed_rename(struct feed *feed, struct ky_thread *thread, const char *name)
{
	thread->name = text_of(name);
	if (feed->notes) {
		fprintf(feed->notes, ",\n{\"tid\":%d", thread->tid);
		note_text(feed->notes, "thread", thread->name);
		fputc('}', feed->notes);
	}
	EACH_TARGET(feed, t)
	{
		feed->targets[t].format->thread(feed->targets[t].writer, thread);
	}
}

void feed_event(struct feed *feed, const struct ky_event *event)
{
	if (feed->notes)
		note_event(feed->notes, event);
	if (event->kind == KYMO_KIND_LOST)
		feed->lost += event->id;
	EACH_TARGET(feed, t)
	{
		feed->targets[t].format->event(feed->targets[t].writer, event);
	}
}

void feed_now(struct feed *feed, const struct ky_site *site, const struct ky_thread *thread,
	      uint64_t id, const struct kymo_arg *args)
{
	struct kymo_arg keyed[KYMO_ARGS_MAX];
	for (uint32_t i = 0; i < site->args; i++) {
		keyed[i] = args[i];
		keyed[i].key = site->keys[i].data;
	}
	feed_event(feed, &(struct ky_event){.kind = site->kind,
					    .args_count = site->args,
					    .time_ns = feed->now_ns,
					    .id = id,
					    .site = site,
					    .thread = thread,
					    .name = site->name,
					    .args = keyed});
	feed->now_ns += 101;
}

void feed_end(struct feed *feed, const struct ky_site *site, const struct ky_thread *thread)
{
	feed_event(feed, &(struct ky_event){.kind = KYMO_KIND_END,
					    .time_ns = feed->now_ns,
					    .site = site,
					    .thread = thread,
					    .name = site->name});
	feed->now_ns += 103;
}

/* ---- values ---- */

struct kymo_arg feed_int(int64_t value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_INT, .value.i = value};
}

struct kymo_arg feed_uint(uint64_t value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_UINT, .value.u = value};
}

struct kymo_arg feed_double(double value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_DOUBLE, .value.d = value};
}

struct kymo_arg feed_bool(int value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_BOOL, .value.u = value != 0};
}

struct kymo_arg feed_pointer(uint64_t value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_POINTER, .value.u = value};
}

struct kymo_arg feed_string(const char *value)
{
	return (struct kymo_arg){
		.type = KYMO_TYPE_STRING, .string = value, .string_bytes = (uint32_t)strlen(value)};
}

struct kymo_arg feed_cut_string(const char *value)
{
	struct kymo_arg arg = feed_string(value);
	arg.cut = 1;
	return arg;
}
