/* SPDX-License-Identifier: MIT */
/*
 * libraries.c: code that comes, goes and is chosen at run time, and code that looks at its own stack. PLUGIN in the environment
 * is the library that is loaded (plugin.c); linked with -rdynamic, so that callers have names.
 */
#include "torture.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>

static NOINLINE uint64_t back(uint64_t value)
{
	KEEP(value);
	return mix(value, 9);
}

static uint64_t run_plugin(const char *path, uint64_t digest)
{
	uint64_t (*run)(uint64_t, uint64_t(*)(uint64_t));
	void *const library = dlopen(path, RTLD_NOW);
	must(library != NULL, "dlopen");
	*(void **)&run = dlsym(library, "plugin_run");
	must(run != NULL, "dlsym");
	digest = run(digest, back);
	dlclose(library);
	return digest;
}

static uint64_t loaded_often(void)
{
	const char *const path = getenv("PLUGIN");
	uint64_t digest = 0;
	must(path != NULL, "PLUGIN is not set");
	for (unsigned i = 0; i < 25 * torture_scale; i++)
		digest = run_plugin(path, digest);
	return digest;
}

static void *loads(void *arg)
{
	for (int i = 0; i < 10; i++)
		*(uint64_t *)arg = run_plugin(getenv("PLUGIN"), *(uint64_t *)arg);
	return arg;
}

static uint64_t loaded_by_threads(void)
{
	pthread_t threads[4];
	uint64_t values[4] = {1, 2, 3, 4}, digest = 0;
	for (int i = 0; i < 4; i++)
		must(pthread_create(&threads[i], NULL, loads, &values[i]) == 0, "a thread");
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		digest = mix(digest, values[i]);
	}
	return digest;
}

/* ---- chosen when the program is loaded ---- */

static uint64_t chosen_one(uint64_t value)
{
	KEEP(value);
	return mix(value, 21);
}
__attribute__((used)) static uint64_t (*choose(void))(uint64_t)
{
	return chosen_one;
}
__attribute__((ifunc("choose"))) uint64_t chosen(uint64_t value);

static uint64_t ifuncs(void)
{
	char from[600], to[600];
	uint64_t digest = 0;
	uint64_t (*volatile pointer)(uint64_t) = chosen;
	for (unsigned i = 0; i < 500; i++) {
		digest = pointer(chosen(digest));
		memset(from, (int)i, sizeof(from));
		memcpy(to, from, i);
		digest = mix(digest, (uint64_t)memcmp(from, to, i) + strnlen(from, i));
	}
	return digest;
}

/* ---- functions that look at stacks ---- */

static int depth_seen;
static char names_seen[64][64];

NOINLINE void look_inner(void);
NOINLINE void look_middle(int depth);
NOINLINE void look_outer(void);

/* "program(name+0x12) [0x...]": the name. */
static void keep_name(int i, const char *line)
{
	const char *const open = strchr(line, '('), *const plus = strchr(line, '+');
	if (open && plus && plus > open)
		snprintf(names_seen[i], sizeof(names_seen[i]), "%.*s", (int)(plus - open - 1),
			 open + 1);
}

void look_inner(void)
{
	void *addresses[64];
	memset(names_seen, 0, sizeof(names_seen));
	depth_seen = backtrace(addresses, 64);
	char **const lines = backtrace_symbols(addresses, depth_seen);
	for (int i = 0; lines && i < depth_seen; i++)
		keep_name(i, lines[i]);
	free(lines);
}
void look_middle(int depth)
{
	if (depth > 0)
		look_middle(depth - 1);
	else
		look_inner();
	KEEP(depth);
}
void look_outer(void)
{
	look_middle(10);
	KEEP(depth_seen);
}

/* The frames between must be the program's, from the innermost to main; those around main are libc's. */
static uint64_t backtraces(void)
{
	uint64_t digest = 0;
	int found = 0;
	look_outer();
	for (int i = 0; i < depth_seen; i++)
		if (strncmp(names_seen[i], "look_", 5) == 0 || strcmp(names_seen[i], "main") == 0) {
			found++;
			for (const char *c = names_seen[i]; *c; c++)
				digest = mix(digest, (uint64_t)*c);
		}
	must(found == 14, "callers in a backtrace");
	return digest;
}

static NOINLINE int returns_to(const void *from, const void *to)
{
	const char *const address = __builtin_return_address(0);
	return address >= (const char *)from && address < (const char *)to;
}

/* The return address that a function sees may be a stub's, but it must not crash. */
static uint64_t return_addresses(void)
{
	int seen = 0;
	for (int i = 0; i < 100; i++)
		seen += returns_to((const void *)return_addresses,
				   (const char *)return_addresses + 200);
	KEEP(seen);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct torture cases[] = {
		{"loaded_often", loaded_often},
		{"loaded_by_threads", loaded_by_threads},
		{"ifuncs", ifuncs},
		{"backtraces", backtraces},
		{"return_addresses", return_addresses},
		{NULL, NULL},
	};
	return argc ? torture_main(cases, argv) : 2;
}
