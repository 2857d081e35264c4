/* SPDX-License-Identifier: MIT */
/*
 * subject.c: every macro of kymo.h in a function that does something. run.sh compiles it compiled
 * out, and once more with the macros' lines blanked out, and compares. So each macro is on a line
 * of its own, and KYMO_ENABLED is the only one inside an expression. Valid C11 and C++11.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kymo/kymo.h>

struct peer {
	const char *name;
	uint64_t bytes;
	double load;
};

int subject(struct peer *peer, const char *name, int n);
static const char greeting[] = "a string of the subject's own";
static uint64_t total;

static void leaf(const struct peer *peer, const char *name, int n)
{
	KYMO_SCOPE("net", "leaf", "bytes", peer->bytes, "peer", peer->name, "load", peer->load);
	if (n > 3)
		KYMO_INSTANT("net", "many", "n", n);
	;
	KYMO_COUNTER("net", "total", total);
	KYMO_COUNTER("net", "load", peer->load);
	KYMO_COUNTER_DYN("net", name, n);
	total += peer->bytes;
	KYMO_FLOW_BEGIN("net", "request", peer->bytes);
	KYMO_FLOW_STEP("net", "request", peer->bytes);
	KYMO_FLOW_END("net", "request", peer);
	KYMO_FLOW_BEGIN_DYN("net", name, 1);
	KYMO_FLOW_STEP_DYN("net", name, 1);
	KYMO_FLOW_END_DYN("net", name, 1);
}

static void spans(struct peer *peer, const char *name, int n)
{
	KYMO_SCOPE_DYN("net", name, "n", n);
	KYMO_SCOPE_OVER("net", "slow", 5000000, "n", n);
	KYMO_SCOPE_OVER("net", "slow too", peer->bytes);
	KYMO_SCOPE_OVER_DYN("net", peer->name, 5000000, "n", n);
	KYMO_BEGIN("net", "by hand", "n", n, "even", n % 2 == 0);
	leaf(peer, name, n);
	KYMO_END("net", "result", total);
	KYMO_BEGIN_DYN("net", name, "pointer", (void *)peer);
	leaf(peer, name, n + 1);
	KYMO_END("net");
}

static void asynchronous(const struct peer *peer, const char *name)
{
	KYMO_ASYNC_BEGIN("net", "query", 42, "name", name);
	KYMO_ASYNC_INSTANT("net", "query", 42);
	total++;
	KYMO_ASYNC_END("net", "query", 42, "rows", total);
	KYMO_ASYNC_BEGIN_DYN("net", name, peer, "bytes", peer->bytes);
	KYMO_ASYNC_INSTANT_DYN("net", name, peer);
	KYMO_ASYNC_END_DYN("net", name, peer);
}

int subject(struct peer *peer, const char *name, int n)
{
	KYMO_SCOPE("net", "subject");
	spans(peer, name, n);
	asynchronous(peer, name);
	KYMO_PRINT("net", "no values");
	KYMO_PRINT("net", "%s has %d of %.1f", peer->name, n, peer->load);
	KYMO_INSTANT("net", "", "a", 1, "b", 2u, "c", .5, "d", "x", "e", n, "f", n, "g", n, "h", 8);
	KYMO_INSTANT_DYN("net", name, "greeting", greeting);
	if (KYMO_ENABLED("net"))
		puts(greeting);
	return puts(greeting) + (int)total;
}
