/* SPDX-License-Identifier: MIT */
/*
 * kymo_defs.h: the definitions of a .kymo file: the process, threads, trace points, clock readings. All are
 * read when the file is opened, and live as long as the file is open.
 */
#ifndef KY_FORMATS_KYMO_KYMO_DEFS_H
#define KY_FORMATS_KYMO_KYMO_DEFS_H

#include "base/map.h"
#include "core/clock.h"
#include "core/event.h"
#include "formats/kymo/kymo_layout.h"

/* A process that the file names; most have one. */
struct ky_kymo_process_name {
	int32_t pid;
	struct ky_text name;
	struct ky_text command;
};

/* A snapshot that a flight recorder took. */
struct ky_kymo_snapshot_record {
	struct ky_kymo_snapshot at; /* its text sizes are of no use here */
	struct ky_text trigger;
	struct ky_text reason;
	struct ky_text stack;
};

/* What is missing for a cause, beside the losses of pieces. */
struct ky_kymo_loss_record {
	uint64_t count;
	struct ky_text what;
};

struct ky_kymo_defs {
	struct ky_kymo_process_name *processes;
	uint32_t processes_count, processes_room;
	struct ky_u64_map by_pid;
	int32_t pid;
	uint32_t layer; /* enum ky_drum_layer */
	struct ky_text process;
	struct ky_text command;
	struct ky_tick_reading *samples; /* ordered after ky_kymo_defs_done() */
	uint32_t samples_count, samples_room;
	struct ky_site **sites;
	uint32_t sites_count, sites_room;
	struct ky_thread **threads;
	uint32_t threads_count, threads_room;
	struct ky_u64_map by_number; /* sites */
	struct ky_u64_map by_tid;
	struct ky_u64_map by_category; /* by the hash of its name */
	struct ky_kymo_snapshot_record *snapshots;
	uint32_t snapshots_count, snapshots_room;
	struct ky_kymo_program_end *ends;
	uint32_t ends_count, ends_room;
	struct ky_kymo_loss_record *losses;
	uint32_t losses_count, losses_room;
	struct ky_text *remarks; /* NOTE records */
	uint32_t remarks_count, remarks_room;
	/* Of these, by the hash of the record: they come once more at the end. */
	struct ky_u64_map by_record;
	struct ky_clock_map clock;
};

/*
 * Add the records, except unknown kinds. Return 0, -ENOMEM, or -EBADMSG with the place in *at and the cause in
 * *what; records before that are kept.
 */
int ky_kymo_defs_add(struct ky_kymo_defs *defs, const uint8_t *records, size_t bytes, size_t *at,
		     const char **what);
/* Finish after the last record; ticks_per_s is used when the clock readings give no rate. Return 0 or -ENOMEM. */
int ky_kymo_defs_done(struct ky_kymo_defs *defs, uint64_t ticks_per_s);
void ky_kymo_defs_free(struct ky_kymo_defs *defs);

/* Return the trace point of an event's header word, or NULL. */
const struct ky_site *ky_kymo_defs_site(const struct ky_kymo_defs *defs, uint64_t word);
/* Return the thread, made without a name if it is not defined (*made); NULL without memory. */
struct ky_thread *ky_kymo_defs_thread(struct ky_kymo_defs *defs, int32_t tid, bool *made);

#endif
