/* SPDX-License-Identifier: MIT */
/*
 * stream_catcher.h: replaces the bundle: keeps what the kernel's trace writes in memory, and reads it back by the
 * reader of ftrace streams alone.
 */
#ifndef KY_TESTS_STREAM_CATCHER_H
#define KY_TESTS_STREAM_CATCHER_H

#include "capture/bundle.h"
#include "formats/load.h"

/* Empties it. refuse: the next stream is not made, as by a file that failed. */
void catcher_reset(bool refuse);
/* A new file of a rotation: what was caught is forgotten, and the stream restates itself under another number. */
void catcher_rotate(void);
/* Pages, and files of a path (NULL: all), among the records. */
uint32_t catcher_pages(void);
uint32_t catcher_files(const char *path);
/* What was caught, as a finished trace. */
struct ky_trace *catcher_load(void);

#endif
