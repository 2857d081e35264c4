/* SPDX-License-Identifier: MIT */
/*
 * arg_tree.h: a set of arguments with its nesting. The model has it flat, "args.a.b[0]" and "args.a.b[1]"; here
 * it is opened and closed again: a { b [ value value ] }. The prefixes "args." and "debug.", which only say
 * from which kind of file an argument is, are left away.
 *
 * Arguments whose keys do not make a tree (an index that does not follow the one before, too deep) come with
 * their whole key, flat.
 */
#ifndef KY_FORMATS_ARG_TREE_H
#define KY_FORMATS_ARG_TREE_H

#include "core/event.h"
#include "model/trace.h"

#define KY_ARG_DEPTH_MAX 32u

struct ky_arg_visitor {
	/* key.data is NULL inside of an array. */
	void (*open)(void *self, struct ky_text key, bool array);
	void (*close)(void *self, bool array);
	void (*value)(void *self, struct ky_text key, uint32_t arg);
	void *self;
};

void ky_arg_tree(const struct ky_trace *trace, uint32_t set, const struct ky_arg_visitor *visitor);
/* Return the key without its prefix. */
struct ky_text ky_arg_key(const struct ky_trace *trace, uint32_t arg);

#endif
