/* SPDX-License-Identifier: MIT */
/*
 * main.c: a program and its plug-ins, each with a copy of libkymo linked into it. The copies find each
 * other: there is one drum in the process, and the program's session has everybody's events.
 *
 *	two_copies FILE PLUGIN.so ...
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

#include <kymo/session.h>

#define AMOUNT 5

static void use_plugin(const char *path)
{
	KYMO_SCOPE("program", "use_plugin", "path", path);
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*work)(int) = NULL;
	if (plugin)
		*(void **)&work = dlsym(plugin, "plugin_work");
	if (!work) {
		fprintf(stderr, "two_copies: %s\n", dlerror());
		exit(1);
	}
	printf("%s: %d\n", path, work(AMOUNT));
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("usage: two_copies FILE PLUGIN.so ...\n", stderr);
		return 2;
	}
	struct kymo_session *session;
	const struct kymo_options options = {.size = sizeof(options), .path = argv[1]};
	int error = kymo_session_start(&session, &options);
	if (!error) {
		for (int i = 2; i < argc; i++)
			use_plugin(argv[i]);
		error = kymo_session_stop(&session);
	}
	if (error)
		fprintf(stderr, "two_copies: %s: %s\n", argv[1], kymo_strerror(error));
	return error ? 1 : 0;
}
