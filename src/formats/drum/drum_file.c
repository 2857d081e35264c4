/* SPDX-License-Identifier: MIT */
/*
 * drum_file.c: reads a drum's bytes. A file is copied page by page into memory of the drum's size; both are
 * sparse. Where the owner may still be writing, the number of a block is read again after everything was copied: it
 * has changed if the owner began the block again.
 */
#include "formats/drum/drum_file.h"

#include "base/file.h"
#include "os/ticks.h"
#include "process/drum_find.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Page tables for a drum of this size are a few hundred megabytes, if all of it is looked at. */
#define DRUM_BYTES_MAX (UINT64_C(1) << 37)
#define PAGE 4096u
#define CHUNK_BYTES (64u * PAGE)
/* An event that is being written now is in its ring within this time, nearly always. */
#define LAG_PER_S 1000u

struct ky_drum_file {
	uint8_t *base;
	uint64_t bytes; /* of memory */
	uint64_t data_bytes;
	uint64_t cut_at;
	bool mapped;
	int fd; /* of a mapped drum, to ask where it has data; -1 */
	struct ky_drum_pages pages;
	uint32_t rate;
	struct ky_drum_view view;
	struct ky_stream stream;
	bool streaming;
	char *name;
};

/*
 * ------------------------------------------------------------------------------------------------
 * Copying.
 * ------------------------------------------------------------------------------------------------
 */

struct drum_source {
	int fd;
	bool seeks;
	uint64_t at; /* where the next bytes come from */
};

/* As many bytes as there are, up to that many. Fewer: the end. */
static ssize_t take_bytes(struct drum_source *from, uint8_t *to, size_t bytes)
{
	const int64_t n = from->seeks ? ky_file_pread_all(from->fd, to, bytes, from->at)
				      : ky_file_read_all(from->fd, to, bytes);
	from->at += n > 0 ? (uint64_t)n : 0;
	return (ssize_t)n;
}

/* Go to the next byte that is there; false at the end. */
static bool skip_hole(struct drum_source *from)
{
	if (!from->seeks)
		return true;
	const off_t at = lseek(from->fd, (off_t)from->at, SEEK_DATA);
	if (at < 0)
		return errno != ENXIO; /* the file system does not know: everything is data */
	from->at = (uint64_t)at / PAGE * PAGE;
	return true;
}

/* Make a table of the pages, none of which has data yet. 0 or -ENOMEM. */
static int make_pages(struct ky_drum_file *file)
{
	file->pages.count = (file->bytes + PAGE - 1) / PAGE;
	file->pages.bits = calloc(file->pages.count / 64 + 1, sizeof(uint64_t));
	return file->pages.bits ? 0 : -ENOMEM;
}

static void add_page(struct ky_drum_pages *pages, uint64_t page)
{
	const uint64_t bit = UINT64_C(1) << page % 64;
	if (page < pages->count && !(pages->bits[page / 64] & bit)) {
		pages->bits[page / 64] |= bit;
		pages->has_data++;
	}
}

/* Find out where a mapped drum has data: reading a hole of a memfd would give it memory. */
static void find_pages(struct ky_drum_file *file)
{
	off_t at = 0;
	while ((at = lseek(file->fd, at, SEEK_DATA)) >= 0 && (uint64_t)at < file->bytes) {
		const off_t hole = lseek(file->fd, at, SEEK_HOLE);
		const uint64_t end = hole > at ? (uint64_t)hole : (uint64_t)at + 1;
		for (uint64_t page = (uint64_t)at / PAGE; page * PAGE < end; page++)
			add_page(&file->pages, page);
		at = (off_t)end;
	}
}

static bool all_zero(const uint8_t *page, size_t bytes)
{
	return page[0] == 0 && memcmp(page, page + 1, bytes - 1) == 0;
}

static void keep_pages(struct ky_drum_file *file, uint64_t at, const uint8_t *chunk, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE) {
		const size_t size = bytes - i < PAGE ? bytes - i : PAGE;
		if (all_zero(chunk + i, size))
			continue;
		memcpy(file->base + at + i, chunk + i, size);
		add_page(&file->pages, (at + i) / PAGE);
		file->data_bytes += size;
	}
}

static int copy_rest(struct ky_drum_file *file, struct drum_source *from, char *message)
{
	uint8_t *chunk = malloc(CHUNK_BYTES);
	if (!chunk)
		return ky_fail(message, -ENOMEM, "%s: not enough memory", file->name);
	ssize_t n = CHUNK_BYTES;
	while (n == CHUNK_BYTES && from->at < file->bytes && skip_hole(from) &&
	       from->at < file->bytes) {
		const uint64_t at = from->at;
		const uint64_t left = file->bytes - at;
		n = take_bytes(from, chunk, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES);
		if (n > 0)
			keep_pages(file, at, chunk, (size_t)n);
	}
	free(chunk);
	return n < 0 ? ky_fail(message, (int)n, "%s: byte %" PRIu64 ": cannot be read: %s",
			       file->name, from->at, strerror((int)-n))
		     : 0;
}

/* The first page says how large the drum is. */
static int check_first_page(struct ky_drum_file *file, const void *page, ssize_t bytes,
			    char *message)
{
	const struct ky_drum_header *header = page;
	if (bytes < 0)
		return ky_fail(message, (int)bytes, "%s: byte 0: cannot be read: %s", file->name,
			       strerror((int)-bytes));
	const char *remedy = "expected a file kymo-PID.drum as KYMO_DRUM_DIR leaves it";
	if (bytes < KY_DRUM_HEADER_BYTES)
		return ky_fail(message, -EINVAL, "%s: byte %zd: too short for a drum; %s",
			       file->name, bytes, remedy);
	if (header->magic == 0 && (header->version == KY_DRUM_VERSION || all_zero(page, PAGE)))
		return ky_fail(
			message, -EINVAL,
			"%s: byte 0: the drum was never finished: the process ended while it was "
			"making it, or the disk was full; nothing was recorded",
			file->name);
	if (header->magic != KY_DRUM_MAGIC)
		return ky_fail(message, -EINVAL, "%s: byte 0: not a drum; %s", file->name, remedy);
	if (header->version == KY_DRUM_VERSION && header->drum_bytes > DRUM_BYTES_MAX)
		return ky_fail(message, -EBADMSG,
			       "%s: byte %zu: a drum of %" PRIu64
			       " bytes; expected at most %" PRIu64 "; the file is damaged",
			       file->name, offsetof(struct ky_drum_header, drum_bytes),
			       header->drum_bytes, DRUM_BYTES_MAX);
	return 0;
}

/* A block that was begun again while it was copied, or after, is a mixture: its number goes. */
static void drop_torn(struct ky_drum_file *file, int fd, const struct ky_ring_cursor *ring)
{
	const uint64_t end = ring->at + ring->blocks * KY_BLOCK_BYTES;
	for (uint64_t at = ring->at; at < end; at += KY_BLOCK_BYTES) {
		const uint64_t data = ky_drum_view_data(&file->view, at, end);
		at += (data - at + KY_BLOCK_BYTES - 1) / KY_BLOCK_BYTES * KY_BLOCK_BYTES;
		if (at >= end)
			break;
		uint64_t *seq = (uint64_t *)(void *)(file->base + at);
		uint64_t now = 0;
		if (*seq && pread(fd, &now, sizeof(now), (off_t)at) == sizeof(now) && now != *seq)
			*seq = 0;
	}
}

static void drop_all_torn(struct ky_drum_file *file, int fd)
{
	uint64_t claimed = 0, data = 0;
	for (uint32_t i = 0; i < ky_drum_view_rings(&file->view); i++) {
		struct ky_ring_cursor cursor;
		ky_ring_cursor_init(&cursor, i, false);
		if (!ky_ring_find(&file->view, &cursor))
			continue;
		claimed += cursor.blocks * KY_BLOCK_BYTES;
		if (claimed > file->view.header.space_bytes)
			return;
		data += ky_drum_view_data_bytes(&file->view, cursor.at,
						cursor.blocks * KY_BLOCK_BYTES);
		if (data > file->pages.has_data * PAGE)
			return;
		if (file->view.rings[i].owner != 0)
			drop_torn(file, fd, &cursor);
	}
}

static int copy_file(struct ky_drum_file *file, struct drum_source *from, char *message)
{
	_Alignas(8) uint8_t page[KY_DRUM_HEADER_BYTES];
	const ssize_t n = take_bytes(from, page, sizeof(page));
	const int error = check_first_page(file, page, n, message);
	if (error)
		return error;
	const struct ky_drum_header *header = (const void *)page;
	/* The missing part of a truncated file reads as zeros; the rest is still valid. */
	file->bytes = header->drum_bytes > sizeof(page) ? header->drum_bytes : sizeof(page);
	void *at = mmap(NULL, file->bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return ky_fail(message, -errno,
			       "%s: no address space for a drum of %" PRIu64
			       " bytes: %s; raise the limit (ulimit -v)",
			       file->name, file->bytes, strerror(errno));
	file->base = at;
	if (make_pages(file) != 0)
		return ky_fail(message, -ENOMEM, "%s: not enough memory", file->name);
	add_page(&file->pages, 0);
	memcpy(file->base, page, sizeof(page));
	file->data_bytes = sizeof(page);
	return copy_rest(file, from, message);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Opening.
 * ------------------------------------------------------------------------------------------------
 */

static int map_sealed(struct ky_drum_file *file, int fd, uint64_t bytes, char *message)
{
	if (bytes > DRUM_BYTES_MAX)
		return ky_fail(message, -EBADMSG,
			       "%s: %" PRIu64 " bytes; expected at most %" PRIu64, file->name,
			       bytes, DRUM_BYTES_MAX);
	void *at = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0)
			 : MAP_FAILED;
	if (at == MAP_FAILED)
		return ky_fail(message, bytes ? -errno : -EINVAL, "%s: cannot be mapped: %s",
			       file->name, bytes ? strerror(errno) : "it is empty");
	file->base = at;
	file->bytes = bytes;
	file->mapped = true;
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (file->fd < 0)
		return ky_fail(message, -errno, "%s: %s", file->name, strerror(errno));
	if (make_pages(file) != 0)
		return ky_fail(message, -ENOMEM, "%s: not enough memory", file->name);
	find_pages(file);
	return 0;
}

static int check_view(struct ky_drum_file *file, char *message)
{
	const char *what = "";
	const int error = ky_drum_view_open(&file->view, file->base, file->bytes, &what);
	file->view.pages = &file->pages;
	if (error == -ENOTSUP)
		return ky_fail(message, error,
			       "%s: byte %" PRIu64 ": a drum of version %" PRIu32
			       "; expected version %d; use the kymo that belongs to the program",
			       file->name, file->view.bad_at, file->view.header.version,
			       KY_DRUM_VERSION);
	if (error)
		return ky_fail(message, error,
			       "%s: byte %" PRIu64 ": %s; expected the drum of a kymo program",
			       file->name, file->view.bad_at, what);
	return 0;
}

static int get_bytes(struct ky_drum_file *file, int fd, char *message)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return ky_fail(message, -errno, "%s: %s", file->name, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return ky_fail(message, -EISDIR,
			       "%s: is a folder; expected one file kymo-PID.drum in it",
			       file->name);
	const int seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && (seals & F_SEAL_SHRINK))
		return map_sealed(file, fd, (uint64_t)status.st_size, message);
	struct drum_source from = {.fd = fd, .seeks = S_ISREG(status.st_mode)};
	const int error = copy_file(file, &from, message);
	const uint64_t end = from.seeks ? (uint64_t)status.st_size : from.at;
	file->cut_at = end < file->bytes ? end : 0;
	return error;
}

int ky_drum_file_open_fd(struct ky_drum_file **out, int fd, const char *name,
			 char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	struct ky_drum_file *file = calloc(1, sizeof(*file));
	if (file) {
		file->fd = -1;
		file->name = strdup(name);
	}
	if (!file || !file->name) {
		free(file);
		return ky_fail(message, -ENOMEM, "%s: not enough memory", name);
	}
	int error = get_bytes(file, fd, message);
	if (error == 0)
		error = check_view(file, message);
	if (error) {
		ky_drum_file_close(&file);
		return error;
	}
	if (!file->mapped)
		drop_all_torn(file, fd);
	*out = file;
	return 0;
}

int ky_drum_file_open(struct ky_drum_file **out, const char *path, char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	if (strcmp(path, "-") == 0)
		return ky_drum_file_open_fd(out, STDIN_FILENO, "standard input", message);
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 && errno == EACCES)
		return ky_fail(message, -EACCES,
			       "%s: %s; run as the user whose process it was, or as root", path,
			       strerror(EACCES));
	if (fd < 0)
		return ky_fail(message, -errno, "%s: %s", path, strerror(errno));
	const int error = ky_drum_file_open_fd(out, fd, path, message);
	close(fd);
	return error;
}

void ky_drum_file_close(struct ky_drum_file **file)
{
	if (!*file)
		return;
	if ((*file)->streaming)
		ky_stream_close(&(*file)->stream);
	if ((*file)->base)
		munmap((*file)->base, (*file)->bytes);
	if ((*file)->fd >= 0)
		close((*file)->fd);
	free((*file)->pages.bits);
	free((*file)->name);
	free(*file);
	*file = NULL;
}

/*
 * ------------------------------------------------------------------------------------------------
 * Finding the drum of a process.
 * ------------------------------------------------------------------------------------------------
 */

/* Open the descriptor when its drum is the process's own, not one that it inherited. */
static int try_descriptor(struct ky_drum_file **out, int dir, pid_t pid, const char *number,
			  char *message)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/fd/%s", (int)pid, number);
	const int fd = ky_drum_find_open(dir, number, false);
	if (fd == -EINVAL)
		return ky_fail(message, fd, "%s: it has the name of a drum, but is no file", name);
	if (fd < 0)
		return ky_fail(message, fd, "%s: %s; run as the user of the process, or as root",
			       name, strerror(-fd));
	int error = ky_drum_file_open_fd(out, fd, name, message);
	close(fd);
	if (error || !*out || (*out)->view.header.pid == (uint32_t)ky_proc_inner_pid(pid))
		return error;
	error = ky_fail(message, -ENOENT,
			"%s: the drum of process %" PRIu32 ", inherited; process %d has recorded "
			"nothing itself yet",
			name, (*out)->view.header.pid, (int)pid);
	ky_drum_file_close(out);
	return error;
}

static int search(struct ky_drum_file **out, DIR *dir, pid_t pid, char *message)
{
	int error = ky_fail(message, -ENOENT,
			    "process %d: it has no drum; expected a program with kymo in it that "
			    "traces: start it with KYMO_CATEGORIES='*'",
			    (int)pid);
	for (int fd; !*out && (fd = ky_proc_next(dir)) >= 0;) {
		char number[16], link[4096];
		snprintf(number, sizeof(number), "%d", fd);
		const ssize_t n = readlinkat(dirfd(dir), number, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (ky_drum_find_names(link))
			error = try_descriptor(out, dirfd(dir), pid, number, message);
	}
	return error;
}

int ky_drum_file_open_pid(struct ky_drum_file **out, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	DIR *const dir = ky_proc_fds(pid, 0);
	if (!dir && errno == ESRCH)
		return ky_fail(message, -ESRCH, "no process with PID %d", (int)pid);
	if (!dir)
		return ky_fail(
			message, -errno,
			"/proc/%d/fd: %s; run as the user of the process, or as root (which it "
			"takes "
			"when the process changed its user or made itself undumpable)",
			(int)pid, strerror(errno));
	const int error = search(out, dir, pid, message);
	ky_proc_close(dir);
	return error;
}

/*
 * ------------------------------------------------------------------------------------------------
 * Time.
 * ------------------------------------------------------------------------------------------------
 */

static uint64_t rate_of(const struct ky_tick_reading *a, const struct ky_tick_reading *b)
{
	return b->ticks > a->ticks ? (uint64_t)((ky_u128)(b->boottime_ns - a->boottime_ns) *
						KY_CLOCK_RATE_ONE / (b->ticks - a->ticks))
				   : KY_CLOCK_RATE_ONE;
}

/* Counters of today's machines are within a factor of two of this, most x86 ones. */
static uint64_t guessed_rate(uint32_t tick_source)
{
	return tick_source == KY_TICKS_TSC ? KY_CLOCK_RATE_ONE / 5 * 2 : KY_CLOCK_RATE_ONE;
}

static void find_rate(struct ky_drum_file *file, struct ky_clock_map *clock)
{
	const uint32_t source = file->view.header.tick_source;
	if (source == KY_TICKS_MONOTONIC) {
		file->rate = KY_DRUM_RATE_NOMINAL;
		clock->nominal = KY_CLOCK_RATE_ONE;
		return;
	}
	file->rate = KY_DRUM_RATE_GUESSED;
	clock->nominal = guessed_rate(source);
	if (!ky_tick_source_is_here(source))
		return;
	const struct ky_tick_reading now = ky_tick_source_now(source);
	if (clock->count && ky_tick_source_same_boot(&clock->readings[0], &now)) {
		file->rate = KY_DRUM_RATE_BOOT;
		clock->nominal = rate_of(&clock->readings[0], &now);
		return;
	}
	file->rate = KY_DRUM_RATE_MACHINE;
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	const struct ky_tick_reading later = ky_tick_source_now(source);
	clock->nominal = rate_of(&now, &later);
}

/*
 * ------------------------------------------------------------------------------------------------
 * Reading.
 * ------------------------------------------------------------------------------------------------
 */

int ky_drum_file_stream(struct ky_drum_file *file, const char *globs, bool newest,
			struct ky_stream **out, char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	if (file->streaming)
		ky_stream_close(&file->stream);
	const char *what = "";
	const int error = ky_stream_open_sparse(&file->stream, file->base, file->bytes,
						&file->pages, globs, newest, 0, &what);
	file->streaming = error == 0;
	if (error)
		return ky_fail(message, error, "%s: %s", file->name, what);
	file->rate = KY_DRUM_RATE_SAMPLES;
	if (!ky_clock_has_rate(&file->stream.clock))
		find_rate(file, &file->stream.clock);
	*out = &file->stream;
	return 0;
}

/* A process that does not take samples now is helped out, when its clocks are ours. */
static int add_now(struct ky_drum_file *file)
{
	struct ky_clock_map *clock = &file->stream.clock;
	const uint32_t source = file->view.header.tick_source;
	if (!ky_tick_source_is_here(source) || clock->count == 0)
		return 0;
	const struct ky_tick_reading now = ky_tick_source_now(source);
	return ky_tick_source_same_boot(&clock->readings[clock->count - 1], &now)
		       ? ky_clock_map_add(clock, &now)
		       : 0;
}

int ky_drum_file_read(struct ky_drum_file *file, bool last)
{
	if (!file->mapped)
		return ky_stream_read_all(&file->stream);
	find_pages(file);
	int error = ky_clock_map_update(&file->stream.clock, &file->stream.view);
	if (error == 0)
		error = add_now(file);
	if (error)
		return error;
	return last ? ky_stream_read_all(&file->stream)
		    : ky_stream_read(&file->stream,
				     ky_clock_ticks_per_s(&file->stream.clock) / LAG_PER_S);
}

static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void ky_drum_file_facts(const struct ky_drum_file *file, struct ky_drum_facts *facts)
{
	const struct ky_drum_header *header = &file->view.header, *live = file->view.live;
	*facts = (struct ky_drum_facts){
		.pid = header->pid,
		.tick_source = header->tick_source,
		.process_name = ky_drum_view_string(
			&file->view, __atomic_load_n(&live->process_name, __ATOMIC_ACQUIRE)),
		.made_boottime_ns = header->made_boottime_ns,
		.drum_bytes = header->drum_bytes,
		.data_bytes = file->data_bytes,
		.rings = ky_drum_view_rings(&file->view),
		.rate = file->rate,
		.follows = file->mapped,
		.exited = __atomic_load_n(&live->exited, __ATOMIC_RELAXED) != 0,
		.snapshots = load(&live->snapshots),
		.events = file->stream.events,
		.lost_overwritten = file->stream.lost,
		.lost_ringless = load(&live->lost_ringless),
		.lost_nested = load(&live->lost_nested),
		.refused_sites = load(&live->refused_sites),
		.refused_strings = load(&live->refused_strings),
		.refused_categories = load(&live->refused_categories),
		.lost_unfinished = load(&live->lost_unfinished),
		.refused_names = load(&live->refused_names),
		.damaged = file->stream.damaged + (file->cut_at != 0),
		.damaged_at = file->stream.damaged ? file->stream.damaged_at : file->cut_at,
		.cut_at = file->cut_at,
	};
}

bool ky_drum_file_category(const struct ky_drum_file *file, uint32_t index,
			   struct ky_drum_category_facts *facts)
{
	if (index >= file->view.header.categories_max)
		return false;
	const struct ky_drum_category *category = &file->view.categories[index];
	const uint32_t name = __atomic_load_n(&category->name, __ATOMIC_ACQUIRE);
	const uint64_t state = load(&category->state);
	*facts = (struct ky_drum_category_facts){.name = ky_drum_view_string(&file->view, name),
						 .on = (state & 0xff) != 0,
						 .recorders = state >> 8};
	return name != 0;
}
