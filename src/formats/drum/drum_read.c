/* SPDX-License-Identifier: MIT */
/*
 * drum_read.c: the drum of a process into the model: a file that KYMO_DRUM_DIR left behind, or, as "pid:N", of a
 * process that runs. A drum holds the newest events: spans whose begins were overwritten are the rule, so that
 * nothing is built before all was read.
 */
#include "formats/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/layout.h"
#include "formats/drum/drum_file.h"
#include "formats/drum/drum_import.h"

/* Progress is reported, and an interruption noticed, every so many events. */
#define PROGRESS_EVENTS (1u << 16)

struct drum_reading {
	struct ky_load *load;
	struct ky_event_intake *intake;
	uint64_t events;
	int error;
};

static bool probe(const struct ky_probe *probe)
{
	uint64_t magic;
	if (probe->bytes < sizeof(magic))
		return false;
	memcpy(&magic, probe->data, sizeof(magic));
	return magic == KY_DRUM_MAGIC;
}

static void on_thread(void *context, const struct ky_thread *thread)
{
	struct drum_reading *reading = context;
	ky_event_intake_thread(reading->intake, thread);
}

static void on_event(void *context, const struct ky_event *event)
{
	struct drum_reading *reading = context;
	if (reading->error)
		return;
	ky_event_intake_event(reading->intake, event);
	if (++reading->events % PROGRESS_EVENTS == 0)
		reading->error = reading->load->progress(reading->load, reading->events, 0);
}

static void on_end(void *context, const struct ky_thread *thread, uint64_t time_ns)
{
	struct drum_reading *reading = context;
	ky_event_intake_thread_end(reading->intake, thread, time_ns);
}

static void put_lost(struct ky_trace *trace, uint64_t events, enum ky_loss cause)
{
	if (events)
		ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, events, cause);
}

static void put_categories(struct ky_trace *trace, const struct ky_drum_file *file)
{
	struct ky_drum_category_facts category;
	for (uint32_t i = 0; ky_drum_file_category(file, i, &category); i++)
		if (category.name.bytes)
			ky_put_metadata(trace,
					category.on ? "drum_category_on" : "drum_category_off",
					ky_string(trace, category.name.data, category.name.bytes));
}

static void put_facts(struct ky_trace *trace, const struct ky_drum_file *file)
{
	static const char *const rates[] = {"samples", "nominal", "boot", "machine", "guessed"};
	struct ky_drum_facts facts;
	ky_drum_file_facts(file, &facts);
	ky_put_metadata_number(trace, "drum_pid", facts.pid);
	ky_put_metadata_number(trace, "drum_bytes", (int64_t)facts.drum_bytes);
	ky_put_metadata_number(trace, "drum_data_bytes", (int64_t)facts.data_bytes);
	ky_put_metadata_number(trace, "drum_rings", facts.rings);
	ky_put_metadata_number(trace, "drum_made_boottime_ns", (int64_t)facts.made_boottime_ns);
	ky_put_metadata_number(trace, "drum_snapshots", (int64_t)facts.snapshots);
	ky_put_metadata_number(trace, "drum_exited", facts.exited);
	if (facts.rate < sizeof(rates) / sizeof(rates[0]))
		ky_put_metadata(trace, "drum_clock_rate", ky_string_z(trace, rates[facts.rate]));
	put_lost(trace, facts.lost_ringless, KY_LOSS_NO_RING);
	put_lost(trace, facts.lost_nested, KY_LOSS_NESTED);
	put_lost(trace, facts.lost_unfinished, KY_LOSS_UNFINISHED);
	if (facts.refused_names)
		ky_problems(trace, "drum_names_refused", KY_DATA_LOSS, KY_NO_PLACE,
			    facts.refused_names);
	if (facts.refused_sites)
		ky_problems(trace, "drum_sites_refused", KY_DATA_LOSS, KY_NO_PLACE,
			    facts.refused_sites);
	if (facts.refused_strings)
		ky_problems(trace, "drum_strings_refused", KY_DATA_LOSS, KY_NO_PLACE,
			    facts.refused_strings);
	if (facts.refused_categories)
		ky_problems(trace, "drum_categories_refused", KY_DATA_LOSS, KY_NO_PLACE,
			    facts.refused_categories);
	if (facts.damaged)
		ky_problems(trace, "drum_damaged", KY_ERROR, facts.damaged_at, facts.damaged);
	if (facts.cut_at)
		ky_problem(trace, "input_truncated", KY_ERROR, facts.cut_at,
			   "the file ends before the drum does");
}

static int read_drum(struct ky_load *load, struct ky_drum_file *file)
{
	struct drum_reading reading = {.load = load};
	struct ky_drum_facts facts;
	struct ky_stream *stream;
	int error = ky_drum_file_stream(file, NULL, false, &stream, load->message);
	if (error)
		return error;
	error = ky_event_intake_open(&reading.intake, load->trace, false);
	if (error)
		return error;
	stream->sink = (struct ky_stream_sink){
		.thread = on_thread, .event = on_event, .end = on_end, .context = &reading};
	ky_drum_file_facts(file, &facts);
	ky_event_intake_process(reading.intake, (int32_t)facts.pid, facts.process_name,
				(struct ky_text){"", 0});
	error = ky_drum_file_read(file, true);
	if (!error)
		error = reading.error;
	ky_event_intake_clocks(reading.intake, stream->clock.readings, stream->clock.count);
	ky_event_intake_close(&reading.intake);
	if (!error) {
		put_categories(load->trace, file);
		put_facts(load->trace, file);
	}
	return error;
}

static int open_drum(struct ky_load *load, struct ky_drum_file **file)
{
	uint64_t bytes;
	if (!load->input) {
		const long pid = strtol(load->path + strlen("pid:"), NULL, 10);
		return ky_drum_file_open_pid(file, pid < INT32_MAX ? (pid_t)pid : INT32_MAX,
					     load->message);
	}
	const int fd = ky_input_file(load->input, &bytes);
	if (fd < 0)
		return load->input->error ? load->input->error : -EIO;
	return ky_drum_file_open_fd(file, fd, load->path, load->message);
}

static int read_trace(struct ky_load *load)
{
	struct ky_drum_file *file = NULL;
	int error = open_drum(load, &file);
	if (error)
		return error;
	error = read_drum(load, file);
	ky_drum_file_close(&file);
	return error;
}

const struct ky_reader ky_reader_drum = {
	.name = "drum",
	.title = "drum of a process",
	.probe = probe,
	.read = read_trace,
};
