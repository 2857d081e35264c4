/* SPDX-License-Identifier: MIT */
/*
 * asker.c: exports a trace to HTML, then answers requests as the server would, for the test that compares the two.
 *
 *	asker FILE OUT.html [FROM TO]
 *
 * The page around the data is minimal; FROM and TO are ns of the view's time. Each line of standard input is a request
 * ("api/event?kind=slices&id=7"); the response is a line with status and size, then the bytes.
 */
#include "formats/load.h"
#include "server/api.h"
#include "server/html_export.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARAMETERS_MAX 8u

static const char page[] = "<!doctype html><title>kymo</title><body><!-- kymo-data --></body>";

static int digit_of(char character)
{
	return isdigit((unsigned char)character) ? character - '0'
						 : tolower((unsigned char)character) - 'a' + 10;
}

/* Decode %41 to A, in place. */
static void decode(char *text)
{
	char *to = text;
	for (; *text; text++) {
		if (*text == '%' && isxdigit((unsigned char)text[1]) &&
		    isxdigit((unsigned char)text[2])) {
			*to++ = (char)(digit_of(text[1]) << 4 | digit_of(text[2]));
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static void parse(char *line, struct ky_api_request *ask, struct ky_api_parameter *parameters)
{
	char *rest = line + strcspn(line, "?");
	*ask = (struct ky_api_request){.path = line, .parameters = parameters};
	if (*rest)
		*rest++ = '\0';
	while (*rest && ask->parameters_count < PARAMETERS_MAX) {
		char *const pair = strsep(&rest, "&");
		char *value = pair + strcspn(pair, "=");
		if (*value)
			*value++ = '\0';
		decode(value);
		parameters[ask->parameters_count++] =
			(struct ky_api_parameter){.key = pair, .value = value};
		if (!rest)
			break;
	}
}

static void answer_all(struct ky_api *answers)
{
	char *line = NULL;
	size_t room = 0;
	while (getline(&line, &room, stdin) > 0) {
		struct ky_api_parameter parameters[PARAMETERS_MAX];
		struct ky_api_request ask;
		struct ky_api_response answer = {0};
		line[strcspn(line, "\n")] = '\0';
		parse(line, &ask, parameters);
		ky_api_respond(answers, &ask, &answer);
		printf("%d %zu\n", answer.status, answer.body.bytes);
		fwrite(answer.body.data, 1, answer.body.bytes, stdout);
		fflush(stdout);
		ky_buffer_free(&answer.body);
	}
	free(line);
}

static int export(const struct ky_view *view, const char *path, char **range)
{
	char message[256];
	struct ky_html_export what = {view, KY_TIME_NONE, KY_TIME_NONE};
	if (range[0] && range[1]) {
		what.from_ns = view->base_ns + strtoll(range[0], NULL, 10);
		what.to_ns = view->base_ns + strtoll(range[1], NULL, 10);
	}
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(path);
		return -1;
	}
	const int error = ky_html_export_page(fd, &what, page, strlen(page), message);
	if (error)
		fprintf(stderr, "%s\n", message);
	return close(fd) == 0 ? error : -1;
}

int main(int argc, char **argv)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	struct ky_view *view;
	struct ky_api *answers;
	if (argc != 3 && argc != 5)
		return 2;
	if (ky_load(&trace, argv[1], NULL, message) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	const struct ky_view_options options = {
		.name = "a <trace> & more", .generation = 1, .base_ns = KY_TIME_NONE};
	if (ky_view_open(&view, trace, &options) != 0)
		return 1;
	int result = export(view, argv[2], argv + 3);
	if (!result)
		result = ky_api_open(&answers, view);
	if (!result) {
		answer_all(answers);
		ky_api_close(&answers);
	}
	ky_view_close(&view);
	return result != 0;
}
