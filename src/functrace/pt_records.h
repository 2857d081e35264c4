/* SPDX-License-Identifier: MIT */
/*
 * pt_records.h: what the kernel puts beside the packets: its records, taken apart; and the packets as one piece.
 *
 *   record:  ┌ type, misc, size ┬ what it says ............ ┬ trailer, by sample_type: pid tid │ time │ id │ stream │ cpu │ id ┐
 *
 *   AUX ring, overwritten:   │ newest, up to head │ oldest, from head on │      ─▶      │ oldest ... newest │
 *   The kernel says where head is in it, not how often it went around: before the first time the bytes from head on are zero.
 */
#ifndef KY_FUNCTRACE_PT_RECORDS_H
#define KY_FUNCTRACE_PT_RECORDS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_pt_record {
	uint32_t type; /* enum perf_event_type */
	uint32_t pid, tid;
	uint64_t time; /* of perf's clock; 0: not said */
	union {
		struct { /* MMAP2, only of code */
			uint64_t address, bytes, offset;
			uint64_t device,
				inode;    /* major << 32 | minor; 0: not said (build id instead) */
			const char *path; /* ends with 0; in the record */
		} map;
		struct {                  /* COMM */
			const char *name; /* ends with 0; in the record */
			bool exec;
		} comm;
		struct { /* FORK, EXIT */
			uint32_t pid, tid;
		} task;
		struct { /* AUX */
			uint64_t flags;
		} aux;
		bool off;      /* SWITCH: it leaves the CPU */
		uint64_t lost; /* LOST: records */
	};
};

/* False: it is not of interest, or not whole. */
bool ky_pt_record_parse(struct ky_pt_record *record, const struct perf_event_header *header,
			uint64_t sample_type);

/* The packets in a ring of a power of two bytes, into as many: the oldest first. How many there are. */
size_t ky_pt_records_aux(uint8_t *out, const uint8_t *ring, size_t bytes, uint64_t head);

#endif
