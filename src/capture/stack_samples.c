/* SPDX-License-Identifier: MIT */
/*
 * stack_samples.c: see stack_samples.h. A round reads the rings of all CPUs, orders the records by
 * time, and handles each once:
 *
 *   rings ─▶ batch, by time ─┬▶ spaces: what is mapped where ─▶ addresses that need a name
 *                            ├▶ written to the bundle
 *                            └▶ flight: kept until a window needs it
 *
 * In that order an address is looked up in what was mapped when it was sampled. A record can still
 * come a round late from another CPU's ring: an address without a mapping waits one round.
 */
#include "capture/stack_samples.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/fail.h"
#include "capture/perf_out.h"
#include "capture/sample_names.h"
#include "capture/sample_processes.h"
#include "process/perf_events.h"
#include "process/perf_record.h"
#include "process/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the events: a clock that takes call stacks of threads or of whole CPUs ---- */

struct sample_events {
	struct ky_perf_events rings;
	struct ky_perf_set clocks;
};

/* An ordinary user may lock this and its first page for each CPU (perf_event_mlock_kb). */
#define RING_BYTES (512u << 10)
#define ALL_CPUS "all CPUs"

static int events_refused(int error, const char *what, char message[KY_MESSAGE_BYTES])
{
	char tried[64];
	snprintf(tried, sizeof(tried), "samples: %s", what);
	return ky_perf_events_refused(error, tried, strcmp(what, ALL_CPUS) == 0 ? 0 : 2, message);
}

static int events_open(struct sample_events *events, uint32_t per_second,
		       char message[KY_MESSAGE_BYTES])
{
	struct perf_event_attr attr = ky_perf_events_clock(per_second, KY_PERF_SAMPLE_TYPE);
	const int most = ky_proc_setting("/proc/sys/kernel/perf_event_max_sample_rate");
	*events = (struct sample_events){.rings.poll_fd = -1};
	if (per_second == 0 || per_second > (uint32_t)most)
		return ky_fail(message, -EINVAL,
			       "samples: %u a second: the kernel allows 1 to %d "
			       "(kernel.perf_event_max_sample_rate)",
			       per_second, most);
	attr.build_id = 1;
	const int error = ky_perf_events_open(&events->rings, &attr, RING_BYTES);
	return error ? events_refused(error, "kymo's own clock", message) : 0;
}

static int events_thread(struct sample_events *events, pid_t tid, bool after_exec)
{
	struct perf_event_attr attr = events->rings.attr;
	attr.enable_on_exec = after_exec;
	return ky_perf_set_add(&events->clocks, &events->rings, &attr, tid);
}

static int events_all(struct sample_events *events, char message[KY_MESSAGE_BYTES])
{
	struct perf_event_attr attr = events->rings.attr;
	attr.inherit = 0;
	const int error = ky_perf_set_add(&events->clocks, &events->rings, &attr, -1);
	return error ? events_refused(error, ALL_CPUS, message) : 0;
}

#define WAITING_MAX 4096u
#define ADD_PASSES 8u
/* Records that come late from a ring are still wanted. */
#define SLACK_NS UINT64_C(200000000)

/* An address without a known mapping. */
struct waiting {
	uint64_t address;
	uint64_t time;
	uint32_t pid;
};

struct batch_entry {
	uint64_t time;
	size_t place; /* in the batch's bytes */
};

struct ky_stack_samples {
	struct ky_bundle *bundle;
	uint32_t part; /* in it */
	bool all;
	bool is_flight;
	uint64_t before_ns;
	struct sample_events events;
	uint64_t kernel_text;
	struct ky_sample_modules modules;
	struct ky_sample_processes spaces; /* as of the last record that was taken */
	struct ky_sample_addresses addresses;
	struct ky_sample_flight flight;
	struct ky_perf_out out;
	struct ky_perf_out batch;
	struct batch_entry *entries;
	size_t entries_count, entries_room;
	struct waiting waiting[WAITING_MAX];
	uint32_t waiting_count;
	uint32_t waited; /* of them, since the round before */
	struct ky_stack_samples_facts facts;
};

/* ---- addresses ---- */

static void remember(struct ky_stack_samples *samples, uint32_t module, uint32_t pid,
		     uint64_t address, uint64_t time)
{
	const struct ky_sample_address one = {.address = address,
					      .module = module,
					      .pid = pid,
					      .seen = time,
					      .wanted = !samples->is_flight};
	const uint64_t keep = samples->before_ns + SLACK_NS;
	ky_sample_addresses_add(&samples->addresses, &one, time > keep ? time - keep : 0);
}

/* Report whether something is known to be there. */
static bool add_user_address(struct ky_stack_samples *samples, uint32_t pid, uint64_t address,
			     uint64_t time)
{
	const struct ky_address_range *range =
		ky_sample_processes_find(&samples->spaces, pid, address);
	if (!range)
		return false;
	const enum ky_sample_module_kind kind = samples->modules.items[range->module].kind;
	if (kind == KY_SAMPLE_MADE || kind == KY_SAMPLE_JITDUMP) {
		remember(samples, KY_NO_MODULE, pid, address, time);
		return true;
	}
	ky_sample_modules_open(&samples->modules, range->module, (pid_t)pid);
	remember(samples, range->module, 0, address - range->start + range->offset, time);
	return true;
}

static void wait_for_mapping(struct ky_stack_samples *samples, uint32_t pid, uint64_t address,
			     uint64_t time)
{
	if (samples->waiting_count == WAITING_MAX)
		remember(samples, KY_NO_MODULE, pid, address, time);
	else
		samples->waiting[samples->waiting_count++] =
			(struct waiting){.address = address, .time = time, .pid = pid};
}

/* Addresses that waited a whole round have no mapping. */
static void look_again(struct ky_stack_samples *samples)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < samples->waiting_count; i++) {
		const struct waiting waiting = samples->waiting[i];
		if (add_user_address(samples, waiting.pid, waiting.address, waiting.time))
			continue;
		if (i < samples->waited)
			remember(samples, KY_NO_MODULE, waiting.pid, waiting.address, waiting.time);
		else
			samples->waiting[kept++] = waiting;
	}
	samples->waiting_count = samples->waited = kept;
}

static void add_address(struct ky_stack_samples *samples, const struct ky_perf_sample_head *sample,
			bool kernel, uint64_t address)
{
	if (kernel)
		remember(samples, KY_SAMPLE_KERNEL, 0, address, sample->time);
	else if (!add_user_address(samples, sample->pid, address, sample->time))
		wait_for_mapping(samples, sample->pid, address, sample->time);
}

/*
 * Only the first address of each context is where the thread was. The others are return addresses,
 * one after the call whose name and line are wanted.
 */
static void add_chain(struct ky_stack_samples *samples, const struct perf_event_header *record)
{
	struct ky_perf_sample_head sample;
	if (record->size < sizeof(sample))
		return;
	memcpy(&sample, record, sizeof(sample));
	const uint64_t room = (record->size - sizeof(sample)) / sizeof(uint64_t);
	const uint64_t words = sample.chain_words < room ? sample.chain_words : room;
	bool kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	bool returns = false;
	for (uint64_t i = 0; i < words; i++) {
		uint64_t word;
		memcpy(&word, (const uint8_t *)record + sizeof(sample) + i * sizeof(word),
		       sizeof(word));
		if (word >= KY_PERF_CONTEXT_FIRST) {
			kernel = word == (uint64_t)PERF_CONTEXT_KERNEL;
			returns = false;
			continue;
		}
		add_address(samples, &sample, kernel, word - returns);
		returns = true;
	}
	if (!words)
		add_address(samples, &sample, kernel, sample.ip);
}

/* ---- records ---- */

static void write_out(struct ky_stack_samples *samples, struct ky_perf_out *out)
{
	if (out->used)
		ky_bundle_stream_write(samples->bundle, samples->part, out->bytes, out->used);
	out->used = 0;
}

static void take_record(struct ky_stack_samples *samples, const struct perf_event_header *record)
{
	struct ky_perf_record parsed;
	ky_sample_processes_take(&samples->spaces, record);
	if (record->type == PERF_RECORD_SAMPLE) {
		samples->facts.samples++;
		add_chain(samples, record);
	} else if ((record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES) &&
		   ky_perf_record_parse(&parsed, record, KY_PERF_SAMPLE_TYPE)) {
		samples->facts.lost += parsed.lost;
	}
	if (samples->is_flight)
		ky_sample_flight_keep(&samples->flight, record);
	else
		ky_perf_out_add(&samples->out, record, record->size);
}

/* Take records that were made here, as if they came from a ring. */
static void take_made(struct ky_stack_samples *samples, const struct ky_perf_out *made)
{
	for (size_t at = 0; at < made->used;) {
		const struct perf_event_header *record =
			(const struct perf_event_header *)(const void *)(made->bytes + at);
		take_record(samples, record);
		at += record->size;
	}
}

/* Write what a file or a flight recorder's first window begins with. */
static void write_beginning(struct ky_stack_samples *samples,
			    const struct ky_sample_processes *spaces, struct ky_perf_out *out)
{
	ky_perf_out_head(out, &samples->events.rings.attr);
	if (samples->kernel_text)
		ky_perf_out_kernel(out, samples->kernel_text);
	ky_sample_processes_write(spaces, out);
	ky_perf_out_round(out);
}

static void restate(void *context, uint32_t part)
{
	struct ky_stack_samples *samples = context;
	struct ky_perf_out out = {0};
	if (samples->is_flight && !samples->flight.begun)
		return;
	write_beginning(samples, samples->is_flight ? &samples->flight.base : &samples->spaces,
			&out);
	ky_sample_flight_again(&samples->flight);
	ky_bundle_stream_write(samples->bundle, part, out.bytes, out.used);
	ky_perf_out_free(&out);
}

/* ---- a round ---- */

static bool add_entry(struct ky_stack_samples *samples, const struct perf_event_header *record)
{
	const struct batch_entry entry = {.time = ky_perf_record_time(record, KY_PERF_SAMPLE_TYPE),
					  .place = samples->batch.used};
	if (!KY_ARRAY_ADD(samples->entries, samples->entries_count, samples->entries_room, entry))
		return false;
	ky_perf_out_add(&samples->batch, record, record->size);
	if (samples->batch.failed)
		samples->entries_count--;
	return !samples->batch.failed;
}

static void gather(struct ky_stack_samples *samples)
{
	samples->batch.used = 0;
	samples->batch.failed = false;
	samples->entries_count = 0;
	/* Read all ends first, close to each other, so that few records come in the wrong round. */
	for (uint32_t i = 0; i < samples->events.rings.cpus_count; i++)
		ky_perf_ring_begin(&samples->events.rings.cpus[i].ring);
	for (uint32_t i = 0; i < samples->events.rings.cpus_count; i++) {
		struct ky_perf_ring *ring = &samples->events.rings.cpus[i].ring;
		for (const struct perf_event_header *record; (record = ky_perf_ring_next(ring));)
			if (!add_entry(samples, record))
				samples->facts.lost++;
		ky_perf_ring_end(ring);
	}
}

KY_ORDER(by_time, struct batch_entry,
	 KY_COMPARE_THEN(a->time, b->time, KY_COMPARE(a->place, b->place)))

static void drop_old(struct ky_stack_samples *samples)
{
	const uint64_t now = (uint64_t)ky_clock_ns(CLOCK_MONOTONIC);
	const uint64_t keep = samples->before_ns + SLACK_NS;
	ky_sample_flight_drop(&samples->flight, now > keep ? now - keep : 0);
	write_out(samples, &samples->flight.late);
}

void ky_stack_samples_round(struct ky_stack_samples *samples, bool all)
{
	(void)all; /* always read everything */
	gather(samples);
	if (samples->entries_count > 1)
		qsort(samples->entries, samples->entries_count, sizeof(*samples->entries), by_time);
	for (size_t i = 0; i < samples->entries_count; i++)
		take_record(samples, (const struct perf_event_header
					      *)(const void *)(samples->batch.bytes +
							       samples->entries[i].place));
	look_again(samples);
	ky_sample_processes_round(&samples->spaces);
	if (samples->is_flight) {
		drop_old(samples);
	} else if (samples->out.used) {
		ky_perf_out_round(&samples->out);
		write_out(samples, &samples->out);
	}
}

/* ---- windows ---- */

/* CLOCK_MONOTONIC stops while the machine sleeps. */
static uint64_t monotonic_of(uint64_t boottime_ns)
{
	const int64_t before = (int64_t)(uint64_t)ky_clock_ns(CLOCK_MONOTONIC);
	const int64_t boottime = (int64_t)(uint64_t)ky_clock_ns(CLOCK_BOOTTIME);
	const int64_t after = (int64_t)(uint64_t)ky_clock_ns(CLOCK_MONOTONIC);
	const int64_t ahead = boottime - before - (after - before) / 2;
	const int64_t time = (int64_t)boottime_ns - ahead;
	return boottime_ns > INT64_MAX ? UINT64_MAX : time > 0 ? (uint64_t)time : 0;
}

void ky_stack_samples_window(struct ky_stack_samples *samples, uint64_t from_ns, uint64_t to_ns)
{
	struct ky_perf_out out = {0};
	const uint64_t from = monotonic_of(from_ns);
	const uint64_t to = monotonic_of(to_ns);
	if (!samples->is_flight)
		return;
	ky_stack_samples_round(samples, true);
	if (!samples->flight.begun)
		write_beginning(samples, &samples->flight.base, &out);
	ky_sample_flight_window(&samples->flight, from, to, &out);
	ky_perf_out_round(&out);
	write_out(samples, &out);
	ky_perf_out_free(&out);
	ky_sample_addresses_want(&samples->addresses, from);
}

/* ---- processes ---- */

struct adding {
	struct ky_stack_samples *samples;
	struct ky_u64_map tried;
	bool after_exec;
	uint32_t opened;
	uint32_t refused;
	uint32_t fresh; /* in this pass */
	int error;      /* of the first that was refused */
};

static void add_thread(void *context, pid_t tid)
{
	struct adding *adding = context;
	bool made;
	if (!ky_u64_map_add(&adding->tried, (uint64_t)tid, &made) || !made ||
	    ky_sample_processes_has_thread(&adding->samples->spaces, (uint32_t)tid))
		return;
	adding->fresh++;
	const int error = events_thread(&adding->samples->events, tid, adding->after_exec);
	adding->opened += !error;
	if (!error || error == -ESRCH)
		return;
	adding->refused++;
	adding->error = adding->error ? adding->error : error;
}

/*
 * Threads may make threads in the meantime: those of threads that have their event come with a FORK
 * record, others are found again.
 */
static void add_threads(struct adding *adding, pid_t pid)
{
	for (uint32_t pass = 0; pass < ADD_PASSES; pass++) {
		adding->fresh = 0;
		ky_perf_out_threads(pid, add_thread, adding);
		if (!adding->fresh)
			break;
		ky_stack_samples_round(adding->samples, true);
	}
}

static void note_refused(const struct adding *adding, pid_t pid)
{
	ky_bundle_note(
		adding->samples->bundle,
		"samples: %u of %u threads of process %d are not sampled: perf_event_open: %s",
		adding->refused, adding->refused + adding->opened, (int)pid,
		strerror(-adding->error));
}

int ky_stack_samples_add(struct ky_stack_samples *samples, pid_t pid, bool before_exec,
			 char message[KY_MESSAGE_BYTES])
{
	char what[32];
	if (samples->all)
		return 0;
	/* A child of a sampled process is sampled already, and its FORK record says so. */
	ky_stack_samples_round(samples, true);
	if (ky_sample_processes_has(&samples->spaces, (uint32_t)pid))
		return 0;
	struct adding adding = {.samples = samples, .after_exec = before_exec};
	struct ky_perf_out made = {0};
	const uint64_t time = (uint64_t)ky_clock_ns(CLOCK_MONOTONIC);
	add_threads(&adding, pid);
	ky_u64_map_free(&adding.tried);
	if (!adding.opened) {
		snprintf(what, sizeof(what), "process %d", (int)pid);
		return events_refused(adding.error ? adding.error : -ESRCH, what, message);
	}
	if (adding.refused)
		note_refused(&adding, pid);
	ky_perf_out_process(&made, pid, time);
	take_made(samples, &made);
	ky_perf_out_free(&made);
	return 0;
}

/* ---- opening and closing ---- */

static int begin_all(struct ky_stack_samples *samples, char message[KY_MESSAGE_BYTES])
{
	struct ky_perf_out made = {0};
	const int error = events_all(&samples->events, message);
	if (error)
		return error;
	ky_perf_out_all(&made, 0);
	for (size_t at = 0; at < made.used;) {
		const struct perf_event_header *record =
			(const struct perf_event_header *)(const void *)(made.bytes + at);
		ky_sample_processes_take(&samples->spaces, record);
		ky_sample_processes_take(&samples->flight.base, record);
		at += record->size;
	}
	ky_perf_out_free(&made);
	return 0;
}

static int begin(struct ky_stack_samples *samples, const struct ky_stack_samples_options *options,
		 char message[KY_MESSAGE_BYTES])
{
	int error = events_open(&samples->events, options->per_second, message);
	if (error)
		return error;
	samples->facts.kernel_hidden = samples->events.rings.kernel_hidden;
	if (!samples->facts.kernel_hidden)
		samples->kernel_text = ky_perf_out_kernel_text();
	error = samples->all ? begin_all(samples, message) : 0;
	if (error)
		return error;
	samples->part = ky_bundle_stream(samples->bundle, KY_KYMO_STREAM_PERF, restate, samples);
	if (!samples->part) {
		error = ky_bundle_error(samples->bundle);
		return ky_fail(message, error ? error : -ENOMEM,
			       "samples: cannot write the file: %s",
			       strerror(error ? -error : ENOMEM));
	}
	if (!samples->is_flight) {
		write_beginning(samples, &samples->spaces, &samples->out);
		write_out(samples, &samples->out);
	}
	return 0;
}

static void free_all(struct ky_stack_samples *samples)
{
	ky_perf_set_close(&samples->events.clocks);
	ky_perf_events_close(&samples->events.rings);
	ky_sample_flight_free(&samples->flight);
	ky_sample_processes_free(&samples->spaces);
	ky_sample_addresses_free(&samples->addresses);
	ky_sample_modules_free(&samples->modules);
	ky_perf_out_free(&samples->out);
	ky_perf_out_free(&samples->batch);
	KY_ARRAY_FREE(samples->entries, samples->entries_room);
	free(samples);
}

int ky_stack_samples_open(struct ky_stack_samples **out,
			  const struct ky_stack_samples_options *options,
			  char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	struct ky_stack_samples *samples = calloc(1, sizeof(*samples));
	if (!samples)
		return ky_fail(message, -ENOMEM, "samples: out of memory");
	samples->bundle = options->bundle;
	samples->all = options->all;
	samples->is_flight = options->flight;
	samples->before_ns = options->before_ns;
	samples->events.rings.poll_fd = -1;
	samples->spaces.modules = &samples->modules;
	samples->flight.base.modules = &samples->modules;
	const int error = begin(samples, options, message);
	if (error) {
		free_all(samples);
		return error;
	}
	*out = samples;
	return 0;
}

void ky_stack_samples_close(struct ky_stack_samples **out)
{
	struct ky_stack_samples *samples = *out;
	*out = NULL;
	if (!samples)
		return;
	ky_stack_samples_round(samples, true);
	/* Twice, so that addresses that wait for a mapping get their place. */
	look_again(samples);
	look_again(samples);
	ky_sample_names_write(samples->bundle, &samples->addresses, &samples->modules);
	free_all(samples);
}

int ky_stack_samples_fd(const struct ky_stack_samples *samples)
{
	return samples->events.rings.poll_fd;
}

void ky_stack_samples_facts(const struct ky_stack_samples *samples,
			    struct ky_stack_samples_facts *facts)
{
	*facts = samples->facts;
	facts->lost += samples->flight.dropped;
}
