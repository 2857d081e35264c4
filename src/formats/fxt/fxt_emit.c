/* SPDX-License-Identifier: MIT */
/* fxt_emit.c: the records of Fuchsia's trace format; fxt_emit.h has the layout. */
#include "formats/fxt/fxt_emit.h"

#include <errno.h>

#include "formats/utf8.h"
#include "formats/xxh64.h"

#define PROVIDER UINT64_C(1)

int ky_fxt_emit_open(struct ky_fxt_emitter *w, struct ky_out *out)
{
	w->out = out;
	w->generation = 1;
	w->next_string = 1;
	return ky_out_init(&w->record, 0) || ky_out_init(&w->clean, 0) ? -ENOMEM : 0;
}

void ky_fxt_emit_close(struct ky_fxt_emitter *w)
{
	ky_out_free(&w->record);
	ky_out_free(&w->clean);
}

void ky_fxt_emit_head(struct ky_fxt_emitter *w)
{
	static const struct ky_text provider = {"kymo", 4};
	ky_fxt_emit_word(w->out, KY_FXT_MAGIC);
	ky_fxt_emit_word(w->out, ky_fxt_emit_record_header(KY_FXT_RECORD_METADATA, 2) |
					 KY_FXT_METADATA_PROVIDER_INFO << 16 | PROVIDER << 20 |
					 (uint64_t)provider.bytes << 52);
	ky_fxt_emit_padded(w->out, provider);
	ky_fxt_emit_word(w->out, ky_fxt_emit_record_header(KY_FXT_RECORD_INITIALIZATION, 2));
	ky_fxt_emit_word(w->out, KY_FXT_NS_PER_S);
}

/* The format can only say that the provider's buffer was full and records were dropped. */
void ky_fxt_emit_tail(struct ky_fxt_emitter *w, uint64_t lost)
{
	if (lost)
		ky_fxt_emit_word(w->out, ky_fxt_emit_record_header(KY_FXT_RECORD_METADATA, 1) |
						 KY_FXT_METADATA_PROVIDER_EVENT << 16 |
						 PROVIDER << 20 |
						 (uint64_t)KY_FXT_PROVIDER_EVENT_BUFFER_FULL << 52);
	if (!w->out->error)
		w->out->error = w->clean.error;
}

/* ---- strings ---- */

struct ky_text ky_fxt_emit_limited(struct ky_fxt_emitter *w, struct ky_text text,
				   uint32_t bytes_max)
{
	const struct ky_text clean = ky_utf8_text(&w->clean, text, false);
	if (clean.bytes <= bytes_max)
		return clean;
	w->cut++;
	text.bytes = bytes_max / 3 - 1; /* each byte may become three when it is replaced */
	return ky_utf8_text(&w->clean, text, true);
}

void ky_fxt_emit_make_room(struct ky_fxt_emitter *w)
{
	if (w->next_string + w->strings_per_event <= KY_FXT_STRING_INDEX_MAX)
		return;
	w->generation++;
	w->next_string = 1;
}

uint64_t ky_fxt_emit_define(struct ky_fxt_emitter *w, struct ky_text text)
{
	if (!text.bytes)
		return 0;
	const struct ky_text clean = ky_fxt_emit_limited(w, text, w->string_bytes_max);
	const uint64_t index = w->next_string++;
	ky_fxt_emit_word(w->out, ky_fxt_emit_record_header(KY_FXT_RECORD_STRING,
							   1 + ky_fxt_emit_words(clean.bytes)) |
					 index << 16 | (uint64_t)clean.bytes << 32);
	ky_fxt_emit_padded(w->out, clean);
	return index;
}

/* ---- processes and threads ---- */

static uint64_t inline_ref(struct ky_text clean)
{
	return clean.bytes ? KY_FXT_STRING_INLINE | clean.bytes : 0;
}

static void emit_object(struct ky_fxt_emitter *w, uint64_t type, uint32_t koid, uint64_t args,
			struct ky_text name)
{
	const struct ky_text clean = ky_fxt_emit_limited(w, name, KY_FXT_NAME_BYTES_MAX);
	const uint64_t words = 2 + ky_fxt_emit_words(clean.bytes) + 2 * args;
	ky_fxt_emit_word(w->out, ky_fxt_emit_record_header(KY_FXT_RECORD_KERNEL_OBJECT, words) |
					 type << 16 | inline_ref(clean) << 24 | args << 40);
	ky_fxt_emit_word(w->out, koid);
	ky_fxt_emit_padded(w->out, clean);
}

void ky_fxt_emit_process(struct ky_fxt_emitter *w, uint32_t pid, struct ky_text name)
{
	emit_object(w, KY_FXT_OBJECT_PROCESS, pid, 0, name);
}

void ky_fxt_emit_thread(struct ky_fxt_emitter *w, uint32_t pid, uint32_t tid, uint64_t process_key,
			struct ky_text name)
{
	emit_object(w, KY_FXT_OBJECT_THREAD, tid, 1, name);
	ky_fxt_emit_word(w->out, ky_fxt_emit_record_header(KY_FXT_ARG_KOID, 2) | process_key << 16);
	ky_fxt_emit_word(w->out, pid);
}

void ky_fxt_emit_bind_thread(struct ky_fxt_emitter *w, uint32_t number, uint32_t pid, uint32_t tid)
{
	ky_fxt_emit_word(w->out, ky_fxt_emit_record_header(KY_FXT_RECORD_THREAD, 3) |
					 (uint64_t)number << 16);
	ky_fxt_emit_word(w->out, pid);
	ky_fxt_emit_word(w->out, tid);
}

/* ---- events ---- */

void ky_fxt_emit_begin(struct ky_fxt_emitter *w, uint64_t time_ns)
{
	w->record.used = 0;
	w->args = 0;
	ky_fxt_emit_word(&w->record, 0);
	ky_fxt_emit_word(&w->record, time_ns);
}

void ky_fxt_emit_arg_word(struct ky_fxt_emitter *w, uint32_t type, uint64_t key, uint64_t value)
{
	ky_fxt_emit_word(&w->record, ky_fxt_emit_record_header(type, 2) | key << 16);
	ky_fxt_emit_word(&w->record, value);
	w->args++;
}

void ky_fxt_emit_arg_small(struct ky_fxt_emitter *w, uint32_t type, uint64_t key, uint64_t value)
{
	ky_fxt_emit_word(&w->record, ky_fxt_emit_record_header(type, 1) | key << 16 | value << 32);
	w->args++;
}

void ky_fxt_emit_arg_text(struct ky_fxt_emitter *w, uint64_t key, struct ky_text clean)
{
	ky_fxt_emit_word(&w->record, ky_fxt_emit_record_header(KY_FXT_ARG_STRING,
							       1 + ky_fxt_emit_words(clean.bytes)) |
					     key << 16 | inline_ref(clean) << 32);
	ky_fxt_emit_padded(&w->record, clean);
	w->args++;
}

void ky_fxt_emit_end(struct ky_fxt_emitter *w, uint64_t header)
{
	if (w->record.error) {
		w->out->error = w->out->error ? w->out->error : w->record.error;
		return;
	}
	header |= (uint64_t)(w->record.used / 8) << 4 | (uint64_t)w->args << 20;
	memcpy(w->record.data, &header, sizeof(header));
	ky_out_append(w->out, w->record.data, w->record.used);
}

uint64_t ky_fxt_emit_flow_id(uint64_t id, struct ky_text category, struct ky_text name)
{
	return id ^ (ky_xxh64(category.data, category.bytes) + 3 * ky_xxh64(name.data, name.bytes))
			    << 48;
}
