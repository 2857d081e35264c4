/* SPDX-License-Identifier: MIT */
/*
 * drum_import.c: see drum_import.h. A trace point's strings are looked up once and its numbers kept by its index, a
 * thread's track by the thread's: a plain span costs no look-up at all.
 *
 * Spans are balanced by the rules of core/span_stack.h. A beginning that is made up comes a nanosecond per level before
 * the thread's first event. It goes back in time, as do ends where a gap begins, which an ordered intake cannot do. The windows of a flight recorder are in drum_import_window.c.
 */
#include "formats/drum/drum_import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/utf8.h"

/* Perfetto's info: neither a warning nor an error. */
#define LOG_PRIORITY 4

int ky_event_intake_open(struct ky_event_intake **out, struct ky_trace *trace, bool ordered)
{
	struct ky_event_intake *intake = calloc(1, sizeof(*intake));
	*out = NULL;
	if (!intake || ky_out_init(&intake->clean, 0) != 0) {
		free(intake);
		return -ENOMEM;
	}
	intake->trace = trace;
	intake->ordered = ordered;
	intake->last_ns = INT64_MIN;
	intake->names = KY_NAME_TRACE;
	intake->sites.item_bytes = sizeof(struct ky_known_site);
	intake->threads.item_bytes = sizeof(struct ky_known_thread);
	intake->asyncs.item_bytes = sizeof(struct ky_open_async);
	intake->source_file = ky_string_z(trace, "source.file_name");
	intake->source_function = ky_string_z(trace, "source.function_name");
	intake->source_line = ky_string_z(trace, "source.line_number");
	intake->begin_lost = ky_string_z(trace, "debug.begin_lost");
	intake->begin_lost_name = ky_string_z(trace, "(begin lost)");
	intake->process_track_type = ky_string_z(trace, "process_track_event");
	intake->counter_track_type = ky_string_z(trace, "process_counter_track_event");
	if (ordered)
		ky_trace_in_order(trace);
	*out = intake;
	return 0;
}

void ky_event_intake_close(struct ky_event_intake **out)
{
	struct ky_event_intake *intake = *out;
	*out = NULL;
	if (!intake)
		return;
	for (uint32_t i = 0; i < intake->threads.count; i++)
		ky_span_stack_free(
			&((struct ky_known_thread *)ky_table_at(&intake->threads, i))->stack);
	ky_table_free(&intake->threads);
	ky_table_free(&intake->asyncs);
	ky_u64_map_free(&intake->async_of);
	ky_table_free(&intake->sites);
	ky_out_free(&intake->clean);
	free(intake);
}

bool ky_event_intake_is_done(const struct ky_event_intake *intake)
{
	return intake->done;
}

static void no_memory(struct ky_event_intake *intake)
{
	intake->trace->error = -ENOMEM;
	intake->done = true;
}

static uint32_t string_of(struct ky_event_intake *intake, struct ky_text text)
{
	return ky_string(intake->trace, text.data, text.bytes);
}

/* ---- known threads and sites ---- */

static uint32_t key_of(struct ky_event_intake *intake, const char *key, size_t bytes)
{
	char text[512];
	const int length = snprintf(text, sizeof(text), "debug.%.*s", (int)bytes, key);
	const size_t used = (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1;
	return ky_string(intake->trace, text, used);
}

/* An end has no name or category of its own: it is the innermost span's. */
static bool has_identity(uint8_t kind)
{
	return kind != KYMO_KIND_END && kind != KYMO_KIND_ASYNC_END && kind != KYMO_KIND_COUNTER;
}

static bool is_flow(uint8_t kind)
{
	return kind >= KYMO_KIND_FLOW_BEGIN && kind <= KYMO_KIND_FLOW_END;
}

static void put_location(struct ky_event_intake *intake, const struct ky_known_site *known,
			 const struct ky_site *site)
{
	ky_arg_string(intake->trace, intake->source_file, known->file);
	if (known->function)
		ky_arg_string(intake->trace, intake->source_function, known->function);
	ky_arg_int(intake->trace, intake->source_line, site->line);
}

static void learn_location(struct ky_event_intake *intake, struct ky_known_site *known,
			   const struct ky_site *site)
{
	if (!site->file.bytes || !has_identity(site->kind) || is_flow(site->kind))
		return;
	known->file = string_of(intake, site->file);
	known->function = site->function.bytes ? string_of(intake, site->function) : 0;
	ky_args_begin(intake->trace);
	put_location(intake, known, site);
	known->location = ky_args_end(intake->trace);
}

static uint8_t arg_type(uint64_t type)
{
	static const uint8_t types[] = {
		[KYMO_TYPE_NONE] = KY_ARG_UINT,     [KYMO_TYPE_INT] = KY_ARG_INT,
		[KYMO_TYPE_UINT] = KY_ARG_UINT,     [KYMO_TYPE_DOUBLE] = KY_ARG_REAL,
		[KYMO_TYPE_BOOL] = KY_ARG_BOOL,     [KYMO_TYPE_POINTER] = KY_ARG_POINTER,
		[KYMO_TYPE_STRING] = KY_ARG_STRING,
	};
	return type < sizeof(types) ? types[type] : KY_ARG_UINT;
}

/* The set of a plain begin as drum_import_fast.c makes it: the arguments' keys and types, then the location. */
static void learn_set(struct ky_event_intake *intake, struct ky_known_site *known,
		      const struct ky_site *site)
{
	const struct ky_args *args = &intake->trace->args;
	const uint32_t first = ky_arg_set_first(intake->trace, known->location);
	const uint32_t end = ky_arg_set_end(intake->trace, known->location);
	uint32_t count = site->args < KYMO_ARGS_MAX ? site->args : KYMO_ARGS_MAX;
	known->args = (uint8_t)count;
	for (uint32_t i = 0; i < count; i++)
		known->types[i] = arg_type(site->types >> 4 * i & 15);
	for (uint32_t row = first; row < end; row++, count++) {
		known->keys[count] = args->key[row];
		known->types[count] = args->type[row];
		known->location_values[row - first] = args->value[row];
	}
	known->set_args = (uint8_t)count;
	known->quick = known->plain && site->kind == KYMO_KIND_BEGIN;
	known->ends = known->plain && site->kind == KYMO_KIND_END && !site->args &&
		      !(site->flags & KYMO_SITE_SCOPE);
}

static void learn_site(struct ky_event_intake *intake, struct ky_known_site *known,
		       const struct ky_site *site)
{
	known->known = true;
	known->category = site->category.bytes ? string_of(intake, site->category) : 0;
	known->name = string_of(intake, site->name);
	for (uint32_t i = 0; i < site->args && i < KYMO_ARGS_MAX; i++)
		known->keys[i] = key_of(intake, site->keys[i].data, site->keys[i].bytes);
	known->plain = !(site->flags & (KYMO_SITE_NAME | KYMO_SITE_PROCESS | KYMO_SITE_GLOBAL |
					KYMO_SITE_ID | KYMO_SITE_TIME | KYMO_SITE_TID));
	learn_location(intake, known, site);
	learn_set(intake, known, site);
}

static inline struct ky_known_site *site_of(struct ky_event_intake *intake,
					    const struct ky_site *site)
{
	struct ky_known_site *known = ky_table_make(&intake->sites, site->index, &intake->clean);
	if (!known)
		no_memory(intake);
	else if (__builtin_expect(!known->known, 0))
		learn_site(intake, known, site);
	return known;
}

static void learn_thread(struct ky_event_intake *intake, struct ky_known_thread *known,
			 const struct ky_thread *thread)
{
	const int64_t pid = intake->owned ? intake->owner_pid : thread->pid;
	known->known = true;
	known->pid = pid;
	known->tid = thread->tid;
	known->end_ns = INT64_MAX;
	known->process = intake->owned ? intake->owner : ky_process(intake->trace, pid);
	known->thread = ky_thread(intake->trace, pid, thread->tid);
	known->track = ky_track_of_thread(intake->trace, known->thread);
	if (intake->apart && ky_u64_map_find(intake->apart, (uint32_t)pid))
		known->track = ky_track(
			intake->trace,
			&(struct ky_track_spec){.kind = KY_TRACK_THREAD,
						.owner = known->thread,
						.name = ky_string_z(intake->trace, "calls")});
	known->until_ns = KY_EVENT_ANEW;
	known->window_ns = KY_EVENT_ANEW;
}

static inline struct ky_known_thread *thread_of(struct ky_event_intake *intake,
						const struct ky_thread *thread)
{
	struct ky_known_thread *known =
		ky_table_make(&intake->threads, thread->index, &intake->clean);
	if (!known)
		no_memory(intake);
	else if (__builtin_expect(!known->known, 0))
		learn_thread(intake, known, thread);
	return known;
}

void ky_event_intake_thread(void *context, const struct ky_thread *thread)
{
	struct ky_event_intake *intake = context;
	const struct ky_known_thread *known = thread_of(intake, thread);
	if (known && thread->name.bytes)
		ky_thread_name(intake->trace, known->thread, string_of(intake, thread->name),
			       intake->names);
}

void ky_event_intake_process(struct ky_event_intake *intake, int32_t pid, struct ky_text name,
			     struct ky_text command)
{
	struct ky_trace *trace = intake->trace;
	const uint32_t process = ky_process(trace, pid);
	if (name.bytes)
		ky_process_name(trace, process, string_of(intake, name), intake->names);
	if (command.bytes && process < trace->processes.rows.count)
		trace->processes.cmdline[process] = string_of(intake, command);
}

void ky_event_intake_owner(struct ky_event_intake *intake, int64_t pid, uint32_t process)
{
	intake->owned = true;
	intake->owner = process;
	intake->owner_pid = pid;
}

void ky_event_intake_beside(struct ky_event_intake *intake, bool own)
{
	intake->beside = true;
	intake->names = own ? KY_NAME_TRACE : KY_NAME_SYSTEM;
}

void ky_event_intake_cut(struct ky_event_intake *intake, int64_t pid)
{
	int64_t last_ns = INT64_MIN;
	for (uint32_t i = 0; i < intake->threads.count; i++) {
		const struct ky_known_thread *const t = ky_table_at(&intake->threads, i);
		if (t->known && t->pid == pid && t->last_ns > last_ns)
			last_ns = t->last_ns;
	}
	for (uint32_t i = 0; i < intake->threads.count; i++) {
		struct ky_known_thread *const t = ky_table_at(&intake->threads, i);
		if (t->known && t->pid == pid)
			ky_event_end_open(intake, t, last_ns);
	}
}

void ky_event_intake_ends(struct ky_event_intake *intake, const struct ky_thread_ends *ends,
			  bool has_ends)
{
	intake->ends = ends;
	intake->has_ends = has_ends;
}

void ky_event_intake_apart(struct ky_event_intake *intake, const struct ky_u64_map *processes)
{
	intake->apart = processes;
}

void ky_event_intake_clocks(struct ky_event_intake *intake, const struct ky_tick_reading *samples,
			    uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct ky_tick_reading *s = &samples[i];
		/* A file without its index may define all of them twice. */
		if (i && memcmp(s, s - 1, sizeof(*s)) == 0)
			continue;
		struct ky_clock_reading readings[3] = {
			{KY_CLOCK_BOOTTIME, (int64_t)s->boottime_ns}};
		uint32_t known = 1;
		/* 0: a file that was made of another trace, which does not say. */
		if (s->monotonic_ns)
			readings[known++] = (struct ky_clock_reading){KY_CLOCK_MONOTONIC,
								      (int64_t)s->monotonic_ns};
		if (s->realtime_ns)
			readings[known++] = (struct ky_clock_reading){KY_CLOCK_REALTIME,
								      (int64_t)s->realtime_ns};
		ky_put_clocks(intake->trace, (int64_t)s->boottime_ns, readings, known);
	}
}

/* ---- arguments ---- */

static void put_arg(struct ky_event_intake *intake, uint32_t key, const struct kymo_arg *arg)
{
	uint64_t value = arg->value.u;
	if (arg->type == KYMO_TYPE_STRING)
		value = arg->cut ? string_of(intake, ky_utf8_arg(&intake->clean, arg))
				 : ky_string(intake->trace, arg->string, arg->string_bytes);
	else if (arg->type == KYMO_TYPE_BOOL)
		value = value != 0;
	ky_args_add(intake->trace, key, arg_type(arg->type), value);
}

static void put_args(struct ky_event_intake *intake, const struct ky_known_site *known,
		     const struct ky_event *e)
{
	for (uint32_t i = 0; i < e->args_count && i < KYMO_ARGS_MAX; i++)
		put_arg(intake, known->keys[i], &e->args[i]);
}

static void put_named_text(struct ky_event_intake *intake, const char *key, const char *text)
{
	ky_arg_string(intake->trace, ky_string_z(intake->trace, key),
		      ky_string_z(intake->trace, text));
}

/* The arguments of an event that are its own and its trace point's. */
static uint32_t args_of(struct ky_event_intake *intake, const struct ky_known_site *known,
			const struct ky_event *e)
{
	if (__builtin_expect(!e->args_count, 1))
		return known->location;
	ky_args_begin(intake->trace);
	put_args(intake, known, e);
	if (known->location)
		put_location(intake, known, e->site);
	return ky_args_end(intake->trace);
}

static uint32_t name_of(struct ky_event_intake *intake, const struct ky_known_site *known,
			const struct ky_event *e)
{
	const bool own = (e->site->flags & KYMO_SITE_NAME) || e->kind == KYMO_KIND_PRINT;
	return own ? string_of(intake, e->name) : known->name;
}

/* ---- spans ---- */

static void begin_span(struct ky_event_intake *intake, struct ky_known_thread *t,
		       const struct ky_known_site *known, const struct ky_event *e, int64_t ns)
{
	if (!ky_span_stack_push(&t->stack, KY_EVENT_ITEM_BYTES, UINT32_MAX, e->site))
		no_memory(intake);
	if (__builtin_expect(t->stack.depth > KY_EVENT_DEPTH_MAX, 0))
		ky_problem(intake->trace, "slice_too_deep", KY_DATA_LOSS, KY_NO_PLACE,
			   "more than %u slices in each other", KY_EVENT_DEPTH_MAX);
	else
		ky_put_begin(intake->trace, ns, t->track, known->category,
			     name_of(intake, known, e), args_of(intake, known, e));
}

static void make_up_begin(struct ky_event_intake *intake, struct ky_known_thread *t,
			  const struct ky_known_site *known)
{
	struct ky_trace *trace = intake->trace;
	const uint32_t name = ky_strings_bytes(&trace->strings, known->name)
				      ? known->name
				      : intake->begin_lost_name;
	const uint32_t args = ky_args_one(trace, intake->begin_lost, KY_ARG_BOOL, true);
	t->made_up++;
	ky_put_begin(trace, t->first_ns - t->made_up, t->track, known->category, name, args);
}

static void end_span(struct ky_event_intake *intake, struct ky_known_thread *t,
		     const struct ky_known_site *known, const struct ky_event *e, int64_t ns)
{
	struct ky_trace *trace = intake->trace;
	uint32_t args = 0;
	const struct ky_span_end ends = ky_span_stack_end(&t->stack, KY_EVENT_ITEM_BYTES, e->site);
	for (uint32_t i = 0; i < ends.inner; i++)
		ky_event_end(intake, t, ns, 0);
	if (__builtin_expect(!ends.found, 0)) {
		if (intake->ordered)
			intake->done = true;
		else
			make_up_begin(intake, t, known);
	}
	if (e->args_count) {
		ky_args_begin(trace);
		put_args(intake, known, e);
		args = ky_args_end(trace);
	}
	if (ends.found)
		ky_event_end(intake, t, ns, args);
	else
		ky_put_end(trace, ns, t->track, intake->beside ? known->category : 0, 0, args);
}

/* Nobody knows which spans ended in the gap. */
static void put_loss(struct ky_event_intake *intake, struct ky_known_thread *t,
		     const struct ky_event *e, int64_t ns)
{
	if (intake->ordered && t->stack.depth) {
		intake->done = true;
		return;
	}
	while (t->stack.depth)
		ky_event_end(intake, t, t->last_ns, 0);
	t->until_ns = KY_EVENT_ANEW;
	t->made_up = 0;
	ky_put_lost(intake->trace, ns, t->thread, KY_NONE, e->id, KY_LOSS_RING);
}

/* ---- other events ---- */

static double number_of(const struct kymo_arg *arg)
{
	if (arg->type == KYMO_TYPE_DOUBLE)
		return arg->value.d;
	return arg->type == KYMO_TYPE_INT ? (double)arg->value.i : (double)arg->value.u;
}

/* A counter with one value has its name; of several, each has the value's key behind it. */
static uint32_t counter_track(struct ky_event_intake *intake, const struct ky_known_thread *t,
			      const struct ky_event *e, uint32_t arg)
{
	struct ky_trace *trace = intake->trace;
	char text[1024];
	uint32_t name;
	if (e->args_count > 1 && e->args[arg].key) {
		const int length = snprintf(text, sizeof(text), "%.*s %s", (int)e->name.bytes,
					    e->name.data, e->args[arg].key);
		name = ky_string(trace, text,
				 (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1);
	} else {
		name = string_of(intake, e->name);
	}
	return ky_track(trace, &(struct ky_track_spec){.kind = KY_TRACK_PROCESS_COUNTER,
						       .owner = t->process,
						       .name = name,
						       .type = intake->counter_track_type});
}

static void put_counter(struct ky_event_intake *intake, const struct ky_known_thread *t,
			struct ky_known_site *known, const struct ky_event *e, int64_t ns)
{
	const bool own_name = (e->site->flags & KYMO_SITE_NAME) != 0;
	if (known->counters_of != t->process + 1) {
		memset(known->counters, 0, sizeof(known->counters));
		known->counters_of = t->process + 1;
	}
	for (uint32_t i = 0; i < e->args_count && i < KYMO_ARGS_MAX; i++) {
		if (e->args[i].type == KYMO_TYPE_STRING)
			continue;
		if (own_name || !known->counters[i])
			known->counters[i] = counter_track(intake, t, e, i) + 1;
		ky_put_counter(intake->trace, ns, known->counters[i] - 1, number_of(&e->args[i]));
	}
}

/* Return a track for each category and id, named after its first event. */
static uint32_t async_track(struct ky_event_intake *intake, const struct ky_known_thread *t,
			    const struct ky_known_site *known, const struct ky_event *e)
{
	struct ky_trace *trace = intake->trace;
	const uint32_t track =
		ky_track(trace, &(struct ky_track_spec){.kind = KY_TRACK_PROCESS,
							.flags = KY_TRACK_ASYNC,
							.owner = t->process,
							.category = known->category,
							.type = intake->process_track_type,
							.id = e->id});
	if (track < trace->tracks.rows.count && !trace->tracks.name[track])
		trace->tracks.name[track] = name_of(intake, known, e);
	return track;
}

static void put_async(struct ky_event_intake *intake, const struct ky_known_thread *t,
		      const struct ky_known_site *known, const struct ky_event *e, int64_t ns)
{
	struct ky_trace *trace = intake->trace;
	const uint32_t track = async_track(intake, t, known, e);
	const uint32_t args = args_of(intake, known, e);
	if (intake->windows_count && e->kind != KYMO_KIND_ASYNC_INSTANT)
		ky_event_async(intake, track, e, known->category, name_of(intake, known, e), ns);
	if (e->kind == KYMO_KIND_ASYNC_END) {
		ky_put_end(trace, ns, track, 0, 0, args);
		return;
	}
	const uint32_t name = name_of(intake, known, e);
	if (e->kind == KYMO_KIND_ASYNC_BEGIN)
		ky_put_begin(trace, ns, track, known->category, name, args);
	else
		ky_put_instant(trace, ns, track, known->category, name, args);
}

static void put_flow(struct ky_event_intake *intake, const struct ky_known_thread *t,
		     const struct ky_known_site *known, const struct ky_event *e, int64_t ns)
{
	static const enum ky_flow_step steps[] = {KY_FLOW_BEGIN, KY_FLOW_STEP, KY_FLOW_END};
	const bool local = (e->site->flags & KYMO_SITE_LOCAL_ID) != 0;
	const uint64_t scope = local ? (uint64_t)t->process + 1 : 0;
	const uint64_t key = ky_flow_key(intake->trace, e->id, known->category,
					 name_of(intake, known, e), scope);
	ky_put_flow(intake->trace, ns, t->track, steps[e->kind - KYMO_KIND_FLOW_BEGIN],
		    KY_BIND_ENCLOSING, key);
}

static void put_snapshot(struct ky_event_intake *intake, const struct ky_known_site *known,
			 const struct ky_event *e, int64_t ns)
{
	struct ky_trace *trace = intake->trace;
	const bool unnamed_mark = !e->name.bytes && e->kind == KYMO_KIND_MARK;
	if (e->kind == KYMO_KIND_SNAPSHOT && ky_event_is_known_snapshot(intake, e, ns))
		return;
	ky_args_begin(trace);
	ky_arg_int(trace, ky_string_z(trace, "debug.pid"),
		   intake->owned ? intake->owner_pid : e->thread->pid);
	ky_arg_int(trace, ky_string_z(trace, "debug.tid"), e->thread->tid);
	put_args(intake, known, e);
	const uint32_t args = ky_args_end(trace);
	ky_put_instant(trace, ns, ky_event_snapshots_track(trace), known->category,
		       unnamed_mark ? ky_string_z(trace, "mark start") : string_of(intake, e->name),
		       args);
}

static uint32_t point_track(struct ky_event_intake *intake, const struct ky_known_thread *t,
			    const struct ky_event *e)
{
	if (e->site->flags & KYMO_SITE_GLOBAL)
		return ky_track_global(intake->trace, ky_string_z(intake->trace, "global"));
	if ((e->site->flags & KYMO_SITE_PROCESS) || e->kind == KYMO_KIND_METADATA)
		return ky_track_of_process(intake->trace, t->process);
	return t->track;
}

/* Kinds for which the model has no kind of its own. */
static uint32_t point_args(struct ky_event_intake *intake, const struct ky_known_site *known,
			   const struct ky_event *e)
{
	static const char *const states[] = {"new", "snapshot", "delete"};
	ky_args_begin(intake->trace);
	/* The name of a message is its text. */
	if (e->kind == KYMO_KIND_PRINT)
		ky_arg_string(intake->trace, ky_string_z(intake->trace, KY_PRINT_FORMAT_KEY),
			      known->name);
	if (e->kind >= KYMO_KIND_OBJECT_NEW && e->kind <= KYMO_KIND_OBJECT_DELETE)
		put_named_text(intake, "debug.object", states[e->kind - KYMO_KIND_OBJECT_NEW]);
	if (e->site->flags & KYMO_SITE_ID)
		ky_arg_pointer(intake->trace, ky_string_z(intake->trace, "debug.id"), e->id);
	put_args(intake, known, e);
	if (known->location)
		put_location(intake, known, e->site);
	return ky_args_end(intake->trace);
}

/* Instants and all that is shown as one. */
static void put_point(struct ky_event_intake *intake, const struct ky_known_thread *t,
		      const struct ky_known_site *known, const struct ky_event *e, int64_t ns)
{
	if (known->plain && e->kind == KYMO_KIND_INSTANT) {
		ky_put_instant(intake->trace, ns, t->track, known->category, known->name,
			       args_of(intake, known, e));
		return;
	}
	const uint32_t name = name_of(intake, known, e);
	ky_put_instant(intake->trace, ns, point_track(intake, t, e), known->category, name,
		       point_args(intake, known, e));
	if (e->kind == KYMO_KIND_PRINT)
		ky_put_log(intake->trace, ns, t->thread, LOG_PRIORITY, known->category, name);
}

static void put_other(struct ky_event_intake *intake, struct ky_known_thread *t,
		      struct ky_known_site *known, const struct ky_event *e, int64_t ns)
{
	switch (e->kind) {
	case KYMO_KIND_COUNTER:
		put_counter(intake, t, known, e, ns);
		break;
	case KYMO_KIND_ASYNC_BEGIN:
	case KYMO_KIND_ASYNC_INSTANT:
	case KYMO_KIND_ASYNC_END:
		put_async(intake, t, known, e, ns);
		break;
	case KYMO_KIND_FLOW_BEGIN:
	case KYMO_KIND_FLOW_STEP:
	case KYMO_KIND_FLOW_END:
		put_flow(intake, t, known, e, ns);
		break;
	case KYMO_KIND_SNAPSHOT:
	case KYMO_KIND_MARK:
		put_snapshot(intake, known, e, ns);
		break;
	default:
		put_point(intake, t, known, e, ns);
	}
}

/* False when it is to be left out. */
static bool take_time(struct ky_event_intake *intake, struct ky_known_thread *t, int64_t ns)
{
	if (intake->ordered && ns < intake->last_ns)
		intake->done = true;
	intake->last_ns = ns;
	if (__builtin_expect(ns > t->until_ns, 0))
		ky_event_begin(intake, t, ns);
	t->last_ns = ns;
	return !intake->done;
}

void ky_event_intake_event(void *context, const struct ky_event *e)
{
	struct ky_event_intake *intake = context;
	const int64_t ns = e->time_ns <= INT64_MAX ? (int64_t)e->time_ns : INT64_MAX;
	struct ky_known_thread *t = intake->done ? NULL : thread_of(intake, e->thread);
	if (!t)
		return;
	if (e->kind == KYMO_KIND_LOST || !e->site) {
		put_loss(intake, t, e, ns);
		return;
	}
	struct ky_known_site *known = site_of(intake, e->site);
	if (!known || !take_time(intake, t, ns))
		return;
	if (e->kind == KYMO_KIND_END) {
		end_span(intake, t, known, e, ns);
	} else if (e->kind == KYMO_KIND_BEGIN) {
		begin_span(intake, t, known, e, ns);
	} else if (!intake->has_ends || e->kind != KYMO_KIND_INSTANT) {
		put_other(intake, t, known, e, ns);
	}
}

void ky_event_intake_thread_end(void *context, const struct ky_thread *thread, uint64_t time_ns)
{
	struct ky_event_intake *intake = context;
	struct ky_known_thread *t = intake->done ? NULL : thread_of(intake, thread);
	if (t)
		ky_event_end_open(intake, t, time_ns <= INT64_MAX ? (int64_t)time_ns : INT64_MAX);
}
