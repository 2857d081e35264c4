/* SPDX-License-Identifier: MIT */
/*
 * cmd_snapshot.c: kymo snapshot: what a process recorded lately, out of its rings, which are a
 * flight recorder whether or not anybody watches. Nothing is switched on, and the process does not
 * notice.
 *
 * Asked of a kymo that captures, it is that one which takes it, into its own file: it gets a signal
 * for that (capture_signals.h), which it has blocked, so that no other program can be hit by it.
 */
#include "capture/capture_output.h"
#include "capture/capture_signals.h"
#include "capture/drums.h"
#include "capture/processes.h"
#include "cli/capturing.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "sink/path.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
	"usage: kymo snapshot [options] -p PID|NAME\n"
	"\n"
	"Writes what a process recorded lately, out of its rings: they always hold the last of it, "
	"whether or\n"
	"not anybody records. Nothing is switched on or off; a program that shall record all the "
	"time is\n"
	"started with KYMO_CATEGORIES in its environment. When PID is a kymo that captures, that "
	"one is\n"
	"asked to take the snapshot into its own file.\n"
	"\n"
	"  -p, --pid PID|NAME   the process; may be given several times\n"
	"      --last TIME      how far back (all that is there)\n"
	"  -o, --output FILE    .kymo, .json, .pftrace, .fxt; without it snapshot.kymo, and one "
	"that is there\n"
	"                       becomes snapshot.kymo.old. '-' is standard output, as .kymo\n"
	"      --format NAME    its format, whatever its name\n"
	"  -q, --quiet          no summary\n"
	"      --json           the summary as JSON\n"
	"      --help           this text\n"
	"\n"
	"examples:\n"
	"  kymo snapshot -p server --last 2s\n"
	"  kymo snapshot -p 1234 -o now.json\n";

struct options {
	const char **targets;
	uint32_t targets_count;
	const char *output, *format;
	int64_t last_ns; /* 0: all */
	bool quiet, json;
};

static bool is_standard_output(const struct options *o)
{
	return o->output && strcmp(o->output, "-") == 0;
}

/* False: used wrongly, and said. */
static bool check_standard_output(const struct options *o)
{
	if (o->format && strcmp(o->format, "kymo") != 0)
		ky_cli_usage("standard output gets .kymo: pipe it into 'kymo convert - - "
			     "--format %s'",
			     o->format);
	else if (o->json)
		ky_cli_usage("--json and the snapshot cannot both go to standard output");
	else if (isatty(STDOUT_FILENO) == 1)
		ky_cli_usage("standard output is a terminal; name a file with -o, or pipe it into "
			     "something");
	else
		return true;
	return false;
}

/* False: used wrongly, and said. */
static bool read_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"pid", required_argument, NULL, 'p'},
					      {"last", required_argument, NULL, 'l'},
					      {"output", required_argument, NULL, 'o'},
					      {"format", required_argument, NULL, 'f'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"json", no_argument, NULL, 'j'},
					      {0}};
	int packing;
	for (int c; (c = ky_cli_option(argc, argv, "p:o:q", longs)) != -1;) {
		if (c == 'p')
			o->targets[o->targets_count++] = optarg;
		else if (c == 'o')
			o->output = optarg;
		else if (c == 'f')
			o->format = optarg;
		else if (c == 'q')
			o->quiet = true;
		else if (c == 'j')
			o->json = true;
		else if (!ky_cli_parse_duration(optarg, &o->last_ns) || o->last_ns <= 0)
			return ky_cli_usage("--last takes a time such as 2s or 500ms, not '%s'",
					    optarg) == KY_EXIT_DONE;
	}
	const char *const suffix = o->format ? ky_output_suffix(o->format) : ".kymo";
	const char *const output = o->output ? o->output : "snapshot.kymo";
	if (optind < argc)
		ky_cli_usage("there is '%s', which is no option; a process is -p PID|NAME",
			     argv[optind]);
	else if (!o->targets_count)
		ky_cli_usage("which process? -p PID|NAME");
	else if (is_standard_output(o))
		return check_standard_output(o);
	else if (!suffix || !ky_exporter_find(output, o->format, &packing))
		ky_cli_usage("%s: no format that can be written; take .kymo, .json, .pftrace or "
			     ".fxt",
			     o->format ? o->format : output);
	else
		return true;
	return false;
}

/* ---- a kymo that captures ---- */

static int ask(const struct options *o, pid_t pid)
{
	const int64_t last_ms = o->last_ns / 1000000;
	const union sigval value = {.sival_int = last_ms < INT32_MAX ? (int)last_ms : INT32_MAX};
	if (sigqueue(pid, KY_SIGNAL_SNAPSHOT, value) != 0) {
		ky_cli_error("cannot ask the kymo of process %ld for a snapshot: %s", (long)pid,
			     strerror(errno));
		return KY_EXIT_FAILED;
	}
	if (!o->quiet)
		fprintf(stderr,
			"process %ld is a kymo that captures: it takes the snapshot into its own "
			"file\n",
			(long)pid);
	return KY_EXIT_DONE;
}

/* ---- the rings of a process ---- */

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What was found and written. */
struct found {
	uint32_t drums;
	uint64_t events;
	char path[PATH_MAX];
};

static void write_window(const struct options *o, struct ky_bundle *bundle, struct ky_drums *drums)
{
	const uint64_t now = now_ns();
	const uint64_t last = (uint64_t)o->last_ns;
	const uint64_t from = last && last < now ? now - last : 0;
	ky_drums_round(drums, true);
	ky_drums_window(drums, from, now);
	ky_bundle_snapshot(bundle, &(struct ky_bundle_snapshot){.time_ns = now,
								.from_ns = from,
								.to_ns = now,
								.trigger = "kymo snapshot",
								.reason = "asked for"});
}

static uint32_t add_all(struct ky_drums *drums, const pid_t *pids, uint32_t count)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	uint32_t added = 0;
	for (uint32_t i = 0; i < count; i++) {
		const int result = ky_drums_add_process(drums, pids[i], message);
		if (result > 0)
			added += (uint32_t)result;
		else if (result < 0)
			ky_cli_error("%s", message);
		else
			ky_cli_error("process %ld has no drum: it has no kymo in it, or recorded "
				     "nothing so far",
				     (long)pids[i]);
	}
	return added;
}

static int take(const struct options *o, const pid_t *pids, uint32_t count,
		struct ky_capture_output *output, struct found *found)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	struct ky_bundle *bundle = NULL;
	struct ky_drums *drums = NULL;
	const bool direct = output->fd < 0;
	const struct ky_bundle_options to = {.path = direct ? output->path : NULL,
					     .fd = output->fd};
	int error = ky_bundle_open(&bundle, &to, message);
	if (!error)
		error = ky_drums_open(&drums,
				      &(struct ky_drums_options){.bundle = bundle,
								 .flight = true,
								 .before_ns = UINT64_MAX / 2});
	if (!error)
		found->drums = add_all(drums, pids, count);
	if (!error && found->drums)
		write_window(o, bundle, drums);
	ky_drums_close(&drums);
	if (bundle) {
		struct ky_bundle_facts facts;
		ky_bundle_facts(bundle, &facts);
		found->events = facts.events;
	}
	const int closed = ky_bundle_close(&bundle);
	error = error ? error : closed;
	if (!error && found->drums)
		error = ky_capture_output_keep(output, message);
	if (error)
		ky_cli_error("%s", message[0] ? message : strerror(-error));
	return error || !found->drums ? KY_EXIT_FAILED : KY_EXIT_DONE;
}

static int convert(const struct options *o, const char *captured, const char *path)
{
	struct ky_export_left left = {0};
	struct ky_trace *trace = ky_cli_load(captured, NULL, true);
	int code = KY_EXIT_FAILED;
	if (trace)
		code = (o->output ? ky_output_write : ky_output_write_default)(
			trace, NULL, path, o->format, o->quiet, &left);
	ky_trace_close(&trace);
	unlink(captured);
	return code;
}

static void say(const struct options *o, const struct found *found, const char *path)
{
	char count[KY_CLI_NUMBER_BYTES], size[KY_CLI_NUMBER_BYTES];
	struct stat status;
	const uint64_t bytes = stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
	if (o->json) {
		printf("{\"output\":");
		ky_cli_json_string(stdout, path, strlen(path));
		printf(",\"bytes\":%" PRIu64 ",\"processes\":%" PRIu32 ",\"events\":%" PRIu64 "}\n",
		       bytes, found->drums, found->events);
		return;
	}
	if (o->quiet)
		return;
	fprintf(stderr, "kymo: %s, %s, %s events\n", path, ky_cli_bytes(size, bytes),
		ky_cli_count(count, found->events));
	if (!found->events)
		fputs("  nothing was recorded in that time: KYMO_CATEGORIES='*' in the program's "
		      "environment, or\n  'kymo attach', switches its trace points on\n",
		      stderr);
	else
		fprintf(stderr, "  %-10s kymo report %s\n", "next", path);
}

static int take_to_standard_output(const struct options *o, const pid_t *pids, uint32_t count)
{
	char number[KY_CLI_NUMBER_BYTES];
	struct ky_capture_output output = {.fd = STDOUT_FILENO, .kept = true};
	struct found found = {0};
	const int code = take(o, pids, count, &output, &found);
	if (code == KY_EXIT_DONE && !o->quiet)
		fprintf(stderr, "kymo: standard output, %s events\n",
			ky_cli_count(number, found.events));
	return code;
}

/* As the user wrote it, with ${pid} filled in. False: it is too long, and said. */
static bool name_file(const struct options *o, char path[PATH_MAX])
{
	const char *const suffix = o->format ? ky_output_suffix(o->format) : ".kymo";
	if (!o->output) {
		snprintf(path, PATH_MAX, "snapshot%s", suffix);
		return true;
	}
	if (ky_path_expand(path, PATH_MAX, o->output, (int32_t)getpid(), 0) >= 0)
		return true;
	ky_cli_error("%s: the name is too long", o->output);
	return false;
}

static int take_to_file(const struct options *o, const pid_t *pids, uint32_t count)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "", path[PATH_MAX], captured[PATH_MAX];
	struct ky_capture_output output;
	struct found found = {0};
	int packing = 0;
	if (!name_file(o, path))
		return KY_EXIT_FAILED;
	const struct ky_exporter *const exporter = ky_exporter_find(path, o->format, &packing);
	const bool converts = strcmp(exporter->name, "kymo") != 0 || packing;
	if (snprintf(captured, sizeof(captured), "%s%s", path, converts ? ".capture.kymo" : "") >=
	    (int)sizeof(captured)) {
		ky_cli_error("%s: the name is too long", path);
		return KY_EXIT_FAILED;
	}
	if (ky_capture_output_open(&output, captured, !o->output && !converts, message)) {
		ky_cli_error("%s", message);
		return KY_EXIT_FAILED;
	}
	int code = take(o, pids, count, &output, &found);
	ky_capture_output_close(&output);
	if (code == KY_EXIT_DONE && converts)
		code = convert(o, output.path, path);
	if (code == KY_EXIT_DONE)
		say(o, &found, path);
	return code;
}

static int snapshot(const struct options *o)
{
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	pid_t *pids = NULL;
	uint32_t count = 0, asked = 0;
	int code = KY_EXIT_DONE;
	for (uint32_t i = 0; i < o->targets_count; i++) {
		if (ky_processes_find(o->targets[i], &pids, &count, message)) {
			ky_cli_error("%s", message);
			code = KY_EXIT_FAILED;
		}
	}
	/* Those that are asked are no drums to read. */
	for (uint32_t i = 0; i < count; i++) {
		if (!ky_capturing(pids[i]))
			continue;
		const int result = ask(o, pids[i]);
		code = code ? code : result;
		pids[i--] = pids[--count];
		asked++;
	}
	if (count && is_standard_output(o))
		code = take_to_standard_output(o, pids, count);
	else if (count)
		code = take_to_file(o, pids, count);
	else if (!asked)
		code = KY_EXIT_FAILED;
	free(pids);
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = {.targets = calloc((size_t)argc, sizeof(*o.targets))};
	int code = KY_EXIT_FAILED;
	if (!o.targets)
		ky_cli_error("not enough memory");
	else
		code = read_options(argc, argv, &o) ? snapshot(&o) : KY_EXIT_USAGE;
	free((void *)o.targets);
	return code;
}

const struct ky_verb ky_verb_snapshot = {"snapshot", "what a process recorded lately", help, run};
