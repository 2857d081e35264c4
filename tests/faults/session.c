/* SPDX-License-Identifier: MIT */
/*
 * session.c: records events of two threads into a file and for a subscriber, for sessions.py. The recorder never stops the
 * program: whatever fails, it ends with 0, or with 1 after a line for each error that the library returned.
 *
 *	session stream|ring PATH
 */
#include <kymo/kymo.h>
#include <kymo/session.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EVENTS 300

static int failed;
static atomic_uint received;
static atomic_bool told; /* that some were lost */

static int check(const char *what, int result)
{
	if (result < 0) {
		fprintf(stderr, "%s: %s\n", what, kymo_strerror(result));
		failed = 1;
	}
	return result;
}

static void on_events(const struct kymo_event *events, size_t count, void *context)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		if (events[i].kind == KYMO_KIND_LOST)
			atomic_store(&told, true);
		else if (strcmp(events[i].name, "fault event") == 0)
			atomic_fetch_add(&received, 1);
}

static void *record(void *context)
{
	(void)context;
	for (int i = 0; i < EVENTS; i++)
		KYMO_INSTANT("faults", "fault event", "number", i, "text", "some text");
	return NULL;
}

int main(int argc, char **argv)
{
	struct kymo_session *session = NULL;
	struct kymo_stats stats = {.size = sizeof(stats)};
	struct kymo_options options = {.size = sizeof(options)};
	pthread_t thread;

	if (argc != 3)
		return 2;
	options.mode = strcmp(argv[1], "ring") == 0 ? KYMO_MODE_RING : KYMO_MODE_STREAM;
	options.path = argv[2];
	const int subscription = check("subscribe", kymo_subscribe(on_events, NULL, NULL));
	check("start", kymo_session_start(&session, &options));
	const int made = pthread_create(&thread, NULL, record, NULL);
	record(NULL);
	if (made == 0)
		pthread_join(thread, NULL);
	if (session)
		check("flush", kymo_session_flush(session));
	record(NULL);
	if (session) {
		check("flush", kymo_session_flush(session));
		check("stats", kymo_session_stats(session, &stats));
		check("stop", kymo_session_stop(&session));
	}
	if (subscription >= 0)
		check("unsubscribe", kymo_unsubscribe(subscription));
	printf("%u %llu %u %d\n", (made == 0 ? 3 : 2) * EVENTS, (unsigned long long)stats.lost,
	       atomic_load(&received), atomic_load(&told));
	return failed;
}
