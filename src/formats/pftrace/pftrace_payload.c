/* SPDX-License-Identifier: MIT */
/*
 * pftrace_payload.c: reads a packet in the order that counts: the state of its sequence is cleared or lost,
 * defaults are replaced, data is interned, and then comes the payload, found by a table. A packet that needs lost
 * state is left out.
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
	packet->all = message;
	KY_PF_EACH(pf, field, message, "a packet") {
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
}

/* ---- machines ---- */

/* Return the number of a machine, counted in the order of appearance; the host is 0. */
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

/* If no packet is the host's, the first machine is the trace's own. */
static void change_machine(struct ky_pf *pf, uint32_t id)
{
	const uint32_t machine = machine_of(pf, id);
	if (machine == pf->machine)
		return;
	pf->machine = machine;
	ky_trace_machine(pf->trace, machine && !pf->host_used ? machine - 1 : machine);
}

/* ---- payloads ---- */

static void thread_descriptor(struct ky_pf *pf, struct ky_proto_view descriptor)
{
	if (pf->sequence->valid)
		ky_pf_process_thread_descriptor(pf, descriptor, false);
}

/* How a payload is read, by what it needs beside itself. */
struct payload {
	void (*first_pass)(struct ky_pf *pf, struct ky_proto_view message);
	void (*plain)(struct ky_pf *pf, struct ky_proto_view message);
	void (*timed)(struct ky_pf *pf, int64_t ts, struct ky_proto_view message);
};

/* By field of TracePacket. Track events, clock snapshots and service events are read elsewhere. */
static const struct payload payloads[] = {
	[KY_PF_TRACE_PACKET_FTRACE_EVENTS] = {.first_pass = ky_pf_ftrace_range,
					      .plain = ky_pf_ftrace_bundle},
	[KY_PF_TRACE_PACKET_PROCESS_TREE] = {.plain = ky_pf_process_tree},
	[KY_PF_TRACE_PACKET_SYS_STATS] = {.timed = ky_pf_stats_put},
	[KY_PF_TRACE_PACKET_PROCESS_STATS] = {.timed = ky_pf_process_stats},
	[KY_PF_TRACE_PACKET_TRACE_STATS] = {.plain = ky_pf_metadata_stats},
	[KY_PF_TRACE_PACKET_BATTERY] = {.timed = ky_pf_power_battery},
	[KY_PF_TRACE_PACKET_ANDROID_LOG] = {.plain = ky_pf_metadata_android_log},
	[KY_PF_TRACE_PACKET_POWER_RAILS] = {.first_pass = ky_pf_power_describe_rails,
					    .timed = ky_pf_power_rails},
	[KY_PF_TRACE_PACKET_PROCESS_DESCRIPTOR] = {.plain = ky_pf_process_descriptor},
	[KY_PF_TRACE_PACKET_THREAD_DESCRIPTOR] = {.plain = thread_descriptor},
	[KY_PF_TRACE_PACKET_SYSTEM_INFO] = {.first_pass = ky_pf_metadata_system},
	[KY_PF_TRACE_PACKET_TRIGGER] = {.timed = ky_pf_metadata_trigger},
	[KY_PF_TRACE_PACKET_GPU_COUNTER_EVENT] = {.first_pass = ky_pf_graphics_describe_counters,
						  .timed = ky_pf_graphics_put_counters},
	[KY_PF_TRACE_PACKET_STREAMING_PROFILE_PACKET] = {.plain = ky_pf_sample_streaming},
	[KY_PF_TRACE_PACKET_TRACK_DESCRIPTOR] = {.first_pass = ky_pf_track_describe,
						 .plain = ky_pf_process_name_described},
	[KY_PF_TRACE_PACKET_PERF_SAMPLE] = {.timed = ky_pf_sample_perf},
	[KY_PF_TRACE_PACKET_ANDROID_ENERGY_ESTIMATION_BREAKDOWN] =
		{.first_pass = ky_pf_power_describe_energy, .timed = ky_pf_power_energy},
	[KY_PF_TRACE_PACKET_TRACE_UUID] = {.plain = ky_pf_metadata_uuid},
	[KY_PF_TRACE_PACKET_ENTITY_STATE_RESIDENCY] = {.first_pass = ky_pf_power_describe_entities,
						       .timed = ky_pf_power_residency},
	[KY_PF_TRACE_PACKET_CHROME_TRIGGER] = {.timed = ky_pf_metadata_chrome_trigger},
	[KY_PF_TRACE_PACKET_CLONE_SNAPSHOT_TRIGGER] = {.timed = ky_pf_metadata_trigger},
	[KY_PF_TRACE_PACKET_GENERIC_KERNEL_TASK_STATE_EVENT] = {.timed = ky_pf_kernel_task},
	[KY_PF_TRACE_PACKET_GENERIC_KERNEL_CPU_FREQ_EVENT] = {.timed = ky_pf_kernel_cpu_frequency},
	[KY_PF_TRACE_PACKET_GENERIC_KERNEL_TASK_RENAME_EVENT] = {.timed = ky_pf_kernel_rename},
	[KY_PF_TRACE_PACKET_GENERIC_KERNEL_PROCESS_TREE] = {.plain = ky_pf_kernel_process_tree},
	[KY_PF_TRACE_PACKET_GENERIC_GPU_FREQUENCY_EVENT] = {.timed = ky_pf_kernel_gpu_frequency},
	[KY_PF_TRACE_PACKET_STACK_SAMPLE] = {.timed = ky_pf_sample_stack},
};

static const struct payload *payload_of(uint32_t field)
{
	static const struct payload unknown;
	return field < sizeof(payloads) / sizeof(*payloads) ? &payloads[field] : &unknown;
}

/* ---- the first pass ---- */

/* Learn when tracing started. */
static void service_event(struct ky_pf *pf, const struct ky_pf_packet *packet,
			  struct ky_proto_view message)
{
	struct ky_proto_field field;
	if (ky_proto_find(message, KY_PF_TRACING_SERVICE_EVENT_TRACING_STARTED, &field) &&
	    field.value && packet->has_timestamp && (int64_t)packet->timestamp > 0)
		pf->ftrace_from_ns = (int64_t)packet->timestamp;
}

/* What the first pass needs to know of a packet, mostly nothing. */
struct look {
	bool wanted;
	bool remote;
	bool marker;
	bool compressed;
};

static struct look look_over(struct ky_proto_view message)
{
	struct look look = {0};
	KY_PROTO_EACH(field, message) {
		switch (field.id) {
		case KY_PF_TRACE_PACKET_TIMESTAMP:
		case KY_PF_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID:
		case KY_PF_TRACE_PACKET_TRACK_EVENT:
		case KY_PF_TRACE_PACKET_SEQUENCE_FLAGS:
			break;
		case KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT:
		case KY_PF_TRACE_PACKET_SERVICE_EVENT:
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
			look.wanted |= payload_of(field.id)->first_pass != NULL;
		}
	}
	return look;
}

void ky_pf_payload_first_pass(struct ky_pf *pf, struct ky_proto_view message, bool of_file)
{
	const struct look look = look_over(message);
	if (look.compressed && of_file && ky_pf_read_compressed(pf, message)) {
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
	KY_PROTO_EACH(field, message) {
		const struct payload *payload = payload_of(field.id);
		if (field.wire != KY_PROTO_BYTES)
			continue;
		if (field.id == KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT)
			ky_pf_clock_snapshot(pf, packet.sequence_id, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_SERVICE_EVENT)
			service_event(pf, &packet, field.view);
		else if (payload->first_pass)
			payload->first_pass(pf, field.view);
	}
}

/* ---- the second pass ---- */

static void no_sequence(struct ky_pf *pf, const char *name)
{
	ky_problem(pf->trace, name, KY_ERROR, pf->at, "the packet does not name its sequence");
}

/* Return false when the packet must be left out. */
static bool update_state(struct ky_pf *pf, const struct ky_pf_packet *packet)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
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
			    KY_NONE, KY_NONE, 0, KY_LOSS_SEQUENCE);
	if (packet->defaults.data) {
		if (packet->has_sequence)
			ky_pf_sequence_defaults(pf, packet->defaults);
		else
			no_sequence(pf, "trace_packet_defaults_missing_sequence_id");
	}
	if (packet->interned.data) {
		if (!packet->has_sequence)
			no_sequence(pf, "interned_data_missing_sequence_id");
		else if (sequence->valid)
			ky_pf_sequence_intern(pf, packet->interned);
		else
			ky_problem(pf->trace, "interned_data_skipped_incremental_state_invalid",
				   KY_DATA_LOSS, pf->at, "interned data after packets were lost");
	}
	if ((packet->flags & KY_PF_SEQ_NEEDS_INCREMENTAL_STATE) && !sequence->valid) {
		ky_problem(pf->trace, "packet_skipped_seq_needs_incremental_state_invalid",
			   KY_DATA_LOSS, pf->at, "a packet needs state that its sequence lost");
		return false;
	}
	return true;
}

static void take_payload(struct ky_pf *pf, const struct ky_pf_packet *packet,
			 const struct ky_proto_field *field)
{
	const struct payload *payload = payload_of(field->id);
	int64_t ts;
	if (payload->plain)
		payload->plain(pf, field->view);
	else if (payload->timed && ky_pf_clock_packet_time(pf, packet, &ts))
		payload->timed(pf, ts, field->view);
}

void ky_pf_payload_second_pass(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_packet packet = {0};
	read_packet(pf, message, &packet);
	change_machine(pf, packet.machine_id);
	struct ky_pf_sequence *sequence = ky_pf_sequence_get(pf, packet.sequence_id);
	if (!sequence)
		return;
	if (packet.payload.id == KY_PF_TRACE_PACKET_CLOCK_SNAPSHOT)
		ky_pf_clock_snapshot(pf, packet.sequence_id, packet.payload.view);
	if (!update_state(pf, &packet))
		return;
	const struct ky_proto_field *payload = &packet.payload;
	if (payload->id == KY_PF_TRACE_PACKET_TRACK_EVENT) {
		if (packet.has_sequence)
			ky_pf_event_read(pf, &packet, payload->view);
		else
			no_sequence(pf, "track_event_missing_sequence_id");
	} else {
		take_payload(pf, &packet, payload);
	}
}
