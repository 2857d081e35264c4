/* SPDX-License-Identifier: MIT */
/*
 * convert_stream.h: converts .kymo files event by event, in memory that does not grow with the trace. Their events
 * are in the order of time, and the recorder's own writers take them: the output is what the session would have
 * written in that format. Other inputs must be sorted first, in the model.
 */
#ifndef KY_CLI_CONVERT_STREAM_H
#define KY_CLI_CONVERT_STREAM_H

#include <stdbool.h>

/*
 * Convert and return true, with an enum ky_exit in *code. Return false, with nothing done, unless the input is a
 * complete .kymo file of one process and the output is another format.
 */
bool ky_convert_stream(const char *input, const char *output, const char *format, int *code);

#endif
