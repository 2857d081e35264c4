/* SPDX-License-Identifier: MIT */
/*
 * symbol_list.h: functions that a user names: the list of all of a program, sorted, for symbol:? and for messages; and
 * whether a function is the one that was named.
 *
 * A function has up to three names: the linker's, the readable one ("net::recv(int)"), and that without the arguments
 * ("net::recv"). Copies that the compiler made of a function for some of its callers (".constprop.0", ".isra.0") have its
 * name too.
 */
#ifndef KY_CAPTURE_SYMBOL_LIST_H
#define KY_CAPTURE_SYMBOL_LIST_H

#include "base/fail.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_symbol_list;
struct ky_symbol_entry {
	const char *name;   /* demangled */
	const char *linked; /* as the file has it */
	const char *module; /* the file */
	uint64_t offset;    /* in the file */
	uint64_t bytes;
};
/*
 * List the functions of a process's files, or of a program and the libraries that it will load.
 * Return 0, or -errno with a message.
 */
int ky_symbol_list_open_pid(struct ky_symbol_list **list, pid_t pid,
			    char message[KY_MESSAGE_BYTES]);
int ky_symbol_list_open_program(struct ky_symbol_list **list, const char *path,
				char message[KY_MESSAGE_BYTES]);
uint32_t ky_symbol_list_count(const struct ky_symbol_list *list);
const struct ky_symbol_entry *ky_symbol_list_at(const struct ky_symbol_list *list, uint32_t index);
void ky_symbol_list_close(struct ky_symbol_list **list);

/* ---- matching ---- */

/* Report whether the function has the wanted name. readable is NULL when it equals the linker's. */
bool ky_symbol_match(const char *wanted, const char *linked, const char *readable);

#endif
