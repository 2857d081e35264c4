/* SPDX-License-Identifier: MIT */
/* finder.c: see capture_verb.h. Names go to fzf without control characters, with their number before them. */
#include "base/file.h"
#include "cli/capture_verb.h"

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_list(const struct ky_symbol_list *list, int fd)
{
	FILE *to = fdopen(fd, "w");
	if (!to) {
		close(fd);
		return;
	}
	for (uint32_t i = 0; i < ky_symbol_list_count(list) && !ferror(to); i++) {
		const struct ky_symbol_entry *entry = ky_symbol_list_at(list, i);
		const char *module = ky_file_name(entry->module);
		fprintf(to, "%" PRIu32 "\t", i);
		ky_cli_text(to, entry->name, strlen(entry->name));
		fputs("\t", to);
		ky_cli_text(to, module, strlen(module));
		fputs("\n", to);
	}
	fclose(to);
}

static void run_fzf(int in, int out)
{
	signal(SIGPIPE, SIG_DFL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	execlp("fzf", "fzf", "--delimiter=\t", "--with-nth=2..",
	       "--prompt=symbol: ", "--tiebreak=length", (char *)NULL);
	_exit(127);
}

/* Read the number at the beginning of the line that fzf prints. */
static bool read_answer(int fd, uint32_t count, uint32_t *chosen)
{
	char text[32];
	size_t used = 0;
	ssize_t bytes;
	while (used < sizeof(text) - 1 &&
	       (bytes = read(fd, text + used, sizeof(text) - 1 - used)) != 0) {
		if (bytes < 0 && errno != EINTR)
			break;
		used += bytes > 0 ? (size_t)bytes : 0;
	}
	text[used] = '\0';
	char *end;
	const unsigned long index = strtoul(text, &end, 10);
	*chosen = (uint32_t)index;
	return end != text && *end == '\t' && index < count;
}

/* Run fzf. Return 0 with the index of the chosen symbol, -ECANCELED, or -ENOENT: there is no fzf that works. */
static int choose(const struct ky_symbol_list *list, uint32_t *chosen)
{
	int in[2], out[2], status = 0;
	if (pipe2(in, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC) != 0) {
		close(in[0]);
		close(in[1]);
		return -errno;
	}
	const pid_t pid = fork();
	if (pid == 0)
		run_fzf(in[0], out[1]);
	close(in[0]);
	close(out[1]);
	/* fzf may end before it has read everything. */
	void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
	if (pid > 0)
		write_list(list, in[1]);
	else
		close(in[1]);
	signal(SIGPIPE, before);
	const bool answered = pid > 0 && read_answer(out[0], ky_symbol_list_count(list), chosen);
	close(out[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (answered)
		return 0;
	/* 1: nothing matched; 130: Esc or Ctrl-C. Anything else means that it could not run. */
	const int code = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
	return code == 1 || code == 130 ? -ECANCELED : -ENOENT;
}

/* Report why no name was chosen. */
static int fail(int error)
{
	if (error == -ENOENT) {
		ky_cli_error(
			"--trigger symbol:? needs fzf: install it, or write the function's name: symbol:NAME");
		return KY_EXIT_IMPOSSIBLE;
	}
	if (error == -ECANCELED)
		return ky_cli_error("--trigger symbol:?: no function was chosen");
	return ky_cli_error(
		"--trigger symbol:?: cannot run fzf: %s; write the function's name: symbol:NAME",
		strerror(-error));
}

int ky_finder_choose(const struct ky_symbol_list *list, char *out, size_t room)
{
	uint32_t chosen = 0;
	const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (terminal < 0) {
		ky_cli_error(
			"--trigger symbol:? needs a terminal: write the function's name: symbol:NAME");
		return KY_EXIT_USAGE;
	}
	close(terminal);
	if (ky_symbol_list_count(list) == 0)
		return ky_cli_error(
			"--trigger symbol:?: the program has no symbols: build it without -s, or install its "
			"debug symbols");
	const int error = choose(list, &chosen);
	if (error)
		return fail(error);
	const char *name = ky_symbol_list_at(list, chosen)->name;
	if (strlen(name) >= room) /* a template of templates */
		name = ky_symbol_list_at(list, chosen)->linked;
	if (strlen(name) >= room)
		return ky_cli_error("--trigger symbol:?: the chosen name is too long");
	memcpy(out, name, strlen(name) + 1);
	return KY_EXIT_DONE;
}
