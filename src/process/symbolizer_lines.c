/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_lines.c: the line of an address and the functions that are inlined there, from DWARF.
 *
 *   unit ── function f ──┬─ block ── inlined g ── inlined h     at an address in h:
 *                        └─ inlined k                           h at the line of the address,
 *                                                               g where h is called, f where g is called
 */
#include "process/symbolizer_parts.h"

#include "base/array.h"
#include "base/clock.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_MAX (1u << 22)
#define INLINED_MAX 64u
#define NESTING_MAX 64u

static bool is_late(struct ky_symbolizer *elf)
{
	if (!elf->late)
		elf->late = (uint64_t)ky_clock_monotonic() > elf->deadline_ns;
	return elf->late;
}

/* ---- ranges of addresses ---- */

static bool add_range(struct ky_symbolizer_ranges *ranges, uint64_t low, uint64_t high,
		      uint64_t what)
{
	if (low >= high)
		return true;
	return ranges->count < RANGES_MAX &&
	       KY_ARRAY_ADD(ranges->items, ranges->count, ranges->room,
			    (struct ky_symbolizer_range){low, high, what});
}

KY_ORDER(by_low, struct ky_symbolizer_range,
	 KY_COMPARE_THEN(a->low, b->low, KY_COMPARE(b->high, a->high)))

static void sort_ranges(struct ky_symbolizer_ranges *ranges)
{
	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), by_low);
}

static const struct ky_symbolizer_range *find_range(const struct ky_symbolizer_ranges *ranges,
						    uint64_t address)
{
	const size_t low = KY_ARRAY_SEARCH(0, ranges->count, at, ranges->items[at].low <= address);
	/* Ranges seldom nest: a few steps back find the one around. */
	for (size_t i = 0; i < 16 && low > i; i++) {
		const struct ky_symbolizer_range *range = &ranges->items[low - 1 - i];
		if (address < range->high)
			return range;
	}
	return NULL;
}

static bool add_ranges(struct ky_symbolizer_ranges *ranges, Dwarf_Die *die, uint64_t what)
{
	Dwarf_Addr base, low, high;
	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;)
		if (!add_range(ranges, low, high, what))
			return false;
	return true;
}

/* ---- units ---- */

/* Units without addresses of their own (types) are passed over. */
static void make_units(struct ky_symbolizer *elf)
{
	Dwarf_Addr bias = 0;
	Dwarf *dwarf = dwfl_module_getdwarf(elf->module, &bias);
	Dwarf_CU *cu = NULL;
	elf->units_made = true;
	for (;;) {
		if (!dwarf || is_late(elf) ||
		    !KY_ARRAY_GROW(elf->units, elf->units_room, elf->units_count + 1))
			break;
		struct ky_symbolizer_unit *unit = &elf->units[elf->units_count];
		Dwarf_Die inner;
		*unit = (struct ky_symbolizer_unit){0};
		if (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit->die, &inner) != 0)
			break;
		unit->inner = dwarf_tag(&inner) == DW_TAG_invalid ? unit->die : inner;
		const size_t before = elf->unit_ranges.count;
		if (!add_ranges(&elf->unit_ranges, &unit->die, elf->units_count))
			break;
		elf->units_count += elf->unit_ranges.count != before;
	}
	sort_ranges(&elf->unit_ranges);
}

/* Functions are children of the unit, of namespaces and of types. */
static bool add_functions(struct ky_symbolizer *elf, struct ky_symbolizer_unit *unit,
			  Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	if (depth > NESTING_MAX || dwarf_child(parent, &die) != 0)
		return true;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			if (!add_ranges(&unit->functions, &die, dwarf_dieoffset(&die)))
				return false;
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			if (!add_functions(elf, unit, &die, depth + 1))
				return false;
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0 && !is_late(elf));
	return true;
}

static void index_unit(struct ky_symbolizer *elf, struct ky_symbolizer_unit *unit)
{
	unit->indexed = true;
	add_functions(elf, unit, &unit->inner, 0);
	sort_ranges(&unit->functions);
}

/* ---- what is inlined ---- */

/* The functions around an address: the outermost first. */
struct nest {
	Dwarf_Die dies[INLINED_MAX];
	uint32_t count;
};

static void descend(Dwarf_Die *parent, uint64_t address, struct nest *nest, unsigned depth)
{
	Dwarf_Die die;
	if (depth > NESTING_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		const int tag = dwarf_tag(&die);
		if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
		    dwarf_haspc(&die, address) <= 0)
			continue;
		if (tag == DW_TAG_inlined_subroutine && nest->count < INLINED_MAX)
			nest->dies[nest->count++] = die;
		descend(&die, address, nest, depth + 1);
		return;
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* Return the linker's name, which has namespaces and types, or else the plain one. The caller frees it. */
static char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *linked = NULL;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		linked = dwarf_formstring(&attribute);
	char *readable = linked ? ky_demangle(linked) : NULL;
	if (readable)
		return readable;
	const char *plain = dwarf_diename(die);
	return plain ? strdup(plain) : linked ? strdup(linked) : NULL;
}

/* Return the file of the unit that an attribute means; NULL: none. */
static const char *file_of(Dwarf_Die *unit, Dwarf_Attribute *attribute)
{
	Dwarf_Word number;
	Dwarf_Files *files;
	size_t count;
	if (dwarf_formudata(attribute, &number) != 0 ||
	    dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count)
		return NULL;
	return dwarf_filesrc(files, (size_t)number, NULL, NULL);
}

/* Find where an inlined function is called. */
static void call_of(Dwarf_Die *unit, Dwarf_Die *die, const char **file, uint32_t *line)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	*file = file_of(unit, dwarf_attr(die, DW_AT_call_file, &attribute));
	*line = 0;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number) == 0)
		*line = (uint32_t)number;
}

static void line_of(Dwarf_Die *unit, uint64_t address, const char **file, uint32_t *line)
{
	Dwarf_Line *found = dwarf_getsrc_die(unit, address);
	int number = 0;
	*file = found ? dwarf_linesrc(found, NULL, NULL) : NULL;
	*line = found && dwarf_lineno(found, &number) == 0 && number > 0 ? (uint32_t)number : 0;
}

/*
 * Finds where a function is written: the DIE of an inlined function, or of one of a type, refers to another. Not
 * by dwarf_decl_file(), which does not accept clang's first file.
 */
static void declaration_of(Dwarf_Die *unit, Dwarf_Die *die, struct ky_symbolizer_function *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Files *files;
	size_t count;
	int line;
	if (dwarf_decl_line(die, &line) != 0 || line <= 0 ||
	    dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_file, &attribute), &number) != 0 ||
	    dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count)
		return;
	function->declared_line = (uint32_t)line;
	function->declared_file = dwarf_filesrc(files, (size_t)number, NULL, NULL);
}

/* Report the innermost first: each is at the line where the one inside it is called. */
static uint32_t report_nest(struct ky_symbolizer_unit *unit, const struct nest *nest,
			    uint64_t address, const char *outermost, ky_symbolizer_fn function,
			    void *context)
{
	uint32_t count = 0;
	const char *file;
	uint32_t line;
	line_of(&unit->die, address, &file, &line);
	for (uint32_t i = nest->count; i-- > 0;) {
		Dwarf_Die die = nest->dies[i];
		const bool inlined = i > 0;
		char *own = inlined || !outermost ? name_of(&die) : NULL;
		const char *name = !inlined && outermost ? outermost : own;
		if (name) {
			struct ky_symbolizer_function there = {
				.name = name, .file = file, .line = line, .inlined = inlined};
			declaration_of(&unit->die, &die, &there);
			function(context, &there);
			count++;
		}
		if (inlined)
			call_of(&unit->die, &die, &file, &line);
		free(own);
	}
	return count;
}

uint32_t ky_symbolizer_lines(struct ky_symbolizer *elf, uint64_t address, const char *name,
			     ky_symbolizer_fn function, void *context)
{
	if (is_late(elf))
		return 0;
	if (!elf->units_made)
		make_units(elf);
	Dwarf_Addr dwarf_bias = 0;
	if (!dwfl_module_getdwarf(elf->module, &dwarf_bias))
		return 0;
	/* A separate debug file may have been moved on its own. */
	const uint64_t at = address + elf->bias - dwarf_bias;
	const struct ky_symbolizer_range *range = find_range(&elf->unit_ranges, at);
	if (!range)
		return 0;
	struct ky_symbolizer_unit *unit = &elf->units[range->what];
	if (!unit->indexed)
		index_unit(elf, unit);
	struct nest nest = {.count = 0};
	range = find_range(&unit->functions, at);
	if (range && dwarf_offdie(dwarf_cu_getdwarf(unit->inner.cu), range->what, &nest.dies[0])) {
		nest.count = 1;
		descend(&nest.dies[0], at, &nest, 0);
		return report_nest(unit, &nest, at, name, function, context);
	}
	if (!name)
		return 0;
	struct ky_symbolizer_function only = {.name = name};
	line_of(&unit->die, at, &only.file, &only.line);
	function(context, &only);
	return 1;
}

void ky_symbolizer_lines_free(struct ky_symbolizer *elf)
{
	for (uint32_t i = 0; i < elf->units_count; i++)
		KY_ARRAY_FREE(elf->units[i].functions.items, elf->units[i].functions.room);
	KY_ARRAY_FREE(elf->units, elf->units_room);
	KY_ARRAY_FREE(elf->unit_ranges.items, elf->unit_ranges.room);
	elf->units_count = 0;
	elf->unit_ranges.count = 0;
}
