/* SPDX-License-Identifier: MIT */
/*
 * trace_event.c: events whose phase, category, name and types are only known when they happen: TRACE_EVENT_API_ADD_TRACE_EVENT
 * and its kin of trace_event.h. Each has a trace point like any other, found in the heap by its content.
 */
#include "core/heap.h"
#include "core/writer.h"

#include <errno.h>
#include <kymo/trace_event.h>

static uint8_t kind_of(char phase)
{
	static const struct {
		char phase;
		uint8_t kind;
	} kinds[] = {
		{TRACE_EVENT_PHASE_BEGIN, KYMO_KIND_BEGIN},
		{TRACE_EVENT_PHASE_COMPLETE, KYMO_KIND_BEGIN},
		{TRACE_EVENT_PHASE_END, KYMO_KIND_END},
		{TRACE_EVENT_PHASE_COUNTER, KYMO_KIND_COUNTER},
		{TRACE_EVENT_PHASE_ASYNC_BEGIN, KYMO_KIND_ASYNC_BEGIN},
		{TRACE_EVENT_PHASE_NESTABLE_ASYNC_BEGIN, KYMO_KIND_ASYNC_BEGIN},
		{TRACE_EVENT_PHASE_ENTER_CONTEXT, KYMO_KIND_ASYNC_BEGIN},
		{TRACE_EVENT_PHASE_ASYNC_STEP_INTO, KYMO_KIND_ASYNC_INSTANT},
		{TRACE_EVENT_PHASE_ASYNC_STEP_PAST, KYMO_KIND_ASYNC_INSTANT},
		{TRACE_EVENT_PHASE_NESTABLE_ASYNC_INSTANT, KYMO_KIND_ASYNC_INSTANT},
		{TRACE_EVENT_PHASE_LINK_IDS, KYMO_KIND_ASYNC_INSTANT},
		{TRACE_EVENT_PHASE_ASYNC_END, KYMO_KIND_ASYNC_END},
		{TRACE_EVENT_PHASE_NESTABLE_ASYNC_END, KYMO_KIND_ASYNC_END},
		{TRACE_EVENT_PHASE_LEAVE_CONTEXT, KYMO_KIND_ASYNC_END},
		{TRACE_EVENT_PHASE_FLOW_BEGIN, KYMO_KIND_FLOW_BEGIN},
		{TRACE_EVENT_PHASE_FLOW_STEP, KYMO_KIND_FLOW_STEP},
		{TRACE_EVENT_PHASE_FLOW_END, KYMO_KIND_FLOW_END},
		{TRACE_EVENT_PHASE_CREATE_OBJECT, KYMO_KIND_OBJECT_NEW},
		{TRACE_EVENT_PHASE_SNAPSHOT_OBJECT, KYMO_KIND_OBJECT_SNAPSHOT},
		{TRACE_EVENT_PHASE_DELETE_OBJECT, KYMO_KIND_OBJECT_DELETE},
		{TRACE_EVENT_PHASE_METADATA, KYMO_KIND_METADATA},
		{TRACE_EVENT_PHASE_CLOCK_SYNC, KYMO_KIND_CLOCK_SYNC},
		{TRACE_EVENT_PHASE_SAMPLE, KYMO_KIND_SAMPLE},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].phase == phase)
			return kinds[i].kind;
	return KYMO_KIND_INSTANT;
}

static bool needs_id(uint8_t kind)
{
	return (kind >= KYMO_KIND_ASYNC_BEGIN && kind <= KYMO_KIND_FLOW_END) ||
	       (kind >= KYMO_KIND_OBJECT_NEW && kind <= KYMO_KIND_OBJECT_DELETE);
}

/* Return an instant's scope, and whether the id is the process's own, as a trace point has them. */
static uint8_t site_flags(uint8_t kind, unsigned flags)
{
	const unsigned local = TRACE_EVENT_FLAG_MANGLE_ID | TRACE_EVENT_FLAG_HAS_LOCAL_ID;
	uint8_t own = flags & local ? KYMO_SITE_LOCAL_ID : 0;
	if (kind == KYMO_KIND_INSTANT && (flags & TRACE_EVENT_FLAG_SCOPE_MASK) == 0)
		own |= KYMO_SITE_GLOBAL;
	else if (kind == KYMO_KIND_INSTANT &&
		 (flags & TRACE_EVENT_FLAG_SCOPE_MASK) == TRACE_EVENT_FLAG_SCOPE_OFFSET)
		own |= KYMO_SITE_PROCESS;
	return own;
}

/* An event and its trace point, while they are put together. */
struct made_event {
	struct kymo_site_info info;
	const char *keys[KYMO_I_ITEMS_MAX];
	uint64_t values[KYMO_I_ITEMS_MAX];
};

static void add_item(struct made_event *e, const char *key, uint64_t type, uint64_t value)
{
	e->keys[e->info.items] = key;
	e->values[e->info.items] = value;
	e->info.types |= type << 4 * e->info.items++;
}

static void add_leading(struct made_event *e, uint8_t flag, uint64_t type, uint64_t value)
{
	e->info.flags |= flag;
	add_item(e, "", type, value);
}

static void add_args(struct made_event *e, const struct kymo_i_te_event *from)
{
	/* By TRACE_VALUE_TYPE_; what converts itself to text does so for C++ alone. */
	static const uint8_t types[] = {KYMO_TYPE_UINT,   KYMO_TYPE_BOOL,   KYMO_TYPE_UINT,
					KYMO_TYPE_INT,    KYMO_TYPE_DOUBLE, KYMO_TYPE_POINTER,
					KYMO_TYPE_STRING, KYMO_TYPE_STRING, KYMO_TYPE_POINTER};
	for (int i = 0; i < from->ky_args && i < (int)KYMO_ARGS_MAX; i++) {
		const uint8_t type = from->ky_types[i];
		add_item(e, from->ky_keys[i], type < sizeof(types) ? types[type] : KYMO_TYPE_UINT,
			 from->ky_values[i]);
		e->info.args++;
	}
}

static int record(struct ky_drum *drum, const struct kymo_i_te_event *from)
{
	struct made_event e = {.info = {.abi = KYMO_I_ABI, .kind = kind_of(from->ky_phase)}};
	uint32_t category;
	e.info.category = ky_heap_category_of(drum, from->ky_category, &category);
	if (!e.info.category)
		return 0;
	const bool named = from->ky_flags & TRACE_EVENT_FLAG_COPY;
	e.info.flags = site_flags(e.info.kind, from->ky_flags);
	e.info.name = named || !from->ky_name ? "" : from->ky_name;
	e.info.keys = e.keys;
	if (from->ky_flags & TRACE_EVENT_FLAG_EXPLICIT_TIMESTAMP)
		add_leading(&e, KYMO_SITE_TIME, KYMO_TYPE_UINT, from->ky_time_ns);
	if (named)
		add_leading(&e, KYMO_SITE_NAME, KYMO_TYPE_STRING, (uintptr_t)from->ky_name);
	if (needs_id(e.info.kind))
		add_leading(&e, KYMO_SITE_ID, KYMO_TYPE_UINT, from->ky_id);
	add_args(&e, from);
	struct kymo_i_site site = {
		from->ky_category,
		(uint64_t)ky_heap_site(drum, &e.info, category) << KY_WORD_SITE_SHIFT, &e.info};
	return ky_writer_record(&site, 0, e.info.items, e.info.types, e.values);
}

/* The flow event that the flags ask for, as the macros with flows have it. */
static void record_flow(struct ky_drum *drum, const struct kymo_i_te_event *event)
{
	const unsigned both = TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT;
	const unsigned flow = event->ky_flags & both;
	struct kymo_i_te_event arrow = {.ky_phase = TRACE_EVENT_PHASE_FLOW_STEP,
					.ky_category = event->ky_category,
					.ky_name = "flow",
					.ky_id = event->ky_bind_id,
					.ky_time_ns = event->ky_time_ns,
					.ky_flags = event->ky_flags &
						    TRACE_EVENT_FLAG_EXPLICIT_TIMESTAMP};
	if (flow != both)
		arrow.ky_phase = flow == TRACE_EVENT_FLAG_FLOW_OUT ? TRACE_EVENT_PHASE_FLOW_BEGIN
								   : TRACE_EVENT_PHASE_FLOW_END;
	if (flow)
		(void)record(drum, &arrow);
}

uint64_t kymo_i_te_add(const struct kymo_i_te_event *event)
{
	const int saved_errno = errno;
	struct ky_drum *drum = KYMO_I_LOAD(event->ky_category) ? ky_drum_get() : NULL;
	const int recorded = drum ? record(drum, event) : 0;
	if (recorded)
		record_flow(drum, event);
	errno = saved_errno;
	return (uint64_t)recorded;
}
