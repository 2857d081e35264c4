/* SPDX-License-Identifier: MIT */
/* fuzz_uftrace.c: any bytes as the files of a uftrace directory. */
#include "fuzz_directory.h"
#include "fuzz_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const names[] = {"info",          "task.txt",        "sid-00ff.map",
				    "prog.sym",      "10.dat",          "11.dat",
				    "perf-cpu0.dat", "kernel-cpu0.dat", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	fuzz_directory_fill(names, data, bytes);
	fuzz_load_path(fuzz_directory, NULL, false);
	return 0;
}
