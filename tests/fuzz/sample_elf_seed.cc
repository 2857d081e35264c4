// SPDX-License-Identifier: MIT
// sample_elf_seed.cc: the program of corpus/sample_elf/library: something inlined, something called through a stub. Made by
// g++ -g -O2 -fPIC -shared -nostdlib -Wl,-z,norelro,-z,noseparate-code,-z,lazy -fdebug-prefix-map=$PWD=. \
//     -o corpus/sample_elf/library sample_elf_seed.cc
namespace space
{
inline __attribute__((always_inline)) int in(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i * n;
	return sum;
}

int work(int n)
{
	return in(n) + in(n + 1);
}
} // namespace space

extern "C" int puts(const char *);

int outer(int n)
{
	puts("x");
	return space::work(n);
}
