/* SPDX-License-Identifier: MIT */
/* test_address_space.c: ranges that cover each other, against an array of bytes as the plain truth. */
#include "process/proc_maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put(struct ky_address_space *space, uint64_t start, uint64_t end, uint64_t offset,
		uint32_t module)
{
	const struct ky_address_range range = {
		.start = start, .end = end, .offset = offset, .module = module};
	assert_true(ky_address_space_put(space, &range));
}

static void assert_at(const struct ky_address_space *space, uint64_t address, uint32_t module,
		      uint64_t offset)
{
	const struct ky_address_range *const range = ky_address_space_find(space, address);
	if (module == KY_NO_MODULE) {
		assert_null(range);
		return;
	}
	assert_non_null(range);
	assert_int_equal(range->module, module);
	assert_int_equal(address - range->start + range->offset, offset);
}

static void an_empty_space_has_nothing(void **state)
{
	(void)state;
	struct ky_address_space space = {0};
	assert_at(&space, 0, KY_NO_MODULE, 0);
	assert_at(&space, UINT64_MAX, KY_NO_MODULE, 0);
	ky_address_space_free(&space);
}

static void a_new_range_splits_what_it_lies_in(void **state)
{
	(void)state;
	struct ky_address_space space = {0};
	put(&space, 0x1000, 0x9000, 0x100, 1);
	put(&space, 0x3000, 0x5000, 0, 2);
	assert_int_equal(space.count, 3);
	assert_at(&space, 0xfff, KY_NO_MODULE, 0);
	assert_at(&space, 0x1000, 1, 0x100);
	assert_at(&space, 0x2fff, 1, 0x20ff);
	assert_at(&space, 0x3000, 2, 0);
	assert_at(&space, 0x4fff, 2, 0x1fff);
	assert_at(&space, 0x5000, 1, 0x4100);
	assert_at(&space, 0x9000, KY_NO_MODULE, 0);
	put(&space, 0, UINT64_MAX, 0, 3);
	assert_int_equal(space.count, 1);
	ky_address_space_free(&space);
}

static void an_empty_range_is_refused(void **state)
{
	(void)state;
	struct ky_address_space space = {0};
	const struct ky_address_range empty = {.start = 5, .end = 5},
				      turned = {.start = 9, .end = 2};
	assert_false(ky_address_space_put(&space, &empty));
	assert_false(ky_address_space_put(&space, &turned));
	assert_int_equal(space.count, 0);
	ky_address_space_free(&space);
}

static void a_copy_stays_when_the_original_changes(void **state)
{
	(void)state;
	struct ky_address_space space = {0}, copy = {0};
	put(&space, 0x1000, 0x2000, 0, 1);
	assert_true(ky_address_space_copy(&copy, &space));
	put(&space, 0x1000, 0x2000, 0, 2);
	assert_at(&copy, 0x1800, 1, 0x800);
	ky_address_space_free(&space);
	assert_true(ky_address_space_copy(&copy, &space));
	assert_at(&copy, 0x1800, KY_NO_MODULE, 0);
	ky_address_space_free(&copy);
}

/* Any order of ranges leaves what an array of bytes has. */
static void many_ranges_are_as_an_array_has_them(void **state)
{
	(void)state;
	enum { PLACES = 200 };
	uint32_t modules[PLACES];
	uint64_t offsets[PLACES];
	struct ky_address_space space = {0};
	memset(modules, 0xff, sizeof(modules));
	srand(1);
	for (uint32_t module = 0; module < 3000; module++) {
		const uint32_t start = (uint32_t)rand() % PLACES;
		const uint32_t end = start + 1 + (uint32_t)rand() % (PLACES - start);
		put(&space, start, end, start * 10u, module);
		for (uint32_t i = start; i < end; i++) {
			modules[i] = module;
			offsets[i] = start * 10u + (i - start);
		}
		for (uint32_t i = 0; i < PLACES; i++)
			assert_at(&space, i, modules[i],
				  modules[i] == KY_NO_MODULE ? 0 : offsets[i]);
		for (uint32_t i = 1; i < space.count; i++)
			assert_true(space.ranges[i].start >= space.ranges[i - 1].end);
	}
	ky_address_space_free(&space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_space_has_nothing),
		cmocka_unit_test(a_new_range_splits_what_it_lies_in),
		cmocka_unit_test(an_empty_range_is_refused),
		cmocka_unit_test(a_copy_stays_when_the_original_changes),
		cmocka_unit_test(many_ranges_are_as_an_array_has_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
