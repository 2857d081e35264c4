/* SPDX-License-Identifier: MIT */
/*
 * finder_program.c: the finder alone, for finder.py.
 *
 *	finder_program FILE	chooses a function of that ELF file and prints it; exits as kymo would
 */
#include "cli/capture_verb.h"
#include "cli/cli.h"

#include <locale.h>
#include <stdarg.h>
#include <string.h>

int ky_cli_error(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fputs("finder: ", stderr);
	vfprintf(stderr, format, list);
	fputs("\n", stderr);
	va_end(list);
	return KY_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	char message[KY_MESSAGE_BYTES], name[1024];
	struct ky_symbol_list *list;
	setlocale(LC_CTYPE, "C.UTF-8");
	if (argc != 2)
		return KY_EXIT_USAGE;
	if (ky_symbol_list_open_program(&list, argv[1], message) != 0) {
		ky_cli_error("%s", message);
		return KY_EXIT_FAILED;
	}
	const int code = ky_finder_choose(list, name, sizeof(name));
	if (code == KY_EXIT_DONE)
		printf("chosen <%s>\n", name);
	ky_symbol_list_close(&list);
	return code;
}
