/* SPDX-License-Identifier: MIT */
/* live.c: the events of running processes as they come; see live.h. */
#include "cli/live.h"

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

/* The context of a capture's callbacks. */
struct live {
	const struct ky_live_how *how;
};

static void on_event(void *context, pid_t pid, const struct ky_event *event)
{
	const struct ky_live_how *const how = ((const struct live *)context)->how;
	how->event(how->context, pid, event);
}

static int on_progress(void *context, const struct ky_capture_facts *facts)
{
	const struct ky_live_how *const how = ((const struct live *)context)->how;
	return how->round(how->context, facts->elapsed_ns, facts->events_lost);
}

static void on_note(void *context, const char *line)
{
	const struct ky_live_how *const how = ((const struct live *)context)->how;
	if (how->note)
		how->note(how->context, line);
	else
		ky_cli_error("%s", line);
}

static int capture(struct ky_capture_command *command, const struct ky_live_how *how)
{
	char message[KY_MESSAGE_BYTES] = "";
	static struct ky_capture_facts facts;
	struct live live = {.how = how};
	struct ky_capture_options *const o = &command->capture;
	o->fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (o->fd < 0) {
		ky_cli_error("cannot open /dev/null: %s", strerror(errno));
		return KY_EXIT_FAILED;
	}
	o->scope = !command->targets_count ? KY_PROCESSES_ALL
		   : command->follow       ? KY_PROCESSES_CHILDREN
					   : KY_PROCESSES_GIVEN;
	o->event = on_event;
	o->progress = on_progress;
	o->note = on_note;
	o->context = &live;
	o->quiet = true;
	const int error = ky_capture(o, &facts, message);
	close(o->fd);
	how->round(how->context, facts.elapsed_ns, facts.events_lost);
	if (error)
		on_note(&live, message);
	if (error)
		return error == -ENOTSUP && facts.functions_impossible ? KY_EXIT_IMPOSSIBLE
								       : KY_EXIT_FAILED;
	return facts.unmatched || command->targets_missing ? KY_EXIT_NOTHING : KY_EXIT_DONE;
}

int ky_live_run(struct ky_capture_command *command, int argc, char **argv,
		int (*begin)(void *context), const struct ky_live_how *how)
{
	struct ky_pids pids = {0};
	int code = KY_EXIT_USAGE;
	if (!ky_capture_options_read(command, argc, argv)) {
		/* reported */
	} else if (optind < argc) {
		ky_cli_usage("'%s' is not an option: use -p PID|NAME for a process", argv[optind]);
	} else if (command->targets_count && !ky_capture_options_find(command, &pids)) {
		code = command->targets_missing ? KY_EXIT_NOTHING : KY_EXIT_FAILED;
	} else {
		code = begin ? begin(how->context) : KY_EXIT_DONE;
		if (code == KY_EXIT_DONE)
			code = capture(command, how);
	}
	ky_pids_free(&pids);
	ky_capture_options_free(command);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct ky_capture_command, field)

const struct ky_option ky_live_options[] = {
	{.help = "which processes and events"},
	{"pid", .kind = KY_OPTION_CALL, .take = ky_capture_options_target, .letter = 'p',
	 .argument = "PID|NAME",
	 .help = "this process, by number or name; may be given several times (default: all)"},
	{"follow", AT(FLAG, follow), .help = "and its children"},
	{"all", AT(FLAG, all), .letter = 'a',
	 .help = "all processes that may be looked into (default)"},
	{"categories", AT(TEXT, capture.categories), .letter = 'c', .argument = "LIST",
	 .help = "categories of trace points: globs separated by commas, '-' before one excludes it "
		 "(default: all)"},
	{"buffer", AT(SIZE, capture.ring_bytes), .argument = "SIZE",
	 .help = "minimum ring size per new thread (default 16M)"},
	{"duration", AT(DURATION, capture.duration_ns), .letter = 'd', .argument = "TIME",
	 .help = "end after this time"},
	{0},
};
