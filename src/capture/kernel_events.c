/* SPDX-License-Identifier: MIT */
/*
 * kernel_events.c: from the user's words to tracepoints, and the files that a reader needs to understand them.
 *
 *   sched            scheduling, and the start, end and names of tasks
 *   syscalls         start and end of every system call
 *   print            what programs write to trace_marker
 *   block            all events of that system
 *   block:*_issue    a glob of SYSTEM:EVENT, also with '/'
 *   tcp_*            a glob of systems or events
 *
 * A word may have several, separated by commas. Tracepoints are those of tracefs's available_events.
 */
#include "capture/kernel_events.h"

#include "base/array.h"
#include "base/strings.h"
#include "capture/kernel_trace.h"
#include "core/glob.h"
#include "os/os.h"
#include "process/proc.h"
#include "process/symbols.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <tracefs/tracefs.h>

#define ALIKE_MAX 6u

static const struct {
	const char *word;
	const char *events;
} sets[] = {
	/* Only those that the kernel has; sched_blocked_reason is Android's. */
	{"sched", "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,"
		  "sched:sched_blocked_reason,sched:sched_process_exec,sched:sched_process_exit,"
		  "sched:sched_process_free,task:task_newtask,task:task_rename"},
	{"syscalls", "raw_syscalls:sys_enter,raw_syscalls:sys_exit"},
	{"print", ""},
};

/* available_events: its text cut into lines, each a system and a name. */
struct tracepoint {
	const char *system;
	const char *name;
};

struct available {
	char *text;
	struct tracepoint *list;
	uint32_t count;
};

static int read_available(struct available *available, char message[KY_MESSAGE_BYTES])
{
	char *rest;
	int bytes = 0;
	*available = (struct available){
		.text = tracefs_instance_file_read(NULL, "available_events", &bytes)};
	if (!available->text)
		return ky_fail(message, -EACCES,
			       "cannot read tracefs's available_events; run as root");
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
	struct ky_kernel_event *const event =
		KY_ARRAY_NEW(events->events, events->count, events->room);
	if (!event)
		return -ENOMEM;
	event->system = strdup(point->system);
	event->name = strdup(point->name);
	return event->system && event->name ? 0 : -ENOMEM;
}

/* Add all that match. Return the number found, or -ENOMEM. */
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

/* Return how far the word is from the event, which it may name with or without its system; UINT32_MAX: not alike. */
static uint32_t unlikeness(const char *word, size_t bytes, const struct tracepoint *point)
{
	const char *split = memchr(word, ':', bytes);
	const char *name = split ? split + 1 : word;
	const size_t name_bytes = bytes - (size_t)(name - word);
	if (name_bytes >= 3 && memmem(point->name, strlen(point->name), name, name_bytes))
		return 0;
	const uint32_t steps =
		ky_strings_distance(name, name_bytes, point->name, strlen(point->name));
	return steps <= name_bytes / 3 ? steps + 1 : UINT32_MAX;
}

static int report_unknown(const struct available *available, const char *word, size_t bytes,
			  char message[KY_MESSAGE_BYTES])
{
	char names[KY_MESSAGE_BYTES / 2] = "";
	size_t used = 0;
	uint32_t listed = 0;
	for (uint32_t limit = 0; limit < 8 && listed < ALIKE_MAX; limit++)
		for (uint32_t i = 0; i < available->count && listed < ALIKE_MAX; i++) {
			const struct tracepoint *point = &available->list[i];
			if (unlikeness(word, bytes, point) != limit || used + 8 > sizeof(names))
				continue;
			const int more = snprintf(names + used, sizeof(names) - used, "%s%s:%s",
						  listed ? ", " : "", point->system, point->name);
			used += more > 0 ? (size_t)more : 0;
			listed++;
		}
	if (listed)
		return ky_fail(message, -ENOENT, "no event matches \"%.*s\"; similar: %s",
			       (int)bytes, word, names);
	return ky_fail(
		message, -ENOENT,
		"no event matches \"%.*s\": use sched, syscalls, print or one of tracefs's available_events",
		(int)bytes, word);
}

/* ---- words ---- */

static const char *set_of(const char *word, size_t bytes)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (strlen(sets[i].word) == bytes && memcmp(sets[i].word, word, bytes) == 0)
			return sets[i].events;
	return NULL;
}

/* Add what one word means; it has no commas. */
static int select_word(struct ky_kernel_events *events, const struct available *available,
		       const char *word, size_t bytes, char message[KY_MESSAGE_BYTES])
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
			     : report_unknown(available, word, bytes, message);
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
		return ky_fail(message, -ENOENT, "this kernel has none of the events of %s", set);
	return 0;
}

int ky_kernel_events_select(struct ky_kernel_events *events, const char *const *words,
			    uint32_t count, char message[KY_MESSAGE_BYTES])
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
		error = ky_fail(message, -EINVAL,
				"no events named: use sched, syscalls, print or SYSTEM:EVENT");
	free(available.text);
	free(available.list);
	if (error)
		ky_kernel_events_free(events);
	return error;
}

int ky_kernel_events_enable(struct ky_kernel_events *events, struct tracefs_instance *instance,
			    char message[KY_MESSAGE_BYTES])
{
	char why[KY_MESSAGE_BYTES] = "";
	uint32_t on = 0;
	int error = 0;
	for (uint32_t i = 0; i < events->count; i++) {
		char path[256];
		struct ky_kernel_event *event = &events->events[i];
		snprintf(path, sizeof(path), "events/%s/%s/enable", event->system, event->name);
		const int failed = ky_kernel_trace_set(instance, path, "1", why);
		event->failed = failed != 0;
		on += !event->failed;
		error = failed ? failed : error;
	}
	return on || !events->count ? 0 : ky_fail(message, error, "%s", why);
}

void ky_kernel_events_free(struct ky_kernel_events *events)
{
	for (uint32_t i = 0; i < events->count; i++) {
		free(events->events[i].system);
		free(events->events[i].name);
	}
	KY_ARRAY_FREE(events->events, events->room);
	*events = (struct ky_kernel_events){0};
}

/*
 * ---- the files of the stream ----
 *
 *   events/header_page, events/header_event      the layout of pages
 *   events/SYSTEM/EVENT/format                   of the events that are on, and of what programs print
 *   printk_formats, uname
 *   kallsyms                                     functions, when an event that is on has the address of one
 *   tasks                                        made here, from /proc: "time NS", then "TGID TID comm" per line
 *   set_event_pid                                when only some processes are recorded, each time it grows
 *   saved_cmdlines, per_cpu/cpuN/stats           at the end
 *
 * Records have at most PART_BYTES: a larger file comes in several, each of whole lines.
 */

#define PART_BYTES (512u << 10)

static void write_part(const struct ky_kernel_stream *stream, const char *path, const char *text,
		       size_t bytes)
{
	const size_t path_bytes = strlen(path);
	const struct ky_kymo_ftrace head = {
		.bytes = (uint32_t)(sizeof(head) + path_bytes + bytes),
		.kind = KY_KYMO_FTRACE_FILE,
		.path_bytes = (uint16_t)path_bytes,
	};
	const size_t padded = KY_KYMO_PADDED(head.bytes);
	char *record = calloc(1, padded);
	if (!record)
		return;
	memcpy(record, &head, sizeof(head));
	memcpy(record + sizeof(head), path, path_bytes);
	memcpy(record + sizeof(head) + path_bytes, text, bytes);
	ky_bundle_stream_write(stream->bundle, stream->part, record, padded);
	free(record);
}

static void write_file(const struct ky_kernel_stream *stream, const char *path, const char *text,
		       size_t bytes)
{
	while (bytes > PART_BYTES) {
		const char *line = memrchr(text, '\n', PART_BYTES);
		const size_t part = line ? (size_t)(line + 1 - text) : PART_BYTES;
		write_part(stream, path, text, part);
		text += part;
		bytes -= part;
	}
	write_part(stream, path, text, bytes);
}

/* Write a file of tracefs as it is; instance NULL: of the top level. A missing file is left out. */
static void copy_file(const struct ky_kernel_stream *stream, struct tracefs_instance *instance,
		      const char *path)
{
	int bytes = 0;
	char *text = tracefs_instance_file_read(instance, path, &bytes);
	if (text && bytes > 0)
		write_file(stream, path, text, (size_t)bytes);
	free(text);
}

/* ---- formats ---- */

/* Report whether the format has a field that the reader shows as the name of a function. */
static bool has_function(const char *text)
{
	static const char *const fields[] = {" func;",      " function;", " caller;",
					     " call_site;", " callsite;", " retaddr;"};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strstr(text, fields[i]))
			return true;
	return false;
}

/* Report whether symbols are needed to show the event. */
static bool copy_format(const struct ky_kernel_stream *stream, const char *system, const char *name)
{
	char path[256];
	int bytes = 0;
	snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
	char *text = tracefs_instance_file_read(NULL, path, &bytes);
	bool function = false;
	if (text && bytes > 0) {
		function = has_function(text);
		write_file(stream, path, text, (size_t)bytes);
	}
	free(text);
	return function;
}

static void write_uname(const struct ky_kernel_stream *stream)
{
	struct utsname name;
	char text[sizeof(name)];
	if (uname(&name) != 0)
		return;
	const int bytes = snprintf(text, sizeof(text), "%s %s %s %s\n", name.sysname, name.nodename,
				   name.release, name.machine);
	if (bytes > 0 && (size_t)bytes < sizeof(text))
		write_file(stream, "uname", text, (size_t)bytes);
}

struct functions_text {
	FILE *file;
	bool visible; /* an address is */
};

static bool keep_function(void *context, const char *line, const struct ky_kallsym *symbol)
{
	struct functions_text *const text = context;
	if (!symbol->type || !strchr("tTwWi", symbol->type))
		return true;
	text->visible |= symbol->address != 0;
	return fputs(line, text->file) >= 0;
}

/* Keep functions only. Without the right to see addresses they are all 0 and useless. */
static void write_symbols(const struct ky_kernel_stream *stream)
{
	char *text = NULL;
	size_t bytes = 0;
	struct functions_text functions = {.file = open_memstream(&text, &bytes)};
	if (!functions.file)
		return;
	ky_symbols_kallsyms(keep_function, &functions);
	if (fclose(functions.file) == 0 && functions.visible)
		write_file(stream, "kallsyms", text, bytes);
	free(text);
}

void ky_kernel_events_formats(const struct ky_kernel_stream *stream,
			      struct tracefs_instance *instance,
			      const struct ky_kernel_events *events)
{
	static const char *const own[] = {"print", "bprint", "bputs"};
	bool functions = false;
	copy_file(stream, instance, "events/header_page");
	copy_file(stream, instance, "events/header_event");
	write_uname(stream);
	copy_file(stream, NULL, "printk_formats");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)copy_format(stream, "ftrace", own[i]);
	for (uint32_t i = 0; i < events->count; i++)
		if (!events->events[i].failed &&
		    copy_format(stream, events->events[i].system, events->events[i].name))
			functions = true;
	if (functions)
		write_symbols(stream);
}

/* ---- tasks ---- */

static void write_tasks(FILE *to, pid_t pid)
{
	char comm[64];
	DIR *const tasks = ky_proc_tasks(pid);
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0;)
		if (ky_proc_comm(pid, tid, comm, sizeof(comm)) >= 0)
			fprintf(to, "%d %d %s\n", (int)pid, (int)tid, comm);
	ky_proc_close(tasks);
}

void ky_kernel_events_tasks(const struct ky_kernel_stream *stream)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return;
	fprintf(to, "time %" PRIu64 "\n", ky_os_boottime());
	DIR *const processes = ky_proc_processes();
	for (pid_t pid; (pid = ky_proc_next(processes)) > 0;)
		write_tasks(to, pid);
	ky_proc_close(processes);
	if (fclose(to) == 0)
		write_file(stream, "tasks", text, bytes);
	free(text);
}

void ky_kernel_events_comms(const struct ky_kernel_stream *stream)
{
	copy_file(stream, NULL, "saved_cmdlines");
}

void ky_kernel_events_pids(const struct ky_kernel_stream *stream, struct tracefs_instance *instance)
{
	copy_file(stream, instance, "set_event_pid");
}

void ky_kernel_events_stats(const struct ky_kernel_stream *stream,
			    struct tracefs_instance *instance, uint32_t cpu)
{
	char path[64];
	snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	copy_file(stream, instance, path);
}
