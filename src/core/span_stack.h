/* SPDX-License-Identifier: MIT */
/*
 * span_stack.h: the open spans of one thread, and which of them an end ends. All that balances the spans of a ring
 * (the writers of a session, the importer, the triggers, the spans open before a window) does so by these rules:
 *
 *   - KYMO_END ends the innermost open span. The end of a scope ends the innermost open span of its own trace point,
 *     and before that all spans inside it that were never ended.
 *   - An end that finds no such span lost its beginning: it was overwritten, or came before the recording. All open
 *     spans began inside that one and end with it; a reader makes up its beginning, before the first event it has.
 *   - Events lost: any of the open spans may have ended in the gap. They end where the gap begins.
 *   - Spans deeper than max are counted, not kept; the ends that come while some are open are taken for theirs.
 *
 * An item of the stack is a struct of the user's whose first member is the span's trace point. item_bytes is its size,
 * the same constant at every call on a stack.
 *
 * Invariants: depth <= room. With beyond != 0 the stack is as deep as it gets: the spans counted there are all
 * inside its innermost.
 */
#ifndef KY_CORE_SPAN_STACK_H
#define KY_CORE_SPAN_STACK_H

#include "core/assert.h"
#include "core/event.h"

#include <stddef.h>

struct ky_span_stack {
	void *open;      /* items, the outermost first */
	uint32_t depth;  /* items in use */
	uint32_t room;   /* items that fit */
	uint32_t beyond; /* open spans that were not kept */
};

/* What an end ends: inner spans that were never ended, then the span itself unless its beginning is lost. */
struct ky_span_end {
	uint32_t inner;
	bool found;
};

/* Return the item at a level; 0 is the outermost. */
static inline void *ky_span_stack_at(const struct ky_span_stack *stack, size_t item_bytes,
				     uint32_t level)
{
	KY_ASSERT(level < stack->depth);
	return (char *)stack->open + level * item_bytes;
}

static inline const struct ky_site *ky_span_stack_site(const struct ky_span_stack *stack,
						       size_t item_bytes, uint32_t level)
{
	return *(const struct ky_site **)ky_span_stack_at(stack, item_bytes, level);
}

/* Make room for an item, at most max in all. Return false, and count a span beyond, without room. */
bool ky_span_stack_grow(struct ky_span_stack *stack, size_t item_bytes, uint32_t max);

/* Open a span for which there is room. Return its item, of which only the trace point is set. */
static inline void *ky_span_stack_put(struct ky_span_stack *stack, size_t item_bytes,
				      const struct ky_site *site)
{
	KY_ASSERT(stack->depth < stack->room && !stack->beyond);
	void *const item = (char *)stack->open + stack->depth++ * item_bytes;
	*(const struct ky_site **)item = site;
	return item;
}

/* Open a span. Return its item, of which only the trace point is set, or NULL when it was only counted. */
static inline void *ky_span_stack_push(struct ky_span_stack *stack, size_t item_bytes, uint32_t max,
				       const struct ky_site *site)
{
	KY_ASSERT(stack->depth <= stack->room);
	if (__builtin_expect(stack->depth == stack->room || stack->beyond, 0) &&
	    !ky_span_stack_grow(stack, item_bytes, max))
		return NULL;
	return ky_span_stack_put(stack, item_bytes, site);
}

/* Close the innermost span. Its item stays valid until the next push. */
static inline void *ky_span_stack_pop(struct ky_span_stack *stack, size_t item_bytes)
{
	KY_ASSERT(stack->depth > 0);
	return (char *)stack->open + --stack->depth * item_bytes;
}

/* Find the span of a scope's end below the innermost. */
struct ky_span_end ky_span_stack_find(const struct ky_span_stack *stack, size_t item_bytes,
				      const struct ky_site *site);

/* Report what the end of a trace point ends; the caller pops it. With beyond != 0 see ky_span_stack_end_beyond(). */
static inline struct ky_span_end ky_span_stack_end(const struct ky_span_stack *stack,
						   size_t item_bytes, const struct ky_site *site)
{
	if (__builtin_expect(stack->depth == 0, 0))
		return (struct ky_span_end){0, false};
	if (ky_span_stack_site(stack, item_bytes, stack->depth - 1) == site ||
	    !(site->flags & KYMO_SITE_SCOPE))
		return (struct ky_span_end){0, true};
	return ky_span_stack_find(stack, item_bytes, site);
}

/* Take an end for that of a span beyond. Return false when none is open. */
static inline bool ky_span_stack_end_beyond(struct ky_span_stack *stack)
{
	if (!stack->beyond)
		return false;
	stack->beyond--;
	return true;
}

/* Free the items' memory. What they point to is the caller's. */
void ky_span_stack_free(struct ky_span_stack *stack);

#endif
