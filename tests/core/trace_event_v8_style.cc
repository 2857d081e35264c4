/* SPDX-License-Identifier: MIT */
/*
 * trace_event_v8_style.cc: trace events as V8, Node, Skia and Chromium's base library write them. It
 * must compile without a warning, with kymo and with KYMO_DISABLE. It runs without a session: the
 * categories are off, and a trace event that evaluated one of its arguments would make it fail.
 */
#include <kymo/trace_event.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace
{

int evaluated;

} // namespace

namespace v8
{

class ConvertableToTraceFormat
{
      public:
	virtual ~ConvertableToTraceFormat() = default;
	virtual void AppendAsTraceFormat(std::string *out) const = 0;
};

namespace base
{
class TimeTicks
{
      public:
	explicit TimeTicks(int64_t us) : us_(us)
	{
	}
	int64_t ToInternalValue() const
	{
		return us_;
	}

      private:
	int64_t us_;
};
} // namespace base

namespace tracing
{
class TracedValue : public ConvertableToTraceFormat
{
      public:
	static std::unique_ptr<TracedValue> Create()
	{
		evaluated++;
		return std::unique_ptr<TracedValue>(new TracedValue());
	}
	void SetInteger(const char *name, int value)
	{
		data_ += std::string(name) + ":" + std::to_string(value);
	}
	void AppendAsTraceFormat(std::string *out) const override
	{
		*out += "{" + data_ + "}";
	}

      private:
	TracedValue() = default;
	std::string data_;
};
} // namespace tracing

namespace internal
{

constexpr const char *kTraceCategory = TRACE_DISABLED_BY_DEFAULT("v8.compile");
constexpr char kTurbofan[] =
	TRACE_DISABLED_BY_DEFAULT("v8.turbofan") "," TRACE_DISABLED_BY_DEFAULT("v8.wasm.turbofan");

enum class CodeKind { INTERPRETED_FUNCTION, TURBOFAN_JS };

const char *CodeKindToString(CodeKind kind)
{
	evaluated++;
	return kind == CodeKind::TURBOFAN_JS ? "TURBOFAN_JS" : "INTERPRETED_FUNCTION";
}

class CompilationJob
{
      public:
	explicit CompilationJob(int id) : id_(id)
	{
		TRACE_EVENT_OBJECT_CREATED_WITH_ID(TRACE_DISABLED_BY_DEFAULT("v8.compile"),
						   "v8::internal::CompilationJob", this);
	}
	~CompilationJob()
	{
		TRACE_EVENT_OBJECT_DELETED_WITH_ID(TRACE_DISABLED_BY_DEFAULT("v8.compile"),
						   "v8::internal::CompilationJob", this);
	}

	void Prepare()
	{
		TRACE_EVENT_WITH_FLOW0(kTraceCategory, "V8.OptimizePrepare", this,
				       TRACE_EVENT_FLAG_FLOW_OUT);
		TRACE_EVENT1("v8,devtools.timeline," TRACE_DISABLED_BY_DEFAULT("v8.compile"),
			     "v8.compile", "fileName", TRACE_STR_COPY(file_name().c_str()));
	}
	void Execute()
	{
		TRACE_EVENT_WITH_FLOW1(TRACE_DISABLED_BY_DEFAULT("v8.compile"),
				       "V8.OptimizeBackground", TRACE_ID_LOCAL(id_),
				       TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT, "kind",
				       CodeKindToString(CodeKind::TURBOFAN_JS));
		TRACE_EVENT_BEGIN2(kTurbofan, PhaseName(), "kind", CodeKind::TURBOFAN_JS, "job",
				   id_);
		TRACE_EVENT_END0(kTurbofan, PhaseName());
	}
	void Finalize(bool success)
	{
		TRACE_EVENT_WITH_FLOW2(kTraceCategory, success ? "V8.Finalize" : "V8.Bailout", this,
				       TRACE_EVENT_FLAG_FLOW_IN, "success", success, "id", id_);
		TRACE_EVENT_INSTANT1(TRACE_DISABLED_BY_DEFAULT("v8.compile"), "V8.Finalized",
				     TRACE_EVENT_SCOPE_THREAD, "data", Snapshot());
	}

      private:
	std::string file_name() const
	{
		evaluated++;
		return "file" + std::to_string(id_);
	}
	static const char *PhaseName()
	{
		evaluated++;
		return "V8.TFPhase";
	}
	std::unique_ptr<ConvertableToTraceFormat> Snapshot() const
	{
		std::unique_ptr<tracing::TracedValue> value = tracing::TracedValue::Create();
		value->SetInteger("id", id_);
		return std::unique_ptr<ConvertableToTraceFormat>(std::move(value));
	}

	int id_;
};

class CpuProfile
{
      public:
	void StreamPendingTraceEvents()
	{
		bool enabled = true;
		TRACE_EVENT_CATEGORY_GROUP_ENABLED(TRACE_DISABLED_BY_DEFAULT("v8.cpu_profiler"),
						   &enabled);
		if (!enabled)
			return;
		auto value = tracing::TracedValue::Create();
		value->SetInteger("startTime", 1);
		TRACE_EVENT_SAMPLE_WITH_ID1(TRACE_DISABLED_BY_DEFAULT("v8.cpu_profiler"), "Profile",
					    id_, "data", std::move(value));
	}

      private:
	static std::atomic<uint32_t> last_id_;
	const uint32_t id_ = last_id_++;
};
std::atomic<uint32_t> CpuProfile::last_id_;

void ReportTimestamps(const std::string &label, uint64_t hash, base::TimeTicks start)
{
	TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1("v8", label.c_str(), hash, start,
							      "startTime", start);
	TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP0("v8", label.c_str(), hash, 20683);
	TRACE_EVENT_MARK_WITH_TIMESTAMP2("v8-cat", "mark", 13832, "a", 1, "b", 2);
	TRACE_COUNTER_ID2(TRACE_DISABLED_BY_DEFAULT("v8.gc"), "heap", hash, "used", 1u, "limit",
			  2u);
}

} // namespace internal
} // namespace v8

namespace node
{

#define TRACING_CATEGORY_NODE "node"
#define TRACING_CATEGORY_NODE1(one) TRACING_CATEGORY_NODE "," TRACING_CATEGORY_NODE "." #one
#define TRACING_CATEGORY_NODE2(one, two)                                                           \
	TRACING_CATEGORY_NODE "," TRACING_CATEGORY_NODE "." #one "," TRACING_CATEGORY_NODE         \
			      "." #one "." #two
#define TRACE_NAME(name) "fs.sync." #name
#define FS_SYNC_TRACE_BEGIN(syscall, ...)                                                          \
	TRACE_EVENT_BEGIN(TRACING_CATEGORY_NODE2(fs, sync), TRACE_NAME(syscall), __VA_ARGS__)
#define FS_SYNC_TRACE_END(syscall, ...)                                                            \
	TRACE_EVENT_END(TRACING_CATEGORY_NODE2(fs, sync), TRACE_NAME(syscall), __VA_ARGS__)

const char *const provider_names[] = {"TIMERWRAP", "TCPWRAP"};

std::unique_ptr<v8::ConvertableToTraceFormat> CastTracedValue(
	std::unique_ptr<v8::tracing::TracedValue> value)
{
	return std::unique_ptr<v8::ConvertableToTraceFormat>(std::move(value));
}

class AsyncWrap
{
      public:
	explicit AsyncWrap(size_t provider) : provider_(provider)
	{
	}
	double get_async_id() const
	{
		evaluated++;
		return 7;
	}
	void EmitTraceEventBefore() const
	{
		TRACE_EVENT_NESTABLE_ASYNC_BEGIN0(TRACING_CATEGORY_NODE1(async_hooks),
						  provider_names[provider_],
						  static_cast<int64_t>(get_async_id()));
	}
	void AsyncReset() const
	{
		TRACE_EVENT_NESTABLE_ASYNC_BEGIN1(
			TRACING_CATEGORY_NODE1(async_hooks), provider_names[provider_],
			static_cast<int64_t>(get_async_id()), "data",
			CastTracedValue(v8::tracing::TracedValue::Create()));
	}
	void Connect(const std::vector<char> &path, int status) const
	{
		TRACE_EVENT_NESTABLE_ASYNC_BEGIN2(TRACING_CATEGORY_NODE2(net, native), "connect",
						  this, "path_type",
						  path[0] ? "file" : "abstract socket", "pipe_path",
						  TRACE_STR_COPY(path.data()));
		TRACE_EVENT_NESTABLE_ASYNC_END1(TRACING_CATEGORY_NODE2(net, native), "connect",
						this, "status", status);
	}

      private:
	size_t provider_;
};

void Start(const std::string &title, int64_t milestone_ns)
{
	TRACE_EVENT_METADATA1("__metadata", "process_name", "name", TRACE_STR_COPY(title.c_str()));
	TRACE_EVENT_METADATA1("__metadata", "thread_name", "name", "JavaScriptMainThread");
	TRACE_EVENT_INSTANT_WITH_TIMESTAMP0(TRACING_CATEGORY_NODE1(bootstrap), title.c_str(),
					    TRACE_EVENT_SCOPE_THREAD, milestone_ns / 1000);
	TRACE_EVENT0(TRACING_CATEGORY_NODE1(environment), "RunTimers");
	FS_SYNC_TRACE_BEGIN(open, "path", TRACE_STR_COPY(title.c_str()));
	FS_SYNC_TRACE_END(open, "result", -1);
	TRACE_COUNTER2(TRACING_CATEGORY_NODE2(promises, rejections), "rejections", "unhandled", 1,
		       "handledAfter", 2);
}

} // namespace node

namespace skia
{

struct Pipeline {
	std::string fLabel = "label";
	const char *getLabel() const
	{
		evaluated++;
		return fLabel.c_str();
	}
	uint32_t hash() const
	{
		evaluated++;
		return 5;
	}
};

void flush(const Pipeline &pipeline, bool fromPrecompile, float used, size_t bytes)
{
	static const char *const kNames[2] = {"CacheHit", "CacheHitForPrecompile"};
	TRACE_EVENT0_ALWAYS("skia.gpu", TRACE_FUNC);
	TRACE_EVENT2("skia.gpu", TRACE_FUNC, "used", used / 2, "bytes", bytes);
	TRACE_EVENT_INSTANT2("skia.gpu", TRACE_STR_STATIC(kNames[fromPrecompile]),
			     TRACE_EVENT_SCOPE_THREAD, "key", pipeline.hash(), "compilationID", 1);
	TRACE_EVENT_INSTANT1_ALWAYS("skia.shaders", TRACE_STR_COPY(pipeline.getLabel()),
				    TRACE_EVENT_SCOPE_THREAD, "area", (int)used);
	TRACE_EVENT_INSTANT0("skia.gpu", "Glyph atlas full", TRACE_EVENT_SCOPE_NAME_THREAD);
	TRACE_COUNTER1_ALWAYS("skia.gpu.cache", "ganesh Total GPU Bytes", bytes);
}

} // namespace skia

namespace base
{

struct Location {
	std::string function = "function";
	const char *function_name() const
	{
		evaluated++;
		return function.c_str();
	}
};

void RunTask(const Location &posted_from, uint64_t task_id, const char *queue_function)
{
	TRACE_EVENT_WITH_FLOW0(TRACE_DISABLED_BY_DEFAULT("toplevel.flow"), queue_function,
			       TRACE_ID_MANGLE(task_id), TRACE_EVENT_FLAG_FLOW_IN);
	TRACE_EVENT1("toplevel", "ThreadControllerImpl::RunTask", "src",
		     posted_from.function_name());
	TRACE_EVENT_ASYNC_STEP_INTO1("base", "task", task_id, "running", "src",
				     posted_from.function_name());
	TRACE_EVENT_NESTABLE_ASYNC_INSTANT0(
		"base", "task", TRACE_ID_WITH_SCOPE("base::Task", TRACE_ID_LOCAL(task_id)));
	bool is_new = true;
	TRACE_EVENT_IS_NEW_TRACE(&is_new);
	if (is_new)
		evaluated++;
}

} // namespace base

int main()
{
	for (int round = 0; round < 2; round++) {
		v8::internal::CompilationJob job(round);
		job.Prepare();
		job.Execute();
		job.Finalize(round != 0);
		v8::internal::CpuProfile().StreamPendingTraceEvents();
		v8::internal::ReportTimestamps("label", 5, v8::base::TimeTicks(1000));
		const node::AsyncWrap wrap(1);
		wrap.EmitTraceEventBefore();
		wrap.AsyncReset();
		wrap.Connect(std::vector<char>(4), 0);
		node::Start("node", 5000000);
		skia::flush(skia::Pipeline(), round != 0, 0.5f, 4096);
		base::RunTask(base::Location(), 9, round ? "PostTask" : "PostDelayedTask");
	}
	if (evaluated)
		fprintf(stderr, "%d arguments were evaluated with nobody listening\n", evaluated);
	return evaluated != 0;
}
