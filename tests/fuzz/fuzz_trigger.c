/* SPDX-License-Identifier: MIT */
/*
 * fuzz_trigger.c: any text as a trigger: one that holds together, or -EINVAL with one line; nothing left allocated (the
 * leak sanitizer looks).
 */
#include "capture/trigger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(int holds)
{
	if (!holds)
		abort();
}

static void check_trigger(const struct ky_trigger *trigger, const char *text)
{
	check(strcmp(trigger->text, text) == 0);
	check((trigger->kind == KY_TRIGGER_SIGNAL) == (trigger->signal > 0));
	check((trigger->kind == KY_TRIGGER_SYMBOL) == (trigger->symbol != NULL));
	check((trigger->kind == KY_TRIGGER_LINE) == (trigger->file && trigger->line));
	if (trigger->kind == KY_TRIGGER_SPAN || trigger->kind == KY_TRIGGER_GAP)
		check(trigger->limit_ns > 0);
	if (trigger->kind >= KY_TRIGGER_SPAN)
		check(*trigger->category && *trigger->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_trigger trigger;
	char *text = strndup((const char *)data, bytes);
	if (!text)
		return 0;
	const int error = ky_trigger_parse(&trigger, text, message);
	check(error == 0 || error == -EINVAL);
	if (error)
		check(*message && !trigger.text && !trigger.name);
	else
		check_trigger(&trigger, text);
	ky_trigger_free(&trigger);
	free(text);
	return 0;
}
