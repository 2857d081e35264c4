/* SPDX-License-Identifier: MIT */
/* buffer.h: JSON answers in a buffer. */
#ifndef KY_SERVER_BUFFER_H
#define KY_SERVER_BUFFER_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * JSON. Each value is preceded by a comma unless it is the first of its object or array, or follows a key: who
 * writes says begin, key, value, end in their order and nothing of commas.
 */
void ky_json_begin(struct ky_buffer *buffer, char bracket); /* '{' or '[' */
void ky_json_end(struct ky_buffer *buffer, char bracket);   /* '}' or ']' */
void ky_json_key(struct ky_buffer *buffer, const char *key);
/* What is no UTF-8 is replaced; NULL is null. */
void ky_json_string(struct ky_buffer *buffer, const char *text, size_t bytes);
void ky_json_text(struct ky_buffer *buffer, const char *text);
void ky_json_int(struct ky_buffer *buffer, int64_t value);
/* As a string of digits: for what a double cannot hold. */
void ky_json_digits(struct ky_buffer *buffer, int64_t value);
void ky_json_uint(struct ky_buffer *buffer, uint64_t value);
/* What JSON has no number for is null. */
void ky_json_real(struct ky_buffer *buffer, double value);
void ky_json_bool(struct ky_buffer *buffer, bool value);
void ky_json_null(struct ky_buffer *buffer);

#endif
