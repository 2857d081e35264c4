/* SPDX-License-Identifier: MIT */
/*
 * test_bundle.c: files of several sources, from made-up and from real rings, taken apart chunk by
 * chunk (bundle_walk.h), and read into the model.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../core/readback.h"
#include "../formats/kymo_maker.h"
#include "../formats/load_text.h"
#include "bundle_walk.h"
#include "capture/bundle.h"

static char folder[] = "/tmp/kymo-bundle-XXXXXX";

static const char *in_folder(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[160];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct ky_bundle *open_bundle(const char *path, uint64_t max_bytes, uint32_t files_max)
{
	struct ky_bundle *bundle;
	char message[KY_MESSAGE_BYTES] = "";
	const struct ky_bundle_options options = {
		.path = path, .max_bytes = max_bytes, .files_max = files_max};
	const int error = ky_bundle_open(&bundle, &options, message);
	if (error)
		fail_msg("%s", message);
	return bundle;
}

/* ---- a maker that writes into a bundle instead of a file of its own ---- */

struct into {
	struct ky_bundle *bundle;
	uint32_t source;
	uint64_t events, lost;
};

static struct into *into_of(void *writer)
{
	return writer;
}

static void into_thread(void *writer, const struct ky_thread *thread)
{
	struct into *w = writer;
	ky_bundle_thread(w->bundle, w->source, thread);
}

static void into_clock(void *writer, const struct ky_tick_reading *sample)
{
	struct into *w = writer;
	ky_bundle_clock(w->bundle, w->source, sample);
}

static void into_block(void *writer, const struct ky_block *block, const struct ky_thread *thread,
		       struct ky_sites *sites)
{
	struct into *w = writer;
	struct ky_block counted = *block;
	for (uint32_t at = 0; at < block->count; at += 1 + KY_WORD_LENGTH(block->words[at]))
		counted.events += KY_WORD_SITE(block->words[at]) >= KY_CONTROL_MAX;
	w->events += counted.events;
	w->lost += block->lost;
	ky_bundle_block(w->bundle, w->source, &counted, thread, sites);
}

static void into_flush(void *writer)
{
	struct into *w = writer;
	ky_bundle_flush(w->bundle);
}

static void into_close(void *writer)
{
	struct into *w = writer;
	free(w);
}

static const struct ky_format into_bundle = {
	.thread = into_thread,
	.clock = into_clock,
	.block = into_block,
	.flush = into_flush,
	.close = into_close,
};

static void divert(struct maker *m, uint64_t seed, struct ky_bundle *bundle)
{
	static const struct ky_text process = {"a process", 9};
	static const struct ky_text command = {"/usr/bin/process", 16};
	maker_open(m, seed);
	m->format->close(m->writer);
	m->format = &into_bundle;
	m->writer = calloc(1, sizeof(struct into));
	into_of(m->writer)->bundle = bundle;
	const struct ky_trace_info info = {
		.pid = MAKER_PID,
		.process = process,
		.command = command,
		.clock = m->clock.readings[0],
		.ticks_per_s = UINT64_C(2450000000),
	};
	into_of(m->writer)->source = ky_bundle_drum(bundle, &info);
	assert_int_not_equal(into_of(m->writer)->source, 0);
	for (uint32_t i = 0; i < MAKER_RINGS - 1; i++)
		m->format->thread(m->writer, &m->thread[i]);
}

static void check_first(const struct walk *w)
{
	struct ky_kymo_head head;
	assert_int_equal(w->chunks[0].head.source, 0);
	assert_int_equal(w->chunks[0].head.type, KY_KYMO_FILE);
	memcpy(&head, w->chunks[0].body, sizeof(head));
	assert_int_equal(head.version, 2);
	assert_int_equal(head.version_min, 2);
}

/*
 * A finished file: each source of it begins with FILE, and the last chunk is the END of source 0.
 */
static void check_whole(const struct walk *w)
{
	check_first(w);
	assert_int_equal(w->whole_bytes, w->size);
	const struct ky_kymo_chunk *last = &w->chunks[w->count - 1].head;
	assert_int_equal(last->type, KY_KYMO_END);
	assert_int_equal(last->source, 0);
}

/* ---- the tests ---- */

static void sources_are_told_apart(void **state)
{
	(void)state;
	enum { SOURCES = 5 };
	static struct maker makers[SOURCES];
	static struct walk w;
	const char *path = in_folder("several.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	uint64_t events[SOURCES], lost[SOURCES], all = 0;
	for (uint32_t i = 0; i < SOURCES; i++)
		divert(&makers[i], 100 + i, bundle);
	for (uint32_t round = 0; round < 20; round++)
		for (uint32_t i = 0; i < SOURCES; i++)
			maker_rounds(&makers[i], 1, 30 * (i + 1));
	struct ky_bundle_facts facts;
	ky_bundle_facts(bundle, &facts);
	for (uint32_t i = 0; i < SOURCES; i++) {
		events[i] = into_of(makers[i].writer)->events;
		lost[i] = into_of(makers[i].writer)->lost;
		all += events[i];
		if (i % 2) /* the others end with the bundle */
			ky_bundle_drum_end(bundle, into_of(makers[i].writer)->source, lost[i] + 3);
		maker_close(&makers[i]);
	}
	assert_int_equal(facts.events, all);
	assert_int_equal(facts.files, 1);
	assert_string_equal(facts.path, path);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	assert_null(bundle);

	walk_file(&w, path);
	check_whole(&w);
	assert_int_equal(w.sources, SOURCES + 1);
	for (uint32_t i = 0; i < SOURCES; i++) {
		const struct ky_kymo_index *index = walk_index(&w, i + 1);
		assert_int_equal(walk_count(&w, i + 1, KY_KYMO_FILE), 1);
		assert_int_equal(walk_events(&w, i + 1), events[i]);
		assert_int_equal(walk_lost(&w, i + 1), lost[i]);
		assert_int_equal(index->events, events[i]);
		assert_int_equal(index->lost, i % 2 ? lost[i] + 3 : lost[i]);
		assert_int_equal(walk_records(&w, i + 1, KY_KYMO_PROCESS, NULL, NULL, 0), 1);
		assert_int_equal(walk_records(&w, i + 1, KY_KYMO_THREAD, NULL, NULL, 0),
				 MAKER_RINGS - 1);
		assert_int_equal(walk_records(&w, i + 1, KY_KYMO_CLOCK, NULL, NULL, 0), 21);
	}
	walk_free(&w);
}

/* An INDEX's places are those of the file. */
static void an_index_leads_to_its_chunks(void **state)
{
	(void)state;
	static struct maker makers[2];
	static struct walk w;
	const char *path = in_folder("index.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	divert(&makers[0], 1, bundle);
	divert(&makers[1], 2, bundle);
	for (uint32_t round = 0; round < 10; round++)
		for (uint32_t i = 0; i < 2; i++)
			maker_rounds(&makers[i], 1, 100);
	maker_close(&makers[0]);
	maker_close(&makers[1]);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	walk_file(&w, path);
	for (uint32_t source = 1; source <= 2; source++) {
		const struct ky_kymo_index *index = walk_index(&w, source);
		const uint8_t *entries = (const uint8_t *)index + index->size;
		assert_int_equal(index->entries, walk_count(&w, source, KY_KYMO_DATA));
		for (uint64_t i = 0; i < index->entries; i++) {
			struct ky_kymo_entry entry;
			struct ky_kymo_chunk chunk;
			memcpy(&entry, entries + i * index->entry_bytes, sizeof(entry));
			memcpy(&chunk, w.bytes + entry.at, sizeof(chunk));
			assert_int_equal(chunk.magic, KY_KYMO_MAGIC);
			assert_int_equal(chunk.type, KY_KYMO_DATA);
			assert_int_equal(chunk.source, source);
			assert_int_equal(entry.chunk_bytes, sizeof(chunk) + chunk.body_bytes);
		}
	}
	walk_free(&w);
}

/*
 * The same rings in a file of their own and in a bundle: bodies of definitions and events are
 * equal.
 */
static void a_source_is_what_its_own_file_would_be(void **state)
{
	(void)state;
	static struct maker alone, within;
	static struct walk file, w;
	const char *path = in_folder("same.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	maker_open(&alone, 7);
	divert(&within, 7, bundle);
	maker_rounds(&alone, 12, 60);
	maker_rounds(&within, 12, 60);
	maker_finish(&alone);
	ky_bundle_drum_end(bundle, into_of(within.writer)->source, within.lost + 3);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	walk_bytes(&file, alone.file, alone.file_bytes);
	walk_file(&w, path);
	uint32_t at = 0;
	for (uint32_t i = 0; i < w.count; i++) {
		const struct walk_chunk *a = &w.chunks[i];
		if (a->head.source != 1)
			continue;
		const struct walk_chunk *b = &file.chunks[at++];
		assert_int_equal(a->head.type, b->head.type);
		assert_int_equal(a->head.body_bytes, b->head.body_bytes);
		assert_int_equal(b->head.source, 0);
		if (a->head.type == KY_KYMO_DEFINE || a->head.type == KY_KYMO_DATA)
			assert_memory_equal(a->body, b->body, a->head.body_bytes);
	}
	assert_int_equal(at, file.count);
	walk_free(&file);
	walk_free(&w);
	maker_close(&alone);
	maker_close(&within);
}

/* ---- this process's own drum ---- */

struct real {
	struct into writer;
	struct ky_stream stream;
	struct ky_drum *drum;
	uint32_t clocks; /* told */
};

static void real_thread(void *context, const struct ky_thread *thread)
{
	struct real *real = context;
	into_thread(&real->writer, thread);
}

static void real_block(void *context, const struct ky_block *block, const struct ky_thread *thread)
{
	struct real *real = context;
	ky_bundle_block(real->writer.bundle, real->writer.source, block, thread,
			&real->stream.sites);
}

static void real_open(struct real *real, struct ky_bundle *bundle)
{
	const char *what = "";
	memset(real, 0, sizeof(*real));
	real->drum = ky_drum_get();
	assert_non_null(real->drum);
	ky_clock_take(real->drum, true);
	assert_int_equal(ky_stream_open(&real->stream, real->drum->base, real->drum->bytes, NULL,
					true, 0, &what),
			 0);
	assert_int_equal(ky_clock_map_update(&real->stream.clock, &real->stream.view), 0);
	const struct ky_trace_info info = {
		.pid = getpid(),
		.process = {"test", 4},
		.clock = real->stream.clock.readings[0],
		.ticks_per_s = ky_clock_ticks_per_s(&real->stream.clock),
	};
	real->clocks = 1;
	real->writer = (struct into){.bundle = bundle, .source = ky_bundle_drum(bundle, &info)};
	real->stream.sink = (struct ky_stream_sink){
		.thread = real_thread, .block = real_block, .context = real};
}

static void real_read(struct real *real)
{
	ky_clock_take(real->drum, true);
	assert_int_equal(ky_stream_read_all(&real->stream), 0);
	for (; real->clocks < real->stream.clock.count; real->clocks++)
		ky_bundle_clock(real->writer.bundle, real->writer.source,
				&real->stream.clock.readings[real->clocks]);
}

static void real_close(struct real *real)
{
	ky_bundle_drum_end(real->writer.bundle, real->writer.source, real->stream.lost);
	assert_int_equal(real->stream.lost, 0);
	ky_stream_close(&real->stream);
}

/* The steps of a file that was read into the model: they begin with number, one after the other. */
static uint32_t check_steps(const char *path, uint32_t number, int64_t *time_ns)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_trace *trace;
	if (ky_load(&trace, path, NULL, message) != 0)
		fail_msg("%s: %s", path, message);
	for (uint32_t i = 0; i < trace->slices.rows.count; i++) {
		if (strcmp(text_of(trace, trace->slices.name[i]), "step") != 0)
			continue;
		const uint32_t arg = arg_of(trace, trace->slices.args[i], "debug.i");
		assert_int_not_equal(arg, KY_NONE);
		assert_int_equal(trace->args.value[arg], number);
		assert_true((int64_t)trace->slices.ts[i] >= *time_ns);
		*time_ns = (int64_t)trace->slices.ts[i];
		number++;
	}
	assert_int_equal(trace->problems.rows.count, 0);
	ky_trace_close(&trace);
	return number;
}

static void real_rings_are_written(void **state)
{
	(void)state;
	enum { EVENTS = 1000 };
	static struct real real;
	static struct walk w;
	int64_t time_ns = 0;
	const char *path = in_folder("real.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	real_open(&real, bundle);
	for (int i = 0; i < EVENTS; i++)
		KYMO_INSTANT("bundle", "step", "i", i);
	real_read(&real);
	real_close(&real);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	walk_file(&w, path);
	check_whole(&w);
	assert_int_equal(walk_events(&w, 1), EVENTS);
	assert_int_equal(walk_records(&w, 1, KY_KYMO_SITE, NULL, NULL, 0), 1);
	walk_free(&w);
	assert_int_equal(check_steps(path, 0, &time_ns), EVENTS);
}

static void real_rings_that_rotate_are_read_back_whole(void **state)
{
	(void)state;
	enum { ROUNDS = 60, EVENTS = 500 };
	static struct real real;
	char pattern[160], path[160];
	int64_t time_ns = 0;
	uint32_t number = 0;
	struct ky_bundle_facts facts;
	snprintf(pattern, sizeof(pattern), "%s", in_folder("real-${rotation}.kymo"));
	struct ky_bundle *bundle = open_bundle(pattern, 20000, 0);
	real_open(&real, bundle);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < EVENTS; i++)
			KYMO_INSTANT("bundle", "step", "i", round * EVENTS + i, "noise",
				     (uint64_t)random() * (uint64_t)random());
		real_read(&real);
		ky_bundle_flush(bundle);
	}
	real_close(&real);
	ky_bundle_facts(bundle, &facts);
	const uint32_t files = facts.files;
	assert_true(files > 2);
	assert_int_equal(facts.events, ROUNDS * EVENTS);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	for (uint32_t i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/real-%u.kymo", folder, i);
		number = check_steps(path, number, &time_ns);
	}
	assert_int_equal(number, ROUNDS * EVENTS);
}

static void streams_come_out_as_they_went_in(void **state)
{
	(void)state;
	enum { SMALL = 2000, LARGE = (20u << 20) + 8 };
	static struct walk w;
	const char *path = in_folder("streams.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	const uint32_t ftrace = ky_bundle_stream(bundle, KY_KYMO_STREAM_FTRACE, NULL, NULL);
	const uint32_t perf = ky_bundle_stream(bundle, KY_KYMO_STREAM_PERF, NULL, NULL);
	assert_int_equal(ftrace, 1);
	assert_int_equal(perf, 2);
	uint8_t *large = malloc(LARGE);
	for (uint32_t i = 0; i < LARGE; i++)
		large[i] = (uint8_t)(i * 2654435761u >> 13);
	for (uint32_t i = 0; i < SMALL; i++) {
		ky_bundle_stream_write(bundle, ftrace, large + (size_t)8 * i, 800);
		if (i == SMALL / 2) /* more than one chunk takes */
			ky_bundle_stream_write(bundle, perf, large, LARGE);
	}
	ky_bundle_stream_write(bundle, 77, large, 8); /* there is none */
	assert_int_equal(ky_bundle_close(&bundle), 0);

	uint8_t *out;
	walk_file(&w, path);
	check_whole(&w);
	assert_int_equal(walk_stream(&w, perf, &out), LARGE);
	assert_memory_equal(out, large, LARGE);
	free(out);
	assert_int_equal(walk_stream(&w, ftrace, &out), 800 * SMALL);
	for (uint32_t i = 0; i < SMALL; i++)
		assert_memory_equal(out + (size_t)800 * i, large + (size_t)8 * i, 800);
	free(out);
	free(large);
	walk_free(&w);
}

static void snapshots_notes_and_clocks_are_of_source_0(void **state)
{
	(void)state;
	static struct walk w;
	const char *path = in_folder("about.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	const struct ky_bundle_snapshot snapshot = {
		.time_ns = 30,
		.from_ns = 10,
		.to_ns = 40,
		.pid = 5,
		.tid = 6,
		.args_count = 1,
		.args = {42, 0},
		.trigger = "crash",
		.reason = "SIGSEGV",
		.stack = "main\nstart",
	};
	ky_bundle_note(bundle, "kernel: not recorded");
	ky_bundle_snapshot(bundle, &snapshot);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	walk_file(&w, path);
	check_whole(&w);
	uint8_t record[256] = {0};
	struct ky_kymo_record head;
	struct ky_kymo_snapshot fixed;
	assert_int_equal(walk_records(&w, 0, KY_KYMO_SNAPSHOT, &head, record, sizeof(record)), 1);
	assert_int_equal(head.fixed_bytes, sizeof(fixed));
	memcpy(&fixed, record, sizeof(fixed));
	assert_int_equal(fixed.time_ns, 30);
	assert_int_equal(fixed.args[0], 42);
	assert_memory_equal(record + sizeof(fixed), "crashSIGSEGVmain\nstart", 22);
	assert_int_equal(walk_records(&w, 0, KY_KYMO_NOTE, &head, record, sizeof(record)), 1);
	assert_memory_equal(record, "kernel: not recorded", 20);
	struct ky_kymo_clock clock;
	assert_true(walk_records(&w, 0, KY_KYMO_CLOCK, &head, record, sizeof(record)) >= 2);
	memcpy(&clock, record, sizeof(clock));
	assert_int_equal(clock.ticks, clock.boottime_ns);
	assert_true(clock.boottime_ns >= clock.monotonic_ns);
	walk_free(&w);
}

/* A file that is cut at any byte is whole up to its last whole chunk. */
static void a_file_may_be_cut_anywhere(void **state)
{
	(void)state;
	static struct maker m;
	static struct walk w, cut;
	const char *path = in_folder("cut.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	divert(&m, 11, bundle);
	maker_rounds(&m, 3, 10);
	maker_close(&m);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	walk_file(&w, path);
	for (size_t bytes = 0; bytes < w.size; bytes++) {
		walk_bytes(&cut, w.bytes, bytes);
		assert_true(cut.whole_bytes <= bytes);
		assert_true(cut.count < w.count);
		assert_true(bytes < w.chunks[cut.count].at + sizeof(w.chunks[0].head) +
					    w.chunks[cut.count].head.body_bytes);
		walk_free(&cut);
	}
	walk_free(&w);
}

/* What was flushed is in the file, whatever happens to kymo then. */
static void what_is_flushed_survives(void **state)
{
	(void)state;
	static struct maker m;
	static struct walk w;
	const char *path = in_folder("flushed.kymo");
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	const uint32_t stream = ky_bundle_stream(bundle, KY_KYMO_STREAM_PERF, NULL, NULL);
	uint8_t *out;
	divert(&m, 12, bundle);
	maker_rounds(&m, 3, 40);
	ky_bundle_stream_write(bundle, stream, "12345678", 8);
	ky_bundle_flush(bundle);
	walk_file(&w, path);
	assert_int_equal(w.whole_bytes, w.size);
	assert_int_equal(walk_events(&w, into_of(m.writer)->source), into_of(m.writer)->events);
	assert_int_equal(walk_stream(&w, stream, &out), 8);
	free(out);
	walk_free(&w);
	maker_close(&m);
	assert_int_equal(ky_bundle_close(&bundle), 0);
}

static struct ky_bundle *restated;

static void restate(void *context, uint32_t source)
{
	(*(uint32_t *)context)++;
	ky_bundle_stream_write(restated, source, "headhead", 8);
}

static void check_rotated(const struct walk *w, uint32_t drum, uint32_t stream, uint64_t *events,
			  uint64_t *lost)
{
	uint8_t *out;
	check_whole(w);
	assert_int_equal(walk_count(w, drum, KY_KYMO_FILE), 1);
	assert_int_equal(walk_records(w, drum, KY_KYMO_PROCESS, NULL, NULL, 0), 1);
	assert_true(walk_records(w, drum, KY_KYMO_CLOCK, NULL, NULL, 0) >= 1);
	assert_true(walk_records(w, 0, KY_KYMO_NOTE, NULL, NULL, 0) == 1);
	if (walk_events(w, drum)) {
		assert_true(walk_records(w, drum, KY_KYMO_THREAD, NULL, NULL, 0) >= 1);
		assert_true(walk_records(w, drum, KY_KYMO_SITE, NULL, NULL, 0) >= 1);
	}
	*events += walk_events(w, drum);
	*lost += walk_index(w, drum)->lost;
	assert_true(walk_stream(w, stream, &out) >= 8);
	assert_memory_equal(out, "headhead", 8);
	free(out);
}

static void each_file_of_a_rotation_stands_on_its_own(void **state)
{
	(void)state;
	static struct maker m;
	static struct walk w;
	char pattern[160], path[160];
	uint32_t restates = 0, files;
	uint64_t events = 0, lost = 0;
	snprintf(pattern, sizeof(pattern), "%s", in_folder("r-${rotation}.kymo"));
	restated = open_bundle(pattern, 100000, 0);
	const uint32_t stream = ky_bundle_stream(restated, KY_KYMO_STREAM_PERF, restate, &restates);
	restate(&restates, stream);
	ky_bundle_note(restated, "a note");
	divert(&m, 13, restated);
	maker_rounds(&m, 400, 40);
	struct ky_bundle_facts facts;
	ky_bundle_facts(restated, &facts);
	files = facts.files;
	assert_true(files > 3);
	assert_int_equal(restates, files);
	assert_false(ky_bundle_is_full(restated));
	ky_bundle_drum_end(restated, into_of(m.writer)->source, into_of(m.writer)->lost + 5);
	assert_int_equal(ky_bundle_close(&restated), 0);
	for (uint32_t i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/r-%u.kymo", folder, i);
		walk_file(&w, path);
		check_rotated(&w, into_of(m.writer)->source, stream, &events, &lost);
		assert_true(w.size < 400000);
		walk_free(&w);
	}
	assert_int_equal(events, into_of(m.writer)->events);
	assert_int_equal(lost, into_of(m.writer)->lost + 5);
	maker_close(&m);
}

static void the_oldest_files_are_removed(void **state)
{
	(void)state;
	static struct maker m;
	char pattern[160], path[160];
	snprintf(pattern, sizeof(pattern), "%s", in_folder("k-${rotation}.kymo"));
	struct ky_bundle *bundle = open_bundle(pattern, 50000, 2);
	divert(&m, 14, bundle);
	maker_rounds(&m, 300, 40);
	struct ky_bundle_facts facts;
	ky_bundle_facts(bundle, &facts);
	const uint32_t files = facts.files;
	assert_true(files > 3);
	maker_close(&m);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	for (uint32_t i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/k-%u.kymo", folder, i);
		assert_int_equal(access(path, F_OK) == 0, i + 2 >= files);
	}
}

/* A limit that the repeated definitions alone reach does not make a file for each event. */
static void a_tiny_limit_does_not_make_files_without_end(void **state)
{
	(void)state;
	static struct maker m;
	char pattern[160];
	snprintf(pattern, sizeof(pattern), "%s", in_folder("t-${rotation}.kymo"));
	struct ky_bundle *bundle = open_bundle(pattern, 1, 3);
	divert(&m, 15, bundle);
	maker_rounds(&m, 20, 40);
	struct ky_bundle_facts facts;
	ky_bundle_facts(bundle, &facts);
	assert_true(facts.files < 60);
	maker_close(&m);
	assert_int_equal(ky_bundle_close(&bundle), 0);
}

static void a_full_bundle_counts_what_it_leaves_out(void **state)
{
	(void)state;
	static struct maker m;
	static struct walk w;
	const char *path = in_folder("full.kymo");
	struct ky_bundle *bundle = open_bundle(path, 100000, 0);
	divert(&m, 16, bundle);
	maker_rounds(&m, 300, 40);
	assert_true(ky_bundle_is_full(bundle));
	assert_int_equal(ky_bundle_error(bundle), 0);
	ky_bundle_drum_end(bundle, into_of(m.writer)->source, into_of(m.writer)->lost);
	assert_int_equal(ky_bundle_close(&bundle), 0);
	walk_file(&w, path);
	check_whole(&w);
	assert_true(w.size < 400000);
	const struct ky_kymo_index *index = walk_index(&w, into_of(m.writer)->source);
	assert_int_equal(index->events + index->lost,
			 into_of(m.writer)->events + into_of(m.writer)->lost);
	walk_free(&w);
	maker_close(&m);
}

/* ---- what goes wrong ---- */

static void a_path_that_cannot_be_written_is_refused(void **state)
{
	(void)state;
	struct ky_bundle *bundle;
	char message[KY_MESSAGE_BYTES];
	struct ky_bundle_options options = {.path = "/proc/nonexistent/x.kymo"};
	assert_int_equal(ky_bundle_open(&bundle, &options, message), -ENOENT);
	assert_null(bundle);
	assert_non_null(strstr(message, "/proc/nonexistent/x.kymo"));
	options.path = "/dev/full";
	assert_int_equal(ky_bundle_open(&bundle, &options, message), -ENOSPC);
	assert_non_null(strstr(message, "/dev/full"));
	options = (struct ky_bundle_options){.fd = -1};
	assert_int_equal(ky_bundle_open(&bundle, &options, message), -EBADF);
}

static void a_pipe_without_a_reader_is_an_error(void **state)
{
	(void)state;
	static struct maker m;
	struct ky_bundle *bundle;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	const struct ky_bundle_options options = {.fd = ends[1]};
	assert_int_equal(ky_bundle_open(&bundle, &options, NULL), 0);
	divert(&m, 17, bundle);
	close(ends[0]);
	maker_rounds(&m, 3, 40);
	ky_bundle_flush(bundle);
	assert_int_equal(ky_bundle_error(bundle), -EPIPE);
	maker_rounds(&m, 3, 40);
	assert_int_equal(ky_bundle_drum(bundle, &(struct ky_trace_info){.pid = 1}), 0);
	assert_int_equal(ky_bundle_close(&bundle), -EPIPE);
	maker_close(&m);
	assert_int_equal(fcntl(ends[1], F_GETFD) >= 0, 1); /* it stays the caller's */
	close(ends[1]);
}

/* A small tmpfs of its own, in a mount namespace of its own. */
static int fill_a_disk(const char *path)
{
	static struct maker m;
	static struct walk w;
	struct ky_bundle *bundle = open_bundle(path, 0, 0);
	divert(&m, 18, bundle);
	maker_rounds(&m, 400, 40);
	ky_bundle_flush(bundle);
	CHECK(ky_bundle_error(bundle) == -ENOSPC);
	CHECK(ky_bundle_close(&bundle) == -ENOSPC);
	maker_close(&m);
	walk_file(&w, path);
	check_first(&w);
	CHECK(walk_events(&w, 1) > 100);
	walk_free(&w);
	return 0;
}

static void a_full_disk_keeps_what_is_there(void **state)
{
	(void)state;
	enum { NOT_POSSIBLE = 77 };
	const char *mount_point = in_folder("disk");
	assert_int_equal(mkdir(mount_point, 0700), 0);
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) != 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("none", mount_point, "tmpfs", 0, "size=256k") != 0)
			_exit(NOT_POSSIBLE);
		_exit(fill_a_disk(in_folder("disk/small.kymo")));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_POSSIBLE)
		skip(); /* only root may mount */
	assert_int_equal(status, 0);
}

int main(void)
{
	ky_limits.categories = "bundle";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources_are_told_apart),
		cmocka_unit_test(an_index_leads_to_its_chunks),
		cmocka_unit_test(a_source_is_what_its_own_file_would_be),
		cmocka_unit_test(real_rings_are_written),
		cmocka_unit_test(real_rings_that_rotate_are_read_back_whole),
		cmocka_unit_test(streams_come_out_as_they_went_in),
		cmocka_unit_test(snapshots_notes_and_clocks_are_of_source_0),
		cmocka_unit_test(a_file_may_be_cut_anywhere),
		cmocka_unit_test(what_is_flushed_survives),
		cmocka_unit_test(each_file_of_a_rotation_stands_on_its_own),
		cmocka_unit_test(the_oldest_files_are_removed),
		cmocka_unit_test(a_tiny_limit_does_not_make_files_without_end),
		cmocka_unit_test(a_full_bundle_counts_what_it_leaves_out),
		cmocka_unit_test(a_path_that_cannot_be_written_is_refused),
		cmocka_unit_test(a_pipe_without_a_reader_is_an_error),
		cmocka_unit_test(a_full_disk_keeps_what_is_there),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
