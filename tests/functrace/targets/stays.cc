// SPDX-License-Identifier: MIT
// stays.cc: a program that can throw, and stays in a function from the first byte of its input on: it says "in" then. Exit 0 when
// its input ends.
#include <cstdio>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>

namespace
{

volatile unsigned long turns;

// It runs all the time: its thread is hardly ever seen in a system call.
__attribute__((noinline)) void stay()
{
	struct pollfd input = {STDIN_FILENO, POLLIN | POLLHUP, 0};
	if (write(STDOUT_FILENO, "in\n", 3) != 3)
		throw std::runtime_error("nobody listens");
	while (poll(&input, 1, 0) == 0)
		for (int i = 0; i < 1000000; i++)
			turns = turns + 1;
}

} // namespace

int main()
{
	char byte;
	puts("ready");
	fflush(stdout);
	try {
		if (read(STDIN_FILENO, &byte, 1) == 1)
			stay();
	} catch (const std::runtime_error &error) {
		return 1;
	}
	return 0;
}
