/* SPDX-License-Identifier: MIT */
/*
 * test_pftrace_devices.c: what Perfetto protobuf says of devices and of other kernels: tasks one at a time, disks,
 * network, power, GPUs, memory, system calls.
 */
#include "formats/load.h"
#include "proto_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct proto file;
static struct proto packet;
static struct proto part;
static struct ky_trace *trace;

/* Puts a packet with what is in body. */
static void put_packet(uint64_t ts, uint32_t id, const struct proto *body)
{
	packet.used = 0;
	proto_number(&packet, 10, 1);
	proto_number(&packet, 8, ts);
	proto_message(&packet, id, body);
	proto_message(&file, 1, &packet);
}

/* Puts an ftrace event with what is in part, in a bundle of its own. */
static void put_ftrace(uint64_t cpu, uint64_t ts, uint64_t tid, uint32_t id)
{
	static struct proto event, bundle;
	event.used = bundle.used = 0;
	proto_number(&event, 1, ts);
	proto_number(&event, 2, tid);
	proto_message(&event, id, &part);
	proto_number(&bundle, 1, cpu);
	proto_message(&bundle, 2, &event);
	put_packet(1, 1, &bundle);
	part.used = 0;
}

static void put_uname(const char *release, const char *machine)
{
	static struct proto info;
	part.used = info.used = 0;
	proto_text(&part, 3, release);
	proto_text(&part, 4, machine);
	proto_message(&info, 1, &part);
	put_packet(1, 45, &info);
	part.used = 0;
}

static void read_file(void)
{
	char message[KY_MESSAGE_BYTES];
	if (ky_load_memory(&trace, file.data, file.used, &ky_reader_pftrace, message))
		fail_msg("%s", message);
}

static int begin_file(void **state)
{
	(void)state;
	file.used = part.used = 0;
	trace = NULL;
	return 0;
}

static int end_file(void **state)
{
	(void)state;
	ky_trace_close(&trace);
	return 0;
}

static const char *text(uint32_t string)
{
	return ky_text_of(trace, string);
}

static void assert_counter(uint32_t row, int64_t ts, const char *name, double value)
{
	assert_true(row < trace->counters.rows.count);
	assert_int_equal(trace->counters.ts[row], ts);
	assert_string_equal(text(trace->tracks.name[trace->counters.track[row]]), name);
	assert_true(trace->counters.value[row] == value);
}

static bool has_problem(const char *name)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strcmp(text(trace->problems.name[i]), name) == 0)
			return true;
	return false;
}

/* ---- tasks, one at a time ---- */

enum { RUNNING = 3, SLEEPS = 4, DEAD = 7 };

static void put_task(uint64_t ts, uint64_t tid, uint64_t now)
{
	part.used = 0;
	proto_number(&part, 1, 2);
	proto_text(&part, 2, "task");
	proto_number(&part, 3, tid);
	proto_number(&part, 4, now);
	put_packet(ts, 117, &part);
}

static void a_switch_is_two_events_in_any_order(void **state)
{
	(void)state;
	put_task(100, 10, RUNNING);
	put_task(200, UINT64_C(0x100000014), RUNNING);
	put_task(200, 10, SLEEPS);
	put_task(300, UINT64_C(0x100000014), SLEEPS);
	put_task(300, 10, RUNNING);
	read_file();
	assert_int_equal(trace->sched.rows.count, 3);
	assert_int_equal(trace->sched.cpu[0], 2);
	assert_int_equal(trace->sched.dur[0], 100);
	assert_string_equal(text(trace->sched.end_state[0]), "S");
	assert_int_equal(trace->threads.tid[trace->sched.thread[1]], 0x100000014);
	assert_int_equal(trace->sched.dur[1], 100);
	assert_string_equal(text(trace->sched.end_state[1]), "S");
	assert_int_equal(trace->sched.dur[2], -1);
	assert_int_equal(trace->thread_states.rows.count, 5);
}

static void tasks_that_are_dead_do_not_run(void **state)
{
	(void)state;
	put_task(100, 10, RUNNING);
	put_task(150, 10, RUNNING);
	put_task(200, 10, DEAD);
	put_task(300, 10, RUNNING);
	put_task(300, 10, 99);
	read_file();
	assert_int_equal(trace->sched.rows.count, 1);
	assert_int_equal(trace->sched.dur[0], 100);
	assert_true(has_problem("generic_task_state_invalid_order"));
	assert_true(has_problem("task_state_invalid"));
}

/* ---- counters ---- */

static void put_received(uint64_t cpu, uint64_t ts, uint64_t bytes)
{
	part.used = 0;
	proto_number(&part, 1, bytes);
	proto_text(&part, 2, "eth0");
	put_ftrace(cpu, ts, 5, 360);
}

static void traffic_is_summed_in_the_order_of_time(void **state)
{
	(void)state;
	put_received(0, 300, 1024);
	put_received(1, 100, 2048);
	put_received(1, 200, 1000);
	read_file();
	assert_int_equal(trace->counters.rows.count, 3);
	assert_counter(0, 100, "eth0 Received KB", 2);
	assert_counter(1, 200, "eth0 Received KB", 2);
	assert_counter(2, 300, "eth0 Received KB", 3);
}

static void disks_have_what_they_did_since_the_last_packet(void **state)
{
	(void)state;
	static struct proto stats;
	for (uint64_t i = 1; i <= 2; i++) {
		part.used = stats.used = 0;
		proto_text(&part, 1, "sda");
		proto_number(&part, 2, 4096 * i);
		proto_number(&part, 3, 500 * i);
		proto_message(&stats, 13, &part);
		put_packet(1000 * i, 7, &stats);
	}
	read_file();
	assert_int_equal(trace->counters.rows.count, 8);
	assert_counter(0, 2000, "diskstat.[sda].read_amount", 2);
	assert_counter(1, 2000, "diskstat.[sda].read_throughput", 4);
	assert_counter(7, 2000, "diskstat.[sda].flush_time", 0);
}

static void batteries_have_their_power(void **state)
{
	(void)state;
	proto_number(&part, 3, (uint64_t)-2000000);
	proto_text(&part, 5, "BAT0");
	proto_number(&part, 6, 30000000);
	proto_number(&part, 7, 12000000);
	put_packet(10, 38, &part);
	read_file();
	assert_int_equal(trace->counters.rows.count, 4);
	assert_counter(0, 10, "batt.BAT0.charge_uah", 2500000);
	assert_counter(1, 10, "batt.BAT0.current_ua", -2000000);
	assert_counter(2, 10, "batt.BAT0.voltage_uv", 12000000);
	assert_counter(3, 10, "batt.BAT0.power_mw", 24000);
}

static void rails_may_be_described_after_their_energy(void **state)
{
	(void)state;
	static struct proto rails;
	rails.used = 0;
	proto_number(&part, 1, 4);
	proto_number(&part, 3, 77);
	proto_message(&rails, 2, &part);
	proto_number(&part, 1, 5);
	proto_message(&rails, 2, &part);
	put_packet(10, 40, &rails);
	part.used = rails.used = 0;
	proto_number(&part, 1, 4);
	proto_text(&part, 2, "S2M_VDD_CPUCL2");
	proto_message(&rails, 1, &part);
	put_packet(20, 40, &rails);
	read_file();
	assert_int_equal(trace->counters.rows.count, 1);
	assert_counter(0, 10, "power.rails.cpu.big", 77);
	assert_true(has_problem("power_rail_unknown_index"));
}

static void gpu_counters_are_of_the_time_before(void **state)
{
	(void)state;
	static struct proto event, descriptor;
	event.used = descriptor.used = 0;
	proto_number(&part, 1, 9);
	proto_text(&part, 2, "busy");
	proto_message(&descriptor, 1, &part);
	proto_message(&event, 1, &descriptor);
	put_packet(1, 52, &event);
	for (uint64_t i = 1; i <= 2; i++) {
		part.used = event.used = 0;
		proto_number(&part, 1, 9);
		proto_number(&part, 2, 10 * i);
		proto_message(&event, 2, &part);
		put_packet(100 * i, 52, &event);
	}
	read_file();
	assert_int_equal(trace->counters.rows.count, 2);
	assert_counter(0, 100, "busy", 20);
	assert_counter(1, 200, "busy", 0);
}

/* ---- slices ---- */

static void put_drm(uint64_t ts, uint32_t id, uint64_t job)
{
	part.used = 0;
	proto_number(&part, 2, 1000 + job);
	proto_number(&part, 4, job);
	proto_text(&part, 6, "gfx");
	put_ftrace(0, ts, 40, id);
}

static void put_drm_done(uint64_t ts, uint64_t job)
{
	part.used = 0;
	proto_number(&part, 1, 1000 + job);
	put_ftrace(0, ts, 0, 413);
}

static void jobs_of_a_ring_follow_each_other(void **state)
{
	(void)state;
	put_drm(10, 411, 1);
	put_drm(20, 411, 2);
	put_drm(30, 412, 1);
	put_drm(40, 412, 2);
	put_drm_done(50, 1);
	put_drm_done(70, 2);
	put_drm_done(80, 3);
	read_file();
	assert_int_equal(trace->slices.rows.count, 4);
	assert_string_equal(text(trace->slices.name[0]), "drm_sched_job_queue");
	assert_int_equal(trace->slices.ts[2], 30);
	assert_int_equal(trace->slices.dur[2], 20);
	assert_int_equal(trace->slices.ts[3], 50);
	assert_int_equal(trace->slices.dur[3], 20);
	assert_string_equal(text(trace->tracks.name[trace->slices.track[3]]), "sched-gfx");
	assert_int_equal(trace->flows.rows.count, 2);
	assert_int_equal(trace->flows.out[1], 1);
	assert_int_equal(trace->flows.in[1], 3);
}

static void put_dma(uint64_t ts, uint64_t inode, int64_t bytes)
{
	part.used = 0;
	proto_number(&part, 1, inode);
	proto_number(&part, 2, (uint64_t)bytes);
	proto_number(&part, 3, 8192);
	put_ftrace(0, ts, 40, 351);
}

static void buffers_that_overlap_have_tracks_of_their_own(void **state)
{
	(void)state;
	put_dma(10, 1, 4096);
	put_dma(20, 2, 8192);
	put_dma(30, 1, -4096);
	put_dma(40, 2, -8192);
	put_dma(50, 3, -1);
	read_file();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_string_equal(text(trace->slices.name[0]), "4 kB");
	assert_int_equal(trace->slices.dur[0], 20);
	assert_int_equal(trace->slices.dur[1], 20);
	assert_int_not_equal(trace->slices.track[0], trace->slices.track[1]);
	assert_true(has_problem("misplaced_end_event"));
	assert_int_equal(trace->counters.rows.count, 10);
}

static void put_print(uint64_t ts, const char *line)
{
	part.used = 0;
	proto_text(&part, 2, line);
	put_ftrace(0, ts, 40, 3);
}

static void processes_that_are_killed_have_an_instant(void **state)
{
	(void)state;
	put_print(10, "C|40|kill_one_process|77");
	put_print(20, "B|40|lmk,78,2,900");
	put_print(30, "E|40");
	put_print(40, "B|40|lmk,many");
	put_print(50, "E|40");
	read_file();
	assert_int_equal(trace->slices.rows.count, 4);
	assert_string_equal(text(trace->slices.name[0]), "mem.lmk");
	const uint32_t owner = trace->tracks.owner[trace->slices.track[0]];
	assert_int_equal(trace->processes.pid[owner], 77);
	assert_string_equal(text(trace->slices.name[2]), "mem.lmk");
	assert_counter(1, 20, "oom_score_adj", 900);
}

static void put_syscall(uint64_t ts, uint32_t id, uint64_t number)
{
	part.used = 0;
	proto_number(&part, 1, number);
	put_ftrace(0, ts, 40, id);
}

static void system_calls_have_the_names_of_their_machine(void **state)
{
	(void)state;
	put_syscall(10, 329, 63);
	put_syscall(20, 330, 63);
	put_syscall(30, 329, 9999);
	put_syscall(40, 330, 9999);
	put_uname("6.1.0", "aarch64");
	read_file();
	assert_int_equal(trace->slices.rows.count, 2);
	assert_string_equal(text(trace->slices.name[0]), "sys_read");
	assert_int_equal(trace->slices.dur[0], 10);
	assert_string_equal(text(trace->slices.name[1]), "sys_9999");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_file, end_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_switch_is_two_events_in_any_order),
		TEST(tasks_that_are_dead_do_not_run),
		TEST(traffic_is_summed_in_the_order_of_time),
		TEST(disks_have_what_they_did_since_the_last_packet),
		TEST(batteries_have_their_power),
		TEST(rails_may_be_described_after_their_energy),
		TEST(gpu_counters_are_of_the_time_before),
		TEST(jobs_of_a_ring_follow_each_other),
		TEST(buffers_that_overlap_have_tracks_of_their_own),
		TEST(processes_that_are_killed_have_an_instant),
		TEST(system_calls_have_the_names_of_their_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
