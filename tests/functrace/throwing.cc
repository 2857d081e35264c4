// SPDX-License-Identifier: MIT
#include "throwing.h"

#include <execinfo.h>
#include <stdexcept>

static thread_local int destroyed;

namespace
{
struct counted {
	~counted()
	{
		destroyed++;
	}
};
} // namespace

int throw_at(int depth)
{
	counted here;
	if (depth == 0)
		throw std::runtime_error("deep down");
	return throw_at(depth - 1) + destroyed;
}

int throw_again(int depth)
{
	try {
		return throw_at(depth) + 1;
	} catch (const std::exception &) {
		throw;
	}
}

int plain(int n)
{
	return n + 1;
}

int count_frames(int depth)
{
	if (depth > 0)
		return count_frames(depth - 1) + plain(-1);
	void *frames[200];
	return backtrace(frames, 200);
}

int throw_often(int times)
{
	for (int i = 0; i < times; i++) {
		destroyed = 0;
		bool caught = false;
		try {
			throw_again(THROWING_DEPTH);
		} catch (const std::runtime_error &error) {
			caught = error.what()[0] == 'd';
		}
		if (!caught || destroyed != THROWING_DEPTH + 1 || plain(i) != i + 1)
			return i;
	}
	return times;
}
