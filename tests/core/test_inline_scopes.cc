/* SPDX-License-Identifier: MIT */
/*
 * test_inline_scopes.cc: an inline function with two scopes, compiled into two translation units that
 * count differently before it, records each scope under its own name with its own arguments. Also a
 * function pointer as a value.
 */
#include "inline_scopes.h"

#include <kymo/session.h>

#include <cstdio>
#include <cstring>

static int failures;
static int received, decoded, pointers;

static void check(bool holds, const char *what)
{
	if (!holds && failures++ < 10)
		std::printf("does not hold: %s\n", what);
}

static bool has_peer(const kymo_event &e, unsigned at)
{
	return e.args_count == 2 && std::strcmp(e.args[at].key, "peer") == 0 &&
	       std::strcmp(e.args[at].string, "somebody") == 0 && e.args[1 - at].value.i == 7;
}

static void on_events(const kymo_event *events, size_t count, void *)
{
	for (size_t i = 0; i < count; i++) {
		const kymo_event &e = events[i];
		if (e.kind == KYMO_KIND_INSTANT) {
			check(e.args[0].type == KYMO_TYPE_POINTER && e.args[0].value.u > 1,
			      "a function pointer is a pointer");
			pointers++;
		}
		if (e.kind != KYMO_KIND_BEGIN)
			continue;
		if (std::strcmp(e.name, "receive") == 0) {
			check(has_peer(e, 0), "receive has its arguments");
			received++;
		} else if (std::strcmp(e.name, "decode") == 0) {
			check(has_peer(e, 1), "decode has its arguments");
			decoded++;
		}
	}
}

int main()
{
	const int subscription = kymo_subscribe(on_events, nullptr, "net");
	check(subscription >= 0, "subscribed");
	const connection c = {"somebody", 7};
	for (int i = 0; i < 100; i++) {
		c.receive();
		receive_elsewhere(c);
	}
	KYMO_INSTANT("net", "pointer", "function", &receive_elsewhere);
	kymo_unsubscribe(subscription);
	check(received == 200 && decoded == 200 && pointers == 1, "every scope is there once");
	std::printf("%d received, %d decoded, %d failures\n", received, decoded, failures);
	return failures != 0;
}
