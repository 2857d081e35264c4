/* SPDX-License-Identifier: MIT */
/*
 * trace_event.h: Chromium's trace event macros, recorded by kymo. Code written for Chromium, V8, Skia
 * or Node compiles unchanged, as C++11 and later and as C11.
 *
 *	TRACE_EVENT1("net", "Socket::Read", "bytes", bytes);
 *	TRACE_EVENT_NESTABLE_ASYNC_BEGIN0("net", "request", TRACE_ID_LOCAL(this));
 *
 * A category is a string or a comma-separated list that lives as long as the program; so do keys. A
 * trace point keeps the category and the keys of its first event. A name can be any string: a constant
 * is stored once with the trace point, any other is copied into each event (the COPY_ forms and the
 * others are the same). As with kymo.h there is no lock, and no allocation except in the program's own
 * conversion functions. Nothing is initialised at run time, and nothing is evaluated while the category
 * is off.
 *
 * Values are integers, enums, floating point, bool, pointers and C strings; in C++ also objects with
 * c_str(), or with data() and size(), objects that convert to an arithmetic type (std::atomic), times
 * (in microseconds), and pointers, raw or smart, to objects with AppendAsTraceFormat(std::string *): the
 * text that it appends is recorded, and the caller keeps the object. All strings are copied and cut at
 * KYMO_STRING_MAX. An event has up to KYMO_ARGS_MAX pairs.
 *
 * Ids are integers or pointers. Pointers and TRACE_ID_LOCAL() have a meaning in this process alone.
 * TRACE_ID_WITH_SCOPE() mixes a hash of the scope into the id. Times are microseconds of
 * CLOCK_MONOTONIC: numbers, or objects with since_origin().InMicroseconds() or ToInternalValue().
 *
 * Some kinds of events become others: the steps of ASYNC_STEP_ are instants of the asynchronous span
 * with an argument "step"; marks are instants; a flow flag becomes a flow event named "flow" inside the
 * span (the same category and id are one arrow); contexts are asynchronous spans.
 *
 * -DKYMO_DISABLE leaves nothing but the store of false through the pointers that
 * TRACE_EVENT_CATEGORY_GROUP_ENABLED and TRACE_EVENT_IS_NEW_TRACE take.
 */
#ifndef KYMO_TRACE_EVENT_H
#define KYMO_TRACE_EVENT_H

#include <kymo/kymo.h>

/* What an instant concerns. */
#define TRACE_EVENT_SCOPE_GLOBAL (0u << 3)
#define TRACE_EVENT_SCOPE_PROCESS (1u << 3)
#define TRACE_EVENT_SCOPE_THREAD (2u << 3)
#define TRACE_EVENT_SCOPE_NAME_GLOBAL ('g')
#define TRACE_EVENT_SCOPE_NAME_PROCESS ('p')
#define TRACE_EVENT_SCOPE_NAME_THREAD ('t')

/* Flags. Only those of flows and scopes have an effect. */
#define TRACE_EVENT_FLAG_NONE 0u
#define TRACE_EVENT_FLAG_COPY (1u << 0)
#define TRACE_EVENT_FLAG_HAS_ID (1u << 1)
#define TRACE_EVENT_FLAG_MANGLE_ID (1u << 2)
#define TRACE_EVENT_FLAG_SCOPE_OFFSET (1u << 3)
#define TRACE_EVENT_FLAG_SCOPE_EXTRA (1u << 4)
#define TRACE_EVENT_FLAG_EXPLICIT_TIMESTAMP (1u << 5)
#define TRACE_EVENT_FLAG_ASYNC_TTS (1u << 6)
#define TRACE_EVENT_FLAG_BIND_TO_ENCLOSING (1u << 7)
#define TRACE_EVENT_FLAG_FLOW_IN (1u << 8)
#define TRACE_EVENT_FLAG_FLOW_OUT (1u << 9)
#define TRACE_EVENT_FLAG_HAS_CONTEXT_ID (1u << 10)
#define TRACE_EVENT_FLAG_HAS_PROCESS_ID (1u << 11)
#define TRACE_EVENT_FLAG_HAS_LOCAL_ID (1u << 12)
#define TRACE_EVENT_FLAG_HAS_GLOBAL_ID (1u << 13)
#define TRACE_EVENT_FLAG_JAVA_STRING_LITERALS (1u << 16)
#define TRACE_EVENT_FLAG_SCOPE_MASK (TRACE_EVENT_FLAG_SCOPE_OFFSET | TRACE_EVENT_FLAG_SCOPE_EXTRA)

/* The phases and types of values in Chromium's files, for programs that pass them on. */
#define TRACE_EVENT_PHASE_BEGIN ('B')
#define TRACE_EVENT_PHASE_END ('E')
#define TRACE_EVENT_PHASE_COMPLETE ('X')
#define TRACE_EVENT_PHASE_INSTANT ('I')
#define TRACE_EVENT_PHASE_ASYNC_BEGIN ('S')
#define TRACE_EVENT_PHASE_ASYNC_STEP_INTO ('T')
#define TRACE_EVENT_PHASE_ASYNC_STEP_PAST ('p')
#define TRACE_EVENT_PHASE_ASYNC_END ('F')
#define TRACE_EVENT_PHASE_NESTABLE_ASYNC_BEGIN ('b')
#define TRACE_EVENT_PHASE_NESTABLE_ASYNC_END ('e')
#define TRACE_EVENT_PHASE_NESTABLE_ASYNC_INSTANT ('n')
#define TRACE_EVENT_PHASE_FLOW_BEGIN ('s')
#define TRACE_EVENT_PHASE_FLOW_STEP ('t')
#define TRACE_EVENT_PHASE_FLOW_END ('f')
#define TRACE_EVENT_PHASE_METADATA ('M')
#define TRACE_EVENT_PHASE_COUNTER ('C')
#define TRACE_EVENT_PHASE_SAMPLE ('P')
#define TRACE_EVENT_PHASE_CREATE_OBJECT ('N')
#define TRACE_EVENT_PHASE_SNAPSHOT_OBJECT ('O')
#define TRACE_EVENT_PHASE_DELETE_OBJECT ('D')
#define TRACE_EVENT_PHASE_MEMORY_DUMP ('v')
#define TRACE_EVENT_PHASE_MARK ('R')
#define TRACE_EVENT_PHASE_CLOCK_SYNC ('c')
#define TRACE_EVENT_PHASE_ENTER_CONTEXT ('(')
#define TRACE_EVENT_PHASE_LEAVE_CONTEXT (')')
#define TRACE_EVENT_PHASE_LINK_IDS ('=')
#define TRACE_VALUE_TYPE_BOOL ((unsigned char)1)
#define TRACE_VALUE_TYPE_UINT ((unsigned char)2)
#define TRACE_VALUE_TYPE_INT ((unsigned char)3)
#define TRACE_VALUE_TYPE_DOUBLE ((unsigned char)4)
#define TRACE_VALUE_TYPE_POINTER ((unsigned char)5)
#define TRACE_VALUE_TYPE_STRING ((unsigned char)6)
#define TRACE_VALUE_TYPE_COPY_STRING ((unsigned char)7)
#define TRACE_VALUE_TYPE_CONVERTABLE ((unsigned char)8)

/* A category that is off unless asked for by this whole name. */
#define TRACE_DISABLED_BY_DEFAULT(name) "disabled-by-default-" name

/*
 * The macros. The digit in a name is the number of pairs; the comment above each group says what it
 * takes.
 */

/* Ids: with a meaning in this process alone, in all processes, or within a scope. */
#define TRACE_ID_LOCAL(id) KYMO_I_TE_LOCAL(id)
#define TRACE_ID_GLOBAL(id) KYMO_I_TE_GLOBAL(id)
#define TRACE_ID_WITH_SCOPE(...) KYMO_I_TE_WITH_SCOPE(__VA_ARGS__)
#define TRACE_ID_MANGLE(id) TRACE_ID_LOCAL(id)
#define TRACE_ID_DONT_MANGLE(id) TRACE_ID_GLOBAL(id)

/* Strings, which are always copied; the function as a name. */
#define TRACE_STR_COPY(text) KYMO_I_TE_TEXT(text)
#define TRACE_STR_STATIC(text) KYMO_I_TE_TEXT(text)
#define TRACE_FUNC __PRETTY_FUNCTION__

/* cat, name, pairs: a span until the end of the enclosing block. _ALWAYS is Skia's. */
#define TRACE_EVENT0(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT1(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT2(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT0_ALWAYS(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT1_ALWAYS(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT2_ALWAYS(...) KYMO_I_TE_SPAN(__VA_ARGS__)

/* The same with fewer costs elsewhere; a task that runs, with the place that posted it. */
#define TRACE_EVENT_BINARY_EFFICIENT0(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_TASK_EXECUTION(name, task)                                                           \
	KYMO_I_TE_SPAN("toplevel", name, "src_file", (task).posted_from.file_name(), "src_func",   \
		       (task).posted_from.function_name())
/* isolate, cat, name: V8's; what it counts beside is not counted. */
#define TRACE_EVENT_CALL_STATS_SCOPED(isolate, cat, name)                                          \
	(void)sizeof(isolate);                                                                     \
	KYMO_I_TE_SPAN(cat, name)

/* cat, name, id, TRACE_EVENT_FLAG_FLOW_, pairs: the same where an arrow begins, ends or passes */
#define TRACE_EVENT_WITH_FLOW0(...) KYMO_I_TE_FLOW_SPAN(__VA_ARGS__)
#define TRACE_EVENT_WITH_FLOW1(...) KYMO_I_TE_FLOW_SPAN(__VA_ARGS__)
#define TRACE_EVENT_WITH_FLOW2(...) KYMO_I_TE_FLOW_SPAN(__VA_ARGS__)

/* cat, name, [flags,] pairs: a span by hand */
#define TRACE_EVENT_BEGIN0(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_BEGIN1(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_BEGIN2(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN0(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN1(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN2(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_BEGIN_WITH_FLAGS0(cat, name, flags) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, cat, name)
#define TRACE_EVENT_BEGIN_WITH_FLAGS1(cat, name, flags, ...)                                       \
	KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, cat, name, __VA_ARGS__)
#define TRACE_EVENT_END0(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_END1(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_END2(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END0(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END1(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END2(...) KYMO_I_TE_PLAIN(KYMO_KIND_END, __VA_ARGS__)
#define TRACE_EVENT_END_WITH_FLAGS0(cat, name, flags) KYMO_I_TE_PLAIN(KYMO_KIND_END, cat, name)
#define TRACE_EVENT_END_WITH_FLAGS1(cat, name, flags, ...)                                         \
	KYMO_I_TE_PLAIN(KYMO_KIND_END, cat, name, __VA_ARGS__)

/* cat, name, id, tid, time, pairs: a span on behalf of another thread, so an asynchronous one */
#define TRACE_EVENT_BEGIN_WITH_ID_TID_AND_TIMESTAMP0(...)                                          \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP0(...)                                     \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP1(...)                                     \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP2(...)                                     \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_END_WITH_ID_TID_AND_TIMESTAMP0(...)                                            \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP0(...)                                       \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP1(...)                                       \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP2(...)                                       \
	KYMO_I_TE_ID_TID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)

/* cat, name, scope, [time,] pairs: a point in time */
#define TRACE_EVENT_INSTANT0(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT1(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT2(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_COPY_INSTANT0(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_COPY_INSTANT1(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_COPY_INSTANT2(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_FLAGS0(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_FLAGS1(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT0_ALWAYS(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT1_ALWAYS(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT2_ALWAYS(...) KYMO_I_TE_INSTANT(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP0(...) KYMO_I_TE_INSTANT_TIME(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP1(...) KYMO_I_TE_INSTANT_TIME(__VA_ARGS__)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP2(...) KYMO_I_TE_INSTANT_TIME(__VA_ARGS__)

/* cat, name, [time,] pairs: a mark */
#define TRACE_EVENT_COPY_MARK(...) KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_COPY_MARK1(...) KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP0(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP1(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP2(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_COPY_MARK_WITH_TIMESTAMP(...) KYMO_I_TE_TIME(KYMO_KIND_INSTANT, __VA_ARGS__)

/* cat, name, [id, or time, or flags,] and a value or two pairs: values over time */
#define TRACE_COUNTER1(cat, name, value)                                                           \
	KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, cat, name, "value", value)
#define TRACE_COUNTER2(...) KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COUNTER_ID1(cat, name, id, value)                                                    \
	KYMO_I_TE_ID(KYMO_KIND_COUNTER, cat, name, id, "value", value)
#define TRACE_COUNTER_ID2(...) KYMO_I_TE_ID(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COPY_COUNTER1(cat, name, value)                                                      \
	KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, cat, name, "value", value)
#define TRACE_COPY_COUNTER2(...) KYMO_I_TE_PLAIN(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COPY_COUNTER_ID1(cat, name, id, value)                                               \
	KYMO_I_TE_ID(KYMO_KIND_COUNTER, cat, name, id, "value", value)
#define TRACE_COPY_COUNTER_ID2(...) KYMO_I_TE_ID(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COUNTER_WITH_TIMESTAMP1(cat, name, time, value)                                      \
	KYMO_I_TE_TIME(KYMO_KIND_COUNTER, cat, name, time, "value", value)
#define TRACE_COUNTER_WITH_TIMESTAMP2(...) KYMO_I_TE_TIME(KYMO_KIND_COUNTER, __VA_ARGS__)
#define TRACE_COUNTER_WITH_FLAG1(cat, name, flags, value) TRACE_COUNTER1(cat, name, value)
#define TRACE_COUNTER1_ALWAYS(cat, name, value) TRACE_COUNTER1(cat, name, value)

/* cat, name, id, or tid and time, pairs: a sample */
#define TRACE_EVENT_SAMPLE_WITH_ID1(...) KYMO_I_TE_ID(KYMO_KIND_SAMPLE, __VA_ARGS__)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP0(...)                                            \
	KYMO_I_TE_TID_TIME(KYMO_KIND_SAMPLE, __VA_ARGS__)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP1(...)                                            \
	KYMO_I_TE_TID_TIME(KYMO_KIND_SAMPLE, __VA_ARGS__)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP2(...)                                            \
	KYMO_I_TE_TID_TIME(KYMO_KIND_SAMPLE, __VA_ARGS__)

/* cat, name, id, [step,] [time,] pairs: a span that may cross threads */
#define TRACE_EVENT_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                               \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP1(...)                                               \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP2(...)                                               \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                          \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP0(...)                                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP1(...)                                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP2(...)                                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_ASYNC_END_WITH_TIMESTAMP0(...)                                            \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_INTO0(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_INTO1(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_PAST0(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_PAST1(...) KYMO_I_TE_ASYNC_STEP(__VA_ARGS__)
#define TRACE_EVENT_ASYNC_STEP_INTO_WITH_TIMESTAMP0(cat, name, id, step, time)                     \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, cat, name, id, time, "step", step)

/* cat, name, id, [time,] [flags,] pairs: the same, nested in their order */
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                      \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1(...)                                      \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP2(...)                                      \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0(...)                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1(...)                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP2(...)                                 \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TTS2(...)                                       \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_FLAGS0(cat, name, id, flags)                         \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, cat, name, id)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP_AND_FLAGS0(cat, name, id, time, flags)     \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_BEGIN, cat, name, id, time)
#define TRACE_EVENT_NESTABLE_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP0(...)                                        \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP1(...)                                        \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP2(...)                                        \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP0(...)                                   \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP1(...)                                   \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP2(...)                                   \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TTS2(...)                                         \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_FLAGS0(cat, name, id, flags)                           \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, cat, name, id)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP_AND_FLAGS0(cat, name, id, time, flags)       \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_END, cat, name, id, time)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT0(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT1(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT2(...) KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP0(...)                                    \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP1(...)                                    \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP2(...)                                    \
	KYMO_I_TE_ID_TIME(KYMO_KIND_ASYNC_INSTANT, __VA_ARGS__)

/* cat, name, id, [step,] pairs: an arrow */
#define TRACE_EVENT_FLOW_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_FLOW_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_FLOW_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_FLOW_END0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_FLOW_END1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_FLOW_END2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_FLOW_STEP0(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_FLOW_STEP1(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_BEGIN0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_BEGIN1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_BEGIN2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_END0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_END1(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_END2(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_STEP0(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_COPY_FLOW_STEP1(...) KYMO_I_TE_FLOW_STEP(__VA_ARGS__)
#define TRACE_EVENT_FLOW_END_BIND_TO_ENCLOSING0(...) KYMO_I_TE_ID(KYMO_KIND_FLOW_END, __VA_ARGS__)

/* cat, name, id: an object appears, disappears, or has this state */
#define TRACE_EVENT_OBJECT_CREATED_WITH_ID(cat, name, id)                                          \
	KYMO_I_TE_ID(KYMO_KIND_OBJECT_NEW, cat, name, id)
#define TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID(cat, name, id, snapshot)                               \
	KYMO_I_TE_ID(KYMO_KIND_OBJECT_SNAPSHOT, cat, name, id, "snapshot", snapshot)
#define TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID_AND_TIMESTAMP(cat, name, id, time, snapshot)           \
	KYMO_I_TE_ID_TIME(KYMO_KIND_OBJECT_SNAPSHOT, cat, name, id, time, "snapshot", snapshot)
#define TRACE_EVENT_OBJECT_DELETED_WITH_ID(cat, name, id)                                          \
	KYMO_I_TE_ID(KYMO_KIND_OBJECT_DELETE, cat, name, id)

/* Link two ids; enter and leave a context (an async span), or do both with the enclosing block */
#define TRACE_LINK_IDS(cat, name, id, linked)                                                      \
	KYMO_I_TE_ID(KYMO_KIND_ASYNC_INSTANT, cat, name, id, "linked_id", KYMO_I_TE_ID_WORD(linked))
#define TRACE_EVENT_ENTER_CONTEXT(cat, name, id) KYMO_I_TE_ID(KYMO_KIND_ASYNC_BEGIN, cat, name, id)
#define TRACE_EVENT_LEAVE_CONTEXT(cat, name, id) KYMO_I_TE_ID(KYMO_KIND_ASYNC_END, cat, name, id)
#define TRACE_EVENT_SCOPED_CONTEXT(cat, name, id)                                                  \
	KYMO_I_TE_SPAN(cat, name, "context", KYMO_I_TE_ID_WORD(id))

/* A fact about the process, a mark that ties two tracing systems' clocks, a log message */
#define TRACE_EVENT_METADATA1(...) KYMO_I_TE_PLAIN(KYMO_KIND_METADATA, __VA_ARGS__)
#define TRACE_EVENT_CLOCK_SYNC_RECEIVER(sync_id)                                                   \
	KYMO_I_TE_PLAIN(KYMO_KIND_CLOCK_SYNC, "__metadata", "clock_sync", "sync_id", sync_id)
#define TRACE_EVENT_CLOCK_SYNC_ISSUER(sync_id, issue_time, issue_end_time)                         \
	KYMO_I_TE_TIME(KYMO_KIND_CLOCK_SYNC, "__metadata", "clock_sync", issue_end_time,           \
		       "sync_id", sync_id, "issue_ts", KYMO_I_TE_US(issue_time))
#define TRACE_LOG_MESSAGE(file, message, line)                                                     \
	KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, "log", "LogMessage", "file", file, "message", message,  \
			"line", line)

/* Store 1 in *ret while the category is on, else 0. */
#define TRACE_EVENT_CATEGORY_GROUP_ENABLED(cat, ret)                                               \
	((void)(*(ret) = KYMO_I_TE_ENABLED(cat) ? 1 : 0))
/* The same as an expression. */
#define TRACE_EVENT_CATEGORY_ENABLED(cat) (KYMO_I_TE_ENABLED(cat) ? 1 : 0)
/* Register the category, so that lists of categories have it. */
#define TRACE_EVENT_WARMUP_CATEGORY(cat) ((void)KYMO_I_TE_ENABLED(cat))

/* A pointer to a byte that is not 0 while the category is on; valid until the process forks. */
#define TRACE_EVENT_API_GET_CATEGORY_GROUP_ENABLED(cat) KYMO_I_TE_FLAG(cat)
/*
 * An event whose parts are known only when it happens. flag is the pointer from above; names, types (TRACE_VALUE_TYPE_) and values (as
 * uint64_t; strings as addresses) are arrays of num, at most KYMO_ARGS_MAX. Return not 0 if the event was recorded: the handle
 * that UPDATE_TRACE_EVENT_DURATION ends a TRACE_EVENT_PHASE_COMPLETE with.
 */
#define TRACE_EVENT_API_ADD_TRACE_EVENT(phase, flag, name, scope, id, bind_id, num, names, types,  \
					values, flags)                                             \
	KYMO_I_TE_ADD(phase, flag, name, scope, id, bind_id, num, names, types, values, flags, 0)
#define TRACE_EVENT_API_ADD_TRACE_EVENT_WITH_TIMESTAMP(phase, flag, name, scope, id, bind_id, num, \
						       names, types, values, flags, time)          \
	KYMO_I_TE_ADD(phase, flag, name, scope, id, bind_id, num, names, types, values,            \
		      (flags) | TRACE_EVENT_FLAG_EXPLICIT_TIMESTAMP, time)
#define TRACE_EVENT_API_ADD_METADATA_EVENT(flag, name, num, names, types, values, flags)           \
	((void)KYMO_I_TE_ADD(TRACE_EVENT_PHASE_METADATA, flag, name, 0, 0, 0, num, names, types,   \
			     values, flags, 0))
#define TRACE_EVENT_API_UPDATE_TRACE_EVENT_DURATION(flag, name, handle)                            \
	((void)((handle) ? KYMO_I_TE_ADD(TRACE_EVENT_PHASE_END, flag, name, 0, 0, 0, 0, 0, 0, 0,   \
					 TRACE_EVENT_FLAG_NONE, 0)                                 \
			 : (uint64_t)0))
/* A word to keep such a pointer in. */
#define TRACE_EVENT_API_ATOMIC_WORD intptr_t
#define TRACE_EVENT_API_ATOMIC_LOAD(word) KYMO_I_LOAD(&(word))
#define TRACE_EVENT_API_ATOMIC_STORE(word, value) KYMO_I_STORE(&(word), value)
/* Times as the WITH_TIMESTAMP forms take them, and of the calendar. The program includes time.h. */
#define TRACE_TIME_TICKS_NOW() KYMO_I_TE_NOW(CLOCK_MONOTONIC)
#define TRACE_TIME_NOW() KYMO_I_TE_NOW(CLOCK_REALTIME)

/* Store 1 in *ret if "__metadata" was switched on since this line last ran, else 0. */
#define TRACE_EVENT_IS_NEW_TRACE(ret) KYMO_I_TE_IS_NEW(ret)

/*
 * The newer macros, with up to KYMO_ARGS_MAX pairs but without tracks, flows or functions.
 * TRACE_EVENT_END takes cat, ... and also Node's cat, name, ...
 */
#define TRACE_EVENT(...) KYMO_I_TE_SPAN(__VA_ARGS__)
#define TRACE_EVENT_BEGIN(...) KYMO_I_TE_PLAIN(KYMO_KIND_BEGIN, __VA_ARGS__)
#define TRACE_EVENT_INSTANT(...) KYMO_I_TE_PLAIN(KYMO_KIND_INSTANT, __VA_ARGS__)
#define TRACE_EVENT_END(...) KYMO_I_JOIN(KYMO_I_TE_END_, KYMO_I_TE_PARITY(__VA_ARGS__))(__VA_ARGS__)
#define TRACE_COUNTER(cat, name, value) TRACE_COUNTER1(cat, name, value)

#include "trace_event_impl.h"

#endif /* KYMO_TRACE_EVENT_H */
