/* SPDX-License-Identifier: MIT */
/* serve_request.c: see serve_request.h. */
#include "server/serve_request.h"

#include <stdlib.h>
#include <string.h>

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decode in place. Return false for a % without two digits, or a NUL, which would end the text. */
static bool decode(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++) {
		char c = *from == '+' ? ' ' : *from;
		if (c == '%') {
			const int high = digit_of(from[1]);
			const int low = high < 0 ? -1 : digit_of(from[2]);
			if (low < 0 || (high == 0 && low == 0))
				return false;
			c = (char)(high * 16 + low);
			from += 2;
		}
		*to++ = c;
	}
	*to = '\0';
	return true;
}

/* A parameter without '=' has an empty value; "&&" has none between. */
static int take_parameter(struct ky_serve_request *request, char *text, const char **why)
{
	struct ky_api_request *const api = &request->api;
	char *const equals = strchr(text, '=');
	if (!*text)
		return 0;
	if (api->parameters_count == KY_SERVE_REQUEST_PARAMETERS_MAX) {
		*why = "Too many parameters.";
		return 400;
	}
	if (equals)
		*equals = '\0';
	char *const value = equals ? equals + 1 : text + strlen(text);
	if (!decode(value) || !decode(text)) {
		*why = "A % in a parameter is not followed by two hexadecimal digits.";
		return 400;
	}
	request->parameters[api->parameters_count++] = (struct ky_api_parameter){text, value};
	return 0;
}

static int take_parameters(struct ky_serve_request *request, char *query, const char **why)
{
	int status = 0;
	while (query && !status) {
		char *const next = strchr(query, '&');
		if (next)
			*next = '\0';
		status = take_parameter(request, query, why);
		query = next ? next + 1 : NULL;
	}
	return status;
}

static int check_body(const char *body, size_t bytes, const char **why)
{
	if (body && bytes > KY_SERVE_REQUEST_BODY_MAX) {
		*why = "The body is longer than 1 MiB: send less at once.";
		return 413;
	}
	if (body && memchr(body, 0, bytes)) {
		*why = "The body has a zero byte: send text.";
		return 400;
	}
	return 0;
}

int ky_serve_request_open(struct ky_serve_request *request, const char *target, const char *body,
			  size_t body_bytes, const char **why)
{
	*request = (struct ky_serve_request){.text = strdup(target + (*target == '/'))};
	*why = "Out of memory: try again.";
	if (!request->text)
		return 503;
	char *const query = strchr(request->text, '?');
	if (query)
		*query = '\0';
	request->api = (struct ky_api_request){.path = request->text,
					       .parameters = request->parameters,
					       .body = body,
					       .body_bytes = body ? body_bytes : 0};
	int status = check_body(body, body_bytes, why);
	if (!status)
		status = take_parameters(request, query ? query + 1 : NULL, why);
	if (status)
		ky_serve_request_close(request);
	return status;
}

void ky_serve_request_close(struct ky_serve_request *request)
{
	free(request->text);
	*request = (struct ky_serve_request){0};
}

const char *ky_serve_request_parameter(const struct ky_serve_request *request, const char *key)
{
	for (uint32_t i = 0; i < request->api.parameters_count; i++)
		if (strcmp(request->parameters[i].key, key) == 0)
			return request->parameters[i].value;
	return NULL;
}
