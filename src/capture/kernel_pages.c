/* SPDX-License-Identifier: MIT */
/*
 * kernel_pages.c: the ring of each CPU, from per_cpu/cpuN/trace_pipe_raw: a read takes the oldest
 * page out of the ring, or what there is of the one that is being written.
 *
 *   ring of a CPU ─▶ page, cut after its last event ─▶ stream
 *                                                  └──▶ flight: a list for each CPU, oldest first
 * ─▶ window
 *
 * Pages are taken when a quarter of a ring is full (the kernel wakes by buffer_percent), or every
 * tenth of a second. Not sooner: taking pages makes events itself, and pages with few events cost
 * more than they hold.
 *
 * A page covers the time from its own stamp to its last event. Flight mode drops pages that ended
 * longer ago than before_ns and a second (a window is requested later than it begins), and the
 * oldest of all when they exceed FLIGHT_BYTES_MAX: their events count as lost. A page that a window
 * wrote is removed from the list, so none is written twice.
 */
#include "capture/kernel_events.h"

#include "base/array.h"
#include "os/os.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <tracefs/tracefs.h>
#include <unistd.h>

#define PERIOD_NS 100000000
#define SLACK_NS UINT64_C(1000000000)
#define FLIGHT_BYTES_MAX (UINT64_C(256) << 20)
#define PAGE_BYTES_MAX (1u << 20)
#define READY_MAX 64

/* The head of a page: its time, and the bytes of events with two flags (src/formats/ftrace/ftrace_record.c). */
#define HEAD_BYTES (8 + sizeof(long))
#define COMMIT_BYTES_MASK 0x07FFFFFFul
#define MISSED_STORED (1ul << 30)
#define TYPE_PADDING 29u
#define TYPE_EXTEND 30u
#define TYPE_ABSOLUTE 31u
#define DELTA_BITS 27u
#define ABSOLUTE_BITS 59u

struct page {
	struct page *next; /* of the same CPU, newer */
	uint64_t ts;
	uint64_t end_ts; /* of its last event */
	uint32_t bytes;  /* of the record, padded */
	uint32_t events;
	uint8_t record[];
};

struct ring {
	int fd;
	uint32_t cpu;
	struct page *first;
	struct page *last;
};

struct ky_kernel_pages {
	struct ky_kernel_pages_options options;
	int epoll;
	int timer;
	uint32_t page_bytes;
	uint64_t taken;
	uint64_t held_bytes;
	uint64_t dropped; /* events that were young enough but had no memory */
	uint8_t *record;  /* struct ky_kymo_ftrace and a page */
	struct ring *rings;
	uint32_t count, room;
};

/* ---- flight ---- */

static void drop_first(struct ky_kernel_pages *pages, struct ring *ring)
{
	struct page *page = ring->first;
	ring->first = page->next;
	if (!ring->first)
		ring->last = NULL;
	pages->held_bytes -= page->bytes;
	free(page);
}

static void append(struct ring *ring, struct page *page)
{
	page->next = NULL;
	if (ring->last)
		ring->last->next = page;
	else
		ring->first = page;
	ring->last = page;
}

/* Return the time of the last event of the page in record, and their number (see formats/ftrace/ftrace_record.c). */
static uint64_t end_of(const struct ky_kernel_pages *pages, uint32_t bytes, uint32_t *events)
{
	const uint8_t *page = pages->record + sizeof(struct ky_kymo_ftrace);
	uint64_t ts;
	unsigned long commit;
	memcpy(&ts, page, sizeof(ts));
	memcpy(&commit, page + 8, sizeof(commit));
	size_t end = HEAD_BYTES + (commit & COMMIT_BYTES_MASK);
	if (end > bytes - sizeof(struct ky_kymo_ftrace))
		end = bytes - sizeof(struct ky_kymo_ftrace);
	*events = 0;
	for (size_t at = HEAD_BYTES; at + 8 <= end;) {
		uint32_t words[2];
		memcpy(words, page + at, sizeof(words));
		const uint32_t type = words[0] & 31;
		const uint64_t delta = words[0] >> 5;
		if (type == TYPE_PADDING && !delta)
			break;
		*events += type < TYPE_PADDING;
		if (type == TYPE_ABSOLUTE)
			ts = (ts >> ABSOLUTE_BITS << ABSOLUTE_BITS) | delta |
			     (uint64_t)words[1] << DELTA_BITS;
		else
			ts += delta + (type == TYPE_EXTEND ? (uint64_t)words[1] << DELTA_BITS : 0);
		const bool sized = type == 0 || type == TYPE_PADDING;
		const size_t data = sized ? words[1] : type >= TYPE_EXTEND ? 4 : 4 * (size_t)type;
		at += 4 + ((data + 3) & ~(size_t)3);
	}
	return ts;
}

static void keep(struct ky_kernel_pages *pages, struct ring *ring, uint64_t ts, uint32_t bytes)
{
	uint32_t events;
	const uint64_t end_ts = end_of(pages, bytes, &events);
	struct page *page = malloc(sizeof(*page) + bytes);
	if (!page) {
		pages->dropped += events;
		return;
	}
	page->ts = ts;
	page->end_ts = end_ts;
	page->events = events;
	page->bytes = bytes;
	memcpy(page->record, pages->record, bytes);
	append(ring, page);
	pages->held_bytes += bytes;
}

static struct ring *oldest(struct ky_kernel_pages *pages)
{
	struct ring *found = NULL;
	for (uint32_t i = 0; i < pages->count; i++) {
		struct ring *ring = &pages->rings[i];
		if (ring->first && (!found || ring->first->ts < found->first->ts))
			found = ring;
	}
	return found;
}

static void drop_old(struct ky_kernel_pages *pages, uint64_t now)
{
	const uint64_t age = pages->options.before_ns + SLACK_NS;
	const uint64_t limit = age >= SLACK_NS && now > age ? now - age : 0;
	for (uint32_t i = 0; i < pages->count; i++) {
		struct ring *ring = &pages->rings[i];
		while (ring->first && ring->first->end_ts < limit)
			drop_first(pages, ring);
	}
	struct ring *ring;
	while (pages->held_bytes > FLIGHT_BYTES_MAX && (ring = oldest(pages))) {
		pages->dropped += ring->first->events;
		drop_first(pages, ring);
	}
}

/* Write the pages that the window reaches, and keep the others in the list. */
static void write_window(struct ky_kernel_pages *pages, struct ring *ring, uint64_t from_ns,
			 uint64_t to_ns)
{
	const struct ky_kernel_stream *stream = pages->options.stream;
	struct page *page = ring->first;
	ring->first = ring->last = NULL;
	while (page) {
		struct page *after = page->next;
		if (page->ts > to_ns || page->end_ts < from_ns) {
			append(ring, page);
		} else {
			ky_bundle_stream_write(stream->bundle, stream->part, page->record,
					       page->bytes);
			pages->held_bytes -= page->bytes;
			free(page);
		}
		page = after;
	}
}

void ky_kernel_pages_window(struct ky_kernel_pages *pages, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < pages->count; i++)
		write_window(pages, &pages->rings[i], from_ns, to_ns);
}

/* ---- taking ---- */

/* Make the page in record a record of the stream; return its padded size. */
static uint32_t finish_record(struct ky_kernel_pages *pages, uint32_t cpu, size_t got)
{
	const uint8_t *page = pages->record + sizeof(struct ky_kymo_ftrace);
	unsigned long commit;
	memcpy(&commit, page + 8, sizeof(commit));
	size_t used = HEAD_BYTES + (commit & COMMIT_BYTES_MASK);
	if (commit & MISSED_STORED)
		used += sizeof(long);
	used = used < got ? used : got;
	const struct ky_kymo_ftrace head = {
		.bytes = (uint32_t)(sizeof(head) + used),
		.kind = KY_KYMO_FTRACE_PAGE,
		.cpu = cpu,
	};
	memcpy(pages->record, &head, sizeof(head));
	const size_t padded = KY_KYMO_PADDED(head.bytes);
	memset(pages->record + head.bytes, 0, padded - head.bytes);
	return (uint32_t)padded;
}

/* Take one page. Return its time, or 0 when there is none. */
static uint64_t take_page(struct ky_kernel_pages *pages, struct ring *ring)
{
	const struct ky_kernel_stream *stream = pages->options.stream;
	uint8_t *page = pages->record + sizeof(struct ky_kymo_ftrace);
	uint64_t ts;
	const ssize_t got = read(ring->fd, page, pages->page_bytes);
	if (got < (ssize_t)HEAD_BYTES)
		return 0;
	memcpy(&ts, page, sizeof(ts));
	const uint32_t bytes = finish_record(pages, ring->cpu, (size_t)got);
	pages->taken++;
	if (pages->options.flight)
		keep(pages, ring, ts, bytes);
	else
		ky_bundle_stream_write(stream->bundle, stream->part, pages->record, bytes);
	return ts ? ts : 1;
}

/* Take pages until the ring is empty or they are newer than the call: a busy CPU must not keep us here. */
static void take_ring(struct ky_kernel_pages *pages, struct ring *ring)
{
	const uint64_t begin = ky_os_boottime();
	uint64_t ts;
	do
		ts = take_page(pages, ring);
	while (ts && ts <= begin);
}

static void take_all(struct ky_kernel_pages *pages)
{
	for (uint32_t i = 0; i < pages->count; i++)
		take_ring(pages, &pages->rings[i]);
}

/* Report whether it is time to look at all rings. */
static bool take_ready(struct ky_kernel_pages *pages, const struct epoll_event *ready)
{
	uint64_t times;
	if (ready->data.u32 >= pages->count)
		return read(pages->timer, &times, sizeof(times)) > 0;
	struct ring *ring = &pages->rings[ready->data.u32];
	/* A CPU that is offline would be ready for ever, so it is not polled. The timer reads it too. */
	if (ready->events & (EPOLLERR | EPOLLHUP))
		(void)epoll_ctl(pages->epoll, EPOLL_CTL_DEL, ring->fd, NULL);
	else
		take_ring(pages, ring);
	return false;
}

void ky_kernel_pages_round(struct ky_kernel_pages *pages, bool all)
{
	struct epoll_event ready[READY_MAX];
	const int count = epoll_wait(pages->epoll, ready, READY_MAX, 0);
	for (int i = 0; i < count; i++)
		all = take_ready(pages, &ready[i]) || all;
	if (all)
		take_all(pages);
	if (pages->options.flight && (all || count > 0))
		drop_old(pages, ky_os_boottime());
}

/* ---- opening ---- */

static int poll_for(const struct ky_kernel_pages *pages, int fd, uint32_t number)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
	return epoll_ctl(pages->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static int add_ring(struct ky_kernel_pages *pages, struct tracefs_instance *instance, uint32_t cpu)
{
	char path[64];
	snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	const int fd =
		tracefs_instance_file_open(instance, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno ? -errno : -EACCES;
	if (!KY_ARRAY_ADD(pages->rings, pages->count, pages->room,
			  (struct ring){.fd = fd, .cpu = cpu})) {
		close(fd);
		return -ENOMEM;
	}
	return poll_for(pages, fd, pages->count - 1);
}

static int add_rings(struct ky_kernel_pages *pages, struct tracefs_instance *instance)
{
	char *path = tracefs_instance_get_file(instance, "per_cpu");
	DIR *open = path ? opendir(path) : NULL;
	int error = open ? 0 : -errno;
	const struct dirent *entry;
	while (open && !error && (entry = readdir(open)))
		if (strncmp(entry->d_name, "cpu", 3) == 0 &&
		    isdigit((unsigned char)entry->d_name[3]))
			error = add_ring(pages, instance,
					 (uint32_t)strtoul(entry->d_name + 3, NULL, 10));
	if (open)
		closedir(open);
	tracefs_put_tracing_file(path);
	return error;
}

/* Since 6.8 a page of the ring may be several of the machine's pages. */
static uint32_t page_bytes_of(struct tracefs_instance *instance)
{
	long long kilobytes = 0;
	if (tracefs_instance_file_read_number(instance, "buffer_subbuf_size_kb", &kilobytes) == 0 &&
	    kilobytes > 0 && kilobytes <= PAGE_BYTES_MAX / 1024)
		return (uint32_t)kilobytes * 1024;
	return (uint32_t)sysconf(_SC_PAGESIZE);
}

static int start_timer(struct ky_kernel_pages *pages)
{
	const struct itimerspec period = {.it_interval.tv_nsec = PERIOD_NS,
					  .it_value.tv_nsec = PERIOD_NS};
	pages->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (pages->timer < 0 || timerfd_settime(pages->timer, 0, &period, NULL) != 0)
		return -errno;
	return poll_for(pages, pages->timer, pages->count);
}

int ky_kernel_pages_open(struct ky_kernel_pages **out, struct tracefs_instance *instance,
			 const struct ky_kernel_pages_options *options,
			 char message[KY_MESSAGE_BYTES])
{
	struct ky_kernel_pages *pages = calloc(1, sizeof(*pages));
	*out = NULL;
	if (!pages)
		return -ENOMEM;
	pages->options = *options;
	pages->timer = -1;
	pages->page_bytes = page_bytes_of(instance);
	pages->record = calloc(1, sizeof(struct ky_kymo_ftrace) + pages->page_bytes + 8);
	pages->epoll = epoll_create1(EPOLL_CLOEXEC);
	int error = pages->epoll < 0 ? -errno : pages->record ? 0 : -ENOMEM;
	if (!error)
		error = add_rings(pages, instance);
	if (!error)
		error = start_timer(pages);
	if (error) {
		ky_kernel_pages_close(&pages);
		return ky_fail(message, error,
			       "cannot open the CPUs' rings in tracefs: %s; run as root",
			       strerror(-error));
	}
	*out = pages;
	return 0;
}

void ky_kernel_pages_close(struct ky_kernel_pages **out)
{
	struct ky_kernel_pages *pages = *out;
	*out = NULL;
	if (!pages)
		return;
	for (uint32_t i = 0; i < pages->count; i++) {
		while (pages->rings[i].first)
			drop_first(pages, &pages->rings[i]);
		close(pages->rings[i].fd);
	}
	if (pages->timer >= 0)
		close(pages->timer);
	if (pages->epoll >= 0)
		close(pages->epoll);
	KY_ARRAY_FREE(pages->rings, pages->room);
	free(pages->record);
	free(pages);
}

int ky_kernel_pages_fd(const struct ky_kernel_pages *pages)
{
	return pages->epoll;
}

uint64_t ky_kernel_pages_taken(const struct ky_kernel_pages *pages)
{
	return pages->taken;
}

uint64_t ky_kernel_pages_dropped(const struct ky_kernel_pages *pages)
{
	return pages->dropped;
}

uint32_t ky_kernel_pages_cpus(const struct ky_kernel_pages *pages)
{
	return pages->count;
}

uint32_t ky_kernel_pages_cpu(const struct ky_kernel_pages *pages, uint32_t index)
{
	return pages->rings[index].cpu;
}
