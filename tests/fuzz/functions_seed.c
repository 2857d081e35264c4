// SPDX-License-Identifier: MIT
// functions_seed.c: the program of corpus/functions: nops, a switch with a table, an alias, a piece that is seldom needed. Made by
// gcc -O2 -g -fPIC -shared -nostdlib -fpatchable-function-entry=5 -Wl,-z,norelro,-z,noseparate-code,--build-id \
//     -fdebug-prefix-map=$PWD=. -o corpus/functions/nops functions_seed.c
// gcc -O2 -s -no-pie -nostdlib -fcf-protection -Wl,-z,noseparate-code,--build-id -o corpus/functions/stripped functions_seed.c
// gcc -O1 -fPIC -shared -nostdlib -finstrument-functions -Wl,-z,norelro,-z,noseparate-code \
//     -o corpus/functions/instrumented functions_seed.c
// clang -O1 -fPIC -shared -nostdlib -fxray-instrument -fxray-instruction-threshold=1 -fnoxray-link-deps \
//     -Wl,-z,norelro,-z,noseparate-code -o corpus/functions/sleds functions_seed.c
extern int value;
int value = 3;

int choose(int n)
{
	switch (n) {
	case 0:
		return value;
	case 1:
		return value * n;
	case 2:
		return value - 2;
	case 3:
		return value << 3;
	case 4:
		return n ^ value;
	case 5:
		return value / 5;
	default:
		return -1;
	}
}

int other(int n) __attribute__((alias("choose")));

__attribute__((cold, noinline)) static void fail(void)
{
	value = -1;
}

int work(int n)
{
	if (n > 1000)
		fail();
	return choose(n) + other(n - 1);
}

void _start(void);
void _start(void)
{
	work(1);
}
