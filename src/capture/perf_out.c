/* SPDX-License-Identifier: MIT */
/* perf_out.c: see perf_out.h. */
#include "capture/perf_out.h"

#include "base/array.h"
#include "capture/sample_processes.h"
#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/symbols.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

void ky_perf_out_free(struct ky_perf_out *out)
{
	KY_ARRAY_FREE(out->bytes, out->room);
	*out = (struct ky_perf_out){0};
}

void ky_perf_out_add(struct ky_perf_out *out, const void *bytes, size_t count)
{
	if (!count)
		return;
	if (!KY_ARRAY_GROW(out->bytes, out->room, out->used + count)) {
		out->failed = true;
		return;
	}
	memcpy(out->bytes + out->used, bytes, count);
	out->used += count;
}

/* Add a text with its NUL, padded to whole words. */
static void add_text(struct ky_perf_out *out, const char *text, size_t bytes)
{
	static const char zeros[8];
	ky_perf_out_add(out, text, bytes);
	ky_perf_out_add(out, zeros, 8 - bytes % 8);
}

static size_t text_room(size_t bytes)
{
	return bytes + 8 - bytes % 8;
}

static void add_trailer(struct ky_perf_out *out, struct ky_perf_who who)
{
	const struct ky_perf_trailer trailer = {.pid = who.pid, .tid = who.tid, .time = who.time};
	ky_perf_out_add(out, &trailer, sizeof(trailer));
}

/* Add a text of a feature of the file. */
static void add_feature(struct ky_perf_out *out, uint64_t feature, const char *text)
{
	const size_t bytes = strnlen(text, 255);
	const uint32_t text_bytes = (uint32_t)text_room(bytes);
	/* The length takes half a word: so does what fills the record up. */
	const struct {
		struct perf_event_header head;
		uint64_t feature;
		uint32_t text_bytes;
	} __attribute__((packed, aligned(4))) record = {
		.head = {.type = KY_PERF_HEADER_FEATURE, .size = (uint16_t)(24 + text_bytes)},
		.feature = feature,
		.text_bytes = text_bytes,
	};
	const uint32_t zero = 0;
	ky_perf_out_add(out, &record, sizeof(record));
	add_text(out, text, bytes);
	ky_perf_out_add(out, &zero, sizeof(zero));
}

void ky_perf_out_head(struct ky_perf_out *out, const struct perf_event_attr *attr)
{
	const uint64_t head_bytes = KY_PERF_PIPE_HEAD_BYTES;
	const struct perf_event_header head = {.type = KY_PERF_HEADER_ATTR,
					       .size = (uint16_t)(sizeof(head) + sizeof(*attr))};
	struct utsname names;
	ky_perf_out_add(out, KY_PERF_MAGIC, 8);
	ky_perf_out_add(out, &head_bytes, sizeof(head_bytes));
	/* There is one event, so records need no ids. */
	ky_perf_out_add(out, &head, sizeof(head));
	ky_perf_out_add(out, attr, sizeof(*attr));
	if (uname(&names) != 0)
		return;
	add_feature(out, KY_PERF_FEATURE_HOSTNAME, names.nodename);
	add_feature(out, KY_PERF_FEATURE_OSRELEASE, names.release);
	add_feature(out, KY_PERF_FEATURE_ARCH, names.machine);
}

void ky_perf_out_kernel(struct ky_perf_out *out, uint64_t text)
{
	static const char name[] = "[kernel.kallsyms]_text";
	const struct {
		struct perf_event_header head;
		uint32_t pid, tid;
		uint64_t start, bytes, offset;
	} record = {
		.head = {.type = PERF_RECORD_MMAP,
			 .misc = PERF_RECORD_MISC_KERNEL,
			 .size = (uint16_t)(sizeof(record) + text_room(sizeof(name) - 1) +
					    sizeof(struct ky_perf_trailer))},
		.pid = UINT32_MAX,
		.start = text,
		.bytes = UINT64_MAX - 4096 - text,
		.offset = text,
	};
	ky_perf_out_add(out, &record, sizeof(record));
	add_text(out, name, sizeof(name) - 1);
	add_trailer(out, (struct ky_perf_who){UINT32_MAX, 0, 0});
}

void ky_perf_out_comm(struct ky_perf_out *out, struct ky_perf_who who, const char *comm)
{
	const size_t bytes = strnlen(comm, 15);
	const struct {
		struct perf_event_header head;
		uint32_t pid, tid;
	} record = {
		.head = {.type = PERF_RECORD_COMM,
			 .size = (uint16_t)(sizeof(record) + text_room(bytes) +
					    sizeof(struct ky_perf_trailer))},
		.pid = who.pid,
		.tid = who.tid,
	};
	ky_perf_out_add(out, &record, sizeof(record));
	add_text(out, comm, bytes);
	add_trailer(out, who);
}

void ky_perf_out_thread(struct ky_perf_out *out, struct ky_perf_who who)
{
	const struct {
		struct perf_event_header head;
		uint32_t pid, ppid;
		uint32_t tid, ptid;
		uint64_t time;
	} record = {
		.head = {.type = PERF_RECORD_FORK,
			 .size = (uint16_t)(sizeof(record) + sizeof(struct ky_perf_trailer))},
		.pid = who.pid,
		.ppid = who.pid,
		.tid = who.tid,
		.ptid = who.pid,
		.time = who.time,
	};
	ky_perf_out_add(out, &record, sizeof(record));
	add_trailer(out, who);
}

/* MMAP2 names the file by its build id, or by its place on a disk. */
void ky_perf_out_mapping(struct ky_perf_out *out, struct ky_perf_who who,
			 const struct ky_proc_mapping *mapping)
{
	const size_t bytes = strnlen(mapping->path, PATH_MAX);
	struct {
		struct perf_event_header head;
		uint32_t pid, tid;
		uint64_t start, bytes, offset;
		uint8_t identity[24];
		uint32_t protection, flags;
	} record = {
		.head = {.type = PERF_RECORD_MMAP2,
			 .misc = PERF_RECORD_MISC_USER,
			 .size = (uint16_t)(sizeof(record) + text_room(bytes) +
					    sizeof(struct ky_perf_trailer))},
		.pid = who.pid,
		.tid = who.tid,
		.start = mapping->start,
		.bytes = mapping->end - mapping->start,
		.offset = mapping->offset,
		.protection = mapping->protection,
		.flags = mapping->flags,
	};
	if (mapping->build_id_bytes) {
		record.head.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		record.identity[0] = mapping->build_id_bytes;
		memcpy(record.identity + 4, mapping->build_id, mapping->build_id_bytes);
	} else {
		const uint32_t device[2] = {(uint32_t)(mapping->device >> 32),
					    (uint32_t)mapping->device};
		memcpy(record.identity, device, sizeof(device));
		memcpy(record.identity + 8, &mapping->inode, 8);
	}
	ky_perf_out_add(out, &record, sizeof(record));
	add_text(out, mapping->path, bytes);
	add_trailer(out, who);
}

void ky_perf_out_round(struct ky_perf_out *out)
{
	const struct perf_event_header head = {.type = KY_PERF_FINISHED_ROUND,
					       .size = sizeof(head)};
	ky_perf_out_add(out, &head, sizeof(head));
}

/* ---- processes that run already: the records that the kernel would have written when they began ---- */

struct existing {
	struct ky_perf_out *out;
	pid_t pid;
	uint64_t time;
};

static void add_thread(void *context, pid_t tid)
{
	const struct existing *existing = context;
	const struct ky_perf_who who = {(uint32_t)existing->pid, (uint32_t)tid, existing->time};
	char comm[16];
	(void)ky_proc_comm(existing->pid, tid, comm, sizeof(comm));
	if (tid != existing->pid)
		ky_perf_out_thread(existing->out, who);
	ky_perf_out_comm(existing->out, who, comm);
}

uint32_t ky_perf_out_threads(pid_t pid, void (*thread)(void *context, pid_t tid), void *context)
{
	uint32_t count = 0;
	DIR *const tasks = ky_proc_tasks(pid);
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0; count++)
		thread(context, tid);
	ky_proc_close(tasks);
	return count;
}

/* The file of the last line: libraries have several mappings in a row. */
struct last_file {
	char path[PATH_MAX];
	struct ky_proc_mapping mapping;
};

static void identify(struct ky_proc_mapping *mapping, pid_t pid, struct last_file *last)
{
	if (strcmp(last->path, mapping->path) == 0 && last->mapping.inode == mapping->inode) {
		memcpy(mapping->build_id, last->mapping.build_id, sizeof(mapping->build_id));
		mapping->build_id_bytes = last->mapping.build_id_bytes;
		return;
	}
	const int fd = mapping->inode ? ky_sample_modules_open_path(mapping->path, pid) : -1;
	if (fd >= 0) {
		ky_sample_modules_build_id(fd, mapping);
		close(fd);
	}
	snprintf(last->path, sizeof(last->path), "%s", mapping->path);
	last->mapping = *mapping;
}

static void add_mapping(const struct existing *existing, struct ky_proc_mapping *mapping,
			struct last_file *last)
{
	/* The kernel names memory without a file so in its own records. */
	mapping->path = mapping->path[0] ? mapping->path : "//anon";
	identify(mapping, existing->pid, last);
	ky_perf_out_mapping(existing->out,
			    (struct ky_perf_who){(uint32_t)existing->pid, (uint32_t)existing->pid,
						 existing->time},
			    mapping);
}

static void add_mappings(const struct existing *existing)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	struct last_file *const last = calloc(1, sizeof(*last));
	if (last && ky_proc_maps_open(&maps, existing->pid) == 0) {
		while (ky_proc_maps_next(&maps, &mapping))
			if (mapping.protection & PROT_EXEC)
				add_mapping(existing, &mapping, last);
		ky_proc_maps_close(&maps);
	}
	free(last);
}

void ky_perf_out_process(struct ky_perf_out *out, pid_t pid, uint64_t time)
{
	struct existing existing = {out, pid, time};
	/* The names come first: a COMM record begins a process for a reader. */
	ky_perf_out_threads(pid, add_thread, &existing);
	add_mappings(&existing);
}

void ky_perf_out_all(struct ky_perf_out *out, uint64_t time)
{
	DIR *const processes = ky_proc_processes();
	for (pid_t pid; (pid = ky_proc_next(processes)) > 0;)
		ky_perf_out_process(out, pid, time);
	ky_proc_close(processes);
}

/* Stop at _text, which is among the first. */
static bool find_text(void *context, const char *line, const struct ky_kallsym *symbol)
{
	uint64_t *const text = context;
	(void)line;
	const bool found = symbol->name_bytes == 5 && memcmp(symbol->name, "_text", 5) == 0;
	if (found)
		*text = symbol->address;
	return !found;
}

uint64_t ky_perf_out_kernel_text(void)
{
	uint64_t text = 0;
	ky_symbols_kallsyms(find_text, &text);
	return text;
}
