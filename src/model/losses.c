/* SPDX-License-Identifier: MIT */
/*
 * losses.c: lost events. Formats without a record for them have a marker, an instant "events lost" of the category "kymo"
 * with the arguments count, what (the cause), cpu and untimed; other tools show it as it is. Readers take it back as a loss.
 */
#include <string.h>

#include "model/build.h"
#include "model/intake.h"

void ky_put_lost_text(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t cpu,
		      uint64_t events, const char *cause)
{
	struct ky_losses *losses = &trace->losses;
	const uint32_t row = ky_append(trace, losses);
	if (row == KY_NONE)
		return;
	losses->ts[row] = ts;
	losses->events[row] = events;
	losses->thread[row] = thread;
	losses->cpu[row] = cpu;
	losses->what[row] = ky_string_z(trace, cause);
}

static const char *text_of_cause(enum ky_loss cause)
{
#define LOSS_TEXT(name, text) text,
	static const char *const texts[KY_LOSS_COUNT] = {KY_LOSSES(LOSS_TEXT)};
	return texts[cause];
}

void ky_put_lost(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t cpu, uint64_t events,
		 enum ky_loss cause)
{
	ky_put_lost_text(trace, ts, thread, cpu, events, text_of_cause(cause));
}

/* What is no event: the cause as core/losses.c has it, and as the reader of a process's buffer calls it. */
static const struct {
	const char *cause, *problem;
} refused[] = {
	{"trace points without a name: no room for it", "drum_sites_refused"},
	{"texts lost: no room for them", "drum_strings_refused"},
	{"names of threads lost: no room for them", "drum_names_refused"},
	{"trace points that stay off: no room for their category", "drum_categories_refused"},
};
#define REFUSED (sizeof(refused) / sizeof(refused[0]))

uint64_t ky_put_missing(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t cpu,
			uint64_t count, const char *cause)
{
	for (size_t i = 0; i < REFUSED; i++)
		if (strcmp(cause, refused[i].cause) == 0) {
			ky_problems(trace, refused[i].problem, KY_DATA_LOSS, KY_NO_PLACE, count);
			return 0;
		}
	ky_put_lost_text(trace, ts, thread, cpu, count, cause);
	return count;
}

/* Return the cause of a row of the problems, or NULL. */
static const char *cause_of_problem(const struct ky_trace *trace, uint32_t row)
{
	const char *const name = ky_text_of(trace, trace->problems.name[row]);
	for (size_t i = 0; name && i < REFUSED; i++)
		if (strcmp(name, refused[i].problem) == 0)
			return refused[i].cause;
	return NULL;
}

bool ky_missing_at(const struct ky_trace *trace, uint32_t number, struct ky_missing *missing)
{
	const struct ky_losses *l = &trace->losses;
	if (number < l->rows.count) {
		const char *const what = ky_text_of(trace, l->what[number]);
		*missing = (struct ky_missing){l->ts[number], l->thread[number], l->cpu[number],
					       l->events[number], what ? what : ""};
		return true;
	}
	number -= l->rows.count;
	for (uint32_t i = 0; i < trace->problems.rows.count; i++) {
		const char *const what = cause_of_problem(trace, i);
		if (!what || number--)
			continue;
		*missing = (struct ky_missing){KY_TIME_NONE, KY_NONE, KY_NONE,
					       trace->problems.number[i], what};
		return true;
	}
	return false;
}

static bool is_text(const struct ky_trace *trace, uint32_t string, const char *text)
{
	return string && ky_strings_bytes(&trace->strings, string) == strlen(text) &&
	       !strcmp(ky_text_of(trace, string), text);
}

bool ky_is_loss_marker(const struct ky_trace *trace, uint32_t category, uint32_t name)
{
	return is_text(trace, name, KY_LOSS_MARKER) &&
	       is_text(trace, category, KY_LOSS_MARKER_CATEGORY);
}

/* Get the argument of that name, whatever its format has before it ("args.", "debug."). */
static bool find_arg(const struct ky_trace *trace, uint32_t set, const char *name, uint32_t *arg)
{
	const uint32_t end = ky_arg_set_end(trace, set);
	for (*arg = ky_arg_set_first(trace, set); *arg < end; (*arg)++) {
		const char *const key = ky_text_of(trace, trace->args.key[*arg]);
		const char *const dot = key ? strrchr(key, '.') : NULL;
		if (key && !strcmp(dot ? dot + 1 : key, name))
			return true;
	}
	return false;
}

static bool find_number(const struct ky_trace *trace, uint32_t set, const char *name,
			uint64_t *number)
{
	uint32_t arg;
	if (!find_arg(trace, set, name, &arg) ||
	    (trace->args.type[arg] != KY_ARG_INT && trace->args.type[arg] != KY_ARG_UINT))
		return false;
	*number = trace->args.value[arg];
	return true;
}

uint64_t ky_put_loss_marker(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t args)
{
	const char *cause = text_of_cause(KY_LOSS_RING);
	uint64_t events = 0, cpu;
	uint32_t arg;
	(void)find_number(trace, args, "count", &events);
	if (!find_number(trace, args, "cpu", &cpu) || cpu >= KY_NONE)
		cpu = KY_NONE;
	if (find_arg(trace, args, "what", &arg) && trace->args.type[arg] == KY_ARG_STRING)
		cause = ky_text_of(trace, (uint32_t)trace->args.value[arg]);
	if (find_arg(trace, args, "untimed", &arg))
		ts = KY_TIME_NONE;
	return ky_put_missing(trace, ts, thread, (uint32_t)cpu, events, cause);
}
