/* SPDX-License-Identifier: MIT */
/* buffer.c: see buffer.h. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MIN 256

void ky_buffer_free(struct ky_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct ky_buffer){0};
}

static bool fail(struct ky_buffer *buffer)
{
	buffer->failed = true;
	return false;
}

/* Make room for one byte more than asked for, so that printf has room for its NUL. */
static bool grow(struct ky_buffer *buffer, size_t bytes)
{
	if (buffer->failed)
		return false;
	if (bytes >= SIZE_MAX / 4 - buffer->bytes)
		return fail(buffer);
	const size_t need = buffer->bytes + bytes + 1;
	if (need <= buffer->room)
		return true;
	size_t room = buffer->room ? buffer->room : BYTES_MIN;
	while (room < need)
		room *= 2;
	char *const data = realloc(buffer->data, room);
	if (!data)
		return fail(buffer);
	buffer->data = data;
	buffer->room = room;
	return true;
}

void *ky_buffer_reserve(struct ky_buffer *buffer, size_t bytes)
{
	if (!grow(buffer, bytes))
		return NULL;
	void *const at = buffer->data + buffer->bytes;
	buffer->bytes += bytes;
	return at;
}

void ky_buffer_add(struct ky_buffer *buffer, const void *data, size_t bytes)
{
	void *const at = ky_buffer_reserve(buffer, bytes);
	if (at && bytes)
		memcpy(at, data, bytes);
}

void ky_buffer_text(struct ky_buffer *buffer, const char *text)
{
	ky_buffer_add(buffer, text, strlen(text));
}

void ky_buffer_format(struct ky_buffer *buffer, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	const int bytes = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (bytes < 0 || !grow(buffer, (size_t)bytes)) {
		buffer->failed = true;
		return;
	}
	va_start(arguments, format);
	vsnprintf(buffer->data + buffer->bytes, (size_t)bytes + 1, format, arguments);
	va_end(arguments);
	buffer->bytes += (size_t)bytes;
}
