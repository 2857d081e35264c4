/* SPDX-License-Identifier: MIT */
/* span_stack.c: the less frequent half of span_stack.h: growing, and ends that are not those of the innermost span. */
#include "core/span_stack.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 16u

bool ky_span_stack_grow(struct ky_span_stack *stack, size_t item_bytes, uint32_t max)
{
	KY_ASSERT(item_bytes >= sizeof(struct ky_site *));
	uint32_t room = stack->room ? stack->room * 2 : ROOM_FIRST;
	room = room < max ? room : max;
	void *grown = !stack->beyond && room > stack->depth
			      ? realloc(stack->open, room * item_bytes)
			      : NULL;
	if (!grown) {
		stack->beyond++;
		return false;
	}
	stack->open = grown;
	stack->room = room;
	return true;
}

struct ky_span_end ky_span_stack_find(const struct ky_span_stack *stack, size_t item_bytes,
				      const struct ky_site *site)
{
	KY_ASSERT(site->flags & KYMO_SITE_SCOPE);
	for (uint32_t inner = 0; inner < stack->depth; inner++)
		if (ky_span_stack_site(stack, item_bytes, stack->depth - 1 - inner) == site)
			return (struct ky_span_end){inner, true};
	return (struct ky_span_end){stack->depth, false};
}

void ky_span_stack_free(struct ky_span_stack *stack)
{
	free(stack->open);
	memset(stack, 0, sizeof(*stack));
}
