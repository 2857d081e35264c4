/* SPDX-License-Identifier: MIT */
/*
 * drum.c: make the drum. The first event of the process gets here, perhaps in a signal handler: system calls are
 * unavoidable, but there is no allocation and no lock. Other threads wait while the drum is being made; a fault's handler
 * of the thread that makes it gets none, and the caller counts its event as lost. Other signals wait.
 *
 *   NONE ──▶ MAKING ──▶ READY ──fork──▶ STALE ──▶ MAKING ...
 *                  └──▶ FAILED
 *
 * Invariants: only the thread whose id is in maker changes the state from NONE, STALE or MAKING (a forked child resets a
 * maker that does not exist in it). drum is constant while the state is READY, but for a counter that is given up
 * (clock.c); a thread that loaded READY (acquire) sees
 * all of it, by the release store at the end of make() and remake().
 */
#include "core/drum.h"

#include "core/assert.h"
#include "core/clock.h"
#include "core/drum_make.h"
#include "core/slots.h"
#include "os/mail.h"
#include "os/os.h"
#include "os/ticks.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* Address space for rings that sessions ask for later; memory is used only when written. */
#define SPACE_BYTES_MAX (UINT64_C(4) << 30)
#define PAGE 4096u

struct ky_limits ky_limits = {
	.ring_bytes = 1u << 20,
	.total_bytes = 128u << 20,
	.heap_bytes = 4u << 20,
	.rings_max = 2048,
	.categories_max = 1024,
	.fd = -1,
};

enum { NONE, MAKING, READY, FAILED, STALE /* the parent's, in a forked child */ };
static _Atomic int state = NONE;
static _Atomic int32_t maker; /* thread id while MAKING */
static struct ky_drum drum;
static uint32_t *here;      /* 1; the kernel zeroes it in a forked child, not in vfork's */
static _Atomic int failure; /* a negative errno: why there is no drum */
/* Up to where the rings of a child that finishes an event of its parent's stay unused. */
static uint64_t kept_space;
static uint32_t kept_rings;
static _Atomic uint64_t early_losses; /* events while the drum was being made; a plain counter */

/* Plan the same places again, for a forked child: trace points hold addresses of some. */
static void plan_as(struct ky_drum_header *h, const struct ky_drum_header *parent)
{
	memset(h, 0, sizeof(*h));
	h->version = KY_DRUM_VERSION;
	h->header_bytes = KY_DRUM_HEADER_BYTES;
	h->drum_bytes = parent->drum_bytes;
	h->clock_at = parent->clock_at;
	h->categories_at = parent->categories_at;
	h->buckets_at = parent->buckets_at;
	h->rings_at = parent->rings_at;
	h->reads_at = parent->reads_at;
	h->heap_at = parent->heap_at;
	h->space_at = parent->space_at;
	h->clock_max = parent->clock_max;
	h->categories_max = parent->categories_max;
	h->buckets_count = parent->buckets_count;
	h->rings_max = parent->rings_max;
	h->heap_bytes = parent->heap_bytes;
	h->space_bytes = parent->space_bytes;
}

/*
 * Write memory to a file; pages that are zero stay holes. Copy word by word: the parent may be writing them. The thread
 * sanitizer must not see it: in the child it takes the parent's threads for its own.
 */
__attribute__((no_sanitize("thread"))) static int write_pages(int fd, const void *data,
							      uint64_t bytes, uint64_t at)
{
	const volatile uint64_t *from = data;
	uint64_t page[PAGE / 8];
	int error = 0;
	for (uint64_t i = 0; error == 0 && i < bytes; i += PAGE) {
		const uint64_t size = bytes - i < PAGE ? bytes - i : PAGE;
		uint64_t any = 0;
		for (uint64_t word = 0; word < size / 8; word++)
			any |= page[word] = *from++;
		if (any)
			error = ky_os_write(fd, page, size, at + i);
	}
	return error;
}

static int write_categories(int fd, const struct ky_drum *old, uint64_t at)
{
	struct ky_drum_category batch[PAGE / sizeof(struct ky_drum_category)];
	const uint32_t room = PAGE / sizeof(struct ky_drum_category);
	int error = 0;
	for (uint32_t i = 0; error == 0 && i < old->header->categories_max; i += room) {
		memset(batch, 0, sizeof(batch)); /* the child's recorders switch them on */
		uint32_t count = 0;
		for (; count < room && i + count < old->header->categories_max; count++)
			/* Pairs with the compare-and-swap in ky_heap_category(): the name's record is complete. */
			batch[count].name =
				__atomic_load_n(&old->categories[i + count].name, __ATOMIC_ACQUIRE);
		error = write_pages(fd, batch, count * sizeof(batch[0]), at + i * sizeof(batch[0]));
	}
	return error;
}

/*
 * Trace points of the child are registered with numbers of records in the parent's heap, so the child's begins as a copy.
 * The parent may be adding to it: copy what refers to records before the records, which are complete by then.
 */
static int carry_over(int fd, const struct ky_drum *old, struct ky_drum_header *planned)
{
	int error = write_pages(fd, old->buckets, planned->buckets_count * sizeof(uint32_t),
				planned->buckets_at);
	if (error == 0)
		error = write_categories(fd, old, planned->categories_at);
	/* Acquire: not before the loads of the buckets and categories above. */
	const uint64_t used = __atomic_load_n(&old->header->heap_used, __ATOMIC_ACQUIRE);
	planned->heap_used = used < planned->heap_bytes ? used : planned->heap_bytes;
	planned->names_used = __atomic_load_n(&old->header->names_used, __ATOMIC_RELAXED);
	if (error == 0)
		error = write_pages(fd, old->base + planned->heap_at, planned->heap_used,
				    planned->heap_at);
	return error;
}

/* Fill a zeroed drum of the planned size. Return 0 or -ENOSPC. */
static int fill(struct ky_drum *d, const struct ky_drum_header *planned)
{
	if (d->on_disk && !ky_os_populate(d->base, planned->heap_at)) {
		/* The addresses stay readable. */
		ky_os_private(d->bytes, d->base);
		ky_os_close(d->fd);
		return -ENOSPC;
	}
	char comm[16];
	ky_os_comm(comm);
	const int source = ky_cpu_tick_source();
	const struct ky_drum_maker by = {
		.pid = (uint32_t)ky_os_pid(),
		.tick_source = (uint32_t)(source == KY_TICKS_NONE ? KY_TICKS_MONOTONIC : source),
		.image = ky_os_image(),
		.ring_bytes = ky_limits.ring_bytes,
		.total_bytes = ky_limits.total_bytes,
		.process_name = comm,
	};
	ky_drum_make_fill(d, planned, &by, ky_limits.categories);
	const struct ky_drum_header *h = d->header;
	ky_os_dump(d->base + h->space_at + h->budget_bytes, h->space_bytes - h->budget_bytes,
		   false);
	ky_drum_make_finish(d);
	return 0;
}

static int map_new(struct ky_drum *d, int fd, uint64_t bytes, void *fixed)
{
	d->base = ky_os_map(fd, bytes, fixed);
	if (!d->base) {
		const int error = errno;
		ky_os_close(fd);
		return -error;
	}
	d->fd = fd;
	d->identity = ky_os_identity(fd);
	d->on_disk = !ky_os_sealed(fd);
	d->bytes = bytes;
	return 0;
}

static int new_file(uint64_t bytes)
{
	return ky_limits.dir ? ky_os_file(ky_limits.dir, (uint32_t)ky_os_pid(), bytes)
			     : ky_os_memfd(KY_DRUM_NAME, bytes);
}

/* Make a drum in the place of the parent's. */
static int make_for_child(struct ky_drum *d, const struct ky_drum *old)
{
	struct ky_drum_header planned;
	plan_as(&planned, old->header);
	planned.space_used = kept_space;
	planned.rings_used = kept_rings;
	const int fd = new_file(planned.drum_bytes);
	if (fd < 0)
		return fd;
	int error = planned.drum_bytes == old->bytes ? carry_over(fd, old, &planned) : -EINVAL;
	if (error) {
		ky_os_close(fd);
		return error;
	}
	/*
	 * Make it elsewhere and move it to the old one's place when it is complete: other threads of the child test their
	 * categories there all the time, and must not find them off.
	 */
	error = map_new(d, fd, old->bytes, NULL);
	if (error == 0)
		error = fill(d, &planned);
	uint8_t *const elsewhere = d->base;
	if (error == 0 && !ky_os_map(fd, old->bytes, old->base)) {
		ky_os_close(fd);
		error = -ENOMEM;
	}
	if (elsewhere)
		ky_os_unmap(elsewhere, old->bytes);
	d->base = old->base;
	KY_ASSERT(error != 0 || d->bytes == old->bytes);
	if (error == 0)
		ky_drum_make_parts(d);
	return error;
}

/* A file in KYMO_DRUM_DIR has no more space than the limit; a memfd has as much as can be mapped. */
static int make_new(struct ky_drum *d)
{
	struct ky_drum_header planned;
	const uint64_t least = ky_drum_make_page_up(ky_limits.total_bytes);
	uint64_t space = ky_limits.dir || least > SPACE_BYTES_MAX ? least : SPACE_BYTES_MAX;
	int error = -ENOMEM;
	for (;; space /= 2) {
		ky_drum_make_plan(&planned, &ky_limits, ky_drum_make_page_up(space));
		const int fd = new_file(planned.drum_bytes);
		error = fd < 0 ? fd : map_new(d, fd, planned.drum_bytes, NULL);
		if (error == 0 || space / 2 < KY_RING_BYTES_MIN)
			break;
	}
	return error == 0 ? fill(d, &planned) : error;
}

/* Use KYMO_DRUM_FD, a descriptor that the parent made; its size decides. Once, not in forked children. */
static int take_given(struct ky_drum *d)
{
	const int fd = ky_limits.fd;
	ky_limits.fd = -1;
	/* The environment reaches every descendant, where the number may be of any file. */
	const int64_t bytes = ky_os_is_drum(fd) ? ky_os_size(fd) : -EBADF;
	struct ky_drum_header planned;
	ky_drum_make_plan(&planned, &ky_limits, 0);
	if (bytes < (int64_t)(planned.drum_bytes + KY_RING_BYTES_MIN) || bytes % PAGE != 0)
		return -EINVAL;
	ky_drum_make_plan(&planned, &ky_limits, (uint64_t)bytes - planned.drum_bytes);
	d->base = ky_os_map(fd, (uint64_t)bytes, NULL);
	if (!d->base)
		return -errno;
	/* In use already, where not every byte is 0: leave it alone. */
	if (d->base[0] != 0 || memcmp(d->base, d->base + 1, KY_DRUM_HEADER_BYTES - 1) != 0) {
		ky_os_unmap(d->base, (uint64_t)bytes);
		d->base = NULL;
		return -EEXIST;
	}
	d->fd = fd;
	d->identity = ky_os_identity(fd);
	d->on_disk = !ky_os_sealed(fd);
	d->bytes = (uint64_t)bytes;
	return fill(d, &planned);
}

/* Use the drum of another copy of the library, if it is this process's and of this version. */
static int adopt(int fd, void *context)
{
	struct ky_drum *d = context;
	const int64_t bytes = ky_os_size(fd);
	if (fd == d->fd || bytes < KY_DRUM_HEADER_BYTES)
		return fd == d->fd; /* ours is the first: stop looking */
	/* One mapping for all copies: a library that is loaded a thousand times has no more of them. */
	uint8_t *const there = ky_os_mapping(fd, (uint64_t)bytes);
	uint8_t *base = there ? there : ky_os_map(fd, (uint64_t)bytes, NULL);
	if (!base)
		return 0;
	const struct ky_drum_header *h = (const struct ky_drum_header *)(void *)base;
	/* Pairs with the release store of magic in ky_drum_make_finish(). */
	if (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) != KY_DRUM_MAGIC ||
	    h->version != KY_DRUM_VERSION || h->pid != (uint32_t)ky_os_pid() ||
	    h->image != ky_os_image() || h->drum_bytes != (uint64_t)bytes) {
		if (!there)
			ky_os_unmap(base, (uint64_t)bytes);
		return 0;
	}
	if (d->base) { /* made at the same time: no thread has seen ours yet */
		ky_os_unmap(d->base, d->bytes);
		ky_os_close(d->fd);
	}
	d->base = base;
	d->bytes = (uint64_t)bytes;
	d->fd = fd;
	d->identity = ky_os_identity(fd);
	d->on_disk = !ky_os_sealed(fd);
	d->adopted = true;
	d->borrowed = there != NULL;
	ky_drum_make_parts(d);
	return 1;
}

/* Move the losses so far into the drum; each of them once. */
static void count_early(void)
{
	if (ky_drum_peek())
		__atomic_fetch_add(&drum.header->lost_ringless, atomic_exchange(&early_losses, 0),
				   __ATOMIC_RELAXED);
}

void ky_drum_lose(void)
{
	atomic_fetch_add(&early_losses, 1);
	count_early();
}

bool ky_drum_failed(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == FAILED;
}

int ky_drum_error(void)
{
	return atomic_load(&failure);
}

/* Make the page that shows a fork. It is 1, "not forked", before other threads can find it. */
static void note_process(void)
{
	const bool known = __atomic_load_n(&here, __ATOMIC_RELAXED) != NULL;
	uint32_t *page = known ? NULL : ky_os_private(PAGE, NULL);
	if (page) {
		*page = 1;
		/* Pairs with the acquire loads in forked() and notice_fork(). */
		__atomic_store_n(&here, page, __ATOMIC_RELEASE);
	}
}

static bool forked(void)
{
	/* Pairs with the release store in note_process(). */
	const uint32_t *page = __atomic_load_n(&here, __ATOMIC_ACQUIRE);
	return page && __atomic_load_n(page, __ATOMIC_RELAXED) == 0;
}

/* Hand the drum over before any thread can record: so no event is in a drum that was not, should the process end. */
static void hand_over(void)
{
	if (ky_limits.mailbox && !drum.adopted)
		ky_mail_post(ky_limits.mailbox, drum.fd);
}

static void make(void)
{
	KY_ASSERT(atomic_load(&maker) == ky_os_tid() && atomic_load(&state) == MAKING);
	memset(&drum, 0, sizeof(drum));
	drum.fd = -1;
	note_process();
	int error = 0;
	if (!ky_os_each_drum(adopt, &drum)) {
		if (ky_limits.fd < 0 || take_given(&drum) != 0)
			error = make_new(&drum);
		if (error == 0)
			ky_os_each_drum(adopt,
					&drum); /* two copies at once: the lower descriptor wins */
	}
	if (error == 0)
		hand_over();
	atomic_store(&failure, error);
	atomic_store_explicit(&state, error == 0 ? READY : FAILED, memory_order_release);
	count_early();
}

/* Wait for the thread that makes the drum, some 50 microseconds. A signal handler of that thread must not. */
static struct ky_drum *await(void)
{
	if (atomic_load(&maker) == ky_os_tid())
		return NULL;
	for (int i = 0; i < 1 << 20; i++) {
		const int now = atomic_load_explicit(&state, memory_order_acquire);
		if (now == READY || now == FAILED) /* NONE: a thread has just begun */
			return ky_drum_peek();
		if (i % 1024 == 1023)
			ky_os_yield(); /* it may be waiting for this CPU */
		ky_cpu_relax();
	}
	return NULL;
}

struct ky_drum *ky_drum_peek(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == READY ? &drum : NULL;
}

static void remake(void);

/* Any thread of a child may call this any number of times: remake() leaves a drum of the child's own alone. */
static void notice_fork(void)
{
	uint32_t *const page = __atomic_load_n(&here, __ATOMIC_ACQUIRE);
	int was = READY;
	atomic_compare_exchange_strong(&state, &was, STALE);
	if (was == MAKING) { /* by a thread that is not in the child */
		atomic_store(&maker, 0);
		atomic_store(&state, NONE);
	}
	ky_slots_forget();
	/* After the state: a thread that sees 1 here (relaxed, in forked()) loads the state with acquire. */
	if (page)
		__atomic_store_n(page, 1, __ATOMIC_RELEASE);
}

/*
 * Make the drum, unless another thread does: then return false. Handlers wait: one that jumps away would leave the drum
 * half made for ever.
 */
static bool make_once(void)
{
	const uint64_t mask = ky_os_signals_hold();
	int32_t nobody = 0;
	const bool mine = atomic_compare_exchange_strong(&maker, &nobody, ky_os_tid());
	const int now = atomic_load(&state);
	if (mine && (now == NONE || now == STALE)) {
		atomic_store(&state, MAKING);
		now == NONE ? make() : remake();
	}
	if (mine)
		atomic_store(&maker, 0);
	ky_os_signals_restore(mask);
	return mine;
}

struct ky_drum *ky_drum_get(void)
{
	if (forked())
		notice_fork();
	/* Pairs with the release stores of the state in make() and remake(). */
	int now = atomic_load_explicit(&state, memory_order_acquire);
	if (now == READY)
		return &drum;
	if (now == NONE || now == STALE) {
		if (!make_once())
			return await();
		now = atomic_load_explicit(&state, memory_order_acquire);
	}
	return now == MAKING ? await() : ky_drum_peek();
}

/* In a child: map the drum that another copy of the library has made already in the old one's place. */
static int adopt_in_child(int fd, void *context)
{
	const struct ky_drum_header *old = drum.header;
	struct ky_drum found = {.fd = -1};
	if (!adopt(fd, &found))
		return 0;
	const uint64_t bytes = found.bytes;
	if (!found.borrowed)
		ky_os_unmap(found.base, bytes);
	if (bytes != drum.bytes || !ky_os_map(fd, bytes, (void *)(uintptr_t)old))
		return 0;
	drum.fd = fd;
	drum.adopted = true;
	*(bool *)context = true;
	return 1;
}

/*
 * Replace the parent's drum in a child. The copy that made the parent's closes its descriptor; for the others that number
 * may be another file's by now.
 */
static void remake(void)
{
	KY_ASSERT(atomic_load(&maker) == ky_os_tid() && atomic_load(&state) == MAKING);
	bool made = drum.header->pid == (uint32_t)ky_os_pid();
	if (!made && !drum.adopted && ky_os_identity(drum.fd) == drum.identity)
		ky_os_close(drum.fd);
	if (!made)
		ky_os_each_drum(adopt_in_child, &made);
	struct ky_drum fresh = {.fd = -1};
	const int error = made ? 0 : make_for_child(&fresh, &drum);
	if (!made && error == 0) {
		drum = fresh;
		made = true;
		hand_over();
	}
	atomic_store(&failure, error);
	if (!made) /* the addresses stay readable: all zero is all off */
		ky_os_private(drum.bytes, drum.base);
	atomic_store_explicit(&state, made ? READY : FAILED, memory_order_release);
	count_early();
}

void ky_drum_keep(const struct ky_drum_ring *ring)
{
	if (!ky_drum_peek() || ky_os_identity(drum.fd) != drum.identity)
		return;
	const uint64_t space = ring->at + ring->bytes - drum.header->space_at;
	const uint32_t rings = (uint32_t)(ring - drum.rings) + 1;
	kept_space = space > kept_space ? space : kept_space;
	kept_rings = rings > kept_rings ? rings : kept_rings;
	/* Rings and their entries. What the event adds to the heap stays common, as the child's copy of it will need it. */
	const struct ky_drum_header *h = drum.header;
	ky_os_map_privately(drum.fd, h->rings_at, h->heap_at - h->rings_at, drum.base);
	ky_os_map_privately(drum.fd, h->space_at, drum.bytes - h->space_at, drum.base);
}

void ky_drum_after_fork(void)
{
	notice_fork();
}

void ky_drum_keep_categories(void)
{
	if (atomic_load(&state) != STALE)
		return;
	ky_os_detach(drum.categories, drum.header->buckets_at - drum.header->categories_at);
}

uint64_t ky_drum_ticks(const struct ky_drum *d)
{
	/* Pairs with the release store in give_up(), clock.c. */
	if (__atomic_load_n(&d->ticks_inline, __ATOMIC_ACQUIRE))
		return ky_cpu_ticks();
	const uint64_t now = ky_os_monotonic();
	if (!d->made_rate)
		return now;
	const uint64_t past = now > d->made_ns ? now - d->made_ns : 0;
	return d->made_ticks + (uint64_t)((ky_u128)past * d->made_rate >> 20);
}

static void raise_to(uint64_t *field, uint64_t value)
{
	uint64_t now = __atomic_load_n(field, __ATOMIC_RELAXED);
	while (now < value && !__atomic_compare_exchange_n(field, &now, value, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void ky_drum_grow(struct ky_drum *d, uint64_t ring_bytes, uint64_t total_bytes)
{
	const uint64_t space = d->header->space_bytes;
	KY_ASSERT(d->header->budget_bytes <= space);
	if (total_bytes < ring_bytes)
		total_bytes = ring_bytes;
	raise_to(&d->header->budget_bytes,
		 total_bytes < space ? ky_drum_make_page_up(total_bytes) : space);
	raise_to(&d->header->ring_bytes, ky_ring_bytes_asked(ring_bytes, space));
	/* Pairs with the acquire in take_ring(), ring.c. */
	__atomic_fetch_add(&d->header->room_changes, 1, __ATOMIC_RELEASE);
	ky_os_dump(d->base + d->header->space_at, d->header->budget_bytes, true);
}
