/* SPDX-License-Identifier: MIT */
/*
 * fuzz_request.c: any bytes as a request to the viewer's server, from headers to response, over a small trace and without a
 * socket. The first line is the method, the second Host, the third Origin, the fourth the target; the rest is the body. The
 * token is fixed. Every request gets a response, JSON or tiles, except those with a foreign Host, Origin or token.
 */
#include "model/intake.h"
#include "server/api.h"
#include "server/serve_http.h"
#include "server/serve_site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define TOKEN "0123456789abcdef0123456789abcdef"
#define ANSWER_BYTES_MAX (64u << 20)
/* SQL has a target of its own (fuzz_sql), which stops endless queries; here it is short. */
#define SQL_BYTES_MAX 24

static void put_slice(struct ky_trace *trace, unsigned i, uint32_t track)
{
	char name[16];
	snprintf(name, sizeof(name), i % 3 ? "name %u" : "Job#%u", i % 11);
	ky_args_begin(trace);
	if (i % 4 == 0)
		ky_arg_int(trace, ky_string_z(trace, "debug.i"), i);
	const uint32_t args = ky_args_end(trace);
	ky_put_complete(trace, 1000 + i * 7, i % 5 * 10, track,
			i % 2 ? ky_string_z(trace, "c1") : 0, ky_string_z(trace, name), args);
	if (i % 6 == 0)
		ky_put_flow(trace, 1000 + i * 7, track, KY_FLOW_ANY, KY_BIND_LAST, i % 5);
	ky_put_counter(trace, 1000 + i * 7,
		       ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, ky_process(trace, 10),
					ky_string_z(trace, "heap")),
		       i / 4.0);
}

static struct ky_api *make_answers(void)
{
	const struct ky_view_options options = {
		.name = "fuzzed", .generation = 1, .base_ns = KY_TIME_NONE};
	struct ky_trace *trace;
	struct ky_view *view;
	struct ky_api *answers;
	if (ky_trace_open(&trace))
		abort();
	for (unsigned i = 0; i < 120; i++)
		put_slice(trace, i, ky_track_of_thread(trace, ky_thread(trace, 10, 10 + i % 4)));
	if (ky_trace_finish(trace, NULL, NULL) || ky_view_open(&view, trace, &options) ||
	    ky_api_open(&answers, view))
		abort();
	return answers;
}

/* Return the next line; the last one is the rest. */
static char *take_line(char **at)
{
	char *const line = *at;
	char *const end = strchr(line, '\n');
	if (end)
		*end = '\0';
	*at = end ? end + 1 : line + strlen(line);
	return line;
}

static void answer(struct ky_api *answers, const struct ky_api_request *ask)
{
	struct ky_api_response got = {0};
	if (strcmp(ask->path, "api/sql") == 0 && ask->body_bytes > SQL_BYTES_MAX)
		return;
	ky_api_respond(answers, ask, &got);
	if (got.status < 200 || got.status > 599 || !got.type || got.body.bytes > ANSWER_BYTES_MAX)
		abort();
	ky_buffer_free(&got.body);
}

static void ask(struct ky_api *answers, const struct ky_serve_head *head, const char *behind,
		const char *body, size_t bytes)
{
	struct ky_serve_request request;
	const char *why = NULL;
	const bool posts = strcmp(head->method, "POST") == 0;
	const int status =
		ky_serve_request_open(&request, behind, posts ? body : NULL, bytes, &why);
	if (status && (status < 400 || !why))
		abort();
	if (status)
		return;
	if (strncmp(request.api.path, "api/", 4) == 0)
		answer(answers, &request.api);
	ky_serve_request_close(&request);
}

/* An accepted request has the token and our port. */
static void check(const struct ky_serve_head *head, bool every)
{
	struct ky_serve_site site = {.token = TOKEN, .port = 1234, .every = every};
	const char *behind;
	ky_serve_site_add_name(&site, "127.0.0.1");
	ky_serve_site_add_name(&site, "[::1]");
	if (ky_serve_site_check(&site, head, &behind) == 0 &&
	    (strncmp(head->target + 1, TOKEN, strlen(TOKEN)) != 0 || !strstr(head->host, ":1234")))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct ky_api *answers;
	char *const text = malloc(bytes + 1);
	if (!text)
		abort();
	if (!answers)
		answers = make_answers();
	if (bytes)
		memcpy(text, data, bytes);
	text[bytes] = '\0';
	char *at = text;
	struct ky_serve_head head = {.hosts = 1};
	head.method = take_line(&at);
	head.host = take_line(&at);
	const char *const origin = take_line(&at);
	head.origin = *origin ? origin : NULL;
	head.target = take_line(&at);
	check(&head, false);
	check(&head, true);
	/* Also parse refused requests: nearly every mutation of a token is refused. */
	if (strlen(head.target) > strlen(TOKEN))
		ask(answers, &head, head.target + 1 + strlen(TOKEN), at,
		    (size_t)(text + bytes - at));
	free(text);
	return 0;
}
