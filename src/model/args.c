/* SPDX-License-Identifier: MIT */
/* args.c: sets of arguments. A set is a range of rows; it ends where the next one begins. */
#include "model/build.h"

void ky_args_begin(struct ky_trace *trace)
{
	trace->build->args_begun = trace->args.rows.count;
}

void ky_args_add(struct ky_trace *trace, uint32_t key, enum ky_arg_type type, uint64_t value)
{
	struct ky_args *args = &trace->args;
	const uint32_t row = ky_append(trace, args);
	if (row == KY_NONE)
		return;
	args->key[row] = key;
	args->type[row] = (uint8_t)type;
	args->value[row] = value;
}

void ky_arg_int(struct ky_trace *trace, uint32_t key, int64_t value)
{
	ky_args_add(trace, key, KY_ARG_INT, (uint64_t)value);
}

void ky_arg_uint(struct ky_trace *trace, uint32_t key, uint64_t value)
{
	ky_args_add(trace, key, KY_ARG_UINT, value);
}

void ky_arg_real(struct ky_trace *trace, uint32_t key, double value)
{
	ky_args_add(trace, key, KY_ARG_REAL, ky_real_bits(value));
}

void ky_arg_bool(struct ky_trace *trace, uint32_t key, bool value)
{
	ky_args_add(trace, key, KY_ARG_BOOL, value);
}

void ky_arg_pointer(struct ky_trace *trace, uint32_t key, uint64_t value)
{
	ky_args_add(trace, key, KY_ARG_POINTER, value);
}

void ky_arg_string(struct ky_trace *trace, uint32_t key, uint32_t value)
{
	ky_args_add(trace, key, KY_ARG_STRING, value);
}

void ky_arg_json(struct ky_trace *trace, uint32_t key, uint32_t value)
{
	ky_args_add(trace, key, KY_ARG_JSON, value);
}

void ky_arg_null(struct ky_trace *trace, uint32_t key)
{
	ky_args_add(trace, key, KY_ARG_NULL, 0);
}

uint32_t ky_args_end(struct ky_trace *trace)
{
	struct ky_arg_sets *sets = &trace->arg_sets;
	const uint32_t first = trace->build->args_begun;
	if (first == trace->args.rows.count)
		return 0;
	const uint32_t set = ky_append(trace, sets);
	if (set == KY_NONE) {
		trace->args.rows.count = first;
		return 0;
	}
	sets->first[set] = first;
	return set;
}

uint32_t ky_args_one(struct ky_trace *trace, uint32_t key, enum ky_arg_type type, uint64_t value)
{
	ky_args_begin(trace);
	ky_args_add(trace, key, type, value);
	return ky_args_end(trace);
}

uint32_t ky_args_set(struct ky_trace *trace, uint32_t count, const uint32_t *keys,
		     const uint8_t *types, const uint64_t *values)
{
	struct ky_args *args = &trace->args;
	ky_args_begin(trace);
	if (__builtin_expect(args->rows.room - args->rows.count < count, 0)) {
		for (uint32_t i = 0; i < count; i++)
			ky_args_add(trace, keys[i], types[i], values[i]);
		return ky_args_end(trace);
	}
	for (uint32_t i = 0, row = args->rows.count; i < count; i++, row++) {
		args->key[row] = keys[i];
		args->type[row] = types[i];
		args->value[row] = values[i];
	}
	args->rows.count += count;
	return ky_args_end(trace);
}

/* Up to this size a scan is faster than a map. */
#define SCAN_MAX 16u

static bool has_key(const struct ky_trace *trace, const struct ky_pair_map *keys, uint32_t set,
		    uint32_t key)
{
	const uint32_t end = ky_arg_set_end(trace, set);
	if (keys->table.count)
		return ky_pair_map_find(keys, key, 0) != NULL;
	for (uint32_t i = ky_arg_set_first(trace, set); i < end; i++)
		if (trace->args.key[i] == key)
			return true;
	return false;
}

/* Collect the keys of a large set, so that two large sets do not cost the product of their sizes. */
static void map_keys(struct ky_trace *trace, struct ky_pair_map *keys, uint32_t set)
{
	const uint32_t first = ky_arg_set_first(trace, set), end = ky_arg_set_end(trace, set);
	bool made;
	for (uint32_t i = first; end - first > SCAN_MAX && i < end; i++)
		if (!ky_pair_map_add(keys, trace->args.key[i], 0, &made))
			ky_trace_no_memory(trace);
}

uint32_t ky_args_join(struct ky_trace *trace, uint32_t first, uint32_t second)
{
	const struct ky_args *args = &trace->args;
	const uint32_t first_end = ky_arg_set_end(trace, first);
	const uint32_t second_end = ky_arg_set_end(trace, second);
	struct ky_pair_map keys = {0};
	map_keys(trace, &keys, second);
	ky_args_begin(trace);
	for (uint32_t i = ky_arg_set_first(trace, first); i < first_end; i++)
		if (!has_key(trace, &keys, second, args->key[i]))
			ky_args_add(trace, args->key[i], args->type[i], args->value[i]);
	for (uint32_t i = ky_arg_set_first(trace, second); i < second_end; i++)
		ky_args_add(trace, args->key[i], args->type[i], args->value[i]);
	ky_pair_map_free(&keys);
	return ky_args_end(trace);
}
