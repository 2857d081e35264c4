/* SPDX-License-Identifier: MIT */
/* load_parts.h: what a load says about an input that no reader knows. */
#ifndef KY_FORMATS_LOAD_PARTS_H
#define KY_FORMATS_LOAD_PARTS_H

#include "formats/reader.h"

/* members: of the archive whose files were tried, 0 when it is none. */
void ky_load_say_unknown(const struct ky_probe *probe, uint32_t members,
			 char message[KY_LOAD_MESSAGE_BYTES]);
/* Which files in it could be loaded. */
void ky_load_say_directory(const char *path, char message[KY_LOAD_MESSAGE_BYTES]);

#endif
