/* SPDX-License-Identifier: MIT */
/*
 * init.c: act when the library is loaded, when the process forks and when it ends. The environment is read here, once,
 * because getenv is not for signal handlers. A program that runs with more rights than its caller (set-user-ID) ignores
 * the caller's environment.
 *
 *   KYMO_CATEGORIES   globs: categories that are on from the start, even without a session
 *   KYMO_BUFFER       bytes of each thread's ring: 65536, 64k, 4M
 *   KYMO_LIMITS       total=BYTES,heap=BYTES,rings=N,categories=N
 *   KYMO_DRUM_DIR     the drum is a file in this directory and outlives the process
 *   KYMO_DRUM_FD      the drum is this descriptor, made by the parent
 *   KYMO_DRUM_MAIL    NAME:SECRET, a socket that gets a descriptor of the drum, and of forked children's drums
 */
#include "core/clock.h"
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

static void set_limit(const char *name, size_t bytes, uint64_t value)
{
	if (value == 0)
		return;
	if (bytes == 5 && memcmp(name, "total", 5) == 0)
		ky_limits.total_bytes = clamp(value, KY_RING_BYTES_MIN, UINT64_C(1) << 40);
	else if (bytes == 4 && memcmp(name, "heap", 4) == 0)
		ky_limits.heap_bytes = clamp(value, 16u << 10, 60u << 20);
	else if (bytes == 5 && memcmp(name, "rings", 5) == 0)
		ky_limits.rings_max = (uint32_t)clamp(value, 1, 1u << 16);
	else if (bytes == 10 && memcmp(name, "categories", 10) == 0)
		ky_limits.categories_max = (uint32_t)clamp(value, 1, 1u << 14);
}

static void parse_limits(const char *text)
{
	while (text && *text) {
		const char *equals = strchr(text, '=');
		if (!equals)
			return;
		const char *end;
		const uint64_t value = parse_bytes(equals + 1, &end);
		set_limit(text, (size_t)(equals - text), value);
		text = *end == ',' ? end + 1 : NULL;
	}
}

/* Copy for good: a child may need it long after the program has changed its environment. */
static const char *copy_variable(const char *name)
{
	const char *value = secure_getenv(name);
	return value ? strdup(value) : NULL;
}

static void parse_environment(void)
{
	const char *end;
	const char *buffer = secure_getenv("KYMO_BUFFER");
	if (buffer && parse_bytes(buffer, &end))
		ky_limits.ring_bytes = parse_bytes(buffer, &end);
	parse_limits(secure_getenv("KYMO_LIMITS"));
	if (ky_limits.total_bytes < ky_limits.ring_bytes)
		ky_limits.total_bytes = ky_limits.ring_bytes;
	ky_limits.categories = copy_variable("KYMO_CATEGORIES");
	ky_limits.dir = copy_variable("KYMO_DRUM_DIR");
	ky_limits.mailbox = copy_variable("KYMO_DRUM_MAIL");
	const char *fd = secure_getenv("KYMO_DRUM_FD");
	if (fd && *fd >= '0' && *fd <= '9')
		ky_limits.fd = (int)parse_bytes(fd, &end);
	/* Without a session nothing else would make the drum that a later reader expects. */
	if (ky_limits.categories || ky_limits.dir || ky_limits.mailbox || ky_limits.fd >= 0)
		ky_drum_get();
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

/* The child makes its drum when it first needs one: a child that calls exec leaves no file behind. */
static void forked(void)
{
	ky_drum_after_fork();
	ky_writer_leave();
}

__attribute__((constructor(101))) static void library_loaded(void)
{
	ky_writer_prepare();
	pthread_atfork(NULL, NULL, forked);
	at_quick_exit(mark_exit);
	parse_environment();
}

__attribute__((destructor(101))) static void library_unloaded(void)
{
	mark_exit();
	ky_writer_unload();
}
