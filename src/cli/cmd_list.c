/* SPDX-License-Identifier: MIT */
/* cmd_list.c: kymo list: which processes trace now. */
#include "capture/processes.h"
#include "cli/cli.h"
#include "cli/list.h"

#include <getopt.h>
#include <stdlib.h>

/* Events are counted at the begin and at the end of so long. */
#define MEASURED_NS UINT64_C(250000000)

struct request {
	pid_t *pids;
	uint32_t count;
	bool watch;
	struct ky_list_style style;
};

static int parse(struct request *request, int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"pid", required_argument, NULL, 'p'},
		{"watch", no_argument, NULL, 'w'},
		{0},
	};
	char message[KY_CAPTURE_MESSAGE_BYTES];
	for (int option; (option = ky_cli_option(argc, argv, "p:", longs)) != -1;) {
		if (option == 'j') {
			request->style.json = true;
		} else if (option == 'w') {
			request->watch = true;
		} else if (ky_processes_find(optarg, &request->pids, &request->count, message) !=
			   0) {
			ky_cli_error("%s", message);
			return KY_EXIT_FAILED;
		}
	}
	request->style.categories = request->count > 0;
	if (optind < argc)
		return ky_cli_usage("'%s': processes are named with -p", argv[optind]);
	return KY_EXIT_DONE;
}

/* Nothing to show is no failure, unless it was asked for by name. */
static int say_none(const struct ky_list *list, const struct request *request)
{
	if (*ky_list_note(list) && ky_list_count(list) == 0) {
		ky_cli_error("%s", ky_list_note(list));
		return request->count ? KY_EXIT_FAILED : KY_EXIT_DONE;
	}
	if (request->count == 1)
		ky_cli_error("process %d: it has no drum; expected a program with kymo in it that "
			     "traces: start it with 'kymo run', or with KYMO_CATEGORIES='*'",
			     (int)request->pids[0]);
	else if (request->count)
		ky_cli_error("none of these processes has a drum; expected programs with kymo in "
			     "them that trace: start them with 'kymo run', or with "
			     "KYMO_CATEGORIES='*'");
	else if (!request->style.json)
		ky_cli_error("no process that you may look into has a drum: a program with kymo in "
			     "it makes one when it traces, or when it is started with "
			     "KYMO_CATEGORIES='*'");
	return request->count ? KY_EXIT_FAILED : KY_EXIT_DONE;
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
	const int code = ky_list_count(list) ? KY_EXIT_DONE : say_none(list, request);
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
	if (ky_list_open(&list, request->pids, request->count, message) != 0) {
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
	free(request.pids);
	return code;
}

const struct ky_verb ky_verb_list = {
	"list", "which processes trace now: threads, categories, rate, losses",
	"usage: kymo list [OPTIONS]\n"
	"\n"
	"Shows every process with a drum that you may look into: its threads that trace, how many "
	"of\n"
	"its categories are on, events per second, events lost because there was no room for a\n"
	"thread's ring, recorders that want events (sessions of the program and kymos outside), "
	"and\n"
	"the memory of its drum. Looking costs the processes nothing and changes nothing in them.\n"
	"\n"
	"  -p, --pid PID|NAME   only this process, or those of that name, with their categories; "
	"may\n"
	"                       be given several times\n"
	"      --watch          again every second, the busiest first, until q or Ctrl-C\n"
	"      --json           for machines; with --watch an object a line\n"
	"      --help           this\n"
	"\n"
	"examples\n"
	"  kymo list\n"
	"  kymo list --watch\n"
	"  kymo list -p server\n"
	"  kymo list --json | jq '.processes[] | select(.lost > 0)'\n",
	run};
