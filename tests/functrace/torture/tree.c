/* SPDX-License-Identifier: MIT */
/*
 * tree.c: a call tree that is known, compiled with -finstrument-functions: inlined functions, a frame larger than a page,
 * functions that end with a jump to the exit hook, functions left by longjmp, and (LIBRARY) a library that is bound lazily
 * and has a constructor.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#ifdef LIBRARY
__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}
__attribute__((constructor)) static void begins(void)
{
	leaf(0);
}
int entry(int n)
{
	return leaf(n) + leaf(n + 1);
}
#else
static jmp_buf back;
static volatile int total;
static inline int inlined(int n)
{
	total += n;
	return total;
}
__attribute__((noinline)) int leaf(int n)
{
	return inlined(n) + 1;
}
__attribute__((noinline)) void last(int n)
{
	total += leaf(n);
}
__attribute__((noinline)) void jumps(int n)
{
	char room[64];
	memset(room, n, sizeof(room));
	total += room[n];
	if (total)
		longjmp(back, 1);
}
__attribute__((noinline)) void goes(int n)
{
	jumps(n);
	total++;
}
__attribute__((noinline)) void large(int n)
{
	char room[6000];
	memset(room, n, sizeof(room));
	total += room[n];
	last(n);
}
__attribute__((noinline)) int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
int main(int count, char **words)
{
	int (*entry)(int);
	void *library = count > 1 ? dlopen(words[1], RTLD_LAZY) : NULL;
	void *symbol = library ? dlsym(library, "entry") : NULL;
	for (volatile int i = 1; i < 4; i++) {
		if (!setjmp(back))
			goes(i);
		last(i);
		large(i);
	}
	if (symbol) {
		memcpy(&entry, &symbol, sizeof(entry));
		total += entry(3);
	}
	total += fib(6);
	printf("%d\n", total);
	return 0;
}
#endif
