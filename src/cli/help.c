/* SPDX-License-Identifier: MIT */
/*
 * help.c: what a verb's description (verb.h) says, as help for a terminal, as a man page, and as words for the
 * completion of a shell.
 */
#include "cli/cli.h"
#include "formats/load.h"

#include <kymo/version.h>

#include <ctype.h>
#include <string.h>

#define LINE 80
#define TEXT_AT 26 /* the column of the options' texts */

/* Report the end of a list of options. */
static bool is_end(const struct ky_option *option)
{
	return !option->name && !option->help;
}

/* Report whether an option is known, but not offered: it has no help. */
static bool is_hidden(const struct ky_option *option)
{
	return !option->help;
}

/* ---- for a terminal ---- */

/* Fill words into lines that begin at a column; the cursor is at column now. Return where it is then. */
static unsigned fill(const char *text, size_t bytes, unsigned now, unsigned at)
{
	const char *const end = text + bytes;
	bool first = now <= at;
	while (text < end) {
		const size_t blanks = strspn(text, " \n");
		const size_t word = strcspn(text + blanks, " \n");
		text += blanks;
		if (text >= end || !word)
			break;
		if (!first && now + 1 + word > LINE) {
			printf("\n%*s", (int)at, "");
			now = at;
		} else if (!first) {
			putchar(' ');
			now++;
		}
		printf("%.*s", (int)word, text);
		now += (unsigned)word;
		text += word;
		first = false;
	}
	return now;
}

static void print_paragraphs(const char *text)
{
	while (text && *text) {
		const char *const next = strstr(text, "\n\n");
		const size_t bytes = next ? (size_t)(next - text) : strlen(text);
		if (strncmp(text, "  ", 2) == 0)
			printf("%.*s", (int)bytes, text);
		else
			fill(text, bytes, 0, 0);
		printf("\n\n");
		text = next ? next + 2 : NULL;
	}
}

static void print_usage(const struct ky_verb *verb)
{
	const char *lead = "usage:";
	for (const char *line = verb->usage; *line;) {
		const size_t bytes = strcspn(line, "\n");
		printf("%-6s kymo %s%s%.*s\n", lead, verb->name, bytes ? " " : "", (int)bytes,
		       line);
		lead = "";
		line += bytes + (line[bytes] == '\n');
	}
	putchar('\n');
}

/* Print what precedes a text, and go to the text's column, on the next line when it is too long. */
static unsigned print_label(const char *label)
{
	const unsigned bytes = (unsigned)strlen(label);
	if (bytes + 1 < TEXT_AT)
		printf("%-*s", TEXT_AT, label);
	else
		printf("%s\n%*s", label, TEXT_AT, "");
	return TEXT_AT;
}

static void label_of(const struct ky_option *option, char label[96])
{
	char letter[8] = "    ";
	const bool optional = option->argument && option->argument[0] == '[';
	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	if (optional)
		snprintf(label, 96, "  %s--%s[=%s", letter, option->name, option->argument + 1);
	else
		snprintf(label, 96, "  %s--%s%s%s", letter, option->name,
			 option->argument ? " " : "", option->argument ? option->argument : "");
}

static void print_choices(const struct ky_choice *choices)
{
	for (; choices->name; choices++) {
		char label[96];
		snprintf(label, sizeof(label), "        %s", choices->name);
		fill(choices->help, strlen(choices->help), print_label(label), TEXT_AT);
		putchar('\n');
	}
}

static void print_option(const struct ky_option *option, bool first)
{
	char label[96];
	if (is_hidden(option))
		return;
	if (option->kind == KY_OPTION_TITLE) {
		printf("%s%s\n", first ? "" : "\n", option->help);
		return;
	}
	label_of(option, label);
	fill(option->help, strlen(option->help), print_label(label), TEXT_AT);
	putchar('\n');
	if (option->listed)
		print_choices(ky_option_choices(option));
}

static void print_options(const struct ky_verb *verb)
{
	static const struct ky_option help = {
		.name = "help", .kind = KY_OPTION_FLAG, .letter = 'h', .help = "show this help"};
	bool first = true;
	for (const struct ky_option_set *set = verb->options; set->options; set++) {
		for (const struct ky_option *option = set->options; !is_end(option); option++) {
			print_option(option, first);
			first = false;
		}
	}
	print_option(&help, first);
}

static void print_examples(const char *examples)
{
	puts("\nexamples");
	while (*examples) {
		const size_t bytes = strcspn(examples, "\n");
		printf("  %.*s\n", (int)bytes, examples);
		examples += bytes + (examples[bytes] == '\n');
	}
}

void ky_help_print(const struct ky_verb *verb)
{
	print_usage(verb);
	print_paragraphs(verb->about);
	print_options(verb);
	print_examples(verb->examples);
}

static void print_formats(FILE *to)
{
	unsigned column = LINE;
	fputs("\nformats it reads, detected by content, also packed (gz, zst, zip)", to);
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++) {
		const unsigned bytes = (unsigned)strlen((*reader)->name) + 2;
		const bool line = column + bytes > LINE;
		fprintf(to, "%s%s%s", line ? "\n  " : " ", (*reader)->name, reader[1] ? "," : "\n");
		column = line ? 2 + bytes : column + bytes;
	}
}

void ky_help_overview(FILE *to)
{
	const char *group = "";
	fputs("usage: kymo VERB [OPTIONS] [FILES]\n"
	      "\n"
	      "Record programs; read, show, compare and convert traces of any format.\n",
	      to);
	for (const struct ky_verb_entry *entry = ky_verbs; entry->group; entry++) {
		if (strcmp(entry->group, group) != 0)
			fprintf(to, "\n%s\n", entry->group);
		group = entry->group;
		fprintf(to, "  %-10s %s\n", entry->verb->name, entry->verb->summary);
	}
	print_formats(to);
	fputs("\n"
	      "  kymo help VERB   show a verb's options and examples\n"
	      "  kymo -V, --version   show the version\n",
	      to);
}

/* ---- man pages ---- */

/* Print text for troff: `code` is bold, dashes and backslashes are literal, a line never begins with a dot. */
static void man_text(const char *text, size_t bytes)
{
	bool bold = false;
	char before = '\n';
	for (size_t i = 0; i < bytes; i++) {
		const char c = text[i];
		if ((c == '.' || c == '\'') && before == '\n')
			fputs("\\&", stdout);
		if (c == '`')
			fputs((bold = !bold) ? "\\fB" : "\\fP", stdout);
		else if (c == '-')
			fputs("\\-", stdout);
		else if (c == '\\')
			fputs("\\e", stdout);
		else
			putchar(c);
		before = c;
	}
}

static void man_line(const char *text)
{
	man_text(text, strlen(text));
	putchar('\n');
}

/* Print a phrase with a capital letter, and behind it what ends it. */
static void man_phrase(const char *phrase, const char *end)
{
	const char head = (char)toupper((unsigned char)phrase[0]);
	man_text(&head, 1);
	man_text(phrase + 1, strlen(phrase + 1));
	puts(end);
}

static void man_paragraphs(const char *text)
{
	for (bool first = true; text && *text; first = false) {
		const char *const next = strstr(text, "\n\n");
		const size_t bytes = next ? (size_t)(next - text) : strlen(text);
		const bool literal = strncmp(text, "  ", 2) == 0;
		if (!first)
			puts(".PP");
		if (literal)
			puts(".nf");
		man_text(text, bytes);
		putchar('\n');
		if (literal)
			puts(".fi");
		text = next ? next + 2 : NULL;
	}
}

static void man_choices(const struct ky_choice *choices)
{
	puts(".RS");
	for (; choices->name; choices++) {
		fputs(".TP\n.B ", stdout);
		man_line(choices->name);
		man_phrase(choices->help, ".");
		if (choices->more)
			man_line(choices->more);
	}
	puts(".RE");
}

static void man_option(const struct ky_option *option)
{
	if (is_hidden(option))
		return;
	if (option->kind == KY_OPTION_TITLE) {
		fputs(".SS ", stdout);
		man_phrase(option->help, "");
		return;
	}
	fputs(".TP\n", stdout);
	if (option->letter)
		printf("\\fB\\-%c\\fP, ", option->letter);
	fputs("\\fB\\-\\-", stdout);
	man_text(option->name, strlen(option->name));
	fputs("\\fP", stdout);
	if (option->argument && option->argument[0] == '[')
		printf("[=\\fI%.*s\\fP]", (int)strlen(option->argument) - 2, option->argument + 1);
	else if (option->argument)
		printf(" \\fI%s\\fP", option->argument);
	putchar('\n');
	man_phrase(option->help, ".");
	if (option->more)
		man_line(option->more);
	if (option->listed)
		man_choices(ky_option_choices(option));
}

static void man_see_also(const char *related)
{
	fputs(".SH SEE ALSO\n.BR kymo (1)", stdout);
	while (related && *related) {
		const size_t bytes = strcspn(related, " ");
		printf(",\n.BR kymo\\-%.*s (1)", (int)bytes, related);
		related += bytes + (related[bytes] == ' ');
	}
	puts(",\n.BR kymo (7)");
}

static void man_synopsis(const struct ky_verb *verb)
{
	puts(".SH SYNOPSIS\n.nf");
	for (const char *line = verb->usage; *line;) {
		const size_t bytes = strcspn(line, "\n");
		printf("\\fBkymo %s\\fP%s", verb->name, bytes ? " " : "");
		man_text(line, bytes);
		putchar('\n');
		line += bytes + (line[bytes] == '\n');
	}
	puts(".fi");
}

static void man_page(const struct ky_verb *verb)
{
	char title[32];
	size_t i = 0;
	for (; verb->name[i] && i + 1 < sizeof(title); i++)
		title[i] = (char)toupper((unsigned char)verb->name[i]);
	title[i] = 0;
	printf(".TH KYMO\\-%s 1 \"\" \"kymo " KYMO_VERSION "\" \"Tracing\"\n", title);
	printf(".SH NAME\nkymo\\-%s \\- ", verb->name);
	man_line(verb->summary);
	man_synopsis(verb);
	puts(".SH DESCRIPTION");
	man_paragraphs(verb->about);
	if (verb->details) {
		puts(".PP");
		man_paragraphs(verb->details);
	}
	puts(".SH OPTIONS");
	for (const struct ky_option_set *set = verb->options; set->options; set++) {
		for (const struct ky_option *option = set->options; !is_end(option); option++)
			man_option(option);
	}
	puts(".TP\n\\fB\\-h\\fP, \\fB\\-\\-help\\fP\nShow a summary.");
	for (const struct ky_section *section = verb->sections; section && section->title;
	     section++) {
		printf(".SH %s\n", section->title);
		man_paragraphs(section->text);
	}
	puts(".SH EXIT STATUS");
	man_paragraphs(verb->status ? verb->status : "0: done; 1: failed; 2: wrong usage.");
	puts(".SH EXAMPLES\n.nf");
	man_line(verb->examples);
	puts(".fi");
	man_see_also(verb->related);
}

/* ---- completion ---- */

static void complete_option(const struct ky_option *option)
{
	for (const struct ky_choice *choice = ky_option_choices(option); choice && choice->name;
	     choice++)
		puts(choice->name);
}

/* Print the verbs; the options of a verb; or the values of an option. */
static int complete(const char *name, const char *word)
{
	if (!name) {
		for (const struct ky_verb_entry *entry = ky_verbs; entry->group; entry++)
			puts(entry->verb->name);
		return KY_EXIT_DONE;
	}
	const struct ky_verb *const verb = ky_verb_find(name);
	for (const struct ky_option_set *set = verb ? verb->options : NULL; set && set->options;
	     set++) {
		for (const struct ky_option *option = set->options; !is_end(option); option++) {
			if (!option->name || is_hidden(option))
				continue;
			if (!word)
				printf("--%s\n", option->name);
			else if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0)
				complete_option(option);
		}
	}
	return KY_EXIT_DONE;
}

int ky_help_run(int argc, char **argv)
{
	const bool man = argc == 3 && strcmp(argv[1], "--man") == 0;
	if (argc >= 2 && strcmp(argv[1], "--complete") == 0)
		return complete(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
	if (argc < 2) {
		ky_help_overview(stdout);
		return KY_EXIT_DONE;
	}
	const struct ky_verb *const verb = ky_verb_find(argv[man ? 2 : 1]);
	if (!verb)
		return ky_verb_unknown(argv[man ? 2 : 1]);
	(man ? man_page : ky_help_print)(verb);
	return KY_EXIT_DONE;
}
