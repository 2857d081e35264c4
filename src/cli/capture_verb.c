/* SPDX-License-Identifier: MIT */
/* capture_verb.c: see capture_verb.h. */
#include "cli/capture_verb.h"

#include "capture/child.h"
#include "cli/cli.h"
#include "formats/kymo/kymo_file.h"
#include "sink/path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where a capture goes. */
struct place {
	char *output;  /* what the user gets; NULL: standard output */
	char *capture; /* the .kymo: the same file, or one to convert */
	bool is_default;
	bool converts;
};

static int standard_output(struct ky_capture_command *command)
{
	if (command->format && strcmp(command->format, "kymo") != 0)
		return ky_cli_usage("standard output gets .kymo: pipe it into 'kymo convert - - "
				    "--format %s'",
				    command->format);
	if (command->json && !command->capture.command)
		return ky_cli_usage("--json and the capture cannot both go to standard output");
	if (isatty(STDOUT_FILENO) == 1)
		return ky_cli_usage("standard output is a terminal; name a file with -o, or pipe "
				    "it into something");
	command->capture.fd = STDOUT_FILENO;
	return KY_EXIT_DONE;
}

static char *default_name(const char *format)
{
	char *name = NULL;
	const char *const suffix = format ? ky_output_suffix(format) : ".kymo";
	if (asprintf(&name, "trace%s", suffix ? suffix : "") < 0)
		return NULL;
	return name;
}

/* Expand ${pid}, which is the same for all files; ${rotation} is each file's own. */
static char *expanded(const char *path)
{
	char name[PATH_MAX];
	if (ky_path_rotates(path) ||
	    ky_path_expand(name, sizeof(name), path, (int32_t)getpid(), 0) < 0)
		return strdup(path);
	return strdup(name);
}

static int unknown_format(const char *output, const char *format)
{
	if (format)
		return ky_cli_usage("there is no output format '%s'; take kymo, json, pftrace or "
				    "fxt",
				    format);
	return ky_cli_usage("%s: its name says no format; end it in .kymo, .json, .pftrace or "
			    ".fxt, or say it with --format",
			    output);
}

/* Number the files of --rotate; the user may place the number. */
static bool name_files(struct ky_capture_command *command, struct place *place)
{
	if (command->files_max != UINT32_MAX && !ky_path_rotates(place->output)) {
		char *const numbered = ky_output_name(place->output, "${rotation}", NULL);
		free(place->output);
		place->output = numbered;
	}
	if (!place->output)
		return false;
	char *capture = NULL;
	if (asprintf(&capture, "%s%s", place->output, place->converts ? ".capture.kymo" : "") < 0)
		return false;
	place->capture = capture;
	return true;
}

static int choose_place(struct ky_capture_command *command, struct place *place)
{
	int packing = 0;
	*place = (struct place){.is_default = !command->output};
	if (command->output && strcmp(command->output, "-") == 0)
		return standard_output(command);
	place->output = command->output ? expanded(command->output) : default_name(command->format);
	const struct ky_exporter *const exporter =
		place->output ? ky_exporter_find(place->output, command->format, &packing) : NULL;
	if (!exporter && place->output)
		return unknown_format(place->output, command->format);
	place->converts = exporter && (exporter != &ky_exporter_kymo || packing);
	if (place->converts && (command->files_max != UINT32_MAX || ky_path_rotates(place->output)))
		return ky_cli_usage("files that rotate are .kymo: 'kymo convert' makes others of "
				    "them");
	if (place->converts && command->capture.max_bytes)
		return ky_cli_usage("--max-size limits a .kymo file, and %s is made of one at the "
				    "end, larger or smaller: record a .kymo file, and 'kymo "
				    "convert' makes others of it",
				    place->output);
	if (!name_files(command, place))
		return ky_cli_error("not enough memory");
	/* A conversion writes at the end: report now that it cannot. */
	const int error = place->converts ? ky_path_replace_check(place->output) : 0;
	if (error)
		return ky_cli_error("cannot write %s: %s; choose another file with -o",
				    place->output, strerror(-error));
	command->capture.path = place->capture;
	command->capture.keep_old = place->is_default && !place->converts;
	command->output_is_file = true;
	return KY_EXIT_DONE;
}

/* ---- the end ---- */

static int convert(const struct ky_capture_command *command, const struct place *place,
		   const char *captured)
{
	const struct ky_output_target output = {place->output, command->format, place->is_default,
						command->quiet};
	const int code = ky_output_convert(&output, captured);
	if (code == KY_EXIT_DONE)
		unlink(captured);
	else
		ky_cli_error("the capture is in %s: 'kymo convert' can try again", captured);
	return code;
}

static uint64_t size_of(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* Count the events that are in the file after a failure to write all. */
static void recount(struct ky_capture_facts *facts)
{
	struct ky_kymo_bundle *bundle = NULL;
	struct ky_kymo_error error;
	uint64_t events = 0;
	if (facts->files != 1 || ky_kymo_bundle_open(&bundle, facts->path, &error) != 0)
		return;
	for (uint32_t i = 0; i < ky_kymo_bundle_count(bundle); i++)
		events += ky_kymo_info(ky_kymo_bundle_source(bundle, i))->events;
	ky_kymo_bundle_close(&bundle);
	if (events < facts->events) {
		facts->events_unwritten = facts->events - events;
		facts->events = events;
	}
}

static void summarise(const struct ky_capture_command *command,
		      const struct ky_capture_facts *facts,
		      const struct ky_capture_progress *progress, const struct place *place,
		      bool converted)
{
	const char *const path = converted        ? place->output
				 : facts->path[0] ? facts->path
				 : place->output  ? place->output
						  : "standard output";
	const uint64_t bytes = place->output ? size_of(path) : facts->bytes;
	if (command->json)
		ky_capture_summary_json(command, facts, progress, path, bytes);
	else if (!command->quiet)
		ky_capture_summary(command, facts, path, bytes);
}

static int exit_code(const struct ky_capture_command *command, const struct ky_capture_facts *facts,
		     int error, int code)
{
	if (facts->exec_failed)
		return error == -ENOENT ? 127 : 126;
	if (!command->capture.command || !facts->started)
		return code;
	if (facts->status >= 0 && WIFSIGNALED(facts->status))
		return 128 + WTERMSIG(facts->status);
	if (facts->status >= 0 && WEXITSTATUS(facts->status) != 0)
		return WEXITSTATUS(facts->status);
	return code;
}

/* Report whether to show the progress line: while the program has the terminal, only on request. */
static bool wants_line(const struct ky_capture_command *command)
{
	if (command->quiet || isatty(STDERR_FILENO) != 1)
		return false;
	return command->progress || !command->capture.command;
}

/* Report whether something that the user named does not exist, or did not happen. */
static bool found_nothing(const struct ky_capture_command *command,
			  const struct ky_capture_facts *facts)
{
	return facts->unmatched || command->targets_missing ||
	       (command->capture.triggers_count && !facts->snapshots);
}

static int capture_to(struct ky_capture_command *command, const struct place *place)
{
	char message[KY_MESSAGE_BYTES] = "";
	static struct ky_capture_facts facts;
	struct ky_capture_progress progress = {.wanted = wants_line(command),
					       .flight = command->capture.triggers_count != 0};
	command->capture.progress = ky_capture_progress_show;
	command->capture.note = ky_capture_progress_note;
	command->capture.context = &progress;
	command->capture.quiet = command->quiet;
	const int error = ky_capture(&command->capture, &facts, message);
	int code = !error                                            ? KY_EXIT_DONE
		   : error == -ENOTSUP && facts.functions_impossible ? KY_EXIT_IMPOSSIBLE
								     : KY_EXIT_FAILED;
	ky_capture_progress_clear(&progress);
	if (error)
		ky_cli_error("%s", message);
	const bool captured = facts.kept && facts.files && !facts.exec_failed;
	if (!code && found_nothing(command, &facts))
		code = KY_EXIT_NOTHING;
	if (captured && error)
		recount(&facts);
	bool converts = place->converts;
	if (captured && converts) {
		const int failed = convert(command, place, facts.path);
		code = failed ? failed : code;
		converts = !failed;
	}
	if (!error || captured)
		summarise(command, &facts, &progress, place, converts);
	ky_capture_progress_free(&progress);
	return exit_code(command, &facts, error, code);
}

/* ---- symbol:? ---- */

static int open_symbols(struct ky_symbol_list **list, const struct ky_capture_options *o,
			char message[KY_MESSAGE_BYTES])
{
	char path[PATH_MAX];
	if (!o->command)
		return ky_symbol_list_open_pid(list, o->pids[0], message);
	const int error = ky_child_find(o->command[0], path, sizeof(path));
	if (error)
		return ky_fail(message, error, "cannot run %s: %s", o->command[0],
			       strerror(-error));
	return ky_symbol_list_open_program(list, path, message);
}

static int choose_symbol(const struct ky_capture_options *o, struct ky_trigger *trigger)
{
	char message[KY_MESSAGE_BYTES] = "", name[4096], text[sizeof(name) + 8];
	struct ky_symbol_list *list = NULL;
	if (!o->command && !o->pids_count)
		return ky_cli_usage("symbol:? looks into a program: name one with 'kymo run' or "
				    "'kymo attach'");
	const int error = open_symbols(&list, o, message);
	if (error)
		return ky_cli_error("%s", message[0] ? message : strerror(-error));
	const int code = ky_finder_choose(list, name, sizeof(name));
	ky_symbol_list_close(&list);
	if (code != KY_EXIT_DONE)
		return code;
	snprintf(text, sizeof(text), "symbol:%s", name);
	ky_trigger_free(trigger);
	if (ky_trigger_parse(trigger, text, message) == 0)
		return KY_EXIT_DONE;
	*trigger = (struct ky_trigger){0};
	return ky_cli_error("%s", message);
}

static int choose_symbols(struct ky_capture_command *command)
{
	int code = KY_EXIT_DONE;
	for (uint32_t i = 0; i < command->capture.triggers_count && code == KY_EXIT_DONE; i++) {
		struct ky_trigger *const trigger = &command->triggers[i];
		if (trigger->kind == KY_TRIGGER_SYMBOL && strcmp(trigger->symbol, "?") == 0)
			code = choose_symbol(&command->capture, trigger);
	}
	return code;
}

int ky_capture_verb(struct ky_capture_command *command)
{
	struct place place;
	int code = choose_place(command, &place);
	if (code == KY_EXIT_DONE)
		code = choose_symbols(command);
	if (code == KY_EXIT_DONE)
		code = capture_to(command, &place);
	free(place.output);
	free(place.capture);
	return code;
}
