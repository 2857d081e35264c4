/* SPDX-License-Identifier: MIT */
/*
 * host_custom.c: a program that is itself the host of the library's trace points, and prints what it
 * receives. Nothing of libkymo is linked. embed.h says what a host has to do.
 *
 * An event is written into a buffer of its thread between reserve() and commit(). A signal handler
 * that records an event while its thread is between the two finds the buffer taken, and its event is
 * counted as lost: that is allowed, blocking or overwriting would not be. (Printing is not for signal
 * handlers either; a real host would put the event into a ring and print elsewhere.)
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "greeter.h"

#include <kymo/embed.h>

static const unsigned char category_on = 1;
static atomic_uint events;
static atomic_uint lost;
static _Thread_local uint64_t buffer[KYMO_EMBED_WORDS_MAX];
static _Thread_local volatile int buffer_taken;

/* The parts of struct kymo_reservation that are the host's own. */
enum { RESERVED_SITE, RESERVED_WORDS };

static const unsigned char *host_category(const struct kymo_host *host, const char *category)
{
	(void)host, (void)category;
	return &category_on;
}

/* A handle can be any number but 0: here it is the address of the description. */
static uint64_t host_site(const struct kymo_host *host, const struct kymo_site_info *info)
{
	(void)host;
	return (uint64_t)(uintptr_t)info;
}

static int host_reserve(const struct kymo_host *host, uint64_t site, uint32_t words,
			struct kymo_reservation *reservation)
{
	(void)host;
	if (buffer_taken) {
		atomic_fetch_add(&lost, 1);
		return 0;
	}
	buffer_taken = 1;
	reservation->items = buffer;
	reservation->private_[RESERVED_SITE] = site;
	reservation->private_[RESERVED_WORDS] = words;
	return 1;
}

static void print_value(const struct kymo_item *item)
{
	switch (item->type) {
	case KYMO_TYPE_INT:
		printf("%" PRId64, kymo_item_int(item));
		break;
	case KYMO_TYPE_DOUBLE:
		printf("%g", kymo_item_double(item));
		break;
	case KYMO_TYPE_BOOL:
		printf("%s", kymo_item_uint(item) ? "true" : "false");
		break;
	case KYMO_TYPE_STRING:
		if (item->string)
			printf("\"%.*s\"%s", (int)item->string_bytes, item->string,
			       item->cut ? "..." : "");
		else
			printf("null");
		break;
	default:
		printf("%#" PRIx64, kymo_item_uint(item));
	}
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {
		[KYMO_KIND_BEGIN] = "begin",
		[KYMO_KIND_END] = "end",
		[KYMO_KIND_INSTANT] = "instant",
		[KYMO_KIND_COUNTER] = "counter",
		[KYMO_KIND_ASYNC_BEGIN] = "async begin",
		[KYMO_KIND_ASYNC_END] = "async end",
		[KYMO_KIND_PRINT] = "print",
	};
	const char *name = kind < sizeof(names) / sizeof(names[0]) ? names[kind] : NULL;
	return name ? name : "other";
}

static void host_commit(const struct kymo_host *host, struct kymo_reservation *reservation, int end)
{
	static const char *const role_names[] = {"time", "tid", "name", "id"};
	const struct kymo_site_info *info =
		(const struct kymo_site_info *)(uintptr_t)reservation->private_[RESERVED_SITE];
	struct kymo_items walk = kymo_items_of(info, reservation->items,
					       (uint32_t)reservation->private_[RESERVED_WORDS]);
	struct kymo_item item;
	(void)host;
	printf("%-11s %s %s", kind_name(kymo_event_kind(info, end)), info->category, info->name);
	while (kymo_items_next(&walk, &item)) {
		printf(" %s=", item.role == KYMO_ITEM_ARG ? item.key : role_names[item.role]);
		print_value(&item);
	}
	printf("\n");
	atomic_fetch_add(&events, 1);
	buffer_taken = 0;
}

static uint32_t host_intern(const struct kymo_host *host, const char *string)
{
	(void)host, (void)string;
	return 0; /* no room, always: allowed */
}

static uint64_t host_time(const struct kymo_host *host)
{
	struct timespec now;
	(void)host;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void host_snapshot(const struct kymo_host *host, const char *reason, uint64_t arg)
{
	(void)host;
	printf("snapshot    %s %" PRIu64 "\n", reason, arg);
}

const struct kymo_host *kymo_host_get(uint32_t version)
{
	static const struct kymo_host host = {
		.size = sizeof(host),
		.version = KYMO_HOST_VERSION,
		.category = host_category,
		.site = host_site,
		.reserve = host_reserve,
		.commit = host_commit,
		.intern = host_intern,
		.time = host_time,
		.snapshot = host_snapshot,
	};
	return version == KYMO_HOST_VERSION ? &host : NULL;
}

int main(void)
{
	greeter_greet("world", 2);
	printf("%u events, %u lost\n", atomic_load(&events), atomic_load(&lost));
	return atomic_load(&lost) ? 1 : 0;
}
