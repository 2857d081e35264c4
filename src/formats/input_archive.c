/* SPDX-License-Identifier: MIT */
/*
 * input_archive.c: zip archives, as Chrome and catapult pack traces.
 *
 *   ┌ local head │ data ┐┌ local head │ data ┐ ... ┌ central directory ┐┌ end of it ┐
 *                                              ╰──── where they are ────╯
 *
 * The central directory tells where the members are. Without one (an archive that is cut off) the local
 * heads do, one after the other, as far as each says how long its data is. Only stored and deflated
 * members can be read. No number of an archive is trusted: each is checked where it is used.
 */
#include "formats/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_MAGIC 0x04034b50u
#define CENTRAL_MAGIC 0x02014b50u
#define END_MAGIC 0x06054b50u
#define END64_MAGIC 0x06064b50u
#define LOCATOR64_MAGIC 0x07064b50u
#define LOCAL_BYTES 30u
#define CENTRAL_BYTES 46u
#define END_BYTES 22u
#define END64_BYTES 56u
#define LOCATOR64_BYTES 20u

#define MEMBERS_MAX 4096u
#define DIRECTORY_BYTES_MAX (16u << 20)

#define FLAG_ENCRYPTED 1u
#define FLAG_SIZES_BEHIND 8u
#define METHOD_STORED 0
#define METHOD_DEFLATED 8

struct member {
	uint64_t head_at; /* local head */
	uint64_t packed_bytes;
	uint16_t flags;
	uint16_t method;
};

struct ky_archive {
	const struct ky_store *store;
	uint32_t count;
	struct member members[MEMBERS_MAX];
};

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const uint8_t *at)
{
	return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static uint64_t get64(const uint8_t *at)
{
	return get32(at) | (uint64_t)get32(at + 4) << 32;
}

/* All of them or false. */
static bool read_at(const struct ky_store *store, uint64_t at, uint8_t *to, size_t bytes)
{
	while (bytes) {
		const int64_t got = ky_store_read(store, at, to, bytes);
		if (got <= 0)
			return false;
		to += got;
		at += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return true;
}

bool ky_archive_is(const uint8_t *head, size_t bytes)
{
	return bytes >= 4 && (get32(head) == LOCAL_MAGIC || get32(head) == END_MAGIC);
}

static bool is_file(const char *name, size_t bytes)
{
	static const char resources[] = "__MACOSX/";
	if (!bytes || name[bytes - 1] == '/')
		return false;
	return bytes < sizeof(resources) || memcmp(name, resources, sizeof(resources) - 1) != 0;
}

static void add_member(struct ky_archive *archive, const struct member *member)
{
	if (archive->count < MEMBERS_MAX)
		archive->members[archive->count++] = *member;
}

/* The 64-bit sizes of an extra field, in the order of those that did not fit. */
static void widen(struct member *member, uint32_t unpacked, const uint8_t *extra, size_t bytes)
{
	while (bytes >= 4) {
		const size_t size = get16(extra + 2);
		const uint8_t *at = extra + 4;
		if (size > bytes - 4)
			return;
		if (get16(extra) == 1) {
			const uint8_t *const end = at + size;
			at += unpacked == UINT32_MAX ? 8 : 0;
			if (member->packed_bytes == UINT32_MAX && end - at >= 8) {
				member->packed_bytes = get64(at);
				at += 8;
			}
			if (member->head_at == UINT32_MAX && end - at >= 8)
				member->head_at = get64(at);
			return;
		}
		extra += 4 + size;
		bytes -= 4 + size;
	}
}

static void read_directory(struct ky_archive *archive, const uint8_t *at, size_t bytes)
{
	while (bytes >= CENTRAL_BYTES && get32(at) == CENTRAL_MAGIC) {
		const size_t name = get16(at + 28);
		const size_t extra = get16(at + 30);
		const size_t all = CENTRAL_BYTES + name + extra + get16(at + 32);
		if (all > bytes)
			return;
		struct member member = {.flags = get16(at + 8),
					.method = get16(at + 10),
					.packed_bytes = get32(at + 20),
					.head_at = get32(at + 42)};
		widen(&member, get32(at + 24), at + CENTRAL_BYTES + name, extra);
		if (is_file((const char *)at + CENTRAL_BYTES, name))
			add_member(archive, &member);
		at += all;
		bytes -= all;
	}
}

/* Find the directory by the record at the archive's end. */
static bool find_directory(const struct ky_store *store, uint64_t *place, uint64_t *bytes)
{
	uint8_t tail[END_BYTES + UINT16_MAX];
	uint8_t wide[END64_BYTES];
	const size_t size = store->bytes < sizeof(tail) ? (size_t)store->bytes : sizeof(tail);
	const uint64_t tail_at = store->bytes - size;
	if (size < END_BYTES || !read_at(store, tail_at, tail, size))
		return false;
	size_t at = size - END_BYTES;
	while (get32(tail + at) != END_MAGIC)
		if (at-- == 0)
			return false;
	*bytes = get32(tail + at + 12);
	*place = get32(tail + at + 16);
	if (*place != UINT32_MAX || at < LOCATOR64_BYTES)
		return true;
	const uint8_t *const locator = tail + at - LOCATOR64_BYTES;
	if (get32(locator) != LOCATOR64_MAGIC ||
	    !read_at(store, get64(locator + 8), wide, sizeof(wide)) || get32(wide) != END64_MAGIC)
		return false;
	*bytes = get64(wide + 40);
	*place = get64(wide + 48);
	return true;
}

static int by_directory(struct ky_archive *archive)
{
	uint64_t at;
	uint64_t bytes;
	if (!find_directory(archive->store, &at, &bytes))
		return 0;
	if (bytes > DIRECTORY_BYTES_MAX)
		bytes = DIRECTORY_BYTES_MAX;
	if (at > archive->store->bytes || bytes > archive->store->bytes - at)
		return 0;
	uint8_t *directory = malloc(bytes ? (size_t)bytes : 1);
	if (!directory)
		return -ENOMEM;
	if (read_at(archive->store, at, directory, (size_t)bytes))
		read_directory(archive, directory, (size_t)bytes);
	free(directory);
	return 0;
}

static void by_local_heads(struct ky_archive *archive)
{
	uint8_t head[LOCAL_BYTES];
	char name[UINT16_MAX];
	uint64_t at = 0;
	while (archive->count < MEMBERS_MAX && read_at(archive->store, at, head, sizeof(head)) &&
	       get32(head) == LOCAL_MAGIC) {
		const size_t name_bytes = get16(head + 26);
		struct member member = {.head_at = at,
					.flags = get16(head + 6),
					.method = get16(head + 8),
					.packed_bytes = get32(head + 18)};
		if (!read_at(archive->store, at + LOCAL_BYTES, (uint8_t *)name, name_bytes))
			return;
		const bool open_end = (member.flags & FLAG_SIZES_BEHIND) && !member.packed_bytes;
		if (open_end)
			member.packed_bytes = UINT64_MAX;
		if (is_file(name, name_bytes))
			add_member(archive, &member);
		if (open_end)
			return;
		at += LOCAL_BYTES + name_bytes + get16(head + 28) + member.packed_bytes;
	}
}

int ky_archive_open(struct ky_archive **archive, const struct ky_store *store,
		    struct ky_damage *damage)
{
	struct ky_archive *made = malloc(sizeof(*made));
	*archive = NULL;
	if (!made)
		return -ENOMEM;
	made->store = store;
	made->count = 0;
	const int error = by_directory(made);
	if (!error && made->count == 0) {
		by_local_heads(made);
		if (made->count)
			ky_damage_note(damage, true, "the zip archive has no directory at its end");
	}
	if (error || made->count == 0) {
		free(made);
		return error ? error : -EBADMSG;
	}
	*archive = made;
	return 0;
}

void ky_archive_close(struct ky_archive **archive)
{
	free(*archive);
	*archive = NULL;
}

uint32_t ky_archive_count(const struct ky_archive *archive)
{
	return archive->count;
}

int ky_archive_member(const struct ky_archive *archive, uint32_t index, struct ky_feed **feed,
		      struct ky_damage *damage, uint64_t *taken)
{
	const struct member *member = &archive->members[index];
	uint8_t head[LOCAL_BYTES];
	*feed = NULL;
	if ((member->flags & FLAG_ENCRYPTED) ||
	    (member->method != METHOD_STORED && member->method != METHOD_DEFLATED))
		return -ENOTSUP;
	if (member->head_at > archive->store->bytes ||
	    !read_at(archive->store, member->head_at, head, sizeof(head)) ||
	    get32(head) != LOCAL_MAGIC)
		return -EBADMSG;
	const uint64_t at = member->head_at + LOCAL_BYTES + get16(head + 26) + get16(head + 28);
	const uint64_t end =
		member->packed_bytes > UINT64_MAX - at ? UINT64_MAX : at + member->packed_bytes;
	const int error = ky_feed_plain(feed, archive->store, at, end, taken);
	if (error || member->method == METHOD_STORED)
		return error;
	return ky_feed_unpack(feed, KY_PACKING_DEFLATE, damage);
}
