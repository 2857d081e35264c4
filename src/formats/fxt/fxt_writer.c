/* SPDX-License-Identifier: MIT */
/* fxt_writer.c: records of Fuchsia's trace format; fxt_writer.h has the plan. */
#include "formats/fxt/fxt_writer.h"

#include "formats/arg_tree.h"
#include "formats/utf8.h"
#include "formats/xxh64.h"

#include <errno.h>
#include <stdlib.h>

enum {
	RECORD_METADATA = 0,
	RECORD_INIT = 1,
	RECORD_STRING = 2,
	RECORD_THREAD = 3,
	RECORD_EVENT = 4,
	RECORD_KERNEL_OBJECT = 7,
	RECORD_SCHEDULING = 8,
	RECORD_LOG = 9
};

enum { METADATA_PROVIDER = 1, METADATA_PROVIDER_EVENT = 3 };
enum { OBJECT_PROCESS = 1, OBJECT_THREAD = 2 };

enum {
	ARG_NULL = 0,
	ARG_INT64 = 3,
	ARG_UINT64 = 4,
	ARG_DOUBLE = 5,
	ARG_STRING = 6,
	ARG_POINTER = 7,
	ARG_KOID = 8,
	ARG_BOOL = 9
};

#define MAGIC UINT64_C(0x0016547846040010)
#define TICKS_PER_S UINT64_C(1000000000)
#define PROVIDER UINT64_C(1)
#define STRINGS_MAX 32767u
#define STRINGS_PER_EVENT 40u
#define INLINE_STRING 0x8000u
#define TEXT_BYTES_MAX 31996u
#define LOG_BYTES_MAX 32000u

static void put_word(struct ky_out *out, uint64_t word)
{
	uint8_t *to = ky_out_room(out, sizeof(word));
	memcpy(to, &word, sizeof(word));
	ky_out_done(out, to + sizeof(word));
}

static void put_padded(struct ky_out *out, struct ky_text text)
{
	static const char zeros[8];
	ky_out_append(out, text.data, text.bytes);
	ky_out_append(out, zeros, -text.bytes % 8u);
}

static uint64_t words_of(uint32_t bytes)
{
	return (bytes + 7u) / 8u;
}

static uint64_t record_header(uint32_t type, uint64_t words)
{
	return type | words << 4;
}

/* ---- texts ---- */

static struct ky_text limited(struct ky_fxt *w, struct ky_text text, uint32_t bytes_max)
{
	struct ky_text clean = ky_utf8_text(&w->clean, text, false);
	if (clean.bytes <= bytes_max)
		return clean;
	w->cut++;
	text.bytes = bytes_max / 3 - 1; /* each byte may become three when it is replaced */
	return ky_utf8_text(&w->clean, text, true);
}

/* Once an event, before its first text: numbers stay good until the event is written. */
static void make_room(struct ky_fxt *w)
{
	if (w->next_string + STRINGS_PER_EVENT <= STRINGS_MAX)
		return;
	w->generation++;
	w->next_string = 1;
}

static uint64_t define(struct ky_fxt *w, struct ky_text text)
{
	if (!text.bytes)
		return 0;
	const struct ky_text clean = limited(w, text, TEXT_BYTES_MAX);
	const uint64_t index = w->next_string++;
	put_word(w->out, record_header(RECORD_STRING, 1 + words_of(clean.bytes)) | index << 16 |
				 (uint64_t)clean.bytes << 32);
	put_padded(w->out, clean);
	return index;
}

/* text is the string's, or a part of it that is always the same. */
static uint64_t string_ref(struct ky_fxt *w, uint32_t string, struct ky_text text)
{
	struct ky_fxt_slot *slot = &w->slots[string];
	if (!string)
		return 0;
	if (slot->generation != w->generation) {
		slot->generation = w->generation;
		slot->index = (uint16_t)define(w, text);
	}
	return slot->index;
}

/* ---- names ---- */

static void put_object(struct ky_fxt *w, uint32_t type, uint32_t koid, uint32_t process,
		       uint32_t name)
{
	const bool in_process = type == OBJECT_THREAD;
	make_room(w);
	const uint64_t key = in_process ? define(w, (struct ky_text){"process", 7}) : 0;
	const struct ky_text clean = limited(w, ky_export_text(w->trace, name), 16000);
	const uint64_t ref = clean.bytes ? INLINE_STRING | clean.bytes : 0;
	const uint64_t words = 2 + words_of(clean.bytes) + (in_process ? 2 : 0);
	put_word(w->out, record_header(RECORD_KERNEL_OBJECT, words) | (uint64_t)type << 16 |
				 ref << 24 | (uint64_t)in_process << 40);
	put_word(w->out, koid);
	put_padded(w->out, clean);
	if (in_process) {
		put_word(w->out, record_header(ARG_KOID, 2) | key << 16);
		put_word(w->out, process);
	}
}

void ky_fxt_process(struct ky_fxt *w, uint32_t pid, uint32_t name)
{
	put_object(w, OBJECT_PROCESS, pid, pid, name);
}

void ky_fxt_put_thread(struct ky_fxt *w, uint32_t pid, uint32_t tid, uint32_t name)
{
	put_object(w, OBJECT_THREAD, tid, pid, name);
}

/* ---- events ---- */

static uint64_t thread_ref(struct ky_fxt *w, uint32_t pid, uint32_t tid)
{
	/* A thread's place is by its number, so that most are found at once. */
	const uint32_t number = (tid ^ tid >> 8 ^ pid * 31u) % KY_FXT_THREADS + 1;
	struct ky_fxt_thread_slot *slot = &w->threads[number];
	if (slot->pid == pid && slot->tid == tid)
		return number;
	*slot = (struct ky_fxt_thread_slot){pid, tid};
	put_word(w->out, record_header(RECORD_THREAD, 3) | (uint64_t)number << 16);
	put_word(w->out, pid);
	put_word(w->out, tid);
	return number;
}

void ky_fxt_begin(struct ky_fxt *w, uint32_t type, int64_t ts, uint32_t pid, uint32_t tid)
{
	make_room(w);
	w->header = RECORD_EVENT | (uint64_t)type << 16 | thread_ref(w, pid, tid) << 24;
	w->args = 0;
	w->record.used = 0;
	put_word(&w->record, 0);
	put_word(&w->record, (uint64_t)ts);
}

void ky_fxt_label(struct ky_fxt *w, uint32_t category, uint32_t name)
{
	w->header |= string_ref(w, category, ky_export_text(w->trace, category)) << 32;
	w->header |= string_ref(w, name, ky_export_text(w->trace, name)) << 48;
}

void ky_fxt_label_text(struct ky_fxt *w, struct ky_text name)
{
	w->header |= define(w, name) << 48;
}

static void put_arg_word(struct ky_fxt *w, uint32_t type, uint64_t key, uint64_t value)
{
	put_word(&w->record, record_header(type, 2) | key << 16);
	put_word(&w->record, value);
	w->args++;
}

static void put_arg_header(struct ky_fxt *w, uint32_t type, uint64_t key, uint64_t value)
{
	put_word(&w->record, record_header(type, 1) | key << 16 | value << 32);
	w->args++;
}

bool ky_fxt_arg(struct ky_fxt *w, uint32_t arg)
{
	static const uint8_t types[] = {
		[KY_ARG_INT] = ARG_INT64,
		[KY_ARG_UINT] = ARG_UINT64,
		[KY_ARG_REAL] = ARG_DOUBLE,
		[KY_ARG_POINTER] = ARG_POINTER,
	};
	const struct ky_args *args = &w->trace->args;
	const uint64_t value = args->value[arg];
	if (w->args == KY_FXT_ARGS)
		return false;
	const uint64_t key = string_ref(w, args->key[arg], ky_arg_key(w->trace, arg));
	switch (args->type[arg]) {
	case KY_ARG_NULL:
		put_arg_header(w, ARG_NULL, key, 0);
		break;
	case KY_ARG_BOOL:
		put_arg_header(w, ARG_BOOL, key, value != 0);
		break;
	case KY_ARG_STRING:
	case KY_ARG_JSON:
		put_arg_header(
			w, ARG_STRING, key,
			string_ref(w, (uint32_t)value, ky_export_text(w->trace, (uint32_t)value)));
		break;
	default:
		put_arg_word(w, types[args->type[arg]], key, value);
	}
	return true;
}

void ky_fxt_arg_double(struct ky_fxt *w, struct ky_text key, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	put_arg_word(w, ARG_DOUBLE, define(w, key), bits);
}

void ky_fxt_arg_uint(struct ky_fxt *w, struct ky_text key, uint64_t value)
{
	put_arg_word(w, ARG_UINT64, define(w, key), value);
}

/* A record that memory was short for is not written at all. */
void ky_fxt_end(struct ky_fxt *w, bool has_id, uint64_t id)
{
	if (has_id)
		put_word(&w->record, id);
	if (w->record.error) {
		w->out->error = w->out->error ? w->out->error : w->record.error;
		return;
	}
	const uint64_t header =
		w->header | (uint64_t)(w->record.used / 8) << 4 | (uint64_t)w->args << 20;
	memcpy(w->record.data, &header, sizeof(header));
	ky_out_append(w->out, w->record.data, w->record.used);
}

uint64_t ky_fxt_flow_id(const struct ky_fxt *w, uint64_t id, uint32_t category, uint32_t name)
{
	const struct ky_text c = ky_export_text(w->trace, category);
	const struct ky_text n = ky_export_text(w->trace, name);
	if (!category && !name)
		return id;
	return id ^ (ky_xxh64(c.data, c.bytes) + 3 * ky_xxh64(n.data, n.bytes)) << 48;
}

/* ---- other records ---- */

void ky_fxt_switch(struct ky_fxt *w, int64_t ts, uint32_t cpu, uint32_t out_state, uint32_t out_tid,
		   uint32_t in_tid)
{
	put_word(w->out, record_header(RECORD_SCHEDULING, 4) | (uint64_t)(cpu & 0xffff) << 20 |
				 (uint64_t)out_state << 36 | UINT64_C(1) << 60);
	put_word(w->out, (uint64_t)ts);
	put_word(w->out, out_tid);
	put_word(w->out, in_tid);
}

void ky_fxt_put_log(struct ky_fxt *w, int64_t ts, uint32_t pid, uint32_t tid, uint32_t message)
{
	const struct ky_text text = limited(w, ky_export_text(w->trace, message), LOG_BYTES_MAX);
	const uint64_t thread = thread_ref(w, pid, tid);
	put_word(w->out, record_header(RECORD_LOG, 2 + words_of(text.bytes)) |
				 (uint64_t)text.bytes << 16 | thread << 32);
	put_word(w->out, (uint64_t)ts);
	put_padded(w->out, text);
}

void ky_fxt_head(struct ky_fxt *w)
{
	static const struct ky_text provider = {"kymo", 4};
	put_word(w->out, MAGIC);
	put_word(w->out, record_header(RECORD_METADATA, 2) | METADATA_PROVIDER << 16 |
				 PROVIDER << 20 | (uint64_t)provider.bytes << 52);
	put_padded(w->out, provider);
	put_word(w->out, record_header(RECORD_INIT, 2));
	put_word(w->out, TICKS_PER_S);
}

/* The one way to say so: the provider's buffer was full, records were dropped. */
void ky_fxt_tail(struct ky_fxt *w, uint64_t lost)
{
	if (lost)
		put_word(w->out, record_header(RECORD_METADATA, 1) | METADATA_PROVIDER_EVENT << 16 |
					 PROVIDER << 20);
	if (!w->out->error)
		w->out->error = w->clean.error;
}

int ky_fxt_open(struct ky_fxt *w, const struct ky_trace *trace, struct ky_out *out)
{
	*w = (struct ky_fxt){.trace = trace, .out = out, .generation = 1, .next_string = 1};
	w->slots = calloc((size_t)trace->strings.count + 1, sizeof(*w->slots));
	if (!w->slots || ky_out_init(&w->record, 0) || ky_out_init(&w->clean, 0))
		return -ENOMEM;
	for (uint32_t i = 0; i <= KY_FXT_THREADS; i++)
		w->threads[i] = (struct ky_fxt_thread_slot){UINT32_MAX, UINT32_MAX};
	return 0;
}

void ky_fxt_close(struct ky_fxt *w)
{
	free(w->slots);
	ky_out_free(&w->record);
	ky_out_free(&w->clean);
}
