/* SPDX-License-Identifier: MIT */
/*
 * buffer.h: bytes that grow. An append without memory marks the buffer as failed and does nothing else, as do all
 * later ones: the owner checks once, at the end. All zero is an empty buffer; its data is from malloc, so that it
 * can be handed on.
 */
#ifndef KY_BASE_BUFFER_H
#define KY_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_buffer {
	char *data;
	size_t bytes, room;
	bool failed;
};

/* Free the bytes and make the buffer empty. */
void ky_buffer_free(struct ky_buffer *buffer);
/* Append bytes. */
void ky_buffer_add(struct ky_buffer *buffer, const void *data, size_t bytes);
/* Append a text without its NUL. */
void ky_buffer_text(struct ky_buffer *buffer, const char *text);
/* Append formatted text. */
void ky_buffer_format(struct ky_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Append that many bytes for the caller to fill and return where; NULL when the buffer has failed. */
void *ky_buffer_reserve(struct ky_buffer *buffer, size_t bytes);

#endif
