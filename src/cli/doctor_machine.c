/* SPDX-License-Identifier: MIT */
/* doctor_machine.c: what the recorder and the files need: the clock, shared memory, compression. */
#include "cli/doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

#if defined(__x86_64__)
/* The counter runs at one speed, in all states of sleep. */
static bool counter_is_invariant(void)
{
	char line[4096];
	bool constant = false, nonstop = false;
	FILE *const file = fopen("/proc/cpuinfo", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "flags", 5) != 0)
			continue;
		constant = strstr(line, " constant_tsc") != NULL;
		nonstop = strstr(line, " nonstop_tsc") != NULL;
		break;
	}
	if (file)
		fclose(file);
	return constant && nonstop;
}
#elif defined(__aarch64__)
static bool counter_is_invariant(void)
{
	return true;
}
#else
static bool counter_is_invariant(void)
{
	return false;
}
#endif

void ky_check_clock(struct ky_check *check)
{
	char source[32];
	check->name = "clock";
	if (!ky_check_read(CLOCK_SOURCE, source, sizeof(source)))
		snprintf(source, sizeof(source), "not known");
	const bool fast = strcmp(source, "tsc") == 0 || strncmp(source, "arch", 4) == 0 ||
			  strncmp(source, "kvm-", 4) == 0;
	const bool invariant = counter_is_invariant();
	if (invariant && fast) {
		ky_check_set(check, KY_CHECK_OK,
			     "the CPU's counter is invariant; the kernel's clock is %s", source);
		return;
	}
	ky_check_set(check, KY_CHECK_LIMITED, "%s; the kernel's clock is %s: an event costs more",
		     invariant ? "the CPU's counter is invariant"
			       : "the CPU's counter is not invariant",
		     source);
	if (!fast)
		ky_check_remedy(check, "echo tsc | sudo tee %s, where the CPU allows it",
				CLOCK_SOURCE);
}

void ky_check_memfd(struct ky_check *check)
{
	check->name = "memfd and seals";
	const int fd = memfd_create("kymo-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		ky_check_set(check, KY_CHECK_NO, "memfd_create(): %s", strerror(errno));
		ky_check_remedy(check, "KYMO_DRUM_DIR=/dev/shm makes the rings files instead");
		return;
	}
	if (ftruncate(fd, 4096) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		ky_check_set(check, KY_CHECK_LIMITED, "a memfd cannot be sealed: %s",
			     strerror(errno));
		ky_check_remedy(check, "KYMO_DRUM_DIR=/dev/shm makes the rings files instead");
	} else {
		ky_check_set(check, KY_CHECK_OK, "rings can be shared with other processes");
	}
	close(fd);
}

/* The recorder loads it when a file is to be packed. */
static void check_library(struct ky_check *check, const char *file, const char *uses,
			  const char *package)
{
	void *const library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
	if (library) {
		dlclose(library);
		ky_check_set(check, KY_CHECK_OK, "%s is there, for %s", file, uses);
		return;
	}
	ky_check_set(check, KY_CHECK_LIMITED, "%s is not there: %s cannot be written", file, uses);
	ky_check_remedy(check, "sudo apt install %s", package);
}

void ky_check_zlib(struct ky_check *check)
{
	check->name = "zlib";
	check_library(check, "libz.so.1", ".json.gz and .fxt.gz", "zlib1g");
}

void ky_check_zstd(struct ky_check *check)
{
	check->name = "zstd";
	check_library(check, "libzstd.so.1", "packed .kymo files", "libzstd1");
}
