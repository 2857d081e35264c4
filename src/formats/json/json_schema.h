/* SPDX-License-Identifier: MIT */
/* json_schema.h: the letters and names of Chrome's Trace Event JSON, for its emitter, exporter and reader. */
#ifndef KY_FORMATS_JSON_JSON_SCHEMA_H
#define KY_FORMATS_JSON_JSON_SCHEMA_H

/* "ph" of an event. */
enum ky_json_phase {
	KY_JSON_PHASE_BEGIN = 'B',
	KY_JSON_PHASE_END = 'E',
	KY_JSON_PHASE_COMPLETE = 'X',
	KY_JSON_PHASE_INSTANT = 'i',
	KY_JSON_PHASE_INSTANT_OLD = 'I',
	KY_JSON_PHASE_MARK = 'R',
	KY_JSON_PHASE_COUNTER = 'C',
	KY_JSON_PHASE_ASYNC_BEGIN = 'b',
	KY_JSON_PHASE_ASYNC_INSTANT = 'n',
	KY_JSON_PHASE_ASYNC_END = 'e',
	KY_JSON_PHASE_FLOW_BEGIN = 's',
	KY_JSON_PHASE_FLOW_STEP = 't',
	KY_JSON_PHASE_FLOW_END = 'f',
	KY_JSON_PHASE_METADATA = 'M',
	KY_JSON_PHASE_SAMPLE = 'P',
	KY_JSON_PHASE_THREAD_STATE =
		'T', /* Perfetto's; also a step of the old asynchronous events */
	KY_JSON_PHASE_OBJECT_NEW = 'N',
	KY_JSON_PHASE_OBJECT_SNAPSHOT = 'O',
	KY_JSON_PHASE_OBJECT_DELETE = 'D',
	KY_JSON_PHASE_MEMORY_DUMP = 'v',
	KY_JSON_PHASE_MEMORY_DUMP_GLOBAL = 'V',
	KY_JSON_PHASE_CLOCK_SYNC = 'c',
	KY_JSON_PHASE_CONTEXT_ENTER = '(',
	KY_JSON_PHASE_CONTEXT_LEAVE = ')'
};
#define KY_JSON_PHASES_ASYNC_OLD "STpF"

/* "s" of an instant. */
enum ky_json_scope {
	KY_JSON_SCOPE_THREAD = 't',
	KY_JSON_SCOPE_PROCESS = 'p',
	KY_JSON_SCOPE_GLOBAL = 'g'
};

/* "name" of a metadata event. */
#define KY_JSON_PROCESS_LABELS "process_labels"
#define KY_JSON_PROCESS_NAME "process_name"
#define KY_JSON_PROCESS_LABELS "process_labels"
#define KY_JSON_PROCESS_SORT_INDEX "process_sort_index"
#define KY_JSON_THREAD_NAME "thread_name"
#define KY_JSON_THREAD_SORT_INDEX "thread_sort_index"

#endif
