/* SPDX-License-Identifier: MIT */
/* test_serve_site.c: access control and parsing of requests, without a socket. */
#include "server/serve_http.h"
#include "server/serve_site.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct ky_serve_site local_site(void)
{
	struct ky_serve_site site = {.token = TOKEN, .port = 1234};
	ky_serve_site_add_name(&site, "127.0.0.1");
	ky_serve_site_add_name(&site, "localhost");
	ky_serve_site_add_name(&site, "[::1]");
	return site;
}

/* ---- Host and Origin ---- */

static void host_is_an_address_of_ours_with_our_port(void **state)
{
	(void)state;
	const struct ky_serve_site site = local_site();
	static const char *const ours[] = {"127.0.0.1:1234", "localhost:1234", "LocalHost:1234",
					   "[::1]:1234"};
	static const char *const foreign[] = {
		"",
		":",
		":1234",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:1235",
		"127.0.0.1:12345",
		"127.0.0.1:01234x",
		"127.0.0.1:01234",
		"127.0.0.1:-1234",
		"127.0.0.1:99999999999999999999",
		"127.0.0.1:66770", /* 1234 when cut to 16 bits */
		"evil.example:1234",
		"127.0.0.1.evil.example:1234",
		"localhost.evil.example:1234",
		"xlocalhost:1234",
		"localhos:1234",
		"::1:1234",
		"[::1",
		"[::1]1234",
		"[::1]x:1234",
		"[::2]:1234",
		"192.168.0.1:1234",
		"127.0.0.1:1234:1234",
		"user@localhost:1234",
	};
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		assert_true(ky_serve_site_is_host(&site, ours[i]));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_false(ky_serve_site_is_host(&site, foreign[i]));
}

static void host_longer_than_any_name_is_not_ours(void **state)
{
	(void)state;
	const struct ky_serve_site site = local_site();
	char host[4096];
	memset(host, '1', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	assert_false(ky_serve_site_is_host(&site, host));
	host[0] = '[';
	assert_false(ky_serve_site_is_host(&site, host));
}

static void host_without_a_port_is_that_of_http(void **state)
{
	(void)state;
	struct ky_serve_site site = local_site();
	site.port = 80;
	assert_true(ky_serve_site_is_host(&site, "localhost"));
	assert_true(ky_serve_site_is_host(&site, "[::1]"));
	assert_true(ky_serve_site_is_host(&site, "localhost:80"));
}

static void host_of_a_server_on_every_address_is_any_address_but_no_foreign_name(void **state)
{
	(void)state;
	struct ky_serve_site site = local_site();
	site.every = true;
	assert_true(ky_serve_site_is_host(&site, "192.168.0.1:1234"));
	assert_true(ky_serve_site_is_host(&site, "[fe80::1]:1234"));
	assert_true(ky_serve_site_is_host(&site, "localhost:1234"));
	assert_false(ky_serve_site_is_host(&site, "192.168.0.1:1235"));
	assert_false(ky_serve_site_is_host(&site, "evil.example:1234"));
	assert_false(ky_serve_site_is_host(&site, "[]:1234"));
	assert_false(ky_serve_site_is_host(&site, "[a]:1234"));
	assert_false(ky_serve_site_is_host(&site, "1.2.3:1234"));
}

static void origin_is_the_server_itself(void **state)
{
	(void)state;
	const struct ky_serve_site site = local_site();
	assert_true(ky_serve_site_is_origin(&site, "http://127.0.0.1:1234"));
	assert_true(ky_serve_site_is_origin(&site, "http://localhost:1234"));
	assert_false(ky_serve_site_is_origin(&site, "https://127.0.0.1:1234"));
	assert_false(ky_serve_site_is_origin(&site, "http://127.0.0.1:1235"));
	assert_false(ky_serve_site_is_origin(&site, "http://127.0.0.1"));
	assert_false(ky_serve_site_is_origin(&site, "http://127.0.0.1:1234/"));
	assert_false(ky_serve_site_is_origin(&site, "http://evil.example:1234"));
	assert_false(ky_serve_site_is_origin(&site, "null"));
	assert_false(ky_serve_site_is_origin(&site, ""));
	assert_false(ky_serve_site_is_origin(&site, "http://"));
}

/* ---- the token ---- */

static void tokens_are_random_digits(void **state)
{
	(void)state;
	struct ky_serve_site a, b;
	assert_int_equal(ky_serve_site_make_token(&a), 0);
	assert_int_equal(ky_serve_site_make_token(&b), 0);
	assert_int_equal(strlen(a.token), KY_SERVE_SITE_TOKEN_BYTES);
	assert_int_equal(strspn(a.token, "0123456789abcdef"), KY_SERVE_SITE_TOKEN_BYTES);
	assert_string_not_equal(a.token, b.token);
}

static void only_the_whole_token_opens(void **state)
{
	(void)state;
	const struct ky_serve_site site = local_site();
	char target[KY_SERVE_SITE_TOKEN_BYTES + 8];
	assert_string_equal(ky_serve_site_after_token(&site, "/" TOKEN "/api"), "/api");
	assert_string_equal(ky_serve_site_after_token(&site, "/" TOKEN), "");
	assert_null(ky_serve_site_after_token(&site, ""));
	assert_null(ky_serve_site_after_token(&site, TOKEN));
	assert_null(ky_serve_site_after_token(&site, "//" TOKEN));
	for (size_t bytes = 1; bytes <= KY_SERVE_SITE_TOKEN_BYTES; bytes++) {
		snprintf(target, sizeof(target), "%.*s", (int)bytes, "/" TOKEN);
		assert_null(ky_serve_site_after_token(&site, target));
	}
	for (size_t at = 1; at <= KY_SERVE_SITE_TOKEN_BYTES; at++) {
		strcpy(target, "/" TOKEN);
		target[at] ^= 1;
		assert_null(ky_serve_site_after_token(&site, target));
	}
}

/* ---- requests ---- */

static int check(struct ky_serve_head head, const char **behind)
{
	const struct ky_serve_site site = local_site();
	if (!head.method)
		head.method = "GET";
	if (!head.target)
		head.target = "/" TOKEN "/";
	if (!head.hosts)
		head.hosts = 1;
	return ky_serve_site_check(&site, &head, behind);
}

static void requests_are_let_in_or_not(void **state)
{
	(void)state;
	const char *const host = "127.0.0.1:1234";
	const char *behind;
	assert_int_equal(check((struct ky_serve_head){.host = host}, &behind), 0);
	assert_string_equal(behind, "/");
	assert_int_equal(check((struct ky_serve_head){.host = host, .method = "HEAD"}, &behind), 0);
	assert_int_equal(check((struct ky_serve_head){.host = host, .method = "POST"}, &behind), 0);
	assert_int_equal(
		check((struct ky_serve_head){.host = host, .target = "/" TOKEN "?a"}, &behind), 0);
	assert_string_equal(behind, "?a");
	assert_int_equal(check((struct ky_serve_head){.host = host, .method = "PUT"}, &behind),
			 405);
	assert_int_equal(check((struct ky_serve_head){.host = host, .method = "get"}, &behind),
			 405);
	assert_null(behind);
	assert_int_equal(check((struct ky_serve_head){.host = NULL}, &behind), 403);
	assert_int_equal(check((struct ky_serve_head){.host = host, .hosts = 2}, &behind), 403);
	assert_int_equal(check((struct ky_serve_head){.host = "a:1234"}, &behind), 403);
	assert_int_equal(check((struct ky_serve_head){.host = host, .origin = "null"}, &behind),
			 403);
	static const char *const asking[] = {"cross-site", "same-site", "", "same-origin ",
					     "Cross-Site"};
	for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++)
		assert_int_equal(
			check((struct ky_serve_head){.host = host, .fetch_site = asking[i]},
			      &behind),
			403);
	assert_int_equal(
		check((struct ky_serve_head){.host = host, .fetch_site = "same-origin"}, &behind),
		0);
	assert_int_equal(check((struct ky_serve_head){.host = host, .fetch_site = "none"}, &behind),
			 0);
	assert_int_equal(check((struct ky_serve_head){.host = host, .target = "/"}, &behind), 403);
	assert_int_equal(
		check((struct ky_serve_head){.host = host, .target = "/" TOKEN "x"}, &behind), 403);
	/* A refused client learns nothing of what exists. */
	assert_int_equal(check((struct ky_serve_head){.host = host, .target = "/", .method = "PUT"},
			       &behind),
			 403);
}

/* ---- parsing ---- */

static void parameters_are_decoded_and_the_path_is_not(void **state)
{
	(void)state;
	struct ky_serve_request request;
	const char *why;
	assert_int_equal(
		ky_serve_request_open(&request,
				      "/api/%74?a=1&b=x+y%20z%3D%26&empty=&none&&a=2&c%3d=%C3%A9",
				      NULL, 0, &why),
		0);
	assert_string_equal(request.api.path, "api/%74");
	assert_null(request.api.body);
	assert_int_equal(request.api.parameters_count, 6);
	assert_string_equal(ky_serve_request_parameter(&request, "a"), "1");
	assert_string_equal(ky_serve_request_parameter(&request, "b"), "x y z=&");
	assert_string_equal(ky_serve_request_parameter(&request, "empty"), "");
	assert_string_equal(ky_serve_request_parameter(&request, "none"), "");
	assert_string_equal(ky_serve_request_parameter(&request, "c="), "\xc3\xa9");
	assert_null(ky_serve_request_parameter(&request, "d"));
	ky_serve_request_close(&request);
}

static int open_and_close(const char *behind, const char *body, size_t bytes)
{
	struct ky_serve_request request;
	const char *why = NULL;
	const int status = ky_serve_request_open(&request, behind, body, bytes, &why);
	if (status)
		assert_true(why && strlen(why) > 10);
	else
		ky_serve_request_close(&request);
	return status;
}

static void requests_that_are_wrong_are_said_to_be(void **state)
{
	(void)state;
	char many[4 * (KY_SERVE_REQUEST_PARAMETERS_MAX + 2)] = "/api?";
	assert_int_equal(open_and_close("/a?b=%", NULL, 0), 400);
	assert_int_equal(open_and_close("/a?b=%4", NULL, 0), 400);
	assert_int_equal(open_and_close("/a?b=%g0", NULL, 0), 400);
	assert_int_equal(open_and_close("/a?b=%00", NULL, 0), 400);
	assert_int_equal(open_and_close("/a?%zz=1", NULL, 0), 400);
	assert_int_equal(open_and_close("/a?b=%01", NULL, 0), 0);
	for (unsigned i = 0; i < KY_SERVE_REQUEST_PARAMETERS_MAX; i++)
		strcat(many, "a&");
	assert_int_equal(open_and_close(many, NULL, 0), 0);
	strcat(many, "a&");
	assert_int_equal(open_and_close(many, NULL, 0), 400);
}

static void bodies_are_text_up_to_the_most(void **state)
{
	(void)state;
	char *const body = calloc(1, KY_SERVE_REQUEST_BODY_MAX + 2);
	assert_non_null(body);
	memset(body, 'x', KY_SERVE_REQUEST_BODY_MAX + 1);
	assert_int_equal(open_and_close("/api/sql", body, KY_SERVE_REQUEST_BODY_MAX), 0);
	assert_int_equal(open_and_close("/api/sql", body, KY_SERVE_REQUEST_BODY_MAX + 1), 413);
	assert_int_equal(open_and_close("/api/sql", "", 0), 0);
	body[7] = '\0';
	assert_int_equal(open_and_close("/api/sql", body, 8), 400);
	free(body);
}

static void nothing_behind_the_token_is_the_page(void **state)
{
	(void)state;
	static const char *const pages[] = {"/", "", "?", "/?a=b"};
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		struct ky_serve_request request;
		const char *why;
		assert_int_equal(ky_serve_request_open(&request, pages[i], NULL, 0, &why), 0);
		assert_string_equal(request.api.path, "");
		ky_serve_request_close(&request);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_is_an_address_of_ours_with_our_port),
		cmocka_unit_test(host_longer_than_any_name_is_not_ours),
		cmocka_unit_test(host_without_a_port_is_that_of_http),
		cmocka_unit_test(
			host_of_a_server_on_every_address_is_any_address_but_no_foreign_name),
		cmocka_unit_test(origin_is_the_server_itself),
		cmocka_unit_test(tokens_are_random_digits),
		cmocka_unit_test(only_the_whole_token_opens),
		cmocka_unit_test(requests_are_let_in_or_not),
		cmocka_unit_test(parameters_are_decoded_and_the_path_is_not),
		cmocka_unit_test(requests_that_are_wrong_are_said_to_be),
		cmocka_unit_test(bodies_are_text_up_to_the_most),
		cmocka_unit_test(nothing_behind_the_token_is_the_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
