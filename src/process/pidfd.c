/* SPDX-License-Identifier: MIT */
/* pidfd.c: see pidfd.h. */
#include "process/pidfd.h"

#include "process/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* Of linux/pidfd.h, which is older than the kernel on some systems; exit_code since 6.15. */
struct exit_info {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define EXIT_INFO_GET _IOWR(0xff, 11, struct exit_info)
#define EXIT_INFO_KNOWN (UINT64_C(1) << 3)

int ky_pidfd_open(pid_t pid)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

bool ky_pidfd_ended(int pidfd)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};
	return poll(&fd, 1, 0) > 0;
}

bool ky_pidfd_reaped(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) != 0 && errno == ESRCH;
}

int ky_pidfd_status(int pidfd, pid_t pid)
{
	struct ky_proc_stat stat;
	if (ky_proc_stat(pid, 0, &stat) == 0 && stat.state == 'Z' && !ky_pidfd_reaped(pidfd))
		return stat.exit_code;
	struct exit_info info = {.mask = EXIT_INFO_KNOWN};
	if (ioctl(pidfd, EXIT_INFO_GET, &info) == 0 && (info.mask & EXIT_INFO_KNOWN))
		return info.exit_code;
	return -1;
}
