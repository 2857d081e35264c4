/* SPDX-License-Identifier: MIT */
/*
 * pftrace_payload.c: what is in a packet, and in which order it counts: the state of its sequence is
 * cleared, then lost, then defaults are replaced, then data is interned, and then comes what the packet
 * is about. A packet that needs what was lost is left out.
 */
#include "formats/pftrace/pftrace_reader.h"

/* ---- the packet's own fields ---- */

static void read_rare_field(struct ky_pf_packet *packet, const struct ky_proto_field *field)
{
	switch (field->id) {
	case KY_PF_TRACE_PACKET_INTERNED_DATA:
		packet->interned = field->view;
		break;
	case KY_PF_TRACE_PACKET_INCREMENTAL_STATE_CLEARED:
		packet->cleared |= field->value != 0;
		break;
	case KY_PF_TRACE_PACKET_PREVIOUS_PACKET_DROPPED:
		packet->dropped = (uint32_t)field->value;
		break;
	case KY_PF_TRACE_PACKET_TRACE_PACKET_DEFAULTS:
		packet->defaults = field->view;
		break;
	case KY_PF_TRACE_PACKET_MACHINE_ID:
		packet->machine_id = (uint32_t)field->value;
		break;
	case KY_PF_TRACE_PACKET_TRUSTED_UID:
	case KY_PF_TRACE_PACKET_TRUSTED_PID:
	case KY_PF_TRACE_PACKET_FIRST_PACKET_ON_SEQUENCE:
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
		case KY_PF_TRACE_PACKET_TIMESTAMP:
			packet->timestamp = field.value;
			packet->has_timestamp = true;
			break;
		case KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
			packet->sequence_id = (uint32_t)field.value;
			packet->has_sequence = true;
			break;
		case KY_PF_TRACE_PACKET_TRACK_EVENT:
			packet->payload = field;
			break;
		case KY_PF_TRACE_PACKET_SEQUENCE_FLAGS:
			packet->flags = (uint32_t)field.value;
			packet->cleared |= field.value & KY_PF_SEQ_INCREMENTAL_STATE_CLEARED;
			break;
		case KY_PF_TRACE_PACKET_TIMESTAMP_CLOCK_ID:
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
	uint32_t *number = ky_u64_map_add(&pf->machine_of, id, &made);
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
	if (ky_proto_find(message, KY_PF_TRACING_SERVICE_EVENT_TRACING_STARTED, &field) &&
	    field.value && packet->has_timestamp && (int64_t)packet->timestamp > 0)
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
		case KY_PF_TRACE_PACKET_FTRACE_EVENTS:
		case KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT:
		case KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR:
		case KY_PF_TRACE_PACKET_SERVICE_EVENT:
		case KY_PF_TRACE_PACKET_SYSTEM_INFO:
		case KY_PF_TRACE_PACKET_POWER_RAILS:
		case KY_PF_TRACE_PACKET_ANDROID_ENERGY_ESTIMATION_BREAKDOWN:
		case KY_PF_TRACE_PACKET_ENTITY_STATE_RESIDENCY:
		case KY_PF_TRACE_PACKET_GPU_COUNTER_EVENT:
			look.wanted = true;
			break;
		case KY_PF_TRACE_PACKET_SYNCHRONIZATION_MARKER:
			look.marker = true;
			break;
		case KY_PF_TRACE_PACKET_COMPRESSED_PACKETS:
		case KY_PF_TRACE_PACKET_ZSTD_COMPRESSED_PACKETS:
			look.compressed = true;
			break;
		case KY_PF_TRACE_PACKET_MACHINE_ID:
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
	case KY_PF_TRACE_PACKET_POWER_RAILS:
		ky_pf_describe_rails(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_ANDROID_ENERGY_ESTIMATION_BREAKDOWN:
		ky_pf_describe_energy(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_ENTITY_STATE_RESIDENCY:
		ky_pf_describe_entities(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_GPU_COUNTER_EVENT:
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
		if (field.id == KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT)
			ky_pf_clock_snapshot(pf, packet.sequence_id, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR)
			ky_pf_describe_track(pf, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_FTRACE_EVENTS)
			ky_pf_ftrace_range(pf, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_SERVICE_EVENT)
			service_event(pf, &packet, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_SYSTEM_INFO)
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
	if ((packet->flags & KY_PF_SEQ_NEEDS_INCREMENTAL_STATE) && !sequence->valid) {
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
	case KY_PF_TRACE_PACKET_FTRACE_EVENTS:
		ky_pf_ftrace_bundle(pf, sequence, field->view);
		return true;
	case KY_PF_TRACE_PACKET_PROCESS_TREE:
		ky_pf_process_tree(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_TRACE_STATS:
		ky_pf_trace_stats(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_ANDROID_LOG:
		ky_pf_android_log(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_PROCESS_DESCRIPTOR:
		ky_pf_process_descriptor(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_THREAD_DESCRIPTOR:
		if (sequence->valid)
			ky_pf_thread_descriptor(pf, sequence, field->view, false);
		return true;
	case KY_PF_TRACE_PACKET_STREAMING_PROFILE_PACKET:
		ky_pf_streaming_profile(pf, sequence, field->view);
		return true;
	case KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR:
		ky_pf_name_described(pf, sequence, field->view);
		return true;
	case KY_PF_TRACE_PACKET_TRACE_UUID:
		ky_pf_trace_uuid(pf, field->view);
		return true;
	case KY_PF_TRACE_PACKET_GENERIC_KERNEL_PROCESS_TREE:
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
	{KY_PF_TRACE_PACKET_SYS_STATS, ky_pf_sys_stats},
	{KY_PF_TRACE_PACKET_PROCESS_STATS, ky_pf_process_stats},
	{KY_PF_TRACE_PACKET_BATTERY, ky_pf_battery},
	{KY_PF_TRACE_PACKET_POWER_RAILS, ky_pf_power_rails},
	{KY_PF_TRACE_PACKET_TRIGGER, ky_pf_trigger},
	{KY_PF_TRACE_PACKET_ANDROID_ENERGY_ESTIMATION_BREAKDOWN, ky_pf_energy_breakdown},
	{KY_PF_TRACE_PACKET_ENTITY_STATE_RESIDENCY, ky_pf_entity_residency},
	{KY_PF_TRACE_PACKET_CHROME_TRIGGER, ky_pf_chrome_trigger},
	{KY_PF_TRACE_PACKET_CLONE_SNAPSHOT_TRIGGER, ky_pf_trigger},
	{KY_PF_TRACE_PACKET_GENERIC_KERNEL_TASK_STATE_EVENT, ky_pf_generic_task},
	{KY_PF_TRACE_PACKET_GENERIC_KERNEL_CPU_FREQ_EVENT, ky_pf_generic_cpu_frequency},
	{KY_PF_TRACE_PACKET_GENERIC_KERNEL_TASK_RENAME_EVENT, ky_pf_generic_rename},
	{KY_PF_TRACE_PACKET_GENERIC_GPU_FREQUENCY_EVENT, ky_pf_generic_gpu_frequency},
};

/* And what needs its sequence as well. */
static const struct {
	uint32_t id;
	void (*take)(struct ky_pf *pf, struct ky_pf_sequence *sequence, int64_t ts,
		     struct ky_proto_view message);
} sequenced[] = {
	{KY_PF_TRACE_PACKET_GPU_COUNTER_EVENT, ky_pf_gpu_counters},
	{KY_PF_TRACE_PACKET_PERF_SAMPLE, ky_pf_perf_sample},
	{KY_PF_TRACE_PACKET_STACK_SAMPLE, ky_pf_stack_sample},
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
	if (packet.payload.id == KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT)
		ky_pf_clock_snapshot(pf, packet.sequence_id, packet.payload.view);
	if (!update_state(pf, sequence, &packet))
		return;
	const struct ky_proto_field *payload = &packet.payload;
	if (payload->id == KY_PF_TRACE_PACKET_TRACK_EVENT) {
		if (packet.has_sequence)
			ky_pf_track_event(pf, sequence, &packet, payload->view);
		else
			no_sequence(pf, "track_event_missing_sequence_id");
	} else if (payload->id && !take_timeless(pf, sequence, payload)) {
		take_timed(pf, sequence, &packet, payload);
	}
}
