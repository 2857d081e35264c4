/* SPDX-License-Identifier: MIT */
/*
 * json_event_parse.c: the text of one event into its fields. The hot path of the reader: a key of up to seven bytes is
 * one word, compared with constants; times are read by integer arithmetic; arguments are only stepped over, since what
 * becomes of them depends on the phase, which may come behind them. Names come again and again: a table, one slot per
 * hash, comes before the trace's strings and resolves most of them with two compares.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <endian.h>
#include <errno.h>

/* ---- strings ---- */

uint32_t ky_json_string_of(struct ky_json *json, const uint8_t *at, size_t bytes)
{
	const uint64_t head = ky_json_head(at, bytes), tail = ky_json_tail(at, bytes);
	struct ky_json_cached *slot = &json->texts[ky_json_slot(head, tail, bytes) % KY_JSON_TEXTS];
	struct ky_strings *strings = &json->trace->strings;

	if (slot->string && slot->head == head && slot->tail == tail && slot->bytes == bytes &&
	    (bytes <= 16 ||
	     memcmp(ky_strings_text(strings, slot->string) + 8, at + 8, bytes - 16) == 0))
		return slot->string;
	const uint32_t string = ky_strings_add_utf8(strings, (const char *)at, bytes);
	/* A text that was not UTF-8 differs from its string: do not compare it with that. */
	if (bytes <= 16 || (ky_strings_bytes(strings, string) == bytes &&
			    memcmp(ky_strings_text(strings, string), at, bytes) == 0))
		*slot = (struct ky_json_cached){head, tail, (uint32_t)bytes, string};
	return string;
}

char *ky_json_scratch(struct ky_json *json, size_t bytes)
{
	if (bytes <= json->scratch_room || KY_ARRAY_GROW(json->scratch, json->scratch_room, bytes))
		return json->scratch;
	json->trace->error = -ENOMEM;
	return NULL;
}

uint32_t ky_json_text_string(struct ky_json *json, const struct ky_json_text *text)
{
	if (text->bytes == 0)
		return 0;
	if (!text->escapes)
		return ky_json_string_of(json, text->at, text->bytes);
	char *scratch = ky_json_scratch(json, text->bytes);
	if (!scratch)
		return 0;
	const size_t bytes = ky_json_unescape(text, scratch);
	return bytes ? ky_json_string_of(json, (const uint8_t *)scratch, bytes) : 0;
}

uint32_t ky_json_node_string(struct ky_json *json, const struct ky_json_tree *tree, uint32_t node)
{
	struct ky_json_text text;
	return ky_json_tree_text(tree, node, &text) ? ky_json_text_string(json, &text) : 0;
}

uint64_t ky_json_hash(const uint8_t *at, size_t bytes)
{
	uint64_t hash = ky_hash_pair(bytes, 0);
	for (; bytes >= 8; at += 8, bytes -= 8)
		hash = ky_hash_pair(hash, ky_json_head(at, 8));
	return bytes ? ky_hash_pair(hash, ky_json_head(at, bytes)) : hash;
}

/* ---- fields ---- */

/* Keys as words: the first byte is the lowest. */
#define WORD1(a) ((uint64_t)(a))
#define WORD2(a, b) (WORD1(a) | (uint64_t)(b) << 8)
#define WORD3(a, b, c) (WORD2(a, b) | (uint64_t)(c) << 16)
#define WORD4(a, b, c, d) (WORD3(a, b, c) | (uint64_t)(d) << 24)
#define WORD7(a, b, c, d, e, f, g)                                                                 \
	(WORD4(a, b, c, d) | (uint64_t)(e) << 32 | (uint64_t)(f) << 40 | (uint64_t)(g) << 48)

#define WORD_NONE 0u /* longer, or with escapes: none that is looked at, but for flow_out */
#define WORD_FLOW_OUT 1u

/* Return a word of the text; the first byte is the lowest. */
static inline uint64_t word_at(const uint8_t *at)
{
	uint64_t word;
	memcpy(&word, at, 8);
	return le64toh(word);
}

/* The word of the key behind whose opening quote at is, and where its closing quote is, or NULL. */
static inline const uint8_t *key_word(const uint8_t *at, const uint8_t *end, uint64_t *word)
{
	uint64_t bytes = 0;
	struct ky_json_text text;

	if (end - at >= 8) {
		bytes = word_at(at);
		const uint64_t x = bytes ^ 0x2222222222222222u;
		const uint64_t zero = (x - 0x0101010101010101u) & ~x & 0x8080808080808080u;
		const uint32_t count = zero ? (uint32_t)__builtin_ctzll(zero) / 8 : 8;
		if (count > 0 && count < 8 && at[count - 1] != '\\') {
			*word = bytes & ((1ull << (count * 8)) - 1);
			return at + count + 1;
		}
	}
	at = ky_json_scan_string(at, end, &text);
	*word = WORD_NONE;
	if (at && ky_json_is(&text, "flow_out"))
		*word = WORD_FLOW_OUT;
	else if (at && text.bytes < 8 && !text.escapes)
		for (size_t i = 0; i < text.bytes; i++)
			*word |= (uint64_t)text.at[i] << (8 * i);
	return at;
}

/* Get a string's number; skip any other value. */
static inline const uint8_t *text_field(struct ky_json *json, const uint8_t *at, const uint8_t *end,
					uint32_t *string, enum ky_json_fault *fault)
{
	struct ky_json_text text;

	if (*at != '"')
		return ky_json_skip(at, end, fault);
	*fault = KY_JSON_CUT;
	at = ky_json_scan_string(at + 1, end, &text);
	if (at)
		*string = ky_json_text_string(json, &text);
	return at;
}

/* Return the first byte of a string. */
static inline const uint8_t *letter_field(const uint8_t *at, const uint8_t *end, uint8_t *letter,
					  enum ky_json_fault *fault)
{
	struct ky_json_text text;

	if (end - at >= 3 && at[0] == '"' && at[2] == '"' && at[1] != '\\') {
		*letter = at[1];
		return at + 3;
	}
	if (*at != '"')
		return ky_json_skip(at, end, fault);
	*fault = KY_JSON_CUT;
	at = ky_json_scan_string(at + 1, end, &text);
	if (at)
		*letter = text.bytes ? text.at[0] : 0;
	return at;
}

static const uint8_t *time_text(const uint8_t *at, const uint8_t *end, int64_t *ns, uint32_t *has,
				uint32_t bit, enum ky_json_fault *fault)
{
	struct ky_json_text text;
	enum ky_json_fault inner;
	uint8_t copy[64];

	if (*at != '"') {
		*has |= KY_JSON_BAD_TIME;
		return ky_json_skip(at, end, fault);
	}
	*fault = KY_JSON_CUT;
	at = ky_json_scan_string(at + 1, end, &text);
	if (!at)
		return NULL;
	*has |= KY_JSON_BAD_TIME;
	if (text.bytes == 0 || text.bytes > sizeof(copy) - 2)
		return at;
	memcpy(copy, text.at, text.bytes);
	copy[text.bytes] = ' ';
	copy[text.bytes + 1] = 0;
	const uint8_t *stop = ky_json_micros(copy, copy + text.bytes + 1, ns, &inner);
	if (stop == copy + text.bytes)
		*has = (*has & ~KY_JSON_BAD_TIME) | bit;
	return at;
}

static inline const uint8_t *time_field(const uint8_t *at, const uint8_t *end, int64_t *ns,
					uint32_t *has, uint32_t bit, enum ky_json_fault *fault)
{
	const uint8_t *stop = *at == '"' ? NULL : ky_json_micros(at, end, ns, fault);
	if (!stop)
		return *at != '"' && *fault == KY_JSON_CUT
			       ? NULL
			       : time_text(at, end, ns, has, bit, fault);
	*has |= bit;
	return stop;
}

/* Keep the number with the byte that ended it, where both fit into a word. */
static void keep_task(struct ky_json_task *task, const uint8_t *at, size_t bytes, int64_t id)
{
	task->bytes = bytes < 8 ? (uint32_t)bytes : 0;
	task->mask = (1ull << (task->bytes * 8)) * 256 - 1;
	task->word = word_at(at) & task->mask;
	task->id = id;
}

static const uint8_t *task_number(struct ky_json_task *task, const uint8_t *at, const uint8_t *end,
				  int64_t *id, enum ky_json_fault *fault)
{
	struct ky_json_number number;
	const uint8_t *stop = ky_json_number(at, end, &number, fault);

	if (!stop)
		return *fault == KY_JSON_CUT ? NULL : ky_json_skip(at, end, fault);
	if (number.integer)
		*id = number.i;
	else if (number.d >= 0 && number.d <= UINT32_MAX)
		*id = (int64_t)number.d;
	if (end - at >= 8)
		keep_task(task, at, (size_t)(stop - at), *id);
	return stop;
}

static const uint8_t *new_task(struct ky_json *json, struct ky_json_task *task, const uint8_t *at,
			       const uint8_t *end, int64_t *id, uint32_t *name,
			       enum ky_json_fault *fault)
{
	struct ky_json_number number;
	struct ky_json_text text;

	*id = 0;
	*name = 0;
	if (*at != '"')
		return task_number(task, at, end, id, fault);
	*fault = KY_JSON_CUT;
	at = ky_json_scan_string(at + 1, end, &text);
	if (!at)
		return NULL;
	if (ky_json_number_text(text.at, text.bytes, &number) && number.integer) {
		*id = number.i;
	} else {
		*name = ky_json_text_string(json, &text);
		*id = *name;
	}
	return at;
}

/* Read a pid or tid: mostly the same as the last. */
static inline const uint8_t *task_field(struct ky_json *json, struct ky_json_task *task,
					const uint8_t *at, const uint8_t *end, int64_t *id,
					uint32_t *name, enum ky_json_fault *fault)
{
	if (task->bytes && end - at >= 8 && (word_at(at) & task->mask) == task->word) {
		*id = task->id;
		*name = 0;
		return at + task->bytes;
	}
	return new_task(json, task, at, end, id, name, fault);
}

static const uint8_t *id_field(const uint8_t *at, const uint8_t *end, struct ky_json_id *id,
			       enum ky_json_fault *fault)
{
	const uint8_t *stop = ky_json_skip(at, end, fault);
	if (!stop)
		return NULL;
	const bool string = *at == '"';
	size_t bytes = (size_t)(stop - at) - (string ? 2 : 0);
	if (bytes > UINT32_MAX)
		bytes = UINT32_MAX;
	*id = (struct ky_json_id){at + string, (uint32_t)bytes, string};
	return stop;
}

static const uint8_t *flag_field(const uint8_t *at, const uint8_t *end, uint32_t *has, uint32_t bit,
				 enum ky_json_fault *fault)
{
	if (*at == 't')
		*has |= bit;
	return ky_json_skip(at, end, fault);
}

static const uint8_t *rare_field(const uint8_t *at, const uint8_t *end, uint64_t word,
				 struct ky_json_event *event, enum ky_json_fault *fault)
{
	uint8_t letter = 0;

	switch (word) {
	case WORD2('i', 'd'):
		event->has |= KY_JSON_HAS_ID;
		return id_field(at, end, &event->id, fault);
	case WORD7('b', 'i', 'n', 'd', '_', 'i', 'd'):
		event->has |= KY_JSON_HAS_BIND_ID;
		return id_field(at, end, &event->bind_id, fault);
	case WORD3('i', 'd', '2'):
		event->id2 = *at == '{' ? at : NULL;
		break;
	case WORD1('s'):
		return letter_field(at, end, &event->scope, fault);
	case WORD2('b', 'p'):
		at = letter_field(at, end, &letter, fault);
		if (letter == 'e')
			event->has |= KY_JSON_BIND_ENCLOSING;
		return at;
	case WORD7('f', 'l', 'o', 'w', '_', 'i', 'n'):
		return flag_field(at, end, &event->has, KY_JSON_FLOW_IN, fault);
	case WORD_FLOW_OUT:
		return flag_field(at, end, &event->has, KY_JSON_FLOW_OUT, fault);
	default:
		break;
	}
	return ky_json_skip(at, end, fault);
}

static inline const uint8_t *field(struct ky_json *json, const uint8_t *at, const uint8_t *end,
				   uint64_t word, struct ky_json_event *event,
				   enum ky_json_fault *fault)
{
	switch (word) {
	case WORD4('n', 'a', 'm', 'e'):
		return text_field(json, at, end, &event->name, fault);
	case WORD3('c', 'a', 't'):
		return text_field(json, at, end, &event->category, fault);
	case WORD2('p', 'h'):
		return letter_field(at, end, &event->phase, fault);
	case WORD2('t', 's'):
		return time_field(at, end, &event->ts, &event->has, KY_JSON_HAS_TS, fault);
	case WORD3('d', 'u', 'r'):
		return time_field(at, end, &event->dur, &event->has, KY_JSON_HAS_DUR, fault);
	case WORD3('p', 'i', 'd'):
		event->has |= KY_JSON_HAS_PID;
		return task_field(json, &json->last_pid, at, end, &event->pid, &event->pid_text,
				  fault);
	case WORD3('t', 'i', 'd'):
		event->has |= KY_JSON_HAS_TID;
		return task_field(json, &json->last_tid, at, end, &event->tid, &event->tid_text,
				  fault);
	case WORD4('a', 'r', 'g', 's'):
		event->args = at;
		return ky_json_skip(at, end, fault);
	default:
		return rare_field(at, end, word, event, fault);
	}
}

const uint8_t *ky_json_event_parse(struct ky_json *json, const uint8_t *at, const uint8_t *end,
				   struct ky_json_event *event, enum ky_json_fault *fault)
{
	uint64_t word;

	memset(event, 0, sizeof(*event));
	for (at++;;) {
		while (*at == ',' || *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
			at++;
		if (*at == '}')
			return at + 1;
		*fault = at >= end ? KY_JSON_CUT : KY_JSON_BAD;
		if (*at != '"')
			return NULL;
		*fault = KY_JSON_CUT;
		at = key_word(at + 1, end, &word);
		if (!at)
			return NULL;
		if (*at != ':')
			at = ky_json_space(at);
		*fault = at >= end ? KY_JSON_CUT : KY_JSON_BAD;
		if (*at != ':')
			return NULL;
		at = ky_json_space(at + 1);
		*fault = KY_JSON_CUT;
		if (at >= end)
			return NULL;
		event->has |= KY_JSON_NOT_EMPTY;
		at = field(json, at, end, word, event, fault);
		if (!at)
			return NULL;
	}
}
