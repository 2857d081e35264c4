/* SPDX-License-Identifier: MIT */
/*
 * functrace_choose.c: chooses the engine, and writes the line that names it.
 *
 *   asked for     that one, or why it is impossible
 *   otherwise     pt      every call, at next to no cost
 *                 nops    when most of the program's functions were compiled for it: nothing else is touched
 *                 patch   every call
 *                 sample  the calls that are seen so many times a second
 *
 * The first engine that works on the process is taken; the line gives the reasons against those before it.
 */
#include "base/file.h"
#include "functrace/functrace.h"
#include "functrace/pt.h"
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the program ---- */

static void program_of(pid_t pid, char *path, size_t room)
{
	if (ky_proc_exe(pid, path, room) <= 0)
		snprintf(path, room, "process %ld", (long)pid);
}

/* Get the program's own name, when that is not its file's name cut short: many programs are links to one file. */
static void name_of(pid_t pid, char *name, size_t room)
{
	char path[PATH_MAX];
	(void)ky_proc_comm(pid, 0, name, room);
	program_of(pid, path, sizeof(path));
	if (strncmp(ky_file_name(path), name, strlen(name)) == 0)
		snprintf(name, room, "%.*s", (int)room - 1, ky_file_name(path));
}

/* Report whether most of its functions have room for a jump, or call a hook at their start and end. */
static bool is_compiled_for(pid_t pid)
{
	char message[KY_MESSAGE_BYTES], path[PATH_MAX];
	const struct ky_functions *program = NULL;
	program_of(pid, path, sizeof(path));
	const int fd = ky_proc_open(pid, "exe", O_RDONLY);
	if (fd < 0)
		return false;
	const int error = ky_functions_share(&program, fd, path, false, message);
	close(fd);
	if (error)
		return false;
	const bool most = ky_functions_are_ready(program);
	ky_functions_unshare(&program);
	return most;
}

/* ---- the line ---- */

/* Format a number as "3,951". */
static const char *with_commas(char text[32], uint64_t number)
{
	char digits[24];
	const int count = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	char *at = text;
	for (int i = 0; i < count; i++) {
		if (i && (count - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return text;
}

static void put_coverage(const struct ky_functrace *functrace, pid_t pid, char *text, size_t room)
{
	char name[80], patched[32], functions[32], libraries[48] = "";
	struct ky_functrace_facts facts;
	name_of(pid, name, sizeof(name));
	ky_functrace_facts(functrace, &facts);
	const uint32_t others = facts.patch.modules > 1 ? facts.patch.modules - 1 : 0;
	if (others)
		snprintf(libraries, sizeof(libraries), " and %u librar%s", others,
			 others == 1 ? "y" : "ies");
	snprintf(text, room, "%s of %s functions of %s%s%s%s",
		 with_commas(patched, facts.patch.patched),
		 with_commas(functions, facts.patch.functions), name, libraries,
		 facts.patch.entry_only[0] ? "; " : "", facts.patch.entry_only);
}

static void note_engine(struct ky_functrace *functrace, pid_t pid, const char *reasons)
{
	char what[384] = "";
	switch (functrace->engine) {
	case KY_FUNCTRACE_NOPS:
	case KY_FUNCTRACE_PATCH:
		put_coverage(functrace, pid, what, sizeof(what));
		break;
	case KY_FUNCTRACE_SAMPLE:
		snprintf(what, sizeof(what), "call stacks, %u a second, joined to spans",
			 functrace->options.samples_per_second
				 ? functrace->options.samples_per_second
				 : 1000u);
		break;
	default:
		snprintf(what, sizeof(what), "every call, traced by the CPU");
	}
	snprintf(functrace->why, sizeof(functrace->why), "%s: %s%s%s",
		 ky_functrace_engine_name(functrace->engine), what, reasons[0] ? "; " : "",
		 reasons);
}

/* ---- choosing ---- */

/* Report whether another try would change nothing: the machine, its settings, or the kind of process forbid it. */
static bool is_impossible(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
	case -EBUSY:
	case -ENOSYS:
	case -ENOEXEC:
	case -ENOTSUP:
		return true;
	default:
		return false;
	}
}

static int choose_asked(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	char why[KY_MESSAGE_BYTES] = "";
	const enum ky_functrace_engine engine = functrace->options.engine;
	const int error = ky_functrace_begin(functrace, engine, pid, why);
	if (!error) {
		functrace->engine = engine;
		note_engine(functrace, pid, "as asked for");
		return 0;
	}
	return ky_fail(message, is_impossible(error) ? -ENOTSUP : error, "--engine %s: %.480s",
		       ky_functrace_engine_name(engine), why[0] ? why : strerror(-error));
}

/* Add a reason to those so far. */
static void add_reason(char reasons[KY_MESSAGE_BYTES], const char *reason)
{
	const size_t used = strlen(reasons);
	snprintf(reasons + used, KY_MESSAGE_BYTES - used, "%s%s", used ? "; " : "", reason);
}

static bool try_engine(struct ky_functrace *functrace, enum ky_functrace_engine engine, pid_t pid,
		       char reasons[KY_MESSAGE_BYTES], int *error)
{
	char why[KY_MESSAGE_BYTES] = "";
	*error = ky_functrace_begin(functrace, engine, pid, why);
	if (*error) {
		add_reason(reasons, why[0] ? why : strerror(-*error));
		return false;
	}
	functrace->engine = engine;
	return true;
}

int ky_functrace_choose(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	char reasons[KY_MESSAGE_BYTES] = "";
	int error = 0;
	if (functrace->options.engine != KY_FUNCTRACE_AUTO)
		return choose_asked(functrace, pid, message);
	const enum ky_functrace_engine patching =
		is_compiled_for(pid) ? KY_FUNCTRACE_NOPS : KY_FUNCTRACE_PATCH;
	if (!try_engine(functrace, KY_FUNCTRACE_PT, pid, reasons, &error) &&
	    !try_engine(functrace, patching, pid, reasons, &error) && error != -ESRCH)
		(void)try_engine(functrace, KY_FUNCTRACE_SAMPLE, pid, reasons, &error);
	if (!error) {
		note_engine(functrace, pid, reasons);
		return 0;
	}
	return ky_fail(message, is_impossible(error) ? -ENOTSUP : error,
		       "functions cannot be traced: %.480s", reasons);
}

/* ---- a program that cannot be held ---- */

/* Report whether an engine can be opened that does not need ptrace; add the reasons why not. */
static bool can_do_without(struct ky_functrace *functrace, char reasons[KY_MESSAGE_BYTES])
{
	const enum ky_functrace_engine asked = functrace->options.engine;
	char why[KY_MESSAGE_BYTES] = "";
	if ((asked == KY_FUNCTRACE_PT || asked == KY_FUNCTRACE_AUTO) && ky_pt_available(why))
		return true;
	if (asked == KY_FUNCTRACE_PT)
		snprintf(reasons, KY_MESSAGE_BYTES, "--engine pt: %s", why);
	if (asked != KY_FUNCTRACE_AUTO && asked != KY_FUNCTRACE_SAMPLE)
		return false;
	const int error = ky_functrace_open_samples(functrace, why);
	if (error)
		add_reason(reasons, why[0] ? why : strerror(-error));
	return !error;
}

int ky_functrace_unheld(struct ky_functrace *functrace, int error, char message[KY_MESSAGE_BYTES])
{
	const enum ky_functrace_engine asked = functrace->options.engine;
	const bool others = asked == KY_FUNCTRACE_PATCH || asked == KY_FUNCTRACE_NOPS;
	char reasons[KY_MESSAGE_BYTES];
	snprintf(reasons, sizeof(reasons),
		 "tracing is forbidden (ptrace: %s), as in a container without CAP_SYS_PTRACE%s",
		 strerror(-error), others ? "; use --engine sample" : "");
	if (can_do_without(functrace, reasons))
		return 0;
	return ky_fail(message, -ENOTSUP,
		       "functions cannot be traced, and the program was not run: %.420s", reasons);
}
