/* SPDX-License-Identifier: MIT */
/* notice.c: one line on standard error, without harm: no signal, no wait, not into another file. */
#include "core/notice.h"

#include "core/drum.h"
#include "os/os.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024u
/* A value is shown up to here: the rest of the line must fit. */
#define VALUE_BYTES 512u

static uint64_t stderr_identity;  /* 0: keep silent */
static _Atomic uint32_t reported; /* a bit for each variable; the drum has those of all copies */

void ky_notice_prepare(void)
{
	const char *quiet = secure_getenv("KYMO_QUIET");
	if (!quiet || !*quiet || strcmp(quiet, "0") == 0)
		stderr_identity = ky_os_identity(STDERR_FILENO);
}

struct notice_line {
	char text[LINE_BYTES];
	size_t used;
};

/* Add text up to its end or max bytes. Control characters would move the terminal's cursor. */
static void add(struct notice_line *line, const char *text, size_t max)
{
	for (; *text && max > 0 && line->used < LINE_BYTES - 1; text++, max--)
		line->text[line->used++] = (unsigned char)*text < ' ' ? '?' : *text;
}

void ky_notice(enum ky_notice_variable variable, const char *value, const char *cause,
	       const char *remedy)
{
	static const char *const names[] = {
#define NAME(constant, name) [constant] = (name),
		KY_NOTICE_VARIABLES(NAME)
#undef NAME
	};
	const uint32_t bit = 1u << variable;
	const struct ky_drum *drum = ky_drum_peek();
	if (stderr_identity == 0 || atomic_fetch_or(&reported, bit) & bit ||
	    (drum && __atomic_fetch_or(&drum->header->reported, bit, __ATOMIC_RELAXED) & bit))
		return;
	struct notice_line line = {.used = 0};
	add(&line, "kymo: ", LINE_BYTES);
	add(&line, names[variable], LINE_BYTES);
	add(&line, "=", 1);
	add(&line, value ? value : "", VALUE_BYTES);
	add(&line, ": ", 2);
	add(&line, cause, LINE_BYTES);
	if (remedy)
		add(&line, ": ", 2);
	add(&line, remedy ? remedy : "", LINE_BYTES);
	line.text[line.used++] = '\n';
	ky_os_report(line.text, line.used, stderr_identity);
}

const char *ky_notice_drum_cause(int error)
{
	switch (error) {
	case -EFBIG:
		return "the shared memory for events is larger than a file may be (RLIMIT_FSIZE)";
	case -EMFILE:
	case -ENFILE:
		return "no descriptor is left for the shared memory for events";
	case -ENOMEM:
		return "there is no address space for the shared memory for events";
	case -ENOSPC:
		return "no space is left for the shared memory for events";
	case -ENOENT:
	case -ENOTDIR:
		return "there is no such directory for the shared memory for events";
	case -EACCES:
	case -EROFS:
		return "a file for the shared memory for events may not be made there";
	default:
		return "the shared memory for events is forbidden here, perhaps by seccomp";
	}
}

const char *ky_notice_drum_remedy(int error, bool dir)
{
	switch (error) {
	case -EFBIG:
		return "raise it (ulimit -f unlimited)";
	case -EMFILE:
	case -ENFILE:
		return "raise RLIMIT_NOFILE (ulimit -n)";
	case -ENOMEM:
		return "raise RLIMIT_AS (ulimit -v), or set KYMO_LIMITS=total=16M";
	case -ENOSPC:
		return "free some, or set KYMO_LIMITS=total=16M";
	case -ENOENT:
	case -ENOTDIR:
		return "make the directory first";
	case -EACCES:
	case -EROFS:
		return "choose a directory that this user may write to";
	default:
		return dir ? "choose another directory"
			   : "allow memfd_create, ftruncate, fcntl and mmap, or set KYMO_DRUM_DIR";
	}
}
