/* SPDX-License-Identifier: MIT */
/*
 * finder_own.c: the finder that is there when fzf is not. The terminal is raw and shows its second screen; both are put
 * back however it ends, by a signal too. All that was typed is taken in before the names are looked through and the
 * screen is drawn once.
 *
 *	symbol: recv_	  12/48210      what was typed, how many match
 *	> net::recv_all  server         the chosen one, and where it is
 *	  net::recv_one  server
 */
#include "cli/finder.h"

#include "cli/cli.h"
#include "cli/finder_match.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ttydefaults.h>
#include <termios.h>
#include <unistd.h>

#define TYPED_MAX KY_FINDER_TYPED_MAX
#define ESCAPE_WAIT_MS 50 /* after Esc: an arrow's other bytes come at once */

enum outcome { GOES_ON, CHOSEN, GIVEN_UP };

struct finder {
	int terminal;
	struct ky_finder_matches matches;
	char typed[TYPED_MAX];
	size_t typed_bytes;
	uint32_t selected; /* in matches.order */
	uint32_t top;      /* the first that is shown */
	unsigned rows, columns;
	sigset_t waiting; /* the signals that are blocked but while it waits */
};

static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
	if (number != SIGWINCH)
		signalled = number;
}

/* ---- the screen ---- */

static void take_size(struct finder *finder)
{
	struct winsize size;
	const bool known = ioctl(finder->terminal, TIOCGWINSZ, &size) == 0;
	finder->rows = known && size.ws_row > 2 ? size.ws_row : 24;
	finder->columns = known && size.ws_col > 10 ? size.ws_col : 80;
}

static unsigned write_fitting(FILE *to, const char *text, unsigned columns)
{
	const size_t bytes = ky_cli_text_fit(text, strlen(text), columns);
	ky_cli_text(to, text, bytes);
	return ky_cli_text_columns(text, bytes);
}

static void write_entry(const struct finder *finder, FILE *to, uint32_t at)
{
	const struct ky_symbol_entry *entry =
		ky_symbol_list_at(finder->matches.list, finder->matches.order[at]);
	const char *slash = strrchr(entry->module, '/');
	const bool selected = at == finder->selected;
	unsigned left = finder->columns - 3;
	fputs(selected ? "\r\n\033[7m> " : "\r\n  ", to);
	left -= write_fitting(to, entry->name, left);
	if (left > 4) {
		fputs("  ", to);
		write_fitting(to, slash ? slash + 1 : entry->module, left - 2);
	}
	fputs(selected ? "\033[0m\033[K" : "\033[K", to);
}

static void write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		const ssize_t written = write(fd, text, bytes);
		if (written < 0 && errno != EINTR)
			return;
		text += written > 0 ? written : 0;
		bytes -= written > 0 ? (size_t)written : 0;
	}
}

static void draw(struct finder *finder)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return;
	take_size(finder);
	const unsigned shown = finder->rows - 1;
	if (finder->selected < finder->top)
		finder->top = finder->selected;
	if (finder->selected >= finder->top + shown)
		finder->top = finder->selected - shown + 1;
	fputs("\033[?25l\033[H\033[Ksymbol: ", to);
	write_fitting(to, finder->typed, finder->columns > 32 ? finder->columns - 32 : 8);
	fprintf(to, "\0337  %u/%u", (unsigned)finder->matches.count,
		(unsigned)ky_symbol_list_count(finder->matches.list));
	for (uint32_t i = 0; i < shown && finder->top + i < finder->matches.count; i++)
		write_entry(finder, to, finder->top + i);
	fputs("\033[J\0338\033[?25h", to); /* the cursor behind what was typed */
	if (fclose(to) == 0)
		write_all(finder->terminal, text, bytes);
	free(text);
}

/* ---- keys ---- */

static void move(struct finder *finder, int64_t by)
{
	const int64_t last = finder->matches.count ? (int64_t)finder->matches.count - 1 : 0;
	int64_t to = (int64_t)finder->selected + by;
	to = to < 0 ? 0 : to > last ? last : to;
	finder->selected = (uint32_t)to;
}

/* What follows Esc: its length, or 0 for Esc alone. */
static size_t take_arrow(struct finder *finder, const char *keys, size_t bytes)
{
	if (bytes < 2 || (keys[0] != '[' && keys[0] != 'O'))
		return 0;
	size_t length = 1;
	while (length < bytes && (keys[length] < '@' || keys[length] > '~'))
		length++;
	const int64_t page = (int64_t)finder->rows - 2;
	if (keys[length] == 'A')
		move(finder, -1);
	else if (keys[length] == 'B')
		move(finder, 1);
	else if (keys[length] == '~' && keys[1] == '5')
		move(finder, -page);
	else if (keys[length] == '~' && keys[1] == '6')
		move(finder, page);
	return length < bytes ? length + 1 : bytes;
}

static void erase_last(struct finder *finder)
{
	while (finder->typed_bytes &&
	       ((uint8_t)finder->typed[--finder->typed_bytes] & 0xc0) == 0x80)
		continue;
	finder->typed[finder->typed_bytes] = '\0';
}

static void erase_all(struct finder *finder)
{
	finder->typed_bytes = 0;
	finder->typed[0] = '\0';
}

static enum outcome take_key(struct finder *finder, char key)
{
	switch (key) {
	case '\r':
	case '\n':
		return finder->matches.count ? CHOSEN : GOES_ON;
	case CTRL('C'):
	case CTRL('D'):
	case CTRL('G'):
		return GIVEN_UP;
	case CTRL('P'):
	case CTRL('K'):
		move(finder, -1);
		break;
	case CTRL('N'):
		move(finder, 1);
		break;
	case CTRL('U'):
		erase_all(finder);
		break;
	case CTRL('H'):
	case 127:
		erase_last(finder);
		break;
	default:
		if ((uint8_t)key >= ' ' && finder->typed_bytes < TYPED_MAX - 1) {
			finder->typed[finder->typed_bytes++] = key;
			finder->typed[finder->typed_bytes] = '\0';
		}
	}
	return GOES_ON;
}

static void look_again(struct finder *finder, const char *before)
{
	if (strcmp(before, finder->typed) == 0)
		return;
	ky_finder_matches_find(&finder->matches, finder->typed);
	finder->selected = 0;
	finder->top = 0;
}

static enum outcome take_keys(struct finder *finder, const char *keys, size_t bytes)
{
	enum outcome outcome = GOES_ON;
	char before[TYPED_MAX];
	memcpy(before, finder->typed, sizeof(before));
	for (size_t at = 0; at < bytes && outcome == GOES_ON; at++) {
		if (keys[at] == '\033') {
			const size_t more = take_arrow(finder, keys + at + 1, bytes - at - 1);
			outcome = more ? GOES_ON : GIVEN_UP;
			at += more;
			continue;
		}
		/* Enter chooses of what matches all that was typed before it. */
		if (keys[at] == '\r' || keys[at] == '\n') {
			look_again(finder, before);
			memcpy(before, finder->typed, sizeof(before));
		}
		outcome = take_key(finder, keys[at]);
	}
	if (outcome == GOES_ON)
		look_again(finder, before);
	return outcome;
}

/* What was typed; with an Esc at its end, what comes right behind that too. 0 at the end of the terminal. */
static size_t read_keys(const struct finder *finder, char *keys, size_t room)
{
	size_t used = 0;
	for (;;) {
		const ssize_t bytes = read(finder->terminal, keys + used, room - used);
		if (bytes <= 0)
			return used;
		used += (size_t)bytes;
		struct pollfd more = {finder->terminal, POLLIN, 0};
		if (keys[used - 1] != '\033' || used == room || poll(&more, 1, ESCAPE_WAIT_MS) <= 0)
			return used;
	}
}

static int choose(struct finder *finder, uint32_t *chosen)
{
	enum outcome outcome = GOES_ON;
	while (outcome == GOES_ON) {
		char keys[256];
		struct pollfd typed = {finder->terminal, POLLIN, 0};
		draw(finder);
		const int ready = ppoll(&typed, 1, NULL, &finder->waiting);
		if (signalled)
			return -ECANCELED;
		if (ready < 0 && errno == EINTR)
			continue; /* another size */
		const size_t bytes = ready > 0 ? read_keys(finder, keys, sizeof(keys)) : 0;
		if (bytes == 0)
			return -ECANCELED;
		outcome = take_keys(finder, keys, bytes);
	}
	if (outcome == GIVEN_UP)
		return -ECANCELED;
	*chosen = finder->matches.order[finder->selected];
	return 0;
}

/* ---- the terminal ---- */

static const int caught[] = {SIGWINCH, SIGTERM, SIGHUP};
#define CAUGHT (sizeof(caught) / sizeof(caught[0]))

static int choose_raw(struct finder *finder, uint32_t *chosen)
{
	static const char enter[] = "\033[?1049h", leave[] = "\033[?1049l";
	struct termios before, raw;
	if (tcgetattr(finder->terminal, &before) != 0)
		return -errno;
	raw = before;
	cfmakeraw(&raw);
	if (tcsetattr(finder->terminal, TCSADRAIN, &raw) != 0)
		return -errno;
	write_all(finder->terminal, enter, sizeof(enter) - 1);
	const int error = choose(finder, chosen);
	write_all(finder->terminal, leave, sizeof(leave) - 1);
	tcsetattr(finder->terminal, TCSADRAIN, &before);
	return error;
}

int ky_finder_own(const struct ky_symbol_list *list, int terminal, uint32_t *chosen)
{
	struct finder finder = {.terminal = terminal, .rows = 24, .columns = 80};
	struct sigaction before[CAUGHT];
	const struct sigaction ours = {.sa_handler = on_signal};
	int error = ky_finder_matches_open(&finder.matches, list);
	if (error)
		return error;
	sigset_t ours_alone;
	sigemptyset(&ours_alone);
	signalled = 0;
	for (size_t i = 0; i < CAUGHT; i++) {
		sigaddset(&ours_alone, caught[i]);
		sigaction(caught[i], &ours, &before[i]);
	}
	sigprocmask(SIG_BLOCK, &ours_alone,
		    &finder.waiting); /* none is missed between drawing and waiting */
	error = choose_raw(&finder, chosen);
	for (size_t i = 0; i < CAUGHT; i++)
		sigaction(caught[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &finder.waiting, NULL);
	ky_finder_matches_close(&finder.matches);
	if (signalled)
		raise(signalled); /* what it usually does, now that the terminal is as it was */
	return error;
}
