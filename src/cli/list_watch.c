/* SPDX-License-Identifier: MIT */
/*
 * list_watch.c: kymo list --watch: on a terminal a screen that is redrawn every second, as by top; otherwise a block
 * of lines every second. Signals that end or stop kymo arrive on a descriptor, so that the terminal is always
 * restored first.
 */
#include "cli/list.h"

#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS UINT64_C(1000000000)
/* Show the first rate soon. */
#define FIRST_NS UINT64_C(250000000)
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define CLEAR "\033[H\033[2J"
#define LINES_AROUND 5u

struct watch {
	bool screen;
	bool keys; /* standard input is a terminal */
	bool over;
	int signals;
	sigset_t before;
	struct termios terminal;
};

static void enter(const struct watch *watch)
{
	if (watch->keys) {
		struct termios raw = watch->terminal;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	if (watch->screen)
		fputs(ENTER, stdout);
	fflush(stdout);
}

static void leave(const struct watch *watch)
{
	if (watch->screen)
		fputs(LEAVE, stdout);
	fflush(stdout);
	if (watch->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &watch->terminal);
}

static int begin(struct watch *watch, bool json)
{
	sigset_t set;
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	watch->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (watch->signals < 0)
		return -errno;
	sigprocmask(SIG_BLOCK, &set, &watch->before);
	watch->screen = !json && isatty(STDOUT_FILENO) == 1;
	watch->keys = watch->screen && isatty(STDIN_FILENO) == 1 &&
		      tcgetattr(STDIN_FILENO, &watch->terminal) == 0;
	enter(watch);
	return 0;
}

static void end(struct watch *watch)
{
	leave(watch);
	sigprocmask(SIG_SETMASK, &watch->before, NULL);
	close(watch->signals);
}

/* Restore the shell's terminal on Ctrl-Z, and draw the screen again afterwards. */
static void stop(const struct watch *watch)
{
	leave(watch);
	raise(SIGSTOP);
	enter(watch);
}

static void take_signals(struct watch *watch)
{
	struct signalfd_siginfo info;
	while (read(watch->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			stop(watch);
		else if (info.ssi_signo != SIGWINCH)
			watch->over = true;
	}
}

static void take_keys(struct watch *watch)
{
	char keys[64];
	int waiting = 0;
	if (!watch->keys || ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0)
		return;
	const ssize_t count = waiting ? read(STDIN_FILENO, keys, sizeof(keys)) : 0;
	for (ssize_t i = 0; i < count; i++)
		watch->over |= keys[i] == 'q' || keys[i] == 'Q';
}

static unsigned screen_lines(void)
{
	struct winsize size;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : 24;
}

static void print_title(const struct ky_list *list)
{
	double sum = 0;
	char rate[KY_QUANTITY_BYTES];
	for (uint32_t i = 0; i < ky_list_count(list); i++)
		sum += ky_list_at(list, i)->per_second > 0 ? ky_list_at(list, i)->per_second : 0;
	printf("%skymo%s  %" PRIu32 " %s with a drum, %s events/s   q ends\n\n", ky_cli_style("1"),
	       ky_cli_plain(), ky_list_count(list),
	       ky_list_count(list) == 1 ? "process" : "processes",
	       ky_quantity_count(rate, (uint64_t)(sum + 0.5)));
}

static void draw(const struct ky_list *list, const struct ky_list_style *style)
{
	char hidden[256];
	struct ky_list_style fitting = *style;
	const unsigned lines = screen_lines();
	fitting.rows = lines > LINES_AROUND + 1 ? lines - LINES_AROUND : 1;
	fputs(CLEAR, stdout);
	print_title(list);
	ky_list_print(list, &fitting, false);
	ky_list_hidden_text(list, hidden, sizeof(hidden));
	if (*hidden)
		printf("%s%.*s%s", ky_cli_style("2"), (int)ky_cli_width(), hidden, ky_cli_plain());
	fflush(stdout);
}

static void print_block(const struct ky_list *list, const struct ky_list_style *style, bool first)
{
	if (!first && !style->json)
		putchar('\n');
	if (!ky_list_count(list) && !style->json)
		puts("no process has a drum");
	ky_list_print(list, style, true);
	fflush(stdout);
}

/* Draw a screen at once; lines wait for the first rate. */
int ky_list_watch(struct ky_list *list, const struct ky_list_style *style)
{
	struct watch watch = {0};
	uint64_t wait_ns = FIRST_NS;
	bool first = true;
	const int error = begin(&watch, style->json);
	if (error) {
		ky_cli_error("signals cannot be awaited: %s", strerror(-error));
		return KY_EXIT_FAILED;
	}
	ky_list_round(list);
	ky_list_sample(list);
	if (watch.screen)
		draw(list, style);
	while (!watch.over) {
		if (ky_list_wait(list, wait_ns, watch.signals, watch.keys ? STDIN_FILENO : -1)) {
			take_signals(&watch);
			take_keys(&watch);
			if (watch.over || !watch.screen)
				continue;
		}
		wait_ns = EVERY_NS;
		ky_list_sample(list);
		if (watch.screen)
			draw(list, style);
		else
			print_block(list, style, first);
		first = false;
	}
	end(&watch);
	return KY_EXIT_DONE;
}
