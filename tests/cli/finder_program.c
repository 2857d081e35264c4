/* SPDX-License-Identifier: MIT */
/*
 * finder_program.c: the finder alone, for finder.py.
 *
 *	finder_program FILE		chooses a function of that ELF file and prints it; exits as kymo would
 *	finder_program -m TYPED NAME...	prints the names that are meant, the best first
 */
#include "cli/cli.h"
#include "cli/finder.h"
#include "cli/finder_match.h"

#include <locale.h>
#include <stdarg.h>
#include <string.h>

void ky_cli_error(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fputs("finder: ", stderr);
	vfprintf(stderr, format, list);
	fputs("\n", stderr);
	va_end(list);
}

static int match(const char *typed, char **names, int count)
{
	for (uint32_t score = KY_FINDER_SCORES; score-- > 1;)
		for (int i = 0; i < count; i++)
			if (ky_finder_score(names[i], typed) == score)
				puts(names[i]);
	return 0;
}

int main(int argc, char **argv)
{
	char message[KY_CAPTURE_MESSAGE_BYTES], name[1024];
	struct ky_symbol_list *list;
	setlocale(LC_CTYPE, "C.UTF-8");
	if (argc > 3 && strcmp(argv[1], "-m") == 0)
		return match(argv[2], argv + 3, argc - 3);
	if (argc != 2)
		return KY_EXIT_USAGE;
	if (ky_symbol_list_open_file(&list, argv[1], message) != 0) {
		ky_cli_error("%s", message);
		return KY_EXIT_FAILED;
	}
	const int code = ky_finder_choose(list, name, sizeof(name));
	if (code == KY_EXIT_DONE)
		printf("chosen <%s>\n", name);
	ky_symbol_list_close(&list);
	return code;
}
