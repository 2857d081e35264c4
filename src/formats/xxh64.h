/* SPDX-License-Identifier: MIT */
/*
 * xxh64.h: the checksum of .kymo files: XXH64 with seed 0, as it is published. It runs at the speed
 * of memory without any special instructions, and every language has it.
 */
#ifndef KY_FORMATS_XXH64_H
#define KY_FORMATS_XXH64_H

#include <stddef.h>
#include <stdint.h>

uint64_t ky_xxh64(const void *data, size_t bytes);

#endif
