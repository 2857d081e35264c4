/* SPDX-License-Identifier: MIT */
/*
 * search.c: finds the events that have a text in their name, category or arguments.
 *
 *   text ──▶ where to look, needle ──▶ strings: each is compared once ──▶ argument sets ──▶ slices
 *
 * Both sides are folded to Unicode's lower case. A number is formatted only if the needle could be part of one. The result is
 * one bit per row, so that the trace bounds the memory, not the number of matches.
 */
#include "server/search.h"

#include "base/array.h"
#include "core/utf8_scan.h"
#include "server/api.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

/* ---- case folding ---- */

struct fold {
	locale_t locale; /* 0: folds ASCII only */
	char *text;      /* the last folded text */
	size_t bytes, room;
};

static char fold_ascii(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static void open_fold(struct fold *fold)
{
	*fold = (struct fold){.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0)};
}

static void close_fold(struct fold *fold)
{
	if (fold->locale)
		freelocale(fold->locale);
	KY_ARRAY_FREE(fold->text, fold->room);
	*fold = (struct fold){0};
}

static uint32_t decode(const uint8_t *s, size_t bytes)
{
	uint32_t code = bytes == 2 ? s[0] & 0x1fu : bytes == 3 ? s[0] & 0x0fu : s[0] & 0x07u;
	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (s[i] & 0x3fu);
	return code;
}

static size_t encode(uint32_t code, char *to)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	const size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
		to[i] = (char)(0x80 | (code & 0x3f));
	to[0] = (char)((bytes == 2 ? 0xc0u : bytes == 3 ? 0xe0u : 0xf0u) | code);
	return bytes;
}

/* Append one character in lower case, and return how many bytes it had. */
static size_t fold_one(struct fold *fold, const uint8_t *s, const uint8_t *end)
{
	const size_t bytes = *s < 0x80 ? 1 : ky_utf8_sequence(s, end);
	char *const to = fold->text + fold->bytes;
	if (bytes > 1 && fold->locale) {
		fold->bytes +=
			encode((uint32_t)towlower_l((wint_t)decode(s, bytes), fold->locale), to);
		return bytes;
	}
	to[0] = fold_ascii((char)*s);
	fold->bytes++;
	return 1;
}

/* A lower-case character may be longer than its upper case: at most twice. */
static bool fold_text(struct fold *fold, const char *text, size_t bytes)
{
	const uint8_t *s = (const uint8_t *)text;
	const uint8_t *const end = s + bytes;
	if (!KY_ARRAY_GROW(fold->text, fold->room, bytes * 2 + 8) || !fold->text)
		return false;
	fold->bytes = 0;
	while (s < end)
		s += fold_one(fold, s, end);
	return true;
}

/* Rows between checks whether to stop. */
#define CHECK_EVERY 65536u
#define NAMES_MAX 65536u
#define TEXT_BYTES_MAX 4096u

/* ---- the request ---- */

enum { UNKNOWN, IN, OUT };

struct looking {
	struct ky_api *api;
	const struct ky_trace *trace;
	struct ky_search *search;
	struct fold fold;
	char *needle; /* folded, unless exact */
	size_t needle_bytes;
	bool exact; /* the needle is all of a name */
	bool names, categories, args;
	const char *key; /* of arguments; NULL: all */
	size_t key_bytes;
	bool source;                          /* also match source locations */
	bool whole, hexadecimal, real;        /* the needle could be part of such a number */
	uint8_t *by_name, *by_value, *by_key; /* of each string */
	struct ky_search_hits sets;           /* of arguments */
	uint64_t *counts;                     /* by track of the view */
	uint64_t *firsts;
	int error;
};

static bool contains(struct looking *looking, const char *text, size_t bytes)
{
	if (looking->exact)
		return bytes == looking->needle_bytes && memcmp(text, looking->needle, bytes) == 0;
	if (bytes * 2 < looking->needle_bytes)
		return false;
	if (!fold_text(&looking->fold, text, bytes)) {
		looking->error = -ENOMEM;
		return false;
	}
	return memmem(looking->fold.text, looking->fold.bytes, looking->needle,
		      looking->needle_bytes) != NULL;
}

/* Report whether a string contains the needle; compares each string once. */
static bool string_in(struct looking *looking, uint8_t *known, uint32_t string)
{
	if (known[string] == UNKNOWN)
		known[string] =
			string && contains(looking, ky_text_of(looking->trace, string),
					   ky_strings_bytes(&looking->trace->strings, string))
				? IN
				: OUT;
	return known[string] == IN;
}

static bool only_of(const char *text, size_t bytes, const char *characters)
{
	for (size_t i = 0; i < bytes; i++) {
		if (!strchr(characters, text[i]) || !text[i])
			return false;
	}
	return true;
}

/* Report whether a text begins with another, ignoring the case of ASCII. */
static bool begins(const char *text, const char *with, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (fold_ascii(text[i]) != fold_ascii(with[i]))
			return false;
	}
	return true;
}

static const char *skip_prefix(const char *text, const char *prefix)
{
	const size_t bytes = strlen(prefix);
	return begins(text, prefix, bytes) ? text + bytes : NULL;
}

/* Read "name:", "name=", "category:", "arg:" or "arg.KEY:", and return the text after it. */
static const char *read_prefix(struct looking *looking, const char *text)
{
	const char *rest;
	looking->names = looking->args = true;
	looking->exact = skip_prefix(text, "name=") != NULL;
	if ((rest = skip_prefix(text, looking->exact ? "name=" : "name:"))) {
		looking->args = false;
		return rest;
	}
	if ((rest = skip_prefix(text, "category:"))) {
		looking->names = looking->args = false;
		looking->categories = true;
		return rest;
	}
	if ((rest = skip_prefix(text, "arg:"))) {
		looking->names = false;
		looking->source = true;
		return rest;
	}
	const char *const key = skip_prefix(text, "arg.");
	const char *const colon = key ? strchr(key, ':') : NULL;
	if (!colon || colon == key)
		return text;
	looking->names = false;
	looking->source = true;
	looking->key = key;
	looking->key_bytes = (size_t)(colon - key);
	return colon + 1;
}

static int read_text(struct looking *looking, const char *text)
{
	const char *const wanted = read_prefix(looking, text);
	const size_t bytes = strnlen(wanted, TEXT_BYTES_MAX);
	if (!fold_text(&looking->fold, wanted, bytes))
		return -ENOMEM;
	looking->needle_bytes = looking->exact ? bytes : looking->fold.bytes;
	looking->needle = malloc(looking->needle_bytes + 1);
	if (!looking->needle)
		return -ENOMEM;
	memcpy(looking->needle, looking->exact ? wanted : looking->fold.text,
	       looking->needle_bytes);
	looking->whole = only_of(looking->needle, looking->needle_bytes, "-0123456789");
	looking->hexadecimal = only_of(looking->needle, looking->needle_bytes, "0123456789abcdefx");
	looking->real = only_of(looking->needle, looking->needle_bytes, "-+.0123456789einfa");
	return 0;
}

static int open_looking(struct looking *looking, const char *text)
{
	const size_t strings = (size_t)looking->trace->strings.count + 1;
	open_fold(&looking->fold);
	looking->by_name = calloc(strings, 1);
	looking->by_value = calloc(strings, 1);
	looking->by_key = calloc(strings, 1);
	looking->counts =
		calloc((size_t)looking->api->view->tracks_count + 1, sizeof(*looking->counts));
	looking->firsts =
		calloc((size_t)looking->api->view->tracks_count + 1, sizeof(*looking->firsts));
	if (!looking->by_name || !looking->by_value || !looking->by_key || !looking->counts ||
	    !looking->firsts)
		return -ENOMEM;
	return read_text(looking, text);
}

static void close_looking(struct looking *looking)
{
	close_fold(&looking->fold);
	free(looking->needle);
	free(looking->by_name);
	free(looking->by_value);
	free(looking->by_key);
	free(looking->counts);
	free(looking->firsts);
	ky_search_hits_free(&looking->sets);
}

static bool goes_on(struct looking *looking, uint32_t at)
{
	if (at % CHECK_EVERY == 0 && ky_api_stopping(looking->api))
		looking->error = -EINTR;
	return !looking->error;
}

/* ---- arguments ---- */

static bool is_key(const struct looking *looking, const char *key)
{
	return begins(key, looking->key, looking->key_bytes) && !key[looking->key_bytes];
}

static bool key_fits(const struct looking *looking, uint32_t arg)
{
	const char *const plain = ky_api_text_arg_key(looking->trace, arg);
	const char *const full = ky_text_of(looking->trace, looking->trace->args.key[arg]);
	if (!looking->source && ky_api_text_is_source(plain))
		return false;
	return !looking->key || is_key(looking, plain) || (full && is_key(looking, full));
}

static bool key_in(struct looking *looking, uint32_t arg)
{
	uint8_t *const known = &looking->by_key[looking->trace->args.key[arg]];
	if (*known == UNKNOWN)
		*known = key_fits(looking, arg) ? IN : OUT;
	return *known == IN;
}

static bool value_in(struct looking *looking, uint32_t arg)
{
	char room[KY_ARG_ROOM];
	size_t bytes;
	const uint8_t type = looking->trace->args.type[arg];
	if (type == KY_ARG_STRING || type == KY_ARG_JSON)
		return string_in(looking, looking->by_value,
				 (uint32_t)looking->trace->args.value[arg]);
	if (((type == KY_ARG_INT || type == KY_ARG_UINT) && !looking->whole) ||
	    (type == KY_ARG_POINTER && !looking->hexadecimal) ||
	    (type == KY_ARG_REAL && !looking->real))
		return false;
	const char *const text = ky_api_text_arg(looking->trace, arg, room, &bytes);
	return contains(looking, text, bytes);
}

static int find_sets(struct looking *looking)
{
	const struct ky_trace *const trace = looking->trace;
	const uint32_t sets = trace->arg_sets.rows.count;
	if (ky_search_hits_open(&looking->sets, sets) != 0)
		return -ENOMEM;
	for (uint32_t set = 1; set < sets && goes_on(looking, set); set++) {
		const uint32_t end = ky_arg_set_end(trace, set);
		for (uint32_t i = ky_arg_set_first(trace, set); i < end; i++) {
			if (!key_in(looking, i) || !value_in(looking, i))
				continue;
			ky_search_hits_add(&looking->sets, set);
			break;
		}
	}
	return looking->error;
}

/* ---- slices and samples ---- */

static bool slice_in(struct looking *looking, uint32_t slice)
{
	const struct ky_slices *const slices = &looking->trace->slices;
	if (looking->names && string_in(looking, looking->by_name, slices->name[slice]))
		return true;
	if (looking->categories && string_in(looking, looking->by_value, slices->category[slice]))
		return true;
	return looking->args && slices->args[slice] &&
	       ky_search_hits_has(&looking->sets, slices->args[slice]);
}

static void count_track(struct looking *looking, uint32_t track, uint64_t row)
{
	if (track != KY_NONE && looking->counts[track]++ == 0)
		looking->firsts[track] = row;
}

static int find_slices(struct looking *looking)
{
	const struct ky_slices *const slices = &looking->trace->slices;
	struct ky_search_hits *const hits = &looking->search->slices;
	if (ky_search_hits_open(hits, slices->rows.count) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < slices->rows.count && goes_on(looking, i); i++) {
		if (!slice_in(looking, i))
			continue;
		ky_search_hits_add(hits, i);
		count_track(looking, looking->api->view->track_of[slices->track[i]], i);
	}
	ky_search_hits_seal(hits);
	return looking->error;
}

/* Distinguishes rows of sample spans from those of slices. */
#define SPAN (UINT64_C(1) << 32)

static int find_spans(struct looking *looking)
{
	const struct ky_view *const view = looking->api->view;
	struct ky_search_hits *const hits = &looking->search->spans;
	if (ky_search_hits_open(hits, view->sample_spans.count) != 0 ||
	    ky_search_hits_order(looking->api) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; looking->names && i < view->sample_spans.count && goes_on(looking, i);
	     i++) {
		struct ky_view_place place;
		const uint32_t row = looking->api->searches.order[i];
		const uint32_t frame = view->sample_spans.frame[row];
		if (frame >= looking->trace->frames.rows.count ||
		    !string_in(looking, looking->by_name, looking->trace->frames.name[frame]))
			continue;
		ky_search_hits_add(hits, i);
		if (ky_view_place(view, KY_VIEW_SAMPLES, row, &place))
			count_track(looking, place.track, SPAN | i);
	}
	ky_search_hits_seal(hits);
	return looking->error;
}

/* ---- the result ---- */

static int keep_names(struct looking *looking)
{
	struct ky_search *const search = looking->search;
	const uint32_t strings = looking->trace->strings.count;
	uint32_t count = 0;
	for (uint32_t i = 0; i < strings; i++)
		count += looking->by_name[i] == IN;
	count = count < NAMES_MAX ? count : NAMES_MAX;
	search->names = malloc(((size_t)count + 1) * sizeof(*search->names));
	if (!search->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < strings && search->names_count < count; i++) {
		if (looking->by_name[i] == IN)
			search->names[search->names_count++] = i;
	}
	return 0;
}

static uint64_t number_of(const struct looking *looking, uint64_t first)
{
	return ky_search_hits_number(looking->search, looking->api,
				     first & SPAN ? KY_VIEW_SAMPLES : KY_VIEW_SLICES,
				     (uint32_t)first);
}

static int keep_tracks(struct looking *looking)
{
	struct ky_search *const search = looking->search;
	const uint32_t tracks = looking->api->view->tracks_count;
	uint32_t count = 0;
	for (uint32_t i = 0; i < tracks; i++)
		count += looking->counts[i] != 0;
	search->tracks = malloc(((size_t)count + 1) * sizeof(*search->tracks));
	if (!search->tracks)
		return -ENOMEM;
	for (uint32_t i = 0; i < tracks; i++) {
		if (looking->counts[i])
			search->tracks[search->tracks_count++] = (struct ky_search_track){
				i, looking->counts[i], number_of(looking, looking->firsts[i])};
	}
	return 0;
}

int ky_search_run(struct ky_search *search, struct ky_api *api, const char *text)
{
	struct looking looking = {.api = api, .trace = api->view->trace, .search = search};
	*search = (struct ky_search){.text = strdup(text)};
	int error = search->text ? open_looking(&looking, text) : -ENOMEM;
	/* An empty text matches nothing. */
	if (!error && !looking.needle_bytes)
		looking.names = looking.categories = looking.args = false;
	if (!error && looking.args)
		error = find_sets(&looking);
	if (!error)
		error = find_slices(&looking);
	if (!error)
		error = find_spans(&looking);
	if (!error)
		error = keep_names(&looking);
	if (!error)
		error = keep_tracks(&looking);
	close_looking(&looking);
	if (error)
		ky_search_free(search);
	return error;
}

void ky_search_free(struct ky_search *search)
{
	free(search->text);
	free(search->names);
	free(search->tracks);
	ky_search_hits_free(&search->slices);
	ky_search_hits_free(&search->spans);
	*search = (struct ky_search){0};
}
