/* SPDX-License-Identifier: MIT */
/*
 * print.c: printf over recorded values.
 *
 * A conversion is parsed into a struct spec, its value is fetched, and a number is formatted by the
 * C library with a format put together from the checked parts: so numbers look exactly as the
 * program's own printf would show them, and no byte of the recorded format ever reaches the C
 * library. The clamped width and precision bound what a number needs; strings are copied by hand,
 * since they are bounded by their length and not by a NUL.
 */
#include "core/print.h"

#include "core/assert.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The longest number: the 309 digits of the largest double, a point, the precision, the sign. */
#define NUMBER_BYTES (KY_PRINT_WIDTH_MAX + 512)

static const char ellipsis[] = "…";

struct message {
	char *out;
	size_t room; /* without the NUL */
	size_t used;
	bool full; /* something did not fit */
};

enum length { LENGTH_CHAR, LENGTH_SHORT, LENGTH_INT, LENGTH_LONG };

struct spec {
	bool left, plus, space, alternate, zero;
	int width;
	int precision; /* -1 without one */
	enum length length;
	char conversion;
};

struct print_values {
	const struct kymo_arg *next;
	uint32_t left;
};

static void put(struct message *text, const char *data, size_t bytes)
{
	if (bytes > text->room - text->used) {
		bytes = text->room - text->used;
		text->full = true;
	}
	if (bytes > 0)
		memcpy(text->out + text->used, data, bytes);
	text->used += bytes;
	KY_ASSERT(text->used <= text->room);
}

static void put_spaces(struct message *text, size_t count)
{
	for (; count > 0 && !text->full; count--)
		put(text, " ", 1);
}

/* head and tail together, padded to the width. */
static void put_padded(struct message *text, const struct spec *spec, const char *head,
		       size_t head_bytes, const char *tail)
{
	const size_t bytes = head_bytes + strlen(tail);
	const size_t width = (size_t)spec->width;
	const size_t spaces = width > bytes ? width - bytes : 0;

	if (!spec->left)
		put_spaces(text, spaces);
	put(text, head, head_bytes);
	put(text, tail, strlen(tail));
	if (spec->left)
		put_spaces(text, spaces);
}

static const struct kymo_arg *next_value(struct print_values *values)
{
	if (values->left == 0)
		return NULL;
	values->left--;
	return values->next++;
}

/* For the C library: the flags, width and precision by '*', the size and the conversion. */
static void make_format(char format[16], const struct spec *spec, const char *size, char conversion)
{
	snprintf(format, 16, "%%%s%s%s%s%s*.*%s%c", spec->left ? "-" : "", spec->plus ? "+" : "",
		 spec->space ? " " : "", spec->alternate ? "#" : "", spec->zero ? "0" : "", size,
		 conversion);
}

static void put_number(struct message *text, const char *number, int bytes)
{
	if (bytes > 0)
		put(text, number, bytes < NUMBER_BYTES ? (size_t)bytes : NUMBER_BYTES - 1);
}

static void put_double(struct message *text, const struct spec *spec, char conversion, double value)
{
	char format[16];
	char number[NUMBER_BYTES];

	make_format(format, spec, "", conversion);
	put_number(text, number,
		   snprintf(number, sizeof(number), format, spec->width, spec->precision, value));
}

static void put_signed(struct message *text, const struct spec *spec, int64_t value)
{
	char format[16];
	char number[NUMBER_BYTES];

	make_format(format, spec, "ll", 'd');
	put_number(text, number,
		   snprintf(number, sizeof(number), format, spec->width, spec->precision,
			    (long long)value));
}

static void put_unsigned(struct message *text, const struct spec *spec, char conversion,
			 uint64_t value)
{
	char format[16];
	char number[NUMBER_BYTES];

	make_format(format, spec, "ll", conversion);
	put_number(text, number,
		   snprintf(number, sizeof(number), format, spec->width, spec->precision,
			    (unsigned long long)value));
}

static void put_pointer(struct message *text, const struct spec *spec, uint64_t value)
{
	struct spec plain = *spec;

	plain.plus = plain.space = false;
	plain.alternate = true;
	plain.precision = -1;
	if (value)
		put_unsigned(text, &plain, 'x', value);
	else
		put_padded(text, spec, "(nil)", 5, "");
}

static void put_string(struct message *text, const struct spec *spec, const struct kymo_arg *arg)
{
	const char *const string = arg->string ? arg->string : "(null)";
	const size_t recorded = strnlen(string, arg->string ? arg->string_bytes : SIZE_MAX);
	const size_t wanted = spec->precision < 0 ? SIZE_MAX : (size_t)spec->precision;
	const bool cut = arg->string && arg->cut && wanted > recorded;

	put_padded(text, spec, string, wanted < recorded ? wanted : recorded, cut ? ellipsis : "");
}

/* A value as its type shows best, for a conversion that does not fit it. */
static void put_as_recorded(struct message *text, const struct spec *spec,
			    const struct kymo_arg *arg)
{
	struct spec plain = *spec;

	plain.precision = -1;
	switch (arg->type) {
	case KYMO_TYPE_INT:
		put_signed(text, &plain, arg->value.i);
		break;
	case KYMO_TYPE_UINT:
		put_unsigned(text, &plain, 'u', arg->value.u);
		break;
	case KYMO_TYPE_DOUBLE:
		plain.precision = 15; /* decimal digits that a double holds for sure */
		put_double(text, &plain, 'g', arg->value.d);
		break;
	case KYMO_TYPE_BOOL:
		put_padded(text, spec, arg->value.u ? "true" : "false", arg->value.u ? 4 : 5, "");
		break;
	case KYMO_TYPE_POINTER:
		put_pointer(text, spec, arg->value.u);
		break;
	case KYMO_TYPE_STRING:
		put_string(text, &plain, arg);
		break;
	default:
		put_padded(text, spec, "(missing)", 9, "");
		break;
	}
}

/* The conversions below truncate as C does: the value passed through a variable of that type. */
static int64_t to_signed(uint64_t value, enum length length)
{
	switch (length) {
	case LENGTH_CHAR:
		return (int8_t)value;
	case LENGTH_SHORT:
		return (int16_t)value;
	case LENGTH_INT:
		return (int32_t)value;
	default:
		return (int64_t)value;
	}
}

static uint64_t to_unsigned(uint64_t value, enum length length)
{
	switch (length) {
	case LENGTH_CHAR:
		return (uint8_t)value;
	case LENGTH_SHORT:
		return (uint16_t)value;
	case LENGTH_INT:
		return (uint32_t)value;
	default:
		return value;
	}
}

static void put_character(struct message *text, const struct spec *spec, uint64_t value)
{
	const bool wide = spec->length == LENGTH_LONG && value > 0x7f;
	const char c = wide ? '?' : (char)(unsigned char)value;

	put_padded(text, spec, &c, c != '\0', ""); /* a NUL would end the message */
}

static bool is_integer(const struct kymo_arg *arg)
{
	return arg->type == KYMO_TYPE_INT || arg->type == KYMO_TYPE_UINT ||
	       arg->type == KYMO_TYPE_BOOL || arg->type == KYMO_TYPE_POINTER;
}

static void put_integer(struct message *text, const struct spec *spec, const struct kymo_arg *arg)
{
	const uint64_t value = arg->value.u;
	/* C has no pointers here: the program meant the whole of it. */
	const enum length length = arg->type == KYMO_TYPE_POINTER ? LENGTH_LONG : spec->length;

	switch (spec->conversion) {
	case 'd':
	case 'i':
		put_signed(text, spec, to_signed(value, length));
		break;
	case 'c':
		put_character(text, spec, value);
		break;
	case 'p':
		put_pointer(text, spec, value);
		break;
	default:
		put_unsigned(text, spec, spec->conversion, to_unsigned(value, length));
		break;
	}
}

static void put_value(struct message *text, const struct spec *spec, const struct kymo_arg *arg)
{
	if (!arg)
		put_padded(text, spec, "(missing)", 9, "");
	else if (spec->conversion == 's' && arg->type == KYMO_TYPE_STRING)
		put_string(text, spec, arg);
	else if (strchr("diuxXocp", spec->conversion) && is_integer(arg))
		put_integer(text, spec, arg);
	else if (!strchr("fFeEgGaA", spec->conversion))
		put_as_recorded(text, spec, arg);
	else if (arg->type == KYMO_TYPE_DOUBLE)
		put_double(text, spec, spec->conversion, arg->value.d);
	else if (arg->type == KYMO_TYPE_INT)
		put_double(text, spec, spec->conversion, (double)arg->value.i);
	else if (is_integer(arg))
		put_double(text, spec, spec->conversion, (double)arg->value.u);
	else
		put_as_recorded(text, spec, arg);
}

static const char *parse_flags(const char *at, struct spec *spec)
{
	for (;; at++) {
		if (*at == '-')
			spec->left = true;
		else if (*at == '+')
			spec->plus = true;
		else if (*at == ' ')
			spec->space = true;
		else if (*at == '#')
			spec->alternate = true;
		else if (*at == '0')
			spec->zero = true;
		else if (*at != '\'') /* grouping of digits, which is the locale's */
			return at;
	}
}

static int clamp(int64_t value)
{
	if (value < -KY_PRINT_WIDTH_MAX)
		return -KY_PRINT_WIDTH_MAX;
	return value > KY_PRINT_WIDTH_MAX ? KY_PRINT_WIDTH_MAX : (int)value;
}

/* Digits or a '*'; *number is as it was when there is neither, or no integer for the '*'. */
static const char *parse_number(const char *at, struct print_values *values, int *number)
{
	if (*at == '*') {
		const struct kymo_arg *const arg = next_value(values);
		if (arg && is_integer(arg))
			*number = clamp(to_signed(arg->value.u, LENGTH_INT));
		return at + 1;
	}
	for (int value = 0; *at >= '0' && *at <= '9'; at++)
		*number = value = clamp(value * 10 + (*at - '0'));
	return at;
}

static const char *parse_length(const char *at, struct spec *spec)
{
	if (at[0] == 'h') {
		spec->length = at[1] == 'h' ? LENGTH_CHAR : LENGTH_SHORT;
		return at + (at[1] == 'h' ? 2 : 1);
	}
	while (*at && strchr("lqjztL", *at)) {
		spec->length = LENGTH_LONG;
		at++;
	}
	return at;
}

/* Parses what follows a '%', up to its last character; NULL when it is no conversion. */
static const char *parse_spec(const char *at, struct print_values *values, struct spec *spec)
{
	*spec = (struct spec){.precision = -1, .length = LENGTH_INT};
	at = parse_flags(at, spec);
	at = parse_number(at, values, &spec->width);
	if (spec->width < 0) {
		spec->left = true;
		spec->width = -spec->width;
	}
	if (*at == '.') {
		spec->precision = 0;
		at = parse_number(at + 1, values, &spec->precision);
	}
	at = parse_length(at, spec);
	spec->conversion = *at;
	return *at && strchr("diuxXocspfFeEgGaAn%", *at) ? at + 1 : NULL;
}

/* One conversion; returns where the format goes on. */
static const char *put_conversion(struct message *text, const char *percent,
				  struct print_values *values)
{
	const struct print_values before = *values;
	struct spec spec;
	const char *const after = parse_spec(percent + 1, values, &spec);

	if (!after) {
		*values = before;
		put(text, percent, 1);
		return percent + 1;
	}
	if (spec.conversion == '%') {
		put(text, "%", 1);
		return after;
	}
	const struct kymo_arg *const arg = next_value(values);
	if (spec.conversion != 'n')
		put_value(text, &spec, arg);
	return after;
}

/* Whether the byte is within a character of UTF-8 and does not begin one. */
static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Makes room for the ellipsis, between characters and not within one. */
static void end_full(struct message *text)
{
	const size_t bytes = sizeof(ellipsis) - 1;

	if (text->room < bytes)
		return;
	if (text->used > text->room - bytes)
		text->used = text->room - bytes;
	for (int i = 0; i < 3 && text->used > 0 && is_continuation(text->out[text->used]); i++)
		text->used--;
	memcpy(text->out + text->used, ellipsis, bytes);
	text->used += bytes;
}

size_t ky_print(char *out, size_t room, const char *fmt, const struct kymo_arg *args,
		uint32_t count)
{
	if (room == 0)
		return 0;
	struct message text = {.out = out, .room = room - 1};
	struct print_values values = {args, count};

	while (*fmt && !text.full) {
		const size_t plain = strcspn(fmt, "%");
		put(&text, fmt, plain);
		fmt += plain;
		if (*fmt)
			fmt = put_conversion(&text, fmt, &values);
	}
	if (text.full)
		end_full(&text);
	out[text.used] = '\0';
	return text.used;
}
