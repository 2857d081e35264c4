/* SPDX-License-Identifier: MIT */
/*
 * ftrace_record.c: the kernel's ring buffer: its pages, and the binary records of events in them: their fields as the format
 * says, every place checked against the record's length. Addresses of functions become their names.
 */
#include "formats/ftrace/ftrace_format.h"

#include <stdio.h>
#include <traceevent/event-parse.h>

/* Numbers of an array that become arguments of their own. */
#define ITEMS_MAX 8u
/* Texts made of numbers and addresses, kept until the event is put. */
#define TEXTS_BYTES 4096u

struct texts {
	char bytes[TEXTS_BYTES];
	size_t used;
};

/* type, flags, preempt count, pid: these four are the same in all kernels since 2.6.31. */
#define COMMON_BYTES 8u

static int64_t sign_extend(uint64_t value, uint32_t bytes)
{
	unsigned shift = 64 - bytes * 8;
	return (int64_t)(value << shift) >> shift;
}

static struct ky_ftrace_field *new_field(struct ky_ftrace_event *event,
					 const struct ky_record_field *field)
{
	if (event->fields_count >= KY_FTRACE_FIELDS_MAX)
		return NULL;
	struct ky_ftrace_field *to = &event->fields[event->fields_count++];
	*to = (struct ky_ftrace_field){
		.key = field->name,
		.key_bytes = field->name_bytes,
		.key_string = field->key,
	};
	return to;
}

static void add_text(struct ky_ftrace_event *event, const struct ky_record_field *field,
		     const char *text, size_t bytes)
{
	struct ky_ftrace_field *to = new_field(event, field);
	if (!to)
		return;
	to->kind = KY_FTRACE_TEXT;
	to->text = text;
	to->bytes = (uint32_t)strnlen(text, bytes);
}

static struct ky_ftrace_field *add_number(struct ky_ftrace_format *format,
					  struct ky_ftrace_event *event,
					  const struct ky_record_field *field, const uint8_t *at,
					  uint32_t bytes)
{
	struct ky_ftrace_field *to = new_field(event, field);
	if (!to)
		return NULL;
	uint64_t value = ky_ftrace_load(format, at, bytes);
	to->number = field->is_signed ? sign_extend(value, bytes) : (int64_t)value;
	to->kind = field->is_pointer                        ? KY_FTRACE_POINTER
		   : !field->is_signed && value > INT64_MAX ? KY_FTRACE_UINT
							    : KY_FTRACE_INT;
	return to;
}

static void add_function(struct ky_ftrace_format *format, struct ky_ftrace_event *event,
			 const struct ky_record_field *field, const uint8_t *at)
{
	struct ky_ftrace_field *to = add_number(format, event, field, at, field->bytes);
	const char *name = to ? tep_find_function(format->tep, (uint64_t)to->number) : NULL;
	if (!name) {
		if (to)
			to->kind = KY_FTRACE_POINTER;
		return;
	}
	to->kind = KY_FTRACE_TEXT;
	to->text = name;
	to->bytes = (uint32_t)strlen(name);
}

/* args[0], args[1], ... each of its own; long arrays are one text of bytes. */
static void add_numbers(struct ky_ftrace_format *format, struct ky_ftrace_event *event,
			const struct ky_record_field *field, const uint8_t *at, size_t bytes,
			struct texts *texts)
{
	size_t count = bytes / field->item_bytes;
	for (size_t i = 0; count <= ITEMS_MAX && i < count; i++) {
		struct ky_ftrace_field *to = add_number(
			format, event, field, at + i * field->item_bytes, field->item_bytes);
		if (!to || TEXTS_BYTES - texts->used < 64)
			return;
		char *key = texts->bytes + texts->used;
		to->key = key;
		to->key_bytes = (uint32_t)snprintf(key, 64, "%s[%zu]", field->name, i);
		to->key_string = 0;
		texts->used += to->key_bytes + 1u;
	}
	size_t room = TEXTS_BYTES - texts->used;
	if (count <= ITEMS_MAX || room < 64)
		return;
	char *hex = texts->bytes + texts->used;
	size_t shown = bytes < (room - 4) / 2 ? bytes : (room - 4) / 2;
	shown = shown < 256 ? shown : 256;
	for (size_t i = 0; i < shown; i++)
		snprintf(hex + 2 * i, 3, "%02x", at[i]);
	texts->used += 2 * shown + 1;
	add_text(event, field, hex, 2 * shown);
}

/* Find the bytes of a field; false when they are not in the record. */
static bool locate(const struct ky_ftrace_format *format, const struct ky_record_field *field,
		   const uint8_t *record, size_t bytes, const uint8_t **at, size_t *length)
{
	size_t offset = field->offset;
	*length = field->bytes;
	/* "char buf[]" at the end has no size of its own. */
	if (!field->dynamic && field->bytes == 0 && offset <= bytes)
		*length = bytes - offset;
	if (offset > bytes || *length > bytes - offset)
		return false;
	if (field->dynamic) {
		uint64_t place = ky_ftrace_load(format, record + offset, 4);
		*length = place >> 16;
		offset = (place & 0xFFFF) + (field->relative ? offset + 4 : 0);
		if (offset > bytes || *length > bytes - offset)
			return false;
	}
	*at = record + offset;
	return true;
}

static void add_field(struct ky_ftrace_format *format, struct ky_ftrace_event *event,
		      const struct ky_record_field *field, const uint8_t *record, size_t bytes,
		      struct texts *texts, uint64_t place)
{
	const uint8_t *at;
	size_t length;
	if (!locate(format, field, record, bytes, &at, &length)) {
		ky_problem(format->trace, "ftrace_record_field", KY_ERROR, place,
			   "field %s of event %.*s is beyond its %zu bytes", field->name,
			   (int)event->name_bytes, event->name_text, bytes);
		return;
	}
	if (field->kind == KY_RECORD_CHARS)
		add_text(event, field, (const char *)at, length);
	else if (field->kind == KY_RECORD_NUMBERS)
		add_numbers(format, event, field, at, length, texts);
	else if (field->kind == KY_RECORD_FUNCTION)
		add_function(format, event, field, at);
	else
		(void)add_number(format, event, field, at, field->bytes);
}

/* The message instead of its binary arguments. */
static void show_message(struct ky_ftrace_event *event)
{
	for (uint32_t i = 0; i < event->fields_count; i++) {
		struct ky_ftrace_field *field = &event->fields[i];
		if (field->key_bytes < 3 || memcmp(field->key, "buf", 3) != 0)
			continue;
		field->kind = KY_FTRACE_TEXT;
		field->text = event->text;
		field->bytes = (uint32_t)event->text_bytes;
		return;
	}
}

static void print_bprint(const struct ky_ftrace_format *format,
			 const struct ky_record_format *known, struct ky_ftrace_event *event,
			 const uint8_t *record, size_t bytes, struct texts *texts)
{
	uint64_t numbers[2] = {0, 0};
	const uint8_t *packed = NULL;
	size_t packed_bytes = 0;
	for (uint32_t i = 0; i < known->fields_count; i++) {
		const struct ky_record_field *field = &known->fields[i];
		const uint8_t *at;
		size_t length;
		bool is_ip = strcmp(field->name, "ip") == 0;
		if (!locate(format, field, record, bytes, &at, &length))
			continue;
		if ((is_ip || strcmp(field->name, "fmt") == 0) && (length == 4 || length == 8))
			numbers[!is_ip] = ky_ftrace_load(format, at, (uint32_t)length);
		else if (strcmp(field->name, "buf") == 0) {
			packed = at;
			packed_bytes = length;
		}
	}
	if (!packed)
		return;
	char *text = texts->bytes + texts->used;
	size_t used = ky_ftrace_bprint(format, numbers[0], numbers[1], packed, packed_bytes, text,
				       TEXTS_BYTES - texts->used);
	if (!used)
		return;
	event->text = text;
	event->text_bytes = used;
	texts->used += used;
	show_message(event);
}

static void read_record(struct ky_ftrace_format *format, uint32_t cpu, int64_t ts,
			const uint8_t *record, size_t bytes, uint64_t at)
{
	struct ky_ftrace_event event;
	struct texts texts;
	uint32_t id = bytes >= COMMON_BYTES ? (uint32_t)ky_ftrace_load(format, record, 2) : 0;
	const struct ky_record_format *known =
		id && id < format->formats_room ? format->formats[id] : NULL;
	if (!known) {
		ky_problem(format->trace, "ftrace_unknown_event", KY_DATA_LOSS, at,
			   "event %u on CPU %u, which has no format", id, cpu);
		return;
	}
	event.ts = ts;
	event.cpu = cpu;
	event.tid = (int32_t)ky_ftrace_load(format, record + 4, 4);
	event.tgid = 0;
	event.comm = 0;
	event.name = known->name;
	event.release = format->release;
	event.machine = format->machine;
	event.watched = format->watched;
	event.name_text = known->name_text;
	event.name_bytes = strlen(known->name_text);
	event.text = NULL;
	event.text_bytes = 0;
	event.fields_count = 0;
	texts.used = 0;
	for (uint32_t i = 0; i < known->fields_count; i++)
		add_field(format, &event, &known->fields[i], record, bytes, &texts, at);
	if (!format->printks_sorted)
		ky_ftrace_bprint_sort(format);
	if (known->is_bprint)
		print_bprint(format, known, &event, record, bytes, &texts);
	const struct ky_ftrace_field *text = known->is_text ? ky_ftrace_find(&event, "buf") : NULL;
	if (text && text->kind == KY_FTRACE_TEXT) {
		event.text = text->text;
		event.text_bytes = text->bytes;
	}
	ky_tid_set_add(&format->seen, event.tid);
	if (format->watched && known->is_own)
		ky_ftrace_watched_add(format->watched, event.tid);
	if (ts > format->last_ts)
		format->last_ts = ts;
	format->events++;
	ky_ftrace_put(format->trace, &event);
}

/* ---- pages ---- */

/*
 * A page of the kernel's ring buffer.
 *
 *   0    8        16 (12)                       commit
 *   ts   commit   event event event ...         [count of lost ones]
 *
 *   commit  bits 0..26 bytes of events, bit 30: a count of lost events follows them, bit 31: events
 *           before this page were lost
 *   event   u32: type and length in 5 bits, time since the last one in 27; then its data
 *           1..28 data of 4 bytes each; 0: the length is in the next u32; 29 padding; 30 more of the time;
 *           31 the absolute time
 *
 * libtraceevent's kbuffer walks pages too, but trusts what they say about lengths; pages of a file that
 * anybody may have written are walked here, within their bounds.
 */

#define COMMIT_BYTES_MASK 0x07FFFFFFu
#define MISSED_STORED (1u << 30)
#define MISSED (1u << 31)

#define TYPE_PADDING 29u
#define TYPE_EXTEND 30u
#define TYPE_ABSOLUTE 31u
/* An absolute time has 59 bits; those above are the page's. */
#define ABSOLUTE_BITS 59u

struct page_walk {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t ts;
};

static int64_t nanoseconds(const struct ky_ftrace_clock *clock, uint64_t ts)
{
	if (clock->mult)
		ts = (uint64_t)((__uint128_t)ts * clock->mult >> (clock->shift & 63));
	return (int64_t)(ts + (uint64_t)clock->offset);
}

/*
 * Get the next event's data; NULL at the end of the page or for an entry without an event. Return false when the
 * page is damaged from here on.
 */
static bool next_event(const struct ky_ftrace_format *format, struct page_walk *walk,
		       const uint8_t **data, size_t *bytes)
{
	uint32_t head = (uint32_t)ky_ftrace_load(format, walk->at, 4);
	uint32_t type = format->big_endian ? head >> 27 : head & 31;
	uint64_t delta = format->big_endian ? head & 0x07FFFFFF : head >> 5;
	size_t left = (size_t)(walk->end - walk->at) - 4;
	walk->at += 4;
	*data = NULL;
	if (type >= 1 && type < TYPE_PADDING) {
		*bytes = type * 4;
	} else {
		if (type == TYPE_PADDING && !delta) {
			walk->at = walk->end;
			return true;
		}
		if (left < 4)
			return false;
		uint32_t word = (uint32_t)ky_ftrace_load(format, walk->at, 4);
		if (type >= TYPE_EXTEND) {
			uint64_t time = delta | (uint64_t)word << 27;
			walk->at += 4;
			walk->ts = type == TYPE_EXTEND
					   ? walk->ts + time
					   : (walk->ts >> ABSOLUTE_BITS << ABSOLUTE_BITS) | time;
			return true;
		}
		/* The length counts itself. */
		if (word < 4 || word > left)
			return false;
		walk->at += 4;
		left -= 4;
		*bytes = word - 4;
	}
	if (*bytes > left)
		return false;
	walk->ts += delta;
	*data = type == TYPE_PADDING ? NULL : walk->at;
	size_t step = (*bytes + 3) & ~(size_t)3;
	walk->at += step < left ? step : left;
	return true;
}

static void put_missed(struct ky_ftrace_format *format, uint32_t cpu, uint32_t commit,
		       const struct page_walk *walk, const uint8_t *page_end)
{
	uint64_t missed = 0;
	if (commit & MISSED_STORED && (size_t)(page_end - walk->end) >= format->commit_bytes)
		missed = ky_ftrace_load(format, walk->end, format->commit_bytes);
	format->missed += missed;
	ky_put_lost(format->trace, nanoseconds(&format->clock, walk->ts), KY_NONE, cpu, missed,
		    KY_LOSS_FTRACE);
}

void ky_ftrace_page(struct ky_ftrace_format *format, uint32_t cpu, const uint8_t *page,
		    size_t bytes, uint64_t at)
{
	size_t head = 8 + format->commit_bytes;
	if (bytes < head) {
		ky_problem(format->trace, "ftrace_page", KY_DATA_LOSS, at,
			   "a page of %zu bytes; expected at least %zu", bytes, head);
		return;
	}
	uint32_t commit = (uint32_t)ky_ftrace_load(format, page + 8, format->commit_bytes);
	size_t used = commit & COMMIT_BYTES_MASK;
	if (used > bytes - head) {
		ky_problem(format->trace, "ftrace_page", KY_DATA_LOSS, at,
			   "a page with %zu bytes of events that has room for %zu", used,
			   bytes - head);
		used = bytes - head;
	}
	struct page_walk walk = {page + head, page + head + used, ky_ftrace_load(format, page, 8)};
	if (commit & MISSED)
		put_missed(format, cpu, commit, &walk, page + bytes);
	while (walk.end - walk.at >= 4) {
		const uint8_t *data;
		size_t length = 0;
		const uint8_t *begin = walk.at;
		if (!next_event(format, &walk, &data, &length)) {
			ky_problem(format->trace, "ftrace_page", KY_DATA_LOSS,
				   at + (uint64_t)(begin - page),
				   "an event is longer than the rest of its page");
			return;
		}
		if (data)
			read_record(format, cpu, nanoseconds(&format->clock, walk.ts), data, length,
				    at + (uint64_t)(begin - page));
	}
}
