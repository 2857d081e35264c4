/* SPDX-License-Identifier: MIT */
/*
 * trace_dump.c: what kymo reads of a trace, in the form of the tables that lie beside the fixtures.
 *
 *	trace_dump counts|events|slices|flows|args|problems FILE
 */
#include "formats/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_text(const struct ky_trace *trace, uint32_t string)
{
	putchar('"');
	for (const char *s = string ? ky_text_of(trace, string) : ""; *s; s++) {
		if (*s == '"')
			putchar('"');
		putchar(*s);
	}
	putchar('"');
}

static void print_slices(const struct ky_trace *trace)
{
	const struct ky_slices *slices = &trace->slices;
	puts("\"ts\",\"dur\",\"depth\",\"name\",\"category\",\"tid\",\"pid\"");
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		const uint32_t thread = ky_track_thread(trace, slices->track[i]);
		const uint32_t process = ky_track_process(trace, slices->track[i]);
		printf("%" PRId64 ",%" PRId64 ",%u,", slices->ts[i], slices->dur[i],
		       slices->depth[i]);
		print_text(trace, slices->name[i]);
		putchar(',');
		print_text(trace, slices->category[i]);
		printf(",%" PRId64 ",%" PRId64 "\n",
		       thread == KY_NONE ? -1 : trace->threads.tid[thread],
		       process == KY_NONE ? -1 : trace->processes.pid[process]);
	}
}

static uint32_t count_tracks(const struct ky_trace *trace)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < trace->tracks.rows.count; i++)
		count += ky_track_is_counter(trace->tracks.kind[i]);
	return count;
}

/* Threads and processes as Perfetto counts them: without the idle ones that it makes itself. */
static void print_counts(const struct ky_trace *trace)
{
	uint32_t unfinished = 0;
	for (uint32_t i = 0; i < trace->slices.rows.count; i++)
		unfinished += trace->slices.dur[i] < 0;
	puts("\"slices\",\"unfinished\",\"flows\",\"counters\",\"counter_tracks\",\"threads\","
	     "\"processes\",\"args\",\"sched\",\"samples\"");
	printf("%u,%u,%u,%u,%u,%u,%u,%u,%u,%u\n", trace->slices.rows.count, unfinished,
	       trace->flows.rows.count, trace->counters.rows.count, count_tracks(trace),
	       trace->threads.rows.count, trace->processes.rows.count, trace->args.rows.count,
	       trace->sched.rows.count, trace->samples.rows.count);
}

static void print_events(const struct ky_trace *trace)
{
	/* Messages are an instant and a log each. */
	printf("%" PRIu64 "\n", trace->events - trace->logs.rows.count);
}

static void print_flows(const struct ky_trace *trace)
{
	const struct ky_flows *flows = &trace->flows;
	for (uint32_t i = 0; i < flows->rows.count; i++) {
		printf("%" PRId64 ",%" PRId64 ",", trace->slices.ts[flows->out[i]],
		       trace->slices.ts[flows->in[i]]);
		print_text(trace, trace->slices.name[flows->out[i]]);
		putchar(',');
		print_text(trace, trace->slices.name[flows->in[i]]);
		putchar('\n');
	}
}

static void print_arg(const struct ky_trace *trace, uint32_t i)
{
	const uint64_t value = trace->args.value[i];
	double real;
	memcpy(&real, &value, sizeof(real));
	switch ((enum ky_arg_type)trace->args.type[i]) {
	case KY_ARG_NULL:
		printf("null");
		break;
	case KY_ARG_INT:
		printf("%" PRId64, (int64_t)value);
		break;
	case KY_ARG_REAL:
		printf("%.17g", real);
		break;
	case KY_ARG_BOOL:
		printf("%s", value ? "true" : "false");
		break;
	case KY_ARG_STRING:
	case KY_ARG_JSON:
		print_text(trace, (uint32_t)value);
		break;
	case KY_ARG_UINT:
	case KY_ARG_POINTER:
		printf("%" PRIu64, value);
		break;
	}
}

static void print_args(const struct ky_trace *trace)
{
	for (uint32_t set = 1; set < trace->arg_sets.rows.count; set++)
		for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set);
		     i++) {
			printf("%u,", set);
			print_text(trace, trace->args.key[i]);
			putchar(',');
			print_arg(trace, i);
			putchar('\n');
		}
}

static void print_problems(const struct ky_trace *trace)
{
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		printf("%s × %" PRIu64 " at %" PRId64 ": %s\n",
		       ky_text_of(trace, trace->problems.name[i]), trace->problems.number[i],
		       (int64_t)trace->problems.first_at[i],
		       trace->problems.first[i] ? ky_text_of(trace, trace->problems.first[i]) : "");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(const struct ky_trace *trace);
	} tables[] = {
		{"counts", print_counts}, {"slices", print_slices}, {"flows", print_flows},
		{"events", print_events}, {"args", print_args},     {"problems", print_problems},
	};
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	if (argc != 3)
		return 2;
	if (ky_load(&trace, argv[2], NULL, message) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (strcmp(tables[i].name, argv[1]) == 0)
			tables[i].print(trace);
	ky_trace_close(&trace);
	return 0;
}
