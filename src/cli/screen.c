/* SPDX-License-Identifier: MIT */
/* screen.c: a screen of the terminal that is drawn again and again, as by top; see live.h. */
#include "cli/live.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define CLEAR "\033[H\033[2J"

void ky_screen_enter(const struct ky_screen *screen, bool suspends)
{
	if (screen->keys) {
		struct termios raw = screen->terminal;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		if (!suspends)
			raw.c_cc[VSUSP] = _POSIX_VDISABLE;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	if (screen->on)
		fputs(ENTER, stdout);
	fflush(stdout);
}

void ky_screen_leave(const struct ky_screen *screen)
{
	if (screen->on)
		fputs(LEAVE, stdout);
	fflush(stdout);
	if (screen->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen->terminal);
}

void ky_screen_open(struct ky_screen *screen, bool suspends)
{
	screen->on = isatty(STDOUT_FILENO) == 1;
	screen->keys = screen->on && isatty(STDIN_FILENO) == 1 &&
		       tcgetattr(STDIN_FILENO, &screen->terminal) == 0;
	ky_screen_enter(screen, suspends);
}

void ky_screen_clear(void)
{
	fputs(CLEAR, stdout);
}

const char *ky_screen_keys(const struct ky_screen *screen, char *keys, size_t room)
{
	int waiting = 0;
	ssize_t count = 0;
	if (screen->keys && ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting)
		count = read(STDIN_FILENO, keys, room - 1);
	keys[count > 0 ? count : 0] = '\0';
	return keys;
}

unsigned ky_screen_lines(void)
{
	struct winsize size;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : 24;
}
