/* SPDX-License-Identifier: MIT */
/*
 * samples_dump.c: the samples that kymo reads of a trace, one a line: time, tid, pid, CPU, event, weight, then its frames
 * from the innermost on as address, name and file. Between them are tabs; what is not known is "-".
 *
 *	samples_dump FILE
 */
#include "formats/load.h"

#include <inttypes.h>
#include <stdio.h>

static const char *text_or_dash(const struct ky_trace *trace, uint32_t string)
{
	return string ? ky_text_of(trace, string) : "-";
}

static void print_frame(const struct ky_trace *trace, uint32_t frame)
{
	const uint32_t mapping = trace->frames.mapping[frame];
	printf("\t%" PRIx64 "\t%s\t%s", trace->frames.rel_pc[frame],
	       text_or_dash(trace, trace->frames.name[frame]),
	       mapping == KY_NONE ? "-" : text_or_dash(trace, trace->mappings.name[mapping]));
}

static void print_sample(const struct ky_trace *trace, uint32_t i)
{
	const struct ky_samples *samples = &trace->samples;
	const uint32_t thread = samples->thread[i];
	const uint32_t process = thread == KY_NONE ? KY_NONE : trace->threads.process[thread];
	printf("%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%s\t%.0f\t%s", samples->ts[i],
	       thread == KY_NONE ? -1 : trace->threads.tid[thread],
	       process == KY_NONE ? -1 : trace->processes.pid[process],
	       samples->cpu[i] == KY_NONE ? -1 : (int64_t)samples->cpu[i],
	       text_or_dash(trace, samples->event[i]), samples->weight[i],
	       thread == KY_NONE ? "-" : text_or_dash(trace, trace->threads.name[thread]));
	for (uint32_t site = samples->callsite[i]; site != KY_NONE;
	     site = trace->callsites.parent[site])
		print_frame(trace, trace->callsites.frame[site]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	if (argc != 2) {
		fputs("usage: samples_dump FILE\n", stderr);
		return 2;
	}
	if (ky_load(&trace, argv[1], NULL, message) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	for (uint32_t i = 0; i < trace->samples.rows.count; i++)
		print_sample(trace, i);
	ky_trace_close(&trace);
	return 0;
}
