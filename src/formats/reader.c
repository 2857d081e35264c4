/* SPDX-License-Identifier: MIT */
/* reader.c: the formats that can be read, in the order in which they are tried: the surest signs first. */
#include "formats/reader.h"

const struct ky_reader *const ky_readers[] = {
	&ky_reader_kymo,
	&ky_reader_drum,
	&ky_reader_fxt,
	&ky_reader_perf_data,
	&ky_reader_trace_dat,
	&ky_reader_spall,
	&ky_reader_jitdump,
	&ky_reader_speedscope,
	&ky_reader_json,
	&ky_reader_systrace_html,
	&ky_reader_ftrace_text,
	&ky_reader_perf_map,
	&ky_reader_perf_script,
	&ky_reader_collapsed,
	&ky_reader_pftrace,
	&ky_reader_ctf,
	&ky_reader_uftrace,
	&ky_reader_ftrace_pages,
	NULL,
};

const struct ky_reader *ky_reader_find(const struct ky_probe *probe)
{
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++)
		if ((*reader)->directory == (probe->path != NULL) && (*reader)->probe(probe))
			return *reader;
	return NULL;
}
