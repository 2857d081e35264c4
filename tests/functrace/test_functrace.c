/* SPDX-License-Identifier: MIT */
/*
 * test_functrace.c: the choice of an engine and its message, with engines available or not. The engines are fakes that
 * do as `machine` says: functrace.c and functrace_choose.c are linked with these alone.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "functrace/functrace.h"
#include "functrace/off_cpu.h"
#include "functrace/pt.h"
#include "functrace/stack_spans.h"

/* ---- the fakes ---- */

static struct {
	bool has_pt;
	int patch, sample, switches; /* 0 or -errno */
	uint32_t ready, functions;   /* of the program: compiled for it, and all */
	int patches_open, rounds, decoded;
	bool nops_only, gone;
	uint64_t calls;
} machine;

static char notes[4096];

struct ky_patch {
	pid_t pid;
};
struct ky_selection {
	int any;
};

static int refuse(int error, char *message, const char *text)
{
	if (error)
		snprintf(message, KY_MESSAGE_BYTES, "%s", text);
	return error;
}

int ky_selection_parse(struct ky_selection **selection, const char *list, uint64_t min_bytes,
		       char message[KY_MESSAGE_BYTES])
{
	(void)min_bytes;
	if (list && strcmp(list, "bad") == 0)
		return refuse(-EINVAL, message, "bad is no list");
	*selection = calloc(1, sizeof(**selection));
	return *selection ? 0 : -ENOMEM;
}

void ky_selection_free(struct ky_selection **selection)
{
	free(*selection);
	*selection = NULL;
}

static struct ky_function functions[100];
static struct ky_functions program = {.functions = functions};

int ky_functions_share(const struct ky_functions **out, int fd, const char *path, bool lines,
		       char message[KY_MESSAGE_BYTES])
{
	(void)path;
	(void)lines;
	(void)message;
	assert_true(fd >= 0);
	program.count = machine.functions;
	*out = &program;
	return 0;
}

bool ky_functions_are_ready(const struct ky_functions *of)
{
	return machine.ready > of->count / 2;
}

void ky_functions_unshare(const struct ky_functions **out)
{
	*out = NULL;
}

uint32_t ky_functions_shared_clear(void)
{
	return 0;
}

int ky_patch_open(struct ky_patch **patch, pid_t pid, const struct ky_functrace_options *options,
		  char message[KY_MESSAGE_BYTES])
{
	machine.nops_only = options->engine == KY_FUNCTRACE_NOPS;
	if (machine.patch)
		return refuse(machine.patch, message, "ptrace is not allowed: do something");
	*patch = calloc(1, sizeof(**patch));
	assert_non_null(*patch);
	(*patch)->pid = pid;
	machine.patches_open++;
	return 0;
}

void ky_patch_close(struct ky_patch **patch, bool gone, struct ky_patch_facts *facts)
{
	*facts = (struct ky_patch_facts){.calls = machine.calls + 1, .unstopped_ns = 5};
	machine.gone = gone;
	machine.patches_open--;
	free(*patch);
	*patch = NULL;
}

void ky_patch_names(const struct ky_patch *patch, ky_patch_name_fn one, void *context)
{
	(void)patch, (void)one, (void)context;
}

uint32_t ky_patch_close_children(uint64_t since, ky_patch_child_fn child, void *context,
				 bool *whole)
{
	(void)since, (void)child, (void)context;
	*whole = true;
	return 0;
}

uint64_t ky_patch_started(pid_t pid)
{
	(void)pid;
	return 0;
}

bool ky_patch_is_ours(pid_t pid)
{
	(void)pid;
	return false;
}

uint32_t ky_patch_release_late(void)
{
	return 0;
}

void ky_patch_round(struct ky_patch *patch)
{
	(void)patch;
	machine.rounds++;
}

void ky_patch_facts(const struct ky_patch *patch, struct ky_patch_facts *facts)
{
	(void)patch;
	*facts = (struct ky_patch_facts){.modules = 8,
					 .functions = 3955,
					 .patched = 3951,
					 .left_out = {[KY_WHY_SHORT] = 4},
					 .hot = 1,
					 .calls = machine.calls,
					 .stopped_ns = 7};
}

bool ky_patch_hot(const struct ky_patch *patch, uint32_t index, struct ky_patch_hot *hot)
{
	*hot = (struct ky_patch_hot){.name = patch->pid == getpid() ? "own" : "other",
				     .calls = 10 + index};
	return index < 2;
}

bool ky_pt_available(char why[KY_MESSAGE_BYTES])
{
	if (!machine.has_pt)
		snprintf(why, KY_MESSAGE_BYTES, "no Intel PT on this CPU");
	return machine.has_pt;
}

static char something;

int ky_pt_open(struct ky_pt **pt, const struct ky_functrace_options *options,
	       char message[KY_MESSAGE_BYTES])
{
	(void)options;
	(void)message;
	*pt = (struct ky_pt *)(void *)&something;
	return 0;
}

int ky_pt_add(struct ky_pt *pt, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	(void)pt;
	(void)pid;
	(void)message;
	return 0;
}

void ky_pt_round(struct ky_pt *pt)
{
	(void)pt;
}

void ky_pt_decode(struct ky_pt *pt)
{
	(void)pt;
	machine.decoded++;
}

void ky_pt_ended(struct ky_pt *pt, pid_t pid)
{
	(void)pt;
	(void)pid;
}

void ky_pt_close(struct ky_pt **pt)
{
	*pt = NULL;
}

int ky_stack_spans_open(struct ky_stack_spans **spans, const struct ky_functrace_options *options,
			char message[KY_MESSAGE_BYTES])
{
	assert_int_equal(options->samples_per_second, 1000);
	if (machine.sample)
		return refuse(machine.sample, message, "perf_event_paranoid is 3");
	*spans = (struct ky_stack_spans *)(void *)&something;
	return 0;
}

int ky_stack_spans_add(struct ky_stack_spans *spans, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	(void)spans;
	(void)pid;
	(void)message;
	return 0;
}

void ky_stack_spans_round(struct ky_stack_spans *spans, bool all)
{
	(void)spans;
	(void)all;
}

void ky_stack_spans_ended(struct ky_stack_spans *spans, pid_t pid)
{
	(void)spans;
	(void)pid;
}

void ky_stack_spans_close(struct ky_stack_spans **spans, struct ky_stack_spans_facts *facts)
{
	*spans = NULL;
	if (facts)
		*facts = (struct ky_stack_spans_facts){.samples = 42, .lost = 1};
}

int ky_off_cpu_open(struct ky_off_cpu **switches, const struct ky_functrace_options *options,
		    char message[KY_MESSAGE_BYTES])
{
	(void)options;
	if (machine.switches)
		return refuse(machine.switches, message, "no perf here");
	*switches = (struct ky_off_cpu *)(void *)&something;
	return 0;
}

int ky_off_cpu_add(struct ky_off_cpu *switches, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	(void)switches;
	(void)pid;
	(void)message;
	return 0;
}

void ky_off_cpu_round(struct ky_off_cpu *switches)
{
	(void)switches;
}

pid_t ky_off_cpu_ended(struct ky_off_cpu *switches)
{
	(void)switches;
	return 0;
}

pid_t ky_off_cpu_executed(struct ky_off_cpu *switches)
{
	(void)switches;
	return 0;
}

void ky_off_cpu_close(struct ky_off_cpu **switches)
{
	*switches = NULL;
}

/* ---- asking ---- */

static void take_note(void *context, const char *line)
{
	(void)context;
	const size_t used = strlen(notes);
	snprintf(notes + used, sizeof(notes) - used, "%s\n", line);
}

static void take_drum(void *context, pid_t pid, int fd)
{
	(void)context;
	(void)pid;
	(void)fd;
}

static char message[KY_MESSAGE_BYTES];

static int reset(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof(machine));
	machine.functions = 100;
	notes[0] = message[0] = '\0';
	return 0;
}

static struct ky_functrace *open_with(enum ky_functrace_engine engine)
{
	struct ky_functrace *functrace = NULL;
	const struct ky_functrace_options options = {
		.engine = engine, .drum = take_drum, .note = take_note};
	assert_int_equal(ky_functrace_open(&functrace, &options, message), 0);
	return functrace;
}

static int add_own(struct ky_functrace *functrace)
{
	return ky_functrace_add(functrace, getpid(), message);
}

static enum ky_functrace_engine chosen(struct ky_functrace *functrace)
{
	struct ky_functrace_facts facts;
	ky_functrace_facts(functrace, &facts);
	return facts.engine;
}

static const char *said(struct ky_functrace *functrace)
{
	static struct ky_functrace_facts facts;
	ky_functrace_facts(functrace, &facts);
	return facts.why;
}

/* ---- the tests ---- */

static void pt_comes_first(void **state)
{
	(void)state;
	machine.has_pt = true;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(chosen(functrace), KY_FUNCTRACE_PT);
	assert_int_equal(machine.patches_open, 0);
	ky_functrace_flush(functrace);
	assert_int_equal(machine.decoded, 1);
	ky_functrace_close(&functrace, NULL);
	assert_null(functrace);
}

static void patch_is_taken_where_the_cpu_cannot_and_said_with_its_coverage(void **state)
{
	(void)state;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(chosen(functrace), KY_FUNCTRACE_PATCH);
	assert_string_equal(said(functrace), "patch: 3,951 of 3,955 functions of test_functrace "
					     "and 7 libraries; no Intel PT on this CPU");
	ky_functrace_close(&functrace, NULL);
	assert_int_equal(machine.patches_open, 0);
}

static void nops_are_taken_when_most_functions_have_them(void **state)
{
	(void)state;
	machine.ready = 51;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(chosen(functrace), KY_FUNCTRACE_NOPS);
	assert_true(machine.nops_only);
	ky_functrace_close(&functrace, NULL);
	machine.ready = 50;
	functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(chosen(functrace), KY_FUNCTRACE_PATCH);
	assert_false(machine.nops_only);
	ky_functrace_close(&functrace, NULL);
}

static void samples_are_taken_without_ptrace_and_the_remedy_is_said(void **state)
{
	(void)state;
	struct ky_functrace_facts facts;
	machine.patch = -EPERM;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(chosen(functrace), KY_FUNCTRACE_SAMPLE);
	assert_string_equal(said(functrace),
			    "sample: call stacks, 1000 a second, joined to spans; "
			    "no Intel PT on this CPU; ptrace is not allowed: do something");
	ky_functrace_close(&functrace, &facts);
	assert_int_equal(facts.samples, 42);
	assert_int_equal(facts.samples_lost, 1);
}

static void nothing_at_all_is_impossible_and_every_reason_is_told(void **state)
{
	(void)state;
	machine.patch = -EPERM;
	machine.sample = -EACCES;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), -ENOTSUP);
	assert_non_null(strstr(message, "no Intel PT on this CPU"));
	assert_non_null(strstr(message, "ptrace is not allowed"));
	assert_non_null(strstr(message, "perf_event_paranoid is 3"));
	ky_functrace_close(&functrace, NULL);
}

static void what_was_asked_for_is_not_replaced(void **state)
{
	(void)state;
	machine.patch = -EPERM;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_PATCH);
	assert_int_equal(add_own(functrace), -ENOTSUP);
	assert_string_equal(message, "--engine patch: ptrace is not allowed: do something");
	ky_functrace_close(&functrace, NULL);
	functrace = open_with(KY_FUNCTRACE_PT);
	assert_int_equal(add_own(functrace), -ENOTSUP);
	assert_string_equal(message, "--engine pt: no Intel PT on this CPU");
	ky_functrace_close(&functrace, NULL);
	machine.has_pt = true;
	functrace = open_with(KY_FUNCTRACE_SAMPLE);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(chosen(functrace), KY_FUNCTRACE_SAMPLE);
	ky_functrace_close(&functrace, NULL);
}

static void a_process_that_is_gone_is_no_reason_for_another_engine(void **state)
{
	(void)state;
	machine.patch = -ESRCH;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), -ESRCH);
	ky_functrace_close(&functrace, NULL);
}

static void all_processes_have_the_first_ones_engine(void **state)
{
	(void)state;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_AUTO);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(machine.patches_open, 1);
	machine.has_pt = true;
	assert_int_equal(ky_functrace_add(functrace, 1, message), 0);
	assert_int_equal(machine.patches_open, 2);
	ky_functrace_round(functrace);
	assert_int_equal(machine.rounds, 2);
	ky_functrace_close(&functrace, NULL);
	assert_int_equal(machine.patches_open, 0);
}

static void what_is_known_of_processes_that_ended_is_kept(void **state)
{
	(void)state;
	struct ky_patch_hot hot;
	struct ky_functrace_facts facts;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_PATCH);
	assert_int_equal(add_own(functrace), 0);
	assert_int_equal(ky_functrace_add(functrace, 1, message), 0);
	machine.calls = 100;
	ky_functrace_ended(functrace, 1);
	assert_true(machine.gone);
	assert_int_equal(machine.patches_open, 1);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(ky_functrace_hot(functrace, i, &hot));
		assert_string_equal(hot.name, i < 2 ? "other" : "own");
		assert_int_equal(hot.calls, 10 + i % 2);
	}
	assert_false(ky_functrace_hot(functrace, 4, &hot));
	ky_functrace_facts(functrace, &facts);
	assert_int_equal(facts.patch.calls, 201);
	ky_functrace_close(&functrace, &facts);
	assert_false(machine.gone);
	assert_int_equal(facts.patch.calls, 202);
	assert_int_equal(facts.patch.functions, 2 * 3955);
	assert_int_equal(facts.patch.patched, 2 * 3951);
	assert_int_equal(facts.patch.left_out[KY_WHY_SHORT], 8);
	assert_int_equal(facts.patch.stopped_ns, 14);
	assert_int_equal(facts.patch.unstopped_ns, 10);
}

static void calls_are_traced_though_switches_cannot_be_seen(void **state)
{
	(void)state;
	machine.switches = -EACCES;
	struct ky_functrace *functrace = open_with(KY_FUNCTRACE_PATCH);
	assert_int_equal(add_own(functrace), 0);
	assert_non_null(strstr(notes, "time off the CPU is not marked: no perf here\n"));
	assert_int_equal(ky_functrace_add(functrace, 1, message), 0);
	assert_null(strstr(strstr(notes, "off the CPU") + 1, "off the CPU"));
	ky_functrace_close(&functrace, NULL);
}

static void a_list_that_is_none_is_refused(void **state)
{
	(void)state;
	struct ky_functrace *functrace = NULL;
	const struct ky_functrace_options options = {.functions = "bad"};
	assert_int_equal(ky_functrace_open(&functrace, &options, message), -EINVAL);
	assert_null(functrace);
	assert_string_equal(message, "bad is no list");
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pt_comes_first),
		TEST(patch_is_taken_where_the_cpu_cannot_and_said_with_its_coverage),
		TEST(nops_are_taken_when_most_functions_have_them),
		TEST(samples_are_taken_without_ptrace_and_the_remedy_is_said),
		TEST(nothing_at_all_is_impossible_and_every_reason_is_told),
		TEST(what_was_asked_for_is_not_replaced),
		TEST(a_process_that_is_gone_is_no_reason_for_another_engine),
		TEST(all_processes_have_the_first_ones_engine),
		TEST(what_is_known_of_processes_that_ended_is_kept),
		TEST(calls_are_traced_though_switches_cannot_be_seen),
		TEST(a_list_that_is_none_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
