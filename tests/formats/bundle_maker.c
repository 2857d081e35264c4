/* SPDX-License-Identifier: MIT */
#include "bundle_maker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/layout.h"

#define FIRST_SITE 300u /* its number in the words */
#define HEAP_BYTES (64u << 10)

static struct ky_text text(const char *data)
{
	return (struct ky_text){data, (uint32_t)strlen(data)};
}

static struct ky_tick_reading clock_at(uint64_t ns)
{
	return (struct ky_tick_reading){ns, ns, ns - MADE_MONOTONIC_BEHIND,
					ns + MADE_REALTIME_AHEAD};
}

/* The writer's own clock samples are to be those of the drums: this program has its own clocks. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	const struct ky_tick_reading sample = clock_at(MADE_START_NS);
	const uint64_t ns = clock == CLOCK_BOOTTIME    ? sample.boottime_ns
			    : clock == CLOCK_MONOTONIC ? sample.monotonic_ns
						       : sample.realtime_ns;
	*now = (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
	return 0;
}

void made_open(struct made_bundle *made)
{
	char message[KY_MESSAGE_BYTES];
	memset(made, 0, sizeof(*made));
	made->fd = memfd_create("bundle", MFD_CLOEXEC);
	const struct ky_bundle_options options = {.fd = made->fd};
	if (made->fd < 0 || ky_bundle_open(&made->bundle, &options, message) != 0)
		abort();
}

void made_close(struct made_bundle *made)
{
	if (ky_bundle_close(&made->bundle) != 0)
		abort();
	made->bytes = (size_t)lseek(made->fd, 0, SEEK_END);
	made->data = malloc(made->bytes);
	if (pread(made->fd, made->data, made->bytes, 0) != (ssize_t)made->bytes)
		abort();
	close(made->fd);
}

void made_free(struct made_bundle *made)
{
	free(made->data);
	made->data = NULL;
}

static void make_sites(struct made_drum *drum, const char *name)
{
	drum->site[MADE_SCOPE] = (struct ky_site){.kind = KYMO_KIND_BEGIN,
						  .flags = KYMO_SITE_SCOPE,
						  .category = text("net"),
						  .name = text(name)};
	drum->site[MADE_TICK] = (struct ky_site){
		.kind = KYMO_KIND_INSTANT, .category = text("net"), .name = text("tick")};
	drum->site[MADE_SNAPSHOT] = (struct ky_site){
		.kind = KYMO_KIND_SNAPSHOT, .category = text("kymo"), .name = text("too slow")};
	drum->site[MADE_ASYNC_BEGIN] = (struct ky_site){.kind = KYMO_KIND_ASYNC_BEGIN,
							.flags = KYMO_SITE_ID,
							.items = 1,
							.types = KYMO_TYPE_UINT,
							.category = text("net"),
							.name = text("request")};
	drum->site[MADE_ASYNC_END] = drum->site[MADE_ASYNC_BEGIN];
	drum->site[MADE_ASYNC_END].kind = KYMO_KIND_ASYNC_END;
	drum->view.header.heap_at = FIRST_SITE * KY_HEAP_UNIT;
	drum->view.header.heap_bytes = HEAP_BYTES;
	drum->view.bytes = drum->view.header.heap_at + HEAP_BYTES;
	drum->view.base = calloc(1, drum->view.bytes);
	drum->sites.view = &drum->view;
	drum->sites.by_place = calloc(HEAP_BYTES / KY_HEAP_UNIT, sizeof(struct ky_site *));
	for (uint32_t i = 0; i < MADE_SITES; i++) {
		struct ky_site *site = &drum->site[i];
		site->index = i;
		site->file = text("");
		site->function = text("");
		for (uint32_t k = 0; k < KYMO_ARGS_MAX; k++)
			site->keys[k] = text("");
		drum->sites.by_place[i] = site;
	}
}

void made_drum(struct made_bundle *made, struct made_drum *drum, int32_t pid, int32_t tid,
	       const char *name)
{
	made_drum_beside(made, drum, pid, tid, name, 0);
}

void made_drum_beside(struct made_bundle *made, struct made_drum *drum, int32_t pid, int32_t tid,
		      const char *name, uint32_t layer)
{
	memset(drum, 0, sizeof(*drum));
	make_sites(drum, name);
	drum->thread = (struct ky_thread){.pid = pid, .tid = tid, .name = text(name)};
	const struct ky_trace_info info = {
		.pid = pid,
		.process = text(name),
		.command = text("/usr/bin/made"),
		.clock = clock_at(MADE_START_NS),
		.ticks_per_s = 1000000000,
		.layer = layer,
	};
	drum->source = ky_bundle_drum(made->bundle, &info);
	ky_bundle_thread(made->bundle, drum->source, &drum->thread);
	const struct ky_tick_reading later = clock_at(2 * MADE_START_NS);
	ky_bundle_clock(made->bundle, drum->source, &later);
}

void made_event(struct made_drum *drum, enum made_site site, bool end, uint64_t ns)
{
	const bool has_id = drum->site[site].flags & KYMO_SITE_ID;
	if (drum->count + 3 > KY_BLOCK_WORDS)
		abort();
	drum->words[drum->count++] = (uint64_t)KY_CONTROL_HIGH << KY_WORD_SITE_SHIFT | ns >> 32;
	drum->words[drum->count++] = (uint64_t)(FIRST_SITE + site) << KY_WORD_SITE_SHIFT |
				     KYMO_I_LENGTH(has_id) | (end ? KYMO_I_END_BIT : 0) |
				     (uint32_t)ns;
	if (has_id)
		drum->words[drum->count++] = 7;
	drum->events++;
}

void made_flush(struct made_bundle *made, struct made_drum *drum, uint64_t lost)
{
	const struct ky_block block = {
		.tid = (uint32_t)drum->thread.tid,
		.number = drum->blocks++,
		.count = drum->count,
		.events = drum->events,
		.lost = lost,
		.words = drum->words,
	};
	if (drum->count || lost)
		ky_bundle_block(made->bundle, drum->source, &block, &drum->thread, &drum->sites);
	drum->count = 0;
	drum->events = 0;
	ky_bundle_flush(made->bundle);
}

void made_drum_end(struct made_bundle *made, struct made_drum *drum, uint64_t lost)
{
	made_flush(made, drum, 0);
	ky_bundle_drum_end(made->bundle, drum->source, lost);
}

void made_drum_free(struct made_drum *drum)
{
	free(drum->sites.by_place);
	free((void *)(uintptr_t)drum->view.base);
}
