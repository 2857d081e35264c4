/* SPDX-License-Identifier: MIT */
/*
 * cmd_snapshot.c: kymo snapshot: write what a process recorded lately. Its rings hold that at any time, so nothing is
 * switched on, and the process does not notice.
 *
 * A kymo that captures is asked to take the snapshot into its own file, by a signal (signals.h). It has blocked
 * that signal, and no process that has not is ever sent it.
 */
#include "base/clock.h"
#include "base/json_out.h"
#include "capture/capture.h"
#include "capture/drums.h"
#include "capture/processes.h"
#include "capture/signals.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "sink/path.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
	const char **targets;
	uint32_t targets_count;
	const char *output, *format;
	uint64_t last_ns; /* 0: all */
	bool quiet, json;
};

static bool is_standard_output(const struct options *o)
{
	return o->output && strcmp(o->output, "-") == 0;
}

/* Return false after a message: wrong usage. */
static bool check_standard_output(const struct options *o)
{
	if (o->format && strcmp(o->format, "kymo") != 0)
		ky_cli_usage(
			"standard output takes .kymo: pipe it into 'kymo convert - - --format %s'",
			o->format);
	else if (o->json)
		ky_cli_usage("--json and the snapshot cannot both go to standard output");
	else if (isatty(STDOUT_FILENO) == 1)
		ky_cli_usage("standard output is a terminal: name a file with -o, or use a pipe");
	else
		return true;
	return false;
}

static int take_target(void *context, const char *value)
{
	struct options *const o = context;
	o->targets[o->targets_count++] = value;
	return 0;
}

/* Return false after a message: wrong usage. */
static bool read_options(int argc, char **argv, struct options *o)
{
	int packing;
	if (ky_options_read(o, argc, argv))
		return false;
	const char *const suffix = o->format ? ky_output_suffix(o->format) : ".kymo";
	const char *const output = o->output ? o->output : "snapshot.kymo";
	if (optind < argc)
		ky_cli_usage("'%s' is not an option: use -p PID|NAME for a process", argv[optind]);
	else if (!o->targets_count)
		ky_cli_usage("the process is missing: use -p PID|NAME");
	else if (is_standard_output(o))
		return check_standard_output(o);
	else if (!suffix || !ky_exporter_find(output, o->format, &packing))
		ky_output_unknown(output, o->format);
	else
		return true;
	return false;
}

/* ---- a kymo that captures ---- */

static int ask(const struct options *o, pid_t pid)
{
	const uint64_t last_ms = o->last_ns / 1000000;
	const union sigval value = {.sival_int = last_ms < INT32_MAX ? (int)last_ms : INT32_MAX};
	if (sigqueue(pid, KY_SIGNAL_SNAPSHOT, value) != 0)
		return ky_cli_error("cannot ask the kymo of process %ld for a snapshot: %s",
				    (long)pid, strerror(errno));
	if (!o->quiet)
		fprintf(stderr,
			"process %ld is a kymo that captures: it writes the snapshot into its own file\n",
			(long)pid);
	return KY_EXIT_DONE;
}

/* ---- the rings of a process ---- */

/* What the processes had, and what was written. */
struct found {
	uint32_t drums;
	uint64_t events, lost, damaged;
	char path[PATH_MAX];
};

static void write_window(const struct options *o, struct ky_bundle *bundle, struct ky_drums *drums)
{
	const uint64_t now = (uint64_t)ky_clock_boottime();
	const uint64_t last = o->last_ns;
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
	char message[KY_MESSAGE_BYTES] = "";
	uint32_t added = 0;
	for (uint32_t i = 0; i < count; i++) {
		const int result = ky_drums_add_process(drums, pids[i], message);
		if (result > 0)
			added += (uint32_t)result;
		else if (result < 0)
			ky_cli_error("%s", message);
		else
			ky_cli_error(
				"process %ld has no buffer: it has no kymo trace points, or none ran",
				(long)pids[i]);
	}
	return added;
}

static void count_losses(const struct ky_drums *drums, struct found *found)
{
	struct ky_drums_facts facts;
	for (uint32_t i = 0; drums && i < ky_drums_count(drums); i++) {
		if (!ky_drums_facts(drums, i, &facts))
			continue;
		found->lost += facts.lost;
		found->damaged += facts.damaged;
	}
}

static int take(const struct options *o, const pid_t *pids, uint32_t count,
		struct ky_capture_output *output, struct found *found)
{
	char message[KY_MESSAGE_BYTES] = "";
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
	count_losses(drums, found);
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

static void report(const struct options *o, const struct found *found, const char *path)
{
	char count[KY_QUANTITY_BYTES], size[KY_QUANTITY_BYTES];
	struct stat status;
	const uint64_t bytes = stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
	if (o->json) {
		struct ky_json_out json = {.file = stdout};
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_text(&json, "output", path);
		ky_json_out_uint(&json, "bytes", bytes);
		ky_json_out_uint(&json, "processes", found->drums);
		ky_json_out_uint(&json, "events", found->events);
		ky_json_out_uint(&json, "damaged", found->damaged);
		ky_list_json_faults(&json, found->lost, found->damaged);
		ky_json_out_end(&json, '}');
		return;
	}
	if (o->quiet)
		return;
	fprintf(stderr, "kymo: %s, %s, %s events\n", ky_cli_path(path),
		ky_quantity_bytes(size, bytes), ky_quantity_count(count, found->events));
	if (!found->events)
		fputs("  no events in that time: KYMO_CATEGORIES='*' in the program's environment, or\n"
		      "  'kymo attach', switches its trace points on\n",
		      stderr);
	else
		fprintf(stderr, "  %-10s kymo report %s\n", "next", ky_cli_path(path));
}

static int take_to_standard_output(const struct options *o, const pid_t *pids, uint32_t count)
{
	char number[KY_QUANTITY_BYTES];
	struct ky_capture_output output = {.fd = STDOUT_FILENO, .kept = true};
	struct found found = {0};
	const int code = take(o, pids, count, &output, &found);
	if (code == KY_EXIT_DONE && !o->quiet)
		fprintf(stderr, "kymo: standard output, %s events\n",
			ky_quantity_count(number, found.events));
	return code;
}

/* Make the file's name, with ${pid} filled in. Return false after a message: it is too long. */
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
	char message[KY_MESSAGE_BYTES] = "", path[PATH_MAX], captured[PATH_MAX];
	struct ky_capture_output output;
	struct found found = {0};
	int packing = 0;
	if (!name_file(o, path))
		return KY_EXIT_FAILED;
	const struct ky_exporter *const exporter = ky_exporter_find(path, o->format, &packing);
	const bool converts = exporter != &ky_exporter_kymo || packing;
	if (snprintf(captured, sizeof(captured), "%s%s", path, converts ? ".capture.kymo" : "") >=
	    (int)sizeof(captured))
		return ky_cli_error("%s: the name is too long", path);
	if (ky_capture_output_open(&output, captured, !o->output && !converts, message))
		return ky_cli_error("%s", message);
	int code = take(o, pids, count, &output, &found);
	ky_capture_output_close(&output);
	if (code == KY_EXIT_DONE && converts) {
		const struct ky_output_target to = {path, o->format, !o->output, o->quiet};
		code = ky_output_convert(&to, output.path);
		unlink(output.path);
	}
	if (code == KY_EXIT_DONE)
		report(o, &found, path);
	return code;
}

static int snapshot(const struct options *o)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_pids pids = {0};
	uint32_t asked = 0;
	int code = KY_EXIT_DONE, missing = KY_EXIT_DONE;
	for (uint32_t i = 0; i < o->targets_count; i++) {
		const int error = ky_processes_find(o->targets[i], &pids, message);
		if (error) {
			ky_cli_error("%s", message);
			missing = error == -ESRCH ? KY_EXIT_NOTHING : KY_EXIT_FAILED;
		}
	}
	/* A kymo that captures is asked; the others' buffers are read. */
	for (uint32_t i = 0; i < pids.count; i++) {
		if (!ky_cli_captures(pids.at[i]))
			continue;
		const int result = ask(o, pids.at[i]);
		code = code ? code : result;
		pids.at[i--] = pids.at[--pids.count];
		asked++;
	}
	if (pids.count && is_standard_output(o))
		code = take_to_standard_output(o, pids.at, pids.count);
	else if (pids.count)
		code = take_to_file(o, pids.at, pids.count);
	else if (!asked && !missing)
		code = KY_EXIT_FAILED;
	ky_pids_free(&pids);
	return code ? code : missing;
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

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_option options[] = {
	{"pid", .kind = KY_OPTION_CALL, .take = take_target, .letter = 'p', .argument = "PID|NAME",
	 .help = "the process, by number or name; may be given several times"},
	{"last", AT(DURATION, last_ns), .argument = "TIME", .least = 1,
	 .help = "how far back (default: everything there is)",
	 .more = "A kymo that captures uses its `--before` by default."},
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "the file: .kymo, .json, .pftrace or .fxt; '-' is standard output, as .kymo (default "
		 "snapshot.kymo; an existing one becomes snapshot.kymo.old)"},
	{"format", AT(TEXT, format), .argument = "NAME", .choices_of = ky_output_formats,
	 .help = "the format, whatever the file's name"},
	{"quiet", AT(FLAG, quiet), .letter = 'q', .help = "print no summary"},
	{"json", AT(FLAG, json), .help = "print the summary as JSON"},
	{0},
};

const struct ky_verb ky_verb_snapshot = {
	.name = "snapshot",
	.summary = "write what a process recently recorded",
	.usage = "[OPTIONS] -p PID|NAME",
	.about =
		"Write what a process recorded lately: its rings always hold the last events, whether or not anyone "
		"reads them. Nothing is switched on or off; start a program with KYMO_CATEGORIES in its environment "
		"to make it record all the time. If PID is a kymo that captures, that kymo takes the snapshot into "
		"its own file.",
	.details =
		"A program records when a recorder wants it to: a session of its own, a kymo that is attached, or "
		"`KYMO_CATEGORIES` in its environment, which makes it a flight recorder all the time:\n"
		"\n"
		"  KYMO_CATEGORIES='*' KYMO_BUFFER=4M ./server &\n"
		"  kymo snapshot -p server --last 2s\n"
		"\n"
		"kymo asks another kymo by the real-time signal SIGRTMIN+6, whose value is `--last` in milliseconds. "
		"A kymo that captures has it blocked, and no other process is ever sent it. A flight recorder keeps "
		"the time before the signal; a capture that writes everything anyway gets a mark.",
	.status =
		"0: done; 1: failed, or no process has a buffer; 2: wrong usage; 3: a process that was named does not exist.",
	.examples = "kymo snapshot -p server --last 2s\n"
		    "kymo snapshot -p 1234 -o now.json",
	.related = "run attach",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.run = run,
};
