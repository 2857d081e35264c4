/* SPDX-License-Identifier: MIT */
/*
 * probe_uprobe.c: uprobes. The kernel puts a breakpoint instruction into the file's page in every process that
 * has it mapped or will. The file is named by our own descriptor of it, so it may be deleted or be in another mount namespace.
 */
#include "capture/fail.h"
#include "capture/probe_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int read_type(void)
{
	int type = -1;
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	if (!file)
		return -ENODEV;
	if (fscanf(file, "%d", &type) != 1 || type < 0)
		type = -ENODEV;
	fclose(file);
	return type;
}

/* An event without a file cannot be, but whoever may not have any is told so first. */
int ky_probe_uprobe_type(void)
{
	const int type = read_type();
	if (type < 0)
		return type;
	struct perf_event_attr attr = {
		.type = (uint32_t)type, .size = sizeof(attr), .sample_period = 1, .disabled = 1};
	const long fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close((int)fd);
	else if (errno == EACCES || errno == EPERM || errno == ENOSYS)
		return -errno;
	return type;
}

static int fail(const struct ky_probes *probes, uint32_t trigger, int error,
		char message[KY_CAPTURE_MESSAGE_BYTES])
{
	return ky_capture_fail(message, error,
			       "--trigger %s: a uprobe could not be set: %s; breakpoints may do, "
			       "without root, up to four places",
			       probes->options.triggers[trigger].text, strerror(-error));
}

int ky_probe_uprobe_set(struct ky_probes *probes, struct ky_probe_file *file, int fd,
			char message[KY_CAPTURE_MESSAGE_BYTES])
{
	char path[64];
	if (file->set)
		return 0;
	file->set = true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (uint32_t i = 0; i < file->count; i++) {
		const struct ky_probe_place *place = &file->places[i];
		for (uint32_t c = 0; c < probes->cpus_count; c++) {
			struct perf_event_attr attr = {.type = (uint32_t)probes->uprobe_type,
						       .config1 = (uintptr_t)path,
						       .config2 = place->offset,
						       .task = probes->events_count <
							       probes->cpus_count};
			const struct ky_probe_event event = {.trigger = place->trigger};
			const int error =
				ky_probe_event_open(probes, &attr, -1, &probes->cpus[c], &event);
			if (error)
				return fail(probes, place->trigger, error, message);
		}
	}
	return 0;
}
