/* SPDX-License-Identifier: MIT */
/* fuzz_sample_elf.c: any bytes as a program whose addresses are to be named: its symbols, stubs and debug information. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "process/symbolizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void look(void *context, const struct ky_symbolizer_function *function)
{
	size_t *seen = context;
	*seen += strlen(function->name) + (function->file ? strlen(function->file) : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ky_symbolizer *elf;
	struct ky_strings strings;
	struct timespec now;
	size_t seen = 0;
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || ky_strings_init(&strings) != 0)
		abort();
	clock_gettime(CLOCK_MONOTONIC, &now);
	const uint64_t deadline = ((uint64_t)now.tv_sec + 2) * 1000000000u;
	if (ky_symbolizer_open(&elf, &strings, "/fuzz", fd, deadline) == 0) {
		for (uint64_t offset = 0; offset < bytes; offset += 13)
			ky_symbolizer_at(elf, offset, look, &seen);
		ky_symbolizer_close(&elf);
	}
	ky_strings_free(&strings);
	return 0;
}
