/* SPDX-License-Identifier: MIT */
/*
 * init.c: act when the library is loaded, when the process forks and when it ends. The environment is read here, once,
 * because getenv is not for signal handlers. A program that runs with more rights than its caller (set-user-ID) ignores
 * the caller's environment.
 *
 *   KYMO_CATEGORIES   globs: categories that are on from the start, even without a session
 *   KYMO_BUFFER       bytes of each thread's ring: 65536, 64k, 4M
 *   KYMO_LIMITS       total=BYTES,heap=BYTES,rings=N,categories=N
 *   KYMO_QUIET        report nothing about variables that cannot work
 *   KYMO_DRUM_DIR     the drum is a file in this directory and outlives the process
 *   KYMO_DRUM_FD      the drum is this descriptor, made by the parent
 *   KYMO_DRUM_MAIL    NAME:SECRET, a socket that gets a descriptor of the drum, and of forked children's drums
 */
#include "core/init.h"

#include "core/assert.h"
#include "core/clock.h"
#include "core/notice.h"
#include "core/slots.h"
#include "core/writer.h"
#include "os/os.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char ky_init_linked = 1;

/* Parse a number with an optional k, M or G; 0 if there is no number. *end is what follows. */
static uint64_t parse_bytes(const char *text, const char **end)
{
	uint64_t value = 0;
	for (; *text >= '0' && *text <= '9' && value < UINT64_C(1) << 40; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	static const char units[] = "kKmMgG";
	const char *unit = *text ? strchr(units, *text) : NULL;
	if (unit)
		text++;
	*end = text;
	return unit ? value << (10 * ((unit - units) / 2 + 1)) : value;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* Return false if there is no such limit. */
static bool set_limit(const char *name, size_t bytes, uint64_t value)
{
	if (value == 0)
		return false;
	if (bytes == 5 && memcmp(name, "total", 5) == 0)
		ky_limits.total_bytes = clamp(value, KY_RING_BYTES_MIN, UINT64_C(1) << 40);
	else if (bytes == 4 && memcmp(name, "heap", 4) == 0)
		ky_limits.heap_bytes = clamp(value, 16u << 10, 60u << 20);
	else if (bytes == 5 && memcmp(name, "rings", 5) == 0)
		ky_limits.rings_max = (uint32_t)clamp(value, 1, 1u << 16);
	else if (bytes == 10 && memcmp(name, "categories", 10) == 0)
		ky_limits.categories_max = (uint32_t)clamp(value, 1, 1u << 14);
	else
		return false;
	return true;
}

static void parse_limits(const char *text)
{
	const char *const whole = text;
	bool good = true;
	while (good && text && *text) {
		const char *equals = strchr(text, '=');
		const char *end = NULL;
		const uint64_t value = equals ? parse_bytes(equals + 1, &end) : 0;
		good = equals && set_limit(text, (size_t)(equals - text), value) &&
		       (*end == ',' || *end == '\0');
		text = good && *end == ',' ? end + 1 : NULL;
	}
	if (!good)
		ky_notice(KY_NOTICE_LIMITS, whole, "not a list of limits",
			  "use total=BYTES,heap=BYTES,rings=N,categories=N, with k, M or G");
}

static void parse_buffer(const char *text)
{
	const char *end;
	const uint64_t bytes = text ? parse_bytes(text, &end) : 0;
	if (bytes && *end == '\0')
		ky_limits.ring_bytes = bytes;
	else if (text && *text)
		ky_notice(KY_NOTICE_BUFFER, text, "not a size",
			  "use a number of bytes, with k, M or G: 64k, 4M");
}

/* Copy for good: a child may need it long after the program has changed its environment. */
static const char *copy_variable(const char *name)
{
	const char *value = secure_getenv(name);
	return value ? strdup(value) : NULL;
}

/* Name the variable that asked for the drum. Of the mailbox, which kymo sets, kymo itself tells. */
static void complain_of_drum(void)
{
	const int error = ky_drum_error();
	if (ky_limits.dir)
		ky_notice(KY_NOTICE_DRUM_DIR, ky_limits.dir, ky_notice_drum_cause(error),
			  ky_notice_drum_remedy(error, true));
	else if (ky_limits.categories)
		ky_notice(KY_NOTICE_CATEGORIES, ky_limits.categories, ky_notice_drum_cause(error),
			  ky_notice_drum_remedy(error, false));
}

static void parse_environment(void)
{
	parse_buffer(secure_getenv("KYMO_BUFFER"));
	parse_limits(secure_getenv("KYMO_LIMITS"));
	if (ky_limits.total_bytes < ky_limits.ring_bytes)
		ky_limits.total_bytes = ky_limits.ring_bytes;
	ky_limits.categories = copy_variable("KYMO_CATEGORIES");
	ky_limits.dir = copy_variable("KYMO_DRUM_DIR");
	ky_limits.mailbox = copy_variable("KYMO_DRUM_MAIL");
	const char *fd = secure_getenv("KYMO_DRUM_FD");
	const char *end;
	if (fd && *fd >= '0' && *fd <= '9')
		ky_limits.fd = (int)parse_bytes(fd, &end);
	/* Without a session nothing else would make the drum that a later reader expects. */
	if ((ky_limits.categories || ky_limits.dir || ky_limits.mailbox || ky_limits.fd >= 0) &&
	    !ky_drum_get())
		complain_of_drum();
}

static void mark_exit(void)
{
	struct ky_drum *drum = ky_drum_peek();
	if (!drum || drum->header->pid != (uint32_t)ky_os_pid())
		return;
	ky_clock_take(drum, true);
	/* Release: a recorder that sees it finds the last reading of the clocks and the last events. */
	__atomic_store_n(&drum->header->exited, 1, __ATOMIC_RELEASE);
}

static void (*child_hooks[4])(void);
static uint32_t child_hooks_count;

void ky_init_on_fork(void (*child)(void))
{
	KY_ASSERT(child_hooks_count < sizeof(child_hooks) / sizeof(child_hooks[0]));
	child_hooks[child_hooks_count++] = child;
}

/* The child makes its drum when it first needs one: a child that calls exec leaves no file behind. */
static void forked(void)
{
	ky_slots_after_fork();
	ky_drum_after_fork();
	ky_slots_leave();
	for (uint32_t i = 0; i < child_hooks_count; i++)
		child_hooks[i]();
}

__attribute__((constructor(101))) static void library_loaded(void)
{
	ky_notice_prepare();
	ky_os_ending_prepare();
	ky_slots_prepare();
#ifdef __x86_64__
	ky_writer_is_wide = ky_cpu_is_wide();
#endif
	pthread_atfork(ky_slots_before_fork, NULL, forked);
	at_quick_exit(mark_exit);
	parse_environment();
}

__attribute__((destructor(101))) static void library_unloaded(void)
{
	if (ky_os_ending())
		mark_exit();
	else
		ky_slots_unload();
}
