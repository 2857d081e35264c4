/* SPDX-License-Identifier: MIT */
/*
 * fuzz_stack_spans.c: any bytes as a program that is sampled, and as the records of its samples: taken apart, unwound by
 * the program's own .eh_frame, named, joined. Spans must be nested and in the order of time.
 *
 *   how many bytes of the program (2 bytes), the program, records one behind the other
 *
 * The corpus is made by make_stack_corpus.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stack_join.h"
#include "functrace/stack_names.h"
#include "functrace/unwinder.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#define MAPPED_AT 0x400000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct told {
	uint64_t ns;
	uint64_t open;
};

static void pass_time(struct told *told, uint64_t ns)
{
	if (ns < told->ns)
		abort();
	told->ns = ns;
}

static void on_begin(void *context, uint64_t ns, uint32_t function)
{
	struct told *told = context;
	(void)function;
	pass_time(told, ns);
	told->open++;
}

static void on_end(void *context, uint64_t ns)
{
	struct told *told = context;
	pass_time(told, ns);
	if (told->open-- == 0)
		abort();
}

struct engine {
	struct ky_stack_modules modules;
	struct ky_stack_names names;
	struct ky_address_space space;
	struct ky_unwinder *unwinder;
	struct ky_stack_jit jit;
	struct ky_stack_join join;
	struct told told;
	struct ky_unwound unwound[KY_UNWIND_FRAMES_MAX];
	struct ky_stack_frame frames[KY_STACK_DEPTH_MAX];
};

static void open_engine(struct engine *engine)
{
	if (ky_stack_modules_open(&engine->modules) != 0 ||
	    ky_stack_names_open(&engine->names, &engine->modules, NULL) != 0 ||
	    ky_unwinder_open(&engine->unwinder) != 0)
		abort();
	engine->jit.pid = getpid();
}

static void close_engine(struct engine *engine)
{
	ky_stack_join_free(&engine->join);
	ky_address_space_free(&engine->space);
	ky_stack_jit_free(&engine->jit);
	ky_unwinder_close(&engine->unwinder);
	ky_stack_names_close(&engine->names);
	ky_stack_modules_close(&engine->modules);
}

/* As a process would have it. */
static void map_program(struct engine *engine, const uint8_t *data, size_t bytes)
{
	char path[64];
	struct stat status;
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || fstat(fd, &status) != 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ky_stack_modules_map(&engine->modules, &engine->space, getpid(),
			     &(struct ky_proc_mapping){.start = MAPPED_AT,
						       .end = MAPPED_AT + 0x10000,
						       .inode = status.st_ino,
						       .path = path});
	close(fd);
}

static void take_sample(struct engine *engine, const struct ky_stack_dump *dump,
			const struct ky_stack_sink *sink)
{
	enum ky_unwind_end end = KY_UNWIND_ASTRAY;
	const uint32_t *functions;
	uint32_t count = 0;
	uint32_t left = dump->has_registers
				? ky_unwinder_walk(engine->unwinder, &engine->modules,
						   &engine->space, dump, engine->unwound, &end)
				: 0;
	while (left-- > 0) {
		const struct ky_unwound *unwound = &engine->unwound[left];
		const uint32_t found = ky_stack_names_at(&engine->names, unwound->range,
							 unwound->pc, &engine->jit, &functions);
		for (uint32_t i = found; i-- > 0 && count < KY_STACK_DEPTH_MAX;)
			engine->frames[count++] = (struct ky_stack_frame){
				functions[i], unwound->returns, unwound->place};
	}
	ky_stack_join_sample(
		&engine->join,
		&(struct ky_stack_sample){dump->ns, engine->frames, count, end == KY_UNWIND_WHOLE},
		sink);
}

static void take(struct engine *engine, const struct ky_perf_record *record,
		 const struct ky_stack_sink *sink)
{
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		/* Not by its path: that may be any file of this machine. */
		ky_stack_modules_map(&engine->modules, &engine->space, 0,
				     &(struct ky_proc_mapping){.start = record->map.start,
							       .end = record->map.end,
							       .offset = record->map.offset,
							       .path = "//anon"});
		break;
	case PERF_RECORD_FORK:
		ky_stack_join_begin(&engine->join, record->time);
		break;
	case PERF_RECORD_EXIT:
		ky_stack_join_end(&engine->join, record->time, sink);
		if (engine->told.open)
			abort();
		break;
	case PERF_RECORD_SWITCH:
		if (record->switched.out)
			ky_stack_join_off(&engine->join, record->time,
					  record->switched.preempted ? KY_STACK_PREEMPTED
								     : KY_STACK_OFF_CPU,
					  sink);
		else
			ky_stack_join_on(&engine->join, record->time, sink);
		break;
	default:
		ky_stack_join_settle(&engine->join, sink);
		break;
	}
}

static void take_record(struct engine *engine, const struct perf_event_header *head)
{
	const struct ky_stack_sink sink = {on_begin, on_end, &engine->told};
	const uint64_t ns = ky_perf_record_time(head, KY_STACK_SAMPLE_TYPE);
	struct ky_stack_dump dump;
	struct ky_perf_record record;
	if (head->type == PERF_RECORD_SAMPLE) {
		if (!ky_stack_dump_read(&dump, head))
			return;
		if (dump.ns != ns)
			abort();
		take_sample(engine, &dump, &sink);
	} else if (ky_perf_record_parse(&record, head, KY_STACK_SAMPLE_TYPE)) {
		if (record.time != ns)
			abort();
		take(engine, &record, &sink);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint16_t program = 0;
	if (bytes < sizeof(program))
		return 0;
	memcpy(&program, data, sizeof(program));
	data += sizeof(program);
	bytes -= sizeof(program);
	const size_t program_bytes = program < bytes ? program : bytes;
	struct engine *engine = calloc(1, sizeof(*engine));
	if (!engine)
		abort();
	open_engine(engine);
	map_program(engine, data, program_bytes);
	data += program_bytes;
	bytes -= program_bytes;
	struct perf_event_header head;
	while (bytes >= sizeof(head)) {
		memcpy(&head, data, sizeof(head));
		if (head.size < sizeof(head) || head.size > bytes)
			break;
		/* Of its own, so that reading over its end is noticed. */
		struct perf_event_header *own = malloc(head.size);
		if (!own)
			abort();
		memcpy(own, data, head.size);
		take_record(engine, own);
		free(own);
		data += head.size;
		bytes -= head.size;
	}
	close_engine(engine);
	free(engine);
	return 0;
}
