/* SPDX-License-Identifier: MIT */
/* kernel_pages.h: the rings of the CPUs, page by page, into the stream or into memory. */
#ifndef KY_CAPTURE_KERNEL_PAGES_H
#define KY_CAPTURE_KERNEL_PAGES_H

#include "capture/kernel_events.h"

struct ky_kernel_pages;

struct ky_kernel_pages_options {
	const struct ky_kernel_stream *stream; /* stays the caller's */
	bool flight;
	uint64_t before_ns;
};

/* Open the rings. Return 0, or -errno with a message. */
int ky_kernel_pages_open(struct ky_kernel_pages **pages, struct tracefs_instance *instance,
			 const struct ky_kernel_pages_options *options,
			 char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Close the rings and drop pages that wait. */
void ky_kernel_pages_close(struct ky_kernel_pages **pages);
int ky_kernel_pages_fd(const struct ky_kernel_pages *pages);
/* Take the pages of each ring that holds enough or has waited long enough; with all, everything. */
void ky_kernel_pages_round(struct ky_kernel_pages *pages, bool all);
void ky_kernel_pages_window(struct ky_kernel_pages *pages, uint64_t from_ns, uint64_t to_ns);
uint64_t ky_kernel_pages_taken(const struct ky_kernel_pages *pages);
/* Return how many events of a flight recorder were young enough, but had no memory. */
uint64_t ky_kernel_pages_dropped(const struct ky_kernel_pages *pages);
/* Return how many CPUs have a ring, and the number of each. */
uint32_t ky_kernel_pages_cpus(const struct ky_kernel_pages *pages);
uint32_t ky_kernel_pages_cpu(const struct ky_kernel_pages *pages, uint32_t index);

#endif
