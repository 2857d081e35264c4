/* SPDX-License-Identifier: MIT */
/* cmd_repair.c: kymo repair: write what can be read of a truncated or damaged file as a valid one; report the losses. */
#include "cli/cli.h"
#include "cli/info.h"
#include "formats/kymo/kymo_file.h"
#include "formats/load.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct options {
	const char *input, *output, *format, *input_format;
	bool json;
};

static bool read_options(int argc, char **argv, struct options *o)
{
	if (ky_options_read(o, argc, argv))
		return false;
	int packing;
	if (optind == argc)
		ky_cli_usage("the trace is missing");
	else if (optind + 1 < argc)
		ky_cli_usage("'%s' is too much: only one trace at a time", argv[optind + 1]);
	else if ((o->format && !ky_output_suffix(o->format)) ||
		 (o->output && !ky_exporter_find(o->output, o->format, &packing)))
		ky_output_unknown(o->output, o->format);
	else if (o->json && o->output && strcmp(o->output, "-") == 0)
		ky_cli_usage("--json and the output cannot both go to standard output");
	else
		o->input = argv[optind];
	return o->input != NULL;
}

static struct ky_trace *load(const char *path, const char *format)
{
	const struct ky_load_options options = {.size = sizeof(options),
						.format = format,
						.repair = true,
						.progress = ky_cli_on_progress};
	char message[KY_MESSAGE_BYTES] = "";
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
	if (named && suffix && strcmp(named->format->suffix, suffix) == 0)
		suffix = NULL; /* the input's own, packing and all */
	else if (!suffix)
		suffix = ".pftrace";
	return ky_output_name(input, "repaired", suffix);
}

/* ---- writing ---- */

/*
 * Open a .kymo file of several sources that is to stay one: it is copied and not written from the model, because it has
 * what that cannot write. NULL: it is another file.
 */
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

static int copy_bundle(void *context, const struct ky_exporter *exporter, struct ky_out *out)
{
	(void)exporter;
	return ky_kymo_bundle_copy(context, out, ky_cli_on_stage, "copying");
}

static int write_repaired(const struct options *o, const struct ky_trace *trace, const char *output,
			  struct ky_export_left *left)
{
	struct ky_kymo_bundle *bundle = open_bundle(o, output);
	const struct ky_output_target to = {output, o->format, !o->output, o->json};
	if (!bundle)
		return ky_output_write(&to, trace, NULL, left);
	const int code = ky_output_write_by(&to, copy_bundle, bundle);
	ky_kymo_bundle_close(&bundle);
	return code;
}

/* ---- what was lost ---- */

static void print_problem(const struct ky_trace *trace, uint32_t i)
{
	const struct ky_problems *const p = &trace->problems;
	const char *const name = ky_text_of(trace, p->name[i]);
	const char *const text = ky_text_of(trace, p->first[i]);
	fprintf(stderr, "  %" PRIu64 " x %s", p->number[i], name ? name : "?");
	if (p->first_at[i] != KY_NO_PLACE)
		fprintf(stderr, ", the first at byte %" PRIu64, p->first_at[i]);
	if (text) {
		fputs(": ", stderr);
		ky_cli_text(stderr, text, strlen(text));
	}
	fputc('\n', stderr);
}

/* Print what is wrong, as JSON or for people (json NULL); return the number of problems. */
static uint64_t print_problems(const struct ky_trace *trace)
{
	const struct ky_problems *const p = &trace->problems;
	uint64_t number = 0;
	for (uint32_t i = 0; i < p->rows.count; i++) {
		if (p->severity[i] == KY_INFO)
			continue;
		number += p->number[i];
		print_problem(trace, i);
	}
	return number;
}

static void print_text(const struct ky_trace *trace, const char *input, const char *output)
{
	char kept[KY_QUANTITY_BYTES], lost[KY_QUANTITY_BYTES];
	const uint64_t rows = (uint64_t)trace->slices.rows.count + trace->counters.rows.count +
			      trace->sched.rows.count + trace->samples.rows.count +
			      trace->logs.rows.count;
	fprintf(stderr, "%s: %s events kept in %s", ky_cli_path(input),
		ky_quantity_count(kept, rows), ky_cli_path(output));
	if (trace->lost)
		fprintf(stderr, ", %s known to be lost", ky_quantity_count(lost, trace->lost));
	fputc('\n', stderr);
	if (!print_problems(trace))
		fputs("  no problems found\n", stderr);
}

static void print_json(const struct ky_trace *trace, const char *output,
		       const struct ky_export_left *left)
{
	struct ky_json_out json = {.file = stdout};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "output", output);
	ky_json_out_uint(&json, "slices", trace->slices.rows.count);
	ky_info_json_faults(&json, trace);
	ky_output_json_left(&json, left);
	ky_json_out_end(&json, '}');
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	struct ky_export_left left = {0};
	if (!read_options(argc, argv, &o))
		return KY_EXIT_USAGE;
	struct ky_trace *trace = load(o.input, o.input_format);
	if (!trace)
		return KY_EXIT_FAILED;
	char *output = output_name(&o, trace);
	const int code = output ? write_repaired(&o, trace, output, &left)
				: ky_cli_error("not enough memory");
	if (code == KY_EXIT_DONE && o.json)
		print_json(trace, output, &left);
	else if (code == KY_EXIT_DONE)
		print_text(trace, o.input, output);
	free(output);
	ky_trace_close(&trace);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_option options[] = {
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "the output (default: INPUT.repaired before INPUT's suffix, in its format; .pftrace if that cannot "
		 "be written)"},
	{"format", AT(TEXT, format), .argument = "NAME", .choices_of = ky_output_formats,
	 .help = "the output's format, whatever its name: json, pftrace, fxt or kymo, also json.gz, ..."},
	KY_CLI_INPUT_FORMAT(struct options, input_format),
	{"json", AT(FLAG, json), .help = "report what was lost as JSON on standard output"},
	{0},
};

const struct ky_verb ky_verb_repair = {
	.name = "repair",
	.summary = "write a truncated or damaged trace as a valid one",
	.usage = "[OPTIONS] INPUT",
	.about =
		"Read everything that can still be read of a truncated or damaged trace, write it as a valid one, and "
		"report what was lost. INPUT itself is never changed.",
	.details =
		"A capture of several processes that stays a .kymo file keeps everything in it that is intact, kernel "
		"events and samples included.",
	.examples = "kymo repair cut.json\n"
		    "kymo repair crash.kymo -o crash.pftrace",
	.related = "validate convert",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.run = run,
};
