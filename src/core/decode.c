/* SPDX-License-Identifier: MIT */
/* decode.c: decode an event item by item. The flags of the site say which come first. */
#include "core/decode.h"

#include "core/assert.h"

#include "core/layout.h"
#include "core/print.h"

#include <string.h>

/* The items left to read; past the end they read as zeros. */
struct items {
	const uint64_t *at;
	uint32_t left; /* words */
};

static uint64_t take_word(struct items *items)
{
	if (items->left == 0)
		return 0;
	items->left--;
	return *items->at++;
}

static struct ky_text take_string(struct ky_decoder *d, struct items *items, bool *cut)
{
	static const char null[] = "(null)";
	const uint64_t head = take_word(items);
	uint32_t bytes = (uint32_t)head;
	*cut = (head & KYMO_I_STRING_CUT) != 0 && (head & KYMO_I_STRING_NULL) == 0;
	if (head & KYMO_I_STRING_NULL)
		return (struct ky_text){null, sizeof(null) - 1};
	if (bytes > KYMO_STRING_MAX || (bytes + 7) / 8 > items->left ||
	    bytes >= sizeof(d->text) - d->used)
		bytes = 0;
	KY_ASSERT(d->used + bytes < sizeof(d->text));
	char *text = d->text + d->used;
	memcpy(text, items->at, bytes);
	text[bytes] = '\0';
	d->used += bytes + 1;
	items->at += (bytes + 7) / 8;
	items->left -= (bytes + 7) / 8;
	return (struct ky_text){text, (uint32_t)strnlen(text, bytes)};
}

/* A name has no flag for it: one that was cut ends in an ellipsis, in place of its last character. */
static struct ky_text take_name(struct ky_decoder *d, struct items *items)
{
	static const char mark[] = "\xe2\x80\xa6"; /* "…" */
	bool cut;
	struct ky_text name = take_string(d, items, &cut);
	if (!cut || name.bytes < sizeof(mark))
		return name;
	uint32_t at = name.bytes - (uint32_t)(sizeof(mark) - 1);
	while (at > 0 && ((uint8_t)name.data[at] & 0xc0) == 0x80) /* not inside a character */
		at--;
	char *end = d->text + (name.data - d->text) + at;
	memcpy(end, mark, sizeof(mark));
	name.bytes = at + (uint32_t)(sizeof(mark) - 1);
	return name;
}

static void take_arg(struct ky_decoder *d, struct items *items, uint32_t type, struct kymo_arg *arg)
{
	arg->type = type <= KYMO_TYPE_STRING ? type : KYMO_TYPE_UINT;
	arg->string = NULL;
	arg->string_bytes = 0;
	arg->cut = 0;
	if (type != KYMO_TYPE_STRING) {
		arg->value.u = take_word(items);
		return;
	}
	bool cut;
	const struct ky_text text = take_string(d, items, &cut);
	arg->value.u = 0;
	arg->string = text.data;
	arg->string_bytes = text.bytes;
	arg->cut = cut;
}

static void take_args(struct ky_decoder *d, const struct ky_site *site, struct items *items,
		      uint64_t types, struct ky_event *event)
{
	for (uint32_t i = 0; i < site->args && items->left; i++, types >>= 4) {
		d->args[i].key = site->keys[i].data;
		take_arg(d, items, types & 15, &d->args[i]);
		event->args_count = i + 1;
	}
	event->args = d->args;
}

/* Take the items before the arguments, in the order of their flags. Return the arguments' types. */
static uint64_t take_leading(struct ky_decoder *d, const struct ky_site *site, struct items *items,
			     const struct ky_clock_map *clock, struct ky_event *event)
{
	uint64_t types = site->types;
	if (site->flags & KYMO_SITE_TIME) {
		event->time_ns = ky_clock_from_monotonic(clock, take_word(items));
		types >>= 4;
	}
	if (site->flags & KYMO_SITE_TID) {
		d->tid = (int32_t)take_word(items);
		types >>= 4;
	}
	if (site->flags & KYMO_SITE_NAME) {
		event->name = take_name(d, items);
		types >>= 4;
	}
	if (site->flags & KYMO_SITE_ID) {
		event->id = take_word(items);
		types >>= 4;
	}
	return types;
}

void ky_decode(struct ky_decoder *d, const struct ky_site *site, const uint64_t *words, uint64_t ns,
	       const struct ky_clock_map *clock, struct ky_event *event)
{
	KY_ASSERT(site->args <= KYMO_ARGS_MAX);
	const bool end = KY_WORD_IS_END(words[0]);
	*event = (struct ky_event){.kind = end ? KYMO_KIND_END : site->kind,
				   .time_ns = ns,
				   .site = site,
				   .name = site->name};
	d->used = 0;
	d->tid = 0;
	if (end)
		return;
	struct items items = {words + 1, KY_WORD_LENGTH(words[0])};
	if (items.left == 0 && site->kind != KYMO_KIND_PRINT)
		return;
	const uint64_t types = take_leading(d, site, &items, clock, event);
	take_args(d, site, &items, types, event);
	if (site->kind == KYMO_KIND_PRINT) {
		const size_t bytes = ky_print(d->message, sizeof(d->message), site->name.data,
					      event->args, event->args_count);
		event->name = (struct ky_text){d->message, (uint32_t)bytes};
		event->args_count = 0;
	}
}
