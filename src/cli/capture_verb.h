/* SPDX-License-Identifier: MIT */
/*
 * capture_verb.h: run, attach and record, once their options are read: where to, the capture, its
 * conversion, the summary.
 *
 * .kymo is written as it comes. Any other format is made of it at the end, when all is known: until
 * then the capture is in OUTPUT.capture.kymo, which a kymo that was killed leaves behind, and which
 * any verb reads.
 */
#ifndef KY_CLI_CAPTURE_VERB_H
#define KY_CLI_CAPTURE_VERB_H

#include "cli/capture_options.h"

/*
 * Runs it and says what became of it. An enum ky_exit; of a program that was run its exit code, 128
 * + N when signal N ended it, 127 or 126 when it could not be started.
 */
int ky_capture_verb(struct ky_capture_command *command);

#endif
