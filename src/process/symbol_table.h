/* SPDX-License-Identifier: MIT */
/* symbol_table.h: functions by address: filled, sorted once, then searched. Names are copied. */
#ifndef KY_PROCESS_SYMBOL_TABLE_H
#define KY_PROCESS_SYMBOL_TABLE_H

#include "base/strings.h"

struct ky_symbol {
	uint64_t start;
	uint64_t end;     /* start: up to the next one */
	uint64_t name_at; /* in names */
	uint32_t string;  /* 0 until it is asked for */
	uint32_t rank;    /* of several names for the same code the highest is shown */
};

struct ky_symbol_table {
	struct ky_symbol *symbols;
	uint32_t count;
	uint64_t room;
	char *names;
	uint32_t names_bytes;
	uint64_t names_room;
};

void ky_symbol_table_free(struct ky_symbol_table *table);
/* False without memory. */
bool ky_symbol_table_add(struct ky_symbol_table *table, uint64_t start, uint64_t bytes,
			 uint32_t rank, const char *name, size_t name_bytes);
/* Return how well a name of some binding (STB_) is known: those seen outside the file, then those with fewer underscores. */
uint32_t ky_symbol_table_rank(unsigned binding, const char *name);
/* Sort the table, after the last add. */
void ky_symbol_table_sort(struct ky_symbol_table *table);
/* Return the function's readable name as a string, 0 when there is none at the address. */
uint32_t ky_symbol_table_find(struct ky_symbol_table *table, struct ky_strings *strings,
			      uint64_t address);

/* ---- names of C++ and Rust (both its manglings) as people wrote them, by libiberty ---- */

/*
 * Return the readable name, which the caller frees; NULL when no compiler made the name, or it is too long. A
 * suffix of the linker (".constprop.0", "@plt") is kept.
 */
char *ky_demangle(const char *name);

#endif
