/* SPDX-License-Identifier: MIT */
/*
 * ftrace_format.c: formats, symbols and format strings of a kernel.
 *
 * libtraceevent parses the fields of each event, once; what reading a record needs of them is kept here in
 * a table by id. It gets the formats as ftrace_format_text.c writes them, one at a time: its parser has one
 * buffer for all threads.
 */
#include "formats/ftrace/ftrace_format.h"
#include "base/array.h"
#include "base/memory.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <traceevent/event-parse.h>

/* ids are 16 bits in the records. */
#define IDS_MAX 65536u
#define FORMAT_BYTES_MAX (64u << 10)
/* The library's list of events is moved for each that is added. */
#define FORMATS_MAX 20000u
#define FIELDS_MAX (KY_FTRACE_FIELDS_MAX - 8)

static pthread_mutex_t parser_lock = PTHREAD_MUTEX_INITIALIZER;

int ky_ftrace_format_open(struct ky_ftrace_format **out, struct ky_trace *trace, bool big_endian,
			  uint32_t long_bytes)
{
	struct ky_ftrace_format *format = calloc(1, sizeof(*format));
	*out = NULL;
	if (!format)
		return -ENOMEM;
	tep_set_loglevel(TEP_LOG_NONE);
	format->tep = tep_alloc();
	if (!format->tep) {
		free(format);
		return -ENOMEM;
	}
	format->trace = trace;
	format->big_endian = big_endian;
	format->swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	format->long_bytes = long_bytes == 4 ? 4 : 8;
	format->commit_bytes = format->long_bytes;
	format->last_ts = INT64_MIN;
	tep_set_file_bigendian(format->tep, big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_local_bigendian(format->tep, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
						     ? TEP_BIG_ENDIAN
						     : TEP_LITTLE_ENDIAN);
	tep_set_long_size(format->tep, (int)format->long_bytes);
	*out = format;
	return 0;
}

static void free_record_format(struct ky_record_format *record)
{
	if (!record)
		return;
	free(record->name_text);
	free(record->fields);
	free(record);
}

void ky_ftrace_format_close(struct ky_ftrace_format **out)
{
	struct ky_ftrace_format *format = *out;
	*out = NULL;
	if (!format)
		return;
	for (uint32_t i = 0; i < format->formats_room; i++)
		free_record_format(format->formats[i]);
	KY_ARRAY_FREE(format->formats, format->formats_room);
	KY_ARRAY_FREE(format->comms, format->comms_room);
	KY_ARRAY_FREE(format->seen.bits, format->seen.words);
	ky_ftrace_bprint_free(format);
	tep_free(format->tep);
	free(format);
}

void ky_ftrace_format_header_page(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	const char *commit = memmem(text, bytes, "commit;", 7);
	const char *size =
		commit ? memmem(commit, bytes - (size_t)(commit - text), "size:", 5) : NULL;
	if (!size || (size_t)(size - text) + 5 >= bytes || (size[5] != '4' && size[5] != '8')) {
		ky_problem(format->trace, "ftrace_header_page", KY_ERROR, KY_NO_PLACE,
			   "no size of commit in header_page: taken as %u", format->commit_bytes);
		return;
	}
	format->commit_bytes = (uint32_t)(size[5] - '0');
	format->long_bytes = format->commit_bytes;
	tep_set_long_size(format->tep, (int)format->long_bytes);
}

/* ---- formats ---- */

static bool is_function(const struct tep_format_field *field)
{
	static const char *const names[] = {"ip",     "parent_ip", "func",     "function",
					    "caller", "call_site", "callsite", "retaddr"};
	if (field->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_DYNAMIC) || field->size < 4)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(field->name, names[i]) == 0)
			return true;
	return false;
}

static enum ky_record_field_kind kind_of(const struct tep_format_field *field)
{
	if (field->flags & TEP_FIELD_IS_STRING)
		return KY_RECORD_CHARS;
	if (field->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_DYNAMIC))
		return KY_RECORD_NUMBERS;
	return is_function(field) ? KY_RECORD_FUNCTION : KY_RECORD_NUMBER;
}

static bool usable_number(uint32_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/* False: it is nothing that can be read. */
static bool take_field(struct ky_ftrace_format *format, const struct tep_format_field *from,
		       struct ky_record_field *to)
{
	if (!from->name || from->offset < 0 || from->size < 0 || from->offset > 65535 ||
	    from->size > 65535)
		return false;
	*to = (struct ky_record_field){
		.offset = (uint32_t)from->offset,
		.bytes = (uint32_t)from->size,
		.item_bytes =
			from->flags & TEP_FIELD_IS_ARRAY ? from->elementsize : (uint32_t)from->size,
		.kind = kind_of(from),
		.is_signed = (from->flags & TEP_FIELD_IS_SIGNED) != 0,
		.is_pointer = (from->flags & TEP_FIELD_IS_POINTER) != 0,
		.dynamic = (from->flags & TEP_FIELD_IS_DYNAMIC) != 0,
		.relative = (from->flags & TEP_FIELD_IS_RELATIVE) != 0,
	};
	if (to->dynamic)
		to->item_bytes = from->elementsize;
	/* Old kernels write "char buf" of no size for what goes on to the end of the record. */
	else if (!to->bytes && to->kind == KY_RECORD_NUMBER)
		to->kind = from->type && strstr(from->type, "char") ? KY_RECORD_CHARS
								    : KY_RECORD_NUMBERS;
	if (to->kind == KY_RECORD_NUMBERS && !usable_number(to->item_bytes))
		to->item_bytes = 1;
	int named = snprintf(to->name, sizeof(to->name), "%s", from->name);
	to->name_bytes = (uint32_t)strnlen(to->name, sizeof(to->name) - 1);
	to->key = ky_string(format->trace, to->name, to->name_bytes);
	if (named < 0 || (to->dynamic && to->bytes != 4))
		return false;
	return to->dynamic || to->kind == KY_RECORD_CHARS || to->kind == KY_RECORD_NUMBERS ||
	       usable_number(to->bytes);
}

/* The kernel records a switch or wakeup when either task is recorded. */
static bool is_of_two(const char *name)
{
	static const char *const names[] = {"sched_switch", "sched_waking", "sched_wakeup",
					    "sched_wakeup_new"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static struct ky_record_format *take_event(struct ky_ftrace_format *format,
					   const struct tep_event *event)
{
	struct ky_record_format *record = calloc(1, sizeof(*record));
	if (!record)
		return NULL;
	uint32_t room = 0;
	for (const struct tep_format_field *f = event->format.fields; f && room < FIELDS_MAX;
	     f = f->next)
		room++;
	record->name_text = strdup(event->name);
	record->fields = calloc(room ? room : 1, sizeof(*record->fields));
	if (!record->name_text || !record->fields) {
		free_record_format(record);
		return NULL;
	}
	record->name = ky_string_z(format->trace, event->name);
	const struct tep_format_field *from = event->format.fields;
	for (uint32_t i = 0; i < room; i++, from = from->next)
		record->fields_count +=
			take_field(format, from, &record->fields[record->fields_count]);
	bool own = event->system && strcmp(event->system, "ftrace") == 0;
	record->is_text = own && (strcmp(event->name, "print") == 0);
	record->is_bprint = own && strcmp(event->name, "bprint") == 0;
	record->is_own = !own && !is_of_two(event->name);
	return record;
}

/* Kernels that print an idle state have the bits of 4.14. */
static void learn_release(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	if (format->release_known || !memmem(text, bytes, "name: sched_switch\n", 19))
		return;
	if (memmem(text, bytes, "\"I\"", 3))
		format->release = 4 << 8 | 14;
}

static uint32_t id_of(const char *text)
{
	const char *line = strstr(text, "ID:");
	long id = line ? strtol(line + 3, NULL, 10) : -1;
	return id < 0 || id >= (long)IDS_MAX ? IDS_MAX : (uint32_t)id;
}

/* NULL when it cannot be used. */
static const struct tep_event *parse_event(struct ky_ftrace_format *format, const char *system,
					   const char *text, size_t bytes)
{
	size_t used = 0;
	uint32_t left_out;
	if (bytes > FORMAT_BYTES_MAX || format->formats_count >= FORMATS_MAX)
		return NULL;
	char *copy = ky_ftrace_format_text(text, bytes, &used, &left_out);
	if (!copy)
		return NULL;
	if (left_out)
		ky_problems(format->trace, "ftrace_field_format", KY_INFO, KY_NO_PLACE, left_out);
	uint32_t id = id_of(copy);
	struct tep_event *event = NULL;
	pthread_mutex_lock(&parser_lock);
	bool parsed = id < IDS_MAX &&
		      tep_parse_event(format->tep, copy, used, system) == TEP_ERRNO__SUCCESS;
	pthread_mutex_unlock(&parser_lock);
	if (parsed)
		event = tep_find_event(format->tep, (int)id);
	free(copy);
	return event && event->name && event->id == (int)id ? event : NULL;
}

void ky_ftrace_format_event(struct ky_ftrace_format *format, const char *system, const char *text,
			    size_t bytes, uint64_t at)
{
	learn_release(format, text, bytes);
	const struct tep_event *event = parse_event(format, system, text, bytes);
	if (!event ||
	    !KY_ARRAY_GROW_ZERO(format->formats, format->formats_room, (uint64_t)event->id + 1)) {
		ky_problem(format->trace, "ftrace_event_format", KY_ERROR, at,
			   "a format of an event of %s that cannot be used", system);
		return;
	}
	free_record_format(format->formats[event->id]);
	format->formats[event->id] = take_event(format, event);
	if (!format->formats[event->id])
		ky_memory_missing();
	format->formats_count++;
}

/* ---- symbols and strings ---- */

void ky_ftrace_format_lines(struct ky_ftrace_format *format, const char *text, size_t bytes,
			    void (*take)(struct ky_ftrace_format *format, char *line))
{
	char line[1024];
	const char *end = text + bytes;
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);
		size_t kept = length < sizeof(line) - 1 ? length : sizeof(line) - 1;
		memcpy(line, text, kept);
		line[kept] = '\0';
		take(format, line);
		text += length + 1;
	}
}

/* "ffffffff81000000 T _text [module]". */
static void take_symbol(struct ky_ftrace_format *format, char *line)
{
	char *end;
	unsigned long long address = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return;
	char *name = end + 3;
	char *module = strpbrk(name, " \t");
	if (module) {
		*module++ = '\0';
		module += strspn(module, " \t[");
		module[strcspn(module, "]")] = '\0';
	}
	/* Symbols of data say nothing about functions. */
	if (strchr("tTwWi", end[1]))
		(void)tep_register_function(format->tep, name, address, module);
}

void ky_ftrace_format_kallsyms(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	ky_ftrace_format_lines(format, text, bytes, take_symbol);
}

/* "0xffffffff81a3f1e8 : "text %d\n"". */
static void take_printk(struct ky_ftrace_format *format, char *line)
{
	char *end;
	unsigned long long address = strtoull(line, &end, 0);
	char *open = strchr(end, '"');
	char *close = strrchr(end, '"');
	if (!address || !open || close == open)
		return;
	*close = '\0';
	ky_ftrace_bprint_add(format, address, open + 1, strlen(open + 1));
}

void ky_ftrace_format_printk(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	/* Once, before the first event: lists that come again and again would be sorted as often. */
	if (!format->printks_sorted)
		ky_ftrace_format_lines(format, text, bytes, take_printk);
}

/* ---- the machine ---- */

void ky_ftrace_format_uname(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	static const struct {
		const char *name;
		uint32_t machine;
	} machines[] = {{"x86_64", EM_X86_64}, {"aarch64", EM_AARCH64}, {"riscv64", EM_RISCV}};
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (memmem(text, bytes, machines[i].name, strlen(machines[i].name)))
			format->machine = machines[i].machine;
	for (size_t i = 0; i + 2 < bytes; i++) {
		unsigned major;
		unsigned minor;
		char copy[16] = {0};
		if (i && text[i - 1] != ' ')
			continue;
		memcpy(copy, text + i, bytes - i < 15 ? bytes - i : 15);
		if (copy[0] < '0' || copy[0] > '9' || sscanf(copy, "%3u.%3u", &major, &minor) != 2)
			continue;
		format->release = major << 8 | (minor > 255 ? 255 : minor);
		format->release_known = true;
		return;
	}
}

void ky_ftrace_format_clock(struct ky_ftrace_format *format, const struct ky_ftrace_clock *clock)
{
	format->clock = *clock;
}

uint64_t ky_ftrace_format_missed(const struct ky_ftrace_format *format)
{
	return format->missed;
}
