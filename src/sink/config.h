/* SPDX-License-Identifier: MIT */
/*
 * config.h: kymo_options.perfetto_config: read a serialized perfetto.protos.TraceConfig as the equivalent session
 * options.
 *
 *	TraceConfig                                    kymo_options
 *	buffers.size_kb, all of them together          total_bytes
 *	buffers.fill_policy, write_into_file           mode
 *	duration_ms                                    duration_ms
 *	file_write_period_ms, else flush_period_ms     flush_ms
 *	max_file_size_bytes                            max_bytes
 *	output_path                                    path
 *	data_sources of the name track_event:
 *	  enabled_categories, disabled_categories      categories
 *
 * Everything else is skipped, as protobuf requires for unknown fields. The differences that remain:
 *
 * - Buffers that overwrite (Perfetto's default) and no write_into_file make KYMO_MODE_RING. A
 *   buffer that discards what does not fit keeps the oldest events; kymo has no such ring and
 *   streams instead, which keeps all events. Without buffers the mode is KYMO_MODE_STREAM.
 * - Perfetto's SDKs disagree about categories that no entry matches. Here the entries mean what
 *   they mean in kymo's own list: enabled ones alone select only themselves, disabled ones take
 *   away from all. Tags are skipped, but for those that Perfetto's own defaults need: see glob.h on
 *   categories that begin with disabled-by-default-.
 * - Several track_event data sources are pooled. A config without one does not change categories.
 * - A blank in front of or behind a name is not part of it; ',' within one and '-' before one
 *   cannot be written in kymo's list and become '?', which is any byte.
 */
#ifndef KY_SINK_CONFIG_H
#define KY_SINK_CONFIG_H

#include <kymo/session.h>
#include <stddef.h>
#include <stdint.h>

/* What a TraceConfig asks for; zero and NULL mean nothing. */
struct ky_config {
	size_t total_bytes;
	int mode; /* enum kymo_mode */
	uint32_t flush_ms;
	uint32_t duration_ms;
	uint64_t max_bytes;
	char *path;
	char *categories; /* as in kymo_options */
};

/*
 * Read the message. Return 0; KYMO_ECONFIG when it is truncated or malformed; -ENOMEM. On failure *config is all zero.
 */
__attribute__((cold)) int ky_config_decode(struct ky_config *config, const void *data,
					   size_t bytes);

/*
 * Fill in the options that are zero: explicit options win (KYMO_MODE_STREAM is zero, so a config can make it
 * KYMO_MODE_RING). The strings belong to config, which must live until the options were used.
 */
void ky_config_apply(const struct ky_config *config, struct kymo_options *options);

/* Free the strings and zero the rest. */
void ky_config_free(struct ky_config *config);

#endif
