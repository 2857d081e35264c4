/* SPDX-License-Identifier: MIT */
/*
 * agent_memory.c: maps what the engine needs in a process, or finds it and takes it over: see patch_parts.h.
 *
 * Each step writes home, so that the next kymo goes on from there if this one is killed: version is written last.
 * Large memory is reserved and not used until it is touched.
 */
#include "functrace/patch_parts.h"

#include "base/clock.h"
#include "core/layout.h"
#include "functrace/agent_abi.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <kymo/kymo.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
/* Room for libraries that are loaded later, up to a JVM: reserved addresses cost nothing. */
#define FUNCTIONS_SPARE (1u << 17)
#define SITES_SPARE (1u << 16)
#define SCRATCH_AT 2048u /* in the first state */
#define STATES_MIN 32u
/* What grows lies so far below the addresses that the kernel gives to others, and as far apart. */
#define AWAY_BYTES (UINT64_C(1) << 36)
#define AWAY_TRIES 4u
enum { AWAY_STATES = 1, AWAY_DRUM = AWAY_STATES + AWAY_TRIES };
/* Of the drum, mapped at first: names of threads, and the ring of the first thread. */
#define HEAP_FIRST_BYTES (UINT64_C(1) << 20)
#define RINGS_FIRST_BYTES (UINT64_C(1) << 20)
/* Counts of functions that come later; those beyond share the last one. */
#define COUNTS_SPARE (1u << 14)
#define DRUM_FD_WANTED 500u /* programs count on low numbers */
#define DRUM_FD_LEAST 30u
/* A forked child counts the generation up. */
#define GENERATIONS_MADE (UINT64_C(1) << 20)
#define GENERATIONS_FORKED (UINT64_C(1) << 20)
#define ADDRESS_END (UINT64_C(1) << 47)
#define STUBS_BYTES_MAX ((uint64_t)KY_AGENT_FUNCTIONS_MAX * 2 * KY_STUB_MAX)

_Static_assert(sizeof(struct ky_agent_home) <= KY_PATCH_KEEP_AT, "layout");
_Static_assert(sizeof(struct ky_patch_keep) <= KY_PATCH_ROOM_AT - KY_PATCH_KEEP_AT, "layout");

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + KY_PATCH_PAGE - 1) & ~(KY_PATCH_PAGE - 1);
}

static uint64_t home_bytes(void)
{
	return KY_PATCH_CODE_AT + page_up(ky_agent_code_bytes);
}

static int64_t call(struct ky_patch *patch, long number, uint64_t a, uint64_t b, uint64_t c,
		    uint64_t d, uint64_t e, uint64_t f)
{
	return ky_remote_call(&patch->remote, number, (const uint64_t[6]){a, b, c, d, e, f});
}

/*
 * Map a file or, with fd -1, memory. In a program that locks all memory that it maps (mlockall), it is mapped without
 * access first: then the kernel has nothing to fill when it locks it. Return its address or -errno.
 */
static int64_t map_file_from(struct ky_patch *patch, uint64_t at, uint64_t bytes, int protection,
			     int flags, int64_t fd, uint64_t from)
{
	const bool unlocks = patch->home.unlocks;
	const int64_t result =
		call(patch, SYS_mmap, at, bytes, (uint64_t)(unlocks ? PROT_NONE : protection),
		     (uint64_t)flags, (uint64_t)fd, from);
	if ((result < 0 && result > -4096) || !unlocks)
		return result;
	call(patch, SYS_munlock, (uint64_t)result, bytes, 0, 0, 0, 0);
	const int64_t error =
		call(patch, SYS_mprotect, (uint64_t)result, bytes, (uint64_t)protection, 0, 0, 0);
	return error ? error : result;
}

static int64_t map_file(struct ky_patch *patch, uint64_t at, uint64_t bytes, int protection,
			int flags, int64_t fd)
{
	return map_file_from(patch, at, bytes, protection, flags, fd, 0);
}

/* Map anonymous memory; 0: failed. */
static uint64_t map(struct ky_patch *patch, uint64_t at, uint64_t bytes, int protection, int flags)
{
	const int64_t result =
		map_file(patch, at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1);
	return result < 0 && result > -4096 ? 0 : (uint64_t)result;
}

uint64_t ky_agent_memory_map(struct ky_patch *patch, uint64_t bytes)
{
	return map(patch, 0, page_up(bytes), PROT_READ | PROT_WRITE, MAP_NORESERVE);
}

/* ---- finding ---- */

uint64_t ky_agent_memory_find(pid_t pid)
{
	static const char name[] = "/memfd:" KY_AGENT_NAME " ";
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	uint64_t found = 0;
	(void)ky_proc_maps_open(&maps, pid);
	while (!found && ky_proc_maps_next(&maps, &mapping))
		if (!mapping.offset && strncmp(mapping.path, name, sizeof(name) - 1) == 0)
			found = mapping.start;
	ky_proc_maps_close(&maps);
	return found;
}

/* Report whether bytes at an address can be a program's memory; nothing there is another matter. */
static bool fits(uint64_t address, uint64_t bytes)
{
	return address <= ADDRESS_END && bytes <= ADDRESS_END - address;
}

static bool are_sane_regions(const struct ky_patch_keep *keep)
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < keep->regions_count; i++) {
		const struct ky_patch_region *region = &keep->regions[i];
		if (!fits(region->at, region->bytes) || region->used > region->bytes)
			return false;
		all += region->bytes;
	}
	return all <= STUBS_BYTES_MAX && keep->guards_count <= KY_PATCH_GUARDS_MAX;
}

/*
 * Report whether what a home says can be true. Any process can have made it, or changed it: its numbers decide how much
 * kymo reads and where, so none may lead out of the process's memory or to endless work.
 */
static bool is_sane(const struct ky_agent_home *home, const struct ky_patch_keep *keep)
{
	return home->magic == KY_AGENT_MAGIC && keep->magic == KY_PATCH_KEEP_MAGIC &&
	       keep->regions_count <= KY_PATCH_REGIONS_MAX && are_sane_regions(keep) &&
	       home->states_max <= KY_AGENT_STATES_MAX && home->states_max && home->counts &&
	       home->counts <= KY_AGENT_FUNCTIONS_MAX &&
	       home->state_bytes >= KY_AGENT_STATE_BYTES + home->counts * sizeof(uint32_t) &&
	       home->state_bytes % KY_PATCH_PAGE == 0 &&
	       home->state_bytes <= KY_AGENT_STATE_BYTES * 2 + KY_AGENT_FUNCTIONS_MAX * 4 &&
	       fits(home->states, home->states_max * home->state_bytes) &&
	       home->patches_max <= KY_AGENT_FUNCTIONS_MAX &&
	       home->patches_count <= home->patches_max &&
	       fits(home->patches, home->patches_max * sizeof(struct ky_agent_patch)) &&
	       fits(home->code_at, home->code_bytes) && fits(home->drum, home->drum_bytes) &&
	       home->drum_heap <= home->drum_rings && home->drum_rings <= home->drum_end &&
	       home->drum_end <= home->drum_bytes &&
	       fits(home->directory, KY_AGENT_DIRECTORY_BYTES) &&
	       home->ranges_count <= KY_AGENT_RANGES_MAX &&
	       home->known_mask < KY_AGENT_FUNCTIONS_MAX * 4 &&
	       fits(home->known, (home->known_mask + 1) * sizeof(struct ky_agent_known));
}

int ky_agent_memory_read(struct ky_patch *patch)
{
	patch->home_at = ky_agent_memory_find(patch->remote.pid);
	if (!patch->home_at)
		return -ENOENT;
	int error =
		ky_remote_read(&patch->remote, patch->home_at, &patch->home, sizeof(patch->home));
	if (!error)
		error = ky_remote_read(&patch->remote, patch->home_at + KY_PATCH_KEEP_AT,
				       &patch->keep, sizeof(patch->keep));
	if (error)
		return error;
	/* It was only begun. */
	if (!patch->home.version) {
		if (patch->home.magic != KY_AGENT_MAGIC)
			patch->home = (struct ky_agent_home){0};
		if (patch->keep.magic != KY_PATCH_KEEP_MAGIC)
			patch->keep = (struct ky_patch_keep){.drum_fd = -1};
		return 0;
	}
	return patch->home.version == KY_AGENT_VERSION && is_sane(&patch->home, &patch->keep)
		       ? 0
		       : -EPROTO;
}

uint64_t ky_patch_started(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 ? stat.start_ticks : 0;
}

bool ky_agent_memory_owned(const struct ky_agent_home *home)
{
	return home->owner_pid && home->owner_started &&
	       ky_patch_started((pid_t)home->owner_pid) == home->owner_started;
}

/*
 * A number that other users' processes cannot know; each generation is counted from it. So a home with a copy of this
 * kymo's pid and start time, which everybody can read, is not taken for one that this kymo made.
 */
static uint64_t secret(void)
{
	static uint64_t number;
	while (!number && getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		if (errno != EINTR)
			number = (uint64_t)ky_clock_monotonic() * UINT64_C(0x9e3779b97f4a7c15);
	return number;
}

static uint64_t next_generation(void)
{
	static uint32_t made;
	const uint64_t generation = secret() + made++ % GENERATIONS_MADE * GENERATIONS_FORKED;
	/* 0 is a state that nobody has. */
	return generation ? generation : 1;
}

bool ky_agent_memory_is_mine(const struct ky_agent_home *home)
{
	return home->owner_pid == (uint32_t)getpid() &&
	       home->owner_started == ky_patch_started(getpid()) &&
	       home->generation - secret() < GENERATIONS_MADE * GENERATIONS_FORKED;
}

/* ---- making ---- */

/* Take over the sizes that a home says, if they can be true. */
static void take_sizes(struct ky_agent_home *home, const struct ky_agent_home *now)
{
	if (now->states == home->states && now->states_max >= home->states_max &&
	    now->states_max <= KY_AGENT_STATES_MAX)
		home->states_max = now->states_max;
	if (now->drum != home->drum || now->drum_bytes != home->drum_bytes)
		return;
	if (now->drum_heap >= home->drum_heap && now->drum_heap <= home->drum_rings)
		home->drum_heap = now->drum_heap;
	if (now->drum_end >= home->drum_end && now->drum_end <= home->drum_bytes)
		home->drum_end = now->drum_end;
}

void ky_agent_memory_sizes(struct ky_patch *patch)
{
	struct ky_agent_home now;
	if (patch->home.version &&
	    !ky_remote_read(&patch->remote, patch->home_at, &now, sizeof(now)))
		take_sizes(&patch->home, &now);
}

/* Read again what the agent writes: it is not ours to overwrite. */
static void refresh(struct ky_patch *patch)
{
	struct ky_agent_home now;
	if (!patch->home.on || ky_remote_read(&patch->remote, patch->home_at, &now, sizeof(now)))
		return;
	if (now.pause != KY_LOADER_GAVE_UP)
		patch->home.on = now.on;
	take_sizes(&patch->home, &now);
	patch->home.states_used = now.states_used;
	patch->home.crowded = now.crowded;
	patch->home.growing = now.growing;
	patch->home.pause = now.pause;
	patch->home.sealed = now.sealed;
	patch->home.counter = now.counter;
}

int ky_agent_memory_write(struct ky_patch *patch)
{
	refresh(patch);
	const int error =
		ky_remote_write(&patch->remote, patch->home_at, &patch->home, sizeof(patch->home));
	return error ? error
		     : ky_remote_write(&patch->remote, patch->home_at + KY_PATCH_KEEP_AT,
				       &patch->keep, sizeof(patch->keep));
}

/* Make a memfd in the process, and write its name to an address there. */
static int64_t make_memfd(struct ky_patch *patch, uint64_t name_at, const char *name,
			  unsigned flags)
{
	const int error = ky_remote_write(&patch->remote, name_at, name, strlen(name) + 1);
	return error ? error : call(patch, SYS_memfd_create, name_at, flags, 0, 0, 0, 0);
}

/* Map home. The name of its memfd is written behind the code of a temporary gadget. */
static int64_t map_home(struct ky_patch *patch, uint64_t gadget)
{
	const uint64_t bytes = home_bytes();
	const int64_t fd = make_memfd(patch, gadget + 1024, KY_AGENT_NAME, MFD_CLOEXEC);
	if (fd < 0)
		return fd;
	int64_t result = call(patch, SYS_ftruncate, (uint64_t)fd, bytes, 0, 0, 0, 0);
	if (result == 0)
		result = call(patch, SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			      (uint64_t)fd, 0);
	call(patch, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return result;
}

/* Make home's code executable and use its gadget. */
static int64_t open_home(struct ky_patch *patch)
{
	const int64_t result =
		call(patch, SYS_mprotect, patch->home_at + KY_PATCH_GADGET_AT,
		     home_bytes() - KY_PATCH_GADGET_AT, PROT_READ | PROT_EXEC, 0, 0, 0);
	return result ? result
		      : ky_remote_set_gadget(&patch->remote, patch->home_at + KY_PATCH_GADGET_AT);
}

/* Note whether the program locks all memory that it maps: then home is locked now. */
static void note_locks(struct ky_patch *patch)
{
	patch->home.unlocks = ky_agent_memory_locked(patch);
	if (patch->home.unlocks)
		call(patch, SYS_munlock, patch->home_at, home_bytes(), 0, 0, 0, 0);
}

static int64_t begin_home(struct ky_patch *patch)
{
	const uint64_t gadget = map(patch, 0, KY_PATCH_PAGE, PROT_READ | PROT_EXEC, 0);
	if (!gadget)
		return -ENOMEM;
	int64_t result = ky_remote_set_gadget(&patch->remote, gadget);
	if (result == 0 && !patch->home_at) {
		result = map_home(patch, gadget);
		patch->home_at = result > 0 ? (uint64_t)result : 0;
		patch->keep.drum_fd = -1;
	}
	if (patch->home_at)
		result = open_home(patch);
	if (result == 0 && patch->home_at)
		note_locks(patch);
	if (result == 0)
		call(patch, SYS_munmap, gadget, KY_PATCH_PAGE, 0, 0, 0, 0);
	patch->home.magic = KY_AGENT_MAGIC;
	patch->keep.magic = KY_PATCH_KEEP_MAGIC;
	patch->home.home_bytes = home_bytes();
	return result ? result : ky_agent_memory_write(patch);
}

static int write_agent(struct ky_patch *patch)
{
	uint8_t *code = malloc(ky_agent_code_bytes);
	if (!code)
		return -ENOMEM;
	memcpy(code, ky_agent_code, ky_agent_code_bytes);
	memcpy(code + offsetof(struct ky_agent_table, home), &patch->home_at,
	       sizeof(patch->home_at));
	patch->home.code_at = patch->home_at + KY_PATCH_CODE_AT;
	patch->home.code_bytes = ky_agent_code_bytes;
	const int error =
		ky_remote_write(&patch->remote, patch->home.code_at, code, ky_agent_code_bytes);
	free(code);
	return error;
}

/* Report whether the agent that is there is the one that we would write. */
static bool same_agent(const struct ky_patch *patch)
{
	const struct ky_agent_home *home = &patch->home;
	bool same = false;
	uint8_t *code = malloc(ky_agent_code_bytes);
	if (code && home->code_bytes == ky_agent_code_bytes &&
	    !ky_remote_read(&patch->remote, home->code_at, code, ky_agent_code_bytes)) {
		memset(code, 0, sizeof(uint64_t));
		same = memcmp(code + sizeof(uint64_t), ky_agent_code + sizeof(uint64_t),
			      ky_agent_code_bytes - sizeof(uint64_t)) == 0;
	}
	free(code);
	return same;
}

int ky_agent_memory_wipe(struct ky_patch *patch, uint64_t states, uint64_t bytes)
{
	call(patch, SYS_madvise, states, bytes, MADV_DONTDUMP, 0, 0, 0);
	return (int)call(patch, SYS_madvise, states, bytes, MADV_WIPEONFORK, 0, 0, 0);
}

/* Return an address that the kernel would give to others now; 0: none. */
static uint64_t usual_address(struct ky_patch *patch)
{
	const uint64_t at = map(patch, 0, KY_PATCH_PAGE, PROT_NONE, MAP_NORESERVE);
	if (at)
		call(patch, SYS_munmap, at, KY_PATCH_PAGE, 0, 0, 0, 0);
	return at;
}

/*
 * Map memory with free addresses behind it, for more: far below those that the kernel gives to others, which the kernel
 * uses when all others are taken. Return its address; 0: there are none.
 */
static uint64_t map_away(struct ky_patch *patch, unsigned first, uint64_t bytes, int flags,
			 int64_t fd)
{
	const uint64_t usual = usual_address(patch);
	for (unsigned i = first; i < first + AWAY_TRIES; i++) {
		const uint64_t at = usual - i * AWAY_BYTES;
		if (usual <= (i + 1) * AWAY_BYTES)
			return 0;
		if (map_file(patch, at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE,
			     fd) == (int64_t)at)
			return at;
	}
	return 0;
}

/* Map states for some threads more than there are; the agent adds to them. */
static int map_states(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	home->counts =
		home->patches_max < COUNTS_SPARE ? (uint32_t)home->patches_max : COUNTS_SPARE;
	const uint32_t known = ky_patch_modules_functions(patch);
	if (home->counts < home->patches_max && known < home->patches_max - home->counts)
		home->counts += known;
	home->state_bytes = KY_AGENT_STATE_BYTES + page_up(home->counts * sizeof(uint32_t));
	home->states_max = STATES_MIN;
	while (home->states_max < patch->remote.count * 2 && home->states_max < KY_AGENT_STATES_MAX)
		home->states_max *= 2;
	const uint64_t bytes = home->states_max * home->state_bytes;
	home->states = map_away(patch, AWAY_STATES, bytes,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (!home->states)
		home->states = map(patch, 0, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
	return home->states ? ky_agent_memory_wipe(patch, home->states, bytes) : -ENOMEM;
}

/* Map the directory. All that it leads to is the empty leaf. */
static int make_directory(struct ky_patch *patch)
{
	const uint64_t bytes = KY_AGENT_DIRECTORY_BYTES;
	uint64_t roots[KY_AGENT_ROOTS];
	const uint64_t at = map(patch, 0, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
	if (!at)
		return -ENOMEM;
	for (uint64_t i = 0; i < KY_AGENT_ROOTS; i++)
		roots[i] = ky_agent_leaf_empty(at);
	call(patch, SYS_madvise, at, bytes, MADV_DONTDUMP, 0, 0, 0);
	const int error = ky_remote_write(&patch->remote, at, roots, sizeof(roots));
	patch->home.directory = error ? 0 : at;
	return error;
}

static int map_memory(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	const uint64_t known = (uint64_t)ky_patch_modules_functions(patch) * 2 + FUNCTIONS_SPARE;
	const int error = ky_agent_memory_refill(patch);
	if (error)
		return error;
	if (!home->patches) {
		home->patches_max = known < KY_AGENT_FUNCTIONS_MAX ? known : KY_AGENT_FUNCTIONS_MAX;
		home->patches =
			map(patch, 0, page_up(home->patches_max * sizeof(struct ky_agent_patch)),
			    PROT_READ | PROT_WRITE, MAP_NORESERVE);
		if (!home->patches || ky_agent_memory_write(patch))
			return -ENOMEM;
	}
	if (!home->states && (map_states(patch) || ky_agent_memory_write(patch)))
		return -ENOMEM;
	if (!home->directory && make_directory(patch))
		return -ENOMEM;
	return ky_agent_memory_write(patch);
}

/* ---- the drum ---- */

/* Close the drum of the attach before, if its descriptor is still the same. */
static void close_drum_there(struct ky_patch *patch)
{
	char path[64];
	struct stat status;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)patch->remote.pid,
		 (int)patch->keep.drum_fd);
	if (patch->keep.drum_fd >= 0 && stat(path, &status) == 0 &&
	    status.st_ino == patch->keep.drum_inode)
		call(patch, SYS_close, (uint64_t)patch->keep.drum_fd, 0, 0, 0, 0, 0);
	patch->keep.drum_fd = -1;
}

/* Make a descriptor there that is out of the program's way. */
static int64_t make_drum_there(struct ky_patch *patch)
{
	const int64_t low = make_memfd(patch, patch->home_at + KY_PATCH_ROOM_AT, KY_DRUM_NAME,
				       MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (low < 0)
		return low;
	int64_t high = -1;
	for (uint64_t least = DRUM_FD_WANTED; high < 0 && least >= DRUM_FD_LEAST; least /= 2)
		high = call(patch, SYS_fcntl, (uint64_t)low, F_DUPFD_CLOEXEC, least, 0, 0, 0);
	if (high < 0)
		return low;
	call(patch, SYS_close, (uint64_t)low, 0, 0, 0, 0, 0);
	return high;
}

static int open_drum(struct ky_patch *patch)
{
	struct stat status;
	const int fd = ky_remote_take_memfd(&patch->remote, patch->keep.drum_fd);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status)) {
		close(fd);
		return -errno;
	}
	patch->keep.drum_inode = status.st_ino;
	const uint32_t functions = ky_patch_modules_functions(patch);
	char name[16];
	(void)ky_proc_comm(patch->remote.pid, 0, name, sizeof(name));
	const struct ky_made_drum_options options = {.pid = (pid_t)patch->home.pid,
						     .fd = fd,
						     .name = name,
						     .layer = KY_DRUM_FUNCTIONS,
						     .ticks = true,
						     .functions = functions + SITES_SPARE,
						     .ring_bytes = patch->options.ring_bytes,
						     .total_bytes = patch->options.total_bytes};
	const int error = ky_made_drum_open(&patch->drum, &options);
	patch->drum_open = !error;
	return error;
}

/*
 * Report whether the file that is mapped there, from its beginning on, is the one that kymo has: the descriptor may have
 * been replaced.
 */
static bool is_mapped(const struct ky_patch *patch, uint64_t address)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	struct stat status;
	bool same = false;
	if (fstat(patch->drum.fd, &status))
		return false;
	const uint64_t device = (uint64_t)major(status.st_dev) << 32 | minor(status.st_dev);
	(void)ky_proc_maps_open(&maps, patch->remote.pid);
	while (!same && ky_proc_maps_next(&maps, &mapping))
		same = mapping.start == address && mapping.inode == status.st_ino &&
		       mapping.device == device && mapping.offset == 0;
	ky_proc_maps_close(&maps);
	return same;
}

void ky_agent_memory_drum(struct ky_patch *patch, ky_agent_part_fn one)
{
	const struct ky_agent_home *home = &patch->home;
	if (home->drum && home->drum_heap)
		one(patch, home->drum, home->drum_heap);
	if (home->drum && home->drum_end > home->drum_rings)
		one(patch, home->drum + home->drum_rings, home->drum_end - home->drum_rings);
}

/* Put memory of nobody in a part's place: threads may be about to write there. */
static void empty_part(struct ky_patch *patch, uint64_t at, uint64_t bytes)
{
	map(patch, at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_NORESERVE);
}

static void undumped_part(struct ky_patch *patch, uint64_t at, uint64_t bytes)
{
	call(patch, SYS_madvise, at, bytes, MADV_DONTDUMP, 0, 0, 0);
}

/* Map the drum's parts; an address other than 0 is that of the one before. */
static int64_t map_parts(struct ky_patch *patch, uint64_t at)
{
	struct ky_agent_home *home = &patch->home;
	const uint64_t rings = home->drum_rings;
	const int access = PROT_READ | PROT_WRITE, fixed = at ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	const int64_t fd = patch->keep.drum_fd;
	if (at) {
		const int64_t result =
			map_file(patch, at, home->drum_heap, access, MAP_SHARED | fixed, fd);
		if (result < 0 && result > -4096)
			return result;
	} else {
		at = map_away(patch, AWAY_DRUM, home->drum_heap, MAP_SHARED, fd);
	}
	if (!at)
		return -EEXIST;
	const int64_t result = map_file_from(patch, at + rings, home->drum_end - rings, access,
					     MAP_SHARED | fixed, fd, rings);
	if (result == (int64_t)(at + rings))
		return (int64_t)at;
	if (fixed != MAP_FIXED)
		call(patch, SYS_munmap, at, home->drum_heap, 0, 0, 0, 0);
	return -EEXIST;
}

/* Map all of the drum at once, where its parts have no room. */
static int64_t map_whole(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	home->drum_heap = home->drum_rings;
	home->drum_end = home->drum_bytes;
	return map_file(patch, 0, home->drum_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			patch->keep.drum_fd);
}

/* Map the drum at the address of the one before, when it has the same size: threads may be about to write there. */
static int64_t map_drum(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	const struct ky_drum_header *header = ky_made_drum_header(&patch->drum);
	const uint64_t bytes = patch->drum.drum.bytes;
	const bool again = home->drum && home->drum_bytes == bytes &&
			   home->drum_rings == header->space_at &&
			   home->drum_heap >= header->heap_at + HEAP_FIRST_BYTES;
	if (!again) {
		ky_agent_memory_drum(patch, empty_part);
		home->drum_bytes = bytes;
		home->drum_rings = header->space_at;
		home->drum_heap = header->heap_at + HEAP_FIRST_BYTES;
		home->drum_end = header->space_at + RINGS_FIRST_BYTES;
		if (home->drum_end > bytes)
			home->drum_end = bytes;
	}
	int64_t result = map_parts(patch, again ? home->drum : 0);
	if (!again && result < 0)
		result = map_whole(patch);
	if (result < 0 && result > -4096)
		return result;
	home->drum = (uint64_t)result;
	if (!is_mapped(patch, home->drum)) {
		ky_agent_memory_drum(patch, empty_part);
		return -EPERM;
	}
	ky_agent_memory_drum(patch, undumped_part);
	return 0;
}

static int64_t make_drum(struct ky_patch *patch)
{
	const int64_t fd = make_drum_there(patch);
	if (fd < 0)
		return fd;
	patch->keep.drum_fd = (int32_t)fd;
	int64_t result = open_drum(patch);
	if (result == 0)
		result = map_drum(patch);
	if (result)
		close_drum_there(patch);
	return result;
}

/* ---- everything ---- */

/* Make all states free and all counts 0, as after the first attach. */
static int reset_states(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	/* The write of a thread that is led here in the middle of a stub has no effect, and it finds no return slot. */
	const struct ky_agent_state first = {.here = 1,
					     .pos = home->states + SCRATCH_AT,
					     .leaf = ky_agent_leaf_empty(home->directory)};
	uint32_t used = 0;
	(void)KY_PATCH_HOME_READ(patch, states_used, &used);
	call(patch, SYS_madvise, home->states, home->states_max * home->state_bytes, MADV_DONTNEED,
	     0, 0, 0);
	/* The same for a thread that a signal handler keeps inside a stub. */
	for (uint32_t i = 1; i < used && i < home->states_max; i++) {
		const uint64_t at = home->states + i * home->state_bytes;
		(void)ky_remote_write(&patch->remote, at + KY_STATE_POS, &first.pos,
				      sizeof(first.pos));
		(void)ky_remote_write(&patch->remote, at + KY_STATE_LEAF, &first.leaf,
				      sizeof(first.leaf));
	}
	home->states_used = 1;
	return ky_remote_write(&patch->remote, home->states, &first, sizeof(first));
}

static int own_home(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	int error = reset_states(patch);
	if (error)
		return error;
	home->pid = (uint32_t)ky_proc_inner_pid(patch->remote.pid);
	home->owner_pid = (uint32_t)getpid();
	home->owner_started = ky_patch_started(getpid());
	home->generation = next_generation();
	home->entry_only = patch->entry_only;
	home->pause = KY_LOADER_GOES_ON;
	home->sealed = 0;
	home->apart = 0;
	home->growing = 0;
	home->crowded = 0;
	home->end_site = ky_made_drum_site(&patch->drum, KYMO_KIND_END, NULL, NULL, NULL, NULL, 0);
	error = ky_agent_memory_write(patch);
	if (error)
		return error;
	home->version = KY_AGENT_VERSION;
	return ky_agent_memory_write(patch);
}

static int64_t make(struct ky_patch *patch)
{
	int64_t result;
	if (patch->home.version) {
		if (!same_agent(patch))
			return -EPROTO;
		result = ky_remote_set_gadget(&patch->remote, patch->home_at + KY_PATCH_GADGET_AT);
		note_locks(patch);
	} else {
		result = begin_home(patch);
		if (result == 0)
			result = write_agent(patch);
	}
	if (result == 0)
		result = map_memory(patch);
	if (result == 0) {
		close_drum_there(patch);
		patch->home.pid = (uint32_t)ky_proc_inner_pid(patch->remote.pid);
		result = make_drum(patch);
	}
	return result ? result : own_home(patch);
}

int ky_agent_memory_refuse(const struct ky_patch *patch, int error, char message[KY_MESSAGE_BYTES])
{
	const int pid = (int)patch->remote.pid;
	if (error == -EPROTO)
		return ky_fail(
			message, error,
			"Cannot patch process %d: another version of kymo was attached to it; "
			"restart the program",
			pid);
	if (error == -EPERM)
		return ky_fail(
			message, error,
			"Cannot patch process %d: the memory that kymo made in it was replaced: "
			"another process shares its descriptors and changes them; use --engine "
			"sample",
			pid);
	return ky_fail(message, error,
		       "Cannot set up memory in process %d: %s; try a smaller --buffer, or "
		       "--engine sample",
		       pid, strerror(-error));
}

int ky_agent_memory_make(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	const int error = (int)make(patch);
	return error ? ky_agent_memory_refuse(patch, error, message) : 0;
}

/* ---- stubs ---- */

static bool within_reach(const struct ky_patch_region *region, const struct ky_patch_module *module)
{
	const uint64_t low = region->at < module->from ? region->at : module->from;
	const uint64_t end = region->at + region->bytes;
	const uint64_t high = end > module->to ? end : module->to;
	return high - low < UINT64_C(0x7fff0000);
}

static void write_stub_tables(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	uint8_t unwind[KY_STUB_UNWIND_MAX];
	home->stubs_from = UINT64_MAX;
	home->stubs_to = 0;
	for (uint32_t i = 0; i < patch->keep.regions_count; i++) {
		const struct ky_patch_region *region = &patch->keep.regions[i];
		if (region->at < home->stubs_from)
			home->stubs_from = region->at;
		if (region->at + region->bytes > home->stubs_to)
			home->stubs_to = region->at + region->bytes;
	}
	home->unwind = patch->home_at + KY_PATCH_UNWIND_AT;
	home->unwind_bytes = ky_stub_unwind(unwind, home->unwind, home->stubs_from, home->stubs_to,
					    home->directory);
	(void)ky_remote_write(&patch->remote, home->unwind, unwind, home->unwind_bytes);
}

uint32_t ky_agent_memory_region(struct ky_patch *patch, const struct ky_patch_module *module,
				uint64_t bytes)
{
	struct ky_patch_keep *keep = &patch->keep;
	for (uint32_t i = 0; i < keep->regions_count; i++)
		if (within_reach(&keep->regions[i], module) &&
		    keep->regions[i].bytes - keep->regions[i].used >= patch->promised[i] + bytes) {
			patch->promised[i] += bytes;
			return i;
		}
	if (keep->regions_count == KY_PATCH_REGIONS_MAX)
		return KY_PATCH_REGIONS_MAX;
	const uint64_t all = page_up(bytes + KY_STUB_MAX);
	const uint64_t at = ky_remote_find_room(&patch->remote, module->from, module->to, all);
	if (!at ||
	    map(patch, at, all, PROT_READ | PROT_EXEC, MAP_FIXED_NOREPLACE | MAP_NORESERVE) != at)
		return KY_PATCH_REGIONS_MAX;
	keep->regions[keep->regions_count] =
		(struct ky_patch_region){.at = at, .bytes = all, .used = KY_STUB_MAX};
	patch->promised[keep->regions_count++] = bytes;
	write_stub_tables(patch);
	(void)ky_agent_memory_write(patch);
	return keep->regions_count - 1;
}

/* ---- off ---- */

bool ky_agent_memory_left(const struct ky_patch *patch)
{
	uint32_t counter = KY_COUNTER_READ;
	(void)KY_PATCH_HOME_READ(patch, counter, &counter);
	return counter != KY_COUNTER_READ;
}

bool ky_agent_memory_has_counter(struct ky_patch *patch)
{
	const uint64_t room = patch->home_at + KY_PATCH_ROOM_AT;
	uint32_t mode = 0;
	return call(patch, SYS_prctl, PR_GET_TSC, room, 0, 0, 0, 0) != 0 ||
	       ky_remote_read(&patch->remote, room, &mode, sizeof(mode)) || mode != PR_TSC_SIGSEGV;
}

static void clear_states(struct ky_patch *patch)
{
	uint32_t used = 0;
	const uint64_t nobody = 0;
	(void)KY_PATCH_HOME_READ(patch, states_used, &used);
	for (uint32_t i = 0; i < used && i < patch->home.states_max; i++)
		(void)ky_remote_write(&patch->remote,
				      patch->home.states + i * patch->home.state_bytes, &nobody,
				      sizeof(nobody));
}

void ky_agent_memory_resume(struct ky_patch *patch)
{
	if (patch->home.pause == KY_LOADER_GAVE_UP && !ky_agent_memory_left(patch))
		(void)KY_PATCH_HOME_WRITE(patch, on);
	patch->home.pause = KY_LOADER_GOES_ON;
	(void)KY_PATCH_HOME_WRITE(patch, pause);
	ky_remote_set_gadget(&patch->remote, patch->home_at + KY_PATCH_GADGET_AT);
	call(patch, SYS_futex, patch->home_at + offsetof(struct ky_agent_home, pause), FUTEX_WAKE,
	     INT32_MAX, 0, 0, 0);
}

void ky_agent_memory_give_back(struct ky_patch *patch, bool busy)
{
	close_drum_there(patch);
	if (!busy)
		ky_agent_memory_drum(patch, empty_part);
	(void)ky_remote_write(&patch->remote, patch->home_at + KY_PATCH_KEEP_AT, &patch->keep,
			      sizeof(patch->keep));
}

void ky_agent_memory_own(struct ky_patch *patch, bool ours)
{
	struct ky_agent_home *home = &patch->home;
	home->owner_pid = ours ? (uint32_t)getpid() : 0;
	home->owner_started = ours ? ky_patch_started(getpid()) : 0;
	(void)KY_PATCH_HOME_WRITE(patch, owner_started);
	(void)KY_PATCH_HOME_WRITE(patch, owner_pid);
}

void ky_agent_memory_off(struct ky_patch *patch)
{
	patch->home.on = 0;
	(void)KY_PATCH_HOME_WRITE(patch, on);
	clear_states(patch);
	ky_agent_memory_resume(patch);
}
