/* SPDX-License-Identifier: MIT */
/*
 * kymo_dump.c: prints a .kymo file, for tests that compare formats: an object of JSON a line for
 * each event, in the order of their times, and a last line with what it came to.
 *
 *	kymo_dump FILE
 *
 *	{"kind":"begin","ts":43,"tid":7,"thread":"main","category":"a","name":"recv","args":{"n":9}}
 *	{"kind":"lost","ts":44,"tid":7,"thread":"main","count":12}
 *	{"summary":{"events":2,"lost":12,…,"notes":[{"at":4711,"text":"…"}]}}
 *
 * Pointers are strings of hexadecimal digits; other values are as in our JSON traces. Exit code: 0
 * also for a damaged file, which the notes report; 1 when it cannot be read at all; 2 used
 * wrongly.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/json/json_value.h"
#include "formats/kymo/kymo_file.h"
#include "formats/utf8.h"

static const char *const kind_names[] = {
	[KYMO_KIND_NONE] = "none",
	[KYMO_KIND_BEGIN] = "begin",
	[KYMO_KIND_END] = "end",
	[KYMO_KIND_INSTANT] = "instant",
	[KYMO_KIND_COUNTER] = "counter",
	[KYMO_KIND_ASYNC_BEGIN] = "async_begin",
	[KYMO_KIND_ASYNC_INSTANT] = "async_instant",
	[KYMO_KIND_ASYNC_END] = "async_end",
	[KYMO_KIND_FLOW_BEGIN] = "flow_begin",
	[KYMO_KIND_FLOW_STEP] = "flow_step",
	[KYMO_KIND_FLOW_END] = "flow_end",
	[KYMO_KIND_PRINT] = "print",
	[KYMO_KIND_OBJECT_NEW] = "object_new",
	[KYMO_KIND_OBJECT_SNAPSHOT] = "object_snapshot",
	[KYMO_KIND_OBJECT_DELETE] = "object_delete",
	[KYMO_KIND_METADATA] = "metadata",
	[KYMO_KIND_CLOCK_SYNC] = "clock_sync",
	[KYMO_KIND_SAMPLE] = "sample",
	[KYMO_KIND_SNAPSHOT] = "snapshot",
	[KYMO_KIND_MARK] = "mark",
	[KYMO_KIND_LOST] = "lost",
};

struct dump {
	struct ky_out out;
	struct ky_out scratch;
};

static int push_stdout(struct ky_out *out, const void *data, size_t bytes)
{
	(void)out;
	return fwrite(data, 1, bytes, stdout) == bytes ? 0 : -1;
}

static void put(struct dump *d, const char *text)
{
	ky_out_append(&d->out, text, strlen(text));
}

static void put_text(struct dump *d, struct ky_text text)
{
	ky_json_quote(&d->out, ky_utf8_text(&d->scratch, text, false));
}

static void put_uint(struct dump *d, const char *key, uint64_t value)
{
	put(d, key);
	uint8_t *to = ky_out_room(&d->out, KY_JSON_NUMBER_BYTES);
	ky_out_done(&d->out, ky_json_put_uint(to, value));
}

static void put_value(struct dump *d, const struct kymo_arg *arg)
{
	uint8_t *to = ky_out_room(&d->out, KY_JSON_NUMBER_BYTES);
	switch (arg->type) {
	case KYMO_TYPE_STRING:
		ky_json_quote(&d->out, ky_utf8_arg(&d->scratch, arg));
		return;
	case KYMO_TYPE_BOOL:
		put(d, arg->value.u ? "true" : "false");
		return;
	case KYMO_TYPE_INT:
		to = ky_json_put_int(to, arg->value.i);
		break;
	case KYMO_TYPE_DOUBLE:
		to = ky_json_put_double(to, arg->value.d);
		break;
	case KYMO_TYPE_POINTER:
		to = ky_json_put_hex(to, arg->value.u);
		break;
	default:
		to = ky_json_put_uint(to, arg->value.u);
		break;
	}
	ky_out_done(&d->out, to);
}

static void put_args(struct dump *d, const struct ky_event *event)
{
	if (event->args_count == 0)
		return;
	for (uint32_t i = 0; i < event->args_count; i++) {
		const char *key = event->args[i].key;
		put(d, i ? "," : ",\"args\":{");
		put_text(d, (struct ky_text){key, (uint32_t)strlen(key)});
		put(d, ":");
		put_value(d, &event->args[i]);
	}
	put(d, "}");
}

static void on_event(void *context, const struct ky_event *event)
{
	struct dump *d = context;
	put(d, "{\"kind\":\"");
	put(d, kind_names[event->kind]);
	put_uint(d, "\",\"ts\":", event->time_ns);
	put_uint(d, ",\"tid\":", (uint32_t)event->thread->tid);
	put(d, ",\"thread\":");
	put_text(d, event->thread->name);
	if (event->kind == KYMO_KIND_LOST) {
		put_uint(d, ",\"count\":", event->id);
	} else {
		put(d, ",\"category\":");
		put_text(d, event->site->category);
		put(d, ",\"name\":");
		put_text(d, event->name);
		if (event->site->flags & KYMO_SITE_ID)
			put_uint(d, ",\"id\":", event->id);
		put_args(d, event);
	}
	put(d, "}\n");
	if (d->out.used > KY_OUT_ROOM_MAX)
		ky_out_push(&d->out);
}

static void put_notes(struct dump *d, const struct ky_kymo_info *info)
{
	put(d, ",\"notes\":[");
	for (uint32_t i = 0; i < info->notes_count; i++) {
		const char *text = info->notes[i].text;
		put_uint(d, i ? ",{\"at\":" : "{\"at\":", info->notes[i].at);
		put(d, ",\"text\":");
		put_text(d, (struct ky_text){text, (uint32_t)strlen(text)});
		put(d, "}");
	}
	put(d, "]");
}

static void put_summary(struct dump *d, const struct ky_kymo_info *info,
			const struct ky_kymo_totals *totals)
{
	put_uint(d, "{\"summary\":{\"events\":", totals->events);
	put_uint(d, ",\"lost\":", totals->lost);
	put_uint(d, ",\"lost_in_all\":", info->lost);
	put_uint(d, ",\"unknown\":", totals->unknown);
	put_uint(d, ",\"damaged\":", totals->damaged);
	put_uint(d, ",\"pid\":", (uint32_t)info->pid);
	put(d, ",\"process\":");
	put_text(d, info->process);
	put(d, ",\"command\":");
	put_text(d, info->command);
	put_uint(d, ",\"threads\":", info->threads_count);
	put_uint(d, ",\"chunks\":", info->entries_count);
	put_uint(d, ",\"clock_samples\":", info->samples_count);
	put(d, info->indexed ? ",\"indexed\":true" : ",\"indexed\":false");
	put_notes(d, info);
	put(d, "}}\n");
}

static int dump(struct ky_kymo *file)
{
	static struct dump d;
	struct ky_kymo_totals totals;
	const struct ky_stream_sink sink = {.event = on_event, .context = &d};
	if (ky_out_init(&d.out, 1u << 20) != 0 || ky_out_init(&d.scratch, 0) != 0)
		return -1;
	d.out.push = push_stdout;
	int error = ky_kymo_read(file, 0, UINT64_MAX, &sink, &totals);
	if (error == 0) {
		put_summary(&d, ky_kymo_info(file), &totals);
		error = ky_out_push(&d.out);
	}
	ky_out_free(&d.out);
	ky_out_free(&d.scratch);
	return error;
}

int main(int argc, char **argv)
{
	struct ky_kymo *file;
	struct ky_kymo_error error;
	if (argc != 2) {
		fprintf(stderr, "usage: kymo_dump FILE\n");
		return 2;
	}
	if (ky_kymo_open(&file, argv[1], &error) != 0) {
		fprintf(stderr, "kymo_dump: %s: at byte %" PRIu64 ": %s\n", argv[1], error.at,
			error.text);
		return 1;
	}
	const int result = dump(file);
	ky_kymo_close(&file);
	if (result)
		fprintf(stderr, "kymo_dump: %s: %s\n", argv[1], strerror(-result));
	return result ? 1 : 0;
}
