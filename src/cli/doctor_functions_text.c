/* SPDX-License-Identifier: MIT */
/* doctor_functions_text.c: what kymo doctor PROGRAM found, for people: see doctor_functions.h. */
#include "cli/doctor_functions.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

static void print_head(const struct ky_doctor_modules *modules)
{
	char count[KY_QUANTITY_BYTES], part[KY_QUANTITY_BYTES];
	const size_t libraries = modules->count - 1;
	printf("%s%.1f %%%s of the functions of ", ky_cli_style("1"),
	       ky_doctor_percent(&modules->sums), ky_cli_plain());
	ky_cli_text(stdout, modules->items[0].functions->path,
		    strlen(modules->items[0].functions->path));
	if (libraries)
		printf(" and %zu librar%s", libraries, libraries == 1 ? "y" : "ies");
	printf(" can be traced: %s of %s\n",
	       ky_quantity_count(part, ky_doctor_traced(&modules->sums)),
	       ky_quantity_count(count, modules->sums.count));
	printf("engine %s: %s\n\n", ky_functrace_engine_name(modules->engine), modules->engine_why);
}

static void print_how(struct ky_cli_table *table, const struct ky_doctor_sums *sums)
{
	static const char *const words[] = {NULL, "patch", "nops", "sleds"};
	char text[64] = "";
	for (size_t how = KY_FUNCTION_PATCH; how <= KY_FUNCTION_SLED; how++) {
		const size_t used = strlen(text);
		if (sums->how[how])
			snprintf(text + used, sizeof(text) - used, "%s%s", used ? ", " : "",
				 words[how]);
	}
	ky_cli_table_cell(table, text);
}

static void print_modules(const struct ky_doctor_modules *modules)
{
	static const struct ky_cli_column columns[] = {
		{"functions", true, false}, {"traced", true, false}, {"%", true, false},
		{"named", true, false},     {"names", false, false}, {"how", false, false},
		{"file", false, true}};
	struct ky_cli_table *table =
		ky_cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < modules->count; i++) {
		const struct ky_doctor_module *module = &modules->items[i];
		ky_cli_table_format(table, "%" PRIu32, module->sums.count);
		ky_cli_table_format(table, "%" PRIu32, ky_doctor_traced(&module->sums));
		ky_cli_table_format(table, "%.1f", ky_doctor_percent(&module->sums));
		ky_cli_table_format(table, "%" PRIu32, module->sums.named);
		ky_cli_table_cell(table, module->functions->names_from);
		print_how(table, &module->sums);
		ky_cli_table_cell(table, module->functions->path);
	}
	ky_cli_table_print(&table, stdout);
}

static void print_reasons(const struct ky_doctor_sums *sums)
{
	static const struct ky_cli_column columns[] = {
		{"left out", true, false}, {"because", false, false}, {"such as", false, true}};
	struct ky_cli_table *table =
		ky_cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t why = KY_WHY_NONE + 1; why < KY_WHY_COUNT; why++) {
		const char *const *names = sums->examples[why];
		if (!sums->why[why])
			continue;
		ky_cli_table_format(table, "%" PRIu32, sums->why[why]);
		ky_cli_table_cell(table, ky_function_why_text((enum ky_function_why)why));
		ky_cli_table_format(table, "%s%s%s%s%s", names[0], names[1] ? ", " : "",
				    names[1] ? names[1] : "", names[2] ? ", " : "",
				    names[2] ? names[2] : "");
	}
	ky_cli_table_print(&table, stdout);
}

static void print_all(const struct ky_doctor_modules *modules)
{
	static const struct ky_cli_column columns[] = {{"address", true, false},
						       {"bytes", true, false},
						       {"function", false, true},
						       {"because", false, false},
						       {"file", false, false}};
	struct ky_cli_table *table =
		ky_cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < modules->count; i++) {
		const struct ky_functions *functions = modules->items[i].functions;
		const char *slash = strrchr(functions->path, '/');
		for (uint32_t n = 0; n < functions->count; n++) {
			const struct ky_function *function = &functions->functions[n];
			if (function->how != KY_FUNCTION_NOT)
				continue;
			ky_cli_table_format(table, "0x%" PRIx64, function->address);
			ky_cli_table_format(table, "%" PRIu64, function->bytes);
			ky_cli_table_cell(table, function->name);
			ky_cli_table_cell(table, ky_function_why_text(function->why));
			ky_cli_table_cell(table, slash ? slash + 1 : functions->path);
		}
	}
	ky_cli_table_print(&table, stdout);
}

void ky_doctor_print_text(const struct ky_doctor_modules *modules, bool all)
{
	print_head(modules);
	print_modules(modules);
	putchar('\n');
	if (all)
		print_all(modules);
	else
		print_reasons(&modules->sums);
}
