/* SPDX-License-Identifier: MIT */
/*
 * torture.h: programs that do to their stacks whatever a program may do, and check what comes out of it.
 *
 *   PROGRAM [--scale N] [CASE...]       each case once: a line with its name and a digest of its results
 *   PROGRAM --until [CASE...]           says "ready" after the first round, then goes on until its standard input ends; exit 1
 *                                       when a round had other digests than the first
 *
 * The digests depend on nothing but the code: traced and not, they must be equal. A case that finds something wrong by itself
 * says so and ends the program with 3.
 */
#ifndef TORTURE_H
#define TORTURE_H

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
/* Keeps a call from becoming a tail call, and a result from being known beforehand. */
#define KEEP(value) __asm__ volatile("" : "+r"(value)::"memory")

struct torture {
	const char *name;
	uint64_t (*run)(void);
};

/* How many times more than in a short test. */
static unsigned torture_scale = 1;

static inline uint64_t mix(uint64_t digest, uint64_t value)
{
	digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
	return digest ^ digest >> 29;
}

static inline void must(int fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	_exit(3);
}

static inline int torture_wanted(char **names, const char *name)
{
	if (!*names)
		return 1;
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return 1;
	return 0;
}

static inline void torture_once(const struct torture *cases, char **names)
{
	for (; cases->name; cases++)
		if (torture_wanted(names, cases->name)) {
			printf("%s %016llx\n", cases->name, (unsigned long long)cases->run());
			fflush(stdout);
		}
}

/* The rounds until the input ends; which of them was different, or NULL. */
static inline const char *torture_until(const struct torture *cases, char **names)
{
	uint64_t first[64];
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	for (unsigned long round = 0; poll(&input, 1, 0) == 0 || round == 0; round++) {
		for (size_t i = 0; cases[i].name; i++) {
			if (!torture_wanted(names, cases[i].name))
				continue;
			const uint64_t digest = cases[i].run();
			if (round == 0)
				first[i] = digest;
			else if (digest != first[i])
				return cases[i].name;
		}
		if (round == 0) {
			puts("ready");
			fflush(stdout);
		}
	}
	return NULL;
}

static inline int torture_main(const struct torture *cases, char **argv)
{
	int until = 0;
	for (argv++; *argv && (*argv)[0] == '-'; argv++) {
		if (strcmp(*argv, "--until") == 0)
			until = 1;
		else if (strcmp(*argv, "--scale") == 0 && argv[1])
			torture_scale = (unsigned)atoi(*++argv);
		else
			return 2;
	}
	if (!until) {
		torture_once(cases, argv);
		return 0;
	}
	const char *const different = torture_until(cases, argv);
	if (different)
		fprintf(stderr, "wrong: %s came out otherwise\n", different);
	return different != NULL;
}

#endif
