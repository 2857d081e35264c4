/* SPDX-License-Identifier: MIT */
/*
 * pftrace_devices.c: ftrace events of clocks, of the scheduler's estimates and of suspending, and markers that
 * drivers write into events of their own. Names of tracks are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#include <stdio.h>

/* A counter with a text of the event in its name. */
static void named_counter(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			  const struct ky_pf_parts *parts, const char *suffix)
{
	pf->text.used = 0;
	ky_pf_buffer_append(&pf->text, (const char *)parts->texts[1].data, parts->texts[1].bytes);
	ky_pf_buffer_append(&pf->text, suffix, strlen(suffix));
	const uint32_t name = ky_pf_buffer_string(pf, &pf->text);
	ky_put_counter(pf->trace, event->ts,
		       ky_track_counter(pf->trace, KY_TRACK_COUNTER, KY_NONE, name),
		       (double)parts->values[2]);
}

static void cpu_estimate(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			 const struct ky_pf_parts *parts)
{
	static const struct {
		uint32_t field;
		const char *name;
	} estimates[] = {{6, "Util"}, {2, "Cap"}, {11, "Nr Running"}};
	const uint32_t cpu = (uint32_t)parts->values[4];
	char name[40];
	for (size_t i = 0; i < sizeof(estimates) / sizeof(*estimates); i++) {
		snprintf(name, sizeof(name), "Cpu %u %s", cpu, estimates[i].name);
		ky_put_cpu_counter(pf->trace, event->ts, cpu, ky_string_z(pf->trace, name),
				   (double)parts->values[estimates[i].field]);
	}
}

static void gpu_frequency(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			  const struct ky_pf_parts *parts)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_COUNTER,
					   .owner = KY_NONE,
					   .name = ky_string_z(pf->trace, "gpufreq"),
					   .type = ky_string_z(pf->trace, "gpu_frequency"),
					   .id = parts->values[1]};
	ky_put_counter(pf->trace, event->ts, ky_track(pf->trace, &spec),
		       (double)(uint32_t)parts->values[2]);
}

/* How much later than it was taken a sample of a sensor came. */
static void sensor_hub(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		       const struct ky_pf_parts *parts)
{
	const uint64_t *values = parts->values;
	const uint32_t name =
		ky_pf_name(pf, "cros_ec.cros_ec_sensorhub_data.%u", (unsigned)values[5]);
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, ky_string_z(pf->trace, "ec_num"), (int64_t)values[5]);
	ky_arg_int(pf->trace, ky_string_z(pf->trace, "ec_delta"), (int64_t)(values[6] - values[2]));
	ky_arg_int(pf->trace, ky_string_z(pf->trace, "sample_ts"), (int64_t)values[2]);
	ky_put_counter_args(pf->trace, event->ts,
			    ky_pf_counter_track(pf, "cros_ec_sensorhub_data", name, 0),
			    (double)(int64_t)(values[1] - values[2]), ky_args_end(pf->trace));
}

/* Stages of suspending overlap: each has a track of its own. */
static void suspend(struct ky_pf *pf, const struct ky_pf_ftrace *event, const char *track_name,
		    uint32_t name, bool begin)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_GLOBAL,
					   .flags = KY_TRACK_ASYNC,
					   .owner = KY_NONE,
					   .name = ky_string_z(pf->trace, track_name),
					   .id = name};
	const uint32_t track = ky_track(pf->trace, &spec);
	if (begin)
		ky_put_begin(pf->trace, event->ts, track, 0, name, 0);
	else
		ky_put_end(pf->trace, event->ts, track, 0, 0, 0);
}

static void suspend_stage(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			  const struct ky_pf_parts *parts)
{
	char name[80];
	const int bytes = parts->texts[1].bytes < 48 ? (int)parts->texts[1].bytes : 48;
	const char *action = parts->texts[1].data ? (const char *)parts->texts[1].data : "";
	const bool freeze = bytes == 18 && memcmp(action, "timekeeping_freeze", 18) == 0;
	snprintf(name, sizeof(name), "%.*s(%d)", bytes, action,
		 freeze ? 0 : (int)(int32_t)parts->values[2]);
	suspend(pf, event, "Suspend/Resume", ky_string_z(pf->trace, name), parts->values[3] != 0);
}

/* Where a driver's event has what a marker says; 0: it has not. */
struct mark {
	uint32_t id;
	uint8_t tgid, name, begin, type, value;
};

static const struct mark marks[] = {
	{80, 1, 2, 3, 0, 0},  {333, 1, 2, 5, 3, 4}, {348, 1, 2, 3, 5, 6}, {349, 1, 4, 0, 5, 6},
	{350, 2, 1, 0, 3, 4}, {467, 3, 4, 0, 2, 5}, {484, 1, 2, 3, 4, 5},
};

static void mark(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		 const struct ky_pf_parts *parts, const struct mark *place)
{
	char head[32], tail[32] = "";
	struct ky_proto_view name = parts->texts[place->name];
	/* The display's driver has had two fields for it. */
	if (event->id == 348 && !name.data)
		name = parts->texts[4];
	char type = (char)parts->values[place->type];
	if (!place->type || !type)
		type = parts->values[place->begin] ? 'B' : 'E';
	const int bytes = snprintf(head, sizeof(head), "%c|%d|", type,
				   (int)(int32_t)parts->values[place->tgid]);
	if (type == 'C')
		snprintf(tail, sizeof(tail), "|%lld",
			 (long long)(place->value ? parts->values[place->value] : 0));
	pf->text.used = 0;
	ky_pf_buffer_append(&pf->text, head, (size_t)bytes);
	ky_pf_buffer_append(&pf->text, (const char *)name.data, name.data ? name.bytes : 0);
	ky_pf_buffer_append(&pf->text, tail, strlen(tail));
	ky_put_marker(pf->trace, event->ts, event->tid, ky_pf_buffer_string(pf, &pf->text));
}

void ky_pf_device_event(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			const struct ky_pf_parts *parts)
{
	switch (event->id) {
	case 14: /* clock_enable */
	case 15: /* clock_disable */
		named_counter(pf, event, parts, " State");
		return;
	case 16: /* clock_set_rate */
		named_counter(pf, event, parts, " Frequency");
		return;
	case 113: /* suspend_resume */
		suspend_stage(pf, event, parts);
		return;
	case 332: /* gpu_frequency */
		gpu_frequency(pf, event, parts);
		return;
	case 364: /* cros_ec_sensorhub_data */
		sensor_hub(pf, event, parts);
		return;
	case 421: /* sched_cpu_util_cfs */
		cpu_estimate(pf, event, parts);
		return;
	case 481: /* suspend_resume_minimal */
		suspend(pf, event, "Suspend/Resume Minimal", ky_string_z(pf->trace, "Suspended"),
			parts->values[1] != 0);
		return;
	default:
		break;
	}
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (marks[i].id == event->id)
			mark(pf, event, parts, &marks[i]);
}
