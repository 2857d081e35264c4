/* SPDX-License-Identifier: MIT */
/*
 * drum_map.c: every mapping is bounded, and one that can be cut short has a guard. The writable
 * part is given by offsets that ky_drum_view_open() checked against the size of the mapping.
 */
#include "capture/drum_map.h"

#include "base/fail.h"
#include "process/drum_find.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * ---- the guard: a handler of SIGBUS, and the ranges that it answers for ----
 *
 *   ┌──────────────── mapping ────────────────┐
 *   │ file's pages            │ after its end │
 *   └─────────────────────────┴───────▲───────┘
 *                                     └ touched: zeros from this page on, in one mapping
 *
 * A file has one end, so everything after the page is gone too. Replacing it at once bounds the number of mappings, of which
 * a process may have some ten thousand only. SIGBUS elsewhere goes to the previous handler.
 *
 * The handler may run in any thread: the table never moves, and an entry's base is set last and cleared first.
 */

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
		signal(SIGBUS, SIG_DFL); /* the access repeats and ends the process */
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

static int guard_add(void *at, uint64_t bytes, bool writable)
{
	pthread_mutex_lock(&lock);
	int guard = installed ? 0 : install();
	const uint64_t pages = (bytes + page_bytes - 1) & ~(uint64_t)(page_bytes - 1);
	if (guard == 0)
		guard = take_guard((uintptr_t)at, pages, writable);
	pthread_mutex_unlock(&lock);
	return guard;
}

static void guard_remove(int guard)
{
	if (guard >= 0)
		atomic_store(&guards[guard].base, 0);
}

static bool guard_hit(int guard)
{
	return guard >= 0 && atomic_load(&guards[guard].hit);
}

/*
 * ---- shares ----
 *
 * Drums of one user take at most a quarter of what kymo has: of its address space, its descriptors, and of the guards. Root's
 * and kymo's own may take all. Of more users than the table has, the others are not counted.
 */

#define USERS_MAX 64u
#define USER_BYTES_MAX (UINT64_C(1) << 45)
#define USER_GUARDED_MAX (GUARDS_MAX / 4)

static struct share {
	uid_t owner;
	uint32_t count, guarded;
	uint64_t bytes;
} shares[USERS_MAX];

static struct share *share_of(uid_t owner)
{
	struct share *unused = NULL;
	for (uint32_t i = 0; i < USERS_MAX; i++) {
		if (shares[i].count && shares[i].owner == owner)
			return &shares[i];
		if (!shares[i].count)
			unused = &shares[i];
	}
	if (unused)
		*unused = (struct share){.owner = owner};
	return unused;
}

static uint32_t descriptors_share(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < UINT32_MAX
		       ? (uint32_t)limit.rlim_cur / 4
		       : UINT32_MAX / 4;
}

static bool take_share(struct ky_drum_map *map)
{
	pthread_mutex_lock(&lock);
	const bool counted = map->owner != 0 && map->owner != geteuid();
	struct share *const share = counted ? share_of(map->owner) : NULL;
	const bool fits = !share || (share->bytes + map->bytes <= USER_BYTES_MAX &&
				     share->guarded + !map->sealed <= USER_GUARDED_MAX &&
				     share->count < descriptors_share());
	if (share && fits) {
		share->bytes += map->bytes;
		share->guarded += !map->sealed;
		share->count++;
		map->shared = true;
	}
	pthread_mutex_unlock(&lock);
	return fits;
}

static void give_share_back(const struct ky_drum_map *map)
{
	pthread_mutex_lock(&lock);
	struct share *const share = map->shared ? share_of(map->owner) : NULL;
	if (share && share->count) {
		share->bytes -= map->bytes;
		share->guarded -= !map->sealed;
		share->count--;
	}
	pthread_mutex_unlock(&lock);
}

/* No drum is larger: this is sixteen times the address space that a program takes for one by default. */
#define DRUM_BYTES_MAX (UINT64_C(1) << 36)

static int check_file(struct ky_drum_map *map, const char *name, char *message)
{
	struct stat status;
	if (fstat(map->fd, &status) != 0)
		return ky_fail(message, -errno, "%s: %s", name, strerror(errno));
	if (!ky_drum_find_is_local(map->fd))
		return ky_fail(
			message, -ENOTSUP,
			"%s: on a FUSE file system or in huge pages, which could block or end kymo: "
			"set KYMO_DRUM_DIR to a local folder",
			name);
	if (!S_ISREG(status.st_mode) || status.st_size < KY_DRUM_HEADER_BYTES ||
	    (uint64_t)status.st_size > DRUM_BYTES_MAX)
		return ky_fail(message, -EINVAL,
			       "%s: %" PRId64
			       " bytes; expected a buffer: a memfd or a file of one page to 64 GiB",
			       name, (int64_t)status.st_size);
	const int seals = fcntl(map->fd, F_GET_SEALS);
	struct statfs system;
	map->sealed = seals >= 0 && (seals & F_SEAL_SHRINK);
	map->in_memory = fstatfs(map->fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
	map->device = status.st_dev;
	map->inode = status.st_ino;
	map->owner = status.st_uid;
	map->bytes = (uint64_t)status.st_size;
	return 0;
}

/* Map the first bytes, with a guard. Return NULL and set errno on failure. */
static void *map_part(struct ky_drum_map *map, int fd, uint64_t bytes, bool writable)
{
	const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *at = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (map->sealed)
		return at;
	const int guard = guard_add(at, bytes, writable);
	if (guard < 0) {
		munmap(at, bytes);
		errno = -guard;
		return NULL;
	}
	map->guards[writable] = guard;
	return at;
}

static int map_all(struct ky_drum_map *map, const char *name, char *message)
{
	/*
	 * A mapping of a writable descriptor could become writable, and counts as such: see ky_drum_map_is_written().
	 */
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", map->fd);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	map->base = map_part(map, fd >= 0 ? fd : map->fd, map->bytes, false);
	const int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	if (!map->base)
		return ky_fail(message, -errno,
			       "%s: cannot be mapped: %s; attach to fewer processes, or "
			       "raise the limits (ulimit -v, ulimit -n)",
			       name, strerror(errno));
	/* Acquire: the magic is written last. */
	const struct ky_drum_header *header = (const void *)map->base;
	if (__atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) == 0)
		return ky_fail(message, -EAGAIN,
			       "%s: the buffer is being created; try again in a moment", name);
	return 0;
}

int ky_drum_map_open(struct ky_drum_map *map, int fd, const char *name,
		     char message[KY_MESSAGE_BYTES])
{
	*map = (struct ky_drum_map){.guards = {-1, -1}};
	map->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (map->fd < 0)
		return ky_fail(message, -errno, "%s: %s; raise the limit (ulimit -n)", name,
			       strerror(errno));
	int error = check_file(map, name, message);
	if (error == 0 && !take_share(map))
		error = ky_fail(
			message, -EDQUOT,
			"%s: left out: those of user %u take a quarter of kymo's address space or descriptors "
			"already; attach to fewer processes",
			name, (unsigned)map->owner);
	if (error == 0)
		error = map_all(map, name, message);
	if (error)
		ky_drum_map_close(map);
	return error;
}

bool ky_drum_map_is_written(const struct ky_drum_map *map)
{
	return fcntl(map->fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EBUSY;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Return the end of what a recorder writes to, which is all within the mapping. */
static uint64_t end_of_parts(const struct ky_drum_map *map, const struct ky_drum_view *view)
{
	const struct ky_drum_header *h = &view->header;
	uint64_t end = later(KY_DRUM_HEADER_BYTES, h->heap_at + h->heap_bytes);
	end = later(end, h->categories_at +
				 h->categories_max * (uint64_t)sizeof(struct ky_drum_category));
	if (h->buckets_at <= map->bytes)
		end = later(end, h->buckets_at + h->buckets_count * (uint64_t)sizeof(uint32_t));
	return end < map->bytes ? end : map->bytes;
}

int ky_drum_map_write(struct ky_drum_map *map, const struct ky_drum_view *view, const char *name,
		      char message[KY_MESSAGE_BYTES])
{
	/* Opening it once more could give a right that its owner never had: kymo may be root. */
	map->writable_bytes = end_of_parts(map, view);
	map->writable = map_part(map, map->fd, map->writable_bytes, true);
	const int error = errno;
	if (map->writable)
		return 0;
	return ky_fail(message, -error,
		       "%s: its categories cannot be switched: %s; run as the user of the "
		       "process or as root, or start it with KYMO_CATEGORIES='*'",
		       name, strerror(error));
}

void ky_drum_map_close(struct ky_drum_map *map)
{
	give_share_back(map);
	guard_remove(map->guards[0]);
	guard_remove(map->guards[1]);
	if (map->base)
		munmap((void *)(uintptr_t)map->base, map->bytes);
	if (map->writable)
		munmap(map->writable, map->writable_bytes);
	if (map->fd >= 0)
		close(map->fd);
	*map = (struct ky_drum_map){.fd = -1, .guards = {-1, -1}};
}

bool ky_drum_map_has_memory(const struct ky_drum_map *map, uint64_t bytes)
{
	struct stat status;
	return !map->in_memory ||
	       (fstat(map->fd, &status) == 0 && bytes <= (uint64_t)status.st_blocks * 512);
}

bool ky_drum_map_is_cut(const struct ky_drum_map *map)
{
	return guard_hit(map->guards[0]) || guard_hit(map->guards[1]);
}
