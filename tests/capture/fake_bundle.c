/* SPDX-License-Identifier: MIT */
#include "fake_bundle.h"

#include <stdio.h>
#include <string.h>

uint32_t ky_bundle_drum(struct ky_bundle *bundle, const struct ky_trace_info *info)
{
	if (bundle->count == FAKE_SOURCES_MAX)
		return 0;
	struct fake_source *source = &bundle->sources[bundle->count++];
	source->pid = info->pid;
	snprintf(source->process, sizeof(source->process), "%.*s", (int)info->process.bytes,
		 info->process.data);
	return bundle->count;
}

void ky_bundle_process(struct ky_bundle *bundle, uint32_t source, int32_t pid, struct ky_text name)
{
	(void)pid;
	snprintf(bundle->sources[source - 1].process, sizeof(bundle->sources[0].process), "%.*s",
		 (int)name.bytes, name.data);
}

void ky_bundle_thread(struct ky_bundle *bundle, uint32_t source, const struct ky_thread *thread)
{
	bundle->sources[source - 1].threads++;
	bundle->sources[source - 1].thread = *thread;
}

void ky_bundle_clock(struct ky_bundle *bundle, uint32_t source,
		     const struct ky_tick_reading *sample)
{
	(void)sample;
	bundle->sources[source - 1].clocks++;
}

static void count_event(struct fake_source *source, const struct ky_site *site,
			const uint64_t *words, uint32_t thread)
{
	source->events++;
	if (strcmp(site->category.data, "db") == 0)
		source->db++;
	if (strcmp(site->category.data, "net") != 0)
		return;
	uint64_t *next = &source->next[thread % 4096];
	source->first = source->net++ == 0 ? words[1] : source->first;
	source->out_of_order += *next != 0 && words[1] != *next;
	source->last = words[1];
	*next = words[1] + 1;
}

void ky_bundle_block(struct ky_bundle *bundle, uint32_t source, const struct ky_block *block,
		     const struct ky_thread *thread, struct ky_sites *sites)
{
	struct fake_source *s = &bundle->sources[source - 1];
	s->lost += block->lost;
	for (uint32_t at = 0; at < block->count; at += 1 + KY_WORD_LENGTH(block->words[at])) {
		const struct ky_site *site = ky_sites_get(sites, block->words[at]);
		if (KY_WORD_SITE(block->words[at]) >= KY_CONTROL_MAX && site)
			count_event(s, site, &block->words[at], thread->index);
	}
}

void ky_bundle_thread_end(struct ky_bundle *bundle, uint32_t source, int32_t tid, uint64_t time_ns)
{
	(void)bundle;
	(void)source;
	(void)tid;
	(void)time_ns;
}

void ky_bundle_program_end(struct ky_bundle *bundle, uint32_t source, uint64_t time_ns)
{
	(void)bundle, (void)source, (void)time_ns;
}

void ky_bundle_loss(struct ky_bundle *bundle, uint32_t source, const char *what, uint64_t count)
{
	struct fake_source *s = &bundle->sources[source - 1];
	const size_t used = strlen(s->losses);
	snprintf(s->losses + used, sizeof(s->losses) - used, "%s: %llu\n", what,
		 (unsigned long long)count);
}

void ky_bundle_drum_end(struct ky_bundle *bundle, uint32_t source, uint64_t lost)
{
	bundle->sources[source - 1].ended = true;
	bundle->sources[source - 1].lost_in_all = lost;
}
