/* SPDX-License-Identifier: MIT */
/*
 * fuzz_api.c: any bytes as JSON, a .kymo file or a Perfetto trace, viewed as by the page: every request gets a response, and
 * those with the trace's own numbers succeed.
 */
#include "fuzz_kymo.h"
#include "server/api.h"
#include "server/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define ANSWER_BYTES_MAX (256u << 20)

static void ask(struct ky_api *answers, const char *path, const struct ky_api_parameter *parameters,
		uint32_t count)
{
	const struct ky_api_request question = {
		.path = path, .parameters = parameters, .parameters_count = count};
	struct ky_api_response answer;
	ky_api_respond(answers, &question, &answer);
	fuzz_check(answer.status == 200);
	fuzz_check(answer.type && answer.body.bytes < ANSWER_BYTES_MAX);
	ky_buffer_free(&answer.body);
}

static void ask_events(struct ky_api *answers, const char *kind, uint32_t count)
{
	const uint32_t ids[] = {0, count / 2, count - 1};
	for (unsigned i = 0; count && i < 3; i++) {
		char id[16];
		snprintf(id, sizeof(id), "%u", ids[i]);
		const struct ky_api_parameter parameters[] = {{"kind", kind}, {"id", id}};
		ask(answers, "api/event", parameters, 2);
	}
}

static void ask_range(struct ky_api *answers, int64_t from, int64_t to)
{
	char a[32], b[32];
	snprintf(a, sizeof(a), "%lld", (long long)from);
	snprintf(b, sizeof(b), "%lld", (long long)to);
	const struct ky_api_parameter parameters[] = {{"from", a}, {"to", b}, {"of", "slices"}};
	const struct ky_api_parameter samples[] = {{"from", a}, {"to", b}, {"of", "samples"}};
	ask(answers, "api/range", parameters, 2);
	ask(answers, "api/flame", parameters, 3);
	ask(answers, "api/flame", samples, 3);
}

static void ask_search(struct ky_api *answers, const char *text)
{
	const struct ky_api_parameter first[] = {{"q", text}, {"at", "0"}};
	const struct ky_api_parameter near[] = {{"q", text}, {"near", "1000"}, {"forward", "0"}};
	ask(answers, "api/search", first, 2);
	ask(answers, "api/search", near, 3);
}

/* The whole trace on one screen, and its start at the finest. */
static void ask_tiles(struct ky_api *answers, const struct ky_view *view)
{
	for (uint32_t i = 0; i < view->tracks_count && i < 64; i++) {
		char track[16];
		snprintf(track, sizeof(track), "%u", i);
		const struct ky_api_parameter coarse[] = {
			{"g", "1"}, {"level", "46"}, {"first", "0"}, {"tracks", track}};
		const struct ky_api_parameter fine[] = {
			{"g", "1"}, {"level", "0"}, {"first", "0"}, {"tracks", track}};
		if (view->tracks[i].kind == KY_VIEW_GROUP)
			continue;
		ask(answers, "api/tiles", coarse, 4);
		ask(answers, "api/tiles", fine, 4);
	}
}

static void ask_all(struct ky_api *answers, const struct ky_view *view)
{
	const struct ky_trace *const trace = view->trace;
	ask(answers, "api/trace", NULL, 0);
	ask_events(answers, "slices", trace->slices.rows.count);
	ask_events(answers, "counter", trace->counters.rows.count);
	ask_events(answers, "sched", trace->sched.rows.count);
	ask_events(answers, "state", trace->thread_states.rows.count);
	ask_events(answers, "samples", view->sample_spans.count);
	ask_events(answers, "loss", trace->losses.rows.count);
	ask_range(answers, INT64_MIN, INT64_MAX);
	ask_range(answers, 0, 1000000);
	ask_search(answers, "a");
	ask_search(answers, "arg:1");
	ask_tiles(answers, view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct ky_view_options options = {.generation = 1, .base_ns = KY_TIME_NONE};
	struct ky_trace *trace = fuzz_load_any(data, bytes);
	struct ky_view *view;
	struct ky_api *answers;
	if (!trace)
		return 0;
	fuzz_check(ky_view_open(&view, trace, &options) == 0);
	fuzz_check(ky_api_open(&answers, view) == 0);
	ask_all(answers, view);
	ky_api_close(&answers);
	ky_view_close(&view);
	return 0;
}
