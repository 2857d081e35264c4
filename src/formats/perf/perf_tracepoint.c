/* SPDX-License-Identifier: MIT */
/*
 * perf_tracepoint.c: tracepoints. libtraceevent reads their formats, once; the part that is needed is kept
 * as a list of fields, by which a sample's bytes are read here: each field is checked against the bytes that there
 * are, and nothing of a sample is handed to a library.
 */
#include "base/array.h"
#include "base/memory.h"
#include "formats/perf/perf_session.h"

#include "formats/ftrace/ftrace_format.h"
#include "model/kernel.h"

#include <event-parse.h>
#include <stdio.h>
#include <stdlib.h>

#define FIELDS_MAX 256u
#define FORMATS_BYTES_MAX (1u << 20)
#define ELEMENTS_MAX 64u

enum kind { KIND_OTHER, KIND_SWITCH, KIND_WAKING, KIND_WAKEUP, KIND_BLOCKED, KIND_RENAME };

struct tracepoint_field {
	uint32_t name;
	uint32_t offset;
	uint32_t bytes;
	uint32_t element_bytes; /* of an array */
	bool is_signed;
	bool is_text;
	bool is_array;
	bool is_dynamic;
	bool is_relative;
	bool is_pointer;
	bool is_common;
};

struct perf_tracepoint {
	uint32_t name;
	enum kind kind;
	struct tracepoint_field *fields;
	uint32_t count, room;
};

struct ky_perf_tracepoints {
	struct tep_handle *tep;
	struct perf_tracepoint *list;
	uint32_t count;
	uint64_t room;
	struct ky_u64_map by_id;
	bool has_waking;
};

void ky_perf_tracepoints_close(struct ky_perf_tracepoints **out)
{
	struct ky_perf_tracepoints *tracepoints = *out;
	*out = NULL;
	if (!tracepoints)
		return;
	for (uint32_t i = 0; i < tracepoints->count; i++)
		KY_ARRAY_FREE(tracepoints->list[i].fields, tracepoints->list[i].room);
	KY_ARRAY_FREE(tracepoints->list, tracepoints->room);
	ky_u64_map_free(&tracepoints->by_id);
	tep_free(tracepoints->tep);
	free(tracepoints);
}

/* ---- formats ---- */

static void take_field(struct ky_perf *perf, const struct tep_format_field *from, bool common,
		       struct perf_tracepoint *to)
{
	if (to->count >= FIELDS_MAX || from->offset < 0 || from->size < 0 || !from->name)
		return;
	const struct tracepoint_field field = {
		.name = ky_string_z(perf->trace, from->name),
		.offset = (uint32_t)from->offset,
		.bytes = (uint32_t)from->size,
		.element_bytes = from->elementsize,
		.is_signed = from->flags & TEP_FIELD_IS_SIGNED,
		.is_text = from->flags & TEP_FIELD_IS_STRING,
		.is_array = from->flags & TEP_FIELD_IS_ARRAY,
		.is_dynamic = from->flags & TEP_FIELD_IS_DYNAMIC,
		.is_relative = from->flags & TEP_FIELD_IS_RELATIVE,
		.is_pointer = from->flags & TEP_FIELD_IS_POINTER,
		.is_common = common,
	};
	if (field.name) /* else there was no memory for it */
		(void)KY_ARRAY_ADD(to->fields, to->count, to->room, field);
}

static enum kind kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
		{"sched_switch", KIND_SWITCH},          {"sched_waking", KIND_WAKING},
		{"sched_wakeup", KIND_WAKEUP},          {"sched_wakeup_new", KIND_WAKEUP},
		{"sched_blocked_reason", KIND_BLOCKED}, {"task_rename", KIND_RENAME},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].kind;
	return KIND_OTHER;
}

static void compile(struct ky_perf *perf, const struct tep_event *event)
{
	struct ky_perf_tracepoints *all = perf->tracepoints;
	bool made;
	uint32_t *number = ky_u64_map_add(&all->by_id, (uint64_t)(uint32_t)event->id, &made);
	if (!number || !made || !event->name)
		return;
	*number = KY_NONE;
	if (!KY_ARRAY_GROW_ZERO(all->list, all->room, all->count + 1))
		return;
	struct perf_tracepoint *to = &all->list[all->count];
	*to = (struct perf_tracepoint){.name = ky_string_z(perf->trace, event->name),
				       .kind = kind_of(event->name)};
	const struct tep_format_field *field = event->format.common_fields;
	for (; field; field = field->next)
		take_field(perf, field, true, to);
	for (field = event->format.fields; field; field = field->next)
		take_field(perf, field, false, to);
	*number = all->count++;
	all->has_waking |= to->kind == KIND_WAKING;
	perf->has_sched_switch |= to->kind == KIND_SWITCH;
}

/* The library trusts its input: give it the format rewritten, without the parts that are not needed. */
static void take_format(struct ky_perf *perf, const uint8_t *text, uint64_t bytes,
			const char *system, uint64_t at)
{
	size_t written = 0;
	uint32_t left_out;
	char *copy = bytes < FORMATS_BYTES_MAX
			     ? ky_ftrace_format_text((const char *)text, bytes, &written, &left_out)
			     : NULL;
	if (!copy ||
	    tep_parse_event(perf->tracepoints->tep, copy, written, system) != TEP_ERRNO__SUCCESS)
		ky_problem(perf->trace, "perf_tracepoint_format", KY_DATA_LOSS, at,
			   "the format of a tracepoint cannot be read");
	free(copy);
}

static const char *take_name(struct ky_perf_cursor *cursor)
{
	const uint8_t *end = memchr(cursor->at, 0, ky_perf_left(cursor));
	if (!end) {
		cursor->short_of = true;
		return "";
	}
	const char *name = (const char *)cursor->at;
	cursor->at = end + 1;
	return name;
}

/* Name, 64-bit size and bytes that are not needed. */
static void skip_named(struct ky_perf_cursor *cursor)
{
	take_name(cursor);
	ky_perf_take(cursor, ky_perf_take_u64(cursor));
}

static void take_formats(struct ky_perf *perf, struct ky_perf_cursor *cursor, const char *system,
			 const uint8_t *begin, uint64_t at)
{
	const uint32_t count = ky_perf_take_u32(cursor);
	for (uint32_t i = 0; i < count && !cursor->short_of; i++) {
		const uint64_t bytes = ky_perf_take_u64(cursor);
		const uint8_t *text = ky_perf_take(cursor, bytes);
		if (text)
			take_format(perf, text, bytes, system, at + (uint64_t)(text - begin));
	}
}

static void take_kallsyms(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	const uint32_t claimed = ky_perf_take_u32(cursor);
	const size_t bytes = claimed < ky_perf_left(cursor) ? claimed : ky_perf_left(cursor);
	const uint8_t *text = ky_perf_take(cursor, bytes);
	if (text && bytes && perf->symbols)
		ky_symbols_add_kallsyms(perf->symbols, (const char *)text, bytes);
}

/* 23 8 68 "tracing", version, byte order, size of a long, page size; header_page, header_event; formats. */
static bool take_head(struct ky_perf *perf, struct ky_perf_cursor *cursor)
{
	static const uint8_t magic[10] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
	const uint8_t *head = ky_perf_take(cursor, sizeof(magic));
	if (!head || memcmp(head, magic, sizeof(magic)) != 0)
		return false;
	take_name(cursor);
	const uint8_t *order = ky_perf_take(cursor, 2);
	if (!order)
		return false;
	cursor->big = order[0] == 1;
	tep_set_file_bigendian(perf->tracepoints->tep,
			       cursor->big ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(perf->tracepoints->tep, order[1] == 4 ? 4 : 8);
	ky_perf_take_u32(cursor);
	skip_named(cursor);
	skip_named(cursor);
	return !cursor->short_of;
}

static void compile_all(struct ky_perf *perf)
{
	const int count = tep_get_events_count(perf->tracepoints->tep);
	for (int i = 0; i < count; i++) {
		const struct tep_event *event = tep_get_event(perf->tracepoints->tep, i);
		if (event)
			compile(perf, event);
	}
}

static bool start(struct ky_perf *perf)
{
	if (perf->tracepoints)
		return true;
	struct ky_perf_tracepoints *tracepoints = calloc(1, sizeof(*tracepoints));
	if (!tracepoints) {
		ky_memory_missing();
		return false;
	}
	tep_set_loglevel(TEP_LOG_NONE);
	tracepoints->tep = tep_alloc();
	perf->tracepoints = tracepoints;
	if (!tracepoints->tep)
		ky_perf_tracepoints_close(&perf->tracepoints);
	return perf->tracepoints != NULL;
}

void ky_perf_tracing_data(struct ky_perf *perf, const uint8_t *data, size_t bytes, uint64_t at)
{
	if (!data || !start(perf))
		return;
	struct ky_perf_cursor cursor = {data, data + bytes, perf->big, false};
	if (take_head(perf, &cursor)) {
		take_formats(perf, &cursor, "ftrace", data, at);
		const uint32_t systems = ky_perf_take_u32(&cursor);
		for (uint32_t i = 0; i < systems && !cursor.short_of; i++) {
			const char *system = take_name(&cursor);
			take_formats(perf, &cursor, system, data, at);
		}
		take_kallsyms(perf, &cursor);
	}
	if (cursor.short_of)
		ky_problem(perf->trace, "perf_tracing_data", KY_DATA_LOSS, at,
			   "the formats of the tracepoints end early");
	compile_all(perf);
}

/* ---- samples ---- */

static uint64_t integer(const uint8_t *p, uint32_t bytes, bool big, bool is_signed)
{
	switch (bytes) {
	case 1:
		return is_signed ? (uint64_t)(int64_t)(int8_t)p[0] : p[0];
	case 2: {
		const uint16_t value = ky_perf_u16(p, big);
		return is_signed ? (uint64_t)(int64_t)(int16_t)value : value;
	}
	case 4: {
		const uint32_t value = ky_perf_u32(p, big);
		return is_signed ? (uint64_t)(int64_t)(int32_t)value : value;
	}
	default:
		return ky_perf_u64(p, big);
	}
}

static bool is_integer_size(uint32_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

struct raw {
	const uint8_t *bytes;
	uint64_t count;
	bool big;
};

/* Find a field's bytes; false when they are not all there. */
static bool locate(const struct raw *raw, const struct tracepoint_field *field, uint64_t *at,
		   uint64_t *bytes)
{
	*at = field->offset;
	*bytes = field->bytes;
	if (*at > raw->count || *bytes > raw->count - *at)
		return false;
	if (!field->is_dynamic)
		return true;
	if (*bytes < 4)
		return false;
	const uint32_t place = ky_perf_u32(raw->bytes + *at, raw->big);
	*at = (place & 0xffff) + (field->is_relative ? *at + field->bytes : 0);
	*bytes = place >> 16;
	return *at <= raw->count && *bytes <= raw->count - *at;
}

static void put_array(struct ky_trace *trace, const struct raw *raw,
		      const struct tracepoint_field *field, uint64_t at, uint64_t bytes)
{
	const uint32_t step = field->element_bytes;
	char key[160];
	if (!is_integer_size(step))
		return;
	for (uint32_t i = 0; i < ELEMENTS_MAX && (i + 1ull) * step <= bytes; i++) {
		const uint64_t value = integer(raw->bytes + at + (uint64_t)i * step, step, raw->big,
					       field->is_signed);
		const int length =
			snprintf(key, sizeof(key), "%.128s[%u]", ky_text_of(trace, field->name), i);
		ky_arg_int(trace, ky_string(trace, key, (size_t)length), (int64_t)value);
	}
}

static void put_field(struct ky_trace *trace, const struct raw *raw,
		      const struct tracepoint_field *field)
{
	uint64_t at, bytes;
	if (!locate(raw, field, &at, &bytes))
		return;
	const char *text = (const char *)raw->bytes + at;
	if (field->is_text) {
		ky_arg_string(trace, field->name, ky_string(trace, text, strnlen(text, bytes)));
	} else if (field->is_array || field->is_dynamic) {
		put_array(trace, raw, field, at, bytes);
	} else if (is_integer_size(field->bytes)) {
		const uint64_t value =
			integer(raw->bytes + at, field->bytes, raw->big, field->is_signed);
		if (field->is_pointer)
			ky_arg_pointer(trace, field->name, value);
		else if (field->is_signed)
			ky_arg_int(trace, field->name, (int64_t)value);
		else
			ky_arg_uint(trace, field->name, value);
	}
}

static const struct tracepoint_field *field_of(const struct ky_perf *perf,
					       const struct perf_tracepoint *point,
					       const char *name)
{
	for (uint32_t i = 0; i < point->count; i++)
		if (strcmp(ky_text_of(perf->trace, point->fields[i].name), name) == 0)
			return &point->fields[i];
	return NULL;
}

static int64_t number_of(const struct ky_perf *perf, const struct perf_tracepoint *point,
			 const struct raw *raw, const char *name)
{
	const struct tracepoint_field *field = field_of(perf, point, name);
	uint64_t at, bytes;
	if (!field || !is_integer_size(field->bytes) || !locate(raw, field, &at, &bytes) ||
	    bytes < field->bytes)
		return -1;
	return (int64_t)integer(raw->bytes + at, field->bytes, raw->big, field->is_signed);
}

static uint32_t text_of(const struct ky_perf *perf, const struct perf_tracepoint *point,
			const struct raw *raw, const char *name)
{
	const struct tracepoint_field *field = field_of(perf, point, name);
	uint64_t at, bytes;
	if (!field || !locate(raw, field, &at, &bytes))
		return 0;
	const char *text = (const char *)raw->bytes + at;
	return ky_string(perf->trace, text, strnlen(text, bytes));
}

static void put_switch(struct ky_perf *perf, const struct perf_tracepoint *point,
		       const struct raw *raw, const struct ky_perf_where *where)
{
	const uint64_t state = (uint64_t)number_of(perf, point, raw, "prev_state");
	const struct ky_switch event = {
		.cpu = where->cpu,
		.prev_tid = (int32_t)number_of(perf, point, raw, "prev_pid"),
		.prev_priority = (int32_t)number_of(perf, point, raw, "prev_prio"),
		.prev_comm = text_of(perf, point, raw, "prev_comm"),
		.prev_state = ky_task_state(perf->trace, state, perf->release),
		.next_tid = (int32_t)number_of(perf, point, raw, "next_pid"),
		.next_priority = (int32_t)number_of(perf, point, raw, "next_prio"),
		.next_comm = text_of(perf, point, raw, "next_comm"),
	};
	if (where->cpu != KY_NONE)
		ky_put_switch(perf->trace, (int64_t)where->time, &event);
}

static void put_kind(struct ky_perf *perf, const struct perf_tracepoint *point,
		     const struct raw *raw, const struct ky_perf_where *where)
{
	const int64_t ts = (int64_t)where->time;
	const bool waking = point->kind == KIND_WAKING ||
			    (point->kind == KIND_WAKEUP && !perf->tracepoints->has_waking);
	if (point->kind == KIND_SWITCH)
		put_switch(perf, point, raw, where);
	else if (waking)
		ky_put_waking(perf->trace, ts, (int32_t)number_of(perf, point, raw, "pid"),
			      text_of(perf, point, raw, "comm"), (int32_t)where->tid);
	else if (point->kind == KIND_BLOCKED)
		ky_put_blocked(perf->trace, ts, (int32_t)number_of(perf, point, raw, "pid"),
			       number_of(perf, point, raw, "io_wait") > 0, 0);
	else if (point->kind == KIND_RENAME)
		ky_put_task_rename(perf->trace, ts, (int32_t)number_of(perf, point, raw, "pid"),
				   text_of(perf, point, raw, "newcomm"));
}

void ky_perf_tracepoint(struct ky_perf *perf, uint64_t id, const uint8_t *bytes, size_t count,
			const struct ky_perf_where *where)
{
	const uint32_t *number =
		perf->tracepoints ? ky_u64_map_find(&perf->tracepoints->by_id, id) : NULL;
	if (!number || *number == KY_NONE) {
		ky_problem(perf->trace, "perf_tracepoint_unknown", KY_DATA_LOSS, KY_NO_PLACE,
			   "the format of tracepoint %llu is not in the file",
			   (unsigned long long)id);
		return;
	}
	const struct perf_tracepoint *point = &perf->tracepoints->list[*number];
	const struct raw raw = {bytes, count, perf->big};
	put_kind(perf, point, &raw, where);
	ky_args_begin(perf->trace);
	for (uint32_t i = 0; i < point->count; i++)
		if (!point->fields[i].is_common)
			put_field(perf->trace, &raw, &point->fields[i]);
	const uint32_t args = ky_args_end(perf->trace);
	ky_put_raw(perf->trace, (int64_t)where->time, where->cpu, (int32_t)where->tid, point->name,
		   args);
}
