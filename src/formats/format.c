/* SPDX-License-Identifier: MIT */
/*
 * format.c: the array of output formats, and how to find one. A compressed format is the plain one
 * with a compressing sink behind it, so it has an id and a suffix of its own, but no writer.
 */
#include "formats/format.h"

const struct ky_format *const ky_formats[] = {
	&ky_format_json, &ky_format_pftrace, &ky_format_fxt, &ky_format_kymo, NULL,
};

/* The writer's id for an id that says how the output is compressed too. */
static int plain_id(int id)
{
	switch (id) {
	case KYMO_FORMAT_JSON_GZ:
		return KYMO_FORMAT_JSON;
	case KYMO_FORMAT_FXT_GZ:
		return KYMO_FORMAT_FXT;
	default:
		return id;
	}
}

const struct ky_format *ky_format_by_id(int id)
{
	const int plain = plain_id(id);
	for (size_t i = 0; ky_formats[i]; i++)
		if (ky_formats[i]->id == plain)
			return ky_formats[i];
	return NULL;
}

/* Whether path ends in suffix and has something before it. */
static bool ends_in(const char *path, const char *suffix)
{
	const size_t path_bytes = strlen(path);
	const size_t suffix_bytes = strlen(suffix);
	return path_bytes > suffix_bytes &&
	       memcmp(path + path_bytes - suffix_bytes, suffix, suffix_bytes) == 0;
}

int ky_format_by_name(const char *path)
{
	if (ends_in(path, ".json.gz"))
		return KYMO_FORMAT_JSON_GZ;
	if (ends_in(path, ".fxt.gz"))
		return KYMO_FORMAT_FXT_GZ;
	for (size_t i = 0; ky_formats[i]; i++)
		if (ends_in(path, ky_formats[i]->suffix))
			return ky_formats[i]->id;
	return 0;
}
