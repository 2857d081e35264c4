/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c: kymo doctor: what this machine allows, and what to do where it does not. */
#include "cli/cli.h"
#include "cli/cli_json.h"
#include "cli/doctor.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const ky_check_fn checks[] = {
	ky_check_kernel,
	ky_check_clock,
	ky_check_memfd,
	ky_check_tracefs_access,
	ky_check_kernel_events,
	ky_check_perf_software,
	ky_check_perf_hardware,
	ky_check_perf_system,
	ky_check_perf_tracepoints,
	ky_check_kprobes,
	ky_check_uprobes,
	ky_check_ptrace,
	ky_check_bpf,
	ky_check_intel_pt,
	ky_check_zlib,
	ky_check_zstd,
};
#define CHECKS (sizeof(checks) / sizeof(checks[0]))

static const char *const states[] = {"ok", "limited", "no"};
static const char *const styles[] = {"32", "33", "31"};

void ky_check_set(struct ky_check *check, enum ky_check_state state, const char *format, ...)
{
	va_list args;
	check->state = state;
	va_start(args, format);
	vsnprintf(check->detail, sizeof(check->detail), format, args);
	va_end(args);
}

void ky_check_remedy(struct ky_check *check, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(check->remedy, sizeof(check->remedy), format, args);
	va_end(args);
}

bool ky_check_read(const char *path, char *text, unsigned bytes)
{
	FILE *const file = fopen(path, "re");
	const bool read = file && fgets(text, (int)bytes, file);
	if (file)
		fclose(file);
	if (read)
		text[strcspn(text, "\n")] = 0;
	return read;
}

static void print_json(const struct ky_check *all)
{
	struct ky_cli_json json = {.to = stdout, .lines = 2};
	ky_cli_json_begin(&json, NULL, '{');
	ky_cli_json_begin(&json, "checks", '[');
	for (size_t i = 0; i < CHECKS; i++) {
		ky_cli_json_begin(&json, NULL, '{');
		ky_cli_json_text(&json, "name", all[i].name);
		ky_cli_json_text(&json, "state", states[all[i].state]);
		ky_cli_json_text(&json, "detail", all[i].detail);
		ky_cli_json_text(&json, "remedy", all[i].remedy[0] ? all[i].remedy : NULL);
		ky_cli_json_end(&json, '}');
	}
	ky_cli_json_end(&json, ']');
	ky_cli_json_end(&json, '}');
}

static void print_text(const struct ky_check *all)
{
	for (size_t i = 0; i < CHECKS; i++) {
		printf("%s%-7s%s  %-17s  %s\n", ky_cli_style(styles[all[i].state]),
		       states[all[i].state], ky_cli_plain(), all[i].name, all[i].detail);
		if (all[i].remedy[0])
			printf("%28s%s\u2192 %s%s\n", "", ky_cli_style("2"), all[i].remedy,
			       ky_cli_plain());
	}
}

static int look_at_machine(bool json)
{
	struct ky_check all[CHECKS] = {{0}};
	for (size_t i = 0; i < CHECKS; i++)
		checks[i](&all[i]);
	if (json)
		print_json(all);
	else
		print_text(all);
	return KY_EXIT_DONE;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{"all", no_argument, NULL, 'a'}, {"json", no_argument, NULL, 'j'}, {0}};
	struct ky_doctor_options options = {0};
	for (int option; (option = ky_cli_option(argc, argv, "", longs)) != -1;) {
		options.all |= option == 'a';
		options.json |= option == 'j';
	}
	if (optind + 1 < argc)
		return ky_cli_usage("it looks at one program at a time");
	options.program = argv[optind];
	if (options.program)
		return ky_doctor_functions(&options);
	if (options.all)
		return ky_cli_usage("--all lists functions of a program: name one");
	return look_at_machine(options.json);
}

const struct ky_verb ky_verb_doctor = {
	"doctor", "what this machine and a program allow, with the remedy where they do not",
	"usage: kymo doctor [--json]\n"
	"       kymo doctor [--all] [--json] PROGRAM\n"
	"\n"
	"Tries what tracing needs: the clock, shared memory, tracefs, perf events, counters, "
	"probes,\n"
	"ptrace, BPF, Intel PT, compression. Each line is ok, limited or no, and what is not ok "
	"says\n"
	"what to do. It only looks: nothing is changed.\n"
	"\n"
	"With a program: which of its functions and of its libraries' --functions can trace, "
	"before "
	"it\n"
	"is run: how many there are, by which engine, and why some are left out.\n"
	"\n"
	"  --all            every function that is left out, with the reason\n"
	"  --json           for machines\n"
	"  --help           this\n"
	"\n"
	"examples\n"
	"  kymo doctor\n"
	"  sudo kymo doctor\n"
	"  kymo doctor redis-server\n"
	"  kymo doctor --all ./app | less\n"
	"  kymo doctor --json | jq -r '.checks[] | select(.state != \"ok\") | .remedy'\n",
	run};
