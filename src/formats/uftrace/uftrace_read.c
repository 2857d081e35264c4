/* SPDX-License-Identifier: MIT */
/*
 * uftrace_read.c: reads a uftrace data directory. Calls and returns become slices with their arguments; what uftrace
 * learned from perf, when threads did not run and what they are called, becomes slices "linux:schedule" as
 * uftrace shows them, and names.
 *
 *   record of TID.dat: u64 time │ bits 0–1 type, 2 payload follows, 3–5 magic, 6–15 depth, 16–63 address
 */
#include "base/array.h"
#include "formats/uftrace/uftrace_reader.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD_BYTES 40u
#define RECORD_BYTES 16u
#define MAGIC 5u
#define TASKS_MAX 1000000u

enum feature { FEATURE_SYM_REL_ADDR = 1u << 5 };

enum type { TYPE_ENTRY, TYPE_EXIT, TYPE_LOST, TYPE_EVENT };

struct uftrace_session {
	char id[32];
	int64_t pid;
	int64_t ns;
};

struct uftrace_task {
	int64_t tid, pid;
};

/* Names of functions as found last: records repeat few addresses. */
#define NAMES 4096u
struct uftrace_name {
	uint64_t address;
	const char *session;
	uint32_t name;
};

struct uftrace_reading {
	struct ky_load *load;
	struct ky_trace *trace;
	uint64_t features;
	char *info;
	struct ky_uftrace_specs specs;
	struct ky_uftrace_symbols *symbols;
	struct uftrace_session *sessions;
	uint32_t sessions_count, sessions_room;
	struct uftrace_task *tasks;
	uint32_t tasks_count, tasks_room;
	uint32_t category;
	struct uftrace_name names[NAMES];
};

static bool probe(const struct ky_probe *probe)
{
	size_t bytes;
	char *info = probe->path ? ky_uftrace_slurp(probe->path, "info", &bytes) : NULL;
	const bool known = info && bytes >= HEAD_BYTES && memcmp(info, "Ftrace!", 8) == 0;
	free(info);
	return known;
}

/* Read the info file's head and lines; the specs point into it. */
static int read_info(struct uftrace_reading *reading)
{
	static const char *const keys[] = {"argspec:", "retspec:", "argauto:", "retauto:"};
	size_t bytes;
	reading->info = ky_uftrace_slurp(reading->load->path, "info", &bytes);
	if (!reading->info || bytes < HEAD_BYTES)
		return ky_load_fail(reading->load, 0,
				    "the file info is cut: expected %u bytes of head", HEAD_BYTES);
	uint32_t version;
	memcpy(&version, reading->info + 8, sizeof(version));
	memcpy(&reading->features, reading->info + 16, sizeof(reading->features));
	if (version != 4 || reading->info[14] != 1)
		return ky_load_fail(reading->load, 8,
				    "info has version %u, byte order %d: only version 4, little "
				    "endian, is read",
				    version, reading->info[14]);
	char *at = reading->info + HEAD_BYTES;
	for (char *line; (line = ky_uftrace_line(&at));)
		for (size_t i = 0; i < 4; i++)
			if (strncmp(line, keys[i], 8) == 0 && strncmp(line + 8, "lines=", 6) != 0)
				reading->specs.texts[i] = line + 8;
	ky_uftrace_specs_open(&reading->specs, reading->trace);
	return 0;
}

static int64_t seconds_to_ns(const char *text)
{
	char *rest;
	const int64_t seconds = strtoll(text, &rest, 10);
	const int64_t fraction = *rest == '.' ? strtoll(rest + 1, NULL, 10) : 0;
	int64_t ns;
	if (__builtin_mul_overflow(seconds, 1000000000, &ns) ||
	    __builtin_add_overflow(ns, fraction, &ns))
		return 0;
	return ns;
}

/* Return the text behind key in the line, or "". */
static const char *field(const char *line, const char *key)
{
	const char *found = strstr(line, key);
	return found ? found + strlen(key) : "";
}

static int add_session(struct uftrace_reading *reading, const char *line)
{
	struct uftrace_session *session =
		KY_ARRAY_NEW(reading->sessions, reading->sessions_count, reading->sessions_room);
	if (!session)
		return -ENOMEM;
	*session = (struct uftrace_session){.pid = strtoll(field(line, " pid="), NULL, 10),
					    .ns = seconds_to_ns(field(line, " timestamp="))};
	snprintf(session->id, sizeof(session->id), "%.*s",
		 (int)strspn(field(line, " sid="), "0123456789abcdef"), field(line, " sid="));
	const char *name = field(line, " exename=\"");
	const char *end = strchr(name, '"');
	const char *slash = end ? memrchr(name, '/', (size_t)(end - name)) : NULL;
	if (slash)
		name = slash + 1;
	const uint32_t process = ky_process(reading->trace, session->pid);
	if (end)
		ky_process_name(reading->trace, process,
				ky_string(reading->trace, name, (size_t)(end - name)),
				KY_NAME_SYSTEM);
	return ky_uftrace_symbols_session(reading->symbols, session->id);
}

static int add_task(struct uftrace_reading *reading, int64_t tid, int64_t pid)
{
	if (reading->tasks_count >= TASKS_MAX)
		return 0;
	if (!KY_ARRAY_ADD(reading->tasks, reading->tasks_count, reading->tasks_room,
			  (struct uftrace_task){tid, pid}))
		return -ENOMEM;
	ky_thread(reading->trace, pid, tid);
	return 0;
}

static int add_library(struct uftrace_reading *reading, const char *line)
{
	char path[1024];
	char session[32];
	snprintf(session, sizeof(session), "%.*s",
		 (int)strspn(field(line, " sid="), "0123456789abcdef"), field(line, " sid="));
	const char *name = field(line, " libname=\"");
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(name, "\""), name);
	return ky_uftrace_symbols_library(reading->symbols, session,
					  strtoull(field(line, " base="), NULL, 16), path);
}

static int read_tasks(struct uftrace_reading *reading)
{
	size_t bytes;
	char *text = ky_uftrace_slurp(reading->load->path, "task.txt", &bytes);
	if (!text)
		return ky_load_fail(reading->load, KY_NO_PLACE,
				    "there is no task.txt in the directory");
	char *at = text;
	int error = 0;
	for (const char *line; !error && (line = ky_uftrace_line(&at));) {
		const int64_t pid = strtoll(field(line, " pid="), NULL, 10);
		if (strncmp(line, "SESS", 4) == 0)
			error = add_session(reading, line);
		else if (strncmp(line, "TASK", 4) == 0)
			error = add_task(reading, strtoll(field(line, " tid="), NULL, 10), pid);
		else if (strncmp(line, "FORK", 4) == 0)
			error = add_task(reading, pid, pid);
		else if (strncmp(line, "DLOP", 4) == 0)
			error = add_library(reading, line);
	}
	free(text);
	return error;
}

static int64_t pid_of(const struct uftrace_reading *reading, int64_t tid)
{
	for (uint32_t i = reading->tasks_count; i-- > 0;)
		if (reading->tasks[i].tid == tid)
			return reading->tasks[i].pid;
	return tid;
}

/* A file of records while it is read. */
struct calls {
	struct uftrace_reading *reading;
	const char *file;
	uint32_t thread;
	uint32_t track;
	int64_t pid;
	const struct uftrace_session **sessions; /* of the process, the latest first */
	uint32_t sessions_count;
	const uint8_t *data;
	size_t bytes;
	size_t at; /* behind the record's head */
};

/* Without those that a later line of task.txt says to have begun no later. */
static int find_sessions(struct calls *calls)
{
	const struct uftrace_reading *reading = calls->reading;
	calls->sessions = malloc((reading->sessions_count + 1) * sizeof(*calls->sessions));
	if (!calls->sessions)
		return -ENOMEM;
	for (uint32_t i = reading->sessions_count; i-- > 0;) {
		const struct uftrace_session *session = &reading->sessions[i];
		const uint32_t count = calls->sessions_count;
		if (session->pid == calls->pid &&
		    (!count || session->ns < calls->sessions[count - 1]->ns))
			calls->sessions[calls->sessions_count++] = session;
	}
	return 0;
}

/* The session that the process is in at that time: its own, else the first (it was forked from). */
static const char *session_at(const struct calls *calls, int64_t ns)
{
	const uint32_t low =
		KY_ARRAY_SEARCH(0, calls->sessions_count, at, calls->sessions[at]->ns > ns);
	if (low < calls->sessions_count)
		return calls->sessions[low]->id;
	return calls->reading->sessions_count ? calls->reading->sessions[0].id : "";
}

/* Add the payload of a call or return as arguments; false when its length is unknown. */
static bool take_args(struct calls *calls, const char *function, bool returned, uint32_t *args)
{
	ky_args_begin(calls->reading->trace);
	const size_t used =
		ky_uftrace_args(calls->reading->trace, &calls->reading->specs, function, returned,
				calls->data + calls->at, calls->bytes - calls->at);
	*args = ky_args_end(calls->reading->trace);
	calls->at += used;
	return used != 0;
}

/* An event's payload has its length. */
static bool skip_event(struct calls *calls)
{
	uint16_t length;
	if (calls->bytes - calls->at < 2)
		return false;
	memcpy(&length, calls->data + calls->at, 2);
	const size_t padded = ((size_t)length + 2 + 7) & ~(size_t)7;
	if (padded > calls->bytes - calls->at)
		return false;
	calls->at += padded;
	return true;
}

/* Return the function's name, or its address in pointed brackets. */
static uint32_t name_of(struct uftrace_reading *reading, const char *session, uint64_t address)
{
	struct uftrace_name *cached = &reading->names[(address ^ address >> 12) % NAMES];
	if (cached->session == session && cached->address == address)
		return cached->name;
	const char *known = ky_uftrace_symbols_name(reading->symbols, session, address);
	char number[24];
	snprintf(number, sizeof(number), "<%" PRIx64 ">", address);
	*cached = (struct uftrace_name){address, session,
					ky_string_z(reading->trace, known ? known : number)};
	return cached->name;
}

static bool take_call(struct calls *calls, int64_t ns, enum type type, bool more, uint64_t address)
{
	struct uftrace_reading *reading = calls->reading;
	struct ky_trace *trace = reading->trace;
	const uint32_t name = name_of(reading, session_at(calls, ns), address);
	uint32_t args = 0;
	if (more && name) {
		char function[256];
		snprintf(function, sizeof(function), "%s", ky_text_of(trace, name));
		if (!take_args(calls, function, type == TYPE_EXIT, &args))
			return false;
	}
	if (type == TYPE_ENTRY)
		ky_put_begin(trace, ns, calls->track, reading->category, name, args);
	else
		ky_put_end(trace, ns, calls->track, reading->category, 0, args);
	return true;
}

static bool take_record(struct calls *calls)
{
	uint64_t ns, word;
	memcpy(&ns, calls->data + calls->at, 8);
	memcpy(&word, calls->data + calls->at + 8, 8);
	if ((word >> 3 & 7) != MAGIC || ns > INT64_MAX)
		return false;
	calls->at += RECORD_BYTES;
	const enum type type = (enum type)(word & 3);
	const bool more = word >> 2 & 1;
	if (type == TYPE_LOST)
		ky_put_lost(calls->reading->trace, (int64_t)ns, calls->thread, KY_NONE, word >> 16,
			    KY_LOSS_UFTRACE);
	if (type == TYPE_LOST || type == TYPE_EVENT)
		return !more || skip_event(calls);
	return take_call(calls, (int64_t)ns, type, more, word >> 16);
}

/* TID.dat */
static int read_calls(struct uftrace_reading *reading, const char *file)
{
	const int64_t tid = strtoll(file, NULL, 10);
	struct calls calls = {.reading = reading, .file = file, .pid = pid_of(reading, tid)};
	uint8_t *data = (uint8_t *)ky_uftrace_slurp(reading->load->path, file, &calls.bytes);
	if (!data) {
		ky_problem(reading->trace, "uftrace_file_not_read", KY_DATA_LOSS, KY_NO_PLACE,
			   "%s cannot be read or is too large", file);
		return 0;
	}
	const int error = find_sessions(&calls);
	if (error) {
		free(data);
		return error;
	}
	calls.data = data;
	calls.thread = ky_thread(reading->trace, calls.pid, tid);
	calls.track = ky_track_of_thread(reading->trace, calls.thread);
	while (calls.bytes - calls.at >= RECORD_BYTES) {
		const size_t before = calls.at;
		if (!take_record(&calls)) {
			ky_problem(reading->trace, "uftrace_damaged", KY_DATA_LOSS, before,
				   "%s: no record that makes sense; %zu bytes are left out", file,
				   calls.bytes - before);
			break;
		}
	}
	if (calls.bytes - calls.at && calls.bytes - calls.at < RECORD_BYTES)
		ky_problem(reading->trace, "uftrace_truncated", KY_DATA_LOSS, calls.at,
			   "%s ends within a record", file);
	free(calls.sessions);
	free(data);
	return 0;
}

/* A perf record with the block at its end that says whose and when: u32 pid, tid, u64 time. */
static void take_perf(struct uftrace_reading *reading, const uint8_t *record, uint16_t size)
{
	struct ky_trace *trace = reading->trace;
	uint32_t type, ids[2];
	uint16_t misc;
	uint64_t ns;
	memcpy(&type, record, 4);
	memcpy(&misc, record + 4, 2);
	memcpy(ids, record + size - 16, 8);
	memcpy(&ns, record + size - 8, 8);
	if (ns > INT64_MAX)
		return;
	const uint32_t thread = ky_thread(trace, ids[0], ids[1]);
	const uint32_t track = ky_track_of_thread(trace, thread);
	const uint32_t category = ky_string_z(trace, "sched");
	const uint32_t name = ky_string_z(trace, misc & 1u << 14 ? "linux:schedule (pre-empted)"
								 : "linux:schedule");
	if (type == 14 && misc & 1u << 13)
		ky_put_begin(trace, (int64_t)ns, track, category, name, 0);
	else if (type == 14)
		ky_put_end(trace, (int64_t)ns, track, category, 0, 0);
	else if (type == 3 && size > 32)
		ky_thread_name(trace, thread,
			       ky_string(trace, (const char *)record + 16,
					 strnlen((const char *)record + 16, size - 32u)),
			       KY_NAME_SYSTEM);
}

/* perf-cpuN.dat */
static int read_perf(struct uftrace_reading *reading, const char *file)
{
	size_t bytes;
	uint8_t *data = (uint8_t *)ky_uftrace_slurp(reading->load->path, file, &bytes);
	size_t at = 0;
	while (data && bytes - at >= 8) {
		uint16_t size;
		memcpy(&size, data + at + 6, 2);
		if (size < 8 || size > bytes - at) {
			ky_problem(reading->trace, "uftrace_damaged", KY_DATA_LOSS, at,
				   "%s: a record of %u bytes", file, size);
			break;
		}
		if (size >= 24)
			take_perf(reading, data + at, size);
		at += size;
	}
	free(data);
	return 0;
}

static int read_file(struct uftrace_reading *reading, const char *name)
{
	const size_t length = strlen(name);
	if (length < 5 || strcmp(name + length - 4, ".dat") != 0)
		return 0;
	if (isdigit((unsigned char)name[0]))
		return read_calls(reading, name);
	if (strncmp(name, "perf-cpu", 8) == 0)
		return read_perf(reading, name);
	ky_problem(reading->trace, "uftrace_file_not_read", KY_INFO, KY_NO_PLACE, "%s", name);
	return 0;
}

static int read_files(struct uftrace_reading *reading)
{
	struct dirent **entries;
	const int count = scandir(reading->load->path, &entries, NULL, alphasort);
	if (count < 0)
		return -errno;
	int error = 0;
	for (int i = 0; i < count; i++) {
		if (!error)
			error = read_file(reading, entries[i]->d_name);
		if (!error && reading->load->progress)
			error = reading->load->progress(reading->load, (uint64_t)i,
							(uint64_t)count);
		free(entries[i]);
	}
	free(entries);
	return error;
}

static int read_trace(struct ky_load *load)
{
	struct uftrace_reading *reading = calloc(1, sizeof(*reading));
	if (!reading)
		return -ENOMEM;
	reading->load = load;
	reading->trace = load->trace;
	reading->category = ky_string_z(load->trace, "function");
	load->trace->clock = KY_CLOCK_MONOTONIC;
	int error = read_info(reading);
	if (!error)
		error = ky_uftrace_symbols_open(&reading->symbols, load->path,
						reading->features & FEATURE_SYM_REL_ADDR);
	if (!error)
		error = read_tasks(reading);
	if (!error)
		error = read_files(reading);
	ky_uftrace_symbols_close(&reading->symbols);
	KY_ARRAY_FREE(reading->sessions, reading->sessions_room);
	KY_ARRAY_FREE(reading->tasks, reading->tasks_room);
	ky_uftrace_specs_close(&reading->specs);
	free(reading->info);
	free(reading);
	return error;
}

const struct ky_reader ky_reader_uftrace = {
	.name = "uftrace",
	.title = "uftrace data",
	.directory = true,
	.probe = probe,
	.read = read_trace,
};
