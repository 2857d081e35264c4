/* SPDX-License-Identifier: MIT */
/* cmd_list.c: kymo list: show the processes that trace now. */
#include "capture/processes.h"
#include "cli/cli.h"
#include "cli/list.h"

#include <getopt.h>

/* The time between two counts of the events. */
#define MEASURED_NS UINT64_C(250000000)

struct request {
	struct ky_pids pids;
	bool watch;
	struct ky_list_style style;
};

static int take_process(void *context, const char *value)
{
	struct request *const request = context;
	char message[KY_CAPTURE_MESSAGE_BYTES];
	if (ky_processes_find(value, &request->pids, message) == 0)
		return 0;
	ky_cli_error("%s", message);
	return KY_EXIT_FAILED;
}

static int parse(struct request *request, int argc, char **argv)
{
	const int wrong = ky_options_read(request, argc, argv);
	if (wrong)
		return wrong;
	request->style.categories = request->pids.count > 0;
	if (optind < argc)
		return ky_cli_usage("'%s' is not an option: use -p PID|NAME for a process",
				    argv[optind]);
	return KY_EXIT_DONE;
}

/* Report that there is nothing to show, which is a failure only if the user named a process. */
static int report_none(const struct ky_list *list, const struct request *request)
{
	if (*ky_list_note(list) && ky_list_count(list) == 0) {
		ky_cli_error("%s", ky_list_note(list));
		return request->pids.count ? KY_EXIT_FAILED : KY_EXIT_DONE;
	}
	if (request->pids.count == 1)
		ky_cli_error(
			"process %d has no buffer: it has no kymo trace points, or none ran; start it "
			"with 'kymo run' or with KYMO_CATEGORIES='*'",
			(int)request->pids.at[0]);
	else if (request->pids.count)
		ky_cli_error(
			"none of these processes has a buffer: they have no kymo trace points, or none "
			"ran; start them with 'kymo run' or with KYMO_CATEGORIES='*'");
	else if (!request->style.json)
		ky_cli_error(
			"no process that you may look into has a buffer: a program with kymo trace points "
			"makes one when it traces, or when it is started with KYMO_CATEGORIES='*'");
	return request->pids.count ? KY_EXIT_FAILED : KY_EXIT_DONE;
}

static int list_once(struct ky_list *list, const struct request *request)
{
	char hidden[256];
	ky_list_round(list);
	ky_list_sample(list);
	if (ky_list_count(list))
		ky_list_wait(list, MEASURED_NS, -1, -1);
	ky_list_sample(list);
	if (ky_list_count(list) || request->style.json)
		ky_list_print(list, &request->style, false);
	const int code = ky_list_count(list) ? KY_EXIT_DONE : report_none(list, request);
	if (ky_list_count(list) && *ky_list_note(list))
		ky_cli_error("%s", ky_list_note(list));
	ky_list_hidden_text(list, hidden, sizeof(hidden));
	if (*hidden && !request->style.json)
		ky_cli_error("%s", hidden);
	return code;
}

static int list(const struct request *request)
{
	char message[KY_CAPTURE_MESSAGE_BYTES];
	struct ky_list *list;
	if (ky_list_open(&list, request->pids.at, request->pids.count, message) != 0) {
		ky_cli_error("%s", message);
		return KY_EXIT_FAILED;
	}
	const int code =
		request->watch ? ky_list_watch(list, &request->style) : list_once(list, request);
	ky_list_close(&list);
	return code;
}

static int run(int argc, char **argv)
{
	struct request request = {0};
	int code = parse(&request, argc, argv);
	if (code == KY_EXIT_DONE)
		code = list(&request);
	ky_pids_free(&request.pids);
	return code;
}

static const struct ky_option options[] = {
	{"pid", .kind = KY_OPTION_CALL, .take = take_process, .letter = 'p', .argument = "PID|NAME",
	 .help = "only this process, or those with this name, with their categories; may be given several "
		 "times",
	 .more = "A name is that of the process (/proc/PID/comm) or of its program's file."},
	{"watch", KY_OPTION_AT(FLAG, struct request, watch),
	 .help = "repeat every second, the busiest first, until q or Ctrl-C",
	 .more = "Without a terminal it prints a block of lines every second."},
	{"json", KY_OPTION_AT(FLAG, struct request, style.json),
	 .help = "print JSON; with --watch one object per line"},
	{0},
};

static const struct ky_section sections[] = {
	{"OUTPUT",
	 "`threads`: threads that trace, or did.\n\n"
	 "`categories`: how many are on, and how many there are.\n\n"
	 "`events/s`: events in the last quarter of a second; with `--watch` since the last screen.\n\n"
	 "`lost`: events that never reached a ring, because there was no room for the thread's, or because signal "
	 "handlers nested too deep. What a ring overwrites is not lost as long as no recorder wants it.\n\n"
	 "`recorders`: those that want events now: sessions of the program, and kymos outside.\n\n"
	 "`memory`: the part of the buffer that is in use."},
	{0},
};

const struct ky_verb ky_verb_list = {
	.name = "list",
	.summary = "show which processes trace now: threads, categories, rate, losses",
	.usage = "[OPTIONS]",
	.about =
		"Show every process with a kymo buffer that you may look into: its threads that trace, how many of "
		"its categories are on, events per second, events lost because no ring was free, recorders that want "
		"events, and the memory of its buffer. Looking costs the processes nothing and changes nothing in "
		"them.",
	.details =
		"The kernel decides which processes you may look into: those that you could attach a debugger to; "
		"root sees all. One line reports how many are hidden.",
	.status =
		"0: done, also when there is nothing to show; 1: failed, or a process that was named does not exist "
		"or has no buffer; 2: wrong usage.",
	.examples = "kymo list\n"
		    "kymo list --watch\n"
		    "kymo list -p server\n"
		    "kymo list --json | jq '.processes[] | select(.lost > 0)'",
	.related = "doctor attach",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.sections = sections,
	.run = run,
};
