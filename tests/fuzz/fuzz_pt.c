/* SPDX-License-Identifier: MIT */
/*
 * fuzz_pt.c: any bytes as packets of Intel PT and as the code they are of; and as the kernel's records beside them. All spans
 * must be nested and in the order of time.
 *
 *   how many bytes of code (2 bytes), the code, the packets
 *
 * The corpus is made by libipt's encoder: KYMO_TEST_SAVE_PACKETS=FOLDER test_pt_decode.
 */
#include <stdlib.h>
#include <string.h>

#include "functrace/pt_decode.h"
#include "process/perf_record.h"

#define CODE_AT 0x401000u
#define FUNCTION_BYTES 0x80u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct told {
	uint64_t ns;
	uint64_t open;
};

/* Functions everywhere, of the same size, some of them not shown. */
static bool find(void *context, uint64_t address, struct ky_pt_function *function)
{
	const uint64_t start = address & ~(uint64_t)(FUNCTION_BYTES - 1);
	(void)context;
	*function = (struct ky_pt_function){.start = start,
					    .from = start,
					    .to = start + FUNCTION_BYTES,
					    .shown = (start & 0x200) == 0};
	return (start & 0x400) == 0;
}

static void pass_time(void *context, uint64_t ns)
{
	struct told *told = context;
	if (ns < told->ns)
		abort();
	told->ns = ns;
}

static void on_begin(void *context, uint64_t ns, uint64_t start, bool lost)
{
	struct told *told = context;
	(void)start;
	(void)lost;
	pass_time(context, ns);
	told->open++;
}

static void on_gap(void *context, uint64_t ns, const char *what)
{
	if (!what[0])
		abort();
	on_begin(context, ns, 0, false);
}

static void on_end(void *context, uint64_t ns)
{
	struct told *told = context;
	pass_time(context, ns);
	if (told->open-- == 0)
		abort();
}

static void on_instant(void *context, uint64_t ns, const char *text)
{
	if (!text[0])
		abort();
	pass_time(context, ns);
}

static void decode(const uint8_t *code, size_t code_bytes, const uint8_t *aux, size_t aux_bytes,
		   uint64_t since)
{
	struct told told = {0};
	struct ky_pt_image image;
	const struct ky_pt_calls calls = {.function = find,
					  .begin = on_begin,
					  .gap = on_gap,
					  .end = on_end,
					  .instant = on_instant,
					  .context = &told};
	const struct ky_pt_packets packets = {.aux = aux,
					      .bytes = aux_bytes,
					      .cpu = {.ctc_numerator = 2,
						      .ctc_denominator = 1,
						      .mtc_period = 3,
						      .nominal_ratio = 10},
					      .since_ns = since};
	if (ky_pt_image_open(&image, NULL, NULL) != 0)
		abort();
	if (code_bytes && ky_pt_image_add(&image, code, code_bytes, CODE_AT) != 0)
		abort();
	if (ky_pt_decode_packets(&packets, &image, &calls, NULL) != 0 || told.open)
		abort();
	ky_pt_image_close(&image);
}

/* As a ring gives them: whole, by what their heads say. */
static void parse_records(const uint8_t *data, size_t bytes)
{
	while (bytes >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		struct ky_perf_record record;
		memcpy(&header, data, sizeof(header));
		if (header.size < sizeof(header) || header.size > bytes)
			return;
		struct perf_event_header *copy = malloc(header.size);
		if (!copy)
			abort();
		memcpy(copy, data, header.size);
		copy->type %= PERF_RECORD_MAX;
		if (ky_perf_record_parse(&record, copy, PERF_SAMPLE_TID | PERF_SAMPLE_TIME) &&
		    record.type == PERF_RECORD_MMAP2 && strlen(record.map.path) > header.size)
			abort();
		free(copy);
		data += header.size;
		bytes -= header.size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint16_t code_bytes;
	parse_records(data, bytes);
	if (bytes < sizeof(code_bytes))
		return 0;
	memcpy(&code_bytes, data, sizeof(code_bytes));
	data += sizeof(code_bytes);
	bytes -= sizeof(code_bytes);
	if (code_bytes > bytes)
		code_bytes = (uint16_t)bytes;
	decode(data, code_bytes, data + code_bytes, bytes - code_bytes, code_bytes & 1 ? 1500 : 0);
	return 0;
}
