/* SPDX-License-Identifier: MIT */
/*
 * event_parts.h: an intake of events from inside, for the files that it is made of: event_intake.c takes every event,
 * event_words.c the most frequent ones by a shorter way.
 */
#ifndef KY_READER_EVENT_PARTS_H
#define KY_READER_EVENT_PARTS_H

#include "event_intake.h"
#include "table.h"

/* File, function and line. */
#define KY_LOCATION_ARGS 3

struct ky_known_site {
	bool known;
	bool plain; /* of a span or instant: nothing but the name, on the thread's track */
	bool quick; /* a plain begin */
	uint8_t args;
	uint8_t set_args; /* with those of the location */
	uint32_t category;
	uint32_t name;
	uint32_t location; /* set of arguments, 0: not known where it is */
	uint32_t file, function;
	uint32_t counters_of;             /* process + 1 of the tracks below */
	uint32_t counters[KYMO_ARGS_MAX]; /* track + 1 */
	uint32_t keys[KYMO_ARGS_MAX + KY_LOCATION_ARGS];
	uint8_t types[KYMO_ARGS_MAX + KY_LOCATION_ARGS]; /* enum ky_arg_type */
	uint64_t location_values[KY_LOCATION_ARGS];
};

struct ky_known_thread {
	bool known;
	bool begun; /* an event came since the begin or the last gap */
	uint32_t thread;
	uint32_t process;
	uint32_t track;
	uint32_t depth, room;
	uint32_t made_up; /* begins, since then */
	int64_t first_ns;
	int64_t last_ns;
	const struct ky_site **open; /* spans */
};

struct ky_event_intake {
	struct ky_trace *trace;
	bool ordered;
	bool done;
	int64_t last_ns;
	struct ky_table sites;
	struct ky_table threads;
	struct ky_out clean; /* scratch; its error is that of the tables as well */
	uint32_t source_file, source_function, source_line;
	uint32_t begin_lost, begin_lost_name;
	uint32_t process_track_type, counter_track_type;
};

#endif
