/* SPDX-License-Identifier: MIT */
/* model_text.h: a trace as lines of text that are equal for equal traces, whatever their numbers and formats. */
#ifndef KY_TESTS_EXPORT_MODEL_TEXT_H
#define KY_TESTS_EXPORT_MODEL_TEXT_H

#include "model/trace.h"

/* Slices with their times, names, depth, thread and arguments, sorted. To be freed. */
char *model_slices(const struct ky_trace *trace);
char *model_flows(const struct ky_trace *trace);
char *model_counters(const struct ky_trace *trace);

#endif
