/* SPDX-License-Identifier: MIT */
/*
 * doctor_functions.c: kymo doctor PROGRAM: which functions of a program and of the libraries that it will load can be traced, before
 * it runs. How it is told is in doctor_functions_text.c and doctor_functions_json.c.
 *
 *   program ─ its loader's list ─▶ modules ─ ky_functions_read() ─▶ sums by how and by why, a few names of each why
 *
 * What it loads later (dlopen) nobody knows; the engine is what --functions would choose on this machine.
 */
#include "cli/doctor_functions.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "functrace/pt.h"
#include "process/program_libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- looking ---- */

/* Names tell more than addresses. */
static void add_example(struct ky_doctor_sums *sums, const struct ky_function *function)
{
	const uint32_t have = sums->why[function->why];
	if (have < KY_DOCTOR_EXAMPLES)
		sums->examples[function->why][have] = function->name;
}

static void add_function(struct ky_doctor_sums *sums, const struct ky_function *function)
{
	add_example(sums, function);
	sums->count++;
	sums->named += function->linked[0] != '0';
	sums->how[function->how]++;
	sums->why[function->why]++;
}

uint32_t ky_doctor_traced(const struct ky_doctor_sums *sums)
{
	return sums->count - sums->how[KY_FUNCTION_NOT];
}

double ky_doctor_percent(const struct ky_doctor_sums *sums)
{
	return sums->count ? 100.0 * ky_doctor_traced(sums) / sums->count : 0;
}

static void add_module(void *context, const char *path)
{
	struct ky_doctor_modules *modules = context;
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
	struct ky_doctor_module *items =
		error ? NULL
		      : reallocarray(modules->items, modules->count + 1, sizeof(*modules->items));
	if (!items) {
		ky_functions_free(&functions);
		modules->error = error ? error : -ENOMEM;
		return;
	}
	modules->items = items;
	struct ky_doctor_module *module = &items[modules->count++];
	*module = (struct ky_doctor_module){.functions = functions};
	for (uint32_t i = 0; i < functions->count; i++) {
		add_function(&module->sums, &functions->functions[i]);
		add_function(&modules->sums, &functions->functions[i]);
	}
}

/* As a shell looks for it. */
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

/* As functrace chooses it when the program runs; what is only known then may change it. */
static void choose_engine(struct ky_doctor_modules *modules)
{
	char no_pt[KY_FUNCTRACE_MESSAGE_BYTES] = "";
	struct ky_check ptrace = {0};
	ky_check_ptrace(&ptrace);
	char *why = modules->engine_why;
	const size_t room = sizeof(modules->engine_why);
	if (ky_pt_available(no_pt)) {
		modules->engine = KY_FUNCTRACE_PT;
		snprintf(why, room, "the CPU traces every call by itself");
	} else if (!is_this_cpu() || ptrace.state == KY_CHECK_NO ||
		   !ky_doctor_traced(&modules->sums)) {
		modules->engine = KY_FUNCTRACE_SAMPLE;
		snprintf(why, room, "call stacks alone; %s",
			 !is_this_cpu()                ? "functions are only patched on x86-64"
			 : ptrace.state == KY_CHECK_NO ? ptrace.detail
						       : "no function can be patched");
	} else if (ky_functions_are_ready(modules->items[0].functions)) {
		modules->engine = KY_FUNCTRACE_NOPS;
		snprintf(why, room, "it was compiled for it; Intel PT: %.400s", no_pt);
	} else {
		modules->engine = KY_FUNCTRACE_PATCH;
		snprintf(why, room, "every call; Intel PT: %.400s", no_pt);
	}
}

/* Whoever asks about a program before it runs must not run what it names. */
static void add_libraries(struct ky_doctor_modules *modules, const char *path)
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

int ky_doctor_functions(const struct ky_doctor_options *options)
{
	struct ky_doctor_modules modules = {0};
	char path[PATH_MAX];
	if (!find_program(options->program, path)) {
		ky_cli_error("there is no program %s in PATH: give its path", options->program);
		return KY_EXIT_FAILED;
	}
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
		ky_doctor_print_json(&modules, options->all);
	else
		ky_doctor_print_text(&modules, options->all);
	for (size_t i = 0; i < modules.count; i++)
		ky_functions_free(&modules.items[i].functions);
	free(modules.items);
	return KY_EXIT_DONE;
}
