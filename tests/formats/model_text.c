/* SPDX-License-Identifier: MIT */
/*
 * model_text.c: a trace as sorted lines. Keys are without the prefix of their format; numbers are decimal whether signed
 * or not, pointers hexadecimal, as JSON has them.
 */
#include "model_text.h"

#include "formats/arg_tree.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct ky_trace *trace, uint32_t string)
{
	const char *text = ky_text_of(trace, string);
	return text ? text : "";
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Sorts and joins lines, and frees them. */
static char *join(char **lines, uint32_t count)
{
	char *all = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&all, &bytes);
	assert(to);
	if (count)
		qsort(lines, count, sizeof(*lines), by_text);
	for (uint32_t i = 0; i < count; i++) {
		fprintf(to, "%s\n", lines[i]);
		free(lines[i]);
	}
	fclose(to);
	free(lines);
	return all;
}

static void print_arg(FILE *to, const struct ky_trace *trace, uint32_t arg)
{
	const struct ky_text key = ky_arg_key(trace, arg);
	const uint64_t value = trace->args.value[arg];
	double real;
	fprintf(to, " %.*s=", (int)key.bytes, key.data);
	switch (trace->args.type[arg]) {
	case KY_ARG_INT:
		fprintf(to, "%" PRId64, (int64_t)value);
		break;
	case KY_ARG_UINT:
		fprintf(to, "%" PRIu64, value);
		break;
	case KY_ARG_REAL:
		memcpy(&real, &value, sizeof(real));
		fprintf(to, "%.17g", real);
		break;
	case KY_ARG_BOOL:
		fputs(value ? "true" : "false", to);
		break;
	case KY_ARG_POINTER:
		fprintf(to, "0x%" PRIx64, value);
		break;
	case KY_ARG_NULL:
		fputs("null", to);
		break;
	default:
		fputs(text_of(trace, (uint32_t)value), to);
	}
}

static void print_thread(FILE *to, const struct ky_trace *trace, uint32_t slice)
{
	const uint32_t track = trace->slices.track[slice];
	const uint32_t thread = ky_track_thread(trace, track);
	if (thread == KY_NONE || trace->slices.kind[slice] == KY_SLICE_INSTANT)
		return;
	const uint32_t process = trace->threads.process[thread];
	fprintf(to, " thread %" PRId64 "/%" PRId64 " %s",
		process == KY_NONE ? -1 : trace->processes.pid[process], trace->threads.tid[thread],
		text_of(trace, trace->threads.name[thread]));
}

char *model_slices(const struct ky_trace *trace)
{
	const struct ky_slices *s = &trace->slices;
	char **lines = calloc((size_t)s->rows.count + 1, sizeof(*lines));
	assert(lines);
	for (uint32_t i = 0; i < s->rows.count; i++) {
		size_t bytes;
		FILE *to = open_memstream(&lines[i], &bytes);
		fprintf(to, "%" PRId64 " %" PRId64 " %s [%s] %s depth %u", s->ts[i], s->dur[i],
			text_of(trace, s->name[i]), text_of(trace, s->category[i]),
			s->kind[i] == KY_SLICE_INSTANT ? "instant" : "span", s->depth[i]);
		print_thread(to, trace, i);
		for (uint32_t arg = ky_arg_set_first(trace, s->args[i]);
		     arg < ky_arg_set_end(trace, s->args[i]); arg++)
			print_arg(to, trace, arg);
		fclose(to);
	}
	return join(lines, s->rows.count);
}

char *model_flows(const struct ky_trace *trace)
{
	const struct ky_flows *f = &trace->flows;
	const struct ky_slices *s = &trace->slices;
	char **lines = calloc((size_t)f->rows.count + 1, sizeof(*lines));
	assert(lines);
	for (uint32_t i = 0; i < f->rows.count; i++)
		assert(asprintf(&lines[i], "%" PRId64 " %s -> %" PRId64 " %s", s->ts[f->out[i]],
				text_of(trace, s->name[f->out[i]]), s->ts[f->in[i]],
				text_of(trace, s->name[f->in[i]])) > 0);
	return join(lines, f->rows.count);
}

char *model_counters(const struct ky_trace *trace)
{
	const struct ky_counters *c = &trace->counters;
	char **lines = calloc((size_t)c->rows.count + 1, sizeof(*lines));
	assert(lines);
	for (uint32_t i = 0; i < c->rows.count; i++)
		assert(asprintf(&lines[i], "%" PRId64 " %.17g", c->ts[i], c->value[i]) > 0);
	return join(lines, c->rows.count);
}
