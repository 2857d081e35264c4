/* SPDX-License-Identifier: MIT */
/* cli_json.c: see cli_json.h. */
#include "cli/cli_json.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void new_line(struct ky_cli_json *json)
{
	fprintf(json->to, "\n%*s", (int)(json->depth * 2), "");
}

/* The comma, line and key before a value. */
static void before(struct ky_cli_json *json, const char *key)
{
	if (json->depth) {
		bool *const any = &json->any[json->depth - 1];
		const bool line = json->depth <= json->lines;
		fputs(*any ? (line ? "," : ", ") : "", json->to);
		*any = true;
		if (line)
			new_line(json);
	}
	if (key) {
		ky_cli_json_string(json->to, key, strlen(key));
		fputs(": ", json->to);
	}
}

void ky_cli_json_begin(struct ky_cli_json *json, const char *key, char bracket)
{
	before(json, key);
	fputc(bracket, json->to);
	json->any[json->depth++] = false;
}

void ky_cli_json_end(struct ky_cli_json *json, char bracket)
{
	const bool lines = json->depth <= json->lines && json->any[json->depth - 1];
	json->depth--;
	if (lines)
		new_line(json);
	fputc(bracket, json->to);
	if (!json->depth)
		fputc('\n', json->to);
}

void ky_cli_json_text(struct ky_cli_json *json, const char *key, const char *text)
{
	before(json, key);
	ky_cli_json_string(json->to, text, text ? strlen(text) : 0);
}

void ky_cli_json_name(struct ky_cli_json *json, const char *key, const struct ky_trace *trace,
		      uint32_t string)
{
	before(json, key);
	ky_cli_json_string(json->to, ky_text_of(trace, string),
			   ky_strings_bytes(&trace->strings, string));
}

void ky_cli_json_int(struct ky_cli_json *json, const char *key, int64_t value)
{
	before(json, key);
	fprintf(json->to, "%" PRId64, value);
}

void ky_cli_json_uint(struct ky_cli_json *json, const char *key, uint64_t value)
{
	before(json, key);
	fprintf(json->to, "%" PRIu64, value);
}

void ky_cli_json_real(struct ky_cli_json *json, const char *key, double value)
{
	before(json, key);
	if (isfinite(value))
		fprintf(json->to, "%.17g", value);
	else
		fputs("null", json->to);
}

void ky_cli_json_bool(struct ky_cli_json *json, const char *key, bool value)
{
	before(json, key);
	fputs(value ? "true" : "false", json->to);
}
