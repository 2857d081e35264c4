/* SPDX-License-Identifier: MIT */
/*
 * trigger.c: what the user wrote after --trigger, taken apart.
 *
 * In span:, gap: and counter: the first '/' ends the category and the last '>' (or '<') begins the limit. Where one of
 * these belongs to a name, a backslash before it says so; a backslash before anything else is one itself. symbol: and
 * line: are taken as they are, for C++ names are full of such signs.
 */
#include "capture/trigger.h"

#include "capture/fail.h"
#include "model/quantity.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct kind {
	const char *head;
	enum ky_trigger_kind kind;
	/* Takes what is behind the head; NULL: there must be nothing. */
	int (*parse)(struct ky_trigger *trigger, const char *rest,
		     char message[KY_CAPTURE_MESSAGE_BYTES]);
};

static int no_memory(char message[KY_CAPTURE_MESSAGE_BYTES])
{
	return ky_capture_fail(message, -ENOMEM, "--trigger: out of memory");
}

/* ---- signal: ---- */

static bool parse_whole(const char *text, uint64_t max, uint64_t *value)
{
	*value = 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		*value = *value * 10 + (uint64_t)(*text - '0');
		if (*value > max)
			return false;
	}
	return true;
}

/* "RTMIN", "RTMIN+3", "RTMAX-1"; 0: none of these. */
static int real_time_signal(const char *name)
{
	uint64_t distance = 0;
	const bool from_min = strncmp(name, "RTMIN", 5) == 0;
	if (!from_min && strncmp(name, "RTMAX", 5) != 0)
		return 0;
	if (name[5] && (name[5] != (from_min ? '+' : '-') ||
			!parse_whole(name + 6, (uint64_t)(SIGRTMAX - SIGRTMIN), &distance)))
		return 0;
	return from_min ? SIGRTMIN + (int)distance : SIGRTMAX - (int)distance;
}

static int signal_by_name(const char *name)
{
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int number = 1; number < SIGRTMIN; number++) {
		const char *known = sigabbrev_np(number);
		if (known && strcmp(known, name) == 0)
			return number;
	}
	return real_time_signal(name);
}

static int parse_signal(struct ky_trigger *trigger, const char *rest,
			char message[KY_CAPTURE_MESSAGE_BYTES])
{
	uint64_t number;
	if (parse_whole(rest, (uint64_t)SIGRTMAX, &number))
		trigger->signal = (int)number;
	else
		trigger->signal = signal_by_name(rest);
	if (trigger->signal == SIGKILL || trigger->signal == SIGSTOP)
		return ky_capture_fail(message, -EINVAL,
				       "--trigger %s: no process can receive it and go on; use "
				       "another signal, like USR1",
				       trigger->text);
	if (trigger->signal <= 0)
		return ky_capture_fail(message, -EINVAL,
				       "--trigger %s: no such signal; write a name (signal:USR1) "
				       "or a number up to %d",
				       trigger->text, SIGRTMAX);
	return 0;
}

/* ---- symbol:, line: ---- */

static int parse_symbol(struct ky_trigger *trigger, const char *rest,
			char message[KY_CAPTURE_MESSAGE_BYTES])
{
	if (!*rest)
		return ky_capture_fail(message, -EINVAL,
				       "--trigger %s: a function's name is missing; symbol:? opens "
				       "a list to choose from",
				       trigger->text);
	trigger->symbol = strdup(rest);
	return trigger->symbol ? 0 : no_memory(message);
}

static int parse_line(struct ky_trigger *trigger, const char *rest,
		      char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const char *colon = strrchr(rest, ':');
	uint64_t line;
	if (!colon || colon == rest || !parse_whole(colon + 1, INT_MAX, &line) || line == 0)
		return ky_capture_fail(
			message, -EINVAL,
			"--trigger %s: write line:FILE:LINE, as in line:net/recv.c:120",
			trigger->text);
	trigger->line = (uint32_t)line;
	trigger->file = strndup(rest, (size_t)(colon - rest));
	return trigger->file ? 0 : no_memory(message);
}

/* ---- span:, gap:, counter: ---- */

static bool is_escapable(char c)
{
	return c == '/' || c == '>' || c == '<' || c == '\\';
}

/* The first byte of signs in [text, end) that has no backslash before it, or with last the last; NULL: none. */
static const char *find_sign(const char *text, const char *signs, bool last)
{
	const char *found = NULL;
	for (const char *at = text; *at; at++) {
		if (*at == '\\' && is_escapable(at[1]))
			at++;
		else if (strchr(signs, *at)) {
			found = at;
			if (!last)
				break;
		}
	}
	return found;
}

/* A copy of [from, to) without the backslashes that said something. NULL without memory. */
static char *unescaped(const char *from, const char *to)
{
	char *const copy = strndup(from, (size_t)(to - from));
	char *out = copy;
	for (const char *at = copy; copy && *at; at++) {
		if (*at == '\\' && is_escapable(at[1]))
			at++;
		*out++ = *at;
	}
	if (copy)
		*out = '\0';
	return copy;
}

/* Takes CAT/NAME apart and returns what is behind the sign of the limit; NULL with a message. */
static const char *parse_event(struct ky_trigger *trigger, const char *rest, const char *signs,
			       const char *example, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const char *sign = find_sign(rest, signs, true);
	const char *slash = find_sign(rest, "/", false);
	if (!sign || !slash || slash > sign || slash == rest || slash + 1 == sign) {
		ky_capture_fail(
			message, -EINVAL,
			"--trigger %s: write category, '/', name, '>' and a limit, as in %s",
			trigger->text, example);
		return NULL;
	}
	if (*rest == '-' || memchr(rest, ',', (size_t)(slash - rest))) {
		ky_capture_fail(message, -EINVAL,
				"--trigger %s: one category, or one pattern with '*' and '?'; give "
				"--trigger again for more",
				trigger->text);
		return NULL;
	}
	trigger->category = unescaped(rest, slash);
	trigger->name = unescaped(slash + 1, sign);
	trigger->below = *sign == '<';
	if (trigger->category && trigger->name)
		return sign + 1;
	no_memory(message);
	return NULL;
}

static int parse_time_limit(struct ky_trigger *trigger, const char *rest, const char *example,
			    char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const char *limit = parse_event(trigger, rest, ">", example, message);
	if (!limit)
		return -EINVAL;
	if (!ky_quantity_parse_duration(limit, &trigger->limit_ns) || trigger->limit_ns <= 0)
		return ky_capture_fail(message, -EINVAL,
				       "--trigger %s: '%s' is no duration above zero; write one as "
				       "5ms, 200us or 1.5s",
				       trigger->text, limit);
	return 0;
}

static int parse_span(struct ky_trigger *trigger, const char *rest,
		      char message[KY_CAPTURE_MESSAGE_BYTES])
{
	return parse_time_limit(trigger, rest, "span:net/recv>5ms", message);
}

static int parse_gap(struct ky_trigger *trigger, const char *rest,
		     char message[KY_CAPTURE_MESSAGE_BYTES])
{
	return parse_time_limit(trigger, rest, "gap:video/frame>20ms", message);
}

/* Decimal, with a point whatever the locale: "100", "-0.5", "1e6". */
static bool parse_number(const char *text, double *value)
{
	char *end = NULL;
	if (!*text || strspn(text, "0123456789.eE+-") != strlen(text))
		return false;
	const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!plain)
		return false;
	*value = strtod_l(text, &end, plain);
	freelocale(plain);
	return end != text && *end == '\0' && isfinite(*value);
}

static int parse_counter(struct ky_trigger *trigger, const char *rest,
			 char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const char *limit = parse_event(trigger, rest, "<>", "counter:net/queue>100", message);
	if (!limit)
		return -EINVAL;
	if (!parse_number(limit, &trigger->limit))
		return ky_capture_fail(message, -EINVAL,
				       "--trigger %s: '%s' is no number; write one as 100 or 0.5",
				       trigger->text, limit);
	return 0;
}

/* ---- all ---- */

static const struct kind kinds[] = {
	{"exit", KY_TRIGGER_EXIT, NULL},
	{"crash", KY_TRIGGER_CRASH, NULL},
	{"interrupt", KY_TRIGGER_INTERRUPT, NULL},
	{"api", KY_TRIGGER_API, NULL},
	{"signal:", KY_TRIGGER_SIGNAL, parse_signal},
	{"symbol:", KY_TRIGGER_SYMBOL, parse_symbol},
	{"line:", KY_TRIGGER_LINE, parse_line},
	{"span:", KY_TRIGGER_SPAN, parse_span},
	{"gap:", KY_TRIGGER_GAP, parse_gap},
	{"counter:", KY_TRIGGER_COUNTER, parse_counter},
};

static const struct kind *kind_of(const char *text)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *kind = &kinds[i];
		if (kind->parse ? strncmp(text, kind->head, strlen(kind->head)) == 0
				: strcmp(text, kind->head) == 0)
			return kind;
	}
	return NULL;
}

int ky_trigger_parse(struct ky_trigger *trigger, const char *text,
		     char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const struct kind *kind = kind_of(text);
	*trigger = (struct ky_trigger){0};
	if (!kind)
		return ky_capture_fail(message, -EINVAL,
				       "--trigger %s: not known; there are exit, crash, interrupt, "
				       "api, signal:USR1, symbol:NAME, "
				       "line:FILE:LINE, span:CAT/NAME>5ms, gap:CAT/NAME>20ms and "
				       "counter:CAT/NAME>100",
				       text);
	trigger->kind = kind->kind;
	trigger->text = strdup(text);
	if (!trigger->text)
		return no_memory(message);
	const int error =
		kind->parse ? kind->parse(trigger, text + strlen(kind->head), message) : 0;
	if (error)
		ky_trigger_free(trigger);
	return error;
}

void ky_trigger_free(struct ky_trigger *trigger)
{
	free(trigger->text);
	free(trigger->symbol);
	free(trigger->file);
	free(trigger->category);
	free(trigger->name);
	*trigger = (struct ky_trigger){0};
}
