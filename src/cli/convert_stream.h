/* SPDX-License-Identifier: MIT */
/*
 * convert_stream.h: .kymo files into other formats event by event, in memory that does not grow with the trace. Their
 * events come in the order of time, and the recorder's own writers take them: the output is what the
 * session would have written in that format. Other inputs have to be put into order first, in the model.
 */
#ifndef KY_CLI_CONVERT_STREAM_H
#define KY_CLI_CONVERT_STREAM_H

#include <stdbool.h>

/*
 * Converts and returns true, with an enum ky_exit in *code; false, with nothing done, when it is not for this: the
 * input is no whole .kymo file of one process as the recorder leaves it, or the output is one too.
 */
bool ky_convert_stream(const char *input, const char *output, const char *format, int *code);

#endif
