/* SPDX-License-Identifier: MIT */
/*
 * host.c: libkymo as the host of libraries that ship kymo's headers alone (see embed.h). Their events take the slow path
 * into the same rings.
 */
#include "core/heap.h"
#include "core/parked.h"
#include "core/writer.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>

static const unsigned char *host_category(const struct kymo_host *host, const char *name)
{
	(void)host;
	const int saved_errno = errno;
	struct ky_drum *drum = ky_drum_get();
	struct ky_drum_category *category = drum ? ky_heap_category(drum, name) : NULL;
	errno = saved_errno;
	return category ? (const unsigned char *)&category->state : NULL;
}

static uint64_t host_site(const struct kymo_host *host, const struct kymo_site_info *info)
{
	(void)host;
	const int saved_errno = errno;
	uint64_t word = 0;
	struct ky_drum *drum = ky_drum_get();
	struct ky_drum_category *category = drum ? ky_heap_category(drum, info->category) : NULL;
	if (category && info->abi == KYMO_I_ABI)
		word = (uint64_t)ky_heap_site(drum, info, (uint32_t)(category - drum->categories))
		       << KY_WORD_SITE_SHIFT;
	errno = saved_errno;
	return word;
}

static int host_reserve(const struct kymo_host *host, uint64_t site, uint32_t words,
			struct kymo_reservation *reservation)
{
	(void)host;
	return site != 0 && ky_writer_reserve(site, words, KY_PARKED_FRAME(), reservation);
}

static void host_commit(const struct kymo_host *host, struct kymo_reservation *reservation, int end)
{
	(void)host;
	ky_writer_commit(reservation, end != 0);
}

static uint32_t host_intern(const struct kymo_host *host, const char *string)
{
	(void)host;
	const int saved_errno = errno;
	struct ky_drum *drum = ky_drum_get();
	const uint32_t at =
		drum && string ? ky_heap_intern(drum, string, strnlen(string, KYMO_STRING_MAX)) : 0;
	errno = saved_errno;
	return at;
}

static uint64_t host_time(const struct kymo_host *host)
{
	(void)host;
	return ky_os_boottime();
}

static void host_snapshot(const struct kymo_host *host, const char *reason, uint64_t arg)
{
	(void)host;
	kymo_snapshot(reason, arg);
}

KYMO_API const struct kymo_host *kymo_host_get(uint32_t version);

const struct kymo_host *kymo_host_get(uint32_t version)
{
	static const struct kymo_host host = {
		.size = sizeof(host),
		.version = KYMO_HOST_VERSION,
		.category = host_category,
		.site = host_site,
		.reserve = host_reserve,
		.commit = host_commit,
		.intern = host_intern,
		.time = host_time,
		.snapshot = host_snapshot,
	};
	return version == KYMO_HOST_VERSION ? &host : NULL;
}
