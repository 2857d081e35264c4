/* SPDX-License-Identifier: MIT */
/* cmd_convert.c: kymo convert: a trace of any format that can be read as one that can be written. */
#include "cli/cli.h"
#include "cli/convert_stream.h"
#include "cli/output.h"

#include <getopt.h>
#include <string.h>

static const char help[] =
	"usage: kymo convert [options] INPUT OUTPUT\n"
	"       kymo convert [options] INPUT -o OUTPUT\n"
	"\n"
	"Reads a trace of any format and writes it as Chrome JSON (.json), Perfetto protobuf "
	"(.pftrace),\n"
	"Fuchsia trace (.fxt) or .kymo; .gz or .zst behind it compresses. INPUT '-' is standard "
	"input,\n"
	"OUTPUT '-' is standard output. What the output's format cannot carry is said in one "
	"line.\n"
	"A recorder's .kymo file is converted event by event, in little memory; any other input "
	"is\n"
	"put into order in memory first.\n"
	"The output appears whole or not at all; what had its name before is replaced only then.\n"
	"\n"
	"  -o, --output FILE   the output\n"
	"      --format NAME   its format, whatever its name: json, pftrace, fxt, kymo (also "
	"json.gz, ...)\n"
	"      --input-format NAME  that of the input, instead of looking at its content\n"
	"  -q, --quiet         say nothing about what could not be carried\n"
	"      --json          say it as JSON on standard output\n"
	"      --help          this text\n"
	"\n"
	"examples:\n"
	"  kymo convert trace.json trace.pftrace\n"
	"  kymo convert perf.data -o out.json.gz\n"
	"  ssh host kymo convert trace.kymo - --format fxt | kymo convert - here.pftrace\n";

struct options {
	const char *input, *output, *format, *input_format;
	bool quiet, json;
};

/* False: used wrongly, and said. */
static bool read_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
					      {"format", required_argument, NULL, 'f'},
					      {"input-format", required_argument, NULL, 'i'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"json", no_argument, NULL, 'j'},
					      {0}};
	for (int c; (c = ky_cli_option(argc, argv, "o:q", longs)) != -1;) {
		if (c == 'o')
			o->output = optarg;
		else if (c == 'f')
			o->format = optarg;
		else if (c == 'i')
			o->input_format = optarg;
		else if (c == 'q')
			o->quiet = true;
		else if (c == 'j')
			o->json = true;
	}
	if (optind < argc)
		o->input = argv[optind++];
	if (optind < argc && !o->output)
		o->output = argv[optind++];
	if (optind < argc)
		ky_cli_usage("one input and one output, and there is also '%s'", argv[optind]);
	else if (!o->input)
		ky_cli_usage("which trace?");
	else if (!o->output)
		ky_cli_usage("%s: what to write? Name a file", o->input);
	else if (o->json && strcmp(o->output, "-") == 0)
		ky_cli_usage("--json and the output cannot both go to standard output");
	else
		return true;
	return false;
}

/* Through the model, which puts any input into order. */
static int convert_in_memory(const struct options *o, struct ky_export_left *left)
{
	struct ky_trace *trace = ky_cli_load(o->input, o->input_format, o->quiet);
	if (!trace)
		return KY_EXIT_FAILED;
	const int code =
		ky_output_write(trace, NULL, o->output, o->format, o->quiet || o->json, left);
	ky_trace_close(&trace);
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	struct ky_export_left left = {0};
	int packing;
	int code;
	if (!read_options(argc, argv, &o))
		return KY_EXIT_USAGE;
	if (!ky_exporter_find(o.output, o.format, &packing)) {
		if (o.format)
			return ky_cli_usage(
				"there is no output format '%s'; take json, pftrace, fxt or "
				"kymo",
				o.format);
		return ky_cli_usage(
			"%s: its name says no format; end it in .json, .pftrace, .fxt or "
			".kymo, or say it with --format",
			o.output);
	}
	if (o.input_format || !ky_convert_stream(o.input, o.output, o.format, &code))
		code = convert_in_memory(&o, &left);
	if (code == KY_EXIT_DONE && o.json) {
		printf("{\"output\":");
		ky_cli_json_string(stdout, o.output, strlen(o.output));
		printf(",");
		ky_output_json_left(&left);
		printf("}\n");
	}
	return code;
}

const struct ky_verb ky_verb_convert = {"convert", "a trace in one format as one in another", help,
					run};
