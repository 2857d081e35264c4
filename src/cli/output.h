/* SPDX-License-Identifier: MIT */
/*
 * output.h: what the verbs that write traces share: writing with a progress line, a report of what the format cannot
 * hold, and default names, whose existing files are kept as .old.
 */
#ifndef KY_CLI_OUTPUT_H
#define KY_CLI_OUTPUT_H

#include "base/json_out.h"
#include "cli/verb.h"
#include "formats/export.h"

/* Write a trace; report errors and, unless quiet, what was left out. Return an enum ky_exit. */
int ky_output_write(const struct ky_trace *trace, const struct ky_export_selection *selection,
		    const char *path, const char *format, bool quiet, struct ky_export_left *left);
/*
 * Write a trace to a default name: an existing file becomes PATH.old. If writing fails, it keeps its name, and an
 * older PATH.old stays, too.
 */
int ky_output_write_default(const struct ky_trace *trace,
			    const struct ky_export_selection *selection, const char *path,
			    const char *format, bool quiet, struct ky_export_left *left);
/* Write what write() produces, with its progress; report errors. default_name: as above. Return an enum ky_exit. */
int ky_output_write_by(const char *path, const char *format, bool default_name, ky_export_fn write,
		       void *context);
/* Return PATH with .middle before its suffixes: trace.json.gz becomes trace.middle.json.gz. NULL without memory. */
char *ky_output_name(const char *path, const char *middle, const char *suffix);
/* Return the suffix of a format (trace->format), or NULL: it cannot be written. */
const char *ky_output_suffix(const char *format);
/* Return the formats that can be written, for options. */
const struct ky_choice *ky_output_formats(void);
/* Report that there is no such output format, or that the file's name has no known suffix. Return KY_EXIT_USAGE. */
int ky_output_unknown(const char *path, const char *format);
/* Write what was left out as the member "left_out" of an object. */
void ky_output_json_left(struct ky_json_out *json, const struct ky_export_left *left);

#endif
