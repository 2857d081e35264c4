/* SPDX-License-Identifier: MIT */
/*
 * marker.c: lines that programs wrote to trace_marker, in the form of Android's atrace:
 *
 *   B|tgid|name    E[|tgid]             a span of the thread
 *   S|tgid|name|cookie   F|...          an async span of the process; a second begin does not nest
 *   G|tgid|track|name|cookie            an async span on a track of the process
 *   H|tgid|track|[name|]cookie          its end
 *   I|tgid|name    N|tgid|track|name    an instant of the thread, of a track
 *   C|tgid|name|value[|category]        a counter of the process
 *
 * Any other line is a log message of the thread. tgid is the process of the thread.
 */
#include "base/chars.h"
#include "model/kernel_state.h"

#include <stdio.h>
#include <stdlib.h>

struct point {
	char phase;
	uint32_t tgid;
	bool has_tgid;
	uint32_t name;
	uint32_t track;
	int64_t value; /* or cookie */
};

/* Split fields from at to end; a field ends at '|' or at the end. */
struct fields {
	const char *at;
	const char *end;
};

struct field {
	const char *text;
	size_t bytes;
};

static struct field next_field(struct fields *cursor)
{
	if (cursor->at > cursor->end)
		return (struct field){cursor->end, 0};
	struct field field = {.text = cursor->at};
	const char *bar = memchr(cursor->at, '|', (size_t)(cursor->end - cursor->at));
	const char *end = bar ? bar : cursor->end;
	field.bytes = (size_t)(end - cursor->at);
	cursor->at = end + 1;
	return field;
}

static bool field_number(struct field field, int64_t *number)
{
	const size_t at = field.bytes && (field.text[0] == '-' || field.text[0] == '+');
	const char *const end = field.text + field.bytes;
	uint64_t value;
	if (at == field.bytes || field.bytes - at > 20 ||
	    ky_chars_decimal(field.text + at, end, UINT64_MAX, &value) != end)
		return false;
	bool minus = field.text[0] == '-';
	if (value > (uint64_t)INT64_MAX + minus)
		return false;
	*number = minus ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

/* Parse the fields after the tgid, for all but B and E. False: a field is missing. */
static bool parse_fields(struct ky_trace *trace, struct fields *cursor, struct point *point)
{
	struct field fields[3];
	for (size_t i = 0; i < 3; i++)
		fields[i] = next_field(cursor);
	bool on_track = point->phase == 'N' || point->phase == 'G' || point->phase == 'H';
	struct field name = fields[on_track];
	struct field value = fields[on_track + 1];
	if (point->phase == 'H') {
		value = fields[2].bytes ? fields[2] : fields[1];
		name = fields[0];
	}
	bool valued = point->phase != 'I' && point->phase != 'N';
	if (!point->has_tgid || !fields[0].bytes || !name.bytes ||
	    (valued && !field_number(value, &point->value)))
		return false;
	point->name = ky_string(trace, name.text, name.bytes);
	point->track = on_track ? ky_string(trace, fields[0].text, fields[0].bytes) : 0;
	return true;
}

static bool parse(struct ky_trace *trace, struct fields cursor, struct point *point)
{
	struct field phase = next_field(&cursor);
	if (!phase.bytes)
		return false;
	int64_t tgid = 0;
	struct field owner = next_field(&cursor);
	point->phase = phase.text[0];
	point->has_tgid = field_number(owner, &tgid) && tgid >= 0 && tgid <= INT32_MAX;
	point->tgid = point->has_tgid ? (uint32_t)tgid : 0;
	switch (point->phase) {
	case 'B':
		if (!point->has_tgid)
			return false;
		point->name = cursor.at >= cursor.end ? ky_string_z(trace, "[empty slice name]")
						      : ky_string(trace, cursor.at,
								  (size_t)(cursor.end - cursor.at));
		return true;
	case 'E':
		return phase.bytes == 1;
	case 'S':
	case 'F':
	case 'I':
	case 'N':
	case 'C':
	case 'G':
	case 'H':
		return parse_fields(trace, &cursor, point);
	default:
		return false;
	}
}

static uint32_t thread_arg(struct ky_trace *trace, uint32_t key, int32_t tid)
{
	return ky_args_one(trace, key, KY_ARG_UINT, ky_kernel_thread(trace, tid));
}

static struct ky_lane_key lane_key(struct ky_trace *trace, const struct point *point, bool on_track)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	return (struct ky_lane_key){
		.type = on_track ? state->marker.async_slice_for_track : state->marker.async_slice,
		.process = ky_kernel_process(trace, point->tgid),
		.name = on_track ? point->track : point->name,
		.cookie = point->value,
	};
}

static void begin_async(struct ky_trace *trace, int64_t ts, const struct point *point)
{
	const struct ky_lane_key key = lane_key(trace, point, false);
	struct ky_lane *lane = ky_lane_begin(trace, &key);
	if (!lane)
		return;
	lane->last_begin_ts = ts;
	/* Wakelocks begin many times and end once. */
	if (lane->begins++)
		return;
	uint32_t track = lane->track;
	ky_args_begin(trace);
	ky_arg_int(trace, trace->build->kernel->marker.cookie, point->value);
	ky_build_begin(trace, ts, track, 0, point->name, ky_args_end(trace));
}

static void end_async(struct ky_trace *trace, int64_t ts, const struct point *point)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	const struct ky_lane_key key = lane_key(trace, point, false);
	struct ky_lane *lane = ky_lane_end(trace, &key);
	if (!lane || !lane->begins) {
		ky_problem(trace, "misplaced_end_event", KY_DATA_LOSS, KY_NO_PLACE,
			   "an async span of process %u ends that did not begin", point->tgid);
		return;
	}
	ky_args_begin(trace);
	ky_arg_int(trace, state->marker.begins, lane->begins);
	ky_arg_int(trace, state->marker.last_begin, lane->last_begin_ts);
	lane->begins = 0;
	ky_build_end(trace, ts, lane->track, 0, 0, ky_args_end(trace));
}

static void on_track(struct ky_trace *trace, int64_t ts, int32_t tid, const struct point *point)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	const struct ky_lane_key key = lane_key(trace, point, true);
	uint32_t args = thread_arg(
		trace, point->phase == 'H' ? state->marker.end_utid : state->marker.utid, tid);
	struct ky_lane *lane =
		point->phase == 'G' ? ky_lane_begin(trace, &key) : ky_lane_end(trace, &key);
	if (lane && point->phase == 'G')
		ky_build_begin(trace, ts, lane->track, 0, point->name, args);
	else if (lane)
		ky_build_end(trace, ts, lane->track, 0, 0, args);
	else if (point->phase == 'H')
		ky_problem(trace, "misplaced_end_event", KY_DATA_LOSS, KY_NO_PLACE,
			   "a span on a track of process %u ends that did not begin", point->tgid);
}

/* Instants of a track get a track of their own, so that no open span encloses them. */
static void track_instant(struct ky_trace *trace, int64_t ts, int32_t tid,
			  const struct point *point)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	const struct ky_track_spec spec = {
		.kind = KY_TRACK_PROCESS,
		.flags = KY_TRACK_ASYNC,
		.owner = ky_kernel_process(trace, point->tgid),
		.name = point->track,
		.type = state->marker.async_slice_for_track,
	};
	uint32_t args = thread_arg(trace, state->marker.utid, tid);
	ky_build_instant(trace, ts, ky_track(trace, &spec), 0, point->name, args);
}

/* Android's low-memory killer: an instant of the killed process. */
static uint32_t killed(struct ky_trace *trace, int64_t ts, uint32_t pid)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	const uint32_t process = ky_kernel_process(trace, pid);
	const struct ky_track_spec spec = {
		.kind = KY_TRACK_PROCESS,
		.owner = process,
		.name = state->marker.lmk_track,
		.type = state->marker.lmk_type,
	};
	if (process != KY_NONE)
		ky_build_instant(trace, ts, ky_track(trace, &spec), 0, state->marker.lmk, 0);
	return process;
}

/* "lmk,PID,REASON,SCORE,...": the killer's span. */
static void kill_span(struct ky_trace *trace, int64_t ts, uint32_t name)
{
	unsigned pid;
	int reason, score;
	if (sscanf(ky_text_of(trace, name), "lmk,%9u,%9d,%9d", &pid, &reason, &score) != 3)
		return;
	const uint32_t process = killed(trace, ts, pid);
	if (process != KY_NONE)
		ky_build_counter(trace, ts,
				 ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, process,
						  trace->build->kernel->marker.oom_score),
				 score, 0);
}

static void count(struct ky_trace *trace, int64_t ts, const struct point *point)
{
	uint32_t track = ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER,
					  ky_kernel_process(trace, point->tgid), point->name);
	ky_build_counter(trace, ts, track, (double)point->value, 0);
	if (point->name == trace->build->kernel->marker.kill && point->value > 0 &&
	    point->value <= INT32_MAX)
		(void)killed(trace, ts, (uint32_t)point->value);
}

static void on_thread(struct ky_trace *trace, int64_t ts, int32_t tid, const struct point *point)
{
	uint32_t thread = point->phase == 'E' && !point->tgid
				  ? ky_kernel_thread_find(trace, tid)
				  : ky_kernel_thread_in(trace, point->tgid, tid);
	if (thread == KY_NONE)
		return;
	uint32_t track = ky_track_of_thread(trace, thread);
	if (point->phase == 'B') {
		(void)ky_build_begin(trace, ts, track, 0, point->name, 0);
		if (strncmp(ky_text_of(trace, point->name), "lmk,", 4) == 0)
			kill_span(trace, ts, point->name);
	} else if (point->phase == 'E')
		(void)ky_build_end(trace, ts, track, 0, 0, 0);
	else
		(void)ky_build_instant(trace, ts, track, 0, point->name, 0);
}

static void apply(struct ky_trace *trace, int64_t ts, int32_t tid, const struct point *point)
{
	switch (point->phase) {
	case 'S':
		begin_async(trace, ts, point);
		break;
	case 'F':
		end_async(trace, ts, point);
		break;
	case 'G':
	case 'H':
		on_track(trace, ts, tid, point);
		break;
	case 'N':
		track_instant(trace, ts, tid, point);
		break;
	case 'C':
		count(trace, ts, point);
		break;
	case 0:
		ky_build_log(trace, ts, ky_kernel_thread(trace, tid), 0,
			     trace->build->kernel->marker.print, point->name);
		break;
	default:
		on_thread(trace, ts, tid, point);
		break;
	}
}

void ky_put_marker_text(struct ky_trace *trace, int64_t ts, int32_t tid, const char *text,
			size_t bytes)
{
	static const char clock_sync[] = "trace_event_clock_sync:";
	while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == '\0'))
		bytes--;
	struct point point = {0};
	if (!parse(trace, (struct fields){text, text + bytes}, &point)) {
		if (!bytes || (bytes >= sizeof(clock_sync) - 1 &&
			       memcmp(text, clock_sync, sizeof(clock_sync) - 1) == 0))
			return;
		point = (struct point){.name = ky_string(trace, text, bytes)};
	}
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_MARKER, (uint32_t)tid, (uint32_t)(uint8_t)point.phase,
		      point.tgid, point.name, point.track, KY_TWO_WORDS(point.value));
}

void ky_put_marker(struct ky_trace *trace, int64_t ts, int32_t tid, uint32_t text)
{
	char few[512];
	size_t bytes = ky_strings_bytes(&trace->strings, text);
	if (!bytes)
		return;
	/* Adding strings may move all of them: copy it first. */
	char *copy = bytes <= sizeof(few) ? few : malloc(bytes);
	if (!copy) {
		ky_trace_no_memory(trace);
		return;
	}
	memcpy(copy, ky_text_of(trace, text), bytes);
	ky_put_marker_text(trace, ts, tid, copy, bytes);
	if (copy != few)
		free(copy);
}

void ky_marker_apply(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	const struct point point = {
		.phase = (char)words[1],
		.tgid = words[2],
		.name = words[3],
		.track = words[4],
		.value = (int64_t)ky_words_u64(words + 5),
	};
	apply(trace, ts, (int32_t)words[0], &point);
}

void ky_marker_open(struct ky_trace *trace)
{
	struct ky_kernel_state *state = trace->build->kernel;
	state->marker.cookie = ky_string_z(trace, "cookie");
	state->marker.utid = ky_string_z(trace, "utid");
	state->marker.end_utid = ky_string_z(trace, "end_utid");
	state->marker.begins = ky_string_z(trace, "legacy_unnestable_begin_count");
	state->marker.last_begin = ky_string_z(trace, "legacy_unnestable_last_begin_ts");
	state->marker.async_slice = ky_string_z(trace, "atrace_async_slice");
	state->marker.async_slice_for_track = ky_string_z(trace, "atrace_async_slice_for_track");
	state->marker.print = ky_string_z(trace, "print");
	state->marker.kill = ky_string_z(trace, "kill_one_process");
	state->marker.lmk = ky_string_z(trace, "mem.lmk");
	state->marker.lmk_track = ky_string_z(trace, "LMK");
	state->marker.lmk_type = ky_string_z(trace, "android_lmk");
	state->marker.oom_score = ky_string_z(trace, "oom_score_adj");
}
