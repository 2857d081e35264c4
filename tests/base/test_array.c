/* SPDX-License-Identifier: MIT */
/* test_array.c: arrays grow without losing items, small and mapped, and never beyond their room's type. */
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct item {
	uint64_t key;
	uint32_t value;
};

static void items_survive_growth_into_a_mapping(void **state)
{
	(void)state;
	struct item *items = NULL;
	uint32_t count = 0, room = 0;
	for (uint32_t i = 0; i < 100000; i++)
		assert_true(KY_ARRAY_ADD(items, count, room, (struct item){i * UINT64_C(7), i}));
	assert_int_equal(count, 100000);
	assert_true(room >= count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(items[i].key, i * UINT64_C(7));
		assert_int_equal(items[i].value, i);
	}
	KY_ARRAY_FREE(items, room);
	assert_null(items);
	assert_int_equal(room, 0);
}

static void grown_items_are_zero_where_asked_for(void **state)
{
	(void)state;
	uint64_t *items = NULL;
	size_t room = 0;
	assert_true(KY_ARRAY_GROW_ZERO(items, room, 1));
	for (size_t i = 0; i < room; i++) {
		assert_int_equal(items[i], 0);
		items[i] = UINT64_MAX;
	}
	const size_t had = room;
	assert_true(KY_ARRAY_GROW_ZERO(items, room, 70000));
	assert_true(room >= 70000);
	for (size_t i = 0; i < room; i++)
		assert_int_equal(items[i], i < had ? UINT64_MAX : 0);
	KY_ARRAY_FREE(items, room);
}

static void a_new_item_is_zero(void **state)
{
	(void)state;
	struct item *items = NULL;
	int count = 0, room = 0;
	for (int i = 0; i < 50; i++) {
		struct item *made = KY_ARRAY_NEW(items, count, room);
		assert_non_null(made);
		assert_ptr_equal(made, &items[i]);
		assert_int_equal(made->key, 0);
		assert_int_equal(made->value, 0);
		*made = (struct item){UINT64_MAX, UINT32_MAX};
	}
	KY_ARRAY_FREE(items, room);
}

static void a_room_does_not_exceed_its_type(void **state)
{
	(void)state;
	char *items = NULL;
	uint8_t count = 0, room = 0;
	for (int i = 0; i < 255; i++)
		assert_true(KY_ARRAY_ADD(items, count, room, (char)i));
	assert_int_equal(room, 255);
	const bool added = KY_ARRAY_ADD(items, count, room, 'x');
	assert_false(added);
	assert_int_equal(count, 255);
	for (int i = 0; i < 255; i++)
		assert_true(items[i] == (char)i);
	KY_ARRAY_FREE(items, room);

	int16_t signed_room = 0;
	assert_true(KY_ARRAY_GROW(items, signed_room, INT16_MAX));
	assert_int_equal(signed_room, INT16_MAX);
	assert_false(KY_ARRAY_GROW(items, signed_room, INT16_MAX + 1));
	KY_ARRAY_FREE(items, signed_room);
}

static void too_much_fails_and_leaves_the_array(void **state)
{
	(void)state;
	struct item *items = NULL;
	uint64_t count = 0, room = 0;
	assert_true(KY_ARRAY_ADD(items, count, room, (struct item){1, 2}));
	const uint64_t had = room;
	assert_false(KY_ARRAY_GROW(items, room, UINT64_MAX / 2));
	assert_false(KY_ARRAY_GROW(items, room, UINT64_MAX));
	assert_int_equal(room, had);
	assert_int_equal(items[0].key, 1);
	KY_ARRAY_FREE(items, room);
	KY_ARRAY_FREE(items, room);
}

static void items_up_to_a_value_are_counted(void **state)
{
	(void)state;
	const struct {
		uint64_t at;
	} items[] = {{2}, {4}, {4}, {8}};
	const uint32_t none = 0, all = 4;
	assert_int_equal(KY_ARRAY_UPTO(items, none, at, 4), 0);
	assert_int_equal(KY_ARRAY_UPTO(items, all, at, 1), 0);
	assert_int_equal(KY_ARRAY_UPTO(items, all, at, 2), 1);
	assert_int_equal(KY_ARRAY_UPTO(items, all, at, 4), 3);
	assert_int_equal(KY_ARRAY_UPTO(items, all, at, 7), 3);
	assert_int_equal(KY_ARRAY_UPTO(items, all, at, UINT64_MAX), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_up_to_a_value_are_counted),
		cmocka_unit_test(items_survive_growth_into_a_mapping),
		cmocka_unit_test(grown_items_are_zero_where_asked_for),
		cmocka_unit_test(a_new_item_is_zero),
		cmocka_unit_test(a_room_does_not_exceed_its_type),
		cmocka_unit_test(too_much_fails_and_leaves_the_array),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
