/* SPDX-License-Identifier: MIT */
/* ctf_sandbox.c: see ctf_sandbox.h. */
#include "formats/ctf/ctf_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The library makes an object of about 100 bytes of an array's element, of which a byte may hold several. */
#define MEMORY_PER_BYTE 1024u
#define MEMORY_LEAST (128u << 20)

/* Bytes of data that this process has now; 0: not known. */
static uint64_t data_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit_memory(uint64_t more)
{
	const uint64_t now = data_bytes();
	struct rlimit limit;
	if (!now || getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur < now + more)
		return;
	limit.rlim_cur = now + more;
	setrlimit(RLIMIT_DATA, &limit);
}

/* Silent, without a core or the program's handlers, and with memory for what a trace of that size may need. */
static void prepare_child(uint64_t memory)
{
	static const int deadly[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct rlimit no_core = {0, 0};
	setrlimit(RLIMIT_CORE, &no_core);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		signal(deadly[i], SIG_DFL);
	limit_memory(memory);
	if (nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
}

/* Wait for the child; give it up when progress says so. */
static int await(struct ky_load *load, pid_t child, int *status)
{
	int error = 0;
	while (waitpid(child, status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
		if (!error && load->progress)
			error = load->progress(load, 0, 0);
		if (error)
			kill(child, SIGKILL);
	}
	return error;
}

int ky_ctf_rehearse(struct ky_load *load, uint64_t bytes,
		    int (*read)(struct ky_load *load, uint64_t bytes))
{
	const uint64_t memory = MEMORY_LEAST + bytes * MEMORY_PER_BYTE;
	const pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		prepare_child(memory);
		load->progress = NULL;
		read(load, bytes);
		_exit(0);
	}
	int status;
	const int error = await(load, child, &status);
	if (error || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return error;
	return ky_load_fail(load, KY_NO_PLACE,
			    "babeltrace2's library cannot read this trace: it ends with %s %d when "
			    "it has %llu MB of memory",
			    WIFSIGNALED(status) ? "signal" : "code",
			    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			    (unsigned long long)(memory >> 20));
}
