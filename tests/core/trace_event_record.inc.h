/* SPDX-License-Identifier: MIT */
/*
 * trace_event_record.inc.h: keeps copies of the events that a test recorded, to look at afterwards.
 * They come from a subscription; compiled with KYMO_EMBEDDED from a host of the test's own, which
 * shows what the macros store, word for word, without libkymo. For C and C++, for one file each.
 */
#ifndef TESTS_TRACE_EVENT_RECORD_INC_H
#define TESTS_TRACE_EVENT_RECORD_INC_H

#include <kymo/embed.h>
#include <kymo/session.h>
#include <kymo/trace_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEEN_MAX 2048
#define SEEN_TEXT (KYMO_STRING_MAX + 1)

struct seen_arg {
	char key[64];
	uint32_t type;
	int cut;
	union {
		int64_t i;
		uint64_t u;
		double d;
	} value;
	char string[SEEN_TEXT];
};

struct seen {
	uint32_t kind;
	uint32_t flags;
	uint32_t line;
	int32_t tid;
	uint64_t id;
	int64_t monotonic_us; /* of an explicit time */
	char category[64];
	char name[SEEN_TEXT];
	uint32_t args_count;
	struct seen_arg args[KYMO_ARGS_MAX];
};

static struct seen seen_events[SEEN_MAX];
static size_t seen_count;

static inline void seen_copy(char *to, size_t to_bytes, const char *from, size_t bytes)
{
	const size_t kept = bytes < to_bytes ? bytes : to_bytes - 1;
	memcpy(to, from ? from : "", from ? kept : 0);
	to[from ? kept : 0] = '\0';
}

static inline struct seen *seen_new(uint32_t kind, const char *category, const char *name)
{
	if (seen_count == SEEN_MAX)
		abort();
	struct seen *s = &seen_events[seen_count++];
	s->kind = kind;
	seen_copy(s->category, sizeof(s->category), category, strlen(category));
	seen_copy(s->name, sizeof(s->name), name, strlen(name));
	return s;
}

#ifdef KYMO_EMBEDDED

static const struct kymo_site_info *host_site;
static uint64_t host_words[KYMO_EMBED_WORDS_MAX];
static uint32_t host_words_count;
static unsigned char host_on = 1;

static const unsigned char *host_category(const struct kymo_host *host, const char *category)
{
	(void)host;
	return category && strcmp(category, "off") != 0 ? &host_on : NULL;
}
static uint64_t host_register(const struct kymo_host *host, const struct kymo_site_info *info)
{
	(void)host;
	return (uint64_t)(uintptr_t)info;
}
static int host_reserve(const struct kymo_host *host, uint64_t site, uint32_t words,
			struct kymo_reservation *reservation)
{
	(void)host;
	host_site = (const struct kymo_site_info *)(uintptr_t)site;
	host_words_count = words;
	reservation->items = host_words;
	return words <= KYMO_EMBED_WORDS_MAX;
}

static void host_keep_arg(struct seen *s, const struct kymo_item *item)
{
	struct seen_arg *arg = &s->args[s->args_count++];
	seen_copy(arg->key, sizeof(arg->key), item->key, strlen(item->key));
	arg->type = item->type;
	arg->cut = item->cut;
	arg->value.u = item->word;
	if (item->string)
		seen_copy(arg->string, sizeof(arg->string), item->string, item->string_bytes);
	else if (item->type == KYMO_TYPE_STRING) /* as libkymo shows it */
		seen_copy(arg->string, sizeof(arg->string), "(null)", strlen("(null)"));
}
static void host_keep(struct seen *s, const struct kymo_item *item)
{
	switch (item->role) {
	case KYMO_ITEM_TIME:
		s->monotonic_us = (int64_t)item->word / 1000;
		break;
	case KYMO_ITEM_TID:
		s->tid = (int32_t)item->word;
		break;
	case KYMO_ITEM_NAME:
		seen_copy(s->name, sizeof(s->name), item->string, item->string_bytes);
		break;
	case KYMO_ITEM_ID:
		s->id = item->word;
		break;
	default:
		host_keep_arg(s, item);
	}
}
static void host_commit(const struct kymo_host *host, struct kymo_reservation *reservation, int end)
{
	(void)host;
	struct seen *s =
		seen_new(kymo_event_kind(host_site, end), host_site->category, host_site->name);
	s->flags = host_site->flags;
	s->line = host_site->line;
	struct kymo_items walk =
		kymo_items_of(host_site, reservation->items, end ? 0 : host_words_count);
	struct kymo_item item;
	while (kymo_items_next(&walk, &item))
		host_keep(s, &item);
}
static uint32_t host_intern(const struct kymo_host *host, const char *string)
{
	(void)host;
	(void)string;
	return 0;
}
static uint64_t host_time(const struct kymo_host *host)
{
	(void)host;
	return 0;
}
static void host_snapshot(const struct kymo_host *host, const char *reason, uint64_t arg)
{
	(void)host;
	(void)reason;
	(void)arg;
}

static const struct kymo_host test_host = {sizeof(struct kymo_host),
					   KYMO_HOST_VERSION,
					   NULL,
					   host_category,
					   host_register,
					   host_reserve,
					   host_commit,
					   host_intern,
					   host_time,
					   host_snapshot};

static inline void seen_start(void)
{
	kymo_embed_host(&test_host);
}
static inline void seen_stop(void)
{
	kymo_embed_host(NULL);
}

#else /* a subscription */

static int64_t seen_clock_us(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void seen_keep_arg(struct seen_arg *to, const struct kymo_arg *arg)
{
	seen_copy(to->key, sizeof(to->key), arg->key, strlen(arg->key));
	to->type = arg->type;
	to->cut = arg->cut;
	to->value.u = arg->value.u;
	if (arg->type == KYMO_TYPE_STRING)
		seen_copy(to->string, sizeof(to->string), arg->string, arg->string_bytes);
}
static void seen_keep(const struct kymo_event *events, size_t count, void *context)
{
	const int64_t ahead_us = *(const int64_t *)context;
	const char *at = (const char *)events;
	for (size_t i = 0; i < count; i++) {
		const struct kymo_event *e = (const struct kymo_event *)(const void *)at;
		struct seen *s = seen_new(e->kind, e->category, e->name);
		s->flags = e->flags;
		s->line = e->line;
		s->tid = e->tid;
		s->id = e->id;
		s->monotonic_us = (int64_t)(e->time_ns / 1000) - ahead_us;
		s->args_count = e->args_count;
		for (uint32_t a = 0; a < e->args_count; a++)
			seen_keep_arg(&s->args[a], &e->args[a]);
		at += e->size;
	}
}

static int seen_subscription;
static int64_t seen_ahead_us; /* what CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC */

static inline void seen_start(void)
{
	seen_ahead_us = seen_clock_us(CLOCK_BOOTTIME) - seen_clock_us(CLOCK_MONOTONIC);
	/* "off" is for events that must not be; what is off by default is asked for by name. */
	seen_subscription =
		kymo_subscribe(seen_keep, &seen_ahead_us,
			       "*,-off,disabled-by-default-test,disabled-by-default-v8*");
	if (seen_subscription < 0) {
		fprintf(stderr, "kymo_subscribe: %s\n", kymo_strerror(seen_subscription));
		exit(1);
	}
}
static inline void seen_stop(void)
{
	kymo_unsubscribe(seen_subscription);
}

#endif

/* The only event of that name and kind; the test ends when there is none, or another. */
static inline const struct seen *find(uint32_t kind, const char *name)
{
	const struct seen *found = NULL;
	for (size_t i = 0; i < seen_count; i++) {
		if (seen_events[i].kind != kind || strcmp(seen_events[i].name, name) != 0)
			continue;
		if (found) {
			fprintf(stderr, "two events of kind %u are named %s\n", kind, name);
			return NULL;
		}
		found = &seen_events[i];
	}
	if (!found)
		fprintf(stderr, "no event of kind %u is named %s\n", kind, name);
	return found;
}

/* How many events of any kind have that name. */
static inline size_t count_named(const char *name)
{
	size_t count = 0;
	for (size_t i = 0; i < seen_count; i++)
		count += strcmp(seen_events[i].name, name) == 0;
	return count;
}

/* What an argument is, or is not. */
static inline const struct seen_arg *arg_at(const struct seen *s, uint32_t at, const char *key,
					    uint32_t type)
{
	if (!s || at >= s->args_count || strcmp(s->args[at].key, key) != 0 ||
	    s->args[at].type != type) {
		fprintf(stderr, "%s: argument %u is no %s of type %u", s ? s->name : "?", at, key,
			type);
		if (s && at < s->args_count)
			fprintf(stderr, " but %s of type %u", s->args[at].key, s->args[at].type);
		fprintf(stderr, "\n");
		return NULL;
	}
	return &s->args[at];
}
static inline int arg_is_int(const struct seen *s, uint32_t at, const char *key, int64_t value)
{
	const struct seen_arg *arg = arg_at(s, at, key, KYMO_TYPE_INT);
	return arg && arg->value.i == value;
}
static inline int arg_is_uint(const struct seen *s, uint32_t at, const char *key, uint64_t value)
{
	const struct seen_arg *arg = arg_at(s, at, key, KYMO_TYPE_UINT);
	return arg && arg->value.u == value;
}
static inline int arg_is_bool(const struct seen *s, uint32_t at, const char *key, uint64_t value)
{
	const struct seen_arg *arg = arg_at(s, at, key, KYMO_TYPE_BOOL);
	return arg && arg->value.u == value;
}
static inline int arg_is_double(const struct seen *s, uint32_t at, const char *key, double value)
{
	const struct seen_arg *arg = arg_at(s, at, key, KYMO_TYPE_DOUBLE);
	return arg && memcmp(&arg->value.d, &value, sizeof(value)) == 0;
}
static inline int arg_is_pointer(const struct seen *s, uint32_t at, const char *key,
				 const volatile void *value)
{
	const struct seen_arg *arg = arg_at(s, at, key, KYMO_TYPE_POINTER);
	return arg && arg->value.u == (uint64_t)(uintptr_t)value;
}
static inline int arg_is_string(const struct seen *s, uint32_t at, const char *key,
				const char *value)
{
	const struct seen_arg *arg = arg_at(s, at, key, KYMO_TYPE_STRING);
	return arg && strcmp(arg->string, value) == 0;
}

#endif
