/* SPDX-License-Identifier: MIT */
/* fuzz_sample_elf.c: any bytes as a program whose addresses are to be named: its symbols, stubs and debug information. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "process/symbolizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void look(void *context, const struct ky_sample_function *function)
{
	size_t *seen = context;
	*seen += strlen(function->name) + (function->file ? strlen(function->file) : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct ky_sample_elf *elf;
	struct ky_trace *trace;
	struct timespec now;
	size_t seen = 0;
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || ky_trace_open(&trace) != 0)
		abort();
	clock_gettime(CLOCK_MONOTONIC, &now);
	const uint64_t deadline = ((uint64_t)now.tv_sec + 2) * 1000000000u;
	if (ky_sample_elf_open(&elf, trace, "/fuzz", fd, deadline) == 0) {
		for (uint64_t offset = 0; offset < bytes; offset += 13)
			ky_sample_elf_at(elf, offset, look, &seen);
		ky_sample_elf_close(&elf);
	}
	ky_trace_close(&trace);
	return 0;
}
