/* SPDX-License-Identifier: MIT */
/*
 * pftrace_network.c: ftrace events of the network: how much each device sent and received, retransmissions,
 * the states of TCP sockets, receiving in batches, packets that were freed. Names of tracks are Perfetto's.
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

static uint32_t word(struct ky_pf *pf, const char *text)
{
	return ky_string_z(pf->trace, text);
}

/* A running sum of each device. */
static void traffic(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts, const char *type, const char *what)
{
	struct ky_trace *trace = pf->trace;
	const uint32_t bytes = (uint32_t)parts->values[1];
	const uint32_t name = ky_pf_name(pf, "%.*s %s KB", KY_PF_TEXT(parts->texts[2]), what);
	ky_args_begin(trace);
	ky_arg_uint(trace, word(pf, "cpu"), event->cpu);
	ky_arg_uint(trace, word(pf, "len"), bytes);
	ky_put_sum(trace, event->ts, ky_pf_counter_track(pf, type, name, 0), bytes, 1024,
		   ky_args_end(trace));
}

static void tcp_retransmit(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			   const struct ky_pf_parts *parts)
{
	const uint32_t track =
		ky_pf_slice_track(pf, "net_tcp_retransmit_skb", word(pf, "TCP Retransmit Skb"), 0);
	ky_put_instant(pf->trace, event->ts, track, word(pf, "tcp_event"),
		       ky_pf_name(pf, "sport=%u,dport=%u", (unsigned)parts->values[6],
				  (unsigned)parts->values[2]),
		       0);
}

static uint32_t state_name(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			   const struct ky_pf_parts *parts)
{
	const uint64_t state = parts->values[4];
	if (state == STATE_SYN_SENT)
		return ky_pf_name(pf, "%s(pid=%u)", tcp_states[state], (unsigned)event->tid);
	if (state == STATE_ESTABLISHED)
		return ky_pf_name(pf, "%s(sport=%u,dport=%u)", tcp_states[state],
				  (unsigned)parts->values[9], (unsigned)parts->values[2]);
	return word(pf, tcp_states[state]);
}

/* A socket is in one state after the other. */
static void socket_state(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			 const struct ky_pf_parts *parts)
{
	const uint64_t family = parts->values[3];
	if (parts->values[6] != PROTOCOL_TCP || (family != FAMILY_INET && family != FAMILY_INET6) ||
	    parts->values[4] >= TCP_STATES || parts->values[5] >= TCP_STATES)
		return;
	uint64_t *stream = ky_pf_known(pf, KY_PF_SOCKET, 0, parts->values[8], true);
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
	ky_put_begin(pf->trace, event->ts, track, word(pf, "tcp_state"),
		     state_name(pf, event, parts), 0);
}

static uint32_t napi_track(struct ky_pf *pf, uint32_t cpu)
{
	const struct ky_track_spec spec = {.kind = KY_TRACK_CPU,
					   .owner = cpu,
					   .name = ky_pf_name(pf, "Napi Gro Cpu %u", cpu),
					   .type = word(pf, "cpu_napi_gro")};
	return ky_track(pf->trace, &spec);
}

static void napi_entry(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		       const struct ky_pf_parts *parts)
{
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, word(pf, "len"), (uint32_t)parts->values[7]);
	ky_put_begin(pf->trace, event->ts, napi_track(pf, event->cpu), word(pf, "napi_gro"),
		     ky_pf_part_text(pf, parts, 10), ky_args_end(pf->trace));
}

static void napi_exit(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		      const struct ky_pf_parts *parts)
{
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, word(pf, "ret"), (int32_t)parts->values[1]);
	ky_put_end(pf->trace, event->ts, napi_track(pf, event->cpu), word(pf, "napi_gro"), 0,
		   ky_args_end(pf->trace));
}

static void freed(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		  const struct ky_pf_parts *parts)
{
	const uint64_t protocol = parts->values[2];
	if (protocol != ETHERNET_IP && protocol != ETHERNET_IPV6)
		return;
	const uint32_t track =
		ky_pf_counter_track(pf, "net_kfree_skb", word(pf, "Kfree Skb IP Prot"), 0);
	ky_args_begin(pf->trace);
	ky_arg_string(pf->trace, word(pf, "protocol"),
		      word(pf, protocol == ETHERNET_IP ? "IP" : "IPV6"));
	ky_put_sum(pf->trace, event->ts, track, 1, 1, ky_args_end(pf->trace));
}

bool ky_pf_network_event(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			 const struct ky_pf_parts *parts)
{
	switch (event->id) {
	case 360: /* netif_receive_skb */
		traffic(pf, event, parts, "net_receive", "Received");
		return true;
	case 361: /* net_dev_xmit; with a code it was not sent */
		if (parts->values[3] == 0)
			traffic(pf, event, parts, "net_transmit", "Transmitted");
		return true;
	case 362: /* inet_sock_set_state */
		socket_state(pf, event, parts);
		return true;
	case 363: /* tcp_retransmit_skb */
		tcp_retransmit(pf, event, parts);
		return true;
	case 365: /* napi_gro_receive_entry */
		napi_entry(pf, event, parts);
		return true;
	case 366: /* napi_gro_receive_exit */
		napi_exit(pf, event, parts);
		return true;
	case 367: /* kfree_skb */
		freed(pf, event, parts);
		return true;
	default:
		return false;
	}
}
