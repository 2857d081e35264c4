/* SPDX-License-Identifier: MIT */
/*
 * pftrace_graphics.c: ftrace events of displays, GPUs and video devices: vertical blanks, jobs of the DRM
 * scheduler, fences, buffers of Video4Linux, and virtio's GPU and video devices. Names of tracks are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#define COMMAND_NS 100000

static uint32_t word(struct ky_pf *pf, const char *text)
{
	return ky_string_z(pf->trace, text);
}

/* ---- DRM ---- */

static void vblank(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		   const struct ky_pf_parts *parts, const char *name)
{
	const int32_t crtc = (int32_t)parts->values[1];
	ky_args_begin(pf->trace);
	ky_arg_uint(pf->trace, word(pf, "vblank seqno"), (uint32_t)parts->values[3]);
	ky_put_instant(pf->trace, event->ts,
		       ky_pf_slice_track(pf, "drm_vblank",
					 ky_pf_name(pf, "vblank-%u", (unsigned)crtc),
					 (uint32_t)crtc),
		       0, word(pf, name), ky_args_end(pf->trace));
}

static uint32_t ring_track(struct ky_pf *pf, struct ky_proto_view ring)
{
	return ky_pf_slice_track(pf, "drm_sched_ring",
				 ky_pf_name(pf, "sched-%.*s", KY_PF_TEXT(ring)), 0);
}

/* Kernels before 6.17 tell jobs by an id of the ring and the address of a fence, later ones by context and seqno. */
static void drm_job(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts, bool by_fence, enum ky_job_step step)
{
	struct ky_trace *trace = pf->trace;
	const struct ky_proto_view ring = parts->texts[by_fence ? 1 : 6];
	const uint64_t context = parts->values[5], seqno = parts->values[6];
	struct ky_job job = {
		.key = by_fence ? ky_hash_pair(context, seqno) : parts->values[4],
		.run = by_fence ? ky_hash_pair(context, seqno) : parts->values[2],
		.step = step,
		.tid = event->tid,
		.track = ring_track(pf, ring),
		.name = word(pf, step == KY_JOB_RUNS ? "job" : "drm_sched_job_queue"),
	};
	ky_args_begin(trace);
	if (step == KY_JOB_QUEUED)
		ky_arg_string(trace, word(pf, "gpu sched ring"), ky_pf_string(pf, ring));
	if (by_fence) {
		ky_arg_uint(trace, word(pf, "fence context"), context);
		ky_arg_uint(trace, word(pf, "fence seqno"), seqno);
	} else {
		ky_arg_uint(trace, word(pf, "gpu sched job"), parts->values[4]);
	}
	job.args = ky_args_end(trace);
	ky_put_job(trace, event->ts, &job);
}

static void drm_done(struct ky_pf *pf, const struct ky_pf_ftrace *event, uint64_t run)
{
	const struct ky_job job = {.step = KY_JOB_DONE, .run = run};
	ky_put_job(pf->trace, event->ts, &job);
}

static void fence(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		  const struct ky_pf_parts *parts, enum ky_job_step step)
{
	const struct ky_proto_view timeline = parts->texts[4];
	const uint32_t context = (uint32_t)parts->values[1], seqno = (uint32_t)parts->values[3];
	if (timeline.bytes == 7 && memcmp(timeline.data, "unbound", 7) == 0)
		return;
	const uint32_t name = ky_pf_name(pf, "fence-%.*s-%u", KY_PF_TEXT(timeline), context);
	ky_args_begin(pf->trace);
	ky_arg_uint(pf->trace, word(pf, "fence seqno"), seqno);
	const struct ky_job job = {
		.key = seqno,
		.step = step,
		.track = ky_pf_slice_track(pf, "drm_fence", name, context),
		.name = word(pf, "fence"),
		.args = ky_args_end(pf->trace),
	};
	ky_put_job(pf->trace, event->ts, &job);
}

static void fence_wait(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		       const struct ky_pf_parts *parts)
{
	if (event->id == 418) {
		ky_put_tid_end(pf->trace, event->ts, event->tid, 0, 0, 0);
		return;
	}
	ky_args_begin(pf->trace);
	ky_arg_uint(pf->trace, word(pf, "fence context"), (uint32_t)parts->values[1]);
	ky_arg_uint(pf->trace, word(pf, "fence seqno"), (uint32_t)parts->values[3]);
	ky_put_tid_begin(pf->trace, event->ts, event->tid, 0, word(pf, "dma_fence_wait"),
			 ky_args_end(pf->trace));
}

static bool drm_event(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		      const struct ky_pf_parts *parts)
{
	switch (event->id) {
	case 409: /* drm_vblank_event */
		vblank(pf, event, parts, "signal");
		return true;
	case 410: /* drm_vblank_event_delivered */
		vblank(pf, event, parts, "deliver");
		return true;
	case 411: /* drm_sched_job */
	case 593: /* drm_sched_job_queue */
		drm_job(pf, event, parts, event->id == 593, KY_JOB_QUEUED);
		return true;
	case 412: /* drm_run_job */
	case 594: /* drm_sched_job_run */
		drm_job(pf, event, parts, event->id == 594, KY_JOB_RUNS);
		return true;
	case 413: /* drm_sched_process_job */
		drm_done(pf, event, parts->values[1]);
		return true;
	case 592: /* drm_sched_job_done */
		drm_done(pf, event, ky_hash_pair(parts->values[1], parts->values[2]));
		return true;
	case 414: /* dma_fence_init */
		fence(pf, event, parts, KY_FENCE_INIT);
		return true;
	case 415: /* dma_fence_emit */
		fence(pf, event, parts, KY_FENCE_EMIT);
		return true;
	case 416: /* dma_fence_signaled */
		fence(pf, event, parts, KY_FENCE_SIGNALED);
		return true;
	case 417: /* dma_fence_wait_start */
	case 418: /* dma_fence_wait_end */
		fence_wait(pf, event, parts);
		return true;
	default:
		return false;
	}
}

/* ---- Video4Linux ---- */

#define V4L2_FIELDS 19u

/* Where an event has what tells its buffer apart; 0: it has not. */
static const struct v4l2 {
	uint32_t id;
	const char *name;
	uint8_t minor, sequence, type, index, flags, timestamp;
} v4l2_events[] = {
	{422, "VIDIOC_QBUF", 5, 6, 18, 4, 3, 17},
	{423, "VIDIOC_DQBUF", 5, 6, 18, 4, 3, 17},
	{424, "vb2_v4l2_buf_queue", 3, 4, 0, 0, 2, 15},
	{425, "vb2_v4l2_buf_done", 3, 4, 0, 0, 2, 15},
	{426, "vb2_v4l2_qbuf", 3, 4, 0, 0, 2, 15},
	{427, "vb2_v4l2_dqbuf", 3, 4, 0, 0, 2, 15},
};

static void v4l2_put(struct ky_pf *pf, const struct ky_pf_ftrace *event, const struct v4l2 *kind,
		     const uint64_t *values)
{
	struct ky_trace *trace = pf->trace;
	const uint32_t minor = (uint32_t)values[kind->minor];
	const uint32_t sequence = (uint32_t)values[kind->sequence];
	const uint32_t type = (uint32_t)values[kind->type], index = (uint32_t)values[kind->index];
	ky_args_begin(trace);
	ky_arg_int(trace, word(pf, "minor"), (int32_t)minor);
	if (kind->index) {
		ky_arg_int(trace, word(pf, "index"), index);
		ky_arg_int(trace, word(pf, "type"), type);
	}
	ky_arg_int(trace, word(pf, "flags"), (uint32_t)values[kind->flags]);
	ky_arg_int(trace, word(pf, "timestamp"), (int64_t)values[kind->timestamp]);
	ky_arg_int(trace, word(pf, "sequence"), sequence);
	const uint32_t args = ky_args_end(trace);
	const uint32_t category = word(pf, "Video 4 Linux 2");
	const uint32_t name = ky_pf_name(pf, "%s minor=%d seq=%u type=%u index=%u", kind->name,
					 (int)minor, sequence, type, index);
	if (!kind->index) {
		ky_put_tid_instant(trace, event->ts, event->tid, category, name, args);
		return;
	}
	const struct ky_job job = {
		.key = ky_hash_pair((uint64_t)minor << 32 | sequence, (uint64_t)type << 32 | index),
		.step = event->id == 422 ? KY_JOB_QUEUED : KY_JOB_TAKEN,
		.tid = event->tid,
		.track = KY_NONE,
		.category = category,
		.name = name,
		.args = args,
	};
	ky_put_job(trace, event->ts, &job);
}

static bool v4l2_event(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (event->id < v4l2_events[0].id ||
	    event->id - v4l2_events[0].id >= sizeof(v4l2_events) / sizeof(*v4l2_events))
		return false;
	uint64_t values[V4L2_FIELDS] = {0};
	struct ky_proto_in in = ky_proto_open(event->all);
	struct ky_proto_field field;
	while (ky_proto_next(&in, &field))
		if (field.id && field.id < V4L2_FIELDS)
			values[field.id] = field.value;
	v4l2_put(pf, event, &v4l2_events[event->id - v4l2_events[0].id], values);
	return true;
}

/* ---- virtio ---- */

static const char *gpu_command(uint32_t type)
{
	static const char *const flat[] = {"GET_DISPLAY_INFO",
					   "RESOURCE_CREATE_2D",
					   "RESOURCE_UNREF",
					   "SET_SCANOUT",
					   "RESOURCE_FLUSH",
					   "TRANSFER_TO_HOST_2D",
					   "RESOURCE_ATTACH_BACKING",
					   "RESOURCE_DETACH_BACKING",
					   "GET_CAPSET_INFO",
					   "GET_CAPSET",
					   "GET_EDID",
					   "RESOURCE_ASSIGN_UUID",
					   "RESOURCE_CREATE_BLOB",
					   "SET_SCANOUT_BLOB"};
	static const char *const solid[] = {"CTX_CREATE",
					    "CTX_DESTROY",
					    "CTX_ATTACH_RESOURCE",
					    "CTX_DETACH_RESOURCE",
					    "RESOURCE_CREATE_3D",
					    "TRANSFER_TO_HOST_3D",
					    "TRANSFER_FROM_HOST_3D",
					    "SUBMIT_3D",
					    "RESOURCE_MAP_BLOB",
					    "RESOURCE_UNMAP_BLOB"};
	static const char *const cursor[] = {"UPDATE_CURSOR", "MOVE_CURSOR"};
	const uint32_t number = type & 0xff;
	if (type >> 8 == 1 && number < sizeof(flat) / sizeof(*flat))
		return flat[number];
	if (type >> 8 == 2 && number < sizeof(solid) / sizeof(*solid))
		return solid[number];
	if (type >> 8 == 3 && number < sizeof(cursor) / sizeof(*cursor))
		return cursor[number];
	return "";
}

static void virtio_gpu(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		       const struct ky_pf_parts *parts)
{
	const struct ky_proto_view text = parts->texts[5];
	const bool queued = event->id == 468, fenced = parts->values[3] != 0;
	const bool control = text.bytes == 7 && memcmp(text.data, "control", 7) == 0;
	if (!control && !(text.bytes == 6 && memcmp(text.data, "cursor", 6) == 0))
		return;
	const char *queue = control ? "Control" : "Cursor";
	ky_pf_put(pf, event->ts, "virtgpu_num_free", ky_pf_name(pf, "Virtgpu %s Free", queue),
		  (double)(uint32_t)parts->values[6]);
	const uint32_t latency = ky_pf_counter_track(
		pf, "virtgpu_latency", ky_pf_name(pf, "Virtgpu %s Latency", queue), 0);
	const struct ky_lane_span span = {
		.type = word(pf, "virtgpu_queue_event"),
		.track = ky_pf_name(pf, "Virtgpu %s Queue", queue),
		.cookie = (uint32_t)parts->values[7],
		.name = queued ? word(pf, gpu_command((uint32_t)parts->values[8])) : 0,
		/* What waits for a fence says nothing of how quick the host answers. */
		.latency = queued && fenced ? 0 : 1 + latency,
	};
	if (queued)
		ky_put_lane_begin(pf->trace, event->ts, &span);
	else
		ky_put_lane_end(pf->trace, event->ts, &span);
}

static uint32_t video_queue(struct ky_pf *pf, uint32_t type)
{
	return word(pf, type == 0x100 ? "INPUT" : type == 0x101 ? "OUTPUT" : "Unknown");
}

static uint32_t video_args(struct ky_pf *pf, const struct ky_pf_parts *parts)
{
	static const char *const names[] = {NULL,          "data_size0", "data_size1",
					    "data_size2",  "data_size3", NULL,
					    "resource_id", "stream_id",  "timestamp"};
	ky_args_begin(pf->trace);
	for (uint32_t i = 1; i < sizeof(names) / sizeof(*names); i++)
		if (names[i])
			ky_arg_int(pf->trace, word(pf, names[i]), (int64_t)parts->values[i]);
	ky_arg_string(pf->trace, word(pf, "queue_type"),
		      video_queue(pf, (uint32_t)parts->values[5]));
	return ky_args_end(pf->trace);
}

static void video_resource(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			   const struct ky_pf_parts *parts)
{
	const uint32_t resource = (uint32_t)parts->values[6];
	const bool queued = event->id == 441;
	const struct ky_lane_span span = {
		.type = word(pf, "virtio_video_queue_event"),
		.track = ky_pf_name(
			pf, "virtio_video stream #%u %s", (unsigned)parts->values[7],
			ky_text_of(pf->trace, video_queue(pf, (uint32_t)parts->values[5]))),
		.cookie = (int32_t)resource,
		.name = queued ? ky_pf_name(pf, "Resource #%d", (int)resource) : 0,
		.args = queued ? 0 : video_args(pf, parts),
	};
	if (queued)
		ky_put_lane_begin(pf->trace, event->ts, &span);
	else
		ky_put_lane_end(pf->trace, event->ts, &span);
}

/* The time that a command takes is not told; it is shown for a while. */
static void video_command(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			  const struct ky_pf_parts *parts)
{
	static const char *const names[] = {
		"QUERY_CAPABILITY", "STREAM_CREATE",  "STREAM_DESTROY",       "STREAM_DRAIN",
		"RESOURCE_CREATE",  "RESOURCE_QUEUE", "RESOURCE_DESTROY_ALL", "QUEUE_CLEAR",
		"GET_PARAMS",       "SET_PARAMS",     "QUERY_CONTROL",        "GET_CONTROL",
		"SET_CONTROL",      "GET_PARAMS_EXT", "SET_PARAMS_EXT"};
	const uint64_t command = parts->values[2] - 0x100;
	const uint32_t stream = (uint32_t)parts->values[1];
	const uint32_t track =
		ky_pf_slice_track(pf, "virtio_video_command",
				  ky_pf_name(pf, "virtio_video stream #%u %s", stream,
					     event->id == 440 ? "Responses" : "Requests"),
				  stream);
	ky_put_complete(
		pf->trace, event->ts, COMMAND_NS, track, 0,
		word(pf, command < sizeof(names) / sizeof(*names) ? names[command] : "Unknown"), 0);
}

bool ky_pf_graphics_event(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			  const struct ky_pf_parts *parts)
{
	switch (event->id) {
	case 439: /* virtio_video_cmd */
	case 440: /* virtio_video_cmd_done */
		video_command(pf, event, parts);
		return true;
	case 441: /* virtio_video_resource_queue */
	case 442: /* virtio_video_resource_queue_done */
		video_resource(pf, event, parts);
		return true;
	case 468: /* virtio_gpu_cmd_queue */
	case 469: /* virtio_gpu_cmd_response */
		virtio_gpu(pf, event, parts);
		return true;
	default:
		return drm_event(pf, event, parts) || v4l2_event(pf, event);
	}
}
