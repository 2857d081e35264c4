/* SPDX-License-Identifier: MIT */
/*
 * pftrace_metadata.c: packets about the trace itself: the system, the tracing service's losses, triggers; and
 * Android's log.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <elf.h>
#include <stdlib.h>

/* ---- the system ---- */

static void metadata_text(struct ky_pf *pf, const char *key, struct ky_proto_view text)
{
	ky_put_metadata(pf->trace, key, ky_pf_string(pf, text));
}

/* Take "6.1.0-rpi7" as 6 << 8 | 1. */
static void learn_release(struct ky_pf *pf, struct ky_proto_view text)
{
	char release[16] = "";
	char *end;
	memcpy(release, text.data,
	       text.bytes < sizeof(release) - 1 ? text.bytes : sizeof(release) - 1);
	const unsigned long major = strtoul(release, &end, 10);
	const unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	if (major && major < 256 && minor < 256)
		pf->kernel_release = (uint32_t)(major << 8 | minor);
}

/* Take the machine of uname, which decides the numbers of system calls. */
static void learn_machine(struct ky_pf *pf, struct ky_proto_view text)
{
	static const struct {
		const char *name;
		uint32_t machine;
	} machines[] = {{"x86_64", EM_X86_64}, {"aarch64", EM_AARCH64}, {"riscv64", EM_RISCV}};
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (text.bytes == strlen(machines[i].name) &&
		    memcmp(text.data, machines[i].name, text.bytes) == 0)
			pf->syscalls = machines[i].machine;
}

static void utsname(struct ky_pf *pf, struct ky_proto_view message)
{
	static const char *const keys[] = {[KY_PF_UTSNAME_SYSNAME] = "system_name",
					   [KY_PF_UTSNAME_VERSION] = "system_version",
					   [KY_PF_UTSNAME_RELEASE] = "system_release",
					   [KY_PF_UTSNAME_MACHINE] = "system_machine"};
	KY_PROTO_EACH(field, message) {
		if (field.id >= sizeof(keys) / sizeof(*keys) || !keys[field.id] ||
		    field.wire != KY_PROTO_BYTES)
			continue;
		metadata_text(pf, keys[field.id], field.view);
		if (field.id == KY_PF_UTSNAME_RELEASE && field.view.bytes)
			learn_release(pf, field.view);
		if (field.id == KY_PF_UTSNAME_MACHINE && field.view.bytes)
			learn_machine(pf, field.view);
	}
}

void ky_pf_metadata_system(struct ky_pf *pf, struct ky_proto_view info)
{
	static const struct {
		const char *key;
		uint32_t field;
		bool text;
	} facts[] = {
		{"android_build_fingerprint", KY_PF_SYSTEM_INFO_ANDROID_BUILD_FINGERPRINT, true},
		{"tracing_service_version", KY_PF_SYSTEM_INFO_TRACING_SERVICE_VERSION, true},
		{"android_sdk_version", KY_PF_SYSTEM_INFO_ANDROID_SDK_VERSION, false},
		{"timezone_off_mins", KY_PF_SYSTEM_INFO_TIMEZONE_OFF_MINS, false},
		{"system_ram_bytes", KY_PF_SYSTEM_INFO_SYSTEM_RAM_BYTES, false},
		{"machine_name", KY_PF_SYSTEM_INFO_MACHINE_NAME, true},
	};
	KY_PROTO_EACH(field, info) {
		if (field.id == KY_PF_SYSTEM_INFO_UTSNAME)
			utsname(pf, field.view);
		for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
			if (facts[i].field == field.id && facts[i].text)
				metadata_text(pf, facts[i].key, field.view);
			else if (facts[i].field == field.id)
				ky_put_metadata_number(pf->trace, facts[i].key,
						       (int64_t)field.value);
	}
}

void ky_pf_metadata_uuid(struct ky_pf *pf, struct ky_proto_view uuid)
{
	struct ky_proto_field msb, lsb;
	if (!ky_proto_find(uuid, KY_PF_TRACE_UUID_MSB, &msb) ||
	    !ky_proto_find(uuid, KY_PF_TRACE_UUID_LSB, &lsb))
		return;
	ky_put_metadata(
		pf->trace, "trace_uuid",
		ky_string_format(pf->trace, "%08x-%04x-%04x-%04x-%012llx",
				 (unsigned)(msb.value >> 32), (unsigned)(msb.value >> 16 & 0xffff),
				 (unsigned)(msb.value & 0xffff), (unsigned)(lsb.value >> 48),
				 (unsigned long long)(lsb.value & 0xffffffffffff)));
}

/* ---- what was lost ---- */

/* What BufferStats counts of interest. A full ring overwrites, a full buffer discards: as its config asks for. */
static const struct buffer_count {
	uint32_t field;
	enum ky_severity severity;
	const char *problem;
} buffer_counts[] = {
	{KY_PF_BUFFER_STATS_CHUNKS_OVERWRITTEN, KY_INFO, "traced_buf_chunks_overwritten"},
	{KY_PF_BUFFER_STATS_CHUNKS_DISCARDED, KY_INFO, "traced_buf_chunks_discarded"},
	{KY_PF_BUFFER_STATS_PATCHES_FAILED, KY_DATA_LOSS, "traced_buf_patches_failed"},
	{KY_PF_BUFFER_STATS_ABI_VIOLATIONS, KY_DATA_LOSS, "traced_buf_abi_violations"},
	{KY_PF_BUFFER_STATS_TRACE_WRITER_PACKET_LOSS, KY_DATA_LOSS,
	 "traced_buf_trace_writer_packet_loss"},
};

static void buffer_stats(struct ky_pf *pf, struct ky_proto_view message)
{
	KY_PROTO_EACH(field, message) {
		for (size_t i = 0; i < sizeof(buffer_counts) / sizeof(*buffer_counts); i++)
			if (buffer_counts[i].field == field.id && field.value)
				ky_problems(pf->trace, buffer_counts[i].problem,
					    buffer_counts[i].severity, pf->at, field.value);
		if (field.id == KY_PF_BUFFER_STATS_TRACE_WRITER_PACKET_LOSS && field.value)
			pf->lost_packets += field.value;
	}
}

void ky_pf_metadata_stats(struct ky_pf *pf, struct ky_proto_view stats)
{
	KY_PROTO_EACH(field, stats)
		if (field.id == KY_PF_TRACE_STATS_BUFFER_STATS && field.wire == KY_PROTO_BYTES)
			buffer_stats(pf, field.view);
}

/* kymo's own files count there what they have markers for, too. */
void ky_pf_metadata_losses(struct ky_pf *pf)
{
	if (pf->lost_packets > pf->lost_marked)
		ky_put_lost(pf->trace, KY_TIME_NONE, KY_NONE, KY_NONE,
			    pf->lost_packets - pf->lost_marked,
			    pf->lost_marked ? KY_LOSS_NO_RING : KY_LOSS_PACKETS);
}

/* ---- triggers ---- */

static uint32_t trigger_track(struct ky_pf *pf)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_GLOBAL,
					   .owner = KY_NONE,
					   .name = ky_string_z(pf->trace, "Trace Triggers"),
					   .type = ky_string_z(pf->trace, "triggers")};
	return ky_track(pf->trace, &spec);
}

/* Chrome's triggers have a hash instead of a name. */
void ky_pf_metadata_chrome_trigger(struct ky_pf *pf, int64_t ts, struct ky_proto_view trigger)
{
	struct ky_trace *trace = pf->trace;
	struct ky_proto_field field;
	const uint32_t name = ky_proto_find(trigger, KY_PF_CHROME_TRIGGER_TRIGGER_NAME, &field) &&
					      field.wire == KY_PROTO_BYTES
				      ? ky_pf_string(pf, field.view)
				      : ky_string_z(trace, "chrome_trigger");
	ky_args_begin(trace);
	if (ky_proto_find(trigger, KY_PF_CHROME_TRIGGER_TRIGGER_NAME_HASH, &field))
		ky_arg_uint(trace, ky_string_z(trace, "chrome_trigger.name_hash"), field.value);
	ky_put_instant(trace, ts, trigger_track(pf), 0, name, ky_args_end(trace));
}

/* Put an instant with the producer that activated the trigger. */
void ky_pf_metadata_trigger(struct ky_pf *pf, int64_t ts, struct ky_proto_view trigger)
{
	struct ky_trace *trace = pf->trace;
	struct ky_proto_field name, field;
	if (!ky_proto_find(trigger, KY_PF_TRIGGER_TRIGGER_NAME, &name))
		return;
	ky_args_begin(trace);
	if (ky_proto_find(trigger, KY_PF_TRIGGER_PRODUCER_NAME, &field))
		ky_arg_string(trace, ky_string_z(trace, "producer_name"),
			      ky_pf_string(pf, field.view));
	if (ky_proto_find(trigger, KY_PF_TRIGGER_TRUSTED_PRODUCER_UID, &field))
		ky_arg_int(trace, ky_string_z(trace, "trusted_producer_uid"), (int32_t)field.value);
	const uint32_t args = ky_args_end(trace);
	ky_put_instant(trace, ts, trigger_track(pf), 0, ky_pf_string(pf, name.view), args);
}

/* ---- logs ---- */

static void log_event(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const int32_t pid = ky_pf_id(&parts, KY_PF_LOG_EVENT_PID);
	const int32_t tid = ky_pf_id(&parts, KY_PF_LOG_EVENT_TID);
	const uint64_t priority = parts.values[KY_PF_LOG_EVENT_PRIO];
	const int64_t ns = (int64_t)parts.values[KY_PF_LOG_EVENT_TIMESTAMP];
	const uint32_t tag = ky_pf_string_if(pf, parts.texts[KY_PF_LOG_EVENT_TAG]);
	const uint32_t thread = tid < 0   ? KY_NONE
				: pid < 0 ? ky_thread_by_tid(pf->trace, tid)
					  : ky_thread(pf->trace, pid, tid);
	ky_put_log(pf->trace, ky_pf_clock_time(pf, KY_CLOCK_REALTIME, ns), thread,
		   priority <= KY_PF_PRIO_FATAL ? (uint8_t)priority : 0, tag,
		   ky_pf_string_if(pf, parts.texts[KY_PF_LOG_EVENT_MESSAGE]));
}

void ky_pf_metadata_android_log(struct ky_pf *pf, struct ky_proto_view packet)
{
	KY_PF_EACH(pf, field, packet, "android_log")
		if (field.id == KY_PF_ANDROID_LOG_PACKET_EVENTS && field.wire == KY_PROTO_BYTES)
			log_event(pf, field.view);
}
