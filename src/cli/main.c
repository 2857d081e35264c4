/* SPDX-License-Identifier: MIT */
/*
 * main.c: kymo VERB: the table of verbs; finds the verb and runs it.
 *
 * Standard output is flushed in one place at the end, so that every verb reports a full disk. When the reader of standard
 * output has gone away, kymo ends at once and silently: that is not an error.
 */
#include "base/strings.h"
#include "cli/cli.h"

#include <kymo/version.h>

#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY(group, name) {group, &ky_verb_##name},
const struct ky_verb_entry ky_verbs[] = {KY_VERBS(ENTRY){NULL, NULL}};

const struct ky_verb *ky_verb_find(const char *name)
{
	for (const struct ky_verb_entry *entry = ky_verbs; entry->group; entry++) {
		if (strcmp(entry->verb->name, name) == 0)
			return entry->verb;
	}
	return NULL;
}

/* Return the verb that was probably meant, or NULL. */
static const struct ky_verb *nearest_verb(const char *name)
{
	const struct ky_verb *best = NULL;
	uint32_t best_distance = 3;
	for (const struct ky_verb_entry *entry = ky_verbs; entry->group; entry++) {
		const char *const verb = entry->verb->name;
		const bool begins = strlen(name) > 2 && strncmp(verb, name, strlen(name)) == 0;
		const uint32_t distance =
			begins ? 0 : ky_strings_distance(name, strlen(name), verb, strlen(verb));
		if (distance < best_distance && distance < strlen(name)) {
			best = entry->verb;
			best_distance = distance;
		}
	}
	return best;
}

int ky_verb_unknown(const char *name)
{
	const struct ky_verb *const nearest = nearest_verb(name);
	struct stat status;
	if (nearest)
		ky_cli_error("'%s' is not a verb; did you mean '%s'?", name, nearest->name);
	else if (stat(name, &status) == 0)
		ky_cli_error("'%s' is not a verb; 'kymo info %s' shows what is in it", name, name);
	else
		ky_cli_error("'%s' is not a verb; 'kymo --help' lists all", name);
	return KY_EXIT_USAGE;
}

/* End at once: nobody reads what is left to print. */
static void reader_gone(int signal_number)
{
	(void)signal_number;
	_exit(KY_EXIT_DONE);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		ky_help_overview(stderr);
		return KY_EXIT_USAGE;
	}
	const char *const word = argv[1];
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
		return ky_help_run(argc - 1, argv + 1);
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ||
	    strcmp(word, "version") == 0) {
		printf("kymo %s\n", KYMO_VERSION);
		return KY_EXIT_DONE;
	}
	if (word[0] == '-')
		return ky_cli_usage("'%s' is not an option of kymo itself: options follow the verb",
				    word);
	const struct ky_verb *const verb = ky_verb_find(word);
	if (!verb)
		return ky_verb_unknown(word);
	ky_cli_begin(verb);
	return verb->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	const struct sigaction gone = {.sa_handler = reader_gone};
	setlocale(LC_CTYPE, "");
	ky_quantity_set_ascii(ky_cli_ascii());
	sigaction(SIGPIPE, &gone, NULL);
	return ky_cli_end(run(argc, argv));
}
