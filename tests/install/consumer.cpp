/* SPDX-License-Identifier: MIT */
/*
 * consumer.cpp: consumer.c in C++11. One header more does not disturb: everything is included twice.
 */
#include <kymo/kymo.h>
#include <kymo/session.h>
#include <kymo/version.h>

#include <cstdio>
#include <cstring>
#include <string>

#include <kymo/kymo.h>
#include <kymo/session.h>
#include <kymo/version.h>

namespace
{

void work(int rounds)
{
	const std::string name = "consumer_dynamic";
	KYMO_SCOPE("consumer", "consumer_work", "rounds", rounds);
	for (int i = 0; i < rounds; i++)
		KYMO_INSTANT_DYN("consumer", name.c_str(), "i", i, "ratio", 0.5, "even",
				 i % 2 == 0);
}

bool check(const char *what, int error)
{
	if (error < 0)
		std::fprintf(stderr, "consumer: %s: %s\n", what, kymo_strerror(error));
	return error >= 0;
}

} // namespace

int main(int argc, char **argv)
{
	kymo_session *session = nullptr;
	kymo_options options{};
	bool good = std::strcmp(kymo_version(), KYMO_VERSION) == 0;

	options.size = sizeof(options);
	options.path = argc > 1 ? argv[1] : nullptr;
	if (options.path)
		good = check("start", kymo_session_start(&session, &options)) && good;
	work(3);
	if (options.path)
		good = check("stop", kymo_session_stop(&session)) && good;
	return good ? 0 : 1;
}
