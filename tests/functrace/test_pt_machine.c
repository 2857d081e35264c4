/* SPDX-License-Identifier: MIT */
/*
 * test_pt_machine.c: the Intel PT of machines, in folders made like theirs; the records of the kernel; the AUX ring;
 * and the clean refusal by the engine where it is missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "functrace/pt.h"
#include "functrace/pt_decode.h"
#include "functrace/pt_machine.h"
#include "process/perf_record.h"

#define DEVICE "sys/bus/event_source/devices/intel_pt/"

/* ---- a machine's files ---- */

static char root[64];

static int open_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/kymo-pt-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status;
	(void)type;
	(void)where;
	return remove(path);
}

static int close_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void put_cpu(const char *vendor, const char *name, const char *flags)
{
	char text[1024];
	snprintf(text, sizeof(text),
		 "processor\t: 0\nvendor_id\t: %s\ncpu family\t: 6\nmodel\t\t: 158\n"
		 "model name\t: %s\nstepping\t: 10\nflags\t\t: fpu vme %s\n\n"
		 "processor\t: 1\nvendor_id\t: other\n",
		 vendor, name, flags);
	put("proc/cpuinfo", text);
}

static void put_device(void)
{
	static const char *const formats[][2] = {{"pt", "config:0\n"},
						 {"cyc", "config:1\n"},
						 {"mtc", "config:9\n"},
						 {"tsc", "config:10\n"},
						 {"noretcomp", "config:11\n"},
						 {"branch", "config:13\n"},
						 {"mtc_period", "config:14-17\n"},
						 {"cyc_thresh", "config:19-22\n"},
						 {"psb_period", "config:24-27\n"}};
	char path[128];
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		snprintf(path, sizeof(path), DEVICE "format/%s", formats[i][0]);
		put(path, formats[i][1]);
	}
	put(DEVICE "type", "8\n");
	put(DEVICE "caps/mtc", "1\n");
	put(DEVICE "caps/mtc_periods", "248\n"); /* 3, 6, 9 */
	put(DEVICE "caps/psb_cyc", "1\n");
	put(DEVICE "caps/cycle_thresholds", "3fff\n");
	put(DEVICE "max_nonturbo_ratio", "36\n");
	put(DEVICE "tsc_art_ratio", "300:2\n");
}

static void expect_refusal(const char *reason)
{
	char why[KY_MESSAGE_BYTES] = "";
	struct ky_pt_machine machine;
	assert_int_equal(ky_pt_machine_read(&machine, root, why), -ENOTSUP);
	assert_non_null(strstr(why, reason));
	assert_null(strchr(why, '\n'));
}

static void a_machine_without_it_says_why(void **state)
{
	(void)state;
	put_cpu("AuthenticAMD", "AMD EPYC", "");
	expect_refusal("this CPU is an AMD EPYC: it has no Intel Processor Trace");
	put_cpu("GenuineIntel", "Intel(R) Xeon(R)", "hypervisor");
	expect_refusal("this machine is virtual");
	put_cpu("GenuineIntel", "Intel(R) Xeon(R)", "intel_pt");
	expect_refusal("the kernel does not offer it");
	put_cpu("GenuineIntel", "Intel(R) Core(TM)2", "");
	expect_refusal("this CPU (Intel(R) Core(TM)2) has no Intel Processor Trace");
}

static void a_machine_without_files_says_why_too(void **state)
{
	(void)state;
	expect_refusal("this CPU is an unknown");
}

static void a_machine_with_it_is_asked_for_all_times_it_can_give(void **state)
{
	char why[KY_MESSAGE_BYTES];
	struct ky_pt_machine machine;
	(void)state;
	put_cpu("GenuineIntel", "Intel(R) Core(TM) i7-8700", "intel_pt");
	put_device();
	assert_int_equal(ky_pt_machine_read(&machine, root, why), 0);
	assert_int_equal(machine.type, 8);
	/* pt, cyc, mtc, tsc, branch; mtc_period 3; cyc_thresh 1 */
	assert_int_equal(machine.config,
			 1u | 1u << 1 | 1u << 9 | 1u << 10 | 1u << 13 | 3u << 14 | 1u << 19);
	assert_true(machine.cpu.intel);
	assert_int_equal(machine.cpu.family, 6);
	assert_int_equal(machine.cpu.model, 158);
	assert_int_equal(machine.cpu.stepping, 10);
	assert_int_equal(machine.cpu.mtc_period, 3);
	assert_int_equal(machine.cpu.nominal_ratio, 36);
	assert_int_equal(machine.cpu.ctc_numerator, 300);
	assert_int_equal(machine.cpu.ctc_denominator, 2);
	const struct perf_event_attr attr = ky_pt_machine_event(&machine);
	assert_int_equal(attr.type, 8);
	assert_int_equal(attr.config, machine.config);
	assert_true(attr.disabled && attr.exclude_kernel && !attr.inherit && !attr.use_clockid);
	assert_true(attr.mmap2 && attr.task && attr.comm && attr.context_switch &&
		    attr.sample_id_all);
}

static void an_old_cpu_is_asked_for_what_it_has(void **state)
{
	char why[KY_MESSAGE_BYTES];
	struct ky_pt_machine machine;
	(void)state;
	put_cpu("GenuineIntel", "Intel(R) Core(TM) M", "intel_pt");
	put(DEVICE "type", "6\n");
	put(DEVICE "format/tsc", "config:10\n");
	put(DEVICE "format/noretcomp", "config:11\n");
	put(DEVICE "caps/mtc", "0\n");
	put(DEVICE "tsc_art_ratio", "nonsense\n");
	assert_int_equal(ky_pt_machine_read(&machine, root, why), 0);
	assert_int_equal(machine.config, 1u << 10);
	assert_int_equal(machine.cpu.ctc_numerator, 0);
}

/* ---- the engine here ---- */

static void the_engine_refuses_with_the_reason_where_it_cannot_be(void **state)
{
	char why[KY_MESSAGE_BYTES] = "", message[KY_MESSAGE_BYTES] = "";
	struct ky_pt *pt = (void *)&why;
	const struct ky_functrace_options options = {.ring_bytes = 1 << 20, .total_bytes = 1 << 24};
	(void)state;
	const bool available = ky_pt_available(why);
	const int error = ky_pt_open(&pt, &options, message);
	if (available) {
		assert_int_equal(error, 0);
	} else {
		assert_int_equal(error, -ENOTSUP);
		assert_null(pt);
		assert_string_equal(message, why);
		assert_true(strlen(why) > 20);
	}
	ky_pt_close(&pt);
	ky_pt_close(&pt);
}

static void an_event_that_is_refused_leaves_nothing_open(void **state)
{
	struct ky_pt_thread thread;
	/* No event source has such a number. */
	const struct ky_pt_machine machine = {.type = 0x7ffffff};
	char why[KY_MESSAGE_BYTES];
	(void)state;
	const int error = ky_pt_thread_open(&thread, &machine, 0, 1 << 20);
	assert_true(error < 0);
	assert_null(thread.aux);
	ky_pt_machine_why(error, why);
	assert_true(strlen(why) > 20);
	ky_pt_machine_why(-EACCES, why);
	assert_non_null(strstr(why, "perf_event_paranoid"));
}

/* The kernel's own records, of an event that any CPU has: it counts nothing. */
static const struct ky_pt_machine dummy = {.type = PERF_TYPE_SOFTWARE,
					   .config = PERF_COUNT_SW_DUMMY};

static void an_event_without_an_aux_ring_leaves_nothing_open(void **state)
{
	struct ky_pt_thread thread;
	(void)state;
	assert_true(ky_pt_thread_open(&thread, &dummy, 0, 1 << 20) < 0);
	assert_true(thread.fd < 0 && !thread.aux && !thread.records.page);
}

static void the_kernel_records_what_is_mapped_and_named(void **state)
{
	struct ky_perf_ring ring;
	struct ky_perf_record record;
	struct stat status;
	const struct perf_event_header *header;
	bool mapped = false, named = false;
	(void)state;
	const int fd = ky_pt_machine_open(&dummy, 0);
	/* not allowed here */
	if (fd < 0 || ky_perf_ring_open(&ring, fd, 65536) != 0)
		skip();
	const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(program, &status), 0);
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, program, 4096);
	assert_true(code != MAP_FAILED);
	assert_int_equal(prctl(PR_SET_NAME, "named-by-test"), 0);
	ky_perf_ring_begin(&ring);
	while ((header = ky_perf_ring_next(&ring))) {
		if (!ky_perf_record_parse(&record, header, ky_pt_machine_event(&dummy).sample_type))
			continue;
		assert_int_equal(record.tid, gettid());
		if (record.type == PERF_RECORD_COMM)
			named |= strcmp(record.comm.name, "named-by-test") == 0;
		if (record.type != PERF_RECORD_MMAP2)
			continue;
		mapped = true;
		assert_int_equal(record.map.start, (uint64_t)(uintptr_t)code);
		assert_int_equal(record.map.end - record.map.start, 4096);
		assert_int_equal(record.map.offset, 4096);
		assert_int_equal(record.map.inode, status.st_ino);
		assert_non_null(strstr(record.map.path, "test_pt_machine"));
		assert_true(record.time > 0);
	}
	ky_perf_ring_end(&ring);
	assert_true(mapped && named);
	munmap(code, 4096);
	ky_perf_ring_close(&ring);
	close(program);
	close(fd);
}

/* ---- times ---- */

static void the_page_of_an_event_says_how_ticks_become_time(void **state)
{
	struct perf_event_mmap_page *page = calloc(1, sizeof(*page));
	struct ky_pt_time time;
	(void)state;
	assert_non_null(page);
	page->lock = 2;
	page->time_mult = 5;
	page->time_shift = 1;
	page->time_zero = 7;
	assert_false(ky_pt_thread_page_time(page, &time));
	page->cap_user_time_zero = 1;
	assert_true(ky_pt_thread_page_time(page, &time));
	assert_int_equal(ky_pt_time_ns(&time, 100), 257);
	/* It is being written, and the writer does not go on: no hang. */
	page->lock = 3;
	assert_false(ky_pt_thread_page_time(page, &time));
	free(page);
}

/* ---- records ---- */

struct made_record {
	union {
		struct perf_event_header header;
		uint8_t bytes[512];
		uint64_t words[64];
	};
	size_t used;
};

static void begin_record(struct made_record *made, uint32_t type, uint16_t misc)
{
	memset(made, 0, sizeof(*made));
	made->header.type = type;
	made->header.misc = misc;
	made->used = sizeof(made->header);
}

static void add_u64(struct made_record *made, uint64_t value)
{
	memcpy(made->bytes + made->used, &value, 8);
	made->used += 8;
}

static void add_text(struct made_record *made, const char *text)
{
	strcpy((char *)made->bytes + made->used, text);
	made->used += (strlen(text) + 8) & ~7u;
}

#define SAMPLE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* End a record with pid 10, tid 11, time 999, as all records have it at their end. */
static bool end_record(struct made_record *made, struct ky_perf_record *record)
{
	add_u64(made, 10 | UINT64_C(11) << 32);
	add_u64(made, 999);
	made->header.size = (uint16_t)made->used;
	return ky_perf_record_parse(record, &made->header, SAMPLE);
}

static void make_map(struct made_record *made, uint16_t misc)
{
	begin_record(made, PERF_RECORD_MMAP2, misc);
	add_u64(made, 10 | UINT64_C(12) << 32);
	add_u64(made, 0x7f0000001000);
	add_u64(made, 0x3000);
	add_u64(made, 0x2000);
	add_u64(made, 8 | UINT64_C(1) << 32); /* major, minor */
	add_u64(made, 4242);
	add_u64(made, 0);
	add_u64(made, 5);
	add_text(made, "/usr/lib/libx.so");
}

static void a_mapping_is_read_from_its_record(void **state)
{
	struct made_record made;
	struct ky_perf_record record;
	(void)state;
	make_map(&made, PERF_RECORD_MISC_USER);
	assert_true(end_record(&made, &record));
	assert_int_equal(record.pid, 10);
	assert_int_equal(record.tid, 12);
	assert_int_equal(record.time, 999);
	assert_int_equal(record.map.start, 0x7f0000001000);
	assert_int_equal(record.map.end, 0x7f0000004000);
	assert_int_equal(record.map.offset, 0x2000);
	assert_int_equal(record.map.device, UINT64_C(8) << 32 | 1);
	assert_int_equal(record.map.inode, 4242);
	assert_string_equal(record.map.path, "/usr/lib/libx.so");
	make_map(&made, PERF_RECORD_MISC_MMAP_DATA);
	assert_false(end_record(&made, &record));
	make_map(&made, PERF_RECORD_MISC_MMAP_BUILD_ID);
	assert_true(end_record(&made, &record));
	assert_int_equal(record.map.inode, 0);
}

static void threads_names_switches_and_losses_are_read(void **state)
{
	struct made_record made;
	struct ky_perf_record record;
	(void)state;
	begin_record(&made, PERF_RECORD_FORK, 0);
	add_u64(&made, 10 | UINT64_C(9) << 32);
	add_u64(&made, 20 | UINT64_C(11) << 32);
	add_u64(&made, 998);
	assert_true(end_record(&made, &record));
	assert_int_equal(record.pid, 10);
	assert_int_equal(record.tid, 20);
	assert_int_equal(record.task.time, 998);
	assert_int_equal(record.time, 999);
	begin_record(&made, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	add_u64(&made, 10 | UINT64_C(11) << 32);
	add_text(&made, "worker");
	assert_true(end_record(&made, &record));
	assert_string_equal(record.comm.name, "worker");
	assert_true(record.comm.exec);
	begin_record(&made, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
	assert_true(end_record(&made, &record));
	assert_true(record.switched.out);
	assert_int_equal(record.tid, 11);
	begin_record(&made, PERF_RECORD_LOST, 0);
	add_u64(&made, 1);
	add_u64(&made, 77);
	assert_true(end_record(&made, &record));
	assert_int_equal(record.lost, 77);
	begin_record(&made, PERF_RECORD_AUX, 0);
	add_u64(&made, 0);
	add_u64(&made, 4096);
	add_u64(&made, PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_TRUNCATED);
	assert_true(end_record(&made, &record));
	assert_int_equal(record.aux.flags, PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_TRUNCATED);
}

static void records_that_are_cut_off_are_passed_over(void **state)
{
	struct made_record made;
	struct ky_perf_record record;
	(void)state;
	make_map(&made, 0);
	assert_true(end_record(&made, &record));
	const uint16_t whole = made.header.size;
	/* In memory of exactly its size, so that the address sanitizer sees more. */
	for (uint16_t bytes = sizeof(made.header); bytes < whole; bytes++) {
		struct perf_event_header *cut = malloc(bytes);
		assert_non_null(cut);
		memcpy(cut, made.bytes, bytes);
		cut->size = bytes;
		if (bytes < whole - 24)
			assert_false(ky_perf_record_parse(&record, cut, SAMPLE));
		else
			ky_perf_record_parse(&record, cut, SAMPLE);
		free(cut);
	}
	made.header.size = 4;
	assert_false(ky_perf_record_parse(&record, &made.header, SAMPLE));
}

/* ---- the ring ---- */

static void a_ring_that_went_around_begins_behind_its_head(void **state)
{
	const uint8_t ring[8] = "56781234";
	uint8_t out[8];
	(void)state;
	assert_int_equal(ky_pt_thread_unroll(out, ring, 8, 4), 8);
	assert_memory_equal(out, "12345678", 8);
	/* Kernels differ: head continues, or starts again. */
	assert_int_equal(ky_pt_thread_unroll(out, ring, 8, 800 + 4), 8);
	assert_memory_equal(out, "12345678", 8);
}

static void a_ring_that_is_not_full_yet_has_what_was_written(void **state)
{
	const uint8_t ring[8] = "123";
	uint8_t out[8];
	(void)state;
	assert_int_equal(ky_pt_thread_unroll(out, ring, 8, 3), 3);
	assert_memory_equal(out, "123", 3);
	assert_int_equal(ky_pt_thread_unroll(out, (const uint8_t[8]){0}, 8, 0), 0);
}

/* ---- a recording of others ---- */

static uint32_t begins;

static bool no_function(void *context, uint64_t at, struct ky_pt_function *function)
{
	(void)context;
	(void)at;
	(void)function;
	return false;
}

static void count_begin(void *context, uint64_t ns, uint64_t start, bool lost)
{
	(void)context;
	(void)ns;
	(void)start;
	(void)lost;
	begins++;
}

static void pass_text(void *context, uint64_t ns, const char *text)
{
	(void)context;
	assert_true(ns > 0 && strlen(text) > 0);
}

static void pass_end(void *context, uint64_t ns)
{
	(void)context;
	assert_true(ns > 0);
}

/*
 * Decode packets of a CPU without the code: every PSB is found and has a time, and everything between is reported as
 * unknown.
 */
static void decode_strange(const uint8_t *aux, size_t bytes, struct ky_pt_facts *all)
{
	struct ky_pt_image image;
	struct ky_pt_facts facts;
	const struct ky_pt_calls calls = {.function = no_function,
					  .begin = count_begin,
					  .gap = pass_text,
					  .end = pass_end,
					  .instant = pass_text};
	const struct ky_pt_packets packets = {
		.aux = aux, .bytes = bytes, .cpu = {.intel = true, .family = 6, .model = 78}};
	assert_int_equal(ky_pt_image_open(&image, NULL, NULL), 0);
	assert_int_equal(ky_pt_decode_packets(&packets, &image, &calls, &facts), 0);
	all->synced += facts.synced;
	all->errors += facts.errors;
	if (facts.to_ns > all->to_ns)
		all->to_ns = facts.to_ns;
	ky_pt_image_close(&image);
}

static uint32_t count_psbs(const uint8_t *aux, size_t bytes)
{
	static const uint8_t psb[16] =
		"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";
	uint32_t count = 0;
	const uint8_t *end = aux + bytes;
	while ((aux = memmem(aux, (size_t)(end - aux), psb, sizeof(psb)))) {
		aux += sizeof(psb);
		count++;
	}
	return count;
}

#define PERF_AUXTRACE 71u /* the bytes follow the record; their number is its first word */
#define PERF_SAMPLE_TYPE_OF_FILE                                                                   \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |                   \
	 PERF_SAMPLE_IDENTIFIER)

static void a_recording_of_a_real_cpu_is_read(void **state)
{
	char path[4096];
	uint64_t head[13]; /* perf.data: the place of its records, and their bytes */
	(void)state;
	const char *source = getenv("KYMO_SOURCE_ROOT");
	snprintf(path, sizeof(path),
		 "%s/../shared/fixtures/perf-data/perf_data_converter/perf.data.intel_pt-4.14",
		 source ? source : ".");
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		skip();
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	const size_t size = (size_t)status.st_size;
	const uint8_t *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(file != MAP_FAILED);
	memcpy(head, file, sizeof(head));
	const uint64_t data_at = head[5], data_bytes = head[6];
	uint32_t maps = 0, switches = 0, psbs = 0;
	struct ky_pt_facts facts = {0};
	for (uint64_t at = data_at; at < data_at + data_bytes;) {
		/* Records of a file begin at whole words. */
		const struct perf_event_header *header = (const void *)(file + at);
		struct ky_perf_record record;
		uint64_t aux_bytes = 0;
		if (header->type == PERF_AUXTRACE) {
			memcpy(&aux_bytes, header + 1, 8);
			psbs += count_psbs(file + at + header->size, (size_t)aux_bytes);
			decode_strange(file + at + header->size, (size_t)aux_bytes, &facts);
		} else if (ky_perf_record_parse(&record, header, PERF_SAMPLE_TYPE_OF_FILE)) {
			maps += record.type == PERF_RECORD_MMAP2;
			switches += record.type == PERF_RECORD_SWITCH_CPU_WIDE;
		}
		at += header->size + aux_bytes;
	}
	print_message("%u mappings, %u switches, %u PSBs, %u synced, %u errors\n", maps, switches,
		      psbs, facts.synced, facts.errors);
	assert_true(maps > 0 && switches > 0);
	assert_true(psbs > 0);
	assert_int_equal(facts.synced, psbs);
	assert_true(facts.errors > 0 && facts.errors <= psbs);
	munmap((void *)(uintptr_t)file, size);
	close(fd);
}

int main(void)
{
#define WITH_ROOT(name) cmocka_unit_test_setup_teardown(name, open_root, close_root)
	const struct CMUnitTest tests[] = {
		WITH_ROOT(a_machine_without_it_says_why),
		WITH_ROOT(a_machine_without_files_says_why_too),
		WITH_ROOT(a_machine_with_it_is_asked_for_all_times_it_can_give),
		WITH_ROOT(an_old_cpu_is_asked_for_what_it_has),
		cmocka_unit_test(the_engine_refuses_with_the_reason_where_it_cannot_be),
		cmocka_unit_test(an_event_that_is_refused_leaves_nothing_open),
		cmocka_unit_test(an_event_without_an_aux_ring_leaves_nothing_open),
		cmocka_unit_test(the_kernel_records_what_is_mapped_and_named),
		cmocka_unit_test(the_page_of_an_event_says_how_ticks_become_time),
		cmocka_unit_test(a_mapping_is_read_from_its_record),
		cmocka_unit_test(threads_names_switches_and_losses_are_read),
		cmocka_unit_test(records_that_are_cut_off_are_passed_over),
		cmocka_unit_test(a_ring_that_went_around_begins_behind_its_head),
		cmocka_unit_test(a_ring_that_is_not_full_yet_has_what_was_written),
		cmocka_unit_test(a_recording_of_a_real_cpu_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
