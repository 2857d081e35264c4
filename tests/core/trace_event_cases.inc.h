/* SPDX-License-Identifier: MIT */
/*
 * trace_event_cases.inc.h: every macro of trace_event.h that both languages have, called in Chromium's
 * style, and what must come of it. The tests of C and of C++ include it.
 *
 * The events are recorded once, before the first test; a test looks at what came of them.
 *
 * FAMILIES lists the macros: the kind of event, the items before its arguments, what more its flags
 * say, the key of an argument that the macro adds itself, the number of pairs, and what the call has
 * after category and name. Each is called once with a literal for a name and once with a name that
 * only the running program knows.
 */
#ifndef TESTS_TRACE_EVENT_CASES_INC_H
#define TESTS_TRACE_EVENT_CASES_INC_H

#include "trace_event_record.inc.h"

#include <setjmp.h>
#include <stdarg.h>
#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#define P1 "a", 1
#define P2 "a", 1, "b", "two"
#define ID 77
#define TID 4711
#define TIME 123456789
#define THREAD TRACE_EVENT_SCOPE_THREAD
#define PROCESS TRACE_EVENT_SCOPE_PROCESS
#define GLOBAL TRACE_EVENT_SCOPE_GLOBAL
#define NONE TRACE_EVENT_FLAG_NONE
#define W_ID KYMO_SITE_ID
#define W_TIME KYMO_SITE_TIME
#define W_ID_TIME (KYMO_SITE_TIME | KYMO_SITE_ID)
#define W_TID_TIME (KYMO_SITE_TIME | KYMO_SITE_TID)
#define W_ALL (KYMO_SITE_TIME | KYMO_SITE_TID | KYMO_SITE_ID)

/* clang-format off */
#define FAMILIES(X, X0) \
	X0(TRACE_EVENT_BEGIN0, BEGIN, 0, 0, "", 0) \
	X(TRACE_EVENT_BEGIN1, BEGIN, 0, 0, "", 1, P1) \
	X(TRACE_EVENT_BEGIN2, BEGIN, 0, 0, "", 2, P2) \
	X0(TRACE_EVENT_COPY_BEGIN0, BEGIN, 0, 0, "", 0) \
	X(TRACE_EVENT_COPY_BEGIN1, BEGIN, 0, 0, "", 1, P1) \
	X(TRACE_EVENT_COPY_BEGIN2, BEGIN, 0, 0, "", 2, P2) \
	X(TRACE_EVENT_BEGIN_WITH_FLAGS0, BEGIN, 0, 0, "", 0, NONE) \
	X(TRACE_EVENT_BEGIN_WITH_FLAGS1, BEGIN, 0, 0, "", 1, NONE, P1) \
	X0(TRACE_EVENT_BEGIN, BEGIN, 0, 0, "", 0) \
	X0(TRACE_EVENT_END0, END, 0, 0, "", 0) \
	X(TRACE_EVENT_END1, END, 0, 0, "", 1, P1) \
	X(TRACE_EVENT_END2, END, 0, 0, "", 2, P2) \
	X0(TRACE_EVENT_COPY_END0, END, 0, 0, "", 0) \
	X(TRACE_EVENT_COPY_END1, END, 0, 0, "", 1, P1) \
	X(TRACE_EVENT_COPY_END2, END, 0, 0, "", 2, P2) \
	X(TRACE_EVENT_END_WITH_FLAGS0, END, 0, 0, "", 0, NONE) \
	X(TRACE_EVENT_END_WITH_FLAGS1, END, 0, 0, "", 1, NONE, P1) \
	X0(TRACE_EVENT_END, END, 0, 0, "", 0) \
	X(TRACE_EVENT_BEGIN_WITH_ID_TID_AND_TIMESTAMP0, ASYNC_BEGIN, W_ALL, 0, "", 0, ID, TID, TIME) \
	X(TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP0, ASYNC_BEGIN, W_ALL, 0, "", 0, ID, TID, TIME) \
	X(TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP1, ASYNC_BEGIN, W_ALL, 0, "", 1, ID, TID, TIME, P1) \
	X(TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP2, ASYNC_BEGIN, W_ALL, 0, "", 2, ID, TID, TIME, P2) \
	X(TRACE_EVENT_END_WITH_ID_TID_AND_TIMESTAMP0, ASYNC_END, W_ALL, 0, "", 0, ID, TID, TIME) \
	X(TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP0, ASYNC_END, W_ALL, 0, "", 0, ID, TID, TIME) \
	X(TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP1, ASYNC_END, W_ALL, 0, "", 1, ID, TID, TIME, P1) \
	X(TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP2, ASYNC_END, W_ALL, 0, "", 2, ID, TID, TIME, P2) \
	X(TRACE_EVENT_INSTANT0, INSTANT, 0, KYMO_SITE_GLOBAL, "", 0, GLOBAL) \
	X(TRACE_EVENT_INSTANT1, INSTANT, 0, KYMO_SITE_PROCESS, "", 1, PROCESS, P1) \
	X(TRACE_EVENT_INSTANT2, INSTANT, 0, 0, "", 2, THREAD, P2) \
	X(TRACE_EVENT_COPY_INSTANT0, INSTANT, 0, 0, "", 0, THREAD) \
	X(TRACE_EVENT_COPY_INSTANT1, INSTANT, 0, KYMO_SITE_PROCESS, "", 1, PROCESS, P1) \
	X(TRACE_EVENT_COPY_INSTANT2, INSTANT, 0, KYMO_SITE_GLOBAL, "", 2, GLOBAL, P2) \
	X(TRACE_EVENT_INSTANT_WITH_FLAGS0, INSTANT, 0, 0, "", 0, THREAD | TRACE_EVENT_FLAG_COPY) \
	X(TRACE_EVENT_INSTANT_WITH_FLAGS1, INSTANT, 0, KYMO_SITE_PROCESS, "", 1, PROCESS | NONE, P1) \
	X(TRACE_EVENT_INSTANT0_ALWAYS, INSTANT, 0, 0, "", 0, TRACE_EVENT_SCOPE_NAME_THREAD) \
	X(TRACE_EVENT_INSTANT1_ALWAYS, INSTANT, 0, 0, "", 1, THREAD, P1) \
	X(TRACE_EVENT_INSTANT2_ALWAYS, INSTANT, 0, 0, "", 2, THREAD, P2) \
	X(TRACE_EVENT_INSTANT_WITH_TIMESTAMP0, INSTANT, W_TIME, KYMO_SITE_GLOBAL, "", 0, GLOBAL, TIME) \
	X(TRACE_EVENT_INSTANT_WITH_TIMESTAMP1, INSTANT, W_TIME, 0, "", 1, THREAD, TIME, P1) \
	X(TRACE_EVENT_INSTANT_WITH_TIMESTAMP2, INSTANT, W_TIME, 0, "", 2, THREAD, TIME, P2) \
	X0(TRACE_EVENT_INSTANT, INSTANT, 0, 0, "", 0) \
	X0(TRACE_EVENT_COPY_MARK, INSTANT, 0, 0, "", 0) \
	X(TRACE_EVENT_COPY_MARK1, INSTANT, 0, 0, "", 1, P1) \
	X(TRACE_EVENT_COPY_MARK_WITH_TIMESTAMP, INSTANT, W_TIME, 0, "", 0, TIME) \
	X(TRACE_EVENT_MARK_WITH_TIMESTAMP0, INSTANT, W_TIME, 0, "", 0, TIME) \
	X(TRACE_EVENT_MARK_WITH_TIMESTAMP1, INSTANT, W_TIME, 0, "", 1, TIME, P1) \
	X(TRACE_EVENT_MARK_WITH_TIMESTAMP2, INSTANT, W_TIME, 0, "", 2, TIME, P2) \
	X(TRACE_COUNTER1, COUNTER, 0, 0, "value", 0, 5) \
	X(TRACE_COUNTER2, COUNTER, 0, 0, "", 2, P2) \
	X(TRACE_COUNTER_ID1, COUNTER, W_ID, 0, "value", 0, ID, 5) \
	X(TRACE_COUNTER_ID2, COUNTER, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_COPY_COUNTER1, COUNTER, 0, 0, "value", 0, 5) \
	X(TRACE_COPY_COUNTER2, COUNTER, 0, 0, "", 2, P2) \
	X(TRACE_COPY_COUNTER_ID1, COUNTER, W_ID, 0, "value", 0, ID, 5) \
	X(TRACE_COPY_COUNTER_ID2, COUNTER, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_COUNTER_WITH_TIMESTAMP1, COUNTER, W_TIME, 0, "value", 0, TIME, 5) \
	X(TRACE_COUNTER_WITH_TIMESTAMP2, COUNTER, W_TIME, 0, "", 2, TIME, P2) \
	X(TRACE_COUNTER_WITH_FLAG1, COUNTER, 0, 0, "value", 0, NONE, 5) \
	X(TRACE_COUNTER1_ALWAYS, COUNTER, 0, 0, "value", 0, 5) \
	X(TRACE_COUNTER, COUNTER, 0, 0, "value", 0, 5) \
	X(TRACE_EVENT_SAMPLE_WITH_ID1, SAMPLE, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP0, SAMPLE, W_TID_TIME, 0, "", 0, TID, TIME) \
	X(TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP1, SAMPLE, W_TID_TIME, 0, "", 1, TID, TIME, P1) \
	X(TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP2, SAMPLE, W_TID_TIME, 0, "", 2, TID, TIME, P2) \
	X(TRACE_EVENT_ASYNC_BEGIN0, ASYNC_BEGIN, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_ASYNC_BEGIN1, ASYNC_BEGIN, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_ASYNC_BEGIN2, ASYNC_BEGIN, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_COPY_ASYNC_BEGIN0, ASYNC_BEGIN, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_COPY_ASYNC_BEGIN1, ASYNC_BEGIN, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_COPY_ASYNC_BEGIN2, ASYNC_BEGIN, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP0, ASYNC_BEGIN, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP1, ASYNC_BEGIN, W_ID_TIME, 0, "", 1, ID, TIME, P1) \
	X(TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP2, ASYNC_BEGIN, W_ID_TIME, 0, "", 2, ID, TIME, P2) \
	X(TRACE_EVENT_COPY_ASYNC_BEGIN_WITH_TIMESTAMP0, ASYNC_BEGIN, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_ASYNC_STEP_INTO0, ASYNC_INSTANT, W_ID, 0, "step", 0, ID, 5) \
	X(TRACE_EVENT_ASYNC_STEP_INTO1, ASYNC_INSTANT, W_ID, 0, "step", 1, ID, 5, P1) \
	X(TRACE_EVENT_ASYNC_STEP_INTO_WITH_TIMESTAMP0, ASYNC_INSTANT, W_ID_TIME, 0, "step", 0, ID, 5, TIME) \
	X(TRACE_EVENT_ASYNC_STEP_PAST0, ASYNC_INSTANT, W_ID, 0, "step", 0, ID, 5) \
	X(TRACE_EVENT_ASYNC_STEP_PAST1, ASYNC_INSTANT, W_ID, 0, "step", 1, ID, 5, P1) \
	X(TRACE_EVENT_ASYNC_END0, ASYNC_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_ASYNC_END1, ASYNC_END, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_ASYNC_END2, ASYNC_END, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_COPY_ASYNC_END0, ASYNC_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_COPY_ASYNC_END1, ASYNC_END, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_COPY_ASYNC_END2, ASYNC_END, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP0, ASYNC_END, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP1, ASYNC_END, W_ID_TIME, 0, "", 1, ID, TIME, P1) \
	X(TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP2, ASYNC_END, W_ID_TIME, 0, "", 2, ID, TIME, P2) \
	X(TRACE_EVENT_COPY_ASYNC_END_WITH_TIMESTAMP0, ASYNC_END, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN0, ASYNC_BEGIN, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN1, ASYNC_BEGIN, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN2, ASYNC_BEGIN, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0, ASYNC_BEGIN, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1, ASYNC_BEGIN, W_ID_TIME, 0, "", 1, ID, TIME, P1) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP2, ASYNC_BEGIN, W_ID_TIME, 0, "", 2, ID, TIME, P2) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_FLAGS0, ASYNC_BEGIN, W_ID, 0, "", 0, ID, NONE) \
	X(TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP_AND_FLAGS0, ASYNC_BEGIN, W_ID_TIME, 0, "", 0, ID, TIME, NONE) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN0, ASYNC_BEGIN, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN1, ASYNC_BEGIN, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN2, ASYNC_BEGIN, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TTS2, ASYNC_BEGIN, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0, ASYNC_BEGIN, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1, ASYNC_BEGIN, W_ID_TIME, 0, "", 1, ID, TIME, P1) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP2, ASYNC_BEGIN, W_ID_TIME, 0, "", 2, ID, TIME, P2) \
	X(TRACE_EVENT_NESTABLE_ASYNC_INSTANT0, ASYNC_INSTANT, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_NESTABLE_ASYNC_INSTANT1, ASYNC_INSTANT, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_NESTABLE_ASYNC_INSTANT2, ASYNC_INSTANT, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP0, ASYNC_INSTANT, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP1, ASYNC_INSTANT, W_ID_TIME, 0, "", 1, ID, TIME, P1) \
	X(TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP2, ASYNC_INSTANT, W_ID_TIME, 0, "", 2, ID, TIME, P2) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END0, ASYNC_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END1, ASYNC_END, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END2, ASYNC_END, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP0, ASYNC_END, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP1, ASYNC_END, W_ID_TIME, 0, "", 1, ID, TIME, P1) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP2, ASYNC_END, W_ID_TIME, 0, "", 2, ID, TIME, P2) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END_WITH_FLAGS0, ASYNC_END, W_ID, 0, "", 0, ID, NONE) \
	X(TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP_AND_FLAGS0, ASYNC_END, W_ID_TIME, 0, "", 0, ID, TIME, NONE) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_END0, ASYNC_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_END1, ASYNC_END, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_END2, ASYNC_END, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TTS2, ASYNC_END, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP0, ASYNC_END, W_ID_TIME, 0, "", 0, ID, TIME) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP1, ASYNC_END, W_ID_TIME, 0, "", 1, ID, TIME, P1) \
	X(TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP2, ASYNC_END, W_ID_TIME, 0, "", 2, ID, TIME, P2) \
	X(TRACE_EVENT_FLOW_BEGIN0, FLOW_BEGIN, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_FLOW_BEGIN1, FLOW_BEGIN, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_FLOW_BEGIN2, FLOW_BEGIN, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_FLOW_STEP0, FLOW_STEP, W_ID, 0, "step", 0, ID, 5) \
	X(TRACE_EVENT_FLOW_STEP1, FLOW_STEP, W_ID, 0, "step", 1, ID, 5, P1) \
	X(TRACE_EVENT_FLOW_END0, FLOW_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_FLOW_END1, FLOW_END, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_FLOW_END2, FLOW_END, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_FLOW_END_BIND_TO_ENCLOSING0, FLOW_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_COPY_FLOW_BEGIN0, FLOW_BEGIN, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_COPY_FLOW_BEGIN1, FLOW_BEGIN, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_COPY_FLOW_BEGIN2, FLOW_BEGIN, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_COPY_FLOW_STEP0, FLOW_STEP, W_ID, 0, "step", 0, ID, 5) \
	X(TRACE_EVENT_COPY_FLOW_STEP1, FLOW_STEP, W_ID, 0, "step", 1, ID, 5, P1) \
	X(TRACE_EVENT_COPY_FLOW_END0, FLOW_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_COPY_FLOW_END1, FLOW_END, W_ID, 0, "", 1, ID, P1) \
	X(TRACE_EVENT_COPY_FLOW_END2, FLOW_END, W_ID, 0, "", 2, ID, P2) \
	X(TRACE_EVENT_OBJECT_CREATED_WITH_ID, OBJECT_NEW, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID, OBJECT_SNAPSHOT, W_ID, 0, "snapshot", 0, ID, 5) \
	X(TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID_AND_TIMESTAMP, OBJECT_SNAPSHOT, W_ID_TIME, 0, "snapshot", 0, ID, TIME, 5) \
	X(TRACE_EVENT_OBJECT_DELETED_WITH_ID, OBJECT_DELETE, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_ENTER_CONTEXT, ASYNC_BEGIN, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_LEAVE_CONTEXT, ASYNC_END, W_ID, 0, "", 0, ID) \
	X(TRACE_EVENT_METADATA1, METADATA, 0, 0, "", 1, P1)

/* Spans until the end of a block: macro, flow event if any, key that the macro adds, pairs. */
#define SCOPES(X, X0) \
	X0(TRACE_EVENT0, 0, "", 0) \
	X(TRACE_EVENT1, 0, "", 1, P1) \
	X(TRACE_EVENT2, 0, "", 2, P2) \
	X0(TRACE_EVENT0_ALWAYS, 0, "", 0) \
	X(TRACE_EVENT1_ALWAYS, 0, "", 1, P1) \
	X(TRACE_EVENT2_ALWAYS, 0, "", 2, P2) \
	X(TRACE_EVENT, 0, "", 2, P2) \
	X(TRACE_EVENT_WITH_FLOW0, KYMO_KIND_FLOW_BEGIN, "", 0, 1000, TRACE_EVENT_FLAG_FLOW_OUT) \
	X(TRACE_EVENT_WITH_FLOW1, KYMO_KIND_FLOW_STEP, "", 1, 1001, \
	  TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT, P1) \
	X(TRACE_EVENT_WITH_FLOW2, KYMO_KIND_FLOW_END, "", 2, 1002, TRACE_EVENT_FLAG_FLOW_IN, P2) \
	X(TRACE_EVENT_SCOPED_CONTEXT, 0, "context", 0, 5u)
/* clang-format on */

/* A name that no compiler knows. */
static inline const char *runtime_name(const char *macro)
{
	static char buffer[128];
	snprintf(buffer, sizeof(buffer), "runtime %s", macro);
	return buffer;
}

struct family {
	const char *macro;
	uint32_t kind, items, more;
	const char *added;
	uint32_t pairs;
};
#define FAMILY_ROW(M, kind, items, more, added, pairs, ...)                                        \
	{#M, KYMO_KIND_##kind, items, more, added, pairs},
#define FAMILY_ROW0(M, kind, items, more, added, pairs)                                            \
	FAMILY_ROW(M, kind, items, more, added, pairs, 0)
static const struct family families[] = {FAMILIES(FAMILY_ROW, FAMILY_ROW0)};

#define FAMILY_EMIT(M, kind, items, more, added, pairs, ...) M("test", #M, __VA_ARGS__);
#define FAMILY_EMIT0(M, kind, items, more, added, pairs) M("test", #M);
static inline void emit_families(void)
{
	FAMILIES(FAMILY_EMIT, FAMILY_EMIT0)
}
#define FAMILY_EMIT_RUNTIME(M, kind, items, more, added, pairs, ...)                               \
	M("test,more", runtime_name(#M), __VA_ARGS__);
#define FAMILY_EMIT_RUNTIME0(M, kind, items, more, added, pairs) M("test,more", runtime_name(#M));
static inline void emit_families_with_runtime_names(void)
{
	FAMILIES(FAMILY_EMIT_RUNTIME, FAMILY_EMIT_RUNTIME0)
}
/* The same with a category that is off: nothing is evaluated. */
#define FAMILY_EMIT_OFF(M, kind, items, more, added, pairs, ...) M("off", never(), __VA_ARGS__);
#define FAMILY_EMIT_OFF0(M, kind, items, more, added, pairs) M("off", never());
static inline const char *never(void)
{
	abort();
}
static inline void emit_families_off(void)
{
	FAMILIES(FAMILY_EMIT_OFF, FAMILY_EMIT_OFF0)
}

struct scope_row {
	const char *macro;
	uint32_t flow;
	const char *added;
	uint32_t pairs;
};
#define SCOPE_ROW(M, flow, added, pairs, ...) {#M, flow, added, pairs},
#define SCOPE_ROW0(M, flow, added, pairs) SCOPE_ROW(M, flow, added, pairs, 0)
static const struct scope_row scopes[] = {SCOPES(SCOPE_ROW, SCOPE_ROW0)};
#define SCOPE_EMIT(M, flow, added, pairs, ...) M("test", #M, __VA_ARGS__);
#define SCOPE_EMIT0(M, flow, added, pairs) M("test", #M);
static inline void emit_scopes(void)
{
	SCOPES(SCOPE_EMIT, SCOPE_EMIT0)
}

/* 0 and a message when the pairs are not P1 or P2, after what the macro adds itself. */
static inline int check_pairs(const struct seen *s, const char *added, int added_is_int,
			      uint32_t pairs)
{
	const uint32_t first = added[0] != '\0';
	if (!s || s->args_count != first + pairs)
		return 0;
	if (first && added_is_int && !arg_is_int(s, 0, added, 5))
		return 0;
	if (first && !added_is_int && !arg_is_uint(s, 0, added, 5))
		return 0;
	if (pairs > 0 && !arg_is_int(s, first, "a", 1))
		return 0;
	return pairs < 2 || arg_is_string(s, first + 1, "b", "two");
}

static inline int check_family(const struct family *f, const char *name, const char *category,
			       uint32_t name_flag)
{
	const struct seen *s = find(f->kind, name);
	if (!s)
		return 0;
	const int ok = strcmp(s->category, category) == 0 &&
		       s->flags == (f->items | f->more | name_flag) &&
		       s->id == (f->items & W_ID ? ID : 0u) &&
		       (!(f->items & KYMO_SITE_TID) || s->tid == TID) &&
		       (!(f->items & W_TIME) || labs((long)(s->monotonic_us - TIME)) < 1000000) &&
		       check_pairs(s, f->added, 1, f->pairs);
	if (!ok)
		fprintf(stderr, "%s: flags %x id %lu tid %d time %ld args %u category %s\n", name,
			s->flags, (unsigned long)s->id, s->tid, (long)s->monotonic_us,
			s->args_count, s->category);
	return ok;
}

static inline int check_scope(const struct scope_row *row)
{
	const struct seen *begin = find(KYMO_KIND_BEGIN, row->macro);
	const struct seen *end = find(KYMO_KIND_END, row->macro);
	return begin && end && begin->line == end->line && (begin->flags & KYMO_SITE_SCOPE) &&
	       check_pairs(begin, row->added, 0, row->pairs);
}

/* A flow event is not named for its span: it has the category and the id of the macro. */
static inline int check_flow(uint32_t kind, uint64_t id)
{
	size_t flows = 0;
	for (size_t i = 0; i < seen_count; i++)
		flows += seen_events[i].kind == kind && seen_events[i].id == id &&
			 strcmp(seen_events[i].name, "flow") == 0 &&
			 strcmp(seen_events[i].category, "test") == 0;
	return flows == 1;
}

/* What is no family. */
static inline void emit_others(void)
{
	TRACE_EVENT_CLOCK_SYNC_RECEIVER("receiver-id");
	TRACE_EVENT_CLOCK_SYNC_ISSUER("issuer-id", 1000, 2000);
	TRACE_LOG_MESSAGE("file.cc", "went wrong", 42);
	TRACE_LINK_IDS("test", "link", 0x1000, TRACE_ID_GLOBAL(0x2000));
	TRACE_EVENT_END("test.end", "ends", 1);
	TRACE_EVENT_END("test", "end with a name", P1);
	TRACE_EVENT_INSTANT("test", "four pairs", "a", 1, "b", 2, "c", 3, "d", 4);
}

static const int local_object = 0;
static inline void emit_ids(void)
{
	TRACE_EVENT_ASYNC_BEGIN0("test", "id int", -1);
	TRACE_EVENT_ASYNC_BEGIN0("test", "id unsigned", 0xfffffffffffffff0u);
	TRACE_EVENT_ASYNC_BEGIN0("test", "id pointer", &local_object);
	TRACE_EVENT_ASYNC_BEGIN0("test", "id local", TRACE_ID_LOCAL(7));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id local pointer", TRACE_ID_LOCAL(&local_object));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id global", TRACE_ID_GLOBAL(8u));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id global pointer", TRACE_ID_GLOBAL(&local_object));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id mangle", TRACE_ID_MANGLE(9));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id dont mangle", TRACE_ID_DONT_MANGLE(&local_object));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id scope a", TRACE_ID_WITH_SCOPE("a", 10));
	TRACE_EVENT_ASYNC_END0("test", "id scope a", TRACE_ID_WITH_SCOPE("a", 10));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id scope b", TRACE_ID_WITH_SCOPE("b", 10));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id scope local",
				 TRACE_ID_WITH_SCOPE("a", TRACE_ID_LOCAL(10)));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id scope pointer",
				 TRACE_ID_WITH_SCOPE("a", &local_object));
	TRACE_EVENT_ASYNC_BEGIN0("test", "id scope global",
				 TRACE_ID_WITH_SCOPE("a", TRACE_ID_GLOBAL(&local_object)));
}
static inline int check_id(const char *name, uint64_t id, int local)
{
	const struct seen *s = find(KYMO_KIND_ASYNC_BEGIN, name);
	return s && s->id == id && !(s->flags & KYMO_SITE_LOCAL_ID) == !local;
}
static inline uint64_t id_of(const char *name)
{
	const struct seen *s = find(KYMO_KIND_ASYNC_BEGIN, name);
	return s ? s->id : 0;
}

/* Values that both languages have. */
enum colour { RED, GREEN = 7 };
static char long_text[2 * KYMO_STRING_MAX];
static inline void emit_values(void)
{
	char array[] = "array";
	const char *const null_text = NULL;
	memset(long_text, 'x', sizeof(long_text) - 1);
	TRACE_EVENT_INSTANT1("test", "int", THREAD, "v", -5);
	TRACE_EVENT_INSTANT1("test", "short", THREAD, "v", (short)-6);
	TRACE_EVENT_INSTANT1("test", "long long", THREAD, "v", -7ll);
	TRACE_EVENT_INSTANT1("test", "unsigned", THREAD, "v", 8u);
	TRACE_EVENT_INSTANT1("test", "size_t", THREAD, "v", sizeof(int));
	TRACE_EVENT_INSTANT1("test", "double", THREAD, "v", 0.5);
	TRACE_EVENT_INSTANT1("test", "float", THREAD, "v", 0.25f);
	TRACE_EVENT_INSTANT1("test", "pointer", THREAD, "v", &local_object);
	TRACE_EVENT_INSTANT1("test", "literal", THREAD, "v", "text");
	TRACE_EVENT_INSTANT1("test", "array", THREAD, "v", array);
	TRACE_EVENT_INSTANT1("test", "copy", THREAD, "v", TRACE_STR_COPY(array));
	TRACE_EVENT_INSTANT1("test", "long", THREAD, "v", long_text);
	TRACE_EVENT_INSTANT1("test", "null", THREAD, "v", null_text);
	TRACE_EVENT_INSTANT2("test", "two strings", THREAD, "v", "one", "w", "two");
	TRACE_COUNTER1("test", "double counter", 2.5);
}

/* Names, categories and keys that are no literals; each line runs twice. */
static const char constant_category[] = "test";
static const char *variable_category = "test";
static const char *variable_key = "key";
static inline void emit_names(int round)
{
	static const char *const names[] = {"names[0]", "names[1]"};
	char buffer[32];
	snprintf(buffer, sizeof(buffer), "buffer %d", round);
	TRACE_EVENT_INSTANT0("test", names[round], THREAD);
	TRACE_EVENT_INSTANT0("test", round ? "ternary 1" : "ternary 0", THREAD);
	TRACE_EVENT_COPY_INSTANT0("test", buffer, THREAD);
	TRACE_EVENT_INSTANT1(variable_category, round ? "variable 1" : "variable 0", THREAD,
			     variable_key, round);
	TRACE_EVENT_INSTANT1(constant_category, round ? "constant 1" : "constant 0", THREAD, "key",
			     round);
	TRACE_EVENT_INSTANT1(TRACE_DISABLED_BY_DEFAULT("test"), round ? "by name 1" : "by name 0",
			     THREAD, "key", round);
	TRACE_EVENT1("test", round ? "scope 1" : "scope 0", variable_key, round);
}
static inline int check_name(const char *name, const char *category, const char *key, int value)
{
	const struct seen *s = find(KYMO_KIND_INSTANT, name);
	return s && strcmp(s->category, category) == 0 && (!key || arg_is_int(s, 0, key, value));
}

static void every_macro_records_its_event(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		assert_true(check_family(&families[i], families[i].macro, "test", 0));
}

static void every_macro_takes_a_name_made_at_run_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		assert_true(check_family(&families[i], runtime_name(families[i].macro), "test,more",
					 KYMO_SITE_NAME));
}

static void every_macro_does_nothing_while_its_category_is_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < seen_count; i++)
		assert_string_not_equal(seen_events[i].category, "off");
}

static void a_scope_has_a_begin_and_an_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		assert_true(check_scope(&scopes[i]));
}

static void flow_flags_become_flow_events(void **state)
{
	(void)state;
	assert_true(check_flow(KYMO_KIND_FLOW_BEGIN, 1000));
	assert_true(check_flow(KYMO_KIND_FLOW_STEP, 1001));
	assert_true(check_flow(KYMO_KIND_FLOW_END, 1002));
}

static const struct seen *clock_sync_of(const char *sync_id)
{
	for (size_t i = 0; i < seen_count; i++)
		if (seen_events[i].kind == KYMO_KIND_CLOCK_SYNC &&
		    strcmp(seen_events[i].args[0].string, sync_id) == 0)
			return &seen_events[i];
	return NULL;
}

static void clock_syncs_carry_their_id(void **state)
{
	(void)state;
	const struct seen *receiver = clock_sync_of("receiver-id");
	const struct seen *issuer = clock_sync_of("issuer-id");
	assert_non_null(receiver);
	assert_non_null(issuer);
	assert_string_equal(receiver->category, "__metadata");
	assert_string_equal(receiver->name, "clock_sync");
	assert_true(arg_is_string(receiver, 0, "sync_id", "receiver-id"));
	assert_int_equal(issuer->flags, KYMO_SITE_TIME);
	assert_true(labs((long)(issuer->monotonic_us - 2000)) < 1000000);
	assert_true(arg_is_int(issuer, 1, "issue_ts", 1000));
}

static int ends_without_a_name(void)
{
	for (size_t i = 0; i < seen_count; i++)
		if (strcmp(seen_events[i].category, "test.end") == 0)
			return seen_events[i].kind == KYMO_KIND_END &&
			       seen_events[i].name[0] == '\0' &&
			       arg_is_int(&seen_events[i], 0, "ends", 1);
	return 0;
}

static void other_macros_record_what_they_say(void **state)
{
	(void)state;
	const struct seen *log = find(KYMO_KIND_INSTANT, "LogMessage");
	assert_true(arg_is_string(log, 0, "file", "file.cc"));
	assert_true(arg_is_string(log, 1, "message", "went wrong"));
	assert_true(arg_is_int(log, 2, "line", 42));
	const struct seen *link = find(KYMO_KIND_ASYNC_INSTANT, "link");
	assert_non_null(link);
	assert_true(link->id == 0x1000);
	assert_true(arg_is_uint(link, 0, "linked_id", 0x2000));
	assert_true(arg_is_int(find(KYMO_KIND_END, "end with a name"), 0, "a", 1));
	assert_true(ends_without_a_name());
	assert_true(arg_is_int(find(KYMO_KIND_INSTANT, "four pairs"), 3, "d", 4));
}

static void ids_are_numbers_and_know_whether_they_are_local(void **state)
{
	(void)state;
	const uint64_t pointer = (uint64_t)(uintptr_t)&local_object;
	assert_true(check_id("id int", UINT64_MAX, 0));
	assert_true(check_id("id unsigned", 0xfffffffffffffff0u, 0));
	assert_true(check_id("id pointer", pointer, 1));
	assert_true(check_id("id local", 7, 1));
	assert_true(check_id("id local pointer", pointer, 1));
	assert_true(check_id("id global", 8, 0));
	assert_true(check_id("id global pointer", pointer, 0));
	assert_true(check_id("id mangle", 9, 1));
	assert_true(check_id("id dont mangle", pointer, 0));
}

static void the_scope_of_an_id_keeps_it_apart(void **state)
{
	(void)state;
	const uint64_t a = id_of("id scope a");
	const struct seen *end = find(KYMO_KIND_ASYNC_END, "id scope a");
	assert_true(a != 10 && a != id_of("id scope b"));
	assert_true(end && end->id == a);
	assert_true(check_id("id scope a", a, 0));
	assert_true(check_id("id scope local", a, 1));
	assert_true(check_id("id scope pointer", id_of("id scope global"), 1));
	assert_true(check_id("id scope global", id_of("id scope pointer"), 0));
}

static void values_keep_type_and_value(void **state)
{
	(void)state;
	assert_true(arg_is_int(find(KYMO_KIND_INSTANT, "int"), 0, "v", -5));
	assert_true(arg_is_int(find(KYMO_KIND_INSTANT, "short"), 0, "v", -6));
	assert_true(arg_is_int(find(KYMO_KIND_INSTANT, "long long"), 0, "v", -7));
	assert_true(arg_is_uint(find(KYMO_KIND_INSTANT, "unsigned"), 0, "v", 8));
	assert_true(arg_is_uint(find(KYMO_KIND_INSTANT, "size_t"), 0, "v", sizeof(int)));
	assert_true(arg_is_double(find(KYMO_KIND_INSTANT, "double"), 0, "v", 0.5));
	assert_true(arg_is_double(find(KYMO_KIND_INSTANT, "float"), 0, "v", 0.25));
	assert_true(arg_is_pointer(find(KYMO_KIND_INSTANT, "pointer"), 0, "v", &local_object));
	assert_true(arg_is_double(find(KYMO_KIND_COUNTER, "double counter"), 0, "value", 2.5));
}

static void strings_are_copied_and_cut(void **state)
{
	(void)state;
	assert_true(arg_is_string(find(KYMO_KIND_INSTANT, "literal"), 0, "v", "text"));
	assert_true(arg_is_string(find(KYMO_KIND_INSTANT, "array"), 0, "v", "array"));
	assert_true(arg_is_string(find(KYMO_KIND_INSTANT, "copy"), 0, "v", "array"));
	assert_true(arg_is_string(find(KYMO_KIND_INSTANT, "null"), 0, "v", "(null)"));
	assert_true(arg_is_string(find(KYMO_KIND_INSTANT, "two strings"), 1, "w", "two"));
	const struct seen_arg *cut =
		arg_at(find(KYMO_KIND_INSTANT, "long"), 0, "v", KYMO_TYPE_STRING);
	assert_true(cut && cut->cut && strlen(cut->string) == KYMO_STRING_MAX);
}

static void names_categories_and_keys_need_not_be_literals(void **state)
{
	(void)state;
	static const char by_name[] = "disabled-by-default-test";
	for (int round = 0; round < 2; round++) {
		assert_true(check_name(round ? "names[1]" : "names[0]", "test", NULL, 0));
		assert_true(check_name(round ? "ternary 1" : "ternary 0", "test", NULL, 0));
		assert_true(check_name(round ? "buffer 1" : "buffer 0", "test", NULL, 0));
		assert_true(check_name(round ? "variable 1" : "variable 0", "test", "key", round));
		assert_true(check_name(round ? "constant 1" : "constant 0", "test", "key", round));
		assert_true(check_name(round ? "by name 1" : "by name 0", by_name, "key", round));
		assert_true(arg_is_int(find(KYMO_KIND_BEGIN, round ? "scope 1" : "scope 0"), 0,
				       "key", round));
	}
}

/* bool in C++, _Bool in C: both may be asked for. */
#ifdef __cplusplus
#define TRUTH bool
#else
#define TRUTH _Bool
#endif
static TRUTH enabled_on, enabled_off = 1, enabled_variable, new_first, new_again = 1;
static int enabled_expression;

static inline void ask(TRUTH *is_new)
{
	TRACE_EVENT_IS_NEW_TRACE(is_new);
}
static inline void ask_what_is_on(void)
{
	TRACE_EVENT_WARMUP_CATEGORY("test");
	TRACE_EVENT_CATEGORY_GROUP_ENABLED("test", &enabled_on);
	TRACE_EVENT_CATEGORY_GROUP_ENABLED("off", &enabled_off);
	TRACE_EVENT_CATEGORY_GROUP_ENABLED(variable_category, &enabled_variable);
	enabled_expression =
		TRACE_EVENT_CATEGORY_ENABLED("off") * 2 + TRACE_EVENT_CATEGORY_ENABLED("test,off");
	ask(&new_first);
	ask(&new_again);
}

static void categories_can_be_asked_whether_they_are_on(void **state)
{
	(void)state;
	assert_true(enabled_on);
	assert_false(enabled_off);
	assert_true(enabled_variable);
	assert_int_equal(enabled_expression, 1);
}

static void a_trace_is_new_once(void **state)
{
	(void)state;
	assert_true(new_first);
	assert_false(new_again);
}

/* ---- events whose parts are known only when they happen, as V8's and Node's own calls have them ---- */

static uint64_t api_handle, api_handle_off;

/* Add an event as Node's Emit() does: with what came from a script. */
static uint64_t api_add(char phase, const char *name, uint64_t id, unsigned flags)
{
	const unsigned char *const on = TRACE_EVENT_API_GET_CATEGORY_GROUP_ENABLED("test");
	const double ratio = 0.25;
	const char *names[4] = {"number", "ratio", "yes", "text"};
	const unsigned char types[4] = {TRACE_VALUE_TYPE_INT, TRACE_VALUE_TYPE_DOUBLE,
					TRACE_VALUE_TYPE_BOOL, TRACE_VALUE_TYPE_COPY_STRING};
	uint64_t values[4] = {(uint64_t)-7, 0, 1, (uint64_t)(uintptr_t) "a string"};
	memcpy(&values[1], &ratio, sizeof(ratio));
	return TRACE_EVENT_API_ADD_TRACE_EVENT(phase, on, name, (const char *)0, id, 0, 4, names,
					       types, values, flags);
}

static void emit_api(void)
{
	const unsigned char *const on = TRACE_EVENT_API_GET_CATEGORY_GROUP_ENABLED("test");
	const unsigned char *const off = TRACE_EVENT_API_GET_CATEGORY_GROUP_ENABLED("off");
	char copied[] = "api copied";
	api_handle = api_add(TRACE_EVENT_PHASE_COMPLETE, "api span", 0, NONE);
	TRACE_EVENT_API_UPDATE_TRACE_EVENT_DURATION(on, "api span", api_handle);
	api_add(TRACE_EVENT_PHASE_INSTANT, "api instant", 0, PROCESS);
	api_add(TRACE_EVENT_PHASE_COUNTER, "api counter", 0, NONE);
	api_add(TRACE_EVENT_PHASE_INSTANT, copied, 0, TRACE_EVENT_FLAG_COPY | THREAD);
	copied[0] = '?';
	api_add(TRACE_EVENT_PHASE_NESTABLE_ASYNC_BEGIN, "api async", ID,
		TRACE_EVENT_FLAG_HAS_ID | TRACE_EVENT_FLAG_HAS_LOCAL_ID);
	TRACE_EVENT_API_ADD_TRACE_EVENT_WITH_TIMESTAMP(TRACE_EVENT_PHASE_INSTANT, on, "api then", 0,
						       0, 0, 0, 0, 0, 0, THREAD, TIME);
	TRACE_EVENT_API_ADD_TRACE_EVENT(TRACE_EVENT_PHASE_BEGIN, on, "api arrow", 0, 0, 4321, 0, 0,
					0, 0, TRACE_EVENT_FLAG_FLOW_OUT);
	TRACE_EVENT_API_ADD_METADATA_EVENT(on, "api fact", 0, 0, 0, 0, NONE);
	api_handle_off = TRACE_EVENT_API_ADD_TRACE_EVENT(TRACE_EVENT_PHASE_INSTANT, off, "api off",
							 0, 0, 0, 0, 0, 0, 0, THREAD);
	TRACE_EVENT_API_UPDATE_TRACE_EVENT_DURATION(off, "api off", api_handle_off);
}

#ifndef KYMO_EMBEDDED
static void expect_api_args(const struct seen *s)
{
	assert_non_null(s);
	assert_string_equal(s->category, "test");
	assert_int_equal(s->args_count, 4);
	assert_string_equal(s->args[0].key, "number");
	assert_int_equal(s->args[0].type, KYMO_TYPE_INT);
	assert_int_equal(s->args[0].value.i, -7);
	assert_int_equal(s->args[1].type, KYMO_TYPE_DOUBLE);
	assert_true(s->args[1].value.d == 0.25);
	assert_int_equal(s->args[2].type, KYMO_TYPE_BOOL);
	assert_int_equal(s->args[2].value.u, 1);
	assert_string_equal(s->args[3].key, "text");
	assert_string_equal(s->args[3].string, "a string");
}
#endif

static void events_can_be_put_together_when_they_happen(void **state)
{
	(void)state;
	assert_int_equal(api_handle_off, 0);
	assert_null(find(KYMO_KIND_INSTANT, "api off"));
#ifdef KYMO_EMBEDDED /* only libkymo can */
	assert_int_equal(api_handle, 0);
#else
	assert_true(api_handle != 0);
	expect_api_args(find(KYMO_KIND_BEGIN, "api span"));
	assert_non_null(find(KYMO_KIND_END, "api span"));
	expect_api_args(find(KYMO_KIND_INSTANT, "api instant"));
	assert_true(find(KYMO_KIND_INSTANT, "api instant")->flags & KYMO_SITE_PROCESS);
	expect_api_args(find(KYMO_KIND_COUNTER, "api counter"));
	expect_api_args(find(KYMO_KIND_INSTANT, "api copied"));
	expect_api_args(find(KYMO_KIND_ASYNC_BEGIN, "api async"));
	assert_int_equal(find(KYMO_KIND_ASYNC_BEGIN, "api async")->id, ID);
	assert_true(find(KYMO_KIND_ASYNC_BEGIN, "api async")->flags & KYMO_SITE_LOCAL_ID);
	assert_non_null(find(KYMO_KIND_INSTANT, "api then"));
	assert_true(labs((long)(find(KYMO_KIND_INSTANT, "api then")->monotonic_us - TIME)) <
		    1000000);
	assert_non_null(find(KYMO_KIND_BEGIN, "api arrow"));
	assert_non_null(find(KYMO_KIND_METADATA, "api fact"));
	assert_true(check_flow(KYMO_KIND_FLOW_BEGIN, 4321));
#endif
}

static inline void emit_common(void)
{
	emit_families();
	emit_families_with_runtime_names();
	emit_families_off();
	emit_scopes();
	emit_others();
	emit_ids();
	emit_values();
	emit_names(0);
	emit_names(1);
	ask_what_is_on();
	emit_api();
}

#define COMMON_TESTS                                                                               \
	cmocka_unit_test(every_macro_records_its_event),                                           \
		cmocka_unit_test(every_macro_takes_a_name_made_at_run_time),                       \
		cmocka_unit_test(every_macro_does_nothing_while_its_category_is_off),              \
		cmocka_unit_test(a_scope_has_a_begin_and_an_end),                                  \
		cmocka_unit_test(flow_flags_become_flow_events),                                   \
		cmocka_unit_test(clock_syncs_carry_their_id),                                      \
		cmocka_unit_test(other_macros_record_what_they_say),                               \
		cmocka_unit_test(ids_are_numbers_and_know_whether_they_are_local),                 \
		cmocka_unit_test(the_scope_of_an_id_keeps_it_apart),                               \
		cmocka_unit_test(values_keep_type_and_value),                                      \
		cmocka_unit_test(strings_are_copied_and_cut),                                      \
		cmocka_unit_test(names_categories_and_keys_need_not_be_literals),                  \
		cmocka_unit_test(categories_can_be_asked_whether_they_are_on),                     \
		cmocka_unit_test(a_trace_is_new_once),                                             \
		cmocka_unit_test(events_can_be_put_together_when_they_happen)

#endif
