/* SPDX-License-Identifier: MIT */
/*
 * functions_cache.c: keeps the functions of files: the results of the scan of a large file in the user's cache, and
 * all of it in memory, because the next process has the same libraries.
 *
 * In files: $XDG_CACHE_HOME/kymo/functions, else under ~/.cache, one file for each path, so that a program that is
 * built again replaces its older version.
 *
 *   struct head        identifies the file: build id, and a hash over its code and all that was known before the scan
 *   struct entry[]     one for each function, by address
 *
 * The cache decides where a program is patched: kymo does not read a file that another user could have written, nor
 * one whose hash is wrong. A build id does not identify the code: some are the same for all builds, and tools change
 * files and leave it. Nor does the hash when somebody wants it to be equal, and a path means another file in another mount
 * namespace: so nothing is kept of programs that belong to other users than root. A failure to write it is not
 * reported: it only costs time.
 *
 * In memory:
 *
 *   files ─▶ libc.so.6, 3 users ─▶ worker, 2 users ─▶ libz.so.1, idle ─▶ ...      the last one asked for comes first
 *
 * A file is the same as long as its inode, size and times are; its path counts as well, because names and rules
 * depend on it. A result with lines also serves requests without. The last few unused results are kept, up to a
 * bound.
 */
#include "base/file.h"
#include "functrace/functions_parts.h"
#include "functrace/instruction.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in files ---- */

#define MAGIC UINT64_C(0x31736e756f6d796b) /* "kymouns1" */
/* increase it when the scan finds other things than before */
#define SCAN_VERSION 7u
/* functions: with fewer, the scan takes a few milliseconds */
#define WORTH_MIN 2000u

struct entry {
	uint8_t how, why, at, prologue;
};

struct head {
	uint64_t magic;
	uint32_t version, count;
	uint8_t build_id[32];
	uint64_t known; /* hash over the code, and the functions before the scan */
	uint64_t hash;  /* over the entries */
};

static uint64_t hash_on(uint64_t hash, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;
	/* FNV-1a */
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_of(const void *bytes, size_t count)
{
	return hash_on(UINT64_C(0xcbf29ce484222325), bytes, count);
}

/* Hash by words: this runs over all code of large programs each time. */
static uint64_t hash_code(const struct ky_functions *functions)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (uint32_t i = 0; i < functions->code_count; i++) {
		uint64_t bytes;
		const uint8_t *code = ky_functions_code(functions, functions->code[i].from, &bytes);
		for (uint64_t at = 0; code && at < bytes; at += sizeof(uint64_t)) {
			uint64_t word = 0;
			const uint64_t left = bytes - at;
			memcpy(&word, code + at, left < sizeof(word) ? left : sizeof(word));
			hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
			hash ^= hash >> 32;
		}
	}
	return hash;
}

static uint64_t hash_known(const struct ky_functions *functions)
{
	uint64_t hash = hash_on(hash_code(functions), &functions->count, sizeof(functions->count));
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		const uint64_t known[] = {function->address, function->bytes};
		hash = hash_on(hash, known, sizeof(known));
	}
	return hash;
}

static bool folder_path(char *path, size_t room)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int bytes = -1;
	if (cache && cache[0] == '/')
		bytes = snprintf(path, room, "%s/kymo/functions", cache);
	else if (home && home[0] == '/')
		bytes = snprintf(path, room, "%s/.cache/kymo/functions", home);
	return bytes > 0 && (size_t)bytes < room;
}

static bool file_path(const struct ky_functions *functions, char *path, size_t room)
{
	if (functions->count < WORTH_MIN || !functions->build_id_bytes ||
	    !folder_path(path, room - 32))
		return false;
	const uint64_t name = hash_of(functions->path, strlen(functions->path));
	snprintf(path + strlen(path), 32, "/%016" PRIx64, name);
	return true;
}

/* Make the missing folders of a path. */
static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
}

static bool is_ours(int fd)
{
	struct stat status;
	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH));
}

bool ky_functions_cache_may_keep(int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0 || (status.st_mode & S_IWOTH))
		return false;
	return status.st_uid == geteuid() || (status.st_uid == 0 && !(status.st_mode & S_IWGRP));
}

static bool is_sound(const struct ky_function *function, const struct entry *entry)
{
	const bool is_left_out = entry->how == KY_FUNCTION_NOT;
	return entry->how <= KY_FUNCTION_SLED && entry->why < KY_WHY_COUNT &&
	       is_left_out == (entry->why != KY_WHY_NONE) && entry->at <= 16 &&
	       entry->prologue <= KY_PROLOGUE_MAX &&
	       (is_left_out || entry->prologue >= KY_JUMP_BYTES) &&
	       (function->why == KY_WHY_NONE || is_left_out);
}

static bool take(struct ky_functions *functions, const struct entry *entries)
{
	for (uint32_t i = 0; i < functions->count; i++) {
		if (!is_sound(&functions->functions[i], &entries[i]))
			return false;
	}
	for (uint32_t i = 0; i < functions->count; i++) {
		struct ky_function *function = &functions->functions[i];
		function->how = entries[i].how;
		function->why = entries[i].why;
		function->at = entries[i].at;
		function->prologue = entries[i].prologue;
	}
	return true;
}

static bool load(struct ky_functions *functions, int fd)
{
	struct head head;
	const size_t bytes = functions->count * sizeof(struct entry);
	if (!is_ours(fd) || ky_file_read_all(fd, &head, sizeof(head)) != sizeof(head) ||
	    head.magic != MAGIC || head.version != SCAN_VERSION || head.count != functions->count ||
	    memcmp(head.build_id, functions->build_id, sizeof(head.build_id)) != 0 ||
	    head.known != hash_known(functions))
		return false;
	struct entry *entries = malloc(bytes);
	const bool taken = entries && ky_file_read_all(fd, entries, bytes) == (int64_t)bytes &&
			   head.hash == hash_of(entries, bytes) && take(functions, entries);
	free(entries);
	return taken;
}

bool ky_functions_cache_load(struct ky_functions *functions)
{
	char path[4096];
	if (!file_path(functions, path, sizeof(path)))
		return false;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	const bool loaded = load(functions, fd);
	close(fd);
	return loaded;
}

static bool save(const struct ky_functions *functions, int fd)
{
	const size_t bytes = functions->count * sizeof(struct entry);
	struct entry *entries = malloc(bytes);
	if (!entries)
		return false;
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		entries[i] = (struct entry){function->how, function->why, function->at,
					    function->prologue};
	}
	struct head head = {.magic = MAGIC,
			    .version = SCAN_VERSION,
			    .count = functions->count,
			    .known = hash_known(functions),
			    .hash = hash_of(entries, bytes)};
	memcpy(head.build_id, functions->build_id, sizeof(head.build_id));
	const bool saved = ky_file_write_all(fd, &head, sizeof(head)) == 0 &&
			   ky_file_write_all(fd, entries, bytes) == 0;
	free(entries);
	return saved;
}

void ky_functions_cache_save(const struct ky_functions *functions)
{
	char path[4096];
	char fresh[4096 + 16];
	if (!file_path(functions, path, sizeof(path)))
		return;
	make_folders(path);
	snprintf(fresh, sizeof(fresh), "%s.%d", path, (int)getpid());
	const int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	const bool saved = save(functions, fd);
	close(fd);
	if (!saved || rename(fresh, path) != 0)
		unlink(fresh);
}

/* ---- in memory ---- */

#define IDLE_MAX 64u
#define IDLE_BYTES_MAX (UINT64_C(256) << 20)

struct file {
	struct file *next;
	struct ky_functions *functions;
	struct stat status;
	bool lines;
	uint32_t users;
};

static struct file *files;

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_same(const struct file *file, const struct stat *status, const char *path)
{
	const struct stat *own = &file->status;
	return own->st_dev == status->st_dev && own->st_ino == status->st_ino &&
	       own->st_size == status->st_size && is_same_time(&own->st_mtim, &status->st_mtim) &&
	       is_same_time(&own->st_ctim, &status->st_ctim) &&
	       strcmp(file->functions->path, path) == 0;
}

static void put_first(struct file *file)
{
	file->next = files;
	files = file;
}

/* Return the one that is the same and has lines if they are wanted, now the first; NULL: none. */
static struct file *find(const struct stat *status, const char *path, bool lines)
{
	for (struct file **link = &files; *link; link = &(*link)->next) {
		struct file *file = *link;
		if (file->lines < lines || !is_same(file, status, path))
			continue;
		*link = file->next;
		put_first(file);
		return file;
	}
	return NULL;
}

static void drop(struct file **link)
{
	struct file *file = *link;
	*link = file->next;
	ky_functions_free(&file->functions);
	free(file);
}

static uint64_t size_of(const struct ky_functions *functions)
{
	return functions->count * sizeof(functions->functions[0]) +
	       ky_functions_own_size(functions->private_data);
}

/* Free unused ones beyond that count and those bytes. Return how many. */
static uint32_t trim(uint32_t count_max, uint64_t bytes_max)
{
	uint32_t count = 0, dropped = 0;
	uint64_t bytes = 0;
	for (struct file **link = &files; *link;) {
		const struct file *file = *link;
		if (!file->users) {
			count++;
			bytes += size_of(file->functions);
		}
		if (!file->users && (count > count_max || bytes > bytes_max)) {
			drop(link);
			dropped++;
		} else {
			link = &(*link)->next;
		}
	}
	return dropped;
}

int ky_functions_share(const struct ky_functions **functions, int fd, const char *path, bool lines,
		       char message[KY_MESSAGE_BYTES])
{
	struct stat status = {0};
	const bool known = fstat(fd, &status) == 0;
	struct file *file = known ? find(&status, path, lines) : NULL;
	*functions = NULL;
	if (!file) {
		struct ky_functions *fresh;
		const int error = ky_functions_read(&fresh, fd, path, lines, message);
		if (error)
			return error;
		file = malloc(sizeof(*file));
		if (!file) {
			ky_functions_free(&fresh);
			return ky_functions_fail(message, path, -ENOMEM);
		}
		*file = (struct file){.functions = fresh, .status = status, .lines = lines};
		put_first(file);
	}
	file->users++;
	*functions = file->functions;
	return 0;
}

void ky_functions_unshare(const struct ky_functions **functions)
{
	for (struct file *file = files; *functions && file; file = file->next) {
		if (file->functions != *functions)
			continue;
		file->users--;
		*functions = NULL;
	}
	(void)trim(IDLE_MAX, IDLE_BYTES_MAX);
}

uint32_t ky_functions_shared_clear(void)
{
	return trim(0, 0);
}
