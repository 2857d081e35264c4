/* SPDX-License-Identifier: MIT */
/*
 * functions_scan.c: see functions_parts.h. Goes once through every instruction of a module, from each known start to
 * the next:
 *
 *   code      f: push  mov  call ...   g: ...  jmp f+3 ...      h: lea [table] ...
 *   touchy       .xxxx                                          one bit for each byte that a jump would overwrite, except
 *                                                               its first: a branch to it makes the function unpatchable
 *
 * Branch targets are: places that branches name; relative tables (switch) at the operand of a lea; addresses in
 * relocations, or in the data of programs that are not relocated. Data between functions may look like branches: that
 * costs a function at most.
 *
 * Control must come to a first byte by a call, or as by one: stubs change the flags, and the memory below the stack
 * pointer, where functions that call no other keep values. Loops that begin there do not come by a call, nor do
 * pieces of functions.
 */
#include "functrace/functions_parts.h"

#include "functrace/instruction.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_ENTRIES_MAX 4096u

struct touchy {
	struct ky_functions_reading *reading;
	uint8_t *bits[KY_FUNCTIONS_SEGMENTS_MAX]; /* of segments that are code */
	uint64_t tables_left; /* entries that may still be looked at: a bound for hostile files */
};

/* ---- bytes to overwrite ---- */

static uint8_t *bits_of(const struct touchy *touchy, uint64_t address, uint64_t *bit)
{
	const struct ky_functions_own *own = touchy->reading->own;
	for (uint32_t i = 0; i < own->segments_count; i++) {
		*bit = address - own->segments[i].address;
		if (touchy->bits[i] && *bit < own->segments[i].bytes)
			return touchy->bits[i];
	}
	return NULL;
}

static void mark_prologue(const struct touchy *touchy, const struct ky_function *function)
{
	for (unsigned i = 1; i < KY_JUMP_BYTES; i++) {
		uint64_t bit;
		uint8_t *bits = bits_of(touchy, function->address + function->at + i, &bit);
		if (bits)
			bits[bit / 8] |= (uint8_t)(1u << bit % 8);
	}
}

static struct ky_function *function_over(const struct ky_functions *functions, uint64_t address)
{
	for (unsigned back = 1; back < KY_JUMP_BYTES + 4; back++) {
		struct ky_function *function = ky_functions_find(functions, address - back);
		if (function && function->how == KY_FUNCTION_PATCH &&
		    address > function->address + function->at &&
		    address < function->address + function->at + KY_JUMP_BYTES)
			return function;
	}
	return NULL;
}

static void leave_alone(struct ky_function *function)
{
	function->how = KY_FUNCTION_NOT;
	function->why = KY_WHY_JUMPED_INTO;
}

/* Mark an address as a branch target. */
static void led_to(const struct touchy *touchy, uint64_t address)
{
	uint64_t bit;
	const uint8_t *bits = bits_of(touchy, address, &bit);
	if (!bits || !(bits[bit / 8] >> bit % 8 & 1))
		return;
	for (struct ky_function *function;
	     (function = function_over(touchy->reading->out, address)) != NULL;)
		leave_alone(function);
}

/* ---- tables ---- */

/*
 * Take the table of a switch. Its end is unknown, and the table of another switch often follows, relative to another
 * place. So only entries that lead into the function itself count.
 */
static void take_relative_table(struct touchy *touchy, uint64_t table,
				const struct ky_function *function)
{
	uint64_t left;
	const uint8_t *data = ky_functions_bytes(touchy->reading->own, table, false, &left);
	uint64_t entries = data ? left / 4 : 0;
	if (entries > TABLE_ENTRIES_MAX)
		entries = TABLE_ENTRIES_MAX;
	for (uint64_t i = 0; i < entries && touchy->tables_left; i++, touchy->tables_left--) {
		int32_t entry;
		uint64_t bit;
		memcpy(&entry, data + 4 * i, sizeof(entry));
		const uint64_t place = table + (uint64_t)(int64_t)entry;
		if (!bits_of(touchy, place, &bit))
			return;
		if (place - function->address < function->bytes)
			led_to(touchy, place);
	}
}

static void take_relocation(void *context, uint64_t where, uint64_t what)
{
	(void)where;
	led_to(context, what);
}

/*
 * Take tables of addresses. Programs for one address have their tables ready, and packed relocations leave the
 * addresses in place. Older linkers put tables into the segment of the code.
 */
static void take_absolute_tables(const struct touchy *touchy)
{
	const struct ky_functions_own *own = touchy->reading->own;
	for (uint32_t i = 0; i < own->segments_count; i++) {
		const struct ky_functions_segment *segment = &own->segments[i];
		for (uint64_t at = -segment->address & 7; at + 8 <= segment->bytes; at += 8) {
			uint64_t word;
			memcpy(&word, segment->data + at, sizeof(word));
			if (word >> 47 == 0 && word)
				led_to(touchy, word);
		}
	}
}

/* ---- every instruction ---- */

struct walk {
	struct touchy *touchy;
	struct ky_functions_looks *looks;
	uint32_t function, fde; /* the next ones */
	bool keeps_below;       /* values below the stack pointer, in this one so far */
};

static bool is_table_address(const struct ky_instruction *it)
{
	return it->map == 0 && it->opcode == 0x8d && it->rip_relative;
}

/*
 * Report whether it may be a piece of a function. Compilers put rarely needed pieces elsewhere, and the name may be
 * the only difference: gcc 8's, BOLT's.
 */
static bool may_be_piece(const struct ky_function *function)
{
	return function->linked[0] == '0' || strstr(function->linked, ".cold.");
}

static bool is_below_stack(const struct ky_instruction *it, const uint8_t *code)
{
	return it->displacement < 0 && it->map < 0x10 && !(it->rex & 1) &&
	       (code[it->modrm_at] & 7) == 4 && code[it->modrm_at + 1] == 0x24 &&
	       !(it->map == 0 && it->opcode == 0x8d);
}

/*
 * Take a jump to a first byte: back from the function itself, or to a piece. Tail calls depend on no flags, and come
 * when nothing is kept below the stack pointer.
 */
static void take_jump(const struct walk *walk, const struct ky_instruction *it, uint64_t address,
		      uint64_t target)
{
	struct ky_functions *out = walk->touchy->reading->out;
	const uint32_t in = walk->looks->in;
	struct ky_function *own = in < out->count ? &out->functions[in] : NULL;
	if (own && address - own->address < own->bytes && target - own->address < own->bytes) {
		if (own->how == KY_FUNCTION_PATCH &&
		    (target == own->address || target == own->address + own->at))
			leave_alone(own);
		return;
	}
	const bool is_tail_call = it->kind == KY_INSTRUCTION_JUMP && !walk->keeps_below;
	struct ky_function *piece = is_tail_call ? NULL : ky_functions_find(out, target);
	if (piece && piece->how == KY_FUNCTION_PATCH && may_be_piece(piece))
		leave_alone(piece);
}

static void look(struct walk *walk, const struct ky_instruction *it, const uint8_t *code,
		 uint64_t address)
{
	const struct ky_functions *out = walk->touchy->reading->out;
	const uint64_t next = address + it->bytes;
	const uint32_t in = walk->looks->in;
	walk->keeps_below |= it->modrm_at && is_below_stack(it, code);
	if (it->kind >= KY_INSTRUCTION_JUMP && it->kind <= KY_INSTRUCTION_LOOP)
		take_jump(walk, it, address, next + (uint64_t)it->branch);
	if (it->kind >= KY_INSTRUCTION_JUMP && it->kind <= KY_INSTRUCTION_CALL)
		led_to(walk->touchy, next + (uint64_t)it->branch);
	else if (is_table_address(it) && in < out->count)
		take_relative_table(walk->touchy, next + (uint64_t)it->displacement,
				    &out->functions[in]);
	ky_return_address_users_at(walk->looks, it, code, address);
}

/* Take the start of a description that is no function: a piece of the function before, or of an unknown one. */
static void leave_function(struct walk *walk, uint64_t address)
{
	const struct ky_functions *out = walk->touchy->reading->out;
	const uint32_t in = walk->looks->in;
	if (in < out->count && address - out->functions[in].address >= out->functions[in].bytes)
		walk->looks->in = UINT32_MAX;
	walk->looks->stack.follows = false;
}

/* Return the start of the next function or description; skip those up to the address. */
static uint64_t next_beginning(struct walk *walk, uint64_t address)
{
	const struct ky_functions_reading *reading = walk->touchy->reading;
	const struct ky_functions *out = reading->out;
	leave_function(walk, address);
	walk->keeps_below = false;
	while (walk->function < out->count && out->functions[walk->function].address <= address) {
		if (out->functions[walk->function].address == address)
			ky_return_address_users_enter(walk->looks, walk->function);
		walk->function++;
	}
	while (walk->fde < reading->fdes_count && reading->fdes[walk->fde].address <= address)
		walk->fde++;
	uint64_t next =
		walk->function < out->count ? out->functions[walk->function].address : UINT64_MAX;
	if (walk->fde < reading->fdes_count && reading->fdes[walk->fde].address < next)
		next = reading->fdes[walk->fde].address;
	return next;
}

static void walk_range(struct walk walk, const struct ky_code_range *range)
{
	uint64_t left;
	const uint8_t *code =
		ky_functions_bytes(walk.touchy->reading->own, range->from, true, &left);
	const uint64_t bytes = range->bytes < left ? range->bytes : left;
	uint64_t next = 0;
	for (uint64_t at = 0; code && at < bytes;) {
		struct ky_instruction it;
		if (range->from + at >= next) {
			at = next > range->from ? next - range->from : at;
			next = next_beginning(&walk, range->from + at);
			if (at >= bytes)
				break;
		}
		if (ky_instruction_read(&it, code + at, bytes - at)) {
			look(&walk, &it, code + at, range->from + at);
			at += it.bytes;
		} else {
			walk.looks->stack.follows = false;
			at++;
		}
	}
}

static void find_prologues(struct touchy *touchy)
{
	struct ky_functions *out = touchy->reading->out;
	for (uint32_t i = 0; i < out->count; i++) {
		struct ky_function *function = &out->functions[i];
		const uint64_t neighbour =
			i + 1 < out->count ? out->functions[i + 1].address : UINT64_MAX;
		if (function->why != KY_WHY_NONE) {
			function->how = KY_FUNCTION_NOT;
			continue;
		}
		if (function->how == KY_FUNCTION_NOT)
			ky_prologue_find(function, out, neighbour);
		if (function->how == KY_FUNCTION_PATCH)
			mark_prologue(touchy, function);
	}
}

static bool open_touchy(struct touchy *touchy, struct ky_functions_reading *reading)
{
	bool opened = true;
	*touchy = (struct touchy){.reading = reading};
	ky_functions_segments_data(reading);
	for (uint32_t i = 0; i < reading->own->segments_count; i++) {
		const struct ky_functions_segment *segment = &reading->own->segments[i];
		touchy->tables_left += 4 * segment->bytes;
		if (!segment->is_code)
			continue;
		touchy->bits[i] = calloc(1, segment->bytes / 8 + 1);
		opened &= touchy->bits[i] != NULL;
	}
	return opened;
}

static void scan(struct touchy *touchy, struct ky_functions_looks *looks)
{
	const struct ky_functions_reading *reading = touchy->reading;
	find_prologues(touchy);
	for (uint32_t i = 0; i < reading->text.count; i++)
		walk_range((struct walk){.touchy = touchy, .looks = looks},
			   &reading->text.items[i]);
	ky_compiler_marks_relocations(reading, take_relocation, touchy);
	GElf_Shdr packed;
	if (reading->head.e_type == ET_EXEC ||
	    ky_program_file_section(reading->elf, 0, ".relr.dyn", &packed))
		take_absolute_tables(touchy);
	ky_return_address_users_take(looks);
}

void ky_functions_scan(struct ky_functions_reading *reading)
{
	struct touchy touchy;
	struct ky_functions_looks looks = {0};
	if (open_touchy(&touchy, reading) && ky_return_address_users_open(&looks, reading))
		scan(&touchy, &looks);
	else
		reading->without_memory = true;
	ky_return_address_users_close(&looks);
	for (uint32_t i = 0; i < KY_FUNCTIONS_SEGMENTS_MAX; i++)
		free(touchy.bits[i]);
}
