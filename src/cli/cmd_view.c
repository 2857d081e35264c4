/* SPDX-License-Identifier: MIT */
/* cmd_view.c: kymo view: its options; view_verb.h lists the parts. */
#include "base/file.h"
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "cli/view_verb.h"
#include "server/html_export.h"
#include "server/serve.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines of JSON on standard output ---- */

bool ky_view_print_address(const struct ky_view_command *command, const char *address)
{
	if (command->json) {
		struct ky_json_out json = {.file = stdout};
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_text(&json, "address", address);
		ky_json_out_end(&json, '}');
	} else {
		printf("%s\n", address);
	}
	return fflush(stdout) == 0;
}

static void print_faults(const struct ky_trace *trace, const char *key, const char *name,
			 uint64_t bytes)
{
	struct ky_json_out json = {.file = stdout};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, key, name);
	if (bytes)
		ky_json_out_uint(&json, "bytes", bytes);
	ky_info_json_faults(&json, trace);
	ky_json_out_end(&json, '}');
	fflush(stdout);
}

void ky_view_print_faults(const struct ky_trace *trace, const char *name)
{
	print_faults(trace, "shown", name, 0);
}

/* ---- --export: one HTML file ---- */

static struct ky_view *open_view(const struct ky_view_command *command)
{
	struct ky_view *view = NULL;
	struct ky_trace *trace = ky_view_load(
		command, &(struct ky_cli_load){.quiet = command->quiet || command->json});
	char *const name = trace ? ky_view_name(command) : NULL;
	if (trace && !name)
		ky_cli_error("not enough memory");
	if (!name) {
		ky_trace_close(&trace);
		return NULL;
	}
	const struct ky_view_options options = {.name = name,
						.generation = 1,
						.base_ns = KY_TIME_NONE,
						.progress = ky_cli_on_progress};
	const int error = ky_view_open(&view, trace, &options);
	ky_cli_progress_end();
	free(name);
	if (error && !ky_cli_interrupted())
		ky_cli_error("cannot make the view: %s", strerror(-error));
	return view;
}

static int cannot_write(const char *path, int error, const char *message)
{
	if (message && *message)
		return ky_cli_error("%s", message);
	return ky_cli_error("cannot write %s: %s", path, strerror(error));
}

/* Write the file and give it its name. Return 0 or -errno, and its size. */
static int write_file(const char *path, const struct ky_html_export *what, uint64_t *size,
		      char message[256])
{
	struct ky_file_replacer file;
	struct stat status;
	const char *step = NULL;
	int error = ky_file_replacer_open(&file, path);
	if (error)
		return error;
	error = ky_html_export(file.fd, what, message);
	if (!error)
		error = ky_cli_progress("writing", 1, 1);
	*size = fstat(file.fd, &status) == 0 ? (uint64_t)status.st_size : 0;
	if (!error)
		return ky_file_replacer_commit(&file, &step);
	ky_file_replacer_abandon(&file);
	return error;
}

static int write_view(const struct ky_view_command *command, const struct ky_view *view)
{
	char message[256] = "", text[KY_QUANTITY_BYTES];
	const struct ky_stats_filter filter = ky_cli_filter_of(&command->filter, view->trace);
	const struct ky_html_export what = {
		.view = view, .from_ns = filter.from_ns, .to_ns = filter.to_ns};
	uint64_t size = 0;
	ky_cli_progress("writing", 0, 0); /* from here on Ctrl-C leaves nothing behind */
	const int error = write_file(command->export, &what, &size, message);
	ky_cli_progress_end();
	if (error && ky_cli_interrupted())
		return KY_EXIT_FAILED;
	if (error)
		return cannot_write(command->export, -error, message);
	if (command->json)
		print_faults(view->trace, "output", command->export, size);
	else if (!command->quiet)
		fprintf(stderr, "kymo view: %s, %s; any browser opens it\n",
			ky_cli_path(command->export), ky_quantity_bytes(text, size));
	return KY_EXIT_DONE;
}

static int export_page(const struct ky_view_command *command)
{
	if (!ky_page_bytes) {
		ky_cli_error("this kymo was built without the page: 'make viewer' builds it, and "
			     "then kymo is to be built again");
		return KY_EXIT_IMPOSSIBLE;
	}
	struct ky_view *view = open_view(command);
	const int code = view ? write_view(command, view) : KY_EXIT_FAILED;
	ky_view_close(&view);
	return code;
}

/* ---- the verb ---- */

#define PERFETTO_PORT 9001

static int take_target(void *context, const char *value)
{
	struct ky_view_command *const command = context;
	if (command->targets_count == KY_VIEW_INPUTS_MAX)
		return ky_cli_usage("at most %d processes at once", KY_VIEW_INPUTS_MAX);
	command->targets[command->targets_count++] = value;
	return 0;
}

/* Report options that exclude each other. */
static int check(const struct ky_view_command *command)
{
	const bool range = command->filter.from || command->filter.to;
	const bool port = command->port != KY_VIEW_NO_PORT;
	if (command->targets_count && command->paths_count)
		return ky_cli_usage("a file and -p exclude each other: leave out '%s' or -p",
				    command->paths[0]);
	if (command->targets_count && (command->export || command->perfetto))
		return ky_cli_usage(
			"--export and --perfetto need a file: record one with 'kymo attach'");
	if (command->export && command->perfetto)
		return ky_cli_usage("--export and --perfetto exclude each other");
	if (command->export && (command->bind || port))
		return ky_cli_usage("--export serves nothing: leave out --bind and --port");
	if (range && !command->export)
		return ky_cli_usage(
			"--from and --to select what --export writes; the page shows everything");
	if (command->output && !command->targets_count)
		return ky_cli_usage("-o keeps the recording of -p: use --export to write a page");
	if (command->perfetto && command->bind)
		return ky_cli_usage(
			"--perfetto listens on 127.0.0.1 only: ui.perfetto.dev asks no other address");
	return ky_cli_filter_check(&command->filter);
}

static int read_command(struct ky_view_command *command, int argc, char **argv)
{
	const int wrong = ky_options_read(command, argc, argv);
	if (wrong)
		return wrong;
	if (argc - optind > KY_VIEW_INPUTS_MAX)
		return ky_cli_usage("at most %d traces at once", KY_VIEW_INPUTS_MAX);
	for (int i = optind; i < argc; i++)
		command->paths[command->paths_count++] = argv[i];
	return check(command);
}

/* Report a missing file before there is an address rather than after. */
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

static int run(int argc, char **argv)
{
	struct ky_view_command command = {.port = KY_VIEW_NO_PORT};
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
		return export_page(&command);
	if (command.port == KY_VIEW_NO_PORT)
		command.port = command.perfetto ? PERFETTO_PORT : 0;
	return (command.perfetto ? ky_view_perfetto : ky_view_serve)(&command);
}

#define AT(type, field) KY_OPTION_AT(type, struct ky_view_command, field)

static const struct ky_option options[] = {
	{"pid", .kind = KY_OPTION_CALL, .take = take_target, .letter = 'p', .argument = "PID|NAME",
	 .help = "record this process and follow it live; may be given several times"},
	{"output", AT(TEXT, output), .letter = 'o', .argument = "FILE",
	 .help = "with -p: keep the recording"},
	{"no-follow", AT(FLAG, no_follow), .help = "show the file as it is now"},
	{"no-browser", AT(FLAG, no_browser), .help = "only print the address"},
	{"port", AT(NUMBER, port), .argument = "N", .most = UINT16_MAX,
	 .help = "listen on this port (default: a free one)"},
	{"bind", AT(TEXT, bind), .argument = "ADDRESS",
	 .help = "listen on this address (default 127.0.0.1); others who see the address can read the trace",
	 .more = "`0.0.0.0` and `::` are all addresses of the machine."},
	{"export", AT(TEXT, export), .argument = "FILE",
	 .help = "write page and trace as one HTML file, which opens without kymo",
	 .more = "Any browser opens it from disk, without a network. SQL is not available in it. A file of that "
		 "name is replaced when the new one is complete."},
	{"perfetto", AT(FLAG, perfetto),
	 .help = "serve the trace to ui.perfetto.dev and print the link that opens it there",
	 .more = "That page runs in your browser and fetches the trace from port 9001 of this machine; no other "
		 "page may. Perfetto's own format, Chrome's JSON and FXT are served unchanged, other formats are "
		 "converted."},
	KY_CLI_INPUT_FORMAT(struct ky_view_command, format),
	{"json", AT(FLAG, json), .help = "print the address as JSON: {\"address\":\"http://...\"}",
	 .more = "A second line has `shown`, the trace's name, and its `lost`, `losses` and `problems` as `kymo info "
		 "--json` has them; it comes when the trace is loaded, and again when a trace that is followed has others. "
		 "With `--export` there is one line: `output`, `bytes`, `lost`, `losses` and `problems`."},
	{"quiet", AT(FLAG, quiet), .letter = 'q', .help = "print only the address and errors"},
	{.help = "with --export"},
	{0},
};

static const struct ky_section sections[] = {
	{"LIVE TRACES",
	 "kymo follows a file that a process has open for writing: the page shows what is new about once a second, less "
	 "often when loading takes longer than a quarter of a second. When the writer cannot be seen, because it belongs "
	 "to another user, the file counts as live until it has not changed for ten seconds. A file that is replaced by "
	 "another of its name is loaded again.\n"
	 "\n"
	 "With `-p`, kymo records the process as `kymo attach` does, into a temporary file that it removes at the end "
	 "unless `-o` keeps it."},
	{"SECURITY",
	 "Only someone who has the address can read the trace. The server listens on 127.0.0.1, so no other machine "
	 "reaches it. The address contains 128 random bits, so no other user of this machine can guess it; the browser "
	 "gets a file of yours that leads there, because others can read a command line. The Host and Origin of a request "
	 "must be the server's own, so no other web page can ask, not even through a name that points to this machine. "
	 "Files of the disk are never served.\n"
	 "\n"
	 "To look at a trace on another machine, forward a port: `ssh -L 8080:127.0.0.1:8080`, and `kymo view --port 8080` "
	 "there. With `--bind`, anyone who sees the address or listens on the network can read the trace: nothing is "
	 "encrypted."},
	{"ENVIRONMENT",
	 "`DISPLAY`, `WAYLAND_DISPLAY`: if one is set, kymo opens the browser with `xdg-open`(1).\n"
	 "\n"
	 "`TMPDIR`: where temporary files are made (default /var/tmp)."},
	{0},
};

const struct ky_verb ky_verb_view = {
	.name = "view",
	.summary = "show a trace in the browser, also live and offline",
	.usage = "[OPTIONS] FILE...\n"
		 "[OPTIONS] -p PID|NAME\n"
		 "--export OUT.html [--from TIME] [--to TIME] FILE...\n"
		 "--perfetto FILE...",
	.about =
		"Show a trace in the browser: serve a page on 127.0.0.1 until Ctrl-C and print its secret address. "
		"Nothing leaves the machine. Several files share one timeline, as with 'kymo merge'. A file that is "
		"still being written is followed. Without a file, show the recording in progress.",
	.details =
		"The page needs no network: all of it is in kymo, which sends only what fits on the screen, so a "
		"trace may be as large as the machine's memory. kymo opens the browser when there is a screen. The "
		"server starts at once; while the trace loads, the page shows the progress.\n"
		"\n"
		"Without a file, kymo shows the recording that this user is making (`kymo run`, `attach`, `record`); "
		"if there are several, it lists them.",
	.status =
		"0: ended by Ctrl-C (or SIGTERM, SIGHUP), or written; 1: failed; 2: wrong usage; 3: a process that was "
		"named does not exist; 77: this kymo was built without the page.",
	.examples = "kymo view trace.kymo\n"
		    "kymo view client.kymo server.kymo\n"
		    "kymo view -p server\n"
		    "kymo view --export slow.html --from 2s --to 2.5s trace.pftrace",
	.related = "merge query report",
	.options = (const struct ky_option_set[]){{options, 0},
						  {ky_cli_filter_range,
						   offsetof(struct ky_view_command, filter)},
						  {0}},
	.sections = sections,
	.run = run,
};

/* ---- loading ---- */

static struct ky_trace *load_several(const struct ky_view_command *command,
				     const struct ky_merge_how *how, struct ky_merge_input *inputs)
{
	struct ky_trace *merged = NULL;
	const uint32_t count = command->paths_count;
	for (uint32_t i = 0; i < count; i++)
		inputs[i].path = command->paths[i];
	if (ky_merge_load(inputs, count, how) == KY_EXIT_DONE) {
		for (uint32_t i = 1; i < count && !how->load.quiet; i++)
			ky_merge_report(&inputs[0], &inputs[i]);
		if (ky_merge_put(&merged, inputs, count, how) != 0)
			merged = NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		ky_trace_close(&inputs[i].trace);
	return merged;
}

struct ky_trace *ky_view_load(const struct ky_view_command *command, const struct ky_cli_load *how)
{
	struct ky_merge_how merge = {.load = *how};
	merge.load.format = command->format;
	if (command->paths_count == 1)
		return ky_cli_load_with(command->paths[0], &merge.load);
	struct ky_merge_input *const inputs = calloc(command->paths_count, sizeof(*inputs));
	if (!inputs) {
		ky_cli_error("not enough memory");
		return NULL;
	}
	struct ky_trace *const trace = load_several(command, &merge, inputs);
	free(inputs);
	return trace;
}

static const char *base_of(const char *path)
{
	const char *const slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

char *ky_view_name(const struct ky_view_command *command)
{
	char *name = NULL;
	size_t bytes;
	FILE *const out = open_memstream(&name, &bytes);
	if (!out)
		return NULL;
	const bool live = command->targets_count;
	const uint32_t count = live ? command->targets_count : command->paths_count;
	for (uint32_t i = 0; i < count; i++)
		fprintf(out, "%s%s", i ? " + " : "",
			live ? command->targets[i] : base_of(command->paths[i]));
	if (fclose(out) != 0) {
		free(name);
		return NULL;
	}
	return name;
}
