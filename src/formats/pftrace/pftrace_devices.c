/* SPDX-License-Identifier: MIT */
/*
 * pftrace_devices.c: ftrace events of devices: clocks, the scheduler's estimates, suspend, markers that drivers
 * write as events of their own, UFS commands and f2fs statistics. And of the network: bytes that each device sent and
 * received, retransmissions, the states of TCP sockets, receiving in batches, freed packets. Track names are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#include <stdio.h>

/* Put a counter whose name contains that of the clock. */
static void clock_counter(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const bool rate = event->id == KY_PF_FTRACE_EVENT_CLOCK_SET_RATE;
	const char *suffix = rate ? " Frequency" : " State";
	pf->text.bytes = 0;
	ky_buffer_add(&pf->text, (const char *)event->texts[KY_PF_CLOCK_ENABLE_NAME].data,
		      event->texts[KY_PF_CLOCK_ENABLE_NAME].bytes);
	ky_buffer_add(&pf->text, suffix, strlen(suffix));
	const uint32_t name = ky_pf_buffer_string(pf, &pf->text);
	ky_put_counter(pf->trace, event->ts,
		       ky_track_counter(pf->trace, KY_TRACK_COUNTER, KY_NONE, name),
		       (double)event->values[KY_PF_CLOCK_ENABLE_STATE]);
}

static void cpu_estimate(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	static const struct {
		uint32_t field;
		const char *name;
	} estimates[] = {{KY_PF_SCHED_CPU_UTIL_CFS_CPU_UTIL, "Util"},
			 {KY_PF_SCHED_CPU_UTIL_CFS_CAPACITY, "Cap"},
			 {KY_PF_SCHED_CPU_UTIL_CFS_NR_RUNNING, "Nr Running"}};
	const uint32_t cpu = (uint32_t)event->values[KY_PF_SCHED_CPU_UTIL_CFS_CPU];
	char name[40];
	for (size_t i = 0; i < sizeof(estimates) / sizeof(*estimates); i++) {
		snprintf(name, sizeof(name), "Cpu %u %s", cpu, estimates[i].name);
		ky_put_cpu_counter(pf->trace, event->ts, cpu, ky_string_z(pf->trace, name),
				   (double)event->values[estimates[i].field]);
	}
}

static void gpu_frequency(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_COUNTER,
					   .owner = KY_NONE,
					   .name = ky_pf_literal(pf, "gpufreq"),
					   .type = ky_pf_literal(pf, "gpu_frequency"),
					   .id = event->values[KY_PF_GPU_FREQUENCY_GPU_ID]};
	ky_put_counter(pf->trace, event->ts, ky_track(pf->trace, &spec),
		       (double)(uint32_t)event->values[KY_PF_GPU_FREQUENCY_STATE]);
}

/* Put the latency of a sensor's sample. */
static void sensor_hub(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t *values = event->values;
	const uint32_t name =
		ky_pf_track_name(pf, "cros_ec.cros_ec_sensorhub_data.%u",
				 (unsigned)values[KY_PF_CROS_EC_SENSORHUB_DATA_EC_SENSOR_NUM]);
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, ky_pf_literal(pf, "ec_num"),
		   (int64_t)values[KY_PF_CROS_EC_SENSORHUB_DATA_EC_SENSOR_NUM]);
	ky_arg_int(pf->trace, ky_pf_literal(pf, "ec_delta"),
		   (int64_t)(values[KY_PF_CROS_EC_SENSORHUB_DATA_FIFO_TIMESTAMP] -
			     values[KY_PF_CROS_EC_SENSORHUB_DATA_CURRENT_TIMESTAMP]));
	ky_arg_int(pf->trace, ky_pf_literal(pf, "sample_ts"),
		   (int64_t)values[KY_PF_CROS_EC_SENSORHUB_DATA_CURRENT_TIMESTAMP]);
	ky_put_counter_args(
		pf->trace, event->ts, ky_pf_track_of_counter(pf, "cros_ec_sensorhub_data", name, 0),
		(double)(int64_t)(values[KY_PF_CROS_EC_SENSORHUB_DATA_CURRENT_TIME] -
				  values[KY_PF_CROS_EC_SENSORHUB_DATA_CURRENT_TIMESTAMP]),
		ky_args_end(pf->trace));
}

/* The stages of a suspend overlap: each has a track of its own. */
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

static void suspend_stage(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const int bytes = event->texts[KY_PF_SUSPEND_RESUME_ACTION].bytes < 48
				  ? (int)event->texts[KY_PF_SUSPEND_RESUME_ACTION].bytes
				  : 48;
	const char *action = event->texts[KY_PF_SUSPEND_RESUME_ACTION].data
				     ? (const char *)event->texts[KY_PF_SUSPEND_RESUME_ACTION].data
				     : "";
	const bool freeze = bytes == 18 && memcmp(action, "timekeeping_freeze", 18) == 0;
	suspend(pf, event, "Suspend/Resume",
		ky_string_format(pf->trace, "%.*s(%d)", bytes, action,
				 freeze ? 0
					: (int)(int32_t)event->values[KY_PF_SUSPEND_RESUME_VAL]),
		event->values[KY_PF_SUSPEND_RESUME_START] != 0);
}

static void suspend_minimal(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	suspend(pf, event, "Suspend/Resume Minimal", ky_pf_literal(pf, "Suspended"),
		event->values[KY_PF_SUSPEND_RESUME_MINIMAL_START] != 0);
}

/* ---- markers of drivers ---- */

/* The fields of a driver's event that make a marker; 0 where it has none. */
struct mark {
	uint32_t id;
	uint8_t tgid, name, begin, type, value;
};

#define FIELD(event, field) KY_PF_##event##_TRACING_MARK_WRITE_##field
#define EVENT(event) KY_PF_FTRACE_EVENT_##event##_TRACING_MARK_WRITE
static const struct mark marks[] = {
	{KY_PF_FTRACE_EVENT_TRACING_MARK_WRITE, KY_PF_TRACING_MARK_WRITE_PID,
	 KY_PF_TRACING_MARK_WRITE_TRACE_NAME, KY_PF_TRACING_MARK_WRITE_TRACE_BEGIN, 0, 0},
	{EVENT(SDE), FIELD(SDE, PID), FIELD(SDE, TRACE_NAME), FIELD(SDE, TRACE_BEGIN),
	 FIELD(SDE, TRACE_TYPE), FIELD(SDE, VALUE)},
	{EVENT(DPU), FIELD(DPU, PID), FIELD(DPU, TRACE_NAME), FIELD(DPU, TRACE_BEGIN),
	 FIELD(DPU, TYPE), FIELD(DPU, VALUE)},
	{EVENT(G2D), FIELD(G2D, PID), FIELD(G2D, NAME), 0, FIELD(G2D, TYPE), FIELD(G2D, VALUE)},
	{EVENT(MALI), FIELD(MALI, PID), FIELD(MALI, NAME), 0, FIELD(MALI, TYPE),
	 FIELD(MALI, VALUE)},
	{EVENT(LWIS), FIELD(LWIS, PID), FIELD(LWIS, FUNC_NAME), 0, FIELD(LWIS, TYPE),
	 FIELD(LWIS, VALUE)},
	{EVENT(SAMSUNG), FIELD(SAMSUNG, PID), FIELD(SAMSUNG, TRACE_NAME),
	 FIELD(SAMSUNG, TRACE_BEGIN), FIELD(SAMSUNG, TRACE_TYPE), FIELD(SAMSUNG, VALUE)},
};

static const struct mark *mark_of(uint32_t id)
{
	const struct mark *place = marks;
	while (place->id != id)
		place++;
	return place;
}

static void mark(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const struct mark *place = mark_of(event->id);
	char head[32], tail[32] = "";
	struct ky_proto_view name = event->texts[place->name];
	/* The display's driver has had two fields for the name. */
	if (event->id == EVENT(DPU) && !name.data)
		name = event->texts[FIELD(DPU, NAME)];
	char type = (char)event->values[place->type];
	if (!place->type || !type)
		type = event->values[place->begin] ? 'B' : 'E';
	const int bytes = snprintf(head, sizeof(head), "%c|%d|", type,
				   (int)(int32_t)event->values[place->tgid]);
	if (type == 'C')
		snprintf(tail, sizeof(tail), "|%lld",
			 (long long)(place->value ? event->values[place->value] : 0));
	pf->text.bytes = 0;
	ky_buffer_add(&pf->text, head, (size_t)bytes);
	ky_buffer_add(&pf->text, (const char *)name.data, name.data ? name.bytes : 0);
	ky_buffer_add(&pf->text, tail, strlen(tail));
	ky_put_marker(pf->trace, event->ts, event->tid, ky_pf_buffer_string(pf, &pf->text));
}

/* ---- UFS ---- */

static const struct {
	uint8_t code;
	const char *name;
} ufs_commands[] = {
	{0, "TEST UNIT READY"},
	{3, "REQUEST SENSE"},
	{4, "FORMAT UNIT"},
	{8, "READ (6)"},
	{10, "WRITE (6)"},
	{18, "INQUIRY"},
	{27, "START STOP UNIT"},
	{29, "SEND DIAGNOSTIC"},
	{37, "READ CAPACITY (10)"},
	{40, "READ (10)"},
	{42, "WRITE (10)"},
	{47, "VERIFY"},
	{52, "PRE-FETCH (10)"},
	{53, "SYNCHRONIZE CACHE (10)"},
	{59, "WRITE BUFFER"},
	{60, "READ BUFFER"},
	{66, "UNMAP"},
	{85, "MODE SELECT (10)"},
	{90, "MODE SENSE (10)"},
	{136, "READ (16)"},
	{138, "WRITE (16)"},
	{144, "PRE-FETCH (16)"},
	{145, "SYNCHRONIZE CACHE (16)"},
	{158, "READ CAPACITY (16)"},
	{160, "REPORT LUNS"},
	{162, "SECURITY PROTOCOL IN"},
	{181, "SECURITY PROTOCOL OUT"},
};

static uint32_t ufs_name(struct ky_pf *pf, uint32_t code, uint32_t group)
{
	const char *name = "UNDEFINED";
	for (size_t i = 0; i < sizeof(ufs_commands) / sizeof(*ufs_commands); i++)
		if (ufs_commands[i].code == code)
			name = ufs_commands[i].name;
	return group ? ky_pf_track_name(pf, "%s (GID=0x%x)", name, group)
		     : ky_string_z(pf->trace, name);
}

static void ufs_command(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint32_t doorbell = (uint32_t)event->values[KY_PF_UFSHCD_COMMAND_DOORBELL],
		       tag = (uint32_t)event->values[KY_PF_UFSHCD_COMMAND_TAG];
	const bool ends = event->values[KY_PF_UFSHCD_COMMAND_STR_T] != 0;
	const int waiting = doorbell ? __builtin_popcount(doorbell)
				     : event->values[KY_PF_UFSHCD_COMMAND_STR_T] != 1;
	ky_pf_track_put_counter(pf, event->ts, "ufs_command_count",
				ky_pf_literal(pf, "io.ufs.command.count"), waiting);
	const uint32_t track = ky_pf_track_of_slices(
		pf, "ufs_command_tag", ky_pf_track_name(pf, "io.ufs.command.tag[%03u]", tag), tag);
	if (ends)
		ky_put_end(pf->trace, event->ts, track, 0, 0, 0);
	else
		ky_put_begin(pf->trace, event->ts, track, 0,
			     ufs_name(pf, (uint32_t)event->values[KY_PF_UFSHCD_COMMAND_OPCODE],
				      (uint32_t)event->values[KY_PF_UFSHCD_COMMAND_GROUP_ID]),
			     0);
}

/* The counter's levels: off, asked to go off, asked to go on, on. */
static void ufs_clock(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	static const uint8_t levels[] = {0, 3, 1, 2};
	const uint64_t state = event->values[KY_PF_UFSHCD_CLK_GATING_STATE];
	ky_pf_track_put_counter(pf, event->ts, "ufs_clkgating",
				ky_pf_literal(pf, "io.ufs.clkgating (OFF:0/REQ_OFF/REQ_ON/ON:3)"),
				state < sizeof(levels) ? levels[state] : 0);
}

/* ---- f2fs ---- */

#define F2FS_FIELDS 32u

struct f2fs_counter {
	const char *name;
	uint8_t field;
};

static const struct f2fs_counter f2fs_amounts[] = {
	{"write_app_total", KY_PF_F2FS_IOSTAT_APP_WIO},
	{"write_app_direct", KY_PF_F2FS_IOSTAT_APP_DIO},
	{"write_app_buffered", KY_PF_F2FS_IOSTAT_APP_BIO},
	{"write_app_mapped", KY_PF_F2FS_IOSTAT_APP_MIO},
	{"write_fs_data", KY_PF_F2FS_IOSTAT_FS_DIO},
	{"write_fs_node", KY_PF_F2FS_IOSTAT_FS_NIO},
	{"write_fs_meta", KY_PF_F2FS_IOSTAT_FS_MIO},
	{"write_gc_data", KY_PF_F2FS_IOSTAT_FS_GC_DIO},
	{"write_gc_node", KY_PF_F2FS_IOSTAT_FS_GC_NIO},
	{"write_cp_data", KY_PF_F2FS_IOSTAT_FS_CP_DIO},
	{"write_cp_node", KY_PF_F2FS_IOSTAT_FS_CP_NIO},
	{"write_cp_meta", KY_PF_F2FS_IOSTAT_FS_CP_MIO},
	{"read_app_total", KY_PF_F2FS_IOSTAT_APP_RIO},
	{"read_app_direct", KY_PF_F2FS_IOSTAT_APP_DRIO},
	{"read_app_buffered", KY_PF_F2FS_IOSTAT_APP_BRIO},
	{"read_app_mapped", KY_PF_F2FS_IOSTAT_APP_MRIO},
	{"read_fs_data", KY_PF_F2FS_IOSTAT_FS_DRIO},
	{"read_fs_gdata", KY_PF_F2FS_IOSTAT_FS_GDRIO},
	{"read_fs_cdata", KY_PF_F2FS_IOSTAT_FS_CDRIO},
	{"read_fs_node", KY_PF_F2FS_IOSTAT_FS_NRIO},
	{"read_fs_meta", KY_PF_F2FS_IOSTAT_FS_MRIO},
	{"other_fs_discard", KY_PF_F2FS_IOSTAT_FS_DISCARD},
};
static const struct f2fs_counter f2fs_latencies[] = {
	{"read_data_peak", KY_PF_F2FS_IOSTAT_LATENCY_D_RD_PEAK},
	{"read_data_avg", KY_PF_F2FS_IOSTAT_LATENCY_D_RD_AVG},
	{"read_data_cnt", KY_PF_F2FS_IOSTAT_LATENCY_D_RD_CNT},
	{"read_node_peak", KY_PF_F2FS_IOSTAT_LATENCY_N_RD_PEAK},
	{"read_node_avg", KY_PF_F2FS_IOSTAT_LATENCY_N_RD_AVG},
	{"read_node_cnt", KY_PF_F2FS_IOSTAT_LATENCY_N_RD_CNT},
	{"read_meta_peak", KY_PF_F2FS_IOSTAT_LATENCY_M_RD_PEAK},
	{"read_meta_avg", KY_PF_F2FS_IOSTAT_LATENCY_M_RD_AVG},
	{"read_meta_cnt", KY_PF_F2FS_IOSTAT_LATENCY_M_RD_CNT},
	{"write_sync_data_peak", KY_PF_F2FS_IOSTAT_LATENCY_D_WR_S_PEAK},
	{"write_sync_data_avg", KY_PF_F2FS_IOSTAT_LATENCY_D_WR_S_AVG},
	{"write_sync_data_cnt", KY_PF_F2FS_IOSTAT_LATENCY_D_WR_S_CNT},
	{"write_sync_node_peak", KY_PF_F2FS_IOSTAT_LATENCY_N_WR_S_PEAK},
	{"write_sync_node_avg", KY_PF_F2FS_IOSTAT_LATENCY_N_WR_S_AVG},
	{"write_sync_node_cnt", KY_PF_F2FS_IOSTAT_LATENCY_N_WR_S_CNT},
	{"write_sync_meta_peak", KY_PF_F2FS_IOSTAT_LATENCY_M_WR_S_PEAK},
	{"write_sync_meta_avg", KY_PF_F2FS_IOSTAT_LATENCY_M_WR_S_AVG},
	{"write_sync_meta_cnt", KY_PF_F2FS_IOSTAT_LATENCY_M_WR_S_CNT},
	{"write_async_data_peak", KY_PF_F2FS_IOSTAT_LATENCY_D_WR_AS_PEAK},
	{"write_async_data_avg", KY_PF_F2FS_IOSTAT_LATENCY_D_WR_AS_AVG},
	{"write_async_data_cnt", KY_PF_F2FS_IOSTAT_LATENCY_D_WR_AS_CNT},
	{"write_async_node_peak", KY_PF_F2FS_IOSTAT_LATENCY_N_WR_AS_PEAK},
	{"write_async_node_avg", KY_PF_F2FS_IOSTAT_LATENCY_N_WR_AS_AVG},
	{"write_async_node_cnt", KY_PF_F2FS_IOSTAT_LATENCY_N_WR_AS_CNT},
	{"write_async_meta_peak", KY_PF_F2FS_IOSTAT_LATENCY_M_WR_AS_PEAK},
	{"write_async_meta_avg", KY_PF_F2FS_IOSTAT_LATENCY_M_WR_AS_AVG},
	{"write_async_meta_cnt", KY_PF_F2FS_IOSTAT_LATENCY_M_WR_AS_CNT},
};

static void f2fs(struct ky_pf *pf, const struct ky_pf_ftrace *event, const char *type,
		 uint32_t device_field, const struct f2fs_counter *counters, size_t count)
{
	uint64_t values[F2FS_FIELDS] = {0};
	struct ky_proto_in in = ky_proto_open(event->all);
	struct ky_proto_field field;
	while (ky_proto_next(&in, &field))
		if (field.id < F2FS_FIELDS)
			values[field.id] = field.value;
	const unsigned device = (unsigned)values[device_field];
	for (size_t i = 0; i < count; i++)
		ky_pf_track_put_counter(pf, event->ts, type,
					ky_pf_track_name(pf, "%s.[%u:%u].%s", type,
							 device >> 8 & 0xff, device & 0xff,
							 counters[i].name),
					(double)values[counters[i].field]);
}

/* These events have more fields than parts holds. */
static void f2fs_amount(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	f2fs(pf, event, "f2fs_iostat", KY_PF_F2FS_IOSTAT_DEV, f2fs_amounts,
	     sizeof(f2fs_amounts) / sizeof(*f2fs_amounts));
}

static void f2fs_latency(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	f2fs(pf, event, "f2fs_iostat_latency", KY_PF_F2FS_IOSTAT_LATENCY_DEV, f2fs_latencies,
	     sizeof(f2fs_latencies) / sizeof(*f2fs_latencies));
}

/* ---- the network ---- */

#define PROTOCOL_TCP 6u
#define FAMILY_INET 2u
#define FAMILY_INET6 10u
#define ETHERNET_IP 0x800u
#define ETHERNET_IPV6 0x86ddu

enum { STATE_ESTABLISHED = 1, STATE_SYN_SENT = 2 };
static const char *const tcp_states[] = {
	"TCP_UNKNOWN",   "TCP_ESTABLISHED", "TCP_SYN_SENT",    "TCP_SYN_RECV",   "TCP_FIN_WAIT1",
	"TCP_FIN_WAIT2", "TCP_TIME_WAIT",   "TCP_CLOSE",       "TCP_CLOSE_WAIT", "TCP_LAST_ACK",
	"TCP_LISTEN",    "TCP_CLOSING",     "TCP_NEW_SYN_RECV"};
#define TCP_STATES (sizeof(tcp_states) / sizeof(*tcp_states))

/* Add to a running sum of a device. */
static void traffic(struct ky_pf *pf, const struct ky_pf_ftrace *event, uint32_t bytes,
		    struct ky_proto_view device, const char *type, const char *what)
{
	struct ky_trace *trace = pf->trace;
	const uint32_t name = ky_pf_track_name(pf, "%.*s %s KB", KY_PF_TEXT(device), what);
	ky_args_begin(trace);
	ky_arg_uint(trace, ky_pf_literal(pf, "cpu"), event->cpu);
	ky_arg_uint(trace, ky_pf_literal(pf, "len"), bytes);
	ky_put_sum(trace, event->ts, ky_pf_track_of_counter(pf, type, name, 0), bytes, 1024,
		   ky_args_end(trace));
}

static void received(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	traffic(pf, event, (uint32_t)event->values[KY_PF_NETIF_RECEIVE_SKB_LEN],
		event->texts[KY_PF_NETIF_RECEIVE_SKB_NAME], "net_receive", "Received");
}

/* A packet with a return code was not sent. */
static void transmitted(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	if (!event->values[KY_PF_NET_DEV_XMIT_RC])
		traffic(pf, event, (uint32_t)event->values[KY_PF_NET_DEV_XMIT_LEN],
			event->texts[KY_PF_NET_DEV_XMIT_NAME], "net_transmit", "Transmitted");
}

static void tcp_retransmit(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint32_t track = ky_pf_track_of_slices(pf, "net_tcp_retransmit_skb",
						     ky_pf_literal(pf, "TCP Retransmit Skb"), 0);
	ky_put_instant(pf->trace, event->ts, track, ky_pf_literal(pf, "tcp_event"),
		       ky_pf_track_name(pf, "sport=%u,dport=%u",
					(unsigned)event->values[KY_PF_TCP_RETRANSMIT_SKB_SPORT],
					(unsigned)event->values[KY_PF_TCP_RETRANSMIT_SKB_DPORT]),
		       0);
}

static uint32_t state_name(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t state = event->values[KY_PF_INET_SOCK_SET_STATE_NEWSTATE];
	if (state == STATE_SYN_SENT)
		return ky_pf_track_name(pf, "%s(pid=%u)", tcp_states[state], (unsigned)event->tid);
	if (state == STATE_ESTABLISHED)
		return ky_pf_track_name(pf, "%s(sport=%u,dport=%u)", tcp_states[state],
					(unsigned)event->values[KY_PF_INET_SOCK_SET_STATE_SPORT],
					(unsigned)event->values[KY_PF_INET_SOCK_SET_STATE_DPORT]);
	return ky_pf_literal(pf, tcp_states[state]);
}

/* A socket is in one state after the other. */
static void socket_state(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t family = event->values[KY_PF_INET_SOCK_SET_STATE_FAMILY];
	if (event->values[KY_PF_INET_SOCK_SET_STATE_PROTOCOL] != PROTOCOL_TCP ||
	    (family != FAMILY_INET && family != FAMILY_INET6) ||
	    event->values[KY_PF_INET_SOCK_SET_STATE_NEWSTATE] >= TCP_STATES ||
	    event->values[KY_PF_INET_SOCK_SET_STATE_OLDSTATE] >= TCP_STATES)
		return;
	uint64_t *stream = ky_pf_read_known(pf, KY_PF_SOCKET, 0,
					    event->values[KY_PF_INET_SOCK_SET_STATE_SKADDR], true);
	if (!stream)
		return;
	const bool first = !*stream;
	if (first)
		*stream = ++pf->sockets;
	const uint32_t number = (uint32_t)*stream;
	const uint32_t track = ky_pf_track_of_slices(
		pf, "net_socket_set_state", ky_pf_track_name(pf, "TCP stream#%u", number), number);
	if (!first)
		ky_put_end(pf->trace, event->ts, track, 0, 0, 0);
	ky_put_begin(pf->trace, event->ts, track, ky_pf_literal(pf, "tcp_state"),
		     state_name(pf, event), 0);
}

static uint32_t napi_track(struct ky_pf *pf, uint32_t cpu)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_CPU,
					   .owner = cpu,
					   .name = ky_pf_track_name(pf, "Napi Gro Cpu %u", cpu),
					   .type = ky_pf_literal(pf, "cpu_napi_gro")};
	return ky_track(pf->trace, &spec);
}

static void napi_entry(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint32_t length = (uint32_t)event->values[KY_PF_NAPI_GRO_RECEIVE_ENTRY_LEN];
	ky_put_begin(pf->trace, event->ts, napi_track(pf, event->cpu),
		     ky_pf_literal(pf, "napi_gro"),
		     ky_pf_string_if(pf, event->texts[KY_PF_NAPI_GRO_RECEIVE_ENTRY_NAME]),
		     ky_pf_arg(pf, "len", KY_ARG_INT, length));
}

static void napi_exit(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const int64_t result = (int32_t)event->values[KY_PF_NAPI_GRO_RECEIVE_EXIT_RET];
	ky_put_end(pf->trace, event->ts, napi_track(pf, event->cpu), ky_pf_literal(pf, "napi_gro"),
		   0, ky_pf_arg(pf, "ret", KY_ARG_INT, (uint64_t)result));
}

static void freed(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	const uint64_t protocol = event->values[KY_PF_KFREE_SKB_PROTOCOL];
	if (protocol != ETHERNET_IP && protocol != ETHERNET_IPV6)
		return;
	const uint32_t track = ky_pf_track_of_counter(pf, "net_kfree_skb",
						      ky_pf_literal(pf, "Kfree Skb IP Prot"), 0);
	const uint32_t name = ky_pf_literal(pf, protocol == ETHERNET_IP ? "IP" : "IPV6");
	ky_put_sum(pf->trace, event->ts, track, 1, 1,
		   ky_pf_arg(pf, "protocol", KY_ARG_STRING, name));
}

const struct ky_pf_ftrace_handler ky_pf_devices_handlers[] = {
	{KY_PF_FTRACE_EVENT_CLOCK_ENABLE, clock_counter},
	{KY_PF_FTRACE_EVENT_CLOCK_DISABLE, clock_counter},
	{KY_PF_FTRACE_EVENT_CLOCK_SET_RATE, clock_counter},
	{KY_PF_FTRACE_EVENT_GPU_FREQUENCY, gpu_frequency},
	{KY_PF_FTRACE_EVENT_CROS_EC_SENSORHUB_DATA, sensor_hub},
	{KY_PF_FTRACE_EVENT_SCHED_CPU_UTIL_CFS, cpu_estimate},
	{KY_PF_FTRACE_EVENT_SUSPEND_RESUME, suspend_stage},
	{KY_PF_FTRACE_EVENT_SUSPEND_RESUME_MINIMAL, suspend_minimal},
	{KY_PF_FTRACE_EVENT_TRACING_MARK_WRITE, mark},
	{EVENT(SDE), mark},
	{EVENT(DPU), mark},
	{EVENT(G2D), mark},
	{EVENT(MALI), mark},
	{EVENT(LWIS), mark},
	{EVENT(SAMSUNG), mark},
	{KY_PF_FTRACE_EVENT_UFSHCD_COMMAND, ufs_command},
	{KY_PF_FTRACE_EVENT_UFSHCD_CLK_GATING, ufs_clock},
	{KY_PF_FTRACE_EVENT_F2FS_IOSTAT, f2fs_amount},
	{KY_PF_FTRACE_EVENT_F2FS_IOSTAT_LATENCY, f2fs_latency},
	{KY_PF_FTRACE_EVENT_NETIF_RECEIVE_SKB, received},
	{KY_PF_FTRACE_EVENT_NET_DEV_XMIT, transmitted},
	{KY_PF_FTRACE_EVENT_INET_SOCK_SET_STATE, socket_state},
	{KY_PF_FTRACE_EVENT_TCP_RETRANSMIT_SKB, tcp_retransmit},
	{KY_PF_FTRACE_EVENT_NAPI_GRO_RECEIVE_ENTRY, napi_entry},
	{KY_PF_FTRACE_EVENT_NAPI_GRO_RECEIVE_EXIT, napi_exit},
	{KY_PF_FTRACE_EVENT_KFREE_SKB, freed},
	{0, NULL},
};
