/* SPDX-License-Identifier: MIT */
/*
 * pftrace_payload.c: what is in a packet, and in which order it counts: the state of its sequence is
 * cleared, then lost, then defaults are replaced, then data is interned, and then comes what the packet
 * is about. A packet that needs what was lost is left out.
 */
#include "formats/pftrace/pftrace_reader.h"

#define STATE_CLEARED 1u
#define NEEDS_STATE 2u

/* TracePacket's fields that say what it is about. */
enum payload {
	FTRACE_EVENTS = 1,
	PROCESS_TREE = 2,
	CLOCK_SNAPSHOT = 6,
	SYS_STATS = 7,
	PROCESS_STATS = 9,
	TRACK_EVENT = 11,
	TRACE_STATS = 35,
	SYNCHRONIZATION_MARKER = 36,
	BATTERY = 38,
	ANDROID_LOG = 39,
	POWER_RAILS = 40,
	PROCESS_DESCRIPTOR = 43,
	THREAD_DESCRIPTOR = 44,
	SYSTEM_INFO = 45,
	TRIGGER = 46,
	GPU_COUNTERS = 52,
	STREAMING_PROFILE = 54,
	TRACK_DESCRIPTOR = 60,
	PERF_SAMPLE = 66,
	SERVICE_EVENT = 69,
	ENERGY_BREAKDOWN = 77,
	TRACE_UUID = 89,
	ENTITY_RESIDENCY = 91,
	CHROME_TRIGGER = 109,
	CLONE_TRIGGER = 113,
	GENERIC_TASK_STATE = 117,
	GENERIC_CPU_FREQUENCY = 118,
	GENERIC_TASK_RENAME = 120,
	GENERIC_PROCESS_TREE = 122,
	GENERIC_GPU_FREQUENCY = 129,
	STACK_SAMPLE = 135
};

/* ---- the packet's own fields ---- */

static void read_rare_field(struct ky_pf_packet *packet, const struct ky_proto_field *field)
{
	switch (field->id) {
	case 12:
		packet->interned = field->view;
		break;
	case 41:
		packet->cleared |= field->value != 0;
		break;
	case 42:
		packet->dropped = (uint32_t)field->value;
		break;
	case 59:
		packet->defaults = field->view;
		break;
	case 98:
		packet->machine_id = (uint32_t)field->value;
		break;
	case 3:
	case 79:
	case 87:
		break;
	default:
		if (field->wire == KY_PROTO_BYTES && !packet->payload.id)
			packet->payload = *field;
	}
}

static void read_packet(struct ky_pf *pf, struct ky_proto_view message, struct ky_pf_packet *packet)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	packet->all = message;
	while (ky_proto_next(&in, &field)) {
		switch (field.id) {
		case 8:
			packet->timestamp = field.value;
			packet->has_timestamp = true;
			break;
		case 10:
			packet->sequence_id = (uint32_t)field.value;
			packet->has_sequence = true;
			break;
		case TRACK_EVENT:
			packet->payload = field;
			break;
		case 13:
			packet->flags = (uint32_t)field.value;
			packet->cleared |= field.value & STATE_CLEARED;
			break;
		case 58:
			packet->clock_id = (uint32_t)field.value;
			break;
		default:
			read_rare_field(packet, &field);
		}
	}
	if (in.bad)
		ky_pf_damaged(pf, "a packet");
}

/* ---- machines ---- */

/* The number of a machine, in the order in which they are met; the host is 0. */
static uint32_t machine_of(struct ky_pf *pf, uint32_t id)
{
	bool made;
	if (!id)
		return 0;
	uint32_t *number = ky_pf_map_add(&pf->machine_of, id, &made);
	if (!number)
		return 0;
	if (made)
		*number = ++pf->machines;
	return *number;
}

/* When no packet is the host's, the first of the others is the trace's own machine. */
static void change_machine(struct ky_pf *pf, uint32_t id)
{
	const uint32_t machine = machine_of(pf, id);
	if (machine == pf->machine)
		return;
	pf->machine = machine;
	ky_trace_machine(pf->trace, machine && !pf->host_used ? machine - 1 : machine);
}

/* ---- the first pass ---- */

/* When tracing began, as the service says. */
static void service_event(struct ky_pf *pf, const struct ky_pf_packet *packet,
			  struct ky_proto_view message)
{
	struct ky_proto_field field;
	if (ky_proto_find(message, 2, &field) && field.value && packet->has_timestamp &&
	    (int64_t)packet->timestamp > 0)
		pf->ftrace_from_ns = (int64_t)packet->timestamp;
}

/* What the first pass wants to know of a packet, which is mostly nothing. */
struct look {
	bool wanted;
	bool remote;
	bool marker;
	bool compressed;
};

static struct look look_over(struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	struct look look = {0};
	while (ky_proto_next(&in, &field)) {
		switch (field.id) {
		case FTRACE_EVENTS:
		case CLOCK_SNAPSHOT:
		case TRACK_DESCRIPTOR:
		case SERVICE_EVENT:
		case SYSTEM_INFO:
		case POWER_RAILS:
		case ENERGY_BREAKDOWN:
		case ENTITY_RESIDENCY:
		case GPU_COUNTERS:
			look.wanted = true;
			break;
		case SYNCHRONIZATION_MARKER:
			look.marker = true;
			break;
		case KY_PF_COMPRESSED:
		case KY_PF_COMPRESSED_ZSTD:
			look.compressed = true;
			break;
		case 98:
			look.remote = field.value != 0;
			break;
		default:
			break;
		}
	}
	return look;
}

/* False: it is none of those that later packets refer to by number. */
static bool describe_power(struct ky_pf *pf, const struct ky_proto_field *field)
{
	switch (field->id) {
	case POWER_RAILS:
		ky_pf_describe_rails(pf, field->view);
		return true;
	case ENERGY_BREAKDOWN:
		ky_pf_describe_energy(pf, field->view);
		return true;
	case ENTITY_RESIDENCY:
		ky_pf_describe_entities(pf, field->view);
		return true;
	case GPU_COUNTERS:
		ky_pf_describe_gpu_counters(pf, field->view);
		return true;
	default:
		return false;
	}
}

void ky_pf_first_pass(struct ky_pf *pf, struct ky_proto_view message, bool of_file)
{
	const struct look look = look_over(message);
	if (look.compressed && of_file && ky_pf_take_compressed(pf, message)) {
		pf->compressed = true;
		return;
	}
	if (!look.remote && !look.marker)
		pf->host_used = true;
	if (!look.wanted)
		return;
	struct ky_pf_packet packet = {0};
	read_packet(pf, message, &packet);
	pf->machine = machine_of(pf, packet.machine_id);
	struct ky_proto_field field;
	struct ky_proto_in in = ky_proto_open(message);
	while (ky_proto_next(&in, &field)) {
		if (field.wire != KY_PROTO_BYTES || describe_power(pf, &field))
			continue;
		if (field.id == CLOCK_SNAPSHOT)
			ky_pf_clock_snapshot(pf, packet.sequence_id, field.view);
		else if (field.id == TRACK_DESCRIPTOR)
			ky_pf_describe_track(pf, field.view);
		else if (field.id == FTRACE_EVENTS)
			ky_pf_ftrace_range(pf, field.view);
		else if (field.id == SERVICE_EVENT)
			service_event(pf, &packet, field.view);
		else if (field.id == SYSTEM_INFO)
			ky_pf_system_info(pf, field.view);
	}
}

/* ---- the second pass ---- */

static void no_sequence(struct ky_pf *pf, const char *name)
{
	ky_problem(pf->trace, name, KY_ERROR, pf->at,
		   "the packet does not say of which sequence it is");
}

/* False when the packet is to be left out. */
static bool update_state(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			 const struct ky_pf_packet *packet)
{
	const bool first = !sequence->seen;
	sequence->seen = true;
	if (packet->cleared) {
		if (packet->has_sequence)
			ky_pf_sequence_clear(sequence);
		else
			no_sequence(pf, "incremental_state_cleared_missing_sequence_id");
	} else if (packet->dropped) {
		ky_pf_sequence_lost(sequence);
	}
	if (packet->dropped && !first)
		ky_put_lost(pf->trace,
			    packet->has_timestamp && !sequence->clock_id && !packet->clock_id
				    ? (int64_t)packet->timestamp
				    : KY_TIME_NONE,
			    KY_NONE, KY_NONE, 0, "packets of a sequence dropped");
	if (packet->defaults.data) {
		if (packet->has_sequence)
			ky_pf_sequence_defaults(pf, sequence, packet->defaults);
		else
			no_sequence(pf, "trace_packet_defaults_missing_sequence_id");
	}
	if (packet->interned.data) {
		if (!packet->has_sequence)
			no_sequence(pf, "interned_data_missing_sequence_id");
		else if (sequence->valid)
			ky_pf_intern(pf, sequence, packet->interned);
		else
			ky_problem(pf->trace, "interned_data_skipped_incremental_state_invalid",
				   KY_DATA_LOSS, pf->at, "interned data after packets were lost");
	}
	if ((packet->flags & NEEDS_STATE) && !sequence->valid) {
		ky_problem(pf->trace, "packet_skipped_seq_needs_incremental_state_invalid",
			   KY_DATA_LOSS, pf->at,
			   "a packet that needs what was lost before it on its sequence");
		return false;
	}
	return true;
}

/* What needs no time of its own. False: it is none of these. */
static bool take_timeless(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			  const struct ky_proto_field *field)
{
	switch (field->id) {
	case FTRACE_EVENTS:
		ky_pf_ftrace_bundle(pf, sequence, field->view);
		return true;
	case PROCESS_TREE:
		ky_pf_process_tree(pf, field->view);
		return true;
	case TRACE_STATS:
		ky_pf_trace_stats(pf, field->view);
		return true;
	case ANDROID_LOG:
		ky_pf_android_log(pf, field->view);
		return true;
	case PROCESS_DESCRIPTOR:
		ky_pf_process_descriptor(pf, field->view);
		return true;
	case THREAD_DESCRIPTOR:
		if (sequence->valid)
			ky_pf_thread_descriptor(pf, sequence, field->view, false);
		return true;
	case STREAMING_PROFILE:
		ky_pf_streaming_profile(pf, sequence, field->view);
		return true;
	case TRACK_DESCRIPTOR:
		ky_pf_name_described(pf, sequence, field->view);
		return true;
	case TRACE_UUID:
		ky_pf_trace_uuid(pf, field->view);
		return true;
	case GENERIC_PROCESS_TREE:
		ky_pf_generic_tree(pf, field->view);
		return true;
	default:
		return false;
	}
}

/* What needs nothing but its time. */
static const struct {
	uint32_t id;
	void (*take)(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
} timed[] = {
	{SYS_STATS, ky_pf_sys_stats},
	{PROCESS_STATS, ky_pf_process_stats},
	{BATTERY, ky_pf_battery},
	{POWER_RAILS, ky_pf_power_rails},
	{TRIGGER, ky_pf_trigger},
	{ENERGY_BREAKDOWN, ky_pf_energy_breakdown},
	{ENTITY_RESIDENCY, ky_pf_entity_residency},
	{CHROME_TRIGGER, ky_pf_chrome_trigger},
	{CLONE_TRIGGER, ky_pf_trigger},
	{GENERIC_TASK_STATE, ky_pf_generic_task},
	{GENERIC_CPU_FREQUENCY, ky_pf_generic_cpu_frequency},
	{GENERIC_TASK_RENAME, ky_pf_generic_rename},
	{GENERIC_GPU_FREQUENCY, ky_pf_generic_gpu_frequency},
};

/* And what needs its sequence as well. */
static const struct {
	uint32_t id;
	void (*take)(struct ky_pf *pf, struct ky_pf_sequence *sequence, int64_t ts,
		     struct ky_proto_view message);
} sequenced[] = {
	{GPU_COUNTERS, ky_pf_gpu_counters},
	{PERF_SAMPLE, ky_pf_perf_sample},
	{STACK_SAMPLE, ky_pf_stack_sample},
};

static void take_timed(struct ky_pf *pf, struct ky_pf_sequence *sequence,
		       const struct ky_pf_packet *packet, const struct ky_proto_field *field)
{
	int64_t ts;
	for (size_t i = 0; i < sizeof(timed) / sizeof(*timed); i++) {
		if (timed[i].id != field->id)
			continue;
		if (ky_pf_packet_time(pf, sequence, packet, &ts))
			timed[i].take(pf, ts, field->view);
		return;
	}
	for (size_t i = 0; i < sizeof(sequenced) / sizeof(*sequenced); i++) {
		if (sequenced[i].id != field->id)
			continue;
		if (ky_pf_packet_time(pf, sequence, packet, &ts))
			sequenced[i].take(pf, sequence, ts, field->view);
		return;
	}
}

void ky_pf_second_pass(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_packet packet = {0};
	read_packet(pf, message, &packet);
	change_machine(pf, packet.machine_id);
	struct ky_pf_sequence *sequence = ky_pf_sequence(pf, packet.sequence_id);
	if (!sequence)
		return;
	if (packet.payload.id == CLOCK_SNAPSHOT)
		ky_pf_clock_snapshot(pf, packet.sequence_id, packet.payload.view);
	if (!update_state(pf, sequence, &packet))
		return;
	const struct ky_proto_field *payload = &packet.payload;
	if (payload->id == TRACK_EVENT) {
		if (packet.has_sequence)
			ky_pf_track_event(pf, sequence, &packet, payload->view);
		else
			no_sequence(pf, "track_event_missing_sequence_id");
	} else if (payload->id && !take_timeless(pf, sequence, payload)) {
		take_timed(pf, sequence, &packet, payload);
	}
}
