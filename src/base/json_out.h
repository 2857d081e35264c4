/* SPDX-License-Identifier: MIT */
/*
 * json_out.h: the JSON emitter: begin, values, end in their order, and commas, lines, escapes and the repair of what is
 * not UTF-8 are its business. It writes to a file or to a growing buffer:
 *
 *   struct ky_json_out json = {.file = stdout, .lines = 2};   items of the two outer levels on lines of their own
 *   struct ky_json_out json = {.buffer = &answer};            all on one line without spaces, for programs
 *
 * The last structural byte decides about the next comma: none is due behind an opening bracket, a key, or nothing.
 */
#ifndef KY_BASE_JSON_OUT_H
#define KY_BASE_JSON_OUT_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ky_json_out {
	/* One of the two. */
	FILE *file;
	struct ky_buffer *buffer;
	/* Levels whose items have lines of their own; with a file only. */
	unsigned lines;
	/* Private. */
	unsigned depth;
	char last;
};

/* Each value has a key in an object, and NULL in an array or as the outermost value. */

/* Open an object '{' or an array '['. */
void ky_json_out_begin(struct ky_json_out *json, const char *key, char bracket);
/* Close it with '}' or ']'; the outermost one in a file also ends the line. */
void ky_json_out_end(struct ky_json_out *json, char bracket);
/* Write a string; NULL is null. */
void ky_json_out_string(struct ky_json_out *json, const char *key, const char *text, size_t bytes);
void ky_json_out_text(struct ky_json_out *json, const char *key, const char *text);
/* Write a number. */
void ky_json_out_int(struct ky_json_out *json, const char *key, int64_t value);
void ky_json_out_uint(struct ky_json_out *json, const char *key, uint64_t value);
/* Write a number that reads back as the same double; null when it is not finite. */
void ky_json_out_real(struct ky_json_out *json, const char *key, double value);
/* Write a number as a string of digits: for those that a double cannot hold. */
void ky_json_out_digits(struct ky_json_out *json, const char *key, int64_t value);
void ky_json_out_bool(struct ky_json_out *json, const char *key, bool value);
void ky_json_out_null(struct ky_json_out *json, const char *key);
/* Write a value that is JSON already. */
void ky_json_out_raw(struct ky_json_out *json, const char *key, const char *value, size_t bytes);

#endif
