/* SPDX-License-Identifier: MIT */
/*
 * read_kymo.c: .kymo files into the model. Their events come in the order of time, and are built as they come; unless
 * one would have to go back (its begin was overwritten, or it brings its own time): then the file is read a second
 * time, and put into order by the model.
 */
#include "reader.h"

#include <errno.h>
#include <string.h>

#include "event_intake.h"
#include "kymo_file.h"

static bool probe(const struct ky_probe *probe)
{
	const uint64_t magic = KY_KYMO_MAGIC;
	return probe->bytes >= sizeof(magic) && memcmp(probe->data, &magic, sizeof(magic)) == 0;
}

struct reading {
	struct ky_load *load;
	struct ky_event_intake *intake;
};

static int on_chunk(void *context, uint64_t done, uint64_t all)
{
	const struct reading *reading = context;
	if (ky_event_intake_is_done(reading->intake))
		return -EAGAIN;
	return reading->load->progress ? reading->load->progress(reading->load, done, all) : 0;
}

/* Whether all that the file says about itself is for it. */
static bool seems_ordered(const struct ky_kymo_info *info)
{
	for (uint32_t i = 0; i < info->sites_count; i++)
		if (info->sites[i]->flags & KYMO_SITE_TIME)
			return false;
	return info->lost == 0;
}

static int read_events(struct ky_load *load, struct ky_kymo *file, bool ordered,
		       struct ky_kymo_totals *totals)
{
	struct reading reading = {.load = load};
	const struct ky_kymo_info *info = ky_kymo_info(file);
	int error = ky_event_intake_open(&reading.intake, load->trace, ordered);
	if (error)
		return error;
	const struct ky_stream_sink sink = {.thread = ky_event_intake_thread,
					    .event = ky_event_intake_event,
					    .words = ky_event_intake_words,
					    .context = reading.intake};
	for (uint32_t i = 0; i < info->processes_count; i++)
		ky_event_intake_process(reading.intake, info->processes[i].pid,
					info->processes[i].name, info->processes[i].command);
	if (!info->processes_count)
		ky_event_intake_process(reading.intake, info->pid, info->process, info->command);
	ky_event_intake_clocks(reading.intake, info->samples, info->samples_count);
	ky_kymo_on_progress(file, on_chunk, &reading);
	error = ky_kymo_read(file, 0, UINT64_MAX, &sink, totals);
	if (!error && ky_event_intake_is_done(reading.intake))
		error = load->trace->error ? load->trace->error : -EAGAIN;
	ky_event_intake_close(&reading.intake);
	return error;
}

static int start_over(struct ky_load *load)
{
	const char *const format = load->trace->format;
	ky_trace_close(&load->trace);
	const int error = ky_trace_open(&load->trace);
	if (!error)
		load->trace->format = format;
	return error;
}

static void put_problems(struct ky_load *load, struct ky_kymo *file,
			 const struct ky_kymo_totals *totals)
{
	struct ky_trace *trace = load->trace;
	const struct ky_kymo_info *info = ky_kymo_info(file);
	for (uint32_t i = 0; i < info->notes_count; i++)
		ky_problem(trace, "kymo_damaged", KY_ERROR, info->notes[i].at, "%s",
			   info->notes[i].text);
	if (info->damages > info->notes_count)
		ky_problems(trace, "kymo_damaged", KY_ERROR, KY_NO_PLACE,
			    info->damages - info->notes_count);
	if (!info->indexed)
		ky_problem(trace, "kymo_not_finished", KY_INFO, KY_NO_PLACE,
			   "there is no index at the end: the program was killed, or still writes");
	if (totals->unknown)
		ky_problems(trace, "kymo_site_unknown", KY_DATA_LOSS, KY_NO_PLACE, totals->unknown);
	if (totals->damaged)
		ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, totals->damaged,
			    "damaged part of the file");
	if (info->lost > totals->lost)
		ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, info->lost - totals->lost,
			    "no ring for them");
}

static int read_file(struct ky_load *load, struct ky_kymo *file)
{
	struct ky_kymo_totals totals;
	const bool ordered = seems_ordered(ky_kymo_info(file));
	int error = read_events(load, file, ordered, &totals);
	if (error == -EAGAIN && ordered) {
		error = start_over(load);
		if (!error)
			error = read_events(load, file, false, &totals);
	}
	if (!error)
		put_problems(load, file, &totals);
	return error;
}

static int read_trace(struct ky_load *load)
{
	struct ky_kymo *file;
	struct ky_kymo_error why = {0};
	uint64_t bytes;
	const int fd = ky_input_file(load->input, &bytes);
	if (fd < 0)
		return load->input->error;
	int error = ky_kymo_open_fd(&file, fd, &why);
	if (error == -ENOMEM)
		return error;
	if (error)
		return ky_load_fail(load, why.at, "%s", why.text);
	error = read_file(load, file);
	ky_kymo_close(&file);
	return error;
}

const struct ky_reader ky_reader_kymo = {
	.name = "kymo",
	.title = "kymo trace",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
