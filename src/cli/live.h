/* SPDX-License-Identifier: MIT */
/*
 * live.h: what tail and top share: the events of running processes as they come and the spans that are open in their threads
 * (live.c), and a screen of the terminal that is drawn again and again (screen.c).
 *
 * They are a capture without a file: the categories are switched on and off again, processes that come and go are followed, and the programs
 * never wait. What a ring overwrote before it was read is reported as lost.
 */
#ifndef KY_CLI_LIVE_H
#define KY_CLI_LIVE_H

#include "base/map.h"
#include "cli/capture_verb.h"
#include "core/event.h"

#include <termios.h>

/* Options that choose processes and events; their places are in struct ky_capture_command. */
extern const struct ky_option ky_live_options[];

struct ky_live_how {
	void (*event)(void *context, pid_t pid, const struct ky_event *event);
	/* Called ten times a second, with what never reached a ring. Return non-zero to stop. */
	int (*round)(void *context, uint64_t elapsed_ns, uint64_t lost);
	/* Called with a line for the user; NULL: on standard error. */
	void (*note)(void *context, const char *line);
	void *context;
};

/*
 * Read the options of the running verb, whose command struct begins with that of captures, and hand its events out until the processes
 * have ended, Ctrl-C, or round() stops it. begin, if not NULL, is called in between: it returns an enum ky_exit. Return an enum ky_exit.
 */
int ky_live_run(struct ky_capture_command *command, int argc, char **argv,
		int (*begin)(void *context), const struct ky_live_how *how);

/* ---- open spans ---- */

struct ky_live_span {
	uint64_t begin_ns;
	uint32_t row;         /* the caller's */
	bool inner;           /* the caller's */
	char *name;           /* the caller's: freed with the span; may be NULL */
	const char *category; /* within name's memory; NULL: there is none */
};

struct ky_live_thread {
	const struct ky_thread *thread;
	int32_t pid, tid;
	struct ky_live_span *open;
	uint32_t depth, room;
	uint32_t skipped; /* open ones inside them that are not kept */
	uint64_t at_ns;   /* the caller's */
	pid_t process;    /* the caller's */
};

/* All zero is empty. */
struct ky_live_spans {
	struct ky_live_thread *threads;
	uint32_t count, room;
	struct ky_u64_map index; /* address of a ky_thread: number */
};

/* Return the thread of an event; NULL without memory. Valid until the next call. */
struct ky_live_thread *ky_live_spans_thread(struct ky_live_spans *spans,
					    const struct ky_thread *thread);
/* Open a span, which takes over name. False: it is not kept, and name is freed; its end is known. */
bool ky_live_spans_begin(struct ky_live_thread *thread, uint64_t begin_ns, uint32_t row,
			 char *name);
/* Take the innermost span off; false: none is open. The caller frees its name. */
bool ky_live_spans_end(struct ky_live_thread *thread, struct ky_live_span *span);
/* Forget the thread's open spans: events are missing. */
void ky_live_spans_lost(struct ky_live_thread *thread);
void ky_live_spans_free(struct ky_live_spans *spans);

/* ---- a screen ---- */

struct ky_screen {
	bool on;   /* standard output is a terminal */
	bool keys; /* and standard input, too */
	struct termios terminal;
};

/* Begin a screen of its own, if standard output is a terminal; what is typed is not shown. suspends: Ctrl-Z has its effect. */
void ky_screen_open(struct ky_screen *screen, bool suspends);
/* Leave it for a while and come back: the terminal is as it was in between. */
void ky_screen_leave(const struct ky_screen *screen);
void ky_screen_enter(const struct ky_screen *screen, bool suspends);
void ky_screen_clear(void);
/* Return the keys that were typed since, as a text of less than room bytes. */
const char *ky_screen_keys(const struct ky_screen *screen, char *keys, size_t room);
/* Return the lines of the terminal. */
unsigned ky_screen_lines(void);

#endif
