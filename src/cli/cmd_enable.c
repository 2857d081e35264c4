/* SPDX-License-Identifier: MIT */
/*
 * cmd_enable.c: kymo enable and kymo disable: switch categories of running programs, without recording: in the list that
 * KYMO_CATEGORIES sets, so that they stay when this kymo ends.
 */
#include "capture/processes.h"
#include "capture/wanted.h"
#include "cli/cli.h"
#include "cli/list.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct switch_command {
	struct ky_pids pids;
	bool all, json, quiet;
	bool on;
	char *categories; /* NULL: all */
};

static int take_process(void *context, const char *value)
{
	return ky_list_take_process(&((struct switch_command *)context)->pids, value);
}

static void print_row(const struct ky_list_row *row)
{
	printf("%d ", (int)row->facts.pid);
	ky_cli_text(stdout, row->facts.name, strlen(row->facts.name));
	printf(": %" PRIu32 " of %" PRIu32 " %s on\n", row->facts.categories_on,
	       row->facts.categories,
	       row->facts.categories == 1 ? "category is" : "categories are");
}

/* Report which of the categories named no process has so far. Return how many. */
static uint32_t report_missing(const struct switch_command *command, const struct ky_list *list)
{
	char name[256], message[KY_MESSAGE_BYTES];
	struct ky_wanted *wanted = NULL;
	uint32_t missing = 0;
	bool on;
	if (!command->categories || ky_wanted_open(&wanted, command->categories, NULL, 0) != 0)
		return 0;
	for (uint32_t i = 0; i < ky_list_count(list); i++)
		for (uint32_t n = 0;
		     ky_drums_category(ky_list_at(list, i)->drums, 0, n, name, sizeof(name), &on);
		     n++)
			ky_wanted_category(wanted, name);
	for (uint32_t at = 0; ky_wanted_missing(wanted, &at, message); missing++)
		ky_cli_error("%s", message);
	ky_wanted_close(&wanted);
	return missing;
}

static int report(const struct switch_command *command, struct ky_list *list)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_list_sample(list);
	if (command->json) {
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_begin(&json, "processes", '[');
	}
	for (uint32_t i = 0; i < ky_list_count(list); i++) {
		if (command->json)
			ky_list_json_row(&json, ky_list_at(list, i), true);
		else if (!command->quiet)
			print_row(ky_list_at(list, i));
	}
	const uint32_t missing = report_missing(command, list);
	if (command->json) {
		ky_json_out_end(&json, ']');
		ky_json_out_uint(&json, "unmatched", missing);
		ky_json_out_end(&json, '}');
	}
	return missing ? KY_EXIT_NOTHING : KY_EXIT_DONE;
}

/* Report a process that was named and has no buffer. */
static bool has_buffer(const struct ky_list *list, pid_t pid)
{
	for (uint32_t i = 0; i < ky_list_count(list); i++)
		if (ky_list_at(list, i)->facts.pid == pid)
			return true;
	ky_cli_error("process %d has no buffer: it has no kymo trace points, or none ran so far",
		     (int)pid);
	return false;
}

static int switch_all(const struct switch_command *command, struct ky_list *list)
{
	char message[KY_MESSAGE_BYTES] = "";
	int code = KY_EXIT_DONE;
	ky_list_round(list);
	for (uint32_t i = 0; i < command->pids.count; i++)
		if (!has_buffer(list, command->pids.at[i]))
			code = KY_EXIT_FAILED;
	for (uint32_t i = 0; i < ky_list_count(list); i++) {
		if (ky_drums_edit_own(ky_list_at(list, i)->drums, command->categories, command->on,
				      message) == 0)
			continue;
		code = ky_cli_error("%s", message);
	}
	if (!ky_list_count(list)) {
		if (!command->pids.count)
			ky_cli_error("no process that you may look into has a buffer");
		return command->pids.count ? code : KY_EXIT_NOTHING;
	}
	const int reported = report(command, list);
	return code ? code : reported;
}

static int switch_categories(const struct switch_command *command)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_list *list;
	if (ky_list_open(&list, command->pids.at, command->pids.count, message) != 0)
		return ky_cli_error("%s", message);
	const int code = switch_all(command, list);
	ky_list_close(&list);
	return code;
}

/* Join the categories, which may be one argument or several. Return false without memory. */
static bool join(struct switch_command *command, int argc, char **argv)
{
	for (int i = optind; i < argc; i++) {
		char *joined = NULL;
		if (asprintf(&joined, "%s%s%s", command->categories ? command->categories : "",
			     command->categories ? "," : "", argv[i]) < 0)
			return false;
		free(command->categories);
		command->categories = joined;
	}
	return true;
}

static int run(int argc, char **argv, bool on)
{
	struct switch_command command = {.on = on};
	int code = ky_options_read(&command, argc, argv);
	if (code == KY_EXIT_DONE && !command.pids.count && !command.all)
		code = ky_cli_usage("the process is missing: use -p PID|NAME, or -a for all");
	else if (code == KY_EXIT_DONE && command.pids.count && command.all)
		code = ky_cli_usage("-a is all processes: leave out -p");
	if (code == KY_EXIT_DONE && !join(&command, argc, argv))
		code = ky_cli_error("not enough memory");
	if (code == KY_EXIT_DONE)
		code = switch_categories(&command);
	ky_pids_free(&command.pids);
	free(command.categories);
	return code;
}

static int run_enable(int argc, char **argv)
{
	return run(argc, argv, true);
}

static int run_disable(int argc, char **argv)
{
	return run(argc, argv, false);
}

#define AT(type, field) KY_OPTION_AT(type, struct switch_command, field)

static const struct ky_option options[] = {
	{"pid", .kind = KY_OPTION_CALL, .take = take_process, .letter = 'p', .argument = "PID|NAME",
	 .help = "a process, by number or name; may be given several times"},
	{"all", AT(FLAG, all), .letter = 'a', .help = "all processes that have trace points"},
	{"quiet", AT(FLAG, quiet), .letter = 'q', .help = "print no results"},
	{"json", AT(FLAG, json), .help = "print the processes and their categories as JSON"},
	{0},
};

#define STATUS                                                                                     \
	"0: done; 1: failed, or a process has no buffer; 2: wrong usage; 3: a process or category that was named matches nothing."

const struct ky_verb ky_verb_enable = {
	.name = "enable",
	.summary = "switch on categories of running programs, without recording",
	.usage = "[OPTIONS] -p PID|NAME [CATEGORIES]",
	.about =
		"Switch on trace points of running programs by their categories (globs, as in KYMO_CATEGORIES; default: all). "
		"Nothing is written: events go to the program's rings, where 'kymo snapshot' finds the last of them. They stay on "
		"until 'kymo disable' or the end of the program.",
	.details =
		"The categories are added to the program's own list, as if it had been started with them in `KYMO_CATEGORIES`. "
		"An entry that begins with `-` excludes. A category that the program has not reached so far is switched on when it "
		"is; kymo reports it, in case the name is wrong. Recorders (`kymo attach`, sessions of the program) have lists of "
		"their own, which this does not change; a session of `KYMO_TRACE` follows the program's. Forked children begin "
		"with the list that the program was started with.",
	.status = STATUS,
	.examples = "kymo enable -p server net,db\n"
		    "kymo snapshot -p server -o last.kymo\n"
		    "kymo disable -p server",
	.related = "disable list snapshot attach",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.run = run_enable,
};

const struct ky_verb ky_verb_disable = {
	.name = "disable",
	.summary = "switch off categories of running programs",
	.usage = "[OPTIONS] -p PID|NAME [CATEGORIES]",
	.about =
		"Switch off trace points of running programs by their categories (globs; default: all): those of the program's own "
		"list, which 'kymo enable' and KYMO_CATEGORIES fill. What a recorder wants stays on until it ends.",
	.status = STATUS,
	.examples = "kymo disable -p server net.debug\n"
		    "kymo disable -a",
	.related = "enable list attach",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.run = run_disable,
};
