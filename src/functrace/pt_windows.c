/* SPDX-License-Identifier: MIT */
/* pt_windows.c: what the AUX rings of a process hold, copied while its events stand still, and told to its drum. */
#include "functrace/pt_parts.h"

#include <stdlib.h>

static void say_memory(struct ky_pt *pt)
{
	ky_pt_note_once(pt, &pt->said_memory,
			"pt: no memory to decode all that was traced: some calls are missing");
}

void ky_pt_windows_copy(struct ky_pt *pt, struct ky_pt_traced *traced)
{
	for (uint32_t i = 0; i < traced->count; i++)
		ky_pt_thread_pause(&traced->threads[i]);
	for (uint32_t i = 0; i < traced->count; i++)
		if (!ky_pt_thread_copy(&traced->threads[i]))
			say_memory(pt);
	for (uint32_t i = 0; i < traced->count; i++)
		if (!traced->threads[i].ended)
			ky_pt_thread_resume(&traced->threads[i]);
}

void ky_pt_windows_tell(struct ky_pt *pt, struct ky_pt_traced *traced, struct ky_pt_thread *thread)
{
	struct ky_pt_window window = {.aux = thread->window,
				      .bytes = thread->window_bytes,
				      .cpu = pt->machine.cpu,
				      .since_ns = thread->told_ns};
	uint64_t until = 0;
	if (!thread->window)
		return;
	if (!ky_pt_thread_time(thread, &window.time))
		ky_pt_note_once(
			pt, &pt->said_time,
			"pt: the kernel does not say how the CPU's counter relates to its clock "
			"(is the clock source tsc?): nothing can be decoded");
	else if (ky_pt_process_tell(&traced->process, thread->tid_inside, &window, &until) != 0)
		say_memory(pt);
	if (until)
		thread->told_ns = until + 1;
	free(thread->window);
	thread->window = NULL;
}
