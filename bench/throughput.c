/* SPDX-License-Identifier: MIT */
/*
 * throughput.c: spans at full speed from one thread to a finished file, in each format. Each runs in a
 * process of its own, so that each pays for the first touch of its ring. The time to write as many bytes to
 * a file in the same directory is shown beside it.
 */
#include "bench.h"
#include "child.h"
#include "repeat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/session.h>

#define SPANS 10000000u
#define SPANS_QUICK 20000u
/* The formats take turns, and the shortest times count. */
#define TURNS 3
#define TURNS_QUICK 1
#define RING_BYTES (256u << 20)
#define WRITE_BYTES (256u << 10)

static const struct report_column columns[] = {
	{"emit_s", "emit, s", 2},
	{"total_s", "in all, s", 2},
	{"target_s", "target, s", 0},
	{"span_bytes", "bytes/span", 1},
	{"lost", "lost", 0},
	{"write_s", "write(2), s", 2},
	{NULL, NULL, 0},
};

static const struct {
	const char *suffix;
	double target_s; /* NAN: no target */
} formats[] = {{".kymo", 1}, {".pftrace", 3}, {".json", 4}, {".fxt", NAN}, {".json.gz", NAN}};
#define FORMATS_COUNT (sizeof(formats) / sizeof(formats[0]))

struct result {
	double emit_s;
	double total_s;
	double write_s; /* of as many bytes, plainly */
	uint64_t events;
	uint64_t lost;
	uint64_t bytes;
	int error;
};

static double seconds_since(uint64_t begin_ns)
{
	return (double)(repeat_now_ns() - begin_ns) / 1e9;
}

int throughput_child(const char *path, uint32_t spans)
{
	struct kymo_session *session;
	const struct kymo_options options = {
		.size = sizeof(options), .path = path, .ring_bytes = RING_BYTES};
	struct kymo_stats stats = {.size = sizeof(stats)};
	int error = kymo_session_start(&session, &options);
	const uint64_t begin_ns = repeat_now_ns();
	for (uint32_t i = 0; error == 0 && i < spans; i++) {
		KYMO_SCOPE(LOOPS_CATEGORY, "span");
	}
	const double emit_s = seconds_since(begin_ns);
	if (error == 0) {
		kymo_session_flush(session);
		kymo_session_stats(session, &stats);
		error = kymo_session_stop(&session);
	}
	printf("%f %f %" PRIu64 " %" PRIu64 " %d\n", emit_s, seconds_since(begin_ns), stats.events,
	       stats.lost, error);
	return 0;
}

static bool stream(const struct settings *settings, const char *path, uint32_t spans,
		   struct result *result)
{
	char number[16], output[128] = "";
	snprintf(number, sizeof(number), "%" PRIu32, spans);
	const char *const argv[] = {settings->self, "--stream", path, "--spans", number, NULL};
	return child_run(argv, output, sizeof(output)) &&
	       sscanf(output, "%lf %lf %" SCNu64 " %" SCNu64 " %d", &result->emit_s,
		      &result->total_s, &result->events, &result->lost, &result->error) == 5;
}

/* Return the time to write as many bytes in large pieces, or NAN. */
static double write_plainly(const char *path, uint64_t bytes)
{
	static char piece[WRITE_BYTES];
	memset(piece, 'k', sizeof(piece)); /* not the page of zeros */
	const uint64_t begin_ns = repeat_now_ns();
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool written = fd >= 0;
	while (written && bytes) {
		const size_t size = bytes < WRITE_BYTES ? (size_t)bytes : WRITE_BYTES;
		const ssize_t done = write(fd, piece, size);
		written = done > 0 || (done < 0 && errno == EINTR);
		bytes -= done > 0 ? (uint64_t)done : 0;
	}
	if (fd >= 0)
		close(fd);
	const double s = seconds_since(begin_ns);
	unlink(path);
	return written ? s : NAN;
}

/* Run a format once; keep the shortest time, or its error. */
static void measure(const struct settings *settings, const char *suffix, uint32_t spans,
		    struct result *best)
{
	char path[PATH_MAX];
	struct result result = {.error = 0};
	struct stat file = {.st_size = 0};
	if ((size_t)snprintf(path, sizeof(path), "%s/spans%s", settings->files, suffix) >=
	    sizeof(path))
		return;
	const bool ran = stream(settings, path, spans, &result) && stat(path, &file) == 0;
	unlink(path);
	if (!ran || result.error) {
		best->error = result.error ? result.error : -ECHILD;
		return;
	}
	result.bytes = (uint64_t)file.st_size;
	result.write_s = fmin(write_plainly(path, result.bytes), best->write_s);
	result.emit_s = fmin(result.emit_s, best->emit_s);
	result.total_s = fmin(result.total_s, best->total_s);
	/* A loss in any turn counts. */
	result.lost += best->lost;
	*best = result;
}

static void show(struct report *report, const char *suffix, double target_s, uint32_t spans,
		 const struct result *best)
{
	if (best->error) {
		report_failure(report, "%s failed: %s", suffix, kymo_strerror(best->error));
		report_row(report, suffix, (double[]){NAN, NAN, target_s, NAN, NAN, NAN});
		return;
	}
	report_row(report, suffix,
		   (double[]){best->emit_s, best->total_s, target_s, (double)best->bytes / spans,
			      (double)best->lost, best->write_s});
	if (best->lost || best->events != 2 * (uint64_t)spans)
		report_failure(report, "%s has %" PRIu64 " of %" PRIu64 " events", suffix,
			       best->events, 2 * (uint64_t)spans);
	if (isfinite(target_s))
		report_target(report, best->total_s, target_s, "s",
			      "%u million spans to a finished %s", SPANS / 1000000, suffix);
}

void throughput_run(const struct settings *settings, struct report *report)
{
	const uint32_t spans = settings->quick ? SPANS_QUICK : SPANS;
	struct result best[FORMATS_COUNT];
	for (size_t i = 0; i < FORMATS_COUNT; i++)
		best[i] = (struct result){.emit_s = NAN, .total_s = NAN, .write_s = NAN};
	for (int turn = 0; turn < (settings->quick ? TURNS_QUICK : TURNS); turn++)
		for (size_t i = 0; i < FORMATS_COUNT; i++)
			if (!best[i].error)
				measure(settings, formats[i].suffix, spans, &best[i]);
	report_begin(report, "throughput", "spans to a finished file", columns);
	for (size_t i = 0; i < FORMATS_COUNT; i++)
		show(report, formats[i].suffix, formats[i].target_s, spans, &best[i]);
	report_note(report,
		    "%" PRIu32 " equal spans, ring of %u MiB; write(2): as many bytes into a file "
		    "in %u KiB pieces",
		    spans, RING_BYTES >> 20, WRITE_BYTES >> 10);
	report_end(report);
}
