/* SPDX-License-Identifier: MIT */
/*
 * drum_guard.c: the handler of SIGBUS, and the ranges that it answers for.
 *
 *   ┌──────────────── mapping ────────────────┐
 *   │ file's pages            │ behind its end │
 *   └─────────────────────────┴───────▲────────┘
 *                                     └ touched: from this page on zeros, in one mapping
 *
 * A file has one end, so all behind the page is gone too. Replacing it at once bounds the number of
 * mappings, of which a process may have some ten thousand only. SIGBUS elsewhere goes to whoever
 * had the signal before.
 *
 * The handler may run in any thread: the table never moves, and an entry's base is set last and
 * cleared first.
 */
#include "capture/drum_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARDS_MAX 1024

struct guard {
	_Atomic uintptr_t base; /* 0: free */
	_Atomic uint64_t bytes;
	_Atomic bool writable;
	_Atomic bool hit;
};

static struct guard guards[GUARDS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool installed;
static uintptr_t page_bytes;
static struct sigaction before;

static struct guard *guard_of(uintptr_t address)
{
	for (int i = 0; i < GUARDS_MAX; i++) {
		const uintptr_t base = atomic_load(&guards[i].base);
		if (base && address >= base && address - base < atomic_load(&guards[i].bytes))
			return &guards[i];
	}
	return NULL;
}

static bool replace(struct guard *guard, uintptr_t address)
{
	const uintptr_t page = address & ~(page_bytes - 1);
	const uintptr_t end = atomic_load(&guard->base) + atomic_load(&guard->bytes);
	const int protection = atomic_load(&guard->writable) ? PROT_READ | PROT_WRITE : PROT_READ;
	atomic_store(&guard->hit, true);
	return mmap((void *)page, end - page, protection,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void on_bus_error(int number, siginfo_t *info, void *machine)
{
	const int saved_errno = errno;
	struct guard *guard = info->si_code > 0 ? guard_of((uintptr_t)info->si_addr) : NULL;
	const bool done = guard && replace(guard, (uintptr_t)info->si_addr);
	errno = saved_errno;
	if (done)
		return;
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, machine);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else {
		signal(SIGBUS, SIG_DFL); /* the access is repeated, and ends the process */
		if (info->si_code <= 0)
			raise(SIGBUS);
	}
}

static int install(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
	action.sa_sigaction = on_bus_error;
	sigemptyset(&action.sa_mask);
	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (sigaction(SIGBUS, &action, &before) != 0)
		return -errno;
	installed = true;
	return 0;
}

static int take_guard(uintptr_t base, uint64_t bytes, bool writable)
{
	for (int i = 0; i < GUARDS_MAX; i++) {
		if (atomic_load(&guards[i].base))
			continue;
		atomic_store(&guards[i].bytes, bytes);
		atomic_store(&guards[i].writable, writable);
		atomic_store(&guards[i].hit, false);
		atomic_store(&guards[i].base, base);
		return i;
	}
	return -EMFILE;
}

int ky_drum_guard_add(void *at, uint64_t bytes, bool writable)
{
	pthread_mutex_lock(&lock);
	int guard = installed ? 0 : install();
	const uint64_t pages = (bytes + page_bytes - 1) & ~(uint64_t)(page_bytes - 1);
	if (guard == 0)
		guard = take_guard((uintptr_t)at, pages, writable);
	pthread_mutex_unlock(&lock);
	return guard;
}

void ky_drum_guard_remove(int guard)
{
	if (guard >= 0)
		atomic_store(&guards[guard].base, 0);
}

bool ky_drum_guard_hit(int guard)
{
	return guard >= 0 && atomic_load(&guards[guard].hit);
}
