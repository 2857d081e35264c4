/* SPDX-License-Identifier: MIT */
/*
 * drum_dump.c: a drum as text, for the tests: one JSON object a line for each event, then one for
 * each thread, and a last one with the totals.
 *
 *	drum_dump FILE|PID|-
 *
 * A number is a process, unless there is a file of that name.
 */
#include "formats/drum/drum_file.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct threads {
	uint64_t *events; /* by the thread's index */
	uint32_t room;
};

static void put_text(const char *text, size_t bytes)
{
	putchar('"');
	for (size_t i = 0; i < bytes; i++) {
		const unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 ||
			 c >= 0x7f) /* of a byte, not of a character: text may be anything */
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void put_arg(const struct kymo_arg *arg)
{
	if (arg->type == KYMO_TYPE_STRING)
		put_text(arg->string, arg->string_bytes);
	else if (arg->type == KYMO_TYPE_INT)
		printf("%" PRId64, arg->value.i);
	else if (arg->type == KYMO_TYPE_DOUBLE)
		printf("\"%a\"", arg->value.d);
	else
		printf("%" PRIu64, arg->value.u);
}

static void count_event(struct threads *threads, uint32_t index)
{
	if (index >= threads->room) {
		const uint32_t room = 2 * index + 64;
		uint64_t *grown = realloc(threads->events, room * sizeof(*grown));
		if (!grown)
			abort();
		memset(grown + threads->room, 0, (room - threads->room) * sizeof(*grown));
		threads->events = grown;
		threads->room = room;
	}
	threads->events[index]++;
}

static void on_event(void *context, const struct ky_event *event)
{
	if (event->kind != KYMO_KIND_LOST)
		count_event(context, event->thread->index);
	printf("{\"ns\":%" PRIu64 ",\"tid\":%" PRId32 ",\"kind\":%u,\"name\":", event->time_ns,
	       event->thread->tid, event->kind);
	put_text(event->name.data, event->name.bytes);
	if (event->site) {
		printf(",\"category\":");
		put_text(event->site->category.data, event->site->category.bytes);
	}
	if (event->id)
		printf(",\"id\":%" PRIu64, event->id);
	printf(",\"args\":{");
	for (uint32_t i = 0; i < event->args_count; i++) {
		printf("%s", i ? "," : "");
		put_text(event->args[i].key, strlen(event->args[i].key));
		putchar(':');
		put_arg(&event->args[i]);
	}
	puts("}}");
}

static void put_threads(const struct ky_stream *stream, const struct threads *threads)
{
	for (uint32_t i = 0; i < stream->sites.threads_room; i++) {
		const struct ky_thread *thread = stream->sites.threads[i];
		if (!thread)
			continue;
		printf("{\"thread\":%" PRId32 ",\"name\":", thread->tid);
		put_text(thread->name.data, thread->name.bytes);
		printf(",\"events\":%" PRIu64 "}\n",
		       thread->index < threads->room ? threads->events[thread->index] : 0);
	}
}

static void put_categories(const struct ky_drum_file *file)
{
	struct ky_drum_category_facts category;
	printf("\"categories\":{");
	for (uint32_t i = 0; ky_drum_file_category(file, i, &category); i++) {
		printf("%s", i ? "," : "");
		put_text(category.name.data, category.name.bytes);
		printf(":%s", category.on ? "true" : "false");
	}
	printf("}");
}

static void put_totals(const struct ky_drum_file *file)
{
	struct ky_drum_facts f;
	ky_drum_file_facts(file, &f);
	printf("{\"process\":");
	put_text(f.process_name.data, f.process_name.bytes);
	printf(",\"pid\":%" PRIu32 ",\"events\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"lost_ringless\":%" PRIu64 ",\"lost_nested\":%" PRIu64 ",\"refused\":%" PRIu64
	       ",\"damaged\":%" PRIu64 ",\"damaged_at\":%" PRIu64 ",\"exited\":%s,\"follows\":%s"
	       ",\"rate\":%" PRIu32 ",\"bytes\":%" PRIu64 ",\"data_bytes\":%" PRIu64 ",",
	       f.pid, f.events, f.lost_overwritten, f.lost_ringless, f.lost_nested,
	       f.refused_sites + f.refused_strings + f.refused_categories, f.damaged, f.damaged_at,
	       f.exited ? "true" : "false", f.follows ? "true" : "false", f.rate, f.drum_bytes,
	       f.data_bytes);
	put_categories(file);
	puts("}");
}

static int open_any(struct ky_drum_file **file, const char *where, char *message)
{
	size_t digits = 0;
	while (isdigit((unsigned char)where[digits]))
		digits++;
	if (digits && where[digits] == '\0' && access(where, F_OK) != 0)
		return ky_drum_file_open_pid(file, (pid_t)atoi(where), message);
	return ky_drum_file_open(file, where, message);
}

int main(int argc, char **argv)
{
	char message[KY_MESSAGE_BYTES];
	struct threads threads = {NULL, 0};
	struct ky_drum_file *file = NULL;
	struct ky_stream *stream = NULL;
	if (argc != 2) {
		fprintf(stderr, "usage: drum_dump FILE|PID|-\n");
		return 2;
	}
	if (open_any(&file, argv[1], message) != 0 ||
	    ky_drum_file_stream(file, NULL, false, &stream, message) != 0) {
		fprintf(stderr, "drum_dump: %s\n", message);
		ky_drum_file_close(&file);
		return 1;
	}
	stream->sink = (struct ky_stream_sink){.event = on_event, .context = &threads};
	const int error = ky_drum_file_read(file, true);
	put_threads(stream, &threads);
	put_totals(file);
	ky_drum_file_close(&file);
	free(threads.events);
	if (error)
		fprintf(stderr, "drum_dump: %s: %s\n", argv[1], strerror(-error));
	return error ? 1 : 0;
}
