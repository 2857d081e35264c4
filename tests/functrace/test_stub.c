/* SPDX-License-Identifier: MIT */
/*
 * test_stub.c: stubs as machine code: every instruction decodes, every branch leads where it should, and the parts
 * are where they must be.
 */
#include "functrace/agent_abi.h"
#include "functrace/stub.h"

#include <capstone/capstone.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define AT UINT64_C(0x555500000000)
#define EXIT_AT (AT - 4096)
#define SLOW_ENTRY UINT64_C(0x7f0000001000)

static struct ky_stub stub_of(enum ky_stub_kind kind)
{
	return (struct ky_stub){.kind = kind,
				.at = AT,
				.function = 7,
				.site = 5000,
				.instant_site = 5001,
				.end_site = 5002,
				.slow_entry = SLOW_ENTRY,
				.slow_exit = SLOW_ENTRY + 64,
				.special = SLOW_ENTRY + 128,
				.exit = EXIT_AT};
}

/* Decode up to an offset; every conditional jump must lead to slow. Return the number of instructions. */
static size_t decode(const uint8_t *code, uint32_t bytes, uint64_t slow)
{
	csh capstone;
	cs_insn *list = NULL;
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &capstone), CS_ERR_OK);
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	const size_t count = cs_disasm(capstone, code, bytes, AT, 0, &list);
	assert_true(count > 0);
	assert_int_equal(list[count - 1].address + list[count - 1].size, AT + bytes);
	for (size_t i = 0; i < count; i++) {
		const cs_x86 *x86 = &list[i].detail->x86;
		for (uint8_t r = 0; r < x86->op_count; r++) /* no vector registers */
			assert_false(x86->operands[r].type == X86_OP_REG &&
				     x86->operands[r].size > 8);
		if (list[i].mnemonic[0] == 'j' && x86->operands[0].type == X86_OP_IMM)
			assert_int_equal(x86->operands[0].imm, slow);
	}
	cs_free(list, count);
	cs_close(&capstone);
	return count;
}

static void parts_of_a_call_are_in_place(void **state)
{
	(void)state;
	const struct ky_moved moved = {.code = {0x55, 0xcc}, .bytes = 2};
	uint8_t code[KY_STUB_MAX];
	struct ky_stub_places places;
	const struct ky_stub stub = stub_of(KY_STUB_CALL);
	ky_stub_make(&stub, &moved, code, &places);
	assert_int_equal(places.body, ky_stub_body_at(&stub));
	assert_int_equal(places.body, places.hook + KY_STUB_BODY_AFTER_HOOK);
	assert_memory_equal(code + places.body, moved.code, moved.bytes);
	assert_int_equal(places.bytes, places.body + moved.bytes);
	struct ky_agent_stub_data data;
	memcpy(&data, code + places.hook + KY_STUB_DATA_AFTER_HOOK, sizeof(data));
	assert_int_equal(data.slow_entry, SLOW_ENTRY);
	assert_int_equal(data.function, 7);
	assert_int_equal(data.site, 5000);
	assert_int_equal(data.instant_site, 5001);
	assert_int_equal(data.hooks, 1);
	int32_t distance;
	memcpy(&distance, code + places.hook + 1, sizeof(distance));
	assert_int_equal(AT + places.hook + 5 + (uint64_t)(int64_t)distance, EXIT_AT);
	const uint64_t slow = AT + places.hook + KY_STUB_HOOK_BYTES;
	assert_true(decode(code, places.hook, slow) <= 52);
}

static void exits_decode(void **state)
{
	(void)state;
	uint8_t code[KY_STUB_MAX];
	struct ky_stub_places places;
	struct ky_stub stub = stub_of(KY_STUB_EXIT);
	ky_stub_make(&stub, NULL, code, &places);
	const uint32_t slow = places.bytes - 14; /* jmp *slow_exit, slow_exit */
	assert_true(decode(code, slow, AT + slow) <= 42);
	stub = stub_of(KY_STUB_CALL);
	stub.exit = 0; /* with an exit of its own: the same at its end */
	uint8_t own[KY_STUB_MAX];
	struct ky_stub_places own_places;
	ky_stub_make(&stub, NULL, own, &own_places);
	assert_int_equal(own_places.bytes, own_places.body + places.bytes);
	assert_memory_equal(own + own_places.body, code, places.bytes);
}

static void entries_lead_back(void **state)
{
	(void)state;
	uint8_t code[KY_STUB_MAX];
	struct ky_stub_places places;
	struct ky_stub stub = stub_of(KY_STUB_ENTRY);
	stub.returns_to = AT + 100000;
	ky_stub_make(&stub, NULL, code, &places);
	int32_t distance;
	assert_int_equal(code[places.body], 0xe9);
	memcpy(&distance, code + places.body + 1, sizeof(distance));
	assert_int_equal(AT + places.body + 5 + (uint64_t)distance, stub.returns_to);
	assert_true(decode(code, places.body, AT + places.body + 5) <= 24);
	/* Its slow path comes back to the body. */
	memcpy(&distance, code + places.bytes - 4, sizeof(distance));
	assert_int_equal(places.bytes + (uint32_t)distance, places.body);
}

static void callers_are_checked_where_asked(void **state)
{
	(void)state;
	uint8_t code[KY_STUB_MAX];
	struct ky_stub_places places, checked;
	struct ky_stub stub = stub_of(KY_STUB_CALL);
	ky_stub_make(&stub, NULL, code, &places);
	stub.near_from = AT;
	stub.near_bytes = 1 << 20;
	ky_stub_make(&stub, NULL, code, &checked);
	assert_true(checked.hook > places.hook);
	decode(code, checked.hook, AT + checked.hook + KY_STUB_HOOK_BYTES);
}

/* The largest that can be asked for. */
static void stubs_fit(void **state)
{
	(void)state;
	static const enum ky_stub_kind kinds[] = {KY_STUB_CALL,      KY_STUB_ENTRY,
						  KY_STUB_FIND_FDE,  KY_STUB_LOADER,
						  KY_STUB_CYG_ENTER, KY_STUB_CYG_EXIT};
	const struct ky_moved moved = {.bytes = KY_MOVED_MAX};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct ky_stub stub = stub_of(kinds[i]);
		stub.exit = 0;
		stub.near_bytes = 1;
		stub.returns_to = AT;
		uint8_t code[2 * KY_STUB_MAX];
		struct ky_stub_places places;
		ky_stub_make(&stub, &moved, code, &places);
		assert_true(places.bytes <= KY_STUB_MAX);
		assert_int_equal(places.body, ky_stub_body_at(&stub));
	}
}

static void unwind_records_are_whole(void **state)
{
	(void)state;
	uint8_t records[KY_STUB_UNWIND_MAX];
	const uint32_t bytes = ky_stub_unwind(records, AT, AT, AT + 4096, UINT64_C(0x7f1234560000));
	assert_true(bytes <= sizeof(records));
	uint32_t at = 0, lengths[3];
	for (int i = 0; i < 3; i++) { /* CIE, FDE, and the end */
		memcpy(&lengths[i], records + at, 4);
		at += 4 + lengths[i];
		assert_true(at <= bytes);
	}
	assert_int_equal(at, bytes);
	assert_int_equal(lengths[2], 0);
	uint64_t range[2];
	memcpy(range, records + 4 + lengths[0] + 8, sizeof(range));
	assert_int_equal(range[0], AT);
	assert_int_equal(range[1], 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_a_call_are_in_place),
		cmocka_unit_test(exits_decode),
		cmocka_unit_test(entries_lead_back),
		cmocka_unit_test(callers_are_checked_where_asked),
		cmocka_unit_test(stubs_fit),
		cmocka_unit_test(unwind_records_are_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
