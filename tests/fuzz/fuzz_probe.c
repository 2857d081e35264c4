/* SPDX-License-Identifier: MIT */
/* fuzz_probe.c: any bytes as the first ones of an input. Every reader looks at them, and at none before or behind. */
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	/* As the input has it: behind the bytes there is a 0. */
	uint8_t *copy = malloc(bytes + 1);
	fuzz_check(copy != NULL);
	if (bytes)
		memcpy(copy, data, bytes);
	copy[bytes] = 0;
	for (int whole = 0; whole < 2; whole++) {
		const struct ky_probe probe = {.data = copy, .bytes = bytes, .whole = whole};
		for (const struct ky_reader *const *reader = ky_readers; *reader; reader++)
			(void)(*reader)->probe(&probe);
	}
	free(copy);
	return 0;
}
