/* SPDX-License-Identifier: MIT */
/*
 * cli_json.h: JSON for machines on standard output. Commas and lines are its business: the outer
 * levels have a line for each item, what is deeper is on one line.
 */
#ifndef KY_CLI_CLI_JSON_H
#define KY_CLI_CLI_JSON_H

#include "model/trace.h"

#include <stdio.h>

#define KY_CLI_JSON_DEPTH 16

struct ky_cli_json {
	FILE *to;
	unsigned depth;
	unsigned lines; /* levels whose items have lines of their own */
	bool any[KY_CLI_JSON_DEPTH];
};

/* key is NULL in arrays and for the outermost value. */
void ky_cli_json_begin(struct ky_cli_json *json, const char *key, char bracket);
/* Of the outermost one: ends the line. */
void ky_cli_json_end(struct ky_cli_json *json, char bracket);
void ky_cli_json_text(struct ky_cli_json *json, const char *key, const char *text);
/* A text of the trace; 0 is null. */
void ky_cli_json_name(struct ky_cli_json *json, const char *key, const struct ky_trace *trace,
		      uint32_t string);
void ky_cli_json_int(struct ky_cli_json *json, const char *key, int64_t value);
void ky_cli_json_uint(struct ky_cli_json *json, const char *key, uint64_t value);
/* What is no number is null. */
void ky_cli_json_real(struct ky_cli_json *json, const char *key, double value);
void ky_cli_json_bool(struct ky_cli_json *json, const char *key, bool value);

#endif
