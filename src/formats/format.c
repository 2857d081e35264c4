/* SPDX-License-Identifier: MIT */
/*
 * format.c: finds an output format. A compressed format is the plain one with a compressing sink behind it: it has
 * an id and a suffix of its own, but no writer.
 */
#include "formats/format.h"

#define FORMAT(name) &ky_format_##name,
static const struct ky_format *const formats[] = {KY_FORMATS_WRITTEN(FORMAT, ) NULL};

/* Return the id without compression. */
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
	for (size_t i = 0; formats[i]; i++)
		if (formats[i]->id == plain)
			return formats[i];
	return NULL;
}

/* Report whether path ends in suffix and has something before it. */
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
	for (size_t i = 0; formats[i]; i++)
		if (ends_in(path, formats[i]->suffix))
			return formats[i]->id;
	return ends_in(path, KY_FORMAT_PERFETTO_SUFFIX) ? KYMO_FORMAT_PFTRACE : 0;
}
