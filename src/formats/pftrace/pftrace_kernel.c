/* SPDX-License-Identifier: MIT */
/*
 * pftrace_kernel.c: what ftrace events mean: who runs where, tasks that come and go, markers, interrupts,
 * system calls, frequencies. Events without a meaning here are raw events and nothing more.
 */
#include "formats/ftrace/ftrace_event.h"
#include "formats/pftrace/pftrace_reader.h"
#include "model/kernel.h"

#include <stdio.h>

#define CLONE_THREAD 0x10000u

void ky_pf_take_apart(struct ky_proto_view message, struct ky_pf_parts *parts)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	*parts = (struct ky_pf_parts){0};
	while (ky_proto_next(&in, &field)) {
		if (field.id >= KY_PF_PARTS)
			continue;
		parts->values[field.id] = field.value;
		parts->texts[field.id] = field.view;
		parts->has |= 1u << field.id;
	}
}

uint32_t ky_pf_part_text(struct ky_pf *pf, const struct ky_pf_parts *parts, uint32_t field)
{
	return parts->texts[field].data ? ky_pf_string(pf, parts->texts[field]) : 0;
}

struct ky_pf_switch *ky_pf_last_switch(struct ky_pf *pf, uint32_t cpu)
{
	bool made;
	if (!KY_PF_GROW(pf, switches))
		return NULL;
	uint32_t *row = ky_pf_map_add(&pf->last_switch, cpu, &made);
	if (!row)
		return NULL;
	if (made) {
		*row = pf->switches_count;
		pf->switches[pf->switches_count++] = (struct ky_pf_switch){0};
	}
	return &pf->switches[*row];
}

uint32_t ky_pf_kernel_symbol(struct ky_pf *pf, const struct ky_pf_sequence *sequence, uint64_t iid)
{
	char address[24];
	const uint32_t name = ky_pf_text(sequence, KY_PF_KERNEL_SYMBOLS, iid);
	if (name)
		return name;
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)iid);
	return ky_string_z(pf->trace, address);
}

static void sched_switch(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	struct ky_pf_parts parts;
	ky_pf_take_apart(event->all, &parts);
	const struct ky_switch change = {
		.cpu = event->cpu,
		.prev_comm = ky_pf_part_text(pf, &parts, 1),
		.prev_tid = (int32_t)parts.values[2],
		.prev_priority = (int32_t)parts.values[3],
		.prev_state = ky_task_state(pf->trace, parts.values[4], pf->kernel_release),
		.next_comm = ky_pf_part_text(pf, &parts, 5),
		.next_tid = (int32_t)parts.values[6],
		.next_priority = (int32_t)parts.values[7],
	};
	struct ky_pf_switch *last = ky_pf_last_switch(pf, event->cpu);
	if (last)
		*last = (struct ky_pf_switch){change.next_tid, change.next_priority,
					      change.next_comm, true};
	ky_put_switch(pf->trace, event->ts, &change);
}

static uint32_t cpu_track(struct ky_pf *pf, const char *what, uint32_t cpu)
{
	char name[40];
	snprintf(name, sizeof(name), "%s Cpu %u", what, cpu);
	return ky_string_z(pf->trace, name);
}

static void irq_begin(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		      const struct ky_pf_parts *parts)
{
	pf->text.used = 0;
	ky_pf_buffer_append(&pf->text, "IRQ (", 5);
	ky_pf_buffer_append(&pf->text, (const char *)parts->texts[2].data, parts->texts[2].bytes);
	ky_pf_buffer_append(&pf->text, ")", 1);
	ky_put_cpu_begin(pf->trace, event->ts, event->cpu, cpu_track(pf, "Irq", event->cpu),
			 ky_pf_buffer_string(pf, &pf->text), 0);
}

static void irq_end(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts)
{
	ky_args_begin(pf->trace);
	ky_arg_string(pf->trace, ky_string_z(pf->trace, "ret"),
		      ky_string_z(pf->trace, parts->values[2] == 1 ? "handled" : "unhandled"));
	ky_put_cpu_end(pf->trace, event->ts, event->cpu, cpu_track(pf, "Irq", event->cpu),
		       ky_args_end(pf->trace));
}

static void softirq(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		    const struct ky_pf_parts *parts, bool begin)
{
	static const char *const names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
	const uint64_t vector = parts->values[1];
	const uint32_t track = cpu_track(pf, "SoftIrq", event->cpu);
	if (vector >= sizeof(names) / sizeof(*names))
		return;
	const uint32_t name = ky_string_z(pf->trace, names[vector]);
	if (begin) {
		ky_put_cpu_begin(pf->trace, event->ts, event->cpu, track, name, 0);
		return;
	}
	ky_args_begin(pf->trace);
	ky_arg_string(pf->trace, ky_string_z(pf->trace, "vec"), name);
	ky_put_cpu_end(pf->trace, event->ts, event->cpu, track, ky_args_end(pf->trace));
}

static uint32_t syscall_name(struct ky_pf *pf, uint64_t number)
{
	const char *known = ky_syscall_name(pf->syscalls, (int64_t)number);
	return known ? ky_string_z(pf->trace, known) : ky_pf_name(pf, "sys_%u", (unsigned)number);
}

static void sys_enter(struct ky_pf *pf, const struct ky_pf_ftrace *event)
{
	struct ky_proto_in in = ky_proto_open(event->all);
	struct ky_proto_field field;
	char key[24];
	uint64_t number = 0, value;
	uint32_t index = 0;
	ky_args_begin(pf->trace);
	while (ky_proto_next(&in, &field)) {
		struct ky_proto_items items = ky_proto_items(&field, false);
		if (field.id == 1)
			number = field.value;
		while (field.id == 2 && ky_proto_item(&items, &value)) {
			snprintf(key, sizeof(key), "args[%u]", index++);
			ky_arg_uint(pf->trace, ky_string_z(pf->trace, key), value);
		}
	}
	ky_put_tid_begin(pf->trace, event->ts, event->tid, 0, syscall_name(pf, number),
			 ky_args_end(pf->trace));
}

static void sys_exit(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		     const struct ky_pf_parts *parts)
{
	ky_args_begin(pf->trace);
	ky_arg_int(pf->trace, ky_string_z(pf->trace, "ret"), (int64_t)parts->values[2]);
	ky_put_tid_end(pf->trace, event->ts, event->tid, 0, syscall_name(pf, parts->values[1]),
		       ky_args_end(pf->trace));
}

/* Idle state 2^32 - 1 is none; the counter keeps the kernel's number. */
static void cpu_counter(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			const struct ky_pf_parts *parts, uint32_t name)
{
	ky_put_cpu_counter(pf->trace, event->ts, (uint32_t)parts->values[2], name,
			   (double)(uint32_t)parts->values[1]);
}

/* The line without its end. */
static void print(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		  const struct ky_pf_parts *parts)
{
	struct ky_proto_view text = parts->texts[2];
	while (text.bytes && text.data[text.bytes - 1] == '\n')
		text.bytes--;
	if (text.data)
		ky_put_marker(pf->trace, event->ts, event->tid, ky_pf_string(pf, text));
}

static void work(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
		 const struct ky_pf_ftrace *event, const struct ky_pf_parts *parts, bool begin)
{
	const uint32_t category = ky_string_z(pf->trace, "workqueue");
	if (begin)
		ky_put_tid_begin(pf->trace, event->ts, event->tid, category,
				 ky_pf_kernel_symbol(pf, sequence, parts->values[2]), 0);
	else
		ky_put_tid_end(pf->trace, event->ts, event->tid, category, 0, 0);
}

static void funcgraph(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
		      const struct ky_pf_ftrace *event, const struct ky_pf_parts *parts)
{
	if (event->tid == 0)
		return;
	if (event->id == 437)
		ky_put_tid_begin(pf->trace, event->ts, event->tid, 0,
				 ky_pf_kernel_symbol(pf, sequence, parts->values[2]), 0);
	else
		ky_put_tid_end(pf->trace, event->ts, event->tid, 0,
			       ky_pf_kernel_symbol(pf, sequence, parts->values[3]), 0);
}

static void binder(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		   const struct ky_pf_parts *parts)
{
	const struct ky_binder_call call = {
		.id = (int32_t)parts->values[1],
		.dest_node = (int32_t)parts->values[2],
		.dest_tgid = (int32_t)parts->values[3],
		.dest_tid = (int32_t)parts->values[4],
		.reply = parts->values[5] == 1,
		.code = ky_pf_name(pf, "0x%x Java Layer Dependent", (unsigned)parts->values[6]),
		.flags = (uint32_t)parts->values[7],
	};
	ky_put_binder_transaction(pf->trace, event->ts, event->tid, &call);
}

static void task_event(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
		       const struct ky_pf_ftrace *event, const struct ky_pf_parts *parts)
{
	struct ky_trace *trace = pf->trace;
	const int32_t one = (int32_t)parts->values[1], two = (int32_t)parts->values[2];
	switch (event->id) {
	case 18: /* sched_blocked_reason */
		ky_put_blocked(trace, event->ts, one, parts->values[3] != 0,
			       ky_pf_text(sequence, KY_PF_KERNEL_SYMBOLS, parts->values[2]));
		break;
	case 20: /* sched_waking */
		ky_put_waking(trace, event->ts, two, ky_pf_part_text(pf, parts, 1), event->tid);
		break;
	case 50: /* binder_transaction */
		binder(pf, event, parts);
		break;
	case 51: /* binder_transaction_received */
		ky_put_binder_received(trace, event->ts, event->tid, one);
		break;
	case 485: /* binder_command */
	case 486: /* binder_return */
		ky_put_binder_command(trace, event->ts, event->tid, (uint32_t)one);
		break;
	case 235: /* task_newtask */
		if (one)
			ky_put_task_new(trace, event->ts, event->tid, one,
					ky_pf_part_text(pf, parts, 2),
					(parts->values[3] & CLONE_THREAD) != 0);
		break;
	case 236: /* task_rename */
		ky_put_task_rename(trace, event->ts, one, ky_pf_part_text(pf, parts, 3));
		break;
	case 240: /* sched_process_free */
		ky_put_task_exit(trace, event->ts, two);
		break;
	default:
		if (!ky_pf_network_event(pf, event, parts) &&
		    !ky_pf_memory_event(pf, event, parts) &&
		    !ky_pf_storage_event(pf, event, parts) &&
		    !ky_pf_graphics_event(pf, event, parts))
			ky_pf_device_event(pf, event, parts);
	}
}

void ky_pf_kernel_event(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
			const struct ky_pf_ftrace *event)
{
	struct ky_pf_parts parts;
	if (event->id == 4) {
		sched_switch(pf, event);
		return;
	}
	ky_pf_take_apart(event->all, &parts);
	switch (event->id) {
	case 3:
		print(pf, event, &parts);
		break;
	case 11:
		cpu_counter(pf, event, &parts, pf->words[KY_PF_W_CPUFREQ]);
		break;
	case 13:
		cpu_counter(pf, event, &parts, pf->words[KY_PF_W_CPUIDLE]);
		break;
	case 24:
	case 25:
		softirq(pf, event, &parts, event->id == 24);
		break;
	case 36:
		irq_begin(pf, event, &parts);
		break;
	case 37:
		irq_end(pf, event, &parts);
		break;
	case 58: /* workqueue_execute_start */
	case 57: /* workqueue_execute_end */
		work(pf, sequence, event, &parts, event->id == 58);
		break;
	case 437: /* funcgraph_entry */
	case 438: /* funcgraph_exit */
		funcgraph(pf, sequence, event, &parts);
		break;
	case 329:
		sys_enter(pf, event);
		break;
	case 330:
		sys_exit(pf, event, &parts);
		break;
	default:
		task_event(pf, sequence, event, &parts);
	}
}
