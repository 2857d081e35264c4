/* SPDX-License-Identifier: MIT */
/*
 * drum_intern.h: a string in the heap of another process's drum, by the protocol of heap.c. The
 * difference is trust: every offset found there is checked against the heap, and every loop ends.
 */
#ifndef KY_CAPTURE_DRUM_INTERN_H
#define KY_CAPTURE_DRUM_INTERN_H

#include "capture/drum_map.h"

/*
 * The record of the string, found or added, in *record. 0; -ENOSPC, -EBADMSG when the heap is not
 * one.
 */
int ky_drum_intern(const struct ky_drum_map *map, const struct ky_drum_view *view,
		   const char *string, size_t bytes, uint32_t *record);

#endif
