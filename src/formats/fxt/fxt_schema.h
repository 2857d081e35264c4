/* SPDX-License-Identifier: MIT */
/*
 * fxt_schema.h: the constants of Fuchsia's trace format, for its emitter, exporter and reader. A record is whole 64-bit
 * words; its first word has the record's type in bits 0 to 3 and its size in words in bits 4 to 15.
 */
#ifndef KY_FORMATS_FXT_FXT_SCHEMA_H
#define KY_FORMATS_FXT_FXT_SCHEMA_H

#include <stdint.h>

/* The first word of a file, a metadata record of its own. */
#define KY_FXT_MAGIC UINT64_C(0x0016547846040010)
#define KY_FXT_NS_PER_S UINT64_C(1000000000)

/* Index 0 of the string table is the empty string; a reference with this bit is a string in the record. */
#define KY_FXT_STRING_INLINE 0x8000u
#define KY_FXT_STRING_INDEX_MAX 32767u
/* Thread reference 0 is a thread in the record. */
#define KY_FXT_THREAD_INDEX_MAX 255u
#define KY_FXT_ARGS_MAX 15u

enum {
	KY_FXT_RECORD_METADATA = 0,
	KY_FXT_RECORD_INITIALIZATION = 1,
	KY_FXT_RECORD_STRING = 2,
	KY_FXT_RECORD_THREAD = 3,
	KY_FXT_RECORD_EVENT = 4,
	KY_FXT_RECORD_BLOB = 5,
	KY_FXT_RECORD_USERSPACE_OBJECT = 6,
	KY_FXT_RECORD_KERNEL_OBJECT = 7,
	KY_FXT_RECORD_SCHEDULING = 8,
	KY_FXT_RECORD_LOG = 9,
	KY_FXT_RECORD_PROFILER = 10,
	KY_FXT_RECORD_LARGE = 15,
};

enum {
	KY_FXT_METADATA_PROVIDER_INFO = 1,
	KY_FXT_METADATA_PROVIDER_SECTION = 2,
	KY_FXT_METADATA_PROVIDER_EVENT = 3,
};
enum { KY_FXT_PROVIDER_EVENT_BUFFER_FULL = 0 };
enum { KY_FXT_BLOB_PERFETTO = 3 };
enum { KY_FXT_OBJECT_PROCESS = 1, KY_FXT_OBJECT_THREAD = 2 };

enum {
	KY_FXT_EVENT_INSTANT = 0,
	KY_FXT_EVENT_COUNTER = 1,
	KY_FXT_EVENT_BEGIN = 2,
	KY_FXT_EVENT_END = 3,
	KY_FXT_EVENT_COMPLETE = 4,
	KY_FXT_EVENT_ASYNC_BEGIN = 5,
	KY_FXT_EVENT_ASYNC_INSTANT = 6,
	KY_FXT_EVENT_ASYNC_END = 7,
	KY_FXT_EVENT_FLOW_BEGIN = 8,
	KY_FXT_EVENT_FLOW_STEP = 9,
	KY_FXT_EVENT_FLOW_END = 10,
};

enum {
	KY_FXT_ARG_NULL = 0,
	KY_FXT_ARG_INT32 = 1,
	KY_FXT_ARG_UINT32 = 2,
	KY_FXT_ARG_INT64 = 3,
	KY_FXT_ARG_UINT64 = 4,
	KY_FXT_ARG_DOUBLE = 5,
	KY_FXT_ARG_STRING = 6,
	KY_FXT_ARG_POINTER = 7,
	KY_FXT_ARG_KOID = 8,
	KY_FXT_ARG_BOOL = 9,
	KY_FXT_ARG_BLOB = 10,
};

enum { KY_FXT_SCHED_LEGACY_SWITCH = 0, KY_FXT_SCHED_SWITCH = 1, KY_FXT_SCHED_WAKEUP = 2 };

enum {
	KY_FXT_STATE_NEW = 0,
	KY_FXT_STATE_RUNNING = 1,
	KY_FXT_STATE_SUSPENDED = 2,
	KY_FXT_STATE_BLOCKED = 3,
	KY_FXT_STATE_DYING = 4,
	KY_FXT_STATE_DEAD = 5,
	KY_FXT_STATES
};

#endif
