/* SPDX-License-Identifier: MIT */
/*
 * perf_data_read.c: reads perf.data into the model: files and what went through a pipe, of either byte order, record after
 * record. perf_session.h shows the parts.
 *
 * Bytes come in blocks that hold at least one whole record; compressed records are unpacked to more records, which may
 * begin in one and end in the next.
 *
 * A pipe's attributes, features and build ids may come behind the records that need them: it is passed over once for these
 * before the records themselves are read.
 */
#include "formats/perf/perf_session.h"

#include "base/array.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zstd.h>
#include <zstd_errors.h>

#define BLOCK_BYTES (1u << 20)
#define RECORD_MAX 65536u
#define SECTION_MAX (512u << 20)
#define IDS_MAX (1u << 20)
/* Real records shrink to a tenth; what claims far more is no recording. */
#define UNPACK_RATIO_MAX 1024u
#define UNPACK_FREE_BYTES (16u << 20)

struct ky_perf_unpack {
	ZSTD_DStream *stream;
	uint8_t bytes[2 * RECORD_MAX]; /* unpacked, not yet taken */
	size_t used;
	uint64_t taken, given;
	bool broken;
};

struct perf_block {
	uint8_t *bytes; /* BLOCK_BYTES */
	uint64_t at;    /* of the first, in the file */
	size_t used;
};

static void close_unpack(struct ky_perf_unpack **unpack)
{
	if (*unpack)
		ZSTD_freeDStream((*unpack)->stream);
	free(*unpack);
	*unpack = NULL;
}

static struct ky_perf_unpack *unpack_of(struct ky_perf *perf)
{
	if (perf->unpack)
		return perf->unpack;
	struct ky_perf_unpack *unpack = calloc(1, sizeof(*unpack));
	if (!unpack)
		return NULL;
	unpack->stream = ZSTD_createDStream();
	if (!unpack->stream || ZSTD_isError(ZSTD_initDStream(unpack->stream))) {
		close_unpack(&unpack);
		return NULL;
	}
	return perf->unpack = unpack;
}

static struct ky_perf_raw record_at(const struct ky_perf *perf, const uint8_t *p, uint64_t at)
{
	return (struct ky_perf_raw){.type = ky_perf_u32(p, perf->big),
				    .misc = ky_perf_u16(p + 4, perf->big),
				    .bytes = ky_perf_u16(p + 6, perf->big),
				    .body = p + KY_PERF_RECORD_HEAD_BYTES,
				    .at = at};
}

/* Pass on the whole records that were unpacked; false when it is not a record. */
static bool take_unpacked(struct ky_perf *perf, struct ky_perf_unpack *unpack, uint64_t at)
{
	size_t done = 0;
	while (unpack->used - done >= KY_PERF_RECORD_HEAD_BYTES) {
		const struct ky_perf_raw record = record_at(perf, unpack->bytes + done, at);
		if (record.bytes < KY_PERF_RECORD_HEAD_BYTES)
			return false;
		if (record.bytes > unpack->used - done)
			break;
		ky_perf_record_take(perf, &record);
		done += record.bytes;
	}
	memmove(unpack->bytes, unpack->bytes + done, unpack->used - done);
	unpack->used -= done;
	return true;
}

/* Unpack; *more: call again. False when it cannot be unpacked. */
static bool unpack_some(struct ky_perf *perf, struct ky_perf_unpack *unpack, ZSTD_inBuffer *in,
			uint64_t at, bool *more)
{
	/* A record is shorter than RECORD_MAX, and so is the rest: there is room. */
	ZSTD_outBuffer out = {unpack->bytes, sizeof(unpack->bytes), unpack->used};
	const size_t before_in = in->pos;
	const size_t before_out = out.pos;
	const size_t code = ZSTD_decompressStream(unpack->stream, &out, in);
	if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
		ky_memory_missing();
	if (ZSTD_isError(code))
		return false;
	unpack->used = out.pos;
	unpack->taken += in->pos - before_in;
	unpack->given += out.pos - before_out;
	*more = in->pos < in->size || out.pos == out.size;
	if (unpack->given > UNPACK_FREE_BYTES + UNPACK_RATIO_MAX * unpack->taken)
		return false;
	if (in->pos == before_in && out.pos == before_out && in->pos < in->size)
		return false;
	return take_unpacked(perf, unpack, at);
}

static void take_compressed(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	struct ky_perf_unpack *unpack = unpack_of(perf);
	size_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	const uint8_t *data = record->body;
	if (record->type == KY_PERF_COMPRESSED2) {
		const uint64_t reported = bytes >= 8 ? ky_perf_u64(data, perf->big) : 0;
		bytes = bytes >= 8 ? bytes - 8 : 0;
		data += 8;
		bytes = reported < bytes ? (size_t)reported : bytes;
	}
	if (!unpack) {
		perf->trace->error = -ENOMEM;
		return;
	}
	ZSTD_inBuffer in = {data, bytes, 0};
	bool more = bytes > 0;
	while (more && !unpack->broken)
		unpack->broken = !unpack_some(perf, unpack, &in, record->at, &more);
	if (unpack->broken)
		ky_problem(perf->trace, "perf_compressed_damaged", KY_DATA_LOSS, record->at,
			   "a compressed record cannot be unpacked");
}

/* ---- sections and what follows a record ---- */

/* Read bytes of the file, as far as they are there, for ky_array_release(); NULL without memory. */
static uint8_t *read_section(struct ky_perf *perf, uint64_t at, uint64_t bytes, size_t *got)
{
	size_t room = 0;
	uint8_t *data = NULL;
	*got = 0;
	if (bytes > SECTION_MAX)
		bytes = SECTION_MAX;
	while (*got < bytes) {
		/* In steps that grow with the bytes read: the size is not trusted. */
		const uint64_t twice = *got ? 2 * *got : 65536;
		const size_t step = (size_t)(twice < bytes ? twice : bytes);
		if (!KY_ARRAY_GROW(data, room, step))
			break;
		const ssize_t count =
			ky_input_read_at(perf->load->input, at + *got, data + *got, step - *got);
		*got += count > 0 ? (size_t)count : 0;
		if (*got < step)
			break;
	}
	return data;
}

static void take_header_attr(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	const uint32_t attr_bytes = bytes >= 8 ? ky_perf_u32(record->body + 4, perf->big) : 0;
	if (attr_bytes > bytes || attr_bytes < 64) {
		ky_perf_record_short(perf, record);
		return;
	}
	const uint32_t attr = ky_perf_attr_add(perf, record->body, attr_bytes);
	for (uint32_t at = attr_bytes; attr != KY_NONE && bytes - at >= 8; at += 8)
		ky_perf_attr_id(perf, attr, ky_perf_u64(record->body + at, perf->big));
}

#define EVENT_UPDATE_NAME 2u

static void take_event_update(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	if (bytes < 17 || ky_perf_u64(record->body, perf->big) != EVENT_UPDATE_NAME)
		return;
	const char *name = (const char *)record->body + 16;
	ky_perf_attr_rename(perf, ky_perf_u64(record->body + 8, perf->big), name,
			    strnlen(name, bytes - 16));
}

/* Bytes that follow a record beyond its size. */
static uint64_t bytes_behind(const struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	if (record->type == KY_PERF_AUXTRACE && bytes >= 8)
		return ky_perf_u64(record->body, perf->big);
	if (record->type == KY_PERF_TRACING_DATA && bytes >= 4)
		return ((uint64_t)ky_perf_u32(record->body, perf->big) + 7) / 8 * 8;
	return 0;
}

/* Read the sections that the kernel's records need. */
static void take_meta(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	size_t got;
	uint8_t *data;
	switch (record->type) {
	case KY_PERF_HEADER_ATTR:
		take_header_attr(perf, record);
		break;
	case KY_PERF_EVENT_UPDATE:
		take_event_update(perf, record);
		break;
	case KY_PERF_HEADER_FEATURE:
		if (bytes >= 8)
			ky_perf_feature(perf, (uint32_t)ky_perf_u64(record->body, perf->big),
					record->body + 8, bytes - 8, record->at);
		break;
	case KY_PERF_BUILD_ID:
		ky_perf_build_id(perf, record);
		break;
	case KY_PERF_TIME_CONV:
		ky_perf_time_conv(perf, record);
		break;
	case KY_PERF_TRACING_DATA:
		data = read_section(perf, record->at + record->bytes,
				    bytes >= 4 ? ky_perf_u32(record->body, perf->big) : 0, &got);
		ky_perf_tracing_data(perf, data, got, record->at + record->bytes);
		ky_array_release(data);
		break;
	default:
		break;
	}
}

static void take_record(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	if (!perf->pipe || perf->first_pass)
		take_meta(perf, record);
	if (perf->first_pass)
		return;
	perf->records++;
	switch (record->type) {
	case KY_PERF_COMPRESSED:
	case KY_PERF_COMPRESSED2:
		take_compressed(perf, record);
		break;
	case KY_PERF_FINISHED_ROUND:
		ky_perf_order_round(perf);
		break;
	case KY_PERF_AUXTRACE:
		ky_problem(perf->trace, "perf_auxtrace_skipped", KY_DATA_LOSS, record->at,
			   "hardware trace data is not decoded");
		break;
	default:
		if (record->type < KY_PERF_USER_TYPES)
			ky_perf_record_take(perf, record);
		break;
	}
}

/* ---- walking ---- */

/* Bring the bytes from at on into the block; how many there are, up to need, or -errno. */
static ssize_t fill(struct ky_perf *perf, struct perf_block *block, uint64_t at, size_t need)
{
	if (at >= block->at && at - block->at <= block->used &&
	    block->used - (at - block->at) >= need)
		return (ssize_t)need;
	const ssize_t got = ky_input_read_at(perf->load->input, at, block->bytes, BLOCK_BYTES);
	if (got < 0)
		return got;
	block->at = at;
	block->used = (size_t)got;
	return (size_t)got < need ? got : (ssize_t)need;
}

/* Report whether it could be a record, for the search after damage. */
static bool plausible(const struct ky_perf_raw *record)
{
	const bool known =
		(record->type > 0 && record->type <= 21) ||
		(record->type >= KY_PERF_HEADER_ATTR && record->type <= KY_PERF_COMPRESSED2);
	return known && record->bytes >= KY_PERF_RECORD_HEAD_BYTES && record->bytes % 4 == 0;
}

static int end_early(struct ky_perf *perf, uint64_t at, const char *what)
{
	if (!perf->first_pass)
		ky_problem(perf->trace, "perf_truncated", KY_DATA_LOSS, at, "%s", what);
	return 1;
}

/* One record at *at, which moves on. 0; 1 at the end, good or bad; or -errno. */
static int step(struct ky_perf *perf, struct perf_block *block, uint64_t *at, uint64_t end)
{
	ssize_t got = fill(perf, block, *at, KY_PERF_RECORD_HEAD_BYTES);
	if (got < 0)
		return (int)got;
	if (got == 0 && end == UINT64_MAX)
		return 1;
	if (got < (ssize_t)KY_PERF_RECORD_HEAD_BYTES)
		return end_early(perf, *at, "the file ends before its records do");
	struct ky_perf_raw record = record_at(perf, block->bytes + (*at - block->at), *at);
	if (record.bytes < KY_PERF_RECORD_HEAD_BYTES ||
	    (perf->load->repair && !plausible(&record))) {
		if (!perf->load->repair)
			return end_early(perf, *at,
					 "a record's size is less than its head; "
					 "what follows cannot be read");
		ky_problem(perf->trace, "perf_record_damaged", KY_DATA_LOSS, *at,
			   "no record where one was expected");
		*at += 8;
		return 0;
	}
	got = fill(perf, block, *at, record.bytes);
	if (got < (ssize_t)record.bytes)
		return got < 0 ? (int)got : end_early(perf, *at, "the file ends within a record");
	record.body = block->bytes + (*at - block->at) + KY_PERF_RECORD_HEAD_BYTES;
	take_record(perf, &record);
	const uint64_t size = record.bytes + bytes_behind(perf, &record);
	if (size >= end - *at)
		return 1;
	*at += size;
	return 0;
}

static int walk(struct ky_perf *perf, uint64_t at, uint64_t end)
{
	struct perf_block block = {.bytes = malloc(BLOCK_BYTES)};
	struct ky_load *load = perf->load;
	const uint64_t begin = at;
	uint64_t reported = at;
	int error = block.bytes ? 0 : -ENOMEM;
	while (!error && at < end) {
		error = step(perf, &block, &at, end);
		if (!error && at - reported >= BLOCK_BYTES && load->progress) {
			reported = at;
			error = load->progress(load, at - begin,
					       end == UINT64_MAX ? 0 : end - begin);
		}
	}
	free(block.bytes);
	return error == 1 ? 0 : error;
}

/* ---- the head of a file ---- */

static void read_attrs(struct ky_perf *perf, uint64_t at, uint64_t bytes, uint64_t entry_bytes)
{
	size_t got;
	uint32_t ids_left = IDS_MAX;
	uint8_t *entries = read_section(perf, at, bytes, &got);
	for (size_t i = 0; entries && entry_bytes && got - i >= entry_bytes;
	     i += (size_t)entry_bytes) {
		const uint8_t *section = entries + i + entry_bytes - 16;
		const uint32_t attr = ky_perf_attr_add(perf, entries + i, (size_t)entry_bytes - 16);
		if (attr == KY_NONE)
			break;
		uint64_t want = ky_perf_u64(section + 8, perf->big) / 8;
		want = want < ids_left ? want : ids_left;
		size_t ids_bytes;
		uint8_t *ids =
			read_section(perf, ky_perf_u64(section, perf->big), want * 8, &ids_bytes);
		for (size_t k = 0; ids && ids_bytes - k >= 8; k += 8, ids_left--)
			ky_perf_attr_id(perf, attr, ky_perf_u64(ids + k, perf->big));
		ky_array_release(ids);
	}
	ky_array_release(entries);
}

/* The table of the features' places is behind the data. Event names come before the tracing data needs them. */
static void read_features(struct ky_perf *perf, uint64_t at)
{
	size_t got;
	uint8_t *table = read_section(perf, at, KY_PERF_FEATURES_MAX * 16, &got);
	size_t slot = 0;
	for (uint32_t i = 0; table && i < KY_PERF_FEATURES_MAX; i++) {
		if (!(perf->features[i / 8] >> i % 8 & 1))
			continue;
		if (got - slot < 16) {
			ky_problem(perf->trace, "perf_feature_damaged", KY_DATA_LOSS, at,
				   "the file ends within the table of its features");
			break;
		}
		const uint64_t place = ky_perf_u64(table + slot, perf->big);
		size_t bytes = 0;
		uint8_t *data =
			i <= KY_PERF_FEATURE_CLOCK_DATA
				? read_section(perf, place,
					       ky_perf_u64(table + slot + 8, perf->big), &bytes)
				: NULL;
		if (bytes)
			ky_perf_feature(perf, i, data, bytes, place);
		ky_array_release(data);
		slot += 16;
	}
	ky_array_release(table);
}

/* The bit map is made of 64-bit words; old files of the other byte order may have 32-bit ones. */
static void take_feature_bits(struct ky_perf *perf, const uint8_t *bits)
{
	for (unsigned word = 0; word < KY_PERF_FEATURES_MAX / 64; word++) {
		const uint64_t value = ky_perf_u64(bits + 8 * word, perf->big);
		for (unsigned i = 0; i < 8; i++)
			perf->features[8 * word + i] = (uint8_t)(value >> 8 * i);
	}
}

static int read_file(struct ky_perf *perf, const uint8_t *head)
{
	const uint64_t entry_bytes = ky_perf_u64(head + 16, perf->big);
	const uint64_t attrs_at = ky_perf_u64(head + 24, perf->big);
	const uint64_t attrs_bytes = ky_perf_u64(head + 32, perf->big);
	const uint64_t data_at = ky_perf_u64(head + 40, perf->big);
	const uint64_t data_bytes = ky_perf_u64(head + 48, perf->big);
	if (entry_bytes < 64 + 16 || entry_bytes > 65536)
		return ky_load_fail(perf->load, 16,
				    "size of an attribute is %llu: expected 80 to 65536",
				    (unsigned long long)entry_bytes);
	take_feature_bits(perf, head + 72);
	read_attrs(perf, attrs_at, attrs_bytes, entry_bytes);
	if (!perf->attrs_count)
		return ky_load_fail(perf->load, attrs_at, "expected the attributes of an event");
	ky_perf_attr_clock(perf);
	if (data_bytes && data_bytes <= UINT64_MAX - data_at)
		read_features(perf, data_at + data_bytes);
	else
		ky_problem(perf->trace, "perf_unfinished", KY_DATA_LOSS, 48,
			   "the recording was not ended: no features, records up to the end");
	const bool whole = data_bytes && data_bytes <= UINT64_MAX - data_at;
	return walk(perf, data_at, whole ? data_at + data_bytes : UINT64_MAX);
}

static int read_pipe(struct ky_perf *perf)
{
	perf->pipe = perf->first_pass = true;
	int error = walk(perf, KY_PERF_PIPE_HEAD_BYTES, UINT64_MAX);
	if (error)
		return error;
	if (!perf->attrs_count)
		return ky_load_fail(perf->load, KY_PERF_PIPE_HEAD_BYTES,
				    "expected a record with the attributes of an event");
	ky_perf_attr_clock(perf);
	perf->first_pass = false;
	return walk(perf, KY_PERF_PIPE_HEAD_BYTES, UINT64_MAX);
}

/* Read all; 0, -EBADMSG via ky_load_fail(), -ENOMEM or -errno. */
static int read_all(struct ky_perf *perf)
{
	uint8_t head[KY_PERF_FILE_HEAD_BYTES] = {0};
	const ssize_t got = ky_input_read_at(perf->load->input, 0, head, sizeof(head));
	if (got < 0)
		return (int)got;
	if (got < (ssize_t)KY_PERF_PIPE_HEAD_BYTES)
		return ky_load_fail(perf->load, 0, "expected a head of %u bytes",
				    KY_PERF_PIPE_HEAD_BYTES);
	perf->big = memcmp(head, KY_PERF_MAGIC_SWAPPED, 8) == 0;
	const uint64_t head_bytes = ky_perf_u64(head + 8, perf->big);
	if (head_bytes == KY_PERF_PIPE_HEAD_BYTES)
		return read_pipe(perf);
	if (head_bytes != KY_PERF_FILE_HEAD_BYTES || got < (ssize_t)KY_PERF_FILE_HEAD_BYTES)
		return ky_load_fail(perf->load, 8,
				    "size of the head is %llu: expected 104, or 16 of a pipe",
				    (unsigned long long)head_bytes);
	return read_file(perf, head);
}

/* ---- all of it ---- */

static bool probe(const struct ky_probe *probe)
{
	return probe->bytes >= KY_PERF_PIPE_HEAD_BYTES &&
	       (memcmp(probe->data, KY_PERF_MAGIC, 8) == 0 ||
		memcmp(probe->data, KY_PERF_MAGIC_SWAPPED, 8) == 0);
}

static void on_damage(void *context, const char *kind, uint64_t at, const char *what)
{
	ky_problem(context, kind, KY_DATA_LOSS, at, "%s", what);
}

/* Names come with it; others are looked for on this machine only when the recording is a file on it, or comes from a pipe. */
static int open_symbols(struct ky_perf *perf)
{
	struct stat status;
	const char *path = perf->load->path;
	const bool piped = path && strcmp(path, "-") == 0;
	const int error = perf->load->symbols ? ky_symbols_given_open(&perf->given, perf->trace,
								      perf->load->symbols)
					      : 0;
	if (error)
		return error;
	if (!piped && (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode)))
		return 0;
	const int opened =
		ky_symbols_open(&perf->symbols, &perf->trace->strings, piped ? NULL : path);
	if (!opened)
		ky_symbols_on_damage(perf->symbols, on_damage, perf->trace);
	return opened;
}

static void close_all(struct ky_perf *perf)
{
	KY_ARRAY_FREE(perf->attrs, perf->attrs_room);
	KY_ARRAY_FREE(perf->spaces, perf->spaces_room);
	KY_ARRAY_FREE(perf->mapped, perf->mapped_room);
	KY_ARRAY_FREE(perf->totals, perf->totals_room);
	KY_ARRAY_FREE(perf->endings, perf->endings_room);
	ky_u64_map_free(&perf->attr_of);
	ky_u64_map_free(&perf->space_of);
	ky_u64_map_free(&perf->build_id_of);
	ky_u64_map_free(&perf->total_of);
	ky_u64_map_free(&perf->switched_to);
	ky_u64_map_free(&perf->comm_of);
	ky_u64_map_free(&perf->ending_of);
	ky_ranges_free(&perf->ranges);
	ky_perf_order_free(&perf->queue);
	close_unpack(&perf->unpack);
	ky_perf_tracepoints_close(&perf->tracepoints);
	ky_symbols_given_close(&perf->given);
	ky_symbols_close(&perf->symbols);
	free(perf->frame_slots);
}

static int read_trace(struct ky_load *load)
{
	struct ky_perf perf = {.load = load, .trace = load->trace};
	int error = open_symbols(&perf);
	if (!error)
		error = read_all(&perf);
	if (!error) {
		ky_perf_order_end(&perf);
		ky_perf_task_end(&perf);
		if (perf.ranges.failed)
			error = -ENOMEM;
	}
	close_all(&perf);
	return error;
}

const struct ky_reader ky_reader_perf_data = {
	.name = "perf.data",
	.title = "perf.data",
	.probe = probe,
	.read = read_trace,
};
