/* SPDX-License-Identifier: MIT */
/* quantity.c: see quantity.h. */
#include "model/quantity.h"

#include "base/chars.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct unit {
	const char *name;
	double size;
	double below; /* larger values take the next unit */
};

#define THREE_DIGITS(size) ((size)*999.5)
#define ANY (INFINITY)

#define MICRO "\u00b5s"
static const struct unit time_units[] = {
	{"ns", 1, THREE_DIGITS(1)}, {MICRO, 1e3, THREE_DIGITS(1e3)}, {"ms", 1e6, THREE_DIGITS(1e6)},
	{"s", 1e9, 119.5e9},        {"min", 60e9, 119.5 * 60e9},     {"h", 3600e9, 47.95 * 3600e9},
	{"d", 86400e9, ANY},
};
static const struct unit count_units[] = {
	{"k", 1e3, THREE_DIGITS(1e3)},   {"M", 1e6, THREE_DIGITS(1e6)},
	{"G", 1e9, THREE_DIGITS(1e9)},   {"T", 1e12, THREE_DIGITS(1e12)},
	{"P", 1e15, THREE_DIGITS(1e15)}, {"E", 1e18, ANY},
};
static const struct unit byte_units[] = {
	{"KiB", 0x1p10, THREE_DIGITS(0x1p10)}, {"MiB", 0x1p20, THREE_DIGITS(0x1p20)},
	{"GiB", 0x1p30, THREE_DIGITS(0x1p30)}, {"TiB", 0x1p40, THREE_DIGITS(0x1p40)},
	{"PiB", 0x1p50, THREE_DIGITS(0x1p50)}, {"EiB", 0x1p60, ANY},
};

static const char *with_unit(char *buf, double value, const struct unit *unit)
{
	const double size = fabs(value);
	while (size >= unit->below)
		unit++;
	const double scaled = size / unit->size;
	const int digits = unit->size <= 1 ? 0 : scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
	snprintf(buf, KY_QUANTITY_BYTES, "%s%.*f %s", value < 0 ? "-" : "", digits, scaled,
		 unit->name);
	return buf;
}

static bool ascii;

void ky_quantity_set_ascii(bool only)
{
	ascii = only;
}

const char *ky_quantity_duration(char *buf, int64_t ns)
{
	with_unit(buf, (double)ns, time_units);
	char *const micro = ascii ? strstr(buf, MICRO) : NULL;
	if (micro)
		memcpy(micro, "us", sizeof("us"));
	return buf;
}

const char *ky_quantity_count(char *buf, uint64_t n)
{
	if (n >= 10000)
		return with_unit(buf, (double)n, count_units);
	snprintf(buf, KY_QUANTITY_BYTES, "%" PRIu64, n);
	return buf;
}

const char *ky_quantity_bytes(char *buf, uint64_t bytes)
{
	if (bytes >= 1000)
		return with_unit(buf, (double)bytes, byte_units);
	snprintf(buf, KY_QUANTITY_BYTES, "%" PRIu64 " B", bytes);
	return buf;
}

static const struct {
	const char *name;
	int64_t ns;
} typed_units[] = {
	{"", 1},
	{"ns", 1},
	{"us", 1000},
	{MICRO, 1000},
	{"\u03bcs", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
	{"m", 60000000000},
	{"min", 60000000000},
	{"h", 3600000000000},
	{"d", 86400000000000},
};

static int64_t unit_ns(const char *name)
{
	for (size_t i = 0; i < sizeof(typed_units) / sizeof(typed_units[0]); i++) {
		if (strcmp(typed_units[i].name, name) == 0)
			return typed_units[i].ns;
	}
	return 0;
}

const char *ky_quantity_date(char *buf, int64_t ns)
{
	int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
	if (rest < 0) {
		rest += 1000000000;
		seconds--;
	}
	const time_t whole = (time_t)seconds;
	struct tm tm;
	char text[24];
	if (!gmtime_r(&whole, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		snprintf(text, sizeof(text), "%" PRId64, seconds);
	snprintf(buf, KY_QUANTITY_DATE_BYTES, "%s.%09" PRId64 "Z", text, rest);
	return buf;
}

/*
 * Not strtod(), which takes the locale's comma, "inf" and hexadecimals, and has too few digits
 * for a time since 1970: what is before the point is counted exactly.
 */
bool ky_quantity_parse_ns(const char *text, int64_t *ns)
{
	const bool negative = *text == '-';
	const char *at = text + (*text == '-' || *text == '+');
	int64_t whole = 0;
	double fraction = 0;
	if (!ky_chars_is_digit(at[0]) && !(at[0] == '.' && ky_chars_is_digit(at[1])))
		return false;
	for (; ky_chars_is_digit(*at); at++) {
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, *at - '0', &whole))
			return false;
	}
	if (*at == '.') {
		double scale = 0.1;
		for (at++; ky_chars_is_digit(*at); at++, scale /= 10)
			fraction += (*at - '0') * scale;
	}
	while (*at == ' ')
		at++;
	const int64_t unit = unit_ns(at);
	if (!unit || __builtin_mul_overflow(whole, unit, &whole) ||
	    __builtin_add_overflow(whole, (int64_t)(fraction * (double)unit + 0.5), &whole))
		return false;
	*ns = negative ? -whole : whole;
	return true;
}

bool ky_quantity_lacks_unit(const char *text)
{
	int64_t ns;
	const size_t bytes = strlen(text);
	return bytes && strchr("0123456789.", text[bytes - 1]) && ky_quantity_parse_ns(text, &ns) &&
	       ns;
}

bool ky_quantity_parse_duration(const char *text, int64_t *ns)
{
	return !ky_quantity_lacks_unit(text) && ky_quantity_parse_ns(text, ns);
}
