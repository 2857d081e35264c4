/* SPDX-License-Identifier: MIT */
/*
 * made_drum.c: makes drums from outside, and writes other threads' spans into them.
 *
 *   threads: bucket[tid] ─▶ writer ─▶ writer ─▶ NULL      a ring for each thread that has events
 *
 * A thread's times never go back in a ring: an event that is earlier than the one before it gets that one's time.
 */
#include "functrace/made_drum.h"

#include "core/drum_make.h"
#include "core/heap.h"
#include "core/ring.h"
#include "os/os.h"
#include "os/ticks.h"
#include "process/drum_find.h"
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* A trace point and its strings, generously: unwritten bytes take no memory. */
#define FUNCTION_BYTES 640u
#define HEAP_BYTES_MIN (4u << 20)
#define THREADS_MAX 16384u
#define MODULES_MAX 4096u
#define BUCKETS 256u
#define WORD_LENGTH_SHIFT 33

struct writer {
	struct writer *next;
	uint32_t tid;
	uint32_t name;  /* in the heap */
	uint32_t depth; /* open spans */
	uint64_t last_ns;
	struct ky_ring_writer ring;
};

struct threads {
	struct writer *buckets[BUCKETS];
	uint32_t end_site;
};

static struct ky_limits limits_of(const struct ky_made_drum_options *options)
{
	const uint64_t heap = (uint64_t)options->functions * FUNCTION_BYTES + HEAP_BYTES_MIN;
	return (struct ky_limits){.heap_bytes = heap < KY_HEAP_END_MAX ? heap : KY_HEAP_END_MAX,
				  .rings_max = THREADS_MAX,
				  .categories_max = MODULES_MAX,
				  .fd = -1};
}

/* Size the file, and seal it where possible: then it cannot be cut short under a reader. */
static int take_file(int fd, uint64_t bytes)
{
	if (fd < 0)
		return ky_os_memfd(KY_DRUM_NAME, bytes);
	const int64_t has = ky_os_size(fd);
	if (has < 0)
		return (int)has;
	if (has != 0 && (uint64_t)has != bytes)
		return -EINVAL;
	if (has == 0 && ftruncate(fd, (off_t)bytes) != 0)
		return -errno;
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

static int map_file(struct ky_made_drum *drum, const struct ky_made_drum_options *options,
		    uint64_t bytes)
{
	const int fd = take_file(options->fd, bytes);
	if (fd < 0)
		return fd;
	drum->fd = drum->drum.fd = fd;
	drum->drum.bytes = bytes;
	drum->drum.base = ky_os_map(fd, bytes, NULL);
	return drum->drum.base ? 0 : -errno;
}

/* ---- what a program has mapped, too ---- */

static void copy_to_program(struct ky_made_drum *drum, uint64_t from, uint64_t to)
{
	memcpy(drum->drum.base + from, drum->tables.base + from, to - from);
}

/* Fill the tables, and copy them. No pointer is made of what the program may have written. */
static int fill_shared(struct ky_made_drum *drum, const struct ky_drum_header *planned,
		       const struct ky_drum_maker *maker)
{
	struct ky_drum *const own = &drum->tables;
	void *const base = mmap(NULL, planned->space_at, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	*own = (struct ky_drum){.base = base, .bytes = planned->space_at, .fd = -1};
	ky_drum_make_fill(own, planned, maker, NULL);
	const struct ky_drum_header *const h = own->header;
	uint8_t *const shared = drum->drum.base;
	drum->drum.header = (struct ky_drum_header *)(void *)shared;
	drum->drum.clock = (struct ky_drum_clock *)(void *)(shared + h->clock_at);
	drum->drum.categories = (struct ky_drum_category *)(void *)(shared + h->categories_at);
	drum->drum.buckets = (uint32_t *)(void *)(shared + h->buckets_at);
	drum->drum.rings = (struct ky_drum_ring *)(void *)(shared + h->rings_at);
	drum->drum.reads = (uint64_t *)(void *)(shared + h->reads_at);
	drum->drum.ticks_inline = own->ticks_inline;
	copy_to_program(drum, 0, h->buckets_at);
	copy_to_program(drum, h->heap_at, h->heap_at + h->heap_used);
	/* The agent adds names of threads behind that, up to its part of the heap: kymo goes on behind them. */
	own->header->heap_used = ky_drum_make_page_up(h->heap_used + h->heap_bytes / KY_NAMES_PART);
	return 0;
}

const struct ky_drum_header *ky_made_drum_header(const struct ky_made_drum *drum)
{
	return drum->tables.base ? drum->tables.header : drum->drum.header;
}

static int make(struct ky_made_drum *drum, const struct ky_made_drum_options *options)
{
	const int source = options->ticks ? ky_cpu_tick_source() : KY_TICKS_MONOTONIC;
	if (source == KY_TICKS_NONE)
		return -ENOTSUP;
	const struct ky_limits limits = limits_of(options);
	struct ky_drum_header planned;
	const uint64_t least =
		options->ring_bytes > KY_RING_BYTES_MIN ? options->ring_bytes : KY_RING_BYTES_MIN;
	const uint64_t total = options->total_bytes > least ? options->total_bytes : least;
	ky_drum_make_plan(&planned, &limits, ky_drum_make_page_up(total));
	planned.layer = options->layer;
	struct ky_drum_maker maker = {.pid = (uint32_t)options->pid,
				      .tick_source = (uint32_t)source,
				      .ring_bytes = least,
				      .total_bytes = total};
	if (getrandom(&maker.image, sizeof(maker.image), 0) != sizeof(maker.image))
		return -errno;
	int error = map_file(drum, options, planned.drum_bytes);
	if (error)
		return error;
	char name[16];
	(void)ky_proc_comm(options->pid, 0, name, sizeof(name));
	maker.process_name = options->name ? options->name : name;
	if (options->fd >= 0)
		error = fill_shared(drum, &planned, &maker);
	else
		ky_drum_make_fill(&drum->drum, &planned, &maker, NULL);
	if (!error)
		ky_drum_make_finish(&drum->drum);
	return error;
}

int ky_made_drum_open(struct ky_made_drum *drum, const struct ky_made_drum_options *options)
{
	memset(drum, 0, sizeof(*drum));
	drum->fd = options->fd;
	struct threads *threads = calloc(1, sizeof(*threads));
	drum->threads = threads;
	int error = threads ? make(drum, options) : -ENOMEM;
	if (error == 0)
		threads->end_site =
			ky_made_drum_site(drum, KYMO_KIND_END, NULL, NULL, NULL, NULL, 0);
	if (error)
		ky_made_drum_close(drum);
	return error;
}

void ky_made_drum_close(struct ky_made_drum *drum)
{
	struct threads *threads = drum->threads;
	for (uint32_t i = 0; threads && i < BUCKETS; i++)
		for (struct writer *w = threads->buckets[i], *next; w; w = next) {
			next = w->next;
			ky_ring_release(&drum->drum, &w->ring);
			free(w);
		}
	free(threads);
	if (drum->drum.base)
		ky_os_unmap(drum->drum.base, drum->drum.bytes);
	if (drum->tables.base)
		munmap(drum->tables.base, drum->tables.bytes);
	if (drum->fd >= 0)
		ky_os_close(drum->fd);
	memset(drum, 0, sizeof(*drum));
	drum->fd = -1;
}

static uint32_t make_site(struct ky_drum *d, int kind, const char *module, const char *name,
			  const char *linked, const char *file, uint32_t line, uint32_t *category)
{
	const struct ky_drum_category *const entry =
		ky_heap_category(d, module ? module : "functions");
	if (!entry)
		return 0;
	const struct kymo_site_info info = {.abi = KYMO_I_ABI,
					    .kind = (uint8_t)kind,
					    .line = line,
					    .name = name,
					    .file = file,
					    .function = linked};
	*category = (uint32_t)(entry - d->categories);
	const uint32_t site = ky_heap_site(d, &info, *category);
	return site == d->header->overflow_site ? 0 : site;
}

uint32_t ky_made_drum_site(struct ky_made_drum *drum, int kind, const char *module,
			   const char *name, const char *linked, const char *file, uint32_t line)
{
	uint32_t category = 0;
	if (!drum->tables.base)
		return make_site(&drum->drum, kind, module, name, linked, file, line, &category);
	const struct ky_drum_header *const h = drum->tables.header;
	const uint64_t before = h->heap_used;
	const uint32_t site =
		make_site(&drum->tables, kind, module, name, linked, file, line, &category);
	const uint64_t entry = h->categories_at + category * sizeof(struct ky_drum_category);
	copy_to_program(drum, h->heap_at + before, h->heap_at + h->heap_used);
	copy_to_program(drum, entry, entry + sizeof(struct ky_drum_category));
	/* The release of the first event that has this trace point, or of the jump to its stub, comes after it. */
	return site;
}

static struct writer *writer_of(struct ky_made_drum *drum, pid_t tid)
{
	struct threads *threads = drum->threads;
	struct writer **bucket = &threads->buckets[(uint32_t)tid % BUCKETS];
	for (struct writer *w = *bucket; w; w = w->next)
		if (w->tid == (uint32_t)tid)
			return w;
	struct writer *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->tid = (uint32_t)tid;
	w->next = *bucket;
	*bucket = w;
	return w;
}

void ky_made_drum_process(struct ky_made_drum *drum, pid_t tid, pid_t pid)
{
	const uint32_t whose = (uint32_t)pid == drum->drum.header->pid ? 0 : (uint32_t)pid;
	struct writer *w = writer_of(drum, tid);
	/* The number is another thread's by now. */
	if (w && w->ring.ring && w->ring.pid != whose) {
		ky_made_drum_gone(drum, tid, w->last_ns);
		w = writer_of(drum, tid);
	}
	if (w)
		w->ring.pid = whose;
}

void ky_made_drum_thread(struct ky_made_drum *drum, pid_t tid, const char *name)
{
	struct writer *w = writer_of(drum, tid);
	if (w)
		w->name = ky_heap_thread_name(&drum->drum, name, strnlen(name, KY_TEXT_BYTES_MAX));
}

/*
 * Report whether it still owns its ring: a ring whose owner seemed to have ended may have been taken for another
 * thread.
 */
static bool owns_ring(const struct writer *w)
{
	return w->ring.ring && __atomic_load_n(&w->ring.ring->owner, __ATOMIC_RELAXED) == w->tid;
}

/* Put an event; value is NULL for one without. */
static bool put_value(struct ky_made_drum *drum, struct writer *w, uint64_t ns, uint32_t site,
		      const uint64_t *value)
{
	const uint32_t words = value ? 1 : 0;
	uint64_t *slot = NULL;
	if (w && site != 0) {
		w->last_ns = ns > w->last_ns ? ns : w->last_ns;
		if (!owns_ring(w))
			w->ring.ring = NULL;
		w->ring.at = w->ring.pub.ky_pos;
		slot = ky_ring_reserve_at(&drum->drum, &w->ring, w->tid, w->name, words,
					  w->last_ns);
	}
	if (!slot) {
		if (w && site != 0)
			w->ring.pub.ky_pos = w->ring.at;
		drum->lost++;
		__atomic_fetch_add(&drum->drum.header->lost_ringless, 1, __ATOMIC_RELAXED);
		return false;
	}
	const uint64_t word = (uint64_t)site << KY_WORD_SITE_SHIFT |
			      (uint64_t)words << WORD_LENGTH_SHIFT | (uint32_t)w->last_ns;
	if (value)
		slot[1] = *value;
	ky_ring_commit(&w->ring.pub, slot, word, slot + 1 + words);
	return true;
}

static bool put(struct ky_made_drum *drum, struct writer *w, uint64_t ns, uint32_t site)
{
	return put_value(drum, w, ns, site, NULL);
}

uint32_t ky_made_drum_counter(struct ky_made_drum *drum, const char *category, const char *name)
{
	static const char *const keys[] = {"value"};
	struct ky_drum *d = &drum->drum;
	const struct ky_drum_category *c = ky_heap_category(d, category);
	const struct kymo_site_info info = {.abi = KYMO_I_ABI,
					    .kind = KYMO_KIND_COUNTER,
					    .items = 1,
					    .args = 1,
					    .types = KYMO_TYPE_UINT,
					    .name = name,
					    .keys = keys};
	const uint32_t site = c ? ky_heap_site(d, &info, (uint32_t)(c - d->categories)) : 0;
	return site == d->header->overflow_site ? 0 : site;
}

void ky_made_drum_count(struct ky_made_drum *drum, pid_t tid, uint32_t site, uint64_t value)
{
	const uint64_t now = ky_tick_source_ticks(drum->drum.header->tick_source);
	put_value(drum, writer_of(drum, tid), now, site, &value);
}

void ky_made_drum_begin(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns, uint32_t site)
{
	struct writer *w = writer_of(drum, tid);
	if (put(drum, w, monotonic_ns, site))
		w->depth++;
}

void ky_made_drum_end_span(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns)
{
	struct writer *w = writer_of(drum, tid);
	if (!w || w->depth == 0) {
		drum->lost++;
		return;
	}
	w->depth--;
	put(drum, w, monotonic_ns, ((const struct threads *)drum->threads)->end_site);
}

void ky_made_drum_instant(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns,
			  uint32_t site)
{
	put(drum, writer_of(drum, tid), monotonic_ns, site);
}

void ky_made_drum_gone(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns)
{
	struct threads *threads = drum->threads;
	struct writer **link = &threads->buckets[(uint32_t)tid % BUCKETS];
	while (*link && (*link)->tid != (uint32_t)tid)
		link = &(*link)->next;
	struct writer *w = *link;
	if (!w)
		return;
	while (w->depth > 0)
		ky_made_drum_end_span(drum, tid, monotonic_ns);
	if (owns_ring(w))
		ky_ring_release(&drum->drum, &w->ring);
	*link = w->next;
	free(w);
}
