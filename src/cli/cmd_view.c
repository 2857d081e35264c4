/* SPDX-License-Identifier: MIT */
/* cmd_view.c: kymo view: its options; view_verb.h says who does what. */
#include "cli/view_verb.h"

#include "cli/view_running.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERFETTO_PORT 9001

static const char help[] =
	"usage: kymo view [options] FILE...\n"
	"       kymo view [options] -p PID|NAME\n"
	"       kymo view --export OUT.html [--from TIME] [--to TIME] FILE...\n"
	"       kymo view --perfetto FILE...\n"
	"\n"
	"Shows a trace in the browser: serves a page on 127.0.0.1 until Ctrl-C and prints its "
	"address,\n"
	"which nobody else can guess. Nothing leaves the machine. Several files are put on one "
	"timeline, as\n"
	"'kymo merge' does. A file that is still written is followed. Without a file: the "
	"recording that\n"
	"you are just making, when there is one.\n"
	"\n"
	"  -p, --pid PID|NAME   record this process and follow it live; may be given several "
	"times\n"
	"  -o, --output FILE    with -p: keep the recording\n"
	"      --no-follow      show the file as it is now\n"
	"      --no-browser     only print the address\n"
	"      --port N         listen on this port (a free one)\n"
	"      --bind ADDRESS   listen there (127.0.0.1); others who see the address can read the "
	"trace\n"
	"      --export FILE    write page and trace as one HTML file, which opens without kymo\n"
	"      --from TIME, --to TIME\n"
	"                       with --export: only this range: 1.5s, 200ms from the begin; -1s "
	"from the\n"
	"                       end; @NS of the trace's clock\n"
	"      --perfetto       serve the trace to ui.perfetto.dev, converted when needed, and "
	"print the\n"
	"                       link that opens it there\n"
	"      --format NAME    read it as this format instead of looking at its content\n"
	"      --json           print {\"address\":...}\n"
	"  -q, --quiet          say nothing but the address and errors\n"
	"      --help           this text\n"
	"\n"
	"examples:\n"
	"  kymo view trace.kymo\n"
	"  kymo view client.kymo server.kymo\n"
	"  kymo view -p server\n"
	"  kymo view --export slow.html --from 2s --to 2.5s trace.pftrace\n";

enum { BIND = KY_CLI_OPTION_OWN, EXPORT, FORMAT, JSON, NO_BROWSER, NO_FOLLOW, PERFETTO, PORT };

static const struct option longs[] = {
	{"pid", required_argument, NULL, 'p'},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"from", required_argument, NULL, KY_CLI_OPTION_FROM},
	{"to", required_argument, NULL, KY_CLI_OPTION_TO},
	{"bind", required_argument, NULL, BIND},
	{"export", required_argument, NULL, EXPORT},
	{"format", required_argument, NULL, FORMAT},
	{"json", no_argument, NULL, JSON},
	{"no-browser", no_argument, NULL, NO_BROWSER},
	{"no-follow", no_argument, NULL, NO_FOLLOW},
	{"perfetto", no_argument, NULL, PERFETTO},
	{"port", required_argument, NULL, PORT},
	{0},
};

static int parse_port(struct ky_view_command *command, const char *text)
{
	char *end;
	const unsigned long port = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || port > UINT16_MAX)
		return ky_cli_usage("--port %s is no port: it is a number up to 65535", text);
	command->port = (uint16_t)port;
	command->port_given = true;
	return KY_EXIT_DONE;
}

static int take_option(struct ky_view_command *command, int option)
{
	switch (option) {
	case 'p':
		if (command->targets_count == KY_VIEW_INPUTS_MAX)
			return ky_cli_usage("at most %d processes at once", KY_VIEW_INPUTS_MAX);
		command->targets[command->targets_count++] = optarg;
		break;
	case 'o':
		command->output = optarg;
		break;
	case 'q':
		command->quiet = true;
		break;
	case BIND:
		command->bind = optarg;
		break;
	case EXPORT:
		command->export = optarg;
		break;
	case FORMAT:
		command->format = optarg;
		break;
	case JSON:
		command->json = true;
		break;
	case NO_BROWSER:
		command->no_browser = true;
		break;
	case NO_FOLLOW:
		command->no_follow = true;
		break;
	case PERFETTO:
		command->perfetto = true;
		break;
	case PORT:
		return parse_port(command, optarg);
	default:
		break;
	}
	return KY_EXIT_DONE;
}

/* What does not go together. */
static int check(const struct ky_view_command *command)
{
	const bool range = command->filter.from || command->filter.to;
	if (command->targets_count && command->paths_count)
		return ky_cli_usage("a file or a process, not both: leave out '%s' or -p",
				    command->paths[0]);
	if (command->targets_count && (command->export || command->perfetto))
		return ky_cli_usage("--export and --perfetto take a file: record one with 'kymo "
				    "attach'");
	if (command->export && command->perfetto)
		return ky_cli_usage("--export or --perfetto, not both");
	if (command->export && (command->bind || command->port_given || command->json))
		return ky_cli_usage("--export serves nothing: leave out --bind, --port and --json");
	if (range && !command->export)
		return ky_cli_usage("--from and --to choose what --export writes; the page shows "
				    "all");
	if (command->output && !command->targets_count)
		return ky_cli_usage("-o keeps the recording of -p; to write a page, it is "
				    "--export");
	if (command->perfetto && command->bind)
		return ky_cli_usage("--perfetto listens on 127.0.0.1 alone: ui.perfetto.dev asks "
				    "nobody else");
	return ky_cli_filter_check(&command->filter);
}

static int read_command(struct ky_view_command *command, int argc, char **argv)
{
	for (int option; (option = ky_cli_option(argc, argv, "p:o:q", longs)) != -1;) {
		if (ky_cli_filter_option(&command->filter, option, optarg))
			continue;
		const int wrong = take_option(command, option);
		if (wrong)
			return wrong;
	}
	if (argc - optind > KY_VIEW_INPUTS_MAX)
		return ky_cli_usage("at most %d traces at once", KY_VIEW_INPUTS_MAX);
	for (int i = optind; i < argc; i++)
		command->paths[command->paths_count++] = argv[i];
	return check(command);
}

/* Said before there is an address, rather than after. */
static bool are_there(const struct ky_view_command *command)
{
	for (uint32_t i = 0; i < command->paths_count; i++) {
		const char *const path = command->paths[i];
		if (strcmp(path, "-") == 0 || strncmp(path, "pid:", 4) == 0)
			continue;
		if (access(path, R_OK) != 0) {
			ky_cli_error("cannot read %s: %s", path, strerror(errno));
			return false;
		}
	}
	return true;
}

bool ky_view_say_address(const struct ky_view_command *command, const char *address)
{
	if (command->json) {
		printf("{\"address\":");
		ky_cli_json_string(stdout, address, strlen(address));
		printf("}\n");
	} else {
		printf("%s\n", address);
	}
	return fflush(stdout) == 0;
}

static int run(int argc, char **argv)
{
	struct ky_view_command command = {0};
	char path[PATH_MAX];
	const int wrong = read_command(&command, argc, argv);
	if (wrong)
		return wrong;
	if (!command.targets_count && !command.paths_count) {
		if (!ky_running_find(path, command.quiet))
			return KY_EXIT_USAGE;
		command.paths[command.paths_count++] = path;
	}
	if (!are_there(&command))
		return KY_EXIT_FAILED;
	if (command.export)
		return ky_view_export(&command);
	if (!command.perfetto)
		return ky_view_serve(&command);
	if (!command.port_given)
		command.port = PERFETTO_PORT;
	return ky_view_perfetto(&command);
}

const struct ky_verb ky_verb_view = {"view", "a trace in the browser, also live, and offline", help,
				     run};
