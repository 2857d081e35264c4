/* SPDX-License-Identifier: MIT */
/*
 * test_serve.c: a server in this process: replies while the trace is loaded, generations replaced during requests, closing
 * while a client waits. Clients are plain sockets.
 */
#include "model/intake.h"
#include "server/serve.h"
#include "server/serve_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ASKERS 4
#define ASKED 40
#define GENERATIONS 25
#define LAST "25"

/* ---- a client ---- */

static unsigned port_of(const struct ky_serve *serve)
{
	unsigned port = 0;
	assert_int_equal(sscanf(ky_serve_address(serve), "http://127.0.0.1:%u/", &port), 1);
	return port;
}

static int connect_to(const struct ky_serve *serve)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port_of(serve)),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void send_get(const struct ky_serve *serve, int fd, const char *path)
{
	char request[512];
	const char *const page = strchr(ky_serve_address(serve) + 7, '/');
	const int bytes = snprintf(request, sizeof(request),
				   "GET %s%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
				   "Connection: close\r\n\r\n",
				   page, path, port_of(serve));
	assert_int_equal(send(fd, request, (size_t)bytes, MSG_NOSIGNAL), bytes);
}

/* Read until the server closes. */
static char *read_all(int fd)
{
	size_t bytes = 0, room = 1 << 16;
	char *text = malloc(room);
	for (ssize_t more; text && (more = read(fd, text + bytes, room - bytes - 1)) > 0;) {
		bytes += (size_t)more;
		if (room - bytes < 2)
			text = realloc(text, room *= 2);
	}
	close(fd);
	assert_non_null(text);
	text[bytes] = '\0';
	return text;
}

static char *get(const struct ky_serve *serve, const char *path)
{
	const int fd = connect_to(serve);
	send_get(serve, fd, path);
	return read_all(fd);
}

static bool answers(const struct ky_serve *serve, const char *path, const char *status,
		    const char *with)
{
	char *const answer = get(serve, path);
	const bool fine = strstr(answer, status) == answer && strstr(answer, with);
	if (!fine)
		fprintf(stderr, "%s: %s\n", path, answer);
	free(answer);
	return fine;
}

/* ---- replies ---- */

static struct ky_view *make_view(uint32_t generation)
{
	struct ky_trace *trace;
	struct ky_view *view;
	const struct ky_view_options options = {
		.name = "made", .generation = generation, .live = true, .base_ns = KY_TIME_NONE};
	assert_int_equal(ky_trace_open(&trace), 0);
	const uint32_t track = ky_track_of_thread(trace, ky_thread(trace, 1, 1));
	for (unsigned i = 0; i < 10 * generation; i++)
		ky_put_complete(trace, 100 * i, 50, track, 0, ky_string_z(trace, "slice"), 0);
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	assert_int_equal(ky_view_open(&view, trace, &options), 0);
	return view;
}

static struct ky_serve *open_server(void)
{
	char message[KY_MESSAGE_BYTES];
	const struct ky_serve_options options = {0};
	struct ky_serve *serve;
	assert_int_equal(ky_serve_open(&serve, &options, message), 0);
	return serve;
}

static void says_how_far_it_is_until_there_is_a_trace(void **state)
{
	(void)state;
	struct ky_serve *serve = open_server();
	assert_true(answers(serve, "api/trace", "HTTP/1.1 503", "being loaded"));
	ky_serve_progress(serve, "reading", 7, 20);
	assert_true(answers(serve, "api/status?g=0", "HTTP/1.1 200",
			    "{\"generation\":0,\"live\":false,\"begin\":0,\"end\":0,"
			    "\"stage\":\"reading\",\"done\":7,\"all\":20}"));
	assert_int_equal(ky_serve_show(serve, make_view(1)), 0);
	assert_true(answers(serve, "api/status?g=0", "HTTP/1.1 200",
			    "{\"generation\":1,\"live\":true,\"begin\":0,\"end\":950,"));
	assert_true(answers(serve, "api/trace", "HTTP/1.1 200", "\"name\":\"made\""));
	ky_serve_close(&serve);
	assert_null(serve);
}

static void who_waits_hears_of_the_next_generation(void **state)
{
	(void)state;
	struct ky_serve *serve = open_server();
	assert_int_equal(ky_serve_show(serve, make_view(1)), 0);
	const int waits = connect_to(serve);
	send_get(serve, waits, "api/status?g=1");
	/* It may wait already or come later: both see the change. */
	assert_int_equal(ky_serve_show(serve, make_view(2)), 0);
	char *const answer = read_all(waits);
	assert_non_null(strstr(answer, "\"generation\":2"));
	free(answer);
	ky_serve_close(&serve);
}

static void the_end_does_not_wait_for_who_waits(void **state)
{
	(void)state;
	struct ky_serve *serve = open_server();
	assert_int_equal(ky_serve_show(serve, make_view(1)), 0);
	const int waits = connect_to(serve), silent = connect_to(serve);
	send_get(serve, waits, "api/status?g=1");
	assert_true(answers(serve, "api/status?g=0", "HTTP/1.1 200", "\"generation\":1"));
	ky_serve_close(&serve); /* a test that hangs here fails by its time limit */
	free(read_all(waits));
	free(read_all(silent));
}

/* ---- generations replaced during requests ---- */

static void *ask_often(void *context)
{
	/* Tiles of the last generation appear eventually. */
	static const char *const paths[] = {"api/trace",
					    "api/tiles?g=" LAST "&level=4&first=0&tracks=1",
					    "api/range?from=0&to=1000", "api/search?q=slice"};
	const struct ky_serve *const serve = context;
	uintptr_t wrong = 0;
	for (unsigned i = 0; i < ASKED; i++) {
		char *const answer = get(serve, paths[i % 4]);
		wrong += strncmp(answer, "HTTP/1.1 200 ", 13) != 0 &&
			 (i % 4 != 1 || strncmp(answer, "HTTP/1.1 409 ", 13) != 0);
		free(answer);
	}
	return (void *)wrong;
}

static void generations_are_replaced_while_others_ask(void **state)
{
	(void)state;
	struct ky_serve *serve = open_server();
	pthread_t threads[ASKERS];
	assert_int_equal(ky_serve_show(serve, make_view(1)), 0);
	for (unsigned i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, serve), 0);
	for (uint32_t generation = 2; generation <= GENERATIONS; generation++)
		assert_int_equal(ky_serve_show(serve, make_view(generation)), 0);
	for (unsigned i = 0; i < ASKERS; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_true(answers(serve, "api/status?g=1", "HTTP/1.1 200", "\"generation\":" LAST));
	assert_true(answers(serve, "api/tiles?g=" LAST "&level=4&first=0&tracks=1", "HTTP/1.1 200",
			    "KYT1"));
	ky_serve_close(&serve);
}

/* ---- many clients ---- */

/* An ended client's peer reads the end; that of a live one has nothing to read yet. */
static bool is_ended(int other)
{
	char byte;
	return recv(other, &byte, 1, MSG_DONTWAIT) == 0;
}

#define ENDED 10u

static void of_many_clients_the_oldest_end_and_no_more_than_come(void **state)
{
	(void)state;
	enum { ALL = KY_SERVE_CLIENTS_MANY + 2 * ENDED };
	struct ky_serve_clients clients;
	struct ky_serve_client *added[ALL];
	int pairs[ALL][2];
	ky_serve_clients_open(&clients);
	for (unsigned i = 0; i < ALL; i++)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
	/* Each one over the limit ends the oldest that waits; the first one does not wait. */
	for (unsigned i = 0; i < KY_SERVE_CLIENTS_MANY + ENDED; i++) {
		added[i] = ky_serve_clients_add(&clients, pairs[i][0]);
		if (i == 0)
			ky_serve_clients_wait(&clients, added[0], false);
	}
	for (unsigned i = 0; i < KY_SERVE_CLIENTS_MANY + ENDED; i++)
		assert_int_equal(is_ended(pairs[i][1]), i > 0 && i <= ENDED);
	/* Others leave before the ended ones do: then there is room, and none has to end. */
	for (unsigned i = 0; i < ENDED; i++) {
		ky_serve_clients_remove(&clients, added[KY_SERVE_CLIENTS_MANY + i]);
		added[KY_SERVE_CLIENTS_MANY + i] =
			ky_serve_clients_add(&clients, pairs[KY_SERVE_CLIENTS_MANY + ENDED + i][0]);
	}
	for (unsigned i = ENDED + 1; i < ALL; i++)
		assert_false(is_ended(pairs[i][1]));
	for (unsigned i = 0; i < KY_SERVE_CLIENTS_MANY + ENDED; i++)
		ky_serve_clients_remove(&clients, added[i]);
	assert_int_equal(clients.count, 0);
	ky_serve_clients_close(&clients);
	for (unsigned i = 0; i < ALL; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
}

/* ---- failing to listen ---- */

static void says_why_it_cannot_listen(void **state)
{
	(void)state;
	struct ky_serve *serve = open_server(), *second;
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_serve_options options = {.port = (uint16_t)port_of(serve)};
	assert_int_equal(ky_serve_open(&second, &options, message), -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(message, "choose another with --port"));
	options = (struct ky_serve_options){.bind = "192.0.2.1"};
	assert_int_equal(ky_serve_open(&second, &options, message), -EADDRNOTAVAIL);
	assert_non_null(strstr(message, "--bind"));
	options.bind = "no such host";
	assert_int_equal(ky_serve_open(&second, &options, message), -EADDRNOTAVAIL);
	assert_non_null(strstr(message, "no such host"));
	ky_serve_close(&second);
	ky_serve_close(&serve);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_how_far_it_is_until_there_is_a_trace),
		cmocka_unit_test(who_waits_hears_of_the_next_generation),
		cmocka_unit_test(the_end_does_not_wait_for_who_waits),
		cmocka_unit_test(generations_are_replaced_while_others_ask),
		cmocka_unit_test(of_many_clients_the_oldest_end_and_no_more_than_come),
		cmocka_unit_test(says_why_it_cannot_listen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
