/* SPDX-License-Identifier: MIT */
/*
 * fxt_writer.h: records of Fuchsia's trace format, from a trace's strings.
 *
 *   ky_fxt_begin() ── ky_fxt_label() ── ky_fxt_arg() ... ── ky_fxt_end()      one event
 *
 * All texts are in the file's string table, which holds 32767. When it is full it begins a new generation from
 * index 1, as the format provides for, and what is used from there on is defined anew. A thread's
 * number, of 255, is by its ids; one that another thread has is bound anew.
 */
#ifndef KY_FORMATS_FXT_FXT_WRITER_H
#define KY_FORMATS_FXT_FXT_WRITER_H

#include "formats/export_loop.h"

#define KY_FXT_THREADS 255u
#define KY_FXT_ARGS 15u

struct ky_fxt_slot {
	uint32_t generation;
	uint16_t index;
};

struct ky_fxt_thread_slot {
	uint32_t pid, tid;
};

struct ky_fxt {
	const struct ky_trace *trace;
	struct ky_out *out;
	struct ky_out record; /* the event being put together */
	struct ky_out clean;
	struct ky_fxt_slot *slots; /* by string */
	struct ky_fxt_thread_slot threads[KY_FXT_THREADS + 1];
	uint32_t generation;
	uint32_t next_string;
	uint64_t header;
	uint32_t args;
	uint64_t cut; /* texts that were too long */
};

/* 0 or -ENOMEM. */
int ky_fxt_open(struct ky_fxt *w, const struct ky_trace *trace, struct ky_out *out);
void ky_fxt_close(struct ky_fxt *w);

void ky_fxt_head(struct ky_fxt *w);
void ky_fxt_tail(struct ky_fxt *w, uint64_t lost);
void ky_fxt_process(struct ky_fxt *w, uint32_t pid, uint32_t name);
void ky_fxt_put_thread(struct ky_fxt *w, uint32_t pid, uint32_t tid, uint32_t name);

void ky_fxt_begin(struct ky_fxt *w, uint32_t type, int64_t ts, uint32_t pid, uint32_t tid);
void ky_fxt_label(struct ky_fxt *w, uint32_t category, uint32_t name);
void ky_fxt_label_text(struct ky_fxt *w, struct ky_text name);
/* False when the record has as many as it can hold. */
bool ky_fxt_arg(struct ky_fxt *w, uint32_t arg);
void ky_fxt_arg_double(struct ky_fxt *w, struct ky_text key, double value);
void ky_fxt_arg_uint(struct ky_fxt *w, struct ky_text key, uint64_t value);
void ky_fxt_end(struct ky_fxt *w, bool has_id, uint64_t id);

void ky_fxt_switch(struct ky_fxt *w, int64_t ts, uint32_t cpu, uint32_t out_state, uint32_t out_tid,
		   uint32_t in_tid);
void ky_fxt_put_log(struct ky_fxt *w, int64_t ts, uint32_t pid, uint32_t tid, uint32_t message);
/* Readers tell flows apart by their id alone: category and name go into the bits that ids leave free. */
uint64_t ky_fxt_flow_id(const struct ky_fxt *w, uint64_t id, uint32_t category, uint32_t name);

#endif
