/* SPDX-License-Identifier: MIT */
/*
 * doctor_functions.c: kymo doctor PROGRAM: shows which functions of a program and of its libraries can be traced,
 * before it runs.
 *   program ─ its loader's list ─▶ modules ─ ky_functions_read() ─▶ sums by how and by why, a few names of each why
 * Libraries that it loads later (dlopen) are unknown; the engine is the one that --functions would choose on this
 * machine.
 */
#include "cli/doctor.h"

#include "base/array.h"
#include "base/file.h"

#include "functrace/functions.h"
#include "functrace/functrace.h"

#include "base/json_out.h"
#include "cli/cli.h"
#include "functrace/pt.h"
#include "process/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXAMPLES 3u

/* Functions of one module or of all. */
struct sums {
	uint32_t count, named;
	uint32_t how[KY_FUNCTION_SLED + 1];
	uint32_t why[KY_WHY_COUNT];
	const char *examples[KY_WHY_COUNT][EXAMPLES];
};

struct module {
	struct ky_functions *functions;
	struct sums sums;
};

struct modules {
	struct module *items;
	size_t count, room;
	int error;
	char message[KY_MESSAGE_BYTES];
	struct sums sums;
	enum ky_functrace_engine engine;
	char engine_why[KY_MESSAGE_BYTES];
};

/* ---- looking ---- */

/* Prefer functions with names as examples. */
static void add_example(struct sums *sums, const struct ky_function *function)
{
	const uint32_t have = sums->why[function->why];
	if (have < EXAMPLES)
		sums->examples[function->why][have] = function->name;
}

static void add_function(struct sums *sums, const struct ky_function *function)
{
	add_example(sums, function);
	sums->count++;
	sums->named += function->linked[0] != '0';
	sums->how[function->how]++;
	sums->why[function->why]++;
}

static uint32_t traced(const struct sums *sums)
{
	return sums->count - sums->how[KY_FUNCTION_NOT];
}

static double percent(const struct sums *sums)
{
	return sums->count ? 100.0 * traced(sums) / sums->count : 0;
}

static void add_module(void *context, const char *path)
{
	struct modules *modules = context;
	struct ky_functions *functions = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = fd < 0 ? -errno : 0;
	if (error)
		snprintf(modules->message, sizeof(modules->message), "cannot open %s: %s", path,
			 strerror(-error));
	else
		error = ky_functions_read(&functions, fd, path, false, modules->message);
	if (fd >= 0)
		close(fd);
	struct module *module =
		error ? NULL : KY_ARRAY_NEW(modules->items, modules->count, modules->room);
	if (!module) {
		ky_functions_free(&functions);
		modules->error = error ? error : -ENOMEM;
		return;
	}
	module->functions = functions;
	for (uint32_t i = 0; i < functions->count; i++) {
		add_function(&module->sums, &functions->functions[i]);
		add_function(&modules->sums, &functions->functions[i]);
	}
}

/* Find the program as a shell does. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	if (strchr(name, '/') || !folders)
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	while (*folders) {
		const size_t bytes = strcspn(folders, ":");
		if (snprintf(path, PATH_MAX, "%.*s/%s", bytes ? (int)bytes : 1,
			     bytes ? folders : ".", name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
		folders += bytes + (folders[bytes] == ':');
	}
	return false;
}

/* ---- the engine ---- */

static bool is_this_cpu(void)
{
#if defined(__x86_64__)
	return true;
#else
	return false;
#endif
}

/* Write why only the start of each call would be recorded, or "every call". */
static void put_calls(const struct modules *modules, char *text, size_t room)
{
	snprintf(text, room, "every call");
	for (size_t i = 0; i < modules->count; i++) {
		const struct ky_functions *functions = modules->items[i].functions;
		const char *why = ky_functions_why_entry_only(functions);
		if (!why)
			continue;
		snprintf(text, room, "the start of every call (%s: %s)",
			 ky_file_name(functions->path), why);
		return;
	}
}

/* Choose the engine as functrace does when the program runs; facts known only then may change it. */
static void choose_engine(struct modules *modules)
{
	char no_pt[KY_MESSAGE_BYTES] = "";
	char calls[192];
	struct ky_check ptrace = {0};
	put_calls(modules, calls, sizeof(calls));
	ky_check_ptrace(&ptrace);
	char *why = modules->engine_why;
	const size_t room = sizeof(modules->engine_why);
	if (ky_pt_available(no_pt)) {
		modules->engine = KY_FUNCTRACE_PT;
		snprintf(why, room, "the CPU traces every call by itself");
	} else if (!is_this_cpu() || ptrace.state == KY_CHECK_NO || !traced(&modules->sums)) {
		modules->engine = KY_FUNCTRACE_SAMPLE;
		snprintf(why, room, "call stacks alone; %s",
			 !is_this_cpu()                ? "functions are only patched on x86-64"
			 : ptrace.state == KY_CHECK_NO ? ptrace.detail
						       : "no function can be patched");
	} else if (ky_functions_are_ready(modules->items[0].functions)) {
		modules->engine = KY_FUNCTRACE_NOPS;
		snprintf(why, room, "it was compiled for it; %s; Intel PT: %.250s", calls, no_pt);
	} else {
		modules->engine = KY_FUNCTRACE_PATCH;
		snprintf(why, room, "%s; Intel PT: %.250s", calls, no_pt);
	}
}

/* Refuse to run a loader that is not root's: a question about a program must not run what it names. */
static void add_libraries(struct modules *modules, const char *path)
{
	if (!ky_program_libraries_are_safe(path)) {
		ky_cli_error(
			"libraries are left out: the loader that %s asks for is not root's, and "
			"could do anything",
			path);
		return;
	}
	ky_program_libraries(path, add_module, modules);
	if (modules->error)
		ky_cli_error("a library is left out: %s", modules->message);
}

/* ---- for people ---- */

static void print_head(const struct modules *modules)
{
	char count[KY_QUANTITY_BYTES], part[KY_QUANTITY_BYTES];
	const size_t libraries = modules->count - 1;
	printf("%s%.1f %%%s of the functions of ", ky_cli_style("1"), percent(&modules->sums),
	       ky_cli_plain());
	ky_cli_text(stdout, modules->items[0].functions->path,
		    strlen(modules->items[0].functions->path));
	if (libraries)
		printf(" and %zu librar%s", libraries, libraries == 1 ? "y" : "ies");
	printf(" can be traced: %s of %s\n", ky_quantity_count(part, traced(&modules->sums)),
	       ky_quantity_count(count, modules->sums.count));
	printf("engine %s: %s\n\n", ky_functrace_engine_name(modules->engine), modules->engine_why);
}

static void print_how(struct ky_cli_table *table, const struct sums *sums)
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

static void print_modules(const struct modules *modules)
{
	static const struct ky_cli_column columns[] = {
		{"functions", true, false}, {"traced", true, false}, {"%", true, false},
		{"named", true, false},     {"names", false, false}, {"how", false, false},
		{"file", false, true}};
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
	for (size_t i = 0; i < modules->count; i++) {
		const struct module *module = &modules->items[i];
		ky_cli_table_format(table, "%" PRIu32, module->sums.count);
		ky_cli_table_format(table, "%" PRIu32, traced(&module->sums));
		ky_cli_table_format(table, "%.1f", percent(&module->sums));
		ky_cli_table_format(table, "%" PRIu32, module->sums.named);
		ky_cli_table_cell(table, module->functions->names_from);
		print_how(table, &module->sums);
		ky_cli_table_cell(table, module->functions->path);
	}
	ky_cli_table_print(&table, 0);
}

static void print_reasons(const struct sums *sums)
{
	static const struct ky_cli_column columns[] = {
		{"left out", true, false}, {"because", false, false}, {"such as", false, true}};
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
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
	ky_cli_table_print(&table, 0);
}

static void print_all(const struct modules *modules)
{
	static const struct ky_cli_column columns[] = {{"address", true, false},
						       {"bytes", true, false},
						       {"function", false, true},
						       {"because", false, false},
						       {"file", false, false}};
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
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
	ky_cli_table_print(&table, 0);
}

static void print_text(const struct modules *modules, bool all)
{
	print_head(modules);
	print_modules(modules);
	putchar('\n');
	if (all)
		print_all(modules);
	else
		print_reasons(&modules->sums);
}

/* ---- for programs ---- */

static void json_build_id(struct ky_json_out *json, const struct ky_functions *functions)
{
	char text[2 * sizeof(functions->build_id) + 1] = "";
	for (uint32_t i = 0; i < functions->build_id_bytes; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", functions->build_id[i]);
	ky_json_out_text(json, "build_id", text[0] ? text : NULL);
}

static void json_reasons(struct ky_json_out *json, const struct sums *sums)
{
	ky_json_out_begin(json, "left_out", '[');
	for (size_t why = KY_WHY_NONE + 1; why < KY_WHY_COUNT; why++) {
		if (!sums->why[why])
			continue;
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "why", ky_function_why_text((enum ky_function_why)why));
		ky_json_out_uint(json, "count", sums->why[why]);
		ky_json_out_begin(json, "examples", '[');
		for (size_t i = 0; i < EXAMPLES && sums->examples[why][i]; i++)
			ky_json_out_text(json, NULL, sums->examples[why][i]);
		ky_json_out_end(json, ']');
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void json_all(struct ky_json_out *json, const struct ky_functions *functions)
{
	ky_json_out_begin(json, "functions_left_out", '[');
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		if (function->how != KY_FUNCTION_NOT)
			continue;
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "name", function->name);
		ky_json_out_uint(json, "address", function->address);
		ky_json_out_uint(json, "bytes", function->bytes);
		ky_json_out_text(json, "why", ky_function_why_text(function->why));
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void json_module(struct ky_json_out *json, const struct module *module, bool all)
{
	const struct sums *sums = &module->sums;
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "path", module->functions->path);
	json_build_id(json, module->functions);
	ky_json_out_uint(json, "functions", sums->count);
	ky_json_out_uint(json, "traced", traced(sums));
	ky_json_out_uint(json, "named", sums->named);
	ky_json_out_text(json, "names_from", module->functions->names_from);
	ky_json_out_uint(json, "patch", sums->how[KY_FUNCTION_PATCH]);
	ky_json_out_uint(json, "nops", sums->how[KY_FUNCTION_NOPS]);
	ky_json_out_uint(json, "sleds", sums->how[KY_FUNCTION_SLED]);
	ky_json_out_bool(json, "instrumented", module->functions->calls_cyg);
	json_reasons(json, sums);
	if (all)
		json_all(json, module->functions);
	ky_json_out_end(json, '}');
}

static void print_json(const struct modules *modules, bool all)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "program", modules->items[0].functions->path);
	ky_json_out_text(&json, "engine", ky_functrace_engine_name(modules->engine));
	ky_json_out_text(&json, "engine_why", modules->engine_why);
	ky_json_out_uint(&json, "functions", modules->sums.count);
	ky_json_out_uint(&json, "traced", traced(&modules->sums));
	ky_json_out_real(&json, "percent", percent(&modules->sums));
	ky_json_out_begin(&json, "modules", '[');
	for (size_t i = 0; i < modules->count; i++)
		json_module(&json, &modules->items[i], all);
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

/* ---- the verb's part ---- */

int ky_doctor_functions(const struct ky_doctor_options *options)
{
	struct modules modules = {0};
	char path[PATH_MAX];
	if (!find_program(options->program, path))
		return ky_cli_error("there is no program %s in PATH: give its path",
				    options->program);
	add_module(&modules, path);
	if (modules.error) {
		ky_cli_error("%s%s", modules.message,
			     modules.error == -ENOEXEC ? "; of a script, give the interpreter"
						       : "");
		return modules.error == -ENOTSUP ? KY_EXIT_IMPOSSIBLE : KY_EXIT_FAILED;
	}
	add_libraries(&modules, path);
	choose_engine(&modules);
	if (options->json)
		print_json(&modules, options->all);
	else
		print_text(&modules, options->all);
	for (size_t i = 0; i < modules.count; i++)
		ky_functions_free(&modules.items[i].functions);
	KY_ARRAY_FREE(modules.items, modules.room);
	return KY_EXIT_DONE;
}
