/* SPDX-License-Identifier: MIT */
/*
 * kymo_export.c: a trace as a .kymo file, through the recorder's own writer. Events are put into the words of rings, a
 * ring for each thread, and given to the writer block by block. docs/formats/kymo.md says what becomes what.
 *
 *   walk ──▶ words of the thread's ring ── full, or enough in all ──▶ ky_format_kymo.block()
 *
 * The writer looks trace points up in a recorder's table, by the number in an event's word. Events that were not
 * recorded by one are given trace points in such a table: one for all events with the same kind, category, name and
 * the keys and types of their arguments.
 *
 * The counter is the nanosecond: two readings tie it to the clocks, one at the beginning and one at the end.
 */
#include "base/array.h"
#include "base/map.h"
#include "base/memory.h"
#include "core/event.h"
#include "core/layout.h"
#include "core/ring_read.h"
#include "core/sites.h"
#include "formats/address.h"
#include "formats/arg_tree.h"
#include "formats/export.h"
#include "formats/flow_marks.h"
#include "formats/format.h"
#include "formats/walk.h"
#include "formats/xxh64.h"
#include "model/trace.h"

#include <errno.h>
#include <stdlib.h>

#define SITES_MAX (1u << 20)
#define RING_WORDS 448u          /* of an event at most 300 */
#define EVENT_WORDS_MAX 400u     /* eight strings, a name, an id */
#define GATHER_WORDS (48u << 10) /* in all rings; then all go out, so that batches overlap little */
#define CLOCKS_WRITTEN 2u
#define STATIC_NAMES_MAX (1u << 16) /* trace points; then names come with their events */
#define NS_PER_S INT64_C(1000000000)

/* ---- trace points ---- */

struct export_sites {
	struct ky_drum_view view; /* an empty drum, so to say */
	struct ky_sites sites;    /* what the writer is given */
	struct ky_pair_map by_content;
	struct ky_pair_map categories;
};

/* The common properties of events. Arguments are rows of the trace's. */
struct site_spec {
	uint8_t kind;  /* enum kymo_kind */
	uint8_t flags; /* KYMO_SITE_ */
	uint32_t category;
	struct ky_text name;
	uint32_t args[KYMO_ARGS_MAX];
	uint32_t args_count;
	struct ky_text key; /* instead of args: one double with that key */
};

static int open_sites(struct export_sites *s)
{
	s->view.header.heap_at = (uint64_t)KY_CONTROL_MAX * KY_HEAP_UNIT;
	s->view.header.heap_bytes = (uint64_t)SITES_MAX * KY_HEAP_UNIT;
	s->sites.view = &s->view;
	s->sites.by_place = calloc(SITES_MAX, sizeof(*s->sites.by_place));
	return s->sites.by_place ? 0 : -ENOMEM;
}

static void close_sites(struct export_sites *s)
{
	for (uint32_t i = 0; i < s->sites.count; i++)
		free(s->sites.by_place[i]);
	free(s->sites.by_place);
	ky_pair_map_free(&s->by_content);
	ky_pair_map_free(&s->categories);
}

static uint32_t type_of(uint8_t type)
{
	static const uint8_t types[] = {
		[KY_ARG_INT] = KYMO_TYPE_INT,         [KY_ARG_UINT] = KYMO_TYPE_UINT,
		[KY_ARG_REAL] = KYMO_TYPE_DOUBLE,     [KY_ARG_BOOL] = KYMO_TYPE_BOOL,
		[KY_ARG_POINTER] = KYMO_TYPE_POINTER, [KY_ARG_STRING] = KYMO_TYPE_STRING,
		[KY_ARG_JSON] = KYMO_TYPE_STRING,
	};
	return types[type];
}

static uint64_t text_hash(struct ky_text text)
{
	return text.bytes ? ky_xxh64(text.data, text.bytes) : 1;
}

/* Two hashes of all of it: the key in the map. */
static void hash_spec(const struct ky_trace *trace, const struct site_spec *spec, uint64_t *a,
		      uint64_t *b)
{
	uint64_t hash = ky_hash_pair((uint64_t)spec->kind << 8 | spec->flags, spec->category);
	hash = ky_hash_pair(hash, text_hash(spec->name));
	hash = ky_hash_pair(hash, text_hash(spec->key));
	*b = ky_hash_pair(hash, 17);
	for (uint32_t i = 0; i < spec->args_count; i++) {
		const uint32_t arg = spec->args[i];
		hash = ky_hash_pair(hash,
				    (uint64_t)trace->args.key[arg] << 8 | trace->args.type[arg]);
		*b = ky_hash_pair(*b, hash);
	}
	*a = hash;
}

static uint32_t number_category(struct export_sites *s, uint32_t category)
{
	bool made;
	const uint64_t next = s->categories.table.count;
	uint64_t *number = ky_pair_map_add(&s->categories, category, 0, &made);
	if (number && made)
		*number = next;
	return number ? (uint32_t)*number : 0;
}

/* Items before the arguments: a name, an id. */
static void add_leading(struct ky_site *site)
{
	if (site->flags & KYMO_SITE_NAME)
		site->types |= (uint64_t)KYMO_TYPE_STRING << 4 * site->items++;
	if (site->flags & KYMO_SITE_ID)
		site->types |= (uint64_t)KYMO_TYPE_UINT << 4 * site->items++;
}

static struct ky_site *make_site(struct export_sites *s, const struct ky_trace *trace,
				 const struct site_spec *spec)
{
	struct ky_site *site = calloc(1, sizeof(*site));
	if (!site) {
		ky_memory_missing();
		return NULL;
	}
	site->index = s->sites.count;
	site->category_index = number_category(s, spec->category);
	site->kind = spec->kind;
	site->flags = spec->flags;
	site->category = ky_walk_text(trace, spec->category);
	site->name = spec->name;
	site->file = site->function = (struct ky_text){"", 0};
	add_leading(site);
	for (uint32_t i = 0; i < KYMO_ARGS_MAX; i++)
		site->keys[i] = (struct ky_text){"", 0};
	for (uint32_t i = 0; i < spec->args_count; i++) {
		site->keys[i] = ky_arg_key(trace, spec->args[i]);
		site->types |= (uint64_t)type_of(trace->args.type[spec->args[i]])
			       << 4 * site->items++;
		site->args++;
	}
	if (spec->key.bytes) {
		site->keys[0] = spec->key;
		site->types |= (uint64_t)KYMO_TYPE_DOUBLE << 4 * site->items++;
		site->args++;
	}
	return site;
}

/* Return the trace point's number as in words; 0 when there are too many, or without memory. */
static uint32_t site_number(struct export_sites *s, const struct ky_trace *trace,
			    const struct site_spec *spec)
{
	uint64_t a, b;
	bool made;
	hash_spec(trace, spec, &a, &b);
	if (s->sites.count == SITES_MAX && !ky_pair_map_find(&s->by_content, a, b))
		return 0;
	uint64_t *number = ky_pair_map_add(&s->by_content, a, b, &made);
	if (!number)
		return 0;
	if (!made)
		return (uint32_t)*number;
	struct ky_site *site = make_site(s, trace, spec);
	if (!site)
		return 0;
	*number = (uint64_t)KY_CONTROL_MAX + s->sites.count;
	s->sites.by_place[s->sites.count++] = site;
	return (uint32_t)*number;
}

/* A thread that has events, or that represents its process. */
struct kymo_carrier {
	struct ky_thread thread;
	uint32_t tid; /* as in the pieces */
	uint32_t count;
	uint32_t first_high, high; /* of the counter: where the piece begins, and now */
	uint64_t lost;
	uint64_t blocks;
	uint64_t *words; /* KY_BLOCK_WORDS, when it has any */
};

struct kymo_export {
	const struct ky_trace *trace;
	const struct ky_export_selection *selection;
	struct ky_export_left *left;
	struct ky_out *out;
	void *file;
	struct export_sites sites;
	struct ky_addresses addresses;
	struct ky_flow_marks flow_marks;
	struct ky_pair_map by_ids; /* carriers, by pid and tid */
	struct ky_pair_map tids;   /* that pieces have */
	struct kymo_carrier **carriers;
	uint32_t carriers_count, carriers_room;
	uint32_t gathered;
	uint32_t made_up_tids;
	uint64_t event[EVENT_WORDS_MAX];
	uint32_t event_words;
};

static void out_of_memory(struct kymo_export *w)
{
	if (!w->out->error)
		w->out->error = -ENOMEM;
}

/* ---- rings ---- */

static void flush_ring(struct kymo_export *w, struct kymo_carrier *c)
{
	struct ky_block block = {.ring = c->thread.index,
				 .tid = c->tid,
				 .number = c->blocks++,
				 .count = c->count,
				 .high = c->first_high,
				 .lost = c->lost,
				 .words = c->words};
	if (!c->count && !c->lost)
		return;
	ky_format_kymo.block(w->file, &block, &c->thread, &w->sites.sites);
	c->count = 0;
	c->lost = 0;
}

static void flush_all(struct kymo_export *w)
{
	for (uint32_t i = 0; i < w->carriers_count; i++)
		flush_ring(w, w->carriers[i]);
	ky_format_kymo.flush(w->file);
	w->gathered = 0;
}

/* Put the event that is in w->event, from its second word on. */
static void put_event(struct kymo_export *w, struct kymo_carrier *c, int64_t ts, uint32_t site)
{
	const uint32_t high = (uint32_t)((uint64_t)ts >> 32);
	if (!c)
		return;
	if (!c->words)
		c->words = malloc(KY_BLOCK_BYTES);
	if (!c->words) {
		out_of_memory(w);
		return;
	}
	if (c->count + w->event_words + 2 > RING_WORDS)
		flush_ring(w, c);
	if (!c->count)
		c->first_high = c->high = high;
	if (c->high != high)
		c->words[c->count++] = (uint64_t)KY_CONTROL_HIGH << KY_WORD_SITE_SHIFT | high;
	c->high = high;
	w->event[0] = (uint64_t)site << KY_WORD_SITE_SHIFT | (uint64_t)(w->event_words - 1) << 33 |
		      (uint32_t)(uint64_t)ts;
	memcpy(c->words + c->count, w->event, w->event_words * sizeof(w->event[0]));
	c->count += w->event_words;
	w->gathered += w->event_words + 1;
	if (w->gathered >= GATHER_WORDS)
		flush_all(w);
}

/* ---- threads ---- */

/* Pieces name threads by tid alone: the second one with a tid gets another there. */
static uint32_t unique_tid(struct kymo_export *w, uint32_t tid)
{
	bool made = false;
	uint32_t unique = tid;
	while (ky_pair_map_add(&w->tids, unique, 0, &made) && !made)
		unique = 0x40000000u + w->made_up_tids++;
	return unique;
}

static struct kymo_carrier *add_carrier(struct kymo_export *w, uint32_t pid, uint32_t tid,
					uint32_t thread)
{
	if (!KY_ARRAY_GROW(w->carriers, w->carriers_room, (uint64_t)w->carriers_count + 1))
		return NULL;
	struct kymo_carrier *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->thread.index = w->carriers_count;
	c->thread.pid = (int32_t)pid;
	c->thread.tid = (int32_t)tid;
	c->thread.name = thread == KY_NONE ? (struct ky_text){"", 0}
					   : ky_walk_text(w->trace, w->trace->threads.name[thread]);
	c->tid = unique_tid(w, tid);
	c->thread.alias = c->tid == tid ? 0 : (int32_t)c->tid;
	w->carriers[w->carriers_count++] = c;
	ky_format_kymo.thread(w->file, &c->thread);
	return c;
}

static struct kymo_carrier *carrier_of(struct kymo_export *w, uint32_t pid, uint32_t tid,
				       uint32_t thread)
{
	bool made;
	uint64_t *index = ky_pair_map_add(&w->by_ids, pid, tid, &made);
	if (index && !made)
		return w->carriers[*index];
	const uint32_t next = w->carriers_count;
	struct kymo_carrier *c = index ? add_carrier(w, pid, tid, thread) : NULL;
	if (!c) {
		out_of_memory(w);
		return NULL;
	}
	*index = next;
	return c;
}

static struct kymo_carrier *carrier_at(struct kymo_export *w, const struct ky_address *a)
{
	return carrier_of(w, a->pid, a->tid, a->form == KY_AT_THREAD ? a->thread : KY_NONE);
}

/* ---- items ---- */

static void put_word(struct kymo_export *w, uint64_t word)
{
	w->event[w->event_words++] = word;
}

static void put_string(struct kymo_export *w, struct ky_text text)
{
	uint64_t head = text.bytes;
	if (text.bytes > KYMO_STRING_MAX) {
		text.bytes = KYMO_STRING_MAX;
		head = KYMO_STRING_MAX | KYMO_I_STRING_CUT;
		w->left->cut++;
	}
	const uint32_t words = (text.bytes + 7) / 8;
	put_word(w, head);
	if (!words)
		return;
	w->event[w->event_words + words - 1] = 0;
	memcpy(&w->event[w->event_words], text.data, text.bytes);
	w->event_words += words;
}

static void put_value(struct kymo_export *w, uint32_t arg)
{
	const uint8_t type = w->trace->args.type[arg];
	const uint64_t value = w->trace->args.value[arg];
	if (type == KY_ARG_STRING || type == KY_ARG_JSON)
		put_string(w, ky_walk_text(w->trace, (uint32_t)value));
	else
		put_word(w, value);
}

static void take_args(struct kymo_export *w, uint32_t set, struct site_spec *spec)
{
	const uint32_t end = ky_arg_set_end(w->trace, set);
	for (uint32_t arg = ky_arg_set_first(w->trace, set); arg < end; arg++) {
		if (spec->args_count == KYMO_ARGS_MAX || w->trace->args.type[arg] == KY_ARG_NULL)
			w->left->args++;
		else
			spec->args[spec->args_count++] = arg;
	}
}

/* ---- events ---- */

/* Make the site and the event's items; return 0 when there are too many sites. */
static uint32_t make_event(struct kymo_export *w, struct site_spec *spec, uint64_t id)
{
	const struct ky_text name = spec->name;
	if (w->sites.sites.count >= STATIC_NAMES_MAX && spec->name.bytes) {
		spec->flags |= KYMO_SITE_NAME;
		spec->name = (struct ky_text){"", 0};
	}
	const uint32_t site = site_number(&w->sites, w->trace, spec);
	w->event_words = 1;
	if (spec->flags & KYMO_SITE_NAME)
		put_string(w, name);
	if (spec->flags & KYMO_SITE_ID)
		put_word(w, id);
	for (uint32_t i = 0; i < spec->args_count; i++)
		put_value(w, spec->args[i]);
	return site;
}

static void put_flow(void *self, const struct ky_flow_mark *mark, int64_t ts)
{
	struct kymo_export *w = self;
	struct site_spec spec = {.kind = (uint8_t)(KYMO_KIND_FLOW_BEGIN + mark->phase),
				 .flags = KYMO_SITE_ID,
				 .category = mark->category,
				 .name = ky_walk_text(w->trace, mark->name)};
	const uint32_t site = make_event(w, &spec, mark->id);
	if (site)
		put_event(w,
			  carrier_at(w, &w->addresses.tracks[w->trace->slices.track[mark->slice]]),
			  ts, site);
}

static struct site_spec slice_spec(struct kymo_export *w, const struct ky_walk_item *item,
				   const struct ky_address *a)
{
	const struct ky_slices *s = &w->trace->slices;
	struct site_spec spec = {.kind = ky_address_kind(a, item->what),
				 .category = s->category[item->row],
				 .name = ky_walk_text(w->trace, s->name[item->row])};
	if (spec.kind == KYMO_KIND_END) /* it closes the innermost, whatever its name */
		return (struct site_spec){.kind = KYMO_KIND_END, .name = {"", 0}};
	if (spec.kind >= KYMO_KIND_ASYNC_BEGIN && spec.kind <= KYMO_KIND_ASYNC_END)
		spec.flags = KYMO_SITE_ID;
	if (spec.kind == KYMO_KIND_INSTANT && a->form == KY_AT_PROCESS)
		spec.flags = KYMO_SITE_PROCESS;
	if (spec.kind == KYMO_KIND_INSTANT && a->form == KY_AT_GLOBAL)
		spec.flags = KYMO_SITE_GLOBAL;
	if (item->what != KY_WALK_END)
		take_args(w, s->args[item->row], &spec);
	return spec;
}

static void put_slice(void *self, const struct ky_walk_item *item)
{
	struct kymo_export *w = self;
	const struct ky_address *a = &w->addresses.tracks[w->trace->slices.track[item->row]];
	const bool end = item->what == KY_WALK_END;
	if (end)
		ky_flow_marks_put(&w->flow_marks, item, w->left, put_flow, w);
	struct site_spec spec = slice_spec(w, item, a);
	const uint32_t site = make_event(w, &spec, a->id);
	if (!site) {
		w->left->slices += !end;
		return;
	}
	put_event(w, carrier_at(w, a), item->ts, site);
	if (!end)
		ky_flow_marks_put(&w->flow_marks, item, w->left, put_flow, w);
}

static void put_counter(void *self, const struct ky_walk_item *item)
{
	struct kymo_export *w = self;
	const struct ky_trace *trace = w->trace;
	const uint32_t track = trace->counters.track[item->row];
	const uint32_t pid = ky_address_pid(trace, ky_track_process(trace, track));
	const struct site_spec spec = {.kind = KYMO_KIND_COUNTER,
				       .name = ky_walk_text(trace, trace->tracks.name[track]),
				       .key = {"value", 5}};
	const uint32_t site = site_number(&w->sites, trace, &spec);
	w->event_words = 1;
	uint64_t bits;
	memcpy(&bits, &trace->counters.value[item->row], sizeof(bits));
	put_word(w, bits);
	if (site)
		put_event(w, carrier_of(w, pid, pid, KY_NONE), item->ts, site);
	else
		w->left->counters++;
}

/* ---- the file ---- */

static uint64_t in_clock(const struct ky_trace *trace, enum ky_clock clock, int64_t ts)
{
	int64_t ns;
	if (!ky_clocks_convert(trace->clocks, trace->clock, clock, ts, &ns) || ns < 0)
		return 0;
	return (uint64_t)ns;
}

static struct ky_tick_reading sample_at(const struct ky_trace *trace, int64_t ts)
{
	const int64_t at = ts < 1 ? 1 : ts;
	return (struct ky_tick_reading){(uint64_t)at, (uint64_t)at,
					in_clock(trace, KY_CLOCK_MONOTONIC, at),
					in_clock(trace, KY_CLOCK_REALTIME, at)};
}

/* For readers that know of one only. */
static uint32_t main_process(const struct ky_trace *trace)
{
	for (uint32_t i = 0; i < trace->processes.rows.count; i++)
		if (trace->processes.pid[i] && trace->processes.name[i])
			return i;
	return trace->processes.rows.count ? 0 : KY_NONE;
}

static void put_tasks(struct kymo_export *w, uint32_t first)
{
	const struct ky_trace *trace = w->trace;
	for (uint32_t i = 0; i < trace->processes.rows.count; i++)
		if (i != first && trace->processes.name[i])
			ky_format_kymo.process(w->file, (int32_t)ky_address_pid(trace, i),
					       ky_walk_text(trace, trace->processes.name[i]));
	if (first != KY_NONE)
		ky_format_kymo.process(w->file, (int32_t)ky_address_pid(trace, first),
				       ky_walk_text(trace, trace->processes.name[first]));
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		if (ky_selected_thread(w->selection, i) && !trace->threads.is_idle[i])
			carrier_of(w, ky_address_pid_of_thread(trace, i), ky_address_tid(trace, i),
				   i);
}

static void put_losses(struct kymo_export *w)
{
	const struct ky_losses *l = &w->trace->losses;
	for (uint32_t i = 0; i < l->rows.count; i++) {
		if (!ky_selected_thread(w->selection, l->thread[i]))
			continue;
		if (l->thread[i] == KY_NONE) {
			ky_format_kymo.loss(w->file, ky_text_of(w->trace, l->what[i]),
					    l->events[i]);
			continue;
		}
		struct kymo_carrier *c =
			carrier_of(w, ky_address_pid_of_thread(w->trace, l->thread[i]),
				   ky_address_tid(w->trace, l->thread[i]), l->thread[i]);
		if (c)
			c->lost += l->events[i];
	}
}

static int open_file(struct kymo_export *w)
{
	const struct ky_trace *trace = w->trace;
	const uint32_t first = main_process(trace);
	struct ky_trace_info info = {.ticks_per_s = (uint64_t)NS_PER_S,
				     .process = {"", 0},
				     .command = {"", 0},
				     .clock = sample_at(trace, trace->begin_ns)};
	if (first != KY_NONE) {
		info.pid = (int32_t)ky_address_pid(trace, first);
		info.process = ky_walk_text(trace, trace->processes.name[first]);
		info.command = ky_walk_text(trace, trace->processes.cmdline[first]);
	}
	const int error = ky_format_kymo.open(&w->file, w->out, &info);
	if (error)
		return error;
	const int64_t last = trace->end_ns > trace->begin_ns ? trace->end_ns : trace->begin_ns;
	const struct ky_tick_reading sample =
		sample_at(trace, last < INT64_MAX - NS_PER_S ? last + NS_PER_S : INT64_MAX);
	ky_format_kymo.clock(w->file, &sample);
	put_tasks(w, first);
	put_losses(w);
	return 0;
}

static int write_file(struct kymo_export *w, const struct ky_export_job *job)
{
	static const struct ky_walk_rows rows = {.slice = put_slice, .counter = put_counter};
	int error = open_file(w);
	if (!error)
		error = ky_walk_each(job, &rows, w);
	if (error)
		return error;
	flush_all(w);
	const uint64_t snapshots = ky_walk_snapshots(w->trace);
	w->left->snapshots += snapshots > CLOCKS_WRITTEN ? snapshots - CLOCKS_WRITTEN : 0;
	w->left->metadata += w->trace->metadata.rows.count;
	ky_format_kymo.finish(w->file, w->trace->lost);
	return w->out->error;
}

static void close_writer(struct kymo_export *w)
{
	ky_format_kymo.close(w->file);
	for (uint32_t i = 0; i < w->carriers_count; i++) {
		free(w->carriers[i]->words);
		free(w->carriers[i]);
	}
	KY_ARRAY_FREE(w->carriers, w->carriers_room);
	ky_pair_map_free(&w->by_ids);
	ky_pair_map_free(&w->tids);
	close_sites(&w->sites);
	ky_flow_marks_close(&w->flow_marks);
	ky_addresses_close(&w->addresses);
}

static int write_trace(const struct ky_export_job *job)
{
	struct kymo_export w = {.trace = job->trace,
				.selection = job->selection,
				.out = job->out,
				.left = job->left};
	int error = open_sites(&w.sites);
	if (!error)
		error = ky_addresses_open(&w.addresses, job->trace, false);
	if (!error)
		error = ky_flow_marks_open(&w.flow_marks, job->trace, job->selection, &w.addresses,
					   job->left);
	if (!error)
		error = write_file(&w, job);
	close_writer(&w);
	return error;
}

const struct ky_exporter ky_exporter_kymo = {&ky_format_kymo, write_trace};
