/* SPDX-License-Identifier: MIT */
/*
 * test_trace_event.cc: trace_event.h in C++11: the cases that C has too, then the values, names and
 * times that only C++ has. Compiled with KYMO_EMBEDDED, it needs no libkymo.
 */
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "trace_event_cases.inc.h"

namespace
{

/* As Chromium, V8 and Node have them. */
class ConvertableToTraceFormat
{
      public:
	virtual ~ConvertableToTraceFormat() = default;
	virtual void AppendAsTraceFormat(std::string *out) const = 0;
};
class TracedValue : public ConvertableToTraceFormat
{
      public:
	explicit TracedValue(std::string text) : text_(std::move(text))
	{
	}
	void AppendAsTraceFormat(std::string *out) const override
	{
		*out += "{\"text\":\"" + text_ + "\"}";
	}

      private:
	std::string text_;
};
struct TimeDelta {
	int64_t us;
	int64_t InMicroseconds() const
	{
		return us;
	}
};
struct TimeTicks {
	int64_t us;
	TimeDelta since_origin() const
	{
		return TimeDelta{us};
	}
};
struct OldTimeTicks {
	int64_t us;
	int64_t ToInternalValue() const
	{
		return us;
	}
};
struct PlatformThreadId {
	int value;
	int raw() const
	{
		return value;
	}
};
struct Characters { /* as std::string_view */
	const char *at;
	size_t bytes;
	const char *data() const
	{
		return at;
	}
	size_t size() const
	{
		return bytes;
	}
};
struct StaticString { /* as perfetto::StaticString */
	const char *value;
};

enum class Phase : unsigned char { kFirst = 1, kSecond = 200 };
enum Plain { kMinus = -3 };
struct Bits {
	unsigned low : 3;
	int high : 5;
};
struct Constants {
	static const int kUndefined = 41; /* no definition: only its value may be used */
	static constexpr const char *kName = "Constants::kName";
};
constexpr char kCategory[] = "test";
constexpr const char *kPointerCategory = "test";
const char *const kKey = "kKey";

int evaluated;
std::string count_evaluation(const char *text)
{
	evaluated++;
	return text;
}

void emit_values_of_cpp()
{
	const std::string string = "std::string";
	const Bits bits = {5, -7};
	std::atomic<int> atomic(12);
	TracedValue value("raw");
	std::unique_ptr<TracedValue> unique(new TracedValue("unique"));
	std::unique_ptr<ConvertableToTraceFormat> base(new TracedValue("base"));
	std::unique_ptr<TracedValue> empty;
	std::unique_ptr<TracedValue> big(new TracedValue(std::string(1000, 'y')));

	TRACE_EVENT_INSTANT1("test", "c++ bool", THREAD, "v", true);
	TRACE_EVENT_INSTANT1("test", "enum class", THREAD, "v", Phase::kSecond);
	TRACE_EVENT_INSTANT1("test", "enum", THREAD, "v", kMinus);
	TRACE_EVENT_INSTANT2("test", "bit-fields", THREAD, "low", bits.low, "high", bits.high);
	TRACE_EVENT_INSTANT1("test", "undefined member", THREAD, "v", Constants::kUndefined);
	TRACE_EVENT_ASYNC_BEGIN0("test", "undefined id", Constants::kUndefined);
	TRACE_EVENT_INSTANT1("test", "atomic", THREAD, "v", atomic);
	TRACE_EVENT_INSTANT1("test", "wchar_t", THREAD, "v", L'w');
	TRACE_EVENT_INSTANT1("test", "nullptr", THREAD, "v", nullptr);
	TRACE_EVENT_INSTANT1("test", "function", THREAD, "v", &emit_values_of_cpp);
	TRACE_EVENT_INSTANT1("test", "std::string", THREAD, "v", string);
	TRACE_EVENT_INSTANT1("test", "temporary", THREAD, "v", string + " made here");
	TRACE_EVENT_INSTANT1("test", "temporary c_str", THREAD, "v",
			     TRACE_STR_COPY((string + " made there").c_str()));
	TRACE_EVENT_INSTANT1("test", "characters", THREAD, "v", (Characters{"abcdef", 3}));
	TRACE_EVENT_INSTANT1("test", "long characters", THREAD, "v",
			     (Characters{long_text, sizeof(long_text) - 1}));
	TRACE_EVENT_INSTANT1("test", "unique", THREAD, "v", std::move(unique));
	TRACE_EVENT_INSTANT1("test", "base", THREAD, "v", std::move(base));
	TRACE_EVENT_INSTANT1("test", "raw", THREAD, "v", &value);
	TRACE_EVENT_INSTANT1("test", "empty", THREAD, "v", std::move(empty));
	TRACE_EVENT_INSTANT1("test", "big", THREAD, "v", std::move(big));
	TRACE_EVENT2("test", "made in place", "v",
		     std::unique_ptr<TracedValue>(new TracedValue("new")), "n", 2);
	TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID(
		"test", "object", &value,
		std::unique_ptr<ConvertableToTraceFormat>(new TracedValue("state")));
	TRACE_EVENT_INSTANT2("test", "times", THREAD, "new", TimeTicks{5}, "old", OldTimeTicks{6});
	TRACE_COUNTER1("test", "atomic counter", atomic);
}

void emit_times()
{
	TRACE_EVENT_INSTANT_WITH_TIMESTAMP0("test", "time ticks", THREAD, TimeTicks{TIME});
	TRACE_EVENT_INSTANT_WITH_TIMESTAMP0("test", "old time ticks", THREAD, OldTimeTicks{TIME});
	TRACE_EVENT_INSTANT_WITH_TIMESTAMP0("test", "double time", THREAD, double(TIME));
	TRACE_EVENT_BEGIN_WITH_ID_TID_AND_TIMESTAMP0("test", "thread id", 1, PlatformThreadId{TID},
						     TimeTicks{TIME});
	TRACE_EVENT_CLOCK_SYNC_ISSUER(std::string("ticks-id"), TimeTicks{3000}, TimeTicks{4000});
}

template <typename Type> void emit_in_template(const Type &value)
{
	TRACE_EVENT1("test", "template", "v", value);
	TRACE_EVENT_INSTANT1(kCategory, Constants::kName, THREAD, kKey, value);
}

class Worker
{
      public:
	void run()
	{
		TRACE_EVENT_NESTABLE_ASYNC_BEGIN1("test", "worker", this, "count", count_);
		const auto step = [this](const char *name) {
			TRACE_EVENT1("test", name, "count", ++count_);
		};
		step("lambda");
		TRACE_EVENT_NESTABLE_ASYNC_END0("test", "worker", TRACE_ID_LOCAL(this));
	}

      private:
	int count_ = 0;
};

void emit_names_of_cpp(int round)
{
	const std::string name = "std::string name " + std::to_string(round);
	const std::string key = "key of " + std::to_string(round);
	TRACE_EVENT_COPY_INSTANT1("test", name.c_str(), THREAD, "v", round);
	TRACE_EVENT_INSTANT0("test", name + " as it is", THREAD);
	TRACE_EVENT_INSTANT0("test", (StaticString{round ? "static 1" : "static 0"}), THREAD);
	if (round)
		return;
	TRACE_EVENT_COPY_INSTANT1("test", "copied key", THREAD, key.c_str(), round);
	TRACE_EVENT_INSTANT0(kPointerCategory, TRACE_FUNC, THREAD);
	TRACE_EVENT_INSTANT0("test", __func__, THREAD);
	TRACE_EVENT_INSTANT0("off", count_evaluation("off"), THREAD);
	TRACE_EVENT1("off", count_evaluation("off"), "v", count_evaluation("off"));
	TRACE_EVENT_INSTANT1("test", count_evaluation("once"), THREAD, "v",
			     count_evaluation("value"));
	TRACE_EVENT_ASYNC_BEGIN0("test", "composite", TRACE_ID_WITH_SCOPE("scope", 1, 2, 3));
	TRACE_EVENT_ASYNC_BEGIN0("test", "composite turned", TRACE_ID_WITH_SCOPE("scope", 1, 3, 2));
}

const struct seen *instant(const char *name)
{
	return find(KYMO_KIND_INSTANT, name);
}

void numbers_of_all_types_are_numbers(void **)
{
	assert_true(arg_is_bool(instant("c++ bool"), 0, "v", 1));
	assert_true(arg_is_uint(instant("enum class"), 0, "v", 200));
	assert_true(arg_is_int(instant("enum"), 0, "v", -3));
	assert_true(arg_is_uint(instant("bit-fields"), 0, "low", 5));
	assert_true(arg_is_int(instant("bit-fields"), 1, "high", -7));
	assert_true(arg_is_int(instant("undefined member"), 0, "v", 41));
	assert_true(check_id("undefined id", 41, 0));
	assert_true(arg_is_int(instant("atomic"), 0, "v", 12));
	assert_true(arg_is_int(instant("wchar_t"), 0, "v", 'w'));
	assert_true(arg_is_pointer(instant("nullptr"), 0, "v", nullptr));
	assert_non_null(arg_at(instant("function"), 0, "v", KYMO_TYPE_POINTER));
	assert_true(arg_is_int(find(KYMO_KIND_COUNTER, "atomic counter"), 0, "value", 12));
}

void string_objects_are_strings(void **)
{
	assert_true(arg_is_string(instant("std::string"), 0, "v", "std::string"));
	assert_true(arg_is_string(instant("temporary"), 0, "v", "std::string made here"));
	assert_true(arg_is_string(instant("temporary c_str"), 0, "v", "std::string made there"));
	assert_true(arg_is_string(instant("characters"), 0, "v", "abc"));
	const struct seen_arg *cut = arg_at(instant("long characters"), 0, "v", KYMO_TYPE_STRING);
	assert_true(cut && cut->cut && strlen(cut->string) == KYMO_STRING_MAX);
}

void convertables_are_the_text_they_make(void **)
{
	assert_true(arg_is_string(instant("unique"), 0, "v", "{\"text\":\"unique\"}"));
	assert_true(arg_is_string(instant("base"), 0, "v", "{\"text\":\"base\"}"));
	assert_true(arg_is_string(instant("raw"), 0, "v", "{\"text\":\"raw\"}"));
	assert_true(arg_is_string(instant("empty"), 0, "v", "(null)"));
	const struct seen_arg *cut = arg_at(instant("big"), 0, "v", KYMO_TYPE_STRING);
	assert_true(cut && cut->cut);
	const struct seen *scope = find(KYMO_KIND_BEGIN, "made in place");
	assert_true(arg_is_string(scope, 0, "v", "{\"text\":\"new\"}"));
	assert_true(arg_is_int(scope, 1, "n", 2));
	const struct seen *object = find(KYMO_KIND_OBJECT_SNAPSHOT, "object");
	assert_true(arg_is_string(object, 0, "snapshot", "{\"text\":\"state\"}"));
	assert_true(object->flags & KYMO_SITE_LOCAL_ID);
}

bool at_time(uint32_t kind, const char *name)
{
	const struct seen *s = find(kind, name);
	return s && labs((long)(s->monotonic_us - TIME)) < 1000000;
}

void times_and_threads_may_be_objects(void **)
{
	assert_true(at_time(KYMO_KIND_INSTANT, "time ticks"));
	assert_true(at_time(KYMO_KIND_INSTANT, "old time ticks"));
	assert_true(at_time(KYMO_KIND_INSTANT, "double time"));
	assert_true(at_time(KYMO_KIND_ASYNC_BEGIN, "thread id"));
	assert_int_equal(find(KYMO_KIND_ASYNC_BEGIN, "thread id")->tid, TID);
	assert_true(arg_is_int(instant("times"), 0, "new", 5));
	assert_true(arg_is_int(instant("times"), 1, "old", 6));
	assert_true(arg_is_int(clock_sync_of("ticks-id"), 1, "issue_ts", 3000));
}

bool in_template(const struct seen *s)
{
	if (strcmp(s->name, Constants::kName) != 0 || s->args_count != 1)
		return false;
	switch (s->args[0].type) {
	case KYMO_TYPE_INT:
		return arg_is_int(s, 0, "kKey", 1);
	case KYMO_TYPE_DOUBLE:
		return arg_is_double(s, 0, "kKey", 0.5);
	default:
		return arg_is_string(s, 0, "kKey", "text");
	}
}

void templates_and_lambdas_have_their_own_events(void **)
{
	size_t found = 0;
	for (size_t i = 0; i < seen_count; i++)
		found += in_template(&seen_events[i]);
	assert_int_equal(found, 3);
	assert_true(arg_is_int(find(KYMO_KIND_BEGIN, "lambda"), 0, "count", 1));
	assert_int_equal(find(KYMO_KIND_ASYNC_BEGIN, "worker")->id,
			 find(KYMO_KIND_ASYNC_END, "worker")->id);
}

void names_may_be_objects(void **)
{
	assert_true(check_name("std::string name 0", "test", "v", 0));
	assert_true(check_name("std::string name 1", "test", "v", 1));
	assert_true(check_name("std::string name 1 as it is", "test", nullptr, 0));
	assert_true(check_name("static 0", "test", nullptr, 0));
	assert_true(check_name("static 1", "test", nullptr, 0));
	assert_true(check_name("copied key", "test", "key of 0", 0));
	assert_true(check_name("emit_names_of_cpp", "test", nullptr, 0));
}

void everything_is_evaluated_once_or_not_at_all(void **)
{
	assert_non_null(instant("once"));
	assert_int_equal(evaluated, 2);
}

void an_id_of_several_numbers_depends_on_each(void **)
{
	assert_true(id_of("composite") != id_of("composite turned"));
}

/* As base::PendingTask has it. */
struct PostedFrom {
	const char *file_name() const
	{
		return "file.cc";
	}
	const char *function_name() const
	{
		return "Post";
	}
};
struct PendingTask {
	PostedFrom posted_from;
};
class Isolate;

const unsigned char *flag_on, *flag_off;

void emit_of_engines(Isolate *isolate)
{
	const PendingTask task = {};
	TRACE_TASK_EXECUTION("run task", task);
	TRACE_EVENT_BINARY_EFFICIENT0("test", "efficient");
	TRACE_EVENT_CALL_STATS_SCOPED(isolate, "test", "call stats");
	TRACE_EVENT_INSTANT_WITH_TIMESTAMP0("test", "now", TRACE_EVENT_SCOPE_THREAD,
					    TRACE_TIME_TICKS_NOW());
	flag_on = TRACE_EVENT_API_GET_CATEGORY_GROUP_ENABLED("test");
	flag_off = TRACE_EVENT_API_GET_CATEGORY_GROUP_ENABLED("off");
	assert_true(*flag_on != 0 && *flag_off == 0);
}

void macros_of_engines_are_spans(void **)
{
	const seen *task = find(KYMO_KIND_BEGIN, "run task");
	assert_true(task && task->args_count == 2);
	assert_string_equal(task->args[0].string, "file.cc");
	assert_string_equal(task->args[1].string, "Post");
	assert_non_null(find(KYMO_KIND_BEGIN, "efficient"));
	assert_non_null(find(KYMO_KIND_BEGIN, "call stats"));
	assert_true(instant("now")->monotonic_us > 0);
	assert_true(TRACE_TIME_NOW() > TRACE_TIME_TICKS_NOW());
}

/* Programs have these numbers in their files and interfaces. */
void constants_are_chromiums(void **)
{
	assert_int_equal(TRACE_EVENT_PHASE_COMPLETE, 'X');
	assert_int_equal(TRACE_EVENT_PHASE_NESTABLE_ASYNC_INSTANT, 'n');
	assert_int_equal(TRACE_EVENT_PHASE_LINK_IDS, '=');
	assert_int_equal(TRACE_VALUE_TYPE_BOOL, 1);
	assert_int_equal(TRACE_VALUE_TYPE_CONVERTABLE, 8);
	assert_int_equal(TRACE_EVENT_FLAG_MANGLE_ID, 4);
}

int record(void **)
{
	seen_start();
	emit_of_engines(nullptr);
	emit_common();
	emit_values_of_cpp();
	emit_times();
	emit_in_template(1);
	emit_in_template(0.5);
	emit_in_template(std::string("text"));
	Worker().run();
	emit_names_of_cpp(0);
	emit_names_of_cpp(1);
	seen_stop();
	return 0;
}

} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		COMMON_TESTS,
		cmocka_unit_test(numbers_of_all_types_are_numbers),
		cmocka_unit_test(string_objects_are_strings),
		cmocka_unit_test(convertables_are_the_text_they_make),
		cmocka_unit_test(times_and_threads_may_be_objects),
		cmocka_unit_test(templates_and_lambdas_have_their_own_events),
		cmocka_unit_test(names_may_be_objects),
		cmocka_unit_test(everything_is_evaluated_once_or_not_at_all),
		cmocka_unit_test(an_id_of_several_numbers_depends_on_each),
		cmocka_unit_test(macros_of_engines_are_spans),
		cmocka_unit_test(constants_are_chromiums),
	};
	return cmocka_run_group_tests(tests, record, nullptr);
}
