/* SPDX-License-Identifier: MIT */
/*
 * spall_read.c: reads spall's files: a header, then packed records of begins and ends, in version 1
 * each with its pid and tid, in version 3 in buffers of one thread. docs/formats/spall.md has the
 * layouts.
 *
 * Nothing in version 1 says where the next record is but the record itself, so a wrong one ends the
 * reading; in version 3 it ends the buffer.
 */
#include "formats/load.h"

#include <endian.h>

#define MAGIC UINT64_C(0x0BADF00D)
#define HEADER_BYTES 32u
#define BUFFER_BYTES 20u /* the head of a buffer, version 3 */
#define TEXTS_MAX 510u   /* name and arguments */

enum record_type {
	RECORD_BEGIN = 3,
	RECORD_END = 4,
	RECORD_PAD = 7,
	RECORD_NAME_PROCESS = 8,
	RECORD_NAME_THREAD = 9
};

struct spall {
	struct ky_load *load;
	struct ky_trace *trace;
	struct ky_input *input;
	double ns_per_tick;
	uint64_t version;
	int64_t pid, tid; /* version 3: of the buffer; version 1: whose track is there */
	uint32_t thread, track;
	bool known; /* these are set */
	uint32_t args_key;
};

static uint32_t u32_at(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static uint64_t u64_at(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

static double f64_at(const uint8_t *at)
{
	const uint64_t bits = u64_at(at);
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static bool probe(const struct ky_probe *probe)
{
	if (probe->bytes < HEADER_BYTES || u64_at(probe->data) != MAGIC)
		return false;
	const uint64_t version = u64_at(probe->data + 8);
	return version > 0 && version < 256;
}

static void switch_to(struct spall *spall, int64_t pid, int64_t tid)
{
	if (spall->known && spall->pid == pid && spall->tid == tid)
		return;
	spall->pid = pid;
	spall->tid = tid;
	spall->thread = ky_thread(spall->trace, pid, tid);
	spall->track = ky_track_of_thread(spall->trace, spall->thread);
	spall->known = true;
}

static bool time_of(struct spall *spall, double ticks, int64_t *ns)
{
	const double value = ticks * spall->ns_per_tick;
	if (!(value >= 0 && value < 9.2e18)) {
		ky_problem(spall->trace, "spall_time_invalid", KY_ERROR, spall->input->position,
			   "a time that is below 0 or no number");
		return false;
	}
	*ns = (int64_t)(value + 0.5);
	return true;
}

/* texts are the name and the arguments, one behind the other. */
static void put_begin(struct spall *spall, double ticks, const uint8_t *texts, uint32_t name_bytes,
		      uint32_t args_bytes)
{
	struct ky_trace *trace = spall->trace;
	uint32_t args = 0;
	int64_t ts;

	if (!time_of(spall, ticks, &ts))
		return;
	if (args_bytes)
		args = ky_args_one(trace, spall->args_key, KY_ARG_STRING,
				   ky_string(trace, (const char *)texts + name_bytes, args_bytes));
	ky_put_begin(trace, ts, spall->track, 0, ky_string(trace, (const char *)texts, name_bytes),
		     args);
}

static void put_end(struct spall *spall, double ticks)
{
	int64_t ts;
	if (time_of(spall, ticks, &ts))
		ky_put_end(spall->trace, ts, spall->track, 0, 0, 0);
}

/*
 * One record of version 1, of which bytes are there. How many it has; 0 when it is cut off or
 * unknown; more than there are when the rest is to be passed over.
 */
static uint64_t record_1(struct spall *spall, const uint8_t *at, size_t bytes)
{
	if (at[0] == RECORD_BEGIN && bytes >= 20 && bytes - 20 >= (size_t)at[18] + at[19]) {
		switch_to(spall, u32_at(at + 2), u32_at(at + 6));
		put_begin(spall, f64_at(at + 10), at + 20, at[18], at[19]);
		return 20u + at[18] + at[19];
	}
	if (at[0] == RECORD_END && bytes >= 17) {
		switch_to(spall, u32_at(at + 1), u32_at(at + 5));
		put_end(spall, f64_at(at + 9));
		return 17;
	}
	if (at[0] == RECORD_PAD && bytes >= 5)
		return UINT64_C(5) + u32_at(at + 1);
	return 0;
}

static void put_name(struct spall *spall, bool of_process, const uint8_t *name, uint32_t bytes)
{
	const uint32_t string = ky_string(spall->trace, (const char *)name, bytes);
	if (of_process)
		ky_process_name(spall->trace, ky_process(spall->trace, spall->pid), string,
				KY_NAME_TRACE);
	else
		ky_thread_name(spall->trace, spall->thread, string, KY_NAME_TRACE);
}

/* Do the same for version 3. */
static uint64_t record_3(struct spall *spall, const uint8_t *at, size_t bytes)
{
	if (at[0] == RECORD_BEGIN && bytes >= 11 && bytes - 11 >= (size_t)at[9] + at[10]) {
		put_begin(spall, (double)u64_at(at + 1), at + 11, at[9], at[10]);
		return 11u + at[9] + at[10];
	}
	if (at[0] == RECORD_END && bytes >= 9) {
		put_end(spall, (double)u64_at(at + 1));
		return 9;
	}
	if (at[0] == RECORD_PAD && bytes >= 5)
		return UINT64_C(5) + u32_at(at + 1);
	if ((at[0] == RECORD_NAME_PROCESS || at[0] == RECORD_NAME_THREAD) && bytes >= 2 &&
	    bytes - 2 >= at[1]) {
		put_name(spall, at[0] == RECORD_NAME_PROCESS, at + 2, at[1]);
		return 2u + at[1];
	}
	return 0;
}

static bool is_type(const struct spall *spall, uint8_t type)
{
	return type == RECORD_BEGIN || type == RECORD_END || type == RECORD_PAD ||
	       (spall->version >= 3 && (type == RECORD_NAME_PROCESS || type == RECORD_NAME_THREAD));
}

static void report_wrong(struct spall *spall, uint8_t type)
{
	const uint64_t at = spall->input->position;
	if (is_type(spall, type))
		ky_problem(spall->trace, "spall_truncated", KY_DATA_LOSS, at,
			   "the input ends in the middle of a record");
	else
		ky_problem(spall->trace, "spall_record_unknown", KY_ERROR, at,
			   "expected a record, found type %u", type);
}

/* Records of limit bytes of the input. False when the last was not whole. */
static bool read_records(struct spall *spall, uint64_t limit)
{
	struct ky_input *input = spall->input;

	while (limit > 0) {
		(void)ky_input_need(input, 20 + TEXTS_MAX);
		size_t bytes = (size_t)(input->end - input->at);
		if (bytes == 0)
			return limit == UINT64_MAX;
		if (bytes > limit)
			bytes = (size_t)limit;
		const uint64_t used = spall->version < 3 ? record_1(spall, input->at, bytes)
							 : record_3(spall, input->at, bytes);
		if (used == 0) {
			report_wrong(spall, *input->at);
			return false;
		}
		const uint64_t pass = used < limit ? used : limit;
		if (!ky_input_skip_far(input, pass))
			return false;
		if (limit != UINT64_MAX)
			limit -= pass;
	}
	return true;
}

static void read_buffers(struct spall *spall)
{
	struct ky_input *input = spall->input;

	while (ky_input_need(input, BUFFER_BYTES)) {
		const uint32_t bytes = u32_at(input->at);
		switch_to(spall, u32_at(input->at + 8), u32_at(input->at + 4));
		ky_input_skip(input, BUFFER_BYTES);
		const uint64_t end = input->position + bytes;
		(void)read_records(spall, bytes);
		if (input->position < end && !ky_input_skip_far(input, end - input->position)) {
			ky_problem(spall->trace, "spall_truncated", KY_DATA_LOSS, input->position,
				   "the input ends in the middle of a buffer");
			return;
		}
	}
	if (input->end != input->at)
		ky_problem(spall->trace, "spall_truncated", KY_DATA_LOSS, input->position,
			   "the input ends in the middle of the head of a buffer");
}

static int read_trace(struct ky_load *load)
{
	struct spall spall = {.load = load, .trace = load->trace, .input = load->input};
	struct ky_input *input = load->input;

	if (!ky_input_need(input, HEADER_BYTES) || u64_at(input->at) != MAGIC)
		return ky_load_fail(load, 0, "expected the %u bytes of spall's header",
				    HEADER_BYTES);
	spall.version = u64_at(input->at + 8);
	const double unit = f64_at(input->at + 16);
	if (spall.version != 1 && spall.version != 3)
		return ky_load_fail(load, 8, "spall version %llu; 1 and 3 can be read",
				    (unsigned long long)spall.version);
	if (!(unit > 0 && unit < 1e12))
		return ky_load_fail(load, 16, "expected the length of a tick, found %g", unit);
	/* Microseconds in the one, nanoseconds in the other. */
	spall.ns_per_tick = spall.version == 1 ? unit * 1000 : unit;
	spall.args_key = ky_string_z(load->trace, "args");
	ky_input_skip(input, HEADER_BYTES);
	if (spall.version == 1)
		(void)read_records(&spall, UINT64_MAX);
	else
		read_buffers(&spall);
	return 0;
}

const struct ky_reader ky_reader_spall = {
	.name = "spall",
	.title = "spall",
	.probe = probe,
	.read = read_trace,
};
