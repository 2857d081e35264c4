/* SPDX-License-Identifier: MIT */
/*
 * fuzz_print.c: any format with any values into any room. An input is:
 *
 *	room (1 byte), number of values (1 byte),
 *	for each its type (1 byte) and value (8 bytes; of a string its length, then its bytes),
 *	the format
 */
#include "core/print.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
	const uint8_t *at;
	size_t left;
};

/* Copies the next bytes, zeros beyond the end. */
static void take(struct input *input, void *out, size_t bytes)
{
	const size_t there = bytes < input->left ? bytes : input->left;

	memset(out, 0, bytes);
	if (there)
		memcpy(out, input->at, there);
	input->at += there;
	input->left -= there;
}

/* A string in memory of exactly its size, and so without a NUL at the end. */
static char *take_string(struct input *input, uint32_t *bytes)
{
	if (*bytes > input->left)
		*bytes = (uint32_t)input->left;
	char *const string = malloc(*bytes ? *bytes : 1);
	if (!string)
		abort();
	take(input, string, *bytes);
	return string;
}

static void take_arg(struct input *input, struct kymo_arg *arg)
{
	uint8_t type;

	take(input, &type, 1);
	take(input, &arg->value, 8);
	arg->key = "";
	arg->type = type & 7;
	arg->cut = type >> 7;
	if (arg->type == KYMO_TYPE_STRING && !(type & 0x40)) {
		arg->string_bytes = (uint32_t)(arg->value.u & 0x3f);
		arg->string = take_string(input, &arg->string_bytes);
	}
}

static void print(const struct input *format, size_t room, const struct kymo_arg *args,
		  uint32_t count)
{
	char *const fmt = malloc(format->left + 1);
	char *const out = malloc(room ? room : 1);

	if (!fmt || !out)
		abort();
	memcpy(fmt, format->at, format->left);
	fmt[format->left] = '\0';
	const size_t used = ky_print(out, room, fmt, args, count);
	if (room ? used >= room || strlen(out) != used : used != 0)
		abort();
	free(out);
	free(fmt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct input input = {data, bytes};
	struct kymo_arg args[KYMO_ARGS_MAX] = {{0}};
	uint8_t head[2];

	take(&input, head, sizeof(head));
	const uint32_t count = head[1] % (KYMO_ARGS_MAX + 1);
	for (uint32_t i = 0; i < count; i++)
		take_arg(&input, &args[i]);
	print(&input, head[0] * 8u, args, count);
	print(&input, head[0] & 0xf, args, count);
	for (uint32_t i = 0; i < count; i++)
		free((void *)(uintptr_t)args[i].string);
	return 0;
}
