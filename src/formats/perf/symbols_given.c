/* SPDX-License-Identifier: MIT */
/*
 * symbols_given.c: see symbols_given.h. The records are sorted by place once; those of a place lie one behind the other, in
 * the order of the stream.
 */
#include "formats/perf/symbols_given.h"

#include "base/array.h"
#include "base/map.h"
#include "formats/kymo/kymo_layout.h"
#include "model/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_NAME "[kernel]"
#define INLINED_MAX 256u

/* Where a record belongs. */
struct given_place {
	uint64_t address;
	uint32_t module; /* number, or KY_NONE: of the process */
	int32_t pid;     /* 0 in a module */
	uint32_t order;  /* in the stream */
	bool inlined;
};

struct ky_symbols_given {
	struct ky_trace *trace;
	struct given_place *places;
	struct ky_given_name *names; /* in the order of places */
	uint32_t count;
	uint64_t places_room, names_room;
	struct ky_u64_map module_of; /* path and build id */
	uint32_t modules;
	uint32_t kernel; /* module, or KY_NONE */
};

void ky_symbols_given_close(struct ky_symbols_given **out)
{
	struct ky_symbols_given *given = *out;
	*out = NULL;
	if (!given)
		return;
	KY_ARRAY_FREE(given->places, given->places_room);
	KY_ARRAY_FREE(given->names, given->names_room);
	ky_u64_map_free(&given->module_of);
	free(given);
}

static uint32_t module_of(struct ky_symbols_given *given, uint32_t path, uint32_t build_id)
{
	bool made;
	uint32_t *number =
		ky_u64_map_add(&given->module_of, (uint64_t)path << 32 | build_id, &made);
	if (number && made)
		*number = given->modules++;
	return number ? *number : KY_NONE;
}

/* ---- reading ---- */

/* Take the record's texts, one behind the other. */
static const char *take_text(const char **at, uint16_t bytes)
{
	const char *text = *at;
	*at += bytes;
	return text;
}

static bool add_record(struct ky_symbols_given *given, const struct ky_kymo_symbol *head,
		       const char *texts)
{
	const uint32_t number = given->count;
	if (!KY_ARRAY_GROW_ZERO(given->places, given->places_room, number + 1) ||
	    !KY_ARRAY_GROW_ZERO(given->names, given->names_room, number + 1))
		return false;
	const char *module = take_text(&texts, head->module_bytes);
	const char *build_id = take_text(&texts, head->build_id_bytes);
	const char *name = take_text(&texts, head->name_bytes);
	const char *file = take_text(&texts, head->file_bytes);
	struct ky_trace *trace = given->trace;
	struct given_place place = {.address = head->address,
				    .module = KY_NONE,
				    .pid = head->pid,
				    .order = number,
				    .inlined = head->flags & KY_KYMO_SYMBOL_INLINED};
	if (!head->pid)
		place.module = module_of(given, ky_string(trace, module, head->module_bytes),
					 head->build_id_bytes
						 ? ky_string(trace, build_id, head->build_id_bytes)
						 : 0);
	given->places[number] = place;
	given->names[number] = (struct ky_given_name){
		.name = ky_string(trace, name, head->name_bytes),
		.file = head->file_bytes ? ky_string(trace, file, head->file_bytes) : 0,
		.line = head->line};
	given->count++;
	return true;
}

/* 0; 1 at the end, good or bad; -ENOMEM. */
static int take_record(struct ky_symbols_given *given, struct ky_input *input)
{
	struct ky_kymo_symbol head;
	if (!ky_input_need(input, sizeof(head))) {
		if (input->at != input->end)
			ky_problem(given->trace, "symbols_truncated", KY_DATA_LOSS, input->position,
				   "names end within a record");
		return 1;
	}
	memcpy(&head, input->at, sizeof(head));
	const uint64_t texts = (uint64_t)head.module_bytes + head.build_id_bytes + head.name_bytes +
			       head.file_bytes;
	if (head.bytes % 8 || head.bytes != KY_KYMO_PADDED(sizeof(head) + texts) ||
	    !head.name_bytes || !ky_input_need(input, head.bytes)) {
		ky_problem(given->trace, "symbols_damaged", KY_DATA_LOSS, input->position,
			   "expected a record with a name, got one of %u bytes", head.bytes);
		return 1;
	}
	if (given->count == UINT32_MAX ||
	    !add_record(given, &head, (const char *)input->at + sizeof(head)))
		return -ENOMEM;
	ky_input_skip(input, head.bytes);
	return 0;
}

static int compare(const struct given_place *a, const struct given_place *b)
{
	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

static int by_place(const void *a_, const void *b_)
{
	const struct given_place *a = a_;
	const struct given_place *b = b_;
	const int order = compare(a, b);
	return order ? order : a->order < b->order ? -1 : 1;
}

/* Sort the places, and puts the names where their places are. */
static bool sort(struct ky_symbols_given *given)
{
	if (!given->count)
		return true;
	struct ky_given_name *names = malloc(given->count * sizeof(*names));
	if (!names)
		return false;
	memcpy(names, given->names, given->count * sizeof(*names));
	qsort(given->places, given->count, sizeof(*given->places), by_place);
	for (uint32_t i = 0; i < given->count; i++)
		given->names[i] = names[given->places[i].order];
	free(names);
	return true;
}

int ky_symbols_given_open(struct ky_symbols_given **out, struct ky_trace *trace,
			  struct ky_input *input)
{
	struct ky_symbols_given *given = calloc(1, sizeof(*given));
	int error = given ? 0 : -ENOMEM;
	*out = given;
	if (!given)
		return error;
	given->trace = trace;
	while (!error)
		error = take_record(given, input);
	if (error == 1)
		error = input->error == -EBADMSG ? 0 : input->error;
	const uint32_t kernel = ky_strings_find(&trace->strings, KERNEL_NAME, strlen(KERNEL_NAME));
	const uint32_t *number =
		kernel ? ky_u64_map_find(&given->module_of, (uint64_t)kernel << 32) : NULL;
	given->kernel = number ? *number : KY_NONE;
	if (!error && !sort(given))
		error = -ENOMEM;
	if (error)
		ky_symbols_given_close(out);
	return error;
}

/* ---- asking ---- */

static const struct ky_given_name *find(const struct ky_symbols_given *given,
					const struct given_place *wanted, uint32_t *count)
{
	const uint32_t low =
		KY_ARRAY_SEARCH(0, given->count, at, compare(&given->places[at], wanted) < 0);
	*count = 0;
	while (low + *count < given->count && *count < INLINED_MAX &&
	       compare(&given->places[low + *count], wanted) == 0)
		if (!given->places[low + (*count)++].inlined)
			break;
	return *count ? &given->names[low] : NULL;
}

const struct ky_given_name *ky_symbols_given_in_file(const struct ky_symbols_given *given,
						     uint32_t path, uint32_t build_id,
						     uint64_t offset, uint32_t *count)
{
	const uint32_t *number =
		ky_u64_map_find(&given->module_of, (uint64_t)path << 32 | build_id);
	return number ? find(given, &(struct given_place){.address = offset, .module = *number},
			     count)
		      : NULL;
}

bool ky_symbols_given_kernel(const struct ky_symbols_given *given)
{
	return given->kernel != KY_NONE;
}

const struct ky_given_name *ky_symbols_given_in_kernel(const struct ky_symbols_given *given,
						       uint64_t address, uint32_t *count)
{
	if (given->kernel == KY_NONE)
		return NULL;
	return find(given, &(struct given_place){.address = address, .module = given->kernel},
		    count);
}

const struct ky_given_name *ky_symbols_given_in_process(const struct ky_symbols_given *given,
							int32_t pid, uint64_t address,
							uint32_t *count)
{
	if (!pid)
		return NULL;
	return find(given, &(struct given_place){.address = address, .module = KY_NONE, .pid = pid},
		    count);
}
