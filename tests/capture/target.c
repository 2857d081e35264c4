/* SPDX-License-Identifier: MIT */
#include "target.h"

#include "../core/readback.h"
#include "core/drum.h"

#include <errno.h>
#include <fcntl.h>
#include <kymo/kymo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	uint32_t command;
	uint32_t count;
};

/*
 * ------------------------------------------------------------------------------------------------
 * In the target.
 * ------------------------------------------------------------------------------------------------
 */

static void record_net(uint64_t from, uint32_t count)
{
	for (uint64_t i = from; i < from + count; i++)
		KYMO_INSTANT("net", "one", "number", i);
}

static void *record_thread(void *context)
{
	pthread_barrier_wait(context);
	record_net(1, 1000);
	pthread_barrier_wait(context); /* all live at once, each with a ring of its own */
	return NULL;
}

static void record_threads(uint32_t count)
{
	pthread_t *threads = calloc(count, sizeof(*threads));
	pthread_barrier_t barrier;
	CHECK(threads && pthread_barrier_init(&barrier, NULL, count) == 0);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 128 << 10);
	for (uint32_t i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], &attributes, record_thread, &barrier) == 0);
	for (uint32_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static void lose(struct ky_drum_header *h, uint32_t count)
{
	h->lost_ringless += count;
	h->lost_nested += count;
	h->lost_unfinished += count;
	h->refused_sites += count;
	h->refused_strings += count;
	h->refused_names += count;
	h->refused_categories += count;
}

static uint64_t random_next(void)
{
	static uint64_t state = 88172645463325252u; /* xorshift */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/*
 * A place where something is: a quarter each for the header, the tables, the heap and the first
 * rings.
 */
static uint64_t random_place(const struct ky_drum_header *h)
{
	const uint64_t from[] = {0, h->clock_at, h->heap_at, h->space_at};
	const uint64_t bytes[] = {2048, h->heap_at - h->clock_at, 16384, 1 << 18};
	const uint64_t part = random_next() % 4;
	return from[part] + random_next() % (bytes[part] / 8) * 8;
}

/* Values that are near to right are the worst ones. */
static uint64_t random_value(const struct ky_drum_header *h)
{
	const uint64_t value = random_next();
	switch (random_next() % 6) {
	case 0:
		return value;
	case 1:
		return value % 64;
	case 2:
		return value % h->drum_bytes;
	case 3:
		return UINT64_MAX - value % 64;
	case 4:
		return value % 4096 << 42 | value % 65536;
	default:
		return 0;
	}
}

_Noreturn static void scribble(void)
{
	uint8_t *drum = ky_drum_get()->base;
	struct ky_drum_header good;
	const uint64_t bytes = (1 << 20) + ky_drum_get()->header->space_at;
	uint8_t *image = malloc(bytes);
	CHECK(image);
	memcpy(image, drum, bytes);
	memcpy(&good, drum, sizeof(good));
	for (uint64_t i = 0;; i++) {
		__atomic_store_n((uint64_t *)(void *)(drum + random_place(&good)),
				 random_value(&good), __ATOMIC_RELAXED);
		if (i % 50 == 0) /* right again, so that it is believed now and then */
			memcpy(drum, image, i % 5000 ? sizeof(good) : bytes);
	}
}

static void obey(const struct order *order)
{
	static uint64_t net = 1, db = 1;
	switch (order->command) {
	case TARGET_NET:
	case TARGET_KILL:
		record_net(net, order->count);
		net += order->count;
		if (order->command == TARGET_KILL)
			raise(SIGKILL);
		break;
	case TARGET_DB:
		for (uint32_t i = 0; i < order->count; i++)
			KYMO_INSTANT("db", "two", "number", db++);
		break;
	case TARGET_LATE:
		for (uint32_t i = 0; i < order->count; i++)
			KYMO_INSTANT("net.late", "three", "number", i);
		break;
	case TARGET_THREADS:
		record_threads(order->count);
		break;
	case TARGET_MARK:
		kymo_mark_start();
		break;
	case TARGET_LOSE:
		lose(ky_drum_peek()->header, order->count);
		break;
	default:
		scribble();
	}
}

_Noreturn static void live(int from, int to)
{
	struct order order;
	const int fd = ky_drum_get() ? ky_drum_get()->fd : -1;
	/* Categories are there from the first time that they are asked for. */
	(void)(KYMO_ENABLED("net") + KYMO_ENABLED("db"));
	if (write(to, &fd, sizeof(fd)) != sizeof(fd))
		_exit(1);
	while (read(from, &order, sizeof(order)) == sizeof(order)) {
		obey(&order);
		if (write(to, "", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/*
 * ------------------------------------------------------------------------------------------------
 * In the test.
 * ------------------------------------------------------------------------------------------------
 */

static void map_drum(struct target *target, int number)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)target->pid, number);
	target->drum = open(path, O_RDWR | O_CLOEXEC);
	CHECK(target->drum >= 0);
	target->header = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, target->drum, 0);
	CHECK(target->header != MAP_FAILED);
	target->categories =
		(const void *)((const uint8_t *)target->header + target->header->categories_at);
}

void target_start(struct target *target, const char *categories, const char *dir)
{
	int to[2], from[2], number = -1;
	CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	fflush(NULL);
	target->pid = fork();
	CHECK(target->pid >= 0);
	if (target->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* when the test is stopped, so is this */
		close(to[1]);
		close(from[0]);
		ky_limits.categories = categories;
		ky_limits.dir = dir;
		live(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	target->to = to[1];
	target->from = from[0];
	CHECK(read(target->from, &number, sizeof(number)) == sizeof(number) && number >= 0);
	map_drum(target, number);
}

void target_do(struct target *target, enum target_command command, uint32_t count)
{
	const struct order order = {command, count};
	char answer;
	CHECK(write(target->to, &order, sizeof(order)) == sizeof(order));
	if (command != TARGET_SCRIBBLE && command != TARGET_KILL)
		CHECK(read(target->from, &answer, 1) == 1);
}

int target_wait(struct target *target)
{
	int status = -1;
	CHECK(waitpid(target->pid, &status, 0) == target->pid);
	target->pid = 0;
	return status;
}

void target_end(struct target *target)
{
	if (target->pid) {
		kill(target->pid, SIGKILL);
		(void)target_wait(target);
	}
	munmap((void *)(uintptr_t)target->header, 1 << 20);
	close(target->drum);
	close(target->to);
	close(target->from);
}

static uint32_t holder_of(const struct target *target, uint32_t slot)
{
	return __atomic_load_n(&target->header->recorders[slot].pid, __ATOMIC_SEQ_CST);
}

uint32_t target_slots(const struct target *target, pid_t recorder)
{
	uint32_t count = 0;
	for (uint32_t slot = 0; slot < KY_RECORDERS_MAX; slot++)
		count += holder_of(target, slot) == (uint32_t)recorder;
	return count;
}

static const struct ky_drum_category *find_category(const struct target *target, const char *name)
{
	const char *base = (const void *)target->header;
	for (uint32_t i = 0; i < target->header->categories_max; i++) {
		const struct ky_drum_category *c = &target->categories[i];
		const char *at = base + (uint64_t)c->name * KY_HEAP_UNIT;
		if (c->name && strcmp(at + sizeof(struct ky_heap_record), name) == 0)
			return c;
	}
	check_failed(__FILE__, __LINE__, name);
}

bool target_is_wanted(const struct target *target, const char *category, pid_t recorder)
{
	const uint64_t state =
		__atomic_load_n(&find_category(target, category)->state, __ATOMIC_SEQ_CST);
	for (uint32_t slot = 0; slot < KY_RECORDERS_MAX; slot++)
		if (holder_of(target, slot) == (uint32_t)recorder && state >> (8 + slot) & 1)
			return (state & 0xff) == 1;
	return false;
}

bool target_is_restored(const struct target *target)
{
	for (uint32_t i = 0; i < target->header->categories_max; i++) {
		const uint64_t state =
			__atomic_load_n(&target->categories[i].state, __ATOMIC_SEQ_CST);
		if ((state & 0xff) != (state >> 8 != 0))
			return false;
		for (uint32_t slot = KY_RECORDERS_INSIDE; slot < KY_RECORDERS_MAX; slot++)
			if (state >> (8 + slot) & 1 && holder_of(target, slot) == 0)
				return false;
	}
	return target_slots(target, getpid()) == 0;
}
