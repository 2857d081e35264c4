/* SPDX-License-Identifier: MIT */
/* test_map.c: maps against plain arrays that hold the same: adding, finding, removing, visiting. */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEYS 5000u

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
	return random_state = random_state * 1664525u + 1013904223u;
}

static void u64_map_holds_what_was_added(void **state)
{
	(void)state;
	struct ky_u64_map map = {0};
	uint32_t values[KEYS] = {0};
	uint32_t count = 0;
	assert_null(ky_u64_map_find(&map, 0));
	ky_u64_map_remove(&map, 0);
	for (int round = 0; round < 40000; round++) {
		const uint32_t i = next_random() >> 8 & 4095;
		const uint64_t key = (uint64_t)i << 32; /* also 0 */
		bool made;
		if (next_random() >> 20 & 1) {
			uint32_t *value = ky_u64_map_add(&map, key, &made);
			assert_non_null(value);
			assert_int_equal(made, values[i] == 0);
			assert_int_equal(*value, values[i]);
			count += made;
			*value = values[i] = (uint32_t)round + 1;
		} else {
			ky_u64_map_remove(&map, key);
			count -= values[i] != 0;
			values[i] = 0;
		}
		assert_int_equal(map.table.count, count);
	}
	for (uint32_t i = 0; i < 4096; i++) {
		const uint32_t *value = ky_u64_map_find(&map, (uint64_t)i << 32);
		assert_int_equal(value ? *value : 0, values[i]);
	}
	uint32_t at = 0, seen = 0;
	for (struct ky_u64_slot *slot; (slot = ky_u64_map_next(&map, &at)); seen++)
		assert_int_equal(slot->value, values[slot->key >> 32]);
	assert_int_equal(seen, count);
	ky_u64_map_free(&map);
	assert_null(ky_u64_map_find(&map, 0));
}

static void pair_map_tells_pairs_apart(void **state)
{
	(void)state;
	struct ky_pair_map map = {0};
	bool made;
	assert_null(ky_pair_map_find(&map, 1, 2));
	for (uint64_t a = 0; a < 70; a++)
		for (uint64_t b = 0; b < 70; b++) {
			*ky_pair_map_add(&map, a, b, &made) = a * 1000 + b;
			assert_true(made);
		}
	for (uint64_t a = 0; a < 70; a += 2)
		for (uint64_t b = 0; b < 70; b += 3)
			ky_pair_map_remove(&map, a, b);
	for (uint64_t a = 0; a < 70; a++)
		for (uint64_t b = 0; b < 70; b++) {
			const uint64_t *value = ky_pair_map_find(&map, a, b);
			assert_int_equal(!value, a % 2 == 0 && b % 3 == 0);
			if (value)
				assert_int_equal(*value, a * 1000 + b);
		}
	*ky_pair_map_add(&map, 1, 1, &made) = 5;
	assert_false(made);
	assert_int_equal(*ky_pair_map_find(&map, 1, 1), 5);
	uint32_t at = 0, seen = 0;
	while (ky_pair_map_next(&map, &at))
		seen++;
	assert_int_equal(seen, map.table.count);
	assert_int_equal(seen, 70 * 70 - 35 * 24);
	ky_pair_map_free(&map);
}

static bool has(const struct ky_hash_index *index, uint64_t hash, uint32_t number)
{
	struct ky_hash_probe probe = ky_hash_index_probe(index, hash);
	for (uint32_t i; ky_hash_index_next(&probe, &i);)
		if (i == number)
			return true;
	return false;
}

static void index_keeps_items_of_one_hash(void **state)
{
	(void)state;
	struct ky_hash_index index = {0};
	assert_false(has(&index, 1, 1));
	/* Eight items share each hash. */
	for (uint32_t i = 0; i < KEYS; i++)
		assert_true(ky_hash_index_add(&index, ky_hash_u64(i / 8), i));
	for (uint32_t i = 0; i < KEYS; i++)
		assert_true(has(&index, ky_hash_u64(i / 8), i));
	ky_hash_index_free(&index);
}

/* Room that was reserved is enough: adding moves nothing, so it needs no memory. */
static void reserved_room_is_enough(void **state)
{
	(void)state;
	for (uint32_t count = 0; count < 200; count++) {
		struct ky_hash_index index = {0};
		assert_true(ky_hash_index_reserve(&index, count));
		const void *const slots = index.table.slots;
		for (uint32_t i = 0; i < count; i++)
			assert_true(ky_hash_index_add(&index, ky_hash_u64(i), i));
		assert_ptr_equal(index.table.slots, slots);
		ky_hash_index_free(&index);
	}
}

/* Items that all collide are found, and the table does not grow without bound for them. */
static void a_bad_hash_costs_time_alone(void **state)
{
	(void)state;
	struct ky_hash_index index = {0};
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(ky_hash_index_add(&index, 0, i));
	assert_true(index.table.room <= 16384);
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(has(&index, 0, i));
	ky_hash_index_free(&index);
}

static void hashes_depend_on_every_byte(void **state)
{
	(void)state;
	char text[40] = {0};
	for (size_t bytes = 1; bytes < sizeof(text); bytes++) {
		const uint64_t before = ky_hash_bytes(text, bytes);
		assert_true(before != ky_hash_bytes(text, bytes - 1));
		for (size_t i = 0; i < bytes; i++) {
			text[i] ^= 1;
			assert_true(ky_hash_bytes(text, bytes) != before);
			text[i] ^= 1;
		}
	}
	assert_true(ky_hash_pair(1, 2) != ky_hash_pair(2, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(u64_map_holds_what_was_added),
		cmocka_unit_test(pair_map_tells_pairs_apart),
		cmocka_unit_test(index_keeps_items_of_one_hash),
		cmocka_unit_test(reserved_room_is_enough),
		cmocka_unit_test(a_bad_hash_costs_time_alone),
		cmocka_unit_test(hashes_depend_on_every_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
