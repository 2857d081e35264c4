/* SPDX-License-Identifier: MIT */
/*
 * test_pftrace_system.c: what Perfetto protobuf says of the system: ftrace bundles, the process tree, counters of
 * processes, samples; and packets that are compressed.
 */
#include "formats/load.h"
#include "proto_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

enum { CLEARED = 1, NEEDS = 2 };

static struct proto file;
static struct proto packet;
static struct proto bundle;
static struct proto part;
static struct ky_trace *trace;

static void start_packet(uint64_t flags, uint64_t ts)
{
	packet.used = 0;
	proto_number(&packet, 10, 1);
	if (flags)
		proto_number(&packet, 13, flags);
	proto_number(&packet, 8, ts);
}

static void end_packet(void)
{
	proto_message(&file, 1, &packet);
}

static void read_bytes(const void *data, size_t bytes)
{
	char message[KY_MESSAGE_BYTES];
	if (ky_load_memory(&trace, data, bytes, &ky_reader_pftrace, message))
		fail_msg("%s", message);
}

static void read_file(void)
{
	read_bytes(file.data, file.used);
}

static int begin_file(void **state)
{
	(void)state;
	file.used = 0;
	trace = NULL;
	return 0;
}

static int end_file(void **state)
{
	(void)state;
	ky_trace_close(&trace);
	return 0;
}

static void start_bundle(uint64_t cpu)
{
	bundle.used = 0;
	proto_number(&bundle, 1, cpu);
}

static void put_bundle(void)
{
	start_packet(0, 1);
	proto_message(&packet, 1, &bundle);
	end_packet();
}

/* What is in part is the event's own message. */
static void add_ftrace(uint64_t ts, uint64_t tid, uint32_t id)
{
	static struct proto event;
	event.used = 0;
	proto_number(&event, 1, ts);
	proto_number(&event, 2, tid);
	proto_message(&event, id, &part);
	proto_message(&bundle, 2, &event);
}

static void add_switch(uint64_t ts, uint64_t from, const char *from_comm, uint64_t state,
		       uint64_t to, const char *to_comm)
{
	part.used = 0;
	proto_text(&part, 1, from_comm);
	proto_number(&part, 2, from);
	proto_number(&part, 3, 120);
	proto_number(&part, 4, state);
	proto_text(&part, 5, to_comm);
	proto_number(&part, 6, to);
	proto_number(&part, 7, 110);
	add_ftrace(ts, from, 4);
}

static void switches_are_time_on_a_cpu(void **state)
{
	(void)state;
	start_bundle(3);
	add_switch(100, 10, "a", 1, 20, "b");
	add_switch(300, 20, "b", 0, 10, "a");
	put_bundle();
	read_file();
	assert_int_equal(trace->sched.rows.count, 2);
	assert_int_equal(trace->sched.ts[0], 100);
	assert_int_equal(trace->sched.dur[0], 200);
	assert_int_equal(trace->sched.cpu[0], 3);
	const uint32_t thread = trace->sched.thread[0];
	assert_int_equal(trace->threads.tid[thread], 20);
	assert_string_equal(ky_text_of(trace, trace->threads.name[thread]), "b");
	assert_int_equal(trace->raw_events.rows.count, 2);
	assert_string_equal(ky_text_of(trace, trace->raw_events.name[0]), "sched_switch");
}

static void compact_switches_are_the_same(void **state)
{
	(void)state;
	static struct proto compact;
	compact.used = 0;
	proto_text(&compact, 5, "a");
	proto_text(&compact, 5, "b");
	proto_packed(&compact, 1, (const uint64_t[]){100, 50, 25}, 3);
	proto_packed(&compact, 2, (const uint64_t[]){1, 1, 0}, 3);
	proto_packed(&compact, 3, (const uint64_t[]){10, 20, 10}, 3);
	proto_packed(&compact, 4, (const uint64_t[]){120, 120, 120}, 3);
	proto_packed(&compact, 6, (const uint64_t[]){0, 1, 0}, 3);
	start_bundle(0);
	proto_message(&bundle, 4, &compact);
	put_bundle();
	read_file();
	/* Who ran before the first is not known. */
	assert_int_equal(trace->sched.rows.count, 2);
	assert_int_equal(trace->sched.ts[0], 150);
	assert_int_equal(trace->sched.dur[0], 25);
	assert_int_equal(trace->threads.tid[trace->sched.thread[0]], 20);
}

static void prints_are_markers(void **state)
{
	(void)state;
	start_bundle(0);
	part.used = 0;
	proto_text(&part, 2, "B|77|work\n");
	add_ftrace(10, 78, 3);
	part.used = 0;
	proto_text(&part, 2, "E|77\n");
	add_ftrace(30, 78, 3);
	put_bundle();
	read_file();
	assert_int_equal(trace->slices.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->slices.name[0]), "work");
	assert_int_equal(trace->slices.dur[0], 20);
	const uint32_t thread = ky_track_thread(trace, trace->slices.track[0]);
	assert_int_equal(trace->threads.tid[thread], 78);
	assert_int_equal(trace->processes.pid[trace->threads.process[thread]], 77);
}

static void generic_events_name_their_fields(void **state)
{
	(void)state;
	static struct proto field;
	part.used = field.used = 0;
	proto_text(&part, 1, "my_event");
	proto_text(&field, 1, "depth");
	proto_number(&field, 4, 42);
	proto_message(&part, 2, &field);
	start_bundle(1);
	add_ftrace(10, 5, 327);
	part.used = 0;
	add_ftrace(11, 5, 60000);
	put_bundle();
	read_file();
	assert_int_equal(trace->raw_events.rows.count, 2);
	assert_string_equal(ky_text_of(trace, trace->raw_events.name[0]), "my_event");
	assert_string_equal(ky_text_of(trace, trace->raw_events.name[1]), "ftrace_60000");
	const uint32_t row = ky_arg_set_first(trace, trace->raw_events.args[0]);
	assert_string_equal(ky_text_of(trace, trace->args.key[row]), "depth");
	assert_int_equal(trace->args.value[row], 42);
}

static void the_process_tree_names_processes_and_threads(void **state)
{
	(void)state;
	static struct proto tree;
	tree.used = part.used = 0;
	proto_number(&part, 1, 50);
	proto_number(&part, 2, 1);
	proto_text(&part, 3, "/bin/server");
	proto_text(&part, 3, "--fast");
	proto_number(&part, 5, 1000);
	proto_message(&tree, 1, &part);
	part.used = 0;
	proto_number(&part, 1, 51);
	proto_text(&part, 2, "io");
	proto_number(&part, 3, 50);
	proto_message(&tree, 2, &part);
	start_packet(0, 5);
	proto_message(&packet, 2, &tree);
	end_packet();
	static struct proto stats;
	stats.used = part.used = 0;
	proto_number(&part, 1, 50);
	proto_number(&part, 3, 7);
	proto_message(&stats, 1, &part);
	start_packet(0, 6);
	proto_message(&packet, 9, &stats);
	end_packet();
	read_file();
	uint32_t process = 0;
	while (trace->processes.pid[process] != 50)
		process++;
	assert_string_equal(ky_text_of(trace, trace->processes.name[process]), "/bin/server");
	assert_string_equal(ky_text_of(trace, trace->processes.cmdline[process]),
			    "/bin/server --fast");
	assert_int_equal(trace->processes.uid[process], 1000);
	assert_int_equal(trace->counters.rows.count, 1);
	assert_true(trace->counters.value[0] == 7 * 1024);
}

/* ---- samples ---- */

static void intern_callstack(void)
{
	static struct proto interned;
	static struct proto message;
	interned.used = message.used = 0;
	proto_number(&message, 1, 1);
	proto_packed(&message, 2, (const uint64_t[]){1, 2}, 2);
	proto_message(&interned, 7, &message);
	for (uint64_t i = 1; i <= 2; i++) {
		message.used = 0;
		proto_number(&message, 1, i);
		proto_number(&message, 2, i);
		proto_number(&message, 3, 1);
		proto_number(&message, 4, 0x100 * i);
		proto_message(&interned, 6, &message);
	}
	proto_interned(&interned, 5, 1, "main");
	proto_interned(&interned, 5, 2, "leaf");
	proto_interned(&interned, 17, 1, "usr");
	proto_interned(&interned, 17, 2, "prog");
	message.used = 0;
	proto_number(&message, 1, 1);
	proto_packed(&message, 7, (const uint64_t[]){1, 2}, 2);
	proto_message(&interned, 19, &message);
	start_packet(CLEARED, 1);
	proto_message(&packet, 12, &interned);
	end_packet();
}

static void perf_samples_have_their_callstacks(void **state)
{
	(void)state;
	intern_callstack();
	part.used = 0;
	proto_number(&part, 1, 2);
	proto_number(&part, 2, 10);
	proto_number(&part, 3, 11);
	proto_number(&part, 4, 1);
	proto_number(&part, 5, 2);
	start_packet(NEEDS, 500);
	proto_message(&packet, 66, &part);
	end_packet();
	read_file();
	assert_int_equal(trace->samples.rows.count, 1);
	assert_int_equal(trace->samples.ts[0], 500);
	assert_int_equal(trace->samples.mode[0], KY_CPU_MODE_USER);
	const uint32_t leaf = trace->samples.callsite[0];
	const uint32_t frame = trace->callsites.frame[leaf];
	assert_string_equal(ky_text_of(trace, trace->frames.name[frame]), "leaf");
	assert_int_equal(trace->frames.rel_pc[frame], 0x200);
	const uint32_t mapping = trace->frames.mapping[frame];
	assert_string_equal(ky_text_of(trace, trace->mappings.name[mapping]), "/usr/prog");
	const uint32_t outer = trace->callsites.frame[trace->callsites.parent[leaf]];
	assert_string_equal(ky_text_of(trace, trace->frames.name[outer]), "main");
}

static void stack_samples_are_named_after_their_counter(void **state)
{
	(void)state;
	static struct proto defaults;
	static struct proto message;
	/* TracePacketDefaults.stack_sample_defaults: source, and the primary counter with its name. */
	part.used = defaults.used = message.used = 0;
	proto_text(&message, 2, "cycles");
	proto_text(&part, 1, "sampler");
	proto_message(&part, 2, &message);
	proto_message(&defaults, 100, &part);
	start_packet(CLEARED, 1);
	proto_message(&packet, 59, &defaults);
	end_packet();
	part.used = message.used = 0;
	proto_number(&message, 2, 10);
	proto_number(&message, 3, 11);
	proto_message(&part, 1, &message);
	start_packet(NEEDS, 500);
	proto_message(&packet, 135, &part);
	end_packet();
	read_file();
	assert_int_equal(trace->samples.rows.count, 1);
	assert_string_equal(ky_text_of(trace, trace->samples.event[0]), "cycles");
}

static void streaming_profiles_count_on_from_the_thread_descriptor(void **state)
{
	(void)state;
	intern_callstack();
	part.used = 0;
	proto_number(&part, 1, 10);
	proto_number(&part, 2, 11);
	proto_number(&part, 6, 1000);
	start_packet(NEEDS, 1);
	proto_message(&packet, 44, &part);
	end_packet();
	part.used = 0;
	proto_packed(&part, 1, (const uint64_t[]){1, 1}, 2);
	proto_packed(&part, 2, (const uint64_t[]){5, 10}, 2);
	start_packet(NEEDS, 1);
	proto_message(&packet, 54, &part);
	end_packet();
	read_file();
	assert_int_equal(trace->samples.rows.count, 2);
	assert_int_equal(trace->samples.ts[0], 1005000);
	assert_int_equal(trace->samples.ts[1], 1015000);
}

/* ---- compressed packets ---- */

static void put_instants(int count)
{
	for (int i = 0; i < count; i++) {
		part.used = 0;
		proto_number(&part, 9, 3);
		proto_text(&part, 23, "x");
		start_packet(0, (uint64_t)i);
		proto_message(&packet, 11, &part);
		end_packet();
	}
}

static void zlib_and_zstd_packets_are_unpacked(void **state)
{
	(void)state;
	static struct proto outer, holder;
	uint8_t packed[PROTO_BYTES];
	put_instants(100);
	outer.used = holder.used = 0;
	uLongf bytes = sizeof(packed);
	assert_int_equal(compress(packed, &bytes, file.data, file.used), Z_OK);
	proto_bytes(&holder, 50, packed, bytes);
	proto_message(&outer, 1, &holder);
	holder.used = 0;
	proto_bytes(&holder, 133, packed,
		    ZSTD_compress(packed, sizeof(packed), file.data, file.used, 1));
	proto_message(&outer, 1, &holder);
	read_bytes(outer.data, outer.used);
	assert_int_equal(trace->slices.rows.count, 200);
}

static void damaged_compressed_packets_are_counted(void **state)
{
	(void)state;
	static struct proto outer, holder;
	uint8_t packed[PROTO_BYTES];
	put_instants(100);
	outer.used = holder.used = 0;
	uLongf bytes = sizeof(packed);
	assert_int_equal(compress(packed, &bytes, file.data, file.used), Z_OK);
	memset(packed + bytes / 2, 0xff, bytes / 4);
	proto_bytes(&holder, 50, packed, bytes);
	proto_message(&outer, 1, &holder);
	proto_bytes(&outer, 1, packet.data, packet.used);
	read_bytes(outer.data, outer.used);
	assert_true(trace->slices.rows.count >= 1);
	assert_true(trace->problems.rows.count > 0);
}

/* Count the problems of that name; a severity of its own is a fault. */
static uint64_t problem(const char *name, enum ky_severity severity)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++) {
		if (strcmp(ky_text_of(trace, trace->problems.name[i]), name) != 0)
			continue;
		assert_int_equal(trace->problems.severity[i], severity);
		return trace->problems.number[i];
	}
	return 0;
}

static void only_real_losses_of_a_buffer_are_losses(void **state)
{
	(void)state;
	static struct proto stats;
	part.used = stats.used = 0;
	for (uint32_t field = 1; field <= 20; field++)
		if (field != 16 && field != 17)
			proto_number(&part, field, 100 + field);
	proto_message(&stats, 1, &part);
	start_packet(0, 1);
	proto_message(&packet, 35, &stats);
	end_packet();
	read_file();
	assert_int_equal(problem("traced_buf_chunks_overwritten", KY_INFO), 103);
	assert_int_equal(problem("traced_buf_chunks_discarded", KY_INFO), 118);
	assert_int_equal(problem("traced_buf_patches_failed", KY_DATA_LOSS), 106);
	assert_int_equal(problem("traced_buf_abi_violations", KY_DATA_LOSS), 109);
	assert_int_equal(problem("traced_buf_trace_writer_packet_loss", KY_DATA_LOSS), 119);
	assert_int_equal(trace->problems.rows.count, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_file, end_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(switches_are_time_on_a_cpu),
		TEST(compact_switches_are_the_same),
		TEST(prints_are_markers),
		TEST(generic_events_name_their_fields),
		TEST(the_process_tree_names_processes_and_threads),
		TEST(perf_samples_have_their_callstacks),
		TEST(stack_samples_are_named_after_their_counter),
		TEST(streaming_profiles_count_on_from_the_thread_descriptor),
		TEST(zlib_and_zstd_packets_are_unpacked),
		TEST(damaged_compressed_packets_are_counted),
		TEST(only_real_losses_of_a_buffer_are_losses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
