/* SPDX-License-Identifier: MIT */
/*
 * drum_import_fast.c: begins and ends as the ring has them, into the model: without a struct ky_event between them, with what
 * was learnt about their trace point and thread before. This is nearly all of a trace of spans. Whatever is not
 * as usual is declined before anything of it was taken, and comes again, decoded.
 */
#include "formats/drum/drum_import.h"

#include <string.h>

#include "core/layout.h"

/* Take a string's words from *at on; return its number, or 0 when it is cut off. */
static uint32_t take_string(struct ky_trace *trace, const uint64_t **at, uint32_t *left)
{
	const uint64_t head = **at;
	const uint32_t bytes = (uint32_t)head;
	const uint32_t words = (bytes + 7) / 8;
	if ((head & (KYMO_I_STRING_CUT | KYMO_I_STRING_NULL)) || bytes > KYMO_STRING_MAX ||
	    words >= *left)
		return 0;
	const char *text = (const char *)(*at + 1);
	*at += 1 + words;
	*left -= 1 + words;
	return ky_string(trace, text, strnlen(text, bytes));
}

/* Get the arguments of a begin with its items. False when they are not those of the trace point. */
static bool put_set(struct ky_trace *trace, const struct ky_known_site *known,
		    const uint64_t *words, uint32_t *set)
{
	uint64_t values[KYMO_ARGS_MAX + KY_LOCATION_ARGS];
	uint32_t left = KY_WORD_LENGTH(words[0]);
	const uint64_t *at = words + 1;
	for (uint32_t i = 0; i < known->args; i++) {
		if (!left)
			return false;
		if (known->types[i] == KY_ARG_STRING) {
			values[i] = take_string(trace, &at, &left);
			if (!values[i])
				return false;
			continue;
		}
		values[i] = known->types[i] == KY_ARG_BOOL ? *at != 0 : *at;
		at++;
		left--;
	}
	memcpy(values + known->args, known->location_values, sizeof(known->location_values));
	*set = ky_args_set(trace, known->set_args, known->keys, known->types, values);
	return true;
}

static bool put_begin(struct ky_event_intake *intake, struct ky_known_thread *t,
		      const struct ky_known_site *known, const struct ky_site *site,
		      const uint64_t *words, int64_t ns)
{
	uint32_t args = known->location;
	if (t->stack.beyond || t->stack.depth == t->stack.room ||
	    t->stack.depth >= KY_EVENT_DEPTH_MAX ||
	    (known->args && KY_WORD_LENGTH(words[0]) &&
	     !put_set(intake->trace, known, words, &args)))
		return false;
	ky_span_stack_put(&t->stack, KY_EVENT_ITEM_BYTES, site);
	t->last_ns = ns;
	intake->last_ns = ns;
	ky_put_begin(intake->trace, ns, t->track, known->category, known->name, args);
	return true;
}

/* site: of the scope that ends; NULL: the innermost span, whatever it is. */
static bool put_end(struct ky_event_intake *intake, struct ky_known_thread *t,
		    const struct ky_site *site, int64_t ns)
{
	const uint32_t depth = t->stack.depth;
	if (!depth ||
	    (site && ky_span_stack_site(&t->stack, KY_EVENT_ITEM_BYTES, depth - 1) != site))
		return false;
	t->last_ns = ns;
	intake->last_ns = ns;
	ky_event_end(intake, t, ns, 0);
	return true;
}

bool ky_event_intake_words(void *context, const struct ky_thread *thread,
			   const struct ky_site *site, const uint64_t *words, uint64_t time_ns)
{
	struct ky_event_intake *intake = context;
	const int64_t ns = (int64_t)time_ns;
	if (thread->index >= intake->threads.count || site->index >= intake->sites.count)
		return false;
	struct ky_known_thread *t = ky_table_at(&intake->threads, thread->index);
	const struct ky_known_site *known = ky_table_at(&intake->sites, site->index);
	if (!(known->quick | known->ends) || ns > t->until_ns || intake->done ||
	    ns < intake->last_ns)
		return false;
	if (known->ends)
		return put_end(intake, t, NULL, ns);
	return KY_WORD_IS_END(words[0]) ? put_end(intake, t, site, ns)
					: put_begin(intake, t, known, site, words, ns);
}
