/* SPDX-License-Identifier: MIT */
/*
 * fuzz_kymo.c: any bytes as a .kymo file. Checksums would turn away nearly every mutation, so each
 * input is read twice: as it is, and with the checksums of all its chunks put right. The memory
 * that reading takes must be in proportion to the input; libFuzzer's -malloc_limit_mb watches that.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/kymo/kymo_file.h"
#include "formats/xxh64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile uint64_t sink_of_values;

/* Looks at every byte that an event names. */
static void touch_text(struct ky_text text)
{
	sink_of_values += strlen(text.data);
	for (uint32_t i = 0; i < text.bytes; i++)
		sink_of_values += (uint8_t)text.data[i];
}

static void on_thread(void *context, const struct ky_thread *thread)
{
	(void)context;
	touch_text(thread->name);
}

static void on_event(void *context, const struct ky_event *event)
{
	(void)context;
	touch_text(event->name);
	touch_text(event->thread->name);
	if (event->site)
		touch_text(event->site->category);
	for (uint32_t i = 0; i < event->args_count; i++) {
		sink_of_values += event->args[i].value.u + strlen(event->args[i].key);
		if (event->args[i].string)
			sink_of_values += strlen(event->args[i].string);
	}
}

static void on_block(void *context, const struct ky_block *block, const struct ky_thread *thread)
{
	(void)context;
	touch_text(thread->name);
	for (uint32_t i = 0; i < block->count; i++)
		sink_of_values += block->words[i];
}

static void read_all(const uint8_t *data, size_t bytes)
{
	struct ky_kymo *file;
	struct ky_kymo_error error;
	const struct ky_stream_sink events = {.thread = on_thread, .event = on_event};
	const struct ky_stream_sink blocks = {.block = on_block};
	if (ky_kymo_open_memory(&file, data, bytes, &error) != 0) {
		if (file || error.at > bytes)
			abort();
		return;
	}
	(void)ky_kymo_read(file, 0, UINT64_MAX, &events, NULL);
	(void)ky_kymo_read(file, 0, UINT64_MAX, &blocks, NULL);
	const struct ky_kymo_info *info = ky_kymo_info(file);
	touch_text(info->process);
	touch_text(info->command);
	for (uint32_t i = 0; i < info->notes_count; i++)
		if (info->notes[i].at > bytes || info->notes[i].text[0] == '\0')
			abort();
	ky_kymo_close(&file);
}

/* From the end to the start: a chunk in another's body is right before that is hashed. */
static void repair(uint8_t *data, size_t bytes)
{
	struct ky_kymo_chunk chunk;
	for (size_t at = bytes; at-- > 0;) {
		if (bytes - at < sizeof(chunk))
			continue;
		memcpy(&chunk, data + at, sizeof(chunk));
		if (chunk.magic != KY_KYMO_MAGIC)
			continue;
		if (chunk.head_bytes <= bytes - at &&
		    chunk.body_bytes <= bytes - at - chunk.head_bytes)
			chunk.body_hash = ky_xxh64(data + at + chunk.head_bytes, chunk.body_bytes);
		chunk.head_hash = ky_xxh64(&chunk, offsetof(struct ky_kymo_chunk, head_hash));
		memcpy(data + at, &chunk, sizeof(chunk));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	read_all(data, bytes);
	uint8_t *copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return 0;
	if (bytes)
		memcpy(copy, data, bytes);
	repair(copy, bytes);
	read_all(copy, bytes);
	free(copy);
	return 0;
}
