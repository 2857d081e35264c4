/* SPDX-License-Identifier: MIT */
/*
 * answer.h: what the page asks, answered from a view: JSON as viewer/src/protocol.ts declares it, and tiles. Knows
 * nothing of HTTP, so that tests and the fuzzer ask it directly. Parameters are hostile.
 */
#ifndef KY_SERVER_ANSWER_H
#define KY_SERVER_ANSWER_H

#include "server/view.h"

struct ky_ask_parameter {
	const char *key, *value; /* decoded, zero-ended */
};

struct ky_ask {
	const char *path; /* behind the token: "api/trace" */
	const struct ky_ask_parameter *parameters;
	uint32_t parameters_count;
	const char *body; /* of a POST, zero-ended; NULL: a GET */
	size_t body_bytes;
};

struct ky_answer {
	int status;       /* of HTTP */
	const char *type; /* static */
	struct ky_buffer body;
};

struct ky_answers; /* what answering keeps: SQL's connection, the last searches */

/* One for each view; closed before it. 0 or -ENOMEM. */
int ky_answers_open(struct ky_answers **answers, struct ky_view *view);
void ky_answers_close(struct ky_answers **answers);

/*
 * Answers; any thread. What is asked wrongly is an answer too: status 400 or 404 and {"error": "..."}, in one
 * sentence with the remedy. Without memory 503.
 */
void ky_answer(struct ky_answers *answers, const struct ky_ask *ask, struct ky_answer *answer);
/* Ends what takes long (SQL, a search), from any thread: for a server that is about to stop. */
void ky_answers_interrupt(struct ky_answers *answers);

#endif
