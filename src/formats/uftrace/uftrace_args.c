/* SPDX-License-Identifier: MIT */
/*
 * uftrace_args.c: the values behind a record. Their types are not in the file of records: the specs of the info file say
 * them by function, "add@arg1/i32,arg2/i32;greet@arg1/s".
 */
#include "base/array.h"
#include "formats/uftrace/uftrace_reader.h"

#include "model/regexp_size.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>

#define NAME_BYTES 256u
#define PATTERNS_MAX 1024u

/* "func@values": of one function, or of those that match. */
struct ky_uftrace_spec {
	const char *name;
	size_t bytes;
	const char *values;
	bool is_pattern;
	regex_t pattern;
};

/* One value: where its name and format are in the spec. */
struct uftrace_value {
	char name[32];
	char format; /* 'i' 'u' 'x' 'o' 's' 'S' 'c' 'f' 'p' 'e' 't' */
	unsigned size;
};

/* "arg1/i32", "fparg2/32", "retval", "arg3/e:name": false at the end of the function's specs. */
static const char *parse_value(const char *at, struct uftrace_value *value)
{
	size_t length = strcspn(at, ",;");
	const size_t name = strcspn(at, "/,;%");
	if (!length || name >= sizeof(value->name))
		return NULL;
	memcpy(value->name, at, name);
	value->name[name] = '\0';
	value->format = 'i';
	value->size = 8;
	if (strncmp(value->name, "fparg", 5) == 0)
		value->format = 'f';
	if (at[name] == '/') {
		const char *format = at + name + 1;
		if (*format < '0' || *format > '9')
			value->format = *format++;
		if (value->format == 'd')
			value->format = 'i';
		if (value->format == 'c')
			value->size = 1;
		const unsigned long bits = strtoul(format, NULL, 10);
		if (value->format == 't' && bits && bits < 4096)
			value->size = (unsigned)bits;
		else if (bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 80)
			value->size = (unsigned)bits / 8;
	}
	/* An enumeration's name may follow, and members in braces. */
	return at + length + (at[length] == ',');
}

static uint64_t load(const uint8_t *data, unsigned size)
{
	uint64_t value = 0;
	memcpy(&value, data, size < 8 ? size : 8);
	return value;
}

static void add_real(struct ky_trace *trace, uint32_t key, const uint8_t *data, unsigned size)
{
	float narrow;
	double real;
	long double wide = 0;
	memcpy(&narrow, data, sizeof(narrow));
	memcpy(&real, data, size >= 8 ? 8 : 4);
	if (size == 10)
		memcpy(&wide, data, 10);
	ky_arg_real(trace, key, size == 4 ? (double)narrow : size == 10 ? (double)wide : real);
}

static void add_number(struct ky_trace *trace, uint32_t key, const struct uftrace_value *value,
		       const uint8_t *data)
{
	const uint64_t bits = load(data, value->size);
	const unsigned shift = value->size < 8 ? 64 - 8 * value->size : 0;
	if (value->format == 'f')
		add_real(trace, key, data, value->size);
	else if (value->format == 'c')
		ky_arg_string(trace, key, ky_string(trace, (const char *)data, 1));
	else if (value->format == 'p' || value->format == 'x')
		ky_arg_pointer(trace, key, bits);
	else if (value->format == 'u' || value->format == 'o')
		ky_arg_uint(trace, key, bits);
	else
		ky_arg_int(trace, key, (int64_t)(bits << shift) >> shift);
}

/* Add a value; the bytes that it takes, padded, or 0 when there are not so many. */
static size_t add_value(struct ky_trace *trace, const struct uftrace_value *value,
			const uint8_t *data, size_t bytes)
{
	const uint32_t key = ky_string_z(trace, value->name);
	size_t size = value->size;
	if (value->format == 's' || value->format == 'S') {
		if (bytes < 2)
			return 0;
		size = 2 + (size_t)load(data, 2);
		if (size > bytes)
			return 0;
		/* A null pointer is four bytes of ones. */
		if (size == 6 && load(data + 2, 4) == UINT32_MAX)
			ky_arg_null(trace, key);
		else
			ky_arg_string(trace, key,
				      ky_string(trace, (const char *)data + 2,
						strnlen((const char *)data + 2, size - 2)));
	} else if (size > bytes) {
		return 0;
	} else if (value->format != 't') {
		add_number(trace, key, value, data);
	}
	size = (size + 3) & ~(size_t)3;
	return size <= bytes ? size : bytes;
}

/* Compiles the name when it is a pattern; one that would take more than its length is worth matches nothing. */
static void compile(struct ky_uftrace_spec *spec, struct ky_trace *trace, unsigned *patterns)
{
	char copy[NAME_BYTES];
	memcpy(copy, spec->name, spec->bytes);
	copy[spec->bytes] = '\0';
	if (!strpbrk(copy, ".?*[^$|+("))
		return;
	if (*patterns >= PATTERNS_MAX || ky_regexp_size(copy) > 16 + 4 * spec->bytes) {
		ky_problem(trace, "uftrace_pattern", KY_DATA_LOSS, KY_NO_PLACE,
			   "a pattern of functions is too expensive, or there are too many: %s",
			   copy);
		return;
	}
	spec->is_pattern = regcomp(&spec->pattern, copy, REG_NOSUB | REG_EXTENDED) == 0;
	*patterns += spec->is_pattern;
}

void ky_uftrace_specs_open(struct ky_uftrace_specs *specs, struct ky_trace *trace)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned patterns = 0;
		for (const char *at = specs->texts[i]; at && *at;) {
			const size_t name = strcspn(at, "@;");
			if (at[name] == '@' && name < NAME_BYTES) {
				if (!KY_ARRAY_GROW_ZERO(specs->specs[i], specs->rooms[i],
							(uint64_t)specs->counts[i] + 1)) {
					trace->error = -ENOMEM;
					return;
				}
				struct ky_uftrace_spec *spec = &specs->specs[i][specs->counts[i]++];
				*spec = (struct ky_uftrace_spec){
					.name = at, .bytes = name, .values = at + name + 1};
				compile(spec, trace, &patterns);
			}
			at += strcspn(at, ";");
			at += *at == ';';
		}
	}
}

void ky_uftrace_specs_close(struct ky_uftrace_specs *specs)
{
	for (unsigned i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < specs->counts[i]; k++)
			if (specs->specs[i][k].is_pattern)
				regfree(&specs->specs[i][k].pattern);
		KY_ARRAY_FREE(specs->specs[i], specs->rooms[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		KY_ARRAY_FREE(specs->found[i], specs->found_rooms[i]);
}

static bool matches(const struct ky_uftrace_spec *spec, const char *function, size_t bytes)
{
	if (spec->bytes == bytes && memcmp(spec->name, function, bytes) == 0)
		return true;
	return spec->is_pattern && regexec(&spec->pattern, function, 0, NULL, 0) == 0;
}

/* Return the values of the function, or "". */
static const char *search(const struct ky_uftrace_specs *specs, const char *function, bool returned)
{
	const size_t bytes = strlen(function);
	for (unsigned i = returned; i < 4; i += 2)
		for (uint32_t k = 0; k < specs->counts[i]; k++)
			if (matches(&specs->specs[i][k], function, bytes))
				return specs->specs[i][k].values;
	return "";
}

/* The same, once for a function. */
static const char *values_of(struct ky_trace *trace, struct ky_uftrace_specs *specs,
			     const char *function, bool returned)
{
	const uint32_t string = ky_string_z(trace, function);
	if (!KY_ARRAY_GROW_ZERO(specs->found[returned], specs->found_rooms[returned],
				(uint64_t)string + 1)) {
		trace->error = -ENOMEM;
		return "";
	}
	const char **found = &specs->found[returned][string];
	if (!*found)
		*found = search(specs, function, returned);
	return *found;
}

size_t ky_uftrace_args(struct ky_trace *trace, struct ky_uftrace_specs *specs, const char *function,
		       bool returned, const uint8_t *data, size_t bytes)
{
	const char *spec = values_of(trace, specs, function, returned);
	size_t used = 0;
	struct uftrace_value value;
	while (spec && *spec && *spec != ';' && (spec = parse_value(spec, &value))) {
		const bool is_return = strncmp(value.name, "retval", 6) == 0;
		if (is_return != returned)
			continue;
		const size_t took = add_value(trace, &value, data + used, bytes - used);
		if (!took)
			return 0;
		used += took;
	}
	used = (used + 7) & ~(size_t)7;
	return used <= bytes ? used : 0;
}
