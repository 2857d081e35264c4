/* SPDX-License-Identifier: MIT */
/*
 * trigger.c: parse the argument of --trigger.
 *
 * In span:, gap: and counter: the first '/' ends the category and the last '>' (or '<') begins the limit. A backslash
 * makes one of these part of a name; before any other character it is literal. symbol: and line: have no escapes,
 * because C++ names contain all of these characters.
 */
#include "capture/trigger.h"

#include "base/chars.h"
#include "base/fail.h"
#include "model/quantity.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(char message[KY_MESSAGE_BYTES])
{
	return ky_fail(message, -ENOMEM, "--trigger: out of memory");
}

/* ---- signal: ---- */

static bool parse_whole(const char *text, uint64_t max, uint64_t *value)
{
	const char *const end = text + strlen(text);
	return ky_chars_decimal(text, end, max, value) == end;
}

/* Return the number of "RTMIN", "RTMIN+3" or "RTMAX-1"; 0 for anything else. */
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
			char message[KY_MESSAGE_BYTES])
{
	uint64_t number;
	if (parse_whole(rest, (uint64_t)SIGRTMAX, &number))
		trigger->signal = (int)number;
	else
		trigger->signal = signal_by_name(rest);
	if (trigger->signal == SIGKILL || trigger->signal == SIGSTOP)
		return ky_fail(message, -EINVAL,
			       "--trigger %s: no process survives this signal: use "
			       "another, such as USR1",
			       trigger->text);
	if (trigger->signal <= 0)
		return ky_fail(message, -EINVAL,
			       "--trigger %s: no such signal: use a name (signal:USR1) "
			       "or a number up to %d",
			       trigger->text, SIGRTMAX);
	return 0;
}

/* ---- symbol:, line: ---- */

static int parse_symbol(struct ky_trigger *trigger, const char *rest,
			char message[KY_MESSAGE_BYTES])
{
	if (!*rest)
		return ky_fail(message, -EINVAL,
			       "--trigger %s: no function name: add one, or use symbol:? "
			       "to choose from a list",
			       trigger->text);
	trigger->symbol = strdup(rest);
	return trigger->symbol ? 0 : no_memory(message);
}

static int parse_line(struct ky_trigger *trigger, const char *rest, char message[KY_MESSAGE_BYTES])
{
	const char *colon = strrchr(rest, ':');
	uint64_t line;
	if (!colon || colon == rest || !parse_whole(colon + 1, INT_MAX, &line) || line == 0)
		return ky_fail(
			message, -EINVAL,
			"--trigger %s: not a line: use line:FILE:LINE, as in line:net/recv.c:120",
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

/* Return the first (with last: the last) unescaped byte of text that is one of signs, or NULL. */
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

/* Return a copy of [from, to) without its escapes, or NULL without memory. */
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

/* Parse CAT/NAME and the sign. Return the limit after it, or NULL with a message. */
static const char *parse_event(struct ky_trigger *trigger, const char *rest, const char *signs,
			       const char *example, char message[KY_MESSAGE_BYTES])
{
	const char *sign = find_sign(rest, signs, true);
	const char *slash = find_sign(rest, "/", false);
	if (!sign || !slash || slash > sign || slash == rest || slash + 1 == sign) {
		ky_fail(message, -EINVAL,
			"--trigger %s: use category, '/', name, '>' and a limit, as in %s",
			trigger->text, example);
		return NULL;
	}
	if (*rest == '-' || memchr(rest, ',', (size_t)(slash - rest))) {
		ky_fail(message, -EINVAL,
			"--trigger %s: use one category or one pattern with '*' and '?', "
			"and --trigger again for more",
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
			    char message[KY_MESSAGE_BYTES])
{
	const char *limit = parse_event(trigger, rest, ">", example, message);
	if (!limit)
		return -EINVAL;
	if (ky_quantity_lacks_unit(limit))
		return ky_fail(message, -EINVAL, "--trigger %s: '%s' has no unit: try %sms or %sus",
			       trigger->text, limit, limit, limit);
	if (!ky_quantity_parse_duration(limit, &trigger->limit_ns) || trigger->limit_ns <= 0)
		return ky_fail(message, -EINVAL,
			       "--trigger %s: '%s' is not a duration above zero: try "
			       "5ms, 200us or 1.5s",
			       trigger->text, limit);
	return 0;
}

static int parse_span(struct ky_trigger *trigger, const char *rest, char message[KY_MESSAGE_BYTES])
{
	return parse_time_limit(trigger, rest, "span:net/recv>5ms", message);
}

static int parse_gap(struct ky_trigger *trigger, const char *rest, char message[KY_MESSAGE_BYTES])
{
	return parse_time_limit(trigger, rest, "gap:video/frame>20ms", message);
}

/* Parse "100", "-0.5" or "1e6", with a decimal point in any locale. */
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
			 char message[KY_MESSAGE_BYTES])
{
	const char *limit = parse_event(trigger, rest, "<>", "counter:net/queue>100", message);
	if (!limit)
		return -EINVAL;
	if (!parse_number(limit, &trigger->limit))
		return ky_fail(message, -EINVAL,
			       "--trigger %s: '%s' is not a number: try 100 or 0.5", trigger->text,
			       limit);
	return 0;
}

/* ---- the table ---- */

/* A row of KY_TRIGGER_KINDS. */
struct kind {
	const char *head;   /* "span:" */
	const char *syntax; /* "span:CAT/NAME>5ms" */
	enum ky_trigger_finder finder;
	/* Parse what follows the head; NULL: nothing may. */
	int (*parse)(struct ky_trigger *trigger, const char *rest, char message[KY_MESSAGE_BYTES]);
};

#define parse_nothing NULL
#define KIND(kind, head, argument, finder, parser, help)                                           \
	[KY_TRIGGER_##kind] = {head, head argument, KY_TRIGGER_BY_##finder, parse_##parser},
static const struct kind kinds[KY_TRIGGER_KINDS_COUNT] = {KY_TRIGGER_KINDS(KIND)};

const struct ky_trigger *ky_trigger_find(const struct ky_trigger *triggers, uint32_t count,
					 enum ky_trigger_kind kind)
{
	const struct ky_trigger *last = NULL;
	for (uint32_t i = 0; i < count; i++) {
		if (triggers[i].kind == kind)
			last = &triggers[i];
	}
	return last;
}

bool ky_trigger_needs(const struct ky_trigger *triggers, uint32_t count,
		      enum ky_trigger_finder finder)
{
	for (uint32_t i = 0; i < count; i++) {
		if (kinds[triggers[i].kind].finder == finder)
			return true;
	}
	return false;
}

static bool is_kind(const struct kind *kind, const char *text)
{
	return kind->parse ? strncmp(text, kind->head, strlen(kind->head)) == 0
			   : strcmp(text, kind->head) == 0;
}

static int unknown(const char *text, char message[KY_MESSAGE_BYTES])
{
	char list[KY_MESSAGE_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < KY_TRIGGER_KINDS_COUNT && used < sizeof(list); i++) {
		const char *const between = i == 0                            ? ""
					    : i + 1 == KY_TRIGGER_KINDS_COUNT ? " or "
									      : ", ";
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", between,
					 kinds[i].syntax);
	}
	return ky_fail(message, -EINVAL, "--trigger %s is not a trigger: use %s", text, list);
}

int ky_trigger_parse(struct ky_trigger *trigger, const char *text, char message[KY_MESSAGE_BYTES])
{
	uint32_t at = 0;
	*trigger = (struct ky_trigger){0};
	while (at < KY_TRIGGER_KINDS_COUNT && !is_kind(&kinds[at], text))
		at++;
	if (at == KY_TRIGGER_KINDS_COUNT)
		return unknown(text, message);
	trigger->kind = (enum ky_trigger_kind)at;
	trigger->text = strdup(text);
	if (!trigger->text)
		return no_memory(message);
	const char *const rest = text + strlen(kinds[at].head);
	const int error = kinds[at].parse ? kinds[at].parse(trigger, rest, message) : 0;
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
