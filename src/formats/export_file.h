/* SPDX-License-Identifier: MIT */
/*
 * export_file.h: the file that an export goes to: compressed, if its name asks for it, and whole or not at all (see
 * ky_file_replacer in base/file.h).
 */
#ifndef KY_FORMATS_EXPORT_FILE_H
#define KY_FORMATS_EXPORT_FILE_H

#include "formats/out.h"

enum ky_export_packing { KY_EXPORT_PLAIN, KY_EXPORT_GZIP, KY_EXPORT_ZSTD };

struct ky_export_file;

/* Open the file; *out takes its bytes. 0 or -errno, and in *what the verb that failed. */
int ky_export_file_open(struct ky_export_file **file, const char *path,
			enum ky_export_packing packing, struct ky_out **out, const char **what);
/* Write what is left, give the file its name and close it, in any case. 0 or -errno. */
int ky_export_file_commit(struct ky_export_file **file, const char **what);
/* Give the file up: nothing remains. NULL is allowed. */
void ky_export_file_abandon(struct ky_export_file **file);

#endif
