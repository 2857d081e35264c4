/* SPDX-License-Identifier: MIT */
/*
 * loader.c: for each byte of input loads the given library, calls a function of it a hundred times, unloads
 * it again and answers with a line. Exit 0 when all results were right.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	char byte;
	int wrong = count != 2;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) == 1) {
		void *library = dlopen(arguments[1], RTLD_NOW);
		unsigned long (*work)(unsigned long) = NULL;
		if (library)
			*(void **)&work = dlsym(library, "plugin_work");
		for (unsigned long i = 0; i < 100; i++)
			if (!work || work(i) != i * 2 + 1)
				wrong = 1;
		if (library)
			dlclose(library);
		puts("worked");
		fflush(stdout);
	}
	return wrong;
}
