/* SPDX-License-Identifier: MIT */
/*
 * quiet.c: uses of the macros that must compile without a warning, as C and as C++. mistakes.py compiles it with macros of
 * the program's own that have short names.
 */
#ifdef __cplusplus
#include <string>
#if __cplusplus >= 201703L
#include <string_view>
#endif
#endif

/* the program's own macros */
#include <kymo/kymo.h>
#include <kymo/trace_event.h>

enum color { COLOR_RED, COLOR_BLUE };

struct flags {
	unsigned low : 3;
	int signed_low : 5;
	unsigned long wide : 40;
	long signed_wide : 40;
	enum color color : 2;
};

void quiet(const struct flags *flags, const char *text, void *pointer, double real);
void quiet(const struct flags *flags, const char *text, void *pointer, double real)
{
	char buffer[8] = "";
	KYMO_SCOPE("net", "recv", "low", flags->low, "signed", flags->signed_low, "wide",
		   flags->wide, "all", flags->signed_wide, "color", flags->color);
	KYMO_SCOPE("net", "nested");
	{
		KYMO_SCOPE("net", "inner", "on", KYMO_ENABLED("net"), "text", text, "buffer",
			   buffer);
		KYMO_SCOPE_DYN("net", text, "pointer", pointer);
		KYMO_SCOPE_OVER("net", "over", 1000, "real", real);
		KYMO_SCOPE_OVER_DYN("net", text, 1000);
	}
	KYMO_BEGIN("net", "by hand", "float", 1.5f, "long", 1L, "char", 'c');
	KYMO_END("net", "result", -1);
	KYMO_INSTANT("net", "eight", "1", 1, "2", 2u, "3", 3L, "4", 4UL, "5", 5LL, "6", 6ULL, "7",
		     7.0, "8", "8");
	KYMO_INSTANT_DYN("net", text);
	KYMO_COUNTER("net", "depth", 3);
	KYMO_COUNTER_DYN("net", text, 0.5);
	KYMO_ASYNC_BEGIN("net", "request", pointer, "bytes", sizeof(buffer));
	KYMO_ASYNC_END_DYN("net", text, 7);
	KYMO_FLOW_BEGIN("net", "arrow", 7);
	KYMO_PRINT("net", "%s has %d", text, 3);
	TRACE_EVENT1("net", "chromium", "text", text);
	TRACE_EVENT_INSTANT1("net", "instant", TRACE_EVENT_SCOPE_THREAD, "number", 1);
	TRACE_EVENT_NESTABLE_ASYNC_BEGIN0("net", "async", TRACE_ID_LOCAL(pointer));
	TRACE_COUNTER1("net", "counter", 1);
}

#ifdef __cplusplus
enum class state : unsigned char { idle, busy };

struct counted {
	static const int limit = 3; /* never defined: an event takes its value, not its address */
};

template <typename object> void quiet_template(const object &value)
{
	KYMO_SCOPE("net", "template", "value", value);
}

inline void quiet_cpp(state now, const std::string &string)
{
	KYMO_SCOPE("net", "values", "state", now, "string", string, "made", string + "!", "limit",
		   counted::limit);
	KYMO_SCOPE_DYN("net", string, "null", nullptr);
	KYMO_INSTANT("net", "lambda", "value", [&string] { return string.size(); }());
#if __cplusplus >= 201703L
	KYMO_INSTANT("net", "view", "view", std::string_view(string).substr(1));
#endif
	const auto inside = [&] { KYMO_SCOPE("net", "in a lambda", "string", string); };
	inside();
	quiet_template(string);
	quiet_template(now);
}
#endif
