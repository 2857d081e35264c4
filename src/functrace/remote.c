/* SPDX-License-Identifier: MIT */
/* remote.c: the process and its memory: see remote.h. */
#include "functrace/remote.h"
#include "base/array.h"

#include "os/os.h"
#include "process/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CODE_SCAN_BYTES 65536u

/* Return 0 when its program is for this kind of CPU. */
static int check_class(pid_t pid, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	Elf64_Ehdr head;
	const int fd = ky_proc_open(pid, "exe", O_RDONLY);
	if (fd < 0) {
		ky_remote_refusal(pid, -fd, message);
		return fd == -EACCES ? -EPERM : fd;
	}
	const ssize_t got = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (got == (ssize_t)sizeof(head) && head.e_ident[EI_CLASS] == ELFCLASS64 &&
	    head.e_machine == EM_X86_64)
		return 0;
	snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
		 "Cannot patch process %d: it is not a 64-bit x86 program; use --engine sample",
		 (int)pid);
	return -ENOEXEC;
}

int ky_remote_open(struct ky_remote *remote, pid_t pid, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	*remote = (struct ky_remote){.pid = pid, .memory = -1};
	if (pid <= 0 || pid == getpid()) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "Cannot patch process %d: %s",
			 (int)pid, pid <= 0 ? "no such process" : "it is kymo itself");
		return -EINVAL;
	}
	const int error = check_class(pid, message);
	if (error)
		return error;
	const int memory = ky_proc_open(pid, "mem", O_RDWR);
	if (memory >= 0) {
		remote->memory = memory;
		return 0;
	}
	ky_remote_refusal(pid, -memory, message);
	return memory == -EACCES ? -EPERM : memory;
}

void ky_remote_close(struct ky_remote *remote)
{
	if (remote->stopped)
		ky_remote_go(remote);
	if (remote->memory >= 0)
		close(remote->memory);
	KY_ARRAY_FREE(remote->threads, remote->room);
	*remote = (struct ky_remote){.memory = -1};
}

int ky_remote_read(const struct ky_remote *remote, uint64_t address, void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		const ssize_t got = pread(remote->memory, (char *)data + done, bytes - done,
					  (off_t)(address + done));
		if (got < 0 && errno == EINTR)
			continue;
		/* Nothing was read: the process has ended, or runs another program. */
		if (got <= 0)
			return got ? -errno : -ESRCH;
		done += (size_t)got;
	}
	return 0;
}

int ky_remote_write(const struct ky_remote *remote, uint64_t address, const void *data,
		    size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		const ssize_t put = pwrite(remote->memory, (const char *)data + done, bytes - done,
					   (off_t)(address + done));
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -ESRCH;
		done += (size_t)put;
	}
	return 0;
}
