// SPDX-License-Identifier: MIT
// throws.cc: exceptions of all kinds, through deep frames and in threads, and what else C++ has that looks at the stack or at
// types at run time.
#include "torture.h"

#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

struct Problem : std::runtime_error {
	explicit Problem(int n) : std::runtime_error("problem"), number(n)
	{
	}
	int number;
};

// Counts how many were ended: on each way out of a function.
struct Guard {
	explicit Guard(uint64_t &d) : digest(d)
	{
	}
	~Guard()
	{
		digest = mix(digest, 17);
	}
	uint64_t &digest;
};

NOINLINE void throw_deep(int depth, int number, uint64_t &digest)
{
	Guard guard(digest);
	if (depth == 0)
		throw Problem(number);
	throw_deep(depth - 1, number, digest);
	KEEP(depth);
}

uint64_t caught()
{
	uint64_t digest = 0;
	for (int i = 0; i < 5000 * static_cast<int>(torture_scale); i++)
		try {
			throw_deep(i % 50, i, digest);
		} catch (const Problem &problem) {
			digest = mix(digest, static_cast<uint64_t>(problem.number));
		}
	return digest;
}

NOINLINE void throw_again(int depth, int number, uint64_t &digest)
{
	try {
		if (depth == 0)
			throw_deep(5, number, digest);
		throw_again(depth - 1, number, digest);
	} catch (Problem &problem) {
		problem.number += depth;
		throw;
	}
}

uint64_t rethrown()
{
	uint64_t digest = 0;
	for (int i = 0; i < 500 * static_cast<int>(torture_scale); i++)
		try {
			throw_again(i % 20, i, digest);
		} catch (const std::exception &any) {
			digest = mix(digest, static_cast<uint64_t>(
						     dynamic_cast<const Problem &>(any).number));
		}
	return digest;
}

NOINLINE uint64_t depth_of(const std::exception &error)
{
	try {
		std::rethrow_if_nested(error);
	} catch (const std::exception &inner) {
		return 1 + depth_of(inner);
	}
	return 1;
}

NOINLINE void nest(int depth, uint64_t &digest)
{
	try {
		if (depth == 0)
			throw_deep(3, depth, digest);
		nest(depth - 1, digest);
	} catch (...) {
		std::throw_with_nested(std::logic_error(std::to_string(depth)));
	}
}

uint64_t nested()
{
	uint64_t digest = 0;
	for (int i = 0; i < 200; i++)
		try {
			nest(i % 15, digest);
		} catch (const std::exception &error) {
			digest = mix(digest, depth_of(error));
		}
	return digest;
}

// A destructor that throws and catches for itself while another exception is on its way.
struct Troubled {
	explicit Troubled(uint64_t &d) : digest(d)
	{
	}
	~Troubled()
	{
		try {
			throw_deep(4, 8, digest);
		} catch (const Problem &problem) {
			digest = mix(digest, static_cast<uint64_t>(problem.number +
								   std::uncaught_exceptions()));
		}
	}
	uint64_t &digest;
};

NOINLINE void leave_troubled(uint64_t &digest)
{
	Troubled troubled(digest);
	throw_deep(6, 3, digest);
}

uint64_t in_destructors()
{
	uint64_t digest = 0;
	for (int i = 0; i < 1000; i++)
		try {
			leave_troubled(digest);
		} catch (const Problem &problem) {
			digest = mix(digest, static_cast<uint64_t>(problem.number));
		}
	return digest;
}

void throw_many(uint64_t *digest, int count)
{
	for (int i = 0; i < count; i++)
		try {
			throw_deep(i % 30, i, *digest);
		} catch (const Problem &problem) {
			*digest = mix(*digest, static_cast<uint64_t>(problem.number));
		}
}

uint64_t in_threads()
{
	std::vector<std::thread> threads;
	uint64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, digest = 0;
	for (uint64_t &value : values)
		threads.emplace_back(throw_many, &value, 500);
	for (std::thread &thread : threads)
		thread.join();
	for (const uint64_t value : values)
		digest = mix(digest, value);
	return digest;
}

uint64_t across_threads()
{
	uint64_t digest = 0;
	for (int i = 0; i < 100; i++) {
		std::future<int> result = std::async(std::launch::async, [i] {
			uint64_t own = 0;
			throw_deep(10, i, own);
			return 1;
		});
		try {
			result.get();
		} catch (const Problem &problem) {
			digest = mix(digest, static_cast<uint64_t>(problem.number));
		}
	}
	return digest;
}

uint64_t thread_digest;
std::mutex thread_lock;

struct OfThread {
	uint64_t value = 1;
	~OfThread()
	{
		const std::lock_guard<std::mutex> guard(thread_lock);
		uint64_t own = 0;
		throw_many(&own, 3);
		thread_digest += value * own;
	}
};
thread_local OfThread of_thread;

uint64_t thread_locals()
{
	thread_digest = 0;
	for (int i = 0; i < 20; i++) {
		std::vector<std::thread> threads;
		for (uint64_t n = 0; n < 8; n++)
			threads.emplace_back([n] { of_thread.value += n; });
		for (std::thread &thread : threads)
			thread.join();
	}
	return thread_digest;
}

struct Animal {
	virtual ~Animal() = default;
	virtual NOINLINE int speak(int n) const
	{
		return n;
	}
};
struct Dog : virtual Animal {
	NOINLINE int speak(int n) const override
	{
		return n * 2 + 1;
	}
};
struct Cat : virtual Animal {
	NOINLINE int speak(int n) const override
	{
		return n * 3 + 2;
	}
};
struct Both : Dog, Cat {
	NOINLINE int speak(int n) const override
	{
		return Dog::speak(n) + Cat::speak(n);
	}
};

uint64_t types()
{
	const std::unique_ptr<Animal> animals[] = {std::make_unique<Dog>(), std::make_unique<Cat>(),
						   std::make_unique<Both>()};
	uint64_t digest = 0;
	for (int i = 0; i < 1000; i++)
		for (const auto &animal : animals) {
			digest = mix(digest, static_cast<uint64_t>(animal->speak(i)));
			digest = mix(digest, dynamic_cast<const Cat *>(animal.get()) != nullptr);
			try {
				digest = mix(digest,
					     dynamic_cast<const Dog &>(*animal).speak(1) != 0);
			} catch (const std::bad_cast &) {
				digest = mix(digest, 99);
			}
		}
	return digest;
}

uint64_t functions()
{
	std::map<std::string, std::function<uint64_t(uint64_t)>> table;
	for (int i = 0; i < 50; i++)
		table[std::to_string(i)] = [i](uint64_t value) {
			if (i % 7 == 0)
				throw Problem(i);
			return mix(value, static_cast<uint64_t>(i));
		};
	uint64_t digest = 0;
	for (int round = 0; round < 100; round++)
		for (const auto &entry : table)
			try {
				digest = entry.second(digest);
			} catch (const Problem &problem) {
				digest = mix(digest, static_cast<uint64_t>(problem.number + 1000));
			}
	return digest;
}

NOINLINE uint64_t never_throws(int i) noexcept
{
	uint64_t digest = 0;
	try {
		throw_deep(3, i, digest);
	} catch (...) {
		digest = mix(digest, 4);
	}
	return digest;
}

uint64_t noexcepts()
{
	uint64_t digest = 0;
	for (int i = 0; i < 500; i++)
		digest = mix(digest, never_throws(i));
	return digest;
}

} // namespace

int main(int argc, char **argv)
{
	static const struct torture cases[] = {
		{"caught", caught},
		{"rethrown", rethrown},
		{"nested", nested},
		{"in_destructors", in_destructors},
		{"in_threads", in_threads},
		{"across_threads", across_threads},
		{"thread_locals", thread_locals},
		{"types", types},
		{"functions", functions},
		{"noexcepts", noexcepts},
		{nullptr, nullptr},
	};
	return argc ? torture_main(cases, argv) : 2;
}
