/* SPDX-License-Identifier: MIT */
/* options.c: reads the options of a verb by its description (verb.h). */
#include "cli/cli.h"
#include "model/quantity.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 64
#define HELP_VALUE 0xffff

/* getopt's form of the options: val is the letter, or FIRST and the option's number. */
#define FIRST 0x100
struct parser {
	struct option longs[OPTIONS_MAX + 2];
	char shorts[3 * OPTIONS_MAX + 8];
	const struct ky_option *options[OPTIONS_MAX];
	size_t offsets[OPTIONS_MAX];
	int count;
};

static int has_argument(const struct ky_option *option)
{
	if (!option->argument)
		return no_argument;
	return option->argument[0] == '[' ? optional_argument : required_argument;
}

static void add_option(struct parser *parser, const struct ky_option *option, size_t offset)
{
	const int number = parser->count;
	if (option->kind == KY_OPTION_TITLE || number == OPTIONS_MAX)
		return;
	parser->options[number] = option;
	parser->offsets[number] = offset + option->offset;
	parser->longs[number] =
		(struct option){option->name, has_argument(option), NULL, FIRST + number};
	if (option->letter) {
		char *const end = parser->shorts + strlen(parser->shorts);
		snprintf(end, 4, "%c%s", option->letter, option->argument ? ":" : "");
	}
	parser->count++;
}

static void make_parser(struct parser *parser, const struct ky_verb *verb)
{
	*parser = (struct parser){0};
	strcpy(parser->shorts, verb->runs_command ? "+:h" : ":h");
	for (const struct ky_option_set *set = verb->options; set->options; set++) {
		for (const struct ky_option *option = set->options; option->name || option->help;
		     option++)
			add_option(parser, option, set->offset);
	}
	parser->longs[parser->count] = (struct option){"help", no_argument, NULL, HELP_VALUE};
}

static const struct ky_option *option_of(const struct parser *parser, int value, size_t *offset)
{
	for (int i = 0; i < parser->count; i++) {
		if (value == FIRST + i || (value < FIRST && parser->options[i]->letter == value)) {
			*offset = parser->offsets[i];
			return parser->options[i];
		}
	}
	return NULL;
}

/* ---- values ---- */

bool ky_options_parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "kKmMgGtT";
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno)
		return false;
	unsigned shift = 0;
	const char *const unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned)((unit - units) / 2 + 1);
		end++;
		if (strcmp(end, "iB") == 0)
			end += 2;
	}
	*bytes = (uint64_t)value << shift;
	return *end == '\0' && *bytes >> shift == value;
}

const char *ky_options_list(const struct ky_choice *choices, char *text, size_t bytes)
{
	size_t used = 0;
	text[0] = 0;
	for (const struct ky_choice *choice = choices; choice->name && used < bytes; choice++) {
		const char *const join = choice == choices ? "" : choice[1].name ? ", " : " or ";
		used += (size_t)snprintf(text + used, bytes - used, "%s%s", join, choice->name);
	}
	return text;
}

static int take_number(const struct ky_option *option, uint32_t *to)
{
	const uint32_t most = option->most ? option->most : UINT32_MAX;
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(optarg, &end, 10);
	if (optarg[0] < '0' || optarg[0] > '9' || *end || errno || value < option->least ||
	    value > most)
		return ky_cli_usage("--%s %s is not a number from %u to %u", option->name, optarg,
				    option->least, most);
	*to = (uint32_t)value;
	return 0;
}

int ky_options_no_unit(const char *option, const char *time)
{
	return ky_cli_usage("--%s %s has no unit: %ss, %sms, %sns?", option, time, time, time,
			    time);
}

static int take_duration(const struct ky_option *option, uint64_t *to)
{
	int64_t value;
	if (ky_quantity_lacks_unit(optarg))
		return ky_options_no_unit(option->name, optarg);
	if (!ky_quantity_parse_duration(optarg, &value) || value < (int64_t)option->least)
		return ky_cli_usage("--%s %s is not a time: use 10ms, 2s or 500us", option->name,
				    optarg);
	*to = (uint64_t)value;
	return 0;
}

static int take_size(const struct ky_option *option, uint64_t *to)
{
	if (!ky_options_parse_size(optarg, to) || !*to)
		return ky_cli_usage("--%s %s is not a size: use 64k, 100M or 2G", option->name,
				    optarg);
	return 0;
}

static int take_choice(const struct ky_option *option, uint32_t *to)
{
	const struct ky_choice *const choices = ky_option_choices(option);
	char list[256];
	for (uint32_t i = 0; choices[i].name; i++) {
		if (strcmp(choices[i].name, optarg) == 0) {
			*to = i;
			return 0;
		}
	}
	return ky_cli_usage("--%s %s is not known: use %s", option->name, optarg,
			    ky_options_list(choices, list, sizeof(list)));
}

static int take(void *command, const struct ky_option *option, size_t offset)
{
	void *const place = (char *)command + offset;
	if (option->refusal)
		return ky_cli_usage("%s", option->refusal);
	switch (option->kind) {
	case KY_OPTION_FLAG:
		*(bool *)place = true;
		return 0;
	case KY_OPTION_SET:
		*(uint32_t *)place = option->least;
		return 0;
	case KY_OPTION_TEXT:
		*(const char **)place = optarg;
		return 0;
	case KY_OPTION_NUMBER:
		return take_number(option, place);
	case KY_OPTION_DURATION:
		return take_duration(option, place);
	case KY_OPTION_SIZE:
		return take_size(option, place);
	case KY_OPTION_CHOICE:
		return take_choice(option, place);
	default:
		return option->take((char *)command + offset - option->offset, optarg);
	}
}

static bool has_option(const struct parser *parser, const char *name)
{
	for (int i = 0; i < parser->count; i++)
		if (strcmp(parser->options[i]->name, name) == 0)
			return true;
	return false;
}

static int bad_option(int result, char **argv, const struct parser *parser)
{
	const char *const word = argv[optind - 1];
	const bool is_long = strncmp(word, "--", 2) == 0;
	if (result == ':' && optopt && optopt < FIRST && !is_long)
		return ky_cli_usage("option -%c needs a value", optopt);
	if (result == ':')
		return ky_cli_usage("option %s needs a value", word);
	if (optopt > 0 && optopt < 128 && !is_long)
		return ky_cli_usage("there is no option -%c", optopt);
	for (const struct option *option = parser->longs; optopt && option->name; option++) {
		if (option->val == optopt)
			return ky_cli_usage("option --%s takes no value", option->name);
	}
	if (strncmp(word, "--format", 8) == 0 && has_option(parser, "input-format"))
		return ky_cli_usage(
			"there is no option --format: --input-format names the format of the input");
	return ky_cli_usage("there is no option %s", word);
}

int ky_options_read(void *command, int argc, char **argv)
{
	const struct ky_verb *const verb = ky_cli_verb();
	struct parser parser;
	make_parser(&parser, verb);
	opterr = 0;
	for (int value;
	     (value = getopt_long(argc, argv, parser.shorts, parser.longs, NULL)) != -1;) {
		size_t offset = 0;
		if (value == HELP_VALUE || value == 'h') {
			ky_help_print(verb);
			exit(ky_cli_end(KY_EXIT_DONE));
		}
		if (value == '?' || value == ':')
			return bad_option(value, argv, &parser);
		const struct ky_option *const option = option_of(&parser, value, &offset);
		const int wrong = take(command, option, offset);
		if (wrong)
			return wrong;
	}
	return 0;
}
