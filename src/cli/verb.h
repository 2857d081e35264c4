/* SPDX-License-Identifier: MIT */
/*
 * verb.h: a verb of the command line and its options, as one const description:
 *
 *   struct ky_verb ─┬─▶ reading the options        options.c
 *                   ├─▶ kymo VERB --help            help.c
 *                   ├─▶ kymo help --man VERB        help.c; the build makes the man pages with it
 *                   └─▶ kymo help --complete VERB   help.c; the shell's completion asks for it
 *
 * A verb is cmd_VERB.c and a line in the table of main.c. An option names its place in the verb's command struct, so
 * that most options need no code of their own.
 */
#ifndef KY_CLI_VERB_H
#define KY_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ky_exit {
	KY_EXIT_DONE = 0,
	KY_EXIT_FAILED = 1, /* diff, validate: it differs, it has problems */
	KY_EXIT_USAGE = 2,
	KY_EXIT_TROUBLE = 2, /* diff, validate: any failure */
	KY_EXIT_NOTHING = 3, /* what the user named matches nothing, or never happened */
	KY_EXIT_IMPOSSIBLE = 77
};

/* How an option's value is read, and what is at its place in the command struct. */
enum ky_option_kind {
	KY_OPTION_TITLE,    /* not an option: help is the title of those that follow */
	KY_OPTION_FLAG,     /* bool */
	KY_OPTION_SET,      /* an enum: becomes least; the last option of a place wins */
	KY_OPTION_TEXT,     /* const char *: the value as typed */
	KY_OPTION_NUMBER,   /* uint32_t, from least to most */
	KY_OPTION_DURATION, /* uint64_t, nanoseconds, from least on */
	KY_OPTION_SIZE,     /* uint64_t, bytes; not 0 */
	KY_OPTION_CHOICE,   /* uint32_t or an enum: the number of the value among the choices */
	KY_OPTION_CALL      /* take() reads it */
};

struct ky_choice {
	const char *name; /* NULL ends a list */
	const char *help; /* a phrase; NULL: the name says it */
	const char *more; /* further sentences for the man page, or NULL */
};

struct ky_option {
	const char *name; /* the long form, without dashes; NULL ends a list unless it is a title */
	enum ky_option_kind kind;
	char letter;                     /* the short form, or 0 */
	const char *argument;            /* what stands for the value; "[X]": it may be left out */
	const char *help;                /* a phrase, for --help */
	const char *more;                /* further sentences for the man page, or NULL */
	size_t offset;                   /* in the command struct */
	uint32_t least, most;            /* of a number; both 0: any */
	const struct ky_choice *choices; /* for messages and completion, too; or NULL */
	const struct ky_choice *(*choices_of)(void); /* the same, of a table elsewhere; or NULL */
	bool listed; /* the help lists the choices with their phrases */
	/* Reads the value into the command. 0, or KY_EXIT_USAGE after a message. */
	int (*take)(void *command, const char *value);
	const char *refusal; /* only another verb has it: the message that says so; or NULL */
};

/* The kind and the place of an option, in its initializer. */
#define KY_OPTION_AT(type, command, field)                                                         \
	.kind = KY_OPTION_##type, .offset = offsetof(command, field)

/* Options that are at offset in the verb's command struct; several verbs may share them. NULL ends a list. */
struct ky_option_set {
	const struct ky_option *options;
	size_t offset;
};

/* A section of the man page. */
struct ky_section {
	const char *title; /* NULL ends a list */
	const char *text;
};

/*
 * Texts are paragraphs with an empty line between them, which the printer fills to the line; a line that
 * begins with two blanks stays as it is. In what only the man page has, `code` is bold.
 */
struct ky_verb {
	const char *name;
	const char *summary;  /* a phrase: "show ..." */
	const char *usage;    /* what follows "kymo VERB"; a line for each form */
	const char *about;    /* for --help and the man page */
	const char *details;  /* for the man page, or NULL */
	const char *status;   /* exit status, or NULL: the usual one */
	const char *examples; /* a line each */
	const char *related;  /* other verbs with a blank between them */
	const struct ky_option_set *options;
	const struct ky_section *sections; /* or NULL */
	bool judges;       /* 1 is its verdict, and a failure KY_EXIT_TROUBLE, as with diff(1) */
	bool runs_command; /* the first argument ends the options */
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns an enum ky_exit */
};

/* All verbs: the group under which --help shows them, and their name. */
#define KY_VERBS(X)                                                                                \
	X("record", run)                                                                           \
	X("record", attach)                                                                        \
	X("record", record)                                                                        \
	X("record", snapshot)                                                                      \
	X("record", list)                                                                          \
	X("record", top)                                                                           \
	X("record", tail)                                                                          \
	X("record", enable)                                                                        \
	X("record", disable)                                                                       \
	X("look at a trace", view)                                                                 \
	X("look at a trace", info)                                                                 \
	X("look at a trace", report)                                                               \
	X("look at a trace", hist)                                                                 \
	X("look at a trace", sched)                                                                \
	X("look at a trace", query)                                                                \
	X("convert", convert)                                                                      \
	X("convert", merge)                                                                        \
	X("convert", split)                                                                        \
	X("convert", repair)                                                                       \
	X("check", diff)                                                                           \
	X("check", validate)                                                                       \
	X("check", doctor)

#define KY_VERB_DECLARE(group, name) extern const struct ky_verb ky_verb_##name;
KY_VERBS(KY_VERB_DECLARE)
#undef KY_VERB_DECLARE

/* The same as an array; a group of NULL ends it. */
struct ky_verb_entry {
	const char *group;
	const struct ky_verb *verb;
};
extern const struct ky_verb_entry ky_verbs[];

/* Return the verb of that name, or NULL. */
const struct ky_verb *ky_verb_find(const char *name);
/* Report that there is no such verb, and which one was probably meant. Return KY_EXIT_USAGE. */
int ky_verb_unknown(const char *name);

/*
 * Read all options of the running verb into its command struct, which holds the defaults; optind is the first argument
 * then. Print help and exit on --help. 0, or KY_EXIT_USAGE after a message.
 */
int ky_options_read(void *command, int argc, char **argv);
/* Read a size as people type it: "64k", "10M", "2G", "1000". False: it is not one. */
bool ky_options_parse_size(const char *text, uint64_t *bytes);
/* Report that the time of an option has no unit; return KY_EXIT_USAGE. */
int ky_options_no_unit(const char *option, const char *time);
/* Write "a, b or c": all choices, into text. Return text. */
const char *ky_options_list(const struct ky_choice *choices, char *text, size_t bytes);

/* Return the choices of an option; NULL: it takes any value. */
static inline const struct ky_choice *ky_option_choices(const struct ky_option *option)
{
	return option->choices_of ? option->choices_of() : option->choices;
}

/* Print the help of a verb, or the overview. */
void ky_help_print(const struct ky_verb *verb);
void ky_help_overview(FILE *to);
/* Do what `kymo help ARGUMENTS` asks for. Return an enum ky_exit. */
int ky_help_run(int argc, char **argv);

#endif
