/* SPDX-License-Identifier: MIT */
/*
 * arg_tree.c: opens and closes the levels of flat keys, one argument after the other. Those of one level stand
 * together in a set, so that what is open is all there is to remember.
 */
#include "formats/arg_tree.h"

struct key_part {
	const char *text; /* NULL: an index */
	uint32_t bytes;
	uint32_t index;
};

struct key_path {
	struct key_part parts[KY_ARG_DEPTH_MAX];
	uint32_t count; /* 0: no path, take the key as it is */
};

struct tree {
	const struct ky_arg_visitor *visitor;
	struct key_part open[KY_ARG_DEPTH_MAX];
	bool array[KY_ARG_DEPTH_MAX];
	uint32_t next[KY_ARG_DEPTH_MAX]; /* index, in arrays */
	uint32_t depth;
};

struct ky_text ky_arg_key(const struct ky_trace *trace, uint32_t arg)
{
	const uint32_t string = trace->args.key[arg];
	const char *text = string ? ky_text_of(trace, string) : "";
	uint32_t bytes = ky_strings_bytes(&trace->strings, string);
	if (bytes > 5 && memcmp(text, "args.", 5) == 0)
		return (struct ky_text){text + 5, bytes - 5};
	if (bytes > 6 && memcmp(text, "debug.", 6) == 0)
		return (struct ky_text){text + 6, bytes - 6};
	return (struct ky_text){text, bytes};
}

static bool read_index(const char **at, const char *end, uint32_t *index)
{
	uint32_t value = 0, digits = 0;
	const char *p = *at + 1;
	for (; p < end && *p >= '0' && *p <= '9' && digits < 9; p++, digits++)
		value = value * 10 + (uint32_t)(*p - '0');
	if (!digits || p == end || *p != ']')
		return false;
	*at = p + 1;
	*index = value;
	return true;
}

static void split(struct ky_text key, struct key_path *path)
{
	const char *at = key.data, *end = key.data + key.bytes;
	path->count = 0;
	uint32_t count = 0;
	while (at < end) {
		struct key_part part = {0};
		if (count == KY_ARG_DEPTH_MAX)
			return;
		if (*at == '[' && count) {
			if (!read_index(&at, end, &part.index))
				return;
		} else {
			part.text = at;
			while (at < end && *at != '.' && *at != '[')
				at++;
			part.bytes = (uint32_t)(at - part.text);
			if (!part.bytes)
				return;
		}
		path->parts[count++] = part;
		if (at < end && *at == '.' && ++at == end)
			return;
		if (at < end && *at != '[' && at[-1] != '.')
			return;
	}
	path->count = count;
}

static bool same(const struct key_part *a, const struct key_part *b)
{
	if (!a->text || !b->text)
		return !a->text && !b->text && a->index == b->index;
	return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
}

static void close_to(struct tree *t, uint32_t depth)
{
	while (t->depth > depth) {
		t->depth--;
		t->visitor->close(t->visitor->self, t->array[t->depth]);
	}
}

/* Report whether the part can come next at that depth: an index has to follow the one before. */
static bool fits(const struct tree *t, const struct key_path *path, uint32_t depth)
{
	const struct key_part *part = &path->parts[depth];
	if (depth && depth == t->depth && t->array[depth - 1])
		return !part->text && part->index == t->next[depth - 1];
	if (depth > t->depth) /* an array that is about to be opened */
		return part->text || part->index == 0;
	return part->text != NULL;
}

static struct ky_text key_of(const struct key_part *part)
{
	return (struct ky_text){part->text, part->bytes};
}

static void count_item(struct tree *t)
{
	if (t->depth && t->array[t->depth - 1])
		t->next[t->depth - 1]++;
}

static void open_part(struct tree *t, const struct key_path *path)
{
	const uint32_t at = t->depth;
	const bool array = !path->parts[at + 1].text;
	count_item(t);
	t->visitor->open(t->visitor->self, key_of(&path->parts[at]), array);
	t->open[at] = path->parts[at];
	t->array[at] = array;
	t->next[at] = 0;
	t->depth++;
}

static void visit(struct tree *t, struct ky_text key, uint32_t arg)
{
	struct key_path path;
	uint32_t common = 0;
	split(key, &path);
	while (common < t->depth && common + 1 < path.count &&
	       same(&t->open[common], &path.parts[common]) &&
	       t->array[common] == !path.parts[common + 1].text)
		common++;
	bool tree = path.count != 0;
	close_to(t, tree ? common : 0);
	for (uint32_t i = common; tree && i < path.count; i++)
		tree = fits(t, &path, i);
	if (!tree) {
		close_to(t, 0);
		t->visitor->value(t->visitor->self, key, arg);
		return;
	}
	while (t->depth + 1 < path.count)
		open_part(t, &path);
	count_item(t);
	t->visitor->value(t->visitor->self, key_of(&path.parts[path.count - 1]), arg);
}

void ky_arg_tree(const struct ky_trace *trace, uint32_t set, const struct ky_arg_visitor *visitor)
{
	struct tree tree = {.visitor = visitor};
	const uint32_t end = ky_arg_set_end(trace, set);
	for (uint32_t arg = ky_arg_set_first(trace, set); arg < end; arg++)
		visit(&tree, ky_arg_key(trace, arg), arg);
	close_to(&tree, 0);
}
