/* SPDX-License-Identifier: MIT */
/*
 * cmd_repair.c: kymo repair: what can still be read of a truncated or damaged file as one that is valid, and what was
 * lost.
 */
#include "cli/cli.h"
#include "cli/output.h"
#include "formats/kymo/kymo_bundle.h"
#include "formats/reader.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
	"usage: kymo repair [options] INPUT\n"
	"\n"
	"Reads all that can still be read of a truncated or damaged trace, writes it as a valid "
	"one, and says\n"
	"what was lost. INPUT itself is never touched.\n"
	"\n"
	"  -o, --output FILE   the output. Without it INPUT.repaired before INPUT's suffix, in its "
	"format;\n"
	"                      a format that cannot be written becomes .pftrace\n"
	"      --format NAME   json, pftrace, fxt or kymo\n"
	"      --json          what was lost as JSON on standard output\n"
	"      --help          this text\n"
	"\n"
	"examples:\n"
	"  kymo repair cut.json\n"
	"  kymo repair crash.kymo -o crash.pftrace\n";

struct options {
	const char *input, *output, *format;
	bool json;
};

static bool read_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
					      {"format", required_argument, NULL, 'f'},
					      {"json", no_argument, NULL, 'j'},
					      {0}};
	for (int c; (c = ky_cli_option(argc, argv, "o:", longs)) != -1;) {
		if (c == 'o')
			o->output = optarg;
		else if (c == 'f')
			o->format = optarg;
		else if (c == 'j')
			o->json = true;
	}
	int packing;
	if (optind == argc)
		ky_cli_usage("which trace?");
	else if (optind + 1 < argc)
		ky_cli_usage("one trace at a time, and there is also '%s'", argv[optind + 1]);
	else if (o->format && !ky_output_suffix(o->format))
		ky_cli_usage("there is no output format '%s'; take json, pftrace, fxt or kymo",
			     o->format);
	else if (o->output && !ky_exporter_find(o->output, o->format, &packing))
		ky_cli_usage("%s: its name says no format; say it with --format", o->output);
	else if (o->json && o->output && strcmp(o->output, "-") == 0)
		ky_cli_usage("--json and the output cannot both go to standard output");
	else
		o->input = argv[optind];
	return o->input != NULL;
}

static int on_progress(void *context, const char *stage, uint64_t done, uint64_t all)
{
	(void)context;
	return ky_cli_progress(stage, done, all);
}

static struct ky_trace *load(const char *path)
{
	const struct ky_load_options options = {
		.size = sizeof(options), .repair = true, .progress = on_progress};
	char message[KY_LOAD_MESSAGE_BYTES] = "";
	struct ky_trace *trace = NULL;
	const int error = ky_load(&trace, path, &options, message);
	ky_cli_progress_end();
	if (error) {
		ky_trace_close(&trace);
		if (error != -EINTR)
			ky_cli_error("%s", message[0] ? message : strerror(-error));
	}
	return trace;
}

static char *output_name(const struct options *o, const struct ky_trace *trace)
{
	const char *input = strcmp(o->input, "-") == 0 ? "trace" : o->input;
	const char *suffix = ky_output_suffix(o->format ? o->format : trace->format);
	int packing;
	const struct ky_exporter *named = ky_exporter_find(input, NULL, &packing);
	if (o->output)
		return strdup(o->output);
	if (named && suffix && strcmp(named->suffix, suffix) == 0)
		suffix = NULL; /* the input's own, packing and all */
	else if (!suffix)
		suffix = ".pftrace";
	return ky_output_name(input, "repaired", suffix);
}

/* ---- writing ---- */

/* A .kymo file of several sources that is to be one again is copied, not written from the model: it has what that
 * format cannot carry otherwise. NULL: it is another. */
static struct ky_kymo_bundle *open_bundle(const struct options *o, const char *output)
{
	struct ky_kymo_bundle *bundle = NULL;
	struct ky_kymo_error why;
	struct stat status;
	int packing;
	if (ky_exporter_find(output, o->format, &packing) != &ky_exporter_kymo ||
	    stat(o->input, &status) != 0 || !S_ISREG(status.st_mode) ||
	    ky_kymo_bundle_open(&bundle, o->input, &why) != 0)
		return NULL;
	if (!ky_kymo_bundle_several(bundle))
		ky_kymo_bundle_close(&bundle);
	return bundle;
}

static int on_copied(void *context, uint64_t done, uint64_t all)
{
	(void)context;
	return ky_cli_progress("copying", done, all);
}

static int copy_bundle(void *context, const struct ky_exporter *exporter, struct ky_out *out)
{
	(void)exporter;
	return ky_kymo_bundle_copy(context, out, on_copied, NULL);
}

static int write_repaired(const struct options *o, const struct ky_trace *trace, const char *output,
			  struct ky_export_left *left)
{
	struct ky_kymo_bundle *bundle = open_bundle(o, output);
	if (!bundle)
		return (o->output ? ky_output_write : ky_output_write_default)(
			trace, NULL, output, o->format, o->json, left);
	const int code = ky_output_write_by(output, o->format, !o->output, copy_bundle, bundle);
	ky_kymo_bundle_close(&bundle);
	return code;
}

/* ---- what was lost ---- */

static uint64_t say_problems(const struct ky_trace *trace, bool json)
{
	const struct ky_problems *p = &trace->problems;
	uint64_t number = 0;
	bool first = true;
	for (uint32_t i = 0; i < p->rows.count; i++) {
		const char *name = ky_text_of(trace, p->name[i]);
		const char *text = ky_text_of(trace, p->first[i]);
		if (p->severity[i] == KY_INFO)
			continue;
		number += p->number[i];
		if (json) {
			printf("%s{\"name\":", first ? "" : ",");
			ky_cli_json_string(stdout, name, name ? strlen(name) : 0);
			printf(",\"count\":%" PRIu64 ",\"at\":", p->number[i]);
			if (p->first_at[i] != KY_NO_PLACE)
				printf("%" PRIu64, p->first_at[i]);
			else
				printf("null");
			printf(",\"text\":");
			ky_cli_json_string(stdout, text, text ? strlen(text) : 0);
			printf("}");
		} else {
			fprintf(stderr, "  %" PRIu64 " x %s", p->number[i], name ? name : "?");
			if (p->first_at[i] != KY_NO_PLACE)
				fprintf(stderr, ", the first at byte %" PRIu64, p->first_at[i]);
			if (text) {
				fputs(": ", stderr);
				ky_cli_text(stderr, text, strlen(text));
			}
			fputc('\n', stderr);
		}
		first = false;
	}
	return number;
}

static void say_text(const struct ky_trace *trace, const char *input, const char *output)
{
	char kept[KY_CLI_NUMBER_BYTES], lost[KY_CLI_NUMBER_BYTES];
	const uint64_t rows = (uint64_t)trace->slices.rows.count + trace->counters.rows.count +
			      trace->sched.rows.count + trace->samples.rows.count +
			      trace->logs.rows.count;
	fprintf(stderr, "%s: %s events kept in %s", input, ky_cli_count(kept, rows), output);
	if (trace->lost)
		fprintf(stderr, ", %s known to be lost", ky_cli_count(lost, trace->lost));
	fputc('\n', stderr);
	if (!say_problems(trace, false))
		fputs("  nothing was wrong with it\n", stderr);
}

static void say_json(const struct ky_trace *trace, const char *output,
		     const struct ky_export_left *left)
{
	printf("{\"output\":");
	ky_cli_json_string(stdout, output, strlen(output));
	printf(",\"slices\":%" PRIu32 ",\"events_lost\":%" PRIu64 ",\"problems\":[",
	       trace->slices.rows.count, trace->lost);
	say_problems(trace, true);
	printf("],");
	ky_output_json_left(left);
	printf("}\n");
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	struct ky_export_left left = {0};
	if (!read_options(argc, argv, &o))
		return KY_EXIT_USAGE;
	struct ky_trace *trace = load(o.input);
	if (!trace)
		return KY_EXIT_FAILED;
	char *output = output_name(&o, trace);
	int code = KY_EXIT_FAILED;
	if (!output)
		ky_cli_error("not enough memory");
	else
		code = write_repaired(&o, trace, output, &left);
	if (code == KY_EXIT_DONE && o.json)
		say_json(trace, output, &left);
	else if (code == KY_EXIT_DONE)
		say_text(trace, o.input, output);
	free(output);
	ky_trace_close(&trace);
	return code;
}

const struct ky_verb ky_verb_repair = {"repair", "a truncated or damaged trace as a valid one",
				       help, run};
