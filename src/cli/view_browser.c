/* SPDX-License-Identifier: MIT */
/* view_browser.c: see view_browser.h. */
#include "cli/view_browser.h"

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool ky_browser_may_open(void)
{
	const char *const x11 = getenv("DISPLAY"), *const wayland = getenv("WAYLAND_DISPLAY");
	return (x11 && *x11) || (wayland && *wayland);
}

static bool write_page(const char *path, const char *address)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	const int bytes = dprintf(fd,
				  "<!doctype html><meta charset=\"utf-8\"><title>kymo</title>"
				  "<meta name=\"referrer\" content=\"no-referrer\">"
				  "<meta http-equiv=\"refresh\" content=\"0;url=%s\">"
				  "<a href=\"%s\">kymo view</a>\n",
				  address, address);
	return close(fd) == 0 && bytes > 0;
}

/* In the child of a child that ends at once, so that nobody waits for it and Ctrl-C is not for it. */
static _Noreturn void run(const char *page, const sigset_t *mask)
{
	const int null = open("/dev/null", O_RDWR);
	sigprocmask(SIG_SETMASK, mask, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (fork() != 0)
		_exit(0);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp("xdg-open", "xdg-open", page, (char *)NULL);
	_exit(127);
}

bool ky_browser_open(const char *address, struct ky_scratch *scratch, const sigset_t *mask)
{
	char page[PATH_MAX];
	if (!ky_scratch_open(scratch))
		return false;
	ky_scratch_name(scratch, "open.html", page);
	const pid_t child = write_page(page, address) ? fork() : -1;
	if (child == 0)
		run(page, mask);
	if (child > 0 && waitpid(child, NULL, 0) == child)
		return true;
	ky_cli_error("cannot open a browser: %s; open the address yourself", strerror(errno));
	return false;
}
