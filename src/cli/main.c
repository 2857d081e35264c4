/* SPDX-License-Identifier: MIT */
/*
 * main.c: kymo VERB. Finds the verb and runs it; helps when there is none of that name.
 *
 * Standard output is flushed in one place at the end, so that a full disk is an error of every
 * verb. A reader of it that has gone away is none: kymo ends at once and says nothing.
 */
#include "cli/cli.h"
#include "formats/reader.h"

#include <kymo/version.h>

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct group {
	const char *title;
	const struct ky_verb *verbs[8]; /* ends with NULL */
};

static const struct group groups[] = {
	{"record",
	 {&ky_verb_run, &ky_verb_attach, &ky_verb_record, &ky_verb_snapshot, &ky_verb_list}},
	{"look at a trace",
	 {&ky_verb_view, &ky_verb_info, &ky_verb_report, &ky_verb_hist, &ky_verb_query}},
	{"convert", {&ky_verb_convert, &ky_verb_merge, &ky_verb_split, &ky_verb_repair}},
	{"check", {&ky_verb_diff, &ky_verb_validate, &ky_verb_doctor}},
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

const struct ky_verb *const ky_verbs[] = {
	&ky_verb_run,      &ky_verb_attach,  &ky_verb_record,
	&ky_verb_snapshot, &ky_verb_list,    &ky_verb_view,
	&ky_verb_info,     &ky_verb_report,  &ky_verb_hist,
	&ky_verb_query,    &ky_verb_convert, &ky_verb_merge,
	&ky_verb_split,    &ky_verb_repair,  &ky_verb_diff,
	&ky_verb_validate, &ky_verb_doctor,  NULL,
};

static void print_formats(FILE *to)
{
	unsigned column = 80;
	fputs("\nformats it reads, known by their content, packed (gz, zst, zip) or not", to);
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++) {
		const unsigned bytes = (unsigned)strlen((*reader)->name) + 2;
		const bool line = column + bytes > 80;
		fprintf(to, "%s%s%s", line ? "\n  " : " ", (*reader)->name, reader[1] ? "," : "\n");
		column = line ? 2 + bytes : column + bytes;
	}
}

static void print_help(FILE *to)
{
	fputs("usage: kymo VERB [OPTIONS] [FILES]\n"
	      "\n"
	      "Records programs, and reads traces of any format: what is in them, what takes how "
	      "long, what\n"
	      "has changed.\n",
	      to);
	for (size_t g = 0; g < GROUPS; g++) {
		fprintf(to, "\n%s\n", groups[g].title);
		for (const struct ky_verb *const *verb = groups[g].verbs; *verb; verb++)
			fprintf(to, "  %-10s %s\n", (*verb)->name, (*verb)->summary);
	}
	print_formats(to);
	fputs("\n"
	      "  kymo help VERB   all about a verb, with examples\n"
	      "  kymo --version   which kymo this is\n",
	      to);
}

static const struct ky_verb *find_verb(const char *name)
{
	for (const struct ky_verb *const *verb = ky_verbs; *verb; verb++) {
		if (strcmp((*verb)->name, name) == 0)
			return *verb;
	}
	return NULL;
}

#define WORD_MAX 16

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * How many letters to insert, delete, replace or swap with their neighbour; both at most WORD_MAX
 * long.
 */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned cost[WORD_MAX + 1][WORD_MAX + 1];
	const size_t a_bytes = strlen(a), b_bytes = strlen(b);
	for (size_t i = 0; i <= a_bytes; i++)
		cost[i][0] = (unsigned)i;
	for (size_t j = 0; j <= b_bytes; j++)
		cost[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_bytes; i++) {
		for (size_t j = 1; j <= b_bytes; j++) {
			const bool swapped =
				i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
			cost[i][j] = least(cost[i - 1][j], cost[i][j - 1]) + 1;
			cost[i][j] = least(cost[i][j], cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (swapped)
				cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
		}
	}
	return cost[a_bytes][b_bytes];
}

/* The verb that was probably meant, or NULL. */
static const struct ky_verb *nearest_verb(const char *name)
{
	const struct ky_verb *best = NULL;
	unsigned best_distance = 3;
	if (!*name || strlen(name) > WORD_MAX)
		return NULL;
	for (const struct ky_verb *const *verb = ky_verbs; *verb; verb++) {
		const bool begins =
			strlen(name) > 2 && strncmp((*verb)->name, name, strlen(name)) == 0;
		const unsigned distance = begins ? 0 : edit_distance(name, (*verb)->name);
		if (distance < best_distance && distance < strlen(name)) {
			best = *verb;
			best_distance = distance;
		}
	}
	return best;
}

static int unknown_verb(const char *name)
{
	const struct ky_verb *const nearest = nearest_verb(name);
	struct stat status;
	if (nearest)
		ky_cli_error("there is no verb '%s'; did you mean '%s'?", name, nearest->name);
	else if (stat(name, &status) == 0)
		ky_cli_error("'%s' is no verb; 'kymo info %s' says what is in it", name, name);
	else
		ky_cli_error("there is no verb '%s'; 'kymo --help' lists all", name);
	return KY_EXIT_USAGE;
}

static int help(const char *name)
{
	if (!name) {
		print_help(stdout);
		return KY_EXIT_DONE;
	}
	const struct ky_verb *const verb = find_verb(name);
	if (!verb)
		return unknown_verb(name);
	fputs(verb->help, stdout);
	return KY_EXIT_DONE;
}

/* Nobody wants what is left to print. */
static void reader_gone(int signal_number)
{
	(void)signal_number;
	_exit(KY_EXIT_DONE);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return KY_EXIT_USAGE;
	}
	const char *const word = argv[1];
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
		return help(argc > 2 ? argv[2] : NULL);
	if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
		printf("kymo %s\n", KYMO_VERSION);
		return KY_EXIT_DONE;
	}
	if (word[0] == '-')
		return ky_cli_usage("there is no option '%s' before the verb", word);
	const struct ky_verb *const verb = find_verb(word);
	if (!verb)
		return unknown_verb(word);
	ky_cli_begin(verb);
	return verb->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	const struct sigaction gone = {.sa_handler = reader_gone};
	setlocale(LC_CTYPE, "");
	sigaction(SIGPIPE, &gone, NULL);
	return ky_cli_end(run(argc, argv));
}
