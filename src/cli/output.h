/* SPDX-License-Identifier: MIT */
/*
 * output.h: what the verbs that write traces share: writing with a progress line and a word on what the format
 * could not carry, names of default outputs, which are kept as .old when they would be overwritten.
 */
#ifndef KY_CLI_OUTPUT_H
#define KY_CLI_OUTPUT_H

#include "base/json_out.h"
#include "cli/verb.h"
#include "formats/export.h"

/* Writes; says errors and, unless quiet, what was left out. An enum ky_exit. */
int ky_output_write(const struct ky_trace *trace, const struct ky_export_selection *selection,
		    const char *path, const char *format, bool quiet, struct ky_export_left *left);
/*
 * The same for an output that nobody named: what had its name is PATH.old then. When writing fails, it still has
 * its name, and an older PATH.old stays too.
 */
int ky_output_write_default(const struct ky_trace *trace,
			    const struct ky_export_selection *selection, const char *path,
			    const char *format, bool quiet, struct ky_export_left *left);
/*
 * Writes what write() puts out, with a progress line if that reports progress; reports errors. default_name: nobody named the
 * output, as above. An enum ky_exit.
 */
int ky_output_write_by(const char *path, const char *format, bool default_name, ky_export_fn write,
		       void *context);
/* PATH with .middle before its suffixes: trace.json.gz becomes trace.middle.json.gz. NULL without memory. */
char *ky_output_name(const char *path, const char *middle, const char *suffix);
/* Whether a file of that format (trace->format) can be written; its suffix, or NULL. */
const char *ky_output_suffix(const char *format);
/* Return the formats that can be written, for options. */
const struct ky_choice *ky_output_formats(void);
/* Report that there is no such output format, or that the file's name has no known suffix. Return KY_EXIT_USAGE. */
int ky_output_unknown(const char *path, const char *format);
/* Write what was left out as the member "left_out" of an object. */
void ky_output_json_left(struct ky_json_out *json, const struct ky_export_left *left);

#endif
