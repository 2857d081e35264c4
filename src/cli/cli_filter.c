/* SPDX-License-Identifier: MIT */
/* cli_filter.c: see cli.h. */
#include "cli/cli.h"

#include "base/nearest.h"
#include "formats/load.h"
#include "query/sample_stats.h"

const struct ky_option ky_cli_filter_range[] = {
	{"from", KY_OPTION_AT(TEXT, struct ky_cli_filter, from), .argument = "TIME",
	 .help = "only what overlaps the time from here: 1.5s or 200ms after the beginning of the "
		 "trace, -1s before its end, @NS of its own clock",
	 .more = "A time is a number with a unit (ns, us, ms, s, min, h). After an `@` the unit may be left "
		 "out: nanoseconds."},
	{"to", KY_OPTION_AT(TEXT, struct ky_cli_filter, to), .argument = "TIME",
	 .help = "and up to here; what extends past either end is cut off"},
	{0},
};

const struct ky_option ky_cli_filter_slices[] = {
	{"name", KY_OPTION_AT(TEXT, struct ky_cli_filter, name), .argument = "GLOB",
	 .help = "only slices with these names",
	 .more = "`*` matches any run of characters, `?` any one."},
	{"category", KY_OPTION_AT(TEXT, struct ky_cli_filter, category), .argument = "GLOB",
	 .help = "only slices in these categories",
	 .more = "If a category is a list, one member that matches is enough."},
	{0},
};

const struct ky_option ky_cli_filter_tasks[] = {
	{"thread", KY_OPTION_AT(TEXT, struct ky_cli_filter, thread), .argument = "GLOB|TID",
	 .help = "only these threads"},
	{"process", KY_OPTION_AT(TEXT, struct ky_cli_filter, process), .argument = "GLOB|PID",
	 .help = "only these processes"},
	{0},
};

const struct ky_choice ky_cli_by[] = {
	{.name = "name"}, {.name = "category"}, {.name = "thread"}, {.name = "process"}, {0}};

const struct ky_choice *ky_cli_formats(void)
{
	static struct ky_choice formats[64];
	for (unsigned i = 0; ky_readers[i] && i + 1 < sizeof(formats) / sizeof(formats[0]); i++)
		formats[i] = (struct ky_choice){.name = ky_readers[i]->name,
						.help = ky_readers[i]->title};
	return formats;
}

/* Parse a time; one of the trace's clock ('@') may be plain nanoseconds. */
static bool parse_time(const char *text, int64_t *ns)
{
	return *text == '@' ? ky_quantity_parse_ns(text + 1, ns)
			    : ky_quantity_parse_duration(text, ns);
}

/* Return where a time counts from: '+' the trace's beginning, '-' its end, '@' 0. */
static char base_of(const char *text)
{
	return *text == '@' || *text == '-' ? *text : '+';
}

int ky_cli_filter_check(const struct ky_cli_filter *filter)
{
	const char *const times[2] = {filter->from, filter->to};
	int64_t ns[2] = {0, 0};
	for (unsigned i = 0; i < 2; i++) {
		const char *const option = i ? "to" : "from";
		if (times[i] && ky_quantity_lacks_unit(times[i]))
			return ky_options_no_unit(option, times[i]);
		if (times[i] && !parse_time(times[i], &ns[i]))
			return ky_cli_usage(
				"--%s %s is not a time: use 1.5s, 200ms, -1s or @123456789", option,
				times[i]);
	}
	if (times[0] && times[1] && base_of(times[0]) == base_of(times[1]) && ns[1] <= ns[0])
		return ky_cli_usage("--to %s is not after --from %s", times[1], times[0]);
	return 0;
}

/* Return a time of the trace's clock; KY_TIME_NONE when the option is missing. */
static int64_t time_of(const char *text, const struct ky_trace *trace)
{
	int64_t ns, sum;
	if (!text || !parse_time(text, &ns))
		return KY_TIME_NONE;
	if (*text == '@')
		return ns;
	const int64_t base = *text == '-' ? trace->end_ns : trace->begin_ns;
	if (__builtin_add_overflow(base, ns, &sum))
		return ns < 0 ? INT64_MIN + 1 : INT64_MAX;
	return sum;
}

struct ky_stats_filter ky_cli_filter_of(const struct ky_cli_filter *filter,
					const struct ky_trace *trace)
{
	return (struct ky_stats_filter){
		.from_ns = time_of(filter->from, trace),
		.to_ns = time_of(filter->to, trace),
		.name = filter->name,
		.category = filter->category,
		.thread = filter->thread,
		.process = filter->process,
	};
}

/* ---- when nothing passes ---- */

static const char *given(const struct ky_cli_filter *filter, enum ky_stats_by by)
{
	const char *const options[] = {[KY_BY_NAME] = filter->name,
				       [KY_BY_CATEGORY] = filter->category,
				       [KY_BY_THREAD] = filter->thread,
				       [KY_BY_PROCESS] = filter->process};
	return options[by];
}

static bool any_passes(struct ky_trace *trace, const struct ky_stats_filter *filter, bool samples)
{
	struct ky_stats stats = {0};
	struct ky_function_stats functions = {0};
	const int error = samples ? ky_function_stats_make(&functions, trace, filter, 0)
				  : ky_stats_make(&stats, trace, KY_BY_NAME, filter);
	const bool any = error || functions.samples || stats.count;
	ky_stats_free(&stats);
	ky_function_stats_free(&functions);
	return any;
}

static void note_all(struct ky_nearest *nearest, const char *wanted, const struct ky_trace *trace,
		     const uint32_t *strings, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *const text = ky_text_of(trace, strings[i]);
		if (text && (!i || strings[i] != strings[i - 1]))
			ky_nearest_note(nearest, wanted, text);
	}
}

static void note_names(struct ky_nearest *nearest, const char *wanted, enum ky_stats_by by,
		       const struct ky_trace *trace, bool samples)
{
	if (by == KY_BY_THREAD)
		note_all(nearest, wanted, trace, trace->threads.name, trace->threads.rows.count);
	else if (by == KY_BY_PROCESS)
		note_all(nearest, wanted, trace, trace->processes.name,
			 trace->processes.rows.count);
	else if (samples)
		note_all(nearest, wanted, trace, trace->frames.name, trace->frames.rows.count);
	else
		note_all(nearest, wanted, trace,
			 by == KY_BY_NAME ? trace->slices.name : trace->slices.category,
			 trace->slices.rows.count);
}

int ky_cli_filter_nothing(const struct ky_cli_filter *filter, struct ky_trace *trace, bool samples)
{
	static const char *const options[] = {"name", "category", "thread", "process"};
	const char *const kind = samples ? "sample" : "slice";
	for (unsigned by = KY_BY_NAME; by <= KY_BY_PROCESS; by++) {
		const char *const wanted = given(filter, by);
		struct ky_stats_filter alone = {.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE};
		struct ky_nearest nearest = {0};
		char hint[KY_NEAREST_TEXT_BYTES + 16];
		if (!wanted)
			continue;
		*(by == KY_BY_NAME       ? &alone.name
		  : by == KY_BY_CATEGORY ? &alone.category
		  : by == KY_BY_THREAD   ? &alone.thread
					 : &alone.process) = wanted;
		if (any_passes(trace, &alone, samples))
			continue;
		note_names(&nearest, wanted, by, trace, samples);
		ky_nearest_hint(&nearest, "; 'kymo report' lists what there is", hint,
				sizeof(hint));
		ky_cli_error("no %s has a %s that matches '%s'%s", kind, options[by], wanted, hint);
		return KY_EXIT_NOTHING;
	}
	ky_cli_error("no %s matches these filters; without filters the trace has some", kind);
	return KY_EXIT_NOTHING;
}

const char *ky_cli_thread_label(char *buf, const struct ky_trace *trace, uint32_t thread)
{
	const char *const label = ky_stats_label_thread(buf, trace, thread);
	return *label ? label : "(no thread)";
}

const char *ky_cli_process_label(char *buf, const struct ky_trace *trace, uint32_t process)
{
	const char *const label = ky_stats_label_process(buf, trace, process);
	return *label ? label : "(no process)";
}

const char *ky_cli_name(const struct ky_trace *trace, uint32_t string)
{
	const char *const text = ky_text_of(trace, string);
	return text && *text ? text : "(no name)";
}

const char *ky_cli_by_label(char *buf, const struct ky_trace *trace, enum ky_stats_by by,
			    uint32_t key)
{
	switch (by) {
	case KY_BY_THREAD:
		return ky_cli_thread_label(buf, trace, key);
	case KY_BY_PROCESS:
		return ky_cli_process_label(buf, trace, key);
	case KY_BY_CATEGORY:
		return key && *ky_text_of(trace, key) ? ky_text_of(trace, key) : "(no category)";
	default:
		return ky_cli_name(trace, key);
	}
}
