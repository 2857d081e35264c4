/* SPDX-License-Identifier: MIT */
/*
 * pftrace_graphics.c: ftrace events of displays, GPUs and video devices (vertical blanks, jobs of the DRM
 * scheduler, fences, buffers of Video4Linux, virtio's GPU and video devices), and packets with GPU counters. Track
 * names are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#define COMMAND_NS 100000

/* ---- DRM ---- */

static void vblank(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const char *name = event->id == KY_PF_FTRACE_EVENT_DRM_VBLANK_EVENT ? "signal" : "deliver";
	const int32_t crtc = (int32_t)event->values[KY_PF_DRM_VBLANK_EVENT_CRTC];
	ky_args_begin(pf->trace);
	ky_arg_uint(pf->trace, ky_pf_literal(pf, "vblank seqno"),
		    (uint32_t)event->values[KY_PF_DRM_VBLANK_EVENT_SEQ]);
	ky_put_instant(pf->trace, event->ts,
		       ky_pf_track_of_slices(pf, "drm_vblank",
					     ky_pf_track_name(pf, "vblank-%u", (unsigned)crtc),
					     (uint32_t)crtc),
		       0, ky_pf_literal(pf, name), ky_args_end(pf->trace));
}

static uint32_t ring_track(struct ky_pf *pf, struct ky_proto_view ring)
{
	return ky_pf_track_of_slices(pf, "drm_sched_ring",
				     ky_pf_track_name(pf, "sched-%.*s", KY_PF_TEXT(ring)), 0);
}

/* Kernels before 6.17 identify a job by the ring's id and a fence's address, later ones by the fence's context and number. */
static void drm_job(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	struct ky_trace *trace = pf->trace;
	const bool old = event->id == KY_PF_FTRACE_EVENT_DRM_SCHED_JOB ||
			 event->id == KY_PF_FTRACE_EVENT_DRM_RUN_JOB;
	const bool queued = event->id == KY_PF_FTRACE_EVENT_DRM_SCHED_JOB ||
			    event->id == KY_PF_FTRACE_EVENT_DRM_SCHED_JOB_QUEUE;
	const struct ky_proto_view ring =
		event->texts[old ? KY_PF_DRM_SCHED_JOB_NAME : KY_PF_DRM_SCHED_JOB_QUEUE_NAME];
	const uint64_t id = event->values[KY_PF_DRM_SCHED_JOB_ID];
	const uint64_t context = event->values[KY_PF_DRM_SCHED_JOB_QUEUE_FENCE_CONTEXT];
	const uint64_t seqno = event->values[KY_PF_DRM_SCHED_JOB_QUEUE_FENCE_SEQNO];
	struct ky_job job = {
		.key = old ? id : ky_hash_pair(context, seqno),
		.run = old ? event->values[KY_PF_DRM_SCHED_JOB_FENCE]
			   : ky_hash_pair(context, seqno),
		.step = queued ? KY_JOB_QUEUED : KY_JOB_RUNS,
		.tid = event->tid,
		.track = ring_track(pf, ring),
		.name = ky_pf_literal(pf, queued ? "drm_sched_job_queue" : "job"),
	};
	ky_args_begin(trace);
	if (queued)
		ky_arg_string(trace, ky_pf_literal(pf, "gpu sched ring"), ky_pf_string(pf, ring));
	ky_arg_uint(trace, ky_pf_literal(pf, old ? "gpu sched job" : "fence context"),
		    old ? id : context);
	if (!old)
		ky_arg_uint(trace, ky_pf_literal(pf, "fence seqno"), seqno);
	job.args = ky_args_end(trace);
	ky_put_job(trace, event->ts, &job);
}

static void drm_done(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t *values = event->values;
	const bool by_fence = event->id == KY_PF_FTRACE_EVENT_DRM_SCHED_JOB_DONE;
	const struct ky_job job = {
		.step = KY_JOB_DONE,
		.run = by_fence ? ky_hash_pair(values[KY_PF_DRM_SCHED_JOB_DONE_FENCE_CONTEXT],
					       values[KY_PF_DRM_SCHED_JOB_DONE_FENCE_SEQNO])
				: values[KY_PF_DRM_SCHED_PROCESS_JOB_FENCE],
	};
	ky_put_job(pf->trace, event->ts, &job);
}

static void fence(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const struct ky_proto_view timeline = event->texts[KY_PF_DMA_FENCE_INIT_TIMELINE];
	const uint32_t context = (uint32_t)event->values[KY_PF_DMA_FENCE_INIT_CONTEXT],
		       seqno = (uint32_t)event->values[KY_PF_DMA_FENCE_INIT_SEQNO];
	if (timeline.bytes == 7 && memcmp(timeline.data, "unbound", 7) == 0)
		return;
	const uint32_t name = ky_pf_track_name(pf, "fence-%.*s-%u", KY_PF_TEXT(timeline), context);
	const struct ky_job job = {
		.key = seqno,
		.step = event->id == KY_PF_FTRACE_EVENT_DMA_FENCE_INIT   ? KY_FENCE_INIT
			: event->id == KY_PF_FTRACE_EVENT_DMA_FENCE_EMIT ? KY_FENCE_EMIT
									 : KY_FENCE_SIGNALED,
		.track = ky_pf_track_of_slices(pf, "drm_fence", name, context),
		.name = ky_pf_literal(pf, "fence"),
		.args = ky_pf_arg(pf, "fence seqno", KY_ARG_UINT, seqno),
	};
	ky_put_job(pf->trace, event->ts, &job);
}

static void fence_wait(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (event->id == KY_PF_FTRACE_EVENT_DMA_FENCE_WAIT_END) {
		ky_put_tid_end(pf->trace, event->ts, event->tid, 0, 0, 0);
		return;
	}
	ky_args_begin(pf->trace);
	ky_arg_uint(pf->trace, ky_pf_literal(pf, "fence context"),
		    (uint32_t)event->values[KY_PF_DMA_FENCE_WAIT_START_CONTEXT]);
	ky_arg_uint(pf->trace, ky_pf_literal(pf, "fence seqno"),
		    (uint32_t)event->values[KY_PF_DMA_FENCE_WAIT_START_SEQNO]);
	ky_put_tid_begin(pf->trace, event->ts, event->tid, 0, ky_pf_literal(pf, "dma_fence_wait"),
			 ky_args_end(pf->trace));
}

/* ---- Video4Linux ---- */

#define V4L2_FIELDS_MAX 19u

#define V4L2_FIELDS                                                                                \
	KY_PF_V4L2_QBUF_MINOR, KY_PF_V4L2_QBUF_SEQUENCE, KY_PF_V4L2_QBUF_TYPE,                     \
		KY_PF_V4L2_QBUF_INDEX, KY_PF_V4L2_QBUF_FLAGS, KY_PF_V4L2_QBUF_TIMESTAMP
#define VB2_FIELDS                                                                                 \
	KY_PF_VB2_V4L2_QBUF_MINOR, KY_PF_VB2_V4L2_QBUF_SEQUENCE, 0, 0, KY_PF_VB2_V4L2_QBUF_FLAGS,  \
		KY_PF_VB2_V4L2_QBUF_TIMESTAMP
/* The fields that identify an event's buffer; 0 where it has none. Sorted by id, without gaps. */
static const struct v4l2 {
	uint32_t id;
	const char *name;
	uint8_t minor, sequence, type, index, flags, timestamp;
} v4l2_events[] = {
	{KY_PF_FTRACE_EVENT_V4L2_QBUF, "VIDIOC_QBUF", V4L2_FIELDS},
	{KY_PF_FTRACE_EVENT_V4L2_DQBUF, "VIDIOC_DQBUF", V4L2_FIELDS},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_BUF_QUEUE, "vb2_v4l2_buf_queue", VB2_FIELDS},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_BUF_DONE, "vb2_v4l2_buf_done", VB2_FIELDS},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_QBUF, "vb2_v4l2_qbuf", VB2_FIELDS},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_DQBUF, "vb2_v4l2_dqbuf", VB2_FIELDS},
};

static void v4l2_put(struct ky_pf *pf, const struct ky_pf_ftrace *event, const struct v4l2 *kind,
		     const uint64_t *values)
{
	struct ky_trace *trace = pf->trace;
	const uint32_t minor = (uint32_t)values[kind->minor];
	const uint32_t sequence = (uint32_t)values[kind->sequence];
	const uint32_t type = (uint32_t)values[kind->type], index = (uint32_t)values[kind->index];
	ky_args_begin(trace);
	ky_arg_int(trace, ky_pf_literal(pf, "minor"), (int32_t)minor);
	if (kind->index) {
		ky_arg_int(trace, ky_pf_literal(pf, "index"), index);
		ky_arg_int(trace, ky_pf_literal(pf, "type"), type);
	}
	ky_arg_int(trace, ky_pf_literal(pf, "flags"), (uint32_t)values[kind->flags]);
	ky_arg_int(trace, ky_pf_literal(pf, "timestamp"), (int64_t)values[kind->timestamp]);
	ky_arg_int(trace, ky_pf_literal(pf, "sequence"), sequence);
	const uint32_t args = ky_args_end(trace);
	const uint32_t category = ky_pf_literal(pf, "Video 4 Linux 2");
	const uint32_t name = ky_pf_track_name(pf, "%s minor=%d seq=%u type=%u index=%u",
					       kind->name, (int)minor, sequence, type, index);
	if (!kind->index) {
		ky_put_tid_instant(trace, event->ts, event->tid, category, name, args);
		return;
	}
	const struct ky_job job = {
		.key = ky_hash_pair((uint64_t)minor << 32 | sequence, (uint64_t)type << 32 | index),
		.step = event->id == KY_PF_FTRACE_EVENT_V4L2_QBUF ? KY_JOB_QUEUED : KY_JOB_TAKEN,
		.tid = event->tid,
		.track = KY_NONE,
		.category = category,
		.name = name,
		.args = args,
	};
	ky_put_job(trace, event->ts, &job);
}

/* These events have more fields than parts holds. */
static void v4l2(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	uint64_t values[V4L2_FIELDS_MAX] = {0};
	KY_PROTO_EACH(field, event->all)
		if (field.id && field.id < V4L2_FIELDS_MAX)
			values[field.id] = field.value;
	v4l2_put(pf, event, &v4l2_events[event->id - v4l2_events[0].id], values);
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

static void virtio_gpu(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const struct ky_proto_view text = event->texts[KY_PF_VIRTIO_GPU_CMD_QUEUE_NAME];
	const bool queued = event->id == KY_PF_FTRACE_EVENT_VIRTIO_GPU_CMD_QUEUE,
		   fenced = event->values[KY_PF_VIRTIO_GPU_CMD_QUEUE_FENCE_ID] != 0;
	const bool control = text.bytes == 7 && memcmp(text.data, "control", 7) == 0;
	if (!control && !(text.bytes == 6 && memcmp(text.data, "cursor", 6) == 0))
		return;
	const char *queue = control ? "Control" : "Cursor";
	ky_pf_track_put_counter(
		pf, event->ts, "virtgpu_num_free", ky_pf_track_name(pf, "Virtgpu %s Free", queue),
		(double)(uint32_t)event->values[KY_PF_VIRTIO_GPU_CMD_QUEUE_NUM_FREE]);
	const uint32_t latency = ky_pf_track_of_counter(
		pf, "virtgpu_latency", ky_pf_track_name(pf, "Virtgpu %s Latency", queue), 0);
	const struct ky_lane_span span = {
		.type = ky_pf_literal(pf, "virtgpu_queue_event"),
		.track = ky_pf_track_name(pf, "Virtgpu %s Queue", queue),
		.cookie = (uint32_t)event->values[KY_PF_VIRTIO_GPU_CMD_QUEUE_SEQNO],
		.name = queued ? ky_pf_literal(
					 pf,
					 gpu_command(
						 (uint32_t)event
							 ->values[KY_PF_VIRTIO_GPU_CMD_QUEUE_TYPE]))
			       : 0,
		/* A command that waits for a fence does not measure the host's latency. */
		.latency = queued && fenced ? 0 : 1 + latency,
	};
	ky_put_lane(pf->trace, event->ts, queued, &span);
}

static uint32_t video_queue(struct ky_pf *pf, uint32_t type)
{
	return ky_pf_literal(pf, type == 0x100 ? "INPUT" : type == 0x101 ? "OUTPUT" : "Unknown");
}

static uint32_t video_args(struct ky_pf *pf, const struct ky_pf_parts *parts)
{
	static const char *const names[] = {
		[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE0] = "data_size0",
		[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE1] = "data_size1",
		[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE2] = "data_size2",
		[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_DATA_SIZE3] = "data_size3",
		[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_RESOURCE_ID] = "resource_id",
		[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_STREAM_ID] = "stream_id",
		[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_TIMESTAMP] = "timestamp"};
	ky_args_begin(pf->trace);
	for (uint32_t i = 1; i < sizeof(names) / sizeof(*names); i++)
		if (names[i])
			ky_arg_int(pf->trace, ky_pf_literal(pf, names[i]),
				   (int64_t)parts->values[i]);
	ky_arg_string(
		pf->trace, ky_pf_literal(pf, "queue_type"),
		video_queue(pf,
			    (uint32_t)parts->values[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_QUEUE_TYPE]));
	return ky_args_end(pf->trace);
}

static void video_resource(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint32_t resource =
		(uint32_t)event->values[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_RESOURCE_ID];
	const bool queued = event->id == KY_PF_FTRACE_EVENT_VIRTIO_VIDEO_RESOURCE_QUEUE;
	const struct ky_lane_span span = {
		.type = ky_pf_literal(pf, "virtio_video_queue_event"),
		.track = ky_pf_track_name(
			pf, "virtio_video stream #%u %s",
			(unsigned)event->values[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_STREAM_ID],
			ky_text_of(
				pf->trace,
				video_queue(
					pf,
					(uint32_t)event->values
						[KY_PF_VIRTIO_VIDEO_RESOURCE_QUEUE_QUEUE_TYPE]))),
		.cookie = (int32_t)resource,
		.name = queued ? ky_pf_track_name(pf, "Resource #%d", (int)resource) : 0,
		.args = queued ? 0 : video_args(pf, event->parts),
	};
	ky_put_lane(pf->trace, event->ts, queued, &span);
}

/* The duration of a command is unknown: show it for a moment. */
static void video_command(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	static const char *const names[] = {
		"QUERY_CAPABILITY", "STREAM_CREATE",  "STREAM_DESTROY",       "STREAM_DRAIN",
		"RESOURCE_CREATE",  "RESOURCE_QUEUE", "RESOURCE_DESTROY_ALL", "QUEUE_CLEAR",
		"GET_PARAMS",       "SET_PARAMS",     "QUERY_CONTROL",        "GET_CONTROL",
		"SET_CONTROL",      "GET_PARAMS_EXT", "SET_PARAMS_EXT"};
	const uint64_t command = event->values[KY_PF_VIRTIO_VIDEO_CMD_TYPE] - 0x100;
	const uint32_t stream = (uint32_t)event->values[KY_PF_VIRTIO_VIDEO_CMD_STREAM_ID];
	const uint32_t track = ky_pf_track_of_slices(
		pf, "virtio_video_command",
		ky_pf_track_name(pf, "virtio_video stream #%u %s", stream,
				 event->id == KY_PF_FTRACE_EVENT_VIRTIO_VIDEO_CMD_DONE
					 ? "Responses"
					 : "Requests"),
		stream);
	ky_put_complete(pf->trace, event->ts, COMMAND_NS, track, 0,
			ky_pf_literal(pf, command < sizeof(names) / sizeof(*names) ? names[command]
										   : "Unknown"),
			0);
}

const struct ky_pf_ftrace_handler ky_pf_graphics_handlers[] = {
	{KY_PF_FTRACE_EVENT_DRM_VBLANK_EVENT, vblank},
	{KY_PF_FTRACE_EVENT_DRM_VBLANK_EVENT_DELIVERED, vblank},
	{KY_PF_FTRACE_EVENT_DRM_SCHED_JOB, drm_job},
	{KY_PF_FTRACE_EVENT_DRM_RUN_JOB, drm_job},
	{KY_PF_FTRACE_EVENT_DRM_SCHED_PROCESS_JOB, drm_done},
	{KY_PF_FTRACE_EVENT_DRM_SCHED_JOB_QUEUE, drm_job},
	{KY_PF_FTRACE_EVENT_DRM_SCHED_JOB_RUN, drm_job},
	{KY_PF_FTRACE_EVENT_DRM_SCHED_JOB_DONE, drm_done},
	{KY_PF_FTRACE_EVENT_DMA_FENCE_INIT, fence},
	{KY_PF_FTRACE_EVENT_DMA_FENCE_EMIT, fence},
	{KY_PF_FTRACE_EVENT_DMA_FENCE_SIGNALED, fence},
	{KY_PF_FTRACE_EVENT_DMA_FENCE_WAIT_START, fence_wait},
	{KY_PF_FTRACE_EVENT_DMA_FENCE_WAIT_END, fence_wait},
	{KY_PF_FTRACE_EVENT_V4L2_QBUF, v4l2},
	{KY_PF_FTRACE_EVENT_V4L2_DQBUF, v4l2},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_BUF_QUEUE, v4l2},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_BUF_DONE, v4l2},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_QBUF, v4l2},
	{KY_PF_FTRACE_EVENT_VB2_V4L2_DQBUF, v4l2},
	{KY_PF_FTRACE_EVENT_VIRTIO_VIDEO_CMD, video_command},
	{KY_PF_FTRACE_EVENT_VIRTIO_VIDEO_CMD_DONE, video_command},
	{KY_PF_FTRACE_EVENT_VIRTIO_VIDEO_RESOURCE_QUEUE, video_resource},
	{KY_PF_FTRACE_EVENT_VIRTIO_VIDEO_RESOURCE_QUEUE_DONE, video_resource},
	{KY_PF_FTRACE_EVENT_VIRTIO_GPU_CMD_QUEUE, virtio_gpu},
	{KY_PF_FTRACE_EVENT_VIRTIO_GPU_CMD_RESPONSE, virtio_gpu},
	{0, NULL},
};

/* ---- counters of GPUs ---- */

/*
 * A descriptor, in a packet or interned, gives a counter's number its name. Most values are of the time since the
 * last one, as hardware counts; a descriptor marks those that hold from their time on.
 */
#define FORWARDS_BIT (UINT64_C(1) << 32)
#define GPU_SHIFT 33

/* Interned descriptors number their counters separately. */
static uint64_t interned_key(const struct ky_pf_sequence *sequence, uint64_t iid)
{
	return ky_hash_pair(sequence->id, iid) | 1;
}

static void describe_counters(struct ky_pf *pf, uint64_t whose, struct ky_proto_view descriptor,
			      uint64_t gpu)
{
	struct ky_proto_in in = ky_proto_open(descriptor);
	struct ky_pf_parts spec;
	while (ky_pf_ftrace_next_parts(&in, KY_PF_GPU_COUNTER_DESCRIPTOR_SPECS, &spec)) {
		if (!ky_pf_has(&spec, KY_PF_GPU_COUNTER_SPEC_COUNTER_ID) ||
		    !spec.texts[KY_PF_GPU_COUNTER_SPEC_NAME].data) {
			ky_problem(pf->trace, "gpu_counters_invalid_spec", KY_ERROR, pf->at,
				   "a GPU counter without a number or a name");
			continue;
		}
		uint64_t *counter =
			ky_pf_read_known(pf, KY_PF_GPU_COUNTER, whose,
					 spec.values[KY_PF_GPU_COUNTER_SPEC_COUNTER_ID], true);
		if (counter && !*counter)
			*counter = ky_pf_string(pf, spec.texts[KY_PF_GPU_COUNTER_SPEC_NAME]) |
				   (spec.values[KY_PF_GPU_COUNTER_SPEC_VALUE_DIRECTION] ==
						    KY_PF_VALUE_DIRECTION_FORWARDS_LOOKING
					    ? FORWARDS_BIT
					    : 0) |
				   gpu << GPU_SHIFT;
	}
}

void ky_pf_graphics_describe_counters(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_field descriptor;
	if (ky_proto_find(message, KY_PF_GPU_COUNTER_EVENT_COUNTER_DESCRIPTOR, &descriptor))
		describe_counters(pf, 0, descriptor.view,
				  ky_proto_number(message, KY_PF_GPU_COUNTER_EVENT_GPU_ID));
}

void ky_pf_graphics_intern_counters(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	describe_counters(
		pf,
		interned_key(pf->sequence, parts.values[KY_PF_INTERNED_GPU_COUNTER_DESCRIPTOR_IID]),
		parts.texts[KY_PF_INTERNED_GPU_COUNTER_DESCRIPTOR_COUNTER_DESCRIPTOR],
		parts.values[KY_PF_INTERNED_GPU_COUNTER_DESCRIPTOR_GPU_ID]);
}

static void put_gpu_counter(struct ky_pf *pf, int64_t ts, uint64_t whose,
			    const struct ky_pf_parts *parts)
{
	if (!ky_pf_has(parts, KY_PF_GPU_COUNTER_COUNTER_ID) ||
	    !(ky_pf_has(parts, KY_PF_GPU_COUNTER_INT_VALUE) ||
	      ky_pf_has(parts, KY_PF_GPU_COUNTER_DOUBLE_VALUE)))
		return;
	const uint64_t *counter = ky_pf_read_known(
		pf, KY_PF_GPU_COUNTER, whose, parts->values[KY_PF_GPU_COUNTER_COUNTER_ID], false);
	if (!counter) {
		ky_problem(pf->trace, "gpu_counters_invalid_spec", KY_ERROR, pf->at,
			   "a value of a GPU counter without a descriptor");
		return;
	}
	const uint32_t track = ky_pf_track_of_counter(pf, "gpu_counter", (uint32_t)*counter,
						      *counter >> GPU_SHIFT);
	const double value =
		ky_pf_has(parts, KY_PF_GPU_COUNTER_INT_VALUE)
			? (double)(int64_t)parts->values[KY_PF_GPU_COUNTER_INT_VALUE]
			: ky_proto_as_double(parts->values[KY_PF_GPU_COUNTER_DOUBLE_VALUE]);
	if (*counter & FORWARDS_BIT)
		ky_put_counter(pf->trace, ts, track, value);
	else
		ky_put_counter_since(pf->trace, ts, track, value);
}

void ky_pf_graphics_put_counters(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	struct ky_pf_parts parts;
	const uint64_t whose =
		ky_proto_find(message, KY_PF_GPU_COUNTER_EVENT_COUNTER_DESCRIPTOR_IID, &field)
			? interned_key(pf->sequence, field.value)
			: 0;
	while (ky_pf_ftrace_next_parts(&in, KY_PF_GPU_COUNTER_EVENT_COUNTERS, &parts))
		put_gpu_counter(pf, ts, whose, &parts);
	if (in.bad)
		ky_pf_read_note_damage(pf, "gpu_counter_event");
}
