/* SPDX-License-Identifier: MIT */
/* asking.c: see asking.h. */
#include "asking.h"
#include "formats/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PARAMETERS_MAX 16

void asking_open_trace(struct asking *asking, struct ky_trace *trace)
{
	const struct ky_view_options options = {
		.name = "test", .generation = 7, .base_ns = KY_TIME_NONE};
	assert_int_equal(ky_view_open(&asking->view, trace, &options), 0);
	assert_int_equal(ky_api_open(&asking->answers, asking->view), 0);
}

void asking_open(struct asking *asking, const char *json)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_trace *trace = NULL;
	if (ky_load_memory(&trace, json, strlen(json), NULL, message) != 0)
		fail_msg("%s", message);
	asking_open_trace(asking, trace);
}

void asking_close(struct asking *asking)
{
	ky_api_close(&asking->answers);
	ky_view_close(&asking->view);
}

static uint32_t split(char *query, struct ky_api_parameter *parameters)
{
	uint32_t count = 0;
	char *next = query;
	while (next && *next) {
		char *const key = strsep(&next, "&");
		char *const equals = strchr(key, '=');
		assert_non_null(equals);
		assert_true(count < PARAMETERS_MAX);
		*equals = '\0';
		parameters[count++] = (struct ky_api_parameter){key, equals + 1};
	}
	return count;
}

void ask(struct asking *asking, const char *path, const char *query, const char *body,
	 struct reply *reply)
{
	struct ky_api_parameter parameters[PARAMETERS_MAX];
	struct ky_api_response answer;
	char *const text = strdup(query);
	const struct ky_api_request question = {
		.path = path,
		.parameters = parameters,
		.parameters_count = split(text, parameters),
		.body = body,
		.body_bytes = body ? strlen(body) : 0,
	};
	ky_api_respond(asking->answers, &question, &answer);
	free(text);
	*reply = (struct reply){.status = answer.status, .type = answer.type, .body = answer.body};
	assert_false(reply->body.failed);
	if (strcmp(reply->type, "application/json") != 0)
		return;
	ky_buffer_add(&reply->body, "", 1);
	const uint8_t *const json = (const uint8_t *)reply->body.data;
	assert_int_equal(ky_json_tree_parse(&reply->tree, json, json + reply->body.bytes - 1), 0);
}

void reply_free(struct reply *reply)
{
	ky_json_tree_free(&reply->tree);
	ky_buffer_free(&reply->body);
}

/* ---- values by path ---- */

static uint32_t element(const struct ky_json_tree *tree, uint32_t array, uint32_t index)
{
	uint32_t node = ky_json_tree_first(array);
	for (; node < ky_json_tree_end(tree, array) && index; index--)
		node = ky_json_tree_next(tree, node);
	return node < ky_json_tree_end(tree, array) ? node : KY_JSON_NO_NODE;
}

uint32_t reply_node(const struct reply *reply, const char *place)
{
	char text[128];
	uint32_t node = 0;
	snprintf(text, sizeof(text), "%s", place);
	for (char *next = text, *part; next && *next;) {
		part = strsep(&next, ".");
		node = ky_json_tree_type(&reply->tree, node) == KY_JSON_ARRAY
			       ? element(&reply->tree, node, (uint32_t)strtoul(part, NULL, 10))
			       : ky_json_tree_get(&reply->tree, node, part);
		if (node == KY_JSON_NO_NODE)
			fail_msg("no %s in %s", place, reply->body.data);
	}
	return node;
}

int64_t reply_int(const struct reply *reply, const char *place)
{
	int64_t value = 0;
	if (!ky_json_tree_int(&reply->tree, reply_node(reply, place), &value))
		fail_msg("%s is no integer in %s", place, reply->body.data);
	return value;
}

double reply_real(const struct reply *reply, const char *place)
{
	struct ky_json_number number;
	if (!ky_json_tree_number(&reply->tree, reply_node(reply, place), &number))
		fail_msg("%s is no number in %s", place, reply->body.data);
	return number.d;
}

bool reply_is_null(const struct reply *reply, const char *place)
{
	return ky_json_tree_type(&reply->tree, reply_node(reply, place)) == KY_JSON_NULL;
}

bool reply_bool(const struct reply *reply, const char *place)
{
	const uint8_t type = ky_json_tree_type(&reply->tree, reply_node(reply, place));
	assert_true(type == KY_JSON_TRUE || type == KY_JSON_FALSE);
	return type == KY_JSON_TRUE;
}

uint32_t reply_length(const struct reply *reply, const char *place)
{
	const uint32_t array = reply_node(reply, place);
	uint32_t count = 0;
	assert_int_equal(ky_json_tree_type(&reply->tree, array), KY_JSON_ARRAY);
	for (uint32_t i = ky_json_tree_first(array); i < ky_json_tree_end(&reply->tree, array);
	     i = ky_json_tree_next(&reply->tree, i))
		count++;
	return count;
}

static char *text_of(const struct reply *reply, uint32_t node)
{
	struct ky_json_text text;
	assert_true(ky_json_tree_text(&reply->tree, node, &text));
	char *const to = calloc(text.bytes + 1, 1);
	assert_non_null(to);
	ky_json_unescape(&text, to);
	return to;
}

void reply_text_is(const struct reply *reply, const char *place, const char *text)
{
	char *const found = text_of(reply, reply_node(reply, place));
	assert_string_equal(found, text);
	free(found);
}

uint32_t reply_find(const struct reply *reply, const char *array, const char *member,
		    const char *text)
{
	char place[160];
	const uint32_t count = reply_length(reply, array);
	for (uint32_t i = 0; i < count; i++) {
		snprintf(place, sizeof(place), "%s.%u.%s", array, i, member);
		char *const found = text_of(reply, reply_node(reply, place));
		const bool same = strcmp(found, text) == 0;
		free(found);
		if (same)
			return i;
	}
	fail_msg("no %s with %s %s in %s", array, member, text, reply->body.data);
	return 0;
}

void refuses(struct asking *asking, const char *path, const char *query, const char *body,
	     int status)
{
	struct reply reply;
	ask(asking, path, query, body, &reply);
	if (reply.status != status)
		fail_msg("%s?%s is answered with %d: %s", path, query, reply.status,
			 reply.body.data);
	assert_string_equal(reply.type, "application/json");
	char *const text = text_of(&reply, reply_node(&reply, "error"));
	assert_true(strlen(text) > 10);
	assert_null(strchr(text, '\n'));
	free(text);
	reply_free(&reply);
}
