/* SPDX-License-Identifier: MIT */
/*
 * kernel_events.c: from the user's words to tracepoints.
 *
 *   sched            scheduling, and the lives and names of tasks: what the model makes its tables of
 *   syscalls         begin and end of every system call
 *   print            what programs write to trace_marker
 *   block            all events of that system
 *   block:*_issue    a glob of SYSTEM:EVENT, also with '/'
 *   tcp_*            a glob of systems or events
 *
 * Several may stand in one word, with commas. Tracepoints are those of tracefs's available_events.
 */
#include "capture/kernel_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tracefs/tracefs.h>

#include "capture/fail.h"
#include "core/glob.h"

#define ALIKE_MAX 6u
#define NAME_BYTES_MAX 96u

static const struct {
	const char *word;
	const char *events;
} sets[] = {
	/* Of these only those that the kernel has; sched_blocked_reason is Android's. */
	{"sched", "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,"
		  "sched:sched_blocked_reason,sched:sched_process_exec,sched:sched_process_exit,"
		  "sched:sched_process_free,task:task_newtask,task:task_rename"},
	{"syscalls", "raw_syscalls:sys_enter,raw_syscalls:sys_exit"},
	{"print", ""},
};

/* Of available_events: its text cut into lines, each a system and a name. */
struct tracepoint {
	const char *system;
	const char *name;
};

struct available {
	char *text;
	struct tracepoint *list;
	uint32_t count;
};

static int read_available(struct available *available, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	char *rest;
	int bytes = 0;
	*available = (struct available){
		.text = tracefs_instance_file_read(NULL, "available_events", &bytes)};
	if (!available->text)
		return ky_capture_fail(message, -EACCES,
				       "tracefs's available_events cannot be read; "
				       "run as root");
	available->list = calloc((size_t)bytes / 2 + 1, sizeof(*available->list));
	if (!available->list)
		return -ENOMEM;
	for (char *line = strtok_r(available->text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		available->list[available->count++] = (struct tracepoint){line, colon + 1};
	}
	return 0;
}

static void free_available(struct available *available)
{
	free(available->text);
	free(available->list);
}

/* ---- what is selected ---- */

static bool matches(const char *word, size_t bytes, const struct tracepoint *point)
{
	const char *split = memchr(word, ':', bytes);
	if (!split)
		split = memchr(word, '/', bytes);
	const size_t system_bytes = strlen(point->system);
	const size_t name_bytes = strlen(point->name);
	if (!split)
		return ky_glob_match(word, bytes, point->system, system_bytes) ||
		       ky_glob_match(word, bytes, point->name, name_bytes);
	const size_t before = (size_t)(split - word);
	return ky_glob_match(word, before, point->system, system_bytes) &&
	       ky_glob_match(split + 1, bytes - before - 1, point->name, name_bytes);
}

static bool is_selected(const struct ky_kernel_events *events, const struct tracepoint *point)
{
	for (uint32_t i = 0; i < events->count; i++)
		if (strcmp(events->events[i].name, point->name) == 0 &&
		    strcmp(events->events[i].system, point->system) == 0)
			return true;
	return false;
}

static int add(struct ky_kernel_events *events, const struct tracepoint *point)
{
	if (is_selected(events, point))
		return 0;
	struct ky_kernel_event *more =
		realloc(events->events, (events->count + 1) * sizeof(*events->events));
	if (!more)
		return -ENOMEM;
	events->events = more;
	struct ky_kernel_event *event = &more[events->count];
	*event = (struct ky_kernel_event){strdup(point->system), strdup(point->name), false};
	events->count++;
	return event->system && event->name ? 0 : -ENOMEM;
}

/* All that match; the number found, or -ENOMEM. */
static int add_matching(struct ky_kernel_events *events, const struct available *available,
			const char *word, size_t bytes)
{
	int found = 0;
	for (uint32_t i = 0; i < available->count; i++) {
		if (!matches(word, bytes, &available->list[i]))
			continue;
		if (add(events, &available->list[i]) != 0)
			return -ENOMEM;
		found++;
	}
	return found;
}

/* ---- what was meant ---- */

/* How many letters must be changed, put in or left out to make one of the other. */
static uint32_t distance(const char *a, size_t a_bytes, const char *b)
{
	uint32_t row[NAME_BYTES_MAX + 1];
	const size_t b_bytes = strlen(b);
	if (a_bytes > NAME_BYTES_MAX || b_bytes > NAME_BYTES_MAX)
		return UINT32_MAX;
	for (uint32_t j = 0; j <= b_bytes; j++)
		row[j] = j;
	for (uint32_t i = 1; i <= a_bytes; i++) {
		uint32_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_bytes; j++) {
			const uint32_t change = diagonal + (a[i - 1] != b[j - 1]);
			const uint32_t other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
			diagonal = row[j];
			row[j] = change < other ? change : other;
		}
	}
	return row[b_bytes];
}

/* The less, the more alike; UINT32_MAX is not at all. The word may be of the event or of both. */
static uint32_t unlikeness(const char *word, size_t bytes, const struct tracepoint *point)
{
	const char *split = memchr(word, ':', bytes);
	const char *name = split ? split + 1 : word;
	const size_t name_bytes = bytes - (size_t)(name - word);
	if (name_bytes >= 3 && memmem(point->name, strlen(point->name), name, name_bytes))
		return 0;
	const uint32_t steps = distance(name, name_bytes, point->name);
	return steps <= name_bytes / 3 ? steps + 1 : UINT32_MAX;
}

static int say_unknown(const struct available *available, const char *word, size_t bytes,
		       char message[KY_CAPTURE_MESSAGE_BYTES])
{
	char names[KY_CAPTURE_MESSAGE_BYTES / 2] = "";
	size_t used = 0;
	uint32_t said = 0;
	for (uint32_t limit = 0; limit < 8 && said < ALIKE_MAX; limit++)
		for (uint32_t i = 0; i < available->count && said < ALIKE_MAX; i++) {
			const struct tracepoint *point = &available->list[i];
			if (unlikeness(word, bytes, point) != limit || used + 8 > sizeof(names))
				continue;
			const int more = snprintf(names + used, sizeof(names) - used, "%s%s:%s",
						  said ? ", " : "", point->system, point->name);
			used += more > 0 ? (size_t)more : 0;
			said++;
		}
	if (said)
		return ky_capture_fail(message, -ENOENT, "no event matches \"%.*s\"; alike are %s",
				       (int)bytes, word, names);
	return ky_capture_fail(message, -ENOENT,
			       "no event matches \"%.*s\"; sched, syscalls and print "
			       "are sets, and tracefs's available_events has all others",
			       (int)bytes, word);
}

/* ---- */

static const char *set_of(const char *word, size_t bytes)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (strlen(sets[i].word) == bytes && memcmp(sets[i].word, word, bytes) == 0)
			return sets[i].events;
	return NULL;
}

/* One word, without commas. */
static int select_word(struct ky_kernel_events *events, const struct available *available,
		       const char *word, size_t bytes, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const char *set = set_of(word, bytes);
	const uint32_t before = events->count;
	if (set && !*set) {
		events->print = true;
		return 0;
	}
	if (!set) {
		const int found = add_matching(events, available, word, bytes);
		return found ? (found < 0 ? found : 0)
			     : say_unknown(available, word, bytes, message);
	}
	int found = 0;
	for (const char *at = set; *at;) {
		const size_t length = strcspn(at, ",");
		const int more = add_matching(events, available, at, length);
		if (more < 0)
			return more;
		found += more;
		at += length + (at[length] == ',');
	}
	if (!found && events->count == before)
		return ky_capture_fail(message, -ENOENT, "this kernel has none of %s", set);
	return 0;
}

int ky_kernel_events_select(struct ky_kernel_events *events, const char *const *words,
			    uint32_t count, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	struct available available;
	*events = (struct ky_kernel_events){0};
	int error = read_available(&available, message);
	for (uint32_t i = 0; i < count && !error; i++)
		for (const char *at = words[i]; *at && !error;) {
			const size_t bytes = strcspn(at, ",");
			if (bytes)
				error = select_word(events, &available, at, bytes, message);
			at += bytes + (at[bytes] == ',');
		}
	if (!error && !events->count && !events->print)
		error = ky_capture_fail(message, -EINVAL,
					"none is named; say sched, syscalls, "
					"print or SYSTEM:EVENT");
	free_available(&available);
	if (error)
		ky_kernel_events_free(events);
	return error;
}

int ky_kernel_events_enable(struct ky_kernel_events *events, struct tracefs_instance *instance,
			    char message[KY_CAPTURE_MESSAGE_BYTES])
{
	char why[KY_CAPTURE_MESSAGE_BYTES] = "";
	uint32_t on = 0;
	int error = 0;
	for (uint32_t i = 0; i < events->count; i++) {
		char path[256];
		struct ky_kernel_event *event = &events->events[i];
		snprintf(path, sizeof(path), "events/%s/%s/enable", event->system, event->name);
		const int failed = ky_kernel_instance_set(instance, path, "1", why);
		event->failed = failed != 0;
		on += !event->failed;
		error = failed ? failed : error;
	}
	return on || !events->count ? 0 : ky_capture_fail(message, error, "%s", why);
}

void ky_kernel_events_free(struct ky_kernel_events *events)
{
	for (uint32_t i = 0; i < events->count; i++) {
		free(events->events[i].system);
		free(events->events[i].name);
	}
	free(events->events);
	*events = (struct ky_kernel_events){0};
}
