/* SPDX-License-Identifier: MIT */
/* merge_inputs.c: see merge_inputs.h. */
#include "cli/merge_inputs.h"

#include "model/intake.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- alignment ---- */

static bool align(const struct ky_merge_how *how, struct ky_merge_input *first,
		  struct ky_merge_input *other)
{
	const bool clocks = !how->by || strcmp(how->by, "clocks") == 0;
	const bool flows = !how->by || strcmp(how->by, "flows") == 0;
	struct ky_alignment a = {.by = KY_ALIGN_NONE, .uncertain_ns = -1};
	if (other->given)
		a = (struct ky_alignment){
			.by = KY_ALIGN_GIVEN, .offset_ns = other->offset_ns, .uncertain_ns = -1};
	if (a.by == KY_ALIGN_NONE && clocks)
		a = ky_align_by_clocks(first->trace, other->trace);
	if (a.by == KY_ALIGN_NONE && flows)
		a = ky_align_by_flows(first->trace, other->trace);
	other->alignment = a;
	if (a.by != KY_ALIGN_NONE)
		return true;
	if (!how->load.mute)
		ky_cli_error("%s and %s have %s in common; say how far they are apart with 'kymo "
			     "merge --offset %s=TIME'",
			     first->path, other->path,
			     clocks && flows ? "no clocks and no flows"
			     : clocks        ? "no clocks"
					     : "no flows",
			     other->path);
	return false;
}

/* Number the machines: a trace of the same boot as an earlier one shares its number. */
static void number_machines(struct ky_merge_input *inputs, uint32_t count)
{
	uint32_t machines = 1;
	for (uint32_t i = 1; i < count; i++) {
		inputs[i].machine = machines;
		for (uint32_t j = 0; j < i; j++)
			if (ky_align_by_clocks(inputs[j].trace, inputs[i].trace).by ==
			    KY_ALIGN_BOOT)
				inputs[i].machine = inputs[j].machine;
		machines += inputs[i].machine == machines;
	}
}

/* ---- messages ---- */

/* Describe the uncertainty where there is no number for it. */
static const char *unknown_text(enum ky_align_by by)
{
	if (by == KY_ALIGN_GIVEN)
		return "; how exact that is, is not known";
	if (by == KY_ALIGN_FLOWS)
		return "; uncertain by how long the fastest message took, for none went both ways";
	return "; uncertain by what the times of day differ";
}

void ky_merge_say(const struct ky_merge_input *first, const struct ky_merge_input *other)
{
	const struct ky_alignment *a = &other->alignment;
	char offset[KY_QUANTITY_BYTES], uncertain[KY_QUANTITY_BYTES];
	const int64_t size = a->offset_ns == INT64_MIN ? INT64_MAX
			     : a->offset_ns < 0        ? -a->offset_ns
						       : a->offset_ns;
	fprintf(stderr, "%s: %s%s against %s, by %s", other->path, a->offset_ns < 0 ? "-" : "+",
		ky_quantity_duration(offset, size), first->path, ky_align_name(a->by));
	if (a->uncertain_ns < 0)
		fputs(unknown_text(a->by), stderr);
	else
		fprintf(stderr, ", uncertain by %s",
			ky_quantity_duration(uncertain, a->uncertain_ns));
	if (a->by == KY_ALIGN_FLOWS)
		fprintf(stderr, " (%u messages there, %u back%s)", a->forth, a->back,
			a->contradicts ? "; they contradict each other" : "");
	fputc('\n', stderr);
}

/* ---- the merge ---- */

static int finish_progress(void *context, uint64_t done, uint64_t all)
{
	const struct ky_cli_load *const load = context;
	return load->progress ? load->progress(load->context, "building", done, all)
			      : ky_cli_progress("building", done, all);
}

static int put_all(struct ky_trace *merged, struct ky_merge_input *inputs, uint32_t count,
		   uint64_t *left_sched)
{
	bool kernel_taken = false;
	int error = 0;
	for (uint32_t i = 0; i < count && !error; i++) {
		const bool has_kernel =
			inputs[i].trace->sched.rows.count || inputs[i].trace->raw_events.rows.count;
		const bool kernel = has_kernel && !kernel_taken && !inputs[i].machine;
		kernel_taken |= kernel;
		*left_sched += kernel ? 0 : inputs[i].trace->sched.rows.count;
		error = ky_merge_add(merged, inputs[i].trace, inputs[i].alignment.offset_ns,
				     inputs[i].machine, kernel);
		ky_trace_close(&inputs[i].trace);
	}
	return error;
}

int ky_merge_put(struct ky_trace **merged, struct ky_merge_input *inputs, uint32_t count,
		 const struct ky_merge_how *how)
{
	struct ky_cli_load load = how->load;
	uint64_t left_sched = 0;
	int error = ky_trace_open(merged);
	if (!error) {
		(*merged)->clock = inputs[0].trace->clock;
		(*merged)->format = inputs[0].trace->format;
		error = put_all(*merged, inputs, count, &left_sched);
	}
	if (left_sched && !load.quiet)
		ky_cli_error("%" PRIu64
			     " scheduling slices are left out: those of one host only fit",
			     left_sched);
	if (!error)
		error = ky_trace_finish(*merged, finish_progress, &load);
	ky_cli_progress_end();
	if (error && error != -EINTR && error != -ECANCELED && !load.mute)
		ky_cli_error("cannot merge: %s", strerror(-error));
	if (error)
		ky_trace_close(merged);
	return error;
}

int ky_merge_load(struct ky_merge_input *inputs, uint32_t count, const struct ky_merge_how *how)
{
	for (uint32_t i = 0; i < count; i++) {
		inputs[i].trace = ky_cli_load_with(inputs[i].path, &how->load);
		if (!inputs[i].trace)
			return KY_EXIT_FAILED;
	}
	for (uint32_t i = 1; i < count; i++)
		if (!align(how, &inputs[0], &inputs[i]))
			return KY_EXIT_FAILED;
	if (inputs[0].given)
		inputs[0].alignment.offset_ns = inputs[0].offset_ns;
	number_machines(inputs, count);
	return KY_EXIT_DONE;
}
