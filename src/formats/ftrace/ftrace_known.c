/* SPDX-License-Identifier: MIT */
/*
 * ftrace_known.c: the kernel events that are more than an event: scheduling, tasks, interrupts, frequencies,
 * system calls, functions. Names of tracks are Perfetto's. A known event whose fields are not as they
 * should be stays a raw event, and is counted.
 */
#include "formats/ftrace/ftrace_event.h"
#include "formats/ftrace/syscall_names.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_tid(int64_t number)
{
	return number >= 0 && number <= INT32_MAX;
}

static bool tid_field(const struct ky_ftrace_event *event, const char *key, int32_t *tid)
{
	int64_t number;
	if (!ky_ftrace_number(event, key, &number) || !is_tid(number))
		return false;
	*tid = (int32_t)number;
	return true;
}

static int32_t int_field(const struct ky_ftrace_event *event, const char *key)
{
	int64_t number = 0;
	(void)ky_ftrace_number(event, key, &number);
	return (int32_t)number;
}

/* ---- scheduling ---- */

/* Letters as the kernel prints them, in the bits of kernels before 4.14. */
static uint32_t state_of_letters(struct ky_trace *trace, const char *text, size_t bytes)
{
	static const char letters[] = "SDTtXZxKWPN";
	uint64_t mask = 0;
	if (bytes && text[0] == 'R')
		return ky_string_z(trace, bytes == 2 && text[1] == '+' ? "R+" : "R");
	for (size_t i = 0; i < bytes; i++) {
		const char *letter = memchr(letters, text[i], sizeof(letters) - 1);
		if (text[i] == 'I')
			mask |= 0x402;
		else if (letter)
			mask |= 1u << (letter - letters);
		else if (text[i] != '|')
			return 0;
	}
	return mask ? ky_task_state(trace, mask, 0) : 0;
}

static uint32_t prev_state(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	const struct ky_ftrace_field *field = ky_ftrace_find(event, "prev_state");
	if (!field)
		return 0;
	return field->kind == KY_FTRACE_TEXT
		       ? state_of_letters(trace, field->text, field->bytes)
		       : ky_task_state(trace, (uint64_t)field->number, event->release);
}

static bool on_switch(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	struct ky_switch info = {.cpu = event->cpu};
	if (!tid_field(event, "prev_pid", &info.prev_tid) ||
	    !tid_field(event, "next_pid", &info.next_tid))
		return false;
	info.prev_priority = int_field(event, "prev_prio");
	info.next_priority = int_field(event, "next_prio");
	info.prev_comm = ky_ftrace_string(trace, event, "prev_comm");
	info.next_comm = ky_ftrace_string(trace, event, "next_comm");
	info.prev_state = prev_state(trace, event);
	if (!event->watched || !ky_ftrace_watched_switch(event->watched, event->ts, &info))
		ky_put_switch(trace, event->ts, &info);
	return true;
}

static bool on_waking(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int32_t tid;
	if (!tid_field(event, "pid", &tid))
		return false;
	const uint32_t comm = ky_ftrace_string(trace, event, "comm");
	if (!event->watched ||
	    !ky_ftrace_watched_waking(event->watched, event->ts, tid, comm, event->tid))
		ky_put_waking(trace, event->ts, tid, comm, event->tid);
	return true;
}

static bool on_blocked(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int32_t tid;
	if (!tid_field(event, "pid", &tid))
		return false;
	int32_t io_wait = int_field(event, "iowait") | int_field(event, "io_wait");
	ky_put_blocked(trace, event->ts, tid, io_wait != 0,
		       ky_ftrace_string(trace, event, "caller"));
	return true;
}

/* ---- tasks ---- */

#define CLONE_THREAD_FLAG 0x10000

static bool on_new_task(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int32_t tid;
	int64_t flags = 0;
	const struct ky_ftrace_field *field = ky_ftrace_find(event, "clone_flags");
	if (!tid_field(event, "pid", &tid) || !field)
		return false;
	flags = field->number;
	/* Text has them in hexadecimal and without a prefix. */
	if (field->text && field->bytes < 20) {
		char digits[20];
		memcpy(digits, field->text, field->bytes);
		digits[field->bytes] = '\0';
		flags = (int64_t)strtoull(digits, NULL, 16);
	}
	if (event->watched)
		ky_ftrace_watched_add(event->watched, tid);
	ky_put_task_new(trace, event->ts, event->tid, tid, ky_ftrace_string(trace, event, "comm"),
			(flags & CLONE_THREAD_FLAG) != 0);
	return true;
}

static bool on_rename(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int32_t tid;
	if (!tid_field(event, "pid", &tid))
		return false;
	ky_put_task_rename(trace, event->ts, tid, ky_ftrace_string(trace, event, "newcomm"));
	return true;
}

static bool on_free(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int32_t tid;
	if (!tid_field(event, "pid", &tid))
		return false;
	ky_put_task_exit(trace, event->ts, tid);
	return true;
}

/* ---- texts ---- */

static bool on_marker(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	if (event->text)
		ky_put_marker_text(trace, event->ts, event->tid, event->text, event->text_bytes);
	return event->text != NULL;
}

/* ---- counters ---- */

static bool cpu_counter(struct ky_trace *trace, const struct ky_ftrace_event *event,
			const char *name)
{
	int64_t cpu;
	int64_t state;
	if (!ky_ftrace_number(event, "cpu_id", &cpu) || cpu < 0 || cpu > UINT16_MAX ||
	    !ky_ftrace_number(event, "state", &state))
		return false;
	ky_put_cpu_counter(trace, event->ts, (uint32_t)cpu, ky_string_z(trace, name),
			   (double)state);
	return true;
}

static bool on_limits(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	static const struct {
		const char *keys[2];
		const char *name;
	} limits[] = {{{"max", "max_freq"}, "Max"}, {{"min", "min_freq"}, "Min"}};
	int64_t cpu;
	int64_t value;
	if (!ky_ftrace_number(event, "cpu_id", &cpu) || cpu < 0 || cpu > UINT16_MAX)
		return false;
	for (size_t i = 0; i < 2; i++) {
		if (!ky_ftrace_number(event, limits[i].keys[0], &value) &&
		    !ky_ftrace_number(event, limits[i].keys[1], &value))
			continue;
		char name[64];
		int bytes = snprintf(name, sizeof(name), "Cpu %u %s Freq Limit", (unsigned)cpu,
				     limits[i].name);
		ky_put_cpu_counter(trace, event->ts, (uint32_t)cpu,
				   ky_string(trace, name, (size_t)bytes), (double)value);
	}
	return true;
}

/* Put a counter of the machine: the fields of its name and value, and a suffix that describes it. */
static bool device_counter(struct ky_trace *trace, const struct ky_ftrace_event *event,
			   const char *const words[3])
{
	char name[256];
	int64_t value;
	const struct ky_ftrace_field *field = ky_ftrace_find(event, words[0]);
	if (!field || !field->text || field->bytes > 200 ||
	    !ky_ftrace_number(event, words[1], &value))
		return false;
	int bytes =
		snprintf(name, sizeof(name), "%.*s %s", (int)field->bytes, field->text, words[2]);
	uint32_t track = ky_track_counter(trace, KY_TRACK_COUNTER, KY_NONE,
					  ky_string(trace, name, (size_t)bytes));
	ky_put_counter(trace, event->ts, track, (double)value);
	return true;
}

/* ---- interrupts ---- */

static bool on_irq_entry(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	char text[256];
	const struct ky_ftrace_field *name = ky_ftrace_find(event, "name");
	if (!name || !name->text)
		return false;
	int shown = name->bytes < 200 ? (int)name->bytes : 200;
	int bytes = snprintf(text, sizeof(text), "IRQ (%.*s)", shown, name->text);
	ky_put_cpu_begin(trace, event->ts, event->cpu, "Irq", ky_string(trace, text, (size_t)bytes),
			 0);
	return true;
}

static bool on_irq_exit(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	const struct ky_ftrace_field *ret = ky_ftrace_find(event, "ret");
	bool handled = ret && (ret->kind == KY_FTRACE_TEXT ? ret->bytes == 7 : ret->number == 1);
	ky_args_begin(trace);
	ky_arg_string(trace, ky_string_z(trace, "ret"),
		      ky_string_z(trace, handled ? "handled" : "unhandled"));
	ky_put_cpu_end(trace, event->ts, event->cpu, "Irq", ky_args_end(trace));
	return true;
}

static bool on_softirq_entry(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int64_t vec;
	const char *const name =
		ky_ftrace_number(event, "vec", &vec) ? ky_softirq_name((uint64_t)vec) : NULL;
	if (!name)
		return false;
	ky_put_cpu_begin(trace, event->ts, event->cpu, "SoftIrq", ky_string_z(trace, name), 0);
	return true;
}

static bool on_softirq_exit(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int64_t vec;
	if (!ky_ftrace_number(event, "vec", &vec))
		return false;
	ky_args_begin(trace);
	ky_arg_int(trace, ky_string_z(trace, "vec"), vec);
	ky_put_cpu_end(trace, event->ts, event->cpu, "SoftIrq", ky_args_end(trace));
	return true;
}

/* ---- spans of threads ---- */

static bool on_work_begin(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	uint32_t name = ky_ftrace_string(trace, event, "function");
	if (name)
		ky_put_tid_begin(trace, event->ts, event->tid, ky_string_z(trace, "workqueue"),
				 name, 0);
	return name != 0;
}

static bool on_work_end(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	ky_put_tid_end(trace, event->ts, event->tid, ky_string_z(trace, "workqueue"), 0, 0);
	return true;
}

/* The generic table is that of arm64 and RISC-V. */
const char *ky_ftrace_syscall_name(uint32_t machine, int64_t number)
{
	static const char *const x86_64[] = {KY_SYSCALLS_X86_64};
	static const char *const generic[] = {KY_SYSCALLS_GENERIC};
	const uint64_t at = (uint64_t)number;
	if (machine == EM_X86_64)
		return at < sizeof(x86_64) / sizeof(x86_64[0]) ? x86_64[at] : NULL;
	if (machine == EM_AARCH64 || machine == EM_RISCV)
		return at < sizeof(generic) / sizeof(generic[0]) ? generic[at] : NULL;
	return NULL;
}

static bool on_syscall(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	const bool enter = event->name_bytes == strlen("sys_enter");
	int64_t number;
	if (!ky_ftrace_number(event, "id", &number) && !ky_ftrace_number(event, "NR", &number))
		return false;
	char unknown[32];
	const char *name = ky_ftrace_syscall_name(event->machine, number);
	if (!name) {
		snprintf(unknown, sizeof(unknown), "sys_%lld", (long long)number);
		name = unknown;
	}
	if (enter && strcmp(name, "sys_rt_sigreturn") == 0) {
		/* It does not return to where it was called. */
		ky_put_tid_instant(trace, event->ts, event->tid, 0, ky_string_z(trace, name), 0);
		return true;
	}
	if (enter) {
		ky_put_tid_begin(trace, event->ts, event->tid, 0, ky_string_z(trace, name), 0);
		return true;
	}
	int64_t result;
	ky_args_begin(trace);
	if (ky_ftrace_number(event, "ret", &result))
		ky_arg_int(trace, ky_string_z(trace, "ret"), result);
	ky_put_tid_end(trace, event->ts, event->tid, 0, ky_string_z(trace, name),
		       ky_args_end(trace));
	return true;
}

static bool on_graph(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	const bool entry = event->name_bytes == strlen("funcgraph_entry");
	const uint32_t name = ky_ftrace_string(trace, event, "func");
	if (name && entry)
		ky_put_tid_begin(trace, event->ts, event->tid, 0, name, 0);
	else if (name)
		ky_put_tid_end(trace, event->ts, event->tid, 0, name, 0);
	return name != 0;
}

static bool on_function(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	uint32_t name = ky_ftrace_string(trace, event, "ip");
	uint32_t caller = ky_ftrace_string(trace, event, "parent_ip");
	if (!name)
		return false;
	ky_args_begin(trace);
	if (caller)
		ky_arg_string(trace, ky_string_z(trace, "parent"), caller);
	ky_put_tid_instant(trace, event->ts, event->tid, 0, name, ky_args_end(trace));
	return true;
}

/* ---- binder: fields of text first, of records second ---- */

static bool either(const struct ky_ftrace_event *event, const char *text, const char *record,
		   int64_t *number)
{
	return ky_ftrace_number(event, text, number) || ky_ftrace_number(event, record, number);
}

static bool on_binder(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int64_t id;
	int64_t node;
	int64_t tgid;
	int64_t tid;
	int64_t code = 0;
	if (!either(event, "transaction", "debug_id", &id) ||
	    !either(event, "dest_node", "target_node", &node) ||
	    !either(event, "dest_proc", "to_proc", &tgid) ||
	    !either(event, "dest_thread", "to_thread", &tid))
		return false;
	(void)ky_ftrace_number(event, "code", &code);
	const struct ky_binder_call call = {
		.id = (int32_t)id,
		.dest_node = (int32_t)node,
		.dest_tgid = (int32_t)tgid,
		.dest_tid = (int32_t)tid,
		.reply = int_field(event, "reply") == 1,
		.flags = (uint32_t)int_field(event, "flags"),
		.code = ky_string_format(trace, "0x%llx Java Layer Dependent",
					 (unsigned long long)code),
	};
	ky_put_binder_transaction(trace, event->ts, event->tid, &call);
	return true;
}

static bool on_binder_received(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int64_t id;
	if (!either(event, "transaction", "debug_id", &id))
		return false;
	ky_put_binder_received(trace, event->ts, event->tid, (int32_t)id);
	return true;
}

static bool on_binder_command(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	int64_t command;
	if (!ky_ftrace_number(event, "cmd", &command))
		return false;
	ky_put_binder_command(trace, event->ts, event->tid, (uint32_t)command);
	return true;
}

static const struct known {
	const char *name;
	bool (*apply)(struct ky_trace *trace, const struct ky_ftrace_event *event);
	/* or a counter: of the CPU, by its name; of a device, by the fields of its name and value, and a suffix */
	const char *cpu_counter;
	const char *device_counter[3];
} knowns[] = {
	/* In the order of their bytes. */
	{"0", .apply = on_marker},
	{"binder_command", .apply = on_binder_command},
	{"binder_return", .apply = on_binder_command},
	{"binder_transaction", .apply = on_binder},
	{"binder_transaction_received", .apply = on_binder_received},
	{"bprint", .apply = on_marker},
	{"bputs", .apply = on_marker},
	{"cdev_update", .device_counter = {"type", "target", "Cooling Device"}},
	{"clock_disable", .device_counter = {"name", "state", "State"}},
	{"clock_enable", .device_counter = {"name", "state", "State"}},
	{"clock_set_rate", .device_counter = {"name", "state", "Frequency"}},
	{"cpu_frequency", .cpu_counter = "cpufreq"},
	{"cpu_frequency_limits", .apply = on_limits},
	{"cpu_idle", .cpu_counter = "cpuidle"},
	{"funcgraph_entry", .apply = on_graph},
	{"funcgraph_exit", .apply = on_graph},
	{"function", .apply = on_function},
	{"irq_handler_entry", .apply = on_irq_entry},
	{"irq_handler_exit", .apply = on_irq_exit},
	{"print", .apply = on_marker},
	{"sched_blocked_reason", .apply = on_blocked},
	{"sched_process_free", .apply = on_free},
	{"sched_switch", .apply = on_switch},
	{"sched_wakeup", .apply = on_waking},
	{"sched_wakeup_new", .apply = on_waking},
	{"sched_waking", .apply = on_waking},
	{"softirq_entry", .apply = on_softirq_entry},
	{"softirq_exit", .apply = on_softirq_exit},
	{"sys_enter", .apply = on_syscall},
	{"sys_exit", .apply = on_syscall},
	{"task_newtask", .apply = on_new_task},
	{"task_rename", .apply = on_rename},
	{"thermal_temperature", .device_counter = {"thermal_zone", "temp", "Temperature"}},
	{"tracing_mark_write", .apply = on_marker},
	{"workqueue_execute_end", .apply = on_work_end},
	{"workqueue_execute_start", .apply = on_work_begin},
};

static int compare(const void *key, const void *item)
{
	const struct ky_ftrace_event *event = key;
	const char *name = ((const struct known *)item)->name;
	size_t bytes = strlen(name);
	int order = memcmp(event->name_text, name,
			   event->name_bytes < bytes ? event->name_bytes : bytes);
	return order ? order : (event->name_bytes > bytes) - (event->name_bytes < bytes);
}

/* Events of system calls of their own: sys_enter_read, sys_exit_read. */
static bool named_syscall(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	static const char enter[] = "sys_enter_";
	static const char leave[] = "sys_exit_";
	bool enters = event->name_bytes > 10 && memcmp(event->name_text, enter, 10) == 0;
	bool leaves = event->name_bytes > 9 && memcmp(event->name_text, leave, 9) == 0;
	if ((!enters && !leaves) || event->name_bytes > 60)
		return false;
	size_t skip = enters ? 10 : 9;
	uint32_t name = ky_string_format(trace, "sys_%.*s", (int)(event->name_bytes - skip),
					 event->name_text + skip);
	if (enters)
		ky_put_tid_begin(trace, event->ts, event->tid, 0, name, 0);
	else
		ky_put_tid_end(trace, event->ts, event->tid, 0, name, 0);
	return true;
}

void ky_ftrace_known(struct ky_trace *trace, const struct ky_ftrace_event *event)
{
	const struct known *known = bsearch(event, knowns, sizeof(knowns) / sizeof(knowns[0]),
					    sizeof(knowns[0]), compare);
	if (!known) {
		(void)named_syscall(trace, event);
		return;
	}
	const bool is_whole = known->apply ? known->apply(trace, event)
			      : known->cpu_counter
				      ? cpu_counter(trace, event, known->cpu_counter)
				      : device_counter(trace, event, known->device_counter);
	if (!is_whole)
		ky_problem(trace, "ftrace_event_fields", KY_ERROR, KY_NO_PLACE,
			   "%s without the fields that it should have", known->name);
}
