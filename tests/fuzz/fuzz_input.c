/* SPDX-License-Identifier: MIT */
/*
 * fuzz_input.c: any bytes as packed data or an archive. However it is read, in what steps, again from the begin or
 * at any place, the bytes must be the same; and what comes out is bounded by what we are willing to wait for.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define OUT_BYTES_MAX (256u << 10)

static void check(int holds)
{
	if (!holds)
		abort();
}

static uint64_t hash_more(uint64_t hash, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Reads on in steps; the bytes' hash and number. */
static uint64_t drain(struct ky_input *input, size_t step, uint64_t *position)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	while (input->position < OUT_BYTES_MAX) {
		const bool whole = ky_input_need(input, step);
		const size_t there = (size_t)(input->end - input->at);
		check(*input->end == 0 && (whole || input->ended));
		const size_t take = there < step ? there : step;
		hash = hash_more(hash, input->at, take);
		ky_input_skip(input, take);
		if (!whole)
			break;
	}
	*position = input->position;
	return hash;
}

static void check_member(struct ky_input *input)
{
	uint64_t first;
	uint64_t second;
	bool truncated;
	const uint64_t hash = drain(input, 4096, &first);
	check(!input->ended || input->error != -1);
	check(!ky_input_damage(input, &truncated) || ky_input_damage(input, &truncated)[0]);
	if (ky_input_rewind(input) != 0)
		return;
	check(drain(input, 4096, &second) == hash && first == second);
	if (ky_input_rewind(input) != 0)
		return;
	(void)ky_input_need(input, 100000);
	(void)ky_input_skip_far(input, 5000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ky_input *input;
	uint8_t part[512];
	if (ky_input_open_memory(&input, data, bytes, "fuzz") != 0) {
		check(!input);
		return 0;
	}
	int members = 0;
	do
		check_member(input);
	while (++members < 4 && ky_input_next_member(input));
	uint64_t position;
	if (ky_input_rewind(input) == 0) {
		(void)drain(input, 65536, &position);
		if (position < OUT_BYTES_MAX)
			(void)ky_input_read_at(input, position / 2, part, sizeof(part));
	}
	ky_input_close(&input);
	return 0;
}
