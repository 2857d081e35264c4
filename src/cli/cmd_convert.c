/* SPDX-License-Identifier: MIT */
/* cmd_convert.c: kymo convert: read a trace of any format and write it in another. */
#include "cli/cli.h"
#include "cli/cli_filter.h"
#include "cli/convert_stream.h"
#include "cli/output.h"

#include <getopt.h>
#include <string.h>

struct options {
	const char *input, *output, *format, *input_format;
	bool quiet, json;
};

/* Return false after a message: wrong usage. */
static bool read_options(int argc, char **argv, struct options *o)
{
	if (ky_options_read(o, argc, argv))
		return false;
	if (optind < argc)
		o->input = argv[optind++];
	if (optind < argc && !o->output)
		o->output = argv[optind++];
	if (optind < argc)
		ky_cli_usage("'%s' is too much: convert takes one input and one output",
			     argv[optind]);
	else if (!o->input)
		ky_cli_usage("the trace is missing");
	else if (!o->output)
		ky_cli_usage("the output is missing: 'kymo convert %s OUTPUT'", o->input);
	else if (o->json && strcmp(o->output, "-") == 0)
		ky_cli_usage("--json and the output cannot both go to standard output");
	else
		return true;
	return false;
}

/* Convert through the model, which puts any input into order. */
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
	if (!ky_exporter_find(o.output, o.format, &packing))
		return ky_output_unknown(o.output, o.format);
	if (o.input_format || !ky_convert_stream(o.input, o.output, o.format, &code))
		code = convert_in_memory(&o, &left);
	if (code == KY_EXIT_DONE && o.json) {
		struct ky_json_out json = {.file = stdout};
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_text(&json, "output", o.output);
		ky_output_json_left(&json, &left);
		ky_json_out_end(&json, '}');
	}
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_option options[] = {
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "the output; its suffix selects the format"},
	{"format", AT(TEXT, format), .argument = "NAME", .choices_of = ky_output_formats,
	 .help = "the output's format, whatever its name: json, pftrace, fxt or kymo, also json.gz, ..."},
	{"input-format", AT(TEXT, input_format), .argument = "NAME", .choices_of = ky_cli_formats,
	 .help = "read the input as this format instead of detecting it"},
	{"quiet", AT(FLAG, quiet), .letter = 'q',
	 .help = "do not report what the format cannot hold"},
	{"json", AT(FLAG, json), .help = "report it as JSON on standard output"},
	{0},
};

const struct ky_verb ky_verb_convert = {
	.name = "convert",
	.summary = "convert a trace to another format",
	.usage = "[OPTIONS] INPUT OUTPUT\n"
		 "[OPTIONS] INPUT -o OUTPUT",
	.about =
		"Read a trace of any format and write it as Chrome JSON (.json), Perfetto protobuf (.pftrace), Fuchsia "
		"trace (.fxt) or .kymo; .gz or .zst behind it compresses. INPUT '-' is standard input, OUTPUT '-' is "
		"standard output. One line reports what the output's format cannot hold. The output appears complete "
		"or not at all; an existing file is replaced only then.",
	.details =
		"Times are kept to the nanosecond. A complete .kymo file of one process is converted event by event, "
		"in memory that does not grow with the trace, unless the output is .kymo, too. Any other input is "
		"sorted in memory first.",
	.examples = "kymo convert trace.json trace.pftrace\n"
		    "kymo convert perf.data -o out.json.gz\n"
		    "ssh host kymo convert trace.kymo - --format fxt | kymo convert - here.pftrace",
	.related = "merge split repair",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.run = run,
};
