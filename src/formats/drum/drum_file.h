/* SPDX-License-Identifier: MIT */
/*
 * drum_file.h: the drum of another process: of a file that KYMO_DRUM_DIR left behind, of a process
 * that runs, or of a descriptor.
 *
 *   file, pipe ── copied, in proportion to its content ──┐
 *                                                                ├─▶ struct ky_stream
 *   sealed memfd ── mapped, follows the process ─────────────────┘
 *
 * Nothing that somebody may cut short is mapped, for reading beyond its end would be fatal: only a
 * memfd that is sealed against shrinking is. A copy does not change: what the process writes later is
 * seen by opening it again. The file may be any bytes, and a mapped drum may change in any way while
 * it is read.
 *
 * Every function that takes a message fills it, when it fails, with one line: the place, what is
 * wrong there, and what to do.
 *
 * Times. A process takes samples of the clocks now and then. What it recorded after its last one has
 * a time that is extrapolated, by the rate of its samples. When they do not tell the rate (it ended
 * within milliseconds, or there is just one), it is, in this order: 1 for CLOCK_MONOTONIC; what the
 * sample and this moment tell, when the drum is of this boot of this machine; what this machine's
 * counter does now; a guess. facts.rate says which.
 */
#ifndef KY_FORMATS_DRUM_DRUM_FILE_H
#define KY_FORMATS_DRUM_DRUM_FILE_H

#include "base/fail.h"
#include "core/stream.h"

#include <sys/types.h>

struct ky_drum_file;

/* path is a drum's file, or "-" for standard input. 0, or a negative error and a message. */
int ky_drum_file_open(struct ky_drum_file **out, const char *path, char message[KY_MESSAGE_BYTES]);
/* Open the drum of a running process. */
int ky_drum_file_open_pid(struct ky_drum_file **out, pid_t pid, char message[KY_MESSAGE_BYTES]);
/* Open a descriptor, which the caller keeps; its offset may move. name is for messages, copied. */
int ky_drum_file_open_fd(struct ky_drum_file **out, int fd, const char *name,
			 char message[KY_MESSAGE_BYTES]);
/* Close it; *file may be NULL. The stream and all that came from it end with it. */
void ky_drum_file_close(struct ky_drum_file **file);

/*
 * Get the stream of its events; set its sink. With newest it begins with what comes now. globs selects
 * categories, NULL is all. There is one: a second call ends the first's. Belongs to the file.
 */
int ky_drum_file_stream(struct ky_drum_file *file, const char *globs, bool newest,
			struct ky_stream **out, char message[KY_MESSAGE_BYTES]);
/*
 * Hand the stream's sink what there is. Of a drum that follows its process, what may still come out
 * of order waits for the next call, unless this is the last. 0, or -ENOMEM.
 */
int ky_drum_file_read(struct ky_drum_file *file, bool last);

enum ky_drum_rate {
	KY_DRUM_RATE_SAMPLES, /* by the process's own readings */
	KY_DRUM_RATE_NOMINAL, /* the counter is CLOCK_MONOTONIC */
	KY_DRUM_RATE_BOOT,    /* a sample and this moment, in the same boot */
	KY_DRUM_RATE_MACHINE, /* this machine's counter, which may be another one */
	KY_DRUM_RATE_GUESSED
};

struct ky_drum_facts {
	uint32_t pid; /* as the process itself sees it */
	uint32_t tick_source;
	struct ky_text process_name; /* not NUL-terminated for sure; until the file is closed */
	uint64_t made_boottime_ns;
	uint64_t drum_bytes;
	uint64_t data_bytes; /* of them, in memory for a copy */
	uint32_t rings;
	uint32_t rate; /* enum ky_drum_rate */
	bool follows;  /* mapped: changes with the process */
	bool exited;   /* the process ended in order */
	uint64_t snapshots;
	/* Read so far, and what did not make it. */
	uint64_t events;
	uint64_t lost_overwritten;
	uint64_t lost_ringless;
	uint64_t lost_nested;
	uint64_t refused_sites;
	uint64_t refused_strings;
	uint64_t refused_categories;
	uint64_t lost_unfinished;
	uint64_t refused_names;
	/* Parts that no recorder writes, and the first byte of them. */
	uint64_t damaged;
	uint64_t damaged_at;
	uint64_t cut_at; /* the file ends here, before the drum does; 0: it does not */
};
/* As of now; what depends on reading, as of what was read. */
void ky_drum_file_facts(const struct ky_drum_file *file, struct ky_drum_facts *facts);

struct ky_drum_category_facts {
	struct ky_text name; /* as process_name */
	bool on;
	uint64_t recorders; /* a bit for each that wants it */
};
/* Category number index; false when there are no more. */
bool ky_drum_file_category(const struct ky_drum_file *file, uint32_t index,
			   struct ky_drum_category_facts *facts);

#endif
