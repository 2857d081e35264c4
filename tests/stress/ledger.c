/* SPDX-License-Identifier: MIT */
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* More in one stream than any round records. */
#define NUMBERS_MAX (UINT64_C(1) << 32)

void make_text(char text[TEXT_BYTES], uint32_t stream, uint64_t number)
{
	const size_t bytes = checksum(stream, number) % (TEXT_BYTES - 1);
	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)('a' + (number + i) % 26);
	text[bytes] = '\0';
}

/* Most of it stays untouched. */
struct tally *tally_open(void)
{
	struct tally *tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return tally == MAP_FAILED ? NULL : tally;
}

void tally_close(struct tally *tally)
{
	tally_clear(tally);
	munmap(tally, sizeof(*tally));
}

void tally_clear(struct tally *tally)
{
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		free(tally->streams[i].bits);
	memset(tally, 0, sizeof(*tally));
}

static bool make_room(struct tally_stream *s, uint64_t number)
{
	if (number / 64 < s->words)
		return true;
	const uint64_t words = (number / 64 + 1) * 2;
	uint64_t *bits = realloc(s->bits, words * sizeof(*bits));
	if (!bits)
		return false;
	memset(bits + s->words, 0, (words - s->words) * sizeof(*bits));
	s->bits = bits;
	s->words = words;
	return true;
}

void tally_note(struct tally *tally, uint64_t stream, uint64_t number, uint64_t check)
{
	tally->events++;
	if (stream >= STREAMS_MAX || number >= NUMBERS_MAX ||
	    check != checksum((uint32_t)stream, number) ||
	    !make_room(&tally->streams[stream], number)) {
		tally->wrong++;
		return;
	}
	struct tally_stream *s = &tally->streams[stream];
	const uint64_t bit = UINT64_C(1) << (number % 64);
	if (s->bits[number / 64] & bit)
		tally->duplicates++;
	s->bits[number / 64] |= bit;
	s->first = s->count && s->first < number ? s->first : number;
	s->last = s->last > number ? s->last : number;
	s->count++;
}

static bool text_is_right(const struct ky_event *e)
{
	char text[TEXT_BYTES];
	if (e->args_count == 3)
		return true;
	make_text(text, (uint32_t)e->args[0].value.u, e->args[1].value.u);
	return e->args_count == 4 && e->args[3].string && strcmp(e->args[3].string, text) == 0;
}

void tally_event(void *context, const struct ky_event *e)
{
	struct tally *tally = context;
	if (e->kind == KYMO_KIND_LOST) {
		tally->lost += e->id;
		return;
	}
	if (e->kind != KYMO_KIND_INSTANT || e->args_count < 3 || !text_is_right(e)) {
		tally->events++;
		tally->wrong++;
		return;
	}
	tally->late += e->time_ns < tally->last_ns;
	tally->last_ns = e->time_ns;
	tally_note(tally, e->args[0].value.u, e->args[1].value.u, e->args[2].value.u);
}

bool tally_json(struct tally *tally, const char *path)
{
	char line[1024];
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, "\"stream\":");
		unsigned long long stream, number, check;
		const size_t bytes = strlen(line);
		/* The last line may be cut off. */
		if (!at || (line[bytes - 1] != '\n' && line[bytes - 1] != '}'))
			continue;
		if (sscanf(at, "\"stream\":%llu,\"number\":%llu,\"check\":%llu", &stream, &number,
			   &check) == 3)
			tally_note(tally, stream, number, check);
		else
			tally->wrong++;
	}
	fclose(file);
	return true;
}
