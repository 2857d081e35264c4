/* SPDX-License-Identifier: MIT */
/*
 * memory.h: how often an allocation failed. Arrays and maps count it here, and so does code that gets no memory from malloc
 * and goes on without. A caller of many others, as the loader of traces, compares the numbers before and after: what was
 * made in between is not whole.
 */
#ifndef KY_BASE_MEMORY_H
#define KY_BASE_MEMORY_H

/* Count a failure. Any thread may do so. */
void ky_memory_missing(void);
/* Return how often that was. */
unsigned ky_memory_failures(void);

#endif
