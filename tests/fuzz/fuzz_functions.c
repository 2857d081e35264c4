/* SPDX-License-Identifier: MIT */
/* fuzz_functions.c: any bytes as a program whose functions are to be traced: its symbols, frames, marks, code and lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "functrace/instruction.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What is patched must be there, be whole, and can be moved. */
static void check(const struct ky_functions *functions)
{
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		const uint64_t from = function->address + function->at;
		struct ky_moved moved;
		uint64_t left;
		const uint8_t *code = ky_functions_code(functions, from, &left);
		if (strlen(function->name) + strlen(function->linked) == 0)
			abort();
		if (function->how == KY_FUNCTION_NOT)
			continue;
		if (!code || left < function->prologue || function->prologue < KY_JUMP_BYTES)
			abort();
		if (function->how == KY_FUNCTION_PATCH &&
		    ky_prologue_move(&moved, code, function->prologue, from, from + 0x1000) != 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_functions *functions;
	setenv("XDG_CACHE_HOME", "/dev/null", 1); /* where no cache can be */
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	if (ky_functions_read(&functions, fd, "/fuzz", true, message) == 0) {
		check(functions);
		ky_functions_free(&functions);
	} else if (!message[0]) {
		abort();
	}
	close(fd);
	return 0;
}
