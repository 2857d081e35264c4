/* SPDX-License-Identifier: MIT */
/*
 * kernel_files.c: the files of the ftrace stream: what a reader elsewhere must know of this kernel.
 *
 *   events/header_page, events/header_event      the shape of pages
 *   events/SYSTEM/EVENT/format                   of the events that are on, and of what programs print
 *   printk_formats, uname
 *   kallsyms                                     functions, when an event that is on has an address of one
 *   tasks                                        made here, of /proc: "time NS", then "TGID TID comm" a line
 *   set_event_pid                                when only some processes are recorded, as often as it grows
 *   saved_cmdlines, per_cpu/cpuN/stats           at the end
 *
 * Records have at most PART_BYTES: a larger file comes in several, each of whole lines.
 */
#include "capture/kernel_parts.h"
#include "process/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <tracefs/tracefs.h>

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
	ky_bundle_stream_write(stream->bundle, stream->source, record, padded);
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

/* A file of tracefs as it is; instance may be NULL: of the top. What is not there is left out. */
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

/* Whether the format has a field that the reader shows as the name of a function. */
static bool has_function(const char *text)
{
	static const char *const fields[] = {" func;",      " function;", " caller;",
					     " call_site;", " callsite;", " retaddr;"};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strstr(text, fields[i]))
			return true;
	return false;
}

/* Returns whether symbols are needed to show the event. */
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

/* Functions only. Without the right to see addresses they are all 0, and of no use. */
static void write_symbols(const struct ky_kernel_stream *stream)
{
	char line[512];
	char *text = NULL;
	size_t bytes = 0;
	bool hidden = true;
	FILE *from = fopen("/proc/kallsyms", "re");
	FILE *to = from ? open_memstream(&text, &bytes) : NULL;
	while (to && fgets(line, sizeof(line), from)) {
		const char *kind = strchr(line, ' ');
		if (!kind || !strchr("tTwWi", kind[1]))
			continue;
		hidden = hidden && strspn(line, "0") == (size_t)(kind - line);
		fputs(line, to);
	}
	if (to && fclose(to) == 0 && !hidden)
		write_file(stream, "kallsyms", text, bytes);
	if (from)
		fclose(from);
	free(text);
}

void ky_kernel_files_formats(const struct ky_kernel_stream *stream,
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

void ky_kernel_files_tasks(const struct ky_kernel_stream *stream)
{
	char *text = NULL;
	size_t bytes = 0;
	struct timespec now;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return;
	clock_gettime(CLOCK_BOOTTIME, &now);
	fprintf(to, "time %llu\n",
		(unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
	DIR *const processes = ky_proc_processes();
	for (pid_t pid; (pid = ky_proc_next(processes)) > 0;)
		write_tasks(to, pid);
	ky_proc_close(processes);
	if (fclose(to) == 0)
		write_file(stream, "tasks", text, bytes);
	free(text);
}

void ky_kernel_files_comms(const struct ky_kernel_stream *stream)
{
	copy_file(stream, NULL, "saved_cmdlines");
}

void ky_kernel_files_pids(const struct ky_kernel_stream *stream, struct tracefs_instance *instance)
{
	copy_file(stream, instance, "set_event_pid");
}

void ky_kernel_files_stats(const struct ky_kernel_stream *stream, struct tracefs_instance *instance,
			   uint32_t cpu)
{
	char path[64];
	snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	copy_file(stream, instance, path);
}
