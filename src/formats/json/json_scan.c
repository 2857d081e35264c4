/* SPDX-License-Identifier: MIT */
/*
 * json_scan.c: see json_scan.h. Strings are searched 16 bytes at a time where the machine has SSE2,
 * else 8 at a time in a word. Values are stepped over without a stack: the depth is counted, and
 * which bracket closes which is not looked at.
 */
#include "formats/json/json_scan.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>

#include "base/chars.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define NUMBER_BYTES_MAX 512u /* longer ones are cut: no double has that many digits that matter */

#if defined(__SSE2__)
#define STEP 16u
/* A bit for each of 16 bytes that is a quote or a backslash. */
static inline uint32_t marks(const uint8_t *at)
{
	const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
	const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
	const __m128i back = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
	return (uint32_t)_mm_movemask_epi8(_mm_or_si128(quote, back));
}

static inline uint32_t first_mark(uint32_t bits)
{
	return (uint32_t)__builtin_ctz(bits);
}
#else
#define STEP 1u
static inline uint32_t marks(const uint8_t *at)
{
	return *at == '"' || *at == '\\';
}

static inline uint32_t first_mark(uint32_t bits)
{
	(void)bits;
	return 0;
}
#endif

/* Return the next quote or backslash, or end. */
static inline const uint8_t *find_mark(const uint8_t *at, const uint8_t *end)
{
	while ((size_t)(end - at) >= STEP) {
		const uint32_t bits = marks(at);
		if (bits)
			return at + first_mark(bits);
		at += STEP;
	}
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

const uint8_t *ky_json_scan_string(const uint8_t *at, const uint8_t *end, struct ky_json_text *text)
{
	text->at = at;
	text->escapes = false;
	for (;;) {
		at = find_mark(at, end);
		if (at >= end)
			return NULL;
		if (*at == '"')
			break;
		text->escapes = true;
		if (end - at < 2)
			return NULL;
		at += 2;
	}
	text->bytes = (size_t)(at - text->at);
	return at + 1;
}

static bool ends_scalar(uint8_t c)
{
	return c == ',' || c == '}' || c == ']' || c == ':' || c == ' ' || c == '\n' || c == '\r' ||
	       c == '\t';
}

static const uint8_t *skip_scalar(const uint8_t *at, const uint8_t *end, enum ky_json_fault *fault)
{
	const uint8_t *from = at;
	while (at < end && !ends_scalar(*at) && *at != '"' && *at != '{' && *at != '[')
		at++;
	*fault = at >= end ? KY_JSON_CUT : KY_JSON_BAD;
	if (at >= end || at == from)
		return NULL;
	/* true, false, null or something that begins like a number: the rest is the parser's. */
	const bool begins = (*from >= '0' && *from <= '9') || *from == '-' || *from == 't' ||
			    *from == 'f' || *from == 'n' || *from == 'N' || *from == 'I';
	return begins ? at : NULL;
}

static const uint8_t *skip_nested(const uint8_t *at, const uint8_t *end, enum ky_json_fault *fault)
{
	struct ky_json_text text;
	uint64_t depth = 0;

	*fault = KY_JSON_CUT;
	while (at < end) {
		const uint8_t c = *at++;
		if (c == '"') {
			at = ky_json_scan_string(at, end, &text);
			if (!at)
				return NULL;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (--depth == 0)
				return at;
		}
	}
	return NULL;
}

const uint8_t *ky_json_skip(const uint8_t *at, const uint8_t *end, enum ky_json_fault *fault)
{
	struct ky_json_text text;

	if (*at == '"') {
		*fault = KY_JSON_CUT;
		return ky_json_scan_string(at + 1, end, &text);
	}
	if (*at == '{' || *at == '[')
		return skip_nested(at, end, fault);
	return skip_scalar(at, end, fault);
}

static bool is_digit(uint8_t c)
{
	return (uint8_t)(c - '0') < 10;
}

/* Count the digits before the first other byte of 8, the first being the lowest. */
static inline uint32_t digits_in(uint64_t word)
{
	const uint64_t x = word ^ 0x3030303030303030u;
	const uint64_t others = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
	return others ? (uint32_t)__builtin_ctzll(others) / 8 : 8;
}

/* The number that the first count bytes are, 1 to 8 of them: two, four and eight digits at a time. */
static inline uint64_t number_in(uint64_t word, uint32_t count)
{
	word <<= 64 - 8 * count;
	word = (word & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
	word = (word & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
	return (word & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

/* Up to 18 digits; the place behind them all. */
static inline const uint8_t *digits(const uint8_t *at, const uint8_t *end, uint64_t *value,
				    uint32_t *count)
{
	static const uint32_t scale[9] = {1,      10,      100,      1000,     10000,
					  100000, 1000000, 10000000, 100000000};
	uint64_t sum = 0;
	const uint8_t *from = at;
	for (uint32_t got = 8; got == 8 && at - from < 16 && end - at >= 8; at += got) {
		uint64_t word;
		memcpy(&word, at, 8);
		word = le64toh(word);
		got = digits_in(word);
		if (got)
			sum = sum * scale[got] + number_in(word, got);
	}
	while (at < end && is_digit(*at) && at - from < 18)
		sum = sum * 10 + (uint64_t)(*at++ - '0');
	*value = sum;
	*count = (uint32_t)(at - from);
	return at;
}

static const uint8_t *number_end(const uint8_t *at, const uint8_t *end)
{
	while (at < end && (is_digit(*at) || *at == '-' || *at == '+' || *at == '.' || *at == 'e' ||
			    *at == 'E'))
		at++;
	return at;
}

/* Convert exactly these bytes with the C library. */
static bool number_slow(const uint8_t *at, size_t bytes, struct ky_json_number *number)
{
	char copy[NUMBER_BYTES_MAX + 1];
	char *stop;

	if (bytes == 0 || bytes > NUMBER_BYTES_MAX)
		return false;
	memcpy(copy, at, bytes);
	copy[bytes] = '\0';
	for (size_t i = 0; i < bytes; i++)
		if (copy[i] != '-' && copy[i] != '+' && copy[i] != '.' && copy[i] != 'e' &&
		    copy[i] != 'E' && !is_digit((uint8_t)copy[i]))
			return false;
	number->d = strtod(copy, &stop);
	number->integer = false;
	number->i = 0;
	if (*stop != '\0')
		return false;
	if (!strpbrk(copy, ".eE") && fabs(number->d) < 9.3e18) {
		const long long i = strtoll(copy, &stop, 10);
		number->integer = i != INT64_MAX && i != INT64_MIN;
		number->i = i;
	}
	return true;
}

const uint8_t *ky_json_number(const uint8_t *at, const uint8_t *end, struct ky_json_number *number,
			      enum ky_json_fault *fault)
{
	const bool minus = *at == '-';
	uint64_t value;
	uint32_t count;
	const uint8_t *stop = digits(at + minus, end, &value, &count);

	*fault = KY_JSON_CUT;
	if (stop >= end)
		return NULL;
	if (count > 0 && ends_scalar(*stop)) {
		number->integer = true;
		number->i = minus ? -(int64_t)value : (int64_t)value;
		number->d = (double)number->i;
		return stop;
	}
	stop = number_end(stop, end);
	if (stop >= end)
		return NULL;
	*fault = KY_JSON_BAD;
	return ends_scalar(*stop) && number_slow(at, (size_t)(stop - at), number) ? stop : NULL;
}

bool ky_json_number_text(const uint8_t *at, size_t bytes, struct ky_json_number *number)
{
	const bool minus = bytes > 0 && *at == '-';
	uint64_t value;
	uint32_t count;
	const uint8_t *end = at + bytes;

	if (digits(at + minus, end, &value, &count) != end || count == 0)
		return number_slow(at, bytes, number);
	number->integer = true;
	number->i = minus ? -(int64_t)value : (int64_t)value;
	number->d = (double)number->i;
	return true;
}

/* Add the digits of a number to *value, as many as fit. Return the power of ten that the rest leaves. */
static int add_digits(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	int power = 0;
	bool point = false;
	for (; *at < end && (is_digit(**at) || (**at == '.' && !point)); (*at)++) {
		if (**at == '.') {
			point = true;
			continue;
		}
		const bool fits = *value < UINT64_MAX / 10 - 1;
		if (fits)
			*value = *value * 10 + (uint64_t)(**at - '0');
		power += (fits ? 0 : 1) - (point ? 1 : 0);
	}
	return power;
}

/* Multiply by a power of ten; round half away from zero. Return false when it does not fit. */
static bool scale_decimal(uint64_t *value, int64_t power)
{
	for (; power > 0 && *value != 0; power--)
		if (__builtin_mul_overflow(*value, 10, value))
			return false;
	for (; power < -1 && *value != 0; power++)
		*value /= 10;
	if (power == -1)
		*value = *value / 10 + (*value % 10 >= 5);
	return *value <= INT64_MAX;
}

bool ky_json_decimal(const uint8_t *at, size_t bytes, int power, int64_t *value)
{
	const uint8_t *end = at + bytes;
	struct ky_json_number number;
	uint64_t sum = 0, exponent = 0;
	if (!ky_json_number_text(at, bytes, &number))
		return false;
	const bool minus = *at == '-';
	at += *at == '-' || *at == '+';
	int64_t scale = (int64_t)power + add_digits(&at, end, &sum);
	if (at < end) { /* e or E: the rest is known to be good */
		const bool down = at[1] == '-';
		for (at += 1 + (at[1] == '-' || at[1] == '+'); at < end; at++)
			exponent =
				exponent < 10000 ? exponent * 10 + (uint64_t)(*at - '0') : exponent;
		scale += down ? -(int64_t)exponent : (int64_t)exponent;
	}
	if (!scale_decimal(&sum, scale))
		return false;
	*value = minus ? -(int64_t)sum : (int64_t)sum;
	return true;
}

static const uint8_t *micros_slow(const uint8_t *at, const uint8_t *end, int64_t *ns,
				  enum ky_json_fault *fault)
{
	struct ky_json_number number;
	const uint8_t *stop = ky_json_number(at, end, &number, fault);
	if (!stop)
		return NULL;
	*fault = KY_JSON_BAD;
	return ky_json_decimal(at, (size_t)(stop - at), 3, ns) ? stop : NULL;
}

const uint8_t *ky_json_micros(const uint8_t *at, const uint8_t *end, int64_t *ns,
			      enum ky_json_fault *fault)
{
	static const uint32_t scale[4] = {1000, 100, 10, 1};
	const bool minus = *at == '-';
	uint64_t whole, part = 0;
	uint32_t count, places = 0;
	const uint8_t *stop = digits(at + minus, end, &whole, &count);

	if (count == 0 || whole >= INT64_MAX / 1000)
		return micros_slow(at, end, ns, fault);
	uint64_t value = whole * 1000;
	if (*stop == '.') {
		const uint8_t *dot = stop + 1;
		for (stop = dot; places < 3 && stop < end && is_digit(*stop); places++)
			part = part * 10 + (uint64_t)(*stop++ - '0');
		value += part * scale[places];
		if (places == 3 && stop < end && *stop >= '5' && *stop <= '9')
			value++;
		while (stop < end && is_digit(*stop))
			stop++;
		if (stop == dot)
			return micros_slow(at, end, ns, fault);
	}
	if (stop >= end || !ends_scalar(*stop))
		return micros_slow(at, end, ns, fault);
	*ns = minus ? -(int64_t)value : (int64_t)value;
	return stop;
}

/* Return the four digits at at, or -1. */
static int32_t hex4(const uint8_t *at, const uint8_t *end)
{
	int32_t value = 0;
	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		const int digit = ky_chars_hex_digit((char)at[i]);
		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* at is behind "\u"; a pair of surrogates is one character, half of one is U+FFFD. */
static const uint8_t *unescape_unicode(const uint8_t *at, const uint8_t *end, char **to)
{
	int32_t c = hex4(at, end);
	if (c < 0)
		return at;
	at += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
		const int32_t low = hex4(at + 2, end);
		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			at += 6;
		}
	}
	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	*to = put_utf8(*to, (uint32_t)c);
	return at;
}

size_t ky_json_unescape(const struct ky_json_text *text, char *to)
{
	static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const uint8_t *at = text->at, *end = text->at + text->bytes;
	char *const begin = to;

	while (at < end) {
		if (*at != '\\' || end - at < 2) {
			*to++ = (char)*at++;
			continue;
		}
		const char c = (char)at[1];
		const char *found = c ? strchr(plain, c) : NULL;
		at += 2;
		if (found)
			*to++ = meant[found - plain];
		else if (c == 'u')
			at = unescape_unicode(at, end, &to);
	}
	return (size_t)(to - begin);
}

/* ---- text that is larger than the input's buffer ---- */

#define GROW_MIN 4096u

bool ky_json_feed_grow(struct ky_input *input)
{
	const size_t have = (size_t)(input->end - input->at);
	(void)ky_input_need(input, have < GROW_MIN ? have + GROW_MIN : 2 * have);
	return (size_t)(input->end - input->at) > have;
}

int ky_json_feed_next(struct ky_input *input)
{
	for (;;) {
		const uint8_t *at = input->at;
		while (at < input->end &&
		       (*at == ',' || *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
			at++;
		ky_input_skip(input, (size_t)(at - input->at));
		if (at < input->end)
			return *at;
		if (!ky_json_feed_grow(input))
			return -1;
	}
}

bool ky_json_feed_take(struct ky_input *input, uint8_t byte)
{
	if (ky_json_feed_next(input) != byte)
		return false;
	ky_input_skip(input, 1);
	return true;
}

const uint8_t *ky_json_feed_value(struct ky_input *input, enum ky_json_fault *fault)
{
	enum ky_json_fault unused;
	fault = fault ? fault : &unused;
	for (;;) {
		const uint8_t *stop = ky_json_skip(input->at, input->end, fault);
		if (stop || *fault != KY_JSON_CUT)
			return stop;
		if (!ky_json_feed_grow(input))
			return NULL;
	}
}

/* Skip the rest of a string; the buffer does not grow for it. */
static bool feed_past_string(struct ky_input *input)
{
	struct ky_json_text text;
	ky_input_skip(input, 1);
	for (;;) {
		const uint8_t *stop = ky_json_scan_string(input->at, input->end, &text);
		if (stop) {
			ky_input_skip(input, (size_t)(stop - input->at));
			return true;
		}
		/* A backslash at the end belongs to what follows. */
		size_t have = (size_t)(input->end - input->at), backs = 0;
		while (backs < have && input->end[-1 - (ptrdiff_t)backs] == '\\')
			backs++;
		ky_input_skip(input, have - (backs & 1));
		if (!ky_json_feed_grow(input))
			return false;
	}
}

static bool feed_past_nested(struct ky_input *input)
{
	uint64_t depth = 0;
	do {
		const int c = ky_json_feed_next(input);
		if (c < 0)
			return false;
		if (c == '"') {
			if (!feed_past_string(input))
				return false;
			continue;
		}
		ky_input_skip(input, 1);
		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
	} while (depth > 0);
	return true;
}

bool ky_json_feed_skip(struct ky_input *input, enum ky_json_fault *fault)
{
	const int c = ky_json_feed_next(input);
	if (fault)
		*fault = KY_JSON_CUT;
	if (c == '"')
		return feed_past_string(input);
	if (c == '{' || c == '[')
		return feed_past_nested(input);
	const uint8_t *stop = c < 0 ? NULL : ky_json_feed_value(input, fault);
	if (stop)
		ky_input_skip(input, (size_t)(stop - input->at));
	return stop != NULL;
}

int ky_json_feed_key(struct ky_input *input, char key[KY_JSON_KEY_BYTES], enum ky_json_fault *fault)
{
	const int c = ky_json_feed_next(input);
	enum ky_json_fault unused;
	fault = fault ? fault : &unused;
	*fault = c < 0 ? KY_JSON_CUT : KY_JSON_BAD;
	if (c == '}') {
		ky_input_skip(input, 1);
		return 0;
	}
	if (c != '"')
		return -1;
	const uint8_t *stop = ky_json_feed_value(input, fault);
	if (!stop)
		return -1;
	size_t bytes = (size_t)(stop - input->at) - 2;
	if (bytes > KY_JSON_KEY_BYTES - 1)
		bytes = KY_JSON_KEY_BYTES - 1;
	memcpy(key, input->at + 1, bytes);
	key[bytes] = '\0';
	ky_input_skip(input, (size_t)(stop - input->at));
	const bool colon = ky_json_feed_take(input, ':');
	const int next = ky_json_feed_next(input);
	*fault = next < 0 ? KY_JSON_CUT : KY_JSON_BAD;
	return colon && next >= 0 ? 1 : -1;
}

int ky_json_feed_element(struct ky_input *input)
{
	const int c = ky_json_feed_next(input);
	if (c == ']') {
		ky_input_skip(input, 1);
		return 0;
	}
	return c < 0 ? -1 : 1;
}

bool ky_json_feed_elements(struct ky_input *input, ky_json_element_fn *take, void *context)
{
	int more;
	ky_input_skip(input, 1);
	while ((more = ky_json_feed_element(input)) > 0) {
		const uint8_t *stop = ky_json_feed_value(input, NULL);
		if (!stop || !take(context, stop))
			return false;
		ky_input_skip(input, (size_t)(stop - input->at));
	}
	return more == 0;
}

bool ky_json_feed_members(struct ky_input *input, ky_json_member_fn *take, void *context)
{
	char key[KY_JSON_KEY_BYTES];
	int more;
	while ((more = ky_json_feed_key(input, key, NULL)) > 0)
		if (!take(context, key))
			return false;
	return more == 0;
}
