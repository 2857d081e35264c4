/* SPDX-License-Identifier: MIT */
/*
 * pftrace_network.c: ftrace events of the network: bytes that each device sent and received, retransmissions, the
 * states of TCP sockets, receiving in batches, freed packets. Track names are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

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
	const uint32_t name = ky_pf_name(pf, "%.*s %s KB", KY_PF_TEXT(device), what);
	ky_args_begin(trace);
	ky_arg_uint(trace, ky_pf_literal(pf, "cpu"), event->cpu);
	ky_arg_uint(trace, ky_pf_literal(pf, "len"), bytes);
	ky_put_sum(trace, event->ts, ky_pf_counter_track(pf, type, name, 0), bytes, 1024,
		   ky_args_end(trace));
}

static void received(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		     const struct ky_pf_parts *parts)
{
	traffic(pf, event, (uint32_t)parts->values[KY_PF_NETIF_RECEIVE_SKB_LEN],
		parts->texts[KY_PF_NETIF_RECEIVE_SKB_NAME], "net_receive", "Received");
}

/* A packet with a return code was not sent. */
static void transmitted(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			const struct ky_pf_parts *parts)
{
	if (!parts->values[KY_PF_NET_DEV_XMIT_RC])
		traffic(pf, event, (uint32_t)parts->values[KY_PF_NET_DEV_XMIT_LEN],
			parts->texts[KY_PF_NET_DEV_XMIT_NAME], "net_transmit", "Transmitted");
}

static void tcp_retransmit(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			   const struct ky_pf_parts *parts)
{
	const uint32_t track = ky_pf_slice_track(pf, "net_tcp_retransmit_skb",
						 ky_pf_literal(pf, "TCP Retransmit Skb"), 0);
	ky_put_instant(pf->trace, event->ts, track, ky_pf_literal(pf, "tcp_event"),
		       ky_pf_name(pf, "sport=%u,dport=%u",
				  (unsigned)parts->values[KY_PF_TCP_RETRANSMIT_SKB_SPORT],
				  (unsigned)parts->values[KY_PF_TCP_RETRANSMIT_SKB_DPORT]),
		       0);
}

static uint32_t state_name(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			   const struct ky_pf_parts *parts)
{
	const uint64_t state = parts->values[KY_PF_INET_SOCK_SET_STATE_NEWSTATE];
	if (state == STATE_SYN_SENT)
		return ky_pf_name(pf, "%s(pid=%u)", tcp_states[state], (unsigned)event->tid);
	if (state == STATE_ESTABLISHED)
		return ky_pf_name(pf, "%s(sport=%u,dport=%u)", tcp_states[state],
				  (unsigned)parts->values[KY_PF_INET_SOCK_SET_STATE_SPORT],
				  (unsigned)parts->values[KY_PF_INET_SOCK_SET_STATE_DPORT]);
	return ky_pf_literal(pf, tcp_states[state]);
}

/* A socket is in one state after the other. */
static void socket_state(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			 const struct ky_pf_parts *parts)
{
	const uint64_t family = parts->values[KY_PF_INET_SOCK_SET_STATE_FAMILY];
	if (parts->values[KY_PF_INET_SOCK_SET_STATE_PROTOCOL] != PROTOCOL_TCP ||
	    (family != FAMILY_INET && family != FAMILY_INET6) ||
	    parts->values[KY_PF_INET_SOCK_SET_STATE_NEWSTATE] >= TCP_STATES ||
	    parts->values[KY_PF_INET_SOCK_SET_STATE_OLDSTATE] >= TCP_STATES)
		return;
	uint64_t *stream = ky_pf_known(pf, KY_PF_SOCKET, 0,
				       parts->values[KY_PF_INET_SOCK_SET_STATE_SKADDR], true);
	if (!stream)
		return;
	const bool first = !*stream;
	if (first)
		*stream = ++pf->sockets;
	const uint32_t number = (uint32_t)*stream;
	const uint32_t track = ky_pf_slice_track(pf, "net_socket_set_state",
						 ky_pf_name(pf, "TCP stream#%u", number), number);
	if (!first)
		ky_put_end(pf->trace, event->ts, track, 0, 0, 0);
	ky_put_begin(pf->trace, event->ts, track, ky_pf_literal(pf, "tcp_state"),
		     state_name(pf, event, parts), 0);
}

static uint32_t napi_track(struct ky_pf *pf, uint32_t cpu)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_CPU,
					   .owner = cpu,
					   .name = ky_pf_name(pf, "Napi Gro Cpu %u", cpu),
					   .type = ky_pf_literal(pf, "cpu_napi_gro")};
	return ky_track(pf->trace, &spec);
}

static void napi_entry(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		       const struct ky_pf_parts *parts)
{
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, ky_pf_literal(pf, "len"),
		   (uint32_t)parts->values[KY_PF_NAPI_GRO_RECEIVE_ENTRY_LEN]);
	ky_put_begin(pf->trace, event->ts, napi_track(pf, event->cpu),
		     ky_pf_literal(pf, "napi_gro"),
		     ky_pf_part_text(pf, parts, KY_PF_NAPI_GRO_RECEIVE_ENTRY_NAME),
		     ky_args_end(pf->trace));
}

static void napi_exit(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		      const struct ky_pf_parts *parts)
{
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, ky_pf_literal(pf, "ret"),
		   (int32_t)parts->values[KY_PF_NAPI_GRO_RECEIVE_EXIT_RET]);
	ky_put_end(pf->trace, event->ts, napi_track(pf, event->cpu), ky_pf_literal(pf, "napi_gro"),
		   0, ky_args_end(pf->trace));
}

static void freed(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		  const struct ky_pf_parts *parts)
{
	const uint64_t protocol = parts->values[KY_PF_KFREE_SKB_PROTOCOL];
	if (protocol != ETHERNET_IP && protocol != ETHERNET_IPV6)
		return;
	const uint32_t track =
		ky_pf_counter_track(pf, "net_kfree_skb", ky_pf_literal(pf, "Kfree Skb IP Prot"), 0);
	ky_args_begin(pf->trace);
	ky_arg_string(pf->trace, ky_pf_literal(pf, "protocol"),
		      ky_pf_literal(pf, protocol == ETHERNET_IP ? "IP" : "IPV6"));
	ky_put_sum(pf->trace, event->ts, track, 1, 1, ky_args_end(pf->trace));
}

const struct ky_pf_ftrace_handler ky_pf_network_handlers[] = {
	{KY_PF_FTRACE_EVENT_NETIF_RECEIVE_SKB, received},
	{KY_PF_FTRACE_EVENT_NET_DEV_XMIT, transmitted},
	{KY_PF_FTRACE_EVENT_INET_SOCK_SET_STATE, socket_state},
	{KY_PF_FTRACE_EVENT_TCP_RETRANSMIT_SKB, tcp_retransmit},
	{KY_PF_FTRACE_EVENT_NAPI_GRO_RECEIVE_ENTRY, napi_entry},
	{KY_PF_FTRACE_EVENT_NAPI_GRO_RECEIVE_EXIT, napi_exit},
	{KY_PF_FTRACE_EVENT_KFREE_SKB, freed},
	{0, NULL},
};
