/* SPDX-License-Identifier: MIT */
/*
 * sample_processes.h: what is needed to understand samples, kept up to date by perf's own records: processes, threads,
 * their names, what code they have mapped, and the files that it was mapped from.
 *
 * A module is such a file, known once. It is opened when an address in it is first met, while there is a process that has it:
 * it may be removed, replaced, or be in another mount namespace when the capture ends and its names are looked for.
 */
#ifndef KY_CAPTURE_SAMPLE_PROCESSES_H
#define KY_CAPTURE_SAMPLE_PROCESSES_H

#include "base/map.h"
#include "capture/perf_out.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <sys/types.h>

enum ky_sample_module_kind {
	KY_SAMPLE_FILE,
	KY_SAMPLE_VDSO,
	KY_SAMPLE_MADE,   /* no file: code generated at run time */
	KY_SAMPLE_JITDUMP /* the same, and the file that describes it */
};

struct ky_sample_module {
	char *path;
	uint8_t build_id[KY_BUILD_ID_MAX];
	uint8_t build_id_bytes;
	uint64_t device, inode;
	enum ky_sample_module_kind kind;
	bool opened;   /* opening was tried */
	int fd;        /* -1: none */
	uint32_t next; /* of the same hash */
};

struct ky_sample_modules {
	struct ky_sample_module *items;
	uint32_t count;
	uint32_t room;
	uint32_t open_count;
	struct ky_u64_map by_hash;
};

void ky_sample_modules_free(struct ky_sample_modules *modules);
/* Open the file as the process sees it, once. Of some hundred only: descriptors are needed for other things too. */
void ky_sample_modules_open(struct ky_sample_modules *modules, uint32_t module, pid_t pid);
/* Return a descriptor of the file, the caller's; when it is not open, of what is at its path now if that is the same. -1: none. */
int ky_sample_modules_take(struct ky_sample_modules *modules, uint32_t module);

/* Read the build id of an ELF file into mapping. */
void ky_sample_modules_build_id(int fd, struct ky_proc_mapping *mapping);
/* Open a regular file as the process sees it, else as kymo does; return -1 when there is none. */
int ky_sample_modules_open_path(const char *path, pid_t pid);

/* ---- processes ---- */

/*
 * They are written again at the beginning of each file (a rotation) and of what a flight recorder writes. A process that has
 * ended is forgotten two rounds later: until then samples of it may come.
 */

struct ky_sample_process {
	uint32_t pid;
	uint32_t threads; /* alive */
	struct ky_address_space space;
	uint32_t ended; /* rounds since its last thread ended, or 0 */
};

struct ky_sample_thread {
	uint32_t pid, tid;
	bool alive;
	char comm[16];
};

struct ky_sample_processes {
	struct ky_sample_modules *modules; /* the owner's */
	struct ky_sample_process *processes;
	uint32_t processes_count, processes_room;
	struct ky_u64_map process_of; /* pid */
	struct ky_sample_thread *threads;
	uint32_t threads_count, threads_room;
	struct ky_u64_map thread_of; /* tid */
};

void ky_sample_processes_free(struct ky_sample_processes *known);
/* Take a record of the kernel's or of perf_out.h; others are passed over. */
void ky_sample_processes_take(struct ky_sample_processes *known,
			      const struct perf_event_header *head);
/* Forget what has ended. */
void ky_sample_processes_round(struct ky_sample_processes *known);
/* Report whether that process is known and has not ended. */
bool ky_sample_processes_has(const struct ky_sample_processes *known, uint32_t pid);
bool ky_sample_processes_has_thread(const struct ky_sample_processes *known, uint32_t tid);
/* Return what is mapped at an address; NULL: nothing is known. Valid until the next record. */
const struct ky_address_range *ky_sample_processes_find(const struct ky_sample_processes *known,
							uint32_t pid, uint64_t address);
/* Write records that make all of it. */
void ky_sample_processes_write(const struct ky_sample_processes *known, struct ky_perf_out *out);

/* ---- a flight recorder ---- */

/*
 * The last records, in memory:
 *
 *   base: what was known ──▶│ first ── records that are kept ── used │
 *         before the first   └ those about processes move into base when they are dropped
 *
 * A window writes, the first time, all of base, and each time the records about processes and the samples in it,
 * each once. Records about processes that are dropped later are written too, since later windows need it.
 */

struct ky_sample_flight {
	struct ky_sample_processes base;
	uint8_t *bytes;
	size_t first, used, room;
	bool begun;              /* a window was written */
	struct ky_perf_out late; /* dropped, and to be written: the caller empties it */
	uint64_t dropped; /* samples that were young enough, but for which there was no memory */
};

void ky_sample_flight_free(struct ky_sample_flight *flight);
void ky_sample_flight_keep(struct ky_sample_flight *flight, const struct perf_event_header *record);
/* Drop what is older. */
void ky_sample_flight_drop(struct ky_sample_flight *flight, uint64_t before);
/* Append what belongs into a window; base is the caller's to write when it is the first. */
void ky_sample_flight_window(struct ky_sample_flight *flight, uint64_t from, uint64_t to,
			     struct ky_perf_out *out);
/* A new file was begun with base alone: records about processes must be written again. */
void ky_sample_flight_again(struct ky_sample_flight *flight);

#endif
