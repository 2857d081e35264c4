/* SPDX-License-Identifier: MIT */
/*
 * functions_segments.c: see functions_parts.h. Reads the bytes that the file has in memory instead of mapping them: a
 * file that is cut short in the meantime gives zeros and no SIGBUS. Data is only needed to look for tables: it is
 * read then, and freed afterwards.
 */
#include "base/file.h"
#include "functrace/functions_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXTS_BYTES (256u * 1024)
/* times its bytes: readable names are longer, but symbols may share theirs */
#define TEXTS_OF_FILE 8u

struct ky_functions_texts {
	struct ky_functions_texts *next;
	size_t used;
	char bytes[TEXTS_BYTES];
};

static bool overlaps(const struct ky_functions_own *own, const GElf_Phdr *head)
{
	for (uint32_t i = 0; i < own->segments_count; i++) {
		const struct ky_functions_segment *segment = &own->segments[i];
		if (head->p_vaddr < segment->address + segment->bytes &&
		    segment->address < head->p_vaddr + head->p_filesz)
			return true;
	}
	return false;
}

/*
 * Report whether a segment is sound. Hostile files have segments beyond their end, over the end of all addresses, or
 * the same bytes many times.
 */
static bool is_sound(const struct ky_functions_own *own, const GElf_Phdr *head, uint64_t file_bytes,
		     uint64_t *left)
{
	if (head->p_type != PT_LOAD || !head->p_filesz || head->p_offset > file_bytes ||
	    head->p_filesz > file_bytes - head->p_offset || head->p_vaddr >> 62 ||
	    head->p_filesz > *left || overlaps(own, head))
		return false;
	*left -= head->p_filesz;
	return own->segments_count < KY_FUNCTIONS_SEGMENTS_MAX;
}

static bool add(struct ky_functions_reading *reading, const GElf_Phdr *head)
{
	struct ky_functions_own *own = reading->own;
	struct ky_functions *out = reading->out;
	uint8_t *data = calloc(1, head->p_filesz);
	if (!data)
		return false;
	(void)ky_file_pread_all(reading->fd, data, head->p_filesz, head->p_offset);
	const bool is_code = head->p_flags & PF_X;
	own->segments[own->segments_count++] =
		(struct ky_functions_segment){head->p_vaddr, head->p_filesz, data, is_code};
	if (is_code)
		out->code[out->code_count++] =
			(struct ky_code_range){head->p_vaddr, head->p_filesz};
	return true;
}

static bool add_all(struct ky_functions_reading *reading, bool is_code)
{
	struct stat status;
	size_t count;
	if (fstat(reading->fd, &status) != 0 || elf_getphdrnum(reading->elf, &count) != 0)
		return true;
	uint64_t left = 2 * (uint64_t)status.st_size;
	if (is_code)
		reading->own->texts_left = TEXTS_OF_FILE * (uint64_t)status.st_size + TEXTS_BYTES;
	for (size_t i = 0; i < count && i < 1024; i++) {
		GElf_Phdr head;
		if (gelf_getphdr(reading->elf, (int)i, &head) &&
		    is_code == ((head.p_flags & PF_X) != 0) &&
		    is_sound(reading->own, &head, (uint64_t)status.st_size, &left) &&
		    !add(reading, &head))
			return false;
	}
	return true;
}

bool ky_functions_segments(struct ky_functions_reading *reading)
{
	reading->out->code = calloc(KY_FUNCTIONS_SEGMENTS_MAX, sizeof(*reading->out->code));
	return reading->out->code && add_all(reading, true);
}

void ky_functions_segments_data(struct ky_functions_reading *reading)
{
	if (!reading->has_data && !add_all(reading, false))
		reading->without_memory = true;
	reading->has_data = true;
}

void ky_functions_segments_forget_data(struct ky_functions_own *own)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < own->segments_count; i++) {
		if (own->segments[i].is_code)
			own->segments[kept++] = own->segments[i];
		else
			free(own->segments[i].data);
	}
	own->segments_count = kept;
}

void ky_functions_own_free(struct ky_functions_own *own)
{
	if (!own)
		return;
	for (uint32_t i = 0; i < own->segments_count; i++)
		free(own->segments[i].data);
	while (own->texts) {
		struct ky_functions_texts *next = own->texts->next;
		free(own->texts);
		own->texts = next;
	}
	if (own->instruction)
		cs_free(own->instruction, 1);
	if (own->capstone)
		cs_close(&own->capstone);
	free(own);
}

uint64_t ky_functions_own_size(const struct ky_functions_own *own)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < own->segments_count; i++)
		bytes += own->segments[i].bytes;
	for (const struct ky_functions_texts *texts = own->texts; texts; texts = texts->next)
		bytes += sizeof(*texts);
	return bytes;
}

const uint8_t *ky_functions_bytes(const struct ky_functions_own *own, uint64_t address,
				  bool is_code, uint64_t *bytes)
{
	for (uint32_t i = 0; i < own->segments_count; i++) {
		const struct ky_functions_segment *segment = &own->segments[i];
		if (address < segment->address || address - segment->address >= segment->bytes ||
		    (is_code && !segment->is_code))
			continue;
		*bytes = segment->bytes - (address - segment->address);
		return segment->data + (address - segment->address);
	}
	*bytes = 0;
	return NULL;
}

const char *ky_functions_text(struct ky_functions_own *own, const char *text, size_t bytes)
{
	if (bytes >= TEXTS_BYTES)
		bytes = TEXTS_BYTES - 1;
	if (own->texts_left < bytes)
		return NULL;
	own->texts_left -= bytes;
	if (!own->texts || own->texts->used + bytes + 1 > TEXTS_BYTES) {
		struct ky_functions_texts *piece = malloc(sizeof(*piece));
		if (!piece)
			return NULL;
		piece->next = own->texts;
		piece->used = 0;
		own->texts = piece;
	}
	char *copy = own->texts->bytes + own->texts->used;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	own->texts->used += bytes + 1;
	return copy;
}

bool ky_functions_in(const struct ky_functions_ranges *ranges, uint64_t address)
{
	for (uint32_t i = 0; i < ranges->count; i++) {
		if (address >= ranges->items[i].from &&
		    address - ranges->items[i].from < ranges->items[i].bytes)
			return true;
	}
	return false;
}
