/* SPDX-License-Identifier: MIT */
/* problems.c: what is wrong with the input, a row a kind, with how often and the first place. */
#include "model/build.h"

#include <stdarg.h>
#include <stdio.h>

/* The row of that kind, made with number 0; KY_NONE without memory. */
static uint32_t row_of(struct ky_trace *trace, const char *name, enum ky_severity severity,
		       uint64_t at)
{
	struct ky_problems *problems = &trace->problems;
	const uint32_t input = trace->build ? trace->build->input : 0;
	const uint32_t number = ky_string_z(trace, name);
	for (uint32_t i = 0; i < problems->rows.count; i++)
		if (problems->name[i] == number && problems->input[i] == input)
			return i;
	const uint32_t row = ky_append(trace, problems);
	if (row == KY_NONE)
		return KY_NONE;
	problems->name[row] = number;
	problems->severity[row] = (uint8_t)severity;
	problems->number[row] = 0;
	problems->first_at[row] = at;
	problems->first[row] = 0;
	problems->input[row] = input;
	return row;
}

void ky_problem(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		const char *format, ...)
{
	const uint32_t row = row_of(trace, name, severity, at);
	if (row == KY_NONE || trace->problems.number[row]++ != 0)
		return;
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	trace->problems.first[row] = ky_string_z(trace, text);
}

void ky_problems(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		 uint64_t number)
{
	const uint32_t row = number ? row_of(trace, name, severity, at) : KY_NONE;
	if (row != KY_NONE)
		trace->problems.number[row] += number;
}
