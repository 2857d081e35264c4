/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c: kymo doctor: show what this machine allows, and the remedy where it does not. */
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/doctor.h"

#include <getopt.h>

static const char *const states[] = {"ok", "limited", "no"};
static const char *const styles[] = {"32", "33", "31"};

static void print_json(struct ky_json_out *json, const char *name, const struct ky_check *check)
{
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "name", name);
	ky_json_out_text(json, "state", states[check->state]);
	ky_json_out_text(json, "detail", check->detail);
	ky_json_out_text(json, "remedy", check->remedy[0] ? check->remedy : NULL);
	ky_json_out_end(json, '}');
}

static void print_text(const char *name, const struct ky_check *check)
{
	printf("%s%-7s%s  %-17s  %s\n", ky_cli_style(styles[check->state]), states[check->state],
	       ky_cli_plain(), name, check->detail);
	if (check->remedy[0])
		printf("%28s%s%s %s%s\n", "", ky_cli_style("2"), ky_cli_sign("\u2192", "->"),
		       check->remedy, ky_cli_plain());
}

static int check_machine(bool as_json)
{
	struct ky_json_out json = {.file = as_json ? stdout : NULL, .lines = 2};
	if (as_json) {
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_begin(&json, "checks", '[');
	}
	for (const struct ky_doctor_check *one = ky_doctor_checks; one->name; one++) {
		struct ky_check check = {0};
		one->fill(&check);
		if (as_json)
			print_json(&json, one->name, &check);
		else
			print_text(one->name, &check);
	}
	if (as_json) {
		ky_json_out_end(&json, ']');
		ky_json_out_end(&json, '}');
	}
	return KY_EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct ky_doctor_options options = {0};
	const int wrong = ky_options_read(&options, argc, argv);
	if (wrong)
		return wrong;
	if (optind + 1 < argc)
		return ky_cli_usage("only one program at a time");
	options.program = argv[optind];
	if (options.program)
		return ky_doctor_functions(&options);
	if (options.all)
		return ky_cli_usage("--all lists the functions of a program: name one");
	return check_machine(options.json);
}

static const struct ky_option options[] = {
	{"all", KY_OPTION_AT(FLAG, struct ky_doctor_options, all), .letter = 'a',
	 .help = "with a program: list every function that cannot be traced, with the reason"},
	{"json", KY_OPTION_AT(FLAG, struct ky_doctor_options, json), .help = "print JSON"},
	{0},
};

static const struct ky_section sections[] = {
	{"FUNCTIONS OF A PROGRAM",
	 "With a program (a path, or a name that is looked up in `PATH`), kymo shows which functions of it and of its "
	 "libraries `--functions` can trace, before it runs: for each file the functions found, how many can be traced, "
	 "how many have names and where these come from (`.symtab`, a debug file, `.dynsym`), and how they are traced: by "
	 "`patch` (the first instructions are moved), `nops` (compiled with -fpatchable-function-entry) or `sleds` (clang's "
	 "XRay). The line `engine` names what would be used on this machine and why. Libraries that the program loads later "
	 "are not known. kymo asks the loader that the program names for the others; it does not run a loader that is not "
	 "root's and leaves them out.\n"
	 "\n"
	 "A function is left out for one of these reasons:\n"
	 "\n"
	 "`shorter than a jump`: it has fewer than 5 bytes, and its neighbour begins at once.\n"
	 "\n"
	 "`a branch leads into its first instructions`: a loop begins with the function or among the bytes that a jump would "
	 "overwrite, or it is a piece of another function without a name of its own.\n"
	 "\n"
	 "`a call among its first instructions` that is not the last of them: it would return into the jump.\n"
	 "\n"
	 "`its first instructions cannot be moved`: they are unknown, or depend on their address in a way that cannot be "
	 "kept.\n"
	 "\n"
	 "`of a runtime that reads return addresses`: V8's builtins, and all of a Go or OCaml program.\n"
	 "\n"
	 "`of the C runtime, or looks at its return address`: the loader, the unwinder, setjmp and similar functions, the "
	 "start of threads; and every function that reads or changes its own return address, such as dlsym.\n"
	 "\n"
	 "kymo caches what it found about files with many functions in $XDG_CACHE_HOME/kymo/functions (default "
	 "~/.cache/kymo/functions), which may be removed at any time."},
	{0},
};

const struct ky_verb ky_verb_doctor = {
	.name = "doctor",
	.summary = "show what this machine and a program allow, with the remedy where they do not",
	.usage = "[--json]\n"
		 "[--all] [--json] PROGRAM",
	.about =
		"Try what tracing needs: the clock, shared memory, tracefs, perf events, counters, probes, ptrace, BPF, "
		"Intel PT, compression. Each line is ok, limited or no; if it is not ok, it shows the remedy. doctor "
		"only looks and changes nothing.\n"
		"\n"
		"With a program: show which of its functions and of its libraries' --functions can trace before it runs: "
		"how many there are, by which engine, and why some are left out.",
	.details =
		"doctor opens and closes what it tries. It also shows what killed captures left in tracefs, with the "
		"command that removes it. One user may be allowed what another is refused: run it as the user who "
		"will trace.",
	.status =
		"0, whatever it found; 1: the program cannot be read; 2: wrong usage; 77: the program is not for x86-64.",
	.examples = "kymo doctor\n"
		    "sudo kymo doctor\n"
		    "kymo doctor redis-server\n"
		    "kymo doctor --all ./app | less\n"
		    "kymo doctor --json | jq -r '.checks[] | select(.state != \"ok\") | .remedy'",
	.related = "run attach",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.sections = sections,
	.run = run,
};
