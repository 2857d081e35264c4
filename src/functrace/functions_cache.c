/* SPDX-License-Identifier: MIT */
/*
 * functions_cache.c: keeps the results of the scan of a large file: $XDG_CACHE_HOME/kymo/functions, else under
 * ~/.cache, one file for each path, so that a program that is built again replaces its older version.
 *
 *   struct head        identifies the file: build id, and a hash over its code and all that was known before the scan
 *   struct entry[]     one for each function, by address
 *
 * The cache decides where a program is patched: kymo does not read a file that another user could have written, nor
 * one whose hash is wrong. A build id does not identify the code: some are the same for all builds, and tools change
 * files and leave it. A failure to write it is not reported: it only costs time.
 */
#include "base/file.h"
#include "functrace/functions_parts.h"

#include "functrace/prologue.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
